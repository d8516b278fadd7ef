//! Java objects, read from outside the VM: of which class they are, and a few fields.
//!
//! A collector may be moving what is read. Nothing here can crash, but what it says is only worth
//! something if it can be checked: a class against what it must be, a thread against those known.

use super::continuation;
use super::layout::{ABSENT, Layout, present};
use super::names;
use crate::memory::{Fault, Memory};

/// How an object tells its class (src/hotspot/share/oops/oop.hpp).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassWord {
    /// A pointer in its second word.
    Wide,
    /// A compressed one there.
    Narrow,
    /// A compressed one in the upper bits of its first word (`-XX:+UseCompactObjectHeaders`).
    Compact,
}

impl ClassWord {
    /// All ways.
    pub const ALL: [ClassWord; 3] = [ClassWord::Narrow, ClassWord::Compact, ClassWord::Wide];
}

/// What is known of objects; offsets are [`ABSENT`] where they are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objects {
    /// How objects tell their classes.
    pub class_word: ClassWord,
    /// Whether `JavaThread::_threadObj` is a handle (from 14 on) or the reference itself.
    pub thread_is_handle: bool,
    /// `Thread.eetop`: the `JavaThread*` of a platform thread.
    pub eetop: u64,
    /// `Thread.tid`.
    pub tid: u64,
    /// `Thread.parkBlocker`: what a parked thread says it is parked on.
    pub park_blocker: u64,
    /// `AbstractOwnableSynchronizer.exclusiveOwnerThread`.
    pub exclusive_owner: u64,
}

impl Objects {
    /// Nothing known.
    pub const EMPTY: Objects = Objects {
        class_word: ClassWord::Narrow,
        thread_is_handle: true,
        eetop: ABSENT,
        tid: ABSENT,
        park_blocker: ABSENT,
        exclusive_owner: ABSENT,
    };
}

/// What a parked thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The `Klass*` of the object.
    pub class: u64,
    /// Whether it is a synchronizer that one thread can own.
    pub is_ownable: bool,
    /// The `Thread` object that owns it; 0 for none.
    pub owner: u64,
}

/// Where compact headers have the class (`markWord::klass_shift`, 24 to 28).
const COMPACT_SHIFT: u32 = 42;
/// Superclasses followed at most.
const SUPERS_MAX: usize = 16;
const OWNABLE: &[u8] = b"java/util/concurrent/locks/AbstractOwnableSynchronizer";

/// The `Klass*` of an object.
///
/// # Errors
/// [`Fault`] if the object cannot be read.
pub fn class_of<M: Memory>(
    mem: &M,
    layout: &Layout,
    how: ClassWord,
    object: u64,
) -> Result<u64, Fault> {
    let narrow = match how {
        ClassWord::Wide => return mem.word(object.wrapping_add(8)),
        ClassWord::Narrow => u64::from(mem.u32(object.wrapping_add(8))?),
        ClassWord::Compact => mem.word(object)? >> COMPACT_SHIFT,
    };
    if narrow == 0 || !present(layout.narrow_klass_base) {
        return Err(Fault { addr: object });
    }
    let base = mem.word(layout.narrow_klass_base)?;
    let shift = mem.u32(layout.narrow_klass_shift)? & 63;
    Ok(base.wrapping_add(narrow << shift))
}

/// The `Klass*` that a `java.lang.Class` object stands for; `None` if it is a primitive type's.
///
/// # Errors
/// [`Fault`] if the object cannot be read.
pub fn class_of_mirror<M: Memory>(
    mem: &M,
    layout: &Layout,
    mirror: u64,
) -> Result<Option<u64>, Fault> {
    if !present(layout.mirror_klass) {
        return Ok(None);
    }
    let offset = mem.u32(layout.mirror_klass)?;
    let class = mem.word(mirror.wrapping_add(u64::from(offset)))?;
    Ok((class != 0).then_some(class))
}

/// The name of a class, with slashes.
///
/// # Errors
/// [`Fault`] if it cannot be read.
pub fn class_name<'b, M: Memory>(
    mem: &M,
    layout: &Layout,
    class: u64,
    buf: &'b mut [u8],
) -> Result<&'b [u8], Fault> {
    let symbol = mem.word(class.wrapping_add(layout.klass_name))?;
    names::symbol(mem, layout, symbol, buf)
}

/// Whether `class` is the one with this name or extends it.
///
/// # Errors
/// [`Fault`] if a class cannot be read.
pub fn is_kind_of<M: Memory>(
    mem: &M,
    layout: &Layout,
    class: u64,
    name: &[u8],
) -> Result<bool, Fault> {
    let mut buf = [0u8; 128];
    let mut class = class;
    for _ in 0..SUPERS_MAX {
        if class == 0 {
            break;
        }
        if class_name(mem, layout, class, &mut buf)? == name {
            return Ok(true);
        }
        if !present(layout.klass_super) {
            break;
        }
        class = mem.word(class.wrapping_add(layout.klass_super))?;
    }
    Ok(false)
}

/// The `Thread` object of a platform thread.
///
/// # Errors
/// [`Fault`] if the thread cannot be read.
pub fn of_thread<M: Memory>(
    mem: &M,
    layout: &Layout,
    objects: &Objects,
    thread: u64,
) -> Result<u64, Fault> {
    let value = mem.word(thread.wrapping_add(layout.thread_obj))?;
    if objects.thread_is_handle && value != 0 {
        return continuation::handle(mem, layout, value);
    }
    Ok(value)
}

/// The object of the virtual thread that is mounted on a platform thread, or of that itself.
///
/// # Errors
/// [`Fault`] if the thread cannot be read.
pub fn of_logical_thread<M: Memory>(
    mem: &M,
    layout: &Layout,
    objects: &Objects,
    thread: u64,
) -> Result<u64, Fault> {
    if present(layout.thread_vthread) {
        let handle = mem.word(thread.wrapping_add(layout.thread_vthread))?;
        if handle != 0 {
            let object = continuation::handle(mem, layout, handle)?;
            if object != 0 {
                return Ok(object);
            }
        }
    }
    of_thread(mem, layout, objects, thread)
}

/// What the thread with this object says it is parked on.
///
/// # Errors
/// [`Fault`] if an object cannot be read.
pub fn blocker<M: Memory>(
    mem: &M,
    layout: &Layout,
    objects: &Objects,
    thread_object: u64,
) -> Result<Option<Blocker>, Fault> {
    if !present(objects.park_blocker) || thread_object == 0 {
        return Ok(None);
    }
    let at = thread_object.wrapping_add(objects.park_blocker);
    let object = continuation::reference(mem, layout, at)?;
    if object == 0 {
        return Ok(None);
    }
    let class = class_of(mem, layout, objects.class_word, object)?;
    let is_ownable = is_kind_of(mem, layout, class, OWNABLE)?;
    let owner = if is_ownable && present(objects.exclusive_owner) {
        continuation::reference(mem, layout, object.wrapping_add(objects.exclusive_owner))?
    } else {
        0
    };
    Ok(Some(Blocker {
        class,
        is_ownable,
        owner,
    }))
}

/// The `JavaThread*` of a `Thread` object; 0 if it is a virtual thread or not alive.
///
/// # Errors
/// [`Fault`] if the object cannot be read.
pub fn java_thread<M: Memory>(mem: &M, objects: &Objects, object: u64) -> Result<u64, Fault> {
    match objects.eetop {
        at if present(at) => mem.word(object.wrapping_add(at)),
        _ => Ok(0),
    }
}

/// The id of a `Thread` object; 0 if unknown.
///
/// # Errors
/// [`Fault`] if the object cannot be read.
pub fn thread_id<M: Memory>(mem: &M, objects: &Objects, object: u64) -> Result<u64, Fault> {
    match objects.tid {
        at if present(at) => mem.word(object.wrapping_add(at)),
        _ => Ok(0),
    }
}

/// Finds out by a live platform thread how its object is held and how objects tell their classes;
/// `eetop` must be known. False if this thread does not tell: its object may just be moved.
pub fn calibrate<M: Memory>(mem: &M, layout: &Layout, objects: &mut Objects, thread: u64) -> bool {
    for is_handle in [true, false] {
        let mut tried = Objects {
            thread_is_handle: is_handle,
            ..*objects
        };
        let Ok(object) = of_thread(mem, layout, &tried, thread) else {
            continue;
        };
        if object == 0 || java_thread(mem, &tried, object) != Ok(thread) {
            continue;
        }
        for class_word in ClassWord::ALL {
            let class = class_of(mem, layout, class_word, object);
            let name = b"java/lang/Thread";
            if class.is_ok_and(|class| is_kind_of(mem, layout, class, name) == Ok(true)) {
                tried.class_word = class_word;
                *objects = tried;
                return true;
            }
        }
    }
    false
}

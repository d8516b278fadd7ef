//! Java objects, read from outside the VM: their class, and a few fields.
//!
//! A collector may move the objects during the reads. Nothing here can crash, but the caller must
//! check each result: a class against the expected one, a thread against the known threads.

use super::continuation;
use super::layout::{ABSENT, Layout, present};
use super::names;
use crate::memory::{Fault, Memory};

/// The place of an object's class pointer (src/hotspot/share/oops/oop.hpp).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassWord {
    /// A pointer in its second word.
    Wide,
    /// A compressed pointer there.
    Narrow,
    /// A compressed pointer in the upper bits of the first word (`-XX:+UseCompactObjectHeaders`).
    Compact,
}

impl ClassWord {
    /// All places.
    pub const ALL: [ClassWord; 3] = [ClassWord::Narrow, ClassWord::Compact, ClassWord::Wide];
}

/// Facts about objects; offsets are [`ABSENT`] if unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objects {
    /// The place of the class pointer.
    pub class_word: ClassWord,
    /// Whether `JavaThread::_threadObj` is a handle (from 14 on) or the reference itself.
    pub thread_is_handle: bool,
    /// `Thread.eetop`: the `JavaThread*` of a platform thread.
    pub eetop: u64,
    /// `Thread.tid`.
    pub tid: u64,
    /// `Thread.parkBlocker`: the object that a parked thread is parked on.
    pub park_blocker: u64,
    /// `AbstractOwnableSynchronizer.exclusiveOwnerThread`.
    pub exclusive_owner: u64,
}

impl Objects {
    /// Nothing is known.
    pub const EMPTY: Objects = Objects {
        class_word: ClassWord::Narrow,
        thread_is_handle: true,
        eetop: ABSENT,
        tid: ABSENT,
        park_blocker: ABSENT,
        exclusive_owner: ABSENT,
    };
}

/// The object that a parked thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The `Klass*` of the object.
    pub class: u64,
    /// Whether it is a synchronizer that one thread can own.
    pub is_ownable: bool,
    /// The `Thread` object that owns it; 0 for none.
    pub owner: u64,
}

/// Position of the class in compact headers (`markWord::klass_shift`, 24 to 28).
const COMPACT_SHIFT: u32 = 42;
/// Maximum number of superclasses followed.
const SUPERS_MAX: usize = 16;
const OWNABLE: &[u8] = b"java/util/concurrent/locks/AbstractOwnableSynchronizer";
/// The locks of `java.util.concurrent.locks`: prefixes of the classes of their blockers. (A
/// condition is its own blocker.)
const LOCKS: [&str; 3] = ["ReentrantLock$", "ReentrantReadWriteLock$", "StampedLock"];

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

/// The `Klass*` of a `java.lang.Class` object; `None` for a primitive type.
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

/// Whether `class` has this name or extends a class with it.
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

/// The object of the virtual thread that is mounted on a platform thread, or else of the platform
/// thread itself.
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

/// The object that the thread with this object is parked on.
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

/// Finds out, from a live platform thread, how its object is referenced and where objects have
/// their class. `eetop` must be known. False if this thread gives no result: its object may be
/// moving.
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

/// Whether threads park on an object of this class only while others hold it as a lock, also if no
/// one thread owns it: several may read. `class` has dots.
#[must_use]
pub fn is_lock(class: &str) -> bool {
    let name = class.strip_prefix("java.util.concurrent.locks.");
    name.is_some_and(|name| LOCKS.iter().any(|lock| name.starts_with(lock)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    #[test]
    fn is_lock_excludes_other_synchronizers() {
        for name in [
            "java.util.concurrent.locks.ReentrantLock$NonfairSync",
            "java.util.concurrent.locks.ReentrantReadWriteLock$FairSync",
            "java.util.concurrent.locks.StampedLock",
        ] {
            assert!(is_lock(name), "{name}");
        }
        for name in [
            "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject",
            "java.util.concurrent.locks.AbstractQueuedSynchronizer",
            "java.util.concurrent.Semaphore$NonfairSync",
            "StampedLock",
        ] {
            assert!(!is_lock(name), "{name}");
        }
    }

    const OBJECT: u64 = 0x1000;
    const BASE: u64 = 0x10_0000;

    /// Offsets of a class: its name at 8, its superclass at 16.
    fn layout() -> Layout {
        let mut layout = Layout::EMPTY;
        (layout.narrow_klass_base, layout.narrow_klass_shift) = (0x500, 0x508);
        (layout.klass_name, layout.klass_super) = (8, 16);
        (layout.symbol_length, layout.symbol_body) = (0, 2);
        layout.extra.chunk.narrow_oops = false;
        layout
    }

    /// Adds a class with a name and a superclass.
    fn add_class(mem: &mut Bytes, class: u64, name: &[u8], extends: u64) {
        mem.add_words(class, &[0, class + 0x100, extends]);
        let mut symbol = [0u8; 64];
        symbol[0] = name.len() as u8;
        symbol[2..2 + name.len()].copy_from_slice(name);
        mem.add(class + 0x100, &symbol);
    }

    #[test]
    fn class_of_object_is_read_in_three_ways() {
        let mut layout = layout();
        let header = 0x30_u64 << COMPACT_SHIFT | 5;
        let mem = Bytes::of_words(&[(OBJECT, &[header, 0x7_0000_0020]), (0x500, &[BASE, 3])]);
        let of = |layout: &Layout, how| class_of(&mem, layout, how, OBJECT);
        assert_eq!(of(&layout, ClassWord::Wide), Ok(0x7_0000_0020));
        assert_eq!(of(&layout, ClassWord::Narrow), Ok(BASE + 0x100));
        assert_eq!(of(&layout, ClassWord::Compact), Ok(BASE + 0x180));
        layout.narrow_klass_base = ABSENT;
        assert!(of(&layout, ClassWord::Narrow).is_err());
        let none = Bytes::of_words(&[(OBJECT, &[0, 0]), (0x500, &[BASE, 3])]);
        assert!(class_of(&none, &self::layout(), ClassWord::Narrow, OBJECT).is_err());
        assert!(class_of(&none, &self::layout(), ClassWord::Compact, OBJECT).is_err());
    }

    #[test]
    fn mirror_leads_to_its_class_primitive_mirror_to_none() {
        let mut layout = layout();
        let of = |layout: &Layout, class| {
            let mem = Bytes::of_words(&[(OBJECT, &[0, 0, class]), (0x600, &[0xffff_0000_0010])]);
            class_of_mirror(&mem, layout, OBJECT)
        };
        assert_eq!(of(&layout, 0x7000), Ok(None), "it is not known where");
        layout.mirror_klass = 0x600;
        // The value has four bytes; the next ones do not count.
        assert_eq!(of(&layout, 0x7000), Ok(Some(0x7000)));
        assert_eq!(of(&layout, 0), Ok(None));
    }

    #[test]
    fn class_is_also_of_its_superclass_kind() {
        let mut layout = layout();
        let mut mem = Bytes::default();
        add_class(&mut mem, 0x2000, b"a/Child", 0x3000);
        add_class(&mut mem, 0x3000, b"a/Parent", 0);
        let is = |layout: &Layout, name| is_kind_of(&mem, layout, 0x2000, name);
        assert_eq!(is(&layout, b"a/Child"), Ok(true));
        assert_eq!(is(&layout, b"a/Parent"), Ok(true));
        assert_eq!(is(&layout, b"a/Par"), Ok(false));
        assert_eq!(is_kind_of(&mem, &layout, 0x3000, b"a/Child"), Ok(false));
        assert_eq!(is_kind_of(&mem, &layout, 0, b"a/Child"), Ok(false));
        layout.klass_super = ABSENT;
        assert_eq!(is(&layout, b"a/Parent"), Ok(false));
        // At most sixteen classes are read.
        let mut chain = Bytes::default();
        for i in 0..16 {
            add_class(
                &mut chain,
                0x2000 + i * 0x1000,
                b"a/Link",
                0x3000 + i * 0x1000,
            );
        }
        add_class(&mut chain, 0x1_2000, b"a/Root", 0);
        assert_eq!(
            is_kind_of(&chain, &self::layout(), 0x2000, b"a/Root"),
            Ok(false)
        );
        assert_eq!(
            is_kind_of(&chain, &self::layout(), 0x3000, b"a/Root"),
            Ok(true)
        );
    }

    /// A platform thread's object is behind its handle, or is the reference itself; the object of a
    /// mounted virtual thread comes first.
    #[test]
    fn threads_have_their_objects() {
        let mut layout = layout();
        layout.thread_obj = 0;
        let mut objects = Objects::EMPTY;
        let mem = Bytes::of_words(&[
            (0x2000, &[0x3000, 0x3008]),
            (0x3000, &[0x4000, 0x5000, 0]),
            (0x2100, &[0x3000, 0]),
            (0x2200, &[0x3000, 0x3010]),
            (0x2300, &[0, 0]),
        ]);
        assert_eq!(of_thread(&mem, &layout, &objects, 0x2000), Ok(0x4000));
        assert_eq!(of_thread(&mem, &layout, &objects, 0x2300), Ok(0));
        let logical =
            |layout: &Layout, thread| of_logical_thread(&mem, layout, &Objects::EMPTY, thread);
        assert_eq!(
            logical(&layout, 0x2000),
            Ok(0x4000),
            "before virtual threads"
        );
        layout.thread_vthread = 8;
        assert_eq!(logical(&layout, 0x2000), Ok(0x5000));
        assert_eq!(logical(&layout, 0x2100), Ok(0x4000), "no handle");
        assert_eq!(logical(&layout, 0x2200), Ok(0x4000), "no object");
        objects.thread_is_handle = false;
        assert_eq!(of_thread(&mem, &layout, &objects, 0x2000), Ok(0x3000));
    }

    #[test]
    fn fields_of_thread_objects_are_read_where_they_are_known() {
        let mut objects = Objects::EMPTY;
        let mem = Bytes::of_words(&[(OBJECT, &[0, 0, 0x7777, 42])]);
        assert_eq!(java_thread(&mem, &objects, OBJECT), Ok(0));
        assert_eq!(thread_id(&mem, &objects, OBJECT), Ok(0));
        (objects.eetop, objects.tid) = (16, 24);
        assert_eq!(java_thread(&mem, &objects, OBJECT), Ok(0x7777));
        assert_eq!(thread_id(&mem, &objects, OBJECT), Ok(42));
    }

    #[test]
    fn blocker_and_its_owner_are_read_from_parked_thread() {
        let layout = layout();
        let mut mem = Bytes::of_words(&[
            (OBJECT, &[0, 0, 0x2000]),
            (0x2000, &[0, 0x6000, 0x9990]),
            (0x1100, &[0, 0, 0x2100]),
            (0x2100, &[0, 0x7000, 0x9990]),
            (0x1200, &[0, 0, 0]),
        ]);
        add_class(&mut mem, 0x6000, OWNABLE, 0);
        add_class(&mut mem, 0x7000, b"a/Other", 0);
        let mut objects = Objects {
            class_word: ClassWord::Wide,
            ..Objects::EMPTY
        };
        let of = |objects: &Objects, thread| blocker(&mem, &layout, objects, thread);
        assert_eq!(of(&objects, OBJECT), Ok(None), "it is not known where");
        objects.park_blocker = 16;
        let expected = |class, is_ownable, owner| {
            Ok(Some(Blocker {
                class,
                is_ownable,
                owner,
            }))
        };
        assert_eq!(of(&objects, OBJECT), expected(0x6000, true, 0));
        objects.exclusive_owner = 16;
        assert_eq!(of(&objects, OBJECT), expected(0x6000, true, 0x9990));
        assert_eq!(of(&objects, 0x1100), expected(0x7000, false, 0));
        assert_eq!(of(&objects, 0x1200), Ok(None));
        assert_eq!(of(&objects, 0), Ok(None));
    }

    /// A live thread, with either kind of reference to its object and any of the three places of
    /// the class.
    #[test]
    fn calibration_uses_a_live_thread() {
        let mut layout = layout();
        layout.thread_obj = 0;
        let thread = 0x2000;
        for is_handle in [true, false] {
            for how in ClassWord::ALL {
                let words = match how {
                    ClassWord::Wide => [1, 0x6000],
                    ClassWord::Narrow => [1, 0xc00],
                    ClassWord::Compact => [0xc00 << COMPACT_SHIFT, 0],
                };
                let mut mem = Bytes::of_words(&[
                    (thread, &[if is_handle { 0x3000 } else { OBJECT }]),
                    (0x3000, &[OBJECT]),
                    (OBJECT, &[words[0], words[1], thread]),
                    (0x500, &[0, 3]),
                ]);
                add_class(&mut mem, 0x6000, b"java/lang/Thread", 0);
                let mut objects = Objects {
                    eetop: 16,
                    thread_is_handle: !is_handle,
                    ..Objects::EMPTY
                };
                assert!(calibrate(&mem, &layout, &mut objects, thread));
                assert_eq!(
                    (objects.thread_is_handle, objects.class_word),
                    (is_handle, how)
                );
                let before = objects;
                // An object of another thread, or an unreadable one.
                objects.eetop = 8;
                assert!(!calibrate(&mem, &layout, &mut objects, thread));
                assert!(!calibrate(&mem, &layout, &mut objects, 0x9000));
                objects.eetop = 16;
                assert_eq!(objects, before);
            }
        }
    }
}

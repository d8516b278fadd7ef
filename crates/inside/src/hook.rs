//! The part of the handler that adds to a snapshot for a JVM: the mounted virtual thread, the entry
//! of its continuation, and its frozen frames in the heap.
//!
//! [`dwell_virtual_thread_hook`] runs in the signal handler. It reads memory through fault-tolerant
//! loads only, and neither allocates, locks nor calls the JVM. It reads objects of the interrupted
//! thread, which cannot pass a safepoint in the handler.

use crate::hotspot::HotSpot;
use crate::owners;
use dwell_recorder::asked::QUESTIONS;
use dwell_recorder::sys::published::Published;
use dwell_signal::{CHUNKS_MAX, Capture, Live};
use dwell_walker::hotspot::layout::{ABSENT, Layout, present};
use dwell_walker::hotspot::{continuation, flags};
use dwell_walker::{Fault, Memory};
use jvm_sys::Env;
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Data for the hook. Each version lives as long as the process.
#[derive(Clone, Copy)]
struct Known {
    layout: &'static Layout,
    /// `Thread.tid`.
    thread_id: u64,
    /// `Thread.name`.
    thread_name: u64,
    /// `String.value`.
    string_value: u64,
    /// `String.coder`; absent in JDK 8, which has no virtual threads.
    string_coder: u64,
    /// Length field and first element of a `byte[]`.
    array: Option<(u64, u64)>,
    /// `Continuation.target`, and in that object the virtual thread.
    owner: Option<(u64, u64)>,
}

/// The JVM's layout, for the check of owners.
static LAYOUT: Published<&'static Layout> = Published::new();

static KNOWN: AtomicPtr<Known> = AtomicPtr::new(std::ptr::null_mut());

/// Installs the hook if the JVM has virtual threads.
pub fn install(jvm: &HotSpot, env: Env) {
    let vm = jvm.vm();
    if !present(vm.layout.thread_vthread) {
        return;
    }
    let field = |class: &CStr, name: &CStr, kind: &CStr| {
        vm.fields.offset(env, class, name, kind).unwrap_or(ABSENT)
    };
    publish(Known {
        layout: &vm.layout,
        thread_id: field(c"java/lang/Thread", c"tid", c"J"),
        thread_name: field(c"java/lang/Thread", c"name", c"Ljava/lang/String;"),
        string_value: field(c"java/lang/String", c"value", c"[B"),
        string_coder: field(c"java/lang/String", c"coder", c"B"),
        array: byte_array(jvm.engine.live(), &vm.layout),
        owner: owner(&field),
    });
    show_mounted(jvm);
    jvm.engine.set_extra(dwell_virtual_thread_hook);
}

/// `JavaThread::_cont_entry` is not 0 while a virtual thread is mounted.
fn show_mounted(jvm: &HotSpot) {
    let at = u32::try_from(jvm.vm().layout.extra.cont_entry).unwrap_or(u32::MAX);
    jvm.engine.words().set_mounted(at);
}

/// Completes the known structures of the JVM. True if there was something new.
pub fn complete(jvm: &HotSpot) -> bool {
    let Some(vm) = jvm.vm().completed(jvm.engine.live()) else {
        return false;
    };
    jvm.vm.replace(vm);
    update(jvm);
    show_mounted(jvm);
    true
}

/// Publishes the present structures of the JVM to the hook.
fn update(jvm: &HotSpot) {
    // SAFETY: null or a leaked box.
    if let Some(known) = unsafe { KNOWN.load(Ordering::Acquire).as_ref() } {
        publish(Known {
            layout: &jvm.vm().layout,
            ..*known
        });
    }
}

/// The path from a continuation to its virtual thread: `VirtualThread.VThreadContinuation` wraps
/// the task into an anonymous `Runnable` with a reference to the thread.
fn owner(field: &dyn Fn(&CStr, &CStr, &CStr) -> u64) -> Option<(u64, u64)> {
    let target = field(
        c"jdk/internal/vm/Continuation",
        c"target",
        c"Ljava/lang/Runnable;",
    );
    let wrapper = c"java/lang/VirtualThread$VThreadContinuation$1";
    let thread = field(wrapper, c"val$vthread", c"Ljava/lang/VirtualThread;");
    (present(target) && present(thread)).then_some((target, thread))
}

/// The old version is leaked, because a handler may be using it. There are one or two replacements.
fn publish(known: Known) {
    KNOWN.store(Box::into_raw(Box::new(known)), Ordering::Release);
}

/// Offsets of length and first element of a `byte[]` (src/hotspot/share/oops/arrayOop.hpp).
fn byte_array(live: Live, layout: &Layout) -> Option<(u64, u64)> {
    let flag = |name| flags::boolean(&live, layout, name).ok().flatten();
    if flag("UseCompactObjectHeaders") == Some(true) {
        return Some((8, 12));
    }
    (flag("UseCompressedClassPointers") != Some(false)).then_some((12, 16))
}

/// Lets handlers answer questions for owners of monitors.
pub fn install_owners(jvm: &HotSpot) {
    LAYOUT.replace(&jvm.vm().layout);
    jvm.engine.set_claim(dwell_owner_hook);
}

/// Finds the question that this sample answers, if the thread owns the monitor in question.
#[unsafe(no_mangle)]
pub extern "C" fn dwell_owner_hook(capture: &mut Capture<'_>) {
    let live = capture.live();
    let found = LAYOUT.read(|layout| {
        let record = capture.record();
        QUESTIONS.take(record.index(), |monitor| {
            owners::has(&live, layout, record, monitor)
        })
    });
    if let Some(question) = found.flatten() {
        capture.set_request(question);
    }
}

/// Fills the part of a snapshot that concerns virtual threads.
#[unsafe(no_mangle)]
pub extern "C" fn dwell_virtual_thread_hook(capture: &mut Capture<'_>) {
    // SAFETY: null or a leaked box.
    let Some(known) = (unsafe { KNOWN.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let thread = capture.header().managed_thread;
    let live = capture.live();
    if !present(known.layout.extra.cont_entry) {
        return;
    }
    let at = thread.wrapping_add(known.layout.extra.cont_entry);
    let Some(entry) = live
        .word(at)
        .ok()
        .filter(|entry| thread != 0 && *entry != 0)
    else {
        return;
    };
    capture.set_cont_entry(entry);
    let Ok(mut object) = mounted(&live, known, thread) else {
        return;
    };
    let mut id = identity(&live, known, thread, object);
    // During a mount or unmount, and while it works on its carrier, the virtual thread counts as
    // the carrier, although its frames are on the stack.
    if id == Ok(capture.record().managed_id())
        && let Ok(Some((owner, owner_id))) = owner_of(&live, known, entry)
    {
        (object, id) = (owner, Ok(owner_id));
    }
    if let Ok(id) = id {
        capture.set_logical_id(id);
    }
    if let Ok(Some((text, len))) = name(&live, known, object) {
        capture.copy_logical_name(text, len);
    }
    copy_chunks(capture, &live, known, entry);
}

/// Copies the frozen frames: the thread may have thawed them by the time of the walk.
#[inline]
fn copy_chunks(capture: &mut Capture<'_>, live: &Live, known: &Known, entry: u64) {
    let mut next = continuation::youngest_chunk(live, known.layout, entry);
    for _ in 0..CHUNKS_MAX {
        let Ok(Some(chunk)) = next else {
            return;
        };
        // Begins at the object itself, because the walk reads its fields again.
        let len = chunk.end.wrapping_sub(chunk.object);
        capture.copy_chunk(chunk.object, u32::try_from(len).unwrap_or(u32::MAX));
        next = continuation::parent_chunk(live, known.layout, &chunk);
    }
}

/// The mounted thread's object: `_vthread` is a handle, a pointer to a reference.
fn mounted(live: &Live, known: &Known, thread: u64) -> Result<u64, Fault> {
    let handle = live.word(thread.wrapping_add(known.layout.thread_vthread))?;
    continuation::handle(live, known.layout, handle)
}

/// The virtual thread whose continuation was entered at `entry`, and its id.
#[inline]
fn owner_of(live: &Live, known: &Known, entry: u64) -> Result<Option<(u64, u64)>, Fault> {
    let Some((target_at, thread_at)) = known.owner.filter(|_| present(known.thread_id)) else {
        return Ok(None);
    };
    let layout = known.layout;
    let continuation = continuation::entered(live, entry)?;
    let target = continuation::reference(live, layout, continuation.wrapping_add(target_at))?;
    if target == 0 {
        return Ok(None);
    }
    let thread = continuation::reference(live, layout, target.wrapping_add(thread_at))?;
    if thread == 0 {
        return Ok(None);
    }
    let id = live.word(thread.wrapping_add(known.thread_id))?;
    Ok(Some((thread, id)))
}

fn identity(live: &Live, known: &Known, thread: u64, object: u64) -> Result<u64, Fault> {
    if present(known.layout.thread_owner_id) {
        return live.word(thread.wrapping_add(known.layout.thread_owner_id));
    }
    if !present(known.thread_id) {
        return Ok(0);
    }
    live.word(object.wrapping_add(known.thread_id))
}

/// Address and length of the thread's name, if it is Latin-1.
fn name(live: &Live, known: &Known, object: u64) -> Result<Option<(u64, usize)>, Fault> {
    let offsets = [known.thread_name, known.string_value, known.string_coder];
    let Some((length_at, first_at)) = known.array else {
        return Ok(None);
    };
    if !offsets.iter().all(|offset| present(*offset)) {
        return Ok(None);
    }
    let layout = known.layout;
    let text = continuation::reference(live, layout, object.wrapping_add(known.thread_name))?;
    if text == 0 || live.u8(text.wrapping_add(known.string_coder))? != 0 {
        return Ok(None);
    }
    let value = continuation::reference(live, layout, text.wrapping_add(known.string_value))?;
    let len = live.u32(value.wrapping_add(length_at))?;
    Ok(Some((value.wrapping_add(first_at), len as usize)))
}

#[cfg(test)]
mod tests;

//! What the handler adds to a snapshot for a JVM: which virtual thread is mounted, where its
//! continuation was entered, and the frames it has frozen in the heap.
//!
//! [`dwell_virtual_thread_hook`] runs in the signal handler: it reads memory through fault-tolerant
//! loads only, allocates nothing, locks nothing, calls nothing of the JVM. The objects it reads are
//! those of the thread it interrupted, which cannot pass a safepoint meanwhile.

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

/// What the hook needs to know; lives as long as the process.
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

/// Where the JVM keeps what tells owners.
static LAYOUT: Published<&'static Layout> = Published::new();

static KNOWN: AtomicPtr<Known> = AtomicPtr::new(std::ptr::null_mut());

/// Makes the handler call the hook, where the JVM has virtual threads.
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

/// Completes what is known of the JVM, if there is something new; true if there was.
pub fn complete(jvm: &HotSpot) -> bool {
    let Some(vm) = jvm.vm().completed(jvm.engine.live()) else {
        return false;
    };
    jvm.vm.replace(vm);
    update(jvm);
    show_mounted(jvm);
    true
}

/// Lets the hook use what is known of the JVM by now.
fn update(jvm: &HotSpot) {
    // SAFETY: null or a leaked box.
    if let Some(known) = unsafe { KNOWN.load(Ordering::Acquire).as_ref() } {
        publish(Known {
            layout: &jvm.vm().layout,
            ..*known
        });
    }
}

/// How a continuation knows its virtual thread: `VirtualThread.VThreadContinuation` wraps the task
/// into an anonymous `Runnable` that has it.
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

/// The old one is leaked: a handler may be using it. It is replaced once or twice in all.
fn publish(known: Known) {
    KNOWN.store(Box::into_raw(Box::new(known)), Ordering::Release);
}

/// Where a `byte[]` has its length and its first element (src/hotspot/share/oops/arrayOop.hpp).
fn byte_array(live: Live, layout: &Layout) -> Option<(u64, u64)> {
    let flag = |name| flags::boolean(&live, layout, name).ok().flatten();
    if flag("UseCompactObjectHeaders") == Some(true) {
        return Some((8, 12));
    }
    (flag("UseCompressedClassPointers") != Some(false)).then_some((12, 16))
}

/// Lets handlers answer where owners of monitors are.
pub fn install_owners(jvm: &HotSpot) {
    LAYOUT.replace(&jvm.vm().layout);
    jvm.engine.set_claim(dwell_owner_hook);
}

/// Finds the question that the thread answers by where it is, if it has what is asked for.
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
    // While it is mounted and unmounted, and when it has to do with its carrier, the virtual thread
    // passes for the carrier although its frames are there.
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
        // From the object itself: its fields are read again by the walk.
        let len = chunk.end.wrapping_sub(chunk.object);
        capture.copy_chunk(chunk.object, u32::try_from(len).unwrap_or(u32::MAX));
        next = continuation::parent_chunk(live, known.layout, &chunk);
    }
}

/// The object of the thread that is mounted: `_vthread` is a handle, a pointer to a reference.
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

/// Where the bytes of the thread's name are, if they are Latin-1.
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

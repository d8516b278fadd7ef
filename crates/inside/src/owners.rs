//! Whether a thread has a monitor, found out where that cannot change meanwhile: in its own
//! handler, or while it waits in the kernel.

use crate::hotspot::HotSpot;
use dwell_recorder::asked::QUESTIONS;
use dwell_signal::{Capture, ThreadRecord};
use dwell_walker::Memory;
use dwell_walker::hotspot::layout::{Layout, present};
use dwell_walker::hotspot::monitors::{self, Owner};
use dwell_walker::hotspot::threads;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Where the JVM keeps what is to be read; lives as long as the process.
static LAYOUT: AtomicPtr<Layout> = AtomicPtr::new(std::ptr::null_mut());

/// Lets handlers answer where owners are.
pub fn install(jvm: &HotSpot) {
    let layout: &'static Layout = &jvm.vm().layout;
    LAYOUT.store(std::ptr::from_ref(layout).cast_mut(), Ordering::Release);
    jvm.engine.set_claim(dwell_owner_hook);
}

/// Whether the thread of `record` has `monitor`, as the JVM tells it at this moment.
#[inline]
pub fn has<M: Memory>(mem: &M, layout: &Layout, record: &ThreadRecord, monitor: u64) -> bool {
    let thread = record.managed_thread();
    if thread == 0 || monitor == 0 {
        return false;
    }
    match monitors::owner(mem, layout, monitor) {
        Err(_) | Ok(Owner::Nobody) => false,
        Ok(Owner::Thread(owner)) => owner == thread,
        Ok(Owner::Id(id)) => is_id(mem, layout, thread, id),
        Ok(Owner::Stack(at)) => threads::has_on_stack(mem, layout, thread, at) == Ok(true),
        Ok(Owner::HolderOf(object)) => monitors::holds(mem, layout, thread, object) == Ok(true),
    }
}

/// Whether the logical thread with this id is on a platform thread.
#[inline]
pub fn is_id<M: Memory>(mem: &M, layout: &Layout, thread: u64, id: u64) -> bool {
    let at = layout.thread_owner_id;
    present(at) && thread != 0 && mem.word(thread.wrapping_add(at)) == Ok(id)
}

/// Finds the question that the thread answers by where it is, if it has what is asked for.
#[unsafe(no_mangle)]
pub extern "C" fn dwell_owner_hook(capture: &mut Capture<'_>) {
    // SAFETY: null or a layout that lives as long as the process.
    let Some(layout) = (unsafe { LAYOUT.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let (live, record) = (capture.live(), capture.record());
    let found = QUESTIONS.take(record.index(), |monitor| {
        has(&live, layout, record, monitor)
    });
    if let Some(question) = found {
        capture.set_request(question);
    }
}

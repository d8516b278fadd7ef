//! What a Java thread itself tells of where it is, in a few words; see [`dwell_wall::signs`].

use dwell_walker::hotspot::layout::Layout;
use dwell_walker::hotspot::threads;
use dwell_walker::{Memory, hotspot::layout::present};
use dwell_wall::signs::Sign;

/// The sign of a `JavaThread*`; `None` if it cannot be read, or has a virtual thread on it: another
/// one may be in its place at the next tick, at the same depth.
pub(super) fn of<M: Memory>(mem: &M, layout: &Layout, thread: u64) -> Option<Sign> {
    if thread == 0 {
        return None;
    }
    let entry = layout.extra.cont_entry;
    if present(entry) && mem.word(thread.wrapping_add(entry)) != Ok(0) {
        return None;
    }
    let at = threads::place(mem, layout, thread).ok()?;
    let words = [at.state, at.monitor_use, at.monitor, at.owner, at.sp, at.pc];
    let in_native = at.state == layout.state_in_native && at.sp != 0;
    Some(Sign::of(words, at.sp == 0).in_native(in_native))
}

/// Has the processor fetch what that is read from.
pub(super) fn fetch(layout: &Layout, thread: u64) {
    let offsets = [
        layout.thread_state,
        layout.thread_anchor,
        layout.thread_pending_monitor,
    ];
    for offset in offsets.into_iter().filter(|offset| present(*offset)) {
        dwell_signal::fetch_ahead(thread.wrapping_add(offset) as usize);
    }
}

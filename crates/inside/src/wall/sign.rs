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
    let [state, sp, pc] = threads::state_and_place(mem, layout, thread).ok()?;
    Some(Sign::of([state, sp, pc], sp == 0))
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

//! The fingerprint of a Java thread's stack: a few words of its `JavaThread`.

use super::look::Looker;
use dwell_walker::hotspot::layout::Layout;
use dwell_walker::hotspot::layout::present;
use dwell_walker::hotspot::safepoints::State;
use dwell_walker::hotspot::threads;
use dwell_wallclock::Fingerprint;

/// `_thread_blocked` (src/hotspot/share/utilities/globalDefinitions.hpp, the same since JDK 1.4).
const BLOCKED: u64 = 10;

/// The fingerprint of a `JavaThread*`, and the virtual thread that is mounted on it while it waits;
/// `None` if it cannot be read.
pub(super) fn of(looker: &Looker<'_>, thread: u64) -> Option<(Fingerprint, Option<u64>)> {
    if thread == 0 {
        return None;
    }
    let (live, layout) = (&looker.live, &looker.vm.layout);
    let at = threads::place(live, layout, thread).ok()?;
    let runs = at.state == layout.state_in_java && at.sp == 0;
    let words = [at.state, at.monitor_use, at.monitor, at.owner, at.sp, at.pc];
    // A blocked thread waits or is ready to run again. In other states a thread may also run. One
    // whose wait ends during a stop waits for the end of the stop, with the same words.
    let is_stop = || {
        let safepoints = looker.vm.safepoints.as_ref();
        safepoints.is_some_and(|it| it.state(live) != Ok(State::Running))
    };
    let may_run = !runs && (at.state != BLOCKED || is_stop());
    let fingerprint = Fingerprint::of(words, runs).that_may_run(may_run);
    if runs {
        return Some((fingerprint, None));
    }
    // At the next read, another virtual thread may be mounted, with the same stack depth.
    let mounted = looker.mounted(thread).ok()?;
    Some((fingerprint.with(mounted.unwrap_or(0)), mounted))
}

/// Prefetches the memory that [`of`] reads.
pub(super) fn fetch(layout: &Layout, thread: u64) {
    let offsets = [
        layout.thread_state,
        layout.thread_anchor,
        layout.thread_pending_monitor,
        layout.extra.cont_entry,
    ];
    for offset in offsets.into_iter().filter(|offset| present(*offset)) {
        dwell_signal::fetch_ahead(thread.wrapping_add(offset) as usize);
    }
}

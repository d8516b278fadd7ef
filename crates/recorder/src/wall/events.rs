//! Perf events cost time at each context switch. A limit bounds this cost over all threads. The
//! threads with the most switches lose their events first and use timers instead.

use super::Sampler;
use crate::options::EngineChoice;
use crate::runtime::Runtime;
use dwell_signal::{EngineKind, ThreadRecord};

/// Part of a processor that events may use at switches.
const PART: f64 = 0.003;
/// Cost of one switch with an event and its mapped page, in ns (`bench/switches`).
const SWITCH_NS: f64 = 1_500.0;
/// Above the limit, threads lose events until use falls to this part of it. If less than half of
/// the limit is used, threads get their events back up to this part.
const ROOM: f64 = 0.8;
const HALF: f64 = 0.5;
/// Maximum events removed or restored at a time. Each costs about 20 us, which an event of a thread
/// with seven switches a second costs in two seconds. All together take half a tick.
const CHANGES_MAX: usize = 512;
/// A thread whose account is older than this has not run since.
const ACCOUNT_NS: u64 = 20_000_000_000;

impl<R: Runtime> Sampler<'_, R> {
    /// Removes events from the threads with the most switches, or restores some.
    pub(super) fn check_events(&mut self, now_ns: u64) {
        let may_choose = matches!(
            self.setup.options.engine,
            EngineChoice::Auto | EngineChoice::Kernel
        );
        if !may_choose || self.setup.engine.kind() == EngineKind::Timer {
            return;
        }
        let limit = PART * 1e9 / SWITCH_NS;
        let (mut with, mut held) = (Vec::new(), Vec::new());
        let all = (0u32..).zip(self.known.iter().zip(&self.seen));
        for (index, (known, seen)) in all {
            let age_ns = now_ns.saturating_sub(seen.accounted_ns);
            if known.switches <= 0.0 || age_ns > ACCOUNT_NS || !self.members.contains(index) {
                continue;
            }
            let Some(record) = self.setup.engine.record(index) else {
                continue;
            };
            match (
                self.setup.engine.has_timer(record),
                self.setup.engine.is_held(record),
            ) {
                (false, _) => with.push((known.switches, record)),
                (true, true) => held.push((known.switches, record)),
                // The rule for single threads gave this one a timer.
                (true, false) => {}
            }
        }
        let mut used: f64 = with.iter().map(|(switches, _)| f64::from(*switches)).sum();
        if used > limit {
            sort(&mut with);
            for (switches, record) in with.into_iter().rev().take(CHANGES_MAX) {
                if used <= ROOM * limit {
                    break;
                }
                // If refused or locked, a later check tries again.
                if self.setup.engine.hold_timer(record) == Ok(true) {
                    used -= f64::from(switches);
                }
            }
        } else if used < HALF * limit {
            sort(&mut held);
            for (switches, record) in held.into_iter().take(CHANGES_MAX) {
                used += f64::from(switches);
                if used > ROOM * limit {
                    break;
                }
                let _ = self.setup.engine.release_timer(record);
            }
        }
    }
}

/// Sorts by switches per second, ascending.
fn sort(threads: &mut [(f32, &'static ThreadRecord)]) {
    threads.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
}

//! Perf events cost time at each switch between threads. Of all threads together that stays below
//! a limit: the threads that are switched most lose their events first, and have timers.

use super::Sampler;
use crate::options::EngineChoice;
use crate::runtime::Runtime;
use dwell_signal::{EngineKind, ThreadRecord};

/// Part of a processor that events may take at switches, ...
const PART: f64 = 0.003;
/// ... and what one switch costs with an event and its mapped page, in ns (`bench/switches`).
const SWITCH_NS: f64 = 1_500.0;
/// Threads that exceed the limit lose events until so much of it is used. Others get theirs back
/// up to there, if less than half of it is used.
const ROOM: f64 = 0.8;
const HALF: f64 = 0.5;
/// Events that are taken or given at a time, at most: each costs some 20 us.
const CHANGES_MAX: usize = 128;
/// An account that is older says that the thread has not run since.
const ACCOUNT_NS: u64 = 20_000_000_000;

impl<R: Runtime> Sampler<'_, R> {
    /// Takes events from the threads that are switched most, or gives some back.
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
                // By the rule for one thread.
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
                // Refused or locked: another time.
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

/// By how often they are switched.
fn sort(threads: &mut [(f32, &'static ThreadRecord)]) {
    threads.sort_by(|(a, _), (b, _)| a.total_cmp(b));
}

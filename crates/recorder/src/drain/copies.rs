//! When the kernel may copy stacks, if that was requested, and how often the drainer drains then.

use super::pace::{self, Pace};
use crate::context::foreign;
use crate::options::EngineChoice;
use crate::runtime::Runtime;
use crate::runtime::setup::Setup;
use dwell_walker::{Failure, Outcome, Walk};
use std::time::Duration;

/// Bytes of stack that the kernel copies: it cannot copy more than about 64 KiB.
const STACK_BYTES: u32 = 60 << 10;
/// Samples of a thread that the kernel keeps before they are drained: there is room for 30, and
/// periods are from half to one and a half intervals.
const KEPT_FOR_EACH: u32 = 16;
/// The drainer drains no more often, however short intervals are.
const LOOK_MIN: Duration = Duration::from_millis(1);

fn is_asked<R: Runtime>(setup: &Setup<R>) -> bool {
    setup.options.engine == EngineChoice::Kernel
}

/// How often the drainer drains.
#[must_use]
pub fn pace<R: Runtime>(setup: &Setup<R>, processors: usize) -> Pace {
    let interval = setup.options.cpu_interval;
    let pace = Pace::new(interval, R::KEEPS_SAMPLES, processors);
    match is_asked(setup) {
        true => pace.within(interval, KEPT_FOR_EACH),
        false => pace,
    }
}

/// Lets the kernel copy once the drainer has read its files and written something (`is_settled`):
/// it keeps up from then on. Lets threads be signalled again if other libraries publish contexts,
/// which can be read only on the thread itself.
pub fn update<R: Runtime>(setup: &Setup<R>, is_settled: bool) {
    let bytes = bytes(is_settled, foreign::is_known());
    if is_asked(setup) && setup.engine.kernel_copies() != bytes {
        setup.engine.let_kernel_copy(bytes);
    }
}

/// Like `wait`, but short enough to drain in time the samples that the kernel keeps for threads
/// that no signal reaches.
pub fn in_time<R: Runtime>(setup: &Setup<R>, wait: Duration) -> Duration {
    let wait = pace::in_time(setup.engine.defers(), wait);
    let (rings, _) = setup.engine.rings();
    match rings {
        0 => wait,
        _ => {
            let full = setup.options.cpu_interval.saturating_mul(KEPT_FOR_EACH);
            wait.min(full.max(LOOK_MIN))
        }
    }
}

/// Whether a walk has needed, or lacks, data that the kernel does not copy: the anchor, behind
/// native code without rules, or the entry of a continuation.
pub fn needs_more(walk: &Walk) -> bool {
    let lacks = matches!(
        walk.outcome,
        Outcome::Failed(Failure::NoNativeRule | Failure::BadContinuation)
    );
    walk.gaps > 0 || lacks
}

fn bytes(is_settled: bool, others_publish: bool) -> u32 {
    match is_settled && !others_publish {
        true => STACK_BYTES,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walk_that_needs_an_anchor_requests_signals() {
        let of = |outcome, gaps| {
            needs_more(&Walk {
                len: 3,
                outcome,
                gaps,
                flaw: None,
            })
        };
        assert!(!of(Outcome::Complete, 0));
        assert!(of(Outcome::Complete, 1), "it has bridged native code");
        assert!(of(Outcome::Failed(Failure::NoNativeRule), 0));
        assert!(of(Outcome::Failed(Failure::BadContinuation), 0));
        assert!(!of(Outcome::Failed(Failure::StaleMethod), 0), "too late");
    }

    #[test]
    fn kernel_copies_once_settled_without_other_contexts() {
        assert_eq!(bytes(false, false), 0, "the drainer would be late");
        assert_eq!(bytes(true, false), STACK_BYTES);
        assert_eq!(bytes(true, true), 0, "contexts are on the thread");
    }
}

//! Times in which the whole process was stopped: threads went on after none of their waits then.
//! Pure.

use crate::info::Gap;
use crate::sample::{CauseId, Look};

/// The cause of such gaps, and of the wall time in them.
pub const CAUSE: &str = "stopped";

/// The times, in nanoseconds since the Unix epoch: from, to; in order.
#[derive(Debug, Default)]
pub struct Stopped(Vec<(u64, u64)>);

impl Stopped {
    /// Those among a recording's gaps.
    pub fn of(gaps: &[Gap]) -> Stopped {
        let stopped = gaps.iter().filter(|gap| gap.cause == CAUSE);
        let time = |gap: &Gap| (gap.time_ns, gap.time_ns.saturating_add(gap.duration_ns));
        let mut times: Vec<(u64, u64)> = stopped.map(time).collect();
        times.sort_unstable();
        Stopped(times)
    }

    /// Whether the process was never stopped.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The looks divided at these times; in them the cause is `stopped`. Their weight lies evenly
    /// over their duration.
    pub fn split(&self, look: &Look, stopped: Option<CauseId>) -> Vec<Look> {
        let end_ns = look.time_ns.saturating_add(look.duration_ns);
        let after = self.0.partition_point(|(_, to_ns)| *to_ns <= look.time_ns);
        let met = self.0.get(after..).unwrap_or(&[]).iter();
        let met = met.take_while(|(from_ns, _)| *from_ns < end_ns);
        let (mut pieces, mut rest) = (Vec::new(), *look);
        for (from_ns, to_ns) in met {
            let (before, later) = cut(&rest, *from_ns);
            pieces.extend(before);
            let Some(later) = later else { continue };
            let (within, later) = cut(&later, *to_ns);
            pieces.extend(within.map(|it| Look {
                cause: stopped.unwrap_or(it.cause),
                ..it
            }));
            match later {
                Some(later) => rest = later,
                None => return pieces,
            }
        }
        pieces.push(rest);
        pieces
    }
}

/// The looks before a moment and from it on.
fn cut(look: &Look, at_ns: u64) -> (Option<Look>, Option<Look>) {
    let before_ns = at_ns.saturating_sub(look.time_ns);
    if before_ns == 0 {
        return (None, Some(*look));
    }
    if before_ns >= look.duration_ns {
        return (Some(*look), None);
    }
    let part = |of: u64| {
        let product = u128::from(of) * u128::from(before_ns);
        (product / u128::from(look.duration_ns)) as u64
    };
    // At least one look, where there is some weight.
    let count = part(look.count);
    let first = Look {
        duration_ns: before_ns,
        weight_ns: part(look.weight_ns),
        count: count.max(1),
        choices: part(look.choices),
        ..*look
    };
    let second = Look {
        time_ns: at_ns,
        duration_ns: look.duration_ns - before_ns,
        weight_ns: look.weight_ns - first.weight_ns,
        count: (look.count - count).max(1),
        choices: look.choices - first.choices,
        ..*look
    };
    (Some(first), Some(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(time_ns: u64, duration_ns: u64, cause: &str) -> Gap {
        Gap {
            time_ns,
            duration_ns,
            cause: cause.to_owned(),
            samples: 0,
            weight_ns: 0,
        }
    }

    fn split(gaps: &[Gap], time_ns: u64, duration_ns: u64) -> Vec<(u64, u64, u64, u64, CauseId)> {
        let look = Look {
            time_ns,
            duration_ns,
            thread: 0,
            node: 0,
            cause: 1,
            weight_ns: 1000,
            count: 10,
            choices: 0,
            context: None,
            detail: None,
            owner: None,
            owner_node: None,
        };
        let pieces = Stopped::of(gaps).split(&look, Some(2));
        assert_eq!(pieces.iter().map(|it| it.weight_ns).sum::<u64>(), 1000);
        let piece = |it: &Look| (it.time_ns, it.duration_ns, it.weight_ns, it.count, it.cause);
        pieces.iter().map(piece).collect()
    }

    #[test]
    fn waits_in_a_stop_have_it_as_their_cause() {
        let gaps = [gap(600, 100, "disk_full"), gap(200, 400, CAUSE)];
        let whole = |time, cause| vec![(time, 100, 1000, 10, cause)];
        assert_eq!(split(&gaps, 100, 100), whole(100, 1), "before");
        assert_eq!(split(&gaps, 600, 100), whole(600, 1), "after");
        assert_eq!(split(&gaps, 300, 100), whole(300, 2), "within");
        assert_eq!(split(&[], 300, 100), whole(300, 1));
        assert_eq!(split(&gaps, 300, 0), [(300, 0, 1000, 10, 2)], "one look");
        let parts = split(&gaps, 100, 1000);
        let expected = [
            (100, 100, 100, 1, 1),
            (200, 400, 400, 4, 2),
            (600, 500, 500, 5, 1),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn waits_over_several_stops_are_divided_at_each() {
        let gaps = [gap(200, 100, CAUSE), gap(400, 100, CAUSE)];
        let causes = |time, duration| -> Vec<(u64, CauseId)> {
            let parts = split(&gaps, time, duration);
            parts.iter().map(|it| (it.1, it.4)).collect()
        };
        assert_eq!(causes(250, 300), [(50, 2), (100, 1), (100, 2), (50, 1)]);
        assert_eq!(causes(250, 250), [(50, 2), (100, 1), (100, 2)]);
    }
}

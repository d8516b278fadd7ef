//! Times in which the whole process was stopped: threads went on after none of their waits then.
//! Pure.
//!
//! A thread that waited before and afterwards has one wait over such a time. A thread that ran has
//! nothing there, because nothing was sampled. But it lived, and it stood still with all others.

use crate::builder::Builder;
use crate::info::Gap;
use crate::sample::{CauseId, ContextId, Look, ThreadId};
use crate::tree::NodeId;
use std::collections::BTreeMap;

/// The cause of such gaps, and of the wall time in them.
pub const CAUSE: &str = "stopped";

/// [`Look::choices`] of a time that is not left to chance.
const CERTAIN: u64 = 1_000_000_000;

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

    /// The cause of wall time in them; `None` if the process was never stopped.
    pub fn cause(&self, builder: &mut Builder) -> Option<CauseId> {
        (!self.0.is_empty()).then(|| builder.cause(CAUSE))
    }

    /// Adds the parts of these times that the looks of platform threads lack, at the place where
    /// each thread was seen last. Of virtual threads it is not known whether they lived.
    pub fn complete(&self, builder: &mut Builder) {
        let Some(cause) = self.cause(builder) else {
            return;
        };
        let mut missing = Vec::new();
        for (thread, life) in self.lives(builder, cause) {
            let mut last = None;
            for (place, (from_ns, to_ns)) in self.0.iter().enumerate() {
                last = life.last_before.get(&place).copied().or(last);
                let covered_ns = life.covered_ns.get(&place).copied().unwrap_or(0);
                let weight_ns = (to_ns - from_ns).saturating_sub(covered_ns);
                let is_alive = life.from_ns <= *from_ns && life.to_ns >= *to_ns;
                let Some(last) = last.filter(|_| is_alive && weight_ns > 0) else {
                    continue;
                };
                missing.push(Look {
                    time_ns: *from_ns,
                    duration_ns: to_ns - from_ns,
                    thread,
                    node: last.node,
                    cause,
                    weight_ns,
                    count: 1,
                    choices: CERTAIN,
                    context: last.context,
                    ..Look::default()
                });
            }
        }
        missing.into_iter().for_each(|look| builder.look(look));
    }

    /// The lives of the platform threads whose wall time was recorded.
    fn lives(&self, builder: &Builder, cause: CauseId) -> BTreeMap<ThreadId, Life> {
        let mut lives: BTreeMap<ThreadId, Life> = BTreeMap::new();
        let carriers = builder.carriers();
        let is_platform = |thread| !builder.is_virtual(thread) && !carriers.contains(&thread);
        for look in builder.looks().filter(|it| is_platform(it.thread)) {
            let life = lives.entry(look.thread).or_default();
            let before = self
                .0
                .partition_point(|(from_ns, _)| *from_ns <= look.time_ns);
            life.see(look.time_ns, before, look.node, look.context);
            life.to_ns = life
                .to_ns
                .max(look.time_ns.saturating_add(look.duration_ns));
            if look.cause == cause
                && let Some(place) = before.checked_sub(1)
            {
                *life.covered_ns.entry(place).or_default() += look.weight_ns;
            }
        }
        if lives.is_empty() {
            return lives;
        }
        for sample in builder.samples() {
            // Other threads than Java's have no wall time.
            if is_platform(sample.thread) && builder.is_java(sample.thread) {
                let life = lives.entry(sample.thread).or_default();
                let before = (self.0).partition_point(|(from_ns, _)| *from_ns <= sample.time_ns);
                life.see(sample.time_ns, before, sample.node, sample.context);
            }
        }
        lives
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

/// The place and the request in which a thread was seen.
#[derive(Clone, Copy, Debug)]
struct Seen {
    time_ns: u64,
    node: NodeId,
    context: Option<ContextId>,
}

/// A thread's life around stopped times.
#[derive(Debug)]
struct Life {
    /// It was seen first and last then.
    from_ns: u64,
    to_ns: u64,
    /// The last time before a stop, by the number of the stop.
    last_before: BTreeMap<usize, Seen>,
    /// The part of a stop that it has already.
    covered_ns: BTreeMap<usize, u64>,
}

impl Default for Life {
    fn default() -> Life {
        Life {
            from_ns: u64::MAX,
            to_ns: 0,
            last_before: BTreeMap::new(),
            covered_ns: BTreeMap::new(),
        }
    }
}

impl Life {
    /// It was seen at a time, for which the next stop is the one with the number `before`.
    fn see(&mut self, time_ns: u64, before: usize, node: NodeId, context: Option<ContextId>) {
        self.from_ns = self.from_ns.min(time_ns);
        self.to_ns = self.to_ns.max(time_ns);
        let seen = Seen {
            time_ns,
            node,
            context,
        };
        let last = self.last_before.entry(before).or_insert(seen);
        if last.time_ns <= time_ns {
            *last = seen;
        }
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
    use crate::sample::Sample;
    use crate::thread_time::ThreadTime;

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

    /// Wall time by thread and cause of the stop from 200 to 600, and its place.
    fn completed(fill: impl FnOnce(&mut Builder)) -> Vec<(ThreadId, NodeId, u64)> {
        let mut builder = Builder::default();
        for (tid, name) in [(1, "ran"), (2, "waited"), (3, "on both")] {
            builder.thread(name, tid, tid, false);
        }
        builder.thread("native", 4, 0, false);
        builder.thread("virtual", 5, 5, true);
        fill(&mut builder);
        let stopped = Stopped::of(&[gap(200, 400, CAUSE)]);
        let cause = stopped.cause(&mut builder).unwrap();
        stopped.complete(&mut builder);
        let of = |it: &Look| (it.thread, it.node, it.weight_ns);
        let looks = builder.looks().filter(|it| it.cause == cause);
        looks.map(of).collect()
    }

    fn sample(time_ns: u64, thread: ThreadId, node: NodeId) -> Sample {
        Sample {
            time_ns,
            thread,
            node,
            weight: 10,
            count: 1,
            failure: None,
            context: None,
        }
    }

    fn waited(builder: &mut Builder, thread: ThreadId, from_ns: u64, to_ns: u64, cause: &str) {
        let cause = builder.cause(cause);
        builder.look(Look {
            time_ns: from_ns,
            duration_ns: to_ns - from_ns,
            weight_ns: to_ns - from_ns,
            thread,
            cause,
            ..Look::default()
        });
    }

    #[test]
    fn running_threads_are_stopped_as_long_as_waiting_ones() {
        let found = completed(|builder| {
            waited(builder, 1, 100, 200, "park");
            waited(builder, 1, 200, 600, CAUSE);
            waited(builder, 1, 600, 900, "park");
            for (time, node) in [(150, 7), (190, 8), (620, 9)] {
                builder.sample(sample(time, 0, node));
            }
            // It waited when the stop began, and its next look is of another wait.
            waited(builder, 2, 100, 200, "park");
            waited(builder, 2, 200, 250, CAUSE);
            waited(builder, 2, 700, 800, "park");
        });
        assert_eq!(found, [(1, 0, 400), (2, 0, 50), (0, 8, 400), (2, 0, 350)]);
    }

    #[test]
    fn threads_that_may_not_have_lived_are_not_stopped() {
        let found = completed(|builder| {
            waited(builder, 1, 100, 200, "park");
            builder.sample(sample(620, 0, 7));
            builder.sample(sample(100, 2, 7));
            for time in [100, 700] {
                builder.sample(sample(time, 3, 7));
                waited(builder, 4, time, time + 10, "park");
            }
        });
        assert_eq!(found, []);
    }

    #[test]
    fn recordings_without_wall_time_get_none() {
        let found = completed(|builder| {
            for time in [100, 700] {
                builder.sample(sample(time, 0, 7));
            }
        });
        assert_eq!(found, []);
    }

    #[test]
    fn carrier_is_not_stopped_with_its_virtual_thread() {
        let found = completed(|builder| {
            waited(builder, 1, 100, 200, "park");
            builder.thread_times.push(ThreadTime {
                thread: 0,
                is_carrier: true,
                ..ThreadTime::default()
            });
            for time in [100, 700] {
                builder.sample(sample(time, 0, 7));
            }
        });
        assert_eq!(found, []);
    }

    #[test]
    fn thread_is_stopped_at_its_last_place_before_each_stop() {
        let mut builder = Builder::default();
        builder.thread("ran", 1, 1, false);
        let gaps = [
            gap(200, 100, CAUSE),
            gap(400, 50, CAUSE),
            gap(500, 60, CAUSE),
        ];
        waited(&mut builder, 0, 0, 10, "park");
        for (time, node) in [(150, 3), (460, 4), (700, 5)] {
            builder.sample(sample(time, 0, node));
        }
        Stopped::of(&gaps).complete(&mut builder);
        let found = builder.looks().skip(1);
        let found: Vec<_> = found
            .map(|it| (it.time_ns, it.node, it.weight_ns))
            .collect();
        assert_eq!(found, [(200, 3, 100), (400, 3, 50), (500, 4, 60)]);
    }
}

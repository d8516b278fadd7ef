//! Reads safepoints, and the threads that others waited for.

use crate::builder::Builder;
use crate::names::NameId;
use crate::stops::{Late, Safepoint};
use crate::stretches::Stretch;
use crate::tree::NodeId;
use dwell_jfr::kinds::told;
use dwell_jfr::reader::Recording;
use std::collections::BTreeMap;

dwell_jfr::told! {
    /// The way of all threads to a safepoint, of the JDK's recorder.
    pub(super) struct Begun = "jdk.SafepointBegin" {
        /// How long it took.
        duration_ns: TickSpan "duration";
        /// The number of the safepoint.
        safepoint_id: Count "safepointId";
        /// Java threads.
        threads: Count "totalThreadCount";
    }

    /// An operation of the JVM.
    pub(super) struct Operation = "jdk.ExecuteVMOperation" {
        /// How long it lasted.
        duration_ns: TickSpan "duration";
        /// Its name.
        operation: Text "operation";
        /// The safepoint in which it was; 0: in none.
        safepoint_id: Count "safepointId";
    }
}

/// The origin of sums, in which the operations of single safepoints are unknown.
const COUNTERS: &str = "counters";
/// Longest time between two flushes, nearly.
const FLUSH_NS: u64 = 2_000_000_000;
/// The operation of a safepoint that only the collector's own pause shows.
const GC_PAUSE: &str = "[GC pause]";

/// Reads both kinds of events; `node_of` gives the place of a stack of the recording.
pub(super) fn add(
    builder: &mut Builder,
    recording: &Recording,
    mut node_of: impl FnMut(&mut Builder, u32) -> Option<NodeId>,
) {
    for event in recording.told::<told::Safepoint>() {
        let operation = builder.name(&event.operation);
        builder.safepoints.push(Safepoint {
            time_ns: event.time_ns,
            id: event.safepoint_id,
            operation,
            reaching_ns: event.reaching_ns,
            operation_ns: event.operation_ns,
            threads: event.threads,
            running: event.running,
            count: event.count.max(1),
            // One that was seen, but only until it was reached, has a name.
            is_known: &*event.source != COUNTERS || event.count == 1 && !event.operation.is_empty(),
        });
    }
    for event in recording.told::<told::SafepointLate>() {
        let Some(thread) = event.thread else {
            continue;
        };
        let node = event.stack.and_then(|stack| node_of(builder, stack));
        let operation = builder.name(&event.operation);
        let state = builder.name(&event.state);
        builder.late.push(Late {
            time_ns: event.time_ns,
            duration_ns: event.duration_ns,
            safepoint: event.safepoint_id,
            operation,
            thread,
            node,
            state,
            held_ns: event.held_ns,
            is_last: event.is_last > 0,
        });
    }
    add_of_the_jdk(builder, recording);
    builder
        .safepoints
        .sort_by_key(|stop| (stop.time_ns, stop.id));
    let unnamed = builder.name(GC_PAUSE);
    let pauses = builder.stretches.of::<told::GcPause>().to_vec();
    place_pauses(&mut builder.safepoints, &pauses, unnamed);
}

/// Gives those safepoints a time that were only counted, but in which the collector reported a
/// pause. Each pause is in a safepoint: if no seen one has it, a counted one does. That one is
/// reported with the next safepoint that was seen, or at the next flush.
fn place_pauses(safepoints: &mut Vec<Safepoint>, pauses: &[Stretch], operation: NameId) {
    let seen = Seen::of(safepoints);
    let mut missed: Vec<&Stretch> = pauses.iter().filter(|it| !seen.may_have(it)).collect();
    missed.sort_unstable_by_key(|pause| pause.end_ns());
    let (mut placed, mut at) = (Vec::new(), 0);
    for pause in missed {
        let end_ns = |stop: &Safepoint| stop.time_ns.saturating_add(stop.duration_ns());
        let is_over = |stop: &Safepoint| stop.count == 0 || end_ns(stop) < pause.end_ns();
        while safepoints.get(at).is_some_and(is_over) {
            at += 1;
        }
        let next = safepoints.get_mut(at);
        let Some(next) = next.filter(|it| !it.is_known && it.operation_ns >= pause.duration_ns)
        else {
            continue;
        };
        let one = match next.count {
            1 => *next,
            _ => Safepoint {
                reaching_ns: 0,
                operation_ns: pause.duration_ns,
                count: 1,
                ..*next
            },
        };
        next.count -= 1;
        next.reaching_ns = next.reaching_ns.saturating_sub(one.reaching_ns);
        next.operation_ns = next.operation_ns.saturating_sub(one.operation_ns);
        placed.push(Safepoint {
            time_ns: pause.time_ns.saturating_sub(one.reaching_ns),
            operation,
            is_known: true,
            ..one
        });
    }
    safepoints.retain(|stop| stop.count > 0);
    safepoints.append(&mut placed);
    safepoints.sort_by_key(|stop| (stop.time_ns, stop.id));
}

/// The times of safepoints that were seen.
struct Seen {
    /// From, to.
    times: Vec<(u64, u64)>,
    longest_ns: u64,
}

impl Seen {
    fn of(safepoints: &[Safepoint]) -> Seen {
        // Short ones between two flushes may be one event, with the time of the first.
        let of_sum = |stop: &Safepoint| (stop.time_ns, stop.time_ns.saturating_add(FLUSH_NS));
        let seen = safepoints.iter().filter(|stop| stop.is_known);
        let mut times: Vec<(u64, u64)> = seen
            .map(|stop| stop.span().unwrap_or_else(|| of_sum(stop)))
            .collect();
        times.sort_unstable();
        let longest_ns = times.iter().map(|(from, to)| to - from).max();
        Seen {
            longest_ns: longest_ns.unwrap_or(0),
            times,
        }
    }

    /// Whether one of them overlaps the pause.
    fn may_have(&self, pause: &Stretch) -> bool {
        let before = (self.times).partition_point(|(from, _)| *from < pause.end_ns());
        let earlier = self.times.get(..before).unwrap_or(&[]).iter().rev();
        let mut near =
            earlier.take_while(|(from, _)| from.saturating_add(self.longest_ns) > pause.time_ns);
        near.any(|(_, to)| *to > pause.time_ns)
    }
}

/// Adds the safepoints of the JDK's recorder: the way there is one event, each operation another.
fn add_of_the_jdk(builder: &mut Builder, recording: &Recording) {
    let mut all: BTreeMap<u64, Safepoint> = BTreeMap::new();
    let unnamed = builder.name("");
    let stop = |time_ns: u64, id: u64| Safepoint {
        time_ns,
        id,
        operation: unnamed,
        reaching_ns: 0,
        operation_ns: 0,
        threads: 0,
        running: 0,
        count: 1,
        is_known: true,
    };
    for event in recording.told::<Begun>() {
        let id = event.safepoint_id;
        all.insert(
            id,
            Safepoint {
                reaching_ns: event.duration_ns,
                threads: event.threads,
                ..stop(event.time_ns, id)
            },
        );
    }
    for event in recording.told::<Operation>() {
        let id = event.safepoint_id;
        if id == 0 {
            continue;
        }
        let safepoint = all.entry(id).or_insert_with(|| stop(event.time_ns, id));
        safepoint.operation = builder.name(&event.operation);
        safepoint.operation_ns = safepoint.operation_ns.saturating_add(event.duration_ns);
    }
    builder.safepoints.extend(all.into_values());
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const UNKNOWN: NameId = 0;
    const PAUSE: NameId = 7;

    fn stop(at_ms: u64, reaching_ms: u64, operation_ms: u64, count: u64) -> Safepoint {
        Safepoint {
            time_ns: at_ms * MS,
            id: at_ms,
            operation: UNKNOWN,
            reaching_ns: reaching_ms * MS,
            operation_ns: operation_ms * MS,
            threads: 0,
            running: 0,
            count,
            is_known: false,
        }
    }

    fn seen(at_ms: u64, operation_ms: u64) -> Safepoint {
        Safepoint {
            is_known: true,
            operation: 3,
            ..stop(at_ms, 0, operation_ms, 1)
        }
    }

    fn placed(mut safepoints: Vec<Safepoint>, pauses: &[(u64, u64)]) -> Vec<Safepoint> {
        let pauses = pauses.iter().map(|(at, ms)| Stretch::new(at * MS, ms * MS));
        place_pauses(&mut safepoints, &pauses.collect::<Vec<_>>(), PAUSE);
        safepoints
    }

    #[test]
    fn missed_pause_takes_the_time_of_the_counted_safepoint() {
        // Counted safepoints have the time of the next one that was seen.
        let all = placed(vec![stop(50, 1, 5, 1), seen(50, 3)], &[(20, 4)]);
        let pause = Safepoint {
            time_ns: 19 * MS,
            operation: PAUSE,
            is_known: true,
            ..stop(50, 1, 5, 1)
        };
        assert_eq!(all, [pause, seen(50, 3)]);
    }

    #[test]
    fn missed_pauses_are_taken_from_sums_and_all_sums_stay() {
        let before = vec![seen(10, 2), stop(50, 1, 9, 3), seen(50, 3)];
        let all = placed(before.clone(), &[(20, 4), (30, 2)]);
        let sum = |of: fn(&Safepoint) -> u64, all: &[Safepoint]| all.iter().map(of).sum::<u64>();
        for of in [|it: &Safepoint| it.count, Safepoint::duration_ns] {
            assert_eq!(sum(of, &all), sum(of, &before));
        }
        let pauses: Vec<_> = all.iter().filter(|it| it.operation == PAUSE).collect();
        let spans: Vec<_> = pauses.iter().filter_map(|it| it.span()).collect();
        assert_eq!(spans, [(20 * MS, 24 * MS), (30 * MS, 32 * MS)]);
        let left: Vec<_> = all.iter().filter(|it| !it.is_known).collect();
        assert_eq!((left.len(), left[0].count), (1, 1));
    }

    #[test]
    fn pauses_that_may_have_been_seen_change_nothing() {
        let sum = Safepoint {
            is_known: true,
            ..stop(500, 0, 9, 40)
        };
        for (all, pause) in [
            // In a safepoint that was seen, or in a sum of such.
            (vec![seen(10, 5), stop(50, 1, 9, 3), seen(50, 3)], (11, 3)),
            (vec![sum, stop(2000, 1, 9, 3), seen(2000, 3)], (900, 1)),
            // Longer than what was counted, or not before the next one that was seen.
            (vec![stop(50, 1, 3, 3), seen(50, 3)], (20, 4)),
            (vec![seen(40, 1), stop(50, 1, 9, 3), seen(50, 3)], (20, 4)),
            (vec![], (20, 4)),
        ] {
            assert_eq!(placed(all.clone(), &[pause]), all);
        }
    }
}

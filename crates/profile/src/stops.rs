//! Safepoints of a recording, and the threads that others waited for.

use crate::builder::Builder;
use crate::names::NameId;
use crate::profile::Profile;
use crate::sample::ThreadId;
use crate::tree::NodeId;
use dwell_jfr::reader::{GenericEvent, Recording, Value};

/// A stop of all threads by the JVM, or the sum of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Safepoint {
    /// When it was asked for, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Its number.
    pub id: u64,
    /// What the JVM stopped for; an empty name if that is not known.
    pub operation: NameId,
    /// Until all threads had stopped.
    pub reaching_ns: u64,
    /// From then until they went on.
    pub operation_ns: u64,
    /// Java threads.
    pub threads: u64,
    /// Of these, threads that ran when it was asked for.
    pub running: u64,
    /// How many it stands for; of more than one, times are sums.
    pub count: u64,
    /// Whether it was seen, not only counted.
    pub is_known: bool,
}

impl Safepoint {
    /// From when it was asked for until the threads went on.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.reaching_ns.saturating_add(self.operation_ns)
    }
}

/// From when on threads are late, if the recording was not told anything else.
const LATE_NS: u64 = 1_000_000;

impl Profile {
    /// How long others had to wait before threads were looked for that were late, in nanoseconds:
    /// the recording's option `late`.
    #[must_use]
    pub fn late_after_ns(&self) -> u64 {
        let mut options = self.info().options.split(',');
        let told = options.find_map(|option| nanoseconds(option.strip_prefix("late=")?));
        told.unwrap_or(LATE_NS)
    }
}

/// A time with its unit, as options have it.
fn nanoseconds(text: &str) -> Option<u64> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let number = |(unit, scale): (&str, f64)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some((number * scale) as u64)
    };
    units.into_iter().find_map(number)
}

/// A thread that others waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// When the safepoint was asked for, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// How long after that the thread stopped.
    pub duration_ns: u64,
    /// The safepoint's number.
    pub safepoint: u64,
    /// What the JVM stopped for.
    pub operation: NameId,
    /// The thread.
    pub thread: ThreadId,
    /// Where it was; `None` if that was not seen.
    pub node: Option<NodeId>,
    /// What it did.
    pub state: NameId,
    /// Its part of the time to the safepoint.
    pub held_ns: u64,
    /// Whether it was the last one.
    pub is_last: bool,
}

/// Where sums come from: what single safepoints were for is not known then.
const COUNTERS: &str = "counters";

fn count(event: &GenericEvent, field: &str) -> u64 {
    let number = event.int(field).unwrap_or(0);
    u64::try_from(number).unwrap_or(0)
}

/// Reads both kinds of events; `node_of` gives the place of a stack of the recording.
pub(crate) fn add(
    builder: &mut Builder,
    recording: &Recording,
    mut node_of: impl FnMut(&mut Builder, u32) -> Option<NodeId>,
) {
    for event in recording.events_named("dwell.Safepoint") {
        let operation = builder.name(event.text("operation").unwrap_or(""));
        builder.safepoints.push(Safepoint {
            time_ns: event.time_ns,
            id: count(event, "safepointId"),
            operation,
            reaching_ns: count(event, "timeToSafepoint"),
            operation_ns: count(event, "operationTime"),
            threads: count(event, "threads"),
            running: count(event, "running"),
            count: count(event, "count").max(1),
            is_known: event.text("source") != Some(COUNTERS),
        });
    }
    for event in recording.events_named("dwell.SafepointLate") {
        let Some(Value::Thread(thread)) = event.get("eventThread") else {
            continue;
        };
        let node = match event.get("stackTrace") {
            Some(Value::Stack(stack)) => node_of(builder, *stack),
            _ => None,
        };
        let operation = builder.name(event.text("operation").unwrap_or(""));
        let state = builder.name(event.text("state").unwrap_or(""));
        builder.late.push(Late {
            time_ns: event.time_ns,
            duration_ns: count(event, "duration"),
            safepoint: count(event, "safepointId"),
            operation,
            thread: *thread,
            node,
            state,
            held_ns: count(event, "held"),
            is_last: count(event, "last") > 0,
        });
    }
    builder
        .safepoints
        .sort_by_key(|stop| (stop.time_ns, stop.id));
}

impl Profile {
    /// Safepoints, in the order of time.
    #[must_use]
    pub fn safepoints(&self) -> &[Safepoint] {
        &self.safepoints
    }

    /// Threads that others waited for at safepoints.
    #[must_use]
    pub fn late(&self) -> &[Late] {
        &self.late
    }
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;
    use crate::builder::Builder;

    #[test]
    fn threads_are_late_after_what_the_recording_was_told() {
        let after = |options: &str| {
            let mut builder = Builder::default();
            builder.info.options = options.to_owned();
            builder.finish().late_after_ns()
        };
        assert_eq!(after("start,cpu=10ms"), 1_000_000);
        assert_eq!(after("start,late=500us,cpu=10ms"), 500_000);
        assert_eq!(after("start,late=x,cpu=10ms"), 1_000_000);
        let times = ["7ns", "0.2ms", "2s", "2", "ms", ""].map(nanoseconds);
        assert_eq!(
            times,
            [
                Some(7),
                Some(200_000),
                Some(2_000_000_000),
                None,
                None,
                None
            ]
        );
    }
}

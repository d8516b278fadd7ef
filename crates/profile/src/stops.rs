//! Safepoints of a recording, and the threads that others waited for.

use crate::names::NameId;
use crate::sample::ThreadId;
use crate::stretches::Stretches;
use crate::tree::NodeId;

/// A stop of all threads by the JVM, or the sum of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Safepoint {
    /// When it was asked for, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Its number.
    pub id: u64,
    /// The operation of the JVM; an empty name if unknown.
    pub operation: NameId,
    /// Until all threads had stopped.
    pub reaching_ns: u64,
    /// From then until they went on.
    pub operation_ns: u64,
    /// Java threads.
    pub threads: u64,
    /// Threads among them that ran when the safepoint was requested.
    pub running: u64,
    /// How many it stands for; of more than one, times are sums.
    pub count: u64,
    /// Whether its time is known. Of one that was only counted it is not.
    pub is_known: bool,
}

impl Safepoint {
    /// From when it was asked for until the threads went on.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.reaching_ns.saturating_add(self.operation_ns)
    }

    /// When it was asked for and when the threads went on; `None` if it was only counted.
    #[must_use]
    pub fn span(&self) -> Option<(u64, u64)> {
        let is_one = self.is_known && self.count <= 1;
        is_one.then(|| {
            (
                self.time_ns,
                self.time_ns.saturating_add(self.duration_ns()),
            )
        })
    }
}

/// The times in which all threads were stopped, in order, with overlaps merged.
pub(crate) fn standing(safepoints: &[Safepoint], stretches: &Stretches) -> Vec<(u64, u64)> {
    let single = safepoints.iter().filter_map(Safepoint::span);
    let others = stretches.standing().map(|it| (it.time_ns, it.end_ns()));
    let mut all: Vec<(u64, u64)> = others.chain(single).collect();
    all.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(all.len());
    for (from, to) in all {
        match merged.last_mut().filter(|last| last.1 >= from) {
            Some(last) => last.1 = last.1.max(to),
            None => merged.push((from, to)),
        }
    }
    merged
}

/// The default threshold for late threads.
const LATE_NS: u64 = 1_000_000;

/// How long others have to wait before threads are looked for that are late, by a recording's
/// options.
pub(crate) fn late_after_ns(options: &str) -> u64 {
    let mut options = options.split(',');
    let told = options.find_map(|option| nanoseconds(option.strip_prefix("late=")?));
    told.unwrap_or(LATE_NS)
}

/// A time with its unit, as options have it.
pub(crate) fn nanoseconds(text: &str) -> Option<u64> {
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
    /// The operation of the JVM.
    pub operation: NameId,
    /// The thread.
    pub thread: ThreadId,
    /// Where it was; `None` if that was not seen.
    pub node: Option<NodeId>,
    /// Its state.
    pub state: NameId,
    /// Its part of the time to the safepoint.
    pub held_ns: u64,
    /// Whether it was the last one.
    pub is_last: bool,
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;
    use crate::builder::Builder;

    #[test]
    fn late_threshold_comes_from_the_recording() {
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

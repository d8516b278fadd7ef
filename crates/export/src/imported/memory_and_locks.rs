//! Objects and waits for locks in files of other tools: a sum with a number for each stack.
//!
//! The model has single events, so a sum becomes as many equal ones as the tool has sampled. Sums
//! of bytes, times, objects and waits stay those of the file.

use dwell_profile::{Allocation, FrameKind, LiveObject, LiveSampling, MonitorWait, NameId, NodeId};

use super::sums_and_threads::{Facts, Model, nanoseconds};
use super::{MARKS, dotted};

/// Names of types in the files of several tools: bytes that were allocated, bytes in use, and time
/// in waits for locks; and of the numbers that belong to them.
const ALLOCATED: [&str; 6] = [
    "alloc_space",
    "alloc-space",
    "alloc_size",
    "alloc-size",
    "allocations",
    "alloc",
];
const ALLOCATED_NUMBER: [&str; 2] = ["alloc_objects", "alloc-objects"];
const LIVE: [&str; 5] = [
    "inuse_space",
    "inuse-space",
    "heap-live-size",
    "space",
    "live",
];
const LIVE_NUMBER: [&str; 3] = ["inuse_objects", "inuse-objects", "objects"];
const LOCKED: [&str; 4] = ["delay", "lock-time", "lock_time", "lock"];
const LOCKED_NUMBER: [&str; 1] = ["contentions"];
/// async-profiler's names: its innermost frames are classes.
const OF_CLASSES: [&str; 3] = ["alloc", "live", "lock"];
/// The most events of one kind: more sampled ones are put together, several in each.
const EVENTS_MAX: u64 = 1 << 18;
/// The class of objects and locks whose class is not in the file.
const UNKNOWN: &str = "[unknown class]";

/// A kind of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Objects that were allocated.
    Allocated,
    /// Objects that are still there.
    Live,
    /// Waits for locks.
    Locked,
}

/// The places of a kind's two types.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// The kind of their events.
    pub kind: Kind,
    /// Bytes or time.
    pub sum: usize,
    /// The number of objects or of waits.
    pub number: Option<usize>,
    /// Bytes or nanoseconds of one of the first type.
    scale: u64,
    /// The mean distance of two samples in bytes or waits; 0: not known.
    pub period: u64,
    /// How many sampled events are one.
    pub put_together: u64,
    /// Whether the innermost frames are the classes of objects or locks.
    pub has_classes: bool,
}

impl Pair {
    /// The kinds in a file with types of these names and units.
    pub fn all(types: &[(&str, &str)]) -> Vec<Pair> {
        let kinds = [
            (Kind::Allocated, &ALLOCATED[..], &ALLOCATED_NUMBER[..]),
            (Kind::Live, &LIVE, &LIVE_NUMBER),
            (Kind::Locked, &LOCKED, &LOCKED_NUMBER),
        ];
        let pairs = kinds.into_iter().filter_map(|(kind, sums, numbers)| {
            let scale = |unit: &str| match kind {
                Kind::Locked => nanoseconds(unit),
                Kind::Allocated | Kind::Live => bytes(unit),
            };
            let mut places = types.iter().enumerate();
            let (sum, scale) = places.find_map(|(place, (name, unit))| {
                let scale = scale(unit).filter(|_| sums.contains(name))?;
                Some((place, scale))
            })?;
            let name = types.get(sum).map_or("", |it| it.0);
            let mut named = types.iter();
            let is_number = |it: &(&str, &str)| it.1 == "count" && numbers.contains(&it.0);
            Some(Pair {
                kind,
                sum,
                number: named.position(is_number),
                scale,
                period: 0,
                put_together: 1,
                has_classes: OF_CLASSES.contains(&name),
            })
        });
        pairs.collect()
    }

    /// The kind of events whose distance a period of this type is.
    pub fn is_of_period(&self, name: &str, unit: &str) -> bool {
        match self.kind {
            Kind::Locked => LOCKED_NUMBER.contains(&name) && unit == "count",
            Kind::Allocated | Kind::Live => bytes(unit).is_some(),
        }
    }

    /// A sum in bytes or nanoseconds.
    pub fn value(&self, value: i64) -> u64 {
        u64::try_from(value).unwrap_or(0).saturating_mul(self.scale)
    }

    /// How many events the tool has sampled for such sums. An object of s bytes is met with the
    /// chance 1 - exp(-s/p), and its sums are divided by that.
    pub fn sampled(&self, sum: u64, number: u64) -> u64 {
        let number = number.min(sum);
        let sampled = match (self.kind, self.period) {
            (_, 0) => 1.0,
            (_, 1) => number as f64,
            (Kind::Locked, period) => number as f64 / period as f64,
            (Kind::Allocated | Kind::Live, period) => {
                let size = sum as f64 / number.max(1) as f64;
                number as f64 * (1.0 - (-size / period as f64).exp())
            }
        };
        sampled.round() as u64
    }

    /// Sets how many events are one, if the tool has sampled so many in all.
    pub fn put_together(&mut self, sampled: u64) {
        self.put_together = sampled / EVENTS_MAX + 1;
    }
}

/// The bytes of a unit.
fn bytes(unit: &str) -> Option<u64> {
    match unit {
        "bytes" | "byte" | "B" => Some(1),
        "kilobytes" | "kilobyte" | "KB" | "KiB" => Some(1 << 10),
        "megabytes" | "megabyte" | "MB" | "MiB" => Some(1 << 20),
        _ => None,
    }
}

/// Parts of a sum that belongs to `number` things: pairs of a part of the sum and the size of one
/// thing. About `parts`, of whole numbers of things. Their sizes are equal or differ by 1.
fn parts(sum: u64, number: u64, parts: u64) -> Vec<(u64, u64)> {
    let number = number.min(sum);
    if number == 0 {
        return vec![(sum, 0)];
    }
    let (size, larger) = (sum / number, sum % number);
    let mut all = Vec::new();
    for (things, size) in [(larger, size + 1), (number - larger, size)] {
        if things == 0 {
            continue;
        }
        let share = parts as f64 * things as f64 / number as f64;
        let parts = (share.round() as u64).clamp(1, things);
        let (each, more) = (things / parts, things % parts);
        all.extend((0..parts).map(|part| ((each + u64::from(part < more)) * size, size)));
    }
    all
}

/// A class as Java writes it, from the name of a frame that stands for it.
fn class_name(frame: &str) -> String {
    let mark = MARKS.iter().find_map(|(mark, _)| frame.strip_suffix(mark));
    dotted(mark.unwrap_or(frame), "")
}

/// The objects of a sample, or its waits for a lock.
#[derive(Clone, Copy, Debug)]
pub struct Held<'f> {
    /// Bytes or nanoseconds.
    pub sum: u64,
    /// Objects or waits; 0: not known.
    pub number: u64,
    /// The name of the innermost function.
    pub innermost: &'f str,
    /// The size of an object, if the file says it: Go's label `bytes`.
    pub size: i64,
}

impl Model {
    /// Adds objects, or waits for a lock.
    pub fn held(&mut self, facts: &Facts<'_>, pair: &Pair, held: &Held<'_>) {
        let left = match pair.kind {
            Kind::Locked => &mut self.weights_left,
            Kind::Allocated | Kind::Live => &mut self.bytes_left,
        };
        let sum = held.sum.min(*left);
        *left -= sum;
        if sum == 0 {
            return;
        }
        self.has_unknown |= !pair.has_classes;
        let class = match pair.kind {
            _ if pair.has_classes => class_name(held.innermost),
            // The function that waited or let others go, such as `sync.(*Mutex).Lock`.
            Kind::Locked => held.innermost.to_owned(),
            Kind::Allocated | Kind::Live if held.size > 0 => {
                format!("[objects of {} bytes]", held.size)
            }
            Kind::Allocated | Kind::Live => String::new(),
        };
        let class = match class.as_str() {
            "" => UNKNOWN,
            class => class,
        };
        let stack = match pair.has_classes || pair.kind == Kind::Locked {
            true => self.builder.parent(facts.node),
            false => facts.node,
        };
        let marker = self.builder.marker(class, FrameKind::Other);
        let node = self.builder.child(stack, marker);
        let class = self.builder.name(class);
        let sampled = pair.sampled(sum, held.number) / pair.put_together;
        for (part, size) in parts(sum, held.number, sampled) {
            self.event(facts, pair.kind, (node, class), (part, size));
        }
    }

    fn event(
        &mut self,
        facts: &Facts<'_>,
        kind: Kind,
        (node, class): (NodeId, NameId),
        (part, size): (u64, u64),
    ) {
        let allocated = Allocation {
            time_ns: facts.time_ns,
            thread: facts.thread,
            node,
            class,
            bytes: part,
            size,
            context: facts.context,
        };
        match kind {
            Kind::Allocated => self.builder.allocations.push(allocated),
            // Tools that report objects in use have seen them survive a collection.
            Kind::Live => self.builder.live.push(LiveObject {
                allocated,
                age_ns: 0,
                collections: 1,
            }),
            Kind::Locked => self.builder.monitor_waits.push(MonitorWait {
                time_ns: facts.time_ns,
                duration_ns: if size == 0 { part } else { size },
                weight_ns: part,
                thread: facts.thread,
                node,
                class,
                context: facts.context,
                owner: None,
            }),
        }
    }

    /// Says how these kinds were sampled, so that a file without any objects has tables of them.
    pub fn sampled(&mut self, pairs: &[Pair]) {
        for pair in pairs {
            match pair.kind {
                Kind::Allocated => {
                    let sampling = self.builder.allocation_sampling.get_or_insert_default();
                    sampling.interval_bytes = pair.period;
                }
                Kind::Live => {
                    let sampling = LiveSampling {
                        time_ns: self.builder.info.start_ns,
                        one_of: 1,
                        samples: self.builder.live.len() as u64,
                        ..LiveSampling::default()
                    };
                    self.builder.live_sampling = Some(sampling);
                }
                Kind::Locked => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_have_the_sum_and_the_number(
            sum in 1..1u64 << 40, number in 0..1u64 << 24, wanted in 0..2000u64) {
            let all = parts(sum, number, wanted);
            prop_assert_eq!(all.iter().map(|it| it.0).sum::<u64>(), sum);
            let number = number.min(sum);
            let things: u64 = all.iter().map(|it| it.0.checked_div(it.1).unwrap_or(0)).sum();
            prop_assert_eq!(things, number);
            prop_assert!(all.iter().all(|it| it.1 == 0 || it.0 % it.1 == 0));
            prop_assert!(all.len() as u64 <= wanted.max(1) + 1);
        }
    }

    #[test]
    fn sampled_objects_follow_their_chance() {
        let mut pair = Pair::all(&[("inuse_space", "bytes"), ("inuse_objects", "count")])[0];
        assert_eq!(pair.sampled(1 << 20, 1), 1, "an unknown period");
        pair.period = 512 << 10;
        // Go has divided by the chance: 1000 bytes are met once in 524.8 times.
        assert_eq!(pair.sampled(524_800_000, 524_800), 1000);
        assert_eq!(pair.sampled(5 << 30, 5), 5, "large ones are always met");
        pair.period = 1;
        assert_eq!(pair.sampled(4800, 10), 10);
    }
}

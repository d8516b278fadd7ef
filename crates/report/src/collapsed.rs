//! Collapsed stacks: one line a stack, frames joined by `;`, then the weight.
//!
//! The form that flame graph scripts read. A name cannot break it: separators and line ends in
//! names are replaced.

use std::collections::BTreeMap;
use std::io::{self, Write};

use dwell_profile::{
    Allocation, CallTree, GroupBy, LiveObject, NodeId, Profile, Unit, WallFilter, Weight,
    merged_tree,
};

use crate::plain::plain;

/// Options of the output.
#[derive(Clone, Debug)]
pub struct CollapsedOptions {
    /// Unit of the numbers. A profile without weights has samples only.
    pub unit: Unit,
    /// Whether every stack starts with its thread's name.
    pub by_thread: bool,
    /// Which stacks.
    pub stacks: Stacks,
}

/// Selection of stacks, and their weights.
#[derive(Clone, Debug)]
pub enum Stacks {
    /// CPU time. The numbers count samples or nanoseconds.
    Cpu(WallFilter),
    /// Wall time. The numbers count looks or nanoseconds.
    Wall(WallFilter),
    /// Allocations, the class innermost. The numbers count samples or, in the place of
    /// nanoseconds, bytes.
    Allocated(WallFilter),
    /// Survivors of a collection, the class innermost. The numbers count samples or, instead of
    /// nanoseconds, bytes.
    Alive(WallFilter),
    /// The same; in the place of nanoseconds the numbers count objects.
    AliveObjects(WallFilter),
    /// Waits for locks, the lock's class innermost. The numbers count samples or nanoseconds.
    Locked(WallFilter),
    /// Threads that were late for safepoints: stacks weigh as long as they held the others up. The
    /// numbers count late arrivals or nanoseconds.
    Late,
}

impl Stacks {
    /// Weight of an object that is still there.
    fn weight_of(&self, object: &Allocation) -> Weight {
        match self {
            Stacks::AliveObjects(_) => Weight::of(object.objects().round() as u64),
            _ => object.weight(),
        }
    }
}

impl Default for CollapsedOptions {
    fn default() -> Self {
        CollapsedOptions {
            unit: Unit::Samples,
            by_thread: false,
            stacks: Stacks::Cpu(WallFilter::default()),
        }
    }
}

/// Writes the profile as collapsed stacks, in the order of the names, and says how many there are.
///
/// # Errors
///
/// Only those of `out`.
pub fn collapsed(
    profile: &Profile,
    options: &CollapsedOptions,
    out: &mut impl Write,
) -> io::Result<usize> {
    let grouped = profile.group(GroupBy::Method);
    let names: Vec<String> = grouped.names.iter().map(|name| cell(name)).collect();
    let (tree, to) = merged_tree(profile.tree(), &grouped.of_frame);
    let ranks = ranks(&tree, &names);
    let mut sums: BTreeMap<(String, u32, NodeId), u64> = BTreeMap::new();
    let add = |thread: u32, node: NodeId, weight: &Weight| {
        let root = match options.by_thread {
            true => cell(profile.thread_name(thread)),
            false => String::new(),
        };
        let node = to.get(node as usize).copied().unwrap_or(CallTree::ROOT);
        let rank = ranks.get(node as usize).copied().unwrap_or(0);
        *sums.entry((root, rank, node)).or_insert(0) += match options.unit {
            Unit::Nanoseconds => weight.sum,
            Unit::Samples => weight.samples,
        };
    };
    each(profile, &options.stacks, add);
    let mut stack: Vec<&str> = Vec::new();
    // A part of a wait can be too short for a look.
    sums.retain(|_, sum| *sum > 0);
    for ((root, _, node), sum) in &sums {
        stack.clear();
        let keys = tree.stack(*node);
        stack.extend(keys.filter_map(|key| names.get(key as usize).map(String::as_str)));
        stack.extend((!root.is_empty()).then_some(&**root));
        if stack.is_empty() {
            stack.push("[no stack]");
        }
        stack.reverse();
        writeln!(out, "{} {sum}", stack.join(";"))?;
    }
    Ok(sums.len())
}

/// Shows thread, place and weight of all that is written.
fn each(profile: &Profile, stacks: &Stacks, mut add: impl FnMut(u32, NodeId, &Weight)) {
    match stacks {
        Stacks::Wall(filter) => {
            for wall in profile.wall(filter) {
                add(wall.thread, wall.node, &wall.weight);
            }
        }
        Stacks::Allocated(filter) => {
            for allocation in profile.allocations_of(filter) {
                add(allocation.thread, allocation.node, &allocation.weight());
            }
        }
        stacks @ (Stacks::Alive(filter) | Stacks::AliveObjects(filter)) => {
            for LiveObject { allocated, .. } in profile.live_of(filter) {
                add(
                    allocated.thread,
                    allocated.node,
                    &stacks.weight_of(allocated),
                );
            }
        }
        Stacks::Locked(filter) => {
            for locked in profile.locked(filter) {
                add(locked.thread, locked.node, &locked.weight);
            }
        }
        Stacks::Late => {
            for late in profile.late() {
                let node = late.node.unwrap_or(CallTree::ROOT);
                add(late.thread, node, &Weight::of(late.held_ns));
            }
        }
        Stacks::Cpu(filter) => {
            for sample in profile.cpu(filter) {
                add(sample.thread, sample.node, &Weight::of_sample(sample));
            }
        }
    }
}

/// The place of every node when the tree is read depth first, children in the order of their names.
fn ranks(tree: &CallTree, names: &[String]) -> Vec<u32> {
    let mut ranks = vec![0; tree.len()];
    let mut next = 0;
    tree.walk(
        |children| children.sort_by_key(|&node| names.get(tree.key(node) as usize)),
        |node, entering| {
            if entering {
                next += 1;
                ranks[node as usize] = next;
            }
        },
    );
    ranks
}

/// A name as one cell: neither separator nor line end can be in it, and it is never empty.
fn cell(name: &str) -> String {
    match plain(name).replace(';', ":") {
        name if name.is_empty() => "[unnamed]".to_owned(),
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{FrameKind, Late, Sample, text_art};
    use proptest::prelude::*;

    fn lines(profile: &Profile, options: &CollapsedOptions) -> Vec<String> {
        let mut out = Vec::new();
        let told = collapsed(profile, options, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<String> = out.lines().map(str::to_owned).collect();
        assert_eq!(told, lines.len());
        lines
    }

    #[test]
    fn allocations_have_their_class_innermost_and_weigh_bytes() {
        let mut builder = text_art::builder("a.A.x");
        let frame = builder.marker("byte[]", FrameKind::Other);
        let node = builder.child(1, frame);
        let class = builder.name("byte[]");
        for bytes in [100, 28] {
            builder.allocations.push(dwell_profile::Allocation {
                time_ns: 0,
                thread: 0,
                node,
                class,
                bytes,
                size: 28,
                context: None,
            });
        }
        for (number, allocated) in builder.allocations.clone().into_iter().enumerate() {
            builder.live.push(LiveObject {
                allocated,
                age_ns: 1,
                collections: number as u64,
            });
        }
        let profile = builder.finish();
        let told = |stacks: &dyn Fn(WallFilter) -> Stacks, unit| {
            let options = CollapsedOptions {
                unit,
                stacks: stacks(WallFilter::default()),
                ..CollapsedOptions::default()
            };
            lines(&profile, &options)
        };
        let allocated = &Stacks::Allocated;
        assert_eq!(told(allocated, Unit::Nanoseconds), ["a.A.x;byte[] 128"]);
        assert_eq!(told(allocated, Unit::Samples), ["a.A.x;byte[] 2"]);
        // The first one may have been cleared away already.
        let alive = &Stacks::Alive;
        assert_eq!(told(alive, Unit::Nanoseconds), ["a.A.x;byte[] 28"]);
        assert_eq!(told(alive, Unit::Samples), ["a.A.x;byte[] 1"]);
        let objects = told(&Stacks::AliveObjects, Unit::Nanoseconds);
        assert_eq!(objects, ["a.A.x;byte[] 1"]);
    }

    const ART: &str = "thread: main    worker  main
                       weight: 10      20      30
                               b.B.x:1 b.B.x:2 a.A.z
                               b.B.y   b.B.y   -";

    #[test]
    fn merges_lines_of_a_method() {
        let profile = text_art::profile(ART);
        assert_eq!(
            lines(&profile, &CollapsedOptions::default()),
            ["a.A.z 1", "b.B.x;b.B.y 2"]
        );
    }

    #[test]
    fn weights_and_threads() {
        let options = CollapsedOptions {
            unit: Unit::Nanoseconds,
            by_thread: true,
            ..CollapsedOptions::default()
        };
        assert_eq!(
            lines(&text_art::profile(ART), &options),
            [
                "main;a.A.z 30",
                "main;b.B.x;b.B.y 10",
                "worker;b.B.x;b.B.y 20"
            ]
        );
    }

    #[test]
    fn names_cannot_break_lines() {
        let mut builder = dwell_profile::Builder::default();
        let thread = builder.thread("t;\nx 99", 1, 1, false);
        let method = builder.method("a;b", "c\r\nd\u{2028}e", "");
        let frame = builder.frame(method, 0, FrameKind::C2);
        for node in [builder.stack([frame]), builder.stack([])] {
            builder.sample(Sample {
                time_ns: 0,
                thread,
                node,
                weight: 1,
                count: 1,
                failure: None,
                context: None,
            });
        }
        let profile = builder.finish();
        let options = CollapsedOptions {
            by_thread: true,
            ..CollapsedOptions::default()
        };
        let lines = lines(&profile, &options);
        assert_eq!(
            lines,
            [
                "t:\u{fffd}x 99 1",
                "t:\u{fffd}x 99;a:b.c\u{fffd}\u{fffd}d\u{fffd}e 1"
            ]
        );
    }

    #[test]
    fn an_empty_stack_has_a_line() {
        let mut builder = dwell_profile::Builder::default();
        let thread = builder.thread("t", 1, 1, false);
        let node = builder.stack([]);
        builder.sample(Sample {
            time_ns: 0,
            thread,
            node,
            weight: 1,
            count: 1,
            failure: None,
            context: None,
        });
        assert_eq!(
            lines(&builder.finish(), &CollapsedOptions::default()),
            ["[no stack] 1"]
        );
    }

    #[test]
    fn late_threads_weigh_the_delay_of_others() {
        let mut builder = text_art::builder(ART);
        let nodes: Vec<_> = builder
            .clone()
            .finish()
            .samples()
            .iter()
            .map(|it| it.node)
            .collect();
        let state = builder.name("java");
        let late = |thread, node, held_ns| Late {
            time_ns: 0,
            duration_ns: held_ns,
            safepoint: 1,
            operation: state,
            thread,
            node,
            state,
            held_ns,
            is_last: true,
        };
        builder.late = vec![
            late(0, Some(nodes[0]), 5),
            late(1, Some(nodes[1]), 20),
            late(1, None, 7),
        ];
        let profile = builder.finish();
        let mut options = CollapsedOptions {
            unit: Unit::Nanoseconds,
            stacks: Stacks::Late,
            ..CollapsedOptions::default()
        };
        assert_eq!(
            lines(&profile, &options),
            ["[no stack] 7", "b.B.x;b.B.y 25"]
        );
        (options.unit, options.by_thread) = (Unit::Samples, true);
        let expected = ["main;b.B.x;b.B.y 1", "worker 1", "worker;b.B.x;b.B.y 1"];
        assert_eq!(lines(&profile, &options), expected);
    }

    /// An event of a random profile, for each sort of stacks: time, duration, weight, samples.
    type Event = (u64, u64, u64, u64);

    /// Waits, samples, objects and waits for locks of two threads, one of them for an endpoint.
    fn random(events: &[Event]) -> Profile {
        let mut builder = text_art::builder("thread: main worker\nweight: 3 4\na.A.x b.B.y");
        builder.info.start_ns = 1_000;
        let endpoint = Some(builder.name("GET /"));
        let cause = [builder.cause("park"), builder.cause("lock")];
        let class = builder.name("a.Lock");
        let context = builder.context(dwell_profile::Context {
            endpoint,
            ..dwell_profile::Context::default()
        });
        for (at, &(since, duration_ns, weight, count)) in events.iter().enumerate() {
            let (time_ns, thread) = (1_000 + since, (at % 2) as u32);
            let context = (thread == 1).then_some(context);
            let node = 1 + thread;
            builder.look(dwell_profile::Look {
                time_ns,
                duration_ns,
                thread,
                node,
                cause: cause[at % 3 % 2],
                weight_ns: weight,
                count,
                context,
                ..dwell_profile::Look::default()
            });
            builder.sample(Sample {
                time_ns,
                thread,
                node,
                weight,
                count: 1,
                failure: None,
                context,
            });
            let allocated = dwell_profile::Allocation {
                time_ns,
                thread,
                node,
                class,
                bytes: weight,
                size: 8,
                context,
            };
            builder.allocations.push(allocated);
            builder.live.push(LiveObject {
                allocated,
                age_ns: 1,
                collections: 1,
            });
            builder.monitor_waits.push(dwell_profile::MonitorWait {
                time_ns,
                duration_ns,
                weight_ns: weight,
                thread,
                node,
                class,
                context,
                owner: None,
            });
        }
        builder.finish()
    }

    type Sort = fn(WallFilter) -> Stacks;

    const SORTS: [Sort; 6] = [
        Stacks::Cpu,
        Stacks::Wall,
        Stacks::Allocated,
        Stacks::Alive,
        Stacks::AliveObjects,
        Stacks::Locked,
    ];

    fn filters() -> [WallFilter; 4] {
        let all = WallFilter::default;
        [
            all(),
            WallFilter {
                thread: Some("work*".to_owned()),
                ..all()
            },
            WallFilter {
                endpoint: Some("GET *".to_owned()),
                ..all()
            },
            WallFilter {
                causes: vec!["park".to_owned()],
                ..all()
            },
        ]
    }

    fn sums(profile: &Profile, options: &CollapsedOptions) -> BTreeMap<String, u64> {
        let split = |line: String| {
            let (stack, number) = line.rsplit_once(' ').unwrap();
            (stack.to_owned(), number.parse().unwrap())
        };
        lines(profile, options).into_iter().map(split).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Whatever stacks, filters and units: adjacent parts of the time add up to all.
        #[test]
        fn adjacent_windows_add_up_to_all_stacks(
            events in prop::collection::vec(
                (0u64..5_000, prop_oneof![Just(0u64), 0u64..9_000], 0u64..90_000, 0u64..50), 0..30),
            mut cuts in prop::collection::vec(0u64..15_000, 0..6),
            by_thread: bool,
        ) {
            let profile = random(&events);
            cuts.sort_unstable();
            let starts = [None].into_iter().chain(cuts.iter().copied().map(Some));
            let ends = cuts.iter().copied().map(Some).chain([None]);
            let windows: Vec<_> = starts.zip(ends).collect();
            for (sort, filter) in SORTS.iter().flat_map(|sort| filters().map(|it| (sort, it))) {
                for unit in [Unit::Nanoseconds, Unit::Samples] {
                    let of = |from_ns, to_ns| {
                        let filter = WallFilter { from_ns, to_ns, ..filter.clone() };
                        let stacks = sort(filter);
                        sums(&profile, &CollapsedOptions { unit, by_thread, stacks })
                    };
                    let mut parts: BTreeMap<String, u64> = BTreeMap::new();
                    for &(from_ns, to_ns) in &windows {
                        for (stack, sum) in of(from_ns, to_ns) {
                            *parts.entry(stack).or_default() += sum;
                        }
                    }
                    prop_assert_eq!(parts, of(None, None));
                }
            }
        }

        /// A thread that waits all the time, for itself or for some, has no more than the window.
        #[test]
        fn window_has_its_length_by_the_threads(
            durations in prop::collection::vec(1u64..4_000, 1..20),
            threads in 1u64..30,
            (a, b) in (0u64..20_000, 0u64..20_000),
        ) {
            let mut events = Vec::new();
            let mut time = 0;
            for duration in durations {
                // Each second one is of the other thread.
                events.push((time, duration, threads * duration, 1));
                events.push((time, duration, threads * duration, 1));
                time += duration;
            }
            let profile = random(&events);
            let (from, to) = (a.min(b), a.max(b));
            let inside = to.min(time).saturating_sub(from.min(time));
            let filter = WallFilter {
                from_ns: Some(from),
                to_ns: Some(to),
                ..WallFilter::default()
            };
            let waits = WallFilter {
                causes: vec!["park".to_owned(), "lock".to_owned()],
                ..filter.clone()
            };
            for stacks in [Stacks::Wall(waits), Stacks::Locked(filter)] {
                let options = CollapsedOptions {
                    unit: Unit::Nanoseconds,
                    by_thread: true,
                    stacks,
                };
                for (stack, sum) in sums(&profile, &options) {
                    prop_assert_eq!(sum, inside * threads, "{}", stack);
                }
            }
        }
    }
}

//! The values of a pprof file: which types a profile has, and their sums by stack and labels.

use std::collections::HashMap;

use dwell_profile::{
    Allocation, ContextId, Measured, NameId, NodeId, Profile, RUNNING, Seeds, ThreadId, Unit,
    WallFilter,
};

/// A type of value. What samples measure is mostly CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Samples,
    Measured,
    Wall,
    AllocatedObjects,
    AllocatedBytes,
    LiveObjects,
    LiveBytes,
    Waits,
    Blocked,
}

impl Column {
    /// The types that a profile has values of.
    pub fn of(profile: &Profile) -> Vec<Column> {
        // Without sizes the number of objects is not known.
        let has_size = |object: &Allocation| object.size > 0;
        let has_allocated = profile.allocations().iter().any(has_size);
        let has_live = profile.live().iter().any(|it| has_size(&it.allocated));
        let has_allocations = profile.has_allocations();
        let columns = [
            (Column::Samples, true),
            (Column::Measured, profile.unit() == Unit::Nanoseconds),
            (Column::Wall, profile.has_wall()),
            (Column::AllocatedObjects, has_allocated),
            (Column::AllocatedBytes, has_allocations),
            (Column::LiveObjects, profile.has_live() && has_live),
            (Column::LiveBytes, profile.has_live()),
            (Column::Waits, profile.has_locks()),
            (Column::Blocked, profile.has_locks()),
        ];
        let columns = columns.into_iter().filter(|(_, has)| *has);
        columns.map(|(column, _)| column).collect()
    }

    /// Its name and its unit: those of Go's profiles, where these have such a type.
    pub fn words(self, measured: &Measured) -> (String, &'static str) {
        let name = match self {
            Column::Samples => "samples",
            Column::Measured => match measured {
                Measured::CpuTime | Measured::Java => "cpu",
                Measured::Wall => "running",
                Measured::Native => "native",
                Measured::Event(event) => event,
            },
            Column::Wall => "wall",
            Column::AllocatedObjects => "alloc_objects",
            Column::AllocatedBytes => "alloc_space",
            Column::LiveObjects => "inuse_objects",
            Column::LiveBytes => "inuse_space",
            Column::Waits => "contentions",
            Column::Blocked => "delay",
        };
        let unit = match self {
            Column::Measured | Column::Wall | Column::Blocked => "nanoseconds",
            Column::AllocatedBytes | Column::LiveBytes => "bytes",
            _ => "count",
        };
        (name.to_owned(), unit)
    }
}

/// What samples have in common that are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<'p> {
    pub node: NodeId,
    pub thread: ThreadId,
    pub context: Option<ContextId>,
    pub cause: Option<&'p str>,
    pub detail: Option<NameId>,
    pub owner: Option<ThreadId>,
}

/// Their values. Numbers of objects and waits are estimates, and not whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    samples: u64,
    measured: u64,
    wall: u64,
    allocated_objects: f64,
    allocated_bytes: u64,
    live_objects: f64,
    live_bytes: u64,
    waits: f64,
    blocked: u64,
}

/// All samples with their sums, in an order that is the same each time.
pub fn sums(profile: &Profile) -> Vec<(Key<'_>, Sum)> {
    let mut sums: HashMap<Key<'_>, Sum, Seeds> = HashMap::default();
    for sample in profile.samples() {
        let key = Key {
            node: sample.node,
            thread: sample.thread,
            context: sample.context,
            cause: Some(RUNNING),
            ..Key::default()
        };
        let sum = sums.entry(key).or_default();
        add(&mut sum.samples, u64::from(sample.count.max(1)));
        add(&mut sum.measured, sample.weight);
    }
    if profile.has_wall() {
        for wall in profile.wall(&WallFilter::default()) {
            let key = Key {
                node: wall.node,
                thread: wall.thread,
                context: wall.context,
                cause: Some(wall.cause),
                detail: wall.detail,
                owner: wall.owner.map(|(owner, _)| owner),
            };
            add(&mut sums.entry(key).or_default().wall, wall.weight.sum);
        }
    }
    let object = |it: &Allocation| Key {
        node: it.node,
        thread: it.thread,
        context: it.context,
        ..Key::default()
    };
    for it in profile.allocations() {
        let sum = sums.entry(object(it)).or_default();
        sum.allocated_objects += it.objects();
        add(&mut sum.allocated_bytes, it.bytes);
    }
    for it in profile.live().iter().filter(|it| it.has_survived()) {
        let sum = sums.entry(object(&it.allocated)).or_default();
        sum.live_objects += it.allocated.objects();
        add(&mut sum.live_bytes, it.allocated.bytes);
    }
    if profile.has_locks() {
        for it in profile.locked(&WallFilter::default()) {
            let key = Key {
                node: it.node,
                thread: it.thread,
                context: it.context,
                owner: it.owner,
                ..Key::default()
            };
            let sum = sums.entry(key).or_default();
            sum.waits += it.waits;
            add(&mut sum.blocked, it.weight.sum);
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|(key, _)| *key);
    sums
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// Makes values whole. What is lost of one sample by rounding is added to the next one, so that
/// sums are those of the estimates, rounded.
#[derive(Default)]
pub struct Rounded {
    allocated: f64,
    live: f64,
    waits: f64,
}

impl Rounded {
    /// The value of a type.
    pub fn value(&mut self, column: Column, sum: &Sum) -> i64 {
        let whole = match column {
            Column::Samples => sum.samples,
            Column::Measured => sum.measured,
            Column::Wall => sum.wall,
            Column::AllocatedBytes => sum.allocated_bytes,
            Column::LiveBytes => sum.live_bytes,
            Column::Blocked => sum.blocked,
            Column::AllocatedObjects => rounded(&mut self.allocated, sum.allocated_objects),
            Column::LiveObjects => rounded(&mut self.live, sum.live_objects),
            Column::Waits => rounded(&mut self.waits, sum.waits),
        };
        i64::try_from(whole).unwrap_or(i64::MAX)
    }
}

fn rounded(rest: &mut f64, value: f64) -> u64 {
    let whole = (*rest + value).round().max(0.0);
    *rest += value - whole;
    whole as u64
}

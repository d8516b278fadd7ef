//! The types of values of a profile, and each value with its sample.

use dwell_profile::{
    Allocation, ContextId, Measured, NameId, NodeId, Profile, RUNNING, ThreadId, Unit, WallFilter,
};

/// A type of value. The measured value of samples is mostly CPU time.
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
    /// Number of types.
    pub const COUNT: usize = 9;

    /// The types of values in a profile.
    pub fn of(profile: &Profile) -> Vec<Column> {
        // Without sizes the number of objects is unknown.
        let has_size = |object: &Allocation| object.size > 0;
        let has_allocated = profile.allocations().iter().any(has_size);
        let has_live = profile.live().iter().any(|it| has_size(&it.allocated));
        let has_others = profile.has_wall()
            || profile.has_allocations()
            || profile.has_live()
            || profile.has_locks();
        let has_samples = !profile.samples().is_empty() || !has_others;
        let is_time = profile.unit() == Unit::Nanoseconds;
        let columns = [
            (Column::Samples, has_samples),
            (Column::Measured, has_samples && is_time),
            (Column::Wall, profile.has_wall()),
            (Column::AllocatedObjects, has_allocated),
            (Column::AllocatedBytes, profile.has_allocations()),
            (Column::LiveObjects, profile.has_live() && has_live),
            (Column::LiveBytes, profile.has_live()),
            (Column::Waits, profile.has_locks()),
            (Column::Blocked, profile.has_locks()),
        ];
        let columns = columns.into_iter().filter(|(_, has)| *has);
        columns.map(|(column, _)| column).collect()
    }

    /// The type that tools show first.
    pub fn first(profile: &Profile) -> Column {
        let columns = Column::of(profile);
        let order = [
            Column::Measured,
            Column::Samples,
            Column::Wall,
            Column::LiveBytes,
            Column::AllocatedBytes,
        ];
        let first = order.into_iter().find(|column| columns.contains(column));
        first.unwrap_or(Column::Blocked)
    }

    /// Its name and its unit: those of Go's profiles, where these have such a type.
    pub fn words(self, measured: &Measured) -> (&str, &'static str) {
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
            Column::Samples | Column::AllocatedObjects | Column::LiveObjects | Column::Waits => {
                "count"
            }
        };
        (name, unit)
    }
}

/// Key of a sample. Samples with equal keys are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<'p> {
    pub node: NodeId,
    pub thread: ThreadId,
    pub context: Option<ContextId>,
    pub cause: Option<&'p str>,
    pub detail: Option<NameId>,
    pub owner: Option<ThreadId>,
}

/// A value. Numbers of objects and waits are estimates, and not whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    Whole(u64),
    Estimate(f64),
}

impl Amount {
    /// The sum of both.
    pub fn plus(self, other: Amount) -> Amount {
        match (self, other) {
            (Amount::Whole(a), Amount::Whole(b)) => Amount::Whole(a.saturating_add(b)),
            (a, b) => Amount::Estimate(a.number() + b.number()),
        }
    }

    fn number(self) -> f64 {
        match self {
            Amount::Whole(value) => value as f64,
            Amount::Estimate(value) => value,
        }
    }
}

/// Calls `show` for each value of a profile: with its key, its time in nanoseconds since the Unix
/// epoch, and its type.
pub fn each<'p>(profile: &'p Profile, mut show: impl FnMut(Key<'p>, u64, Column, Amount)) {
    for it in profile.samples() {
        let key = Key {
            node: it.node,
            thread: it.thread,
            context: it.context,
            cause: Some(RUNNING),
            ..Key::default()
        };
        let samples = u64::from(it.count.max(1));
        show(key, it.time_ns, Column::Samples, Amount::Whole(samples));
        show(key, it.time_ns, Column::Measured, Amount::Whole(it.weight));
    }
    if profile.has_wall() {
        for it in profile.wall(&WallFilter::default()) {
            let key = Key {
                node: it.node,
                thread: it.thread,
                context: it.context,
                cause: Some(it.cause),
                detail: it.detail,
                owner: it.owner.map(|(owner, _)| owner),
            };
            show(key, it.time_ns, Column::Wall, Amount::Whole(it.weight.sum));
        }
    }
    let object = |it: &Allocation| Key {
        node: place(profile, it.node, it.class),
        thread: it.thread,
        context: it.context,
        ..Key::default()
    };
    for it in profile.allocations() {
        let (key, objects) = (object(it), Amount::Estimate(it.objects()));
        show(key, it.time_ns, Column::AllocatedObjects, objects);
        show(
            key,
            it.time_ns,
            Column::AllocatedBytes,
            Amount::Whole(it.bytes),
        );
    }
    for it in profile.live().iter().filter(|it| it.has_survived()) {
        let it = &it.allocated;
        let (key, objects) = (object(it), Amount::Estimate(it.objects()));
        show(key, it.time_ns, Column::LiveObjects, objects);
        show(key, it.time_ns, Column::LiveBytes, Amount::Whole(it.bytes));
    }
    if profile.has_locks() {
        for it in profile.locked(&WallFilter::default()) {
            let key = Key {
                node: place(profile, it.node, it.class),
                thread: it.thread,
                context: it.context,
                owner: it.owner,
                ..Key::default()
            };
            show(key, it.time_ns, Column::Waits, Amount::Estimate(it.waits));
            show(
                key,
                it.time_ns,
                Column::Blocked,
                Amount::Whole(it.weight.sum),
            );
        }
    }
}

/// The stack of an object or a wait, whose innermost frame is the class. Where files of other tools
/// have no classes, the stack is theirs.
fn place(profile: &Profile, node: NodeId, class: NameId) -> NodeId {
    let is_marker = profile.names().text(class).starts_with('[');
    match profile.info().has_sums_only() && is_marker {
        true => profile.tree().parent(node),
        false => node,
    }
}

/// Rounds values of one type. The rounding error of a value is added to the next one, so that sums
/// are those of the estimates, rounded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounded {
    rest: f64,
}

impl Rounded {
    /// The rounded value.
    pub fn value(&mut self, amount: Amount) -> i64 {
        let whole = match amount {
            Amount::Whole(value) => value,
            Amount::Estimate(value) => {
                let whole = (self.rest + value).round().max(0.0);
                self.rest += value - whole;
                whole as u64
            }
        };
        i64::try_from(whole).unwrap_or(i64::MAX)
    }
}

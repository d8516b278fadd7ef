//! Sums of what is still there: by class, and by stack, with their ages.

use std::collections::HashMap;

use crate::aggregate::{GroupBy, merged_tree};
use crate::allocations::Allocation;
use crate::diff::{Sums, stable};
use crate::live::{LiveObject, LiveSampling};
use crate::names::NameId;
use crate::profile::Profile;
use crate::sample::Weight;
use crate::tree::{CallTree, NodeId};
use crate::wall::WallFilter;

/// Number of equal parts of the recording's time by which objects are grouped.
pub const PARTS: usize = 3;

/// A sum of objects that are still there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alive {
    /// Bytes of those that have survived a collection.
    pub bytes: Weight,
    /// These objects, estimated.
    pub objects: f64,
    /// Bytes of these by the third of the recording in which they were allocated.
    pub parts: [u64; PARTS],
    /// The age of the oldest, in nanoseconds.
    pub oldest_ns: u64,
    /// Bytes of those that no collection has checked yet.
    pub young: Weight,
}

impl Alive {
    fn add(&mut self, object: &LiveObject, part: usize) {
        let weight = object.allocated.weight();
        if !object.has_survived() {
            self.young += &weight;
            return;
        }
        self.bytes += &weight;
        self.objects += object.allocated.objects();
        self.oldest_ns = self.oldest_ns.max(object.age_ns);
        if let Some(sum) = self.parts.get_mut(part) {
            *sum = sum.saturating_add(weight.sum);
        }
    }

    /// Whether each third of the recording has left about the same amount of live objects, as a
    /// leak does. The objects of a cache that was filled once are from the first third; short-lived
    /// objects are from the last.
    #[must_use]
    pub fn grows(&self) -> bool {
        let least = self.parts.iter().min().copied().unwrap_or(0);
        let all: u64 = self.parts.iter().fold(0, |sum, p| sum.saturating_add(*p));
        self.bytes.samples >= GROWS_FROM && least >= all / GROWS_PART
    }
}

/// Of fewer samples one cannot say whether they grow.
const GROWS_FROM: u64 = 12;
/// In a growing class each third has at least this part (one sixth) of the bytes.
const GROWS_PART: u64 = 6;

/// The live objects of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct AliveClass {
    /// The class, as in Java.
    pub name: String,
    /// How much.
    pub alive: Alive,
}

/// The live objects that were allocated with one stack.
#[derive(Clone, Debug, PartialEq)]
pub struct AliveStack {
    /// The class, and the methods from the innermost on.
    pub frames: Vec<String>,
    /// How much.
    pub alive: Alive,
}

impl Profile {
    /// Objects that are still there, by the recording's last look.
    #[must_use]
    pub fn live(&self) -> &[LiveObject] {
        &self.live
    }

    /// Whether the recording has looked, be it that nothing was there.
    #[must_use]
    pub fn has_live(&self) -> bool {
        self.live_sampling.is_some()
    }

    /// How objects were followed, if they were.
    #[must_use]
    pub fn live_sampling(&self) -> Option<&LiveSampling> {
        self.live_sampling.as_ref()
    }

    /// The objects that have survived a collection, of threads and endpoints that `filter` wants,
    /// and allocated when it wants.
    pub fn live_of<'p>(&'p self, filter: &'p WallFilter) -> impl Iterator<Item = &'p LiveObject> {
        let wanted = self.wanted(filter);
        self.live.iter().filter(move |object| {
            let of = &object.allocated;
            object.has_survived() && wanted.is(of.time_ns, of.thread, of.context)
        })
    }

    /// The time in which objects were followed, by the clock of the samples: all of the recording
    /// unless that was switched on later.
    #[must_use]
    pub fn followed_ns(&self) -> std::ops::Range<u64> {
        let sampling = self.live_sampling.unwrap_or_default();
        let end_ns = sampling.time_ns;
        let start_ns = match sampling.followed_ns {
            0 => self.info.start_ns,
            followed_ns => end_ns.saturating_sub(followed_ns),
        };
        start_ns..end_ns
    }

    /// The third of the time in which objects were followed in which something was allocated.
    fn part_of(&self, time_ns: u64) -> usize {
        let followed_ns = self.followed_ns();
        let start_ns = followed_ns.start;
        let span = u128::from(followed_ns.end.saturating_sub(start_ns).max(1));
        let since = u128::from(time_ns.saturating_sub(start_ns));
        let part = since * PARTS as u128 / span;
        usize::try_from(part).unwrap_or(PARTS).min(PARTS - 1)
    }

    /// All that is still there.
    #[must_use]
    pub fn alive(&self) -> Alive {
        let mut sum = Alive::default();
        for object in &self.live {
            sum.add(object, self.part_of(object.allocated.time_ns));
        }
        sum
    }

    /// Live objects by class, the most bytes first.
    #[must_use]
    pub fn alive_classes(&self) -> Vec<AliveClass> {
        let mut sums: HashMap<NameId, Alive> = HashMap::new();
        for object in &self.live {
            let sum = sums.entry(object.allocated.class).or_default();
            sum.add(object, self.part_of(object.allocated.time_ns));
        }
        let row = |(class, alive)| AliveClass {
            name: self.names.text(class).to_owned(),
            alive,
        };
        let mut rows: Vec<AliveClass> = sums.into_iter().map(row).collect();
        rows.sort_by(|a, b| most(&a.alive, &b.alive).then_with(|| a.name.cmp(&b.name)));
        rows
    }

    /// Live objects by stack, without lines, the most bytes first. The frames of the runtime's own
    /// code at the beginning of a thread are left out, and so are stacks whose objects have not
    /// survived a collection.
    #[must_use]
    pub fn alive_stacks(&self) -> Vec<AliveStack> {
        let grouped = self.group(GroupBy::Method);
        let (tree, to) = merged_tree(self.tree(), &grouped.of_frame);
        let mut sums: HashMap<NodeId, Alive> = HashMap::new();
        for object in self.live.iter().filter(|object| object.has_survived()) {
            let node = to.get(object.allocated.node as usize).copied();
            let sum = sums.entry(node.unwrap_or(CallTree::ROOT)).or_default();
            sum.add(object, self.part_of(object.allocated.time_ns));
        }
        let managed = self.are_managed(&grouped);
        let row = |(node, alive)| AliveStack {
            frames: told(&tree, node, &managed)
                .into_iter()
                .filter_map(|key| grouped.names.get(key as usize).cloned())
                .collect(),
            alive,
        };
        let mut rows: Vec<AliveStack> = sums.into_iter().map(row).collect();
        rows.sort_by(|a, b| most(&a.alive, &b.alive).then_with(|| a.frames.cmp(&b.frames)));
        rows
    }

    /// Bytes by stack, outermost frame first and the class last, with names that are the same in
    /// each run. The objects are those that have survived a collection, or all allocated ones.
    /// Stacks are whole, or without the runtime's own code at the beginning of a thread.
    #[must_use]
    pub fn sums_by_stack(&self, of: Objects, whole: bool) -> Sums {
        let grouped = self.group(GroupBy::Method);
        let (tree, to) = merged_tree(self.tree(), &grouped.of_frame);
        let mut by_node: HashMap<NodeId, Weight> = HashMap::new();
        self.each(of, |allocation| {
            let node = to.get(allocation.node as usize).copied();
            *by_node.entry(node.unwrap_or(CallTree::ROOT)).or_default() += &allocation.weight();
        });
        let managed = match whole {
            true => vec![true; grouped.names.len()],
            false => self.are_managed(&grouped),
        };
        let cell = |name: &String| stable(name).replace(';', ":");
        let mut sums = Sums::new();
        for (node, weight) in by_node {
            let mut frames: Vec<String> = told(&tree, node, &managed)
                .into_iter()
                .filter_map(|key| grouped.names.get(key as usize).map(cell))
                .collect();
            frames.reverse();
            *sums.entry(frames.join(";")).or_default() += &weight;
        }
        sums
    }

    /// Bytes by class, as [`Profile::sums_by_stack`].
    #[must_use]
    pub fn sums_by_class(&self, of: Objects) -> Sums {
        let mut sums = Sums::new();
        self.each(of, |allocation| {
            let name = stable(self.names.text(allocation.class));
            *sums.entry(name).or_default() += &allocation.weight();
        });
        sums
    }

    fn each(&self, of: Objects, see: impl FnMut(&Allocation)) {
        match of {
            Objects::Alive => {
                let survivors = self.live.iter().filter(|object| object.has_survived());
                survivors.map(|object| &object.allocated).for_each(see);
            }
            Objects::Allocated => self.allocations.iter().for_each(see),
        }
    }
}

/// The keys of a stack from its innermost frame, the class, to the outermost managed frame. If no
/// frame is managed, all keys.
fn told(tree: &CallTree, node: NodeId, managed: &[bool]) -> Vec<u32> {
    let mut keys: Vec<u32> = tree.stack(node).collect();
    let is_managed = |key: &u32| managed.get(*key as usize) == Some(&true);
    if let Some(outermost) = keys.iter().rposition(is_managed) {
        keys.truncate(outermost + 1);
    }
    keys
}

/// Which objects are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objects {
    /// Those that are still there and have survived a collection.
    Alive,
    /// All that were allocated.
    Allocated,
}

fn most(a: &Alive, b: &Alive) -> std::cmp::Ordering {
    let by_bytes = b.bytes.sum.cmp(&a.bytes.sum);
    by_bytes.then_with(|| b.young.sum.cmp(&a.young.sum))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameKind;
    use crate::text_art;

    /// `a.A.x` keeps maps all the time, `a.A.y` has filled a cache at the start, and made a list
    /// that no collection has seen.
    fn profile() -> Profile {
        let mut builder = text_art::builder("a.A.x");
        builder.info.start_ns = 1000;
        builder.live_sampling = Some(LiveSampling {
            time_ns: 1300,
            interval_bytes: 100,
            one_of: 1,
            samples: 40,
            lost: 0,
            followed_ns: 0,
        });
        let [x, y] = ["x", "y"].map(|name| {
            let method = builder.method("a.A", name, "");
            [1, 2].map(|line| builder.frame(method, line, FrameKind::C2))
        });
        let mut add = |frame, class: &str, time_ns, collections| {
            let stack = builder.stack([frame]);
            let marker = builder.marker(class, FrameKind::Other);
            let node = builder.child(stack, marker);
            let class = builder.name(class);
            builder.live.push(LiveObject {
                allocated: Allocation {
                    time_ns,
                    thread: 0,
                    node,
                    class,
                    bytes: 100,
                    size: 10,
                    context: None,
                },
                age_ns: 1300 - time_ns,
                collections,
            });
        };
        for number in 0..12 {
            add(x[number % 2], "java.util.Map", 1000 + 25 * number as u64, 3);
        }
        for number in 0..5 {
            add(y[0], "byte[]", 1000 + number, 3);
        }
        add(y[1], "java.util.List", 1299, 0);
        builder.finish()
    }

    #[test]
    fn survivors_have_class_stack_and_age() {
        let profile = profile();
        let all = profile.alive();
        assert_eq!((all.bytes.sum, all.young.sum), (1700, 100));
        let rows = profile.alive_classes();
        let told: Vec<_> = (rows.iter())
            .map(|row| (row.name.as_str(), row.alive.bytes.sum, row.alive.young.sum))
            .collect();
        let expected = [
            ("java.util.Map", 1200, 0),
            ("byte[]", 500, 0),
            ("java.util.List", 0, 100),
        ];
        assert_eq!(told, expected);
        assert_eq!(rows[0].alive.parts, [400, 400, 400]);
        assert_eq!(rows[1].alive.parts, [500, 0, 0]);
        assert_eq!(
            (rows[0].alive.oldest_ns, rows[0].alive.objects),
            (300, 120.0)
        );
        let grow: Vec<bool> = rows.iter().map(|row| row.alive.grows()).collect();
        assert_eq!(grow, [true, false, false]);
        // Lines are merged, and young objects have no stack there.
        let stacks = profile.alive_stacks();
        let frames: Vec<_> = stacks.iter().map(|row| row.frames.join(" < ")).collect();
        assert_eq!(frames, ["java.util.Map < a.A.x", "byte[] < a.A.y"]);
        let filter = WallFilter {
            to_ns: Some(100),
            ..WallFilter::default()
        };
        assert_eq!(profile.live_of(&filter).count(), 4 + 5);
    }

    #[test]
    fn sums_have_names_that_stay() {
        let profile = profile();
        let sums = profile.sums_by_stack(Objects::Alive, true);
        let sums: Vec<_> = sums
            .iter()
            .map(|(name, w)| (name.as_str(), w.sum))
            .collect();
        assert_eq!(sums, [("a.A.x;java.util.Map", 1200), ("a.A.y;byte[]", 500)]);
        let sums = profile.sums_by_class(Objects::Alive);
        assert_eq!(sums.len(), 2);
        assert!(profile.sums_by_class(Objects::Allocated).is_empty());
    }
}

//! The calls of a page. If stacks are deep and hardly ever repeat, most nodes of the call tree lead
//! to a single sample. Then frames that few other samples share are left out, except the innermost
//! one. All samples remain, methods keep their self time, and the page reports the number of
//! removed frames.

use std::borrow::Cow;
use std::collections::HashMap;

use dwell_jfr::hash::Seeds;
use dwell_profile::{CallTree, FrameKind, NodeId, Profile};
use serde_json::{Value, json};

/// Maximum number of nodes in a page without cuts: about 1 MB of it.
const NODES_MAX: usize = 250_000;
/// Approximate number of nodes after cuts, without the innermost frames of cut stacks.
const NODES_AIM: usize = 50_000;
/// A stack with at least this part of all samples, or of any measure of the page (CPU time, wall
/// time, bytes, time in locks), keeps all frames. Smaller ones are narrower than a line of the full
/// flame graph.
const PART_MIN: u32 = 10_000;
/// Stands for the frames that are left out.
const LEFT_OUT: &str = "[left out]";

/// The tree of a page.
pub(super) struct Calls<'p> {
    pub(super) parents: Cow<'p, [NodeId]>,
    /// Frames by node.
    pub(super) keys: Cow<'p, [u32]>,
    /// The page's node of each of the profile's, where they are others.
    nodes: Vec<NodeId>,
    pub(super) left_out: Option<LeftOut>,
}

/// Facts about removed frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    /// Stacks that fewer samples and other events share than this are cut.
    below: u32,
    /// Nodes of the profile's tree.
    nodes: usize,
    /// Samples and other events.
    events: u64,
    /// Those of cut stacks.
    cut: u64,
}

impl<'p> Calls<'p> {
    /// The calls of a profile.
    pub(super) fn of(profile: &'p Profile) -> Calls<'p> {
        match profile.tree().len() <= NODES_MAX {
            true => Calls::whole(profile.tree()),
            false => Calls::at_most(profile, NODES_AIM, PART_MIN),
        }
    }

    /// All of them, however many there are.
    pub(super) fn whole(tree: &'p CallTree) -> Calls<'p> {
        Calls {
            parents: tree.parents().into(),
            keys: tree.keys().into(),
            nodes: Vec::new(),
            left_out: None,
        }
    }

    /// Keeps about `most` nodes, and all nodes with one in `part` of a measure.
    fn at_most(profile: &'p Profile, most: usize, part: u32) -> Calls<'p> {
        let (tree, own, marker) = (profile.tree(), &*events(profile), marker(profile));
        let seen = Seen::of(profile, part);
        let totals = own_and_below(tree, own);
        let below = below(&totals, most, part);
        let mut calls = Calls {
            parents: Cow::Owned(vec![CallTree::ROOT]),
            keys: Cow::Owned(vec![CallTree::NO_KEY]),
            nodes: vec![CallTree::ROOT; tree.len()],
            left_out: None,
        };
        // The last node outwards that is kept, of the page, and whether others lie between.
        let mut kept = vec![(CallTree::ROOT, false); tree.len()];
        let mut known: HashMap<(NodeId, u32), NodeId, Seeds> = HashMap::default();
        let mut cut = 0;
        for (node, (&total, &own)) in totals.iter().zip(own).enumerate().skip(1) {
            let key = tree.key(node as NodeId);
            let parent = tree.parent(node as NodeId) as usize;
            let (above, is_cut) = kept.get(parent).copied().unwrap_or_default();
            if total >= below || seen.much.get(node) == Some(&true) {
                calls.nodes[node] = calls.add(above, key);
                kept[node] = (calls.nodes[node], false);
                continue;
            }
            kept[node] = (above, true);
            if own > 0 {
                let mut below = |above, key| {
                    let place = known.entry((above, key));
                    *place.or_insert_with(|| calls.add(above, key))
                };
                let above = match (is_cut, seen.below_class.get(node)) {
                    (false, _) => above,
                    (true, Some(true)) => {
                        // The innermost frame is the class of an object or a lock; the code is the
                        // frame before it.
                        let outer = tree.parent(parent as NodeId) as usize;
                        let (above, is_cut) = kept.get(outer).copied().unwrap_or_default();
                        let above = if is_cut { below(above, marker) } else { above };
                        below(above, tree.key(parent as NodeId))
                    }
                    (true, _) => below(above, marker),
                };
                calls.nodes[node] = below(above, key);
                cut += u64::from(own) * u64::from(is_cut);
            }
        }
        calls.left_out = Some(LeftOut {
            below,
            nodes: tree.len() - 1,
            events: own.iter().map(|&own| u64::from(own)).sum(),
            cut,
        });
        calls
    }

    fn add(&mut self, parent: NodeId, key: u32) -> NodeId {
        let node = self.parents.len() as NodeId;
        self.parents.to_mut().push(parent);
        self.keys.to_mut().push(key);
        node
    }

    /// The node in the page.
    pub(super) fn of_node(&self, node: NodeId) -> NodeId {
        self.nodes.get(node as usize).copied().unwrap_or(node)
    }

    /// Text of the frame for removed frames. The page then has one more name, method and frame.
    pub(super) fn marker(&self) -> Option<(&'static str, FrameKind)> {
        self.left_out.map(|_| (LEFT_OUT, FrameKind::Other))
    }

    /// Header entry about removed frames; null if there are none.
    pub(super) fn header(&self) -> Option<Value> {
        self.left_out.map(|left_out| {
            json!({
                "below": left_out.below,
                "nodes": left_out.nodes,
                "kept": self.parents.len() - 1,
                "events": left_out.events,
                "cut": left_out.cut,
            })
        })
    }
}

/// The frame after the last one.
fn marker(profile: &Profile) -> u32 {
    profile.frames().len() as u32
}

/// How many of all that the page shows each node has.
fn events(profile: &Profile) -> Vec<u32> {
    let mut own = vec![0u32; profile.tree().len()];
    let mut add = |node: Option<NodeId>| {
        if let Some(own) = node.and_then(|node| own.get_mut(node as usize)) {
            *own = own.saturating_add(1);
        }
    };
    profile.samples().iter().for_each(|it| add(Some(it.node)));
    for look in profile.looks() {
        add(Some(look.node));
        add(look.owner_node);
    }
    let allocations = profile.allocations().iter();
    allocations.for_each(|it| add(Some(it.node)));
    profile
        .live()
        .iter()
        .for_each(|it| add(Some(it.allocated.node)));
    profile.late().iter().for_each(|it| add(it.node));
    if profile.has_locks() {
        let waits = profile.locked(&dwell_profile::WallFilter::default());
        waits.iter().for_each(|it| add(Some(it.node)));
        for owner in profile.monitor_owners() {
            add(owner.node);
            add(Some(owner.waiter_node));
        }
    }
    own
}

/// Parts of a profile's tree, by node, that are always visible.
struct Seen {
    /// By node: whether it is a sufficient part of one of the page's measures.
    much: Vec<bool>,
    /// It is the class of an object or a lock, and stands below code.
    below_class: Vec<bool>,
    /// One in how many.
    part: u32,
}

impl Seen {
    fn of(profile: &Profile, part: u32) -> Seen {
        let tree = profile.tree();
        let mut seen = Seen {
            much: vec![false; tree.len()],
            below_class: vec![false; tree.len()],
            part,
        };
        let samples = profile.samples().iter();
        seen.measure(tree, samples.map(|it| (it.node, it.weight)));
        let looks = profile.looks();
        seen.measure(tree, looks.iter().map(|it| (it.node, it.weight_ns)));
        let owners = looks.iter();
        let owners = owners.filter_map(|it| it.owner_node.map(|node| (node, it.weight_ns)));
        seen.measure(tree, owners);
        let late = profile.late().iter();
        seen.measure(
            tree,
            late.filter_map(|it| it.node.map(|node| (node, it.held_ns))),
        );
        let held = profile.monitor_owners();
        seen.measure(
            tree,
            held.iter()
                .filter_map(|it| it.node.map(|node| (node, it.weight_ns))),
        );
        seen.measure(tree, held.iter().map(|it| (it.waiter_node, it.weight_ns)));
        let allocations = profile.allocations().iter();
        let allocations = allocations.map(|it| (it.node, it.bytes));
        seen.classes(tree, allocations);
        let live = profile.live().iter();
        seen.classes(tree, live.map(|it| (it.allocated.node, it.allocated.bytes)));
        if profile.has_locks() {
            let waits = profile.locked(&dwell_profile::WallFilter::default());
            seen.classes(tree, waits.iter().map(|it| (it.node, it.weight.sum)));
        }
        seen
    }

    fn classes(&mut self, tree: &CallTree, of: impl Iterator<Item = (NodeId, u64)> + Clone) {
        for (node, _) in of.clone() {
            if let Some(is) = self.below_class.get_mut(node as usize) {
                *is = true;
            }
        }
        self.measure(tree, of);
    }

    /// Marks nodes with a sufficient part of one measure; none if the measure is empty.
    fn measure(&mut self, tree: &CallTree, of: impl Iterator<Item = (NodeId, u64)>) {
        let mut of = of.peekable();
        if of.peek().is_none() {
            return;
        }
        let mut sums = vec![0u64; tree.len()];
        for (node, value) in of {
            if let Some(sum) = sums.get_mut(node as usize) {
                *sum = sum.saturating_add(value);
            }
        }
        for node in (1..sums.len()).rev() {
            let parent = tree.parent(node as NodeId) as usize;
            let below = sums.get(node).copied().unwrap_or(0);
            if let Some(sum) = sums.get_mut(parent) {
                *sum = sum.saturating_add(below);
            }
        }
        let least = sums
            .first()
            .map_or(0, |all| all / u64::from(self.part))
            .max(1);
        for (much, sum) in self.much.iter_mut().zip(&sums) {
            *much |= *sum >= least;
        }
    }
}

/// Events of each node and of all below it.
fn own_and_below(tree: &CallTree, own: &[u32]) -> Vec<u32> {
    let mut totals = own.to_vec();
    for node in (1..totals.len()).rev() {
        let parent = tree.parent(node as NodeId) as usize;
        let below = totals.get(node).copied().unwrap_or(0);
        if let Some(total) = totals.get_mut(parent) {
            *total = total.saturating_add(below);
        }
    }
    totals
}

/// Least number of events in and below a node for it to stay, so that at most `most` nodes stay.
/// Each cut adds one or two nodes for frames that are innermost somewhere.
fn below(totals: &[u32], most: usize, part: u32) -> u32 {
    let all = totals.first().copied().unwrap_or(0);
    let largest = (all / part).max(2);
    let mut nodes = vec![0usize; largest as usize + 1];
    for total in totals {
        if let Some(nodes) = nodes.get_mut((*total).min(largest) as usize) {
            *nodes += 1;
        }
    }
    let mut kept = 0;
    let fits = |(_, nodes): &(usize, usize)| {
        kept += nodes;
        kept <= most
    };
    let from_the_top = nodes.into_iter().enumerate().rev();
    let least = from_the_top.take_while(fits).last();
    least.map_or(largest, |(total, _)| (total as u32).max(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Builder, Sample};
    use proptest::prelude::*;

    /// So few parts that no stack is large by its weight.
    const PART: u32 = 1;

    /// A profile with a sample for each of these stacks, the outermost frame first; frames are
    /// numbered as they come.
    fn profile(stacks: &[Vec<u8>]) -> Profile {
        let mut builder = Builder::default();
        let thread = builder.thread("t", 1, 1, false);
        for (number, stack) in stacks.iter().enumerate() {
            let frames: Vec<u32> = stack
                .iter()
                .map(|name| {
                    let method = builder.method("", &name.to_string(), "");
                    builder.frame(method, 0, FrameKind::C2)
                })
                .collect();
            let node = builder.stack(frames);
            builder.sample(Sample {
                time_ns: number as u64,
                thread,
                node,
                weight: 1,
                count: 1,
                failure: None,
                context: None,
            });
        }
        builder.finish()
    }

    /// The stack of a node in the page, the outermost first.
    fn stack(calls: &Calls<'_>, node: NodeId) -> Vec<u32> {
        let mut at = calls.of_node(node);
        let mut keys = Vec::new();
        while at != CallTree::ROOT {
            keys.push(calls.keys[at as usize]);
            let parent = calls.parents[at as usize];
            assert!(parent < at, "parents come first");
            at = parent;
        }
        keys.reverse();
        keys
    }

    fn stacks(profile: &Profile, most: usize) -> (Vec<Vec<u32>>, Calls<'_>) {
        let calls = Calls::at_most(profile, most, PART);
        let all = profile.samples().iter();
        (
            all.map(|sample| stack(&calls, sample.node)).collect(),
            calls,
        )
    }

    #[test]
    fn a_small_tree_is_as_it_was() {
        let profile = profile(&[vec![1, 2, 3], vec![1, 2]]);
        let calls = Calls::of(&profile);
        assert_eq!((calls.left_out, calls.header()), (None, None));
        assert_eq!(calls.parents.len(), profile.tree().len());
        assert_eq!(stack(&calls, profile.samples()[0].node), [0, 1, 2]);
    }

    #[test]
    fn of_rare_stacks_the_innermost_frame_is_left() {
        let profile = profile(&[
            vec![1, 2],
            vec![1, 2, 3],
            vec![1, 2, 4, 5, 6],
            vec![1, 2, 7, 6],
            vec![8, 9, 6],
        ]);
        let (stacks, calls) = stacks(&profile, 3);
        // Frames by number: 1 2 3 4 5 6 7 8 9 are 0 1 2 3 4 5 6 7 8, and 9 the one for the others.
        assert_eq!(stacks[0], [0, 1]);
        assert_eq!(stacks[1], [0, 1, 2], "nothing lies between");
        assert_eq!(stacks[2], [0, 1, 9, 5]);
        assert_eq!(stacks[3], [0, 1, 9, 5]);
        assert_eq!(stacks[4], [9, 5]);
        let left_out = LeftOut {
            below: 2,
            nodes: 11,
            events: 5,
            cut: 3,
        };
        assert_eq!(calls.left_out, Some(left_out));
        // Root, the two that are shared, one alone, and twice a marker and a frame.
        assert_eq!(calls.parents.len(), 8);
        assert_eq!(calls.header().unwrap()["kept"], 7);
    }

    #[test]
    fn shared_frames_stay_in_a_tree_of_any_size() {
        let mut totals = vec![100_000, 50_000, 9, 9, 3];
        assert_eq!(below(&totals, 4, PART_MIN), 4);
        assert_eq!(below(&totals, 5, PART_MIN), 2);
        totals.extend([12; 50]);
        assert_eq!(below(&totals, 2, PART_MIN), 10, "one in ten thousand");
        assert_eq!(below(&[1, 1, 1], 0, PART_MIN), 2);
    }

    /// Looks and bytes keep their weight for any number of samples. Below a class that is cut is
    /// the method that it belongs to.
    #[test]
    fn heavy_stacks_stay_and_classes_keep_their_method() {
        let mut builder = Builder::default();
        let thread = builder.thread("t", 1, 1, false);
        let mut frame = |name: &str| {
            let method = builder.method("", name, "");
            builder.frame(method, 0, FrameKind::C2)
        };
        let frames = ["a", "b", "c", "d", "Class"].map(&mut frame);
        let [one, two] = [[0, 1, 2], [3, 1, 2]].map(|of| builder.stack(of.map(|at| frames[at])));
        let class = builder.child(two, frames[4]);
        let other = builder.child(one, frames[4]);
        let cause = builder.cause("park");
        for (node, weight_ns) in [(one, 7), (two, 3)] {
            builder.look(dwell_profile::Look {
                time_ns: 0,
                duration_ns: 0,
                thread,
                node,
                cause,
                weight_ns,
                count: 1,
                choices: 0,
                context: None,
                detail: None,
                owner: None,
                owner_node: None,
            });
        }
        for node in [class, other] {
            builder.allocations.push(dwell_profile::Allocation {
                time_ns: 0,
                thread,
                node,
                class: 0,
                bytes: 16,
                size: 16,
                context: None,
            });
        }
        let profile = builder.finish();
        let of = |part| {
            let calls = Calls::at_most(&profile, 0, part);
            [one, two, class].map(|node| stack(&calls, node))
        };
        let whole = [vec![0, 1, 2], vec![3, 1, 2], vec![3, 1, 2, 4]];
        assert_eq!(of(10), whole, "a tenth of looks or bytes");
        // Two events go through each of the others.
        let calls = Calls::at_most(&profile, 0, 2);
        assert_eq!(stack(&calls, one), whole[0], "half of all looks");
        let below = |most| {
            let totals = own_and_below(profile.tree(), &events(&profile));
            below(&totals, most, PART)
        };
        assert!(below(0) > 2, "none is kept by its number");
        assert_eq!(of(PART), [vec![5, 2], vec![5, 2], vec![5, 2, 4]]);
    }

    proptest! {
        /// No event is lost, its innermost frame stays the same, and the remaining frames are the
        /// outermost ones.
        #[test]
        fn cut_stacks_begin_and_end_as_they_did(
            stacks in proptest::collection::vec(
                proptest::collection::vec(0u8..4, 1..8),
                1..40,
            ),
            most in 0usize..60,
        ) {
            let profile = profile(&stacks);
            let (cut, calls) = self::stacks(&profile, most);
            let marker = marker(&profile);
            for (sample, cut) in profile.samples().iter().zip(&cut) {
                let mut whole: Vec<u32> = profile.tree().stack(sample.node).collect();
                whole.reverse();
                prop_assert_eq!(cut.last(), whole.last());
                match cut.iter().position(|key| *key == marker) {
                    Some(at) => {
                        prop_assert_eq!(at + 2, cut.len());
                        prop_assert_eq!(&cut[..at], &whole[..at]);
                        prop_assert!(cut.len() <= whole.len());
                    }
                    None => prop_assert_eq!(cut, &whole),
                }
            }
            let left_out = calls.left_out.unwrap();
            let marked = cut.iter().filter(|cut| cut.contains(&marker)).count();
            prop_assert_eq!(left_out.cut, marked as u64);
            prop_assert_eq!(left_out.events, stacks.len() as u64);
        }
    }
}

//! The calls of a page. Where stacks are deep and hardly one is met twice, most nodes of the tree
//! of calls lie on the way to a single sample: of such a stack the frames that few others share
//! are left out, all but the innermost one. No sample is left out, and what methods take themselves
//! stays what it was; what was left out is said.

use std::borrow::Cow;
use std::collections::HashMap;

use dwell_jfr::hash::Seeds;
use dwell_profile::{CallTree, FrameKind, NodeId, Profile};
use serde_json::{Value, json};

/// So many nodes are in a page as they are: some 1 MB of it.
const NODES_MAX: usize = 250_000;
/// Of more, about so many are, and besides the innermost frames of those that are cut.
const NODES_AIM: usize = 50_000;
/// Stacks that are one in so many of all are left as they are, and those that two share may be cut
/// in any case: what is left out is narrower than a line of a flame graph of all.
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

/// What is not in the page.
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
            false => Calls::at_most(profile.tree(), &events(profile), marker(profile), NODES_AIM),
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

    /// `own`: events by node; `marker`: the frame for what is left out.
    fn at_most(tree: &'p CallTree, own: &[u32], marker: u32, most: usize) -> Calls<'p> {
        let totals = own_and_below(tree, own);
        let below = below(&totals, most);
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
            if total >= below {
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
                let above = if is_cut { below(above, marker) } else { above };
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

    /// The text of the frame for what is left out, of which the page has one more name, method and
    /// frame then.
    pub(super) fn marker(&self) -> Option<(&'static str, FrameKind)> {
        self.left_out.map(|_| (LEFT_OUT, FrameKind::Other))
    }

    /// What the header says of it; null where nothing is left out.
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

/// How many events a node needs, with those of the nodes below it, to be in the page as it is, so
/// that no more than `most` are (those that are cut add one or two for each frame that is the
/// innermost of some).
fn below(totals: &[u32], most: usize) -> u32 {
    let all = totals.first().copied().unwrap_or(0);
    let largest = (all / PART_MIN).max(2);
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

    const MARKER: u32 = 1000;

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
        let calls = Calls::at_most(profile.tree(), &events(profile), MARKER, most);
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
        // Frames by number: 1 2 3 4 5 6 7 8 9 are 0 1 2 3 4 5 6 7 8.
        assert_eq!(stacks[0], [0, 1]);
        assert_eq!(stacks[1], [0, 1, 2], "nothing lies between");
        assert_eq!(stacks[2], [0, 1, MARKER, 5]);
        assert_eq!(stacks[3], [0, 1, MARKER, 5]);
        assert_eq!(stacks[4], [MARKER, 5]);
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
    fn what_many_share_stays_however_large_the_tree_is() {
        let mut totals = vec![100_000, 50_000, 9, 9, 3];
        assert_eq!(below(&totals, 4), 4);
        assert_eq!(below(&totals, 5), 2);
        totals.extend([12; 50]);
        assert_eq!(below(&totals, 2), 10, "one in ten thousand");
        assert_eq!(below(&[1, 1, 1], 0), 2);
    }

    proptest! {
        /// No event is lost, its innermost frame is what it was, and what is left of the others
        /// are the outermost ones.
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
            for (sample, cut) in profile.samples().iter().zip(&cut) {
                let mut whole: Vec<u32> = profile.tree().stack(sample.node).collect();
                whole.reverse();
                prop_assert_eq!(cut.last(), whole.last());
                match cut.iter().position(|key| *key == MARKER) {
                    Some(at) => {
                        prop_assert_eq!(at + 2, cut.len());
                        prop_assert_eq!(&cut[..at], &whole[..at]);
                        prop_assert!(cut.len() <= whole.len());
                    }
                    None => prop_assert_eq!(cut, &whole),
                }
            }
            let left_out = calls.left_out.unwrap();
            let marked = cut.iter().filter(|cut| cut.contains(&MARKER)).count();
            prop_assert_eq!(left_out.cut, marked as u64);
            prop_assert_eq!(left_out.events, stacks.len() as u64);
        }
    }
}

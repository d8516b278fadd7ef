//! The call tree: all stacks of a profile, sharing their common outer frames.
//!
//! A node is one stack, read from the root to the node. Parents always have smaller numbers than
//! their children, so a loop over the numbers backwards visits children before their parents.

use dwell_jfr::hash::Seeds;
use std::collections::HashMap;

/// Index of a node; [`CallTree::ROOT`] is the empty stack.
pub type NodeId = u32;

/// A finished call tree over keys (frames, or whatever frames were merged by).
#[derive(Clone, Debug)]
pub struct CallTree {
    parent: Vec<NodeId>,
    key: Vec<u32>,
    // Children of node n: child[first[n]..first[n + 1]], in ascending number.
    first: Vec<u32>,
    child: Vec<NodeId>,
}

impl CallTree {
    /// The root, which stands for no frame.
    pub const ROOT: NodeId = 0;
    /// The key of the root.
    pub const NO_KEY: u32 = u32::MAX;

    /// Number of nodes, the root included.
    pub fn len(&self) -> usize {
        self.parent.len()
    }

    /// Whether there is no stack at all.
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }

    /// The parents, by node; the root is its own.
    pub fn parents(&self) -> &[NodeId] {
        &self.parent
    }

    /// The keys, by node; [`CallTree::NO_KEY`] for the root.
    pub fn keys(&self) -> &[u32] {
        &self.key
    }

    /// The parent of `node`.
    pub fn parent(&self, node: NodeId) -> NodeId {
        self.parent
            .get(node as usize)
            .copied()
            .unwrap_or(Self::ROOT)
    }

    /// The key of `node`.
    pub fn key(&self, node: NodeId) -> u32 {
        self.key.get(node as usize).copied().unwrap_or(Self::NO_KEY)
    }

    /// The children of `node`.
    pub fn children(&self, node: NodeId) -> &[NodeId] {
        let node = node as usize;
        let (Some(&from), Some(&to)) = (self.first.get(node), self.first.get(node + 1)) else {
            return &[];
        };
        self.child.get(from as usize..to as usize).unwrap_or(&[])
    }

    /// The keys from `node` outwards, the innermost first.
    pub fn stack(&self, node: NodeId) -> impl Iterator<Item = u32> {
        let mut at = node;
        std::iter::from_fn(move || {
            if at == Self::ROOT {
                return None;
            }
            let key = self.key(at);
            at = self.parent(at);
            Some(key)
        })
    }

    /// Visits every node below the root in depth-first order: `step(node, true)` on the way in and
    /// `step(node, false)` on the way out. `order` may rearrange the children of a node.
    pub fn walk(&self, mut order: impl FnMut(&mut [NodeId]), mut step: impl FnMut(NodeId, bool)) {
        let mut open: Vec<(NodeId, bool)> = Vec::new();
        let mut children: Vec<NodeId> = Vec::new();
        let mut push = |open: &mut Vec<(NodeId, bool)>, node: NodeId| {
            children.clear();
            children.extend_from_slice(self.children(node));
            order(&mut children);
            open.extend(children.iter().rev().map(|&child| (child, true)));
        };
        push(&mut open, Self::ROOT);
        while let Some((node, entering)) = open.pop() {
            step(node, entering);
            if entering {
                open.push((node, false));
                push(&mut open, node);
            }
        }
    }

    /// Sums `own` over every subtree: element n is n's own value plus those of all below it.
    pub fn totals<T: Clone + for<'a> std::ops::AddAssign<&'a T>>(&self, own: &[T]) -> Vec<T> {
        let mut totals = own.to_vec();
        for node in (1..self.len().min(totals.len())).rev() {
            let parent = self.parent(node as NodeId) as usize;
            // Split so that both can be borrowed: a parent always lies before its child.
            let (before, from) = totals.split_at_mut(node);
            if let (Some(parent), Some(child)) = (before.get_mut(parent), from.first()) {
                *parent += child;
            }
        }
        totals
    }
}

/// A call tree that still grows.
#[derive(Clone, Debug)]
pub struct TreeBuilder {
    parent: Vec<NodeId>,
    key: Vec<u32>,
    known: HashMap<(NodeId, u32), NodeId, Seeds>,
}

impl Default for TreeBuilder {
    fn default() -> Self {
        TreeBuilder {
            parent: vec![CallTree::ROOT],
            key: vec![CallTree::NO_KEY],
            known: HashMap::default(),
        }
    }
}

impl TreeBuilder {
    /// The child of `parent` with `key`, new or known. A `parent` that does not exist is taken as
    /// the root.
    pub fn child(&mut self, parent: NodeId, key: u32) -> NodeId {
        let parent = if (parent as usize) < self.parent.len() {
            parent
        } else {
            CallTree::ROOT
        };
        let next = u32::try_from(self.parent.len()).unwrap_or(u32::MAX);
        let node = *self.known.entry((parent, key)).or_insert(next);
        if node == next {
            self.parent.push(parent);
            self.key.push(key);
        }
        node
    }

    /// The node of a stack given from the outermost frame inwards.
    pub fn stack(&mut self, keys: impl IntoIterator<Item = u32>) -> NodeId {
        keys.into_iter()
            .fold(CallTree::ROOT, |node, key| self.child(node, key))
    }

    /// The parent of `node`.
    pub(crate) fn parent(&self, node: NodeId) -> NodeId {
        self.parent
            .get(node as usize)
            .copied()
            .unwrap_or(CallTree::ROOT)
    }

    /// The keys of a node and of those above it, innermost first.
    pub(crate) fn keys_up(&self, node: NodeId) -> impl Iterator<Item = u32> {
        let mut at = node as usize;
        // Parents come before their children, so this ends.
        std::iter::from_fn(move || {
            let key = self.key.get(at).copied().filter(|_| at > 0)?;
            at = self.parent.get(at).map_or(0, |parent| *parent as usize);
            Some(key)
        })
    }

    /// Number of nodes so far, the root included.
    pub fn len(&self) -> usize {
        self.parent.len()
    }

    /// Whether there is only the root.
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }

    /// The finished tree, with its children indexed.
    pub fn finish(self) -> CallTree {
        let nodes = self.parent.len();
        let mut first = vec![0u32; nodes + 1];
        for &parent in self.parent.iter().skip(1) {
            first[parent as usize + 1] += 1;
        }
        for node in 0..nodes {
            first[node + 1] += first[node];
        }
        let mut free = first.clone();
        let mut child = vec![0; nodes - 1];
        for (node, &parent) in self.parent.iter().enumerate().skip(1) {
            let slot = &mut free[parent as usize];
            child[*slot as usize] = node as NodeId;
            *slot += 1;
        }
        CallTree {
            parent: self.parent,
            key: self.key,
            first,
            child,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> CallTree {
        let mut builder = TreeBuilder::default();
        builder.stack([1, 2, 3]);
        builder.stack([1, 4]);
        builder.stack([5]);
        builder.finish()
    }

    #[test]
    fn shares_outer_frames() {
        let tree = sample();
        assert_eq!(tree.len(), 6);
        assert_eq!(tree.children(CallTree::ROOT), [1, 5]);
        assert_eq!(tree.children(1), [2, 4]);
        assert_eq!(tree.stack(3).collect::<Vec<_>>(), [3, 2, 1]);
        assert_eq!(tree.children(77), []);
    }

    #[test]
    fn only_a_root_is_empty() {
        let mut builder = TreeBuilder::default();
        assert!(builder.is_empty() && builder.clone().finish().is_empty());
        assert_eq!((builder.len(), builder.child(77, 5)), (1, 1));
        assert!(!builder.is_empty() && !builder.clone().finish().is_empty());
        assert_eq!(builder.finish().parents(), [CallTree::ROOT; 2]);
    }

    #[test]
    fn walks_in_and_out_in_the_given_order() {
        let mut seen = Vec::new();
        sample().walk(
            |children| children.reverse(),
            |node, entering| seen.push((node, entering)),
        );
        let entered: Vec<_> = seen
            .iter()
            .filter(|step| step.1)
            .map(|step| step.0)
            .collect();
        assert_eq!(entered, [5, 1, 4, 2, 3]);
        assert_eq!(seen.iter().filter(|step| !step.1).count(), 5);
        assert_eq!(seen.last(), Some(&(1, false)));
    }

    #[test]
    fn totals_sum_subtrees() {
        let own = [0u64, 1, 2, 4, 8, 16].map(Sum);
        assert_eq!(sample().totals(&own).map_sum(), [31, 15, 6, 4, 8, 16]);
    }

    #[test]
    fn a_hundred_thousand_levels_are_fine() {
        let mut builder = TreeBuilder::default();
        builder.stack(std::iter::repeat_n(7, 100_000));
        let tree = builder.finish();
        let mut steps = 0;
        tree.walk(|_| {}, |_, _| steps += 1);
        assert_eq!(steps, 200_000);
        assert_eq!(tree.totals(&vec![Sum(1); tree.len()])[0].0, 100_001);
    }

    #[derive(Clone, Copy)]
    struct Sum(u64);
    impl std::ops::AddAssign<&Sum> for Sum {
        fn add_assign(&mut self, other: &Sum) {
            self.0 += other.0;
        }
    }
    trait MapSum {
        fn map_sum(self) -> Vec<u64>;
    }
    impl MapSum for Vec<Sum> {
        fn map_sum(self) -> Vec<u64> {
            self.into_iter().map(|sum| sum.0).collect()
        }
    }
}

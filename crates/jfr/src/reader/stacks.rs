//! Stacks that share their outer frames: a deep stack has most frames in common with the one
//! before. A recording with hundreds of thousands of stacks of hundreds of frames has only a few
//! million places where one frame calls another.

use super::model::{Stack, StackFrame};
use crate::hash::{Seeds, mixed};
use std::collections::HashMap;

/// A node: a frame, and all that called it. 0: none, where stacks begin.
pub type StackNode = u32;

/// All stacks of a recording, each once, by place.
#[derive(Debug, Clone, Default)]
pub struct Stacks {
    /// Of node n + 1.
    frames: Vec<StackFrame>,
    /// The nodes that called them: smaller numbers than theirs.
    callers: Vec<StackNode>,
    /// By place.
    ends: Vec<(StackNode, bool)>,
}

impl Stacks {
    /// How many stacks there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The stack at a place.
    pub fn get(&self, place: u32) -> Option<Stack> {
        let (leaf, truncated) = self.end(place)?;
        let frames = self.outwards(leaf).map(|(_, frame)| *frame).collect();
        Some(Stack { frames, truncated })
    }

    /// All of them, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = Stack> {
        (0..self.ends.len()).filter_map(|place| self.get(place as u32))
    }

    /// The innermost node of the stack at a place, 0 if it has no frame, and whether frames are
    /// missing at the root end.
    pub fn end(&self, place: u32) -> Option<(StackNode, bool)> {
        self.ends.get(place as usize).copied()
    }

    /// The greatest node.
    pub fn last_node(&self) -> StackNode {
        self.frames.len() as StackNode
    }

    /// The frames of all nodes, by node from 1 on.
    pub fn node_frames(&self) -> &[StackFrame] {
        &self.frames
    }

    /// From a node to the outermost one: each with its frame.
    pub fn outwards(&self, from: StackNode) -> impl Iterator<Item = (StackNode, &StackFrame)> {
        let mut at = from;
        std::iter::from_fn(move || {
            let node = at;
            let place = node.checked_sub(1)? as usize;
            let frame = self.frames.get(place)?;
            at = self.callers.get(place).copied()?;
            Some((node, frame))
        })
    }

    fn is(&self, node: StackNode, caller: StackNode, frame: &StackFrame) -> bool {
        let place = node.wrapping_sub(1) as usize;
        self.callers.get(place) == Some(&caller) && self.frames.get(place) == Some(frame)
    }
}

impl PartialEq for Stacks {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

/// Stacks while a file is read.
#[derive(Default)]
pub(crate) struct StackTable {
    stacks: Stacks,
    /// Nodes by hash, with free slots between: more than a third of them.
    slots: Vec<StackNode>,
    /// Places by their ends.
    places: HashMap<(StackNode, bool), u32, Seeds>,
    seeds: Seeds,
    /// The nodes of the last stack, the outermost first.
    last: Vec<StackNode>,
}

impl StackTable {
    /// The place of a stack, innermost frame first, which is kept if it is new.
    pub(crate) fn place(&mut self, frames: &[StackFrame], truncated: bool) -> u32 {
        let stacks = &self.stacks;
        let frame_of = |node: StackNode| stacks.frames.get(node.wrapping_sub(1) as usize);
        let outer = frames.iter().rev().zip(&self.last);
        let same = outer.take_while(|(frame, node)| frame_of(**node) == Some(*frame));
        let same = same.count();
        self.last.truncate(same);
        let mut at = self.last.last().copied().unwrap_or(0);
        for frame in frames.iter().rev().skip(same) {
            at = self.child(at, frame);
            self.last.push(at);
        }
        let next = self.stacks.ends.len() as u32;
        let place = *self.places.entry((at, truncated)).or_insert(next);
        if place == next {
            self.stacks.ends.push((at, truncated));
        }
        place
    }

    /// All of them.
    pub(crate) fn finish(self) -> Stacks {
        self.stacks
    }

    fn child(&mut self, caller: StackNode, frame: &StackFrame) -> StackNode {
        if (self.stacks.frames.len() + 1) * 3 > self.slots.len() * 2 {
            self.grow();
        }
        let mut slot = self.hash(caller, frame) as usize;
        let mask = self.slots.len().saturating_sub(1);
        loop {
            slot &= mask;
            let Some(found) = self.slots.get_mut(slot) else {
                return 0;
            };
            if *found == 0 {
                // A file that memory holds has fewer than 2^32 frames.
                self.stacks.frames.push(*frame);
                self.stacks.callers.push(caller);
                *found = self.stacks.last_node();
                return *found;
            }
            if self.stacks.is(*found, caller, frame) {
                return *found;
            }
            slot += 1;
        }
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(64);
        self.slots = Vec::new();
        self.slots.resize(slots, 0);
        let mask = slots - 1;
        for place in 0..self.stacks.frames.len() {
            let (Some(frame), Some(caller)) = (
                self.stacks.frames.get(place),
                self.stacks.callers.get(place),
            ) else {
                break;
            };
            let mut slot = self.hash(*caller, frame) as usize & mask;
            while self.slots.get(slot).is_some_and(|node| *node != 0) {
                slot = (slot + 1) & mask;
            }
            if let Some(free) = self.slots.get_mut(slot) {
                *free = place as StackNode + 1;
            }
        }
    }

    fn hash(&self, caller: StackNode, frame: &StackFrame) -> u64 {
        let Seeds(seeds) = self.seeds;
        let [method, line, bci] = [frame.method, frame.line as u32, frame.bci as u32];
        let place = u64::from(method) << 32 | u64::from(line);
        let code = u64::from(bci) << 8 | frame.kind as u64;
        // Each step is one multiplication, which a zero would undo.
        let hash = mixed(u64::from(caller), seeds, place, code);
        mixed(hash, seeds, u64::from(caller), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FrameKind;
    use proptest::prelude::*;

    fn frame(method: u32, line: i32) -> StackFrame {
        StackFrame {
            method,
            line,
            bci: line / 2,
            kind: FrameKind::C2,
        }
    }

    proptest! {
        /// As a table of whole stacks would have it.
        #[test]
        fn each_stack_is_there_once_and_as_it_was(
            all in proptest::collection::vec(
                (proptest::collection::vec((0..4u32, 0..3i32), 0..12), any::<bool>()),
                0..200,
            )
        ) {
            let (mut table, mut seen) = (StackTable::default(), Vec::<Stack>::new());
            for (frames, truncated) in all {
                let frames: Vec<_> = frames.iter().map(|(m, l)| frame(*m, *l)).collect();
                let place = table.place(&frames, truncated);
                let stack = Stack { frames, truncated };
                let known = seen.iter().position(|known| *known == stack);
                prop_assert_eq!(place as usize, known.unwrap_or(seen.len()));
                if known.is_none() {
                    seen.push(stack);
                }
            }
            let stacks = table.finish();
            prop_assert_eq!(stacks.iter().collect::<Vec<_>>(), seen);
        }
    }

    #[test]
    fn outer_frames_are_shared() {
        let mut table = StackTable::default();
        for leaf in 0..1000 {
            let mut frames = vec![frame(leaf, 1)];
            frames.extend((0..100).map(|at| frame(5000 + at, 2)));
            assert_eq!(table.place(&frames, false), leaf);
        }
        assert_eq!(table.place(&[], false), 1000);
        let stacks = table.finish();
        assert_eq!((stacks.last_node(), stacks.len()), (1100, 1001));
        assert_eq!(stacks.end(1000), Some((0, false)));
        assert_eq!(stacks.get(1000), Some(Stack::default()));
        assert_eq!(stacks.get(1001), None);
        let (leaf, _) = stacks.end(7).unwrap();
        let nodes: Vec<_> = stacks.outwards(leaf).map(|(node, _)| node).collect();
        assert!(nodes.windows(2).all(|pair| pair[0] > pair[1]), "{nodes:?}");
        assert_eq!(nodes.len(), 101);
        assert_eq!(stacks.node_frames()[nodes[1] as usize - 1], frame(5000, 2));
    }
}

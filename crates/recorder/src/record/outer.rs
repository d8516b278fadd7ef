//! The common part of a sample's stack and the one before of the same thread: nearly always the
//! outer frames, which are named and hashed already.

use crate::record::batch::PendingFrame;
use dwell_walker::Frame;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// Stacks remembered; threads share them by their keys.
const PLACES: usize = 16;

/// A stack, innermost frame first.
#[derive(Default)]
pub struct NamedStack {
    /// As the walk had it.
    frames: Vec<Frame>,
    /// The same frames with their names.
    pending: Vec<PendingFrame>,
    /// A hash for each frame, of it and all outer ones.
    hashes: Vec<u64>,
    thread: u64,
    moment: u64,
}

impl NamedStack {
    /// The frames with their names.
    #[must_use]
    pub fn pending(&self) -> &[PendingFrame] {
        &self.pending
    }

    /// A hash of all frames.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hashes.first().copied().unwrap_or(0)
    }
}

/// The stacks of this moment.
#[derive(Default)]
pub struct Outer {
    places: [NamedStack; PLACES],
    moment: u64,
    spare: NamedStack,
}

impl Outer {
    /// Earlier names may not hold any more.
    pub fn clear(&mut self) {
        self.moment += 1;
    }

    /// Names the frames of a stack of `thread`: by `name` where they differ from its stack before.
    /// `name` may return that a frame must not be remembered. Then no part of this stack is used
    /// for the next one.
    pub fn name(
        &mut self,
        thread: u64,
        frames: &[Frame],
        mut name: impl FnMut(&Frame) -> (PendingFrame, bool),
    ) -> &NamedStack {
        let place = thread as usize % PLACES;
        let mut new = std::mem::take(&mut self.spare);
        let empty = NamedStack::default();
        let before = match self.places.get(place) {
            Some(last) if last.moment == self.moment && last.thread == thread => last,
            _ => &empty,
        };
        let pairs = frames.iter().rev().zip(before.frames.iter().rev());
        let common = pairs.take_while(|(a, b)| a == b).count();
        let inner = frames.len() - common;
        let skipped = before.frames.len() - common;
        (new.thread, new.moment) = (thread, self.moment);
        new.frames.clear();
        new.frames.extend_from_slice(frames);
        new.pending.clear();
        for frame in frames.iter().take(inner) {
            let (pending, lasting) = name(frame);
            new.pending.push(pending);
            if !lasting {
                new.moment = u64::MAX;
            }
        }
        new.pending
            .extend_from_slice(before.pending.get(skipped..).unwrap_or(&[]));
        new.hashes.clear();
        new.hashes.resize(inner, 0);
        new.hashes
            .extend_from_slice(before.hashes.get(skipped..).unwrap_or(&[]));
        let mut hash = new.hashes.get(inner).copied().unwrap_or(0);
        let own = new.hashes.iter_mut().zip(&new.pending).take(inner).rev();
        for (slot, pending) in own {
            let mut hasher = FxHasher::default();
            hash.hash(&mut hasher);
            pending.hash(&mut hasher);
            hash = hasher.finish();
            *slot = hash;
        }
        if let Some(last) = self.places.get_mut(place) {
            self.spare = std::mem::replace(last, new);
        }
        self.places.get(place).unwrap_or(&self.spare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::batch::Code;
    use crate::record::names::NameId;
    use dwell_jfr::FrameKind as FileKind;
    use dwell_walker::FrameKind;
    use proptest::prelude::*;

    fn stack(ids: &[u64]) -> Vec<Frame> {
        let frame = |id: &u64| Frame {
            kind: FrameKind::C2,
            bci: 0,
            id: *id,
        };
        ids.iter().map(frame).collect()
    }

    fn named(frame: &Frame) -> PendingFrame {
        PendingFrame {
            code: Code::Named(NameId(frame.id as u32 + 100)),
            kind: FileKind::C2,
            line: frame.id as i32,
            bci: 0,
        }
    }

    #[test]
    fn only_new_frames_are_named() {
        let mut outer = Outer::default();
        let mut asked = Vec::new();
        let mut ask = |outer: &mut Outer, thread, ids: &[u64]| {
            asked.clear();
            outer.name(thread, &stack(ids), |frame| {
                asked.push(frame.id);
                (named(frame), true)
            });
            asked.clone()
        };
        assert_eq!(ask(&mut outer, 1, &[5, 4, 3]), [5, 4, 3]);
        assert_eq!(ask(&mut outer, 1, &[9, 8, 4, 3]), [9, 8]);
        assert_eq!(ask(&mut outer, 1, &[3]), []);
        assert_eq!(ask(&mut outer, 2, &[3]), [3]);
        assert_eq!(ask(&mut outer, 1, &[4, 3]), [4]);
        outer.clear();
        assert_eq!(ask(&mut outer, 1, &[4, 3]), [4, 3]);
        // Another thread at the same place.
        assert_eq!(ask(&mut outer, 1 + PLACES as u64, &[4, 3]), [4, 3]);
        assert_eq!(ask(&mut outer, 1, &[4, 3]), [4, 3]);
    }

    #[test]
    fn unstable_names_are_not_remembered() {
        let mut outer = Outer::default();
        outer.name(1, &stack(&[2, 1]), |frame| (named(frame), frame.id != 1));
        let mut asked = 0;
        outer.name(1, &stack(&[2, 1]), |frame| {
            asked += 1;
            (named(frame), true)
        });
        assert_eq!(asked, 2);
    }

    proptest! {
        #[test]
        fn stacks_are_named_as_if_nothing_was_remembered(
            stacks in proptest::collection::vec(
                (0u64..6, proptest::collection::vec(0u64..4, 0..12)), 0..60),
        ) {
            let mut outer = Outer::default();
            for (thread, ids) in stacks {
                let frames = stack(&ids);
                let found = outer.name(thread, &frames, |frame| (named(frame), true));
                let expected: Vec<PendingFrame> = frames.iter().map(named).collect();
                prop_assert_eq!(found.pending(), &expected[..]);
                let mut fresh = Outer::default();
                let hash = fresh.name(0, &frames, |frame| (named(frame), true)).hash();
                prop_assert_eq!(found.hash(), hash);
            }
        }
    }
}

//! The common part of a sample's stack and the one before of the same thread, byte by byte. A walk
//! that reaches it need not continue, because the remaining frames are known.
//!
//! A walk step depends on three registers, on the stack from the frame on, and on the runtime's
//! code and metadata. Code and metadata stay the same from one moment to the next; at a new moment
//! the runtime clears this cache ([`crate::runtime::Changes`]). Registers and stack are compared.

use dwell_walker::native::NativeRegs;
use dwell_walker::{Frame, Frames, Outcome, Walk};

/// Stacks kept; threads share them by their keys.
const PLACES: usize = 16;
/// Bytes kept of a stack, its oldest ones.
const BYTES_MAX: usize = 64 << 10;
/// Bytes below a frame's sp that a step might read, with room to spare.
const MARGIN: u64 = 128;
/// Bytes compared at a time.
const PIECE: usize = 256;

/// The oldest bytes of a stack, at the end of their buffer: changing bytes are before them.
#[derive(Default)]
struct Oldest {
    /// Empty until the first stack.
    place: Vec<u8>,
    len: usize,
}

impl Oldest {
    fn get(&self) -> &[u8] {
        let from = self.place.len().saturating_sub(self.len);
        self.place.get(from..).unwrap_or(&[])
    }

    /// Notes `bytes`, at most [`BYTES_MAX`]. The last `common` of them are here already.
    fn set(&mut self, bytes: &[u8], common: usize) {
        if self.place.is_empty() {
            self.place = vec![0; BYTES_MAX];
        }
        let new = bytes.len().saturating_sub(common);
        let begin = BYTES_MAX.saturating_sub(bytes.len());
        if let (Some(to), Some(from)) = (self.place.get_mut(begin..begin + new), bytes.get(..new)) {
            to.copy_from_slice(from);
        }
        self.len = bytes.len();
    }
}

/// A stack that was walked to its root, without a flaw.
#[derive(Default)]
struct Walked {
    thread: u64,
    moment: u64,
    /// Where the stack ends.
    high: u64,
    /// Its bytes up to there, as many as were kept.
    bytes: Oldest,
    frames: Vec<Frame>,
    /// Registers of the frames that a walk may reach, innermost first, and where in `frames` their
    /// results begin.
    begins: Vec<(NativeRegs, usize)>,
}

/// The stacks of this moment.
#[derive(Default)]
pub struct Splice {
    places: [Walked; PLACES],
    moment: u64,
    begins: Vec<(NativeRegs, usize)>,
}

/// The copy of a sample's stack.
#[derive(Clone, Copy, Debug)]
pub struct Stack<'a> {
    /// The thread.
    pub thread: u64,
    /// Where its first byte was.
    pub low: u64,
    /// The whole stack, up to its end.
    pub bytes: &'a [u8],
}

impl Stack<'_> {
    fn high(&self) -> u64 {
        self.low.wrapping_add(self.bytes.len() as u64)
    }

    /// The oldest bytes, as far as they are kept.
    fn kept(&self) -> &[u8] {
        let skipped = self.bytes.len().saturating_sub(BYTES_MAX);
        self.bytes.get(skipped..).unwrap_or(&[])
    }
}

/// The frames of a walk; knows where the walk may end early.
pub struct Known<'a> {
    frames: &'a mut [Frame],
    before: Option<&'a Walked>,
    /// From this address on the stack is unchanged.
    same_from: u64,
    begins: &'a mut Vec<(NativeRegs, usize)>,
    /// The place in the earlier stack that the walk has reached: in `begins`, and in `frames`.
    met: Option<(usize, usize)>,
}

impl Frames for Known<'_> {
    fn room(&self) -> usize {
        self.frames.len()
    }

    fn set(&mut self, index: usize, frame: Frame) -> bool {
        self.frames.set(index, frame)
    }

    fn rest(&mut self, index: usize, at: NativeRegs) -> Option<usize> {
        self.begins.push((at, index));
        let before = self.before?;
        if at.sp < self.same_from.saturating_add(MARGIN) {
            return None;
        }
        let first = before.begins.partition_point(|(regs, _)| regs.sp < at.sp);
        let mut near = before.begins.get(first..)?.iter();
        let here = first + near.position(|(regs, _)| regs.sp != at.sp || *regs == at)?;
        let (regs, start) = *before.begins.get(here)?;
        let rest = before.frames.get(start..)?;
        // One entry is kept free for a failure, as the walk itself does.
        let end = index.checked_add(rest.len())?;
        if regs != at || end >= self.frames.len() {
            return None;
        }
        self.frames.get_mut(index..end)?.copy_from_slice(rest);
        self.met = Some((here, start));
        Some(rest.len())
    }
}

impl Splice {
    /// The runtime may have changed: earlier walks are not valid any more.
    pub fn clear(&mut self) {
        self.moment += 1;
    }

    /// Lets `walk` walk the unknown part of a stack.
    pub fn walk(
        &mut self,
        stack: Stack<'_>,
        frames: &mut [Frame],
        walk: impl FnOnce(&mut Known<'_>) -> Walk,
    ) -> Walk {
        let place = stack.thread as usize % PLACES;
        let last = self.places.get(place).filter(|last| {
            let is_one = last.moment == self.moment && last.thread == stack.thread;
            is_one && last.high == stack.high()
        });
        let common = last.map_or(0, |last| common_end(last.bytes.get(), stack.kept()));
        self.begins.clear();
        let mut known = Known {
            frames,
            before: last,
            same_from: stack.high().wrapping_sub(common as u64),
            begins: &mut self.begins,
            met: None,
        };
        let done = walk(&mut known);
        let met = known.met;
        let is_whole = done.outcome == Outcome::Complete && done.flaw.is_none() && done.gaps == 0;
        let walked = frames.get(..done.len).unwrap_or(&[]);
        if let Some(last) = self.places.get_mut(place) {
            // A walk that is not whole belongs to no moment.
            last.moment = if is_whole { self.moment } else { u64::MAX };
            last.thread = stack.thread;
            last.keep(stack, common, walked, &self.begins, met);
        }
        done
    }
}

impl Walked {
    /// Notes a stack. Its last `common` bytes are here already.
    fn keep(
        &mut self,
        stack: Stack<'_>,
        common: usize,
        frames: &[Frame],
        begins: &[(NativeRegs, usize)],
        met: Option<(usize, usize)>,
    ) {
        self.bytes.set(stack.kept(), common);
        self.high = stack.high();
        // The part that the walk has not reached is unchanged, except for its place.
        let (gone, moved) = match (met, begins.last()) {
            (Some((here, start)), Some((_, index))) => (here + 1, index.wrapping_sub(start)),
            _ => (self.begins.len(), 0),
        };
        for (_, index) in self.begins.iter_mut().skip(gone) {
            *index = index.wrapping_add(moved);
        }
        self.begins
            .splice(..gone.min(self.begins.len()), begins.iter().copied());
        self.frames.clear();
        self.frames.extend_from_slice(frames);
    }
}

/// Number of equal bytes at the ends of both.
fn common_end(left: &[u8], right: &[u8]) -> usize {
    let pieces = left.rchunks_exact(PIECE).zip(right.rchunks_exact(PIECE));
    let whole = PIECE * pieces.take_while(|(a, b)| a == b).count();
    let rest = |bytes: &[u8]| bytes.len().saturating_sub(whole);
    let (left, right) = (left.get(..rest(left)), right.get(..rest(right)));
    let pairs = left.into_iter().flatten().rev();
    let pairs = pairs.zip(right.into_iter().flatten().rev());
    whole + pairs.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_walker::FrameKind;
    use proptest::prelude::*;

    const HIGH: u64 = 0x7f00_0010_0000;

    /// A frame of a made-up stack: its kind, and its bytes.
    type Made = (u8, u8);

    /// The stack's bytes: each frame has 64 to 1600 of them, some of which show its kind.
    fn bytes(made: &[Made]) -> Vec<u8> {
        let mut all = Vec::new();
        for (id, size) in made {
            all.extend(std::iter::repeat_n(*id, 64 + usize::from(*size) * 6));
        }
        all
    }

    fn frame(id: u8) -> Frame {
        Frame {
            kind: FrameKind::C2,
            bci: 0,
            id: u64::from(id),
        }
    }

    /// Walks it; every third kind of frame stands for two, every fifth for none. Returns how many
    /// frames were read.
    fn walk(made: &[Made], sink: &mut Known<'_>) -> (Walk, usize) {
        let mut at = NativeRegs {
            pc: 0,
            sp: HIGH - bytes(made).len() as u64,
            fp: 0,
        };
        let (mut len, mut looked) = (0, 0);
        for (i, (id, size)) in made.iter().enumerate() {
            at.pc = u64::from(*id) << 8 | 1;
            if i > 0
                && let Some(rest) = sink.rest(len, at)
            {
                len += rest;
                break;
            }
            looked += 1;
            let stands_for = [1, 1, 1, 2, 1, 0][usize::from(id % 6)];
            for _ in 0..stands_for {
                if len + 1 >= sink.room() {
                    let (outcome, flaw) = (Outcome::Failed(dwell_walker::Failure::Truncated), None);
                    let walk = Walk {
                        len,
                        outcome,
                        gaps: 0,
                        flaw,
                    };
                    return (walk, looked);
                }
                sink.set(len, frame(*id));
                len += 1;
            }
            at.sp += 64 + u64::from(*size) * 6;
        }
        let walk = Walk {
            len,
            outcome: Outcome::Complete,
            gaps: 0,
            flaw: None,
        };
        (walk, looked)
    }

    fn run(splice: &mut Splice, thread: u64, made: &[Made], room: usize) -> (Vec<Frame>, usize) {
        let bytes = bytes(made);
        let stack = Stack {
            thread,
            low: HIGH - bytes.len() as u64,
            bytes: &bytes,
        };
        let mut frames = vec![Frame::EMPTY; room];
        let mut looked = 0;
        let done = splice.walk(stack, &mut frames, |sink| {
            let (done, number) = walk(made, sink);
            looked = number;
            done
        });
        frames.truncate(done.len);
        (frames, looked)
    }

    #[test]
    fn unchanged_outer_frames_are_not_walked_again() {
        let mut splice = Splice::default();
        let outer: Vec<Made> = (10..40).map(|id| (id, 5)).collect();
        let with = |inner: &[Made]| [inner, &outer].concat();
        let mut looked = |thread, made: &[Made]| {
            let (frames, looked) = run(&mut splice, thread, made, 100);
            let mut fresh = Splice::default();
            assert_eq!(frames, run(&mut fresh, thread, made, 100).0);
            looked
        };
        assert_eq!(looked(1, &with(&[(1, 9), (2, 9)])), 32);
        // Two new ones, and frames whose bytes could belong to the new ones.
        assert!(looked(1, &with(&[(3, 20), (4, 9)])) <= 6);
        assert!(looked(1, &with(&[])) <= 4);
        assert_eq!(looked(2, &with(&[])), 30);
        // Others of the same sizes, with the same ones below.
        assert!(looked(2, &with(&[(7, 1)])) <= 5);
        splice.clear();
        assert_eq!(run(&mut splice, 2, &with(&[(7, 1)]), 100).1, 31);
    }

    #[test]
    fn flawed_walk_is_not_reused() {
        let made: Vec<Made> = (10..30).map(|id| (id, 5)).collect();
        let mut splice = Splice::default();
        // No room for all: the walk ends early.
        run(&mut splice, 1, &made, 8);
        assert_eq!(run(&mut splice, 1, &made, 100).1, 20);
        // It is known now, but there is no room for it.
        let (frames, looked) = run(&mut splice, 1, &made, 8);
        assert_eq!((frames.len(), looked < 20), (7, true));
    }

    #[test]
    fn common_bytes_stay_behind_new_ones() {
        for old in 0..6usize {
            for common in 0..=old {
                for new in 0..6usize {
                    let mut bytes = Oldest::default();
                    let first: Vec<u8> = (0..old as u8).collect();
                    bytes.set(&first, 0);
                    assert_eq!(bytes.get(), first);
                    let kept = first.get(old - common..).unwrap();
                    let second = [vec![100; new], kept.to_vec()].concat();
                    bytes.set(&second, common);
                    assert_eq!(bytes.get(), second);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn walks_are_as_if_nothing_was_known(
            base in proptest::collection::vec((0u8..30, 0u8..255), 1..120),
            changes in proptest::collection::vec(
                (0u64..3, 0usize..120, proptest::collection::vec((0u8..30, 0u8..255), 0..9),
                    any::<bool>(), 4usize..260, (0usize..120, 0u8..30)), 1..30),
        ) {
            let mut splice = Splice::default();
            let mut stacks = vec![base; 3];
            for (thread, gone, inner, clears, room, (at, other)) in changes {
                let made = &mut stacks[thread as usize];
                let outer = made[gone.min(made.len() - 1)..].to_vec();
                *made = [inner, outer].concat();
                if clears {
                    splice.clear();
                }
                let thread = thread * PLACES as u64 % 13;
                let found = run(&mut splice, thread, made, room).0;
                let expected = run(&mut Splice::default(), thread, made, room).0;
                prop_assert_eq!(found, expected);
                // Frames with the registers that they had, above one that is another.
                if let Some(frame) = made.get_mut(at) {
                    frame.0 = other;
                }
                let found = run(&mut splice, thread, made, room).0;
                let expected = run(&mut Splice::default(), thread, made, room).0;
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn ends_are_compared_byte_by_byte(
            left in proptest::collection::vec(0u8..2, 0..900),
            cut in 0usize..900,
            flip in 0usize..900,
        ) {
            let mut right = left.get(cut.min(left.len())..).unwrap_or(&[]).to_vec();
            if let Some(byte) = right.get_mut(flip) {
                *byte ^= 1;
            }
            let expected = left.iter().rev().zip(right.iter().rev()).take_while(|(a, b)| a == b);
            prop_assert_eq!(common_end(&left, &right), expected.count());
        }
    }
}

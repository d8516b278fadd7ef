//! A walk kept in a slot: frames in its data, the result in its header.

use super::header::{LOGICAL_NAME_MAX, SlotHeader};
use super::pool::OwnedSlot;
use crate::load::Live;
use crate::sys;
use core::mem::size_of;
use dwell_walker::{Failure, Frame, Frames, Outcome, Walk};

/// The slot holds no walk.
const NOT_WALKED: u32 = 0;
const COMPLETE: u32 = 1;
/// Plus the failure's number.
const FAILED: u32 = 2;

/// A [`Walk`] in numbers, so that zeroed memory is one, too.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct WalkNote {
    /// Where the frames are in the slot's data, in bytes.
    at: u32,
    len: u32,
    outcome: u32,
    /// The flaw's number plus one; 0 for no flaw.
    flaw: u32,
    gaps: u32,
    ns: u64,
}

impl WalkNote {
    /// No walk.
    pub(crate) const NONE: WalkNote = WalkNote {
        at: 0,
        len: 0,
        outcome: NOT_WALKED,
        flaw: 0,
        gaps: 0,
        ns: 0,
    };

    /// A walk that was not even begun.
    #[inline]
    pub(crate) fn failed(failure: Failure) -> WalkNote {
        WalkNote {
            outcome: FAILED.wrapping_add(failure as u32),
            ..WalkNote::NONE
        }
    }

    fn of(walk: &Walk, at: usize, ns: u64) -> WalkNote {
        let number = |failure: Failure| failure as u32;
        WalkNote {
            at: at as u32,
            len: walk.len as u32,
            outcome: match walk.outcome {
                Outcome::Complete => COMPLETE,
                Outcome::Failed(failure) => FAILED.wrapping_add(number(failure)),
            },
            flaw: walk.flaw.map_or(0, |flaw| number(flaw).wrapping_add(1)),
            gaps: walk.gaps,
            ns,
        }
    }

    /// How long the walk took, in ns.
    #[must_use]
    pub fn walk_ns(&self) -> u64 {
        self.ns
    }

    /// Where the frames are in the slot's data, in bytes, and how many.
    pub(super) fn place(&self) -> (usize, usize) {
        (self.at as usize, self.len as usize)
    }

    /// The walk's result; `None` without a walk.
    #[must_use]
    pub fn walk(&self) -> Option<Walk> {
        let failure = |number: u32| Failure::from_id(u64::from(number));
        let outcome = match self.outcome {
            NOT_WALKED => return None,
            COMPLETE => Outcome::Complete,
            failed => Outcome::Failed(failure(failed.wrapping_sub(FAILED))?),
        };
        Some(Walk {
            len: self.len as usize,
            outcome,
            gaps: self.gaps,
            flaw: self.flaw.checked_sub(1).and_then(failure),
        })
    }

    /// Whether frames are missing because there was no room for more.
    #[inline]
    pub(crate) fn is_truncated(&self) -> bool {
        self.outcome == FAILED.wrapping_add(Failure::Truncated as u32)
    }
}

/// A thread to be walked, for the agent's hook: the handler's notes about it, and where the frames
/// go. The thread stands still during the walk.
pub struct WalkTarget<'a> {
    slot: &'a mut OwnedSlot,
    live: Live,
    frames_max: usize,
}

impl<'a> WalkTarget<'a> {
    #[inline]
    pub(crate) fn new(slot: &'a mut OwnedSlot, live: Live, frames_max: usize) -> Self {
        Self {
            slot,
            live,
            frames_max,
        }
    }

    /// The handler's notes.
    #[inline]
    pub fn header(&mut self) -> &SlotHeader {
        self.slot.header()
    }

    /// The process's memory.
    #[inline]
    #[must_use]
    pub fn live(&self) -> Live {
        self.live
    }

    /// Notes which logical thread is walked, and its name (Latin-1) as far as there is room.
    pub fn set_logical(&mut self, id: u64, name: &[u8]) {
        let header = self.slot.header();
        header.logical_id = id;
        let len = name.len().min(LOGICAL_NAME_MAX);
        for (to, from) in header.logical_name.iter_mut().zip(name) {
            *to = *from;
        }
        header.logical_name_len = len as u8;
    }

    /// Lets `walk` fill the frames, and keeps its result.
    #[inline]
    pub fn keep(&mut self, walk: impl FnOnce(&mut SlotFrames<'_>) -> Walk) {
        let (base, bytes) = self.slot.chunk_room();
        let at = (base as usize).wrapping_sub(self.slot.data() as usize);
        let room = bytes.checked_div(size_of::<Frame>()).unwrap_or(0);
        let room = room.min(self.frames_max);
        let mut frames = SlotFrames {
            base: base.cast(),
            room,
            slot: core::marker::PhantomData,
        };
        let began_ns = sys::monotonic_ns();
        let walk = walk(&mut frames);
        let ns = sys::monotonic_ns().wrapping_sub(began_ns);
        self.slot.header().walk = WalkNote::of(&walk, at, ns);
    }
}

/// Room for frames in a slot's data.
pub struct SlotFrames<'a> {
    base: *mut Frame,
    room: usize,
    slot: core::marker::PhantomData<&'a mut OwnedSlot>,
}

impl Frames for SlotFrames<'_> {
    #[inline]
    fn room(&self) -> usize {
        self.room
    }

    #[inline]
    fn set(&mut self, index: usize, frame: Frame) -> bool {
        if index >= self.room {
            return false;
        }
        // SAFETY: `keep` made `base` from the unused rest of the data of a slot that is ours alone
        // while this value lives, aligned to 16 bytes and with room for `room` frames.
        unsafe { self.base.add(index).write(frame) };
        true
    }
}

#[cfg(test)]
#[path = "walked_tests.rs"]
mod tests;

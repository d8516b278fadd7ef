//! A cache of frames with their names, valid as long as code and methods cannot have changed.
//!
//! Stacks share most of their frames. A method's name has to be looked up again after a possible
//! safepoint: its class may have been unloaded in between.

use crate::record::batch::PendingFrame;
use dwell_walker::Frame;

/// Maximum number of cached frames; a server's stacks have some thousands of different ones.
const ENTRIES: usize = 8192;
/// The size at first: most programs have few frames, and all places are written at the start.
const ENTRIES_FIRST: usize = 128;
/// How often the number of places is doubled if there are too few.
const GROWTH: usize = 8;
/// If this many frames replaced others in one drain, there are too few places.
const CROWDED: u32 = 16;

/// A direct-mapped table.
pub struct NamedFrames {
    entries: Box<[Option<(u32, Frame, PendingFrame)>]>,
    /// Number of the stretch of time without changes; entries of other stretches do not count.
    moment: u32,
    /// Frames of this drain that have replaced others.
    crowded: u32,
}

impl Default for NamedFrames {
    fn default() -> NamedFrames {
        NamedFrames::with_room(ENTRIES_FIRST)
    }
}

impl NamedFrames {
    fn with_room(entries: usize) -> NamedFrames {
        NamedFrames {
            entries: vec![None; entries].into_boxed_slice(),
            moment: 0,
            crowded: 0,
        }
    }

    /// A drain begins; `has_changed`: earlier names may not hold any more.
    pub fn begin(&mut self, has_changed: bool) {
        let is_small = self.crowded > CROWDED && self.entries.len() < ENTRIES;
        self.crowded = 0;
        if is_small {
            *self = NamedFrames::with_room((self.entries.len() * GROWTH).min(ENTRIES));
        } else if has_changed {
            self.clear();
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        match self.moment.checked_add(1) {
            Some(next) => self.moment = next,
            None => *self = NamedFrames::with_room(self.entries.len()),
        }
    }

    /// The name of `frame`.
    #[must_use]
    pub fn get(&self, frame: &Frame) -> Option<PendingFrame> {
        match self.entries.get(self.place(frame))? {
            Some((moment, known, named)) if *moment == self.moment && known == frame => {
                Some(*named)
            }
            _ => None,
        }
    }

    /// Caches the name of `frame`.
    pub fn put(&mut self, frame: Frame, named: PendingFrame) {
        let place = self.place(&frame);
        if let Some(entry) = self.entries.get_mut(place) {
            let before = entry.replace((self.moment, frame, named));
            let is_taken =
                before.is_some_and(|(moment, known, _)| moment == self.moment && known != frame);
            self.crowded += u32::from(is_taken);
        }
    }

    /// Fibonacci hashing: the upper half of the product depends on all bits.
    fn place(&self, frame: &Frame) -> usize {
        let (bci, kind) = (frame.bci as u64, frame.kind as u64);
        let mixed = frame.id ^ bci.rotate_left(40) ^ kind.rotate_left(60);
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::batch::Code;
    use crate::record::names::NameId;
    use dwell_jfr::FrameKind as FileKind;
    use dwell_walker::FrameKind;

    fn frame(id: u64, bci: i32) -> Frame {
        Frame {
            kind: FrameKind::C2,
            bci,
            id,
        }
    }

    fn named(id: u32) -> PendingFrame {
        PendingFrame {
            code: Code::Named(NameId(id)),
            kind: FileKind::C2,
            line: -1,
            bci: -1,
        }
    }

    #[test]
    fn a_frame_has_its_own_name_or_none() {
        let mut names = NamedFrames::default();
        // Far more than there are places.
        for id in 0..20_000u32 {
            let frame = frame(0x7f00_0000_0000 + u64::from(id) * 8, (id % 7) as i32);
            names.put(frame, named(id));
            assert_eq!(names.get(&frame), Some(named(id)));
        }
        for id in 0..20_000u32 {
            let frame = frame(0x7f00_0000_0000 + u64::from(id) * 8, (id % 7) as i32);
            assert!(names.get(&frame).is_none_or(|found| found == named(id)));
        }
        assert_eq!(names.get(&frame(0x10, 1)), None);
        // The next drain has more room, and keeps it.
        assert_eq!(names.entries.len(), ENTRIES_FIRST);
        names.begin(false);
        assert_eq!(names.entries.len(), GROWTH * ENTRIES_FIRST);
        names.crowded = CROWDED + 1;
        names.begin(false);
        assert_eq!(names.entries.len(), ENTRIES);
        names.put(frame(1, 2), named(3));
        names.moment = u32::MAX;
        names.begin(true);
        assert_eq!(names.entries.len(), ENTRIES);
        assert_eq!(names.get(&frame(1, 2)), None);
    }

    #[test]
    fn names_last_until_something_may_have_changed() {
        let mut names = NamedFrames::default();
        names.put(frame(1, 2), named(3));
        names.begin(false);
        assert_eq!(names.get(&frame(1, 2)), Some(named(3)));
        names.begin(true);
        assert_eq!(names.get(&frame(1, 2)), None);
        names.put(frame(1, 2), named(4));
        names.clear();
        assert_eq!(names.get(&frame(1, 2)), None);
    }

    #[test]
    fn few_frames_take_little_room() {
        let mut names = NamedFrames::default();
        for _ in 0..10 {
            for id in 0..20 {
                names.put(frame(0x7f00_0000_0000 + u64::from(id) * 8, 1), named(id));
            }
            names.begin(true);
        }
        assert_eq!(names.entries.len(), ENTRIES_FIRST);
    }

    #[test]
    fn cached_names_end_with_their_moment() {
        let mut names = NamedFrames::default();
        names.put(frame(1, 2), named(3));
        assert_eq!(names.get(&frame(1, 3)), None);
        names.clear();
        assert_eq!(names.get(&frame(1, 2)), None);
        names.moment = u32::MAX;
        names.put(frame(1, 2), named(3));
        names.clear();
        assert_eq!(names.get(&frame(1, 2)), None);
    }
}

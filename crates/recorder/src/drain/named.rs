//! Frames that are named already, remembered while one drain lasts.
//!
//! Stacks of one drain share most of their frames. A method's name has to be looked at again in the
//! next drain: its class may have been unloaded meanwhile.

use crate::record::batch::PendingFrame;
use dwell_walker::Frame;

/// Frames remembered; a deep stack has some hundreds of different ones.
const ENTRIES: usize = 2048;

/// A direct-mapped table.
pub struct NamedFrames {
    entries: Box<[Option<(u32, Frame, PendingFrame)>]>,
    /// Number of the drain; entries of others do not count.
    drain: u32,
}

impl Default for NamedFrames {
    fn default() -> NamedFrames {
        NamedFrames {
            entries: vec![None; ENTRIES].into_boxed_slice(),
            drain: 0,
        }
    }
}

impl NamedFrames {
    /// Forgets all.
    pub fn clear(&mut self) {
        match self.drain.checked_add(1) {
            Some(next) => self.drain = next,
            None => *self = NamedFrames::default(),
        }
    }

    /// What `frame` is called.
    #[must_use]
    pub fn get(&self, frame: &Frame) -> Option<PendingFrame> {
        match self.entries.get(place(frame))? {
            Some((drain, known, named)) if *drain == self.drain && known == frame => Some(*named),
            _ => None,
        }
    }

    /// Remembers what `frame` is called.
    pub fn put(&mut self, frame: Frame, named: PendingFrame) {
        if let Some(entry) = self.entries.get_mut(place(&frame)) {
            *entry = Some((self.drain, frame, named));
        }
    }
}

/// Fibonacci hashing: the upper half of the product depends on all bits.
fn place(frame: &Frame) -> usize {
    let mixed = frame.id ^ (frame.bci as u64).rotate_left(40) ^ (frame.kind as u64).rotate_left(60);
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % ENTRIES
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
    }

    #[test]
    fn nothing_outlives_a_drain() {
        let mut names = NamedFrames::default();
        names.put(frame(1, 2), named(3));
        assert_eq!(names.get(&frame(1, 3)), None);
        names.clear();
        assert_eq!(names.get(&frame(1, 2)), None);
        names.drain = u32::MAX;
        names.put(frame(1, 2), named(3));
        names.clear();
        assert_eq!(names.get(&frame(1, 2)), None);
    }
}

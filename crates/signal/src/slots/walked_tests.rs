//! A slot's content, as its readers see it: walks, copies of the stack and of chunks, names.

use super::*;
use crate::config::ClassSpec;
use crate::slots::header::{ChunkCopy, Reason};
use crate::slots::{Slot, SlotPool};
use dwell_walker::FrameKind;
use std::vec::Vec;

/// A pool of one slot.
fn pool() -> SlotPool {
    let specs = [ClassSpec {
        capacity_bytes: 4096,
        count: 1,
    }];
    let bytes = SlotPool::region_bytes(&specs).unwrap();
    let region = sys::map_zeroed(bytes).unwrap();
    // SAFETY: fresh zeroed pages of the size asked for, never unmapped.
    unsafe { SlotPool::new(region, &specs) }.unwrap()
}

/// Fills the slot and reads it.
fn seen(pool: &SlotPool, fill: impl FnOnce(&mut OwnedSlot), look: impl Fn(&Slot<'_>)) {
    let mut slot = pool.take(1).unwrap();
    slot.header().walk = WalkNote::NONE;
    fill(&mut slot);
    assert!(pool.publish(slot));
    assert_eq!(pool.drain(look), 1);
}

#[test]
fn each_end_of_a_walk_comes_back() {
    for failure in Failure::ALL.iter().copied() {
        for outcome in [Outcome::Complete, Outcome::Failed(failure)] {
            for flaw in [None, Some(failure)] {
                let walk = Walk {
                    len: 3,
                    outcome,
                    gaps: 2,
                    flaw,
                };
                let note = WalkNote::of(&walk, 64, 99);
                assert_eq!(note.walk(), Some(walk));
                assert_eq!((note.place(), note.walk_ns()), ((64, 3), 99));
                let truncated = outcome == Outcome::Failed(Failure::Truncated);
                assert_eq!(note.is_truncated(), truncated, "{outcome:?}");
            }
        }
        let untried = Walk {
            len: 0,
            outcome: Outcome::Failed(failure),
            gaps: 0,
            flaw: None,
        };
        assert_eq!(WalkNote::failed(failure).walk(), Some(untried));
    }
    assert_eq!(WalkNote::NONE.walk(), None);
    assert!(!WalkNote::NONE.is_truncated());
}

#[test]
fn frames_come_back_from_where_they_were_put() {
    let pool = pool();
    let frames = [1u64, 2].map(|id| Frame {
        kind: FrameKind::C1,
        bci: 7,
        id,
    });
    let walk = Walk {
        len: 2,
        outcome: Outcome::Complete,
        gaps: 0,
        flaw: None,
    };
    let fill = |slot: &mut OwnedSlot| {
        slot.header().stack_len = 20;
        let (base, bytes) = slot.chunk_room();
        let at = base as usize - slot.data() as usize;
        assert_eq!((at, bytes), (32, slot.capacity() - 32));
        let mut room = SlotFrames {
            base: base.cast(),
            room: 2,
            slot: core::marker::PhantomData,
        };
        assert_eq!(room.room(), 2);
        for (index, frame) in frames.into_iter().enumerate() {
            assert!(room.set(index, frame));
        }
        assert!(!room.set(2, frames[0]), "there is no more room");
        slot.header().walk = WalkNote::of(&walk, at, 0);
    };
    seen(&pool, fill, |slot| {
        assert_eq!(slot.frames(), frames);
        assert_eq!(slot.stack().len(), 20);
    });
    // No frames if no walk is noted, and none outside of the slot's data or between words.
    let capacity = pool.largest();
    for (at, note) in [
        (32, false),
        (capacity - 16, true),
        (33, true),
        (usize::MAX, true),
    ] {
        let place = |slot: &mut OwnedSlot| {
            slot.header().walk = WalkNote::of(&walk, at, 0);
            if !note {
                slot.header().walk.outcome = NOT_WALKED;
            }
        };
        seen(&pool, place, |slot| {
            assert!(slot.frames().is_empty(), "{at}")
        });
    }
    let last = |slot: &mut OwnedSlot| slot.header().walk = WalkNote::of(&walk, capacity - 32, 0);
    seen(&pool, last, |slot| assert_eq!(slot.frames().len(), 2));
}

#[test]
fn copies_lie_one_behind_the_other() {
    let pool = pool();
    let fill = |slot: &mut OwnedSlot| {
        // SAFETY: the slot is ours and has 4096 bytes of data.
        let data = unsafe { core::slice::from_raw_parts_mut(slot.data(), 128) };
        for (i, byte) in data.iter_mut().enumerate() {
            *byte = i as u8;
        }
        let header = slot.header();
        header.stack_len = 20;
        header.chunks_len = 2;
        for (chunk, (lo, len)) in header.chunks.iter_mut().zip([(0x5000, 40), (0x9000, 8)]) {
            let wanted = 64;
            *chunk = ChunkCopy { lo, len, wanted };
        }
        assert_eq!(header.copied_chunks().len(), 2);
        assert_eq!(header.used(), 88);
        assert_eq!(slot.chunk_room().1, slot.capacity() - 96);
        let header = slot.header();
        (header.weight_ns, header.kernel_len, header.logical_name_len) = (77, 2, 3);
        header.kernel[..2].copy_from_slice(&[0xa, 0xb]);
        header.logical_name[..3].copy_from_slice(b"abc");
    };
    seen(&pool, fill, |slot| {
        let bytes: Vec<u8> = (0..128).collect();
        assert_eq!(slot.stack(), &bytes[..20]);
        let chunks = slot.chunks().map(|it| (it.start, it.bytes, it.end));
        let expected = [
            (0x5000, &bytes[32..72], 0x5040),
            (0x9000, &bytes[80..88], 0x9040),
        ];
        assert!(chunks.eq(expected));
        assert_eq!((slot.weight_ns(), slot.header().weight_ns), (77, 77));
        assert_eq!(slot.kernel_frames(), [0xa, 0xb]);
        assert_eq!(slot.logical_name(), b"abc");
    });
}

#[test]
fn reasons_come_back_from_their_numbers() {
    let all = [
        Reason::CpuTime,
        Reason::ThreadStart,
        Reason::ThreadEnd,
        Reason::Flush,
        Reason::Stop,
        Reason::Allocation,
        Reason::Wait,
    ];
    for reason in all {
        assert_eq!(Reason::from_bits(reason as u32), reason);
    }
    assert_eq!(Reason::from_bits(99), Reason::CpuTime);
}

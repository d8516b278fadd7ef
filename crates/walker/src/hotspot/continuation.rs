//! Virtual threads: frames frozen in the heap, and the way from them to the carrier.
//!
//! A mounted virtual thread has only its youngest frames on the carrier's stack. Below them is a
//! return barrier, and older frames are in `StackChunk` objects
//! (src/hotspot/share/runtime/continuation*, cpu/*/stackChunkFrameStream_*.inline.hpp). The
//! chunk's stack area holds compiled frames as they are on a stack. Interpreted frames keep their
//! links as word offsets from the link's slot.

use super::layout::{ChunkLayout, Layout, present};
use super::zgc;
use crate::hotspot::machine::Machine;
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;

/// `ContinuationEntry::_parent` (continuationEntry.hpp; same in 21 to 28).
const ENTRY_PARENT: u64 = 8;
/// `ContinuationEntry::_cont`.
const ENTRY_CONT: u64 = 16;
/// Maximum number of chunks followed per continuation.
pub const CHUNKS_MAX: u32 = 64;

/// A stack chunk during a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The object.
    pub object: u64,
    /// sp of its youngest frame.
    pub sp: u64,
    /// End of its oldest frame.
    pub bottom: u64,
    /// End of its stack area.
    pub end: u64,
}

/// Reads a reference in the heap (or in a handle), 4 or 8 bytes wide.
///
/// # Errors
/// [`Fault`] if it cannot be read.
pub fn reference<M: Memory>(mem: &M, layout: &Layout, addr: u64) -> Result<u64, Fault> {
    if !layout.extra.chunk.narrow_oops {
        return handle(mem, layout, addr);
    }
    decompress(mem, layout, mem.u32(addr)?)
}

/// The full form of a compressed reference.
///
/// # Errors
/// [`Fault`] if the JVM's base cannot be read.
pub fn decompress<M: Memory>(mem: &M, layout: &Layout, narrow: u32) -> Result<u64, Fault> {
    let narrow = u64::from(narrow);
    if narrow == 0 || !present(layout.narrow_oop_base) {
        return Ok(0);
    }
    let base = mem.word(layout.narrow_oop_base)?;
    let shift = mem.u32(layout.narrow_oop_shift)? & 63;
    Ok(base.wrapping_add(narrow << shift))
}

/// Reads a full reference. In generational ZGC it is the address shifted left by one more than the
/// position of its one remap bit (src/hotspot/share/gc/z/zAddress.inline.hpp). If ZGC has moved the
/// object since, the new address is returned.
///
/// # Errors
/// [`Fault`] if it cannot be read.
pub fn handle<M: Memory>(mem: &M, layout: &Layout, addr: u64) -> Result<u64, Fault> {
    const REMAP_SHIFT: u32 = 12;
    let value = mem.word(addr)?;
    if !layout.extra.chunk.colored_oops {
        return zgc::follow_single(mem, layout, value);
    }
    let remap = (value >> REMAP_SHIFT) & 0xf;
    if remap == 0 {
        return Ok(0);
    }
    let address = value >> (REMAP_SHIFT + remap.trailing_zeros() + 1);
    zgc::follow(mem, layout, value, address)
}

fn known(chunk: &ChunkLayout) -> bool {
    [
        chunk.cont_tail,
        chunk.sp,
        chunk.size,
        chunk.parent,
        chunk.stack,
    ]
    .iter()
    .all(|v| present(*v))
}

/// The youngest chunk with frames of the continuation entered at `entry`.
///
/// # Errors
/// [`Fault`] if an object cannot be read.
pub fn youngest_chunk<M: Memory>(
    mem: &M,
    layout: &Layout,
    entry: u64,
) -> Result<Option<Chunk>, Fault> {
    let offsets = &layout.extra.chunk;
    if entry == 0 || !known(offsets) {
        return Ok(None);
    }
    let cont = entered(mem, entry)?;
    let tail = reference(mem, layout, cont.wrapping_add(offsets.cont_tail))?;
    filled_chunk(mem, layout, tail)
}

/// The object of the continuation entered at `entry`.
///
/// # Errors
/// [`Fault`] if the entry cannot be read.
pub fn entered<M: Memory>(mem: &M, entry: u64) -> Result<u64, Fault> {
    mem.word(entry.wrapping_add(ENTRY_CONT))
}

/// The next older chunk with frames.
///
/// # Errors
/// [`Fault`] if an object cannot be read.
pub fn parent_chunk<M: Memory>(
    mem: &M,
    layout: &Layout,
    chunk: &Chunk,
) -> Result<Option<Chunk>, Fault> {
    let at = chunk.object.wrapping_add(layout.extra.chunk.parent);
    let parent = reference(mem, layout, at)?;
    filled_chunk(mem, layout, parent)
}

/// The chunk at `object`, or the first of its parents that has frames.
///
/// # Errors
/// [`Fault`] if an object cannot be read.
pub fn filled_chunk<M: Memory>(
    mem: &M,
    layout: &Layout,
    mut object: u64,
) -> Result<Option<Chunk>, Fault> {
    let offsets = &layout.extra.chunk;
    for _ in 0..CHUNKS_MAX {
        if object == 0 {
            return Ok(None);
        }
        let sp = mem.i32(object.wrapping_add(offsets.sp))?;
        let size = mem.i32(object.wrapping_add(offsets.size))?;
        let bottom = bottom(mem, offsets, object, size)?;
        if !(0..=1 << 24).contains(&size) || !(0..=size).contains(&bottom) || sp < 0 {
            return Ok(None);
        }
        // An emptied chunk stays the youngest until the VM replaces it; its old contents are still
        // in memory.
        if sp < bottom {
            let stack = object.wrapping_add(offsets.stack);
            return Ok(Some(Chunk {
                object,
                sp: stack.wrapping_add(sp as u64 * 8),
                bottom: stack.wrapping_add(bottom as u64 * 8),
                end: stack.wrapping_add(size as u64 * 8),
            }));
        }
        object = reference(mem, layout, object.wrapping_add(offsets.parent))?;
    }
    Ok(None)
}

/// End of the oldest frame of the chunk, in words from the start of its stack area
/// (src/hotspot/share/oops/stackChunkOop.inline.hpp).
fn bottom<M: Memory>(mem: &M, offsets: &ChunkLayout, object: u64, size: i32) -> Result<i32, Fault> {
    if present(offsets.bottom) {
        return mem.i32(object.wrapping_add(offsets.bottom));
    }
    if present(offsets.argsize) {
        let argsize = mem.i32(object.wrapping_add(offsets.argsize))?;
        return Ok(size.wrapping_sub(argsize));
    }
    Ok(size)
}

impl Chunk {
    /// Registers of the chunk's youngest frame; the frame pointer is still relative.
    ///
    /// # Errors
    /// [`Fault`] if the chunk cannot be read.
    pub fn youngest_frame<M: Memory>(
        &self,
        machine: impl Machine,
        mem: &M,
    ) -> Result<NativeRegs, Fault> {
        let pc = machine.return_address(mem.word(self.sp.wrapping_sub(8))?);
        Ok(NativeRegs {
            pc,
            sp: self.sp,
            fp: self.sp.wrapping_sub(16),
        })
    }

    /// Whether `addr` is in the used part of the stack area.
    #[must_use]
    pub const fn holds(&self, addr: u64) -> bool {
        addr >= self.sp.wrapping_sub(16) && addr < self.end
    }
}

/// Frame pointer of an interpreted frame in a chunk: `link` is the slot that holds its word offset.
///
/// # Errors
/// [`Fault`] if the slot cannot be read.
pub fn frozen_fp<M: Memory>(mem: &M, link: u64) -> Result<u64, Fault> {
    let words = mem.word(link)?;
    Ok(link.wrapping_add(words.wrapping_mul(8)))
}

/// An address in a slot of an interpreted frozen frame: a word offset from the frame pointer.
#[must_use]
pub fn frozen_slot(fp: u64, words: u64) -> u64 {
    fp.wrapping_add(words.wrapping_mul(8))
}

/// The entry of the continuation that encloses the one entered at `entry`; 0 if none.
///
/// # Errors
/// [`Fault`] if the entry cannot be read.
pub fn parent_entry<M: Memory>(mem: &M, entry: u64) -> Result<u64, Fault> {
    mem.word(entry.wrapping_add(ENTRY_PARENT))
}

/// Registers inside `enterSpecial` for the continuation entered at `entry`, which is at the bottom
/// of that frame.
#[must_use]
pub fn enter_special(layout: &Layout, entry: u64) -> NativeRegs {
    NativeRegs {
        pc: layout.extra.cont_return_pc,
        sp: entry,
        fp: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::layout::ABSENT;
    use crate::hotspot::machine::X86_64;
    use crate::hotspot::test_memory::Bytes;

    /// Made-up offsets of chunks and continuations: each field has a word.
    fn layout() -> Layout {
        let mut layout = Layout::EMPTY;
        layout.extra.chunk = ChunkLayout {
            cont_tail: 8,
            sp: 8,
            size: 16,
            bottom: 24,
            argsize: ABSENT,
            parent: 32,
            stack: 40,
            narrow_oops: false,
            colored_oops: false,
        };
        layout
    }

    /// A chunk at `object`: sp, size, bottom or argsize, and its parent.
    fn chunk(object: u64, fields: [u64; 4]) -> Bytes {
        let [sp, size, bottom, parent] = fields;
        Bytes::of_words(&[
            (object, &[0, sp, size, bottom, parent]),
            (0x2000, &[0, 1, 8, 6, 0]),
        ])
    }

    #[test]
    fn chunk_locates_its_frames() {
        let mut layout = layout();
        let of = |layout: &Layout, fields| filled_chunk(&chunk(0x1000, fields), layout, 0x1000);
        let expected = |object: u64, sp: u64, bottom: u64, size: u64| {
            let at = |words: u64| object + 40 + 8 * words;
            Ok(Some(Chunk {
                object,
                sp: at(sp),
                bottom: at(bottom),
                end: at(size),
            }))
        };
        assert_eq!(of(&layout, [2, 10, 9, 0]), expected(0x1000, 2, 9, 10));
        assert_eq!(of(&layout, [0, 10, 10, 0]), expected(0x1000, 0, 10, 10));
        assert_eq!(of(&layout, [9, 10, 9, 0]), Ok(None), "emptied");
        assert_eq!(of(&layout, [9, 10, 9, 0x2000]), expected(0x2000, 1, 6, 8));
        assert_eq!(
            of(&layout, [2, 10, 11, 0x2000]),
            Ok(None),
            "longer than it is"
        );
        assert_eq!(
            of(&layout, [u64::MAX, 10, 9, 0x2000]),
            Ok(None),
            "before its start"
        );
        assert_eq!(of(&layout, [2, u64::MAX, 9, 0x2000]), Ok(None));
        assert_eq!(
            of(&layout, [2, 1 << 24, 9, 0]),
            expected(0x1000, 2, 9, 1 << 24)
        );
        assert_eq!(of(&layout, [2, (1 << 24) + 1, 9, 0]), Ok(None));
        assert_eq!(filled_chunk(&Bytes::default(), &layout, 0), Ok(None));
        assert!(filled_chunk(&Bytes::default(), &layout, 0x1000).is_err());
        let mem = chunk(0x1000, [9, 10, 9, 0x2000]);
        let above = Chunk {
            object: 0x1000,
            sp: 0,
            bottom: 0,
            end: 0,
        };
        assert_eq!(
            parent_chunk(&mem, &layout, &above),
            expected(0x2000, 1, 6, 8)
        );
        // Early versions have only the size of the arguments at the end, or nothing.
        layout.extra.chunk.bottom = ABSENT;
        assert_eq!(of(&layout, [2, 10, 9, 0]), expected(0x1000, 2, 10, 10));
        layout.extra.chunk.argsize = 24;
        assert_eq!(of(&layout, [2, 10, 3, 0]), expected(0x1000, 2, 7, 10));
    }

    #[test]
    fn a_continuation_leads_to_its_youngest_chunk() {
        let mut layout = layout();
        let mem = Bytes::of_words(&[
            (0x500, &[0, 0x600, 0x700]),
            (0x700, &[0, 0x1000]),
            (0x1000, &[0, 2, 10, 9, 0]),
        ]);
        assert_eq!(entered(&mem, 0x500), Ok(0x700));
        assert_eq!(parent_entry(&mem, 0x500), Ok(0x600));
        let found = youngest_chunk(&mem, &layout, 0x500).unwrap().unwrap();
        assert_eq!((found.object, found.sp), (0x1000, 0x1038));
        assert_eq!(youngest_chunk(&mem, &layout, 0), Ok(None));
        layout.extra.chunk.parent = ABSENT;
        assert_eq!(
            youngest_chunk(&mem, &layout, 0x500),
            Ok(None),
            "not known how"
        );
    }

    #[test]
    fn frames_in_chunks_have_links_relative_to_their_place() {
        let chunk = Chunk {
            object: 0x1000,
            sp: 0x1040,
            bottom: 0x1080,
            end: 0x1090,
        };
        let mem = Bytes::of_words(&[(0x1030, &[3, 0x7777, 0])]);
        let expected = NativeRegs {
            pc: 0x7777,
            sp: 0x1040,
            fp: 0x1030,
        };
        assert_eq!(chunk.youngest_frame(X86_64, &mem), Ok(expected));
        assert_eq!(frozen_fp(&mem, 0x1030), Ok(0x1048));
        assert_eq!(frozen_slot(0x1048, 2), 0x1058);
        assert_eq!(frozen_slot(0x1048, 2u64.wrapping_neg()), 0x1038);
        let held = [0x102f, 0x1030, 0x108f, 0x1090].map(|at| chunk.holds(at));
        assert_eq!(held, [false, true, true, false]);
    }

    #[test]
    fn references_are_narrow_wide_or_coloured() {
        let mut layout = Layout::EMPTY;
        // After its colour, with the third remap bit: the address is shifted by 12 + 2 + 1.
        let colored = 0x1234_5678 << 15 | 0x4 << 12 | 0xabc;
        let mem = Bytes::of_words(&[
            (0x100, &[0x9_0000_0020, colored, 0]),
            (0x200, &[1 << 40, 3]),
        ]);
        assert_eq!(
            reference(&mem, &layout, 0x100),
            Ok(0),
            "it is not known how"
        );
        (layout.narrow_oop_base, layout.narrow_oop_shift) = (0x200, 0x208);
        assert_eq!(reference(&mem, &layout, 0x100), Ok((1 << 40) + 0x100));
        assert_eq!(reference(&mem, &layout, 0x110), Ok(0));
        layout.extra.chunk.narrow_oops = false;
        assert_eq!(reference(&mem, &layout, 0x100), Ok(0x9_0000_0020));
        layout.extra.chunk.colored_oops = true;
        assert_eq!(reference(&mem, &layout, 0x108), Ok(0x1234_5678));
        assert_eq!(reference(&mem, &layout, 0x110), Ok(0));
    }
}

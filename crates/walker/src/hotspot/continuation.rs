//! Virtual threads: frames frozen in the heap, and the way from there to the carrier.
//!
//! A mounted virtual thread has only its youngest frames on the carrier's stack; below them a
//! return barrier, and the rest in `StackChunk` objects (src/hotspot/share/runtime/continuation*,
//! cpu/x86/stackChunkFrameStream_x86.inline.hpp). The chunk's stack area holds compiled frames as
//! they are on a stack; interpreted frames keep their links as word offsets from the link's slot.

use super::codecache::CodeCache;
use super::layout::{ABSENT, ChunkLayout, Layout, present};
use super::zgc;
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;

/// `ContinuationEntry::_parent` (continuationEntry.hpp; same in 21 to 28).
const ENTRY_PARENT: u64 = 8;
/// `ContinuationEntry::_cont`.
const ENTRY_CONT: u64 = 16;
/// Chunks of one continuation followed at most.
pub const CHUNKS_MAX: u32 = 64;

/// A stack chunk that is being walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The object.
    pub object: u64,
    /// Its youngest frame's sp.
    pub sp: u64,
    /// Where its oldest frame ends.
    pub bottom: u64,
    /// End of its stack area.
    pub end: u64,
}

/// Four bytes of code. Not part of the loops that call it: there the way of reading would be kept
/// in a register and called through it, which the check of handlers cannot follow.
#[inline(never)]
fn code_at<M: Memory>(mem: &M, at: u64) -> Result<u32, Fault> {
    mem.u32(at)
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

/// The reference that a compressed one stands for.
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

/// Reads a full reference; generational ZGC's is the address shifted up past its colour, by one
/// more than the position of the one remap bit (src/hotspot/share/gc/z/zAddress.inline.hpp); where
/// ZGC has moved the object since, it leads to its new place.
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
        // An emptied chunk stays the youngest until the VM comes by; what was in it is still there.
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

/// Where the oldest frame of the chunk ends, in words from the start of its stack area
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
    /// Registers of the chunk's youngest frame; rbp is still to be derelativised.
    ///
    /// # Errors
    /// [`Fault`] if the chunk cannot be read.
    pub fn youngest_frame<M: Memory>(&self, mem: &M) -> Result<NativeRegs, Fault> {
        let pc = mem.word(self.sp.wrapping_sub(8))?;
        Ok(NativeRegs {
            pc,
            sp: self.sp,
            fp: self.sp.wrapping_sub(16),
        })
    }

    /// Whether `addr` lies in the stack area that holds frames.
    #[must_use]
    pub const fn holds(&self, addr: u64) -> bool {
        addr >= self.sp.wrapping_sub(16) && addr < self.end
    }
}

/// rbp of an interpreted frame in a chunk: `link` is the slot that holds its word offset.
///
/// # Errors
/// [`Fault`] if the slot cannot be read.
pub fn frozen_fp<M: Memory>(mem: &M, link: u64) -> Result<u64, Fault> {
    let words = mem.word(link)?;
    Ok(link.wrapping_add(words.wrapping_mul(8)))
}

/// An address in a slot of an interpreted frozen frame: a word offset from the frame's rbp.
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

/// Registers inside `enterSpecial` for the continuation entered at `entry`, which lies at the
/// bottom of that frame.
#[must_use]
pub fn enter_special(layout: &Layout, entry: u64) -> NativeRegs {
    NativeRegs {
        pc: layout.extra.cont_return_pc,
        sp: entry,
        fp: 0,
    }
}

/// The same from the return barrier, which is there before the first virtual thread: it begins by
/// going back to the entry, `mov rsp, [r15 + d]` (stubGenerator_x86_64.cpp, `generate_cont_thaw`).
///
/// # Errors
/// [`Fault`] if the code cannot be read.
pub fn entry_offset_of_barrier<M: Memory>(mem: &M, barrier: u64) -> Result<Option<u64>, Fault> {
    const SEARCHED: u64 = 32;
    if barrier == 0 {
        return Ok(None);
    }
    for i in 0..SEARCHED {
        let at = barrier.wrapping_add(i);
        if mem.u32(at)? & 0x00ff_ffff == 0x00a7_8b49 {
            return Ok(Some(u64::from(mem.u32(at.wrapping_add(3))?)));
        }
    }
    Ok(None)
}

/// Whether the code shortly before `pc` goes back to the continuation's entry, `mov rsp, [r15 +
/// entry]`: to be asked of code in a return barrier only.
///
/// # Errors
/// [`Fault`] if the code cannot be read.
pub fn went_back_to_entry<M: Memory>(mem: &M, layout: &Layout, pc: u64) -> Result<bool, Fault> {
    const SEARCHED: u64 = 0xd0;
    let Ok(entry) = u32::try_from(layout.extra.cont_entry) else {
        return Ok(false);
    };
    for back in 7..SEARCHED {
        let at = pc.wrapping_sub(back);
        if code_at(mem, at)? & 0x00ff_ffff == 0x00a7_8b49
            && code_at(mem, at.wrapping_add(3))? == entry
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether `pc` is in the stub that thaws frames when a virtual thread is mounted again, behind its
/// first instruction, which takes the return address away: from there on the stack ends with the
/// continuation's entry. The stub lies right before the return `barrier` and begins with `pop rcx;
/// mov rdi, r15` (stubGenerator_x86_64.cpp, `generate_cont_thaw`). Its last two instructions, which
/// return into the thawed frames, are not meant.
///
/// # Errors
/// [`Fault`] if the code cannot be read.
pub fn is_in_thaw<M: Memory>(mem: &M, barrier: u64, pc: u64) -> Result<bool, Fault> {
    /// 118 and 122 bytes in 21 to 28, with some room.
    const BYTES_MAX: u64 = 0x90;
    const BEGIN: u32 = 0xff8b_4959;
    if pc >= barrier.wrapping_sub(2) || pc < barrier.saturating_sub(BYTES_MAX) {
        return Ok(false);
    }
    for back in 1..BYTES_MAX {
        let at = pc.wrapping_sub(back);
        if at < barrier.wrapping_sub(BYTES_MAX) {
            break;
        }
        if code_at(mem, at)? == BEGIN {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Code of `enterSpecial` searched for the offset of `JavaThread::_cont_entry`.
const CODE_SEARCHED: u64 = 2048;

/// The offset of `JavaThread::_cont_entry`, from the code of `enterSpecial`, for JDKs that do not
/// export it: the offset d of `mov rax, [r15 + d]` that is followed by `mov [r15 + d], rsp`.
///
/// # Errors
/// [`Fault`] if the code cannot be read.
pub fn find_entry_offset<M: Memory>(
    mem: &M,
    layout: &Layout,
    code: &CodeCache,
) -> Result<Option<u64>, Fault> {
    let return_pc = layout.extra.cont_return_pc;
    let Some(blob) = code.find(mem, layout, return_pc)? else {
        return Ok(None);
    };
    let mut loaded = ABSENT;
    for i in 0..CODE_SEARCHED {
        let at = blob.code_begin.wrapping_add(i);
        if at >= return_pc.wrapping_add(256) {
            break;
        }
        let opcode = mem.u32(at)? & 0x00ff_ffff;
        let displacement = u64::from(mem.u32(at.wrapping_add(3))?);
        match opcode {
            0x0087_8b49 => loaded = displacement,
            0x00a7_8949 if displacement == loaded => return Ok(Some(displacement)),
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    #[test]
    fn the_thaw_stub_is_told_from_its_neighbours() {
        const AT: u64 = 0x1000;
        const BARRIER: u64 = AT + 0x100 + 0x76;
        let mut code = [0x90u8; 0x200];
        code[0x100..0x104].copy_from_slice(&[0x59, 0x49, 0x8b, 0xff]);
        let mem = Bytes::at(AT, &code);
        let at = |pc| is_in_thaw(&mem, BARRIER, pc).unwrap();
        assert!(!at(AT + 0xff), "the stub before");
        assert!(!at(AT + 0x100), "the return address is still there");
        assert!(at(AT + 0x101));
        assert!(at(BARRIER - 6));
        assert!(
            !at(BARRIER - 2) && !at(BARRIER - 1),
            "it returns into thawed frames"
        );
        assert!(!at(BARRIER) && !at(BARRIER + 0x20));
        assert!(
            !is_in_thaw(&mem, AT + 0x1f0, AT + 0x1e0).unwrap(),
            "no such stub"
        );
    }
}

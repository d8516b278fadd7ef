//! Virtual threads: code that enters a continuation, and the return barrier.

use crate::hotspot::codecache::CodeCache;
use crate::hotspot::layout::{ABSENT, Layout};
use crate::memory::{Fault, Memory};

/// Reads four bytes of code. Not inlined into the loops that call it: there the read function would
/// be kept in a register, and the check of handlers cannot follow calls through registers.
#[inline(never)]
fn code_at<M: Memory>(mem: &M, at: u64) -> Result<u32, Fault> {
    mem.u32(at)
}

/// The same from the return barrier, which exists before the first virtual thread. It begins by
/// setting rsp back to the entry, `mov rsp, [r15 + d]` (stubGenerator_x86_64.cpp,
/// `generate_cont_thaw`).
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

/// Whether the code shortly before `pc` sets rsp back to the continuation's entry, with
/// `mov rsp, [r15 + entry]`. Only for code in a return barrier.
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

/// Whether `pc` is in the stub that thaws frames when a virtual thread is mounted again, after its
/// first instruction. That instruction pops the return address, so the stack then ends with the
/// continuation's entry. The stub is right before the return `barrier` and begins with `pop rcx;
/// mov rdi, r15` (stubGenerator_x86_64.cpp, `generate_cont_thaw`). Its last two instructions, which
/// return into the thawed frames, are excluded.
///
/// # Errors
/// [`Fault`] if the code cannot be read.
pub fn is_in_thaw<M: Memory>(mem: &M, barrier: u64, pc: u64) -> Result<bool, Fault> {
    /// 118 and 122 bytes in 21 to 28, with some reserve.
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

/// Bytes of `enterSpecial` searched for the offset of `JavaThread::_cont_entry`.
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
    fn thaw_stub_is_distinguished_from_its_neighbours() {
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
        // A stub of the maximum length, and a longer one.
        let begins = AT + 0x100;
        let longest = |bytes: u64| is_in_thaw(&mem, begins + bytes, begins + 0x20).unwrap();
        assert!(longest(0x90) && !longest(0x91));
    }

    /// `mov rsp, [r15 + 0x348]`, somewhere in the code.
    #[test]
    fn the_barrier_goes_back_to_the_entry() {
        const AT: u64 = 0x1000;
        let with = |place: usize| {
            let mut code = [0x90u8; 0x200];
            code[place..place + 7].copy_from_slice(&[0x49, 0x8b, 0xa7, 0x48, 0x03, 0, 0]);
            Bytes::at(AT, &code)
        };
        let offset = |place| entry_offset_of_barrier(&with(place), AT).unwrap();
        assert_eq!(offset(0), Some(0x348));
        assert_eq!(offset(31), Some(0x348));
        assert_eq!(offset(32), None);
        assert_eq!(entry_offset_of_barrier(&with(0), 0), Ok(None));
        let mut layout = Layout::EMPTY;
        let went = |layout: &Layout, place, pc| went_back_to_entry(&with(place), layout, pc);
        assert_eq!(
            went(&layout, 0x40, AT + 0x100),
            Ok(false),
            "the offset is not known"
        );
        layout.extra.cont_entry = 0x348;
        assert_eq!(went(&layout, 0xf9, AT + 0x100), Ok(true), "just before");
        assert_eq!(went(&layout, 0xfa, AT + 0x100), Ok(false), "not yet");
        assert_eq!(went(&layout, 0x31, AT + 0x100), Ok(true));
        assert_eq!(went(&layout, 0x30, AT + 0x100), Ok(false), "too far");
        layout.extra.cont_entry = 0x340;
        assert_eq!(went(&layout, 0x40, AT + 0x100), Ok(false), "another field");
    }

    /// `mov rax, [r15 + 0x348]`, and later `mov [r15 + 0x348], rsp`.
    #[test]
    fn the_entrys_offset_is_in_the_code_that_enters() {
        const BLOB: u64 = 0x1_0010;
        let mut words = [0; crate::hotspot::codecache::CODE_CACHE_WORDS];
        words[..4].copy_from_slice(&[0x1_0000, 0x2_0000, 0x600, 16]);
        let cache = CodeCache::from_words(&words);
        let mut layout = Layout::EMPTY;
        (layout.sizeof_heap_block, layout.blob_name, layout.blob_size) = (16, 0, 8);
        (layout.blob_frame_size, layout.blob_code_offset) = (12, 16);
        let found = |layout: &Layout, load: [u8; 7], store: [u8; 7]| {
            let mut code = [0x90u8; 0x400];
            code[0x10..0x17].copy_from_slice(&load);
            code[0x40..0x47].copy_from_slice(&store);
            let mut mem = Bytes::of_words(&[(0x600, &[0]), (BLOB, &[0x800, 0x400, 0x30])]);
            mem.add(0x800, b"native n");
            mem.add(BLOB + 0x30, &code);
            find_entry_offset(&mem, layout, &cache)
        };
        let load = [0x49, 0x8b, 0x87, 0x48, 3, 0, 0];
        let store = [0x49, 0x89, 0xa7, 0x48, 3, 0, 0];
        assert_eq!(found(&layout, load, store), Ok(None), "not known where");
        layout.extra.cont_return_pc = BLOB + 0x30 + 0x80;
        assert_eq!(found(&layout, load, store), Ok(Some(0x348)));
        let other = [0x49, 0x89, 0xa7, 0x50, 3, 0, 0];
        assert_eq!(found(&layout, load, other), Ok(None), "another field");
        assert_eq!(found(&layout, store, load), Ok(None), "the other way round");
    }
}

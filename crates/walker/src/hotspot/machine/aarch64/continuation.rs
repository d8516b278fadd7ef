//! Virtual threads: code that enters a continuation, and the return barrier.

use super::encoding;
use crate::hotspot::codecache::CodeCache;
use crate::hotspot::layout::Layout;
use crate::memory::{Fault, Memory};

/// The register that HotSpot's code uses for a moment.
const SCRATCH: u32 = 8;

/// Whether `ldr x8, [x28, n]; mov sp, x8` is at `at`, which sets sp to a field of the thread: n.
fn sets_sp<M: Memory>(mem: &M, at: u64) -> Result<Option<u64>, Fault> {
    let Some((true, SCRATCH, offset)) = encoding::thread_field(encoding::at(mem, at)?) else {
        return Ok(None);
    };
    let next = encoding::at(mem, at.wrapping_add(encoding::BYTES))?;
    Ok((encoding::moves_to_sp(next) == Some(SCRATCH)).then_some(offset))
}

/// The return barrier begins by setting sp back to the entry (stubGenerator_aarch64.cpp,
/// `generate_cont_thaw`).
///
/// # Errors
/// [`Fault`] if the code cannot be read.
pub fn entry_offset_of_barrier<M: Memory>(mem: &M, barrier: u64) -> Result<Option<u64>, Fault> {
    const SEARCHED: u64 = 8;
    if barrier == 0 {
        return Ok(None);
    }
    for i in 0..SEARCHED {
        if let Some(offset) = sets_sp(mem, barrier.wrapping_add(i * encoding::BYTES))? {
            return Ok(Some(offset));
        }
    }
    Ok(None)
}

/// Whether the code shortly before `pc` sets sp back to the continuation's entry.
///
/// # Errors
/// [`Fault`] if the code cannot be read.
pub fn went_back_to_entry<M: Memory>(mem: &M, layout: &Layout, pc: u64) -> Result<bool, Fault> {
    const SEARCHED: u64 = 64;
    for back in 2..SEARCHED {
        let at = pc.wrapping_sub(back * encoding::BYTES);
        if sets_sp(mem, at)? == Some(layout.extra.cont_entry) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether `pc` is in the stub that mounts a virtual thread again. It is right before the return
/// barrier, and in the end sets sp to the thawed frames by x9 (stubGenerator_aarch64.cpp,
/// `generate_cont_thaw`).
///
/// # Errors
/// [`Fault`] if the code cannot be read.
pub fn is_in_thaw<M: Memory>(mem: &M, barrier: u64, pc: u64) -> Result<bool, Fault> {
    const BYTES_MAX: u64 = 0x100;
    const FRAMES: u32 = 9;
    if pc >= barrier || pc < barrier.saturating_sub(BYTES_MAX) {
        return Ok(false);
    }
    for i in 0..BYTES_MAX / encoding::BYTES {
        let at = pc.wrapping_add(i * encoding::BYTES);
        if at >= barrier {
            break;
        }
        let code = encoding::at(mem, at)?;
        if encoding::is_return(code) {
            break;
        }
        if encoding::sp_from(code).is_some_and(|(register, _)| register == FRAMES) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The offset of `JavaThread::_cont_entry`, from the code of `enterSpecial`: it loads the field
/// into x8, and later stores sp there through the same register (sharedRuntime_aarch64.cpp,
/// `continuation_enter_setup`).
///
/// # Errors
/// [`Fault`] if the code cannot be read.
pub fn find_entry_offset<M: Memory>(
    mem: &M,
    layout: &Layout,
    code_cache: &CodeCache,
) -> Result<Option<u64>, Fault> {
    const SEARCHED: u64 = 512;
    const BEHIND: u64 = 256;
    let return_pc = layout.extra.cont_return_pc;
    let Some(blob) = code_cache.find(mem, layout, return_pc)? else {
        return Ok(None);
    };
    let mut loaded = None;
    for i in 0..SEARCHED {
        let at = blob.code_begin.wrapping_add(i * encoding::BYTES);
        if at >= return_pc.wrapping_add(BEHIND) {
            break;
        }
        match encoding::thread_field(encoding::at(mem, at)?) {
            Some((true, SCRATCH, offset)) => loaded = Some(offset),
            Some((false, SCRATCH, offset)) if loaded == Some(offset) => return Ok(loaded),
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    const AT: u64 = 0x1000;

    /// `ldr x8, [x28, 0x348]; mov sp, x8`, at one of 128 instructions.
    fn with(place: usize) -> Bytes {
        let mut code = [0u8; 0x200];
        code[4 * place..4 * place + 4].copy_from_slice(&0xf941_a788u32.to_le_bytes());
        code[4 * place + 4..4 * place + 8].copy_from_slice(&0x9100_011fu32.to_le_bytes());
        Bytes::at(AT, &code)
    }

    #[test]
    fn barrier_goes_back_to_the_entry() {
        let offset = |place| entry_offset_of_barrier(&with(place), AT).unwrap();
        assert_eq!((offset(0), offset(7)), (Some(0x348), Some(0x348)));
        assert_eq!(offset(8), None);
        assert_eq!(entry_offset_of_barrier(&with(0), 0), Ok(None));
        let mut layout = Layout::EMPTY;
        layout.extra.cont_entry = 0x348;
        let went = |layout: &Layout, place, pc| went_back_to_entry(&with(place), layout, pc);
        let pc = AT + 4 * 80;
        assert_eq!(went(&layout, 78, pc), Ok(true), "just before");
        assert_eq!(went(&layout, 79, pc), Ok(false), "not yet");
        assert_eq!(went(&layout, 17, pc), Ok(true));
        assert_eq!(went(&layout, 16, pc), Ok(false), "too far");
        layout.extra.cont_entry = 0x340;
        assert_eq!(went(&layout, 40, pc), Ok(false), "another field");
    }
    #[test]
    fn thaw_stub_is_before_the_barrier() {
        const BARRIER: u64 = AT + 0x180;
        const RET: u32 = 0xd65f_03c0;
        // A stub of 24 instructions right before the barrier, after the return of another one.
        let stub = BARRIER - 24 * 4;
        let mut code = [0u8; 0x200];
        let mut put = |at: u64, word: u32| {
            let into = (at - AT) as usize;
            code[into..into + 4].copy_from_slice(&word.to_le_bytes());
        };
        put(stub - 4, RET);
        put(BARRIER - 12, 0xd100_413f); // sub sp, x9, 16
        put(BARRIER - 4, RET);
        let mem = Bytes::at(AT, &code);
        let is_in = |pc| is_in_thaw(&mem, BARRIER, pc).unwrap();
        assert!(is_in(stub) && is_in(BARRIER - 12));
        assert!(!is_in(BARRIER - 8), "in the thawed frame");
        assert!(!is_in(stub - 4) && !is_in(BARRIER) && !is_in(BARRIER - 0x104));
        assert!(!is_in_thaw(&mem, 0, stub).unwrap(), "no virtual threads");
    }
}

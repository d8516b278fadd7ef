//! State of an interrupted compiled frame, from the instructions around pc (x86-64).
//!
//! Compiled code sets a frame up with `[stack bang] push rbp; [mov rbp, rsp]; sub rsp, n` or `sub
//! rsp, n; mov [rsp + n - 16], rbp`. It leaves the frame with `add rsp, n; pop rbp; [poll]; ret`
//! (c1_MacroAssembler_x86.cpp, macroAssembler_x86.cpp `verified_entry`, x86.ad epilog).

use crate::hotspot::codecache::Blob;
use crate::hotspot::layout::Layout;
use crate::hotspot::machine::FrameState;
use crate::hotspot::nmethod::frame_complete;
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;

const BEFORE: usize = 8;
const AFTER: usize = 8;

/// Determines the state of the frame of `blob` interrupted at `pc`.
///
/// # Errors
/// [`Fault`] if the code cannot be read.
pub fn frame_state<M: Memory>(
    mem: &M,
    layout: &Layout,
    blob: &Blob,
    pc: u64,
) -> Result<FrameState, Fault> {
    let mut bytes = [0u8; BEFORE + AFTER];
    mem.read(pc.wrapping_sub(BEFORE as u64), &mut bytes)?;
    let (before, after) = bytes.split_at(BEFORE);
    if let Some(state) = epilogue(before, after) {
        return Ok(state);
    }
    let complete_at = blob
        .code_begin
        .wrapping_add(frame_complete(mem, layout, blob)?);
    if pc >= complete_at {
        return Ok(FrameState::Complete);
    }
    Ok(prologue(before, after))
}

/// The caller of a frame in this state.
///
/// # Errors
/// [`Fault`] if the stack cannot be read.
pub fn caller<M: Memory>(
    mem: &M,
    at: NativeRegs,
    frame_bytes: u64,
    state: FrameState,
) -> Result<NativeRegs, Fault> {
    let (sp, fp) = match state {
        // The return address is at rsp, and rbp is the caller's.
        FrameState::None => (at.sp.wrapping_add(8), at.fp),
        FrameState::Pushed => (at.sp.wrapping_add(16), mem.word(at.sp)?),
        FrameState::Unsaved => (at.sp.wrapping_add(frame_bytes), at.fp),
        FrameState::Complete => {
            let sp = at.sp.wrapping_add(frame_bytes);
            (sp, mem.word(sp.wrapping_sub(16))?)
        }
    };
    Ok(NativeRegs {
        pc: mem.word(sp.wrapping_sub(8))?,
        sp,
        fp,
    })
}

fn prologue(before: &[u8], after: &[u8]) -> FrameState {
    let subtracts_next = matches!(after, [0x48, 0x83 | 0x81, 0xec, ..]);
    let copies_rsp_next = matches!(after, [0x48, 0x8b, 0xec, ..] | [0x48, 0x89, 0xe5, ..]);
    if subtracts_next || copies_rsp_next {
        let pushed = before.ends_with(&[0x55])
            || before.ends_with(&[0x55, 0x48, 0x8b, 0xec])
            || before.ends_with(&[0x55, 0x48, 0x89, 0xe5]);
        return if pushed {
            FrameState::Pushed
        } else {
            FrameState::None
        };
    }
    // mov [rsp + disp], rbp after the size was taken.
    let stores_rbp = matches!(after, [0x48, 0x89, 0x6c | 0xac, 0x24, ..]);
    if stores_rbp {
        return FrameState::Unsaved;
    }
    FrameState::None
}

fn epilogue(before: &[u8], after: &[u8]) -> Option<FrameState> {
    match after {
        // ret, ret imm16
        [0xc3 | 0xc2, ..] => Some(FrameState::None),
        // pop rbp, then poll, vzeroupper or ret
        [0x5d, 0xc3 | 0xc2 | 0x49 | 0x85 | 0xc5 | 0x41 | 0x4d, ..] => Some(FrameState::Pushed),
        // cmp rsp, [r15 + poll]: only before ret
        [0x49, 0x3b, 0x67 | 0xa7, ..] => Some(FrameState::None),
        // ja to the slow poll, directly before ret
        [0x0f, 0x87, _, _, _, _, 0xc3, ..] => Some(FrameState::None),
        // test eax, [poll]; ret
        [0x85, 0x05, _, _, _, _, 0xc3, ..] if before.ends_with(&[0x5d]) => Some(FrameState::None),
        // vzeroupper between pop rbp and ret
        [0xc5, 0xf8, 0x77, ..] if before.ends_with(&[0x5d]) => Some(FrameState::None),
        _ => None,
    }
}

/// Whether the instruction before `pc` is a call: `E8 rel32`, or `FF /2` through a register or
/// memory.
///
/// # Errors
/// [`Fault`] if the code cannot be read.
pub fn follows_call<M: Memory>(mem: &M, pc: u64) -> Result<bool, Fault> {
    let mut bytes = [0u8; 8];
    mem.read(pc.wrapping_sub(8), &mut bytes)?;
    let is_call_modrm = |b: u8| b & 0x38 == 0x10;
    Ok(match bytes {
        [_, _, _, 0xe8, _, _, _, _] => true,
        [.., 0xff, m] => is_call_modrm(m) && m & 0xc0 != 0x40 && m & 0xc0 != 0x80,
        [.., 0xff, m, _] if m & 0xc0 == 0x40 => is_call_modrm(m),
        [_, _, 0xff, m, ..] if m & 0xc0 == 0x80 || m & 0xc7 == 0x05 => is_call_modrm(m),
        _ => false,
    })
}

/// Whether the code from `begin` to the end of a call is `call TARGET` or `mov r10, TARGET; call
/// r10`, after a `vzeroupper` where the code uses wide vectors (x86_64.ad, `Java_To_Runtime` and
/// `clear_avx`).
///
/// # Errors
/// [`Fault`] if the code cannot be read.
pub fn is_leaf_call<M: Memory>(mem: &M, begin: u64, end: u64) -> Result<bool, Fault> {
    let first = mem.u16(begin)?.to_le_bytes();
    Ok(match end.wrapping_sub(begin) {
        5 => first[0] == 0xe8,
        13 => first == [0x49, 0xba],
        8 | 16 => first == [0xc5, 0xf8],
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prologue_states() {
        // Pads to the sizes that the reader uses.
        let pad = |bytes: &[u8]| {
            let mut out = [0x90u8; 8];
            out[..bytes.len()].copy_from_slice(bytes);
            out
        };
        let head = |bytes: &[u8]| {
            let mut out = [0x90u8; 8];
            out[8 - bytes.len()..].copy_from_slice(bytes);
            out
        };
        let sub = pad(&[0x48, 0x83, 0xec, 0x20]);
        assert_eq!(prologue(&head(&[0x55]), &sub), FrameState::Pushed);
        assert_eq!(prologue(&head(&[0x24]), &sub), FrameState::None);
        assert_eq!(prologue(&head(&[]), &pad(&[0x55])), FrameState::None);
        let store = pad(&[0x48, 0x89, 0x6c, 0x24, 0x10]);
        assert_eq!(prologue(&head(&[0x20]), &store), FrameState::Unsaved);
    }

    #[test]
    fn leaf_calls_are_whole_instructions() {
        let is_call = |code: &[u8]| {
            let mem = crate::hotspot::test_memory::Bytes::at(0x1000, code);
            is_leaf_call(&mem, 0x1000, 0x1000 + code.len() as u64).unwrap()
        };
        let near: &[u8] = &[0xe8, 1, 2, 3, 4];
        let far: &[u8] = &[0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8, 0x41, 0xff, 0xd2];
        for call in [near, far] {
            assert!(is_call(call));
            assert!(is_call(&[&[0xc5, 0xf8, 0x77], call].concat()));
            // Another instruction comes first or last.
            assert!(!is_call(&[&[0x90], call].concat()));
            assert!(!is_call(&[call, &[0x90]].concat()));
        }
        // Eight bytes of other code before a near call.
        assert!(!is_call(&[&[0x90; 8], near].concat()));
    }

    #[test]
    fn calls_before_a_return_address() {
        let ends = |tail: &[u8]| {
            let mut code = [0x90u8; 8];
            code[8 - tail.len()..].copy_from_slice(tail);
            let mem = crate::hotspot::test_memory::Bytes::at(0x1000, &code);
            follows_call(&mem, 0x1008).unwrap()
        };
        assert!(ends(&[0xe8, 1, 2, 3, 4]));
        assert!(ends(&[0x41, 0xff, 0xd2]));
        assert!(ends(&[0xff, 0x50, 0x10]));
        assert!(ends(&[0xff, 0x90, 1, 2, 3, 4]));
        assert!(ends(&[0xff, 0x15, 1, 2, 3, 4]));
        assert!(!ends(&[0xff, 0xe0]));
        // The operand is incomplete, or is not part of the instruction.
        assert!(!ends(&[0xff, 0x50]) && !ends(&[0xff, 0x90]));
        assert!(!ends(&[0xff, 0xd0, 0x90]) && !ends(&[0xff, 0xd0, 1, 2, 3, 4]));
        assert!(!ends(&[0x48, 0x89, 0xe5]));
    }

    #[test]
    fn epilogue_states() {
        let none = Some(FrameState::None);
        assert_eq!(epilogue(&[0x5d], &[0xc3, 0, 0, 0, 0, 0, 0, 0]), none);
        assert_eq!(
            epilogue(&[0x10], &[0x5d, 0x49, 0x3b, 0xa7]),
            Some(FrameState::Pushed)
        );
        assert_eq!(epilogue(&[0x5d], &[0x49, 0x3b, 0xa7, 0x50, 0x04]), none);
        assert_eq!(epilogue(&[0x90], &[0x48, 0x83, 0xc4, 0x10]), None);
        for left in [
            [0x85, 0x05, 1, 2, 3, 4, 0xc3, 0],
            [0xc5, 0xf8, 0x77, 0xc3, 0, 0, 0, 0],
        ] {
            assert_eq!(epilogue(&[0x5d], &left), none);
            assert_eq!(epilogue(&[0x90], &left), None, "rbp is still to be taken");
        }
    }

    #[test]
    fn frame_is_complete_from_the_blobs_offset_on() {
        use crate::hotspot::codecache::BlobKind;
        use crate::hotspot::test_memory::Bytes;
        let mut layout = Layout::EMPTY;
        layout.blob_frame_complete = 4;
        let at = |layout: &Layout, complete: u32, pc| {
            let mut mem = Bytes::at(0x1000, &[0x90; 64]);
            mem.add_words(0x2000, &[u64::from(complete) << 32]);
            let blob = Blob {
                addr: 0x2000,
                kind: BlobKind::Nmethod,
                code_begin: 0x1010,
                frame_bytes: 32,
            };
            frame_state(&mem, layout, &blob, pc).unwrap()
        };
        assert_eq!(at(&layout, 9, 0x1018), FrameState::None);
        assert_eq!(at(&layout, 9, 0x1019), FrameState::Complete);
        // Two bytes with other instructions after them; and no bytes.
        assert_eq!(at(&layout, 0x7_0009, 0x1019), FrameState::None);
        assert_eq!(at(&layout, u32::MAX, 0x1010), FrameState::Complete);
        layout.extra.frame_complete_short = true;
        assert_eq!(at(&layout, 0x7_0009, 0x1018), FrameState::None);
        assert_eq!(at(&layout, 0x7_0009, 0x1019), FrameState::Complete);
        assert_eq!(at(&layout, 0x7_ffff, 0x1010), FrameState::Complete);
    }
}

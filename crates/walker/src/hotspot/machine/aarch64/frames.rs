//! State of an interrupted compiled frame, from the instructions around pc.
//!
//! Compiled code sets a small frame up with `sub sp; stp x29, x30, [sp, n]` and a large one with
//! `stp x29, x30, [sp, -16]!; sub sp`. It removes them with `ldp x29, x30, [sp, n]; add sp` and
//! `add sp; ldp x29, x30, [sp], 16`, followed by the poll and `ret` (macroAssembler_aarch64.cpp,
//! `build_frame`, `remove_frame`; aarch64.ad, `MachPrologNode`, `MachEpilogNode`).

use super::encoding;
use crate::hotspot::codecache::Blob;
use crate::hotspot::layout::Layout;
use crate::hotspot::machine::FrameState;
use crate::hotspot::nmethod::frame_complete;
use crate::memory::{Fault, Memory};

/// Instructions from the first one that removes the frame to the return, at most.
const EPILOGUE_MAX: u64 = 8;
/// Instructions back to the begin of a prologue, at most.
const PROLOGUE_MAX: u64 = 16;

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
    if let Some(state) = epilogue(mem, pc)? {
        return Ok(state);
    }
    let complete_at = blob
        .code_begin
        .wrapping_add(frame_complete(mem, layout, blob)?);
    if pc >= complete_at {
        return Ok(FrameState::Complete);
    }
    prologue(mem, blob.code_begin, pc)
}

/// By the instructions that are left until the return. They remove the frame and poll.
fn epilogue<M: Memory>(mem: &M, pc: u64) -> Result<Option<FrameState>, Fault> {
    let mut state = FrameState::None;
    let mut raised = false;
    for at in (0..EPILOGUE_MAX).map(|i| pc.wrapping_add(i * encoding::BYTES)) {
        let next = encoding::at(mem, at)?;
        if encoding::is_return(next) {
            return Ok(Some(state));
        }
        if encoding::raises_sp(next) {
            raised = true;
            if state == FrameState::None {
                state = FrameState::Unsaved;
            }
        } else if encoding::loads_frame(next) {
            state = FrameState::Complete;
        } else if encoding::pops_frame(next) {
            state = match raised {
                true => FrameState::Complete,
                false => FrameState::Pushed,
            };
        } else if !encoding::is_poll_part(next) && !encoding::signs_or_checks(next) {
            return Ok(None);
        }
    }
    Ok(None)
}

/// By the instructions that have been executed, last first.
fn prologue<M: Memory>(mem: &M, begin: u64, pc: u64) -> Result<FrameState, Fault> {
    let mut lowered = false;
    for back in 1..=PROLOGUE_MAX {
        let at = pc.wrapping_sub(back * encoding::BYTES);
        if at < begin || at > pc {
            break;
        }
        let done = encoding::at(mem, at)?;
        if encoding::stores_frame(done) || encoding::lowers_sp_by_register(done) {
            return Ok(FrameState::Complete);
        }
        if encoding::pushes_frame(done) {
            return Ok(match lowered {
                true => FrameState::Complete,
                false => FrameState::Pushed,
            });
        }
        lowered |= encoding::lowers_sp(done);
    }
    Ok(match lowered {
        true => FrameState::Unsaved,
        false => FrameState::None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::codecache::BlobKind;
    use crate::hotspot::test_memory::Bytes;
    extern crate std;
    use std::vec::Vec;

    const CODE: u64 = 0x1000;
    const BEGIN: u64 = CODE + 0x40;
    const BLOB: u64 = 0x3000;

    /// The state before each instruction of a method whose frame is complete from `complete` on.
    fn states(codes: &[u32], complete: u64) -> Vec<FrameState> {
        let mut bytes = std::vec![0x1f, 0x20, 0x03, 0xd5].repeat(0x100 / 4);
        for (i, code) in codes.iter().enumerate() {
            bytes[0x40 + 4 * i..0x44 + 4 * i].copy_from_slice(&code.to_le_bytes());
        }
        let mut mem = Bytes::at(CODE, &bytes);
        mem.add_words(BLOB, &[complete << 32]);
        let mut layout = Layout::EMPTY;
        layout.blob_frame_complete = 4;
        let blob = Blob {
            addr: BLOB,
            kind: BlobKind::Nmethod,
            code_begin: BEGIN,
            frame_bytes: 32,
        };
        (0..codes.len() as u64)
            .map(|i| frame_state(&mem, &layout, &blob, BEGIN + 4 * i).unwrap())
            .collect()
    }

    const NOP: u32 = 0xd503_201f;
    const RET: u32 = 0xd65f_03c0;

    #[test]
    fn small_frame_has_a_state_at_each_instruction() {
        use FrameState::{Complete, None, Unsaved};
        let code = [
            0xd140_53e9, // sub x9, sp, 20, lsl 12
            0xf900_013f, // str xzr, [x9]
            0xd100_83ff, // sub sp, sp, 32
            0xa901_7bfd, // stp x29, x30, [sp, 16]
            NOP,
            NOP,
            0xa941_7bfd, // ldp x29, x30, [sp, 16]
            0x9100_83ff, // add sp, sp, 32
            0xf941_cf88, // ldr x8, [x28, 920]
            0xeb28_63ff, // cmp sp, x8
            0x5400_0048, // b.hi
            RET,
        ];
        let expected = [
            None, None, None, Unsaved, Complete, Complete, Complete, Unsaved, None, None, None,
            None,
        ];
        assert_eq!(states(&code, 4 * 4), expected);
    }

    #[test]
    fn large_frame_has_a_state_at_each_instruction() {
        use FrameState::{Complete, None, Pushed};
        let code = [
            0xa9bf_7bfd, // stp x29, x30, [sp, -16]!
            0x9100_03fd, // mov x29, sp
            0xd110_03ff, // sub sp, sp, 1024
            NOP,
            NOP,
            0x9110_03ff, // add sp, sp, 1024
            0xa8c1_7bfd, // ldp x29, x30, [sp], 16
            RET,
        ];
        let expected = [
            None, Pushed, Pushed, Complete, Complete, Complete, Pushed, None,
        ];
        assert_eq!(states(&code, 4 * 4), expected);
        // A size in a register.
        let code = [0xa9bf_7bfd, 0xd282_0008, 0xcb28_63ff, NOP, NOP];
        assert_eq!(
            states(&code, 4 * 4),
            [None, Pushed, Pushed, Complete, Complete]
        );
    }

    #[test]
    fn other_code_before_a_return_is_no_epilogue() {
        // mov x0, x1 before ldp: the frame is complete anyway, and stays so.
        let code = [0xaa01_03e0, 0xa941_7bfd, 0x9100_83ff, RET];
        assert_eq!(states(&code, 0)[0], FrameState::Complete);
        // A return that is too far away.
        let mut far = std::vec![0xf941_cf88; 8];
        far.push(RET);
        assert_eq!(states(&far, 0)[0], FrameState::Complete);
        assert_eq!(states(&far, 0)[1], FrameState::None);
    }
}

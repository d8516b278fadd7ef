//! The last instructions of stubs that leave to an exception handler. From the first pop on, the
//! instructions determine the end of the frame and the caller.
//!
//! C2's `rethrow` (src/hotspot/cpu/x86/x86.ad, `RethrowException` and the epilogue of runtime
//! stubs) ends in `pop rbp; pop rdx; jmp r10`. C1's exception stub (c1_Runtime1_x86.cpp,
//! `generate_handle_exception`) puts the handler's address in place of the return address, then
//! `leave; pop rcx; jmp rcx`. C2's exception blob has a frame of its own making.

use super::Regs;
use crate::hotspot::codecache::Blob;
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;

/// The caller of a stub interrupted in these instructions; its pc may be that of a handler. `None`
/// at any other pc.
///
/// # Errors
/// [`Fault`] if code or stack cannot be read.
pub fn caller<M: Memory>(mem: &M, blob: &Blob, regs: &Regs) -> Result<Option<NativeRegs>, Fault> {
    if let Some(caller) = exception_blob(mem, blob, regs)? {
        return Ok(Some(caller));
    }
    let mut code = [0u8; 8];
    mem.read(regs.pc.wrapping_sub(3), &mut code)?;
    let (before, after) = code.split_at(3);
    let sp = regs.sp;
    let popped = |pc: u64| NativeRegs {
        pc,
        sp,
        fp: regs.fp,
    };
    Ok(match after {
        [0x5d, 0x5a, 0x41, 0xff, 0xe2] => Some(NativeRegs {
            pc: mem.word(sp.wrapping_add(8))?,
            sp: sp.wrapping_add(16),
            fp: mem.word(sp)?,
        }),
        [0xc9, 0x59, 0xff, 0xe1, _] => Some(NativeRegs {
            pc: mem.word(regs.fp.wrapping_add(8))?,
            sp: regs.fp.wrapping_add(16),
            fp: mem.word(regs.fp)?,
        }),
        [0x5a, 0x41, 0xff, 0xe2, _] | [0x59, 0xff, 0xe1, ..] => Some(NativeRegs {
            pc: mem.word(sp)?,
            sp: sp.wrapping_add(8),
            fp: regs.fp,
        }),
        [0x41, 0xff, 0xe2, ..] if before.ends_with(&[0x5d, 0x5a]) => Some(popped(regs.rdx)),
        [0xff, 0xe1, ..] if before.ends_with(&[0xc9, 0x59]) => Some(popped(regs.rcx)),
        _ => None,
    })
}

/// C2's exception blob (`OptoRuntime::generate_exception_blob`) pushes the return address from rdx
/// and saves rbp below it. Before it jumps to the handler, it restores both.
fn exception_blob<M: Memory>(
    mem: &M,
    blob: &Blob,
    regs: &Regs,
) -> Result<Option<NativeRegs>, Fault> {
    // push rdx; sub rsp, 8; mov [rsp], rbp
    const BEGIN: [u8; 9] = [0x52, 0x48, 0x83, 0xec, 0x08, 0x48, 0x89, 0x2c, 0x24];
    // mov rbp, [rsp]; add rsp, 8; pop rdx
    const END: [u8; 9] = [0x48, 0x8b, 0x2c, 0x24, 0x48, 0x83, 0xc4, 0x08, 0x5a];
    /// Maximum distance from there to the jump.
    const REST: u64 = 64;
    let mut begin = [0u8; BEGIN.len()];
    mem.read(blob.code_begin, &mut begin)?;
    if begin != BEGIN {
        return Ok(None);
    }
    let unwound = |pc: u64, words: u64| NativeRegs {
        pc,
        sp: regs.sp.wrapping_add(words * 8),
        fp: regs.fp,
    };
    match regs.pc.wrapping_sub(blob.code_begin) {
        0 => return Ok(Some(unwound(regs.rdx, 0))),
        1 => return Ok(Some(unwound(mem.word(regs.sp)?, 1))),
        5 => return Ok(Some(unwound(mem.word(regs.sp.wrapping_add(8))?, 2))),
        _ => {}
    }
    // The last instruction of END is next or has been executed.
    for back in END.len() as u64 - 1..REST {
        let at = regs.pc.wrapping_sub(back);
        let mut end = [0u8; END.len()];
        if at < blob.code_begin {
            break;
        }
        mem.read(at, &mut end)?;
        if end == END {
            let next = back == END.len() as u64 - 1;
            let pc = if next { mem.word(regs.sp)? } else { regs.rdx };
            return Ok(Some(unwound(pc, u64::from(next))));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use crate::hotspot::BlobKind;
    use crate::hotspot::test_memory::Bytes;
    use std::vec;
    use std::vec::Vec;

    const CODE: u64 = 0x1000;
    const STACK: u64 = 0x2000;

    /// Walks the instructions of `code` one by one; returns the caller found at each.
    fn at_each(code: &[u8], lengths: &[u64]) -> Vec<Option<NativeRegs>> {
        let mut padded = vec![0x90; 8];
        padded.extend(code);
        padded.extend([0xf4; 16]);
        let mut mem = Bytes::at(CODE - 8, &padded);
        let words = [0xf9u64.to_le_bytes(), 0xca11u64.to_le_bytes(), [0; 8]];
        mem.add(STACK, words.as_flattened());
        let mut regs = Regs {
            pc: CODE,
            sp: STACK,
            fp: STACK,
            ..Regs::default()
        };
        let blob = Blob {
            addr: CODE - 8,
            kind: BlobKind::Stub,
            code_begin: CODE,
            frame_bytes: 0,
        };
        let mut found = Vec::new();
        for length in lengths {
            found.push(caller(&mem, &blob, &regs).unwrap());
            // The effect of the instruction.
            match mem.u8(regs.pc).unwrap() {
                0x5d | 0xc9 => {
                    (regs.fp, regs.sp) = (mem.word(regs.sp).unwrap(), regs.sp + 8);
                }
                0x5a => (regs.rdx, regs.sp) = (mem.word(regs.sp).unwrap(), regs.sp + 8),
                0x59 => (regs.rcx, regs.sp) = (mem.word(regs.sp).unwrap(), regs.sp + 8),
                _ => {}
            }
            regs.pc += length;
        }
        found
    }

    #[test]
    fn the_caller_is_the_same_at_every_instruction() {
        let caller = Some(NativeRegs {
            pc: 0xca11,
            sp: STACK + 16,
            fp: 0xf9,
        });
        let rethrow = at_each(&[0x5d, 0x5a, 0x41, 0xff, 0xe2], &[1, 1, 3]);
        assert_eq!(rethrow, [caller; 3]);
        let handle = at_each(&[0xc9, 0x59, 0xff, 0xe1], &[1, 1, 2]);
        assert_eq!(handle, [caller; 3]);
    }

    #[test]
    fn the_exception_blob_has_a_caller_at_both_ends() {
        // push rdx; sub rsp, 8; mov [rsp], rbp; nop; mov rbp, [rsp]; add rsp, 8; pop rdx; nop; nop
        let mut code = vec![0x52, 0x48, 0x83, 0xec, 0x08, 0x48, 0x89, 0x2c, 0x24, 0x90];
        code.extend([
            0x48, 0x8b, 0x2c, 0x24, 0x48, 0x83, 0xc4, 0x08, 0x5a, 0x90, 0x90,
        ]);
        let mem = {
            let mut bytes = vec![0x90; 8];
            bytes.extend(&code);
            bytes.extend([0xf4; 16]);
            let mut mem = Bytes::at(CODE - 8, &bytes);
            let words = [1u64, 2, 3, 4].map(u64::to_le_bytes);
            mem.add(STACK, words.as_flattened());
            mem
        };
        let blob = Blob {
            addr: CODE - 8,
            kind: BlobKind::Stub,
            code_begin: CODE,
            frame_bytes: 16,
        };
        let at = |offset: u64| {
            let regs = Regs {
                pc: CODE + offset,
                sp: STACK,
                fp: 7,
                rdx: 9,
                ..Regs::default()
            };
            let found = caller(&mem, &blob, &regs).unwrap();
            found.map(|c| (c.pc, c.sp - STACK, c.fp))
        };
        assert_eq!(at(0), Some((9, 0, 7)), "nothing pushed yet");
        assert_eq!(at(1), Some((1, 8, 7)));
        assert_eq!(at(5), Some((2, 16, 7)));
        assert_eq!([9, 10, 14].map(at), [None; 3], "the frame is whole");
        assert_eq!(at(18), Some((1, 8, 7)), "pop rdx is next");
        assert_eq!([19, 20].map(at), [Some((9, 0, 7)); 2]);
    }

    #[test]
    fn other_code_is_not_mistaken_for_it() {
        assert_eq!(at_each(&[0x5d, 0xc3], &[1, 1]), [None; 2]);
        assert_eq!(at_each(&[0x41, 0xff, 0xe2], &[3]), [None]);
        assert_eq!(at_each(&[0xc9, 0xc3], &[1, 1]), [None; 2]);
    }
}

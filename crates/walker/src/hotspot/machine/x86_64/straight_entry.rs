//! The frame of a stub that has not got beyond its entry. From the beginning of its blob to the pc
//! there is no branch and no call, so the words that these instructions have pushed are known.
//!
//! The way out of such a frame cannot always be followed: the blob of deoptimisation saves all
//! registers, calls the VM, and then replaces frames by others of unknown sizes. The reserved room
//! is large, so that threads are met in it (sharedRuntime_x86_64.cpp, `generate_deopt_blob`).

use super::Regs;
use super::instruction::{self, Arithmetic, LENGTH_MAX, Operand, Operation, RBP, RSP};
use crate::memory::Memory;
use crate::native::NativeRegs;

/// Maximum number of instructions followed. To save the registers of AVX-512 takes some hundred.
const STEPS_MAX: u32 = 512;

/// The registers relative to their values at the entry.
struct Frame {
    /// The bytes from rsp up to the return address; `None`: rsp was aligned.
    depth: Option<u64>,
    /// The same of rbp, once it is the frame's.
    base: Option<u64>,
    /// The bytes from the saved rbp up to the return address.
    saved_fp: Option<u64>,
}

impl Frame {
    /// Adds an instruction; `None` if its effect on rsp or rbp is not known.
    fn add(&mut self, operation: Operation) -> Option<()> {
        const KEPT: u16 = 1 << RSP | 1 << RBP;
        match operation {
            Operation::Push(from) => {
                self.depth = self.depth.map(|depth| depth.wrapping_add(8));
                if from == Operand::Register(RBP) && self.base.is_none() {
                    self.saved_fp = self.saved_fp.or(self.depth);
                }
            }
            Operation::Move(Operand::Register(RBP), Operand::Register(RSP)) => {
                self.base = Some(self.depth?);
            }
            Operation::Change(arithmetic, RSP, Operand::Number(bytes)) => {
                let bytes = bytes as u64;
                self.depth = match arithmetic {
                    Arithmetic::Subtract => Some(self.depth?.wrapping_add(bytes)),
                    Arithmetic::Add => Some(self.depth?.wrapping_sub(bytes)),
                    Arithmetic::And => None,
                };
            }
            Operation::Pop(Operand::Unknown) => self.depth = Some(self.depth?.wrapping_sub(8)),
            Operation::Spoil(registers) if registers & KEPT == 0 => {}
            Operation::Load(to, _) | Operation::Change(_, to, _) if to != RSP && to != RBP => {}
            Operation::Move(to, _) if !is_kept(to) => {}
            Operation::Nothing => {}
            _ => return None,
        }
        Some(())
    }

    /// The caller, with the registers at this point. The saved rbp is the caller's.
    fn caller<M: Memory>(&self, mem: &M, regs: &Regs) -> Option<NativeRegs> {
        let slot = match (self.depth, self.base) {
            (Some(depth), _) => regs.sp.wrapping_add(depth),
            (None, Some(base)) => regs.fp.wrapping_add(base),
            (None, None) => return None,
        };
        let fp = match self.saved_fp {
            Some(below) => mem.word(slot.wrapping_sub(below)).ok()?,
            None => regs.fp,
        };
        Some(NativeRegs {
            pc: mem.word(slot).ok()?,
            sp: slot.wrapping_add(8),
            fp,
        })
    }
}

fn is_kept(operand: Operand) -> bool {
    matches!(operand, Operand::Register(RSP | RBP))
}

/// The caller of code that begins at `entry` and has come to `regs` without a branch or a call.
/// The caller of this function must know that no other way leads there.
#[inline(never)]
pub fn caller<M: Memory>(mem: &M, entry: u64, regs: &Regs) -> Option<NativeRegs> {
    let mut frame = Frame {
        depth: Some(0),
        base: None,
        saved_fp: None,
    };
    let mut at = entry;
    for _ in 0..STEPS_MAX {
        if at >= regs.pc {
            break;
        }
        let mut code = [0; LENGTH_MAX];
        mem.read(at, &mut code).ok()?;
        let instruction = instruction::decode(&code)?;
        frame.add(instruction.operation)?;
        at = at.wrapping_add(instruction.length);
    }
    // Otherwise these are not the instructions that the thread has executed.
    (at == regs.pc).then(|| frame.caller(mem, regs)).flatten()
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    const CODE: u64 = 0x1000;
    const STACK: u64 = 0x7f00_0000_0000;
    const CALLER: u64 = 0xca11;
    const FP: u64 = STACK + 0x700;
    /// rsp at the entry.
    const SP: u64 = STACK + 0x5e8;

    /// The beginning of `DeoptimizationBlob` of 21, with fewer registers.
    const SAVES: [u8; 45] = [
        0x48, 0x83, 0xec, 0x08, // 0: sub rsp, 8
        0x55, // 4: push rbp
        0x48, 0x8b, 0xec, // 5: mov rbp, rsp
        0x9c, // 8: pushf
        0x48, 0x83, 0xec, 0x08, // 9: sub rsp, 8
        0x48, 0x89, 0x44, 0x24, 0x78, // 13: mov [rsp + 0x78], rax
        0x48, 0x81, 0xec, 0x00, 0x02, 0, 0, // 18: sub rsp, 0x200
        0x48, 0x0f, 0xae, 0x04, 0x24, // 25: fxsave [rsp]
        0x62, 0x73, 0xfd, 0x48, 0x1b, 0x6c, 0x24, 0x31, 0x01, // 30: vextractf64x4
        0xe8, 0, 0, 0, 0,    // 39: call
        0x90, // 44: nop
    ];

    /// The code, and a stack with the saved rbp so many bytes below the return address.
    fn memory(code: &[u8], saved: u64) -> Bytes {
        let mut padded = [0xf4; 128];
        padded[..code.len()].copy_from_slice(code);
        let mut mem = Bytes::at(CODE, &padded);
        let mut words = std::vec![0xdead; 256];
        words[(SP - STACK) as usize / 8] = CALLER;
        words[(SP - saved - STACK) as usize / 8] = FP;
        mem.add_words(STACK, &words);
        mem
    }

    fn found(mem: &Bytes, offset: u64, below: u64, fp: u64) -> Option<(u64, u64, u64)> {
        let regs = Regs {
            pc: CODE + offset,
            sp: SP - below,
            fp,
            ..Regs::default()
        };
        caller(mem, CODE, &regs).map(|it| (it.pc, it.sp, it.fp))
    }

    #[test]
    fn saving_entry_has_its_caller_at_every_instruction() {
        let mem = memory(&SAVES, 0x10);
        let wanted = Some((CALLER, SP + 8, FP));
        let base = SP - 0x10;
        for (offset, below, fp) in [
            (0, 0, FP),
            (4, 8, FP),
            (5, 0x10, FP),
            (8, 0x10, base),
            (9, 0x18, base),
            (13, 0x20, base),
            (18, 0x20, base),
            (25, 0x220, base),
            (30, 0x220, base),
            (39, 0x220, base),
        ] {
            assert_eq!(found(&mem, offset, below, fp), wanted, "at {offset}");
        }
    }

    #[test]
    fn code_after_a_call_or_between_instructions_has_none() {
        let mem = memory(&SAVES, 0x10);
        assert_eq!(found(&mem, 44, 0x220, SP - 0x10), None, "after the call");
        assert_eq!(found(&mem, 6, 0x10, FP), None, "no instruction");
        assert_eq!(found(&mem, 100, 0, FP), None, "a trap");
    }

    #[test]
    fn aligned_rsp_needs_the_frame_pointer() {
        let code = [
            0x55, // 0: push rbp
            0x48, 0x8b, 0xec, // 1: mov rbp, rsp
            0x48, 0x83, 0xe4, 0xc0, // 4: and rsp, -64
        ];
        let mem = memory(&code, 8);
        let wanted = Some((CALLER, SP + 8, FP));
        assert_eq!(found(&mem, 8, 0x77, SP - 8), wanted);
        let mem = memory(&code[4..], 8);
        assert_eq!(found(&mem, 4, 0x28, SP - 8), None);
    }

    #[test]
    fn changed_frame_pointer_gives_no_caller() {
        for code in [
            &[0x5d][..],                  // pop rbp
            &[0x33, 0xed],                // xor ebp, ebp
            &[0x49, 0x8b, 0xe5],          // mov rsp, r13
            &[0x48, 0x8d, 0x6c, 0x24, 8], // lea rbp, [rsp + 8]
            &[0xeb, 0x00],                // jmp
            &[0x74, 0x00],                // je
        ] {
            let mem = memory(code, 8);
            assert_eq!(found(&mem, code.len() as u64, 0, FP), None, "{code:x?}");
        }
    }
}

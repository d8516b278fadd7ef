//! Unwind rules of native code. Source: System V AMD64 ABI.

use crate::memory::{Fault, Memory};
use crate::native::{NativeRegs, NativeStep, Rule, SavedRbp};

// Offsets in the x86-64 `ucontext_t` that the kernel puts at rsp of `__restore_rt`
// (uc_flags, uc_link, uc_stack = 40 bytes, then gregs; asm/sigcontext.h: r8..r15, rdi, rsi, rbp,
// rbx, rdx, rax, rcx, rsp, rip).
const UC_GREGS: u64 = 40;
const UC_RBP: u64 = UC_GREGS + 10 * 8;
const UC_RSP: u64 = UC_GREGS + 15 * 8;
const UC_RIP: u64 = UC_GREGS + 16 * 8;

/// Applies `rule` to `regs`.
///
/// # Errors
/// [`Fault`] if the stack cannot be read where the rule points.
pub fn step<M: Memory>(mem: &M, rule: Rule, regs: NativeRegs) -> Result<NativeStep, Fault> {
    let (cfa, rbp) = match rule {
        Rule::Gap | Rule::Unsupported | Rule::Link { .. } => return Ok(NativeStep::NoRule),
        Rule::End => return Ok(NativeStep::End),
        Rule::Sp { cfa_bytes, rbp } => (regs.sp.wrapping_add(u64::from(cfa_bytes)), rbp),
        Rule::Fp { cfa_bytes, rbp } => (regs.fp.wrapping_add(u64::from(cfa_bytes)), rbp),
        Rule::Plt => {
            let extra = if regs.pc & 15 >= 11 { 8 } else { 0 };
            (regs.sp.wrapping_add(8 + extra), SavedRbp::Same)
        }
        Rule::SignalFrame => {
            return Ok(NativeStep::Interrupted(NativeRegs {
                pc: mem.word(regs.sp.wrapping_add(UC_RIP))?,
                sp: mem.word(regs.sp.wrapping_add(UC_RSP))?,
                fp: mem.word(regs.sp.wrapping_add(UC_RBP))?,
            }));
        }
    };
    let pc = mem.word(cfa.wrapping_sub(8))?;
    let fp = match rbp {
        SavedRbp::Same => regs.fp,
        SavedRbp::At(n) => mem.word(cfa.wrapping_sub(u64::from(n) * 8))?,
    };
    if pc == 0 {
        return Ok(NativeStep::End);
    }
    Ok(NativeStep::Caller(NativeRegs { pc, sp: cfa, fp }))
}

//! aarch64. Facts are from OpenJDK's src/hotspot/cpu/aarch64 and the Procedure Call Standard for
//! the Arm 64-bit Architecture.
//!
//! A call leaves the return address in x30. A frame ends with the caller's frame pointer (x29) and
//! above it the return address, which may be signed. So rules of native code need one slot: the
//! return address is above the saved frame pointer or, if that is not saved, still in x30, which is
//! known in interrupted frames only. Handlers of exceptions and of polls in loops are not
//! recognised yet: such walks end in a named failure.

mod continuation;
mod encoding;
mod frames;
mod interpreted;
mod stub;
mod way_out;

use super::{Caller, Checks, FrameState, Machine, WayOut};
use crate::hotspot::codecache::{Blob, CodeCache};
use crate::hotspot::interpreter::Interpreted;
use crate::hotspot::layout::Layout;
use crate::memory::{Fault, Memory};
use crate::native::{NativeRegs, NativeStep, Rule, SavedRbp};

/// aarch64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aarch64;

/// The registers of an interrupted thread that the walk uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regs {
    /// pc.
    pub pc: u64,
    /// sp.
    pub sp: u64,
    /// x29.
    pub fp: u64,
    /// x30: the return address while a function has not saved it.
    pub lr: u64,
    /// x12: the callee's `Method*` in method entries.
    pub x12: u64,
    /// x13: the caller's sp in method entries, until 19.
    pub x13: u64,
    /// x19: the same since 20.
    pub x19: u64,
    /// x20: top of the interpreter's expression stack; the caller's sp when a method returns.
    pub x20: u64,
    /// x22: the interpreter's bytecode pointer.
    pub x22: u64,
}

/// The code address in a signed return address. The signature is in the bits that addresses of
/// programs do not use: from bit 48 on, as Linux gives out larger addresses on request only.
const fn return_address(word: u64) -> u64 {
    word & 0xffff_ffff_ffff
}

/// The step to a caller. The outermost frame returns to 0.
const fn called_from(caller: NativeRegs) -> NativeStep {
    match caller.pc {
        0 => NativeStep::End,
        _ => NativeStep::Caller(caller),
    }
}

fn linked<M: Memory>(mem: &M, fp: u64) -> Result<NativeRegs, Fault> {
    Aarch64.linked(mem, fp)
}

fn ending<M: Memory>(mem: &M, sp: u64) -> Result<NativeRegs, Fault> {
    Aarch64.ending(mem, sp)
}

// A signal frame at sp: `siginfo_t` (128 bytes), `ucontext_t` with its registers after flags, link,
// stack and mask, at a multiple of 16 (asm/sigcontext.h: fault address, x0 to x30, sp, pc).
const SIGNAL_X0: u64 = 128 + 176 + 8;
const SIGNAL_SP: u64 = SIGNAL_X0 + 31 * 8;
const SIGNAL_PC: u64 = SIGNAL_X0 + 32 * 8;

fn saved<M: Memory>(mem: &M, signal_frame: u64, register: u64) -> Result<u64, Fault> {
    mem.word(signal_frame.wrapping_add(SIGNAL_X0 + register * 8))
}

impl Machine for Aarch64 {
    type Regs = Regs;

    fn start(self, regs: &Regs) -> NativeRegs {
        NativeRegs {
            pc: regs.pc,
            sp: regs.sp,
            fp: regs.fp,
        }
    }

    fn only(self, at: NativeRegs) -> Regs {
        Regs {
            pc: at.pc,
            sp: at.sp,
            fp: at.fp,
            ..Regs::default()
        }
    }

    fn interrupted<M: Memory>(self, mem: &M, signal_frame: u64, at: NativeRegs) -> Regs {
        let register = |number| saved(mem, signal_frame, number).unwrap_or(0);
        Regs {
            lr: register(30),
            x12: register(12),
            x13: register(13),
            x19: register(19),
            x20: register(20),
            x22: register(22),
            ..self.only(at)
        }
    }

    fn live_bcp(self, regs: &Regs) -> u64 {
        regs.x22
    }

    fn return_address(self, word: u64) -> u64 {
        return_address(word)
    }

    /// frame_aarch64.hpp: -9 words; until 8, -7.
    fn bcp_slot(self, is_since_9: bool) -> i64 {
        if is_since_9 { -72 } else { -56 }
    }

    fn interpreted_sp(self, fp: u64, slot: u64) -> Option<u64> {
        interpreted::interpreted_sp(fp, slot)
    }

    /// x29: `VMReg`s have two numbers for each register.
    fn kept_register(self) -> u64 {
        58
    }

    fn unwind<M: Memory>(
        self,
        mem: &M,
        rule: Rule,
        at: NativeRegs,
        exact: Option<&Regs>,
    ) -> Result<NativeStep, Fault> {
        let (cfa, slot) = match rule {
            Rule::Gap | Rule::Unsupported => return Ok(NativeStep::NoRule),
            Rule::End => return Ok(NativeStep::End),
            Rule::Sp { cfa_bytes, rbp } => (at.sp.wrapping_add(cfa_bytes.into()), rbp),
            Rule::Fp { cfa_bytes, rbp } => (at.fp.wrapping_add(cfa_bytes.into()), rbp),
            Rule::Link { cfa_bytes, slot: 0 } => {
                let caller = self.linked(mem, at.sp)?;
                let sp = at.sp.wrapping_add(cfa_bytes.into());
                return Ok(called_from(NativeRegs { sp, ..caller }));
            }
            Rule::Link { cfa_bytes, slot } => {
                let sp = at.sp.wrapping_add(cfa_bytes.into());
                let pc = return_address(mem.word(sp.wrapping_sub(u64::from(slot) * 8))?);
                return Ok(called_from(NativeRegs { pc, sp, fp: at.fp }));
            }
            // An entry of the PLT only jumps.
            Rule::Plt => (at.sp, SavedRbp::Same),
            Rule::SignalFrame => {
                return Ok(NativeStep::Interrupted(NativeRegs {
                    pc: mem.word(at.sp.wrapping_add(SIGNAL_PC))?,
                    sp: mem.word(at.sp.wrapping_add(SIGNAL_SP))?,
                    fp: saved(mem, at.sp, 29)?,
                }));
            }
        };
        let (fp, word) = match (slot, exact) {
            (SavedRbp::At(slot), _) => {
                let at = cfa.wrapping_sub(u64::from(slot) * 8);
                (mem.word(at)?, mem.word(at.wrapping_add(8))?)
            }
            (SavedRbp::Same, Some(regs)) => (at.fp, regs.lr),
            (SavedRbp::Same, None) => return Ok(NativeStep::NoRule),
        };
        let pc = return_address(word);
        Ok(called_from(NativeRegs { pc, sp: cfa, fp }))
    }

    /// Code that the compilers have not made, such as HotSpot's own copies of memory, most often
    /// has neither rules nor a frame.
    fn returns_by_link(self) -> bool {
        true
    }

    /// macroAssembler_aarch64.cpp, `call_VM_leaf_base`.
    fn leaf_call_bytes(self) -> u64 {
        16
    }

    /// frame_aarch64.hpp; vmStructs does not have it.
    fn call_wrapper_slot(self) -> i64 {
        -8
    }

    fn leaf_caller<M: Memory>(self, _: &M, regs: &Regs) -> Result<NativeRegs, Fault> {
        Ok(NativeRegs {
            pc: return_address(regs.lr),
            sp: regs.sp,
            fp: regs.fp,
        })
    }

    fn follows_call<M: Memory>(self, mem: &M, pc: u64) -> Result<bool, Fault> {
        encoding::at(mem, pc.wrapping_sub(encoding::BYTES)).map(encoding::is_call)
    }

    /// `bl TARGET`, or `adr` of the return address, the target's three moves, `stp` and `blr`
    /// (aarch64.ad, `aarch64_enc_java_to_runtime`).
    fn is_leaf_call<M: Memory>(self, mem: &M, begin: u64, end: u64) -> Result<bool, Fault> {
        const FAR: u64 = 6 * encoding::BYTES;
        let is_adr = |code| code & 0x9f00_0000 == 0x1000_0000;
        Ok(match end.wrapping_sub(begin) {
            encoding::BYTES => self.follows_call(mem, end)?,
            FAR => is_adr(encoding::at(mem, begin)?) && self.follows_call(mem, end)?,
            _ => false,
        })
    }

    /// `ldr wzr, [REGISTER]` (aarch64.ad, `safePoint`).
    fn is_loop_poll<M: Memory>(self, mem: &M, pc: u64) -> Result<bool, Fault> {
        encoding::at(mem, pc).map(|next| next & 0xffff_fc1f == 0xb940_001f)
    }

    fn frame_state<M: Memory>(
        self,
        mem: &M,
        layout: &Layout,
        blob: &Blob,
        pc: u64,
    ) -> Result<FrameState, Fault> {
        frames::frame_state(mem, layout, blob, pc)
    }

    fn compiled_caller<M: Memory>(
        self,
        mem: &M,
        at: NativeRegs,
        exact: Option<&Regs>,
        frame_bytes: u64,
        state: FrameState,
    ) -> Result<NativeRegs, Fault> {
        let by_link = |sp| match exact {
            Some(regs) => Ok(NativeRegs {
                pc: return_address(regs.lr),
                sp,
                fp: at.fp,
            }),
            None => Err(Fault { addr: at.sp }),
        };
        match state {
            FrameState::None => by_link(at.sp),
            FrameState::Unsaved => by_link(at.sp.wrapping_add(frame_bytes)),
            FrameState::Pushed => linked(mem, at.sp),
            FrameState::Complete => ending(mem, at.sp.wrapping_add(frame_bytes)),
        }
    }

    fn static_call_caller<M: Memory>(
        self,
        mem: &M,
        blob: &Blob,
        regs: &Regs,
    ) -> Option<NativeRegs> {
        stub::static_call_caller(mem, blob, regs)
    }

    fn exit_caller<M: Memory>(
        self,
        mem: &M,
        regs: &Regs,
        is_return: impl Fn(u64) -> bool,
    ) -> Option<NativeRegs> {
        let found = interpreted::read_exit(mem, regs).ok().flatten();
        found.filter(|caller| is_return(caller.pc))
    }

    fn forwarding_caller<M: Memory>(
        self,
        mem: &M,
        at: NativeRegs,
    ) -> Result<Option<NativeRegs>, Fault> {
        interpreted::forwarding(mem, at)
    }

    fn entered<M: Memory>(
        self,
        mem: &M,
        layout: &Layout,
        code: &CodeCache,
        regs: &Regs,
        is_return: impl Fn(u64) -> bool,
    ) -> Result<Option<Interpreted>, Fault> {
        interpreted::read_entry(mem, layout, code, regs, is_return)
    }

    fn is_being_built<M: Memory>(
        self,
        mem: &M,
        code: &CodeCache,
        regs: &Regs,
    ) -> Result<bool, Fault> {
        interpreted::is_being_built(mem, code, regs)
    }

    fn unframed_entry<M: Memory>(
        self,
        mem: &M,
        regs: &Regs,
        checks: &impl Checks,
    ) -> Option<WayOut> {
        way_out::caller_of_entry(mem, regs, checks)
    }

    /// The return address is in a register that only the entry's own code knows.
    fn unframed_entry_after_call<M: Memory>(
        self,
        _: &M,
        _: NativeRegs,
        _: Option<u64>,
        _: &impl Checks,
    ) -> Option<WayOut> {
        None
    }

    fn leaving_caller<M: Memory>(
        self,
        _: &M,
        _: &Blob,
        _: &Regs,
    ) -> Result<Option<NativeRegs>, Fault> {
        Ok(None)
    }

    fn polling_caller<M: Memory>(self, _: &M, _: &Blob, _: &Regs, _: u64) -> Option<NativeRegs> {
        None
    }

    fn interrupted_stub<M: Memory>(
        self,
        mem: &M,
        blob: &Blob,
        regs: &Regs,
        checks: &impl Checks,
    ) -> Result<Option<Caller>, Fault> {
        stub::interrupted_caller(mem, blob, regs, checks)
    }

    fn calling_stub<M: Memory>(
        self,
        mem: &M,
        blob: &Blob,
        at: NativeRegs,
        at_anchor: bool,
        checks: &impl Checks,
    ) -> Result<Option<Caller>, Fault> {
        stub::calling_caller(mem, blob, at, at_anchor, checks)
    }

    fn return_slot<M: Memory>(self, _: &M, fp: u64) -> Result<u64, Fault> {
        Ok(fp.wrapping_add(8))
    }

    fn is_in_thaw<M: Memory>(self, mem: &M, barrier: u64, pc: u64) -> Result<bool, Fault> {
        continuation::is_in_thaw(mem, barrier, pc)
    }

    fn went_back_to_entry<M: Memory>(
        self,
        mem: &M,
        layout: &Layout,
        pc: u64,
    ) -> Result<bool, Fault> {
        continuation::went_back_to_entry(mem, layout, pc)
    }

    fn entry_offset_of_barrier<M: Memory>(
        self,
        mem: &M,
        barrier: u64,
    ) -> Result<Option<u64>, Fault> {
        continuation::entry_offset_of_barrier(mem, barrier)
    }

    fn find_entry_offset<M: Memory>(
        self,
        mem: &M,
        layout: &Layout,
        code: &CodeCache,
    ) -> Result<Option<u64>, Fault> {
        continuation::find_entry_offset(mem, layout, code)
    }

    /// `mov w0, NUMBER; ret`, perhaps after `bti c`.
    fn constant<M: Memory>(self, mem: &M, function: u64) -> Result<Option<u32>, Fault> {
        const LANDING: u32 = 0xd503_245f;
        let begin = match encoding::at(mem, function)? {
            LANDING => function.wrapping_add(encoding::BYTES),
            _ => function,
        };
        let moves = encoding::at(mem, begin)?;
        let is_return =
            encoding::is_return(encoding::at(mem, begin.wrapping_add(encoding::BYTES))?);
        let is_number = moves & 0xffe0_001f == 0x5280_0000;
        Ok((is_return && is_number).then_some(moves >> 5 & 0xffff))
    }
}

#[cfg(test)]
mod tests;

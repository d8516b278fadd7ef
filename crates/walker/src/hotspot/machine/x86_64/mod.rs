//! x86-64.

mod constant;
mod continuation;
mod forwarding;
mod instruction;
mod interpreted;
mod leaving;
mod prologue;
mod straight_entry;
mod stub;
mod unwind;
mod way_out;

use super::{Caller, Checks, FrameState, Machine, WayOut};
use crate::hotspot::codecache::{Blob, CodeCache};
use crate::hotspot::interpreter::Interpreted;
use crate::hotspot::layout::Layout;
use crate::memory::{Fault, Memory};
use crate::native::{NativeRegs, NativeStep, Rule};

/// x86-64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct X86_64;

/// The registers of an interrupted thread that the walk uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regs {
    /// rip.
    pub pc: u64,
    /// rsp.
    pub sp: u64,
    /// rbp.
    pub fp: u64,
    /// rax: a return address in some method entries.
    pub rax: u64,
    /// rbx: the callee's `Method*` in method entries.
    pub rbx: u64,
    /// rcx: an exception handler's address at the end of C1's exception stub.
    pub rcx: u64,
    /// rdx: the return address at the end of C2's rethrow stub.
    pub rdx: u64,
    /// r13: the interpreter's bytecode pointer; in method entries the caller's sp.
    pub r13: u64,
}

impl Machine for X86_64 {
    type Regs = Regs;

    #[inline]
    fn start(self, regs: &Regs) -> NativeRegs {
        NativeRegs {
            pc: regs.pc,
            sp: regs.sp,
            fp: regs.fp,
        }
    }

    #[inline]
    fn only(self, at: NativeRegs) -> Regs {
        Regs {
            pc: at.pc,
            sp: at.sp,
            fp: at.fp,
            ..Regs::default()
        }
    }

    #[inline]
    fn live_bcp(self, regs: &Regs) -> u64 {
        regs.r13
    }

    #[inline]
    fn return_address(self, word: u64) -> u64 {
        word
    }

    /// frame_x86.hpp: -8 words; until 8, -7.
    fn bcp_slot(self, is_since_9: bool) -> i64 {
        if is_since_9 { -64 } else { -56 }
    }

    /// The caller's stack begins above the return address, or below it if locals were added to a
    /// compiled caller. In both cases it is above the frame's fixed part.
    #[inline]
    fn interpreted_sp(self, fp: u64, slot: u64) -> Option<u64> {
        (slot > fp).then_some(slot)
    }

    /// rbp: `VMReg`s have two numbers for each register.
    fn kept_register(self) -> u64 {
        10
    }

    /// frame_x86.hpp.
    #[inline]
    fn call_wrapper_slot(self) -> i64 {
        -6
    }

    #[inline]
    fn unwind<M: Memory>(
        self,
        mem: &M,
        rule: Rule,
        at: NativeRegs,
        _: Option<&Regs>,
    ) -> Result<NativeStep, Fault> {
        unwind::step(mem, rule, at)
    }

    /// The return address is at rsp.
    #[inline]
    fn leaf_caller<M: Memory>(self, mem: &M, regs: &Regs) -> Result<NativeRegs, Fault> {
        Ok(NativeRegs {
            pc: mem.word(regs.sp)?,
            sp: regs.sp.wrapping_add(8),
            fp: regs.fp,
        })
    }

    #[inline]
    fn follows_call<M: Memory>(self, mem: &M, pc: u64) -> Result<bool, Fault> {
        prologue::follows_call(mem, pc)
    }

    fn is_leaf_call<M: Memory>(self, mem: &M, begin: u64, end: u64) -> Result<bool, Fault> {
        prologue::is_leaf_call(mem, begin, end)
    }

    /// `test [REGISTER], eax` (x86_64.ad, `safePoint_poll_tls`), with the prefix of r8 to r15 or
    /// without it.
    #[inline]
    fn is_loop_poll<M: Memory>(self, mem: &M, pc: u64) -> Result<bool, Fault> {
        let mut code = [0u8; 3];
        mem.read(pc, &mut code)?;
        Ok(match code {
            [0x41, 0x85, operands] | [0x85, operands, _] => operands >> 3 == 0,
            _ => false,
        })
    }

    #[inline]
    fn frame_state<M: Memory>(
        self,
        mem: &M,
        layout: &Layout,
        blob: &Blob,
        pc: u64,
    ) -> Result<FrameState, Fault> {
        prologue::frame_state(mem, layout, blob, pc)
    }

    #[inline]
    fn compiled_caller<M: Memory>(
        self,
        mem: &M,
        at: NativeRegs,
        _: Option<&Regs>,
        frame_bytes: u64,
        state: FrameState,
    ) -> Result<NativeRegs, Fault> {
        prologue::caller(mem, at, frame_bytes, state)
    }

    #[inline]
    fn static_call_caller<M: Memory>(
        self,
        mem: &M,
        blob: &Blob,
        regs: &Regs,
    ) -> Option<NativeRegs> {
        stub::static_call_caller(mem, blob, regs)
    }

    #[inline]
    fn exit_caller<M: Memory>(
        self,
        mem: &M,
        regs: &Regs,
        is_return: impl Fn(u64) -> bool,
    ) -> Option<NativeRegs> {
        if let Ok(Some(caller)) = interpreted::read_exit(mem, regs)
            && is_return(caller.pc)
        {
            return Some(caller);
        }
        let found = forwarding::interrupted(mem, regs).ok().flatten();
        found.filter(|caller| is_return(caller.pc))
    }

    #[inline]
    fn forwarding_caller<M: Memory>(
        self,
        mem: &M,
        at: NativeRegs,
    ) -> Result<Option<NativeRegs>, Fault> {
        forwarding::called(mem, at)
    }

    #[inline]
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

    #[inline]
    fn is_being_built<M: Memory>(
        self,
        mem: &M,
        code: &CodeCache,
        regs: &Regs,
    ) -> Result<bool, Fault> {
        interpreted::is_being_pushed(mem, code, regs)
    }

    #[inline]
    fn unframed_entry<M: Memory>(
        self,
        mem: &M,
        regs: &Regs,
        checks: &impl Checks,
    ) -> Option<WayOut> {
        way_out::caller_of_entry(mem, regs, checks)
    }

    #[inline]
    fn unframed_entry_after_call<M: Memory>(
        self,
        mem: &M,
        at: NativeRegs,
        sender_sp: Option<u64>,
        checks: &impl Checks,
    ) -> Option<WayOut> {
        way_out::caller_of_entry_after_call(mem, at, sender_sp, checks)
    }

    #[inline]
    fn leaving_caller<M: Memory>(
        self,
        mem: &M,
        blob: &Blob,
        regs: &Regs,
    ) -> Result<Option<NativeRegs>, Fault> {
        leaving::caller(mem, blob, regs)
    }

    #[inline]
    fn polling_caller<M: Memory>(
        self,
        mem: &M,
        blob: &Blob,
        regs: &Regs,
        poll_pc: u64,
    ) -> Option<NativeRegs> {
        stub::polling_caller(mem, blob, regs, poll_pc)
    }

    #[inline]
    fn interrupted_stub<M: Memory>(
        self,
        mem: &M,
        blob: &Blob,
        regs: &Regs,
        checks: &impl Checks,
    ) -> Result<Option<Caller>, Fault> {
        stub::interrupted_caller(mem, blob, regs, checks)
    }

    #[inline]
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

    #[inline]
    fn return_slot<M: Memory>(self, mem: &M, fp: u64) -> Result<u64, Fault> {
        stub::return_slot(mem, fp)
    }

    #[inline]
    fn is_in_thaw<M: Memory>(self, mem: &M, barrier: u64, pc: u64) -> Result<bool, Fault> {
        continuation::is_in_thaw(mem, barrier, pc)
    }

    #[inline]
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

    fn constant<M: Memory>(self, mem: &M, function: u64) -> Result<Option<u32>, Fault> {
        constant::of(mem, function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    #[test]
    fn loop_polls_are_recognised_with_any_register() {
        let is_poll = |code: [u8; 3]| X86_64.is_loop_poll(&Bytes::at(0x1000, &code), 0x1000);
        // test [rcx], eax; test [r11], eax
        assert_eq!(is_poll([0x85, 0x01, 0x90]), Ok(true));
        assert_eq!(is_poll([0x41, 0x85, 0x03]), Ok(true));
        // test [rcx], ecx; mov [rcx], eax
        assert_eq!(is_poll([0x85, 0x09, 0x90]), Ok(false));
        assert_eq!(is_poll([0x89, 0x01, 0x90]), Ok(false));
        assert!(X86_64.is_loop_poll(&Bytes::default(), 0x1000).is_err());
    }

    #[test]
    fn leaf_has_its_return_address_on_the_stack() {
        let mem = Bytes::of_words(&[(0x7000, &[0xca11])]);
        let at = NativeRegs {
            pc: 1,
            sp: 0x7000,
            fp: 3,
        };
        let regs = X86_64.only(at);
        assert_eq!(X86_64.start(&regs), at);
        let caller = NativeRegs {
            pc: 0xca11,
            sp: 0x7008,
            fp: 3,
        };
        assert_eq!(X86_64.leaf_caller(&mem, &regs), Ok(caller));
        let with = Regs { r13: 9, ..regs };
        assert_eq!((X86_64.live_bcp(&with), X86_64.live_bcp(&regs)), (9, 0));
    }
}

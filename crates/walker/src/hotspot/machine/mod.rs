//! Processors: the forms of HotSpot's generated code, of its frames and of native calls.
//!
//! A walk is generic over a [`Machine`], the target's. All machines are compiled and tested
//! everywhere, and a program that walks only its own contains the code of [`Host`] alone.
//! Everything that is the same on all machines stays outside: HotSpot's structures, and the order
//! in which a walk tries its ways.

pub mod aarch64;
pub mod x86_64;

pub use aarch64::Aarch64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::Aarch64 as Host;
pub use x86_64::X86_64;
#[cfg(not(target_arch = "aarch64"))]
pub use x86_64::X86_64 as Host;

use crate::hotspot::codecache::{Blob, CodeCache};
use crate::hotspot::interpreter::Interpreted;
use crate::hotspot::layout::Layout;
use crate::memory::{Fault, Memory};
use crate::native::{NativeRegs, NativeStep, Rule};
use core::fmt::Debug;

/// The registers at the start of a walk on this machine. Unwinding by rules needs only three of
/// them: [`NativeRegs`].
pub type Regs = <Host as Machine>::Regs;

/// A walk's knowledge about addresses.
pub trait Checks {
    /// Whether generated code is at `pc`.
    fn is_code(&self, pc: u64) -> bool;
    /// Whether `pc` is a return address.
    fn is_return(&self, pc: u64) -> bool;
    /// Whether `pc` is in a compiled method or the interpreter.
    fn is_method(&self, pc: u64) -> bool;
    /// Whether this can be the caller of an interrupted frame, also by its own frame.
    fn is_caller(&self, caller: NativeRegs) -> bool;
}

/// Stacks contain words that look like return addresses of libraries by chance.
pub(crate) fn is_generated_caller(checks: &impl Checks, caller: NativeRegs) -> bool {
    checks.is_code(caller.pc) && checks.is_caller(caller)
}

/// The caller of a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Found by the stub's own code, or by the VM's data about the end of its frames.
    Certain(WayOut),
    /// Looks like the caller. There may be frames between it and the stub.
    Likely(NativeRegs),
}

/// The place to which code returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WayOut {
    /// The caller.
    pub caller: NativeRegs,
    /// Whether its pc may be an exception handler, not a return address: the code has taken it from
    /// the stack and jumps there.
    pub jumps: bool,
    /// The register with the caller's sp at that point, if known: entries of the interpreter expect
    /// it there.
    pub sender_sp: Option<u64>,
    /// Whether the code leaves an entry of the interpreter: it takes the caller's sp from that
    /// register, and has not changed the frame pointer.
    pub is_entry: bool,
}

impl From<NativeRegs> for WayOut {
    fn from(caller: NativeRegs) -> WayOut {
        WayOut {
            caller,
            jumps: false,
            sender_sp: None,
            is_entry: false,
        }
    }
}

/// Location of the return address and of the caller's frame pointer of a compiled frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameState {
    /// The frame does not exist: sp and frame pointer are as at the call.
    None,
    /// Only the return address and the frame pointer are on the stack.
    Pushed,
    /// The frame has its size, but the frame pointer is still the caller's.
    Unsaved,
    /// The frame is complete.
    Complete,
}

/// A processor. Its methods are facts about HotSpot's code for it; each names its source.
pub trait Machine: Copy {
    /// The registers of an interrupted thread that a walk uses.
    type Regs: Copy + Debug + Default + PartialEq;

    /// pc, sp and frame pointer.
    fn start(self, regs: &Self::Regs) -> NativeRegs;

    /// Registers of which only these are known.
    fn only(self, at: NativeRegs) -> Self::Regs;

    /// Registers of a frame that a signal has interrupted, whose trampoline has its stack at
    /// `signal_frame`.
    #[inline]
    fn interrupted<M: Memory>(self, _mem: &M, _signal_frame: u64, at: NativeRegs) -> Self::Regs {
        self.only(at)
    }

    /// The interpreter's bytecode pointer.
    fn live_bcp(self, regs: &Self::Regs) -> u64;

    /// The code address in a word of a stack that holds a return address.
    fn return_address(self, word: u64) -> u64;

    /// Offset in bytes from the frame pointer of the interpreter's bytecode pointer. JDK 9 made
    /// frames longer.
    fn bcp_slot(self, is_since_9: bool) -> i64;

    /// sp of the caller of the interpreted frame at `fp`, whose slot for it holds `slot`. `None` if
    /// that is not possible.
    fn interpreted_sp(self, fp: u64, slot: u64) -> Option<u64>;

    /// Number of the register that calls keep, as a `VMReg` of debug information.
    fn kept_register(self) -> u64;

    /// Applies an unwind rule of native code. `exact` has the registers of an interrupted frame.
    ///
    /// # Errors
    /// [`Fault`] if the stack cannot be read where the rule points.
    fn unwind<M: Memory>(
        self,
        mem: &M,
        rule: Rule,
        at: NativeRegs,
        exact: Option<&Self::Regs>,
    ) -> Result<NativeStep, Fault>;

    /// Whether an interrupted function without a rule is first taken for one that has no frame, and
    /// its return address for that in the link register. A function that has called another one has
    /// an address of its own there, which is none for a caller as it has no rule either.
    #[inline]
    fn returns_by_link(self) -> bool {
        false
    }

    /// Bytes that wrappers of native methods push before they call a leaf routine.
    #[inline]
    fn leaf_call_bytes(self) -> u64 {
        0
    }

    /// Slot of the call wrapper in the frame of the call stub, in words from the frame pointer.
    fn call_wrapper_slot(self) -> i64;

    /// The caller of an interrupted function that has saved nothing yet.
    ///
    /// # Errors
    /// [`Fault`] if the stack cannot be read.
    fn leaf_caller<M: Memory>(self, mem: &M, regs: &Self::Regs) -> Result<NativeRegs, Fault>;

    /// Whether the instruction before `pc` is a call.
    ///
    /// # Errors
    /// [`Fault`] if the code cannot be read.
    fn follows_call<M: Memory>(self, mem: &M, pc: u64) -> Result<bool, Fault>;

    /// Whether the code from `begin` to the end of a call is this call alone, which cannot stop.
    ///
    /// # Errors
    /// [`Fault`] if the code cannot be read.
    fn is_leaf_call<M: Memory>(self, mem: &M, begin: u64, end: u64) -> Result<bool, Fault>;

    /// Whether a safepoint poll of C2 in a loop is at `pc`.
    ///
    /// # Errors
    /// [`Fault`] if the code cannot be read.
    fn is_loop_poll<M: Memory>(self, mem: &M, pc: u64) -> Result<bool, Fault>;

    /// The state of a compiled frame interrupted at `pc`.
    ///
    /// # Errors
    /// [`Fault`] if the code cannot be read.
    fn frame_state<M: Memory>(
        self,
        mem: &M,
        layout: &Layout,
        blob: &Blob,
        pc: u64,
    ) -> Result<FrameState, Fault>;

    /// The caller of a compiled frame in this state. `exact` as for [`Machine::unwind`].
    ///
    /// # Errors
    /// [`Fault`] if the stack cannot be read, or the state needs registers that are not known.
    fn compiled_caller<M: Memory>(
        self,
        mem: &M,
        at: NativeRegs,
        exact: Option<&Self::Regs>,
        frame_bytes: u64,
        state: FrameState,
    ) -> Result<NativeRegs, Fault>;

    /// The caller of a static call stub in `blob`, with the registers at the call. The stub leads
    /// from compiled code to an interpreted method. When the method is compiled, the call is linked
    /// to the compiled code, while threads may still be in the stub.
    fn static_call_caller<M: Memory>(
        self,
        mem: &M,
        blob: &Blob,
        regs: &Self::Regs,
    ) -> Option<NativeRegs>;

    /// The caller of an interpreted method that is just leaving, with a result or an exception.
    fn exit_caller<M: Memory>(
        self,
        mem: &M,
        regs: &Self::Regs,
        is_return: impl Fn(u64) -> bool,
    ) -> Option<NativeRegs>;

    /// The caller of a method left by an exception, while the interpreter calls the VM to find the
    /// caller's handler. `at` is after that call.
    ///
    /// # Errors
    /// [`Fault`] if code or stack cannot be read. `Ok(None)` anywhere else.
    fn forwarding_caller<M: Memory>(
        self,
        mem: &M,
        at: NativeRegs,
    ) -> Result<Option<NativeRegs>, Fault>;

    /// The frame of a method whose entry code runs, before that frame exists.
    ///
    /// # Errors
    /// [`Fault`] if the stack cannot be read. `Ok(None)` if this is not such a place.
    fn entered<M: Memory>(
        self,
        mem: &M,
        layout: &Layout,
        code: &CodeCache,
        regs: &Self::Regs,
        is_return: impl Fn(u64) -> bool,
    ) -> Result<Option<Interpreted>, Fault>;

    /// Whether method entry code is just building the frame at the frame pointer, and has already
    /// stored the method.
    ///
    /// # Errors
    /// [`Fault`] if the stack or the codelets cannot be read.
    fn is_being_built<M: Memory>(
        self,
        mem: &M,
        code: &CodeCache,
        regs: &Self::Regs,
    ) -> Result<bool, Fault>;

    /// The caller of a method that the interpreter runs by an entry without a frame, such as those
    /// of mathematics and checksums. `None` for all other code of the interpreter.
    fn unframed_entry<M: Memory>(
        self,
        mem: &M,
        regs: &Self::Regs,
        checks: &impl Checks,
    ) -> Option<WayOut>;

    /// The same if the entry has made a call; with the register for the caller's sp if it is known.
    fn unframed_entry_after_call<M: Memory>(
        self,
        mem: &M,
        at: NativeRegs,
        sender_sp: Option<u64>,
        checks: &impl Checks,
    ) -> Option<WayOut>;

    /// The caller of a stub in its last instructions, which leave to an exception handler; its pc
    /// may be that of a handler. `None` at any other pc.
    ///
    /// # Errors
    /// [`Fault`] if code or stack cannot be read.
    fn leaving_caller<M: Memory>(
        self,
        mem: &M,
        blob: &Blob,
        regs: &Self::Regs,
    ) -> Result<Option<NativeRegs>, Fault>;

    /// The compiled code that a poll has stopped, before the stub for that has stored its pc in a
    /// frame. `poll_pc` is the pc that the VM's signal handler has stored in the thread.
    fn polling_caller<M: Memory>(
        self,
        mem: &M,
        blob: &Blob,
        regs: &Self::Regs,
        poll_pc: u64,
    ) -> Option<NativeRegs>;

    /// The caller of an interrupted stub.
    ///
    /// # Errors
    /// [`Fault`] if the stack cannot be read. `Ok(None)` if no candidate is a return address.
    fn interrupted_stub<M: Memory>(
        self,
        mem: &M,
        blob: &Blob,
        regs: &Self::Regs,
        checks: &impl Checks,
    ) -> Result<Option<Caller>, Fault>;

    /// The caller of a stub that has made a call (`at` is after the call). `at_anchor`: the
    /// thread's anchor is at this frame, so the VM walks it itself.
    ///
    /// # Errors
    /// As for [`Machine::interrupted_stub`].
    fn calling_stub<M: Memory>(
        self,
        mem: &M,
        blob: &Blob,
        at: NativeRegs,
        at_anchor: bool,
        checks: &impl Checks,
    ) -> Result<Option<Caller>, Fault>;

    /// Address of the return address of the stub whose frame pointer is `fp`.
    ///
    /// # Errors
    /// [`Fault`] if the stack cannot be read.
    fn return_slot<M: Memory>(self, mem: &M, fp: u64) -> Result<u64, Fault>;

    /// Whether `pc` is in the stub that thaws frames when a virtual thread is mounted again, where
    /// the stack ends with the continuation's entry. The stub is right before the return `barrier`.
    ///
    /// # Errors
    /// [`Fault`] if the code cannot be read.
    fn is_in_thaw<M: Memory>(self, mem: &M, barrier: u64, pc: u64) -> Result<bool, Fault>;

    /// Whether the code shortly before `pc` sets sp back to the continuation's entry. Only for code
    /// in a return barrier.
    ///
    /// # Errors
    /// [`Fault`] if the code cannot be read.
    fn went_back_to_entry<M: Memory>(
        self,
        mem: &M,
        layout: &Layout,
        pc: u64,
    ) -> Result<bool, Fault>;

    /// The offset of `JavaThread::_cont_entry`, from the code of the return barrier, which exists
    /// before the first virtual thread: for JDKs that do not export it.
    ///
    /// # Errors
    /// [`Fault`] if the code cannot be read.
    fn entry_offset_of_barrier<M: Memory>(
        self,
        mem: &M,
        barrier: u64,
    ) -> Result<Option<u64>, Fault>;

    /// The same from the code of `enterSpecial`.
    ///
    /// # Errors
    /// [`Fault`] if the code cannot be read.
    fn find_entry_offset<M: Memory>(
        self,
        mem: &M,
        layout: &Layout,
        code: &CodeCache,
    ) -> Result<Option<u64>, Fault>;

    /// The result of a native function that only returns a number.
    ///
    /// # Errors
    /// [`Fault`] if the code cannot be read. `Ok(None)` for any other function.
    fn constant<M: Memory>(self, mem: &M, function: u64) -> Result<Option<u32>, Fault>;

    /// The caller of the frame whose frame pointer is `fp`: the saved frame pointer, and the return
    /// address above it.
    ///
    /// # Errors
    /// [`Fault`] if the stack cannot be read.
    #[inline]
    fn linked<M: Memory>(self, mem: &M, fp: u64) -> Result<NativeRegs, Fault> {
        Ok(NativeRegs {
            pc: self.return_address(mem.word(fp.wrapping_add(8))?),
            sp: fp.wrapping_add(16),
            fp: mem.word(fp)?,
        })
    }

    /// The caller of the frame that ends at `sp`: its last words are the frame pointer and the
    /// return address.
    ///
    /// # Errors
    /// [`Fault`] if the stack cannot be read.
    #[inline]
    fn ending<M: Memory>(self, mem: &M, sp: u64) -> Result<NativeRegs, Fault> {
        Ok(NativeRegs {
            pc: self.return_address(mem.word(sp.wrapping_sub(8))?),
            sp,
            fp: mem.word(sp.wrapping_sub(16))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    const STACK: u64 = 0x7000;
    const SIGNED: u64 = 0x0012 << 48 | 0xca10;

    fn callers(machine: impl Machine) -> [u64; 3] {
        let mem = Bytes::of_words(&[(STACK, &[1, 0x7100, SIGNED, 4])]);
        let linked = machine.linked(&mem, STACK + 8).unwrap();
        let ending = machine.ending(&mem, STACK + 24).unwrap();
        assert!(machine.linked(&mem, STACK + 24).is_err());
        assert!(machine.ending(&mem, STACK + 8).is_err());
        assert_eq!(linked, ending, "one frame, by its begin and its end");
        [linked.pc, linked.sp, linked.fp]
    }

    #[test]
    fn frames_have_one_form_and_signatures_on_one_machine() {
        let expected = |pc| [pc, STACK + 24, 0x7100];
        assert_eq!(callers(X86_64), expected(SIGNED));
        assert_eq!(callers(Aarch64), expected(0xca10));
    }

    #[test]
    fn interpreter_slots_differ_by_machine_and_version() {
        assert_eq!((X86_64.bcp_slot(true), X86_64.bcp_slot(false)), (-64, -56));
        assert_eq!(
            (Aarch64.bcp_slot(true), Aarch64.bcp_slot(false)),
            (-72, -56)
        );
        assert_eq!((X86_64.kept_register(), Aarch64.kept_register()), (10, 58));
        // The caller's sp is above the frame on x86-64 only.
        let fp = 0x7000;
        assert_eq!(X86_64.interpreted_sp(fp, fp + 8), Some(fp + 8));
        assert_eq!(X86_64.interpreted_sp(fp, fp - 0x80), None);
        assert_eq!(Aarch64.interpreted_sp(fp, fp - 0x80), Some(fp + 16));
    }
}

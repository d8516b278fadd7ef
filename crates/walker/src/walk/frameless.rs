//! Steps through code without a method's frame: stubs, adapters, the call stub, and some entries of
//! the interpreter.

use super::{Callee, Cursor, Sink, Stop, Walker};
use crate::frame::{Failure, FrameKind, Frames};
use crate::hotspot::codecache::Blob;
use crate::hotspot::machine::{Caller, Checks, Machine, WayOut};
use crate::memory::Memory;
use crate::native::{NativeCode, NativeRegs};

/// Bytes of code of the two return barriers (161 and 209 in 28), with some reserve.
const THAW_STUBS_BYTES: u64 = 0x240;

impl<M: Memory, N: NativeCode, P: Machine> Walker<'_, M, N, P> {
    pub(super) fn step_stub(
        &self,
        cursor: &mut Cursor<'_, P>,
        blob: &Blob,
        sink: &mut Sink<'_, impl Frames + ?Sized>,
    ) -> Result<(), Stop> {
        if self.code.is_call_stub_return(cursor.at.pc) && cursor.exact.is_none() {
            return self.step_entry_frame(cursor);
        }
        sink.push(FrameKind::Stub, cursor.at.pc, 0)?;
        if cursor.cont_entry != 0 && self.is_thawing(cursor.at.pc)? {
            // The frame that has returned is popped, and the stub has no frame of its own.
            sink.push(FrameKind::Failed, Failure::BeingThawed as u64, 0)?;
            return self.step_barrier(cursor, sink);
        }
        if let Some(regs) = &cursor.exact
            && let Ok(Some(caller)) = self.machine.leaving_caller(self.mem, blob, regs)
            && self.is_method(caller.pc)?
        {
            self.move_to(cursor, caller)?;
            cursor.handling = true;
            return Ok(());
        }
        let poll_pc = cursor.thread.poll_pc;
        let polling = |regs| self.machine.polling_caller(self.mem, blob, regs, poll_pc);
        if let Some(caller) = cursor.exact.as_ref().and_then(polling)
            && self.is_method(caller.pc)?
            && self.is_caller(caller)
        {
            return self.move_to(cursor, caller);
        }
        let caller = match cursor.exact {
            Some(regs) => self.machine.interrupted_stub(self.mem, blob, &regs, self)?,
            None => {
                let anchors = [cursor.thread.anchor.sp, cursor.bridged_to];
                let at_anchor = anchors.contains(&cursor.at.sp);
                (self.machine).calling_stub(self.mem, blob, cursor.at, at_anchor, self)?
            }
        };
        match caller {
            Some(caller) => self.to_stub_caller(cursor, caller, sink),
            None => Err(Stop::Fail(Failure::BadStub)),
        }
    }

    /// Continues at the caller of a stub. Marks the place if frames may be missing between them.
    pub(super) fn to_stub_caller(
        &self,
        cursor: &mut Cursor<'_, P>,
        caller: Caller,
        sink: &mut Sink<'_, impl Frames + ?Sized>,
    ) -> Result<(), Stop> {
        match caller {
            Caller::Certain(WayOut {
                caller,
                jumps,
                sender_sp,
                ..
            }) => {
                // A handler follows no call: code that handles exceptions is reached by a jump.
                let handles = jumps && !self.is_return(caller.pc);
                if handles && !self.is_method(caller.pc)? {
                    return Err(Stop::Fail(Failure::BadStub));
                }
                self.move_to(cursor, caller)?;
                cursor.handling = handles;
                cursor.callee = Callee::Leaf { sender_sp };
                Ok(())
            }
            Caller::Likely(caller) => {
                sink.push(FrameKind::Failed, Failure::BadStub as u64, 0)?;
                sink.flaw = Some(Failure::BadStub);
                self.move_to(cursor, caller)
            }
        }
    }

    /// Whether `pc` is in the stub that mounts a virtual thread again, after it has popped its
    /// return address. Or in one of the two return barriers, after it has set sp back to the
    /// entry.
    fn is_thawing(&self, pc: u64) -> Result<bool, Stop> {
        let barrier = self.layout.extra.return_barrier;
        if barrier != 0 && self.machine.is_in_thaw(self.mem, barrier, pc)? {
            return Ok(true);
        }
        // The barrier for exceptions is right after the other one.
        let near = barrier != 0 && pc > barrier && pc <= barrier.wrapping_add(THAW_STUBS_BYTES);
        Ok(near && (self.machine).went_back_to_entry(self.mem, self.layout, pc)?)
    }

    /// The way out of an entry of the interpreter without a frame, if `at` is in one.
    pub(super) fn unframed_entry(&self, cursor: &Cursor<'_, P>) -> Option<WayOut> {
        if let Some(regs) = &cursor.exact {
            return self.machine.unframed_entry(self.mem, regs, self);
        }
        match cursor.callee {
            // Calls of the VM are made from frames.
            Callee::Leaf { sender_sp } if cursor.at.sp != cursor.thread.anchor.sp => {
                let machine = self.machine;
                machine.unframed_entry_after_call(self.mem, cursor.at, sender_sp, self)
            }
            _ => None,
        }
    }
}

impl<M: Memory, N: NativeCode, P: Machine> Checks for Walker<'_, M, N, P> {
    fn is_code(&self, pc: u64) -> bool {
        self.code.contains(pc)
    }

    fn is_return(&self, pc: u64) -> bool {
        self.is_return(pc)
    }

    fn is_method(&self, pc: u64) -> bool {
        self.is_method(pc).unwrap_or(false)
    }

    fn is_caller(&self, caller: NativeRegs) -> bool {
        self.is_caller(caller)
    }
}

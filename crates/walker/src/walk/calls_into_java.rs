//! The Java frame above native code that calls Java. Call stub and upcall stub save the thread's
//! anchor. It leads across native code that cannot be unwound, as the thread's own anchor does.

use super::{Cursor, Sink, Stop, Walker};
use crate::frame::{Failure, FrameKind, Frames};
use crate::hotspot::codecache::Blob;
use crate::hotspot::machine::{Caller, Machine};
use crate::hotspot::threads::{self, Anchor};
use crate::hotspot::upcall;
use crate::memory::{Fault, Memory};
use crate::native::{NativeCode, NativeRegs};

impl<M: Memory, N: NativeCode, P: Machine> Walker<'_, M, N, P> {
    /// Resumes at the next Java frame that an anchor leads to, if it is above the frame that could
    /// not be walked.
    pub(super) fn bridge(
        &self,
        cursor: &mut Cursor<'_, P>,
        before: NativeRegs,
        failure: Failure,
    ) -> bool {
        let may = cursor.frozen.is_none()
            && !matches!(failure, Failure::Truncated | Failure::SnapshotEnd);
        let is_usable =
            |anchor: Anchor| may && anchor.sp > before.sp && self.code.contains(anchor.pc);
        let own = cursor.thread.anchor;
        let anchor = if !cursor.bridged && is_usable(own) {
            cursor.bridged = true;
            own
        } else if is_usable(cursor.outer) {
            cursor.outer
        } else {
            return false;
        };
        cursor.at = NativeRegs {
            pc: anchor.pc,
            sp: anchor.sp,
            fp: anchor.fp,
        };
        cursor.bridged_to = anchor.sp;
        cursor.outer = Anchor::default();
        cursor.exact = None;
        true
    }

    /// sp of the next Java frame above the native code at `cursor`; 0 if unknown.
    pub(super) fn next_java_sp(&self, cursor: &Cursor<'_, P>) -> u64 {
        let own = cursor.thread.anchor.sp;
        if !cursor.bridged && own > cursor.at.sp {
            own
        } else {
            cursor.outer.sp
        }
    }

    /// A call from native into Java. The call stub has a frame pointer. If its native caller cannot
    /// be found, the anchor saved in the call wrapper leads to the next Java frame.
    pub(super) fn step_entry_frame(&self, cursor: &mut Cursor<'_, P>) -> Result<(), Stop> {
        let fp = cursor.at.fp;
        if fp <= cursor.at.sp {
            return Err(Stop::Fail(Failure::BadEntry));
        }
        let caller = self.machine.linked(self.mem, fp)?;
        self.to_native_caller(cursor, caller, self.anchor_of_entry(fp))
    }

    fn anchor_of_entry(&self, fp: u64) -> Result<Anchor, Fault> {
        let slot = self.layout.entry_call_wrapper.wrapping_mul(8);
        let wrapper = self.mem.word(fp.wrapping_add(slot))?;
        let at = wrapper.wrapping_add(self.layout.call_wrapper_anchor);
        threads::anchor_at(self.mem, self.layout, at)
    }

    /// The same through the foreign function interface.
    pub(super) fn step_upcall(
        &self,
        cursor: &mut Cursor<'_, P>,
        blob: &Blob,
        sink: &mut Sink<'_, impl Frames + ?Sized>,
    ) -> Result<(), Stop> {
        sink.push(FrameKind::Stub, cursor.at.pc, 0)?;
        let saved = upcall::saved_anchor(self.mem, self.layout, blob, cursor.at.sp);
        if let Some(regs) = cursor.exact {
            // The stub may not have saved the anchor yet. Then the thread still has it.
            let saved = saved.unwrap_or_default();
            cursor.outer = match self.is_return(saved.pc) {
                true => saved,
                false => Anchor::default(),
            };
            let found = self.machine.interrupted_stub(self.mem, blob, &regs, self)?;
            return match found {
                Some(caller @ Caller::Certain(_)) => self.to_stub_caller(cursor, caller, sink),
                _ => Err(Stop::Fail(Failure::BadStub)),
            };
        }
        let Some(caller) = upcall::caller(self.machine, self.mem, cursor.at) else {
            cursor.outer = saved.unwrap_or_default();
            return Err(Stop::Fail(Failure::BadStub));
        };
        self.to_native_caller(cursor, caller, saved)
    }

    /// Continues at the native caller of a call into Java. Without one in a library, at the next
    /// Java frame. Without that, the thread has come from native code.
    fn to_native_caller(
        &self,
        cursor: &mut Cursor<'_, P>,
        caller: NativeRegs,
        outer: Result<Anchor, Fault>,
    ) -> Result<(), Stop> {
        let is_in_library = self.native.rule(caller.pc.wrapping_sub(1)).is_some();
        if is_in_library {
            self.move_to(cursor, caller)?;
            cursor.outer = outer.unwrap_or_default();
            return Ok(());
        }
        let outer = outer?;
        if outer.sp == 0 {
            return Err(Stop::End);
        }
        let next = NativeRegs {
            pc: outer.pc,
            sp: outer.sp,
            fp: outer.fp,
        };
        self.move_to(cursor, next)
    }

    /// Whether a frame found by the frame pointer can be the caller of native code. Frames of Java
    /// are where the anchor says.
    pub(super) fn is_native_caller(&self, cursor: &Cursor<'_, P>, caller: NativeRegs) -> bool {
        let java = self.next_java_sp(cursor);
        let fits = match self.code.contains(caller.pc) {
            true => caller.sp == java,
            false => caller.sp < java,
        };
        (java == 0 || fits) && self.is_return(caller.pc)
    }
}

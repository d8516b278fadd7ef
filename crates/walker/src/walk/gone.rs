//! Frames whose code or method was freed, and perhaps replaced, between the moment of the stack and
//! the walk. The frames above are found by their own data. The walk continues there and marks the
//! gap.

use super::{Cursor, Walker, frozen};
use crate::frame::Failure;
use crate::hotspot::machine::Machine;
use crate::hotspot::{continuation, interpreter};
use crate::memory::Memory;
use crate::native::{NativeCode, NativeRegs, Rule};

/// Maximum number of frames with a frame pointer of their own (stubs) that are passed.
const LINKS_MAX: u32 = 3;

/// Words between sp and the frame pointer of a call stub at a call.
const CALL_STUB_WORDS_MAX: u64 = 64;

impl<M: Memory, N: NativeCode, P: Machine> Walker<'_, M, N, P> {
    /// Resumes above freed code: at the continuation's entry if the frames are frozen, else at the
    /// interpreter's or call stub's frame that the frame pointer leads to. Compiled code that
    /// does not use that register leaves it unchanged; if the code used it, there is no such frame.
    pub(super) fn pass_gone_code(
        &self,
        cursor: &mut Cursor<'_, P>,
        before: NativeRegs,
        was_frozen: bool,
        failure: Failure,
    ) -> bool {
        let code_is_gone = matches!(
            failure,
            Failure::NoBlob | Failure::StaleMethod | Failure::BadCompiled | Failure::BadStub
        );
        if !code_is_gone || !self.code.contains(before.pc) {
            return false;
        }
        let found = if was_frozen {
            let mounted = !matches!(cursor.cont_entry, 0 | frozen::NOT_MOUNTED);
            let known = mounted && self.layout.extra.cont_return_pc != 0;
            known.then(|| continuation::enter_special(self.layout, cursor.cont_entry))
        } else {
            self.frame_above(cursor, before)
        };
        if let Some(found) = found {
            cursor.at = found;
            cursor.exact = None;
            cursor.frozen = None;
            cursor.handling = false;
        }
        found.is_some()
    }

    fn frame_above(&self, cursor: &Cursor<'_, P>, before: NativeRegs) -> Option<NativeRegs> {
        let high = cursor.thread.stack_high;
        let mut fp = before.fp;
        for _ in 0..LINKS_MAX {
            if fp & 7 != 0 || fp <= before.sp || (high != 0 && fp >= high) {
                return None;
            }
            let calling = interpreter::read_calling(
                self.machine,
                self.mem,
                self.layout,
                self.code,
                before.sp,
                fp,
            );
            if let Ok(Some(found)) = calling {
                return Some(found);
            }
            if let Some(found) = self.calling_stub(before.sp, fp) {
                return Some(found);
            }
            // Only a frame with a return address next to the saved pointer leads to a caller.
            let next = self.mem.word(fp).ok()?;
            let above = self.machine.return_slot(self.mem, fp).ok()?;
            if next <= fp
                || !self
                    .code
                    .contains(self.machine.return_address(self.mem.word(above).ok()?))
            {
                return None;
            }
            fp = next;
        }
        None
    }

    /// The call stub with frame pointer `fp`, if it is in a call: its return address is below.
    fn calling_stub(&self, sp: u64, fp: u64) -> Option<NativeRegs> {
        let caller = self.machine.linked(self.mem, fp).ok()?.pc;
        let rule = self.native.rule(caller.wrapping_sub(1));
        if self.code.contains(caller) || matches!(rule, None | Some(Rule::Gap)) {
            return None;
        }
        for i in 1..=CALL_STUB_WORDS_MAX {
            let at = fp.wrapping_sub(i * 8);
            if at < sp {
                break;
            }
            let pc = self.machine.return_address(self.mem.word(at).ok()?);
            if self.code.is_call_stub_return(pc) {
                let sp = at.wrapping_add(8);
                return Some(NativeRegs { pc, sp, fp });
            }
        }
        None
    }

    /// Whether a frame of the interpreter with a method, but without a valid bytecode, is real.
    /// Before the frame exists, the frame pointer is that of the call stub, which also holds a
    /// method.
    pub(super) fn is_linked(&self, cursor: &Cursor<'_, P>) -> bool {
        let Some(regs) = &cursor.exact else {
            return true;
        };
        let (sp, fp) = (cursor.at.sp, cursor.at.fp);
        let links = interpreter::has_links(self.machine, self.mem, self.layout, sp, fp);
        // A native method has no bytecodes even in its frame.
        let pushed = || self.machine.is_being_built(self.mem, self.code, regs);
        links.unwrap_or(true) || pushed() == Ok(true)
    }

    /// The caller of an interrupted interpreter frame whose method was freed, if the frame still
    /// exists.
    pub(super) fn caller_of_unnamed(&self, regs: &P::Regs) -> Option<NativeRegs> {
        let NativeRegs { sp, fp, .. } = self.machine.start(regs);
        let form = interpreter::has_form(self.machine, self.mem, self.layout, sp, fp);
        let caller = NativeRegs {
            sp: interpreter::sender_sp(self.machine, self.mem, fp).ok()??,
            ..self.machine.linked(self.mem, fp).ok()?
        };
        let pushed = || self.machine.is_being_built(self.mem, self.code, regs);
        let is_frame = form == Ok(true) || pushed() == Ok(true);
        // The caller's code may have been freed as well.
        let is_called = self.code.contains(caller.pc) || self.is_return(caller.pc);
        (is_frame && is_called).then_some(caller)
    }
}

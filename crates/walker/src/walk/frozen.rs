//! Frames of virtual threads that are frozen in the heap, mounted or not.

use super::{Cursor, Sink, Stop, ThreadContext, Walk, Walker};
use crate::frame::{Failure, FrameKind, Frames};
use crate::hotspot::continuation::{self, Chunk};
use crate::hotspot::interpreter::{METHOD, SENDER_SP};
use crate::hotspot::machine::Machine;
use crate::memory::Memory;
use crate::native::{NativeCode, NativeRegs};

/// Stands for a continuation's entry if the thread is not mounted and has none.
pub(super) const NOT_MOUNTED: u64 = u64::MAX;

impl<M: Memory, N: NativeCode, P: Machine> Walker<'_, M, N, P> {
    /// Walks an unmounted virtual thread, from its youngest chunk with frames. If the thread is
    /// mounted during the walk, the result is invalid.
    pub fn walk_unmounted<F: Frames + ?Sized>(&self, chunk: &Chunk, frames: &mut F) -> Walk {
        // As if it were mounted and had just returned into its frozen frames.
        let thread = ThreadContext {
            cont_entry: NOT_MOUNTED,
            chunk: chunk.object,
            ..ThreadContext::default()
        };
        let regs = self.machine.only(NativeRegs {
            pc: self.layout.extra.return_barrier,
            sp: 0,
            fp: 0,
        });
        self.walk(regs, &thread, frames)
    }

    pub(super) fn step_barrier(
        &self,
        cursor: &mut Cursor<'_, P>,
        sink: &mut Sink<'_, impl Frames + ?Sized>,
    ) -> Result<(), Stop> {
        if cursor.cont_entry == 0 {
            return Err(Stop::Fail(Failure::BadContinuation));
        }
        let entry = cursor.cont_entry;
        let known = cursor.thread.chunk != 0 && entry == cursor.thread.cont_entry;
        let chunk = if known {
            continuation::filled_chunk(self.mem, self.layout, cursor.thread.chunk)
        } else {
            continuation::youngest_chunk(self.mem, self.layout, entry)
        };
        if let Ok(Some(chunk)) = chunk {
            cursor.at = chunk.youngest_frame(self.machine, self.mem)?;
            cursor.frozen = Some(chunk);
            cursor.exact = None;
            return Ok(());
        }
        // The VM is moving frames between heap and stack. They are missing, but the carrier's are
        // not.
        if self.layout.extra.cont_return_pc == 0 || entry == NOT_MOUNTED {
            return Err(Stop::Fail(Failure::BadContinuation));
        }
        sink.push(FrameKind::Failed, Failure::BadContinuation as u64, 0)?;
        sink.flaw = Some(Failure::BadContinuation);
        cursor.exact = None;
        cursor.at = continuation::enter_special(self.layout, entry);
        Ok(())
    }

    pub(super) fn leave_chunk(&self, cursor: &mut Cursor<'_, P>) -> Result<(), Stop> {
        let Some(chunk) = cursor.frozen.take() else {
            return Err(Stop::Fail(Failure::BadContinuation));
        };
        if let Ok(Some(parent)) = continuation::parent_chunk(self.mem, self.layout, &chunk) {
            cursor.at = parent.youngest_frame(self.machine, self.mem)?;
            cursor.frozen = Some(parent);
            return Ok(());
        }
        if cursor.cont_entry == NOT_MOUNTED {
            return Err(Stop::End);
        }
        if self.layout.extra.cont_return_pc == 0 {
            return Err(Stop::Fail(Failure::BadContinuation));
        }
        cursor.at = continuation::enter_special(self.layout, cursor.cont_entry);
        Ok(())
    }

    pub(super) fn step_frozen_interpreted(
        &self,
        cursor: &mut Cursor<'_, P>,
        chunk: Chunk,
        sink: &mut Sink<'_, impl Frames + ?Sized>,
    ) -> Result<(), Stop> {
        // For frozen frames, `fp` is the slot of the link, see `move_to`.
        let fp = continuation::frozen_fp(self.mem, cursor.at.fp)?;
        if !chunk.holds(fp) {
            return Err(Stop::Fail(Failure::BadContinuation));
        }
        let sender = self.mem.word(fp.wrapping_sub(SENDER_SP))?;
        let method = self.mem.word(fp.wrapping_sub(METHOD))?;
        if !crate::hotspot::method::is_plausible(self.mem, self.layout, method) {
            return Err(Stop::Fail(Failure::BadContinuation));
        }
        let code = crate::hotspot::method::code(self.mem, self.layout, method)?;
        let slot = fp.wrapping_add(self.layout.extra.interpreter_bcp as u64);
        let bci = code.bci(self.mem.word(slot)?).unwrap_or(-1);
        sink.push(FrameKind::Interpreted, method, bci)?;
        let caller = NativeRegs {
            pc: (self.machine).return_address(self.mem.word(fp.wrapping_add(8))?),
            sp: continuation::frozen_slot(fp, sender),
            fp,
        };
        if caller.sp >= chunk.bottom || !chunk.holds(caller.sp) {
            return self.leave_chunk(cursor);
        }
        cursor.at = caller;
        Ok(())
    }
}

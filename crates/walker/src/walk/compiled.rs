//! Steps through compiled methods and the wrappers of native ones.

use super::{Cursor, PUSHED_WORDS_MAX, SAVED_WORDS_MAX, Sink, Stop, Walker};
use crate::cache::{Head, Known, SCOPES_MAX, Scope};
use crate::frame::{Failure, FrameKind, Frames};
use crate::hotspot::codecache::Blob;
use crate::hotspot::continuation;
use crate::hotspot::machine::{FrameState, Machine};
use crate::hotspot::nmethod::{self, Nmethod};
use crate::hotspot::scope;
use crate::memory::{Fault, Memory};
use crate::native::{NativeCode, NativeRegs};

impl<M: Memory, N: NativeCode, P: Machine> Walker<'_, M, N, P> {
    pub(super) fn remembered(&self, cursor: &Cursor<'_, P>) -> Option<Known<'_>> {
        if cursor.exact.is_some() {
            return None;
        }
        let known = self.cache.as_ref()?.get(cursor.at.pc)?;
        let id_at = known.head.blob.wrapping_add(self.layout.nmethod_compile_id);
        let id = self.mem.u32(id_at).ok()?;
        (id == known.head.compile_id).then_some(known)
    }

    pub(super) fn step_remembered(
        &self,
        cursor: &mut Cursor<'_, P>,
        known: &Known<'_>,
        sink: &mut Sink<'_, impl Frames + ?Sized>,
    ) -> Result<(), Stop> {
        let len = known.scopes().len();
        for (i, (method, bci)) in known.scopes().enumerate() {
            let kind = if i + 1 == len {
                known.head.tier
            } else {
                FrameKind::Inlined
            };
            sink.push(kind, method, bci)?;
        }
        let frame_bytes = u64::from(known.head.frame_bytes);
        let sp = cursor.at.sp.wrapping_add(frame_bytes);
        let caller = self.machine.ending(self.mem, sp)?;
        self.move_on(cursor, caller)
    }

    /// Only code that the VM generated calls compiled code. Any other caller was read at the wrong
    /// place, because code of another method has replaced the caller's.
    fn move_on(&self, cursor: &mut Cursor<'_, P>, caller: NativeRegs) -> Result<(), Stop> {
        if cursor.frozen.is_none() && !self.code.contains(caller.pc) {
            return Err(Stop::Fail(Failure::BadCompiled));
        }
        self.move_to(cursor, caller)
    }

    fn remember(
        &self,
        pc: u64,
        blob: &Blob,
        tier: FrameKind,
        len: u8,
        scopes: &[Scope; SCOPES_MAX],
    ) {
        let frame_bytes = u32::try_from(blob.frame_bytes).unwrap_or(0);
        let id = self
            .mem
            .u32(blob.addr.wrapping_add(self.layout.nmethod_compile_id));
        if let (Some(cache), Ok(compile_id)) = (&self.cache, id)
            && len > 0
            && frame_bytes > 0
        {
            let head = Head {
                pc,
                blob: blob.addr,
                compile_id,
                frame_bytes,
                len,
                tier,
            };
            cache.put(head, scopes);
        }
    }

    pub(super) fn step_compiled(
        &self,
        cursor: &mut Cursor<'_, P>,
        blob: &Blob,
        sink: &mut Sink<'_, impl Frames + ?Sized>,
    ) -> Result<(), Stop> {
        let called_on = |regs: &_| self.machine.static_call_caller(self.mem, blob, regs);
        if let Some(caller) = cursor.exact.as_ref().and_then(called_on) {
            return self.move_on(cursor, caller);
        }
        let (mut pc, mut memorable) = (cursor.at.pc, cursor.exact.is_none());
        if cursor.exact.is_none() {
            let original = nmethod::original_pc(self.mem, self.layout, blob, pc, cursor.at.sp)?;
            memorable = original.is_none();
            pc = original.unwrap_or(pc);
        }
        let nm = Nmethod::load(self.mem, self.layout, blob)?;
        let found = nm.find(self.mem, self.layout, pc)?;
        let is_return = cursor.exact.is_none() && found.is_exact;
        let stands = cursor.exact.is_some() || cursor.handling;
        if !is_return && !stands && !self.machine.follows_call(self.mem, pc).unwrap_or(true) {
            // A return address here is impossible: the calling code was freed, and other code has
            // replaced it.
            return Err(Stop::Fail(Failure::StaleMethod));
        }
        let tier = match nm.is_c1 {
            true => FrameKind::C1,
            false => FrameKind::C2,
        };
        let mut scopes = [(0, 0); SCOPES_MAX];
        let mut count = 0usize;
        let mut covered = false;
        let mut full = Ok(());
        let visit = |at: u32, scope: scope::Scope| {
            let bci = if at == 0 { -1 } else { scope.bytecode() };
            let kind = if scope.sender == 0 {
                tier
            } else {
                FrameKind::Inlined
            };
            if let Some(slot) = scopes.get_mut(count) {
                *slot = (scope.method, bci);
            }
            count += 1;
            covered |= scope.bci >= 0;
            if full.is_ok() {
                full = sink.push(kind, scope.method, bci);
            }
        };
        let found = (pc, found, cursor.exact.is_some());
        nm.for_each_scope_of(self.machine, self.mem, self.layout, found, visit)?;
        full?;
        if cursor.exact.is_none() && !is_return {
            return self.to_saving_caller(cursor, blob);
        }
        if memorable && count <= SCOPES_MAX {
            self.remember(pc, blob, tier, count as u8, &scopes);
        }
        // Slow paths of barriers come after all code with debug information. They save registers on
        // top of the frame.
        let pushed_max = if covered {
            PUSHED_WORDS_MAX
        } else {
            SAVED_WORDS_MAX
        };
        self.to_compiled_caller(cursor, blob, pushed_max)
    }

    pub(super) fn step_wrapper(
        &self,
        cursor: &mut Cursor<'_, P>,
        blob: &Blob,
        sink: &mut Sink<'_, impl Frames + ?Sized>,
    ) -> Result<(), Stop> {
        let method = self
            .mem
            .word(blob.addr.wrapping_add(self.layout.nmethod_method))?;
        sink.push(FrameKind::ManagedNative, method, -1)?;
        let in_enter_special = cursor.cont_entry != 0 && cursor.at.sp == cursor.cont_entry;
        self.to_compiled_caller(cursor, blob, PUSHED_WORDS_MAX)?;
        if in_enter_special {
            let entry = cursor.cont_entry;
            cursor.cont_entry = continuation::parent_entry(self.mem, entry).unwrap_or(0);
        }
        Ok(())
    }

    fn to_compiled_caller(
        &self,
        cursor: &mut Cursor<'_, P>,
        blob: &Blob,
        pushed_max: u64,
    ) -> Result<(), Stop> {
        let Some(regs) = cursor.exact else {
            if !nmethod::has_frame(self.layout, blob) {
                return Err(Stop::Fail(Failure::BadCompiled));
            }
            let caller = self.complete_frame(cursor.at, blob)?;
            let caller = self
                .above_leaf_call(cursor.at, blob, caller)
                .unwrap_or(caller);
            return self.move_on(cursor, caller);
        };
        let pc = cursor.at.pc;
        let told = (self.machine).frame_state(self.mem, self.layout, blob, pc)?;
        let states = [
            told,
            FrameState::Complete,
            FrameState::None,
            FrameState::Pushed,
            FrameState::Unsaved,
        ];
        for state in states {
            if let Ok(caller) = (self.machine).compiled_caller(
                self.mem,
                cursor.at,
                Some(&regs),
                blob.frame_bytes,
                state,
            ) && self.calls_java(caller)
            {
                return self.move_to(cursor, caller);
            }
        }
        // Intrinsics push one or two registers on top of the complete frame.
        for words in 1..=pushed_max {
            let at = NativeRegs {
                sp: cursor.at.sp.wrapping_add(words * 8),
                ..cursor.at
            };
            if let Ok(caller) = self.complete_frame(at, blob)
                && self.calls_java(caller)
            {
                return self.move_to(cursor, caller);
            }
        }
        Err(Stop::Fail(Failure::BadCompiled))
    }

    /// The caller of a frame that has called a leaf routine with words pushed on top of it, if
    /// `caller` is none.
    fn above_leaf_call(
        &self,
        at: NativeRegs,
        blob: &Blob,
        caller: NativeRegs,
    ) -> Option<NativeRegs> {
        let pushed = self.machine.leaf_call_bytes();
        if pushed == 0 || self.calls_java(caller) {
            return None;
        }
        let sp = at.sp.wrapping_add(pushed);
        let found = self.complete_frame(NativeRegs { sp, ..at }, blob).ok();
        found.filter(|found| self.calls_java(*found))
    }

    /// The caller of a frame that made a call without debug information. The callee is a leaf
    /// routine, called with the frame unchanged, or a slow path of a GC barrier, which saves
    /// registers on top of it (zBarrierSetAssembler_x86.cpp, `SaveLiveRegisters`).
    fn to_saving_caller(&self, cursor: &mut Cursor<'_, P>, blob: &Blob) -> Result<(), Stop> {
        for words in 0..=SAVED_WORDS_MAX {
            let at = NativeRegs {
                sp: cursor.at.sp.wrapping_add(words * 8),
                ..cursor.at
            };
            if let Ok(caller) = self.complete_frame(at, blob)
                && self.calls_java(caller)
            {
                return self.move_to(cursor, caller);
            }
        }
        Err(Stop::Fail(Failure::BadCompiled))
    }

    /// Whether `caller` can be the caller of a compiled method: only generated code can. Stacks
    /// contain words that look like return addresses of libraries by chance.
    fn calls_java(&self, caller: NativeRegs) -> bool {
        self.code.contains(caller.pc) && self.is_caller(caller)
    }

    fn complete_frame(&self, at: NativeRegs, blob: &Blob) -> Result<NativeRegs, Fault> {
        let sp = at.sp.wrapping_add(blob.frame_bytes);
        self.machine.ending(self.mem, sp)
    }
}

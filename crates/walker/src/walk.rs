//! The walk: one loop over native, compiled, interpreted, stub and frozen frames.
//!
//! Bounded in steps and by the caller's frame buffer. Each step must move up the stack. When a step
//! fails, the thread's `JavaFrameAnchor` is tried once (the missing native frames are marked);
//! otherwise the walk ends in a named failure frame.

mod calls_into_java;
mod compiled;
mod frameless;
mod frozen;
mod gone;

use crate::cache::PcCache;
use crate::frame::{Failure, Frame, FrameKind, Frames};
use crate::hotspot::codecache::{Blob, BlobKind, CodeCache};
use crate::hotspot::continuation::Chunk;
use crate::hotspot::interpreter::{self, Interpreted};
use crate::hotspot::layout::{Layout, present};
use crate::hotspot::machine::{Host, Machine};
use crate::hotspot::nmethod::{self, Nmethod};
use crate::hotspot::threads::{self, Anchor};
use crate::memory::{Fault, Memory};
use crate::native::{NativeCode, NativeRegs, NativeStep, Rule};

/// Data of the thread that is walked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadContext {
    /// Its anchor at the time of the registers.
    pub anchor: Anchor,
    /// Frames above this address cannot be read (end of the stack, or of its copy). 0: unknown.
    pub stack_high: u64,
    /// Whether `stack_high` is the end of the copy, not of the stack.
    pub cut: bool,
    /// `JavaThread::_cont_entry`: the continuation that runs, or 0.
    pub cont_entry: u64,
    /// Its youngest stack chunk with frames at the time of the registers. 0: read it from memory,
    /// where it may have changed since.
    pub chunk: u64,
    /// pc at which a poll last stopped its compiled code; 0: never, or unknown.
    pub poll_pc: u64,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// At the root of the thread.
    Complete,
    /// Before the root; the last frame has the reason.
    Failed(Failure),
}

/// The result of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Number of frames written, innermost first, including a failure's pseudo-frame.
    pub len: usize,
    /// How it ended.
    pub outcome: Outcome,
    /// How often the anchor bridged native frames.
    pub gaps: u32,
    /// The gap in a walk that reached the root.
    pub flaw: Option<Failure>,
}

/// All inputs of a walk, apart from the thread.
pub struct Walker<'a, M: Memory, N: NativeCode, P: Machine = Host> {
    /// The target's processor.
    pub machine: P,
    /// The target's memory.
    pub mem: &'a M,
    /// HotSpot's layout.
    pub layout: &'a Layout,
    /// The code cache.
    pub code: &'a CodeCache,
    /// The native modules.
    pub native: &'a N,
    /// The scopes of return addresses from earlier walks, if they are cached.
    pub cache: Option<PcCache<'a>>,
}

/// Maximum number of words that code inside a compiled frame pushes (x86.ad: string comparison
/// pushes one).
const PUSHED_WORDS_MAX: u64 = 4;

/// Maximum number of words of registers that code saves on top of a compiled frame: 32 vector
/// registers of 64 bytes, the others, and some reserve.
const SAVED_WORDS_MAX: u64 = 320;

/// The reason why a step ended the walk.
enum Stop {
    End,
    Fail(Failure),
}

impl From<Fault> for Stop {
    fn from(_: Fault) -> Stop {
        Stop::Fail(Failure::Unreadable)
    }
}

/// The callee of a frame.
#[derive(Clone, Copy)]
enum Callee {
    /// Code without a method's frame, which may be called from a place without a frame: a stub, or
    /// native code. The register for the caller's sp at its return, if known.
    Leaf {
        sender_sp: Option<u64>,
    },
    Other,
}

/// The current frame of the walk.
struct Cursor<'t, P: Machine> {
    at: NativeRegs,
    /// Set while `at` is an interrupted pc, not a return address.
    exact: Option<P::Regs>,
    /// Set while `at` is in a heap chunk.
    frozen: Option<Chunk>,
    cont_entry: u64,
    /// Whether `at` is an exception handler, not a return address.
    handling: bool,
    /// The callee of `at`.
    callee: Callee,
    /// Whether the thread's anchor has been used.
    bridged: bool,
    /// sp of the frame that an anchor led to last.
    bridged_to: u64,
    /// Set while `at` is in native code that has called Java: the anchor of the next Java frame.
    outer: Anchor,
    thread: &'t ThreadContext,
}

struct Sink<'f, F: Frames + ?Sized> {
    frames: &'f mut F,
    len: usize,
    flaw: Option<Failure>,
}

impl<F: Frames + ?Sized> Sink<'_, F> {
    /// Keeps one entry free for a failure frame.
    fn push(&mut self, kind: FrameKind, id: u64, bci: i32) -> Result<(), Stop> {
        if self.len + 1 >= self.frames.room() {
            return Err(Stop::Fail(Failure::Truncated));
        }
        self.put(Frame { kind, bci, id });
        Ok(())
    }

    fn put(&mut self, frame: Frame) {
        if self.frames.set(self.len, frame) {
            self.len += 1;
        }
    }
}

impl<M: Memory, N: NativeCode, P: Machine> Walker<'_, M, N, P> {
    /// Walks the stack from `regs` and fills `frames`, innermost first. The last entry of `frames`
    /// is kept for a failure, so the depth limit is one less than its length.
    pub fn walk<F: Frames + ?Sized>(
        &self,
        regs: P::Regs,
        thread: &ThreadContext,
        frames: &mut F,
    ) -> Walk {
        let cursor = Cursor {
            at: self.machine.start(&regs),
            exact: Some(regs),
            frozen: None,
            cont_entry: thread.cont_entry,
            handling: false,
            callee: Callee::Other,
            bridged: false,
            bridged_to: 0,
            outer: Anchor::default(),
            thread,
        };
        self.walk_on(cursor, frames)
    }

    /// The same from the thread's last Java frame on, without the frames of running VM code. A
    /// thread without a Java frame has no frames.
    pub fn walk_java<F: Frames + ?Sized>(&self, thread: &ThreadContext, frames: &mut F) -> Walk {
        let Anchor { sp, pc, fp } = thread.anchor;
        let cursor = Cursor {
            at: NativeRegs { pc, sp, fp },
            exact: None,
            frozen: None,
            cont_entry: thread.cont_entry,
            handling: false,
            callee: Callee::Other,
            bridged: true,
            bridged_to: sp,
            outer: Anchor::default(),
            thread,
        };
        self.walk_on(cursor, frames)
    }

    fn walk_on<F: Frames + ?Sized>(&self, mut cursor: Cursor<'_, P>, frames: &mut F) -> Walk {
        let thread = cursor.thread;
        let mut sink = Sink {
            frames,
            len: 0,
            flaw: None,
        };
        let mut gaps = 0;
        // Not every step writes a frame, so the number of steps has its own limit.
        let steps_max = sink.frames.room().saturating_mul(2).saturating_add(64);
        for _ in 0..steps_max {
            let (before, was_frozen) = (cursor.at, cursor.frozen.is_some());
            let (was_exact, was_len) = (cursor.exact.is_some(), sink.len);
            if !was_frozen {
                sink.frames.begins(was_len, before);
                if self.is_plain(&cursor)
                    && let Some(rest) = sink.frames.rest(was_len, before)
                {
                    sink.len += rest;
                    return finish(sink, Outcome::Complete, gaps);
                }
            }
            let failure = match self.step(&mut cursor, &mut sink) {
                Ok(()) if was_frozen => continue,
                Ok(()) => match self.check(&mut cursor, before, was_exact) {
                    Ok(()) => continue,
                    Err(failure) => failure,
                },
                Err(Stop::End) => return finish(sink, Outcome::Complete, gaps),
                Err(Stop::Fail(Failure::Unreadable)) if thread.cut => Failure::SnapshotEnd,
                Err(Stop::Fail(failure)) => failure,
            };
            if self.bridge(&mut cursor, before, failure) {
                gaps += 1;
                sink.put(Frame::failed(Failure::NativeGap));
                continue;
            }
            if self.pass_gone_code(&mut cursor, before, was_frozen, failure) {
                // The frames of this step belong to other code.
                if matches!(failure, Failure::BadCompiled) {
                    sink.len = was_len;
                }
                sink.put(Frame::failed(failure));
                sink.flaw = Some(failure);
                continue;
            }
            return fail(sink, failure, gaps);
        }
        fail(sink, Failure::Cycle, gaps)
    }

    /// Whether the next frames depend only on the registers and on the stack above.
    fn is_plain(&self, cursor: &Cursor<'_, P>) -> bool {
        let is_called =
            cursor.exact.is_none() && !cursor.handling && cursor.outer == Anchor::default();
        is_called && cursor.cont_entry == 0 && cursor.thread.anchor.sp <= cursor.at.sp
    }

    /// Each step must go up the stack, stay in it, and not skip the anchor's frame.
    fn check(
        &self,
        cursor: &mut Cursor<'_, P>,
        before: NativeRegs,
        was_exact: bool,
    ) -> Result<(), Failure> {
        if cursor.frozen.is_some() {
            return Ok(());
        }
        let sp = cursor.at.sp;
        // An interrupted adapter may hold the return address in a register and have an empty stack.
        let stays = sp == before.sp && was_exact;
        // Skipped frozen frames take no room on the stack.
        let left_out = sp == before.sp && before.pc == self.layout.extra.return_barrier;
        if sp <= before.sp && !stays && !left_out && cursor.exact.is_none() {
            return Err(Failure::StackRange);
        }
        let high = cursor.thread.stack_high;
        if high != 0 && sp > high {
            let cut = cursor.thread.cut;
            return Err(if cut {
                Failure::SnapshotEnd
            } else {
                Failure::StackRange
            });
        }
        let was_native = !self.code.contains(before.pc);
        let skips = |anchor: u64| before.sp < anchor && sp > anchor;
        if was_native && (skips(cursor.thread.anchor.sp) || skips(cursor.outer.sp)) {
            return Err(Failure::StackRange);
        }
        if self.code.contains(cursor.at.pc) {
            cursor.outer = Anchor::default();
        }
        Ok(())
    }

    fn step(
        &self,
        cursor: &mut Cursor<'_, P>,
        sink: &mut Sink<'_, impl Frames + ?Sized>,
    ) -> Result<(), Stop> {
        let pc = cursor.at.pc;
        if pc != 0 && pc == self.layout.extra.return_barrier {
            return self.step_barrier(cursor, sink);
        }
        if self.code.contains(pc) {
            if let Some(known) = self.remembered(cursor) {
                return self.step_remembered(cursor, &known, sink);
            }
            let blob = self.code.find(self.mem, self.layout, pc)?;
            let Some(blob) = blob else {
                return self.step_no_blob(cursor);
            };
            return match blob.kind {
                BlobKind::Nmethod => self.step_compiled(cursor, &blob, sink),
                BlobKind::NativeNmethod => self.step_wrapper(cursor, &blob, sink),
                BlobKind::Interpreter => self.step_interpreted(cursor, &blob, sink),
                BlobKind::Upcall => self.step_upcall(cursor, &blob, sink),
                BlobKind::Adapter | BlobKind::Vtable | BlobKind::Stub => {
                    self.step_stub(cursor, &blob, sink)
                }
            };
        }
        self.step_native(cursor, sink)
    }

    fn step_no_blob(&self, cursor: &mut Cursor<'_, P>) -> Result<(), Stop> {
        // After the oldest chunk there is no code: continue on the carrier's stack.
        if cursor.frozen.is_some() {
            return self.leave_chunk(cursor);
        }
        Err(Stop::Fail(Failure::NoBlob))
    }

    fn step_interpreted(
        &self,
        cursor: &mut Cursor<'_, P>,
        blob: &Blob,
        sink: &mut Sink<'_, impl Frames + ?Sized>,
    ) -> Result<(), Stop> {
        if let Some(chunk) = cursor.frozen {
            return self.step_frozen_interpreted(cursor, chunk, sink);
        }
        if let Some(regs) = cursor.exact {
            let is_return = |pc| self.is_return(pc);
            if let Some(caller) = self.machine.exit_caller(self.mem, &regs, is_return) {
                sink.push(FrameKind::Stub, cursor.at.pc, 0)?;
                return self.move_to(cursor, caller);
            }
            let machine = self.machine;
            let entry = machine.entered(self.mem, self.layout, self.code, &regs, is_return)?;
            if let Some(frame) = entry {
                return self.to_interpreted_caller(cursor, frame, sink);
            }
        }
        if cursor.exact.is_none()
            && let Ok(Some(caller)) = self.machine.forwarding_caller(self.mem, cursor.at)
            && self.is_return(caller.pc)
        {
            sink.push(FrameKind::Stub, cursor.at.pc, 0)?;
            return self.move_to(cursor, caller);
        }
        if let Some(found) = self.unframed_entry(cursor) {
            sink.push(FrameKind::Stub, cursor.at.pc, 0)?;
            return self.move_to(cursor, found.caller);
        }
        let bcp = cursor.exact.map(|regs| self.machine.live_bcp(&regs));
        match interpreter::read_frame(self.machine, self.mem, self.layout, cursor.at.fp, bcp) {
            Ok(Some(frame)) if frame.bci >= 0 || self.is_linked(cursor) => {
                self.to_interpreted_caller(cursor, frame, sink)
            }
            Ok(_) | Err(_) => match cursor.exact {
                // Between frames: the frame pointer is a compiled caller's. Find the caller as for
                // a stub.
                Some(regs) => {
                    if let Some(caller) = self.caller_of_unnamed(&regs) {
                        sink.push(FrameKind::Failed, Failure::StaleMethod as u64, 0)?;
                        sink.flaw = Some(Failure::StaleMethod);
                        return self.move_to(cursor, caller);
                    }
                    let caller = self.machine.interrupted_stub(self.mem, blob, &regs, self)?;
                    match caller {
                        Some(caller) => {
                            sink.push(FrameKind::Stub, cursor.at.pc, 0)?;
                            self.to_stub_caller(cursor, caller, sink)
                        }
                        None => Err(Stop::Fail(Failure::BadInterpreted)),
                    }
                }
                None => self.step_unframed_interpreted(cursor, blob, sink),
            },
        }
    }

    /// The interpreter has made a call, but there is no frame of a method at the frame pointer.
    /// Deoptimisation is just filling it in, or its class has been unloaded since, or it was left
    /// with an exception for a compiled caller.
    fn step_unframed_interpreted(
        &self,
        cursor: &mut Cursor<'_, P>,
        blob: &Blob,
        sink: &mut Sink<'_, impl Frames + ?Sized>,
    ) -> Result<(), Stop> {
        let is_return = |pc| self.is_return(pc);
        let skeleton = interpreter::read_skeleton(self.machine, self.mem, cursor.at.fp, is_return);
        if let Ok(Some(caller)) = skeleton {
            let (sp, fp) = (cursor.at.sp, cursor.at.fp);
            let has_called = interpreter::has_called(self.machine, self.mem, self.layout, sp, fp);
            let failure = if has_called == Ok(true) {
                sink.flaw = Some(Failure::StaleMethod);
                Failure::StaleMethod
            } else {
                Failure::BeingUnpacked
            };
            sink.push(FrameKind::Failed, failure as u64, 0)?;
            return self.move_to(cursor, caller);
        }
        match (self.machine).calling_stub(self.mem, blob, cursor.at, false, self)? {
            Some(caller) => {
                sink.push(FrameKind::Stub, cursor.at.pc, 0)?;
                self.to_stub_caller(cursor, caller, sink)
            }
            None => Err(Stop::Fail(Failure::BadInterpreted)),
        }
    }

    fn to_interpreted_caller(
        &self,
        cursor: &mut Cursor<'_, P>,
        frame: Interpreted,
        sink: &mut Sink<'_, impl Frames + ?Sized>,
    ) -> Result<(), Stop> {
        if frame.method == 0 {
            sink.push(FrameKind::Failed, Failure::StaleMethod as u64, 0)?;
            sink.flaw = Some(Failure::StaleMethod);
        } else {
            sink.push(FrameKind::Interpreted, frame.method, frame.bci)?;
        }
        let caller = NativeRegs {
            pc: frame.caller_pc,
            sp: frame.caller_sp,
            fp: frame.caller_fp,
        };
        self.move_to(cursor, caller)
    }

    fn step_native(
        &self,
        cursor: &mut Cursor<'_, P>,
        sink: &mut Sink<'_, impl Frames + ?Sized>,
    ) -> Result<(), Stop> {
        if cursor.frozen.is_some() {
            return self.leave_chunk(cursor);
        }
        let at = cursor.at;
        // Only what is wrong ends below a Java frame.
        let end = match self.next_java_sp(cursor) {
            0 => Stop::End,
            _ => Stop::Fail(Failure::NoNativeRule),
        };
        if at.pc == 0 {
            return Err(end);
        }
        let lookup = if cursor.exact.is_some() {
            at.pc
        } else {
            at.pc.wrapping_sub(1)
        };
        let rule = self.native.rule(lookup);
        if rule.is_none() && cursor.exact.is_none() {
            return Err(Stop::Fail(Failure::UnknownPc));
        }
        let kind = if self.native.is_vm(lookup) {
            FrameKind::Vm
        } else {
            FrameKind::Native
        };
        sink.push(kind, lookup, 0)?;
        let rule = rule.unwrap_or(Rule::Gap);
        match (self.machine).unwind(self.mem, rule, at, cursor.exact.as_ref())? {
            NativeStep::End => Err(end),
            NativeStep::Caller(caller) => {
                self.move_to(cursor, caller)?;
                cursor.callee = Callee::Leaf { sender_sp: None };
                Ok(())
            }
            NativeStep::Interrupted(interrupted) => {
                cursor.at = interrupted;
                cursor.exact = Some(self.machine.interrupted(self.mem, at.sp, interrupted));
                Ok(())
            }
            NativeStep::NoRule => self.by_frame_pointer(cursor, at),
        }
    }

    /// Without a rule: uses the frame pointer or, in a leaf, the place of the return address at a
    /// call, if that gives a return address.
    fn by_frame_pointer(&self, cursor: &mut Cursor<'_, P>, at: NativeRegs) -> Result<(), Stop> {
        if self.machine.returns_by_link() && self.by_leaf(cursor)? {
            return Ok(());
        }
        let high = cursor.thread.stack_high;
        if at.fp >= at.sp && at.fp & 7 == 0 && (high == 0 || at.fp < high) {
            let caller = self.machine.linked(self.mem, at.fp)?;
            if self.is_native_caller(cursor, caller) {
                return self.move_to(cursor, caller);
            }
        }
        match self.by_leaf(cursor)? {
            true => Ok(()),
            false => Err(Stop::Fail(Failure::NoNativeRule)),
        }
    }

    /// Goes to the caller of an interrupted leaf; false if there is no such caller.
    fn by_leaf(&self, cursor: &mut Cursor<'_, P>) -> Result<bool, Stop> {
        let Some(regs) = &cursor.exact else {
            return Ok(false);
        };
        let caller = self.machine.leaf_caller(self.mem, regs)?;
        let is_found = self.is_native_caller(cursor, caller);
        if is_found {
            self.move_to(cursor, caller)?;
        }
        Ok(is_found)
    }

    /// Makes `caller` the next frame.
    fn move_to(&self, cursor: &mut Cursor<'_, P>, caller: NativeRegs) -> Result<(), Stop> {
        cursor.exact = None;
        cursor.handling = false;
        cursor.callee = Callee::Other;
        let Some(chunk) = cursor.frozen else {
            cursor.at = caller;
            return Ok(());
        };
        if caller.sp >= chunk.bottom || !self.code.contains(caller.pc) {
            return self.leave_chunk(cursor);
        }
        // In a chunk, an interpreted caller needs the slot of the link.
        cursor.at = NativeRegs {
            fp: caller.sp.wrapping_sub(16),
            ..caller
        };
        Ok(())
    }

    /// Whether `caller` can be the caller of an interrupted frame. Its pc must be a return address.
    /// A compiled caller must itself have a caller with a return address, and an interpreted one
    /// must have a frame.
    fn is_caller(&self, caller: NativeRegs) -> bool {
        if !self.is_return(caller.pc) {
            return false;
        }
        if !self.code.contains(caller.pc) {
            return true;
        }
        let Ok(Some(blob)) = self.code.find(self.mem, self.layout, caller.pc) else {
            return false;
        };
        if blob.kind == BlobKind::Interpreter {
            return interpreter::is_frame(self.machine, self.mem, caller.sp, caller.fp);
        }
        let compiled = matches!(blob.kind, BlobKind::Nmethod | BlobKind::NativeNmethod);
        if !compiled || blob.frame_bytes == 0 {
            return true;
        }
        let slot = caller.sp.wrapping_add(blob.frame_bytes).wrapping_sub(8);
        let found = self.mem.word(slot);
        found.is_ok_and(|word| self.is_return(self.machine.return_address(word)))
    }

    /// Whether `pc` is in a compiled method or the interpreter.
    fn is_method(&self, pc: u64) -> Result<bool, Fault> {
        let blob = self.code.find(self.mem, self.layout, pc)?;
        let kind = blob.map(|blob| blob.kind);
        Ok(matches!(
            kind,
            Some(BlobKind::Nmethod | BlobKind::Interpreter)
        ))
    }

    /// Whether `pc` can be a return address: right after a call in compiled code, in the
    /// interpreter or a stub, the return barrier, or in native code with an unwind rule.
    fn is_return(&self, pc: u64) -> bool {
        if pc != 0 && pc == self.layout.extra.return_barrier {
            return true;
        }
        if !self.code.contains(pc) {
            return !matches!(self.native.rule(pc.wrapping_sub(1)), None | Some(Rule::Gap));
        }
        let Ok(Some(blob)) = self.code.find(self.mem, self.layout, pc) else {
            return false;
        };
        match blob.kind {
            BlobKind::Nmethod | BlobKind::NativeNmethod => {
                let exact = Nmethod::load(self.mem, self.layout, &blob)
                    .and_then(|nm| nm.is_return_address(self.mem, self.layout, pc));
                // Calls of leaf routines have no debug information, but count as calls.
                exact.unwrap_or(false)
                    || self.machine.follows_call(self.mem, pc).unwrap_or(false)
                    || nmethod::original_pc(self.mem, self.layout, &blob, pc, blob.addr)
                        .is_ok_and(|original| original.is_some())
            }
            BlobKind::Interpreter => true,
            BlobKind::Stub | BlobKind::Upcall => pc > blob.code_begin,
            BlobKind::Adapter | BlobKind::Vtable => false,
        }
    }
}

fn finish(sink: Sink<'_, impl Frames + ?Sized>, outcome: Outcome, gaps: u32) -> Walk {
    Walk {
        len: sink.len,
        outcome,
        gaps,
        flaw: sink.flaw,
    }
}

fn fail(mut sink: Sink<'_, impl Frames + ?Sized>, failure: Failure, gaps: u32) -> Walk {
    sink.put(Frame::failed(failure));
    finish(sink, Outcome::Failed(failure), gaps)
}

/// Fills the anchor of a [`ThreadContext`] from a live Java thread.
///
/// # Errors
/// [`Fault`] if the thread cannot be read.
pub fn live_context<M: Memory>(
    mem: &M,
    layout: &Layout,
    thread: u64,
) -> Result<ThreadContext, Fault> {
    let cont_entry = match layout.extra.cont_entry {
        at if present(at) => mem.word(thread.wrapping_add(at))?,
        _ => 0,
    };
    Ok(ThreadContext {
        anchor: threads::anchor(mem, layout, thread)?,
        stack_high: threads::stack_high(mem, layout, thread)?,
        cut: false,
        cont_entry,
        chunk: 0,
        poll_pc: match layout.thread_poll_pc {
            at if present(at) => mem.word(thread.wrapping_add(at))?,
            _ => 0,
        },
    })
}

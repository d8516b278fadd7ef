//! Fills a slot: registers, stack, anchor, kernel chain, and what the agent's hook adds.
//!
//! Every read of memory is fault-tolerant, the thread's own stack included: what is believed to be
//! its end may be wrong.

use crate::arch::{self, Registers};
use crate::counters::Cause;
use crate::engine::Engine;
use crate::engine::ring::Ring;
use crate::load::Live;
use crate::record::ThreadRecord;
use crate::slots::{
    CHUNKS_MAX, ChunkCopy, KERNEL_FRAMES_MAX, OwnedSlot, Reason, SlotHeader, SlotPool,
    VTHREAD_NAME_MAX,
};
use crate::sys;
use core::sync::atomic::Ordering;
use dwell_walker::Memory;

/// Copied of a stack whose end nobody knows.
const UNKNOWN_STACK_BYTES: usize = 64 << 10;
/// Room kept for what the agent's hook copies from the heap.
const CHUNK_BYTES: usize = 8 << 10;
/// A larger chunk is not copied, so that a handler takes no longer than it must: it may well be an
/// object whose size was read while a collector moved it.
const CHUNK_MAX_BYTES: u32 = 1 << 20;
/// Stacks found by the thread pointer are believed up to this size.
const GUESSED_STACK_MAX_BYTES: u64 = 8 << 20;
/// Stacks of which only the end is known are believed up to this size.
const KNOWN_STACK_MAX_BYTES: u64 = 1 << 30;

/// What the agent adds to a snapshot, called in the handler after the stack has been copied.
///
/// Must be safe in a signal handler: no allocation, no locks, no panics, no thread-local storage,
/// no calls into the JVM, all memory read through [`Capture::live`], all loops bounded, little
/// stack. `xtask handler-graph` checks it if its symbol is called `dwell_*_hook`.
///
/// It is `extern "C"` because calls of such functions cannot unwind: else the handler would have to
/// deal with that.
pub type Extra = extern "C" fn(&mut Capture<'_>);

/// One signal, as far as the snapshot is concerned.
pub(crate) struct Moment<'a> {
    pub begin_ns: u64,
    pub cpu_ns: u64,
    pub points: u32,
    pub reason: Reason,
    pub frame: &'a libc::ucontext_t,
}

/// A snapshot in the making, for the agent's hook.
pub struct Capture<'a> {
    slot: &'a mut OwnedSlot,
    pool: &'a SlotPool,
    record: &'a ThreadRecord,
    live: Live,
}

impl Capture<'_> {
    /// The thread's record.
    #[inline]
    #[must_use]
    pub fn record(&self) -> &ThreadRecord {
        self.record
    }

    /// The process's memory, fault-tolerant.
    #[inline]
    #[must_use]
    pub fn live(&self) -> Live {
        self.live
    }

    /// The snapshot so far.
    #[inline]
    pub fn header(&mut self) -> &SlotHeader {
        self.slot.header()
    }

    /// Notes which virtual thread is mounted.
    #[inline]
    pub fn set_vthread_id(&mut self, id: u64) {
        self.slot.header().vthread_id = id;
    }

    /// Notes where the mounted continuation was entered.
    #[inline]
    pub fn set_cont_entry(&mut self, entry: u64) {
        self.slot.header().cont_entry = entry;
    }

    /// Copies the first bytes of the virtual thread's name.
    #[inline]
    pub fn copy_vthread_name(&mut self, addr: u64, len: usize) {
        let len = len.min(VTHREAD_NAME_MAX);
        let name = &mut self.slot.header().vthread_name;
        // SAFETY: the array holds VTHREAD_NAME_MAX bytes, and the slot is ours alone.
        let copied = unsafe { self.live.copy(name.as_mut_ptr(), addr, len) };
        self.slot.header().vthread_name_len = copied as u8;
    }

    /// Copies one range of heap (a continuation's chunk) behind what is there, as much as fits;
    /// returns how many bytes that was. What did not fit cannot be read by the walk: the live bytes
    /// belong to another moment. At most [`CHUNKS_MAX`] ranges.
    #[inline]
    pub fn copy_chunk(&mut self, addr: u64, len: u32) -> usize {
        let number = self.slot.header().chunks_len as usize;
        if number >= CHUNKS_MAX {
            return 0;
        }
        let few_enough = len <= CHUNK_MAX_BYTES;
        if few_enough && self.slot.chunk_room().1 < len as usize {
            self.grow(len as usize);
        }
        let (room, room_len) = self.slot.chunk_room();
        let fitting = if few_enough {
            room_len.min(len as usize)
        } else {
            0
        };
        // SAFETY: `chunk_room` is the unused rest of the slot's data, and the slot is ours alone.
        let copied = unsafe { self.live.copy(room, addr, fitting) };
        let header = self.slot.header();
        if let Some(chunk) = header.chunks.get_mut(number) {
            *chunk = ChunkCopy {
                lo: addr,
                len: copied as u32,
                wanted: len,
            };
            header.chunks_len = header.chunks_len.wrapping_add(1);
        }
        copied
    }

    /// Moves to a slot with room for `more` bytes, if there is one.
    #[inline]
    fn grow(&mut self, more: usize) {
        // Aligning what is added takes less than 16 bytes.
        let needed = self
            .slot
            .header()
            .used()
            .saturating_add(more)
            .saturating_add(16);
        let Some(mut larger) = self.pool.take(needed) else {
            return;
        };
        if larger.capacity() <= self.slot.capacity() {
            self.pool.release(larger);
            return;
        }
        larger.copy_from(self.slot);
        self.pool.release(core::mem::replace(self.slot, larger));
    }
}

/// Takes a snapshot and hands it to the drainer; false if there is no slot.
#[inline]
pub(crate) fn publish(
    engine: &'static Engine,
    record: &ThreadRecord,
    interval_ns: u64,
    moment: &Moment<'_>,
) -> bool {
    allow_faults(moment.frame);
    let regs = Registers::of(moment.frame);
    let stack = stack_range(record, regs.sp());
    let reserved = if engine.extra.load(Ordering::Relaxed).is_null() {
        0
    } else {
        CHUNK_BYTES
    };
    let Some(mut slot) = engine.pool.take(stack.wanted.saturating_add(reserved)) else {
        return false;
    };
    let header = slot.header();
    header.time_ns = moment.begin_ns;
    header.cpu_ns = moment.cpu_ns;
    header.interval_ns = interval_ns;
    header.points = moment.points;
    header.carried = record.carried.load(Ordering::Relaxed);
    header.reason = moment.reason;
    header.record_index = record.index();
    header.record_generation = record.generation();
    header.tid = record.tid();
    header.user = record.user();
    header.regs = regs;
    header.stack_lo = stack.lo;
    header.stack_hi = stack.hi;
    header.stack_end_known = stack.end_known;
    header.chunks_len = 0;
    header.vthread_id = 0;
    header.cont_entry = 0;
    header.vthread_name_len = 0;
    copy_java_state(engine, record, header);
    copy_kernel_chain(engine, record, header);
    copy_stack(engine, &mut slot, &stack);
    call_extra(engine, record, &mut slot);
    slot.header().handler_ns = sys::monotonic_ns().saturating_sub(moment.begin_ns);
    if !engine.pool.publish(slot) {
        engine.counters.add(Cause::Contention, 1);
        return false;
    }
    true
}

/// A thread may block SIGSEGV, and the handler inherits its mask: a fault would end the process.
/// The thread's own mask comes back when the handler returns.
#[inline]
fn allow_faults(frame: &libc::ucontext_t) {
    let mask = (&raw const frame.uc_sigmask).cast::<u64>();
    // SAFETY: the kernel's signal set is the first 8 bytes of libc's larger one.
    let blocked = unsafe { mask.read() };
    if blocked & sys::FAULT_SIGNALS != 0 {
        sys::unblock(sys::FAULT_SIGNALS);
    }
}

/// Which bytes are the stack's.
struct StackRange {
    lo: u64,
    hi: u64,
    /// How many bytes from `lo` on to copy.
    wanted: usize,
    end_known: bool,
}

/// From the red zone below the stack pointer to the stack's end, as far as that is known.
#[inline]
fn stack_range(record: &ThreadRecord, sp: u64) -> StackRange {
    let lo = sp.saturating_sub(arch::RED_ZONE_BYTES);
    let up_to = |hi: u64| StackRange {
        lo,
        hi,
        wanted: hi.saturating_sub(lo) as usize,
        end_known: true,
    };
    let believed = |hi: u64, max_bytes: u64| hi > sp && hi.wrapping_sub(sp) <= max_bytes;
    let known_hi = record.stack_hi.load(Ordering::Relaxed);
    let known_lo = record.stack_lo.load(Ordering::Relaxed);
    if sp >= known_lo && believed(known_hi, KNOWN_STACK_MAX_BYTES) {
        return up_to(known_hi);
    }
    let thread_pointer = arch::thread_pointer();
    if known_hi == 0 && believed(thread_pointer, GUESSED_STACK_MAX_BYTES) {
        return up_to(thread_pointer);
    }
    // An alternate stack, a coroutine's, or the main thread's.
    StackRange {
        lo,
        hi: sp.saturating_add(GUESSED_STACK_MAX_BYTES),
        wanted: UNKNOWN_STACK_BYTES,
        end_known: false,
    }
}

#[inline]
fn copy_stack(engine: &Engine, slot: &mut OwnedSlot, stack: &StackRange) {
    let len = stack.wanted.min(slot.capacity());
    // SAFETY: `len` is within the slot's data, and the slot is ours alone.
    let copied = unsafe { engine.live.copy(slot.data(), stack.lo, len) };
    let header = slot.header();
    header.stack_len = copied as u32;
    header.truncated = len < stack.wanted;
    header.stack_fault = copied < len;
    if header.truncated {
        engine.counters.add(Cause::Truncated, 1);
    }
    if header.stack_fault && stack.end_known {
        engine.counters.add(Cause::StackFault, 1);
    }
}

/// The thread's state and its anchor: they change as soon as the thread goes on.
#[inline]
fn copy_java_state(engine: &Engine, record: &ThreadRecord, header: &mut SlotHeader) {
    let java_thread = record.java_thread();
    header.java_thread = java_thread;
    header.thread_state = -1;
    header.anchor_valid = false;
    (header.anchor_sp, header.anchor_pc, header.anchor_fp) = (0, 0, 0);
    if java_thread == 0 {
        return;
    }
    let live = engine.live;
    if let Some(offset) = engine.offsets.thread_state() {
        header.thread_state = live.i32(java_thread.wrapping_add(offset)).unwrap_or(-1);
    }
    let field = |offset: Option<u64>| live.word(java_thread.wrapping_add(offset?)).ok();
    let [sp, pc, fp] = engine.offsets.anchor();
    if let (Some(sp), Some(pc), Some(fp)) = (field(sp), field(pc), field(fp)) {
        (header.anchor_sp, header.anchor_pc, header.anchor_fp) = (sp, pc, fp);
        header.anchor_valid = true;
    }
}

#[inline]
fn copy_kernel_chain(engine: &Engine, record: &ThreadRecord, header: &mut SlotHeader) {
    header.kernel_len = 0;
    let ring = record.ring.load(Ordering::Relaxed);
    // A thread that takes a snapshot of itself was not in the kernel for its own sake.
    if ring == 0 || header.reason != Reason::CpuTime {
        return;
    }
    // SAFETY: set by `attach_ring` to a mapping of the right size; unmapping it needs the record's
    // lock, which this handler holds.
    let ring = unsafe { Ring::at(ring) };
    match ring.newest_kernel_chain(&mut header.kernel) {
        Some(len) => header.kernel_len = len.min(KERNEL_FRAMES_MAX) as u32,
        None => engine.counters.add(Cause::RingSkipped, 1),
    }
}

#[inline]
fn call_extra(engine: &Engine, record: &ThreadRecord, slot: &mut OwnedSlot) {
    let extra = engine.extra.load(Ordering::Acquire);
    if extra.is_null() {
        return;
    }
    // SAFETY: only `set_extra` stores here, and it takes an `Extra`.
    let extra: Extra = unsafe { core::mem::transmute(extra) };
    extra(&mut Capture {
        slot,
        pool: &engine.pool,
        record,
        live: engine.live,
    });
}

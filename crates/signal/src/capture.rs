//! Fills a slot: registers, stack, anchor, kernel chain, and the additions of the agent's hook.
//!
//! Every read of memory is fault-tolerant, also of the thread's own stack: its assumed end may be
//! wrong.

use crate::arch::{self, Registers};
use crate::counters::Cause;
use crate::engine::Engine;
use crate::engine::ring::Ring;
use crate::hook::{Capture, Extra, WalkHook};
use crate::pause::Offer;
use crate::record::{PERF, ThreadRecord};
use crate::room::{self, GUESSED_STACK_MAX_BYTES};
use crate::slots::{
    Allocation, KERNEL_FRAMES_MAX, OwnedSlot, Reason, SlotHeader, Wait, WalkNote, WalkTarget,
};
use crate::sys;
use crate::vantage::Vantage;
use core::sync::atomic::Ordering;
use dwell_walker::{Failure, Frame, Memory};

/// Bytes copied of a stack whose end is not known.
const UNKNOWN_STACK_BYTES: usize = 64 << 10;
/// Room reserved for copies from the heap by the agent's hook.
const CHUNK_BYTES: usize = 8 << 10;
/// Maximum plausible size of a stack of which only the end is known.
const KNOWN_STACK_MAX_BYTES: u64 = 1 << 30;

/// The reason for a snapshot, and its time.
pub(crate) struct Moment {
    pub begin_ns: u64,
    pub cpu_ns: u64,
    pub points: u32,
    pub weight_ns: u64,
    pub reason: Reason,
    pub allocation: Allocation,
    pub wait: Wait,
}

/// The outcome of a sample.
#[derive(Clone, Copy, Default)]
pub(crate) struct Published {
    /// Whether the drainer will see it.
    pub ok: bool,
    /// How long the thread waited to be walked.
    pub waited_ns: u64,
}

/// The interrupted thread, for all ways to sample it.
struct Subject<'a> {
    engine: &'static Engine,
    record: &'a ThreadRecord,
    interval_ns: u64,
    moment: &'a Moment,
    regs: Registers,
    stack: StackRange,
}

/// Takes a sample and hands it to the drainer, unless there is no slot.
#[inline]
pub(crate) fn publish(
    engine: &'static Engine,
    record: &ThreadRecord,
    interval_ns: u64,
    moment: &Moment,
    frame: &libc::ucontext_t,
) -> Published {
    allow_faults(frame);
    let regs = Registers::of(frame);
    let stack = stack_range(engine, record, regs.sp());
    let subject = Subject {
        engine,
        record,
        interval_ns,
        moment,
        regs,
        stack,
    };
    if room::is_short(frame, engine.room_bytes) {
        return not_walked(&subject, Failure::SignalStack);
    }
    let is_server = record.tid() == engine.server();
    // Others wait for a thread that is late for a stop, or owns a monitor: it must not wait
    // itself.
    let is_waited_for = matches!(moment.reason, Reason::Stop | Reason::Owner);
    let may_wait = !is_server && !is_waited_for;
    match engine.vantage() {
        Vantage::Handler => walked(&subject, walk_here),
        Vantage::Paused if engine.is_served() && may_wait => paused(&subject),
        #[cfg(feature = "experiments")]
        Vantage::NoCopy => snapshot(&subject, false),
        #[cfg(feature = "experiments")]
        Vantage::Empty => Published {
            ok: true,
            waited_ns: 0,
        },
        Vantage::Snapshot | Vantage::Paused => copied(&subject),
        #[cfg(feature = "experiments")]
        Vantage::Compare => snapshot(&subject, true),
    }
}

/// Takes a snapshot of the calling thread, which is in no handler, at its anchor: where its
/// managed code has entered the runtime. Nothing below the anchor is copied, so the walk has to
/// begin there. Any of the thread's signals may arrive during this call: slots are taken and
/// published without locks.
pub(crate) fn publish_here(
    engine: &'static Engine,
    record: &ThreadRecord,
    moment: &Moment,
) -> Published {
    let (sp, pc, fp) = anchor(engine, record.managed_thread()).unwrap_or_default();
    let stack = match sp {
        // A thread without a managed frame: the runtime allocates for itself.
        0 => StackRange::NONE,
        sp => stack_range(engine, record, sp),
    };
    let subject = Subject {
        engine,
        record,
        interval_ns: 0,
        moment,
        regs: Registers::at(pc, sp, fp),
        stack,
    };
    match engine.vantage() {
        Vantage::Handler => walked(&subject, walk_here),
        #[cfg(feature = "experiments")]
        Vantage::NoCopy | Vantage::Empty | Vantage::Compare => snapshot(&subject, true),
        Vantage::Snapshot | Vantage::Paused => copied(&subject),
    }
}

/// Lets `look` walk another thread, whose record this is, into a slot. If `look` returns true, the
/// drainer gets the slot. The calling thread is in no handler.
pub(crate) fn publish_other(
    engine: &'static Engine,
    record: &ThreadRecord,
    request: u64,
    look: impl FnOnce(&mut WalkTarget<'_>) -> bool,
) -> bool {
    let most = engine.frames_max.load(Ordering::Relaxed) as usize;
    let frames = FEW_FRAMES.min(most);
    let bytes = frames.saturating_mul(core::mem::size_of::<Frame>());
    let Some(mut slot) = engine.pool.take(bytes) else {
        return false;
    };
    let moment = Moment {
        begin_ns: sys::monotonic_ns(),
        cpu_ns: 0,
        points: 0,
        weight_ns: 0,
        reason: Reason::Owner,
        allocation: Allocation::default(),
        wait: Wait::default(),
    };
    let subject = Subject {
        engine,
        record,
        interval_ns: 0,
        moment: &moment,
        regs: Registers::at(0, 0, 0),
        stack: StackRange::NONE,
    };
    note(&subject, &mut slot);
    let header = slot.header();
    // The thread keeps its CPU-time debt.
    (header.weight_ns, header.carried) = (0, 0);
    header.request = request;
    if !look(&mut WalkTarget::new(&mut slot, engine.live, frames)) {
        engine.pool.release(slot);
        return false;
    }
    finish(&subject, slot).ok
}

/// A sample without a stack.
#[inline]
fn not_walked(subject: &Subject<'_>, failure: Failure) -> Published {
    let Some(mut slot) = subject.engine.pool.take(0) else {
        return Published::default();
    };
    note(subject, &mut slot);
    slot.header().walk = WalkNote::failed(failure);
    finish(subject, slot)
}

/// Waits until the walking thread has walked the stack; if that takes too long, takes a snapshot.
#[inline]
fn paused(subject: &Subject<'_>) -> Published {
    let engine = subject.engine;
    let mut waited_ns: u64 = 0;
    let mut left = false;
    let mut published = walked(subject, |engine, slot| {
        let (offer, ns) = engine.pause.offer(&engine.pool, slot);
        waited_ns = waited_ns.wrapping_add(ns);
        match offer {
            Offer::Walked(slot) => Some(slot),
            Offer::Left => {
                left = true;
                None
            }
        }
    });
    if left {
        engine.counters.add(Cause::PauseTimeout, 1);
        published = snapshot(subject, true);
    }
    engine.counters.waited(waited_ns);
    Published {
        waited_ns,
        ..published
    }
}

/// Copies the stack if the whole of it can be copied, and walked in time. Otherwise the thread
/// walks itself. Reasons are an alternate stack above frames on the ordinary one, a stack larger
/// than any slot, or a walking thread that gets no processor.
#[inline]
fn copied(subject: &Subject<'_>) -> Published {
    let engine = subject.engine;
    let stack = &subject.stack;
    let behind = engine.behind.load(Ordering::Relaxed) && engine.vantage() == Vantage::Snapshot;
    let whole = stack.end_known && stack.wanted <= engine.pool.largest();
    if whole && !behind {
        return snapshot(subject, true);
    }
    let published = walked(subject, |engine, mut slot| {
        call_walk(engine, &mut slot);
        if slot.header().walk.walk().is_some() {
            return Some(slot);
        }
        engine.pool.release(slot); // the data for walks is not set yet
        None
    });
    if published.ok {
        let cause = if whole {
            Cause::WalkedBehind
        } else {
            Cause::WalkedInstead
        };
        engine.counters.add(cause, 1);
        return published;
    }
    snapshot(subject, true)
}

/// Copies the stack; the drainer walks the copy. Without `copy` it walks the live stack later.
#[inline]
fn snapshot(subject: &Subject<'_>, copy: bool) -> Published {
    let engine = subject.engine;
    let reserved = if engine.extra.load(Ordering::Relaxed).is_null() {
        0
    } else {
        CHUNK_BYTES
    };
    let wanted = if copy { subject.stack.wanted } else { 0 };
    let Some(mut slot) = engine.pool.take(wanted.saturating_add(reserved)) else {
        return Published::default();
    };
    note(subject, &mut slot);
    if copy {
        copy_stack(engine, &mut slot, &subject.stack);
    } else {
        // No region covers the stack's addresses: they are read live.
        slot.header().stack_lo = 0;
    }
    call_extra(engine, subject.record, &mut slot, copy);
    call_context(engine, subject.record, &mut slot);
    call_claim(engine, subject.record, &mut slot);
    #[cfg(feature = "experiments")]
    if engine.vantage() == Vantage::Compare {
        call_walk(engine, &mut slot);
    }
    finish(subject, slot)
}

/// Number of frames that fit into a slot of the smallest class.
const FEW_FRAMES: usize = 1024;

/// Walks the stack before the slot is published.
#[inline]
fn walked(
    subject: &Subject<'_>,
    mut walk: impl FnMut(&Engine, OwnedSlot) -> Option<OwnedSlot>,
) -> Published {
    let engine = subject.engine;
    let most = engine.frames_max.load(Ordering::Relaxed) as usize;
    for frames in [FEW_FRAMES.min(most), most] {
        let bytes = frames.saturating_mul(core::mem::size_of::<Frame>());
        let Some(mut slot) = engine.pool.take(bytes) else {
            return Published::default();
        };
        note(subject, &mut slot);
        call_extra(engine, subject.record, &mut slot, false);
        call_context(engine, subject.record, &mut slot);
        call_claim(engine, subject.record, &mut slot);
        let Some(mut slot) = walk(engine, slot) else {
            return Published::default();
        };
        if frames < most && slot.header().walk.is_truncated() {
            engine.counters.add(Cause::WalkedAgain, 1);
            engine.pool.release(slot);
            continue;
        }
        return finish(subject, slot);
    }
    Published::default()
}

#[inline]
fn walk_here(engine: &Engine, mut slot: OwnedSlot) -> Option<OwnedSlot> {
    call_walk(engine, &mut slot);
    Some(slot)
}

/// All data of the thread in a slot, apart from its stack and the additions of hooks.
#[inline]
fn note(subject: &Subject<'_>, slot: &mut OwnedSlot) {
    let (record, moment) = (subject.record, subject.moment);
    let header = slot.header();
    header.time_ns = moment.begin_ns;
    header.cpu_ns = moment.cpu_ns;
    header.interval_ns = subject.interval_ns;
    // The thread's debt goes to its next sample.
    let (carried, carried_ns) = match moment.reason {
        Reason::Allocation | Reason::Wait => (0, 0),
        _ => (
            record.carried.load(Ordering::Relaxed),
            record.carried_ns.load(Ordering::Relaxed),
        ),
    };
    header.weight_ns = moment.weight_ns.saturating_add(carried_ns);
    header.points = moment.points;
    header.carried = carried;
    header.reason = moment.reason;
    header.allocation = moment.allocation;
    header.wait = moment.wait;
    header.request = 0;
    header.record_index = record.index();
    header.record_generation = record.generation();
    header.tid = record.tid();
    header.user = record.user();
    header.regs = subject.regs;
    header.stack_lo = subject.stack.lo;
    header.stack_hi = subject.stack.hi;
    header.stack_end_known = subject.stack.end_known;
    header.left_stack = subject.stack.left;
    header.stack_len = 0;
    header.is_copied_by_kernel = false;
    header.truncated = false;
    header.stack_fault = false;
    header.chunks_len = 0;
    header.logical_id = 0;
    header.cont_entry = 0;
    header.context.active = 0;
    header.logical_name_len = 0;
    header.walk = WalkNote::NONE;
    copy_runtime_state(subject.engine, record, header);
    copy_kernel_chain(subject.engine, record, header);
}

#[inline]
fn finish(subject: &Subject<'_>, mut slot: OwnedSlot) -> Published {
    let engine = subject.engine;
    slot.header().handler_ns = sys::monotonic_ns().saturating_sub(subject.moment.begin_ns);
    let ok = engine.pool.publish(slot);
    if !ok {
        engine.counters.add(Cause::Contention, 1);
    }
    Published { ok, waited_ns: 0 }
}

/// A thread may block SIGSEGV, and the handler inherits its mask: a fault would end the process.
/// The thread's own mask is restored when the handler returns.
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
    /// Another stack of the thread, which it does not use at the moment; empty if the thread has
    /// only one.
    left: (u64, u64),
}

impl StackRange {
    /// No copy.
    const NONE: StackRange = StackRange {
        lo: 0,
        hi: 0,
        wanted: 0,
        end_known: true,
        left: (0, 0),
    };
}

/// From the red zone below the stack pointer to the stack's end, as far as that is known.
#[inline]
fn stack_range(engine: &Engine, record: &ThreadRecord, sp: u64) -> StackRange {
    let lo = sp.saturating_sub(arch::RED_ZONE_BYTES);
    let up_to = |hi: u64| StackRange {
        lo,
        hi,
        wanted: hi.saturating_sub(lo) as usize,
        end_known: true,
        left: (0, 0),
    };
    let believed = |hi: u64, max_bytes: u64| hi > sp && hi.wrapping_sub(sp) <= max_bytes;
    let known_hi = record.stack_hi.load(Ordering::Relaxed);
    let known_lo = record.stack_lo.load(Ordering::Relaxed);
    if sp >= known_lo && believed(known_hi, KNOWN_STACK_MAX_BYTES) {
        return up_to(known_hi);
    }
    // SAFETY: there is an engine, and that is made after the fault handler has been installed.
    let thread_pointer = unsafe { arch::thread_pointer() };
    if known_hi == 0 && believed(thread_pointer, GUESSED_STACK_MAX_BYTES) {
        return up_to(thread_pointer);
    }
    // An alternate stack, a coroutine's, or the main thread's. The stack that the thread has left
    // for it is not copied: it changes as soon as the thread continues.
    let is_main = || record.tid() == engine.main_tid;
    let left = if known_hi > known_lo {
        (known_lo, known_hi)
    } else if thread_pointer == 0 || is_main() {
        (0, 0)
    } else {
        let lo = thread_pointer.saturating_sub(GUESSED_STACK_MAX_BYTES);
        (lo, thread_pointer)
    };
    StackRange {
        lo,
        hi: sp.saturating_add(GUESSED_STACK_MAX_BYTES),
        wanted: UNKNOWN_STACK_BYTES,
        end_known: false,
        left,
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

/// The thread's anchor and the runtime's other words: they change as soon as the thread continues.
#[inline]
fn copy_runtime_state(engine: &Engine, record: &ThreadRecord, header: &mut SlotHeader) {
    let managed_thread = record.managed_thread();
    header.managed_thread = managed_thread;
    header.anchor_valid = false;
    (header.anchor_sp, header.anchor_pc, header.anchor_fp) = (0, 0, 0);
    header.word = 0;
    if managed_thread == 0 {
        return;
    }
    let live = engine.live;
    let field = |offset: Option<u64>| live.word(managed_thread.wrapping_add(offset?)).ok();
    header.word = field(engine.words.word()).unwrap_or(0);
    if let Some(anchor) = anchor(engine, managed_thread) {
        (header.anchor_sp, header.anchor_pc, header.anchor_fp) = anchor;
        header.anchor_valid = true;
    }
}

/// The sp, pc and fp of a managed thread's anchor, if they can be read.
#[inline]
fn anchor(engine: &Engine, managed_thread: u64) -> Option<(u64, u64, u64)> {
    if managed_thread == 0 {
        return None;
    }
    let field = |offset: Option<u64>| {
        let at = managed_thread.wrapping_add(offset?);
        engine.live.word(at).ok()
    };
    let [sp, pc, fp] = engine.words.anchor();
    Some((field(sp)?, field(pc)?, field(fp)?))
}

/// Whether the source of the thread's signals also counts its time in the kernel.
#[inline]
fn may_be_in_kernel(engine: &Engine, record: &ThreadRecord) -> bool {
    record.engine.load(Ordering::Relaxed) != PERF || engine.sees_kernel()
}

#[inline]
fn copy_kernel_chain(engine: &Engine, record: &ThreadRecord, header: &mut SlotHeader) {
    header.kernel_len = 0;
    let ring = record.ring.load(Ordering::Relaxed);
    header.kernel_unseen = ring == 0 && may_be_in_kernel(engine, record);
    // A thread that takes a snapshot of itself was in the kernel only for that.
    if ring == 0 || header.reason != Reason::CpuTime {
        return;
    }
    // SAFETY: set by `attach_ring` to a mapping of the right size; unmapping it needs the record's
    // lock, which this handler holds.
    let ring = unsafe { Ring::at(ring, engine.page_bytes) };
    match ring.newest_kernel_chain(&mut header.kernel) {
        Some(len) => header.kernel_len = len.min(KERNEL_FRAMES_MAX) as u32,
        None => engine.counters.add(Cause::RingSkipped, 1),
    }
}

// Not inlined, so that `handler-graph` sees one indirect call in one place.
#[inline(never)]
fn call_extra(engine: &Engine, record: &ThreadRecord, slot: &mut OwnedSlot, copying: bool) {
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
        copying,
    });
}

// After the other hook, which finds out which logical thread is mounted.
#[inline(never)]
fn call_context(engine: &Engine, record: &ThreadRecord, slot: &mut OwnedSlot) {
    let hook = engine.context.load(Ordering::Acquire);
    if hook.is_null() {
        return;
    }
    // SAFETY: only `set_context` stores here, and it takes an `Extra`.
    let hook: Extra = unsafe { core::mem::transmute(hook) };
    hook(&mut Capture {
        slot,
        pool: &engine.pool,
        record,
        live: engine.live,
        copying: false,
    });
}

// The claim is checked while the thread stands still: it cannot give the object up.
#[inline(never)]
fn call_claim(engine: &Engine, record: &ThreadRecord, slot: &mut OwnedSlot) {
    let hook = engine.claim.load(Ordering::Acquire);
    if hook.is_null() || slot.header().reason != Reason::Owner {
        return;
    }
    // SAFETY: only `set_claim` stores here, and it takes an `Extra`.
    let hook: Extra = unsafe { core::mem::transmute(hook) };
    hook(&mut Capture {
        slot,
        pool: &engine.pool,
        record,
        live: engine.live,
        copying: false,
    });
}

#[inline(never)]
fn call_walk(engine: &Engine, slot: &mut OwnedSlot) {
    let walk = engine.walk.load(Ordering::Acquire);
    if walk.is_null() {
        return;
    }
    // SAFETY: only `set_walk` stores here, and it takes a `WalkHook`.
    let walk: WalkHook = unsafe { core::mem::transmute(walk) };
    let frames_max = engine.frames_max.load(Ordering::Relaxed) as usize;
    walk(&mut WalkTarget::new(slot, engine.live, frames_max));
}

//! Samples without a signal. The kernel copies registers and a part of the stack of a thread into
//! the thread's ring. The draining thread moves them from there into slots.
//!
//! Nothing here runs in a handler. The data that only the thread itself can read at that moment is
//! missing: the anchor, the mounted logical thread, the context. [`super::rings`] decides which
//! threads get a ring. The weight of a sample is the CPU time since the one before, as the event
//! has counted it, so new periods may be drawn. The thread's own clock shows how much the event
//! overcounts, each time that samples are taken.

use crate::arch::{PERF_REGISTERS, Registers};
use crate::config::EngineKind;
use crate::counters::Cause;
use crate::engine::Engine;
use crate::perf_client;
use crate::plan::Plan;
use crate::record::{Guard, KERNEL, NO_ENGINE, ThreadRecord};
use crate::room::GUESSED_STACK_MAX_BYTES;
use crate::slots::{Allocation, KERNEL_FRAMES_MAX, OwnedSlot, Reason, SlotHeader, Wait, WalkNote};
use crate::sys::{self, Errno};
use core::sync::atomic::{AtomicU64, Ordering};
use perf_event_open_sys::bindings::{
    self as bindings, PERF_CONTEXT_MAX, PERF_COUNT_SW_CPU_CLOCK, PERF_RECORD_LOST,
    PERF_RECORD_SAMPLE, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_READ, PERF_SAMPLE_REGS_USER,
    PERF_SAMPLE_STACK_USER, PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_TYPE_SOFTWARE, perf_event_attr,
    perf_event_mmap_page,
};

/// Bytes copied of stacks that are at most two thirds as deep: copying fewer bytes costs less, and
/// a smaller ring is sufficient.
pub(super) const FEW_BYTES: u32 = 16 << 10;
/// Room for 30 samples and more, whose stacks are copied up to 16 KiB, ...
const SMALL_BYTES: usize = 512 << 10;
/// ... or up to 60: the kernel reserves the requested size. Both are whole pages of any size.
const LARGE_BYTES: usize = 2 << 20;

/// Bytes of records for a thread, which depend on how much of its stack is copied; a power of two.
fn data_bytes(record: &ThreadRecord) -> usize {
    match record.kernel_bytes.load(Ordering::Relaxed) {
        1..=FEW_BYTES => SMALL_BYTES,
        _ => LARGE_BYTES,
    }
}

const PERIOD_MIN_NS: u64 = 10_000;
/// Longer than a thread runs: its plan has no points, as no signals are sent for them.
const NEVER_NS: u64 = 1 << 56;

/// Opens the thread's event with its ring. `now_ns` of its CPU time are used, which samples cover
/// or which it carries. (Some 10 us until the event begins are not counted before it is closed.)
pub(super) fn open(engine: &Engine, record: &ThreadRecord, now_ns: u64) -> Result<(), Errno> {
    let mut attr = perf_event_attr {
        size: size_of::<perf_event_attr>() as u32,
        type_: PERF_TYPE_SOFTWARE,
        config: u64::from(PERF_COUNT_SW_CPU_CLOCK),
        sample_type: u64::from(
            PERF_SAMPLE_TID
                | PERF_SAMPLE_TIME
                | PERF_SAMPLE_READ
                | PERF_SAMPLE_CALLCHAIN
                | PERF_SAMPLE_REGS_USER
                | PERF_SAMPLE_STACK_USER,
        ),
        sample_regs_user: PERF_REGISTERS.iter().fold(0, |mask, bit| mask | 1 << bit),
        sample_stack_user: match record.kernel_bytes.load(Ordering::Relaxed) {
            0 => engine.kernel_copies(),
            bytes => bytes,
        },
        sample_max_stack: KERNEL_FRAMES_MAX as u16,
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    // The first one ends anywhere in the first interval: short threads have their chance, too.
    let interval_ns = engine.interval_ns.load(Ordering::Relaxed);
    let longest_ns = next_period_ns(engine, record).saturating_sub(interval_ns / 2);
    attr.__bindgen_anon_1.sample_period = longest_ns.max(PERIOD_MIN_NS);
    attr.__bindgen_anon_2.wakeup_watermark = u32::MAX;
    attr.set_watermark(1);
    attr.set_use_clockid(1);
    attr.set_exclude_hv(1);
    attr.set_exclude_callchain_user(1);
    attr.set_exclude_kernel(u64::from(engine.kind != EngineKind::Perf { kernel: true }));
    let fd = perf_client::perf_event_open(&mut attr, record.tid())?;
    match sys::map_fd(fd, data_bytes(record).wrapping_add(engine.page_bytes)) {
        Ok(ring) => {
            record.kernel_fd.store(fd, Ordering::Relaxed);
            record
                .kernel_data_bytes
                .store(data_bytes(record), Ordering::Relaxed);
            record.kernel_ring.store(ring as usize, Ordering::Relaxed);
            record.kernel_told_ns.store(0, Ordering::Relaxed);
            record.kernel_ahead_ns.store(0, Ordering::Relaxed);
            record.kernel_base_ns.store(now_ns, Ordering::Relaxed);
            record
                .kernel_last_ns
                .store(sys::monotonic_ns(), Ordering::Relaxed);
            record.counted_ns.store(now_ns, Ordering::Relaxed);
            record.engine.store(KERNEL, Ordering::Release);
            Ok(())
        }
        Err(error) => {
            sys::close(fd);
            Err(error)
        }
    }
}

/// A plan whose points are never reached.
pub(super) fn plan(now_ns: u64) -> Plan {
    Plan::new(1, NEVER_NS, now_ns.saturating_add(NEVER_NS))
}

/// The ring's control page shows the thread's turns as well as that of an event that signals.
pub(super) fn show(record: &ThreadRecord) {
    let ring = record.kernel_ring.load(Ordering::Relaxed);
    record.page.store(ring, Ordering::Release);
}

/// Closes the thread's event. The ring's content is taken before, and the thread carries the CPU
/// time used since its last sample. Returns the CPU time that samples and carried weight cover;
/// `None`: the thread had no event.
pub(super) fn close(engine: &Engine, guard: &Guard<'_>) -> Option<u64> {
    let record = guard.record();
    let fd = record.kernel_fd.swap(-1, Ordering::Relaxed);
    if fd < 0 {
        return None;
    }
    let _ = sys::ioctl_value(fd, u64::from(bindings::DISABLE), 0);
    let used_here_ns = used_ns(record);
    let count_ns = sys::read_u64(fd).unwrap_or(0);
    pump(engine, guard, false);
    // The event is the only clock left of a thread that has ended.
    let used_ns = used_here_ns.unwrap_or(own_ns(record, count_ns));
    let told_ns = record.kernel_told_ns.load(Ordering::Relaxed);
    let left_ns = used_ns.saturating_sub(told_ns);
    record.carried_ns.fetch_add(left_ns, Ordering::Relaxed);
    record.engine.store(NO_ENGINE, Ordering::Relaxed);
    record.page.store(0, Ordering::Relaxed);
    let ring = record.kernel_ring.swap(0, Ordering::Relaxed);
    let data_bytes = record.kernel_data_bytes.load(Ordering::Relaxed);
    // SAFETY: mapped by `open` with this length; its records are read under the record's lock only,
    // which we hold, and its control page by loads that may fault.
    unsafe { sys::unmap(ring as *mut u8, data_bytes.wrapping_add(engine.page_bytes)) };
    sys::close(fd);
    engine.rings.give_back(record.index());
    let base_ns = record.kernel_base_ns.load(Ordering::Relaxed);
    Some(base_ns.saturating_add(told_ns.max(used_ns)))
}

/// CPU time used since the thread's event was opened, by the thread's own clock; `None`: it has
/// ended.
fn used_ns(record: &ThreadRecord) -> Option<u64> {
    let base_ns = record.kernel_base_ns.load(Ordering::Relaxed);
    let now_ns = sys::cpu_ns_of(record.tid()).ok()?;
    Some(now_ns.saturating_sub(base_ns))
}

/// The part of an event's count that is the thread's own time, as far as is known.
fn own_ns(record: &ThreadRecord, count_ns: u64) -> u64 {
    let ahead_ns = record.kernel_ahead_ns.load(Ordering::Relaxed);
    count_ns.saturating_add_signed(ahead_ns.saturating_neg())
}

/// How far an event is ahead of its thread's clock, or behind it if negative. The thread's clock
/// stands still while a host has taken the processor, but the event's continues. At each switch
/// the event begins a little later than the clock. `before_ns` is the estimate so far. The event
/// had counted `count_ns` at a moment, and the thread has used `used_ns` now, `since_ns` later. It
/// may have run for all or for no part of that time.
fn ahead_ns(before_ns: i64, count_ns: u64, used_ns: u64, since_ns: u64) -> i64 {
    let least_ns = count_ns.cast_signed().saturating_sub(used_ns.cast_signed());
    let most_ns = least_ns.saturating_add(since_ns.cast_signed().max(0));
    before_ns.clamp(least_ns, most_ns)
}

/// Notes that from the last sample of a ring.
fn note_lead(record: &ThreadRecord, last: &Sample) {
    let Some(used_ns) = used_ns(record) else {
        return;
    };
    // Read after the thread's clock, so that it is no less than the elapsed time.
    let since_ns = sys::monotonic_ns().saturating_sub(last.time_ns);
    let before_ns = record.kernel_ahead_ns.load(Ordering::Relaxed);
    let ahead_ns = ahead_ns(before_ns, last.count_ns, used_ns, since_ns);
    record.kernel_ahead_ns.store(ahead_ns, Ordering::Relaxed);
}

/// The samples of a ring.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pumped {
    /// A stack was deeper than the copy, or was not the thread's own.
    pub is_cut: bool,
}

/// Takes the samples in the thread's ring, and then gives its event another period, if `goes_on`.
pub(super) fn pump(engine: &Engine, guard: &Guard<'_>, goes_on: bool) -> Pumped {
    let record = guard.record();
    let mut pumped = Pumped::default();
    let addr = record.kernel_ring.load(Ordering::Relaxed);
    if addr == 0 {
        return pumped;
    }
    // SAFETY: mapped by `open` with a page and so many bytes, which it has noted with the address
    // under the record's lock; unmapped under that lock only, which we hold.
    let ring = unsafe {
        let data_bytes = record.kernel_data_bytes.load(Ordering::Relaxed);
        Ring::at(addr, engine.page_bytes, data_bytes)
    };
    let head = ring.head();
    let tail = ring.tail().load(Ordering::Relaxed);
    if let Some(last) = last_sample(&ring, tail, head) {
        note_lead(record, &last);
    }
    let mut samples: u32 = 0;
    for (kind, at) in ring.records(tail, head) {
        match kind {
            PERF_RECORD_SAMPLE => {
                samples = samples.wrapping_add(1);
                pumped.is_cut |= take(engine, record, &ring, at);
            }
            PERF_RECORD_LOST => {
                let lost = ring.word(at.wrapping_add(16));
                record.no_slot.fetch_add(lost, Ordering::Relaxed);
                engine.counters.add(Cause::NoSlot, lost);
            }
            _ => {}
        }
    }
    ring.tail().store(head, Ordering::Release);
    let fd = record.kernel_fd.load(Ordering::Relaxed);
    if samples > 0 && goes_on && fd >= 0 {
        // The elapsed part of the current period is lost to the period, but not to the sample's
        // weight.
        let _ = sys::ioctl_u64(
            fd,
            u64::from(bindings::PERIOD),
            next_period_ns(engine, record),
        );
    }
    pumped
}

fn last_sample(ring: &Ring, tail: u64, head: u64) -> Option<Sample> {
    let samples = ring
        .records(tail, head)
        .filter(|(kind, _)| *kind == PERF_RECORD_SAMPLE);
    let (_, at) = samples.last()?;
    Some(Sample::read(ring, at))
}

/// Half an interval to one and a half.
fn next_period_ns(engine: &Engine, record: &ThreadRecord) -> u64 {
    let interval_ns = engine.interval_ns.load(Ordering::Relaxed);
    let mut x = record.seed.load(Ordering::Relaxed) | 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    record.seed.store(x, Ordering::Relaxed);
    let more = (x >> 16).checked_rem(interval_ns.max(1)).unwrap_or(0);
    (interval_ns / 2).saturating_add(more).max(PERIOD_MIN_NS)
}

/// A record of the ring, as the kernel has written it.
struct Sample {
    time_ns: u64,
    /// The event's count since it was opened.
    count_ns: u64,
    /// Position of the first entry of the kernel's call chain, and how many there are.
    chain: (u64, u64),
    /// In the order of [`PERF_REGISTERS`]; `None`: the thread has no user mode any more.
    regs: Option<[u64; PERF_REGISTERS.len()]>,
    /// Position of the stack's copy, and how many bytes of it the kernel could read.
    stack: (u64, u64),
}

impl Sample {
    /// Reads the one at this position.
    fn read(ring: &Ring, start: u64) -> Sample {
        // Header, ids, time, count; then the chain: its length, and its words.
        let at = |index: u64| start.wrapping_add(index.wrapping_mul(8));
        let word = |index: u64| ring.word(at(index));
        let entries = word(4);
        let mut next = entries.wrapping_add(5);
        let has_regs = word(next) != 0;
        let mut regs = [0; PERF_REGISTERS.len()];
        if has_regs {
            for reg in &mut regs {
                next = next.wrapping_add(1);
                *reg = word(next);
            }
        }
        let asked = word(next.wrapping_add(1));
        let data = at(next.wrapping_add(2));
        let filled = match asked {
            0 => 0,
            _ => ring.word(data.wrapping_add(asked)).min(asked),
        };
        Sample {
            time_ns: word(2),
            count_ns: word(3),
            chain: (at(5), entries),
            regs: has_regs.then_some(regs),
            stack: (data, filled),
        }
    }
}

/// A stack of which the kernel has copied a part.
struct Copied {
    sp: u64,
    /// Bounds of the thread's own one.
    own: (u64, u64),
    /// Whether that is the one.
    is_own: bool,
    len: u64,
    /// Whether there is more of it.
    is_cut: bool,
}

impl Copied {
    fn of(record: &ThreadRecord, sp: u64, filled: u64) -> Copied {
        let (lo, hi) = match record.stack_high() {
            0 => (0, record.kernel_stack_hi.load(Ordering::Relaxed)),
            hi => (record.stack_low(), hi),
        };
        // Else it is on an alternate stack, say, whose end is not known.
        let is_own = sp >= lo && sp < hi;
        let most = if is_own {
            hi.wrapping_sub(sp)
        } else {
            u64::MAX
        };
        let len = filled.min(most);
        Copied {
            sp,
            own: (lo.max(hi.saturating_sub(GUESSED_STACK_MAX_BYTES)), hi),
            is_own,
            len,
            is_cut: !is_own || len < most,
        }
    }

    fn describe(&self, header: &mut SlotHeader) {
        header.stack_end_known = self.is_own;
        header.stack_lo = self.sp.wrapping_sub(8);
        header.stack_len = (self.len as u32).wrapping_add(8);
        header.truncated = self.is_own && self.is_cut;
        (header.stack_hi, header.left_stack) = match self.is_own {
            true => (self.own.1, (0, 0)),
            false => (self.sp.saturating_add(GUESSED_STACK_MAX_BYTES), self.own),
        };
    }
}

/// Makes a snapshot of one record of the ring. Returns whether the stack is deeper than the copy.
fn take(engine: &Engine, record: &ThreadRecord, ring: &Ring, start: u64) -> bool {
    let sample = Sample::read(ring, start);
    record
        .kernel_last_ns
        .store(sample.time_ns, Ordering::Relaxed);
    let before_ns = record.kernel_told_ns.load(Ordering::Relaxed);
    let count_ns = own_ns(record, sample.count_ns);
    let used_ns = count_ns.saturating_sub(before_ns);
    record
        .kernel_told_ns
        .store(count_ns.max(before_ns), Ordering::Relaxed);
    record.carried.store(0, Ordering::Relaxed);
    let carried_ns = record.carried_ns.swap(0, Ordering::Relaxed);
    let weight_ns = used_ns.saturating_add(carried_ns);
    let carry = |cause| {
        record.carried_ns.store(weight_ns, Ordering::Relaxed);
        engine.counters.add(cause, 1);
        false
    };
    let Some(regs) = sample.regs else {
        return carry(Cause::Early);
    };
    let regs = Registers::of_perf(regs);
    let stack = Copied::of(record, regs.sp(), sample.stack.1);
    if weight_ns == 0 {
        return stack.is_cut; // its time is that of the last sample, or the host's
    }
    let len = stack.len as usize;
    let Some(mut slot) = engine.pool.take(len.wrapping_add(8)) else {
        record.no_slot.fetch_add(1, Ordering::Relaxed);
        return carry(Cause::NoSlot);
    };
    describe(engine, record, &mut slot, &sample);
    let header = slot.header();
    header.regs = regs;
    header.weight_ns = weight_ns;
    stack.describe(header);
    if header.truncated {
        engine.counters.add(Cause::Truncated, 1);
    }
    kernel_frames(ring, &mut slot, sample.chain);
    copy(ring, &mut slot, regs.fp(), sample.stack.0, len);
    if !engine.pool.publish(slot) {
        return carry(Cause::Contention);
    }
    record.samples.fetch_add(1, Ordering::Relaxed);
    record.points.fetch_add(1, Ordering::Relaxed);
    record.weight_ns.fetch_add(weight_ns, Ordering::Relaxed);
    let base_ns = record.kernel_base_ns.load(Ordering::Relaxed);
    let counted_ns = base_ns.saturating_add(count_ns);
    record.counted_ns.store(counted_ns, Ordering::Relaxed);
    engine.counters.add(Cause::Sample, 1);
    engine.counters.add(Cause::Points, 1);
    engine.counters.add(Cause::Unsignalled, 1);
    stack.is_cut
}

/// Sets thread and time, and marks the data that only the thread itself can read as unknown.
fn describe(engine: &Engine, record: &ThreadRecord, slot: &mut OwnedSlot, sample: &Sample) {
    let header = slot.header();
    header.time_ns = sample.time_ns;
    let base_ns = record.kernel_base_ns.load(Ordering::Relaxed);
    header.cpu_ns = base_ns.saturating_add(own_ns(record, sample.count_ns));
    header.is_copied_by_kernel = true;
    header.kernel_unseen = false;
    header.request = 0;
    header.interval_ns = engine.interval_ns.load(Ordering::Relaxed);
    header.points = 1;
    header.carried = 0;
    header.reason = Reason::CpuTime;
    header.allocation = Allocation::default();
    header.wait = Wait::default();
    header.record_index = record.index();
    header.record_generation = record.generation();
    header.tid = record.tid();
    header.user = record.user();
    header.managed_thread = record.managed_thread();
    header.stack_fault = false;
    header.chunks_len = 0;
    header.logical_id = 0;
    header.logical_name_len = 0;
    header.cont_entry = 0;
    header.context.active = 0;
    header.walk = WalkNote::NONE;
    header.anchor_valid = false;
    (header.anchor_sp, header.anchor_pc, header.anchor_fp) = (0, 0, 0);
    header.word = 0;
    header.handler_ns = 0;
}

/// The kernel's frames of a chain, without the marks between them.
fn kernel_frames(ring: &Ring, slot: &mut OwnedSlot, (start, entries): (u64, u64)) {
    let header = slot.header();
    header.kernel_len = 0;
    for index in 0..entries.min(KERNEL_FRAMES_MAX as u64) {
        let address = ring.word(start.wrapping_add(index.wrapping_mul(8)));
        let place = header.kernel.get_mut(header.kernel_len as usize);
        if let Some(place) = place.filter(|_| address < PERF_CONTEXT_MAX) {
            *place = address;
            header.kernel_len = header.kernel_len.wrapping_add(1);
        }
    }
}

/// Copies the stack into the slot, behind the word below it. The kernel copies nothing there, but
/// rules for function epilogues look there for the caller's frame pointer, which by then is in the
/// register.
fn copy(ring: &Ring, slot: &mut OwnedSlot, below: u64, from: u64, len: usize) {
    let room = slot.capacity().saturating_sub(8);
    let len = len.min(room);
    let to = slot.data();
    // SAFETY: the slot is ours alone, holds at least 8 bytes of data, and `len` more.
    unsafe {
        to.cast::<u64>().write_unaligned(below);
        ring.copy(from, to.wrapping_add(8), len);
    }
}

/// A mapped ring.
struct Ring {
    control: *mut perf_event_mmap_page,
    data: *const u8,
    data_bytes: usize,
}

impl Ring {
    /// # Safety
    /// `addr` must be a live perf mapping of a page and `data_bytes`, a power of two, read by this
    /// thread only.
    unsafe fn at(addr: usize, page_bytes: usize, data_bytes: usize) -> Ring {
        Ring {
            control: addr as *mut perf_event_mmap_page,
            data: addr.wrapping_add(page_bytes) as *const u8,
            data_bytes,
        }
    }

    fn head(&self) -> u64 {
        // SAFETY: the control page is mapped (promise of `at`); the kernel writes the word, so it
        // is read as an atomic, and acquire makes the records before it visible.
        let head = unsafe { AtomicU64::from_ptr(&raw mut (*self.control).data_head) };
        head.load(Ordering::Acquire)
    }

    fn tail(&self) -> &AtomicU64 {
        // SAFETY: as for `head`; only we write it.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.control).data_tail) }
    }

    /// The kind of each record from `tail` to `head`, and where it is.
    fn records(&self, tail: u64, head: u64) -> impl Iterator<Item = (u32, u64)> {
        let mut next = tail;
        core::iter::from_fn(move || {
            let at = next;
            let header = (at < head).then(|| self.word(at))?;
            let size = header >> 48;
            next = at.wrapping_add(size);
            (size >= 8).then_some((header as u32, at))
        })
    }

    /// Words of records are aligned, and the ring's size is a power of two.
    fn word(&self, position: u64) -> u64 {
        let offset = (position as usize) & self.data_bytes.wrapping_sub(8);
        // SAFETY: the masked offset is a multiple of 8 below `data_bytes`, hence inside the data.
        unsafe { self.data.wrapping_add(offset).cast::<u64>().read_volatile() }
    }

    /// # Safety
    /// `to` must be valid for writes of `len` bytes, which the kernel must have written from
    /// `position` on.
    unsafe fn copy(&self, position: u64, to: *mut u8, len: usize) {
        let offset = (position as usize) & self.data_bytes.wrapping_sub(1);
        let first = len.min(self.data_bytes.wrapping_sub(offset));
        let rest = len.wrapping_sub(first);
        // SAFETY: both pieces are within the data, which is no part of a slot.
        unsafe {
            core::ptr::copy_nonoverlapping(self.data.wrapping_add(offset), to, first);
            core::ptr::copy_nonoverlapping(self.data, to.wrapping_add(first), rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Registration, Slab};
    use std::vec;
    use std::vec::Vec;

    const PAGE: usize = 64 << 10;

    /// A ring with these words from a position on; the page before it is zeroes.
    fn ring(start: u64, words: &[u64]) -> Vec<u64> {
        let mut ring = vec![0; (SMALL_BYTES + PAGE) / 8];
        for (index, word) in words.iter().enumerate() {
            let at = (start as usize + index * 8) % SMALL_BYTES;
            ring[(PAGE + at) / 8] = *word;
        }
        ring
    }

    #[test]
    fn samples_are_read_wherever_the_ring_ends() {
        // Ids, time, count; two kernel frames behind their mark; registers; 16 of 24 bytes.
        let mark = -128i64 as u64;
        let mut words = vec![9 | 160 << 48, 7 << 32 | 5, 1000, 500, 3, mark, 0xa, 0xb, 2];
        let regs = PERF_REGISTERS.map(u64::from);
        words.extend(regs);
        words.extend([24, 0x11, 0x22, 0x33, 16]);
        for before_end in (0..=words.len() as u64).map(|words| words * 8) {
            let start = SMALL_BYTES as u64 - before_end;
            let memory = ring(start, &words);
            // SAFETY: as large as a ring, and never written.
            let ring = unsafe { Ring::at(memory.as_ptr() as usize, PAGE, SMALL_BYTES) };
            let sample = Sample::read(&ring, start);
            assert_eq!((sample.time_ns, sample.count_ns), (1000, 500));
            assert_eq!(sample.regs, Some(regs));
            assert_eq!(sample.chain.1, 3);
            assert_eq!(ring.word(sample.chain.0), mark);
            assert_eq!(sample.stack.1, 16);
            let mut copied = [0u64; 2];
            // SAFETY: 16 bytes of a local array, and 24 of the stack are in the ring.
            unsafe { ring.copy(sample.stack.0, copied.as_mut_ptr().cast(), 16) };
            assert_eq!(copied, [0x11, 0x22]);
        }
    }

    #[test]
    fn time_taken_by_the_host_is_not_reported() {
        let mut ahead = 0;
        // The host takes 0, 300, 0, and 50 of each 1000; the clock is read 0 to 200 after the
        // sample.
        let (mut count, mut used) = (0u64, 0);
        for (host, late) in [(0, 0), (300, 200), (0, 0), (50, 10)] {
            count += 1000;
            used += 1000 - host;
            ahead = ahead_ns(ahead, count, used + late, late);
            let own = count.saturating_add_signed(-ahead);
            assert!(own >= used && own <= used + late, "{own}, {used}");
        }
        assert_eq!(ahead, 340);
        assert_eq!(ahead_ns(ahead, count, used, 0), 350, "and it catches up");
    }

    #[test]
    fn an_event_that_falls_behind_is_followed() {
        let mut ahead = 0;
        // It loses 3 of each 1000. The thread has run all the time until the clock is read, or
        // not.
        for round in 1..1000u64 {
            let (count, used) = (round * 997, round * 1000);
            let ran = if round % 2 == 0 { 100 } else { 0 };
            ahead = ahead_ns(ahead, count, used + ran, 100);
            let own = count.saturating_add_signed(-ahead);
            assert!(own.abs_diff(used) <= 100, "{own}, {used}");
        }
        assert!(ahead < -2800, "{ahead}");
        assert_eq!(
            ahead_ns(0, 0, u64::MAX / 2, u64::MAX),
            -(i64::MAX),
            "no overflow"
        );
    }

    #[test]
    fn the_last_sample_says_how_far_the_event_is() {
        let sample = |count| [9 | 56 << 48, 7 << 32 | 5, 1000, count, 0, 0, 0];
        let lost = [2 | 24 << 48, 0, 7];
        let mut words = vec![];
        words.extend(sample(500));
        words.extend(sample(900));
        words.extend(lost);
        let start = SMALL_BYTES as u64 - 64;
        let memory = ring(start, &words);
        // SAFETY: as large as a ring, and never written.
        let ring = unsafe { Ring::at(memory.as_ptr() as usize, PAGE, SMALL_BYTES) };
        let head = start + 8 * words.len() as u64;
        let kinds: Vec<_> = ring.records(start, head).map(|it| it.0).collect();
        assert_eq!(kinds, [9, 9, 2]);
        assert_eq!(last_sample(&ring, start, head).unwrap().count_ns, 900);
        assert!(last_sample(&ring, head, head).is_none());
        assert_eq!(ring.records(start, head + 8).count(), 3, "a size of 0");
    }

    #[test]
    fn a_stack_is_whole_up_to_its_end_and_another_one_never() {
        static SLAB: Slab = Slab::new();
        let record = SLAB.begin(&Registration {
            stack_hi: 0x20_0000,
            ..Registration::default()
        });
        let record = record.unwrap();
        let of = |sp, filled| {
            let copied = Copied::of(record, sp, filled);
            (copied.is_own, copied.len, copied.is_cut)
        };
        assert_eq!(of(0x1f_f000, 0x4000), (true, 0x1000, false), "to its end");
        assert_eq!(of(0x1f_0000, 0x4000), (true, 0x4000, true), "it is deeper");
        assert_eq!(
            of(0x20_1000, 0x4000),
            (false, 0x4000, true),
            "an alternate one"
        );
        // SAFETY: numbers, and enums of which 0 is one: so slots begin.
        let mut header: SlotHeader = unsafe { core::mem::zeroed() };
        Copied::of(record, 0x20_1000, 0x4000).describe(&mut header);
        assert!(!header.stack_end_known && !header.truncated);
        assert_eq!(header.left_stack.1, 0x20_0000);
        assert!(
            header.stack_hi > 0x20_1000 + 0x4000,
            "no more of it is read"
        );
        Copied::of(record, 0x1f_0000, 0x4000).describe(&mut header);
        assert!(header.stack_end_known && header.truncated);
        assert_eq!((header.stack_hi, header.left_stack), (0x20_0000, (0, 0)));
        assert_eq!((header.stack_lo, header.stack_len), (0x1e_fff8, 0x4008));
    }

    #[test]
    fn threads_without_user_mode_have_no_registers() {
        let memory = ring(0, &[9 | 56 << 48, 7 << 32 | 5, 1000, 500, 0, 0, 0]);
        // SAFETY: as above.
        let ring = unsafe { Ring::at(memory.as_ptr() as usize, PAGE, SMALL_BYTES) };
        let sample = Sample::read(&ring, 0);
        assert_eq!((sample.regs, sample.stack.1), (None, 0));
    }
}

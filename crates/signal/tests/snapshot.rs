//! A snapshot shows the thread as it was: stack, anchor, thread state, heap chunk, names. Later
//! changes are not visible, and memory that was not copied cannot be read.

mod common;

use common::{burn, burn_until};
use dwell_signal::slots::Reason;
use dwell_signal::{Capture, ClassSpec, Config, Engine, Registration, Slot, sys};
use dwell_walker::Memory;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const INTERVAL_NS: u64 = 1_000_000;
const NAME: &str = "a logical thread with a name of more than ninety-six bytes, \
                    of which only the first ninety-six are kept";

static CHUNK: [u64; 64] = [0x00c0_ffee; 64];
/// Does not fit into the slot that holds the stack.
static LARGE: [u8; 40_000] = [0x5a; 40_000];

extern "C" fn hook(capture: &mut Capture<'_>) {
    capture.set_logical_id(4711);
    capture.copy_logical_name(NAME.as_ptr() as u64, NAME.len());
    capture.copy_chunk(CHUNK.as_ptr() as u64, size_of_val(&CHUNK) as u32);
    capture.copy_chunk(LARGE.as_ptr() as u64, size_of_val(&LARGE) as u32);
}

/// A structure like a runtime's thread: a word at 8, anchor at 16, 24 and 40.
#[repr(C)]
struct FakeThread {
    words: [AtomicU64; 6],
}

impl FakeThread {
    fn set(&self, value: u64) {
        for (number, word) in (0..).zip(&self.words) {
            word.store(value + number, Ordering::Relaxed);
        }
    }
}

/// The addresses of the sampled thread's data before it was sampled.
struct Marks {
    on_stack: u64,
    thread: u64,
}

/// Runs a thread with `registration` that has 0x1111... on its stack while it is sampled, and
/// another value afterwards. Shows its snapshots to `check` while it still lives.
fn sample(
    engine: &'static Engine,
    mut registration: Registration,
    check: impl Fn(&Slot<'_>, &Marks) + Send + 'static,
) {
    let worker = thread::Builder::new().stack_size(512 << 10);
    let worker = worker.spawn(move || {
        let managed_thread = FakeThread {
            words: Default::default(),
        };
        managed_thread.set(0x5000);
        let mut on_stack = [0x1111_1111_1111_1111u64; 512];
        let marks = Marks {
            on_stack: std::hint::black_box(&raw mut on_stack) as u64,
            thread: &raw const managed_thread as u64,
        };
        registration.tid = sys::gettid();
        registration.managed_thread = marks.thread;
        registration.newborn = true;
        common::leave_signal_stack();
        let record = engine.register(&registration).unwrap();
        burn(4 * INTERVAL_NS);
        engine.sample_here(record, Reason::ThreadEnd);
        assert!(engine.end(record));
        std::hint::black_box(&mut on_stack).fill(0x2222_2222_2222_2222);
        managed_thread.set(0x6000);
        let mut weight_ns = 0;
        engine.drain(|slot| {
            weight_ns += slot.weight_ns();
            check(slot, &marks);
        });
        let longest_ns = common::longest_window_ns(INTERVAL_NS);
        assert!(weight_ns + longest_ns > 4 * INTERVAL_NS, "four intervals");
        std::hint::black_box(&on_stack);
    });
    worker.unwrap().join().unwrap();
}

fn check_runtime_state(slot: &Slot<'_>, marks: &Marks) {
    let header = slot.header();
    assert_eq!(header.managed_thread, marks.thread);
    assert_eq!(header.word, 0x5001);
    assert!(header.anchor_valid);
    let anchor = (header.anchor_sp, header.anchor_pc, header.anchor_fp);
    assert_eq!(anchor, (0x5002, 0x5003, 0x5005));
}

fn check_extra(slot: &Slot<'_>) {
    assert_eq!(slot.header().logical_id, 4711);
    assert_eq!(slot.logical_name(), &NAME.as_bytes()[..96]);
    let [small, large] = *slot.chunks().collect::<Vec<_>>() else {
        panic!("two chunks were copied");
    };
    assert_eq!(small.start, CHUNK.as_ptr() as u64);
    assert_eq!(small.bytes, [0xee, 0xff, 0xc0, 0, 0, 0, 0, 0].repeat(64));
    assert_eq!(large.start, LARGE.as_ptr() as u64);
    assert_eq!(large.bytes, LARGE);
    assert!(!slot.header().truncated);
}

fn check_identity(engine: &'static Engine, slot: &Slot<'_>) {
    let header = slot.header();
    assert_eq!(header.user, 99);
    assert_eq!(header.tid, sys::gettid());
    assert_eq!(header.interval_ns, INTERVAL_NS);
    assert!(header.handler_ns > 0);
    assert!(header.time_ns <= sys::monotonic_ns());
    assert!(header.cpu_ns <= sys::own_cpu_ns());
    let red_zone_bytes = if cfg!(target_arch = "x86_64") { 128 } else { 0 };
    assert_eq!(header.stack_lo, header.regs.sp() - red_zone_bytes);
    let record = engine.record_of(slot).unwrap();
    assert_eq!(record.tid(), header.tid);
}

/// The end of the calling thread's stack.
fn stack_end() -> u64 {
    // SAFETY: plain structures of this function; the attributes are destroyed after use.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        assert_eq!(
            libc::pthread_getattr_np(libc::pthread_self(), &mut attributes),
            0
        );
        let (mut base, mut size) = (std::ptr::null_mut(), 0);
        assert_eq!(
            libc::pthread_attr_getstack(&attributes, &mut base, &mut size),
            0
        );
        libc::pthread_attr_destroy(&mut attributes);
        base as u64 + size as u64
    }
}

#[test]
fn shows_the_thread_as_it_was() {
    let classes = [
        ClassSpec {
            capacity_bytes: 1 << 10,
            count: 4,
        },
        ClassSpec {
            capacity_bytes: 24 << 10,
            count: 20,
        },
        ClassSpec {
            capacity_bytes: 64 << 10,
            count: 20,
        },
    ];
    let engine = dwell_signal::init(&Config {
        classes: &classes,
        ..Config::default()
    })
    .unwrap();
    engine.set_extra(hook);
    engine.words().set_word(8);
    engine.words().set_anchor(16, 24, 40);
    engine.start(INTERVAL_NS);
    let registration = Registration {
        user: 99,
        ..Registration::default()
    };
    // The end is found by the thread pointer.
    sample(engine, registration, |slot, marks| {
        check_identity(engine, slot);
        check_runtime_state(slot, marks);
        check_extra(slot);
        let header = slot.header();
        assert!(header.stack_end_known && !header.truncated && !header.stack_fault);
        let end = stack_end();
        assert!(header.stack_hi <= end && header.stack_hi > marks.on_stack + 4096);
        let memory = slot.memory(engine.live());
        assert_eq!(memory.word(marks.on_stack), Ok(0x1111_1111_1111_1111));
        assert_eq!(
            memory.word(marks.on_stack + 4088),
            Ok(0x1111_1111_1111_1111)
        );
        assert_eq!(
            engine.live().word(marks.on_stack),
            Ok(0x2222_2222_2222_2222)
        );
        assert_eq!(memory.word(CHUNK.as_ptr() as u64), Ok(0x00c0_ffee));
        assert!(memory.word(NAME.as_ptr() as u64).is_ok(), "the live rest");
    });
    deep(engine, registration);
    elsewhere(engine, registration);
    assert!(engine.stop());
}

/// Readable memory that is on no stack and not shortly above one. If a stack's end is not known,
/// memory above it is copied, or treated as a part of the stack that was not copied.
struct FarFromStacks {
    begin: *mut libc::c_void,
}

impl FarFromStacks {
    /// More than the plausible size of a stack without a known end.
    const GAP_BYTES: usize = 32 << 20;
    const BYTES: usize = 64 << 10;
    /// Readable, too, behind the requested range.
    const REST_BYTES: usize = 4096;

    fn new() -> Self {
        let bytes = Self::GAP_BYTES + Self::BYTES + Self::REST_BYTES;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping that no other code knows; its last part is made readable.
        let begin = unsafe {
            let begin = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(begin, libc::MAP_FAILED);
            let readable = begin.byte_add(Self::GAP_BYTES);
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let len = Self::BYTES + Self::REST_BYTES;
            assert_eq!(libc::mprotect(readable, len, protection), 0);
            begin
        };
        Self { begin }
    }

    fn range(&self) -> (u64, u64) {
        let lo = self.begin as u64 + Self::GAP_BYTES as u64;
        (lo, lo + Self::BYTES as u64)
    }
}

impl Drop for FarFromStacks {
    fn drop(&mut self) {
        let bytes = Self::GAP_BYTES + Self::BYTES + Self::REST_BYTES;
        // SAFETY: the mapping of `new`; the threads that had its addresses have ended.
        assert_eq!(unsafe { libc::munmap(self.begin, bytes) }, 0);
    }
}

/// A thread that is on another stack than its registered one, as on an alternate stack. The
/// contents of the stack it has left belong to no known moment, so they cannot be read.
fn elsewhere(engine: &'static Engine, registration: Registration) {
    let left = FarFromStacks::new();
    let (lo, hi) = left.range();
    let registration = Registration {
        stack_lo: lo,
        stack_hi: hi,
        ..registration
    };
    sample(engine, registration, move |slot, marks| {
        let header = slot.header();
        assert!(!header.stack_end_known);
        assert_eq!(header.left_stack, (lo, hi));
        let memory = slot.memory(engine.live());
        assert_eq!(memory.word(marks.on_stack), Ok(0x1111_1111_1111_1111));
        for addr in [lo, lo + 4096, hi - 8] {
            assert!(memory.word(addr).is_err());
            assert!(engine.live().word(addr).is_ok());
        }
        assert!(memory.word(hi).is_ok());
    });
}

/// A stack deeper than the largest slot. The copied part is right, memory beyond it faults and
/// never shows live bytes, and the slot has no room left for the heap chunk.
fn deep(engine: &'static Engine, registration: Registration) {
    let worker = thread::Builder::new().stack_size(512 << 10);
    let worker = worker.spawn(move || {
        let registration = Registration {
            tid: sys::gettid(),
            newborn: true,
            ..registration
        };
        common::leave_signal_stack();
        let record = engine.register(&registration).unwrap();
        let mut large = [0x33u8; 100 << 10];
        std::hint::black_box(&mut large);
        burn_until(|| record.samples() > 0);
        std::hint::black_box(&mut large);
        assert!(engine.end(record));
        let mut seen = 0;
        engine.drain(|slot| {
            seen += 1;
            let header = slot.header();
            assert!(header.truncated && header.stack_end_known);
            let copied_to = header.stack_lo + slot.stack().len() as u64;
            let memory = slot.memory(engine.live());
            assert!(memory.word(header.stack_lo).is_ok());
            assert_eq!(memory.word(copied_to).unwrap_err().addr, copied_to);
            assert!(memory.word(header.stack_hi - 8).is_err());
            assert!(engine.live().word(header.stack_hi - 8).is_ok());
            // Known, but not copied: the walk must not read the live bytes instead.
            assert!(slot.chunks().all(|chunk| chunk.bytes.is_empty()));
            assert!(memory.word(CHUNK.as_ptr() as u64).is_err());
        });
        assert!(seen > 0);
    });
    worker.unwrap().join().unwrap();
}

//! A thread may be anywhere when the signal comes: in the dynamic loader, at its very end, about
//! to become two processes, on another stack, in `malloc`, without thread-local storage, with
//! signals blocked. In each place, and with each way to walk, the thread is sampled, continues,
//! and has its CPU time counted.
//!
//! The engine's handler is replaced by a test handler that checks the state the real one leaves
//! behind: `errno` is kept, nothing is allocated, and no other process ever runs it.

mod ends;
mod helpers;
mod loader;
mod places;
mod processes;

use crate::common::{Account, Drainer, Sample, weight_of};
use dwell_signal::handler::dwell_sample_handler;
use dwell_signal::{Cause, Config, Engine, EngineKind, Vantage, WalkTarget, sys};
use dwell_walker::{Frame, FrameKind, Frames, Memory, Outcome, Walk};
use helpers::Helpers;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

pub const INTERVAL_NS: u64 = 100_000;

thread_local! {
    // No destructors, and in an executable: ordinary accesses to the thread's static block.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static IN_MALLOC: Cell<bool> = const { Cell::new(false) };
    static HANDLED: Cell<u32> = const { Cell::new(0) };
}

static REFUSED: AtomicU64 = AtomicU64::new(0);
static CLOBBERED: AtomicU64 = AtomicU64::new(0);
static IN_MALLOC_COUNT: AtomicU64 = AtomicU64::new(0);
static WALKS: AtomicU64 = AtomicU64::new(0);
/// While a thread waits to be walked by another one.
static WALKING: AtomicU32 = AtomicU32::new(0);
static DELAY_US: AtomicU64 = AtomicU64::new(0);
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// A thread that must not touch its thread-local storage.
static BARE_TID: AtomicI32 = AtomicI32::new(0);
/// Number of handlers run by other processes; in memory that children share.
static ELSEWHERE: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

struct Watching;

fn watch<R>(allocate: impl FnOnce() -> R) -> R {
    if WATCHED.get() {
        REFUSED.fetch_add(1, Ordering::Relaxed);
    }
    IN_MALLOC.set(true);
    let result = allocate();
    IN_MALLOC.set(false);
    result
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise, handed on.
        watch(|| unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, handed on.
        watch(|| unsafe { System.dealloc(pointer, layout) });
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// How many signals the calling thread has handled. Timers' signals come at ticks of the kernel,
/// and a thread that shares its processor can run for long without meeting one.
pub fn handled() -> u32 {
    HANDLED.get()
}

/// How many handlers other processes have run.
fn elsewhere() -> u64 {
    // SAFETY: set once, before any child is made, to a mapping that is never removed.
    unsafe { &*ELSEWHERE.load(Ordering::Acquire) }.load(Ordering::SeqCst)
}

extern "C" fn watched(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if sys::gettid() == BARE_TID.load(Ordering::Relaxed) {
        dwell_sample_handler(signal, info, context);
        return;
    }
    if sys::getpid() != PROCESS.load(Ordering::Relaxed) {
        // SAFETY: as in `elsewhere`.
        unsafe { &*ELSEWHERE.load(Ordering::Acquire) }.fetch_add(1, Ordering::SeqCst);
    }
    HANDLED.set(HANDLED.get() + 1);
    if IN_MALLOC.get() {
        IN_MALLOC_COUNT.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: errno's address is valid for the thread's life.
    let errno = unsafe { &mut *libc::__errno_location() };
    let before = std::mem::replace(errno, 4242);
    let nested = WATCHED.replace(true);
    dwell_sample_handler(signal, info, context);
    WATCHED.set(nested);
    if *errno != 4242 {
        CLOBBERED.fetch_add(1, Ordering::Relaxed);
    }
    *errno = before;
}

/// "Walks" one frame, and reads memory that cannot be read on the way.
fn walk(target: &mut WalkTarget<'_>) {
    let wild = target.live().word(0x10_0000).is_ok();
    let (id, bci) = (target.header().regs.pc(), i32::from(wild));
    WALKS.fetch_add(1, Ordering::Relaxed);
    target.keep(|frames| {
        let kind = FrameKind::C2;
        let len = usize::from(frames.set(0, Frame { kind, bci, id }));
        let outcome = Outcome::Complete;
        Walk {
            len,
            outcome,
            gaps: 0,
            flaw: None,
        }
    });
}

extern "C" fn walk_hook(target: &mut WalkTarget<'_>) {
    walk(target);
}

/// The thread that walks others. Like a handler it must not allocate.
fn serve(engine: &'static Engine) {
    WATCHED.set(true);
    engine.serve(|target| {
        WALKING.store(1, Ordering::SeqCst);
        walk(target);
        let delay_us = DELAY_US.load(Ordering::Relaxed);
        if delay_us > 0 {
            thread::sleep(Duration::from_micros(delay_us));
        }
        WALKING.store(0, Ordering::SeqCst);
    });
    WATCHED.set(false);
}

/// The parts of a scenario.
#[derive(Clone, Copy)]
pub struct Stage<'a> {
    pub engine: &'static Engine,
    pub helpers: Helpers,
    pub library: &'a Path,
    pub vantage: Vantage,
}

impl Stage<'_> {
    /// The samples taken during `work`, whose accounts must add up.
    pub fn record(&self, work: impl FnOnce() -> Vec<Account>) -> Vec<Sample> {
        let engine = self.engine;
        let (walks, timeouts) = (WALKS.load(Ordering::Relaxed), self.timeouts());
        let instead = engine.counters().get(Cause::WalkedInstead);
        engine.set_vantage(self.vantage, 100);
        assert_eq!(engine.start(INTERVAL_NS), 0);
        let drainer = Drainer::begin(engine);
        let accounts = work();
        assert!(engine.stop(), "a handler is still at work");
        let samples = drainer.finish();
        for account in &accounts {
            account.assert_weight(weight_of(&samples, account), INTERVAL_NS);
        }
        let walked = WALKS.load(Ordering::Relaxed) - walks;
        let copied = if self.vantage == Vantage::Snapshot {
            samples.len() as u64
        } else {
            self.timeouts() - timeouts
        };
        assert!(walked + copied >= samples.len() as u64, "{walked} {copied}");
        let instead = engine.counters().get(Cause::WalkedInstead) - instead;
        match self.vantage {
            // Alternate stacks and those of unknown bounds are walked in the handler.
            Vantage::Snapshot => assert_eq!(walked, instead),
            _ => assert!(walked > 0 && instead == 0, "{walked} {instead}"),
        }
        engine.reap(|_| ());
        samples
    }

    fn timeouts(&self) -> u64 {
        self.engine.counters().get(Cause::PauseTimeout)
    }
}

fn watch_handlers(engine: &Engine) {
    let ours = sys::sigaction(engine.signal(), None).unwrap();
    let handler = watched as *const () as usize;
    let action = sys::KernelAction { handler, ..ours };
    sys::sigaction(engine.signal(), Some(&action)).unwrap();
    PROCESS.store(sys::getpid(), Ordering::Relaxed);
    let (prot, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_SHARED | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping at a place of the kernel's choice.
    let shared = unsafe { libc::mmap(std::ptr::null_mut(), 4096, prot, flags, -1, 0) };
    assert_ne!(shared, libc::MAP_FAILED);
    ELSEWHERE.store(shared.cast(), Ordering::Release);
}

/// All places, for all ways to walk, with one kind of engine.
pub fn run(kind: EngineKind) {
    let config = Config {
        engine: kind,
        ..Config::default()
    };
    let engine = dwell_signal::init(&config).unwrap();
    engine.set_walk(walk_hook);
    watch_handlers(engine);
    let library = helpers::compile();
    let helpers = Helpers::load(&library);
    for vantage in [Vantage::Snapshot, Vantage::Handler, Vantage::Paused] {
        println!("--- {vantage:?}");
        engine.end_serving(vantage != Vantage::Paused);
        let server = (vantage == Vantage::Paused).then(|| thread::spawn(move || serve(engine)));
        while server.is_some() && !engine.is_served() {
            thread::yield_now();
        }
        let stage = Stage {
            engine,
            helpers,
            library: &library,
            vantage,
        };
        scenarios(&stage);
        engine.end_serving(true);
        if let Some(server) = server {
            server.join().unwrap();
        }
        assert_eq!(REFUSED.load(Ordering::Relaxed), 0, "a handler allocated");
        assert_eq!(CLOBBERED.load(Ordering::Relaxed), 0, "errno was changed");
        assert_eq!(engine.counters().get(Cause::Contention), 0);
        assert_eq!(engine.live_records().count(), 0);
    }
    std::fs::remove_file(library).unwrap();
}

fn scenarios(stage: &Stage<'_>) {
    let run = |name: &str, scenario: fn(&Stage<'_>)| {
        let began = std::time::Instant::now();
        scenario(stage);
        println!("{name}: {} ms", began.elapsed().as_millis());
    };
    run("in the dynamic loader", loader::libraries_come_and_go);
    run("in destructors", ends::destructors_are_sampled);
    run("pthread_exit", ends::threads_end_in_the_middle);
    run("vfork", processes::vfork_children_are_left_alone);
    run("fork", processes::forked_children_are_left_alone);
    run("fork while paused", processes::a_fork_while_threads_wait);
    run(
        "fork of much memory",
        processes::a_long_fork_comes_to_its_end,
    );
    run("posix_spawn", processes::started_programs_inherit_nothing);
    run("alternate stack", places::on_an_alternate_stack);
    run("in malloc", places::inside_malloc);
    run("SIGSEGV blocked", places::with_faults_blocked);
    run("all blocked", places::with_all_signals_blocked);
    run("no thread pointer", places::without_a_thread_pointer);
}

//! The effect of our signals on the program's system calls: which of them can fail with `EINTR`,
//! and how often they do. Calls that the kernel restarts after a handler with `SA_RESTART` never
//! fail. A thread that blocks is hardly ever signalled.

mod calls;

use crate::common::{Drainer, register_here, settle};
use calls::{CALLS, Call};
use dwell_signal::{Cause, Config, Engine, EngineKind, Vantage, WalkTarget, sys};
use dwell_walker::{Outcome, Walk};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// An interval short enough that signals come all the time.
const SHORT_NS: u64 = 100_000;
/// The default interval of recordings.
const USUAL_NS: u64 = 10_000_000;
/// Computed before each call, without entering the kernel.
const COMPUTE: Duration = Duration::from_micros(30);

/// The way of walking does not matter here, only that stacks are walked.
extern "C" fn walk(target: &mut WalkTarget<'_>) {
    target.keep(|_| Walk {
        len: 0,
        outcome: Outcome::Complete,
        gaps: 0,
        flaw: None,
    });
}

fn compute() {
    let until = Instant::now() + COMPUTE;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Repeats a call while `more` returns true, given the number of calls and of interrupted calls.
/// Returns the number of interrupted calls. The call must not fail in any other way.
fn interrupted(call: &Call, more: impl Fn(u32, u32) -> bool, ready: &Barrier) -> u32 {
    let mut once = (call.prepare)();
    ready.wait();
    let (mut made, mut count) = (0, 0);
    while more(made, count) {
        made += 1;
        compute();
        match once() {
            Ok(()) => {}
            Err(libc::EINTR) => count += 1,
            Err(error) => panic!("{}: errno {error}", call.name),
        }
    }
    count
}

/// Sends a thread our signal without pause, as a foreign one: shows whether the call can be
/// interrupted at all.
fn bombarded(engine: &'static Engine, call: &'static Call) -> u32 {
    /// A cookie of a record that does not exist.
    const STALE: u64 = 0xd3e1 << 48 | 0xf_ffff;
    /// On busy machines, signals may not arrive for long.
    const CALLS_MAX: u32 = 100_000;
    let handled = || engine.counters().get(Cause::Stale);
    let before = handled();
    let more = |made: u32, count: u32| {
        let few = made < 100 || handled() < before + 100 || !call.restarts && count == 0;
        few && made < CALLS_MAX
    };
    let (tid, over) = (AtomicI32::new(0), AtomicBool::new(false));
    let ready = Barrier::new(2);
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            tid.store(sys::gettid(), Ordering::Release);
            let count = interrupted(call, more, &ready);
            over.store(true, Ordering::Release);
            count
        });
        ready.wait();
        while !over.load(Ordering::Acquire) && !worker.is_finished() {
            // Fails when the thread has exited, or its queue is full.
            let _ = sys::queue_signal(tid.load(Ordering::Acquire), engine.signal(), STALE);
            thread::sleep(Duration::from_micros(20));
        }
        let count = worker.join().unwrap();
        assert!(handled() >= before + 100, "{} met no signal", call.name);
        count
    })
}

/// The kernel restarts exactly the calls that signal(7) lists.
fn what_can_be_interrupted(engine: &'static Engine) {
    for call in &CALLS {
        let count = bombarded(engine, call);
        println!("bombarded {:26} {count}", call.name);
        assert_eq!(call.restarts, count == 0, "{}", call.name);
    }
}

/// All calls at once, each on a sampled thread; prints how often each was interrupted.
fn sampled(engine: &'static Engine, interval_ns: u64, vantage: Vantage, times: u32) -> u32 {
    engine.set_vantage(vantage, 100);
    engine.start(interval_ns);
    let drainer = Drainer::begin(engine);
    let ready: &'static Barrier = Box::leak(Box::new(Barrier::new(CALLS.len())));
    let spawn = |(number, call): (usize, &'static Call)| {
        thread::spawn(move || {
            let record = register_here(engine, number as u64);
            let count = interrupted(call, |made, _| made < times, ready);
            let (samples, cpu_ns) = (record.samples(), sys::own_cpu_ns());
            settle(engine, record);
            (count, samples, cpu_ns)
        })
    };
    let threads: Vec<_> = CALLS.iter().enumerate().map(spawn).collect();
    let (mut all, mut failed) = (0, 0);
    for (call, thread) in CALLS.iter().zip(threads) {
        let (count, samples, cpu_ns) = thread.join().unwrap();
        println!(
            "{} us {vantage:?} {:26} {count} of {times}, {samples} samples, {} us CPU each",
            interval_ns / 1000,
            call.name,
            cpu_ns / u64::from(times) / 1000
        );
        all += samples;
        failed += count;
        // One signal can interrupt only one call.
        assert!(u64::from(count) <= samples + 1 + cpu_ns / interval_ns);
        assert!(!call.restarts || count == 0, "{}", call.name);
    }
    assert!(all > 0, "nothing was sampled");
    assert!(engine.stop());
    drainer.finish();
    engine.reap(|_| ());
    failed
}

/// How often each call is made, and at which intervals. `DWELL_TEST_CALLS=10000` measures.
fn plan() -> (u32, &'static [u64]) {
    let asked = std::env::var("DWELL_TEST_CALLS").ok();
    match asked.and_then(|text| text.parse().ok()) {
        Some(times) => (times, &[SHORT_NS, USUAL_NS]),
        None => (300, &[SHORT_NS]),
    }
}

/// For one kind of engine: which calls can be interrupted, and how often. Unless `in_kernel`,
/// signals are made while threads are in user mode, or on their way there. They arrive before the
/// next call.
pub fn run(kind: EngineKind, in_kernel: bool) {
    let config = Config {
        engine: kind,
        ..Config::default()
    };
    let engine = dwell_signal::init(&config).unwrap();
    what_can_be_interrupted(engine);
    engine.set_walk(walk);
    let server = thread::spawn(|| engine.serve(|target| walk(target)));
    let (times, intervals_ns) = plan();
    for interval_ns in intervals_ns {
        for vantage in [Vantage::Snapshot, Vantage::Handler, Vantage::Paused] {
            let count = sampled(engine, *interval_ns, vantage, times);
            // No interrupt has been seen here; one that comes late could do it.
            let most = times * CALLS.len() as u32 / 1000;
            assert!(in_kernel || count <= most, "{count} calls");
        }
    }
    engine.end_serving(true);
    server.join().unwrap();
}

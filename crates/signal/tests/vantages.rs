//! Walks of threads that stand still: in the handler, and by a thread for which they wait. In
//! every state of the walking thread they continue, and the points of all samples add up.

mod common;

use common::{Account, Drainer, burn, burn_until, register_here, settle, weight_of};
use dwell_signal::{Cause, Config, Engine, Registration, Vantage, WalkTarget, sys};
use dwell_walker::{Failure, Frame, FrameKind, Frames, Outcome, Walk};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const INTERVAL_NS: u64 = 500_000;
/// As many frames as no small slot holds.
const DEEP: u32 = 5000;

/// Counts of walks and their results.
static WALKS: AtomicU64 = AtomicU64::new(0);
static ELSEWHERE: AtomicU64 = AtomicU64::new(0);
static MOVED: AtomicU64 = AtomicU64::new(0);
/// A sampled thread increments it while it runs; 0 while none does.
static PROGRESS: AtomicU64 = AtomicU64::new(0);
/// How deep stacks pretend to be.
static DEPTH: AtomicU32 = AtomicU32::new(10);
/// Makes walks last; in ms.
static DELAY_MS: AtomicU64 = AtomicU64::new(0);

/// "Walks": frames that show which thread was walked, and from where.
fn walk(target: &mut WalkTarget<'_>) {
    let (tid, pc) = (target.header().tid, target.header().regs.pc());
    let before = PROGRESS.load(Ordering::SeqCst);
    WALKS.fetch_add(1, Ordering::SeqCst);
    if sys::gettid() != tid {
        ELSEWHERE.fetch_add(1, Ordering::SeqCst);
        // Long enough for the thread to continue, if it could.
        thread::sleep(Duration::from_millis(
            DELAY_MS.load(Ordering::SeqCst).max(1),
        ));
    }
    if before != PROGRESS.load(Ordering::SeqCst) {
        MOVED.fetch_add(1, Ordering::SeqCst);
    }
    let depth = DEPTH.load(Ordering::SeqCst) as usize;
    target.keep(|frames| {
        let len = depth.min(frames.room());
        for index in 0..len {
            let id = pc + index as u64;
            let (kind, bci) = (FrameKind::C2, tid);
            assert!(frames.set(index, Frame { kind, bci, id }));
        }
        assert!(!frames.set(frames.room(), Frame::EMPTY));
        let outcome = if len == depth {
            Outcome::Complete
        } else {
            Outcome::Failed(Failure::Truncated)
        };
        Walk {
            len,
            outcome,
            gaps: 3,
            flaw: Some(Failure::BeingThawed),
        }
    });
}

extern "C" fn walk_hook(target: &mut WalkTarget<'_>) {
    walk(target);
}

/// Threads that burn CPU time under `vantage`; their samples, checked one by one, and accounts.
fn sampled(engine: &'static Engine, vantage: Vantage, threads: u64, walked: bool) {
    engine.set_vantage(vantage, 8192);
    engine.start(INTERVAL_NS);
    let late = || engine.counters().get(Cause::PauseTimeout);
    let late_before = late();
    let (checked, copied) = (AtomicU64::new(0), AtomicU64::new(0));
    let over = AtomicBool::new(false);
    let (accounts, weights) = thread::scope(|scope| {
        let drainer = scope.spawn(|| {
            let mut weights = HashMap::<(u32, u32), u64>::new();
            loop {
                let last = over.load(Ordering::Acquire);
                engine.drain(|slot| {
                    let header = slot.header();
                    let key = (header.record_index, header.record_generation);
                    *weights.entry(key).or_default() += slot.weight_ns();
                    if walked && header.walk.walk().is_none() {
                        copied.fetch_add(1, Ordering::Relaxed);
                        check(slot, false);
                    } else {
                        checked.fetch_add(1, Ordering::Relaxed);
                        check(slot, walked);
                    }
                });
                if last {
                    return weights;
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        let work = move |seed| {
            let record = register_here(engine, seed);
            burn(20 * INTERVAL_NS);
            settle(engine, record)
        };
        let workers: Vec<_> = (0..threads)
            .map(|seed| scope.spawn(move || work(seed)))
            .collect();
        let accounts: Vec<Account> = workers.into_iter().map(|w| w.join().unwrap()).collect();
        over.store(true, Ordering::Release);
        (accounts, drainer.join().unwrap())
    });
    assert!(engine.stop());
    assert!(checked.load(Ordering::Relaxed) > 0);
    // The walking thread may have no processor: threads do not wait for that, and it is counted.
    let copied = copied.into_inner();
    assert!(copied <= late() - late_before, "{copied} were not walked");
    for account in accounts {
        let key = (account.index, account.generation);
        account.assert_weight(weights.get(&key).copied().unwrap_or(0), INTERVAL_NS);
    }
    engine.reap(|_| ());
}

fn check(slot: &dwell_signal::Slot<'_>, walked: bool) {
    let header = slot.header();
    let Some(walk) = header.walk.walk() else {
        assert!(!walked, "not walked");
        assert!(slot.frames().is_empty());
        assert!(!slot.stack().is_empty(), "neither walked nor copied");
        return;
    };
    assert!(walked, "walked");
    assert!(
        slot.stack().is_empty(),
        "nothing is copied of a thread that stands still"
    );
    assert_eq!(walk.outcome, Outcome::Complete);
    assert_eq!((walk.gaps, walk.flaw), (3, Some(Failure::BeingThawed)));
    assert_eq!(walk.len, DEPTH.load(Ordering::SeqCst) as usize);
    for (index, frame) in slot.frames().iter().enumerate() {
        assert_eq!(frame.bci, header.tid);
        assert_eq!(frame.id, header.regs.pc() + index as u64);
    }
    assert_eq!(slot.frames().len(), walk.len);
}

/// A thread that walks others as long as this lives.
struct Server {
    engine: &'static Engine,
    thread: Option<thread::JoinHandle<()>>,
}

impl Server {
    fn begin(engine: &'static Engine) -> Server {
        engine.end_serving(false);
        let thread = thread::spawn(move || engine.serve(walk));
        while !engine.is_served() {
            thread::yield_now();
        }
        let thread = Some(thread);
        Server { engine, thread }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.engine.end_serving(true);
        self.thread.take().unwrap().join().unwrap();
        assert!(!self.engine.is_served());
    }
}

fn in_the_handler(engine: &'static Engine) {
    WALKS.store(0, Ordering::SeqCst);
    sampled(engine, Vantage::Handler, 4, true);
    assert!(WALKS.load(Ordering::SeqCst) > 0);
    assert_eq!(ELSEWHERE.load(Ordering::SeqCst), 0);
    // A deep stack gets a larger slot, and is walked again.
    DEPTH.store(DEEP, Ordering::SeqCst);
    sampled(engine, Vantage::Handler, 1, true);
    DEPTH.store(10, Ordering::SeqCst);
    assert!(engine.counters().get(Cause::WalkedAgain) > 0);
}

fn by_a_thread_for_which_they_wait(engine: &'static Engine) {
    let server = Server::begin(engine);
    sampled(engine, Vantage::Paused, 4, true);
    DEPTH.store(DEEP, Ordering::SeqCst);
    sampled(engine, Vantage::Paused, 1, true);
    DEPTH.store(10, Ordering::SeqCst);
    let counters = engine.counters();
    assert!(counters.waited_ns > 0);
    assert!(ELSEWHERE.load(Ordering::SeqCst) > 0);
    drop(server);
    // Without a walking thread, threads take snapshots and do not wait at all.
    let waited_ns = engine.counters().waited_ns;
    sampled(engine, Vantage::Paused, 2, false);
    assert_eq!(engine.counters().waited_ns, waited_ns);
}

/// The walked thread makes no step during the walk.
fn nothing_moves_during_a_walk(engine: &'static Engine) {
    let server = Server::begin(engine);
    engine.set_vantage(Vantage::Paused, 100);
    engine.start(INTERVAL_NS);
    let drainer = Drainer::begin(engine);
    MOVED.store(0, Ordering::SeqCst);
    let late = || engine.counters().get(Cause::PauseTimeout);
    let late_before = late();
    let worker = thread::spawn(move || {
        let record = register_here(engine, 7);
        let until = sys::own_cpu_ns() + 30 * INTERVAL_NS;
        while sys::own_cpu_ns() < until {
            for _ in 0..1000 {
                PROGRESS.fetch_add(1, Ordering::SeqCst);
            }
        }
        settle(engine, record)
    });
    let account = worker.join().unwrap();
    assert!(engine.stop());
    drop(server);
    let samples = drainer.finish();
    account.assert_weight(weight_of(&samples, &account), INTERVAL_NS);
    // The walking thread may lose its processor in the middle of a walk, for longer than a thread
    // waits.
    let moved = MOVED.load(Ordering::SeqCst);
    assert!(moved <= late() - late_before, "{moved} walks saw a change");
}

/// The walking thread is delayed with one thread; the next one does not wait long for it.
fn a_late_walk_is_not_waited_for(engine: &'static Engine) {
    DELAY_MS.store(300, Ordering::SeqCst);
    let server = Server::begin(engine);
    engine.set_vantage(Vantage::Paused, 100);
    engine.start(INTERVAL_NS);
    let drainer = Drainer::begin(engine);
    let began = Instant::now();
    let workers: Vec<_> = (0..4)
        .map(|seed| {
            thread::spawn(move || {
                let record = register_here(engine, seed);
                burn(3 * INTERVAL_NS);
                settle(engine, record)
            })
        })
        .collect();
    let accounts: Vec<Account> = workers.into_iter().map(|w| w.join().unwrap()).collect();
    assert!(engine.stop());
    let samples = drainer.finish();
    for account in &accounts {
        account.assert_weight(weight_of(&samples, account), INTERVAL_NS);
    }
    assert!(engine.counters().get(Cause::PauseTimeout) > 0, "all waited");
    // Loose: it only shows that no thread waited without end.
    assert!(began.elapsed() < Duration::from_secs(60));
    DELAY_MS.store(0, Ordering::SeqCst);
    drop(server);
}

/// The walking thread ends while threads wait for it.
fn a_dead_walker_holds_nobody(engine: &'static Engine) {
    static TID: AtomicI32 = AtomicI32::new(0);
    engine.end_serving(false);
    let server = thread::spawn(move || {
        let work = std::panic::AssertUnwindSafe(|| {
            engine.serve(|_| {
                TID.store(sys::gettid(), Ordering::SeqCst);
                panic!("on purpose");
            });
        });
        assert!(std::panic::catch_unwind(work).is_err());
    });
    while !engine.is_served() {
        thread::yield_now();
    }
    engine.set_vantage(Vantage::Paused, 100);
    engine.start(INTERVAL_NS);
    let drainer = Drainer::begin(engine);
    let record = register_here(engine, 3);
    let before = record.samples();
    burn_until(|| record.samples() >= before + 5);
    let account = settle(engine, record);
    server.join().unwrap();
    assert_ne!(TID.load(Ordering::SeqCst), 0);
    assert!(!engine.is_served());
    assert!(engine.stop());
    let samples = drainer.finish();
    assert!(weight_of(&samples, &account) >= 5 * INTERVAL_NS);
}

/// A drain that was interrupted continues at the same place, and then with the slots published
/// since.
fn a_drain_in_parts_shows_all(engine: &'static Engine) {
    engine.set_vantage(Vantage::Snapshot, 100);
    engine.start(INTERVAL_NS);
    let worker = thread::spawn(move || {
        let record = register_here(engine, 11);
        // Timers come with the kernel's ticks, some milliseconds apart.
        burn(100 * INTERVAL_NS);
        let mut weight_ns = 0;
        // There are two of those; the others stay, and more come.
        let mut some = 2;
        let all = engine.drain_while(|slot| {
            weight_ns += slot.weight_ns();
            some -= 1;
            some > 0
        });
        assert!(!all, "only two were shown");
        burn(100 * INTERVAL_NS);
        let account = settle(engine, record);
        assert_eq!(engine.reap(|_| ()), 0, "its samples are not all shown");
        let all = engine.drain_while(|slot| {
            weight_ns += slot.weight_ns();
            true
        });
        assert!(all);
        account.assert_weight(weight_ns, INTERVAL_NS);
    });
    worker.join().unwrap();
    assert!(engine.stop());
    engine.drain(|_| ());
    engine.reap(|_| ());
}

/// A stack larger than any slot still keeps its root.
fn what_cannot_be_copied_is_walked(engine: &'static Engine) {
    engine.set_vantage(Vantage::Snapshot, 100);
    engine.start(INTERVAL_NS);
    let worker = thread::spawn(move || {
        let here = 0u64;
        let sp = std::hint::black_box(&raw const here) as u64;
        let registration = Registration {
            tid: sys::gettid(),
            newborn: true,
            stack_lo: sp - (1 << 20),
            stack_hi: sp + (8 << 20),
            ..Registration::default()
        };
        common::leave_signal_stack();
        let record = engine.register(&registration).unwrap();
        burn(10 * INTERVAL_NS);
        settle(engine, record)
    });
    let account = worker.join().unwrap();
    assert!(engine.stop());
    let mut weight_ns = 0;
    engine.drain(|slot| {
        weight_ns += slot.weight_ns();
        check(slot, true);
    });
    account.assert_weight(weight_ns, INTERVAL_NS);
    assert!(engine.counters().get(Cause::WalkedInstead) > 0);
}

/// The thread that walks copies is late: no copies are made until it has caught up.
fn what_would_be_walked_too_late_is_walked_at_once(engine: &'static Engine) {
    engine.set_vantage(Vantage::Snapshot, 100);
    engine.set_behind(true);
    engine.start(INTERVAL_NS);
    let behind = || engine.counters().get(Cause::WalkedBehind);
    let before = behind();
    let worker = thread::spawn(move || {
        let record = register_here(engine, 12);
        // Even if the kernel's ticks seldom find the thread at work.
        burn_until(|| behind() >= before + 3);
        let walked = behind();
        engine.set_behind(false);
        let samples = record.samples();
        burn_until(|| record.samples() >= samples + 3);
        (settle(engine, record), walked)
    });
    let (account, walked) = worker.join().unwrap();
    assert!(engine.stop());
    let (mut weight_ns, mut copied) = (0, 0);
    engine.drain(|slot| {
        weight_ns += slot.weight_ns();
        copied += u64::from(slot.header().stack_len > 0);
    });
    account.assert_weight(weight_ns, INTERVAL_NS);
    assert!(walked > before);
    assert!(copied > 0, "later samples are copies again");
    // One handler may have been in progress when the delay was set.
    assert!(behind() <= walked + 1);
}

#[test]
fn threads_are_walked_where_they_stand() {
    let config = Config {
        engine: dwell_signal::EngineKind::Timer,
        ..Config::default()
    };
    let engine = dwell_signal::init(&config).unwrap();
    engine.set_walk(walk_hook);
    in_the_handler(engine);
    what_cannot_be_copied_is_walked(engine);
    what_would_be_walked_too_late_is_walked_at_once(engine);
    a_drain_in_parts_shows_all(engine);
    by_a_thread_for_which_they_wait(engine);
    nothing_moves_during_a_walk(engine);
    a_late_walk_is_not_waited_for(engine);
    a_dead_walker_holds_nobody(engine);
    // No slot has been lost: as many can be taken at once as at the beginning.
    engine.set_vantage(Vantage::Snapshot, 0);
    sampled(engine, Vantage::Snapshot, 2, false);
}

//! Threads that live briefly get no source of signals, and are accounted for all the same.

mod common;

use common::{burn, register_here};
use dwell_signal::slots::Reason;
use dwell_signal::{Cause, Config, Engine, EngineKind, Plan, ThreadRecord};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

const INTERVAL_NS: u64 = 10_000_000;

/// The end of a thread: its CPU time that is covered, and its samples.
type Account = (u64, u64);

/// A thread that burns CPU time on request and then ends as the recorder ends threads.
struct Brief {
    record: &'static ThreadRecord,
    orders: Sender<u64>,
    done: Receiver<()>,
    thread: JoinHandle<Account>,
}

impl Brief {
    fn begin(engine: &'static Engine, seed: u64) -> Brief {
        let (orders, taken) = channel::<u64>();
        let (show, shown) = channel();
        let (did, done) = channel();
        let thread = thread::spawn(move || {
            let record = register_here(engine, seed);
            show.send(record).unwrap();
            for cpu_ns in taken {
                burn(cpu_ns);
                did.send(()).unwrap();
            }
            let covered_ns = engine.sample_here(record, Reason::ThreadEnd);
            let samples = record.samples();
            assert!(engine.end(record));
            (covered_ns.unwrap(), samples)
        });
        let record = shown.recv().unwrap();
        Brief {
            record,
            orders,
            done,
            thread,
        }
    }

    fn burns(&self, cpu_ns: u64) {
        self.orders.send(cpu_ns).unwrap();
        self.done.recv().unwrap();
    }

    fn end(self) -> Account {
        drop(self.orders);
        self.thread.join().unwrap()
    }
}

/// A seed whose first point is far within the first recording's first window, or near its end.
fn seed(is_it: impl Fn(u64) -> bool) -> u64 {
    let point_ns = |seed: u64| Plan::new(seed ^ 1, INTERVAL_NS, 0).next_point_ns();
    (0..10_000).find(|seed| is_it(point_ns(*seed))).unwrap()
}

fn only_later_points_are_deferred(engine: &'static Engine) {
    let deferred = (0..40).filter(|seed| {
        let thread = Brief::begin(engine, *seed);
        let is_deferred = thread.record.is_deferred();
        thread.end();
        is_deferred
    });
    // 40 members of a golden-ratio sequence, of which each fifth is below the reach of 2 ms.
    let deferred = deferred.count();
    assert!((29..=35).contains(&deferred), "{deferred} of 40");
    let early = seed(|ns| (300_000..1_000_000).contains(&ns));
    let thread = Brief::begin(engine, early);
    assert!(!thread.record.is_deferred());
    thread.end();
}

fn thread_that_ends_early_is_covered_without_sample(engine: &'static Engine, late: u64) {
    let thread = Brief::begin(engine, late);
    assert!(thread.record.is_deferred());
    thread.burns(100_000);
    let (covered_ns, samples) = thread.end();
    assert!(covered_ns >= 100_000, "{covered_ns} ns");
    assert_eq!(samples, 0);
}

fn thread_that_lives_on_is_opened(engine: &'static Engine, late: u64) {
    let thread = Brief::begin(engine, late);
    engine.open_deferred();
    assert!(thread.record.is_deferred(), "it may have begun just now");
    engine.open_deferred();
    assert!(!thread.record.is_deferred());
    // Two windows and some ticks of the slowest kernel.
    thread.burns(5 * INTERVAL_NS);
    assert!(thread.record.samples() > 0, "no signal");
    thread.end();
    // It has used more than others do: at the first call.
    let thread = Brief::begin(engine, late);
    thread.burns(2_500_000);
    engine.open_deferred();
    assert!(!thread.record.is_deferred());
    thread.end();
}

fn point_passed_before_opening_is_sampled_at_the_end(engine: &'static Engine, late: u64) {
    let thread = Brief::begin(engine, late);
    thread.burns(INTERVAL_NS);
    assert_eq!(thread.record.samples(), 0);
    let (covered_ns, samples) = thread.end();
    assert_eq!(samples, 1);
    assert!(covered_ns >= INTERVAL_NS);
}

/// Three threads of 1 ms with a sample of 10 ms each have 27 ms too much.
fn thread_is_passed_over_while_weights_are_ahead(engine: &'static Engine, early: u64) {
    let is_deferred = [false, false, false, true].map(|_| {
        let thread = Brief::begin(engine, early);
        let (record, is_deferred) = (thread.record, thread.record.is_deferred());
        thread.burns(1_100_000);
        let (covered_ns, samples) = thread.end();
        assert_eq!(samples, u64::from(!is_deferred));
        assert!(covered_ns >= 1_100_000);
        engine.note_end(record, covered_ns);
        is_deferred
    });
    assert_eq!(is_deferred, [false, false, false, true]);
    // It lives on: it is sampled as any other thread from then on.
    let thread = Brief::begin(engine, early);
    assert!(thread.record.is_deferred());
    engine.open_deferred();
    engine.open_deferred();
    assert!(!thread.record.is_deferred());
    thread.burns(5 * INTERVAL_NS);
    let weight_ns = thread.record.weight_ns();
    assert!(
        weight_ns > 0 && weight_ns <= 8 * INTERVAL_NS,
        "{weight_ns} ns"
    );
    thread.end();
}

#[test]
fn source_is_deferred_until_thread_outlives_others() {
    let engine = dwell_signal::init(&Config {
        engine: EngineKind::Timer,
        ..Config::default()
    });
    let engine = engine.unwrap();
    engine.start(INTERVAL_NS);
    let late = seed(|ns| ns > INTERVAL_NS * 9 / 10);
    let thread = Brief::begin(engine, late);
    assert!(!thread.record.is_deferred(), "no thread has ended");
    assert!(!engine.defers());
    thread.end();
    (0..2000).for_each(|_| engine.note_lifetime(1_000_000));
    assert!(engine.defers());
    only_later_points_are_deferred(engine);
    thread_that_ends_early_is_covered_without_sample(engine, late);
    thread_that_lives_on_is_opened(engine, late);
    point_passed_before_opening_is_sampled_at_the_end(engine, late);
    let early = seed(|ns| (300_000..1_000_000).contains(&ns));
    thread_is_passed_over_while_weights_are_ahead(engine, early);
    // The recording ends with a deferred thread, and another one begins.
    let thread = Brief::begin(engine, late);
    thread.burns(100_000);
    let mut covered = 0;
    engine.stop_threads(|_, stop| covered += u32::from(stop.sampled_to_ns >= Some(100_000)));
    assert_eq!((covered, thread.record.is_deferred()), (1, false));
    engine.start(INTERVAL_NS);
    assert!(!thread.record.is_deferred() && !engine.defers());
    thread.end();
    assert!(engine.stop());
    assert_eq!(engine.counters().get(Cause::ArmFailed), 0);
}

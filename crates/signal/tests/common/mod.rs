//! Shared by the integration tests: threads that burn CPU time and account for it.
#![allow(dead_code)] // each test file is a program of its own and uses a part

use dwell_signal::slots::Reason;
use dwell_signal::{
    Config, Engine, EngineKind, PerfLevel, Registration, ThreadRecord, perf_permitted, plan, sys,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// A thread's own data at its end.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// Index of its record.
    pub index: u32,
    /// Generation of its record.
    pub generation: u32,
    /// CPU time before it settled.
    pub before_ns: u64,
    /// CPU time after its record had ended.
    pub after_ns: u64,
}

impl Account {
    /// With a point in each window of at most T, the weight w at CPU time c satisfies
    /// c - T < w <= c + T; c lies between the two readings.
    pub fn assert_weight(&self, weight_ns: u64, interval_ns: u64) {
        let longest_ns = longest_window_ns(interval_ns);
        assert!(
            weight_ns + longest_ns > self.before_ns,
            "{weight_ns} ns, too little: {self:?}"
        );
        assert!(
            weight_ns <= self.after_ns + longest_ns,
            "{weight_ns} ns, too much: {self:?}"
        );
    }
}

/// The longest that the CPU time of a point can be.
pub fn longest_window_ns(interval_ns: u64) -> u64 {
    match Engine::get().expect("an engine").kind() {
        EngineKind::Perf { .. } => plan::longest_ns(interval_ns),
        EngineKind::Timer => interval_ns,
    }
}

/// An engine with perf events as they are permitted here; prints a line if they are not.
pub fn with_events() -> Option<&'static Engine> {
    let Ok(PerfLevel { kernel }) = perf_permitted() else {
        println!("skipped: perf events are not permitted here");
        return None;
    };
    let config = Config {
        engine: EngineKind::Perf { kernel },
        ..Config::default()
    };
    Some(dwell_signal::init(&config).unwrap())
}

/// Uses `cpu_ns` of the calling thread's CPU time from now on.
#[inline(never)]
pub fn burn(cpu_ns: u64) {
    let until = sys::own_cpu_ns() + cpu_ns;
    let mut x = 1u64;
    while sys::own_cpu_ns() < until {
        for _ in 0..1000 {
            x = std::hint::black_box(x.wrapping_mul(0x2545_f491_4f6c_dd1d));
        }
    }
}

/// Uses CPU time until `done`; gives up after much more than any timer needs.
pub fn burn_until(done: impl Fn() -> bool) {
    for _ in 0..5000 {
        if done() {
            return;
        }
        burn(1_000_000);
    }
    panic!("five seconds of CPU time were not enough");
}

/// Blocks a signal in the calling thread, or unblocks it.
pub fn block(signal: i32, is_out: bool) {
    let how = if is_out {
        libc::SIG_BLOCK
    } else {
        libc::SIG_UNBLOCK
    };
    // SAFETY: zeroed is a valid sigset; the calls only write to it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut set, signal);
        assert_eq!(
            libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()),
            0
        );
    }
}

/// Removes the alternate signal stack that Rust gives each thread: it is too small for walks in
/// debug builds.
pub fn leave_signal_stack() {
    let none = libc::stack_t {
        ss_sp: std::ptr::null_mut(),
        ss_flags: libc::SS_DISABLE,
        ss_size: 0,
    };
    // SAFETY: nothing is on that stack; Rust does the same at the thread's end.
    assert_eq!(unsafe { libc::sigaltstack(&none, std::ptr::null_mut()) }, 0);
}

/// Registers the calling thread, which must be young.
pub fn register_here(engine: &'static Engine, seed: u64) -> &'static ThreadRecord {
    leave_signal_stack();
    let registration = Registration {
        tid: sys::gettid(),
        seed,
        newborn: true,
        ..Registration::default()
    };
    engine.register(&registration).unwrap()
}

type Order = Box<dyn FnOnce() + Send>;

/// A registered thread that runs the jobs it is given, and waits in between.
pub struct Worker {
    pub record: &'static ThreadRecord,
    tell: Sender<Order>,
    told: Receiver<()>,
    thread: thread::JoinHandle<()>,
}

impl Worker {
    pub fn begin(engine: &'static Engine) -> Worker {
        let (tell, orders) = channel::<Order>();
        let (done, told) = channel();
        let (show, shown) = channel();
        let thread = thread::spawn(move || {
            let record = register_here(engine, 3);
            show.send(record).unwrap();
            for order in orders {
                order();
                done.send(()).unwrap();
            }
            assert!(engine.end(record));
        });
        let record = shown.recv().unwrap();
        Worker {
            record,
            tell,
            told,
            thread,
        }
    }

    /// Returns when it is done.
    pub fn does(&self, order: impl FnOnce() + Send + 'static) {
        self.tell.send(Box::new(order)).unwrap();
        self.told.recv().unwrap();
    }

    /// Its record has ended as well when this returns.
    pub fn end(self) {
        drop(self.tell);
        self.thread.join().unwrap();
    }
}

/// Settles the calling thread's account and ends its record.
pub fn settle(engine: &'static Engine, record: &'static ThreadRecord) -> Account {
    let before_ns = sys::own_cpu_ns();
    engine.sample_here(record, Reason::ThreadEnd);
    let (index, generation) = (record.index(), record.generation());
    assert!(engine.end(record));
    // Read last: between settling and ending the next signal may come.
    Account {
        index,
        generation,
        before_ns,
        after_ns: sys::own_cpu_ns(),
    }
}

/// Runs `work` on a registered thread for each of the numbers; returns the accounts of all of
/// them.
pub fn run_threads(
    engine: &'static Engine,
    numbers: std::ops::Range<u64>,
    work: impl Fn(u64) + Send + Sync + 'static,
) -> Vec<Account> {
    let work = Arc::new(work);
    let spawn = |number: u64| {
        let work = Arc::clone(&work);
        thread::spawn(move || {
            let record = register_here(engine, 0x5eed_0000 + number);
            work(number);
            settle(engine, record)
        })
    };
    let threads: Vec<_> = numbers.map(spawn).collect();
    threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect()
}

/// One drained sample, as far as tests care.
#[derive(Clone, Debug)]
pub struct Sample {
    pub index: u32,
    pub generation: u32,
    pub tid: i32,
    pub weight_ns: u64,
    pub reason: Reason,
    pub sp: u64,
    pub pc: u64,
    pub stack_lo: u64,
    pub stack_len: usize,
    pub truncated: bool,
    pub kernel: Vec<u64>,
    pub time_ns: u64,
    pub walk: Option<dwell_walker::Walk>,
}

/// Drains in the background until dropped into `finish`.
pub struct Drainer {
    stop: Arc<AtomicBool>,
    samples: Arc<Mutex<Vec<Sample>>>,
    thread: thread::JoinHandle<()>,
}

impl Drainer {
    pub fn begin(engine: &'static Engine) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let samples = Arc::new(Mutex::new(Vec::new()));
        let (stop2, samples2) = (Arc::clone(&stop), Arc::clone(&samples));
        let thread = thread::spawn(move || {
            while !stop2.load(Ordering::Acquire) {
                drain_into(engine, &mut samples2.lock().unwrap());
                thread::sleep(std::time::Duration::from_millis(2));
            }
            drain_into(engine, &mut samples2.lock().unwrap());
        });
        Self {
            stop,
            samples,
            thread,
        }
    }

    pub fn finish(self) -> Vec<Sample> {
        self.stop.store(true, Ordering::Release);
        self.thread.join().unwrap();
        std::mem::take(&mut self.samples.lock().unwrap())
    }
}

/// Appends all published samples.
pub fn drain_into(engine: &'static Engine, samples: &mut Vec<Sample>) {
    engine.drain(|slot| {
        let header = slot.header();
        samples.push(Sample {
            index: header.record_index,
            generation: header.record_generation,
            tid: header.tid,
            weight_ns: slot.weight_ns(),
            reason: header.reason,
            sp: header.regs.sp(),
            pc: header.regs.pc(),
            stack_lo: header.stack_lo,
            stack_len: slot.stack().len(),
            truncated: header.truncated,
            kernel: slot.kernel_frames().to_vec(),
            time_ns: header.time_ns,
            walk: header.walk.walk(),
        });
    });
}

/// Sum of weights of one thread, in ns.
pub fn weight_of(samples: &[Sample], account: &Account) -> u64 {
    samples
        .iter()
        .filter(|s| (s.index, s.generation) == (account.index, account.generation))
        .map(|s| s.weight_ns)
        .sum()
}

/// Works on its own record all the time, so that signals find it busy, and then stops doing so.
/// The thread must still get signals afterwards.
pub fn busy_record_keeps_being_sampled(engine: &'static Engine, interval_ns: u64) {
    let worker = thread::spawn(move || {
        let record = register_here(engine, 0xb5);
        for _ in 0..5 {
            let until_ns = sys::own_cpu_ns() + 10 * interval_ns;
            while sys::own_cpu_ns() < until_ns {
                engine.attach_ring(record).unwrap();
            }
            let samples = record.samples();
            burn(10 * interval_ns);
            assert!(
                record.samples() > samples,
                "silent: {:?}",
                engine.counters()
            );
        }
        settle(engine, record)
    });
    worker.join().unwrap();
}

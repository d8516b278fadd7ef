//! Numbers of the descriptors that perf events take. Native code of the program may only know
//! those that `select(2)` can name, so they must not all be used up.

mod common;

use common::leave_signal_stack;
use dwell_signal::{Cause, Engine, Registration, sys};
use std::sync::mpsc::channel;
use std::thread;

const THREADS: usize = 1_100;
const SELECTABLE: i32 = 1024;

/// The numbers of this process's descriptors: of those that `select` can name, and of all.
fn descriptors() -> (usize, usize) {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap();
    let numbers = entries.map(|it| it.unwrap().file_name().to_str().unwrap().parse::<i32>());
    let numbers: Vec<i32> = numbers.map(Result::unwrap).collect();
    let low = numbers.iter().filter(|fd| **fd < SELECTABLE).count();
    (low, numbers.len())
}

fn limit() -> libc::rlimit {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is a valid place for the result.
    let answer = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    assert_eq!(answer, 0);
    limit
}

fn set_limit(limit: &libc::rlimit) {
    // SAFETY: the structure is only read.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, limit) }, 0);
}

/// Registers several threads that live until the process ends.
fn register(engine: &'static Engine, threads: usize) {
    let (tell, told) = channel();
    for _ in 0..threads {
        let tell = tell.clone();
        let body = move || {
            leave_signal_stack();
            tell.send(sys::gettid()).unwrap();
            loop {
                thread::park();
            }
        };
        let builder = thread::Builder::new().stack_size(256 << 10);
        builder.spawn(body).unwrap();
    }
    for tid in told.iter().take(threads) {
        let registration = Registration {
            tid,
            ..Registration::default()
        };
        engine.register(&registration).unwrap();
    }
}

#[test]
fn perf_events_of_many_threads_leave_selectable_numbers_free() {
    let most = limit();
    if most.rlim_max < 8192 {
        println!("skipped: the limit of descriptors is {}", most.rlim_max);
        return;
    }
    set_limit(&libc::rlimit {
        rlim_cur: 8192,
        ..most
    });
    let Some(engine) = common::with_events() else {
        return;
    };
    engine.start(10_000_000);
    let (low, all) = descriptors();
    register(engine, THREADS);
    let (low_after, all_after) = descriptors();
    assert_eq!(low_after, low);
    assert_eq!(all_after, all + THREADS, "each has an event");
    // If the program has few more numbers, it keeps them.
    set_limit(&libc::rlimit {
        rlim_cur: SELECTABLE as u64 + THREADS as u64 + 100,
        ..most
    });
    assert_eq!(engine.count(Cause::PerfFallback), 0);
    register(engine, 150);
    assert_eq!(descriptors(), (low, all_after));
    assert_eq!(engine.count(Cause::PerfFallback), 150, "they have timers");
    assert_eq!(engine.count(Cause::ArmFailed), 0);
    engine.stop();
}

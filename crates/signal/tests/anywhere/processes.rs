//! Processes made by a process that is being sampled. They are never signalled, never held up, and
//! start without any of our state. Their CPU time is not their parent's.

use super::{DELAY_US, Stage, WALKING, elsewhere};
use crate::common::{burn, register_here, run_threads, settle};
use dwell_signal::{Vantage, sys};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Two hundred intervals, and five ticks at 250 Hz.
const CHILD_CPU_NS: i64 = 20_000_000;
/// A child that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// Shift between the code of `_exit` and the status of `waitpid`.
const EXIT_CODE_SHIFT: i32 = 8;

/// The exit code of a child, which must not hang.
fn exit_code(child: i32) -> i32 {
    assert!(child > 0);
    let began = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: writes the status to a local.
        let ended = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) };
        if ended == child {
            break;
        }
        if began.elapsed() > PATIENCE {
            // SAFETY: a child of ours that has not been waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the child hangs");
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert!(libc::WIFEXITED(status), "status {status:#x}");
    libc::WEXITSTATUS(status)
}

/// Children that run in their parent's memory while all of its other threads are sampled.
pub fn vfork_children_are_left_alone(stage: &Stage<'_>) {
    let (engine, helpers, before) = (stage.engine, stage.helpers, elsewhere());
    stage.record(|| {
        run_threads(engine, 0..3, move |number| {
            burn(1_000_000);
            for round in 0..4 {
                let exec = (round + number) % 2 == 0;
                let status = helpers.vfork_child(CHILD_CPU_NS, 0, exec);
                assert_eq!(status, if exec { 0 } else { 7 << EXIT_CODE_SHIFT });
                burn(1_000_000);
            }
        })
    });
    assert_eq!(elsewhere(), before, "a child was signalled");
    // That would have been seen; and a foreign signal does a child no harm.
    let status = helpers.vfork_child(0, engine.signal(), false);
    assert_eq!(status, 7 << EXIT_CODE_SHIFT);
    assert_eq!(elsewhere(), before + 1);
}

/// Children that continue without becoming another program: they allocate, burn and exit.
pub fn forked_children_are_left_alone(stage: &Stage<'_>) {
    let (engine, helpers, before) = (stage.engine, stage.helpers, elsewhere());
    stage.record(|| {
        run_threads(engine, 0..3, move |_| {
            burn(1_000_000);
            for _ in 0..4 {
                exit_code(helpers.fork_child(CHILD_CPU_NS, 0, &WALKING));
                burn(1_000_000);
            }
        })
    });
    assert_eq!(elsewhere(), before, "a child was signalled");
    let child = helpers.fork_child(0, engine.signal(), &WALKING);
    exit_code(child);
    assert_eq!(elsewhere(), before + 1);
}

/// Forks while other threads wait in their handlers, some of them inside malloc.
pub fn a_fork_while_threads_wait(stage: &Stage<'_>) {
    if stage.vantage != Vantage::Paused {
        return;
    }
    let (engine, helpers, before) = (stage.engine, stage.helpers, elsewhere());
    DELAY_US.store(500, Ordering::Relaxed);
    let mut waiting = 0;
    stage.record(|| {
        let done = AtomicBool::new(false);
        let work = |seed| {
            let record = register_here(engine, seed);
            while !done.load(Ordering::Acquire) {
                drop(vec![1u8; 50_000]);
            }
            settle(engine, record)
        };
        let work = &work;
        thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|seed| scope.spawn(move || work(seed))).collect();
            for _ in 0..20 {
                while WALKING.load(Ordering::SeqCst) == 0 {
                    thread::yield_now();
                }
                waiting += exit_code(helpers.fork_child(1_000_000, 0, &WALKING));
            }
            done.store(true, Ordering::Release);
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        })
    });
    DELAY_US.store(0, Ordering::Relaxed);
    println!("{waiting} of 20 forks while a thread waited");
    // Walks last half a millisecond and follow each other at once.
    assert!(waiting > 0);
    assert_eq!(elsewhere(), before, "a child was signalled");
}

/// A fork that takes many intervals must not be restarted for each signal.
pub fn a_long_fork_comes_to_its_end(stage: &Stage<'_>) {
    const BYTES: usize = 128 << 20;
    let (engine, helpers) = (stage.engine, stage.helpers);
    let mut memory = vec![0u8; BYTES];
    for page in memory.chunks_mut(4096) {
        page[0] = 1;
    }
    stage.record(|| {
        run_threads(engine, 0..1, move |_| {
            let before_ns = sys::own_cpu_ns();
            for _ in 0..3 {
                exit_code(helpers.fork_child(0, 0, &WALKING));
            }
            let each_ns = (sys::own_cpu_ns() - before_ns) / 3;
            println!("a fork took {} us of CPU time", each_ns / 1000);
        })
    });
    drop(memory);
}

/// Programs started by `posix_spawn` and by the standard library.
pub fn started_programs_inherit_nothing(stage: &Stage<'_>) {
    let (engine, before) = (stage.engine, elsewhere());
    stage.record(|| {
        run_threads(engine, 0..2, move |_| {
            for _ in 0..5 {
                burn(1_000_000);
                exit_code_of_true();
                let output = Command::new("/bin/ls")
                    .args(["-l", "/proc/self/fd"])
                    .output();
                let text = String::from_utf8(output.unwrap().stdout).unwrap();
                assert!(text.contains("/proc/"), "{text}");
                assert!(!text.contains("perf_event"), "{text}");
            }
        })
    });
    assert_eq!(elsewhere(), before, "a child was signalled");
}

fn exit_code_of_true() {
    let name = c"/bin/true";
    let arguments = [name.as_ptr().cast_mut(), std::ptr::null_mut()];
    let (mut child, none) = (0, std::ptr::null());
    // SAFETY: writes the child to a local; the path and both lists are C strings, ended by null.
    let error = unsafe {
        let environment = arguments[1..].as_ptr();
        libc::posix_spawn(
            &mut child,
            name.as_ptr(),
            none,
            none.cast(),
            arguments.as_ptr(),
            environment,
        )
    };
    assert_eq!(error, 0);
    assert_eq!(exit_code(child), 0);
}

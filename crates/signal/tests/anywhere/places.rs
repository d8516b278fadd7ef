//! Signals that arrive on another stack, in malloc, in threads that block signals, and in a thread
//! that has no thread-local storage.

use super::{BARE_TID, IN_MALLOC_COUNT, INTERVAL_NS, Stage, handled};
use crate::common::{block, burn, burn_until, longest_window_ns, run_threads};
use dwell_signal::slots::Reason;
use dwell_signal::{Engine, Registration, sys};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A signal of the program's own.
const THEIR_SIGNAL: i32 = 60;
/// Size of an alternate stack; the value of `SIGSTKSZ` for long. A debug build needs more than
/// that.
const STACK_BYTES: usize = 64 << 10;

/// Minimum number of signals that come to the alternate stack.
const SIGNALS: u32 = 3;

extern "C" fn burn_in_handler(_: i32) {
    block(Engine::get().unwrap().signal(), false);
    let before = handled();
    burn(20_000_000);
    burn_until(|| handled() >= before + SIGNALS);
}

/// A long handler of the program, on its alternate stack: ours runs on top of it.
///
/// The program's signal is sent while ours is blocked. If both were pending at once, the kernel
/// would enter our handler first, and theirs on top of it before our first instruction. Then ours
/// would be blocked until theirs ends.
pub fn on_an_alternate_stack(stage: &Stage<'_>) {
    static STACK: AtomicU64 = AtomicU64::new(0);
    let action = sys::KernelAction {
        handler: burn_in_handler as *const () as usize,
        flags: (libc::SA_ONSTACK | libc::SA_RESTART) as u64 | sys::SA_RESTORER,
        restorer: sys::sigaction(libc::SIGSEGV, None).unwrap().restorer,
        mask: 0,
    };
    sys::sigaction(THEIR_SIGNAL, Some(&action)).unwrap();
    let samples = stage.record(|| {
        run_threads(stage.engine, 0..1, |_| {
            let mut stack = vec![0u8; STACK_BYTES];
            let new = libc::stack_t {
                ss_sp: stack.as_mut_ptr().cast(),
                ss_flags: 0,
                ss_size: STACK_BYTES,
            };
            let mut old = new;
            // SAFETY: the stack lives until the old one is set again, and no handler is on it then.
            assert_eq!(unsafe { libc::sigaltstack(&new, &mut old) }, 0);
            STACK.store(new.ss_sp as u64, Ordering::Relaxed);
            let ours = Engine::get().unwrap().signal();
            block(ours, true);
            sys::raise(THEIR_SIGNAL);
            block(ours, false);
            // SAFETY: as it was before.
            assert_eq!(unsafe { libc::sigaltstack(&old, std::ptr::null_mut()) }, 0);
        })
    });
    let lo = STACK.load(Ordering::Relaxed);
    let there = lo..lo + STACK_BYTES as u64;
    let on_it = samples.iter().filter(|s| there.contains(&s.sp)).count();
    assert!(on_it >= SIGNALS as usize, "{on_it}");
}

/// Allocates and frees all the time.
pub fn inside_malloc(stage: &Stage<'_>) {
    IN_MALLOC_COUNT.store(0, Ordering::Relaxed);
    let samples = stage.record(|| {
        run_threads(stage.engine, 0..3, |number| {
            let until_ns = sys::own_cpu_ns() + 150_000_000;
            let mut kept: Vec<Vec<u8>> = Vec::new();
            let mut state = number;
            while sys::own_cpu_ns() < until_ns {
                for _ in 0..200 {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    kept.push(vec![1; 3 << (state >> 60)]);
                    if kept.len() > 300 {
                        let at = (state >> 33) as usize % kept.len();
                        drop(kept.swap_remove(at));
                    }
                }
            }
        })
    });
    let inside = IN_MALLOC_COUNT.load(Ordering::Relaxed);
    println!("{inside} of {} samples in malloc", samples.len());
    // More than half of the time goes into malloc and free; one sample in a hundred is certain.
    assert!(inside * 100 >= samples.len() as u64 && inside > 0);
}

/// Blocks or unblocks signals of the calling thread.
fn change_mask(how: i32, set: u64) {
    let none = std::ptr::null_mut::<u64>();
    // SAFETY: the kernel reads 8 bytes from a local.
    let result =
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const set, none, 8usize) };
    assert_eq!(result, 0);
}

/// Walks meet unreadable memory while the thread blocks the signals of faults.
pub fn with_faults_blocked(stage: &Stage<'_>) {
    let samples = stage.record(|| {
        run_threads(stage.engine, 0..2, |_| {
            change_mask(libc::SIG_BLOCK, sys::FAULT_SIGNALS);
            burn(30_000_000);
            change_mask(libc::SIG_UNBLOCK, sys::FAULT_SIGNALS);
        })
    });
    assert!(samples.iter().any(|s| s.reason == Reason::CpuTime));
}

/// A thread that blocks all signals for long has its time counted afterwards.
pub fn with_all_signals_blocked(stage: &Stage<'_>) {
    const BLOCKED_NS: u64 = 20_000_000;
    let samples = stage.record(|| {
        run_threads(stage.engine, 0..2, |_| {
            for _ in 0..3 {
                change_mask(libc::SIG_BLOCK, u64::MAX);
                let before = handled();
                burn(BLOCKED_NS);
                change_mask(libc::SIG_UNBLOCK, u64::MAX);
                burn_until(|| handled() > before);
            }
        })
    });
    // The blocked time comes in one sample, minus the window in which it began.
    let least = BLOCKED_NS - longest_window_ns(INTERVAL_NS);
    let whole = samples.iter().filter(|s| s.weight_ns >= least).count();
    assert!(whole >= 6, "{whole} of 6");
}

/// A thread whose thread pointer is null: it has been made, but not set up yet.
pub fn without_a_thread_pointer(stage: &Stage<'_>) {
    let engine = stage.engine;
    let samples = stage.record(|| {
        let mut stack = vec![0u64; 8 << 10];
        let (tid, stop) = (AtomicI32::new(0), AtomicI32::new(0));
        let end = stack.as_mut_ptr_range().end;
        // The kernel wants stacks to be aligned.
        let end = end.map_addr(|address| address & !63).cast();
        let made = stage.helpers.bare_thread(end, tid.as_ptr(), stop.as_ptr());
        assert!(made > 0, "{made}");
        BARE_TID.store(made as i32, Ordering::Relaxed);
        let registration = Registration {
            tid: made as i32,
            ..Registration::default()
        };
        crate::common::leave_signal_stack();
        let record = engine.register(&registration).unwrap();
        let began = Instant::now();
        while record.samples() < 5 {
            assert!(began.elapsed() < Duration::from_secs(60), "not sampled");
            thread::sleep(Duration::from_millis(1));
        }
        assert!(engine.end(record));
        stop.store(1, Ordering::Release);
        while tid.load(Ordering::Acquire) != 0 {
            thread::yield_now();
        }
        Vec::new()
    });
    assert!(samples.len() >= 5);
}

//! Signals that arrive in a thread that is ending, and threads that end without notice.

use super::Stage;
use crate::common::{burn, burn_until, register_here};
use dwell_signal::{Cause, Engine, ThreadRecord};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

static SAMPLED_IN_DESTRUCTORS: AtomicU64 = AtomicU64::new(0);

/// Burns until the thread has been sampled twice more.
fn be_sampled(record: &'static ThreadRecord) {
    let before = record.samples();
    burn_until(|| record.samples() >= before + 2);
    SAMPLED_IN_DESTRUCTORS.fetch_add(1, Ordering::Relaxed);
}

struct Late(&'static ThreadRecord);

impl Drop for Late {
    fn drop(&mut self) {
        be_sampled(self.0);
    }
}

thread_local! {
    static LATE: Cell<Option<Late>> = const { Cell::new(None) };
}

extern "C" fn destroy(record: *mut c_void) {
    // SAFETY: what `set_key` stored: a record, which lives for ever.
    be_sampled(unsafe { &*record.cast::<ThreadRecord>() });
}

fn key() -> libc::pthread_key_t {
    // 0 means that the key has not been made yet: the key is kept plus one.
    static KEY: AtomicU32 = AtomicU32::new(0);
    let known = KEY.load(Ordering::Relaxed);
    if known != 0 {
        return known - 1;
    }
    let mut key = 0;
    // SAFETY: writes the key to a local; what is stored under it is what `destroy` takes.
    let made = unsafe { libc::pthread_key_create(&mut key, Some(destroy)) };
    assert_eq!(made, 0);
    KEY.store(key + 1, Ordering::Relaxed);
    key
}

fn set_key(key: libc::pthread_key_t, record: &'static ThreadRecord) {
    let value = std::ptr::from_ref(record).cast();
    // SAFETY: a key of ours; its destructor takes a record.
    assert_eq!(unsafe { libc::pthread_setspecific(key, value) }, 0);
}

/// The threads have exited without notice. They are found, and their records are free again.
fn await_burial(engine: &'static Engine) {
    for _ in 0..1_000_000 {
        engine.tend();
        if engine.live_records().count() == 0 {
            return;
        }
        thread::yield_now();
    }
    panic!("{:?}", engine.counters());
}

/// Destructors of both kinds run after everything else and are sampled like it.
pub fn destructors_are_sampled(stage: &Stage<'_>) {
    const THREADS: u64 = 20;
    let engine = stage.engine;
    SAMPLED_IN_DESTRUCTORS.store(0, Ordering::Relaxed);
    let key = key();
    stage.record(|| {
        for seed in 0..THREADS {
            let work = move || {
                let record = register_here(engine, seed);
                set_key(key, record);
                LATE.set(Some(Late(record)));
                burn(200_000);
            };
            thread::spawn(work).join().unwrap();
        }
        await_burial(engine);
        Vec::new()
    });
    let seen = SAMPLED_IN_DESTRUCTORS.load(Ordering::Relaxed);
    assert_eq!(seen, 2 * THREADS);
}

unsafe extern "C-unwind" {
    fn pthread_exit(value: *mut c_void) -> !;
}

extern "C-unwind" fn leave(_: *mut c_void) -> *mut c_void {
    let engine = Engine::get().unwrap();
    let record = register_here(engine, 9);
    set_key(key(), record);
    burn(300_000);
    // SAFETY: no frame of this thread has anything to drop.
    unsafe { pthread_exit(std::ptr::null_mut()) }
}

/// Many threads that end by `pthread_exit`, at random moments relative to the signals.
pub fn threads_end_in_the_middle(stage: &Stage<'_>) {
    const ROUNDS: u64 = 30;
    type Start = extern "C" fn(*mut c_void) -> *mut c_void;
    let before = stage.engine.counters().get(Cause::Vanished);
    SAMPLED_IN_DESTRUCTORS.store(0, Ordering::Relaxed);
    stage.record(|| {
        for _ in 0..ROUNDS {
            let spawn = || {
                let mut thread = 0;
                // SAFETY: the same but for what may unwind: `pthread_exit` does, and the C library
                // that begins this function catches it.
                let start = unsafe { std::mem::transmute::<*const (), Start>(leave as *const ()) };
                let none = std::ptr::null_mut::<c_void>();
                // SAFETY: writes the thread to a local; no attributes, no argument.
                let made = unsafe { libc::pthread_create(&mut thread, none.cast(), start, none) };
                assert_eq!(made, 0);
                thread
            };
            let threads = [spawn(), spawn(), spawn()];
            for thread in threads {
                // SAFETY: a thread made above and joined once.
                let joined = unsafe { libc::pthread_join(thread, std::ptr::null_mut()) };
                assert_eq!(joined, 0);
            }
        }
        await_burial(stage.engine);
        Vec::new()
    });
    let vanished = stage.engine.counters().get(Cause::Vanished) - before;
    assert_eq!(vanished, 3 * ROUNDS);
    let seen = SAMPLED_IN_DESTRUCTORS.load(Ordering::Relaxed);
    assert_eq!(seen, 3 * ROUNDS);
}

//! A thread's alternate signal stack may have no room for a walk, let alone for one with a fault
//! in it. Its samples are marked so, and the process is not harmed.

mod common;

use common::{Drainer, burn, register_here, settle, weight_of};
use dwell_signal::{Config, Vantage, WalkTarget};
use dwell_walker::{Failure, Memory, Outcome};
use std::sync::atomic::{AtomicBool, Ordering};

const INTERVAL_NS: u64 = 500_000;

/// The kernel's minimum size, and a little more: our handler is called, but no walk fits.
const MORE_BYTES: usize = 4096;

/// Whether the thread has the small stack. Before and after it is sampled on its ordinary one.
static IS_SMALL: AtomicBool = AtomicBool::new(false);

extern "C" fn walk_hook(target: &mut WalkTarget<'_>) {
    let readable = target.live().word(0x10_0000).is_ok();
    let is_small = IS_SMALL.load(Ordering::Relaxed);
    assert!(
        !is_small,
        "walked on a stack without room (readable: {readable})"
    );
}

#[test]
fn small_signal_stack_is_not_walked_on() {
    let engine = dwell_signal::init(&Config::default()).unwrap();
    engine.set_walk(walk_hook);
    for vantage in [Vantage::Handler, Vantage::Snapshot, Vantage::Paused] {
        engine.set_vantage(vantage, 100);
        assert_eq!(engine.start(INTERVAL_NS), 0);
        let drainer = Drainer::begin(engine);
        let thread = std::thread::spawn(move || {
            let record = register_here(engine, 7);
            // SAFETY: asks for a number.
            let least = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
            let bytes = least.max(2048) + MORE_BYTES;
            let mut stack = vec![0u8; bytes];
            let new = libc::stack_t {
                ss_sp: stack.as_mut_ptr().cast(),
                ss_flags: 0,
                ss_size: bytes,
            };
            // SAFETY: the stack lives until it is taken away again.
            assert_eq!(unsafe { libc::sigaltstack(&new, std::ptr::null_mut()) }, 0);
            IS_SMALL.store(true, Ordering::Relaxed);
            burn(60_000_000);
            IS_SMALL.store(false, Ordering::Relaxed);
            common::leave_signal_stack();
            settle(engine, record)
        });
        let account = thread.join().unwrap();
        assert!(engine.stop());
        let samples = drainer.finish();
        account.assert_weight(weight_of(&samples, &account), INTERVAL_NS);
        let failed = Outcome::Failed(Failure::SignalStack);
        let short = samples
            .iter()
            .filter(|s| s.walk.is_some_and(|w| w.outcome == failed));
        assert!(short.count() > 50, "{vantage:?}: {} samples", samples.len());
        engine.reap(|_| ());
    }
}

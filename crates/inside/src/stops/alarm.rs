//! Wakes the watcher of safepoints when a safepoint is late.
//!
//! The JVM has no event for the begin of a safepoint. But while the VM's thread waits for threads
//! it naps, about 60 us at a time in the first millisecond
//! (src/hotspot/share/runtime/safepoint.cpp, `back_off`). So it is switched far more often than at
//! other times, and the kernel reports that where perf events are permitted. A separate thread
//! waits for these reports. The watcher itself may have to wait for the end of a safepoint, for
//! which there is no file descriptor.

use super::alarms::{Alarms, Lasted};
use crate::hotspot::Setup;
use dwell_recorder::sys::allocator::OwnThread;
use dwell_recorder::sys::bell::{self, Bell};
use dwell_recorder::sys::joined;
use dwell_recorder::sys::process;
use dwell_recorder::sys::switches::Switches;
use dwell_signal::{EngineKind, Live};
use dwell_walker::hotspot::safepoints::{Safepoints, State};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{JoinHandle, Thread};

/// Switches of the VM's thread in about half a millisecond of waiting for threads.
const TURNS: u32 = 8;
/// The JVM's name for it.
const VM_THREAD: &str = "VM Thread";
/// Once the watcher observes a safepoint, it needs no more alarms for it.
const SEEN_NS: u64 = 10_000_000;
/// Timeout of waits that need none.
const LONG_NS: u64 = 60_000_000_000;

/// Wakes the watcher from each kind of sleep.
#[derive(Debug)]
pub struct Waker {
    /// Number of alarms. The watcher may sleep on this word.
    pub count: AtomicU32,
    /// Whether an alarm can wake it now. If so, it checks less often by its own timer.
    pub is_set: AtomicBool,
}

impl Waker {
    fn wake(&self, watcher: &Thread) {
        self.count.fetch_add(1, Ordering::SeqCst);
        dwell_signal::sys::futex_wake(&self.count);
        watcher.unpark();
    }
}

/// The thread.
pub struct Alarm {
    stop: Arc<AtomicBool>,
    bell: Arc<Bell>,
    thread: JoinHandle<()>,
}

impl Alarm {
    /// Begins to wait; `None` if perf events must not be used. Without a resource it needs it
    /// reports nothing, and the watcher's own timer remains.
    #[must_use]
    pub fn start(
        setup: &Setup,
        found: Safepoints,
        watcher: Thread,
        waker: Arc<Waker>,
    ) -> Option<Alarm> {
        if setup.engine.kind() == EngineKind::Timer {
            return None;
        }
        let engine = setup.engine;
        let bell = Arc::new(Bell::new()?);
        let stop = Arc::new(AtomicBool::new(false));
        let (own_bell, own_stop) = (Arc::clone(&bell), Arc::clone(&stop));
        let run = move || {
            process::block_signals();
            process::unblock_signal(engine.signal());
            let _own = OwnThread::begin();
            let wake = || waker.wake(&watcher);
            wait(
                &engine.live(),
                &found,
                &own_bell,
                &own_stop,
                (&waker.is_set, wake),
            );
        };
        let thread = std::thread::Builder::new()
            .name("dwell-late".into())
            .spawn(run)
            .ok()?;
        Some(Alarm { stop, bell, thread })
    }

    /// Ends it.
    pub fn end(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.bell.ring();
        joined::join(self.thread);
    }
}

/// Calls `wake` for each late safepoint, until it must stop.
fn wait(
    live: &Live,
    found: &Safepoints,
    bell: &Bell,
    stop: &AtomicBool,
    (is_set, wake): (&AtomicBool, impl Fn()),
) {
    let Some(tid) = vm_thread() else { return };
    let mut alarms = Alarms::default();
    let mut switches = None;
    while !stop.load(Ordering::SeqCst) {
        let pause_ns = alarms.pause_ns(process::monotonic_ns());
        if pause_ns > 0 {
            // In a virtual machine, each notification costs the thread up to some microseconds.
            if switches.take().is_some() {
                // The watcher checks more often from now on.
                wake();
            }
            let _ = bell::wait([bell.as_raw_fd()], pause_ns);
            continue;
        }
        let Some(open) = switches.take().or_else(|| Switches::open(tid, TURNS).ok()) else {
            return;
        };
        let open = switches.insert(open);
        open.forget();
        is_set.store(true, Ordering::SeqCst);
        let [_, is_switched] = bell::wait([bell.as_raw_fd(), open.as_raw_fd()], LONG_NS);
        is_set.store(false, Ordering::SeqCst);
        if !is_switched {
            continue;
        }
        if found.state(live) == Ok(State::Reaching) {
            wake();
            let _ = bell::wait([bell.as_raw_fd()], SEEN_NS);
        } else {
            alarms.was_false(process::monotonic_ns(), last(found, live));
        }
    }
}

/// The last safepoint, ended or not.
fn last(found: &Safepoints, live: &Live) -> Option<Lasted> {
    let noted = found.noted(live).ok()??;
    let is_over = noted.ended_ns >= noted.began_ns;
    let end_ns = match is_over {
        true => noted.ended_ns,
        false => process::monotonic_ns(),
    };
    Some(Lasted {
        began_ns: noted.began_ns,
        lasted_ns: end_ns.saturating_sub(noted.began_ns),
    })
}

/// Other threads may have its name, but they are younger.
fn vm_thread() -> Option<i32> {
    let mut all = process::thread_ids();
    all.sort_unstable();
    (all.into_iter()).find(|tid| process::thread_comm(*tid) == VM_THREAD)
}

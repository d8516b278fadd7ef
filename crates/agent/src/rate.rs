//! Has the JVM choose about so many objects in a second: the sampler's interval is set anew in the
//! callbacks of objects that it has chosen, on whatever thread they come. See
//! [`dwell_recorder::rate`] for why weights stay right.

use crate::jvm::allocations;
use dwell_inside::hotspot::Agent;
use dwell_recorder::rate::Rate;
use dwell_recorder::sys::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Finds the interval, while it adapts.
static RATE: Mutex<Option<Rate>> = Mutex::new(None);
/// Whether it does: most recordings have nothing to lock.
static ADAPTS: AtomicBool = AtomicBool::new(false);
/// Objects that were chosen while another thread was at it.
static MISSED: AtomicU64 = AtomicU64::new(0);

/// The interval adapts from `bytes` on, so that about `per_s` objects are chosen in a second; 0: it
/// stays.
pub fn begin(agent: &'static Agent, per_s: u64, bytes: u64) {
    let mut rate = RATE.lock().unwrap_or_else(PoisonError::into_inner);
    let adapts = per_s != 0 && bytes != 0;
    *rate = adapts.then(|| Rate::new(per_s, bytes, process::monotonic_ns()));
    let told = if adapts { bytes } else { 0 };
    agent.adapted_bytes.store(told, Ordering::Relaxed);
    ADAPTS.store(adapts, Ordering::Relaxed);
}

/// It stays what it is.
pub fn end(agent: &'static Agent) {
    begin(agent, 0, 0);
}

/// An object was chosen, in its callback.
pub fn sampled(agent: &'static Agent) {
    if !ADAPTS.load(Ordering::Relaxed) {
        return;
    }
    let Ok(mut rate) = RATE.try_lock() else {
        MISSED.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let Some(rate) = rate.as_mut() else { return };
    let before = rate.interval();
    let count = 1 + MISSED.swap(0, Ordering::Relaxed);
    if let Some(bytes) = rate.sampled(count, process::monotonic_ns()) {
        match allocations::adapt(bytes) {
            true => agent.adapted_bytes.store(bytes, Ordering::Relaxed),
            false => rate.stays(before),
        }
    }
}

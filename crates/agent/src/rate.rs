//! Limits the rate of sampled objects. The callback of a chosen object adapts the sampler's
//! interval, on the allocating thread. See [`dwell_recorder::rate`] for why weights stay right.

use crate::jvm::allocations;
use dwell_inside::hotspot::Agent;
use dwell_recorder::chosen::Events;
use dwell_recorder::rate::{MOST, Rate, Shared};
use dwell_recorder::sys::process;
use std::sync::atomic::Ordering;

/// Adapts the interval.
static RATE: Shared = Shared::fixed();

/// Begins to sample objects as `events` says, with a fixed or adaptive interval.
pub fn begin(agent: &'static Agent, events: &Events) {
    let (bytes, now_ns) = (events.object_bytes(), process::monotonic_ns());
    let rate = match (events.alloc_rate, events.max_rate) {
        _ if bytes == 0 => None,
        (0, 0) => None,
        (0, most) => Some(Rate::at_most(most, bytes, MOST, now_ns)),
        (wanted, _) => Some(Rate::about(wanted, bytes, now_ns)),
    };
    if bytes != 0 {
        agent.lost_objects.prepare();
    }
    let told = rate.as_ref().map_or(0, Rate::interval);
    agent.adapted_bytes.store(told, Ordering::Relaxed);
    RATE.begin(rate);
}

/// Fixes the interval.
pub fn end(agent: &'static Agent) {
    begin(agent, &Events::default());
}

/// Counts a chosen object, in its callback.
pub fn sampled(agent: &'static Agent) {
    RATE.sampled(process::monotonic_ns(), |bytes| {
        let is_set = allocations::adapt(bytes);
        if is_set {
            agent.adapted_bytes.store(bytes, Ordering::Relaxed);
        }
        is_set
    });
}

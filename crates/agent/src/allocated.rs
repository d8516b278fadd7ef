//! Records an object that the JVM's sampler has chosen, on the thread that allocates it: as an
//! allocation, as an object to follow, or as both.

use crate::alive;
use crate::here::here;
use crate::jvm::allocations::{self, Chosen};
use crate::rate;
use dwell_inside::vantage::allocating;
use dwell_recorder::allocated::weight;
use dwell_recorder::gate::Gate;
use dwell_signal::Allocation;

/// Open while all chosen objects are recorded, and not only the followed ones.
pub static RECORDS_ALL: Gate = Gate::closed();

/// The calling thread has allocated an object that the JVM's sampler has chosen.
pub fn allocated(chosen: &Chosen) {
    let Some((agent, record)) = here() else {
        return;
    };
    rate::sampled(agent);
    let env = chosen.env;
    let recorded = RECORDS_ALL.enter();
    let followed = alive::follow(agent, env, chosen.object);
    if followed.is_none() && recorded.is_none() {
        return;
    }
    let allocation = Allocation {
        size: chosen.size,
        weight: weight(chosen.size, chosen.interval),
        class: allocations::number_of(&agent.classes, chosen.jvmti, chosen.class),
        followed: followed.unwrap_or_default(),
        is_told: recorded.is_some(),
    };
    let is_seen = agent.engine.allocated(record, &allocation);
    if !is_seen && allocation.is_told && agent.engine.is_running() {
        let (class, thread) = (allocation.class, record.user());
        let method = allocating::number(agent, record);
        (agent.lost_objects).add(class, thread, method, allocation.weight);
    }
    if let (Some(followed), false) = (followed, is_seen) {
        alive::forget(agent, env, &followed);
    }
}

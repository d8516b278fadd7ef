//! Changes the events of the running recording.
//!
//! First the JVM grants what it may refuse, before anything has changed. Then the agent ends what
//! is switched off, so that no more of these events arrive. Then the file gets a new chunk, with a
//! description that is true for all its contents. Then the agent begins what is switched on.

use crate::alive;
use crate::allocated::{RECORDS_ALL, allocated};
use crate::contended;
use crate::jvm::allocations::{self, Sampling};
use crate::jvm::monitors::{self, Watching};
use crate::rate;
use dwell_inside::hotspot::Agent;
use dwell_recorder::chosen::{Events, Running, changed};
use dwell_recorder::options::Options;
use jvm_sys::{Env, JavaVm};
use std::time::Duration;

/// The JVM, and the calling thread's environment.
type On = (JavaVm, Env);

/// Records the events of `options` from now on; `text` is their text. Answers with the status and
/// the events before the change.
///
/// # Errors
/// One line for the user. The recording is unchanged unless the line says otherwise.
pub fn change(
    on: On,
    agent: &'static Agent,
    running: &Running,
    options: &Options,
    text: &str,
) -> Result<String, String> {
    let (before, after) = (running.events, changed(running, options, text)?);
    if before != after {
        let ready = Ready::get(on, &before, &after, &options.asked_objects())?;
        end(on, agent, &before, &after)?;
        let written = agent.change(after, text);
        ready.begin(on, agent, &before, &after);
        written?;
    }
    Ok(format!("was={}\n{}", before.text(), agent.status()))
}

/// Grants of the JVM for the events that are switched on.
struct Ready {
    sampling: Option<Sampling>,
    watching: Option<Watching>,
}

impl Ready {
    fn get(on: On, before: &Events, after: &Events, asked: &str) -> Result<Ready, String> {
        let (had, bytes) = (before.object_bytes(), after.object_bytes());
        let sampling = match (had, bytes) {
            (0, 1..) => Some(Sampling::prepare(on.0, asked, bytes, allocated)?),
            _ => None,
        };
        let watching = match before.lock.is_zero() && !after.lock.is_zero() {
            true => Some(Watching::prepare(on.0, contended::CALLBACKS)?),
            false => None,
        };
        if had != 0 && bytes != 0 && objects_of(before) != objects_of(after) {
            // The interval may have adapted since.
            allocations::set_interval(bytes)?;
        }
        Ok(Ready { sampling, watching })
    }

    fn begin(self, on: On, agent: &'static Agent, before: &Events, after: &Events) {
        if before.alive_bytes == 0 && after.alive_bytes != 0 {
            alive::begin(agent, on.1);
        }
        if objects_of(before) != objects_of(after) {
            rate::begin(agent, after);
            if after.object_bytes() != 0 {
                // The interval may have changed again. The JVM accepted this one before.
                let _ = allocations::set_interval(after.object_bytes());
            }
        }
        if after.alloc_bytes != 0 {
            RECORDS_ALL.open();
        }
        if let Some(sampling) = self.sampling {
            sampling.begin();
        }
        match self.watching {
            Some(watching) => {
                contended::begin(agent, after);
                watching.begin();
            }
            None if waits_of(before) != waits_of(after) && !after.lock.is_zero() => {
                contended::set_interval(agent, after);
            }
            None => {}
        }
    }
}

/// The settings that decide which objects are sampled.
fn objects_of(events: &Events) -> [u64; 3] {
    [events.object_bytes(), events.alloc_rate, events.max_rate]
}

/// The settings that decide which waits are recorded.
fn waits_of(events: &Events) -> (Duration, u64) {
    (events.lock, events.max_rate)
}

/// Ends what is switched off.
fn end(on: On, agent: &'static Agent, before: &Events, after: &Events) -> Result<(), String> {
    if before.alive_bytes != 0 && after.alive_bytes == 0 {
        // Last check which objects are alive.
        alive::look(agent, on.1);
        agent.dump()?;
        alive::end(agent, on.1);
    }
    if after.alloc_bytes == 0 {
        RECORDS_ALL.close();
    }
    if after.object_bytes() == 0 {
        allocations::end();
    }
    if after.lock.is_zero() {
        monitors::end();
        contended::end(agent);
    }
    Ok(())
}

//! Mono as a runtime of a recording. Made once per process and never freed, because callbacks may
//! arrive as long as Mono lives.

use crate::known_libraries;
use crate::looks::MonoLooks;
use crate::waits::WAITS;
use crate::walks::MonoWalks;
use dwell_recorder::recorder::Recorder;
use dwell_recorder::runtime::{About, Nothing, Runtime};
use dwell_signal::{ThreadRecord, Vantage};
use dwell_wall::waits::Waits;
use std::sync::OnceLock;

/// The Mono in this process.
#[derive(Debug)]
pub struct Mono {
    /// Its version, as text.
    pub version: String,
}

/// The agent: a recorder of a Mono.
pub type Agent = Recorder<Mono>;

static AGENT: OnceLock<Agent> = OnceLock::new();

/// The agent, once made.
#[must_use]
pub fn agent() -> Option<&'static Agent> {
    AGENT.get()
}

/// Publishes the agent; only the first one is kept.
pub fn publish(agent: Agent) -> &'static Agent {
    AGENT.get_or_init(|| agent)
}

impl Runtime for Mono {
    const PROCESS: &'static str = "Mono process";
    const WALKS_COPIES: bool = false;
    const KEEPS_SAMPLES: bool = true;
    // If true, Mono ended itself in 5 of 36 runs with its own `log:sample` on a busy machine
    // ("Cannot transition thread ... from SELF_SUSPENDED with REQUEST_PULSE"). If false, this
    // happened in 0 of 66 runs. The reason is unknown.
    const MAPS_TURNS: bool = false;
    const WAITS: &'static Waits = &WAITS;

    type Walks = MonoWalks;
    type Looks = MonoLooks;
    type Watch = Nothing;
    type Shared = ();

    fn about(&self) -> About {
        About {
            name: "Mono".into(),
            version: self.version.clone(),
        }
    }

    fn is_own_library(name: &str) -> bool {
        WAITS.is_library(name)
    }

    fn is_ahead_of_time(name: &str) -> bool {
        known_libraries::is_ahead_of_time(name)
    }

    /// Only Mono itself walks managed frames, and only those of the calling thread.
    fn vantage(&self, _: Vantage) -> Vantage {
        Vantage::Handler
    }

    fn can_walk(&self) -> bool {
        known_libraries::is_known()
    }

    fn server(&self) -> impl FnOnce() + Send + 'static {
        || {}
    }

    /// Mono reports a name when it changes.
    fn renamed(&self, _: &ThreadRecord, _: &mut u64) -> Option<String> {
        None
    }
}

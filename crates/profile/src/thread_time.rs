//! What the kernel says of threads that were sampled: their time on a processor, the time they were
//! ready and had none, and how often they got one.

use crate::builder::Builder;
use crate::profile::Profile;
use crate::sample::ThreadId;
use dwell_jfr::reader::{GenericEvent, Recording, Value};
use std::collections::BTreeMap;

/// The kernel's account of a thread, summed over the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// The thread.
    pub thread: ThreadId,
    /// Of which time the rest tells.
    pub duration_ns: u64,
    /// On a processor.
    pub cpu_ns: u64,
    /// Ready, without a processor.
    pub waited_ns: u64,
    /// How often it got one.
    pub turns: u64,
}

/// Takes the accounts of a recording.
pub(crate) fn add(builder: &mut Builder, recording: &Recording) {
    let count = |event: &GenericEvent, field| {
        let number = event.int(field).unwrap_or(0);
        u64::try_from(number).unwrap_or(0)
    };
    let mut sums: BTreeMap<ThreadId, ThreadTime> = BTreeMap::new();
    for event in recording.events_named("dwell.ThreadTime") {
        let Some(Value::Thread(thread)) = event.get("sampledThread") else {
            continue;
        };
        let sum = sums.entry(*thread).or_default();
        sum.thread = *thread;
        for (into, field) in [
            (&mut sum.duration_ns, "duration"),
            (&mut sum.cpu_ns, "cpu"),
            (&mut sum.waited_ns, "waited"),
            (&mut sum.turns, "turns"),
        ] {
            *into = into.saturating_add(count(event, field));
        }
    }
    builder.thread_times = sums.into_values().collect();
}

impl Profile {
    /// The kernel's account of threads that were sampled, by thread; empty if there is none.
    #[must_use]
    pub fn thread_times(&self) -> &[ThreadTime] {
        &self.thread_times
    }
}

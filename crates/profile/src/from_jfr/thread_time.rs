//! Reads the kernel's accounts of threads.

use super::fields::count;
use crate::builder::Builder;
use crate::sample::ThreadId;
use crate::thread_time::ThreadTime;
use dwell_jfr::reader::{Recording, Value};
use std::collections::BTreeMap;

/// Takes the accounts of a recording.
pub(super) fn add(builder: &mut Builder, recording: &Recording) {
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

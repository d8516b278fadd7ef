//! Reads the kernel's accounts of threads.

use crate::builder::Builder;
use crate::sample::ThreadId;
use crate::thread_time::ThreadTime;
use dwell_jfr::kinds::told;
use dwell_jfr::reader::Recording;
use std::collections::{BTreeMap, HashSet};

/// Takes the accounts of a recording.
pub(super) fn add(builder: &mut Builder, recording: &Recording) {
    let carriers = recording.samples.iter().filter_map(|sample| sample.carrier);
    let carriers: HashSet<ThreadId> = carriers.collect();
    let mut sums: BTreeMap<ThreadId, ThreadTime> = BTreeMap::new();
    for event in recording.told::<told::ThreadTime>() {
        let Some(thread) = event.thread else {
            continue;
        };
        let sum = sums.entry(thread).or_insert_with(|| ThreadTime {
            thread,
            since_ns: event.time_ns,
            is_carrier: carriers.contains(&thread),
            ..ThreadTime::default()
        });
        sum.since_ns = sum.since_ns.min(event.time_ns);
        for (into, more) in [
            (&mut sum.duration_ns, event.duration_ns),
            (&mut sum.cpu_ns, event.cpu_ns),
            (&mut sum.waited_ns, event.waited_ns),
            (&mut sum.turns, event.turns),
        ] {
            *into = into.saturating_add(more);
        }
    }
    builder.thread_times = sums.into_values().collect();
}

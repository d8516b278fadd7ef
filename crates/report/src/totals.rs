//! Sums of a whole recording as JSON, for programs that divide them by a number of their own, as a
//! benchmark does by its operations.

use dwell_profile::{Measured, Profile, Unit, WallFilter, Weight, group_of};
use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::plain::plain;

/// Maximum number of rows of wall time.
const ROWS: usize = 1000;

/// CPU time by kind of work, allocated bytes, and wall time by thread group and cause, each with
/// its standard error. A part that was not recorded is null.
pub(crate) fn value(profile: &Profile) -> Value {
    json!({
        "lengthNs": profile.info().duration_ns,
        "cpu": cpu(profile),
        "allocated": allocated(profile),
        "wall": wall(profile),
    })
}

/// A part of a sum that is known without error.
fn part(weight: &Weight, whole: &Weight) -> (u64, f64) {
    let error = weight.share_error(whole) * whole.sum as f64;
    (weight.sum, error.round())
}

fn cpu(profile: &Profile) -> Value {
    let is_time = profile.unit() == Unit::Nanoseconds;
    if !is_time || profile.info().measured != Measured::CpuTime {
        return Value::Null;
    }
    let total = profile.total();
    let rows = profile.role_shares().into_iter().map(|role| {
        let (ns, error) = part(&role.weight, &total);
        json!({
            "kind": role.role.label(),
            "ns": ns,
            "standardErrorNs": error,
            "samples": role.weight.samples,
        })
    });
    rows.collect()
}

fn allocated(profile: &Profile) -> Value {
    if !profile.has_allocations() {
        return Value::Null;
    }
    let bytes = profile.allocated();
    json!({
        "bytes": bytes.sum,
        "standardErrorBytes": bytes.standard_error().round(),
        "samples": bytes.samples,
    })
}

fn wall(profile: &Profile) -> Value {
    if !profile.has_wall() {
        return Value::Null;
    }
    let groups: Vec<String> = (profile.threads().iter().enumerate())
        .map(|(id, _)| group_of(profile.thread_name(id as u32)))
        .collect();
    let group = |thread: u32| groups.get(thread as usize).map_or("", String::as_str);
    let filter = WallFilter::default();
    let sums = profile.wall_by(&filter, |wall| (group(wall.thread), wall.cause));
    let mut wholes: BTreeMap<&str, Weight> = BTreeMap::new();
    for ((group, _), weight) in &sums {
        *wholes.entry(group).or_default() += weight;
    }
    let rows = sums.iter().take(ROWS).map(|((group, cause), weight)| {
        let (ns, error) = part(weight, wholes.get(group).unwrap_or(weight));
        json!({
            "threads": plain(group),
            "cause": plain(cause),
            "ns": ns,
            "standardErrorNs": error,
            "samples": weight.samples,
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Builder, Look, text_art};

    #[test]
    fn cpu_time_is_by_kind_with_binomial_errors() {
        let profile = text_art::profile(
            "thread: main main main GC_Thread#0
             weight: 100  100  100  100
                     a.A.x a.A.x a.A.x vm.so.y[vm]",
        );
        let totals = value(&profile);
        let cpu = totals["cpu"].as_array().unwrap();
        assert_eq!(cpu[0]["kind"], "program");
        let sum: u64 = cpu.iter().map(|row| row["ns"].as_u64().unwrap()).sum();
        assert_eq!(sum, 400);
        assert_eq!(
            (&totals["allocated"], &totals["wall"]),
            (&Value::Null, &Value::Null)
        );
    }

    #[test]
    fn wall_time_is_by_group_and_cause_within_the_group() {
        let mut builder = Builder::default();
        let (park, sleep) = (builder.cause("park"), builder.cause("sleep"));
        let threads = [("w-1", 1), ("w-2", 2), ("main", 3)];
        let threads = threads.map(|(name, tid)| builder.thread(name, tid, tid, false));
        for (thread, cause) in [(0, park), (1, park), (1, sleep), (2, sleep)] {
            builder.look(Look {
                thread: threads[thread],
                cause,
                weight_ns: 100,
                count: 1,
                ..Look::default()
            });
        }
        let totals = value(&builder.finish());
        let rows: Vec<_> = (totals["wall"].as_array().unwrap().iter())
            .map(|row| {
                let text = |key: &str| row[key].as_str().unwrap().to_owned();
                let is_sure = row["standardErrorNs"].as_f64().unwrap() == 0.0;
                (
                    text("threads"),
                    text("cause"),
                    row["ns"].as_u64().unwrap(),
                    is_sure,
                )
            })
            .collect();
        let row = |threads: &str, cause: &str, ns, is_sure| {
            (threads.to_owned(), cause.to_owned(), ns, is_sure)
        };
        assert_eq!(
            rows,
            [
                row("w-*", "park", 200, false),
                // All time of its group, which is known.
                row("main", "sleep", 100, true),
                row("w-*", "sleep", 100, false),
            ]
        );
    }
}

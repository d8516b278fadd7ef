//! The part of the header with wall time by cause, with errors.

use dwell_profile::{IDLE, Profile, WallFilter, Weight};
use serde_json::{Value, json};

/// Wall time; `None` if it was not recorded.
pub(super) fn wall(profile: &Profile) -> Option<Value> {
    if !profile.has_wall() {
        return None;
    }
    let filter = WallFilter::default();
    let causes = profile.wall_by(&filter, |wall| wall.cause);
    let (mut all, mut busy) = (Weight::default(), Weight::default());
    for (cause, weight) in &causes {
        all += weight;
        if *cause != IDLE {
            busy += weight;
        }
    }
    let causes = causes.iter();
    let causes = causes.map(|(cause, weight)| part(cause, weight, &all, &busy));
    Some(json!({
        "ns": all.sum,
        // Without idle time.
        "busyNs": busy.sum,
        "causes": causes.collect::<Vec<_>>(),
    }))
}

/// Time of a cause, and one standard error of its share of all time and of the busy time.
fn part(cause: &str, weight: &Weight, all: &Weight, busy: &Weight) -> Value {
    json!({
        "cause": cause,
        "ns": weight.sum,
        "error": weight.share_error(all),
        "busyError": match cause {
            IDLE => 0.0,
            _ => weight.share_error(busy),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Builder, FrameKind, Look, Sample};

    #[test]
    fn a_page_has_causes_with_their_errors() {
        let mut builder = Builder::default();
        let thread = builder.thread("worker-1", 1, 1, false);
        let frame = builder.marker("[code]", FrameKind::Native);
        let node = builder.stack([frame]);
        let cause = builder.cause("park");
        builder.sample(Sample {
            time_ns: 0,
            thread,
            node,
            weight: 100,
            count: 1,
            failure: None,
            context: None,
        });
        assert_eq!(wall(&builder.clone().finish()), None);
        builder.look(Look {
            time_ns: 0,
            duration_ns: 0,
            thread,
            node,
            cause,
            weight_ns: 300,
            count: 1,
            choices: 0,
            context: None,
            detail: None,
            owner: None,
            owner_node: None,
        });
        let profile = builder.finish();
        let wall = wall(&profile).unwrap();
        assert_eq!(wall["ns"], 400);
        assert_eq!(wall["causes"][0]["cause"], "park");
        assert_eq!(wall["causes"][1]["cause"], "running");
        let error = wall["causes"][1]["error"].as_f64().unwrap();
        // One look of 300 beside one sample of 100, and one and a half looks that might have been
        // seen here or there: sqrt((3/4)^2 (100^2 + 1.5 300^2) + (1/4)^2 (2.5 300^2)) / 400.
        assert!((error - 95_625f64.sqrt() / 400.0).abs() < 1e-9, "{error}");
        // Nothing was idle.
        assert_eq!(wall["busyNs"], 400);
        assert_eq!(wall["causes"][1]["busyError"], wall["causes"][1]["error"]);
    }

    #[test]
    fn errors_are_those_of_shares_of_busy_time() {
        let mut builder = Builder::default();
        let thread = builder.thread("worker-1", 1, 1, false);
        for (cause, weight_ns) in [("park", 100), ("monitor", 100), ("idle-pool", 100)] {
            let cause = builder.cause(cause);
            builder.look(Look {
                thread,
                cause,
                weight_ns,
                count: 1,
                ..Look::default()
            });
        }
        let wall = wall(&builder.finish()).unwrap();
        assert_eq!((&wall["ns"], &wall["busyNs"]), (&json!(300), &json!(200)));
        for part in wall["causes"].as_array().unwrap() {
            let error = part["busyError"].as_f64().unwrap();
            // One look of two, and one and a half looks that might have been seen here or there.
            let expected = match part["cause"] == "idle-pool" {
                true => 0.0,
                false => (0.25 * 2.5 + 0.25 * 2.5f64).sqrt() / 2.0,
            };
            assert!((error - expected).abs() < 1e-9, "{part}");
        }
    }
}

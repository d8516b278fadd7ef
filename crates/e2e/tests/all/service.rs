//! An ordinary service, recorded with the defaults: wall time by endpoint is what requests took.

use dwell_e2e::{Place, Starter, View, both, each, must, turn};
use dwell_profile::{Profile, WallFilter, Weight};
use std::collections::BTreeMap;

/// Endpoints of `Service`, and the cause of nearly all of their time where it waits for one thing.
const ENDPOINTS: [(&str, &str); 6] = [
    ("peer", "socket"),
    ("sleep", "sleep"),
    ("ledger", ""),
    ("sort", ""),
    ("words", ""),
    ("sieve", ""),
];
/// Causes that no request of the service has.
const FOREIGN: [&str; 1] = ["idle-pool"];

/// The wall time of each endpoint is the sum of the latencies that the service measures inside of
/// its scopes, whatever its requests wait for. The lock that its workers contend for has its class
/// and mostly its owner.
///
/// Assumes that a tick stands for its time at a random moment of it: then `standard_error` is what
/// chance does. Detects 10 % of an endpoint's time that is missing or not its own. False alarm:
/// 2e-6 for six endpoints at 5 standard errors.
#[test]
fn measured_wall_time_of_endpoints_is_their_latency() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("service");
        let file = place.path("s.jfr");
        let starter = Starter::new(jdk, &place, "Service").with("seconds=15");
        let mut program = starter.recorded("cpu=10ms,wall=20ms", &file).start();
        let truths = program.work();
        program.end();
        let profile = Profile::as_recorded(View::read(&file).recording);
        let mut endpoints: BTreeMap<&str, BTreeMap<&str, Weight>> = BTreeMap::new();
        let (mut locked, mut named, mut owned) = (Weight::default(), 0, 0);
        for wall in profile.wall(&WallFilter::default()) {
            let endpoint = wall.context.and_then(|context| profile.endpoint(context));
            let Some(endpoint) = endpoint else { continue };
            let causes = endpoints.entry(endpoint).or_default();
            *causes.entry(wall.cause).or_default() += &wall.weight;
            if endpoint == "GET /ledger" && wall.cause == "monitor" {
                locked += &wall.weight;
                named += u64::from(wall.detail.is_some()) * wall.weight.sum;
                owned += u64::from(wall.owner.is_some()) * wall.weight.sum;
            }
        }
        for (name, most) in ENDPOINTS {
            let causes = &endpoints[format!("GET /{name}").as_str()];
            let mut all = Weight::default();
            causes.values().for_each(|weight| all += weight);
            let truth = truths.number(&format!("GET_{name}.ns")) as f64;
            let tolerance = 0.1 * truth + 5.0 * all.standard_error();
            let (seen, error) = (all.sum as f64, all.standard_error());
            println!(
                "{name}: {:.3} of {:.2} s +- {:.2} s",
                seen / truth,
                truth / 1e9,
                error / 1e9
            );
            assert!(
                (seen - truth).abs() <= tolerance,
                "{name}: {seen} of {truth} +- {tolerance}"
            );
            let part = |cause: &str| causes.get(cause).map_or(0.0, |of| of.sum as f64 / seen);
            assert!(most.is_empty() || part(most) > 0.9, "{name}: {causes:?}");
            let foreign: f64 = FOREIGN.iter().map(|cause| part(cause)).sum();
            assert!(foreign < 0.01, "{name}: {causes:?}");
        }
        let of_locked = |part: u64| part as f64 / locked.sum as f64;
        println!(
            "lock: named {:.3}, owner {:.3}",
            of_locked(named),
            of_locked(owned)
        );
        must!(named == locked.sum, "{named} of {locked:?} have a class");
        assert!(
            of_locked(owned) > 0.8,
            "{owned} of {locked:?} have an owner"
        );
    });
}

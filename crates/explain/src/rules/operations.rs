//! Operations at safepoints, but for collections: all threads stand while one asks for something
//! of the JVM.

use super::no_safepoints;
use crate::evidence::{Facts, SAFEPOINT};
use crate::finding::{Evidence, Finding, Measure, Sure, Verdict, View};
use crate::names::Set;
use crate::numbers::{duration, percent, plural};
use crate::operation::Operation;
use crate::share::Share;
use dwell_profile::NodeId;
use std::collections::BTreeMap;

/// A part of the time recorded that is worth a change.
const SHARE: f64 = 0.02;
const MOST: usize = 2;

/// Description of an operation, and how to have fewer of it.
fn told(operation: Operation) -> (&'static str, &'static str) {
    match operation {
        Operation::Stacks => (
            "stacks of threads are dumped",
            "dump the stacks of all threads less often (health checks, monitoring, profilers by \
             thread dumps), or dump fewer threads or frames; leave out owned synchronizers \
             (dumpAllThreads(false, false)), which need a search of the whole heap",
        ),
        Operation::Deadlocks => (
            "the JVM looks for deadlocks",
            "look for deadlocks less often (findDeadlockedThreads in health checks)",
        ),
        Operation::Heap => (
            "all objects of the heap are visited",
            "take heap dumps and class histograms less often, or elsewhere; find the agent that \
             visits objects",
        ),
        Operation::Classes => (
            "an agent or a debugger changes classes",
            "let agents change classes at load time, or once at the start: each change discards \
             compiled code",
        ),
        Operation::Bias => (
            "locks biased to one thread are revoked",
            "run with -XX:-UseBiasedLocking, the default since JDK 15",
        ),
    }
}

/// Methods in which threads wait for an operation that they requested.
const ASKING: &[&str] = &[
    "libjvm.so.*VMThread::execute*",
    "libjvm.so.*VMThread::wait_until_executed*",
];

/// Safepoints with operations of one sort.
#[derive(Default)]
struct Sum {
    times: u64,
    ns: u64,
    longest_ns: u64,
}

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    let stops = facts.profile.safepoints();
    if stops.is_empty() {
        return no_safepoints(facts);
    }
    let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
    for stop in stops {
        let sum = sums
            .entry(facts.profile.names().text(stop.operation))
            .or_default();
        sum.times = sum.times.saturating_add(stop.count);
        sum.ns = sum.ns.saturating_add(stop.operation_ns);
        sum.longest_ns = sum.longest_ns.max(stop.operation_ns);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.ns));
    let known = sums.iter();
    let known = known.filter_map(|(name, sum)| Some((name, sum, Operation::of(name)?)));
    // Requesters were seen, but not the operation that each one requested.
    let found = known
        .enumerate()
        .filter_map(|(at, (name, sum, operation))| {
            let asker = asker(facts).filter(|_| at == 0);
            let span_ns = facts.profile.info().duration_ns;
            let share = Share::counted(sum.ns, span_ns, "the time recorded");
            (share.value >= SHARE)
                .then(|| finding(facts, (name, sum), share, asker, told(operation)))
        });
    Verdict::Found(found.take(MOST).collect())
}

fn finding(
    facts: &Facts<'_>,
    (name, sum): (&str, &Sum),
    share: Share,
    asker: Option<(String, NodeId)>,
    (what, remedy): (&str, &str),
) -> Finding {
    let by = asker
        .as_ref()
        .map_or(String::new(), |(place, _)| format!(", by {place}"));
    let counted = Evidence {
        text: format!(
            "{}, {} in all, longest {}",
            plural(sum.times, &format!("{name} operation")),
            duration(sum.ns as f64),
            duration(sum.longest_ns as f64)
        ),
        view: View {
            measure: Measure::Safepoints,
            ..View::default()
        },
        stack: asker.map_or_else(Vec::new, |(_, node)| facts.stacks.shown(node)),
    };
    Finding {
        rule: "",
        what: format!(
            "all threads stop {} of the time while {what}{by}: {name}, {}, {} each on average",
            percent(share.value),
            plural(sum.times, "time"),
            duration(sum.ns as f64 / sum.times.max(1) as f64)
        ),
        weight: facts.lost_by_all(share.value),
        share,
        evidence: [Some(counted), payers(facts)]
            .into_iter()
            .flatten()
            .collect(),
        remedy: remedy.to_owned(),
        sure: Sure::High,
        because: "the JVM's own times of its safepoints".to_owned(),
    }
}

/// Where the program asked for most of the time of such operations, if it was seen.
fn asker(facts: &Facts<'_>) -> Option<(String, NodeId)> {
    let asking = facts.stacks.nodes_with(&Set::new(facts.profile, ASKING));
    let mut places: BTreeMap<String, (u64, NodeId)> = BTreeMap::new();
    for entry in &facts.entries {
        let asks = entry.cause == SAFEPOINT && asking.has(entry.node);
        if asks && facts.stacks.is_of_program(entry.node) {
            let place = facts.stacks.place_name(entry.node);
            let (ns, _) = places.entry(place).or_insert((0, entry.node));
            *ns = ns.saturating_add(entry.weight.sum);
        }
    }
    let most = places.into_iter().max_by_key(|(_, (ns, _))| *ns)?;
    Some((most.0, most.1.1))
}

/// Time that all safepoints took from requests, if it is known.
fn payers(facts: &Facts<'_>) -> Option<Evidence> {
    let paid = facts.profile.paid_for_safepoints();
    let (endpoint, paid) = paid.iter().max_by_key(|(_, paid)| paid.stopped_ns)?;
    let endpoint = endpoint.filter(|_| paid.stopped_ns > 0)?;
    Some(Evidence {
        text: format!(
            "most affected endpoint: {endpoint}, {} of its time in safepoints, max {} in a request",
            percent(paid.stopped_ns as f64 / paid.duration_ns.max(1) as f64),
            duration(paid.most_ns as f64)
        ),
        view: View::default(),
        stack: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn long_operations_are_reported_with_their_callers() {
        let mut art = Art::default();
        art.operations("ThreadDump", 100, 5);
        let stack = "libjvm.so.VMThread::execute[native];java.lang.Thread.dump;app.Health.check";
        art.look("w-1", "GET /health", "safepoint", stack, 5, 20);
        // One stopped by the operation, and one stopped by the collector.
        art.look("w-2", "GET /x", "safepoint", "app.Other.run", 50, 20);
        art.requests("GET /x", 1, 900);
        let found = art.found(check);
        let what = &found[0].what;
        for part in [
            "stacks of threads",
            "by app.Health.check",
            "5 times, 100 ms each",
        ] {
            assert!(what.contains(part), "{what}");
        }
        assert!(found[0].remedy.contains("dumpAllThreads"), "{found:?}");
        assert!(
            found[0].evidence[0].text.contains("500 ms in all"),
            "{found:?}"
        );
        assert!(found[0].evidence[1].text.contains("GET /x"), "{found:?}");
    }

    #[test]
    fn short_ones_and_collections_are_not() {
        let mut art = Art::default();
        art.look("w-1", "GET /x", "running", "app.Other.run", 500, 20);
        art.operations("G1CollectFull", 100, 5)
            .operations("ThreadDump", 1, 5);
        assert_eq!(art.found(check), []);
        assert!(Art::default().lacks(check).contains("no safepoints"));
    }
}

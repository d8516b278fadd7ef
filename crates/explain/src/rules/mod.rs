//! The rules, one in each file. A rule reads [`Facts`] and returns findings, or the data that it
//! lacks.

mod allocation_stalls;
mod amid_work;
mod bound;
mod costly_calls;
mod crews;
mod event_loops;
mod exceptions;
mod files;
mod futures;
mod gc;
mod growth;
mod hot_path;
mod libraries;
mod locks;
mod operations;
mod pinned;
mod pools;
mod queries;
mod ready;
mod remote;
mod safepoints;
mod sleeping;
mod spinning;
mod starvation;
mod thin;
mod throttling;
mod vm_waits;
mod warmup;
mod without_wall;

use crate::evidence::Facts;
use crate::finding::Verdict;
use dwell_profile::Lack;

/// A rule.
pub(crate) struct Rule {
    /// Its name in files and reports.
    pub(crate) name: &'static str,
    /// Returns its findings.
    pub(crate) check: fn(&Facts<'_>) -> Verdict,
}

const fn rule(name: &'static str, check: fn(&Facts<'_>) -> Verdict) -> Rule {
    Rule { name, check }
}

/// All rules.
pub(crate) const ALL: &[Rule] = &[
    rule("thin-recording", thin::check),
    rule("hot-path", hot_path::check),
    rule("costly-calls", costly_calls::check),
    rule("many-queries", queries::check),
    rule("cpu-starvation", starvation::check),
    rule("cpu-throttling", throttling::check),
    rule("allocation-stalls", allocation_stalls::check),
    rule("gc-pressure", gc::check),
    rule("growing-memory", growth::check),
    rule("lock-contention", locks::check),
    rule("pool-exhaustion", pools::check),
    rule("waiting-for-tasks", futures::check),
    rule("waiting-amid-work", amid_work::check),
    rule("blocked-event-loop", event_loops::check),
    rule("slow-downstream", remote::check),
    rule("sleeping", sleeping::check),
    rule("busy-waiting", spinning::check),
    rule("waiting-for-compilation", vm_waits::compiler),
    rule("page-faults", vm_waits::pages),
    rule("slow-safepoints", safepoints::check),
    rule("long-operations", operations::check),
    rule("warm-up", warmup::check),
    rule("exceptions", exceptions::check),
    rule("hot-logging", libraries::logging),
    rule("hot-reflection", libraries::reflection),
    rule("hot-regex", libraries::regex),
    rule("hot-format", libraries::format),
    rule("repeated-reads", files::check),
    rule("pinned-virtual-threads", pinned::check),
];

/// The names of all rules.
#[must_use]
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|rule| rule.name).collect()
}

/// Verdict of rules on wall time without wall time.
fn no_wall(facts: &Facts<'_>) -> Verdict {
    let remedy = facts.profile.info().remedy(Lack::Wall);
    Verdict::Lacks(format!("the recording has no wall time; {remedy}"))
}

/// The verdict of rules on waits for which there are no events.
fn no_such_waits(facts: &Facts<'_>) -> Option<Verdict> {
    let has_events_only = facts.profile.info().event_waits.is_some();
    has_events_only.then(|| Verdict::lacks("the recorder has no events of such waits"))
}

/// Verdict of rules on safepoints without safepoints.
fn no_safepoints(facts: &Facts<'_>) -> Verdict {
    let remedy = facts.profile.info().remedy(Lack::Safepoints);
    Verdict::Lacks(format!("the recording has no safepoints; {remedy}"))
}

/// Verdict of rules on CPU time without CPU time.
fn no_cpu(facts: &Facts<'_>) -> Verdict {
    let of = match facts.profile.samples().is_empty() {
        true => String::new(),
        false => facts.profile.info().measured.of(),
    };
    Verdict::Lacks(match of.is_empty() {
        true => "the recording has no samples of CPU time".to_owned(),
        false => format!("the recording's samples are {of}"),
    })
}

/// Answer of rules on the JVM's own time if a foreign recording may lack that time.
const NOT_SEEN: &str = "the recording was not made by dwell: it may lack samples of the JVM's own \
 work";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;
    use dwell_profile::EventWaits;

    #[test]
    fn rules_on_waits_without_events_lack_them() {
        let mut art = Art::default();
        art.look("w", "", "sleep", "java.lang.Thread.sleep;app.A.b", 90, 20);
        let checks = [
            allocation_stalls::check,
            vm_waits::compiler,
            vm_waits::pages,
        ];
        for check in checks {
            assert_eq!(art.found(check), []);
        }
        art.builder.info.event_waits = Some(EventWaits {
            threshold_ns: 0,
            sockets_ns: 0,
            files_ns: 0,
            period_ns: 1,
        });
        for check in checks {
            assert!(art.lacks(check).contains("no events of such waits"));
        }
    }

    #[test]
    fn names_are_unique() {
        let mut all = names();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), ALL.len());
    }
}

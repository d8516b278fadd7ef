//! Costly calls: methods of the application with the most CPU time in a library that splits it into
//! parts too small for a finding each. Time that splits into the application's own methods is its
//! work, and no single change reduces it.

use super::{bound, files, libraries, no_cpu, queries};
use crate::evidence::Facts;
use crate::finding::{Evidence, Finding, Sure, Verdict, View};
use crate::numbers::{duration, percent, short, some_of};
use crate::own_calls::{OwnCalls, Place};
use crate::share::Share;
use dwell_profile::{MethodId, NodeId, is_of_platform};
use std::collections::BTreeMap;

/// A part of the CPU time that is worth a change if a library spends it, and the least it must
/// surely be.
const SHARE: f64 = 0.12;
const SURELY: f64 = 0.07;
const SAMPLES: u64 = 20;
const MOST: usize = 2;
/// If other findings cover this part of a method's time, the method gets no finding here.
const TOLD: f64 = 0.8;
/// A library's method with at least this part of the place's time is the called one.
const CALLED: f64 = 0.5;
/// Endpoints that are named.
const ENDPOINT_PART: f64 = 0.1;

/// Facts about a place.
#[derive(Default)]
struct Seen {
    /// Time of the same method that other rules report, such as the one for hot paths.
    told_ns: u64,
    called: BTreeMap<MethodId, u64>,
    /// The node with most of the time.
    heaviest: (u64, NodeId),
}

/// A call that gets a finding.
struct Told {
    place: Place,
    /// The library's method with the largest part, and that part.
    called: (MethodId, f64),
    share: Share,
    node: NodeId,
}

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if facts.program_total.samples == 0 {
        return no_cpu(facts);
    }
    let calls = OwnCalls::new(facts.profile, &facts.program_cpu);
    let found = costly(facts, &calls);
    Verdict::Found(found.iter().map(|it| finding(facts, &calls, it)).collect())
}

/// By node: whether its time belongs to a call of a library that has a finding.
pub(super) fn told(facts: &Facts<'_>) -> Vec<bool> {
    let calls = OwnCalls::new(facts.profile, &facts.program_cpu);
    let found = costly(facts, &calls);
    let mut told = vec![false; facts.profile.tree().len()];
    for it in &found {
        for (node, called) in calls.nodes_of(&it.place) {
            if let Some(told) = told.get_mut(node as usize) {
                *told = called.is_some();
            }
        }
    }
    told
}

fn costly(facts: &Facts<'_>, calls: &OwnCalls) -> Vec<Told> {
    if !bound::matters(facts) {
        return Vec::new();
    }
    let least_ns = (SHARE * facts.cpu_total.sum as f64) as u64;
    let is_service = libraries::is_costly(facts);
    let files = files::costly(facts);
    let queries = queries::told(facts);
    let is_told = |place: &Place, node: NodeId| {
        let is_file = (files.iter()).any(|calls| facts.stacks.top_has(node, calls));
        let is_hot_path = facts.stacks.place(node) == Some(place.method);
        let is_query = queries.get(node as usize) == Some(&true);
        is_hot_path || is_file || is_service(node) || is_query
    };
    let mut found = Vec::new();
    for place in calls.places(least_ns.max(1)) {
        let share = Share::sampled(&place.weight, &facts.cpu_total, facts.cpu_name());
        if found.len() == MOST || !share.is_at_least(SHARE, SURELY, SAMPLES) {
            break;
        }
        let seen = Seen::of(facts, calls, &place, is_told);
        let all_ns = place.weight.sum.max(1) as f64;
        let Some(called) = seen.called(all_ns) else {
            continue;
        };
        if (seen.told_ns as f64) < TOLD * all_ns {
            found.push(Told {
                place,
                called,
                share,
                node: seen.heaviest.1,
            });
        }
    }
    found
}

impl Seen {
    fn of(
        facts: &Facts<'_>,
        calls: &OwnCalls,
        place: &Place,
        is_told: impl Fn(&Place, NodeId) -> bool,
    ) -> Seen {
        let mut seen = Seen::default();
        for (node, called) in calls.nodes_of(place) {
            let ns = facts.program_cpu.get(node as usize).map_or(0, |w| w.sum);
            if ns == 0 {
                continue;
            }
            seen.heaviest = seen.heaviest.max((ns, node));
            if is_told(place, node) {
                seen.told_ns = seen.told_ns.saturating_add(ns);
            }
            if let Some(called) = called {
                *seen.called.entry(called).or_default() += ns;
            }
        }
        seen
    }

    /// The method that most of the time is in, and that part.
    fn called(&self, all_ns: f64) -> Option<(MethodId, f64)> {
        let most = self.called.iter().max_by_key(|(_, ns)| **ns)?;
        let part = *most.1 as f64 / all_ns;
        (part >= CALLED).then_some((*most.0, part))
    }
}

fn finding(facts: &Facts<'_>, calls: &OwnCalls, told: &Told) -> Finding {
    let Told {
        place,
        called,
        share,
        node,
    } = told;
    let ((method, part), share, node) = (*called, share.clone(), *node);
    let name = facts.stacks.name(place.method);
    let in_what = format!(
        "{name}, {} of it in {}{}",
        percent(part),
        facts.stacks.name(method),
        library(facts, method)
    );
    let endpoints = endpoints(facts, calls, place);
    let names: Vec<String> = endpoints.iter().map(|(name, _)| name.clone()).collect();
    let whose = match names.is_empty() {
        true => String::new(),
        false => format!(", for {}", some_of(&names)),
    };
    let each = match endpoints.as_slice() {
        [(name, ns)] => each(facts, name, *ns),
        _ => String::new(),
    };
    let is_time = facts.has_cpu_time();
    let verb = match is_time {
        true => "is spent",
        false => "are",
    };
    Finding {
        rule: "",
        what: format!(
            "{} of {} {verb} in {in_what}{whose}{each}",
            percent(share.value),
            facts.cpu_name()
        ),
        weight: facts.lost_on_processors(&share),
        share,
        evidence: vec![Evidence {
            text: "last application frame that keeps this time; below it, it splits into small \
                   parts"
                .to_owned(),
            view: View {
                endpoint: names.first().filter(|_| names.len() == 1).cloned(),
                focus: facts.stacks.focus(place.method),
                ..View::default()
            },
            stack: facts.stacks.shown(node),
        }],
        remedy: remedy(facts, &name, method),
        sure: match is_time {
            true => Sure::High,
            false => Sure::Medium,
        },
        because: match is_time {
            true => "samples are spread evenly over CPU time".to_owned(),
            false => "samples were counted, which is not CPU time".to_owned(),
        },
    }
}

fn remedy(facts: &Facts<'_>, name: &str, called: MethodId) -> String {
    let called = facts.stacks.name(called);
    format!(
        "call {} less often in {} (batch the calls, cache its results), or request less work",
        short(&called),
        short(name)
    )
}

/// The library of a method that is called, in brackets, unless it is the JDK.
fn library(facts: &Facts<'_>, method: MethodId) -> String {
    let Some(method) = facts.profile.methods().get(method as usize) else {
        return String::new();
    };
    let names = facts.profile.names();
    match method.library {
        Some(library) if !is_of_platform(names.text(method.class)) => {
            format!(" ({})", names.text(library))
        }
        _ => String::new(),
    }
}

/// The endpoints that it is spent for, the most first.
fn endpoints(facts: &Facts<'_>, calls: &OwnCalls, place: &Place) -> Vec<(String, u64)> {
    let mut is_inside = vec![false; facts.profile.tree().len()];
    for (node, _) in calls.nodes_of(place) {
        if let Some(is) = is_inside.get_mut(node as usize) {
            *is = true;
        }
    }
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for sample in facts.profile.samples() {
        let endpoint = sample.context.and_then(|id| facts.profile.endpoint(id));
        let is_inside = is_inside.get(sample.node as usize) == Some(&true);
        if let Some(endpoint) = endpoint.filter(|_| is_inside && facts.is_wanted(sample)) {
            *sums.entry(endpoint).or_default() += sample.weight;
        }
    }
    let least = ENDPOINT_PART * place.weight.sum as f64;
    let mut named: Vec<(String, u64)> = (sums.into_iter())
        .filter(|(_, ns)| *ns as f64 >= least)
        .map(|(name, ns)| (name.to_owned(), ns))
        .collect();
    named.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    named
}

/// Time of each request of an endpoint there, if requests were counted.
fn each(facts: &Facts<'_>, endpoint: &str, ns: u64) -> String {
    let latencies = facts.profile.latencies();
    let requests = latencies.get(&Some(endpoint)).map_or(0, |it| it.requests);
    match requests > 0 && facts.has_cpu_time() {
        true => format!(": {} a request", duration(ns as f64 / requests as f64)),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    /// A service with a method that calls a database in memory, which splits into many methods.
    fn service(of_database: u64) -> Art {
        let mut art = Art::default();
        for part in 0..of_database {
            let stack = format!(
                "org.h2.P{part}.run;org.h2.jdbc.JdbcStatement.ask;app.Orders.price;\
                 app.Orders.handle;io.netty.Server.run"
            );
            art.cpu("w", "GET /orders", &stack, 10, 1);
        }
        for part in 0..100 - of_database {
            let stack = format!("app.M{part}.run;io.netty.Server.run");
            art.cpu("w", "GET /other", &stack, 10, 1);
        }
        art
    }

    #[test]
    fn call_of_a_library_is_named_with_endpoint_and_requests() {
        let mut art = service(36);
        art.requests("GET /orders", 90, 20);
        let found = art.found(check);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            found[0].what,
            "36 % of the CPU time is spent in app.Orders.price, 100 % of it in \
             org.h2.jdbc.JdbcStatement.ask, for GET /orders: 4.0 ms a request"
        );
        assert_eq!(service(5).found(check), []);
    }

    #[test]
    fn costly_call_of_another_rule_is_not_repeated() {
        // The hot path: the method itself.
        let mut art = Art::default();
        art.cpu("w", "", "java.util.HashMap.get;app.Orders.price", 50, 10);
        art.cpu("w", "", "app.Other.run", 50, 10);
        assert_eq!(art.found(check), []);
        // Hot paths inside of a library's call are parts of it.
        let mut art = Art::default();
        for part in ["org.h2.A.x", "org.h2.B.y"] {
            let stack = format!("{part};org.h2.jdbc.Jdbc.ask;app.Orders.price");
            art.cpu("w", "", &stack, 50, 10);
        }
        art.cpu("w", "", "app.Other.run", 50, 10);
        let explained = crate::explain(&art.profile(), &crate::Options::default());
        let told = explained.findings.iter().map(|it| (it.rule, &it.what));
        let told: Vec<String> = told.map(|(rule, what)| format!("{rule} {what}")).collect();
        let of_h2 = told.iter().filter(|it| it.contains("org.h2")).count();
        assert!(
            of_h2 == 1 && told[0].starts_with("costly-calls"),
            "{told:?}"
        );
        // Regular expressions in a library.
        let mut art = Art::default();
        let regex = "java.util.regex.Pattern.match;org.h2.Like.is;app.Orders.find";
        art.cpu("w", "", regex, 50, 10);
        art.cpu("w", "", "app.Other.run", 50, 10);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn samples_that_only_count_are_no_time() {
        let mut art = service(36);
        art.builder.unit = dwell_profile::Unit::Samples;
        let found = art.found(check);
        let what = "36 % of the samples are in app.Orders.price";
        assert!(found[0].what.starts_with(what), "{found:?}");
        assert_eq!(found[0].sure, Sure::Medium);
    }

    #[test]
    fn work_spread_over_own_methods_is_no_costly_call() {
        let mut art = Art::default();
        for part in 0..20 {
            let inner = "java.util.Random.nextInt";
            let stack = format!("{inner};app.M{part}.run;app.Orders.handle;app.Main.run");
            art.cpu("w", "", &stack, 10, 3);
        }
        art.cpu("w", "", "app.Other.run;app.Main.run", 40, 10);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn program_that_waits_has_no_costly_call() {
        let mut art = service(36);
        art.look("w", "GET /orders", "socket", "app.Call.ask", 4000, 20);
        assert_eq!(art.found(check), []);
    }
}

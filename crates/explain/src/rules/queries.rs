//! Many queries: one place of the application asks a database again and again for one request, as
//! where each row of a list asks for its details. How many calls there are is not recorded. It
//! follows from what is: a request that was seen inside of the call, outside, and inside again made
//! another call: that is the least number of calls. Where allocations are recorded, the results of
//! queries are counted: each call makes one.

use crate::application::own_methods;
use crate::evidence::{Facts, Kind, is_wait};
use crate::finding::{Evidence, Finding, Measure, Sure, Verdict, View};
use crate::names::Set;
use crate::numbers::{count, duration, percent, plural, short, whole};
use crate::share::Share;
use dwell_profile::{ContextId, MethodId, NameId, NodeId, Profile, ThreadId, Weight};
use std::collections::{BTreeMap, HashMap};

/// A part of the time of requests that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.12;
const SURELY: f64 = 0.06;
const SAMPLES: u64 = 10;
const MOST: usize = 3;
/// Least number of calls in one request for a loop, and least number of such requests.
const CALLS: u64 = 3;
const REQUESTS: u64 = 3;
/// Least number of sampled query results for an estimate.
const RESULTS: u64 = 8;
/// Of the requests that were seen in the call at all.
const OF_SEEN: f64 = 0.1;
/// Without the times of calls: how often a thread got a processor for each request, where its waits
/// are mostly those for the database.
const TURNS: f64 = 10.0;
const MOSTLY: f64 = 0.5;

/// Where objects ask for their parts one by one.
const LAZY: &[&str] = &[
    "org.hibernate.collection.*PersistentCollection.initialize",
    "org.hibernate.collection.*PersistentCollection.read",
    "org.hibernate.proxy.*LazyInitializer.initialize",
    "org.eclipse.persistence.indirection.IndirectList.buildDelegate",
    "org.eclipse.persistence.internal.indirection.*ValueHolder.getValue",
];

/// A place of the application that asks: its method and line.
type Site = (MethodId, u32);

/// Facts about a stack.
#[derive(Clone, Copy, Default)]
struct State {
    /// The application's innermost method.
    own: Option<Site>,
    /// The place that asks, if it does.
    asks: Option<Site>,
    is_lazy: bool,
}

/// How calls are known to be many.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shown {
    /// Maximum of calls in one request, and number of requests with at least [`CALLS`].
    Again(u64, u64),
    /// Mean number for each request.
    Each(f64),
    /// Number of query results for each request.
    Results(f64),
    /// Number of turns on a processor for each request.
    Turns(f64),
    /// Its frames say so.
    Lazy,
}

/// A place that asks in a loop.
struct Loop {
    site: Site,
    subject: Option<usize>,
    share: Share,
    shown: Shown,
    node: NodeId,
}

/// All that is known of places that ask.
struct Asking {
    /// By node.
    at: Vec<State>,
}

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if !facts.profile.has_wall() && facts.program_total.samples == 0 {
        return super::no_cpu(facts);
    }
    let Some(asking) = Asking::new(facts.profile) else {
        return Verdict::Found(Vec::new());
    };
    let loops = loops(facts, &asking);
    Verdict::Found(loops.iter().map(|it| finding(facts, it)).collect())
}

/// By node: whether a finding of this rule covers its time. Empty without findings.
pub(super) fn told(facts: &Facts<'_>) -> Vec<bool> {
    let Some(asking) = Asking::new(facts.profile) else {
        return Vec::new();
    };
    let sites: Vec<Site> = loops(facts, &asking).iter().map(|it| it.site).collect();
    if sites.is_empty() {
        return Vec::new();
    }
    let is_told = |state: &State| state.asks.is_some_and(|site| sites.contains(&site));
    asking.at.iter().map(is_told).collect()
}

/// Whether a method executes a statement of JDBC, whatever driver or pool it is of.
fn executes(class: &str, method: &str) -> bool {
    let simple = class.rsplit('.').next().unwrap_or(class);
    // A batch is many for one call.
    method.starts_with("execute") && !method.ends_with("Batch") && simple.contains("Statement")
}

impl Asking {
    /// `None` if no stack asks a database.
    fn new(profile: &Profile) -> Option<Asking> {
        let names = profile.names();
        let methods = profile.methods().iter();
        let of = methods.map(|it| executes(names.text(it.class), names.text(it.name)));
        let of: Vec<bool> = of.collect();
        if !of.contains(&true) {
            return None;
        }
        let own = own_methods(profile);
        let lazy = Set::new(profile, LAZY);
        let tree = profile.tree();
        let mut at = vec![State::default(); tree.len()];
        // Parents come before their children.
        for node in 1..tree.len() {
            let above = at.get(tree.parent(node as NodeId) as usize);
            let mut state = above.copied().unwrap_or_default();
            let frame = profile.frames().get(tree.key(node as NodeId) as usize);
            if let Some(frame) = frame.filter(|frame| frame.kind.is_java()) {
                let method = frame.method;
                if own.get(method as usize) == Some(&true) {
                    state = State {
                        own: Some((method, frame.line)),
                        ..State::default()
                    };
                } else if of.get(method as usize) == Some(&true) {
                    state.asks = state.asks.or(state.own);
                }
                state.is_lazy |= lazy.has(method);
            }
            if let Some(place) = at.get_mut(node) {
                *place = state;
            }
        }
        Some(Asking { at })
    }

    fn state(&self, node: NodeId) -> State {
        self.at.get(node as usize).copied().unwrap_or_default()
    }
}

/// Time in the calls of one place.
#[derive(Default)]
struct Spent {
    weight: Weight,
    waited: Weight,
    lazy_ns: u64,
    heaviest: (u64, NodeId),
}

impl Spent {
    fn add(&mut self, node: NodeId, weight: &Weight, is_lazy: bool, is_wait: bool) {
        self.weight += weight;
        self.heaviest = self.heaviest.max((weight.sum, node));
        if is_lazy {
            self.lazy_ns = self.lazy_ns.saturating_add(weight.sum);
        }
        if is_wait {
            self.waited += weight;
        }
    }
}

fn loops(facts: &Facts<'_>, asking: &Asking) -> Vec<Loop> {
    let entered = entered(facts, asking);
    let mut found: Vec<Loop> = Vec::new();
    for ((site, subject), spent) in spent(facts, asking) {
        let share = share(facts, subject, &spent);
        if !share.is_at_least(SHARE, SURELY, SAMPLES) {
            continue;
        }
        let shown = shown(facts, (site, subject), &spent, &entered);
        if let Some(shown) = shown {
            found.push(Loop {
                site,
                subject,
                share,
                shown,
                node: spent.heaviest.1,
            });
        }
    }
    found.sort_by_key(|it| std::cmp::Reverse(it.share.ns));
    found.truncate(MOST);
    found
}

/// Time by place and subject: wall time, or CPU time without wall-clock samples.
fn spent(facts: &Facts<'_>, asking: &Asking) -> BTreeMap<(Site, Option<usize>), Spent> {
    let mut sums: BTreeMap<(Site, Option<usize>), Spent> = BTreeMap::new();
    let kind = match facts.has_endpoints() {
        true => Kind::Endpoint,
        false => Kind::Threads,
    };
    for entry in &facts.entries {
        let state = asking.state(entry.node);
        let is_kind = (facts.subjects.get(entry.subject)).is_some_and(|it| it.kind == kind);
        if let Some(site) = state.asks.filter(|_| is_kind) {
            let spent = sums.entry((site, Some(entry.subject))).or_default();
            let waits = is_wait(entry.cause);
            spent.add(entry.node, &entry.weight, state.is_lazy, waits);
        }
    }
    if facts.entries.is_empty() {
        for (weight, node) in facts.program_cpu.iter().zip(0..) {
            let state = asking.state(node);
            if let Some(site) = state.asks.filter(|_| weight.samples > 0) {
                let spent = sums.entry((site, None)).or_default();
                spent.add(node, weight, state.is_lazy, false);
            }
        }
    }
    sums
}

fn share(facts: &Facts<'_>, subject: Option<usize>, spent: &Spent) -> Share {
    match subject.and_then(|place| facts.subjects.get(place)) {
        Some(subject) => {
            let of = format!("the wall time of {}", subject.shown());
            Share::sampled(&spent.weight, &subject.busy, of)
        }
        None => Share::sampled(&spent.weight, &facts.cpu_total, facts.cpu_name()),
    }
}

/// How often a place was entered while requests were watched.
#[derive(Default)]
struct Entered {
    /// By place and request, if requests have numbers.
    of_request: BTreeMap<Site, HashMap<u64, u64>>,
    /// By place and endpoint, where they are not.
    of_endpoint: BTreeMap<(Site, String), u64>,
    /// Results that were allocated, by place and endpoint: how many, and of how many samples.
    results: BTreeMap<(Site, String), (f64, u64)>,
}

/// One sample or look of a thread: time, place of the call, and context.
type Seen = (ThreadId, u64, Option<Site>, Option<ContextId>);

fn entered(facts: &Facts<'_>, asking: &Asking) -> Entered {
    let profile = facts.profile;
    let asks = |node| asking.state(node).asks;
    let samples = profile.samples().iter();
    let samples = samples.map(|it| (it.thread, it.time_ns, asks(it.node), it.context));
    let looks = profile.looks().iter();
    let looks = looks.map(|it| (it.thread, it.time_ns, asks(it.node), it.context));
    let mut all: Vec<Seen> = samples.chain(looks).collect();
    all.sort_unstable_by_key(|(thread, time, ..)| (*thread, *time));
    let mut entered = Entered::default();
    let mut before: Option<Seen> = None;
    for seen in all {
        let (thread, _, site, context) = seen;
        // Of a stack that was first seen in the call it is not known when it got there.
        let was = before.filter(|(other, ..)| *other == thread);
        let is_new = was.is_none_or(|(_, _, at, of)| at != site || of != context);
        before = Some(seen);
        let (Some(site), Some(context), true) = (site, context, is_new) else {
            continue;
        };
        let root = profile.contexts().get(context as usize);
        match root.map_or(0, |context| context.local_root_span_id) {
            0 => {
                if let Some(endpoint) = profile.endpoint(context) {
                    let key = (site, endpoint.to_owned());
                    *entered.of_endpoint.entry(key).or_default() += 1;
                }
            }
            root => {
                let requests = entered.of_request.entry(site).or_default();
                *requests.entry(root).or_default() += 1;
            }
        }
    }
    entered.results = results(profile, asking);
    entered
}

/// The results of queries that were allocated.
fn results(profile: &Profile, asking: &Asking) -> BTreeMap<(Site, String), (f64, u64)> {
    let mut by_class: BTreeMap<(Site, &str, NameId), (f64, u64)> = BTreeMap::new();
    for object in profile.allocations() {
        let class = profile.names().text(object.class);
        let simple = class.rsplit('.').next().unwrap_or(class);
        let endpoint = object.context.and_then(|id| profile.endpoint(id));
        let site = asking.state(object.node).asks;
        let is_result = simple.ends_with("ResultSet") || simple.ends_with("ResultSetImpl");
        if let (Some(site), Some(endpoint), true) = (site, endpoint, is_result) {
            let sum = by_class.entry((site, endpoint, object.class)).or_default();
            sum.0 += object.bytes as f64 / object.size.max(1) as f64;
            sum.1 += 1;
        }
    }
    // A pool may wrap the driver's result: one of both is counted.
    let mut most: BTreeMap<(Site, String), (f64, u64)> = BTreeMap::new();
    for ((site, endpoint, _), sum) in by_class {
        let of = most.entry((site, endpoint.to_owned())).or_default();
        if sum.1 > of.1 {
            *of = sum;
        }
    }
    most
}

fn shown(
    facts: &Facts<'_>,
    (site, subject): (Site, Option<usize>),
    spent: &Spent,
    entered: &Entered,
) -> Option<Shown> {
    if spent.lazy_ns as f64 >= MOSTLY * spent.weight.sum as f64 {
        return Some(Shown::Lazy);
    }
    if let Some(requests) = entered.of_request.get(&site) {
        let many = requests.values().filter(|calls| **calls >= CALLS).count() as u64;
        let is_usual = many as f64 >= OF_SEEN * requests.len() as f64;
        if many >= REQUESTS && is_usual {
            let most = requests.values().max().copied().unwrap_or(0);
            return Some(Shown::Again(most, many));
        }
    }
    let subject = facts.subjects.get(subject?)?;
    let latencies = facts.profile.latencies();
    let requests = latencies.get(&Some(subject.name.as_str()))?.requests;
    if subject.kind != Kind::Endpoint || requests == 0 {
        return None;
    }
    let results = entered.results.get(&(site, subject.name.clone()));
    let results = results.filter(|(_, samples)| *samples >= RESULTS);
    let each = results.map_or(0.0, |(objects, _)| objects / requests as f64);
    if each >= CALLS as f64 {
        return Some(Shown::Results(each));
    }
    let calls = entered.of_endpoint.get(&(site, subject.name.clone()));
    let each = calls.map_or(0.0, |calls| *calls as f64 / requests as f64);
    if each >= CALLS as f64 {
        return Some(Shown::Each(each));
    }
    // Threads that mostly wait for the database get a processor once for each answer.
    if spent.waited.share(&subject.busy) < MOSTLY {
        return None;
    }
    let times = facts.profile.thread_times().iter();
    let of_subject = times.filter(|it| subject.threads.contains(&it.thread) && !it.is_carrier);
    let turns = of_subject.fold(0u64, |sum, it| sum.saturating_add(it.turns));
    let others = facts
        .subjects
        .iter()
        .filter(|other| other.name != subject.name && !other.threads.is_disjoint(&subject.threads));
    let others = others.fold(0u64, |sum, other| sum.saturating_add(other.busy.sum));
    let is_theirs = others as f64 <= (1.0 - MOSTLY) * subject.busy.sum as f64;
    let each = turns as f64 / requests as f64;
    (is_theirs && each >= TURNS).then_some(Shown::Turns(each))
}

impl Shown {
    fn words(self) -> String {
        match self {
            Shown::Again(most, _) => format!("at least {} calls in one request", count(most)),
            Shown::Each(each) => format!("at least {} calls a request on average", whole(each)),
            Shown::Results(each) => format!("about {} calls a request", whole(each)),
            Shown::Turns(each) => format!("about {} waits a request", whole(each)),
            Shown::Lazy => "one call for each loaded object".to_owned(),
        }
    }

    fn evidence(self) -> String {
        match self {
            Shown::Again(_, many) => format!(
                "{} were sampled in this call, outside of it and in it again, {CALLS} times or \
                 more",
                plural(many, "request")
            ),
            Shown::Each(_) => "threads were sampled in this call, outside of it and in it again, \
             more often than there were requests"
                .to_owned(),
            Shown::Results(_) => {
                "sampled allocations show this number of query results for each request".to_owned()
            }
            Shown::Turns(_) => "its threads got a CPU this often for each request, and had hardly \
             any other waits"
                .to_owned(),
            Shown::Lazy => "the stacks load parts of objects when they are first used".to_owned(),
        }
    }

    const fn sure(self) -> (Sure, &'static str) {
        match self {
            Shown::Again(..) | Shown::Each(_) => (
                Sure::High,
                "the count has sampled calls only; most calls fall between two samples",
            ),
            Shown::Results(_) => (
                Sure::High,
                "each call makes a result, and samples of allocations count objects",
            ),
            Shown::Lazy => (Sure::High, "the frames are those of loading one by one"),
            Shown::Turns(_) => (
                Sure::Medium,
                "a thread also gets a CPU again after others took it",
            ),
        }
    }
}

fn finding(facts: &Facts<'_>, it: &Loop) -> Finding {
    let (method, line) = it.site;
    let name = facts.stacks.name(method);
    let at = match line {
        0 => String::new(),
        line => format!(" (line {line})"),
    };
    let subject = it.subject.and_then(|place| facts.subjects.get(place));
    let endpoint = subject.filter(|subject| subject.kind == Kind::Endpoint);
    let caller = subject.map_or_else(|| "the program".to_owned(), |subject| subject.shown());
    let whose = match subject {
        Some(_) => "its time".to_owned(),
        None => facts.cpu_name().to_owned(),
    };
    let latencies = facts.profile.latencies();
    let requests = endpoint.and_then(|of| latencies.get(&Some(of.name.as_str())));
    let each = match requests.map_or(0, |it| it.requests) {
        0 => String::new(),
        requests => format!(
            ", {} a request",
            duration(it.share.ns as f64 / requests as f64)
        ),
    };
    let (sure, because) = it.shown.sure();
    let weight = match subject {
        Some(_) => facts.lost_waiting(it.share.ns),
        None => facts.lost_on_processors(&it.share),
    };
    Finding {
        rule: "",
        what: format!(
            "{caller} calls a database repeatedly in {name}{at}: {}, {} of {whose}{each}",
            it.shown.words(),
            percent(it.share.value)
        ),
        weight,
        share: it.share.clone(),
        evidence: vec![Evidence {
            text: it.shown.evidence(),
            view: View {
                measure: match subject {
                    Some(_) => Measure::Wall,
                    None => Measure::Cpu,
                },
                endpoint: endpoint.map(|of| of.name.clone()),
                focus: facts.stacks.focus(method),
                ..View::default()
            },
            stack: facts.stacks.shown(it.node),
        }],
        remedy: format!(
            "use one query in {}: a join, IN (...) with all keys, a batch, or the parts together \
             with their owners (JOIN FETCH); cache rows that seldom change",
            short(&name)
        ),
        sure,
        because: because.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    const ASK: &str = "org.h2.Engine.run;org.h2.jdbc.JdbcPreparedStatement.executeQuery;\
                       app.Orders.line:42;app.Orders.list";
    const OWN: &str = "app.Orders.add;app.Orders.list";

    /// Requests of 100 ms with a sample each 10 ms: inside of the call wherever there is an `x`.
    fn service(requests: u64, pattern: &str) -> Art {
        let mut art = Art::default();
        for request in 0..requests {
            for (step, mark) in pattern.chars().enumerate() {
                let stack = if mark == 'x' { ASK } else { OWN };
                let at_ms = request * 100 + step as u64 * 10;
                art.request_sample("w-1", "GET /orders", request + 1, stack, (at_ms, 10));
            }
        }
        art
    }

    #[test]
    fn call_that_is_entered_again_in_a_request_is_a_loop() {
        let mut art = service(20, "x-xx-x--x-");
        let found = art.found(check);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            found[0].what,
            "the program calls a database repeatedly in app.Orders.line (line 42): at least 4 \
             calls in one request, 50 % of the CPU time"
        );
        assert!(found[0].remedy.contains("use one query in Orders.line"));
    }

    #[test]
    fn results_that_are_allocated_count_calls() {
        for (bytes, expected) in [(512_000, 1), (2_000, 0)] {
            let mut art = Art::default();
            art.cpu("w-1", "GET /orders", ASK, 50, 10);
            art.look("w-1", "GET /orders", "runnable", OWN, 20, 20);
            art.requests("GET /orders", 1000, 10);
            // Objects of 64 bytes: 8000 each, 80 for a request.
            let class = "org.h2.jdbc.JdbcResultSet";
            art.allocated_for("w-1", "GET /orders", ASK, class, (bytes, 10));
            let found = art.found(check);
            assert_eq!(found.len(), expected, "{found:?}");
            let tells = |it: &Finding| it.what.contains("about 80 calls a request");
            assert!(found.iter().all(tells), "{found:?}");
        }
    }

    #[test]
    fn one_long_query_is_no_loop() {
        for pattern in ["--xxxxxx--", "xx------xx", "----------"] {
            assert_eq!(service(20, pattern).found(check), [], "{pattern}");
        }
        // A single request may be special.
        assert_eq!(service(2, "x-xx-x--x-").found(check), []);
    }

    #[test]
    fn batches_and_other_statements_are_no_queries() {
        for (class, method, expected) in [
            (
                "org.postgresql.jdbc.PgPreparedStatement",
                "executeQuery",
                true,
            ),
            ("com.zaxxer.hikari.pool.ProxyStatement", "execute", true),
            ("org.h2.jdbc.JdbcStatement", "executeBatch", false),
            ("org.h2.jdbc.JdbcStatement", "close", false),
            ("app.Executor", "execute", false),
        ] {
            assert_eq!(executes(class, method), expected, "{class}.{method}");
        }
    }

    #[test]
    fn waits_between_turns_are_reported_for_one_endpoint() {
        let stack = "sun.nio.ch.Net.poll;org.postgresql.jdbc.PgStatement.executeQuery;\
                     app.Orders.line:42;app.Orders.list";
        for (turns, expected) in [(2000, 1), (300, 0)] {
            let mut art = Art::default();
            art.look("w-1", "GET /orders", "socket", stack, 300, 20);
            art.cpu("w-1", "GET /orders", OWN, 100, 10);
            art.requests("GET /orders", 100, 70);
            art.turns("w-1", turns, 10);
            let found = art.found(check);
            assert_eq!(found.len(), expected, "{found:?}");
            let tells = |it: &Finding| it.what.contains("about 20 waits a request, 86 % of its");
            assert!(found.iter().all(tells), "{found:?}");
        }
    }

    #[test]
    fn parts_that_are_loaded_one_by_one_need_no_other_sign() {
        let stack = "org.h2.jdbc.JdbcPreparedStatement.executeQuery;\
                     org.hibernate.loader.Loader.load;\
                     org.hibernate.collection.spi.AbstractPersistentCollection.initialize;\
                     app.Orders.list";
        let mut art = Art::default();
        art.cpu("w-1", "GET /orders", stack, 50, 10);
        art.cpu("w-1", "GET /orders", OWN, 50, 10);
        let found = art.found(check);
        assert!(
            found[0].what.contains("one call for each loaded object"),
            "{found:?}"
        );
    }

    #[test]
    fn loop_has_one_finding() {
        let mut art = service(20, "x-xx-x--x-");
        let explained = crate::explain(&art.profile(), &crate::Options::default());
        let rules: Vec<&str> = explained.findings.iter().map(|it| it.rule).collect();
        assert!(rules.contains(&"many-queries"), "{rules:?}");
        assert!(!rules.contains(&"costly-calls"), "{rules:?}");
    }
}

//! Many queries: one place of the application asks a database again and again for one request, as
//! where each row of a list asks for its details. How many calls there are is not recorded. It
//! follows from what is: a request that was seen inside of the call, outside, and inside again made
//! another call: that is the least number of calls. Where allocations are recorded, the results of
//! queries are counted: each call makes one.

use crate::application::own_methods;
use crate::evidence::{Facts, Kind, Subject, is_ready, is_wait};
use crate::finding::{Evidence, Finding, Measure, Sure, Verdict, View};
use crate::names::Set;
use crate::numbers::{count, duration, percent, plural, short, whole};
use crate::share::Share;
use dwell_profile::{ContextId, Look, MethodId, NameId, NodeId, Profile, ThreadId, Weight};
use std::collections::{BTreeMap, HashMap, HashSet};

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
/// A busy machine takes a processor from a running thread about as often.
const PREEMPTED_NS: u64 = 1_000_000;
/// Samples of one request in a call, and of all such requests, that show a long call.
const LONG: u64 = 4;
const LONG_ALL: u64 = 12;

/// Where objects ask for their parts one by one, or are loaded with a query for each part.
const LAZY: &[&str] = &[
    "org.hibernate.collection.*PersistentCollection.initialize",
    "org.hibernate.collection.*PersistentCollection.read",
    "org.hibernate.proxy.*LazyInitializer.initialize",
    "org.hibernate.sql.results.graph.entity.internal.EntitySelectFetchInitializer.*",
    "org.hibernate.sql.results.graph.collection.internal.SelectEagerCollectionInitializer.*",
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
    /// Whether it is in any call of JDBC.
    is_in_jdbc: bool,
    is_lazy: bool,
}

/// Knowledge about the number of calls.
enum Calls {
    Many(Shown),
    Few,
    Unknown,
}

/// How calls are known to be many.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shown {
    /// Maximum of calls in one request, and number of requests with at least [`CALLS`].
    Again(u64, u64),
    /// Mean number for each request.
    Each(f64),
    /// Number of query results for each request, and of the samples that show it.
    Results(f64, u64),
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
    let (loops, uncounted) = loops(facts, &asking);
    match uncounted.filter(|_| loops.is_empty()) {
        Some((subject, share)) => Verdict::Lacks(format!(
            "{subject} spends {} of its time in calls of a database, and their number is not \
             known; record with {}",
            percent(share.value),
            match facts.profile.has_allocations() {
                true => "--alloc 32k",
                false => "-e cpu,wall,alloc",
            }
        )),
        None => Verdict::Found(loops.iter().map(|it| finding(facts, it)).collect()),
    }
}

/// By node: whether a finding of this rule covers its time, as that of all JDBC in a method that
/// calls in a loop. Empty without findings.
pub(super) fn told(facts: &Facts<'_>) -> Vec<bool> {
    let Some(asking) = Asking::new(facts.profile) else {
        return Vec::new();
    };
    let (loops, _) = loops(facts, &asking);
    let methods: Vec<MethodId> = loops.iter().map(|it| it.site.0).collect();
    if methods.is_empty() {
        return Vec::new();
    }
    let is_told = |state: &State| {
        let own = state.own.filter(|_| state.is_in_jdbc);
        own.is_some_and(|(method, _)| methods.contains(&method))
    };
    asking.at.iter().map(is_told).collect()
}

/// Whether a method executes a statement of JDBC, whatever driver or pool it is of.
fn executes(class: &str, method: &str) -> bool {
    let simple = class.rsplit('.').next().unwrap_or(class);
    // A batch is many for one call.
    method.starts_with("execute") && !method.ends_with("Batch") && simple.contains("Statement")
}

/// Whether a method is a part of JDBC, whatever driver or pool it is of.
fn is_jdbc(class: &str, method: &str) -> bool {
    let simple = class.rsplit('.').next().unwrap_or(class);
    // There are connections of many other kinds.
    let calls = ["prepare", "commit", "rollback", "setAutoCommit"];
    let is_connection = simple.contains("Connection");
    (is_connection && calls.iter().any(|call| method.starts_with(call)))
        || simple.contains("Statement")
        || simple.contains("ResultSet")
        || class.to_ascii_lowercase().contains("jdbc")
}

/// Whether objects of a class are results of queries. MariaDB's driver has names of its own.
fn is_result(class: &str) -> bool {
    let simple = class.rsplit('.').next().unwrap_or(class);
    let name = simple.trim_end_matches(|it: char| it.is_ascii_digit());
    let name = name.strip_suffix("Impl").unwrap_or(name);
    let is_mariadb = class.starts_with("org.mariadb.") && name.ends_with("Result");
    name.ends_with("ResultSet") || is_mariadb
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
        let methods = profile.methods().iter();
        let jdbc = methods.map(|it| is_jdbc(names.text(it.class), names.text(it.name)));
        let jdbc: Vec<bool> = jdbc.collect();
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
                state.is_in_jdbc |= jdbc.get(method as usize) == Some(&true);
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
    lazy_ns: u64,
    heaviest: (u64, NodeId),
}

impl Spent {
    fn add(&mut self, node: NodeId, weight: &Weight, is_lazy: bool) {
        self.weight += weight;
        self.heaviest = self.heaviest.max((weight.sum, node));
        if is_lazy {
            self.lazy_ns = self.lazy_ns.saturating_add(weight.sum);
        }
    }
}

/// The loops, and the subject and share of a place whose number of calls is not known.
fn loops(facts: &Facts<'_>, asking: &Asking) -> (Vec<Loop>, Option<(String, Share)>) {
    let entered = entered(facts, asking);
    let mut found: Vec<Loop> = Vec::new();
    let mut uncounted: Option<(String, Share)> = None;
    let spent = spent(facts, asking);
    for (&(site, subject), of_site) in &spent {
        let share = share(facts, subject, of_site);
        if !share.is_at_least(SHARE, SURELY, SAMPLES) {
            continue;
        }
        let others = spent.iter().filter(|((_, other), _)| *other == subject);
        let is_first = others.fold(true, |is_first, (_, other)| {
            is_first && other.weight.sum <= of_site.weight.sum
        });
        let place = (site, subject, is_first);
        match calls(facts, place, of_site, &entered, asking) {
            Calls::Many(shown) => found.push(Loop {
                site,
                subject,
                share,
                shown,
                node: of_site.heaviest.1,
            }),
            Calls::Unknown if uncounted.as_ref().is_none_or(|(_, it)| it.ns < share.ns) => {
                let subject = subject.and_then(|subject| facts.subjects.get(subject));
                uncounted = subject
                    .map(|subject| (subject.shown(), share))
                    .or(uncounted);
            }
            Calls::Few | Calls::Unknown => {}
        }
    }
    found.sort_by_key(|it| std::cmp::Reverse(it.share.ns));
    found.truncate(MOST);
    (found, uncounted)
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
            spent.add(entry.node, &entry.weight, state.is_lazy);
        }
    }
    if facts.entries.is_empty() {
        for (weight, node) in facts.program_cpu.iter().zip(0..) {
            let state = asking.state(node);
            if let Some(site) = state.asks.filter(|_| weight.samples > 0) {
                let spent = sums.entry((site, None)).or_default();
                spent.add(node, weight, state.is_lazy);
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
    /// By place and request, if requests have numbers: how often, and the samples inside.
    of_request: BTreeMap<Site, HashMap<u64, (u64, u64)>>,
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
    // Time without a processor has the last known stack and request, which may be past.
    let is_new_stack = |it: &&Look| !is_ready(profile.names().text(it.cause));
    let looks = profile.looks().iter().filter(is_new_stack);
    let looks = looks.map(|it| (it.thread, it.time_ns, asks(it.node), it.context));
    let mut all: Vec<Seen> = samples.chain(looks).collect();
    all.sort_unstable_by_key(|(thread, time, ..)| (*thread, *time));
    let root = |context: Option<ContextId>| {
        let context = context.and_then(|id| profile.contexts().get(id as usize));
        context.map_or(0, |context| context.local_root_span_id)
    };
    let mut entered = Entered::default();
    let mut before: Option<Seen> = None;
    let mut left: HashSet<(ThreadId, u64)> = HashSet::new();
    for seen in all {
        let (thread, _, site, context) = seen;
        let request = root(context);
        // A thread that went on to another request does not come back.
        if request != 0 && left.contains(&(thread, request)) {
            continue;
        }
        // Of a stack that was first seen in the call it is not known when it got there.
        let was = before.filter(|(other, ..)| *other == thread);
        let is_new = was.is_none_or(|(_, _, at, of)| at != site || of != context);
        if let Some((.., of)) = was.filter(|(.., of)| root(*of) != request) {
            left.insert((thread, root(of)));
        }
        before = Some(seen);
        let (Some(site), Some(context)) = (site, context) else {
            continue;
        };
        match request {
            0 => {
                if let Some(endpoint) = profile.endpoint(context).filter(|_| is_new) {
                    let key = (site, endpoint.to_owned());
                    *entered.of_endpoint.entry(key).or_default() += 1;
                }
            }
            request => {
                let requests = entered.of_request.entry(site).or_default();
                let (calls, samples) = requests.entry(request).or_default();
                *calls += u64::from(is_new);
                *samples += 1;
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
        let endpoint = object.context.and_then(|id| profile.endpoint(id));
        let site = asking.state(object.node).asks;
        if let (Some(site), Some(endpoint), true) = (site, endpoint, is_result(class)) {
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

/// The number of calls of a place. `is_first`: no other place of the subject takes more time.
fn calls(
    facts: &Facts<'_>,
    (site, subject, is_first): (Site, Option<usize>, bool),
    spent: &Spent,
    entered: &Entered,
    asking: &Asking,
) -> Calls {
    let seen = (entered.of_request.get(&site)).map_or(Calls::Unknown, seen_calls);
    if !matches!(seen, Calls::Unknown) {
        return seen;
    }
    let subject = subject.and_then(|subject| facts.subjects.get(subject));
    let subject = subject.filter(|subject| subject.kind == Kind::Endpoint);
    let latencies = facts.profile.latencies();
    let requests = subject.and_then(|subject| latencies.get(&Some(subject.name.as_str())));
    let counted = match (subject, requests.map_or(0, |it| it.requests)) {
        (Some(subject), requests @ 1..) => {
            let key = (site, subject.name.clone());
            let of = (&key, is_first, requests as f64);
            Some(counted(facts, subject, of, entered, asking))
        }
        // Without requests there is nothing to count for each.
        _ => None,
    };
    let is_lazy = spent.lazy_ns as f64 >= MOSTLY * spent.weight.sum as f64;
    match counted {
        None | Some(Calls::Unknown) if is_lazy => Calls::Many(Shown::Lazy),
        counted => counted.unwrap_or(Calls::Few),
    }
}

/// From the samples of requests: how often they were seen to enter the call.
fn seen_calls(requests: &HashMap<u64, (u64, u64)>) -> Calls {
    let many = requests.values().filter(|(calls, _)| *calls >= CALLS);
    let many = many.count() as u64;
    if many >= REQUESTS && many as f64 >= OF_SEEN * requests.len() as f64 {
        let most = requests.values().map(|(calls, _)| *calls).max();
        return Calls::Many(Shown::Again(most.unwrap_or(0), many));
    }
    let long = requests.values().filter(|(_, samples)| *samples >= LONG);
    let (calls, samples) = long.clone().fold((0, 0), |sum: (u64, u64), it| {
        (sum.0.saturating_add(it.0), sum.1.saturating_add(it.1))
    });
    let is_once = calls as f64 <= (1.0 + OF_SEEN) * long.count() as f64;
    match is_once && samples >= LONG_ALL {
        true => Calls::Few,
        false => Calls::Unknown,
    }
}

/// From sums for all requests of an endpoint.
fn counted(
    facts: &Facts<'_>,
    subject: &Subject,
    (key, is_first, requests): (&(Site, String), bool, f64),
    entered: &Entered,
    asking: &Asking,
) -> Calls {
    let results = entered.results.get(key);
    if let Some((objects, samples)) = results.filter(|(_, samples)| *samples >= RESULTS) {
        let each = objects / requests;
        return match each >= CALLS as f64 {
            true => Calls::Many(Shown::Results(each, *samples)),
            false => Calls::Few,
        };
    }
    let calls = entered.of_endpoint.get(key);
    let each = calls.map_or(0.0, |calls| *calls as f64 / requests);
    if each >= CALLS as f64 {
        return Calls::Many(Shown::Each(each));
    }
    match turns(facts, subject, asking) {
        Some(turns) if turns / requests < TURNS => Calls::Few,
        // For one of its places only: which of them the turns belong to is not known.
        Some(turns) if is_first => Calls::Many(Shown::Turns(turns / requests)),
        // Results would have been seen among the objects.
        _ if facts.profile.has_allocations() && results.is_none() => Calls::Few,
        _ => Calls::Unknown,
    }
}

/// How often the threads of an endpoint went on after a wait, if they mostly waited for a database,
/// and worked for no other endpoint for long.
fn turns(facts: &Facts<'_>, subject: &Subject, asking: &Asking) -> Option<f64> {
    let (mut database, mut waits) = (0u64, 0u64);
    for entry in &facts.entries {
        let of = facts.subjects.get(entry.subject);
        let is_of = of.is_some_and(|of| of.kind == subject.kind && of.name == subject.name);
        if is_of && is_wait(entry.cause) {
            waits = waits.saturating_add(entry.weight.sum);
            if asking.state(entry.node).is_in_jdbc {
                database = database.saturating_add(entry.weight.sum);
            }
        }
    }
    // Threads that mostly wait for the database get a processor once for each answer.
    if waits == 0 || (database as f64) < MOSTLY * waits as f64 {
        return None;
    }
    let others = facts
        .subjects
        .iter()
        .filter(|other| other.name != subject.name && !other.threads.is_disjoint(&subject.threads));
    let others = others.fold(0u64, |sum, other| sum.saturating_add(other.busy.sum));
    if others as f64 > (1.0 - MOSTLY) * subject.busy.sum as f64 {
        return None;
    }
    let times = facts.profile.thread_times().iter();
    let mut of_subject = times.filter(|it| subject.threads.contains(&it.thread) && !it.is_carrier);
    let first = of_subject.next()?;
    let turns = std::iter::once(first)
        .chain(of_subject)
        .fold(0u64, |sum, it| {
            sum.saturating_add(it.turns.saturating_sub(it.cpu_ns / PREEMPTED_NS))
        });
    Some(turns as f64)
}

impl Shown {
    fn words(self) -> String {
        match self {
            Shown::Again(most, _) => format!("at least {} calls in one request", count(most)),
            Shown::Each(each) => format!("at least {} calls a request on average", whole(each)),
            Shown::Results(each, _) => format!("about {} calls a request", whole(each)),
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
            Shown::Results(each, samples) => {
                let factor = (2.0 / (samples as f64).sqrt()).exp();
                format!(
                    "{} of query results show this number for each request (95 %: {} to {})",
                    plural(samples, "sampled allocation"),
                    whole(each / factor),
                    whole(each * factor)
                )
            }
            Shown::Turns(_) => {
                "its threads got a CPU again this often for each request, and mostly \
             waited for the database"
                    .to_owned()
            }
            Shown::Lazy => "the stacks load parts of objects when they are first used".to_owned(),
        }
    }

    const fn sure(self) -> (Sure, &'static str) {
        match self {
            Shown::Again(..) | Shown::Each(_) => (
                Sure::High,
                "the count has sampled calls only; most calls fall between two samples",
            ),
            Shown::Results(..) => (
                Sure::High,
                "each call makes a result, and samples of allocations count objects",
            ),
            Shown::Lazy => (
                Sure::Medium,
                "the frames are those of loading one by one, but the loads were not counted",
            ),
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
mod tests;

//! Hand-made pools: threads of the program that take work from a blocking queue of the JDK, without
//! an executor. Such a pool is too small or too slow if none of its workers is ever free while
//! other threads wait for it. Those threads wait for room in the queue, or for results and
//! outnumber the workers.
//!
//! No runtime reports the owner of a queue. The rule takes the class of the program that both sides
//! share, and only if that class identifies one group of threads. Queues made of `wait` and
//! `notify` are left out: there, idle workers and threads that wait for room look the same.

use super::amid_work::FILLING;
use super::futures::{WAITS, is_held_up};
use super::pools::{BORROWING, WORKERS_LOOKS, never_idle};
use crate::evidence::{Facts, IDLE, is_ready};
use crate::finding::{Evidence, Finding, Measure, Sure, View};
use crate::names::Set;
use crate::numbers::{percent, short};
use crate::share::Share;
use crate::stacks::{Heaviest, Nodes};
use dwell_profile::{MethodId, NodeId, RUNNING, Role, Seeds, ThreadId, WallFilter, Weight};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Share of the waiting threads' time that is worth a change, and its least lower bound.
const SHARE: f64 = 0.10;
const SURELY: f64 = 0.04;
const LOOKS: u64 = 8;
/// Least part of threads' time below a class of the program for the threads to belong to that
/// class.
const ROOTED: f64 = 0.9;
/// Threads that stay in one wait for this time, in half of their time, are no workers. An example
/// is `main`, which waits for the end.
const STUCK_NS: u64 = 1_000_000_000;
const STUCK: f64 = 0.5;
/// Least ratio of threads waiting for results to workers, as a mean of the whole recording.
const MORE: f64 = 1.25;
/// Workers that wait for this part of their time leave processors to others.
const HELD_UP: f64 = 0.5;
const MOST: usize = 2;

/// Where a thread without work waits for some.
const TAKING: &[&str] = &[
    "java.util.concurrent.ArrayBlockingQueue.take",
    "java.util.concurrent.ArrayBlockingQueue.poll",
    "java.util.concurrent.LinkedBlockingQueue.take",
    "java.util.concurrent.LinkedBlockingQueue.poll",
    "java.util.concurrent.LinkedBlockingDeque.take*",
    "java.util.concurrent.LinkedBlockingDeque.poll*",
    "java.util.concurrent.PriorityBlockingQueue.take",
    "java.util.concurrent.PriorityBlockingQueue.poll",
    "java.util.concurrent.SynchronousQueue.take",
    "java.util.concurrent.SynchronousQueue.poll",
    "java.util.concurrent.LinkedTransferQueue.take",
    "java.util.concurrent.LinkedTransferQueue.poll",
];

/// Reason to wait for a hand-made pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum For {
    Room,
    Results,
}

/// Classes of the program on a stack, by role, without their nested classes.
#[derive(Default)]
struct Seen<'f> {
    takes: Option<&'f str>,
    fills: Option<&'f str>,
    awaits: bool,
    /// The outermost one.
    root: Option<&'f str>,
    classes: BTreeSet<&'f str>,
}

/// Activity of one group's threads.
#[derive(Default)]
struct Group<'f> {
    threads: BTreeSet<ThreadId>,
    total: Weight,
    idle: Weight,
    /// All that is not idle.
    busy: Weight,
    runs: Weight,
    /// In waits that are too long to be for a task.
    stuck_ns: u64,
    /// Time with work in waits during which the pool could do other work.
    waits: Weight,
    places: BTreeMap<(&'f str, Option<MethodId>, bool), u64>,
    takes: BTreeSet<&'f str>,
    roots: BTreeMap<&'f str, u64>,
    waiting: BTreeMap<(For, &'f str), Heaviest>,
}

/// A waiting group, its reason, and the group that it waits for.
struct Case<'f> {
    what: For,
    class: &'f str,
    waiter: &'f str,
    crew: &'f str,
    /// Whether the workers were seen to take from a queue there.
    is_seen: bool,
}

/// Sets of methods that matter to this rule.
struct Sets {
    taking: Set,
    filling: Set,
    awaiting: Set,
    borrows: Nodes,
}

/// Subject of a finding.
pub(crate) struct Told {
    /// Name of the group with too few workers.
    pub(crate) crew: String,
    /// The class in which the queue is full; `None`: it is not known to be.
    pub(crate) full: Option<String>,
}

pub(crate) fn saturated(facts: &Facts<'_>) -> Vec<(Finding, Told)> {
    let groups = groups(facts);
    let mut found: Vec<(Finding, Told)> = cases(facts, &groups)
        .iter()
        .filter_map(|case| Some((finding(facts, &groups, case)?, case.told())))
        .collect();
    found.sort_by(|(a, _), (b, _)| b.weight.total_cmp(&a.weight));
    found.truncate(MOST);
    found
}

/// A class without its nested classes, and without the suffix of classes that the JVM makes.
pub(crate) fn outer(class: &str) -> &str {
    class.split('$').next().unwrap_or(class)
}

fn groups<'f>(facts: &'f Facts<'_>) -> BTreeMap<&'f str, Group<'f>> {
    let profile = facts.profile;
    let sets = Sets {
        taking: Set::new(profile, TAKING),
        filling: Set::new(profile, FILLING),
        awaiting: Set::new(profile, WAITS),
        borrows: facts.stacks.nodes_with(&Set::new(profile, BORROWING)),
    };
    // Most programs end here: no thread waits for room, and no worker is waited for.
    if sets.filling.is_empty() && (sets.taking.is_empty() || sets.awaiting.is_empty()) {
        return BTreeMap::new();
    }
    let is_program: Vec<bool> = (profile.threads().iter())
        .map(|thread| profile.thread_role(thread) == Role::Program)
        .collect();
    let mut known: HashMap<NodeId, Seen<'f>, Seeds> = HashMap::default();
    let mut groups: BTreeMap<&str, Group<'_>> = BTreeMap::new();
    let filter = WallFilter::default();
    for wall in profile.wall(&filter) {
        if is_program.get(wall.thread as usize) != Some(&true) {
            continue;
        }
        let seen = (known.entry(wall.node)).or_insert_with(|| seen(facts, &sets, wall.node));
        let group = groups.entry(facts.group(wall.thread)).or_default();
        group.threads.insert(wall.thread);
        group.total += &wall.weight;
        group.takes.extend(seen.takes);
        if wall.lasted_ns >= STUCK_NS {
            group.stuck_ns = group.stuck_ns.saturating_add(wall.weight.sum);
        }
        if let Some(root) = seen.root {
            *group.roots.entry(root).or_default() += wall.weight.sum;
        }
        let is_parked = matches!(wall.cause, "park" | "object-wait");
        let is_idle = wall.cause == IDLE || is_parked && seen.takes.is_some();
        match is_idle {
            true => group.idle += &wall.weight,
            false => group.busy += &wall.weight,
        }
        if is_idle {
            continue;
        }
        if is_held_up(wall.cause) {
            let is_limited =
                matches!(wall.cause, "monitor" | "lock") || sets.borrows.has(wall.node);
            let place = facts.stacks.place(wall.node);
            group.waits += &wall.weight;
            *(group.places.entry((wall.cause, place, is_limited))).or_default() += wall.weight.sum;
        }
        if wall.cause == RUNNING || is_ready(wall.cause) {
            group.runs += &wall.weight;
        }
        if is_parked {
            group.wait(seen, wall.node, &wall.weight);
        }
    }
    groups
}

fn seen<'f>(facts: &'f Facts<'_>, sets: &Sets, node: NodeId) -> Seen<'f> {
    let (stacks, profile) = (&facts.stacks, facts.profile);
    let class = |method: MethodId| {
        let method = profile.methods().get(method as usize);
        outer(method.map_or("", |method| profile.names().text(method.class)))
    };
    let place = stacks.place(node).filter(|_| stacks.is_of_program(node));
    let path = stacks.path(node);
    let own = path.iter().filter(|method| stacks.is_app(**method));
    let own: Vec<&str> = own.map(|method| class(*method)).collect();
    let if_so = |is_so: bool| place.filter(|_| is_so).map(class);
    Seen {
        takes: if_so(stacks.program_calls(node, &sets.taking)),
        fills: if_so(stacks.top_has(node, &sets.filling)),
        // Not below other code of the JDK, which waits for its own threads.
        awaits: stacks.program_calls(node, &sets.awaiting),
        root: own.first().copied(),
        classes: own.into_iter().collect(),
    }
}

impl<'f> Group<'f> {
    /// Adds a wait of threads that have something to do.
    fn wait(&mut self, seen: &Seen<'f>, node: NodeId, weight: &Weight) {
        let mut add = |what, class| {
            let sum = self.waiting.entry((what, class)).or_default();
            sum.add(node, weight);
        };
        match seen.fills {
            Some(class) => add(For::Room, class),
            None if seen.awaits => {
                (seen.classes.iter()).for_each(|class| add(For::Results, *class));
            }
            None => {}
        }
    }

    /// Whether none of its threads was ever without work, as far as that can be seen.
    fn is_full(&self) -> bool {
        self.total.samples >= WORKERS_LOOKS && never_idle(&self.idle, &self.total)
    }

    /// Whether it works below a class nearly all its time.
    fn is_rooted(&self, class: &str) -> bool {
        let part = |ns: u64| ns as f64 / self.total.sum.max(1) as f64;
        let is_at_work = self.runs.samples >= LOOKS && part(self.stuck_ns) < STUCK;
        is_at_work && part(self.roots.get(class).copied().unwrap_or(0)) >= ROOTED
    }

    /// Whether it waits for others in this class, so that the others do not wait for it.
    fn waits_there(&self, class: &str) -> bool {
        let waiting =
            [For::Room, For::Results].map(|what| self.waiting.contains_key(&(what, class)));
        waiting.contains(&true)
    }
}

/// Waiting groups, each with the group it waits for.
fn cases<'f>(facts: &Facts<'_>, groups: &BTreeMap<&'f str, Group<'f>>) -> Vec<Case<'f>> {
    let mut cases = Vec::new();
    for (waiter, group) in groups {
        for ((what, class), wait) in &group.waiting {
            let Some((crew, is_seen)) = crew(facts, groups, class, *what) else {
                continue;
            };
            let case = Case {
                what: *what,
                class,
                waiter,
                crew,
                is_seen,
            };
            if case.has_queue(facts, groups, wait) {
                cases.push(case);
            }
        }
    }
    cases
}

/// The only group that takes from a queue in this class. For a full queue without a known taker:
/// the only group that works under the class. `None` if that is not unique.
fn crew<'f>(
    facts: &Facts<'_>,
    groups: &BTreeMap<&'f str, Group<'f>>,
    class: &str,
    what: For,
) -> Option<(&'f str, bool)> {
    let only = |is_one: &dyn Fn(&Group<'f>) -> bool| {
        let mut all = groups.iter().filter(|(_, group)| is_one(group));
        let first = all.next().map(|(name, _)| *name);
        (first, all.next().is_none())
    };
    let (taker, is_only) = only(&|group| group.takes.contains(class));
    if let Some(taker) = taker {
        return is_only.then_some((taker, true));
    }
    // How long waits are is not known where looks are put together.
    if what == For::Results || facts.profile.bin_ns() > 0 {
        return None;
    }
    let (worker, is_only) = only(&|group| group.is_rooted(class) && !group.waits_there(class));
    worker.filter(|_| is_only).map(|worker| (worker, false))
}

impl Case<'_> {
    /// Whether tasks have to wait for the workers.
    fn has_queue(
        &self,
        facts: &Facts<'_>,
        groups: &BTreeMap<&str, Group<'_>>,
        wait: &Heaviest,
    ) -> bool {
        let Some(crew) = groups.get(self.crew).filter(|crew| crew.is_full()) else {
            return false;
        };
        // A group that takes its own entries waits for itself.
        let is_other = self.crew != self.waiter;
        let workers = crew.threads.len().max(1) as f64;
        is_other
            && match self.what {
                For::Room => true,
                For::Results => mean(facts, &wait.weight) >= MORE * workers,
            }
    }
}

/// How many threads did something at once, on average.
fn mean(facts: &Facts<'_>, weight: &Weight) -> f64 {
    weight.sum as f64 / facts.profile.info().duration_ns.max(1) as f64
}

fn finding(
    facts: &Facts<'_>,
    groups: &BTreeMap<&str, Group<'_>>,
    case: &Case<'_>,
) -> Option<Finding> {
    let (waiter, crew) = (groups.get(case.waiter)?, groups.get(case.crew)?);
    let wait = waiter.waiting.get(&(case.what, case.class))?;
    let of = format!("the wall time of {}", case.waiter);
    let share = Share::sampled(&wait.weight, &waiter.busy, of);
    if !share.is_at_least(SHARE, SURELY, LOOKS) {
        return None;
    }
    let place = facts.stacks.place_name(wait.node);
    let (name, part) = (case.crew, percent(share.value));
    let threads = match crew.threads.len() {
        1 => format!("the only thread of {name} always has work"),
        many => format!("the {many} threads of {name} always have work"),
    };
    let what = match case.what {
        For::Room => format!(
            "{threads}, and {} waits {part} of its time in {place} \
             for room in their queue",
            case.waiter
        ),
        For::Results => format!(
            "{threads}, and {:.1} threads of {} wait for results in {place} on average: more than \
             {name} can serve at once",
            mean(facts, &wait.weight),
            case.waiter
        ),
    };
    Some(Finding {
        rule: "",
        what,
        weight: facts.lost_waiting(wait.weight.sum),
        share,
        evidence: vec![
            Evidence {
                text: format!("{} waits", case.waiter),
                view: View {
                    focus: facts.stacks.focus_of(wait.node),
                    ..view(case.waiter)
                },
                stack: facts.stacks.shown(wait.node),
            },
            crew.evidence(facts, name),
        ],
        remedy: crew.remedy(facts, name),
        sure: case.sure(),
        because: case.because(),
    })
}

fn view(threads: &str) -> View {
    View {
        measure: Measure::Wall,
        threads: Some(threads.to_owned()),
        ..View::default()
    }
}

impl Case<'_> {
    fn told(&self) -> Told {
        Told {
            crew: self.crew.to_owned(),
            full: (self.what == For::Room).then(|| self.class.to_owned()),
        }
    }

    fn sure(&self) -> Sure {
        match (self.what, self.is_seen) {
            (For::Room, true) => Sure::High,
            (For::Room, false) => Sure::Medium,
            (For::Results, _) => Sure::Low,
        }
    }

    fn because(&self) -> String {
        let class = self.class;
        let whose = match self.is_seen {
            true => format!("only these threads were sampled taking from a queue in {class}"),
            false => format!("only these threads work below {class}, where the others wait"),
        };
        match self.what {
            For::Room => whose,
            For::Results => format!("{whose}; which thread produces these results was not sampled"),
        }
    }
}

impl Group<'_> {
    /// Activity of the workers, with the observation that they are never free.
    fn evidence(&self, facts: &Facts<'_>, name: &str) -> Evidence {
        let most = self.places.iter().max_by_key(|(_, ns)| **ns);
        let most = most.map_or(String::new(), |((cause, place, _), _)| {
            format!(", mostly {cause} in {}", facts.stacks.name_of(*place))
        });
        Evidence {
            text: format!(
                "{name}: {} of its time idle, {} waiting{most}, otherwise running or runnable",
                percent(self.idle.share(&self.total)),
                percent(self.waits.share(&self.total)),
            ),
            view: view(name),
            stack: Vec::new(),
        }
    }

    fn remedy(&self, facts: &Facts<'_>, name: &str) -> String {
        let most = self.places.iter().max_by_key(|(_, ns)| **ns);
        let is_held_up = self.waits.share(&self.total) >= HELD_UP;
        let Some(((cause, place, is_limited), _)) = most.filter(|_| is_held_up) else {
            return format!(
                "shorten the work of {name} (see its flame graph), or give it more threads if CPUs \
                 are free; a longer queue only delays the wait"
            );
        };
        let place = facts.stacks.name_of(*place);
        let place = short(&place);
        match is_limited {
            true => format!(
                "shorten the wait of {name} in {place} ({cause}): it is for a limited resource, \
                 so more threads would also wait"
            ),
            false => format!(
                "shorten the wait of {name} in {place} ({cause}); until then, more threads help, \
                 because these do not use the CPUs"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;
    use crate::rules::{amid_work, pools};

    const PARK: &str = "jdk.internal.misc.Unsafe.park;";
    const LOOP: &str = "app.Pool$Worker.run";

    /// Threads that work in `busy` of 100 looks, and wait for work in the others.
    fn workers(art: &mut Art, threads: usize, cause: &str, busy: u64) {
        for thread in 0..threads {
            let name = format!("worker-{thread}");
            let work = format!("app.Task.work;{LOOP}");
            if cause == "running" {
                art.cpu(&name, "", &work, busy, 100);
            } else {
                art.cpu(&name, "", &work, 10, 10);
                for _ in 0..busy {
                    art.look(&name, "", cause, &work, 1, 100);
                }
            }
            let take = format!("{PARK}java.util.concurrent.ArrayBlockingQueue.take;{LOOP}");
            for _ in busy..100 {
                art.look(&name, "", "park", &take, 1, 100);
            }
        }
    }

    /// A thread that waits in 50 of 100 looks, of 100 ms each.
    fn waiter(art: &mut Art, name: &str, method: &str, caller: &str) {
        for _ in 0..50 {
            let stack = format!("{PARK}{method};{caller};app.Main.serve");
            art.look(name, "", "park", &stack, 1, 100);
        }
        art.cpu(name, "", "app.Main.make;app.Main.serve", 50, 100);
    }

    const PUT: &str = "java.util.concurrent.ArrayBlockingQueue.put";
    const GET: &str = "java.util.concurrent.CountDownLatch.await";

    #[test]
    fn busy_workers_with_full_queue_are_reported() {
        for (cause, remedy) in [
            ("running", "more threads if CPUs are free"),
            ("socket", "until then, more threads help"),
            ("monitor", "would also wait"),
        ] {
            let mut art = Art::default();
            workers(&mut art, 2, cause, 99);
            waiter(&mut art, "main", PUT, "app.Pool.submit");
            let found = art.found(pools::check);
            assert_eq!(found.len(), 1, "{cause}: {found:?}");
            let what = &found[0].what;
            assert!(
                what.starts_with("the 2 threads of worker-* always have work, and"),
                "{what}"
            );
            assert!(
                what.contains("main waits 50 % of its time in app.Pool.submit for room"),
                "{what}"
            );
            assert_eq!(found[0].sure, Sure::High);
            assert!(found[0].remedy.contains(remedy), "{}", found[0].remedy);
            // This rule covers the wait for room, so the other rule does not repeat it.
            assert_eq!(art.found(amid_work::check), []);
        }
    }

    /// Waits without a known pool are reported as a full queue.
    #[test]
    fn full_queue_is_reported_by_exactly_one_rule() {
        let mut art = Art::default();
        for pool in ["a", "b", "c"] {
            let name = format!("app.{pool}.Pool");
            let stack = format!("app.Task.work;{name}$Worker.run");
            art.cpu(&format!("{pool}-worker"), "", &stack, 99, 100);
            let take =
                format!("{PARK}java.util.concurrent.ArrayBlockingQueue.take;{name}$Worker.run");
            art.look(&format!("{pool}-worker"), "", "park", &take, 1, 100);
            waiter(
                &mut art,
                &format!("{pool}-client"),
                PUT,
                &format!("{name}.submit"),
            );
        }
        assert_eq!(art.found(pools::check).len(), MOST);
        let rest = art.found(amid_work::check);
        assert_eq!(rest.len(), 1, "{rest:?}");
    }

    #[test]
    fn workers_without_observed_takes_are_known_by_their_class() {
        let mut art = Art::default();
        workers(&mut art, 2, "running", 100);
        waiter(&mut art, "main", PUT, "app.Pool.submit");
        let found = art.found(pools::check);
        assert_eq!((found.len(), found[0].sure), (1, Sure::Medium), "{found:?}");
        // A second group below it: which of them it is, is not known.
        art.cpu("cleaner", "", "app.Pool.clean", 100, 100);
        assert_eq!(art.found(pools::check), []);
        let full = art.found(amid_work::check);
        assert!(full[0].what.contains("a full queue"), "{full:?}");
    }

    /// A pool that is well has workers that are free now and then, however long its queue is full.
    #[test]
    fn workers_that_are_free_at_times_are_fine() {
        for busy in [0, 30, 80, 94] {
            for (method, caller) in [(PUT, "app.Pool.submit"), (GET, "app.Pool.call")] {
                let mut art = Art::default();
                workers(&mut art, 2, "running", busy);
                for client in 0..8 {
                    waiter(&mut art, &format!("client-{client}"), method, caller);
                }
                assert_eq!(art.found(pools::check), [], "{busy} {caller}");
            }
        }
    }

    #[test]
    fn more_waiters_for_results_than_workers_are_reported() {
        // Each waits half of its time: of two of them one at a time, of eight four.
        for (clients, expected) in [(2, 0), (4, 0), (8, 1)] {
            let mut art = Art::default();
            workers(&mut art, 2, "running", 99);
            for client in 0..clients {
                waiter(&mut art, &format!("client-{client}"), GET, "app.Pool.call");
            }
            let found = art.found(pools::check);
            assert_eq!(found.len(), expected, "{clients}: {found:?}");
            for found in found {
                assert!(
                    found
                        .what
                        .contains("4.0 threads of client-* wait for results"),
                    "{found:?}"
                );
                assert_eq!(found.sure, Sure::Low);
            }
        }
        // If no taker was seen, the producer of the results is only a guess. Waits in other code of
        // the JDK belong to the JDK.
        let other =
            "java.util.concurrent.CountDownLatch.await;jdk.internal.net.http.HttpClientImpl.send";
        for (busy, method) in [(100, GET), (99, other)] {
            let mut art = Art::default();
            workers(&mut art, 2, "running", busy);
            for client in 0..8 {
                waiter(
                    &mut art,
                    &format!("client-{client}"),
                    method,
                    "app.Pool.call",
                );
            }
            assert_eq!(art.found(pools::check), [], "{busy} {method}");
        }
    }

    /// `main` starts all and then waits for the end, in the class where everything is.
    #[test]
    fn a_thread_that_waits_for_the_end_is_no_worker() {
        for (waits, ms, expected) in [(1, 9_000, 0), (300, 30, 1)] {
            let mut art = Art::default();
            art.cpu("main", "", "app.Pool.start;app.Pool.main", 20, 50);
            for _ in 0..waits {
                let stack = "java.lang.Thread.sleep;app.Pool.main";
                art.look("main", "", "sleep", stack, ms / 10, 10);
            }
            waiter(&mut art, "client", PUT, "app.Pool.submit");
            assert_eq!(art.found(pools::check).len(), expected, "{waits}");
        }
    }

    /// Results of other threads: the class of the workers is not on the waiters' stacks.
    #[test]
    fn other_waits_do_not_blame_these_workers() {
        let mut art = Art::default();
        workers(&mut art, 2, "running", 99);
        for client in 0..8 {
            waiter(&mut art, &format!("client-{client}"), GET, "app.Other.call");
        }
        assert_eq!(art.found(pools::check), []);
    }

    /// In a queue made of `wait` and `notify`, waiting for room looks like waiting for work.
    #[test]
    fn of_queues_made_of_wait_and_notify_nothing_is_said() {
        let mut art = Art::default();
        workers(&mut art, 2, "running", 100);
        for _ in 0..50 {
            let stack =
                "java.lang.Object.wait0;java.lang.Object.wait;app.Pool.submit;app.Main.serve";
            art.look("main", "", "object-wait", stack, 1, 100);
        }
        art.cpu("main", "", "app.Main.make;app.Main.serve", 50, 100);
        assert_eq!(art.found(pools::check), []);
    }

    #[test]
    fn a_few_looks_at_workers_say_nothing() {
        let mut art = Art::default();
        art.cpu("worker-1", "", &format!("app.Task.work;{LOOP}"), 30, 100);
        waiter(&mut art, "main", PUT, "app.Pool.submit");
        assert_eq!(art.found(pools::check), []);
    }
}

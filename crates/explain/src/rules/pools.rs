//! Pool exhaustion: threads wait for a connection or a permit, or all workers of a pool are held up
//! at once so that new work must queue.

use super::futures::is_held_up;
use super::{crews, no_wall};
use crate::evidence::{Entry, Facts, IDLE, Kind};
use crate::finding::{Evidence, Finding, Measure, Sure, Verdict, View};
use crate::names::Set;
use crate::numbers::{percent, short};
use crate::share::Share;
use crate::stacks::Nodes;
use crate::waits::{Wait, gather};
use dwell_profile::{MethodId, NameId, ThreadId, WallFilter, Weight};
use std::collections::{BTreeMap, BTreeSet};

/// A share of the waiters' time that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.10;
const SURELY: f64 = 0.04;
const LOOKS: u64 = 8;
/// Workers are held up if at most this part of their time is idle, with the second value as upper
/// bound, and they wait for most of it. Fifteen seconds of two workers without idle time give that
/// upper bound.
const IDLE_MOST: f64 = 0.03;
const IDLE_SURELY: f64 = 0.12;
const HELD_UP: f64 = 0.5;
const WORKERS: usize = 2;
pub(super) const WORKERS_LOOKS: u64 = 60;
const MOST: usize = 3;

/// Where threads wait for something that there is a limited number of.
pub(crate) const BORROWING: &[&str] = &[
    "com.zaxxer.hikari.pool.HikariPool.getConnection",
    "com.zaxxer.hikari.util.ConcurrentBag.borrow",
    "org.apache.commons.pool2.impl.*.borrowObject",
    "org.apache.commons.dbcp.*.borrowObject",
    "org.apache.tomcat.jdbc.pool.ConnectionPool.borrowConnection",
    "com.mchange.v2.resourcepool.*checkoutResource*",
    "io.agroal.pool.ConnectionPool.getConnection",
    "oracle.ucp.*borrow*",
    "org.apache.http.pool.AbstractConnPool.*",
    "org.apache.hc.core5.pool.*",
    "redis.clients.jedis.util.Pool.getResource",
    "java.util.concurrent.Semaphore.acquire*",
    "java.util.concurrent.Semaphore.tryAcquire",
];

/// A semaphore only counts: it may hand out permits, or signal between threads.
const SEMAPHORE: &str = "java.util.concurrent.Semaphore.";

/// Frames under which the tasks of a pool run.
const WORKS: &[&str] = &[
    "java.util.concurrent.ThreadPoolExecutor.runWorker",
    "org.apache.tomcat.util.threads.ThreadPoolExecutor.runWorker",
    "org.eclipse.jetty.util.thread.QueuedThreadPool*",
    "org.jboss.threads.EnhancedQueueExecutor*",
    "org.apache.tomcat.util.threads.TaskThread*",
];

/// Methods in which a thread waits for a task of a pool.
const FOR_TASKS: &[&str] = &[
    "java.util.concurrent.FutureTask.get",
    "java.util.concurrent.FutureTask.awaitDone",
    "java.util.concurrent.CompletableFuture.waitingGet",
    "java.util.concurrent.CompletableFuture.timedGet",
    "java.util.concurrent.AbstractExecutorService.invokeAll",
    "java.util.concurrent.ExecutorCompletionService.take",
];
/// Least number of requests for each worker: requests come and go, and each has to find a free
/// worker.
const REQUESTS_EACH: u64 = 2;

/// If samples of another profiler cover less of the threads' time, idle time is unknown.
const COVERED: f64 = 0.5;

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if !facts.profile.has_wall() {
        return no_wall(facts);
    }
    let covered = match facts.is_ours() {
        true => 1.0,
        false => covered(facts),
    };
    if covered < COVERED {
        return Verdict::Lacks(format!(
            "wall-clock samples cover {} of their threads' time: idle threads may be missing",
            percent(covered)
        ));
    }
    let found = all(facts).into_iter();
    Verdict::Found(found.map(|(finding, _)| finding).collect())
}

/// The part of the time from when threads are first seen until they are last seen that samples
/// stand for. Other profilers may sample threads only while they work for a request.
fn covered(facts: &Facts<'_>) -> f64 {
    let filter = WallFilter::default();
    let mut threads: BTreeMap<ThreadId, (u64, u64)> = BTreeMap::new();
    let mut sum = 0u64;
    for wall in facts.profile.wall(&filter) {
        let end_ns = wall.time_ns.saturating_add(wall.weight.sum);
        let (first, last) = threads.entry(wall.thread).or_insert((wall.time_ns, end_ns));
        (*first, *last) = ((*first).min(wall.time_ns), (*last).max(end_ns));
        sum = sum.saturating_add(wall.weight.sum);
    }
    let spans = threads
        .values()
        .map(|(first, last)| last.saturating_sub(*first));
    let all = spans.fold(0u64, u64::saturating_add);
    sum as f64 / all.max(1) as f64
}

/// Classes of the program whose full queues this rule reports, with the groups that wait for room.
pub(crate) fn full_queues(facts: &Facts<'_>) -> BTreeSet<String> {
    let found = all(facts).into_iter();
    found.filter_map(|(_, full)| full).collect()
}

/// All findings, each with the class of its full queue, if there is one.
fn all(facts: &Facts<'_>) -> Vec<(Finding, Option<String>)> {
    let alone = |finding| (finding, None);
    let mut found: Vec<_> = borrowers(facts).into_iter().map(alone).collect();
    if facts.endpoint.is_none() {
        found.extend(held_up(facts).into_iter().map(alone));
        let threads =
            |found: &Finding| found.evidence.last().and_then(|it| it.view.threads.clone());
        let told: BTreeSet<Option<String>> = found.iter().map(|(it, _)| threads(it)).collect();
        let crews = crews::saturated(facts).into_iter();
        let crews = crews.filter(|(_, of)| !told.contains(&Some(of.crew.clone())));
        found.extend(crews.map(|(finding, of)| (finding, of.full)));
    }
    found.truncate(MOST);
    found
}

/// Whether workers were never without work, as far as looks can say.
pub(super) fn never_idle(idle: &Weight, all: &Weight) -> bool {
    let idle = Share::sampled(idle, all, "");
    idle.value <= IDLE_MOST && idle.high <= IDLE_SURELY
}

fn borrowers(facts: &Facts<'_>) -> Vec<Finding> {
    let borrowing = Set::new(facts.profile, BORROWING);
    let stacks = &facts.stacks;
    let borrows = stacks.nodes_with(&borrowing);
    let waits = gather(facts, |entry: &Entry<'_>| {
        let is_wait = matches!(entry.cause, "park" | "object-wait" | "lock" | "monitor");
        if !is_wait || !borrows.has(entry.node) {
            return None;
        }
        // A pool's own frames are the program's too, if it is no part of the JDK.
        let pool = stacks
            .nearest(entry.node, &borrowing)
            .or_else(|| stacks.place(entry.node));
        Some(pool.map_or_else(String::new, |method| stacks.name(method)))
    });
    let mut found = Vec::new();
    for (pool, wait) in waits {
        let Some(whose) = wait.whose(facts).filter(|whose| whose.matters(facts)) else {
            continue;
        };
        let share = wait.share(facts, &whose);
        if !share.is_at_least(SHARE, SURELY, LOOKS) {
            continue;
        }
        let is_semaphore = pool.starts_with(SEMAPHORE);
        let is_of_threads = is_semaphore && whose.kind == Kind::Threads;
        if is_of_threads && (whose.is_one_thread(facts) || !has_holders(facts, &borrows, &wait)) {
            continue;
        }
        let by = stacks.caller_outside(wait.node(), package_of(&pool));
        let by = by.map_or(String::new(), |method| {
            format!(", called by {}", stacks.name(method))
        });
        found.push(Finding {
            rule: "",
            what: format!(
                "{} in {pool}{by}: all of the pool is in use",
                whose.spends("wait", share.value)
            ),
            weight: wait.gravity(facts),
            share,
            evidence: vec![wait.evidence(facts, &whose, wait.seen())],
            remedy: format!(
                "return what {} hands out sooner (no other waits while it is held), or enlarge \
                 the pool if the service behind it has capacity",
                short(&pool)
            ),
            sure: match is_semaphore {
                true => Sure::Medium,
                false => Sure::High,
            },
            because: match is_semaphore {
                true => {
                    "threads were sampled waiting for permits; the recording has no holders \
                 of permits"
                }
                false => "threads were sampled waiting for the pool",
            }
            .to_owned(),
        });
    }
    found
}

/// Whether some thread can have had the permits while others waited: a thread with a permit works.
/// If no thread works all that time, the semaphore signals work.
fn has_holders(facts: &Facts<'_>, borrows: &Nodes, wait: &Wait) -> bool {
    let all = facts.entries.iter().filter(|entry| entry.cause != IDLE);
    let works = all.filter(|entry| !borrows.has(entry.node));
    let working_ns = works.fold(0u64, |sum, entry| sum.saturating_add(entry.weight.sum));
    working_ns
        >= wait
            .last_ns
            .saturating_sub(wait.first_ns)
            .min(wait.weight.sum)
            / 2
}

/// The first two parts of a name: all of a library has them in common.
fn package_of(name: &str) -> &str {
    let end = name.match_indices('.').nth(1).map_or(0, |(at, _)| at);
    name.get(..end).unwrap_or("")
}

/// Activity of one pool's workers.
#[derive(Default)]
struct Pool<'f> {
    total: Weight,
    idle: Weight,
    waits: Weight,
    threads: BTreeSet<u32>,
    works: bool,
    /// Endpoints that its workers were sampled for.
    endpoints: BTreeSet<NameId>,
    contexts: BTreeMap<u32, BTreeSet<u32>>,
    /// Time by cause and place, and whether it is for something that only some can have at once.
    causes: BTreeMap<(&'f str, Option<MethodId>, bool), u64>,
}

fn held_up(facts: &Facts<'_>) -> Vec<Finding> {
    let filter = WallFilter::default();
    let works = facts.stacks.nodes_with(&Set::new(facts.profile, WORKS));
    let borrows = facts.stacks.nodes_with(&Set::new(facts.profile, BORROWING));
    let fills = (facts.stacks).nodes_with(&Set::new(facts.profile, super::amid_work::FILLING));
    let mut pools: BTreeMap<&str, Pool<'_>> = BTreeMap::new();
    let is_program: BTreeSet<&str> = (facts.subjects.iter())
        .filter(|subject| subject.kind == Kind::Threads)
        .map(|subject| subject.name.as_str())
        .collect();
    for wall in facts.profile.wall(&filter) {
        let group = facts.group(wall.thread);
        let is_marked = wall.context.is_some();
        if !is_marked && !is_program.contains(group) {
            continue;
        }
        let pool = pools.entry(group).or_default();
        pool.total += &wall.weight;
        pool.threads.insert(wall.thread);
        match wall.cause {
            IDLE => pool.idle += &wall.weight,
            cause if is_held_up(cause) => {
                pool.waits += &wall.weight;
                let is_limited = matches!(cause, "monitor" | "lock")
                    || borrows.has(wall.node)
                    || fills.has(wall.node);
                let key = (cause, facts.stacks.place(wall.node), is_limited);
                *pool.causes.entry(key).or_default() += wall.weight.sum;
            }
            _ => {}
        }
        pool.works |= works.has(wall.node);
        if let Some(id) = wall.context {
            pool.contexts.entry(wall.thread).or_default().insert(id);
            let context = facts.profile.contexts().get(id as usize);
            pool.endpoints.extend(context.and_then(|it| it.endpoint));
        }
    }
    let waiting = waiting_for_tasks(facts);
    let found = pools
        .iter()
        .filter_map(|(group, pool)| pool.finding(facts, group, &waiting));
    found.collect()
}

/// The groups of threads that wait for tasks.
fn waiting_for_tasks(facts: &Facts<'_>) -> BTreeSet<String> {
    let tasks = facts.stacks.nodes_with(&Set::new(facts.profile, FOR_TASKS));
    let filter = WallFilter::default();
    let walls = facts.profile.wall(&filter);
    let waiting = walls.filter(|wall| wall.cause == "park" && tasks.has(wall.node));
    // Naming each sample would take most of the time, so groups are named once.
    let groups: BTreeSet<&str> = waiting.map(|wall| facts.group(wall.thread)).collect();
    groups.into_iter().map(str::to_owned).collect()
}

impl Pool<'_> {
    /// Evidence that work queues for the workers. `None`: each of them may run one endless task,
    /// without a queue.
    fn queue(
        &self,
        facts: &Facts<'_>,
        group: &str,
        waiting: &BTreeSet<String>,
    ) -> Option<&'static str> {
        let ended = facts.profile.requests().iter();
        let ended = ended.filter(|it| it.endpoint.is_some_and(|of| self.endpoints.contains(&of)));
        let ended = ended.fold(0u64, |sum, request| sum.saturating_add(request.count));
        let is_served = ended >= REQUESTS_EACH * self.threads.len() as u64
            || self.contexts.values().any(|of| of.len() > 1);
        if is_served {
            return Some("its threads serve one request after another");
        }
        if self.idle.samples > 0 {
            return Some("its threads are sometimes idle, so tasks end");
        }
        let is_awaited = waiting.iter().any(|other| other != group);
        is_awaited.then_some("other threads wait for tasks")
    }

    fn finding(
        &self,
        facts: &Facts<'_>,
        group: &str,
        waiting: &BTreeSet<String>,
    ) -> Option<Finding> {
        let idle = Share::sampled(&self.idle, &self.total, "");
        let share = Share::sampled(
            &self.waits,
            &self.total,
            format!("the wall time of {group}"),
        );
        let is_full = never_idle(&self.idle, &self.total);
        let is_pool = self.works && self.threads.len() >= WORKERS;
        if !is_pool || !is_full || !share.is_at_least(HELD_UP, HELD_UP / 2.0, WORKERS_LOOKS) {
            return None;
        }
        let queue = self.queue(facts, group, waiting)?;
        let ((cause, place, is_limited), ns) = self.causes.iter().max_by_key(|(_, ns)| **ns)?;
        // The lock's own finding names its holder, and the pool is full because of it.
        if matches!(*cause, "monitor" | "lock") && *ns >= self.waits.sum / 2 {
            return None;
        }
        let focus = place.and_then(|place| facts.stacks.focus(place));
        let place = &facts.stacks.name_of(*place);
        let most = *ns as f64 / self.waits.sum.max(1) as f64;
        let threads = self.threads.len();
        Some(Finding {
            rule: "",
            what: format!(
                "all {threads} threads of {group} always have work and wait {} of the time, mostly \
                 in {place} ({cause}): new work has to queue",
                percent(share.value)
            ),
            // The wait itself has its own finding. The queue behind it was not seen.
            weight: facts.lost_waiting(self.waits.sum) * 0.5,
            share,
            evidence: vec![Evidence {
                text: format!(
                    "idle {} of the time; {} of the waiting is {cause} in {place}",
                    percent(idle.value),
                    percent(most)
                ),
                view: View {
                    measure: Measure::Wall,
                    threads: Some(group.to_owned()),
                    focus,
                    ..View::default()
                },
                stack: Vec::new(),
            }],
            remedy: match is_limited {
                true => format!(
                    "shorten the wait in {}: it is for a limited resource, so more threads than \
                     {threads} would also wait",
                    short(place)
                ),
                false => format!(
                    "shorten the wait in {}; until then more threads than {threads} help, because \
                     these do not use the CPUs",
                    short(place)
                ),
            },
            sure: Sure::Medium,
            because: format!("{queue}; the queue was not sampled, but no worker was ever idle"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    const GET: &str = "jdk.internal.misc.Unsafe.park;java.util.concurrent.FutureTask.get;app.M.m";
    const WORK: &str = "java.util.concurrent.ThreadPoolExecutor.runWorker;java.lang.Thread.run";

    #[test]
    fn waits_for_connection_are_reported() {
        let mut art = Art::default();
        let stack = "jdk.internal.misc.Unsafe.park;com.zaxxer.hikari.util.ConcurrentBag.borrow;\
                     com.zaxxer.hikari.pool.HikariPool.getConnection;app.Dao.find";
        art.look("w-1", "GET /u", "park", stack, 20, 20);
        art.cpu("w-1", "GET /u", "app.Dao.find", 30, 10);
        let found = art.found(check);
        let what = &found[0].what;
        assert!(
            what.contains("ConcurrentBag.borrow, called by app.Dao.find"),
            "{what}"
        );
        assert_eq!(found[0].sure, Sure::High);
    }

    #[test]
    fn waiting_workers_are_reported_and_running_ones_are_not() {
        let mut art = Art::default();
        for thread in ["w-1", "w-2"] {
            art.look(
                thread,
                "",
                "socket",
                &format!("app.Call.ask;{WORK}"),
                60,
                20,
            );
            art.cpu(thread, "", &format!("app.Call.ask;{WORK}"), 10, 10);
        }
        assert_eq!(art.found(check), [], "nothing shows that tasks end");
        art.look("main", "", "park", GET, 20, 20);
        let found = art.found(check);
        assert!(
            found[0].what.starts_with("all 2 threads of w-*"),
            "{found:?}"
        );
        assert!(found[0].because.starts_with("other threads wait for tasks"));
        let mut art = Art::default();
        for thread in ["w-1", "w-2"] {
            art.cpu(thread, "", &format!("app.Work.run;{WORK}"), 200, 10);
            art.look(
                thread,
                "",
                "socket",
                &format!("app.Call.ask;{WORK}"),
                10,
                20,
            );
        }
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn samples_of_requests_alone_say_nothing_of_full_pools() {
        for (count, expected) in [(1, true), (9, false)] {
            let mut art = Art::default();
            art.builder.info.profiler_version.clear();
            for _ in 0..30 {
                for thread in ["w-1", "w-2"] {
                    let stack = format!("app.Call.ask;{WORK}");
                    art.look(thread, "", "socket", &stack, 3, 20 * count);
                }
            }
            art.look("main", "", "park", GET, 20, 20);
            let (profile, filter) = (art.profile(), WallFilter::default());
            let verdict = check(&Facts::new(&profile, &filter));
            let is_lacking = matches!(&verdict, Verdict::Lacks(why) if why.contains("cover"));
            assert_eq!(is_lacking, expected, "{count}");
        }
    }

    #[test]
    fn more_threads_are_advised_unless_they_would_wait_too() {
        let permit = "java.util.concurrent.Semaphore.acquire;app.Call.ask";
        let room = "java.util.concurrent.ArrayBlockingQueue.put;app.Call.ask";
        let cases = [
            ("socket", "app.Call.ask", Some("more threads than 2 help")),
            ("park", room, Some("would also wait")),
            ("park", permit, Some("would also wait")),
            ("monitor", "app.Call.ask", None),
            ("gc-stall", "app.Call.ask", None),
        ];
        for (cause, stack, expected) in cases {
            let mut art = Art::default();
            for thread in ["w-1", "w-2"] {
                art.look(thread, "", cause, &format!("{stack};{WORK}"), 60, 20);
                art.cpu(thread, "", &format!("app.Call.ask;{WORK}"), 10, 10);
            }
            art.look("main", "", "park", GET, 20, 20);
            let found = art.found(check);
            let held_up = found.iter().find(|found| found.what.starts_with("all 2"));
            let remedy = held_up.map(|found| found.remedy.clone());
            assert_eq!(remedy.is_some(), expected.is_some(), "{cause}: {found:?}");
            let is_as = remedy.is_none_or(|text| text.contains(expected.unwrap_or("")));
            assert!(is_as, "{cause}: {found:?}");
        }
    }

    #[test]
    fn one_thread_alone_in_a_semaphore_is_no_pool() {
        let wait = "java.util.concurrent.Semaphore.tryAcquire;app.Timer.run";
        let mut art = Art::default();
        art.look("timer", "", "park", wait, 60, 20);
        assert_eq!(art.found(check), []);
        // Several may want the same permits.
        for thread in ["w-1", "w-2"] {
            art.look(thread, "", "park", &wait.replace("Timer", "Work"), 60, 20);
        }
        assert_eq!(art.found(check), [], "no thread works with a permit");
        art.look("w-3", "", "socket", "app.Call.ask;app.Work.run", 60, 20);
        let found = art.found(check);
        assert!(found[0].what.contains("app.Work.run"), "{found:?}");
        assert_eq!((found.len(), found[0].sure), (1, Sure::Medium));
    }

    #[test]
    fn workers_sleeping_in_own_loops_are_not_reported() {
        let mut art = Art::default();
        for thread in ["w-1", "w-2"] {
            let stack = format!("java.lang.Thread.sleep;app.Poller.run;{WORK}");
            art.look(thread, "", "sleep", &stack, 60, 20);
            art.cpu(thread, "", &format!("app.Poller.run;{WORK}"), 5, 10);
        }
        assert_eq!(art.found(check), []);
        // A waiter of the same pool is a worker, too.
        art.look("w-1", "", "park", GET, 3, 20);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn workers_that_serve_many_requests_have_a_queue() {
        let mut art = Art::default();
        for thread in ["w-1", "w-2"] {
            let stack = format!("app.Call.ask;{WORK}");
            art.look(thread, "GET /a", "socket", &stack, 60, 20);
            art.cpu(thread, "GET /a", &stack, 10, 10);
        }
        assert_eq!(art.found(check), [], "one endless request each");
        art.requests("GET /a", 4, 50);
        let found = art.found(check);
        assert!(
            found[0].because.contains("one request after another"),
            "{found:?}"
        );
    }

    #[test]
    fn looks_of_different_weights_at_two_workers_are_enough() {
        let mut art = Art::default();
        let stack = format!("app.Call.ask;{WORK}");
        for (thread, ms) in [("w-1", 20), ("w-2", 100)] {
            art.look(thread, "", "socket", &stack, 30, ms);
        }
        art.look("main", "", "park", GET, 20, 20);
        let found = art.found(check);
        assert_eq!(found.len(), 1, "{found:?}");
        // A worker that was seen without work now and then had time for more.
        art.look("w-2", "", "idle-pool", WORK, 3, 100);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn workers_with_idle_time_are_fine() {
        let mut art = Art::default();
        for thread in ["w-1", "w-2"] {
            art.look(
                thread,
                "",
                "socket",
                &format!("app.Call.ask;{WORK}"),
                60,
                20,
            );
            art.look(thread, "", "idle-pool", WORK, 60, 20);
        }
        assert_eq!(art.found(check), []);
    }
}

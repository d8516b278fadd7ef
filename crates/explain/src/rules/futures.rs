//! Requests that hand work to other threads and wait for it: how busy those threads are, whether
//! the work queued, and its code.

use super::{no_wall, remote};
use crate::evidence::{Entry, Facts, Kind, RUNNABLE, Subject, THROTTLED, is_wait};
use crate::finding::{Evidence, Finding, Measure, Sure, Verdict, View};
use crate::names::Set;
use crate::numbers::{duration, percent, plural, whole};
use crate::waits::{Wait, gather};
use dwell_profile::{NodeId, ThreadId, WallFilter, Weight};
use std::collections::{BTreeMap, BTreeSet};

/// A share of a request's time that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.25;
const SURELY: f64 = 0.08;
const LOOKS: u64 = 8;
/// A pool that is so busy lets work wait; it should not be busier than that.
const FULL: f64 = 0.7;
const BUSY_ENOUGH: f64 = 0.6;
const MOST: usize = 3;
/// Threads that wait for processors or memory for this part of their work do not make a pool too
/// small.
const HELD_UP: f64 = 0.3;

/// Where a thread waits for the result of others.
pub(crate) const WAITS: &[&str] = &[
    "java.util.concurrent.FutureTask.get",
    "java.util.concurrent.FutureTask.awaitDone",
    "java.util.concurrent.CompletableFuture.get",
    "java.util.concurrent.CompletableFuture.join",
    "java.util.concurrent.CompletableFuture.waitingGet",
    "java.util.concurrent.CompletableFuture.timedGet",
    "java.util.concurrent.ForkJoinTask.*",
    "java.util.concurrent.CountDownLatch.await",
    "java.util.concurrent.ExecutorCompletionService.take",
    "java.util.concurrent.ExecutorCompletionService.poll",
    "java.util.concurrent.AbstractExecutorService.invokeAll",
    "java.util.concurrent.ThreadPerTaskExecutor*",
    "java.util.concurrent.StructuredTaskScope*.join*",
    "com.google.common.util.concurrent.AbstractFuture.get",
];

/// The threads that do the work, as far as requests mark them.
struct Workers {
    group: String,
    /// Their work for this endpoint.
    for_it: Weight,
    /// The stack in which they spent most of that.
    node: NodeId,
    /// All their time, and that in which they had work.
    total: Weight,
    busy: Weight,
    /// Of that, ready without a processor, and waiting for memory.
    ready: Weight,
    stalled: Weight,
    threads: usize,
}

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if !facts.profile.has_wall() {
        return no_wall(facts);
    }
    if !facts.has_endpoints() {
        return Verdict::lacks("no requests are marked; see docs/context.md");
    }
    let waits = Set::new(facts.profile, WAITS);
    let answers = remote::answers(facts);
    let mut found = Vec::new();
    let task = |entry: &Entry<'_>| task(facts, &waits, entry).filter(|_| !answers.has(entry.node));
    for ((subject, place), wait) in gather(facts, |entry| task(entry)) {
        let Some(of) = facts.subjects.get(subject) else {
            continue;
        };
        let Some(whose) = wait.whose(facts).filter(|whose| whose.matters(facts)) else {
            continue;
        };
        let waiting = threads_waiting(facts, subject, &place, &waits);
        let workers = workers(facts, of, &waiting);
        let mut busy = of.busy;
        if let Some(workers) = &workers {
            // Other threads work for the request while it waits: that time is not the request's
            // own.
            busy = minus(&busy, &workers.for_it);
        }
        let of_own = format!("the wall time of {} on its own threads", of.name);
        let share = crate::share::Share {
            waits: wait.events,
            ..crate::share::Share::sampled(&wait.weight, &busy, of_own)
        };
        if share.is_at_least(SHARE, SURELY, LOOKS) {
            let mut evidence = vec![wait.evidence(facts, &whose, wait.seen())];
            evidence.extend(workers.as_ref().map(|workers| workers.evidence(facts)));
            let (what, remedy, sure, because) = told(facts, of, &place, &wait, workers);
            let what = format!(
                "{} waits {} of its time {what}",
                of.name,
                percent(share.value)
            );
            found.push(Finding {
                rule: "",
                what,
                weight: wait.gravity(facts),
                share,
                evidence,
                remedy,
                sure,
                because: because.to_owned(),
            });
        }
        if found.len() == MOST {
            break;
        }
    }
    Verdict::Found(found)
}

fn task(facts: &Facts<'_>, waits: &Set, entry: &Entry<'_>) -> Option<(usize, String)> {
    let kind = facts.subjects.get(entry.subject)?.kind;
    let is_task = kind == Kind::Endpoint
        && matches!(entry.cause, "park" | "object-wait")
        && facts.stacks.top_has(entry.node, waits);
    is_task.then(|| (entry.subject, facts.stacks.place_name(entry.node)))
}

/// The groups of threads that wait so.
fn threads_waiting(
    facts: &Facts<'_>,
    subject: usize,
    place: &str,
    waits: &Set,
) -> BTreeSet<String> {
    let mut groups = BTreeSet::new();
    let name = facts
        .subjects
        .get(subject)
        .map(|subject| subject.name.as_str());
    for look in facts.profile.looks() {
        let endpoint = look.context.and_then(|id| facts.profile.endpoint(id));
        if endpoint == name
            && facts.stacks.top_has(look.node, waits)
            && facts.stacks.place_name(look.node) == place
        {
            groups.insert(facts.group(look.thread).to_owned());
        }
    }
    groups
}

/// The group with the most work for an endpoint, waiting groups excluded.
fn workers(facts: &Facts<'_>, of: &Subject, waiting: &BTreeSet<String>) -> Option<Workers> {
    let profile = facts.profile;
    let mut groups: BTreeMap<&str, (Weight, BTreeMap<NodeId, u64>)> = BTreeMap::new();
    let filter = WallFilter::default();
    for wall in profile.wall(&filter) {
        let endpoint = wall.context.and_then(|id| profile.endpoint(id));
        if endpoint != Some(of.name.as_str()) {
            continue;
        }
        let group = facts.group(wall.thread);
        if waiting.contains(group) {
            continue;
        }
        let (sum, nodes) = groups.entry(group).or_default();
        *sum += &wall.weight;
        *nodes.entry(wall.node).or_default() += wall.weight.sum;
    }
    let (group, (for_it, nodes)) = groups.into_iter().max_by_key(|(_, (sum, _))| sum.sum)?;
    let (mut total, mut busy) = (Weight::default(), Weight::default());
    let (mut ready, mut stalled) = (Weight::default(), Weight::default());
    let mut threads: BTreeSet<ThreadId> = BTreeSet::new();
    for wall in profile.wall(&filter) {
        if facts.group(wall.thread) == group {
            total += &wall.weight;
            threads.insert(wall.thread);
            if wall.cause != crate::evidence::IDLE {
                busy += &wall.weight;
            }
            match wall.cause {
                RUNNABLE | THROTTLED => ready += &wall.weight,
                "gc-stall" => stalled += &wall.weight,
                _ => {}
            }
        }
    }
    let node = nodes
        .into_iter()
        .max_by_key(|(_, ns)| *ns)
        .map_or(0, |(node, _)| node);
    Some(Workers {
        group: group.to_owned(),
        for_it,
        node,
        total,
        busy,
        ready,
        stalled,
        threads: threads.len(),
    })
}

impl Workers {
    fn evidence(&self, facts: &Facts<'_>) -> Evidence {
        let threads = plural(self.threads as u64, "thread");
        Evidence {
            text: format!(
                "{} ({threads}) had work {} of the time, {} of it for this endpoint",
                self.group,
                percent(self.busy.share(&self.total)),
                duration(self.for_it.sum as f64),
            ),
            view: View {
                measure: Measure::Wall,
                threads: Some(self.group.clone()),
                focus: facts.stacks.focus_of(self.node),
                ..View::default()
            },
            stack: facts.stacks.shown(self.node),
        }
    }
}

/// The wait that keeps a full pool from its work, if more threads would not help.
struct HeldUp {
    part: f64,
    waits: &'static str,
    wants: &'static str,
}

impl Workers {
    fn held_up(&self) -> Option<HeldUp> {
        let causes = [
            (
                &self.ready,
                "are runnable, waiting for a CPU,",
                "give the process more CPUs",
            ),
            (
                &self.stalled,
                "wait for memory",
                "give it a larger heap (-Xmx)",
            ),
        ];
        let parts = causes.map(|(weight, waits, wants)| HeldUp {
            part: weight.share(&self.busy),
            waits,
            wants,
        });
        let most = parts.into_iter().max_by(|a, b| a.part.total_cmp(&b.part));
        most.filter(|most| most.part >= HELD_UP)
    }
}

impl HeldUp {
    /// As [`told`].
    fn told(
        &self,
        place: &str,
        workers: &Workers,
        work: &str,
    ) -> (String, String, Sure, &'static str) {
        let group = &workers.group;
        let threads = plural(workers.threads as u64, "thread");
        (
            format!(
                "in {place} for the pool {group} to run {work}: its {threads} {} {} of the time \
                 that they have work",
                self.waits,
                percent(self.part)
            ),
            format!(
                "{}, or make {work} shorter; more threads in {group} would also wait",
                self.wants
            ),
            Sure::High,
            "samples show both the wait and the cause that holds up the pool's threads",
        )
    }
}

pub(crate) fn minus(all: &Weight, part: &Weight) -> Weight {
    Weight {
        sum: all.sum.saturating_sub(part.sum),
        squares: (all.squares - part.squares).max(0.0),
        samples: all.samples.saturating_sub(part.samples),
        heaviest: all.heaviest,
    }
}

/// End of the sentence, remedy and confidence.
fn told(
    facts: &Facts<'_>,
    of: &Subject,
    place: &str,
    wait: &Wait,
    workers: Option<Workers>,
) -> (String, String, Sure, &'static str) {
    let Some(workers) = workers else {
        return (
            format!("in {place} for work that other threads do"),
            format!(
                "find the threads that {place} waits for; wrap their executor (Dwell.wrap) so \
                 that their work counts for this request"
            ),
            Sure::Medium,
            "the wait is certain; the threads that do the work have no marks",
        );
    };
    let group = &workers.group;
    let busy = workers.busy.share(&workers.total);
    let queued = wait.weight.sum.saturating_sub(workers.for_it.sum) as f64;
    let queued = queued / wait.weight.sum.max(1) as f64;
    let work = facts.stacks.place_name(workers.node);
    if let Some(held_up) = workers.held_up().filter(|_| busy >= FULL) {
        return held_up.told(place, &workers, &work);
    }
    if busy >= FULL {
        let more = (workers.threads as f64 * busy / BUSY_ENOUGH)
            .ceil()
            .max(2.0);
        let more = whole(more);
        return (
            format!(
                "in {place} for the pool {group}, which is full: its {} had work {} of the time",
                plural(workers.threads as u64, "thread"),
                percent(busy)
            ),
            format!(
                "give {group} about {more} threads if CPUs are free, or make {work} shorter; \
                 the pool is then {} busy",
                percent(BUSY_ENOUGH)
            ),
            Sure::High,
            "nearly all samples of the pool's threads show work",
        );
    }
    let note = match queued >= 0.3 {
        true => format!(" (the work had not begun in {} of that)", percent(queued)),
        false => String::new(),
    };
    (
        format!("in {place} for {group} to run {work}{note}"),
        format!(
            "{group} is not full ({} busy): make {work} shorter, start it earlier and do other \
             work during it, or run it on the thread of {} itself",
            percent(busy),
            of.name
        ),
        Sure::High,
        "both the wait and the work carry the request's mark",
    )
}

/// Whether a thread with work waits at this cause while its pool could do other work. For rules on
/// pools.
pub(crate) fn is_held_up(cause: &str) -> bool {
    is_wait(cause) && !matches!(cause, "gc-stall" | "safepoint")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    const GET: &str = "jdk.internal.misc.Unsafe.park;java.util.concurrent.FutureTask.get;app.R.get";

    #[test]
    fn full_pool_is_reported_with_its_size() {
        let mut art = Art::default();
        art.look("w-1", "GET /r", "park", GET, 40, 20);
        art.cpu("render-1", "GET /r", "app.Render.tile", 60, 10);
        art.look("render-1", "", "idle-pool", "java.lang.Object.wait", 2, 20);
        let found = art.found(check);
        let what = &found[0].what;
        assert!(
            what.contains("the pool render-*, which is full: its 1 thread"),
            "{what}"
        );
        assert!(found[0].remedy.contains("about 2 threads"), "{found:?}");
    }

    #[test]
    fn remedy_is_not_more_threads_if_processors_or_memory_are_short() {
        let cases = [
            ("runnable", "give the process more CPUs"),
            ("gc-stall", "larger heap"),
        ];
        for (cause, expected) in cases {
            let mut art = Art::default();
            art.look("w-1", "GET /r", "park", GET, 40, 20);
            art.cpu("render-1", "GET /r", "app.Render.tile", 20, 10);
            art.look("render-1", "GET /r", cause, "app.Render.tile", 30, 20);
            let found = art.found(check);
            assert!(found[0].remedy.contains(expected), "{found:?}");
            assert!(!found[0].remedy.contains("about"), "{found:?}");
        }
    }

    #[test]
    fn a_pool_with_room_is_not_the_fault() {
        let mut art = Art::default();
        art.look("w-1", "GET /r", "park", GET, 40, 20);
        art.cpu("render-1", "GET /r", "app.Render.tile", 60, 10);
        art.look(
            "render-1",
            "",
            "idle-pool",
            "java.lang.Object.wait",
            100,
            20,
        );
        let found = art.found(check);
        assert!(
            found[0]
                .what
                .contains("for render-* to run app.Render.tile"),
            "{found:?}"
        );
        assert!(found[0].remedy.contains("is not full"), "{found:?}");
    }

    #[test]
    fn a_short_wait_is_none() {
        let mut art = Art::default();
        art.look("w-1", "GET /r", "park", GET, 5, 20);
        art.cpu("w-1", "GET /r", "app.Work.run", 200, 10);
        assert_eq!(art.found(check), []);
    }
}

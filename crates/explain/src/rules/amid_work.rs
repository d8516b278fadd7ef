//! Waits amid work. Threads with work wait until another thread notifies or unparks them, outside
//! of locks, pools and futures that the JVM or another rule knows. Examples are row locks of
//! databases, barriers and hand-made queues.
//!
//! Workers that wait for work look similar, and their stacks show the difference. A worker waits
//! for work directly under the loop that contains all its work. A wait amid work is under a method
//! that contains only a part of it. A thread with a request always has work.

use super::futures::{WAITS, minus};
use super::pools::BORROWING;
use super::sleeping::TIMED;
use super::{crews, no_wall, pools, remote};
use crate::evidence::{Entry, Facts, IDLE, Kind};
use crate::finding::{Evidence, Finding, Sure, Verdict, View};
use crate::names::Set;
use crate::numbers::{duration, percent, short};
use crate::stacks::Nodes;
use crate::waits::{Wait, Whose, gather};
use dwell_profile::{MethodId, NodeId, Weight};
use std::collections::{BTreeSet, HashMap};

/// Share of the waiting threads' time that is worth a change, and its least lower bound.
const SHARE: f64 = 0.10;
const SURELY: f64 = 0.04;
const LOOKS: u64 = 8;
/// A method with at most this part of a thread's work under it is not the loop of a worker.
const PART: f64 = 0.9;
/// Least number of looks or samples.
const WORK_SEEN: u64 = 10;
const MOST: usize = 2;

/// Where threads wait, and how.
type Place = (Kind, How, String);

/// Methods in which a thread waits to hand something over.
pub(super) const FILLING: &[&str] = &[
    "java.util.concurrent.ArrayBlockingQueue.put",
    "java.util.concurrent.LinkedBlockingQueue.put",
    "java.util.concurrent.LinkedBlockingDeque.put*",
    "java.util.concurrent.ArrayBlockingQueue.offer",
    "java.util.concurrent.LinkedBlockingQueue.offer",
    "java.util.concurrent.LinkedBlockingDeque.offer*",
    "java.util.concurrent.SynchronousQueue.put",
    "java.util.concurrent.LinkedTransferQueue.transfer",
];
/// Where threads wait until all are there.
const MEETING: &[&str] = &[
    "java.util.concurrent.CyclicBarrier.*",
    "java.util.concurrent.Phaser.*",
    "java.util.concurrent.Exchanger.*",
];

/// How a thread waits for another one to let it go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    Notified,
    Unparked,
    Filling,
    Meeting,
}

impl How {
    /// As the end of a sentence.
    const fn text(self) -> &'static str {
        match self {
            How::Notified => "to be notified by another thread (Object.wait)",
            How::Unparked => "to be unparked by another thread",
            How::Filling => "for room in a full queue",
            How::Meeting => "for other threads to reach the same point (a barrier)",
        }
    }

    fn remedy(self, place: &str) -> String {
        match self {
            How::Notified | How::Unparked => format!(
                "find the thread that wakes {place} and shorten its work before that, or let \
                 fewer threads want the same thing at once"
            ),
            How::Filling => format!(
                "the consumers of the queue are slower than {place} fills it: make their work \
                 shorter or add consumers; a longer queue only delays the wait"
            ),
            How::Meeting => format!(
                "threads need different times between two meetings in {place}: divide the work \
                 more evenly, or into small parts that any free thread takes"
            ),
        }
    }
}

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if !facts.profile.has_wall() {
        return no_wall(facts);
    }
    let known = Known::new(facts);
    let works = Works::new(facts, &known);
    let mut found = Vec::new();
    for (place, wait) in gather(facts, |entry| place_of(facts, &known, &works, entry)) {
        let Some(whose) = wait.whose(facts).filter(|whose| whose.matters(facts)) else {
            continue;
        };
        let share = wait.share(facts, &whose);
        if share.is_at_least(SHARE, SURELY, LOOKS) {
            found.push(finding(facts, &place, &wait, &whose, &works));
        }
        if found.len() == MOST {
            break;
        }
    }
    Verdict::Found(found)
}

/// Waits that other rules report.
struct Known {
    futures: Set,
    timed: Set,
    borrows: Nodes,
    answers: Nodes,
    filling: Set,
    meeting: Set,
    /// Classes whose full queues another rule reports.
    full: BTreeSet<String>,
}

impl Known {
    fn new(facts: &Facts<'_>) -> Known {
        let filling = Set::new(facts.profile, FILLING);
        Known {
            futures: Set::new(facts.profile, WAITS),
            timed: Set::new(facts.profile, TIMED),
            meeting: Set::new(facts.profile, MEETING),
            full: match facts.endpoint.is_some() || filling.is_empty() {
                false => pools::full_queues(facts),
                true => BTreeSet::new(),
            },
            filling,
            answers: remote::answers(facts),
            borrows: facts.stacks.nodes_with(&Set::new(facts.profile, BORROWING)),
        }
    }

    /// How a thread waits for others; `None` if it does not.
    fn how(&self, facts: &Facts<'_>, entry: &Entry<'_>) -> Option<How> {
        let top_has = |set| facts.stacks.top_has(entry.node, set);
        match entry.cause {
            "object-wait" => Some(How::Notified),
            "park" if top_has(&self.filling) => Some(How::Filling),
            "park" if top_has(&self.meeting) => Some(How::Meeting),
            "park" => Some(How::Unparked),
            _ => None,
        }
    }

    /// Whether another rule reports the workers of the queue that is full here.
    fn is_told(&self, facts: &Facts<'_>, node: NodeId) -> bool {
        let place = facts.stacks.place(node);
        let method = place.and_then(|method| facts.profile.methods().get(method as usize));
        let class = method.map_or("", |method| facts.profile.names().text(method.class));
        self.full.contains(crews::outer(class))
    }

    /// Whether another rule reports this wait.
    fn has(&self, facts: &Facts<'_>, kind: Kind, node: NodeId) -> bool {
        let stacks = &facts.stacks;
        let is_future = || kind == Kind::Endpoint && stacks.top_has(node, &self.futures);
        let is_known = self.borrows.has(node) || self.answers.has(node);
        is_known || stacks.program_calls(node, &self.timed) || is_future()
    }
}

/// Kind of subject and kind of wait, if this rule covers the entry.
fn wait_of(facts: &Facts<'_>, known: &Known, entry: &Entry<'_>) -> Option<(Kind, How)> {
    let how = known.how(facts, entry)?;
    let kind = facts.subjects.get(entry.subject)?.kind;
    if !facts.stacks.is_of_program(entry.node)
        || !facts.stacks.can_be_changed(entry.node)
        || known.has(facts, kind, entry.node)
    {
        return None;
    }
    if how == How::Filling && kind == Kind::Threads && known.is_told(facts, entry.node) {
        return None;
    }
    Some((kind, how))
}

fn place_of(facts: &Facts<'_>, known: &Known, works: &Works, entry: &Entry<'_>) -> Option<Place> {
    let (kind, how) = wait_of(facts, known, entry)?;
    let is_amid = kind == Kind::Endpoint
        || matches!(how, How::Filling | How::Meeting)
        || works.below(facts, entry).is_some();
    is_amid.then(|| (kind, how, facts.stacks.place_name(entry.node)))
}

/// Work of each subject: the calls of its threads as a tree, with the time in which they did not
/// wait for other threads.
struct Works {
    /// From a subject and one of its nodes (0 for its root) by a method to the next node.
    next: HashMap<(usize, u32, MethodId), u32>,
    /// Work in and below each node.
    work: Vec<Weight>,
    /// Work of each subject.
    all: HashMap<usize, Weight>,
}

impl Works {
    /// Sums the work of subjects with such waits only, because all others can be many.
    fn new(facts: &Facts<'_>, known: &Known) -> Works {
        let asked = facts.entries.iter();
        let asked = asked.filter(|entry| wait_of(facts, known, entry).is_some());
        let asked: BTreeSet<usize> = asked.map(|entry| entry.subject).collect();
        let mut works = Works {
            next: HashMap::new(),
            work: vec![Weight::default()],
            all: HashMap::new(),
        };
        for entry in &facts.entries {
            let is_work = !matches!(entry.cause, IDLE | "object-wait" | "park" | "sleep");
            if is_work && asked.contains(&entry.subject) {
                works.add(facts, entry);
            }
        }
        works
    }

    fn add(&mut self, facts: &Facts<'_>, entry: &Entry<'_>) {
        let path = facts.stacks.path(entry.node);
        // Where a thread was that waited for a processor is not always known.
        if path.is_empty() {
            return;
        }
        *self.all.entry(entry.subject).or_default() += &entry.weight;
        let mut at = 0;
        for method in path {
            let new = self.work.len() as u32;
            at = *self.next.entry((entry.subject, at, method)).or_insert(new);
            if at == new {
                self.work.push(Weight::default());
            }
            if let Some(work) = self.work.get_mut(at as usize) {
                *work += &entry.weight;
            }
        }
    }

    /// The program's innermost method with other work of this thread under it, and its part of all
    /// work. `None` if that part is nearly everything or no such method exists: then the thread
    /// waits for work there.
    fn below(&self, facts: &Facts<'_>, entry: &Entry<'_>) -> Option<(MethodId, f64)> {
        let all = self.all.get(&entry.subject)?;
        let place = facts.stacks.place(entry.node)?;
        let path = facts.stacks.path(entry.node);
        let outside = path.iter().rposition(|method| *method == place)?;
        let mut at = 0;
        let mut calls = Vec::new();
        let mut waiting = Weight::default();
        for (index, method) in path.into_iter().enumerate().take(outside + 1) {
            let Some(next) = self.next.get(&(entry.subject, at, method)) else {
                break;
            };
            at = *next;
            let work = *self.work.get(at as usize)?;
            // Waiting takes some time of a processor, too.
            match index == outside {
                true => waiting = work,
                false => calls.push((method, work)),
            }
        }
        let all = minus(all, &waiting);
        let mut calls = calls.into_iter().rev();
        let (inner, work) = calls.find_map(|(method, work)| {
            let work = minus(&work, &waiting);
            let is_one = facts.stacks.is_app(method) && work.samples >= WORK_SEEN;
            is_one.then_some((method, work))
        })?;
        let part = work.share(&all);
        (part <= PART).then_some((inner, part))
    }
}

fn finding(facts: &Facts<'_>, place: &Place, wait: &Wait, whose: &Whose, works: &Works) -> Finding {
    let (_, how, place) = place;
    let share = wait.share(facts, whose);
    let each = whose
        .per_request(facts, share.ns)
        .map_or(String::new(), |ns| {
            format!(", {} a request on average", duration(ns))
        });
    let what = format!(
        "{} in {place} {}{each}",
        whose.spends("wait", share.value),
        how.text()
    );
    let mut evidence = vec![wait.evidence(facts, whose, wait.seen())];
    let entry = facts.entries.iter().find(|it| it.node == wait.node());
    if let Some((method, part)) = entry.and_then(|entry| works.below(facts, entry)) {
        let text = format!(
            "the wait is part of other work: {} of the other time of these threads is also below \
             {}",
            percent(part),
            facts.stacks.name(method)
        );
        evidence.push(Evidence {
            text,
            view: View::default(),
            stack: Vec::new(),
        });
    }
    Finding {
        rule: "",
        what,
        weight: wait.gravity(facts),
        share,
        evidence,
        remedy: how.remedy(short(place)),
        sure: Sure::Medium,
        because: "the wait is certain; the runtime does not record which thread ends it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    const WAIT: &str = "java.lang.Object.wait0;java.lang.Object.wait;";

    fn wait(stack: &str) -> String {
        format!("{WAIT}{stack}")
    }

    #[test]
    fn wait_below_part_of_the_work_is_reported() {
        let mut art = Art::default();
        let update = "app.Update.run;app.Statement.execute;app.Main.work";
        let stack = wait(&format!("app.Transaction.await;{update}"));
        art.look("pool-1", "", "object-wait", &stack, 40, 20);
        art.cpu("pool-1", "", &format!("app.Map.put;{update}"), 40, 10);
        let query = "app.Query.run;app.Statement.execute;app.Main.work";
        art.cpu("pool-1", "", query, 60, 10);
        // Waiting itself is no work.
        let waking = format!("app.Transaction.await;{update}");
        art.cpu("pool-1", "", &waking, 30, 10);
        let found = art.found(check);
        assert_eq!(found.len(), 1, "{found:?}");
        let what = &found[0].what;
        assert!(what.starts_with("thread group pool-* waits 38 %"), "{what}");
        assert!(
            what.contains("in app.Transaction.await to be notified"),
            "{what}"
        );
        let evidence = &found[0].evidence[1].text;
        assert!(
            evidence.contains("40 %") && evidence.contains("app.Update.run"),
            "{evidence}"
        );
    }

    #[test]
    fn wait_for_work_is_not_reported() {
        // A worker's loop, and one in a class of its own: all work is below it.
        for stack in ["app.Worker.loop", "app.Consumer.run;app.Main.lambda$main$0"] {
            let mut art = Art::default();
            let waits = wait(&format!("app.Queue.take;{stack}"));
            art.look("worker-1", "", "object-wait", &waits, 40, 20);
            for task in ["app.Read.run", "app.Write.run", "app.Parse.run"] {
                art.cpu("worker-1", "", &format!("{task};{stack}"), 40, 10);
            }
            assert_eq!(art.found(check), [], "{stack}");
        }
    }

    #[test]
    fn full_queues_and_barriers_are_always_reported() {
        let park = "jdk.internal.misc.Unsafe.park;";
        let cases = [
            (
                "java.util.concurrent.ArrayBlockingQueue.put",
                "a full queue",
                "shorter or",
            ),
            (
                "java.util.concurrent.CyclicBarrier.dowait",
                "(a barrier)",
                "evenly",
            ),
            ("java.util.concurrent.ArrayBlockingQueue.take", "", ""),
        ];
        for (method, how, remedy) in cases {
            let mut art = Art::default();
            let stack = format!("{park}{method};app.Main.loop");
            art.look("maker-1", "", "park", &stack, 40, 20);
            art.cpu("maker-1", "", "app.Make.one;app.Main.loop", 40, 10);
            let found = art.found(check);
            assert_eq!(
                found.len(),
                usize::from(!how.is_empty()),
                "{method}: {found:?}"
            );
            for finding in found {
                assert!(finding.what.contains(how), "{}", finding.what);
                assert!(finding.remedy.contains(remedy), "{}", finding.remedy);
            }
        }
    }

    #[test]
    fn thread_without_other_work_is_not_reported() {
        let mut art = Art::default();
        art.look(
            "writer",
            "",
            "object-wait",
            &wait("app.Writer.run"),
            400,
            20,
        );
        art.cpu("writer", "", "app.Writer.flush;app.Writer.run", 5, 10);
        art.cpu("writer", "", &wait("app.Writer.run"), 20, 10);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn request_wait_is_reported_unless_another_rule_covers_it() {
        let park = "jdk.internal.misc.Unsafe.park;";
        let future = format!("{park}java.util.concurrent.FutureTask.get;app.R.get");
        let timed = format!("{park}java.util.concurrent.locks.LockSupport.parkNanos;app.R.get");
        let barrier = format!("{park}java.util.concurrent.CyclicBarrier.await;app.R.get");
        for (stack, expected) in [(future, 0), (timed, 0), (barrier, 1)] {
            let mut art = Art::default();
            art.look("w-1", "GET /r", "park", &stack, 40, 20);
            art.cpu("w-1", "GET /r", "app.Work.run;app.R.get", 40, 10);
            art.requests("GET /r", 100, 12);
            let found = art.found(check);
            assert_eq!(found.len(), expected, "{stack}");
            for finding in found {
                assert!(
                    finding.what.contains("8.0 ms a request"),
                    "{}",
                    finding.what
                );
            }
        }
    }
}

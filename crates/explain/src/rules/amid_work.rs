//! Waits amid work: threads that have something to do wait until another thread notifies or unparks
//! them, and it is neither a lock nor a pool nor a future that the JVM or another rule knows. So do
//! row locks of databases, barriers, hand-made queues.
//!
//! Workers that wait for work do the same. They are told apart by their stacks: who waits for work
//! does so next to the loop below which all its work is; who waits amid work does so below a method
//! under which only a part of it is. With requests it is plain: who has one has work.

use super::futures::{WAITS, minus};
use super::pools::BORROWING;
use super::sleeping::TIMED;
use super::{crews, no_wall, pools};
use crate::evidence::{Entry, Facts, IDLE, Kind};
use crate::finding::{Evidence, Finding, Sure, Verdict, View};
use crate::names::Set;
use crate::numbers::{duration, percent, short};
use crate::stacks::Nodes;
use crate::waits::{Wait, Whose, gather};
use dwell_profile::{MethodId, NodeId, Weight};
use std::collections::{BTreeSet, HashMap};

/// A share of the time of those who wait that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.10;
const SURELY: f64 = 0.04;
const LOOKS: u64 = 8;
/// A method below which at most so much of a thread's work is, is not the loop of a worker.
const PART: f64 = 0.9;
/// It takes so many looks or samples to say so.
const WORK_SEEN: u64 = 10;
const MOST: usize = 2;

/// Where threads wait, and how.
type Place = (Kind, How, String);

/// Where somebody waits who has something to hand over.
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
            How::Filling => "for room in a queue, which is full",
            How::Meeting => "for other threads to get as far (a barrier)",
        }
    }

    fn remedy(self, place: &str) -> String {
        match self {
            How::Notified | How::Unparked => format!(
                "find out who lets {place} go on, and what that one does before: make that \
                 shorter, or let fewer threads want the same at once"
            ),
            How::Filling => format!(
                "who takes from the queue is slower than {place} fills it: make that work shorter \
                 or give it more threads; a longer queue only puts it off"
            ),
            How::Meeting => format!(
                "what threads do between two meetings in {place} takes some longer than others: \
                 divide it more evenly, or into small parts that whoever is free takes"
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

/// What other rules tell.
struct Known {
    futures: Set,
    timed: Set,
    borrows: Nodes,
    filling: Set,
    meeting: Set,
    /// Classes whose full queues another rule tells.
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

    /// Whether the queue that is full here is one whose workers another rule tells.
    fn is_told(&self, facts: &Facts<'_>, node: NodeId) -> bool {
        let place = facts.stacks.place(node);
        let method = place.and_then(|method| facts.profile.methods().get(method as usize));
        let class = method.map_or("", |method| facts.profile.names().text(method.class));
        self.full.contains(crews::outer(class))
    }

    /// Whether another rule tells of this wait.
    fn has(&self, facts: &Facts<'_>, kind: Kind, node: NodeId) -> bool {
        let stacks = &facts.stacks;
        let is_future = || kind == Kind::Endpoint && stacks.top_has(node, &self.futures);
        self.borrows.has(node) || stacks.program_calls(node, &self.timed) || is_future()
    }
}

/// Who waits how, if that is told here where it is amid work.
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

/// What each subject works at: the calls of its threads as a tree, with the time in which they did
/// not wait for others to let them go on.
struct Works {
    /// From a subject and one of its nodes (0 for its root) by a method to the next node.
    next: HashMap<(usize, u32, MethodId), u32>,
    /// Work in and below each node.
    work: Vec<Weight>,
    /// Of each subject.
    all: HashMap<usize, Weight>,
}

impl Works {
    /// The work of those who wait so: of others there can be very much.
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

    /// The program's innermost method below which the thread did something else as well, and how
    /// much of all that it did; `None` if it is nearly all, or there is none: then that is where it
    /// waits for work.
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
        "{} waits {} of its time in {place} {}{each}",
        whose.name,
        percent(share.value),
        how.text()
    );
    let mut evidence = vec![wait.evidence(facts, whose, wait.seen())];
    let entry = facts.entries.iter().find(|it| it.node == wait.node());
    if let Some((method, part)) = entry.and_then(|entry| works.below(facts, entry)) {
        let text = format!(
            "it is amid work: of what these threads do else, {} is below {}, too",
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
        because: "the wait is certain; the runtime does not tell who is to end it".to_owned(),
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
    fn a_wait_below_a_part_of_the_work_is_told() {
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
    fn waiting_for_work_is_not_told() {
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
    fn full_queues_and_barriers_are_told_however_the_work_is() {
        let park = "jdk.internal.misc.Unsafe.park;";
        let cases = [
            (
                "java.util.concurrent.ArrayBlockingQueue.put",
                "a queue, which is full",
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
    fn a_thread_that_does_nothing_else_is_not_told() {
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
    fn who_has_a_request_has_work_but_what_other_rules_tell_is_theirs() {
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

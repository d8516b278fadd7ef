//! Busy waiting: a method asks again and again whether there is something to do, and never waits
//! for it. That costs a processor however little there is to do.

use super::bound;
use super::event_loops::LOOPS;
use super::no_cpu;
use super::sleeping;
use crate::evidence::Facts;
use crate::finding::{Evidence, Finding, Sure, Verdict, View};
use crate::names::Set;
use crate::numbers::{percent, short};
use crate::share::Share;
use dwell_profile::{MethodId, NodeId, Platform, Weight};
use std::collections::BTreeMap;

/// A part of the CPU time that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.12;
const SURELY: f64 = 0.07;
const SAMPLES: u64 = 20;
/// A method that spends less of its time asking does something with the answers.
const ASKS: f64 = 0.5;
const MOST: usize = 2;

/// Calls that ask and come back at once, or that only say that the caller goes on asking.
const ASKING: &[&str] = &[
    "java.lang.Thread.yield*",
    "java.lang.Thread.onSpinWait",
    // Compiled code has no frame of that. These classes wait so and say it (Disruptor, Agrona).
    "*.BusySpin*",
    "java.util.concurrent.ConcurrentLinkedQueue.p*",
    "java.util.concurrent.ConcurrentLinkedQueue.isEmpty",
    "java.util.concurrent.ConcurrentLinkedQueue.first",
    "java.util.concurrent.ConcurrentLinkedDeque.p*",
    "java.util.concurrent.ConcurrentLinkedDeque.isEmpty",
    "java.util.concurrent.FutureTask.isDone",
    "java.util.concurrent.CompletableFuture.isDone",
    "sun.nio.ch.SelectorImpl.selectNow",
    // CPU time in these comes from very many short waits.
    "java.lang.Thread.sleep*",
    "java.util.concurrent.locks.LockSupport.parkNanos",
    "System.Threading.Thread.Yield",
    "System.Threading.Thread.SpinWait*",
    "System.Threading.SpinWait.*",
];

/// Time of one method of the program, and the part of it that polls.
#[derive(Default)]
struct Asker {
    all: Weight,
    asks: Weight,
    /// Time by the node that polls, and by its callee.
    nodes: BTreeMap<NodeId, u64>,
    called: BTreeMap<MethodId, u64>,
}

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if facts.program_total.samples == 0 {
        return no_cpu(facts);
    }
    let found = askers(facts)
        .into_iter()
        .map(|(place, asker)| finding(facts, place, &asker));
    Verdict::Found(found.take(MOST).collect())
}

/// The methods that have a finding of this rule.
pub(super) fn places(facts: &Facts<'_>) -> Vec<MethodId> {
    let askers = askers(facts).into_iter().take(MOST);
    askers.map(|(place, _)| place).collect()
}

/// The methods that mostly ask and cost much, the most expensive first.
fn askers(facts: &Facts<'_>) -> Vec<(MethodId, Asker)> {
    let asking = Set::new(facts.profile, ASKING);
    if asking.is_empty() {
        return Vec::new();
    }
    let stacks = &facts.stacks;
    // Loops that serve many connections ask before they wait.
    let loops = stacks.nodes_with(&Set::new(facts.profile, LOOPS));
    let mut askers: BTreeMap<MethodId, Asker> = BTreeMap::new();
    for (node, weight) in facts.program_cpu.iter().enumerate() {
        let node = node as NodeId;
        if weight.samples == 0 || !stacks.is_of_program(node) || loops.has(node) {
            continue;
        }
        let Some(place) = stacks.place(node) else {
            continue;
        };
        let asker = askers.entry(place).or_default();
        asker.all += weight;
        if let Some(called) = stacks.nearest(node, &asking) {
            asker.asks += weight;
            *asker.nodes.entry(node).or_default() += weight.sum;
            *asker.called.entry(called).or_default() += weight.sum;
        }
    }
    let is_one = |asker: &Asker| {
        let share = Share::sampled(&asker.all, &facts.cpu_total, "");
        asker.asks.share(&asker.all) >= ASKS
            && share.is_at_least(SHARE, SURELY, SAMPLES)
            && bound::is_worth(facts, &asker.all)
    };
    let mut askers: Vec<_> = askers.into_iter().filter(|it| is_one(&it.1)).collect();
    if !askers.is_empty() {
        // Another rule reports these waits.
        let polled = sleeping::places(facts);
        askers.retain(|(place, _)| !polled.contains(&stacks.name(*place)));
    }
    askers.sort_by_key(|(_, asker)| std::cmp::Reverse(asker.all.sum));
    askers
}

fn finding(facts: &Facts<'_>, place: MethodId, asker: &Asker) -> Finding {
    let share = Share::sampled(&asker.all, &facts.cpu_total, facts.cpu_name());
    let name = facts.stacks.name(place);
    let node = largest(&asker.nodes).unwrap_or_default();
    let called = largest(&asker.called);
    let called = called.filter(|method| *method != place);
    let called = called.map_or_else(String::new, |method| {
        format!(" ({})", short(&facts.stacks.name(method)))
    });
    Finding {
        rule: "",
        what: format!(
            "{} of {} is spent in {name}, which polls{called} for work",
            percent(share.value),
            facts.cpu_name()
        ),
        weight: facts.lost_on_processors(&share),
        evidence: vec![Evidence {
            text: format!(
                "{} of its time is in such calls, which return at once or soon",
                percent(asker.asks.share(&asker.all))
            ),
            view: View {
                focus: facts.stacks.focus_of(node),
                ..View::default()
            },
            stack: facts.stacks.shown(node),
        }],
        remedy: format!(
            "let {} wait until there is work ({})",
            short(&name),
            match facts.profile.info().platform() {
                Platform::Jvm => {
                    "a BlockingQueue with take, Future.get, Condition.await, Selector.select"
                }
                Platform::Mono => "BlockingCollection.Take, Task.Wait, Monitor.Wait",
            }
        ),
        sure: Sure::Medium,
        because: "the cost is certain; the recording does not show how often there was work"
            .to_owned(),
        share,
    }
}

fn largest<K: Copy>(sums: &BTreeMap<K, u64>) -> Option<K> {
    let most = sums.iter().max_by_key(|(_, ns)| **ns)?;
    Some(*most.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;
    use crate::{Options, explain};

    #[test]
    fn polling_loop_is_reported_once_and_not_as_hot_path() {
        let mut art = Art::default();
        let yielding = "libc.so.6.sched_yield[native];java.lang.Thread.yield0;\
                        java.lang.Thread.yield;app.Consumer.loop";
        art.cpu("consumer", "", yielding, 70, 10);
        let polling = "java.util.concurrent.ConcurrentLinkedQueue.poll;app.Consumer.loop";
        art.cpu("consumer", "", polling, 10, 10);
        art.cpu("consumer", "", "app.Consumer.loop", 20, 10);
        art.cpu("w", "", "app.Work.run", 100, 10);
        let explained = explain(&art.profile(), &Options::default());
        let of = |rule: &str| {
            let found = explained
                .findings
                .iter()
                .filter(move |found| found.rule == rule);
            found.map(|found| found.what.as_str()).collect::<Vec<_>>()
        };
        let expected = "50 % of the CPU time is spent in app.Consumer.loop, which polls \
                        (Thread.yield) for work";
        assert_eq!(of("busy-waiting"), [expected]);
        assert_eq!(of("hot-path").len(), 1, "{:?}", of("hot-path"));
        assert!(of("hot-path")[0].contains("app.Work.run"));
    }

    #[test]
    fn very_many_short_waits_are_polling() {
        let mut art = Art::default();
        let parking = "libc.so.6.pthread_cond_timedwait[native];jdk.internal.misc.Unsafe.park;\
                       java.util.concurrent.locks.LockSupport.parkNanos;app.Strategy.waitFor";
        art.cpu("consumer", "", parking, 60, 10);
        art.cpu("w", "", "app.Work.run", 40, 10);
        let found = art.found(check);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].what.contains("polls (LockSupport.parkNanos)"),
            "{found:?}"
        );
    }

    #[test]
    fn compiled_spin_loop_is_known_by_its_class() {
        let mut art = Art::default();
        let spinning = "com.lmax.disruptor.BusySpinWaitStrategy.waitFor;app.Consumer.loop";
        art.cpu("consumer", "", spinning, 80, 10);
        art.cpu("w", "", "app.Work.run", 20, 10);
        let found = art.found(check);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains("which polls for work"), "{found:?}");
    }

    /// A paced thread is not worth a change.
    #[test]
    fn polling_without_much_cpu_time_is_not_reported() {
        let stack = "java.lang.Thread.sleep;app.Poller.run";
        for (duration_s, expected) in [(10, 1), (100, 0)] {
            let mut art = Art::default();
            art.builder.info.duration_ns = duration_s * 1_000_000_000;
            art.cpu("poller", "", stack, 100, 10);
            assert_eq!(art.found(check).len(), expected, "{duration_s} s");
        }
    }

    #[test]
    fn thread_that_polls_is_reported_once() {
        let mut art = Art::default();
        let stack = "java.lang.Thread.sleep;app.Poller.run";
        art.cpu("poller", "", stack, 30, 10);
        art.cpu("w", "", "app.Work.run", 70, 10);
        assert_eq!(art.found(check).len(), 1, "nothing says that it sleeps");
        art.look("poller", "", "sleep", stack, 90, 100);
        art.turns("poller", 500, 10);
        assert_eq!(art.found(sleeping::check).len(), 1);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn working_loops_and_event_loops_are_not_reported() {
        let mut art = Art::default();
        let polling = "java.util.concurrent.ConcurrentLinkedQueue.poll;app.Consumer.loop";
        art.cpu("consumer", "", polling, 30, 10);
        art.cpu("consumer", "", "app.Consumer.loop", 70, 10);
        assert_eq!(art.found(check), []);
        let mut art = Art::default();
        let selecting = "sun.nio.ch.SelectorImpl.selectNow;io.netty.channel.nio.NioEventLoop.run";
        art.cpu("loop-1", "", selecting, 90, 10);
        assert_eq!(art.found(check), []);
        assert!(Art::default().lacks(check).contains("no samples"));
    }
}

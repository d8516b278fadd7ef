//! Sleeping and polling: requests that sleep, and threads that wake up many times a second only to
//! look whether there is something to do.

use super::event_loops::LOOPS;
use super::futures::is_held_up;
use super::no_wall;
use crate::evidence::{Entry, Facts, Kind};
use crate::finding::{Finding, Sure, Verdict};
use crate::names::Set;
use crate::numbers::{duration, percent, short, whole};
use crate::waits::{Wait, Whose, gather};
use dwell_profile::{Platform, Weight};

/// A share of a request's time that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.20;
const SURELY: f64 = 0.08;
const LOOKS: u64 = 6;
/// A thread that sleeps most of its time and wakes up this often per second polls.
const POLLS_SHARE: f64 = 0.5;
const POLLS_A_SECOND: f64 = 20.0;
/// Turns of less time than this are no rate.
const COUNTED_NS: u64 = 1_000_000_000;
/// A thread with other waits for more than this part of its time wakes up for those, too. An
/// example is a client that sends a request now and then.
const POLLS_ELSE: f64 = 0.002;
/// One that polls only looks whether there is something to do: it uses so little of a processor at
/// each turn. More is work with sleeps before or after it. Samples do not show this: those of short
/// sleeps at one place are one wait.
const POLLS_TURN_NS: f64 = 200_000.0;
const MOST: usize = 3;

/// A timed park without another purpose is a sleep.
pub(crate) const TIMED: &[&str] = &[
    "java.util.concurrent.locks.LockSupport.parkNanos",
    "java.util.concurrent.locks.LockSupport.parkUntil",
];

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if !facts.profile.has_wall() {
        return no_wall(facts);
    }
    Verdict::Found(found(facts).into_iter().map(|(_, it)| it).collect())
}

/// The methods in which threads poll, as far as they have a finding of this rule.
pub(super) fn places(facts: &Facts<'_>) -> Vec<String> {
    let found = found(facts).into_iter();
    let polled = found.filter(|((kind, _), _)| *kind == Kind::Threads);
    polled.map(|((_, place), _)| place).collect()
}

fn found(facts: &Facts<'_>) -> Vec<((Kind, String), Finding)> {
    let timed = Set::new(facts.profile, TIMED);
    // Another rule reports calls that block an event loop.
    let loops = facts.stacks.nodes_with(&Set::new(facts.profile, LOOPS));
    let mut found = Vec::new();
    for (place, wait) in gather(facts, |entry| {
        place_of(facts, &timed, entry).filter(|_| !loops.has(entry.node))
    }) {
        let Some(whose) = wait.whose(facts) else {
            continue;
        };
        let told = match whose.kind {
            Kind::Endpoint => of_requests(facts, &place, &wait, &whose),
            Kind::Threads => of_threads(facts, &place, &wait, &whose),
        };
        found.extend(told.map(|finding| (place, finding)));
        if found.len() == MOST {
            break;
        }
    }
    found
}

/// Where the program sleeps. A subject of one kind only: a place may serve both.
fn place_of(facts: &Facts<'_>, timed: &Set, entry: &Entry<'_>) -> Option<(Kind, String)> {
    let sleeps = match entry.cause {
        "sleep" => facts.stacks.is_of_program(entry.node),
        "park" => facts.stacks.program_calls(entry.node, timed),
        _ => false,
    };
    let kind = facts.subjects.get(entry.subject)?.kind;
    // Timers of libraries sleep until something is due.
    let sleeps = sleeps && facts.stacks.can_be_changed(entry.node);
    sleeps.then(|| (kind, facts.stacks.place_name(entry.node)))
}

fn of_requests(
    facts: &Facts<'_>,
    place: &(Kind, String),
    wait: &Wait,
    whose: &Whose,
) -> Option<Finding> {
    let share = wait.share(facts, whose);
    if !share.is_at_least(SHARE, SURELY, LOOKS) || !whose.matters(facts) {
        return None;
    }
    let place = &place.1;
    let each = whose
        .per_request(facts, share.ns)
        .map_or(String::new(), |ns| {
            format!(", {} a request on average", duration(ns))
        });
    Some(Finding {
        rule: "",
        what: format!("{} in {place}{each}", whose.spends("sleep", share.value)),
        weight: wait.gravity(facts),
        share,
        evidence: vec![wait.evidence(facts, whose, wait.seen())],
        remedy: format!(
            "do not wait a fixed time in {}: wait for the event itself (a queue, a condition, a \
             future), or retry at once, then with growing pauses",
            short(place)
        ),
        sure: Sure::High,
        because: "its threads were sampled asleep while they handled the request".to_owned(),
    })
}

fn of_threads(
    facts: &Facts<'_>,
    place: &(Kind, String),
    wait: &Wait,
    whose: &Whose,
) -> Option<Finding> {
    let share = wait.share(facts, whose);
    let subject = facts.subjects.get(whose.only?)?;
    if facts.endpoint.is_some() || !share.is_at_least(POLLS_SHARE, POLLS_SHARE / 2.0, LOOKS) {
        return None;
    }
    let part = wait.part_of(facts, whose);
    if waits_else(facts, whose.only?, &part) > POLLS_ELSE {
        return None;
    }
    let times = facts.profile.thread_times().iter();
    let of_group = times.filter(|time| subject.threads.contains(&time.thread));
    let (turns, ns, cpu_ns) = of_group.fold((0u64, 0u64, 0u64), |sum, time| {
        (
            sum.0.saturating_add(time.turns),
            sum.1.saturating_add(time.duration_ns),
            sum.2.saturating_add(time.cpu_ns),
        )
    });
    let a_second = turns as f64 / (ns.max(1) as f64 / 1e9);
    let works = cpu_ns as f64 > POLLS_TURN_NS * turns as f64;
    if ns < COUNTED_NS || a_second < POLLS_A_SECOND || works {
        return None;
    }
    let place = &place.1;
    Some(Finding {
        rule: "",
        what: format!(
            "{} sleeps {} of its time in {place} and wakes up {} times a second",
            whose.name,
            percent(share.value),
            whole(a_second)
        ),
        // The only cost is the delay of work that waits until the next turn.
        weight: 0.0,
        share,
        evidence: vec![wait.evidence(facts, whose, wait.seen())],
        remedy: format!(
            "if {} polls, let it wait for a notification ({}), or sleep longer",
            short(place),
            match facts.profile.info().platform() {
                Platform::Jvm => "BlockingQueue.take, Condition.await",
                Platform::Mono => "BlockingCollection.Take, Monitor.Wait",
            }
        ),
        sure: Sure::Low,
        because: "a short pause may be intended; the wake-ups are the kernel's count".to_owned(),
    })
}

/// The part of a subject's time in which it waits, but for this part.
fn waits_else(facts: &Facts<'_>, subject: usize, part: &Weight) -> f64 {
    let mut waits = Weight::default();
    for entry in &facts.entries {
        if entry.subject == subject && is_held_up(entry.cause) {
            waits += &entry.weight;
        }
    }
    let busy = facts.subjects.get(subject).map(|it| it.busy);
    let others = waits.sum.saturating_sub(part.sum) as f64;
    others / busy.unwrap_or_default().sum.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn sleeping_request_is_reported_with_its_pause() {
        let mut art = Art::default();
        art.look(
            "w-1",
            "GET /r",
            "sleep",
            "java.lang.Thread.sleep;app.Retry.get",
            20,
            20,
        );
        art.cpu("w-1", "GET /r", "app.Retry.get", 5, 10);
        art.requests("GET /r", 100, 5);
        let found = art.found(check);
        let what = &found[0].what;
        assert!(
            what.contains("GET /r sleeps") && what.contains("app.Retry.get"),
            "{what}"
        );
        assert!(what.contains("4.0 ms a request"), "{what}");
    }

    #[test]
    fn parking_for_a_time_is_sleeping_but_waiting_in_a_queue_is_not() {
        let mut art = Art::default();
        let park = "jdk.internal.misc.Unsafe.park;\
                    java.util.concurrent.locks.LockSupport.parkNanos";
        art.look(
            "w-1",
            "GET /s",
            "park",
            &format!("{park};app.Stock.ask"),
            20,
            20,
        );
        let queue = format!("{park};java.util.concurrent.LinkedBlockingQueue.poll;app.Q.next");
        art.look("w-1", "GET /q", "park", &queue, 20, 20);
        let found = art.found(check);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains("app.Stock.ask"));
    }

    /// Short sleeps, and how often the thread got a processor in ten seconds.
    fn sleeper(art: &mut Art, stack: &str, turns: u64) {
        // However short they are, they are one wait: each is at the same place.
        art.look("poller", "", "sleep", stack, 90, 100);
        art.turns("poller", turns, 10);
    }

    #[test]
    fn thread_polls_if_it_wakes_up_often() {
        for (turns, expected) in [(500, 1), (10, 0)] {
            let mut art = Art::default();
            let stack = "java.lang.Thread.sleep;app.Poller.run";
            sleeper(&mut art, stack, turns);
            assert_eq!(art.found(check).len(), expected, "{turns}");
        }
    }

    #[test]
    fn sleeps_of_other_rules_and_libraries_are_left_out() {
        let timer = "kotlinx.coroutines.DefaultExecutor.run;java.lang.Thread.run";
        let on_loop = "app.Handler.handle;acme.shaded.io.netty.channel.nio.NioEventLoop.run";
        for (below, expected) in [("app.Poller.run", 1), (timer, 0), (on_loop, 0)] {
            let mut art = Art::default();
            sleeper(&mut art, &format!("java.lang.Thread.sleep;{below}"), 500);
            assert_eq!(art.found(check).len(), expected, "{below}");
        }
    }

    #[test]
    fn one_long_sleep_after_much_work_is_no_polling() {
        let mut art = Art::default();
        art.look(
            "main",
            "",
            "sleep",
            "java.lang.Thread.sleep;app.Main.main",
            90,
            100,
        );
        for (cpu_ns, expected) in [(1_000_000_000, 0), (10_000_000, 1)] {
            art.builder.thread_times.clear();
            art.turns("main", 1_000, 10);
            art.builder.thread_times[0].cpu_ns = cpu_ns;
            assert_eq!(art.found(check).len(), expected, "{cpu_ns}");
        }
    }

    #[test]
    fn thread_with_other_waits_does_not_poll() {
        let mut art = Art::default();
        let stack = "java.lang.Thread.sleep;app.Client.run";
        sleeper(&mut art, stack, 500);
        assert_eq!(art.found(check).len(), 1);
        art.look("poller", "", "socket", "app.Client.ask", 2, 100);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn advice_names_methods_of_the_platform() {
        for (name, word) in [
            ("OpenJDK VM", "Condition.await"),
            ("Mono 6.8", "Monitor.Wait"),
        ] {
            let mut art = Art::default();
            art.builder.info.jvm_name = name.to_owned();
            sleeper(&mut art, "App.Poller.Run", 500);
            let remedy = &art.found(check)[0].remedy;
            assert!(remedy.contains(word), "{remedy}");
        }
    }
}

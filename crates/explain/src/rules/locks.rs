//! Lock contention: threads wait for a monitor or a lock that another thread holds. The finding
//! names the holder and what it did during the waits.

use super::{no_wall, without_wall};
use crate::evidence::{Entry, Facts, IDLE, Kind, is_ready};
use crate::exact_waits;
use crate::finding::{Evidence, Finding, Focus, Measure, Sure, Verdict, View};
use crate::numbers::{percent, short};
use crate::owners::{Deed, Deeds, Owners};
use crate::waits::{Wait, Whose, gather};
use dwell_profile::{NodeId, Platform, RUNNING, Weight};
use std::collections::BTreeMap;

/// A share of the waiters' time that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.05;
const SURELY: f64 = 0.02;
/// Looks below which a lock is chance.
const LOOKS: u64 = 8;
/// Least part of an owner's time for an activity to be named as the reason.
const DEED: f64 = 0.3;
/// Findings of this rule.
const MOST: usize = 4;

/// A lock: kind, class, and the program's method that takes it.
type Lock = (&'static str, String, String);

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if !facts.profile.has_wall() {
        return match facts.profile.monitor_waits().is_empty() {
            true => no_wall(facts),
            false => without_wall::check(facts),
        };
    }
    let waits = gather(facts, |entry| lock_of(facts, entry));
    let large: Vec<(Lock, Wait, Whose)> = waits
        .into_iter()
        .filter_map(|(lock, wait)| {
            let whose = wait.whose(facts)?;
            let share = wait.share(facts, &whose);
            let is_large = share.is_at_least(SHARE, SURELY, LOOKS) && whose.matters(facts);
            is_large.then_some((lock, wait, whose))
        })
        .take(MOST)
        .collect();
    if large.is_empty() {
        return Verdict::Found(Vec::new());
    }
    let deeds = deeds(facts);
    let none = Deeds::default();
    let found = large.iter().filter_map(|(lock, wait, whose)| {
        let deeds = deeds.get(lock).unwrap_or(&none);
        let is_turn = whose.kind == Kind::Threads && waits_for_work(deeds);
        (!is_turn).then(|| finding(facts, lock, wait, whose, deeds))
    });
    Verdict::Found(found.collect())
}

/// Whether the owner mostly waited for work. Then the waiters have no work either: one thread after
/// the other waits for it.
fn waits_for_work(deeds: &Deeds) -> bool {
    deeds.most(DEED).is_some_and(|(deed, _)| deed.cause == IDLE)
}

fn cause_of(cause: &str) -> Option<&'static str> {
    match cause {
        "monitor" => Some("monitor"),
        "lock" => Some("lock"),
        _ => None,
    }
}

/// Which one of a class's monitors it was does not matter.
fn class_of(detail: &str) -> String {
    detail.split('@').next().unwrap_or("").to_owned()
}

fn lock_of(facts: &Facts<'_>, entry: &Entry<'_>) -> Option<Lock> {
    let cause = cause_of(entry.cause)?;
    let kind = facts.subjects.get(entry.subject)?.kind;
    // Threads of the JDK or a framework that wait for it are nothing that a program could change.
    if kind == Kind::Threads && !facts.stacks.can_be_changed(entry.node) {
        return None;
    }
    let detail = entry.detail.map_or("", |id| facts.profile.names().text(id));
    Some((cause, class_of(detail), facts.stacks.place_name(entry.node)))
}

fn deeds(facts: &Facts<'_>) -> BTreeMap<Lock, Deeds> {
    let owners = Owners::new(facts);
    let mut deeds: BTreeMap<Lock, Deeds> = BTreeMap::new();
    for look in facts.profile.looks() {
        let names = facts.profile.names();
        let Some(cause) = cause_of(names.text(look.cause)) else {
            continue;
        };
        let class = class_of(look.detail.map_or("", |id| names.text(id)));
        let lock = (cause, class, facts.stacks.place_name(look.node));
        owners.add(facts, look, deeds.entry(lock).or_default());
    }
    deeds
}

fn finding(facts: &Facts<'_>, lock: &Lock, wait: &Wait, whose: &Whose, deeds: &Deeds) -> Finding {
    let (cause, class, place) = lock;
    let kind = match (*cause, facts.profile.info().platform()) {
        ("monitor", Platform::Jvm) => "a monitor (synchronized)",
        ("monitor", Platform::Mono) => "a monitor (lock)",
        _ => "a lock",
    };
    let on = match class.is_empty() {
        true => String::new(),
        false => format!(" of {class}"),
    };
    let share = wait.share(facts, whose);
    let holder = holder(facts, deeds);
    let mut waits = wait.evidence(facts, whose, wait.seen());
    waits.view.focus = Some(Focus::Lock(class.clone()));
    let mut evidence = vec![waits];
    if *cause == "monitor" {
        evidence.extend(exact_waits::evidence(facts, class, place));
    }
    if let Some((deed, part)) = deeds.most(DEED) {
        evidence.push(owners_evidence(facts, deed, part));
    }
    let inside = match deeds.most(DEED) {
        Some(_) => None,
        None => runs_inside(facts, wait, class),
    };
    let held = match (&holder, &inside) {
        (Some((text, _)), _) => text.clone(),
        (None, Some((inner, _))) => format!("; the holder is mostly in {}", short(inner)),
        (None, None) => String::new(),
    };
    let what = format!(
        "{} for {kind}{on} in {place}{held}",
        whose.spends("wait", share.value)
    );
    evidence.extend(inside.as_ref().map(|(_, evidence)| evidence.clone()));
    let is_known = holder.is_some();
    Finding {
        rule: "",
        what,
        weight: wait.gravity(facts),
        share,
        evidence,
        remedy: match inside {
            Some((inner, _)) => shorten(&inner),
            None => remedy(facts, deeds, place),
        },
        sure: match is_known {
            true => Sure::High,
            false => Sure::Medium,
        },
        because: match is_known {
            true => "the JVM reports waiting threads and their locks' holders".to_owned(),
            false => "the wait is certain; the holder's activity was not sampled at that moment"
                .to_owned(),
        },
    }
}

/// Time inside of a lock.
#[derive(Default)]
struct Inside {
    weight: Weight,
    node: NodeId,
    causes: BTreeMap<String, u64>,
}

/// Main activity in and below the method that takes the lock, at any time, lock waits excluded.
fn runs_inside(facts: &Facts<'_>, wait: &Wait, class: &str) -> Option<(String, Evidence)> {
    let taker = facts.stacks.taker(wait.node());
    let waits_in = facts.stacks.place_name(wait.node());
    let mut places: BTreeMap<(String, String), Inside> = BTreeMap::new();
    let mut all = Weight::default();
    for entry in &facts.entries {
        let is_other = cause_of(entry.cause).is_none() && entry.cause != IDLE;
        if !is_other || !facts.stacks.is_inside(entry.node, taker, class) {
            continue;
        }
        let place = facts.stacks.place_name(entry.node);
        // If the waiting method itself does the work, the sentence does not name it again.
        let called = match place == waits_in {
            true => facts.stacks.called(entry.node),
            false => None,
        };
        let called = called.map_or_else(String::new, |method| facts.stacks.name(method));
        let inside = places.entry((place, called)).or_default();
        if inside.weight.samples == 0 {
            inside.node = entry.node;
        }
        inside.weight += &entry.weight;
        *inside.causes.entry(entry.cause.to_owned()).or_default() += entry.weight.sum;
        all += &entry.weight;
    }
    let ((place, called), inside) = places
        .into_iter()
        .max_by_key(|(_, inside)| inside.weight.sum)?;
    let (cause, _) = inside.causes.iter().max_by_key(|(_, ns)| **ns)?;
    let text = format!(
        "of the time in and below the method that takes the lock, lock waits excluded, {} is here \
         (mostly {cause})",
        percent(inside.weight.share(&all))
    );
    let evidence = Evidence {
        text,
        view: View {
            measure: Measure::Wall,
            ..View::default()
        },
        stack: facts.stacks.shown(inside.node),
    };
    let inner = match called.is_empty() {
        true => place.clone(),
        false => called,
    };
    (inside.weight.samples >= LOOKS && inner != waits_in).then_some((inner, evidence))
}

/// Activity of the owner, as the end of a sentence.
fn holder(facts: &Facts<'_>, deeds: &Deeds) -> Option<(String, f64)> {
    let (deed, part) = deeds.most(DEED)?;
    let group = deeds.group().unwrap_or("");
    let called = called(facts, deed).map_or(String::new(), |it| format!(", which calls {it}"));
    let place = format!("{}{called}", deed.place);
    let text = match deed.cause.as_str() {
        RUNNING => format!(", while {group} holds it and runs {place}"),
        cause if is_ready(cause) => {
            format!(", while {group} holds it and is runnable, waiting for a CPU, in {place}")
        }
        "waiting" => format!(", while {group} holds it and waits in {place}"),
        IDLE => format!(", while {group} holds it and waits for work in {place}"),
        cause => format!(", while {group} holds it and waits ({cause}) in {place}"),
    };
    Some((text, part))
}

/// Callee of the owner's place.
fn called(facts: &Facts<'_>, deed: &Deed) -> Option<String> {
    let method = facts.stacks.called(deed.node?)?;
    Some(short(&facts.stacks.name(method)).to_owned())
}

fn owners_evidence(facts: &Facts<'_>, deed: &Deed, part: f64) -> Evidence {
    Evidence {
        text: format!(
            "{} of the time with a known holder, the holder was here",
            percent(part)
        ),
        view: View {
            measure: Measure::Wall,
            threads: Some(deed.group.clone()),
            ..View::default()
        },
        stack: deed
            .node
            .map_or_else(Vec::new, |node| facts.stacks.shown(node)),
    }
}

fn remedy(facts: &Facts<'_>, deeds: &Deeds, place: &str) -> String {
    let Some((deed, _)) = deeds.most(DEED) else {
        return format!(
            "shorten the code inside the lock that {} takes, or give each part of the data a lock \
             of its own",
            short(place)
        );
    };
    // The method that takes the lock cannot be moved out of it, but its callees can.
    let inner = match deed.place == place {
        true => called(facts, deed),
        false => Some(short(&deed.place).to_owned()),
    };
    let place = short(place);
    let moved = inner.clone();
    let moved = moved.unwrap_or_else(|| format!("code of {place} that needs no lock"));
    match deed.cause.as_str() {
        RUNNING => shorten(&moved),
        cause if is_ready(cause) => {
            format!("{}; and let fewer threads run at once", shorten(&moved))
        }
        _ => format!(
            "do not wait inside the lock: {} waits while it is held; take the lock in {place} \
             only to change shared data, before or after that wait, or batch the work done under \
             the lock",
            inner.as_deref().unwrap_or(place)
        ),
    }
}

fn shorten(inner: &str) -> String {
    format!(
        "shorten the code inside the lock: move {} out of it, or give each key or part of the \
         data a lock of its own",
        short(inner)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn locks_among_threads_of_a_framework_are_left_alone() {
        for (stack, expected) in [
            ("io.netty.util.Recycler.get;app.Codec.run", 1),
            (
                "org.apache.tomcat.util.net.SocketWrapperBase.lock;java.lang.Thread.run",
                0,
            ),
        ] {
            let mut art = Art::default();
            art.look("w-1", "", "monitor", stack, 40, 20);
            assert_eq!(art.found(check).len(), expected, "{stack}");
        }
    }

    #[test]
    fn lock_finding_names_lock_owner_and_its_activity() {
        let mut art = Art::default();
        art.look("w-1", "POST /a", "monitor", "app.Ledger.book", 40, 20);
        art.detail("app.Ledger@7f00").owner("w-2", None);
        art.cpu("w-2", "POST /a", "app.Ledger.audit;app.Ledger.book", 40, 10);
        let found = art.found(check);
        assert_eq!(found.len(), 1, "{found:?}");
        let what = &found[0].what;
        for part in [
            "POST /a waits",
            "app.Ledger",
            "w-* holds it and runs app.Ledger.audit",
        ] {
            assert!(what.contains(part), "{what}");
        }
        assert!(
            found[0].remedy.contains("move Ledger.audit out of it"),
            "{found:?}"
        );
        assert_eq!(found[0].sure, Sure::High);
        assert!(
            found[0].share.low > 0.4 && found[0].share.high < 0.85,
            "{found:?}"
        );
    }

    #[test]
    fn lock_finding_has_durations_if_recorded() {
        let mut art = Art::default();
        art.look("w-1", "POST /a", "monitor", "app.Ledger.book", 40, 20);
        art.detail("app.Ledger@7f00").owner("w-2", None);
        art.waited("w-1", "app.Ledger.book", "app.Ledger", "w-2", (4, 4));
        art.waited("w-1", "app.Ledger.book", "app.Ledger", "w-2", (1, 2));
        art.waited("w-1", "app.Ledger.book", "app.Other", "w-2", (900, 900));
        art.waited("w-1", "app.Ledger.read", "app.Ledger", "w-2", (900, 900));
        let found = art.found(check);
        let evidence = &found[0].evidence[1].text;
        for part in [
            "3 waits",
            "6.0 ms",
            "mean 2.0 ms",
            "max 4.0 ms",
            "100 %",
            "w-* held",
        ] {
            assert!(evidence.contains(part), "{part}: {evidence}");
        }
    }

    #[test]
    fn waiting_owner_is_advised_to_wait_outside_the_lock() {
        let mut art = Art::default();
        art.look("w-1", "GET /s", "lock", "app.Stock.take", 30, 20);
        art.owner("w-2", Some("java.lang.Thread.sleep;app.Stock.ask"));
        let found = art.found(check);
        assert!(
            found[0].what.contains("waits in app.Stock.ask"),
            "{found:?}"
        );
        assert!(
            found[0].remedy.starts_with("do not wait inside"),
            "{found:?}"
        );
    }

    #[test]
    fn owner_that_waits_for_work_is_no_contention_of_threads() {
        let found = |endpoint: &str| {
            let (poll, take) = ("app.Net.poll", "app.Selector.select;app.Net.poll");
            let mut art = Art::default();
            art.look("beat", endpoint, "lock", poll, 30, 20);
            art.owner("consumer", Some(take));
            art.look("consumer", "", "idle-pool", take, 30, 20);
            art.found(check)
        };
        assert_eq!(found(""), []);
        let what = found("GET /a").remove(0).what;
        assert!(
            what.contains("waits for work in app.Selector.select"),
            "{what}"
        );
    }

    /// The finding if w-1 waits for w-2, which has this stack and further samples: cause, monitor,
    /// stack, number.
    fn held(stack: &str, own: &[(&str, &str, &str, u64)]) -> Finding {
        let mut art = Art::default();
        art.look("w-1", "POST /a", "monitor", "app.Ledger.book", 400, 20);
        art.detail("app.Ledger@7f00").owner("w-2", Some(stack));
        for (cause, monitor, stack, count) in own {
            art.look("w-2", "POST /a", cause, stack, *count, 20);
            if !monitor.is_empty() {
                art.detail(monitor);
            }
        }
        let mut found = art.found(check);
        // The holder may wait for another lock itself.
        found.retain(|it| it.what.contains("of app.Ledger in app.Ledger.book"));
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    const SLEEPS: &str = "java.lang.Thread.sleep;app.Ledger.book";

    #[test]
    fn holder_sleeping_where_others_wait_is_said_to_sleep() {
        let waits = ("monitor", "app.Ledger@7f00", "app.Ledger.book", 200);
        for sleeps in [200, 4] {
            let found = held(SLEEPS, &[waits, ("sleep", "", SLEEPS, sleeps)]);
            let expected = "w-* holds it and waits (sleep) in app.Ledger.book, which calls \
                            Thread.sleep";
            assert!(found.what.contains(expected), "{found:?}");
            let remedy = "Thread.sleep waits while it is held";
            assert!(found.remedy.contains(remedy), "{found:?}");
        }
    }

    #[test]
    fn native_method_that_the_holder_calls_is_named() {
        let sleeps = "libc.so.6.__futex_wait[native];libjvm.so.JVM_Sleep[native];\
                      java.lang.Thread.sleep[native];app.Ledger.book";
        let found = held(sleeps, &[("sleep", "", sleeps, 200)]);
        let expected = "waits (sleep) in app.Ledger.book, which calls Thread.sleep";
        assert!(found.what.contains(expected), "{found:?}");
    }

    #[test]
    fn holder_without_samples_has_the_cause_of_its_stack() {
        let mut art = Art::default();
        art.look("w-1", "POST /a", "monitor", "app.Ledger.book", 40, 20);
        art.detail("app.Ledger@7f00").owner("w-2", Some(SLEEPS));
        art.look("w-3", "POST /a", "sleep", SLEEPS, 2, 20);
        let found = art.found(check);
        let expected = "holds it and waits (sleep) in app.Ledger.book";
        assert!(found[0].what.contains(expected), "{found:?}");
    }

    #[test]
    fn holder_of_a_lock_waiting_for_another_lock_is_named() {
        let nested = ("monitor", "app.Other@7f10", "app.Ledger.book", 200);
        let waits = ("monitor", "app.Ledger@7f00", "app.Ledger.book", 200);
        let found = held("app.Ledger.book", &[waits, nested]);
        let expected = "w-* holds it and waits (monitor) in app.Ledger.book";
        assert!(found.what.contains(expected), "{found:?}");
    }

    #[test]
    fn stack_of_a_thread_that_waits_for_the_lock_is_no_holders() {
        let waits = ("monitor", "app.Ledger@7f00", "app.Ledger.book", 400);
        let found = held("app.Ledger.book", &[waits]);
        assert!(!found.what.contains("holds it"), "{found:?}");
        assert_eq!(found.sure, Sure::Medium);
    }

    #[test]
    fn wait_of_the_holder_that_began_long_before_counts() {
        let mut art = Art::default();
        art.look("w-2", "POST /a", "socket", SLEEPS, 450, 20);
        for _ in 0..4 {
            art.look("w-3", "POST /a", "sleep", SLEEPS, 400, 20);
        }
        art.look("w-1", "POST /a", "monitor", "app.Ledger.book", 200, 20);
        art.detail("app.Ledger@7f00").owner("w-2", Some(SLEEPS));
        let found = art.found(check);
        assert!(found[0].what.contains("waits (socket) in"), "{found:?}");
    }

    #[test]
    fn callee_of_lock_holding_method_is_named() {
        let inside = "sun.nio.ch.FileChannelImpl.force;app.Log.append";
        let cases = [
            ("file", "waits (file) in", "FileChannelImpl.force waits"),
            ("runnable", "waiting for a CPU, in", "fewer threads run"),
        ];
        for (cause, state, remedy) in cases {
            let mut art = Art::default();
            art.look("w-1", "POST /a", "monitor", "app.Log.append", 400, 20);
            art.detail("java.lang.Object@7f00").owner("w-2", None);
            // Wall-clock samples of the owner during the wait: inside the lock, before it and
            // elsewhere.
            art.look("w-2", "POST /a", cause, inside, 10, 20);
            art.look("w-2", "POST /a", "monitor", "app.Log.append", 10, 20);
            art.look("w-2", "POST /a", "socket", "app.Log.send", 10, 20);
            let found = art.found(check);
            let what = &found[0].what;
            let expected = format!("{state} app.Log.append, which calls FileChannelImpl.force");
            assert!(what.ends_with(&expected), "{what}");
            assert!(found[0].remedy.contains(remedy), "{found:?}");
            assert!(!found[0].remedy.contains("move Log.append"), "{found:?}");
            assert_eq!(found[0].sure, Sure::High);
        }
    }

    #[test]
    fn owner_activity_outside_the_lock_is_not_blamed() {
        let mut art = Art::default();
        art.look("w-1", "POST /a", "monitor", "app.Ledger.book", 40, 20);
        art.detail("app.Ledger@7f00").owner("w-2", None);
        art.cpu("w-2", "POST /a", "app.Other.work", 40, 10);
        let found = art.found(check);
        assert_eq!(found[0].sure, Sure::Medium);
        assert!(!found[0].what.contains("app.Other.work"), "{found:?}");
    }

    #[test]
    fn other_work_inside_the_lock_gives_medium_confidence() {
        let mut art = Art::default();
        art.look("w-1", "POST /a", "monitor", "app.Ledger.book", 40, 20);
        art.cpu("w-3", "POST /a", "app.Audit.sum;app.Ledger.book", 40, 10);
        let found = art.found(check);
        assert!(
            found[0].remedy.contains("move Audit.sum out of it"),
            "{found:?}"
        );
        assert_eq!(found[0].sure, Sure::Medium);
    }

    #[test]
    fn unknown_owner_falls_back_to_callee_at_lock_site() {
        let mut art = Art::default();
        art.look("w-1", "POST /a", "monitor", "app.Log.append", 40, 20);
        let inside = "sun.nio.ch.FileChannelImpl.force;app.Log.append";
        art.look("w-3", "POST /a", "file", inside, 10, 20);
        art.look("w-3", "POST /a", "runnable", "app.Log.append", 2, 20);
        let found = art.found(check);
        let evidence = &found[0].evidence[1].text;
        assert!(
            evidence.contains("83 % is here (mostly file)"),
            "{evidence}"
        );
        assert!(
            found[0].remedy.contains("move FileChannelImpl.force out"),
            "{found:?}"
        );
        assert_eq!(found[0].sure, Sure::Medium);
    }

    #[test]
    fn a_lock_that_is_rarely_waited_for_is_none() {
        let mut art = Art::default();
        art.look("w-1", "POST /a", "monitor", "app.Ledger.book", 3, 20);
        art.cpu("w-2", "POST /a", "app.Ledger.audit", 200, 10);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn without_wall_time_nothing_is_said() {
        let mut art = Art::default();
        art.cpu("w-2", "", "app.Ledger.audit", 200, 10);
        assert!(art.lacks(check).contains("-e cpu,wall"));
    }
}

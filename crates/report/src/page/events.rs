//! Columns of what happened at a time: stretches such as pauses, safepoints, and late threads.

use std::collections::HashMap;

use dwell_profile::{Fact, Form, KINDS, Late, Profile, Safepoint, Stretch};
use serde_json::{Value, json};

use super::calls::Calls;
use super::columns::{Column, U8, U32, U48, U48_MAX, numbered};
use crate::remedies::Reason;

/// Maximum number of safepoints, and of stretches of each kind, listed on a page. The longest are
/// kept.
const EVENTS_MAX: usize = 50_000;

/// All columns of events.
pub(super) fn columns(profile: &Profile, calls: &Calls<'_>) -> Vec<Column> {
    let mut columns = stretches(profile);
    columns.extend(stops(profile, calls));
    columns.extend(runtime(profile));
    columns
}

/// Time since the recording began.
pub(super) fn since(profile: &Profile) -> impl Fn(u64) -> u64 + use<> {
    let start_ns = profile.info().start_ns;
    move |time_ns: u64| time_ns.saturating_sub(start_ns).min(U48_MAX)
}

/// The items with the greatest values, at most `most`, in their order.
fn greatest<T: Clone>(items: &[T], most: usize, value: impl Fn(&T) -> u64) -> Vec<T> {
    if items.len() <= most {
        return items.to_vec();
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(items.get(at).map_or(0, &value)));
    order.truncate(most);
    order.sort_unstable();
    order
        .iter()
        .filter_map(|&at| items.get(at).cloned())
        .collect()
}

/// Columns of the control group and the compilers.
fn runtime(profile: &Profile) -> Vec<Column> {
    let time = since(profile);
    let held = greatest(profile.throttled(), EVENTS_MAX, |t| t.throttled_ns);
    let compiled = greatest(profile.compilations(), EVENTS_MAX, |c| c.duration_ns);
    let counted = profile.compilers();
    let small = |number: u64| number.min(u64::from(u32::MAX));
    vec![
        Column::new("throttled.time", U48, &held, |t| time(t.time_ns)),
        Column::new("throttled.duration", U48, &held, |t| {
            t.duration_ns.min(U48_MAX)
        }),
        Column::new("throttled.periods", U32, &held, |t| small(t.periods)),
        Column::new("throttled.throttled", U32, &held, |t| small(t.throttled)),
        Column::new("throttled.held", U48, &held, |t| {
            t.throttled_ns.min(U48_MAX)
        }),
        Column::new("compiled.time", U48.differences(), &compiled, |c| {
            time(c.time_ns)
        }),
        Column::new("compiled.duration", U48, &compiled, |c| {
            c.duration_ns.min(U48_MAX)
        }),
        Column::new("compiled.method", U32, &compiled, |c| c.method.into()),
        Column::new("compilers.time", U48, counted, |c| time(c.time_ns)),
        Column::new("compilers.duration", U48, counted, |c| {
            c.duration_ns.min(U48_MAX)
        }),
        Column::new("compilers.count", U32, counted, |c| small(c.compilations)),
        Column::new("compilers.compiling", U48, counted, |c| {
            c.compiling_ns.min(U48_MAX)
        }),
        Column::new("compilers.wasted", U32, counted, |c| small(c.wasted)),
        Column::new("compiled.level", U8, &compiled, |c| c.level.min(255)),
    ]
}

/// Late threads, up to the limit of a page.
fn late_threads(profile: &Profile) -> Vec<Late> {
    greatest(profile.late(), EVENTS_MAX, |late| late.held_ns)
}

/// Why each of them was.
fn reasons(profile: &Profile, late: &[Late]) -> Vec<Reason> {
    late.iter().map(|late| Reason::of(profile, late)).collect()
}

/// Those that differ, in the order of their numbers in the column `late.reason`.
fn distinct(reasons: &[Reason]) -> Vec<Reason> {
    let mut distinct = reasons.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}

/// Reasons of late threads for the header: words, remedies, and flags for loops.
pub(super) fn late_reasons(profile: &Profile) -> Vec<Value> {
    distinct(&reasons(profile, &late_threads(profile)))
        .iter()
        .map(|reason| {
            json!({
                "why": reason.word(),
                "remedy": reason.remedy(),
                "flags": reason.flags(),
            })
        })
        .collect()
}

/// Stretches of all kinds, one kind after another, by its place in [`KINDS`]. All labels are in one
/// column, with as many numbers for each stretch as its kind has labels.
fn stretches(profile: &Profile) -> Vec<Column> {
    let time = since(profile);
    let mut all: Vec<(usize, Stretch)> = Vec::new();
    for (kind, stretches) in profile.stretches().kinds() {
        let place = KINDS.iter().position(|it| it.names == kind.names);
        let told = greatest(stretches, EVENTS_MAX, |it| it.duration_ns);
        all.extend(told.into_iter().map(|it| (place.unwrap_or(0), it)));
    }
    let labels = |place: usize| KINDS.get(place).map_or(0, |kind| kind.labels.len());
    let facts: Vec<u64> = (all.iter())
        .flat_map(|(place, it)| (0..labels(*place)).map(|at| number(it.facts.get(at))))
        .collect();
    vec![
        Column::new("stretch.kind", U8, &all, |(place, _)| *place as u64),
        Column::new("stretch.time", U48.differences(), &all, |(_, it)| {
            time(it.time_ns)
        }),
        Column::new("stretch.duration", U48, &all, |(_, it)| {
            it.duration_ns.min(U48_MAX)
        }),
        Column::new("stretch.fact", U48, &facts, |fact| *fact),
    ]
}

/// A fact as a number; for threads the number plus 1.
fn number(fact: Option<&Fact>) -> u64 {
    match fact {
        Some(Fact::Text(name)) => (*name).into(),
        Some(Fact::Number(number)) => (*number).min(U48_MAX),
        Some(Fact::Thread(Some(thread))) => u64::from(*thread) + 1,
        Some(Fact::Thread(None) | Fact::Nothing) | None => 0,
    }
}

/// Kinds of stretches for the header, with their words.
pub(super) fn kinds() -> Vec<Value> {
    let form = |form: &Form| match form {
        Form::Text => "text",
        Form::Number => "number",
        Form::Nanos => "ns",
        Form::Thread => "thread",
        Form::Other => "",
    };
    let kind = |kind: &dwell_profile::StretchKind| {
        let words = &kind.words;
        json!({
            "one": words.one,
            "lane": words.lane,
            "title": words.title,
            "what": words.what,
            "allStand": words.all_stand,
            "much": words.much,
            "cause": words.cause,
            "labels": kind.labels,
            "forms": kind.forms.iter().map(form).collect::<Vec<_>>(),
        })
    };
    KINDS.iter().map(kind).collect()
}

fn stops(profile: &Profile, calls: &Calls<'_>) -> Vec<Column> {
    let time = since(profile);
    let stops = greatest(profile.safepoints(), EVENTS_MAX, Safepoint::duration_ns);
    let late = late_threads(profile);
    let reasons = reasons(profile, &late);
    let known = distinct(&reasons);
    let small = |number: u64| number.min(u64::from(u32::MAX));
    let by_id: HashMap<u64, u64> = stops
        .iter()
        .enumerate()
        .map(|(place, stop)| (stop.id, place as u64 + 1))
        .collect();
    let stop_of = |late: &Late| by_id.get(&late.safepoint).copied().unwrap_or(0);
    vec![
        Column::new("stop.time", U48.differences(), &stops, |s| time(s.time_ns)),
        Column::new("stop.reaching", U48, &stops, |s| s.reaching_ns.min(U48_MAX)),
        Column::new("stop.operating", U48, &stops, |s| {
            s.operation_ns.min(U48_MAX)
        }),
        Column::new("stop.operation", U32, &stops, |s| s.operation.into()),
        Column::new("stop.threads", U32, &stops, |s| small(s.threads)),
        Column::new("stop.running", U32, &stops, |s| small(s.running)),
        Column::new("stop.count", U32, &stops, |s| small(s.count)),
        Column::new("stop.known", U8, &stops, |s| s.is_known.into()),
        Column::new("late.time", U48.differences(), &late, |l| time(l.time_ns)),
        Column::new("late.duration", U48, &late, |l| l.duration_ns.min(U48_MAX)),
        Column::new("late.held", U48, &late, |l| l.held_ns.min(U48_MAX)),
        Column::new("late.stop", U32, &late, stop_of),
        Column::new("late.operation", U32, &late, |l| l.operation.into()),
        Column::new("late.state", U32, &late, |l| l.state.into()),
        Column::new("late.thread", U32, &late, |l| l.thread.into()),
        Column::new("late.node", U32, &late, |l| {
            numbered(l.node.map(|node| calls.of_node(node)))
        }),
        Column::new("late.last", U8, &late, |l| l.is_last.into()),
        Column::new("late.reason", U32, &reasons, |reason| {
            known.binary_search(reason).unwrap_or(0) as u64
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::told::GcPause;
    use dwell_profile::{Builder, text_art};

    #[test]
    fn of_too_many_the_greatest_are_kept_in_their_order() {
        assert_eq!(greatest(&[5, 1, 9, 7], 2, |&n| n), [9, 7]);
        assert_eq!(greatest(&[5, 1], 2, |&n| n), [5, 1]);
    }

    #[test]
    fn late_threads_have_reason_and_remedy() {
        let mut builder: Builder = text_art::builder("a.A.x[C2]");
        let (operation, java) = (builder.name("op"), builder.name("java"));
        let page = builder.name("page-fault");
        let late = |state, node| Late {
            time_ns: 2,
            duration_ns: 5,
            safepoint: 1,
            operation,
            thread: 0,
            node,
            state,
            held_ns: 5,
            is_last: true,
        };
        builder.late = vec![
            late(page, None),
            late(java, Some(1)),
            late(java, None),
            late(java, Some(1)),
        ];
        let profile = builder.finish();
        let columns = columns(&profile, &Calls::of(&profile));
        let column = columns.iter().find(|column| column.name == "late.reason");
        let told = late_reasons(&profile);
        let words: Vec<&str> = (column.unwrap().numbers().into_iter())
            .map(|number| told[number as usize]["why"].as_str().unwrap())
            .collect();
        assert_eq!(words, ["page fault", "no poll", "unknown", "no poll"]);
        assert_eq!(told.len(), 3);
        let of = |why: &str| told.iter().find(|it| it["why"] == why).unwrap();
        let remedy = of("no poll")["remedy"].as_str().unwrap();
        assert!(remedy.contains("-XX:+UseCountedLoopSafepoints"), "{remedy}");
        let flags = of("no poll")["flags"].as_str().unwrap();
        assert!(flags.contains("CompileCommand=exclude,a.A::x"), "{flags}");
        assert!(of("page fault")["flags"].is_null());
    }

    #[test]
    fn late_threads_name_their_safepoint_by_its_place() {
        let mut builder: Builder = text_art::builder("a.A.x");
        let operation = builder.name("op");
        builder.stretches.add::<GcPause>(Stretch::new(4, 6));
        let stop = |id, time_ns| Safepoint {
            time_ns,
            id,
            operation,
            reaching_ns: 5,
            operation_ns: 6,
            threads: 2,
            running: 1,
            count: 1,
            is_known: true,
        };
        builder.safepoints = vec![stop(70, 1), stop(71, 2)];
        let late = |safepoint| Late {
            time_ns: 2,
            duration_ns: 5,
            safepoint,
            operation,
            thread: 0,
            node: Some(1),
            state: operation,
            held_ns: 5,
            is_last: true,
        };
        builder.late = vec![late(71), late(99)];
        let profile = builder.finish();
        let columns = columns(&profile, &Calls::of(&profile));
        let numbers = |name: &str| {
            let column = columns.iter().find(|column| column.name == name);
            column.unwrap().numbers()
        };
        assert_eq!(numbers("stretch.duration"), [6]);
        assert_eq!(numbers("stop.reaching"), [5, 5]);
        assert_eq!(numbers("late.stop"), [2, 0]);
        assert_eq!(numbers("late.node"), [2, 2]);
        assert_eq!(numbers("late.reason"), [0, 0]);
    }
}

//! GC pressure: pauses, back-to-back collections, and collectors that take much of the processors.

use crate::allocators::Allocators;
use crate::evidence::Facts;
use crate::finding::{Evidence, Finding, Focus, Measure, Sure, Verdict, View};
use crate::names::Set;
use crate::numbers::{count, duration, percent, plural, short};
use crate::share::Share;
use crate::stacks::Nodes;
use dwell_profile::told::GcPause;
use dwell_profile::{Asked, NodeId, Platform, Role, Stretch, StretchSum};
use std::collections::BTreeMap;

/// Pauses take this part of the time, or collectors this part of the CPU time.
const PAUSES: f64 = 0.05;
const CPU: f64 = 0.15;
const CPU_SURELY: f64 = 0.08;
const SAMPLES: u64 = 20;
/// Collections are back to back if this number of them follow one another, each before the program
/// had three times the pause to itself.
const IN_A_ROW: usize = 10;
const ROOM: u64 = 3;

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    let pauses = facts.profile.stretches().of::<GcPause>();
    if pauses.is_empty() && !facts.sees_the_jvm() {
        return Verdict::lacks("the recording has neither pauses nor the collector's CPU time");
    }
    let paused = StretchSum::of(pauses).map_or(0, |sum| sum.sum_ns);
    let span_ns = facts.profile.info().duration_ns;
    let time = Share::counted(paused, span_ns, "the time recorded");
    let gc = facts.role(Role::Gc);
    let cpu = Share::sampled(&gc, &facts.cpu_total, "the CPU time");
    let by_cpu = facts.endpoint.is_none()
        && facts.has_cpu_time()
        && cpu.is_at_least(CPU, CPU_SURELY, SAMPLES);
    if time.value < PAUSES && !by_cpu {
        return Verdict::Found(Vec::new());
    }
    Verdict::Found(vec![
        match facts.profile.asked_collections().filter(Asked::is_most) {
            Some(asked) => of_calls(facts, &asked, time, cpu),
            None => of_need(facts, longest_row(pauses), time, cpu),
        },
    ])
}

/// Seconds: all threads stand still in a pause, and collectors need processors.
fn lost(facts: &Facts<'_>, time: &Share, cpu: &Share) -> f64 {
    let stood = facts.lost_by_all(time.value);
    stood.max(facts.lost_on_processors(cpu))
}

/// The pauses, or the collector's threads.
fn view(time: &Share) -> View {
    match time.value >= PAUSES {
        true => View {
            measure: Measure::Safepoints,
            ..View::default()
        },
        false => View {
            focus: Some(Focus::Role(Role::Gc)),
            ..View::default()
        },
    }
}

/// Collections for want of memory, the most of which that followed each other are `row`.
fn of_need(facts: &Facts<'_>, row: usize, time: Share, cpu: Share) -> Finding {
    let pauses_text = format!(
        "pauses of {} in all take {} of the time",
        duration(time.ns as f64),
        percent(time.value)
    );
    let cpu_text = format!("collectors take {} of the CPU time", percent(cpu.value));
    // Nothing is known of that where the JVM's own threads may not be among the samples.
    let (told, because) = match facts.sees_the_jvm() {
        true => (
            format!("{pauses_text}; {cpu_text}"),
            "pauses and the collector's CPU time are measured",
        ),
        false => (pauses_text.clone(), "pauses are measured"),
    };
    let in_a_row = match row >= IN_A_ROW {
        true => format!(
            "; {} collections followed one another without a break",
            count(row as u64)
        ),
        false => String::new(),
    };
    let (share, what) = match time.value >= PAUSES {
        true => (
            time.clone(),
            format!("garbage collection: {pauses_text}{in_a_row}"),
        ),
        false => (
            cpu.clone(),
            format!("garbage collection: {cpu_text}{in_a_row}"),
        ),
    };
    let allocators = Allocators::of(facts);
    let what = what + &allocators.most();
    let mut evidence = vec![Evidence {
        text: told,
        view: view(&time),
        stack: Vec::new(),
    }];
    evidence.extend(allocators.evidence());
    Finding {
        rule: "",
        what,
        weight: lost(facts, &time, &cpu),
        share,
        evidence,
        remedy: format!(
            "{}; {}",
            heap_advice(facts, row >= IN_A_ROW),
            allocators.advice()
        ),
        sure: Sure::High,
        because: because.to_owned(),
    }
}

/// Methods with which a program asks for a collection.
const CALLS: &[&str] = &["java.lang.Runtime.gc", "java.lang.System.gc"];

/// Requested collections: a larger heap makes these longer, not fewer.
fn of_calls(facts: &Facts<'_>, asked: &Asked, time: Share, cpu: Share) -> Finding {
    let caller = caller(facts);
    let by = caller.map_or(String::new(), |node| {
        format!(", by {}", facts.stacks.place_name(node))
    });
    let collectors = match time.value >= PAUSES {
        true => String::new(),
        false => format!(", collectors {} of the CPU time", percent(cpu.value)),
    };
    let remove = match caller {
        Some(node) => format!("in {}", short(&facts.stacks.place_name(node))),
        None => "where the program or a library does".to_owned(),
    };
    Finding {
        rule: "",
        what: format!(
            "garbage collection: {} of {} were requested (System.gc() and the like){by}; pauses \
             take {} of the time{collectors}",
            count(asked.asked),
            plural(asked.all, "collection"),
            percent(time.value)
        ),
        weight: lost(facts, &time, &cpu),
        share: match time.value >= PAUSES {
            true => time.clone(),
            false => cpu,
        },
        evidence: vec![Evidence {
            text: format!(
                "all threads stopped {} for requested collections, of {} for all collections",
                duration(asked.asked_ns as f64),
                duration(asked.all_ns as f64)
            ),
            view: view(&time),
            stack: caller.map_or_else(Vec::new, |node| facts.stacks.shown(node)),
        }],
        remedy: format!(
            "do not call System.gc() {remove}, or start the JVM with -XX:+DisableExplicitGC \
             (-XX:+ExplicitGCInvokesConcurrent if direct buffers or RMI need the call); jcmd \
             GC.run, heap dumps and histograms of live objects also request collections"
        ),
        sure: Sure::High,
        because: "the JVM reports the cause of each collection".to_owned(),
    }
}

/// Where the program asks for collections, and waits until they are done.
pub(super) fn calls(facts: &Facts<'_>) -> Nodes {
    facts.stacks.nodes_with(&Set::new(facts.profile, CALLS))
}

/// Where most collections were asked for, if that was seen.
fn caller(facts: &Facts<'_>) -> Option<NodeId> {
    let calls = calls(facts);
    let mut places: BTreeMap<String, (u64, NodeId)> = BTreeMap::new();
    let told = facts.profile.collection_calls().iter();
    let told = told.map(|node| (*node, 1));
    let looks = facts.profile.looks().iter();
    let looks = looks.map(|look| (look.node, look.weight_ns));
    let looks = looks.filter(|(node, _)| calls.has(*node));
    let has_told = !facts.profile.collection_calls().is_empty();
    let mut add = |(node, sum): (NodeId, u64)| {
        let place = facts.stacks.place_name(node);
        let of_place = places.entry(place).or_insert((0, node));
        of_place.0 = of_place.0.saturating_add(sum);
    };
    match has_told {
        true => told.for_each(&mut add),
        false => looks.for_each(&mut add),
    }
    let most = places.into_values().max_by_key(|(sum, _)| *sum)?;
    Some(most.1)
}

/// The most pauses that followed each other with little room between them.
fn longest_row(pauses: &[Stretch]) -> usize {
    let mut sorted: Vec<&Stretch> = pauses.iter().collect();
    sorted.sort_by_key(|pause| pause.time_ns);
    let (mut longest, mut row) = (0usize, 0usize);
    for pair in sorted.windows(2) {
        let [before, after] = pair else { continue };
        let room = after.time_ns.saturating_sub(before.end_ns());
        let is_close = room < before.duration_ns.saturating_mul(ROOM);
        row = if is_close { row.max(1) + 1 } else { 0 };
        longest = longest.max(row);
    }
    longest
}

/// Advice on the heap, with its present size if the command line has it.
pub(super) fn heap_advice(facts: &Facts<'_>, is_too_small: bool) -> String {
    if facts.profile.info().platform() == Platform::Mono {
        // Most of its pauses collect the nursery, whose size is fixed (mono(1), MONO_GC_PARAMS).
        return "give new objects more room, so that collections are rarer and find more dead \
         objects: MONO_GC_PARAMS=nursery-size=64m (4m if it was not set; a power of two)"
            .to_owned();
    }
    let now = heap_flag(&facts.profile.info().jvm_arguments);
    match (now, is_too_small) {
        (Some(now), true) => {
            format!("the heap is too small for the live objects: double -Xmx (now {now})")
        }
        (Some(now), false) => format!("raise -Xmx (now {now}) if there is memory"),
        (None, true) => {
            "the heap is too small for the live objects: set -Xmx to twice its present size (jcmd \
             PID VM.flags shows MaxHeapSize)"
                .to_owned()
        }
        (None, false) => "set a larger heap (-Xmx) if there is memory".to_owned(),
    }
}

/// The heap's size on a command line; the last one counts.
fn heap_flag(arguments: &str) -> Option<String> {
    let flags = ["-Xmx", "-XX:MaxHeapSize=", "-XX:MaxRAMPercentage="];
    let words = arguments.split_whitespace().rev();
    let mut found = words.filter_map(|word| {
        let flag = flags.iter().find(|flag| word.starts_with(**flag))?;
        let value = word.strip_prefix(flag)?;
        let is_percent = flag.contains("Percentage");
        Some(format!(
            "{value}{}",
            if is_percent { " % of memory" } else { "" }
        ))
    });
    found.next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn pauses_back_to_back_ask_for_a_larger_heap() {
        let mut art = Art::default();
        art.builder.info.jvm_arguments = "java -Xmx64m -jar a.jar".to_owned();
        (0..20).for_each(|i| art.pause(i * 100, 60));
        art.cpu("main", "", "app.Work.run", 50, 10);
        let found = art.found(check);
        let what = &found[0].what;
        assert!(
            what.contains("12 % of the time") && what.contains("20 collections"),
            "{what}"
        );
        assert!(
            found[0].remedy.contains("double -Xmx (now 64m)"),
            "{found:?}"
        );
    }

    #[test]
    fn collections_that_a_call_asks_for_want_no_larger_heap() {
        let mut art = Art::default();
        (0..20).for_each(|i| art.pause(i * 100, 60));
        art.cpu("main", "", "app.Work.run", 50, 10);
        art.operations("G1CollectFull", 60, 19);
        art.operations("G1CollectForAllocation", 60, 1);
        let call = "java.lang.Runtime.gc;java.lang.System.gc;app.Cache.clean";
        art.look("main", "", "gc-stall", call, 10, 20);
        let found = &art.found(check)[0];
        let expected = "19 of 20 collections were requested (System.gc() and the like), by \
                        app.Cache.clean";
        assert!(found.what.contains(expected), "{found:?}");
        assert!(
            found.remedy.contains("System.gc() in Cache.clean"),
            "{found:?}"
        );
        assert!(!found.remedy.contains("-Xmx"), "{found:?}");
        // Where most are for want of memory, that is the finding.
        art.operations("G1CollectForAllocation", 60, 40);
        assert!(art.found(check)[0].remedy.contains("-Xmx"));
    }

    #[test]
    fn samples_that_only_count_say_nothing_of_collectors() {
        let mut art = Art::default();
        art.builder.unit = dwell_profile::Unit::Samples;
        art.native("GC Thread#0", 40, 10);
        art.cpu("main", "", "app.Work.run", 60, 10);
        art.pause(0, 1);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn unsampled_collectors_are_not_mentioned() {
        let mut art = Art::default();
        art.builder.info.profiler_version.clear();
        (0..20).for_each(|i| art.pause(i * 100, 60));
        art.cpu("main", "", "app.Work.run", 50, 10);
        let found = &art.found(check)[0];
        assert!(!found.evidence[0].text.contains("CPU time"), "{found:?}");
        assert_eq!(found.because, "pauses are measured");
    }

    #[test]
    fn mono_has_no_flag_of_the_jvms() {
        let mut art = Art::default();
        art.builder.info.jvm_name = "Mono 6.8.0.105".to_owned();
        (0..20).for_each(|i| art.pause(i * 100, 60));
        art.cpu("main", "", "app.Work.run", 50, 10);
        let remedy = &art.found(check)[0].remedy;
        assert!(
            remedy.contains("MONO_GC_PARAMS=nursery-size=64m"),
            "{remedy}"
        );
        assert!(!remedy.contains("-Xmx"), "{remedy}");
    }

    #[test]
    fn the_collectors_cpu_time_counts_too() {
        let mut art = Art::default();
        art.native("GC Thread#0", 40, 10);
        art.cpu("main", "", "app.Work.run", 60, 10);
        let found = art.found(check);
        assert!(found[0].what.contains("collectors take 40 %"), "{found:?}");
    }

    #[test]
    fn some_collections_are_fine() {
        let mut art = Art::default();
        (0..10).for_each(|i| art.pause(i * 1000, 5));
        art.native("GC Thread#0", 4, 10);
        art.cpu("main", "", "app.Work.run", 96, 10);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn flags_are_read() {
        assert_eq!(heap_flag("java -Xmx1g -Xmx2g x").as_deref(), Some("2g"));
        assert_eq!(heap_flag("java x"), None);
    }
}

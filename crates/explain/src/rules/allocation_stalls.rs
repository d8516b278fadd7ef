//! Allocation stalls: threads that want memory wait for a collection, because the collector does
//! not keep up.

use super::gc::{self, heap_advice};
use super::{no_such_waits, no_wall};
use crate::allocators::Allocators;
use crate::evidence::Facts;
use crate::finding::{Finding, Sure, Verdict};
use crate::waits::gather;

/// A share of the time of threads with work that is worth a change, and the least it must be.
const SHARE: f64 = 0.03;
const SURELY: f64 = 0.008;
const LOOKS: u64 = 5;

/// Threads that wait while all stand, for this part of their wait, wait for a pause.
const IN_PAUSES: f64 = 0.5;
/// Flags and thread names that show a concurrent collector.
const CONCURRENT: &[&str] = &["+UseZGC", "+UseShenandoahGC"];
const CONCURRENT_THREADS: &[&str] = &["ZDriver", "ZWorker", "XDriver", "XWorker", "Shenandoah"];

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if !facts.profile.has_wall() {
        return no_wall(facts);
    }
    if let Some(lacks) = no_such_waits(facts) {
        return lacks;
    }
    let calls = gc::calls(facts);
    let waits = gather(facts, |entry| {
        let is_stall = entry.cause == "gc-stall" && !calls.has(entry.node);
        is_stall.then_some(())
    });
    let Some((_, wait)) = waits.into_iter().next() else {
        return Verdict::Found(Vec::new());
    };
    let Some(whose) = wait.whose(facts) else {
        return Verdict::Found(Vec::new());
    };
    let share = wait.share(facts, &whose);
    if !share.is_at_least(SHARE, SURELY, LOOKS) || is_a_pause(facts) {
        return Verdict::Found(Vec::new());
    }
    let allocators = Allocators::of(facts);
    let mut evidence = vec![wait.evidence(facts, &whose, wait.seen())];
    evidence.extend(allocators.evidence());
    Verdict::Found(vec![Finding {
        rule: "",
        what: format!(
            "{} for memory: the collector does not keep up with allocation in {}",
            whose.spends("wait", share.value),
            allocators
                .first()
                .unwrap_or_else(|| facts.stacks.place_name(wait.node()))
        ),
        weight: wait.gravity(facts),
        share,
        evidence,
        remedy: format!(
            "{}; {}; run fewer such tasks at once{}",
            heap_advice(facts, true),
            allocators.advice(),
            match works_beside(facts) {
                true => "; give the collector more threads (-XX:ConcGCThreads), if CPUs are free",
                false => "",
            }
        ),
        sure: Sure::High,
        because: "threads were sampled while they waited in the JVM's allocation".to_owned(),
    }])
}

/// Whether these threads asked for a collection that stops all threads. Then the wait is its pause,
/// and the rule for pauses covers it. With a concurrent collector, only threads that need memory
/// wait.
fn is_a_pause(facts: &Facts<'_>) -> bool {
    if works_beside(facts) {
        return false;
    }
    let stops = facts.profile.standing();
    let (mut inside_ns, mut all_ns) = (0.0, 0.0);
    for look in facts.profile.looks() {
        if facts.profile.names().text(look.cause) == "gc-stall" {
            let end_ns = look.time_ns.saturating_add(look.duration_ns);
            inside_ns += overlap_ns(&stops, look.time_ns, end_ns) as f64;
            all_ns += look.duration_ns as f64;
        }
    }
    inside_ns >= IN_PAUSES * all_ns
}

/// Whether the collector works while the program does.
fn works_beside(facts: &Facts<'_>) -> bool {
    let arguments = &facts.profile.info().jvm_arguments;
    let threads = 0..facts.profile.threads().len() as u32;
    let mut names = threads.map(|thread| facts.profile.thread_name(thread));
    CONCURRENT.iter().any(|flag| arguments.contains(flag))
        || names.any(|name| {
            CONCURRENT_THREADS
                .iter()
                .any(|start| name.starts_with(start))
        })
}

fn overlap_ns(stops: &[(u64, u64)], from: u64, to: u64) -> u64 {
    let first = stops.partition_point(|(_, end)| *end <= from);
    let inside = stops
        .iter()
        .skip(first)
        .take_while(|(start, _)| *start < to);
    inside.fold(0, |sum, (start, end)| {
        sum + (*end).min(to).saturating_sub((*start).max(from))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn stalls_name_the_code_that_allocates() {
        let mut art = Art::default();
        art.builder.info.jvm_arguments = "java -Xmx1g -XX:+UseZGC".to_owned();
        art.look("task-1", "GET /n", "gc-stall", "app.Buffers.make", 30, 20);
        art.cpu("task-1", "GET /n", "app.Random.fill", 60, 10);
        let found = art.found(check);
        let what = &found[0].what;
        assert!(
            what.contains("for memory") && what.contains("app.Buffers.make"),
            "{what}"
        );
        assert!(found[0].remedy.contains("-Xmx (now 1g)"), "{found:?}");
        assert!(
            found[0]
                .remedy
                .contains("allocate less in app.Buffers.make")
        );
    }

    #[test]
    fn stall_names_lines_of_large_allocators_only() {
        let mut art = Art::default();
        art.look("task-1", "GET /n", "gc-stall", "app.Buffers.make:7", 30, 20);
        art.look("task-1", "GET /n", "gc-stall", "app.Other.small", 1, 20);
        let found = art.found(check);
        let finding = &found[0];
        assert!(
            finding.what.ends_with("app.Buffers.make (line 7)"),
            "{found:?}"
        );
        assert!(
            !format!("{finding:?}").contains("app.Other.small"),
            "{found:?}"
        );
        // The default collector is not concurrent while threads wait for it.
        assert!(!finding.remedy.contains("ConcGCThreads"), "{found:?}");
    }

    #[test]
    fn wait_for_stop_the_world_pause_is_no_stall() {
        for (is_inside, flag, expected) in [
            (true, "-XX:+UseG1GC", 0),
            (false, "-XX:+UseG1GC", 1),
            (true, "-XX:+UseZGC", 1),
        ] {
            let mut art = Art::default();
            art.builder.info.jvm_arguments = flag.to_owned();
            art.look("task-1", "GET /n", "gc-stall", "app.Buffers.make", 30, 20);
            let at_ms = art.last_look_ms();
            art.pause(if is_inside { at_ms } else { at_ms + 600 }, 550);
            assert_eq!(art.found(check).len(), expected, "{flag} {is_inside}");
        }
    }

    #[test]
    fn two_looks_are_chance() {
        let mut art = Art::default();
        art.look("task-1", "GET /n", "gc-stall", "app.Buffers.make", 2, 20);
        art.cpu("task-1", "GET /n", "app.Random.fill", 60, 10);
        assert_eq!(art.found(check), []);
    }
}

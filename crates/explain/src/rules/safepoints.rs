//! Long times to safepoints: all threads wait for a late thread, and its place.

use super::{no_safepoints, starvation, throttling};
use crate::evidence::Facts;
use crate::finding::{Evidence, Finding, Measure, Sure, Verdict, View};
use crate::numbers::{duration, percent, plural, short};
use crate::share::Share;
use dwell_profile::{Late, NodeId, ThreadId, group_of};
use std::collections::BTreeMap;

/// Least part of the time to reach safepoints, and the least duration of one.
const SHARE: f64 = 0.02;
const LONGEST_NS: u64 = 50_000_000;
/// Threads late for less than this are no culprits.
const LATE_NS: u64 = 1_000_000;
const MOST: usize = 2;
/// The state of a thread that had no processor.
const STARVED: &str = "runnable";
/// The state of a thread that waited for memory.
const FAULTS: &str = "page-fault";

/// Late threads in one place.
#[derive(Default)]
struct Culprit {
    held_ns: u64,
    longest_ns: u64,
    times: u64,
    node: Option<NodeId>,
    group: String,
}

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    let stops = facts.profile.safepoints();
    if stops.is_empty() {
        return no_safepoints(facts);
    }
    let reaching = stops
        .iter()
        .fold(0u64, |sum, stop| sum.saturating_add(stop.reaching_ns));
    let single = stops.iter().filter(|stop| stop.count <= 1);
    let longest = single.map(|stop| stop.reaching_ns).max().unwrap_or(0);
    let span_ns = facts.profile.info().duration_ns;
    let share = Share::counted(reaching, span_ns, "the time recorded");
    if share.value < SHARE && longest < LONGEST_NS {
        return Verdict::Found(Vec::new());
    }
    let is_starved = starvation::speaks(facts) || throttling::speaks(facts);
    // A page fault is long where the thread that holds the memory's lock has no processor.
    let by_chance = |state: &str| state == STARVED || (is_starved && state == FAULTS);
    let found = culprits(facts)
        .into_iter()
        .filter(|((_, state), _)| state != STARVED || !is_starved)
        .filter_map(|((place, state), culprit)| {
            let share = Share::counted(culprit.held_ns, span_ns, "the time recorded");
            // A thread without a processor is late by chance. The rule for starvation covers that
            // case.
            let is_long = culprit.longest_ns >= LONGEST_NS && !by_chance(&state);
            let is_large = share.value >= SHARE / 2.0 || is_long;
            is_large.then(|| named(facts, share, &place, &state, &culprit))
        });
    let found: Vec<Finding> = found.take(MOST).collect();
    let names = facts.profile.names();
    let mut late = facts.profile.late().iter();
    let is_chance = share.value < SHARE || is_starved;
    if is_chance && late.any(|late| by_chance(names.text(late.state))) {
        return Verdict::Found(found);
    }
    if found.is_empty() {
        return Verdict::Found(vec![unnamed(facts, share, longest)]);
    }
    Verdict::Found(found)
}

fn culprits(facts: &Facts<'_>) -> Vec<((String, String), Culprit)> {
    let mut sums: BTreeMap<(String, String), Culprit> = BTreeMap::new();
    let samples = Sampled::new(facts);
    let late = facts.profile.late().iter();
    for late in late.filter(|late| late.duration_ns >= LATE_NS) {
        let node = late.node.or_else(|| samples.at(late));
        let place = node.map_or_else(String::new, |node| facts.stacks.place_name(node));
        let state = facts.profile.names().text(late.state).to_owned();
        sums.entry((place, state))
            .or_default()
            .add(facts, late, node);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, culprit)| std::cmp::Reverse(culprit.held_ns));
    let worst = sums.first().map_or(0, |(_, culprit)| culprit.held_ns);
    // Places with less than a tenth of the worst one's delay are left out.
    sums.retain(|(_, culprit)| culprit.held_ns.saturating_mul(10) >= worst && worst > 0);
    sums
}

/// Samples of threads that could not be asked, by thread and time.
struct Sampled(BTreeMap<ThreadId, Vec<(u64, NodeId, u64)>>);

impl Sampled {
    fn new(facts: &Facts<'_>) -> Sampled {
        let unasked = (facts.profile.late().iter()).filter(|late| late.node.is_none());
        let mut threads: BTreeMap<ThreadId, Vec<(u64, NodeId, u64)>> =
            unasked.map(|late| (late.thread, Vec::new())).collect();
        for sample in facts.profile.samples() {
            if let Some(times) = threads.get_mut(&sample.thread) {
                times.push((sample.time_ns, sample.node, sample.weight));
            }
        }
        threads.values_mut().for_each(|times| times.sort_unstable());
        Sampled(threads)
    }

    /// Where a thread was sampled most while others waited for it.
    fn at(&self, late: &Late) -> Option<NodeId> {
        let end_ns = late.time_ns.saturating_add(late.duration_ns);
        let times = self.0.get(&late.thread)?;
        let first = times.partition_point(|(time_ns, ..)| *time_ns < late.time_ns);
        let meanwhile = times.iter().skip(first);
        let mut nodes: BTreeMap<NodeId, u64> = BTreeMap::new();
        for (_, node, weight) in meanwhile.take_while(|(time_ns, ..)| *time_ns <= end_ns) {
            *nodes.entry(*node).or_default() += weight;
        }
        let most = nodes.into_iter().max_by_key(|(_, ns)| *ns)?;
        Some(most.0)
    }
}

impl Culprit {
    fn add(&mut self, facts: &Facts<'_>, late: &Late, node: Option<NodeId>) {
        if late.duration_ns >= self.longest_ns {
            self.longest_ns = late.duration_ns;
            self.node = node.or(self.node);
            self.group = group_of(facts.profile.thread_name(late.thread));
        }
        self.held_ns = self.held_ns.saturating_add(late.held_ns);
        self.times += 1;
    }
}

fn named(facts: &Facts<'_>, share: Share, place: &str, state: &str, culprit: &Culprit) -> Finding {
    let at = match place.is_empty() {
        true => String::new(),
        false => format!(" in {place}"),
    };
    let longest = culprit.longest_ns as f64;
    Finding {
        rule: "",
        what: format!(
            "all threads wait for {}{at} to reach safepoints: {} of the time in all, longest {}",
            culprit.group,
            percent(share.value),
            duration(longest)
        ),
        weight: facts.lost_by_all(share.value),
        share,
        evidence: vec![Evidence {
            text: format!(
                "late {}, up to {}, state {state}",
                plural(culprit.times, "time"),
                duration(culprit.longest_ns as f64)
            ),
            view: View {
                measure: Measure::Safepoints,
                threads: Some(culprit.group.clone()),
                ..View::default()
            },
            stack: culprit
                .node
                .map_or_else(Vec::new, |node| facts.stacks.shown(node)),
        }],
        remedy: remedy(place, state),
        sure: match place.is_empty() {
            true => Sure::Medium,
            false => Sure::High,
        },
        because: match place.is_empty() {
            true => "the thread is certain; its place is unknown".to_owned(),
            false => "the thread was late, and was sampled in this method at that time".to_owned(),
        },
    }
}

fn remedy(place: &str, state: &str) -> String {
    let place = match place.is_empty() {
        true => "that thread",
        false => short(place),
    };
    match state {
        STARVED => format!(
            "{place} could not stop because it had no CPU: give the process more CPUs, or let \
             fewer threads run at once"
        ),
        FAULTS => format!(
            "{place} waited for memory: avoid swapping (mlock, a smaller heap), touch the heap at \
             the start (-XX:+AlwaysPreTouch), and do not map files that are not in memory"
        ),
        "vm" => format!(
            "{place} was inside the JVM or a native call and stopped late; see its stack, and \
             copy or clear large arrays in parts"
        ),
        _ => format!(
            "{place} runs a long time without a safepoint check (a counted loop, a large copy): \
             count with a long, split the loop, copy large arrays in parts, or try \
             -XX:+UseCountedLoopSafepoints -XX:LoopStripMiningIter=1000"
        ),
    }
}

fn unnamed(facts: &Facts<'_>, share: Share, longest: u64) -> Finding {
    Finding {
        rule: "",
        what: format!(
            "all threads wait {} of the time until safepoints are reached, longest {}",
            percent(share.value),
            duration(longest as f64)
        ),
        weight: facts.lost_by_all(share.value),
        share,
        evidence: vec![Evidence {
            text: "no late thread was sampled".to_owned(),
            view: View {
                measure: Measure::Safepoints,
                ..View::default()
            },
            stack: Vec::new(),
        }],
        remedy: match facts.is_ours() {
            true => {
                "record with a shorter --late (see docs/safepoints.md), or log the JVM's own view: \
                 -Xlog:safepoint*"
            }
            false => "record with dwell, which sees late threads: dwell record PID",
        }
        .to_owned(),
        sure: Sure::Medium,
        because: "the times are the JVM's own; the late thread is unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn the_culprit_is_named_with_its_remedy() {
        let mut art = Art::default();
        art.safepoint(80, 1)
            .late("cruncher", "app.Sum.loop", "java", 80);
        let found = art.found(check);
        assert!(
            found[0].what.contains("cruncher in app.Sum.loop"),
            "{found:?}"
        );
        assert!(found[0].remedy.contains("Sum.loop runs a long time"));
    }

    #[test]
    fn short_ones_are_fine_and_none_lack() {
        let mut art = Art::default();
        art.safepoint(2, 10)
            .late("cruncher", "app.Sum.loop", "java", 2);
        assert_eq!(art.found(check), []);
        assert!(Art::default().lacks(check).contains("no safepoints"));
    }

    #[test]
    fn where_all_lack_processors_that_is_the_finding() {
        let mut art = Art::default();
        art.safepoint(80, 10)
            .late("w-1", "app.Sum.loop", "runnable", 800);
        art.cpu("w-1", "", "app.Sum.loop", 60, 10);
        assert_eq!(art.found(check).len(), 1);
        art.look("w-1", "", "runnable", "app.Sum.loop", 60, 20);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn one_long_page_fault_where_all_lack_processors_is_chance() {
        let mut art = Art::default();
        art.safepoint(80, 1)
            .late("w-1", "app.Sum.loop", "page-fault", 80);
        art.cpu("w-1", "", "app.Sum.loop", 60, 10);
        assert_eq!(art.found(check).len(), 1);
        art.look("w-1", "", "runnable", "app.Sum.loop", 60, 20);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn many_page_faults_where_all_lack_processors_are_named() {
        let mut art = Art::default();
        art.safepoint(80, 10)
            .late("w-1", "app.Sum.loop", "page-fault", 800);
        art.cpu("w-1", "", "app.Sum.loop", 60, 10);
        art.look("w-1", "", "runnable", "app.Sum.loop", 60, 20);
        assert_eq!(art.found(check).len(), 1);
    }

    #[test]
    fn one_late_thread_that_had_no_processor_is_chance() {
        let mut art = Art::default();
        art.safepoint(60, 1)
            .late("worker", "app.Sum.loop", "runnable", 60);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn late_thread_without_stack_is_placed_by_its_samples() {
        let mut art = Art::default();
        art.safepoint(80, 1)
            .late("cruncher", "app.Sum.loop", "unknown", 8000);
        art.builder.late[0].node = None;
        art.cpu("cruncher", "", "app.Spin.loop", 100, 10);
        let found = art.found(check);
        assert!(
            found[0].what.contains("cruncher in app.Spin.loop"),
            "{found:?}"
        );
    }

    #[test]
    fn a_late_thread_that_was_not_seen_is_not_guessed() {
        let mut art = Art::default();
        art.safepoint(80, 1);
        assert_eq!(art.found(check)[0].sure, Sure::Medium);
    }
}

//! CPU starvation: runnable threads get no processor. The finding distinguishes too many threads of
//! the process from other load.

use super::ready::Ready;
use super::{no_wall, throttling};
use crate::evidence::{Facts, RUNNABLE, is_ready};
use crate::finding::{Evidence, Finding, Measure, Sure, Verdict, View};
use crate::machine::{self, Use};
use crate::numbers::{count, duration, percent, plural};
use crate::share::Share;
use dwell_profile::{RUNNING, ThreadId, WallFilter, Weight};
use std::collections::{BTreeMap, BTreeSet};

/// A share of the time with work that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.20;
const SURELY: f64 = 0.10;
const LOOKS: u64 = 20;
/// Least part of the recorded time that is noticeable.
const LEAST: f64 = 0.03;
/// Least part of all time that is not idle, unless this number of threads for each processor are
/// runnable.
const LEAST_OF_BUSY: f64 = 0.05;
const LEAST_OF_PROCESSORS: f64 = 0.5;
/// If this part of the processors is idle in the same seconds, only requests notice the wait.
const IDLE_MOST: f64 = 0.75;
/// A process that uses this part of its processors starves itself.
const ALL_OF_THEM: f64 = 0.8;
/// A process with this many runnable threads for each processor lacks processors even without other
/// load.
const TOO_MANY: f64 = 1.5;
/// If this part of the processors is idle in the seconds in which threads wait, other load did not
/// take them for long.
const IDLE_PART: f64 = 0.3;
/// Other load from this part on is named in the finding.
const TAKEN_PART: f64 = 0.2;

/// Remedy against a hypervisor.
const UNSHARED: &str = "run it where CPUs are not shared (steal time in top, vmstat)";
/// Remedy against other processes.
const OWN_CPUS: &str = "move other load off this machine (find it with top), or reserve CPUs for \
                        this process (cpu.weight, cpusets, a CPU request)";

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if !facts.profile.has_wall() {
        return no_wall(facts);
    }
    if !facts.is_ours() {
        return Verdict::lacks("the recorder does not report when threads were runnable");
    }
    let sums = Ready::of(facts);
    let (ready, ran) = (&sums.runnable, &sums.ran);
    // Threads that stand for a quota all come back at once, and wait for each other then.
    let follows = sums.throttled.sum >= ready.sum && throttling::speaks(facts);
    let share = Share::sampled(ready, &sums.busy, sums.of);
    let noticed = LEAST * facts.profile.info().duration_ns as f64;
    let is_much = share.is_at_least(SHARE, SURELY, LOOKS) && ready.sum as f64 >= noticed;
    if follows || !is_much || !is_noticed(facts, ready) {
        return Verdict::Found(Vec::new());
    }
    Verdict::Found(vec![finding(facts, share, ready, ran)])
}

/// Whether the wait is a large part of the busy time, and more than moments on an idle machine.
fn is_noticed(facts: &Facts<'_>, ready: &Weight) -> bool {
    let span_ns = facts.profile.info().duration_ns as f64;
    let of_processors = |processors| ready.sum as f64 / (processors * span_ns);
    let is_much = ready.share(&facts.all_busy()) >= LEAST_OF_BUSY
        || cores(facts).is_some_and(|cores| of_processors(cores) >= LEAST_OF_PROCESSORS);
    let is_idle = |machine: Use| machine.idle >= IDLE_MOST * machine.processors;
    is_much && (facts.has_endpoints() || !machine::while_ready(facts).is_some_and(is_idle))
}

/// Whether this rule has a finding. Other rules then leave out its consequences.
pub(super) fn speaks(facts: &Facts<'_>) -> bool {
    matches!(check(facts), Verdict::Found(found) if !found.is_empty())
}

fn finding(facts: &Facts<'_>, share: Share, ready: &Weight, ran: &Weight) -> Finding {
    let used = cores_used(facts);
    let limit = cores(facts);
    let wanted = wanted(facts);
    let machine = machine::while_ready(facts);
    let (why, remedy) = reason(facts, used, limit, wanted, machine.as_ref());
    let mut evidence = vec![Evidence {
        text: format!(
            "runnable, waiting for a CPU: {}; running: {}",
            duration(ready.sum as f64),
            duration(ran.sum as f64)
        ),
        view: View {
            measure: Measure::Wall,
            causes: vec![RUNNABLE.to_owned()],
            ..View::default()
        },
        stack: Vec::new(),
    }];
    evidence.extend(kernels_account(facts));
    evidence.extend(machine.as_ref().map(machines_account));
    Finding {
        rule: "",
        what: format!(
            "runnable threads wait for a CPU {} of {}{why}",
            percent(share.value),
            share.of
        ),
        weight: facts.lost_waiting(ready.sum),
        share,
        evidence,
        remedy,
        sure: Sure::High,
        because: "the kernel counts the time that threads are runnable and do not run".to_owned(),
    }
}

/// Processors that the process used, on average.
fn cores_used(facts: &Facts<'_>) -> Option<f64> {
    let used = facts.profile.cpu_use().filter(|used| used.since_ns == 0)?;
    let span_ns = facts.profile.info().duration_ns;
    (span_ns > 0).then(|| used.sum_ns() as f64 / span_ns as f64)
}

/// Processors that it may run on, without regard to a quota. A thread that the quota holds back
/// does not wait for a processor, and has its own cause.
fn cores(facts: &Facts<'_>) -> Option<f64> {
    let processors = facts.profile.cpu_limit()?.processors as f64;
    (processors > 0.0).then_some(processors)
}

/// How many threads ran or were ready to, on average.
fn wanted(facts: &Facts<'_>) -> f64 {
    let entries = facts.entries.iter();
    let want = entries.filter(|entry| is_ready(entry.cause) || entry.cause == RUNNING);
    let ns = want.fold(0u64, |sum, entry| sum.saturating_add(entry.weight.sum));
    ns as f64 / facts.profile.info().duration_ns.max(1) as f64
}

/// The group of threads that was ready most without running, and how many threads it has.
fn readiest(facts: &Facts<'_>) -> Option<(String, usize)> {
    let filter = WallFilter {
        endpoint: facts.endpoint.map(str::to_owned),
        ..WallFilter::default()
    };
    let mut groups: BTreeMap<&str, (u64, BTreeSet<ThreadId>)> = BTreeMap::new();
    for wall in facts.profile.wall(&filter) {
        if wall.cause == RUNNABLE {
            let group = facts.group(wall.thread);
            let (ns, threads) = groups.entry(group).or_default();
            *ns = ns.saturating_add(wall.weight.sum);
            threads.insert(wall.thread);
        }
    }
    let (group, (_, threads)) = groups.into_iter().max_by_key(|(_, (ns, _))| *ns)?;
    Some((group.to_owned(), threads.len()))
}

/// Fewer threads or more processors, with numbers.
fn own_remedy(facts: &Facts<'_>, limit: f64, wanted: f64) -> String {
    let enough = (limit.ceil() as u64).max(1);
    let whose = readiest(facts).map_or(String::new(), |(group, threads)| {
        let threads = plural(threads as u64, "thread");
        format!(" ({threads} of {group} waited for a CPU)")
    });
    let wanted = (wanted.ceil() as u64).max(enough + 1);
    format!(
        "give the process more CPUs (it would use up to {}), or make the hot path shorter; \
         running more than about {} at once makes nothing faster here{whose}",
        count(wanted),
        plural(enough, "thread")
    )
}

/// Reason, as the end of a sentence, and remedy.
fn reason(
    facts: &Facts<'_>,
    used: Option<f64>,
    limit: Option<f64>,
    wanted: f64,
    machine: Option<&Use>,
) -> (String, String) {
    let (Some(used), Some(limit)) = (used, limit) else {
        return (
            String::new(),
            "find out whether this process or others use the CPUs (top, cpu.stat of the control \
             group); then run fewer threads at once, or add CPUs"
                .to_owned(),
        );
    };
    if used >= ALL_OF_THEM * limit {
        return (
            format!(
                ": on average {wanted:.1} threads want to run at once, and the process uses \
                 {used:.1} of its {limit:.1} CPUs"
            ),
            own_remedy(facts, limit, wanted),
        );
    }
    match machine {
        Some(machine) => by_machine(facts, used, limit, wanted, machine),
        None => by_numbers(facts, used, limit, wanted),
    }
}

/// Reason and remedy, if the use of the processors during the waits is known.
fn by_machine(
    facts: &Facts<'_>,
    used: f64,
    limit: f64,
    wanted: f64,
    machine: &Use,
) -> (String, String) {
    let all = machine.processors;
    let average = format!("average use {used:.1} of {limit:.1} CPUs");
    if machine.own >= ALL_OF_THEM * all {
        return (
            format!(", in bursts ({average}, nearly all of them during the waits)"),
            own_remedy(facts, limit, wanted),
        );
    }
    if machine.idle >= IDLE_PART * all {
        return in_bursts(&average, machine);
    }
    let own = match wanted >= TOO_MANY * limit {
        true => format!("; or {}", own_remedy(facts, limit, wanted)),
        false => String::new(),
    };
    if machine.stolen > machine.others {
        return (
            format!(
                ": {average}, the hypervisor gives {:.1} of {all:.1} to others",
                machine.stolen
            ),
            format!("{UNSHARED}{own}"),
        );
    }
    (
        format!(
            ": {average}, other processes use {:.1} of {all:.1}",
            machine.others
        ),
        format!("{OWN_CPUS}{own}"),
    )
}

/// The same, where processors were idle in the same seconds.
fn in_bursts(average: &str, machine: &Use) -> (String, String) {
    let all = machine.processors;
    let part = TAKEN_PART * all;
    if machine.stolen > machine.others && machine.stolen >= part {
        return (
            format!(
                ": {average}, the hypervisor gives {:.1} of {all:.1} to others, and {:.1} are \
                 idle: a thread waits if the hypervisor takes its CPU",
                machine.stolen, machine.idle
            ),
            format!("{UNSHARED}, or let fewer threads run at once"),
        );
    }
    let (with, also) = match machine.others + machine.stolen >= part {
        true => (
            " together with other processes",
            "; also look for other load on this machine (top)",
        ),
        false => ("", ""),
    };
    (
        format!(
            ", in bursts{with} ({average}, {:.1} idle in the same seconds)",
            machine.idle
        ),
        format!(
            "let fewer threads run at once, or spread work that starts together (timers, batches, \
             whole pools that wake up){also}"
        ),
    )
}

/// Reason and remedy, if only averages are known.
fn by_numbers(facts: &Facts<'_>, used: f64, limit: f64, wanted: f64) -> (String, String) {
    if wanted >= TOO_MANY * limit {
        return (
            format!(
                ": on average {wanted:.1} threads want to run at once, and the process gets only \
                 {used:.1} of {limit:.1} CPUs; others use the remaining ones"
            ),
            format!(
                "{}; also look for other load on this machine (top)",
                own_remedy(facts, limit, wanted)
            ),
        );
    }
    (
        // The recording has no data to decide between the two.
        format!(
            ": average use {used:.1} of {limit:.1} CPUs; either others use the remaining ones, or \
             its threads want to run at the same moments"
        ),
        format!(
            "look for other load on this machine (top). If there is much, {OWN_CPUS}; if there is \
             little, let fewer threads run at once, or spread work that starts together"
        ),
    )
}

/// Use of the processors while threads were runnable.
fn machines_account(machine: &Use) -> Evidence {
    let stolen = match machine.stolen >= 0.05 {
        true => format!(", the hypervisor {:.1}", machine.stolen),
        false => String::new(),
    };
    Evidence {
        text: format!(
            "in the seconds in which threads were runnable, this process used {:.1} of {:.1} CPUs, \
             other processes {:.1}{stolen}; {:.1} were idle",
            machine.own, machine.processors, machine.others, machine.idle
        ),
        view: View::default(),
        stack: Vec::new(),
    }
}

/// The kernel's own sums over the threads that were sampled.
fn kernels_account(facts: &Facts<'_>) -> Option<Evidence> {
    let times = facts.profile.thread_times();
    let sum = |of: fn(&dwell_profile::ThreadTime) -> u64| {
        times
            .iter()
            .fold(0u64, |sum, time| sum.saturating_add(of(time)))
    };
    let (cpu, waited) = (sum(|time| time.cpu_ns), sum(|time| time.waited_ns));
    (!times.is_empty() && facts.endpoint.is_none()).then(|| Evidence {
        text: format!(
            "counted by the kernel: {} ran {} and waited {} for a CPU",
            plural(times.len() as u64, "thread"),
            duration(cpu as f64),
            duration(waited as f64)
        ),
        view: View::default(),
        stack: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    fn starved(cpu_used_s: u64) -> Art {
        let mut art = Art::default();
        art.look("w-1", "GET /h", "runnable", "app.Hot.loop", 60, 20);
        art.cpu("w-1", "GET /h", "app.Hot.loop", 60, 10);
        art.processors(2, 0, 0, 0).cpu_used(cpu_used_s);
        art
    }

    #[test]
    fn a_process_that_uses_all_its_processors_starves_itself() {
        let found = starved(19).found(check);
        assert!(
            found[0].what.contains("wait for a CPU 67 % of"),
            "{found:?}"
        );
        assert!(found[0].what.contains("1.9 of its 2.0 CPUs"), "{found:?}");
        let remedy = &found[0].remedy;
        for part in ["2 threads at once", "(1 thread of w-* waited"] {
            assert!(remedy.contains(part), "{remedy}");
        }
    }

    #[test]
    fn high_demand_with_other_load_names_both_remedies() {
        let mut art = starved(6);
        for thread in 2..8 {
            let name = format!("w-{thread}");
            art.look(&name, "GET /h", "runnable", "app.Hot.loop", 450, 20);
        }
        let found = art.found(check);
        assert!(found[0].what.contains("gets only 0.6 of 2.0"), "{found:?}");
        for part in ["it would use up to 6", "other load"] {
            assert!(found[0].remedy.contains(part), "{found:?}");
        }
    }

    #[test]
    fn one_that_does_not_is_starved_by_others() {
        let found = starved(6).found(check);
        assert!(found[0].what.contains("either others use"), "{found:?}");
        assert!(found[0].remedy.contains("other load"), "{found:?}");
    }

    /// CPU time of this process and of others, in each second with looks.
    fn with_machine(mut art: Art, own_ms: u64, others_ms: u64) -> Vec<Finding> {
        for second in 0..10 {
            art.machine(second, 2, own_ms, others_ms);
        }
        art.found(check)
    }

    #[test]
    fn other_processes_are_reported_with_their_use() {
        let found = with_machine(starved(6), 600, 1_300);
        let what = &found[0].what;
        assert!(what.contains("other processes use 1.3 of 2.0"), "{what}");
        assert!(found[0].remedy.starts_with("move other load"), "{found:?}");
        let shown: Vec<_> = found[0].evidence.iter().map(|e| e.text.clone()).collect();
        let told = "this process used 0.6 of 2.0 CPUs, other processes 1.3; 0.1 were idle";
        assert!(shown.iter().any(|text| text.contains(told)), "{shown:?}");
    }

    #[test]
    fn bursts_are_distinguished_from_other_load() {
        let found = with_machine(starved(6), 600, 100);
        let what = &found[0].what;
        let part = ", in bursts (average use 0.6 of 2.0 CPUs, 1.3 idle in the same seconds)";
        assert!(what.contains(part), "{what}");
        assert!(!found[0].remedy.contains("top"), "{found:?}");
        let found = with_machine(starved(6), 600, 500);
        assert!(
            found[0].what.contains("together with other processes"),
            "{found:?}"
        );
        assert!(found[0].remedy.contains("top"), "{found:?}");
    }

    #[test]
    fn one_that_uses_all_while_its_threads_wait_starves_itself() {
        let found = with_machine(starved(6), 1_900, 50);
        assert!(found[0].what.contains("in bursts"), "{found:?}");
        assert!(found[0].remedy.contains("2 threads at once"), "{found:?}");
    }

    #[test]
    fn stolen_processors_are_reported() {
        let mut art = starved(6);
        for second in 0..10 {
            art.machine(second, 2, 600, 0);
        }
        for second in &mut art.builder.machine {
            (second.idle_ns, second.stolen_ns) = (100_000_000, 1_300_000_000);
        }
        let found = art.found(check);
        assert!(
            found[0].what.contains("hypervisor gives 1.3 of 2.0"),
            "{found:?}"
        );
        for second in &mut art.builder.machine {
            (second.idle_ns, second.stolen_ns) = (800_000_000, 600_000_000);
        }
        let found = art.found(check);
        let part = "gives 0.6 of 2.0 to others, and 0.8 are idle";
        assert!(found[0].what.contains(part), "{found:?}");
        assert!(!found[0].what.contains("processes"), "{found:?}");
    }

    /// Looks at each cause, with a quota that was used up in `throttled` of 100 periods.
    fn held_back(runnable: u64, held: u64, throttled: u64) -> Vec<Finding> {
        let mut art = Art::default();
        art.look("w-1", "GET /h", "runnable", "app.Hot.loop", runnable, 20);
        art.look("w-1", "GET /h", "throttled", "app.Hot.loop", held, 20);
        art.cpu("w-1", "GET /h", "app.Hot.loop", 60, 10);
        art.processors(2, 600, 100, throttled).cpu_used(6);
        art.found(check)
    }

    #[test]
    fn waits_caused_by_a_quota_are_not_repeated() {
        assert_eq!(held_back(60, 90, 40), []);
        // More than can follow from it.
        let found = held_back(90, 60, 40);
        assert!(found[0].what.contains("either others use"), "{found:?}");
        // The other rule says nothing of so little.
        assert_eq!(held_back(60, 90, 2).len(), 1);
    }

    #[test]
    fn without_limits_it_does_not_guess() {
        let mut art = Art::default();
        art.look("w-1", "", "runnable", "app.Hot.loop", 60, 20);
        art.cpu("w-1", "", "app.Hot.loop", 60, 10);
        assert!(art.found(check)[0].remedy.starts_with("find out"));
    }

    #[test]
    fn a_program_that_does_next_to_nothing_is_fine() {
        let mut art = Art::default();
        art.look("w-1", "", "runnable", "app.Hot.loop", 20, 1);
        art.cpu("w-1", "", "app.Hot.loop", 5, 10);
        assert_eq!(art.found(check), []);
    }

    /// 20 threads wait for other things while one is ready most of the time that it wants to run.
    fn among_others(others: u64, processors: u64) -> Art {
        let mut art = Art::default();
        art.look("w-1", "", "runnable", "app.Hot.loop", 100, 20);
        art.cpu("w-1", "", "app.Hot.loop", 60, 10);
        for other in 0..others {
            let name = format!("other-{other}x");
            art.look(&name, "", "park", "app.Other.await", 490, 20);
        }
        art.processors(processors, 0, 0, 0).cpu_used(2);
        art
    }

    #[test]
    fn small_share_of_busy_time_is_no_starvation() {
        assert_eq!(among_others(2, 8).found(check).len(), 1);
        assert_eq!(among_others(20, 8).found(check), []);
        // Idle threads that look busy do not hide starvation on a small machine.
        let mut small = among_others(20, 1);
        small.look("w-2", "", "runnable", "app.Hot.loop", 300, 20);
        assert_eq!(small.found(check).len(), 1);
    }

    #[test]
    fn moments_on_an_idle_machine_are_no_starvation_of_threads() {
        for (own_ms, expected) in [(100, 0), (1_200, 1)] {
            let found = with_machine(among_others(2, 2), own_ms, 100);
            assert_eq!(found.len(), expected, "{own_ms}");
        }
    }

    #[test]
    fn a_processor_that_is_free_at_once_is_fine() {
        let mut art = Art::default();
        art.look("w-1", "", "runnable", "app.Hot.loop", 3, 20);
        art.cpu("w-1", "", "app.Hot.loop", 200, 10);
        art.look(
            "main",
            "",
            "object-wait",
            "java.lang.Object.wait;app.Main.main",
            300,
            20,
        );
        assert_eq!(art.found(check), []);
    }
}

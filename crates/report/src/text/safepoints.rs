//! Safepoints: number, operations, time to reach them, late threads and remedies.

use std::collections::BTreeMap;

use dwell_profile::{Lack, Profile, Recorder, Safepoint, WallFilter, Weight, group_of};

use super::{COLUMNS, Report};
use crate::event_lines::paragraph;
use crate::number::{a_second, count, duration, percent};
use crate::plain::{plain, shortened};
use crate::remedies::{Loop, Why, advice};

/// Rows of the table of operations, and of the one of late threads.
const OPERATION_ROWS: usize = 15;
const LATE_ROWS: usize = 15;
/// Endpoints, and groups of threads, that paid.
const PAYER_ROWS: usize = 10;
/// Maximum number of loops with flags.
const LOOPS: usize = 3;
/// An operation is worth advice if it takes such a part of the time.
const LONG_PART: f64 = 0.01;

/// A safepoint in one line: time, duration, time to reach it, operation and last thread.
#[must_use]
pub fn safepoint_line(profile: &Profile, stop: &Safepoint) -> String {
    let since_ns = stop.time_ns.saturating_sub(profile.info().start_ns);
    let operation = match profile.names().text(stop.operation) {
        "" if stop.count > 1 => "[several, counted only]",
        "" => "[counted only]",
        name => name,
    };
    let mut line = format!(
        "{:>8.3} s  {:>9}, {:>9} to reach  {operation}",
        since_ns as f64 / 1e9,
        duration(stop.duration_ns()),
        duration(stop.reaching_ns)
    );
    let late = profile.late().iter();
    let late = late.filter(|late| late.time_ns == stop.time_ns);
    // The last thread: all others have waited for it, whichever was late before.
    if let Some(late) = late.max_by_key(|late| (late.is_last, late.held_ns)) {
        let place = late.node.and_then(|node| profile.place(node));
        let place = place.unwrap_or_else(|| "[no Java frame]".to_owned());
        let why = Why::of(profile, late).word();
        line += &format!(": {} in {place} ({why})", profile.thread_name(late.thread));
    }
    plain(&line)
}

/// The least, in the middle, near the end, the greatest of some times.
fn quantiles(mut times: Vec<u64>) -> [u64; 3] {
    times.sort_unstable();
    let at = |share: f64| {
        // The smallest value with this share of values at or below it.
        let rank = (times.len() as f64 * share).ceil() as usize;
        times.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    };
    [at(0.5), at(0.99), at(1.0)]
}

/// A limit set by a user: `1 ms`.
fn milliseconds(ns: u64) -> String {
    match ns % 1_000_000 {
        0 => format!("{} ms", ns / 1_000_000),
        _ => duration(ns),
    }
}

impl Report<'_> {
    /// One line, if there were any.
    pub(super) fn safepoint_line(&mut self) {
        let stops = self.profile.safepoints();
        let number: u64 = stops.iter().map(|stop| stop.count).sum();
        if number == 0 {
            return;
        }
        let sum = |of: fn(&Safepoint) -> u64| stops.iter().map(of).fold(0, u64::saturating_add);
        let reaching = sum(|stop| stop.reaching_ns);
        let longest = stops.iter().filter(|stop| stop.count == 1);
        let longest = longest.map(|stop| stop.reaching_ns).max().unwrap_or(0);
        let elapsed_ns = self.profile.info().duration_ns;
        let all = sum(Safepoint::duration_ns);
        let share = match all <= elapsed_ns {
            true => {
                let share = percent(all as f64 / elapsed_ns.max(1) as f64);
                format!(" ({share} of the time)")
            }
            false => String::new(),
        };
        let text = format!(
            "{}, {} in all{share}; time to safepoint {}, max {}",
            count(number),
            duration(all),
            duration(reaching),
            duration(longest)
        );
        self.line("safepoints", &text);
    }

    /// The tables.
    pub(super) fn safepoints(&mut self) {
        let stops = self.profile.safepoints();
        if stops.is_empty() {
            self.raw("");
            self.no_safepoints();
            return;
        }
        self.operations(stops);
        self.late();
        self.payers();
        self.paying_threads();
        self.advice(stops);
    }

    /// Reason for missing safepoints, and the remedy.
    fn no_safepoints(&mut self) {
        let info = self.profile.info();
        if info.recorder() != Recorder::Jdk {
            self.raw("This recording has no safepoints: there were none, or the recorder does not");
            self.raw("  record any (dwell without an agent, other profilers).");
            return;
        }
        let remedy = info.remedy(Lack::Safepoints);
        self.paragraph(&format!("This recording has no safepoints: {remedy}."));
    }

    /// Requests that lost time to safepoints.
    fn payers(&mut self) {
        let paid = self.profile.paid_for_safepoints();
        let mut rows: Vec<_> = paid
            .into_iter()
            .filter(|(_, paid)| paid.stopped > 0)
            .collect();
        if rows.is_empty() {
            return;
        }
        rows.sort_by_key(|(_, paid)| std::cmp::Reverse(paid.stopped_ns));
        self.raw("");
        self.raw("Requests affected (upper bound)");
        self.raw("     stopped   of them  of their time       max  endpoint");
        for (endpoint, paid) in rows.iter().take(PAYER_ROWS) {
            let share = paid.stopped_ns as f64 / paid.duration_ns.max(1) as f64;
            let text = format!(
                "{:>12} {:>9} {:>14} {:>9}  {}",
                duration(paid.stopped_ns),
                percent(paid.stopped as f64 / paid.requests.max(1) as f64),
                percent(share),
                duration(paid.most_ns),
                shortened(endpoint.unwrap_or("[no endpoint]"), COLUMNS / 2)
            );
            self.raw(&text);
        }
    }

    /// Threads stopped at safepoints, or waiting for an operation there, by their looks.
    fn paying_threads(&mut self) {
        let mut groups: BTreeMap<String, (Weight, Weight)> = BTreeMap::new();
        for wall in self.profile.wall(&WallFilter::default()) {
            let group = group_of(self.profile.thread_name(wall.thread));
            let (stopped, all) = groups.entry(group).or_default();
            *all += &wall.weight;
            if wall.cause == "safepoint" {
                *stopped += &wall.weight;
            }
        }
        let mut rows: Vec<_> = groups
            .into_iter()
            .filter(|(_, (stopped, _))| stopped.sum > 0)
            .collect();
        if rows.is_empty() {
            return;
        }
        rows.sort_by_key(|(_, (stopped, _))| std::cmp::Reverse(stopped.sum));
        self.raw("");
        self.raw("Threads affected, sampled at safepoints (digits of names as *)");
        self.raw("     stopped        +-  of their time  threads");
        for (group, (stopped, all)) in rows.iter().take(PAYER_ROWS) {
            let text = format!(
                "{:>12} {:>9} {:>14}  {}",
                duration(stopped.sum),
                duration(stopped.standard_error() as u64),
                percent(stopped.share(all)),
                shortened(group, COLUMNS / 2)
            );
            self.raw(&text);
        }
    }

    fn operations(&mut self, stops: &[Safepoint]) {
        let mut kinds: BTreeMap<&str, Vec<&Safepoint>> = BTreeMap::new();
        for stop in stops {
            let name = match self.profile.names().text(stop.operation) {
                _ if !stop.is_known => "[counted only]",
                "" => "[unknown]",
                name => name,
            };
            kinds.entry(name).or_default().push(stop);
        }
        let mut rows: Vec<_> = kinds.into_iter().collect();
        let sum = |stops: &[&Safepoint]| -> u64 {
            let all = stops.iter().map(|stop| stop.duration_ns());
            all.fold(0, u64::saturating_add)
        };
        rows.sort_by_key(|(_, stops)| std::cmp::Reverse(sum(stops)));
        let duration_ns = self.profile.info().duration_ns;
        self.raw("");
        self.raw("Safepoints by operation (time to safepoint; time in safepoint)");
        self.raw(
            "    count  /s    reach p50      p99      max    in p50      p99      max  operation",
        );
        for (name, stops) in rows.iter().take(OPERATION_ROWS) {
            let number: u64 = stops.iter().map(|stop| stop.count).sum();
            // Where several are summed up, their mean stands for each.
            let each = |of: fn(&Safepoint) -> u64| {
                let times = stops.iter().map(|stop| of(stop) / stop.count.max(1));
                quantiles(times.collect()).map(duration)
            };
            let reach = each(|stop| stop.reaching_ns);
            let at = each(|stop| stop.operation_ns);
            let head = format!(
                "{:>9} {:>5} {:>11} {:>8} {:>8} {:>9} {:>8} {:>8}  ",
                count(number),
                a_second(number, duration_ns),
                reach[0],
                reach[1],
                reach[2],
                at[0],
                at[1],
                at[2]
            );
            let name = shortened(name, COLUMNS.saturating_sub(head.len()));
            self.raw(&format!("{head}{name}"));
        }
        self.more(rows.len(), OPERATION_ROWS);
        let sum = |is_known: bool| -> u64 {
            let of = stops.iter().filter(|stop| stop.is_known == is_known);
            of.map(|stop| stop.count).fold(0, u64::saturating_add)
        };
        self.raw("");
        self.raw(&format!(
            "Individually recorded: {}; only counted: {}.",
            count(sum(true)),
            count(sum(false))
        ));
    }

    fn late(&mut self) {
        let profile = self.profile;
        let slow = profile.safepoints().iter();
        let late_ns = profile.late_after_ns();
        let slow =
            slow.filter(|stop| stop.reaching_ns >= late_ns.saturating_mul(stop.count.max(1)));
        let all: u64 = slow.map(|stop| stop.reaching_ns).sum();
        let mut rows: BTreeMap<(String, String, Why), (u64, u64, u64)> = BTreeMap::new();
        for late in profile.late() {
            let group = group_of(profile.thread_name(late.thread));
            let place = late.node.and_then(|node| profile.place(node));
            let place = place.unwrap_or_else(|| "[no Java frame]".to_owned());
            let key = (group, place, Why::of(profile, late));
            let row = rows.entry(key).or_default();
            *row = (row.0 + late.held_ns, row.1 + 1, row.2.max(late.duration_ns));
        }
        if rows.is_empty() {
            return;
        }
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.sort_by_key(|(_, (held_ns, ..))| std::cmp::Reverse(*held_ns));
        let told: u64 = rows.iter().map(|(_, (held_ns, ..))| held_ns).sum();
        self.raw("");
        self.raw(&format!(
            "Late threads: {} of the {} that took {} or more to reach",
            percent(told as f64 / all.max(1) as f64),
            duration(all),
            milliseconds(late_ns)
        ));
        self.raw("      held     share   times  latest  why          threads in method");
        for ((group, place, why), (held_ns, times, latest_ns)) in rows.iter().take(LATE_ROWS) {
            let head = format!(
                "{:>10} {:>9} {:>7} {:>7}  {:<11}  ",
                duration(*held_ns),
                percent(*held_ns as f64 / told.max(1) as f64),
                count(*times),
                duration(*latest_ns),
                why.word()
            );
            let text = format!("{group} in {place}");
            let text = shortened(&text, COLUMNS.saturating_sub(head.len()));
            self.raw(&format!("{head}{text}"));
        }
        self.more(rows.len(), LATE_ROWS);
        let mut whys: Vec<Why> = rows.iter().map(|((.., why), _)| *why).collect();
        whys.sort_unstable();
        whys.dedup();
        self.raw("");
        self.crowd();
        for why in whys {
            self.paragraph(&format!("{}: {}", why.word(), why.remedy()));
            if why == Why::Loop {
                self.loops();
            }
        }
    }

    /// Whether more threads ran than could, when safepoints that took long to reach were asked for.
    fn crowd(&mut self) {
        let slow = self.profile.safepoints().iter();
        let late_ns = self.profile.late_after_ns();
        let slow = slow.filter(|stop| stop.count == 1 && stop.reaching_ns >= late_ns);
        let running = slow.map(|stop| stop.running).max().unwrap_or(0);
        let processors = self.profile.cpu_limit().map_or(0, |limit| limit.processors);
        if processors > 0 && running > processors {
            self.paragraph(&format!(
                "Up to {} threads ran when a safepoint was requested, on {processors} CPUs. The \
                 others had to wait for a CPU before they could reach a poll.",
                count(running)
            ));
        }
    }

    /// The loops that held the others up longest, with flags for each.
    fn loops(&mut self) {
        let profile = self.profile;
        let mut held: BTreeMap<Loop, u64> = BTreeMap::new();
        for late in profile.late() {
            if let Some(found) = Loop::of(profile, late) {
                *held.entry(found).or_default() += late.held_ns;
            }
        }
        let mut loops: Vec<_> = held.into_iter().collect();
        loops.sort_by_key(|(_, held_ns)| std::cmp::Reverse(*held_ns));
        for (found, _) in loops.iter().take(LOOPS) {
            self.paragraph(&format!("  {}", found.flags()));
        }
    }

    /// Long operations at safepoints, if they take much of the time.
    fn advice(&mut self, stops: &[Safepoint]) {
        let mut kinds: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for stop in stops {
            let name = self.profile.names().text(stop.operation);
            let (sum_ns, threads) = kinds.entry(name).or_default();
            *sum_ns = sum_ns.saturating_add(stop.operation_ns);
            *threads = stop.threads.max(*threads);
        }
        let least_ns = self.profile.info().duration_ns as f64 * LONG_PART;
        let mut is_first = true;
        for (name, (sum_ns, threads)) in kinds {
            let Some(text) = advice(name).filter(|_| sum_ns as f64 >= least_ns) else {
                continue;
            };
            if std::mem::take(&mut is_first) {
                self.raw("");
                self.raw("Long operations at safepoints");
            }
            let threads = count(threads);
            self.paragraph(&format!("{name}, with up to {threads} threads: {text}"));
        }
    }

    /// A text of ours on as many lines as it takes.
    pub(super) fn paragraph(&mut self, text: &str) {
        for line in paragraph(text) {
            self.raw(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{safepoints_text, tests::full, text};
    use super::{quantiles, safepoint_line};
    use dwell_profile::{Late, Look, Safepoint};

    const MS: u64 = 1_000_000;

    #[test]
    fn safepoints_are_listed_by_operation_with_late_threads() {
        let mut builder = full();
        let (gc, java) = (builder.name("G1CollectFull"), builder.name("java"));
        let node = builder.finish().samples()[1].node;
        let mut builder = full();
        assert_eq!(
            (builder.name("G1CollectFull"), builder.name("java")),
            (gc, java)
        );
        let stop = |id: u64, reaching_ns, count| Safepoint {
            time_ns: id * 100 * MS,
            id,
            operation: gc,
            reaching_ns,
            operation_ns: 2 * MS * count,
            threads: 10,
            running: 2,
            count,
            is_known: true,
        };
        builder.safepoints = vec![stop(1, 40 * MS, 1), stop(2, MS / 10, 1), stop(12, MS, 10)];
        builder.late = vec![Late {
            time_ns: 100 * MS,
            duration_ns: 40 * MS,
            safepoint: 1,
            operation: gc,
            thread: 0,
            node: Some(node),
            state: java,
            held_ns: 39 * MS,
            is_last: true,
        }];
        let profile = builder.finish();
        let head = text(&profile);
        let line = "safepoints 12, 65.1 ms in all (0.2 % of the time); time to safepoint \
                    41.1 ms, max 40.0 ms";
        assert!(head.lines().any(|it| it == line), "{head}");
        let line = safepoint_line(&profile, &profile.safepoints()[0]);
        let expected = "42.0 ms,   40.0 ms to reach  G1CollectFull: main in a.A.x (no poll)";
        assert!(line.ends_with(expected), "{line}");
        let text = safepoints_text(&profile);
        assert!(text.contains("G1CollectFull"), "{text}");
        assert!(text.contains("97.5 % of the 40.0 ms"), "{text}");
        assert!(text.contains("no poll"), "{text}");
        assert!(text.contains("main in a.A.x"), "{text}");
        assert!(text.contains("-XX:+UseCountedLoopSafepoints"), "{text}");
        assert!(text.contains("CompileCommand=exclude,a.A::"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }

    #[test]
    fn safepoint_line_names_the_last_thread() {
        let mut builder = full();
        let operation = builder.name("G1CollectFull");
        let state = builder.name("java");
        builder.safepoints = vec![Safepoint {
            time_ns: 100 * MS,
            id: 1,
            operation,
            reaching_ns: 9 * MS,
            operation_ns: MS,
            threads: 3,
            running: 2,
            count: 1,
            is_known: true,
        }];
        let late = |thread, held_ns, is_last| Late {
            time_ns: 100 * MS,
            duration_ns: held_ns,
            safepoint: 1,
            operation,
            thread,
            node: None,
            state,
            held_ns,
            is_last,
        };
        builder.late = vec![late(0, 6 * MS, false), late(1, 3 * MS, true)];
        let profile = builder.finish();
        let names = [profile.thread_name(0), profile.thread_name(1)].map(str::to_owned);
        let line = safepoint_line(&profile, &profile.safepoints()[0]);
        assert_ne!(names[0], names[1]);
        assert!(line.contains(&format!(": {} in", names[1])), "{line}");
    }

    #[test]
    fn quantiles_are_those_of_the_times() {
        assert_eq!(quantiles((1..=100).rev().collect()), [50, 99, 100]);
        assert_eq!(quantiles(vec![7]), [7; 3]);
    }

    #[test]
    fn crowds_and_long_operations_are_reported() {
        let mut builder = full();
        let (dump, cleanup) = (builder.name("ThreadDump"), builder.name("Cleanup"));
        let stop = |operation, running, threads| Safepoint {
            time_ns: MS,
            id: 1,
            operation,
            reaching_ns: 2 * MS,
            operation_ns: 400 * MS,
            threads,
            running,
            count: 1,
            is_known: true,
        };
        builder.safepoints = vec![stop(dump, 4, 7), stop(cleanup, 4, 7)];
        builder.late = vec![Late {
            time_ns: MS,
            duration_ns: MS,
            safepoint: 1,
            operation: dump,
            thread: 0,
            node: None,
            state: cleanup,
            held_ns: MS,
            is_last: true,
        }];
        let text = safepoints_text(&builder.clone().finish());
        let long = "ThreadDump, with up to 7 threads: their stacks are walked";
        assert!(text.contains(long), "{text}");
        assert!(!text.contains("Cleanup, with"), "{text}");
        assert!(!text.contains("threads ran when"), "{text}");
        builder.safepoints[0].running = 9;
        builder.safepoints[0].operation_ns = MS;
        let text = safepoints_text(&builder.finish());
        assert!(text.contains("Up to 9 threads ran"), "{text}");
        assert!(text.contains("on 4 CPUs"), "{text}");
        assert!(!text.contains("ThreadDump, with"), "{text}");
    }

    #[test]
    fn stopped_threads_are_listed_by_group() {
        let mut builder = full();
        let operation = builder.name("ThreadDump");
        builder.safepoints = vec![Safepoint {
            time_ns: MS,
            id: 1,
            operation,
            reaching_ns: MS,
            operation_ns: 40 * MS,
            threads: 3,
            running: 2,
            count: 1,
            is_known: true,
        }];
        let told = safepoints_text(&builder.clone().finish());
        assert!(!told.contains("Threads affected"), "{told}");
        let node = builder.clone().finish().samples()[1].node;
        let (stood, other) = (
            builder.thread("w-1", 91, 91, false),
            builder.thread("x-1", 92, 92, false),
        );
        let mut look = |thread, cause: &str, ms: u64| {
            let cause = builder.cause(cause);
            builder.look(Look {
                time_ns: 0,
                duration_ns: ms * MS,
                thread,
                node,
                cause,
                weight_ns: ms * MS,
                count: 4,
                choices: 0,
                context: None,
                detail: None,
                owner: None,
                owner_node: None,
            });
        };
        look(stood, "safepoint", 40);
        look(stood, "park", 120);
        look(other, "park", 500);
        let told = safepoints_text(&builder.finish());
        let line = told.lines().find(|line| line.ends_with("  w-*"));
        let line = line.unwrap_or_else(|| panic!("{told}"));
        assert!(line.trim_start().starts_with("40.0 ms"), "{told}");
        assert!(line.contains(" 25.0 % "), "{told}");
        let rows = told
            .lines()
            .skip_while(|line| !line.starts_with("Threads affected"));
        assert_eq!(rows.skip(2).count(), 1, "{told}");
    }

    #[test]
    fn a_recording_without_safepoints_says_so() {
        let text = safepoints_text(&full().finish());
        assert!(text.contains("This recording has no safepoints"), "{text}");
        let mut jdk = full();
        jdk.info.profiler_version.clear();
        jdk.info.engine.clear();
        jdk.info.sample_event = "jdk.ExecutionSample".to_owned();
        let text = safepoints_text(&jdk.finish());
        assert!(text.contains("jdk.SafepointBegin"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }
}

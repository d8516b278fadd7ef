//! Safepoints: how often, for what, how long it took to reach them, who was late, and what to do
//! about that.

use std::collections::BTreeMap;

use dwell_profile::{FrameKind, Late, Profile, Safepoint, group_of};

use super::{COLUMNS, Report};
use crate::number::{count, duration, percent};
use crate::plain::{plain, shortened};

/// Rows of the table of operations, and of the one of late threads.
const OPERATION_ROWS: usize = 15;
const LATE_ROWS: usize = 15;
/// Below this nobody was looked for.
const LATE_NS: u64 = 1_000_000;

/// Why a thread came late, as far as can be told, and what helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    Loop,
    Copy,
    Interpreter,
    Vm,
    NoProcessor,
    Page,
    Unknown,
}

impl Why {
    fn of(profile: &Profile, late: &Late) -> Why {
        match profile.names().text(late.state) {
            "runnable" => return Why::NoProcessor,
            "page-fault" => return Why::Page,
            "vm" => return Why::Vm,
            _ => {}
        }
        let leaf = late.node.and_then(|node| profile.tree().stack(node).next());
        let kind = leaf.and_then(|frame| profile.frames().get(frame as usize));
        match kind.map(|frame| frame.kind) {
            Some(FrameKind::C1 | FrameKind::C2 | FrameKind::Inlined) => Why::Loop,
            Some(FrameKind::Stub) => Why::Copy,
            Some(FrameKind::Interpreted) => Why::Interpreter,
            Some(FrameKind::Vm | FrameKind::Native) => Why::Vm,
            _ => Why::Unknown,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Why::Loop => "no poll",
            Why::Copy => "copying",
            Why::Interpreter => "interpreted",
            Why::Vm => "in the VM",
            Why::NoProcessor => "no CPU",
            Why::Page => "page fault",
            Why::Unknown => "unknown",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Why::Loop => {
                "a compiled loop that never asks whether to stop: counted loops over an int have \
                 no safepoint poll. Use a long index, call the body from an outer loop over \
                 parts, or run with -XX:+UseCountedLoopSafepoints \
                 (-XX:LoopStripMiningIter=1000 keeps it cheap); G1, ZGC and Shenandoah have both \
                 by default, Serial and Parallel do not."
            }
            Why::Copy => {
                "a copy or a fill of a large array, which cannot be interrupted. Copy in parts of \
                 some megabytes."
            }
            Why::Interpreter => {
                "interpreted code, which polls at every branch and return: short delays are its \
                 own, longer ones are those of what it called."
            }
            Why::Vm => {
                "the JVM itself, for this thread: allocation of large arrays (which are cleared), \
                 linking and initialising classes, exceptions with deep stacks, JNI."
            }
            Why::NoProcessor => {
                "the thread ran when the safepoint was asked for, and had no processor: more \
                 threads are ready than there are processors, or the control group's limit is \
                 used up. Use smaller pools or more processors."
            }
            Why::Page => {
                "the thread waited for a page of memory: swapping, files mapped into memory, huge \
                 pages being made. Avoid swap; -XX:+AlwaysPreTouch touches the heap at the start."
            }
            Why::Unknown => "where the thread was is not known.",
        }
    }
}

/// A safepoint in one line: when, how long, how long until it was reached, for what, and for whom
/// others waited.
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
    if let Some(late) = late.max_by_key(|late| late.held_ns) {
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
        let place = (times.len() as f64 * share) as usize;
        let place = place.min(times.len().saturating_sub(1));
        times.get(place).copied().unwrap_or(0)
    };
    [at(0.5), at(0.99), at(1.0)]
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
        let elapsed = self.profile.info().duration_ns.max(1) as f64;
        let all = sum(Safepoint::duration_ns);
        let text = format!(
            "{}, {} ({} of the time), of it {} to reach them, {} at most",
            count(number),
            duration(all),
            percent(all as f64 / elapsed),
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
            self.raw("No safepoints were recorded.");
            return;
        }
        self.operations(stops);
        self.late();
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
        let seconds = (self.profile.info().duration_ns as f64 / 1e9).max(1e-9);
        self.raw("");
        self.raw("Safepoints by operation (time to reach them; time at them)");
        self.raw(
            "    count  /s    reach p50      p99      max    at p50      p99      max  operation",
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
                "{:>9} {:>5.1} {:>11} {:>8} {:>8} {:>9} {:>8} {:>8}  ",
                count(number),
                number as f64 / seconds,
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
    }

    fn late(&mut self) {
        let profile = self.profile;
        let slow = profile.safepoints().iter();
        let slow = slow.filter(|stop| stop.reaching_ns >= LATE_NS * stop.count);
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
            "Who was late: {} of the {} that took 1 ms or more to reach",
            percent(told as f64 / all.max(1) as f64),
            duration(all)
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
        for why in whys {
            self.paragraph(&format!("{}: {}", why.word(), why.remedy()));
        }
    }

    /// A text of ours on as many lines as it takes.
    fn paragraph(&mut self, text: &str) {
        let mut line = String::new();
        for word in text.split(' ') {
            if line.len() + 1 + word.len() > COLUMNS {
                self.raw(&line);
                line = " ".to_owned();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.raw(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{safepoints_text, tests::full, text};
    use super::safepoint_line;
    use dwell_profile::{Late, Safepoint};

    const MS: u64 = 1_000_000;

    #[test]
    fn safepoints_are_told_by_operation_with_who_was_late() {
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
        let line = "safepoints 12, 65.1 ms (0.2 % of the time), of it 41.1 ms to reach them, \
                    40.0 ms at most";
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
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }

    #[test]
    fn a_recording_without_safepoints_says_so() {
        let text = safepoints_text(&full().finish());
        assert!(text.contains("No safepoints were recorded"), "{text}");
    }
}

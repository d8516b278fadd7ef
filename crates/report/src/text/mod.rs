//! The profile as text for a terminal, at most 100 columns wide.

mod alive;
mod allocations;
mod event_tables;
mod locks;
mod requests;
mod safepoints;
mod self_check;
mod stops;
mod waits;

pub use safepoints::safepoint_line;

use std::fmt::Write as _;

use dwell_profile::{GroupBy, Platform, Profile, Row, Unit, Weight, sort_by_total};

use unicode_width::UnicodeWidthStr;

use crate::event_lines::more;
use crate::number::{bytes, count, date, duration, percent, plural, weight};
use crate::plain::{padded, shortened};

/// The widest line.
const COLUMNS: usize = 100;
/// Maximum number of options.
const OPTIONS_MAX: usize = 40;
/// Width of the labels of the head.
const LABEL: usize = 11;
/// Rows of a table.
const ROWS: usize = 20;
/// Rows of the table of threads.
const THREAD_ROWS: usize = 10;
/// Causes named in one line.
const CAUSES: usize = 4;

/// Optional parts of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Idle time is in the tables, too, and not in a line of its own alone.
    pub idle: bool,
}

/// Content and quality of the recording, and where the time went.
pub fn text(profile: &Profile) -> String {
    text_with(profile, TextOptions::default())
}

/// The same, with more or less in it.
pub fn text_with(profile: &Profile, options: TextOptions) -> String {
    let mut report = Report::new(profile);
    report.options = options;
    report.origin();
    report.sampling();
    report.held();
    report.quality();
    report.cost();
    report.stops();
    report.reasons();
    report.waits();
    report.requests();
    report.alive();
    report.allocations();
    report.locks();
    report.event_tables();
    if report.total.samples > 0 {
        report.shares();
        report.methods();
        report.threads();
        let note =
            "+-: one standard error of the share, from the number and weights of samples alone.";
        report.raw("");
        report.raw(note);
    }
    report.text
}

/// The requests by endpoint, with their time by cause; empty without requests.
pub fn requests_text(profile: &Profile) -> String {
    let mut report = Report::new(profile);
    report.requests();
    report.text
}

/// Safepoints by operation, and late threads.
pub fn safepoints_text(profile: &Profile) -> String {
    let mut report = Report::new(profile);
    report.origin();
    report.safepoint_line();
    report.safepoints();
    report.text
}

struct Report<'p> {
    text: String,
    profile: &'p Profile,
    total: Weight,
    options: TextOptions,
}

impl<'p> Report<'p> {
    fn new(profile: &'p Profile) -> Report<'p> {
        Report {
            text: String::new(),
            profile,
            total: profile.total(),
            options: TextOptions::default(),
        }
    }

    /// Adds a line, which must hold no name that was not made plain.
    fn raw(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Adds a labelled line, shortened to fit.
    fn line(&mut self, label: &str, value: &str) {
        if !value.is_empty() {
            let value = shortened(value, COLUMNS - LABEL);
            self.raw(&format!("{label:LABEL$}{value}"));
        }
    }

    /// Adds a labelled list, on as many lines as it takes.
    fn list(&mut self, label: &str, items: &[String]) {
        let mut rest = items;
        let mut label = label;
        while !rest.is_empty() {
            let mut taken = 1;
            // An item too long for a line has one to itself, shortened.
            while taken < rest.len() && rest[..=taken].join(", ").width() < COLUMNS - LABEL {
                taken += 1;
            }
            let (now, later) = rest.split_at(taken);
            let comma = if later.is_empty() { "" } else { "," };
            self.line(label, &format!("{}{comma}", now.join(", ")));
            (rest, label) = (later, "");
        }
    }

    fn origin(&mut self) {
        let info = self.profile.info();
        let mut what = info.java_arguments.clone();
        if info.pid != 0 {
            what = format!("pid {}  {what}", info.pid);
        }
        self.line("process", &what);
        let label = match info.platform() {
            Platform::Jvm => "JVM",
            Platform::Mono => "runtime",
        };
        self.line(label, &info.jvm());
        if info.start_ns > 0 || info.duration_ns > 0 {
            let when = format!("{}, {}", date(info.start_ns), duration(info.duration_ns));
            self.line("recorded", &when);
        }
    }

    /// Findings of the rules.
    fn reasons(&mut self) {
        if self.total.samples == 0 && !self.profile.has_wall() {
            return;
        }
        let options = dwell_explain::Options::default();
        let explanation = dwell_explain::explain(self.profile, &options);
        let told = crate::explanation::in_short(&explanation);
        if !told.is_empty() {
            self.raw("");
            self.raw("Findings (details: dwell explain)");
            self.text.push_str(&told);
        }
    }

    fn sampling(&mut self) {
        let info = self.profile.info();
        let reason = match info.engine_reason.as_str() {
            "" => String::new(),
            reason => format!("({reason})"),
        };
        let interval = match info.interval_ns {
            0 => String::new(),
            interval => format!("every {}", duration(interval)),
        };
        let version = match info.profiler_version.as_str() {
            "" => String::new(),
            version => format!("dwell {version}"),
        };
        // The engine's name has parts of its own, divided by commas.
        let engine = joined(&[&info.mode, &info.engine, &interval, &reason], " ");
        let parts: Vec<String> = engine.split(", ").map(str::to_owned).collect();
        self.list("engine", &parts);
        let mut parts = vec![version];
        parts.extend(info.options.split(',').map(str::to_owned));
        parts.retain(|part| !part.is_empty());
        if parts.len() > OPTIONS_MAX {
            parts.truncate(OPTIONS_MAX);
            parts.push("...".into());
        }
        self.list("options", &parts);
        let mut samples = plural(self.total.samples, "sample");
        if self.total.samples == 0 && !self.profile.has_wall() && self.measures_others() {
            samples += " of time: the recording measures something else";
        } else if self.profile.unit() == Unit::Nanoseconds {
            let _ = write!(samples, ", {}", duration(self.total.sum));
        }
        let of = info.measured.of();
        if self.total.samples > 0 && !of.is_empty() {
            let _ = write!(samples, " {of}");
        }
        if let (Some(share), Some(used)) = (self.profile.cpu_share(), self.profile.cpu_use()) {
            let _ = write!(samples, " = {} of the CPU time used", percent(share));
            // In a part of a recording it is that of a shorter time than the samples'.
            if used.since_ns == 0 {
                let _ = write!(samples, ", {}", duration(used.sum_ns()));
            }
        }
        self.line("samples", &samples);
        for (name, number) in &info.other_events {
            self.line(
                "not shown",
                &format!("{} of {name}", plural(*number, "sample")),
            );
        }
    }

    /// Whether there is something else than time to report.
    fn measures_others(&self) -> bool {
        let profile = self.profile;
        let has_objects = profile.has_allocations() || !profile.live().is_empty();
        has_objects || profile.has_locks() || !profile.info().held_events.is_empty()
    }

    /// Other events in a file of another recorder.
    fn held(&mut self) {
        if !self.profile.info().profiler_version.is_empty() {
            return;
        }
        let held = self.profile.info().held_events.iter();
        let held: Vec<String> = held
            .map(|(name, number)| format!("{} {name}", count(*number)))
            .collect();
        self.list("counted", &held);
    }

    fn quality(&mut self) {
        let failures = self.profile.failures();
        if self.total.samples > 0 {
            let causes: Vec<String> = failures
                .iter()
                .take(CAUSES)
                .map(|f| format!("{} {}", f.cause, percent(f.weight.share(&self.total))))
                .chain((failures.len() > CAUSES).then(|| "...".to_owned()))
                .collect();
            let mut items = vec![format!(
                "{} of the stacks",
                percent(self.profile.failed().share(&self.total))
            )];
            items.extend(causes);
            self.list("failed", &items);
        }
        for loss in self.profile.losses().iter().filter(|loss| loss.samples > 0) {
            let weight = match loss.weight_ns {
                0 => String::new(),
                weight_ns => format!(" ({})", duration(weight_ns)),
            };
            let text = format!("{}{weight}: {}", plural(loss.samples, "sample"), loss.cause);
            self.line("lost", &text);
        }
        self.line("", &crate::incomplete::incomplete(self.profile));
        let gaps = self.profile.gaps();
        if let Some(longest) = gaps.iter().max_by_key(|gap| gap.duration_ns) {
            let sum = gaps
                .iter()
                .map(|gap| gap.duration_ns)
                .fold(0, u64::saturating_add);
            let text = format!(
                "{}, {} in all, longest {}: {}",
                plural(gaps.len() as u64, "gap"),
                duration(sum),
                duration(longest.duration_ns),
                longest.cause
            );
            self.line("gaps", &text);
        }
        if let Some(unread) = self.profile.unread() {
            self.list("file", &crate::unread::parts(unread));
            self.line("", crate::unread::remedy(unread));
        }
        for warning in self.profile.warnings() {
            let parts: Vec<String> = warning.split(", ").map(str::to_owned).collect();
            self.list("warning", &parts);
        }
    }

    fn cost(&mut self) {
        let Some(cost) = self.profile.self_cost() else {
            return;
        };
        let share = self.profile.self_cost_share();
        let share = share.map_or(String::new(), |share| {
            format!(" ({} of one CPU)", percent(share))
        });
        let text = format!(
            "{} of CPU time{share}, handler {} median, {} p99, {} max",
            duration(cost.agent_cpu_ns),
            duration(cost.handler_p50_ns),
            duration(cost.handler_p99_ns),
            duration(cost.handler_max_ns),
        );
        self.line("dwell used", &text);
        let parts = [
            format!("{} for tables and the open chunk", bytes(cost.memory_bytes)),
            format!("{} written", bytes(cost.bytes)),
            format!("{} walked", plural(cost.walks, "stack")),
            format!("{} dropped", plural(cost.dropped, "sample")),
        ];
        self.list("", &parts);
    }

    fn shares(&mut self) {
        let total = self.total;
        let info = self.profile.info();
        let part =
            |label: &str, weight: &Weight| format!("{label} {}", percent(weight.share(&total)));
        let roles: Vec<String> = self
            .profile
            .role_shares()
            .iter()
            // Others sample Java threads only: no GC among them does not mean that there was none.
            .filter(|share| share.weight.samples > 0 || !info.profiler_version.is_empty())
            .map(|share| part(share.role.label(), &share.weight))
            .collect();
        self.list("spent by", &roles);
        let kinds: Vec<String> = self
            .profile
            .top(GroupBy::Kind, |_| true)
            .iter()
            .filter(|row| row.own.sum > 0)
            .map(|row| part(&row.name, &row.own))
            .collect();
        self.list("spent in", &kinds);
    }

    fn methods(&mut self) {
        let mut rows = self.profile.top(GroupBy::Method, |_| true);
        let by_own: Vec<&Row> = rows.iter().filter(|row| row.own.sum > 0).collect();
        self.table("Methods by self time", &by_own, |row| &row.own);
        sort_by_total(&mut rows);
        let by_total: Vec<&Row> = rows.iter().collect();
        self.table("Methods by total time", &by_total, |row| &row.total);
    }

    /// Rows with samples, by the column that sorts them.
    fn table(&mut self, title: &str, rows: &[&Row], by: fn(&Row) -> &Weight) {
        self.raw("");
        self.raw(title);
        self.raw("      self     +-     total     +-   samples  method");
        for row in rows.iter().take(ROWS) {
            let cells = [row.own, row.total].map(|weight| self.share_cells(&weight));
            let head = format!("{} {} {:>9}  ", cells[0], cells[1], count(by(row).samples));
            let name = shortened(&row.name, COLUMNS.saturating_sub(head.len()));
            self.raw(&format!("{head}{name}"));
        }
        self.more(rows.len(), ROWS);
    }

    /// `  12.3 %   0.4`: a share and its error, 17 columns.
    fn share_cells(&self, weight: &Weight) -> String {
        let error = weight.share_error(&self.total) * 100.0;
        format!("{:>10} {error:>6.1}", percent(weight.share(&self.total)))
    }

    /// The same, with the weight and the number of samples.
    fn weight_cells(&self, sum: &Weight) -> String {
        let unit = self.profile.unit();
        let weight = match unit {
            Unit::Nanoseconds => weight(sum.sum, unit),
            Unit::Samples => count(sum.sum),
        };
        format!(
            "{} {weight:>12} {:>9}",
            self.share_cells(sum),
            count(sum.samples)
        )
    }

    fn threads(&mut self) {
        let profile = self.profile;
        let weights = profile.thread_weights();
        let mut rows: Vec<(u32, Weight)> = (0..)
            .zip(weights)
            .filter(|(_, weight)| weight.samples > 0)
            .collect();
        rows.sort_by(|a, b| b.1.sum.cmp(&a.1.sum).then_with(|| a.0.cmp(&b.0)));
        self.raw("");
        self.raw("Threads");
        self.raw("     share     +-       weight   samples  thread");
        for (thread, sum) in rows.iter().take(THREAD_ROWS) {
            let head = format!("{}  ", self.weight_cells(sum));
            let room = COLUMNS.saturating_sub(head.len());
            let number = profile
                .threads()
                .get(*thread as usize)
                .map_or(0, |t| t.os_tid);
            let tail = if number > 0 {
                format!("  tid {number}")
            } else {
                String::new()
            };
            let name = profile.thread_name(*thread);
            let name = padded(name, room.saturating_sub(tail.len()).min(40));
            self.raw(&format!("{head}{name}{tail}"));
        }
        self.more(rows.len(), THREAD_ROWS);
    }

    fn more(&mut self, rows: usize, shown: usize) {
        if let Some(line) = more(rows, shown) {
            self.raw(&line);
        }
    }
}

fn joined(parts: &[&str], separator: &str) -> String {
    let parts: Vec<&str> = parts
        .iter()
        .copied()
        .filter(|part| !part.is_empty())
        .collect();
    parts.join(separator)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use dwell_profile::told::GcPause;
    use dwell_profile::{
        Builder, CpuLimit, CpuUse, FrameKind, Gap, Loss, Machine, Sample, SelfCost, Stretch,
        text_art,
    };
    use proptest::prelude::*;

    fn machine() -> Machine {
        Machine {
            duration_ns: 2_000_000_000,
            processors: 4,
            busy_ns: 3_000_000_000,
            own_ns: 2_600_000_000,
            idle_ns: 4_800_000_000,
            stolen_ns: 200_000_000,
            ..Machine::default()
        }
    }

    /// A profile with something in every part of the text.
    pub(crate) fn full() -> Builder {
        let mut builder = text_art::builder(
            "thread:  main       main      gc
             weight:  600000000  300000000 100000000
             failure: -          no_table  -
                      a.A.x:1    a.A.x:2   libjvm.so.WorkerThread::run[vm]
                      a.A.y[c1]  -         -",
        );
        builder.info.pid = 4711;
        builder.info.java_arguments = "com.example.Main --port 1".to_owned();
        builder.info.jvm_name = "OpenJDK 64-Bit Server VM".to_owned();
        builder.info.profiler_version = "0.1.0".to_owned();
        builder.info.engine = "perf".to_owned();
        builder.info.engine_reason = "perf_event_open is allowed".to_owned();
        builder.info.interval_ns = 10_000_000;
        builder.info.start_ns = 1_700_000_000_000_000_000;
        builder.info.duration_ns = 30_000_000_000;
        builder.cpu_use = Some(CpuUse {
            user_ns: 900_000_000,
            system_ns: 350_000_000,
            since_ns: 0,
        });
        builder.losses = vec![
            Loss {
                cause: "ring full".to_owned(),
                samples: 3,
                weight_ns: 30_000_000,
            },
            Loss {
                cause: "nothing".to_owned(),
                samples: 0,
                weight_ns: 0,
            },
        ];
        builder.gaps = vec![Gap {
            cause: "paused".to_owned(),
            duration_ns: 5_000_000,
            ..Gap::default()
        }];
        for duration_ns in [2_000_000, 9_000_000, 4_000_000] {
            let pause = Stretch::new(0, duration_ns);
            builder.stretches.add::<GcPause>(pause);
        }
        builder.cpu_limit = Some(CpuLimit {
            quota_ns: 1_500_000_000,
            processors: 4,
            periods: 300,
            throttled: 31,
            throttled_ns: 1_200_000_000,
        });
        builder.machine = vec![machine()];
        builder.self_cost = Some(SelfCost {
            span_ns: 30_000_000_000,
            agent_cpu_ns: 300_000_000,
            handler_p50_ns: 1_300,
            memory_bytes: 20_000_000,
            ..SelfCost::default()
        });
        builder.warnings = vec!["the last chunk is torn".to_owned()];
        builder
    }

    #[test]
    fn text_has_content_and_quality_of_the_recording() {
        let text = text(&full().finish());
        for line in [
            "process    pid 4711  com.example.Main --port 1",
            "JVM        OpenJDK 64-Bit Server VM",
            "recorded   2023-11-14 22:13:20 UTC, 30.0 s",
            "engine     perf every 10.0 ms (perf_event_open is allowed)",
            "samples    3 samples, 1.00 s = 80.0 % of the CPU time used, 1.25 s",
            "failed     30.0 % of the stacks, no_table 30.0 %",
            "lost       3 samples (30.0 ms): ring full",
            "options    dwell 0.1.0",
            "gaps       1 gap, 5.00 ms in all, longest 5.00 ms: paused",
            "pauses     3 GC pauses, 15.0 ms in all (0.1 % of the time), median 4.00 ms, \
             longest 9.00 ms",
            "CPU limit  1.50 CPUs; used up in 31 of 300 periods, threads throttled for \
             1.20 s",
            "machine    4 CPUs: other processes used 0.2, the hypervisor had 0.1, 2.4 were idle",
            "warning    the last chunk is torn",
            "spent by   program 90.0 %, GC 10.0 %, JIT 0.0 %, VM 0.0 %, profiler 0.0 %",
            "spent in   C1 60.0 %, C2 30.0 %, VM 10.0 %",
        ] {
            assert!(
                text.lines().any(|l| l == line),
                "no line {line:?} in\n{text}"
            );
        }
        assert!(
            text.contains(
                "dwell used 300 ms of CPU time (1.0 % of one CPU), handler 1.30 us median, 0 ns p99"
            ),
            "{text}"
        );
        assert!(!text.contains("nothing"), "{text}");
    }

    #[test]
    fn all_options_are_printed() {
        let mut builder = full();
        let path = format!("/srv/{}/app.jfr", "long/".repeat(40));
        let all =
            "start,cpu=10000000ns,engine=auto,walk=snapshot,depth=8192,wall=20000000ns,alloc=512k";
        builder.info.options = format!("{all},file={path},lock=1ms");
        let text = text(&builder.finish());
        let lines = text.lines().skip_while(|line| !line.starts_with("options"));
        let lines: Vec<_> = lines
            .take_while(|line| !line.starts_with("samples"))
            .collect();
        assert!(
            lines.iter().all(|line| line.width() <= COLUMNS),
            "{lines:#?}"
        );
        let words: Vec<_> = lines
            .iter()
            .flat_map(|line| line.split_whitespace())
            .collect();
        let has = |word: &str| words.iter().any(|it| it.trim_end_matches(',') == word);
        assert!(all.split(',').chain(["lock=1ms"]).all(has), "{lines:#?}");
        let file = words.iter().find(|word| word.starts_with("file=/srv/"));
        assert!(
            file.is_some_and(|it| it.ends_with("/app.jfr,")),
            "{lines:#?}"
        );
        // A foreign file may have any number of them.
        let mut builder = full();
        builder.info.options = "a=1,".repeat(1000);
        assert!(
            self::text(&builder.finish())
                .lines()
                .filter(|it| it.contains("a=1"))
                .count()
                < 10
        );
    }

    /// A method's own samples differ from those with its callees.
    #[test]
    fn tables_show_samples_of_their_sort_key() {
        let text = text(&full().finish());
        let table = |title: &str| -> Vec<Vec<String>> {
            let lines = text.lines().skip_while(|line| *line != title).skip(2);
            let rows = lines.take_while(|line| !line.is_empty());
            rows.map(|row| row.split_whitespace().map(str::to_owned).collect())
                .collect()
        };
        let samples = |title| {
            let rows = table(title);
            let row = rows.into_iter().find(|row| row.last().unwrap() == "a.A.x");
            row.unwrap()[6].clone()
        };
        assert_eq!(samples("Methods by self time"), "1", "{text}");
        assert_eq!(samples("Methods by total time"), "2", "{text}");
    }

    #[test]
    fn a_part_of_a_recording_is_compared_with_the_same_time_only() {
        let mut builder = full();
        // The samples are at 0, 1 and 2 ms.
        builder.cpu_use = Some(CpuUse {
            user_ns: 500_000_000,
            system_ns: 0,
            since_ns: 1_000_000,
        });
        let text = text(&builder.finish());
        let line = "samples    3 samples, 1.00 s = 80.0 % of the CPU time used";
        assert!(text.lines().any(|l| l == line), "{text}");
    }

    #[test]
    fn tables_have_shares_and_errors() {
        let text = text(&full().finish());
        // share 0.6 of weights 6, 3, 1: sqrt(0.4^2 * 36 + 0.6^2 * 10) / 10 = 30.6 %
        let row = "    60.0 %   30.6     60.0 %   30.6         1  a.A.y";
        assert!(text.lines().any(|line| line == row), "{text}");
        assert!(text.contains("90.0 %   11.2         2  a.A.x"), "{text}");
        assert!(
            text.contains("    90.0 %   11.2       900 ms         2  main"),
            "{text}"
        );
    }

    #[test]
    fn an_empty_profile_says_so() {
        let text = text(&Builder::default().finish());
        assert_eq!(text, "samples    0 samples, 0 ns\n");
    }

    proptest! {
        #[test]
        fn text_of_any_names_fits_and_is_inert(name in "[\\x00-\\u{ffff}]{0,300}") {
            let mut builder = full();
            let thread = builder.thread(&name, i64::MAX, 1, false);
            let method = builder.method(&name, &name, &name);
            let frame = builder.frame(method, 1, FrameKind::C2);
            let node = builder.stack([frame, frame]);
            let failure = Some(builder.cause(&name));
            let weight = u64::MAX / 2;
            let context = None;
            let (time_ns, count) = (0, 1);
            builder.sample(Sample { time_ns, thread, node, weight, count, failure, context });
            builder.info.java_arguments = name.clone();
            builder.info.engine = name.clone();
            builder.warnings.push(name.clone());
            builder.info.other_events.push((name, 1));
            for line in text(&builder.finish()).lines() {
                prop_assert!(line.width() <= COLUMNS, "{line:?}");
                prop_assert!(line.chars().all(|c| !c.is_control()), "{line:?}");
            }
        }
    }
}

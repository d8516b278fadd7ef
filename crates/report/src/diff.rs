//! Two recordings compared, as text, as JSON, and as stacks with two numbers.

mod growth_limits;
mod markdown;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

use dwell_profile::diff::{Base, Change, Per, Sums, stable};
use dwell_profile::{GroupBy, IDLE, Measured, NodeId, Profile, Unit, WallFilter, Weight};
use serde_json::{Value, json};

use crate::latencies;
use crate::number::{count, duration};
use crate::plain::{plain, shortened};
use crate::unread::{self, unread_words};
pub use growth_limits::{Limit, Limited, Outcome, Verdict};

/// The widest line.
const COLUMNS: usize = 100;
/// Rows of a table that are more than chance, and of those that are not.
const ROWS: usize = 15;
const ROWS_OF_CHANCE: usize = 5;
/// Rows of a table in JSON.
const JSON_ROWS: usize = 1000;

/// Two recordings that can be compared.
pub struct Compared<'p> {
    a: &'p Profile,
    b: &'p Profile,
    per: Per,
    tables: Vec<Table>,
    verdicts: Vec<Verdict>,
}

/// One table of differences.
struct Table {
    /// Its name in JSON.
    key: &'static str,
    title: &'static str,
    base: Base,
    changes: Vec<Change>,
}

impl Table {
    /// Whether a row is of threads that had nothing to do: how long they had not is no change of
    /// the program.
    fn is_idle(&self, change: &Change) -> bool {
        matches!(self.key, "causes" | "waits") && is_idle(&change.name)
    }
}

/// Whether a cause, or a cause and a method, is that of threads that had nothing to do.
fn is_idle(name: &str) -> bool {
    let rest = name.strip_prefix(IDLE);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(": "))
}

/// Differences of wall time, the largest first. Idle time is tested separately, so that the
/// significance of other rows does not depend on it.
fn changes_of_wall(base: &Base, a: Sums, b: Sums) -> Vec<Change> {
    let split =
        |sums: Sums| -> (Sums, Sums) { sums.into_iter().partition(|(name, _)| is_idle(name)) };
    let ((idle_a, busy_a), (idle_b, busy_b)) = (split(a), split(b));
    let mut changes = base.changes(busy_a, busy_b);
    changes.extend(base.changes(idle_a, idle_b));
    let size = |change: &Change| change.difference().abs();
    changes.sort_by(|x, y| size(y).total_cmp(&size(x)));
    changes
}

/// For files of other tools, which may lack it.
const NO_LENGTH: &str = "one of them does not say how long it is; compare shares: --per sample";

/// Why two recordings have nothing in common that `diff` compares, and how to compare them.
fn without_base(a: &Profile, b: &Profile, per: Per) -> &'static str {
    let is_time = |it: &Profile| !it.samples().is_empty() || it.has_wall();
    let both = |has: fn(&Profile) -> bool| has(a) && has(b);
    match per {
        _ if is_time(a) || is_time(b) => with_time(a, b, per),
        _ if both(Profile::has_allocations) => {
            "they have no time; compare memory: -e alloc or -e live"
        }
        _ if both(Profile::has_live) => "they have no time; compare memory: -e live",
        _ if both(Profile::has_locks) => {
            "they have no time; to compare locks, convert both with --collapsed -e lock, and \
             compare these files with --per sample"
        }
        _ => with_time(a, b, per),
    }
}

/// The same if at least one has samples of time.
fn with_time(a: &Profile, b: &Profile, per: Per) -> &'static str {
    match per {
        Per::Request => {
            "no requests were counted in both (see docs/context.md); --per second compares all \
             the same"
        }
        Per::Second if a.info().duration_ns.min(b.info().duration_ns) == 0 => NO_LENGTH,
        Per::Second | Per::Sample => "one of them has no data to compare with",
    }
}

/// Compares two recordings; an error says in words why that makes no sense.
///
/// # Errors
///
/// If one of them lacks the data for this scale, or if they count different things.
pub fn compared<'p>(a: &'p Profile, b: &'p Profile, per: Per) -> Result<Compared<'p>, String> {
    if a.unit() != b.unit() && per != Per::Sample {
        return Err(
            "one counts samples and the other measures time; compare shares: --per sample".into(),
        );
    }
    let (whole_a, whole_b) = (a.total(), b.total());
    let Some(cpu) = Base::new(per, (a, &whole_a), (b, &whole_b)) else {
        return Err(without_base(a, b, per).into());
    };
    let measured = &a.info().measured;
    if *measured != b.info().measured && per != Per::Sample {
        return Err("their samples measure different things; compare shares: --per sample".into());
    }
    let (own_a, total_a) = a.sums_by_method();
    let (own_b, total_b) = b.sums_by_method();
    let mut tables = vec![
        Table {
            key: "self",
            title: match measured {
                Measured::CpuTime => "CPU time by method, self",
                _ => "Samples by method, self",
            },
            base: cpu,
            changes: cpu.changes(own_a, own_b),
        },
        Table {
            key: "total",
            title: match measured {
                Measured::CpuTime => "CPU time by method, callees included",
                _ => "Samples by method, callees included",
            },
            base: cpu,
            changes: cpu.changes(total_a, total_b),
        },
    ];
    let ((wall_a, busy_a), (wall_b, busy_b)) = (a.wall_totals(), b.wall_totals());
    let wall = (a.has_wall() && b.has_wall()).then(|| Base::new(per, (a, &wall_a), (b, &wall_b)));
    if let Some(wall) = wall.flatten() {
        let wall = wall.with_grains_of(&busy_a, &busy_b);
        let (causes_a, places_a) = a.sums_by_cause();
        let (causes_b, places_b) = b.sums_by_cause();
        tables.push(Table {
            key: "causes",
            title: "Wall time by cause",
            base: wall,
            changes: changes_of_wall(&wall, causes_a, causes_b),
        });
        tables.push(Table {
            key: "waits",
            title: "Wall time by cause and method of the program",
            base: wall,
            changes: changes_of_wall(&wall, places_a, places_b),
        });
    }
    Ok(Compared {
        a,
        b,
        per,
        tables,
        verdicts: Vec::new(),
    })
}

impl Compared<'_> {
    /// The differences for a terminal.
    #[must_use]
    pub fn text(&self, names: [&str; 2]) -> String {
        let mut text = String::new();
        for (letter, name, profile) in [("A", names[0], self.a), ("B", names[1], self.b)] {
            let total = profile.total();
            let mut line = format!(
                "{letter}  {}: {}, {} samples",
                shortened(name, COLUMNS / 2),
                duration(profile.info().duration_ns),
                count(total.samples)
            );
            if profile.unit() == Unit::Nanoseconds {
                let of = crate::words::of_time(profile);
                let _ = write!(line, ", {} {of}", duration(total.sum));
            }
            let requests = profile.requests().iter();
            let requests = requests.fold(0u64, |sum, r| sum.saturating_add(r.count));
            if requests > 0 {
                let _ = write!(line, ", {} requests", count(requests));
            }
            let _ = writeln!(text, "{line}");
            if let Some(unread) = profile.unread() {
                let _ = writeln!(text, "   note: {letter} {}", unread_words(unread));
            }
        }
        text.push_str(&latencies::text(&latencies::rows(self.a, self.b)));
        let _ = writeln!(text, "\n{}", self.told_base());
        text.push_str("* significant; +- one standard error of the change\n");
        for table in &self.tables {
            self.table(&mut text, table);
        }
        if !self.verdicts.is_empty() {
            text.push_str("\nLimits of growth\n");
        }
        for verdict in &self.verdicts {
            let _ = writeln!(text, "  {}", verdict.line());
        }
        text
    }

    fn told_base(&self) -> &'static str {
        match self.per {
            Per::Second => "all numbers are for one second of the recording",
            Per::Request => "all numbers are for one request that ended",
            Per::Sample => "all numbers are shares of what was sampled",
        }
    }

    fn table(&self, text: &mut String, table: &Table) {
        let _ = writeln!(text, "\n{}", table.title);
        let _ = writeln!(text, "          A          B      change        +-");
        let (idle, rows): (Vec<&Change>, Vec<&Change>) = table
            .changes
            .iter()
            .partition(|change| table.is_idle(change));
        let (told, rest): (Vec<&Change>, Vec<&Change>) = rows
            .iter()
            .copied()
            .partition(|change| change.is_significant);
        let mut shown = 0usize;
        for change in told
            .iter()
            .take(ROWS)
            .chain(rest.iter().take(ROWS_OF_CHANCE))
        {
            shown += 1;
            let mark = if change.is_significant { "*" } else { " " };
            let note = match (change.is_new(), change.is_gone()) {
                (true, _) => "new ",
                (_, true) => "gone ",
                _ => "",
            };
            let head = format!(
                "{:>11}{:>11}{:>12}{:>10} {mark} {note}",
                self.rate(change.rate_a),
                self.rate(change.rate_b),
                self.signed(change.difference()),
                self.rate(change.error),
            );
            let room = COLUMNS.saturating_sub(head.len());
            let _ = writeln!(text, "{head}{}", shortened(&change.name, room));
        }
        let _ = writeln!(
            text,
            "  {} of {} rows are significant, {} are not shown",
            told.len(),
            rows.len(),
            rows.len().saturating_sub(shown)
        );
        if let Some(idle) = idle.iter().find(|change| change.name == IDLE) {
            let (a, b) = (self.rate(idle.rate_a), self.rate(idle.rate_b));
            let _ = writeln!(text, "  idle: {a} and {b} (rows of idle time: --json)");
        }
    }

    fn rate(&self, rate: f64) -> String {
        match (self.per, self.a.unit()) {
            (Per::Sample, _) => format!("{:.2} %", rate * 100.0),
            (_, Unit::Nanoseconds) => duration(rate.round() as u64),
            (_, Unit::Samples) => format!("{rate:.2}"),
        }
    }

    fn signed(&self, rate: f64) -> String {
        let sign = match rate {
            rate if rate > 0.0 => "+",
            rate if rate < 0.0 => "-",
            _ => "",
        };
        format!("{sign}{}", self.rate(rate.abs()))
    }

    /// The differences for programs, with an end of line.
    #[must_use]
    pub fn json(&self) -> String {
        let per = match self.per {
            Per::Second => "second",
            Per::Request => "request",
            Per::Sample => "sample",
        };
        let unit = match (self.per, self.a.unit()) {
            (Per::Sample, _) => "share",
            (_, Unit::Nanoseconds) => "ns",
            (_, Unit::Samples) => "samples",
        };
        let mut tables = serde_json::Map::new();
        for table in &self.tables {
            let rows = table.changes.iter().take(JSON_ROWS).map(row);
            let whole = json!({
                "base": [table.base.a, table.base.b],
                "rows": rows.collect::<Vec<_>>(),
                "leftOut": table.changes.len().saturating_sub(JSON_ROWS),
            });
            tables.insert(table.key.to_owned(), whole);
        }
        let unread = [self.a, self.b].map(|profile| unread::value(profile.unread()));
        let all = json!({
            "version": 1,
            "per": per,
            "unit": unit,
            // Unread parts of each file; null if none.
            "unread": unread,
            "latencies": latencies::value(&latencies::rows(self.a, self.b), true),
            "tables": tables,
            "limits": self.verdicts.iter().map(Verdict::value).collect::<Vec<_>>(),
        });
        format!("{all:#}\n")
    }

    /// Stacks with two numbers, the first profile's brought to the base of the second. Of wall time
    /// if `wall`, else of CPU time.
    ///
    /// # Errors
    ///
    /// Only those of `out`.
    pub fn collapsed(&self, wall: Option<&WallFilter>, out: &mut impl io::Write) -> io::Result<()> {
        let key = if wall.is_some() { "causes" } else { "self" };
        let table = self.tables.iter().find(|table| table.key == key);
        let scale = table.map_or(1.0, |table| table.base.b / table.base.a);
        let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (stack, sum) in stacks(self.a, wall) {
            sums.entry(stack).or_default().0 += (sum as f64 * scale).round() as u64;
        }
        for (stack, sum) in stacks(self.b, wall) {
            sums.entry(stack).or_default().1 += sum;
        }
        for (stack, (a, b)) in sums {
            writeln!(out, "{stack} {a} {b}")?;
        }
        Ok(())
    }
}

fn row(change: &Change) -> Value {
    json!({
        "name": plain(&change.name),
        "a": change.rate_a,
        "b": change.rate_b,
        "samplesA": change.a.samples,
        "samplesB": change.b.samples,
        "change": change.difference(),
        "standardError": change.error,
        "z": change.z,
        "significant": change.is_significant,
        "state": match (change.is_new(), change.is_gone()) {
            (true, _) => "new",
            (_, true) => "gone",
            _ => "both",
        },
    })
}

/// All stacks of a profile by the names of their methods.
fn stacks(profile: &Profile, wall: Option<&WallFilter>) -> BTreeMap<String, u64> {
    let grouped = profile.group(GroupBy::Method);
    let cell = |name: &String| plain(&stable(name)).replace(';', ":");
    let names: Vec<String> = grouped.names.iter().map(cell).collect();
    let weights = match wall {
        None => profile.node_weights(|_| true),
        Some(filter) => {
            let mut weights = vec![Weight::default(); profile.tree().len()];
            for wall in profile.wall(filter) {
                if let Some(sum) = weights.get_mut(wall.node as usize) {
                    *sum += &wall.weight;
                }
            }
            weights
        }
    };
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for (node, weight) in weights.iter().enumerate().filter(|(_, w)| w.sum > 0) {
        let frames = profile.tree().stack(node as NodeId).filter_map(|frame| {
            let group = grouped.of_frame.get(frame as usize)?;
            names.get(*group as usize).map(String::as_str)
        });
        let mut stack: Vec<&str> = frames.collect();
        stack.reverse();
        if stack.is_empty() {
            stack.push("[no stack]");
        }
        *sums.entry(stack.join(";")).or_default() += weight.sum;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Builder, Look, text_art};

    /// A sample of 10 ms.
    pub(super) fn sample(node: NodeId) -> dwell_profile::Sample {
        dwell_profile::Sample {
            time_ns: 0,
            thread: 0,
            node,
            weight: 10_000_000,
            count: 1,
            failure: None,
            context: None,
        }
    }

    pub(super) fn pair() -> (Profile, Profile) {
        let of = |art: &str, seconds: u64| {
            let mut builder = text_art::builder(art);
            builder.info.duration_ns = seconds * 1_000_000_000;
            builder.finish()
        };
        let a = of(
            "weight: 300000000 100000000
             a.A.x             a.A.x
             a.A$$Lambda$1+0x00ab.y  a.A.z",
            10,
        );
        let b = of(
            "weight: 600000000 400000000
             a.A.x             a.A.x
             a.A$$Lambda$2+0x00cd.y  a.A.new",
            20,
        );
        (a, b)
    }

    #[test]
    fn files_without_time_are_compared_by_memory_or_locks() {
        let with = |add: fn(&mut Builder)| {
            let mut builder = Builder::default();
            add(&mut builder);
            builder.finish()
        };
        let refusal = |of: &Profile| compared(of, of, Per::Second).err().unwrap();
        let heap = with(|it| it.live_sampling = Some(dwell_profile::LiveSampling::default()));
        assert!(refusal(&heap).ends_with("compare memory: -e live"));
        let sampling = dwell_profile::AllocationSampling::default();
        let mut builder = Builder::default();
        builder.allocation_sampling = Some(sampling);
        assert!(refusal(&builder.finish()).contains("-e alloc or -e live"));
        let locks = with(|it| it.monitor_sums = Some(dwell_profile::MonitorSums::default()));
        assert!(refusal(&locks).contains("--collapsed -e lock"));
        assert!(refusal(&with(|_| {})).contains("does not say how long"));
    }

    #[test]
    fn text_states_the_base_and_marks_new_and_gone() {
        let (a, b) = pair();
        let text = compared(&a, &b, Per::Second)
            .unwrap()
            .text(["a.jfr", "b.jfr"]);
        for part in [
            "A  a.jfr: 10.0 s, 2 samples, 400 ms of CPU time",
            "all numbers are for one second",
            "    30.0 ms    30.0 ms        0 ns",
            "new a.A.new",
            "gone a.A.z",
            "0 of 3 rows are significant",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert!(text.lines().all(|line| line.len() <= COLUMNS));
    }

    #[test]
    fn idle_time_has_one_line_and_no_row() {
        let of = |idle_ns: u64| {
            let mut builder = Builder::default();
            builder.info.duration_ns = 1_000_000_000;
            let thread = builder.thread("worker-1", 1, 1, false);
            for (cause, weight_ns) in [("park", 100_000_000), ("idle-pool", idle_ns)] {
                let cause = builder.cause(cause);
                builder.look(Look {
                    thread,
                    cause,
                    weight_ns,
                    count: 1,
                    ..Look::default()
                });
            }
            builder.finish()
        };
        let (a, b) = (of(300_000_000), of(700_000_000));
        let both = compared(&a, &b, Per::Second).unwrap();
        let text = both.text(["a", "b"]);
        let wall = &text[text.find("Wall time by cause\n").unwrap()..];
        assert_eq!(wall.matches("idle").count(), 2, "{wall}");
        assert_eq!(
            wall.matches("0 of 1 rows are significant").count(),
            2,
            "{wall}"
        );
        assert!(wall.contains("\n  idle: 300 ms and 700 ms (rows"), "{wall}");
        assert_eq!(both.json().matches("idle-pool").count(), 2);
    }

    /// The chance of the change of `park` is 3.7 %. That is significant if `park` is the only row
    /// that is not idle, whatever the number of idle rows.
    #[test]
    fn idle_rows_do_not_change_significance_of_others() {
        let of = |park: u64| {
            let mut builder = Builder::default();
            builder.info.duration_ns = 1_000_000_000;
            let thread = builder.thread("worker-1", 1, 1, false);
            for (cause, count) in [("idle-pool", 500), ("park", park)] {
                let cause = builder.cause(cause);
                builder.look(Look {
                    thread,
                    cause,
                    weight_ns: 1000 * count,
                    count,
                    ..Look::default()
                });
            }
            builder.finish()
        };
        // z is 27 / sqrt(167), 2.09: by chance 3.7 %. Of two rows it would have to be 2.5 %.
        let (a, b) = (of(70), of(97));
        let both = compared(&a, &b, Per::Second).unwrap();
        let causes = both.tables.iter().find(|table| table.key == "causes");
        let changes = &causes.unwrap().changes;
        let told: Vec<_> = (changes.iter())
            .map(|it| (it.name.as_str(), it.is_significant))
            .collect();
        assert_eq!(told, [("park", true), (IDLE, false)]);
    }

    /// The numbers are those of the page's test of the same (`diff.test.ts`).
    #[test]
    fn missing_cause_is_as_uncertain_as_the_busy_time() {
        let of = |busy: &str, count| {
            let mut builder = Builder::default();
            builder.info.duration_ns = 1_000_000_000;
            let thread = builder.thread("worker-1", 1, 1, false);
            // Idle looks, and the looks that they stand for.
            for (cause, weight_ns, count, choices) in [
                ("idle-pool", 1_000_000, 10, 1_000_000),
                (busy, 200 * count, count, 0),
            ] {
                let cause = builder.cause(cause);
                builder.look(Look {
                    thread,
                    cause,
                    weight_ns,
                    count,
                    choices,
                    ..Look::default()
                });
            }
            builder.finish()
        };
        let (a, b) = (of("park", 20), of("jit-wait", 30));
        let json = compared(&a, &b, Per::Second).unwrap().json();
        let json: Value = serde_json::from_str(&json).unwrap();
        let rows = json["tables"]["causes"]["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == "jit-wait").unwrap();
        // 6000 in the two seconds of both, and each look of either weighs 200.
        let error = row["standardError"].as_f64().unwrap();
        assert!((error - (3000.0f64 * 400.0).sqrt()).abs() < 1e-6, "{row}");
    }

    #[test]
    fn stacks_have_two_numbers_on_one_base() {
        let (a, b) = pair();
        let mut out = Vec::new();
        let both = compared(&a, &b, Per::Second).unwrap();
        both.collapsed(None, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "a.A.x;a.A$$Lambda.y 600000000 600000000\n\
                        a.A.x;a.A.new 0 400000000\n\
                        a.A.x;a.A.z 200000000 0\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn json_has_all_rows() {
        let (a, b) = pair();
        let json = compared(&a, &b, Per::Sample).unwrap().json();
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (&json["per"], &json["unit"]),
            (&json!("sample"), &json!("share"))
        );
        assert_eq!(json["tables"]["self"]["rows"].as_array().unwrap().len(), 3);
        assert_eq!(json["tables"]["self"]["rows"][0]["state"], "new");
    }

    #[test]
    fn incomparable_measures_are_reported() {
        let (a, b) = pair();
        assert!(
            compared(&a, &b, Per::Request)
                .err()
                .unwrap()
                .contains("no requests")
        );
        let mut samples = text_art::builder("a.A.x");
        samples.unit = Unit::Samples;
        samples.info.duration_ns = 1;
        let samples = samples.finish();
        assert!(
            compared(&a, &samples, Per::Second)
                .err()
                .unwrap()
                .contains("--per sample")
        );
        assert!(compared(&a, &samples, Per::Sample).is_ok());
    }
}

//! The meaning of a run's outcomes: repeated tests, red results, and the report. Pure.

use super::kind::Kind;
use super::process::Took;
use std::fmt::Write;

/// More tests than these that pass only when repeated make a run red.
pub const UNSTABLE_MAX: usize = 2;

/// The outcome of one run of a test or a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Passed; the number of tests, of which parts have more than one.
    Passed(usize),
    /// It could not be tried, and said why.
    Skipped(String),
    /// Some tests failed.
    Failed {
        /// Those that failed; at least one.
        failed: usize,
        /// Those of the same part that passed.
        passed: usize,
        /// In a few words: `exit code`, `ended after 300 s`, ...
        why: String,
    },
}

/// A test or a part with its result.
#[derive(Clone, Debug)]
pub struct Ran {
    /// As people call it: `e2e/wall: measured_sums`, `lints`.
    pub name: String,
    /// The meaning of its failure.
    pub kind: Kind,
    /// Its outcome.
    pub outcome: Outcome,
    /// The parts that it could not try, although it passed.
    pub not_tried: Vec<String>,
    /// Its resources.
    pub took: Took,
    /// All that it printed.
    pub output: String,
}

/// All that was run, and the repetitions.
#[derive(Debug, Default)]
pub struct Account {
    /// First runs, in their order.
    pub first: Vec<Ran>,
    /// Repetitions of measured tests that failed.
    pub again: Vec<Ran>,
    /// The jobs without time.
    pub not_run: Vec<String>,
}

/// The kind of a failure: a measured test that has seen what must never happen says so in a line
/// `never: WHAT`, and is not repeated.
#[must_use]
pub fn kind_of_failure(kind: Kind, output: &str) -> Kind {
    let seen = output.lines().any(|line| line.starts_with("never: "));
    if seen { Kind::Never } else { kind }
}

/// The lines of a test's output that name parts it could not try. A test prints `skipped: WHY` for
/// the whole, and `not tried: WHY` for a part.
#[must_use]
pub fn said(output: &str) -> (Option<String>, Vec<String>) {
    let of = |tag: &'static str| {
        output
            .lines()
            .filter_map(move |line| line.strip_prefix(tag))
    };
    let skipped = of("skipped: ").next().map(str::to_owned);
    let mut parts: Vec<String> = of("not tried: ").map(str::to_owned).collect();
    parts.dedup();
    (skipped, parts)
}

/// Numbers of the closing line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Passed, those that passed when repeated included.
    pub passed: usize,
    /// Failed, those that were not run included.
    pub failed: usize,
    /// Skipped.
    pub skipped: usize,
    /// Of the passed ones, those that failed first.
    pub unstable: usize,
}

impl Account {
    /// The names of the measured tests that failed once, which are to be repeated.
    #[must_use]
    pub fn to_repeat(&self) -> Vec<&Ran> {
        let failed = |ran: &&Ran| matches!(ran.outcome, Outcome::Failed { .. });
        let measured = |ran: &&Ran| ran.kind.is_measured();
        self.first.iter().filter(failed).filter(measured).collect()
    }

    /// The decisive run of a test: its repetition, if it has one.
    fn counts<'a>(&'a self, ran: &'a Ran) -> &'a Ran {
        let again = self.again.iter().find(|again| again.name == ran.name);
        again.unwrap_or(ran)
    }

    /// First runs that failed and whose repetition passed.
    #[must_use]
    pub fn unstable(&self) -> Vec<&Ran> {
        let failed = |ran: &Ran| matches!(ran.outcome, Outcome::Failed { .. });
        let first = self.first.iter();
        first
            .filter(|ran| failed(ran) && !failed(self.counts(ran)))
            .collect()
    }

    /// The sums.
    #[must_use]
    pub fn sums(&self) -> Sums {
        let mut sums = Sums {
            failed: self.not_run.len(),
            unstable: self.unstable().len(),
            ..Sums::default()
        };
        for ran in &self.first {
            match &self.counts(ran).outcome {
                Outcome::Passed(number) => sums.passed += number,
                Outcome::Skipped(_) => sums.skipped += 1,
                Outcome::Failed { failed, passed, .. } => {
                    sums.failed += failed;
                    sums.passed += passed;
                }
            }
        }
        sums
    }

    /// Whether the run is green: something was tested, nothing failed, few were unstable.
    #[must_use]
    pub fn is_green(&self) -> bool {
        let sums = self.sums();
        sums.failed == 0 && sums.passed > 0 && sums.unstable <= UNSTABLE_MAX
    }

    /// The end of a run's output: slow and untried tests, all failures whole, and the sums. A
    /// reader of the end alone knows what to fix.
    #[must_use]
    pub fn closing(&self) -> String {
        let mut text = String::new();
        self.tell_slowest(&mut text);
        for ran in &self.first {
            let ran = self.counts(ran);
            if let Outcome::Skipped(why) = &ran.outcome {
                let _ = writeln!(text, "skipped: {}: {why}", ran.name);
            }
            for why in &ran.not_tried {
                let _ = writeln!(text, "not tried: {}: {why}", ran.name);
            }
        }
        let unstable = self.unstable();
        for ran in &unstable {
            tell_failure(&mut text, "UNSTABLE (passed when repeated)", ran);
        }
        for ran in &self.first {
            let ran = self.counts(ran);
            if matches!(ran.outcome, Outcome::Failed { .. }) {
                tell_failure(&mut text, "FAILED", ran);
            }
        }
        for name in &self.not_run {
            let _ = writeln!(text, "FAILED {name}: there was no time left to run it");
        }
        for ran in &unstable {
            let _ = writeln!(text, "unstable: {}", ran.name);
        }
        if unstable.len() > UNSTABLE_MAX {
            let _ = writeln!(text, "more than {UNSTABLE_MAX} are unstable: not green");
        }
        let sums = self.sums();
        // Too many unstable tests fail the run, and the last line must report that.
        let excess = sums.unstable.saturating_sub(UNSTABLE_MAX);
        let _ = writeln!(
            text,
            "{} passed, {} failed, {} skipped",
            sums.passed - excess.min(sums.passed),
            sums.failed + excess,
            sums.skipped
        );
        text
    }

    fn tell_slowest(&self, text: &mut String) {
        let mut slowest: Vec<&Ran> = self.first.iter().chain(&self.again).collect();
        slowest.sort_by_key(|ran| std::cmp::Reverse(ran.took.time));
        text.push_str("slowest:\n");
        for ran in slowest.iter().take(25) {
            let _ = writeln!(text, "  {}  {}", ran.took, ran.name);
        }
    }
}

/// The name, why, and all that it printed.
fn tell_failure(text: &mut String, what: &str, ran: &Ran) {
    let why = match &ran.outcome {
        Outcome::Failed { why, .. } => why,
        _ => "",
    };
    let _ = writeln!(text, "\n{what} {} [{}]: {why}", ran.name, ran.kind);
    for line in shortened(&ran.output).lines() {
        let _ = writeln!(text, "    {line}");
    }
}

/// An output without terminal control characters. The middle of a long one is only in
/// `target/test.log`.
fn shortened(output: &str) -> String {
    const PART: usize = 60_000;
    let plain = without_escapes(output);
    if plain.len() <= 2 * PART {
        return plain;
    }
    let head = plain.floor_char_boundary(PART);
    let tail = plain.ceil_char_boundary(plain.len() - PART);
    format!(
        "{}\n... {} bytes left out; the complete output is in target/test.log ...\n{}",
        &plain[..head],
        tail - head,
        &plain[tail..]
    )
}

/// Text without terminals' escape sequences (`ESC [ ... letter`).
#[must_use]
pub fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = match after.strip_prefix('[') {
            Some(sequence) => sequence
                .split_once(|c: char| c.is_ascii_alphabetic())
                .map_or("", |(_, rest)| rest),
            None => after,
        };
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn ran(name: &str, kind: Kind, outcome: Outcome) -> Ran {
        Ran {
            name: name.to_owned(),
            kind,
            outcome,
            not_tried: Vec::new(),
            took: Duration::from_secs(name.len() as u64).into(),
            output: format!("output of {name}\n"),
        }
    }

    fn failed(why: &str) -> Outcome {
        Outcome::Failed {
            failed: 1,
            passed: 0,
            why: why.to_owned(),
        }
    }

    fn account() -> Account {
        Account {
            first: vec![
                ran("a", Kind::Exact, Outcome::Passed(1)),
                ran("units", Kind::Exact, Outcome::Passed(40)),
                ran("m", Kind::Measured, failed("by chance")),
                ran("p", Kind::Exact, Outcome::Skipped("no perf".to_owned())),
            ],
            ..Account::default()
        }
    }

    #[test]
    fn only_measured_tests_are_repeated_and_a_pass_then_is_unstable() {
        let mut account = account();
        account.first.push(ran("n", Kind::Never, failed("crash")));
        let names: Vec<&str> = account
            .to_repeat()
            .iter()
            .map(|r| r.name.as_str())
            .collect();
        assert_eq!(names, ["m"]);
        account.first.pop();
        assert!(!account.is_green());
        account
            .again
            .push(ran("m", Kind::Measured, Outcome::Passed(1)));
        let sums = Sums {
            passed: 42,
            failed: 0,
            skipped: 1,
            unstable: 1,
        };
        assert_eq!(account.sums(), sums);
        assert!(account.is_green());
        let closing = account.closing();
        assert!(
            closing.ends_with("unstable: m\n42 passed, 0 failed, 1 skipped\n"),
            "{closing}"
        );
        assert!(closing.contains("skipped: p: no perf\n"), "{closing}");
        assert!(closing.contains("output of m"), "{closing}");
    }

    #[test]
    fn never_failure_is_not_repeated_anywhere() {
        let kind = |output| kind_of_failure(Kind::Measured, output);
        assert_eq!(kind("--- JDK 17\nnever: a wrong stack\n"), Kind::Never);
        assert_eq!(kind("it was never: seen\n"), Kind::Measured);
        let mut account = account();
        account.first[2].kind = kind("never: x");
        assert!(account.to_repeat().is_empty() && !account.is_green());
    }

    #[test]
    fn twice_red_is_red() {
        let mut account = account();
        account
            .again
            .push(ran("m", Kind::Measured, failed("again")));
        assert!(!account.is_green());
        assert_eq!((account.sums().failed, account.sums().unstable), (1, 0));
        let closing = account.closing();
        assert!(
            closing.contains("\nFAILED m [measured]: again\n    output of m\n"),
            "{closing}"
        );
        assert!(
            closing.ends_with("41 passed, 1 failed, 1 skipped\n"),
            "{closing}"
        );
    }

    #[test]
    fn too_many_unstable_ones_are_red_and_the_last_line_says_so() {
        let mut account = Account::default();
        for name in ["x", "y", "z"] {
            account
                .first
                .push(ran(name, Kind::Measured, failed("once")));
            account
                .again
                .push(ran(name, Kind::Measured, Outcome::Passed(1)));
        }
        assert!(!account.is_green());
        assert!(
            account
                .closing()
                .ends_with("2 passed, 1 failed, 0 skipped\n")
        );
    }

    #[test]
    fn nothing_tested_and_nothing_reached_are_red() {
        assert!(!Account::default().is_green());
        let mut account = account();
        account.first.truncate(2);
        assert!(account.is_green());
        account.not_run.push("late".to_owned());
        assert!(!account.is_green());
        assert!(
            account
                .closing()
                .contains("FAILED late: there was no time left to run it")
        );
    }

    #[test]
    fn untried_parts_are_read_from_output() {
        let output = "running 1 test\nskipped: no perf\nnot tried: a\nnot tried: a\n";
        assert_eq!(
            said(output),
            (Some("no perf".to_owned()), vec!["a".to_owned()])
        );
        assert_eq!(said("it said skipped: x"), (None, Vec::new()));
    }

    #[test]
    fn long_outputs_are_cut_in_the_middle_and_escapes_are_gone() {
        assert_eq!(without_escapes("\u{1b}[1;31mred\u{1b}[0m."), "red.");
        let long = "é".repeat(200_000);
        let short = shortened(&long);
        assert!(short.len() < 130_000 && short.contains("bytes left out"));
    }
}

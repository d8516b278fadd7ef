//! Results of rules: plain data, no format.

use crate::share::Share;
pub use crate::sure::Sure;
use dwell_profile::Role;

/// Measure of a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Time on a processor.
    #[default]
    Cpu,
    /// Time that went by.
    Wall,
    /// Stops of all threads.
    Safepoints,
    /// Bytes that are alive.
    Alive,
}

impl Measure {
    /// The name used in files and reports.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Measure::Cpu => "cpu",
            Measure::Wall => "wall",
            Measure::Safepoints => "safepoints",
            Measure::Alive => "live",
        }
    }
}

/// The view to open: time range and threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Which time.
    pub measure: Measure,
    /// Of this cause only.
    pub causes: Vec<String>,
    /// Of this endpoint only.
    pub endpoint: Option<String>,
    /// Of threads with such names only, `*` for anything.
    pub threads: Option<String>,
    /// Subject to highlight there.
    pub focus: Option<Focus>,
}

/// The thing that a finding is about, by the name that a recording has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Focus {
    /// A method, as `package.Class.method`.
    Method(String),
    /// The class of a lock.
    Lock(String),
    /// The class of objects.
    Class(String),
    /// Threads of the runtime.
    Role(Role),
    /// A section of the overview: `recording`, `overtime`, `events-0`.
    Part(String),
}

impl Focus {
    /// The sort of thing and its name, as files have them.
    #[must_use]
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Focus::Method(name) => ("method", name),
            Focus::Lock(name) => ("lock", name),
            Focus::Class(name) => ("class", name),
            Focus::Role(role) => ("role", role.label()),
            Focus::Part(name) => ("part", name),
        }
    }
}

/// One observation that supports a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// One sentence.
    pub text: String,
    /// Where to look.
    pub view: View,
    /// The heaviest stack, innermost method first.
    pub stack: Vec<String>,
}

/// A major cost, and the change to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The rule that found it.
    pub rule: &'static str,
    /// The problem, in one sentence.
    pub what: String,
    /// How much it costs.
    pub share: Share,
    /// Observations that support it.
    pub evidence: Vec<Evidence>,
    /// The change to make.
    pub remedy: String,
    /// How sure it is.
    pub sure: Sure,
    /// Why it is so sure, or not surer.
    pub because: String,
    /// Cost in seconds. Findings are sorted by it.
    pub weight: f64,
}

impl Finding {
    /// The time that is lost, in nanoseconds; `None` where a finding is not about time.
    #[must_use]
    pub fn lost_ns(&self) -> Option<u64> {
        let is_of = |measure| {
            let view = self.evidence.first().map(|evidence| evidence.view.measure);
            view == Some(measure)
        };
        // Samples that only count stand for no time.
        let is_counted = self.share.samples > 0 && self.share.ns == 0;
        let is_time = self.weight < f64::MAX && !is_counted && !is_of(Measure::Alive);
        let ns = (self.weight * 1e9).round() as u64;
        (is_time && ns > 0).then_some(ns)
    }

    /// The finding of this rule, no surer than its data allow.
    pub(crate) fn of_rule(self, rule: &'static str) -> Finding {
        let (most, why) = self.share.limit();
        let because = match self.sure > most {
            true => format!("{why}; {}", self.because),
            false => self.because,
        };
        Finding {
            rule,
            sure: self.sure.min(most),
            because,
            ..self
        }
    }
}

/// A rule that could not be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The rule.
    pub rule: &'static str,
    /// Data that the recording lacks.
    pub why: String,
}

/// All that the rules say of a profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// Findings, the most costly first.
    pub findings: Vec<Finding>,
    /// The whole of which findings cost a part, and its name.
    pub lost_of: Option<(u64, &'static str)>,
    /// How many more there were.
    pub left_out: usize,
    /// Rules that found nothing.
    pub passed: Vec<&'static str>,
    /// Rules that lack data.
    pub not_applicable: Vec<Skipped>,
    /// The wall time in which threads had nothing to do, of which no finding speaks.
    pub idle: Option<dwell_profile::Idle>,
    /// The wall time seen for endpoints, against the latencies of their requests.
    pub self_check: Option<dwell_profile::SelfCheck>,
    /// The waits that the recording lacks, in words; empty: none.
    pub waits_note: String,
    /// Whether endpoints are handlers found in stacks: the program has named none.
    pub has_derived_endpoints: bool,
    /// Events of another recorder that are no time of threads. None for one endpoint alone: their
    /// endpoints are not known.
    pub event_tables: Vec<dwell_profile::EventTable>,
}

/// Result of a rule.
pub(crate) enum Verdict {
    /// These; none: all is well as far as the rule can see.
    Found(Vec<Finding>),
    /// Nothing, for want of this.
    Lacks(String),
}

impl Verdict {
    pub(crate) fn lacks(why: &str) -> Verdict {
        Verdict::Lacks(why.to_owned())
    }
}

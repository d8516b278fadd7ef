//! The words of the self-check: the problem, and the remedy. Names of the program are unchanged;
//! the reports escape them.

use super::{Accounted, Agreement, EndpointCheck, SelfCheck};

/// The part of a processor that pays for enough samples of most programs, in percent.
const BUDGET: f64 = 5.0;
/// A budget that pays for samples of all threads: more does not help.
const ENOUGH: f64 = 20.0;

impl Accounted {
    /// `0.98 +- 0.02`.
    #[must_use]
    pub fn shown(&self) -> String {
        format!("{:.2} +- {:.2}", self.ratio, self.error)
    }
}

impl EndpointCheck {
    /// The endpoint, or words for its absence.
    #[must_use]
    pub fn name(&self) -> &str {
        self.endpoint.as_deref().unwrap_or("(no endpoint)")
    }

    /// A note about a ratio far from 1.
    #[must_use]
    pub fn note(&self, check: &SelfCheck) -> Option<String> {
        let name = self.name();
        note(
            &self.accounted,
            &format!("for {name}"),
            "its",
            self.is_virtual,
            check,
        )
    }
}

impl SelfCheck {
    /// All endpoints in one sentence.
    #[must_use]
    pub fn summary(&self) -> String {
        let of = match self.endpoints.as_slice() {
            [one] => one.name().to_owned(),
            all => format!("all {} endpoints", all.len()),
        };
        let shown = self.total.shown();
        format!("sampled wall time is {shown} of the latencies of {of}")
    }

    /// A note about the total of all endpoints, if its ratio is far from 1.
    #[must_use]
    pub fn total_note(&self) -> Option<String> {
        let all = self.endpoints.len();
        let is_virtual = self.endpoints.iter().filter(|check| check.is_virtual);
        let is_virtual = is_virtual.count() * 2 > all;
        note(&self.total, "for all endpoints", "their", is_virtual, self)
    }

    /// The contradictions, the one with the most latency first. The total is only included without
    /// a contradiction of a single endpoint.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let is_off = |check: &&EndpointCheck| check.accounted.agreement.is_off();
        let off = self.endpoints.iter().filter(is_off);
        let mut warnings: Vec<String> = off.filter_map(|check| check.note(self)).collect();
        if warnings.is_empty() && self.total.agreement.is_off() {
            warnings.extend(self.total_note());
        }
        warnings
    }
}

fn note(
    accounted: &Accounted,
    whose: &str,
    its: &str,
    is_virtual: bool,
    check: &SelfCheck,
) -> Option<String> {
    let remedy = &check.remedy;
    let why = match accounted.agreement {
        Agreement::Close => return None,
        Agreement::Chance => "within sampling noise, because there are few samples".to_owned(),
        Agreement::Low if is_virtual => format!(
            "too few samples, or virtual threads that are not sampled while they wait \
             (docs/wall.md, Limits); {remedy}"
        ),
        Agreement::Low => format!("too few samples; {remedy}"),
        Agreement::High => format!(
            "samples that weigh too much, or scopes that are open longer than {its} requests; \
             {remedy}"
        ),
        Agreement::SeveralThreads if accounted.ratio > 1.0 => {
            format!(
                "{its} requests run on several threads at once, and the time of each thread \
             counts"
            )
        }
        Agreement::SeveralThreads => {
            format!(
                "{its} requests move between threads, and the time between two threads is not \
             sampled"
            )
        }
        Agreement::OtherScopes => {
            "the other time may be in inner scopes of other endpoints, whose request is unknown"
                .to_owned()
        }
    };
    let shown = accounted.shown();
    Some(format!(
        "sampled wall time {whose} is {shown} of {its} latencies: {why}"
    ))
}

/// Remedy for too little seen time, by the options of the recording.
pub(super) fn remedy(options: &str) -> String {
    let last = |name: &str| {
        let options = options.split(',').rev();
        options
            .filter_map(|option| option.split_once('='))
            .find(|(key, _)| *key == name)
    };
    let budget = last("wall-budget");
    let budget: Option<f64> = budget.and_then(|(_, it)| it.strip_suffix('%')?.parse().ok());
    if last("wall-threads").is_some() {
        return format!("record with --wall-budget {BUDGET}% instead of --wall-threads");
    }
    match budget {
        Some(percent) if percent >= ENOUGH => "record longer, and with --wall 5ms".to_owned(),
        Some(percent) if percent >= BUDGET => format!("record with --wall-budget {ENOUGH}%"),
        _ => format!("record with --wall-budget {BUDGET}%"),
    }
}

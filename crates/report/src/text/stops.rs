//! What held the whole process up: pauses of the collector, the limit of its control group, and
//! others on the same processors.

use super::Report;
use crate::number::{count, duration, percent, plural};

impl Report<'_> {
    /// One line each, where there is something to tell.
    pub(super) fn stops(&mut self) {
        self.safepoint_line();
        self.pauses();
        self.limit();
        self.machine();
    }

    fn pauses(&mut self) {
        let pauses = self.profile.gc_pauses();
        let mut lengths: Vec<u64> = pauses.iter().map(|pause| pause.duration_ns).collect();
        lengths.sort_unstable();
        let (Some(longest), Some(median)) = (lengths.last(), lengths.get(lengths.len() / 2)) else {
            return;
        };
        let sum = lengths.iter().copied().fold(0, u64::saturating_add);
        let elapsed = self.profile.info().duration_ns;
        let text = format!(
            "{}, {} in all ({} of the time), median {}, longest {}",
            plural(pauses.len() as u64, "GC pause"),
            duration(sum),
            percent(sum as f64 / elapsed.max(1) as f64),
            duration(*median),
            duration(*longest)
        );
        self.line("pauses", &text);
    }

    fn limit(&mut self) {
        let Some(limit) = self.profile.cpu_limit().filter(|limit| limit.quota_ns > 0) else {
            return;
        };
        let text = format!(
            "{:.2} processors; used up in {} of {}, threads held back for {}",
            limit.quota_ns as f64 / 1e9,
            count(limit.throttled),
            plural(limit.periods, "period"),
            duration(limit.throttled_ns)
        );
        self.line("CPU limit", &text);
    }
    fn machine(&mut self) {
        let Some(sum) = self.profile.machine_sum() else {
            return;
        };
        let mean = |ns: u64| ns as f64 / sum.duration_ns.max(1) as f64;
        let stolen = match mean(sum.stolen_ns) {
            mean if mean >= 0.05 => format!(", the hypervisor had {mean:.1}"),
            _ => String::new(),
        };
        let text = format!(
            "of {}, others used {:.1}{stolen}, {:.1} were idle",
            plural(sum.processors, "processor"),
            mean(sum.others_ns()),
            mean(sum.idle_ns)
        );
        self.line("machine", &text);
    }
}

//! Stops of the whole process: pauses, the limit of its control group, and other load on its
//! processors.

use super::Report;
use crate::number::{count, duration, percent, plural};
use dwell_profile::StretchSum;

impl Report<'_> {
    /// One line for each kind of stop that occurred.
    pub(super) fn stops(&mut self) {
        self.safepoint_line();
        self.stretches();
        self.limit();
        self.machine();
    }

    /// Stretches of time, a line for each kind.
    fn stretches(&mut self) {
        let elapsed = self.profile.info().duration_ns;
        for (kind, stretches) in self.profile.stretches().kinds() {
            let Some(sum) = StretchSum::of(stretches) else {
                continue;
            };
            // Others may overlap, or lie within one another.
            let share = match kind.words.all_stand && sum.sum_ns <= elapsed {
                true => {
                    let share = percent(sum.sum_ns as f64 / elapsed.max(1) as f64);
                    format!(" ({share} of the time)")
                }
                false => String::new(),
            };
            let text = format!(
                "{}, {} in all{share}, median {}, longest {}",
                plural(sum.count, kind.words.one),
                duration(sum.sum_ns),
                duration(sum.median_ns),
                duration(sum.longest_ns)
            );
            self.line(kind.words.line, &text);
        }
    }

    fn limit(&mut self) {
        let Some(limit) = self.profile.cpu_limit().filter(|limit| limit.quota_ns > 0) else {
            return;
        };
        let text = format!(
            "{:.2} CPUs; used up in {} of {}, threads throttled for {}",
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
            "{}: other processes used {:.1}{stolen}, {:.1} were idle",
            plural(sum.processors, "CPU"),
            mean(sum.others_ns()),
            mean(sum.idle_ns)
        );
        self.line("machine", &text);
    }
}

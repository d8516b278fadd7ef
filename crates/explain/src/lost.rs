//! Cost of a finding in seconds, by which findings are ordered. Each rule defines its seconds. This
//! module does not decide whether there is a finding.
//!
//! Waits cost wall time: that of requests, if requests are known, else that of threads with work. A
//! finding on CPU time costs the time that all processors need for it. A stop costs each stopped
//! thread that time.

use crate::evidence::Facts;
use crate::share::Share;

const SECOND_NS: f64 = 1e9;

impl Facts<'_> {
    /// Wall time that threads lost. The maximum is the whole time of requests, because other
    /// threads' waits cost no more than that.
    pub(crate) fn lost_waiting(&self, waited_ns: u64) -> f64 {
        let ns = match self.all_busy().sum {
            0 => waited_ns,
            all_ns => waited_ns.min(all_ns),
        };
        ns as f64 / SECOND_NS
    }

    /// CPU time, divided by the processors. Samples that only count are a part of the recording.
    pub(crate) fn lost_on_processors(&self, share: &Share) -> f64 {
        match self.has_cpu_time() {
            true => share.ns as f64 / SECOND_NS / self.processors(),
            false => share.value * self.profile.info().duration_ns as f64 / SECOND_NS,
        }
    }

    /// A part of the time in which all stand still: they lose that part of their wall time.
    pub(crate) fn lost_by_all(&self, part: f64) -> f64 {
        let all_ns = match self.all_busy().sum {
            0 => self.profile.info().duration_ns,
            ns => ns,
        };
        part * all_ns as f64 / SECOND_NS
    }

    /// The whole of the lost time, and its name. `None` if only samples are known.
    pub(crate) fn lost_of(&self) -> Option<(u64, &'static str)> {
        let busy_ns = self.all_busy().sum;
        let recorded_ns = self.profile.info().duration_ns;
        match (busy_ns, recorded_ns) {
            (0, 0) => None,
            (0, ns) if self.has_cpu_time() => Some((ns, "the recording")),
            (0, _) => None,
            (ns, _) => Some((ns, self.all_busy_name())),
        }
    }

    /// Processors that the process can use, 1 where that is not known.
    fn processors(&self) -> f64 {
        let Some(limit) = self.profile.cpu_limit() else {
            return 1.0;
        };
        let processors = match limit.quota_ns {
            0 => limit.processors as f64,
            quota_ns => (quota_ns as f64 / SECOND_NS).min(limit.processors.max(1) as f64),
        };
        if processors > 0.0 { processors } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use crate::art::Art;
    use crate::{Options, explain};

    /// The rules that find something, in order.
    fn order(art: &mut Art) -> Vec<&'static str> {
        let explained = explain(&art.profile(), &Options::default());
        let rules = explained.findings.iter().map(|found| found.rule);
        rules.collect()
    }

    fn place(order: &[&str], rule: &str) -> usize {
        let at = order.iter().position(|of| *of == rule);
        at.unwrap_or_else(|| panic!("{rule} is not found: {order:?}"))
    }

    #[test]
    fn findings_are_ordered_by_seconds_not_by_shares() {
        // Nearly all threads that want to run are ready: 2.4 s. A lock costs far more.
        let mut art = Art::lasting(30);
        art.look("w-1", "", "runnable", "app.Hot.loop", 120, 20);
        art.cpu("w-1", "", "app.Hot.loop", 60, 10);
        for thread in ["w-1", "w-2"] {
            art.look(thread, "", "monitor", "app.Ledger.book", 900, 20)
                .detail("app.Ledger@1");
        }
        art.processors(2, 0, 0, 0).cpu_used(1);
        let order = order(&mut art);
        let [lock, starved] = ["lock-contention", "cpu-starvation"].map(|rule| place(&order, rule));
        assert!(lock < starved, "{order:?}");
    }

    #[test]
    fn cpu_time_counts_by_processor_against_waits() {
        // 8 s of CPU time are 8 s on one processor and 1 s on eight; the wait takes 4 s.
        for (processors, first) in [(1, "hot-path"), (8, "lock-contention")] {
            let mut art = Art::default();
            art.cpu("w-1", "GET /a", "app.Hot.loop", 800, 10);
            art.look("w-2", "GET /a", "monitor", "app.Ledger.book", 200, 20);
            art.processors(processors, 0, 0, 0);
            assert_eq!(order(&mut art)[0], first, "{processors}");
        }
    }

    #[test]
    fn time_lost_exists_for_time_only() {
        let mut art = Art::lasting(30);
        art.look("w-1", "GET /a", "monitor", "app.Ledger.book", 500, 20);
        art.cpu("w-1", "GET /a", "app.Hot.loop", 100, 10);
        let explained = explain(&art.profile(), &Options::default());
        let lost: Vec<_> = explained
            .findings
            .iter()
            .map(|it| (it.rule, it.lost_ns()))
            .collect();
        assert!(
            lost.contains(&("lock-contention", Some(10_000_000_000))),
            "{lost:?}"
        );
        let of = explained.lost_of;
        assert_eq!(of, Some((11_000_000_000, "the wall time of requests")));
        // A recording that says little has a finding about it, which costs no time.
        let mut art = Art::default();
        art.cpu("w-1", "", "app.Hot.loop", 50, 10);
        let explained = explain(&art.profile(), &Options::default());
        let thin = explained
            .findings
            .iter()
            .find(|it| it.rule == "thin-recording");
        assert_eq!(thin.map(|it| it.lost_ns()), Some(None));
    }

    #[test]
    fn pauses_count_for_all_threads_with_work() {
        let mut art = Art::default();
        for thread in ["w-1", "w-2", "w-3", "w-4"] {
            art.look(thread, "", "monitor", "app.Ledger.book", 30, 20);
            art.look(thread, "", "safepoint", "app.Part.run", 450, 20);
        }
        // 1 s of ten in which four threads stand: 3.84 s, against 2.4 s for the lock.
        (0..10).for_each(|i| art.pause(i * 1000, 100));
        let order = order(&mut art);
        assert!(place(&order, "gc-pressure") < place(&order, "lock-contention"));
    }
}

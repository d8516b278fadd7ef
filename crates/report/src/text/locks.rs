//! Time in locks: by the lock's class, with holders, and by the methods that waited.

use super::{COLUMNS, ROWS, Report};
use crate::number::{count, duration, percent, plural};
use crate::plain::shortened;
use dwell_profile::{LockClass, MonitorSums, OwnerRow, Weight};

/// Maximum number of classes with owners.
const TOLD: usize = 5;
/// Names in such a line.
const NAMES: usize = 3;

impl Report<'_> {
    /// Sampling of waits, locks and methods. Prints nothing if no waits were recorded.
    pub(super) fn locks(&mut self) {
        let profile = self.profile;
        if !profile.has_locks() {
            return;
        }
        let classes = profile.lock_classes();
        let mut all = Weight::default();
        for class in &classes {
            all += &class.blocked;
        }
        self.raw("");
        self.raw(&format!("Blocked by locks: {}", duration(all.sum)));
        if let Some(sums) = profile.monitor_sums() {
            self.monitors(sums);
        }
        let has_sums_only = profile.info().has_sums_only();
        if has_sums_only {
            self.raw("  sums by stack: the longest wait is a mean of its stack");
        } else if !profile.monitor_waits().is_empty() && profile.monitor_sums().is_none() {
            self.raw("  monitors: only waits that lasted longer than the recorder's threshold");
        }
        if !profile.has_wall() && !has_sums_only {
            self.raw("  locks of java.util.concurrent: not recorded; record with -e cpu,wall,lock");
        }
        if classes.is_empty() {
            return;
        }
        self.lock_table(&classes, &all);
        self.raw("");
        self.raw("Holders and waiters of these locks");
        for class in classes.iter().take(TOLD) {
            self.lock(class);
        }
        self.owners();
        let rows = profile.waiting_methods();
        self.raw("");
        self.raw("Methods by blocked time, callees included");
        self.raw("     total     +-      blocked   samples  method");
        for row in rows.iter().take(ROWS) {
            let head = format!(
                "{} {:>12} {:>9}  ",
                share_cells(&row.total, &all),
                duration(row.total.sum),
                count(row.total.samples),
            );
            let name = shortened(&row.name, COLUMNS.saturating_sub(head.len()));
            self.raw(&format!("{head}{name}"));
        }
        self.more(rows.len(), ROWS);
    }

    fn lock_table(&mut self, classes: &[LockClass], all: &Weight) {
        self.raw("");
        self.raw("Locks by blocked time");
        self.raw(
            "     share     +-      blocked      waits    longest   samples  class of the lock",
        );
        for class in classes.iter().take(ROWS) {
            let waits = match class.waits {
                0.0 => String::new(),
                waits => count(waits.round() as u64),
            };
            let longest = match class.longest_ns {
                0 => String::new(),
                ns => duration(ns),
            };
            let head = format!(
                "{} {:>12} {waits:>10} {longest:>10} {:>9}  ",
                share_cells(&class.blocked, all),
                duration(class.blocked.sum),
                count(class.blocked.samples),
            );
            let name = shortened(&class.name, COLUMNS.saturating_sub(head.len()));
            self.raw(&format!("{head}{name}"));
        }
        self.more(classes.len(), ROWS);
        let has_clock = self.profile.info().event_waits.is_none();
        if has_clock && classes.iter().any(|class| class.is_looks) {
            self.raw("  without a number of waits: from wall-clock samples");
        }
    }

    /// All waits for monitors, and the estimate from the recorded ones.
    fn monitors(&mut self, sums: &MonitorSums) {
        let mut chosen = Weight::default();
        for wait in self.profile.monitor_waits() {
            chosen += &wait.weight();
        }
        self.raw(&format!(
            "  monitors: {} of {} in all, exact; {} recorded, which stand for {} (+- {})",
            plural(sums.waits, "wait"),
            duration(sums.blocked_ns),
            plural(chosen.samples, "wait"),
            duration(chosen.sum),
            duration(chosen.standard_error().round() as u64),
        ));
        self.raw(&format!(
            "  all waits of at least {} are recorded, shorter ones at random",
            duration(sums.interval_ns)
        ));
        if sums.has_grown() {
            self.raw(&format!(
                "  (threshold at the end; raised from {} by the rate limit)",
                duration(sums.asked_ns)
            ));
        }
        if sums.lost > 0 {
            self.raw(&format!(
                "  lost: {} (buffer full), which stood for {}; shares are without them",
                plural(sums.lost, "wait"),
                duration(sums.lost_ns)
            ));
        }
        if sums.untold > 0 {
            self.raw(&format!(
                "  {} more could not be timed: too many virtual threads waited at once",
                plural(sums.untold, "wait")
            ));
        }
    }

    /// Where owners were, as waits asked that began.
    fn owners(&mut self) {
        let owners = self.profile.monitor_owners();
        if owners.is_empty() {
            return;
        }
        let (mut all, mut unknown) = (Weight::default(), Weight::default());
        for owner in owners {
            all += &owner.weight();
            if owner.node.is_none() {
                unknown += &owner.weight();
            }
        }
        self.raw("");
        self.raw("Activity of monitor holders when a wait began, by the time of the waits");
        self.raw(
            "     share     +-      blocked   samples  class of the lock: methods, innermost first",
        );
        let rows = self.profile.owner_rows();
        let rows: Vec<&OwnerRow> = rows.iter().filter(|row| !row.methods.is_empty()).collect();
        for row in rows.iter().take(ROWS) {
            let head = format!(
                "{} {:>12} {:>9}  ",
                share_cells(&row.blocked, &all),
                duration(row.blocked.sum),
                count(row.blocked.samples),
            );
            let mut text = format!("{}: {}", row.class, row.methods.join(" < "));
            if let Some(waiter) = &row.waiter {
                text += &format!("; waited in {waiter}");
            }
            let text = shortened(&text, COLUMNS.saturating_sub(head.len()));
            self.raw(&format!("{head}{text}"));
        }
        self.more(rows.len(), ROWS);
        self.raw(&format!(
            "  from {}, which stand for {}; holder unknown for {} ({})",
            plural(all.samples, "sampled wait"),
            duration(all.sum),
            duration(unknown.sum),
            percent(unknown.share(&all)),
        ));
    }

    fn lock(&mut self, class: &LockClass) {
        self.raw(&format!("  {}", shortened(&class.name, COLUMNS - 2)));
        let all = class.blocked.sum;
        let owners_at: u64 = class.owners_at.iter().map(|(_, ns)| ns).sum();
        for (label, names, of) in [
            ("held by", &class.owners, all),
            ("holder in", &class.owners_at, owners_at),
            ("waited in", &class.waiters, all),
        ] {
            let told: Vec<String> = names
                .iter()
                .take(NAMES)
                .map(|(name, ns)| format!("{name} {}", percent(*ns as f64 / of.max(1) as f64)))
                .collect();
            if !told.is_empty() {
                let line = format!("    {label:<14} {}", told.join(", "));
                self.raw(&shortened(&line, COLUMNS));
            }
        }
    }
}

/// `  12.3 %   0.4`: a share and its error, 17 columns.
fn share_cells(weight: &Weight, all: &Weight) -> String {
    let error = weight.share_error(all) * 100.0;
    format!("{:>10} {error:>6.1}", percent(weight.share(all)))
}

#[cfg(test)]
mod tests {
    use dwell_profile::{Builder, FrameKind, LiveObject, LiveSampling, MonitorWait, Profile};

    /// A file of another tool with a wait, and an object in use, of one function.
    fn sums(sample_event: &str) -> Profile {
        let mut builder = Builder::default();
        builder.info.sample_event = sample_event.to_owned();
        let thread = builder.thread("[all threads]", 0, 1, false);
        let marker = builder.marker("sync.(*Mutex).Lock", FrameKind::Other);
        let node = builder.stack([marker]);
        let class = builder.name("sync.(*Mutex).Lock");
        builder.monitor_waits.push(MonitorWait {
            time_ns: 0,
            duration_ns: 1_000_000,
            weight_ns: 5_000_000,
            thread,
            node,
            class,
            context: None,
            owner: None,
        });
        let allocated = dwell_profile::Allocation {
            time_ns: 0,
            thread,
            node,
            class,
            bytes: 4096,
            size: 64,
            context: None,
        };
        builder.live.push(LiveObject {
            allocated,
            age_ns: 0,
            collections: 1,
        });
        builder.live_sampling = Some(LiveSampling::default());
        let missing = [
            "no threads",
            "no CPU time",
            "no wall time",
            "no safepoints",
            "no pauses",
        ];
        builder.warnings.push(missing.join(", ").repeat(2));
        builder.finish()
    }

    #[test]
    fn sums_of_other_tools_have_no_threshold_and_no_ages() {
        let text = crate::text(&sums("pprof"));
        assert!(
            text.contains("sums by stack: the longest wait is a mean"),
            "{text}"
        );
        for absent in ["threshold", "java.util.concurrent", "thirds: of", "100/0/0"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
        assert!(
            text.contains("no safepoints, no pauses\n"),
            "not cut: {text}"
        );
        let jdk = crate::text(&sums("jdk.ExecutionSample"));
        assert!(jdk.contains("the recorder's threshold") && jdk.contains("java.util.concurrent"));
    }
}

//! A summary of a recording in a dozen lines, for the end of a recording.

use std::fmt::Write as _;

use dwell_profile::{GroupBy, Profile, Unit, Weight, sort_by_total};

use crate::explanation::{in_short, wrapped};
use crate::number::{bytes, count, duration, percent};
use crate::plain::{plain, shortened};
use crate::self_check::warnings;

/// Rows of each table.
const ROWS: usize = 5;
/// Width of a frame's name.
const NAME_COLUMNS: usize = 86;
/// Causes of failure that are named.
const CAUSES: usize = 3;

/// Top frames, users of the time, causes of slowness, failed stacks and the profiler's overhead.
pub fn findings(profile: &Profile) -> String {
    let total = profile.total();
    let mut text = head(profile, &total);
    if total.samples == 0 {
        text.push_str(
            "no thread used CPU time during the recording, or no sample could be taken\n",
        );
        return text;
    }
    let share = |weight: &Weight| percent(weight.share(&total));
    let roles: Vec<String> = profile
        .role_shares()
        .iter()
        .map(|role| format!("{} {}", role.role.label(), share(&role.weight)))
        .collect();
    let _ = writeln!(text, "spent by {}", roles.join(", "));
    let mut rows = profile.top(GroupBy::Method, |_| true);
    let own = rows.iter().filter(|row| row.own.sum > 0);
    let own = own.map(|row| (share(&row.own), row.name.as_str()));
    table(&mut text, "top frames by self CPU", own);
    let forks = profile.forks();
    rows.retain(|row| forks.contains(&row.name));
    sort_by_total(&mut rows);
    let forking = rows
        .iter()
        .map(|row| (share(&row.total), row.name.as_str()));
    let title = "top frames by total CPU (where stacks branch)";
    table(&mut text, title, forking);
    classes(&mut text, profile);
    alive(&mut text, profile);
    locks(&mut text, profile);
    text.push('\n');
    reasons(&mut text, profile);
    tail(&mut text, profile, &total, &share);
    text
}

/// Findings of the rules.
fn reasons(text: &mut String, profile: &Profile) {
    let explanation = dwell_explain::explain(profile, &dwell_explain::Options::default());
    let told = in_short(&explanation);
    if !told.is_empty() {
        text.push_str("findings (details: dwell explain FILE.jfr)\n");
        text.push_str(&told);
        text.push('\n');
    }
    if let Some(check) = &explanation.self_check {
        for warning in warnings(check) {
            wrapped(text, "warning: ", 9, &warning);
        }
    }
}

/// Allocated bytes by class, if they were recorded.
fn classes(text: &mut String, profile: &Profile) {
    let (classes, all) = (profile.allocated_classes(), profile.allocated());
    if classes.is_empty() {
        return;
    }
    let rows = classes.iter().map(|class| {
        let share = percent(class.bytes.share(&all));
        (share, class.name.as_str())
    });
    table(text, "top classes by bytes allocated", rows);
}

/// Live bytes by class, if they were recorded.
fn alive(text: &mut String, profile: &Profile) {
    let (classes, all) = (profile.alive_classes(), profile.alive().bytes);
    let rows = classes.iter().filter(|class| class.alive.bytes.samples > 0);
    let rows: Vec<(String, &str)> = rows
        .map(|class| {
            let share = percent(class.alive.bytes.share(&all));
            (share, class.name.as_str())
        })
        .collect();
    if !rows.is_empty() {
        table(
            text,
            "top classes by bytes alive at the end",
            rows.into_iter(),
        );
    }
}

/// Waits by lock, if they were recorded.
fn locks(text: &mut String, profile: &Profile) {
    let classes = profile.lock_classes();
    let mut all = Weight::default();
    for class in &classes {
        all += &class.blocked;
    }
    if classes.is_empty() {
        return;
    }
    let rows = classes.iter().map(|class| {
        let share = percent(class.blocked.share(&all));
        (share, class.name.as_str())
    });
    let title = format!("top locks by blocked time, {} in all", duration(all.sum));
    table(text, &title, rows);
}

fn table<'r>(text: &mut String, title: &str, rows: impl Iterator<Item = (String, &'r str)>) {
    let _ = writeln!(text, "\n{title}");
    for (share, name) in rows.take(ROWS) {
        let _ = writeln!(text, "  {share:>7}  {}", shortened(name, NAME_COLUMNS));
    }
}

fn head(profile: &Profile, total: &Weight) -> String {
    let info = profile.info();
    let mut text = format!(
        "recorded {}, {} samples",
        duration(info.duration_ns),
        count(total.samples)
    );
    if profile.unit() == Unit::Nanoseconds {
        let of = crate::words::of_time(profile);
        let _ = write!(text, ", {} {of}", duration(total.sum));
    }
    if let Some(share) = profile.cpu_share() {
        let _ = write!(text, " ({} of the process's CPU time)", percent(share));
    }
    if !info.engine.is_empty() {
        let _ = write!(text, ", engine {}", plain(&info.engine));
    }
    text.push('\n');
    text
}

fn tail(text: &mut String, profile: &Profile, total: &Weight, share: &dyn Fn(&Weight) -> String) {
    let failures = profile.failures();
    let causes: Vec<String> = failures
        .iter()
        .take(CAUSES)
        .map(|failure| plain(&failure.cause))
        .collect();
    let _ = write!(text, "failed stacks {}", share(&profile.failed()));
    let _ = match causes.is_empty() {
        true => writeln!(text),
        false => writeln!(text, " ({})", causes.join(", ")),
    };
    let lost = (profile.losses().iter()).fold(0u64, |sum, loss| sum.saturating_add(loss.samples));
    if lost > 0 {
        let all = total.samples.saturating_add(lost);
        let _ = writeln!(text, "lost samples {} of {}", count(lost), count(all));
    }
    if let Some(cost) = profile.self_cost() {
        let _ = writeln!(
            text,
            "dwell itself: {:.2} % of one CPU, handler {} median and {} p99, {}",
            profile.self_cost_share().unwrap_or(0.0) * 100.0,
            duration(cost.handler_p50_ns),
            duration(cost.handler_p99_ns),
            bytes(cost.memory_bytes),
        );
    }
    if let Some(unread) = profile.unread() {
        let _ = writeln!(text, "note: the file {}", crate::unread_words(unread));
    }
    for warning in profile.warnings() {
        let _ = writeln!(text, "note: {}", plain(warning));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::full;
    use dwell_profile::{Allocation, FrameKind, LiveObject};

    #[test]
    fn findings_name_frames_shares_and_failures() {
        let text = findings(&full().finish());
        for line in [
            "recorded 30.0 s, 3 samples, 1.00 s of CPU time (80.0 % of the process's CPU time), \
             engine perf",
            "   60.0 %  a.A.y",
            "   90.0 %  a.A.x",
            "failed stacks 30.0 % (no_table)",
            "lost samples 3 of 6",
            "dwell itself: 1.00 % of one CPU, handler 1.30 us median and 0 ns p99, 19.1 MiB",
            "note: the last chunk is torn",
        ] {
            assert!(
                text.lines().any(|l| l == line),
                "no line {line:?} in\n{text}"
            );
        }
    }

    #[test]
    fn findings_list_classes_if_allocations_were_recorded() {
        let mut builder = full();
        let silent = findings(&full().finish());
        assert!(!silent.contains("allocated"), "{silent}");
        for (class, bytes) in [("byte[]", 3000), ("a.\u{1b}[2J", 1000)] {
            let frame = builder.marker(class, FrameKind::Other);
            let node = builder.child(1, frame);
            let class = builder.name(class);
            builder.allocations.push(Allocation {
                time_ns: 0,
                thread: 0,
                node,
                class,
                bytes,
                size: 50,
                context: None,
            });
        }
        let text = findings(&builder.finish());
        let rows = text.split("top classes by bytes allocated\n").nth(1);
        let rows: Vec<&str> = rows.unwrap().lines().take(2).collect();
        assert_eq!(rows[0], "   75.0 %  byte[]");
        assert!(
            rows[1].starts_with("   25.0 %  a.") && !text.contains('\u{1b}'),
            "{rows:?}"
        );
    }

    #[test]
    fn findings_list_classes_of_live_objects() {
        let mut builder = full();
        let node = builder.child(1, 0);
        for (class, bytes, collections) in [("a.Leak", 900, 1), ("byte[]", 100, 2), ("c", 50, 0)] {
            let class = builder.name(class);
            builder.live.push(LiveObject {
                allocated: Allocation {
                    time_ns: 0,
                    thread: 0,
                    node,
                    class,
                    bytes,
                    size: 50,
                    context: None,
                },
                age_ns: 1,
                collections,
            });
        }
        let text = findings(&builder.finish());
        let rows = text.split("top classes by bytes alive at the end\n").nth(1);
        let rows: Vec<&str> = rows.unwrap().lines().take(3).collect();
        assert_eq!(rows, ["   90.0 %  a.Leak", "   10.0 %  byte[]", ""]);
    }

    #[test]
    fn findings_list_contended_locks_if_waits_were_recorded() {
        let mut builder = full();
        for (class, ms) in [("a.Ledger", 3), ("a.\u{1b}[2J", 1)] {
            let frame = builder.marker(class, FrameKind::Other);
            let node = builder.child(1, frame);
            let class = builder.name(class);
            builder.monitor_waits.push(dwell_profile::MonitorWait {
                time_ns: 0,
                duration_ns: ms * 1_000_000,
                weight_ns: ms * 1_000_000,
                thread: 0,
                node,
                class,
                context: None,
                owner: Some(0),
            });
        }
        let class = builder.name("a.Ledger");
        for (node, ms) in [(Some(1), 3), (None, 1)] {
            builder.monitor_owners.push(dwell_profile::MonitorOwner {
                time_ns: 0,
                duration_ns: ms * 1_000_000,
                weight_ns: ms * 1_000_000,
                class,
                owner: Some(0),
                node,
                failure: None,
                waiter: Some(0),
                waiter_node: 1,
            });
        }
        let profile = builder.finish();
        let text = findings(&profile);
        let rows = text
            .split("top locks by blocked time, 4.00 ms in all\n")
            .nth(1);
        let rows: Vec<&str> = rows.unwrap().lines().take(2).collect();
        assert_eq!(rows[0], "   75.0 %  a.Ledger");
        assert!(
            rows[1].starts_with("   25.0 %  a.") && !text.contains('\u{1b}'),
            "{rows:?}"
        );
        let text = crate::text(&profile);
        for line in [
            "Blocked by locks: 4.00 ms",
            "  locks of java.util.concurrent: not recorded; record with -e cpu,wall,lock",
            "    75.0 %    0.0      3.00 ms          1    3.00 ms         1  a.Ledger",
            "  from 2 sampled waits, scaled to the 3.00 ms blocked; holder unknown for 750 us \
             (25.0 %)",
        ] {
            assert!(text.lines().any(|l| l == line), "no {line:?} in\n{text}");
        }
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn an_empty_recording_says_so() {
        let text = findings(&dwell_profile::Builder::default().finish());
        assert!(text.contains("no thread used CPU time"), "{text}");
    }
}

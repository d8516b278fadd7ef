//! What a recording says in a dozen lines, for the end of a recording.

use std::fmt::Write as _;

use dwell_profile::{GroupBy, Profile, Row, Unit, Weight, sort_by_total};

use crate::explanation::in_short;
use crate::number::{bytes, count, duration, percent};
use crate::plain::{plain, shortened};

/// Rows of each table.
const ROWS: usize = 5;
/// Width of a frame's name.
const NAME_COLUMNS: usize = 86;
/// Causes of failure that are named.
const CAUSES: usize = 3;

/// The top frames, who used the time, why it is slow, what failed, and what the profiler cost.
pub fn findings(profile: &Profile) -> String {
    let total = profile.total();
    let mut text = head(profile, &total);
    if total.samples == 0 {
        text.push_str("no thread used CPU time while recorded, or no sample could be taken\n");
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
    let own: Vec<&Row> = rows.iter().filter(|row| row.own.sum > 0).collect();
    table(&mut text, "top frames by self CPU", &own, |row| {
        share(&row.own)
    });
    let forks = profile.forks();
    rows.retain(|row| forks.contains(&row.name));
    sort_by_total(&mut rows);
    let rows: Vec<&Row> = rows.iter().collect();
    table(
        &mut text,
        "top frames by total CPU (where stacks fork)",
        &rows,
        |row| share(&row.total),
    );
    text.push('\n');
    reasons(&mut text, profile);
    tail(&mut text, profile, &total, &share);
    text
}

/// What the rules find.
fn reasons(text: &mut String, profile: &Profile) {
    let explanation = dwell_explain::explain(profile, &dwell_explain::Options::default());
    let told = in_short(&explanation);
    if !told.is_empty() {
        text.push_str("findings (dwell explain FILE.jfr tells more)\n");
        text.push_str(&told);
        text.push('\n');
    }
}

fn table(text: &mut String, title: &str, rows: &[&Row], share: impl Fn(&Row) -> String) {
    let _ = writeln!(text, "\n{title}");
    for row in rows.iter().take(ROWS) {
        let _ = writeln!(
            text,
            "  {:>7}  {}",
            share(row),
            shortened(&row.name, NAME_COLUMNS)
        );
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
        let _ = write!(text, ", {} of CPU time", duration(total.sum));
    }
    if let Some(share) = profile.cpu_share() {
        let _ = write!(text, " ({} of what the process used)", percent(share));
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
            "dwell itself: {:.2} % of one core, handler {} median and {} p99, {}",
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

    #[test]
    fn findings_name_frames_shares_and_failures() {
        let text = findings(&full().finish());
        for line in [
            "recorded 30.0 s, 3 samples, 1.00 s of CPU time (80.0 % of what the process used), \
             engine perf",
            "   60.0 %  a.A.y",
            "   90.0 %  a.A.x",
            "failed stacks 30.0 % (no_table)",
            "lost samples 3 of 6",
            "dwell itself: 1.00 % of one core, handler 1.30 us median and 0 ns p99, 19.1 MiB",
            "note: the last chunk is torn",
        ] {
            assert!(
                text.lines().any(|l| l == line),
                "no line {line:?} in\n{text}"
            );
        }
    }

    #[test]
    fn an_empty_recording_says_so() {
        let text = findings(&dwell_profile::Builder::default().finish());
        assert!(text.contains("no thread used CPU time"), "{text}");
    }
}

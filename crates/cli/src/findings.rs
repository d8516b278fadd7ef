//! What a recording says in a dozen lines, for the end of `record` and `demo`.

use crate::recording;
use crate::units;
use anyhow::Result;
use dwell_profile::{GroupBy, Profile, Row, Unit, Weight, merged_tree};
use dwell_report::{plain, shortened};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// Rows of each table.
const ROWS: usize = 5;
/// Width of a frame's name.
const NAME_COLUMNS: usize = 86;
/// Stacks with a smaller share of all time do not make a method one where time divides.
const SHARE_MIN: f64 = 0.005;
/// A method that passes more than this part of its time on to one other does not divide it.
const PASSED_ON_MAX: f64 = 0.95;
/// Causes of failure that are named.
const CAUSES: usize = 3;

/// Makes the page of a recording and prints what was found and where it is.
pub fn write_and_print(jfr: &Path, html: &Path) -> Result<()> {
    let profile = recording::load(jfr)?;
    recording::write_html(&profile, jfr, html)?;
    let mut text = findings(&profile);
    let _ = write!(text, "\n{}\n{}\n", jfr.display(), html.display());
    crate::print(&text)
}

/// The findings.
pub fn findings(profile: &Profile) -> String {
    let total = profile.total();
    let mut text = head(profile, &total);
    if total.samples == 0 {
        text.push_str("no thread used CPU time while recorded, or no sample could be taken\n");
        return text;
    }
    let share = |weight: &Weight| format!("{:.1} %", weight.share(&total) * 100.0);
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
    let forks = forks(profile);
    rows.retain(|row| forks.contains(&row.name));
    rows.sort_by(|a, b| {
        b.total
            .sum
            .cmp(&a.total.sum)
            .then_with(|| a.name.cmp(&b.name))
    });
    let rows: Vec<&Row> = rows.iter().collect();
    table(
        &mut text,
        "top frames by total CPU (where stacks fork)",
        &rows,
        |row| share(&row.total),
    );
    text.push('\n');
    tail(&mut text, profile, &total, &share);
    text
}

/// Java methods in which the time divides. A method that does nothing but call the next one (the
/// run methods of threads, filters, proxies) has the same total as that one and says nothing.
fn forks(profile: &Profile) -> HashSet<String> {
    let grouped = profile.group(GroupBy::Method);
    let (tree, merged) = merged_tree(profile.tree(), &grouped.of_frame);
    let mut own = vec![0u64; tree.len()];
    for (weight, &node) in profile.node_weights(|_| true).iter().zip(&merged) {
        if let Some(sum) = own.get_mut(node as usize) {
            *sum = sum.saturating_add(weight.sum);
        }
    }
    let mut totals = own;
    let mut heaviest_child = vec![0u64; tree.len()];
    // Children have larger numbers than their parents.
    for node in (1..tree.len()).rev() {
        let parent = tree.parent(node as u32) as usize;
        let total = totals.get(node).copied().unwrap_or(0);
        if let (Some(above), Some(heaviest)) =
            (totals.get_mut(parent), heaviest_child.get_mut(parent))
        {
            *above = above.saturating_add(total);
            *heaviest = total.max(*heaviest);
        }
    }
    let all = totals.first().copied().unwrap_or(0) as f64;
    let is_java: HashSet<u32> = profile
        .frames()
        .iter()
        .zip(&grouped.of_frame)
        .filter(|(frame, _)| frame.kind.is_java())
        .map(|(_, &group)| group)
        .collect();
    let divides = |node: &usize| {
        let (total, heaviest) = (totals[*node] as f64, heaviest_child[*node] as f64);
        total >= all * SHARE_MIN && heaviest <= total * PASSED_ON_MAX
    };
    (1..tree.len())
        .filter(divides)
        .map(|node| tree.key(node as u32))
        .filter(|group| is_java.contains(group))
        .filter_map(|group| grouped.names.get(group as usize).cloned())
        .collect()
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
    let time = |ns: u64| units::age(Duration::from_nanos(ns));
    let mut text = format!(
        "recorded {}, {} samples",
        time(info.duration_ns),
        total.samples
    );
    if profile.unit() == Unit::Nanoseconds {
        let _ = write!(text, ", {} of CPU time", time(total.sum));
    }
    if let Some(used) = profile.cpu_use().map(|cpu| cpu.user_ns + cpu.system_ns)
        && used > 0
    {
        let seen = total.sum as f64 / used as f64 * 100.0;
        let _ = write!(text, " ({seen:.1} % of what the process used)");
    }
    if !info.engine.is_empty() {
        let _ = write!(text, ", engine {}", plain(&info.engine));
    }
    text.push('\n');
    text
}

fn tail(text: &mut String, profile: &Profile, total: &Weight, share: &dyn Fn(&Weight) -> String) {
    let failures = profile.failures();
    let mut failed = Weight::default();
    failures
        .iter()
        .for_each(|failure| failed += &failure.weight);
    let causes: Vec<String> = failures
        .iter()
        .take(CAUSES)
        .map(|failure| plain(&failure.cause))
        .collect();
    let _ = write!(text, "failed stacks {}", share(&failed));
    let _ = match causes.is_empty() {
        true => writeln!(text),
        false => writeln!(text, " ({})", causes.join(", ")),
    };
    let lost: u64 = profile.losses().iter().map(|loss| loss.samples).sum();
    if lost > 0 {
        let _ = writeln!(text, "lost samples {lost} of {}", total.samples + lost);
    }
    if let Some(cost) = profile.self_cost() {
        let recorded = profile.info().duration_ns.max(1) as f64;
        let _ = writeln!(
            text,
            "dwell itself: {:.2} % of one core, handler {:.1} us median and {:.1} us p99, {} MB",
            cost.agent_cpu_ns as f64 / recorded * 100.0,
            cost.handler_p50_ns as f64 / 1e3,
            cost.handler_p99_ns as f64 / 1e3,
            cost.memory_bytes.div_ceil(1 << 20),
        );
    }
    for warning in profile.warnings() {
        let _ = writeln!(text, "note: {}", plain(warning));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{CpuUse, SelfCost, text_art};

    #[test]
    fn findings_name_frames_shares_and_failures() {
        let mut builder = text_art::builder(
            "thread:  main       main      gc
             weight:  600000000  300000000 100000000
             failure: -          no_table  -
                      a.A.x:1    a.A.x:2   libjvm.so.WorkerThread::run[vm]
                      a.A.y[c1]  -         -",
        );
        builder.info.duration_ns = 30_000_000_000;
        builder.info.engine = "perf".to_owned();
        builder.cpu_use = Some(CpuUse {
            user_ns: 900_000_000,
            system_ns: 100_000_000,
        });
        builder.self_cost = Some(SelfCost {
            agent_cpu_ns: 300_000_000,
            handler_p50_ns: 1_300,
            memory_bytes: 20_000_000,
            ..SelfCost::default()
        });
        let text = findings(&builder.finish());
        for line in [
            "recorded 30.0s, 3 samples, 1.0s of CPU time (100.0 % of what the process used), \
             engine perf",
            "   60.0 %  a.A.y",
            "   90.0 %  a.A.x",
            "failed stacks 30.0 % (no_table)",
            "dwell itself: 1.00 % of one core, handler 1.3 us median and 0.0 us p99, 20 MB",
        ] {
            assert!(
                text.lines().any(|l| l == line),
                "no line {line:?} in\n{text}"
            );
        }
    }

    #[test]
    fn methods_that_only_pass_time_on_are_left_out_of_totals() {
        let profile = text_art::profile(
            "weight: 60      40      1
                     a.Run.r a.Run.r a.Run.r
                     a.All.s a.All.s -
                     a.A.x   a.B.y   -",
        );
        let found = forks(&profile);
        let mut names: Vec<&str> = found.iter().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["a.A.x", "a.All.s", "a.B.y"]);
    }

    #[test]
    fn an_empty_recording_says_so() {
        let text = findings(&dwell_profile::Builder::default().finish());
        assert!(text.contains("no thread used CPU time"), "{text}");
    }
}

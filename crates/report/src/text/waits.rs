//! The part of the text that tells wall time: by cause, by group of threads, and where most was
//! waited.

use std::collections::BTreeMap;

use dwell_profile::{NodeId, Wall, WallFilter, Weight, group_of};

use unicode_width::UnicodeWidthStr;

use super::{COLUMNS, Report};
use crate::number::{count, duration, percent};
use crate::plain::shortened;

/// Rows of the table of groups, and the width of a name there.
const GROUP_ROWS: usize = 15;
const NAME_COLUMNS: usize = 24;
/// Rows of the table of places.
const PLACE_ROWS: usize = 15;
/// Waits of pools for work are no news.
const IDLE: &str = "idle-pool";
const RUNNING: &str = "running";

impl Report<'_> {
    /// Wall time of Java threads.
    pub(super) fn waits(&mut self) {
        if !self.profile.has_wall() {
            return;
        }
        let filter = WallFilter::default();
        let by_cause = self.profile.wall_by(&filter, |wall| wall.cause.to_owned());
        let mut all = Weight::default();
        by_cause.iter().for_each(|(_, weight)| all += weight);
        self.raw("");
        self.raw("Wall time of Java threads by cause");
        self.raw("     share     +-         time      looks  cause");
        for (cause, weight) in &by_cause {
            let head = row_head(weight, &all);
            let text = shortened(cause, COLUMNS - head.len());
            self.raw(&format!("{head}{text}"));
        }
        let profile = self.profile;
        self.groups(
            "Wall time by endpoint",
            "     share     +-         time      looks  endpoint: causes",
            &all,
            |wall| Some(profile.endpoint(wall.context?)?.to_owned()),
        );
        self.groups(
            "Wall time by group of threads (digits of names as *)",
            "     share     +-         time      looks  threads: causes",
            &all,
            |wall| Some(group_of(profile.thread_name(wall.thread))),
        );
        self.places(&filter, &all);
    }

    /// A row for each name that `name` gives, with the causes of its time.
    fn groups(
        &mut self,
        title: &str,
        head: &str,
        all: &Weight,
        name: impl Fn(&Wall<'_>) -> Option<String>,
    ) {
        let mut groups: BTreeMap<String, (Weight, BTreeMap<&str, Weight>)> = BTreeMap::new();
        let filter = WallFilter::default();
        for wall in self.profile.wall(&filter) {
            let Some(name) = name(&wall) else { continue };
            let group = groups.entry(name).or_default();
            group.0 += &wall.weight;
            *group.1.entry(wall.cause).or_default() += &wall.weight;
        }
        if groups.is_empty() {
            return;
        }
        let mut rows: Vec<_> = groups.into_iter().collect();
        rows.sort_by_key(|(_, (weight, _))| std::cmp::Reverse(weight.sum));
        self.raw("");
        self.raw(title);
        self.raw(head);
        for (name, (weight, causes)) in rows.iter().take(GROUP_ROWS) {
            let mut causes: Vec<_> = causes.iter().collect();
            causes.sort_by_key(|(_, weight)| std::cmp::Reverse(weight.sum));
            let head = row_head(weight, all);
            let mut text = shortened(name, NAME_COLUMNS);
            for (place, (cause, part)) in causes.iter().enumerate() {
                let divider = if place == 0 { ": " } else { ", " };
                let next = format!("{divider}{cause} {}", percent(part.share(weight)));
                // The last causes of a row are the smallest.
                if text.width() + next.width() > COLUMNS - head.len() {
                    break;
                }
                text += &next;
            }
            self.raw(&format!("{head}{text}"));
        }
        self.more(rows.len(), GROUP_ROWS);
    }

    /// Where threads waited most, for what, and who had it.
    fn places(&mut self, filter: &WallFilter, all: &Weight) {
        let profile = self.profile;
        let mut names: BTreeMap<NodeId, String> = BTreeMap::new();
        let mut place = |node: NodeId| -> String {
            let name = || {
                profile
                    .place(node)
                    .unwrap_or_else(|| "[no Java frame]".to_owned())
            };
            names.entry(node).or_insert_with(name).clone()
        };
        let is_wait = |wall: &Wall<'_>| wall.cause != IDLE && wall.cause != RUNNING;
        let mut sums: BTreeMap<(&str, String, String), Waits> = BTreeMap::new();
        for wall in profile.wall(filter).filter(is_wait) {
            let detail = wall.detail.map_or("", |id| profile.names().text(id));
            // Which one of a class's monitors it was does not matter here.
            let detail = match wall.cause {
                "monitor" | "object-wait" => detail.split('@').next().unwrap_or(""),
                _ => detail,
            };
            let key = (wall.cause, place(wall.node), detail.to_owned());
            let row = sums.entry(key).or_default();
            row.0 += &wall.weight;
            if let Some((thread, node)) = wall.owner {
                let at = node.map_or("running".to_owned(), &mut place);
                let owner = format!("{} in {at}", group_of(profile.thread_name(thread)));
                *row.1.entry(owner).or_default() += wall.weight.sum;
            }
        }
        if sums.is_empty() {
            return;
        }
        let mut rows: Vec<_> = sums.into_iter().collect();
        rows.sort_by_key(|(_, (weight, _))| std::cmp::Reverse(weight.sum));
        self.raw("");
        self.raw("Where threads waited most (the program's innermost method)");
        self.raw("     share     +-         time      looks  cause: method, on what");
        for ((cause, method, detail), (weight, owners)) in rows.iter().take(PLACE_ROWS) {
            let head = row_head(weight, all);
            let room = COLUMNS - head.len();
            let mut text = format!("{cause}: {method}");
            if !detail.is_empty() {
                text = format!("{text}, {detail}");
            }
            self.raw(&format!("{head}{}", shortened(&text, room)));
            if let Some((owner, ns)) = owners.iter().max_by_key(|(_, ns)| **ns) {
                let share = percent(*ns as f64 / weight.sum.max(1) as f64);
                let text = format!("held {share} of it by {owner}");
                let indent = " ".repeat(head.len() + 2);
                self.raw(&format!("{indent}{}", shortened(&text, room - 2)));
            }
        }
        self.more(rows.len(), PLACE_ROWS);
    }
}

/// What was waited for at a place, and how much of it for which owner.
type Waits = (Weight, BTreeMap<String, u64>);

/// Share, its error, time and looks: 43 columns.
fn row_head(weight: &Weight, all: &Weight) -> String {
    let error = weight.share_error(all) * 100.0;
    format!(
        "{:>10} {error:>6.1} {:>12} {:>10}  ",
        percent(weight.share(all)),
        duration(weight.sum),
        count(weight.samples)
    )
}

#[cfg(test)]
mod tests {
    use dwell_profile::{FrameKind, Look, Sample};

    #[test]
    fn tells_causes_groups_places_and_owners() {
        let mut builder = dwell_profile::Builder::default();
        let worker = builder.thread("worker-1", 1, 1, false);
        let other = builder.thread("worker-2", 2, 2, false);
        let method = builder.method("app.Bank", "transfer", "");
        let frame = builder.frame(method, 7, FrameKind::C2);
        let node = builder.stack([frame]);
        let (monitor, detail) = (
            builder.cause("monitor"),
            builder.cause("app.Account@7f0012"),
        );
        let endpoint = builder.name("GET /transfer");
        let context = builder.context(dwell_profile::Context {
            endpoint: Some(endpoint),
            ..dwell_profile::Context::default()
        });
        builder.sample(Sample {
            time_ns: 0,
            thread: other,
            node,
            weight: 250_000_000,
            failure: None,
            context: Some(context),
        });
        builder.look(Look {
            time_ns: 0,
            duration_ns: 0,
            thread: worker,
            node,
            cause: monitor,
            weight_ns: 750_000_000,
            count: 3,
            context: Some(context),
            detail: Some(detail),
            owner: Some(other),
            owner_node: None,
        });
        let text = crate::text(&builder.finish());
        for line in [
            "    75.0 %   21.7       750 ms          3  monitor",
            "    25.0 %   21.7       250 ms          1  running",
            "   100.0 %    0.0       1.00 s          4  GET /transfer: monitor 75.0 %, \
             running 25.0 %",
            "   100.0 %    0.0       1.00 s          4  worker-*: monitor 75.0 %, running 25.0 %",
            "    75.0 %   21.7       750 ms          3  monitor: app.Bank.transfer, app.Account",
            &format!("{:45}held 100.0 % of it by worker-* in running", ""),
        ] {
            assert!(
                text.lines().any(|l| l == line),
                "no line {line:?} in\n{text}"
            );
        }
    }
}

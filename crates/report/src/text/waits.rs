//! The part of the text about wall time: by cause, by thread group, and the places with the longest
//! waits.

use std::collections::BTreeMap;

use dwell_explain::short;
use dwell_profile::{
    DERIVED_MARK, IDLE, NodeId, Platform, Profile, Wall, WallFilter, Weight, group_of,
};

use unicode_width::UnicodeWidthStr;

use super::{COLUMNS, Report};
use crate::number::{count, duration, percent};
use crate::plain::{columns, shortened};

/// Rows of the table of groups, and the width of a name there, or as much as names need to differ.
const GROUP_ROWS: usize = 15;
const NAME_COLUMNS: usize = 24;
const NAME_COLUMNS_MAX: usize = 40;
/// Rows of the table of places.
const PLACE_ROWS: usize = 15;
const RUNNING: &str = "running";

/// The width at which no two of these names look alike, if there is one.
fn columns_that_differ(names: &[&str]) -> usize {
    let differ = |columns: &usize| {
        let mut shown: Vec<_> = names.iter().map(|name| shortened(name, *columns)).collect();
        shown.sort_unstable();
        shown.windows(2).all(|two| two[0] != two[1])
    };
    (NAME_COLUMNS..NAME_COLUMNS_MAX)
        .find(differ)
        .unwrap_or(NAME_COLUMNS_MAX)
}

impl Report<'_> {
    /// Wall time of threads of the runtime.
    pub(super) fn waits(&mut self) {
        if !self.profile.has_wall() {
            return;
        }
        let profile = self.profile;
        let filter = WallFilter::default();
        let mut by_cause = profile.wall_by(&filter, |wall| wall.cause);
        by_cause.retain(|(cause, _)| self.options.idle || *cause != IDLE);
        let mut all = Weight::default();
        by_cause.iter().for_each(|(_, weight)| all += weight);
        let idle = profile.idle(&filter);
        let threads = match profile.info().platform() {
            Platform::Jvm => "Java threads",
            Platform::Mono => "Mono's threads",
        };
        let without = match idle.is_some() && !self.options.idle {
            true => ", without idle time",
            false => "",
        };
        self.raw("");
        self.raw(&format!("Wall time of {threads} by cause{without}"));
        if let Some(waits) = profile.info().event_waits {
            self.paragraph(&format!(
                "Waits are single events of the recorder; each counts as one sample per 20 ms. {}",
                waits.in_words()
            ));
        }
        if !by_cause.is_empty() {
            self.raw("     share     +-         time    samples  cause");
        }
        for (cause, weight) in &by_cause {
            let head = row_head(weight, &all);
            let text = shortened(cause, COLUMNS - head.len());
            self.raw(&format!("{head}{text}"));
        }
        if let Some(idle) = idle {
            let hint = match self.options.idle {
                true => "",
                false => " (report --text --idle)",
            };
            let line = format!("idle: {}{hint}", crate::idle::in_words(&idle));
            self.raw(&shortened(&line, COLUMNS));
        }
        let by_endpoint = match profile.has_derived_endpoints() {
            true => "Wall time by endpoint (from stacks)",
            false => "Wall time by endpoint",
        };
        self.groups(
            by_endpoint,
            "     share     +-         time    samples  endpoint: causes",
            &all,
            // The title has the mark: a name has little room.
            |wall| Some(profile.endpoint(wall.context?)?.replace(DERIVED_MARK, "")),
        );
        self.groups(
            "Wall time by thread group (digits of names as *)",
            "     share     +-         time    samples  threads: causes",
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
        for wall in told(self.profile, &filter, self.options.idle) {
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
        let shown = rows.iter().take(GROUP_ROWS);
        let names: Vec<&str> = shown.clone().map(|(name, _)| &name[..]).collect();
        let name_columns = columns_that_differ(&names);
        for (name, (weight, causes)) in shown {
            let mut causes: Vec<_> = causes.iter().collect();
            causes.sort_by_key(|(_, weight)| std::cmp::Reverse(weight.sum));
            let head = row_head(weight, all);
            let mut text = shortened(name, name_columns);
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

    /// Places with the longest waits, their objects and the holders.
    fn places(&mut self, filter: &WallFilter, all: &Weight) {
        let profile = self.profile;
        let mut names: BTreeMap<NodeId, String> = BTreeMap::new();
        let mut place = |node: NodeId| -> String {
            let name = || {
                profile
                    .place(node)
                    .unwrap_or_else(|| format!("[no {} frame]", profile.info().platform().code()))
            };
            names.entry(node).or_insert_with(name).clone()
        };
        let told = told(profile, filter, self.options.idle);
        let mut sums: BTreeMap<(&str, String, String), Waits> = BTreeMap::new();
        for wall in told.filter(|wall| wall.cause != RUNNING) {
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
                let group = group_of(profile.thread_name(thread));
                let owner = match node.map(&mut place) {
                    Some(at) => format!("{group} in {at}"),
                    None => format!("{group}, which ran"),
                };
                *row.1.entry(owner).or_default() += wall.weight.sum;
            }
        }
        if sums.is_empty() {
            return;
        }
        let mut rows: Vec<_> = sums.into_iter().collect();
        rows.sort_by_key(|(_, (weight, _))| std::cmp::Reverse(weight.sum));
        self.raw("");
        let outside = match profile.info().platform() {
            Platform::Jvm => "the JDK",
            Platform::Mono => "Mono's libraries",
        };
        // Libraries of the program count as the program. Some stacks have only frames of the JDK.
        self.raw(&format!(
            "Where threads waited most (innermost frame outside {outside}, if any)"
        ));
        self.raw("     share     +-         time    samples  cause: method, on what");
        for ((cause, method, detail), (weight, owners)) in rows.iter().take(PLACE_ROWS) {
            let head = row_head(weight, all);
            let room = COLUMNS - head.len();
            self.raw(&format!("{head}{}", waits_for(cause, method, detail, room)));
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

/// The wall time that the tables are made of.
fn told<'p>(
    profile: &'p Profile,
    filter: &'p WallFilter,
    idle: bool,
) -> impl Iterator<Item = Wall<'p>> {
    (profile.wall(filter)).filter(move |wall| idle || wall.cause != IDLE)
}

/// Waits at a place: the sum, and its parts by owner.
type Waits = (Weight, BTreeMap<String, u64>);

/// The wait in one line; without packages if there is no room for them.
fn waits_for(cause: &str, method: &str, detail: &str, room: usize) -> String {
    let told = |method: &str, detail: &str| match detail {
        "" => format!("{cause}: {method}"),
        detail => format!("{cause}: {method}, {detail}"),
    };
    let own = short(method);
    let is_name = |c: char| c.is_alphanumeric() || "._$*".contains(c);
    let class =
        match detail.starts_with(|c: char| c.is_ascii_lowercase()) && detail.chars().all(is_name) {
            true => detail.rsplit_once('.').map_or(detail, |(_, class)| class),
            false => detail,
        };
    let texts = [told(method, detail), told(own, detail), told(own, class)];
    let fitting = texts.iter().find(|text| columns(text) <= room);
    shortened(fitting.unwrap_or(&texts[2]), room)
}

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
    fn packages_give_way_before_names_do() {
        let told = |room| {
            let method = "org.h2.mvstore.tx.Transaction.waitForThisToEnd";
            super::waits_for("object-wait", method, "org.h2.mvstore.tx.Transaction", room)
        };
        let own = "object-wait: Transaction.waitForThisToEnd";
        assert!(told(100).ends_with("org.h2.mvstore.tx.Transaction"));
        assert_eq!(told(75), format!("{own}, org.h2.mvstore.tx.Transaction"));
        assert_eq!(told(60), format!("{own}, Transaction"));
        assert_eq!(told(20).len(), 20);
        // A peer or a file is no class.
        let peer = super::waits_for(
            "socket",
            "app.some.packages.Client.read",
            "peer 127.0.0.1:80",
            40,
        );
        assert_eq!(peer, "socket: Client.read, peer 127.0.0.1:80");
        let peer = super::waits_for("socket", "Client.read", "peer [::1.2]:80", 30);
        assert!(peer.ends_with("peer [::1.2]:80"), "{peer}");
    }

    #[test]
    fn names_of_groups_are_as_wide_as_they_need_to_differ() {
        use crate::plain::shortened;
        use crate::text::waits::columns_that_differ;

        assert_eq!(
            columns_that_differ(&["main", "a-name-that-is-longer-than-this-*"]),
            24
        );
        assert_eq!(columns_that_differ(&["same", "same"]), 40);
        let alike = [
            "data-plane-network-0-Plain-thread-*",
            "data-plane-network-1-Plain-thread-*",
        ];
        let columns = columns_that_differ(&alike);
        let shown = |columns| alike.map(|name| shortened(name, columns));
        assert!((25..40).contains(&columns), "{columns}");
        assert_eq!(shown(columns - 1)[0], shown(columns - 1)[1]);
        assert_ne!(shown(columns)[0], shown(columns)[1]);
    }

    /// Workers at a monitor for 0.75 s, running for 0.25 s, idle for 4 s, and a thread of the JVM.
    fn mostly_idle() -> dwell_profile::Profile {
        let mut builder =
            dwell_profile::text_art::builder("thread: w-1\nweight: 250000000\napp.Bank.transfer");
        let threads = [2, 3].map(|tid| builder.thread(&format!("w-{tid}"), tid, tid, false));
        let jvm = builder.thread("Signal Dispatcher", 4, 4, false);
        let (idle, monitor) = (builder.cause("idle-pool"), builder.cause("monitor"));
        for (thread, cause, weight_ns, count) in [
            (threads[0], monitor, 750_000_000, 3),
            (threads[1], idle, 4_000_000_000, 200),
            (jvm, idle, 3_000_000_000, 150),
        ] {
            builder.look(Look {
                thread,
                node: 1,
                cause,
                weight_ns,
                count,
                ..Look::default()
            });
        }
        builder.finish()
    }

    fn has_lines(text: &str, lines: &[&str]) {
        for line in lines {
            let has = text.lines().any(|l| l == *line);
            assert!(has, "no line {line:?} in\n{text}");
        }
    }

    #[test]
    fn tables_speak_of_time_that_is_not_idle() {
        let text = crate::text(&mostly_idle());
        has_lines(
            &text,
            &[
                "Wall time of Java threads by cause, without idle time",
                "    75.0 %   32.5       750 ms          3  monitor",
                "    25.0 %   32.5       250 ms          1  running",
                "idle: 7.00 s, 87.5 % of all wall time, of 2 of 4 threads (report --text --idle)",
                "   100.0 %    0.0       1.00 s          4  w-*: monitor 75.0 %, running 25.0 %",
            ],
        );
        assert!(!text.contains("idle-pool"), "{text}");
        assert!(!text.contains("Dispatcher"), "{text}");
    }

    #[test]
    fn idle_time_is_shown_where_it_is_asked_for() {
        let text = crate::text_with(&mostly_idle(), crate::TextOptions { idle: true });
        has_lines(
            &text,
            &[
                "Wall time of Java threads by cause",
                "idle: 7.00 s, 87.5 % of all wall time, of 2 of 4 threads",
            ],
        );
        for row in [
            "  idle-pool",
            "  w-*: idle-pool 80.0 %, monitor 15.0 %, running 5.0 %",
            "  Signal Dispatcher: idle-pool 100.0 %",
            "  idle-pool: ",
        ] {
            assert!(text.contains(row), "no {row:?} in\n{text}");
        }
        let shares = text.lines().filter(|line| line.starts_with("    87.5 %"));
        assert_eq!(
            shares.count(),
            2,
            "a share of all time, by cause and by place\n{text}"
        );
    }

    #[test]
    fn text_has_causes_groups_places_and_owners() {
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
            count: 1,
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
            choices: 0,
            context: Some(context),
            detail: Some(detail),
            owner: Some(other),
            owner_node: None,
        });
        let text = crate::text(&builder.finish());
        for line in [
            "    75.0 %   32.5       750 ms          3  monitor",
            "    25.0 %   32.5       250 ms          1  running",
            "   100.0 %    0.0       1.00 s          4  GET /transfer: monitor 75.0 %, \
             running 25.0 %",
            "   100.0 %    0.0       1.00 s          4  worker-*: monitor 75.0 %, running 25.0 %",
            "    75.0 %   32.5       750 ms          3  monitor: app.Bank.transfer, app.Account",
            &format!("{:45}held 100.0 % of it by worker-*, which ran", ""),
        ] {
            assert!(
                text.lines().any(|l| l == line),
                "no line {line:?} in\n{text}"
            );
        }
    }

    #[test]
    fn waits_with_frames_of_the_jdk_only_are_listed() {
        let mut builder = dwell_profile::Builder::default();
        let worker = builder.thread("worker-1", 1, 1, false);
        let method = builder.method("jdk.internal.misc.Unsafe", "park", "");
        let frame = builder.frame(method, 0, FrameKind::C2);
        let jdk_only = builder.stack([frame]);
        let park = builder.cause("park");
        builder.look(Look {
            time_ns: 0,
            duration_ns: 0,
            thread: worker,
            node: jdk_only,
            cause: park,
            weight_ns: 250_000_000,
            count: 1,
            choices: 0,
            context: None,
            detail: None,
            owner: None,
            owner_node: None,
        });
        has_lines(
            &crate::text(&builder.finish()),
            &[
                "Where threads waited most (innermost frame outside the JDK, if any)",
                "   100.0 %    0.0       250 ms          1  park: jdk.internal.misc.Unsafe.park",
            ],
        );
    }
}

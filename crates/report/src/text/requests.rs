//! The part of the text about requests: number and latency of each endpoint, and the activity of
//! their threads.

use std::collections::BTreeMap;

use dwell_profile::{
    Clusters, ContextId, NodeId, Profile, RequestKey, Wall, WallFilter, Weight, group_of,
};

use super::{COLUMNS, Report};
use crate::number::{a_second, count, duration, percent};
use crate::plain::shortened;

/// Rows of the table of endpoints.
const ENDPOINT_ROWS: usize = 15;
/// Maximum number of endpoints with time by cause.
const ENDPOINTS_TOLD: usize = 10;
const NONE: &str = "(no endpoint)";

impl Report<'_> {
    /// Latencies by endpoint, and where the time of the largest ones goes.
    pub(super) fn requests(&mut self) {
        self.latencies();
        self.time_of_requests();
    }

    /// Number and latencies of requests by endpoint.
    pub(super) fn latencies(&mut self) {
        let profile = self.profile;
        let mut rows: Vec<_> = profile.latencies().into_iter().collect();
        rows.sort_by_key(|(_, latencies)| std::cmp::Reverse(latencies.requests));
        if !rows.is_empty() {
            self.raw("");
            self.raw("Requests by endpoint");
            self.raw("  requests     per s       p50       p95       p99   longest  endpoint");
            for (endpoint, latencies) in rows.iter().take(ENDPOINT_ROWS) {
                let at = |percent| duration(latencies.percentile_ns(percent));
                let rate = a_second(latencies.requests, profile.info().duration_ns);
                let head = format!(
                    "{:>10} {rate:>9} {:>9} {:>9} {:>9} {:>9}  ",
                    count(latencies.requests),
                    at(50.0),
                    at(95.0),
                    at(99.0),
                    duration(latencies.longest_ns()),
                );
                let name = shortened(endpoint.unwrap_or(NONE), COLUMNS.saturating_sub(head.len()));
                self.raw(&format!("{head}{name}"));
            }
            self.more(rows.len(), ENDPOINT_ROWS);
        }
        if profile.has_derived_endpoints() {
            self.raw("");
            self.raw(&format!("endpoints: {}", crate::FROM_STACKS));
        }
    }

    /// Activity of the threads of endpoints, and its check against the latencies.
    pub(super) fn time_of_requests(&mut self) {
        self.self_check();
        match self.profile.has_wall() {
            true => self.time_of_endpoints(),
            false => self.samples_of_endpoints(),
        }
    }

    /// The samples of each endpoint, where there is no wall time.
    fn samples_of_endpoints(&mut self) {
        let profile = self.profile;
        let mut endpoints: BTreeMap<&str, Weight> = BTreeMap::new();
        for sample in profile.samples() {
            let endpoint = sample.context.and_then(|context| profile.endpoint(context));
            if let Some(endpoint) = endpoint {
                *endpoints.entry(endpoint).or_default() += &Weight::of_sample(sample);
            }
        }
        if endpoints.is_empty() {
            return;
        }
        let mut rows: Vec<_> = endpoints.into_iter().collect();
        rows.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.sum));
        self.raw("");
        self.raw(&format!("{} by endpoint", profile.info().measured.name()));
        self.raw("     share     +-       weight   samples  endpoint");
        for (endpoint, sum) in rows.iter().take(ENDPOINT_ROWS) {
            let head = format!("{}  ", self.weight_cells(sum));
            let name = shortened(endpoint, COLUMNS.saturating_sub(head.len()));
            self.raw(&format!("{head}{name}"));
        }
        self.more(rows.len(), ENDPOINT_ROWS);
    }

    /// All causes of wall time, for the endpoints with the most wall time.
    fn time_of_endpoints(&mut self) {
        let profile = self.profile;
        let filter = WallFilter::default();
        let mut endpoints: BTreeMap<&str, (Split, BTreeMap<&str, Split>)> = BTreeMap::new();
        for wall in profile.wall(&filter) {
            let endpoint = wall.context.and_then(|context| profile.endpoint(context));
            let Some(endpoint) = endpoint else { continue };
            let (all, causes) = endpoints.entry(endpoint).or_default();
            let request = wall
                .context
                .and_then(|context| request_of(profile, context));
            all.add(&wall, request);
            causes.entry(wall.cause).or_default().add(&wall, request);
        }
        let mut endpoints: Vec<_> = endpoints.into_iter().collect();
        endpoints.sort_by_key(|(_, (all, _))| std::cmp::Reverse(all.weight.sum));
        for (endpoint, (all, causes)) in endpoints.iter().take(ENDPOINTS_TOLD) {
            self.raw("");
            let title = "Where the time goes: ";
            self.raw(&format!(
                "{title}{}",
                shortened(endpoint, COLUMNS - title.len())
            ));
            self.raw("     share  95 % by request       time  cause: most of it where");
            let mut causes: Vec<_> = causes.iter().collect();
            causes.sort_by_key(|(_, split)| std::cmp::Reverse(split.weight.sum));
            for (cause, split) in causes {
                let head = split_head(split, all);
                let text = format!("{cause}: {}", self.most(split));
                let text = shortened(&text, COLUMNS.saturating_sub(head.len()));
                self.raw(&format!("{head}{text}"));
            }
        }
    }

    /// Place with the most time of one cause, its object and the holder.
    fn most(&self, split: &Split) -> String {
        let profile = self.profile;
        let mut places: BTreeMap<String, u64> = BTreeMap::new();
        for (node, ns) in &split.places {
            let place = profile
                .place(*node)
                .unwrap_or_else(|| format!("no {} frame", profile.info().platform().code()));
            *places.entry(place).or_default() += ns;
        }
        let Some((place, ns)) = largest(&places) else {
            return String::new();
        };
        let share = |ns: u64| 100.0 * ns as f64 / split.weight.sum.max(1) as f64;
        let mut text = format!("{:.0} % {place}", share(*ns));
        let mut groups: BTreeMap<String, u64> = BTreeMap::new();
        for (owner, ns) in &split.owners {
            *groups
                .entry(group_of(profile.thread_name(*owner)))
                .or_default() += ns;
        }
        if let Some((group, ns)) = largest(&groups) {
            text = format!("{text}, held {:.0} % by {group}", share(*ns));
        }
        text
    }
}

/// The time of one cause.
#[derive(Default)]
struct Split {
    weight: Weight,
    clusters: Clusters,
    places: BTreeMap<NodeId, u64>,
    owners: BTreeMap<u32, u64>,
}

impl Split {
    fn add(&mut self, wall: &Wall<'_>, request: Option<RequestKey>) {
        self.weight += &wall.weight;
        self.clusters.add(request, &wall.weight);
        *self.places.entry(wall.node).or_default() += wall.weight.sum;
        if let Some((owner, _)) = wall.owner {
            *self.owners.entry(owner).or_default() += wall.weight.sum;
        }
    }
}

fn largest<K>(sums: &BTreeMap<K, u64>) -> Option<(&K, &u64)> {
    sums.iter().max_by_key(|(_, ns)| **ns)
}

/// The request that a context belongs to, if it says.
fn request_of(profile: &Profile, context: ContextId) -> Option<RequestKey> {
    let context = profile.contexts().get(context as usize)?;
    let root = context.local_root_span_id;
    (root != 0).then_some((context.trace_id, root))
}

/// Share, the interval in which it lies, and time: 40 columns.
fn split_head(split: &Split, all: &Split) -> String {
    let (weight, share) = (&split.weight, split.weight.share(&all.weight));
    let error = split.clusters.share_margin(&all.clusters);
    let percent_of = |share: f64| format!("{:.1}", share.clamp(0.0, 1.0) * 100.0);
    let interval = format!(
        "{} to {} %",
        percent_of(share - error),
        percent_of(share + error)
    );
    format!(
        "{:>10} {interval:>16} {:>10}  ",
        percent(share),
        duration(weight.sum)
    )
}

#[cfg(test)]
mod tests {
    use dwell_profile::{Builder, FrameKind, Look, Request, Sample};

    /// The stack of a handler below Spring's entry.
    fn handler(builder: &mut Builder) -> u32 {
        let spring = "org.springframework.web.method.support.InvocableHandlerMethod";
        let stack = [
            (spring, "doInvoke"),
            ("app.OrderController", "createOrderWithItems"),
        ];
        let frames = stack.map(|(class, name)| {
            let method = builder.method(class, name, "");
            builder.frame(method, 7, FrameKind::C2)
        });
        builder.stack(frames)
    }

    fn sample(thread: u32, node: u32, weight: u64) -> Sample {
        Sample {
            time_ns: 0,
            thread,
            node,
            weight,
            count: 1,
            failure: None,
            context: None,
        }
    }

    #[test]
    fn endpoints_from_stacks_have_time_and_no_latencies() {
        let mut builder = Builder::default();
        let worker = builder.thread("worker-1", 1, 1, false);
        let node = handler(&mut builder);
        builder.sample(sample(worker, node, 250_000_000));
        let cause = builder.cause("socket");
        builder.look(Look {
            thread: worker,
            node,
            cause,
            weight_ns: 750_000_000,
            count: 3,
            ..Look::default()
        });
        let mut profile = builder.finish();
        profile.derive_endpoints();
        let text = crate::text(&profile);
        for line in [
            "Wall time by endpoint (from stacks)",
            "endpoints: from stacks; counts and latencies need the Java API or OpenTelemetry \
             (docs/context.md)",
            "Where the time goes: OrderController.createOrderWithItems (from stacks)",
            "    75.0 %  32.6 to 100.0 %     750 ms  socket: 100 % \
             app.OrderController.createOrderWithItems",
        ] {
            assert!(
                text.lines().any(|l| l == line && l.len() <= super::COLUMNS),
                "no line {line:?} in\n{text}"
            );
        }
        assert!(!text.contains("Requests by endpoint"), "{text}");
        assert!(!text.contains("self-check"), "{text}");
    }

    #[test]
    fn recordings_without_wall_time_have_samples_by_endpoint() {
        let mut builder = Builder::default();
        builder.unit = dwell_profile::Unit::Samples;
        let worker = builder.thread("worker-1", 1, 1, false);
        let node = handler(&mut builder);
        let outside = builder.stack([]);
        for node in [node, node, node, outside] {
            builder.sample(sample(worker, node, 1));
        }
        let mut profile = builder.finish();
        profile.derive_endpoints();
        let text = crate::text(&profile);
        let line = "    75.0 %   21.7            3         3  \
                    OrderController.createOrderWithItems (from stacks)";
        assert!(
            text.lines().any(|l| l == line),
            "no line {line:?} in\n{text}"
        );
        assert!(text.contains("CPU time by endpoint"), "{text}");
    }

    #[test]
    fn text_has_latencies_and_causes_of_an_endpoint() {
        let mut builder = Builder::default();
        builder.info.duration_ns = 10_000_000_000;
        let worker = builder.thread("worker-1", 1, 1, false);
        let other = builder.thread("worker-2", 2, 2, false);
        let method = builder.method("app.Bank", "transfer", "");
        let frame = builder.frame(method, 7, FrameKind::C2);
        let node = builder.stack([frame]);
        let monitor = builder.cause("monitor");
        let endpoint = Some(builder.name("GET /transfer"));
        let context = builder.context(dwell_profile::Context {
            endpoint,
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
            detail: None,
            owner: Some(other),
            owner_node: None,
        });
        for ms in 1..=100u64 {
            builder.requests.push(Request {
                time_ns: 0,
                duration_ns: ms * 1_000_000,
                trace_id: 0,
                local_root_span_id: ms,
                endpoint: endpoint.filter(|_| ms > 1),
                count: 2,
            });
        }
        let text = crate::text(&builder.finish());
        for line in [
            "       198      19.8   51.0 ms   96.0 ms    100 ms    100 ms  GET /transfer",
            "         2       0.2   1.00 ms   1.00 ms   1.00 ms   1.00 ms  (no endpoint)",
            "Where the time goes: GET /transfer",
            // 250^2 = 3 looks and 1 sample: sqrt(0.25^2 * 3 + 0.75^2) / 4 = 21.7 %
            "    75.0 %  32.6 to 100.0 %     750 ms  monitor: 100 % app.Bank.transfer, held 100 % \
             by worker-*",
            "    25.0 %    0.0 to 67.4 %     250 ms  running: 100 % app.Bank.transfer",
        ] {
            assert!(
                text.lines().any(|l| l == line),
                "no line {line:?} in\n{text}"
            );
        }
    }

    #[test]
    fn holders_of_one_group_count_together() {
        let mut builder = Builder::default();
        let waiter = builder.thread("main", 1, 1, false);
        let holders = [2, 3].map(|tid| builder.thread(&format!("worker-{tid}"), tid, tid, false));
        let node = handler(&mut builder);
        let (monitor, endpoint) = (builder.cause("monitor"), builder.name("GET /x"));
        let context = builder.context(dwell_profile::Context {
            endpoint: Some(endpoint),
            ..dwell_profile::Context::default()
        });
        for (owner, weight_ns) in [
            (Some(holders[0]), 300),
            (Some(holders[1]), 600),
            (None, 100),
        ] {
            builder.look(Look {
                thread: waiter,
                node,
                cause: monitor,
                weight_ns,
                count: 1,
                context: Some(context),
                owner,
                ..Look::default()
            });
        }
        let text = crate::text(&builder.finish());
        assert!(text.contains("held 90 % by worker-*"), "{text}");
    }
}

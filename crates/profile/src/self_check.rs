//! The self-check of a recording compares the wall time of samples, for each endpoint, with the
//! exact latencies of its requests from the program's scopes. Pure arithmetic.
//!
//! Both sides are made of the same requests and of the same time:
//! - Time inside of a request counts for the request's endpoint, also in a scope with the name of
//!   another one, as the latency includes it.
//! - Requests are clipped to the time between the first and the last wall-clock sample.
//! - A request that had not ended has no latency. If every request of an endpoint is recorded, time
//!   in other requests is left out.
//! - If some of many requests are recorded, each has a weight. The comparison of an endpoint then
//!   ends before the last sample, by the latency of its longest request, as the requests before
//!   that time have ended. The time for which longer requests were seen shows which never ended.
//!   The sampling error of the sum of latencies is part of the error.

mod lives;
mod roots;
#[cfg(test)]
mod tests;
mod wording;

pub use lives::{ThreadLedger, ThreadLife};

use crate::clusters::RequestKey;
use crate::names::{NameId, Names};
use crate::profile::Profile;
use crate::requests::Request;
use crate::sample::ThreadId;
use crate::wall::{Wall, WallFilter, group_of, matches};
use dwell_jfr::hash::Seeds;
use dwell_wall::sums;
use roots::{Attribution, RequestRoots};
use std::collections::{BTreeMap, HashSet};

/// Ratios from 1 - `TOLERANCE` to 1 + `TOLERANCE` are close enough.
const TOLERANCE: f64 = 0.1;
/// A deviation of so many standard errors is more than chance, of a single endpoint.
const ERRORS: f64 = 2.0;
/// A smaller part of an endpoint's time says nothing of where its requests ran.
const SEVERAL: f64 = 0.05;
/// Endpoints that the recorder samples each for itself; of more, some share what is kept.
const ENDPOINTS_APART: usize = 64;
/// A request without a latency is taken for unended once it was seen for so long.
const UNENDED_NS: u64 = 1_000_000_000;

/// The meaning of a ratio of wall time to latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// From 0.9 to 1.1.
    Close,
    /// Outside of that, by no more than chance.
    Chance,
    /// Less was seen than there was.
    Low,
    /// More was seen than there was.
    High,
    /// Requests run on several threads: at once, or one after the other with time between them.
    SeveralThreads,
    /// The missing time may be in scopes with unknown requests.
    OtherScopes,
}

impl Agreement {
    /// A word for files.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Agreement::Close => "close",
            Agreement::Chance => "chance",
            Agreement::Low => "low",
            Agreement::High => "high",
            Agreement::SeveralThreads => "several-threads",
            Agreement::OtherScopes => "other-scopes",
        }
    }

    /// Whether the samples and the latencies contradict each other.
    #[must_use]
    pub fn is_off(self) -> bool {
        matches!(self, Agreement::Low | Agreement::High)
    }
}

/// Wall time that samples saw, against the time that there was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accounted {
    /// The wall time that samples saw.
    pub seen_ns: u64,
    /// The latencies of the same requests in the same time.
    pub latency_ns: u64,
    /// The first as a part of the second.
    pub ratio: f64,
    /// One standard error of the ratio.
    pub error: f64,
    /// The meaning of the ratio.
    pub agreement: Agreement,
}

/// The check of one endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointCheck {
    /// The endpoint; `None`: requests without one.
    pub endpoint: Option<String>,
    /// The result.
    pub accounted: Accounted,
    /// Whether most of what was seen was on virtual threads.
    pub is_virtual: bool,
}

/// The check of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct SelfCheck {
    /// By endpoint, that with the most latency first. Endpoints without anything to compare are
    /// left out.
    pub endpoints: Vec<EndpointCheck>,
    /// All of these together.
    pub total: Accounted,
    /// Threads that were seen to live: their wall time against their lives.
    pub threads: Option<ThreadLedger>,
    /// Remedy for too little seen time, as the second half of a sentence.
    pub remedy: String,
}

/// A part of the time, in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    from_ns: u64,
    to_ns: u64,
}

impl Interval {
    fn length_ns(self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// How much of a time of this length lies inside.
    fn overlap_ns(self, time_ns: u64, duration_ns: u64) -> u64 {
        let end_ns = time_ns.saturating_add(duration_ns).min(self.to_ns);
        end_ns.saturating_sub(time_ns.max(self.from_ns))
    }

    /// The part of some wall time that lies inside: it is spread evenly over how long it lasted.
    fn part_of(self, wall: &Wall<'_>) -> f64 {
        match wall.lasted_ns {
            0 => f64::from(u8::from((self.from_ns..self.to_ns).contains(&wall.time_ns))),
            lasted_ns => self.overlap_ns(wall.time_ns, lasted_ns) as f64 / lasted_ns as f64,
        }
    }
}

/// A sum of parts of samples, with what its error is made of.
#[derive(Clone, Copy, Debug, Default)]
struct PartialSum {
    ns: f64,
    squares: f64,
    heaviest: f64,
}

impl PartialSum {
    fn add(&mut self, wall: &Wall<'_>, part: f64) {
        self.ns += part * wall.weight.sum as f64;
        self.squares += part * part * wall.weight.squares;
        self.heaviest = self.heaviest.max(wall.weight.heaviest);
    }
}

/// The sums of an endpoint, or of several.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    latency_ns: f64,
    latency_variance: f64,
    seen: PartialSum,
    /// The variance of what was seen, by how much single requests differ from the ratio of all.
    scatter: f64,
    /// The part of the seen time in requests that were seen on several threads.
    several_ns: f64,
    /// The same of endpoints for which two groups of threads work: work was handed over.
    groups_ns: f64,
    /// Time in scopes whose request is not known, which may be one of these.
    unknown_ns: f64,
}

/// Wall time by group of threads, which are numbered.
type Groups = BTreeMap<NameId, f64>;

/// The criteria for ratios, in addition to their errors.
#[derive(Clone, Copy, Debug)]
struct Judge {
    /// The weight of a sample that was possible but not taken.
    unseen: f64,
    /// Deviations of so many standard errors are chance.
    errors: f64,
}

impl Judge {
    /// Of so many ratios at once. As the tail of the normal distribution falls like exp(-z^2 / 2),
    /// one of them deviates by `sqrt(4 + 2 ln n)` errors about as seldom as a single one by two.
    fn of(ratios: usize, unseen: f64) -> Judge {
        let several = 2.0 * (ratios.max(1) as f64).ln();
        Judge {
            unseen,
            errors: (ERRORS.powi(2) + several).sqrt(),
        }
    }
}

/// An endpoint.
struct Row {
    /// The time that is compared.
    interval: Interval,
    /// A request without a latency that was seen for so long has not ended.
    unended_ns: u64,
    sums: Sums,
    /// Several requests have the same ids, so samples cannot be assigned to a single request.
    reuses_ids: bool,
    virtual_ns: f64,
    groups: Groups,
}

impl Row {
    /// Of the requests of an endpoint. `shares_reservoir`: the numbers that they stand for are
    /// those of other endpoints, too.
    fn of(requests: &[Request], whole: Interval, shares_reservoir: bool) -> Row {
        let with_ids = requests.iter().filter(|it| it.local_root_span_id != 0);
        let ids = with_ids.map(|it| (it.trace_id, it.local_root_span_id));
        let ids: Vec<RequestKey> = ids.collect();
        let different: HashSet<RequestKey, Seeds> = ids.iter().copied().collect();
        let is_each_told = different.len() == requests.len()
            && !shares_reservoir
            && requests.iter().all(|request| request.count <= 1);
        let longest_ns = requests.iter().map(|request| request.duration_ns).max();
        let (interval, unended_ns) = match longest_ns {
            Some(longest_ns) if !is_each_told => thinned(whole, longest_ns),
            _ => (whole, 0),
        };
        let inside = |request: &Request| {
            let ns = interval.overlap_ns(request.time_ns, request.duration_ns);
            (ns as f64, request.count.max(1) as f64)
        };
        let inside: Vec<(f64, f64)> = requests.iter().map(inside).collect();
        let latency_ns: f64 = inside.iter().map(|(ns, count)| ns * count).sum();
        let number: f64 = inside.iter().map(|(_, count)| count).sum();
        let mean_ns = match shares_reservoir {
            true => 0.0,
            false => latency_ns / number.max(1.0),
        };
        // Simple random sampling: of n requests k were kept, each of which stands for n / k.
        let variance = |(ns, count): &(f64, f64)| count * (count - 1.0) * (ns - mean_ns).powi(2);
        Row {
            interval,
            unended_ns,
            sums: Sums {
                latency_ns,
                latency_variance: inside.iter().map(variance).sum(),
                ..Sums::default()
            },
            reuses_ids: different.len() < ids.len(),
            virtual_ns: 0.0,
            groups: Groups::new(),
        }
    }

    /// The sums, with what is known when all is added.
    fn finished(&self, unknown: &Groups) -> Sums {
        let little = SEVERAL * self.sums.seen.ns;
        let groups = self.groups.values().filter(|ns| **ns > little).count();
        let groups_ns = if groups > 1 { self.sums.seen.ns } else { 0.0 };
        let unknown = unknown
            .iter()
            .filter(|(group, _)| self.groups.contains_key(*group));
        Sums {
            groups_ns,
            unknown_ns: unknown.map(|(_, ns)| ns).sum(),
            ..self.sums
        }
    }
}

/// The time that is compared where some requests are not recorded, and how long a request without
/// a latency is seen at least that has not ended.
fn thinned(whole: Interval, longest_ns: u64) -> (Interval, u64) {
    let half_ns = whole.length_ns() / 2;
    let interval = Interval {
        to_ns: whole.to_ns.saturating_sub(longest_ns.min(half_ns)),
        ..whole
    };
    // The longest one that was not recorded may have taken longer.
    let unended_ns = longest_ns.saturating_mul(2).max(UNENDED_NS);
    (interval, unended_ns.min(half_ns))
}

impl Sums {
    fn merge(&mut self, other: &Sums) {
        self.latency_ns += other.latency_ns;
        self.latency_variance += other.latency_variance;
        self.seen.ns += other.seen.ns;
        self.seen.squares += other.seen.squares;
        self.seen.heaviest = self.seen.heaviest.max(other.seen.heaviest);
        self.scatter += other.scatter;
        self.several_ns += other.several_ns;
        self.groups_ns += other.groups_ns;
    }

    fn accounted(&self, judge: &Judge) -> Accounted {
        let heaviest = match self.seen.heaviest > 0.0 {
            true => self.seen.heaviest,
            false => judge.unseen,
        };
        let ratio = self.seen.ns / self.latency_ns;
        let seen_error = sums::standard_error(self.seen.squares, heaviest);
        // Samples of one request are not independent; requests are.
        let seen_variance = seen_error.powi(2).max(self.scatter);
        let variance = seen_variance + ratio.powi(2) * self.latency_variance;
        let error = variance.sqrt() / self.latency_ns;
        Accounted {
            seen_ns: self.seen.ns as u64,
            latency_ns: self.latency_ns as u64,
            ratio,
            error,
            agreement: self.agreement(ratio, error, judge),
        }
    }

    fn agreement(&self, ratio: f64, error: f64, judge: &Judge) -> Agreement {
        let off = ratio - 1.0;
        // Rounding does not decide.
        if off.abs() <= TOLERANCE + 1e-9 {
            return Agreement::Close;
        }
        if off.abs() <= judge.errors * error {
            return Agreement::Chance;
        }
        let little = SEVERAL * self.seen.ns;
        let on_several = self.several_ns > little;
        let with_unknown = (self.seen.ns + self.unknown_ns) / self.latency_ns;
        match off > 0.0 {
            true if on_several || self.groups_ns > little => Agreement::SeveralThreads,
            true => Agreement::High,
            false if on_several => Agreement::SeveralThreads,
            false if with_unknown >= 1.0 - TOLERANCE => Agreement::OtherScopes,
            false => Agreement::Low,
        }
    }
}

impl Profile {
    /// The wall time that samples saw for endpoints, against the latencies of their requests.
    /// `pattern`: only of such endpoints, `*` for anything. `None` where there is no wall time, or
    /// no request to compare it with.
    #[must_use]
    pub fn self_check(&self, pattern: Option<&str>) -> Option<SelfCheck> {
        let whole = self.sampled_interval()?;
        let mut rows = self.rows(whole);
        if rows.is_empty() {
            return None;
        }
        let unknown = self.add_seen(&mut rows);
        let text = |endpoint: &Option<NameId>| endpoint.map(|name| self.names.text(name));
        if let Some(pattern) = pattern {
            rows.retain(|endpoint, _| text(endpoint).is_some_and(|text| matches(pattern, text)));
        }
        let judge = Judge::of(rows.len(), self.unseen());
        let mut sums = Sums::default();
        let mut endpoints = Vec::with_capacity(rows.len());
        for (endpoint, row) in &rows {
            let of_row = row.finished(&unknown);
            sums.merge(&of_row);
            endpoints.push(EndpointCheck {
                endpoint: text(endpoint).map(str::to_owned),
                accounted: of_row.accounted(&judge),
                is_virtual: row.virtual_ns * 2.0 > of_row.seen.ns,
            });
        }
        sums.unknown_ns = unknown.values().sum();
        endpoints.sort_by_key(|check| std::cmp::Reverse(check.accounted.latency_ns));
        (!endpoints.is_empty()).then(|| SelfCheck {
            endpoints,
            total: sums.accounted(&Judge {
                errors: ERRORS,
                ..judge
            }),
            threads: self.thread_ledger(whole),
            remedy: wording::remedy(&self.info.options),
        })
    }

    /// The time in which wall-clock samples were taken.
    fn sampled_interval(&self) -> Option<Interval> {
        if !self.has_wall() {
            return None;
        }
        let starts = self.looks.iter().map(|look| look.time_ns);
        let ends = self.looks.iter();
        let ends = ends.map(|look| look.time_ns.saturating_add(look.duration_ns));
        let recorded_to_ns = match self.info.duration_ns {
            0 => u64::MAX,
            duration_ns => self.info.start_ns.saturating_add(duration_ns),
        };
        let interval = Interval {
            from_ns: starts.min()?.max(self.info.start_ns),
            to_ns: ends.max()?.min(recorded_to_ns),
        };
        (interval.length_ns() > 0).then_some(interval)
    }

    /// The endpoints that have latencies to compare with.
    fn rows(&self, whole: Interval) -> BTreeMap<Option<NameId>, Row> {
        let mut by_endpoint: BTreeMap<Option<NameId>, Vec<Request>> = BTreeMap::new();
        for request in &self.requests {
            by_endpoint
                .entry(request.endpoint)
                .or_default()
                .push(*request);
        }
        let shares_reservoir = by_endpoint.len() > ENDPOINTS_APART;
        let rows = by_endpoint
            .into_iter()
            .map(|(endpoint, requests)| (endpoint, Row::of(&requests, whole, shares_reservoir)));
        rows.filter(|(_, row)| row.sums.latency_ns > 0.0).collect()
    }

    /// Adds the samples' time. Time outside of rows is in scopes with unknown requests.
    fn add_seen(&self, rows: &mut BTreeMap<Option<NameId>, Row>) -> Groups {
        let mut roots = RequestRoots::of(self);
        let filter = WallFilter::default();
        for wall in self.wall(&filter) {
            roots.see(&wall);
        }
        // The shortest of the intervals, as unknown time may be of any row.
        let shortest = rows.values().map(|row| row.interval);
        let shortest = shortest.min_by_key(|interval| interval.to_ns);
        let groups = self.thread_groups();
        let mut unknown = Groups::new();
        for wall in self.wall(&filter) {
            let Some(context) = wall.context else {
                continue;
            };
            let row = match roots.attribution(context) {
                Attribution::Nobody => continue,
                Attribution::Endpoint(endpoint) => rows.get_mut(&endpoint),
                Attribution::Unknown => None,
            };
            let group = groups.get(wall.thread as usize).copied().unwrap_or(0);
            match row {
                Some(row) if !row.reuses_ids && roots.is_unended(context, row.unended_ns) => {}
                Some(row) => {
                    let on_several = roots.is_on_several(context);
                    roots.add_seen(context, self.add_part(row, &wall, group, on_several));
                }
                None => {
                    let part = shortest.map_or(0.0, |interval| interval.part_of(&wall));
                    *unknown.entry(group).or_default() += part * wall.weight.sum as f64;
                }
            }
        }
        self.add_scatter(rows, &roots);
        unknown
    }

    /// Adds the variance of what was seen, as of a ratio of two sums over requests (Cochran,
    /// Sampling Techniques): of y, what was seen of a request, and x, its latency, it is about
    /// `n / (n-1) * sum of (y - ratio x)^2`.
    fn add_scatter(&self, rows: &mut BTreeMap<Option<NameId>, Row>, roots: &RequestRoots) {
        let mut counts: BTreeMap<Option<NameId>, f64> = BTreeMap::new();
        for (place, request) in self.requests.iter().enumerate() {
            let Some(row) = rows.get_mut(&request.endpoint) else {
                continue;
            };
            let ns = (row.interval).overlap_ns(request.time_ns, request.duration_ns) as f64;
            if let Some(seen_ns) = roots.seen_of_request(place)
                && ns > 0.0
            {
                let ratio = row.sums.seen.ns / row.sums.latency_ns;
                let off = seen_ns - ratio * ns;
                row.sums.scatter += request.count.max(1) as f64 * off * off;
                *counts.entry(request.endpoint).or_default() += 1.0;
            }
        }
        for (endpoint, row) in rows {
            let count = counts.get(endpoint).copied().unwrap_or(0.0);
            // A single request says nothing about others.
            row.sums.scatter *= match count > 1.0 {
                true => count / (count - 1.0),
                false => 0.0,
            };
        }
    }

    /// The groups of threads, by thread.
    fn thread_groups(&self) -> Vec<NameId> {
        let mut groups = Names::default();
        let threads = 0..self.threads.len() as ThreadId;
        let group = |thread| groups.intern(&group_of(self.thread_name(thread)));
        threads.map(group).collect()
    }

    /// Adds the part of some wall time that is compared, and returns its amount.
    fn add_part(&self, row: &mut Row, wall: &Wall<'_>, group: NameId, on_several: bool) -> f64 {
        let part = row.interval.part_of(wall);
        if part <= 0.0 {
            return 0.0;
        }
        row.sums.seen.add(wall, part);
        let ns = part * wall.weight.sum as f64;
        if on_several && !row.reuses_ids {
            row.sums.several_ns += ns;
        }
        let thread = self.threads.get(wall.thread as usize);
        if thread.is_some_and(|thread| thread.is_virtual) {
            row.virtual_ns += ns;
        }
        *row.groups.entry(group).or_default() += ns;
        ns
    }

    /// The weight of a sample that was possible but not taken.
    fn unseen(&self) -> f64 {
        let [of_platform, of_virtual] = self.heaviest_looks();
        let interval = self.info.interval_ns as f64;
        of_platform.max(of_virtual).max(interval)
    }
}

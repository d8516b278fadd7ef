//! Facts for all rules: the profile, its wall time by subject, cause and place, and its CPU time by
//! stack. Made once for an explanation.
//!
//! Wall time belongs to *subjects*: the endpoint that a thread worked for, or, where it worked for
//! none, the group of threads that it belongs to.

use crate::services::Services;
use crate::stacks::Stacks;
use dwell_profile::{
    NameId, NodeId, Profile, RUNNING, Role, Sample, Seeds, ThreadId, Unit, WallFilter, Weight,
    group_of, matches,
};
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};

pub(crate) use dwell_profile::IDLE;

/// Ready, without a processor.
pub(crate) const RUNNABLE: &str = "runnable";
pub(crate) const THROTTLED: &str = "throttled";
/// At a safepoint, or waiting for an operation there.
pub(crate) const SAFEPOINT: &str = "safepoint";
/// Name of the whole of which shares are given when samples are only counted.
pub(crate) const SAMPLES: &str = "the samples";
/// Waits from this duration on are long.
pub(crate) const LONG_NS: u64 = 50_000_000;

/// Whose time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// An endpoint's requests.
    Endpoint,
    /// A group of threads.
    Threads,
}

/// An endpoint or a group of threads whose wall time is summed.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) kind: Kind,
    /// The endpoint, or the group of threads.
    pub(crate) name: String,
    /// All its time.
    pub(crate) total: Weight,
    /// That in which it had something to do.
    pub(crate) busy: Weight,
    /// The threads that worked for it.
    pub(crate) threads: BTreeSet<ThreadId>,
}

/// Wall time of a subject that is the same in all that matters.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'p> {
    /// Place in [`Facts::subjects`].
    pub(crate) subject: usize,
    pub(crate) cause: &'p str,
    pub(crate) node: NodeId,
    pub(crate) detail: Option<NameId>,
    pub(crate) weight: Weight,
    /// How many stretches of time: threads that went on in between were seen again.
    pub(crate) events: u64,
    /// The time in stretches that were seen to be long.
    pub(crate) long_ns: u64,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

/// Key of an entry: subject, cause, node and detail.
type Place<'p> = (usize, &'p str, NodeId, Option<NameId>);

/// A profile made ready for rules.
pub(crate) struct Facts<'p> {
    pub(crate) profile: &'p Profile,
    pub(crate) stacks: Stacks<'p>,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) entries: Vec<Entry<'p>>,
    /// CPU time by the node that its stack ends in.
    pub(crate) cpu: Vec<Weight>,
    /// The same of the program's own threads.
    pub(crate) program_cpu: Vec<Weight>,
    /// All CPU time, and that of the program's threads.
    pub(crate) cpu_total: Weight,
    pub(crate) program_total: Weight,
    /// Time by the roles of threads, in the order of [`Role::ALL`].
    pub(crate) roles: Vec<Weight>,
    /// Set to include only requests of this endpoint.
    pub(crate) endpoint: Option<&'p str>,
    /// Whether wall time belongs to endpoints at all.
    by_endpoint: bool,
    /// The groups of threads, by thread.
    groups: Vec<String>,
    services: OnceCell<Services>,
}

impl<'p> Facts<'p> {
    pub(crate) fn new(profile: &'p Profile, filter: &'p WallFilter) -> Facts<'p> {
        let nodes = profile.tree().len();
        let mut facts = Facts {
            profile,
            stacks: Stacks::new(profile),
            subjects: Vec::new(),
            entries: Vec::new(),
            cpu: vec![Weight::default(); nodes],
            program_cpu: vec![Weight::default(); nodes],
            cpu_total: Weight::default(),
            program_total: Weight::default(),
            roles: vec![Weight::default(); Role::ALL.len()],
            endpoint: filter.endpoint.as_deref(),
            by_endpoint: is_by_endpoint(profile, filter),
            groups: (0..profile.threads().len())
                .map(|thread| group_of(profile.thread_name(thread as ThreadId)))
                .collect(),
            services: OnceCell::new(),
        };
        // Samples of a wall clock or of an event do not measure the CPU time used.
        if profile.info().measured.is_of_processors() && profile.info().mode != "wall" {
            facts.add_cpu();
        }
        if profile.has_wall() {
            facts.add_wall(filter);
        }
        facts
    }

    /// Whether the filter selects this sample.
    pub(crate) fn is_wanted(&self, sample: &Sample) -> bool {
        self.endpoint.is_none_or(|pattern| {
            let endpoint = sample.context.and_then(|id| self.profile.endpoint(id));
            endpoint.is_some_and(|endpoint| matches(pattern, endpoint))
        })
    }

    fn add_cpu(&mut self) {
        let roles = self.profile.sample_roles();
        for (sample, role) in self.profile.samples().iter().zip(roles) {
            if !self.is_wanted(sample) {
                continue;
            }
            let weight = Weight::of_sample(sample);
            let node = sample.node as usize;
            self.cpu_total += &weight;
            if let Some(sum) = self.cpu.get_mut(node) {
                *sum += &weight;
            }
            if let Some(sum) = self.roles.get_mut(role as usize) {
                *sum += &weight;
            }
            if role == Role::Program {
                self.program_total += &weight;
                if let Some(sum) = self.program_cpu.get_mut(node) {
                    *sum += &weight;
                }
            }
        }
    }

    fn add_wall(&mut self, filter: &'p WallFilter) {
        let profile = self.profile;
        // The JVM's own threads have nothing to be explained.
        let is_program: Vec<bool> = (profile.threads().iter())
            .map(|thread| profile.thread_role(thread) == Role::Program)
            .collect();
        let groups = std::mem::take(&mut self.groups);
        let mut known: HashMap<(Kind, &str), usize, Seeds> = HashMap::default();
        let mut places: HashMap<Place<'_>, usize, Seeds> = HashMap::default();
        for wall in profile.wall(filter) {
            let thread = wall.thread as usize;
            if is_program.get(thread) != Some(&true) {
                continue;
            }
            let context = wall.context.filter(|_| self.by_endpoint);
            let endpoint = context.and_then(|context| profile.endpoint(context));
            let (kind, name) = match endpoint {
                Some(endpoint) => (Kind::Endpoint, endpoint),
                None => (Kind::Threads, groups.get(thread).map_or("", |name| name)),
            };
            let subject = *known.entry((kind, name)).or_insert_with(|| {
                self.subjects.push(Subject::new(kind, name));
                self.subjects.len() - 1
            });
            if let Some(subject) = self.subjects.get_mut(subject) {
                subject.add(wall.cause, wall.thread, &wall.weight);
            }
            let key = (subject, wall.cause, wall.node, wall.detail);
            let place = *places.entry(key).or_insert_with(|| {
                self.entries.push(Entry {
                    subject,
                    cause: wall.cause,
                    node: wall.node,
                    detail: wall.detail,
                    weight: Weight::default(),
                    events: 0,
                    long_ns: 0,
                    first_ns: wall.time_ns,
                    last_ns: wall.time_ns,
                });
                self.entries.len() - 1
            });
            if let Some(entry) = self.entries.get_mut(place) {
                entry.weight += &wall.weight;
                entry.events += 1;
                if wall.lasted_ns >= LONG_NS {
                    entry.long_ns = entry.long_ns.saturating_add(wall.weight.sum);
                }
                entry.first_ns = entry.first_ns.min(wall.time_ns);
                entry.last_ns = entry.last_ns.max(wall.time_ns);
            }
        }
        drop(known);
        self.groups = groups;
    }

    /// Which services of libraries work where; `patterns` are those of each, the same whenever
    /// this is asked.
    pub(crate) fn services(&self, patterns: &[&[&str]]) -> &Services {
        (self.services)
            .get_or_init(|| Services::new(self.profile, &self.stacks, &self.program_cpu, patterns))
    }

    /// The group that a thread belongs to.
    pub(crate) fn group(&self, thread: ThreadId) -> &str {
        self.groups.get(thread as usize).map_or("", |group| group)
    }

    /// Whether the recording has requests with endpoints.
    pub(crate) fn has_endpoints(&self) -> bool {
        (self.subjects.iter()).any(|subject| subject.kind == Kind::Endpoint)
    }

    /// The time that matters: that of all requests, or, without any, of all threads that had
    /// something to do.
    pub(crate) fn all_busy(&self) -> Weight {
        let kind = match self.has_endpoints() {
            true => Kind::Endpoint,
            false => Kind::Threads,
        };
        let mut sum = Weight::default();
        for subject in self.subjects.iter().filter(|subject| subject.kind == kind) {
            sum += &subject.busy;
        }
        sum
    }

    /// Name of [`all_busy`](Facts::all_busy).
    pub(crate) fn all_busy_name(&self) -> &'static str {
        match self.has_endpoints() {
            true => "the wall time of requests",
            false => "the wall time of threads with work",
        }
    }

    /// The CPU time of one role.
    pub(crate) fn role(&self, role: Role) -> Weight {
        self.roles.get(role as usize).copied().unwrap_or_default()
    }

    /// Whether all threads of the process were sampled by the CPU time they used, not only some
    /// states of Java threads.
    pub(crate) fn has_cpu_time(&self) -> bool {
        self.profile.unit() == Unit::Nanoseconds && self.cpu_total.samples > 0
    }

    /// Name of the whole of [`Facts::cpu_total`]. Samples that are only counted are not time.
    pub(crate) fn cpu_name(&self) -> &'static str {
        match self.profile.unit() {
            Unit::Nanoseconds => "the CPU time",
            Unit::Samples => SAMPLES,
        }
    }

    /// Whether the samples surely include the JVM's own work: other profilers may sample only the
    /// program's threads, or only Java code.
    pub(crate) fn sees_the_jvm(&self) -> bool {
        self.is_ours() && self.has_cpu_time()
    }

    /// Whether the recording is one of ours.
    pub(crate) fn is_ours(&self) -> bool {
        !self.profile.info().profiler_version.is_empty()
    }
}

/// Whether wall time is summed by endpoint. Rules then ignore work outside of requests, so requests
/// must be most of the work: half of the CPU time, or of the wall time with work. A batch job with
/// a small status server does not pass this test.
fn is_by_endpoint(profile: &Profile, filter: &WallFilter) -> bool {
    if !profile.has_derived_endpoints() || filter.endpoint.is_some() {
        return true;
    }
    let is_of_program: Vec<bool> = (profile.threads().iter())
        .map(|thread| profile.thread_role(thread) == Role::Program)
        .collect();
    // All time, and that for endpoints.
    let (mut cpu, mut busy) = ((0u64, 0u64), (0u64, 0u64));
    for wall in profile.wall(filter) {
        if is_of_program.get(wall.thread as usize) != Some(&true) || wall.cause == IDLE {
            continue;
        }
        let endpoint = wall.context.and_then(|id| profile.endpoint(id));
        let ns = wall.weight.sum;
        for sum in [(wall.cause == RUNNING).then_some(&mut cpu), Some(&mut busy)] {
            let Some((all, part)) = sum else { continue };
            *all = all.saturating_add(ns);
            *part = part.saturating_add(endpoint.map_or(0, |_| ns));
        }
    }
    let is_most = |(all, part): (u64, u64)| part > 0 && part >= all / 2;
    is_most(cpu) || is_most(busy)
}

impl Subject {
    fn new(kind: Kind, name: &str) -> Subject {
        Subject {
            kind,
            name: name.to_owned(),
            total: Weight::default(),
            busy: Weight::default(),
            threads: BTreeSet::new(),
        }
    }

    fn add(&mut self, cause: &str, thread: ThreadId, weight: &Weight) {
        self.total += weight;
        if cause != IDLE {
            self.busy += weight;
        }
        self.threads.insert(thread);
    }

    /// Its name with its kind, as text.
    pub(crate) fn shown(&self) -> String {
        match self.kind {
            Kind::Endpoint => self.name.clone(),
            Kind::Threads => format!("thread group {}", self.name),
        }
    }
}

/// Whether it was ready to run, and had no processor or no quota left.
pub(crate) fn is_ready(cause: &str) -> bool {
    cause == RUNNABLE || cause == THROTTLED
}

/// Whether this cause is a wait amid work: not running, not runnable, not idle.
pub(crate) fn is_wait(cause: &str) -> bool {
    cause != RUNNING && !is_ready(cause) && cause != IDLE
}

//! The parts that the readers of pprof and of OTLP share: types of values, threads and sums.

use std::collections::HashMap;

use dwell_profile::{
    Builder, ContextId, Look, Measured, NodeId, Profile, RUNNING, Sample, ThreadId, Unit,
};

use super::memory_and_locks::{Kind, Pair};
use super::{Refused, add_samples, name_and_id};

/// Names of CPU time, of wall time and of counted samples in the files of several tools.
const CPU: [&str; 5] = ["cpu", "cpu-time", "cpu_time", "itimer", "ctimer"];
const WALL: [&str; 3] = ["wall", "wall-time", "wall_time"];
const COUNT: [&str; 4] = ["samples", "sample", "cpu-samples", "cpu_samples"];
/// Limits of sums, so that those of a damaged file cannot overflow: 146 years, and 13 days of
/// samples at each nanosecond.
const WEIGHTS_MAX: u64 = 1 << 62;
const COUNTS_MAX: u64 = 1 << 50;

/// A type of value, with the nanoseconds of its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// CPU time.
    Cpu(u64),
    /// Wall time.
    Wall(u64),
    /// A number of samples or of events.
    Count,
}

impl Quantity {
    /// The quantity of a name and a unit; `None`: another one.
    pub fn of(name: &str, unit: &str) -> Option<Quantity> {
        if unit == "count" {
            return Some(Quantity::Count);
        }
        let scale = nanoseconds(unit)?;
        match name {
            _ if CPU.contains(&name) => Some(Quantity::Cpu(scale)),
            _ if WALL.contains(&name) => Some(Quantity::Wall(scale)),
            _ => None,
        }
    }

    /// Whether a period is that of CPU time.
    pub fn is_cpu(name: &str, unit: &str) -> bool {
        matches!(Quantity::of(name, unit), Some(Quantity::Cpu(_)))
    }

    /// A value in nanoseconds or as a number.
    pub fn value(self, value: i64) -> u64 {
        let value = u64::try_from(value).unwrap_or(0);
        match self {
            Quantity::Cpu(scale) | Quantity::Wall(scale) => value.saturating_mul(scale),
            Quantity::Count => value,
        }
    }
}

/// The nanoseconds of a unit.
pub fn nanoseconds(unit: &str) -> Option<u64> {
    match unit {
        "nanoseconds" | "ns" => Some(1),
        "microseconds" | "us" => Some(1_000),
        "milliseconds" | "ms" => Some(1_000_000),
        "seconds" | "s" => Some(1_000_000_000),
        _ => None,
    }
}

/// The places of the types to use.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// CPU time.
    pub cpu: Option<(usize, Quantity)>,
    /// Wall time.
    pub wall: Option<(usize, Quantity)>,
    /// A number of samples.
    pub count: Option<usize>,
    /// Memory and locks.
    pub held: Vec<Pair>,
}

impl Chosen {
    /// The types to use of a file with these names and units.
    ///
    /// # Errors
    ///
    /// If it has neither times, numbers of samples, memory nor locks.
    pub fn of(format: &'static str, types: &[(&str, &str)]) -> Result<Chosen, Refused> {
        let quantities = types.iter().map(|(name, unit)| Quantity::of(name, unit));
        let quantities: Vec<_> = quantities.collect();
        let place = |is_it: fn(Quantity) -> bool| {
            let place = quantities.iter().position(|it| it.is_some_and(is_it))?;
            Some((place, quantities.get(place).copied()??))
        };
        let is_sample = |name: &str| [&COUNT[..], &CPU, &WALL].concat().contains(&name);
        let mut named = types.iter();
        let named = named.position(|it| it.1 == "count" && is_sample(it.0));
        // Numbers of other events, if the file only counts: not those of objects or waits,
        // which have bytes or times as well.
        let is_counted = quantities.iter().all(|it| *it == Some(Quantity::Count));
        let chosen = Chosen {
            cpu: place(|it| matches!(it, Quantity::Cpu(_))),
            wall: place(|it| matches!(it, Quantity::Wall(_))),
            count: named.or_else(|| (is_counted && !types.is_empty()).then_some(0)),
            held: Pair::all(types),
        };
        if chosen.is_time() || chosen.count.is_some() || !chosen.held.is_empty() {
            return Ok(chosen);
        }
        let types = types.iter().map(|(name, _)| (*name).to_owned()).collect();
        Err(Refused::NoTime { format, types })
    }

    /// Whether the file has times.
    pub fn is_time(&self) -> bool {
        self.cpu.is_some() || self.wall.is_some()
    }

    /// Whether it only counts samples or other events.
    pub fn is_counted(&self) -> bool {
        !self.is_time() && self.count.is_some()
    }

    fn has(&self, kind: Kind) -> bool {
        self.held.iter().any(|pair| pair.kind == kind)
    }
}

/// The circumstances of a sample.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'f> {
    /// When it was; 0: not known.
    pub time_ns: u64,
    /// Its thread.
    pub thread: ThreadId,
    /// Its stack.
    pub node: NodeId,
    /// Its request.
    pub context: Option<ContextId>,
    /// Why the thread waited, or [`RUNNING`]; empty: not known.
    pub cause: &'f str,
    /// The object of its wait; empty: not known.
    pub detail: &'f str,
}

/// A profile under construction.
pub struct Model {
    /// The model of all reports.
    pub builder: Builder,
    threads: HashMap<(String, i64), ThreadId>,
    pub(super) weights_left: u64,
    pub(super) bytes_left: u64,
    counts_left: u64,
    /// Whether objects or locks have no class.
    pub(super) has_unknown: bool,
}

impl Model {
    /// An empty profile of a file with such types.
    pub fn new(chosen: &Chosen) -> Model {
        let mut builder = Builder::default();
        builder.unit = match chosen.is_counted() {
            false => Unit::Nanoseconds,
            true => Unit::Samples,
        };
        Model {
            builder,
            threads: HashMap::new(),
            weights_left: WEIGHTS_MAX,
            bytes_left: WEIGHTS_MAX,
            counts_left: COUNTS_MAX,
            has_unknown: false,
        }
    }

    /// A thread by its name and its number, of which one may be unknown.
    pub fn thread(&mut self, name: &str, id: i64) -> ThreadId {
        let (name, id) = match name_and_id(name) {
            Some((name, named)) if id == 0 => (name, named),
            Some((name, _)) => (name, id),
            None => (name, id),
        };
        let shown = match (name, id) {
            ("", 0) => "[all threads]".to_owned(),
            ("", id) => format!("Thread {id}"),
            (name, _) => name.to_owned(),
        };
        let java_tid = self.threads.len() as i64 + 1;
        let new = || self.builder.thread(&shown, id, java_tid, false);
        *self
            .threads
            .entry((name.to_owned(), id))
            .or_insert_with(new)
    }

    /// Adds samples with time on a processor, or counted ones.
    pub fn ran(&mut self, facts: &Facts<'_>, weight: u64, count: u64) {
        let count = count.max(1).min(self.counts_left);
        let weight = match self.builder.unit {
            Unit::Samples => count,
            Unit::Nanoseconds => weight.min(self.weights_left),
        };
        if weight == 0 {
            return;
        }
        self.counts_left -= count;
        self.weights_left -= weight;
        let sample = Sample {
            time_ns: facts.time_ns,
            thread: facts.thread,
            node: facts.node,
            weight,
            count: 0,
            failure: None,
            context: facts.context,
        };
        add_samples(&mut self.builder, sample, count);
    }

    /// Adds wall time in which the thread did not run.
    pub fn waited(&mut self, facts: &Facts<'_>, weight: u64, count: u64) {
        let weight_ns = weight.min(self.weights_left);
        if weight_ns == 0 || facts.cause == RUNNING {
            return;
        }
        let count = count.max(1).min(self.counts_left);
        self.counts_left -= count;
        self.weights_left -= weight_ns;
        let builder = &mut self.builder;
        let detail = (!facts.detail.is_empty()).then(|| builder.name(facts.detail));
        let cause = match facts.cause {
            "" => builder.cause("unknown"),
            cause => builder.cause(cause),
        };
        builder.look(Look {
            time_ns: facts.time_ns,
            thread: facts.thread,
            node: facts.node,
            cause,
            weight_ns,
            count,
            context: facts.context,
            detail,
            ..Look::default()
        });
    }

    /// The profile. `counted` is the name of the counted type, `has_times` whether samples have
    /// times.
    pub fn finish(
        mut self,
        format: &str,
        chosen: &Chosen,
        counted: &str,
        has_times: bool,
    ) -> Profile {
        let info = &mut self.builder.info;
        format.clone_into(&mut info.sample_event);
        format.clone_into(&mut info.engine);
        info.measured = match chosen.is_counted() {
            false => Measured::CpuTime,
            true => Measured::Event(format!("the {format} type {counted}")),
        };
        self.sampled(&chosen.held);
        let has_threads = self
            .threads
            .keys()
            .any(|(name, id)| (name.as_str(), *id) != ("", 0));
        let has_unknown = self.has_unknown;
        let missing = [
            (!has_times, "no times of samples"),
            (!has_threads, "no threads"),
            (chosen.cpu.is_none(), "no CPU time"),
            (chosen.wall.is_none(), "no wall time"),
            (!chosen.has(Kind::Allocated), "no allocations"),
            (!chosen.has(Kind::Live), "no objects in use"),
            (!chosen.has(Kind::Locked), "no locks"),
            (has_unknown, "no classes"),
            (true, "no safepoints and no pauses"),
        ];
        let missing = missing.into_iter().filter(|it| it.0).map(|it| it.1);
        let missing: Vec<&str> = missing.collect();
        let warning = format!("read from {format}, which has {}", missing.join(", "));
        self.builder.warnings.push(warning);
        if [self.weights_left, self.bytes_left, self.counts_left].contains(&0) {
            let warning = format!("the file is damaged: {format} values are too large to add up");
            self.builder.warnings.push(warning);
        }
        self.builder.finish()
    }
}

//! Which waits are those of a thread's own loop, so that the thread is idle: decided from what each
//! thread did in the whole recording, where frames of no table say it. Reports, pages and
//! conversions all read the outcome, because the waits get the cause [`IDLE`] here.
//!
//! An idle thread waits for work of any sort, in one place: next to its outermost frames, without a
//! request, and with next to no CPU time. A false "idle" hides a problem, a missed one only adds a
//! row to a table. So what is doubtful stays as it is: waits for locks and for an answer always do.

mod serving;
#[cfg(test)]
mod tests;
mod waiting;

use crate::builder::Builder;
use crate::frame::MethodId;
use crate::idle::IDLE;
use crate::profile::Unit;
use crate::sample::{CauseId, ThreadId};
use crate::tree::NodeId;
use dwell_jfr::hash::Seeds;
use serving::Serving;
use std::collections::{BTreeMap, HashMap};
use waiting::{Place, Wait};

/// Wall time of a thread below which it is not judged.
const SEEN_NS: u64 = 5_000_000_000;
const LOOKS: u64 = 8;
/// The minimum part of its wall time that a quiet thread waits, and the maximum part of CPU time.
const WAITS: f64 = 0.9;
const CPU: f64 = 0.03;
/// One that does nothing at all.
const WAITS_ALWAYS: f64 = 0.98;
const CPU_NONE: f64 = 0.003;
/// Of a busy thread, waits of less of its time are not worth a judgement.
const WORTH: f64 = 0.1;
/// Frames of the program around a wait that is in a loop at the thread's root.
const FEW: usize = 4;
const SEVERAL: usize = 6;
/// Samples of other work that say where a loop is, and the part of them that is below it. Less than
/// `APART` of them is no other work.
const WORK: u64 = 10;
const BELOW: f64 = 0.9;
const APART: f64 = 0.1;
/// A thread that gets a processor so often a second polls, or has answers to deal with.
const POLLS: f64 = 20.0;
const ANSWERS: f64 = 2.0;
/// A thread whose work the tables know.
const KNOWN: f64 = 0.005;

/// Causes of time in which a thread waits for a processor.
const READY: [&str; 2] = ["runnable", "throttled"];

/// The activity of a thread, but for its waits for a processor.
#[derive(Default)]
struct Life {
    all_ns: u64,
    cpu_ns: u64,
    looks: u64,
    /// Idle by the tables.
    idle_ns: u64,
    has_context: bool,
    /// A virtual thread is a task: it ends with its work.
    is_virtual: bool,
    /// Time by place.
    waits: BTreeMap<Place, u64>,
    /// Samples of CPU time by stack.
    ran: BTreeMap<NodeId, u64>,
    /// Turns on a processor in a second, if they were counted.
    turns: Option<f64>,
}

/// Where a thread's other work is, seen from a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Nearly all is called by the loop around the wait.
    InLoop,
    /// A good part is not, or is called by what waits.
    Around,
    /// Too few samples to decide.
    Little,
}

impl Builder {
    /// Gives waits of threads for work the cause of idle time.
    pub fn mark_idle_loops(&mut self) {
        if self.unit != Unit::Nanoseconds && self.info.event_waits.is_none() {
            return;
        }
        let places = self.places();
        if places.is_empty() {
            return;
        }
        let lives = self.lives(&places);
        let mut idle: HashMap<(ThreadId, Place), bool, Seeds> = HashMap::default();
        for (thread, life) in &lives {
            let is_sure = |place: &Place| place.wait == Wait::Client || life.can_be_judged();
            for place in life.waits.keys().filter(|place| is_sure(place)) {
                let work = self.work(life, place);
                idle.insert((*thread, *place), life.is_idle(place, work));
            }
        }
        let cause = self.cause(IDLE);
        for at in 0..self.looks_len() {
            let Some(look) = self.look_at(at) else { break };
            let place = places.get(&(look.node, look.cause));
            let is_idle = place.and_then(|place| idle.get(&(look.thread, *place)));
            if is_idle == Some(&true) && look.context.is_none() && look.owner.is_none() {
                self.set_cause(at, cause);
            }
        }
    }

    /// The place of each stack and cause that can be a wait for work.
    fn places(&self) -> HashMap<(NodeId, CauseId), Place, Seeds> {
        let serving = Serving::of(self);
        let mut places: HashMap<(NodeId, CauseId), Option<Place>, Seeds> = HashMap::default();
        for look in self.looks() {
            (places.entry((look.node, look.cause)))
                .or_insert_with(|| Place::of(self, &serving, look.node, self.text(look.cause)));
        }
        let known = places.into_iter();
        known
            .filter_map(|(key, place)| Some((key, place?)))
            .collect()
    }

    /// The activity of each thread with such waits.
    fn lives(&self, places: &HashMap<(NodeId, CauseId), Place, Seeds>) -> BTreeMap<ThreadId, Life> {
        let mut lives: BTreeMap<ThreadId, Life> = BTreeMap::new();
        for look in self.looks() {
            // Time that other load takes from a thread is no activity of its own.
            if READY.contains(&self.text(look.cause)) {
                continue;
            }
            let life = lives.entry(look.thread).or_default();
            life.all_ns = life.all_ns.saturating_add(look.weight_ns);
            life.looks = life.looks.saturating_add(look.count);
            life.is_virtual = self.is_virtual(look.thread);
            life.has_context |= look.context.is_some();
            if self.text(look.cause) == IDLE {
                life.idle_ns = life.idle_ns.saturating_add(look.weight_ns);
            }
            let place = places.get(&(look.node, look.cause));
            if let Some(place) = place.filter(|_| look.context.is_none() && look.owner.is_none()) {
                let ns = life.waits.entry(*place).or_default();
                *ns = ns.saturating_add(look.weight_ns);
            }
        }
        lives.retain(|_, life| !life.waits.is_empty());
        let scale = match self.unit {
            Unit::Nanoseconds => 1,
            Unit::Samples => self.info.counted_ns(),
        };
        for sample in self.samples() {
            if let Some(life) = lives.get_mut(&sample.thread) {
                let ns = sample.weight.saturating_mul(scale);
                life.all_ns = life.all_ns.saturating_add(ns);
                life.cpu_ns = life.cpu_ns.saturating_add(ns);
                *life.ran.entry(sample.node).or_default() += u64::from(sample.count);
                life.has_context |= sample.context.is_some();
            }
        }
        for time in &self.thread_times {
            let life = lives.get_mut(&time.thread).filter(|_| time.duration_ns > 0);
            if let Some(life) = life {
                life.turns = Some(time.turns as f64 / (time.duration_ns as f64 / 1e9));
            }
        }
        lives
    }

    /// Where a thread's other work is.
    fn work(&self, life: &Life, place: &Place) -> Work {
        let callers: Vec<MethodId> = self.program_methods(place.node).collect();
        let (mut all, mut below) = (0u64, vec![0u64; callers.len()]);
        for (node, count) in &life.ran {
            let own: Vec<MethodId> = self.program_methods(*node).collect();
            // Waiting takes some time of a processor, too.
            if own.is_empty() || own.first() == Some(&place.method) && place.depth > 1 {
                continue;
            }
            all += count;
            for (caller, sum) in callers.iter().zip(&mut below) {
                if own.contains(caller) {
                    *sum += count;
                }
            }
        }
        if all < WORK {
            return Work::Little;
        }
        let part = |sum: &u64| *sum as f64 / all as f64;
        let inner = below.iter().position(|sum| part(sum) >= APART);
        let is_loop = inner.is_some_and(|at| {
            let waits_itself = at == 0 && place.depth > 1;
            !waits_itself && below.get(at).is_some_and(|sum| part(sum) >= BELOW)
        });
        match is_loop {
            true => Work::InLoop,
            false => Work::Around,
        }
    }
}

impl Life {
    /// Whether it was seen for long enough, and no table knows better.
    fn can_be_judged(&self) -> bool {
        let is_known = self.idle_ns as f64 > KNOWN * self.all_ns as f64;
        self.all_ns >= SEEN_NS && self.looks >= LOOKS && !is_known
    }

    fn part(&self, ns: u64) -> f64 {
        ns as f64 / self.all_ns.max(1) as f64
    }

    /// Whether it does little but wait so.
    fn waits(&self, least: f64, most_cpu: f64, is_so: impl Fn(&Place) -> bool) -> bool {
        self.part(self.sum(is_so)) >= least && self.part(self.cpu_ns) <= most_cpu
    }

    fn sum(&self, is_so: impl Fn(&Place) -> bool) -> u64 {
        let waits = self.waits.iter().filter(|(place, _)| is_so(place));
        waits.fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns))
    }

    /// Whether it wakes up less often than that, as far as is known.
    fn wakes_less_than(&self, a_second: f64) -> bool {
        self.turns.is_none_or(|turns| turns < a_second)
    }

    fn is_idle(&self, place: &Place, work: Work) -> bool {
        if place.is_main && self.is_main_idle(place.wait) {
            return true;
        }
        let is_no_result = |place: &Place| place.wait != Wait::Result;
        let is_quiet = self.waits(WAITS, CPU, is_no_result);
        let does_nothing = self.waits(WAITS_ALWAYS, CPU_NONE, is_no_result);
        // A thread that is busy at other times is idle in the wait of its loop, too. Lines and ways
        // to be compiled do not matter.
        let is_alike = |other: &Place| (other.method, other.wait) == (place.method, place.wait);
        let is_worth = self.part(self.sum(is_alike)) >= WORTH && !self.has_context;
        let is_in_loop = work == Work::InLoop && place.depth <= SEVERAL;
        match place.wait {
            Wait::Client => true,
            Wait::Ready => is_quiet || is_worth && place.depth <= SEVERAL,
            Wait::Result => false,
            _ if work == Work::Around => false,
            Wait::Queue => {
                let is_shallow = place.depth <= SEVERAL || does_nothing;
                is_quiet && is_shallow || is_worth && is_in_loop && place.depth > 1
            }
            Wait::Request => is_quiet && place.depth <= SEVERAL || is_worth && is_in_loop,
            _ if !is_quiet || place.is_in_pool || self.is_virtual => false,
            Wait::Signal => is_in_loop || place.depth <= FEW || does_nothing,
            Wait::Sleep => place.depth <= FEW && self.wakes_less_than(POLLS),
            Wait::End => place.depth <= FEW && self.wakes_less_than(ANSWERS),
        }
    }

    /// Whether the program's first thread only waits for the others.
    fn is_main_idle(&self, wait: Wait) -> bool {
        let (waits, cpu) = match wait {
            Wait::Result => (WAITS_ALWAYS, CPU_NONE),
            _ => (WAITS, CPU),
        };
        self.waits(waits, cpu, |_| true) && self.wakes_less_than(ANSWERS)
    }
}

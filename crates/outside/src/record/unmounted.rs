//! Virtual threads without a carrier. In each tick some of the buckets in which the JDK keeps them
//! are chosen, all with the same probability. The threads found there represent all threads, so
//! their total number need not be known. Must not decide the weight of other samples.

use super::mounted::{Virtual, of_object};
use crate::look::{Looker, Seen};
use crate::memory::Pages;
use crate::virtuals::{Virtuals, is_one};
use dwell_wall::budget::Budget;
use dwell_wall::random::Random;
use dwell_wall::spread::Spread;
use std::rc::Rc;

/// The result of a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Found {
    /// Estimated number of these threads, from the chosen buckets.
    pub estimated: f64,
    /// Number of threads read.
    pub looked: u64,
    /// Number of threads that kept running, or could not be read.
    pub failed: u64,
    /// Number of buckets read.
    buckets: u64,
    /// The time that the tick represents.
    span_ns: u64,
}

/// A waiting virtual thread, and its weight.
pub struct OffVirtual<'p> {
    /// The thread.
    pub whom: Virtual,
    /// Its state and stack.
    pub seen: Seen,
    /// The memory for naming its frames.
    pub pages: Pages<'p>,
    /// Wall-clock time.
    pub weight_ns: u64,
}

/// Takes samples of virtual threads.
pub struct Unmounted {
    virtuals: Virtuals,
    budget: Budget,
    /// Ticks until the next sampling.
    wait: u64,
    /// Time since the last one.
    span_ns: u64,
}

impl Unmounted {
    /// Sampling may take this part of a processor.
    #[must_use]
    pub fn new(virtuals: Virtuals, share: f64) -> Unmounted {
        Unmounted {
            virtuals,
            budget: Budget::of_share(share),
            wait: 0,
            span_ns: 0,
        }
    }

    /// Uses newly found data about the JDK's classes, which are loaded when they are needed.
    pub fn learn(&mut self, virtuals: Virtuals) {
        self.virtuals = virtuals;
    }

    /// Whether a sampling is due, after this number of ticks with this total time.
    pub fn is_due(&mut self, ticks: u64, span_ns: u64) -> bool {
        self.span_ns += span_ns;
        self.wait = self.wait.saturating_sub(ticks);
        self.wait == 0
    }

    /// Reads some threads, and visits them.
    pub fn look<'t>(
        &mut self,
        looker: &Looker<'_, 't>,
        random: &mut Random,
        mut show: impl FnMut(OffVirtual<'t>),
    ) -> Found {
        let vm = looker.vm;
        let looker = &Looker {
            vm,
            tasks: looker.tasks,
            common: Some(Rc::default()),
            sockets: Rc::clone(&looker.sockets),
        };
        let span_ns = std::mem::take(&mut self.span_ns);
        // Adjacent data are read at once.
        let pages = Pages::new(vm.live);
        let sets = self.virtuals.sets(&pages, &vm.layout);
        let places = self.virtuals.places(vm, &pages);
        let total: u64 = places.iter().map(|place| u64::from(place.len())).sum();
        let wanted = usize::try_from(total).unwrap_or(usize::MAX);
        let count = self.budget.count(wanted) as u64;
        let each = total as f64 / count.max(1) as f64;
        let mut found = Found {
            buckets: count,
            span_ns,
            ..Found::default()
        };
        let (mut rest, mut begins) = (places.iter(), 0);
        let mut place = rest.next();
        for position in Spread::new(total, count, random) {
            while let Some(it) = place
                && position - begins >= u64::from(it.len())
            {
                begins += u64::from(it.len());
                place = rest.next();
            }
            let Some(buckets) = place else { break };
            let index = u32::try_from(position - begins).unwrap_or(u32::MAX);
            let mut objects = Vec::new();
            let read = sets.elements(buckets, index, &mut |object| objects.push(object));
            found.failed += u64::from(read.is_err());
            for object in objects {
                match self.one(looker, object) {
                    One::Waits(whom, seen, pages) => {
                        found.looked += 1;
                        found.estimated += each;
                        show(OffVirtual {
                            whom,
                            seen: *seen,
                            pages: *pages,
                            weight_ns: (span_ns as f64 * each) as u64,
                        });
                    }
                    One::Carried => {}
                    One::Lost => {
                        found.looked += 1;
                        found.failed += 1;
                    }
                }
            }
        }
        found
    }

    /// Accounts the CPU time of a sampling, including the processing of its results.
    pub fn spent(&mut self, found: &Found, cpu_ns: u64) {
        let buckets = usize::try_from(found.buckets).unwrap_or(usize::MAX);
        self.budget.spent(buckets, found.span_ns, cpu_ns);
        self.wait = self.budget.ticks();
    }

    fn one<'t>(&self, looker: &Looker<'_, 't>, object: u64) -> One<'t> {
        let vm = looker.vm;
        if !is_one(vm, object) {
            return One::Lost;
        }
        let Some(whom) = of_object(vm, vm.live, object) else {
            return One::Lost;
        };
        match self.virtuals.glance(looker, object) {
            Ok(Some((seen, pages))) => match of_object(vm, vm.live, object) {
                Some(now) if now.id == whom.id => One::Waits(whom, Box::new(seen), Box::new(pages)),
                _ => One::Lost,
            },
            Ok(None) => One::Carried,
            Err(_) => One::Lost,
        }
    }
}

/// The result of reading one thread.
enum One<'t> {
    /// It waits.
    Waits(Virtual, Box<Seen>, Box<Pages<'t>>),
    /// It has a carrier, which is read as a platform thread, or has exited.
    Carried,
    /// It was moved, or ran, during the read.
    Lost,
}

//! Virtual threads without a carrier: in each tick some of the buckets in which the JDK keeps them
//! are chosen, all with the same probability, and what is found there stands for one part in that.
//! How many there are need not be known. Must not decide what a look is worth to others.

use super::mounted::{Virtual, of_object};
use crate::look::{Looker, Seen};
use crate::memory::Pages;
use crate::virtuals::{Virtuals, is_one};
use dwell_wall::budget::Budget;
use dwell_wall::random::Random;
use dwell_wall::spread::Spread;
use std::rc::Rc;

/// What a tick has found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Found {
    /// How many there are, as far as the chosen ones tell.
    pub estimated: f64,
    /// How many were looked at.
    pub looked: u64,
    /// Of these, how many would not stand still, or could not be read.
    pub failed: u64,
    /// Buckets that were looked at for it.
    buckets: u64,
    /// The time that it stands for.
    span_ns: u64,
}

/// A virtual thread that waits, and for how long it stands.
pub struct OffVirtual<'p> {
    /// Who.
    pub whom: Virtual,
    /// What it does.
    pub seen: Seen,
    /// The memory in which its frames are to be named.
    pub pages: Pages<'p>,
    /// Wall-clock time.
    pub weight_ns: u64,
}

/// Looks at virtual threads.
pub struct Unmounted {
    virtuals: Virtuals,
    budget: Budget,
    /// Ticks until the next look.
    wait: u64,
    /// Time that has passed since the last one.
    span_ns: u64,
}

impl Unmounted {
    /// Looking may take this part of a processor.
    #[must_use]
    pub fn new(virtuals: Virtuals, share: f64) -> Unmounted {
        Unmounted {
            virtuals,
            budget: Budget::of_share(share),
            wait: 0,
            span_ns: 0,
        }
    }

    /// Reads them with what is known now: classes are loaded as they are needed.
    pub fn learn(&mut self, virtuals: Virtuals) {
        self.virtuals = virtuals;
    }

    /// Whether it is time to look, now that so many ticks have passed, of so much time together.
    pub fn is_due(&mut self, ticks: u64, span_ns: u64) -> bool {
        self.span_ns += span_ns;
        self.wait = self.wait.saturating_sub(ticks);
        self.wait == 0
    }

    /// Looks at some, and shows them.
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
        };
        let span_ns = std::mem::take(&mut self.span_ns);
        // What lies together is read at once.
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

    /// The CPU time that a look has taken, with all that was done with what it found.
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

/// What a look at one has given.
enum One<'t> {
    /// It waits.
    Waits(Virtual, Box<Seen>, Box<Pages<'t>>),
    /// It has a carrier, which is looked at as a platform thread, or has ended.
    Carried,
    /// It was moved, or ran, while it was read.
    Lost,
}

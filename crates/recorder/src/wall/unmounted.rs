//! Weights and reports of samples of logical threads that no platform thread runs. The runtime
//! finds these threads.

use super::look::Kernel;
use super::who;
use crate::context::context_of;
use crate::looks::shelf::{Note, Notes, Run, Shelf};
use crate::looks::threads::Threads;
use crate::looks::unmounted::{Found, OffLogical, Seen};
use crate::runtime::{Looks, Runtime};
use crate::threads::VIRTUAL_KEY;
use dwell_context::Context;
use dwell_walker::Frame;
use std::sync::Arc;

/// A tick: its time, the time it stands for, and which threads may be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// On the monotonic clock.
    pub at_ns: u64,
    /// The time that the tick stands for.
    pub span_ns: u64,
    /// Whether only threads that work for a request count.
    pub only_context: bool,
    /// Cost of samples on other threads that this tick pays, in ns.
    pub debt_ns: u64,
}

/// Wanted samples at a time, if there are as many threads: starting to sample costs as much as
/// several samples.
const WANTED: usize = 64;

/// Ticks without samples of such threads. The next samples stand for them.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    pub ticks: u64,
    span_ns: u64,
    debt_ns: u64,
    /// Samples of other threads in these ticks.
    pub looked: usize,
    /// Estimated number of threads when some were last sampled.
    estimated: f64,
    /// Number of samples, if these were all threads.
    all: Option<usize>,
}

impl LeftOut {
    /// Adds ticks, the time they stand for and the cost to pay in them, with or without samples.
    pub fn add(&mut self, ticks: u64, span_ns: u64, debt_ns: u64) {
        self.ticks += ticks;
        self.span_ns += span_ns;
        self.debt_ns += debt_ns;
    }

    /// The moment that samples made now stand for, and the number of ticks since the last ones.
    pub fn take(&mut self, at_ns: u64, only_context: bool) -> (Moment, u64) {
        let moment = Moment {
            at_ns,
            span_ns: std::mem::take(&mut self.span_ns),
            only_context,
            debt_ns: std::mem::take(&mut self.debt_ns),
        };
        (moment, std::mem::take(&mut self.ticks))
    }

    /// Number of samples wanted.
    pub fn wanted(&self) -> usize {
        self.all.unwrap_or(WANTED).min(WANTED)
    }

    /// Records the result of `looked` samples. `are_all`: there were no more threads to sample.
    pub fn found(&mut self, found: &Found, looked: usize, are_all: bool) {
        self.estimated = found.estimated;
        self.all = are_all.then_some(looked);
    }

    /// Result of a tick without samples: the estimate does not change.
    pub fn as_before(&self) -> Found {
        Found {
            estimated: self.estimated,
            ..Found::default()
        }
    }
}

/// Reports the samples of such threads in a tick.
#[derive(Clone, Copy)]
pub struct Teller<'a> {
    pub(super) moment: Moment,
    pub(super) threads: &'a Threads,
    pub(super) kernel: &'a Kernel,
    pub(super) shelf: &'a Shelf,
}

impl Teller<'_> {
    /// Reports the sample of a thread that stands for `each` threads. `frames` has its stack. The
    /// other buffer is for the stack of the owner of what it waits for.
    pub fn tell<R: Runtime, L: Looks<R>>(
        &self,
        looks: &L,
        seen: Seen<L::Claim>,
        each: f64,
        (frames, owner_frames): (&[Frame], &mut [Frame]),
        found: &mut Found,
    ) {
        let moment = &self.moment;
        let seen = match seen {
            Ok(None) => return,
            Ok(Some(seen)) => seen,
            Err(_) => {
                found.looked += 1;
                found.failed += 1;
                return;
            }
        };
        found.looked += 1;
        found.estimated += each;
        let work = context_of(seen.id).map(Arc::new);
        if moment.only_context && work.is_none() {
            return;
        }
        let claim = seen.claim.as_ref();
        let all = (self.kernel, self.threads);
        let owner = claim.and_then(|claim| who::holder(looks, all, claim, owner_frames));
        let has_it = owner
            .as_ref()
            .map(|it| (it.key, owner_frames.get(..it.len).unwrap_or(&[])));
        let weight_ns = (moment.span_ns as f64 * each) as u64;
        let mut notes = self.shelf.lock();
        let told = tell(
            seen,
            (frames, has_it),
            (moment, work),
            weight_ns,
            &mut notes,
        );
        found.failed += usize::from(!told);
        if let Some(owner) = owner {
            owner.tell_name(&mut notes);
        }
    }
}

/// Reports one sample to the drainer; false if there is no room.
fn tell<C>(
    seen: OffLogical<C>,
    (frames, owner): (&[Frame], Option<(u64, &[Frame])>),
    (moment, work): (&Moment, Option<Arc<Context>>),
    weight_ns: u64,
    notes: &mut Notes,
) -> bool {
    let thread = seen.id | VIRTUAL_KEY;
    let len = seen.off.walk.map_or(0, |walk| walk.len);
    let stack = frames.get(..len).unwrap_or(&[]);
    if !notes.add_stack((thread, 0), seen.off, stack, owner) {
        notes.lost.1 += weight_ns;
        return false;
    }
    if let Some(name) = seen.name {
        notes.add(Note::Name { thread, name }, 0);
    }
    let run = Run {
        class: 0,
        work,
        thread,
        since_ns: moment.at_ns.saturating_sub(moment.span_ns),
        until_ns: moment.at_ns,
        count: 1,
        weight_ns,
        choices: 1,
    };
    notes.add(Note::Run(run), weight_ns);
    notes.add(Note::Gone { thread }, 0);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_for_the_ticks_left_out() {
        let mut left_out = LeftOut::default();
        left_out.add(1, 20, 3);
        left_out.add(2, 40, 4);
        let (taken, ticks) = left_out.take(9, true);
        assert_eq!((taken.span_ns, taken.debt_ns, ticks), (60, 7, 3));
        assert!(taken.at_ns == 9 && taken.only_context);
        assert_eq!(left_out.take(9, true).1, 0);
    }

    #[test]
    fn wanted_samples_do_not_exceed_threads() {
        let mut left_out = LeftOut::default();
        assert_eq!(left_out.wanted(), WANTED);
        let found = Found {
            estimated: 12.0,
            looked: 12,
            failed: 0,
        };
        left_out.found(&found, 12, true);
        assert_eq!(left_out.wanted(), 12);
        let before = left_out.as_before();
        assert!(before.estimated > 11.0 && before.looked == 0);
        left_out.found(&found, 12, false);
        assert_eq!(left_out.wanted(), WANTED);
    }
}

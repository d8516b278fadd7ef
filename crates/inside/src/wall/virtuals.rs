//! Samples of unmounted virtual threads: each tick reads some of them in the heap. It does not
//! start or stop them, and it changes no method of the JDK.
//!
//! The JDK keeps them in sets, which are never read completely. Each tick selects buckets of the
//! small sets, and buckets of the large sets, each with the same probability. A thread in such a
//! bucket has the inverse of this probability as its weight (Horvitz and Thompson's estimator). The
//! number of threads need not be known, and a tick costs the same for a hundred as for a million.
//!
//! A virtual thread leads to the threads that it has forked in a scope. The weight of such a thread
//! is the weight of its parent, divided by the probability of its selection in the scope.
//!
//! Threads with a recent sign of life, or that have just begun, are a separate stratum. They are
//! found by their ids, which determine the bucket: see [`dwell_wall::lively`]. If a selected bucket
//! has one of them, it is skipped there. The stratum covers only the sets that each tick finds. It
//! does not cover the threads of other sets or those that a virtual thread has forked in a scope.

use super::look::{Claim, Looker};
use super::places::{Place, Places, sets};
use super::{Asked, JavaLooks};
use crate::jvm::virtual_threads::VirtualThreads;
use dwell_recorder::looks::unmounted::{Found, OffLogical, Seen};
use dwell_recorder::wall::FRAMES_MAX;
use dwell_signal::Live;
use dwell_walker::hotspot::objects;
use dwell_walker::hotspot::sets::Sets;
use dwell_walker::{Fault, Frame, Memory};
use dwell_wall::budget::Budget;
use dwell_wall::lively::{Lively, part_of};
use dwell_wall::random::Random;
use dwell_wall::spread::Spread;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum number of buckets of a small set. The small sets get half of all reads: they have few
/// threads, but one of these may have forked most of the other threads.
const SMALL: u32 = 64;
/// Minimum number of buckets that are read of a virtual thread's scope, if it has as many. The
/// budget may allow more.
const FORKED_MIN: usize = 8;
/// Maximum number of forked threads that are visited in one tick.
const FORKED_MAX: usize = 4096;
/// Maximum number of new threads per tick that count as lively; of more, the last ones do.
const NEW_MAX: u64 = 512;
/// Maximum number of sets in which lively threads are searched. With more sets there is no separate
/// stratum.
pub(super) const SEARCHED_MAX: usize = 16;

/// The inputs of a tick.
#[derive(Clone, Copy)]
pub struct Looking<'a> {
    /// The sampler of the recording.
    pub looks: &'a JavaLooks,
    /// Reads single threads.
    pub looker: &'a Looker<'a>,
    /// Fields and addresses for virtual threads.
    pub known: &'a VirtualThreads,
    /// The selected platform threads, and the receiver of samples.
    pub at: &'a Asked<'a>,
}

/// Samples unmounted virtual threads.
pub struct Virtuals {
    places: Places,
    threads: Vec<u64>,
    frames: Vec<Frame>,
    owner_frames: Vec<Frame>,
    /// Threads to visit, with their weights.
    waiting: Vec<Met>,
    forked: Forked,
    lively: Lively,
    /// The id of the next new thread, as read in this tick; 0 if unknown.
    next_id: u64,
    /// Whether lively threads are a separate stratum in this tick.
    is_apart: bool,
}

/// A thread that was found, and its weight.
#[derive(Clone, Copy, Debug)]
struct Met {
    thread: u64,
    each: f64,
    /// Whether it can also be found by its id.
    is_certain: bool,
}

/// The work on scopes of virtual threads in this tick.
#[derive(Clone, Copy, Debug, Default)]
struct Forked {
    /// Buckets that the budget still allows.
    room: usize,
    /// Buckets read.
    buckets: usize,
    /// Threads visited.
    visits: usize,
}

impl Default for Virtuals {
    fn default() -> Virtuals {
        Virtuals {
            places: Places::default(),
            threads: Vec::new(),
            frames: vec![Frame::EMPTY; FRAMES_MAX],
            owner_frames: vec![Frame::EMPTY; FRAMES_MAX],
            waiting: Vec::new(),
            forked: Forked::default(),
            lively: Lively::default(),
            next_id: 0,
            is_apart: false,
        }
    }
}

impl Virtuals {
    /// Samples some threads. Returns the results, and the number of buckets read.
    pub fn look(
        &mut self,
        at: &Looking<'_>,
        budget: &Budget,
        random: &mut Random,
    ) -> (Found, usize) {
        let mut found = Found::default();
        let Ok(all) = self.places.find(at.looker, at.known, at.at, random) else {
            found.failed += 1;
            return (found, 0);
        };
        let certain = all.iter().filter(|place| place.is_certain());
        let certain: Vec<Place> = certain.take(SEARCHED_MAX + 1).copied().collect();
        self.is_apart = certain.len() <= SEARCHED_MAX;
        self.take_in_new(at, &certain);
        let may = budget.count(usize::MAX);
        let apart = self.look_at_lively(at, &certain, may, random, &mut found);
        let (small, large): (Vec<Place>, Vec<Place>) = all
            .into_iter()
            .partition(|place| place.buckets.len() <= SMALL);
        let totals = [buckets_of(&small), buckets_of(&large)];
        let total = totals[0].saturating_add(totals[1]);
        let left = may.saturating_sub(apart.looked).max(1);
        let count = left.min(usize::try_from(total).unwrap_or(usize::MAX));
        self.forked = Forked {
            room: left.saturating_sub(count),
            ..Forked::default()
        };
        let counts = shares(count as u64, totals);
        self.look_in(at, &small, counts[0], random, &mut found);
        self.look_in(at, &large, counts[1], random, &mut found);
        // These changes are for later ticks.
        for id in apart.gone {
            self.lively.forget(id);
        }
        self.take_in(at, &certain);
        (found, apart.looked + count + self.forked.buckets)
    }

    /// Samples some of the lively threads.
    fn look_at_lively(
        &mut self,
        at: &Looking<'_>,
        certain: &[Place],
        may: usize,
        random: &mut Random,
        found: &mut Found,
    ) -> Apart {
        let mut apart = Apart::default();
        self.lively.turn(at.at.at_ns);
        if !self.is_apart || self.lively.is_empty() {
            return apart;
        }
        let count = part_of(may, self.lively.len());
        let each = self.lively.len() as f64 / (count.max(1) as f64);
        apart.looked = count;
        for id in self.lively.choose(count, random).to_vec() {
            match find(at.looker, at.known, certain, id) {
                Ok(Some(thread)) => {
                    let seen = at.looker.look_unmounted(at.known, thread, &mut self.frames);
                    match &seen {
                        Ok(Some(off)) => {
                            let place = self.place_of(off);
                            self.lively.seen(id, place, at.at.at_ns);
                        }
                        // It is mounted.
                        Ok(None) => {
                            self.lively.ran(id, at.at.at_ns);
                        }
                        Err(_) => {}
                    }
                    self.keep(seen, each, at, found);
                }
                Ok(None) => apart.gone.push(id),
                Err(fault) => self.keep(Err(fault), each, at, found),
            }
        }
        apart
    }

    /// A hash of a thread's stack and of the cause of its wait.
    fn place_of(&self, off: &OffLogical<Claim>) -> u64 {
        let mut hasher = DefaultHasher::new();
        let len = off.off.walk.map_or(0, |walk| walk.len);
        self.frames.get(..len).unwrap_or(&[]).hash(&mut hasher);
        off.off.detail.hash(&mut hasher);
        hasher.finish()
    }

    /// Adds the threads that have begun since the last tick. Their ids are consecutive.
    fn take_in_new(&mut self, at: &Looking<'_>, certain: &[Place]) {
        let next = match at.known.next_id {
            0 => Ok(0),
            address => at.looker.live.word(address),
        };
        let next = next.unwrap_or(0);
        let before = std::mem::replace(&mut self.next_id, next);
        // In the first tick, the threads with the last ids count as new.
        if next == 0 || !self.is_apart {
            return;
        }
        for id in before.max(next.saturating_sub(NEW_MAX))..next {
            if matches!(find(at.looker, at.known, certain, id), Ok(Some(_))) {
                self.lively.began(id, at.at.at_ns);
            }
        }
    }

    /// Adds the threads that have run, if they can be found by their ids.
    fn take_in(&mut self, at: &Looking<'_>, certain: &[Place]) {
        if !self.is_apart {
            return;
        }
        for &id in at.at.ran {
            let is_new = self.lively.ran(id, at.at.at_ns);
            if is_new && matches!(find(at.looker, at.known, certain, id), Ok(Some(_))) {
                self.lively.add(id, at.at.at_ns);
            }
        }
    }

    /// Reads `count` random buckets of these sets.
    fn look_in(
        &mut self,
        at: &Looking<'_>,
        places: &[Place],
        count: u64,
        random: &mut Random,
        found: &mut Found,
    ) {
        let total = buckets_of(places);
        let part = total as f64 / (count.max(1) as f64);
        let mut places = places.iter();
        let (mut place, mut begins) = (places.next(), 0);
        for position in Spread::new(total, count, random) {
            while let Some(it) = place
                && position - begins >= u64::from(it.buckets.len())
            {
                begins += u64::from(it.buckets.len());
                place = places.next();
            }
            let Some(it) = place else { break };
            let index = u32::try_from(position - begins).unwrap_or(u32::MAX);
            let mut threads = std::mem::take(&mut self.threads);
            let sets = sets(at.looker, at.known);
            let read = sets.elements(&it.buckets, index, &mut |thread| threads.push(thread));
            found.failed += usize::from(read.is_err());
            for thread in threads.drain(..) {
                let met = Met {
                    thread,
                    each: part * it.factor,
                    is_certain: it.is_certain(),
                };
                self.visit(at, met, random, found);
            }
            self.threads = threads;
        }
    }

    /// Samples a thread, then some of the threads that it has forked, and so on.
    fn visit(&mut self, at: &Looking<'_>, first: Met, random: &mut Random, found: &mut Found) {
        let mut next = Some(first);
        while let Some(met) = next {
            let Met { thread, each, .. } = met;
            match self.places.is_virtual(at.looker, thread) {
                Ok(true) => {
                    if !self.is_looked_at_apart(at.looker, &met) {
                        let looker = at.looker;
                        let seen = looker.look_unmounted(at.known, thread, &mut self.frames);
                        self.keep(seen, each, at, found);
                    }
                    self.follow(at, (thread, each), random, found);
                }
                // A platform thread. Its scopes are read in `Places::find`.
                Ok(false) => {}
                Err(fault) => self.keep(Err(fault), each, at, found),
            }
            next = self.waiting.pop();
            self.forked.visits += usize::from(next.is_some());
            if self.forked.visits > FORKED_MAX {
                // Impossible in a consistent heap, where forked threads form a tree.
                found.failed += self.waiting.len() + 1;
                self.waiting.clear();
                break;
            }
        }
    }

    /// Whether a thread is in the separate stratum of lively threads.
    fn is_looked_at_apart(&self, looker: &Looker<'_>, met: &Met) -> bool {
        if !self.is_apart || !met.is_certain {
            return false;
        }
        let objects = &looker.vm.layout.extra.objects;
        let id = objects::thread_id(&looker.live, objects, met.thread);
        // A thread that has begun during this tick is sampled in the next one.
        let is_later = |id| self.next_id != 0 && id >= self.next_id;
        id.is_ok_and(|id| self.lively.contains(id) || is_later(id))
    }

    /// Selects some of the threads that a thread has forked.
    fn follow(
        &mut self,
        at: &Looking<'_>,
        (thread, each): (u64, f64),
        random: &mut Random,
        found: &mut Found,
    ) {
        let sets = sets(at.looker, at.known);
        let (forked, waiting) = (&mut self.forked, &mut self.waiting);
        let mut failed = 0;
        let read = self.places.forked_by(at.looker, at.known, thread, |set| {
            let Ok(buckets) = sets.buckets(set) else {
                failed += 1;
                return;
            };
            let len = u64::from(buckets.len());
            // The number must not depend on the content of the buckets, else estimates are biased.
            let count = len.min(forked.room.max(FORKED_MIN) as u64);
            forked.room = forked.room.saturating_sub(count as usize);
            forked.buckets += count as usize;
            let each = each * len as f64 / (count.max(1) as f64);
            for index in Spread::new(len, count, random) {
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                let mut add = |thread| {
                    waiting.push(Met {
                        thread,
                        each,
                        is_certain: false,
                    });
                };
                failed += usize::from(sets.elements(&buckets, index, &mut add).is_err());
            }
        });
        found.failed += failed + usize::from(read.is_err());
    }

    /// Reports the sample of a thread with weight `each`.
    fn keep(&mut self, seen: Seen<Claim>, each: f64, at: &Looking<'_>, found: &mut Found) {
        let buffers = (&*self.frames, &mut *self.owner_frames);
        (at.at.tell)(at.looks, seen, each, buffers, found);
    }
}

/// The result of sampling lively threads.
#[derive(Debug, Default)]
struct Apart {
    looked: usize,
    /// Ids of threads that have ended.
    gone: Vec<u64>,
}

/// The object of the virtual thread with this id, if it is in one of these sets.
pub(super) fn find(
    looker: &Looker<'_>,
    known: &VirtualThreads,
    certain: &[Place],
    id: u64,
) -> Result<Option<u64>, Fault> {
    let objects = &looker.vm.layout.extra.objects;
    let all = sets(looker, known);
    let mut fault = None;
    for place in certain {
        let Some(index) = Sets::<Live>::bucket_of(&place.buckets, id) else {
            continue;
        };
        let mut found = None;
        let read = all.elements(&place.buckets, index, &mut |thread| {
            if objects::thread_id(&looker.live, objects, thread) == Ok(id) {
                found = Some(thread);
            }
        });
        match (found, read) {
            (Some(thread), _) => return Ok(Some(thread)),
            (None, Err(error)) => fault = Some(error),
            (None, Ok(())) => {}
        }
    }
    fault.map_or(Ok(None), Err)
}

fn buckets_of(places: &[Place]) -> u64 {
    places
        .iter()
        .map(|place| u64::from(place.buckets.len()))
        .sum()
}

/// The division of `count` reads between small and large sets, which have these numbers of buckets.
fn shares(count: u64, [small, large]: [u64; 2]) -> [u64; 2] {
    let half = (count / 2).max(1).min(small);
    // Reads that one group cannot use go to the other.
    let of_small = half.max(count.saturating_sub(large)).min(small);
    [of_small, count.saturating_sub(of_small).min(large)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_sets_share_all_reads() {
        assert_eq!(shares(10, [16, 500]), [5, 5]);
        assert_eq!(shares(100, [16, 500]), [16, 84]);
        assert_eq!(shares(100, [500, 16]), [84, 16]);
        assert_eq!(shares(7, [7, 0]), [7, 0]);
        assert_eq!(shares(7, [0, 90]), [0, 7]);
        assert_eq!(shares(2, [16, 500]), [1, 1]);
        assert_eq!(shares(0, [0, 0]), [0, 0]);
        for count in 2..40 {
            for small in 0..30 {
                for large in 0..30 {
                    let all = count.min(small + large);
                    let [a, b] = shares(all, [small, large]);
                    assert!(a <= small && b <= large && a + b == all);
                    assert!(all < 2 || (a > 0) == (small > 0) && (b > 0) == (large > 0));
                }
            }
        }
    }
}

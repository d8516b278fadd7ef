//! Virtual threads that are not mounted: some of them are looked at in each tick, in the heap. They
//! are neither started, stopped nor asked, and no method of the JDK is changed.
//!
//! The sets in which the JDK keeps them are never read as a whole. Of the buckets of all small sets
//! some are chosen, each with the same probability, and of those of all large sets; what is found
//! stands for one part in that probability (Horvitz and Thompson's estimator). How many there are
//! need not be known, and looking costs the same for a hundred as for a million. Threads that a
//! virtual thread has forked in a scope are found with it: each stands for as many as that one
//! does, times one part in the probability with which it is chosen among its like.
//!
//! Those that have shown a sign of life lately, or have just begun, are a stratum of their own, and
//! are found by their ids, which tell the bucket: see [`dwell_wall::lively`]. Where the buckets
//! lead to one of them it is passed over. That holds for sets that are there in each tick; whoever
//! is in others, or was forked in a scope of a virtual thread, is looked at as all others are.

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

/// Sets with at most so many buckets get half of all looks: their threads are few, but one of them
/// may have forked most of the others.
const SMALL: u32 = 64;
/// Buckets of a scope of a virtual thread that are looked at, if there are as many and more cannot
/// be afforded.
const FORKED_MIN: usize = 8;
/// Threads that are visited in one tick because others have forked them, at most.
const FORKED_MAX: usize = 4096;
/// Of threads that have begun in one tick so many are taken for lively ones at most: the last.
const NEW_MAX: u64 = 512;
/// Sets in which those with a sign of life are searched at most: where there are more, nobody is
/// looked at apart.
pub(super) const SEARCHED_MAX: usize = 16;

/// What a tick works with.
#[derive(Clone, Copy)]
pub struct Looking<'a> {
    /// Looks at threads, for the recording ...
    pub looks: &'a JavaLooks,
    /// ... and by themselves.
    pub looker: &'a Looker<'a>,
    /// What is known of virtual threads.
    pub known: &'a VirtualThreads,
    /// Which platform threads are asked, and who is told.
    pub at: &'a Asked<'a>,
}

/// Looks at virtual threads.
pub struct Virtuals {
    places: Places,
    threads: Vec<u64>,
    frames: Vec<Frame>,
    owner_frames: Vec<Frame>,
    /// Threads to be visited, with what each stands for.
    waiting: Vec<Met>,
    forked: Forked,
    lively: Lively,
    /// The id that the next thread was to get in this tick; 0 if unknown.
    next_id: u64,
    /// Whether those are looked at apart in this tick.
    is_apart: bool,
}

/// A thread that was found, and what it stands for.
#[derive(Clone, Copy, Debug)]
struct Met {
    thread: u64,
    each: f64,
    /// Whether it is found by its id, too.
    is_certain: bool,
}

/// What following scopes of virtual threads may still take in this tick.
#[derive(Clone, Copy, Debug, Default)]
struct Forked {
    /// Buckets that can be afforded.
    room: usize,
    /// Buckets looked at.
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
    /// Looks at some. Returns what was found, and how many buckets were looked at for it.
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
        // What was seen now is for later ticks.
        for id in apart.gone {
            self.lively.forget(id);
        }
        self.take_in(at, &certain);
        (found, apart.looked + count + self.forked.buckets)
    }

    /// Looks at some of those that have shown a sign of life.
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
                        // It runs.
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

    /// A number for where a thread was seen, and for what it waits there.
    fn place_of(&self, off: &OffLogical<Claim>) -> u64 {
        let mut hasher = DefaultHasher::new();
        let len = off.off.walk.map_or(0, |walk| walk.len);
        self.frames.get(..len).unwrap_or(&[]).hash(&mut hasher);
        off.off.detail.hash(&mut hasher);
        hasher.finish()
    }

    /// Takes in those that have begun since the last tick: their ids tell.
    fn take_in_new(&mut self, at: &Looking<'_>, certain: &[Place]) {
        let next = match at.known.next_id {
            0 => Ok(0),
            address => at.looker.live.word(address),
        };
        let next = next.unwrap_or(0);
        let before = std::mem::replace(&mut self.next_id, next);
        // Of those that are there at the first tick the last ones are taken for new.
        if next == 0 || !self.is_apart {
            return;
        }
        for id in before.max(next.saturating_sub(NEW_MAX))..next {
            if matches!(find(at.looker, at.known, certain, id), Ok(Some(_))) {
                self.lively.began(id, at.at.at_ns);
            }
        }
    }

    /// Takes in those that have run, if they can be found by their ids.
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

    /// Looks at so many buckets of these sets.
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

    /// Looks at a thread that stands for so many, and at some of those that it has forked, and so
    /// on.
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
                // A platform thread: those are asked for their scopes by themselves.
                Ok(false) => {}
                Err(fault) => self.keep(Err(fault), each, at, found),
            }
            next = self.waiting.pop();
            self.forked.visits += usize::from(next.is_some());
            if self.forked.visits > FORKED_MAX {
                // Never in earnest: what leads here is no tree.
                found.failed += self.waiting.len() + 1;
                self.waiting.clear();
                break;
            }
        }
    }

    /// Whether a thread is one of those with a sign of life that are looked at by themselves.
    fn is_looked_at_apart(&self, looker: &Looker<'_>, met: &Met) -> bool {
        if !self.is_apart || !met.is_certain {
            return false;
        }
        let objects = &looker.vm.layout.extra.objects;
        let id = objects::thread_id(&looker.live, objects, met.thread);
        // One that has begun within this tick is for the next.
        let is_later = |id| self.next_id != 0 && id >= self.next_id;
        id.is_ok_and(|id| self.lively.contains(id) || is_later(id))
    }

    /// Chooses some of the threads that a thread has forked.
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
            // How many depends on what was seen before, never on what is in there.
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

    /// Keeps what was seen of a thread that stands for `each`.
    fn keep(&mut self, seen: Seen<Claim>, each: f64, at: &Looking<'_>, found: &mut Found) {
        let buffers = (&*self.frames, &mut *self.owner_frames);
        (at.at.tell)(at.looks, seen, each, buffers, found);
    }
}

/// What looks at those with a sign of life have come to.
#[derive(Debug, Default)]
struct Apart {
    looked: usize,
    /// Those that are not there any more.
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

/// How many of `count` looks small and large sets get, of which there are so many buckets.
fn shares(count: u64, [small, large]: [u64; 2]) -> [u64; 2] {
    let half = (count / 2).max(1).min(small);
    // What one cannot use is the other's.
    let of_small = half.max(count.saturating_sub(large)).min(small);
    [of_small, count.saturating_sub(of_small).min(large)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_sets_share_all_looks() {
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

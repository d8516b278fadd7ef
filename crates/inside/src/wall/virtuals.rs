//! Virtual threads that are not mounted: some of them are looked at in each tick, in the heap. They
//! are neither started, stopped nor asked, and no method of the JDK is changed.
//!
//! The sets in which the JDK keeps them are never read as a whole. Of the buckets of all small sets
//! some are chosen, each with the same probability, and of those of all large sets; what is found
//! stands for one part in that probability (Horvitz and Thompson's estimator). How many there are
//! need not be known, and looking costs the same for a hundred as for a million. Threads that a
//! virtual thread has forked in a scope are found with it: each stands for as many as that one
//! does, times one part in the probability with which it is chosen among its like.

use super::look::{Claim, Looker};
use super::places::{Place, Places, sets};
use super::{Asked, JavaLooks};
use crate::jvm::virtual_threads::VirtualThreads;
use dwell_recorder::looks::unmounted::{Found, Seen};
use dwell_recorder::wall::FRAMES_MAX;
use dwell_walker::Frame;
use dwell_wall::budget::Budget;
use dwell_wall::random::Random;
use dwell_wall::spread::Spread;

/// Sets with at most so many buckets get half of all looks: their threads are few, but one of them
/// may have forked most of the others.
const SMALL: u32 = 64;
/// Buckets of a scope of a virtual thread that are looked at, if there are as many and more cannot
/// be afforded.
const FORKED_MIN: usize = 8;
/// Threads that are visited in one tick because others have forked them, at most.
const FORKED_MAX: usize = 4096;

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
    waiting: Vec<(u64, f64)>,
    forked: Forked,
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
        let (small, large): (Vec<Place>, Vec<Place>) = all
            .into_iter()
            .partition(|place| place.buckets.len() <= SMALL);
        let totals = [buckets_of(&small), buckets_of(&large)];
        let total = totals[0].saturating_add(totals[1]);
        let count = budget.count(usize::try_from(total).unwrap_or(usize::MAX));
        self.forked = Forked {
            room: budget.count(usize::MAX).saturating_sub(count),
            ..Forked::default()
        };
        let counts = shares(count as u64, totals);
        self.look_in(at, &small, counts[0], random, &mut found);
        self.look_in(at, &large, counts[1], random, &mut found);
        (found, count + self.forked.buckets)
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
                self.visit(at, (thread, part * it.factor), random, found);
            }
            self.threads = threads;
        }
    }

    /// Looks at a thread that stands for so many, and at some of those that it has forked, and so
    /// on.
    fn visit(
        &mut self,
        at: &Looking<'_>,
        first: (u64, f64),
        random: &mut Random,
        found: &mut Found,
    ) {
        let mut next = Some(first);
        while let Some((thread, each)) = next {
            match self.places.is_virtual(at.looker, thread) {
                Ok(true) => {
                    let looker = at.looker;
                    let seen = looker.look_unmounted(at.known, thread, &mut self.frames);
                    self.keep(seen, each, at, found);
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
                let mut add = |thread| waiting.push((thread, each));
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

//! Threads that rest and whose turns on processors can be read where they are: all of them are
//! asked in one pass, so that nobody has to stand for others, and of those that have not run
//! nothing is written: how long each has been where it was is the time that passes have stood for
//! since it joined. A pass reads a few words of each, one after the other, which the processor can
//! be told to fetch ahead.

/// Nobody's place.
const ABSENT: u32 = u32::MAX;
/// So many entries later is what is fetched ahead.
const AHEAD: usize = 12;
/// What is owed is told after so long first, so that a recording that breaks off has it, ...
const HELD_FIRST_NS: u64 = 1_000_000_000;
/// ... and then each time after so long.
const HELD_NS: u64 = 8_000_000_000;
/// In a pass so many are told at least, and one of so many.
const TOLD_LEAST: usize = 64;
const TOLD_PART: usize = 16;

/// The time that a thread was where it is, and that nobody has been told of yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owed {
    /// How long, in ns.
    pub span_ns: u64,
    /// In how many passes it was found to be there.
    pub passes: u32,
    /// The first of these.
    pub since_ns: u64,
    /// The last one.
    pub until_ns: u64,
}

/// A thread. Kept small: a pass reads all of it.
#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    id: u32,
    /// Passes that were told of it, or that were before it.
    told_passes: u32,
    /// The same in time that passes stood for.
    told_ns: u64,
    /// When that was, and when what is owed is told next.
    since_ns: u64,
    due_ns: u64,
    /// By which is seen whether it has run.
    seen: T,
}

/// The threads, small numbers; `T` tells whether one has run: another value, and it has.
#[derive(Clone, Debug)]
pub struct RollCall<T> {
    entries: Vec<Entry<T>>,
    /// Where in `entries` a thread is.
    place: Vec<u32>,
    /// The time that passes have stood for, how many there were, and when the last one was.
    clock_ns: u64,
    passes: u32,
    at_ns: u64,
    /// The time since then.
    uncounted_ns: u64,
}

impl<T> Default for RollCall<T> {
    fn default() -> RollCall<T> {
        RollCall {
            entries: Vec::new(),
            place: Vec::new(),
            clock_ns: 0,
            passes: 0,
            at_ns: 0,
            uncounted_ns: 0,
        }
    }
}

/// What a pass has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The time that it stood for.
    pub span_ns: u64,
    /// Those that have run since the pass before, with what is owed of the time until that one.
    /// They are no members any more.
    pub ran: Vec<(u32, Option<Owed>)>,
    /// Of some others what is owed, this pass included.
    pub due: Vec<(u32, Owed)>,
}

impl<T: Copy> RollCall<T> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether `id` is one of them.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        self.place.get(id as usize).is_some_and(|at| *at != ABSENT)
    }

    /// So much time has passed; how much in all since the last pass.
    pub fn wait(&mut self, span_ns: u64) -> u64 {
        self.uncounted_ns = self.uncounted_ns.saturating_add(span_ns);
        self.uncounted_ns
    }

    /// Whether `id` may join now: the next pass stands for the time since the last one, also of
    /// it, so that must have been in this tick.
    #[must_use]
    pub fn may_join(&self) -> bool {
        self.uncounted_ns == 0 && self.entries.len() < ABSENT as usize
    }

    /// Takes in `id`, who is where it was as long as asking gives `seen`. False if it may not.
    pub fn join(&mut self, id: u32, seen: T) -> bool {
        if !self.may_join() || self.contains(id) {
            return false;
        }
        let place = self.entries.len();
        self.entries.push(Entry {
            id,
            told_passes: self.passes,
            told_ns: self.clock_ns,
            since_ns: self.at_ns,
            due_ns: self.at_ns.saturating_add(HELD_FIRST_NS),
            seen,
        });
        self.put(place, id);
        true
    }

    /// Lets `id` go, with what is owed of it.
    pub fn leave(&mut self, id: u32) -> Option<Owed> {
        let place = *self.place.get(id as usize)?;
        let entry = *self.entries.get(place as usize)?;
        self.remove(place as usize);
        self.owed(&entry)
    }

    /// What is owed of each, which is told with this.
    pub fn take_all(&mut self) -> Vec<(u32, Owed)> {
        let ids: Vec<u32> = self.entries.iter().map(|entry| entry.id).collect();
        let owed = |id| self.leave(id).map(|owed| (id, owed));
        ids.into_iter().filter_map(owed).collect()
    }

    /// Asks each whether it has run: `ask` gives what is seen of it now; `fetch` is told before
    /// who will be asked soon.
    pub fn pass(
        &mut self,
        now_ns: u64,
        fetch: impl Fn(u32, &T),
        ask: impl Fn(u32) -> Option<T>,
    ) -> Found
    where
        T: PartialEq,
    {
        let span_ns = std::mem::take(&mut self.uncounted_ns);
        let mut found = Found {
            span_ns,
            ..Found::default()
        };
        let mut ran = Vec::new();
        for entry in self.entries.iter().take(AHEAD) {
            fetch(entry.id, &entry.seen);
        }
        for (place, entry) in self.entries.iter().enumerate() {
            if let Some(next) = self.entries.get(place + AHEAD) {
                fetch(next.id, &next.seen);
            }
            if ask(entry.id) != Some(entry.seen) {
                ran.push(place);
            }
        }
        // From the end: another one takes the place of who leaves.
        for place in ran.into_iter().rev() {
            if let Some(entry) = self.entries.get(place).copied() {
                found.ran.push((entry.id, self.owed(&entry)));
                self.remove(place);
            }
        }
        self.clock_ns = self.clock_ns.saturating_add(span_ns);
        self.passes = self.passes.wrapping_add(1);
        self.at_ns = now_ns;
        self.take_due(now_ns, &mut found.due);
        found
    }

    /// Those of whom has been nothing told for long.
    fn take_due(&mut self, now_ns: u64, due: &mut Vec<(u32, Owed)>) {
        let most = TOLD_LEAST.max(self.entries.len() / TOLD_PART);
        let (clock_ns, passes) = (self.clock_ns, self.passes);
        let all = self.entries.iter_mut();
        for entry in all.filter(|entry| entry.due_ns <= now_ns).take(most) {
            if let Some(owed) = entry.owed(clock_ns, passes, now_ns) {
                due.push((entry.id, owed));
            }
            (entry.told_ns, entry.told_passes) = (clock_ns, passes);
            (entry.since_ns, entry.due_ns) = (now_ns, now_ns.saturating_add(HELD_NS));
        }
    }

    fn owed(&self, entry: &Entry<T>) -> Option<Owed> {
        entry.owed(self.clock_ns, self.passes, self.at_ns)
    }

    fn remove(&mut self, place: usize) {
        let gone = self.entries.swap_remove(place);
        if let Some(at) = self.place.get_mut(gone.id as usize) {
            *at = ABSENT;
        }
        if let Some(moved) = self.entries.get(place) {
            self.put(place, moved.id);
        }
    }

    fn put(&mut self, place: usize, id: u32) {
        let index = id as usize;
        if self.place.len() <= index {
            self.place.resize(index + 1, ABSENT);
        }
        if let Some(at) = self.place.get_mut(index) {
            *at = place as u32;
        }
    }
}

impl<T> Entry<T> {
    fn owed(&self, clock_ns: u64, passes: u32, until_ns: u64) -> Option<Owed> {
        let span_ns = clock_ns.saturating_sub(self.told_ns);
        let passes = passes.wrapping_sub(self.told_passes);
        let first_ns = until_ns.saturating_sub(self.since_ns) / u64::from(passes.max(1));
        (span_ns > 0).then_some(Owed {
            span_ns,
            passes,
            since_ns: self.since_ns.saturating_add(first_ns),
            until_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::cell::RefCell;
    use std::collections::HashMap;

    const TICK_NS: u64 = 20_000_000;

    #[test]
    fn who_has_not_run_owes_all_the_time_of_passes_and_who_has_that_until_the_last() {
        let mut roll_call = RollCall::default();
        assert!(roll_call.join(7, 'a') && roll_call.join(3, 'b') && !roll_call.join(3, 'b'));
        assert_eq!(roll_call.wait(TICK_NS), TICK_NS);
        assert!(!roll_call.may_join() && !roll_call.join(4, 'c'));
        assert_eq!(roll_call.wait(TICK_NS), 2 * TICK_NS);
        let found = roll_call.pass(
            2 * TICK_NS,
            |_, _| (),
            |id| Some(if id == 7 { 'a' } else { 'b' }),
        );
        assert_eq!(
            (found.span_ns, found.ran.len(), found.due.len()),
            (2 * TICK_NS, 0, 0)
        );
        assert!(roll_call.join(4, 'c'));
        roll_call.wait(TICK_NS);
        let found = roll_call.pass(3 * TICK_NS, |_, _| (), |id| (id != 7).then_some('b'));
        // 4 is not what it was, 7 cannot be asked any more.
        let owed = Owed {
            span_ns: 2 * TICK_NS,
            passes: 1,
            since_ns: 2 * TICK_NS,
            until_ns: 2 * TICK_NS,
        };
        assert_eq!(found.ran, [(4, None), (7, Some(owed))]);
        assert!(!roll_call.contains(7) && !roll_call.contains(4) && roll_call.contains(3));
        let owed = Owed {
            span_ns: 3 * TICK_NS,
            passes: 2,
            since_ns: 3 * TICK_NS / 2,
            until_ns: 3 * TICK_NS,
        };
        assert_eq!(roll_call.leave(3), Some(owed));
        assert_eq!((roll_call.leave(3), roll_call.len()), (None, 0));
    }

    #[test]
    fn all_are_fetched_before_they_are_asked() {
        let mut roll_call = RollCall::default();
        (0..40).for_each(|id| assert!(roll_call.join(id, id)));
        let fetched = RefCell::new(Vec::new());
        roll_call.wait(1);
        roll_call.pass(
            1,
            |id, seen| {
                assert_eq!(id, *seen);
                fetched.borrow_mut().push(id);
            },
            |id| {
                let fetched = fetched.borrow();
                assert!(fetched.len() >= 40.min(id as usize + AHEAD), "{id}");
                fetched.contains(&id).then_some(id)
            },
        );
        assert_eq!(fetched.borrow().len(), 40);
        assert_eq!(roll_call.len(), 40);
    }

    #[test]
    fn what_is_owed_is_told_in_time_and_little_at_once() {
        let mut roll_call = RollCall::default();
        (0..2000).for_each(|id| assert!(roll_call.join(id, ())));
        let (mut told, mut most) = (0, 0);
        let seconds = 10;
        for tick in 1..=seconds * 50 {
            roll_call.wait(TICK_NS);
            let found = roll_call.pass(tick * TICK_NS, |_, _| (), |_| Some(()));
            most = most.max(found.due.len());
            told += found.due.iter().map(|(_, owed)| owed.span_ns).sum::<u64>();
            if tick == 2 * 50 {
                assert!(told >= 2000 * 1_000_000_000, "all are told of once: {told}");
            }
        }
        assert!(most <= 2000 / TOLD_PART, "{most}");
        told += roll_call
            .take_all()
            .iter()
            .map(|(_, owed)| owed.span_ns)
            .sum::<u64>();
        assert_eq!(told, 2000 * seconds * 1_000_000_000);
        assert!(roll_call.is_empty());
    }

    /// Whoever joins, runs, leaves: each pass's time is told once of each who was there.
    #[test]
    fn no_time_is_lost_or_told_twice() {
        let mut random = Random::new(5);
        let mut roll_call = RollCall::default();
        let state = RefCell::new([0u32; 50]);
        let (mut told, mut truth) = (HashMap::new(), HashMap::new());
        let tell = |told: &mut HashMap<u32, u64>, id, owed: Option<Owed>| {
            *told.entry(id).or_default() += owed.map_or(0, |owed| owed.span_ns);
        };
        for tick in 1..=20_000u64 {
            let span_ns = roll_call.wait(1 + random.below(9));
            for _ in 0..random.below(3) {
                state.borrow_mut()[random.below(50) as usize] += 1;
            }
            if random.below(4) == 0 {
                let id = random.below(50) as u32;
                let owed = roll_call.leave(id);
                tell(&mut told, id, owed);
            }
            if random.below(3) == 0 {
                let now_ns = tick * HELD_FIRST_NS / 20;
                let found =
                    roll_call.pass(now_ns, |_, _| (), |id| Some(state.borrow()[id as usize]));
                assert_eq!(found.span_ns, span_ns);
                found
                    .ran
                    .iter()
                    .for_each(|(id, owed)| tell(&mut told, *id, *owed));
                found
                    .due
                    .iter()
                    .for_each(|(id, owed)| tell(&mut told, *id, Some(*owed)));
                for (place, entry) in roll_call.entries.iter().enumerate() {
                    assert_eq!(roll_call.place[entry.id as usize], place as u32);
                    *truth.entry(entry.id).or_default() += span_ns;
                }
                let id = random.below(50) as u32;
                let (seen, is_new) = (state.borrow()[id as usize], !roll_call.contains(id));
                assert_eq!(roll_call.join(id, seen), is_new);
            }
        }
        for (id, owed) in roll_call.take_all() {
            tell(&mut told, id, Some(owed));
        }
        told.retain(|_, sum| *sum > 0);
        assert!(truth.len() > 40);
        assert_eq!(told, truth);
    }
}

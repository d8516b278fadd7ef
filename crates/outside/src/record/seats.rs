//! The threads of the wall-clock sampler: each has a small number while it lives.

use super::threads::Threads;
use crate::look::Whom;
use crate::task::Files;
use dwell_wall::proc::Schedule;
use dwell_wall::woken::Woken;
use rustc_hash::FxHashMap;

/// The data of a thread. `P`: a place where it was seen.
#[derive(Debug)]
pub(super) struct Seat<P> {
    /// The thread.
    pub whom: Whom,
    /// Its files, while they are open.
    pub files: Option<Files>,
    /// The kernel's account at the last read.
    pub read: Option<Schedule>,
    /// The account that waits were last taken from, and its time in ns.
    pub account: Option<(Schedule, u64)>,
    /// The part of its waits for a processor after wake-ups.
    pub woken: Woken,
    /// Whether the last list of threads had it.
    is_listed: bool,
    /// Its places, by the classes of their fingerprints.
    pub places: Vec<(u8, P)>,
}

impl<P> Seat<P> {
    fn of(whom: Whom) -> Seat<P> {
        Seat {
            whom,
            files: None,
            read: None,
            account: None,
            woken: Woken::default(),
            is_listed: true,
            places: Vec::new(),
        }
    }

    /// Records where the thread was seen.
    pub fn set_place(&mut self, class: u8, place: P) {
        self.places.retain(|(number, _)| *number != class);
        self.places.push((class, place));
    }

    /// The place of a class.
    pub fn place(&self, class: u8) -> Option<&P> {
        let found = self.places.iter().find(|(number, _)| *number == class);
        found.map(|(_, place)| place)
    }
}

/// All threads.
#[derive(Debug)]
pub(super) struct Seats<P> {
    seats: Vec<Option<Seat<P>>>,
    free: Vec<u32>,
    ids: FxHashMap<i32, u32>,
}

impl<P> Default for Seats<P> {
    fn default() -> Seats<P> {
        Seats {
            seats: Vec::new(),
            free: Vec::new(),
            ids: FxHashMap::default(),
        }
    }
}

impl<P> Seats<P> {
    /// Number of threads.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// A thread's data.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Seat<P>> {
        self.seats.get_mut(id as usize)?.as_mut()
    }

    /// The numbers and data of all threads.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Seat<P>)> {
        let all = self.seats.iter_mut().enumerate();
        all.filter_map(|(id, seat)| Some((id as u32, seat.as_mut()?)))
    }

    /// Compares with the list of threads: those that have no number yet, and the numbers of those
    /// that have exited.
    pub fn compare(&mut self, threads: &Threads) -> (Vec<Whom>, Vec<u32>) {
        self.iter_mut().for_each(|(_, seat)| seat.is_listed = false);
        let mut new = Vec::new();
        for tid in threads.java() {
            let whom = threads.whom(*tid);
            let id = self.ids.get(tid).copied();
            let seat = id.and_then(|id| self.get_mut(id));
            // An earlier thread may have had the same number in the kernel.
            match seat.filter(|seat| seat.whom == whom) {
                Some(seat) => seat.is_listed = true,
                None => new.push(whom),
            }
        }
        let gone = self.iter_mut().filter(|(_, seat)| !seat.is_listed);
        (new, gone.map(|(id, _)| id).collect())
    }

    /// Adds a thread; returns its number.
    pub fn add(&mut self, whom: Whom) -> u32 {
        let id = self.free.pop().unwrap_or(self.seats.len() as u32);
        if self.seats.len() <= id as usize {
            self.seats.resize_with(id as usize + 1, || None);
        }
        if let Some(seat) = self.seats.get_mut(id as usize) {
            *seat = Some(Seat::of(whom));
        }
        self.ids.insert(whom.tid, id);
        id
    }

    /// Removes a thread that has exited. Threads with the same number in the kernel are added after
    /// that.
    pub fn remove(&mut self, id: u32) {
        let Some(seat) = self.seats.get_mut(id as usize).and_then(Option::take) else {
            return;
        };
        self.ids.remove(&seat.whom.tid);
        self.free.push(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whom(tid: i32, java_thread: u64) -> Whom {
        Whom { tid, java_thread }
    }

    #[test]
    fn thread_numbers_are_used_again() {
        let mut seats: Seats<()> = Seats::default();
        let ids = [whom(5, 50), whom(6, 60)].map(|it| seats.add(it));
        assert_eq!((ids, seats.len()), ([0, 1], 2));
        seats.remove(0);
        seats.remove(0);
        assert!(seats.get_mut(0).is_none());
        assert_eq!((seats.add(whom(7, 70)), seats.len()), (0, 2));
        assert_eq!(seats.get_mut(0).unwrap().whom, whom(7, 70));
    }

    #[test]
    fn list_shows_new_and_exited_threads() {
        let mut seats: Seats<()> = Seats::default();
        seats.add(whom(5, 50));
        seats.add(whom(6, 60));
        // The kernel's number of the second one was used again.
        let threads = Threads::of_java([(5, 50), (6, 61), (8, 80)]);
        let (new, gone) = seats.compare(&threads);
        assert_eq!(
            (new, gone.clone()),
            (vec![whom(6, 61), whom(8, 80)], vec![1])
        );
        gone.into_iter().for_each(|id| seats.remove(id));
        assert_eq!(seats.add(whom(6, 61)), 1);
        assert_eq!(seats.compare(&threads).0, [whom(8, 80)]);
    }

    #[test]
    fn last_place_of_a_class_counts() {
        let mut seat = Seat::of(whom(5, 50));
        seat.set_place(0, 'a');
        seat.set_place(1, 'b');
        seat.set_place(0, 'c');
        assert_eq!((seat.place(0), seat.place(2)), (Some(&'c'), None));
        assert_eq!(seat.places.last(), Some(&(0, 'c')));
    }
}

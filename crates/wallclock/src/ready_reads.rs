//! The reads of a thread that could run: how long it ran, and from where it was woken.

use dwell_wall::random::Random;

/// The result of reads of a thread that could run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Time that they found it running, in ns: it was on a processor, or preempted.
    pub running_ns: u64,
    /// Time that they found it woken and without a processor yet, as far as that was asked, in ns.
    pub woken_ns: u64,
    /// Number of reads that found it woken.
    pub woken_reads: u32,
    /// Number of reads that found it preempted. One counts for those that were not asked, too.
    pub preempted_reads: u32,
    /// One of the waits that reads saw end.
    left: Choice,
    /// One of the waits after which reads found the thread woken.
    woken: Choice,
    /// One of the places where reads found it ready, but not woken from a wait that they know.
    preempted: Choice,
}

/// One of some classes. Each has the same chance.
#[derive(Clone, Debug, Default, PartialEq)]
struct Choice {
    class: Option<u8>,
    of: u32,
}

impl Choice {
    fn offer(&mut self, class: u8, random: &mut Random) {
        self.of += 1;
        if random.below(self.of.into()) == 0 {
            self.class = Some(class);
        }
    }

    fn forget(&mut self, class: u8) {
        if self.class == Some(class) {
            *self = Choice::default();
        }
    }
}

/// A read that found a thread preempted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Preempted {
    pub id: u32,
    /// The class of its place, if that is known.
    pub class: Option<u8>,
    /// The number of reads that it stands for.
    pub reads: u32,
}

/// Reads of one tick that found threads ready on the processor of the reader. The reader may have
/// taken that from one of them, which was not ready before. So one of them does not count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Here {
    /// Whether the present read is one of them.
    pub is_here: bool,
    /// The number of reads that it stands for.
    pub reads: u32,
    count: u64,
    left_out: Option<Preempted>,
}

impl Here {
    /// Takes the present read of a thread in code of a class. Returns this one, another one or none
    /// to count.
    pub fn pass(&mut self, id: u32, class: Option<u8>, random: &mut Random) -> Option<Preempted> {
        let reads = self.reads.max(1);
        let read = Preempted { id, class, reads };
        if !self.is_here {
            return Some(read);
        }
        self.count += 1;
        match random.below(self.count) {
            0 => self.left_out.replace(read),
            _ => Some(read),
        }
    }
}

impl Found {
    /// A wait of this class has ended.
    pub(crate) fn leave(&mut self, class: u8, random: &mut Random) {
        self.left.offer(class, random);
    }

    /// A read found the thread woken from a wait of this class, if that is known.
    pub(crate) fn wake(&mut self, class: Option<u8>, random: &mut Random) {
        if let Some(class) = class {
            self.woken.offer(class, random);
        }
    }

    /// A read found the thread ready in code of this class, if that is known. That of a thread that
    /// runs: in code whose place only samples of CPU time show.
    pub(crate) fn preempt(&mut self, read: Preempted, random: &mut Random) {
        self.preempted_reads += read.reads;
        if let Some(class) = read.class {
            self.preempted.offer(class, random);
        }
    }

    /// The place of this class is another one from now on.
    pub(crate) fn forget(&mut self, class: u8) {
        self.left.forget(class);
        self.woken.forget(class);
        self.preempted.forget(class);
    }

    /// The class of the place to which other waits for a processor belong. That of a thread that
    /// runs: to samples of CPU time in code whose place only those show. `None`: to any sample of
    /// CPU time.
    #[must_use]
    pub fn preempted(&self) -> Option<u8> {
        self.preempted.class
    }

    /// The class of the wait to which waits for a processor after wake-ups belong. Reads that found
    /// the thread woken show that in proportion to its time. Without such a read it is one of the
    /// waits that have ended, whose chances are equal however long they were.
    #[must_use]
    pub fn left(&self) -> Option<u8> {
        self.woken.class.or(self.left.class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hot::RUNS;

    fn read(id: u32, class: Option<u8>) -> Preempted {
        let reads = 1;
        Preempted { id, class, reads }
    }

    #[test]
    fn reads_of_a_woken_thread_come_before_ends_of_waits() {
        let (mut found, mut random) = (Found::default(), Random::new(1));
        assert_eq!(found.left(), None);
        found.leave(1, &mut random);
        assert_eq!(found.left(), Some(1));
        found.wake(None, &mut random);
        assert_eq!(found.left(), Some(1));
        found.wake(Some(2), &mut random);
        (0..9).for_each(|_| found.leave(3, &mut random));
        assert_eq!(found.left(), Some(2));
        found.forget(2);
        assert_ne!(found.left(), Some(2));
    }

    #[test]
    fn each_read_of_a_woken_thread_has_the_same_chance() {
        let chosen = |seed| {
            let (mut found, mut random) = (Found::default(), Random::new(seed));
            for class in [1, 2, 2, 2] {
                found.wake(Some(class), &mut random);
            }
            found.left() == Some(2)
        };
        let count = (0..4000).filter(|seed| chosen(*seed)).count();
        // 3000, within five standard errors.
        assert!((2860..=3140).contains(&count), "{count}");
    }

    #[test]
    fn one_thread_on_the_readers_processor_does_not_count() {
        let mut left_out = [0; 4];
        for seed in 0..4000 {
            let (mut here, mut random) = (Here::default(), Random::new(seed));
            here.is_here = true;
            let passed = (0..4).filter_map(|id| here.pass(id, Some(1), &mut random));
            let sum: u32 = passed.map(|read| read.id).sum();
            left_out[6 - sum as usize] += 1;
            here.is_here = false;
            assert_eq!(here.pass(9, None, &mut random), Some(read(9, None)));
        }
        // 1000 each, within five standard errors.
        assert!(
            left_out.iter().all(|count| (860..=1140).contains(count)),
            "{left_out:?}"
        );
    }

    #[test]
    fn preempted_thread_has_a_place_or_that_of_cpu_time() {
        let (mut found, mut random) = (Found::default(), Random::new(1));
        assert_eq!(found.preempted(), None);
        found.preempt(read(1, Some(RUNS)), &mut random);
        assert_eq!(found.preempted(), Some(RUNS));
        let chosen = |seed| {
            let (mut found, mut random) = (Found::default(), Random::new(seed));
            for class in [2, RUNS, 2, 2] {
                found.preempt(read(1, Some(class)), &mut random);
            }
            found.preempt(read(1, None), &mut random);
            assert_eq!((found.preempted_reads, found.woken_reads), (5, 0));
            found.preempted()
        };
        let count = (0..4000).filter(|seed| chosen(*seed) == Some(2)).count();
        // 3000, within five standard errors.
        assert!((2860..=3140).contains(&count), "{count}");
        found.forget(RUNS);
        assert_eq!((found.preempted(), found.left()), (None, None));
    }
}

//! The reads of a thread that could run: how long it ran, and from where it was woken.

use dwell_wall::random::Random;

/// The result of reads of a thread that could run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Time that they found it running, in ns: it was on a processor, or preempted.
    pub running_ns: u64,
    /// Time that they found it woken and without a processor yet, as far as that was asked, in ns.
    pub woken_ns: u64,
    /// One of the waits that reads saw end.
    left: Choice,
    /// One of the waits after which reads found the thread woken.
    woken: Choice,
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

    /// The place of this class is another one from now on.
    pub(crate) fn forget(&mut self, class: u8) {
        self.left.forget(class);
        self.woken.forget(class);
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
}

//! A safepoint that is being reached: the late threads, and the share of the time that each holds
//! the others up. Pure arithmetic on successive observations.

use dwell_walker::hotspot::safepoints::Late;
use rustc_hash::FxHashMap;

/// A late thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tardy {
    /// Its `JavaThread*`.
    pub java_thread: u64,
    /// Its activity when first observed. Later it is in the VM, on its way to stopping.
    pub late: Late,
    /// First observation.
    pub first_ns: u64,
    /// Last observation.
    pub last_ns: u64,
    /// Its share of the time. Threads that are late at the same moment share the time.
    pub held_ns: u64,
    /// Whether it was asked for its stack.
    pub asked: bool,
    /// Its key, if it was read. The thread may end once it may continue.
    pub who: Option<u64>,
    /// Its use of the time, if that was read.
    pub times: Option<Times>,
}

/// The kernel's account of a thread at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The moment.
    pub at_ns: u64,
    /// CPU time it has used.
    pub cpu_ns: u64,
    /// Time runnable without a processor, up to when it last got one.
    pub waited_ns: u64,
    /// Whether it is running or runnable.
    pub is_ready: bool,
}

/// A thread's use of the time between two moments.
///
/// Its state in each observation would not be enough: a thread that shares its processor with the
/// watcher is found runnable, unless it sleeps for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    first: Moment,
    last: Moment,
    /// Since when it has been runnable without progress.
    stuck_ns: u64,
}

impl Times {
    /// Begins at this moment.
    #[must_use]
    pub fn since(first: Moment) -> Times {
        Times {
            first,
            last: first,
            stuck_ns: first.at_ns,
        }
    }

    /// Extends to this moment.
    pub fn until(&mut self, now: Moment) {
        let has_moved = (now.cpu_ns, now.waited_ns) != (self.last.cpu_ns, self.last.waited_ns);
        if has_moved || !now.is_ready {
            self.stuck_ns = now.at_ns;
        }
        self.last = now;
    }

    /// Ends a wait for a processor; the kernel reports its whole length at the end. The thread's
    /// time after that, at the safepoint, does not count.
    pub fn has_waited(&mut self, waited_ns: u64) {
        if waited_ns != self.last.waited_ns {
            self.stuck_ns = self.last.at_ns;
            self.last.waited_ns = waited_ns;
        }
    }

    /// Why it did not run, if it hardly did.
    #[must_use]
    pub fn why_not(&self) -> Option<&'static str> {
        /// From this duration on, half of the time is enough for an answer. A shorter delay needs
        /// nearly its whole time, and a still shorter one has no answer.
        const LONG_NS: u64 = 1_000_000;
        const SHORT_NS: u64 = 200_000;
        let (first, last) = (&self.first, &self.last);
        let seen_ns = last.at_ns.saturating_sub(first.at_ns);
        let used_ns = last.cpu_ns.saturating_sub(first.cpu_ns);
        let stuck_ns = last.at_ns.saturating_sub(self.stuck_ns);
        // The kernel adds a wait at its end, also the part before the first moment.
        let ready_ns = last.waited_ns.saturating_sub(first.waited_ns) + stuck_ns;
        let known_ns = seen_ns.max(ready_ns);
        let most_ns = match known_ns {
            LONG_NS.. => known_ns / 2,
            SHORT_NS.. => known_ns / 8,
            _ => 0,
        };
        if used_ns >= most_ns {
            return None;
        }
        let asleep_ns = seen_ns.saturating_sub(used_ns).saturating_sub(ready_ns);
        match asleep_ns > ready_ns {
            // The thread may also have arrived and stopped. That would be most of a short time.
            true if known_ns < LONG_NS => None,
            true => Some("page-fault"),
            false => Some("runnable"),
        }
    }
}

/// Observations of a safepoint so far.
#[derive(Debug)]
pub struct Reach {
    /// Time of its request.
    pub began_ns: u64,
    /// Time of the last observation.
    looked_ns: u64,
    tardy: Vec<Tardy>,
    places: FxHashMap<u64, usize>,
}

impl Reach {
    /// A safepoint that was requested at `began_ns`.
    #[must_use]
    pub fn new(began_ns: u64) -> Reach {
        Reach {
            began_ns,
            looked_ns: began_ns,
            tardy: Vec::new(),
            places: FxHashMap::default(),
        }
    }

    /// Adds an observation: these threads have not arrived. Earlier ones that are missing have
    /// arrived. The late threads share the time since the last observation.
    pub fn look(&mut self, now_ns: u64, late: &[(u64, Late)]) {
        if late.is_empty() {
            return;
        }
        let passed_ns = now_ns.saturating_sub(self.looked_ns);
        self.looked_ns = now_ns;
        let share_ns = passed_ns / late.len() as u64;
        for (java_thread, late) in late {
            let place = *self.places.entry(*java_thread).or_insert_with(|| {
                self.tardy.push(Tardy {
                    java_thread: *java_thread,
                    late: *late,
                    first_ns: now_ns,
                    last_ns: now_ns,
                    held_ns: 0,
                    asked: false,
                    who: None,
                    times: None,
                });
                self.tardy.len() - 1
            });
            if let Some(tardy) = self.tardy.get_mut(place) {
                tardy.last_ns = now_ns;
                tardy.held_ns += share_ns;
            }
        }
    }

    /// The threads of the last observation.
    pub fn still_late(&mut self) -> impl Iterator<Item = &mut Tardy> {
        let looked_ns = self.looked_ns;
        self.tardy
            .iter_mut()
            .filter(move |tardy| tardy.last_ns == looked_ns)
    }

    /// Threads that were asked for their stacks, when all have arrived.
    pub fn asked(&mut self) -> impl Iterator<Item = &mut Tardy> {
        self.tardy.iter_mut().filter(|tardy| tardy.asked)
    }

    /// Ends with the arrival of all at `reached_ns`. Returns the late threads with their latest
    /// possible arrival times, those that held others up longest first. The threads of the last
    /// observation share the remaining time.
    #[must_use]
    pub fn finish(mut self, reached_ns: u64) -> Vec<(Tardy, u64)> {
        let rest_ns = reached_ns.saturating_sub(self.looked_ns);
        let last = self.still_late().count() as u64;
        if let Some(share_ns) = rest_ns.checked_div(last) {
            self.still_late()
                .for_each(|tardy| tardy.held_ns += share_ns);
        }
        let looked_ns = self.looked_ns;
        let until = |tardy: &Tardy| match tardy.last_ns == looked_ns {
            true => reached_ns.max(tardy.last_ns),
            false => tardy.last_ns,
        };
        let mut all: Vec<(Tardy, u64)> = self
            .tardy
            .iter()
            .map(|tardy| (*tardy, until(tardy)))
            .collect();
        all.sort_unstable_by_key(|(tardy, until_ns)| std::cmp::Reverse((tardy.held_ns, *until_ns)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_late_thread_holds_all_of_the_time() {
        let mut reach = Reach::new(1000);
        reach.look(2000, &[(7, Late::InJava)]);
        reach.look(5000, &[(7, Late::InVm)]);
        let all = reach.finish(6000);
        let [(tardy, until_ns)] = all[..] else {
            panic!("{all:?}")
        };
        assert_eq!((tardy.java_thread, tardy.held_ns), (7, 5000));
        assert_eq!((tardy.late, tardy.first_ns), (Late::InJava, 2000));
        assert_eq!(until_ns, 6000);
    }

    #[test]
    fn threads_late_at_a_moment_share_the_time() {
        let mut reach = Reach::new(0);
        reach.look(100, &[(1, Late::InJava), (2, Late::InJava)]);
        reach.look(200, &[(2, Late::InJava)]);
        assert_eq!(reach.still_late().count(), 1);
        let all = reach.finish(400);
        let held: Vec<_> = all
            .iter()
            .map(|(tardy, until)| (tardy.java_thread, tardy.held_ns, *until))
            .collect();
        assert_eq!(held, [(2, 350, 400), (1, 50, 100)]);
        assert_eq!(held.iter().map(|(_, held, _)| held).sum::<u64>(), 400);
    }

    #[test]
    fn unobserved_time_belongs_to_no_thread() {
        let mut reach = Reach::new(10);
        reach.look(20, &[]);
        assert_eq!(reach.finish(30), []);
    }

    /// A thread that is observed every 10 ms: CPU time, time runnable, whether it is runnable now.
    fn seen(moments: &[(u64, u64, bool)]) -> Option<&'static str> {
        let moment = |(at, (cpu, waited, is_ready)): (usize, &(u64, u64, bool))| Moment {
            at_ns: at as u64 * 10_000_000,
            cpu_ns: cpu * 1_000_000,
            waited_ns: waited * 1_000_000,
            is_ready: *is_ready,
        };
        let mut all = moments.iter().enumerate().map(moment);
        let mut times = Times::since(all.next().unwrap());
        all.for_each(|now| times.until(now));
        times.why_not()
    }

    #[test]
    fn reason_for_not_running_comes_from_times() {
        assert_eq!(seen(&[(5, 1, true)]), None);
        assert_eq!(seen(&[(0, 0, true), (8, 1, true), (17, 2, true)]), None);
        // It waits for a processor all the time, and the kernel adds that up at the end only.
        assert_eq!(seen(&[(5, 1, true); 4]), Some("runnable"));
        let got_one = [(5, 1, true), (5, 1, true), (6, 20, true)];
        assert_eq!(seen(&got_one), Some("runnable"));
        // In the kernel.
        assert_eq!(seen(&[(5, 1, false); 4]), Some("page-fault"));
        // It sleeps briefly, and each observation keeps it from its processor for a moment.
        let busy = [(5, 1, true), (6, 2, true), (7, 3, true), (8, 4, true)];
        assert_eq!(seen(&busy), Some("page-fault"));
        // Observed once after a long wait, and again after its arrival.
        let moment = |at_us: u64, waited_us: u64, is_ready| Moment {
            at_ns: at_us * 1000,
            cpu_ns: 5000,
            waited_ns: waited_us * 1000,
            is_ready,
        };
        let mut times = Times::since(moment(1000, 10, true));
        times.has_waited(1_210_000);
        assert_eq!(times.why_not(), Some("runnable"));
        let mut times = Times::since(moment(1000, 10, true));
        times.has_waited(110_000);
        assert_eq!(times.why_not(), None);
        // It ran, and arrived long before the last one. Its time stopped there does not count.
        let mut times = Times::since(moment(1000, 10, true));
        times.until(Moment {
            cpu_ns: 1_905_000,
            ..moment(3000, 10, true)
        });
        times.has_waited(10_000);
        assert_eq!(times.why_not(), None);
        // A short time must be known nearly completely.
        let short = |used_ns| {
            let first = moment(1000, 10, true);
            let mut times = Times::since(first);
            times.until(Moment {
                at_ns: first.at_ns + 460_000,
                cpu_ns: first.cpu_ns + used_ns,
                ..first
            });
            times.why_not()
        };
        assert_eq!(short(0), Some("runnable"));
        assert_eq!(short(100_000), None);
        // First one state, then, for longer, the other.
        let ready = [(5, 1, false), (5, 1, true), (5, 1, true), (5, 1, true)];
        assert_eq!(seen(&ready), Some("runnable"));
    }
}

//! A safepoint that is being reached: who is late, and what part of the time each holds the others
//! up. Pure arithmetic on what is seen in one look after the other.

use dwell_walker::hotspot::safepoints::Late;
use rustc_hash::FxHashMap;

/// A thread that was seen to be late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tardy {
    /// Its `JavaThread*`.
    pub java_thread: u64,
    /// What it did when it was seen first: on its way to stopping it is in the VM.
    pub late: Late,
    /// When it was seen first.
    pub first_ns: u64,
    /// When it was seen last.
    pub last_ns: u64,
    /// Its part of the time: those that are late at a moment share it.
    pub held_ns: u64,
    /// Whether it was asked for its stack.
    pub asked: bool,
    /// Its key, if it was looked up: it may end as soon as it may go on.
    pub who: Option<u64>,
    /// What it did with the time, if that was looked up.
    pub times: Option<Times>,
}

/// What the kernel says of a thread at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub at_ns: u64,
    /// CPU time it has used.
    pub cpu_ns: u64,
    /// Time for which it has been ready without a processor, up to when it last got one.
    pub waited_ns: u64,
    /// Whether it runs or is ready to.
    pub is_ready: bool,
}

/// What a thread did from one moment to another.
///
/// Its state at each look would tell too little: a look at a thread that shares its processor with
/// the watcher finds it ready whenever it is not asleep for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    first: Moment,
    last: Moment,
    /// Since when it has been ready and has not gone on.
    stuck_ns: u64,
}

impl Times {
    /// From this moment on.
    #[must_use]
    pub fn since(first: Moment) -> Times {
        Times {
            first,
            last: first,
            stuck_ns: first.at_ns,
        }
    }

    /// Up to this one.
    pub fn until(&mut self, now: Moment) {
        let has_moved = (now.cpu_ns, now.waited_ns) != (self.last.cpu_ns, self.last.waited_ns);
        if has_moved || !now.is_ready {
            self.stuck_ns = now.at_ns;
        }
        self.last = now;
    }

    /// A wait for a processor is over: the kernel tells it then, and all of it. What the thread
    /// did since, at the safepoint, is no part of what it did before.
    pub fn has_waited(&mut self, waited_ns: u64) {
        if waited_ns != self.last.waited_ns {
            self.stuck_ns = self.last.at_ns;
            self.last.waited_ns = waited_ns;
        }
    }

    /// Why it did not run, if it hardly did.
    #[must_use]
    pub fn why_not(&self) -> Option<&'static str> {
        /// Of so long a time half is enough; of a shorter one nearly all; still shorter ones tell
        /// nothing.
        const LONG_NS: u64 = 1_000_000;
        const SHORT_NS: u64 = 200_000;
        let (first, last) = (&self.first, &self.last);
        let seen_ns = last.at_ns.saturating_sub(first.at_ns);
        let used_ns = last.cpu_ns.saturating_sub(first.cpu_ns);
        let stuck_ns = last.at_ns.saturating_sub(self.stuck_ns);
        // The kernel adds a wait when it is over: also what was of it before the first moment.
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
            // It may as well have arrived, and stand: of a short time that is most of it.
            true if known_ns < LONG_NS => None,
            true => Some("page-fault"),
            false => Some("runnable"),
        }
    }
}

/// What has been seen of a safepoint so far.
#[derive(Debug)]
pub struct Reach {
    /// When it was asked for.
    pub began_ns: u64,
    /// When threads were looked at last.
    looked_ns: u64,
    tardy: Vec<Tardy>,
    places: FxHashMap<u64, usize>,
}

impl Reach {
    /// One that was asked for at `began_ns`.
    #[must_use]
    pub fn new(began_ns: u64) -> Reach {
        Reach {
            began_ns,
            looked_ns: began_ns,
            tardy: Vec::new(),
            places: FxHashMap::default(),
        }
    }

    /// A look: these threads have not arrived. Those that were seen before and are not among them
    /// have; the time since the last look is shared by those who are.
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

    /// Those seen in the last look.
    pub fn still_late(&mut self) -> impl Iterator<Item = &mut Tardy> {
        let looked_ns = self.looked_ns;
        self.tardy
            .iter_mut()
            .filter(move |tardy| tardy.last_ns == looked_ns)
    }

    /// Those that were asked, when all have arrived.
    pub fn asked(&mut self) -> impl Iterator<Item = &mut Tardy> {
        self.tardy.iter_mut().filter(|tardy| tardy.asked)
    }

    /// All have arrived at `reached_ns`: those that were late, who held others up longest first,
    /// with when they arrived at the latest. The rest of the time is shared by those of the last
    /// look.
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
        all.sort_by_key(|(tardy, until_ns)| std::cmp::Reverse((tardy.held_ns, *until_ns)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_late_holds_all_of_the_time() {
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
    fn time_is_shared_by_those_that_are_late_at_a_moment() {
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
    fn what_was_not_seen_is_nobodys() {
        let mut reach = Reach::new(10);
        reach.look(20, &[]);
        assert_eq!(reach.finish(30), []);
    }

    /// A thread that is looked at every 10 ms: CPU time, time it was ready, whether it is now.
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
    fn why_a_thread_did_not_run_is_told_by_times_and_not_by_looks() {
        assert_eq!(seen(&[(5, 1, true)]), None);
        assert_eq!(seen(&[(0, 0, true), (8, 1, true), (17, 2, true)]), None);
        // It waits for a processor all the time, and the kernel adds that up in the end only.
        assert_eq!(seen(&[(5, 1, true); 4]), Some("runnable"));
        let got_one = [(5, 1, true), (5, 1, true), (6, 20, true)];
        assert_eq!(seen(&got_one), Some("runnable"));
        // In the kernel.
        assert_eq!(seen(&[(5, 1, false); 4]), Some("page-fault"));
        // It sleeps for short times, and each look keeps it from its processor for a moment.
        let busy = [(5, 1, true), (6, 2, true), (7, 3, true), (8, 4, true)];
        assert_eq!(seen(&busy), Some("page-fault"));
        // Seen once, when it had waited for long, and once more when it had come.
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
        // It ran, and came long before the last one: what it stood then is not told of it.
        let mut times = Times::since(moment(1000, 10, true));
        times.until(Moment {
            cpu_ns: 1_905_000,
            ..moment(3000, 10, true)
        });
        times.has_waited(10_000);
        assert_eq!(times.why_not(), None);
        // Of a short time nearly all has to be known.
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
        // First the one, then, longer, the other.
        let ready = [(5, 1, false), (5, 1, true), (5, 1, true), (5, 1, true)];
        assert_eq!(seen(&ready), Some("runnable"));
    }
}

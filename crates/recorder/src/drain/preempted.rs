//! Waits for a processor after a preemption: each gets the place of a sample of CPU time.
//!
//! A thread can be preempted at any moment of its CPU time. So a wait gets the place of one of the
//! thread's samples from the period of the account that reported it, in proportion to the CPU time
//! that the samples stand for. The next sample alone would not do: periods end at random moments,
//! often while the thread waits, so short pieces of work would get too much.
//!
//! A thread that has ended may have no sample. Its waits get the place of a sample of another one
//! that has ended at the same time: the sample stands for the CPU time of both.

use crate::record::batch::PendingSample;
use dwell_wall::random::Random;
use rustc_hash::{FxHashMap, FxHashSet};

/// Waits of a thread during one period of the kernel's account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ready {
    pub since_ns: u64,
    pub at_ns: u64,
    pub weight_ns: u64,
    pub count: u32,
    /// It was in managed code.
    pub is_managed: bool,
}

impl Ready {
    /// Both together.
    fn with(self, other: Ready) -> Ready {
        Ready {
            since_ns: self.since_ns.min(other.since_ns),
            at_ns: self.at_ns.max(other.at_ns),
            weight_ns: self.weight_ns + other.weight_ns,
            count: self.count + other.count,
            is_managed: self.is_managed && other.is_managed,
        }
    }
}

/// Waits with the sample that gives them a place.
#[derive(Debug)]
struct Wait<'a> {
    ready: Ready,
    chosen: Option<&'a PendingSample>,
    /// CPU time of the samples that were offered, in ns.
    offered_ns: u64,
    /// How well they match. Others only count until there is one that matches better.
    rank: u8,
}

impl<'a> Wait<'a> {
    /// Takes a sample, or keeps the earlier one, in proportion to their CPU time. Those in managed
    /// code match best, if the waits were there, then those from the waits' period.
    fn offer(&mut self, sample: &'a PendingSample, is_managed: bool, random: &mut Random) {
        let is_within = (self.ready.since_ns..=self.ready.at_ns).contains(&sample.time_ns);
        let is_of_kind = is_managed || !self.ready.is_managed;
        let rank = 2 * u8::from(is_of_kind) + u8::from(is_within);
        if rank > self.rank {
            (self.rank, self.offered_ns) = (rank, 0);
        }
        if rank == self.rank {
            self.offered_ns += sample.weight_ns;
            if random.below(self.offered_ns) < sample.weight_ns {
                self.chosen = Some(sample);
            }
        }
    }
}

/// Waits of threads, by the threads' keys, until they have a place.
#[derive(Debug)]
pub(super) struct ReadyWaits {
    threads: FxHashMap<u64, Vec<Ready>>,
    /// Threads that have ended.
    gone: FxHashSet<u64>,
    random: Random,
}

impl Default for ReadyWaits {
    fn default() -> ReadyWaits {
        ReadyWaits {
            threads: FxHashMap::default(),
            gone: FxHashSet::default(),
            random: Random::new(0),
        }
    }
}

impl ReadyWaits {
    /// Adds waits of a thread.
    pub fn add(&mut self, thread: u64, ready: Ready) {
        self.threads.entry(thread).or_default().push(ready);
    }

    /// The thread has ended: its waits are placed next time or never.
    pub fn gone(&mut self, thread: u64) {
        self.gone.insert(thread);
    }

    /// Takes the waits that these samples give a place, and those of ended threads. Others stay, as
    /// one for each thread; but none does at the end. `is_managed`: whether a sample is in managed
    /// code.
    pub fn take<'a>(
        &mut self,
        samples: &'a [PendingSample],
        is_managed: impl Fn(&PendingSample) -> bool,
        is_end: bool,
    ) -> Vec<(u64, Ready, Option<&'a PendingSample>)> {
        let mut threads: FxHashMap<u64, Vec<Wait<'a>>> = FxHashMap::default();
        for (thread, waits) in self.threads.drain() {
            let waits = waits.into_iter().map(|ready| Wait {
                ready,
                chosen: None,
                offered_ns: 0,
                rank: 0,
            });
            threads.insert(thread, waits.collect());
        }
        let gone = std::mem::take(&mut self.gone);
        let (mut of_gone, mut of_gone_ns) = (Vec::new(), 0);
        for sample in samples {
            let platform = sample.carrier.unwrap_or(sample.thread);
            if gone.contains(&platform) && sample.weight_ns > 0 {
                of_gone_ns += sample.weight_ns;
                of_gone.push((of_gone_ns, sample));
            }
            if let Some(waits) = threads.get_mut(&platform) {
                let is_managed = is_managed(sample);
                let waits = waits.iter_mut();
                waits.for_each(|wait| wait.offer(sample, is_managed, &mut self.random));
            }
        }
        let mut placed = Vec::new();
        for (thread, waits) in threads {
            let is_gone = gone.contains(&thread);
            for mut wait in waits {
                if is_gone && wait.chosen.is_none() && of_gone_ns > 0 {
                    let at_ns = self.random.below(of_gone_ns);
                    let place = of_gone.partition_point(|(until_ns, _)| *until_ns <= at_ns);
                    wait.chosen = of_gone.get(place).map(|(_, sample)| *sample);
                }
                if wait.chosen.is_some() || is_end || is_gone {
                    placed.push((thread, wait.ready, wait.chosen));
                    continue;
                }
                let kept = self.threads.entry(thread).or_default();
                match kept.first_mut() {
                    Some(first) => *first = first.with(wait.ready),
                    None => kept.push(wait.ready),
                }
            }
        }
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::batch::ContextId;
    use dwell_jfr::ThreadState;

    const THREAD: u64 = 7;

    fn sample(time_ns: u64, stack: u32, weight_ns: u64) -> PendingSample {
        PendingSample {
            time_ns,
            thread: THREAD,
            carrier: None,
            stack,
            state: ThreadState::Runnable,
            weight_ns,
            failure: None,
            context: ContextId::NONE,
        }
    }

    fn ready(since_ns: u64, at_ns: u64, weight_ns: u64) -> Ready {
        Ready {
            since_ns,
            at_ns,
            weight_ns,
            count: 1,
            is_managed: false,
        }
    }

    /// The sums of the waits' weights at each stack; `None`: no place.
    fn sums(
        waits: &mut ReadyWaits,
        samples: &[PendingSample],
        is_end: bool,
    ) -> Vec<(Option<u32>, u64)> {
        let mut sums = std::collections::BTreeMap::new();
        for (_, ready, sample) in waits.take(samples, |sample| sample.stack < 10, is_end) {
            *sums.entry(sample.map(|sample| sample.stack)).or_default() += ready.weight_ns;
        }
        sums.into_iter().collect()
    }

    #[test]
    fn waits_are_shared_by_cpu_time() {
        let samples = [sample(1, 1, 8), sample(2, 2, 22), sample(3, 1, 0)];
        let mut waits = ReadyWaits::default();
        const N: u64 = 30_000;
        (0..N).for_each(|_| waits.add(THREAD, ready(0, 10, 1)));
        let [(Some(1), short), (Some(2), long)] = sums(&mut waits, &samples, false)[..] else {
            panic!("all have a place");
        };
        assert_eq!(short + long, N);
        // 8 of 30, within five standard errors.
        assert!(short.abs_diff(N * 8 / 30) < 400, "{short}");
        assert!(sums(&mut waits, &samples, true).is_empty());
    }

    #[test]
    fn samples_of_the_same_period_go_first() {
        let samples = [sample(5, 1, 100), sample(15, 2, 1), sample(25, 3, 100)];
        let mut waits = ReadyWaits::default();
        for _ in 0..100 {
            waits.add(THREAD, ready(10, 20, 1));
        }
        assert_eq!(sums(&mut waits, &samples, false), [(Some(2), 100)]);
        waits.add(THREAD, ready(30, 40, 1));
        let [(Some(_), 1)] = sums(&mut waits, &samples, false)[..] else {
            panic!("another sample is better than none");
        };
    }

    #[test]
    fn waits_in_managed_code_have_samples_of_such_code() {
        let samples = [sample(5, 10, 1000), sample(6, 1, 1), sample(25, 11, 1)];
        let mut waits = ReadyWaits::default();
        let managed = |since_ns, at_ns| Ready {
            is_managed: true,
            ..ready(since_ns, at_ns, 1)
        };
        (0..100).for_each(|_| waits.add(THREAD, managed(0, 20)));
        assert_eq!(sums(&mut waits, &samples, false), [(Some(1), 100)]);
        // One from another time is better than one in other code. That is better than none.
        (0..100).for_each(|_| waits.add(THREAD, managed(20, 40)));
        assert_eq!(sums(&mut waits, &samples, false), [(Some(1), 100)]);
        waits.add(THREAD, managed(20, 40));
        assert_eq!(sums(&mut waits, &samples[2..], false), [(Some(11), 1)]);
    }

    #[test]
    fn waits_of_ended_threads_are_shared_by_their_cpu_time() {
        const N: u64 = 30_000;
        let mut waits = ReadyWaits::default();
        for thread in 100..100 + N {
            waits.add(thread, ready(0, 10, 1));
            waits.gone(thread);
        }
        let of = |thread, stack, weight_ns| PendingSample {
            thread,
            ..sample(5, stack, weight_ns)
        };
        let samples = [of(100, 1, 8), of(101, 2, 22), sample(5, 3, 100)];
        let [(Some(1), short), (Some(2), long)] = sums(&mut waits, &samples, false)[..] else {
            panic!("all have a place");
        };
        assert_eq!(short + long, N);
        // 8 of 30, within five standard errors.
        assert!(short.abs_diff(N * 8 / 30) < 400, "{short}");
    }

    #[test]
    fn waits_stay_until_a_sample_or_an_end() {
        let mut waits = ReadyWaits::default();
        waits.add(THREAD, ready(0, 10, 30));
        waits.add(THREAD, ready(10, 20, 12));
        waits.add(8, ready(0, 10, 5));
        let virtual_one = PendingSample {
            thread: 99,
            carrier: Some(8),
            ..sample(5, 1, 10)
        };
        assert_eq!(sums(&mut waits, &[virtual_one], false), [(Some(1), 5)]);
        let [(THREAD, both, Some(_))] = waits.take(&[sample(90, 1, 10)], |_| true, false)[..]
        else {
            panic!("one wait");
        };
        assert_eq!((both.since_ns, both.weight_ns, both.count), (0, 42, 2));
        waits.add(THREAD, ready(20, 30, 4));
        waits.gone(THREAD);
        assert_eq!(sums(&mut waits, &[], false), [(None, 4)]);
        waits.add(THREAD, ready(20, 30, 4));
        assert!(sums(&mut waits, &[], false).is_empty());
        assert_eq!(sums(&mut waits, &[], true), [(None, 4)]);
    }
}

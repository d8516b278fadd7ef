//! The CPU time that samples stand for: the kernel's account of a thread since its last sample.
//!
//! A perf event counts one thread's time on one CPU, and gives its first sample after a whole
//! interval. So time remains that no event has counted to its end: with many threads, or many CPUs,
//! most of it. A thread's next sample stands for that time as well.

use rustc_hash::FxHashMap;

/// The CPU time of threads that samples already stand for.
#[derive(Debug, Default)]
pub(super) struct Weights {
    /// CPU time of each thread at its last sample, in ns.
    used: FxHashMap<i32, u64>,
    /// The sum of all weights, in ns.
    sum_ns: u64,
}

impl Weights {
    /// Threads that had used this CPU time before the recording. Others begin later, with none.
    pub fn begin(threads: impl IntoIterator<Item = (i32, u64)>) -> Weights {
        Weights {
            used: threads.into_iter().collect(),
            sum_ns: 0,
        }
    }

    /// The weight of each of `count` samples of a thread that has used `now_ns` in total; `None`:
    /// it has exited, and a sample stands for its event's period.
    pub fn each(&mut self, tid: i32, count: u64, now_ns: Option<u64>, period_ns: u64) -> u64 {
        let each_ns = match now_ns {
            Some(now_ns) => self.take(tid, now_ns) / count.max(1),
            None => {
                self.used.remove(&tid);
                period_ns
            }
        };
        self.sum_ns = self.sum_ns.saturating_add(each_ns.saturating_mul(count));
        each_ns
    }

    /// The time that a thread has used since its last sample.
    fn take(&mut self, tid: i32, now_ns: u64) -> u64 {
        let before_ns = self.used.insert(tid, now_ns).unwrap_or(0);
        // An earlier thread may have had the same number.
        now_ns.checked_sub(before_ns).unwrap_or(now_ns)
    }

    /// Forgets threads that have exited.
    pub fn retain(&mut self, lives: impl Fn(i32) -> bool) {
        self.used.retain(|tid, _| lives(*tid));
    }

    /// The time of threads since their last samples. `used_ns`: total CPU time of a thread.
    pub fn rest(
        &mut self,
        threads: &[i32],
        used_ns: impl Fn(i32) -> Option<u64>,
    ) -> Vec<(i32, u64)> {
        let mut all = Vec::new();
        for tid in threads {
            let rest_ns = used_ns(*tid).map_or(0, |now_ns| self.take(*tid, now_ns));
            if rest_ns > 0 {
                self.sum_ns = self.sum_ns.saturating_add(rest_ns);
                all.push((*tid, rest_ns));
            }
        }
        all
    }

    /// The part of the process's CPU time that no weight stands for: that of threads that have
    /// exited.
    pub fn missing_ns(&self, process_ns: u64) -> u64 {
        process_ns.saturating_sub(self.sum_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: u64 = 100;

    #[test]
    fn samples_stand_for_time_since_the_last_one() {
        let mut weights = Weights::begin([(1, 1000)]);
        let mut each = |tid, count, now_ns| weights.each(tid, count, Some(now_ns), PERIOD_NS);
        assert_eq!(each(1, 1, 1150), 150);
        assert_eq!(each(1, 2, 1350), 100);
        // A thread that began later, and another one with the same number.
        assert_eq!(each(2, 1, 130), 130);
        assert_eq!(each(2, 1, 60), 60);
        assert_eq!(weights.missing_ns(540), 0);
        assert_eq!(weights.missing_ns(600), 60);
    }

    #[test]
    fn sample_of_an_exited_thread_stands_for_its_period() {
        let mut weights = Weights::begin([(1, 1000)]);
        assert_eq!(weights.each(1, 2, None, PERIOD_NS), PERIOD_NS);
        assert_eq!(weights.missing_ns(250), 50);
        // A later thread has its number.
        assert_eq!(weights.each(1, 1, Some(30), PERIOD_NS), 30);
    }

    #[test]
    fn weights_and_rest_are_all_time() {
        let mut weights = Weights::begin([(1, 0), (2, 50), (3, 70)]);
        weights.each(1, 3, Some(330), PERIOD_NS);
        let used = |tid: i32| [None, Some(400), Some(90), None][tid as usize];
        assert_eq!(weights.rest(&[1, 2, 3], used), [(1, 70), (2, 40)]);
        assert!(weights.rest(&[1, 2, 3], used).is_empty());
        // Thread 3 has exited, 9 ns after the start.
        assert_eq!(weights.missing_ns(330 + 70 + 40 + 9), 9);
        weights.retain(|tid| tid == 1);
        assert_eq!(weights.used.len(), 1);
    }
}

//! The wall time of threads against their lives: a thread that lives does something, or waits for
//! something, all the time.

use super::{Accounted, Interval, Judge, PartialSum, Sums};
use crate::profile::Profile;
use crate::sample::ThreadId;
use crate::wall::WallFilter;

/// A thread of which it is known that it lived for some time.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadLife {
    /// The thread's name.
    pub name: String,
    /// Its wall time as a part of its life; that is `latency_ns`.
    pub accounted: Accounted,
}

/// All such threads.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadLedger {
    /// How many there are.
    pub threads: usize,
    /// The median of their ratios.
    pub median: f64,
    /// The thread whose ratio is farthest from 1.
    pub worst: ThreadLife,
}

impl Profile {
    /// The ledger of the threads that are known to have lived for half of the time or longer.
    pub(super) fn thread_ledger(&self, whole: Interval) -> Option<ThreadLedger> {
        if self.is_of_requests() {
            return None;
        }
        let mut lives: Vec<Option<(Interval, PartialSum)>> = vec![None; self.threads.len()];
        for time in &self.thread_times {
            let from_ns = time.since_ns.max(whole.from_ns);
            let to_ns = time
                .since_ns
                .saturating_add(time.duration_ns)
                .min(whole.to_ns);
            let life = Interval { from_ns, to_ns };
            let thread = self.threads.get(time.thread as usize);
            let is_java = thread.is_some_and(|thread| thread.java_tid != 0);
            let is_long = life.length_ns() > 0 && life.length_ns() >= whole.length_ns() / 2;
            if let Some(place) = lives.get_mut(time.thread as usize)
                && is_java
                && is_long
                && !time.is_carrier
            {
                *place = Some((life, PartialSum::default()));
            }
        }
        for wall in self.wall(&WallFilter::default()) {
            if let Some(Some((life, seen))) = lives.get_mut(wall.thread as usize) {
                seen.add(&wall, life.part_of(&wall));
            }
        }
        let judge = Judge::of(lives.iter().flatten().count(), self.unseen());
        let known = lives.iter().enumerate();
        let mut known: Vec<ThreadLife> = known
            .filter_map(|(thread, life)| {
                let (life, seen) = (*life)?;
                let sums = Sums {
                    latency_ns: life.length_ns() as f64,
                    seen,
                    ..Sums::default()
                };
                Some(ThreadLife {
                    name: self.thread_name(thread as ThreadId).to_owned(),
                    accounted: sums.accounted(&judge),
                })
            })
            .collect();
        known.sort_by(|a, b| a.accounted.ratio.total_cmp(&b.accounted.ratio));
        let off = |life: &ThreadLife| (life.accounted.ratio - 1.0).abs();
        let worst = known.iter().max_by(|a, b| off(a).total_cmp(&off(b)))?;
        Some(ThreadLedger {
            threads: known.len(),
            median: median(&known)?,
            worst: worst.clone(),
        })
    }
}

/// Of the sorted ratios the middle one, or the mean of the two in the middle.
fn median(sorted: &[ThreadLife]) -> Option<f64> {
    let upper = sorted.get(sorted.len() / 2)?.accounted.ratio;
    match sorted.len() % 2 {
        0 => Some((sorted.get(sorted.len() / 2 - 1)?.accounted.ratio + upper) / 2.0),
        _ => Some(upper),
    }
}

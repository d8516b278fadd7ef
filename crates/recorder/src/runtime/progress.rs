//! How far a recording is, and what of it is missing.

use crate::limits::Limits;
use crate::looks::shelf::Tick;
use crate::patience::Patience;
use dwell_signal::Cause;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far a recording is; written by the drainer, read by `status`.
#[derive(Default)]
pub struct Progress {
    /// Samples taken.
    pub samples: AtomicU64,
    /// Samples whose walk failed.
    pub failed: AtomicU64,
    /// Intervals of CPU time that no sample carries.
    pub lost: AtomicU64,
    /// Sum of weights.
    pub weight_ns: AtomicU64,
    /// Bytes written.
    pub bytes: AtomicU64,
    /// CPU time of the agent's threads and handlers, when last written.
    pub agent_cpu_ns: AtomicU64,
    /// Its memory.
    pub agent_memory: AtomicU64,
    /// Time that walks took.
    pub walk_ns: AtomicU64,
    /// Bytes of stacks copied.
    pub copied_bytes: AtomicU64,
    /// How long collections wait for the drainer.
    pub patience: Patience,
    /// Looks at threads that could not be kept, and the wall time they stood for.
    wall_lost: Mutex<(u64, u64)>,
    /// Sum over all ticks of the wall-clock sampler, but that of threads: the last one's.
    wall: Mutex<Tick>,
    /// When the first sample was taken, on the monotonic clock; 0: there is none yet.
    pub first_sample_ns: AtomicU64,
    /// When it ends by itself.
    pub limits: Limits,
    trouble: Mutex<Option<String>>,
}

impl Progress {
    /// Of a recording that begins, and ends by itself at these limits.
    #[must_use]
    pub fn until(limits: Limits) -> Progress {
        Progress {
            limits,
            ..Progress::default()
        }
    }

    /// Notes the time of a sample, if it is the first.
    pub fn saw_first_sample(&self, time_ns: u64) {
        let first = &self.first_sample_ns;
        let _ = first.compare_exchange(0, time_ns, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Looks at threads were not kept: how many, and the time they stood for.
    pub fn add_wall_lost(&self, lost: (u64, u64)) {
        if let Ok(mut sum) = self.wall_lost.lock() {
            *sum = (sum.0 + lost.0, sum.1 + lost.1);
        }
    }

    /// Looks at threads that were not kept since this was last asked, and the wall time they stood
    /// for.
    #[must_use]
    pub fn take_wall_lost(&self) -> (u64, u64) {
        let lost = self.wall_lost.lock();
        lost.map_or((0, 0), |mut sum| std::mem::take(&mut *sum))
    }

    /// A tick of the wall-clock sampler.
    pub fn add_tick(&self, tick: &Tick) {
        if let Ok(mut sum) = self.wall.lock() {
            let before = *sum;
            *sum = Tick {
                span_ns: before.span_ns + tick.span_ns,
                ticks: before.ticks + tick.ticks,
                looked: before.looked + tick.looked,
                failed: before.failed + tick.failed,
                cpu_ns: before.cpu_ns + tick.cpu_ns,
                unmounted_looked: before.unmounted_looked + tick.unmounted_looked,
                unmounted_failed: before.unmounted_failed + tick.unmounted_failed,
                followed: before.followed + tick.followed,
                by_page: before.by_page.saturating_add(tick.by_page),
                by_fingerprint: before.by_fingerprint + tick.by_fingerprint,
                ..*tick
            };
        }
    }

    /// The sum of all ticks.
    #[must_use]
    pub fn ticks(&self) -> Tick {
        self.wall.lock().map(|sum| *sum).unwrap_or_default()
    }

    /// What `status` says of the file; empty if all is well.
    #[must_use]
    pub fn trouble(&self) -> String {
        let trouble = self.trouble.lock();
        trouble.ok().and_then(|it| it.clone()).unwrap_or_default()
    }

    /// Sets or clears what `status` says of the file.
    pub fn set_trouble(&self, trouble: Option<String>) {
        if let Ok(mut slot) = self.trouble.lock() {
            *slot = trouble;
        }
    }
}

/// How the file calls looks at threads for which there was no room: the drainer did not come. Their
/// time is wall time, which is why the event has no weight.
pub const LOOKS_LOST: &str = "looks_without_room";

/// Why samples are missing or other than asked for, as the file and `status` call it.
pub const DROPS: [(&str, Cause); 7] = [
    ("no_free_slot_weight_moved_on", Cause::NoSlot),
    ("thread_ended_without_slot", Cause::PointsLost),
    ("thread_without_timer", Cause::ArmFailed),
    ("signal_queue_full", Cause::QueueFull),
    ("walker_late_copied_instead", Cause::PauseTimeout),
    ("not_copied_walked_in_handler", Cause::WalkedInstead),
    ("walker_behind_walked_in_handler", Cause::WalkedBehind),
];

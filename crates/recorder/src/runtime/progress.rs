//! The progress of a recording, and its losses.

use crate::limits::Limits;
use crate::looks::shelf::Tick;
use crate::patience::Patience;
use dwell_signal::Cause;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The progress of a recording; written by the drainer, read by `status`.
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
    /// CPU time of the agent's threads, handlers and callbacks, when last written.
    pub agent_cpu_ns: AtomicU64,
    /// Its memory.
    pub agent_memory: AtomicU64,
    /// Time that walks took.
    pub walk_ns: AtomicU64,
    /// Bytes of stacks copied.
    pub copied_bytes: AtomicU64,
    /// How long collections wait for the drainer.
    pub patience: Patience,
    /// Wall-clock samples that could not be kept, and the wall time they stood for.
    wall_lost: Mutex<(u64, u64)>,
    /// Sums over all ticks of the wall-clock sampler; the number of threads is the last tick's.
    wall: Mutex<Tick>,
    /// When the first sample was taken, on the monotonic clock; 0: not yet.
    pub first_sample_ns: AtomicU64,
    /// The limits that end it.
    pub limits: Limits,
    trouble: Mutex<Option<String>>,
}

impl Progress {
    /// The progress of a recording that begins, with these limits.
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

    /// Adds wall-clock samples that were not kept: how many, and the time they stood for.
    pub fn add_wall_lost(&self, lost: (u64, u64)) {
        if let Ok(mut sum) = self.wall_lost.lock() {
            *sum = (sum.0 + lost.0, sum.1 + lost.1);
        }
    }

    /// Wall-clock samples that were not kept since the last call, and the wall time they stood
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

    /// The state of the file in `status`; empty without trouble.
    #[must_use]
    pub fn trouble(&self) -> String {
        let trouble = self.trouble.lock();
        trouble.ok().and_then(|it| it.clone()).unwrap_or_default()
    }

    /// Sets or clears the trouble with the file in `status`.
    pub fn set_trouble(&self, trouble: Option<String>) {
        if let Ok(mut slot) = self.trouble.lock() {
            *slot = trouble;
        }
    }
}

/// The file's name for wall-clock samples without room: the drainer was late. Their time is wall
/// time, so the event has no weight.
pub const LOOKS_LOST: &str = "looks_without_room";

/// Why samples are missing or not as requested, as the file and `status` name it.
pub const DROPS: [(&str, Cause); 7] = [
    ("no_free_slot_weight_moved_on", Cause::NoSlot),
    ("thread_ended_without_slot", Cause::PointsLost),
    ("thread_without_timer", Cause::ArmFailed),
    ("signal_queue_full", Cause::QueueFull),
    ("walker_late_copied_instead", Cause::PauseTimeout),
    ("not_copied_walked_in_handler", Cause::WalkedInstead),
    ("walker_behind_walked_in_handler", Cause::WalkedBehind),
];

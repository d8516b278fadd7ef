//! Stretches of time that the runtime reports on threads of its own. The drainer writes those that
//! have ended with each flush. These are pauses of the garbage collector, reported while all
//! threads stand still.

use dwell_jfr::writer::{ChunkWriter, Event};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Maximum number of pauses kept between two flushes; more than one in a millisecond do not occur.
const PAUSES_MAX: usize = 2048;

/// All kinds of them.
#[derive(Debug, Default)]
pub struct Stretches {
    /// Pauses of the collector.
    pub pauses: Pauses,
}

impl Stretches {
    /// Forgets all stretches before a recording. For the drainer only.
    pub fn forget(&self) {
        self.pauses.forget();
    }

    /// Writes the stretches that have ended. For the drainer only.
    pub fn write(&self, chunk: &mut ChunkWriter) {
        for pause in self.pauses.take() {
            chunk.event(&Event::GcPause {
                ticks: pause.began_ns,
                duration_ticks: pause.ended_ns - pause.began_ns,
            });
        }
    }
}

/// From when to when, on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When it began.
    pub began_ns: u64,
    /// When it was over.
    pub ended_ns: u64,
}

/// Pauses since the last flush: a ring that the runtime writes and the drainer reads. Neither
/// waits for the other.
#[derive(Debug)]
pub struct Pauses {
    /// When the current one began; 0: none lasts.
    open_ns: AtomicU64,
    ring: Box<[[AtomicU64; 2]]>,
    /// How many were written, and read, ever.
    written: AtomicUsize,
    read: AtomicUsize,
}

impl Default for Pauses {
    fn default() -> Pauses {
        let empty = || [AtomicU64::new(0), AtomicU64::new(0)];
        Pauses {
            open_ns: AtomicU64::new(0),
            ring: (0..PAUSES_MAX).map(|_| empty()).collect(),
            written: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
        }
    }
}

impl Pauses {
    /// Forgets all stretches from before a recording, also one that lasts, whose end may never be
    /// reported. For the drainer only.
    pub fn forget(&self) {
        self.open_ns.store(0, Ordering::Relaxed);
        let written = self.written.load(Ordering::Acquire);
        self.read.store(written, Ordering::Release);
    }

    /// One begins.
    pub fn begin(&self, now_ns: u64) {
        self.open_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Ends the current pause. A pause without a known begin is not recorded, nor one without
    /// room.
    pub fn end(&self, now_ns: u64) {
        let began_ns = self.open_ns.swap(0, Ordering::Relaxed);
        let written = self.written.load(Ordering::Relaxed);
        let unread = written.wrapping_sub(self.read.load(Ordering::Acquire));
        let place = self.ring.get(written % PAUSES_MAX);
        if let (Some([began, ended]), true) = (place, began_ns != 0 && unread < PAUSES_MAX) {
            began.store(began_ns, Ordering::Relaxed);
            ended.store(now_ns.max(began_ns), Ordering::Relaxed);
            self.written
                .store(written.wrapping_add(1), Ordering::Release);
        }
    }

    /// How many have ended since the process began, including those before a recording.
    #[must_use]
    pub fn ended(&self) -> u32 {
        self.written.load(Ordering::Relaxed) as u32
    }

    /// The pauses that have ended, in their order. For the drainer only.
    #[must_use]
    pub fn take(&self) -> Vec<Pause> {
        let (read, written) = (
            self.read.load(Ordering::Relaxed),
            self.written.load(Ordering::Acquire),
        );
        let unread = (0..written.wrapping_sub(read)).map(|i| read.wrapping_add(i));
        let all = unread.filter_map(|index| {
            let [began, ended] = self.ring.get(index % PAUSES_MAX)?;
            Some(Pause {
                began_ns: began.load(Ordering::Relaxed),
                ended_ns: ended.load(Ordering::Relaxed),
            })
        });
        let all = all.collect();
        self.read.store(written, Ordering::Release);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_have_a_begin_and_an_end() {
        let pauses = Pauses::default();
        pauses.end(5);
        assert_eq!(pauses.take(), [], "it began before we came");
        pauses.begin(10);
        assert_eq!(pauses.take(), [], "it lasts");
        pauses.end(30);
        pauses.begin(40);
        pauses.end(41);
        let pause = |began_ns, ended_ns| Pause { began_ns, ended_ns };
        assert_eq!(pauses.take(), [pause(10, 30), pause(40, 41)]);
        assert_eq!(pauses.take(), []);
    }

    #[test]
    fn pauses_before_recording_are_forgotten() {
        let pauses = Pauses::default();
        pauses.begin(1);
        pauses.end(2);
        pauses.begin(3);
        pauses.forget();
        pauses.end(400);
        assert_eq!(pauses.take(), [], "its begin was before the recording");
    }

    #[test]
    fn pauses_beyond_capacity_are_dropped() {
        let pauses = Pauses::default();
        for i in 1..=PAUSES_MAX as u64 + 5 {
            pauses.begin(i);
            pauses.end(i);
        }
        let taken = pauses.take();
        assert_eq!(taken.len(), PAUSES_MAX);
        assert_eq!(taken.first().map(|pause| pause.began_ns), Some(1));
        pauses.begin(9);
        pauses.end(10);
        assert_eq!(pauses.take().len(), 1);
    }
}

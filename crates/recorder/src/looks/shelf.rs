//! The queue from the wall-clock sampler to the drainer. The sampler names and writes nothing
//! itself.
//!
//! Bounded. Notes that do not fit are counted with the time they stand for.

use super::off::Off;
use dwell_context::Context;
use dwell_walker::Frame;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of notes.
const NOTES_MAX: usize = 1 << 16;
/// Maximum number of frames: 24 MB.
const FRAMES_MAX: usize = 1 << 20;
/// Maximum number of ids of logical threads that have run.
const RAN_MAX: usize = 1024;

/// A note about a thread, by its key in the recording.
#[derive(Debug)]
pub enum Note {
    /// Where the thread waits. Later samples of the thread with this class of fingerprint belong
    /// here, until the next such note.
    Stack {
        /// The thread.
        thread: u64,
        /// See `dwell_wallclock::labels`.
        class: u8,
        /// The sample.
        off: Off,
        /// The frames, in [`Notes::frames`].
        frames: Range<usize>,
        /// The owner of the object that it waits for.
        owner: Option<HasIt>,
    },
    /// Samples of a thread that was where the last `Stack` shows.
    Run(Run),
    /// Time in which a thread waited for a processor, from the kernel's account.
    Ready {
        /// The thread.
        thread: u64,
        /// Since when.
        since_ns: u64,
        /// Until when.
        at_ns: u64,
        /// How long.
        weight_ns: u64,
        /// The class of its place. [`dwell_wallclock::RUNS`]: the place of a sample of the thread's
        /// CPU time in managed code. `None`: that of any sample of its CPU time.
        class: Option<u8>,
    },
    /// The thread has exited.
    Gone {
        /// The thread.
        thread: u64,
    },
    /// A thread's name.
    Name {
        /// The thread.
        thread: u64,
        /// Its name.
        name: Box<str>,
    },
    /// A tick.
    Tick(Tick),
}

/// A thread that owns the object that another one waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HasIt {
    /// The thread.
    pub thread: u64,
    /// Where it was, in [`Notes::frames`]; empty if it ran.
    pub frames: Range<usize>,
}

/// Samples with the same result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The thread.
    pub thread: u64,
    /// The place: the class of the `Stack` that it belongs to.
    pub class: u8,
    /// Its context.
    pub work: Option<Arc<Context>>,
    /// The beginning of the time that the first sample stands for.
    pub since_ns: u64,
    /// The last one.
    pub until_ns: u64,
    /// How many.
    pub count: u32,
    /// Their weight.
    pub weight_ns: u64,
    /// The number of choices that gives the same certainty: see `dwell_wall::sums::choices`.
    pub choices: u64,
}

/// Counts of the sampled threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// When.
    pub at_ns: u64,
    /// The time it stands for.
    pub span_ns: u64,
    /// Ticks in it: more than one if some were missed.
    pub ticks: u64,
    /// Threads that live.
    pub live: usize,
    /// Threads among them that could be chosen.
    pub eligible: usize,
    /// Threads chosen.
    pub looked: usize,
    /// Threads among them that could not be read clearly.
    pub failed: usize,
    /// CPU time of sampling.
    pub cpu_ns: u64,
    /// Virtual threads without a carrier, estimated from the chosen threads.
    pub unmounted: u64,
    /// Threads among them that were chosen.
    pub unmounted_looked: usize,
    /// Threads among them that could not be read clearly.
    pub unmounted_failed: usize,
    /// The chosen platform threads that are known not to have run since their last sample.
    pub followed: usize,
    /// The chosen platform threads for which the kernel's page showed whether they have run.
    pub by_page: u32,
    /// The chosen platform threads that have run and whose stack was taken from their fingerprint.
    pub by_fingerprint: usize,
}

/// All notes since the drainer took some last.
#[derive(Debug, Default)]
pub struct Notes {
    /// In the order of events.
    pub notes: Vec<Note>,
    /// Frames of all stacks.
    pub frames: Vec<Frame>,
    /// Notes that did not fit, and the time they stood for.
    pub lost: (u64, u64),
}

impl Notes {
    /// Adds a note, which stands for `weight_ns`.
    pub fn add(&mut self, note: Note, weight_ns: u64) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        } else {
            self.lost = (self.lost.0 + 1, self.lost.1 + weight_ns);
        }
    }

    /// Adds a thread's waits of `weight_ns` for a processor in a period, if any, with the class of
    /// their place.
    pub fn add_ready(
        &mut self,
        thread: u64,
        period: Range<u64>,
        weight_ns: u64,
        class: Option<u8>,
    ) {
        if weight_ns > 0 {
            let note = Note::Ready {
                thread,
                since_ns: period.start,
                at_ns: period.end,
                weight_ns,
                class,
            };
            self.add(note, weight_ns);
        }
    }

    /// Adds where a thread waits. Returns false if there is no room, so that the thread is to be
    /// sampled again.
    pub fn add_stack(
        &mut self,
        (thread, class): (u64, u8),
        off: Off,
        stack: &[Frame],
        owner: Option<(u64, &[Frame])>,
    ) -> bool {
        let more = stack.len() + owner.map_or(0, |(_, frames)| frames.len());
        let fits = self.frames.len() + more <= FRAMES_MAX && self.notes.len() < NOTES_MAX;
        if fits {
            let frames = self.add_frames(stack);
            let owner = owner.map(|(thread, frames)| HasIt {
                thread,
                frames: self.add_frames(frames),
            });
            self.notes.push(Note::Stack {
                thread,
                class,
                off,
                frames,
                owner,
            });
        }
        fits
    }

    fn add_frames(&mut self, frames: &[Frame]) -> Range<usize> {
        let start = self.frames.len();
        self.frames.extend_from_slice(frames);
        start..self.frames.len()
    }

    /// Forgets all, and keeps the memory.
    pub fn clear(&mut self) {
        self.notes.clear();
        self.frames.clear();
        self.lost = (0, 0);
    }
}

/// Where notes change hands.
#[derive(Debug, Default)]
pub struct Shelf {
    notes: Mutex<Notes>,
    /// Logical threads of which the drainer has samples.
    ran: Mutex<Vec<u64>>,
    /// CPU time of the wall-clock sampler so far.
    own_cpu_ns: AtomicU64,
    /// CPU time that the drainer has spent on samples, and that is not in the budget yet.
    drain_cpu_ns: AtomicU64,
}

impl Shelf {
    /// The notes, to add to.
    pub fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the CPU time that the sampler has used.
    pub fn set_own_cpu_ns(&self, cpu_ns: u64) {
        self.own_cpu_ns.store(cpu_ns, Ordering::Relaxed);
    }

    /// CPU time that the sampler has used, in ns.
    #[must_use]
    pub fn own_cpu_ns(&self) -> u64 {
        self.own_cpu_ns.load(Ordering::Relaxed)
    }

    /// Adds CPU time that the drainer has spent on samples.
    pub fn add_drain_cpu_ns(&self, cpu_ns: u64) {
        self.drain_cpu_ns.fetch_add(cpu_ns, Ordering::Relaxed);
    }

    /// CPU time spent since the last call.
    #[must_use]
    pub fn take_drain_cpu_ns(&self) -> u64 {
        self.drain_cpu_ns.swap(0, Ordering::Relaxed)
    }

    /// Adds a logical thread with this id of which the drainer has a sample: it has run. If there
    /// are many, some are not kept.
    pub fn add_ran(&self, id: u64) {
        let mut ran = self.ran.lock().unwrap_or_else(PoisonError::into_inner);
        if ran.len() < RAN_MAX && ran.last() != Some(&id) {
            ran.push(id);
        }
    }

    /// Moves the ids of logical threads that have run since the last call to `ran`.
    pub fn take_ran(&self, ran: &mut Vec<u64>) {
        ran.append(&mut self.ran.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Takes all notes, and leaves `empty` in their place.
    pub fn take(&self, empty: &mut Notes) {
        empty.clear();
        std::mem::swap(&mut *self.lock(), empty);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_is_reported_once() {
        let shelf = Shelf::default();
        for id in [5, 5, 6].into_iter().chain(100..3000) {
            shelf.add_ran(id);
        }
        let mut ran = vec![1];
        shelf.take_ran(&mut ran);
        assert_eq!((ran.len(), &ran[..4]), (1 + RAN_MAX, &[1, 5, 6, 100][..]));
        shelf.take_ran(&mut ran);
        assert_eq!(ran.len(), 1 + RAN_MAX);
    }

    #[test]
    fn notes_beyond_capacity_are_counted() {
        let shelf = Shelf::default();
        for _ in 0..NOTES_MAX + 3 {
            shelf.lock().add(Note::Gone { thread: 1 }, 10);
        }
        let mut notes = Notes::default();
        shelf.take(&mut notes);
        assert_eq!((notes.notes.len(), notes.lost), (NOTES_MAX, (3, 30)));
        assert!(shelf.lock().notes.is_empty());
    }
}

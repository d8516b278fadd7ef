//! What the wall-clock sampler hands to the drainer: it names nothing and writes nothing itself.
//!
//! Bounded. What does not fit is counted with the time it stood for.

use super::off::Off;
use dwell_context::Context;
use dwell_walker::Frame;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Notes kept at most.
const NOTES_MAX: usize = 1 << 16;
/// Frames kept at most: 24 MB.
const FRAMES_MAX: usize = 1 << 20;
/// Ids of logical threads that have run that are kept at most.
const RAN_MAX: usize = 1024;

/// Something about a thread, by the key it has in the recording.
#[derive(Debug)]
pub enum Note {
    /// Where the thread waits. What is told of it and this class of its signs until the next such
    /// note happened there.
    Stack {
        /// The thread.
        thread: u64,
        /// See `dwell_wallclock::labels`.
        class: u8,
        /// What was seen.
        off: Off,
        /// The frames, in [`Notes::frames`].
        frames: Range<usize>,
        /// Who has what it waits for.
        owner: Option<HasIt>,
    },
    /// Looks at a thread that was where the last `Stack` says.
    Run(Run),
    /// Time in which a thread waited for a processor, from the kernel's account of it. Where it was
    /// is told by the last `Stack` for the time after it was woken there, else by its next sample
    /// of CPU time.
    Ready {
        /// The thread.
        thread: u64,
        /// Until when.
        at_ns: u64,
        /// How long.
        weight_ns: u64,
        /// How much of that when it had been woken.
        woken_ns: u64,
    },
    /// The thread is no more.
    Gone {
        /// The thread.
        thread: u64,
    },
    /// What a thread is called.
    Name {
        /// The thread.
        thread: u64,
        /// Its name.
        name: Box<str>,
    },
    /// A tick.
    Tick(Tick),
}

/// A thread that has what another one waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HasIt {
    /// The thread.
    pub thread: u64,
    /// Where it was, in [`Notes::frames`]; empty if it ran.
    pub frames: Range<usize>,
}

/// Looks that saw the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The thread.
    pub thread: u64,
    /// Of which of its places: the class of the `Stack` that tells.
    pub class: u8,
    /// What it worked for.
    pub work: Option<Arc<Context>>,
    /// The beginning of what the first look stands for.
    pub since_ns: u64,
    /// The last one.
    pub until_ns: u64,
    /// How many.
    pub count: u32,
    /// What they stand for.
    pub weight_ns: u64,
    /// As how many choices that is certain: see `dwell_wall::sums::choices`.
    pub choices: u64,
}

/// How many threads were looked at.
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
    /// Of these, threads that could be chosen.
    pub eligible: usize,
    /// Threads chosen.
    pub looked: usize,
    /// Of these, threads that were not clear.
    pub failed: usize,
    /// What looking has cost.
    pub cpu_ns: u64,
    /// Virtual threads without a carrier, as far as the chosen ones tell.
    pub unmounted: u64,
    /// Of these, threads that were chosen.
    pub unmounted_looked: usize,
    /// Of these, threads that were not clear.
    pub unmounted_failed: usize,
    /// Of the chosen platform threads, those known not to have run since their last look.
    pub followed: usize,
    /// Of the chosen platform threads, those of which the kernel's page told whether they have run.
    pub by_page: u32,
    /// Of the chosen platform threads, those that have run and were told where they are by signs.
    pub by_fingerprint: usize,
}

/// All notes since the drainer took some last.
#[derive(Debug, Default)]
pub struct Notes {
    /// In the order of events.
    pub notes: Vec<Note>,
    /// Frames of all stacks.
    pub frames: Vec<Frame>,
    /// Notes that did not fit, and what they stood for.
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

    /// Adds that a thread waited for a processor for `weight_ns`, if it did: `woken_ns` of it after
    /// it was woken where it was seen last.
    pub fn add_ready(&mut self, thread: u64, at_ns: u64, weight_ns: u64, woken_ns: u64) {
        if weight_ns > 0 {
            let note = Note::Ready {
                thread,
                at_ns,
                weight_ns,
                woken_ns,
            };
            self.add(note, weight_ns);
        }
    }

    /// Adds where a thread waits; false if there is no room, so that it is to be looked at anew.
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
    /// What the drainer has spent on looks, and is not paid for yet.
    drain_cpu_ns: AtomicU64,
}

impl Shelf {
    /// The notes, to add to.
    pub fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sampler has used so much CPU time.
    pub fn set_own_cpu_ns(&self, cpu_ns: u64) {
        self.own_cpu_ns.store(cpu_ns, Ordering::Relaxed);
    }

    /// CPU time that the sampler has used, in ns.
    #[must_use]
    pub fn own_cpu_ns(&self) -> u64 {
        self.own_cpu_ns.load(Ordering::Relaxed)
    }

    /// The drainer has spent so much on looks.
    pub fn add_drain_cpu_ns(&self, cpu_ns: u64) {
        self.drain_cpu_ns.fetch_add(cpu_ns, Ordering::Relaxed);
    }

    /// What it has spent since this was asked last.
    #[must_use]
    pub fn take_drain_cpu_ns(&self) -> u64 {
        self.drain_cpu_ns.swap(0, Ordering::Relaxed)
    }

    /// The drainer has a sample of a logical thread, with this id: it has run. Of many some are
    /// not kept.
    pub fn add_ran(&self, id: u64) {
        let mut ran = self.ran.lock().unwrap_or_else(PoisonError::into_inner);
        if ran.len() < RAN_MAX && ran.last() != Some(&id) {
            ran.push(id);
        }
    }

    /// Moves the ids of those that have run since this was asked last to `ran`.
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
    fn who_has_run_is_told_once() {
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
    fn what_does_not_fit_is_counted() {
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

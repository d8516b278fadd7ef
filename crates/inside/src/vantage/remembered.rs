//! A cache of walks of waiting threads. A thread mostly waits where it has waited before, and then
//! a few words of its stack are enough to know its frames.
//!
//! A walk depends on its first registers, on the stack words that it reads, and on the runtime's
//! code and metadata. The words are recorded during the walk. Code and metadata of a stack stay
//! valid from one safepoint to the next (see `drain/moment.rs`). So a thread that waits with the
//! same registers and the same values in these words has the same frames.

use dwell_signal::Live;
use dwell_walker::hotspot::threads::Anchor;
use dwell_walker::{Fault, Frame, Memory, Outcome, Walk};
use std::cell::{Cell, RefCell};

/// Walks are kept in sets by their start. A thread mostly waits at few places, but several of them
/// may have the same registers.
const SETS: usize = 64;
const SET_MAX: usize = 8;
/// Deeper stacks are not cached, ...
const WORDS_MAX: usize = 640;
const FRAMES_MAX: usize = 256;
/// ... and the cache is cleared at this size. 500 walks of 20 frames are half a megabyte.
const BYTES_MAX: usize = 2 << 20;
/// A walk may also read so many bytes below sp.
const BELOW: u64 = 256;

/// The start of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The `JavaThread*`.
    pub thread: u64,
    /// The program counter.
    pub pc: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer, if it is known.
    pub fp: u64,
    /// Its last Java frame.
    pub anchor: Anchor,
    /// End of the stack.
    pub high: u64,
    /// Version of the known libraries.
    pub map: usize,
}

struct Known {
    start: Start,
    /// Words of the stack, by their addresses.
    words: Box<[(u64, u64)]>,
    frames: Box<[Frame]>,
    walk: Walk,
}

impl Known {
    /// Whether a walk from there would read the same.
    fn holds(&self, live: Live, start: &Start) -> bool {
        let is_same = |(at, value): &(u64, u64)| live.word(*at) == Ok(*value);
        self.start == *start && self.words.iter().all(is_same)
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of_val(&*self.frames)
    }
}

/// The walks since the last safepoint.
struct Walks {
    /// Each set is sorted by last use.
    sets: Vec<Vec<Known>>,
    bytes: usize,
}

impl Walks {
    fn clear(&mut self) {
        self.sets.iter_mut().for_each(Vec::clear);
        self.bytes = 0;
    }

    fn add(&mut self, known: Known) {
        if self.bytes + known.bytes() > BYTES_MAX {
            self.clear();
        }
        self.bytes += known.bytes();
        if let Some(set) = self.sets.get_mut(set_of(&known.start)) {
            if set.len() >= SET_MAX
                && let Some(oldest) = set.pop()
            {
                self.bytes -= oldest.bytes();
            }
            set.insert(0, known);
        }
    }
}

/// The cache. Not for use by several threads.
pub struct Remembered {
    walks: RefCell<Walks>,
    /// Buffer for the words of the walk in progress.
    words: Box<[Cell<(u64, u64)>]>,
}

impl Default for Remembered {
    fn default() -> Remembered {
        Remembered {
            walks: RefCell::new(Walks {
                sets: (0..SETS).map(|_| Vec::new()).collect(),
                bytes: 0,
            }),
            words: vec![Cell::new((0, 0)); WORDS_MAX].into_boxed_slice(),
        }
    }
}

impl Remembered {
    /// Clears the cache, because the runtime may have changed.
    pub fn clear(&self) {
        self.walks.borrow_mut().clear();
    }

    /// Walks a stack by `walk`, if it is not in the cache.
    pub fn walk(
        &self,
        live: Live,
        start: &Start,
        frames: &mut [Frame],
        walk: impl FnOnce(&Noting<'_>, &mut [Frame]) -> Walk,
    ) -> Walk {
        if let Some(known) = self.find(live, start, frames) {
            return known;
        }
        let noting = Noting::words(live, start, &self.words);
        let done = walk(&noting, frames);
        let found = frames.get(..done.len).filter(|it| it.len() <= FRAMES_MAX);
        if let (Outcome::Complete, Some(frames), Some(words)) =
            (done.outcome, found, noting.taken())
        {
            self.walks.borrow_mut().add(Known {
                start: *start,
                words,
                frames: frames.into(),
                walk: done,
            });
        }
        done
    }

    fn find(&self, live: Live, start: &Start, frames: &mut [Frame]) -> Option<Walk> {
        let mut walks = self.walks.borrow_mut();
        let set = walks.sets.get_mut(set_of(start))?;
        let place = set.iter().position(|known| known.holds(live, start))?;
        set.get_mut(..=place)?.rotate_right(1);
        let known = set.first()?;
        frames
            .get_mut(..known.frames.len())?
            .copy_from_slice(&known.frames);
        Some(known.walk)
    }
}

fn set_of(start: &Start) -> usize {
    let mixed = start.sp ^ start.pc.rotate_left(32);
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SETS
}

/// The process's memory. Records the words that are read of a stack. Usable in handlers.
pub struct Noting<'a> {
    live: Live,
    /// Lower end of the stack.
    low: u64,
    bytes: u64,
    words: &'a [Cell<(u64, u64)>],
    len: Cell<usize>,
    is_whole: Cell<bool>,
}

impl<'a> Noting<'a> {
    /// Notes nothing.
    #[inline]
    #[must_use]
    pub const fn nothing(live: Live) -> Noting<'a> {
        Noting {
            live,
            low: 0,
            bytes: 0,
            words: &[],
            len: Cell::new(0),
            is_whole: Cell::new(true),
        }
    }

    fn words(live: Live, start: &Start, words: &'a [Cell<(u64, u64)>]) -> Noting<'a> {
        let low = start.sp.saturating_sub(BELOW);
        Noting {
            low,
            bytes: start.high.saturating_sub(low),
            words,
            ..Noting::nothing(live)
        }
    }

    #[cold]
    fn note(&self, addr: u64, value: Result<u64, Fault>) {
        match (value, self.words.get(self.len.get())) {
            (Ok(value), Some(word)) => {
                word.set((addr, value));
                self.len.set(self.len.get() + 1);
            }
            _ => self.is_whole.set(false),
        }
    }

    /// The recorded words; `None` if some are missing. (A word with two values, because the thread
    /// has run, can never match later.)
    fn taken(&self) -> Option<Box<[(u64, u64)]>> {
        let noted = self.words.get(..self.len.get())?;
        let is_whole = self.is_whole.get();
        is_whole.then(|| noted.iter().map(Cell::get).collect())
    }
}

impl Memory for Noting<'_> {
    // Not inlined: it has some hundred callers, for two kinds of walks.
    #[inline(never)]
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        let value = self.live.word(addr);
        if addr.wrapping_sub(self.low) < self.bytes {
            self.note(addr, value);
        }
        value
    }

    #[inline(never)]
    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        let end = addr.wrapping_add(buf.len() as u64);
        if end > self.low && addr < self.low.wrapping_add(self.bytes) {
            // Reads of other sizes are rare; such a walk is not cached.
            self.is_whole.set(false);
        }
        self.live.read(addr, buf)
    }
}

#[cfg(test)]
mod tests;

//! Functions only for benches and tests of the walker; not in a released library.

use dwell_signal::SlotHeader;
use dwell_signal::slots::CHUNKS_MAX;
use dwell_walker::{Failure, Fault, Frame, Memory};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering, fence};

/// Experiments in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// The stack is neither copied nor held still while it is walked.
    NoCopy,
    /// The handler takes no sample.
    EmptyHandler,
    /// Each sample is walked in the handler and from its copy, and the two are compared.
    Compare,
    /// Somewhere in each walk a load fails.
    Faults,
    /// No signals: the kernel copies registers and the top of the stack.
    Kernel {
        /// Most KiB of stack copied.
        kib: u32,
    },
}

/// Whether loads of walks shall fail.
static FAULTS: AtomicBool = AtomicBool::new(false);
static WALKS: AtomicU64 = AtomicU64::new(0);

/// Makes one load of each walk fail, or no load.
pub fn set_faults(on: bool) {
    FAULTS.store(on, Ordering::Relaxed);
}

/// Walks so far in which a load was to fail.
#[must_use]
pub fn faulty_walks() -> u64 {
    WALKS.load(Ordering::Relaxed)
}

/// Addresses that cannot be read: unmapped, the kernel's, and not canonical (for which the
/// processor reports no address).
const BAD: [u64; 3] = [0x10, 0xffff_ffff_8000_0000, 0xdead_0000_0000_0000];

/// Loads of the last walk that ran without a fault: the bad ones are spread over as many.
static LOADS: AtomicU64 = AtomicU64::new(100);
/// One walk in this many runs without a fault.
const LEFT_ALONE: u64 = 8;

/// Loads that went wrong.
static BAD_LOADS: AtomicU64 = AtomicU64::new(0);

/// Memory whose k-th load fails, if that is requested, with another k for each walk.
pub struct Faulty<M> {
    inner: M,
    bad: u64,
    left: Cell<u64>,
    /// Loads so far, if they are to be counted.
    counted: Option<Cell<u64>>,
}

impl<M: Memory> Faulty<M> {
    /// For one walk.
    pub fn new(inner: M) -> Faulty<M> {
        let mut faulty = Faulty {
            inner,
            bad: 0,
            left: Cell::new(0),
            counted: None,
        };
        if FAULTS.load(Ordering::Relaxed) {
            let walk = WALKS.fetch_add(1, Ordering::Relaxed);
            if walk.is_multiple_of(LEFT_ALONE) {
                faulty.counted = Some(Cell::new(0));
                return faulty;
            }
            let loads = LOADS.load(Ordering::Relaxed).max(1);
            faulty.left.set(1 + walk % loads);
            faulty.bad = BAD.get((walk % 3) as usize).copied().unwrap_or(0);
        }
        faulty
    }

    fn place(&self, addr: u64) -> u64 {
        if let Some(counted) = &self.counted {
            counted.set(counted.get() + 1);
        }
        match self.left.get() {
            0 => addr,
            left => {
                self.left.set(left - 1);
                if left > 1 {
                    return addr;
                }
                BAD_LOADS.fetch_add(1, Ordering::Relaxed);
                self.bad
            }
        }
    }
}

impl<M> Drop for Faulty<M> {
    fn drop(&mut self) {
        if let Some(counted) = &self.counted {
            LOADS.store(counted.get(), Ordering::Relaxed);
        }
    }
}

impl<M: Memory> Memory for Faulty<M> {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        self.inner.word(self.place(addr))
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        self.inner.read(self.place(addr), buf)
    }
}

/// Whether walks in handlers note their reads.
static NOTING: AtomicBool = AtomicBool::new(false);

/// Lets walks in handlers note their reads, or not.
pub fn set_noting(on: bool) {
    NOTING.store(on, Ordering::Relaxed);
}

/// Words that the notes of one walk have room for; a power of two.
const NOTES: usize = 2048;
/// Places that are tried for a note.
const PROBES: usize = 64;
/// Walks whose notes are kept: all that wait for the drainer, unless it is very late.
const WALKS_NOTED: usize = 1024;
/// A bit in the address of a note: the word could not be read. Addresses of programs do not have
/// this bit.
const FAILED: u64 = 1 << 63;

static NOTES_OF_WALKS: Table<WALKS_NOTED> = Table::new();

/// One word that a walk has read.
struct Note {
    /// Its address; 0 if there is no note here.
    addr: AtomicU64,
    value: AtomicU64,
}

/// The reads of one walk.
struct Entry {
    /// Whether a walk writes here.
    busy: AtomicBool,
    /// Number of the walk whose notes these are; 0 if the notes are missing or incomplete.
    ticket: AtomicU64,
    tid: AtomicI32,
    time_ns: AtomicU64,
    /// Whether there was no room for some.
    overflowed: AtomicBool,
    notes: [Note; NOTES],
}

impl Entry {
    const fn new() -> Entry {
        Entry {
            busy: AtomicBool::new(false),
            ticket: AtomicU64::new(0),
            tid: AtomicI32::new(0),
            time_ns: AtomicU64::new(0),
            overflowed: AtomicBool::new(false),
            notes: [const {
                Note {
                    addr: AtomicU64::new(0),
                    value: AtomicU64::new(0),
                }
            }; NOTES],
        }
    }

    /// Notes the word at an address, once; `None` if it could not be read.
    fn note(&self, addr: u64, value: Option<u64>) {
        if addr & FAILED != 0 {
            return; // never readable
        }
        let (key, value) = value.map_or((addr | FAILED, 0), |value| (addr, value));
        let first = (addr.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
        for probe in 0..PROBES {
            let place = first.wrapping_add(probe) & (NOTES - 1);
            let Some(note) = self.notes.get(place) else {
                break;
            };
            let found = note.addr.load(Ordering::Relaxed);
            if found == 0 {
                note.value.store(value, Ordering::Relaxed);
                note.addr.store(key, Ordering::Relaxed);
                return;
            }
            // Another value at the same address gets its own note.
            if found == key && note.value.load(Ordering::Relaxed) == value {
                return;
            }
        }
        self.overflowed.store(true, Ordering::Relaxed);
    }

    /// Ends the notes: readers find them from now on.
    fn end(&self, ticket: u64, tid: i32, time_ns: u64) {
        self.tid.store(tid, Ordering::Relaxed);
        self.time_ns.store(time_ns, Ordering::Relaxed);
        self.ticket.store(ticket, Ordering::Release);
        self.busy.store(false, Ordering::Release);
    }

    /// Whether a noted word has changed, and how many words were compared.
    fn differs(&self, memory: &impl Memory) -> (bool, usize) {
        let mut count = 0;
        for note in &self.notes {
            let key = note.addr.load(Ordering::Relaxed);
            if key == 0 {
                continue;
            }
            count += 1;
            let was = (key & FAILED == 0).then(|| note.value.load(Ordering::Relaxed));
            if memory.word(key & !FAILED).ok() != was {
                return (true, count);
            }
        }
        (false, count)
    }
}

/// The result of comparing the notes of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// A word that the walk has read has changed.
    Changed,
    /// None of this many words has changed; the walk may have read more.
    AsItWas { words: usize, overflowed: bool },
    /// The notes of this walk are overwritten, or were never made.
    Nothing,
}

/// The reads of the last walks, written by handlers and read by the drainer.
struct Table<const N: usize> {
    /// Walks so far.
    next: AtomicU64,
    entries: [Entry; N],
}

impl<const N: usize> Table<N> {
    const fn new() -> Table<N> {
        Table {
            next: AtomicU64::new(0),
            entries: [const { Entry::new() }; N],
        }
    }

    /// An empty entry and the number of its walk, for the caller alone until [`Entry::end`];
    /// `None` if an older walk still writes to the next entry.
    fn begin(&self) -> Option<(&Entry, u64)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let entry = self.entries.get(number.checked_rem(N as u64)? as usize)?;
        if entry.busy.swap(true, Ordering::Acquire) {
            return None;
        }
        entry.ticket.store(0, Ordering::Relaxed);
        // A thread that still reads the old entry sees the reset before any new data.
        fence(Ordering::Release);
        entry.overflowed.store(false, Ordering::Relaxed);
        for note in &entry.notes {
            note.addr.store(0, Ordering::Relaxed);
        }
        Some((entry, number.wrapping_add(1)))
    }

    /// Compares the reads of this thread's walk at this time with the present memory.
    fn ask(&self, tid: i32, time_ns: u64, memory: &impl Memory) -> Said {
        for entry in &self.entries {
            let ticket = entry.ticket.load(Ordering::Acquire);
            let is_it = entry.tid.load(Ordering::Relaxed) == tid
                && entry.time_ns.load(Ordering::Relaxed) == time_ns;
            if ticket == 0 || !is_it {
                continue;
            }
            let (differs, words) = entry.differs(memory);
            let overflowed = entry.overflowed.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            return match entry.ticket.load(Ordering::Relaxed) == ticket {
                true if differs => Said::Changed,
                true => Said::AsItWas { words, overflowed },
                false => Said::Nothing, // overwritten meanwhile
            };
        }
        Said::Nothing
    }
}

/// Assumed maximum size of a stack whose end is not known.
const STACK_MAX_BYTES: u64 = 64 << 20;
/// Bytes that code may use below the stack pointer.
const RED_ZONE_BYTES: u64 = 128;

/// Memory that notes the reads of a walk in a handler, if that is requested. It does not note the
/// thread's own memory, which changes when the thread continues. A walk of the copy must not read
/// that memory live.
pub struct Noting<M> {
    inner: M,
    entry: Option<(&'static Entry, u64)>,
    tid: i32,
    time_ns: u64,
    /// The thread's own: its stacks, the runtime's structure of it, and the heap chunks copied.
    own: [(u64, u64); 3 + CHUNKS_MAX],
}

impl<M: Memory> Noting<M> {
    /// For one walk. The runtime's own structure of a thread has at most `thread_bytes`.
    pub fn new(inner: M, header: &SlotHeader, thread_bytes: u64) -> Noting<M> {
        let is_noting = NOTING.load(Ordering::Relaxed);
        Noting {
            inner,
            entry: is_noting.then(|| NOTES_OF_WALKS.begin()).flatten(),
            tid: header.tid,
            time_ns: header.time_ns,
            own: own_ranges(header, thread_bytes),
        }
    }

    fn note(&self, addr: u64, value: Option<u64>) {
        let Some((entry, _)) = self.entry else { return };
        let end = addr.saturating_add(8);
        if !self.own.iter().any(|&(lo, hi)| addr < hi && lo < end) {
            entry.note(addr, value);
        }
    }
}

/// Memory that changes because the thread continues.
fn own_ranges(header: &SlotHeader, thread_bytes: u64) -> [(u64, u64); 3 + CHUNKS_MAX] {
    let sp = header.regs.sp();
    let lo = header.stack_lo.min(sp.saturating_sub(RED_ZONE_BYTES));
    let hi = match header.stack_end_known {
        true => header.stack_hi,
        false => header.stack_hi.max(sp.saturating_add(STACK_MAX_BYTES)),
    };
    let thread = match header.managed_thread {
        0 => (0, 0),
        at => (at, at.saturating_add(thread_bytes)),
    };
    let mut own = [(0, 0); 3 + CHUNKS_MAX];
    let chunks = header.copied_chunks().iter();
    let chunks = chunks.map(|c| (c.lo, c.lo.saturating_add(u64::from(c.wanted))));
    let all = [(lo, hi), header.left_stack, thread];
    for (place, range) in own.iter_mut().zip(all.into_iter().chain(chunks)) {
        *place = range;
    }
    own
}

impl<M> Drop for Noting<M> {
    fn drop(&mut self) {
        if let Some((entry, ticket)) = self.entry {
            entry.end(ticket, self.tid, self.time_ns);
        }
    }
}

impl<M: Memory> Memory for Noting<M> {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        let word = self.inner.word(addr);
        self.note(addr, word.ok());
        word
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        if self.entry.is_some() {
            // First: a word that changes between the two loads differs from its note by then.
            let end = addr.saturating_add(buf.len() as u64);
            for at in (addr & !7..end).step_by(8) {
                self.note(at, self.inner.word(at).ok());
            }
        }
        self.inner.read(addr, buf)
    }
}

/// How walks from copies compare with those in the handler.
///
/// The outcome of a walk is a function of its reads. The thread's own memory that the first walk
/// has read is in the copy. If all other memory is unchanged, the second walk must give the same
/// frames. If the frames differ, the notes show whether memory has changed.
#[derive(Default)]
pub struct Comparison {
    /// Samples walked both ways.
    pub walks: u64,
    /// Walks with the same frames.
    pub same: u64,
    /// Not compared: libraries came or went between the two walks.
    pub apart: u64,
    /// Not compared: the frames differ, and the process has changed memory that the first walk had
    /// read.
    pub changed: u64,
    /// Not compared: the frames differ, and the notes of the first walk are overwritten.
    pub unknown: u64,
    /// The first few differences.
    pub examples: Vec<String>,
}

impl Comparison {
    /// Compares one sample. The walk in the handler may have known other libraries if the map has
    /// `moved` since.
    pub fn add(
        &mut self,
        header: &SlotHeader,
        memory: &impl Memory,
        here: &[Frame],
        copy: &[Frame],
        moved: bool,
    ) {
        let ask = || NOTES_OF_WALKS.ask(header.tid, header.time_ns, memory);
        self.judge(here, copy, moved, ask);
    }

    fn judge(&mut self, here: &[Frame], copy: &[Frame], moved: bool, ask: impl FnOnce() -> Said) {
        if moved {
            self.apart += 1;
            return;
        }
        // There is less room for frames behind a copied stack than for the other walk.
        let (here, was_cut) = match here.split_last() {
            Some((last, rest)) if *last == Frame::failed(Failure::Truncated) => (rest, true),
            _ => (here, false),
        };
        let cut = here.len();
        let copy = copy.get(..cut).filter(|_| was_cut).unwrap_or(copy);
        if here == copy {
            self.walks += 1;
            self.same += 1;
            return;
        }
        let (words, overflowed) = match ask() {
            Said::Changed => {
                self.changed += 1;
                return;
            }
            Said::Nothing => {
                self.unknown += 1;
                return;
            }
            Said::AsItWas { words, overflowed } => (words, overflowed),
        };
        self.walks += 1;
        if self.examples.len() < 10 {
            let at = here.iter().zip(copy).take_while(|(a, b)| a == b).count();
            let (a, b) = (here.get(at), copy.get(at));
            let lens = (here.len(), copy.len());
            let more = if overflowed { ", of more," } else { "" };
            self.examples.push(format!(
                "frame {at} of {lens:?}: {a:x?} against {b:x?}, and {words} words read{more} are \
                 as they were"
            ));
        }
    }
}

impl Drop for Comparison {
    fn drop(&mut self) {
        let bad_loads = BAD_LOADS.load(Ordering::Relaxed);
        if bad_loads > 0 {
            eprintln!("dwell experiment: bad loads {bad_loads}");
        }
        if self.walks > 0 {
            eprintln!(
                "dwell experiment: compared {} same {}",
                self.walks, self.same
            );
            eprintln!(
                "dwell experiment: not compared: {} libraries moved, {} code changed, {} without \
                 notes",
                self.apart, self.changed, self.unknown
            );
            for example in &self.examples {
                eprintln!("dwell experiment: {example}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words at 8, 16 and so on; no other address can be read.
    struct Words(Vec<Cell<u64>>);

    impl Words {
        fn new(words: impl IntoIterator<Item = u64>) -> Words {
            Words(words.into_iter().map(Cell::new).collect())
        }

        fn set(&self, addr: u64, value: u64) {
            self.0[addr as usize / 8 - 1].set(value);
        }
    }

    impl Memory for Words {
        fn word(&self, addr: u64) -> Result<u64, Fault> {
            let place = (addr as usize / 8)
                .checked_sub(1)
                .filter(|_| addr.is_multiple_of(8));
            let word = place.and_then(|place| self.0.get(place));
            word.map(Cell::get).ok_or(Fault { addr })
        }

        fn read(&self, addr: u64, _buf: &mut [u8]) -> Result<(), Fault> {
            self.word(addr & !7).map(|_| ())
        }
    }

    fn as_it_was(words: usize) -> Said {
        Said::AsItWas {
            words,
            overflowed: false,
        }
    }

    /// The memory of a walk that notes in this entry.
    fn noting<'a>(
        memory: &'a Words,
        entry: (&'static Entry, u64),
        time_ns: u64,
    ) -> Noting<&'a Words> {
        Noting {
            inner: memory,
            entry: Some(entry),
            tid: 7,
            time_ns,
            own: [(0, 0); 3 + CHUNKS_MAX],
        }
    }

    #[test]
    fn a_changed_word_is_seen_and_only_one_that_was_read() {
        static TABLE: Table<2> = Table::new();
        let memory = Words::new([10, 20, 30, 40]);
        let walk = noting(&memory, TABLE.begin().unwrap(), 100);
        for addr in [8, 16, 8] {
            let _ = walk.word(addr);
        }
        assert_eq!(TABLE.ask(7, 100, &memory), Said::Nothing, "not ended");
        drop(walk);
        assert_eq!(TABLE.ask(7, 100, &memory), as_it_was(2));
        assert_eq!(TABLE.ask(8, 100, &memory), Said::Nothing, "another thread");
        assert_eq!(TABLE.ask(7, 101, &memory), Said::Nothing, "another sample");
        memory.set(24, 31);
        assert_eq!(TABLE.ask(7, 100, &memory), as_it_was(2));
        memory.set(16, 21);
        assert_eq!(TABLE.ask(7, 100, &memory), Said::Changed);
        memory.set(16, 20);
        assert_eq!(TABLE.ask(7, 100, &memory), as_it_was(2));
        let shorter = Words::new([10]);
        assert_eq!(TABLE.ask(7, 100, &shorter), Said::Changed, "not there");
    }

    #[test]
    fn word_changed_during_walk_is_reported_as_changed() {
        static TABLE: Table<1> = Table::new();
        let memory = Words::new([10]);
        let walk = noting(&memory, TABLE.begin().unwrap(), 100);
        let _ = walk.word(8);
        memory.set(8, 11);
        let _ = walk.word(8);
        drop(walk);
        assert_eq!(TABLE.ask(7, 100, &memory), Said::Changed);
    }

    #[test]
    fn bytes_that_were_read_are_noted_by_words() {
        static TABLE: Table<1> = Table::new();
        let memory = Words::new([10, 20, 30, 40]);
        let walk = noting(&memory, TABLE.begin().unwrap(), 100);
        let _ = walk.read(15, &mut [0; 10]);
        drop(walk);
        // Bytes 15 to 24 lie in three words.
        assert_eq!(TABLE.ask(7, 100, &memory), as_it_was(3));
        memory.set(24, 31);
        assert_eq!(TABLE.ask(7, 100, &memory), Said::Changed);
    }

    #[test]
    fn unreadable_word_that_becomes_readable_has_changed() {
        static TABLE: Table<1> = Table::new();
        let memory = Words::new([10]);
        let walk = noting(&memory, TABLE.begin().unwrap(), 100);
        assert!(walk.word(16).is_err() && walk.word(u64::MAX).is_err());
        drop(walk);
        assert_eq!(TABLE.ask(7, 100, &memory), as_it_was(1));
        let longer = Words::new([10, 20]);
        assert_eq!(TABLE.ask(7, 100, &longer), Said::Changed);
    }

    #[test]
    fn the_threads_own_is_not_noted() {
        static TABLE: Table<1> = Table::new();
        let memory = Words::new([10, 20, 30, 40]);
        let mut walk = noting(&memory, TABLE.begin().unwrap(), 100);
        walk.own[1] = (16, 24);
        for addr in [8, 16, 24] {
            let _ = walk.word(addr);
        }
        let _ = walk.read(8, &mut [0; 32]);
        drop(walk);
        assert_eq!(TABLE.ask(7, 100, &memory), as_it_was(3));
        memory.set(16, 21);
        assert_eq!(TABLE.ask(7, 100, &memory), as_it_was(3));
    }

    #[test]
    fn full_notes_are_reported_and_others_stay_valid() {
        static TABLE: Table<1> = Table::new();
        let memory = Words::new(0..2 * NOTES as u64);
        let walk = noting(&memory, TABLE.begin().unwrap(), 100);
        for addr in (8..=memory.0.len() as u64 * 8).step_by(8) {
            let _ = walk.word(addr);
        }
        drop(walk);
        let said = TABLE.ask(7, 100, &memory);
        let Said::AsItWas { words, overflowed } = said else {
            panic!("{said:?}");
        };
        assert!(overflowed && words > NOTES / 2, "{said:?}");
        memory.set(8, 1000);
        assert_eq!(TABLE.ask(7, 100, &memory), Said::Changed);
        // The next walk here begins without notes.
        drop(noting(&memory, TABLE.begin().unwrap(), 200));
        assert_eq!(TABLE.ask(7, 200, &memory), as_it_was(0));
        assert_eq!(TABLE.ask(7, 100, &memory), Said::Nothing);
    }

    #[test]
    fn an_entry_belongs_to_one_walk_at_a_time() {
        static TABLE: Table<1> = Table::new();
        let memory = Words::new([10]);
        let walk = noting(&memory, TABLE.begin().unwrap(), 100);
        assert!(TABLE.begin().is_none());
        drop(walk);
        assert!(TABLE.begin().is_some());
    }

    /// While a word is compared, another walk begins in the entry.
    struct Overwriting(&'static Table<1>, Cell<bool>);

    impl Memory for Overwriting {
        fn word(&self, _addr: u64) -> Result<u64, Fault> {
            if !self.1.replace(true) {
                let (entry, ticket) = self.0.begin().unwrap();
                entry.end(ticket, 7, 100);
            }
            Ok(0)
        }

        fn read(&self, addr: u64, _buf: &mut [u8]) -> Result<(), Fault> {
            Err(Fault { addr })
        }
    }

    #[test]
    fn notes_overwritten_during_read_are_unknown() {
        static TABLE: Table<1> = Table::new();
        for value in [0, 1] {
            let memory = Words::new([value]);
            let walk = noting(&memory, TABLE.begin().unwrap(), 100);
            let _ = walk.word(8);
            drop(walk);
            let memory = Overwriting(&TABLE, Cell::new(false));
            assert_eq!(TABLE.ask(7, 100, &memory), Said::Nothing);
        }
    }

    #[test]
    fn only_unexplained_frames_count_as_difference() {
        let frames = [1, 2, 3].map(|id| Frame { id, ..Frame::EMPTY });
        let mut all = Comparison::default();
        all.judge(&frames, &frames, false, || unreachable!());
        all.judge(&frames, &frames[..2], true, || unreachable!());
        all.judge(&frames, &frames[..2], false, || Said::Changed);
        all.judge(&frames, &frames[..2], false, || Said::Nothing);
        assert_eq!((all.walks, all.same), (1, 1));
        assert_eq!((all.apart, all.changed, all.unknown), (1, 1, 1));
        assert!(all.examples.is_empty());
        all.judge(&frames, &frames[..2], false, || as_it_was(5));
        assert_eq!((all.walks, all.same, all.examples.len()), (2, 1, 1));
        // The other walk had more room.
        let cut = [frames[0], Frame::failed(Failure::Truncated)];
        all.judge(&cut, &frames, false, || unreachable!());
        assert_eq!((all.walks, all.same), (3, 2));
    }
}

//! One record: its words, and how to read them while they are being written.
//!
//! A record has two copies of the context and a sequence number. The lowest bit of that number
//! selects the valid copy. The writer is always the logical thread that owns the record: it fills
//! the other copy and then adds one to the number. So a signal handler on the same thread sees the
//! context before the change or after it, never half of each. A reader on another thread reads the
//! number again afterwards: if it is the same, the writer has not touched the copy that was read.
//!
//! The layout is shared with `java/api` (`Layout.java`).

use crate::sync::{AtomicU64, Ordering, fence};

/// Bytes of a record.
pub const RECORD_BYTES: usize = 256;
/// Words of a record.
pub const RECORD_WORDS: usize = RECORD_BYTES / 8;
/// Labels a context can have.
pub const LABELS_MAX: usize = 16;

/// Id of the logical thread; 0: free.
pub(crate) const ID: usize = 0;
/// The sequence number.
pub(crate) const SEQUENCE: usize = 1;
/// Number of this use of the record.
pub(crate) const GENERATION: usize = 2;
/// Number of holds (low half), and the next free record plus one (high half).
pub(crate) const HOLDS: usize = 3;
/// Offset of the first copy, in words.
pub(crate) const COPIES: usize = 4;
/// Words of a copy.
pub(crate) const COPY_WORDS: usize = 14;

const TRACE_HI: usize = 0;
const TRACE_LO: usize = 1;
const SPAN: usize = 2;
const LOCAL_ROOT: usize = 3;
/// Endpoint (low half), a bit for each label that is set (the next 16), and whether there is a
/// context (bit 63).
const STATE: usize = 4;
const ACTIVE: u64 = 1 << 63;
const LABELS: usize = 5;
const LABEL_WORDS: usize = LABELS_MAX / 2;

/// Maximum number of reads that changes by the owner may spoil before [`Record::read`] gives up.
const TRIES_MAX: usize = 16;

/// The context of a thread at one moment. All zero: no context was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Context {
    /// Upper half of the trace id.
    pub trace_hi: u64,
    /// Lower half of the trace id.
    pub trace_lo: u64,
    /// The span.
    pub span: u64,
    /// The first span of the trace in this process.
    pub local_root: u64,
    /// Number of the endpoint's text; 0: none.
    pub endpoint: u32,
    /// 1 if there is a context.
    pub active: u32,
    /// Numbers of the labels' values by label; 0: none.
    pub labels: [u32; LABELS_MAX],
}

impl Context {
    /// Whether there is a context.
    #[inline]
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.active != 0
    }
}

/// Offset of the copy that is valid at this sequence number, in words.
#[inline]
const fn copy_of(sequence: u64) -> usize {
    match sequence & 1 {
        0 => COPIES,
        _ => COPIES + COPY_WORDS,
    }
}

/// A record in memory.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    words: &'a [AtomicU64],
}

impl<'a> Record<'a> {
    /// The record in these words.
    #[inline]
    #[must_use]
    pub fn new(words: &'a [AtomicU64]) -> Option<Record<'a>> {
        words.get(..RECORD_WORDS).map(|words| Record { words })
    }

    #[inline]
    pub(crate) fn word(&self, at: usize) -> u64 {
        match self.words.get(at) {
            Some(word) => word.load(Ordering::Relaxed),
            None => 0,
        }
    }

    #[inline]
    pub(crate) fn atomic(&self, at: usize) -> Option<&'a AtomicU64> {
        self.words.get(at)
    }

    #[inline]
    pub(crate) fn set(&self, at: usize, value: u64, order: Ordering) {
        if let Some(word) = self.words.get(at) {
            word.store(value, order);
        }
    }

    /// Id of the logical thread that owns the record; 0: free.
    #[inline]
    #[must_use]
    pub fn id(&self) -> u64 {
        self.words
            .get(ID)
            .map_or(0, |word| word.load(Ordering::Acquire))
    }

    #[inline]
    fn sequence(&self) -> u64 {
        self.words
            .get(SEQUENCE)
            .map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// The context, for a caller that has interrupted the owner.
    #[inline]
    #[must_use]
    pub fn read_here(&self) -> Context {
        self.copy(self.sequence())
    }

    /// The context, from any thread; `None` if it changed during each attempt.
    #[inline]
    #[must_use]
    pub fn read(&self) -> Option<Context> {
        for _ in 0..TRIES_MAX {
            let before = self.sequence();
            let context = self.copy(before);
            fence(Ordering::Acquire);
            if self.word(SEQUENCE) == before {
                return Some(context);
            }
        }
        None
    }

    /// Whether there is a context, as seen from another thread without waiting.
    #[inline]
    #[must_use]
    pub fn has_context(&self) -> bool {
        let base = copy_of(self.sequence());
        self.word(base.wrapping_add(STATE)) & ACTIVE != 0
    }

    #[inline]
    fn copy(&self, sequence: u64) -> Context {
        let base = copy_of(sequence);
        let word = |at: usize| self.word(base.wrapping_add(at));
        let state = word(STATE);
        if state & ACTIVE == 0 {
            return Context::default();
        }
        let mut context = Context {
            trace_hi: word(TRACE_HI),
            trace_lo: word(TRACE_LO),
            span: word(SPAN),
            local_root: word(LOCAL_ROOT),
            endpoint: state as u32,
            active: 1,
            labels: [0; LABELS_MAX],
        };
        let used = (state >> 32) as u16;
        if used != 0 {
            for (number, label) in context.labels.iter_mut().enumerate() {
                if used & (1u16.wrapping_shl(number as u32)) != 0 {
                    let pair = word(LABELS.wrapping_add(number >> 1));
                    *label = (pair >> ((number as u32 & 1).wrapping_mul(32))) as u32;
                }
            }
        }
        context
    }

    /// Changes the context as `java/api` does, for tests and for native threads. Must run on the
    /// thread that owns the record.
    pub fn write(&self, context: &Context) {
        let next = self.word(SEQUENCE).wrapping_add(1);
        let base = copy_of(next);
        // A reader that sees a word of this change also sees the number of the change before,
        // which has made this copy invalid.
        fence(Ordering::Release);
        let set = |at: usize, value| self.set(base.wrapping_add(at), value, Ordering::Relaxed);
        set(TRACE_HI, context.trace_hi);
        set(TRACE_LO, context.trace_lo);
        set(SPAN, context.span);
        set(LOCAL_ROOT, context.local_root);
        let mut used = 0u64;
        for (number, pair) in context.labels.chunks_exact(2).take(LABEL_WORDS).enumerate() {
            let (low, high) = match pair {
                [low, high] => (*low, *high),
                _ => (0, 0),
            };
            let bits = u64::from(low != 0) | (u64::from(high != 0) << 1);
            used |= bits << ((number as u32).wrapping_mul(2));
            set(
                LABELS.wrapping_add(number),
                u64::from(low) | (u64::from(high) << 32),
            );
        }
        let active = if context.is_active() { ACTIVE } else { 0 };
        set(STATE, u64::from(context.endpoint) | (used << 32) | active);
        self.set(SEQUENCE, next, Ordering::Release);
    }

    /// Removes the context. No thread may be using the record.
    pub(crate) fn clear(&self) {
        for at in [SEQUENCE, COPIES + STATE, COPIES + COPY_WORDS + STATE] {
            self.set(at, 0, Ordering::Relaxed);
        }
    }
}

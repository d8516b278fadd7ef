//! What return addresses in compiled code stand for, remembered from walk to walk.
//!
//! Stacks repeat: the same return addresses lead to the same scopes and frame sizes. An entry is
//! valid as long as the same compilation is at the same place; compile ids are never reused.

use crate::frame::FrameKind;
use core::cell::Cell;

/// Scopes an entry holds; deeper inlining is not remembered.
pub const SCOPES_MAX: usize = 6;

/// What one return address stands for.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The return address; 0 if the entry is empty.
    pub pc: u64,
    /// The compiled method's blob.
    pub blob: u64,
    /// Its compile id when the entry was made.
    pub compile_id: u32,
    /// Its frame size.
    pub frame_bytes: u32,
    /// `Method*` and bci, innermost first.
    pub scopes: [(u64, i32); SCOPES_MAX],
    /// How many of them.
    pub len: u8,
    /// Kind of the outermost scope.
    pub tier: FrameKind,
}

impl Entry {
    /// No entry.
    pub const EMPTY: Entry = Entry {
        pc: 0,
        blob: 0,
        compile_id: 0,
        frame_bytes: 0,
        scopes: [(0, 0); SCOPES_MAX],
        len: 0,
        tier: FrameKind::C2,
    };
}

/// A direct-mapped cache in memory the caller provides. Not for several threads.
#[derive(Clone, Copy)]
pub struct PcCache<'a> {
    entries: &'a [Cell<Entry>],
}

impl<'a> PcCache<'a> {
    /// A cache in `entries`, best a power of two of them.
    #[must_use]
    pub fn new(entries: &'a [Cell<Entry>]) -> PcCache<'a> {
        PcCache { entries }
    }

    fn place(&self, pc: u64) -> Option<&'a Cell<Entry>> {
        let mixed = pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let len = self.entries.len() as u64;
        self.entries.get((mixed % len.max(1)) as usize)
    }

    /// The entry of `pc`, still to be checked against the compile id.
    #[must_use]
    pub fn get(&self, pc: u64) -> Option<Entry> {
        self.place(pc)
            .map(Cell::get)
            .filter(|entry| entry.pc == pc && pc != 0)
    }

    /// Remembers an entry.
    pub fn put(&self, entry: Entry) {
        if let Some(place) = self.place(entry.pc) {
            place.set(entry);
        }
    }
}

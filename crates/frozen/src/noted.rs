//! Notes each read of a walk.

use crate::NativePc;
use dwell_walker::native::{NativeCode, Rule};
use dwell_walker::{Fault, Memory};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Maximum number of noted words: far more than any walk of real depth reads.
const WORDS_MAX: usize = 1 << 20;

/// A memory and a map of native code that note each request.
pub struct Recorder<'a, M: Memory, N: NativeCode> {
    mem: &'a M,
    native: &'a N,
    words: RefCell<BTreeMap<u64, Option<u64>>>,
    pcs: RefCell<BTreeMap<u64, NativePc>>,
}

impl<'a, M: Memory, N: NativeCode> Recorder<'a, M, N> {
    /// A recorder in front of `mem` and `native`.
    pub fn new(mem: &'a M, native: &'a N) -> Self {
        Recorder {
            mem,
            native,
            words: RefCell::default(),
            pcs: RefCell::default(),
        }
    }

    /// The noted words and native addresses.
    #[must_use]
    pub fn into_parts(self) -> (BTreeMap<u64, Option<u64>>, BTreeMap<u64, NativePc>) {
        (self.words.into_inner(), self.pcs.into_inner())
    }

    fn note(&self, aligned: u64) {
        let mut words = self.words.borrow_mut();
        if words.len() < WORDS_MAX {
            words
                .entry(aligned)
                .or_insert_with(|| self.mem.word(aligned).ok());
        }
    }

    fn note_range(&self, addr: u64, len: u64) {
        let mut at = addr & !7;
        while at < addr.saturating_add(len) {
            self.note(at);
            at = at.saturating_add(8);
        }
    }
}

impl<M: Memory, N: NativeCode> Memory for Recorder<'_, M, N> {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        self.note_range(addr, 8);
        self.mem.word(addr)
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        self.note_range(addr, buf.len() as u64);
        self.mem.read(addr, buf)
    }
}

impl<M: Memory, N: NativeCode> NativeCode for Recorder<'_, M, N> {
    fn rule(&self, pc: u64) -> Option<Rule> {
        let rule = self.native.rule(pc);
        let is_vm = self.native.is_vm(pc);
        let note = NativePc {
            rule: rule.map(Rule::encode),
            is_vm,
        };
        self.pcs.borrow_mut().insert(pc, note);
        rule
    }

    fn is_vm(&self, pc: u64) -> bool {
        self.native.is_vm(pc)
    }
}

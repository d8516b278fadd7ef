//! What only benches and tests of the walker ask for; not in a library that is given away.

use dwell_walker::{Failure, Fault, Frame, Memory};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is tried out in a recording.
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
}

/// Whether loads of walks shall fail.
static FAULTS: AtomicBool = AtomicBool::new(false);
static WALKS: AtomicU64 = AtomicU64::new(0);

/// Makes a load of each walk fail, or none.
pub fn set_faults(on: bool) {
    FAULTS.store(on, Ordering::Relaxed);
}

/// Walks so far in which a load was to fail.
#[must_use]
pub fn faulty_walks() -> u64 {
    WALKS.load(Ordering::Relaxed)
}

/// Addresses that cannot be read: unmapped, the kernel's, and not canonical (for which the
/// processor names no address).
const BAD: [u64; 3] = [0x10, 0xffff_ffff_8000_0000, 0xdead_0000_0000_0000];

/// Which load of the walks in turn fails, at most: nearly all walks of 60 frames have as many, even
/// where return addresses are remembered.
const LOADS: u64 = 160;

/// Memory of which, if that is asked for, the k-th load goes wrong, with another k for each walk.
pub struct Faulty<M> {
    inner: M,
    bad: u64,
    left: Cell<u64>,
}

impl<M: Memory> Faulty<M> {
    /// For one walk.
    pub fn new(inner: M) -> Faulty<M> {
        let mut faulty = Faulty {
            inner,
            bad: 0,
            left: Cell::new(0),
        };
        if FAULTS.load(Ordering::Relaxed) {
            let walk = WALKS.fetch_add(1, Ordering::Relaxed);
            faulty.left.set(1 + walk % LOADS);
            faulty.bad = BAD.get((walk % 3) as usize).copied().unwrap_or(0);
        }
        faulty
    }

    fn place(&self, addr: u64) -> u64 {
        match self.left.get() {
            0 => addr,
            left => {
                self.left.set(left - 1);
                if left == 1 { self.bad } else { addr }
            }
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

/// How walks from copies compare with those in the handler.
#[derive(Default)]
pub struct Comparison {
    /// Samples walked both ways.
    pub walks: u64,
    /// Of these, with the same frames.
    pub same: u64,
    /// The first few differences.
    pub examples: Vec<String>,
}

impl Comparison {
    /// Compares one sample.
    pub fn add(&mut self, here: &[Frame], copy: &[Frame]) {
        self.walks += 1;
        // There is less room for frames behind a copied stack than for the other walk.
        let (here, was_cut) = match here.split_last() {
            Some((last, rest)) if *last == Frame::failed(Failure::Truncated) => (rest, true),
            _ => (here, false),
        };
        let cut = here.len();
        let copy = copy.get(..cut).filter(|_| was_cut).unwrap_or(copy);
        if here == copy {
            self.same += 1;
        } else if self.examples.len() < 10 {
            let at = here.iter().zip(copy).take_while(|(a, b)| a == b).count();
            let (a, b) = (here.get(at), copy.get(at));
            let lens = (here.len(), copy.len());
            self.examples
                .push(format!("frame {at} of {lens:?}: {a:x?} against {b:x?}"));
        }
    }
}

impl Drop for Comparison {
    fn drop(&mut self) {
        if self.walks > 0 {
            eprintln!(
                "dwell experiment: compared {} same {}",
                self.walks, self.same
            );
            for example in &self.examples {
                eprintln!("dwell experiment: {example}");
            }
        }
    }
}

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

/// Loads of the last walk that was left alone: the bad ones are spread over as many.
static LOADS: AtomicU64 = AtomicU64::new(100);
/// One walk in so many is left alone.
const LEFT_ALONE: u64 = 8;

/// Loads that went wrong.
static BAD_LOADS: AtomicU64 = AtomicU64::new(0);

/// Memory of which, if that is asked for, the k-th load goes wrong, with another k for each walk.
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
            if walk % LEFT_ALONE == 0 {
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

/// How walks from copies compare with those in the handler.
#[derive(Default)]
pub struct Comparison {
    /// Samples walked both ways.
    pub walks: u64,
    /// Of these, with the same frames.
    pub same: u64,
    /// Not compared: libraries came or went between the two walks.
    pub apart: u64,
    /// The first few differences.
    pub examples: Vec<String>,
}

impl Comparison {
    /// Compares one sample. The walk in the handler may have known other libraries if the map
    /// `moved` meanwhile.
    pub fn add(&mut self, here: &[Frame], copy: &[Frame], moved: bool) {
        if moved {
            self.apart += 1;
            return;
        }
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
        let bad_loads = BAD_LOADS.load(Ordering::Relaxed);
        if bad_loads > 0 {
            eprintln!("dwell experiment: bad loads {bad_loads}");
        }
        if self.walks > 0 {
            eprintln!(
                "dwell experiment: compared {} same {}",
                self.walks, self.same
            );
            eprintln!("dwell experiment: not compared {}", self.apart);
            for example in &self.examples {
                eprintln!("dwell experiment: {example}");
            }
        }
    }
}

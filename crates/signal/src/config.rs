//! The agent's configuration of this crate at start-up. Plain data; must not do anything.

use crate::load::Live;
use crate::sys::{self, Errno};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use dwell_walker::Memory;

/// How threads are signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// `perf_event_open` cpu-clock: exact to some 100 us; a file descriptor per thread. Threads
    /// that cannot get an event get a timer.
    Perf {
        /// Sample while in the kernel as well, with its call chain, if that is permitted.
        kernel: bool,
    },
    /// POSIX timers on the threads' CPU clocks: always permitted; expire on the kernel's tick.
    Timer,
}

/// A size class of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassSpec {
    /// Stack bytes (and copied heap chunk bytes) that a slot of the class holds.
    pub capacity_bytes: usize,
    /// How many slots.
    pub count: u32,
}

/// Most size classes there can be.
pub const CLASSES_MAX: usize = 5;

/// How to set up the engine.
#[derive(Clone, Copy, Debug)]
pub struct Config<'a> {
    /// The signal to use; `None` picks an unused one ([`pick_signal`]).
    pub signal: Option<i32>,
    /// How threads are signalled.
    pub engine: EngineKind,
    /// Size classes of slots, smallest first; at most [`CLASSES_MAX`].
    pub classes: &'a [ClassSpec],
    /// Whether handlers run on a thread's alternate stack, if it has one. Some runtimes (Go) have
    /// such small ordinary stacks that a handler must not run there. Others treat a thread on its
    /// alternate stack as one that must not be stopped yet.
    pub on_alternate_stack: bool,
    /// Signals that wait until our handler has returned, as the kernel's set. Their handlers must
    /// not run inside functions that our handler calls. SIGSEGV and SIGBUS must not be among them.
    pub blocked: u64,
    /// Whether the engine must keep its signal even if another handler replaces ours
    /// ([`move_if_replaced`](crate::move_if_replaced)): the runtime's handlers block it.
    pub keeps_signal: bool,
}

/// Good for most programs: 98.7 to 100 % of the stacks measured fit into 64 KiB. Only copied bytes
/// take memory, and slots used last are used first.
pub const DEFAULT_CLASSES: [ClassSpec; 5] = [
    ClassSpec {
        capacity_bytes: 24 << 10,
        count: 1024,
    },
    ClassSpec {
        capacity_bytes: 80 << 10,
        count: 512,
    },
    ClassSpec {
        capacity_bytes: 256 << 10,
        count: 256,
    },
    ClassSpec {
        capacity_bytes: 1 << 20,
        count: 128,
    },
    ClassSpec {
        capacity_bytes: 4 << 20,
        count: 16,
    },
];

impl Default for Config<'_> {
    fn default() -> Self {
        Self {
            signal: None,
            engine: EngineKind::Perf { kernel: true },
            classes: &DEFAULT_CLASSES,
            on_alternate_stack: true,
            blocked: 0,
            keeps_signal: false,
        }
    }
}

/// An offset that is not known.
const UNKNOWN: u32 = u32::MAX;

/// The words of a runtime's memory that the handler reads. Some are copied from the runtime's own
/// structure of the thread ([`ThreadRecord::managed_thread`]), because they change when the thread
/// continues. Unknown until set. The agent may set them while signals arrive, once it knows the
/// runtime's layout.
///
/// [`ThreadRecord::managed_thread`]: crate::ThreadRecord::managed_thread
#[derive(Debug)]
pub struct Words {
    anchor_sp: AtomicU32,
    anchor_pc: AtomicU32,
    anchor_fp: AtomicU32,
    word: AtomicU32,
    mounted: AtomicU32,
    ending: AtomicU64,
}

impl Words {
    pub(crate) const fn new() -> Self {
        Self {
            anchor_sp: AtomicU32::new(UNKNOWN),
            anchor_pc: AtomicU32::new(UNKNOWN),
            anchor_fp: AtomicU32::new(UNKNOWN),
            word: AtomicU32::new(UNKNOWN),
            mounted: AtomicU32::new(UNKNOWN),
            ending: AtomicU64::new(0),
        }
    }

    /// Address of a word that is -1 until the runtime has found that it must end the process. From
    /// then on no snapshot is taken. Other handlers may have taken over our SIGSEGV by then, and
    /// put every thread that enters them to sleep, together with its locks.
    pub fn set_ending(&self, addr: u64) {
        self.ending.store(addr, Ordering::Relaxed);
    }

    /// Whether the runtime is about to end the process, as far as is known.
    #[inline]
    pub(crate) fn is_ending(&self, live: &Live) -> bool {
        let addr = self.ending.load(Ordering::Relaxed);
        addr != 0 && live.word(addr).is_ok_and(|word| word != u64::MAX)
    }

    /// Offsets, from the thread's structure, of the three words of its anchor: sp, pc and fp of
    /// the managed frame from which it has called the runtime's own code.
    pub fn set_anchor(&self, sp: u32, pc: u32, fp: u32) {
        self.anchor_sp.store(sp, Ordering::Relaxed);
        self.anchor_pc.store(pc, Ordering::Relaxed);
        self.anchor_fp.store(fp, Ordering::Relaxed);
    }

    /// Offset, from the thread's structure, of a word that only the runtime's walks understand.
    pub fn set_word(&self, offset: u32) {
        self.word.store(offset, Ordering::Relaxed);
    }

    /// Offset, from the thread's structure, of a word that is not 0 while a logical thread is
    /// mounted.
    pub fn set_mounted(&self, offset: u32) {
        self.mounted.store(offset, Ordering::Relaxed);
    }

    pub(crate) fn mounted(&self) -> Option<u64> {
        known(&self.mounted)
    }

    pub(crate) fn word(&self) -> Option<u64> {
        known(&self.word)
    }

    pub(crate) fn anchor(&self) -> [Option<u64>; 3] {
        [
            known(&self.anchor_sp),
            known(&self.anchor_pc),
            known(&self.anchor_fp),
        ]
    }
}

fn known(offset: &AtomicU32) -> Option<u64> {
    let offset = offset.load(Ordering::Relaxed);
    (offset != UNKNOWN).then_some(u64::from(offset))
}

/// Picks an unused signal.
///
/// For perf events that is SIGURG, if it has no handler. An event can send its signal during
/// `execve`, and the signal stays pending for the new program, which has no handler for it: a
/// real-time signal would end that program, and the kernel drops SIGURG. Of a timer's signals the
/// kernel drops those that are pending.
///
/// Else it is a real-time signal, from the second highest downwards: libraries that want one tend
/// to take the lowest, and debuggers the highest.
///
/// # Errors
/// `EAGAIN` if all are in use.
pub fn pick_signal(engine: EngineKind) -> Result<i32, Errno> {
    let is_unhandled = matches!(handler(libc::SIGURG), Ok(libc::SIG_DFL | libc::SIG_IGN));
    if matches!(engine, EngineKind::Perf { .. }) && is_unhandled {
        return Ok(libc::SIGURG);
    }
    pick_real_time()
}

fn handler(signal: i32) -> Result<usize, Errno> {
    sys::sigaction(signal, None).map(|action| action.handler)
}

/// Picks an unused real-time signal that timers of the calling thread may send. An emulator of
/// programs (qemu) keeps some signals for itself, and refuses timers that send them.
pub(crate) fn pick_real_time() -> Result<i32, Errno> {
    highest(|signal| handler(signal) == Ok(libc::SIG_DFL) && !is_refused(signal))
}

fn highest(is_usable: impl Fn(i32) -> bool) -> Result<i32, Errno> {
    const FIRST: i32 = 63;
    const LAST: i32 = 35; // the C library reserves those below
    (LAST..=FIRST)
        .rev()
        .find(|signal| is_usable(*signal))
        .ok_or(Errno(libc::EAGAIN))
}

/// Whether no timer can send the signal, whatever its other arguments are. Any other error, such as
/// a full queue of signals, says nothing about the signal.
#[inline(never)]
fn is_refused(signal: i32) -> bool {
    let timer = sys::timer_create(sys::gettid(), signal, 0);
    if let Ok(timer) = timer {
        sys::timer_delete(timer);
    }
    timer == Err(Errno(libc::EINVAL))
}

/// Whether the kernel keeps only one such signal pending for a thread. This holds for all but
/// real-time signals, and for all senders but timers.
#[inline]
pub(crate) const fn merges(signal: i32) -> bool {
    const FIRST_REAL_TIME: i32 = 32;
    signal < FIRST_REAL_TIME
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_is_highest_usable_one() {
        assert_eq!(highest(|_| true), Ok(63));
        assert_eq!(highest(|signal| signal < 62), Ok(61));
        assert_eq!(highest(|signal| signal == 35), Ok(35));
        assert_eq!(highest(|signal| signal == 34), Err(Errno(libc::EAGAIN)));
    }

    #[test]
    fn signal_is_refused_only_if_timers_cannot_send_it() {
        assert!(is_refused(65)); // there is no such signal
        assert!(!is_refused(40));
        let signal = pick_real_time().expect("a free signal");
        let timer = sys::timer_create(sys::gettid(), signal, 0).expect("a timer with the signal");
        sys::timer_delete(timer);
    }
}

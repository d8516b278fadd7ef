//! The boundary between a recording and the managed runtime in its process.
//!
//! A runtime is one type that implements [`Runtime`], and names three more: one on the drainer's
//! thread that walks and names ([`Walks`]), one on the wall-clock sampler's thread that samples
//! waiting threads ([`Looks`]), and one that watches the runtime while a recording lasts
//! ([`Watch`]). All of them are chosen at compile time, once per agent. There are no calls through
//! a table, so `xtask handler-graph` can follow the code in handlers.
//!
//! # Where what runs, and by which rule
//!
//! - **In the signal handler**, on the sampled thread: the hooks that the runtime gave the engine
//!   ([`Engine::set_extra`], [`Engine::set_walk`]). Nothing is allocated, locked or resolved
//!   lazily, and nothing panics; memory is read through [`Live`] only; loops are bounded. The
//!   hooks' symbols begin with `dwell_` and end with `_hook`, so that `handler-graph` finds them.
//!   A runtime whose walks need its own protection takes it in there.
//! - **A thread of ours for which the sampled one waits**: [`Runtime::server`]. The same rule, as
//!   the waiting thread may hold any lock.
//! - **The drainer**: [`Walks`]. The thread is not known to the runtime and calls none of its
//!   functions, so it works while the runtime stands still, hangs or collects.
//! - **The wall-clock sampler**: [`Looks`]. The same; and no thread is signalled, stopped or woken
//!   for a sample.
//! - **Threads of the runtime's side**: [`Watch`]. As the drainer.
//! - **The thread that asks for a recording**, which the runtime knows: [`Runtime::about`],
//!   [`Runtime::vantage`], and the closures given to [`Recorder::start`] and [`Recorder::stop`].
//!   May call the runtime: the only lock of ours that is held is the session's, and no report
//!   below waits for it.
//! - **The runtime's callbacks**, on its threads: the reports below. They take short locks, under
//!   which the runtime is never called.
//!
//! # What a runtime reports
//!
//! Threads that begin, end or are renamed ([`Recorder::saw`], [`Recorder::own_thread_ends`],
//! [`ThreadTable::rename`](crate::threads::ThreadTable::rename)); pauses of its collector
//! ([`Recorder::pause_begins`], [`Recorder::pause_ends`]), at whose beginning samples are walked
//! that could not be later; stops of all threads, with the late ones
//! ([`Shelf::add`](crate::stops::Shelf::add)). Code is not reported: a runtime names the frames of
//! its walks from its own notes.
//!
//! The census finds threads that are not reported, and samples them as native ones.
//!
//! [`Engine::set_extra`]: dwell_signal::Engine::set_extra
//! [`Engine::set_walk`]: dwell_signal::Engine::set_walk
//! [`Live`]: dwell_signal::Live
//! [`Recorder::start`]: crate::recorder::Recorder::start
//! [`Recorder::saw`]: crate::recorder::Recorder::saw
//! [`Recorder::own_thread_ends`]: crate::recorder::Recorder::own_thread_ends
//! [`Recorder::pause_begins`]: crate::recorder::Recorder::pause_begins
//! [`Recorder::pause_ends`]: crate::recorder::Recorder::pause_ends

pub mod process_wide;
pub mod progress;
pub mod setup;

use crate::looks::off::{Off, Waiting};
use crate::looks::threads::{Holder, Threads};
use crate::looks::unmounted::{Found, Unmounted};
use crate::native::Modules;
use crate::record::names::{NameId, Names};
use crate::runtime::progress::Progress;
use crate::runtime::setup::Setup;
use crate::stops;
use dwell_context::Context;
use dwell_jfr::writer::Event;
use dwell_signal::{Slot, ThreadRecord, Vantage};
use dwell_walker::native::NativeCode;
use dwell_walker::{Frame, Walk};
use dwell_wall::budget::Budget;
use dwell_wall::random::Random;
use dwell_wall::waits::Waits;
use dwell_wallclock::Fingerprint;
use std::fmt::Debug;
use std::sync::Arc;

/// A managed runtime: made once per process, and never freed.
pub trait Runtime: Send + Sync + Sized + 'static {
    /// The word for a process with this runtime in messages to the user.
    const PROCESS: &'static str;
    /// Whether the copy of a stack can be walked later. If not, stacks are walked in the handler
    /// from the first sample on, even while less is known of the process than later.
    const WALKS_COPIES: bool = true;
    /// Whether samples can be named as long as the recording lasts: stacks are walked in the
    /// handler, and the runtime keeps names of code that is freed. Then samples need not be
    /// drained quickly.
    const KEEPS_SAMPLES: bool = false;
    /// Whether the pages that show threads' turns are mapped, one for each sampled thread. If not,
    /// CPU clocks are read.
    const MAPS_TURNS: bool = true;

    /// Whether it reports allocated objects on request
    /// ([`Engine::allocated`](dwell_signal::Engine::allocated)).
    const TELLS_ALLOCATIONS: bool = false;

    /// Whether it reports waits for monitors on request
    /// ([`Engine::waited`](dwell_signal::Engine::waited)).
    const TELLS_WAITS: bool = false;

    /// The meaning of its functions and methods, and of common libraries, for a thread that waits
    /// in them. For a runtime without names, the kernel shows what threads wait for, and samples
    /// show monitors.
    const WAITS: &'static Waits = &Waits::NONE;

    /// Walks stacks and names frames, on the drainer's thread.
    type Walks: Walks<Self>;
    /// Samples waiting threads, on the wall-clock sampler's thread.
    type Looks: Looks<Self>;
    /// Watches the runtime during a recording.
    type Watch: Watch<Self>;
    /// Data that these share during one recording.
    type Shared: Default + Send + Sync;

    /// The runtime's description in the file. On the thread that asks for a recording.
    fn about(&self) -> About;

    /// Whether the library with this file name is the runtime's own: its code is marked as such.
    fn is_own_library(name: &str) -> bool;

    /// Whether the library with this file name holds managed methods, compiled ahead of time. The
    /// runtime walks through these without unwind rules: handlers never ask for the library's
    /// rules.
    fn is_ahead_of_time(_name: &str) -> bool {
        false
    }

    /// Where stacks are walked if `asked` is requested: not each runtime can walk everywhere.
    fn vantage(&self, asked: Vantage) -> Vantage {
        asked
    }

    /// Whether enough is known by now to walk waiting threads; the drainer publishes it when it
    /// begins ([`Walks::publish`]).
    fn can_walk(&self) -> bool;

    /// The work of the thread that walks others while they wait ([`Vantage::Paused`]): returns
    /// after [`Engine::end_serving`](dwell_signal::Engine::end_serving).
    fn server(&self) -> impl FnOnce() + Send + 'static;

    /// A platform thread's name, if it may differ from the name when `mark` was set. `mark` is
    /// replaced: a number that distinguishes names, 0 at first. On any thread.
    fn renamed(&self, record: &ThreadRecord, mark: &mut u64) -> Option<String>;
}

/// The description of a runtime in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Changes before a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// New facts about the runtime are known: [`Walks::publish`] is due.
    pub has_new: bool,
    /// Earlier walks and names may not hold any more: code or methods may have been freed since.
    pub is_another_moment: bool,
}

/// The name of a managed frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The method.
    pub name: NameId,
    /// Line of the source, -1 if unknown.
    pub line: i32,
    /// Index in the bytecode, -1 if unknown.
    pub bci: i32,
}

/// Walks and names; made for each recording, and never leaves the drainer's thread.
pub trait Walks<R: Runtime>: Sized {
    /// For a recording that begins.
    fn new(setup: &Setup<R>) -> Self;

    /// A drain begins; `moved`: libraries were loaded or unloaded since the last one.
    fn begin(&mut self, moved: bool) -> Changes;

    /// Publishes the present libraries for walks of threads that stand still.
    fn publish(&self, modules: &Modules);

    /// Walks the copy of a stack into `frames`, through native code by its rules. It is also
    /// called if a handler was to walk and could not. A runtime that cannot walk copies answers
    /// with a failure.
    fn walk<N: NativeCode>(&mut self, slot: &Slot<'_>, native: &N, frames: &mut [Frame]) -> Walk;

    /// Names a managed frame; `None` if its method has been freed. A named frame is not asked for
    /// again until [`Changes::is_another_moment`].
    fn name(&mut self, frame: &Frame, names: &mut Names) -> Option<Named>;

    /// Names code of the runtime that belongs to no method and to no library.
    fn stub(&mut self, pc: u64, names: &mut Names) -> NameId;

    /// The names of a chunk are forgotten: earlier ids are not valid any more.
    fn forget_names(&mut self);

    /// A flush: the runtime moves its counts to the queue of stops. The last flush ends the
    /// recording.
    fn flush(&mut self, _shelf: &stops::Shelf, _is_last: bool) {}

    /// About once a second: reports the runtime's activity since the last call.
    fn account(&mut self, _tell: &mut dyn FnMut(&Event<'_>)) {}
}

/// Samples waiting threads; made for each recording, and never leaves the wall-clock sampler's
/// thread. The caller makes sure that a sample of a running thread counts only if its CPU clock
/// has not moved during it. `frames` need not be filled: then only causes are reported, not
/// places.
///
/// `thread` is a platform thread, by [`ThreadRecord::managed_thread`].
pub trait Looks<R: Runtime>: Sized {
    /// The object that a thread waits for and that another one may own, and its owner: equal as
    /// long as both are.
    type Claim: Copy + PartialEq + Debug;

    /// Whether threads have fingerprints.
    const HAS_FINGERPRINTS: bool = false;

    /// For a recording that begins.
    fn new(setup: &Setup<R>) -> Self;

    /// Samples a waiting thread: `frames` get its stack.
    fn look(
        &self,
        record: &ThreadRecord,
        at: Waiting,
        frames: &mut [Frame],
    ) -> (Off, Option<Self::Claim>);

    /// The fingerprint of a thread's place, and the logical thread that is mounted on it; `None` if
    /// it cannot be read.
    fn fingerprint(&self, _record: &ThreadRecord) -> Option<(Fingerprint, Option<u64>)> {
        None
    }

    /// Prefetches the memory that [`Self::fingerprint`] reads.
    fn fetch_fingerprint(&self, _record: &ThreadRecord) {}

    /// Walks a waiting thread whose sp and pc are `registers`.
    fn walk(
        &self,
        record: &ThreadRecord,
        registers: (u64, u64),
        frames: &mut [Frame],
    ) -> Option<Walk>;

    /// Whether the awaited object still has the same owner.
    fn is_still(&self, record: &ThreadRecord, claim: &Self::Claim) -> bool;

    /// The owner of the awaited object.
    fn holder(&self, claim: &Self::Claim, threads: &Threads) -> Option<Holder>;

    /// The id of the logical thread that runs, or waits, on a platform thread; `None` if that is
    /// its own.
    fn mounted(&self, thread: u64) -> Option<u64>;

    /// The name of the logical thread on a platform thread.
    fn name_of_mounted(&self, thread: u64) -> Option<Box<str>>;

    /// The context that another library has published on a platform thread (see
    /// [`crate::context::foreign`]), unless a logical thread of its own is on it.
    fn published(&self, thread: u64) -> Option<Context>;

    /// Whether the runtime has logical threads without a platform thread, and can find them.
    fn has_unmounted(&self) -> bool {
        false
    }

    /// Samples some of these within a part of `budget`, and reports them. Returns the results, and
    /// how many places were read for them, which is what the budget counts.
    fn look_at_unmounted(
        &mut self,
        _at: &Unmounted<'_, Self, Self::Claim>,
        _budget: &Budget,
        _random: &mut Random,
    ) -> (Found, usize) {
        (Found::default(), 0)
    }

    /// Called at each tick, when the sampler is about to sleep for `next_ns`: a chance for further
    /// checks without waking a thread of their own.
    fn beside(&self, _shared: &R::Shared, _now_ns: u64, _next_ns: u64) {}
}

/// The runtime's watchers while a recording lasts, on threads of its own.
pub trait Watch<R: Runtime>: Sized + Send {
    /// Begins; `None` if there is nothing to watch. A part that does not work is reported as
    /// trouble: the other parts of the recording are not affected.
    fn start(setup: &Arc<Setup<R>>, progress: &Arc<Progress>) -> Option<Self>;

    /// Ends it; its results are queued for the drainer then.
    fn end(self);
}

/// A runtime without watchers.
#[derive(Debug)]
pub struct Nothing;

impl<R: Runtime> Watch<R> for Nothing {
    fn start(_: &Arc<Setup<R>>, _: &Arc<Progress>) -> Option<Nothing> {
        None
    }

    fn end(self) {}
}

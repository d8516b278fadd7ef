//! The boundary: what a recording needs of the managed runtime in its process.
//!
//! A runtime is one type that implements [`Runtime`], and names three more: one that lives on the
//! drainer's thread and walks and names ([`Walks`]), one that lives on the wall-clock sampler's and
//! looks at threads that wait ([`Looks`]), and what it watches by itself while a recording lasts
//! ([`Watch`]). All of it is chosen at compile time, once per agent: nothing is called through a
//! table, and what runs in a handler can be followed by `xtask handler-graph`.
//!
//! # Where what runs, and by which rule
//!
//! - **In the signal handler**, on the sampled thread: the hooks that the runtime gave the engine
//!   ([`Engine::set_extra`], [`Engine::set_walk`]). Nothing is allocated, locked or resolved
//!   lazily, and nothing panics; memory is read through [`Live`] only; loops are bounded. The
//!   hooks' symbols begin with `dwell_` and end with `_hook`, so that `handler-graph` finds them.
//!   A runtime whose walks need its own protection takes it in there.
//! - **A thread of ours for which the sampled one waits**: [`Runtime::server`]. The same rule: who
//!   waits may have any lock.
//! - **The drainer**: [`Walks`]. The thread is not known to the runtime and calls nothing of it, so
//!   it works while the runtime stands still, hangs or collects.
//! - **The wall-clock sampler**: [`Looks`]. The same; and nobody is signalled, stopped or woken for
//!   a look.
//! - **Threads of the runtime's side**: [`Watch`]. As the drainer.
//! - **The thread that asks for a recording**, which the runtime knows: [`Runtime::about`],
//!   [`Runtime::vantage`], and what [`Recorder::start`] and [`Recorder::stop`] are given. May call
//!   the runtime: of our locks only the session's is held, which no report below waits for.
//! - **The runtime's callbacks**, on its threads: the reports below. They take short locks, under
//!   which the runtime is never called.
//!
//! # What a runtime reports
//!
//! Threads that begin, end or are renamed ([`Recorder::saw`], [`Recorder::own_thread_ends`],
//! [`ThreadTable::rename`](crate::threads::ThreadTable::rename)); pauses of its collector
//! ([`Recorder::pause_begins`], [`Recorder::pause_ends`]), at whose beginning samples are walked
//! that could not be later; stops of all threads, with who was late
//! ([`Shelf::add`](crate::stops::Shelf::add)). Code is not reported: a runtime names what it
//! walked, from what it has noted itself.
//!
//! A thread that nobody reports is found by the census and sampled as a native one.
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
    /// What a process with this runtime is called in messages to the user.
    const PROCESS: &'static str;
    /// Whether the copy of a stack can be walked later. If not, stacks are walked in the handler
    /// from the first sample on, even while less is known of the process than later.
    const WALKS_COPIES: bool = true;
    /// Whether what a sample says can be named as long as the recording lasts: stacks are walked in
    /// the handler, and the runtime keeps names of code that goes away. Then nobody need hurry to
    /// look at samples.
    const KEEPS_SAMPLES: bool = false;
    /// Whether the pages that tell threads' turns are mapped, one for each thread that is looked
    /// at. If not, CPU clocks are asked.
    const MAPS_TURNS: bool = true;

    /// Whether it tells of objects that are allocated, if it is asked to
    /// ([`Engine::allocated`](dwell_signal::Engine::allocated)).
    const TELLS_ALLOCATIONS: bool = false;

    /// Whether it tells of waits for monitors, if it is asked to
    /// ([`Engine::waited`](dwell_signal::Engine::waited)).
    const TELLS_WAITS: bool = false;

    /// What names of its functions and methods, and of what is written for it, say of a thread that
    /// waits in them. Of a runtime that has none the kernel tells what threads wait for, and what
    /// looks say of monitors.
    const WAITS: &'static Waits = &Waits::NONE;

    /// Walks stacks and names frames, on the drainer's thread.
    type Walks: Walks<Self>;
    /// Looks at threads that wait, on the wall-clock sampler's thread.
    type Looks: Looks<Self>;
    /// What is watched beside.
    type Watch: Watch<Self>;
    /// What these share during one recording.
    type Shared: Default + Send + Sync;

    /// What the file says of the runtime. On the thread that asks for a recording.
    fn about(&self) -> About;

    /// Whether the library with this file name is the runtime's own: its code is told apart.
    fn is_own_library(name: &str) -> bool;

    /// Whether the library with this file name holds managed methods, compiled ahead of time. The
    /// runtime walks through these by itself: handlers never ask for the library's unwind rules.
    fn is_ahead_of_time(_name: &str) -> bool {
        false
    }

    /// From where stacks are walked if it is asked to be from `asked`: not each runtime can walk
    /// from everywhere.
    fn vantage(&self, asked: Vantage) -> Vantage {
        asked
    }

    /// Whether enough is known by now to walk threads that wait; the drainer makes it known when it
    /// begins ([`Walks::publish`]).
    fn can_walk(&self) -> bool;

    /// What the thread does that walks others while they wait ([`Vantage::Paused`]): returns after
    /// [`Engine::end_serving`](dwell_signal::Engine::end_serving).
    fn server(&self) -> impl FnOnce() + Send + 'static;

    /// What a platform thread is called, if that may be another name than when `mark` was set,
    /// which is replaced: a number that tells names apart, 0 at first. On any thread.
    fn renamed(&self, record: &ThreadRecord, mark: &mut u64) -> Option<String>;
}

/// What the file says of a runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What changed before a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// More is known of the runtime: [`Walks::publish`] is due.
    pub has_new: bool,
    /// What was walked and named before may not hold any more: code or methods may have gone since.
    pub is_another_moment: bool,
}

/// What a managed frame is called.
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

    /// A drain begins; `moved`: libraries came or went since the last one.
    fn begin(&mut self, moved: bool) -> Changes;

    /// Lets walks of threads that stand still use what is known by now.
    fn publish(&self, modules: &Modules);

    /// Walks the copy of a stack into `frames`, through native code by its rules. It is asked also
    /// where a handler was to walk and could not: who cannot walk copies answers with a failure.
    fn walk<N: NativeCode>(&mut self, slot: &Slot<'_>, native: &N, frames: &mut [Frame]) -> Walk;

    /// Names a managed frame; `None` if its method is gone. What was named is not asked for again
    /// until [`Changes::is_another_moment`].
    fn name(&mut self, frame: &Frame, names: &mut Names) -> Option<Named>;

    /// Names code of the runtime's that is no method's and in no library.
    fn stub(&mut self, pc: u64, names: &mut Names) -> NameId;

    /// The names of a chunk are forgotten: ids given out before are no more.
    fn forget_names(&mut self);

    /// A flush: what the runtime only counts is put on the shelf of stops. The last one ends the
    /// recording.
    fn flush(&mut self, _shelf: &stops::Shelf, _is_last: bool) {}

    /// About once a second: tells what the runtime did since the last time.
    fn account(&mut self, _tell: &mut dyn FnMut(&Event<'_>)) {}
}

/// Looks at threads that wait; made for each recording, and never leaves the wall-clock sampler's
/// thread. Of a thread that may run on, what is read counts only if its CPU clock has not moved
/// meanwhile: the caller sees to that.
/// `frames` need not be filled: then only causes are told, not places.
///
/// `thread` is a platform thread, by [`ThreadRecord::managed_thread`].
pub trait Looks<R: Runtime>: Sized {
    /// What a thread waits for that another one may have, and who has it: equal as long as both
    /// are.
    type Claim: Copy + PartialEq + Debug;

    /// Whether threads have fingerprints.
    const HAS_FINGERPRINTS: bool = false;

    /// For a recording that begins.
    fn new(setup: &Setup<R>) -> Self;

    /// What a thread waits for, and where: `frames` get its stack.
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

    /// Has the processor fetch the memory that [`Self::fingerprint`] reads.
    fn fetch_fingerprint(&self, _record: &ThreadRecord) {}

    /// Walks a thread that waits, of which sp and pc are `registers`.
    fn walk(
        &self,
        record: &ThreadRecord,
        registers: (u64, u64),
        frames: &mut [Frame],
    ) -> Option<Walk>;

    /// Whether what the thread waits for is still had by the same one.
    fn is_still(&self, record: &ThreadRecord, claim: &Self::Claim) -> bool;

    /// Who has what is waited for.
    fn holder(&self, claim: &Self::Claim, threads: &Threads) -> Option<Holder>;

    /// The id of the logical thread that runs, or waits, on a platform thread; `None` if that is
    /// its own.
    fn mounted(&self, thread: u64) -> Option<u64>;

    /// What the logical thread on a platform thread is called.
    fn name_of_mounted(&self, thread: u64) -> Option<Box<str>>;

    /// What another library has published on a platform thread (see [`crate::context::foreign`]),
    /// unless a logical thread of its own is on it.
    fn published(&self, thread: u64) -> Option<Context>;

    /// Whether there are logical threads that live without a platform thread, and can be found.
    fn has_unmounted(&self) -> bool {
        false
    }

    /// Looks at some of these, for a part of `budget`, and tells them. Returns what was found, and
    /// how many places were looked at for it, which is what the budget counts.
    fn look_at_unmounted(
        &mut self,
        _at: &Unmounted<'_, Self, Self::Claim>,
        _budget: &Budget,
        _random: &mut Random,
    ) -> (Found, usize) {
        (Found::default(), 0)
    }

    /// Called at each tick, when the sampler is about to sleep for `next_ns`: a chance to look at
    /// something beside without a thread of its own being woken for it.
    fn beside(&self, _shared: &R::Shared, _now_ns: u64, _next_ns: u64) {}
}

/// What a runtime watches beside while a recording lasts, on threads of its own.
pub trait Watch<R: Runtime>: Sized + Send {
    /// Begins; `None` if there is nothing to watch. What cannot be had is told as trouble: the rest
    /// of the recording is as good without it.
    fn start(setup: &Arc<Setup<R>>, progress: &Arc<Progress>) -> Option<Self>;

    /// Ends it; what was seen is on the shelves then.
    fn end(self);
}

/// A runtime that watches nothing.
#[derive(Debug)]
pub struct Nothing;

impl<R: Runtime> Watch<R> for Nothing {
    fn start(_: &Arc<Setup<R>>, _: &Arc<Progress>) -> Option<Nothing> {
        None
    }

    fn end(self) {}
}

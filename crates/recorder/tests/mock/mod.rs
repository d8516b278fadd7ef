//! A runtime of a few lines behind the runtime boundary. Its threads report their own method, and
//! the owner of the object that they wait for.

use dwell_context::Context;
use dwell_frozen::Frozen;
use dwell_recorder::looks::off::{Off, Waiting};
use dwell_recorder::looks::threads::{Holder, Threads};
use dwell_recorder::native::Modules;
use dwell_recorder::record::names::{Name, NameId, Names};
use dwell_recorder::recorder::{Recorder, Seen};
use dwell_recorder::runtime::setup::Setup;
use dwell_recorder::runtime::{About, Changes, Looks, Named, Nothing, Runtime, Walks};
use dwell_recorder::sys::process;
use dwell_recorder::threads::ThreadName;
use dwell_signal::{Slot, ThreadRecord};
use dwell_walker::native::{NativeCode, Rule};
use dwell_walker::{Frame, FrameKind, Outcome, Walk};
use dwell_wall::cause::{Cause, Monitor};
use dwell_wall::waits::Waits;
use dwell_wallclock::Fingerprint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The runtime's own structure of a thread is a number: its id, and its present method.
pub const fn thread_in(id: u64, method: u64) -> u64 {
    id << 8 | method
}

/// A thread in native code: only the kernel knows whether it waits.
pub const IN_NATIVE: u64 = thread_in(55, 1);

/// Names of its methods, by their numbers.
const METHODS: [&str; 4] = ["none", "spin", "wait", "hold"];

/// The class of all its methods.
pub const CLASS: &str = "mock/Program";

/// Ids from this one on are threads of the frozen stacks, in their order.
pub const FROZEN: u64 = 1000;

/// The name of the method with this number.
pub fn method_of(id: u64) -> String {
    let known = METHODS.get(id as usize).copied();
    known.map_or_else(|| format!("method_{id:x}"), str::to_owned)
}

/// The runtime.
#[derive(Default)]
pub struct Mock {
    /// Whether the unwind tables identified native code.
    pub has_rules: AtomicBool,
    /// Whether the drainer is to stand still in its next walk ...
    pub holds: AtomicBool,
    /// ... and does.
    pub held: AtomicBool,
    /// Stacks of threads that were real.
    pub frozen: Vec<Frozen>,
    /// Whether the drainer has published the data for walks.
    pub can_walk: AtomicBool,
}

impl Mock {
    /// The drainer waits here as long as it is held: at most a minute.
    fn hold(&self) {
        let begun = Instant::now();
        while self.holds.load(Ordering::SeqCst) && begun.elapsed() < Duration::from_secs(60) {
            self.held.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Its recorder.
pub type Agent = Recorder<Mock>;

/// Reports the calling thread, which begins as a managed one.
pub fn begin_thread(agent: &Agent, name: &str, id: u64, method: u64) {
    leave_small_signal_stack();
    agent.saw(Seen {
        name: ThreadName {
            tid: process::own_tid(),
            comm: "mock".into(),
            name: Some(name.into()),
            id: id as i64,
            group: None,
        },
        managed: thread_in(id, method),
        stack_high: 0,
        starts: true,
    });
}

/// A Rust thread has an alternate stack that is too small for handlers of debug builds.
fn leave_small_signal_stack() {
    let none = libc::stack_t {
        ss_sp: std::ptr::null_mut(),
        ss_flags: libc::SS_DISABLE,
        ss_size: 0,
    };
    // SAFETY: only the calling thread's signals go to its ordinary stack from now on; nobody uses
    // the other one.
    assert_eq!(unsafe { libc::sigaltstack(&none, std::ptr::null_mut()) }, 0);
}

impl Runtime for Mock {
    const PROCESS: &'static str = "mock";
    const WAITS: &'static Waits = &Waits {
        methods: &[(CLASS, &["hold"], Cause::ObjectWait)],
        ..Waits::NONE
    };

    type Walks = MockWalks;
    type Looks = MockLooks;
    type Watch = Nothing;
    type Shared = ();

    fn about(&self) -> About {
        About {
            name: "Mock".into(),
            version: "1.2".into(),
        }
    }

    fn is_own_library(_: &str) -> bool {
        false
    }

    fn can_walk(&self) -> bool {
        self.can_walk.load(Ordering::SeqCst)
    }

    fn server(&self) -> impl FnOnce() + Send + 'static {
        || {}
    }

    fn renamed(&self, _: &ThreadRecord, _: &mut u64) -> Option<String> {
        None
    }
}

/// The frames of a managed thread, or the interrupted instruction of another one.
fn walk(thread: u64, pc: u64, frames: &mut [Frame]) -> Walk {
    let (kind, id) = match thread {
        0 => (FrameKind::Native, pc),
        thread => (FrameKind::C2, thread & 0xff),
    };
    if let Some(first) = frames.first_mut() {
        *first = Frame { kind, bci: 7, id };
    }
    Walk {
        len: 1,
        outcome: Outcome::Complete,
        gaps: 0,
        flaw: None,
    }
}

/// On the drainer's thread.
pub struct MockWalks(&'static Mock);

impl Walks<Mock> for MockWalks {
    fn new(setup: &Setup<Mock>) -> MockWalks {
        MockWalks(&setup.recorder.runtime)
    }

    fn begin(&mut self, _: bool) -> Changes {
        Changes {
            is_another_moment: true,
            ..Changes::default()
        }
    }

    fn publish(&self, _: &Modules) {
        self.0.can_walk.store(true, Ordering::SeqCst);
    }

    fn walk<N: NativeCode>(&mut self, slot: &Slot<'_>, native: &N, frames: &mut [Frame]) -> Walk {
        self.0.hold();
        let header = slot.header();
        if matches!(native.rule(header.regs.pc()), Some(rule) if rule != Rule::Gap) {
            self.0.has_rules.store(true, Ordering::SeqCst);
        }
        let frozen = (header.managed_thread >> 8).checked_sub(FROZEN);
        match frozen.and_then(|index| self.0.frozen.get(index as usize)) {
            Some(stack) => stack.walk(frames),
            None => walk(header.managed_thread, header.regs.pc(), frames),
        }
    }

    fn name(&mut self, frame: &Frame, names: &mut Names) -> Option<Named> {
        let name = names.add(Name {
            class: CLASS.into(),
            name: method_of(frame.id),
            descriptor: "()V".into(),
            modifiers: 0,
            origin: None,
        });
        Some(Named {
            name,
            line: 42,
            bci: frame.bci,
        })
    }

    fn stub(&mut self, _: u64, names: &mut Names) -> NameId {
        names.add(Name::native("[stub]", "mock"))
    }

    fn forget_names(&mut self) {}
}

/// On the wall-clock sampler's thread.
pub struct MockLooks;

impl Looks<Mock> for MockLooks {
    /// The thread that owns the object that another one waits for.
    type Claim = u64;

    fn new(_: &Setup<Mock>) -> MockLooks {
        MockLooks
    }

    fn look(&self, record: &ThreadRecord, at: Waiting, frames: &mut [Frame]) -> (Off, Option<u64>) {
        let thread = record.managed_thread();
        let mut off = Off::at(at.os, Some(walk(thread, 0, frames)));
        if thread != thread_in(2, 2) {
            return (off, None);
        }
        off.monitor = Monitor::Entering;
        off.detail = Some("mock.Lock".into());
        (off, Some(thread_in(3, 3)))
    }

    fn fingerprint(&self, record: &ThreadRecord) -> Option<(Fingerprint, Option<u64>)> {
        let is_native = record.managed_thread() == IN_NATIVE;
        let in_native = || Fingerprint::of([IN_NATIVE], false).that_may_run(true);
        is_native.then(|| (in_native(), None))
    }

    fn walk(&self, record: &ThreadRecord, _: (u64, u64), frames: &mut [Frame]) -> Option<Walk> {
        Some(walk(record.managed_thread(), 0, frames))
    }

    fn is_still(&self, _: &ThreadRecord, _: &u64) -> bool {
        true
    }

    fn holder(&self, claim: &u64, threads: &Threads) -> Option<Holder> {
        threads.of_managed(*claim).map(Holder::On)
    }

    fn mounted(&self, _: u64) -> Option<u64> {
        None
    }

    fn name_of_mounted(&self, _: u64) -> Option<Box<str>> {
        None
    }

    fn published(&self, _: u64) -> Option<Context> {
        None
    }
}

//! The stack of a monitor's owner, requested by a thread that begins to wait for it. Runs on the
//! waiting thread, which is in no signal handler but may hold any other monitor of the program.
//!
//! An owner that waits in the kernel is read from outside. The reading counts only if the owner has
//! not run since, so that it has held the monitor all the time. A running or runnable owner gets a
//! signal. Its handler checks whether the thread holds the monitor, which it cannot release in the
//! handler. So a recorded stack always belongs to a thread that holds the monitor at that moment. A
//! thread that is known to wait gets no signal.

use dwell_inside::hotspot::Agent;
use dwell_inside::wall::look::Looker;
use dwell_inside::wall::unmounted::by_id;
use dwell_inside::{hook, owners, vantage};
use dwell_recorder::asked::{MOST, PER_S, QUESTIONS, Why, asks, counts_as, within_stratum};
use dwell_recorder::rate::{Rate, Shared};
use dwell_recorder::sys::process;
use dwell_recorder::sys::task::{TaskFiles, Turn};
use dwell_signal::ThreadRecord;
use dwell_signal::slots::Reason;
use dwell_signal::sys::cpu_ns_of;
use dwell_walker::hotspot::layout::Layout;
use dwell_walker::hotspot::monitors::{self, Owner};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// At most so many threads are searched for the owner of a monitor that is contended for the first
/// time. The thread that begins to wait checks all of them.
pub const ASKED_MAX: usize = 1024;

/// Attempts to read an owner that runs again during the reading, ...
const TRIES: usize = 6;
/// ... with a limit of two after this time.
const TRIED_NS: u64 = 200_000;

/// One in so many waits asks for its owner's stack.
static ONE_IN: AtomicU64 = AtomicU64::new(1);
/// Adapts that share.
static RATE: Shared = Shared::fixed();
/// The kernel's account of threads, during a recording.
static FILES: RwLock<Option<TaskFiles>> = RwLock::new(None);

/// The question of a wait, asked when it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// One in so many waits asked; 0: this one did not.
    pub one_in: u64,
    /// The question's number; 0: no question.
    pub question: u64,
    /// Why it has no answer, if that is known.
    pub why: u32,
}

/// Owner of a monitor.
#[derive(Clone, Copy, Debug)]
pub enum Holder {
    /// Unknown.
    Nobody,
    /// The platform thread with this kernel id.
    Kernel(i32),
    /// The logical thread with this id.
    Id(u64),
    /// The platform thread of this record.
    Record(&'static ThreadRecord),
}

/// A wait that begins.
#[derive(Clone, Copy, Debug)]
pub struct Beginning {
    /// Record of the thread that is about to wait.
    pub asker: &'static ThreadRecord,
    /// The JVM's address of the monitor.
    pub monitor: u64,
    /// Owner of the monitor.
    pub holder: Holder,
    /// Start of the wait, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
}

/// Place of an owner's stack.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// On the platform thread of this record.
    On(&'static ThreadRecord),
    /// The virtual thread with this id, which has no carrier.
    Unmounted(u64),
}

/// Lets waits ask from now on.
pub fn begin(agent: &'static Agent) {
    QUESTIONS.clear();
    hook::install_owners(&agent.runtime);
    set_files(Some(TaskFiles::open()));
    let now_ns = process::monotonic_ns();
    set(1);
    RATE.begin(Some(Rate::at_most(PER_S, 1, MOST, now_ns)));
}

/// Ends all questions.
pub fn end() {
    RATE.begin(None);
    set_files(None);
}

fn set_files(files: Option<TaskFiles>) {
    *FILES.write().unwrap_or_else(PoisonError::into_inner) = files;
}

fn set(one_in: u64) -> bool {
    ONE_IN.store(one_in, Ordering::Relaxed);
    true
}

/// Asks for the owner's stack when a wait begins, if the wait's random number `draw` says so.
/// Returns the number that decides whether the wait is recorded, and the question.
pub fn ask(agent: &'static Agent, layout: &Layout, draw: u64, begins: &Beginning) -> (u64, Asked) {
    let one_in = ONE_IN.load(Ordering::Relaxed);
    let number = within_stratum(draw, one_in);
    if !asks(draw, one_in) {
        RATE.passed(begins.at_ns, set);
        return (number, Asked::default());
    }
    let found = answered(agent, layout, begins);
    let now_ns = process::monotonic_ns();
    for _ in 0..counts_as(now_ns.saturating_sub(begins.at_ns)) {
        RATE.sampled(now_ns, set);
    }
    let (question, why) = match found {
        Ok(question) => (question, Why::NoAnswer),
        Err(why) => (0, why),
    };
    let asked = Asked {
        one_in,
        question,
        why: why as u32,
    };
    (number, asked)
}

/// Closes the question of a wait that is recorded and published, or that never ended.
pub fn close(asked: &Asked) {
    QUESTIONS.close(asked.question);
}

fn target_of(agent: &'static Agent, layout: &Layout, holder: Holder) -> Result<Target, Why> {
    let live = agent.engine.live();
    let found = match holder {
        Holder::Nobody => return Err(Why::NoOwner),
        Holder::Record(record) => Some(record),
        Holder::Kernel(tid) => agent.registry.get(tid),
        Holder::Id(id) => {
            let is_it = |record: &ThreadRecord| owners::is_id(&live, layout, record, id);
            match agent.registry.find(ASKED_MAX, is_it) {
                None => return Ok(Target::Unmounted(id)),
                found => found,
            }
        }
    };
    found.map(Target::On).ok_or(Why::NoThread)
}

/// Number of a question that is answered, or may still be.
fn answered(agent: &'static Agent, layout: &Layout, begins: &Beginning) -> Result<u64, Why> {
    let mut target = target_of(agent, layout, begins.holder)?;
    let files = FILES.read().unwrap_or_else(PoisonError::into_inner);
    let files = files.as_ref().ok_or(Why::NoAnswer)?;
    let question = QUESTIONS.open(begins.monitor).ok_or(Why::NoRoom)?;
    let mut why = Why::WentOn;
    for tried in 0..TRIES {
        let is_late = || process::monotonic_ns().saturating_sub(begins.at_ns) > TRIED_NS;
        if tried >= 2 && is_late() {
            break;
        }
        let seen = match target {
            Target::On(record) => look(agent, layout, files, record, (begins.monitor, question)),
            Target::Unmounted(id) => look_at_unmounted(agent, id, begins, question),
        };
        match seen {
            Ok(()) => return Ok(question),
            Err(Why::WentOn) => {}
            Err(other) => {
                why = other;
                break;
            }
        }
        // A virtual thread may have been mounted or unmounted.
        target = target_of(agent, layout, begins.holder).unwrap_or(target);
    }
    QUESTIONS.close(question);
    Err(why)
}

fn look(
    agent: &'static Agent,
    layout: &Layout,
    files: &TaskFiles,
    record: &'static ThreadRecord,
    (monitor, question): (u64, u64),
) -> Result<(), Why> {
    let (engine, tid) = (agent.engine, record.tid());
    let before_ns = cpu_ns_of(tid).map_err(|_| Why::NoThread)?;
    let registers = match files.turn(tid) {
        Turn::Ready => {
            QUESTIONS.tell(question, record.index());
            return match engine.ask(record, Reason::Owner) {
                true => Ok(()),
                false => Err(Why::NoThread),
            };
        }
        Turn::Off { sp, pc } => Some((sp, pc)),
        Turn::Unknown => None,
    };
    let mut why = Why::NoRoom;
    let is_seen = engine.looked(record, question, |target| {
        let live = target.live();
        why = Why::WentOn;
        if !owners::has(&live, layout, record, monitor) {
            return false;
        }
        if !vantage::walk_owner(target, record, registers) {
            why = Why::NoAnswer;
            return false;
        }
        // It has not run since before it was known to own the monitor, so it still owns it.
        cpu_ns_of(tid) == Ok(before_ns)
    });
    if is_seen { Ok(()) } else { Err(why) }
}

/// Reads an unmounted virtual thread. If it is mounted by then, the reading fails: it has run
/// since.
fn look_at_unmounted(
    agent: &'static Agent,
    id: u64,
    begins: &Beginning,
    question: u64,
) -> Result<(), Why> {
    let known = agent.runtime.virtual_threads().ok_or(Why::NoThread)?;
    let looker = Looker {
        live: agent.engine.live(),
        vm: agent.runtime.vm(),
        cache: None,
        remembered: None,
    };
    let (live, layout) = (&looker.live, &looker.vm.layout);
    let has = || monitors::owner(live, layout, begins.monitor) == Ok(Owner::Id(id));
    let mut why = Why::NoRoom;
    let is_seen = agent.engine.looked(begins.asker, question, |target| {
        let walked = by_id::walk(&looker, known, id, has, target);
        why = walked.err().unwrap_or(Why::NoRoom);
        walked.is_ok()
    });
    if is_seen { Ok(()) } else { Err(why) }
}

//! Where the owner of a monitor is, asked for by who begins to wait for it, on that one's thread,
//! which is in no handler but may have any other monitor of the program.
//!
//! An owner that waits in the kernel is looked at from outside: what is read of it counts only if
//! it has not run meanwhile, so it has had the monitor all the time. One that runs or is ready to
//! is signalled, and looks in its handler whether it has the monitor: it cannot give it up
//! meanwhile. So no stack is told but that of a thread that has the monitor at that moment. Nobody
//! is signalled who is known to wait.

use dwell_inside::hotspot::Agent;
use dwell_inside::wall::look::Looker;
use dwell_inside::wall::unmounted::by_id;
use dwell_inside::{hook, owners, vantage};
use dwell_recorder::asked::{MOST, PER_S, QUESTIONS, Why, asks, counts_as};
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

/// Threads asked at most whether a monitor that was never waited for before is theirs: who begins
/// to wait for it asks all of them.
pub const ASKED_MAX: usize = 1024;

/// How often an owner is looked at that has gone on meanwhile, ...
const TRIES: usize = 6;
/// ... but not more than twice when so much time has passed.
const TRIED_NS: u64 = 200_000;

/// One in so many waits asks.
static ONE_IN: AtomicU64 = AtomicU64::new(1);
/// Finds how many.
static RATE: Shared = Shared::fixed();
/// What the kernel says of threads, while a recording goes on.
static FILES: RwLock<Option<TaskFiles>> = RwLock::new(None);

/// What was asked when a wait began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// One in so many waits asked; 0: this one did not.
    pub one_in: u64,
    /// The question's number; 0: there is none.
    pub question: u64,
    /// Why it has no answer, as far as is known.
    pub why: u32,
}

/// Who has a monitor, as it is found.
#[derive(Clone, Copy, Debug)]
pub enum Holder {
    /// It is not known.
    Nobody,
    /// The platform thread with this id of the kernel's.
    Kernel(i32),
    /// The logical thread with this id.
    Id(u64),
    /// The platform thread of this record.
    Record(&'static ThreadRecord),
}

/// A wait that begins.
#[derive(Clone, Copy, Debug)]
pub struct Beginning {
    /// Of the thread that is about to wait.
    pub asker: &'static ThreadRecord,
    /// The monitor, as the JVM keeps it.
    pub monitor: u64,
    /// Who has it.
    pub holder: Holder,
    /// In nanoseconds of the monotonic clock.
    pub at_ns: u64,
}

/// Where an owner is looked for.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// On the platform thread of this record.
    On(&'static ThreadRecord),
    /// It is the virtual thread with this id, which has no carrier.
    Unmounted(u64),
}

/// Waits ask from now on.
pub fn begin(agent: &'static Agent) {
    QUESTIONS.clear();
    hook::install_owners(&agent.runtime);
    set_files(Some(TaskFiles::open()));
    let now_ns = process::monotonic_ns();
    set(1);
    RATE.begin(Some(Rate::at_most(PER_S, 1, MOST, now_ns)));
}

/// None asks any more.
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

/// A wait begins: whether it asks is decided by `draw`, its own number.
pub fn ask(agent: &'static Agent, layout: &Layout, draw: u64, begins: &Beginning) -> Asked {
    let one_in = ONE_IN.load(Ordering::Relaxed);
    if !asks(draw, one_in) {
        RATE.passed(begins.at_ns, set);
        return Asked::default();
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
    Asked {
        one_in,
        question,
        why: why as u32,
    }
}

/// The wait is over, and what is recorded of it is published, or it was never over.
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

/// The number of a question that is answered, or may still be.
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
        // A virtual one may have got a carrier, or lost it.
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
        // It has not run since before it was known to have the monitor, so it has it still.
        cpu_ns_of(tid) == Ok(before_ns)
    });
    if is_seen { Ok(()) } else { Err(why) }
}

/// Who is mounted meanwhile is not found without a carrier, and not on one either: it went on.
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

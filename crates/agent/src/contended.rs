//! Records waits for monitors: the start and the owner at that time, and for a chosen wait the
//! thread's stack at its end. Runs on the waiting thread, which is in no signal handler but may
//! hold any monitor of the program.
//!
//! At its end, a random number and the interval of the moment decide how long the wait must have
//! lasted to be recorded ([`dwell_recorder::blocked`]). The wait draws the number when it begins.
//! For a wait that asked, the interval is shorter ([`dwell_recorder::asked`]).
//! The interval grows if there are too many waits ([`dwell_recorder::rate`]). The number has no
//! influence on the interval before the wait has ended, so sums are unbiased. All waits are
//! counted.
//!
//! Some waits ask for the owner's stack when they begin ([`crate::owners`]).

use crate::begun::{Begun, Waits};
use crate::here::here;
use crate::jvm::monitors::{WaitCallbacks, class_of};
use crate::owners::{self, ASKED_MAX, Beginning, Holder};
use dwell_inside::hotspot::Agent;
use dwell_inside::wall::look::Looker;
use dwell_recorder::asked;
use dwell_recorder::blocked::{draw, threshold, weight};
use dwell_recorder::chosen::Events;
use dwell_recorder::gate::Gate;
use dwell_recorder::options::LOCK;
use dwell_recorder::rate::{Rate, Shared};
use dwell_recorder::sys::process;
use dwell_signal::{LockOwner, ThreadRecord, Wait};
use dwell_walker::Memory;
use dwell_walker::hotspot::layout::{Layout, present};
use dwell_walker::hotspot::monitors::{self, Contended, Owner};
use dwell_walker::hotspot::threads;
use jvm_sys::jni::Object;
use jvm_sys::{Env, Jvmti};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Waits of virtual threads, where these can leave their carrier during a wait.
static VIRTUAL: Waits = Waits::new();

// Needs no lazy initialisation, and no destructor when a thread ends.
thread_local! {
    static BEGUN: Cell<Begun> = const { Cell::new(Begun::NONE) };
    static RANDOM: Cell<u64> = const { Cell::new(0) };
}

/// Open while waits are recorded.
static WANTED: Gate = Gate::closed();
/// The present interval in nanoseconds. It may change during a wait.
static INTERVAL_NS: AtomicU64 = AtomicU64::new(0);
/// Adapts the interval.
static RATE: Shared = Shared::fixed();
/// Start of the recording of waits. Earlier waits do not belong to it.
static SINCE_NS: AtomicU64 = AtomicU64::new(u64::MAX);

/// The callbacks for waits.
pub const CALLBACKS: WaitCallbacks = WaitCallbacks { begins, ends };

/// Records waits from now on, chosen as `events` says.
pub fn begin(agent: &'static Agent, events: &Events) {
    set_interval(agent, events);
    VIRTUAL.clear();
    owners::begin(agent);
    SINCE_NS.store(process::monotonic_ns(), Ordering::Relaxed);
    WANTED.open();
}

/// Chooses the waits that end from now on as `events` says.
pub fn set_interval(agent: &'static Agent, events: &Events) {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let (interval_ns, now_ns) = (ns(events.lock), process::monotonic_ns());
    let rate = (events.max_rate != 0)
        .then(|| Rate::at_most(events.max_rate, interval_ns, ns(*LOCK.end()), now_ns));
    adapt(agent, interval_ns);
    RATE.begin(rate);
}

fn adapt(agent: &'static Agent, interval_ns: u64) -> bool {
    INTERVAL_NS.store(interval_ns, Ordering::Relaxed);
    agent.adapted_lock_ns.store(interval_ns, Ordering::Relaxed);
    true
}

/// Records no more waits.
pub fn end(agent: &'static Agent) {
    WANTED.close();
    owners::end();
    RATE.begin(None);
    agent.adapted_lock_ns.store(0, Ordering::Relaxed);
}

fn begins() {
    let Some(_wanted) = WANTED.enter() else {
        return;
    };
    let Some((agent, record)) = here() else {
        return;
    };
    let at_ns = process::monotonic_ns();
    let thread = record.managed_thread();
    let (live, layout) = (agent.engine.live(), &agent.runtime.vm().layout);
    let monitor = match monitors::contended(&live, layout, thread) {
        Ok(Some(Contended::Entering(monitor))) => monitor,
        _ => 0,
    };
    let (owner, holder) = match monitor {
        0 => (LockOwner::Unknown, Holder::Nobody),
        _ => owner(agent, layout, thread, monitor),
    };
    let draw = number(record, at_ns);
    let wanderer = wanderer(agent, layout, record);
    // The wait before never ended.
    owners::close(&taken(wanderer).asked);
    let begins = Beginning {
        asker: record,
        monitor,
        holder,
        at_ns,
    };
    let (draw, asked) = owners::ask(agent, layout, draw, &begins);
    let begun = Begun {
        at_ns,
        monitor,
        owner,
        draw,
        asked,
    };
    match wanderer {
        None => BEGUN.set(begun),
        Some(id) if VIRTUAL.put(id, &begun) => {}
        Some(_) => {
            owners::close(&begun.asked);
            agent.blocked.add_untold();
        }
    }
}

/// Takes out the wait of the calling thread, or of its mounted virtual thread.
fn taken(wanderer: Option<u64>) -> Begun {
    match wanderer {
        None => BEGUN.replace(Begun::NONE),
        Some(id) => VIRTUAL.take(id),
    }
}

fn ends(jvmti: Jvmti, env: Env, object: Object) {
    let Some(_wanted) = WANTED.enter() else {
        return;
    };
    let Some((agent, record)) = here() else {
        return;
    };
    let begun = taken(wanderer(agent, &agent.runtime.vm().layout, record));
    if begun.at_ns != 0 && begun.at_ns >= SINCE_NS.load(Ordering::Relaxed) {
        let class = || class_of(&agent.classes, jvmti, env, object);
        is_over(agent, record, &begun, class);
    }
    // The owner's answer must be kept until the wait is recorded.
    owners::close(&begun.asked);
}

/// Ends a wait whose start is known.
fn is_over(
    agent: &'static Agent,
    record: &ThreadRecord,
    begun: &Begun,
    class: impl FnOnce() -> u32,
) {
    let now_ns = process::monotonic_ns();
    let duration_ns = now_ns.saturating_sub(begun.at_ns);
    agent.blocked.add(duration_ns);
    let interval_ns = INTERVAL_NS.load(Ordering::Relaxed);
    let set = |interval_ns| adapt(agent, interval_ns);
    let asked = &begun.asked;
    let own_ns = asked::interval(interval_ns, asked.one_in);
    if duration_ns < threshold(begun.draw, own_ns) {
        RATE.passed(now_ns, set);
        return;
    }
    RATE.sampled(now_ns, set);
    let is_seen = agent.engine.waited(
        record,
        &Wait {
            begin_ns: begun.at_ns,
            duration_ns,
            weight_ns: weight(duration_ns, own_ns),
            monitor: begun.monitor,
            class: class(),
            owner: begun.owner,
            asked: dwell_signal::Asked {
                weight_ns: match asked.one_in {
                    0 => 0,
                    one_in => asked::weight(duration_ns, interval_ns, one_in),
                },
                request: asked.question,
                why: asked.why,
            },
        },
    );
    if !is_seen {
        RATE.scarce(now_ns, set);
    }
}

/// The calling thread's next random number.
fn number(record: &ThreadRecord, now_ns: u64) -> u64 {
    let seed = match RANDOM.get() {
        0 => now_ns ^ (record.managed_thread() << 20),
        state => state,
    };
    let (number, state) = draw(seed);
    RANDOM.set(state);
    number
}

/// The mounted virtual thread, if it may be on another carrier at the end of its wait (JDK 24 and
/// later, JEP 491). Before, it keeps its carrier.
fn wanderer(agent: &Agent, layout: &Layout, record: &ThreadRecord) -> Option<u64> {
    let at = layout.thread_owner_id;
    if !present(at) {
        return None;
    }
    let id = agent.engine.live();
    let id = id.word(record.managed_thread().wrapping_add(at)).ok()?;
    (id != 0 && id != record.managed_id()).then_some(id)
}

/// The owner of the monitor for which `waiter` is about to wait.
fn owner(agent: &'static Agent, layout: &Layout, waiter: u64, monitor: u64) -> (LockOwner, Holder) {
    let live = agent.engine.live();
    // A word of a stack may look like a thread, but lacks the beginning of one.
    let is_thread = |thread| {
        live.word(thread)
            .is_ok_and(|it| live.word(waiter) == Ok(it))
    };
    let found = match monitors::owner(&live, layout, monitor) {
        Err(_) | Ok(Owner::Nobody) => return (LockOwner::Unknown, Holder::Nobody),
        Ok(Owner::Id(id)) => return (LockOwner::Logical(id), Holder::Id(id)),
        Ok(Owner::Thread(thread)) if is_thread(thread) => {
            let tid = threads::kernel_id(&live, layout, thread);
            let (of_tid, holder) = match tid {
                Ok(tid) => (LockOwner::Kernel(tid), Holder::Kernel(tid)),
                Err(_) => (LockOwner::Unknown, Holder::Nobody),
            };
            return (on(agent, thread).unwrap_or(of_tid), holder);
        }
        Ok(Owner::Thread(address) | Owner::Stack(address)) => {
            agent.registry.find(ASKED_MAX, |record| {
                let thread = record.managed_thread();
                thread != 0 && threads::has_on_stack(&live, layout, thread, address) == Ok(true)
            })
        }
        Ok(Owner::HolderOf(object)) => agent.registry.find(ASKED_MAX, |record| {
            let thread = record.managed_thread();
            thread != 0 && monitors::holds(&live, layout, thread, object) == Ok(true)
        }),
    };
    let Some(record) = found else {
        return (LockOwner::Unknown, Holder::Nobody);
    };
    let owner = on(agent, record.managed_thread()).unwrap_or(LockOwner::User(record.user()));
    (owner, Holder::Record(record))
}

/// The virtual thread on a platform thread.
fn on(agent: &'static Agent, thread: u64) -> Option<LockOwner> {
    let looker = Looker {
        live: agent.engine.live(),
        vm: agent.runtime.vm(),
        cache: None,
        remembered: None,
    };
    looker.mounted(thread).ok()?.map(LockOwner::Logical)
}

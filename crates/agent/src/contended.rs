//! What is noted of a wait for a monitor: when it began and who had the monitor then, and, if the
//! wait is chosen, where the thread is when it is over. Called on the thread itself, which is in no
//! handler but may have any monitor of the program.
//!
//! When it is over it is decided how long it must have lasted to be recorded
//! ([`dwell_recorder::blocked`]): by a number that the wait has drawn when it began, and the
//! interval of that moment, which grows where too many are ([`dwell_recorder::rate`]). What was
//! drawn for a wait has no part in how it grows before that one is over, so sums stay right in the
//! mean. All waits are counted.
//!
//! Some waits ask where the owner is when they begin ([`crate::owners`]).

use crate::begun::{Begun, Waits};
use crate::here::here;
use crate::jvm::monitors::{Told, class_of};
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

/// Of virtual threads where they can leave their carrier meanwhile.
static VIRTUAL: Waits = Waits::new();

// Nothing of it is made when it is used first, and nothing is to be done when a thread ends.
thread_local! {
    static BEGUN: Cell<Begun> = const { Cell::new(Begun::NONE) };
    static RANDOM: Cell<u64> = const { Cell::new(0) };
}

/// Lets waits be told while that is wanted.
static WANTED: Gate = Gate::closed();
/// The interval of the moment, in nanoseconds; may change while waits last.
static INTERVAL_NS: AtomicU64 = AtomicU64::new(0);
/// Finds it, where it adapts.
static RATE: Shared = Shared::fixed();
/// Since when waits are told: what has begun before does not belong to it.
static SINCE_NS: AtomicU64 = AtomicU64::new(u64::MAX);

/// Who is told.
pub const TOLD: Told = Told { begins, ends };

/// Waits are told from now on, and chosen as `events` want it.
pub fn begin(agent: &'static Agent, events: &Events) {
    set_interval(agent, events);
    VIRTUAL.clear();
    owners::begin(agent);
    SINCE_NS.store(process::monotonic_ns(), Ordering::Relaxed);
    WANTED.open();
}

/// Waits that are over from now on are chosen as `events` want it.
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

/// None is told any more.
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
    // One that was never over.
    owners::close(&taken(wanderer).asked);
    let begins = Beginning {
        asker: record,
        monitor,
        holder,
        at_ns,
    };
    let begun = Begun {
        at_ns,
        monitor,
        owner,
        draw,
        asked: owners::ask(agent, layout, draw, &begins),
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

/// Takes what was noted of the wait of the calling thread, or of the virtual one on it.
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
    // After what is recorded of it: until then its owner's answer is kept.
    owners::close(&begun.asked);
}

/// A wait is over of which it is known when it began.
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
    if duration_ns < threshold(begun.draw, interval_ns) {
        RATE.passed(now_ns, set);
        return;
    }
    RATE.sampled(now_ns, set);
    let asked = &begun.asked;
    let is_seen = agent.engine.waited(
        record,
        &Wait {
            begin_ns: begun.at_ns,
            duration_ns,
            weight_ns: weight(duration_ns, interval_ns),
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

/// The virtual thread that is mounted, where it may be on another carrier when its wait is over
/// (JDK 24 and later, JEP 491; before it keeps its carrier).
fn wanderer(agent: &Agent, layout: &Layout, record: &ThreadRecord) -> Option<u64> {
    let at = layout.thread_owner_id;
    if !present(at) {
        return None;
    }
    let id = agent.engine.live();
    let id = id.word(record.managed_thread().wrapping_add(at)).ok()?;
    (id != 0 && id != record.managed_id()).then_some(id)
}

/// Who has a monitor for which `waiter` is about to wait, and how that one is found.
fn owner(agent: &'static Agent, layout: &Layout, waiter: u64, monitor: u64) -> (LockOwner, Holder) {
    let live = agent.engine.live();
    // What a stack holds may look like a thread, but does not begin as one.
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

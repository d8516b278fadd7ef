//! Monitors (src/hotspot/share/runtime/objectMonitor.hpp): which one a thread has to do with, and
//! who has it. Read while the VM runs on: what is read may be over by then, and must be checked
//! against the thread's clock.

use super::continuation;
use super::layout::{Layout, present};
use crate::memory::{Fault, Memory};

/// What a thread has to do with a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contended {
    /// It waits to enter this `ObjectMonitor*`.
    Entering(u64),
    /// It waits on this one to be notified.
    Waiting(u64),
}

/// Who has a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody just now.
    Nobody,
    /// This `JavaThread*`.
    Thread(u64),
    /// The logical thread with this id: `Thread.threadId()`, of a virtual one, too (24+).
    Id(u64),
    /// The thread on whose stack this address is (up to 20).
    Stack(u64),
    /// Whoever has this object in its lock stack: the monitor was made while the object was locked
    /// without one, and its owner has not looked since (21+).
    HolderOf(u64),
}

/// Fast-locked objects a thread has at most (`LockStack::CAPACITY`).
const LOCK_STACK_MAX: u64 = 8;
/// `ObjectMonitor::ANONYMOUS_OWNER`.
const ANONYMOUS: u64 = 1;
/// `ObjectMonitor::DEFLATER_MARKER`: 2 where owners are ids, else an address in libjvm's data.
const DEFLATER: u64 = 2;

/// The monitor that `thread` has to do with, if any.
///
/// # Errors
/// [`Fault`] if the thread cannot be read.
pub fn contended<M: Memory>(
    mem: &M,
    layout: &Layout,
    thread: u64,
) -> Result<Option<Contended>, Fault> {
    let field = |offset: u64| match present(offset) {
        true => mem.word(thread.wrapping_add(offset)),
        false => Ok(0),
    };
    let pending = field(layout.thread_pending_monitor)?;
    if pending != 0 {
        return Ok(Some(Contended::Entering(pending)));
    }
    let waiting = field(layout.thread_waiting_monitor)?;
    Ok((waiting != 0).then_some(Contended::Waiting(waiting)))
}

/// Who has `monitor`.
///
/// # Errors
/// [`Fault`] if the monitor cannot be read.
pub fn owner<M: Memory>(mem: &M, layout: &Layout, monitor: u64) -> Result<Owner, Fault> {
    if !present(layout.monitor_owner) {
        return Ok(Owner::Nobody);
    }
    let owner = mem.word(monitor.wrapping_add(layout.monitor_owner))?;
    let by_id = present(layout.thread_owner_id);
    Ok(match owner {
        0 => Owner::Nobody,
        ANONYMOUS => Owner::HolderOf(object(mem, layout, monitor)?),
        DEFLATER if by_id => Owner::Nobody,
        id if by_id => Owner::Id(id),
        address if is_thread(mem, layout, address) => Owner::Thread(address),
        address => Owner::Stack(address),
    })
}

/// The object that `monitor` belongs to; 0 if unknown.
///
/// # Errors
/// [`Fault`] if it cannot be read.
pub fn object<M: Memory>(mem: &M, layout: &Layout, monitor: u64) -> Result<u64, Fault> {
    if !present(layout.monitor_object) {
        return Ok(0);
    }
    let value = mem.word(monitor.wrapping_add(layout.monitor_object))?;
    // Handles came with JDK 16 (8256302); `JavaThread::_threadObj` became one in 14.
    if value == 0 || !layout.extra.objects.thread_is_handle {
        return Ok(value);
    }
    continuation::handle(mem, layout, value)
}

/// Whether `thread` has `object` in its stack of fast locks.
///
/// # Errors
/// [`Fault`] if the thread cannot be read.
pub fn holds<M: Memory>(mem: &M, layout: &Layout, thread: u64, object: u64) -> Result<bool, Fault> {
    if !present(layout.thread_lock_stack) || !present(layout.lock_stack_top) || object == 0 {
        return Ok(false);
    }
    let stack = thread.wrapping_add(layout.thread_lock_stack);
    let base = layout
        .thread_lock_stack
        .wrapping_add(layout.lock_stack_base);
    let top = u64::from(mem.u32(stack.wrapping_add(layout.lock_stack_top))?);
    let len = top.wrapping_sub(base) / 8;
    for i in 0..len.min(LOCK_STACK_MAX) {
        if mem.word(thread.wrapping_add(base).wrapping_add(i * 8))? == object {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether this may be a `JavaThread`: its kernel id looks like one.
fn is_thread<M: Memory>(mem: &M, layout: &Layout, address: u64) -> bool {
    super::threads::kernel_id(mem, layout, address).is_ok_and(|tid| tid > 0)
        && super::threads::stack_high(mem, layout, address).is_ok_and(|high| high > 4096)
}

//! Monitors (src/hotspot/share/runtime/objectMonitor.hpp): the monitor that a thread enters or
//! waits on, and its owner. The VM runs during the reads, so results may be out of date. The caller
//! must check them with the thread's clock.

use super::continuation;
use super::layout::{Layout, present};
use crate::memory::{Fault, Memory};

/// A thread's use of a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contended {
    /// The thread waits to enter this `ObjectMonitor*`.
    Entering(u64),
    /// The thread waits on this one to be notified.
    Waiting(u64),
}

/// The owner of a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// No thread at present.
    Nobody,
    /// This `JavaThread*`.
    Thread(u64),
    /// The logical thread with this id: `Thread.threadId()`, also of a virtual thread (24+).
    Id(u64),
    /// The thread on whose stack this address is (up to 20).
    Stack(u64),
    /// The thread that has this object in its lock stack. The monitor was made while the object was
    /// locked without one, and its owner has not noticed yet (21+).
    HolderOf(u64),
}

/// Maximum number of fast-locked objects of a thread (`LockStack::CAPACITY`).
const LOCK_STACK_MAX: u64 = 8;
/// `ObjectMonitor::ANONYMOUS_OWNER`.
const ANONYMOUS: u64 = 1;
/// `ObjectMonitor::DEFLATER_MARKER`: 2 where owners are ids, else an address in libjvm's data.
const DEFLATER: u64 = 2;

/// The monitor that `thread` enters or waits on, if any.
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

/// The owner of `monitor`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    const THREAD: u64 = 0x1000;
    const MONITOR: u64 = 0x2000;

    #[test]
    fn monitor_use_is_read_from_the_thread() {
        let mut layout = Layout::EMPTY;
        let of = |layout: &Layout, pending, waiting| {
            let mem = Bytes::of_words(&[(THREAD, &[9, pending, waiting])]);
            contended(&mem, layout, THREAD)
        };
        assert_eq!(of(&layout, MONITOR, MONITOR), Ok(None), "no such fields");
        layout.thread_pending_monitor = 8;
        assert_eq!(of(&layout, 0, MONITOR), Ok(None));
        layout.thread_waiting_monitor = 16;
        assert_eq!(of(&layout, 0, 0), Ok(None));
        assert_eq!(
            of(&layout, MONITOR, 7),
            Ok(Some(Contended::Entering(MONITOR)))
        );
        assert_eq!(
            of(&layout, 0, MONITOR),
            Ok(Some(Contended::Waiting(MONITOR)))
        );
        assert!(contended(&Bytes::default(), &layout, THREAD).is_err());
    }

    /// A thread with a kernel id and a stack, a monitor, and its object behind a handle.
    fn memory(owner: u64, object: u64, tid: u64, stack: u64) -> Bytes {
        Bytes::of_words(&[
            (THREAD, &[0x3000, stack]),
            (0x3000, &[0, tid]),
            (MONITOR, &[owner, object]),
            (0x4000, &[0x5550]),
        ])
    }

    fn layout() -> Layout {
        let mut layout = Layout::EMPTY;
        layout.monitor_owner = 0;
        layout.monitor_object = 8;
        layout.thread_osthread = 0;
        layout.thread_stack_base = 8;
        layout.osthread_thread_id = 8;
        layout.extra.chunk.narrow_oops = false;
        layout
    }

    #[test]
    fn owner_is_thread_stack_address_id_or_lock_stack_holder() {
        let mut layout = layout();
        let of = |layout: &Layout, word| owner(&memory(word, 0x4000, 77, 0x9000), layout, MONITOR);
        assert_eq!(of(&layout, 0), Ok(Owner::Nobody));
        assert_eq!(of(&layout, ANONYMOUS), Ok(Owner::HolderOf(0x5550)));
        assert_eq!(of(&layout, THREAD), Ok(Owner::Thread(THREAD)));
        assert_eq!(of(&layout, 0x8ff0), Ok(Owner::Stack(0x8ff0)));
        assert_eq!(of(&layout, DEFLATER), Ok(Owner::Stack(DEFLATER)));
        layout.thread_owner_id = 40;
        assert_eq!(of(&layout, DEFLATER), Ok(Owner::Nobody));
        assert_eq!(of(&layout, 33), Ok(Owner::Id(33)));
        layout.monitor_owner = super::super::layout::ABSENT;
        assert_eq!(of(&layout, 33), Ok(Owner::Nobody));
        assert!(owner(&Bytes::default(), &self::layout(), MONITOR).is_err());
    }

    #[test]
    fn thread_requires_kernel_id_and_stack() {
        let of = |tid, stack| owner(&memory(THREAD, 0, tid, stack), &layout(), MONITOR);
        assert_eq!(of(1, 4097), Ok(Owner::Thread(THREAD)));
        assert_eq!(of(0, 4097), Ok(Owner::Stack(THREAD)));
        assert_eq!(of(0xffff_ffff, 4097), Ok(Owner::Stack(THREAD)), "-1");
        assert_eq!(of(1, 4096), Ok(Owner::Stack(THREAD)));
    }

    #[test]
    fn a_monitor_has_its_object_or_a_handle_of_it() {
        let mut layout = layout();
        let of = |layout: &Layout, value| object(&memory(0, value, 1, 0x9000), layout, MONITOR);
        assert_eq!(of(&layout, 0x4000), Ok(0x5550));
        assert_eq!(of(&layout, 0), Ok(0));
        assert!(of(&layout, 0x7000).is_err(), "no such handle");
        layout.extra.objects.thread_is_handle = false;
        assert_eq!(of(&layout, 0x4000), Ok(0x4000));
        layout.monitor_object = super::super::layout::ABSENT;
        assert_eq!(of(&layout, 0x4000), Ok(0));
    }

    /// `_top` is an offset from the thread's start, after the last entry.
    #[test]
    fn fast_locks_are_found_up_to_the_top() {
        const OBJECTS: [u64; 10] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
        let mut layout = Layout::EMPTY;
        let has = |layout: &Layout, top: u64, object| {
            let mut words = [7u64; 14];
            words[2] = top;
            words[3..13].copy_from_slice(&OBJECTS);
            holds(
                &Bytes::of_words(&[(THREAD, &words)]),
                layout,
                THREAD,
                object,
            )
        };
        assert_eq!(has(&layout, 40, 10), Ok(false));
        layout.thread_lock_stack = 16;
        assert_eq!(has(&layout, 40, 10), Ok(false));
        (layout.lock_stack_top, layout.lock_stack_base) = (0, 8);
        assert_eq!(has(&layout, 24, 10), Ok(false), "empty");
        assert_eq!(has(&layout, 32, 10), Ok(true));
        assert_eq!(has(&layout, 32, 20), Ok(false), "behind the top");
        assert_eq!(has(&layout, 40, 20), Ok(true));
        assert_eq!(has(&layout, 24 + 80, 80), Ok(true), "the last one of eight");
        assert_eq!(has(&layout, 24 + 80, 90), Ok(false));
        assert_eq!(has(&layout, 40, 0), Ok(false));
        assert!(holds(&Bytes::default(), &layout, THREAD, 10).is_err());
    }
}

//! Checks whether a thread owns a monitor that another thread waits for. The check runs where the
//! answer cannot change: in the thread's own handler ([`crate::hook`]), or while it waits in the
//! kernel.

use dwell_signal::{Live, ThreadRecord};
use dwell_walker::Memory;
use dwell_walker::hotspot::layout::{Layout, present};
use dwell_walker::hotspot::monitors::{self, Owner};
use dwell_walker::hotspot::threads;

/// Whether the thread of `record` owns `monitor`, by the JVM's data at this moment.
#[inline(never)]
#[must_use]
pub fn has(mem: &Live, layout: &Layout, record: &ThreadRecord, monitor: u64) -> bool {
    let thread = record.managed_thread();
    if thread == 0 || monitor == 0 {
        return false;
    }
    match monitors::owner(mem, layout, monitor) {
        Err(_) | Ok(Owner::Nobody) => false,
        Ok(Owner::Thread(owner)) => owner == thread,
        Ok(Owner::Id(id)) => is_id(mem, layout, record, id),
        Ok(Owner::Stack(at)) => threads::has_on_stack(mem, layout, thread, at) == Ok(true),
        Ok(Owner::HolderOf(object)) => monitors::holds(mem, layout, thread, object) == Ok(true),
    }
}

/// Whether the logical thread with this id is on the platform thread of `record`: as the thread
/// itself, or as a virtual thread with its frames. False during a mount or unmount, because the
/// frames are in the heap then.
#[inline]
#[must_use]
pub fn is_id(mem: &Live, layout: &Layout, record: &ThreadRecord, id: u64) -> bool {
    let thread = record.managed_thread();
    let field = |at: u64| match present(at) && thread != 0 {
        true => mem.word(thread.wrapping_add(at)).unwrap_or(0),
        false => 0,
    };
    let is_here = id != 0 && field(layout.thread_owner_id) == id;
    is_here && (id == record.managed_id() || field(layout.extra.cont_entry) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::made_up::source;
    use crate::jvm::made_up::{NOWHERE, Words, live};
    use dwell_recorder::sys::process;
    use dwell_signal::Registration;

    /// Fields of threads: the kernel's id, base and size of the stack, the id. Field of monitors:
    /// the owner.
    fn layout() -> Layout {
        let mut layout = Layout::EMPTY;
        layout.thread_osthread = 8;
        layout.thread_stack_base = 16;
        layout.thread_stack_size = 24;
        layout.osthread_thread_id = 0;
        layout.monitor_owner = 0;
        layout
    }

    #[test]
    fn thread_owns_the_monitor_that_names_it() {
        let kernel = Words::new(&[77, 0]);
        let thread = Words::new(&[0, kernel.at(), 0x9000, 0x1000, 42, 0x8000]);
        let registration = Registration {
            tid: process::own_tid(),
            managed_thread: thread.at(),
            ..Registration::default()
        };
        let record = source().engine.register(&registration).unwrap();
        let mut layout = layout();
        let of = |layout: &Layout, owner| {
            let monitor = Words::new(&[owner]);
            has(&live(), layout, record, monitor.at())
        };
        assert!(of(&layout, thread.at()));
        assert!(!of(&layout, 0), "nobody has it");
        assert!(of(&layout, 0x8ff0), "its stack has the lock");
        assert!(!of(&layout, 0x7ff0), "another's stack");
        layout.thread_owner_id = 32;
        layout.extra.cont_entry = 40;
        assert!(of(&layout, 42) && !of(&layout, 43));
        record.set_managed_id(7);
        assert!(of(&layout, 42), "a virtual thread, with its frames");
        layout.extra.cont_entry = 0;
        assert!(!of(&layout, 42), "it is just being mounted");
        record.set_managed_id(42);
        assert!(of(&layout, 42), "the platform thread itself");
        assert!(!has(&live(), &layout, record, 0));
        assert!(!has(&live(), &layout, record, NOWHERE), "it is gone");
        assert!(is_id(&live(), &layout, record, 42));
        record.set_managed_thread(0);
        assert!(!is_id(&live(), &layout, record, 42));
    }
}

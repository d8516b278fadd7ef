//! Java threads: enumeration, kernel ids, anchors, stacks
//! (src/hotspot/share/runtime/threadSMR.hpp).

use super::layout::{Layout, present};
use super::monitors::{self, Contended};
use crate::memory::{Fault, Memory};
use core::ops::Range;

/// Maximum number of threads visited.
const THREADS_MAX: u64 = 1 << 20;

/// A `JavaFrameAnchor`: the last Java frame of a thread that left Java; sp 0 if it has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    /// Its sp.
    pub sp: u64,
    /// Its pc.
    pub pc: u64,
    /// Its frame pointer; 0 if not recorded.
    pub fp: u64,
}

/// Calls `visit` with each `JavaThread*`. The list is read while the VM runs, so entries may be
/// stale. The caller must check all data read through them.
///
/// # Errors
/// [`Fault`] if the list cannot be read.
pub fn for_each<M: Memory>(
    mem: &M,
    layout: &Layout,
    mut visit: impl FnMut(u64),
) -> Result<(), Fault> {
    if present(layout.threads_list) {
        let list = mem.word(layout.threads_list)?;
        let len = u64::from(mem.u32(list.wrapping_add(layout.threads_list_length))?);
        let threads = mem.word(list.wrapping_add(layout.threads_list_threads))?;
        for i in 0..len.min(THREADS_MAX) {
            visit(mem.word(threads.wrapping_add(i * 8))?);
        }
        return Ok(());
    }
    let mut thread = mem.word(layout.threads_first)?;
    for _ in 0..THREADS_MAX {
        if thread == 0 {
            break;
        }
        visit(thread);
        thread = mem.word(thread.wrapping_add(layout.thread_next))?;
    }
    Ok(())
}

/// The kernel's id of a Java thread.
///
/// # Errors
/// [`Fault`] if the thread cannot be read.
pub fn kernel_id<M: Memory>(mem: &M, layout: &Layout, thread: u64) -> Result<i32, Fault> {
    let osthread = mem.word(thread.wrapping_add(layout.thread_osthread))?;
    mem.i32(osthread.wrapping_add(layout.osthread_thread_id))
}

/// The thread pointer of a Java thread: its `pthread_self`. 0 if unknown.
///
/// # Errors
/// [`Fault`] if the thread cannot be read.
pub fn thread_pointer<M: Memory>(mem: &M, layout: &Layout, thread: u64) -> Result<u64, Fault> {
    if !present(layout.osthread_pthread_id) {
        return Ok(0);
    }
    let osthread = mem.word(thread.wrapping_add(layout.thread_osthread))?;
    mem.word(osthread.wrapping_add(layout.osthread_pthread_id))
}

/// Highest address of a Java thread's stack.
///
/// # Errors
/// [`Fault`] if the thread cannot be read.
pub fn stack_high<M: Memory>(mem: &M, layout: &Layout, thread: u64) -> Result<u64, Fault> {
    mem.word(thread.wrapping_add(layout.thread_stack_base))
}

/// Whether `address` is in the stack of a Java thread.
///
/// # Errors
/// [`Fault`] if the thread cannot be read.
pub fn has_on_stack<M: Memory>(
    mem: &M,
    layout: &Layout,
    thread: u64,
    address: u64,
) -> Result<bool, Fault> {
    let stack = stack(mem, layout, thread)?;
    Ok(stack.contains(&address))
}

/// The addresses of the stack of a Java thread, which do not change; empty if they are unknown.
///
/// # Errors
/// [`Fault`] if the thread cannot be read.
pub fn stack<M: Memory>(mem: &M, layout: &Layout, thread: u64) -> Result<Range<u64>, Fault> {
    if !present(layout.thread_stack_size) {
        return Ok(0..0);
    }
    let high = stack_high(mem, layout, thread)?;
    let size = mem.word(thread.wrapping_add(layout.thread_stack_size))?;
    Ok(high.saturating_sub(size)..high)
}

/// The anchor of a Java thread: its last Java frame while it does not run Java code.
///
/// # Errors
/// [`Fault`] if the thread cannot be read.
pub fn anchor<M: Memory>(mem: &M, layout: &Layout, thread: u64) -> Result<Anchor, Fault> {
    anchor_at(mem, layout, thread.wrapping_add(layout.thread_anchor))
}

/// Reads a `JavaFrameAnchor`; a missing pc is the word below sp.
///
/// # Errors
/// [`Fault`] if it cannot be read.
pub fn anchor_at<M: Memory>(mem: &M, layout: &Layout, addr: u64) -> Result<Anchor, Fault> {
    let sp = mem.word(addr.wrapping_add(layout.anchor_sp))?;
    let mut pc = mem.word(addr.wrapping_add(layout.anchor_pc))?;
    let fp = mem.word(addr.wrapping_add(layout.anchor_fp))?;
    if sp != 0 && pc == 0 {
        pc = mem.word(sp.wrapping_sub(8))?;
    }
    Ok(Anchor { sp, pc, fp })
}

/// The state of a Java thread, from a few words of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its state (`JavaThreadState`).
    pub state: u64,
    /// 1 if it enters a monitor, 2 if it waits on one, 0 otherwise.
    pub monitor_use: u64,
    /// That `ObjectMonitor*`, and the JVM's record of its owner; 0 without a monitor.
    pub monitor: u64,
    /// See `monitor`.
    pub owner: u64,
    /// The sp of its last Java frame; 0 while it runs Java code.
    pub sp: u64,
    /// The pc of that frame.
    pub pc: u64,
}

/// The state of a Java thread. Equal results at two times do not prove that the thread is at the
/// same place.
///
/// # Errors
/// [`Fault`] if the thread cannot be read.
pub fn place<M: Memory>(mem: &M, layout: &Layout, thread: u64) -> Result<Place, Fault> {
    let state = u64::from(mem.u32(thread.wrapping_add(layout.thread_state))?);
    let (monitor_use, monitor) = match monitors::contended(mem, layout, thread)? {
        None => (0, 0),
        Some(Contended::Entering(monitor)) => (1, monitor),
        Some(Contended::Waiting(monitor)) => (2, monitor),
    };
    // The monitor may be freed by now.
    let owner = match present(layout.monitor_owner) && monitor_use == 1 {
        true => mem
            .word(monitor.wrapping_add(layout.monitor_owner))
            .unwrap_or(0),
        false => 0,
    };
    let anchor = anchor(mem, layout, thread)?;
    Ok(Place {
        state,
        monitor_use,
        monitor,
        owner,
        sp: anchor.sp,
        pc: anchor.pc,
    })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::hotspot::test_memory::Bytes;
    use std::vec::Vec;

    fn all(mem: &Bytes, layout: &Layout) -> Result<Vec<u64>, Fault> {
        let mut seen = Vec::new();
        for_each(mem, layout, |thread| seen.push(thread)).map(|()| seen)
    }

    #[test]
    fn threads_are_in_an_array_or_in_a_chain() {
        let mem = Bytes::of_words(&[
            (0x100, &[0x200]),
            (0x200, &[0, 0x9_0000_0003, 0x300]),
            (0x300, &[0x1000, 0x2000, 0x3000, 0x4000]),
            (0x400, &[0x500]),
            (0x500, &[0, 0x600]),
            (0x600, &[0, 0]),
        ]);
        let mut layout = Layout::EMPTY;
        (layout.threads_first, layout.thread_next) = (0x400, 8);
        assert_eq!(all(&mem, &layout), Ok([0x500, 0x600].to_vec()));
        layout.threads_list = 0x100;
        (layout.threads_list_length, layout.threads_list_threads) = (8, 16);
        assert_eq!(all(&mem, &layout), Ok([0x1000, 0x2000, 0x3000].to_vec()));
        assert!(all(&Bytes::default(), &layout).is_err());
    }

    #[test]
    fn thread_numbers_and_anchor_are_read() {
        let mut layout = Layout::EMPTY;
        (layout.thread_osthread, layout.osthread_thread_id) = (8, 4);
        let mem = Bytes::of_words(&[
            (0x1000, &[0, 0x2000, 0x7000, 0x7100, 0x7200]),
            (0x2000, &[77 << 32 | 5, 0x7fff_0000]),
            (0x3000, &[0x7008, 0, 0x7200]),
            (0x4000, &[0, 0, 0x7200]),
            (0x7000, &[0x5555, 0]),
        ]);
        assert_eq!(kernel_id(&mem, &layout, 0x1000), Ok(77));
        assert_eq!(thread_pointer(&mem, &layout, 0x1000), Ok(0), "not told");
        layout.osthread_pthread_id = 8;
        assert_eq!(thread_pointer(&mem, &layout, 0x1000), Ok(0x7fff_0000));
        layout.thread_anchor = 16;
        (layout.anchor_sp, layout.anchor_pc, layout.anchor_fp) = (0, 8, 16);
        let expected = |sp, pc, fp| Ok(Anchor { sp, pc, fp });
        assert_eq!(
            anchor(&mem, &layout, 0x1000),
            expected(0x7000, 0x7100, 0x7200)
        );
        assert_eq!(
            anchor_at(&mem, &layout, 0x3000),
            expected(0x7008, 0x5555, 0x7200)
        );
        assert_eq!(anchor_at(&mem, &layout, 0x4000), expected(0, 0, 0x7200));
    }

    #[test]
    fn place_has_the_monitor_and_its_owner() {
        let mut layout = Layout::EMPTY;
        (layout.thread_state, layout.thread_anchor) = (8, 16);
        (layout.anchor_sp, layout.anchor_pc, layout.anchor_fp) = (0, 8, 16);
        (layout.thread_pending_monitor, layout.thread_waiting_monitor) = (40, 48);
        let mem = Bytes::of_words(&[
            (0x1000, &[0, 10, 0x7000, 0x7100, 0x7200, 0x9000, 0]),
            (0x2000, &[0, 10, 0x7000, 0x7100, 0x7200, 0, 0x9000]),
            (0x3000, &[0, 8, 0, 0, 0, 0, 0]),
            (0x5000, &[0, 10, 0x7000, 0x7100, 0x7200, 0xdead_0000, 0]),
            (0x9000, &[0, 0x1234]),
        ]);
        let expected = |state, monitor_use, monitor, owner, sp, pc| Place {
            state,
            monitor_use,
            monitor,
            owner,
            sp,
            pc,
        };
        let entering = |owner| expected(10, 1, 0x9000, owner, 0x7000, 0x7100);
        assert_eq!(place(&mem, &layout, 0x1000), Ok(entering(0)));
        layout.monitor_owner = 8;
        let of = |thread| place(&mem, &layout, thread);
        assert_eq!(of(0x1000), Ok(entering(0x1234)));
        assert_eq!(of(0x2000), Ok(expected(10, 2, 0x9000, 0, 0x7000, 0x7100)));
        assert_eq!(of(0x3000), Ok(expected(8, 0, 0, 0, 0, 0)));
        let freed = expected(10, 1, 0xdead_0000, 0, 0x7000, 0x7100);
        assert_eq!(of(0x5000), Ok(freed));
        assert!(of(0x4000).is_err());
    }

    #[test]
    fn a_stack_ends_where_the_thread_says() {
        let mut layout = Layout::EMPTY;
        layout.thread_stack_base = 8;
        let mut words = [0u8; 24];
        words[8..16].copy_from_slice(&0x9000u64.to_le_bytes());
        words[16..].copy_from_slice(&0x2000u64.to_le_bytes());
        let mem = Bytes::at(0x100, &words);
        let has = |layout: &Layout, address| has_on_stack(&mem, layout, 0x100, address);
        assert_eq!(has(&layout, 0x8000), Ok(false), "its size is not known");
        layout.thread_stack_size = 16;
        for (address, is_there) in [(0x6ff8, false), (0x7000, true), (0x8ff8, true)] {
            assert_eq!(has(&layout, address), Ok(is_there), "{address:x}");
        }
        assert_eq!(has(&layout, 0x9000), Ok(false));
        assert!(has_on_stack(&mem, &layout, 0x800, 0x8000).is_err());
    }
}

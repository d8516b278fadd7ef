//! Java threads: enumeration, kernel ids, anchors, stacks
//! (src/hotspot/share/runtime/threadSMR.hpp).

use super::layout::{Layout, present};
use crate::memory::{Fault, Memory};
use crate::walk::Anchor;

/// Threads visited at most.
const THREADS_MAX: u64 = 1 << 20;

/// Calls `visit` with each `JavaThread*`. The list is read while the VM runs: entries may be stale,
/// so what is read through them must be checked.
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

/// Highest address of a Java thread's stack.
///
/// # Errors
/// [`Fault`] if the thread cannot be read.
pub fn stack_high<M: Memory>(mem: &M, layout: &Layout, thread: u64) -> Result<u64, Fault> {
    mem.word(thread.wrapping_add(layout.thread_stack_base))
}

/// The anchor of a Java thread: its last Java frame when it is not running Java code.
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

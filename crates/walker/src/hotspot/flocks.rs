//! Threads that a thread has forked in a `StructuredTaskScope`. Each such scope is a `ThreadFlock`.
//! The thread that opened it has a list of its scopes, the innermost first (java.base,
//! jdk/internal/misc/ThreadFlock.java, jdk/internal/vm/StackableScope.java; 21 and later).
//!
//! A collector may move the objects during the reads. Nothing here can crash or run forever. The
//! caller must check the class of each result.

use super::continuation::reference;
use super::layout::{ABSENT, Layout, present};
use crate::memory::{Fault, Memory};

/// Maximum number of scopes followed per thread.
pub const SCOPES_MAX: u32 = 64;

/// Offsets in these classes, in bytes; [`ABSENT`] if unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlockFields {
    /// `Thread.headStackableScopes`.
    pub head: u64,
    /// `StackableScope.previous`.
    pub previous: u64,
    /// `ThreadFlock$ThreadContainerImpl.flock`.
    pub flock: u64,
    /// `ThreadFlock.threads`.
    pub threads: u64,
}

impl FlockFields {
    /// No offset is known.
    pub const EMPTY: FlockFields = FlockFields {
        head: ABSENT,
        previous: ABSENT,
        flock: ABSENT,
        threads: ABSENT,
    };

    /// Whether all offsets are known.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let all = [self.head, self.previous, self.flock, self.threads];
        all.into_iter().all(present)
    }
}

/// Visits the sets of threads that the thread with this object has forked. `is_container` says
/// whether a scope is one that has threads. Returns whether there is any scope.
///
/// # Errors
/// [`Fault`] if an object cannot be read.
pub fn for_each<M: Memory>(
    mem: &M,
    layout: &Layout,
    fields: &FlockFields,
    thread: u64,
    mut is_container: impl FnMut(u64) -> Result<bool, Fault>,
    mut visit: impl FnMut(u64),
) -> Result<bool, Fault> {
    if !fields.is_known() || thread == 0 {
        return Ok(false);
    }
    let head = reference(mem, layout, thread.wrapping_add(fields.head))?;
    let mut scope = head;
    for _ in 0..SCOPES_MAX {
        if scope == 0 {
            break;
        }
        if is_container(scope)? {
            let set = threads_of(mem, layout, fields, scope)?;
            if set != 0 {
                visit(set);
            }
        }
        scope = reference(mem, layout, scope.wrapping_add(fields.previous))?;
    }
    Ok(head != 0)
}

/// The set of threads of a scope's container; 0 without one.
///
/// # Errors
/// [`Fault`] if an object cannot be read.
pub fn threads_of<M: Memory>(
    mem: &M,
    layout: &Layout,
    fields: &FlockFields,
    container: u64,
) -> Result<u64, Fault> {
    let flock = reference(mem, layout, container.wrapping_add(fields.flock))?;
    match flock {
        0 => Ok(0),
        _ => reference(mem, layout, flock.wrapping_add(fields.threads)),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::hotspot::test_memory::Bytes;
    use std::vec::Vec;

    const FIELDS: FlockFields = FlockFields {
        head: 16,
        previous: 8,
        flock: 16,
        threads: 8,
    };
    const THREAD: u64 = 0x1000;

    fn words(values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    /// The visited sets, if scopes from 0x3000 on have threads.
    fn shown(mem: &Bytes) -> Result<(bool, Vec<u64>), Fault> {
        let mut layout = Layout::EMPTY;
        layout.extra.chunk.narrow_oops = false;
        let mut sets = Vec::new();
        let any = for_each(
            mem,
            &layout,
            &FIELDS,
            THREAD,
            |scope| Ok(scope >= 0x3000),
            |set| sets.push(set),
        )?;
        Ok((any, sets))
    }

    #[test]
    fn scopes_with_threads_show_them() {
        let mut mem = Bytes::at(THREAD, &words(&[0, 0, 0x3000]));
        mem.add(0x3000, &words(&[0, 0x2000, 0x4000]));
        mem.add(0x2000, &words(&[0, 0x3100, 0]));
        mem.add(0x3100, &words(&[0, 0x3200, 0x4100]));
        mem.add(0x3200, &words(&[0, 0, 0]));
        mem.add(0x4000, &words(&[0, 0x50]));
        mem.add(0x4100, &words(&[0, 0x51]));
        assert_eq!(shown(&mem), Ok((true, [0x50, 0x51].to_vec())));
    }

    #[test]
    fn garbage_ends_and_says_so() {
        let none = Bytes::at(THREAD, &words(&[0, 0, 0]));
        assert_eq!(shown(&none), Ok((false, Vec::new())));
        // A cyclic list.
        let mut mem = Bytes::at(THREAD, &words(&[0, 0, 0x3000]));
        mem.add(0x3000, &words(&[0, 0x3000, 0x4000]));
        mem.add(0x4000, &words(&[0, 0x50]));
        let all = shown(&mem).map(|(_, sets)| sets.len());
        assert_eq!(all, Ok(SCOPES_MAX as usize));
        // An unreadable scope.
        assert!(shown(&Bytes::at(THREAD, &words(&[0, 0, 0x3000]))).is_err());
        // A JDK without scopes.
        let layout = Layout::EMPTY;
        let absent = FlockFields::EMPTY;
        let any = for_each(&none, &layout, &absent, THREAD, |_| Ok(true), |_| {});
        assert_eq!(any, Ok(false));
    }
}

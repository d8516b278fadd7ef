//! Safepoints: whether one is being reached or lasts, its operation, and the late threads
//! (src/hotspot/share/runtime/safepoint.cpp).
//!
//! The tables for the serviceability agent have none of this; it is found by libjvm's own symbols.
//! Debian's, Oracle's and most other builds keep these, and some strip them. The JVM records data
//! of each safepoint (`SafepointTracing`) since 14.

use super::layout::Layout;
use super::threads;
use crate::memory::{Fault, Memory};

/// Maximum length of an operation's name, in bytes.
pub const NAME_MAX: usize = 64;

/// The VM's state regarding safepoints (`SafepointSynchronize::SynchronizeState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No safepoint.
    Running,
    /// The VM waits for threads to stop.
    Reaching,
    /// All threads have stopped.
    Reached,
}

/// The JVM's record of its last safepoint; times on the monotonic clock, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// Number of the safepoint.
    pub id: u64,
    /// `VM_Operation::VMOp_Type`.
    pub operation: u32,
    /// Time of the request.
    pub began_ns: u64,
    /// Time when all threads had stopped.
    pub reached_ns: u64,
    /// Time when the threads continued.
    pub ended_ns: u64,
    /// Time between the end of the previous safepoint and this request.
    pub ran_ns: u64,
    /// Number of threads.
    pub threads: u32,
    /// Number of threads that ran at the time of the request.
    pub running: u32,
}

/// Addresses of these data in libjvm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Safepoints {
    state: u64,
    tracing: Option<Tracing>,
    barrier: Option<u64>,
    operation: Option<u64>,
    names: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tracing {
    id: u64,
    operation: u64,
    began: u64,
    reached: u64,
    ended: u64,
    ran: u64,
    threads: u64,
    running: u64,
}

impl Safepoints {
    /// Finds the data by symbols; `None` if libjvm lacks them.
    #[must_use]
    pub fn find(find: &dyn Fn(&str) -> Option<u64>) -> Option<Safepoints> {
        let state = find("_ZN20SafepointSynchronize6_stateE")?;
        let tracing = || {
            Some(Tracing {
                id: find("_ZN20SafepointSynchronize13_safepoint_idE")?,
                operation: find("_ZN16SafepointTracing13_current_typeE")?,
                began: find("_ZN16SafepointTracing29_last_safepoint_begin_time_nsE")?,
                reached: find("_ZN16SafepointTracing28_last_safepoint_sync_time_nsE")?,
                ended: find("_ZN16SafepointTracing27_last_safepoint_end_time_nsE")?,
                ran: find("_ZN16SafepointTracing17_last_app_time_nsE")?,
                threads: find("_ZN16SafepointTracing12_nof_threadsE")?,
                running: find("_ZN16SafepointTracing12_nof_runningE")?,
            })
        };
        Some(Safepoints {
            state,
            tracing: tracing(),
            barrier: find("_ZN20SafepointSynchronize13_wait_barrierE"),
            operation: find("_ZN8VMThread17_cur_vm_operationE"),
            names: find("_ZN12VM_Operation6_namesE"),
        })
    }

    /// Whether the JVM records its safepoints.
    #[must_use]
    pub fn are_noted(&self) -> bool {
        self.tracing.is_some()
    }

    /// The present state of the VM.
    ///
    /// # Errors
    /// [`Fault`] if that cannot be read.
    pub fn state<M: Memory>(&self, mem: &M) -> Result<State, Fault> {
        Ok(match mem.u32(self.state)? {
            0 => State::Running,
            1 => State::Reaching,
            _ => State::Reached,
        })
    }

    /// The futex on which threads wait for the end: 0 without a safepoint, else its number. The
    /// waiting threads are woken when it becomes 0 (`LinuxWaitBarrier::_futex_barrier`). It comes
    /// after the barrier's two empty bases of the same class, which must not share an address.
    #[must_use]
    pub fn futex<M: Memory>(&self, mem: &M) -> Option<u64> {
        const OFFSET: u64 = 4;
        let barrier = mem.word(self.barrier?).ok().filter(|at| *at != 0)?;
        Some(barrier.wrapping_add(OFFSET))
    }

    /// Address of the current operation; `None` if it is unknown or there is no operation.
    #[must_use]
    pub fn under_way<M: Memory>(&self, mem: &M) -> Option<u64> {
        mem.word(self.operation?).ok().filter(|at| *at != 0)
    }

    /// The `Thread*` that requested the current operation; `None` if it is unknown or there is no
    /// operation. An operation begins with its class's table and that thread
    /// (src/hotspot/share/runtime/vmOperations.hpp).
    #[must_use]
    pub fn asked_by<M: Memory>(&self, mem: &M) -> Option<u64> {
        let operation = self.under_way(mem)?;
        let thread = mem.word(operation.wrapping_add(8)).ok()?;
        (thread != 0).then_some(thread)
    }

    /// The record of the last safepoint, or of the current one. For the current one, later times
    /// are 0, and the number is still the previous one until all threads have stopped. `None` if
    /// the JVM does not record safepoints.
    ///
    /// # Errors
    /// [`Fault`] if it cannot be read.
    pub fn noted<M: Memory>(&self, mem: &M) -> Result<Option<Noted>, Fault> {
        let Some(at) = &self.tracing else {
            return Ok(None);
        };
        Ok(Some(Noted {
            id: mem.word(at.id)?,
            operation: mem.u32(at.operation)?,
            began_ns: mem.word(at.began)?,
            reached_ns: mem.word(at.reached)?,
            ended_ns: mem.word(at.ended)?,
            ran_ns: mem.word(at.ran)?,
            threads: mem.u32(at.threads)?,
            running: mem.u32(at.running)?,
        }))
    }

    /// An operation's name; empty if unknown.
    #[must_use]
    pub fn operation<'b, M: Memory>(
        &self,
        mem: &M,
        operation: u32,
        buf: &'b mut [u8; NAME_MAX],
    ) -> &'b str {
        match self.names {
            Some(names) => operation_name(mem, names, operation, buf),
            None => "",
        }
    }
}

/// An operation's name by the table of all names (`VM_Operation::_names`); empty if unknown.
#[must_use]
pub fn operation_name<'b, M: Memory>(
    mem: &M,
    names: u64,
    operation: u32,
    buf: &'b mut [u8; NAME_MAX],
) -> &'b str {
    /// More operations than any version has.
    const OPERATIONS_MAX: u32 = 512;
    let place = (operation < OPERATIONS_MAX).then(|| names.wrapping_add(u64::from(operation) * 8));
    let Some(Ok(name)) = place.map(|at| mem.word(at)) else {
        return "";
    };
    let mut len = 0;
    for (place, at) in buf.iter_mut().zip(0u64..) {
        match mem.u8(name.wrapping_add(at)) {
            Ok(byte) if byte.is_ascii_graphic() => *place = byte,
            _ => break,
        }
        len += 1;
    }
    buf.get(..len)
        .and_then(|text| core::str::from_utf8(text).ok())
        .unwrap_or("")
}

/// The state of a late thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// It runs Java code.
    InJava,
    /// It is in the VM.
    InVm,
}

/// Whether a Java thread has not stopped yet. A thread in native code, or a blocked one, counts as
/// stopped.
///
/// # Errors
/// [`Fault`] if the thread cannot be read.
pub fn late<M: Memory>(mem: &M, layout: &Layout, thread: u64) -> Result<Option<Late>, Fault> {
    let state = u64::from(mem.u32(thread.wrapping_add(layout.thread_state))?);
    // Up to 27 each state is followed by a transition state. In those from native code and from
    // blocked, a thread stops without a request.
    let is = |of: u64| state == of || layout.state_in_java == 8 && state == of.wrapping_add(1);
    Ok(if is(layout.state_in_java) {
        Some(Late::InJava)
    } else if is(layout.state_in_vm) {
        Some(Late::InVm)
    } else {
        None
    })
}

/// Calls `visit` with each `JavaThread*` that has not stopped yet.
///
/// # Errors
/// [`Fault`] if the list of threads cannot be read.
pub fn for_each_late<M: Memory>(
    mem: &M,
    layout: &Layout,
    mut visit: impl FnMut(u64, Late),
) -> Result<(), Fault> {
    threads::for_each(mem, layout, |thread| {
        if let Ok(Some(late)) = late(mem, layout, thread) {
            visit(thread, late);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    const NAMES: [&str; 12] = [
        "_ZN20SafepointSynchronize6_stateE",
        "_ZN20SafepointSynchronize13_safepoint_idE",
        "_ZN16SafepointTracing13_current_typeE",
        "_ZN16SafepointTracing29_last_safepoint_begin_time_nsE",
        "_ZN16SafepointTracing28_last_safepoint_sync_time_nsE",
        "_ZN16SafepointTracing27_last_safepoint_end_time_nsE",
        "_ZN16SafepointTracing12_nof_threadsE",
        "_ZN16SafepointTracing12_nof_runningE",
        "_ZN12VM_Operation6_namesE",
        "_ZN20SafepointSynchronize13_wait_barrierE",
        "_ZN16SafepointTracing17_last_app_time_nsE",
        "_ZN8VMThread17_cur_vm_operationE",
    ];

    fn place(name: &str) -> Option<u64> {
        let index = NAMES.iter().position(|known| *known == name)?;
        Some(0x1000 + 8 * index as u64)
    }

    #[test]
    fn safepoint_records_of_the_vm_are_read() {
        let found = Safepoints::find(&place).unwrap();
        let mut mem = Bytes::default();
        for (name, value) in NAMES.into_iter().zip([2u64, 7, 0, 100, 130, 90, 12, 3]) {
            mem.add(place(name).unwrap(), &value.to_le_bytes());
        }
        // The table of names: one pointer, to the name of operation 0.
        mem.add(place(NAMES[8]).unwrap(), &0x2000u64.to_le_bytes());
        mem.add(place(NAMES[9]).unwrap(), &0x3000u64.to_le_bytes());
        mem.add(place(NAMES[10]).unwrap(), &55u64.to_le_bytes());
        mem.add(0x2000, b"G1CollectFull\0junk");
        mem.add(place(NAMES[11]).unwrap(), &0x4000u64.to_le_bytes());
        mem.add(0x4000, &[1u64, 0x5550].map(u64::to_le_bytes).concat());
        assert_eq!(found.state(&mem), Ok(State::Reached));
        let noted = found.noted(&mem).unwrap().unwrap();
        let expected = Noted {
            id: 7,
            operation: 0,
            began_ns: 100,
            reached_ns: 130,
            ended_ns: 90,
            ran_ns: 55,
            threads: 12,
            running: 3,
        };
        assert_eq!(noted, expected);
        assert_eq!(found.futex(&mem), Some(0x3004));
        let mut buf = [0; NAME_MAX];
        assert_eq!(found.operation(&mem, 0, &mut buf), "G1CollectFull");
        assert_eq!(found.operation(&mem, 5000, &mut buf), "");
        assert_eq!(found.asked_by(&mem), Some(0x5550));
    }

    #[test]
    fn jvm_without_safepoint_records_has_a_state() {
        let only_state = |name: &str| (name == NAMES[0]).then_some(0x1000);
        let found = Safepoints::find(&only_state).unwrap();
        let mem = Bytes::at(0x1000, &[1]);
        assert_eq!(found.state(&mem), Ok(State::Reaching));
        assert_eq!(found.noted(&mem), Ok(None));
        assert_eq!((found.futex(&mem), found.asked_by(&mem)), (None, None));
        assert_eq!(Safepoints::find(&|_| None), None);
    }

    #[test]
    fn thread_in_java_or_vm_is_late() {
        let mut layout = Layout::EMPTY;
        (
            layout.thread_state,
            layout.threads_first,
            layout.thread_next,
        ) = (4, 0x900, 8);
        (layout.state_in_java, layout.state_in_vm) = (8, 6);
        let of = |layout: &Layout, state: u64| {
            late(
                &Bytes::at(0x1000, &(state << 32 | 8).to_le_bytes()),
                layout,
                0x1000,
            )
            .unwrap()
        };
        let all = |layout: &Layout| [4, 5, 6, 7, 8, 9, 10].map(|state| of(layout, state));
        let (java, vm) = (Some(Late::InJava), Some(Late::InVm));
        assert_eq!(all(&layout), [None, None, vm, vm, java, java, None]);
        // From 28 on there are no transition states.
        (layout.state_in_java, layout.state_in_vm) = (4, 6);
        assert_eq!(all(&layout), [java, None, vm, None, None, None, None]);
        let mem = Bytes::of_words(&[
            (0x900, &[0x1000]),
            (0x1000, &[4 << 32, 0x2000]),
            (0x2000, &[5 << 32, 0x3000]),
            (0x3000, &[6 << 32, 0]),
        ]);
        let (mut seen, mut count) = ([(0, Late::InJava); 3], 0);
        for_each_late(&mem, &layout, |thread, late| {
            seen[count] = (thread, late);
            count += 1;
        })
        .unwrap();
        assert_eq!(
            seen[..count],
            [(0x1000, Late::InJava), (0x3000, Late::InVm)]
        );
    }
}

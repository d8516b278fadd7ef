//! Virtual threads that are not mounted: their waits, and the location of their frames (java.base,
//! java/lang/VirtualThread.java).

use super::continuation::{self, Chunk, reference};
use super::layout::{ABSENT, Layout, present};
use crate::memory::{Fault, Memory};

/// Values of `VirtualThread.state`. They differ between versions, so they are read from the class.
/// `None`: this version has no such state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct States {
    /// Has never run.
    pub started: Option<i32>,
    /// Waits to be unparked; without a timeout and with one.
    pub parked: [Option<i32>; 2],
    /// Waits to enter a monitor (24 and later).
    pub blocked: Option<i32>,
    /// Waits in `Object.wait`; without a timeout and with one (24 and later).
    pub waits: [Option<i32>; 2],
    /// Waits for a carrier: unparked, has yielded, got its monitor, or (21.0.0) all of these.
    pub ready: [Option<i32>; 4],
    /// A bit that may be set in addition.
    pub suspended: Option<i32>,
}

/// Facts about class `VirtualThread`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualThreadFields {
    /// `VirtualThread.state`.
    pub state: u64,
    /// `VirtualThread.cont`.
    pub cont: u64,
    /// `VirtualThread.carrierThread`.
    pub carrier: u64,
    /// Values of `state`.
    pub states: States,
}

impl VirtualThreadFields {
    /// Nothing is known.
    pub const EMPTY: VirtualThreadFields = VirtualThreadFields {
        state: ABSENT,
        cont: ABSENT,
        carrier: ABSENT,
        states: States {
            started: None,
            parked: [None; 2],
            blocked: None,
            waits: [None; 2],
            ready: [None; 4],
            suspended: None,
        },
    };

    /// Whether enough is known to read virtual threads.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let fields = [self.state, self.cont, self.carrier];
        fields.into_iter().all(present) && self.states.parked != [None; 2]
    }
}

/// The reason why a virtual thread without a carrier waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// For a carrier.
    Carrier,
    /// To be unparked.
    Park,
    /// To enter a monitor.
    Monitor,
    /// To be notified.
    Notification,
}

/// A virtual thread without a carrier, as it was at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unmounted {
    /// What it waits for.
    pub wait: Wait,
    /// Its youngest chunk with frames; none if it has never run.
    pub chunk: Option<Chunk>,
    state: i32,
}

/// The virtual thread `thread`; `None` if it is mounted, being mounted or unmounted, or not alive.
/// In these cases the platform thread shows its state. `is_chunk` says whether an object can have
/// frames: a collector may have moved it.
///
/// # Errors
/// [`Fault`] if an object cannot be read, or if the frames that its state implies are missing.
pub fn unmounted<M: Memory>(
    mem: &M,
    layout: &Layout,
    fields: &VirtualThreadFields,
    thread: u64,
    is_chunk: impl FnOnce(u64) -> Result<bool, Fault>,
) -> Result<Option<Unmounted>, Fault> {
    let state = mem.i32(thread.wrapping_add(fields.state))?;
    let Some(wait) = wait_of(&fields.states, state) else {
        return Ok(None);
    };
    if reference(mem, layout, thread.wrapping_add(fields.carrier))? != 0 {
        return Ok(None);
    }
    let cont = reference(mem, layout, thread.wrapping_add(fields.cont))?;
    let tail = reference(mem, layout, cont.wrapping_add(layout.extra.chunk.cont_tail))?;
    if tail != 0 && !is_chunk(tail)? {
        return Err(Fault { addr: tail });
    }
    let chunk = continuation::filled_chunk(mem, layout, tail)?;
    if chunk.is_none() && !is_new(&fields.states, state) {
        return Err(Fault { addr: tail });
    }
    Ok(Some(Unmounted { wait, chunk, state }))
}

/// Whether a thread in `state` has never run. Only such an unmounted thread has no frames.
fn is_new(states: &States, state: i32) -> bool {
    states.started == Some(state & !states.suspended.unwrap_or(0))
}

/// Words read of an entry in a monitor's list (`ObjectWaiter`: the next and the previous one, the
/// platform thread, a handle of the virtual thread, the monitor).
const ENTRY_WORDS: u64 = 6;

/// The `ObjectMonitor*` that the virtual thread `thread`, which has no carrier, waits to enter or
/// to be notified by; `None` if unknown. The address of its entry in the monitor's list is in its
/// object at `entry_at` (24 and later). The monitor comes after the handle that leads back to the
/// thread, so no other word is mistaken for it.
///
/// # Errors
/// [`Fault`] if the entry cannot be read.
pub fn monitor<M: Memory>(
    mem: &M,
    layout: &Layout,
    entry_at: u64,
    thread: u64,
) -> Result<Option<u64>, Fault> {
    if !present(entry_at) {
        return Ok(None);
    }
    let entry = mem.word(thread.wrapping_add(entry_at))?;
    if entry == 0 || entry % 8 != 0 {
        return Ok(None);
    }
    let word = |index: u64| mem.word(entry.wrapping_add(8 * index));
    for index in 0..ENTRY_WORDS {
        let handle = word(index)?;
        let is_address = handle != 0 && handle % 8 == 0;
        if is_address && continuation::handle(mem, layout, handle) == Ok(thread) {
            return Ok(Some(word(index + 1)?).filter(|monitor| *monitor != 0));
        }
    }
    Ok(None)
}

fn wait_of(states: &States, state: i32) -> Option<Wait> {
    let state = Some(state & !states.suspended.unwrap_or(0));
    if states.parked.contains(&state) {
        Some(Wait::Park)
    } else if states.started == state || states.ready.contains(&state) {
        Some(Wait::Carrier)
    } else if states.blocked == state {
        Some(Wait::Monitor)
    } else if states.waits.contains(&state) {
        Some(Wait::Notification)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::hotspot::test_memory::Bytes;
    use std::vec::Vec;

    #[test]
    fn an_entry_that_leads_back_to_its_thread_names_the_monitor() {
        const THREAD: u64 = 0x8000;
        const ENTRY: u64 = 0x1000;
        const MONITOR: u64 = 0x7f00;
        let words = |values: &[u64]| -> Vec<u8> {
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        };
        let found = |entry: u64, back: u64, entry_at: u64| {
            let mut mem = Bytes::at(THREAD, &words(&[0, entry]));
            // The handle of the next entry belongs to another thread, and the previous entry cannot
            // be read.
            mem.add(
                ENTRY,
                &words(&[0x2000, 0xdead_0000, 0, 0x3000, MONITOR, 0, 0]),
            );
            mem.add(0x2000, &words(&[0, ENTRY]));
            mem.add(0x3000, &words(&[back]));
            monitor(&mem, &Layout::EMPTY, entry_at, THREAD)
        };
        assert_eq!(found(ENTRY, THREAD, 8), Ok(Some(MONITOR)));
        assert_eq!(found(ENTRY, THREAD + 8, 8), Ok(None), "another thread's");
        assert_eq!(found(0, THREAD, 8), Ok(None), "it waits for none");
        assert_eq!(found(ENTRY + 1, THREAD, 8), Ok(None));
        assert_eq!(found(ENTRY, THREAD, ABSENT), Ok(None), "an older JDK");
        assert!(found(0x9_0000, THREAD, 8).is_err(), "no memory");
    }

    #[test]
    fn state_determines_the_wait() {
        let states = States {
            started: Some(1),
            parked: [Some(4), Some(7)],
            blocked: Some(13),
            waits: [Some(16), Some(18)],
            ready: [Some(9), Some(11), Some(14), None],
            suspended: Some(256),
        };
        let of = |state| wait_of(&states, state);
        assert_eq!(of(4), Some(Wait::Park));
        assert_eq!(of(7 | 256), Some(Wait::Park));
        assert_eq!(of(1), Some(Wait::Carrier));
        assert_eq!(of(14), Some(Wait::Carrier));
        assert_eq!(of(13), Some(Wait::Monitor));
        assert_eq!(of(18), Some(Wait::Notification));
        for mounted_or_dead in [0, 2, 3, 5, 10, 99] {
            assert_eq!(of(mounted_or_dead), None);
        }
        assert!(is_new(&states, 1) && is_new(&states, 1 | 256));
        for has_run in [4, 7 | 256, 9, 11, 13, 14, 16] {
            assert!(!is_new(&states, has_run), "{has_run}");
        }
        // A version without some of them.
        let early = States {
            parked: [Some(5), None],
            ready: [Some(2), None, None, None],
            ..States::default()
        };
        assert_eq!(wait_of(&early, 5), Some(Wait::Park));
        assert_eq!(wait_of(&early, 2), Some(Wait::Carrier));
        assert_eq!(wait_of(&early, 13), None);
    }
}

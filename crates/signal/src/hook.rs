//! Hooks by which the agent adds to a snapshot: their types, and the unfinished snapshot as they
//! see it. Knows no engine, and not when a hook is called: that is the task of `capture`.

use crate::arch;
use crate::load::Live;
use crate::record::ThreadRecord;
use crate::slots::{
    CHUNKS_MAX, ChunkCopy, LOGICAL_NAME_MAX, OwnedSlot, SlotHeader, SlotPool, WalkTarget,
};
use dwell_context::Context;

/// A larger chunk is not copied, so that a handler takes no longer than it must. It may well be an
/// object whose size was read while a collector moved it.
const CHUNK_MAX_BYTES: u32 = 1 << 20;

/// The agent's additions to a snapshot, called in the handler after the stack has been copied.
///
/// Must be safe in a signal handler: no allocation, no locks, no panics, no thread-local storage,
/// no calls into the runtime, all memory read through [`Capture::live`], all loops bounded, little
/// stack. `xtask handler-graph` checks it if its symbol is called `dwell_*_hook`.
///
/// It is `extern "C"` because such functions cannot unwind: otherwise the handler would have to
/// deal with that.
pub type Extra = extern "C" fn(&mut Capture<'_>);

/// Walks a thread that stands still, called in the handler or by the walking thread. The rules for
/// [`Extra`] apply.
pub type WalkHook = extern "C" fn(&mut WalkTarget<'_>);

/// An unfinished snapshot, for the agent's hook.
pub struct Capture<'a> {
    pub(crate) slot: &'a mut OwnedSlot,
    pub(crate) pool: &'a SlotPool,
    pub(crate) record: &'a ThreadRecord,
    pub(crate) live: Live,
    /// Whether the thread will have continued when the stack is walked.
    pub(crate) copying: bool,
}

impl Capture<'_> {
    /// The thread's record.
    #[inline]
    #[must_use]
    pub fn record(&self) -> &ThreadRecord {
        self.record
    }

    /// The process's memory, fault-tolerant.
    #[inline]
    #[must_use]
    pub fn live(&self) -> Live {
        self.live
    }

    /// The snapshot so far.
    #[inline]
    pub fn header(&mut self) -> &SlotHeader {
        self.slot.header()
    }

    /// The thread's own thread pointer; 0 if it is not set.
    #[inline]
    #[must_use]
    pub fn thread_pointer(&self) -> u64 {
        // SAFETY: `live` proves that the fault handler is installed.
        unsafe { arch::thread_pointer() }
    }

    /// Notes which logical thread is mounted.
    #[inline]
    pub fn set_logical_id(&mut self, id: u64) {
        self.slot.header().logical_id = id;
    }

    /// Notes where the mounted continuation was entered.
    #[inline]
    pub fn set_cont_entry(&mut self, entry: u64) {
        self.slot.header().cont_entry = entry;
    }

    /// Notes which request the snapshot answers.
    #[inline]
    pub fn set_request(&mut self, request: u64) {
        self.slot.header().request = request;
    }

    /// Notes the thread's context.
    #[inline]
    pub fn set_context(&mut self, context: &Context) {
        self.slot.header().context = *context;
    }

    /// Copies the first bytes of the logical thread's name.
    #[inline]
    pub fn copy_logical_name(&mut self, addr: u64, len: usize) {
        let len = len.min(LOGICAL_NAME_MAX);
        let name = &mut self.slot.header().logical_name;
        // SAFETY: the array holds LOGICAL_NAME_MAX bytes, and the slot is ours alone.
        let copied = unsafe { self.live.copy(name.as_mut_ptr(), addr, len) };
        self.slot.header().logical_name_len = copied as u8;
    }

    /// Copies one range of heap (a continuation's chunk) behind the present data, as much as fits.
    /// Returns how many bytes were copied. The walk cannot read the part that did not fit: the
    /// live bytes belong to another moment. At most [`CHUNKS_MAX`] ranges. If the thread waits
    /// until it has been walked, only the range's address is kept.
    #[inline]
    pub fn copy_chunk(&mut self, addr: u64, len: u32) -> usize {
        let number = self.slot.header().chunks_len as usize;
        if number >= CHUNKS_MAX {
            return 0;
        }
        let few_enough = self.copying && len <= CHUNK_MAX_BYTES;
        if few_enough && self.slot.chunk_room().1 < len as usize {
            self.grow(len as usize);
        }
        let (room, room_len) = self.slot.chunk_room();
        let fitting = if few_enough {
            room_len.min(len as usize)
        } else {
            0
        };
        // SAFETY: `chunk_room` is the unused rest of the slot's data, and the slot is ours alone.
        let copied = unsafe { self.live.copy(room, addr, fitting) };
        let header = self.slot.header();
        if let Some(chunk) = header.chunks.get_mut(number) {
            *chunk = ChunkCopy {
                lo: addr,
                len: copied as u32,
                wanted: len,
            };
            header.chunks_len = header.chunks_len.wrapping_add(1);
        }
        copied
    }

    /// Moves to a slot with room for `more` bytes, if there is one.
    #[inline]
    fn grow(&mut self, more: usize) {
        // Alignment takes less than 16 bytes.
        let needed = self
            .slot
            .header()
            .used()
            .saturating_add(more)
            .saturating_add(16);
        let Some(mut larger) = self.pool.take(needed) else {
            return;
        };
        if larger.capacity() <= self.slot.capacity() {
            self.pool.release(larger);
            return;
        }
        larger.copy_from(self.slot);
        self.pool.release(core::mem::replace(self.slot, larger));
    }
}

//! A slot's header: the content of a snapshot, and how readers see it. Must not interpret any of
//! it.

use crate::arch::Registers;
use crate::load::Live;
use crate::slots::memory::{Region, SnapshotMemory};
use crate::slots::wait::Wait;
use crate::slots::walked::WalkNote;
use core::sync::atomic::AtomicU32;
use dwell_context::Context;
use dwell_walker::Frame;

/// Most kernel frames kept.
pub const KERNEL_FRAMES_MAX: usize = 64;
/// Most bytes of a logical thread's name kept.
pub const LOGICAL_NAME_MAX: usize = 96;

/// Why a snapshot was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// CPU time was used: the ordinary case.
    CpuTime = 0,
    /// The thread begins.
    ThreadStart = 1,
    /// The thread ends: its CPU-time debt.
    ThreadEnd = 2,
    /// The recording ends or rotates.
    Flush = 3,
    /// A stop of all threads waits for this one: its stack, with or without debt.
    Stop = 4,
    /// The thread has allocated a sampled object; no CPU time belongs to it.
    Allocation = 5,
    /// The thread has got a monitor after a sampled wait for it; no CPU time belongs to it.
    Wait = 6,
    /// Another thread waits for a monitor that this one owns: its stack, with or without debt.
    Owner = 7,
}

impl Reason {
    pub(crate) fn from_bits(bits: u32) -> Self {
        match bits {
            1 => Reason::ThreadStart,
            2 => Reason::ThreadEnd,
            3 => Reason::Flush,
            4 => Reason::Stop,
            5 => Reason::Allocation,
            6 => Reason::Wait,
            7 => Reason::Owner,
            _ => Reason::CpuTime,
        }
    }
}

/// The fixed part of a slot. The handler writes it field by field: stale values of the last use
/// remain in the arrays beyond their lengths.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct SlotHeader {
    /// When, on `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// CPU time the thread had used.
    pub cpu_ns: u64,
    /// The CPU time each point stands for, in the mean.
    pub interval_ns: u64,
    /// The CPU time that this snapshot stands for, including that of earlier ones without a slot.
    pub weight_ns: u64,
    /// Points that were due.
    pub points: u32,
    /// Why it was taken.
    pub reason: Reason,
    /// Points of earlier samples of the thread that found no free slot.
    pub carried: u64,
    /// The thread's record: index ...
    pub record_index: u32,
    /// ... and generation.
    pub record_generation: u32,
    /// The thread's id.
    pub tid: i32,
    /// The agent's value in the record (see `ThreadRecord::user`).
    pub user: u64,
    /// The runtime's own structure of the thread, or 0.
    pub managed_thread: u64,
    /// The interrupted registers.
    pub regs: Registers,
    /// Whether the three anchor words could be read.
    pub anchor_valid: bool,
    /// Whether the kernel has copied it, without a signal: data that only the thread itself can
    /// read is missing.
    pub is_copied_by_kernel: bool,
    /// Whether it may have been taken in the kernel although kernel frames are missing.
    pub kernel_unseen: bool,
    /// Whether the stack did not fit into the slot.
    pub truncated: bool,
    /// Whether the copy ended at memory that could not be read.
    pub stack_fault: bool,
    /// Whether `stack_hi` is where the stack ends.
    pub stack_end_known: bool,
    /// Length of `logical_name`.
    pub logical_name_len: u8,
    /// Length of `kernel`.
    pub kernel_len: u32,
    /// Where the thread has last left managed code, as the runtime notes it: sp ...
    pub anchor_sp: u64,
    /// ... pc ...
    pub anchor_pc: u64,
    /// ... and fp.
    pub anchor_fp: u64,
    /// The word that the runtime has requested ([`Words::set_word`](crate::Words::set_word)); 0 if
    /// it could not be read.
    pub word: u64,
    /// Address of the first stack byte copied.
    pub stack_lo: u64,
    /// Where the stack ends; if that is not known, an address it does not reach. Bytes below it
    /// that were not copied cannot be read: the live bytes belong to another moment.
    pub stack_hi: u64,
    /// Bounds of another stack of the thread, if it is on an alternate one: not copied, so it
    /// cannot be read. Usually empty.
    pub left_stack: (u64, u64),
    /// Copied ranges of heap: the chunks of the mounted continuation, youngest first.
    pub chunks: [ChunkCopy; CHUNKS_MAX],
    /// Bytes of stack copied.
    pub stack_len: u32,
    /// How many chunks were copied.
    pub chunks_len: u32,
    /// Identity of the mounted logical thread, or 0.
    pub logical_id: u64,
    /// Where on the stack the mounted continuation was entered, or 0.
    pub cont_entry: u64,
    /// The thread's context.
    pub context: Context,
    /// The allocated object, if the snapshot is for one ([`Reason::Allocation`]).
    pub allocation: Allocation,
    /// The wait, if the snapshot is for one ([`Reason::Wait`]).
    pub wait: Wait,
    /// The request that it answers ([`Reason::Owner`]); 0: none, the thread does not own the
    /// object.
    pub request: u64,
    /// Time the handler had used when it published.
    pub handler_ns: u64,
    /// The walk, if there was one before publication.
    pub walk: WalkNote,
    /// The holder of a slot that is handed to the walking thread; see [`crate::pause`].
    pub(crate) handoff: AtomicU32,
    /// First bytes of the logical thread's name.
    pub logical_name: [u8; LOGICAL_NAME_MAX],
    /// The kernel's call chain, innermost first.
    pub kernel: [u64; KERNEL_FRAMES_MAX],
}

/// An object that was allocated and chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Allocation {
    /// The object's size in bytes.
    pub size: u64,
    /// The bytes of allocated objects that it stands for.
    pub weight: u64,
    /// The object's class: a number that the agent understands.
    pub class: u32,
    /// Where it is followed, if it is.
    pub followed: Followed,
    /// Whether it is reported as an allocation, and not only followed.
    pub is_told: bool,
}

/// A followed object's place in the agent's table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Followed {
    /// Its unique number; 0: it is not followed.
    pub serial: u64,
    /// The place.
    pub place: u32,
    /// Collections that were over, or had begun, when it was allocated.
    pub collections: u32,
}

/// Maximum number of chunks of a continuation that are copied. A thread has more than one while it
/// freezes at growing depth. Older ones are hardly ever touched between signal and walk, which
/// reads them live.
pub const CHUNKS_MAX: usize = 4;

/// One range of heap that was to be copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ChunkCopy {
    /// Address of the first byte.
    pub lo: u64,
    /// Bytes copied.
    pub len: u32,
    /// Bytes that were to be copied.
    pub wanted: u32,
}

impl SlotHeader {
    /// The chunks copied, youngest first.
    #[inline]
    #[must_use]
    pub fn copied_chunks(&self) -> &[ChunkCopy] {
        self.chunks.get(..self.chunks_len as usize).unwrap_or(&[])
    }

    /// Bytes of the slot's data in use.
    #[inline]
    pub(crate) fn used(&self) -> usize {
        self.copied_chunks()
            .iter()
            .fold(self.stack_len as usize, |end, chunk| {
                chunk_start(end).wrapping_add(chunk.len as usize)
            })
    }
}

/// A published snapshot, as the drainer sees it.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a> {
    pub(super) header: &'a SlotHeader,
    pub(super) data: &'a [u8],
}

impl<'a> Slot<'a> {
    /// The fixed part.
    #[must_use]
    pub fn header(&self) -> &'a SlotHeader {
        self.header
    }

    /// CPU time that this snapshot stands for, including earlier lost samples.
    #[must_use]
    pub fn weight_ns(&self) -> u64 {
        self.header.weight_ns
    }

    /// The frames of the walk in [`SlotHeader::walk`], innermost first.
    #[must_use]
    pub fn frames(&self) -> &'a [Frame] {
        let (at, len) = self.header.walk.place();
        let bytes = len.wrapping_mul(size_of::<Frame>());
        let within = at
            .checked_add(bytes)
            .is_some_and(|end| end <= self.data.len());
        if !within || self.header.walk.walk().is_none() {
            return &[];
        }
        let first = self.data.as_ptr().wrapping_add(at);
        if first.align_offset(align_of::<Frame>()) != 0 {
            return &[];
        }
        // SAFETY: within the data and aligned, as just checked; `WalkTarget::keep` had exactly
        // these frames written before it noted place and length, and a slot is not written to
        // between publication and the end of the visit.
        unsafe { core::slice::from_raw_parts(first.cast(), len) }
    }

    /// The copied stack; its first byte was at `header().stack_lo`.
    #[must_use]
    pub fn stack(&self) -> &'a [u8] {
        self.data
            .get(..self.header.stack_len as usize)
            .unwrap_or(&[])
    }

    /// The copied heap chunks.
    pub fn chunks(&self) -> impl Iterator<Item = Region<'a>> {
        let (header, data) = (self.header, self.data);
        let mut end = header.stack_len as usize;
        header.copied_chunks().iter().map(move |chunk| {
            let start = chunk_start(end);
            end = start.wrapping_add(chunk.len as usize);
            Region {
                start: chunk.lo,
                bytes: data.get(start..end).unwrap_or(&[]),
                end: chunk.lo.wrapping_add(u64::from(chunk.wanted)),
            }
        })
    }

    /// The kernel's call chain, innermost first.
    #[must_use]
    pub fn kernel_frames(&self) -> &'a [u64] {
        self.header
            .kernel
            .get(..self.header.kernel_len as usize)
            .unwrap_or(&[])
    }

    /// The copied bytes of the logical thread's name.
    #[must_use]
    pub fn logical_name(&self) -> &'a [u8] {
        let len = usize::from(self.header.logical_name_len);
        self.header.logical_name.get(..len).unwrap_or(&[])
    }

    /// The process's memory as it was for this thread: the copies, and live memory everywhere
    /// else.
    #[must_use]
    pub fn memory(&self, live: Live) -> SnapshotMemory<'a, Live> {
        let stack = Region {
            start: self.header.stack_lo,
            bytes: self.stack(),
            end: self.header.stack_hi,
        };
        let (lo, hi) = self.header.left_stack;
        let left = Region {
            start: lo,
            bytes: &[],
            end: hi,
        };
        let stacks = [stack, left].into_iter();
        SnapshotMemory::new(stacks.chain(self.chunks()), live)
    }
}

/// Where in a slot's data the next chunk begins: behind the copied data, aligned.
#[inline]
pub(super) fn chunk_start(used: usize) -> usize {
    used.wrapping_add(15) & !15
}

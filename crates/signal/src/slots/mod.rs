//! Slots: preallocated room for snapshots, and their way from handlers to the drainer.
//!
//! A handler takes a slot of a fitting size class, fills it, publishes it. The drainer takes all
//! published ones at once, in the order of publication, and gives them back. Free lists are last
//! in, first out, so that few pages are touched. Links live apart from the slots: the owner of a
//! slot owns all of its bytes.

mod header;
mod memory;
mod pool;
mod wait;
mod walked;

pub use header::{
    Allocation, CHUNKS_MAX, ChunkCopy, Followed, KERNEL_FRAMES_MAX, LOGICAL_NAME_MAX, Reason, Slot,
    SlotHeader,
};
pub use memory::{REGIONS_MAX, Region, SnapshotMemory};
pub use pool::{OwnedSlot, SlotPool};
pub use wait::{Asked, LockOwner, Wait};
pub use walked::{SlotFrames, WalkNote, WalkTarget};

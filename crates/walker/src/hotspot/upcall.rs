//! Stubs through which native code calls Java by the foreign function interface (JDK 22 and later;
//! src/hotspot/share/code/codeBlob.hpp, `UpcallStub`). Such a stub saves the thread's anchor in its
//! frame, as the call stub does in its wrapper.

use super::codecache::Blob;
use super::layout::{Layout, present};
use super::threads::{self, Anchor};
use crate::hotspot::machine::Machine;
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;

/// Maximum frame size: the saved registers, the arguments and the anchor.
const FRAME_MAX: u64 = 1 << 14;
/// `UpcallStub::_frame_data_offset` is after `_receiver`, its first own field.
const OFFSET_AT: u64 = 8;

/// The anchor of the Java frame that called the native code, saved in the frame at `sp`. Its `sp`
/// is 0 if the thread came from native code.
///
/// # Errors
/// [`Fault`] if stub or stack cannot be read, or the stub does not have a valid place for it.
pub fn saved_anchor<M: Memory>(
    mem: &M,
    layout: &Layout,
    blob: &Blob,
    sp: u64,
) -> Result<Anchor, Fault> {
    let invalid = Err(Fault { addr: blob.addr });
    if !present(layout.sizeof_code_blob) {
        return invalid;
    }
    let own_fields = blob.addr.wrapping_add(layout.sizeof_code_blob);
    let offset = u64::from(mem.u32(own_fields.wrapping_add(OFFSET_AT))?);
    if offset >= FRAME_MAX || offset & 7 != 0 {
        return invalid;
    }
    // The anchor is the first of the data there.
    threads::anchor_at(mem, layout, sp.wrapping_add(offset))
}

/// The native caller of a stub that has called Java: the stub has a frame pointer.
#[must_use]
pub fn caller<M: Memory>(machine: impl Machine, mem: &M, at: NativeRegs) -> Option<NativeRegs> {
    if at.fp <= at.sp || at.fp & 7 != 0 || at.fp.wrapping_sub(at.sp) > FRAME_MAX {
        return None;
    }
    machine.linked(mem, at.fp).ok()
}

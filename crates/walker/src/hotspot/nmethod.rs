//! Compiled methods: the Java frames of a pc, and the original pc of deoptimised frames
//! (src/hotspot/share/code/nmethod.hpp, pcDesc.hpp).

use super::codecache::Blob;
use super::layout::{Layout, present};
use super::misplaced;
use super::scope::{self, Scope};
use crate::hotspot::machine::Machine;
use crate::memory::{Fault, Memory};

/// Compilation levels up to this one are C1's (compilerDefinitions.hpp).
const C1_LEVEL_MAX: i32 = 3;

/// Maximum number of scopes of a pc; the compilers limit inlining to far less.
pub const SCOPES_MAX: usize = 512;

/// Tables of one compiled method.
#[derive(Clone, Copy, Debug)]
pub struct Nmethod {
    /// The outermost `Method*`.
    pub method: u64,
    /// Whether C1 compiled it.
    pub is_c1: bool,
    pcs: u64,
    pcs_count: u64,
    /// Start of the scope stream.
    pub(super) scopes: u64,
    metadata: u64,
    code_begin: u64,
}

/// The first `PcDesc` at or after a pc.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Its number; after the last one, the number of all.
    index: u64,
    /// Its scope's offset; 0 for none.
    pub(super) scope: u32,
    /// Whether it is exactly at the pc: the pc is a return address.
    pub is_exact: bool,
}

impl Nmethod {
    /// Reads the location of the tables of the compiled method in `blob`.
    ///
    /// # Errors
    /// [`Fault`] if the nmethod cannot be read.
    pub fn load<M: Memory>(mem: &M, layout: &Layout, blob: &Blob) -> Result<Nmethod, Fault> {
        let nm = blob.addr;
        let int = |at: u64| mem.i32(nm.wrapping_add(at)).map(|v| i64::from(v) as u64);
        let base = if present(layout.nmethod_immutable_data) {
            mem.word(nm.wrapping_add(layout.nmethod_immutable_data))?
        } else {
            nm
        };
        let pcs_begin = int(layout.nmethod_scopes_pcs_offset)?;
        let pcs_end = if present(layout.nmethod_dependencies_offset) {
            int(layout.nmethod_dependencies_offset)?
        } else {
            int(layout.nmethod_scopes_data_offset)?
        };
        let scopes = if present(layout.nmethod_scopes_data_begin) {
            mem.word(nm.wrapping_add(layout.nmethod_scopes_data_begin))?
        } else {
            base.wrapping_add(int(layout.nmethod_scopes_data_offset)?)
        };
        let level = mem.i32(nm.wrapping_add(layout.nmethod_comp_level))? & 0xff;
        Ok(Nmethod {
            method: mem.word(nm.wrapping_add(layout.nmethod_method))?,
            is_c1: (1..=C1_LEVEL_MAX).contains(&level),
            pcs: base.wrapping_add(pcs_begin),
            pcs_count: pcs_end.wrapping_sub(pcs_begin) / layout.sizeof_pcdesc.max(1),
            scopes,
            metadata: metadata(mem, layout, nm)?,
            code_begin: blob.code_begin,
        })
    }

    fn desc(&self, layout: &Layout, index: u64) -> u64 {
        self.pcs
            .wrapping_add(index.wrapping_mul(layout.sizeof_pcdesc))
    }

    /// `index` if there is such a `PcDesc`.
    pub(super) fn place(&self, index: u64) -> Option<u64> {
        (index < self.pcs_count).then_some(index)
    }

    /// Offset of a `PcDesc` from the start of the code.
    pub(super) fn pc_offset<M: Memory>(
        &self,
        mem: &M,
        layout: &Layout,
        index: u64,
    ) -> Result<i64, Fault> {
        let desc = self.desc(layout, index);
        mem.i32(desc.wrapping_add(layout.pcdesc_pc_offset))
            .map(i64::from)
    }

    /// The address of the code at an offset.
    pub(super) const fn code_at(&self, offset: i64) -> u64 {
        self.code_begin.wrapping_add_signed(offset)
    }

    /// The scope offset of a `PcDesc`; 0 for none.
    pub(super) fn scope_at<M: Memory>(
        &self,
        mem: &M,
        layout: &Layout,
        index: u64,
    ) -> Result<u32, Fault> {
        let desc = self.desc(layout, index);
        mem.u32(desc.wrapping_add(layout.pcdesc_scope_offset))
    }

    /// The scope at an offset.
    pub(super) fn scope<M: Memory>(
        &self,
        mem: &M,
        layout: &Layout,
        offset: u32,
    ) -> Result<Scope, Fault> {
        let base = layout.extra.unsigned5_base;
        scope::read(mem, base, self.scopes, offset, self.metadata)
    }

    /// The first `PcDesc` at or after `pc`.
    ///
    /// A return address has a `PcDesc` of its own. For an interrupted pc the next one describes
    /// the code up to it.
    ///
    /// # Errors
    /// [`Fault`] if the table cannot be read.
    #[inline(never)]
    pub fn find<M: Memory>(&self, mem: &M, layout: &Layout, pc: u64) -> Result<Found, Fault> {
        let wanted = pc.wrapping_sub(self.code_begin) as i64;
        let (mut low, mut high) = (0u64, self.pcs_count.min(1 << 24));
        let mut is_exact = false;
        while low < high {
            let middle = low + (high - low) / 2;
            let offset = self.pc_offset(mem, layout, middle)?;
            if offset < wanted {
                low = middle + 1
            } else {
                (high, is_exact) = (middle, offset == wanted);
            }
        }
        let scope = match low < self.pcs_count {
            true => self.scope_at(mem, layout, low)?,
            false => 0,
        };
        Ok(Found {
            index: low,
            scope,
            is_exact,
        })
    }

    /// Whether `pc` is a return address of this method: every call has a `PcDesc` at its return.
    ///
    /// # Errors
    /// [`Fault`] if the tables cannot be read.
    pub fn is_return_address<M: Memory>(
        &self,
        mem: &M,
        layout: &Layout,
        pc: u64,
    ) -> Result<bool, Fault> {
        Ok(self.find(mem, layout, pc)?.is_exact)
    }

    /// Calls `visit` for each scope at the return address `pc`, innermost first, with its offset in
    /// the scope stream. Without debug information, calls it once with 0, the compiled method
    /// itself and bci -1.
    ///
    /// # Errors
    /// [`Fault`] if the tables cannot be read.
    pub fn for_each_scope<M: Memory>(
        &self,
        mem: &M,
        layout: &Layout,
        pc: u64,
        visit: impl FnMut(u32, Scope),
    ) -> Result<(), Fault> {
        let found = self.find(mem, layout, pc)?;
        self.for_each_from(mem, layout, found.scope, visit)
    }

    /// Calls `visit` for each scope of a frame at `pc`, as [`Nmethod::for_each_scope`] does.
    /// `found` is the result of [`Nmethod::find`].
    ///
    /// C2's information about an interrupted instruction is not always right, see [`misplaced`]. A
    /// call that cannot stop, such as of a stub, has no `PcDesc` at its return address. If the code
    /// after it is from another line, it has one where it begins (`NonSafepointEmitter` of
    /// opto/output.cpp). The next one may be of another method.
    ///
    /// # Errors
    /// [`Fault`] if the tables or the code cannot be read.
    pub fn for_each_scope_of<M: Memory>(
        &self,
        machine: impl Machine,
        mem: &M,
        layout: &Layout,
        (pc, found, is_interrupted): (u64, Found, bool),
        visit: impl FnMut(u32, Scope),
    ) -> Result<(), Fault> {
        let Found { index, scope, .. } = found;
        let offset = if is_interrupted {
            match scope != 0 && !self.is_c1 {
                true => misplaced::put_right(machine, self, mem, layout, (index, scope)),
                false => Ok(scope),
            }
        } else if found.is_exact {
            Ok(scope)
        } else {
            self.leaf_scope(machine, mem, layout, (index, pc))
        };
        self.for_each_from(mem, layout, offset.unwrap_or(scope), visit)
    }

    /// The scope of a call at the place before `index` that ends at `pc`.
    fn leaf_scope<M: Memory>(
        &self,
        machine: impl Machine,
        mem: &M,
        layout: &Layout,
        (index, pc): (u64, u64),
    ) -> Result<u32, Fault> {
        // Two integers, the scope after the offset of the code (code/pcDesc.hpp).
        let desc = self.desc(layout, index.wrapping_sub(1));
        let both = mem.word(desc.wrapping_add(layout.pcdesc_pc_offset))?;
        let begin = self.code_at(i64::from(both as i32));
        match machine.is_leaf_call(mem, begin, pc)? {
            true => Ok((both >> 32) as u32),
            false => Err(Fault { addr: begin }),
        }
    }

    #[inline(never)]
    pub(super) fn for_each_from<M: Memory>(
        &self,
        mem: &M,
        layout: &Layout,
        mut offset: u32,
        mut visit: impl FnMut(u32, Scope),
    ) -> Result<(), Fault> {
        let whole = Scope {
            sender: 0,
            method: self.method,
            bci: -1,
        };
        if offset == 0 {
            visit(0, whole);
            return Ok(());
        }
        for _ in 0..SCOPES_MAX {
            let scope = self.scope(mem, layout, offset)?;
            visit(offset, scope);
            // A caller's scope is written before its callee's; any other order is invalid.
            if scope.sender == 0 || scope.sender >= offset {
                break;
            }
            offset = scope.sender;
        }
        Ok(())
    }
}

/// Start of the table of `Metadata*` that scopes refer to by index.
fn metadata<M: Memory>(mem: &M, layout: &Layout, nm: u64) -> Result<u64, Fault> {
    if present(layout.blob_mutable_data) && present(layout.blob_relocation_size) {
        let data = mem.word(nm.wrapping_add(layout.blob_mutable_data))?;
        let skip = mem.u32(nm.wrapping_add(layout.blob_relocation_size))?;
        return Ok(data.wrapping_add(u64::from(skip)));
    }
    if present(layout.nmethod_immutable_data) {
        // 23 and 24: a 2-byte offset from the blob's data.
        let data = mem.u32(nm.wrapping_add(layout.blob_data_offset))?;
        let skip = mem.u16(nm.wrapping_add(layout.nmethod_metadata_offset))?;
        return Ok(nm
            .wrapping_add(u64::from(data))
            .wrapping_add(u64::from(skip)));
    }
    let offset = mem.u32(nm.wrapping_add(layout.nmethod_metadata_offset))?;
    Ok(nm.wrapping_add(u64::from(offset)))
}

/// Offset in the blob's code from which on its frame is complete.
///
/// # Errors
/// [`Fault`] if the blob cannot be read.
pub(crate) fn frame_complete<M: Memory>(
    mem: &M,
    layout: &Layout,
    blob: &Blob,
) -> Result<u64, Fault> {
    let at = blob.addr.wrapping_add(layout.blob_frame_complete);
    let offset = if layout.extra.frame_complete_short {
        i64::from(mem.u16(at)? as i16)
    } else {
        i64::from(mem.i32(at)?)
    };
    // Negative: "never", for blobs without a frame.
    Ok(offset.max(0) as u64)
}

/// Whether the frame size of the blob is reliable: a blob without "frame complete" and without a
/// size has no frame.
#[must_use]
pub fn has_frame(layout: &Layout, blob: &Blob) -> bool {
    present(layout.blob_frame_size) && blob.frame_bytes > 0
}

/// If `pc` is the deoptimisation handler that the VM patched in as return address: the original pc,
/// from a slot of the frame.
///
/// # Errors
/// [`Fault`] if the nmethod or the slot cannot be read.
pub fn original_pc<M: Memory>(
    mem: &M,
    layout: &Layout,
    blob: &Blob,
    pc: u64,
    sp: u64,
) -> Result<Option<u64>, Fault> {
    if !present(layout.nmethod_orig_pc_offset) || !is_deopt_handler(mem, layout, blob, pc)? {
        return Ok(None);
    }
    let slot = mem.u32(blob.addr.wrapping_add(layout.nmethod_orig_pc_offset))?;
    mem.word(sp.wrapping_add(u64::from(slot))).map(Some)
}

fn is_deopt_handler<M: Memory>(
    mem: &M,
    layout: &Layout,
    blob: &Blob,
    pc: u64,
) -> Result<bool, Fault> {
    let pointer = |at: u64| mem.word(blob.addr.wrapping_add(at));
    let offset = |from: u64, at: u64| {
        mem.u32(blob.addr.wrapping_add(at))
            .map(|v| from.wrapping_add(u64::from(v)))
    };
    let mut handlers = [0u64; 3];
    let [first, second, third] = &mut handlers;
    if present(layout.nmethod_deopt_handler_begin) {
        *first = pointer(layout.nmethod_deopt_handler_begin)?;
        *second = pointer(layout.nmethod_deopt_mh_handler_begin)?;
    } else if present(layout.nmethod_deoptimize_offset) {
        *first = offset(blob.addr, layout.nmethod_deoptimize_offset)?;
    } else {
        // 23+: offsets from the blob or from its code, depending on the release; both are tried,
        // and a pc can be only one of them.
        for at in [
            layout.nmethod_deopt_entry_offset,
            layout.nmethod_deopt_handler_offset,
        ] {
            if present(at) {
                *first = offset(blob.addr, at)?;
                *second = offset(blob.code_begin, at)?;
                break;
            }
        }
        if present(layout.nmethod_deopt_mh_handler_offset) {
            *third = offset(blob.addr, layout.nmethod_deopt_mh_handler_offset)?;
        }
    }
    Ok(pc != 0 && handlers.contains(&pc))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::codecache::BlobKind;
    use crate::hotspot::layout::ABSENT;
    use crate::hotspot::test_memory::Bytes;

    const NMETHOD: u64 = 0x1000;
    const CODE: u64 = 0x1100;
    const SP: u64 = 0x7000;
    const ORIGINAL: u64 = 0x1180;

    /// The result for a patched pc, with the original one in the frame's third word.
    fn original(layout: &Layout, pc: u64) -> Option<u64> {
        let mem = Bytes::of_words(&[
            (NMETHOD, &[0, 16, 0x1200, 0x1240, 0x60, 0x70]),
            (SP, &[1, 2, ORIGINAL]),
        ]);
        let blob = Blob {
            addr: NMETHOD,
            kind: BlobKind::Nmethod,
            code_begin: CODE,
            frame_bytes: 64,
        };
        original_pc(&mem, layout, &blob, pc, SP).unwrap()
    }

    fn assert_handlers(layout: &Layout, handlers: &[u64]) {
        for pc in [
            NMETHOD, CODE, 0x1060, 0x1070, 0x1160, 0x1170, 0x1200, 0x1240, 0,
        ] {
            let expected = handlers.contains(&pc).then_some(ORIGINAL);
            assert_eq!(original(layout, pc), expected, "{pc:x}");
        }
    }

    #[test]
    fn deoptimisation_handler_leads_to_original_pc_on_every_jdk() {
        let mut layout = Layout::EMPTY;
        layout.nmethod_deopt_handler_begin = 16;
        assert_handlers(&layout, &[]);
        layout.nmethod_orig_pc_offset = 8;
        layout.nmethod_deopt_mh_handler_begin = 24;
        assert_handlers(&layout, &[0x1200, 0x1240]);
        // 8: an offset from the nmethod.
        layout.nmethod_deopt_handler_begin = ABSENT;
        layout.nmethod_deoptimize_offset = 32;
        assert_handlers(&layout, &[0x1060]);
        // 23 to 25: from there or from the code; another one for method handles.
        layout.nmethod_deoptimize_offset = ABSENT;
        layout.nmethod_deopt_handler_offset = 32;
        assert_handlers(&layout, &[0x1060, 0x1160]);
        layout.nmethod_deopt_mh_handler_offset = 40;
        assert_handlers(&layout, &[0x1060, 0x1160, 0x1070]);
        // 26 and later.
        layout.nmethod_deopt_mh_handler_offset = ABSENT;
        layout.nmethod_deopt_entry_offset = 40;
        assert_handlers(&layout, &[0x1070, 0x1170]);
    }
}

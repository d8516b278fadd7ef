//! Compiled methods: which Java frames a pc stands for, and where deoptimised frames really are
//! (src/hotspot/share/code/nmethod.hpp, pcDesc.hpp).

use super::codecache::Blob;
use super::layout::{Layout, present};
use super::scope::{self, Scope};
use crate::memory::{Fault, Memory};

/// Compilation levels up to this one are C1's (compilerDefinitions.hpp).
const C1_LEVEL_MAX: i32 = 3;

/// Most scopes one pc can stand for; inlining depth is limited to far less by the compilers.
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
    scopes: u64,
    metadata: u64,
    code_begin: u64,
}

impl Nmethod {
    /// Reads where the tables of the compiled method in `blob` are.
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

    /// The scope offset of the first `PcDesc` at or after `pc`, and whether it is exactly there.
    ///
    /// A return address has a `PcDesc` of its own. For an interrupted pc the next one describes
    /// the code up to it.
    fn scope_offset<M: Memory>(
        &self,
        mem: &M,
        layout: &Layout,
        pc: u64,
    ) -> Result<Option<(u32, bool)>, Fault> {
        let wanted = pc.wrapping_sub(self.code_begin) as i64;
        let desc = |i: u64| self.pcs.wrapping_add(i.wrapping_mul(layout.sizeof_pcdesc));
        let (mut low, mut high) = (0u64, self.pcs_count.min(1 << 24));
        while low < high {
            let middle = low + (high - low) / 2;
            let offset = mem.i32(desc(middle).wrapping_add(layout.pcdesc_pc_offset))?;
            if i64::from(offset) < wanted {
                low = middle + 1
            } else {
                high = middle
            }
        }
        if low >= self.pcs_count {
            return Ok(None);
        }
        let offset = mem.i32(desc(low).wrapping_add(layout.pcdesc_pc_offset))?;
        let scope = mem.u32(desc(low).wrapping_add(layout.pcdesc_scope_offset))?;
        Ok(Some((scope, i64::from(offset) == wanted)))
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
        Ok(self
            .scope_offset(mem, layout, pc)?
            .is_some_and(|(_, exact)| exact))
    }

    /// Calls `visit` for each scope at `pc`, innermost first. Without debug information, once with
    /// the compiled method itself and bci -1.
    ///
    /// # Errors
    /// [`Fault`] if the tables cannot be read.
    pub fn for_each_scope<M: Memory>(
        &self,
        mem: &M,
        layout: &Layout,
        pc: u64,
        mut visit: impl FnMut(Scope),
    ) -> Result<(), Fault> {
        let whole = Scope {
            sender: 0,
            method: self.method,
            bci: -1,
        };
        let Some((mut offset, _)) = self.scope_offset(mem, layout, pc)? else {
            visit(whole);
            return Ok(());
        };
        if offset == 0 {
            visit(whole);
            return Ok(());
        }
        for _ in 0..SCOPES_MAX {
            let base = layout.extra.unsigned5_base;
            let scope = scope::read(mem, base, self.scopes, offset, self.metadata)?;
            visit(scope);
            // A caller's scope is written before its callee's; anything else is garbage.
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

/// If `pc` is the deoptimisation handler the VM patched in as return address, where the frame
/// really was: the original pc, kept in a slot of the frame.
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

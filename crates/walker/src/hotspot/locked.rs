//! Monitors of a frame. In the interpreter, they are between the fixed part of a frame and its
//! expression stack (src/hotspot/share/runtime/basicLock.hpp, frame_x86.cpp). In compiled code, the
//! debug information has their locations (code/debugInfo.cpp, `MonitorValue`).
//!
//! Monitors of compiled native methods are not supported: no exported data show where they are.

use super::codecache::{Blob, BlobKind};
use super::continuation;
use super::interpreter;
use super::layout::{Layout, present};
use super::nmethod::{self, Nmethod};
use super::scope::Stream;
use crate::hotspot::machine::Machine;
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;

/// Maximum number of monitors of a frame.
const MONITORS_MAX: u32 = 64;
/// `BasicObjectLock`: the lock, the object.
const LOCK_BYTES: u64 = 16;
const LOCK_OBJECT: u64 = 8;

/// A monitor of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locked {
    /// The object.
    pub object: u64,
    /// The compiler has removed the locking, because no other thread can reach the object.
    pub is_eliminated: bool,
}

/// Calls `visit` for each monitor of the interpreted frame of `method` at `fp`, the last one first.
///
/// # Errors
/// [`Fault`] if a slot cannot be read.
pub fn interpreted<M: Memory>(
    mem: &M,
    layout: &Layout,
    fp: u64,
    method: u64,
    mut visit: impl FnMut(Locked),
) -> Result<(), Fault> {
    let bcp = fp.wrapping_add(layout.extra.interpreter_bcp as u64);
    let end = bcp.wrapping_sub(8);
    let begin = interpreter::slot_address(fp, mem.word(end)?);
    let bytes = end.wrapping_sub(begin);
    let is_frame = mem.word(fp.wrapping_sub(interpreter::METHOD))? == method;
    if !is_frame || !bytes.is_multiple_of(LOCK_BYTES) {
        return Ok(());
    }
    let count = bytes / LOCK_BYTES;
    if count > u64::from(MONITORS_MAX) {
        return Ok(());
    }
    for at in (0..count).map(|i| begin.wrapping_add(i * LOCK_BYTES)) {
        let object = mem.word(at.wrapping_add(LOCK_OBJECT))?;
        if object != 0 {
            visit(Locked {
                object,
                is_eliminated: false,
            });
        }
    }
    Ok(())
}

/// Calls `visit` for each monitor of the compiled frame at a call, with the number of its scope,
/// the innermost being 0. Within a scope, the first monitor comes first. A monitor that is neither
/// on the stack nor a constant is skipped, with all that follow it.
///
/// # Errors
/// [`Fault`] if debug information or the stack cannot be read.
pub fn compiled<M: Memory>(
    machine: impl Machine,
    mem: &M,
    layout: &Layout,
    blob: &Blob,
    at: NativeRegs,
    mut visit: impl FnMut(usize, Locked),
) -> Result<(), Fault> {
    if blob.kind != BlobKind::Nmethod {
        return Ok(());
    }
    let original = nmethod::original_pc(mem, layout, blob, at.pc, at.sp)?;
    let pc = original.unwrap_or(at.pc);
    let nm = Nmethod::load(mem, layout, blob)?;
    // Between calls, the debug information does not apply to this exact place.
    let found = nm.find(mem, layout, pc)?;
    if !found.is_exact {
        return Ok(());
    }
    let frame = Compiled {
        mem,
        layout,
        blob,
        at,
        kept_register: machine.kept_register(),
    };
    let (mut number, mut fault) = (0, Ok(()));
    nm.for_each_from(mem, layout, found.scope, |offset, _| {
        if offset != 0 && fault.is_ok() {
            fault = frame.scope(nm.scopes, offset, |locked| visit(number, locked));
        }
        number += 1;
    })?;
    fault
}

struct Compiled<'a, M: Memory> {
    mem: &'a M,
    layout: &'a Layout,
    blob: &'a Blob,
    at: NativeRegs,
    /// The one register that calls keep: the frame pointer.
    kept_register: u64,
}

impl<M: Memory> Compiled<'_, M> {
    fn scope(&self, scopes: u64, offset: u32, mut visit: impl FnMut(Locked)) -> Result<(), Fault> {
        let base = self.layout.extra.unsigned5_base;
        let stream = |offset: u32| Stream::new(self.mem, scopes, offset.into()).with_base(base);
        let mut head = stream(offset);
        // Sender, method, bytecode, locals, expressions.
        for _ in 0..5 {
            head.unsigned()?;
        }
        let monitors = head.unsigned()?;
        if monitors == 0 {
            return Ok(());
        }
        let mut list = stream(monitors);
        let count = list.unsigned()?;
        for _ in 0..count.min(MONITORS_MAX) {
            let _lock = list.unsigned()?;
            let Some(object) = self.value(&mut list)? else {
                break;
            };
            let is_eliminated = list.byte()? != 0;
            if object != 0 {
                visit(Locked {
                    object,
                    is_eliminated,
                });
            }
        }
        Ok(())
    }

    /// Reads the location of a reference, and the reference; `None` if it is of another kind.
    fn value(&self, list: &mut Stream<'_, M>) -> Result<Option<u64>, Fault> {
        const LOCATION: u32 = 0;
        const CONSTANT: u32 = 2;
        match list.unsigned()? {
            LOCATION => self.at_location(list.unsigned()?),
            CONSTANT => self.constant(list.unsigned()?),
            // A scalar-replaced object, whose fields are in registers.
            _ => Ok(None),
        }
    }

    fn at_location(&self, location: u32) -> Result<Option<u64>, Fault> {
        let layout = self.layout;
        let location = u64::from(location);
        let kind = location & layout.location_type_mask;
        let offset = location >> (layout.location_offset_shift & 31);
        let word = if location & layout.location_where_mask == 0 {
            // In words of 4 bytes.
            let slot = self.at.sp.wrapping_add(offset * 4);
            if kind == layout.location_narrow_oop {
                u64::from(self.mem.u32(slot)?)
            } else {
                self.mem.word(slot)?
            }
        } else if offset == self.kept_register {
            self.at.fp
        } else {
            return Ok(None);
        };
        match kind {
            oop if oop == layout.location_oop => Ok(Some(word)),
            narrow if narrow == layout.location_narrow_oop => {
                continuation::decompress(self.mem, layout, word as u32).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// A reference that is a constant of the code, by its number.
    fn constant(&self, number: u32) -> Result<Option<u64>, Fault> {
        let Some(index) = u64::from(number).checked_sub(1) else {
            return Ok(Some(0));
        };
        let Some(table) = self.constants()? else {
            return Ok(None);
        };
        let at = table.wrapping_add(index * 8);
        self.mem.word(at).map(Some)
    }

    fn constants(&self) -> Result<Option<u64>, Fault> {
        let (layout, blob) = (self.layout, self.blob.addr);
        let at = if present(layout.nmethod_oops_offset) {
            layout.nmethod_oops_offset
        } else if present(layout.blob_data_offset) {
            layout.blob_data_offset
        } else if layout.blob_frame_size == layout.blob_code_offset.wrapping_add(8) {
            // Between the two fields (25 and later, codeBlob.hpp).
            layout.blob_code_offset.wrapping_add(4)
        } else {
            return Ok(None);
        };
        let offset = self.mem.u32(blob.wrapping_add(at))?;
        Ok(Some(blob.wrapping_add(u64::from(offset))))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::hotspot::machine::X86_64;
    use crate::hotspot::test_memory::Bytes;
    use std::vec::Vec;

    const FP: u64 = 0x7f00_0000_8000;
    const METHOD: u64 = 0x1234_5678;

    /// The monitors of a frame with these words below its fixed part, the deepest first. `begin` is
    /// the slot with their start.
    fn monitors(words: &[u64], begin: u64) -> Vec<u64> {
        // Bytecode pointer, locals, three of no interest, method, last sp, sender's sp.
        let fixed = [begin, 1, 2, 3, 4, 5, METHOD, 0, FP + 16];
        let all: Vec<u64> = words.iter().copied().chain(fixed).collect();
        let bytes: Vec<u8> = all.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mem = Bytes::at(FP - bytes.len() as u64, &bytes);
        let mut found = Vec::new();
        let layout = Layout::EMPTY;
        let _ = interpreted(&mem, &layout, FP, METHOD, |it| found.push(it.object));
        found
    }

    #[test]
    fn monitors_of_interpreted_frame_are_below_its_fixed_part() {
        let words = [0, 0xb0b, 0, 0xa11ce];
        let end = FP - 72;
        assert_eq!(
            monitors(&words, end - 32),
            [0xb0b, 0xa11ce],
            "the last one first"
        );
        assert_eq!(
            monitors(&words, -13i64 as u64),
            [0xb0b, 0xa11ce],
            "from 21 on"
        );
        assert_eq!(monitors(&words, end - 16), [0xa11ce]);
        assert_eq!(monitors(&words, end), [0; 0]);
        assert_eq!(monitors(&[0, 0, 0, 7], end - 32), [7], "one is free");
    }

    #[test]
    fn invalid_frame_has_no_monitors() {
        let words = [0, 0xb0b, 0, 0xa11ce];
        let end = FP - 72;
        assert_eq!(monitors(&words, end - 24), [0; 0], "not of whole locks");
        assert_eq!(monitors(&words, end + 16), [0; 0]);
        assert_eq!(monitors(&words, 0xdead_beef_0000), [0; 0]);
        assert_eq!(monitors(&words, end - 16 * 65), [0; 0], "too many");
        let most: Vec<u64> = (0..65).flat_map(|_| [0, 7]).collect();
        assert_eq!(monitors(&most, end - 16 * 64).len(), 64);
        assert_eq!(monitors(&most, end - 16 * 65).len(), 0);
    }

    const NMETHOD: u64 = 0x10_0000;
    const CODE: u64 = 0x20_0000;
    const SP: u64 = 0x7f00_0000_0000;
    const RETURN: u64 = CODE + 5;

    /// Numbers in the newer form of the streams; here, all are below 192 or encoded with more
    /// bytes.
    const INNER: [u8; 6] = [1, 2, 9, 0, 0, 48];
    const OUTER: [u8; 6] = [0, 1, 9, 0, 0, 20];
    /// On the stack in four words of four bytes; in rbp, and eliminated; the first constant.
    const OF_OUTER: [u8; 14] = [3, 7, 0, 4 << 5 | 1, 0, 7, 0, 209, 2, 1, 7, 2, 1, 0];
    /// A compressed one on the stack; null; one in registers, and one after that.
    const OF_INNER: [u8; 17] = [4, 7, 0, 194, 0, 0, 7, 2, 0, 0, 7, 1, 1, 7, 2, 1, 0];

    fn compiled_layout() -> Layout {
        let mut layout = Layout::EMPTY;
        (layout.nmethod_method, layout.nmethod_comp_level) = (0, 8);
        (
            layout.nmethod_scopes_pcs_offset,
            layout.nmethod_dependencies_offset,
        ) = (12, 16);
        (
            layout.nmethod_scopes_data_offset,
            layout.nmethod_metadata_offset,
        ) = (20, 24);
        layout.nmethod_oops_offset = 28;
        (
            layout.sizeof_pcdesc,
            layout.pcdesc_pc_offset,
            layout.pcdesc_scope_offset,
        ) = (16, 0, 4);
        layout.extra.unsigned5_base = 0;
        (layout.location_type_mask, layout.location_where_mask) = (0xf, 0x10);
        (
            layout.location_offset_shift,
            layout.location_oop,
            layout.location_narrow_oop,
        ) = (5, 1, 2);
        (layout.narrow_oop_base, layout.narrow_oop_shift) = (0x500, 0x508);
        layout
    }

    /// An nmethod with a call at [`RETURN`] in two scopes.
    fn compiled_memory() -> Bytes {
        let mut bytes = [0u8; 0x140];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        for (i, value) in [4u32, 0x40, 0x70, 0x80, 0x100, 0x120]
            .into_iter()
            .enumerate()
        {
            put(8 + 4 * i, &value.to_le_bytes());
        }
        for (i, (pc, scope)) in [(-1, 0), (5, 10), (i32::MAX, 0u32)].into_iter().enumerate() {
            put(0x40 + 16 * i, &pc.to_le_bytes());
            put(0x44 + 16 * i, &scope.to_le_bytes());
        }
        put(0x81, &OUTER);
        put(0x80 + 10, &INNER);
        put(0x80 + 20, &OF_OUTER);
        put(0x80 + 48, &OF_INNER);
        put(0x120, &0xc0_5000u64.to_le_bytes());
        let mut mem = Bytes::at(NMETHOD, &bytes);
        mem.add_words(SP, &[1, 2, 0xa11ce, 0x9_0000_0b0b, 5]);
        mem.add_words(0x500, &[1 << 32, 3]);
        mem
    }

    /// The monitors of a compiled frame: the scope's number, the object, whether it is eliminated.
    fn of_compiled(layout: &Layout, kind: BlobKind, pc: u64) -> Vec<(usize, u64, bool)> {
        let blob = Blob {
            addr: NMETHOD,
            kind,
            code_begin: CODE,
            frame_bytes: 64,
        };
        let (sp, fp) = (SP, 0xfeed);
        let at = NativeRegs { pc, sp, fp };
        let mut found = Vec::new();
        compiled(
            X86_64,
            &compiled_memory(),
            layout,
            &blob,
            at,
            |scope, locked| {
                found.push((scope, locked.object, locked.is_eliminated));
            },
        )
        .unwrap();
        found
    }

    #[test]
    fn monitors_of_compiled_frames_come_from_debug_information() {
        let mut layout = compiled_layout();
        let narrow = (0, (1 << 32) + (0xb0b << 3), false);
        let (word, rbp) = ((1, 0xa11ce, false), (1, 0xfeed, true));
        let constant = (1, 0xc0_5000, false);
        let of = |layout: &Layout| of_compiled(layout, BlobKind::Nmethod, RETURN);
        assert_eq!(of(&layout), [narrow, word, rbp, constant]);
        // Not for other code, and not where there is no call.
        assert!(of_compiled(&layout, BlobKind::NativeNmethod, RETURN).is_empty());
        assert!(of_compiled(&layout, BlobKind::Nmethod, RETURN - 1).is_empty());
        // The place of constants is given in one of three ways.
        layout.nmethod_oops_offset = super::super::layout::ABSENT;
        assert_eq!(of(&layout), [narrow, word, rbp], "not known");
        layout.blob_data_offset = 28;
        assert_eq!(of(&layout), [narrow, word, rbp, constant]);
        layout.blob_data_offset = super::super::layout::ABSENT;
        (layout.blob_code_offset, layout.blob_frame_size) = (24, 32);
        assert_eq!(of(&layout), [narrow, word, rbp, constant]);
        layout.blob_frame_size = 28;
        assert_eq!(of(&layout), [narrow, word, rbp]);
        // Another kind of value, and another register.
        layout.nmethod_oops_offset = 28;
        layout.location_oop = 3;
        assert_eq!(of(&layout), [narrow]);
    }
}

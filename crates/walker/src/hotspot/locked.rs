//! Monitors that a frame has: in the interpreter between the fixed part of a frame and its
//! expression stack (src/hotspot/share/runtime/basicLock.hpp, frame_x86.cpp), in compiled code as
//! its debug information tells (code/debugInfo.cpp, `MonitorValue`).
//!
//! Not those of compiled native methods: nothing that is exported tells where they are.

use super::codecache::{Blob, BlobKind};
use super::continuation;
use super::interpreter;
use super::layout::{Layout, present};
use super::nmethod::{self, Nmethod};
use super::scope::Stream;
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;

/// Monitors of one frame at most.
const MONITORS_MAX: u32 = 64;
/// `BasicObjectLock`: the lock, the object.
const LOCK_BYTES: u64 = 16;
const LOCK_OBJECT: u64 = 8;

/// A monitor of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locked {
    /// The object.
    pub object: u64,
    /// The compiler has left the locking out, since nobody else can have the object.
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

/// Calls `visit` for each monitor of the compiled frame at a call, and the number of the scope that
/// has it, the innermost being 0; in a scope the first one first. What is not on the stack or a
/// constant is passed over, together with what follows it.
///
/// # Errors
/// [`Fault`] if debug information or the stack cannot be read.
pub fn compiled<M: Memory>(
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
    // Between calls debug information is not of this very place.
    if !nm.is_return_address(mem, layout, pc)? {
        return Ok(());
    }
    let frame = Compiled {
        mem,
        layout,
        blob,
        at,
    };
    let (mut number, mut fault) = (0, Ok(()));
    nm.for_each_scope(mem, layout, pc, |offset, _| {
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

    /// Reads where a reference is, and the reference; `None` if it is of another kind.
    fn value(&self, list: &mut Stream<'_, M>) -> Result<Option<u64>, Fault> {
        const LOCATION: u32 = 0;
        const CONSTANT: u32 = 2;
        match list.unsigned()? {
            LOCATION => self.at_location(list.unsigned()?),
            CONSTANT => self.constant(list.unsigned()?),
            // An object that is not there, its fields being in registers.
            _ => Ok(None),
        }
    }

    fn at_location(&self, location: u32) -> Result<Option<u64>, Fault> {
        /// The one register that calls keep: rbp (`VMReg`s have two numbers each).
        const RBP: u64 = 10;
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
        } else if offset == RBP {
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

    /// A reference that the code has as a constant, by its number.
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
            // Between the two (25 and later, codeBlob.hpp).
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
    use crate::hotspot::test_memory::Bytes;
    use std::vec::Vec;

    const FP: u64 = 0x7f00_0000_8000;
    const METHOD: u64 = 0x1234_5678;

    /// The monitors of a frame with these words below its fixed part, the deepest first, and this
    /// in the slot that says where they begin.
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
    fn monitors_lie_below_the_fixed_part_of_an_interpreted_frame() {
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
    fn what_is_no_frame_has_no_monitors() {
        let words = [0, 0xb0b, 0, 0xa11ce];
        let end = FP - 72;
        assert_eq!(monitors(&words, end - 24), [0; 0], "not of whole locks");
        assert_eq!(monitors(&words, end + 16), [0; 0]);
        assert_eq!(monitors(&words, 0xdead_beef_0000), [0; 0]);
        assert_eq!(monitors(&words, end - 16 * 65), [0; 0], "too many");
    }
}

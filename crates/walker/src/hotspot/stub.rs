//! Stubs, adapters and virtual call stubs: code-cache code that is neither a method nor has, at
//! every instruction, a frame of known size. Their caller is found by checking candidates.

use super::codecache::{Blob, BlobKind};
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;
use crate::walk::Regs;

/// Words above rsp searched for the return address; no stub pushes more without a frame pointer.
const SCAN_WORDS: u64 = 16;
/// A stub's frame, if it has one, is at most this large.
const STUB_FRAME_MAX: u64 = 4096;

/// The caller of a stub that was interrupted (`regs` are exact).
///
/// # Errors
/// [`Fault`] if the stack cannot be read. `Ok(None)` if no candidate is a return address.
pub fn interrupted_caller<M: Memory>(
    mem: &M,
    blob: &Blob,
    regs: &Regs,
    is_caller: impl Fn(NativeRegs) -> bool,
) -> Result<Option<NativeRegs>, Fault> {
    let sp = regs.sp;
    if matches!(blob.kind, BlobKind::Adapter) {
        return adapter_caller(mem, regs, is_caller);
    }
    let mut code = [0u8; 8];
    mem.read(regs.pc.wrapping_sub(4), &mut code)?;
    let (before, after) = code.split_at(4);
    // push rbp is next, or has just been done and mov rbp, rsp is next; or ret is next.
    let no_frame = matches!(after, [0x55, ..] | [0xc3, ..]);
    let pushed = before.ends_with(&[0x55])
        && matches!(after, [0x48, 0x8b, 0xec, ..] | [0x48, 0x89, 0xe5, ..]);
    let pops = matches!(after, [0x5d, 0xc3, ..]);
    let at = |slot: u64, fp: u64| {
        let caller = NativeRegs {
            pc: mem.word(slot)?,
            sp: slot.wrapping_add(8),
            fp,
        };
        Ok(is_caller(caller).then_some(caller))
    };
    if no_frame && let Some(found) = at(sp, regs.fp)? {
        return Ok(Some(found));
    }
    if (pushed || pops)
        && let Some(found) = at(sp.wrapping_add(8), mem.word(sp)?)?
    {
        return Ok(Some(found));
    }
    let has_fp = regs.fp >= sp && regs.fp.wrapping_sub(sp) <= STUB_FRAME_MAX;
    if has_fp && let Some(found) = by_frame_pointer(mem, regs.fp, &is_caller)? {
        return Ok(Some(found));
    }
    if blob.frame_bytes > 0 {
        let top = sp.wrapping_add(blob.frame_bytes);
        if let Some(found) = at(top.wrapping_sub(8), mem.word(top.wrapping_sub(16))?)? {
            return Ok(Some(found));
        }
    }
    for i in 0..SCAN_WORDS {
        if let Some(found) = at(sp.wrapping_add(i * 8), regs.fp)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The caller of a stub whose rbp frame is at `fp`. The stub of nmethod entry barriers pushes a
/// cookie of -1 between the return address and the saved rbp (stubGenerator_x86_64.cpp,
/// `generate_method_entry_barrier`).
fn by_frame_pointer<M: Memory>(
    mem: &M,
    fp: u64,
    is_caller: &impl Fn(NativeRegs) -> bool,
) -> Result<Option<NativeRegs>, Fault> {
    const COOKIE: u64 = u64::MAX;
    let mut slot = fp.wrapping_add(8);
    if mem.word(slot)? == COOKIE {
        slot = slot.wrapping_add(8);
    }
    let caller = NativeRegs {
        pc: mem.word(slot)?,
        sp: slot.wrapping_add(8),
        fp: mem.word(fp)?,
    };
    Ok(is_caller(caller).then_some(caller))
}

/// Adapters move arguments: the return address is at rsp until it is popped into rax; from then on
/// the caller's sp is in r13 (sharedRuntime_x86_64.cpp, `gen_c2i_adapter`, `gen_i2c_adapter`).
fn adapter_caller<M: Memory>(
    mem: &M,
    regs: &Regs,
    is_caller: impl Fn(NativeRegs) -> bool,
) -> Result<Option<NativeRegs>, Fault> {
    let top = mem.word(regs.sp)?;
    let above = regs.sp.wrapping_add(8);
    let mut found = [
        (top, above),
        (top, above),
        (regs.rax, above),
        (regs.rax, above),
    ];
    if regs.r13 >= regs.sp && regs.r13.wrapping_sub(regs.sp) < STUB_FRAME_MAX {
        let [_, second, third, _] = &mut found;
        *second = (top, regs.r13);
        *third = (regs.rax, regs.r13);
    }
    let callers = found.map(|(pc, sp)| NativeRegs {
        pc,
        sp,
        fp: regs.fp,
    });
    Ok(callers.into_iter().find(|caller| is_caller(*caller)))
}

/// The caller of a stub that called on (`regs` are those after the call returns).
///
/// # Errors
/// [`Fault`] if the stack cannot be read. `Ok(None)` if no candidate is a return address.
pub fn calling_caller<M: Memory>(
    mem: &M,
    blob: &Blob,
    regs: NativeRegs,
    is_caller: impl Fn(NativeRegs) -> bool,
) -> Result<Option<NativeRegs>, Fault> {
    if blob.frame_bytes > 0 {
        let top = regs.sp.wrapping_add(blob.frame_bytes);
        let (pc, fp) = (
            mem.word(top.wrapping_sub(8))?,
            mem.word(top.wrapping_sub(16))?,
        );
        let caller = NativeRegs { pc, sp: top, fp };
        if is_caller(caller) {
            return Ok(Some(caller));
        }
    }
    let has_fp = regs.fp >= regs.sp && regs.fp.wrapping_sub(regs.sp) <= STUB_FRAME_MAX;
    if has_fp && let Some(found) = by_frame_pointer(mem, regs.fp, &is_caller)? {
        return Ok(Some(found));
    }
    for i in 0..SCAN_WORDS {
        let slot = regs.sp.wrapping_add(i * 8);
        let caller = NativeRegs {
            pc: mem.word(slot)?,
            sp: slot.wrapping_add(8),
            fp: regs.fp,
        };
        if is_caller(caller) {
            return Ok(Some(caller));
        }
    }
    Ok(None)
}

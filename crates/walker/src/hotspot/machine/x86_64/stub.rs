//! Stubs, adapters and virtual call stubs: code in the code cache that is not a method and whose
//! frame size differs between instructions. A stub's own code leads to its caller, see [`way_out`];
//! an adapter's caller is found by checking candidates.

use super::Regs;
use super::straight_entry;
use super::way_out;
use crate::hotspot::codecache::{Blob, BlobKind};
use crate::hotspot::machine::{Caller, Checks, WayOut, is_generated_caller};
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;

/// Maximum frame size of a stub that has a frame.
const STUB_FRAME_MAX: u64 = 4096;

/// The caller of an interrupted stub (`regs` are exact).
///
/// # Errors
/// [`Fault`] if the stack cannot be read. `Ok(None)` if no candidate is a return address.
pub fn interrupted_caller<M: Memory>(
    mem: &M,
    blob: &Blob,
    regs: &Regs,
    checks: &impl Checks,
) -> Result<Option<Caller>, Fault> {
    if matches!(blob.kind, BlobKind::Adapter) {
        let by_code = way_out::caller_of_patching_adapter(mem, regs, checks);
        if let Some(found) = by_code.filter(|it| is_generated_caller(checks, *it)) {
            return Ok(Some(Caller::Certain(found.into())));
        }
        // Adapters are between compiled code, the interpreter and stubs. An adapter may have saved
        // registers, and other candidates among them are older: from a handler that ran there
        // before, for example.
        let found = adapter_caller(mem, blob, regs, |it| is_generated_caller(checks, it))?;
        return Ok(found.map(|caller| Caller::Certain(caller.into())));
    }
    if matches!(blob.kind, BlobKind::Vtable) {
        // These stubs have no frame anywhere, and only jump.
        let caller = NativeRegs {
            pc: mem.word(regs.sp)?,
            sp: regs.sp.wrapping_add(8),
            fp: regs.fp,
        };
        let found = checks.is_return(caller.pc).then_some(caller);
        return Ok(found.map(|caller| Caller::Certain(caller.into())));
    }
    if let Some(found) = way_out::caller(mem, regs, checks) {
        let found = below_arguments(mem, blob, found, checks);
        return Ok(Some(Caller::Certain(found)));
    }
    // A blob with a frame size has one stub, which begins with its code.
    if blob.frame_bytes != 0
        && let Some(found) = straight_entry::caller(mem, blob.code_begin, regs)
        && is_generated_caller(checks, found)
    {
        return Ok(Some(Caller::Certain(found.into())));
    }
    let at = NativeRegs {
        pc: regs.pc,
        sp: regs.sp,
        fp: regs.fp,
    };
    likely_caller(mem, blob, at, checks)
}

/// C1's code may push arguments right before it calls a stub, and pops them itself: its frame
/// begins above them.
fn below_arguments<M: Memory>(mem: &M, blob: &Blob, found: WayOut, checks: &impl Checks) -> WayOut {
    let caller = found.caller;
    let Some(pushed) = words_pushed_for(mem, caller.pc, blob.code_begin) else {
        return found;
    };
    let above = |words: u64| NativeRegs {
        sp: caller.sp.wrapping_add(words * 8),
        ..caller
    };
    // Bytes that look like a push may be the end of another instruction.
    let fitting = (0..=pushed)
        .rev()
        .map(above)
        .find(|it| checks.is_caller(*it));
    WayOut {
        caller: fitting.unwrap_or_else(|| above(pushed)),
        ..found
    }
}

/// The caller of a static call stub, with the registers at the call. The stub leads from compiled
/// code to an interpreted method. It is after the caller's own code, in `blob`: `mov rbx, METHOD;
/// jmp TARGET` (compiledIC_x86.cpp, `emit_to_interp_stub`). When the method is compiled, the call
/// is linked to the compiled code, while threads may still be in the stub.
#[must_use]
pub fn static_call_caller<M: Memory>(mem: &M, blob: &Blob, regs: &Regs) -> Option<NativeRegs> {
    const MOVE_BYTES: u64 = 10;
    let is_stub = |at: u64| {
        let mut code = [0u8; MOVE_BYTES as usize + 1];
        let read = mem.read(at, &mut code);
        read.is_ok() && matches!(code, [0x48, 0xbb, .., 0xe9])
    };
    let pc = mem.word(regs.sp).ok()?;
    let begins = [regs.pc, regs.pc.wrapping_sub(MOVE_BYTES)];
    let is_called = |stub: u64| {
        let linked_anew = || (blob.code_begin..stub).contains(&pc) && follows_direct_call(mem, pc);
        words_pushed_for(mem, pc, stub).is_some() || linked_anew()
    };
    let called = |at: &u64| is_stub(*at) && is_called(*at);
    begins.iter().any(called).then_some(NativeRegs {
        pc,
        sp: regs.sp.wrapping_add(8),
        fp: regs.fp,
    })
}

const DIRECT_CALL: u8 = 0xe8;
const DIRECT_CALL_BYTES: u64 = 5;
/// Maximum distance of a direct call's target.
const CALL_REACH: u64 = 1 << 31;

fn follows_direct_call<M: Memory>(mem: &M, pc: u64) -> bool {
    mem.u8(pc.wrapping_sub(DIRECT_CALL_BYTES)) == Ok(DIRECT_CALL)
}

/// Number of words pushed right before the call that returns to `pc`; `None` if that call is not to
/// `target`.
fn words_pushed_for<M: Memory>(mem: &M, pc: u64, target: u64) -> Option<u64> {
    // Most words of a stack are not addresses of code. Reading at such an address is a fault, which
    // costs more than the whole walk.
    if pc.wrapping_sub(target).wrapping_add(CALL_REACH) > 2 * CALL_REACH {
        return None;
    }
    let mut code = [0u8; 16];
    mem.read(pc.wrapping_sub(code.len() as u64), &mut code)
        .ok()?;
    let (mut before, call) = code.split_at_checked(code.len() - DIRECT_CALL_BYTES as usize)?;
    let [DIRECT_CALL, distance @ ..] = call else {
        return None;
    };
    let distance = i32::from_le_bytes(distance.try_into().ok()?);
    if pc.wrapping_add_signed(distance.into()) != target {
        return None;
    }
    let mut words = 0;
    while let [rest @ .., 0x50..=0x57] = before {
        // With the prefix of r8 to r15.
        before = match rest {
            [shorter @ .., 0x41] => shorter,
            _ => rest,
        };
        words += 1;
    }
    Some(words)
}

/// Address of the return address of the stub whose rbp frame is at `fp`. The stub of nmethod entry
/// barriers pushes a cookie of -1 between it and the saved rbp (stubGenerator_x86_64.cpp,
/// `generate_method_entry_barrier`).
///
/// # Errors
/// [`Fault`] if the stack cannot be read.
pub fn return_slot<M: Memory>(mem: &M, fp: u64) -> Result<u64, Fault> {
    const COOKIE: u64 = u64::MAX;
    let slot = fp.wrapping_add(8);
    Ok(if mem.word(slot)? == COOKIE {
        slot.wrapping_add(8)
    } else {
        slot
    })
}

/// The caller of a stub whose rbp frame is at `fp`.
fn linked_caller<M: Memory>(mem: &M, fp: u64) -> Result<NativeRegs, Fault> {
    let slot = return_slot(mem, fp)?;
    Ok(NativeRegs {
        pc: mem.word(slot)?,
        sp: slot.wrapping_add(8),
        fp: mem.word(fp)?,
    })
}

/// Adapters move arguments. The return address is at rsp until it is popped into rax; from then on
/// the caller's sp is in r13 (sharedRuntime_x86_64.cpp, `gen_c2i_adapter`, `gen_i2c_adapter`).
fn adapter_caller<M: Memory>(
    mem: &M,
    blob: &Blob,
    regs: &Regs,
    is_caller: impl Fn(NativeRegs) -> bool,
) -> Result<Option<NativeRegs>, Fault> {
    let top = mem.word(regs.sp)?;
    let above = regs.sp.wrapping_add(8);
    let mut code = [0u8; POP_AND_MOVE.len()];
    let read = mem.read(regs.pc.wrapping_sub(1), &mut code);
    if read.is_ok() && code == POP_AND_MOVE {
        let caller = NativeRegs {
            pc: regs.rax,
            sp: regs.sp,
            fp: regs.fp,
        };
        return Ok(is_caller(caller).then_some(caller));
    }
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
        if has_sender(mem, blob, regs.pc)? {
            found.rotate_left(1);
        }
    }
    let callers = found.map(|(pc, sp)| NativeRegs {
        pc,
        sp,
        fp: regs.fp,
    });
    match callers.into_iter().find(|caller| is_caller(*caller)) {
        Some(found) => Ok(Some(found)),
        None => saving_caller(mem, regs.sp, regs.fp, &is_caller),
    }
}

/// The caller of an adapter whose barrier has saved the flags. They are right below the return
/// address, and saved registers are below them, including those of vectors
/// (shenandoahBarrierSetAssembler_x86.cpp, `load_reference_barrier`, until JDK 17). One of these
/// may hold the return address once more.
fn saving_caller<M: Memory>(
    mem: &M,
    sp: u64,
    fp: u64,
    is_caller: &impl Fn(NativeRegs) -> bool,
) -> Result<Option<NativeRegs>, Fault> {
    /// The bit that is always 1, and the one for enabled interrupts.
    const SET: u64 = 0x202;
    /// The other bits that programs can set.
    const MAY_BE_SET: u64 = 0x24_0dd5;
    for slot in (0..STUB_FRAME_MAX / 8).map(|i| sp.wrapping_add(i * 8)) {
        let flags = mem.word(slot)?;
        if flags & !MAY_BE_SET != SET {
            continue;
        }
        let caller = NativeRegs {
            pc: mem.word(slot.wrapping_add(8))?,
            sp: slot.wrapping_add(16),
            fp,
        };
        if is_caller(caller) {
            return Ok(Some(caller));
        }
    }
    Ok(None)
}

/// The way into the interpreter until JDK 20: `pop rax; mov r13, rsp`.
const POP_AND_MOVE: [u8; 4] = [0x58, 0x4c, 0x8b, 0xec];

/// Whether `pc` is after the last `lea r13, [rsp + 8]` of an adapter, or its [`POP_AND_MOVE`],
/// which is the way into the interpreter. From there on the caller's sp is certainly in r13, and
/// room for arguments may be below it.
fn has_sender<M: Memory>(mem: &M, blob: &Blob, pc: u64) -> Result<bool, Fault> {
    /// The longest distance from there to the jump: 255 arguments, a load and a store of 8 bytes
    /// each.
    const SEARCHED: u64 = 4096;
    const LEA: [u8; 5] = [0x4c, 0x8d, 0x6c, 0x24, 0x08];
    for back in LEA.len() as u64..SEARCHED {
        let at = pc.wrapping_sub(back);
        if at < blob.code_begin {
            break;
        }
        let mut code = [0u8; LEA.len()];
        mem.read(at, &mut code)?;
        if code == LEA || code.starts_with(&POP_AND_MOVE) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The compiled code that a poll has stopped, before the stub for that has put its pc onto the
/// stack. The stub begins with `push rbx` (to make room for it); `push rbp; mov rbp, rsp`; and
/// later takes the pc from the thread (sharedRuntime_x86_64.cpp, `generate_handler_blob`).
/// `poll_pc` is the pc that the VM's signal handler has stored there.
#[must_use]
pub fn polling_caller<M: Memory>(
    mem: &M,
    blob: &Blob,
    regs: &Regs,
    poll_pc: u64,
) -> Option<NativeRegs> {
    const BEGIN: [u8; 5] = [0x53, 0x55, 0x48, 0x8b, 0xec];
    let mut code = [0u8; BEGIN.len()];
    let read = mem.read(blob.code_begin, &mut code);
    if poll_pc == 0 || read.is_err() || code != BEGIN {
        return None;
    }
    let (sp, fp) = match regs.pc.wrapping_sub(blob.code_begin) {
        0 => (regs.sp, regs.fp),
        1 => (regs.sp.wrapping_add(8), regs.fp),
        2 => (regs.sp.wrapping_add(16), regs.fp),
        _ => (regs.fp.wrapping_add(16), mem.word(regs.fp).ok()?),
    };
    Some(NativeRegs {
        pc: poll_pc,
        sp,
        fp,
    })
}

/// The caller of a stub that has made a call (`regs` are those after the call returns).
/// `at_anchor`: the thread's anchor is at this frame, so the VM walks it itself.
///
/// # Errors
/// [`Fault`] if the stack cannot be read. `Ok(None)` if no candidate is a return address.
pub fn calling_caller<M: Memory>(
    mem: &M,
    blob: &Blob,
    regs: NativeRegs,
    at_anchor: bool,
    checks: &impl Checks,
) -> Result<Option<Caller>, Fault> {
    if matches!(blob.kind, BlobKind::Adapter) {
        let by_code = way_out::caller_of_patching_adapter_after_call(mem, regs, checks);
        if let Some(found) = by_code.filter(|it| is_generated_caller(checks, *it)) {
            return Ok(Some(Caller::Certain(found.into())));
        }
        return saved_caller(mem, blob, regs, checks);
    }
    // At a call of the VM, the frame has the size that the VM itself assumes.
    let framed = framed_caller(mem, blob, regs).ok().flatten();
    let framed = framed.filter(|caller| is_generated_caller(checks, *caller));
    let by_size = framed.map(WayOut::from);
    let by_code = || way_out::caller_after_call(mem, regs, checks);
    let found = if at_anchor {
        by_size.or_else(by_code)
    } else {
        by_code().or(by_size)
    };
    if let Some(found) = found {
        let found = below_arguments(mem, blob, found, checks);
        return Ok(Some(Caller::Certain(found)));
    }
    likely_caller(mem, blob, regs, checks)
}

/// The caller by rbp if it points to the frame, or by the usual size of the frame.
fn likely_caller<M: Memory>(
    mem: &M,
    blob: &Blob,
    regs: NativeRegs,
    checks: &impl Checks,
) -> Result<Option<Caller>, Fault> {
    let has_fp = regs.fp >= regs.sp && regs.fp.wrapping_sub(regs.sp) <= STUB_FRAME_MAX;
    let linked = if has_fp {
        Some(linked_caller(mem, regs.fp)?)
    } else {
        None
    };
    let framed = framed_caller(mem, blob, regs)?;
    let mut candidates = linked.into_iter().chain(framed);
    let found = candidates.find(|caller| is_generated_caller(checks, *caller));
    Ok(found.map(Caller::Likely))
}

/// The caller of a blob whose frame has a size.
fn framed_caller<M: Memory>(
    mem: &M,
    blob: &Blob,
    regs: NativeRegs,
) -> Result<Option<NativeRegs>, Fault> {
    if blob.frame_bytes == 0 {
        return Ok(None);
    }
    let sp = regs.sp.wrapping_add(blob.frame_bytes);
    Ok(Some(NativeRegs {
        pc: mem.word(sp.wrapping_sub(8))?,
        sp,
        fp: mem.word(sp.wrapping_sub(16))?,
    }))
}

/// The caller of an adapter that called the VM, with all registers saved.
fn saved_caller<M: Memory>(
    mem: &M,
    blob: &Blob,
    regs: NativeRegs,
    checks: &impl Checks,
) -> Result<Option<Caller>, Fault> {
    let is_caller = |caller: NativeRegs| is_generated_caller(checks, caller);
    let has_fp = regs.fp >= regs.sp && regs.fp.wrapping_sub(regs.sp) <= STUB_FRAME_MAX;
    let linked = if has_fp {
        Some(linked_caller(mem, regs.fp)?)
    } else {
        None
    };
    let framed = framed_caller(mem, blob, regs)?;
    if let Some(found) = framed.into_iter().chain(linked).find(|it| is_caller(*it)) {
        return Ok(Some(Caller::Certain(found.into())));
    }
    if let Some(found) = saving_caller(mem, regs.sp, regs.fp, &is_caller)? {
        return Ok(Some(Caller::Certain(found.into())));
    }
    for i in 0..STUB_FRAME_MAX / 8 {
        let slot = regs.sp.wrapping_add(i * 8);
        let caller = NativeRegs {
            pc: mem.word(slot)?,
            sp: slot.wrapping_add(8),
            fp: regs.fp,
        };
        if is_caller(caller) {
            return Ok(Some(Caller::Certain(caller.into())));
        }
    }
    Ok(None)
}

#[cfg(test)]
#[path = "stub_tests.rs"]
mod tests;

//! Interpreter frames on x86-64 (src/hotspot/cpu/x86/frame_x86.hpp): slots relative to rbp, and
//! what to do in the few instructions in which the frame does not exist yet or any more.

use super::codecache::CodeCache;
use super::layout::Layout;
use super::method;
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;
use crate::walk::Regs;

/// Slot of the caller's sp before it was extended for locals.
const SENDER_SP: u64 = 8;
/// Slot of the `Method*`.
const METHOD: u64 = 24;
/// While the frame is being pushed, rbp is at most this far above rsp.
const FIXED_PART_BYTES: u64 = 12 * 8;

/// What an interpreter frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interpreted {
    /// The `Method*`.
    pub method: u64,
    /// Bytecode index, -1 if unknown.
    pub bci: i32,
    /// The caller's pc.
    pub caller_pc: u64,
    /// The caller's sp.
    pub caller_sp: u64,
    /// The caller's rbp.
    pub caller_fp: u64,
}

/// Reads the links of a frame at `fp` whose method is not filled in yet: deoptimisation lays out
/// skeletons of interpreter frames first (sharedRuntime_x86_64.cpp, `generate_deopt_blob`).
///
/// # Errors
/// [`Fault`] if a slot cannot be read. `Ok(None)` if the slots make no sense.
pub fn read_skeleton<M: Memory>(
    mem: &M,
    fp: u64,
    is_return: impl Fn(u64) -> bool,
) -> Result<Option<NativeRegs>, Fault> {
    let pc = mem.word(fp.wrapping_add(8))?;
    let sp = mem.word(fp.wrapping_sub(SENDER_SP))?;
    let caller_fp = mem.word(fp)?;
    Ok((is_return(pc) && sp > fp).then_some(NativeRegs {
        pc,
        sp,
        fp: caller_fp,
    }))
}

/// Reads the complete frame at `fp`. `live_bcp` is r13 of a frame that was interrupted.
///
/// # Errors
/// [`Fault`] if a slot cannot be read. `Ok(None)` if the slots make no sense.
pub fn read_frame<M: Memory>(
    mem: &M,
    layout: &Layout,
    fp: u64,
    live_bcp: Option<u64>,
) -> Result<Option<Interpreted>, Fault> {
    let method = mem.word(fp.wrapping_sub(METHOD))?;
    if !method::is_plausible(mem, layout, method) {
        return Ok(None);
    }
    let code = method::code(mem, layout, method)?;
    let slot = fp.wrapping_add(layout.extra.interpreter_bcp as u64);
    let saved = mem.word(slot).ok().and_then(|bcp| code.bci(bcp));
    let bci = live_bcp
        .and_then(|bcp| code.bci(bcp))
        .or(saved)
        .unwrap_or(-1);
    let frame = Interpreted {
        method,
        bci,
        caller_pc: mem.word(fp.wrapping_add(8))?,
        caller_sp: mem.word(fp.wrapping_sub(SENDER_SP))?,
        caller_fp: mem.word(fp)?,
    };
    // The caller's stack begins above our return address, or below it when locals were added to
    // a compiled caller; in any case above the frame's fixed part.
    Ok((frame.caller_sp > fp).then_some(frame))
}

/// Method entry code runs before the frame exists: the callee's `Method*` is in rbx, the caller's
/// sp in r13, the return address at the caller's sp - 8 until locals overwrite it, then in rax
/// (templateInterpreterGenerator_x86.cpp, `generate_normal_entry` and `generate_fixed_frame`).
///
/// # Errors
/// [`Fault`] if the stack cannot be read. `Ok(None)` if this is not such a place.
pub fn read_entry<M: Memory>(
    mem: &M,
    layout: &Layout,
    code: &CodeCache,
    regs: &Regs,
    is_return: impl Fn(u64) -> bool,
) -> Result<Option<Interpreted>, Fault> {
    let built = mem
        .word(regs.fp.wrapping_sub(METHOD))
        .is_ok_and(|m| m == regs.rbx)
        && regs.fp > regs.sp
        && mem
            .word(regs.fp.wrapping_sub(SENDER_SP))
            .is_ok_and(|sp| sp > regs.fp);
    if built || !method::is_plausible(mem, layout, regs.rbx) || !in_entry(mem, code, regs)? {
        return Ok(None);
    }
    let callee = |pc, sp, fp| Interpreted {
        method: regs.rbx,
        bci: -1,
        caller_pc: pc,
        caller_sp: sp,
        caller_fp: fp,
    };
    // rbp already points into the frame that is being pushed.
    if regs.fp >= regs.sp && regs.fp.wrapping_sub(regs.sp) <= FIXED_PART_BYTES {
        let pc = mem.word(regs.fp.wrapping_add(8))?;
        if is_return(pc) {
            let saved = mem.word(regs.fp.wrapping_sub(SENDER_SP))?;
            let sp = if saved > regs.fp {
                saved
            } else {
                regs.fp.wrapping_add(16)
            };
            return Ok(Some(callee(pc, sp, mem.word(regs.fp)?)));
        }
    }
    let top = mem.word(regs.sp)?;
    let above = regs.sp.wrapping_add(8);
    // Not popped yet: the caller's sp is right above. Popped: it is in r13, and the return address
    // in rax, and in memory as well until the first local overwrites it.
    let below_sender = mem.word(regs.r13.wrapping_sub(8)).unwrap_or(0);
    let order = if regs.r13 == above {
        [(top, above), (regs.rax, above), (below_sender, above)]
    } else if regs.r13 >= regs.sp {
        [(regs.rax, regs.r13), (below_sender, regs.r13), (top, above)]
    } else {
        [(top, above), (regs.rax, above), (below_sender, above)]
    };
    let found = order.into_iter().find(|(pc, _)| is_return(*pc));
    Ok(found.map(|(pc, sp)| callee(pc, sp, regs.fp)))
}

/// Codelets looked through at most; the interpreter has about 300.
const CODELETS_MAX: u32 = 4096;

/// Whether pc is in a codelet described as a method entry point (interpreter.hpp:
/// `InterpreterCodelet` has its size, then its description, in its first 16 bytes).
fn in_entry<M: Memory>(mem: &M, code: &CodeCache, regs: &Regs) -> Result<bool, Fault> {
    let (mut codelet, end) = code.interpreter();
    for _ in 0..CODELETS_MAX {
        if codelet >= end {
            break;
        }
        let size = u64::from(mem.u32(codelet)?);
        if size == 0 || size > end - codelet {
            break;
        }
        if regs.pc < codelet + size {
            let description = description(mem, codelet)?;
            return Ok(&description == b"method entry");
        }
        codelet += size;
    }
    Ok(false)
}

/// The first bytes of the codelet's description. The field order of `InterpreterCodelet` differs
/// (size first everywhere; the pointer follows at 8 or 16).
fn description<M: Memory>(mem: &M, codelet: u64) -> Result<[u8; 12], Fault> {
    let mut text = [0u8; 12];
    for at in [8, 16, 24] {
        let pointer = mem.word(codelet + at)?;
        let read = |i: u64| mem.u8(pointer.wrapping_add(i));
        if read(0).is_ok_and(|b| b == b'm') {
            for (i, slot) in text.iter_mut().enumerate() {
                *slot = read(i as u64).unwrap_or(0);
            }
            break;
        }
    }
    Ok(text)
}

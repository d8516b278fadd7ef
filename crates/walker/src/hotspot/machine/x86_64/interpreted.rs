//! Method entries and exits of the interpreter: the few instructions before a frame exists and
//! after it is popped.

use super::Regs;
use crate::hotspot::codecache::CodeCache;
use crate::hotspot::interpreter::{Interpreted, LAST_SP, METHOD, SENDER_SP, in_entry};
use crate::hotspot::layout::Layout;
use crate::hotspot::method;
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;

/// While the frame is being pushed, rbp is at most this far above rsp.
const FIXED_PART_BYTES: u64 = 12 * 8;

/// `leave`.
const LEAVE: u8 = 0xc9;
/// `mov byte [r15 + d], 0`: the end of the part that JFR must not sample (since 25).
const STORE_BYTES: usize = 8;

fn is_store(code: &[u8]) -> bool {
    matches!(code, [0x41, 0xc6, 0x87, _, _, _, _, 0])
}

/// Whether code ends with the instruction that pops a frame, and the store that may follow it.
pub(super) fn has_left(code: &[u8]) -> bool {
    let before = match code.split_last_chunk::<STORE_BYTES>() {
        Some((before, store)) if is_store(store) => before,
        _ => code,
    };
    before.ends_with(&[LEAVE])
}

/// Code without the store, which may not be executed yet.
pub(super) fn without_store(code: &[u8]) -> &[u8] {
    match code.split_first_chunk::<STORE_BYTES>() {
        Some((store, after)) if is_store(store) => after,
        _ => code,
    }
}

/// The caller of a method that is just returning. Its frame is popped, the return address is about
/// to be in r13, and the caller's sp in rsp through rbx: `leave; [mov byte [r15 + d], 0;] pop r13;
/// mov rsp, rbx; [...;] jmp r13` (interp_masm_x86.cpp, `remove_activation`; templateTable_x86.cpp,
/// `_return`).
///
/// # Errors
/// [`Fault`] if code or stack cannot be read. `Ok(None)` anywhere else.
pub fn read_exit<M: Memory>(mem: &M, regs: &Regs) -> Result<Option<NativeRegs>, Fault> {
    const POP: [u8; 2] = [0x41, 0x5d];
    const MOVE: [u8; 3] = [0x48, 0x8b, 0xe3];
    const LEAVING_BYTES_MAX: usize = 1 + STORE_BYTES + POP.len() + MOVE.len();
    /// Limit for the code after the last of these instructions, which clears the virtual thread's
    /// fast path.
    const LEFT_BYTES_MAX: usize = 24;
    const BEFORE: usize = LEAVING_BYTES_MAX + LEFT_BYTES_MAX;
    let mut code = [0u8; BEFORE + LEFT_BYTES_MAX];
    mem.read(regs.pc.wrapping_sub(BEFORE as u64), &mut code)?;
    let caller = |pc, sp| NativeRegs {
        pc,
        sp,
        fp: regs.fp,
    };
    let (before, after) = code.split_at(BEFORE);
    let pops = |code: &[u8]| {
        code.strip_prefix(&POP)
            .is_some_and(|c| c.starts_with(&MOVE))
    };
    if has_left(before) && pops(without_store(after)) {
        return Ok(Some(caller(mem.word(regs.sp)?, regs.rbx)));
    }
    if after.starts_with(&MOVE) && before.strip_suffix(&POP).is_some_and(has_left) {
        return Ok(Some(caller(regs.r13, regs.rbx)));
    }
    let jump = |code: &[u8]| {
        code.windows(3)
            .position(|bytes| bytes == [0x41, 0xff, 0xe5])
    };
    let moved = (0..=LEFT_BYTES_MAX).find_map(|back| {
        let (leaving, left) = before.split_at_checked(BEFORE - back)?;
        let popped = leaving.strip_suffix(&MOVE)?.strip_suffix(&POP)?;
        has_left(popped).then_some(left)
    });
    let leaving = moved.is_some_and(|left| jump(left).is_none()) && jump(after).is_some();
    Ok((leaving && regs.sp == regs.rbx).then(|| caller(regs.r13, regs.sp)))
}

/// Method entry code runs before the frame exists. The callee's `Method*` is in rbx, the caller's
/// sp in r13. The return address is at the caller's sp - 8 until locals overwrite it, then in rax
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
    // The words below rsp are from earlier calls, usually from the same place.
    let pushed = |slot: u64| {
        let is_there = regs.sp <= regs.fp.wrapping_sub(slot);
        is_there.then(|| mem.word(regs.fp.wrapping_sub(slot)).unwrap_or(0))
    };
    let inside = regs.fp >= regs.sp;
    let built = inside
        && pushed(METHOD) == Some(regs.rbx)
        && pushed(SENDER_SP).is_some_and(|sp| sp > regs.fp);
    if built {
        return Ok(None);
    }
    if !method::is_plausible(mem, layout, regs.rbx) {
        return Ok(gone_entry(mem, code, regs, is_return).unwrap_or(None));
    }
    if !in_entry(mem, code, regs.pc) {
        return Ok(None);
    }
    let callee = |pc, sp, fp| Interpreted {
        method: regs.rbx,
        bci: -1,
        caller_pc: pc,
        caller_sp: sp,
        caller_fp: fp,
    };
    // rbp already points into the frame that is being pushed. The caller's own frame may be as near
    // if it is small, but it has noted the sp of its call.
    let calls = pushed(LAST_SP).is_some_and(|sp| sp != 0);
    let another = pushed(METHOD).is_some_and(|method| method != regs.rbx);
    let near = inside && regs.fp.wrapping_sub(regs.sp) <= FIXED_PART_BYTES;
    if near && !calls && !another {
        let pc = mem.word(regs.fp.wrapping_add(8))?;
        let sp = pushed(SENDER_SP).unwrap_or(regs.r13);
        if is_return(pc) && sp > regs.fp {
            return Ok(Some(callee(pc, sp, mem.word(regs.fp)?)));
        }
    }
    let top = mem.word(regs.sp)?;
    let above = regs.sp.wrapping_add(8);
    // Before the pop, the caller's sp is right above. After it, the sp is in r13 and the return
    // address in rax, and also in memory until the first local overwrites it.
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

/// The same if the class has been unloaded since. All three registers must agree: when the frame is
/// already being built, rbx may have any value.
fn gone_entry<M: Memory>(
    mem: &M,
    code: &CodeCache,
    regs: &Regs,
    is_return: impl Fn(u64) -> bool,
) -> Result<Option<Interpreted>, Fault> {
    /// There are at most 65535 words of locals.
    const LOCALS_MAX: u64 = 1 << 19;
    let above = regs.sp.wrapping_add(8);
    let top = mem.word(regs.sp)?;
    let fits = regs.rbx & 7 == 0
        && regs.rbx >= 0x1000
        && regs.r13 & 7 == 0
        && regs.r13 >= regs.sp
        && regs.r13.wrapping_sub(regs.sp) <= LOCALS_MAX
        && regs.fp != regs.sp;
    if !fits || !in_entry(mem, code, regs.pc) {
        return Ok(None);
    }
    let not_popped = regs.r13 >= above && is_return(top);
    let pc = match (not_popped, is_return(regs.rax)) {
        (true, false) => top,
        (false, true) => regs.rax,
        (true, true) if top == regs.rax => top,
        _ => return Ok(None),
    };
    Ok(Some(Interpreted {
        method: 0,
        bci: -1,
        caller_pc: pc,
        caller_sp: regs.r13,
        caller_fp: regs.fp,
    }))
}

/// Whether method entry code is just pushing the frame at rbp, and has already pushed the method,
/// which is in rbx.
///
/// # Errors
/// [`Fault`] if the stack or the codelets cannot be read.
pub fn is_being_pushed<M: Memory>(mem: &M, code: &CodeCache, regs: &Regs) -> Result<bool, Fault> {
    let pushed = regs.fp.wrapping_sub(regs.sp);
    Ok((METHOD..=FIXED_PART_BYTES).contains(&pushed)
        && mem.word(regs.fp.wrapping_sub(METHOD))? == regs.rbx
        && mem.word(regs.fp.wrapping_sub(LAST_SP))? == 0
        && mem.word(regs.fp.wrapping_sub(SENDER_SP))? > regs.fp
        && in_entry(mem, code, regs.pc))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    const CODE: u64 = 0x1000;
    const STACK: u64 = 0x7f00_0000_0000;

    #[test]
    fn a_returning_method_has_the_same_caller_at_each_instruction() {
        // leave; pop r13; mov rsp, rbx; cmp rsp, [r15 + d]; jb; jmp r13
        let returns = [
            0xc9, 0x41, 0x5d, 0x48, 0x8b, 0xe3, 0x49, 0x3b, 0xa7, 0x20, 0x06, 0, 0, 0x72, 0x00,
            0x41, 0xff, 0xe5,
        ];
        let mut code = [0x90u8; 96];
        code[40..40 + returns.len()].copy_from_slice(&returns);
        let mut mem = Bytes::at(CODE, &code);
        mem.add(STACK, &0xca11u64.to_le_bytes());
        let begin = CODE + 40;
        let sender = STACK + 64;
        let at = |offset: u64, sp: u64, r13: u64| {
            let regs = Regs {
                pc: begin + offset,
                sp,
                fp: 7,
                rbx: sender,
                r13,
                ..Regs::default()
            };
            read_exit(&mem, &regs).unwrap()
        };
        let caller = Some(NativeRegs {
            pc: 0xca11,
            sp: sender,
            fp: 7,
        });
        assert_eq!(at(0, STACK - 64, 0xbc), None, "the frame is still there");
        assert_eq!(at(1, STACK, 0xbc), caller);
        assert_eq!(at(3, STACK + 8, 0xca11), caller);
        for offset in [6, 13, 15] {
            assert_eq!(at(offset, sender, 0xca11), caller, "{offset}");
        }
        assert_eq!(at(15, STACK, 0xca11), None, "rsp is not the caller's");
        assert_eq!(at(18, sender, 0xca11), None, "behind the jump");
    }

    #[test]
    fn returning_method_with_jfr_store_has_left_its_frame() {
        // leave; mov byte [r15 + 0x3be], 0; pop r13; mov rsp, rbx; cmp ...; jb; jmp r13
        let returns = [
            0xc9, 0x41, 0xc6, 0x87, 0xbe, 0x03, 0, 0, 0, 0x41, 0x5d, 0x48, 0x8b, 0xe3, 0x49, 0x3b,
            0xa7, 0x20, 0x06, 0, 0, 0x72, 0x00, 0x41, 0xff, 0xe5,
        ];
        let mut code = [0x90u8; 112];
        code[48..48 + returns.len()].copy_from_slice(&returns);
        let mut mem = Bytes::at(CODE, &code);
        mem.add(STACK, &0xca11u64.to_le_bytes());
        let sender = STACK + 64;
        let at = |offset: u64, sp: u64, r13: u64| {
            let regs = Regs {
                pc: CODE + 48 + offset,
                sp,
                rbx: sender,
                r13,
                ..Regs::default()
            };
            read_exit(&mem, &regs)
                .unwrap()
                .map(|caller| (caller.pc, caller.sp))
        };
        let caller = Some((0xca11, sender));
        assert_eq!(at(0, STACK - 64, 0xbc), None, "the frame is still there");
        assert_eq!(at(1, STACK, 0xbc), caller);
        assert_eq!(at(9, STACK, 0xbc), caller);
        assert_eq!(at(11, STACK + 8, 0xca11), caller);
        for offset in [14, 21, 23] {
            assert_eq!(at(offset, sender, 0xca11), caller, "{offset}");
        }
        assert_eq!(at(26, sender, 0xca11), None, "behind the jump");
    }
}

//! Method entries and exits of the interpreter: the few instructions before a frame exists and
//! after it is popped (templateInterpreterGenerator_aarch64.cpp, interp_masm_aarch64.cpp).

use super::{Regs, encoding, linked};
use crate::hotspot::codecache::CodeCache;
use crate::hotspot::interpreter::{Interpreted, LAST_SP, METHOD, SENDER_SP, in_entry};
use crate::hotspot::layout::Layout;
use crate::hotspot::method;
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;

/// Bytes from the lowest word of a new frame's fixed part to its frame pointer: 10 words, and sp
/// may already be lower by the room for expressions.
const FIXED_PART_BYTES: u64 = 10 * 8;
/// There are at most 65535 words of locals.
const LOCALS_MAX: u64 = 1 << 19;
/// Instructions between the removal of a frame and the return, at most.
const LEFT_MAX: u64 = 24;
/// Distance between an interpreted frame and its caller's sp, at most: the caller may have made
/// room for a large expression stack.
const SENDER_MAX: u64 = 1 << 20;

/// sp of the caller of the frame at `fp`. The slot has what sp was in the caller, which may have
/// kept sp below the words that it works on. Then the frame of the callee is above that, and begins
/// the caller's part.
pub fn interpreted_sp(fp: u64, slot: u64) -> Option<u64> {
    let distance = slot.wrapping_sub(fp).wrapping_add(SENDER_MAX);
    let is_valid = slot & 15 == 0 && slot != 0 && distance <= 2 * SENDER_MAX;
    is_valid.then_some(slot.max(fp.wrapping_add(16)))
}

/// The caller of a method that is just returning. Its frame is popped by `mov sp, x29; ldp x29,
/// x30, [sp], 16`, and the caller's sp is in x20, from which `and sp, x20, -16` sets it
/// (`remove_activation`).
///
/// # Errors
/// [`Fault`] if the code cannot be read. `Ok(None)` anywhere else.
pub fn read_exit<M: Memory>(mem: &M, regs: &Regs) -> Result<Option<NativeRegs>, Fault> {
    let mut has_left = false;
    for back in 1..=LEFT_MAX {
        let done = encoding::at(mem, regs.pc.wrapping_sub(back * encoding::BYTES))?;
        if done == encoding::POP_FRAME {
            has_left = true;
            break;
        }
        if encoding::is_return(done) || encoding::jump(done).is_some() || encoding::is_call(done) {
            break;
        }
    }
    if !has_left {
        return Ok(None);
    }
    for i in 0..LEFT_MAX {
        let next = encoding::at(mem, regs.pc.wrapping_add(i * encoding::BYTES))?;
        if encoding::is_return(next) {
            return Ok(Some(NativeRegs {
                pc: super::return_address(regs.lr),
                sp: regs.x20 & !15,
                fp: regs.fp,
            }));
        }
        if encoding::is_call(next) || encoding::pops_frame(next) {
            break;
        }
    }
    Ok(None)
}

/// The caller of a method left by an exception, at the return of the call that asks the VM for its
/// handler. x0 and the return address were pushed before, and x8 and x12 for the call
/// (`generate_throw_exception`, `call_VM_leaf_base`).
///
/// # Errors
/// [`Fault`] if code or stack cannot be read. `Ok(None)` anywhere else.
pub fn forwarding<M: Memory>(mem: &M, at: NativeRegs) -> Result<Option<NativeRegs>, Fault> {
    /// `ldp x8, x12, [sp], 16`; `mov x1, x0`; `ldp x0, x30, [sp], 16`.
    const ANSWERED: [u32; 3] = [0xa8c1_33e8, 0xaa00_03e1, 0xa8c1_7be0];
    for (i, expected) in (0u64..).zip(ANSWERED) {
        if encoding::at(mem, at.pc.wrapping_add(i * encoding::BYTES))? != expected {
            return Ok(None);
        }
    }
    Ok(Some(NativeRegs {
        pc: super::return_address(mem.word(at.sp.wrapping_add(24))?),
        sp: at.sp.wrapping_add(32),
        fp: at.fp,
    }))
}

/// Method entry code runs before the frame exists. The callee's `Method*` is in x12, the return
/// address in x30, and the caller's sp in x19 (in x13 until 19). The frame's words are stored from
/// the method upwards, and the caller's sp last (`generate_fixed_frame`).
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
    if !method::is_plausible(mem, layout, regs.x12) || !in_entry(mem, code, regs.pc) {
        return Ok(None);
    }
    if is_in_whole_frame(mem, code, regs)? {
        return Ok(None);
    }
    let callee = |caller: NativeRegs, sp| Interpreted {
        method: regs.x12,
        bci: -1,
        caller_pc: caller.pc,
        caller_sp: sp,
        caller_fp: caller.fp,
    };
    let is_sender = |sp: &u64| sp & 15 == 0 && sp.wrapping_sub(regs.sp) <= LOCALS_MAX;
    let sender = [regs.x19, regs.x13].into_iter().find(is_sender);
    if is_in_new_frame(regs) && mem.word(regs.fp.wrapping_sub(METHOD))? == regs.x12 {
        let slot = mem.word(regs.fp.wrapping_sub(SENDER_SP))?;
        if interpreted_sp(regs.fp, slot).is_some() {
            return Ok(None);
        }
        let caller = linked(mem, regs.fp)?;
        let sp = sender.unwrap_or(caller.sp);
        return Ok(is_return(caller.pc).then(|| callee(caller, sp.max(caller.sp))));
    }
    let caller = NativeRegs {
        pc: super::return_address(regs.lr),
        sp: regs.sp,
        fp: regs.fp,
    };
    let sp = sender.unwrap_or(regs.sp);
    Ok(is_return(caller.pc).then(|| callee(caller, sp)))
}

/// Whether the rest of a method's entry, after the frame has been built, was interrupted. The slot
/// of the caller's sp is stored last. Calls from there (to count, or to enter a monitor) may have
/// changed the register that it was in, and leave their return address in x30.
fn is_in_whole_frame<M: Memory>(mem: &M, code: &CodeCache, regs: &Regs) -> Result<bool, Fault> {
    if regs.fp < regs.sp.wrapping_add(FIXED_PART_BYTES) {
        return Ok(false);
    }
    let slot = |below: u64| mem.word(regs.fp.wrapping_sub(below));
    if slot(METHOD)? != regs.x12 {
        return Ok(false);
    }
    let sender_sp = slot(SENDER_SP)?;
    let is_stored = interpreted_sp(regs.fp, sender_sp).is_some();
    let is_sender = [regs.x19, regs.x13].contains(&sender_sp);
    Ok(is_stored && (is_sender || in_entry(mem, code, regs.lr)))
}

/// Whether the frame pointer is where that of a frame being built is.
fn is_in_new_frame(regs: &Regs) -> bool {
    regs.fp >= regs.sp && regs.fp.wrapping_sub(regs.sp) == FIXED_PART_BYTES
}

/// Whether method entry code is just building the frame, and has already stored the method.
///
/// # Errors
/// [`Fault`] if the stack or the codelets cannot be read.
pub fn is_being_built<M: Memory>(mem: &M, code: &CodeCache, regs: &Regs) -> Result<bool, Fault> {
    let slot = |below: u64| mem.word(regs.fp.wrapping_sub(below));
    Ok(is_in_new_frame(regs)
        && slot(METHOD)? == regs.x12
        && slot(LAST_SP)? == 0
        && interpreted_sp(regs.fp, slot(SENDER_SP)?).is_some()
        && in_entry(mem, code, regs.pc))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::codecache::CODE_CACHE_WORDS;
    use crate::hotspot::test_memory::Bytes;
    extern crate std;
    use std::vec::Vec;

    const CODE: u64 = 0x1000;
    const STACK: u64 = 0x7f00_0000_0000;
    const CALLER: u64 = 0xca10;

    fn memory(codes: &[u32]) -> Bytes {
        // Enough to look back and forward.
        let mut all = std::vec![0xd503_201fu32; 32];
        all.extend(codes);
        all.extend([0xd503_201f; 32]);
        let bytes: Vec<u8> = all.iter().flat_map(|code| code.to_le_bytes()).collect();
        Bytes::at(CODE, &bytes)
    }

    #[test]
    fn returning_method_has_the_same_caller_at_each_instruction() {
        // mov sp, x29; ldp x29, x30, [sp], 16; and sp, x20, -16; ret
        let mem = memory(&[0x9100_03bf, encoding::POP_FRAME, 0x927c_ee9f, 0xd65f_03c0]);
        let at = |index: u64| {
            let regs = Regs {
                pc: CODE + 4 * (32 + index),
                sp: STACK,
                fp: 7,
                lr: 0x00ab << 48 | CALLER,
                x20: STACK + 0x48,
                ..Regs::default()
            };
            read_exit(&mem, &regs).unwrap()
        };
        let caller = Some(NativeRegs {
            pc: CALLER,
            sp: STACK + 0x40,
            fp: 7,
        });
        assert_eq!([at(0), at(1)], [None; 2], "the frame is still there");
        assert_eq!([at(2), at(3)], [caller; 2]);
        assert_eq!(at(4), None, "after the return");
    }

    #[test]
    fn forwarding_finds_pushed_return_address() {
        let mut mem = memory(&[0xa8c1_33e8, 0xaa00_03e1, 0xa8c1_7be0, 0xd61f_0020]);
        mem.add_words(STACK, &[1, 2, 3, CALLER]);
        let at = |pc| {
            let regs = NativeRegs {
                pc,
                sp: STACK,
                fp: 7,
            };
            let found = forwarding(&mem, regs).unwrap();
            found.map(|caller| (caller.pc, caller.sp, caller.fp))
        };
        let begin = CODE + 4 * 32;
        assert_eq!(at(begin), Some((CALLER, STACK + 32, 7)));
        assert_eq!(at(begin + 4), None);
        assert_eq!(at(begin - 4), None);
    }

    #[test]
    fn callers_sp_may_be_below_the_frame() {
        let fp = STACK + 0x1000;
        assert_eq!(interpreted_sp(fp, fp + 0x40), Some(fp + 0x40));
        assert_eq!(interpreted_sp(fp, fp - 0x100), Some(fp + 16));
        assert_eq!(interpreted_sp(fp, fp + 8), None, "not aligned");
        assert_eq!(interpreted_sp(fp, 0), None);
        assert_eq!(interpreted_sp(fp, fp + SENDER_MAX + 16), None, "too far");
        assert_eq!(interpreted_sp(fp, fp - SENDER_MAX - 16), None);
    }
    #[test]
    fn entry_with_a_whole_frame_is_not_before_it() {
        const METHOD_AT: u64 = 0x77_0000;
        const FP: u64 = STACK + 0x200;
        const SENDER: u64 = FP + 0x20;
        const ENTRY: u64 = CODE + 0x40;
        // One codelet of 0x100 bytes, of a method entry.
        let mut mem = Bytes::of_words(&[(CODE, &[0x100, 0x9000])]);
        mem.add(0x9000, b"method e");
        // The frame's slots of the method, the last sp and the caller's sp.
        mem.add_words(FP - METHOD, &[METHOD_AT, 0, SENDER, STACK + 0x300, CALLER]);
        let mut words = [0; CODE_CACHE_WORDS];
        words[CODE_CACHE_WORDS - 3] = CODE;
        words[CODE_CACHE_WORDS - 2] = CODE + 0x100;
        let code = CodeCache::from_words(&words);
        let is_whole = |regs: Regs| is_in_whole_frame(&mem, &code, &regs).unwrap();
        let whole = Regs {
            pc: ENTRY,
            sp: STACK + 0x100,
            fp: FP,
            lr: CALLER,
            x12: METHOD_AT,
            x13: SENDER,
            ..Regs::default()
        };
        assert!(is_whole(whole));
        let (x13, x19) = (7, SENDER);
        assert!(is_whole(Regs { x13, x19, ..whole }), "since 20");
        let lr = ENTRY + 8;
        assert!(is_whole(Regs { x13, lr, ..whole }), "after a call");
        // The frame of a caller that calls itself: its caller's sp is another one.
        let x13 = STACK + 0x100;
        assert!(!is_whole(Regs { x13, ..whole }), "not built yet");
        let sp = FP - FIXED_PART_BYTES + 16;
        assert!(!is_whole(Regs { sp, ..whole }), "being built");
        let x12 = METHOD_AT + 8;
        assert!(!is_whole(Regs { x12, ..whole }), "another method's");
    }
}

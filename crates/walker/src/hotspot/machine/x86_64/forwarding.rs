//! An exception leaves an interpreted method for its caller. The frame is already popped while the
//! interpreter calls the VM to find the caller's handler (templateInterpreterGenerator_x86.cpp,
//! `generate_throw_exception`, from the last `remove_activation` on):
//!
//! `leave; [mov byte [r15 + d], 0;] pop rdx; mov rsp, rbx; ...; push rax; push rdx; ...; call VM;
//! mov rbx, rax; pop rdx; pop rax; jmp rbx`
//!
//! rdx has the return address, rbx the caller's sp, which is unchanged until the VM returns. If the
//! stack was not aligned, one more word is pushed for the call. rbp may belong to any frame by
//! then, because a compiled caller may have changed it.

use super::Regs;
use super::interpreted::{has_left, without_store};
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;

const POP: u8 = 0x5a;
const MOVE: [u8; 3] = [0x48, 0x8b, 0xe3];
/// `mov rbx, rax; pop rdx; pop rax; jmp rbx`.
const ANSWERED: [u8; 7] = [0x48, 0x8b, 0xd8, 0x5a, 0x58, 0xff, 0xe3];
/// `add rsp, 8; jmp` over the other call, which is for an aligned stack.
const REALIGNED: [u8; 9] = [0x48, 0x83, 0xc4, 0x08, 0xe9, 0x05, 0, 0, 0];
const CALL_BYTES: usize = 5;
/// Maximum length of the sequence.
const BYTES_MAX: usize = 128;
const CODE_BYTES: usize = 2 * BYTES_MAX;
/// Maximum number of bytes pushed for the call.
const PUSHED_BYTES: u64 = 24;

/// The caller of a method in this sequence, interrupted by a signal.
///
/// # Errors
/// [`Fault`] if code or stack cannot be read. `Ok(None)` anywhere else.
pub fn interrupted<M: Memory>(mem: &M, regs: &Regs) -> Result<Option<NativeRegs>, Fault> {
    let mut code = [0u8; CODE_BYTES];
    mem.read(regs.pc.wrapping_sub(BYTES_MAX as u64), &mut code)?;
    let (before, after) = code.split_at(BYTES_MAX);
    let caller = |pc, sp| NativeRegs {
        pc,
        sp,
        fp: regs.fp,
    };
    let left = find(after, &ANSWERED);
    // The last three instructions; the first is `mov rbx, rax`.
    let done = (0..ANSWERED.len()).rev().find(|done| {
        let (gone, to_go) = ANSWERED.split_at(*done);
        *done >= MOVE.len() && before.ends_with(gone) && after.starts_with(to_go)
    });
    match done {
        Some(3) => return Ok(Some(caller(mem.word(regs.sp)?, regs.sp.wrapping_add(16)))),
        Some(4) => return Ok(Some(caller(regs.rdx, regs.sp.wrapping_add(8)))),
        Some(5) => return Ok(Some(caller(regs.rdx, regs.sp))),
        _ if left.is_none() => return Ok(None),
        _ => {}
    }
    let pops = |code: &[u8]| matches!(code, [POP, moves @ ..] if moves.starts_with(&MOVE));
    let popped = |code: &[u8]| code.strip_suffix(&[POP]).is_some_and(has_left);
    if has_left(before) && pops(without_store(after)) {
        return Ok(Some(caller(mem.word(regs.sp)?, regs.rbx)));
    }
    if popped(before) && after.starts_with(&MOVE) {
        return Ok(Some(caller(regs.rdx, regs.rbx)));
    }
    let moved = (0..=before.len()).any(|end| {
        let code = before.get(..end).unwrap_or(&[]);
        code.strip_suffix(&MOVE).is_some_and(popped)
    });
    let pushed = regs.rbx.wrapping_sub(regs.sp);
    if !moved || pushed > PUSHED_BYTES || pushed & 7 != 0 {
        return Ok(None);
    }
    // The VM may change rdx.
    let pc = match pushed {
        0 | 8 => regs.rdx,
        _ => mem.word(regs.rbx.wrapping_sub(16))?,
    };
    Ok(Some(caller(pc, regs.rbx)))
}

/// The same during the call of the VM; `regs` are those after its return.
///
/// # Errors
/// [`Fault`] if code or stack cannot be read. `Ok(None)` anywhere else.
pub fn called<M: Memory>(mem: &M, regs: NativeRegs) -> Result<Option<NativeRegs>, Fault> {
    // Most calls of the interpreter are different ones.
    let first = mem.word(regs.pc)?.to_le_bytes();
    if !first.starts_with(&ANSWERED) && !REALIGNED.starts_with(&first) {
        return Ok(None);
    }
    let mut code = [0u8; REALIGNED.len() + CALL_BYTES + ANSWERED.len()];
    mem.read(regs.pc, &mut code)?;
    let other = code.get(REALIGNED.len() + CALL_BYTES..);
    let top = if code.starts_with(&ANSWERED) {
        regs.sp
    } else if code.starts_with(&REALIGNED) && other == Some(&ANSWERED[..]) {
        regs.sp.wrapping_add(8)
    } else {
        return Ok(None);
    };
    Ok(Some(NativeRegs {
        pc: mem.word(top)?,
        sp: top.wrapping_add(16),
        fp: regs.fp,
    }))
}

fn find(code: &[u8], wanted: &[u8]) -> Option<usize> {
    code.windows(wanted.len()).position(|part| part == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    const CODE: u64 = 0x1000;
    const STACK: u64 = 0x7f00_0000_0000;
    const SENDER: u64 = STACK + 0x100;
    const CALLER: u64 = 0xca11;

    /// leave at 128; pop rdx; mov rsp, rbx; mov rax, [r15 + d]; push rax; push rdx; ...; two ways
    /// to call; the end.
    fn code(store: &[u8]) -> ([u8; 512], [u64; 10]) {
        let mut code = [0x90u8; 512];
        let mut at = 128;
        let mut places = [0; 10];
        let mut put = |bytes: &[u8]| {
            code[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
            CODE + at as u64
        };
        places[0] = put(&[0xc9]);
        places[9] = put(store);
        places[1] = put(&[POP]);
        places[2] = put(&MOVE);
        put(&[0x49, 0x8b, 0x87, 0xf8, 0x03, 0, 0]);
        places[3] = put(&[0x50]);
        places[4] = put(&[0x52]);
        put(&[0x48, 0x8b, 0xf2, 0x49, 0x8b, 0xff, 0x40, 0xf6, 0xc4, 0x0f]);
        put(&[0x0f, 0x84, 0x12, 0, 0, 0, 0x48, 0x83, 0xec, 0x08]);
        places[5] = put(&[0xe8, 1, 2, 3, 4]);
        put(&REALIGNED);
        places[6] = put(&[0xe8, 1, 2, 3, 4]);
        places[7] = put(&MOVE_RBX);
        places[8] = put(&[0x5a]);
        put(&[0x58, 0xff, 0xe3]);
        (code, places)
    }

    const MOVE_RBX: [u8; 3] = [0x48, 0x8b, 0xd8];

    fn memory(code: &[u8]) -> Bytes {
        let mut mem = Bytes::at(CODE, code);
        let mut words = [0u64; 64];
        // The exception, and the return address below it.
        (words[31], words[30]) = (0xe, CALLER);
        // The return address before it is popped.
        words[2] = CALLER;
        let bytes = words.map(u64::to_le_bytes);
        mem.add(STACK, bytes.as_flattened());
        mem
    }

    #[test]
    fn caller_is_the_same_at_each_instruction_of_forwarding() {
        for store in [&[][..], &[0x41, 0xc6, 0x87, 1, 2, 0, 0, 0]] {
            at_each_instruction(store);
        }
    }

    fn at_each_instruction(store: &[u8]) {
        let (code, places) = code(store);
        let mem = memory(&code);
        let at = |place: usize, sp: u64, rdx: u64, rbx: u64| {
            let regs = Regs {
                pc: places[place],
                sp,
                rdx,
                rbx,
                ..Regs::default()
            };
            let found = interrupted(&mem, &regs).unwrap();
            found.map(|caller| (caller.pc, caller.sp))
        };
        let caller = Some((CALLER, SENDER));
        assert_eq!(at(0, STACK + 16, 0, SENDER), caller, "left");
        assert_eq!(at(9, STACK + 16, 0, SENDER), caller, "stored");
        assert_eq!(at(1, STACK + 24, CALLER, SENDER), caller, "popped");
        assert_eq!(at(2, SENDER, CALLER, SENDER), caller, "moved");
        assert_eq!(at(3, SENDER - 8, CALLER, SENDER), caller, "one pushed");
        assert_eq!(at(4, SENDER - 16, CALLER, SENDER), caller, "both pushed");
        assert_eq!(at(5, SENDER - 24, 7, SENDER), caller, "back, not aligned");
        assert_eq!(at(6, SENDER - 16, 7, SENDER), caller, "back");
        assert_eq!(at(7, SENDER - 16, 7, 0xa), caller, "answered");
        assert_eq!(at(8, SENDER - 8, CALLER, 0xa), caller, "popped again");
        assert_eq!(at(4, STACK, CALLER, SENDER), None, "rsp is elsewhere");
    }

    #[test]
    fn caller_is_found_during_the_call_of_the_vm() {
        let (code, places) = code(&[]);
        let mem = memory(&code);
        let at = |pc: u64, sp: u64| {
            let regs = NativeRegs { pc, sp, fp: 9 };
            called(&mem, regs)
                .unwrap()
                .map(|caller| (caller.pc, caller.sp))
        };
        assert_eq!(at(places[5], SENDER - 24), Some((CALLER, SENDER)));
        assert_eq!(at(places[6], SENDER - 16), Some((CALLER, SENDER)));
        assert_eq!(at(places[2], SENDER), None);
    }

    /// A method that returns also leaves its frame like this, but does not call the VM.
    #[test]
    fn method_end_without_vm_call_is_not_forwarding() {
        let (mut code, places) = code(&[]);
        code[(places[6] - CODE) as usize] = 0x90;
        let mem = memory(&code);
        for (place, sp) in [
            (0, STACK + 16),
            (1, STACK + 24),
            (2, SENDER),
            (3, SENDER - 8),
        ] {
            let regs = Regs {
                pc: places[place],
                sp,
                rdx: CALLER,
                rbx: SENDER,
                ..Regs::default()
            };
            assert_eq!(interrupted(&mem, &regs), Ok(None), "{place}");
        }
        let (pc, sp) = (places[6], SENDER - 16);
        assert_eq!(called(&mem, NativeRegs { pc, sp, fp: 9 }), Ok(None));
    }
}

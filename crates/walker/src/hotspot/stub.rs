//! Stubs, adapters and virtual call stubs: code-cache code that is neither a method nor has, at
//! every instruction, a frame of known size. Their caller is found by checking candidates.

use super::codecache::{Blob, BlobKind};
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;
use crate::regs::Regs;

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
    if matches!(blob.kind, BlobKind::Adapter) {
        return adapter_caller(mem, blob, regs, is_caller);
    }
    let mut code = [0u8; 8];
    mem.read(regs.pc.wrapping_sub(4), &mut code)?;
    let (before, after) = code.split_at(4);
    // `pop [rsp]`: C2's stubs copy their return address so, by way of a word that is pushed.
    let copies = matches!(after, [0x8f, 0x04, 0x24, _] | [0x48, 0x8f, 0x04, 0x24]);
    let sp = regs.sp.wrapping_add(if copies { 8 } else { 0 });
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
        let direct = direct_at(mem, blob, slot, fp);
        Ok(direct.or(is_caller(caller).then_some(caller)))
    };
    if no_frame && let Some(found) = at(sp, regs.fp)? {
        return Ok(Some(found));
    }
    if (pushed || pops)
        && let Some(found) = at(sp.wrapping_add(8), mem.word(sp)?)?
    {
        return Ok(Some(found));
    }
    if let Some(found) = direct_caller(mem, blob, (sp, regs.fp), &is_caller) {
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

/// The caller whose call names the stub's own beginning. Code of C1 calls so for subtype checks,
/// barriers and other slow paths (c1_LIRAssembler_x86.cpp, c1_CodeStubs_x86.cpp). It may have
/// pushed arguments right before, which it takes back itself: its frame begins above them. It may
/// also have saved a register earlier, so that [`interrupted_caller`]'s test for a caller fails.
fn direct_caller<M: Memory>(
    mem: &M,
    blob: &Blob,
    (sp, fp): (u64, u64),
    is_caller: &impl Fn(NativeRegs) -> bool,
) -> Option<NativeRegs> {
    let at = |slot: u64, fp: u64| direct_at(mem, blob, slot, fp);
    if fp >= sp && fp.wrapping_sub(sp) <= STUB_FRAME_MAX {
        let linked = || at(return_slot(mem, fp).ok()?, mem.word(fp).ok()?);
        if let Some(found) = linked() {
            return Some(found);
        }
    }
    // What is above a frame of the stub's own is not its return address: that was called by way of
    // a register, and the words are those of an earlier call of the same stub.
    let framed = fp >= sp && matches!(by_frame_pointer(mem, fp, is_caller), Ok(Some(_)));
    // Of an earlier call of the same stub a return address may be left where the stub has not
    // written yet.
    let mut called = None;
    for i in 0..SCAN_WORDS {
        let slot = sp.wrapping_add(i * 8);
        if framed && slot > fp {
            break;
        }
        let found = at(slot, fp);
        if found.is_some_and(is_caller) {
            return found;
        }
        called = called.or(found);
    }
    called
}

/// The caller that returns to what is in `slot`, if that called the stub's own beginning.
fn direct_at<M: Memory>(mem: &M, blob: &Blob, slot: u64, fp: u64) -> Option<NativeRegs> {
    let pc = mem.word(slot).ok()?;
    let pushed = words_pushed_for(mem, pc, blob.code_begin)?;
    Some(NativeRegs {
        pc,
        sp: slot.wrapping_add(8 * (1 + pushed)),
        fp,
    })
}

/// The caller, at its call, of the way from compiled code to an interpreted method, which lies
/// behind the caller's own code, in `blob`: `mov rbx, METHOD; jmp TARGET` (compiledIC_x86.cpp,
/// `emit_to_interp_stub`). When the method is compiled the call is linked to that, while threads
/// may still be on this way.
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
/// So far from its end a direct call can lead.
const CALL_REACH: u64 = 1 << 31;

fn follows_direct_call<M: Memory>(mem: &M, pc: u64) -> bool {
    mem.u8(pc.wrapping_sub(DIRECT_CALL_BYTES)) == Ok(DIRECT_CALL)
}

/// How many words are pushed right before the call that returns to `pc`; `None` if that does not
/// call `target`.
fn words_pushed_for<M: Memory>(mem: &M, pc: u64, target: u64) -> Option<u64> {
    // Most words of a stack are no addresses of code: a read there is a fault, which costs more
    // than the whole walk.
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

/// Where the return address of the stub lies whose rbp frame is at `fp`. The stub of nmethod entry
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
fn by_frame_pointer<M: Memory>(
    mem: &M,
    fp: u64,
    is_caller: &impl Fn(NativeRegs) -> bool,
) -> Result<Option<NativeRegs>, Fault> {
    let slot = return_slot(mem, fp)?;
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

/// The caller of an adapter whose barrier has saved the flags, which lie right below the return
/// address, and below them registers, those of vectors included
/// (shenandoahBarrierSetAssembler_x86.cpp, `load_reference_barrier`, until JDK 17). Among the
/// registers may be the return address once more.
fn saving_caller<M: Memory>(
    mem: &M,
    sp: u64,
    fp: u64,
    is_caller: &impl Fn(NativeRegs) -> bool,
) -> Result<Option<NativeRegs>, Fault> {
    /// A bit that is always 1, and that interrupts are on.
    const SET: u64 = 0x202;
    /// Those that programs can set besides.
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

/// Whether `pc` lies behind the last `lea r13, [rsp + 8]` of an adapter, or its [`POP_AND_MOVE`],
/// which is the way into the interpreter: from there on the caller's sp is in r13 for sure, and
/// room for arguments may lie below it.
fn has_sender<M: Memory>(mem: &M, blob: &Blob, pc: u64) -> Result<bool, Fault> {
    /// The longest way from there to the jump: 255 arguments, a load and a store of 8 bytes each.
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

/// The compiled code that a poll has stopped, where the stub for that has not put its pc onto the
/// stack yet: `push rbx` (to make room for it); `push rbp; mov rbp, rsp`; and so on, until it is
/// taken from the thread (sharedRuntime_x86_64.cpp, `generate_handler_blob`). `poll_pc` is the pc
/// that the VM's signal handler has left there.
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
    if let Some(found) = direct_caller(mem, blob, (regs.sp, regs.fp), &is_caller) {
        return Ok(Some(found));
    }
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
    // Two that agree on where the return address is: if it is none, the caller's code is gone.
    let top = regs.sp.wrapping_add(blob.frame_bytes);
    if blob.frame_bytes > 0 && regs.fp == top.wrapping_sub(16) {
        return Ok(None);
    }
    if matches!(blob.kind, BlobKind::Adapter)
        && let Some(found) = saving_caller(mem, regs.sp, regs.fp, &is_caller)?
    {
        return Ok(Some(found));
    }
    // An adapter calls the VM with all registers saved.
    let words = match blob.kind {
        BlobKind::Adapter => STUB_FRAME_MAX / 8,
        _ => SCAN_WORDS,
    };
    for i in 0..words {
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

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::hotspot::test_memory::Bytes;
    use std::vec::Vec;

    const CODE: u64 = 0x1000;
    const STACK: u64 = 0x2000;

    fn words(values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn room_for_arguments_does_not_hide_the_caller_of_an_adapter() {
        // lea r13, [rsp + 8]; pop rax; sub rsp, 0x20; push rax; mov [rsp + 24], rsi
        let mut code = [0x90u8; 64];
        let adapter = [
            0x4c, 0x8d, 0x6c, 0x24, 0x08, 0x58, 0x48, 0x83, 0xec, 0x20, 0x50, 0x48, 0x89,
        ];
        code[16..16 + adapter.len()].copy_from_slice(&adapter);
        let mut mem = Bytes::at(CODE, &code);
        mem.add(STACK, &words(&[0xca11, 0, 0, 0, 0, 0, 0, 0]));
        let blob = Blob {
            addr: CODE,
            kind: BlobKind::Adapter,
            code_begin: CODE,
            frame_bytes: 0,
        };
        let caller_at = |pc: u64| {
            let regs = Regs {
                pc: CODE + pc,
                sp: STACK,
                r13: STACK + 0x28,
                ..Regs::default()
            };
            let found = interrupted_caller(&mem, &blob, &regs, |caller| caller.pc == 0xca11);
            found.unwrap().map(|caller| caller.sp - STACK)
        };
        assert_eq!(caller_at(16), Some(8), "r13 is the caller's own");
        assert_eq!(caller_at(27), Some(0x28));
    }

    #[test]
    fn a_barrier_that_has_saved_all_registers_does_not_hide_the_caller_of_an_adapter() {
        const CALLER: u64 = 0xca11;
        let mut mem = Bytes::at(CODE, &[0x90u8; 64]);
        // A vector register, saved registers with the return address in one and what looks like
        // flags in another, the flags, the return address.
        let stack = [0x407e_0000, 7, CALLER, 0x246, 8, 0x246, CALLER, 9];
        let mut all = Vec::from(stack);
        all.resize(1024, 0);
        mem.add(STACK, &words(&all));
        let blob = Blob {
            addr: CODE,
            kind: BlobKind::Adapter,
            code_begin: CODE,
            frame_bytes: 0,
        };
        let regs = Regs {
            pc: CODE + 16,
            sp: STACK,
            fp: 0xb9,
            r13: CALLER,
            ..Regs::default()
        };
        let expected = Some(NativeRegs {
            pc: CALLER,
            sp: STACK + 56,
            fp: 0xb9,
        });
        let is_caller = |caller: NativeRegs| caller.pc == CALLER;
        let found = interrupted_caller(&mem, &blob, &regs, is_caller);
        assert_eq!(found, Ok(expected));
        let below = NativeRegs {
            pc: CODE + 16,
            sp: STACK,
            fp: 0xb9,
        };
        assert_eq!(calling_caller(&mem, &blob, below, is_caller), Ok(expected));
    }

    #[test]
    fn on_the_way_to_an_interpreted_method_the_call_is_the_caller() {
        // call CODE + 32; ...; mov rbx, imm64; jmp
        let mut code = [0x90u8; 64];
        code[16..21].copy_from_slice(&[0xe8, 32 - 21, 0, 0, 0]);
        code[32..34].copy_from_slice(&[0x48, 0xbb]);
        code[42] = 0xe9;
        let mut mem = Bytes::at(CODE, &code);
        mem.add(STACK, &words(&[CODE + 21]));
        let blob = Blob {
            addr: CODE,
            kind: BlobKind::Nmethod,
            code_begin: CODE,
            frame_bytes: 32,
        };
        let caller = |mem: &Bytes, blob: &Blob, pc: u64| {
            let regs = Regs {
                pc: CODE + pc,
                sp: STACK,
                ..Regs::default()
            };
            static_call_caller(mem, blob, &regs).map(|caller| (caller.pc - CODE, caller.sp - STACK))
        };
        let at = |pc: u64| caller(&mem, &blob, pc);
        assert_eq!(at(32), Some((21, 8)));
        assert_eq!(at(42), Some((21, 8)));
        assert_eq!(at(16), None);
        assert_eq!(at(33), None);
        code[17] += 1;
        let returning = |to: u64| {
            let mut other = Bytes::at(CODE, &code);
            other.add(STACK, &words(&[CODE + to]));
            other
        };
        assert_eq!(
            caller(&returning(21), &blob, 32),
            Some((21, 8)),
            "linked anew"
        );
        assert_eq!(caller(&returning(22), &blob, 32), None, "no call");
        let behind = Blob {
            code_begin: CODE + 22,
            ..blob
        };
        assert_eq!(
            caller(&returning(21), &behind, 32),
            None,
            "another method's call"
        );
    }

    #[test]
    fn a_poll_is_known_before_its_pc_is_on_the_stack() {
        const POLL: u64 = 0x5000;
        let mut code = [0x90u8; 16];
        code[..5].copy_from_slice(&[0x53, 0x55, 0x48, 0x8b, 0xec]);
        let mut mem = Bytes::at(CODE, &code);
        // The saved rbp, and rbx in the place of the pc.
        mem.add(STACK, &words(&[0xb9, 0xb8, 0]));
        let blob = Blob {
            addr: CODE,
            kind: BlobKind::Stub,
            code_begin: CODE,
            frame_bytes: 0,
        };
        let at = |pc: u64, sp: u64, fp: u64| {
            let regs = Regs {
                pc: CODE + pc,
                sp,
                fp,
                ..Regs::default()
            };
            polling_caller(&mem, &blob, &regs, POLL)
        };
        let caller = Some(NativeRegs {
            pc: POLL,
            sp: STACK + 16,
            fp: 0xb9,
        });
        assert_eq!(at(0, STACK + 16, 0xb9), caller);
        assert_eq!(at(1, STACK + 8, 0xb9), caller);
        assert_eq!(at(2, STACK, 0xb9), caller);
        assert_eq!(at(5, STACK, STACK), caller);
        assert_eq!(at(12, STACK - 64, STACK), caller);
        let regs = Regs::default();
        assert_eq!(polling_caller(&mem, &blob, &regs, 0), None, "never polled");
    }

    #[test]
    fn arguments_pushed_for_a_stub_are_not_part_of_its_callers_frame() {
        const CALLER: u64 = 0x4000;
        // push rsi; push r8; call CODE
        let mut code = [0x90u8; 32];
        let distance = (CODE as i32 - (CALLER as i32 + 32)).to_le_bytes();
        code[24..28].copy_from_slice(&[0x56, 0x41, 0x50, 0xe8]);
        code[28..].copy_from_slice(&distance);
        let mut mem = Bytes::at(CALLER, &code);
        mem.add(CODE, &[0x90u8; 64]);
        let back = CALLER + 32;
        let mut stack = [0; 24];
        stack[1] = back;
        mem.add(STACK, &words(&stack));
        let blob = |code_begin| Blob {
            addr: CODE,
            kind: BlobKind::Stub,
            code_begin,
            frame_bytes: 0,
        };
        let regs = Regs {
            pc: CODE + 16,
            sp: STACK,
            fp: 0x77,
            ..Regs::default()
        };
        let is_caller = |caller: NativeRegs| caller.pc == back;
        let found = interrupted_caller(&mem, &blob(CODE), &regs, is_caller);
        let expected = NativeRegs {
            pc: back,
            sp: STACK + 32,
            fp: 0x77,
        };
        assert_eq!(found, Ok(Some(expected)));
        let found = interrupted_caller(&mem, &blob(CODE + 8), &regs, is_caller);
        let sp = found.unwrap().unwrap().sp;
        assert_eq!(sp, STACK + 16, "another stub is called");
        // Its own caller is not where it should be: a register was saved before.
        let found = interrupted_caller(&mem, &blob(CODE), &regs, |_| false);
        assert_eq!(found, Ok(Some(expected)));
    }

    #[test]
    fn what_an_earlier_call_left_in_the_callers_frame_is_not_the_caller() {
        const EARLIER: u64 = 0x4000;
        const CALLER: u64 = 0x5000;
        // call CODE; and a call by way of a register.
        let mut code = [0x90u8; 16];
        let distance = (CODE as i32 - (EARLIER as i32 + 16)).to_le_bytes();
        code[11] = 0xe8;
        code[12..].copy_from_slice(&distance);
        let mut mem = Bytes::at(EARLIER, &code);
        mem.add(CALLER, &[0x41, 0xff, 0xd2, 0x90, 0x90, 0x90, 0x90, 0x90]);
        // push rbp; mov rbp, rsp; nop; pop rbp; ret
        let mut stub = [0x90u8; 64];
        stub[16..20].copy_from_slice(&[0x55, 0x48, 0x8b, 0xec]);
        stub[30..32].copy_from_slice(&[0x5d, 0xc3]);
        mem.add(CODE, &stub);
        let (earlier, caller) = (EARLIER + 16, CALLER + 3);
        mem.add(STACK, &words(&[0xf9, caller, 1, 2, earlier, 3, 4, 5]));
        let blob = Blob {
            addr: CODE,
            kind: BlobKind::Stub,
            code_begin: CODE,
            frame_bytes: 0,
        };
        let at = |pc: u64, sp: u64, fp: u64| {
            let regs = Regs {
                pc: CODE + pc,
                sp,
                fp,
                ..Regs::default()
            };
            let is_caller = |found: NativeRegs| [earlier, caller].contains(&found.pc);
            interrupted_caller(&mem, &blob, &regs, is_caller).unwrap()
        };
        let expected = Some(NativeRegs {
            pc: caller,
            sp: STACK + 16,
            fp: 0xf9,
        });
        assert_eq!(at(16, STACK + 8, 0xf9), expected, "push rbp is next");
        assert_eq!(at(17, STACK, 0xf9), expected, "mov rbp, rsp is next");
        assert_eq!(at(24, STACK, STACK), expected);
        assert_eq!(at(30, STACK, STACK), expected, "pop rbp is next");
        assert_eq!(at(31, STACK + 8, 0xf9), expected, "ret is next");
    }

    #[test]
    fn a_return_address_that_is_just_copied_is_passed() {
        // push [rsp + 24]; pop [rsp]
        let mut code = [0x90u8; 64];
        code[16..24].copy_from_slice(&[0x48, 0xff, 0x74, 0x24, 0x18, 0x48, 0x8f, 0x04]);
        code[24] = 0x24;
        let mut mem = Bytes::at(CODE, &code);
        let stack = [0xca11, 0, 0, 0xf9, 0xca11, 0, 0, 0];
        mem.add(STACK, &words(&stack));
        let blob = Blob {
            addr: CODE,
            kind: BlobKind::Stub,
            code_begin: CODE,
            frame_bytes: 32,
        };
        let regs = Regs {
            pc: CODE + 21,
            sp: STACK,
            ..Regs::default()
        };
        let found = interrupted_caller(&mem, &blob, &regs, |caller| caller.pc == 0xca11);
        let expected = NativeRegs {
            pc: 0xca11,
            sp: STACK + 40,
            fp: 0xf9,
        };
        assert_eq!(found, Ok(Some(expected)));
    }

    #[test]
    fn a_stub_whose_frame_is_certain_is_not_searched_for_another_caller() {
        let blob = Blob {
            addr: CODE,
            kind: BlobKind::Stub,
            code_begin: CODE,
            frame_bytes: 32,
        };
        // The word below the frame would do.
        let mem = Bytes::at(
            STACK,
            &words(&[0, 0xca11, STACK + 0x80, 0xdead, 0, 0, 0, 0]),
        );
        let caller_of = |fp| {
            let regs = NativeRegs {
                pc: CODE + 9,
                sp: STACK,
                fp,
            };
            let found = calling_caller(&mem, &blob, regs, |caller| caller.pc == 0xca11);
            found.unwrap().map(|caller| caller.sp - STACK)
        };
        assert_eq!(caller_of(STACK + 16), None);
        assert_eq!(caller_of(7), Some(16), "rbp says nothing here");
    }

    #[test]
    fn the_cookie_of_an_entry_barrier_is_no_return_address() {
        let mem = Bytes::at(STACK, &words(&[1, u64::MAX, 3, 4, 5]));
        assert_eq!(return_slot(&mem, STACK), Ok(STACK + 16));
        assert_eq!(return_slot(&mem, STACK + 16), Ok(STACK + 24));
    }

    /// Registers take up a page at most; what looks like flags above that is something else.
    #[test]
    fn saved_flags_lie_within_a_page() {
        let found = |slot: usize, flags: u64| {
            let mut stack = std::vec![0u64; 600];
            (stack[slot], stack[slot + 1]) = (flags, 0xca11);
            let mem = Bytes::at(STACK, &words(&stack));
            let caller = saving_caller(&mem, STACK, 7, &|caller| caller.pc == 0xca11).unwrap();
            caller.map(|it| ((it.sp - STACK) / 8, it.fp))
        };
        assert_eq!(found(0, 0x202), Some((2, 7)));
        assert_eq!(found(511, 0x246), Some((513, 7)));
        assert_eq!(found(512, 0x202), None);
        for flags in [0, 0x200, 0x2, 0x1_0202, 0x20a] {
            assert_eq!(found(3, flags), None, "{flags:x}");
        }
    }

    /// Notes what is read.
    struct Asked<'a>(&'a Bytes, std::cell::RefCell<Vec<u64>>);

    impl Memory for Asked<'_> {
        fn word(&self, addr: u64) -> Result<u64, Fault> {
            self.0.word(addr)
        }

        fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
            self.1.borrow_mut().push(addr);
            self.0.read(addr, buf)
        }
    }

    /// What is left unread is what no direct call can return to, to the byte.
    #[test]
    fn code_is_read_only_where_a_call_could_lead_from() {
        const FAR: u64 = 0x7f00_0000_0000;
        let mem = Bytes::at(FAR, &[0x90; 64]);
        let read = |pc: u64| {
            let asked = Asked(&mem, std::cell::RefCell::default());
            assert_eq!(words_pushed_for(&asked, pc, FAR), None);
            asked.1.into_inner() == [pc.wrapping_sub(16)]
        };
        for pc in [FAR + 20, FAR - (1 << 31), FAR + (1 << 31)] {
            assert!(read(pc), "{pc:x}");
        }
        for pc in [
            0,
            5,
            u64::MAX,
            0xc012_3456,
            FAR - (1 << 31) - 1,
            FAR + (1 << 31) + 1,
        ] {
            assert!(!read(pc), "{pc:x}");
        }
    }
}

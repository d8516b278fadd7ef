//! Tests of the way out of a frame, with code of stubs of 17 and 25.

extern crate std;
use super::*;
use crate::hotspot::test_memory::Bytes;
use std::vec::Vec;

const CODE: u64 = 0x1000;
const CODE_END: u64 = 0x1f00;
const BEFORE: usize = 32;
const STACK: u64 = 0x7f00_0000_0000;
/// rsp at the beginning of the stub, in the middle of the stack.
const SP: u64 = STACK + 0x400;
const FP: u64 = STACK + 0x700;
const CALLER: u64 = 0xca11;

struct Code;

impl Checks for Code {
    fn is_code(&self, pc: u64) -> bool {
        (CODE..CODE_END).contains(&pc)
    }

    fn is_return(&self, pc: u64) -> bool {
        pc == CALLER
    }

    fn is_method(&self, pc: u64) -> bool {
        self.is_return(pc)
    }

    fn is_caller(&self, caller: NativeRegs) -> bool {
        self.is_return(caller.pc)
    }
}

/// Code, and a stack of random words with some given ones.
fn memory(code: &[u8], words: &[(u64, u64)]) -> Bytes {
    let mut padded = std::vec![0xf4u8; 0x1000];
    // The bytes before the code are read, too.
    padded[BEFORE..BEFORE + code.len()].copy_from_slice(code);
    let mut mem = Bytes::at(CODE - BEFORE as u64, &padded);
    let mut stack = std::vec![0xdeadu64; 256];
    for (at, word) in words {
        stack[(*at - STACK) as usize / 8] = *word;
    }
    mem.add_words(STACK, &stack);
    mem
}

fn regs(offset: u64, sp: u64, fp: u64) -> Regs {
    Regs {
        pc: CODE + offset,
        sp,
        fp,
        ..Regs::default()
    }
}

/// The caller's pc, rsp and rbp.
fn found(mem: &Bytes, regs: &Regs) -> Option<(u64, u64, u64)> {
    let found = caller(mem, regs, &Code)?;
    let NativeRegs { pc, sp, fp } = found.caller;
    Some((pc, sp, fp))
}

const WHOLE: Option<(u64, u64, u64)> = Some((CALLER, SP + 8, FP));

/// `sha512_implCompress` of 17: rsp is aligned, and its old value is in the frame. The words above
/// the frame look like another caller.
#[test]
fn aligned_frame_gives_rsp_back_at_every_instruction() {
    let code = [
        0x53, // 0: push rbx
        0x55, // 1: push rbp
        0x48, 0x8b, 0xc4, // 2: mov rax, rsp
        0x48, 0x81, 0xec, 0x80, 0, 0, 0, // 5: sub rsp, 0x80
        0x48, 0x83, 0xe4, 0xc0, // 12: and rsp, -64
        0x48, 0x89, 0x44, 0x24, 0x40, // 16: mov [rsp + 0x40], rax
        0x33, 0xed, // 21: xor ebp, ebp
        0xc5, 0xfe, 0x6f, 0x26, // 23: vmovdqu ymm4, [rsi]
        0x75, 0xf8, // 27: jne 21
        0x48, 0x8b, 0x64, 0x24, 0x40, // 29: mov rsp, [rsp + 0x40]
        0x5d, // 34: pop rbp
        0x5b, // 35: pop rbx
        0xc3, // 36: ret
    ];
    let aligned = (SP - 16 - 0x80) & !63;
    let saved = [
        (SP, CALLER),
        (SP - 8, 0xb),
        (SP - 16, FP),
        (aligned + 0x40, SP - 16),
        (SP + 8, CALLER),
    ];
    let mem = memory(&code, &saved);
    let places = [
        (0, SP, FP, 0),
        (1, SP - 8, FP, 0),
        (2, SP - 16, FP, 0),
        (5, SP - 16, FP, SP - 16),
        (12, SP - 16 - 0x80, FP, SP - 16),
        (16, aligned, FP, SP - 16),
        (21, aligned, FP, 0),
        (23, aligned, 0x77, 0),
        (27, aligned, 0x77, 0),
        (29, aligned, 0x77, 0),
        (34, SP - 16, 0x77, 0),
        (35, SP - 8, FP, 0),
        (36, SP, FP, 0),
    ];
    for (offset, sp, fp, rax) in places {
        let regs = Regs {
            rax,
            ..regs(offset, sp, fp)
        };
        assert_eq!(found(&mem, &regs), WHOLE, "{offset}");
    }
    // The value is not in rax yet: the word on the stack is an older one.
    let unsaved = memory(&code, &[(SP, CALLER), (aligned + 0x40, SP - 16)]);
    let at = regs(16, aligned, FP);
    assert_eq!(found(&unsaved, &at), None);
}

/// Code that only jumps has no frame, wherever rbp points (`itable stub`).
#[test]
fn jump_on_leaves_the_return_address_at_rsp() {
    let code = [
        0x44, 0x8b, 0x56, 0x08, // 0: mov r10d, [rsi + 8]
        0x4d, 0x85, 0xdb, // 4: test r11, r11
        0x75, 0xf7, // 7: jne 0
        0xff, 0x63, 0x48, // 9: jmp [rbx + 0x48]
    ];
    let mem = memory(&code, &[(SP, CALLER), (SP + 32, FP), (SP + 40, CALLER)]);
    for offset in [0, 4, 7, 9] {
        let at = regs(offset, SP, SP + 32);
        assert_eq!(found(&mem, &at), Some((CALLER, SP + 8, SP + 32)));
    }
    let other = memory(&code, &[(SP + 32, FP), (SP + 40, CALLER)]);
    assert_eq!(found(&other, &regs(0, SP, SP + 32)), None, "no other way");
}

/// A loop whose exit is in its middle, with a call that does not return on the way.
#[test]
fn loops_are_left_and_traps_avoided() {
    let code = [
        0x55, // 0: push rbp
        0x48, 0x8b, 0xec, // 1: mov rbp, rsp
        0x85, 0xc0, // 4: test eax, eax
        0x74, 0x04, // 6: je 12
        0x83, 0xc0, 0x01, // 8: add eax, 1
        0xf4, // 11: hlt
        0xff, 0xc8, // 12: dec eax
        0x74, 0x04, // 14: je 20
        0xff, 0xd0, // 16: call rax
        0xeb, 0xf8, // 18: jmp 12
        0xc9, // 20: leave
        0xc3, // 21: ret
    ];
    let mem = memory(&code, &[(SP, CALLER), (SP - 8, FP)]);
    assert_eq!(found(&mem, &regs(0, SP, FP)), WHOLE);
    assert_eq!(found(&mem, &regs(1, SP - 8, FP)), WHOLE);
    for offset in [4, 8, 12, 14, 16, 18, 20] {
        let expected = if offset == 8 { None } else { WHOLE };
        assert_eq!(found(&mem, &regs(offset, SP - 8, SP - 8)), expected);
    }
    assert_eq!(found(&mem, &regs(21, SP, FP)), WHOLE);
    // The call returns here.
    let called = NativeRegs {
        pc: CODE + 18,
        sp: SP - 8,
        fp: SP - 8,
    };
    let way = caller_after_call(&mem, called, &Code).unwrap();
    assert_eq!((way.caller.sp, way.caller.fp), (SP + 8, FP));
    // An endless loop.
    let endless = memory(&[0x90, 0xeb, 0xfd], &[(SP, CALLER)]);
    assert_eq!(found(&endless, &regs(0, SP, FP)), None);
}

/// `unwind_exception` and `forward exception`: the return address goes into rdx, and the jump to a
/// handler.
#[test]
fn popped_return_address_is_the_caller() {
    let code = [
        0x50, // 0: push rax
        0x58, // 1: pop rax
        0x5a, // 2: pop rdx
        0x49, 0x8b, 0x47, 0x08, // 3: mov rax, [r15 + 8]
        0xff, 0xe3, // 7: jmp rbx
    ];
    let mem = memory(&code, &[(SP, CALLER), (SP + 8, CALLER)]);
    for (offset, sp, rdx) in [
        (0, SP, 0),
        (1, SP - 8, 0),
        (2, SP, 0),
        (3, SP + 8, CALLER),
        (7, SP + 8, CALLER),
    ] {
        let regs = Regs {
            rdx,
            rbx: 0x4444,
            ..regs(offset, sp, FP)
        };
        assert_eq!(found(&mem, &regs), WHOLE, "{offset}");
    }
}

/// `handle_exception`: the handler's address takes the place of the return address.
#[test]
fn handler_in_place_of_return_address_is_reported() {
    const HANDLER: u64 = 0x4a4d;
    let code = [
        0xff, 0xd0, // 0: call rax
        0x48, 0x89, 0x45, 0x08, // 2: mov [rbp + 8], rax
        0xc9, // 6: leave
        0x59, // 7: pop rcx
        0xff, 0xe1, // 8: jmp rcx
    ];
    let way = |offset: u64, returns_to: u64, sp: u64, fp: u64| {
        let mem = memory(&code, &[(SP, returns_to), (SP - 8, FP)]);
        let regs = Regs {
            rax: HANDLER,
            ..regs(offset, sp, fp)
        };
        let found = caller(&mem, &regs, &Code);
        found.map(|found| (found.caller.pc, found.caller.sp, found.jumps))
    };
    let whole = Some((CALLER, SP + 8, false));
    assert_eq!(way(0, CALLER, SP - 8, SP - 8), whole, "not known yet");
    let handler = Some((HANDLER, SP + 8, true));
    assert_eq!(way(2, CALLER, SP - 8, SP - 8), handler);
    assert_eq!(way(6, HANDLER, SP - 8, SP - 8), handler);
    assert_eq!(way(7, HANDLER, SP, FP), handler);
}

/// `wrong_method_stub`: the jump target was put among the saved registers, and is not a handler.
#[test]
fn method_to_continue_at_is_not_the_caller() {
    let code = [
        0x48, 0x89, 0x44, 0x24, 0x08, // 0: mov [rsp + 8], rax
        0x48, 0x8b, 0x44, 0x24, 0x08, // 5: mov rax, [rsp + 8]
        0x48, 0x83, 0xc4, 0x10, // 10: add rsp, 16
        0xff, 0xe0, // 14: jmp rax
    ];
    let mem = memory(&code, &[(SP, CALLER), (SP - 8, 0x5555)]);
    for (offset, sp) in [(0, SP - 16), (5, SP - 16), (10, SP - 16), (14, SP)] {
        let regs = Regs {
            rax: 0x5555,
            ..regs(offset, sp, FP)
        };
        assert_eq!(found(&mem, &regs), WHOLE, "{offset}");
    }
}

/// `deoptimize`: another stub continues, as if it were called instead of this one.
#[test]
fn frame_popped_before_a_jump_does_not_count() {
    // leave; jmp behind, which cannot be followed: add rsp, [rdi].
    let code = [0xc9, 0xe9, 0, 0, 0, 0, 0x48, 0x03, 0x27, 0xc3];
    let mem = memory(&code, &[(SP, CALLER), (SP - 8, FP)]);
    assert_eq!(found(&mem, &regs(0, SP - 8, SP - 8)), WHOLE);
    assert_eq!(found(&mem, &regs(6, SP, FP)), None);
}

/// The return address may be copied, through a pushed word, to the place from which it is popped.
#[test]
fn words_that_are_pushed_and_popped_are_followed() {
    let code = [
        0x48, 0x83, 0xec, 0x08, // 0: sub rsp, 8
        0x48, 0xff, 0x74, 0x24, 0x08, // 4: push [rsp + 8]
        0x8f, 0x04, 0x24, // 9: pop [rsp]
        0x6a, 0xff, // 12: push -1
        0x48, 0x8d, 0x64, 0x24, 0x08, // 14: lea rsp, [rsp + 8]
        0xc2, 0x08, 0x00, // 19: ret 8
    ];
    let words = [(SP, CALLER), (SP - 16, CALLER)];
    let mem = memory(&code, &words);
    let whole = Some((CALLER, SP + 8, FP));
    assert_eq!(found(&mem, &regs(0, SP, FP)), whole);
    assert_eq!(found(&mem, &regs(4, SP - 8, FP)), whole);
    assert_eq!(found(&mem, &regs(9, SP - 16, FP)), whole);
}

/// The interpreter's entries for mathematics take rsp from r13; rbp is an older frame's.
#[test]
fn frameless_entry_is_distinguished_from_other_code() {
    let entry = [
        0xff, 0xd0, // 0: call rax
        0x5f, // 2: pop rdi
        0x49, 0x8b, 0xe5, // 3: mov rsp, r13
        0xff, 0xe7, // 6: jmp rdi
    ];
    let mem = memory(&entry, &[(SP, CALLER)]);
    let sender = SP + 0x40;
    let interrupted = Regs {
        r13: sender,
        ..regs(0, SP, FP)
    };
    let sp = |found: Option<WayOut>| found.map(|found| (found.caller.pc, found.caller.sp));
    let whole = Some((CALLER, sender));
    assert_eq!(sp(caller_of_entry(&mem, &interrupted, &Code)), whole);
    let called = NativeRegs {
        pc: CODE + 2,
        sp: SP,
        fp: FP,
    };
    let after = |mem: &Bytes, r13| sp(caller_of_entry_after_call(mem, called, r13, &Code));
    assert_eq!(after(&mem, Some(sender)), whole);
    assert_eq!(
        after(&mem, None),
        Some((CALLER, SP + 8)),
        "above it at least"
    );
    // A method that returns has a frame: leave; pop rdi; mov rsp, rbx; jmp rdi.
    let returns = [0x90, 0x90, 0xc9, 0x5f, 0x48, 0x8b, 0xe3, 0xff, 0xe7];
    let mem = memory(&returns, &[(FP + 8, CALLER)]);
    assert_eq!(after(&mem, Some(sender)), None);
    // A bytecode continues with the next one; a return address is at rsp by chance.
    let dispatches = [0x90, 0x90, 0x41, 0xff, 0x24, 0xda];
    let mem = memory(&dispatches, &[(SP, CALLER)]);
    assert_eq!(after(&mem, Some(sender)), None);
}

#[test]
fn r13_is_known_where_the_code_gives_it_back() {
    // push r13; pop r13; ret
    let mem = memory(
        &[0x41, 0x55, 0x41, 0x5d, 0xc3],
        &[(SP, CALLER), (SP - 8, 7)],
    );
    let r13 = |offset: u64, sp: u64| {
        let regs = Regs {
            r13: 9,
            ..regs(offset, sp, FP)
        };
        caller(&mem, &regs, &Code).and_then(|found| found.sender_sp)
    };
    assert_eq!(
        [r13(0, SP), r13(2, SP - 8), r13(4, SP)],
        [Some(9), Some(7), Some(9)]
    );
}

/// Work is bounded. Unreadable words, and words that are not return addresses, give no result.
#[test]
fn code_that_cannot_be_followed_gives_none() {
    let returns = memory(&[0xc3], &[(SP, 0xbad)]);
    assert_eq!(found(&returns, &regs(0, SP, FP)), None);
    let nowhere = regs(0x10_0000, SP, FP);
    assert_eq!(found(&returns, &nowhere), None);
    let unknown = memory(&[0x06, 0xc3], &[(SP, CALLER)]);
    assert_eq!(found(&unknown, &regs(0, SP, FP)), None);
    // One push more than the limit, and the limit.
    let pushes = |count: usize| {
        let mut code: Vec<u8> = std::vec![0x50; count];
        code.extend([0x48, 0x81, 0xc4]);
        code.extend((count as u32 * 8).to_le_bytes());
        code.push(0xc3);
        found(&memory(&code, &[(SP, CALLER)]), &regs(0, SP, FP))
    };
    assert_eq!(pushes(WRITES_MAX), WHOLE);
    assert_eq!(pushes(WRITES_MAX + 1), None);
    // Words below rsp are not valid.
    let below = memory(
        &[0x48, 0x83, 0xec, 8, 0xc3],
        &[(SP - 8, CALLER), (SP, CALLER)],
    );
    assert_eq!(found(&below, &regs(0, SP, FP)), None);
}

/// `patch_callers_callsite` of an adapter of 21. The words above the frame look like callers.
const PATCHES: [u8; 84] = [
    0x4c, 0x8b, 0xec, // 0: mov r13, rsp
    0x48, 0x8b, 0x04, 0x24, // 3: mov rax, [rsp]
    0x48, 0x83, 0xe4, 0xf0, // 7: and rsp, -16
    0x9c, // 11: pushf
    0x48, 0x83, 0xec, 0x08, // 12: sub rsp, 8
    0x48, 0x83, 0xec, 0x78, // 16: sub rsp, 0x78
    0x48, 0x89, 0x6c, 0x24, 0x50, // 20: mov [rsp + 0x50], rbp
    0x4c, 0x89, 0x6c, 0x24, 0x10, // 25: mov [rsp + 0x10], r13
    0x48, 0x81, 0xec, 0x00, 0x02, 0, 0, // 30: sub rsp, 0x200
    0x48, 0x0f, 0xae, 0x04, 0x24, // 37: fxsave [rsp]
    0xe8, 0, 0, 0, 0, // 42: call
    0xc5, 0xf8, 0x77, // 47: vzeroupper
    0x48, 0x0f, 0xae, 0x0c, 0x24, // 50: fxrstor [rsp]
    0x48, 0x81, 0xc4, 0x00, 0x02, 0, 0, // 55: add rsp, 0x200
    0x4c, 0x8b, 0x6c, 0x24, 0x10, // 62: mov r13, [rsp + 0x10]
    0x48, 0x8b, 0x6c, 0x24, 0x50, // 67: mov rbp, [rsp + 0x50]
    0x48, 0x83, 0xec, 0x80, // 72: sub rsp, -0x80
    0x9d, // 76: popf
    0x49, 0x8b, 0xe5, // 77: mov rsp, r13
    0x58, // 80: pop rax
    0x41, 0xff, 0xe3, // 81: jmp r11
];
/// rsp at the return address, and with all registers saved.
const SENDER: u64 = STACK + 0x4f8;
const SAVED: u64 = STACK + 0x468;

fn patching_memory(code: &[u8]) -> Bytes {
    let words = [
        (SENDER, CALLER),
        (SENDER + 8, CALLER),
        (SENDER - 8, CALLER),
        (SAVED + 0x10, SENDER),
        (SAVED + 0x50, FP),
    ];
    memory(code, &words)
}

#[test]
fn patching_adapter_gives_rsp_back_at_every_instruction() {
    let mem = patching_memory(&PATCHES);
    let wanted = Some((CALLER, SENDER + 8, FP));
    // pc, rsp, r13, rbp
    for (offset, sp, r13, fp) in [
        (0, SENDER, 7, FP),
        (3, SENDER, SENDER, FP),
        (7, SENDER, SENDER, FP),
        (11, SAVED + 0x88, SENDER, FP),
        (12, SAVED + 0x80, SENDER, FP),
        (16, SAVED + 0x78, SENDER, FP),
        (20, SAVED, SENDER, FP),
        (30, SAVED, SENDER, FP),
        (42, SAVED - 0x200, SENDER, FP),
        (47, SAVED - 0x200, 7, 7),
        (62, SAVED, 7, 7),
        (67, SAVED, SENDER, 7),
        (72, SAVED, SENDER, FP),
        (76, SAVED + 0x80, SENDER, FP),
        (77, SAVED + 0x88, SENDER, FP),
    ] {
        let regs = Regs {
            r13,
            ..regs(offset, sp, fp)
        };
        let found = caller_of_patching_adapter(&mem, &regs, &Code);
        let found = found.map(|it| (it.pc, it.sp, it.fp));
        assert_eq!(found, wanted, "at {offset}");
    }
    let at = NativeRegs {
        pc: CODE + 47,
        sp: SAVED - 0x200,
        fp: 7,
    };
    let found = caller_of_patching_adapter_after_call(&mem, at, &Code);
    assert_eq!(found.map(|it| (it.pc, it.sp, it.fp)), wanted);
}

#[test]
fn adapter_that_moves_arguments_is_no_patching_one() {
    let mem = patching_memory(&PATCHES);
    let late = regs(80, SENDER, FP);
    assert_eq!(caller_of_patching_adapter(&mem, &late, &Code), None);
    // Without the last instruction that takes rsp from r13.
    let mut other = PATCHES;
    other[77..80].copy_from_slice(&[0x90; 3]);
    let mem = patching_memory(&other);
    let early = regs(0, SENDER, FP);
    assert_eq!(caller_of_patching_adapter(&mem, &early, &Code), None);
    let at = NativeRegs {
        pc: CODE + 47,
        sp: SAVED - 0x200,
        fp: 7,
    };
    let found = caller_of_patching_adapter_after_call(&mem, at, &Code);
    assert_eq!(found, None);
}

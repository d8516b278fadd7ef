//! The way of generated code out of its frame: its instructions are followed from pc to the return,
//! with sp, the frame pointer and the link register. Calls and branches are passed, as if they came
//! back and were not taken. Code that cannot be followed gives no result.

use super::{Regs, encoding, return_address};
use crate::hotspot::machine::{Checks, WayOut, is_generated_caller};
use crate::memory::Memory;
use crate::native::NativeRegs;

/// Maximum number of instructions followed.
const STEPS_MAX: u32 = 2048;
/// The same for an entry of the interpreter without a frame.
const ENTRY_STEPS_MAX: u32 = 96;
/// Maximum distance from sp of a word of the frame.
const FRAME_MAX: u64 = 1 << 16;

/// Maximum room for the arguments of a method that is jumped to.
const ROOM_MAX: u64 = 4096;

/// The values on a way.
struct State {
    pc: u64,
    sp: u64,
    fp: Option<u64>,
    lr: Option<u64>,
    /// sp at the beginning. Words below it are written on the way, and not known but for `pushed`.
    low: u64,
    /// Where the frame pointer and the link register were stored last on the way, and their values.
    pushed: [(u64, Option<u64>); 2],
    /// The two registers of which one has the caller's sp, by version: x19 and x13.
    sender_sp: [Option<u64>; 2],
    is_entry: bool,
    /// Whether a jump to an address in a register leaves the code.
    jumps: bool,
}

impl State {
    fn interrupted(regs: &Regs) -> State {
        State {
            pc: regs.pc,
            sp: regs.sp,
            fp: Some(regs.fp),
            lr: Some(regs.lr),
            low: regs.sp,
            pushed: [(0, None); 2],
            sender_sp: [Some(regs.x19), Some(regs.x13)],
            is_entry: false,
            jumps: false,
        }
    }

    fn called(at: NativeRegs) -> State {
        State {
            pc: at.pc,
            sp: at.sp,
            fp: Some(at.fp),
            lr: None,
            low: at.sp,
            pushed: [(0, None); 2],
            sender_sp: [None; 2],
            is_entry: false,
            jumps: true,
        }
    }

    fn get(&self, register: u32) -> Option<u64> {
        let [x19, x13] = self.sender_sp;
        match register {
            13 => x13,
            19 => x19,
            encoding::FP => self.fp,
            encoding::LR => self.lr,
            encoding::SP => Some(self.sp),
            _ => None,
        }
    }

    fn set(&mut self, register: u32, value: Option<u64>) {
        let [x19, x13] = &mut self.sender_sp;
        match register {
            13 => *x13 = value,
            19 => *x19 = value,
            encoding::FP => self.fp = value,
            encoding::LR => self.lr = value,
            _ => {}
        }
    }
}

impl State {
    fn push(&mut self, register: u32, at: u64) {
        let value = self.get(register);
        let [fp, lr] = &mut self.pushed;
        match register {
            encoding::FP => *fp = (at, value),
            encoding::LR => *lr = (at, value),
            _ => {}
        }
    }

    fn pushed_at(&self, at: u64) -> Option<u64> {
        let (_, value) = *self.pushed.iter().find(|(place, _)| *place == at)?;
        value
    }
}

/// The caller that generated code returns to when it continues from `regs`. It may also end with a
/// jump to another method, which then has that caller. The interpreter's code may not: it jumps
/// after each bytecode.
pub fn caller<M: Memory>(
    mem: &M,
    regs: &Regs,
    jumps: bool,
    checks: &impl Checks,
) -> Option<WayOut> {
    let state = State {
        jumps,
        ..State::interrupted(regs)
    };
    follow(mem, state, STEPS_MAX, checks)
}

/// The same for code that has made a call, at its return.
pub fn caller_after_call<M: Memory>(
    mem: &M,
    at: NativeRegs,
    checks: &impl Checks,
) -> Option<WayOut> {
    follow(mem, State::called(at), STEPS_MAX, checks)
}

/// The caller of a method that the interpreter runs by an entry without a frame. Such an entry
/// takes sp from the register with the caller's (templateInterpreterGenerator_aarch64.cpp,
/// `generate_CRC32_update_entry`).
pub fn caller_of_entry<M: Memory>(mem: &M, regs: &Regs, checks: &impl Checks) -> Option<WayOut> {
    let found = follow(mem, State::interrupted(regs), ENTRY_STEPS_MAX, checks);
    found.filter(|found| found.is_entry)
}

#[inline(never)]
fn follow<M: Memory>(
    mem: &M,
    mut state: State,
    steps_max: u32,
    checks: &impl Checks,
) -> Option<WayOut> {
    for _ in 0..steps_max {
        let next = encoding::at(mem, state.pc).ok()?;
        if encoding::is_return(next) {
            let caller = NativeRegs {
                pc: return_address(state.lr?),
                sp: state.sp,
                fp: state.fp?,
            };
            return checks.is_return(caller.pc).then_some(WayOut {
                caller,
                jumps: false,
                sender_sp: None,
                is_entry: state.is_entry,
            });
        }
        // Over a jump to the code of an unusual case, such as another class than the expected one.
        if encoding::skips_one(next) {
            let over = encoding::at(mem, state.pc.wrapping_add(encoding::BYTES)).ok()?;
            if encoding::jump(over).is_some() || encoding::is_jump_to_register(over) {
                state.pc = state.pc.wrapping_add(2 * encoding::BYTES);
                continue;
            }
        }
        if state.jumps && encoding::is_jump_to_register(next) {
            return jumping_caller(&state, checks);
        }
        if let Some(distance) = encoding::jump(next) {
            state.pc = state.pc.wrapping_add_signed(distance);
            continue;
        }
        step(mem, next, &mut state)?;
        state.pc = state.pc.wrapping_add(encoding::BYTES);
    }
    None
}

/// The caller when the code jumps to a method. An adapter has set the caller's sp before it made
/// room for arguments (sharedRuntime_aarch64.cpp, `gen_c2i_adapter`).
fn jumping_caller(state: &State, checks: &impl Checks) -> Option<WayOut> {
    let (pc, fp) = (return_address(state.lr?), state.fp?);
    let is_near = |sp: &u64| sp & 15 == 0 && sp.wrapping_sub(state.sp) < ROOM_MAX;
    let senders = state.sender_sp.into_iter().flatten().filter(is_near);
    let mut callers = senders
        .chain([state.sp])
        .map(|sp| NativeRegs { pc, sp, fp });
    let caller = callers.find(|caller| is_generated_caller(checks, *caller))?;
    Some(caller.into())
}

/// The effect of any other instruction.
fn step<M: Memory>(mem: &M, next: u32, state: &mut State) -> Option<()> {
    if encoding::is_call(next) {
        state.lr = None;
        state.sender_sp = [state.sender_sp[0], None];
        return Some(());
    }
    if encoding::is_branch(next) || encoding::signs_or_checks(next) {
        return Some(());
    }
    if let Some((base, number)) = encoding::sp_from(next) {
        state.sp = state.get(base)?.wrapping_add_signed(number);
        return near(state);
    }
    if let Some(register) = encoding::aligns_sp_from(next) {
        state.is_entry = matches!(register, 13 | 19);
        state.sp = state.get(register)? & !15;
        return near(state);
    }
    if encoding::lowers_sp_by_register(next) || (encoding::raises_sp(next)) {
        return None;
    }
    if let Some(number) = encoding::fp_from_sp(next) {
        state.fp = Some(state.sp.wrapping_add_signed(number));
        return Some(());
    }
    if let Some(transfer) = encoding::transfer(next) {
        for (register, at) in transfer.registers.into_iter().flatten() {
            let at = state.sp.wrapping_add_signed(at);
            if !transfer.is_load {
                state.push(register, at);
            } else if matches!(register, 13 | 19 | encoding::FP | encoding::LR) {
                let word = if at >= state.low {
                    mem.word(at).ok()
                } else {
                    state.pushed_at(at)
                };
                state.set(register, word);
            }
        }
        state.sp = state.sp.wrapping_add_signed(transfer.moves_sp);
        return near(state);
    }
    if let Some(number) = encoding::moves_sp_by_vectors(next) {
        state.sp = state.sp.wrapping_add_signed(number);
        return near(state);
    }
    if let Some(register @ (13 | 19)) = encoding::copies_sp(next) {
        state.set(register, Some(state.sp));
        return Some(());
    }
    // br, blr with other forms, brk, hlt, udf, and stores of vectors that move sp.
    let leaves = next & 0xfe00_0000 == 0xd600_0000 || next & 0xff00_0000 == 0xd400_0000;
    let is_vectors = next & 0xbe80_03e0 == 0x0c80_03e0;
    if leaves || is_vectors || next >> 16 == 0 {
        return None;
    }
    if let Some(register) = encoding::sets(next) {
        state.set(register, None);
    }
    Some(())
}

fn near(state: &State) -> Option<()> {
    let distance = state.sp.wrapping_sub(state.low).wrapping_add(FRAME_MAX);
    (state.sp & 15 == 0 && distance <= 2 * FRAME_MAX).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;
    extern crate std;
    use std::vec::Vec;

    const CODE: u64 = 0x1000;
    const STACK: u64 = 0x7f00_0000_0000;
    const CALLER: u64 = 0xca10;

    struct Code;

    impl Checks for Code {
        fn is_code(&self, _: u64) -> bool {
            true
        }

        fn is_return(&self, pc: u64) -> bool {
            pc == CALLER
        }

        fn is_method(&self, pc: u64) -> bool {
            self.is_return(pc)
        }

        fn is_caller(&self, caller: NativeRegs) -> bool {
            caller.pc == CALLER
        }
    }

    fn memory(codes: &[u32]) -> Bytes {
        let mut codes: Vec<u32> = codes.to_vec();
        codes.extend([0; 4]);
        let bytes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
        let mut mem = Bytes::at(CODE, &bytes);
        // Words of the stack; the third and fourth are a frame pointer and a signed return address.
        mem.add_words(STACK, &[1, 2, STACK + 0x100, 0x1234 << 48 | CALLER, 5, 6]);
        mem
    }

    fn of(codes: &[u32], regs: Regs) -> Option<(u64, u64)> {
        let found = caller(&memory(codes), &regs, true, &Code)?;
        assert_eq!(found.caller.pc, CALLER);
        Some((found.caller.sp, found.caller.fp))
    }

    const RET: u32 = 0xd65f_03c0;

    #[test]
    fn leaf_returns_to_its_link_register() {
        let regs = Regs {
            pc: CODE,
            sp: STACK,
            fp: 7,
            lr: CALLER,
            ..Regs::default()
        };
        assert_eq!(of(&[0x8b01_0000, RET], regs), Some((STACK, 7)));
        let other = Regs { lr: 3, ..regs };
        assert_eq!(of(&[0x8b01_0000, RET], other), None, "no return address");
        // mov x30, x1; ret
        assert_eq!(of(&[0xaa01_03fe, RET], regs), None, "an unknown one");
        assert_eq!(of(&[0, RET], regs), None, "no instruction");
        // A loop without an end.
        assert_eq!(of(&[0x1400_0000], regs), None);
    }

    const JUMP: u32 = 0xd61f_0100; // br x8

    #[test]
    fn code_that_jumps_to_a_method_has_its_caller() {
        let regs = Regs {
            pc: CODE,
            sp: STACK,
            fp: 7,
            lr: CALLER,
            ..Regs::default()
        };
        // ldr x8, [x12, 80]; br x8
        assert_eq!(of(&[0xf940_2988, JUMP], regs), Some((STACK, 7)));
        // mov x13, sp; sub sp, sp, 32; br x8; and with x19.
        for copy in [0x9100_03ed, 0x9100_03f3] {
            let to_interpreter = [copy, 0xd100_83ff, JUMP];
            assert_eq!(of(&to_interpreter, regs), Some((STACK, 7)));
        }
        let mem = memory(&[0xf940_2988, JUMP]);
        assert_eq!(caller(&mem, &regs, false, &Code), None, "a bytecode");
    }

    #[test]
    fn jumps_that_a_branch_skips_are_not_followed() {
        let regs = Regs {
            pc: CODE,
            sp: STACK,
            fp: 7,
            lr: CALLER,
            ..Regs::default()
        };
        // b.eq, cbz x8 and tbz x8, 0 over `b` to no code, and over `br x9`.
        for branch in [0x5400_0040, 0xb400_0048, 0x3600_0048] {
            for jump in [0x1400_0400, 0xd61f_0120] {
                assert_eq!(of(&[branch, jump, RET], regs), Some((STACK, 7)));
            }
            // Over another instruction, and over two: not taken.
            assert_eq!(of(&[branch, 0, RET], regs), None);
            assert_eq!(of(&[branch + 0x20, 0x1400_0400, RET, RET], regs), None);
        }
    }

    #[test]
    fn vectors_popped_move_sp() {
        let regs = Regs {
            pc: CODE,
            sp: STACK - 64,
            fp: 7,
            lr: 3,
            ..Regs::default()
        };
        // ld1 {v0.1d-v3.1d}, [sp], 32; ld1 {v4.2d-v5.2d}, [sp], 32; add sp, sp, 16
        let pops = [0x0cdf_2fe0, 0x4cdf_afe4, 0x9100_43ff];
        let code = [&pops[..], &[0xa8c1_7bfd, RET]].concat();
        assert_eq!(of(&code, regs), Some((STACK + 32, STACK + 0x100)));
    }

    #[test]
    fn saved_registers_are_read_where_code_restores_them() {
        let regs = Regs {
            pc: CODE,
            sp: STACK,
            fp: 7,
            lr: 3,
            ..Regs::default()
        };
        let caller = Some((STACK + 32, STACK + 0x100));
        // ldp x29, x30, [sp, 16]; add sp, sp, 32; ret
        assert_eq!(of(&[0xa941_7bfd, 0x9100_83ff, RET], regs), caller);
        // ldp d8, d9, [sp], 16; ldp x29, x30, [sp], 16; autiasp; ret
        let pops = [0x6cc1_27e8, 0xa8c1_7bfd, 0xd503_23bf, RET];
        assert_eq!(of(&pops, regs), caller);
        // blr x8 does not matter; b past a word that is no instruction.
        let calls = [0xd63f_0100, 0x1400_0002, 0, 0xa941_7bfd, 0x9100_83ff, RET];
        assert_eq!(of(&calls, regs), caller);
        // mov sp, x29; ldp x29, x30, [sp], 16; ret
        let framed = Regs {
            fp: STACK + 16,
            sp: STACK - 64,
            ..regs
        };
        assert_eq!(of(&[0x9100_03bf, 0xa8c1_7bfd, RET], framed), caller);
    }

    #[test]
    fn words_written_on_the_way_are_known_registers() {
        let regs = Regs {
            pc: CODE,
            sp: STACK + 32,
            fp: 7,
            lr: CALLER,
            ..Regs::default()
        };
        // stp x29, x30, [sp, -16]!; mov x29, sp; blr x8; ldp x29, x30, [sp], 16; ret: the words
        // there are older.
        let (push, pop) = (0xa9bf_7bfd, 0xa8c1_7bfd);
        let code = [push, 0x9100_03fd, 0xd63f_0100, pop, RET];
        assert_eq!(of(&code, regs), Some((STACK + 32, 7)));
        // stp x0, x1, [sp, -16]!: nothing is known about these.
        assert_eq!(of(&[0xa9bf_07e0, pop, RET], regs), None);
    }

    #[test]
    fn entry_takes_sp_from_the_senders_register() {
        let regs = Regs {
            pc: CODE,
            sp: STACK,
            fp: 7,
            lr: CALLER,
            x13: STACK + 0x28,
            x19: STACK + 0x48,
            x20: STACK + 0x60,
            ..Regs::default()
        };
        let of = |codes: &[u32]| {
            let found = caller_of_entry(&memory(codes), &regs, &Code)?;
            Some(found.caller.sp)
        };
        assert_eq!(of(&[0x927c_edbf, RET]), Some(STACK + 0x20), "x13");
        assert_eq!(of(&[0x927c_ee7f, RET]), Some(STACK + 0x40), "x19");
        assert_eq!(
            of(&[0x927c_ee9f, RET]),
            None,
            "x20: a bytecode that returns"
        );
        assert_eq!(of(&[RET]), None);
    }
}

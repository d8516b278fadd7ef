//! The way of generated code out of its frame. Its instructions are followed from pc to the return,
//! with the values of the registers. So the caller's registers are read from the places from which
//! the code itself will restore them. No frame can be missed, whatever the code has pushed, saved
//! or aligned. Code that cannot be followed gives no result.
//!
//! A stub's frame at a given pc is the same on all paths to it. So any way out will do, and the one
//! without a branch is tried first.

use super::Regs;
use super::instruction::{self, Address, Arithmetic, Operand, Operation, RBP, RSP};
use crate::hotspot::machine::{Checks, WayOut};
use crate::memory::Memory;
use crate::native::NativeRegs;

/// Maximum number of instructions followed. The longest stubs (of AES-GCM and SHA-512) have some
/// 3000.
const STEPS_MAX: u32 = 8192;
/// The same for an entry of the interpreter without a frame.
const ENTRY_STEPS_MAX: u32 = 96;
/// Maximum number of words that the code may write on its way.
const WRITES_MAX: usize = 40;
/// Branches kept as alternatives; older ones are dropped. A signal handler has little room.
const BRANCHES_MAX: usize = 2;
/// Maximum number of loops left on a way.
const LOOPS_MAX: usize = 16;
/// Maximum distance from rsp of a word of the frame or of the caller's.
const FRAME_MAX: u64 = 1 << 16;
/// Bytes of code read at once.
const WINDOW: usize = 64;

/// Registers that a callee need not preserve (System V AMD64 ABI, figure 3.4).
const NOT_PRESERVED: u16 = 0b0000_1111_1100_0111;

/// Stands for an unknown value.
const UNKNOWN: u64 = 1;

const POP_RCX: u8 = 0x59;
const POP_RDX: u8 = 0x5a;
/// Maximum number of bytes between such a pop and the jump.
const POPPED_BEFORE: usize = 16;

const RAX: u8 = 0;
const RCX: u8 = 1;
const RDX: u8 = 2;
const RBX: u8 = 3;
const R13: u8 = 13;

/// Values of the registers on a way, and the next pc.
#[derive(Clone, Copy)]
struct State {
    pc: u64,
    values: [u64; 16],
    /// A bit for each register whose value is known.
    known: u16,
    /// The registers that were read from the stack, and those with constants of the code.
    read: u16,
    constant: u16,
    /// Number of writes.
    writes: usize,
    /// The end of a loop that is being left, by the first branch beyond it.
    leaves: u64,
    /// The last value popped into a register that takes a return address, and rsp after that.
    popped: (u64, u64),
    /// rsp after the last pop.
    above: Option<u64>,
    /// Whether rbp was restored, and whether by the last instruction.
    has_frame: bool,
    left: bool,
    /// Whether rsp was taken from r13.
    at_sender: bool,
}

impl State {
    const EMPTY: State = State {
        pc: 0,
        values: [0; 16],
        known: 0,
        read: 0,
        constant: 0,
        writes: 0,
        leaves: 0,
        popped: (0, 0),
        above: None,
        has_frame: false,
        left: false,
        at_sender: false,
    };

    fn get(&self, register: u8) -> Option<u64> {
        let is_known = self.known >> register & 1 != 0;
        let value = self.values.get(usize::from(register)).copied();
        value.filter(|_| is_known)
    }

    fn set(&mut self, register: u8, value: Option<u64>) {
        let bit = 1 << register;
        self.known &= !bit;
        self.read &= !bit;
        self.constant &= !bit;
        if let (Some(value), Some(place)) = (value, self.values.get_mut(usize::from(register))) {
            *place = value;
            self.known |= bit;
        }
    }
}

/// Result of a step.
enum Step {
    On,
    /// No result: try another way.
    Lost,
    Out(WayOut),
    /// No way can give a result.
    Over,
}

/// A walk along code.
struct Way<'a, M: Memory, C: Checks> {
    mem: &'a M,
    checks: &'a C,
    /// rsp at the beginning. No word below it is valid.
    low: u64,
    state: State,
    notes: Notes,
}

/// Notes made on a way.
struct Notes {
    /// Places of written words, relative to `low`, and the words.
    places: [i32; WRITES_MAX],
    values: [u64; WRITES_MAX],
    /// A bit for each word that is known.
    known: u64,
    branches: [State; BRANCHES_MAX],
    /// Index of the last word.
    last: usize,
    /// Ends of loops.
    loops: [u64; LOOPS_MAX],
    looped: usize,
    window: [u8; WINDOW],
    /// Start of the window, and the number of bytes read.
    window_at: u64,
    window_len: usize,
}

impl Notes {
    const EMPTY: Notes = Notes {
        places: [0; WRITES_MAX],
        values: [0; WRITES_MAX],
        known: 0,
        branches: [State::EMPTY; BRANCHES_MAX],
        last: 0,
        loops: [0; LOOPS_MAX],
        looped: 0,
        window: [0; WINDOW],
        window_at: 0,
        window_len: 0,
    };
}

/// The caller that generated code returns to when it continues from `regs`.
pub fn caller<M: Memory>(mem: &M, regs: &Regs, checks: &impl Checks) -> Option<WayOut> {
    let state = interrupted(mem, regs, checks);
    follow(mem, state, STEPS_MAX, checks)
}

/// The same for code that has made a call, at its return: only rsp and rbp are known.
pub fn caller_after_call<M: Memory>(
    mem: &M,
    regs: NativeRegs,
    checks: &impl Checks,
) -> Option<WayOut> {
    follow(mem, called(regs, None), STEPS_MAX, checks)
}

/// The caller of a method that the interpreter runs by an entry without a frame, such as those of
/// mathematics and checksums. The entry pops its return address and jumps there, and rsp is taken
/// from r13 (templateInterpreterGenerator_x86_64.cpp, `generate_math_entry`). rbp is another
/// frame's. `None` for all other code of the interpreter.
pub fn caller_of_entry<M: Memory>(mem: &M, regs: &Regs, checks: &impl Checks) -> Option<WayOut> {
    let state = interrupted(mem, regs, checks);
    let found = follow(mem, state, ENTRY_STEPS_MAX, checks);
    found.filter(|found| found.is_entry)
}

/// The same if the entry has made a call; `r13` if it is known.
pub fn caller_of_entry_after_call<M: Memory>(
    mem: &M,
    regs: NativeRegs,
    r13: Option<u64>,
    checks: &impl Checks,
) -> Option<WayOut> {
    let state = called(regs, r13);
    let found = follow(mem, state, ENTRY_STEPS_MAX, checks);
    found.filter(|found| found.is_entry)
}

/// The caller of an adapter that has its caller's call changed. It puts rsp into r13, aligns rsp,
/// saves all registers, calls the VM, restores the registers and takes rsp from r13
/// (sharedRuntime_x86_64.cpp, `patch_callers_callsite`). Then rsp is at the return address. `None`
/// for all other code of adapters.
pub fn caller_of_patching_adapter<M: Memory>(
    mem: &M,
    regs: &Regs,
    checks: &impl Checks,
) -> Option<NativeRegs> {
    to_sender(mem, interrupted(mem, regs, checks), checks)
}

/// The same if the adapter has made a call.
pub fn caller_of_patching_adapter_after_call<M: Memory>(
    mem: &M,
    regs: NativeRegs,
    checks: &impl Checks,
) -> Option<NativeRegs> {
    to_sender(mem, called(regs, None), checks)
}

#[inline(never)]
fn to_sender<M: Memory>(mem: &M, state: State, checks: &impl Checks) -> Option<NativeRegs> {
    let found = follow_to(mem, state, (ENTRY_STEPS_MAX, true), checks)?;
    Some(found.caller)
}

fn interrupted<M: Memory>(mem: &M, regs: &Regs, checks: &impl Checks) -> State {
    let mut state = State::EMPTY;
    state.pc = regs.pc;
    let values = [
        (RAX, regs.rax),
        (RCX, regs.rcx),
        (RDX, regs.rdx),
        (RBX, regs.rbx),
        (RSP, regs.sp),
        (RBP, regs.fp),
        (R13, regs.r13),
    ];
    for (register, value) in values {
        state.set(register, Some(value));
    }
    // The return address may just have been popped.
    let mut before = [0; POPPED_BEFORE];
    let read = mem.read(regs.pc.wrapping_sub(POPPED_BEFORE as u64), &mut before);
    if read.is_ok() {
        let pops = [(POP_RDX, regs.rdx), (POP_RCX, regs.rcx)];
        let popped =
            |(pop, value)| (before.contains(&pop) && checks.is_return(value)).then_some(value);
        state.popped = (pops.into_iter().find_map(popped).unwrap_or(0), regs.sp);
    }
    state
}

fn called(regs: NativeRegs, r13: Option<u64>) -> State {
    let mut state = State::EMPTY;
    state.pc = regs.pc;
    state.set(RSP, Some(regs.sp));
    state.set(RBP, Some(regs.fp));
    state.set(R13, r13);
    state
}

fn follow<M: Memory>(
    mem: &M,
    state: State,
    steps_max: u32,
    checks: &impl Checks,
) -> Option<WayOut> {
    follow_to(mem, state, (steps_max, false), checks)
}

/// Follows a number of steps, to the caller or to the place where rsp is taken from r13.
#[inline(never)]
fn follow_to<M: Memory>(
    mem: &M,
    state: State,
    (steps_max, to_sender): (u32, bool),
    checks: &impl Checks,
) -> Option<WayOut> {
    let mut way = Way {
        mem,
        checks,
        low: state.get(RSP)?,
        state,
        notes: Notes::EMPTY,
    };
    for _ in 0..steps_max {
        match way.step() {
            Step::On if to_sender && way.state.at_sender => match way.returns(0) {
                Step::Out(found) => return Some(found),
                _ => return None,
            },
            Step::On => {}
            // Other code of adapters moves arguments, and rsp is not the caller's.
            Step::Out(_) if to_sender => return None,
            Step::Out(found) => return Some(found),
            Step::Over => return None,
            Step::Lost => way.turn_back()?,
        }
    }
    None
}

impl<M: Memory, C: Checks> Way<'_, M, C> {
    /// Continues at the last branch that was not taken.
    #[inline(never)]
    fn turn_back(&mut self) -> Option<()> {
        let last = self.notes.branches.get_mut(self.notes.last)?;
        self.state = *last;
        last.pc = 0;
        self.notes.last = (self.notes.last + BRANCHES_MAX - 1) % BRANCHES_MAX;
        (self.state.pc != 0).then_some(())
    }

    /// Keeps a branch as an alternative.
    #[inline(never)]
    fn keep_branch(&mut self, target: u64) {
        self.notes.last = (self.notes.last + 1) % BRANCHES_MAX;
        if let Some(place) = self.notes.branches.get_mut(self.notes.last) {
            *place = self.state;
            place.pc = target;
        }
    }

    fn step(&mut self) -> Step {
        let Some(instruction) = self.instruction() else {
            return Step::Lost;
        };
        let at = self.state.pc;
        let next = at.wrapping_add(instruction.length);
        self.state.pc = next;
        let left = core::mem::replace(&mut self.state.left, false);
        match instruction.operation {
            Operation::Nothing => Step::On,
            Operation::Spoil(registers) => {
                self.state.known &= !registers;
                Step::On
            }
            Operation::Push(from) => {
                let value = self.value(from);
                self.push(value)
            }
            Operation::Pop(to) => self.pop(to),
            Operation::Move(to, from) => self.copy(to, from),
            Operation::Load(to, address) => {
                let value = self.address(address);
                self.state.set(to, value);
                Step::On
            }
            Operation::Change(arithmetic, to, by) => self.change(arithmetic, to, by),
            Operation::Leave => {
                let fp = self.state.get(RBP);
                self.state.set(RSP, fp);
                self.state.left = true;
                self.pop(Operand::Register(RBP))
            }
            Operation::Return(bytes) => self.returns(bytes),
            Operation::Jump(_) if left && self.returns_here() => self.returns(0),
            Operation::Jump(distance) => self.jump(at, next.wrapping_add_signed(distance)),
            Operation::JumpTo(to) => self.jump_to(at, to),
            Operation::Branch(distance) => {
                self.branch(at, next.wrapping_add_signed(distance));
                Step::On
            }
            Operation::Call => {
                self.state.known &= !NOT_PRESERVED;
                Step::On
            }
            Operation::Trap => Step::Lost,
        }
    }

    fn instruction(&mut self) -> Option<instruction::Instruction> {
        let pc = self.state.pc;
        let mut at = pc.wrapping_sub(self.notes.window_at);
        let whole = (self.notes.window_len as u64).saturating_sub(instruction::LENGTH_MAX as u64);
        if at > whole {
            // At the end of readable memory a shorter read succeeds.
            let mut lens = [WINDOW, 16, 8].into_iter();
            self.notes.window_len = lens.find(|len| self.fill(pc, *len)).unwrap_or(0);
            self.notes.window_at = pc;
            at = 0;
        }
        let code = self.notes.window.get(at as usize..self.notes.window_len)?;
        instruction::decode(code)
    }

    /// Reads the window. A function of its own, so that the check of handlers sees its calls.
    #[inline(never)]
    fn fill(&mut self, pc: u64, len: usize) -> bool {
        let part = self.notes.window.get_mut(..len);
        part.is_some_and(|part| self.mem.read(pc, part).is_ok())
    }

    fn address(&self, address: Address) -> Option<u64> {
        let base = self.state.get(address.base?)?;
        let at = base.wrapping_add_signed(address.displacement);
        (!address.is_indexed).then_some(at)
    }

    fn value(&self, from: Operand) -> Option<u64> {
        match from {
            Operand::Register(register) => self.state.get(register),
            Operand::Number(number) => Some(number as u64),
            Operand::Memory(address) => self.word(self.address(address)?),
            Operand::Unknown => None,
        }
    }

    /// The place of `at` as writes note it, if it is on the stack.
    fn place(&self, at: u64) -> Option<i32> {
        let far = at.wrapping_sub(self.low) as i64;
        (far.unsigned_abs() < FRAME_MAX).then_some(far as i32)
    }

    /// The word at `at`, if it is on the stack.
    fn word(&self, at: u64) -> Option<u64> {
        let place = self.place(at)?;
        let done = self.notes.places.get(..self.state.writes)?;
        if let Some(last) = done.iter().rposition(|it| *it == place) {
            let is_known = self.notes.known >> last & 1 != 0;
            return self.notes.values.get(last).copied().filter(|_| is_known);
        }
        (place >= 0).then(|| self.mem.word(at).ok()).flatten()
    }

    fn write(&mut self, at: u64, value: Option<u64>) -> Step {
        // Other memory is not read either.
        let Some(place) = self.place(at) else {
            return Step::On;
        };
        let next = self.state.writes;
        let (Some(at), Some(word)) = (
            self.notes.places.get_mut(next),
            self.notes.values.get_mut(next),
        ) else {
            return Step::Over;
        };
        (*at, *word) = (place, value.unwrap_or(0));
        self.notes.known = self.notes.known & !(1 << next) | u64::from(value.is_some()) << next;
        self.state.writes += 1;
        Step::On
    }

    fn push(&mut self, value: Option<u64>) -> Step {
        let Some(sp) = self.state.get(RSP) else {
            return Step::Lost;
        };
        let at = sp.wrapping_sub(8);
        self.state.set(RSP, Some(at));
        self.write(at, value)
    }

    fn pop(&mut self, to: Operand) -> Step {
        let Some(sp) = self.state.get(RSP) else {
            return Step::Lost;
        };
        let (value, above) = (self.word(sp), sp.wrapping_add(8));
        self.state.set(RSP, Some(above));
        self.state.above = Some(above);
        match to {
            Operand::Register(register) => {
                self.state.set(register, value);
                self.state.read |= 1 << register;
                self.state.has_frame |= register == RBP;
                if matches!(register, RCX | RDX) {
                    self.state.popped = (value.unwrap_or(UNKNOWN), above);
                }
                Step::On
            }
            // The address is computed after rsp has moved.
            Operand::Memory(address) => match self.address(address) {
                Some(at) => self.write(at, value),
                None => Step::On,
            },
            Operand::Number(_) | Operand::Unknown => Step::On,
        }
    }

    fn copy(&mut self, to: Operand, from: Operand) -> Step {
        let value = self.value(from);
        match to {
            Operand::Register(register) => {
                let (read, constant) = match from {
                    Operand::Memory(_) => (1, 0),
                    Operand::Number(_) => (0, 1),
                    Operand::Register(from) => {
                        (self.state.read >> from & 1, self.state.constant >> from & 1)
                    }
                    Operand::Unknown => (0, 0),
                };
                self.state.set(register, value);
                self.state.read |= read << register;
                self.state.constant |= constant << register;
                self.state.at_sender = register == RSP && from == Operand::Register(R13);
                Step::On
            }
            Operand::Memory(address) => match self.address(address) {
                Some(at) => self.write(at, value),
                None => Step::On,
            },
            Operand::Number(_) | Operand::Unknown => Step::On,
        }
    }

    fn change(&mut self, arithmetic: Arithmetic, to: u8, by: Operand) -> Step {
        let (value, by) = (self.state.get(to), self.value(by));
        let changed = value.zip(by).map(|(value, by)| match arithmetic {
            Arithmetic::Add => value.wrapping_add(by),
            Arithmetic::Subtract => value.wrapping_sub(by),
            Arithmetic::And => value & by,
        });
        self.state.set(to, changed);
        Step::On
    }

    /// The result must be a return address; otherwise a value was not the one in the code.
    fn out(&self, pc: u64, sp: u64) -> Step {
        match self.state.get(RBP) {
            Some(fp) if sp >= self.low && self.checks.is_return(pc) => {
                Step::Out(self.way_out(NativeRegs { pc, sp, fp }, false))
            }
            _ => Step::Over,
        }
    }

    fn way_out(&self, caller: NativeRegs, jumps: bool) -> WayOut {
        WayOut {
            caller,
            jumps,
            sender_sp: self.state.get(R13),
            is_entry: false,
        }
    }

    /// Whether the frame is popped: the word at rsp is a return address.
    fn returns_here(&self) -> bool {
        let pc = self.state.get(RSP).and_then(|sp| self.word(sp));
        pc.is_some_and(|pc| self.checks.is_return(pc))
    }

    fn returns(&self, bytes: u16) -> Step {
        let Some(sp) = self.state.get(RSP) else {
            return Step::Lost;
        };
        let pc = self.word(sp).or_else(|| self.overwritten(sp));
        match pc {
            Some(pc) => self.out(pc, sp.wrapping_add(8 + u64::from(bytes))),
            None => Step::Lost,
        }
    }

    /// The return address that the code replaces by the address of a handler, which is not known
    /// yet.
    fn overwritten(&self, at: u64) -> Option<u64> {
        let word = self.mem.word(at).ok().filter(|_| at >= self.low);
        word.filter(|pc| self.checks.is_return(*pc))
    }

    fn branch(&mut self, at: u64, target: u64) {
        if target <= at {
            // The end of a loop. The walk leaves it.
            return;
        }
        if self.state.leaves != 0 && target > self.state.leaves {
            self.state.leaves = 0;
            self.state.pc = target;
            return;
        }
        self.keep_branch(target);
    }

    fn jump(&mut self, at: u64, target: u64) -> Step {
        if !self.checks.is_code(target) {
            return Step::Lost;
        }
        self.state.pc = target;
        if target > at {
            return Step::On;
        }
        // Follows a loop once, to find the branch that leaves it.
        let is_done = self.notes.loops.contains(&at);
        match self.notes.loops.get_mut(self.notes.looped) {
            Some(place) if !is_done => *place = at,
            _ => return Step::Lost,
        }
        self.notes.looped += 1;
        self.state.leaves = at;
        Step::On
    }

    /// A jump to an address that is not in the code. The target is the caller, whose address has
    /// been popped or will be popped at the target, or the caller's exception handler.
    fn jump_to(&mut self, at: u64, to: Operand) -> Step {
        // If rsp comes from r13, which is unknown, it is at least above the return address.
        let Some(sp) = self.state.get(RSP).or(self.state.above) else {
            return Step::Lost;
        };
        if let Operand::Register(register) = to
            && let Some(target) = self.state.get(register)
        {
            if self.state.constant >> register & 1 != 0 {
                return self.jump(at, target);
            }
            let is_read = self.state.read >> register & 1 != 0;
            if is_read && self.checks.is_return(target) {
                let is_entry = !self.state.has_frame;
                return match self.out(target, sp) {
                    Step::Out(found) => Step::Out(WayOut { is_entry, ..found }),
                    step => step,
                };
            }
            if is_read && self.state.popped == (target, sp) {
                return match self.state.get(RBP) {
                    Some(fp) => Step::Out(self.way_out(NativeRegs { pc: target, sp, fp }, true)),
                    None => Step::Over,
                };
            }
        }
        let (popped, above) = self.state.popped;
        if above == sp && popped != 0 {
            let pc = if popped == UNKNOWN {
                self.overwritten(sp.wrapping_sub(8))
            } else {
                Some(popped).filter(|pc| self.checks.is_return(*pc))
            };
            return pc.map_or(Step::Lost, |pc| self.out(pc, sp));
        }
        match self.word(sp) {
            Some(pc) if self.checks.is_return(pc) => self.out(pc, sp.wrapping_add(8)),
            _ => Step::Lost,
        }
    }
}

#[cfg(test)]
#[path = "way_out_tests.rs"]
mod tests;

//! Instructions of x86-64, as far as the way of generated code back to its caller depends on them.
//! That is the length of each, and its effect on rsp and on the registers and words from which rsp
//! and rbp are restored. Source: Intel SDM volume 2, appendix A (opcode maps) and section 2
//! (formats).

/// Number of rsp in encodings.
pub const RSP: u8 = 4;
/// Number of rbp.
pub const RBP: u8 = 5;
/// Maximum length of an instruction.
pub const LENGTH_MAX: usize = 15;

/// Parts of an address. Missing parts are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Number of the base register.
    pub base: Option<u8>,
    /// Whether an index register or the instruction's own address is added.
    pub is_indexed: bool,
    /// The constant part.
    pub displacement: i64,
}

/// An operand that is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A general register.
    Register(u8),
    /// A word in memory.
    Memory(Address),
    /// A number.
    Number(i64),
    /// A value that is not tracked.
    Unknown,
}

/// The arithmetic operations that are tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// Addition.
    Add,
    /// Subtraction.
    Subtract,
    /// Bitwise and, which aligns rsp.
    And,
}

/// The effect of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// No effect that is tracked.
    Nothing,
    /// Sets registers to untracked values; a bit for each register.
    Spoil(u16),
    /// Moves rsp down and writes a word there.
    Push(Operand),
    /// Reads the word at rsp and moves rsp up.
    Pop(Operand),
    /// Copies a word.
    Move(Operand, Operand),
    /// Loads an address into a register.
    Load(u8, Address),
    /// Changes a register by an operand.
    Change(Arithmetic, u8, Operand),
    /// `mov rsp, rbp; pop rbp`.
    Leave,
    /// Returns to the caller and pops this number of bytes of arguments.
    Return(u16),
    /// Jumps always, by this distance from the next instruction.
    Jump(i64),
    /// Jumps to the address in an operand.
    JumpTo(Operand),
    /// Jumps or continues, by this distance from the next instruction.
    Branch(i64),
    /// Calls, and continues after the return.
    Call,
    /// Stops the program: unreachable code.
    Trap,
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its length in bytes.
    pub length: u64,
    /// Its effect.
    pub operation: Operation,
}

/// Decodes the instruction at the beginning of `code`; `None` if it is unknown or incomplete.
#[must_use]
#[inline(never)] // two callers, and it is large
pub fn decode(code: &[u8]) -> Option<Instruction> {
    let mut reader = Reader::new(code);
    let operation = reader.instruction()?;
    (reader.at <= LENGTH_MAX).then_some(Instruction {
        length: reader.at as u64,
        operation,
    })
}

struct Reader<'a> {
    code: &'a [u8],
    at: usize,
    /// The prefix 66.
    is_short: bool,
    /// The prefix f3.
    is_repeated: bool,
    /// The bits W, R, X and B of the prefix REX, or of an equivalent prefix.
    rex: u8,
}

/// The registers or memory that a `ModRM` byte names.
struct Operands {
    register: u8,
    other: Operand,
}

const W: u8 = 8;
const R: u8 = 4;
const B: u8 = 1;

impl<'a> Reader<'a> {
    const fn new(code: &'a [u8]) -> Reader<'a> {
        Reader {
            code,
            at: 0,
            is_short: false,
            is_repeated: false,
            rex: 0,
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = self.code.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    fn number(&mut self, bytes: usize) -> Option<i64> {
        let part = self.code.get(self.at..self.at.checked_add(bytes)?)?;
        self.at += bytes;
        let sign = part
            .last()
            .map_or(0, |last| if last & 0x80 == 0 { 0 } else { -1 });
        let shifted = |all: i64, byte: &u8| (all << 8) | i64::from(*byte);
        Some(part.iter().rev().fold(sign, shifted))
    }

    /// An immediate number of the operand's size, with at most 4 bytes.
    fn immediate(&mut self) -> Option<i64> {
        self.number(if self.is_short { 2 } else { 4 })
    }

    const fn is_long(&self) -> bool {
        self.rex & W != 0
    }

    const fn extended(&self, number: u8, bit: u8) -> u8 {
        (number & 7) | if self.rex & bit == 0 { 0 } else { 8 }
    }

    fn instruction(&mut self) -> Option<Operation> {
        let mut opcode = self.byte()?;
        while matches!(
            opcode,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x66 | 0xf0 | 0xf2 | 0xf3
        ) {
            self.is_short |= opcode == 0x66;
            self.is_repeated |= opcode == 0xf3;
            opcode = self.byte()?;
        }
        if opcode & 0xf0 == 0x40 {
            self.rex = opcode & 0xf;
            opcode = self.byte()?;
        }
        match opcode {
            0x0f => self.two_bytes(),
            0xc4 | 0xc5 | 0x62 => self.vector(opcode),
            0x00..=0x3f => self.arithmetic(opcode),
            0x40..=0x7f => self.stack_and_branches(opcode),
            0x80..=0xbf => self.moves(opcode),
            0xc0..=0xff => self.control(opcode),
        }
    }

    fn operands(&mut self) -> Option<Operands> {
        let modrm = self.byte()?;
        let (mode, low) = (modrm >> 6, modrm & 7);
        let register = self.extended(modrm >> 3, R);
        if mode == 3 {
            let other = Operand::Register(self.extended(low, B));
            return Some(Operands { register, other });
        }
        let mut base = Some(self.extended(low, B));
        let mut is_indexed = false;
        let mut is_absolute = mode == 0 && low == 5;
        if low == 4 {
            let sib = self.byte()?;
            base = Some(self.extended(sib, B));
            is_indexed = (sib >> 3) & 7 != 4 || self.rex & 2 != 0;
            is_absolute = mode == 0 && sib & 7 == 5;
        } else if is_absolute {
            // Relative to the instruction.
            is_indexed = true;
        }
        if is_absolute {
            base = None;
        }
        let displacement = match mode {
            1 => self.number(1)?,
            2 => self.number(4)?,
            _ if is_absolute => self.number(4)?,
            _ => 0,
        };
        let other = Operand::Memory(Address {
            base,
            is_indexed,
            displacement,
        });
        Some(Operands { register, other })
    }

    /// 00 to 3f: eight operations in six forms each.
    fn arithmetic(&mut self, opcode: u8) -> Option<Operation> {
        let form = opcode & 7;
        let compares = opcode >> 3 == 7;
        let (to, from) = match form {
            0..=3 => {
                let Operands { register, other } = self.operands()?;
                let register = Operand::Register(register);
                if form & 2 == 0 {
                    (other, register)
                } else {
                    (register, other)
                }
            }
            4 => (Operand::Register(0), Operand::Number(self.number(1)?)),
            5 => (Operand::Register(0), Operand::Number(self.immediate()?)),
            _ => return None,
        };
        Some(if compares {
            Operation::Nothing
        } else {
            self.change(opcode >> 3, (to, from), form & 1 != 0)
        })
    }

    /// The effect of the arithmetic operation with this number.
    const fn change(&self, number: u8, (to, from): (Operand, Operand), is_wide: bool) -> Operation {
        let Operand::Register(to) = to else {
            return spoiled(to);
        };
        if !is_wide {
            return self.spoiled_part(Operand::Register(to));
        }
        let arithmetic = match number {
            0 => Arithmetic::Add,
            4 => Arithmetic::And,
            5 => Arithmetic::Subtract,
            _ => return Operation::Spoil(1 << to),
        };
        if self.is_long() {
            Operation::Change(arithmetic, to, from)
        } else {
            Operation::Spoil(1 << to)
        }
    }

    /// 50 to 7f.
    fn stack_and_branches(&mut self, opcode: u8) -> Option<Operation> {
        let register = Operand::Register(self.extended(opcode, B));
        Some(match opcode {
            0x50..=0x57 => Operation::Push(register),
            0x58..=0x5f => Operation::Pop(register),
            0x63 => Operation::Spoil(1 << self.operands()?.register),
            0x68 => Operation::Push(Operand::Number(self.immediate()?)),
            0x69 | 0x6b => {
                let to = self.operands()?.register;
                let _ = if opcode == 0x69 {
                    self.immediate()?
                } else {
                    self.number(1)?
                };
                Operation::Spoil(1 << to)
            }
            0x6a => Operation::Push(Operand::Number(self.number(1)?)),
            0x70..=0x7f => Operation::Branch(self.number(1)?),
            _ => return None,
        })
    }

    /// 80 to bf.
    fn moves(&mut self, opcode: u8) -> Option<Operation> {
        Some(match opcode {
            0x80 | 0x81 | 0x83 => {
                let Operands { register, other } = self.operands()?;
                let number = if opcode == 0x81 {
                    self.immediate()?
                } else {
                    self.number(1)?
                };
                let from = Operand::Number(number);
                match register & 7 {
                    7 => Operation::Nothing,
                    number => self.change(number, (other, from), opcode != 0x80),
                }
            }
            0x84 | 0x85 => {
                self.operands()?;
                Operation::Nothing
            }
            0x86 | 0x87 => {
                let Operands { register, other } = self.operands()?;
                if opcode == 0x86 {
                    self.spoiled_part(other)
                } else {
                    also(spoiled(other), 1 << register)
                }
            }
            0x88..=0x8b => {
                let Operands { register, other } = self.operands()?;
                let register = Operand::Register(register);
                let (to, from) = if opcode < 0x8a {
                    (other, register)
                } else {
                    (register, other)
                };
                self.copy(to, from, opcode & 1 != 0)
            }
            0x8c => spoiled(self.operands()?.other),
            0x8d => match self.operands()? {
                Operands {
                    register,
                    other: Operand::Memory(address),
                } if self.is_long() => Operation::Load(register, address),
                Operands { register, .. } => Operation::Spoil(1 << register),
            },
            0x8e => {
                self.operands()?;
                Operation::Nothing
            }
            0x8f => Operation::Pop(self.operands()?.other),
            _ => return self.accumulator(opcode),
        })
    }

    /// 90 to bf: most work on rax, or load numbers.
    fn accumulator(&mut self, opcode: u8) -> Option<Operation> {
        Some(match opcode {
            0x90 if self.rex & B == 0 => Operation::Nothing,
            0x90..=0x97 => Operation::Spoil(1 | 1 << self.extended(opcode, B)),
            0x98 | 0x9f => Operation::Spoil(1),
            0x99 => Operation::Spoil(1 << 2),
            0x9b | 0x9e => Operation::Nothing,
            0x9c => Operation::Push(Operand::Unknown),
            0x9d => Operation::Pop(Operand::Unknown),
            // String instructions move rcx, rsi and rdi, and may load rax.
            0xa4..=0xa7 | 0xaa..=0xaf => Operation::Spoil(0b1100_0011),
            0xa8 | 0xa9 => {
                let _ = if opcode == 0xa8 {
                    self.number(1)?
                } else {
                    self.immediate()?
                };
                Operation::Nothing
            }
            0xb0..=0xb7 => {
                self.number(1)?;
                self.spoiled_part(Operand::Register(self.extended(opcode, B)))
            }
            0xb8..=0xbf => {
                let to = Operand::Register(self.extended(opcode, B));
                if self.is_long() {
                    Operation::Move(to, Operand::Number(self.number(8)?))
                } else {
                    self.immediate()?;
                    spoiled(to)
                }
            }
            _ => return None,
        })
    }

    /// A copy of a whole register is tracked; a copy of a part gives an unknown value.
    const fn copy(&self, to: Operand, from: Operand, is_wide: bool) -> Operation {
        if is_wide && self.is_long() {
            return Operation::Move(to, from);
        }
        match to {
            Operand::Register(_) if !is_wide => self.spoiled_part(to),
            Operand::Register(_) => spoiled(to),
            _ => Operation::Move(to, Operand::Unknown),
        }
    }

    /// Like [`spoiled`], for a part of one byte. Without a prefix, 4 to 7 are the second bytes of
    /// the first four registers.
    const fn spoiled_part(&self, to: Operand) -> Operation {
        match to {
            Operand::Register(number @ 4..=7) if self.rex == 0 => {
                Operation::Spoil(1 << (number & 3))
            }
            _ => spoiled(to),
        }
    }

    /// c0 to ff.
    fn control(&mut self, opcode: u8) -> Option<Operation> {
        Some(match opcode {
            0xc0 | 0xc1 => {
                let other = self.operands()?.other;
                self.number(1)?;
                if opcode == 0xc0 {
                    self.spoiled_part(other)
                } else {
                    spoiled(other)
                }
            }
            0xc2 => Operation::Return(self.number(2)? as u16),
            0xc3 => Operation::Return(0),
            0xc6 | 0xc7 => {
                let to = self.operands()?.other;
                let number = if opcode == 0xc6 {
                    self.number(1)?
                } else {
                    self.immediate()?
                };
                self.copy(to, Operand::Number(number), opcode == 0xc7)
            }
            0xc9 => Operation::Leave,
            0xcc | 0xf4 => Operation::Trap,
            0xd0 | 0xd2 => {
                let other = self.operands()?.other;
                self.spoiled_part(other)
            }
            0xd1 | 0xd3 => spoiled(self.operands()?.other),
            0xd8..=0xdf => {
                self.operands()?;
                // `fnstsw ax`, and stores to memory.
                Operation::Spoil(1)
            }
            0xe0..=0xe3 => Operation::Branch(self.number(1)?),
            0xe8 => {
                self.number(4)?;
                Operation::Call
            }
            0xe9 => Operation::Jump(self.number(4)?),
            0xeb => Operation::Jump(self.number(1)?),
            0xf5 | 0xf8..=0xfd => Operation::Nothing,
            0xf6 | 0xf7 | 0xfe | 0xff => return self.single(opcode),
            _ => return None,
        })
    }

    /// f6, f7, fe and ff: operations on one operand.
    fn single(&mut self, opcode: u8) -> Option<Operation> {
        Some(match opcode {
            0xf6 | 0xf7 => {
                let Operands { register, other } = self.operands()?;
                match register & 7 {
                    0 | 1 => {
                        let _ = if opcode == 0xf6 {
                            self.number(1)?
                        } else {
                            self.immediate()?
                        };
                        Operation::Nothing
                    }
                    2 | 3 if opcode == 0xf6 => self.spoiled_part(other),
                    2 | 3 => spoiled(other),
                    _ => Operation::Spoil(0b101),
                }
            }
            0xfe | 0xff => {
                let Operands { register, other } = self.operands()?;
                match (opcode, register & 7) {
                    (0xfe, 0 | 1) => self.spoiled_part(other),
                    (_, 0 | 1) => spoiled(other),
                    (0xff, 2) => Operation::Call,
                    (0xff, 4) => Operation::JumpTo(other),
                    (0xff, 6) => Operation::Push(other),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }

    /// 0f, and 0f 38 and 0f 3a.
    fn two_bytes(&mut self) -> Option<Operation> {
        let opcode = self.byte()?;
        match opcode {
            0x0b => return Some(Operation::Trap),
            0x38 => {
                let opcode = self.byte()?;
                let register = self.operands()?.register;
                // movbe, crc32, adcx.
                let is_general = matches!(opcode, 0xf0 | 0xf1 | 0xf6);
                return Some(Operation::Spoil(u16::from(is_general) << register));
            }
            0x3a => {
                let opcode = self.byte()?;
                let other = self.operands()?.other;
                self.number(1)?;
                return Some(taken_out(opcode, other));
            }
            0x05 | 0x31 | 0xa2 => return Some(Operation::Spoil(0b1111 | 1 << 11)),
            0x01 | 0x06 | 0x08 | 0x09 | 0x30..=0x37 | 0x77 | 0xaa => {
                if opcode == 0x01 {
                    self.operands()?;
                }
                return Some(Operation::Spoil(0b1111));
            }
            0x80..=0x8f => return self.number(4).map(Operation::Branch),
            0xa0 | 0xa8 => return Some(Operation::Push(Operand::Unknown)),
            0xa1 | 0xa9 => return Some(Operation::Pop(Operand::Unknown)),
            0xc8..=0xcf => return Some(Operation::Spoil(1 << self.extended(opcode, B))),
            _ => {}
        }
        let Operands { register, other } = self.operands()?;
        if has_number(opcode) || matches!(opcode, 0xa4 | 0xac | 0xba) {
            self.number(1)?;
        }
        Some(match opcode {
            // movmsk, cvt to integers, cmov, kmov, bt and the like, imul, movzx, movsx, popcnt,
            // pextrw, pmovmskb.
            0x2c | 0x2d | 0x40..=0x50 | 0xaf | 0xb6..=0xb8 | 0xbc..=0xbf | 0xc5 | 0xd7 => {
                Operation::Spoil(1 << register)
            }
            // To a vector register.
            0x7e if self.is_repeated => Operation::Nothing,
            0x7e | 0xa4 | 0xa5 | 0xab..=0xad | 0xb3 | 0xba | 0xbb => spoiled(other),
            0x90..=0x9f => self.spoiled_part(other),
            0xb0 => also(self.spoiled_part(other), 1),
            0xb1 => also(spoiled(other), 1),
            0xc0 => self.spoiled_part(other),
            0xc1 => also(spoiled(other), 1 << register),
            _ => Operation::Nothing,
        })
    }

    /// Instructions with a prefix VEX or EVEX.
    fn vector(&mut self, prefix: u8) -> Option<Operation> {
        let first = self.byte()?;
        // These bits are inverted.
        self.rex = (!first >> 5) & 7;
        let (map, second) = match prefix {
            0xc5 => {
                self.rex &= R;
                (1, first)
            }
            0xc4 => (first & 0x1f, self.byte()?),
            _ => {
                let second = self.byte()?;
                self.byte()?;
                (first & 7, second)
            }
        };
        let written = (!second >> 3) & 0xf;
        let opcode = self.byte()?;
        if map == 1 && opcode == 0x77 {
            return Some(Operation::Nothing);
        }
        let Operands { register, other } = self.operands()?;
        Some(match map {
            1 => {
                if has_number(opcode) {
                    self.number(1)?;
                }
                match opcode {
                    0x2c | 0x2d | 0x50 | 0x93 | 0xc5 | 0xd7 => Operation::Spoil(1 << register),
                    0x7e if second & 3 != 2 => spoiled(other),
                    _ => Operation::Nothing,
                }
            }
            2 if prefix == 0xc4 => match opcode {
                0xf2 | 0xf5 | 0xf7 => Operation::Spoil(1 << register),
                0xf3 => Operation::Spoil(1 << written),
                0xf6 => Operation::Spoil(1 << register | 1 << written),
                _ => Operation::Nothing,
            },
            3 => {
                self.number(1)?;
                match opcode {
                    0xf0 => Operation::Spoil(1 << register),
                    _ => taken_out(opcode, other),
                }
            }
            2 | 5 | 6 => Operation::Nothing,
            _ => return None,
        })
    }
}

/// In the map 0f and that of vectors: whether an immediate byte follows. Shuffles, shifts,
/// comparisons.
const fn has_number(opcode: u8) -> bool {
    matches!(opcode, 0x70..=0x73 | 0xc2 | 0xc4..=0xc6)
}

/// In the map 0f 3a: `pextr` and `extractps` write to a general register.
const fn taken_out(opcode: u8, other: Operand) -> Operation {
    match opcode {
        0x14..=0x17 => spoiled(other),
        _ => Operation::Nothing,
    }
}

/// The target has an unknown value from now on.
const fn spoiled(to: Operand) -> Operation {
    match to {
        Operand::Register(number) => Operation::Spoil(1 << number),
        Operand::Memory(_) => Operation::Move(to, Operand::Unknown),
        _ => Operation::Nothing,
    }
}

const fn also(operation: Operation, registers: u16) -> Operation {
    match operation {
        Operation::Spoil(others) => Operation::Spoil(others | registers),
        // If one operand is memory and the other a register, the register may lead back to a
        // caller.
        _ => Operation::Spoil(registers),
    }
}

#[cfg(test)]
#[path = "instruction_tests.rs"]
mod tests;

//! Lengths of x86-64 instructions and their effects on the stack: as much of these as `flow` needs.
//! Must not follow the flow of instructions.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, appendix A.

/// The effect of an instruction on rsp and rbp, or its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing of these.
    None,
    /// A push, of rbp or of something else.
    Push { is_rbp: bool },
    /// A pop, to rbp or to something else.
    Pop { is_rbp: bool },
    /// rsp moves up by so many bytes.
    MoveSp(i32),
    /// `mov rbp, rsp`.
    SetFp,
    /// rsp becomes rbp plus so many bytes.
    SpFromFp(i32),
    /// rsp becomes rbp, then rbp is popped.
    Leave,
    /// rsp gets another value.
    LoseSp,
    /// rbp is stored at rsp plus so many bytes.
    StoreFp(i32),
    /// rbp is loaded from rsp plus so many bytes.
    LoadFp(i32),
    /// `xor ebp, ebp`.
    ClearFp,
    /// Computes an address, by its distance from the instruction's end.
    Address(i32),
    /// A jump, by its distance from the instruction's end.
    Jump(i32),
    /// The same on a condition.
    Branch(i32),
    /// A jump to a computed address.
    JumpAway,
    /// A call; its target, relative to the instruction's end, if the instruction has it.
    Call(Option<i32>),
    /// `mov rax, 15`: the number of `rt_sigreturn`.
    LoadSigreturn,
    /// A return.
    Return,
    /// An instruction that does not go on, as in `hlt`.
    Stop,
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    /// Its bytes, 1 to 15.
    pub len: usize,
    /// See [`Effect`].
    pub effect: Effect,
}

const RSP: u8 = 4;
const RBP: u8 = 5;

/// The bytes before the opcode.
#[derive(Clone, Copy, Default)]
struct Prefixes {
    is_16_bits: bool,
    rex: u8,
}

impl Prefixes {
    fn is_wide(self) -> bool {
        self.rex & 8 != 0
    }

    /// The register in the lower bits of a field, with the bit of REX at `bit`.
    fn register(self, low: u8, bit: u8) -> u8 {
        (low & 7) | ((self.rex >> bit & 1) << 3)
    }
}

/// The operand bytes after an opcode.
#[derive(Clone, Copy, Default)]
struct Operands {
    modrm: Option<Modrm>,
    /// The last bytes, as a signed number.
    immediate: i32,
}

#[derive(Clone, Copy)]
struct Modrm {
    /// `mod` is 3.
    is_register: bool,
    /// With the bit of REX.
    reg: u8,
    /// With the bit of REX; of a memory operand its base register, if that is all it has.
    rm: Option<u8>,
    is_rip: bool,
    displacement: i32,
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// A number of 0, 1, 2, 4 or 8 bytes; of the longest only the lower half.
    fn number(&mut self, len: u8) -> Option<i32> {
        Some(match len {
            0 => 0,
            1 => i32::from(i8::from_le_bytes(self.take()?)),
            2 => i32::from(i16::from_le_bytes(self.take()?)),
            4 => i32::from_le_bytes(self.take()?),
            _ => i64::from_le_bytes(self.take()?) as i32,
        })
    }

    fn modrm(&mut self, prefixes: Prefixes) -> Option<Modrm> {
        let byte = self.byte()?;
        let (mode, low) = (byte >> 6, byte & 7);
        let mut found = Modrm {
            is_register: mode == 3,
            reg: prefixes.register(byte >> 3, 2),
            rm: Some(prefixes.register(low, 0)),
            is_rip: mode == 0 && low == 5,
            displacement: 0,
        };
        if found.is_register {
            return Some(found);
        }
        let mut has_base = !found.is_rip;
        if low == 4 {
            let sib = self.byte()?;
            // No index is the index 4.
            let has_index = prefixes.register(sib >> 3, 1) != 4;
            has_base = !(mode == 0 && sib & 7 == 5);
            found.rm = Some(prefixes.register(sib, 0)).filter(|_| has_base && !has_index);
        }
        found.displacement = match (mode, has_base) {
            (1, _) => self.number(1)?,
            (2, _) | (0, false) => self.number(4)?,
            _ => 0,
        };
        Some(found)
    }
}

/// Reads the instruction at the beginning of `bytes`; `None` for one that compilers do not write.
pub(super) fn decode(bytes: &[u8]) -> Option<Instruction> {
    let all = bytes.get(..bytes.len().min(15))?;
    let mut rest = Bytes(all);
    let mut prefixes = Prefixes::default();
    let mut op = rest.byte()?;
    loop {
        match op {
            0x66 => prefixes.is_16_bits = true,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0xf0 | 0xf2 | 0xf3 => {}
            _ => break,
        }
        op = rest.byte()?;
    }
    if op & 0xf0 == 0x40 {
        prefixes.rex = op;
        op = rest.byte()?;
    }
    let effect = match op {
        0x0f => two_bytes(&mut rest, prefixes)?,
        0xc4 | 0xc5 | 0x62 => vector(&mut rest, op)?,
        _ => one_byte(&mut rest, op, prefixes)?,
    };
    Some(Instruction {
        len: all.len() - rest.0.len(),
        effect,
    })
}

/// Opcodes of vector instructions in a prefix of two, three or four bytes.
fn vector(rest: &mut Bytes<'_>, op: u8) -> Option<Effect> {
    let map = match op {
        0xc5 => {
            rest.byte()?;
            1
        }
        0xc4 => rest.take::<2>()?[0] & 0x1f,
        _ => rest.take::<3>()?[0] & 7,
    };
    let opcode = rest.byte()?;
    // `vzeroupper` has no operands.
    if map != 1 || opcode != 0x77 {
        // In the longest form a displacement of one byte counts vectors, but is one byte.
        rest.modrm(Prefixes::default())?;
    }
    if map == 3 || (map == 1 && has_immediate_byte(opcode)) {
        rest.number(1)?;
    }
    Some(Effect::None)
}

/// Opcodes after 0x0f whose operands end in a byte.
fn has_immediate_byte(opcode: u8) -> bool {
    matches!(opcode, 0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6)
}

fn two_bytes(rest: &mut Bytes<'_>, prefixes: Prefixes) -> Option<Effect> {
    let opcode = rest.byte()?;
    match opcode {
        0x0b => return Some(Effect::Stop),
        0x80..=0x8f => return Some(Effect::Branch(rest.number(4)?)),
        0x05..=0x09 | 0x30..=0x37 | 0x77 | 0xa0..=0xa2 | 0xa8..=0xaa | 0xc8..=0xcf => {
            return Some(Effect::None);
        }
        0x38 | 0x3a => {
            rest.byte()?;
        }
        _ => {}
    }
    rest.modrm(prefixes)?;
    if opcode == 0x3a || has_immediate_byte(opcode) {
        rest.number(1)?;
    }
    Some(Effect::None)
}

/// The layout of the operands of a one-byte opcode: whether it has a ModRM byte, and the length of
/// the number at its end.
fn layout(op: u8, prefixes: Prefixes) -> Option<(bool, u8)> {
    let word = if prefixes.is_16_bits && !prefixes.is_wide() {
        2
    } else {
        4
    };
    Some(match op {
        0x00..=0x3f => match op & 7 {
            0..=3 => (true, 0),
            4 => (false, 1),
            5 => (false, word),
            _ => return None,
        },
        0x69 | 0x81 | 0xc7 => (true, word),
        0x6b | 0x80 | 0x83 | 0xc0 | 0xc1 | 0xc6 => (true, 1),
        0x63 | 0x84..=0x8f | 0xd0..=0xd3 | 0xd8..=0xdf | 0xfe | 0xff => (true, 0),
        // Their first two forms, `test`, have a number: see `one_byte`.
        0xf6 | 0xf7 => (true, 0),
        0x68 | 0xa9 => (false, word),
        0xe8 | 0xe9 => (false, 4),
        0x6a | 0x70..=0x7f | 0xa8 | 0xb0..=0xb7 | 0xcd | 0xe0..=0xe7 | 0xeb => (false, 1),
        0xb8..=0xbf if prefixes.is_wide() => (false, 8),
        0xb8..=0xbf => (false, word),
        0xa0..=0xa3 => (false, 8),
        0xc2 | 0xca => (false, 2),
        0x50..=0x5f | 0x6c..=0x6f | 0x90..=0x99 | 0x9b..=0x9f | 0xa4..=0xa7 => (false, 0),
        0xaa..=0xaf | 0xc3 | 0xc9 | 0xcb | 0xcc | 0xcf | 0xd7 => (false, 0),
        0xec..=0xef | 0xf1 | 0xf4 | 0xf5 | 0xf8..=0xfd => (false, 0),
        _ => return None,
    })
}

fn one_byte(rest: &mut Bytes<'_>, op: u8, prefixes: Prefixes) -> Option<Effect> {
    let (has_modrm, mut len) = layout(op, prefixes)?;
    let modrm = match has_modrm {
        true => Some(rest.modrm(prefixes)?),
        false => None,
    };
    if matches!(op, 0xf6 | 0xf7) && modrm.is_some_and(|modrm| modrm.reg & 7 < 2) {
        let word = if prefixes.is_16_bits { 2 } else { 4 };
        len = if op == 0xf6 { 1 } else { word };
    }
    let operands = Operands {
        modrm,
        immediate: rest.number(len)?,
    };
    Some(match op {
        0x50..=0x57 => Effect::Push {
            is_rbp: prefixes.register(op, 0) == RBP,
        },
        0x58..=0x5f => match prefixes.register(op, 0) {
            RSP => Effect::LoseSp,
            register => Effect::Pop {
                is_rbp: register == RBP,
            },
        },
        0x68 | 0x6a | 0x9c => Effect::Push { is_rbp: false },
        0x8f | 0x9d => Effect::Pop { is_rbp: false },
        0x70..=0x7f | 0xe0..=0xe3 => Effect::Branch(operands.immediate),
        0xe8 => Effect::Call(Some(operands.immediate)),
        0xe9 | 0xeb => Effect::Jump(operands.immediate),
        0xc2 | 0xc3 => Effect::Return,
        0xca..=0xcc | 0xcf | 0xf4 => Effect::Stop,
        0xc9 => Effect::Leave,
        _ => with_modrm(op, operands, prefixes),
    })
}

fn with_modrm(op: u8, operands: Operands, prefixes: Prefixes) -> Effect {
    let Some(modrm) = operands.modrm else {
        return Effect::None;
    };
    let of_register = modrm.rm.filter(|_| modrm.is_register);
    let of_memory = modrm.rm.filter(|_| !modrm.is_register);
    let at = modrm.displacement;
    match op {
        0xff => match modrm.reg & 7 {
            2 => Effect::Call(None),
            4 => Effect::JumpAway,
            3 | 5 => Effect::Stop,
            6 => Effect::Push { is_rbp: false },
            _ => Effect::None,
        },
        0x81 | 0x83 if of_register == Some(RSP) => match modrm.reg & 7 {
            0 => Effect::MoveSp(operands.immediate),
            5 => operands
                .immediate
                .checked_neg()
                .map_or(Effect::LoseSp, Effect::MoveSp),
            7 => Effect::None,
            _ => Effect::LoseSp,
        },
        0x8d if modrm.reg == RSP => match of_memory.filter(|_| !modrm.is_rip) {
            Some(RSP) => Effect::MoveSp(at),
            Some(RBP) => Effect::SpFromFp(at),
            _ => Effect::LoseSp,
        },
        0x8d if modrm.is_rip => Effect::Address(at),
        0x89 => match (of_register, of_memory, modrm.reg) {
            (Some(RSP), _, RBP) => Effect::SpFromFp(0),
            (Some(RSP), ..) => Effect::LoseSp,
            (Some(RBP), _, RSP) => Effect::SetFp,
            (_, Some(RSP), RBP) => Effect::StoreFp(at),
            _ => Effect::None,
        },
        0x8b => match (modrm.reg, of_register, of_memory) {
            (RSP, Some(RBP), _) => Effect::SpFromFp(0),
            (RSP, ..) => Effect::LoseSp,
            (RBP, Some(RSP), _) => Effect::SetFp,
            (RBP, _, Some(RSP)) => Effect::LoadFp(at),
            _ => Effect::None,
        },
        0x31 | 0x33 if modrm.reg == RBP && of_register == Some(RBP) => Effect::ClearFp,
        0x01 | 0x09 | 0x21 | 0x29 | 0x31 | 0x87 | 0xc7 if of_register == Some(RSP) => {
            Effect::LoseSp
        }
        0x03 | 0x0b | 0x23 | 0x2b | 0x33 | 0x87 if modrm.reg == RSP => Effect::LoseSp,
        0xc7 if of_register == Some(0) && operands.immediate == 15 && prefixes.is_wide() => {
            Effect::LoadSigreturn
        }
        _ => Effect::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], effect: Effect) {
        let len = bytes.len();
        let padded = [bytes, &[0x90; 15]].concat();
        assert_eq!(decode(&padded), Some(Instruction { len, effect }));
        for cut in 0..len {
            assert_eq!(decode(&bytes[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn instructions_that_move_rsp_are_known() {
        check(&[0x55], Effect::Push { is_rbp: true });
        check(&[0x41, 0x55], Effect::Push { is_rbp: false });
        check(&[0x5d], Effect::Pop { is_rbp: true });
        check(&[0x41, 0x5d], Effect::Pop { is_rbp: false });
        check(&[0x48, 0x83, 0xec, 0x18], Effect::MoveSp(-0x18));
        check(&[0x48, 0x81, 0xc4, 0, 1, 0, 0], Effect::MoveSp(0x100));
        check(&[0x48, 0x8d, 0x64, 0x24, 0xf8], Effect::MoveSp(-8));
        check(&[0x48, 0x8d, 0x65, 0xf0], Effect::SpFromFp(-16));
        check(&[0x48, 0x89, 0xec], Effect::SpFromFp(0));
        check(&[0x48, 0x83, 0xe4, 0xf0], Effect::LoseSp);
        check(&[0x48, 0x29, 0xc4], Effect::LoseSp);
        check(&[0xff, 0x74, 0x24, 0x08], Effect::Push { is_rbp: false });
        check(&[0x68, 1, 2, 3, 4], Effect::Push { is_rbp: false });
        check(&[0xc9], Effect::Leave);
    }

    #[test]
    fn instructions_with_rbp_are_known() {
        check(&[0x48, 0x89, 0xe5], Effect::SetFp);
        check(&[0x48, 0x8b, 0xec], Effect::SetFp);
        check(&[0x48, 0x89, 0x6c, 0x24, 0x10], Effect::StoreFp(16));
        check(&[0x48, 0x8b, 0x2c, 0x24], Effect::LoadFp(0));
        check(&[0x31, 0xed], Effect::ClearFp);
        check(&[0x48, 0x31, 0xed], Effect::ClearFp);
        check(&[0x45, 0x31, 0xed], Effect::None);
        check(&[0x4c, 0x89, 0x6c, 0x24, 0x10], Effect::None);
    }

    #[test]
    fn jumps_have_their_distance() {
        check(&[0x75, 0xfe], Effect::Branch(-2));
        check(&[0x0f, 0x84, 1, 0, 0, 0], Effect::Branch(1));
        check(&[0xeb, 0x10], Effect::Jump(16));
        check(&[0xe9, 0, 0, 0, 0xff], Effect::Jump(-0x100_0000));
        check(&[0xe8, 5, 0, 0, 0], Effect::Call(Some(5)));
        check(&[0x41, 0xff, 0xd1], Effect::Call(None));
        check(&[0x3e, 0xff, 0xe0], Effect::JumpAway);
        check(&[0xc3], Effect::Return);
        check(&[0xf4], Effect::Stop);
        check(&[0x0f, 0x0b], Effect::Stop);
        check(&[0x48, 0x8d, 0x3d, 1, 0, 0, 0], Effect::Address(1));
    }

    /// Operands of all lengths.
    #[test]
    fn other_instructions_have_their_length() {
        let all: [&[u8]; 16] = [
            &[0x90],
            &[0x0f, 0x05],
            &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
            &[0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0],
            &[0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0x66, 0xb8, 1, 2],
            &[0x66, 0xc7, 0x07, 1, 2],
            &[0xf6, 0x47, 0x08, 0x01],
            &[0xf7, 0xd8],
            &[0xf7, 0x05, 1, 0, 0, 0, 9, 0, 0, 0],
            &[0x80, 0x3d, 1, 0, 0, 0, 9],
            &[0xf3, 0x0f, 0x10, 0x44, 0x24, 0x08],
            &[0x66, 0x0f, 0x3a, 0x0f, 0xc1, 0x08],
            &[0xdd, 0x44, 0x24, 0x10],
            &[0xc5, 0xf8, 0x77],
            &[0x62, 0xf1, 0x7c, 0x48, 0x10, 0x47, 0x01],
        ];
        for bytes in all {
            check(bytes, Effect::None);
        }
        check(&[0x48, 0xc7, 0xc0, 15, 0, 0, 0], Effect::LoadSigreturn);
        assert_eq!(decode(&[0x06; 16]), None);
    }
}

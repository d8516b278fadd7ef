//! Parses entries of `.eh_frame` and their instructions byte by byte from any memory, without
//! allocation, for any bytes. Supports the encodings that linkers write, and refuses all others.
//! `cfa_program` has the meaning of instructions.

use std::ops::Range;

use dwell_walker::Memory;
use gimli::{CallFrameInstruction, Register, UnwindExpression};

use super::Section;
use super::cfa_program::{self, Cfa, EXPRESSION_LEN_MAX, FDE_LEN_MAX, Factors, Registers};

/// Bytes fetched by one read.
const HELD: usize = 64;
/// Longest CIE, in bytes, and longest augmentation string.
const CIE_LEN_MAX: u64 = 512;
const AUGMENTATION_MAX: usize = 8;
/// Encoding of functions' addresses: relative to their place, 4 bytes.
const USUAL_ENCODING: u8 = 0x1b;

/// The upper two bits of an opcode that has its operand in the lower ones.
const PRIMARY: u8 = 0xc0;

/// Location of a section: in its file's address space, and in the memory that is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) svma: u64,
    pub(super) at: u64,
    pub(super) len: u64,
}

impl Place {
    pub(super) fn of(section: Section<'_>) -> Place {
        Place {
            svma: section.svma,
            at: section.data.as_ptr() as u64,
            len: section.data.len() as u64,
        }
    }
}

/// The part of a CIE that its functions need.
pub(super) struct Cie {
    pub(super) factors: Factors,
    /// Range of its instructions in the section.
    pub(super) instructions: Range<u64>,
}

/// A function's entry.
pub(super) struct Fde {
    /// Addresses (svma).
    pub(super) start: u64,
    pub(super) end: u64,
    /// Offset of its CIE in the section, and range of its instructions.
    pub(super) cie: u64,
    pub(super) instructions: Range<u64>,
}

impl Cie {
    /// The CIE `into` a section; `None` if there is no CIE, or one that linkers do not write.
    pub(super) fn parse<M: Memory>(memory: &M, section: Place, into: u64) -> Option<Cie> {
        let mut bytes = entry(memory, section, into, CIE_LEN_MAX)?;
        let (id, version) = (bytes.u32()?, bytes.u8()?);
        (id == 0 && version == 1).then_some(())?;
        let mut augmentation = [0; AUGMENTATION_MAX];
        let mut len = 0;
        loop {
            let byte = bytes.u8()?;
            if byte == 0 {
                break;
            }
            *augmentation.get_mut(len)? = byte;
            len += 1;
        }
        let (code, data) = (bytes.uleb()?, bytes.sleb()?);
        // Other processors' rules are looked up in the table.
        let return_address = Register(bytes.u8()?.into());
        let registers = Registers::of_return_address(return_address);
        (registers == Registers::X86_64).then_some(())?;
        let ([b'z', letters @ ..], len) = (augmentation, bytes.uleb()?) else {
            return None;
        };
        let after = bytes.into.checked_add(len).filter(|it| *it <= bytes.end)?;
        let (mut is_usual, mut is_signal) = (false, false);
        for letter in letters {
            match letter {
                0 => {}
                b'R' => is_usual = bytes.u8()? == USUAL_ENCODING,
                b'L' => drop(bytes.u8()?),
                b'S' => is_signal = true,
                b'P' => bytes.skip_pointer()?,
                _ => return None,
            }
        }
        (is_usual && bytes.into <= after).then_some(Cie {
            factors: Factors {
                code,
                data,
                is_signal,
                registers,
            },
            instructions: after..bytes.end,
        })
    }
}

impl Fde {
    /// The FDE `into` a section, with a CIE that linkers write; `None` otherwise.
    pub(super) fn parse<M: Memory>(memory: &M, section: Place, into: u64) -> Option<Fde> {
        let mut bytes = entry(memory, section, into, FDE_LEN_MAX as u64)?;
        let at = bytes.into;
        let distance = u64::from(bytes.u32()?);
        let cie = at.checked_sub(distance).filter(|_| distance != 0)?;
        let start = bytes.address()?;
        let len = u64::try_from(i64::from(bytes.u32()?.cast_signed())).ok()?;
        let augmentation = bytes.uleb()?;
        let from = bytes.into.checked_add(augmentation)?;
        (from <= bytes.end).then_some(Fde {
            start,
            end: start.checked_add(len)?,
            cie,
            instructions: from..bytes.end,
        })
    }
}

/// The part of an entry after its length.
fn entry<M: Memory>(memory: &M, section: Place, into: u64, max: u64) -> Option<Bytes<'_, M>> {
    let body = into.checked_add(4).filter(|body| *body <= section.len)?;
    // A read may go beyond the entry's end, but not beyond the section.
    let mut bytes = Bytes::new(memory, section, into..section.len);
    let len = u64::from(bytes.u32()?);
    bytes.end = body.checked_add(len)?;
    (len <= max && bytes.end <= section.len).then_some(bytes)
}

/// Unread bytes of a section.
pub(super) struct Bytes<'m, M> {
    memory: &'m M,
    section: Place,
    into: u64,
    end: u64,
    held: [u8; HELD],
    /// Start and number of the bytes that are held.
    held_from: u64,
    held_len: u64,
}

impl<'m, M: Memory> Bytes<'m, M> {
    /// The bytes at `range` of a section. Reads beyond the section fail.
    pub(super) fn new(memory: &'m M, section: Place, range: Range<u64>) -> Self {
        Bytes {
            memory,
            section,
            into: range.start,
            end: range.end.min(section.len),
            held: [0; HELD],
            held_from: 0,
            held_len: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.into >= self.end
    }

    #[inline]
    fn u8(&mut self) -> Option<u8> {
        if self.is_empty() {
            return None;
        }
        let mut at = self.into.wrapping_sub(self.held_from);
        if at >= self.held_len {
            self.hold()?;
            at = 0;
        }
        self.into += 1;
        self.held.get(at as usize).copied()
    }

    #[inline(never)]
    fn hold(&mut self) -> Option<()> {
        let len = self.end.checked_sub(self.into)?.min(HELD as u64);
        let held = self.held.get_mut(..len as usize)?;
        let at = self.section.at.wrapping_add(self.into);
        self.held_len = 0;
        self.memory.read(at, held).ok()?;
        (self.held_from, self.held_len) = (self.into, len);
        Some(())
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes([self.u8()?, self.u8()?]))
    }

    fn u32(&mut self) -> Option<u32> {
        let bytes = [self.u8()?, self.u8()?, self.u8()?, self.u8()?];
        Some(u32::from_le_bytes(bytes))
    }

    /// An address that is encoded relative to its own place.
    fn address(&mut self) -> Option<u64> {
        let from = self.section.svma.checked_add(self.into)?;
        from.checked_add_signed(self.u32()?.cast_signed().into())
    }

    /// A number in LEB128; `None` if it has more than 64 bits.
    fn uleb(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            if shift == 63 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn sleb(&mut self) -> Option<i64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            if shift == 63 && byte != 0 && byte != 0x7f {
                return None;
            }
            value |= i64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                let is_negative = byte & 0x40 != 0 && shift + 7 < 64;
                return Some(if is_negative {
                    value | -1 << (shift + 7)
                } else {
                    value
                });
            }
        }
        None
    }

    fn skip_pointer(&mut self) -> Option<()> {
        let encoding = self.u8()?;
        let len = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => 8,
            0x02 | 0x0a => 2,
            0x03 | 0x0b => 4,
            _ => return None,
        };
        // Aligned pointers begin at another place.
        (encoding & 0x70 != 0x50).then_some(())?;
        (0..len).try_for_each(|_| self.u8().map(drop))
    }

    fn register(&mut self) -> Option<Register> {
        u16::try_from(self.uleb()?).ok().map(Register)
    }

    fn expression(&mut self) -> Option<UnwindExpression<usize>> {
        let length = self.uleb()?;
        let offset = self.into;
        self.into = offset.checked_add(length).filter(|it| *it <= self.end)?;
        Some(UnwindExpression {
            offset: offset as usize,
            length: length as usize,
        })
    }

    /// The value of the expression of an instruction, if it defines the CFA by one.
    pub(super) fn computed(&self, instruction: &CallFrameInstruction<usize>) -> Cfa {
        let CallFrameInstruction::DefCfaExpression { expression } = instruction else {
            return Cfa::Other;
        };
        let mut bytes = [0; EXPRESSION_LEN_MAX];
        let Some(bytes) = bytes.get_mut(..expression.length) else {
            return Cfa::Other;
        };
        let at = self.section.at.wrapping_add(expression.offset as u64);
        match self.memory.read(at, bytes) {
            Ok(()) => cfa_program::classify(bytes),
            Err(_) => Cfa::Other,
        }
    }

    /// The next instruction; `None` if it is invalid.
    pub(super) fn instruction(&mut self) -> Option<CallFrameInstruction<usize>> {
        use CallFrameInstruction as I;
        let op = self.u8()?;
        let operand = op & !PRIMARY;
        let register = Register(u16::from(operand));
        let delta = u32::from(operand);
        Some(match (op & PRIMARY, op) {
            (0x40, _) => I::AdvanceLoc { delta },
            (0x80, _) => {
                let factored_offset = self.uleb()?;
                I::Offset {
                    register,
                    factored_offset,
                }
            }
            (0xc0, _) => I::Restore { register },
            (_, 0x00) => I::Nop,
            (_, 0x01) => {
                let address = self.address()?;
                I::SetLoc { address }
            }
            (_, 0x02) => {
                let delta = u32::from(self.u8()?);
                I::AdvanceLoc { delta }
            }
            (_, 0x03) => {
                let delta = u32::from(self.u16()?);
                I::AdvanceLoc { delta }
            }
            (_, 0x04) => {
                let delta = self.u32()?;
                I::AdvanceLoc { delta }
            }
            (_, 0x0a) => I::RememberState,
            (_, 0x0b) => I::RestoreState,
            (_, 0x2e) => {
                let size = self.uleb()?;
                I::ArgsSize { size }
            }
            (_, 0x0c..=0x0f | 0x12 | 0x13) => return self.cfa_instruction(op),
            _ => return self.register_instruction(op),
        })
    }

    /// An instruction that changes the CFA.
    fn cfa_instruction(&mut self, op: u8) -> Option<CallFrameInstruction<usize>> {
        use CallFrameInstruction as I;
        Some(match op {
            0x0c => {
                let (register, offset) = (self.register()?, self.uleb()?);
                I::DefCfa { register, offset }
            }
            0x0d => {
                let register = self.register()?;
                I::DefCfaRegister { register }
            }
            0x0e => {
                let offset = self.uleb()?;
                I::DefCfaOffset { offset }
            }
            0x0f => {
                let expression = self.expression()?;
                I::DefCfaExpression { expression }
            }
            0x12 => {
                let (register, factored_offset) = (self.register()?, self.sleb()?);
                I::DefCfaSf {
                    register,
                    factored_offset,
                }
            }
            0x13 => {
                let factored_offset = self.sleb()?;
                I::DefCfaOffsetSf { factored_offset }
            }
            _ => return None,
        })
    }

    /// An instruction that begins with a register and changes where that register is saved.
    fn register_instruction(&mut self, op: u8) -> Option<CallFrameInstruction<usize>> {
        use CallFrameInstruction as I;
        if !matches!(op, 0x05..=0x09 | 0x10 | 0x11 | 0x14..=0x16) {
            return None;
        }
        let register = self.register()?;
        Some(match op {
            0x05 => {
                let factored_offset = self.uleb()?;
                I::Offset {
                    register,
                    factored_offset,
                }
            }
            0x06 => I::Restore { register },
            0x07 => I::Undefined { register },
            0x08 => I::SameValue { register },
            0x09 => {
                let src_register = self.register()?;
                I::Register {
                    dest_register: register,
                    src_register,
                }
            }
            0x11 => {
                let factored_offset = self.sleb()?;
                I::OffsetExtendedSf {
                    register,
                    factored_offset,
                }
            }
            0x14 => {
                let factored_offset = self.uleb()?;
                I::ValOffset {
                    register,
                    factored_offset,
                }
            }
            0x15 => {
                let factored_offset = self.sleb()?;
                I::ValOffsetSf {
                    register,
                    factored_offset,
                }
            }
            0x10 => {
                let expression = self.expression()?;
                I::Expression {
                    register,
                    expression,
                }
            }
            _ => {
                let expression = self.expression()?;
                I::ValExpression {
                    register,
                    expression,
                }
            }
        })
    }
}

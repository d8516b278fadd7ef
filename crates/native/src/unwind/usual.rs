//! Runs the programs that compilers write: the return address is right below the CFA, the CFA
//! counts from rsp or rbp, and the only other register is rbp. Nearly all functions are like this,
//! and take a fraction of the time here. Other programs are refused, and left to
//! [`super::cfa_program`]. This module must not know about sections or tables: bytes in,
//! `(address, Rule)` out.

use std::ops::Range;

use dwell_walker::native::{CFA_BYTES_MAX, RBP_SLOT_MAX, Rule, SavedRbp};

/// Maximum supported nesting of `DW_CFA_remember_state`; compilers use one.
const REMEMBERED_MAX: usize = 4;

const RBP: u32 = 6;
const RSP: u32 = 7;
const RETURN_ADDRESS: u32 = 16;

/// The upper two bits of an opcode that has its operand in the lower ones.
const PRIMARY: u8 = 0xc0;
const ADVANCE: u8 = 0x40;
const OFFSET: u8 = 0x80;
const RESTORE: u8 = 0xc0;
const NOP: u8 = 0x00;
const ADVANCE_1: u8 = 0x02;
const ADVANCE_2: u8 = 0x03;
const ADVANCE_4: u8 = 0x04;
const REMEMBER_STATE: u8 = 0x0a;
const RESTORE_STATE: u8 = 0x0b;
const DEF_CFA: u8 = 0x0c;
const DEF_CFA_REGISTER: u8 = 0x0d;
const DEF_CFA_OFFSET: u8 = 0x0e;
const ARGS_SIZE: u8 = 0x2e;

/// The columns of a row.
#[derive(Clone, Copy)]
struct State {
    is_fp: bool,
    cfa_bytes: u32,
    /// Distance of the saved rbp below the CFA, in words; 0: rbp is unchanged.
    rbp: u16,
}

impl State {
    /// `DW_CFA_def_cfa rsp 8`, the first state of every function.
    const FIRST: State = State {
        is_fp: false,
        cfa_bytes: 8,
        rbp: 0,
    };

    fn rule(self) -> Option<Rule> {
        let cfa_bytes = self.cfa_bytes;
        let is_good = cfa_bytes.is_multiple_of(8) && cfa_bytes <= CFA_BYTES_MAX;
        let rbp = match self.rbp {
            0 => SavedRbp::Same,
            words => SavedRbp::At(words),
        };
        is_good.then_some(match self.is_fp {
            true => Rule::Fp { cfa_bytes, rbp },
            false => Rule::Sp { cfa_bytes, rbp },
        })
    }

    fn set_register(&mut self, register: u32) -> Option<()> {
        self.is_fp = match register {
            RBP => true,
            RSP => false,
            _ => return None,
        };
        Some(())
    }
}

/// The instructions not yet executed.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    /// A number in LEB128 with at most four bytes.
    fn uleb(&mut self) -> Option<u32> {
        let mut value = 0;
        for shift in [0, 7, 14, 21] {
            let [byte] = self.take()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

/// Runs the instructions of the function at `range`, whose CIE has the usual factors (1, -8) and
/// initial instructions. Passes each row's start and rule to `sink`, in order of address. Returns
/// the number of instructions; `None` if one was refused, perhaps after some rows were passed.
pub(super) fn run(
    instructions: &[u8],
    range: Range<u32>,
    sink: &mut impl FnMut(u32, Rule),
) -> Option<u64> {
    let mut state = State::FIRST;
    let mut remembered = [State::FIRST; REMEMBERED_MAX];
    let mut depth = 0usize;
    let mut address = u64::from(range.start);
    let mut row_start = range.start;
    let mut bytes = Bytes(instructions);
    let mut count = 0;
    while let Some([op]) = bytes.take() {
        count += 1;
        let operand = u32::from(op & !PRIMARY);
        let advanced = match (op & PRIMARY, op) {
            (ADVANCE, _) => operand,
            (OFFSET, _) => {
                let words = bytes.uleb()?;
                match operand {
                    RBP => state.rbp = slot(words)?,
                    RSP | RETURN_ADDRESS => return None,
                    _ => {}
                }
                continue;
            }
            (RESTORE, _) => {
                match operand {
                    RBP => state.rbp = 0,
                    RSP | RETURN_ADDRESS => return None,
                    _ => {}
                }
                continue;
            }
            (_, ADVANCE_1) => u32::from(u8::from_le_bytes(bytes.take()?)),
            (_, ADVANCE_2) => u32::from(u16::from_le_bytes(bytes.take()?)),
            (_, ADVANCE_4) => u32::from_le_bytes(bytes.take()?),
            (_, REMEMBER_STATE) => {
                *remembered.get_mut(depth)? = state;
                depth += 1;
                continue;
            }
            (_, RESTORE_STATE) => {
                depth = depth.checked_sub(1)?;
                state = *remembered.get(depth)?;
                continue;
            }
            _ => {
                other(op, &mut state, &mut bytes)?;
                continue;
            }
        };
        address += u64::from(advanced);
        let row_end = address.min(u64::from(range.end)) as u32;
        if row_start < row_end {
            sink(row_start, state.rule()?);
            row_start = row_end;
        }
    }
    if row_start < range.end {
        sink(row_start, state.rule()?);
    }
    Some(count)
}

/// Executes an instruction that changes the CFA, or has no effect.
fn other(op: u8, state: &mut State, bytes: &mut Bytes<'_>) -> Option<()> {
    match op {
        NOP => {}
        DEF_CFA => {
            state.set_register(bytes.uleb()?)?;
            state.cfa_bytes = bytes.uleb()?;
        }
        DEF_CFA_REGISTER => state.set_register(bytes.uleb()?)?,
        DEF_CFA_OFFSET => state.cfa_bytes = bytes.uleb()?,
        ARGS_SIZE => {
            bytes.uleb()?;
        }
        _ => return None,
    }
    Some(())
}

fn slot(words: u32) -> Option<u16> {
    let words = u16::try_from(words).ok()?;
    (1..=RBP_SLOT_MAX).contains(&words).then_some(words)
}

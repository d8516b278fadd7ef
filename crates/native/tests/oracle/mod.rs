//! The result of gimli's own evaluation of an `.eh_frame`, row by row, in the table's terms.
//!
//! It shares no code with the compiler under test except gimli's parser of single instructions.

use std::ops::Range;

use dwell_native::unwind::{Rule, SavedRbp, Section};
use dwell_walker::native::{CFA_BYTES_MAX, RBP_SLOT_MAX};
use gimli::{CfaRule, LittleEndian, RegisterRule, UnwindSection, X86_64};

type Frame<'a> = gimli::EhFrame<gimli::EndianSlice<'a, LittleEndian>>;

/// The rule at the addresses of one row.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    Rule(Rule),
    /// `CFA = rsp + 8`, and 8 more from this byte of each 16 on.
    PushesAt(u8),
}

/// One row: addresses (svma) and the expected rule.
#[derive(Clone, Debug)]
pub struct Expected {
    pub addresses: Range<u64>,
    meaning: Meaning,
}

impl Expected {
    /// The rule that a table should have at `address`.
    pub fn rule_at(&self, address: u64) -> Rule {
        match self.meaning {
            Meaning::Rule(rule) => rule,
            Meaning::PushesAt(11) => Rule::Plt,
            Meaning::PushesAt(threshold) => {
                let pushed = address & 15 >= u64::from(threshold);
                Rule::Sp {
                    cfa_bytes: if pushed { 16 } else { 8 },
                    rbp: SavedRbp::Same,
                }
            }
        }
    }
}

/// The threshold of: breg7 8, breg16 0, lit15, and, litN, ge, lit3, shl, plus.
fn plt_threshold(expression: &[u8]) -> Option<u8> {
    match *expression {
        [
            0x77,
            8,
            0x80,
            0,
            0x3f,
            0x1a,
            literal @ 0x31..=0x3f,
            0x2a,
            0x33,
            0x24,
            0x22,
        ] => Some(literal - 0x30),
        _ => None,
    }
}

fn slot(offset: i64) -> Option<u16> {
    let is_slot = offset < 0 && offset % 8 == 0 && offset >= -8 * i64::from(RBP_SLOT_MAX);
    is_slot.then(|| u16::try_from(-offset / 8).unwrap())
}

fn meaning(frame: &Frame<'_>, row: &gimli::UnwindTableRow<usize>, is_signal: bool) -> Meaning {
    let unsupported = Meaning::Rule(Rule::Unsupported);
    let ra = row.register(X86_64::RA);
    if ra == Some(RegisterRule::Undefined) {
        return Meaning::Rule(Rule::End);
    }
    let expression = match row.cfa() {
        CfaRule::Expression(expression) => Some(expression.get(frame).unwrap().0.slice()),
        CfaRule::RegisterAndOffset { .. } => None,
    };
    // breg7 160, deref: rsp in the ucontext.
    if is_signal && expression == Some(&[0x77, 0xa0, 1, 6][..]) {
        return Meaning::Rule(Rule::SignalFrame);
    }
    if ra != Some(RegisterRule::Offset(-8)) || row.register(X86_64::RSP).is_some() {
        return unsupported;
    }
    let rbp = match row.register(X86_64::RBP) {
        None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => SavedRbp::Same,
        Some(RegisterRule::Offset(offset)) => match slot(offset) {
            Some(slot) => SavedRbp::At(slot),
            None => return unsupported,
        },
        _ => return unsupported,
    };
    match (row.cfa(), expression.and_then(plt_threshold)) {
        (CfaRule::RegisterAndOffset { register, offset }, _) => {
            let fits = offset % 8 == 0 && (0..=i64::from(CFA_BYTES_MAX)).contains(offset);
            match *register {
                X86_64::RSP if fits => Meaning::Rule(Rule::Sp {
                    cfa_bytes: u32::try_from(*offset).unwrap(),
                    rbp,
                }),
                X86_64::RBP if fits => Meaning::Rule(Rule::Fp {
                    cfa_bytes: u32::try_from(*offset).unwrap(),
                    rbp,
                }),
                _ => unsupported,
            }
        }
        (_, Some(threshold)) if rbp == SavedRbp::Same => Meaning::PushesAt(threshold),
        _ => unsupported,
    }
}

/// Every row of every FDE. After an instruction that gimli refuses, the rows are unsupported.
pub fn expected_rows(section: Section<'_>) -> Vec<Expected> {
    let frame = gimli::EhFrame::new(section.data, LittleEndian);
    let bases = gimli::BaseAddresses::default().set_eh_frame(section.svma);
    let mut context = gimli::UnwindContext::new();
    let mut entries = frame.entries(&bases);
    let mut rows = Vec::new();
    while let Some(entry) = entries.next().unwrap() {
        let gimli::CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let fde = partial.parse(gimli::EhFrame::cie_from_offset).unwrap();
        let is_signal = fde.is_signal_trampoline();
        let mut push = |addresses: Range<u64>, meaning| {
            let addresses = addresses.start..addresses.end.min(fde.end_address());
            if !addresses.is_empty() {
                rows.push(Expected { addresses, meaning });
            }
        };
        let mut done_to = fde.initial_address();
        if let Ok(mut table) = fde.rows(&frame, &bases, &mut context) {
            while let Ok(Some(row)) = table.next_row() {
                done_to = row.end_address();
                push(
                    row.start_address()..done_to,
                    meaning(&frame, row, is_signal),
                );
            }
        }
        push(done_to..fde.end_address(), Meaning::Rule(Rule::Unsupported));
    }
    rows
}

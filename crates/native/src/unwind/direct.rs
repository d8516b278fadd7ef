//! The rule of one address, read from a library's own search table and unwind section. For
//! handlers, which cannot compile a table, and for callers that need few addresses of a large
//! library. The results equal those of the whole table ([`super::UnwindTable`]). It allocates
//! nothing and takes any bytes: data that were well-formed when [`Direct`] was made may have
//! changed since.
//!
//! Read next: `bytes` (entries and instructions). `cfa_program` has the meaning of instructions.

use std::ops::Range;

use dwell_walker::native::{Rule, SavedRbp};
use dwell_walker::{Fault, Memory};

use super::bytes::{Bytes, Cie, Fde, Place};
use super::cfa_program::{self, Effect, Machine, State};
use super::merge::PADDING_MAX;
use super::{SECTION_LEN_MAX, Section};

/// Bytes of the search table before the first entry: version, three encodings, the address of
/// `.eh_frame`, the number of entries.
const HEAD_BYTES: usize = 12;
const ENTRY_BYTES: u64 = 8;
/// Encodings of that address (any with 4 bytes), of the number, and of the entries: as every linker
/// writes them.
const FOUR_BYTES: [u8; 2] = [0x03, 0x0b];
const COUNT_ENCODING: u8 = 0x03;
const ENTRY_ENCODING: u8 = 0x3b;
/// Maximum number of different CIEs; a linked library has one to ten.
const CIES_MAX: usize = 64;

/// Location of a file's tables.
#[derive(Clone, Copy, Debug)]
pub struct Searched<'a> {
    /// Lowest virtual address of the module; offsets count from here.
    pub base_svma: u64,
    /// `.eh_frame_hdr`.
    pub header: Section<'a>,
    /// `.eh_frame`.
    pub eh_frame: Section<'a>,
    /// Executable address ranges (svma). Empty: take every address.
    pub text: &'a [Range<u64>],
}

/// Finds the rules of a library one by one.
#[derive(Clone, Debug)]
pub struct Direct {
    base_svma: u64,
    header: Place,
    /// Number of entries of the search table.
    count: u64,
    eh_frame: Place,
    text: Box<[Range<u64>]>,
}

/// A function: its FDE, and its executable part, if any.
struct Function {
    fde: Fde,
    /// Relative to the module's lowest address.
    offsets: Range<u32>,
    end_svma: u64,
}

impl Direct {
    /// `None` if the results could differ from the whole table, because a linker does not write
    /// such a search table or section. The library must stay mapped: [`Direct::rule`] reads its
    /// sections again, through the memory that it is given, at their present addresses.
    #[must_use]
    pub fn of(input: &Searched<'_>) -> Option<Direct> {
        Direct::unchecked(input).filter(|direct| direct.is_whole(input))
    }

    /// For callers that need few rules, and use the whole table for the others. `None` if the
    /// search table is not as linkers write it.
    pub(crate) fn unchecked(input: &Searched<'_>) -> Option<Direct> {
        let (header, eh_frame) = (input.header, input.eh_frame);
        let head = header.data.first_chunk::<HEAD_BYTES>()?;
        let [1, pointer, COUNT_ENCODING, ENTRY_ENCODING, .., a, b, c, d] = *head else {
            return None;
        };
        FOUR_BYTES.contains(&(pointer & 0x0f)).then_some(())?;
        let count = u64::from(u32::from_le_bytes([a, b, c, d]));
        let len = count.checked_mul(ENTRY_BYTES)? + HEAD_BYTES as u64;
        let fits = len <= header.data.len() as u64 && eh_frame.data.len() <= SECTION_LEN_MAX;
        fits.then(|| Direct {
            base_svma: input.base_svma,
            header: Place::of(header),
            count,
            eh_frame: Place::of(eh_frame),
            text: input.text.into(),
        })
    }

    /// Number of entries of the search table.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether the search table has all functions in order, and all are as linkers write them.
    fn is_whole(&self, input: &Searched<'_>) -> bool {
        let entries = input.header.data.get(HEAD_BYTES..).unwrap_or(&[]);
        let (entries, _) = entries.as_chunks::<{ ENTRY_BYTES as usize }>();
        let entries = entries.get(..self.count as usize).unwrap_or(&[]);
        let start = |entry: &[u8; 8]| i32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
        entries.iter().map(start).is_sorted_by(|a, b| a < b)
            && self.count_fdes(input.eh_frame.data) == Some(self.count)
    }

    /// Number of FDEs; `None` if one of the section's entries is unusual.
    fn count_fdes(&self, data: &[u8]) -> Option<u64> {
        let word = |at: usize| Some(u32::from_le_bytes(*data.get(at..)?.first_chunk()?));
        let memory = Slice(data);
        let mut cies = [usize::MAX; CIES_MAX];
        let (mut cie_count, mut fde_count, mut at) = (0, 0, 0);
        while at < data.len() {
            let len = word(at)? as usize;
            if len == 0 {
                // The terminator must be at the end.
                return (at + 4 == data.len()).then_some(fde_count);
            }
            let body = at + 4;
            let next = body.checked_add(len).filter(|next| *next <= data.len())?;
            match word(body)? as usize {
                0 => {
                    Cie::parse(&memory, self.eh_frame, at as u64)?;
                    *cies.get_mut(cie_count)? = at;
                    cie_count += 1;
                }
                distance => {
                    let cie = body.checked_sub(distance)?;
                    let known = cies.get(..cie_count)?;
                    known.iter().rev().find(|known| **known == cie)?;
                    (len < cfa_program::FDE_LEN_MAX).then_some(())?;
                    fde_count += 1;
                }
            }
            at = next;
        }
        Some(fde_count)
    }

    /// The rule at `offset` from the module's lowest address, as in the whole table;
    /// [`Rule::Unsupported`] if the data are no longer valid.
    #[must_use]
    pub fn rule<M: Memory>(&self, memory: &M, offset: u32) -> Rule {
        let rule = self.find(memory, offset).unwrap_or(Rule::Unsupported);
        // Packing decides what a rule can express.
        Rule::decode(rule.encode())
    }

    /// The same, read from the bytes of the file that has the sections.
    #[must_use]
    pub fn rule_in(&self, file: &[u8], offset: u32) -> Rule {
        self.rule(&Slice(file), offset)
    }

    fn find<M: Memory>(&self, memory: &M, offset: u32) -> Option<Rule> {
        let svma = self.base_svma.checked_add(u64::from(offset))?;
        let after = self.upto(memory, svma)?;
        // The second but last function may reach into the last one: then it counts.
        let mut covered_to = 0;
        for back in [2, 1] {
            let Some(index) = after.checked_sub(back) else {
                continue;
            };
            let Some(function) = self.function(memory, index) else {
                continue;
            };
            if function.offsets.contains(&offset) {
                return Some(self.within(memory, &function, svma));
            }
            covered_to = function.offsets.end.max(covered_to);
        }
        Some(self.between(memory, covered_to, after).unwrap_or(Rule::Gap))
    }

    /// The rule of the padding between the end of a function and the next one; `None` if that gap
    /// is not padding. As in `merge`, it is the next function's first rule.
    fn between<M: Memory>(&self, memory: &M, from: u32, next: u64) -> Option<Rule> {
        let next = self.function(memory, next).filter(|_| from != 0)?;
        let to = next.offsets.start;
        let len = to.checked_sub(from)?;
        (len <= PADDING_MAX && to.is_multiple_of(16)).then_some(())?;
        Some(self.within(memory, &next, next.fde.start))
    }

    /// Number of functions that begin at or before `svma`.
    fn upto<M: Memory>(&self, memory: &M, svma: u64) -> Option<u64> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            match self.entry(memory, middle)?.0 <= svma {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Some(low)
    }

    /// Addresses of a function and of its FDE.
    fn entry<M: Memory>(&self, memory: &M, index: u64) -> Option<(u64, u64)> {
        let into = index * ENTRY_BYTES + HEAD_BYTES as u64;
        let word = memory.word(self.header.at.wrapping_add(into)).ok()?;
        let from = |distance: u32| {
            let distance = i64::from(distance.cast_signed());
            self.header.svma.wrapping_add_signed(distance)
        };
        Some((from(word as u32), from((word >> 32) as u32)))
    }

    /// The function of an entry; `None` if the entry is invalid, or if none of its addresses is
    /// executable.
    fn function<M: Memory>(&self, memory: &M, index: u64) -> Option<Function> {
        let (_, fde) = self.entry(memory, index).filter(|_| index < self.count)?;
        let into = fde.checked_sub(self.eh_frame.svma)?;
        let fde = Fde::parse(memory, self.eh_frame, into)?;
        let mut text = self.text.iter();
        let end_svma = match text.find(|text| text.contains(&fde.start)) {
            Some(text) => fde.end.min(text.end),
            None if self.text.is_empty() => fde.end,
            None => return None,
        };
        let offset = |svma: u64| u32::try_from(svma.checked_sub(self.base_svma)?).ok();
        let offsets = offset(fde.start)?..offset(end_svma)?;
        (!offsets.is_empty()).then_some(Function {
            fde,
            offsets,
            end_svma,
        })
    }

    /// The rule of an address in a function.
    fn within<M: Memory>(&self, memory: &M, function: &Function, svma: u64) -> Rule {
        let rule = self.run(memory, function, svma);
        rule.unwrap_or(Rule::Unsupported)
    }

    /// Runs a function's program up to `svma`; `None` if it is invalid.
    fn run<M: Memory>(&self, memory: &M, function: &Function, svma: u64) -> Option<Rule> {
        let section = self.eh_frame;
        let cie = Cie::parse(memory, section, function.fde.cie)?;
        let mut bytes = Bytes::new(memory, section, cie.instructions.clone());
        let mut machine = Machine::new(cie.factors, State::EMPTY, 0);
        while !bytes.is_empty() {
            let instruction = bytes.instruction()?;
            let computed = bytes.computed(&instruction);
            let Ok(Effect::Columns) = machine.execute(&instruction, computed) else {
                return None;
            };
        }

        machine.begin(function.fde.start);
        let mut row_start = function.fde.start;
        let mut bytes = Bytes::new(memory, section, function.fde.instructions.clone());
        while !bytes.is_empty() {
            let instruction = bytes.instruction()?;
            let computed = bytes.computed(&instruction);
            match machine.execute(&instruction, computed).ok()? {
                Effect::Columns => {}
                Effect::Row(address) => {
                    let row_end = address.min(function.end_svma);
                    if svma < row_end {
                        return Some(judge(&machine.state, &cie, row_start..row_end, svma));
                    }
                    row_start = row_end;
                }
            }
        }
        let row = row_start..function.end_svma;
        Some(judge(&machine.state, &cie, row, svma))
    }
}

/// The rule of a row at one of its addresses.
fn judge(state: &State, cie: &Cie, row: Range<u64>, svma: u64) -> Rule {
    match state.rule(&cie.factors) {
        Ok(rule) => rule,
        Err(_) if row.end.wrapping_sub(row.start) > cfa_program::PLT_LEN_MAX => Rule::Unsupported,
        // Before the threshold an entry of 16 bytes has pushed nothing, after it one word.
        Err(threshold) => Rule::Sp {
            cfa_bytes: if svma & 15 < u64::from(threshold) {
                8
            } else {
                16
            },
            rbp: SavedRbp::Same,
        },
    }
}

/// Bytes at addresses that start from 0.
struct Slice<'a>(&'a [u8]);

impl Memory for Slice<'_> {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        let mut word = [0; 8];
        self.read(addr, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        let from = addr.wrapping_sub(self.0.as_ptr() as u64) as usize;
        let end = from.checked_add(buf.len());
        let bytes = end.and_then(|end| self.0.get(from..end));
        let bytes = bytes.ok_or(Fault { addr })?;
        buf.copy_from_slice(bytes);
        Ok(())
    }
}

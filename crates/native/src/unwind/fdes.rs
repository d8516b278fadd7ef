//! Walks the entries of `.eh_frame` and `.debug_frame` and runs each FDE's program.
//!
//! Entries are found by their length fields only, so that one damaged CIE affects its own functions
//! and not the whole section. The module must not know what a row is.

use std::ops::Range;

use dwell_walker::native::Rule;
use gimli::{BaseAddresses, CommonInformationEntry, DebugFrame, EhFrame, LittleEndian};
use gimli::{PartialFrameDescriptionEntry, UnwindOffset, UnwindSection};

use super::cfa_program::{self, Budget, Factors, Function, Reader, Registers, State};
use super::merge::{Functions, Source};
use super::{Error, Input, SECTION_LEN_MAX, Section, Stats, usual};

/// Number of parsed CIEs kept; a linked library has one to ten, and neighbours share them.
const CIES_MAX: usize = 16;
/// After this number of unreadable CIE references the section counts as hostile.
const BAD_CIES_MAX: u32 = 4096;

/// The encoding of functions' addresses that linkers use: relative to their place, 4 bytes.
const USUAL_ENCODING: gimli::DwEhPe = gimli::DwEhPe(0x1b);

/// Runs every FDE of the input's sections and adds the rows to `functions`.
pub(super) fn collect(
    input: &Input<'_>,
    functions: &mut Functions,
    stats: &mut Stats,
) -> Result<(), Error> {
    if let Some(section) = input.eh_frame {
        let mut frame = EhFrame::new(section.data, LittleEndian);
        // Only aarch64 has an instruction of its own that is not GNU's.
        frame.set_vendor(gimli::Vendor::AArch64);
        frame.set_address_size(8);
        Walk::new(input, section, &frame, Source::EhFrame)?.run(functions, stats)?;
    }
    if let Some(section) = input.debug_frame {
        let mut frame = DebugFrame::new(section.data, LittleEndian);
        frame.set_vendor(gimli::Vendor::AArch64);
        frame.set_address_size(8);
        Walk::new(input, section, &frame, Source::DebugFrame)?.run(functions, stats)?;
    }
    Ok(())
}

/// A parsed CIE, and the state after its initial instructions if they are valid.
#[derive(Clone)]
struct KnownCie<'a> {
    offset: usize,
    cie: CommonInformationEntry<Reader<'a>>,
    initial: Option<State>,
    /// Its functions have addresses as linkers write them, and may have plain programs.
    is_plain: bool,
}

struct Walk<'i, 'a, S> {
    input: &'i Input<'a>,
    data: &'a [u8],
    svma: u64,
    frame: &'i S,
    source: Source,
    bases: BaseAddresses,
    budget: Budget,
    cies: Vec<KnownCie<'a>>,
    next_victim: usize,
    bad_cies: u32,
}

/// Location of an entry in its section.
struct Entry {
    start: usize,
    next: usize,
    is_cie: bool,
}

impl<'i, 'a, S> Walk<'i, 'a, S>
where
    S: UnwindSection<Reader<'a>>,
    S::Offset: UnwindOffset<usize> + Copy,
{
    fn new(
        input: &'i Input<'a>,
        section: Section<'a>,
        frame: &'i S,
        source: Source,
    ) -> Result<Self, Error> {
        let len_bytes = section.data.len();
        if len_bytes > SECTION_LEN_MAX {
            return Err(Error::TooLong { len_bytes });
        }
        let text = input
            .text
            .first()
            .map_or(input.base_svma, |range| range.start);
        Ok(Walk {
            input,
            data: section.data,
            svma: section.svma,
            frame,
            source,
            bases: BaseAddresses::default()
                .set_eh_frame(section.svma)
                .set_text(text),
            budget: Budget::for_len(len_bytes),
            cies: Vec::new(),
            next_victim: 0,
            bad_cies: 0,
        })
    }

    fn run(&mut self, functions: &mut Functions, stats: &mut Stats) -> Result<(), Error> {
        let mut offset = 0;
        while offset < self.data.len() {
            let Some(entry) = self.entry_at(offset) else {
                stats.is_truncated = true;
                return Ok(());
            };
            offset = entry.next;
            if entry.next == entry.start + 4 {
                // A zero length ends `.eh_frame`; in `.debug_frame` it is a known linker flaw.
                if self.source == Source::DebugFrame {
                    continue;
                }
                return Ok(());
            }
            if !entry.is_cie && !self.fde(entry.start, functions, stats)? {
                stats.fdes_skipped += 1;
            }
        }
        Ok(())
    }

    fn u32_at(&self, offset: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.data.get(offset..)?.first_chunk()?))
    }

    fn u64_at(&self, offset: usize) -> Option<u64> {
        Some(u64::from_le_bytes(*self.data.get(offset..)?.first_chunk()?))
    }

    /// The entry whose length field is at `start`; `None` if it does not fit into the section.
    fn entry_at(&self, start: usize) -> Option<Entry> {
        let short = self.u32_at(start)?;
        if short == 0 {
            return Some(Entry {
                start,
                next: start + 4,
                is_cie: true,
            });
        }
        let is_long = short == u32::MAX;
        let (body, len) = match is_long {
            true => (start + 12, usize::try_from(self.u64_at(start + 4)?).ok()?),
            false => (start + 4, short as usize),
        };
        let next = body
            .checked_add(len)
            .filter(|next| *next <= self.data.len())?;
        let is_cie = match (self.source, is_long) {
            (Source::DebugFrame, false) => self.u32_at(body)? == u32::MAX,
            (Source::DebugFrame, true) => self.u64_at(body)? == u64::MAX,
            _ => self.u32_at(body)? == 0,
        };
        Some(Entry {
            start,
            next,
            is_cie,
        })
    }

    /// Compiles the FDE at `offset`; `false` if it gave no rows.
    fn fde(
        &mut self,
        offset: usize,
        functions: &mut Functions,
        stats: &mut Stats,
    ) -> Result<bool, Error> {
        if self.plain_fde(offset, functions, stats)?.is_some() {
            return Ok(true);
        }
        let bases = self.bases.clone();
        let Ok(partial) = self.frame.partial_fde_from_offset(&bases, offset.into()) else {
            return Ok(false);
        };
        let Some(KnownCie { cie, initial, .. }) = self.cie(&partial)? else {
            return Ok(false);
        };
        let Ok(fde) = partial.parse(|_, _, _| Ok(cie.clone())) else {
            return Ok(false);
        };
        let full = fde.initial_address()..fde.end_address();
        let Some((end, offsets)) = self.executable(&full) else {
            return Ok(false);
        };

        let function = Function {
            start: full.start,
            end,
            initial: initial.unwrap_or(State::EMPTY),
            factors: factors(&cie),
        };
        let base = self.input.base_svma;
        let mut sink = |address: u64, rule: Rule| {
            stats.rows_raw += 1;
            stats.rows_unsupported += u32::from(rule == Rule::Unsupported);
            // Fits: the range was checked to lie within 4 GiB of the base.
            let offset = address.saturating_sub(base);
            functions.push_row(u32::try_from(offset).unwrap_or(u32::MAX), rule);
        };
        if initial.is_some() {
            let instructions = fde.instructions(self.frame, &bases);
            cfa_program::run(
                self.frame,
                &function,
                instructions,
                &mut self.budget,
                &mut sink,
            )?;
        } else {
            sink(full.start, Rule::Unsupported);
        }
        functions.end_function(offsets.start, offsets.end, self.source);
        stats.fdes += 1;
        Ok(true)
    }

    /// The same for the usual FDE: written by a linker, of a known CIE, with a plain program.
    /// `None`, without any effect, for all others.
    fn plain_fde(
        &mut self,
        offset: usize,
        functions: &mut Functions,
        stats: &mut Stats,
    ) -> Result<Option<()>, Error> {
        let Some((full, instructions)) = self.plain_parts(offset) else {
            return Ok(None);
        };
        let Some((_, offsets)) = self.executable(&full) else {
            return Ok(None);
        };
        let mut rows = 0;
        let mut sink = |address, rule| {
            rows += 1;
            functions.push_row(address, rule);
        };
        let Some(steps) = usual::run(instructions, offsets.clone(), &mut sink) else {
            functions.drop_open();
            return Ok(None);
        };
        self.budget.spend(steps)?;
        functions.end_function(offsets.start, offsets.end, self.source);
        stats.rows_raw += rows;
        stats.fdes += 1;
        Ok(Some(()))
    }

    /// The addresses and instructions of an FDE with the usual encodings. After the length and the
    /// distance to the CIE come the function's relative address, its length, and augmentation data,
    /// which is skipped.
    fn plain_parts(&self, offset: usize) -> Option<(Range<u64>, &'a [u8])> {
        let entry = self.entry_at(offset)?;
        let is_usual = self.source == Source::EhFrame && self.u32_at(offset)? != u32::MAX;
        let body = offset + 4;
        let distance = self.u32_at(body)? as usize;
        let cie = body.checked_sub(distance).filter(|_| is_usual)?;
        let known = self.cies.iter().find(|known| known.offset == cie)?;
        let rest = self.data.get(body + 4..entry.next)?;
        let (begin, rest) = rest.split_first_chunk().filter(|_| known.is_plain)?;
        let (len, rest) = rest.split_first_chunk()?;
        let (augmentation, rest) = rest.split_first()?;
        let instructions = rest.get(usize::from(*augmentation)..)?;
        let at = self.svma.checked_add(body as u64 + 4)?;
        let start = at.checked_add_signed(i32::from_le_bytes(*begin).into())?;
        let len = u64::try_from(i32::from_le_bytes(*len)).ok()?;
        let is_short = *augmentation < 0x80;
        is_short.then_some((start..start.checked_add(len)?, instructions))
    }

    /// End of the executable part of an FDE's range, and that part as offsets.
    fn executable(&self, full: &Range<u64>) -> Option<(u64, Range<u32>)> {
        let text = &self.input.text;
        let end = match text.iter().find(|text| text.contains(&full.start)) {
            Some(text) => full.end.min(text.end),
            None if text.is_empty() => full.end,
            None => return None,
        };
        let offset = |address: u64| {
            let offset = address.checked_sub(self.input.base_svma)?;
            u32::try_from(offset).ok()
        };
        let offsets = offset(full.start)?..offset(end)?;
        (!offsets.is_empty()).then_some((end, offsets))
    }

    /// The CIE of an FDE, parsed once if possible; `None` if it is unreadable.
    fn cie(
        &mut self,
        fde: &PartialFrameDescriptionEntry<'_, S, Reader<'a>>,
    ) -> Result<Option<KnownCie<'a>>, Error> {
        let offset: usize = UnwindOffset::into(fde.cie_offset());
        if let Some(known) = self.cies.iter().find(|known| known.offset == offset) {
            return Ok(Some(known.clone()));
        }
        let Ok(cie) = self.frame.cie_from_offset(&self.bases, fde.cie_offset()) else {
            self.bad_cies += 1;
            return if self.bad_cies > BAD_CIES_MAX {
                Err(Error::TooComplex)
            } else {
                Ok(None)
            };
        };
        self.budget.spend(cie.entry_len() as u64)?;
        let instructions = cie.instructions(self.frame, &self.bases);
        let factors = factors(&cie);
        let initial =
            cfa_program::initial_state(self.frame, factors, instructions, &mut self.budget)?;
        let is_plain = initial == Some(State::USUAL)
            && factors == Factors::USUAL
            && cie.fde_address_encoding() == Some(USUAL_ENCODING);
        let known = KnownCie {
            offset,
            cie,
            initial,
            is_plain,
        };
        self.remember(known.clone());
        Ok(Some(known))
    }

    fn remember(&mut self, known: KnownCie<'a>) {
        if self.cies.len() < CIES_MAX {
            self.cies.push(known);
            return;
        }
        self.next_victim = (self.next_victim + 1) % CIES_MAX;
        if let Some(victim) = self.cies.get_mut(self.next_victim) {
            *victim = known;
        }
    }
}

fn factors(cie: &CommonInformationEntry<Reader<'_>>) -> Factors {
    Factors {
        code: cie.code_alignment_factor(),
        data: cie.data_alignment_factor(),
        is_signal: cie.is_signal_trampoline(),
        registers: Registers::of_return_address(cie.return_address_register()),
    }
}

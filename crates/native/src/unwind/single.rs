//! The rule of one address by the search table of `.eh_frame_hdr`: for who asks for few addresses,
//! and will not wait until a whole library is compiled. Must not interpret rules.

use std::ops::Range;

use dwell_walker::native::Rule;
use gimli::{BaseAddresses, LittleEndian};

use super::merge::Functions;
use super::{Section, Stats, fdes};

/// Where the tables of a file are.
#[derive(Clone, Copy, Debug)]
pub struct Searched<'a> {
    /// Lowest virtual address of the module; offsets count from here.
    pub base_svma: u64,
    /// `.eh_frame_hdr`.
    pub header: Section<'a>,
    /// `.eh_frame`.
    pub eh_frame: Section<'a>,
    /// Executable address ranges (svma).
    pub text: &'a [Range<u64>],
}

/// The rule at `offset`. `None` where the search table has no function there, or what is found
/// cannot be read: then the whole table ([`super::UnwindTable`]) may still have a rule.
#[must_use]
pub fn rule_at(input: &Searched<'_>, offset: u32) -> Option<Rule> {
    let svma = input.base_svma.checked_add(u64::from(offset))?;
    let Section { data, svma: at } = input.header;
    let frame_svma = input.eh_frame.svma;
    let bases = BaseAddresses::default()
        .set_eh_frame_hdr(at)
        .set_eh_frame(frame_svma);
    let header = gimli::EhFrameHdr::new(data, LittleEndian);
    let header = header.parse(&bases, 8).ok()?;
    let found = header.table()?.lookup(svma, &bases).ok()?;
    let into = found.direct().ok()?.checked_sub(frame_svma)?;
    let mut functions = Functions::default();
    let mut stats = Stats::default();
    let build = super::Input {
        base_svma: input.base_svma,
        eh_frame: Some(input.eh_frame),
        debug_frame: None,
        text: input.text,
    };
    let into = usize::try_from(into).ok()?;
    fdes::some(&build, &[into], &mut functions, &mut stats).ok()?;
    // Of several functions, the first covers the place: the whole table knows.
    match dwell_walker::native::lookup(&functions.into_rows(), offset) {
        Rule::Gap | Rule::Unsupported => None,
        rule => Some(rule),
    }
}

//! Compiles `.eh_frame` (and `.debug_frame`) to the flat table of [`Row`]s that the walker
//! searches.
//!
//! A DWARF interpreter needs kilobytes of stack and can fail in many ways. A table of 8-byte rows
//! avoids both while a stack is walked. So the interpreter runs once, here, when a module is first
//! seen. `dwell_walker::native` has the meaning of rows and applies them; this module must not
//! interpret them.
//!
//! Read next: `fdes` (sections to FDEs), `cfa_program` (FDE to rows), `usual` (the same for usual
//! FDEs), `merge` (rows to table), `direct` (one rule without a table), `flow` (rules without
//! sections).

mod bytes;
mod cfa_program;
mod direct;
mod fdes;
mod flow;
mod merge;
mod stack_effect;
mod usual;

use std::fmt;
use std::ops::Range;

pub use direct::{Direct, Searched};
pub use dwell_walker::native::{Row, Rule, SavedRbp};
pub use flow::Code;

/// Maximum length of a section: four times the largest `.eh_frame` known (a browser's).
pub const SECTION_LEN_MAX: usize = 128 << 20;

/// The reason why no table could be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A section is longer than [`SECTION_LEN_MAX`].
    TooLong {
        /// Its length.
        len_bytes: usize,
    },
    /// Reading the section would take more steps than any valid section of that length needs.
    TooComplex,
    /// `.eh_frame_hdr` is damaged or lacks the address of `.eh_frame`.
    BadHeader,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TooLong { len_bytes } => {
                write!(
                    f,
                    "unwind section of {len_bytes} bytes is over {SECTION_LEN_MAX}"
                )
            }
            Error::TooComplex => write!(f, "unwind section needs too many steps; it is damaged"),
            Error::BadHeader => write!(f, ".eh_frame_hdr does not say where .eh_frame is"),
        }
    }
}

impl std::error::Error for Error {}

/// A section's bytes and its address in the file's own address space.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// The contents.
    pub data: &'a [u8],
    /// Stated virtual memory address: the one in the ELF headers, without the load bias.
    pub svma: u64,
}

/// Input of a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Input<'a> {
    /// Lowest virtual address of the module; offsets of rows count from here.
    pub base_svma: u64,
    /// `.eh_frame`; it may be followed by other bytes, as in memory where only its start is known.
    pub eh_frame: Option<Section<'a>>,
    /// `.debug_frame`, for functions that `.eh_frame` does not have. If two functions overlap, the
    /// one that starts first counts. If both start together, the one of `.eh_frame` counts.
    pub debug_frame: Option<Section<'a>>,
    /// Executable address ranges (svma). Empty: take every address.
    pub text: &'a [Range<u64>],
}

/// Counters of a build, including all kinds of loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// FDEs that gave rows.
    pub fdes: u32,
    /// FDEs left out: their CIE is unreadable, or they cover no executable address.
    pub fdes_skipped: u32,
    /// Rows before neighbours were merged.
    pub rows_raw: u32,
    /// Rows that no [`Rule`] can express.
    pub rows_unsupported: u32,
    /// A section ended in the middle of an entry; the table has the entries before it.
    pub is_truncated: bool,
}

/// The unwind rules of one module, sorted by address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwindTable {
    rows: Box<[Row]>,
    stats: Stats,
}

impl UnwindTable {
    /// Compiles the sections of `input`.
    ///
    /// Damaged entries become [`Rule::Unsupported`] or are left out, and are counted in
    /// [`UnwindTable::stats`]. A module without any unwind section gives an empty table.
    ///
    /// # Errors
    /// [`Error::TooLong`] and [`Error::TooComplex`], the bounds on memory and time.
    pub fn build(input: &Input<'_>) -> Result<UnwindTable, Error> {
        UnwindTable::build_with(input, &Code::default())
    }

    /// The same, with rules for code of which the sections know nothing.
    ///
    /// # Errors
    /// See [`UnwindTable::build`].
    pub fn build_with(input: &Input<'_>, code: &Code<'_>) -> Result<UnwindTable, Error> {
        let mut stats = Stats::default();
        let mut functions = merge::Functions::default();
        fdes::collect(input, &mut functions, &mut stats)?;
        flow::collect(code, input.base_svma, &mut functions);
        Ok(UnwindTable {
            rows: functions.into_rows(),
            stats,
        })
    }

    /// The rows, sorted by offset, each valid up to the next one's.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the rows.
    #[must_use]
    pub fn into_rows(self) -> Box<[Row]> {
        self.rows
    }

    /// The rule at `offset` from the module's lowest virtual address.
    #[must_use]
    pub fn lookup(&self, offset: u32) -> Rule {
        dwell_walker::native::lookup(&self.rows, offset)
    }

    /// Counters of the build.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.stats
    }
}

/// The part of `.eh_frame` up to its terminator, an entry of length 0. Without one, the whole.
pub(crate) fn up_to_terminator(data: &[u8]) -> &[u8] {
    let mut at = 0usize;
    while let Some(len) = data.get(at..).and_then(|rest| rest.first_chunk()) {
        let len = u32::from_le_bytes(*len) as usize;
        let Some(next) = at.checked_add(4).and_then(|body| body.checked_add(len)) else {
            break;
        };
        at = next;
        if len == 0 {
            return data.get(..at).unwrap_or(data);
        }
    }
    data
}

/// Reads the svma of `.eh_frame` from `.eh_frame_hdr`. Program headers locate that one, so this
/// also works in a mapped image without section headers.
///
/// # Errors
/// [`Error::BadHeader`].
pub fn eh_frame_svma(eh_frame_hdr: Section<'_>) -> Result<u64, Error> {
    let bases = gimli::BaseAddresses::default().set_eh_frame_hdr(eh_frame_hdr.svma);
    let header = gimli::EhFrameHdr::new(eh_frame_hdr.data, gimli::LittleEndian)
        .parse(&bases, 8)
        .map_err(|_| Error::BadHeader)?;
    header.eh_frame_ptr().direct().map_err(|_| Error::BadHeader)
}

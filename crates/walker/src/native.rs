//! Native unwind rules: the packed form that `.eh_frame` is compiled to, and its application.
//!
//! A row covers the addresses from its `offset` to the next row's. The table itself is built by
//! crate `dwell-native`; only the encoding lives here, so that the hot path is a
//! binary search and two loads. A machine applies the rules. Source: DWARF 5 section 6.4.

/// One row of a module's unwind table: 8 bytes, sorted by `offset`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// First address covered, relative to the module's lowest virtual address.
    pub offset: u32,
    /// The packed [`Rule`].
    pub rule: u32,
}

const _: () = assert!(size_of::<Row>() == 8);

/// How the caller's registers follow from the callee's. `CFA` is the caller's sp. The names are
/// those of x86-64; on aarch64, see [`crate::hotspot::machine::aarch64`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// No function here: padding, or after the last function.
    Gap,
    /// `CFA = rsp + cfa_bytes`; return address at `CFA - 8`.
    Sp {
        /// Bytes added to rsp; a multiple of 8.
        cfa_bytes: u32,
        /// Location of the saved rbp.
        rbp: SavedRbp,
    },
    /// `CFA = rbp + cfa_bytes`; return address at `CFA - 8`.
    Fp {
        /// Bytes added to rbp; a multiple of 8.
        cfa_bytes: u32,
        /// Location of the saved rbp.
        rbp: SavedRbp,
    },
    /// aarch64: `CFA = sp + cfa_bytes`; the return address is at `CFA - 8 * slot`, and the frame
    /// pointer unchanged. With slot 0 both are saved, in a frame record at sp that is further below
    /// the CFA than [`SavedRbp`] can say.
    Link {
        /// Bytes added to sp; a multiple of 8.
        cfa_bytes: u32,
        /// Up to 1023.
        slot: u16,
    },
    /// A PLT entry: `CFA = rsp + 8 + ((rip & 15) >= 11 ? 8 : 0)`, as every linker emits it.
    Plt,
    /// A signal trampoline: the interrupted registers lie in the `ucontext` at rsp.
    SignalFrame,
    /// The outermost frame: the return address is undefined.
    End,
    /// A rule this table cannot express (CFA from another register, or an expression).
    Unsupported,
}

/// Location of the caller's rbp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedRbp {
    /// Still in rbp.
    Same,
    /// At `CFA - 8 * n`, `n` in 1..=1023.
    At(u16),
}

const KIND_GAP: u32 = 0;
const KIND_SP: u32 = 1;
const KIND_FP: u32 = 2;
const KIND_PLT: u32 = 3;
const KIND_SIGNAL: u32 = 4;
const KIND_END: u32 = 5;
const KIND_UNSUPPORTED: u32 = 6;
const KIND_LINK: u32 = 7;
/// Largest CFA offset in bytes that the packed form holds (19 bits of words).
pub const CFA_BYTES_MAX: u32 = ((1 << 19) - 1) * 8;
/// Largest slot number of a saved rbp that the packed form holds.
pub const RBP_SLOT_MAX: u16 = (1 << 10) - 1;

impl Rule {
    /// Packs the rule; a rule that does not fit becomes [`Rule::Unsupported`].
    #[must_use]
    pub const fn encode(self) -> u32 {
        let (kind, cfa_bytes, rbp) = match self {
            Rule::Gap => return KIND_GAP,
            Rule::Plt => return KIND_PLT,
            Rule::SignalFrame => return KIND_SIGNAL,
            Rule::End => return KIND_END,
            Rule::Unsupported => return KIND_UNSUPPORTED,
            Rule::Link { cfa_bytes, slot: 0 } => (KIND_LINK, cfa_bytes, SavedRbp::Same),
            Rule::Link { cfa_bytes, slot } => (KIND_LINK, cfa_bytes, SavedRbp::At(slot)),
            Rule::Sp { cfa_bytes, rbp } => (KIND_SP, cfa_bytes, rbp),
            Rule::Fp { cfa_bytes, rbp } => (KIND_FP, cfa_bytes, rbp),
        };
        let slot = match rbp {
            SavedRbp::Same => 0,
            SavedRbp::At(n) if n >= 1 && n <= RBP_SLOT_MAX => n as u32,
            SavedRbp::At(_) => return KIND_UNSUPPORTED,
        };
        if cfa_bytes % 8 != 0 || cfa_bytes > CFA_BYTES_MAX {
            return KIND_UNSUPPORTED;
        }
        kind | ((cfa_bytes / 8) << 3) | (slot << 22)
    }

    /// Unpacks a rule; unknown kinds are [`Rule::Unsupported`].
    #[must_use]
    pub const fn decode(packed: u32) -> Rule {
        let cfa_bytes = ((packed >> 3) & 0x7_ffff) * 8;
        let slot = (packed >> 22) as u16;
        let rbp = if slot == 0 {
            SavedRbp::Same
        } else {
            SavedRbp::At(slot)
        };
        match packed & 7 {
            KIND_GAP => Rule::Gap,
            KIND_SP => Rule::Sp { cfa_bytes, rbp },
            KIND_FP => Rule::Fp { cfa_bytes, rbp },
            KIND_PLT => Rule::Plt,
            KIND_SIGNAL => Rule::SignalFrame,
            KIND_END => Rule::End,
            KIND_LINK => Rule::Link { cfa_bytes, slot },
            _ => Rule::Unsupported,
        }
    }
}

/// The registers that native unwinding needs and restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeRegs {
    /// Exact in the innermost frame and after a signal frame, a return address elsewhere.
    pub pc: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub fp: u64,
}

/// Result of one native step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NativeStep {
    /// The caller; its pc is a return address.
    Caller(NativeRegs),
    /// The frame that a signal interrupted; its pc is exact.
    Interrupted(NativeRegs),
    /// There is no caller.
    End,
    /// The table has no usable rule here.
    NoRule,
}

/// Finds the rule of the last row at or before `offset`.
#[must_use]
pub fn lookup(rows: &[Row], offset: u32) -> Rule {
    let after = rows.partition_point(|row| row.offset <= offset);
    match after.checked_sub(1).and_then(|i| rows.get(i)) {
        Some(row) => Rule::decode(row.rule),
        None => Rule::Gap,
    }
}

/// Index of the rows by page. A search touches the rows of one page, not the whole table, which is
/// a megabyte for libjvm and seldom in the processor's cache. It has an entry for each page of
/// addresses up to the last row's: the number of rows before the page. Without an entry, all rows
/// are searched.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pages<'a>(pub &'a [u32]);

impl Pages<'_> {
    /// Size of a page, as a power of two.
    pub const BITS: u32 = 12;

    /// The rule of the last row at or before `offset`.
    #[must_use]
    pub fn lookup(&self, rows: &[Row], offset: u32) -> Rule {
        let page = (offset >> Self::BITS) as usize;
        let found = self.0.get(page).and_then(|begin| {
            let begin = *begin as usize;
            let end = self.0.get(page + 1).map_or(rows.len(), |end| *end as usize);
            // The last row before the page covers its beginning.
            let first = begin.saturating_sub(1);
            rows.get(first..end)
        });
        lookup(found.unwrap_or(rows), offset)
    }
}

/// The native code of the process: the module that covers a pc, and its unwind rule.
pub trait NativeCode {
    /// The rule for `pc` (exact or already moved back by one for return addresses);
    /// `None` when no module covers it.
    fn rule(&self, pc: u64) -> Option<Rule>;

    /// Whether `pc` is in the JVM library itself, whose frames are reported as VM frames.
    fn is_vm(&self, pc: u64) -> bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_survive_packing() {
        for rbp in [
            SavedRbp::Same,
            SavedRbp::At(1),
            SavedRbp::At(2),
            SavedRbp::At(RBP_SLOT_MAX),
        ] {
            for cfa_bytes in [0, 8, 16, 0x1000, CFA_BYTES_MAX] {
                for rule in [Rule::Sp { cfa_bytes, rbp }, Rule::Fp { cfa_bytes, rbp }] {
                    assert_eq!(Rule::decode(rule.encode()), rule);
                }
            }
        }
        for rule in [
            Rule::Link {
                cfa_bytes: 0x2130,
                slot: 0,
            },
            Rule::Link {
                cfa_bytes: 0x20,
                slot: 4,
            },
            Rule::Gap,
            Rule::Plt,
            Rule::SignalFrame,
            Rule::End,
            Rule::Unsupported,
        ] {
            assert_eq!(Rule::decode(rule.encode()), rule);
        }
    }

    #[test]
    fn rule_that_does_not_fit_is_unsupported() {
        let too_far = Rule::Sp {
            cfa_bytes: CFA_BYTES_MAX + 8,
            rbp: SavedRbp::Same,
        };
        let odd = Rule::Sp {
            cfa_bytes: 12,
            rbp: SavedRbp::Same,
        };
        let slot = Rule::Fp {
            cfa_bytes: 16,
            rbp: SavedRbp::At(RBP_SLOT_MAX + 1),
        };
        for rule in [too_far, odd, slot] {
            assert_eq!(Rule::decode(rule.encode()), Rule::Unsupported);
        }
    }

    #[test]
    fn lookup_takes_the_covering_row() {
        let rule = Rule::Sp {
            cfa_bytes: 8,
            rbp: SavedRbp::Same,
        };
        let rows = [
            Row {
                offset: 16,
                rule: rule.encode(),
            },
            Row {
                offset: 32,
                rule: 0,
            },
        ];
        assert_eq!(lookup(&rows, 15), Rule::Gap);
        assert_eq!(lookup(&rows, 16), rule);
        assert_eq!(lookup(&rows, 31), rule);
        assert_eq!(lookup(&rows, 32), Rule::Gap);
        assert_eq!(lookup(&[], 32), Rule::Gap);
    }
}

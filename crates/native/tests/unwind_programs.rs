//! Properties of the unwind table compiler on made-up `.eh_frame` sections. Generated programs mean
//! the same to it and to gimli, and for any bytes the worst result is an error.

mod oracle;

use dwell_native::unwind::{Direct, Input, Row, Rule, Searched, Section};
use dwell_native::unwind::{UnwindTable, eh_frame_svma};
use dwell_walker::memory::{Fault, Memory};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Address of the made-up section; its addresses are absolute, so this must not matter.
const SECTION_SVMA: u64 = 0x10_0000;
const TEXT_SVMA: u64 = 0x4000;

/// One call frame instruction.
#[derive(Clone, Debug)]
enum Op {
    Advance(u8),
    AdvanceLong(u16),
    DefCfa(u8, u8),
    DefCfaSf(u8, i8),
    DefCfaRegister(u8),
    DefCfaOffset(u16),
    DefCfaOffsetSf(i8),
    CfaExpression(Vec<u8>),
    Offset(u8, u8),
    OffsetSf(u8, i8),
    ValOffset(u8, u8),
    SameValue(u8),
    Undefined(u8),
    Register(u8, u8),
    Expression(u8, Vec<u8>),
    Restore(u8),
    /// Remembers the state, runs the operations, restores it.
    Bracket(Vec<Op>),
    RestoreState,
    ArgsSize(u8),
    Nop,
    /// An undefined opcode.
    Unknown,
}

fn uleb(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn sleb(value: i8, out: &mut Vec<u8>) {
    if (-64..64).contains(&value) {
        out.push(value as u8 & 0x7f);
    } else {
        out.extend([value as u8 | 0x80, (value >> 7) as u8 & 0x7f]);
    }
}

fn encode(ops: &[Op], out: &mut Vec<u8>) {
    for op in ops {
        match op {
            Op::Advance(delta) => out.push(0x40 | delta & 0x3f),
            Op::AdvanceLong(delta) => {
                out.push(0x03);
                out.extend(delta.to_le_bytes());
            }
            Op::DefCfa(register, offset) => {
                out.extend([0x0c, *register]);
                uleb(u64::from(*offset), out);
            }
            Op::DefCfaSf(register, offset) => {
                out.extend([0x12, *register]);
                sleb(*offset, out);
            }
            Op::DefCfaRegister(register) => out.extend([0x0d, *register]),
            Op::DefCfaOffset(offset) => {
                out.push(0x0e);
                uleb(u64::from(*offset), out);
            }
            Op::DefCfaOffsetSf(offset) => {
                out.push(0x13);
                sleb(*offset, out);
            }
            Op::CfaExpression(bytes) => {
                out.extend([0x0f, bytes.len() as u8]);
                out.extend(bytes);
            }
            Op::Offset(register, offset) => {
                out.push(0x80 | register);
                uleb(u64::from(*offset), out);
            }
            Op::OffsetSf(register, offset) => {
                out.extend([0x11, *register]);
                sleb(*offset, out);
            }
            Op::ValOffset(register, offset) => {
                out.extend([0x14, *register]);
                uleb(u64::from(*offset), out);
            }
            Op::SameValue(register) => out.extend([0x08, *register]),
            Op::Undefined(register) => out.extend([0x07, *register]),
            Op::Register(register, other) => out.extend([0x09, *register, *other]),
            Op::Expression(register, bytes) => {
                out.extend([0x10, *register, bytes.len() as u8]);
                out.extend(bytes);
            }
            Op::Restore(register) => out.push(0xc0 | register),
            Op::Bracket(inner) => {
                out.push(0x0a);
                encode(inner, out);
                out.push(0x0b);
            }
            Op::RestoreState => out.push(0x0b),
            Op::ArgsSize(size) => {
                out.push(0x2e);
                uleb(u64::from(*size), out);
            }
            Op::Nop => out.push(0),
            Op::Unknown => out.push(0x3a),
        }
    }
}

/// A function: bytes since the end of the one before, own length, program.
type Function = (u32, u32, Vec<Op>);

fn entry(id: u32, body: &[u8], out: &mut Vec<u8>) {
    let padding = (8 - (8 + body.len()) % 8) % 8;
    out.extend(((4 + body.len() + padding) as u32).to_le_bytes());
    out.extend(id.to_le_bytes());
    out.extend(body);
    out.resize(out.len() + padding, 0);
}

/// An `.eh_frame` with one CIE (version 1, absolute addresses) and the functions' FDEs.
fn section(augmentation: &[u8], initial: &[Op], functions: &[Function]) -> Vec<u8> {
    section_of(augmentation, initial, functions, false)
}

/// The same, or with addresses as linkers write them: relative to their place.
fn section_of(
    augmentation: &[u8],
    initial: &[Op],
    functions: &[Function],
    is_relative: bool,
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut cie = vec![1];
    cie.extend(augmentation);
    // End of string; code factor 1, data factor -8, return address in column 16.
    cie.extend([0, 1, 0x78, 16]);
    if augmentation.starts_with(b"z") {
        // One byte of data, R: absolute pointers, or signed distances of 4 bytes.
        cie.extend([1, if is_relative { 0x1b } else { 0 }]);
    }
    encode(initial, &mut cie);
    entry(0, &cie, &mut out);
    let mut address = TEXT_SVMA;
    for (gap, len, ops) in functions {
        address += u64::from(*gap);
        let mut fde = Vec::new();
        if is_relative {
            let here = SECTION_SVMA + out.len() as u64 + 8;
            fde.extend((address.wrapping_sub(here) as u32).to_le_bytes());
            fde.extend(len.to_le_bytes());
        } else {
            fde.extend(address.to_le_bytes());
            fde.extend(u64::from(*len).to_le_bytes());
        }
        fde.push(0);
        encode(ops, &mut fde);
        let cie_distance = out.len() as u32 + 4;
        entry(cie_distance, &fde, &mut out);
        address += u64::from(*len);
    }
    out.extend([0; 4]);
    out
}

/// A memory in which these bytes replace others.
struct Changed<'a> {
    start: u64,
    bytes: &'a [u8],
}

impl Memory for Changed<'_> {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        let mut word = [0; 8];
        self.read(addr, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        let from = addr.wrapping_sub(self.start) as usize;
        let end = from.checked_add(buf.len());
        let bytes = end.and_then(|end| self.bytes.get(from..end));
        buf.copy_from_slice(bytes.ok_or(Fault { addr })?);
        Ok(())
    }
}

/// Address of the search table of a made-up section.
const HEADER_SVMA: u64 = 0x8_0000;

/// The search table that linkers write for a section with the same functions.
fn header_of(data: &[u8], functions: &[Function]) -> Vec<u8> {
    let mut out = vec![1, 0x1b, 0x03, 0x3b];
    out.extend(((SECTION_SVMA - HEADER_SVMA) as u32).to_le_bytes());
    out.extend((functions.len() as u32).to_le_bytes());
    let word = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
    let mut at = 4 + word(0);
    let mut address = TEXT_SVMA;
    for (gap, len, _) in functions {
        address += u64::from(*gap);
        let fde = SECTION_SVMA + u64::from(at);
        for address in [address, fde] {
            out.extend((address.wrapping_sub(HEADER_SVMA) as u32).to_le_bytes());
        }
        at += 4 + word(at as usize);
        address += u64::from(*len);
    }
    out
}

/// A search table and its section, one after the other.
struct Both {
    bytes: Vec<u8>,
    header_len: usize,
}

impl Both {
    fn new(augmentation: &[u8], initial: &[Op], functions: &[Function]) -> Both {
        let data = section_of(augmentation, initial, functions, true);
        let mut bytes = header_of(&data, functions);
        let header_len = bytes.len();
        bytes.extend(data);
        Both { bytes, header_len }
    }

    fn direct(&self) -> Option<Direct> {
        let (header, eh_frame) = self.bytes.split_at(self.header_len);
        Direct::of(&Searched {
            base_svma: 0,
            header: Section {
                data: header,
                svma: HEADER_SVMA,
            },
            eh_frame: Section {
                data: eh_frame,
                svma: SECTION_SVMA,
            },
            text: &[],
        })
    }
}

fn usual_start() -> Vec<Op> {
    vec![Op::DefCfa(7, 8), Op::Offset(16, 1)]
}

fn build(data: &[u8]) -> UnwindTable {
    let eh_frame = Some(Section {
        data,
        svma: SECTION_SVMA,
    });
    UnwindTable::build(&Input {
        eh_frame,
        ..Input::default()
    })
    .unwrap()
}

/// rbx, rbp, rsp, return address.
fn register() -> impl Strategy<Value = u8> {
    prop_oneof![Just(3u8), Just(6u8), Just(7u8), Just(16u8)]
}

/// gimli does not distinguish an undefined rsp from one without a rule, so rsp is not undefined
/// here.
fn register_but_rsp() -> impl Strategy<Value = u8> {
    prop_oneof![Just(3u8), Just(6u8), Just(16u8)]
}

fn expression() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0x30u8..=0x40).prop_map(|literal| {
            vec![
                0x77, 8, 0x80, 0, 0x3f, 0x1a, literal, 0x2a, 0x33, 0x24, 0x22,
            ]
        }),
        Just(vec![0x77, 0xa0, 0x01, 0x06]),
        vec(any::<u8>(), 0..12),
    ]
}

fn simple_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0u8..20).prop_map(Op::Advance),
        1 => (0u16..90).prop_map(Op::AdvanceLong),
        3 => (register(), 0u8..64).prop_map(|(r, n)| Op::DefCfa(r, n * 4)),
        1 => (register(), -20i8..4).prop_map(|(r, n)| Op::DefCfaSf(r, n)),
        2 => register().prop_map(Op::DefCfaRegister),
        4 => (0u16..200).prop_map(|n| Op::DefCfaOffset(n * 8)),
        1 => (-20i8..4).prop_map(Op::DefCfaOffsetSf),
        1 => expression().prop_map(Op::CfaExpression),
        4 => (register(), 0u8..30).prop_map(|(r, n)| Op::Offset(r, n)),
        1 => (register(), any::<i8>()).prop_map(|(r, n)| Op::OffsetSf(r, n)),
        1 => (register(), 0u8..30).prop_map(|(r, n)| Op::ValOffset(r, n)),
        1 => register().prop_map(Op::SameValue),
        1 => register_but_rsp().prop_map(Op::Undefined),
        1 => (register(), register()).prop_map(|(a, b)| Op::Register(a, b)),
        1 => (register(), expression()).prop_map(|(r, e)| Op::Expression(r, e)),
        3 => register().prop_map(Op::Restore),
        1 => (0u8..8).prop_map(Op::ArgsSize),
        1 => Just(Op::Nop),
    ]
}

/// Brackets nest at most twice: gimli's own stack of remembered states holds four rows.
fn op() -> impl Strategy<Value = Op> {
    let inner = prop_oneof![
        6 => simple_op(),
        1 => vec(simple_op(), 0..6).prop_map(Op::Bracket),
    ];
    prop_oneof![
        40 => simple_op(),
        8 => vec(inner, 0..6).prop_map(Op::Bracket),
        1 => Just(Op::RestoreState),
        1 => Just(Op::Unknown),
    ]
}

fn functions() -> impl Strategy<Value = Vec<Function>> {
    vec((0u32..40, 1u32..200, vec(op(), 0..16)), 1..8)
}

/// Instructions that compilers write, and now and then others.
fn plain_op() -> impl Strategy<Value = Op> {
    let register = prop_oneof![6 => Just(6u8), 4 => Just(3u8), 1 => Just(7u8), 1 => Just(16u8)];
    let base = prop_oneof![8 => Just(7u8), 8 => Just(6u8), 1 => Just(3u8)];
    let plain = prop_oneof![
        8 => (0u8..20).prop_map(Op::Advance),
        1 => (0u16..90).prop_map(Op::AdvanceLong),
        2 => (base.clone(), 0u8..64).prop_map(|(r, n)| Op::DefCfa(r, n / 8 * 8)),
        2 => base.prop_map(Op::DefCfaRegister),
        6 => (0u16..2000).prop_map(|n| Op::DefCfaOffset(n * 8)),
        6 => (register.clone(), 0u8..30).prop_map(|(r, n)| Op::Offset(r, n)),
        3 => register.prop_map(Op::Restore),
        1 => (0u8..8).prop_map(Op::ArgsSize),
        1 => Just(Op::Nop),
    ];
    let inner = vec(plain.clone(), 0..6).prop_map(Op::Bracket);
    prop_oneof![100 => plain, 8 => inner, 1 => simple_op(), 1 => Just(Op::RestoreState)]
}

fn augmentation() -> impl Strategy<Value = &'static [u8]> {
    prop_oneof![3 => Just(&b"zR"[..]), 1 => Just(&b"zRS"[..])]
}

fn assert_well_formed(rows: &[Row]) {
    assert!(
        rows.is_sorted_by(|a, b| a.offset < b.offset),
        "offsets ascend"
    );
    assert!(
        rows.windows(2).all(|pair| pair[0].rule != pair[1].rule),
        "neighbours differ"
    );
    assert!(
        rows.last()
            .is_none_or(|last| last.rule == Rule::Gap.encode()),
        "a gap ends it"
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        rng_seed: RngSeed::Fixed(0x5eed_0001),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn generated_programs_agree_with_gimli(
        augmentation in augmentation(),
        functions in functions(),
    ) {
        let data = section(augmentation, &usual_start(), &functions);
        let table = build(&data);
        assert_well_formed(table.rows());
        let expected = oracle::expected_rows(Section { data: &data, svma: SECTION_SVMA });
        for row in &expected {
            for address in row.addresses.clone() {
                let found = table.lookup(u32::try_from(address).unwrap());
                prop_assert_eq!(found, row.rule_at(address), "at {:#x}", address);
            }
        }
        let covered: u64 = functions.iter().map(|(_, len, _)| u64::from(*len)).sum();
        let lens = expected.iter().map(|row| row.addresses.end - row.addresses.start);
        let expected_len: u64 = lens.sum();
        prop_assert_eq!(expected_len, covered, "the oracle covers every function");
    }

    #[test]
    fn programs_mean_the_same_however_addresses_are_written(
        augmentation in augmentation(),
        plain in vec((0u32..40, 1u32..200, vec(plain_op(), 0..16)), 1..8),
        any in functions(),
    ) {
        for functions in [plain, any] {
            let [absolute, relative] = [false, true].map(|is_relative| {
                build(&section_of(augmentation, &usual_start(), &functions, is_relative))
            });
            prop_assert_eq!(absolute, relative);
        }
    }

    #[test]
    fn rules_looked_up_one_by_one_are_those_of_generated_programs(
        augmentation in augmentation(),
        plain in vec((0u32..40, 1u32..200, vec(plain_op(), 0..16)), 1..8),
        any in functions(),
        initial in vec(simple_op(), 0..3),
    ) {
        for (initial, functions) in [(&vec![], plain), (&vec![], any.clone()), (&initial, any)] {
            let initial: Vec<Op> = usual_start().iter().chain(initial).cloned().collect();
            let both = Both::new(augmentation, &initial, &functions);
            let table = build(&both.bytes[both.header_len..]);
            let direct = both.direct().unwrap();
            let rows = table.rows().iter().map(|row| row.offset);
            let around = rows.flat_map(|at| [at.saturating_sub(1), at, at + 1, at + 17]);
            for offset in around.chain([0, TEXT_SVMA as u32, u32::MAX]) {
                let found = direct.rule_in(&both.bytes, offset);
                prop_assert_eq!(found, table.lookup(offset), "at {:#x}", offset);
            }
        }
    }

    #[test]
    fn bytes_changed_later_cause_no_panic(
        functions in functions(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        noise in vec(any::<u8>(), 1..400),
    ) {
        let both = Both::new(b"zR", &usual_start(), &functions);
        let direct = both.direct().unwrap();
        let mut damaged = both.bytes.clone();
        for (at, value) in damage {
            let at = at.index(damaged.len());
            damaged[at] = value;
        }
        damaged.truncate(cut.index(damaged.len() + 1));
        for bytes in [&damaged, &noise] {
            let start = both.bytes.as_ptr() as u64;
            let memory = Changed { start, bytes };
            for offset in (TEXT_SVMA as u32 - 2..TEXT_SVMA as u32 + 400).chain([0, u32::MAX]) {
                let _ = direct.rule(&memory, offset);
            }
        }
    }

    #[test]
    fn generated_initial_programs_agree_with_gimli(
        initial in vec(simple_op(), 0..6),
        functions in functions(),
    ) {
        // Restoring and advancing within a CIE are invalid. gimli treats a CFA that was never
        // defined as one that counts from rax. The compiler under test refuses all three.
        let means_nothing =
            |op: &Op| matches!(op, Op::Restore(_) | Op::Advance(_) | Op::AdvanceLong(_));
        let kept = initial.into_iter().filter(|op| !means_nothing(op));
        let initial: Vec<Op> = usual_start().into_iter().chain(kept).collect();
        let data = section(b"zR", &initial, &functions);
        let table = build(&data);
        for row in oracle::expected_rows(Section { data: &data, svma: SECTION_SVMA }) {
            for address in row.addresses.clone() {
                let found = table.lookup(u32::try_from(address).unwrap());
                prop_assert_eq!(found, row.rule_at(address), "at {:#x}", address);
            }
        }
    }

    #[test]
    fn damaged_sections_cause_no_panic(
        functions in functions(),
        is_relative in any::<bool>(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut data = section_of(b"zR", &usual_start(), &functions, is_relative);
        for (at, value) in damage {
            let at = at.index(data.len());
            data[at] = value;
        }
        data.truncate(cut.index(data.len() + 1));
        if let Ok(table) = try_build(&data) {
            assert_well_formed(table.rows());
        }
    }

    #[test]
    fn random_bytes_cause_no_panic(data in vec(any::<u8>(), 0..400)) {
        if let Ok(table) = try_build(&data) {
            assert_well_formed(table.rows());
        }
        // Any result is right as long as it does not panic.
        let _ = eh_frame_svma(Section { data: &data, svma: SECTION_SVMA });
    }
}

fn try_build(data: &[u8]) -> Result<UnwindTable, dwell_native::unwind::Error> {
    let section = Some(Section {
        data,
        svma: SECTION_SVMA,
    });
    UnwindTable::build(&Input {
        eh_frame: section,
        debug_frame: section,
        ..Input::default()
    })
}

#[test]
fn unusual_sections_are_not_looked_up_one_by_one() {
    let functions = [(0, 9, vec![]), (7, 32, vec![Op::Advance(1)])];
    let good = || Both::new(b"zR", &usual_start(), &functions);
    assert!(good().direct().is_some());
    // An encoding, the number of entries, two entries out of order.
    for (at, value) in [(0, 2), (1, 0), (2, 0), (3, 0), (8, 1), (8, 3), (13, 0xf0)] {
        let mut both = good();
        both.bytes[at] = value;
        assert!(both.direct().is_none(), "{at}");
    }
    // The version of the CIE, its letters, the encoding of addresses, the CIE of an FDE.
    let cie = good().header_len;
    let fde = cie + 4 + usize::from(good().bytes[cie]);
    for (at, value) in [(8, 3), (9, b'e'), (10, b'B'), (16, 0), (fde + 4 - cie, 1)] {
        let mut both = good();
        both.bytes[cie + at] = value;
        assert!(both.direct().is_none(), "{at}");
    }
    // Bytes after the end, and a section cut short.
    let mut both = good();
    both.bytes.extend([0; 4]);
    assert!(both.direct().is_none());
    for len in cie..good().bytes.len() {
        let mut both = good();
        both.bytes.truncate(len);
        let is_at_end = len + 4 == good().bytes.len();
        assert_eq!(both.direct().is_some(), is_at_end, "{len}");
    }
}

#[test]
fn padding_takes_next_functions_rule_wider_gaps_stay_gaps() {
    let push = |by| vec![Op::Advance(1), Op::DefCfaOffset(by)];
    // 0x4000..0x4009, padding to 0x4010..0x4030, then a gap of 0x50 bytes.
    let functions = [(0, 9, push(16)), (7, 0x20, push(24)), (0x50, 8, push(32))];
    let table = build(&section(b"zR", &usual_start(), &functions));
    let sp = |cfa_bytes| Rule::Sp {
        cfa_bytes,
        rbp: dwell_native::unwind::SavedRbp::Same,
    };
    let expected = [
        (0x4000, sp(8)),
        (0x4001, sp(16)),
        (0x4009, sp(8)),
        (0x4011, sp(24)),
        (0x4030, Rule::Gap),
        (0x4080, sp(8)),
        (0x4081, sp(32)),
        (0x4088, Rule::Gap),
    ];
    let found: Vec<_> = table
        .rows()
        .iter()
        .map(|r| (r.offset, Rule::decode(r.rule)))
        .collect();
    assert_eq!(found, expected);
    assert_eq!(table.lookup(0x3fff), Rule::Gap);
}

#[test]
fn functions_outside_the_text_are_left_out_and_counted() {
    let data = section(
        b"zR",
        &usual_start(),
        &[(0, 16, vec![]), (0x100, 16, vec![])],
    );
    let eh_frame = Some(Section {
        data: &data,
        svma: SECTION_SVMA,
    });
    let build = |base_svma, text: &[std::ops::Range<u64>]| {
        let input = Input {
            base_svma,
            eh_frame,
            text,
            ..Input::default()
        };
        let table = UnwindTable::build(&input).unwrap();
        let offsets: Vec<u32> = table.rows().iter().map(|row| row.offset).collect();
        (offsets, table.stats().fdes, table.stats().fdes_skipped)
    };
    let text = TEXT_SVMA..TEXT_SVMA + 0x20;
    assert_eq!(
        build(0, std::slice::from_ref(&text)),
        (vec![0x4000, 0x4010], 1, 1)
    );
    assert_eq!(build(TEXT_SVMA, &[text]), (vec![0, 16], 1, 1));
    // The text ends within the second function.
    let text = TEXT_SVMA..TEXT_SVMA + 0x118;
    assert_eq!(build(TEXT_SVMA, &[text]).0, vec![0, 0x10, 0x110, 0x118]);
    // Both are below the base: their offsets would be negative.
    assert_eq!(build(TEXT_SVMA + 0x1000, &[]), (vec![], 0, 2));
}

#[test]
fn debug_frame_serves_functions_missing_in_eh_frame() {
    let eh = section(b"zR", &usual_start(), &[(0, 0x10, vec![])]);
    // In .debug_frame a CIE's id is all ones and an FDE's pointer is an offset from the start.
    let mut debug = section(
        b"",
        &[Op::DefCfa(6, 16), Op::Offset(16, 1)],
        &[(0, 0x30, vec![])],
    );
    let cie_len = u32::from_le_bytes(debug[..4].try_into().unwrap()) as usize + 4;
    debug[4..8].fill(0xff);
    debug[cie_len + 4..cie_len + 8].fill(0);
    let input = |eh_frame: Option<&[u8]>| {
        let section = |data| Section {
            data,
            svma: SECTION_SVMA,
        };
        let eh_frame = eh_frame.map(|data| Section {
            data,
            svma: SECTION_SVMA,
        });
        let input = Input {
            eh_frame,
            debug_frame: Some(section(&debug)),
            ..Input::default()
        };
        UnwindTable::build(&input).unwrap()
    };
    let same = dwell_native::unwind::SavedRbp::Same;
    let sp = Rule::Sp {
        cfa_bytes: 8,
        rbp: same,
    };
    let fp = Rule::Fp {
        cfa_bytes: 16,
        rbp: same,
    };
    let alone = input(None);
    assert_eq!((alone.lookup(0x4000), alone.lookup(0x402f)), (fp, fp));
    let both = input(Some(&eh));
    assert_eq!(
        (
            both.lookup(0x400f),
            both.lookup(0x4010),
            both.lookup(0x402f)
        ),
        (sp, fp, fp)
    );
}

#[test]
fn a_long_section_is_refused() {
    let data = vec![0; dwell_native::unwind::SECTION_LEN_MAX + 1];
    let error = try_build(&data).unwrap_err();
    assert_eq!(
        error.to_string(),
        "unwind section of 134217729 bytes is over 134217728"
    );
}

#[test]
fn work_out_of_proportion_is_refused() {
    // Functions alternate between more CIEs than stay parsed, each with a long program.
    let nops = vec![Op::Nop; 4096];
    let mut data = Vec::new();
    let mut cie_offsets = Vec::new();
    for _ in 0..40 {
        cie_offsets.push(data.len() as u32);
        let mut cie = vec![1, b'z', b'R', 0, 1, 0x78, 16, 1, 0];
        encode(&nops, &mut cie);
        entry(0, &cie, &mut data);
    }
    for i in 0..400u64 {
        let mut fde = Vec::new();
        fde.extend((TEXT_SVMA + i * 16).to_le_bytes());
        fde.extend(16u64.to_le_bytes());
        fde.push(0);
        let cie = cie_offsets[i as usize % cie_offsets.len()];
        let distance = data.len() as u32 + 4 - cie;
        entry(distance, &fde, &mut data);
    }
    assert_eq!(
        try_build(&data).unwrap_err(),
        dwell_native::unwind::Error::TooComplex
    );
}

#[test]
fn a_plt_too_long_to_write_out_is_unsupported() {
    let expression = vec![0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22];
    let program = vec![Op::CfaExpression(expression)];
    let table = build(&section(
        b"zR",
        &usual_start(),
        &[(0, 0x100, program.clone())],
    ));
    assert_eq!(table.rows().len(), 2 * 16 + 1, "two rows an entry");
    let long = build(&section(
        b"zR",
        &usual_start(),
        &[(0, 0x7fff_0000, program)],
    ));
    assert_eq!(long.lookup(0x5000), Rule::Unsupported);
    assert_eq!(long.rows().len(), 2);
}

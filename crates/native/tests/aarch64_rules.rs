//! Unwind rules of aarch64, compiled on any machine from made-up `.eh_frame` sections: programs as
//! GCC writes them, with and without signed return addresses.
#![allow(missing_docs)]

use dwell_native::unwind::{Input, Rule, SavedRbp, Section, UnwindTable};

const TEXT: u64 = 0x4000;
const LEN: u64 = 0x40;

fn entry(id: u32, body: &[u8], out: &mut Vec<u8>) {
    let len = (4 + body.len()).next_multiple_of(8);
    out.extend((len as u32).to_le_bytes());
    out.extend(id.to_le_bytes());
    out.extend(body);
    out.resize(out.len() + len - 4 - body.len(), 0);
}

/// The rules at some instructions of one function with this program. The CIE has code factor 4,
/// data factor -8, the given column of the return address, and CFA = sp (31).
fn rules(augmentation: &[u8], column: u8, program: &[u8], at: &[u32]) -> Vec<Rule> {
    let mut section = Vec::new();
    let cie = [
        &[1][..],
        augmentation,
        &[0, 4, 0x78, column, 1, 0, 0x0c, 31, 0],
    ]
    .concat();
    entry(0, &cie, &mut section);
    let mut fde = [TEXT.to_le_bytes(), LEN.to_le_bytes()].concat();
    fde.push(0);
    fde.extend(program);
    let distance = section.len() as u32 + 4;
    entry(distance, &fde, &mut section);
    section.extend([0; 4]);
    let table = UnwindTable::build(&Input {
        base_svma: TEXT,
        eh_frame: Some(Section {
            data: &section,
            svma: 0x1000,
        }),
        ..Input::default()
    });
    let table = table.unwrap();
    at.iter().map(|at| table.lookup(*at)).collect()
}

const LEAF: Rule = Rule::Sp {
    cfa_bytes: 0,
    rbp: SavedRbp::Same,
};

/// `paciasp; stp x29, x30, [sp, -32]!; mov x29, sp; ...; ldp x29, x30, [sp], 32; autiasp; ret`.
const FRAMED: [u8; 23] = [
    0x41, 0x2d, // after 4 bytes: the return address is signed
    0x41, 0x0e, 32, 0x9d, 4, 0x9e,
    3, // after 8: CFA = sp + 32, x29 at CFA - 32, x30 at CFA - 24
    0x41, 0x0d, 29, // after 12: CFA = x29 + 32
    0x48, 0xde, 0xdd, 0x0c, 31, 0, // after 44: all restored
    0x41, 0x2d, // after 48: not signed
    0, 0, 0,
];

#[test]
fn frame_with_signed_return_address_has_rules() {
    let at = [0, 4, 7, 8, 12, 40, 43, 44, 48, 60];
    let saved = SavedRbp::At(4);
    let cfa_bytes = 32;
    let by_sp = Rule::Sp {
        cfa_bytes,
        rbp: saved,
    };
    let by_fp = Rule::Fp {
        cfa_bytes,
        rbp: saved,
    };
    let expected = [
        LEAF, LEAF, LEAF, by_sp, by_fp, by_fp, by_fp, LEAF, LEAF, LEAF,
    ];
    assert_eq!(rules(b"zR", 30, &FRAMED, &at), expected);
}

#[test]
fn return_address_without_saved_frame_pointer_has_a_slot() {
    // CFA = sp + 16; x19 at CFA - 16, x30 at CFA - 8.
    let program = [0x41, 0x0e, 16, 0x93, 2, 0x9e, 1];
    let link = Rule::Link {
        cfa_bytes: 16,
        slot: 1,
    };
    assert_eq!(rules(b"zR", 30, &program, &[0, 4]), [LEAF, link]);
}

#[test]
fn return_address_far_from_the_frame_pointer_is_unsupported() {
    // x29 at CFA - 16, x30 below it.
    let program = [0x41, 0x0e, 32, 0x9d, 2, 0x9e, 3];
    assert_eq!(rules(b"zR", 30, &program, &[4]), [Rule::Unsupported]);
    // CFA = x19.
    assert_eq!(
        rules(b"zR", 30, &[0x41, 0x0d, 19], &[4]),
        [Rule::Unsupported]
    );
}

#[test]
fn frame_of_8_kib_has_its_record_at_its_end() {
    // CFA = sp + 8496; x29 at CFA - 8496, x30 above it.
    let program = [0x41, 0x0e, 0xb0, 0x42, 0x9d, 0xa6, 0x08, 0x9e, 0xa5, 0x08];
    let (cfa_bytes, slot) = (8496, 0);
    let expected = Rule::Link { cfa_bytes, slot };
    assert_eq!(rules(b"zR", 30, &program, &[4]), [expected]);
    // The record is at CFA - 8496, but sp is lower.
    let program = [0x41, 0x0e, 0xc0, 0x42, 0x9d, 0xa6, 0x08, 0x9e, 0xa5, 0x08];
    assert_eq!(rules(b"zR", 30, &program, &[4]), [Rule::Unsupported]);
}

#[test]
fn roots_and_trampolines_are_recognised() {
    assert_eq!(rules(b"zR", 30, &[0x07, 30], &[0]), [Rule::End]);
    assert_eq!(rules(b"zRS", 30, &[], &[0, 60]), [Rule::SignalFrame; 2]);
}

/// The instruction for signatures is unknown on x86-64, and registers have other numbers.
#[test]
fn column_of_the_return_address_names_the_processor() {
    let found = rules(b"zR", 16, &FRAMED, &[0, 4, 8]);
    assert_eq!(found, [Rule::Unsupported; 3]);
}

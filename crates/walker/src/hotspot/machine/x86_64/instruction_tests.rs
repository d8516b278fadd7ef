//! Tests of the decoding of instructions.

extern crate std;
use super::*;

fn of(code: &[u8]) -> (u64, Operation) {
    let mut padded = [0u8; 24];
    padded[..code.len()].copy_from_slice(code);
    let found = decode(&padded).unwrap();
    (found.length, found.operation)
}

fn at(base: u8, displacement: i64) -> Operand {
    Operand::Memory(Address {
        base: Some(base),
        is_indexed: false,
        displacement,
    })
}

/// As in stubs of 17 and 25.
#[test]
fn instructions_that_move_rsp_are_decoded() {
    use Operand::{Number, Register};
    let cases: &[(&[u8], Operation)] = &[
        (&[0x55], Operation::Push(Register(RBP))),
        (&[0x41, 0x57], Operation::Push(Register(15))),
        (&[0x6a, 0xff], Operation::Push(Number(-1))),
        (&[0x68, 0xf7, 0xff, 0xff, 0xff], Operation::Push(Number(-9))),
        (
            &[0x48, 0xff, 0x74, 0x24, 0x18],
            Operation::Push(at(RSP, 24)),
        ),
        (&[0x9c], Operation::Push(Operand::Unknown)),
        (&[0x41, 0x5d], Operation::Pop(Register(13))),
        (&[0x8f, 0x04, 0x24], Operation::Pop(at(RSP, 0))),
        (&[0x9d], Operation::Pop(Operand::Unknown)),
        (
            &[0x48, 0x8b, 0xec],
            Operation::Move(Register(RBP), Register(RSP)),
        ),
        (
            &[0x48, 0x89, 0xe5],
            Operation::Move(Register(RBP), Register(RSP)),
        ),
        (
            &[0x48, 0x8b, 0x24, 0x24],
            Operation::Move(Register(RSP), at(RSP, 0)),
        ),
        (
            &[0x48, 0x89, 0x84, 0x24, 0x00, 0x06, 0, 0],
            Operation::Move(at(RSP, 0x600), Register(0)),
        ),
        (
            &[0x49, 0xc7, 0x87, 0x90, 0x02, 0, 0, 1, 0, 0, 0],
            Operation::Move(at(15, 0x290), Number(1)),
        ),
        (
            &[0x48, 0x83, 0xe4, 0xf0],
            Operation::Change(Arithmetic::And, RSP, Number(-16)),
        ),
        (
            &[0x48, 0x81, 0xec, 0x40, 0x06, 0, 0],
            Operation::Change(Arithmetic::Subtract, RSP, Number(0x640)),
        ),
        (
            &[0x48, 0x03, 0x27],
            Operation::Change(Arithmetic::Add, RSP, at(7, 0)),
        ),
        (
            &[0x48, 0x8d, 0x65, 0xe0],
            Operation::Load(
                RSP,
                Address {
                    base: Some(RBP),
                    is_indexed: false,
                    displacement: -32,
                },
            ),
        ),
    ];
    check(cases);
}

#[test]
fn jumps_calls_and_returns_are_decoded() {
    use Operand::Register;
    check(&[
        (&[0xc9], Operation::Leave),
        (&[0xc3], Operation::Return(0)),
        (&[0xc2, 8, 0], Operation::Return(8)),
        (&[0xeb, 0xfe], Operation::Jump(-2)),
        (&[0xe9, 0, 1, 0, 0], Operation::Jump(256)),
        (&[0xff, 0xe1], Operation::JumpTo(Register(1))),
        (&[0xff, 0x63, 0x48], Operation::JumpTo(at(3, 0x48))),
        (&[0x0f, 0x84, 0x12, 0, 0, 0], Operation::Branch(18)),
        (&[0x75, 0xf5], Operation::Branch(-11)),
        (&[0xe8, 1, 2, 3, 4], Operation::Call),
        (&[0x41, 0xff, 0xd2], Operation::Call),
        (&[0xf4], Operation::Trap),
        (&[0x0f, 0x0b], Operation::Trap),
    ]);
}

fn check(cases: &[(&[u8], Operation)]) {
    for (code, operation) in cases {
        assert_eq!(of(code), (code.len() as u64, *operation), "{code:x?}");
    }
}

/// A vector register has the number of a general one, and a byte register that of a whole one.
#[test]
fn only_written_registers_are_spoiled() {
    let cases: &[(&[u8], u16)] = &[
        // xor eax, eax; movzx ebp, byte [rsi]; cmove rsp, rax; imul; bswap.
        (&[0x33, 0xc0], 1),
        (&[0x0f, 0xb6, 0x2e], 1 << RBP),
        (&[0x48, 0x0f, 0x44, 0xe0], 1 << RSP),
        (&[0x48, 0x6b, 0xed, 0x38], 1 << RBP),
        (&[0x0f, 0xcd], 1 << RBP),
        // mov bpl, 1; mov ch, 1; or ah, 1.
        (&[0x40 | R, 0xb5, 1], 1 << RBP),
        (&[0xb5, 1], 1 << 1),
        (&[0x80, 0xcc, 1], 1),
        // mul changes two registers.
        (&[0x48, 0xf7, 0xe3], 0b101),
        // movd ebp, xmm0; vpextrd edi, xmm7, 2; rorx ebp, eax, 6; andn; mulx.
        (&[0x66, 0x0f, 0x7e, 0xc5], 1 << RBP),
        (&[0xc4, 0xe3, 0x79, 0x16, 0xff, 2], 1 << 7),
        (&[0xc4, 0xe3, 0x7b, 0xf0, 0xe8, 6], 1 << RBP),
        (&[0xc4, 0xe2, 0x78, 0xf2, 0xe8], 1 << RBP),
        (&[0xc4, 0xe2, 0xe3, 0xf6, 0xc8], 1 << 1 | 1 << 3),
    ];
    for (code, registers) in cases {
        let expected = (code.len() as u64, Operation::Spoil(*registers));
        assert_eq!(of(code), expected, "{code:x?}");
    }
    let nothing: &[&[u8]] = &[
        // cmp; test; movq xmm4, xmm5; vmovdqu ymm4, [rsi]; vmovdqu64 zmm20, [rsi + 64];
        // vpaddq xmm4; vzeroupper; vpcmp k4; ret's neighbours.
        &[0x48, 0x3b, 0xe5],
        &[0x48, 0x85, 0xe4],
        &[0xf3, 0x0f, 0x7e, 0xe5],
        &[0xc5, 0xfe, 0x6f, 0x26],
        &[0x62, 0xe1, 0xfe, 0x48, 0x6f, 0x66, 0x01],
        &[0xc5, 0xd9, 0xd4, 0xe5],
        &[0xc5, 0xf8, 0x77],
        &[0x62, 0xf3, 0x7d, 0x48, 0x3f, 0xe1, 0],
        &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
    ];
    for code in nothing {
        assert!(
            matches!(of(code).1, Operation::Nothing | Operation::Spoil(0)),
            "{code:x?}"
        );
        assert_eq!(of(code).0, code.len() as u64, "{code:x?}");
    }
}

#[test]
fn addresses_have_all_their_forms() {
    let address = |code: &[u8]| match of(code) {
        (length, Operation::Load(1, address)) if length == code.len() as u64 => address,
        other => panic!("{code:x?}: {other:x?}"),
    };
    let expected = |base, is_indexed, displacement| Address {
        base,
        is_indexed,
        displacement,
    };
    let lea = |rest: &[u8]| {
        let mut code = std::vec![0x48, 0x8d];
        code.extend(rest);
        address(&code)
    };
    assert_eq!(lea(&[0x0b]), expected(Some(3), false, 0));
    assert_eq!(lea(&[0x4b, 0x80]), expected(Some(3), false, -128));
    assert_eq!(lea(&[0x8b, 1, 2, 0, 0]), expected(Some(3), false, 0x201));
    assert_eq!(lea(&[0x0d, 4, 0, 0, 0]), expected(None, true, 4));
    assert_eq!(lea(&[0x0c, 0x24]), expected(Some(RSP), false, 0));
    assert_eq!(lea(&[0x0c, 0x04]), expected(Some(RSP), true, 0));
    assert_eq!(lea(&[0x0c, 0x25, 4, 0, 0, 0]), expected(None, false, 4));
    assert_eq!(lea(&[0x4c, 0x24, 8]), expected(Some(RSP), false, 8));
    let extended = address(&[0x49, 0x8d, 0x4c, 0x24, 8]);
    assert_eq!(extended, expected(Some(12), false, 8));
    let r12 = address(&[0x4a, 0x8d, 0x0c, 0x24]);
    assert_eq!(r12, expected(Some(RSP), true, 0), "r12 is added");
}

#[test]
fn incomplete_or_unknown_instruction_gives_none() {
    let whole = [0x48, 0x81, 0xec, 0x40, 0x06, 0, 0];
    for len in 0..whole.len() {
        assert_eq!(decode(&whole[..len]), None, "{len}");
    }
    assert!(decode(&whole).is_some());
    for code in [[0x06; 16], [0x66; 16], [0xce; 16]] {
        assert_eq!(decode(&code), None, "{code:x?}");
    }
    let mut prefixed = [0x66u8; 16];
    prefixed[14] = 0x90;
    assert!(decode(&prefixed).is_some());
    prefixed[14..].copy_from_slice(&[0x33, 0xc0]);
    assert_eq!(decode(&prefixed), None, "longer than any");
}

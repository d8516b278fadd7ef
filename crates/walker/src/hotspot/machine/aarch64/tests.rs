//! Tests of native rules, calls and registers.

use super::*;
use crate::hotspot::test_memory::Bytes;

const STACK: u64 = 0x7f00_0000_0000;
const CALLER: u64 = 0xca10;
const SIGNED: u64 = 0x0034 << 48 | CALLER;

fn caller(
    words: &[u64],
    rule: Rule,
    exact: Option<&Regs>,
) -> Result<Option<(u64, u64, u64)>, Fault> {
    let mem = Bytes::of_words(&[(STACK, words)]);
    let at = NativeRegs {
        pc: 0x100,
        sp: STACK,
        fp: STACK + 16,
    };
    Ok(match Aarch64.unwind(&mem, rule, at, exact)? {
        NativeStep::Caller(caller) => Some((caller.pc, caller.sp - STACK, caller.fp)),
        _ => None,
    })
}

#[test]
fn rules_strip_signatures_from_return_addresses() {
    let words = [1, 2, 7, SIGNED, 5, 6, 8, 9];
    let saved = |cfa_bytes, slot| Rule::Sp {
        cfa_bytes,
        rbp: SavedRbp::At(slot),
    };
    assert_eq!(
        caller(&words, saved(32, 2), None),
        Ok(Some((CALLER, 32, 7)))
    );
    // A frame record that is not at the end of its frame.
    assert_eq!(
        caller(&words, saved(64, 6), None),
        Ok(Some((CALLER, 64, 7)))
    );
    let by_fp = Rule::Fp {
        cfa_bytes: 16,
        rbp: SavedRbp::At(2),
    };
    assert_eq!(caller(&words, by_fp, None), Ok(Some((CALLER, 32, 7))));
    assert!(caller(&words, saved(256, 2), None).is_err());
    assert_eq!(caller(&[0; 4], saved(32, 2), None), Ok(None), "the root");
}

/// A record more than 1023 words below the CFA.
#[test]
fn large_frame_has_its_record_at_sp() {
    let (cfa_bytes, slot) = (8496, 0);
    let record = Rule::Link { cfa_bytes, slot };
    let found = caller(&[7, SIGNED], record, None);
    assert_eq!(found, Ok(Some((CALLER, 8496, 7))));
    assert_eq!(caller(&[7, 0], record, None), Ok(None), "the root");
}

#[test]
fn frame_without_a_record_keeps_the_frame_pointer() {
    let link = Rule::Link {
        cfa_bytes: 32,
        slot: 2,
    };
    let found = caller(&[1, 2, SIGNED, 4], link, None);
    assert_eq!(found, Ok(Some((CALLER, 32, STACK + 16))));
    assert_eq!(caller(&[1, 2, 0, 4], link, None), Ok(None), "the root");
}

#[test]
fn link_register_returns_from_interrupted_leaves_only() {
    let leaf = Rule::Sp {
        cfa_bytes: 0,
        rbp: SavedRbp::Same,
    };
    let regs = Regs {
        lr: SIGNED,
        ..Regs::default()
    };
    let expected = Ok(Some((CALLER, 0, STACK + 16)));
    assert_eq!(caller(&[0; 4], leaf, Some(&regs)), expected);
    assert_eq!(caller(&[0; 4], Rule::Plt, Some(&regs)), expected);
    assert_eq!(caller(&[0; 4], leaf, None), Ok(None));
}

/// The kernel's signal frame: 128 bytes, then flags, link, stack and mask, then the registers.
#[test]
fn signal_frame_gives_all_registers() {
    let mut words = [0u64; 80];
    for (i, word) in words.iter_mut().enumerate() {
        *word = i as u64;
    }
    let mem = Bytes::of_words(&[(STACK, &words)]);
    let at = NativeRegs {
        pc: 0x100,
        sp: STACK,
        fp: 0,
    };
    let x0 = (128 + 176 + 8) / 8;
    let interrupted = NativeRegs {
        pc: x0 + 32,
        sp: x0 + 31,
        fp: x0 + 29,
    };
    let step = Aarch64.unwind(&mem, Rule::SignalFrame, at, None);
    assert_eq!(step, Ok(NativeStep::Interrupted(interrupted)));
    let regs = Aarch64.interrupted(&mem, STACK, interrupted);
    assert_eq!(
        (regs.pc, regs.lr, regs.x12, regs.x22),
        (x0 + 32, x0 + 30, x0 + 12, x0 + 22)
    );
}

#[test]
fn states_of_compiled_frames_give_callers() {
    let mem = Bytes::of_words(&[(STACK, &[1, 2, 7, SIGNED, 5, 6])]);
    let at = NativeRegs {
        pc: 0x100,
        sp: STACK,
        fp: 8,
    };
    let regs = Regs {
        lr: SIGNED + 16,
        ..Regs::default()
    };
    let of = |sp, state, exact| {
        let at = NativeRegs { sp, ..at };
        let found = Aarch64.compiled_caller(&mem, at, exact, 32, state);
        found.map(|it| (it.pc, it.sp - STACK, it.fp))
    };
    let exact = Some(&regs);
    assert_eq!(of(STACK, FrameState::Complete, None), Ok((CALLER, 32, 7)));
    assert_eq!(
        of(STACK + 16, FrameState::Pushed, exact),
        Ok((CALLER, 32, 7))
    );
    assert_eq!(
        of(STACK, FrameState::Unsaved, exact),
        Ok((CALLER + 16, 32, 8))
    );
    assert_eq!(of(STACK, FrameState::None, exact), Ok((CALLER + 16, 0, 8)));
    assert!(of(STACK, FrameState::None, None).is_err());
}

#[test]
fn function_with_a_constant_result_is_recognised() {
    let of = |codes: &[u32]| {
        let mut bytes = [0u8; 16];
        for (i, code) in codes.iter().enumerate() {
            bytes[4 * i..4 * i + 4].copy_from_slice(&code.to_le_bytes());
        }
        Aarch64.constant(&Bytes::at(0x1000, &bytes), 0x1000)
    };
    assert_eq!(of(&[0x5280_0240, 0xd65f_03c0]), Ok(Some(18)));
    assert_eq!(of(&[0xd503_245f, 0x5280_0000, 0xd65f_03c0]), Ok(Some(0)));
    assert_eq!(of(&[0x5280_0241, 0xd65f_03c0]), Ok(None), "w1");
    assert_eq!(of(&[0x5280_0240, 0xd503_201f]), Ok(None));
}

//! Instructions of aarch64, as far as frames and calls depend on them. Source: Arm Architecture
//! Reference Manual for A-profile, section C4.1 (index by encoding).

use crate::memory::{Fault, Memory};

/// Bytes of an instruction.
pub const BYTES: u64 = 4;

/// Number of the frame pointer.
pub const FP: u32 = 29;
/// Number of the link register.
pub const LR: u32 = 30;
/// Number of sp, where an instruction can use it.
pub const SP: u32 = 31;

/// The instruction at `pc`.
///
/// # Errors
/// [`Fault`] if it cannot be read.
pub fn at<M: Memory>(mem: &M, pc: u64) -> Result<u32, Fault> {
    mem.u32(pc)
}

/// The register in bits 0 to 4, which most instructions write or load.
pub const fn rd(code: u32) -> u32 {
    code & 31
}

/// The base register, in bits 5 to 9.
pub const fn rn(code: u32) -> u32 {
    code >> 5 & 31
}

/// `bl`; `blr`, also with a check of the address's signature.
pub const fn is_call(code: u32) -> bool {
    code & 0xfc00_0000 == 0x9400_0000
        || code & 0xffff_fc1f == 0xd63f_0000
        || code & 0xfeff_f800 == 0xd63f_0800
}

/// `ret`, `retaa`, `retab`.
pub const fn is_return(code: u32) -> bool {
    matches!(code, 0xd65f_03c0 | 0xd65f_0bff | 0xd65f_0fff)
}

/// `b`: distance in bytes.
pub const fn jump(code: u32) -> Option<i64> {
    if code & 0xfc00_0000 != 0x1400_0000 {
        return None;
    }
    Some((((code << 6) as i32) >> 4) as i64)
}

/// `b.cond`, `cbz`, `cbnz`, `tbz`, `tbnz`.
pub const fn is_branch(code: u32) -> bool {
    code & 0xff00_0000 == 0x5400_0000 || code & 0x7c00_0000 == 0x3400_0000
}

/// A branch of [`is_branch`] over one instruction.
pub const fn skips_one(code: u32) -> bool {
    let is_test = code & 0x7e00_0000 == 0x3600_0000;
    let distance = code >> 5 & if is_test { 0x3fff } else { 0x7_ffff };
    is_branch(code) && distance == 2
}

/// The number of `add` and `sub`: 12 bits, perhaps shifted by 12.
const fn immediate(code: u32) -> i64 {
    let shift = (code >> 22 & 1) * 12;
    ((code >> 10 & 0xfff) << shift) as i64
}

/// `add` or `sub` of a number, with a result in sp: base register, and the number.
pub const fn sp_from(code: u32) -> Option<(u32, i64)> {
    let number = immediate(code);
    match code & 0xff80_001f {
        0x9100_001f => Some((rn(code), number)),
        0xd100_001f => Some((rn(code), -number)),
        _ => None,
    }
}

/// `add x29, sp, NUMBER`, which is `mov x29, sp` for 0.
pub const fn fp_from_sp(code: u32) -> Option<i64> {
    if code & 0xff80_03ff == 0x9100_03fd {
        return Some(immediate(code));
    }
    None
}

/// `mov REGISTER, sp`: the register.
pub const fn copies_sp(code: u32) -> Option<u32> {
    if code & 0xffff_ffe0 == 0x9100_03e0 {
        return Some(rd(code));
    }
    None
}

/// `br REGISTER`.
pub const fn is_jump_to_register(code: u32) -> bool {
    code & 0xffff_fc1f == 0xd61f_0000
}

/// `ld1` or `st1` of vectors `[sp], NUMBER`: the number, which is the size of all.
pub const fn moves_sp_by_vectors(code: u32) -> Option<i64> {
    if code & 0xbfbf_03e0 != 0x0c9f_03e0 {
        return None;
    }
    let vectors = match code >> 12 & 15 {
        0b0111 => 1,
        0b1010 => 2,
        0b0110 => 3,
        0b0010 => 4,
        _ => return None,
    };
    Some(vectors * (8 << (code >> 30 & 1)))
}

/// `sub sp, sp, NUMBER`.
pub const fn lowers_sp(code: u32) -> bool {
    code & 0xff80_03ff == 0xd100_03ff
}

/// `sub sp, sp, REGISTER`.
pub const fn lowers_sp_by_register(code: u32) -> bool {
    code & 0xffe0_ffff == 0xcb20_63ff
}

/// `add sp, sp, NUMBER` or `REGISTER`.
pub const fn raises_sp(code: u32) -> bool {
    code & 0xff80_03ff == 0x9100_03ff || code & 0xffe0_ffff == 0x8b20_63ff
}

/// `stp x29, x30, [sp, NUMBER]`.
pub const fn stores_frame(code: u32) -> bool {
    code & 0xffc0_7fff == 0xa900_7bfd
}

/// `stp x29, x30, [sp, NUMBER]!`.
pub const fn pushes_frame(code: u32) -> bool {
    code & 0xffc0_7fff == 0xa980_7bfd
}

/// `ldp x29, x30, [sp, NUMBER]`.
pub const fn loads_frame(code: u32) -> bool {
    code & 0xffc0_7fff == 0xa940_7bfd
}

/// `ldp x29, x30, [sp], NUMBER`.
pub const fn pops_frame(code: u32) -> bool {
    code & 0xffc0_7fff == 0xa8c0_7bfd
}

/// The last part of a frame's removal: `ldp x29, x30, [sp], 16`.
pub const POP_FRAME: u32 = 0xa8c1_7bfd;

/// `and sp, REGISTER, -16`: the register.
pub const fn aligns_sp_from(code: u32) -> Option<u32> {
    if code & 0xffff_fc1f == 0x927c_ec1f {
        return Some(rn(code));
    }
    None
}

/// Parts of the poll at a return: `ldr xN, [x28, NUMBER]`, `cmp sp, xN`, `b.cond`, and, until 16,
/// `ldr wzr, [xN]`.
pub const fn is_poll_part(code: u32) -> bool {
    code & 0xffc0_03e0 == 0xf940_0380
        || code & 0xffe0_ffff == 0xeb20_63ff
        || code & 0xff00_0010 == 0x5400_0000
        || code & 0xffff_fc1f == 0xb940_001f
}

/// `paciasp`, `autiasp`, and those with the other key.
pub const fn signs_or_checks(code: u32) -> bool {
    matches!(code, 0xd503_233f | 0xd503_23bf | 0xd503_237f | 0xd503_23ff)
}

/// `ldr` or `str xN, [x28, NUMBER]`: whether it loads, the register, the number.
pub const fn thread_field(code: u32) -> Option<(bool, u32, u64)> {
    if code & 0xff80_03e0 != 0xf900_0380 {
        return None;
    }
    let number = (code >> 10 & 0xfff) as u64 * 8;
    Some((code >> 22 & 1 != 0, rd(code), number))
}

/// `mov sp, REGISTER`: the register.
pub const fn moves_to_sp(code: u32) -> Option<u32> {
    match sp_from(code) {
        Some((register, 0)) => Some(register),
        _ => None,
    }
}

/// `movz` and `movk` of 64 bits: the register.
pub const fn moves_number(code: u32) -> Option<u32> {
    if code & 0xff80_0000 == 0xd280_0000 || code & 0xff80_0000 == 0xf280_0000 {
        return Some(rd(code));
    }
    None
}

/// A load or store of one or two registers with sp as base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Whether it loads.
    pub is_load: bool,
    /// The general registers of 64 bits, and their distance from sp before the instruction.
    pub registers: [Option<(u32, i64)>; 2],
    /// By how much sp changes.
    pub moves_sp: i64,
}

/// Decodes such an instruction.
pub fn transfer(code: u32) -> Option<Transfer> {
    if rn(code) != SP {
        return None;
    }
    let (is_load, is_vector) = (code >> 22 & 1 != 0, code >> 26 & 1 != 0);
    if code & 0x3a00_0000 == 0x2800_0000 {
        let opc = code >> 30;
        let scale = match (is_vector, opc) {
            (true, 0..=2) => 4i64 << opc,
            (false, 0 | 1) => 4,
            (false, 2) => 8,
            _ => return None,
        };
        let number = i64::from(((code << 10) as i32) >> 25) * scale;
        let (moves_sp, first) = match code >> 23 & 3 {
            1 => (number, 0),
            3 => (number, number),
            _ => (0, number),
        };
        let is_whole = !is_vector && opc == 2;
        let register = |register, at| is_whole.then_some((register, at));
        let second = first + scale;
        return Some(Transfer {
            is_load,
            registers: [register(rd(code), first), register(code >> 10 & 31, second)],
            moves_sp,
        });
    }
    let is_whole = code >> 30 == 3 && !is_vector;
    if code & 0x3b20_0000 == 0x3800_0000 {
        let number = i64::from(((code << 11) as i32) >> 23);
        let (moves_sp, at) = match code >> 10 & 3 {
            1 => (number, 0),
            3 => (number, number),
            0 => (0, number),
            _ => return None,
        };
        return Some(Transfer {
            is_load: code >> 22 & 3 != 0,
            registers: [is_whole.then_some((rd(code), at)), None],
            moves_sp,
        });
    }
    if code & 0x3b00_0000 == 0x3900_0000 {
        let at = i64::from(code >> 10 & 0xfff) << (code >> 30);
        return Some(Transfer {
            is_load: code >> 22 & 3 != 0,
            registers: [is_whole.then_some((rd(code), at)), None],
            moves_sp: 0,
        });
    }
    None
}

/// The general register that an instruction sets to an untracked value, if it is not one of those
/// above. Loads of pairs set two, of which this is the first.
pub const fn sets(code: u32) -> Option<u32> {
    let class = code >> 25 & 15;
    let is_processing = class & 0b1110 == 0b1000 || class & 0b0111 == 0b0101;
    let is_load = class & 0b0101 == 0b0100 && code >> 26 & 1 == 0 && code >> 22 & 3 != 0;
    if is_processing || is_load {
        return Some(rd(code));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_returns_and_jumps_are_distinguished() {
        for call in [
            0x9400_0001,
            0x97ff_ffff,
            0xd63f_0100,
            0xd63f_0bff,
            0xd73f_0905,
        ] {
            assert!(is_call(call) && !is_return(call), "{call:x}");
        }
        // b, br x8, ret, retaa, nop, cbz
        for other in [
            0x1400_0001,
            0xd61f_0100,
            0xd65f_03c0,
            0xd65f_0bff,
            0xd503_201f,
            0xb400_0040,
        ] {
            assert!(!is_call(other), "{other:x}");
        }
        assert_eq!(jump(0x1400_0002), Some(8));
        assert_eq!(jump(0x17ff_ffff), Some(-4));
        assert_eq!(jump(0x9400_0002), None);
        assert!(is_branch(0x5400_0040) && is_branch(0xb400_0040) && is_branch(0x3600_0040));
        assert!(!is_branch(0x1400_0002) && !is_branch(0xd65f_03c0));
    }

    #[test]
    fn changes_of_sp_are_decoded() {
        // sub sp, sp, 32; sub sp, sp, 1, lsl 12; add sp, x29, 16; mov sp, x8; sub x9, sp, 20, lsl
        // 12
        assert_eq!(sp_from(0xd100_83ff), Some((SP, -32)));
        assert_eq!(sp_from(0xd140_07ff), Some((SP, -4096)));
        assert_eq!(sp_from(0x9100_43bf), Some((FP, 16)));
        assert_eq!(moves_to_sp(0x9100_011f), Some(8));
        assert_eq!(sp_from(0xd140_53e9), None);
        assert!(lowers_sp(0xd100_83ff) && !lowers_sp(0xd140_53e9));
        assert_eq!(fp_from_sp(0x9100_03fd), Some(0));
        assert_eq!(fp_from_sp(0x9100_43fd), Some(16));
        assert_eq!(aligns_sp_from(0x927c_ee9f), Some(20));
        assert_eq!(aligns_sp_from(0x927c_ee89), None);
    }

    #[test]
    fn loads_and_stores_with_sp_are_decoded() {
        let pair = |is_load, first: i64, moves_sp| Transfer {
            is_load,
            registers: [Some((FP, first)), Some((LR, first + 8))],
            moves_sp,
        };
        assert_eq!(transfer(0xa9bf_7bfd), Some(pair(false, -16, -16)));
        assert_eq!(transfer(POP_FRAME), Some(pair(true, 0, 16)));
        assert_eq!(transfer(0xa941_7bfd), Some(pair(true, 16, 0)));
        // ldp d8, d9, [sp], 16; ldr x30, [sp], 16; str x30, [sp, -16]!; ldr x30, [sp, 8]
        let vectors = transfer(0x6cc1_27e8).unwrap();
        assert_eq!((vectors.registers, vectors.moves_sp), ([None; 2], 16));
        let one = |code| transfer(code).map(|it| (it.is_load, it.registers[0], it.moves_sp));
        assert_eq!(one(0xf841_07fe), Some((true, Some((LR, 0)), 16)));
        assert_eq!(one(0xf81f_0ffe), Some((false, Some((LR, -16)), -16)));
        assert_eq!(one(0xf940_07fe), Some((true, Some((LR, 8)), 0)));
        // ldr x30, [x0, 8]
        assert_eq!(one(0xf940_041e), None);
    }
}

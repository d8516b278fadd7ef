//! The unwind rule of a method's frame, read from its first instructions. Pure.
//!
//! Mono does not export the unwind rules of its code. Its compiler for x86-64 begins methods in
//! only two ways. One is `push rbp; mov rbp, rsp`. The other is `sub rsp, N` and stores of the used
//! registers, perhaps including rbp, into that frame. Within the body the stack pointer does not
//! move, so the rule at a method's calls is known. A method that begins in another way has no rule,
//! and ends a walk.

use dwell_walker::native::{Rule, SavedRbp};

/// Bytes of code that are read.
pub const BYTES_MAX: usize = 96;

/// Maximum number of instructions that store registers.
const STORES_MAX: usize = 8;

/// The rule at calls from a method whose code begins with these bytes.
#[must_use]
pub fn rule(code: &[u8]) -> Rule {
    match code {
        // push rbp; mov rbp, rsp (in both encodings)
        [0x55, 0x48, 0x8b, 0xec, ..] | [0x55, 0x48, 0x89, 0xe5, ..] => Rule::Fp {
            cfa_bytes: 16,
            rbp: SavedRbp::At(2),
        },
        // sub rsp, imm8
        [0x48, 0x83, 0xec, size, rest @ ..] if *size < 0x80 => framed(u32::from(*size), rest),
        // sub rsp, imm32
        [0x48, 0x81, 0xec, a, b, c, d, rest @ ..] => {
            framed(u32::from_le_bytes([*a, *b, *c, *d]), rest)
        }
        _ => Rule::Unsupported,
    }
}

/// A frame of `size` bytes, addressed by rsp.
fn framed(size: u32, mut code: &[u8]) -> Rule {
    let Some(cfa_bytes) = size.checked_add(8).filter(|bytes| bytes % 8 == 0) else {
        return Rule::Unsupported;
    };
    let mut rbp = SavedRbp::Same;
    for _ in 0..STORES_MAX {
        let Some((register, at, rest)) = store(code) else {
            break;
        };
        if register == RBP {
            let below = cfa_bytes.checked_sub(at).filter(|bytes| bytes % 8 == 0);
            match below.and_then(|bytes| u16::try_from(bytes / 8).ok()) {
                Some(slot @ 1..) => rbp = SavedRbp::At(slot),
                _ => return Rule::Unsupported,
            }
        }
        code = rest;
    }
    Rule::Sp { cfa_bytes, rbp }
}

const RBP: u8 = 5;

/// `mov [rsp + at], register`, and the code after it.
fn store(code: &[u8]) -> Option<(u8, u32, &[u8])> {
    let [rex @ (0x48 | 0x4c), 0x89, modrm, 0x24, rest @ ..] = code else {
        return None;
    };
    // Bits: mode, register, and 4 for a base byte that follows and is rsp.
    if modrm & 7 != 4 {
        return None;
    }
    let register = (modrm >> 3 & 7) + if *rex == 0x4c { 8 } else { 0 };
    match (modrm >> 6, rest) {
        (0, rest) => Some((register, 0, rest)),
        (1, [at, rest @ ..]) if *at < 0x80 => Some((register, u32::from(*at), rest)),
        (2, [a, b, c, d, rest @ ..]) => {
            Some((register, u32::from_le_bytes([*a, *b, *c, *d]), rest))
        }
        _ => None,
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]
mod tests {
    use super::*;

    #[test]
    fn frame_with_rbp_has_a_rule_by_rbp() {
        let wanted = Rule::Fp {
            cfa_bytes: 16,
            rbp: SavedRbp::At(2),
        };
        assert_eq!(
            rule(&[0x55, 0x48, 0x8b, 0xec, 0x48, 0x83, 0xec, 0x60]),
            wanted
        );
        assert_eq!(rule(&[0x55, 0x48, 0x89, 0xe5]), wanted);
    }

    #[test]
    fn frame_without_rbp_has_a_rule_by_its_size() {
        // sub rsp, 8; mov [rsp], r15
        let small = [0x48, 0x83, 0xec, 0x08, 0x4c, 0x89, 0x3c, 0x24, 0x33, 0xc0];
        assert_eq!(
            rule(&small),
            Rule::Sp {
                cfa_bytes: 16,
                rbp: SavedRbp::Same
            }
        );
        // sub rsp, 0x38; mov [rsp], rbx; mov [rsp+8], rbp; mov [rsp+16], r12
        let saving = [
            0x48, 0x83, 0xec, 0x38, 0x48, 0x89, 0x1c, 0x24, 0x48, 0x89, 0x6c, 0x24, 0x08, 0x4c,
            0x89, 0x64, 0x24, 0x10,
        ];
        assert_eq!(
            rule(&saving),
            Rule::Sp {
                cfa_bytes: 64,
                rbp: SavedRbp::At(7)
            }
        );
        // sub rsp, 0x108; mov [rsp+0x100], rbp
        let large = [
            0x48, 0x81, 0xec, 0x08, 1, 0, 0, 0x48, 0x89, 0xac, 0x24, 0, 1, 0, 0,
        ];
        assert_eq!(
            rule(&large),
            Rule::Sp {
                cfa_bytes: 0x110,
                rbp: SavedRbp::At(2)
            }
        );
    }

    #[test]
    fn unknown_beginning_has_no_rule() {
        for code in [
            &[][..],
            &[0x55],
            &[0x48, 0x83, 0xec, 0xf8],
            &[0x48, 0x83, 0xec, 0x07],
            &[0xe8, 1, 2, 3, 4],
            &[0x48, 0x81, 0xec, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(rule(code), Rule::Unsupported, "{code:x?}");
        }
    }
}

//! Functions that only return a number.

use crate::memory::{Fault, Memory};

/// The result of a function that only returns a number.
pub fn of<M: Memory>(mem: &M, function: u64) -> Result<Option<u32>, Fault> {
    let mut code = [0u8; 16];
    mem.read(function, &mut code)?;
    let mut rest = &code[..];
    let mut value = None;
    loop {
        rest = match rest {
            // endbr64; push or pop rbp; mov rbp, rsp
            [0xf3, 0x0f, 0x1e, 0xfa, rest @ ..]
            | [0x55 | 0x5d, rest @ ..]
            | [0x48, 0x89, 0xe5, rest @ ..] => rest,
            // xor eax, eax
            [0x31, 0xc0, rest @ ..] => {
                value = Some(0);
                rest
            }
            // mov eax, number
            [0xb8, a, b, c, d, rest @ ..] => {
                value = Some(u32::from_le_bytes([*a, *b, *c, *d]));
                rest
            }
            // ret
            [0xc3, ..] | [0xf3, 0xc3, ..] => return Ok(value),
            _ => return Ok(None),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    const CODE: u64 = 0x8000;

    fn result(code: &[u8]) -> Result<Option<u32>, Fault> {
        let mut padded = [0xcc; 0x20];
        padded[..code.len()].copy_from_slice(code);
        of(&Bytes::at(CODE, &padded), CODE)
    }

    #[test]
    fn function_that_does_more_gives_no_constant() {
        for code in [
            &[0xe8, 1, 2, 3, 4, 0xc3][..],
            &[0x55; 16],
            &[0xb8, 1, 0, 0, 0],
        ] {
            assert_eq!(result(code), Ok(None), "{code:?}");
        }
        let zero = [0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xc0, 0xc3];
        assert_eq!(result(&zero), Ok(Some(0)));
        let eighteen = [0x55, 0xb8, 18, 0, 0, 0, 0x48, 0x89, 0xe5, 0x5d, 0xc3];
        assert_eq!(result(&eighteen), Ok(Some(18)));
        assert!(of(&Bytes::at(CODE, &zero), 0x10).is_err());
    }
}

//! UNSIGNED5 by its definition (src/hotspot/share/utilities/unsigned5.hpp): up to five bytes, each
//! a digit of base 64 above `excluded`. A digit in the upper 64 values means that another one
//! follows.

/// Maximum length of a number, in bytes.
pub const LENGTH_MAX: usize = 5;

/// Appends a number.
pub fn encode(value: u32, excluded: u8, out: &mut Vec<u8>) {
    let last = 256 - 64 - u32::from(excluded);
    let mut rest = value;
    for _ in 1..LENGTH_MAX {
        if rest < last {
            break;
        }
        let digit = last + (rest - last) % 64;
        out.push(u8::try_from(digit + u32::from(excluded)).expect("a byte"));
        rest = (rest - digit) / 64;
    }
    out.push(u8::try_from(rest + u32::from(excluded)).expect("a byte"));
}

/// The first number and its length in bytes; `None` if bytes are missing or excluded.
pub fn decode(bytes: &[u8], excluded: u8) -> Option<(u32, usize)> {
    let mut sum = 0u64;
    for (index, byte) in bytes.iter().take(LENGTH_MAX).enumerate() {
        let digit = u64::from(byte.checked_sub(excluded)?);
        sum += digit << (6 * index);
        let is_last = digit < 192 - u64::from(excluded) || index + 1 == LENGTH_MAX;
        if is_last {
            // The largest sum of five digits does not fit; HotSpot adds modulo 2^32.
            return Some((sum as u32, index + 1));
        }
    }
    None
}

/// The encoded form of a signed number (zig-zag).
pub fn zigzag(value: i32) -> u32 {
    let doubled = i64::from(value) * 2;
    let code = if value < 0 { -doubled - 1 } else { doubled };
    u32::try_from(code).expect("32 bits")
}

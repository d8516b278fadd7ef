//! The smallest pieces of the format on the writing side: integers, strings, and the length that
//! stands before every event. No knowledge of types.

/// Maximum length of a string in the file in bytes. A longer one is cut (a `-D` option can be
/// megabytes long).
pub(crate) const TEXT_BYTES_MAX: usize = 256 * 1024;

const STRING_EMPTY: u8 = 1;
const STRING_POOLED: u8 = 2;
pub(crate) const STRING_UTF8: u8 = 3;
/// After eight bytes with a continuation bit the ninth carries eight bits, not seven.
const VARINT_BYTES_MAX: usize = 9;

/// Appends an unsigned little-endian base-128 number.
pub(crate) fn put_varint(out: &mut Vec<u8>, value: u64) {
    let mut rest = value;
    for _ in 1..VARINT_BYTES_MAX {
        if rest < 0x80 {
            break;
        }
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push((rest & 0xff) as u8);
}

/// Appends a Java `int`, which the format widens without its sign.
pub(crate) fn put_int(out: &mut Vec<u8>, value: i32) {
    put_varint(out, u64::from(value.cast_unsigned()));
}

/// Appends a string in place.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str) {
    let text = cut(text, TEXT_BYTES_MAX);
    if text.is_empty() {
        out.push(STRING_EMPTY);
        return;
    }
    out.push(STRING_UTF8);
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends the string of this many lower-case hexadecimal digits.
pub(crate) fn put_hex(out: &mut Vec<u8>, value: u128, digits: u32) {
    out.push(STRING_UTF8);
    put_varint(out, u64::from(digits));
    for place in (0..digits).rev() {
        let digit = (value >> (4 * place) & 0xf) as u8;
        out.push(if digit < 10 {
            b'0' + digit
        } else {
            b'a' + digit - 10
        });
    }
}

/// Appends a reference to the string pool; key 0 is the null string.
pub(crate) fn put_pooled_text(out: &mut Vec<u8>, key: u32) {
    if key == 0 {
        out.push(0);
    } else {
        out.push(STRING_POOLED);
        put_varint(out, u64::from(key));
    }
}

/// Appends an event: its total length, which counts itself, and `body`.
pub(crate) fn put_framed(out: &mut Vec<u8>, body: &[u8]) {
    let mut prefix = 1;
    while prefix < VARINT_BYTES_MAX && varint_len((body.len() + prefix) as u64) > prefix {
        prefix += 1;
    }
    put_varint(out, (body.len() + prefix) as u64);
    out.extend_from_slice(body);
}

fn varint_len(value: u64) -> usize {
    let bits = 64 - value.leading_zeros() as usize;
    bits.div_ceil(7).clamp(1, VARINT_BYTES_MAX)
}

/// The longest prefix of up to `max` bytes that ends between two characters.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, value);
        out
    }

    #[test]
    fn numbers_take_seven_bits_a_byte_and_the_ninth_byte_eight() {
        assert_eq!(varint(0), [0]);
        assert_eq!(varint(127), [127]);
        assert_eq!(varint(128), [0x80, 1]);
        assert_eq!(
            varint((1 << 56) - 1),
            [255, 255, 255, 255, 255, 255, 255, 127]
        );
        assert_eq!(varint(u64::MAX), [255; 9]);
        let mut out = Vec::new();
        put_int(&mut out, -1);
        assert_eq!(out, [255, 255, 255, 255, 15]);
    }

    #[test]
    fn the_length_counts_itself_at_every_width() {
        for body in [
            0, 1, 126, 127, 128, 16_381, 16_382, 16_383, 2_097_149, 2_097_152,
        ] {
            let mut out = Vec::new();
            put_framed(&mut out, &vec![7; body]);
            let prefix = out.len() - body;
            assert_eq!(varint(out.len() as u64).len(), prefix, "{body}");
            assert_eq!(out[..prefix], varint(out.len() as u64), "{body}");
        }
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("", 3), "");
        let mut out = Vec::new();
        put_text(&mut out, &"é".repeat(TEXT_BYTES_MAX));
        assert!(out.len() <= TEXT_BYTES_MAX + 4);
    }
}

//! Decodes modified UTF-8, the encoding of class files and JVMTI (JVMS 4.4.7). Pure.

/// Decodes; each invalid sequence becomes U+FFFD.
#[must_use]
pub fn decode(bytes: &[u8]) -> String {
    if bytes.is_ascii() {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let units = units(bytes);
    char::decode_utf16(units)
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

/// The UTF-16 code units of the text.
fn units(bytes: &[u8]) -> Vec<u16> {
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, tail)) = rest.split_first() {
        let tail_bits = |n: usize| tail.get(n).filter(|b| **b & 0xc0 == 0x80).map(|b| b & 0x3f);
        let (unit, used) = match (first, tail_bits(0), tail_bits(1)) {
            (0x01..=0x7f, _, _) => (u16::from(first), 0),
            (0xc0..=0xdf, Some(a), _) => (u16::from(first & 0x1f) << 6 | u16::from(a), 1),
            (0xe0..=0xef, Some(a), Some(b)) => (
                u16::from(first & 0x0f) << 12 | u16::from(a) << 6 | u16::from(b),
                2,
            ),
            _ => (0xfffd, 0),
        };
        units.push(unit);
        rest = tail.get(used..).unwrap_or(&[]);
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The encoder, from the definition.
    fn encode(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        for unit in text.encode_utf16() {
            let low = |shift: u16| 0x80 | ((unit >> shift) & 0x3f) as u8;
            match unit {
                0x01..=0x7f => out.push(unit as u8),
                0..=0x7ff => out.extend([0xc0 | (unit >> 6) as u8, low(0)]),
                _ => out.extend([0xe0 | (unit >> 12) as u8, low(6), low(0)]),
            }
        }
        out
    }

    proptest! {
        #[test]
        fn every_text_round_trips(text in any::<String>()) {
            prop_assert_eq!(decode(&encode(&text)), text);
        }

        #[test]
        fn any_bytes_are_decoded(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode(&bytes);
        }
    }
}

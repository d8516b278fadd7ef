//! Values with a unit. Pure.

use super::{OptionError, refuse, shown};
use std::time::Duration;

/// A number with a unit: ns, us, ms, s, m, h. Fractions are allowed, a missing unit is not.
///
/// # Errors
/// [`OptionError`] that names the option.
pub fn duration(name: &str, value: &str) -> Result<Duration, OptionError> {
    const MOST_NS: u64 = 10_000 * 3_600_000_000_000;
    let units: [(&str, u64); 6] = [
        ("ns", 1),
        ("us", 1000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let split = value
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(value.len());
    let (number, unit) = value.split_at(split);
    let scale = units.iter().find(|(of, _)| *of == unit);
    match scale.and_then(|(_, scale)| decimal(number, *scale)) {
        Some(ns) if ns <= MOST_NS => Ok(Duration::from_nanos(ns)),
        _ => refuse(format!(
            "{name}={}: a time such as 10ms (ns, us, ms, s, m, h)",
            shown(value)
        )),
    }
}

/// A decimal fraction such as `1.5`, in parts of `1 / scale`, rounded down. (The floating-point
/// parser of the standard library would make the agent 14 KB larger.)
pub(super) fn decimal(text: &str, scale: u64) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && part.is_empty() || !is_digits(whole) || !is_digits(part) {
        return None;
    }
    // 10 to the power of 18 is the largest in 64 bits.
    let part = &part[..part.len().min(18)];
    let number = |digits: &str| match digits {
        "" => Some(0),
        _ => digits.parse::<u64>().ok(),
    };
    let ones = number(whole)?.checked_mul(scale)?;
    let below = u128::from(number(part)?) * u128::from(scale) / 10u128.pow(part.len() as u32);
    ones.checked_add(u64::try_from(below).ok()?)
}

/// A number of bytes with an optional unit: k, m, g (powers of 1024).
pub(super) fn size(name: &str, value: &str) -> Result<u64, OptionError> {
    let (number, shift) = match value.as_bytes().last() {
        Some(b'k' | b'K') => (&value[..value.len() - 1], 10),
        Some(b'm' | b'M') => (&value[..value.len() - 1], 20),
        Some(b'g' | b'G') => (&value[..value.len() - 1], 30),
        _ => (value, 0),
    };
    match number.parse::<u64>() {
        Ok(n) if n <= u64::MAX >> 30 => Ok(n << shift),
        _ => refuse(format!(
            "{name}={}: a size such as 64m (k, m, g)",
            shown(value)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_rounds_down_and_refuses_other_text() {
        let of = |text| decimal(text, 1000);
        assert_eq!(
            [of("1.5"), of("20"), of(".25"), of("3.")],
            [1500, 20_000, 250, 3000].map(Some)
        );
        assert_eq!(of("0.00199999999999999999999999"), Some(1));
        assert_eq!(decimal("18446744073709551615", 1), Some(u64::MAX));
        for wrong in [
            "",
            ".",
            "1e3",
            "-1",
            "+1",
            "1.2.3",
            "1.-2",
            "inf",
            "99999999999999999999",
            "\u{0661}",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(decimal("18446744073709551615", 2), None);
    }
}

//! Values with a unit. Pure.

use super::{OptionError, refuse, shown};
use std::time::Duration;

/// A number with a unit: ns, us, ms, s, m, h. Fractions are allowed, a missing unit is not.
///
/// # Errors
/// [`OptionError`] that names the option.
pub fn duration(name: &str, value: &str) -> Result<Duration, OptionError> {
    let units: [(&str, f64); 6] = [
        ("ns", 1.0),
        ("us", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("m", 6e10),
        ("h", 3.6e12),
    ];
    let split = value
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(value.len());
    let (number, unit) = value.split_at(split);
    let scale = units
        .iter()
        .find(|(u, _)| *u == unit)
        .map(|(_, scale)| *scale);
    match (number.parse::<f64>(), scale) {
        (Ok(number), Some(scale)) if number.is_finite() && number * scale <= 3.6e12 * 1e4 => {
            Ok(Duration::from_nanos((number * scale) as u64))
        }
        _ => refuse(format!(
            "{name}={}: a time such as 10ms (ns, us, ms, s, m, h)",
            shown(value)
        )),
    }
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

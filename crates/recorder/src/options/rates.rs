//! Options for a number of samples in a second: `200`, or `200/s`.

use super::{OptionError, refuse, shown};

/// Bounds of `alloc-rate`, in samples a second.
pub const RATE: std::ops::RangeInclusive<u64> = 1..=100_000;
/// The default of `maxrate`: at most a hundredth of one processor, if each sample costs up to 20
/// us.
pub const MAX_RATE: u64 = 500;

/// A wanted rate.
pub fn wanted(value: &str) -> Result<u64, OptionError> {
    match number(value) {
        Some(rate) if RATE.contains(&rate) => Ok(rate),
        _ => refuse(format!(
            "alloc-rate={}: a second, from 1 to 100000",
            shown(value)
        )),
    }
}

/// A maximum; 0: no limit.
pub fn most(value: &str) -> Result<u64, OptionError> {
    match number(value) {
        Some(rate) if rate <= *RATE.end() => Ok(rate),
        _ => refuse(format!(
            "maxrate={}: a second, from 1 to 100000, or 0 for any",
            shown(value)
        )),
    }
}

fn number(value: &str) -> Option<u64> {
    value.strip_suffix("/s").unwrap_or(value).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_may_have_their_unit_and_have_bounds() {
        assert_eq!(wanted("200/s"), Ok(200));
        assert_eq!((most("0"), most("100000/s")), (Ok(0), Ok(100_000)));
        for bad in ["0", "100001", "/s", "-1", "2 /s", "200/m", ""] {
            let refused = wanted(bad).unwrap_err().to_string();
            assert!(refused.starts_with("alloc-rate="), "{refused}");
        }
        for bad in ["100001", "/s", "-1", "1.5", ""] {
            let refused = most(bad).unwrap_err().to_string();
            assert!(refused.starts_with("maxrate="), "{refused}");
        }
    }
}

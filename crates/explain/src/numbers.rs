//! Words of findings: numbers as people read them.

pub(crate) use dwell_profile::{count, plural};

/// A part in per cent. Of next to nothing no part means anything: then it says no more than that it
/// is large.
pub(crate) fn percent(share: f64) -> String {
    const MOST: f64 = 10_000.0;
    let percent = share * 100.0;
    if percent.is_nan() || percent > MOST {
        "over 10,000 %".to_owned()
    } else if percent >= 9.95 {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// A time with about three digits.
pub(crate) fn duration(ns: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let unit = units.into_iter().find(|(size, _)| ns >= *size);
    let (size, name) = unit.unwrap_or((1.0, "ns"));
    let number = ns / size;
    match number >= 100.0 {
        true => format!("{} {name}", count(number.round() as u64)),
        false => format!("{number:.1} {name}"),
    }
}

/// A number that is not whole, as the nearest one that is.
pub(crate) fn whole(number: f64) -> String {
    count(number.round() as u64)
}

/// At most three names, and how many more there are.
pub(crate) fn some_of(names: &[String]) -> String {
    const NAMED: usize = 3;
    let named = names.iter().take(NAMED).cloned().collect::<Vec<_>>();
    match names.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// The class and method without the package.
#[must_use]
pub fn short(method: &str) -> &str {
    let Some((class, _)) = method.rsplit_once('.') else {
        return method;
    };
    let start = class.rfind('.').map_or(0, |at| at + 1);
    method.get(start..).unwrap_or(method)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(percent(0.5), "50 %");
        assert_eq!(percent(0.0312), "3.1 %");
        assert_eq!(percent(2.5), "250 %");
        for share in [1e9, f64::INFINITY, f64::NAN] {
            assert_eq!(percent(share), "over 10,000 %");
        }
        assert_eq!(duration(2_880_000_000.0), "2.9 s");
        assert_eq!(duration(5_800_000.0), "5.8 ms");
        assert_eq!(duration(12.0), "12.0 ns");
        assert_eq!(duration(12_345e9), "12,345 s");
        assert_eq!(whole(4_999.6), "5,000");
        assert_eq!(short("a.b.Class.method"), "Class.method");
        assert_eq!(short("method"), "method");
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        assert_eq!(some_of(&names), "a, b, c and 1 more");
    }
}

//! Numbers for people: durations, counts, shares, dates. Fixed formats, no locale.

use dwell_profile::Unit;

pub use dwell_profile::count;
pub(crate) use dwell_profile::plural;

/// A duration with three digits that matter: `1.23 s`, `45.6 ms`, `789 ns`.
#[must_use]
pub fn duration(ns: u64) -> String {
    const MINUTE: u64 = 60_000_000_000;
    if ns >= 100 * MINUTE {
        return format!("{:.1} h", ns as f64 / (60 * MINUTE) as f64);
    }
    if ns >= 2 * MINUTE {
        return format!("{:.1} min", ns as f64 / MINUTE as f64);
    }
    let (unit, name) = match ns {
        1_000_000_000.. => (1e9, "s"),
        1_000_000.. => (1e6, "ms"),
        1_000.. => (1e3, "us"),
        _ => return format!("{ns} ns"),
    };
    let value = ns as f64 / unit;
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {name}")
}

/// A weight in its unit.
pub(crate) fn weight(weight: u64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => duration(weight),
        Unit::Samples => plural(weight, "sample"),
    }
}

/// A share as a percentage. Of next to nothing no share means anything: then it says no more than
/// that it is large.
#[must_use]
pub fn percent(share: f64) -> String {
    const MOST: f64 = 10_000.0;
    match share * 100.0 {
        percent if percent.is_nan() || percent > MOST => "over 10,000 %".to_owned(),
        percent => format!("{percent:.1} %"),
    }
}

/// How many there are in a second, of `number` in this time; empty if the time is too short to say.
pub(crate) fn a_second(number: u64, duration_ns: u64) -> String {
    const LEAST_NS: u64 = 100_000_000;
    match duration_ns {
        ..LEAST_NS => String::new(),
        _ => format!("{:.1}", number as f64 * 1e9 / duration_ns as f64),
    }
}

/// A size in bytes.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_240 => plural(bytes, "byte"),
        10_240..10_485_760 => format!("{:.0} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// A size that may be very large.
#[must_use]
pub fn size(bytes: u64) -> String {
    match bytes {
        0..10_737_418_240 => self::bytes(bytes),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// `2026-11-21 09:15:00 UTC`.
#[must_use]
pub fn date(epoch_ns: u64) -> String {
    let [year, month, day, hour, minute, second] = utc(epoch_ns / 1_000_000_000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// A time stamp for file names, in UTC: `20260131T235959Z`.
pub fn stamp(epoch_s: u64) -> String {
    let [year, month, day, hour, minute, second] = utc(epoch_s);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Year, month, day, hour, minute and second.
fn utc(epoch_s: u64) -> [u64; 6] {
    let (year, month, day) = civil(epoch_s / 86_400);
    let (hour, minute, second) = (epoch_s / 3600 % 24, epoch_s / 60 % 60, epoch_s % 60);
    [year, month, day, hour, minute, second]
}

/// The Gregorian date of a day counted from 1970-01-01. Eras of 400 years have 146,097 days; a
/// year that starts in March has its leap day at its end, which makes months regular.
fn civil(days: u64) -> (u64, u64, u64) {
    let from_march_0 = days + 719_468;
    let (era, day_of_era) = (from_march_0 / 146_097, from_march_0 % 146_097);
    let leap_days = day_of_era / 1_460 + day_of_era / 146_096 - day_of_era / 36_524;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shares_and_rates_of_next_to_nothing_say_no_number() {
        assert_eq!(percent(0.5), "50.0 %");
        assert_eq!(percent(64.0), "6400.0 %");
        for share in [1e9, f64::INFINITY, f64::NAN] {
            assert_eq!(percent(share), "over 10,000 %");
        }
        assert_eq!(a_second(7, 0), "");
        assert_eq!(a_second(7, 99_999_999), "");
        assert_eq!(a_second(7, 2_000_000_000), "3.5");
    }

    #[test]
    fn durations() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_500, "1.50 us"),
            (45_600_000, "45.6 ms"),
            (119_000_000_000, "119 s"),
            (150_000_000_000, "2.5 min"),
            (36_000_000_000_000, "10.0 h"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn counts_and_bytes() {
        assert_eq!((count(0).as_str(), count(999).as_str()), ("0", "999"));
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(plural(1, "sample"), "1 sample");
        assert_eq!(bytes(2_000_000), "1953 KiB");
        assert_eq!(percent(0.1234), "12.3 %");
    }

    #[test]
    fn dates_match_known_days() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59:59 UTC"),
            (1_709_251_200, "2024-03-01 00:00:00 UTC"),
            (4_102_444_800, "2100-01-01 00:00:00 UTC"),
        ] {
            assert_eq!(date(seconds * 1_000_000_000), text);
        }
    }

    #[test]
    fn stamps_know_the_calendar() {
        for (seconds, text) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (4_107_542_399, "21000228T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
            (1_798_761_599, "20261231T235959Z"),
        ] {
            assert_eq!(stamp(seconds), text);
        }
    }

    proptest! {
        #[test]
        fn stamps_sort_like_times(one in 0u64..20_000_000_000, other in 0u64..20_000_000_000) {
            prop_assert_eq!(stamp(one).cmp(&stamp(other)), one.cmp(&other));
        }
    }
}

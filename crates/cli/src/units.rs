//! Times on the command line. Pure.

use std::time::Duration;

/// Shortest interval that the agent takes.
const INTERVAL_MIN: Duration = Duration::from_micros(20);
/// Longest interval that the agent takes.
const INTERVAL_MAX: Duration = Duration::from_secs(10);
/// Longest recording that can be asked for.
const RECORDING_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

const UNITS: [(&str, f64); 6] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// How long to record: `30s`, `2m`, or plain seconds.
pub fn recording_time(text: &str) -> Result<Duration, String> {
    let example = "a time such as 30s, 2m or plain seconds";
    let time = time(text, Some(1.0)).ok_or(example)?;
    if time.is_zero() || time > RECORDING_MAX {
        return Err("from 1ms to 720h".to_owned());
    }
    Ok(time)
}

/// CPU time between two samples: `10ms`, `500us`. The unit must be given.
pub fn interval(text: &str) -> Result<Duration, String> {
    let time = time(text, None).ok_or("a time with its unit, such as 10ms or 500us")?;
    if !(INTERVAL_MIN..=INTERVAL_MAX).contains(&time) {
        return Err("from 20us to 10s".to_owned());
    }
    Ok(time)
}

/// A decimal number and a unit; without a unit it is `unit_s` seconds each.
fn time(text: &str, unit_s: Option<f64>) -> Option<Duration> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit_s = match unit {
        "" => unit_s,
        _ => UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, seconds)| *seconds),
    }?;
    let number: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(number * unit_s).ok()
}

/// Seconds for people: `7.4s`, `3m12s`, `5h03m`, `2d01h`.
pub fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{:.1}s", time.as_secs_f64()),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// A time stamp for file names, in UTC: `20260131T235959Z`.
pub fn stamp(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years: leap days come last in each year then.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day % 3600 / 60, of_day % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn recordings_take_plain_seconds_and_units() {
        assert_eq!(recording_time("30"), Ok(Duration::from_secs(30)));
        assert_eq!(recording_time("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(recording_time("1.5m"), Ok(Duration::from_secs(90)));
        for bad in [
            "", "s", "-1", "0", "1e9", "inf", "nan", "10 s", "10x", "721h", "1..2",
        ] {
            assert!(recording_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn intervals_need_a_unit_and_a_sane_value() {
        assert_eq!(interval("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(interval("0.5ms"), Ok(Duration::from_micros(500)));
        for bad in ["10", "10us", "11s", "ms", "", "10msec"] {
            assert!(interval(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ages_are_short() {
        let shown = |seconds| age(Duration::from_secs(seconds));
        assert_eq!(age(Duration::from_millis(7400)), "7.4s");
        assert_eq!(
            (shown(60).as_str(), shown(192).as_str()),
            ("1m00s", "3m12s")
        );
        assert_eq!(
            (shown(18_180).as_str(), shown(176_400).as_str()),
            ("5h03m", "2d01h")
        );
    }

    #[test]
    fn stamps_know_the_calendar() {
        let shown = |seconds| stamp(Duration::from_secs(seconds));
        assert_eq!(shown(0), "19700101T000000Z");
        assert_eq!(shown(951_782_399), "20000228T235959Z");
        assert_eq!(shown(951_782_400), "20000229T000000Z");
        assert_eq!(shown(4_107_542_399), "21000228T235959Z");
        assert_eq!(shown(4_107_542_400), "21000301T000000Z");
        assert_eq!(shown(1_798_761_599), "20261231T235959Z");
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in any::<String>()) {
            let _ = (recording_time(&text), interval(&text));
        }

        #[test]
        fn stamps_sort_like_times(one in 0u64..20_000_000_000, other in 0u64..20_000_000_000) {
            let (a, b) = (stamp(Duration::from_secs(one)), stamp(Duration::from_secs(other)));
            prop_assert_eq!(a.cmp(&b), one.cmp(&other));
        }
    }
}

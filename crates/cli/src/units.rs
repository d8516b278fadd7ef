//! Times on the command line. Pure.

use std::time::Duration;

/// Shortest interval that the agent accepts.
const INTERVAL_MIN: Duration = Duration::from_micros(20);
/// Shortest interval of wall-clock samples that the agent accepts.
const WALL_MIN: Duration = Duration::from_millis(1);
/// Longest interval that the agent accepts.
const INTERVAL_MAX: Duration = Duration::from_secs(10);
/// Default time after which a thread is late for a safepoint.
pub const LATE: Duration = Duration::from_millis(1);
const LATE_MIN: Duration = Duration::from_micros(200);
const LATE_MAX: Duration = Duration::from_secs(10);
/// Shortest recording.
const RECORDING_MIN: Duration = Duration::from_millis(1);
/// Longest recording.
const RECORDING_MAX: Duration = Duration::from_secs(30 * 24 * 3600);
/// Shortest age limit of a recording.
const KEPT_MIN: Duration = Duration::from_secs(1);

/// Shortest window: a recording is written once a second.
const WINDOW_MIN: Duration = Duration::from_secs(1);
/// Longest window.
const WINDOW_MAX: Duration = Duration::from_secs(300);
/// Longest part of a recording that is sent at once.
const PART_MAX: Duration = Duration::from_secs(3600);

const UNITS: [(&str, f64); 6] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// Duration of a recording: `30s`, `2m`, or plain seconds.
pub fn recording_time(text: &str) -> Result<Duration, String> {
    let example = "a time such as 30s, 2m or plain seconds";
    let time = time(text, Some(1.0)).ok_or(example)?;
    if !(RECORDING_MIN..=RECORDING_MAX).contains(&time) {
        return Err("from 1ms to 720h".to_owned());
    }
    Ok(time)
}

/// CPU time between two samples: `10ms`, `500us`. Needs a unit.
pub fn interval(text: &str) -> Result<Duration, String> {
    let time = time(text, None).ok_or("a time with its unit, such as 10ms or 500us")?;
    if !(INTERVAL_MIN..=INTERVAL_MAX).contains(&time) {
        return Err("from 20us to 10s".to_owned());
    }
    Ok(time)
}

/// Interval of wall-clock samples. Needs a unit.
pub fn wall_interval(text: &str) -> Result<Duration, String> {
    let time = time(text, None).ok_or("a time with its unit, such as 20ms")?;
    if !(WALL_MIN..=INTERVAL_MAX).contains(&time) {
        return Err("from 1ms to 10s".to_owned());
    }
    Ok(time)
}

/// Time after which a thread is late for a safepoint. Needs a unit.
pub fn late(text: &str) -> Result<Duration, String> {
    let time = time(text, None).ok_or("a time with its unit, such as 1ms or 500us")?;
    if !(LATE_MIN..=LATE_MAX).contains(&time) {
        return Err("from 200us to 10s".to_owned());
    }
    Ok(time)
}

/// Duration from which all waits for monitors are recorded. Needs a unit.
pub fn lock(text: &str) -> Result<Duration, String> {
    let time = time(text, None).ok_or("a time with its unit, such as 1ms or 50us")?;
    if !(Duration::from_micros(1)..=INTERVAL_MAX).contains(&time) {
        return Err("from 1us to 10s".to_owned());
    }
    Ok(time)
}

/// A part of a processor's time in percent: `0.5%`.
pub fn budget(text: &str) -> Result<f64, String> {
    let number = text
        .strip_suffix('%')
        .and_then(|number| number.parse().ok());
    match number {
        Some(percent) if (0.01..=100.0).contains(&percent) => Ok(percent),
        _ => Err("a share of one CPU in percent, from 0.01% to 100%".to_owned()),
    }
}

/// A time since a recording's beginning: `1.5s`, `2m`, or plain seconds.
pub fn moment(text: &str) -> Result<Duration, String> {
    time(text, Some(1.0)).ok_or_else(|| "a time such as 1.5s, 2m or plain seconds".to_owned())
}

/// Window of time that is shown: `10s`, `2m`, or plain seconds.
pub fn window(text: &str) -> Result<Duration, String> {
    let time = time(text, Some(1.0)).ok_or("a time such as 10s, 2m or plain seconds")?;
    if !(WINDOW_MIN..=WINDOW_MAX).contains(&time) {
        return Err("from 1s to 5m".to_owned());
    }
    Ok(time)
}

/// Time that a sent part of a recording covers: `60s`, `5m`, or plain seconds.
pub fn part(text: &str) -> Result<Duration, String> {
    let time = time(text, Some(1.0)).ok_or("a time such as 60s, 5m or plain seconds")?;
    if !(WINDOW_MIN..=PART_MAX).contains(&time) {
        return Err("from 1s to 1h".to_owned());
    }
    Ok(time)
}

/// Age limit of a recording: `30m`, `2h`. Needs a unit.
pub fn kept_age(text: &str) -> Result<Duration, String> {
    let time = time(text, None).ok_or("a time with its unit, such as 30m or 2h")?;
    if !(KEPT_MIN..=RECORDING_MAX).contains(&time) {
        return Err("from 1s to 720h".to_owned());
    }
    Ok(time)
}

/// A decimal number and a unit; a plain number is in units of `unit_s` seconds.
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

/// Nanoseconds for people: `850 ns`, `1.3 us`, `24 ms`, `3.1 s`.
pub fn short(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let decimals = usize::from(value < 9.95);
    format!("{value:.decimals$} {unit}")
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
            "", "s", "-1", "0", "1ns", "1e9", "inf", "nan", "10 s", "10x", "721h", "1..2",
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
    fn threads_are_late_after_a_time_with_a_unit() {
        assert_eq!(late("1ms"), Ok(Duration::from_millis(1)));
        for bad in ["1", "199us", "11s", "", "0s"] {
            assert!(late(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ages_that_are_kept_need_a_unit() {
        assert_eq!(kept_age("2h"), Ok(Duration::from_secs(7200)));
        for bad in ["30", "", "0s", "10ms", "721h", "1m,file=x"] {
            assert!(kept_age(bad).is_err(), "{bad}");
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
    fn short_times_have_two_digits() {
        let shown = [0, 999, 1_349, 24_400, 9_960_000, 3_100_000_000].map(short);
        let texts = ["0 ns", "999 ns", "1.3 us", "24 us", "10 ms", "3.1 s"];
        assert_eq!(shown, texts);
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in any::<String>()) {
            let _ = (recording_time(&text), interval(&text), kept_age(&text));
        }
    }
}

//! Checks values of the command line before any other action. Pure.

use dwell_report::{Limit, Limited};
use dwell_wall::cause::Cause;
use dwell_wall::pools::Pools;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The format of an output, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Collapsed stacks.
    Collapsed,
    /// A profile for the Firefox Profiler and Perfetto.
    Firefox,
    /// The page.
    Html,
    /// A recording for other tools.
    Jfr,
    /// Profiles for OpenTelemetry's collector.
    Otlp,
    /// The same in JSON.
    OtlpJson,
    /// A directory of tables for SQL.
    Parquet,
    /// A profile for pprof.
    Pprof,
    /// A profile for speedscope.
    Speedscope,
    /// The summary.
    Text,
}

/// The format of a file's ending.
pub fn format_of(output: &Path) -> Option<Format> {
    if output.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Some(Format::Parquet);
    }
    // For an ending with two parts, the first one.
    let stem = Path::new(output.file_stem()?);
    let inner = stem.extension().unwrap_or_default();
    match output.extension()?.to_str()? {
        "collapsed" | "folded" => Some(Format::Collapsed),
        "html" | "htm" => Some(Format::Html),
        "jfr" => Some(Format::Jfr),
        "otlp" => Some(Format::Otlp),
        "gz" if inner == "pb" => Some(Format::Pprof),
        // Other formats in JSON are not packed.
        "gz" => (inner == "json" && format_of(stem).is_none()).then_some(Format::Firefox),
        "json" if inner == "speedscope" => Some(Format::Speedscope),
        "json" => (inner == "otlp").then_some(Format::OtlpJson),
        "parquet" => Some(Format::Parquet),
        "txt" => Some(Format::Text),
        _ => None,
    }
}

/// The output of `report`: a page. Its name needs no ending.
pub fn page(output: OsString) -> Result<PathBuf, String> {
    let output = PathBuf::from(output);
    if output.as_os_str().is_empty() {
        return Err("name it .html".to_owned());
    }
    match format_of(&output) {
        Some(Format::Html) => Ok(output),
        Some(_) => Err("a page is .html; `dwell convert` writes other formats".to_owned()),
        None if output.extension().is_none() => Ok(output),
        None => Err("a page is .html".to_owned()),
    }
}

/// A method in which a pooled thread waits for work.
pub fn idle(text: &str) -> Result<String, String> {
    if text.contains(',') {
        return Err("one method each; give the option again for others".to_owned());
    }
    Pools::default().add(text)?;
    Ok(text.to_owned())
}

/// A text that is redacted.
pub fn redact(text: &str) -> Result<String, String> {
    if text.replace('*', "").is_empty() {
        return Err("give a part of the text to redact".to_owned());
    }
    if text.contains([',', '"', '\'']) || text.chars().any(char::is_control) {
        return Err("no commas and no quotes; use * in their place".to_owned());
    }
    Ok(text.to_owned())
}

/// A cause of wall time.
pub fn cause(text: &str) -> Result<String, String> {
    // Readers give this one to the wall time in gaps of the whole process.
    let names = Cause::ALL.iter().map(|cause| cause.name());
    let names: Vec<&str> = names.chain([dwell_profile::STOPPED]).collect();
    match names.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("one of {}", names.join(", "))),
    }
}

/// A limit of growth: `cpu>5%`, `monitor>20%`, `cpu:a.B.*>10%`.
pub fn limit(text: &str) -> Result<Limit, String> {
    const EXAMPLES: &str = "a limit of growth in quotes, such as 'cpu>5%', \
                            'wall>10%', 'alloc>5%', 'monitor>20%' or 'cpu:com.acme.*>10%'";
    // Names of methods may also have this character.
    let (of, percent) = text.rsplit_once('>').ok_or(EXAMPLES)?;
    let percent = percent.trim().strip_suffix('%').ok_or(EXAMPLES)?;
    let is_number = percent.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let percent = percent.parse::<f64>().ok().filter(|_| is_number);
    let tolerance = match percent.ok_or(EXAMPLES)? / 100.0 {
        tolerance @ 0.0..=1000.0 => tolerance,
        _ => return Err("from 0% to 100000%".to_owned()),
    };
    let of = match of.trim() {
        "cpu" => Limited::Cpu,
        "wall" => Limited::Wall,
        "alloc" => Limited::Allocated,
        other => match other.strip_prefix("cpu:") {
            Some("") => return Err(EXAMPLES.to_owned()),
            Some(method) => Limited::Method(method.to_owned()),
            None => {
                let of = cause(other).map_err(|causes| format!("{EXAMPLES}; causes: {causes}"))?;
                Limited::Cause(of)
            }
        },
    };
    Ok(Limit {
        of,
        tolerance,
        text: text.to_owned(),
    })
}

/// A JVM's pid or a part of its name. An empty text would match each name.
pub fn jvm(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a pid, or a part of a main class or jar; `dwell ps` lists them".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// Bytes allocated between two samples: `512k`, `2m`.
pub fn alloc(text: &str) -> Result<u64, String> {
    match bytes(text) {
        Some(bytes @ 0x400..=0x4000_0000) => Ok(bytes),
        Some(_) => Err("from 1k to 1g".to_owned()),
        None => Err("a size such as 512k or 2m, from 1k to 1g".to_owned()),
    }
}

/// Samples in a second: `200/s`, or `200`.
pub fn rate(text: &str) -> Result<u64, String> {
    match text.strip_suffix("/s").unwrap_or(text).parse() {
        Ok(rate @ 1..=100_000) => Ok(rate),
        _ => Err("a rate of samples such as 200/s, from 1/s to 100000/s".to_owned()),
    }
}

/// The same with 0 for no limit.
pub fn max_rate(text: &str) -> Result<u64, String> {
    match text.strip_suffix("/s").unwrap_or(text).parse() {
        Ok(rate @ 0..=100_000) => Ok(rate),
        _ => Err("a rate such as 200/s, up to 100000/s, or 0 for no limit".to_owned()),
    }
}

/// Maximum size of a recording, `64m` or `1g`, as the agent reads it.
pub fn size(text: &str) -> Result<String, String> {
    const MIN: u64 = 1 << 20;
    const MAX: u64 = 1 << 50;
    match bytes(text) {
        Some(MIN..=MAX) => Ok(text.to_owned()),
        Some(_) => Err("at least 1m".to_owned()),
        None => Err("a size such as 64m or 1g".to_owned()),
    }
}

/// Maximum size of a spool, `100m` or `1g`.
pub fn spool(text: &str) -> Result<u64, String> {
    size(text)?;
    bytes(text).ok_or_else(|| "a size such as 100m or 1g".to_owned())
}

/// A number with an optional unit: k, m, g (powers of 1024). Larger numbers become the maximum.
fn bytes(text: &str) -> Option<u64> {
    let (number, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let digits = number.bytes().all(|b| b.is_ascii_digit());
    let number = number.parse::<u64>().ok().filter(|_| digits)?;
    Some(number.saturating_mul(1 << shift))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn endings_choose_the_format() {
        let format = |name: &str| format_of(Path::new(name));
        assert_eq!(format("a.collapsed"), Some(Format::Collapsed));
        assert_eq!(format("a.b.html"), Some(Format::Html));
        assert_eq!(format("a.txt"), Some(Format::Text));
        assert_eq!(format("a.jfr"), Some(Format::Jfr));
        assert_eq!(format("a.b.pb.gz"), Some(Format::Pprof));
        assert_eq!(format("a.otlp"), Some(Format::Otlp));
        assert_eq!(format("a.otlp.json"), Some(Format::OtlpJson));
        assert_eq!(format("a.b.json.gz"), Some(Format::Firefox));
        assert_eq!(format("a.speedscope.json"), Some(Format::Speedscope));
        for dir in ["a/", "a.html/", "/", "a.parquet"] {
            assert_eq!(format(dir), Some(Format::Parquet), "{dir}");
        }
        for other in [
            "a.jfr.gz",
            "a.gz",
            ".pb.gz",
            "a.json",
            "a.otlp.json.gz",
            ".json.gz",
            "a",
            ".html",
            "",
            "a.pprof",
        ] {
            assert_eq!(format(other), None, "{other}");
        }
    }

    #[test]
    fn cause_is_one_of_those_in_reports() {
        for name in ["monitor", "idle-pool", "stopped"] {
            assert_eq!(cause(name).as_deref(), Ok(name));
        }
        let error = cause("halted").unwrap_err();
        assert!(
            error.contains("monitor") && error.contains("stopped"),
            "{error}"
        );
    }

    #[test]
    fn bytes_between_allocations_are_a_size_in_bounds() {
        assert_eq!(alloc("512k"), Ok(512 << 10));
        assert_eq!((alloc("1024"), alloc("1g")), (Ok(1024), Ok(1 << 30)));
        for bad in [
            "1023",
            "2g",
            "",
            "k",
            "1.5m",
            "512kb",
            "-1k",
            "99999999999999999999",
        ] {
            assert!(alloc(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn pages_are_html_or_have_no_ending() {
        let page = |name: &str| page(name.into()).is_ok();
        assert!(page("a.html") && page("a.b.htm") && page("/dev/stdout"));
        for bad in ["", "a.txt", "a.jfr", "a.collapsed", "a.pdf"] {
            assert!(!page(bad), "{bad}");
        }
    }

    #[test]
    fn limits_are_of_known_things_in_percent() {
        let of = |text: &str| limit(text).map(|limit| (limit.of, limit.tolerance));
        let method = |name: &str| Limited::Method(name.to_owned());
        assert_eq!(of("cpu>5%"), Ok((Limited::Cpu, 0.05)));
        assert_eq!(of("wall > 12.5%"), Ok((Limited::Wall, 0.125)));
        assert_eq!(of("alloc>0%"), Ok((Limited::Allocated, 0.0)));
        let monitor = Limited::Cause("monitor".to_owned());
        assert_eq!(of("monitor>20%"), Ok((monitor, 0.2)));
        assert_eq!(of("cpu:a.B.<init>>10%"), Ok((method("a.B.<init>"), 0.1)));
        for bad in [
            "",
            "cpu",
            "cpu>5",
            "cpu<5%",
            "cpu>-5%",
            "cpu>nan%",
            "cpu>inf%",
            "cpu>%",
            "cpu>1e9%",
            "cpu>100001%",
            "lunch>5%",
            "cpu:>5%",
            ">5%",
        ] {
            assert!(limit(bad).is_err(), "{bad}");
        }
        assert!(limit("lunch>5%").unwrap_err().contains("one of running"));
    }

    #[test]
    fn sizes_have_one_unit_and_a_least() {
        assert_eq!(size("64m").as_deref(), Ok("64m"));
        assert_eq!(size("1G").as_deref(), Ok("1G"));
        assert_eq!(size("1048576").as_deref(), Ok("1048576"));
        for bad in [
            "",
            "m",
            "2MB",
            "1k",
            "0",
            "-1m",
            "+2m",
            "1.5g",
            "1m,x",
            "99999999999g",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in any::<String>()) {
            let _ = (size(&text), jvm(&text), limit(&text), page(text.into()));
        }
    }
}

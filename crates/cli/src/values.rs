//! Values on the command line that must be of a kind, checked before anything is touched. Pure.

use dwell_wall::cause::Cause;
use dwell_wall::pools::Pools;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What an output's name asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Collapsed stacks.
    Collapsed,
    /// The page.
    Html,
    /// The summary.
    Text,
}

/// The format that a file's ending stands for.
pub fn format_of(output: &Path) -> Option<Format> {
    match output.extension()?.to_str()? {
        "collapsed" | "folded" => Some(Format::Collapsed),
        "html" | "htm" => Some(Format::Html),
        "txt" => Some(Format::Text),
        _ => None,
    }
}

/// The output of `report`: a page, whose name may have no ending at all.
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

/// A cause of wall time.
pub fn cause(text: &str) -> Result<String, String> {
    match Cause::from_name(text) {
        Some(cause) => Ok(cause.name().to_owned()),
        None => {
            let names: Vec<&str> = Cause::ALL.iter().map(|cause| cause.name()).collect();
            Err(format!("one of {}", names.join(", ")))
        }
    }
}

/// A JVM's pid or a part of its name; the empty text would be a part of each.
pub fn jvm(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a pid, or a part of a main class or jar; `dwell ps` lists them".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// How much of a recording is kept, `64m` or `1g`, as the agent reads it.
pub fn size(text: &str) -> Result<String, String> {
    const MIN: u64 = 1 << 20;
    const MAX: u64 = 1 << 50;
    let (number, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let digits = number.bytes().all(|b| b.is_ascii_digit());
    match number.parse::<u64>().ok().filter(|_| digits) {
        Some(number) => match number.checked_mul(1 << shift) {
            Some(MIN..=MAX) => Ok(text.to_owned()),
            _ => Err("at least 1m".to_owned()),
        },
        None => Err("a size such as 64m or 1g".to_owned()),
    }
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
        for other in ["a.pb.gz", "a", ".html", "", "a.jfr", "a.pprof"] {
            assert_eq!(format(other), None, "{other}");
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
            let _ = (size(&text), jvm(&text), page(text.into()));
        }
    }
}

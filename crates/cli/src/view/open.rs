//! Shows a page in the user's browser: `$BROWSER`, else the desktop's program for pages.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The desktop's program that opens files.
const OPENER: &str = "xdg-open";
/// Time that the desktop's program has to report a failure.
const WAIT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);

/// Opens the page.
///
/// # Errors
/// The reason, for people.
pub fn page(page: &Path) -> Result<(), String> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(browser) = set("BROWSER") {
        return by_browser(&browser, page);
    }
    if set("DISPLAY").is_none() && set("WAYLAND_DISPLAY").is_none() {
        return Err("no display, and BROWSER is not set".to_owned());
    }
    let spawned = Command::new(OPENER)
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut child = spawned.map_err(|error| format!("{OPENER} cannot be run ({error})"))?;
    let began = Instant::now();
    // It may be the browser itself, which keeps running.
    while began.elapsed() < WAIT {
        match child.try_wait() {
            Ok(Some(status)) if !status.success() => {
                return Err(format!("{OPENER} found no browser ({status})"));
            }
            Ok(None) => std::thread::sleep(PAUSE),
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// Tries the programs of `$BROWSER` in order. Each runs to its end, because it may be a browser in
/// the terminal.
fn by_browser(browser: &OsStr, page: &Path) -> Result<(), String> {
    for words in commands(browser, page) {
        let Some((program, rest)) = words.split_first() else {
            continue;
        };
        let status = Command::new(program).args(rest).status();
        if status.is_ok_and(|status| status.success()) {
            return Ok(());
        }
    }
    let browser = dwell_report::plain(&browser.to_string_lossy());
    Err(format!("BROWSER={browser} cannot show it"))
}

/// The commands of `$BROWSER`, separated by colons, with `%s` for the page.
fn commands(browser: &OsStr, page: &Path) -> Vec<Vec<OsString>> {
    let browser = browser.to_string_lossy();
    let command = |text: &str| {
        let mut has_page = false;
        let mut words: Vec<OsString> = Vec::new();
        for word in text.split_whitespace() {
            match word {
                "%s" => {
                    has_page = true;
                    words.push(page.into());
                }
                word => words.push(word.into()),
            }
        }
        if !has_page && !words.is_empty() {
            words.push(page.into());
        }
        words
    };
    browser.split(':').map(command).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browser_commands_are_split_and_get_the_page() {
        let commands = commands(OsStr::new("one --new %s -x:two"), Path::new("/a b.html"));
        let expected: [&[&str]; 2] = [&["one", "--new", "/a b.html", "-x"], &["two", "/a b.html"]];
        assert_eq!(commands, expected);
        assert_eq!(super::commands(OsStr::new(""), Path::new("/a")), [[""; 0]]);
    }
}

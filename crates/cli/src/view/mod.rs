//! `dwell view`: shows the page of a recording in the user's browser, or serves it.

mod open;
mod serve;

use crate::args::{Redaction, View};
use crate::writing::{self, Named};
use crate::{agent, long_work, recording};
use anyhow::{Context, Result, bail};
use dwell_jfr::redact::Secrets;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum number of a folder's entries that are read.
const ENTRIES_MAX: usize = 100_000;

/// Makes the page and shows it.
pub fn run(args: &View) -> Result<()> {
    let secrets = args.redaction.secrets();
    let input = match args.input.is_dir() {
        true => newest_in(&args.input)?,
        false => args.input.clone(),
    };
    if args.input.is_dir() {
        note!("the newest recording: {}", recording::shown(&input));
    }
    if let Some(port) = args.serve {
        let name = input.file_stem().unwrap_or_default().to_string_lossy();
        return serve::run(port, &name, page_bytes(&input, &secrets)?);
    }
    let page = match is_page(&input) {
        true if !input.exists() => return Err(recording::missing(&input)),
        true => input,
        false => page_of(&input, &args.redaction)?,
    };
    let page = std::path::absolute(&page).context("the current directory")?;
    crate::print(&format!("{}\n", recording::shown(&page)))?;
    let again = match args.input.to_str() {
        Some(input) => format!("dwell view --serve {}", dwell_report::plain(input)),
        None => "dwell view --serve FILE".to_owned(),
    };
    match open::page(&page) {
        Ok(()) => Ok(()),
        // The page exists in any case, and its path is printed first.
        Err(why) => {
            note!("{why}; open the file yourself, or run: {again}");
            Ok(())
        }
    }
}

fn is_page(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("html" | "htm"))
}

/// The recording that was written last.
fn newest_in(dir: &Path) -> Result<PathBuf> {
    let shown = recording::shown(dir);
    let entries = std::fs::read_dir(dir).with_context(|| shown.clone())?;
    let dated = |path: PathBuf| -> Option<(SystemTime, PathBuf)> {
        let data = path.metadata().ok()?;
        let is_recording = path.extension().is_some_and(|ending| ending == "jfr");
        let is_one = is_recording && data.is_file() && data.len() > 0;
        is_one.then_some((data.modified().ok()?, path))
    };
    let paths = entries
        .flatten()
        .take(ENTRIES_MAX)
        .map(|entry| entry.path());
    match paths.filter_map(dated).max() {
        Some((_, path)) => Ok(path),
        None => bail!("{shown} has no recording (FILE.jfr); make one with: dwell record"),
    }
}

/// The page of a recording. Takes the page next to it if that is newer and belongs to this user.
/// Else makes a new one there. If other users could change it there, or the folder is not writable,
/// the page goes to a private temporary folder.
fn page_of(jfr: &Path, redaction: &Redaction) -> Result<PathBuf> {
    let beside = jfr.with_extension("html");
    let time = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    let is_newer = time(&beside)
        .zip(time(jfr))
        .is_some_and(|(page, jfr)| page >= jfr);
    let is_private = writing::is_private(&writing::folder_of(&beside));
    // A page does not record what it redacts.
    let is_usual = !redaction.no_redact && redaction.redact.is_empty();
    if is_usual && is_newer && is_private && writing::is_own(&beside) {
        return Ok(beside);
    }
    let making = recording::making(jfr);
    let load = || recording::load_with(jfr, &redaction.secrets());
    let profile = long_work::with_progress(&making, load)?;
    recording::warn_of_unread(&profile, jfr);
    let write = |page: &Path| {
        let html = (page, Named::ByDwell);
        long_work::with_progress(&making, || {
            recording::write_html(&profile, jfr, html, false)
        })
    };
    if is_private && write(&beside).is_ok() {
        return Ok(beside);
    }
    let dir = std::env::temp_dir().join(format!("dwell-view-{}", agent::random_name()));
    let made = std::fs::DirBuilder::new().mode(0o700).create(&dir);
    made.with_context(|| recording::shown(&dir))?;
    let page = dir.join(beside.file_name().unwrap_or_default());
    write(&page)?;
    Ok(page)
}

/// The same in memory; no file is written.
fn page_bytes(input: &Path, secrets: &Secrets) -> Result<Vec<u8>> {
    if is_page(input) {
        return match std::fs::read(input) {
            Err(error) if error.kind() == ErrorKind::NotFound => Err(recording::missing(input)),
            read => read.with_context(|| recording::shown(input)),
        };
    }
    let making = recording::making(input);
    let profile = long_work::with_progress(&making, || recording::load_with(input, secrets))?;
    recording::warn_of_unread(&profile, input);
    let mut page = Vec::new();
    long_work::with_progress(&making, || recording::put_html(&profile, input, &mut page))?;
    page.flush()?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn folder_gives_its_newest_recording() {
        let dir = std::env::temp_dir().join(format!("dwell-newest-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        assert!(newest_in(&dir).is_err());
        for (name, text, age) in [
            ("old.jfr", "x", 9),
            ("new.jfr", "x", 5),
            ("empty.jfr", "", 1),
            ("other.txt", "x", 0),
        ] {
            std::fs::write(dir.join(name), text).unwrap();
            let file = std::fs::File::options()
                .write(true)
                .open(dir.join(name))
                .unwrap();
            let time = SystemTime::now() - Duration::from_secs(age);
            file.set_modified(time).unwrap();
        }
        assert_eq!(newest_in(&dir).unwrap(), dir.join("new.jfr"));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

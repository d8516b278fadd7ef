//! Reading a recording and writing what is made of it.

use anyhow::{Context, Result, bail};
use dwell_jfr::reader::{EventFilter, Options, parse_with};
use dwell_profile::{EVENTS, Profile};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Reads a recording into the model that all reports are made from.
pub fn load(path: &Path) -> Result<Profile> {
    let shown = path.display();
    refuse_directory(path)?;
    let bytes = std::fs::read(path).with_context(|| format!("{shown}"))?;
    if bytes.is_empty() {
        bail!("{shown} is empty: nothing was recorded");
    }
    parsed(&bytes).with_context(|| format!("{shown} cannot be read as a JFR recording"))
}

/// The same from a file's bytes.
pub fn parsed(bytes: &[u8]) -> Result<Profile> {
    let options = Options {
        events: EventFilter::Only(EVENTS),
    };
    Ok(Profile::from_recording(parse_with(bytes, &options)?))
}

/// Says what is expected where a directory was given; also asked before names are made of it.
pub fn refuse_directory(path: &Path) -> Result<()> {
    if path.is_dir() {
        let shown = path.display();
        bail!("{shown} is a directory; give a recording in it: FILE.jfr");
    }
    Ok(())
}

/// Makes the page of a recording and prints what was found and where it is.
pub fn write_page_and_findings(jfr: &Path, html: &Path) -> Result<()> {
    let profile = load(jfr)?;
    let page = write_html(&profile, jfr, html);
    let samples = profile.total().samples;
    let findings = match too_few(samples) {
        Some(text) => text,
        None => dwell_report::findings(&profile) + &caution(samples),
    };
    crate::print(&format!("{findings}\n{}\n", shown(jfr)))?;
    // A full disk has no room for the page; what was recorded is told all the same.
    page?;
    crate::print(&format!("{}\n", shown(html)))
}

/// What to say instead of shares where a single sample is a tenth of all or more.
fn too_few(samples: u64) -> Option<String> {
    let number = match samples {
        1 => "1 sample".to_owned(),
        2..10 => format!("{samples} samples"),
        // None at all has its own words.
        _ => return None,
    };
    Some(format!(
        "recorded {number}, too few to say where the time went; record longer, or take more \
         samples with a shorter interval: -i 1ms\n"
    ))
}

/// What to say beside shares that only few samples stand behind.
fn caution(samples: u64) -> String {
    match samples {
        // One standard error of a share of a half, the largest there is.
        1..100 => format!(
            "note: few samples; a share can be off by {:.0} percentage points and more\n",
            50.0 / (samples as f64).sqrt()
        ),
        _ => String::new(),
    }
}

/// A path for people: nothing in a file's name can steer the terminal.
pub fn shown(path: &Path) -> String {
    dwell_report::plain(&path.to_string_lossy())
}

/// Writes a file through `write`; a half-written one is removed.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<()> {
    let text = || format!("writing {}", shown(path));
    // What cannot be opened is somebody's, and stays as it is.
    let mut out = BufWriter::new(File::create(path).with_context(text)?);
    let written = write(&mut out).and_then(|()| out.flush());
    written.with_context(|| {
        // Devices, pipes and links to them were there before.
        if std::fs::symlink_metadata(path).is_ok_and(|data| data.is_file()) {
            let _ = std::fs::remove_file(path);
        }
        text()
    })
}

/// Writes the page of a recording.
pub fn write_html(profile: &Profile, source: &Path, html: &Path) -> Result<()> {
    let name = source.file_name().unwrap_or(source.as_os_str());
    let options = dwell_report::Options {
        title: name.to_string_lossy().into_owned(),
    };
    write_file(html, |out| dwell_report::html(profile, &options, out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_are_no_shares() {
        let text = too_few(1).unwrap();
        assert!(text.starts_with("recorded 1 sample, too few"), "{text}");
        assert!(too_few(9).unwrap().contains(" 9 samples"));
        assert_eq!((too_few(0), too_few(10)), (None, None));
        assert!(caution(25).contains(" by 10 percentage points"));
        assert_eq!(caution(0) + &caution(100), "");
    }

    #[test]
    fn only_half_written_files_are_removed() {
        let dir = std::env::temp_dir().join(format!("dwell-write-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (file, link) = (dir.join("file"), dir.join("link"));
        std::os::unix::fs::symlink("/dev/full", &link).unwrap();
        for path in [&file, &link] {
            let result = write_file(path, |out| {
                out.write_all(b"half")?;
                Err(std::io::Error::other("no more"))
            });
            assert!(result.is_err());
        }
        assert!(!file.exists());
        assert!(link.is_symlink(), "a device is not ours to remove");
        write_file(&file, |out| out.write_all(b"whole")).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"whole");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

//! Reading a recording and writing what is made of it.

use anyhow::{Context, Result, bail};
use dwell_profile::Profile;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Reads a recording into the model that all reports are made from.
pub fn load(path: &Path) -> Result<Profile> {
    let shown = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("{shown}"))?;
    if bytes.is_empty() {
        bail!("{shown} is empty: nothing was recorded");
    }
    let recording = dwell_jfr::reader::parse(&bytes)
        .with_context(|| format!("{shown} cannot be read as a JFR recording"))?;
    Ok(Profile::from_recording(recording))
}

/// Makes the page of a recording and prints what was found and where it is.
pub fn write_page_and_findings(jfr: &Path, html: &Path) -> Result<()> {
    let profile = load(jfr)?;
    write_html(&profile, jfr, html)?;
    let findings = dwell_report::findings(&profile);
    crate::print(&format!("{findings}\n{}\n{}\n", shown(jfr), shown(html)))
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

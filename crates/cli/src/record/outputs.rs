//! Where a recording's files go.

use crate::writing::{self, Named, Output};
use crate::{Usage, agent};
use anyhow::{Context, Result, bail};
use dwell_jfr::redact::Secrets;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The files that one recording leaves: `BASE.jfr` and `BASE.html`.
#[derive(Debug)]
pub struct Outputs {
    /// The recording.
    pub jfr: PathBuf,
    /// The page made from it.
    pub html: PathBuf,
    /// Secrets that the page redacts.
    pub secrets: Secrets,
    /// The origin of their names.
    named: Named,
    /// State of `jfr` before the recording, if it existed.
    before: Option<Mark>,
}

/// Distinguishes a written file from an earlier one. A new recording truncates the file, which
/// changes its time even if it gets the same length again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    device: u64,
    inode: u64,
    modified: (i64, i64),
    len: u64,
}

impl Mark {
    /// The file's present state; `None` if it does not exist.
    pub fn of(path: &Path) -> Option<Mark> {
        let data = std::fs::metadata(path).ok()?;
        Some(Mark {
            device: data.dev(),
            inode: data.ino(),
            modified: (data.mtime(), data.mtime_nsec()),
            len: data.len(),
        })
    }

    /// Whether there is nothing in the file.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Outputs {
    /// Chooses the names, and checks that files can be written there before anything starts.
    pub fn prepare(wanted: Option<&Path>, name: &str) -> Result<Outputs> {
        let (base, named) = match wanted {
            Some(path) => (without_ending(path)?, Named::ByUser),
            None => (PathBuf::from(default_base(name)), Named::ByDwell),
        };
        let mut base = std::path::absolute(&base).with_context(|| base.display().to_string())?;
        if named == Named::ByDwell && writing::is_shared(&writing::folder_of(&base)) {
            base = unforeseen(&base);
        }
        let (jfr, html) = (with_ending(&base, "jfr"), with_ending(&base, "html"));
        let before = Mark::of(&jfr);
        writing::open_to_record(&jfr, named)?;
        Ok(Outputs {
            jfr,
            html,
            secrets: Secrets::default(),
            named,
            before,
        })
    }

    /// The same with other secrets than the default ones.
    pub fn redacting(self, secrets: Secrets) -> Outputs {
        Outputs { secrets, ..self }
    }

    /// The recording's file, empty and locked, for a recorder in this process.
    pub fn claim(&self) -> Result<File> {
        let file = writing::claim(&self.jfr, self.named)?;
        writing::truncate(&file).with_context(|| self.jfr.display().to_string())?;
        Ok(file)
    }

    /// Removes the empty file of the check.
    pub fn give_up(&self) {
        let is_empty = std::fs::metadata(&self.jfr).is_ok_and(|data| data.len() == 0);
        if self.before.is_none() && is_empty {
            let _ = std::fs::remove_file(&self.jfr);
        }
    }

    /// The reason why the recording cannot be written to its place, if there is one. For a
    /// recording without any data: an earlier file stays unchanged.
    pub fn trouble(&self) -> Option<String> {
        /// Larger than the beginning of a recording.
        static PROBE: [u8; 256 << 10] = [0; 256 << 10];
        if std::fs::metadata(&self.jfr).ok()?.len() > 0 {
            return None;
        }
        let probe = || {
            let mut file = OpenOptions::new().append(true).open(&self.jfr)?;
            let written = file.write_all(&PROBE).and_then(|()| file.sync_all());
            // A device has no length.
            let _ = file.set_len(0);
            written
        };
        let error = probe().err()?;
        // The agent's words.
        Some(format!(
            "cannot write {}: {}",
            self.jfr.display(),
            error.kind()
        ))
    }

    /// Copies a recording from the JVM's file. An empty recording replaces nothing.
    pub fn copy_from(&self, from: &mut File) -> Result<()> {
        let text = || format!("copying the recording to {}", self.jfr.display());
        let data = from.metadata().with_context(text)?;
        if data.len() == 0 {
            return Ok(());
        }
        if !is_plausible(data.len(), data.blocks()) {
            bail!(
                "{}: the file of the JVM has {} bytes, nearly all of them holes",
                text(),
                data.len()
            );
        }
        from.seek(SeekFrom::Start(0)).with_context(text)?;
        let mut to = Output::begin(&self.jfr, self.named)?;
        // The JVM may write without end.
        std::io::copy(&mut from.take(data.len()), to.file()).with_context(text)?;
        to.commit(&[writing::Identity::of(from).with_context(text)?])
    }

    /// Whether there is a recording that is newer than the earlier file.
    pub fn has_recording(&self) -> bool {
        let now = Mark::of(&self.jfr);
        now != self.before && now.is_some_and(|mark| mark.len > 0)
    }
}

/// Whether a recording of so many bytes may take so many blocks of 512 bytes: a file system may
/// compress it, but a hostile JVM could give us a file of holes that fills our disk.
fn is_plausible(bytes: u64, blocks: u64) -> bool {
    const SMALL_BYTES: u64 = 64 << 20;
    const COMPRESSED: u64 = 64;
    bytes <= SMALL_BYTES || bytes / COMPRESSED <= blocks.saturating_mul(512)
}

/// Adds unpredictable digits. In a shared directory, another user could create a file of a
/// predictable name first.
pub fn unforeseen(base: &Path) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    name.push(format!("-{}", agent::random_name()));
    PathBuf::from(name)
}

/// `NAME-20260131T235959Z`, with only harmless characters of the name.
pub fn default_base(name: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = name
        .chars()
        .map(|c| if harmless(c) { c } else { '_' })
        .take(60)
        .collect();
    let name = name.trim_start_matches(['.', '-']);
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    format!(
        "{}-{}",
        if name.is_empty() { "jvm" } else { name },
        dwell_report::stamp(now.as_secs())
    )
}

/// `app.jfr`, `app.html` and `app` all mean `app.jfr` and `app.html`.
fn without_ending(path: &Path) -> Result<PathBuf> {
    let refuse = |why: &str| Err(Usage(format!("-o {}: {why}", path.display())).into());
    if path.is_dir() {
        return refuse("is a directory; add a file name");
    }
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return refuse("not the name of a file; choose another one");
    };
    let base = name
        .strip_suffix(".jfr")
        .or_else(|| name.strip_suffix(".html"))
        .unwrap_or(name);
    if base.is_empty() {
        return refuse("no name before the ending; add one");
    }
    Ok(path.with_file_name(base))
}

/// Adds an ending. `with_extension` would replace a part of the name after a dot.
pub fn with_ending(base: &Path, ending: &str) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_of_holes_are_no_recordings() {
        assert!(is_plausible(64 << 20, 0), "it cannot fill a disk");
        assert!(is_plausible(1 << 30, 1 << 21) && is_plausible(1 << 30, 1 << 15));
        assert!(!is_plausible(1 << 30, 1 << 10) && !is_plausible(u64::MAX, 8));
    }

    #[test]
    fn endings_are_removed_and_added() {
        let base = |text: &str| without_ending(Path::new(text)).unwrap();
        for text in ["/a/app.jfr", "/a/app.html", "/a/app"] {
            assert_eq!(base(text), PathBuf::from("/a/app"));
        }
        assert_eq!(
            with_ending(&base("/a/app-1.2"), "jfr"),
            PathBuf::from("/a/app-1.2.jfr")
        );
        assert!(without_ending(Path::new("/a/.jfr")).is_err());
        assert!(without_ending(Path::new("/")).is_err());
        assert!(without_ending(Path::new("/tmp")).is_err());
    }

    #[test]
    fn unwritable_place_is_refused_early() {
        let error = Outputs::prepare(Some(Path::new("/proc/none/x")), "n").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("/proc/none/x.jfr cannot be written"),
            "{error}"
        );
    }

    #[test]
    fn earlier_recording_is_not_the_new_one() {
        let dir = std::env::temp_dir().join(format!("dwell-outputs-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let jfr = dir.join("a.jfr");
        std::fs::write(&jfr, "before").unwrap();
        let day = std::time::Duration::from_secs(86400);
        let file = File::options().write(true).open(&jfr).unwrap();
        file.set_modified(SystemTime::now() - day).unwrap();
        let outputs = Outputs::prepare(Some(&jfr), "n").unwrap();
        assert!(!outputs.has_recording());

        let mut empty = File::open("/dev/null").unwrap();
        outputs.copy_from(&mut empty).unwrap();
        outputs.give_up();
        assert_eq!(std::fs::read(&jfr).unwrap(), b"before");
        assert!(!outputs.has_recording());

        std::fs::write(&jfr, "").unwrap();
        assert!(!outputs.has_recording());
        std::fs::write(&jfr, "behind").unwrap();
        assert!(outputs.has_recording(), "of the same length, but new");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn full_disk_is_found_afterwards() {
        let dir = std::env::temp_dir().join(format!("dwell-trouble-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let jfr = |name: &str| dir.join(name).with_extension("jfr");
        std::os::unix::fs::symlink("/dev/full", jfr("full")).unwrap();
        std::fs::write(jfr("old"), "before").unwrap();
        let trouble = |name: &str| Outputs::prepare(Some(&jfr(name)), "n").unwrap().trouble();
        assert_eq!(
            trouble("full").unwrap(),
            format!("cannot write {}: no storage space", jfr("full").display())
        );
        assert_eq!((trouble("free"), trouble("old")), (None, None));
        assert_eq!(std::fs::read(jfr("free")).unwrap(), b"");
        assert_eq!(std::fs::read(jfr("old")).unwrap(), b"before");
        std::fs::remove_dir_all(dir).unwrap();
    }

    proptest! {
        #[test]
        fn default_names_stay_in_the_directory(name in any::<String>()) {
            let base = default_base(&name);
            prop_assert!(!base.starts_with(['.', '-']));
            prop_assert!(base.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)));
        }
    }
}

//! A directory with the tables of a recording in Parquet: complete or absent, readable by its owner
//! only. A directory with any other file is never replaced.

use crate::writing;
use anyhow::{Context, Result, bail};
use dwell_export::TABLES;
use dwell_profile::Profile;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The ending of a table's file.
const ENDING: &str = ".parquet";

/// The file of a table.
pub fn file_of(dir: &Path, table: &str) -> PathBuf {
    dir.join(format!("{table}{ENDING}"))
}

/// Writes the tables of a profile to a directory, which is new, empty, or has tables only.
///
/// # Errors
/// One line that names the directory, which is unchanged then.
pub fn write(profile: &Profile, dir: &Path) -> Result<()> {
    let text = || format!("writing {}", shown(dir));
    let place = match std::fs::canonicalize(dir) {
        Ok(place) => place,
        Err(_) if dir.file_name().is_some() => writing::folder_of(dir).join(name_of(dir)),
        Err(error) => return Err(error).with_context(text),
    };
    check_replaceable(&place, dir)?;
    let new = PrivateDir::create(&writing::folder_of(&place)).with_context(text)?;
    fill(profile, new.path()).with_context(text)?;
    if !place.exists() {
        return std::fs::rename(new.path(), &place).with_context(text);
    }
    let old = PrivateDir::create(&writing::folder_of(&place)).with_context(text)?;
    std::fs::rename(&place, old.path()).with_context(text)?;
    // Somebody may have added a file since the first check.
    let put = check_replaceable(old.path(), dir)
        .and_then(|()| std::fs::rename(new.path(), &place).with_context(text));
    if put.is_err() {
        std::fs::rename(old.path(), &place).with_context(text)?;
    }
    put
}

/// Writes the tables of a profile to an empty directory.
pub fn fill(profile: &Profile, dir: &Path) -> std::io::Result<()> {
    let open = |table| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options.open(file_of(dir, table))
    };
    dwell_export::parquet(profile, open)?;
    let sync = |table: &&str| File::open(file_of(dir, table))?.sync_all();
    TABLES.iter().try_for_each(sync)
}

/// Whether a directory has the tables.
pub fn has_tables(dir: &Path) -> bool {
    TABLES.iter().all(|table| file_of(dir, table).is_file())
}

/// Refuses anything but an own directory that has tables only.
fn check_replaceable(place: &Path, dir: &Path) -> Result<()> {
    let shown = shown(dir);
    let Ok(data) = std::fs::metadata(place) else {
        return Ok(());
    };
    if !data.is_dir() {
        bail!("writing {shown}: is a file; choose a name for a directory");
    }
    if data.uid() != crate::sys::user() {
        bail!("writing {shown}: a directory of another user; choose another name");
    }
    for entry in std::fs::read_dir(place).with_context(|| shown.clone())? {
        let entry = entry.with_context(|| shown.clone())?;
        let name = entry.file_name();
        let table = name.to_str().and_then(|name| name.strip_suffix(ENDING));
        let is_file = entry.file_type().is_ok_and(|it| it.is_file());
        if !is_file || !table.is_some_and(|table| TABLES.contains(&table)) {
            let name = dwell_report::plain(&name.to_string_lossy());
            bail!("writing {shown}: holds another file, {name}; choose a new directory");
        }
    }
    Ok(())
}

/// A directory of this user only, with an unpredictable name. Removed when it is dropped,
/// unless it has moved away.
#[derive(Debug)]
pub struct PrivateDir(PathBuf);

impl PrivateDir {
    /// Creates one in a directory.
    pub fn create(parent: &Path) -> std::io::Result<PrivateDir> {
        let path = parent.join(format!(".dwell-{}", crate::agent::random_name()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(PrivateDir(path))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The last part of a path.
fn name_of(path: &Path) -> &std::ffi::OsStr {
    path.file_name().unwrap_or_default()
}

fn shown(path: &Path) -> String {
    dwell_report::plain(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn profile() -> Profile {
        dwell_profile::text_art::profile("weight: 10 20\na.A.x a.A.y")
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let name = |it: std::io::Result<std::fs::DirEntry>| it.unwrap().file_name();
        let mut names: Vec<String> = entries.map(|it| name(it).into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn directory_is_new_empty_or_replaced() {
        let scratch = PrivateDir::create(&std::env::temp_dir()).unwrap();
        let dir = scratch.path().join("it's [a] dir/");
        for _ in 0..2 {
            write(&profile(), &dir).unwrap();
            assert!(has_tables(&dir));
            assert_eq!(names(&dir).len(), TABLES.len());
        }
        std::fs::remove_file(file_of(&dir, "late")).unwrap();
        assert!(!has_tables(&dir));
        let empty = scratch.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        write(&profile(), &empty).unwrap();
        assert!(has_tables(&empty));
        assert_eq!(names(scratch.path()), ["empty", "it's [a] dir"]);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&empty), 0o700);
        assert_eq!(mode(&file_of(&empty, "samples")), 0o600);
    }

    #[test]
    fn directory_with_other_files_stays() {
        let scratch = PrivateDir::create(&std::env::temp_dir()).unwrap();
        let refused = |dir: &Path| write(&profile(), dir).unwrap_err().to_string();
        let dir = scratch.path().join("dir");
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("notes.txt"), "mine").unwrap();
        assert!(refused(&dir).contains("holds another file, notes.txt"));
        assert_eq!(names(&dir), ["notes.txt"]);
        std::fs::remove_file(dir.join("notes.txt")).unwrap();
        // A directory with a table's name.
        std::fs::create_dir(file_of(&dir, "samples")).unwrap();
        assert!(refused(&dir).contains("samples.parquet"));
        let file = scratch.path().join("file");
        std::fs::write(&file, "mine").unwrap();
        assert!(refused(&file).contains("is a file"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
        assert!(refused(&scratch.path().join("none/dir")).starts_with("writing "));
        assert_eq!(names(scratch.path()), ["dir", "file"]);
    }
}

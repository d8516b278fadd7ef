//! The tables of recordings in the user's cache: written once for each content of a recording.
//!
//! Only this user can read the cache. It keeps a few recordings. Without a cache, and for damaged
//! recordings, tables are in a private directory for one query.

use crate::tables_dir::{self, PrivateDir, has_tables};
use crate::{long_work, recording};
use anyhow::{Context, Result};
use std::fs::{DirBuilder, File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Recordings whose tables are kept.
const KEPT: usize = 8;
/// A directory is not removed before: another query may use it.
const KEPT_FOR: Duration = Duration::from_secs(3600);
/// The version of the tables' columns.
const COLUMNS: u32 = 1;

/// A directory of tables.
#[derive(Debug)]
pub enum Converted {
    /// It stays.
    Kept(PathBuf),
    /// It is removed after the query.
    Once(PrivateDir),
}

impl Converted {
    /// Its path.
    pub fn path(&self) -> &Path {
        match self {
            Converted::Kept(path) => path,
            Converted::Once(dir) => dir.path(),
        }
    }
}

/// The tables of a recording.
pub fn of_recording(input: &Path) -> Result<Converted> {
    let root = root().filter(|root| is_usable(root));
    let key = root.as_ref().and_then(|_| key(input));
    let kept = root.zip(key).map(|(root, key)| (root.join(key), root));
    if let Some((place, _)) = &kept
        && has_tables(place)
    {
        touch(place);
        return Ok(Converted::Kept(place.clone()));
    }
    let reading = format!("dwell: reading {}", recording::shown(input));
    let profile = long_work::with_progress(&reading, || recording::load(input))?;
    recording::warn_of_unread(&profile, input);
    let kept = kept.filter(|_| profile.unread().is_none());
    let parent = kept
        .as_ref()
        .map_or_else(std::env::temp_dir, |(_, root)| root.clone());
    let text = || format!("writing {}", parent.display());
    let new = PrivateDir::create(&parent).with_context(text)?;
    tables_dir::fill(&profile, new.path()).with_context(text)?;
    let Some((place, root)) = kept else {
        return Ok(Converted::Once(new));
    };
    // Another query may have been faster.
    if std::fs::rename(new.path(), &place).is_err() && !has_tables(&place) {
        return Ok(Converted::Once(new));
    }
    prune(&root, KEPT);
    Ok(Converted::Kept(place))
}

/// The directory of the cache.
fn root() -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|it| it.is_absolute())
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    Some(cache?.join("dwell").join("query"))
}

/// Whether this is a directory of this user, made if it was not there.
fn is_usable(root: &Path) -> bool {
    let _ = DirBuilder::new().recursive(true).mode(0o700).create(root);
    let is_private = |data: Metadata| data.uid() == crate::sys::user() && data.mode() & 0o077 == 0;
    std::fs::symlink_metadata(root).is_ok_and(|data| data.is_dir() && is_private(data))
}

/// The name of a recording's tables, by its content; `None` if it cannot be read twice.
fn key(input: &Path) -> Option<String> {
    let mut file = File::open(input).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut sums = Sums::default();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => sums.add(buffer.get(..len)?),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    Some(format!("{version}-{COLUMNS}-{}", sums.finish()))
}

/// A sum of 128 bits over bytes: two of FNV's, with different multipliers.
struct Sums {
    sums: [u64; 2],
    len: u64,
}

impl Default for Sums {
    fn default() -> Self {
        Sums {
            sums: [0xcbf2_9ce4_8422_2325, 0x9ae1_6a3b_2f90_404f],
            len: 0,
        }
    }
}

impl Sums {
    fn add(&mut self, bytes: &[u8]) {
        let [mut first, mut second] = self.sums;
        for byte in bytes {
            first = (first ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            second = (second.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        self.sums = [first, second];
        self.len += bytes.len() as u64;
    }

    fn finish(self) -> String {
        let [first, second] = self.sums;
        format!("{first:016x}{second:016x}-{}", self.len)
    }
}

/// Marks a directory as used now.
fn touch(place: &Path) {
    let touched = File::open(place).and_then(|dir| dir.set_modified(SystemTime::now()));
    // One that is not marked is removed earlier.
    drop(touched);
}

/// Removes all but the `kept` directories that were used last, and what interrupted queries left
/// behind. Directories of the last hour stay.
fn prune(root: &Path, kept: usize) {
    let Ok(entries) = std::fs::read_dir(root) else {
        return;
    };
    let used = |entry: std::fs::DirEntry| {
        let used = entry.metadata().ok()?.modified().ok()?;
        Some((used, entry.path()))
    };
    let mut dirs: Vec<(SystemTime, PathBuf)> = entries.flatten().filter_map(used).collect();
    dirs.sort_by(|a, b| b.cmp(a));
    for (used, path) in dirs.into_iter().skip(kept) {
        if used.elapsed().is_ok_and(|age| age > KEPT_FOR) {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(parts: &[&[u8]]) -> String {
        let mut sums = Sums::default();
        parts.iter().for_each(|part| sums.add(part));
        sums.finish()
    }

    #[test]
    fn content_sum_ignores_the_size_of_reads() {
        assert_eq!(sum(&[b"abc", b"", b"d"]), sum(&[b"abcd"]));
        assert_ne!(sum(&[b"abcd"]), sum(&[b"abdc"]));
        assert_ne!(sum(&[b"\0"]), sum(&[b"\0\0"]));
    }

    #[test]
    fn key_is_that_of_the_content() {
        let scratch = PrivateDir::create(&std::env::temp_dir()).unwrap();
        let write = |name: &str, content: &str| {
            let path = scratch.path().join(name);
            std::fs::write(&path, content).unwrap();
            key(&path).unwrap()
        };
        assert_eq!(write("a", "one"), write("b", "one"));
        assert_ne!(write("a", "one"), write("a", "two"));
        assert_eq!(key(&scratch.path().join("none")), None);
        assert_eq!(key(Path::new("/dev/null")), None);
    }

    #[test]
    fn prune_keeps_the_directories_used_last() {
        let scratch = PrivateDir::create(&std::env::temp_dir()).unwrap();
        let ago = |name: &str, hours: u32| {
            let path = scratch.path().join(name);
            std::fs::create_dir(&path).unwrap();
            let time = SystemTime::now() - hours * KEPT_FOR;
            File::open(&path).unwrap().set_modified(time).unwrap();
            path
        };
        let (old, older, oldest) = (ago("old", 2), ago("older", 3), ago("oldest", 4));
        let new = ago("new", 0);
        touch(&older);
        prune(scratch.path(), 1);
        // A directory of the last hour may be in use.
        assert!(new.exists() && older.exists() && !old.exists() && !oldest.exists());
    }

    #[test]
    fn cache_of_others_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = PrivateDir::create(&std::env::temp_dir()).unwrap();
        let root = scratch.path().join("a/b");
        assert!(is_usable(&root) && is_usable(&root));
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&root, open).unwrap();
        assert!(!is_usable(&root));
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(scratch.path(), &link).unwrap();
        assert!(!is_usable(&link));
    }
}

//! Tests of writing files.

use super::*;
use std::os::unix::fs::symlink;

/// A directory of one test's own.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let dir = std::env::temp_dir().join(format!("dwell-files-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Place(dir)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.0.join(name), text).unwrap();
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let name = |entry: io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = entries.map(|it| name(it).into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o777
}

fn put(path: &Path, named: Named, inputs: &[&Path], text: &str) -> Result<()> {
    write(path, named, inputs, |out| out.write_all(text.as_bytes()))
}

#[test]
fn failed_write_keeps_the_former_file() {
    let place = Place::new("failed");
    let (old, new) = (place.file("old", "before"), place.0.join("new"));
    for path in [&old, &new] {
        let result = write(path, Named::ByUser, &[], |out| {
            out.write_all(&[b'x'; 100_000])?;
            Err(io::Error::other("no more"))
        });
        assert!(result.is_err());
    }
    assert_eq!(std::fs::read(&old).unwrap(), b"before");
    assert_eq!(place.names(), ["old"], "nothing is left behind");
    let link = place.0.join("link");
    symlink("/dev/full", &link).unwrap();
    assert!(put(&link, Named::ByUser, &[], "text").is_err());
    assert!(link.is_symlink(), "a device is not ours to remove");
}

#[test]
fn whole_file_is_readable_by_its_owner_only() {
    let place = Place::new("modes");
    let old = place.file("old", "a longer text before");
    std::fs::set_permissions(&old, PermissionsExt::from_mode(0o644)).unwrap();
    for path in [&old, &place.0.join("new")] {
        put(path, Named::ByUser, &[], "whole").unwrap();
        assert_eq!(std::fs::read(path).unwrap(), b"whole");
        assert_eq!(mode(path), 0o600);
    }
    assert_eq!(place.names(), ["new", "old"]);
    let claimed = place.file("claimed", "x");
    std::fs::set_permissions(&claimed, PermissionsExt::from_mode(0o644)).unwrap();
    truncate(&claim(&claimed, Named::ByUser).unwrap()).unwrap();
    let fresh = place.0.join("fresh");
    drop(claim(&fresh, Named::ByDwell).unwrap());
    assert_eq!([mode(&claimed), mode(&fresh)], [0o600; 2]);
}

#[test]
fn output_never_destroys_its_input() {
    let place = Place::new("inputs");
    let input = place.file("in", "recorded");
    let (hard, link) = (place.0.join("hard"), place.0.join("link"));
    std::fs::hard_link(&input, &hard).unwrap();
    symlink("in", &link).unwrap();
    for path in [&input, &hard, &link] {
        let error = put(path, Named::ByUser, &[&input], "page").unwrap_err();
        assert!(error.to_string().contains("is the input"), "{error:#}");
        assert_eq!(std::fs::read(&input).unwrap(), b"recorded");
    }
    // dwell's own name does not follow the link.
    put(&link, Named::ByDwell, &[&input], "page").unwrap();
    assert_eq!(std::fs::read(&input).unwrap(), b"recorded");
    assert_eq!(std::fs::read(&link).unwrap(), b"page");
    assert!(!link.is_symlink());
}

#[test]
fn links_of_the_user_are_followed() {
    let place = Place::new("links");
    let real = place.file("real", "before");
    std::fs::create_dir(place.0.join("dir")).unwrap();
    for (name, target) in [("one", "real"), ("dir/two", "../one"), ("new", "made")] {
        symlink(target, place.0.join(name)).unwrap();
    }
    put(&place.0.join("dir/two"), Named::ByUser, &[], "after").unwrap();
    assert_eq!(std::fs::read(&real).unwrap(), b"after");
    put(&place.0.join("new"), Named::ByUser, &[], "new").unwrap();
    assert_eq!(std::fs::read(place.0.join("made")).unwrap(), b"new");
    symlink("circle", place.0.join("circle")).unwrap();
    assert!(put(&place.0.join("circle"), Named::ByUser, &[], "x").is_err());
}

#[test]
fn links_of_others_in_shared_directories_are_refused() {
    if crate::sys::user() != 0 {
        println!("skipped: only root can make another user's link");
        return;
    }
    let place = Place::new("shared");
    let (dir, precious) = (place.0.join("all"), place.file("precious", "before"));
    std::fs::create_dir(&dir).unwrap();
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o1777)).unwrap();
    let link = dir.join("link");
    symlink(&precious, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(65_534), None).unwrap();
    let error = put(&link, Named::ByUser, &[], "x").unwrap_err();
    assert!(error.to_string().contains("another user"), "{error:#}");
    assert!(claim(&link, Named::ByUser).is_err());
    assert!(claim(&link, Named::ByDwell).is_err());
    // The same for a file that another user can read while it is written.
    let theirs = dir.join("theirs");
    std::fs::write(&theirs, "x").unwrap();
    std::os::unix::fs::chown(&theirs, Some(65_534), None).unwrap();
    let error = claim(&theirs, Named::ByUser).unwrap_err();
    assert!(error.to_string().contains("another user"), "{error:#}");
    assert!(!is_own(&theirs) && is_own(&precious) && !is_own(&link));
    assert!(is_shared(&dir) && is_private(&dir) && !is_shared(&place.0));
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o777)).unwrap();
    assert!(!is_private(&dir));
    assert_eq!(std::fs::read(&precious).unwrap(), b"before");
}

#[test]
fn file_that_is_recorded_to_is_not_replaced() {
    let place = Place::new("locks");
    let path = place.file("busy", "recorded");
    let first = claim(&path, Named::ByUser).unwrap();
    let errors = [
        claim(&path, Named::ByUser).map(drop).unwrap_err(),
        put(&path, Named::ByUser, &[], "x").unwrap_err(),
        rename(&place.file("other", "x"), &path).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().contains("being written to"), "{error:#}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"recorded");
    drop(first);
    put(&path, Named::ByUser, &[], "x").unwrap();
}

#[test]
fn file_without_room_for_a_copy_is_written_in_place() {
    let place = Place::new("in-place");
    let path = place.file("it", "a longer text before");
    let mut output = Output::begin(&path, Named::ByUser).unwrap();
    // The state in a directory that takes no new files, or for a mount of one file.
    std::fs::remove_file(output.temporary.take().unwrap()).unwrap();
    output.file().write_all(b"text").unwrap();
    let inode = Identity::at(&path);
    assert_eq!(std::fs::read(&path).unwrap(), b"a longer text before");
    output.commit(&[]).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"text");
    assert_eq!((Identity::at(&path), mode(&path)), (inode, 0o600));
}

#[test]
fn open_file_below_proc_is_written_to() {
    let place = Place::new("proc");
    let real = place.file("real", "a longer text before");
    let open = OpenOptions::new().write(true).open(&real).unwrap();
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
    assert!(put(Path::new(&path), Named::ByUser, &[&real], "x").is_err());
    put(Path::new(&path), Named::ByUser, &[], "text").unwrap();
    assert_eq!(std::fs::read(&real).unwrap(), b"text");
    assert_eq!(place.names(), ["real"]);
}

//! Small files of the kernel. They have no length, but the standard library asks for one, and then
//! reads in steps of 32, 64, 128 bytes and so on. Here one call nearly always reads the whole file,
//! and a second one finds the end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The kernel returns at most a page per read.
const PAGE: usize = 4096;

/// Reads a whole file.
///
/// # Errors
/// Any error of opening or reading the file.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    read_start(path, u64::MAX)
}

/// Reads at most `most` bytes of a file, from its start.
///
/// # Errors
/// Any error of opening or reading the file.
pub fn read_start(path: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
    let room = usize::try_from(most).map_or(PAGE, |most| most.min(PAGE));
    let mut bytes = Vec::with_capacity(room);
    // A reader with a limit is not asked for its length.
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a whole text file.
///
/// # Errors
/// Any error of opening or reading the file, and an error if it is not UTF-8.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = read(path)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_to_their_ends() {
        let maps = read("/proc/self/maps").unwrap();
        assert!(maps.ends_with(b"\n") && maps.len() > 500);
        let own = std::env::current_exe().unwrap();
        assert_eq!(read(&own).unwrap(), std::fs::read(&own).unwrap());
        let version = read_text("/proc/version").unwrap();
        assert_eq!(version, std::fs::read_to_string("/proc/version").unwrap());
        assert!(read_text(&own).is_err());
        assert!(read("/nowhere").is_err());
    }

    #[test]
    fn no_more_is_read_than_asked_for() {
        let version = read("/proc/version").unwrap();
        for most in [0, 1, 16] {
            let start = read_start("/proc/version", most).unwrap();
            assert_eq!(start, version[..most as usize]);
        }
        assert_eq!(read_start("/proc/version", 1 << 20).unwrap(), version);
    }
}

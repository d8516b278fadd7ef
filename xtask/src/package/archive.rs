//! Archives that are the same bytes in each run: tar, gzip and ar. Pure.
//!
//! Entries are sorted, belong to root, and have one time. The order in which they are passed does
//! not matter.

use anyhow::{Result, bail};
use flate2::{Compression, GzBuilder};
use std::collections::BTreeSet;
use std::io::Write;

const BLOCK: usize = 512;

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path, relative, with `/`.
    pub path: String,
    /// Whether it can be executed.
    pub is_program: bool,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl Entry {
    /// A file that is not a program.
    #[must_use]
    pub fn file(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Entry {
        Entry {
            path: path.into(),
            is_program: false,
            bytes: bytes.into(),
        }
    }

    /// A program.
    #[must_use]
    pub fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Entry {
        Entry {
            is_program: true,
            ..Entry::file(path, bytes)
        }
    }

    /// Its permissions.
    #[must_use]
    pub fn mode(&self) -> u32 {
        if self.is_program { 0o755 } else { 0o644 }
    }
}

/// Sorts entries by path.
///
/// # Errors
/// A path that is there twice, is absolute, or has parts such as `..`.
pub fn sorted(entries: &[Entry]) -> Result<Vec<&Entry>> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by(|a, b| a.path.cmp(&b.path));
    for pair in sorted.windows(2) {
        if pair[0].path == pair[1].path {
            bail!("{} is in the package twice", pair[0].path);
        }
    }
    for entry in &sorted {
        let is_bad = |part: &str| part.is_empty() || part == "." || part == "..";
        if entry.path.split('/').any(is_bad) {
            bail!("{:?} is not a path of a package", entry.path);
        }
    }
    Ok(sorted)
}

/// A tar archive (POSIX `ustar`) with the entries and their folders. `prefix` is put before each
/// path: `./` in Debian's packages.
///
/// # Errors
/// See [`sorted`]; a path of more than 100 bytes.
pub fn tar(entries: &[Entry], prefix: &str, time: u64) -> Result<Vec<u8>> {
    let entries = sorted(entries)?;
    let mut folders = BTreeSet::new();
    for entry in &entries {
        let ends = entry.path.match_indices('/').map(|(at, _)| at);
        folders.extend(ends.map(|at| &entry.path[..=at]));
    }
    let mut out = Vec::new();
    if !prefix.is_empty() {
        out.extend(header(prefix, 0o755, b'5', 0, time)?);
    }
    for folder in folders {
        let path = format!("{prefix}{folder}");
        out.extend(header(&path, 0o755, b'5', 0, time)?);
    }
    for entry in entries {
        let path = format!("{prefix}{}", entry.path);
        out.extend(header(&path, entry.mode(), b'0', entry.bytes.len(), time)?);
        out.extend(&entry.bytes);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
    }
    out.resize(out.len() + 2 * BLOCK, 0);
    Ok(out)
}

fn header(path: &str, mode: u32, kind: u8, len: usize, time: u64) -> Result<[u8; BLOCK]> {
    const NAME_MAX: usize = 100;
    if path.len() > NAME_MAX {
        bail!("{path} is longer than {NAME_MAX} bytes");
    }
    let mut header = [0; BLOCK];
    let mut put =
        |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, path);
    put(100, &format!("{mode:07o}"));
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{len:011o}"));
    put(136, &format!("{time:011o}"));
    // The checksum counts its own field as blanks.
    put(148, "        ");
    put(257, "ustar");
    put(263, "00");
    put(265, "root");
    put(297, "root");
    header[156] = kind;
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    Ok(header)
}

/// Compresses bytes; the header has neither name nor time.
///
/// # Errors
/// None in memory.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    // 3 is Unix.
    let new = GzBuilder::new().operating_system(3);
    let mut encoder = new.write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// An `ar` archive with members in this order, as Debian's packages are.
///
/// # Errors
/// A name of more than 16 bytes.
pub fn ar(members: &[(&str, &[u8])], time: u64) -> Result<Vec<u8>> {
    let mut out = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        if name.len() > 16 {
            bail!("{name} is longer than 16 bytes");
        }
        let len = bytes.len();
        out.extend(
            format!(
                "{name:<16}{time:<12}{0:<6}{0:<6}{1:<8}{len:<10}`\n",
                0, "100644"
            )
            .bytes(),
        );
        out.extend(*bytes);
        if len % 2 == 1 {
            out.push(b'\n');
        }
    }
    Ok(out)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// The output of a program that reads an archive from standard input.
    pub fn read_with(program: &str, arguments: &[&str], archive: &[u8]) -> String {
        let mut child = Command::new(program)
            .args(arguments)
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(archive).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{program}: {}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    fn two() -> [Entry; 2] {
        [
            Entry::program("top/bin/run", "#!/bin/sh\n"),
            Entry::file("top/LICENSE", vec![b'x'; 600]),
        ]
    }

    #[test]
    fn tar_lists_modes_owners_sizes_and_time() {
        let bytes = gzip(&tar(&two(), "", 1_700_000_000).unwrap()).unwrap();
        let listed = read_with("tar", &["-tvzf", "-"], &bytes);
        let lines: Vec<String> = listed
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines,
            [
                "drwxr-xr-x root/root 0 2023-11-14 22:13 top/",
                "drwxr-xr-x root/root 0 2023-11-14 22:13 top/bin/",
                "-rw-r--r-- root/root 600 2023-11-14 22:13 top/LICENSE",
                "-rwxr-xr-x root/root 10 2023-11-14 22:13 top/bin/run",
            ]
        );
        assert_eq!(
            read_with("tar", &["-xzOf", "-", "top/bin/run"], &bytes),
            "#!/bin/sh\n"
        );
    }

    #[test]
    fn order_of_entries_changes_no_byte() {
        let [a, b] = two();
        assert_eq!(
            tar(&[a.clone(), b.clone()], "./", 7).unwrap(),
            tar(&[b, a], "./", 7).unwrap()
        );
    }

    #[test]
    fn paths_that_leave_the_archive_are_refused() {
        for bad in ["/etc/x", "../x", "a//b", "a/./b", ""] {
            assert!(tar(&[Entry::file(bad, "x")], "", 0).is_err(), "{bad:?}");
        }
        assert!(tar(&[Entry::file("a", "1"), Entry::file("a", "2")], "", 0).is_err());
        assert!(tar(&[Entry::file("x".repeat(101), "")], "", 0).is_err());
    }

    #[test]
    fn ar_pads_members_to_even_lengths() {
        let bytes = ar(
            &[("debian-binary", b"2.0\n"), ("odd", b"abc"), ("end", b"z")],
            5,
        )
        .unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let head = |name: &str, len: &str| {
            format!("{name:<16}5           0     0     100644  {len:<10}`\n")
        };
        let expected = [
            "!<arch>\n",
            &head("debian-binary", "4"),
            "2.0\n",
            &head("odd", "3"),
            "abc\n",
            &head("end", "1"),
            "z\n",
        ];
        assert_eq!(text, expected.concat());
    }
}

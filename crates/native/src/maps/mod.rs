//! Reads `/proc/PID/maps`.
//!
//! A line is `start-end perms offset major:minor inode`, spaces, and the mapped object. The kernel
//! escapes only newlines (`\012`), so a path may hold any other characters. A file named
//! `x (deleted)` or `x\012` cannot be distinguished from one that was deleted or has a newline. If
//! that matters, open `/proc/PID/map_files/START-END` instead of the path.
//!
//! This module must not open files. Read next: [`Module`] in `modules`.

mod modules;

use std::borrow::Cow;
use std::fmt;

pub use modules::{ExecutableRange, Module, Placement, modules};

/// The invalid field of a line of `maps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The address range is missing, not hexadecimal, or empty.
    Range,
    /// The permissions are not four of `r-`, `w-`, `x-`, `sp`.
    Permissions,
    /// The offset is missing or not hexadecimal.
    Offset,
    /// The device is missing or not `major:minor`.
    Device,
    /// The inode is missing or not decimal.
    Inode,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Error::Range => "address range",
            Error::Permissions => "permissions",
            Error::Offset => "offset",
            Error::Device => "device",
            Error::Inode => "inode",
        };
        write!(f, "line of maps without a valid {what}")
    }
}

impl std::error::Error for Error {}

/// Permissions of a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// `r`.
    pub is_readable: bool,
    /// `w`.
    pub is_writable: bool,
    /// `x`.
    pub is_executable: bool,
    /// `s` rather than `p`.
    pub is_shared: bool,
}

/// A device number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Device {
    /// The driver.
    pub major: u32,
    /// The device of the driver.
    pub minor: u32,
}

/// Kind of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backing {
    /// Private memory without a file, perhaps with a name set by `prctl` (`[anon:...]`).
    Anonymous,
    /// A file with a path.
    File,
    /// A file without one: `memfd_create`.
    Memfd,
    /// System V shared memory, or shared anonymous memory.
    SharedMemory,
    /// `[vdso]`, the kernel's own code in each process.
    Vdso,
    /// `[stack]`.
    Stack,
    /// `[heap]`.
    Heap,
    /// Any other: `[vvar]`, `[vsyscall]`, `anon_inode:...`, `socket:...`.
    Special,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Permissions.
    pub permissions: Permissions,
    /// Offset of `start` in the file.
    pub offset: u64,
    /// The file's device.
    pub device: Device,
    /// The file's inode, or 0.
    pub inode: u64,
    /// The mapped object, as the kernel writes it; see [`Mapping::path`].
    pub raw_path: &'a [u8],
}

const DELETED: &[u8] = b" (deleted)";

impl<'a> Mapping<'a> {
    /// Reads one line (without its newline).
    ///
    /// # Errors
    /// The first invalid field.
    pub fn parse(line: &'a [u8]) -> Result<Mapping<'a>, Error> {
        let (range, rest) = field(line);
        let dash = range
            .iter()
            .position(|byte| *byte == b'-')
            .ok_or(Error::Range)?;
        let (start, end) = range.split_at_checked(dash).ok_or(Error::Range)?;
        let start = hexadecimal(start).ok_or(Error::Range)?;
        let end = end.get(1..).and_then(hexadecimal).ok_or(Error::Range)?;
        if start >= end {
            return Err(Error::Range);
        }
        let (permissions, rest) = field(rest);
        let permissions = parse_permissions(permissions).ok_or(Error::Permissions)?;
        let (offset, rest) = field(rest);
        let offset = hexadecimal(offset).ok_or(Error::Offset)?;
        let (device, rest) = field(rest);
        let device = parse_device(device).ok_or(Error::Device)?;
        let (inode, rest) = field(rest);
        let inode = decimal(inode).ok_or(Error::Inode)?;
        // Padding only: no path starts with a space (files have absolute paths).
        let raw_path = rest.trim_ascii_start();
        Ok(Mapping {
            start,
            end,
            permissions,
            offset,
            device,
            inode,
            raw_path,
        })
    }

    /// The path of the mapped object, without the mark of deleted files and with newlines restored.
    #[must_use]
    pub fn path(&self) -> Cow<'a, [u8]> {
        let path = match self.is_deleted() {
            true => self.raw_path.strip_suffix(DELETED).unwrap_or(self.raw_path),
            false => self.raw_path,
        };
        unescape(path)
    }

    /// Whether the path no longer leads to the mapped file.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.raw_path.starts_with(b"/") && self.raw_path.ends_with(DELETED)
    }

    /// Kind of the mapping.
    #[must_use]
    pub fn backing(&self) -> Backing {
        let path = self.raw_path;
        match path {
            b"" => Backing::Anonymous,
            b"[vdso]" => Backing::Vdso,
            b"[heap]" => Backing::Heap,
            b"[stack]" => Backing::Stack,
            _ if path.starts_with(b"[stack:") => Backing::Stack,
            _ if path.starts_with(b"[anon") => Backing::Anonymous,
            _ if path.starts_with(b"/memfd:") => Backing::Memfd,
            _ if path.starts_with(b"/SYSV") && self.is_deleted() => Backing::SharedMemory,
            b"/dev/zero (deleted)" => Backing::SharedMemory,
            _ if path.starts_with(b"/") => Backing::File,
            _ => Backing::Special,
        }
    }

    /// Whether `address` is in the mapping.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}

/// Parses all lines of a file. Empty lines are skipped.
pub fn parse(maps: &[u8]) -> impl Iterator<Item = Result<Mapping<'_>, Error>> {
    maps.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(Mapping::parse)
}

/// The bytes up to the next space, and the bytes after it.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line
        .iter()
        .position(|byte| *byte == b' ')
        .unwrap_or(line.len());
    let (field, rest) = line.split_at_checked(end).unwrap_or((line, &[]));
    (field, rest.get(1..).unwrap_or(&[]))
}

/// Digits only: `from_str_radix` alone also accepts a sign.
fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let all_digits = digits.iter().all(|byte| char::from(*byte).is_digit(radix));
    let text = std::str::from_utf8(digits).ok().filter(|_| all_digits)?;
    u64::from_str_radix(text, radix).ok()
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    number(digits, 16)
}

fn decimal(digits: &[u8]) -> Option<u64> {
    number(digits, 10)
}

fn parse_permissions(field: &[u8]) -> Option<Permissions> {
    let [r, w, x, shared] = *field.first_chunk::<4>().filter(|_| field.len() == 4)?;
    let flag = |byte: u8, yes: u8, no: u8| match byte {
        _ if byte == yes => Some(true),
        _ if byte == no => Some(false),
        _ => None,
    };
    Some(Permissions {
        is_readable: flag(r, b'r', b'-')?,
        is_writable: flag(w, b'w', b'-')?,
        is_executable: flag(x, b'x', b'-')?,
        is_shared: flag(shared, b's', b'p')?,
    })
}

fn parse_device(field: &[u8]) -> Option<Device> {
    let colon = field.iter().position(|byte| *byte == b':')?;
    let (major, minor) = field.split_at_checked(colon)?;
    let major = u32::try_from(hexadecimal(major)?).ok()?;
    let minor = u32::try_from(hexadecimal(minor.get(1..)?)?).ok()?;
    Some(Device { major, minor })
}

fn unescape(path: &[u8]) -> Cow<'_, [u8]> {
    const NEWLINE: &[u8] = b"\\012";
    if !path.windows(NEWLINE.len()).any(|window| window == NEWLINE) {
        return Cow::Borrowed(path);
    }
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        match rest.strip_prefix(NEWLINE) {
            Some(after) => {
                plain.push(b'\n');
                rest = after;
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests;

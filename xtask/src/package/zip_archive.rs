//! Zip archives, for wheels and jars: written the same in each run, and read. Pure.
//!
//! A time in a zip has no zone, and ends in 2107: all entries have the format's first one.

use super::archive::{Entry, sorted};
use anyhow::{Context, Result, bail};
use flate2::write::{DeflateDecoder, DeflateEncoder};
use flate2::{Compression, Crc};
use std::io::Write;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
/// Length of the last structure without a comment.
const END_LEN: usize = 22;
/// 1980-01-01.
const DATE: u16 = 0x21;
const DEFLATED: u16 = 8;
/// Names are in UTF-8.
const FLAGS: u16 = 1 << 11;

/// A zip archive. `first` is an entry that stands before all others, which are sorted: the manifest
/// of a jar.
///
/// # Errors
/// See [`sorted`].
pub fn zip(first: Option<&Entry>, entries: &[Entry]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    let mut count = 0u16;
    for entry in first.into_iter().chain(sorted(entries)?) {
        let at = u32::try_from(out.len())?;
        let mut crc = Crc::new();
        crc.update(&entry.bytes);
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&entry.bytes)?;
        let packed = encoder.finish()?;
        let mut common = Vec::new();
        // Needs version 2.0 to be read.
        for half in [20, FLAGS, DEFLATED, 0, DATE] {
            common.extend(half.to_le_bytes());
        }
        for word in [
            crc.sum(),
            u32::try_from(packed.len())?,
            u32::try_from(entry.bytes.len())?,
        ] {
            common.extend(word.to_le_bytes());
        }
        common.extend(u16::try_from(entry.path.len())?.to_le_bytes());
        common.extend(0u16.to_le_bytes());
        out.extend(LOCAL.to_le_bytes());
        out.extend(&common);
        out.extend(entry.path.bytes());
        out.extend(packed);
        directory.extend(CENTRAL.to_le_bytes());
        // Made on Unix: the attributes have the kind of file and its permissions.
        directory.extend((3u16 << 8 | 20).to_le_bytes());
        directory.extend(common);
        directory.extend([0; 6]);
        directory.extend(((0o100_000 | entry.mode()) << 16).to_le_bytes());
        directory.extend(at.to_le_bytes());
        directory.extend(entry.path.bytes());
        count += 1;
    }
    let at = u32::try_from(out.len())?;
    out.extend(&directory);
    out.extend(END.to_le_bytes());
    out.extend([0; 4]);
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(u32::try_from(directory.len())?.to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([0; 2]);
    Ok(out)
}

/// The files of a zip archive without a comment, in its order; folders are left out.
///
/// # Errors
/// Not such an archive, or a damaged one.
pub fn unzip(bytes: &[u8]) -> Result<Vec<Entry>> {
    let end = bytes
        .len()
        .checked_sub(END_LEN)
        .context("not a zip archive")?;
    if word(bytes, end)? != END {
        bail!("not a zip archive");
    }
    let mut at = word(bytes, end + 16)? as usize;
    let mut entries = Vec::new();
    for _ in 0..half(bytes, end + 10)? {
        if word(bytes, at)? != CENTRAL {
            bail!("its directory is damaged");
        }
        let name_len = half(bytes, at + 28)?;
        let name = bytes
            .get(at + 46..at + 46 + name_len)
            .context("ends in a name")?;
        let path = String::from_utf8(name.to_vec())?;
        if !path.ends_with('/') {
            entries.push(Entry {
                is_program: word(bytes, at + 38)? >> 16 & 0o111 != 0,
                bytes: content(bytes, at).with_context(|| path.clone())?,
                path,
            });
        }
        at += 46 + name_len + half(bytes, at + 30)? + half(bytes, at + 32)?;
    }
    Ok(entries)
}

/// The content of the entry whose record of the directory is there.
fn content(bytes: &[u8], record: usize) -> Result<Vec<u8>> {
    let local = word(bytes, record + 42)? as usize;
    let start = local + 30 + half(bytes, local + 26)? + half(bytes, local + 28)?;
    let len = word(bytes, record + 20)? as usize;
    let packed = bytes
        .get(start..start + len)
        .context("its content is cut off")?;
    let content = match half(bytes, record + 10)? {
        0 => packed.to_vec(),
        8 => {
            let mut decoder = DeflateDecoder::new(Vec::new());
            decoder.write_all(packed)?;
            decoder.finish()?
        }
        other => bail!("is packed in way {other}"),
    };
    let mut crc = Crc::new();
    crc.update(&content);
    if crc.sum() != word(bytes, record + 16)? {
        bail!("its checksum is wrong");
    }
    Ok(content)
}

fn word(bytes: &[u8], at: usize) -> Result<u32> {
    let bytes = bytes.get(at..at + 4).context("it is cut off")?;
    Ok(bytes
        .iter()
        .rev()
        .fold(0, |word, &byte| word << 8 | u32::from(byte)))
}

fn half(bytes: &[u8], at: usize) -> Result<usize> {
    let bytes = bytes.get(at..at + 2).context("it is cut off")?;
    Ok(bytes
        .iter()
        .rev()
        .fold(0, |half, &byte| half << 8 | usize::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> Vec<u8> {
        let manifest = Entry::file("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n");
        let entries = [
            Entry::program("b/run", vec![7; 5000]),
            Entry::file("a/ünï", "text"),
        ];
        zip(Some(&manifest), &entries).unwrap()
    }

    #[test]
    fn zip_is_read_back_with_modes_in_order() {
        let read = unzip(&made()).unwrap();
        let found: Vec<(&str, bool, usize)> = read
            .iter()
            .map(|e| (e.path.as_str(), e.is_program, e.bytes.len()))
            .collect();
        assert_eq!(
            found,
            [
                ("META-INF/MANIFEST.MF", false, 23),
                ("a/ünï", false, 4),
                ("b/run", true, 5000)
            ]
        );
        assert!(made().len() < 1000, "it is compressed");
    }

    #[test]
    fn damaged_zip_is_refused() {
        let good = made();
        for end in [0, 10, good.len() - 1] {
            assert!(unzip(&good[..end]).is_err(), "{end}");
        }
        // The first entry's packed bytes come after its header and name.
        let mut bad = good.clone();
        bad[30 + 20 + 4] ^= 0x55;
        assert!(unzip(&bad).is_err());
    }
}

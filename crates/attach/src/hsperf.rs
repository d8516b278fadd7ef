//! HotSpot's performance data file (`/tmp/hsperfdata_USER/PID`): string entries only. Pure.
//!
//! A JVM writes to the mapped file while we read it, and any user may write a file of that name, so
//! every offset is checked.

/// Maximum size of a valid performance data file (HotSpot's default is 32 KiB).
pub const SIZE_MAX: usize = 4 << 20;

const MAGIC_BIG_ENDIAN: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
const ENTRIES_MAX: usize = 10_000;

/// The entries that we use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PerfData {
    /// `sun.rt.javaCommand`: main class or jar, and arguments.
    pub java_command: Option<String>,
    /// `java.property.java.version`.
    pub java_version: Option<String>,
    /// `java.rt.vmArgs`: options from command line, option files and environment (cut at 1024).
    pub vm_args: Option<String>,
    /// `java.rt.vmFlags`: flags from a settings file.
    pub vm_flags: Option<String>,
}

/// Reads the file's bytes; `None` if it is not a version 2 performance data file.
pub fn parse(bytes: &[u8]) -> Option<PerfData> {
    if bytes.get(..4)? != MAGIC_BIG_ENDIAN {
        return None;
    }
    let little = match bytes.get(4)? {
        0 => false,
        1 => true,
        _ => return None,
    };
    if *bytes.get(5)? != 2 {
        return None;
    }
    let reader = Reader { bytes, little };
    let mut at = reader.offset(24)?;
    let count = reader.offset(28)?.min(ENTRIES_MAX);
    let mut data = PerfData::default();
    for _ in 0..count {
        let Some(length) = reader.offset(at).filter(|&length| length >= 20) else {
            break;
        };
        if let Some((name, value)) = reader.string_entry(at, length) {
            match name {
                b"sun.rt.javaCommand" => data.java_command = Some(value),
                b"java.property.java.version" => data.java_version = Some(value),
                b"java.rt.vmArgs" => data.vm_args = Some(value),
                b"java.rt.vmFlags" => data.vm_flags = Some(value),
                _ => {}
            }
        }
        let Some(next) = at.checked_add(length) else {
            break;
        };
        at = next;
    }
    Some(data)
}

struct Reader<'a> {
    bytes: &'a [u8],
    little: bool,
}

impl<'a> Reader<'a> {
    /// A 32-bit number used as offset or length; negative ones are refused.
    fn offset(&self, at: usize) -> Option<usize> {
        let raw: [u8; 4] = self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        let value = if self.little {
            i32::from_le_bytes(raw)
        } else {
            i32::from_be_bytes(raw)
        };
        usize::try_from(value).ok()
    }

    /// Name and text of the entry at `at`, if it is a byte vector.
    fn string_entry(&self, at: usize, length: usize) -> Option<(&'a [u8], String)> {
        let entry = self.bytes.get(at..at.checked_add(length)?)?;
        let name_at = self.offset(at + 4)?;
        let vector_length = self.offset(at + 8)?;
        let kind = *entry.get(12)?;
        let data_at = self.offset(at + 16)?;
        if kind != b'B' || vector_length == 0 {
            return None;
        }
        let name = until_nul(entry.get(name_at..)?);
        let data = entry.get(data_at..data_at.checked_add(vector_length)?)?;
        Some((name, String::from_utf8_lossy(until_nul(data)).into_owned()))
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&b| b == 0).next().unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A file in HotSpot's layout: entry header, name, padding, data.
    fn file(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut out = vec![0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1];
        out.extend([0; 16]);
        out.extend(32i32.to_le_bytes());
        out.extend((entries.len() as i32).to_le_bytes());
        for (name, value) in entries {
            let data_at = 20 + name.len() + 1;
            let length = data_at + value.len() + 1;
            for number in [length, 20, value.len() + 1] {
                out.extend((number as i32).to_le_bytes());
            }
            out.extend([b'B', 0, 1, 1]);
            out.extend((data_at as i32).to_le_bytes());
            out.extend(name.as_bytes());
            out.push(0);
            out.extend(value.as_bytes());
            out.push(0);
        }
        out
    }

    #[test]
    fn strings_are_found() {
        let bytes = file(&[
            ("x.y", "z"),
            ("sun.rt.javaCommand", "Main a b"),
            ("java.rt.vmArgs", ""),
        ]);
        let data = parse(&bytes).unwrap();
        assert_eq!(data.java_command.as_deref(), Some("Main a b"));
        assert_eq!(data.vm_args.as_deref(), Some(""));
        assert_eq!(data.java_version, None);
    }

    #[test]
    fn broken_entry_ends_parsing_and_keeps_earlier_entries() {
        let mut bytes = file(&[("sun.rt.javaCommand", "Main"), ("java.rt.vmArgs", "-Xrs")]);
        let second = bytes.len() - (20 + "java.rt.vmArgs".len() + 1 + "-Xrs".len() + 1);
        bytes[second..second + 4].copy_from_slice(&(-1i32).to_le_bytes());
        let data = parse(&bytes).unwrap();
        assert_eq!(
            (data.java_command.as_deref(), data.vm_args),
            (Some("Main"), None)
        );
    }

    #[test]
    fn other_files_are_refused() {
        assert_eq!(parse(b""), None);
        assert_eq!(
            parse(b"\x7fELF and so on, long enough to be a header"),
            None
        );
        let mut bytes = file(&[]);
        bytes[5] = 1;
        assert_eq!(parse(&bytes), None);
    }

    proptest! {
        #[test]
        fn damaged_files_cause_no_panic(
            at in 8usize..160, value in any::<u8>(), cut in 0usize..200,
        ) {
            let mut bytes = file(&[("sun.rt.javaCommand", "Main a"), ("java.rt.vmArgs", "-Xrs")]);
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
            bytes.truncate(cut.max(8));
            let _ = parse(&bytes);
        }
    }
}

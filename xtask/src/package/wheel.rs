//! The package for Python's installers (wheel). It has no Python code. Pure.
//!
//! Format: "Binary distribution format" of the Python packaging user guide. Files below
//! `.data/scripts` and `.data/data` go to `bin` and to the root of the environment.

use super::archive::Entry;
use super::zip_archive::zip;
use super::{Inputs, Product, sha256};
use anyhow::Result;

/// The command is static; the libraries need glibc 2.17 or musl.
const PLATFORMS: [&str; 2] = ["manylinux_2_17_x86_64", "musllinux_1_1_x86_64"];

/// `dwell-VERSION-py3-none-PLATFORMS.whl`.
///
/// # Errors
/// See [`zip`].
pub fn wheel(inputs: &Inputs) -> Result<Product> {
    let version = &inputs.version;
    let info = format!("dwell-{version}.dist-info");
    let data = format!("dwell-{version}.data");
    let metadata = format!(
        "Metadata-Version: 2.1\n\
         Name: dwell\n\
         Version: {version}\n\
         Summary: Profiler for the JVM on Linux: CPU and wall-clock time, requests, safepoints\n\
         License: Apache-2.0\n\
         Requires-Python: >=3.7\n\
         Description-Content-Type: text/markdown\n\n{}",
        include_str!("wheel.txt")
    );
    let mut about = "Wheel-Version: 1.0\nGenerator: dwell\nRoot-Is-Purelib: false\n".to_owned();
    for platform in PLATFORMS {
        about += &format!("Tag: py3-none-{platform}\n");
    }
    let mut entries = vec![
        Entry::program(format!("{data}/scripts/dwell"), inputs.command.clone()),
        Entry::file(format!("{info}/METADATA"), metadata),
        Entry::file(format!("{info}/WHEEL"), about),
        Entry::file(format!("{info}/LICENSE"), inputs.license.clone()),
        Entry::file(format!("{info}/THIRD-PARTY.txt"), inputs.notices.clone()),
    ];
    for (name, bytes) in inputs.libraries() {
        entries.push(Entry::file(format!("{data}/data/lib/dwell/{name}"), bytes));
    }
    let record = format!("{info}/RECORD");
    let mut lines: Vec<String> = entries
        .iter()
        .map(|entry| {
            let sum = base64(&sha256::sum(&entry.bytes));
            format!("{},sha256={sum},{}\n", entry.path, entry.bytes.len())
        })
        .collect();
    lines.sort();
    lines.push(format!("{record},,\n"));
    entries.push(Entry::file(record, lines.concat()));
    Ok(Product::new(
        format!("dwell-{version}-py3-none-{}.whl", PLATFORMS.join(".")),
        zip(None, &entries)?,
    ))
}

/// Base 64 with the alphabet for URLs, without padding (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let at = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..=three.len() {
            out.push(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize].into());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::tests::made;
    use super::super::zip_archive::unzip;
    use super::*;

    #[test]
    fn base64_equals_the_examples_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "-_8");
    }

    #[test]
    fn wheel_records_every_file_with_its_sum() {
        let wheel = wheel(&made()).unwrap();
        assert_eq!(
            wheel.name,
            "dwell-1.2.3-py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64.whl"
        );
        let entries = unzip(&wheel.bytes).unwrap();
        let programs: Vec<&str> = entries
            .iter()
            .filter(|e| e.is_program)
            .map(|e| e.path.as_str())
            .collect();
        assert_eq!(programs, ["dwell-1.2.3.data/scripts/dwell"]);
        let find = |path: &str| {
            entries
                .iter()
                .find(|entry| entry.path.ends_with(path))
                .unwrap()
        };
        let record = String::from_utf8(find("/RECORD").bytes.clone()).unwrap();
        assert_eq!(record.lines().count(), entries.len());
        // The SHA-256 of "command", by sha256sum and base64.
        let sum = "XTR_2Ui2Ywj1AsP2XI9-Ev8cXPjHYLzfsYiuHse4thg";
        assert!(
            record.contains(&format!("dwell-1.2.3.data/scripts/dwell,sha256={sum},7\n")),
            "{record}"
        );
        for entry in &entries {
            assert!(record.contains(&entry.path), "{}", entry.path);
        }
        let about = String::from_utf8(find("/WHEEL").bytes.clone()).unwrap();
        assert!(about.ends_with(
            "Tag: py3-none-manylinux_2_17_x86_64\nTag: py3-none-musllinux_1_1_x86_64\n"
        ));
    }
}

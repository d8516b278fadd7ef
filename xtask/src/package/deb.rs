//! The package for Debian and its relatives. Pure.
//!
//! Format: deb(5). There is no dependency: the command is static, and the libraries are loaded by a
//! JVM or by Mono, which need the same libc.

use super::archive::{Entry, ar, gzip, tar};
use super::{Inputs, Product, jar};
use anyhow::Result;

/// `dwell_VERSION_PROCESSOR.deb`.
///
/// # Errors
/// See [`tar`].
pub fn deb(inputs: &Inputs) -> Result<Product> {
    let files = installed(inputs)?;
    let size: usize = files
        .iter()
        .map(|file| file.bytes.len().div_ceil(1024))
        .sum();
    let control = format!(
        "Package: dwell\n\
         Version: {}\n\
         Architecture: {}\n\
         Maintainer: The developers of dwell\n\
         Installed-Size: {size}\n\
         Section: devel\n\
         Priority: optional\n\
         Description: profiler for the JVM\n \
         dwell shows where the time of each thread and each request goes: on CPU,\n \
         waiting for a CPU, on a lock, in I/O, at a safepoint.\n",
        inputs.version,
        inputs.processor.debian()
    );
    let pack = |entries: &[Entry]| gzip(&tar(entries, "./", inputs.time)?);
    let control = pack(&[Entry::file("control", control)])?;
    let data = pack(&files)?;
    let members = [
        ("debian-binary", b"2.0\n".as_slice()),
        ("control.tar.gz", &control),
        ("data.tar.gz", &data),
    ];
    Ok(Product::new(
        format!("dwell_{}_{}.deb", inputs.version, inputs.processor.debian()),
        ar(&members, inputs.time)?,
    ))
}

/// The files of a system on which dwell is installed.
///
/// # Errors
/// See [`jar::api_jar`].
pub fn installed(inputs: &Inputs) -> Result<Vec<Entry>> {
    let mut files = vec![
        Entry::program("usr/bin/dwell", inputs.command.clone()),
        Entry::file("usr/lib/dwell/dwell-api.jar", jar::api_jar(inputs)?),
        Entry::file("usr/share/doc/dwell/copyright", inputs.license.clone()),
        Entry::file(
            "usr/share/doc/dwell/THIRD-PARTY.txt",
            inputs.notices.clone(),
        ),
        Entry::file(
            "usr/share/bash-completion/completions/dwell",
            inputs.completions[0].clone(),
        ),
        Entry::file(
            "usr/share/zsh/vendor-completions/_dwell",
            inputs.completions[1].clone(),
        ),
        Entry::file(
            "usr/share/fish/vendor_completions.d/dwell.fish",
            inputs.completions[2].clone(),
        ),
    ];
    for (name, bytes) in inputs.libraries() {
        files.push(Entry::file(format!("usr/lib/dwell/{name}"), bytes));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::super::archive::tests::read_with;
    use super::super::tests::{for_arm64, made};
    use super::*;

    /// The members of an `ar` archive: name and content.
    fn members(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut rest = &bytes[8..];
        let mut found = Vec::new();
        while !rest.is_empty() {
            let text = |from: usize, to: usize| {
                std::str::from_utf8(&rest[from..to])
                    .unwrap()
                    .trim_end()
                    .to_owned()
            };
            let len: usize = text(48, 58).parse().unwrap();
            found.push((text(0, 16), rest[60..60 + len].to_vec()));
            rest = &rest[60 + len.next_multiple_of(2)..];
        }
        found
    }

    #[test]
    fn deb_has_version_control_and_data_in_order() {
        let deb = deb(&made()).unwrap();
        assert_eq!(deb.name, "dwell_1.2.3_amd64.deb");
        let members = members(&deb.bytes);
        let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["debian-binary", "control.tar.gz", "data.tar.gz"]);
        let control = read_with("tar", &["-xzOf", "-", "./control"], &members[1].1);
        assert!(control.starts_with("Package: dwell\nVersion: 1.2.3\n"));
        assert!(control.contains("\n waiting for a CPU"), "{control}");
        let data = read_with("tar", &["-tzf", "-"], &members[2].1);
        for path in [
            "./usr/bin/dwell",
            "./usr/lib/dwell/libdwell.so",
            "./usr/lib/dwell/libmono_profiler_dwell.so",
            "./usr/share/doc/dwell/copyright",
        ] {
            assert!(data.lines().any(|line| line == path), "{path} in {data}");
        }
        assert!(data.starts_with("./\n"), "the root comes first");
    }

    #[test]
    fn deb_for_arm64_names_its_processor() {
        let deb = deb(&for_arm64()).unwrap();
        assert_eq!(deb.name, "dwell_1.2.3_arm64.deb");
        let control = &members(&deb.bytes)[1].1;
        let control = read_with("tar", &["-xzOf", "-", "./control"], control);
        assert!(control.contains("\nArchitecture: arm64\n"), "{control}");
    }
}

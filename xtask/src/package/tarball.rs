//! The archive for any Linux: unpack it anywhere. Pure.

use super::archive::{Entry, gzip, tar};
use super::{Inputs, Product, jar};
use anyhow::Result;

/// `dwell-VERSION-linux-PROCESSOR.tar.gz`.
///
/// # Errors
/// See [`tar`].
pub fn tarball(inputs: &Inputs) -> Result<Product> {
    let top = format!(
        "dwell-{}-linux-{}",
        inputs.version,
        inputs.processor.linux()
    );
    let file = |path: &str, bytes: &[u8]| Entry::file(format!("{top}/{path}"), bytes);
    let mut entries = vec![
        Entry::program(format!("{top}/bin/dwell"), inputs.command.clone()),
        file("java/dwell-api.jar", &jar::api_jar(inputs)?),
        file("LICENSE", inputs.license.as_bytes()),
        file("THIRD-PARTY.txt", inputs.notices.as_bytes()),
        file("README.md", readme(inputs).as_bytes()),
        file("completions/dwell.bash", &inputs.completions[0]),
        file("completions/_dwell", &inputs.completions[1]),
        file("completions/dwell.fish", &inputs.completions[2]),
    ];
    for (name, bytes) in inputs.libraries() {
        entries.push(file(&format!("lib/{name}"), &bytes));
    }
    Ok(Product::new(
        format!("{top}.tar.gz"),
        gzip(&tar(&entries, "", inputs.time)?)?,
    ))
}

/// Without the line about a library that the archive lacks.
fn readme(inputs: &Inputs) -> String {
    let lines = include_str!("readme.txt").split_inclusive('\n');
    lines
        .filter(|line| !line.contains("libmono") || !inputs.mono.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::archive::tests::read_with;
    use super::super::tests::{for_arm64, made};
    use super::*;

    #[test]
    fn tarball_has_command_libraries_and_licences() {
        let tarball = tarball(&made()).unwrap();
        assert_eq!(tarball.name, "dwell-1.2.3-linux-x86_64.tar.gz");
        let listed = read_with("tar", &["-tzf", "-"], &tarball.bytes);
        let files: Vec<&str> = listed
            .lines()
            .filter_map(|line| line.strip_prefix("dwell-1.2.3-linux-x86_64/"))
            .filter(|path| !path.is_empty() && !path.ends_with('/'))
            .collect();
        assert_eq!(
            files,
            [
                "LICENSE",
                "README.md",
                "THIRD-PARTY.txt",
                "bin/dwell",
                "completions/_dwell",
                "completions/dwell.bash",
                "completions/dwell.fish",
                "java/dwell-api.jar",
                "lib/libdwell.so",
                "lib/libmono_profiler_dwell.so",
            ]
        );
    }

    #[test]
    fn tarball_for_arm64_has_its_name_and_no_module_for_mono() {
        let tarball = tarball(&for_arm64()).unwrap();
        assert_eq!(tarball.name, "dwell-1.2.3-linux-aarch64.tar.gz");
        let listed = read_with("tar", &["-tzf", "-"], &tarball.bytes);
        assert!(listed.contains("dwell-1.2.3-linux-aarch64/lib/libdwell.so\n"));
        assert!(!listed.contains("mono"), "{listed}");
        let readme = "dwell-1.2.3-linux-aarch64/README.md";
        let readme = read_with("tar", &["-xzOf", "-", readme], &tarball.bytes);
        assert!(readme.contains("lib/libdwell.so") && !readme.contains("libmono"));
    }
}

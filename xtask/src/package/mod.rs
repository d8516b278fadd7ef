//! `package`: makes packages from the products of `./dwell build`, for installation without Rust,
//! Node.js or a JDK.
//!
//! Two runs at one commit make the same bytes: all times are `SOURCE_DATE_EPOCH` or that of the
//! commit. Nothing is uploaded.
//!
//! Read next: [`archive`] and [`zip_archive`] (the containers), [`components`] (the crates that are
//! linked). Each of the other modules makes one kind of package.

pub mod archive;
pub mod components;
pub mod deb;
pub mod jar;
pub mod oci;
pub mod rpm;
pub mod sbom;
pub mod sha256;
pub mod tarball;
pub mod wheel;
pub mod zip_archive;

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: &str =
    "usage: cargo xtask package [--arm64] [--out DIR]    (default: target/packages)";
/// The shells with completions, in the order of [`Inputs::completions`].
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// A processor that packages are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processor {
    /// x86-64: all kinds of packages.
    #[default]
    X86,
    /// arm64: the archive and the package for Debian.
    Arm64,
}

impl Processor {
    /// Its name in Linux.
    #[must_use]
    pub fn linux(self) -> &'static str {
        match self {
            Processor::X86 => "x86_64",
            Processor::Arm64 => "aarch64",
        }
    }

    /// Its name in Debian.
    #[must_use]
    pub fn debian(self) -> &'static str {
        match self {
            Processor::X86 => "amd64",
            Processor::Arm64 => "arm64",
        }
    }

    /// Its target in Rust.
    #[must_use]
    pub fn rust(self) -> String {
        format!("{}-unknown-linux-gnu", self.linux())
    }
}

/// The contents of packages.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// dwell's version.
    pub version: String,
    /// The processor of command and libraries.
    pub processor: Processor,
    /// The time of all files, in seconds since 1970.
    pub time: u64,
    /// The command `dwell`.
    pub command: Vec<u8>,
    /// `libdwell.so`.
    pub agent: Vec<u8>,
    /// `libmono_profiler_dwell.so`; empty where Mono is not supported.
    pub mono: Vec<u8>,
    /// The jar with the Java API.
    pub api_jar: Vec<u8>,
    /// The jar with the classes of the agent's jar.
    pub agent_classes: Vec<u8>,
    /// dwell's licence.
    pub license: String,
    /// The licences of others' work.
    pub notices: String,
    /// The list of components.
    pub sbom: String,
    /// Scripts that complete commands in bash, zsh and fish.
    pub completions: [Vec<u8>; 3],
}

impl Inputs {
    /// The libraries, with their names.
    pub fn libraries(&self) -> impl Iterator<Item = (&'static str, Vec<u8>)> {
        let all = [
            ("libdwell.so", self.agent.clone()),
            ("libmono_profiler_dwell.so", self.mono.clone()),
        ];
        all.into_iter().filter(|(_, bytes)| !bytes.is_empty())
    }
}

/// A file that is given away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// Its name.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl Product {
    /// A product.
    #[must_use]
    pub fn new(name: String, bytes: impl Into<Vec<u8>>) -> Product {
        Product {
            name,
            bytes: bytes.into(),
        }
    }
}

/// Runs the task: writes the packages, and prints their sizes.
///
/// # Errors
/// A wrong option, or a product that is missing or needs this machine's libc.
pub fn run(arguments: &[String]) -> Result<bool> {
    let (has_arm64, arguments) = match arguments {
        [option, rest @ ..] if option == "--arm64" => (true, rest),
        _ => (false, arguments),
    };
    let out = match arguments {
        [] => target().join("packages"),
        [option, dir] if option == "--out" && !dir.starts_with('-') => PathBuf::from(dir),
        _ => bail!("{USAGE}"),
    };
    let inputs = read(&crate::repository(), &target())?;
    let arm64 = match has_arm64 {
        true => Some(read_arm64(&inputs, &crate::repository(), &target())?),
        false => None,
    };
    let products = products(&inputs, arm64.as_ref())?;
    std::fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
    for product in &products {
        let path = out.join(&product.name);
        // Renamed into place, so that there is never half a package.
        let new = out.join(format!(".{}.new", product.name));
        std::fs::write(&new, &product.bytes)
            .and_then(|()| std::fs::rename(&new, &path))
            .with_context(|| format!("writing {}", path.display()))?;
        println!("{:>10} bytes  {}", product.bytes.len(), path.display());
    }
    Ok(true)
}

/// All packages, sorted by name, and `SHA256SUMS`, which lists them.
///
/// # Errors
/// An input of which no package can be made.
pub fn products(inputs: &Inputs, arm64: Option<&Inputs>) -> Result<Vec<Product>> {
    let mut products = jar::jars(inputs)?;
    if let Some(arm64) = arm64 {
        products.push(tarball::tarball(arm64)?);
        products.push(deb::deb(arm64)?);
    }
    products.push(tarball::tarball(inputs)?);
    products.push(wheel::wheel(inputs)?);
    products.push(deb::deb(inputs)?);
    products.push(oci::image(inputs)?);
    products.push(rpm::rpm(inputs)?);
    products.push(Product::new(
        format!("dwell-{}.cdx.json", inputs.version),
        inputs.sbom.clone(),
    ));
    products.sort_by(|a, b| a.name.cmp(&b.name));
    let sums: Vec<String> = products
        .iter()
        .map(|product| format!("{}  {}\n", sha256::hex(&product.bytes), product.name))
        .collect();
    products.push(Product::new("SHA256SUMS".to_owned(), sums.concat()));
    Ok(products)
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| crate::repository().join("target"), PathBuf::from)
}

/// A product of the build.
fn built(path: &Path, by: &str) -> Result<Vec<u8>> {
    let missing = || format!("{}: build it first: {by}", path.display());
    std::fs::read(path).with_context(missing)
}

/// A product that runs with each libc.
fn portable(path: &Path, by: &str) -> Result<Vec<u8>> {
    let bytes = built(path, by)?;
    match crate::portable::problems(&bytes)?.first() {
        None => Ok(bytes),
        Some(problem) => bail!("{} is not for other machines: it {problem}", path.display()),
    }
}

/// The contents for arm64, as far as they differ. Mono is not supported there.
fn read_arm64(inputs: &Inputs, root: &Path, target: &Path) -> Result<Inputs> {
    let processor = Processor::Arm64;
    let built = target.join("arm64").join(processor.rust());
    let portable = |path: &str| portable(&built.join(path), "xtask/arm64 --build");
    Ok(Inputs {
        processor,
        command: portable("cli/dwell")?,
        agent: portable("release/libdwell.so")?,
        mono: Vec::new(),
        notices: components::notices(&components::linked(root, &processor.rust())?),
        ..inputs.clone()
    })
}

fn read(root: &Path, target: &Path) -> Result<Inputs> {
    const BY: &str = "./dwell build";
    let portable = |path: &str| portable(&target.join(path), BY);
    let java = root.join("target/java");
    let command = target.join("cli/dwell");
    let processor = Processor::X86;
    let components = components::linked(root, &processor.rust())?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let time = time(root)?;
    Ok(Inputs {
        time,
        command: portable("cli/dwell")?,
        agent: portable("release/libdwell.so")?,
        mono: portable("release/libmono_profiler_dwell.so")?,
        api_jar: built(&java.join("dwell-api.jar"), BY)?,
        agent_classes: built(&java.join("dwell-agent-classes.jar"), BY)?,
        license: std::fs::read_to_string(root.join("LICENSE"))?,
        notices: components::notices(&components),
        sbom: sbom::list(&version, time, &components),
        completions: [
            completions(&command, SHELLS[0])?,
            completions(&command, SHELLS[1])?,
            completions(&command, SHELLS[2])?,
        ],
        version,
        processor,
    })
}

fn completions(command: &Path, shell: &str) -> Result<Vec<u8>> {
    let output = Command::new(command)
        .args(["completions", shell])
        .output()?;
    if !output.status.success() {
        bail!(
            "{} completions {shell}: {}",
            command.display(),
            output.status
        );
    }
    Ok(output.stdout)
}

/// `SOURCE_DATE_EPOCH`, or the time of the commit.
fn time(root: &Path) -> Result<u64> {
    const VARIABLE: &str = "SOURCE_DATE_EPOCH";
    let (text, source) = match std::env::var(VARIABLE) {
        Ok(text) => (text, VARIABLE),
        Err(_) => {
            let mut git = Command::new("git");
            let output = git
                .args(["log", "-1", "--format=%ct"])
                .current_dir(root)
                .output();
            let output = output.map(|output| output.stdout).unwrap_or_default();
            (String::from_utf8_lossy(&output).into_owned(), "git log")
        }
    };
    let seconds = text.trim().parse();
    seconds.with_context(|| format!("{source} has no time; set {VARIABLE} to seconds since 1970"))
}

/// A time as `2026-11-29T10:00:00Z`.
fn date(time: u64) -> String {
    let (days, second) = (time / 86_400, time % 86_400);
    // Years begin in March, so that the day that is added comes last. An era has 400 years.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..=9 => (era * 400 + year, month + 3),
        _ => (era * 400 + year + 1, month - 9),
    };
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::archive::Entry;
    use super::*;

    /// Inputs of a few bytes.
    pub fn made() -> Inputs {
        let class = |path: &str| {
            let manifest = Entry::file("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n\r\n");
            zip_archive::zip(Some(&manifest), &[Entry::file(path, "class")]).unwrap()
        };
        Inputs {
            version: "1.2.3".to_owned(),
            processor: Processor::X86,
            time: 1_700_000_000,
            command: b"command".to_vec(),
            agent: b"agent".to_vec(),
            mono: b"mono".to_vec(),
            api_jar: class("io/dwell/api/Dwell.class"),
            agent_classes: class("io/dwell/agent/DwellAgent.class"),
            license: "licence".to_owned(),
            notices: "notices".to_owned(),
            sbom: "{}\n".to_owned(),
            completions: SHELLS.map(|shell| shell.as_bytes().to_vec()),
        }
    }

    /// The same for arm64.
    pub fn for_arm64() -> Inputs {
        Inputs {
            processor: Processor::Arm64,
            mono: Vec::new(),
            ..made()
        }
    }

    #[test]
    fn products_are_the_same_bytes_in_each_run() {
        let products = || products(&made(), Some(&for_arm64())).unwrap();
        assert_eq!(products(), products());
    }

    #[test]
    fn order_and_time_of_a_built_jar_change_no_byte() {
        let mut other = made();
        let entries = zip_archive::unzip(&other.api_jar).unwrap();
        other.api_jar = zip_archive::zip(Some(&entries[1]), &entries[..1]).unwrap();
        // The times of both local headers.
        other.api_jar[10] = 0x55;
        assert_ne!(other.api_jar, made().api_jar);
        let products = |inputs: &Inputs| products(inputs, None).unwrap();
        assert_eq!(products(&other), products(&made()));
    }

    #[test]
    fn sums_list_every_other_product() {
        let products = products(&made(), Some(&for_arm64())).unwrap();
        let (sums, others) = products.split_last().unwrap();
        assert_eq!(sums.name, "SHA256SUMS");
        let expected: String = others
            .iter()
            .map(|product| format!("{}  {}\n", sha256::hex(&product.bytes), product.name))
            .collect();
        assert_eq!(String::from_utf8(sums.bytes.clone()).unwrap(), expected);
        assert_eq!(others.len(), 12);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (time, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date(time), expected);
        }
    }

    #[test]
    fn unknown_options_are_refused_with_the_usage() {
        for bad in [&["--out"][..], &["x"], &["--out", "--all"]] {
            let arguments: Vec<String> = bad.iter().map(|&text| text.to_owned()).collect();
            let error = run(&arguments).unwrap_err().to_string();
            assert!(error.starts_with("usage: "), "{error}");
        }
    }
}

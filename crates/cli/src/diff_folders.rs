//! `dwell diff` of two directories: their benchmarks, matched by name. The profiler for JMH writes
//! such directories, see docs/jmh.md.

use crate::args::{Diff, PerWhat};
use crate::{Usage, diff, long_work, recording};
use anyhow::{Context, Result, anyhow, bail};
use dwell_profile::Profile;
use dwell_profile::diff::Per;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Benchmarks of a directory by name, each with the recordings of its forks.
type Benchmarks = BTreeMap<String, Vec<PathBuf>>;

/// The benchmark and the fork, from 1, of a recording with this file name.
fn benchmark(file_name: &str) -> Option<(&str, u32)> {
    let stem = file_name.strip_suffix(".jfr")?;
    let fork = stem.rsplit_once("-fork").and_then(|(name, fork)| {
        let is_number = fork.bytes().all(|byte| byte.is_ascii_digit());
        let number = fork.parse::<u32>().ok().filter(|_| is_number)?;
        (number >= 2 && !name.is_empty()).then_some((name, number))
    });
    match fork {
        Some(fork) => Some(fork),
        None if stem.is_empty() => None,
        None => Some((stem, 1)),
    }
}

/// The benchmarks with these recordings, the forks in their order.
fn grouped(files: impl IntoIterator<Item = PathBuf>) -> Benchmarks {
    let mut found: BTreeMap<String, BTreeMap<u32, PathBuf>> = BTreeMap::new();
    for file in files {
        let name = file.file_name().map(|name| name.to_string_lossy());
        if let Some((name, fork)) = name.as_deref().and_then(benchmark) {
            found.entry(name.to_owned()).or_default().insert(fork, file);
        }
    }
    let forks =
        |(name, forks): (String, BTreeMap<u32, PathBuf>)| (name, forks.into_values().collect());
    found.into_iter().map(forks).collect()
}

/// The benchmarks of a directory.
fn benchmarks(directory: &Path) -> Result<Benchmarks> {
    let shown = || recording::shown(directory);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(shown)? {
        files.push(entry.with_context(shown)?.path());
    }
    let found = grouped(files);
    if found.is_empty() {
        bail!(
            "{}: no recording (*.jfr) is in it; see docs/jmh.md",
            shown()
        );
    }
    Ok(found)
}

/// Benchmarks of both directories, of the first only, and of the second only.
struct Matched<'m> {
    both: Vec<(&'m str, [&'m [PathBuf]; 2])>,
    only: [Vec<&'m str>; 2],
}

fn matched<'m>(a: &'m Benchmarks, b: &'m Benchmarks) -> Matched<'m> {
    let both = a.iter().filter_map(|(name, of_a)| {
        let of_b = b.get(name)?;
        Some((name.as_str(), [of_a.as_slice(), of_b.as_slice()]))
    });
    let missing = |from: &'m Benchmarks, other: &Benchmarks| {
        let names = from.keys().filter(|name| !other.contains_key(*name));
        names.map(String::as_str).collect::<Vec<_>>()
    };
    Matched {
        both: both.collect(),
        only: [missing(a, b), missing(b, a)],
    }
}

/// The recordings of all forks as one. The times between them do not count.
fn load(files: &[PathBuf], args: &Diff) -> Result<Profile> {
    let secrets = args.redaction.secrets();
    let [file] = files else {
        let (mut bytes, mut duration_ns) = (Vec::new(), 0u64);
        for file in files {
            let profile = recording::load_with(file, &secrets)?;
            duration_ns = duration_ns.saturating_add(profile.info().duration_ns);
            let shown = || recording::shown(file);
            bytes.extend(std::fs::read(file).with_context(shown)?);
        }
        let mut profile = recording::parsed(&bytes)?;
        profile.redact(&secrets);
        profile.set_duration_ns(duration_ns);
        return Ok(profile);
    };
    recording::load_with(file, &secrets)
}

/// A side of a comparison in words.
fn side(directory: &Path, name: &str, files: &[PathBuf]) -> String {
    let path = recording::shown(&directory.join(name));
    match files.len() {
        1 => path,
        forks => format!("{path} ({forks} forks)"),
    }
}

/// The text of the comparison of a benchmark, and the line of each exceeded limit.
struct Section {
    text: String,
    exceeded: Vec<String>,
}

fn section(args: &Diff, per: Per, name: &str, files: [&[PathBuf]; 2]) -> Result<Section> {
    let (a, b) = (load(files[0], args)?, load(files[1], args)?);
    let names = [side(&args.a, name, files[0]), side(&args.b, name, files[1])];
    let names = [names[0].as_str(), names[1].as_str()];
    let mut compared = dwell_report::compared(&a, &b, per).map_err(|why| anyhow!("{why}"))?;
    compared
        .check(&args.fail_on)
        .map_err(|why| anyhow!("--fail-on {why}"))?;
    Ok(Section {
        text: match (args.json, args.markdown) {
            (true, _) => compared.json(),
            (_, true) => compared.markdown(names),
            _ => compared.text(names),
        },
        exceeded: diff::exceeded(&compared),
    })
}

/// Options for two recordings only.
fn refuse_options(args: &Diff) -> Result<()> {
    let refused = [
        (args.output.is_some(), "--output"),
        (args.collapsed, "--collapsed"),
        (args.event.is_some(), "--event"),
        (args.per == PerWhat::Request, "--per request"),
    ];
    match refused.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => {
            let text = format!("{option} is for two recordings; leave it out for two directories");
            Err(Usage(text).into())
        }
        None => Ok(()),
    }
}

/// One line for the benchmarks that only one directory has; empty without any.
fn only(directory: &Path, names: &[&str]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let names: Vec<String> = names.iter().map(|name| dwell_report::plain(name)).collect();
    format!(
        "only in {}: {}\n",
        recording::shown(directory),
        names.join(", ")
    )
}

/// Compares the benchmarks of two directories. A benchmark that cannot be compared does not prevent
/// the others.
pub fn run(args: &Diff) -> Result<ExitCode> {
    let per = diff::per(args);
    refuse_options(args)?;
    let found = [benchmarks(&args.a)?, benchmarks(&args.b)?];
    let matched = matched(&found[0], &found[1]);
    let [a, b] = [&args.a, &args.b].map(|path| recording::shown(path));
    if matched.both.is_empty() {
        bail!("{a} and {b} have no benchmark in common: recordings are matched by file name");
    }
    let (mut rows, mut code) = (Vec::new(), ExitCode::SUCCESS);
    let mut failed = 0usize;
    for (place, (name, files)) in matched.both.iter().enumerate() {
        let shown = dwell_report::plain(name);
        let step = format!("dwell: comparing {shown}");
        let made = long_work::with_progress(&step, || section(args, per, name, *files));
        let section = match made {
            Ok(section) => section,
            Err(error) => {
                eprintln!("dwell: {shown}: {error:#}");
                failed += 1;
                continue;
            }
        };
        for line in &section.exceeded {
            eprintln!("dwell: {shown}: --fail-on {line}");
            code = ExitCode::from(diff::EXIT_GROWN);
        }
        if args.json {
            let value: Value = serde_json::from_str(&section.text)?;
            rows.push(json!({ "name": shown, "diff": value }));
            continue;
        }
        let gap = if place == 0 { "" } else { "\n" };
        let head = match args.markdown {
            true => format!("{gap}## {shown}\n\n"),
            false => format!("{gap}== {shown}\n"),
        };
        crate::print(&(head + &section.text))?;
    }
    let [only_a, only_b] = &matched.only;
    if args.json {
        let all = json!({ "version": 1, "benchmarks": rows, "onlyA": only_a, "onlyB": only_b });
        crate::print(&format!("{all:#}\n"))?;
    } else {
        let lines = only(&args.a, only_a) + &only(&args.b, only_b);
        let gap = if lines.is_empty() { "" } else { "\n" };
        crate::print(&(gap.to_owned() + &lines))?;
    }
    if failed > 0 {
        let all = matched.both.len();
        bail!("{failed} of {all} benchmarks could not be compared, see the lines above");
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_has_benchmark_and_fork() {
        for (name, expected) in [
            ("a.B.c-avgt.jfr", Some(("a.B.c-avgt", 1))),
            ("a.B.c-avgt-fork2.jfr", Some(("a.B.c-avgt", 2))),
            ("a.B.c-avgt-fork12.jfr", Some(("a.B.c-avgt", 12))),
            // Names of benchmarks that look like forks.
            ("a.B.c-fork.jfr", Some(("a.B.c-fork", 1))),
            ("a.B.c-fork1.jfr", Some(("a.B.c-fork1", 1))),
            ("a.B.c-fork+2.jfr", Some(("a.B.c-fork+2", 1))),
            (
                "a.B.c-fork99999999999.jfr",
                Some(("a.B.c-fork99999999999", 1)),
            ),
            ("-fork2.jfr", Some(("-fork2", 1))),
            (".jfr", None),
            ("a.B.c-avgt.html", None),
            ("a.B.c-avgt.jfr.gz", None),
        ] {
            assert_eq!(benchmark(name), expected, "{name}");
        }
    }

    #[test]
    fn benchmarks_with_other_numbers_of_forks_match() {
        let of = |folder: &str, names: &[&str]| {
            let path = |name: &&str| Path::new(folder).join(format!("{name}.jfr"));
            grouped(names.iter().map(path))
        };
        let a = of(
            "a",
            &["z-avgt-fork10", "z-avgt", "z-avgt-fork2", "old", "x-thrpt"],
        );
        let b = of("b", &["x-avgt", "z-avgt", "new"]);
        let matched = matched(&a, &b);
        let [only_a, only_b] = &matched.only;
        assert_eq!(only_a, &["old", "x-thrpt"]);
        assert_eq!(only_b, &["new", "x-avgt"]);
        let names: Vec<&str> = matched.both.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["z-avgt"]);
        let [of_a, of_b] = matched.both[0].1;
        let paths = |files: &[PathBuf]| files.iter().map(|it| it.display().to_string()).collect();
        let forks: Vec<String> = paths(of_a);
        assert_eq!(
            forks,
            ["a/z-avgt.jfr", "a/z-avgt-fork2.jfr", "a/z-avgt-fork10.jfr"]
        );
        assert_eq!(of_b, [PathBuf::from("b/z-avgt.jfr")]);
    }
}

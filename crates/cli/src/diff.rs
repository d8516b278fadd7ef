//! `dwell diff`.

use crate::args::{Diff, Event, PerWhat};
use crate::writing::{self, Named};
use crate::{Usage, convert, long_work, recording};
use anyhow::{Result, anyhow, bail};
use dwell_profile::diff::Per;
use dwell_profile::{Lack, Objects, Profile, WallFilter};
use dwell_report::{Compared, Outcome};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Exit code if a limit of growth is exceeded.
pub const EXIT_GROWN: u8 = 3;

/// The page's file.
fn output(args: &Diff) -> PathBuf {
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_os_string();
    args.output.clone().unwrap_or_else(|| {
        let mut name = stem(&args.b);
        name.push("-against-");
        name.push(stem(&args.a));
        name.push(".html");
        args.b.with_file_name(name)
    })
}

/// Writes the page.
fn page(args: &Diff, a: &Profile, b: &Profile, per: Per, output: &Path) -> Result<()> {
    let names = short_names(&args.a, &args.b);
    let named = match args.output {
        Some(_) => Named::ByUser,
        None => Named::ByDwell,
    };
    long_work::with_progress(&comparing(args), || {
        writing::write(output, named, &[&args.a, &args.b], |out| {
            dwell_report::compare_html(a, b, per, [&names[0], &names[1]], out)
        })
    })
}

/// The names of two files, with as many folders as are needed to distinguish them.
fn short_names(a: &Path, b: &Path) -> [String; 2] {
    let last = |path: &Path, count: usize| {
        let parts: Vec<_> = path.iter().rev().take(count).collect();
        let short: PathBuf = parts.into_iter().rev().collect();
        short.to_string_lossy().into_owned()
    };
    let depth = a.iter().count().max(b.iter().count());
    let names = (1..=depth).map(|count| [last(a, count), last(b, count)]);
    let whole = || [a, b].map(|path| path.to_string_lossy().into_owned());
    names
        .into_iter()
        .find(|[a, b]| a != b)
        .unwrap_or_else(whole)
}

/// Prints the differences, and writes the page unless it is not requested.
fn print_all(
    args: &Diff,
    compared: &Compared<'_>,
    (a, b): (&Profile, &Profile),
    per: Per,
) -> Result<()> {
    let names = [recording::shown(&args.a), recording::shown(&args.b)];
    let names = [names[0].as_str(), names[1].as_str()];
    if args.json {
        return crate::print(&compared.json());
    }
    if args.markdown {
        crate::print(&compared.markdown(names))?;
        return match &args.output {
            Some(output) => page(args, a, b, per, output),
            None => Ok(()),
        };
    }
    crate::print(&compared.text(names))?;
    if args.text {
        return Ok(());
    }
    let output = output(args);
    page(args, a, b, per, &output)?;
    crate::print(&format!("\n{}\n", recording::shown(&output)))
}

/// The exceeded limits, each in one line.
pub fn exceeded(compared: &Compared<'_>) -> Vec<String> {
    let verdicts = compared.verdicts().iter();
    let exceeded = verdicts.filter(|verdict| verdict.outcome == Outcome::Exceeded);
    exceeded.map(|verdict| verdict.line()).collect()
}

/// The exit code. An exceeded limit is printed to standard error.
fn exit_code(compared: &Compared<'_>) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for line in exceeded(compared) {
        eprintln!("dwell: --fail-on {line}");
        code = ExitCode::from(EXIT_GROWN);
    }
    code
}

/// Compares allocated or live objects, as text.
fn objects(args: &Diff, of: Objects) -> Result<()> {
    let refused = [
        (args.json, "--json"),
        (args.markdown, "--markdown"),
        (args.output.is_some(), "--output"),
        (args.per != PerWhat::Second, "--per"),
    ];
    if let Some((_, option)) = refused.iter().find(|(is_given, _)| *is_given) {
        let text = format!("{option} is for times; leave it out with -e alloc or -e live");
        return Err(Usage(text).into());
    }
    if !args.fail_on.is_empty() {
        let text = "--fail-on: leave -e out; allocations have the limit alloc>5%";
        return Err(Usage(text.to_owned()).into());
    }
    let (a, b) = both(args)?;
    let names = [recording::shown(&args.a), recording::shown(&args.b)];
    recording::warn_of_unread(&a, &args.a);
    recording::warn_of_unread(&b, &args.b);
    let grown = dwell_report::grown(&a, &b, of)
        .map_err(|why| anyhow!("{} and {}: {why}", names[0], names[1]))?;
    if !args.collapsed {
        return crate::print(&grown.text([&names[0], &names[1]]));
    }
    let mut out = Vec::new();
    grown.collapsed(&mut out)?;
    crate::print(&String::from_utf8_lossy(&out))
}

/// The present step, for people.
fn comparing(args: &Diff) -> String {
    let [a, b] = [&args.a, &args.b].map(|path| recording::shown(path));
    format!("dwell: comparing {a} with {b}")
}

/// Reads both recordings.
fn both(args: &Diff) -> Result<(Profile, Profile)> {
    let secrets = args.redaction.secrets();
    long_work::with_progress(&comparing(args), || {
        let a = recording::load_with(&args.a, &secrets)?;
        Ok((a, recording::load_with(&args.b, &secrets)?))
    })
}

/// The base of the comparison.
pub fn per(args: &Diff) -> Per {
    match args.per {
        PerWhat::Second => Per::Second,
        PerWhat::Request => Per::Request,
        PerWhat::Sample => Per::Sample,
    }
}

/// Compares two recordings.
pub fn run(args: &Diff) -> Result<ExitCode> {
    let done = |()| ExitCode::SUCCESS;
    let per = per(args);
    for (one, other) in [(&args.a, &args.b), (&args.b, &args.a)] {
        if one.is_dir() {
            let [one, other] = [one, other].map(|path| recording::shown(path));
            let text = format!("{one} is a directory, but {other} is not; give two of one kind");
            return Err(Usage(text).into());
        }
    }
    match args.event {
        Some(Event::Alloc) => return objects(args, Objects::Allocated).map(done),
        Some(Event::Live) => return objects(args, Objects::Alive).map(done),
        Some(Event::Cpu | Event::Wall) if !args.collapsed => {
            let text = "-e cpu and -e wall are for --collapsed; without it both are printed";
            return Err(Usage(text.to_owned()).into());
        }
        Some(Event::Lock) => {
            let text = "-e lock: two recordings are compared by cpu or wall; take wall for waits";
            return Err(Usage(text.to_owned()).into());
        }
        Some(Event::All) => return Err(convert::all_is_recorded()),
        Some(Event::Cpu | Event::Wall) | None => {}
    }
    let (a, b) = both(args)?;
    let names = [recording::shown(&args.a), recording::shown(&args.b)];
    let compare = || dwell_report::compared(&a, &b, per);
    let mut compared = long_work::with_progress(&comparing(args), compare)
        .map_err(|why| anyhow!("{} and {}: {why}", names[0], names[1]))?;
    compared
        .check(&args.fail_on)
        .map_err(|why| anyhow!("--fail-on {why}"))?;
    if !args.collapsed {
        print_all(args, &compared, (&a, &b), per)?;
        return Ok(exit_code(&compared));
    }
    recording::warn_of_unread(&a, &args.a);
    recording::warn_of_unread(&b, &args.b);
    let wall = (args.event == Some(Event::Wall)).then(WallFilter::default);
    let without = [(&a, &names[0]), (&b, &names[1])];
    let without = without.into_iter().find(|(profile, _)| !profile.has_wall());
    if let Some((profile, name)) = without.filter(|_| wall.is_some()) {
        let remedy = profile.info().remedy(Lack::Wall);
        bail!("-e wall: {name} has no wall time; {remedy}");
    }
    let mut out = Vec::new();
    compared.collapsed(wall.as_ref(), &mut out)?;
    crate::print(&String::from_utf8_lossy(&out)).map(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_file_names_get_the_folders_that_differ() {
        let names = |a: &str, b: &str| short_names(Path::new(a), Path::new(b));
        assert_eq!(names("x/a.jfr", "y/b.jfr"), ["a.jfr", "b.jfr"]);
        assert_eq!(names("x/z/a.jfr", "y/z/a.jfr"), ["x/z/a.jfr", "y/z/a.jfr"]);
        assert_eq!(names("a.jfr", "/y/a.jfr"), ["a.jfr", "y/a.jfr"]);
        assert_eq!(names("/y/a.jfr", "/y/a.jfr"), ["/y/a.jfr", "/y/a.jfr"]);
    }
}

//! `dwell diff`.

use crate::args::{Diff, Event, PerWhat};
use crate::writing::{self, Named};
use crate::{Usage, convert, recording};
use anyhow::{Result, anyhow, bail};
use dwell_profile::diff::Per;
use dwell_profile::{Lack, Objects, Profile, WallFilter};
use std::path::{Path, PathBuf};

/// Where the page goes.
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

/// Writes the page and says where it is.
fn page(args: &Diff, a: &Profile, b: &Profile, per: Per) -> Result<()> {
    let output = output(args);
    let file_name = |path: &Path| {
        let name = path.file_name().unwrap_or(path.as_os_str());
        name.to_string_lossy().into_owned()
    };
    let names = [file_name(&args.a), file_name(&args.b)];
    let named = match args.output {
        Some(_) => Named::ByUser,
        None => Named::ByDwell,
    };
    writing::write(&output, named, &[&args.a, &args.b], |out| {
        dwell_report::compare_html(a, b, per, [&names[0], &names[1]], out)
    })?;
    crate::print(&format!("\n{}\n", recording::shown(&output)))
}

/// Says which objects there are more of, in text alone.
fn objects(args: &Diff, of: Objects) -> Result<()> {
    let refused = [
        (args.json, "--json"),
        (args.output.is_some(), "--output"),
        (args.per != PerWhat::Second, "--per"),
    ];
    if let Some((_, option)) = refused.iter().find(|(is_given, _)| *is_given) {
        let text = format!("{option} is for times; leave it out with -e alloc and -e live");
        return Err(Usage(text).into());
    }
    let secrets = args.redaction.secrets();
    let (a, b) = (
        recording::load_with(&args.a, &secrets)?,
        recording::load_with(&args.b, &secrets)?,
    );
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

/// Says in what two recordings differ.
pub fn run(args: &Diff) -> Result<()> {
    match args.event {
        Some(Event::Alloc) => return objects(args, Objects::Allocated),
        Some(Event::Live) => return objects(args, Objects::Alive),
        Some(Event::Cpu | Event::Wall) if !args.collapsed => {
            let text = "-e cpu and -e wall are for --collapsed; without it both are told";
            return Err(Usage(text.to_owned()).into());
        }
        Some(Event::Lock) => {
            let text = "-e lock: two recordings are compared by cpu or wall; take wall for waits";
            return Err(Usage(text.to_owned()).into());
        }
        Some(Event::All) => return Err(convert::all_is_recorded()),
        Some(Event::Cpu | Event::Wall) | None => {}
    }
    let secrets = args.redaction.secrets();
    let (a, b) = (
        recording::load_with(&args.a, &secrets)?,
        recording::load_with(&args.b, &secrets)?,
    );
    let per = match args.per {
        PerWhat::Second => Per::Second,
        PerWhat::Request => Per::Request,
        PerWhat::Sample => Per::Sample,
    };
    let names = [recording::shown(&args.a), recording::shown(&args.b)];
    let compared = dwell_report::compared(&a, &b, per)
        .map_err(|why| anyhow!("{} and {}: {why}", names[0], names[1]))?;
    if args.json {
        return crate::print(&compared.json());
    }
    if args.collapsed {
        recording::warn_of_unread(&a, &args.a);
        recording::warn_of_unread(&b, &args.b);
    }
    if !args.collapsed {
        crate::print(&compared.text([&names[0], &names[1]]))?;
        return match args.text {
            true => Ok(()),
            false => page(args, &a, &b, per),
        };
    }
    let wall = (args.event == Some(Event::Wall)).then(WallFilter::default);
    let without = [(&a, &names[0]), (&b, &names[1])];
    let without = without.into_iter().find(|(profile, _)| !profile.has_wall());
    if let Some((profile, name)) = without.filter(|_| wall.is_some()) {
        let remedy = profile.info().remedy(Lack::Wall);
        bail!("-e wall: {name} has no wall time; {remedy}");
    }
    let mut out = Vec::new();
    compared.collapsed(wall.as_ref(), &mut out)?;
    crate::print(&String::from_utf8_lossy(&out))
}

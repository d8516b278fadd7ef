//! `dwell diff`.

use crate::args::{Diff, Event, PerWhat};
use crate::{Usage, recording};
use anyhow::{Result, anyhow, bail};
use dwell_profile::Profile;
use dwell_profile::WallFilter;
use dwell_profile::diff::Per;
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
    recording::write_file(&output, |out| {
        dwell_report::compare_html(a, b, per, [&names[0], &names[1]], out)
    })?;
    crate::print(&format!("\n{}\n", recording::shown(&output)))
}

/// Says in what two recordings differ.
pub fn run(args: &Diff) -> Result<()> {
    if args.event.is_some() && !args.collapsed {
        let text = "-e is for --collapsed; without it both CPU and wall time are told";
        return Err(Usage(text.to_owned()).into());
    }
    if args.event == Some(Event::Alloc) {
        let text = "-e alloc: two recordings are compared by time; take cpu or wall";
        return Err(Usage(text.to_owned()).into());
    }
    if args.event == Some(Event::Lock) {
        let text = "-e lock: two recordings are compared by cpu or wall; take wall for waits";
        return Err(Usage(text.to_owned()).into());
    }
    let (a, b) = (recording::load(&args.a)?, recording::load(&args.b)?);
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
    if wall.is_some() && !(a.has_wall() && b.has_wall()) {
        bail!(
            "-e wall: {} or {} has no wall time; record with -e cpu,wall",
            names[0],
            names[1]
        );
    }
    let mut out = Vec::new();
    compared.collapsed(wall.as_ref(), &mut out)?;
    crate::print(&String::from_utf8_lossy(&out))
}

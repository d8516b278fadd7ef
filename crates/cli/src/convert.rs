//! `dwell report` and `dwell convert`.

use crate::args::{Convert, Event, Report, Unit};
use crate::values::{self, Format};
use crate::{Usage, recording};
use anyhow::{Result, bail};
use dwell_profile::WallFilter;
use std::io::Write;
use std::path::Path;

/// `dwell report`.
pub fn report(args: &Report) -> Result<()> {
    if args.safepoints {
        let profile = recording::load(&args.input)?;
        return crate::print(&dwell_report::safepoints_text(&profile));
    }
    if args.text {
        return crate::print(&dwell_report::text(&recording::load(&args.input)?));
    }
    recording::refuse_directory(&args.input)?;
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| args.input.with_extension("html"));
    refuse_same(&args.input, &output)?;
    let profile = recording::load(&args.input)?;
    recording::write_html(&profile, &args.input, &output)?;
    crate::print(&format!("{}\n", recording::shown(&output)))
}

/// `dwell convert`.
pub fn convert(args: &Convert) -> Result<()> {
    let Some(format) = values::format_of(&args.output) else {
        bail!("-o {}: no format is called so", args.output.display());
    };
    if let Some(option) = of_stacks(args)
        && format != Format::Collapsed
    {
        let text = format!("{option} is for collapsed stacks only; leave it out, or -o .collapsed");
        return Err(Usage(text).into());
    }
    let wall = wall(args)?;
    recording::refuse_directory(&args.input)?;
    refuse_same(&args.input, &args.output)?;
    let profile = recording::load(&args.input)?;
    if wall.is_some() && !profile.has_wall() {
        let input = args.input.display();
        bail!("{input}: has no wall time; record with -e cpu,wall");
    }
    match format {
        Format::Html => recording::write_html(&profile, &args.input, &args.output),
        Format::Text => recording::write_file(&args.output, |out| {
            out.write_all(dwell_report::text(&profile).as_bytes())
        }),
        Format::Collapsed => {
            let unit = match args.unit.unwrap_or(Unit::Samples) {
                Unit::Samples => dwell_profile::Unit::Samples,
                Unit::Ns => dwell_profile::Unit::Nanoseconds,
            };
            let options = dwell_report::CollapsedOptions {
                unit,
                by_thread: args.threads,
                wall,
            };
            recording::write_file(&args.output, |out| {
                dwell_report::collapsed(&profile, &options, out)
            })
        }
    }
}

/// The first option given that is for collapsed stacks only.
fn of_stacks(args: &Convert) -> Option<&'static str> {
    [
        (args.threads, "--threads"),
        (args.unit.is_some(), "--unit"),
        (args.event.is_some(), "--event"),
        (!args.cause.is_empty(), "--cause"),
        (args.thread.is_some(), "--thread"),
        (args.endpoint.is_some(), "--endpoint"),
        (args.from.is_some(), "--from"),
        (args.to.is_some(), "--to"),
    ]
    .into_iter()
    .find(|(is_given, _)| *is_given)
    .map(|(_, option)| option)
}

/// Which wall time is wanted; none: CPU time.
fn wall(args: &Convert) -> Result<Option<WallFilter>> {
    let filter = WallFilter {
        causes: args.cause.clone(),
        thread: args.thread.clone(),
        endpoint: args.endpoint.clone(),
        from_ns: args.from.map(|time| time.as_nanos() as u64),
        to_ns: args.to.map(|time| time.as_nanos() as u64),
    };
    let is_filtered = filter != WallFilter::default();
    match args.event {
        Some(Event::Cpu) if is_filtered => {
            let text = "--cause, --thread, --endpoint, --from and --to are for wall time; \
                        leave out -e cpu";
            Err(Usage(text.to_owned()).into())
        }
        Some(Event::Cpu) => Ok(None),
        None if !is_filtered => Ok(None),
        Some(Event::Wall) | None => Ok(Some(filter)),
    }
}

/// Nobody wants the recording itself replaced.
fn refuse_same(input: &Path, output: &Path) -> Result<()> {
    let real = |path: &Path| path.canonicalize().ok();
    if real(input).is_some_and(|input| real(output) == Some(input)) {
        let output = output.display();
        let text = format!("-o {output}: is the recording itself; choose another name");
        return Err(Usage(text).into());
    }
    Ok(())
}

//! `dwell report` and `dwell convert`.

use crate::args::{Convert, Report, Unit};
use crate::values::{self, Format};
use crate::{Usage, recording};
use anyhow::{Result, bail};
use std::io::Write;
use std::path::Path;

/// `dwell report`.
pub fn report(args: &Report) -> Result<()> {
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
    let of_stacks = args.threads || args.unit.is_some();
    if of_stacks && format != Format::Collapsed {
        let option = if args.threads { "--threads" } else { "--unit" };
        let text = format!("{option} is for collapsed stacks only; leave it out, or -o .collapsed");
        return Err(Usage(text).into());
    }
    recording::refuse_directory(&args.input)?;
    refuse_same(&args.input, &args.output)?;
    let profile = recording::load(&args.input)?;
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
            };
            recording::write_file(&args.output, |out| {
                dwell_report::collapsed(&profile, &options, out)
            })
        }
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

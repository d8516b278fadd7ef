//! `dwell report` and `dwell convert`.

use crate::args::{Convert, Report, Unit};
use crate::recording;
use anyhow::{Result, bail};
use std::io::Write;
use std::path::PathBuf;

/// `dwell report`.
pub fn report(args: &Report) -> Result<()> {
    if args.text {
        return crate::print(&dwell_report::text(&recording::load(&args.input)?));
    }
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| args.input.with_extension("html"));
    refuse_same(&args.input, &output)?;
    let profile = recording::load(&args.input)?;
    recording::write_html(&profile, &args.input, &output)?;
    crate::print(&format!("{}\n", output.display()))
}

/// What an output's name asks for.
#[derive(Debug, PartialEq, Eq)]
enum Format {
    Collapsed,
    Html,
    Text,
}

fn format_of(output: &std::path::Path) -> Result<Format> {
    match output.extension().and_then(|ending| ending.to_str()) {
        Some("collapsed" | "folded") => Ok(Format::Collapsed),
        Some("html" | "htm") => Ok(Format::Html),
        Some("txt") => Ok(Format::Text),
        _ => bail!(
            "-o {}: name it .collapsed, .html or .txt to say the format",
            output.display()
        ),
    }
}

/// `dwell convert`.
pub fn convert(args: &Convert) -> Result<()> {
    let format = format_of(&args.output)?;
    refuse_same(&args.input, &args.output)?;
    let profile = recording::load(&args.input)?;
    match format {
        Format::Html => recording::write_html(&profile, &args.input, &args.output),
        Format::Text => recording::write_file(&args.output, |out| {
            out.write_all(dwell_report::text(&profile).as_bytes())
        }),
        Format::Collapsed => {
            let unit = match args.unit {
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
fn refuse_same(input: &std::path::Path, output: &std::path::Path) -> Result<()> {
    let real = |path: &std::path::Path| -> Option<PathBuf> { path.canonicalize().ok() };
    if real(input).is_some_and(|input| real(output) == Some(input)) {
        bail!("-o {}: is the recording itself", output.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn endings_choose_the_format() {
        let format = |name: &str| format_of(Path::new(name));
        assert_eq!(format("a.collapsed").unwrap(), Format::Collapsed);
        assert_eq!(format("a.b.html").unwrap(), Format::Html);
        assert_eq!(format("a.txt").unwrap(), Format::Text);
        assert!(
            format("a.pb.gz")
                .unwrap_err()
                .to_string()
                .contains(".collapsed, .html")
        );
    }
}

//! `dwell report` and `dwell convert`.

use crate::args::{Convert, Event, Report, Unit};
use crate::checked::{self, Format};
use crate::find::simple_name;
use crate::writing::{self, Identity, Named};
use crate::{Usage, long_work, recording, tables_dir};
use anyhow::{Result, bail};
use dwell_attach::options::{main_from_cmdline, main_from_java_command};
use dwell_export::{Encoding, Program};
use dwell_jfr::redact::Secrets;
use dwell_profile::{Lack, Profile, WallFilter};
use dwell_report::{Stacks, TextOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// `dwell report`.
pub fn report(args: &Report) -> Result<()> {
    let secrets = args.redaction.secrets();
    let making = recording::making(&args.input);
    if args.safepoints {
        let load = || recording::load_with(&args.input, &secrets);
        let profile = long_work::with_progress(&making, load)?;
        recording::warn_of_unread(&profile, &args.input);
        return crate::print(&dwell_report::safepoints_text(&profile));
    }
    if args.text {
        let options = TextOptions { idle: args.idle };
        let text = long_work::with_progress(&making, || -> Result<String> {
            let profile = recording::load_with(&args.input, &secrets)?;
            Ok(dwell_report::text_with(&profile, options))
        })?;
        return crate::print(&text);
    }
    recording::refuse_directory(&args.input)?;
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| args.input.with_extension("html"));
    if args.output.is_none() && output == args.input {
        let input = args.input.display();
        let text = format!("{input}: is named as a page; name a recording, or the page with -o");
        return Err(Usage(text).into());
    }
    refuse_same(&args.input, &output)?;
    let named = match args.output {
        Some(_) => Named::ByUser,
        None => Named::ByDwell,
    };
    let (profile, written) = long_work::with_progress(&making, || -> Result<_> {
        let profile = recording::load_with(&args.input, &secrets)?;
        let html = (&*output, named);
        let written = recording::write_html(&profile, &args.input, html, args.all_frames);
        Ok((profile, written))
    })?;
    recording::warn_of_unread(&profile, &args.input);
    written?;
    crate::print(&format!("{}\n", recording::shown(&output)))
}

/// `dwell convert`.
pub fn convert(args: &Convert) -> Result<()> {
    let format = format(args)?;
    if let Some(option) = of_stacks(args)
        && format != Format::Collapsed
    {
        let text = format!("{option} is for collapsed stacks only; leave it out, or --collapsed");
        return Err(Usage(text).into());
    }
    let stacks = stacks(args)?;
    recording::refuse_directory(&args.input)?;
    if let Some(output) = &args.output {
        refuse_same(&args.input, output)?;
    }
    let profile = recording::load_with(&args.input, &args.redaction.secrets())?;
    recording::warn_of_unread(&profile, &args.input);
    check(args, &profile, &stacks)?;
    if format == Format::Parquet {
        let dir = args.parquet.as_ref().or(args.output.as_ref());
        return tables_dir::write(&profile, dir.map_or(Path::new(""), |dir| dir));
    }
    let mut is_empty = false;
    match args.output.as_deref().filter(|output| *output != "-") {
        Some(output) => writing::write(output, Named::ByUser, &[&args.input], |out| {
            let written = write(args, format, &profile, &stacks, out);
            is_empty = written.map_err(std::io::Error::other)? == Written::Nothing;
            Ok(())
        })?,
        None => {
            let mut text = Vec::new();
            is_empty = write(args, format, &profile, &stacks, &mut text)? == Written::Nothing;
            crate::print_bytes(&text)?;
        }
    }
    if is_empty {
        note!("dwell: {}", empty_note(args, &stacks));
    }
    Ok(())
}

/// Whether the output has any content.
#[derive(PartialEq, Eq)]
enum Written {
    Something,
    Nothing,
}

/// A time as the options take it, to the millisecond.
fn seconds(time: Duration) -> String {
    format!("{}s", (time.as_secs_f64() * 1000.0).round() / 1000.0)
}

/// A note about an output without stacks, in one line.
fn empty_note(args: &Convert, stacks: &Stacks) -> String {
    let input = recording::shown(&args.input);
    let what = match stacks {
        Stacks::Cpu(_) => "CPU time",
        Stacks::Wall(_) => "wall time",
        Stacks::Allocated(_) => "allocations",
        Stacks::Alive(_) | Stacks::AliveObjects(_) => "live objects",
        Stacks::Locked(_) => "waits for locks",
        Stacks::Late => "late threads",
    };
    let time = |option, time: Option<Duration>| time.map(|time| (option, seconds(time)));
    let causes = (!args.cause.is_empty()).then(|| args.cause.join(","));
    let given: Vec<(&str, String)> = [
        causes.map(|causes| ("--cause", causes)),
        args.thread.clone().map(|name| ("--thread", name)),
        args.endpoint.clone().map(|name| ("--endpoint", name)),
        time("--from", args.from),
        time("--to", args.to),
    ]
    .into_iter()
    .flatten()
    .collect();
    if given.is_empty() {
        return format!("note: {input} has no {what}: the output is empty");
    }
    let has_name = args.thread.is_some() || args.endpoint.is_some();
    let names = if has_name {
        " (* in a name matches anything)"
    } else {
        ""
    };
    let given = given
        .iter()
        .map(|(option, value)| format!("{option} {value}"));
    let given = dwell_report::plain(&given.collect::<Vec<String>>().join(" "));
    format!("note: the output is empty: {input} has no {what} with {given}{names}")
}

/// The output's format: that of an option, else that of the output's name.
fn format(args: &Convert) -> Result<Format> {
    let said = [
        (args.collapsed, Format::Collapsed),
        (args.text, Format::Text),
        (args.html, Format::Html),
        (args.jfr, Format::Jfr),
        (args.pprof, Format::Pprof),
        (args.firefox, Format::Firefox),
        (args.speedscope, Format::Speedscope),
        (args.otlp, Format::Otlp),
        (args.otlp_json, Format::OtlpJson),
        (args.parquet.is_some(), Format::Parquet),
    ];
    let said = said.into_iter().find(|(is_said, _)| *is_said);
    let output = args.output.as_deref().unwrap_or(Path::new(""));
    match said
        .map(|(_, format)| format)
        .or_else(|| checked::format_of(output))
    {
        Some(format) => Ok(format),
        None => {
            let output = dwell_report::plain(&output.to_string_lossy());
            let text = format!(
                "--output {output}: name it .collapsed, .txt, .html, .jfr, .pb.gz, .json.gz, \
                 .speedscope.json, .otlp, .otlp.json or DIR/, or say --collapsed, --text, --html, \
                 --jfr, --pprof, --firefox, --speedscope, --otlp, --otlp-json or --parquet DIR"
            );
            Err(Usage(text).into())
        }
    }
}

/// Checks that the recording has the requested data.
fn check(args: &Convert, profile: &Profile, stacks: &Stacks) -> Result<()> {
    let input = args.input.display();
    let remedy = |lack| profile.info().remedy(lack);
    let recorded = Duration::from_nanos(profile.info().duration_ns);
    // Files of other tools may have no length.
    if let Some(from) = args
        .from
        .filter(|from| *from >= recorded && !recorded.is_zero())
    {
        bail!(
            "{input}: --from {} is after its end; it is {} long",
            seconds(from),
            seconds(recorded)
        );
    }
    match stacks {
        Stacks::Wall(_) if !profile.has_wall() => {
            bail!("{input}: has no wall time; {}", remedy(Lack::Wall));
        }
        Stacks::Allocated(_) if profile.allocations().is_empty() => {
            bail!("{input}: has no allocations; {}", remedy(Lack::Allocations))
        }
        Stacks::Alive(_) | Stacks::AliveObjects(_) if !profile.has_live() => {
            bail!(
                "{input}: has no data on live objects; {}",
                remedy(Lack::Live)
            )
        }
        Stacks::Locked(_) if !profile.has_locks() => {
            bail!("{input}: has no waits for locks; {}", remedy(Lack::Locks))
        }
        Stacks::Cpu(_)
            if args.unit == Some(Unit::Ns) && profile.unit() == dwell_profile::Unit::Samples =>
        {
            bail!("{input}: counts samples and no time; leave --unit ns out")
        }
        Stacks::Late if profile.late().is_empty() => bail!(
            "{input}: no thread was seen to be late for a safepoint; \
             leave --safepoints out, or record for longer"
        ),
        _ => Ok(()),
    }
}

fn write(
    args: &Convert,
    format: Format,
    profile: &Profile,
    stacks: &Stacks,
    out: &mut impl Write,
) -> Result<Written> {
    match format {
        Format::Html => recording::put_html(profile, &args.input, out)?,
        Format::Text => out.write_all(dwell_report::text(profile).as_bytes())?,
        Format::Jfr => dwell_report::interchange_jfr(profile, None, out)?,
        // Its output is a directory.
        Format::Parquet => return Ok(Written::Nothing),
        Format::Otlp | Format::OtlpJson => {
            let encoding = match format {
                Format::OtlpJson => Encoding::Json,
                _ => Encoding::Protobuf,
            };
            if dwell_export::otlp(
                profile,
                &program(profile, &args.redaction.secrets()),
                encoding,
                out,
            )? == 0
            {
                return Ok(Written::Nothing);
            }
        }
        Format::Firefox => {
            let output = args.output.as_deref().and_then(Path::extension);
            let is_packed = output.is_none_or(|ending| ending != "json");
            let program = program(profile, &args.redaction.secrets());
            if dwell_export::firefox(profile, &program, is_packed, out)? == 0 {
                return Ok(Written::Nothing);
            }
        }
        Format::Speedscope => {
            if dwell_export::speedscope(profile, &program(profile, &args.redaction.secrets()), out)?
                == 0
            {
                return Ok(Written::Nothing);
            }
        }
        Format::Pprof => {
            if dwell_export::pprof(profile, &program(profile, &args.redaction.secrets()), out)? == 0
            {
                return Ok(Written::Nothing);
            }
        }
        Format::Collapsed => {
            let unit = match args.unit.unwrap_or(usual_unit(stacks)) {
                Unit::Samples => dwell_profile::Unit::Samples,
                // The weight of a stack.
                Unit::Ns | Unit::Bytes | Unit::Objects => dwell_profile::Unit::Nanoseconds,
            };
            let options = dwell_report::CollapsedOptions {
                unit,
                by_thread: args.threads,
                stacks: stacks.clone(),
            };
            if dwell_report::collapsed(profile, &options, out)? == 0 {
                return Ok(Written::Nothing);
            }
        }
    }
    Ok(Written::Something)
}

/// The program that was recorded.
pub fn program(profile: &Profile, secrets: &Secrets) -> Program {
    let info = profile.info();
    let command = info.jvm_arguments.split_whitespace();
    let command: Vec<String> = command.map(str::to_owned).collect();
    let main = main_from_java_command(&info.java_arguments).or_else(|| main_from_cmdline(&command));
    Program {
        name: main.map_or(String::new(), |main| simple_name(&main).to_owned()),
        resource: crate::resource::from_environment(secrets),
    }
}

/// The default unit. Only samples of CPU time have equal weights: a wall-clock sample, a late
/// thread or a sampled object may weigh a thousand times as much as the next one.
fn usual_unit(stacks: &Stacks) -> Unit {
    match stacks {
        Stacks::Cpu(_) => Unit::Samples,
        Stacks::Wall(_) | Stacks::Late | Stacks::Locked(_) => Unit::Ns,
        Stacks::Allocated(_) | Stacks::Alive(_) | Stacks::AliveObjects(_) => Unit::Bytes,
    }
}

/// The first option given that only applies to collapsed stacks.
fn of_stacks(args: &Convert) -> Option<&'static str> {
    [
        (args.threads, "--threads"),
        (args.unit.is_some(), "--unit"),
        (args.safepoints, "--safepoints"),
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

/// The requested stacks.
fn stacks(args: &Convert) -> Result<Stacks> {
    if args.safepoints {
        return Ok(Stacks::Late);
    }
    let filter = WallFilter {
        causes: args.cause.clone(),
        thread: args.thread.clone(),
        endpoint: args.endpoint.clone(),
        from_ns: args.from.map(|time| time.as_nanos() as u64),
        to_ns: args.to.map(|time| time.as_nanos() as u64),
    };
    let is_of_objects = matches!(args.event, Some(Event::Alloc | Event::Live));
    let is_told_otherwise = match args.unit {
        Some(Unit::Bytes) => !is_of_objects,
        Some(Unit::Objects) => args.event != Some(Event::Live),
        Some(Unit::Ns) => is_of_objects,
        Some(Unit::Samples) | None => false,
    };
    if is_told_otherwise {
        let text = "--unit: bytes are for -e alloc and -e live, objects for -e live, \
                    ns for other events";
        return Err(Usage(text.to_owned()).into());
    }
    match args.event {
        Some(event @ (Event::Cpu | Event::Alloc | Event::Live | Event::Lock))
            if !filter.causes.is_empty() =>
        {
            let event = match event {
                Event::Alloc => "alloc",
                Event::Live => "live",
                Event::Lock => "lock",
                Event::Cpu | Event::Wall | Event::All => "cpu",
            };
            let text = format!("--cause is for wall time; leave out -e {event}");
            Err(Usage(text).into())
        }
        Some(Event::Alloc) => Ok(Stacks::Allocated(filter)),
        Some(Event::Live) if args.unit == Some(Unit::Objects) => Ok(Stacks::AliveObjects(filter)),
        Some(Event::Live) => Ok(Stacks::Alive(filter)),
        Some(Event::Lock) => Ok(Stacks::Locked(filter)),
        Some(Event::All) => Err(all_is_recorded()),
        Some(Event::Cpu) => Ok(Stacks::Cpu(filter)),
        // Only a cause is of wall time alone; a selection of time or threads changes no event.
        None if filter.causes.is_empty() => Ok(Stacks::Cpu(filter)),
        Some(Event::Wall) | None => Ok(Stacks::Wall(filter)),
    }
}

/// Stacks of several events cannot be added up.
pub fn all_is_recorded() -> anyhow::Error {
    let text = "-e all is for recording only; give one of cpu, wall, alloc, live, lock";
    Usage(text.to_owned()).into()
}

/// Refuses to replace the recording itself.
fn refuse_same(input: &Path, output: &Path) -> Result<()> {
    let is_same = Identity::at(input).is_some_and(|it| Identity::at(output) == Some(it));
    if is_same || input == output {
        let output = output.display();
        let text = format!("-o {output}: is the input; choose another name");
        return Err(Usage(text).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn parsed(options: &[&str]) -> Convert {
        let line = [&["dwell", "convert", "a.jfr", "--collapsed"], options].concat();
        match Cli::parse_from(line).command {
            Command::Convert(args) => args,
            _ => panic!("{options:?}: another command"),
        }
    }

    /// The note about an output without a stack, with these options.
    fn note(options: &[&str]) -> String {
        let args = parsed(options);
        empty_note(&args, &stacks(&args).unwrap())
    }

    #[test]
    fn unit_of_all_but_cpu_samples_is_their_weight() {
        for (options, expected) in [
            (&[][..], Unit::Samples),
            (&["-e", "cpu", "--thread", "a"], Unit::Samples),
            (&["-e", "wall"], Unit::Ns),
            (&["--cause", "park"], Unit::Ns),
            (&["--from", "1s"], Unit::Samples),
            (&["-e", "wall", "--from", "1s"], Unit::Ns),
            (&["-e", "lock"], Unit::Ns),
            (&["--safepoints"], Unit::Ns),
            (&["-e", "alloc"], Unit::Bytes),
            (&["-e", "live"], Unit::Bytes),
        ] {
            let stacks = stacks(&parsed(options)).unwrap();
            assert_eq!(usual_unit(&stacks), expected, "{options:?}");
        }
    }

    #[test]
    fn only_causes_select_wall_time() {
        let all: &[&[&str]] = &[
            &["--from", "1s"],
            &["--to", "9s"],
            &["--thread", "a"],
            &["--endpoint", "b"],
        ];
        for options in all {
            let is_cpu = matches!(stacks(&parsed(options)), Ok(Stacks::Cpu(_)));
            assert!(is_cpu, "{options:?}");
            let with_cause = [&["--cause", "park"], *options].concat();
            let is_wall = matches!(stacks(&parsed(&with_cause)), Ok(Stacks::Wall(_)));
            assert!(is_wall, "{options:?}");
        }
    }

    /// A profile of this length without any data.
    fn lasting(duration_ns: u64) -> Profile {
        let mut builder = dwell_profile::Builder::default();
        builder.info.duration_ns = duration_ns;
        builder.finish()
    }

    #[test]
    fn begin_after_the_end_is_refused() {
        let checked = |from: &str, ns| {
            let args = parsed(&["--from", from]);
            let checked = check(&args, &lasting(ns), &stacks(&args).unwrap());
            checked.map_err(|error| error.to_string())
        };
        const LONG_NS: u64 = 20_012_345_678;
        let text = "a.jfr: --from 25s is after its end; it is 20.012s long";
        assert_eq!(checked("25s", LONG_NS), Err(text.to_owned()));
        assert!(checked("20", 20_000_000_000).is_err());
        assert_eq!(checked("19s", LONG_NS), Ok(()));
        assert_eq!(checked("25s", 0), Ok(()), "of unknown length");
    }

    #[test]
    fn empty_result_names_the_options_to_change() {
        assert_eq!(
            note(&["-e", "cpu", "--thread", "nobody"]),
            "note: the output is empty: a.jfr has no CPU time with --thread nobody \
             (* in a name matches anything)"
        );
        assert_eq!(
            note(&[
                "--cause",
                "monitor,lock",
                "--from",
                "500ms",
                "--to",
                "1500ms"
            ]),
            "note: the output is empty: a.jfr has no wall time with --cause monitor,lock \
             --from 0.5s --to 1.5s"
        );
        assert_eq!(
            note(&["-e", "live", "--endpoint", "a\nb"]),
            "note: the output is empty: a.jfr has no live objects with --endpoint a\u{fffd}b \
             (* in a name matches anything)"
        );
        let nothing = "note: a.jfr has no CPU time: the output is empty";
        assert_eq!(note(&[]), nothing);
    }
}

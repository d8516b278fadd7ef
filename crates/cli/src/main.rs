//! The dwell command: reads the command line and calls the command's module.
//!
//! Errors are one line on standard error. The exit code is 2 for a wrong command line, 3 for a
//! limit of `diff --fail-on`, and 1 for other errors. `record -- PROGRAM` exits with the program's
//! code.
#![deny(unsafe_code)]

/// Prints a line for people to standard error. A closed terminal is no error, so that a recording
/// still ends in order.
macro_rules! note {
    ($($text:tt)*) => {
        drop(std::io::Write::write_fmt(
            &mut std::io::stderr().lock(),
            format_args!("{}\n", format_args!($($text)*)),
        ))
    };
}

mod agent;
mod args;
mod change;
mod checked;
mod completions;
mod control;
mod convert;
mod demo;
mod diff;
mod diff_folders;
#[cfg(test)]
mod documents_tests;
mod explain;
#[cfg(test)]
mod fenced;
mod find;
mod hint;
mod java;
mod lease;
mod long_work;
mod mcp;
mod mono;
mod ps;
mod query;
mod query_args;
mod record;
mod recording;
mod reply;
mod resource;
mod safepoints;
mod ship;
mod stacks;
mod sys;
mod tables_dir;
mod top;
mod unanswered;
mod units;
mod view;
mod writing;

use anyhow::Result;
use args::{Cli, Command};
use clap::CommandFactory;
use clap::error::ErrorKind;
use std::io::Write;
use std::process::ExitCode;

/// An error of the command line that only the command itself can find.
#[derive(Debug)]
struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

const EXIT_USAGE: u8 = 2;
const EXIT_FAILURE: u8 = 1;

fn main() -> ExitCode {
    sys::survive_limits_of_files();
    let cli = match args::parse_from(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match run(&cli.command) {
        Ok(code) => code,
        Err(error) => {
            note!("dwell: {}", one_line(&format!("{error:#}")));
            ExitCode::from(match error.is::<Usage>() {
                true => EXIT_USAGE,
                false => EXIT_FAILURE,
            })
        }
    }
}

fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Ps => print(&ps::run()?)?,
        Command::Record(args) => return record::run(args),
        Command::Start(args) => control::start(args)?,
        Command::Stop(args) => control::stop(args)?,
        Command::Dump(args) => control::dump(args)?,
        Command::Status(args) => control::status(args)?,
        Command::Safepoints(args) => safepoints::run(args)?,
        Command::Stacks(args) => stacks::run(args)?,
        Command::Top(args) => top::run(args)?,
        Command::Report(args) => convert::report(args)?,
        Command::View(args) => view::run(args)?,
        Command::Diff(args) if args.a.is_dir() && args.b.is_dir() => {
            return diff_folders::run(args);
        }
        Command::Diff(args) => return diff::run(args),
        Command::Explain(args) => explain::run(args)?,
        Command::Mcp(args) => mcp::run(args)?,
        Command::Convert(args) => convert::convert(args)?,
        Command::Query(args) => query::run(args)?,
        Command::Ship(args) => return ship::run(args),
        Command::InstallMono(args) => print(&mono::install(args)?)?,
        Command::Demo(args) => demo::run(args)?,
        Command::Completions(args) => print(&completions::script(args.shell))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints help in full, and an error of the command line in one line.
fn refuse(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(EXIT_USAGE))
        }
        kind => {
            let meant = match kind {
                // Values are checked first, because their errors are more precise.
                ErrorKind::UnknownArgument | ErrorKind::MissingRequiredArgument => {
                    let words: Vec<_> = std::env::args_os().skip(1).collect();
                    hint::program_without_dashes(&words)
                }
                _ => None,
            };
            let text = meant.unwrap_or_else(|| complaint(&error.render().to_string()));
            note!("dwell: {}", one_line(&text));
            ExitCode::from(EXIT_USAGE)
        }
    }
}

/// The first paragraph of an error, with its hint, and a reference to the help.
fn complaint(error: &str) -> String {
    let first: Vec<&str> = error.lines().take_while(|line| !line.is_empty()).collect();
    let first = first.join(" ");
    let what = first.strip_prefix("error: ").unwrap_or(&first);
    let hint = error
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("tip: "))
        .map_or(String::new(), |hint| format!(" ({hint})"));
    let command = Cli::command()
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .find(|name| {
            std::env::args_os()
                .nth(1)
                .is_some_and(|word| word == name.as_str())
        })
        .map_or(String::new(), |name| format!(" {name}"));
    format!("{what}{hint}; see dwell{command} --help")
}

/// Prints to standard output. A closed reader is no error.
fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

fn print_bytes(text: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

fn one_line(text: &str) -> String {
    dwell_report::plain(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

//! The dwell command: reads the command line and hands over to one module a command.
//!
//! Errors are one line on standard error; the exit code is 2 where the command line is at fault
//! and 1 for everything else. `record -- PROGRAM` exits with the program's code.
#![deny(unsafe_code)]

mod agent;
mod args;
mod control;
mod convert;
mod demo;
mod find;
mod findings;
mod java;
mod ps;
mod record;
mod recording;
mod reply;
mod sys;
mod units;

use anyhow::Result;
use args::{Cli, Command};
use clap::Parser;
use clap::error::ErrorKind;
use std::io::Write;
use std::process::ExitCode;

const EXIT_USAGE: u8 = 2;
const EXIT_FAILURE: u8 = 1;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match run(&cli.command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("dwell: {}", one_line(&format!("{error:#}")));
            ExitCode::from(EXIT_FAILURE)
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
        Command::Report(args) => convert::report(args)?,
        Command::Convert(args) => convert::convert(args)?,
        Command::Demo(args) => demo::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Help is printed whole; what is wrong with a command line on one line.
fn refuse(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(EXIT_USAGE))
        }
        _ => {
            let text = error.render().to_string();
            let first: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
            let first = one_line(&first.join(" "));
            let what = first.strip_prefix("error: ").unwrap_or(&first);
            eprintln!("dwell: {what}; see dwell --help");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

/// Prints to standard output; a reader that has gone away is no error.
fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

fn one_line(text: &str) -> String {
    dwell_report::plain(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

//! The project's own tasks: `cargo run -p xtask -- TASK`. Must not hold logic: see the library.

use anyhow::{Result, bail};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo run -p xtask -- TASK
  tidy                                 check the house rules over the whole repository
  tidy --language [PATH]...            list homely wording, in files whose paths begin with PATH
  tidy --lower                         lower the baseline of homely wording to the present counts
  handler-graph [--hook SYMBOL]... [LIBRARY]
                                       prove that signal handlers reach nothing forbidden;
                                       LIBRARY defaults to target/release/libdwell.so
  portable FILE...                     check that built files load with each glibc from 2.17 on and
                                       with musl
  package [--arm64] [--out DIR]        make packages of the products of `./dwell build`, into
                                       target/packages; also of `xtask/arm64 --build`
  test [--all] [--only TEXT]... [--list]
                                       run the tests, each by the rules of its kind; `./test`
                                       builds and installs what they need, and then runs this";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> Result<bool> {
    match arguments.split_first() {
        Some((task, rest)) if task == "tidy" => xtask::tidy::run(rest),
        Some((task, rest)) if task == "handler-graph" => xtask::graph::run(rest),
        Some((task, rest)) if task == "portable" => xtask::portable::run(rest),
        Some((task, rest)) if task == "package" => xtask::package::run(rest),
        Some((task, rest)) if task == "test" => xtask::suite::run(rest),
        _ => bail!("{USAGE}"),
    }
}

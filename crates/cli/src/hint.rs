//! Hints for a mistyped command line. Pure, except for a lookup in the search path.

use crate::args::Cli;
use crate::java;
use clap::{Arg, Command, CommandFactory};
use std::ffi::OsString;
use std::path::Path;

/// How to start a program, if `dwell record` was given a program without `--` before it, or `--`
/// without a program. `words` begins with the command, `record`.
pub fn program_without_dashes(words: &[OsString]) -> Option<String> {
    let [command, rest @ ..] = words else {
        return None;
    };
    if command != "record" {
        return None;
    }
    if rest.last().is_some_and(|word| word == "--") {
        let text = "a command is missing after --, such as: dwell record -- java -jar app.jar";
        return Some(text.to_owned());
    }
    if rest.iter().any(|word| word == "--") {
        return None;
    }
    let first = first_operand(rest)?;
    let (options, program) = rest.split_at(first);
    let name = program.first()?.to_str()?;
    if !java::is_program_name(name) {
        return None;
    }
    let shown = |words: &[OsString]| -> String {
        let words: Vec<String> = words.iter().map(quoted).collect();
        words.join(" ")
    };
    let options = match options {
        [] => String::new(),
        _ => format!(" {}", shown(options)),
    };
    Some(format!(
        "a program to be started needs -- before it: dwell record{options} -- {}",
        shown(program)
    ))
}

/// Index of the first word that is neither an option of `dwell record` nor an option's value.
fn first_operand(words: &[OsString]) -> Option<usize> {
    let cli = Cli::command();
    let record = cli.find_subcommand("record")?;
    let mut index = 0;
    loop {
        let word = words.get(index)?.to_str()?;
        if !word.starts_with('-') {
            return Some(index);
        }
        index += if takes_next(record, word) { 2 } else { 1 };
    }
}

/// Whether an option's value is the next word: `-d 30`, but not `-d30` or `--duration=30`.
fn takes_next(command: &Command, word: &str) -> bool {
    let is_it = |arg: &&Arg| match word.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg
            .get_short()
            .is_some_and(|short| word.strip_prefix('-') == Some(short.to_string().as_str())),
    };
    command
        .get_arguments()
        .find(is_it)
        .is_some_and(|arg| arg.get_action().takes_values())
}

/// A word, quoted for a shell.
pub fn quoted(word: &OsString) -> String {
    let word = word.to_string_lossy();
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%".contains(c);
    match !word.is_empty() && word.chars().all(harmless) {
        true => word.into_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// An addition to the message about an unknown name that may be a program.
pub fn for_unknown_name(name: &str) -> String {
    let is_program = java::is_launcher(Path::new(name)) || name.contains('/');
    match is_program && java::is_program_name(name) {
        true => format!("; to start a program: dwell record -- {name}"),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        program_without_dashes(&words)
    }

    #[test]
    fn forgotten_dashes_are_suggested() {
        for (typed, meant) in [
            ("record java -jar x.jar", "dwell record -- java -jar x.jar"),
            (
                "record -d 30 --engine=timer -i1ms /x/java Main",
                "dwell record -d 30 --engine=timer -i1ms -- /x/java Main",
            ),
            ("record sh run.sh", "dwell record -- sh run.sh"),
            (
                "record java -Da=$b Main",
                "dwell record -- java '-Da=$b' Main",
            ),
        ] {
            let hint = hint(typed).unwrap();
            assert!(hint.ends_with(&format!(": {meant}")), "{hint}");
        }
    }

    #[test]
    fn missing_program_has_a_hint() {
        for typed in ["record --", "record -d 30 --"] {
            assert!(hint(typed).unwrap().contains("missing after --"), "{typed}");
        }
    }

    #[test]
    fn other_mistakes_have_no_hint() {
        for typed in [
            "record",
            "record 1 2",
            "record -d soon 4711",
            "record -d java",
            "record No.Such.Program x",
            "record 1 -- java",
            "start java -jar x.jar",
            "",
        ] {
            assert_eq!(hint(typed), None, "{typed}");
        }
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        let quoted = |word: &str| quoted(&OsString::from(word));
        assert_eq!(quoted("a-b_1.jar"), "a-b_1.jar");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}

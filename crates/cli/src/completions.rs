//! `dwell completions`: scripts that complete commands and options in a shell. Made from the
//! command line's own definition, so they cannot lack an option.

use crate::args::{Cli, Shell};
use clap::CommandFactory;
use clap_complete::aot;

/// The script for a shell.
pub fn script(shell: Shell) -> String {
    let shell = match shell {
        Shell::Bash => aot::Shell::Bash,
        Shell::Zsh => aot::Shell::Zsh,
        Shell::Fish => aot::Shell::Fish,
    };
    let mut script = Vec::new();
    aot::generate(shell, &mut Cli::command(), "dwell", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// The long options that the help of a command lists.
    fn options_in_help(command: &mut clap::Command) -> Vec<String> {
        let help = command.render_long_help().to_string();
        let (_, options) = help.split_once("Options:").unwrap();
        let lines = options.lines().map(str::trim_start);
        let listed = lines.filter(|line| line.starts_with('-'));
        let long = listed.filter_map(|line| line.split_once("--"));
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        long.map(|(_, name)| name.chars().take_while(|c| is_of_name(*c)).collect())
            .collect()
    }

    /// The lines of a script that are about a command.
    fn part_of(script: &str, shell: Shell, command: &str) -> String {
        let (begin, end) = match shell {
            Shell::Bash => {
                // Its names of commands have no dashes.
                let id = command.replace('-', "__subcmd__");
                (
                    format!("\n        dwell__subcmd__{id})"),
                    "\n            ;;",
                )
            }
            Shell::Zsh => (format!("({command})\n"), "\n;;"),
            Shell::Fish => {
                let of = format!("__fish_dwell_using_subcommand {command}\"");
                let lines = script.lines().filter(|line| line.contains(&of));
                return lines.collect::<Vec<_>>().join("\n");
            }
        };
        let (_, rest) = script
            .split_once(&begin)
            .unwrap_or_else(|| panic!("no {begin:?} in {script}"));
        rest.split_once(end).unwrap().0.to_owned()
    }

    #[test]
    fn each_option_in_help_is_completed() {
        let mut all = 0;
        for shell in Shell::value_variants() {
            let script = script(*shell);
            let mut cli = Cli::command();
            cli.build();
            for command in cli
                .get_subcommands_mut()
                .filter(|it| it.get_name() != "help")
            {
                let name = command.get_name().to_owned();
                let part = part_of(&script, *shell, &name);
                for option in options_in_help(command) {
                    let word = match shell {
                        Shell::Fish => format!("-l {option}"),
                        _ => format!("--{option}"),
                    };
                    let ends = [' ', '"', '[', '=', '\'', '\n'];
                    let is_there = part.match_indices(&word).any(|(at, _)| {
                        let next = part[at + word.len()..].chars().next();
                        next.is_none_or(|next| ends.contains(&next))
                    });
                    assert!(is_there, "{shell:?}: {name}: {word}\n{part}");
                    all += 1;
                }
            }
        }
        assert!(all > 200, "{all}");
    }

    /// Whether a shell accepts a script on its standard input, and its output.
    fn fed(words: &[&str], script: &str) -> Option<(bool, String)> {
        let child = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            println!("not tried: {} is not installed", words[0]);
            return None;
        };
        child
            .stdin
            .take()
            .unwrap()
            .write_all(script.as_bytes())
            .unwrap();
        let done = child.wait_with_output().unwrap();
        let text = [done.stdout, done.stderr].concat();
        Some((done.status.success(), String::from_utf8(text).unwrap()))
    }

    #[test]
    fn shells_accept_their_scripts() {
        let bash = fed(&["bash", "-n"], &script(Shell::Bash));
        assert_eq!(bash, Some((true, String::new())));
        for (words, shell) in [(&["zsh", "-n"], Shell::Zsh), (&["fish", "-n"], Shell::Fish)] {
            if let Some(said) = fed(words, &script(shell)) {
                assert_eq!(said, (true, String::new()), "{shell:?}");
            }
        }
    }

    #[test]
    fn bash_completes_commands_options_and_values() {
        for (words, expected) in [
            ("dwell rec", vec!["record"]),
            ("dwell record --no-", vec!["--no-agent", "--no-redact"]),
            ("dwell record --engine k", vec!["kernel"]),
            ("dwell completions ", vec!["bash", "zsh", "fish"]),
        ] {
            let (before, last) = words.rsplit_once(' ').unwrap();
            let previous = before.rsplit(' ').next().unwrap();
            let number = words.split(' ').count() - 1;
            let asks = format!(
                "{}\nCOMP_WORDS=({before} \"{last}\")\nCOMP_CWORD={number}\n\
                 _dwell dwell \"{last}\" \"{previous}\"\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
                script(Shell::Bash)
            );
            let (_, said) = fed(&["bash", "--norc"], &asks).unwrap();
            let found: Vec<&str> = said.lines().collect();
            let is_there = |word: &&str| found.contains(word);
            assert!(expected.iter().all(is_there), "{words}: {said}");
            assert!(found.len() <= expected.len() + 2, "{words}: {said}");
        }
    }
}

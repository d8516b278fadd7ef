//! The command line of `dwell completions`.

use clap::{Args, ValueEnum};

/// `dwell completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(dwell completions bash)      for this shell
  dwell completions fish > ~/.config/fish/completions/dwell.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Shells with completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// For ~/.bashrc, or a file of bash-completion
    Bash,
    /// For a file `_dwell` in a folder of `$fpath`
    Zsh,
    /// For ~/.config/fish/completions/dwell.fish
    Fish,
}

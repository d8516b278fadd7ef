//! The options of `./test`. Pure.

use anyhow::{Result, bail};

const USAGE: &str = "usage: ./test [--all] [--only TEXT]... [--list]
  --all        all JDKs that are found, long statistics, minutes of chaos
  --only TEXT  Rust tests and parts whose name has this text; may be given several times
  --list       say what would be run, with the kinds, and run nothing";

/// The options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Everything, however long it takes.
    pub all: bool,
    /// Run only tests with one of these texts in their names; empty: all.
    pub only: Vec<String>,
    /// List the tests and exit.
    pub list: bool,
}

impl Options {
    /// Reads the words of a command line.
    ///
    /// # Errors
    /// A word that is no option, with the usage.
    pub fn parse(words: &[String]) -> Result<Options> {
        let mut options = Options::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--all" => options.all = true,
                "--list" => options.list = true,
                "--only" => match words.next() {
                    Some(text) if !text.is_empty() => options.only.push(text.clone()),
                    _ => bail!("--only needs a text\n{USAGE}"),
                },
                other => bail!("{other}: no such option\n{USAGE}"),
            }
        }
        Ok(options)
    }

    /// Whether something of this name is asked for.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|text| name.contains(text.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn words_become_options_or_are_refused_by_name() {
        assert_eq!(parsed("").unwrap(), Options::default());
        let options = parsed("--all --only wall --only jfr").unwrap();
        assert!(options.all && !options.list);
        assert!(options.wants("e2e/wall: x") && options.wants("jfr/lib: y"));
        assert!(!options.wants("walker/lib: z"));
        assert!(Options::default().wants("anything"));
        let refused = parsed("--fast").unwrap_err().to_string();
        assert!(refused.starts_with("--fast: no such option"), "{refused}");
        assert!(parsed("--only").is_err());
    }
}

//! DuckDB's command: where it is, and how it is run.

use crate::query_args::Form;
use crate::sys;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The environment variable that names DuckDB's command.
const VARIABLE: &str = "DWELL_DUCKDB";
/// The command on the search path.
const NAME: &str = "duckdb";

/// The part of a message of a version that lacks the setting for the files that it may open.
const CONFINED: &str = "configuration parameter \"allowed_paths\"";

/// DuckDB's command.
#[derive(Debug)]
pub struct Engine(PathBuf);

/// Finds the command.
///
/// # Errors
/// One line that says how to get it.
pub fn find() -> Result<Engine> {
    let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
    let paths = std::env::var_os("PATH").unwrap_or_default();
    match found(named, &paths) {
        Some(path) => Ok(Engine(path)),
        None => bail!(
            "query needs DuckDB: {NAME} is not on the search path; get it with \
             `pip install duckdb-cli`, or in a checkout with `./dwell get-duckdb`, or name it with \
             {VARIABLE}"
        ),
    }
}

/// The named command, else the first one on the search path. A relative path would depend on the
/// directory that the command runs in.
fn found(named: Option<OsString>, paths: &std::ffi::OsStr) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| path.is_file();
    match named {
        Some(path) => std::path::absolute(path).ok().filter(is_program),
        None => std::env::split_paths(paths)
            .filter(|dir| dir.is_absolute())
            .map(|dir| dir.join(NAME))
            .find(is_program),
    }
}

impl Engine {
    /// Prints the answer to `sql`, after the statements of `setup`, with `dir` as the directory of
    /// its files.
    ///
    /// # Errors
    /// DuckDB's message in one line.
    pub fn answer(&self, dir: &Path, setup: &[String], sql: &str, form: Form) -> Result<()> {
        let mut command = Command::new(&self.0);
        // The file of the user could change the form of answers.
        command.args(["-init", "/dev/null", "-no-stdin", "-batch", "-bail"]);
        command.arg(match form {
            Form::Table => "-box",
            Form::Csv => "-csv",
            Form::Json => "-json",
        });
        command.args(["-nullvalue", ""]);
        for statement in setup {
            command.args(["-c", statement]);
        }
        command.args(["-c", &statement(sql)]);
        command.current_dir(dir);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        // After Ctrl-C, which ends DuckDB, the links are removed.
        let _ = sys::count_interrupts();
        let child = command.spawn();
        let child = child.with_context(|| self.0.display().to_string())?;
        let done = child.wait_with_output()?;
        if done.status.success() || done.status.signal() == Some(libc::SIGPIPE) {
            return Ok(());
        }
        let message = complaint(&String::from_utf8_lossy(&done.stderr));
        let engine = self.0.display();
        match message.as_str() {
            "" => bail!("DuckDB: {}", done.status),
            text if text.contains(CONFINED) => bail!(
                "{engine} is too old: it cannot be confined to some files; update it with \
                 `pip install -U duckdb-cli`"
            ),
            text => bail!("DuckDB: {text}"),
        }
    }
}

/// The argument for a statement. DuckDB's command takes an argument that begins with a point for a
/// command of its own, such as `.shell`.
fn statement(sql: &str) -> String {
    format!("\n{sql}")
}

/// The first message, without the quoted lines of SQL.
fn complaint(errors: &str) -> String {
    let lines = errors.lines().map(str::trim);
    let message: Vec<&str> = lines
        .take_while(|line| !line.starts_with("LINE "))
        .collect();
    message.join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables_dir::PrivateDir;

    #[test]
    fn command_is_the_named_one_or_on_the_path() {
        let scratch = PrivateDir::create(&std::env::temp_dir()).unwrap();
        let path = scratch.path().join(NAME);
        std::fs::write(&path, "").unwrap();
        let paths = std::env::join_paths([Path::new("relative"), scratch.path()]).unwrap();
        assert_eq!(found(None, &paths), Some(path.clone()));
        assert_eq!(found(None, "".as_ref()), None);
        let named = scratch.path().join("other");
        assert_eq!(found(Some(named.clone().into()), &paths), None);
        std::fs::write(&named, "").unwrap();
        assert_eq!(found(Some(named.clone().into()), &paths), Some(named));
    }

    #[test]
    fn message_is_without_the_lines_of_sql() {
        let errors = "Binder Error: no column \"a\"!\nCandidate bindings: \"b\"\n\n\
                      LINE 1: SELECT a\n      ^\n";
        let expected = "Binder Error: no column \"a\"! Candidate bindings: \"b\"";
        assert_eq!(complaint(errors), expected);
        assert_eq!(complaint(""), "");
    }

    #[test]
    fn statement_is_never_a_command_of_the_prompt() {
        assert!(!statement(".shell date").starts_with('.'));
    }
}

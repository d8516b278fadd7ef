//! Finds the Rust tests: has cargo build them, and asks each program which tests it has.

use super::kind::Kind;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program to run.
    pub path: PathBuf,
    /// The crate's folder, in which its tests expect to be.
    pub folder: PathBuf,
    /// Crate and target, such as `e2e/wall`.
    pub name: String,
}

/// One Rust test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The program that has it.
    pub program: Program,
    /// Its path in the program.
    pub test: String,
    /// Its kind.
    pub kind: Kind,
}

impl Case {
    /// Program and test, such as `e2e/wall: threads_wait`. A crate whose programs of tests are one,
    /// called `all`, because each would be linked with nearly everything, has a module instead of
    /// each: the name is the same.
    #[must_use]
    pub fn name(&self) -> String {
        let package = self.program.name.strip_suffix("/all");
        match package.zip(self.test.split_once("::")) {
            Some((package, (module, test))) => format!("{package}/{module}: {test}"),
            None => format!("{}: {}", self.program.name, self.test),
        }
    }
}

/// The test programs among cargo's messages, one JSON object a line.
#[must_use]
pub fn programs(messages: &str) -> Vec<Program> {
    let one = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        let target = message["target"]["name"].as_str()?;
        let package = folder.file_name()?.to_str()?;
        let is_lib = message["target"]["kind"]
            .as_array()?
            .iter()
            .all(|kind| kind != "test" && kind != "bin");
        let target = if is_lib { "lib" } else { target };
        Some(Program {
            path: message["executable"].as_str()?.into(),
            folder: folder.to_owned(),
            name: format!("{package}/{target}"),
        })
    };
    messages.lines().filter_map(one).collect()
}

/// Cargo's arguments that make it build all test programs.
pub const BUILD: [&str; 5] = ["test", "--locked", "--workspace", "--no-run", "--quiet"];

/// Builds all test programs, with `variables` in cargo's environment; errors of the compiler go to
/// standard error.
///
/// # Errors
/// If the code does not compile, or a build has no test program.
pub fn build(root: &Path, variables: &[(&str, String)]) -> Result<Vec<Program>> {
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(root)
        .args(BUILD)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .arg("--message-format=json-render-diagnostics")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = cargo.output().context("cargo")?;
    if !output.status.success() {
        bail!("the tests do not compile");
    }
    let found = programs(&String::from_utf8_lossy(&output.stdout));
    if found.is_empty() {
        bail!("cargo made no test program");
    }
    Ok(found)
}

/// The tests of a program.
///
/// # Errors
/// If a program cannot list its tests.
pub fn cases(program: &Program) -> Result<Vec<Case>> {
    let mut command = Command::new(&program.path);
    command
        .args(["--list", "--format", "terse"])
        .current_dir(&program.folder)
        .stdin(Stdio::null());
    let output = command.output().with_context(|| program.name.clone())?;
    if !output.status.success() {
        bail!("{} does not list its tests", program.name);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let tests = text.lines().filter_map(|line| line.strip_suffix(": test"));
    let case = |test: &str| Case {
        program: program.clone(),
        test: test.to_owned(),
        kind: Kind::of(test),
    };
    Ok(tests.map(case).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_of_the_one_program_stands_for_a_program() {
        let name = |program: &str, test: &str| {
            let program = Program {
                path: PathBuf::new(),
                folder: PathBuf::new(),
                name: program.to_owned(),
            };
            let kind = Kind::of(test);
            let test = test.to_owned();
            Case {
                program,
                test,
                kind,
            }
            .name()
        };
        assert_eq!(name("e2e/all", "wall::waits"), "e2e/wall: waits");
        assert_eq!(name("e2e/all", "outside::a::b"), "e2e/outside: a::b");
        assert_eq!(name("wall/lib", "sums::add_up"), "wall/lib: sums::add_up");
        assert_eq!(name("wall/sums", "add_up"), "wall/sums: add_up");
    }

    #[test]
    fn test_programs_are_found_among_cargos_artifacts() {
        let artifact = |kind: &str, name: &str, test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/r/crates/wall/Cargo.toml",
                "target":{{"kind":["{kind}"],"name":"{name}"}},"profile":{{"test":{test}}},
                "executable":"/r/target/{name}"}}"#
            )
            .replace('\n', "")
        };
        let messages = [
            artifact("lib", "dwell_wall", true),
            artifact("test", "sums", true),
            artifact("bin", "tool", false),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            "no JSON at all".to_owned(),
        ];
        let found = programs(&messages.join("\n"));
        let names: Vec<&str> = found.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["wall/lib", "wall/sums"]);
        assert_eq!(found[0].folder, Path::new("/r/crates/wall"));
        assert_eq!(found[1].path, Path::new("/r/target/sums"));
    }
}

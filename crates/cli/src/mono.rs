//! Mono programs, from the side of the command. The module is part of this program, and the
//! environment of a starting Mono names it. Mono loads profilers at no other time.

use crate::args::InstallMono;
use crate::{Usage, agent};
use anyhow::{Context, Result, bail};
use dwell_attach::Library;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Environment variable with words for Mono's command line.
const MONO_OPTIONS: &str = "MONO_ENV_OPTIONS";
/// First search path of the loader for libraries.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";
const NAME: &str = "libmono-profiler-dwell.so";

/// The module.
pub const LIBRARY: Library<'static> = Library {
    name: NAME,
    bytes: include_bytes!(env!("DWELL_MONO_SO_PATH")),
};

/// Whether a program is Mono itself, by its name.
pub fn is_launcher(program: &Path) -> bool {
    let name = program.file_name().and_then(|name| name.to_str());
    name.is_some_and(dwell_attach::options::is_mono)
}

/// Name for a recording of `mono WORDS`: the program that it runs.
pub fn name_of(words: &[OsString]) -> Option<String> {
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let main = dwell_attach::options::main_of_mono(&words)?;
    let name = main.rsplit('/').next().unwrap_or(&main);
    let ended = [".exe", ".dll"]
        .iter()
        .find_map(|end| name.strip_suffix(end));
    Some(ended.unwrap_or(name).to_owned())
}

/// Makes any Mono that `command` starts record itself with these options, where dwell can record
/// Mono.
pub fn prepare(command: &mut Command, options: &str) -> Result<()> {
    if dwell_attach::check_mono().is_err() {
        return Ok(());
    }
    let module = dwell_attach::place_locally(&LIBRARY)?;
    let dir = module.parent().unwrap_or(Path::new("/"));
    let before = std::env::var_os(LIBRARY_PATH).filter(|paths| !paths.is_empty());
    let mut paths = dir.as_os_str().to_owned();
    if let Some(before) = before {
        paths.push(":");
        paths.push(before);
    }
    command.env(LIBRARY_PATH, paths);
    let before = std::env::var(MONO_OPTIONS).ok();
    command.env(MONO_OPTIONS, with_option(before, options));
    Ok(())
}

/// Adds the module to the user's own options. Mono splits at white space, and handles quotes and
/// backslashes like a shell.
fn with_option(before: Option<String>, options: &str) -> String {
    let mut option = String::from("\"--profile=dwell:");
    for c in options.chars() {
        if matches!(c, '"' | '\\') {
            option.push('\\');
        }
        option.push(c);
    }
    option.push('"');
    match before.filter(|text| !text.trim().is_empty()) {
        Some(before) => format!("{before} {option}"),
        None => option,
    }
}

/// Why a started Mono left no recording.
pub fn silence(program: &OsStr) -> String {
    format!(
        "{} ran no program, or has not loaded {NAME}: it ignores a missing module \
         silently; check that {LIBRARY_PATH} and {MONO_OPTIONS} reach its environment; \
         `dwell install-mono` puts the module next to mono",
        program.display()
    )
}

/// `dwell install-mono`: puts the module where mono finds it without an option.
pub fn install(args: &InstallMono) -> Result<String> {
    dwell_attach::check_mono()?;
    let dir = match &args.dir {
        Some(dir) => dir.clone(),
        None => library_dir()?,
    };
    if !dir.is_dir() {
        return Err(Usage(format!("{}: not a directory", dir.display())).into());
    }
    // Written next to it and renamed, because a running Mono has the old one mapped.
    let (path, new) = (
        dir.join(NAME),
        dir.join(format!(".{NAME}.{}", agent::random_name())),
    );
    let written = std::fs::File::create_new(&new)
        .and_then(|mut file| file.write_all(LIBRARY.bytes))
        .and_then(|()| std::fs::rename(&new, &path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written.with_context(|| format!("{} cannot be written", path.display()))?;
    let path = dwell_report::plain(&path.display().to_string());
    Ok(format!(
        "wrote {path}\n\
         record any Mono program with: \
         MONO_ENV_OPTIONS=--profile=dwell:cpu=10ms,wall=20ms,file=app.jfr mono app.exe\n"
    ))
}

/// `PREFIX/lib` of the mono on the search path, where it searches for modules.
fn library_dir() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|dir| dir.join("mono"))
        .find_map(|mono| mono.canonicalize().ok());
    let Some(mono) = found else {
        bail!("no mono on the search path; say where to put the module: dwell install-mono DIR")
    };
    let prefix = mono.ancestors().nth(2).unwrap_or(Path::new("/usr"));
    Ok(prefix.join("lib"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_name() {
        for mono in ["mono", "/usr/bin/mono", "mono-sgen", "mono-boehm"] {
            assert!(is_launcher(Path::new(mono)), "{mono}");
        }
        for other in ["monodis", "mcs", "java", "/mono/run.sh"] {
            assert!(!is_launcher(Path::new(other)), "{other}");
        }
    }

    #[test]
    fn recordings_are_named_after_the_program() {
        let name = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            name_of(&words)
        };
        assert_eq!(name("--debug /x/app.exe one"), Some("app".into()));
        assert_eq!(name("app.dll"), Some("app".into()));
        assert_eq!(name("--version"), None);
    }

    #[test]
    fn options_are_added_to_and_quoted() {
        let option = "\"--profile=dwell:start,file=/a b.jfr\"";
        assert_eq!(with_option(None, "start,file=/a b.jfr"), option);
        assert_eq!(
            with_option(Some("--debug".into()), "start,file=/a b.jfr"),
            format!("--debug {option}")
        );
        assert_eq!(
            with_option(Some(" ".into()), "file=/a\"\\"),
            "\"--profile=dwell:file=/a\\\"\\\\\""
        );
    }
}

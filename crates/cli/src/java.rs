//! Finds `java`, and recognises names of programs.

use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Whether a program is the JDK's launcher, by its name.
pub fn is_launcher(program: &Path) -> bool {
    let name = program.file_name().and_then(|name| name.to_str());
    name.is_some_and(dwell_attach::options::is_launcher)
}

/// A `java`: of `JAVA_HOME`, else of the search path, else of the usual directory.
pub fn find() -> Result<PathBuf> {
    if let Some(home) = std::env::var_os("JAVA_HOME").filter(|home| !home.is_empty()) {
        let java = Path::new(&home).join("bin/java");
        if !is_program(&java) {
            bail!("JAVA_HOME is set, but {} is not a program", java.display());
        }
        return Ok(java);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|dir| dir.join("java"));
    let mut usual: Vec<PathBuf> = std::fs::read_dir("/usr/lib/jvm")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin/java"))
        .collect();
    usual.sort();
    match on_path
        .chain(usual.into_iter().rev())
        .find(|java| is_program(java))
    {
        Some(java) => Ok(java),
        None => bail!(
            "no java found in JAVA_HOME, PATH or /usr/lib/jvm; install a JDK (on Debian: \
             apt-get install default-jdk-headless) or set JAVA_HOME"
        ),
    }
}

/// Whether a shell would start a program for this word. `java` always counts.
pub fn is_program_name(word: &str) -> bool {
    let path = Path::new(word);
    if is_launcher(path) || word.contains('/') {
        return is_launcher(path) || is_program(path);
    }
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&dirs).any(|dir| is_program(&dir.join(word)))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_name() {
        assert!(is_launcher(Path::new("/usr/bin/java")));
        assert!(is_launcher(Path::new("java")));
        assert!(!is_launcher(Path::new("javac")));
        assert!(!is_launcher(Path::new("/opt/java/run.sh")));
    }

    #[test]
    fn words_are_programs_or_not() {
        for program in ["java", "/none/java", "/bin/sh", "sh"] {
            assert!(is_program_name(program), "{program}");
        }
        for other in ["4711", "com.example.Main", "/none/run.sh", "/bin", ""] {
            assert!(!is_program_name(other), "{other}");
        }
    }

    #[test]
    fn directories_are_no_programs() {
        assert!(!is_program(Path::new("/usr")));
        assert!(is_program(Path::new("/bin/sh")));
    }
}

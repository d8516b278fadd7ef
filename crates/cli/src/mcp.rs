//! `dwell mcp`: serves recordings to an assistant, over standard input and output.

use crate::args::Mcp;
use crate::recording;
use anyhow::Result;
use dwell_jfr::redact::Secrets;
use dwell_mcp::Source;
use dwell_profile::Profile;
use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A recording on disk.
struct InFile {
    name: String,
    path: PathBuf,
    secrets: Secrets,
}

impl Source for InFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> Option<u128> {
        let metadata = std::fs::metadata(&self.path).ok()?;
        let since = metadata.modified().ok()?;
        let since = since.duration_since(std::time::UNIX_EPOCH).ok()?;
        // Another file, or a longer one, may be of the same moment.
        let identity = metadata.ino().rotate_left(32) ^ metadata.len();
        Some((since.as_nanos() << 64) ^ u128::from(identity))
    }

    fn load(&self) -> Result<Profile, String> {
        recording::load_with(&self.path, &self.secrets)
            .map_err(|error| crate::one_line(&format!("{error:#}")))
    }
}

/// The name of a file among others: the last part of its path where that is enough.
fn name(path: &Path, all: &[PathBuf]) -> String {
    let same = |other: &&PathBuf| other.file_name() == path.file_name();
    match path.file_name() {
        Some(name) if all.iter().filter(same).count() == 1 => name.to_string_lossy().into_owned(),
        _ => path.to_string_lossy().into_owned(),
    }
}

/// Serves the recordings until the input ends. A reader that is gone is no error.
pub fn run(args: &Mcp) -> Result<()> {
    for input in args.inputs.iter().filter(|input| !input.exists()) {
        note!("dwell: {:#}", recording::missing(input));
    }
    if io::stdin().is_terminal() {
        note!("dwell: an assistant starts this command; see docs/mcp.md. Ctrl-D ends it");
    }
    let sources = args.inputs.iter().map(|path| {
        Box::new(InFile {
            name: name(path, &args.inputs),
            path: path.clone(),
            secrets: args.redaction.secrets(),
        }) as Box<dyn Source>
    });
    let version = env!("CARGO_PKG_VERSION");
    let (input, output) = (io::stdin().lock(), io::stdout().lock());
    match dwell_mcp::serve(sources.collect(), version, input, output) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_name_have_their_paths() {
        let all = ["a/x.jfr", "b/x.jfr", "b/y.jfr"].map(PathBuf::from);
        let names: Vec<String> = all.iter().map(|path| name(path, &all)).collect();
        assert_eq!(names, ["a/x.jfr", "b/x.jfr", "y.jfr"]);
    }
}

//! Writes walks to files, on request: failed ones for bug reports, others as test fixtures.

use dwell_frozen::{Frozen, Recorder};
use dwell_recorder::options::Options;
use dwell_walker::native::NativeCode;
use dwell_walker::{Frame, Memory, Outcome, Regs, ThreadContext, Walk, Walker};
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Maximum number of files for each outcome.
const FILES_MAX: u32 = 50;
/// Bytes kept around pc and above sp beyond those that the walk reads, for readers of the file.
const CODE_AROUND: u64 = 64;
const STACK_ABOVE: u64 = 1024;

/// Freezes walks.
pub struct Freezer {
    dir: Option<PathBuf>,
    every: u64,
    seen: u64,
    written: HashMap<String, u32>,
    depth: usize,
}

impl Freezer {
    /// A freezer with the recording's options. Without a folder it does nothing.
    #[must_use]
    pub fn new(options: &Options) -> Freezer {
        // The folder exists: without it the recording would not have begun.
        let dir = options.freeze.clone().map(PathBuf::from);
        let (every, depth) = (options.freeze_every, options.depth);
        Freezer {
            dir,
            every,
            seen: 0,
            written: HashMap::new(),
            depth,
        }
    }

    /// Repeats the walk and writes it, if its kind was requested.
    pub fn offer<M: Memory, N: NativeCode>(
        &mut self,
        walker: &Walker<'_, M, N>,
        regs: Regs,
        thread: &ThreadContext,
        walk: &Walk,
    ) {
        let Some(dir) = &self.dir else { return };
        self.seen += 1;
        let nth = self.every > 0 && self.seen.is_multiple_of(self.every);
        let outcome = match (walk.outcome, walk.flaw) {
            (Outcome::Failed(failure), _) | (Outcome::Complete, Some(failure)) => failure.name(),
            (Outcome::Complete, None) if nth => "complete",
            (Outcome::Complete, None) => return,
        };
        let written = self.written.entry(outcome.to_owned()).or_default();
        if *written >= FILES_MAX {
            return;
        }
        *written += 1;
        let path = dir.join(format!("{outcome}-{written}.walk"));
        let frozen = freeze(walker, regs, thread, self.depth);
        if let Err(error) = write(&path, &frozen.to_text()) {
            eprintln!("dwell: {}: {error}", path.display());
        }
    }
}

/// Replaces a file. Only its owner may read it, because it holds pieces of the program's memory.
fn write(path: &Path, text: &str) -> io::Result<()> {
    // Removed first, so that a link of this name is not followed.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path)?.write_all(text.as_bytes())
}

fn freeze<M: Memory, N: NativeCode>(
    walker: &Walker<'_, M, N>,
    regs: Regs,
    thread: &ThreadContext,
    depth: usize,
) -> Frozen {
    let recorder = Recorder::new(walker.mem, walker.native);
    let again = Walker {
        machine: walker.machine,
        mem: &recorder,
        layout: walker.layout,
        code: walker.code,
        native: &recorder,
        cache: None,
    };
    let mut frames = vec![Frame::EMPTY; depth + 1];
    let walk = again.walk(regs, thread, frames.as_mut_slice());
    frames.truncate(walk.len);
    for at in (regs.pc.saturating_sub(CODE_AROUND)..regs.pc.saturating_add(CODE_AROUND)).step_by(8)
    {
        let _ = recorder.word(at & !7);
    }
    for at in (regs.sp..regs.sp.saturating_add(STACK_ABOVE)).step_by(8) {
        let _ = recorder.word(at & !7);
    }
    let outcome = match walk.outcome {
        Outcome::Complete => "complete",
        Outcome::Failed(failure) => failure.name(),
    };
    let (words, native) = recorder.into_parts();
    Frozen {
        origin: format!("pid {}", std::process::id()),
        layout: walker.layout.clone(),
        code: walker.code.to_words(),
        regs: regs.into(),
        thread: *thread,
        words,
        native,
        frames,
        outcome: outcome.to_owned(),
    }
}

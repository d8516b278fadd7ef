//! Bodies, positions, and a directory that is removed.
#![allow(dead_code, reason = "not every test uses all of it")]

use dwell_ship::{Body, Method, Position};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of one test.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new one.
    pub fn new() -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("dwell-ship-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The sorted names of its files.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A body of so many bytes.
pub fn body(target: &str, len: usize) -> Body {
    Body {
        method: Method::Post,
        target: target.to_owned(),
        content_type: "application/octet-stream".to_owned(),
        is_gzip: false,
        bytes: vec![b'x'; len],
    }
}

/// A position in a chunk.
pub fn position(source: u64, offset: u64) -> Position {
    Position {
        source,
        chunk: (1_700_000_000_000_000_000, 5),
        offset,
    }
}

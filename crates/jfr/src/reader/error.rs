//! Why a recording, or a part of it, cannot be read. Every error names the place in the file.

use std::fmt;

/// A reading error; `offset` counts from the start of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There is no chunk where one has to begin.
    NotJfr {
        /// Where the chunk was looked for.
        offset: usize,
    },
    /// The data ends inside something.
    Truncated {
        /// Where the data ends.
        offset: usize,
    },
    /// A value that the format does not allow.
    Malformed {
        /// Where it stands.
        offset: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A file of another version or of an encoding that is not read.
    Unsupported {
        /// Where the chunk begins.
        offset: usize,
        /// What is not supported.
        what: String,
    },
}

impl Error {
    /// The same `by` bytes further on.
    pub(crate) fn moved(mut self, by: usize) -> Self {
        match &mut self {
            Self::NotJfr { offset }
            | Self::Truncated { offset }
            | Self::Malformed { offset, .. }
            | Self::Unsupported { offset, .. } => *offset = offset.saturating_add(by),
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJfr { offset } => {
                write!(f, "no JFR chunk at offset {offset}; give a .jfr recording")
            }
            Self::Truncated { offset } => write!(f, "the data ends at offset {offset}"),
            Self::Malformed { offset, what } => write!(f, "{what} at offset {offset}"),
            Self::Unsupported { offset, what } => {
                write!(
                    f,
                    "the chunk at offset {offset} has {what}, which is not supported"
                )
            }
        }
    }
}

impl std::error::Error for Error {}

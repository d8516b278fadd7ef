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
        /// The problem.
        what: &'static str,
    },
    /// A file of the format before 1.0, which only the recorder of Oracle's JDK 7 and 8 writes.
    TooOld {
        /// Where the chunk begins.
        offset: usize,
        /// The format's version.
        version: (u16, u16),
    },
    /// A file of another version or of an encoding that is not read.
    Unsupported {
        /// Where the chunk begins.
        offset: usize,
        /// The unsupported feature.
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
            | Self::TooOld { offset, .. }
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
            Self::TooOld { version, .. } => write!(
                f,
                "it has the format {}.{} of the recorder of Oracle's JDK 7 and 8, which JDK \
                 Mission Control opens; for dwell, record with OpenJDK 8u262 or later, or with: \
                 dwell record PID",
                version.0, version.1
            ),
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

//! Where threads start: the outermost frames of a native stack are functions of the C library that
//! it does not export (`clone3`, `start_thread`). Without their names they are folded into one
//! frame.

use std::sync::Arc;

use dwell_jfr::reader::{Recording, StackFrame, StackNode, Stacks};

use crate::symbol::is_address;

/// Stands for the nameless functions of the C library in which threads start.
pub(super) const THREAD_START: &str = "[thread start]";
/// How the file names of C libraries begin: glibc's, those of releases before 2.34, musl's.
const C_LIBRARIES: [&str; 5] = ["libc.so", "libc-", "libpthread", "libc.musl", "ld-musl"];

/// The role of a frame near the root end of a stack.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Start<'r> {
    /// The start of the thread, in this library.
    Of(&'r str),
    /// A part of the start that its caller stands for.
    Folded,
}

/// The C library of each method, by place in the recording, and whether the method has no name.
pub(super) struct ThreadStarts(Vec<Option<(Arc<str>, bool)>>);

impl ThreadStarts {
    /// Those of a recording.
    pub(super) fn new(recording: &Recording) -> ThreadStarts {
        let methods = recording.methods.iter().map(|method| {
            let class = &method.class;
            let is_one = C_LIBRARIES.iter().any(|begin| class.starts_with(begin));
            is_one.then(|| (Arc::clone(class), is_address(&method.name)))
        });
        ThreadStarts(methods.collect())
    }

    /// The role of the frame at a node, if the thread starts there. That is a nameless function of
    /// a C library that is the outermost frame, or is called by an outermost frame in a C library.
    pub(super) fn at(&self, stacks: &Stacks, node: StackNode) -> Option<Start<'_>> {
        let mut frames = stacks.outwards(node).map(|(_, frame)| frame);
        let (library, true) = self.of(frames.next()?)? else {
            return None;
        };
        let caller = match frames.next() {
            Some(caller) => self.of(caller)?,
            None => return Some(Start::Of(library)),
        };
        let is_outermost = frames.next().is_none();
        is_outermost.then_some(match caller {
            (_, true) => Start::Folded,
            (_, false) => Start::Of(library),
        })
    }

    fn of(&self, frame: &StackFrame) -> Option<(&str, bool)> {
        let (library, is_nameless) = self.0.get(frame.method as usize)?.as_ref()?;
        Some((library, *is_nameless))
    }
}

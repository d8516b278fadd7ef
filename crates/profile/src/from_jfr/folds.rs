//! Frames without names that readers need only once. The outermost frames of a native stack are
//! functions in which threads start, which the C and C++ libraries do not export. Without their
//! names they are folded into one frame. So is each run of nameless functions of one library.

use std::collections::HashMap;
use std::sync::Arc;

use dwell_jfr::reader::{Recording, StackFrame, StackNode, Stacks};

use crate::symbol::is_address;

/// Stands for the nameless functions of the C library in which threads start.
pub(super) const THREAD_START: &str = "[thread start]";
/// How the file names of C libraries begin: glibc's, those of releases before 2.34, musl's.
const C_LIBRARIES: [&str; 5] = ["libc.so", "libc-", "libpthread", "libc.musl", "ld-musl"];
/// The same of C++ libraries: their threads start in a function below that of the C library.
const CXX_LIBRARIES: [&str; 2] = ["libstdc++.so", "libc++.so"];
/// The exported function of glibc in which the program's first thread starts.
const FIRST_THREAD: &str = "__libc_start_main";

/// The role of a frame near the root end of a stack.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Start<'r> {
    /// The start of the thread, in this library.
    Of(&'r str),
    /// A part of the start that its caller stands for.
    Folded,
}

/// A library in which threads start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Starter {
    C,
    Cxx,
}

/// A function of a library in which threads start.
struct Function {
    starter: Starter,
    library: Arc<str>,
    is_nameless: bool,
    is_first_thread: bool,
}

/// The rules that fold frames, by place of their methods in the recording.
pub(super) struct Folds {
    starters: Vec<Option<Function>>,
    /// The library of each function without a name, as a number.
    nameless: Vec<Option<u32>>,
}

impl Folds {
    /// Those of a recording.
    pub(super) fn new(recording: &Recording) -> Folds {
        let starters = recording.methods.iter().map(|method| {
            let class = &method.class;
            Some(Function {
                starter: starter(class)?,
                library: Arc::clone(class),
                is_nameless: is_address(&method.name),
                is_first_thread: method.name.starts_with(FIRST_THREAD),
            })
        });
        let mut libraries: HashMap<&str, u32> = HashMap::new();
        let nameless = recording.methods.iter().map(|method| {
            let next = libraries.len() as u32;
            let number = || *libraries.entry(&method.class).or_insert(next);
            is_address(&method.name).then(number)
        });
        let nameless = nameless.collect();
        Folds {
            starters: starters.collect(),
            nameless,
        }
    }

    /// The role of the frame at a node, if the thread starts there. It is a nameless function of a
    /// C library: the outermost frame, or called by an outermost frame in a C library, or by the
    /// function in which the first thread starts. Or it is a nameless function of a C++ library
    /// whose callers, at most two, are all in a C library.
    pub(super) fn start(&self, stacks: &Stacks, node: StackNode) -> Option<Start<'_>> {
        let mut frames = stacks.outwards(node).map(|(_, frame)| self.starter(frame));
        let function = frames.next()?.filter(|function| function.is_nameless)?;
        let is_c = function.starter == Starter::C;
        let Some(caller) = frames.next() else {
            return is_c.then_some(Start::Of(&function.library));
        };
        let caller = caller.filter(|caller| caller.starter == Starter::C)?;
        let is_start = match frames.next() {
            None => true,
            Some(_) if is_c => caller.is_first_thread,
            Some(outermost) => {
                let is_c = outermost.is_some_and(|it| it.starter == Starter::C);
                is_c && frames.next().is_none()
            }
        };
        is_start.then_some(match caller.is_nameless {
            true => Start::Folded,
            false => Start::Of(&function.library),
        })
    }

    /// Whether the frame at a node and its caller are nameless functions of one library. The start
    /// of a thread has no continuation. `is_whole`: the thread starts at the outermost frame.
    pub(super) fn continues(&self, stacks: &Stacks, node: StackNode, is_whole: bool) -> bool {
        let mut frames = stacks.outwards(node);
        let (Some((_, frame)), Some((at, caller))) = (frames.next(), frames.next()) else {
            return false;
        };
        let library = |frame: &StackFrame| *self.nameless.get(frame.method as usize)?;
        let is_run = library(frame).is_some_and(|own| library(caller) == Some(own));
        is_run && !(is_whole && self.start(stacks, at).is_some())
    }

    fn starter(&self, frame: &StackFrame) -> Option<&Function> {
        self.starters.get(frame.method as usize)?.as_ref()
    }
}

fn starter(library: &str) -> Option<Starter> {
    let is_one_of = |begins: &[&str]| begins.iter().any(|begin| library.starts_with(begin));
    match () {
        () if is_one_of(&C_LIBRARIES) => Some(Starter::C),
        () if is_one_of(&CXX_LIBRARIES) => Some(Starter::Cxx),
        () => None,
    }
}

//! Queries on stacks: the program's own method on them, and the code above it.
//!
//! *Above* is nearer to the running code. The *top* of a stack is the part above the program's
//! innermost method, that method included: the JDK, native code and the JVM working on its behalf.

use crate::application::{is_of_framework, own_methods};
use crate::finding::Focus;
use crate::names::Set;
use dwell_profile::{
    Frame, FrameKind, MethodId, NO_SYMBOL, NameId, NodeId, Profile, Weight, is_of_platform,
};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

/// Maximum number of frames to read, from the top of a stack.
const TOP_MAX: usize = 128;
/// Classes of frames in which threads wait for locks.
const MACHINERY: &[&str] = &[
    "java.util.concurrent.locks.",
    "jdk.internal.misc.Unsafe",
    "jdk.internal.vm.",
    "sun.misc.Unsafe",
    "java.lang.VirtualThread",
    "java.lang.System$",
];
/// How the names of libraries begin that others call for memory, text and threads: the code of a
/// stack is that of its caller.
const SYSTEM: [&str; 11] = [
    "ld-linux",
    "ld-musl",
    "libc++",
    "libc-",
    "libc.musl",
    "libc.so",
    "libgcc_s",
    "libm-",
    "libm.so",
    "libpthread",
    "libstdc++",
];
/// The same of libraries in whose threads others run.
const THREAD_POOLS: [&str; 4] = ["libgomp", "libiomp", "libomp", "libtbb"];
/// The same of the runtime's own, whose threads are not the program's.
const RUNTIMES: [&str; 6] = [
    "libdwell",
    "libjava.so",
    "libjli",
    "libjvm",
    "libmono",
    "mono-sgen",
];

/// Methods of a stack that are shown.
const SHOWN: usize = 8;

/// A weight, and the node with the largest part of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heaviest {
    pub(crate) weight: Weight,
    pub(crate) node: NodeId,
    most_ns: u64,
}

impl Heaviest {
    pub(crate) fn add(&mut self, node: NodeId, weight: &Weight) {
        self.weight += weight;
        if weight.sum > self.most_ns {
            (self.node, self.most_ns) = (node, weight.sum);
        }
    }
}

/// A native library on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Library {
    pub(crate) name: NameId,
    /// Whether one of its functions there has no name.
    pub(crate) has_nameless: bool,
    /// Whether it is the innermost one, but for those of the system.
    pub(crate) is_innermost: bool,
}

/// A set of nodes.
pub(crate) struct Nodes(Vec<bool>);

impl Nodes {
    pub(crate) fn has(&self, node: NodeId) -> bool {
        self.0.get(node as usize) == Some(&true)
    }
}

/// The stacks of a profile, with a cache of earlier answers.
pub(crate) struct Stacks<'p> {
    profile: &'p Profile,
    is_app: Vec<bool>,
    /// Maps each method without a name to the first such method of its library. Each has only an
    /// address, so all of one library count as one method.
    nameless: HashMap<MethodId, MethodId>,
    /// The program's methods but those of frameworks.
    is_own: Vec<bool>,
    /// The application's methods, once they are wanted.
    of_application: OnceCell<Vec<bool>>,
    places: RefCell<HashMap<NodeId, Option<MethodId>>>,
    /// Names as they are shown, by method.
    names: RefCell<HashMap<MethodId, String>>,
}

impl<'p> Stacks<'p> {
    pub(crate) fn new(profile: &'p Profile) -> Stacks<'p> {
        let names = profile.names();
        let tool = profile.tool();
        let is_of_tool = |class: &str| tool.as_ref().is_some_and(|tool| class.starts_with(tool));
        let is_app = profile.methods().iter().map(|method| {
            let class = names.text(method.class);
            !class.is_empty() && (!is_of_platform(class) || is_of_tool(class))
        });
        let is_app: Vec<bool> = is_app.collect();
        let is_own = profile
            .methods()
            .iter()
            .zip(&is_app)
            .map(|(method, is_app)| *is_app && !is_of_framework(names.text(method.class)));
        Stacks {
            profile,
            nameless: nameless(profile),
            is_own: is_own.collect(),
            of_application: OnceCell::new(),
            is_app,
            places: RefCell::default(),
            names: RefCell::default(),
        }
    }

    /// The methods from the innermost outwards, and whether each is Java.
    fn methods(&self, node: NodeId) -> impl Iterator<Item = (MethodId, bool)> {
        let stack = self.profile.tree().stack(node);
        stack.filter_map(|frame| {
            let frame = self.profile.frames().get(frame as usize)?;
            Some((frame.method, frame.kind.is_java()))
        })
    }

    /// Whether a method is the program's, not the JDK's.
    pub(crate) fn is_app(&self, method: MethodId) -> bool {
        self.is_app.get(method as usize) == Some(&true)
    }

    /// Whether a method of the program, and of no framework, is on the stack: only then a change of
    /// the program helps. So it is where no Java method is known.
    pub(crate) fn can_be_changed(&self, node: NodeId) -> bool {
        let mut java = self
            .methods(node)
            .filter(|(_, is_java)| *is_java)
            .peekable();
        let is_own = |method: MethodId| self.is_own.get(method as usize) == Some(&true);
        java.peek().is_none() || java.any(|(method, _)| is_own(method))
    }

    /// The program's innermost method, or else the JDK's.
    pub(crate) fn place(&self, node: NodeId) -> Option<MethodId> {
        if let Some(known) = self.places.borrow().get(&node) {
            return *known;
        }
        let java = || self.methods(node).filter(|(_, is_java)| *is_java);
        let app = java().find(|(method, _)| self.is_app(*method));
        let place = app.or_else(|| java().next()).map(|(method, _)| method);
        self.places.borrow_mut().insert(node, place);
        place
    }

    /// The application's innermost method in words, as the caller of a library; or else the place.
    pub(crate) fn user_name(&self, node: NodeId) -> String {
        let own = || own_methods(self.profile);
        let own = self.of_application.get_or_init(own);
        let mut java = self.methods(node).filter(|(_, is_java)| *is_java);
        let user = java.find(|(method, _)| own.get(*method as usize) == Some(&true));
        self.name_of(user.map_or_else(|| self.place(node), |(method, _)| Some(method)))
    }

    /// The place in words.
    pub(crate) fn place_name(&self, node: NodeId) -> String {
        self.name_of(self.place(node))
    }

    /// A place that is known, in words.
    pub(crate) fn name_of(&self, place: Option<MethodId>) -> String {
        match place {
            Some(method) => self.name(method),
            None => format!("code that is not {}", self.profile.info().platform().code()),
        }
    }

    /// A method in words, without the numbers that the JVM gives to classes it makes.
    pub(crate) fn name(&self, method: MethodId) -> String {
        let mut names = self.names.borrow_mut();
        let name = names
            .entry(method)
            .or_insert_with(|| dwell_profile::diff::stable(&self.profile.method_name(method)));
        name.clone()
    }

    /// Subject to highlight in a view of a method.
    pub(crate) fn focus(&self, method: MethodId) -> Option<Focus> {
        Some(Focus::Method(self.profile.method_name(method)))
    }

    /// The same of the place of a stack.
    pub(crate) fn focus_of(&self, node: NodeId) -> Option<Focus> {
        self.focus(self.place(node)?)
    }

    /// Whether the place is one of the program, not of the JDK.
    pub(crate) fn is_of_program(&self, node: NodeId) -> bool {
        self.place(node).is_some_and(|method| self.is_app(method))
    }

    /// The top of the stack, innermost first, with the program's method at its end.
    fn top(&self, node: NodeId) -> impl Iterator<Item = MethodId> {
        self.top_frames(node).map(|(method, _)| method)
    }

    /// The same, and whether each is Java.
    fn top_frames(&self, node: NodeId) -> impl Iterator<Item = (MethodId, bool)> {
        let mut is_over = false;
        self.methods(node)
            .take(TOP_MAX)
            .take_while(move |(method, is_java)| {
                let goes_on = !is_over;
                is_over = *is_java && self.is_app(*method);
                goes_on
            })
    }

    /// The methods on the top of the stack, innermost first.
    pub(crate) fn top_methods(&self, node: NodeId) -> Box<[MethodId]> {
        self.top(node).collect()
    }

    /// Whether the tops of two stacks have the same methods.
    pub(crate) fn has_same_top(&self, one: NodeId, other: NodeId) -> bool {
        one == other || (self.place(one) == self.place(other) && self.top(one).eq(self.top(other)))
    }

    /// Which of these bits the methods on the top of the stack have, all together.
    pub(crate) fn top_bits(&self, node: NodeId, bits: &[u32]) -> u32 {
        let of = |method: MethodId| bits.get(method as usize).copied().unwrap_or(0);
        self.top(node).fold(0, |all, method| all | of(method))
    }

    /// Whether the top of the stack has one of these methods.
    pub(crate) fn top_has(&self, node: NodeId, set: &Set) -> bool {
        !set.is_empty() && self.top(node).any(|method| set.has(method))
    }

    /// The outermost method of the top that is in a set.
    pub(crate) fn outermost_in_top(&self, node: NodeId, set: &Set) -> Option<MethodId> {
        let found = || self.top(node).filter(|method| set.has(*method)).last();
        (!set.is_empty()).then(found).flatten()
    }

    /// Value of the outermost method of the top that has one. If one of `callers` has called
    /// something other than its own `parts`, that code works, and frames under the call do not
    /// count.
    pub(crate) fn outermost_of_top<T>(
        &self,
        node: NodeId,
        callers: &Set,
        parts: &Set,
        of_method: impl Fn(MethodId) -> Option<T>,
    ) -> Option<T> {
        let (mut outermost, mut is_other) = (None, false);
        for (method, is_java) in self.top_frames(node) {
            if is_other && callers.has(method) {
                break;
            }
            is_other |= is_java && !parts.has(method);
            outermost = of_method(method).or(outermost);
        }
        outermost
    }

    /// Whether one of these methods works itself, or through methods of these packages. Other code
    /// that it calls, such as decompression, does not count.
    pub(crate) fn works_in(&self, node: NodeId, set: &Set, packages: &[&str]) -> bool {
        let names = self.profile.names();
        let java = self
            .methods(node)
            .take(TOP_MAX)
            .filter(|(_, is_java)| *is_java);
        for (method, _) in java {
            if set.has(method) {
                return true;
            }
            let class = self.profile.methods().get(method as usize);
            let class = class.map_or("", |method| names.text(method.class));
            if !packages.iter().any(|package| class.starts_with(package)) {
                return false;
            }
        }
        false
    }

    /// By node: whether its stack has one of these methods anywhere. Computed once, because there
    /// may be many more samples than stacks.
    pub(crate) fn nodes_with(&self, set: &Set) -> Nodes {
        let tree = self.profile.tree();
        if set.is_empty() {
            return Nodes(Vec::new());
        }
        let mut with = vec![false; tree.len()];
        // Parents come before their children.
        for node in 1..tree.len() {
            let parent = tree.parent(node as NodeId) as usize;
            let frame = self.profile.frames().get(tree.key(node as NodeId) as usize);
            let is_one = frame.is_some_and(|frame| set.has(frame.method));
            let of_parent = with.get(parent) == Some(&true);
            if let Some(with) = with.get_mut(node) {
                *with = is_one || of_parent;
            }
        }
        Nodes(with)
    }

    /// The first method above the program's that is one of these, seen from the program.
    pub(crate) fn nearest(&self, node: NodeId, set: &Set) -> Option<MethodId> {
        self.top(node).filter(|method| set.has(*method)).last()
    }

    /// The method that wants a lock: below the frames of locks and of parking.
    pub(crate) fn taker(&self, node: NodeId) -> Option<MethodId> {
        let names = self.profile.names();
        let is_machinery = |method: &MethodId| {
            let method = self.profile.methods().get(*method as usize);
            let class = method.map_or("", |method| names.text(method.class));
            MACHINERY.iter().any(|start| class.starts_with(start))
        };
        let mut java = self.methods(node).filter(|(_, is_java)| *is_java);
        let taker = java.find(|(method, _)| !is_machinery(method));
        taker.map(|(method, _)| method)
    }

    /// Whether a stack has the method that takes a lock, or one of the class that is locked.
    pub(crate) fn is_inside(&self, node: NodeId, taker: Option<MethodId>, class: &str) -> bool {
        let names = self.profile.names();
        let class_of = |method: MethodId| {
            let method = self.profile.methods().get(method as usize);
            method.map_or("", |method| names.text(method.class))
        };
        self.methods(node).any(|(method, is_java)| {
            let is_of_class = !is_of_platform(class) && class_of(method) == class;
            is_java && (Some(method) == taker || (!class.is_empty() && is_of_class))
        })
    }

    /// The program's innermost method that is none of these itself.
    pub(crate) fn user_of(&self, node: NodeId, set: &Set) -> Option<MethodId> {
        let java = self.methods(node).filter(|(_, is_java)| *is_java);
        java.map(|(method, _)| method)
            .find(|method| self.is_app(*method) && !set.has(*method))
    }

    /// The program's innermost method that is not of a library, by the start of its names.
    pub(crate) fn caller_outside(&self, node: NodeId, library: &str) -> Option<MethodId> {
        let java = self.methods(node).filter(|(_, is_java)| *is_java);
        let mut own = java
            .map(|(method, _)| method)
            .filter(|method| self.is_app(*method));
        own.find(|method| library.is_empty() || !self.name(*method).starts_with(library))
    }

    /// Whether the program calls one of these methods itself: its frame is next to the program's.
    pub(crate) fn program_calls(&self, node: NodeId, set: &Set) -> bool {
        self.called(node).is_some_and(|called| set.has(called))
    }

    /// The Java method that the program's innermost one calls; it may be a native one.
    pub(crate) fn called(&self, node: NodeId) -> Option<MethodId> {
        let names = self.profile.names();
        let mut called = None;
        for (method, is_java) in self.methods(node) {
            if is_java && self.is_app(method) {
                return called;
            }
            let class = self.profile.methods().get(method as usize);
            let class = class.map_or("", |method| names.text(method.class));
            if is_java || is_of_platform(class) {
                called = Some(method);
            }
        }
        None
    }

    /// Its Java methods, outermost first.
    pub(crate) fn path(&self, node: NodeId) -> Vec<MethodId> {
        let java = self.methods(node).filter(|(_, is_java)| *is_java);
        let mut path: Vec<MethodId> = java.map(|(method, _)| method).collect();
        path.reverse();
        path
    }

    fn frames(&self, node: NodeId) -> impl Iterator<Item = &Frame> {
        let stack = self.profile.tree().stack(node);
        stack.filter_map(|frame| self.profile.frames().get(frame as usize))
    }

    /// The innermost method of a stack, or the native one that called the kernel. It stands for its
    /// whole library if that has no symbols.
    pub(crate) fn leaf(&self, node: NodeId) -> Option<MethodId> {
        let innermost = self.frames(node).next()?;
        let mut outside = self.frames(node);
        let caller = outside.find(|frame| frame.kind != FrameKind::Kernel);
        let caller = caller.filter(|frame| !frame.kind.is_java());
        let method = caller.unwrap_or(innermost).method;
        Some(self.nameless(method).unwrap_or(method))
    }

    /// The method that stands for the library of one without a name; none if it has a name.
    pub(crate) fn nameless(&self, method: MethodId) -> Option<MethodId> {
        self.nameless.get(&method).copied()
    }

    /// The native libraries on the top of the stack, each once, innermost first.
    pub(crate) fn libraries_on_top(&self, node: NodeId) -> Vec<Library> {
        let mut libraries: Vec<Library> = Vec::new();
        let top = self.top(node).count();
        for frame in self.frames(node).take(top) {
            let Some(name) = self.library(frame) else {
                continue;
            };
            let has_nameless = self.nameless(frame.method).is_some();
            match libraries.iter_mut().find(|it| it.name == name) {
                Some(known) => known.has_nameless |= has_nameless,
                None => libraries.push(Library {
                    name,
                    has_nameless,
                    is_innermost: false,
                }),
            }
        }
        let own = libraries
            .iter()
            .position(|it| !self.is_one_of(it.name, &SYSTEM));
        if let Some(innermost) = libraries.get_mut(own.unwrap_or(0)) {
            innermost.is_innermost = true;
        }
        libraries
    }

    /// The outermost library of a stack without methods of the platform, and its frame: the code
    /// that a native thread runs. Those that only start threads and the runtime's own do not count.
    pub(crate) fn library_of_thread(&self, node: NodeId) -> Option<(NameId, MethodId)> {
        let mut outermost = None;
        for frame in self.frames(node) {
            if frame.kind.is_java() {
                return None;
            }
            let library = self.library(frame).filter(|name| {
                !self.is_one_of(*name, &SYSTEM) && !self.is_one_of(*name, &THREAD_POOLS)
            });
            outermost = library.map(|name| (name, frame.method)).or(outermost);
        }
        let pool = || {
            let mut frames = self.frames(node);
            frames.find_map(|frame| {
                let name = self.library(frame)?;
                self.is_one_of(name, &THREAD_POOLS)
                    .then_some((name, frame.method))
            })
        };
        let found = outermost.or_else(pool)?;
        (!self.is_one_of(found.0, &RUNTIMES)).then_some(found)
    }

    /// The library of a native function; none for native methods and for the kernel.
    fn library(&self, frame: &Frame) -> Option<NameId> {
        let names = self.profile.names();
        let is_native = matches!(frame.kind, FrameKind::Native | FrameKind::Vm);
        let method = self.profile.methods().get(frame.method as usize);
        let method = method.filter(|_| is_native)?;
        let library = names.text(method.class);
        let is_method = names.text(method.descriptor).starts_with('(');
        let is_file = !library.is_empty() && !library.starts_with('[');
        (is_file && !is_method).then_some(method.class)
    }

    fn is_one_of(&self, library: NameId, begins: &[&str]) -> bool {
        let library = self.profile.names().text(library);
        begins.iter().any(|begin| library.starts_with(begin))
    }

    /// A library in words.
    pub(crate) fn library_name(&self, library: NameId, is_nameless: bool) -> String {
        let library = self.profile.names().text(library);
        match is_nameless {
            true => format!("{library} (no symbols)"),
            false => library.to_owned(),
        }
    }

    /// The library of a method.
    pub(crate) fn library_of(&self, method: MethodId) -> Option<NameId> {
        let method = self.profile.methods().get(method as usize);
        method.map(|method| method.class)
    }

    /// The line of the program's innermost method; 0 if it is not known.
    pub(crate) fn line(&self, node: NodeId) -> u32 {
        let place = self.place(node);
        let mut frames = (self.profile.tree().stack(node))
            .filter_map(|frame| self.profile.frames().get(frame as usize));
        frames
            .find(|frame| Some(frame.method) == place)
            .map_or(0, |frame| frame.line)
    }

    /// The stack in words, innermost first: its Java methods, or all if there are none.
    pub(crate) fn shown(&self, node: NodeId) -> Vec<String> {
        let any_java = self.methods(node).any(|(_, is_java)| is_java);
        let shown = self
            .methods(node)
            .filter(|(_, is_java)| *is_java || !any_java);
        let names = shown.map(|(method, _)| self.name(method));
        names.take(SHOWN).collect()
    }
}

fn nameless(profile: &Profile) -> HashMap<MethodId, MethodId> {
    let names = profile.names();
    let mut first: HashMap<NameId, MethodId> = HashMap::new();
    let methods = profile.methods().iter().zip(0..);
    let nameless = methods.filter(|(method, _)| names.text(method.name) == NO_SYMBOL);
    nameless
        .map(|(method, id)| (id, *first.entry(method.class).or_insert(id)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::text_art;

    #[test]
    fn the_top_ends_with_the_programs_method() {
        let profile = text_art::profile(
            "java.lang.Thread.run
             app.Main.serve
             app.Report.line:7
             java.lang.String.format
             java.util.Formatter.format
             libc.so.6.memcpy[native]",
        );
        let stacks = Stacks::new(&profile);
        let node = profile.samples()[0].node;
        let set = |patterns: &[&str]| Set::new(&profile, patterns);
        assert_eq!(stacks.place_name(node), "app.Report.line");
        assert_eq!(stacks.line(node), 7);
        assert!(stacks.top_has(node, &set(&["java.util.Formatter.*"])));
        assert!(!stacks.top_has(node, &set(&["app.Main.*", "java.lang.Thread.*"])));
        let in_top = |patterns: &[&str]| {
            let found = stacks.outermost_in_top(node, &set(patterns));
            found.map(|method| stacks.name(method))
        };
        let formats = in_top(&["java.util.Formatter.*", "java.lang.String.format"]);
        assert_eq!(formats.as_deref(), Some("java.lang.String.format"));
        assert_eq!(in_top(&["app.Main.*"]), None);
        assert!(stacks.nodes_with(&set(&["app.Main.*"])).has(node));
        assert!(!stacks.nodes_with(&set(&["app.None.*"])).has(node));
        assert!(stacks.program_calls(node, &set(&["java.lang.String.format"])));
        assert!(!stacks.program_calls(node, &set(&["java.util.Formatter.*"])));
        assert_eq!(stacks.shown(node).len(), 5);
    }

    #[test]
    fn generated_classes_are_named_as_readers_know_them() {
        let profile = text_art::profile("app.Main$$Lambda$14+0x00007f07c0000a08.run");
        let stacks = Stacks::new(&profile);
        let node = profile.samples()[0].node;
        assert_eq!(stacks.shown(node), ["app.Main$$Lambda.run"]);
    }
}

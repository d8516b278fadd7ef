//! Data needed to read a JVM from outside, found in its own tables, its classes and, if it has
//! them, its symbols. No request is made to the JVM.

use crate::denied::remedy;
use crate::memory::{Live, Pages};
use crate::modules::Modules;
use dwell_attach::Target;
use dwell_walker::hotspot::layout::{ABSENT, LayoutError, present};
use dwell_walker::hotspot::objects::{ClassWord, Objects};
use dwell_walker::hotspot::safepoints::Safepoints;
use dwell_walker::hotspot::strings::{self, StringFields};
use dwell_walker::hotspot::vmstructs::TableError;
use dwell_walker::hotspot::zgc::Moves;
use dwell_walker::hotspot::{CodeCache, Layout};
use dwell_walker::hotspot::{classes, continuation, fields, flags, objects, threads};
use dwell_walker::{Host, Machine as _, Memory};
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// The reason why a JVM cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel does not permit us to read its memory.
    #[error("the memory of process {pid} cannot be read ({why}); {}", remedy(*.pid, .why.kind()))]
    Denied {
        /// The process.
        pid: u32,
        /// The kernel's error.
        why: std::io::Error,
    },
    /// It has exited.
    #[error("process {0} has ended")]
    Ended(u32),
    /// Its library's file cannot be read.
    #[error("libjvm.so of process {0} cannot be read; run dwell as root, on the JVM's own machine")]
    NoLibrary(u32),
    /// The tables lack an entry.
    #[error("JVM {0} does not export {1}; dwell reads HotSpot JVMs (JDK 8 to 28) only")]
    Missing(u32, &'static str),
    /// The tables cannot be read, or are invalid.
    #[error("JVM {0} is just starting or exiting: its tables cannot be read; try again")]
    Unreadable(u32),
}

/// Maximum time for a collector to move the objects that show where threads have their names.
/// During the move, reads of these objects fail or give invalid data; afterwards they succeed. A
/// caller that reads repeatedly finds them later. A single read of a JVM that hangs in a collection
/// shows no names.
const MOVES_MAX: Duration = Duration::from_millis(200);
const MOVES_STEP: Duration = Duration::from_millis(5);

/// Offsets in objects of class `Thread`; [`ABSENT`] if unknown.
#[derive(Clone, Copy, Debug)]
pub struct ThreadFields {
    /// `Thread.name`.
    pub name: u64,
    /// `Thread.holder` (19+), which then has the fields below.
    pub holder: u64,
    /// `daemon`.
    pub daemon: u64,
    /// `priority`.
    pub priority: u64,
    /// `threadStatus`.
    pub status: u64,
}

/// Data needed to read the JVM.
pub struct Vm<'t> {
    /// The process.
    pub target: &'t Target,
    /// Its memory.
    pub live: &'t Live,
    /// HotSpot's layout.
    pub layout: Layout,
    /// Its code cache.
    pub code: CodeCache,
    /// Addresses of its safepoint data, if known.
    pub safepoints: Option<Safepoints>,
    /// Where the address of its polling page is, if only that page shows safepoints.
    pub polling_page: Option<u64>,
    /// Offsets in threads.
    pub thread: ThreadFields,
    /// Offsets in strings.
    pub strings: StringFields,
    /// The boot loader's classes that are needed, by name.
    pub classes: FxHashMap<&'static str, u64>,
    /// The native libraries.
    pub modules: Modules<'t>,
    /// Where the VM stores the return address of continuations; 0 if unknown.
    return_pc_at: u64,
    /// Where the VM stores the offset, in virtual threads, of the entry in a monitor's list; 0 if
    /// unknown.
    monitor_entry_at: u64,
}

/// `java_lang_VirtualThread::_objectWaiter_offset` (share/classfile/javaClasses.hpp, 24 and later).
const MONITOR_ENTRY: &str = "_ZN23java_lang_VirtualThread20_objectWaiter_offsetE";

/// Classes whose fields are needed.
const CLASSES: &[&str] = &[
    "java/lang/Thread",
    "java/lang/VirtualThread",
    "java/lang/ref/Reference",
    "java/util/concurrent/ConcurrentHashMap",
    "java/util/concurrent/ConcurrentHashMap$CollectionView",
    "java/util/concurrent/ConcurrentHashMap$ForwardingNode",
    "java/util/concurrent/ConcurrentHashMap$Node",
    "java/util/concurrent/ConcurrentHashMap$TreeBin",
    "java/util/concurrent/ThreadPerTaskExecutor",
    "java/util/concurrent/locks/AbstractOwnableSynchronizer",
    "jdk/internal/misc/Unsafe",
    "jdk/internal/vm/Continuation",
    "jdk/internal/vm/SharedThreadContainer",
    "jdk/internal/vm/StackChunk",
    "jdk/internal/vm/ThreadContainers",
    "jdk/internal/vm/ThreadContainers$RootContainer$TrackingRootContainer",
];

/// Number of threads tried: a collector may just be moving an object.
const THREADS_TRIED: usize = 64;

impl<'t> Vm<'t> {
    /// Finds all of these data.
    ///
    /// # Errors
    /// [`Error`] if it is not a HotSpot that can be read.
    pub fn read(target: &'t Target, live: &'t Live) -> Result<Vm<'t>, Error> {
        let pid = target.jvm().pid;
        let modules = Modules::read(target, live);
        let (base, image) = modules.libjvm().ok_or(Error::NoLibrary(pid))?;
        let elf = image.elf().ok_or(Error::NoLibrary(pid))?;
        let find = |name: &str| -> Option<u64> {
            let svma = elf.find_symbol(name.as_bytes())?.svma;
            Some(base.wrapping_add(svma.wrapping_sub(elf.base_svma())))
        };
        let pages = Pages::new(live);
        let mut layout = Layout::load(Host, &pages, &find).map_err(|error| match error {
            LayoutError::Missing(name) | LayoutError::Table(TableError::NoSymbol(name)) => {
                Error::Missing(pid, name)
            }
            LayoutError::Table(TableError::Fault(_)) => Error::Unreadable(pid),
        })?;
        let code = CodeCache::load(&pages, &layout).map_err(|_| Error::Unreadable(pid))?;
        let narrow = flags::boolean(&pages, &layout, "UseCompressedOops");
        layout.extra.chunk.narrow_oops = narrow.ok().flatten().unwrap_or(true);
        if flags::has_colored_references(&pages, &layout) {
            layout.extra.chunk.colored_oops = true;
            let moves = Moves::find(&pages, &layout);
            layout.extra.moves = moves.ok().flatten().unwrap_or_default();
        } else if flags::has_views(&pages, &layout) {
            let moves = Moves::find_single(&pages, &layout);
            layout.extra.moves = moves.ok().flatten().unwrap_or_default();
        }
        let safepoints = Safepoints::find(&find);
        let classes = boot_classes(&pages, &layout);
        continuations(&mut layout, live, &code, &classes, &find);
        let return_pc_at = match layout.cont_entry_return_pc {
            at if present(at) => at,
            _ => find("_ZN17ContinuationEntry10_return_pcE").unwrap_or(0),
        };
        let mut vm = Vm {
            target,
            live,
            layout,
            code,
            safepoints,
            polling_page: None,
            thread: ThreadFields {
                name: ABSENT,
                holder: ABSENT,
                daemon: ABSENT,
                priority: ABSENT,
                status: ABSENT,
            },
            strings: StringFields::EMPTY,
            classes,
            modules: Modules::read(target, live),
            return_pc_at,
            monitor_entry_at: find(MONITOR_ENTRY).unwrap_or(0),
        };
        vm.continuation_returns();
        vm.threads();
        let began = Instant::now();
        while !vm.tells_names() && began.elapsed() < MOVES_MAX {
            std::thread::sleep(MOVES_STEP);
            vm.threads();
        }
        if vm.safepoints.is_none() {
            vm.polling_page = polling_page(live, &vm.layout);
        }
        Ok(vm)
    }

    /// Whether this JVM shows its safepoints at all.
    #[must_use]
    pub fn sees_safepoints(&self) -> bool {
        self.safepoints.is_some() || self.polling_page.is_some()
    }

    /// Reads data again that may have changed: libraries, and classes that were not loaded yet.
    pub fn refresh(&mut self) {
        self.modules.refresh();
        self.continuation_returns();
        let pages = Pages::new(self.live);
        if self.classes.len() < CLASSES.len() {
            self.classes = boot_classes(&pages, &self.layout);
        }
        if !self.tells_names() {
            self.threads();
        }
        self.owners();
    }

    /// Whether names of threads can be read. Not while a collector moves all the objects that would
    /// show where the names are.
    #[must_use]
    pub fn tells_names(&self) -> bool {
        present(self.strings.value)
    }

    /// Reads the return address of continuations, which the VM stores when the first one runs.
    pub fn continuation_returns(&mut self) {
        let extra = &mut self.layout.extra;
        if extra.cont_return_pc == 0 && self.return_pc_at != 0 {
            extra.cont_return_pc = self.live.word(self.return_pc_at).unwrap_or(0);
        }
    }

    /// Offset, in virtual threads, of the entry in a monitor's list; [`ABSENT`] if it is not known
    /// (yet).
    #[must_use]
    pub fn monitor_entry(&self) -> u64 {
        let offset = match self.monitor_entry_at {
            0 => None,
            at => self.live.i32(at).ok(),
        };
        let offset = offset.and_then(|offset| u64::try_from(offset).ok());
        offset.filter(|offset| *offset > 0).unwrap_or(ABSENT)
    }

    /// Finds out, from a live thread, where objects have their class, and the offsets in threads.
    fn threads(&mut self) {
        let mut known = Vec::new();
        let _ = threads::for_each(self.live, &self.layout, |thread| known.push(thread));
        let tried = known.iter().take(THREADS_TRIED);
        let found = tried.copied().find_map(|thread| self.calibrate(thread));
        let Some((mut objects, class)) = found else {
            return;
        };
        let layout = &self.layout;
        let field = |class: u64, name: &str, kind: &str| {
            let found = fields::offset(self.live, layout, class, name.as_bytes(), kind.as_bytes());
            found.ok().flatten().unwrap_or(ABSENT)
        };
        objects.tid = field(class, "tid", "J");
        objects.park_blocker = field(class, "parkBlocker", "Ljava/lang/Object;");
        self.thread.name = field(class, "name", "Ljava/lang/String;");
        self.thread.holder = field(class, "holder", "Ljava/lang/Thread$FieldHolder;");
        let is_wide = objects.class_word == ClassWord::Wide;
        let padded = is_wide && self.has_padded_arrays();
        let (length, elements) = strings::array(objects.class_word, padded);
        self.layout.extra.objects = objects;
        let holders = self.holders(&known, class);
        let layout = &self.layout;
        let field = |class: u64, name: &str, kind: &str| {
            let found = fields::offset(self.live, layout, class, name.as_bytes(), kind.as_bytes());
            found.ok().flatten().unwrap_or(ABSENT)
        };
        if let Some((holder, string)) = holders {
            self.thread.daemon = field(holder, "daemon", "Z");
            self.thread.priority = field(holder, "priority", "I");
            self.thread.status = field(holder, "threadStatus", "I");
            self.strings = StringFields {
                value: match field(string, "value", "[B") {
                    ABSENT => field(string, "value", "[C"),
                    at => at,
                },
                coder: field(string, "coder", "B"),
                length,
                elements,
            };
        }
        self.owners();
    }

    /// The classes of a thread's holder (or of threads themselves) and of its name.
    fn holders(&self, known: &[u64], class: u64) -> Option<(u64, u64)> {
        let (layout, objects) = (&self.layout, &self.layout.extra.objects);
        let class_at = |object: u64, at: u64| -> Option<u64> {
            let held = continuation::reference(self.live, layout, object.wrapping_add(at)).ok()?;
            objects::class_of(self.live, layout, objects.class_word, held).ok()
        };
        known.iter().take(THREADS_TRIED).find_map(|thread| {
            let object = objects::of_thread(self.live, layout, objects, *thread).ok()?;
            let string = class_at(object, self.thread.name)?;
            let is_string = objects::is_kind_of(self.live, layout, string, b"java/lang/String");
            if is_string != Ok(true) {
                return None;
            }
            let holder = match self.thread.holder {
                ABSENT => class,
                at => class_at(object, at)?,
            };
            Some((holder, string))
        })
    }

    /// How the object of `thread` is referenced, and its class, if they can be read.
    fn calibrate(&self, thread: u64) -> Option<(Objects, u64)> {
        for thread_is_handle in [true, false] {
            for class_word in ClassWord::ALL {
                let mut objects = Objects {
                    thread_is_handle,
                    class_word,
                    ..Objects::EMPTY
                };
                let found = self.class_and_eetop(thread, &objects);
                if let Some((class, eetop)) = found {
                    objects.eetop = eetop;
                    return Some((objects, class));
                }
            }
        }
        None
    }

    fn class_and_eetop(&self, thread: u64, objects: &Objects) -> Option<(u64, u64)> {
        let layout = &self.layout;
        let object = objects::of_thread(self.live, layout, objects, thread).ok()?;
        let class = objects::class_of(self.live, layout, objects.class_word, object).ok()?;
        let is_thread = objects::is_kind_of(self.live, layout, class, b"java/lang/Thread");
        if object == 0 || is_thread != Ok(true) {
            return None;
        }
        let eetop = fields::offset(self.live, layout, class, b"eetop", b"J").ok()??;
        let value = self.live.word(object.wrapping_add(eetop)).ok()?;
        (value == thread).then_some((class, eetop))
    }

    /// Where locks have their owners: from the class, or else from any lock that a thread waits
    /// for.
    fn owners(&mut self) {
        const FIELD: (&[u8], &[u8]) = (b"exclusiveOwnerThread", b"Ljava/lang/Thread;");
        if present(self.layout.extra.objects.exclusive_owner) {
            return;
        }
        let layout = &self.layout;
        let name = "java/util/concurrent/locks/AbstractOwnableSynchronizer";
        let mut class = self.classes.get(name).copied();
        if class.is_none() {
            let _ = threads::for_each(self.live, layout, |thread| {
                let objects = &layout.extra.objects;
                let blocker = objects::of_thread(self.live, layout, objects, thread)
                    .and_then(|object| objects::blocker(self.live, layout, objects, object));
                if let Ok(Some(blocker)) = blocker
                    && blocker.is_ownable
                {
                    class = Some(blocker.class);
                }
            });
        }
        let found = class.and_then(|class| {
            let found = fields::offset(self.live, layout, class, FIELD.0, FIELD.1);
            found.ok().flatten()
        });
        self.layout.extra.objects.exclusive_owner = found.unwrap_or(ABSENT);
    }

    /// Whether elements of arrays are aligned to words if class pointers are wide: up to 22
    /// (8139457).
    fn has_padded_arrays(&self) -> bool {
        let version = self.target.jvm().version.as_deref();
        let feature = version.and_then(dwell_attach::version::feature);
        feature.is_none_or(|feature| feature < 23)
    }

    /// Offset of a field of one of the needed boot loader classes.
    #[must_use]
    pub fn field(&self, class: &str, name: &str, kind: &str) -> u64 {
        let found = self.classes.get(class).and_then(|class| {
            let (name, kind) = (name.as_bytes(), kind.as_bytes());
            fields::offset(self.live, &self.layout, *class, name, kind).ok()?
        });
        found.unwrap_or(ABSENT)
    }

    /// A string's text, truncated to `max` characters.
    #[must_use]
    pub fn text<M: Memory>(&self, mem: &M, string: u64, max: u32) -> Option<String> {
        let mut units = Vec::new();
        let push = |unit| units.push(unit);
        strings::for_each_unit(mem, &self.layout, &self.strings, string, max, push).ok()?;
        Some(String::from_utf16_lossy(&units))
    }
}

fn boot_classes(pages: &Pages<'_>, layout: &Layout) -> FxHashMap<&'static str, u64> {
    let mut found = FxHashMap::default();
    let mut buf = [0u8; 128];
    let _ = classes::for_each_boot_class(pages, layout, |class| {
        if let Ok(name) = objects::class_name(pages, layout, class, &mut buf)
            && let Some(known) = CLASSES.iter().find(|known| known.as_bytes() == name)
        {
            found.insert(*known, class);
        }
        found.len() == CLASSES.len()
    });
    found
}

/// Finds the data needed to walk virtual threads; without them such walks end at the barrier.
fn continuations(
    layout: &mut Layout,
    live: &Live,
    code: &CodeCache,
    classes: &FxHashMap<&'static str, u64>,
    find: &dyn Fn(&str) -> Option<u64>,
) {
    if !present(layout.thread_vthread) {
        return;
    }
    let field = |class: &str, name: &[u8], kind: &[u8]| {
        let class = classes.get(class).copied();
        let found = class.and_then(|it| fields::offset(live, layout, it, name, kind).ok()?);
        found.unwrap_or(ABSENT)
    };
    let (chunk, cont) = ("jdk/internal/vm/StackChunk", "jdk/internal/vm/Continuation");
    let stack = find("_ZN23InstanceStackChunkKlass16_offset_of_stackE")
        .and_then(|at| live.u32(at).ok())
        .map_or(ABSENT, u64::from);
    let mut known = layout.extra.chunk;
    known.cont_tail = field(cont, b"tail", b"Ljdk/internal/vm/StackChunk;");
    known.sp = field(chunk, b"sp", b"I");
    known.size = field(chunk, b"size", b"I");
    known.bottom = field(chunk, b"bottom", b"I");
    known.argsize = field(chunk, b"argsize", b"I");
    known.parent = field(chunk, b"parent", b"Ljdk/internal/vm/StackChunk;");
    known.stack = stack;
    layout.extra.chunk = known;
    if !present(layout.extra.cont_entry) {
        let barrier = layout.extra.return_barrier;
        let found = Host.entry_offset_of_barrier(live, barrier);
        let found = match found.ok().flatten() {
            None => Host.find_entry_offset(live, layout, code).ok().flatten(),
            found => found,
        };
        layout.extra.cont_entry = found.unwrap_or(ABSENT);
    }
}

/// Where the VM stores the address of the page that all compiled code reads when it polls, if this
/// JVM stops its threads in this way: up to 9, and to 13 unless each thread has a page of its own.
fn polling_page(live: &Live, layout: &Layout) -> Option<u64> {
    let at = layout.polling_page;
    if !present(at) {
        return None;
    }
    let flag = |name| flags::boolean(live, layout, name).ok().flatten();
    // This flag was added in 11.
    let is_new = flag("UseDynamicNumberOfCompilerThreads").is_some();
    polls_one_page(flag("ThreadLocalHandshakes"), is_new).then_some(at)
}

/// By the flag `ThreadLocalHandshakes`, which exists from 10 to 13, and whether the JVM is 11 or
/// newer: a newer one without that flag has a page for each thread.
fn polls_one_page(own: Option<bool>, is_new: bool) -> bool {
    match own {
        Some(own) => !own,
        None => !is_new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_page_counts_only_if_all_threads_poll_it() {
        for (release, own, is_new, expected) in [
            (8, None, false, true),
            (10, Some(true), false, false),
            (10, Some(false), false, true),
            (11, Some(true), true, false),
            (13, Some(false), true, true),
            (17, None, true, false),
        ] {
            assert_eq!(polls_one_page(own, is_new), expected, "{release}");
        }
    }
}

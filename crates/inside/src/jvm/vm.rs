//! The JVM's layout and code cache. Loaded once and kept for the life of the process.

use super::thread_names::NameFields;
use dwell_recorder::native::Modules;
use dwell_recorder::sys::loader::Library;
use dwell_signal::Live;
use dwell_walker::hotspot::layout::{ABSENT, LayoutError, present};
use dwell_walker::hotspot::objects::{self, Objects};
use dwell_walker::hotspot::safepoints::Safepoints;
use dwell_walker::hotspot::vmstructs::TableError;
use dwell_walker::hotspot::zgc::Moves;
use dwell_walker::hotspot::{CodeCache, Layout, continuation, flags, threads};
use dwell_walker::{Host, Machine as _, Memory};
use jvm_sys::Env;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicPtr, Ordering};

/// File name of the JVM's own library.
pub const LIBRARY: &str = "libjvm.so";

/// `VMError::_first_error_tid`, and its name up to 16.
const FIRST_ERROR: [&str; 2] = [
    "_ZN7VMError16_first_error_tidE",
    "_ZN7VMError15first_error_tidE",
];

/// The JVM's structures that walks need.
#[derive(Clone)]
pub struct Vm {
    /// Offsets and addresses of HotSpot's structures.
    pub layout: Layout,
    /// Its code cache.
    pub code: CodeCache,
    /// How field ids encode offsets.
    pub fields: FieldIds,
    /// Fields with the names of threads.
    pub names: NameFields,
    /// Address of `VMError::_first_error_tid`; 0 if unknown. It is -1 until a thread finds that the
    /// JVM must end (src/hotspot/share/utilities/vmError.cpp).
    pub first_error_at: u64,
    /// The JVM's data on safepoints, if it can be read.
    pub safepoints: Option<Safepoints>,
    /// Address of the JVM's offset of `VirtualThread.objectWaiter`, an injected field; 0: unknown.
    monitor_entry_at: u64,
    /// Address of `ContinuationEntry::_return_pc`, which is set when the first virtual thread runs.
    return_pc_at: u64,
}

/// The current [`Vm`]. Old ones are leaked, because handlers may use them; there are two or three.
pub struct SharedVm(AtomicPtr<Vm>);

impl SharedVm {
    /// Shares `vm`.
    #[must_use]
    pub fn new(vm: Vm) -> SharedVm {
        SharedVm(AtomicPtr::new(Box::into_raw(Box::new(vm))))
    }

    /// The current one.
    #[must_use]
    pub fn get(&self) -> &'static Vm {
        // SAFETY: the pointer always comes from a leaked box, so it stays valid.
        unsafe { &*self.0.load(Ordering::Acquire) }
    }

    /// Makes `vm` the current one.
    pub fn replace(&self, vm: Vm) {
        self.0.store(Box::into_raw(Box::new(vm)), Ordering::Release);
    }
}

/// The reason why this JVM cannot be profiled.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// libjvm.so is not among the process's libraries.
    #[error("libjvm.so is not mapped; dwell profiles HotSpot JVMs only")]
    NoLibrary,
    /// The tables lack something.
    #[error("this JVM does not export {0}; dwell profiles HotSpot JVMs (JDK 8 to 28) only")]
    Missing(&'static str),
    /// The tables cannot be read.
    #[error("the JVM's structure tables cannot be read")]
    Unreadable,
}

impl From<LayoutError> for VmError {
    fn from(error: LayoutError) -> Self {
        match error {
            LayoutError::Missing(name) | LayoutError::Table(TableError::NoSymbol(name)) => {
                VmError::Missing(name)
            }
            LayoutError::Table(TableError::Fault(_)) => VmError::Unreadable,
        }
    }
}

/// `java_lang_VirtualThread::_objectWaiter_offset`.
const MONITOR_ENTRY: &str = "_ZN23java_lang_VirtualThread20_objectWaiter_offsetE";

/// Symbols of libjvm: exported ones from the loader, others from the file's symbol table.
struct JvmSymbols<'m> {
    library: Option<Library>,
    base: u64,
    elf: Option<dwell_native::elf::Elf<'m>>,
}

impl JvmSymbols<'_> {
    fn address(&self, name: &str) -> Option<u64> {
        let text = CString::new(name).ok()?;
        if let Some(addr) = self.library.as_ref().and_then(|l| l.symbol(&text)) {
            return Some(addr);
        }
        let elf = self.elf.as_ref()?;
        let definition = elf.find_symbol(name.as_bytes())?;
        Some(
            self.base
                .wrapping_add(definition.svma.wrapping_sub(elf.base_svma())),
        )
    }
}

impl Vm {
    /// Reads the layout of the JVM in this process.
    ///
    /// # Errors
    /// [`VmError`] if it is not a HotSpot that can be walked.
    pub fn load(live: Live, modules: &Modules, env: Option<Env>) -> Result<Vm, VmError> {
        let (base, image) = modules.library(LIBRARY).ok_or(VmError::NoLibrary)?;
        let path = CString::new(image.key.path.clone()).map_err(|_| VmError::NoLibrary)?;
        let symbols = JvmSymbols {
            library: Library::loaded(&path),
            base,
            elf: image.elf(),
        };
        let find = |name: &str| symbols.address(name);
        let mut layout = Layout::load(Host, &live, &find)?;
        let code = CodeCache::load(&live, &layout).map_err(|_| VmError::Unreadable)?;
        let mut fields = FieldIds {
            shift: FieldIds::USUAL_SHIFT,
        };
        let mut names = NameFields::EMPTY;
        let mut return_pc_at = 0;
        let narrow = flags::boolean(&live, &layout, "UseCompressedOops");
        layout.extra.chunk.narrow_oops = narrow.ok().flatten().unwrap_or(true);
        if flags::has_colored_references(&live, &layout) {
            layout.extra.chunk.colored_oops = true;
            let moves = Moves::find(&live, &layout);
            layout.extra.moves = moves.ok().flatten().unwrap_or_default();
        } else if flags::has_views(&live, &layout) {
            let moves = Moves::find_single(&live, &layout);
            layout.extra.moves = moves.ok().flatten().unwrap_or_default();
        }
        if let Some(env) = env {
            fields = FieldIds::calibrate(live, &layout, env);
            thread_objects(&mut layout, live, env, fields);
            names = NameFields::find(&layout, fields, env);
        }
        if present(layout.thread_vthread) {
            if let Some(env) = env {
                virtual_threads(&mut layout, live, env, fields, &find);
            }
            if !present(layout.extra.cont_entry) {
                let barrier = layout.extra.return_barrier;
                let found = Host.entry_offset_of_barrier(&live, barrier);
                layout.extra.cont_entry = found.ok().flatten().unwrap_or(ABSENT);
            }
            return_pc_at = match layout.cont_entry_return_pc {
                at if present(at) => at,
                _ => find("_ZN17ContinuationEntry10_return_pcE").unwrap_or(0),
            };
        }
        let vm = Vm {
            layout,
            code,
            fields,
            names,
            safepoints: Safepoints::find(&find),
            first_error_at: FIRST_ERROR.iter().find_map(|name| find(name)).unwrap_or(0),
            monitor_entry_at: find(MONITOR_ENTRY).unwrap_or(0),
            return_pc_at,
        };
        Ok(vm.completed(live).unwrap_or(vm))
    }

    /// Offset of a virtual thread's entry in a monitor's list (24 and later); [`ABSENT`] if
    /// unknown.
    #[must_use]
    pub fn monitor_entry(&self, live: Live) -> u64 {
        let offset = match self.monitor_entry_at {
            0 => 0,
            at => live.u32(at).map_or(0, u64::from),
        };
        // Zero is the object's header: the JVM has not filled it in.
        match offset {
            1..OFFSET_MAX => offset,
            _ => ABSENT,
        }
    }

    /// A more complete version, if the JVM has generated more code since. The code that enters
    /// virtual threads is generated when the first one runs.
    #[must_use]
    pub fn completed(&self, live: Live) -> Option<Vm> {
        let extra = &self.layout.extra;
        let done = extra.cont_return_pc != 0 && present(extra.cont_entry);
        if done || self.return_pc_at == 0 {
            return None;
        }
        let return_pc = live.word(self.return_pc_at).ok().filter(|pc| *pc != 0)?;
        let mut vm = self.clone();
        vm.layout.extra.cont_return_pc = return_pc;
        if !present(vm.layout.extra.cont_entry) {
            let found = Host.find_entry_offset(&live, &vm.layout, &vm.code);
            vm.layout.extra.cont_entry = found.ok().flatten()?;
        }
        Some(vm)
    }
}

/// Adds the fields to walk virtual threads. Without them their walks end at the barrier.
fn virtual_threads(
    layout: &mut Layout,
    live: Live,
    env: Env,
    fields: FieldIds,
    find: &dyn Fn(&str) -> Option<u64>,
) {
    let stack = find("_ZN23InstanceStackChunkKlass16_offset_of_stackE")
        .and_then(|at| live.u32(at).ok())
        .map_or(ABSENT, u64::from);
    let class = c"jdk/internal/vm/StackChunk";
    let cont = c"jdk/internal/vm/Continuation";
    let field = |class, name, kind| fields.offset(env, class, name, kind).unwrap_or(ABSENT);
    let chunk = &mut layout.extra.chunk;
    chunk.cont_tail = field(cont, c"tail", c"Ljdk/internal/vm/StackChunk;");
    chunk.sp = field(class, c"sp", c"I");
    chunk.size = field(class, c"size", c"I");
    chunk.bottom = field(class, c"bottom", c"I");
    chunk.argsize = field(class, c"argsize", c"I");
    chunk.parent = field(class, c"parent", c"Ljdk/internal/vm/StackChunk;");
    chunk.stack = stack;
}

/// Adds the fields of parked threads: the object that a thread is parked on, and its owner. Without
/// them no owner is named.
fn thread_objects(layout: &mut Layout, live: Live, env: Env, fields: FieldIds) {
    let class = c"java/lang/Thread";
    let ownable = c"java/util/concurrent/locks/AbstractOwnableSynchronizer";
    let field = |class, name, kind| fields.offset(env, class, name, kind).unwrap_or(ABSENT);
    let mut objects = Objects {
        eetop: field(class, c"eetop", c"J"),
        tid: field(class, c"tid", c"J"),
        park_blocker: field(class, c"parkBlocker", c"Ljava/lang/Object;"),
        exclusive_owner: field(ownable, c"exclusiveOwnerThread", c"Ljava/lang/Thread;"),
        ..Objects::EMPTY
    };
    let mut threads = Vec::new();
    let _ = threads::for_each(&live, layout, |thread| threads.push(thread));
    threads.truncate(FieldIds::THREADS_TRIED);
    let mut known = threads.into_iter();
    if known.any(|thread| objects::calibrate(&live, layout, &mut objects, thread)) {
        layout.extra.objects = objects;
    }
}

/// Objects of the classes in question are smaller than this.
const OFFSET_MAX: u64 = 512;

/// How HotSpot encodes the offset of an instance field in its field id: above some tag bits
/// (src/hotspot/share/prims/jvm_misc.hpp, `jfieldIDWorkaround`): two up to 27, three in 28.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldIds {
    shift: u32,
}

impl FieldIds {
    const USUAL_SHIFT: u32 = 2;
    /// Number of threads to try: the collector may move an object at the moment of the reading.
    const THREADS_TRIED: usize = 16;

    /// Finds the encoding by a field whose value is known: `Thread.eetop` is the `JavaThread*`.
    fn calibrate(live: Live, layout: &Layout, env: Env) -> FieldIds {
        let usual = FieldIds {
            shift: Self::USUAL_SHIFT,
        };
        let Some(eetop) = field_id(env, c"java/lang/Thread", c"eetop", c"J") else {
            return usual;
        };
        let mut java_threads = Vec::new();
        let _ = threads::for_each(&live, layout, |thread| java_threads.push(thread));
        for thread in java_threads.into_iter().take(Self::THREADS_TRIED) {
            let Ok(value) = live.word(thread.wrapping_add(layout.thread_obj)) else {
                continue;
            };
            // A handle, or, before 14, the reference itself.
            let held = continuation::handle(&live, layout, value).unwrap_or(0);
            for (object, shift) in [held, value]
                .into_iter()
                .flat_map(|o| (1..=4).map(move |s| (o, s)))
            {
                if live.word(object.wrapping_add(eetop >> shift)) == Ok(thread) {
                    return FieldIds { shift };
                }
            }
        }
        usual
    }

    /// Offset of an instance field, if the class has it.
    #[must_use]
    pub fn offset(self, env: Env, class: &CStr, name: &CStr, kind: &CStr) -> Option<u64> {
        let offset = field_id(env, class, name, kind)? >> self.shift;
        (offset < OFFSET_MAX).then_some(offset)
    }
}

fn field_id(env: Env, class: &CStr, name: &CStr, descriptor: &CStr) -> Option<u64> {
    // SAFETY: `env` belongs to this thread, which is attached and in the live phase: all callers
    // are JVMTI callbacks or attach operations. The class reference is released before the end.
    unsafe {
        let class = env.find_class(class)?;
        let id = env.field_id(class, name, descriptor);
        env.delete_local(class);
        id.map(|id| id as u64)
    }
}

#[cfg(test)]
mod tests;

//! Walks of threads that stand still: in their own handler, or by the walking thread while they
//! wait in it.
//!
//! This code runs in signal handlers, or while a stopped thread may hold any lock. So the rules for
//! handlers apply. The drainer publishes a [`View`] with all data for walks except the thread's
//! own. It does not walk these stacks itself, but names their frames.

pub mod allocating;
pub mod remembered;

use crate::jvm::Vm;
use dwell_recorder::native::Modules;
use dwell_recorder::native::modules::{CodeMap, Read};
use dwell_recorder::sys::published::Published;
use dwell_signal::slots::Reason;
use dwell_signal::{Engine, Live, SlotHeader, ThreadRecord, WalkTarget};
use dwell_walker::cache::{PcCache, Slot as CacheSlot};
use dwell_walker::hotspot::continuation::Chunk;
use dwell_walker::hotspot::layout::{Layout, present};
use dwell_walker::hotspot::threads as vm_threads;
use dwell_walker::{Anchor, Frame, FrameKind, Host, Memory, Regs, ThreadContext, Walk, Walker};
use remembered::{Noting, Remembered, Start};
use std::sync::Arc;

/// Return addresses in the walking thread's cache.
const CACHE_ENTRIES: usize = 4096;

/// The process's structures, as walks need them.
struct View {
    vm: &'static Vm,
    map: Arc<CodeMap>,
}

static VIEW: Published<View> = Published::new();

/// Publishes the present structures of the JVM and its libraries to walks.
pub fn publish(vm: &'static Vm, modules: &Modules) {
    let map = modules.map();
    VIEW.replace(View { vm, map });
}

/// Whether there are structures to walk with.
#[must_use]
pub fn is_ready() -> bool {
    VIEW.read(|_| Some(())).is_some()
}

/// Walks the thread that runs this handler.
#[unsafe(no_mangle)]
pub extern "C" fn dwell_walk_hook(target: &mut WalkTarget<'_>) {
    walk(target, None);
}

/// The thread that walks others while they wait.
pub struct WalkingThread {
    engine: &'static Engine,
    cache: Box<[CacheSlot]>,
}

impl WalkingThread {
    /// Allocates its memory in advance.
    #[must_use]
    pub fn new(engine: &'static Engine) -> WalkingThread {
        let cache = vec![CacheSlot::empty(); CACHE_ENTRIES].into_boxed_slice();
        WalkingThread { engine, cache }
    }

    /// Walks until [`Engine::end_serving`].
    pub fn run(&self) {
        dwell_walking_thread_hook(self);
    }
}

/// Until it returns, stopped threads may hold any lock of the process.
#[unsafe(no_mangle)]
pub extern "C" fn dwell_walking_thread_hook(thread: &WalkingThread) {
    let cache = PcCache::new(&thread.cache);
    thread.engine.serve(|target| walk(target, Some(cache)));
}

/// Maximum bytes of a `JavaThread`: 1448 in JDK 17, 2296 in 25.
#[cfg(feature = "experiments")]
const JAVA_THREAD_BYTES: u64 = 2560;

#[inline]
fn walk(target: &mut WalkTarget<'_>, cache: Option<PcCache<'_>>) {
    // Reads memory without `Noting`, which would take a fifth of a deep walk.
    let live = target.live();
    #[cfg(feature = "experiments")]
    let live = dwell_recorder::experiments::Faulty::new(live);
    #[cfg(feature = "experiments")]
    let live = dwell_recorder::experiments::Noting::new(live, target.header(), JAVA_THREAD_BYTES);
    let regs = registers_of(target.header());
    let mut context = context_of(target.header(), &live);
    if !target.header().stack_end_known {
        // An alternate stack may lie below or above the ordinary one.
        context.stack_high = 0;
    }
    let is_java = begins_in_java(target.header());
    VIEW.read(|view| {
        let walker = Walker {
            machine: Host,
            mem: &live,
            layout: &view.vm.layout,
            code: &view.vm.code,
            native: &*view.map,
            cache,
        };
        target.keep(|frames| match is_java {
            true => walker.walk_java(&context, frames),
            false => walker.walk(regs, &context, frames),
        });
    });
}

/// Whether a stack is walked from the last Java frame on, and not from the interrupted place. A
/// thread that has allocated an object or waited for a monitor is in code of the VM and the agent.
#[inline]
#[must_use]
pub fn begins_in_java(header: &SlotHeader) -> bool {
    matches!(header.reason, Reason::Allocation | Reason::Wait)
}

/// The first registers of a walk.
#[must_use]
pub fn registers_of(header: &SlotHeader) -> Regs {
    header.regs.for_walk()
}

/// The handler's data on the thread, in the walker's form.
pub fn context_of<M: Memory>(header: &SlotHeader, mem: &M) -> ThreadContext {
    let noted = Anchor {
        sp: header.anchor_sp,
        pc: header.anchor_pc,
        fp: header.anchor_fp,
    };
    let anchor = match header.anchor_valid {
        true => whole(noted, mem),
        false => Anchor::default(),
    };
    let copied_to = header.stack_lo.wrapping_add(u64::from(header.stack_len));
    let stack_high = if header.truncated {
        copied_to
    } else {
        header.stack_hi
    };
    let cont_entry = on_stack(header.cont_entry, header.regs.sp(), header.stack_hi);
    ThreadContext {
        anchor,
        stack_high,
        cut: header.truncated,
        cont_entry,
        chunk: header.copied_chunks().first().map_or(0, |chunk| chunk.lo),
        poll_pc: header.word,
    }
}

/// An anchor with its pc, which may be only below sp. Empty if sp is 0.
#[inline]
fn whole<M: Memory>(noted: Anchor, mem: &M) -> Anchor {
    match (noted.sp, noted.pc) {
        (0, _) => Anchor::default(),
        (sp, 0) => Anchor {
            pc: mem.word(sp.wrapping_sub(8)).unwrap_or(0),
            ..noted
        },
        _ => noted,
    }
}

/// Address of a continuation's entry, if it is on the stack from `sp` to `high` (0: unknown); else
/// 0.
#[inline]
const fn on_stack(entry: u64, sp: u64, high: u64) -> u64 {
    if entry >= sp && (high == 0 || entry < high) {
        entry
    } else {
        0
    }
}

/// Walks a thread that waits in the kernel, from another thread. The walk begins at its anchor, and
/// at `registers` (sp and pc of its user code) if they are known. The caller must ensure that the
/// thread has not run since, else the result is meaningless. Not for handlers, and no stopped
/// thread may be held, because tables are loaded on demand. A walk in `remembered` is reused.
/// `None` if there is nothing to begin with.
pub fn walk_waiting(
    live: &Live,
    record: &ThreadRecord,
    registers: Option<(u64, u64)>,
    cache: Option<PcCache<'_>>,
    remembered: Option<&Remembered>,
    frames: &mut [Frame],
) -> Option<Walk> {
    VIEW.read(|view| {
        let layout = &view.vm.layout;
        let (regs, context) = waiting(live, layout, record, registers);
        let walk = |mem: &Noting<'_>, frames: &mut [Frame]| {
            let walker = Walker {
                machine: Host,
                mem,
                layout,
                code: &view.vm.code,
                native: &Read(&view.map),
                cache,
            };
            walker.walk(regs, &context, frames)
        };
        let start = Start {
            thread: record.managed_thread(),
            pc: regs.pc,
            sp: regs.sp,
            fp: regs.fp,
            anchor: context.anchor,
            high: context.stack_high,
            map: Arc::as_ptr(&view.map).addr(),
        };
        let is_plain = !runs_continuation(live, layout, record) && context.stack_high != 0;
        match remembered.filter(|_| is_plain) {
            Some(remembered) => remembered.walk(*live, &start, frames, walk),
            None => walk(&Noting::nothing(*live), frames),
        }
    })
}

/// The innermost method of the calling thread, which is in a callback of the VM. `None` if it is
/// unknown.
fn innermost_method(live: &Live, record: &ThreadRecord) -> Option<u64> {
    // Stubs come before it. The last one is for the failure: the walk stops on purpose.
    const FRAMES: usize = 6;
    let mut frames = [Frame::EMPTY; FRAMES];
    let walk = walk_waiting(live, record, None, None, None, &mut frames)?;
    let frames = frames.iter().take(walk.len);
    let mut frames = frames.take_while(|frame| frame.kind != FrameKind::Failed);
    frames.find(|it| it.kind.is_managed()).map(|it| it.id)
}

/// Walks a thread that waits in the kernel into a slot, like [`walk_waiting`]. The calling thread
/// waits for a monitor of that thread. It uses only what handlers may use: its stack may have
/// little room, and other threads may hold locks. False if there was nothing to begin with.
pub fn walk_owner(
    target: &mut WalkTarget<'_>,
    record: &ThreadRecord,
    registers: Option<(u64, u64)>,
) -> bool {
    let live = target.live();
    #[cfg(feature = "experiments")]
    let memory = dwell_recorder::experiments::Faulty::new(Noting::nothing(live));
    #[cfg(feature = "experiments")]
    let memory =
        dwell_recorder::experiments::Noting::new(memory, target.header(), JAVA_THREAD_BYTES);
    #[cfg(not(feature = "experiments"))]
    let memory = Noting::nothing(live);
    let walked = VIEW.read(|view| {
        let (regs, context) = waiting(&live, &view.vm.layout, record, registers);
        let walker = Walker {
            machine: Host,
            // The same code as in handlers.
            mem: &memory,
            layout: &view.vm.layout,
            code: &view.vm.code,
            native: &*view.map,
            cache: None,
        };
        target.keep(|frames| walker.walk(regs, &context, frames));
    });
    walked.is_some()
}

/// The start of a walk of a thread that waits in the kernel: its anchor, and `registers` if they
/// are known.
fn waiting(
    live: &Live,
    layout: &Layout,
    record: &ThreadRecord,
    registers: Option<(u64, u64)>,
) -> (Regs, ThreadContext) {
    let thread = record.managed_thread();
    let anchor = match thread {
        0 => Anchor::default(),
        _ => vm_threads::anchor(live, layout, thread).unwrap_or_default(),
    };
    let (sp, pc) = registers.unwrap_or((anchor.sp, anchor.pc));
    let fp = if registers.is_some() { 0 } else { anchor.fp };
    let entry = match layout.extra.cont_entry {
        offset if present(offset) && thread != 0 => {
            live.word(thread.wrapping_add(offset)).unwrap_or(0)
        }
        _ => 0,
    };
    let high = record.stack_high();
    let context = ThreadContext {
        anchor,
        stack_high: high,
        cut: false,
        cont_entry: on_stack(entry, sp, high),
        chunk: 0,
        poll_pc: 0,
    };
    let regs = Regs {
        pc,
        sp,
        fp,
        ..Regs::default()
    };
    (regs, context)
}

/// Whether the thread has frames of a virtual thread on its stack.
fn runs_continuation(live: &Live, layout: &Layout, record: &ThreadRecord) -> bool {
    let (at, thread) = (layout.extra.cont_entry, record.managed_thread());
    present(at) && thread != 0 && live.word(thread.wrapping_add(at)) != Ok(0)
}

/// Walks an unmounted virtual thread, in the heap. The caller must ensure that it has not been
/// mounted since. `None` if there is nothing to begin with.
pub fn walk_unmounted(
    live: &Live,
    chunk: &Chunk,
    cache: Option<PcCache<'_>>,
    frames: &mut [Frame],
) -> Option<Walk> {
    VIEW.read(|view| {
        let layout = &view.vm.layout;
        let walker = Walker {
            machine: Host,
            // The same code as for threads that wait on a stack.
            mem: &Noting::nothing(*live),
            layout,
            code: &view.vm.code,
            native: &Read(&view.map),
            cache,
        };
        (layout.extra.return_barrier != 0).then(|| walker.walk_unmounted(chunk, frames))
    })?
}

#[cfg(test)]
mod tests;

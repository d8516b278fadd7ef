//! Walks of threads that stand still: in their own handler, or by the walking thread while they
//! wait in it.
//!
//! What is here runs in signal handlers, or while a thread is held that may have any lock: the
//! rules for handlers apply. What a walk needs, apart from the thread, is in a [`View`] that the
//! drainer publishes; it walks nothing itself then, but names the frames.

use crate::jvm::Vm;
use crate::native::Modules;
use crate::native::modules::CodeMap;
use crate::sys::published::Published;
use dwell_signal::{Engine, SlotHeader, WalkTarget};
use dwell_walker::cache::{PcCache, Slot as CacheSlot};
use dwell_walker::{Anchor, Memory, Regs, ThreadContext, Walker};
use std::sync::Arc;

/// Return addresses that the walking thread remembers.
const CACHE_ENTRIES: usize = 4096;

/// What walks need to know of the process.
struct View {
    vm: &'static Vm,
    map: Arc<CodeMap>,
}

static VIEW: Published<View> = Published::new();

/// Lets walks use what is known of the JVM and its libraries by now.
pub fn publish(vm: &'static Vm, modules: &Modules) {
    let map = modules.map();
    VIEW.replace(View { vm, map });
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
    /// Allocates what it needs beforehand.
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

/// Until it returns, threads may be held that have any lock of the process.
#[unsafe(no_mangle)]
pub extern "C" fn dwell_walking_thread_hook(thread: &WalkingThread) {
    let cache = PcCache::new(&thread.cache);
    thread.engine.serve(|target| walk(target, Some(cache)));
}

#[inline]
fn walk(target: &mut WalkTarget<'_>, cache: Option<PcCache<'_>>) {
    let live = target.live();
    #[cfg(feature = "experiments")]
    let live = crate::experiments::Faulty::new(live);
    let regs = registers_of(target.header());
    let mut context = context_of(target.header(), &live);
    if !target.header().stack_end_known {
        // An alternate stack may lie below or above the ordinary one.
        context.stack_high = 0;
    }
    VIEW.read(|view| {
        let walker = Walker {
            mem: &live,
            layout: &view.vm.layout,
            code: &view.vm.code,
            native: &*view.map,
            cache,
        };
        target.keep(|frames| walker.walk(regs, &context, frames));
    });
}

/// The registers that a walk begins with.
#[must_use]
pub fn registers_of(header: &SlotHeader) -> Regs {
    let regs = &header.regs;
    Regs {
        pc: regs.rip,
        sp: regs.rsp,
        fp: regs.rbp,
        rax: regs.rax,
        rbx: regs.rbx,
        rcx: regs.rcx,
        rdx: regs.rdx,
        r13: regs.r13,
    }
}

/// What the handler noted of the thread, as the walker wants it.
pub fn context_of<M: Memory>(header: &SlotHeader, mem: &M) -> ThreadContext {
    let mut anchor = Anchor::default();
    if header.anchor_valid && header.anchor_sp != 0 {
        let pc = match header.anchor_pc {
            0 => mem.word(header.anchor_sp.wrapping_sub(8)).unwrap_or(0),
            pc => pc,
        };
        anchor = Anchor {
            sp: header.anchor_sp,
            pc,
            fp: header.anchor_fp,
        };
    }
    let copied_to = header.stack_lo.wrapping_add(u64::from(header.stack_len));
    let stack_high = if header.truncated {
        copied_to
    } else {
        header.stack_hi
    };
    let entry = header.cont_entry;
    let on_stack = entry >= header.regs.rsp && (header.stack_hi == 0 || entry < header.stack_hi);
    let cont_entry = if on_stack { entry } else { 0 };
    ThreadContext {
        anchor,
        stack_high,
        cut: header.truncated,
        cont_entry,
        chunk: header.copied_chunks().first().map_or(0, |chunk| chunk.lo),
    }
}

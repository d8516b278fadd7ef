//! The constants of a chunk: threads, methods, stacks and what they are made of, each interned in
//! its pool. Writes checkpoints; knows nothing of events and of the file.

use super::constant_pool::Pool;
use super::names::{package, printable_class, printable_descriptor, printable_object_class};
use super::{ClassId, FrameRef, MethodId, MethodInfo, Origin, StackId, ThreadId, ThreadInfo};
use crate::hash::Seeds;
use crate::schema::id;
use crate::wire::{STRING_UTF8, cut, put_framed, put_int, put_text, put_varint};
use crate::{FrameKind, ThreadState};
use std::collections::HashMap;

/// Async-profiler's name for the state of a thread that was sampled by CPU time. Its tools accept
/// no other for such a sample.
const COMMON_STATE: &str = "STATE_DEFAULT";

/// A string of no bytes.
const EMPTY_SYMBOL: [u8; 2] = [STRING_UTF8, 0];

/// Longest symbol; the class file format allows no longer name.
const SYMBOL_BYTES_MAX: usize = 65_535;

pub(crate) struct Constants {
    symbols: Pool,
    strings: Pool,
    modules: Pool,
    packages: Pool,
    classes: Pool,
    methods: Pool,
    stacks: Pool,
    groups: Pool,
    threads: Pool,
    /// All names of kinds of frames as the file has them, until they are written.
    frame_types: Option<Vec<u8>>,
    thread_states: Pool,
    method_keys: HashMap<u64, MethodId, Seeds>,
    thread_keys: HashMap<u64, ThreadId, Seeds>,
    /// Whether frames have the types alone that other tools know.
    is_plain: bool,
    scratch: Vec<u8>,
}

impl Constants {
    /// With the two fixed pools filled, so that the first checkpoint is never empty.
    pub(crate) fn new(base: u32, is_plain: bool) -> Self {
        let mut constants = Self {
            symbols: Pool::above(id::SYMBOL, base),
            strings: Pool::above(id::STRING, base),
            modules: Pool::above(id::MODULE, base),
            packages: Pool::above(id::PACKAGE, base),
            classes: Pool::above(id::CLASS, base),
            methods: Pool::above(id::METHOD, base),
            stacks: Pool::above(id::STACK_TRACE, base),
            groups: Pool::above(id::THREAD_GROUP, base),
            threads: Pool::above(id::THREAD, base),
            frame_types: Some(frame_types(is_plain)),
            thread_states: Pool::new(id::THREAD_STATE),
            method_keys: HashMap::default(),
            thread_keys: HashMap::default(),
            is_plain,
            scratch: Vec::new(),
        };
        for state in ThreadState::ALL {
            let name = match state {
                ThreadState::Other if is_plain => COMMON_STATE,
                state => state.name(),
            };
            intern_text(&mut constants.thread_states, name);
        }
        constants
    }

    /// The largest key of any pool.
    pub(crate) fn last_key(&self) -> u32 {
        let pools = [
            &self.symbols,
            &self.strings,
            &self.modules,
            &self.packages,
            &self.classes,
            &self.methods,
            &self.stacks,
            &self.groups,
            &self.threads,
        ];
        pools.into_iter().map(Pool::last_key).max().unwrap_or(0)
    }

    pub(crate) fn thread_id(&self, key: u64) -> Option<ThreadId> {
        self.thread_keys.get(&key).copied()
    }

    pub(crate) fn method_id(&self, key: u64) -> Option<MethodId> {
        self.method_keys.get(&key).copied()
    }

    /// Interns the thread and lets `key` mean it from now on.
    pub(crate) fn set_thread(&mut self, key: u64, info: &ThreadInfo<'_>) -> ThreadId {
        let group = info.group.map_or(0, |name| {
            self.scratch.clear();
            put_varint(&mut self.scratch, 0); // no parent
            put_text(&mut self.scratch, name);
            self.groups.intern(&self.scratch)
        });
        self.scratch.clear();
        put_text(&mut self.scratch, info.os_name);
        put_varint(&mut self.scratch, info.os_tid.cast_unsigned());
        match info.java_name {
            Some(name) => put_text(&mut self.scratch, name),
            None => self.scratch.push(0),
        }
        put_varint(&mut self.scratch, info.java_tid.cast_unsigned());
        put_varint(&mut self.scratch, u64::from(group));
        self.scratch.push(u8::from(info.is_virtual));
        let thread = ThreadId(self.threads.intern(&self.scratch));
        self.thread_keys.insert(key, thread);
        thread
    }

    /// Interns the method and lets `key` mean it from now on.
    pub(crate) fn set_method(&mut self, key: u64, info: &MethodInfo<'_>) -> MethodId {
        let class = self.class(info.class, info.origin);
        let name = self.symbol(info.name);
        let descriptor = self.symbol(printable_descriptor(info.descriptor));
        self.scratch.clear();
        put_varint(&mut self.scratch, u64::from(class));
        put_varint(&mut self.scratch, u64::from(name));
        put_varint(&mut self.scratch, u64::from(descriptor));
        put_varint(&mut self.scratch, u64::from(info.modifiers));
        self.scratch.push(u8::from(info.hidden));
        let method = MethodId(self.methods.intern(&self.scratch));
        self.method_keys.insert(key, method);
        method
    }

    pub(crate) fn stack(&mut self, frames: &[FrameRef], truncated: bool) -> StackId {
        self.scratch.clear();
        self.scratch.push(u8::from(truncated));
        put_varint(&mut self.scratch, frames.len() as u64);
        for frame in frames {
            put_varint(&mut self.scratch, u64::from(frame.method.0));
            // In native code there is neither; -1 would take five bytes each.
            let [line, bci] = match frame.kind.is_managed() {
                true => [frame.line, frame.bci],
                false => [frame.line.max(0), frame.bci.max(0)],
            };
            put_int(&mut self.scratch, line);
            put_int(&mut self.scratch, bci);
            let kind = match self.is_plain {
                true => frame.kind.common_key(),
                false => frame.kind.pool_key(),
            };
            put_varint(&mut self.scratch, u64::from(kind));
        }
        StackId(self.stacks.intern(&self.scratch))
    }

    /// The key of a string that several events share.
    pub(crate) fn string(&mut self, text: &str) -> u32 {
        intern_text(&mut self.strings, text)
    }

    /// Appends a checkpoint with everything that is new; `false` if nothing is.
    pub(crate) fn write_checkpoint(&mut self, out: &mut Vec<u8>, ticks: u64, delta: i64) -> bool {
        let pools = [
            &mut self.thread_states,
            &mut self.symbols,
            &mut self.strings,
            &mut self.modules,
            &mut self.packages,
            &mut self.classes,
            &mut self.methods,
            &mut self.stacks,
            &mut self.groups,
            &mut self.threads,
        ];
        let frame_types = self.frame_types.take();
        let pending = pools.iter().filter(|pool| pool.has_pending()).count();
        let pending = pending + usize::from(frame_types.is_some());
        if pending == 0 {
            return false;
        }
        let mut body = Vec::new();
        put_varint(&mut body, u64::from(id::CHECKPOINT));
        put_varint(&mut body, ticks);
        put_varint(&mut body, 0); // duration
        put_varint(&mut body, delta.cast_unsigned());
        body.push(0); // an ordinary checkpoint
        put_varint(&mut body, pending as u64);
        body.extend(frame_types.unwrap_or_default());
        for pool in pools.into_iter().filter(|pool| pool.has_pending()) {
            pool.write_pending(&mut body); // readers refuse a pool without elements
        }
        put_framed(out, &body);
        true
    }

    /// Heap memory, without the allocator's own.
    pub(crate) fn memory_bytes(&self) -> usize {
        let pools = [
            &self.symbols,
            &self.strings,
            &self.modules,
            &self.packages,
            &self.classes,
            &self.methods,
            &self.stacks,
            &self.groups,
            &self.threads,
        ];
        let slot = size_of::<(u64, u32)>() + 1;
        let keys = self.method_keys.capacity() + self.thread_keys.capacity();
        pools.iter().map(|pool| pool.memory_bytes()).sum::<usize>()
            + keys * slot * 8 / 7
            + self.scratch.capacity()
    }

    /// The class of objects; equal names share an id.
    pub(crate) fn object_class(&mut self, name: &str) -> ClassId {
        let name = printable_object_class(name);
        ClassId(self.named_class(&name, None))
    }

    fn class(&mut self, name: &str, origin: Option<Origin<'_>>) -> u32 {
        self.named_class(&printable_class(name), origin)
    }

    fn named_class(&mut self, name: &str, origin: Option<Origin<'_>>) -> u32 {
        let module = origin.map_or(0, |origin| self.module(origin));
        // The module belongs to the package, so a class without one has the unnamed package.
        let package = package(name).or((module != 0).then_some(""));
        let package = package.map_or(0, |package| {
            let symbol = self.symbol(package);
            self.scratch.clear();
            put_varint(&mut self.scratch, u64::from(symbol));
            put_varint(&mut self.scratch, u64::from(module));
            self.scratch.push(0); // exported: not known
            self.packages.intern(&self.scratch)
        });
        let symbol = self.symbol(name);
        self.scratch.clear();
        put_varint(&mut self.scratch, 0); // no class loader
        put_varint(&mut self.scratch, u64::from(symbol));
        put_varint(&mut self.scratch, u64::from(package));
        put_varint(&mut self.scratch, 0); // modifiers: not known
        self.scratch.push(0); // hidden: a property of our methods, not classes
        self.classes.intern(&self.scratch)
    }

    /// A module. The module of classes on the class path has no name, but a location.
    fn module(&mut self, origin: Origin<'_>) -> u32 {
        let mut symbol_of = |text: &str| match text {
            "" => 0,
            _ => self.symbol(text),
        };
        let (name, location) = (symbol_of(origin.module), symbol_of(origin.location));
        self.scratch.clear();
        put_varint(&mut self.scratch, u64::from(name));
        put_varint(&mut self.scratch, 0); // version: not known
        put_varint(&mut self.scratch, u64::from(location));
        put_varint(&mut self.scratch, 0); // no class loader
        self.modules.intern(&self.scratch)
    }

    /// Also an empty one is written with its length, as the JDK does: some readers take no others.
    fn symbol(&mut self, text: &str) -> u32 {
        match cut(text, SYMBOL_BYTES_MAX) {
            "" => self.symbols.intern(&EMPTY_SYMBOL),
            text => intern_text(&mut self.symbols, text),
        }
    }
}

/// The pool of kinds of frames: its keys have gaps.
fn frame_types(is_plain: bool) -> Vec<u8> {
    let mut pool = Vec::new();
    let common = FrameKind::COMMON.iter().zip(0..);
    let own = FrameKind::ALL.iter();
    let types: Vec<(u32, &str)> = match is_plain {
        true => common.map(|(name, key)| (key, *name)).collect(),
        false => own.map(|kind| (kind.pool_key(), kind.name())).collect(),
    };
    put_varint(&mut pool, u64::from(id::FRAME_TYPE));
    put_varint(&mut pool, types.len() as u64);
    for (key, name) in types {
        put_varint(&mut pool, u64::from(key));
        put_text(&mut pool, name);
    }
    pool
}

fn intern_text(pool: &mut Pool, text: &str) -> u32 {
    let mut encoded = Vec::with_capacity(text.len() + 4);
    put_text(&mut encoded, text);
    pool.intern(&encoded)
}

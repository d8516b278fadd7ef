//! Building a profile piece by piece, interning everything.

use dwell_jfr::hash::Seeds;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::allocations::{Allocation, AllocationSampling, LostAllocations};
use crate::collections::Collection;
use crate::frame::{Frame, FrameId, FrameKind, Method, MethodId};
use crate::host::Host;
use crate::info::{CpuLimit, CpuUse, Gap, Info, Loss, SelfCost, Unread};
use crate::live::{LiveObject, LiveSampling};
use crate::locks::{LockLook, MonitorOwner, MonitorSums, MonitorWait};
use crate::names::{NameId, Names};
use crate::platform::is_class;
use crate::profile::{Profile, Unit};
use crate::requests::Request;
use crate::sample::{CauseId, Context, ContextId, Look, Sample, Thread, ThreadId};
use crate::spans::Span;
use crate::stops::{Late, Safepoint};
use crate::stretches::Stretches;
use crate::surroundings::{Compilation, Compilers, Machine, Throttled};
use crate::thread_time::ThreadTime;
use crate::traced::{ThrownSum, Traced};
use crate::tree::{NodeId, TreeBuilder};

/// A profile under construction.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    names: Names,
    methods: Vec<Method>,
    method_ids: HashMap<Method, MethodId, Seeds>,
    frames: Vec<Frame>,
    frame_ids: HashMap<Frame, FrameId, Seeds>,
    threads: Vec<Thread>,
    tree: TreeBuilder,
    samples: Vec<Sample>,
    looks: Vec<Look>,
    carriers: BTreeMap<u32, ThreadId>,
    contexts: Vec<Context>,
    context_ids: HashMap<Context, ContextId>,
    /// Within how long samples were put together; 0: they were not.
    pub bin_ns: u64,
    /// The unit of the weights.
    pub unit: Unit,
    /// Where and how the recording was made.
    pub info: Info,
    /// The environment of the program.
    pub host: Host,
    /// Samples lost, by cause.
    pub losses: Vec<Loss>,
    /// Times without sampling.
    pub gaps: Vec<Gap>,
    /// Stretches of time with events of their own.
    pub stretches: Stretches,
    /// Stops of all threads.
    pub safepoints: Vec<Safepoint>,
    /// Threads that others waited for then.
    pub late: Vec<Late>,
    /// Collections with their causes.
    pub collections: Vec<Collection>,
    /// Where the program asked for collections.
    pub collection_calls: Vec<NodeId>,
    /// Objects that were allocated.
    pub allocations: Vec<Allocation>,
    /// How these were sampled.
    pub allocation_sampling: Option<AllocationSampling>,
    /// Lost samples of allocations.
    pub lost_allocations: Vec<LostAllocations>,
    /// Objects that are still there.
    pub live: Vec<LiveObject>,
    /// How these were followed.
    pub live_sampling: Option<LiveSampling>,
    /// Waits for monitors that were chosen.
    pub monitor_waits: Vec<MonitorWait>,
    /// Where owners of monitors were.
    pub monitor_owners: Vec<MonitorOwner>,
    /// The sums of all waits.
    pub monitor_sums: Option<MonitorSums>,
    /// Looks that are part of the time in locks.
    pub lock_looks: Vec<LockLook>,
    /// The kernel's account of threads.
    pub thread_times: Vec<ThreadTime>,
    /// The processors that the process could use.
    pub cpu_limit: Option<CpuLimit>,
    /// When the control group held the process back.
    pub throttled: Vec<Throttled>,
    /// Single compilations.
    pub compilations: Vec<Compilation>,
    /// The JVM's counters of its compilers.
    pub compilers: Vec<Compilers>,
    /// The use of the machine's processors.
    pub machine: Vec<Machine>,
    /// Requests that have ended.
    pub requests: Vec<Request>,
    /// Spans with times inside of requests.
    pub spans: Vec<Span>,
    /// The cost of the profiler.
    pub self_cost: Option<SelfCost>,
    /// CPU time of the process.
    pub cpu_use: Option<CpuUse>,
    /// Events of other recorders that are no time of threads.
    pub traced: Vec<Traced>,
    /// The JVM's count of exceptions.
    pub thrown: Option<ThrownSum>,
    /// Problems of the recording.
    pub warnings: Vec<String>,
    /// The unreadable parts of the file.
    pub unread: Option<Unread>,
}

impl Builder {
    /// The id of a name.
    pub fn name(&mut self, text: &str) -> NameId {
        self.names.intern(text)
    }

    /// The id of a method; `class` with dots.
    pub fn method(&mut self, class: &str, name: &str, descriptor: &str) -> MethodId {
        self.method_of(None, class, name, descriptor)
    }

    /// The id of a method whose class is from a known library.
    pub fn method_of(
        &mut self,
        library: Option<&str>,
        class: &str,
        name: &str,
        descriptor: &str,
    ) -> MethodId {
        let method = Method {
            class: self.names.intern(class),
            name: self.names.intern(name),
            descriptor: self.names.intern(descriptor),
            library: library.map(|library| self.names.intern(library)),
        };
        let next = self.methods.len() as MethodId;
        let id = *self.method_ids.entry(method).or_insert(next);
        if id == next {
            self.methods.push(method);
        }
        id
    }

    /// The id of a frame.
    pub fn frame(&mut self, method: MethodId, line: u32, kind: FrameKind) -> FrameId {
        let frame = Frame { method, line, kind };
        let next = self.frames.len() as FrameId;
        let id = *self.frame_ids.entry(frame).or_insert(next);
        if id == next {
            self.frames.push(frame);
        }
        id
    }

    /// A frame that stands for no code, such as `[truncated]`.
    pub fn marker(&mut self, text: &str, kind: FrameKind) -> FrameId {
        let method = self.method("", text, "");
        self.frame(method, 0, kind)
    }

    /// Adds a thread. Threads are not merged: two threads of one name are two threads.
    pub fn thread(&mut self, name: &str, os_tid: i64, java_tid: i64, is_virtual: bool) -> ThreadId {
        let name = self.names.intern(name);
        self.threads.push(Thread {
            name,
            os_tid,
            java_tid,
            is_virtual,
        });
        (self.threads.len() - 1) as ThreadId
    }

    /// The node of a stack, frames given from the outermost inwards.
    pub fn stack(&mut self, outermost_first: impl IntoIterator<Item = FrameId>) -> NodeId {
        self.tree.stack(outermost_first)
    }

    /// The node of a frame below another node.
    pub fn child(&mut self, parent: NodeId, frame: FrameId) -> NodeId {
        self.tree.child(parent, frame)
    }

    /// The node that another node is below.
    pub fn parent(&self, node: NodeId) -> NodeId {
        self.tree.parent(node)
    }

    /// Makes room for so many samples and looks, and no more.
    pub(crate) fn reserve(&mut self, samples: usize, looks: usize) {
        self.samples.reserve_exact(samples);
        self.looks.reserve_exact(looks);
    }

    /// Adds a sample.
    pub fn sample(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    /// Adds wall-clock samples of a thread.
    pub fn look(&mut self, look: Look) {
        self.looks.push(look);
    }

    /// Adds wall-clock samples, with the carrier if a virtual thread kept it while it waited.
    pub fn look_on(&mut self, look: Look, carrier: Option<ThreadId>) {
        if let Some(carrier) = carrier {
            let place = u32::try_from(self.looks.len()).unwrap_or(u32::MAX);
            self.carriers.insert(place, carrier);
        }
        self.looks.push(look);
    }

    /// How many looks there are by now.
    pub(crate) fn looks_len(&self) -> u32 {
        u32::try_from(self.looks.len()).unwrap_or(u32::MAX)
    }

    /// The wall-clock samples at a place.
    pub(crate) fn look_at(&self, place: u32) -> Option<&Look> {
        self.looks.get(place as usize)
    }

    /// All looks by now.
    pub(crate) fn looks(&self) -> impl Iterator<Item = &Look> {
        self.looks.iter()
    }

    /// All samples by now.
    pub(crate) fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter()
    }

    /// Whether a thread is a virtual one.
    pub(crate) fn is_virtual(&self, thread: ThreadId) -> bool {
        let thread = self.threads.get(thread as usize);
        thread.is_some_and(|thread| thread.is_virtual)
    }

    /// Whether it is a Java thread.
    pub(crate) fn is_java(&self, thread: ThreadId) -> bool {
        let thread = self.threads.get(thread as usize);
        thread.is_some_and(|thread| thread.java_tid != 0)
    }

    /// The platform threads on which virtual threads were seen.
    pub(crate) fn carriers(&self) -> BTreeSet<ThreadId> {
        let by_time = self.thread_times.iter().filter(|it| it.is_carrier);
        let by_time = by_time.map(|it| it.thread);
        self.carriers.values().copied().chain(by_time).collect()
    }

    /// Sets the cause of the wait of the samples at a place.
    pub(crate) fn set_cause(&mut self, place: u32, cause: CauseId) {
        if let Some(look) = self.looks.get_mut(place as usize) {
            look.cause = cause;
        }
    }

    /// Sets the object of the wait of the samples at a place.
    pub(crate) fn set_detail(&mut self, place: u32, detail: Option<NameId>) {
        if let Some(look) = self.looks.get_mut(place as usize) {
            look.detail = detail;
        }
    }

    /// The Java methods of a stack, native ones included, innermost first.
    pub(crate) fn java_methods(&self, node: NodeId) -> impl Iterator<Item = MethodId> {
        let frames = self.tree.keys_up(node);
        let frames = frames.filter_map(|frame| self.frames.get(frame as usize));
        let is_method = |frame: &&Frame| match frame.kind {
            FrameKind::Native => is_class(self.class_of(frame.method)),
            kind => kind.is_java(),
        };
        frames.filter(is_method).map(|frame| frame.method)
    }

    /// The class of a method.
    pub(crate) fn class_of(&self, method: MethodId) -> &str {
        let method = self.methods.get(method as usize);
        method.map_or("", |method| self.names.text(method.class))
    }

    /// The name of a method, without its class.
    pub(crate) fn method_name(&self, method: MethodId) -> &str {
        let method = self.methods.get(method as usize);
        method.map_or("", |method| self.names.text(method.name))
    }

    /// A name.
    pub(crate) fn text(&self, name: NameId) -> &str {
        self.names.text(name)
    }

    /// The id of what a thread worked for.
    pub fn context(&mut self, context: Context) -> ContextId {
        let next = self.contexts.len() as ContextId;
        if let Some(&id) = self.context_ids.get(&context) {
            return id;
        }
        self.contexts.push(context.clone());
        self.context_ids.insert(context, next);
        next
    }

    /// The id of a failure's cause.
    pub fn cause(&mut self, text: &str) -> CauseId {
        self.names.intern(text)
    }

    /// The profile. Samples of threads that were never added are kept under a thread of their own.
    pub fn finish(mut self) -> Profile {
        let known = self.threads.len() as ThreadId;
        if self.samples.iter().any(|sample| sample.thread >= known) {
            let unknown = self.thread("[unknown thread]", 0, 0, false);
            for sample in self
                .samples
                .iter_mut()
                .filter(|sample| sample.thread >= known)
            {
                sample.thread = unknown;
            }
        }
        Profile {
            names: self.names,
            methods: self.methods,
            frames: self.frames,
            threads: self.threads,
            tree: self.tree.finish(),
            samples: self.samples,
            looks: self.looks,
            carriers: self.carriers,
            thread_times: self.thread_times,
            contexts: self.contexts,
            derived_endpoints: false,
            bin_ns: self.bin_ns,
            unit: self.unit,
            info: self.info,
            host: self.host,
            losses: self.losses,
            gaps: self.gaps,
            stretches: self.stretches,
            safepoints: self.safepoints,
            late: self.late,
            collections: self.collections,
            collection_calls: self.collection_calls,
            allocations: self.allocations,
            allocation_sampling: self.allocation_sampling,
            lost_allocations: self.lost_allocations,
            live: self.live,
            live_sampling: self.live_sampling,
            monitor_waits: self.monitor_waits,
            monitor_owners: self.monitor_owners,
            monitor_sums: self.monitor_sums,
            lock_looks: self.lock_looks,
            cpu_limit: self.cpu_limit,
            throttled: self.throttled,
            compilations: self.compilations,
            compilers: self.compilers,
            machine: self.machine,
            requests: self.requests,
            spans: self.spans,
            self_cost: self.self_cost,
            cpu_use: self.cpu_use,
            traced: self.traced,
            thrown: self.thrown,
            warnings: self.warnings,
            unread: self.unread,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interns_methods_and_frames_but_not_threads() {
        let mut builder = Builder::default();
        let method = builder.method("a.A", "x", "()V");
        assert_eq!(builder.method("a.A", "x", "()V"), method);
        assert_ne!(builder.method("a.A", "x", "(I)V"), method);
        let frame = builder.frame(method, 7, FrameKind::C2);
        assert_eq!(builder.frame(method, 7, FrameKind::C2), frame);
        assert_ne!(builder.frame(method, 8, FrameKind::C2), frame);
        assert_ne!(
            builder.thread("t", 1, 1, false),
            builder.thread("t", 2, 2, false)
        );
    }

    #[test]
    fn a_sample_of_an_unknown_thread_is_kept() {
        let mut builder = Builder::default();
        builder.thread("main", 1, 1, false);
        let node = builder.stack([]);
        builder.sample(Sample {
            time_ns: 0,
            thread: 40,
            node,
            weight: 3,
            count: 1,
            failure: None,
            context: None,
        });
        let profile = builder.finish();
        assert_eq!(profile.total().sum, 3);
        assert_eq!(
            profile.thread_name(profile.samples()[0].thread),
            "[unknown thread]"
        );
    }
}

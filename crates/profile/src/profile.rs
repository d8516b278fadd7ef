//! The profile: tables of names, methods, frames, threads, stacks and samples, and their sums.

use std::collections::BTreeMap;

use crate::allocations::{Allocation, AllocationSampling, LostAllocations};
use crate::collections::Collection;
use crate::frame::{Frame, FrameId, FrameKind, Method, MethodId};
use crate::host::Host;
use crate::info::{CpuLimit, CpuUse, Gap, Info, Loss, SelfCost, Unread};
use crate::live::{LiveObject, LiveSampling};
use crate::locks::{LockLook, MonitorOwner, MonitorSums, MonitorWait};
use crate::names::Names;
use crate::requests::{self, Latencies, Request};
use crate::sample::{CauseId, Context, Look, Sample, Thread, ThreadId, Weight};
use crate::spans::Span;
use crate::stops::{self, Late, Safepoint};
use crate::stretches::Stretches;
use crate::surroundings::{Compilation, Compilers, Machine, Throttled};
use crate::thread_time::ThreadTime;
use crate::traced::{ThrownSum, Traced};
use crate::tree::{CallTree, NodeId};

/// The unit of the weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    #[default]
    Nanoseconds,
    /// Samples: the recording carries no weights.
    Samples,
}

/// How much of a profile failed for one cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The cause's name.
    pub cause: String,
    /// The samples whose stacks are not whole because of it.
    pub weight: Weight,
}

/// A whole profile. Its parts are read through methods; it does not change after it is built.
#[derive(Clone, Debug)]
pub struct Profile {
    pub(crate) names: Names,
    pub(crate) methods: Vec<Method>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) tree: CallTree,
    pub(crate) samples: Vec<Sample>,
    pub(crate) looks: Vec<Look>,
    pub(crate) carriers: BTreeMap<u32, ThreadId>,
    pub(crate) thread_times: Vec<ThreadTime>,
    pub(crate) contexts: Vec<Context>,
    pub(crate) derived_endpoints: bool,
    pub(crate) bin_ns: u64,
    pub(crate) unit: Unit,
    pub(crate) info: Info,
    pub(crate) host: Host,
    pub(crate) losses: Vec<Loss>,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) requests: Vec<Request>,
    pub(crate) spans: Vec<Span>,
    pub(crate) stretches: Stretches,
    pub(crate) safepoints: Vec<Safepoint>,
    pub(crate) late: Vec<Late>,
    pub(crate) collections: Vec<Collection>,
    pub(crate) collection_calls: Vec<NodeId>,
    pub(crate) allocations: Vec<Allocation>,
    pub(crate) allocation_sampling: Option<AllocationSampling>,
    pub(crate) lost_allocations: Vec<LostAllocations>,
    pub(crate) live: Vec<LiveObject>,
    pub(crate) live_sampling: Option<LiveSampling>,
    pub(crate) monitor_waits: Vec<MonitorWait>,
    pub(crate) monitor_owners: Vec<MonitorOwner>,
    pub(crate) monitor_sums: Option<MonitorSums>,
    pub(crate) lock_looks: Vec<LockLook>,
    pub(crate) cpu_limit: Option<CpuLimit>,
    pub(crate) throttled: Vec<Throttled>,
    pub(crate) compilations: Vec<Compilation>,
    pub(crate) compilers: Vec<Compilers>,
    pub(crate) machine: Vec<Machine>,
    pub(crate) self_cost: Option<SelfCost>,
    pub(crate) cpu_use: Option<CpuUse>,
    pub(crate) traced: Vec<Traced>,
    pub(crate) thrown: Option<ThrownSum>,
    pub(crate) warnings: Vec<String>,
    pub(crate) unread: Option<Unread>,
}

impl Profile {
    /// All names.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// All methods, by [`MethodId`].
    pub fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// All frames, by [`FrameId`].
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// All threads, by [`ThreadId`].
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// The stacks, as a tree over [`FrameId`]s.
    pub fn tree(&self) -> &CallTree {
        &self.tree
    }

    /// The contexts of threads, by [`ContextId`](crate::ContextId).
    pub fn contexts(&self) -> &[Context] {
        &self.contexts
    }

    /// The samples, in the order of the recording.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Samples and looks that say the same within so long are one, because the recording has so
    /// many; 0: none are.
    pub fn bin_ns(&self) -> u64 {
        self.bin_ns
    }

    /// Wall-clock samples of threads that did not run, in the order of the recording.
    pub fn looks(&self) -> &[Look] {
        &self.looks
    }

    /// The platform thread that a virtual one kept while it waited, for the sample at this place of
    /// [`Profile::looks`]; `None` without such a thread.
    pub fn carrier_of_look(&self, place: usize) -> Option<ThreadId> {
        let place = u32::try_from(place).ok()?;
        self.carriers.get(&place).copied()
    }

    /// Requests that ended while the recording ran, in the order of the file.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// Latencies by endpoint; those of requests without one under `None`.
    #[must_use]
    pub fn latencies(&self) -> BTreeMap<Option<&str>, Latencies> {
        requests::latencies(&self.requests, &self.names)
    }

    /// Spans with times inside of requests, in the order of the recording.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Stretches of time with events of their own.
    #[must_use]
    pub fn stretches(&self) -> &Stretches {
        &self.stretches
    }

    /// The times in which all threads were stopped, in order, with overlaps merged.
    #[must_use]
    pub fn standing(&self) -> Vec<(u64, u64)> {
        stops::standing(&self.safepoints, &self.stretches)
    }

    /// Safepoints, in the order of time.
    #[must_use]
    pub fn safepoints(&self) -> &[Safepoint] {
        &self.safepoints
    }

    /// Threads that others waited for at safepoints.
    #[must_use]
    pub fn late(&self) -> &[Late] {
        &self.late
    }

    /// How long others had to wait before threads were looked for that were late, in nanoseconds:
    /// the recording's option `late`.
    #[must_use]
    pub fn late_after_ns(&self) -> u64 {
        stops::late_after_ns(&self.info.options)
    }

    /// The kernel's account of sampled threads, by thread; may be empty.
    #[must_use]
    pub fn thread_times(&self) -> &[ThreadTime] {
        &self.thread_times
    }

    /// The use of the machine's processors, in the order of time; may be empty.
    #[must_use]
    pub fn machine(&self) -> &[Machine] {
        &self.machine
    }

    /// All that is known of the machine's processors; how many, and when, is as in the last part.
    #[must_use]
    pub fn machine_sum(&self) -> Option<Machine> {
        Machine::sum(&self.machine)
    }

    /// The activity of the compilers, in the order of time; only for times with compilations.
    #[must_use]
    pub fn compilers(&self) -> &[Compilers] {
        &self.compilers
    }

    /// Compilations, in the order of time. Only recordings of the JDK's own recorder have them,
    /// above its threshold.
    #[must_use]
    pub fn compilations(&self) -> &[Compilation] {
        &self.compilations
    }

    /// When the control group held the process back, in the order of time.
    #[must_use]
    pub fn throttled(&self) -> &[Throttled] {
        &self.throttled
    }

    /// The processors that the process could use, if known.
    pub fn cpu_limit(&self) -> Option<&CpuLimit> {
        self.cpu_limit.as_ref()
    }

    /// The unit of the weights.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// A word for a kind of code, as the runtime that was recorded has it: Mono has one compiler,
    /// which compiles when a method is called, or before the program runs.
    pub fn kind_label(&self, kind: FrameKind) -> &'static str {
        match (self.info.jvm_name.as_str(), kind) {
            ("Mono", FrameKind::C1) => "AOT",
            ("Mono", FrameKind::C2) => "JIT",
            _ => kind.label(),
        }
    }

    /// The environment of the program.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Where and how the recording was made.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Sets the recorded time. Recordings that were put together have gaps between them.
    pub fn set_duration_ns(&mut self, duration_ns: u64) {
        self.info.duration_ns = duration_ns;
    }

    /// Samples lost, by cause.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Times without sampling.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The cost of the profiler, if known.
    pub fn self_cost(&self) -> Option<&SelfCost> {
        self.self_cost.as_ref()
    }

    /// CPU time of the process, if the recording says.
    pub fn cpu_use(&self) -> Option<CpuUse> {
        self.cpu_use
    }

    /// The part of the process's CPU time that the samples weigh, both since
    /// [`CpuUse::since_ns`]; about 1 where all is well. `None` where the two cannot be compared.
    pub fn cpu_share(&self) -> Option<f64> {
        let used = self.cpu_use.filter(|used| used.sum_ns() > 0)?;
        // Weights of wall time are not comparable with the CPU time used. Events without time do
        // not matter.
        let beside = |name: &&str| !matches!(*name, "alloc" | "live" | "lock");
        let mode: Vec<&str> = self.info.mode.split(',').filter(beside).collect();
        let is_cpu = matches!(mode.as_slice(), [] | [""] | ["cpu"] | ["cpu", "wall"]);
        if !is_cpu || self.unit != Unit::Nanoseconds {
            return None;
        }
        let seen = self.sum_where(|sample| sample.time_ns >= used.since_ns);
        Some(seen.sum as f64 / used.sum_ns() as f64)
    }

    /// The part of one processor that the profiler took, if the recording says.
    pub fn self_cost_share(&self) -> Option<f64> {
        let cost = self.self_cost().filter(|cost| cost.span_ns > 0)?;
        Some(cost.agent_cpu_ns as f64 / cost.span_ns as f64)
    }

    /// Warnings to read before the recording is trusted, one line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The unreadable parts of the file; `None` if all was read.
    pub fn unread(&self) -> Option<&Unread> {
        self.unread.as_ref()
    }

    /// The method of a frame.
    pub fn method_of(&self, frame: FrameId) -> Option<(MethodId, Method)> {
        let id = self.frames.get(frame as usize)?.method;
        Some((id, *self.methods.get(id as usize)?))
    }

    /// `class.name` of a method, or just the name where there is no class.
    pub fn method_name(&self, method: MethodId) -> String {
        let Some(method) = self.methods.get(method as usize) else {
            return String::new();
        };
        let (class, name) = (self.names.text(method.class), self.names.text(method.name));
        if class.is_empty() {
            name.to_owned()
        } else {
            format!("{class}.{name}")
        }
    }

    /// The name of a thread.
    pub fn thread_name(&self, thread: ThreadId) -> &str {
        self.threads
            .get(thread as usize)
            .map_or("", |thread| self.names.text(thread.name))
    }

    /// The sum of all samples.
    pub fn total(&self) -> Weight {
        self.sum_where(|_| true)
    }

    /// The sum of the samples that `keep` accepts.
    pub fn sum_where(&self, keep: impl Fn(&Sample) -> bool) -> Weight {
        let mut sum = Weight::default();
        for sample in self.samples.iter().filter(|sample| keep(sample)) {
            sum += &Weight::of_sample(sample);
        }
        sum
    }

    /// The sum of the samples whose stacks are not whole.
    pub fn failed(&self) -> Weight {
        self.sum_where(|sample| sample.failure.is_some())
    }

    /// The samples' sums by the node their stack ends in, of the samples that `keep` accepts.
    pub fn node_weights(&self, keep: impl Fn(&Sample) -> bool) -> Vec<Weight> {
        let mut weights = vec![Weight::default(); self.tree.len()];
        for sample in self.samples.iter().filter(|sample| keep(sample)) {
            if let Some(weight) = weights.get_mut(sample.node as usize) {
                *weight += &Weight::of_sample(sample);
            }
        }
        weights
    }

    /// The samples' sums by thread.
    pub fn thread_weights(&self) -> Vec<Weight> {
        let mut weights = vec![Weight::default(); self.threads.len()];
        for sample in &self.samples {
            if let Some(weight) = weights.get_mut(sample.thread as usize) {
                *weight += &Weight::of_sample(sample);
            }
        }
        weights
    }

    /// Failed walks, by cause, the heaviest first.
    pub fn failures(&self) -> Vec<Failure> {
        let mut sums: BTreeMap<CauseId, Weight> = BTreeMap::new();
        for sample in &self.samples {
            if let Some(cause) = sample.failure {
                *sums.entry(cause).or_default() += &Weight::of_sample(sample);
            }
        }
        let named = |(cause, weight)| Failure {
            cause: self.names.text(cause).to_owned(),
            weight,
        };
        let mut failures: Vec<_> = sums.into_iter().map(named).collect();
        failures.sort_by(|a, b| {
            b.weight
                .sum
                .cmp(&a.weight.sum)
                .then_with(|| a.cause.cmp(&b.cause))
        });
        failures
    }

    /// The frame that `node` ends in; none for the root.
    pub fn leaf(&self, node: NodeId) -> Option<Frame> {
        self.frames.get(self.tree.key(node) as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use crate::FrameKind;
    use crate::text_art;

    #[test]
    fn sums_by_thread_failure_and_node() {
        let profile = text_art::profile(
            "thread:  main   main     gc
             weight:  10     20       5
             failure: -      no_table -
                      a.A.x  a.A.x    vm.so.y[vm]
                      a.A.z  -        -",
        );
        assert_eq!((profile.total().sum, profile.total().samples), (35, 3));
        assert_eq!(
            profile
                .thread_weights()
                .iter()
                .map(|w| w.sum)
                .collect::<Vec<_>>(),
            [30, 5]
        );
        let failures = profile.failures();
        assert_eq!(failures.len(), 1);
        assert_eq!(
            (failures[0].cause.as_str(), failures[0].weight.sum),
            ("no_table", 20)
        );
        let failed = profile.failed();
        assert_eq!((failed.sum, failed.samples), (20, 1));
        // The innermost frame of each stack; the root has no frame.
        let leaves = profile.samples().iter().map(|sample| {
            let frame = profile.leaf(sample.node).unwrap();
            (frame.kind, frame.method)
        });
        let leaves: Vec<_> = leaves.collect();
        assert_eq!(leaves[2].0, FrameKind::Vm);
        assert!(leaves[0].1 != leaves[1].1 && leaves[0].0 == leaves[1].0);
        assert!(profile.leaf(crate::CallTree::ROOT).is_none() && profile.leaf(99).is_none());
        let (_, method) = profile.method_of(0).unwrap();
        assert_eq!(profile.names().text(method.name), "x");
        assert!(profile.method_of(99).is_none());
        assert_eq!(profile.thread_name(1), "gc");
        assert_eq!(profile.thread_name(9), "");
        let totals = profile
            .tree()
            .totals(&profile.node_weights(|sample| sample.thread == 0));
        assert_eq!(totals[0].sum, 30);
    }
}

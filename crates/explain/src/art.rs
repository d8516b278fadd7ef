//! Profiles for tests of rules: one line for one fact. The default length is ten seconds.

use crate::evidence::Facts;
use crate::finding::{Finding, Measure, Verdict};
use dwell_profile::told::GcPause;
use dwell_profile::{
    Allocation, Builder, Context, ContextId, CpuLimit, CpuUse, FrameKind, Late, LiveObject,
    LiveSampling, Look, Machine, MonitorOwner, MonitorWait, NO_SYMBOL, NodeId, Profile, Request,
    Safepoint, Sample, Stretch, ThreadId, ThreadTime, WallFilter,
};
use std::collections::HashMap;

const MS: u64 = 1_000_000;
const SPAN_NS: u64 = 10_000 * MS;

/// A profile under construction.
pub(crate) struct Art {
    pub(crate) builder: Builder,
    threads: HashMap<String, ThreadId>,
    /// Where the next samples and looks lie, so that they are spread over the time.
    steps: u64,
    span_ns: u64,
    looks: Vec<(Look, Option<ThreadId>)>,
}

impl Default for Art {
    fn default() -> Art {
        let mut builder = Builder::default();
        builder.info.duration_ns = SPAN_NS;
        builder.info.profiler_version = "test".to_owned();
        Art {
            builder,
            threads: HashMap::new(),
            steps: 0,
            span_ns: SPAN_NS,
            looks: Vec::new(),
        }
    }
}

type Check = fn(&Facts<'_>) -> Verdict;

impl Art {
    /// A profile of this length.
    pub(crate) fn lasting(seconds: u64) -> Art {
        let mut art = Art {
            span_ns: seconds * 1000 * MS,
            ..Art::default()
        };
        art.builder.info.duration_ns = art.span_ns;
        art
    }

    /// Age of the JVM in seconds when the recording began. Call this first.
    pub(crate) fn age(&mut self, seconds: u64) -> &mut Art {
        const BEGAN_NS: u64 = 10_000_000_000_000;
        self.builder.info.start_ns = BEGAN_NS;
        self.builder.info.jvm_start_ns = BEGAN_NS - seconds * 1000 * MS;
        self
    }

    fn thread(&mut self, name: &str, java: bool, is_virtual: bool) -> ThreadId {
        let next = self.threads.len() as i64 + 1;
        let builder = &mut self.builder;
        let java_tid = if java { next } else { 0 };
        *self
            .threads
            .entry(name.to_owned())
            .or_insert_with(|| builder.thread(name, next, java_tid, is_virtual))
    }

    /// The node of frames given innermost first, divided by `;`, each `class.method:line[kind]`.
    fn node(&mut self, stack: &str) -> NodeId {
        let mut frames = Vec::new();
        for cell in stack.split(';').rev() {
            let cell = cell.trim();
            let (path, kind) = match cell.strip_suffix("[native]") {
                Some(path) if path.starts_with("[kernel]") => (path, FrameKind::Kernel),
                Some(path) => (path, FrameKind::Native),
                None => (cell, FrameKind::C2),
            };
            let digits = |line: &str| !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit());
            let (path, line) = match path.rsplit_once(':') {
                Some((path, line)) if digits(line) => (path, line),
                _ => (path, "0"),
            };
            let (class, name) = path.rsplit_once('.').unwrap_or(("", path));
            // As a recording has it: a function without a symbol is known by its address.
            let method = match name.starts_with("0x") {
                true => self.builder.method(class, NO_SYMBOL, name),
                false => self.builder.method(class, name, ""),
            };
            frames.push(self.builder.frame(method, line.parse().unwrap(), kind));
        }
        self.builder.stack(frames)
    }

    fn context(&mut self, endpoint: &str) -> Option<ContextId> {
        let endpoint = (!endpoint.is_empty()).then(|| self.builder.name(endpoint))?;
        Some(self.builder.context(Context {
            endpoint: Some(endpoint),
            ..Context::default()
        }))
    }

    fn time_ns(&mut self) -> u64 {
        self.steps += 1;
        // Coprime to the span: evenly spread, in no order.
        self.builder.info.start_ns + self.steps * 617 * MS % self.span_ns
    }

    /// Samples of a running Java thread: their number, and the milliseconds of each.
    pub(crate) fn cpu(
        &mut self,
        thread: &str,
        endpoint: &str,
        stack: &str,
        count: u64,
        ms: u64,
    ) -> &mut Art {
        self.cpu_until(thread, endpoint, stack, (count, ms), self.span_ns)
    }

    fn cpu_until(
        &mut self,
        thread: &str,
        endpoint: &str,
        stack: &str,
        (count, ms): (u64, u64),
        until_ns: u64,
    ) -> &mut Art {
        let (thread, node) = (self.thread(thread, true, false), self.node(stack));
        let context = self.context(endpoint);
        for i in 0..count {
            self.builder.sample(Sample {
                time_ns: self.builder.info.start_ns + i * until_ns / count.max(1),
                thread,
                node,
                weight: ms * MS,
                count: 1,
                failure: None,
                context,
            });
        }
        self
    }

    /// A sample of a thread that works for a request: its time and its milliseconds.
    pub(crate) fn request_sample(
        &mut self,
        thread: &str,
        endpoint: &str,
        request: u64,
        stack: &str,
        (at_ms, ms): (u64, u64),
    ) -> &mut Art {
        let (thread, node) = (self.thread(thread, true, false), self.node(stack));
        let endpoint = Some(self.builder.name(endpoint));
        let context = self.builder.context(Context {
            local_root_span_id: request,
            endpoint,
            ..Context::default()
        });
        self.builder.sample(Sample {
            time_ns: self.builder.info.start_ns + at_ms * MS,
            thread,
            node,
            weight: ms * MS,
            count: 1,
            failure: None,
            context: Some(context),
        });
        self
    }

    /// A wall-clock sample of a thread that works for a request: its time and its milliseconds.
    pub(crate) fn request_look(
        &mut self,
        thread: &str,
        endpoint: &str,
        request: u64,
        cause: &str,
        stack: &str,
        (at_ms, ms): (u64, u64),
    ) -> &mut Art {
        self.look(thread, endpoint, cause, stack, 1, ms);
        let name = Some(self.builder.name(endpoint));
        let context = self.builder.context(Context {
            local_root_span_id: request,
            endpoint: name,
            ..Context::default()
        });
        let time_ns = self.builder.info.start_ns + at_ms * MS;
        if let Some((look, _)) = self.looks.last_mut() {
            (look.time_ns, look.context) = (time_ns, Some(context));
        }
        self
    }

    /// Samples of a thread that is not a Java thread.
    pub(crate) fn native(&mut self, thread: &str, count: u64, ms: u64) -> &mut Art {
        self.thread(thread, false, false);
        self.cpu(thread, "", "libjvm.so.work[native]", count, ms)
    }

    /// The same within the first seconds only.
    pub(crate) fn native_until(
        &mut self,
        thread: &str,
        count: u64,
        ms: u64,
        seconds: u64,
    ) -> &mut Art {
        self.thread(thread, false, false);
        let stack = "libjvm.so.work[native]";
        self.cpu_until(thread, "", stack, (count, ms), seconds * 1000 * MS)
    }

    /// Samples whose stacks are not whole.
    pub(crate) fn failed(&mut self, count: u64, ms: u64) -> &mut Art {
        self.failed_by("no_table", count, ms)
    }

    /// The same by another cause.
    pub(crate) fn failed_by(&mut self, cause: &str, count: u64, ms: u64) -> &mut Art {
        let (thread, node) = (self.thread("failed", true, false), self.node("app.Cut.off"));
        let failure = Some(self.builder.cause(cause));
        for i in 0..count {
            self.builder.sample(Sample {
                time_ns: i * MS,
                thread,
                node,
                weight: ms * MS,
                count: 1,
                failure,
                context: None,
            });
        }
        self
    }

    /// A thread that waited: number of looks, milliseconds of each, one event.
    pub(crate) fn look(
        &mut self,
        thread: &str,
        endpoint: &str,
        cause: &str,
        stack: &str,
        count: u64,
        ms: u64,
    ) -> &mut Art {
        let (thread, node) = (self.thread(thread, true, false), self.node(stack));
        let (context, cause) = (self.context(endpoint), self.builder.cause(cause));
        let time_ns = self.time_ns();
        let look = Look {
            time_ns,
            duration_ns: count * ms * MS,
            thread,
            node,
            cause,
            weight_ns: count * ms * MS,
            count,
            choices: 0,
            context,
            detail: None,
            owner: None,
            owner_node: None,
        };
        self.looks.push((look, None));
        self
    }

    /// When the last look began.
    pub(crate) fn last_look_ms(&self) -> u64 {
        self.looks.last().unwrap().0.time_ns / MS
    }

    /// The object of the last look's wait.
    pub(crate) fn detail(&mut self, detail: &str) -> &mut Art {
        let detail = self.builder.name(detail);
        self.looks.last_mut().unwrap().0.detail = Some(detail);
        self
    }

    /// The owner of the lock that the thread of the last look waited for, and the stack where the
    /// owner itself waited.
    pub(crate) fn owner(&mut self, thread: &str, stack: Option<&str>) -> &mut Art {
        let owner = self.thread(thread, true, false);
        let node = stack.map(|stack| self.node(stack));
        let look = &mut self.looks.last_mut().unwrap().0;
        (look.owner, look.owner_node) = (Some(owner), node);
        self
    }

    /// A virtual thread.
    pub(crate) fn virtual_thread(&mut self, name: &str) -> &mut Art {
        self.thread(name, true, true);
        self
    }

    /// A virtual thread that waits on its carrier.
    pub(crate) fn pinned(
        &mut self,
        thread: &str,
        cause: &str,
        stack: &str,
        count: u64,
        ms: u64,
        carrier: &str,
    ) -> &mut Art {
        let carrier = self.thread(carrier, true, false);
        self.virtual_thread(thread);
        self.look(thread, "", cause, stack, count, ms);
        self.looks.last_mut().unwrap().1 = Some(carrier);
        self
    }

    /// Requests: their number, and the milliseconds of each.
    pub(crate) fn requests(&mut self, endpoint: &str, count: u64, ms: u64) -> &mut Art {
        let endpoint = Some(self.builder.name(endpoint));
        self.builder.requests.push(Request {
            time_ns: 0,
            duration_ns: ms * MS,
            trace_id: 1,
            local_root_span_id: 1,
            endpoint,
            count,
        });
        self
    }

    /// Number of times that a thread got a processor in these seconds.
    pub(crate) fn turns(&mut self, thread: &str, turns: u64, seconds: u64) -> &mut Art {
        let thread = self.thread(thread, true, false);
        self.builder.thread_times.push(ThreadTime {
            thread,
            duration_ns: seconds * 1000 * MS,
            cpu_ns: MS,
            turns,
            ..ThreadTime::default()
        });
        self
    }

    /// Processors, quota in thousandths of a processor, and how often that was used up.
    pub(crate) fn processors(
        &mut self,
        processors: u64,
        quota_milli: u64,
        periods: u64,
        throttled: u64,
    ) -> &mut Art {
        self.builder.cpu_limit = Some(CpuLimit {
            quota_ns: quota_milli * MS,
            processors,
            periods,
            throttled,
            throttled_ns: throttled * 50 * MS,
        });
        self
    }

    /// CPU time in ms that the process and others used in one second of the recording, and the
    /// number of processors. The remaining time was idle.
    pub(crate) fn machine(
        &mut self,
        second: u64,
        processors: u64,
        own_ms: u64,
        others_ms: u64,
    ) -> &mut Art {
        self.builder.machine.push(Machine {
            time_ns: second * 1000 * MS,
            duration_ns: 1000 * MS,
            processors,
            busy_ns: (own_ms + others_ms) * MS,
            own_ns: own_ms * MS,
            idle_ns: (processors * 1000 - own_ms - others_ms) * MS,
            stolen_ns: 0,
        });
        self
    }

    /// CPU time of the process.
    pub(crate) fn cpu_used(&mut self, seconds: u64) -> &mut Art {
        self.builder.cpu_use = Some(CpuUse {
            since_ns: 0,
            user_ns: seconds * 1000 * MS,
            system_ns: 0,
        });
        self
    }

    /// Sampled allocations of a class: the bytes that each one stands for, and their number.
    pub(crate) fn allocated(
        &mut self,
        thread: &str,
        stack: &str,
        class: &str,
        (bytes, times): (u64, u64),
    ) -> &mut Art {
        self.allocated_for(thread, "", stack, class, (bytes, times))
    }

    /// The same for an endpoint.
    pub(crate) fn allocated_for(
        &mut self,
        thread: &str,
        endpoint: &str,
        stack: &str,
        class: &str,
        (bytes, times): (u64, u64),
    ) -> &mut Art {
        let context = self.context(endpoint);
        let (thread, stack) = (self.thread(thread, true, false), self.node(stack));
        let frame = self.builder.marker(class, FrameKind::Other);
        let node = self.builder.child(stack, frame);
        let class = self.builder.name(class);
        for i in 0..times {
            self.builder.allocations.push(Allocation {
                time_ns: self.builder.info.start_ns + i * MS,
                thread,
                node,
                class,
                bytes,
                size: 64,
                context,
            });
        }
        self
    }

    /// Live objects of this size, allocated one after another in these seconds, with the number of
    /// collections that they have survived.
    pub(crate) fn alive(
        &mut self,
        stack: &str,
        class: &str,
        (bytes, times): (u64, u64),
        seconds: std::ops::Range<u64>,
        collections: u64,
    ) -> &mut Art {
        let (thread, stack) = (self.thread("w", true, false), self.node(stack));
        let frame = self.builder.marker(class, FrameKind::Other);
        let node = self.builder.child(stack, frame);
        let class = self.builder.name(class);
        let (start_ns, span_ns) = (self.builder.info.start_ns, self.span_ns);
        self.builder.live_sampling = Some(LiveSampling {
            time_ns: start_ns + span_ns,
            ..LiveSampling::default()
        });
        let lasted = seconds.end - seconds.start;
        for i in 0..times {
            let at_ns = (seconds.start * 1000 + lasted * 1000 * i / times) * MS;
            self.builder.live.push(LiveObject {
                allocated: Allocation {
                    time_ns: start_ns + at_ns,
                    thread,
                    node,
                    class,
                    bytes,
                    size: 64,
                    context: None,
                },
                age_ns: span_ns.saturating_sub(at_ns),
                collections,
            });
        }
        self
    }

    /// A wait for a monitor of a class: its milliseconds, and those that it stands for.
    pub(crate) fn waited(
        &mut self,
        thread: &str,
        stack: &str,
        class: &str,
        owner: &str,
        (ms, weight_ms): (u64, u64),
    ) -> &mut Art {
        let (thread, stack) = (self.thread(thread, true, false), self.node(stack));
        let owner = Some(self.thread(owner, true, false));
        let frame = self.builder.marker(class, FrameKind::Other);
        let node = self.builder.child(stack, frame);
        let class = self.builder.name(class);
        self.builder.monitor_waits.push(MonitorWait {
            time_ns: self.builder.info.start_ns,
            duration_ns: ms * MS,
            weight_ns: weight_ms * MS,
            thread,
            node,
            class,
            context: None,
            owner,
        });
        self
    }

    /// A wait that asked where the owner was, which stands for a millisecond.
    pub(crate) fn owner_was(
        &mut self,
        waiter: &str,
        waits: &str,
        class: &str,
        stack: Option<&str>,
    ) -> &mut Art {
        let waiter = self.thread(waiter, true, false);
        let owner = Some(self.thread("o-2", true, false));
        let (waiter_node, node) = (self.node(waits), stack.map(|stack| self.node(stack)));
        let class = self.builder.name(class);
        self.builder.monitor_owners.push(MonitorOwner {
            time_ns: self.builder.info.start_ns,
            duration_ns: MS,
            weight_ns: MS,
            class,
            owner,
            node,
            failure: None,
            waiter: Some(waiter),
            waiter_node,
        });
        self
    }

    /// A pause for the collector.
    pub(crate) fn pause(&mut self, at_ms: u64, ms: u64) {
        let pause = Stretch::new(at_ms * MS, ms * MS);
        self.builder.stretches.add::<GcPause>(pause);
    }

    /// Safepoints: time to reach each, and their number.
    pub(crate) fn safepoint(&mut self, reaching_ms: u64, times: u64) -> &mut Art {
        self.stops("Op", reaching_ms, 1, times)
    }

    /// Safepoints with an operation: time of each, and their number.
    pub(crate) fn operations(&mut self, name: &str, ms: u64, times: u64) -> &mut Art {
        self.stops(name, 0, ms, times)
    }

    fn stops(&mut self, name: &str, reaching_ms: u64, ms: u64, times: u64) -> &mut Art {
        let operation = self.builder.name(name);
        for id in 0..times {
            self.builder.safepoints.push(Safepoint {
                time_ns: id * 100 * MS,
                id,
                operation,
                reaching_ns: reaching_ms * MS,
                operation_ns: ms * MS,
                threads: 10,
                running: 2,
                count: 1,
                is_known: true,
            });
        }
        self
    }

    /// A thread that was late for the first one.
    pub(crate) fn late(&mut self, thread: &str, stack: &str, state: &str, ms: u64) -> &mut Art {
        let (thread, node) = (self.thread(thread, true, false), self.node(stack));
        let (operation, state) = (self.builder.name("Op"), self.builder.name(state));
        self.builder.late.push(Late {
            time_ns: 0,
            duration_ns: ms * MS,
            safepoint: 0,
            operation,
            thread,
            node: Some(node),
            state,
            held_ns: ms * MS,
            is_last: true,
        });
        self
    }

    /// The profile.
    pub(crate) fn profile(&mut self) -> Profile {
        self.built().finish()
    }

    /// The profile as it is read from a file: waits of threads' own loops are idle time.
    pub(crate) fn profile_as_read(&mut self) -> Profile {
        let mut builder = self.built();
        builder.mark_idle_loops();
        builder.finish()
    }

    fn built(&self) -> Builder {
        let mut builder = self.builder.clone();
        for (look, carrier) in &self.looks {
            match carrier {
                Some(carrier) => builder.look_on(*look, Some(*carrier)),
                None => builder.look(*look),
            }
        }
        builder
    }

    pub(crate) fn verdict(&mut self, check: Check) -> Verdict {
        let (profile, filter) = (self.profile(), WallFilter::default());
        check(&Facts::new(&profile, &filter))
    }

    /// Runs a test on the facts instead of a rule.
    pub(crate) fn with_facts(&mut self, look: impl FnOnce(&Facts<'_>)) {
        let (profile, filter) = (self.profile(), WallFilter::default());
        look(&Facts::new(&profile, &filter));
    }

    /// Findings of a rule.
    pub(crate) fn found(&mut self, check: Check) -> Vec<Finding> {
        match self.verdict(check) {
            Verdict::Found(found) => {
                found.iter().for_each(leads_to_its_place);
                found
            }
            Verdict::Lacks(why) => panic!("lacks: {why}"),
        }
    }

    /// Data that a rule lacks.
    pub(crate) fn lacks(&mut self, check: Check) -> String {
        match self.verdict(check) {
            Verdict::Found(found) => panic!("found: {found:?}"),
            Verdict::Lacks(why) => why,
        }
    }
}

/// Fails unless the link of a finding leads to the thing that it is about: the tests of all rules
/// pass here.
pub(crate) fn leads_to_its_place(finding: &Finding) {
    let view = finding.evidence.first().map(|evidence| &evidence.view);
    let view = view.unwrap_or_else(|| panic!("no evidence: {finding:?}"));
    let is_place = view.focus.is_some()
        || view.threads.is_some()
        || !view.causes.is_empty()
        || view.measure == Measure::Safepoints;
    assert!(is_place, "leads nowhere: {finding:?}");
}

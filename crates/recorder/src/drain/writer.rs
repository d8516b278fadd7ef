//! Writes batches into chunks, chunks into the file, and the profiler's own account with them.

mod alive;
mod objects_lost;
mod waits;

use super::account;
use super::causes::{Causes, has_object};
use super::census::Census;
use super::contexts::{ContextTexts, EndpointDrain};
use super::describe;
use super::histogram;
use super::inbox::Inbox;
use super::machine::Machine;
use super::paused::Walking;
use super::process_cpu::ProcessCpu;
use super::processors::Processors;
use super::sample::{BATCH_BYTES_MAX, Sampler};
use super::stopped_process::{OwnAccounts, SLEEP_MAX, StoppedProcess, StoppedTime};
use super::threads;
use crate::ended::Clocks;
use crate::orders::Order;
use crate::record::batch::{Batch, PendingLate, PendingSample, PendingWall};
use crate::record::file::RecordingFile;
use crate::record::names::NameId;
use crate::record::output::{Amount, Bounds, Gap, News, Output};
use crate::record::resolve::Resolver;
use crate::runtime::progress::{LOOKS_LOST, Progress};
use crate::runtime::setup::Setup;
use crate::runtime::{Runtime, Walks};
use crate::switched::Now;
use crate::sys::{allocator, process};
use dwell_host::Whose;
use dwell_host::cgroup::Group;
use dwell_host::throttled::Throttled;
use dwell_jfr::writer::{
    AllocationSample, ChunkClock, ChunkWriter, Event, FrameRef, MethodId, MethodInfo, Origin,
    Sample, StackId, ThreadId, WallSample,
};
use dwell_signal::{Cause, CounterSnapshot, bucket_end_ns};
use dwell_wall::cause::{Cause as WallCause, Known, Os};
use dwell_wall::sums::ByCause;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A chunk whose constants take more memory than this is ended.
const CHUNK_MEMORY_MAX: usize = 12 << 20;

/// The known waits of the runtime, with the user's pools.
fn known<R: Runtime>(told: &[String]) -> Known {
    let mut known = Known::new(R::WAITS);
    for method in told {
        // They were checked when the options were read.
        let _ = known.add_pool(method);
    }
    known
}

/// The chunk and the file of a recording.
pub struct Writer<'s, R: Runtime> {
    setup: &'s Setup<R>,
    progress: Arc<Progress>,
    output: Output<RecordingFile>,
    chunk: ChunkWriter,
    resolver: Resolver,
    known: Known,
    endpoints: EndpointDrain,
    processors: Processors,
    machine: Machine,
    wall_sums: ByCause,
    throttled: Throttled,
    chunk_began: Instant,
    described: bool,
    /// Number of usable processors at the start, until a chunk contains it.
    processors_first: Option<usize>,
    /// The events of this chunk.
    recorded: Now,
    /// Other events are recorded: the next chunk is to begin.
    renewed: bool,
    told: account::Told,
    counters: CounterSnapshot,
    cpu_at_end: Option<(Duration, Duration)>,
    process_cpu: ProcessCpu,
    /// CPU time of writing wall-clock samples.
    pub looks_cpu_ns: u64,
    walking_cpu: Duration,
    stopped: StoppedProcess<OwnAccounts>,
}

impl<'s, R: Runtime> Writer<'s, R> {
    /// A writer for the file that was opened at the start; `processors` can be used now.
    #[must_use]
    pub fn new(setup: &'s Setup<R>, progress: &Arc<Progress>, processors: usize) -> Writer<'s, R> {
        setup.recorder.stretches.forget();
        let group = Group::of(Whose::Own);
        let file = setup.file.lock().ok().and_then(|mut file| file.take());
        let bounds = Bounds {
            bytes: setup.options.max_bytes,
            age_ns: setup.options.max_age.as_nanos() as u64,
        };
        Writer {
            setup,
            progress: Arc::clone(progress),
            output: Output::new(file, bounds, process::monotonic_ns()),
            chunk: ChunkWriter::new(clock()),
            resolver: Resolver::default(),
            known: known::<R>(&setup.options.idle),
            endpoints: EndpointDrain::default(),
            processors: Processors::begin(setup, group.clone()),
            machine: Machine::default(),
            wall_sums: ByCause::default(),
            throttled: Throttled::begin(Whose::Own, group, process::monotonic_ns(), ran_ns),
            chunk_began: Instant::now(),
            described: false,
            processors_first: Some(processors),
            recorded: setup.switched.first().clone(),
            renewed: false,
            told: account::Told::default(),
            counters: setup.counters_at_start,
            cpu_at_end: None,
            process_cpu: ProcessCpu::default(),
            looks_cpu_ns: 0,
            walking_cpu: Duration::ZERO,
            stopped: StoppedProcess::new(OwnAccounts::open(), processors),
        }
    }

    /// Begins a new chunk with the next flush, once this one is in the file.
    pub fn renew(&mut self) {
        self.renewed = true;
    }

    /// Sampling is over: CPU time that the process uses after `clocks` is not in the samples.
    pub fn end_of_sampling(&mut self, walking: &Walking, clocks: &Clocks) {
        self.walking_cpu = walking.cpu();
        self.cpu_at_end = Some(clocks.split);
    }

    /// Waits for an order for a maximum of `wait`.
    pub fn wait(&mut self, inbox: &Inbox<'_>, wait: Duration) -> Order {
        let until = Instant::now() + wait;
        let mut sleep = wait.min(SLEEP_MAX);
        self.stopped.mark_exactly();
        while sleep == SLEEP_MAX && !inbox.is_due(sleep) {
            self.stopped.mark_after(sleep);
            sleep = until
                .saturating_duration_since(Instant::now())
                .min(SLEEP_MAX);
        }
        let order = inbox.next(sleep);
        self.stopped.mark_after(sleep);
        order
    }

    /// Drains all slots, if possible. Writes the times in which the process was stopped before
    /// that. Returns whether all slots are empty.
    pub fn drain(&mut self, sampler: &mut Sampler<'_, R>, progress: &Progress) -> bool {
        let all = sampler.drain(progress);
        let unslotted = self.setup.engine.counters().get(Cause::NoSlot);
        for time in self.stopped.take(&sampler.batch, unslotted) {
            self.chunk.event(&stopped_event(&time));
        }
        all
    }

    /// Writes the samples so far; `last` ends the recording.
    pub fn flush(
        &mut self,
        sampler: &mut Sampler<'_, R>,
        last: bool,
        census: &mut Census<R>,
        walking: &Walking,
    ) {
        self.walking_cpu = walking.cpu().max(self.walking_cpu);
        if !self.described {
            allocator::reserve();
            let processors = self.processors_first.take();
            let processors = processors.unwrap_or_else(describe::processors);
            describe::describe(self.setup, &self.recorded, processors, &mut self.chunk);
            self.described = true;
            self.process_cpu.ask_at_once();
        }
        if self.is_over() {
            self.process_cpu.ask_at_once();
        }
        sampler.walks.flush(&self.setup.stops, last);
        sampler.settle_stops(last);
        sampler.place_ready(last);
        // Slots still fill while names are looked up.
        self.write(sampler, true);
        if (last || self.is_over()) && !sampler.batch.is_empty() {
            sampler.place_ready(last);
            // Samples taken in between are named by this chunk's names.
            self.write(sampler, false);
        }
        self.wall_sums(last);
        self.setup
            .recorder
            .threads
            .forget(&std::mem::take(&mut census.gone));
        if !last {
            self.rotate(sampler);
        }
    }

    /// Writes the samples so far. If `drain`, it drains new snapshots during that.
    fn write(&mut self, sampler: &mut Sampler<'_, R>, drain: bool) {
        let mut batch = std::mem::take(&mut sampler.batch);
        let images = sampler.images.snapshot();
        let progress = Arc::clone(&self.progress);
        // Looking up names can take long, and slots fill during that. But if draining takes long,
        // too, the batch is to be written before the next one begins.
        let mut next = Instant::now();
        let between: &mut dyn FnMut() = &mut || {
            let began = Instant::now();
            self.stopped.mark();
            if drain && began >= next && sampler.batch.bytes() < BATCH_BYTES_MAX {
                sampler.drain(&progress);
                let unslotted = self.setup.engine.counters().get(Cause::NoSlot);
                for time in self.stopped.take(&sampler.batch, unslotted) {
                    self.chunk.event(&stopped_event(&time));
                }
                next = Instant::now() + began.elapsed() + super::pace::TICK_MIN;
            }
        };
        allocator::reserve();
        self.resolver.prepare(batch.all_frames(), &images, between);
        allocator::reserve();
        threads::rename(&mut self.chunk, self.setup, sampler);
        let stacks = self.stacks(&batch, sampler);
        let contexts = ContextTexts::of(batch.contexts());
        for sample in batch.samples() {
            self.sample(sample, &stacks, &contexts, sampler);
        }
        if !batch.walls().is_empty() {
            let before = process::own_cpu();
            self.walls(&batch, &stacks, &contexts, sampler);
            let took = process::own_cpu().saturating_sub(before);
            self.looks_cpu_ns += took.as_nanos() as u64;
        }
        self.allocations(&batch, &stacks, &contexts, sampler);
        self.alive(&batch, &stacks, &contexts, sampler);
        self.waits(&batch, &stacks, &contexts, sampler);
        self.ticks(&batch);
        self.stops(&batch, &stacks, sampler);
        self.endpoints.write(batch.contexts(), &mut self.chunk);
        self.account(sampler);
        self.intervals(sampler, !drain);
        let weight: u64 = batch.samples().iter().map(|s| s.weight_ns).sum();
        self.put(Amount {
            samples: batch.samples().len() as u64,
            weight_ns: weight,
        });
        batch.clear();
        if sampler.batch.is_empty() {
            sampler.batch = batch;
        }
    }

    fn stacks(&mut self, batch: &Batch, sampler: &mut Sampler<'_, R>) -> Vec<StackId> {
        let mut frames: Vec<FrameRef> = Vec::new();
        let mut ids = Vec::new();
        for index in 0..batch.stacks_len() {
            frames.clear();
            // Without marks, waits for pages in a long write would look like a stop.
            self.stopped.mark();
            let (pending, truncated) = batch.frames(index);
            for frame in pending {
                let name = self.resolver.name(frame.code, &mut sampler.names);
                let method = method(&mut self.chunk, sampler, name);
                let (line, bci) = (frame.line, frame.bci);
                frames.push(FrameRef {
                    method,
                    line,
                    bci,
                    kind: frame.kind,
                });
            }
            ids.push(self.chunk.stack(&frames, truncated));
        }
        ids
    }

    fn sample(
        &mut self,
        sample: &PendingSample,
        stacks: &[StackId],
        contexts: &ContextTexts,
        sampler: &Sampler<'_, R>,
    ) {
        let Some(stack) = stacks.get(sample.stack as usize).copied() else {
            return;
        };
        let thread = self.thread(sample.thread, sampler);
        let carrier = sample.carrier.map(|key| self.thread(key, sampler));
        self.chunk.execution_sample(&Sample {
            ticks: sample.time_ns,
            thread,
            carrier,
            stack,
            state: sample.state,
            weight_ns: sample.weight_ns,
            failure: sample.failure,
            context: contexts.get(sample.context).as_ref(),
        });
    }

    /// Objects that were allocated.
    fn allocations(
        &mut self,
        batch: &Batch,
        stacks: &[StackId],
        contexts: &ContextTexts,
        sampler: &Sampler<'_, R>,
    ) {
        for allocation in batch.allocations() {
            let stack = allocation.stack;
            let stack = stack.and_then(|index| stacks.get(index as usize).copied());
            let thread = self.thread(allocation.thread, sampler);
            let carrier = allocation.carrier.map(|key| self.thread(key, sampler));
            let name = self.setup.recorder.classes.name(allocation.object.class);
            let class = self.chunk.object_class(&name);
            self.chunk.allocation_sample(&AllocationSample {
                ticks: allocation.time_ns,
                thread,
                carrier,
                stack: stack.unwrap_or_default(),
                class,
                weight_bytes: allocation.object.weight,
                size_bytes: allocation.object.size,
                failure: allocation.failure,
                context: contexts.get(allocation.context).as_ref(),
            });
        }
    }

    /// Allocation sums since the recording began, while allocations were sampled.
    fn allocation_sums(&mut self, ticks: u64, now: &CounterSnapshot) {
        let state = self.setup.switched.get();
        let stretch = state.alloc;
        if !stretch.was_on() {
            return;
        }
        let before = &self.setup.counters_at_start;
        let since = |cause| now.get(cause).saturating_sub(before.get(cause));
        self.chunk.event(&Event::Allocations {
            ticks,
            interval_bytes: self.setup.recorder.object_bytes(stretch.interval),
            rate: state.events.alloc_rate,
            asked_bytes: stretch.interval,
            sampled_ns: stretch.on_ns(ticks),
            samples: since(Cause::Allocation),
            weight_bytes: now.allocated_bytes.saturating_sub(before.allocated_bytes),
            lost: since(Cause::AllocationLost),
            lost_bytes: (now.allocated_lost_bytes).saturating_sub(before.allocated_lost_bytes),
        });
    }

    /// Wall-clock samples, with the awaited objects.
    fn walls(
        &mut self,
        batch: &Batch,
        stacks: &[StackId],
        contexts: &ContextTexts,
        sampler: &mut Sampler<'_, R>,
    ) {
        let mut causes = Causes::default();
        let ready = batch.walls().iter().filter(|wall| is_ready(wall));
        let ready_ns = ready.map(|wall| wall.weight_ns).sum();
        self.throttled
            .look(ready_ns, process::monotonic_ns(), ran_ns);
        for wall in batch.walls() {
            let frames = wall.stack.map_or(&[][..], |stack| batch.frames(stack).0);
            let (resolver, pools) = (&mut self.resolver, &self.known);
            let mut cause = causes.of(wall, frames, resolver, pools, &mut sampler.names);
            if is_ready(wall) && self.throttled.is_next() {
                cause = WallCause::Throttled;
            }
            self.wall_sums.add(
                cause.name(),
                wall.weight_ns,
                u64::from(wall.count),
                wall.choices,
            );
            let thread = self.thread(wall.thread, sampler);
            let carrier = wall.carrier.map(|key| self.thread(key, sampler));
            let stack = wall
                .stack
                .and_then(|index| stacks.get(index as usize).copied());
            let is_wanted = has_object(cause);
            let owner = wall.owner.filter(|_| is_wanted);
            let owner = owner.map(|key| self.thread(key, sampler));
            self.chunk.wall_sample(&WallSample {
                ticks: wall.time_ns,
                duration_ticks: wall.duration_ns,
                thread,
                carrier,
                stack: stack.unwrap_or_default(),
                cause: cause.name(),
                weight_ns: wall.weight_ns,
                count: u64::from(wall.count),
                choices: wall.choices,
                owner,
                owner_stack: wall
                    .owner_stack
                    .filter(|_| is_wanted)
                    .and_then(|index| stacks.get(index as usize).copied())
                    .unwrap_or_default(),
                detail: wall.detail.as_deref().filter(|_| is_wanted),
                failure: wall.failure,
                context: contexts.get(wall.context).as_ref(),
            });
        }
    }

    /// Wall time of each cause so far, and its accuracy: for readers that do not add up samples.
    fn wall_sums(&mut self, is_over: bool) {
        let ticks = process::monotonic_ns();
        let told = self.wall_sums.told(ticks, is_over);
        for (cause, sum, error_ns) in &told {
            self.chunk.event(&Event::WallSum {
                ticks,
                cause,
                weight_ns: sum.weight_ns,
                error_ns: *error_ns,
                looks: sum.looks,
            });
        }
        if !told.is_empty() {
            self.put(Amount::default());
        }
    }

    fn ticks(&mut self, batch: &Batch) {
        for tick in batch.ticks() {
            self.chunk.event(&Event::WallTick {
                ticks: tick.at_ns,
                span_ns: tick.span_ns,
                ticks_passed: tick.ticks,
                live: tick.live as u64,
                eligible: tick.eligible as u64,
                sampled: tick.looked as u64,
                failed: tick.failed as u64,
                cpu_ns: tick.cpu_ns,
                unmounted: tick.unmounted,
                unmounted_sampled: tick.unmounted_looked as u64,
                unmounted_failed: tick.unmounted_failed as u64,
                followed: tick.followed as u64,
                by_page: u64::from(tick.by_page),
                by_fingerprint: tick.by_fingerprint as u64,
            });
        }
    }

    /// Stops of all threads, and the late threads.
    fn stops(&mut self, batch: &Batch, stacks: &[StackId], sampler: &Sampler<'_, R>) {
        for pending in batch.stops() {
            let stop = &pending.stop;
            self.chunk.event(&Event::Safepoint {
                ticks: stop.began_ns,
                duration_ticks: stop.duration_ns(),
                safepoint_id: stop.id,
                operation: &stop.operation,
                reaching_ns: stop.reaching_ns,
                operation_ns: stop.operation_ns,
                threads: stop.threads,
                running: stop.running,
                late: stop.late,
                count: stop.count,
                source: stop.source,
            });
            let last = pending.late.iter().map(|it| it.late.until_ns).max();
            for PendingLate { late, stack } in &pending.late {
                let thread = self.thread(late.thread, sampler);
                let stack = stack.and_then(|index| stacks.get(index as usize).copied());
                self.chunk.event(&Event::SafepointLate {
                    ticks: stop.began_ns,
                    duration_ticks: late.until_ns.saturating_sub(stop.began_ns),
                    safepoint_id: stop.id,
                    operation: &stop.operation,
                    thread,
                    stack: stack.unwrap_or_default(),
                    state: late.state,
                    held_ns: late.held_ns,
                    is_last: u64::from(Some(late.until_ns) == last),
                });
            }
        }
    }

    fn thread(&mut self, key: u64, sampler: &Sampler<'_, R>) -> ThreadId {
        // Each event of a batch passes here: see `stacks`.
        self.stopped.mark();
        let known = self.chunk.thread_id(key);
        known.unwrap_or_else(|| threads::write(&mut self.chunk, self.setup, key, sampler))
    }

    /// The runtime's reports since the last flush, and the use of processors in the last second.
    fn intervals(&mut self, sampler: &mut Sampler<'_, R>, is_over: bool) {
        self.setup.recorder.stretches.write(&mut self.chunk);
        if !self.processors.is_due(is_over) {
            return;
        }
        if let Some(limit) = self.processors.limit() {
            self.chunk.event(&limit);
        }
        let chunk = &mut self.chunk;
        sampler.walks.account(&mut |event| chunk.event(event));
        if let Some(used) = self.machine.told() {
            self.chunk.event(&used);
        }
        let sampled = std::mem::take(&mut sampler.sampled);
        let times = self.processors.threads(self.setup, &sampled);
        threads::rename(&mut self.chunk, self.setup, sampler);
        for time in times {
            let thread = self.thread(time.thread, sampler);
            self.chunk.event(&Event::ThreadTime {
                ticks: time.since_ns,
                duration_ticks: time.until_ns.saturating_sub(time.since_ns),
                thread,
                cpu_ns: time.cpu_ns,
                waited_ns: time.waited_ns,
                turns: time.turns,
            });
        }
    }

    fn looks_lost(&mut self, ticks: u64) {
        let (samples, _) = self.progress.take_wall_lost();
        if samples > 0 {
            self.chunk.event(&Event::Lost {
                ticks,
                cause: LOOKS_LOST,
                samples,
                weight_ns: 0,
            });
        }
    }

    /// Losses, failures and the profiler's own cost since the last flush.
    fn account(&mut self, sampler: &Sampler<'_, R>) {
        let ticks = process::monotonic_ns();
        for event in self.told.failures(ticks, &sampler.failures) {
            self.chunk.event(&event);
        }
        let now = self.setup.engine.counters();
        let since = |cause| now.get(cause).saturating_sub(self.counters.get(cause));
        let lost_ns = now.lost_ns.saturating_sub(self.counters.lost_ns);
        for event in account::losses(ticks, since, lost_ns) {
            self.chunk.event(&event);
        }
        self.progress
            .lost
            .fetch_add(since(Cause::PointsLost), Ordering::Relaxed);
        let before = std::mem::replace(&mut self.counters, now);
        self.looks_lost(ticks);
        self.handler_times(ticks, &before, &now);
        self.allocation_sums(ticks, &now);
        self.lost_objects(ticks, sampler);
        self.wait_sums(ticks, &now);
        self.chunk.event(&self.own_cost(ticks, sampler, &now));
        let load = self
            .process_cpu
            .load(ticks, self.setup.cpu_at_start, self.cpu_at_end);
        if let Some(load) = load {
            self.chunk.event(&load);
        }
    }

    fn own_cost(
        &self,
        ticks: u64,
        sampler: &Sampler<'_, R>,
        now: &CounterSnapshot,
    ) -> Event<'static> {
        let before = &self.setup.counters_at_start;
        let handler = histogram::since(&now.handler_ns, &before.handler_ns);
        let handlers = handler.iter().sum();
        let worked = (
            now.worked.0.saturating_sub(before.worked.0),
            now.worked.1.saturating_sub(before.worked.1),
        );
        let handler_cpu_ns = histogram::cpu_ns(handlers, worked);
        let own = process::own_cpu() + self.walking_cpu;
        let tables = sampler.modules.table_bytes() + sampler.alive_bytes();
        let memory = tables + self.chunk.memory_bytes();
        let work = &sampler.work;
        let others_ns = self.setup.stops.cpu_ns() + self.setup.shelf.own_cpu_ns();
        let callbacks_ns = self.setup.recorder.callbacks.cpu_ns();
        let callbacks_ns = callbacks_ns.saturating_sub(self.setup.callbacks_at_start_ns);
        let others_ns = handler_cpu_ns.saturating_add(others_ns + callbacks_ns);
        let agent_cpu_ns = (own.as_nanos() as u64).saturating_add(others_ns);
        let told = [
            (&self.progress.agent_cpu_ns, agent_cpu_ns),
            (&self.progress.agent_memory, memory as u64),
            (&self.progress.walk_ns, work.walk_ns),
            (&self.progress.copied_bytes, work.copied_bytes),
        ];
        for (place, value) in told {
            place.store(value, Ordering::Relaxed);
        }
        Event::SelfCost {
            ticks,
            walks: work.walks,
            samples: self.progress.samples.load(Ordering::Relaxed),
            dropped: self.progress.lost.load(Ordering::Relaxed),
            bytes: self.output.written(),
            agent_cpu_ns,
            handlers,
            handler_cpu_ns,
            callback_cpu_ns: callbacks_ns,
            handler_p50_ns: histogram::quantile(&handler, 0.5),
            handler_p90_ns: histogram::quantile(&handler, 0.9),
            handler_p99_ns: histogram::quantile(&handler, 0.99),
            handler_max_ns: histogram::quantile(&handler, 1.0),
            waited_ns: now.waited_ns.saturating_sub(before.waited_ns),
            collections_waited_ns: self.progress.patience.waited_ns(),
            walk_ns: work.walk_ns,
            copies: work.copies,
            copied_bytes: work.copied_bytes,
            memory_bytes: memory as u64,
        }
    }

    /// The histogram of handler times, since the last flush.
    fn handler_times(&mut self, ticks: u64, before: &CounterSnapshot, now: &CounterSnapshot) {
        let new = histogram::since(&now.handler_ns, &before.handler_ns);
        for (bucket, handlers) in new.into_iter().enumerate().filter(|(_, n)| *n > 0) {
            let up_to_ns = bucket_end_ns(bucket);
            self.chunk.event(&Event::HandlerTime {
                ticks,
                up_to_ns,
                handlers,
            });
        }
    }

    /// Appends the data written to the chunk since the last time, which contains `amount`.
    fn put(&mut self, amount: Amount) {
        let now = process::monotonic_ns();
        if let Some(gap) = self.output.untold() {
            self.chunk.event(&gap_event(&gap, now));
        }
        let bytes = self.chunk.flush(now);
        let header = self.chunk.header();
        self.stopped.mark();
        let news = self.output.append(&bytes, &header, amount, now);
        self.stopped.mark_after_call();
        self.report(news);
        let len = self.output.len();
        self.progress.bytes.store(len, Ordering::Relaxed);
    }

    /// Lets the user know, now and in `status`.
    fn report(&self, news: News) {
        match news {
            News::Nothing => {}
            News::Trouble(trouble) => {
                eprintln!("dwell: {trouble}; recording will continue as soon as possible");
                self.progress.set_trouble(Some(trouble));
            }
            News::Over => self.progress.set_trouble(None),
        }
    }

    /// Whether a new chunk shall begin.
    fn is_over(&self) -> bool {
        let options = &self.setup.options;
        self.output.is_broken()
            || self.renewed
            || self.chunk_began.elapsed() >= options.chunk_age
            || self.chunk.len() >= options.chunk_bytes
            || self.chunk.memory_bytes() >= CHUNK_MEMORY_MAX
            || self.output.is_full(process::monotonic_ns())
    }

    fn rotate(&mut self, sampler: &mut Sampler<'_, R>) {
        // Data that waits for room belongs before the next chunk.
        if !self.is_over() || self.output.is_waiting() {
            return;
        }
        let batch = &sampler.batch;
        if !(batch.samples().is_empty()
            && batch.allocations().is_empty()
            && batch.snapshots().is_empty()
            && batch.waits().is_empty())
        {
            return; // their names belong to this chunk; the next flush comes soon
        }
        sampler.clear_names();
        self.resolver.clear_names();
        self.chunk = self.chunk.following(clock());
        self.processors.begin_chunk();
        self.chunk_began = Instant::now();
        self.renewed = false;
        self.described = false;
        self.recorded = self.setup.switched.get();
        let news = self.output.next_chunk(process::monotonic_ns());
        self.report(news);
    }
}

/// Whether the kernel counted that it was ready. A virtual thread that waits for a carrier, as its
/// sample shows, is unknown to the kernel.
fn is_ready(wall: &PendingWall) -> bool {
    wall.os == Os::Runnable && wall.detail.is_none()
}

fn clock() -> ChunkClock {
    ChunkClock {
        epoch_ns: process::epoch_ns(),
        start_ticks: process::monotonic_ns(),
        ticks_per_second: 1_000_000_000,
    }
}

fn method<R: Runtime>(chunk: &mut ChunkWriter, sampler: &Sampler<'_, R>, id: NameId) -> MethodId {
    let key = u64::from(id.0);
    if let Some(method) = chunk.method_id(key) {
        return method;
    }
    let empty = crate::record::names::Name::default();
    let name = sampler.names.get(id).unwrap_or(&empty);
    chunk.method(
        key,
        &MethodInfo {
            class: &name.class,
            name: &name.name,
            descriptor: &name.descriptor,
            modifiers: name.modifiers,
            hidden: false,
            origin: name.origin.as_deref().map(|origin| Origin {
                module: &origin.module,
                location: &origin.location,
            }),
        },
    )
}

/// CPU time of the process.
fn ran_ns() -> u64 {
    process::process_cpu().as_nanos() as u64
}

fn stopped_event(time: &StoppedTime) -> Event<'static> {
    Event::Gap {
        ticks: time.since_ns,
        duration_ticks: time.until_ns.saturating_sub(time.since_ns),
        cause: "stopped",
        lost_samples: 0,
        lost_weight_ns: 0,
    }
}

fn gap_event(gap: &Gap, now: u64) -> Event<'static> {
    Event::Gap {
        ticks: gap.since_ns,
        duration_ticks: now.saturating_sub(gap.since_ns),
        cause: gap.cause,
        lost_samples: gap.lost.samples,
        lost_weight_ns: gap.lost.weight_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::batch::ContextId;
    use dwell_wall::cause::{Call, Monitor};

    fn look(os: Os, detail: Option<&str>) -> PendingWall {
        PendingWall {
            time_ns: 0,
            duration_ns: 0,
            thread: 1,
            carrier: None,
            stack: None,
            os,
            monitor: Monitor::None,
            owner: None,
            owner_stack: None,
            is_owned_lock: false,
            detail: detail.map(Arc::from),
            weight_ns: 1,
            count: 1,
            choices: 1,
            failure: None,
            context: ContextId::NONE,
        }
    }

    #[test]
    fn wait_for_a_carrier_is_not_a_kernel_wait() {
        assert!(is_ready(&look(Os::Runnable, None)));
        assert!(!is_ready(&look(Os::Runnable, Some("carrier"))));
        assert!(!is_ready(&look(Os::Call(Call::Futex), None)));
    }
}

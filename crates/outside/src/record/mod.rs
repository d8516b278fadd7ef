//! A recording without an agent. The kernel takes CPU samples with registers and stack; waiting
//! threads are read for wall-clock samples. All stacks are walked and named from outside. The file
//! has the agent's format, without the data that only the agent has (context, requests, pauses).
//!
//! The caller calls [`Recorder::step`] in a loop; it never blocks for long.

mod chunk;
mod cpu;
mod fingerprints;
mod kernel;
mod mounted;
mod owners;
mod seats;
mod threads;
mod unmounted;
mod wall;
mod weights;

use crate::clock::now_ns;
use crate::denied::Refusal;
use crate::look::{Looker, Trail};
use crate::memory::{Overlay, Pages};
use crate::names::{Named, Namer};
use crate::running::Copied;
use crate::task::{Sockets, Tasks};
use crate::virtuals::Virtuals;
use crate::vm::{Error as VmError, Vm};
use chunk::Chunk;
use cpu::{Cpu, Refused};
use dwell_host::Whose;
use dwell_host::cgroup::Group;
use dwell_host::limit::Limits;
use dwell_host::used::Account;
use dwell_jfr::redact::Secrets;
use dwell_walker::{Anchor, Failure, Frame, FrameKind};
use kernel::KernelNames;
use mounted::{Mounted, UNKNOWN_FRAMES};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::time::{Duration, Instant};
use threads::{Facts, Threads};
use wall::Wall;
use weights::Weights;

/// Time between two flushes.
const FLUSH: Duration = Duration::from_secs(1);
/// Time between two lists of the threads.
const CENSUS: Duration = Duration::from_millis(100);
/// Minimum time between two reads of the library mappings, when a frame is in no library.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The maximum cost of reading them is the elapsed time divided by this.
const LOOK_SHARE: u32 = 50;
/// The same for the list of threads while their number is equal, and when it has changed.
const LIST_SHARE: u32 = 50;
const LIST_SHARE_CHANGED: u32 = 10;
/// Time between two searches for missing classes: each one reads all of the boot loader's classes.
const CLASSES: Duration = Duration::from_secs(10);
/// Name of the threads that have exited without a last sample, as with the agent.
const ENDED: &str = "[ended or unseen threads]";
/// After a sample of a running virtual thread, more such samples are expected for this time.
const CARRIED: Duration = Duration::from_secs(1);
/// A chunk is ended if its constants take more memory.
const CHUNK_MEMORY_MAX: usize = 48 << 20;

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// CPU time between two samples of a thread. A recording of wall time needs these samples, too,
    /// because they show where threads ran.
    pub cpu: Duration,
    /// Time between two ticks; none: no wall time.
    pub wall: Option<Duration>,
    /// Part of one processor's time that wall-clock samples may take.
    pub wall_budget: f64,
    /// Maximum number of frames of a stack.
    pub depth: usize,
    /// The version of the command.
    pub version: &'static str,
    /// The options as they were given.
    pub options: String,
    /// Parts of the command line that are not recorded.
    pub secrets: Secrets,
}

/// The reason why a recording cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel does not permit us to sample it.
    #[error("the kernel does not allow samples of process {pid} ({why}); {}", remedy(.why))]
    NotPermitted {
        /// The process.
        pid: u32,
        /// The reason.
        why: Refusal,
    },
    /// Each thread needs a descriptor on each processor.
    #[error(
        "process {pid} has {threads} threads on {processors} CPUs: sampling them takes {needed} \
         descriptors, {limit} are allowed; raise `ulimit -n`, or record with the agent"
    )]
    TooMany {
        /// The process.
        pid: u32,
        /// Its threads.
        threads: usize,
        /// The machine's processors.
        processors: usize,
        /// Number of descriptors needed.
        needed: usize,
        /// The limit.
        limit: usize,
    },
    /// The file cannot be written.
    #[error("the recording cannot be written: {0}")]
    File(io::Error),
    /// The JVM cannot be read.
    #[error(transparent)]
    Vm(#[from] VmError),
}

/// The remedy for a refusal of samples. The agent needs no permission.
fn remedy(why: &Refusal) -> String {
    let agent = "use the agent (without --no-agent)";
    match why.remedy() {
        Some(remedy) => format!("{agent}, or {remedy}"),
        None => agent.to_owned(),
    }
}

/// Sums of a recording so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Samples of CPU time.
    pub samples: u64,
    /// Samples whose walk did not reach the root.
    pub failed: u64,
    /// Samples that the kernel had no room for.
    pub lost: u64,
    /// Wall-clock samples of waiting threads.
    pub looks: u64,
    /// Length of the file, in bytes.
    pub bytes: u64,
}

/// A recording that runs.
pub struct Recorder<'r, 't> {
    wanted: Wanted,
    vm: &'r mut Vm<'t>,
    tasks: Tasks,
    file: File,
    file_len: u64,
    chunk_start: u64,
    chunk: Chunk,
    cpu: Cpu,
    wall: Option<Wall>,
    threads: Threads,
    weights: Weights,
    /// Number of the process's threads.
    threads_count: u64,
    /// Time of the last list, and its cost.
    listed: (Instant, Duration),
    namer: Namer,
    kernel: KernelNames,
    sockets: Rc<Sockets>,
    mounted: Option<Mounted>,
    sum: Sum,
    lost_told: u64,
    cpu_at_start: (u64, u64),
    machine: Account,
    limits: Limits,
    next_flush: Instant,
    next_census: Instant,
    next_classes: Instant,
    /// Time of the last read of the library mappings.
    looked_at: Instant,
    look_after: Duration,
    /// Time of the last sample of a running virtual thread.
    carried: Option<Instant>,
}

impl<'r, 't> Recorder<'r, 't> {
    /// Starts a recording.
    ///
    /// # Errors
    /// [`Error`].
    pub fn start(vm: &'r mut Vm<'t>, file: File, wanted: Wanted) -> Result<Self, Error> {
        let jvm = vm.target.jvm();
        let tasks = Tasks::new(jvm.pid, jvm.ns_pid);
        vm.modules.prepare();
        let mut threads = Threads::default();
        threads.look(vm, &tasks);
        let virtuals = wanted.wall.and_then(|_| Virtuals::find(vm));
        let (kernel, mounted) = (KernelNames::read(), Mounted::find(vm));
        let _first = cpu::first_event();
        // All accounts begin together, after the steps that can take seconds on a slow machine.
        let chunk = Chunk::new(vm, &wanted);
        let mut wall = wanted
            .wall
            .map(|interval| Wall::new(interval, wanted.wall_budget, &tasks));
        if let Some(wall) = &mut wall {
            wall.know(virtuals);
        }
        let tids: Vec<i32> = tasks.all().into_iter().map(|(tid, _)| tid).collect();
        let used = tids.iter();
        let used = used.filter_map(|tid| Some((*tid, used_ns(&tasks, *tid)?)));
        let before = tasks.cpu_time();
        let weights = Weights::begin(used);
        let cpu_at_start = middle(before, tasks.cpu_time());
        let cpu = Cpu::open(&tids, wanted.cpu).map_err(|it| refused(it, jvm.pid, tids.len()))?;
        let now = Instant::now();
        Ok(Recorder {
            vm,
            tasks,
            file,
            file_len: 0,
            chunk_start: 0,
            chunk,
            cpu,
            wall,
            threads,
            weights,
            threads_count: 0,
            listed: (now, Duration::ZERO),
            namer: Namer::with_origins(),
            kernel,
            sockets: Rc::default(),
            mounted,
            sum: Sum::default(),
            lost_told: 0,
            machine: Account::begin(Whose::Of(tasks.pid), now_ns(), Some(sum_ns(cpu_at_start))),
            limits: {
                let whose = Whose::Of(tasks.pid);
                Limits::begin(whose, Group::of(whose))
            },
            cpu_at_start,
            next_flush: now + FLUSH,
            next_census: now + CENSUS,
            next_classes: now + CLASSES,
            looked_at: now,
            look_after: LOOK_AGAIN,
            carried: None,
            wanted,
        })
    }

    /// The sums so far.
    #[must_use]
    pub fn sum(&self) -> Sum {
        Sum {
            bytes: self.file_len,
            ..self.sum
        }
    }

    /// Processes the new samples, and waits up to `time` for more.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn step(&mut self, time: Duration) -> Result<(), Error> {
        let until = Instant::now() + time;
        loop {
            self.take(false);
            let now = Instant::now();
            if now >= self.next_flush {
                self.next_flush = now + FLUSH;
                self.flush(false)?;
            }
            let due = self.wall.as_mut().map_or(until, Wall::next);
            let wait = due.min(until).min(self.next_flush);
            let wait = wait.saturating_duration_since(Instant::now());
            if Instant::now() >= until {
                return Ok(());
            }
            // Frames of virtual threads are read from the heap, where they soon change.
            let at_once = self.carried.is_some_and(|it| it.elapsed() < CARRIED);
            self.cpu.wait(wait.min(cpu::DRAIN), at_once);
        }
    }

    /// Takes the samples that are due. `is_over`: the recording ends.
    fn take(&mut self, is_over: bool) {
        let now = Instant::now();
        if now >= self.next_census {
            self.next_census = now + CENSUS;
            self.update_threads(now);
        }
        let mut copies = Vec::new();
        self.sum.lost += self.cpu.drain(|copied| copies.push(copied));
        if copies.iter().any(|copied| !self.threads.knows(copied.tid)) {
            self.threads.look(self.vm, &self.tasks);
        }
        // Code and metadata are read once for all stacks.
        let pages = Pages::new(self.vm.live);
        let mut counts: FxHashMap<i32, u64> = FxHashMap::default();
        for copied in &copies {
            *counts.entry(copied.tid).or_default() += 1;
        }
        let mut each: FxHashMap<i32, u64> = FxHashMap::default();
        for copied in copies {
            let count = counts.get(&copied.tid).copied().unwrap_or(1);
            let weight_ns = *each.entry(copied.tid).or_insert_with(|| {
                let used_ns = used_ns(&self.tasks, copied.tid);
                let weights = &mut self.weights;
                weights.each(copied.tid, count, used_ns, copied.period_ns)
            });
            self.sample(&copied, weight_ns, &pages);
        }
        if let Some(wall) = &mut self.wall {
            let looker = Looker {
                vm: &*self.vm,
                tasks: self.tasks,
                common: None,
                sockets: Rc::clone(&self.sockets),
            };
            let context = wall::Context {
                looker: &looker,
                namer: &mut self.namer,
                threads: &self.threads,
                chunk: &mut self.chunk,
            };
            self.sum.looks += wall.tick(context, is_over);
        }
    }

    /// Lists the threads, if that is due. Thousands of threads take 10 ms.
    fn update_threads(&mut self, now: Instant) {
        let count = self.tasks.count();
        let is_equal = std::mem::replace(&mut self.threads_count, count) == count;
        let share = if is_equal {
            LIST_SHARE
        } else {
            LIST_SHARE_CHANGED
        };
        if now < self.listed.0 + self.listed.1 * share {
            return;
        }
        let began_ns = cpu_ns();
        self.vm.continuation_returns();
        self.threads.look(self.vm, &self.tasks);
        let took = Duration::from_nanos(cpu_ns().saturating_sub(began_ns));
        self.listed = (now, took);
    }

    fn sample(&mut self, copied: &Copied, weight_ns: u64, pages: &Pages<'t>) {
        let pages = Overlay::new(pages, copied.low(), &copied.stack);
        let mut trail = Trail::default();
        let (mut failure, mut entry) = self.walk(copied, &pages, &mut trail);
        if self.is_in_unknown_code(&trail, failure) && self.look_again() {
            trail = Trail::default();
            (failure, entry) = self.walk(copied, &pages, &mut trail);
        }
        if entry != 0 {
            self.carried = Some(Instant::now());
        }
        let vm = &*self.vm;
        let whom = self.threads.whom(copied.tid);
        let mut named: Vec<_> = trail
            .frames
            .iter()
            .map(|frame| (self.namer.name(&pages, vm, frame), frame))
            .collect();
        let mounted = self.mounted.filter(|_| whom.java_thread != 0);
        let walked = (&trail, failure);
        let mounted = mounted.and_then(|it| it.of_sample(vm, &pages, walked, entry, &named));
        let kernel: Vec<Frame> = copied.kernel.iter().map(kernel_frame).collect();
        let names = &mut self.kernel;
        let above = kernel
            .iter()
            .map(|frame| (kernel_name(names, frame.id), frame));
        named.splice(0..0, above);
        named.truncate(self.wanted.depth);
        self.sum.samples += 1;
        self.sum.failed += u64::from(failure.is_some());
        self.chunk.sample(
            (copied.time_ns, weight_ns),
            (self.threads.facts(copied.tid), mounted),
            &named,
            failure,
        );
    }

    /// Walks a copied stack. Returns why it is incomplete, and the entry of its continuation.
    fn walk(
        &self,
        copied: &Copied,
        pages: &Overlay<'_, Pages<'t>>,
        trail: &mut Trail,
    ) -> (Option<Failure>, u64) {
        let vm = &*self.vm;
        let looker = Looker {
            vm,
            tasks: self.tasks,
            common: None,
            sockets: Rc::clone(&self.sockets),
        };
        let whom = self.threads.whom(copied.tid);
        // The thread's last Java frame is the present one, not that of the sample.
        let anchor = Anchor::default();
        let now = looker.continuation(whom.java_thread);
        let entry = match self.mounted {
            Some(_) if whom.java_thread != 0 => Mounted::entry(vm, pages, copied, now),
            _ => 0,
        };
        let thread = whom.java_thread;
        let stands = || entry == 0 || Mounted::stands(&looker, thread, copied, entry);
        let mut walk = |chunk| {
            let within = (anchor, entry, chunk);
            looker.walk_within(whom, pages, copied.regs, within, trail)
        };
        let whole = stands().then(|| walk(0)).filter(|_| stands());
        let walk = whole.unwrap_or_else(|| walk(UNKNOWN_FRAMES));
        (crate::look::failure_of(&walk), entry)
    }

    /// Whether a walk found code that may have been loaded after the last read of the mappings.
    fn is_in_unknown_code(&self, trail: &Trail, failure: Option<Failure>) -> bool {
        let is_lost = matches!(failure, Some(Failure::UnknownPc | Failure::NoNativeRule));
        let is_unknown =
            |frame: &Frame| frame.kind == FrameKind::Native && !self.vm.modules.has(frame.id);
        is_lost || trail.frames.iter().any(is_unknown)
    }

    /// Reads the library mappings again, unless they were read a moment ago.
    fn look_again(&mut self) -> bool {
        let is_due = self.looked_at.elapsed() >= self.look_after;
        if is_due {
            let began = Instant::now();
            self.vm.modules.refresh();
            self.looked_at = Instant::now();
            // With tens of thousands of mappings this takes tens of milliseconds.
            self.look_after = LOOK_AGAIN.max((self.looked_at - began) * LOOK_SHARE);
        }
        is_due
    }

    /// Writes the collected data, and makes the file readable up to here.
    fn flush(&mut self, is_over: bool) -> Result<(), Error> {
        // The threads run on, and later steps can take seconds on a slow machine.
        let since = self.cpu_since_start(is_over);
        // A class may have been unloaded, and another one may have its address by now.
        self.namer.forget();
        self.sockets = Rc::default();
        self.look_again();
        if Instant::now() >= self.next_classes {
            self.next_classes = Instant::now() + CLASSES;
            self.vm.refresh();
            let tasks = self.tasks;
            self.weights.retain(|tid| used_ns(&tasks, tid).is_some());
            self.mounted = self.mounted.or_else(|| Mounted::find(self.vm));
            if let Some(wall) = &mut self.wall {
                wall.know(Virtuals::find(self.vm));
            }
        }
        if let Some(wall) = &mut self.wall {
            wall.flush(&self.threads, &self.tasks, &mut self.chunk);
        }
        self.chunk.wall_sums(is_over);
        let tasks = self.tasks;
        let own_ns = || Some(sum_ns(tasks.cpu_time()));
        if let Some(used) = self.machine.told(now_ns(), own_ns) {
            self.chunk.machine(&used);
        }
        if let Some(limit) = self.limits.told() {
            self.chunk.limit(&limit);
        }
        let lost = self.sum.lost - std::mem::replace(&mut self.lost_told, self.sum.lost);
        self.chunk.account(since, lost);
        let bytes = self.chunk.flush();
        let written = self
            .file
            .write_all_at(&bytes, self.file_len)
            .and_then(|()| {
                self.file
                    .write_all_at(&self.chunk.header(), self.chunk_start)
            });
        if let Err(error) = written {
            // The complete part stays readable.
            let _ = self.file.set_len(self.file_len);
            return Err(Error::File(error));
        }
        self.file_len += bytes.len() as u64;
        if self.chunk.memory_bytes() > CHUNK_MEMORY_MAX {
            self.next_chunk();
        }
        Ok(())
    }

    /// CPU time of the process in the recording, in user mode and in the kernel. `is_over`: time
    /// without a sample gets its weight.
    fn cpu_since_start(&mut self, is_over: bool) -> (u64, u64) {
        let begun = self.cpu_at_start;
        let since = |(user, system): (u64, u64)| {
            (user.saturating_sub(begun.0), system.saturating_sub(begun.1))
        };
        let before = self.tasks.cpu_time();
        if !is_over {
            return since(before);
        }
        self.write_rest(sum_ns(since(before)));
        since(middle(before, self.tasks.cpu_time()))
    }

    /// Writes the CPU time since the threads' last samples, and that of threads that have exited.
    /// `process_ns`: CPU time of the process in the recording.
    fn write_rest(&mut self, process_ns: u64) {
        let tids: Vec<i32> = self.tasks.all().into_iter().map(|(tid, _)| tid).collect();
        let tasks = self.tasks;
        let rest = self.weights.rest(&tids, |tid| used_ns(&tasks, tid));
        for (tid, weight_ns) in rest {
            let facts = self.threads.facts(tid);
            let why = Failure::RecordingEnded;
            self.chunk.without_stack(facts, weight_ns, why);
        }
        let missing_ns = self.weights.missing_ns(process_ns);
        if missing_ns > 0 {
            let facts = Facts {
                os_name: ENDED.to_owned(),
                ..Facts::default()
            };
            let why = Failure::ShortThread;
            self.chunk.without_stack(facts, missing_ns, why);
        }
    }

    fn next_chunk(&mut self) {
        self.chunk.follow(self.vm, &self.wanted);
        self.limits.begin_chunk();
        self.chunk_start = self.file_len;
        if let Some(wall) = &mut self.wall {
            wall.forget_stacks();
        }
    }

    /// Ends the present file, and continues in an empty one.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn next_file(&mut self, file: File) -> Result<(), Error> {
        self.take(false);
        self.flush(false)?;
        self.file = file;
        self.file_len = 0;
        self.next_chunk();
        Ok(())
    }

    /// Ends the recording.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn end(mut self) -> Result<Sum, Error> {
        self.take(true);
        self.flush(true)?;
        Ok(self.sum())
    }
}

/// The middle of two CPU times in user mode and in the kernel. The clocks of many threads are read
/// one after the other, while the threads run.
fn middle(before: (u64, u64), after: (u64, u64)) -> (u64, u64) {
    (before.0.midpoint(after.0), before.1.midpoint(after.1))
}

/// CPU time in user mode and in the kernel.
fn sum_ns((user, system): (u64, u64)) -> u64 {
    user.saturating_add(system)
}

/// CPU time of this thread.
fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

fn refused(refused: Refused, pid: u32, threads: usize) -> Error {
    match refused {
        Refused::Kernel(why) => Error::NotPermitted {
            pid,
            why: Refusal::of(&why),
        },
        Refused::TooMany {
            processors,
            needed,
            limit,
        } => Error::TooMany {
            pid,
            threads,
            processors,
            needed,
            limit,
        },
    }
}

/// CPU time of a thread; `None` if it has exited.
fn used_ns(tasks: &Tasks, tid: i32) -> Option<u64> {
    Some(tasks.schedule(tid)?.on_cpu_ns)
}

fn kernel_name(names: &mut KernelNames, address: u64) -> Named {
    Named::Native {
        library: "[kernel]".to_owned(),
        function: Some(names.name(address).to_owned()),
        is_vm: false,
    }
}

fn kernel_frame(address: &u64) -> Frame {
    Frame {
        kind: FrameKind::Kernel,
        bci: -1,
        id: *address,
    }
}

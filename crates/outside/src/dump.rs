//! All threads of a JVM at about one moment: the state, stack and wait of each, with the owner of
//! its lock. Also deadlocks, and the safepoint that is under way.

use crate::deadlock;
use crate::denied::Refusal;
use crate::look::{Looker, Seen, TRIES, Trail, VmState, Whom};
use crate::memory::Pages;
use crate::names::{Named, Namer};
use crate::running::{self, Sampling};
use crate::safepoint::{self, Found};
use crate::stopped;
use crate::task::Tasks;
use crate::virtuals::{self, Virtuals};
use crate::vm::Vm;
use dwell_walker::hotspot::layout::present;
use dwell_walker::hotspot::monitors::{self, Owner};
use dwell_walker::hotspot::{continuation, objects, threads as vm_threads};
use dwell_walker::{Anchor, Memory};
use dwell_wall::cause::{self, Cause, Facts, Known};
use dwell_wall::proc::Schedule;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Maximum length of a thread's name.
const NAME_CHARS_MAX: u32 = 512;
/// The innermost frames show the cause of a wait.
const CAUSE_FRAMES_MAX: usize = 64;

/// Options of a dump.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Also threads of the VM and of libraries.
    pub native: bool,
    /// Maximum number of unmounted virtual threads.
    pub virtual_max: usize,
    /// Maximum wait for samples of running threads.
    pub running: Duration,
    /// Whether a running thread may be stopped for a moment if it could not be sampled.
    pub stop: Stop,
}

/// When a running thread may be stopped for a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Never.
    Never,
    /// If a seccomp filter forbids samples. Such a filter is usual in containers, and no right of
    /// the user's lifts it.
    IfFiltered,
    /// If it was not sampled, for any reason.
    IfNotSampled,
}

impl Stop {
    /// Whether threads without a sample may be stopped after this refusal of samples.
    #[must_use]
    pub fn applies(self, refusal: Option<&Refusal>) -> bool {
        match self {
            Stop::Never => false,
            Stop::IfFiltered => refusal == Some(&Refusal::Seccomp),
            Stop::IfNotSampled => true,
        }
    }
}

/// Kind of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A Java thread of the operating system.
    Platform,
    /// A virtual thread without a carrier.
    Virtual,
    /// A thread of the VM or of a library.
    Native,
}

/// How its frames were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It waits; its stack was read in place.
    InPlace,
    /// It runs; the kernel has copied registers and stack.
    Sampled,
    /// It runs in native code or the VM; only the frames from its last Java frame on were read.
    BelowNative,
    /// It was stopped for a moment.
    Stopped,
    /// It runs, and could not be sampled.
    NotSampled,
}

/// The owner of an object that a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerText {
    /// Its index in [`Dump::threads`].
    pub thread: Option<usize>,
    /// Its `Thread.threadId()`, if nothing more is known.
    pub id: Option<u64>,
}

/// An object that a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedText {
    /// The object's address at that moment.
    pub object: u64,
    /// Its class, with dots.
    pub class: Option<String>,
    /// Its owner.
    pub owner: Option<OwnerText>,
}

/// A monitor that a frame has locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedText {
    /// Index of the frame in [`Thread::frames`].
    pub frame: usize,
    /// The object's address at that moment.
    pub object: u64,
    /// Its class, with dots.
    pub class: Option<String>,
    /// The compiler has eliminated the locking.
    pub is_eliminated: bool,
}

/// One thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Kind of the thread.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// `Thread.threadId()`.
    pub java_id: Option<u64>,
    /// Its id in the kernel, in our namespace.
    pub tid: Option<i32>,
    /// Its `JavaThread*`.
    pub address: u64,
    /// Whether it is a daemon.
    pub is_daemon: Option<bool>,
    /// Its priority, 1 to 10.
    pub priority: Option<i32>,
    /// `Thread.getState()`.
    pub java_state: Option<&'static str>,
    /// The JVM's state of it.
    pub vm_state: Option<VmState>,
    /// CPU time it has used.
    pub cpu_ns: Option<u64>,
    /// The cause: running, or the reason of its wait.
    pub cause: Cause,
    /// The object of a system call: a peer, a file.
    pub on: Option<String>,
    /// The Java object that it waits for.
    pub wanted: Option<WantedText>,
    /// Whether it waits to be notified on that object, not to own it.
    pub waits_to_be_notified: bool,
    /// Id and name of the virtual thread that is mounted.
    pub mounted: Option<(u64, String)>,
    /// Frames, innermost first.
    pub frames: Vec<Named>,
    /// Monitors that it owns, by frame, within a frame the last one first. Its innermost Java frame
    /// may also have the one that it waits for.
    pub locked: Vec<LockedText>,
    /// Why frames are missing.
    pub failure: Option<&'static str>,
    /// How they were found.
    pub how: How,
    /// How long it was stopped for that.
    pub stood: Option<Duration>,
    /// It ran during all attempts, so its data may be from different moments.
    pub is_blurred: bool,
}

/// A safepoint that is under way.
#[derive(Clone, Debug)]
pub struct Safepoint {
    /// Whether all threads have stopped.
    pub is_reached: bool,
    /// Its operation; empty if unknown.
    pub operation: String,
    /// Time since its request.
    pub since: Option<Duration>,
    /// The thread that requested it, if that is in the dump.
    pub asked_by: Option<usize>,
    /// Threads that have not stopped yet.
    pub late: Vec<usize>,
}

impl Safepoint {
    /// With threads by their index in a dump.
    fn among(found: Found, threads: &[Thread]) -> Safepoint {
        let find = |address: u64| threads.iter().position(|thread| thread.address == address);
        Safepoint {
            is_reached: found.is_reached,
            operation: found.operation,
            since: found.since,
            asked_by: found.asked_by.and_then(find),
            late: found.late.into_iter().filter_map(find).collect(),
        }
    }
}

/// A dump.
#[derive(Clone, Debug)]
pub struct Dump {
    /// Start of the dump.
    pub at: SystemTime,
    /// Duration of the dump.
    pub took: Duration,
    /// The kernel's state of the process: `T` for stopped.
    pub process_state: Option<char>,
    /// Threads, in the order of the JVM's own list, then virtual ones, then native ones.
    pub threads: Vec<Thread>,
    /// Whether there are more virtual threads than the limit.
    pub more_virtual: bool,
    /// Threads that wait for each other in a circle.
    pub deadlocks: Vec<Vec<usize>>,
    /// The safepoint that is under way.
    pub safepoint: Option<Safepoint>,
    /// Whether this JVM shows its safepoints at all.
    pub safepoints_are_known: bool,
    /// The reason why running threads could not be sampled.
    pub refusal: Option<Refusal>,
}

/// A thread before its owner is known.
struct Half {
    thread: Thread,
    /// The scheduler's counters of the thread when its object was read.
    ran: Option<Schedule>,
    owner: Option<Owner>,
    wanted_object: u64,
    stack: (u64, u64),
}

/// Maximum number of our threads that read others in parallel.
const WORKERS_MAX: usize = 4;
/// Minimum number of threads for each of these.
const EACH_MIN: usize = 64;

/// Makes dumps.
pub struct Dumper<'d, 't> {
    looker: Looker<'d, 't>,
    namer: Namer,
    waits: Known,
}

impl<'d, 't> Dumper<'d, 't> {
    /// For one dump of this JVM.
    #[must_use]
    pub fn new(vm: &'d Vm<'t>) -> Dumper<'d, 't> {
        let jvm = vm.target.jvm();
        Dumper {
            looker: Looker {
                vm,
                tasks: Tasks::new(jvm.pid, jvm.ns_pid),
                common: Some(Rc::default()),
                sockets: Rc::default(),
            },
            namer: Namer::default(),
            waits: Known::new(&dwell_jdk::WAITS),
        }
    }

    /// Reads all threads.
    #[must_use]
    pub fn dump(mut self, options: &Options) -> Dump {
        let (at, began) = (SystemTime::now(), Instant::now());
        let (vm, tasks) = (self.looker.vm, self.looker.tasks);
        // Before the threads: reading those takes time, and a safepoint may be short.
        let safepoint = safepoint::look(vm);
        let all = tasks.all();
        let outer: HashMap<i32, i32> = all.iter().map(|(tid, inner)| (*inner, *tid)).collect();
        let late = self.sample_late(safepoint.as_ref(), &outer);
        let safepoint = safepoint.map(|found| found.with_operation(vm, &tasks, &outer));
        let mut halves = Vec::new();
        let mut java = Vec::new();
        let _ = vm_threads::for_each(vm.live, &vm.layout, |thread| java.push(thread));
        // A list that changes during the read may become cyclic.
        let mut known = HashSet::new();
        let mut whoms = Vec::new();
        for java_thread in java {
            let inner = vm_threads::kernel_id(vm.live, &vm.layout, java_thread).unwrap_or(0);
            if let Some(tid) = outer.get(&inner)
                && known.insert(*tid)
            {
                whoms.push(Whom {
                    tid: *tid,
                    java_thread,
                });
            }
        }
        halves.extend(self.all(&whoms));
        let mut more_virtual = false;
        if options.virtual_max > 0 {
            more_virtual = self.unmounted(options.virtual_max, &mut halves);
        }
        if options.native {
            let others = all.iter().filter(|(tid, _)| !known.contains(tid));
            let whoms: Vec<Whom> = others
                .map(|(tid, _)| Whom {
                    tid: *tid,
                    java_thread: 0,
                })
                .collect();
            halves.extend(self.all(&whoms));
        }
        let refusal = self.running(options, late, &mut halves);
        let threads = self.with_owners(halves);
        let waits_for = threads.iter().enumerate().filter_map(|(at, thread)| {
            let owner = thread.wanted.as_ref()?.owner.as_ref()?.thread?;
            Some((at, owner))
        });
        let deadlocks = deadlock::circles(&waits_for.collect());
        let safepoint = safepoint.map(|found| Safepoint::among(found, &threads));
        Dump {
            at,
            took: began.elapsed(),
            process_state: tasks.state(tasks.pid as i32),
            threads,
            more_virtual,
            deadlocks,
            safepoint,
            safepoints_are_known: vm.sees_safepoints(),
            refusal,
        }
    }

    /// Reads these threads, in their order. Many threads are read in parallel, because a dump
    /// should show a short moment.
    fn all(&mut self, whoms: &[Whom]) -> Vec<Half> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let workers = processors.min(WORKERS_MAX).min(whoms.len() / EACH_MIN);
        if workers < 2 {
            return whoms.iter().filter_map(|whom| self.half(*whom)).collect();
        }
        let (vm, each) = (self.looker.vm, whoms.len().div_ceil(workers));
        thread::scope(|scope| {
            let parts: Vec<_> = whoms
                .chunks(each)
                .map(|part| {
                    scope.spawn(move || {
                        let mut dumper = Dumper::new(vm);
                        let halves = part.iter().filter_map(|whom| dumper.half(*whom));
                        halves.collect::<Vec<Half>>()
                    })
                })
                .collect();
            let joined = parts.into_iter().flat_map(|part| match part.join() {
                Ok(halves) => halves,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect()
        })
    }

    fn half(&mut self, whom: Whom) -> Option<Half> {
        for attempt in 1..=TRIES {
            let (mut seen, pages) = self.looker.look(whom)?;
            let how = match (seen.is_ready, seen.trail.frames.is_empty()) {
                (false, _) => How::InPlace,
                (true, false) => How::BelowNative,
                (true, true) => How::NotSampled,
            };
            let trail = std::mem::take(&mut seen.trail);
            let mut half = self.described(whom, &seen, how, &pages);
            // If the thread has run since, its object's data are from another moment than its
            // stack.
            let is_still = how == How::InPlace && !seen.is_blurred && whom.java_thread != 0;
            let has_run = is_still && half.ran != seen.ran;
            if has_run && attempt < TRIES {
                continue;
            }
            half.thread.is_blurred |= has_run;
            self.name(&mut half, &seen, &trail, &pages);
            return Some(half);
        }
        None
    }

    /// Everything but the frames.
    fn described(&self, whom: Whom, seen: &Seen, how: How, pages: &Pages<'_>) -> Half {
        let (vm, tasks) = (self.looker.vm, self.looker.tasks);
        // A thread and its object are read in a few pieces, once. If the thread has run since, it
        // is read again.
        let (now, layout) = (pages.unshared(), &vm.layout);
        let object = match whom.java_thread {
            0 => 0,
            thread => objects::of_thread(now, layout, &layout.extra.objects, thread).unwrap_or(0),
        };
        let facts = self.facts(now, object);
        let high = match whom.java_thread {
            0 => 0,
            thread => vm_threads::stack_high(now, layout, thread).unwrap_or(0),
        };
        let size = match layout.thread_stack_size {
            at if present(at) && whom.java_thread != 0 => {
                now.word(whom.java_thread.wrapping_add(at)).unwrap_or(0)
            }
            _ => 0,
        };
        let mounted = (seen.mounted != 0).then(|| {
            let facts = self.facts(now, seen.mounted);
            (facts.id.unwrap_or(0), facts.name.unwrap_or_default())
        });
        let kernel_name = || tasks.name(whom.tid).unwrap_or_default();
        let ran = match &seen.clock {
            Some(clock) => clock.schedule(),
            None => tasks.schedule(whom.tid),
        };
        Half {
            ran,
            owner: seen.wanted.as_ref().and_then(|wanted| wanted.owner),
            wanted_object: seen.wanted.as_ref().map_or(0, |wanted| wanted.object),
            stack: (high.saturating_sub(size), high),
            thread: Thread {
                kind: match whom.java_thread {
                    0 => Kind::Native,
                    _ => Kind::Platform,
                },
                name: facts.name.unwrap_or_else(kernel_name),
                java_id: facts.id,
                tid: Some(whom.tid),
                address: whom.java_thread,
                is_daemon: facts.is_daemon,
                priority: facts.priority,
                java_state: facts.state.map(|state| shown_state(state, seen)),
                vm_state: seen.vm_state,
                cpu_ns: ran.map(|times| times.on_cpu_ns),
                cause: Cause::Unknown,
                on: seen.on.clone(),
                wanted: seen.wanted.as_ref().map(|wanted| WantedText {
                    object: wanted.object,
                    class: wanted.class.clone(),
                    owner: None,
                }),
                waits_to_be_notified: seen.monitor == cause::Monitor::Waiting,
                mounted,
                frames: Vec::new(),
                locked: Vec::new(),
                failure: seen.failure.map(dwell_walker::Failure::name),
                how,
                stood: None,
                is_blurred: seen.is_blurred,
            },
        }
    }

    /// Names the frames, and finds the cause of the wait by them.
    fn name(&mut self, half: &mut Half, seen: &Seen, trail: &Trail, pages: &Pages<'_>) {
        let vm = self.looker.vm;
        let frames = trail.frames.iter();
        let named = frames.map(|frame| self.namer.name(pages, vm, frame));
        half.thread.frames = named.collect();
        half.thread.locked = self.looker.locked(pages, trail);
        let top = half.thread.frames.iter().take(CAUSE_FRAMES_MAX);
        let names: Vec<cause::Named<'_>> = top.filter_map(for_cause).collect();
        let facts = Facts {
            os: seen.os,
            monitor: seen.monitor,
            is_owned_lock: seen.is_owned_lock,
            frames: &names,
        };
        half.thread.cause = self.waits.cause(&facts);
    }

    fn unmounted(&mut self, max: usize, halves: &mut Vec<Half>) -> bool {
        let vm = self.looker.vm;
        let Some(virtuals) = Virtuals::find(vm) else {
            return false;
        };
        let found = virtuals.all(vm, max);
        for object in found.objects {
            if !virtuals::is_one(vm, object) {
                continue;
            }
            let Some((unmounted, pages)) = virtuals.look(&self.looker, object) else {
                continue;
            };
            let mut seen = unmounted.seen;
            let trail = std::mem::take(&mut seen.trail);
            let nobody = Whom {
                tid: 0,
                java_thread: 0,
            };
            let mut half = self.described(nobody, &seen, How::InPlace, &pages);
            let facts = self.facts(&pages, unmounted.object);
            half.thread.kind = Kind::Virtual;
            half.thread.name = facts.name.unwrap_or_default();
            (half.thread.java_id, half.thread.tid) = (facts.id, None);
            half.thread.cpu_ns = None;
            self.name(&mut half, &seen, &trail, &pages);
            halves.push(half);
        }
        found.are_more
    }

    /// Starts sampling the threads that all others wait for, while the others are read. Under load
    /// it may take long until those threads get a processor.
    fn sample_late(&self, safepoint: Option<&Found>, outer: &HashMap<i32, i32>) -> Sampling {
        let vm = self.looker.vm;
        let late = safepoint.map_or(&[][..], |found| &found.late);
        let tids = late.iter().filter_map(|thread| {
            let inner = vm_threads::kernel_id(vm.live, &vm.layout, *thread).ok()?;
            outer.get(&inner).copied()
        });
        Sampling::begin(&tids.collect::<Vec<_>>())
    }

    /// Samples threads that run, and, if that is allowed, stops those for which that failed.
    fn running(
        &mut self,
        options: &Options,
        late: Sampling,
        halves: &mut [Half],
    ) -> Option<Refusal> {
        let ready = |half: &Half| half.thread.cause == Cause::Running && half.thread.tid.is_some();
        let wanted = |half: &Half| ready(half) && half.thread.how != How::InPlace;
        let tids: Vec<i32> = halves
            .iter()
            .filter(|half| wanted(half))
            .filter_map(|half| half.thread.tid)
            .collect();
        // Late threads were sampled a moment ago; the others are sampled now.
        let (mut copies, _) = late.end(Duration::ZERO);
        let left: Vec<i32> = (tids.into_iter())
            .filter(|tid| !copies.contains_key(tid))
            .collect();
        let (more, refusal) = running::sample(&left, options.running);
        let refusal = refusal.map(|error| Refusal::of(&error));
        let may_stop = options.stop.applies(refusal.as_ref());
        copies.extend(more);
        for half in halves.iter_mut().filter(|half| wanted(half)) {
            let tid = half.thread.tid.unwrap_or(0);
            let whom = Whom {
                tid,
                java_thread: half.thread.address,
            };
            match copies.remove(&tid) {
                Some(copied) => self.sampled(half, whom, &copied),
                None if may_stop => self.stopped(half, whom),
                None => {}
            }
        }
        refusal
    }

    fn sampled(&mut self, half: &mut Half, whom: Whom, copied: &running::Copied) {
        let vm = self.looker.vm;
        let pages = Pages::new(vm.live);
        pages.keep(copied.low(), &copied.stack);
        // If the sample is above its last Java frame, only the copy of its stack shows that frame.
        let anchor = match whom.java_thread {
            0 => Anchor::default(),
            thread => vm_threads::anchor(&pages, &vm.layout, thread).unwrap_or_default(),
        };
        let mut trail = Trail::default();
        let walk = self
            .looker
            .walk_copied(whom, &pages, copied.regs, anchor, &mut trail);
        let is_better = matches!(walk.outcome, dwell_walker::Outcome::Complete)
            || half.thread.frames.is_empty();
        if !is_better {
            return;
        }
        half.thread.failure = crate::look::failure_of(&walk).map(dwell_walker::Failure::name);
        half.thread.how = How::Sampled;
        let seen = Seen::of_nothing(true);
        self.name(half, &seen, &trail, &pages);
    }

    fn stopped(&mut self, half: &mut Half, whom: Whom) {
        let Ok(stopped) = stopped::look(&self.looker, whom) else {
            return;
        };
        half.thread.failure = stopped.failure.map(dwell_walker::Failure::name);
        half.thread.how = How::Stopped;
        half.thread.stood = Some(stopped.stood);
        let seen = Seen::of_nothing(true);
        self.name(half, &seen, &stopped.trail, &stopped.pages);
    }

    fn with_owners(&self, halves: Vec<Half>) -> Vec<Thread> {
        let (live, layout) = (self.looker.vm.live, &self.looker.vm.layout);
        let find = |owner: Owner, object: u64| -> Option<usize> {
            let mut all = halves.iter();
            match owner {
                Owner::Nobody => None,
                // An address in a thread's stack also identifies the thread.
                Owner::Thread(at) | Owner::Stack(at) => all.position(|half| {
                    let (low, high) = half.stack;
                    half.thread.address == at || low <= at && at < high
                }),
                Owner::Id(id) => all.position(|half| half.thread.java_id == Some(id)),
                Owner::HolderOf(held) => all.position(|half| {
                    let thread = half.thread.address;
                    let held = if held == 0 { object } else { held };
                    thread != 0 && monitors::holds(live, layout, thread, held) == Ok(true)
                }),
            }
        };
        let owners: Vec<Option<OwnerText>> = halves
            .iter()
            .map(|half| {
                let owner = half.owner?;
                let id = match owner {
                    Owner::Id(id) => Some(id),
                    _ => None,
                };
                let thread = find(owner, half.wanted_object);
                Some(OwnerText { thread, id })
            })
            .collect();
        let threads = halves.into_iter().zip(owners).map(|(half, owner)| {
            let mut thread = half.thread;
            if let Some(wanted) = &mut thread.wanted {
                wanted.owner = owner;
            }
            thread
        });
        threads.collect()
    }

    /// The data of a `Thread` object.
    fn facts(&self, mem: &Pages<'_>, object: u64) -> ThreadFacts {
        let vm = self.looker.vm;
        let (layout, fields) = (&vm.layout, &vm.thread);
        if object == 0 || !present(fields.name) {
            return ThreadFacts::default();
        }
        let held = |at: u64| continuation::reference(mem, layout, object.wrapping_add(at)).ok();
        let name = held(fields.name).and_then(|text| vm.text(mem, text, NAME_CHARS_MAX));
        let id = objects::thread_id(mem, &layout.extra.objects, object).ok();
        let rest = match fields.holder {
            at if present(at) => held(at).unwrap_or(0),
            _ => object,
        };
        let field = |at: u64| (present(at) && rest != 0).then(|| rest.wrapping_add(at));
        let status = field(fields.status).and_then(|at| mem.u32(at).ok());
        ThreadFacts {
            name,
            id: id.filter(|id| *id != 0),
            is_daemon: field(fields.daemon)
                .and_then(|at| mem.u8(at).ok())
                .map(|it| it != 0),
            priority: field(fields.priority).and_then(|at| mem.i32(at).ok()),
            state: status.map(state_name),
        }
    }
}

#[derive(Default)]
struct ThreadFacts {
    name: Option<String>,
    id: Option<u64>,
    is_daemon: Option<bool>,
    priority: Option<i32>,
    state: Option<&'static str>,
}

/// `Thread.State` for the JVM's bits (java.base, jdk/internal/misc/VM.java).
const fn state_name(status: u32) -> &'static str {
    const ALIVE: u32 = 1;
    const TERMINATED: u32 = 1 << 1;
    const RUNNABLE: u32 = 1 << 2;
    const WAITING: u32 = 1 << 4;
    const TIMED_WAITING: u32 = 1 << 5;
    const BLOCKED: u32 = 1 << 10;
    if status & RUNNABLE != 0 {
        "RUNNABLE"
    } else if status & BLOCKED != 0 {
        "BLOCKED"
    } else if status & WAITING != 0 {
        "WAITING"
    } else if status & TIMED_WAITING != 0 {
        "TIMED_WAITING"
    } else if status & TERMINATED != 0 {
        "TERMINATED"
    } else if status & ALIVE == 0 {
        "NEW"
    } else {
        "RUNNABLE"
    }
}

/// The JVM notes a wait before the thread waits, and until shortly after. For a thread on a
/// processor that is not blocked in the JVM's view, such a note describes an earlier or later
/// state.
fn shown_state(noted: &'static str, seen: &Seen) -> &'static str {
    let waits = matches!(noted, "WAITING" | "TIMED_WAITING" | "BLOCKED");
    let is_out = seen.vm_state.is_some_and(|it| it != VmState::Blocked);
    if seen.is_ready && is_out && waits {
        "RUNNABLE"
    } else {
        noted
    }
}

/// A frame in the form that causes are found by.
pub(crate) fn for_cause(frame: &Named) -> Option<cause::Named<'_>> {
    match frame {
        Named::Java { method, .. } => Some(cause::Named {
            class: &method.class,
            name: &method.name,
            is_managed: true,
        }),
        Named::Native {
            library, function, ..
        } => Some(cause::Named {
            class: library,
            name: function.as_deref().unwrap_or(""),
            is_managed: false,
        }),
        Named::Stub(_) | Named::Missing(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_stopped_by_itself_only_under_seccomp() {
        let seccomp = Some(Refusal::Seccomp);
        let denied = Some(Refusal::NotPermitted("Permission denied".to_owned()));
        let failed = Some(Refusal::Failed("Too many open files".to_owned()));
        for (stop, expected) in [
            (Stop::Never, [false, false, false, false]),
            (Stop::IfFiltered, [true, false, false, false]),
            (Stop::IfNotSampled, [true, true, true, true]),
        ] {
            let found = [&seccomp, &denied, &failed, &None].map(|it| stop.applies(it.as_ref()));
            assert_eq!(found, expected, "{stop:?}");
        }
    }

    #[test]
    fn states_are_named_as_java_names_them() {
        // As `Thread.getState` returns them for typical bits.
        for (status, name) in [
            (0, "NEW"),
            (0x5, "RUNNABLE"),
            (0x401, "BLOCKED"),
            (0x291, "WAITING"),
            (0xe1, "TIMED_WAITING"),
            (0x2, "TERMINATED"),
            (0x1, "RUNNABLE"),
        ] {
            assert_eq!(state_name(status), name, "{status:#x}");
        }
    }

    #[test]
    fn running_thread_is_not_shown_as_waiting() {
        let seen = |is_ready, vm_state| Seen {
            vm_state: Some(vm_state),
            ..Seen::of_nothing(is_ready)
        };
        let states = [VmState::Java, VmState::Vm, VmState::Native, VmState::Other];
        for noted in ["WAITING", "TIMED_WAITING", "BLOCKED"] {
            for state in states {
                assert_eq!(shown_state(noted, &seen(true, state)), "RUNNABLE");
                assert_eq!(shown_state(noted, &seen(false, state)), noted);
            }
            // Woken, but still in the wait.
            assert_eq!(shown_state(noted, &seen(true, VmState::Blocked)), noted);
            assert_eq!(shown_state(noted, &Seen::of_nothing(true)), noted);
        }
        for noted in ["NEW", "RUNNABLE", "TERMINATED"] {
            assert_eq!(shown_state(noted, &seen(true, VmState::Java)), noted);
        }
    }
}

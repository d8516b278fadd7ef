//! CPU samples and wall-clock samples as events of a chunk.

use super::Wanted;
use super::mounted::Virtual;
use super::threads::Facts;
use crate::clock::now_ns;
use crate::names::Named;
use crate::origins::Origin as Place;
use crate::vm::Vm;
use dwell_host::limit::Limit;
use dwell_host::used::Used;
use dwell_jfr::writer::{
    ChunkClock, ChunkWriter, Event, FrameRef, HEADER_BYTES, MethodId, MethodInfo, Origin, Sample,
    StackId, ThreadId, ThreadInfo, WallSample,
};
use dwell_jfr::{FrameKind as FileKind, ThreadState};
use dwell_walker::{Failure, Frame, FrameKind};
use dwell_wall::sums::ByCause;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Class and name of a method, and its descriptor.
type Key = (String, String, String);

/// The open chunk.
pub struct Chunk {
    writer: ChunkWriter,
    methods: FxHashMap<(Key, Option<Arc<Place>>), MethodId>,
    threads: FxHashMap<i32, (Facts, ThreadId)>,
    virtual_threads: FxHashMap<Virtual, ThreadId>,
    failures: BTreeMap<&'static str, (u64, u64)>,
    wall_sums: ByCause,
}

/// Wall-clock samples with the same result.
pub struct Looks<'l> {
    /// The first one, on the monotonic clock.
    pub since_ns: u64,
    /// The last one.
    pub until_ns: u64,
    /// The stack.
    pub stack: StackId,
    /// The cause of the wait.
    pub cause: &'static str,
    /// The object of the wait.
    pub detail: Option<&'l str>,
    /// Wall-clock time that they represent.
    pub weight_ns: u64,
    /// Number of samples.
    pub count: u64,
    /// Number of independent samples of equal weight that they count for.
    pub choices: u64,
    /// The virtual thread that is mounted, or that waits without a carrier.
    pub logical: Option<Virtual>,
    /// The owner of the awaited object.
    pub owner: Option<Facts>,
    /// The owner's stack; none while it runs.
    pub owner_stack: StackId,
    /// Why the stack is incomplete.
    pub failure: Option<&'static str>,
}

impl Chunk {
    /// The first chunk of a recording.
    #[must_use]
    pub fn new(vm: &Vm<'_>, wanted: &Wanted) -> Chunk {
        let mut chunk = Chunk {
            writer: ChunkWriter::new(clock()),
            methods: FxHashMap::default(),
            threads: FxHashMap::default(),
            virtual_threads: FxHashMap::default(),
            failures: BTreeMap::new(),
            wall_sums: ByCause::default(),
        };
        chunk.describe(vm, wanted);
        chunk
    }

    /// Begins the next chunk.
    pub fn follow(&mut self, vm: &Vm<'_>, wanted: &Wanted) {
        self.writer = self.writer.following(clock());
        self.methods.clear();
        self.threads.clear();
        self.virtual_threads.clear();
        self.describe(vm, wanted);
    }

    fn describe(&mut self, vm: &Vm<'_>, wanted: &Wanted) {
        let ticks = now_ns();
        let jvm = vm.target.jvm();
        let pid = u64::from(jvm.pid);
        self.writer.event(&Event::Recording {
            ticks,
            version: wanted.version,
            pid,
            mode: match wanted.wall {
                Some(_) => "cpu,wall",
                None => "cpu",
            },
            engine: "perf events, from outside",
            engine_reason: "no agent was wanted: no context, requests, pauses or safepoints",
            cpu_interval_ns: wanted.cpu.as_nanos() as u64,
            wall_interval_ns: wanted.wall.map_or(0, |interval| interval.as_nanos() as u64),
            options: &wanted.options,
        });
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        let words = words.trim_end_matches('\0').split('\0');
        let command = wanted.secrets.words(words);
        let program = wanted.secrets.line(jvm.command.as_deref().unwrap_or(""));
        let uptime_ns = jvm.uptime_ms.unwrap_or(0).saturating_mul(1_000_000);
        self.writer.event(&Event::JvmInformation {
            ticks,
            jvm_name: "HotSpot",
            jvm_version: jvm.version.as_deref().unwrap_or(""),
            jvm_arguments: command.trim_end(),
            jvm_flags: "",
            java_arguments: &program,
            jvm_start_epoch_ms: epoch_ns().saturating_sub(uptime_ns) / 1_000_000,
            pid,
        });
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u32;
        self.writer.event(&Event::CpuInformation {
            ticks,
            cpu: "",
            description: "",
            sockets: 1,
            cores: processors,
            hardware_threads: processors,
        });
    }

    /// The stack of named frames.
    pub fn stack(&mut self, named: &[(Named, &Frame)], truncated: bool) -> StackId {
        let frames: Vec<FrameRef> = named
            .iter()
            .map(|(named, frame)| FrameRef {
                method: self.method(named, frame),
                line: match named {
                    Named::Java { line, .. } => {
                        line.and_then(|line| i32::try_from(line).ok()).unwrap_or(-1)
                    }
                    _ => -1,
                },
                bci: if frame.kind.is_managed() {
                    frame.bci
                } else {
                    -1
                },
                kind: kind_of(frame.kind, named),
            })
            .collect();
        self.writer.stack(&frames, truncated)
    }

    fn method(&mut self, named: &Named, frame: &Frame) -> MethodId {
        let (key, modifiers): (Key, u16) = match named {
            Named::Java { method, .. } => {
                let texts = (&method.class, &method.name, &method.descriptor);
                const ACC_NATIVE: u16 = 0x0100;
                let modifiers = if method.is_native { ACC_NATIVE } else { 0 };
                (
                    (texts.0.clone(), texts.1.clone(), texts.2.clone()),
                    modifiers,
                )
            }
            Named::Native {
                library, function, ..
            } => {
                let name = function
                    .clone()
                    .unwrap_or_else(|| format!("{:#x}", frame.id));
                ((library.clone(), name, String::new()), 0)
            }
            Named::Stub(name) => (("[stub]".to_owned(), name.clone(), String::new()), 0),
            Named::Missing(why) => (("[failed]".to_owned(), (*why).to_owned(), String::new()), 0),
        };
        let origin = match named {
            Named::Java { method, .. } => method.origin.clone(),
            _ => None,
        };
        let key = (key, origin);
        if let Some(id) = self.methods.get(&key) {
            return *id;
        }
        let ((class, name, descriptor), origin) = &key;
        let info = MethodInfo {
            class,
            name,
            descriptor,
            modifiers,
            hidden: false,
            origin: origin.as_ref().map(|origin| Origin {
                module: &origin.module,
                location: &origin.location,
            }),
        };
        let id = self.writer.method(self.methods.len() as u64, &info);
        self.methods.insert(key, id);
        id
    }

    fn thread(&mut self, facts: Facts) -> ThreadId {
        if let Some((known, id)) = self.threads.get(&facts.tid)
            && *known == facts
        {
            return *id;
        }
        let info = ThreadInfo {
            os_name: &facts.os_name,
            os_tid: i64::from(facts.tid),
            java_name: facts.java_name.as_deref(),
            java_tid: i64::try_from(facts.java_id).unwrap_or(0),
            group: None,
            is_virtual: false,
        };
        let id = self.writer.update_thread(facts.tid as u64, &info);
        self.threads.insert(facts.tid, (facts, id));
        id
    }

    /// The thread for an event, and its carrier if it is a virtual one.
    fn logical(&mut self, facts: Facts, mounted: Option<Virtual>) -> (ThreadId, Option<ThreadId>) {
        let carrier = self.thread(facts);
        match mounted {
            Some(mounted) => (self.virtual_thread(mounted), Some(carrier)),
            None => (carrier, None),
        }
    }

    fn virtual_thread(&mut self, thread: Virtual) -> ThreadId {
        /// Kernel ids have 32 bits.
        const VIRTUAL_KEY: u64 = 1 << 63;
        if let Some(id) = self.virtual_threads.get(&thread) {
            return *id;
        }
        let info = ThreadInfo {
            os_name: "",
            os_tid: 0,
            java_name: Some(&thread.name),
            java_tid: i64::try_from(thread.id).unwrap_or(0),
            group: Some("VirtualThreads"),
            is_virtual: true,
        };
        let id = self.writer.update_thread(thread.id | VIRTUAL_KEY, &info);
        self.virtual_threads.insert(thread, id);
        id
    }

    /// Adds a sample of CPU time, with its time and weight in ns.
    pub fn sample(
        &mut self,
        (ticks, weight_ns): (u64, u64),
        (facts, mounted): (Facts, Option<Virtual>),
        named: &[(Named, &Frame)],
        failure: Option<Failure>,
    ) {
        let truncated = failure == Some(Failure::Truncated);
        let failure = failure.filter(|_| !truncated).map(Failure::name);
        if let Some(cause) = failure {
            let told = self.failures.entry(cause).or_default();
            (told.0, told.1) = (told.0 + 1, told.1 + weight_ns);
        }
        let stack = self.stack(named, truncated);
        let (thread, carrier) = self.logical(facts, mounted);
        self.writer.execution_sample(&Sample {
            ticks,
            thread,
            carrier,
            stack,
            state: ThreadState::Runnable,
            weight_ns,
            failure,
            context: None,
        });
    }

    /// Adds CPU time of a thread that no sample shows.
    pub fn without_stack(&mut self, facts: Facts, weight_ns: u64, why: Failure) {
        self.sample((now_ns(), weight_ns), (facts, None), &[], Some(why));
    }

    /// Adds wall-clock samples of a waiting thread: a platform thread, or a virtual one without a
    /// carrier.
    pub fn looks(&mut self, facts: Option<Facts>, looks: Looks<'_>) {
        self.wall_sums
            .add(looks.cause, looks.weight_ns, looks.count, looks.choices);
        let (thread, carrier) = match (facts, looks.logical) {
            (Some(facts), logical) => self.logical(facts, logical),
            (None, Some(logical)) => (self.virtual_thread(logical), None),
            (None, None) => return,
        };
        let owner = looks.owner.map(|owner| self.thread(owner));
        self.writer.wall_sample(&WallSample {
            ticks: looks.since_ns,
            duration_ticks: looks.until_ns.saturating_sub(looks.since_ns),
            thread,
            carrier,
            stack: looks.stack,
            cause: looks.cause,
            detail: looks.detail,
            weight_ns: looks.weight_ns,
            count: looks.count,
            choices: looks.choices,
            owner,
            owner_stack: looks.owner_stack,
            failure: looks.failure,
            context: None,
        });
    }

    /// Wall time of each cause so far, with its precision.
    pub fn wall_sums(&mut self, is_over: bool) {
        let ticks = now_ns();
        for (cause, sum, error_ns) in self.wall_sums.told(ticks, is_over) {
            self.writer.event(&Event::WallSum {
                ticks,
                cause,
                weight_ns: sum.weight_ns,
                error_ns,
                looks: sum.looks,
            });
        }
    }

    /// Adds an event.
    pub fn event(&mut self, event: &Event<'_>) {
        self.writer.event(event);
    }

    /// Processor time of all processes, and of this one.
    pub fn machine(&mut self, used: &Used) {
        self.writer.event(&Event::Machine {
            ticks: used.began_ns,
            duration_ticks: used.duration_ns,
            processors: used.sums.processors,
            busy_ns: used.sums.busy,
            own_ns: used.own_ns,
            idle_ns: used.sums.idle,
            stolen_ns: used.sums.stolen,
        });
    }

    /// Processor limit of the process.
    pub fn limit(&mut self, limit: &Limit) {
        self.writer.event(&Event::CpuLimit {
            ticks: now_ns(),
            quota_ns: limit.quota_ns,
            processors: limit.processors,
            periods: limit.since.periods,
            throttled: limit.since.throttled,
            throttled_ns: limit.since.throttled_ns,
        });
    }

    /// CPU time of the process, and lost samples.
    pub fn account(&mut self, cpu_ns: (u64, u64), lost: u64) {
        let ticks = now_ns();
        for (cause, (samples, weight_ns)) in std::mem::take(&mut self.failures) {
            self.writer.event(&Event::Failures {
                ticks,
                cause,
                samples,
                weight_ns,
            });
        }
        self.writer.event(&Event::CpuLoad {
            ticks,
            process_user_ns: cpu_ns.0,
            process_system_ns: cpu_ns.1,
        });
        if lost > 0 {
            self.writer.event(&Event::Lost {
                ticks,
                cause: "no_room_in_ring",
                samples: lost,
                // The threads' next samples stand for that time.
                weight_ns: 0,
            });
        }
    }

    /// The bytes to append.
    pub fn flush(&mut self) -> Vec<u8> {
        self.writer.flush(now_ns())
    }

    /// The bytes for the start of the chunk after that.
    #[must_use]
    pub fn header(&self) -> [u8; HEADER_BYTES] {
        self.writer.header()
    }

    /// Memory used, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.writer.memory_bytes()
    }
}

fn kind_of(kind: FrameKind, named: &Named) -> FileKind {
    match (kind, named) {
        (_, Named::Missing(_)) => FileKind::Failed,
        (FrameKind::Interpreted, _) => FileKind::Interpreted,
        (FrameKind::C1, _) => FileKind::C1,
        (FrameKind::C2, _) => FileKind::C2,
        (FrameKind::Ahead, _) => FileKind::Ahead,
        (FrameKind::Inlined, _) => FileKind::Inlined,
        (FrameKind::ManagedNative | FrameKind::Native, _) => FileKind::Native,
        (FrameKind::Vm, _) => FileKind::Vm,
        (FrameKind::Kernel, _) => FileKind::Kernel,
        (FrameKind::Stub, _) => FileKind::Stub,
        (FrameKind::Failed, _) => FileKind::Failed,
    }
}

fn clock() -> ChunkClock {
    ChunkClock {
        epoch_ns: epoch_ns(),
        start_ticks: now_ns(),
        ticks_per_second: 1_000_000_000,
    }
}

fn epoch_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

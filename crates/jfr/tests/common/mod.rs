//! Shared by the tests: recordings made with the writer, and the JDKs of this machine. No asserts
//! on the reader's behaviour here.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod hostile;
pub mod jdk;

use dwell_jfr::writer::{
    ChunkClock, ChunkWriter, Context, EXECUTION_SAMPLE_TYPE_ID, Event, FrameRef, MethodInfo,
    Origin, Sample, StackId, ThreadId, ThreadInfo,
};
use dwell_jfr::{FrameKind, ThreadState};

/// 2026-01-02T03:04:05.006Z.
pub const EPOCH_NS: u64 = 1_767_323_045_006_000_000;
pub const START_TICKS: u64 = 7_000_000_000;
/// CPU time per sample in [`Demo`].
pub const WEIGHT_NS: u64 = 10_000_000;

pub fn clock() -> ChunkClock {
    ChunkClock {
        epoch_ns: EPOCH_NS,
        start_ticks: START_TICKS,
        ticks_per_second: 1_000_000_000,
    }
}

/// The context of the first sample's thread.
pub const CONTEXT: Context<'static> = Context {
    trace_id: 0x0af7651916cd43dd8448eb211c80319c,
    span_id: 0xb7ad6b7169203331,
    local_root_span_id: 0x31,
    endpoint: "GET /users/{id}",
    labels: "tenant=acme",
};

/// A recording of a busy Java thread, a virtual thread and a native thread, with one event of each
/// other kind in every chunk.
pub struct Demo {
    writer: ChunkWriter,
    now: u64,
    threads: [ThreadId; 4],
    stacks: [StackId; 4],
}

impl Demo {
    pub fn new(clock: ChunkClock) -> Self {
        let mut writer = ChunkWriter::new(clock);
        let threads = threads(&mut writer);
        let stacks = stacks(&mut writer);
        let mut demo = Self {
            writer,
            now: clock.start_ticks,
            threads,
            stacks,
        };
        demo.profiler_events();
        demo.jdk_events();
        demo
    }

    /// Adds four samples: see [`Self::sample`].
    pub fn round(&mut self) {
        for place in 0..4 {
            self.sample(place);
        }
    }

    /// 0: Java, 1: virtual thread with its carrier, 2: native thread, 3: without a stack.
    pub fn sample(&mut self, place: usize) {
        self.now += 1_000_000;
        self.writer.execution_sample(&Sample {
            ticks: self.now,
            thread: self.threads[place],
            carrier: (place == 1).then_some(self.threads[3]),
            stack: self.stacks[place],
            state: if place == 2 {
                ThreadState::OffCpu
            } else {
                ThreadState::Runnable
            },
            weight_ns: WEIGHT_NS,
            failure: (place == 3).then_some("no frame pointer"),
            context: (place == 0).then_some(&CONTEXT),
        });
    }

    pub fn flush(&mut self) -> Vec<u8> {
        self.now += 1;
        self.writer.flush(self.now)
    }

    pub fn writer(&mut self) -> &mut ChunkWriter {
        &mut self.writer
    }

    pub fn now(&self) -> u64 {
        self.now
    }

    fn profiler_events(&mut self) {
        let ticks = self.now;
        let events = [
            Event::Recording {
                ticks,
                version: "0.1.0",
                pid: 4711,
                mode: "cpu,wall",
                engine: "perf",
                engine_reason: "perf_event_paranoid is 1",
                cpu_interval_ns: 10_000_000,
                wall_interval_ns: 20_000_000,
                options: "start,cpu=10ms,wall=20ms",
            },
            Event::Lost {
                ticks,
                cause: "buffer full",
                samples: 3,
                weight_ns: 30_000_000,
            },
            Event::Failures {
                ticks,
                cause: "unknown pc",
                samples: 2,
                weight_ns: 20_000_000,
            },
            Event::SelfCost {
                ticks,
                walks: 1000,
                samples: 998,
                dropped: 2,
                bytes: 123_456,
                agent_cpu_ns: 5_000_000,
                handlers: 1000,
                handler_cpu_ns: 1_000_000,
                callback_cpu_ns: 2_000_000,
                waited_ns: 0,
                collections_waited_ns: 0,
                walk_ns: 10_000_000,
                copies: 990,
                copied_bytes: 64_000,
                handler_p50_ns: 900,
                handler_p90_ns: 1_200,
                handler_p99_ns: 2_000,
                handler_max_ns: 31_000,
                memory_bytes: 9_000_000,
            },
            Event::Gap {
                ticks,
                duration_ticks: 1_500_000_000,
                cause: "disk full",
                lost_samples: 150,
                lost_weight_ns: 1_500_000_000,
            },
            Event::CpuLoad {
                ticks,
                process_user_ns: 990_000_000,
                process_system_ns: 10_000_000,
            },
        ];
        for event in &events {
            self.writer.event(event);
        }
    }

    fn jdk_events(&mut self) {
        let ticks = self.now;
        let events = [
            Event::JvmInformation {
                ticks,
                jvm_name: "OpenJDK 64-Bit Server VM",
                jvm_version: "25+36",
                jvm_arguments: "-Xmx1g -agentpath:libdwell.so=start",
                jvm_flags: "",
                java_arguments: "com.acme.Main --port 80",
                jvm_start_epoch_ms: EPOCH_NS / 1_000_000 - 1000,
                pid: 4711,
            },
            Event::OsInformation {
                ticks,
                os_version: "Linux 6.8",
            },
            Event::CpuInformation {
                ticks,
                cpu: "x86-64",
                description: "a model with Grüße",
                sockets: 1,
                cores: 4,
                hardware_threads: 8,
            },
            Event::ActiveSetting {
                ticks,
                event_id: EXECUTION_SAMPLE_TYPE_ID,
                name: "interval",
                value: "10 ms",
            },
        ];
        for event in &events {
            self.writer.event(event);
        }
    }
}

/// How many events other than samples a [`Demo`] has.
pub const DEMO_EVENTS: usize = 10;
/// How many detail events it has: for each thread the weights of its samples, and for one the
/// request that it works for. All rounds are alike.
pub const DEMO_DETAILS: usize = 5;

fn threads(writer: &mut ChunkWriter) -> [ThreadId; 4] {
    let java = ThreadInfo {
        os_name: "java",
        os_tid: 100,
        java_name: Some("main \"quoted\" ☕"),
        java_tid: 1,
        group: Some("main"),
        is_virtual: false,
    };
    let virtual_thread = ThreadInfo {
        os_tid: 0,
        os_name: "",
        java_name: Some(""),
        java_tid: 44,
        is_virtual: true,
        ..java
    };
    let native = ThreadInfo {
        os_name: "GC Thread#0",
        os_tid: 101,
        ..ThreadInfo::default()
    };
    let carrier = ThreadInfo {
        os_name: "ForkJoinPool-1",
        os_tid: 102,
        java_name: Some("ForkJoinPool-1-worker-1"),
        java_tid: 30,
        ..java
    };
    [
        writer.thread(100, &java),
        writer.thread(1 << 40, &virtual_thread),
        writer.thread(101, &native),
        writer.thread(102, &carrier),
    ]
}

/// Where the classes are from: a module, the class path, or not known.
pub fn origin(class: &str) -> Option<Origin<'static>> {
    let (module, location) = match class {
        "com/acme/Work" | "com.acme.Work" => ("acme.work", "file:///mods/work%201.jar"),
        "Main" => ("", "file:/app/main.jar"),
        _ => return None,
    };
    Some(Origin { module, location })
}

fn stacks(writer: &mut ChunkWriter) -> [StackId; 4] {
    let methods = [
        ("com/acme/Work", "inner", "(I[[JLjava/lang/String;)D"),
        ("com/acme/Main", "main", "([Ljava/lang/String;)V"),
        (
            "libjvm.so",
            "G1ParScanThreadState::trim_queue(unsigned)",
            "",
        ),
        ("[kernel]", "futex_wait_queue", ""),
        ("Main", "lambda$main$0", "()Ljava/lang/Object;"),
    ];
    let methods = methods.map(|(class, name, descriptor)| {
        let key = name.len() as u64 * 1000 + class.len() as u64;
        let info = MethodInfo {
            class,
            name,
            descriptor,
            modifiers: 9,
            hidden: false,
            origin: origin(class),
        };
        writer.method(key, &info)
    });
    let frame = |method: usize, line, bci, kind| FrameRef {
        method: methods[method],
        line,
        bci,
        kind,
    };
    let java = [
        frame(0, 42, 17, FrameKind::Inlined),
        frame(1, 7, 3, FrameKind::C2),
    ];
    let virtual_thread = [
        frame(4, 9, 1, FrameKind::Interpreted),
        frame(0, 43, 0, FrameKind::C1),
    ];
    let native = [
        frame(3, -1, -1, FrameKind::Kernel),
        frame(2, -1, -1, FrameKind::Vm),
    ];
    [
        writer.stack(&java, false),
        writer.stack(&virtual_thread, true),
        writer.stack(&native, false),
        StackId::NONE,
    ]
}

/// Appends a flush to the file the way the agent does: the bytes, then the header over the start.
pub fn append(file: &mut Vec<u8>, chunk_start: usize, writer: &mut ChunkWriter, now: u64) {
    let bytes = writer.flush(now);
    file.extend_from_slice(&bytes);
    file[chunk_start..chunk_start + 68].copy_from_slice(&writer.header());
}

/// A [`Demo`] of so many rounds, each flushed.
pub fn demo_file(rounds: usize) -> Vec<u8> {
    let mut demo = Demo::new(clock());
    let mut file = Vec::new();
    for _ in 0..rounds {
        demo.round();
        let now = demo.now();
        append(&mut file, 0, demo.writer(), now);
    }
    file
}

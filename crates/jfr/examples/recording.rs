//! Writes a large invented recording, without a JVM: for measuring what reads recordings.
//!
//! `cargo run --release -p dwell-jfr --example recording -- OUT.jfr [--samples N] [--frames N]
//! [--seconds N] [--looks PERCENT] [--plain]`
//!
//! The same file every time. `--frames` are the frames of the flame graph; chunks end where the
//! agent ends them. `--plain` gives samples with the fields of the JDK's alone, no looks.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::process::ExitCode;

use dwell_jfr::writer::{
    ChunkClock, ChunkWriter, Context, Event, FrameRef, HEADER_BYTES, MethodInfo, Sample, StackId,
    ThreadId, ThreadInfo, WallSample,
};
use dwell_jfr::{FrameKind, ThreadState};

const USAGE: &str = "usage: recording OUT.jfr [--samples N] [--frames N] [--seconds N] \
     [--looks PERCENT] [--plain]";
const EPOCH_NS: u64 = 1_790_000_000_000_000_000;
const THREADS: u64 = 64;
const METHODS: u64 = 20_000;
const DEPTH_MAX: usize = 120;
const ENDPOINTS: [&str; 4] = ["GET /", "GET /orders/{id}", "POST /orders", "GET /report"];
const CAUSES: [&str; 4] = ["park", "socket", "monitor", "idle-pool"];
/// One sample in so many is of a request, and a request has about so many samples.
const OF_REQUESTS: u64 = 8;
const REQUESTS: u64 = 20_000;
/// Where the agent ends a chunk.
const CHUNK_BYTES: u64 = 64 << 20;
const CHUNK_MEMORY: usize = 12 << 20;
/// Samples between two flushes.
const FLUSH: u64 = 5_000;

fn main() -> ExitCode {
    let result = Request::parse(std::env::args().skip(1)).and_then(|request| request.write());
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

struct Request {
    out: String,
    samples: u64,
    frames: usize,
    seconds: u64,
    looks: u64,
    is_plain: bool,
}

impl Request {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Request, String> {
        let mut request = Request {
            out: String::new(),
            samples: 100_000,
            frames: 20_000,
            seconds: 3600,
            looks: 50,
            is_plain: false,
        };
        while let Some(arg) = args.next() {
            let mut number = || -> Result<u64, String> {
                let text = args.next().unwrap_or_default();
                text.parse()
                    .map_err(|_| format!("{arg} needs a number, not {text:?}"))
            };
            match arg.as_str() {
                "--samples" => request.samples = number()?.max(1),
                "--frames" => request.frames = number()? as usize,
                "--seconds" => request.seconds = number()?.max(1),
                "--looks" => request.looks = number()?,
                "--plain" => request.is_plain = true,
                _ if arg.starts_with('-') => return Err(format!("unknown option {arg}")),
                _ => request.out = arg,
            }
        }
        match request.out.is_empty() {
            true => Err("no file named".to_owned()),
            false => Ok(request),
        }
    }

    fn write(&self) -> Result<(), String> {
        let file = File::create(&self.out).map_err(|error| format!("{}: {error}", self.out))?;
        let mut recorder = Recorder::new(BufWriter::new(file), self);
        recorder
            .all(self)
            .map_err(|error| format!("{}: {error}", self.out))
    }
}

/// A small generator with a fixed seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }
}

struct Recorder<W: Write + Seek> {
    out: W,
    random: Random,
    chunk: ChunkWriter,
    chunk_start: u64,
    /// When the chunk began.
    began: u64,
    length: u64,
    /// Stacks as methods, outermost first.
    stacks: Vec<Vec<u32>>,
    /// By stack, in this chunk.
    ids: Vec<StackId>,
    threads: Vec<ThreadId>,
}

fn clock(ticks: u64) -> ChunkClock {
    ChunkClock {
        epoch_ns: EPOCH_NS + ticks,
        start_ticks: ticks,
        ticks_per_second: 1_000_000_000,
    }
}

impl<W: Write + Seek> Recorder<W> {
    fn new(out: W, request: &Request) -> Self {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let stacks = stacks(&mut random, request.frames);
        let mut recorder = Recorder {
            out,
            random,
            chunk: match request.is_plain {
                true => ChunkWriter::plain(clock(0)),
                false => ChunkWriter::new(clock(0)),
            },
            chunk_start: 0,
            began: 0,
            length: 0,
            ids: Vec::new(),
            stacks,
            threads: Vec::new(),
        };
        recorder.begin();
        recorder
    }

    fn all(&mut self, request: &Request) -> std::io::Result<()> {
        let step = request.seconds * 1_000_000_000 / request.samples;
        for number in 0..request.samples {
            let ticks = number * step + self.random.below(step.max(1));
            self.sample(ticks, number, request);
            if number % FLUSH == FLUSH - 1 {
                self.flush(ticks)?;
                let is_full =
                    self.chunk.len() >= CHUNK_BYTES || self.chunk.memory_bytes() >= CHUNK_MEMORY;
                if is_full {
                    self.chunk = self.chunk.following(clock(ticks));
                    self.chunk_start = self.length;
                    self.began = ticks;
                    self.begin();
                }
            }
        }
        self.flush(request.seconds * 1_000_000_000)?;
        self.out.flush()
    }

    /// Writes the events at the beginning of every chunk.
    fn begin(&mut self) {
        self.ids = vec![StackId::NONE; self.stacks.len()];
        let ticks = self.began;
        self.chunk.event(&Event::Recording {
            ticks,
            version: "0.1.0",
            pid: 4711,
            mode: "cpu,wall",
            engine: "perf",
            engine_reason: "perf_event_open is allowed",
            cpu_interval_ns: 10_000_000,
            wall_interval_ns: 20_000_000,
            options: "start",
        });
        let threads = (0..THREADS).map(|number| {
            let name = format!("http-exec-{number}");
            let info = ThreadInfo {
                os_name: &name,
                os_tid: 5000 + number as i64,
                java_tid: 30 + number as i64,
                java_name: Some(&name),
                group: Some("main"),
                is_virtual: false,
            };
            self.chunk.thread(number + 1, &info)
        });
        self.threads = threads.collect();
    }

    fn sample(&mut self, ticks: u64, number: u64, request: &Request) {
        // Few stacks have most samples, as in every program.
        let stacks = self.stacks.len() as u64;
        let limit = (0..3).fold(stacks, |limit, _| 1 + self.random.below(limit));
        let stack = self.stack(self.random.0 % limit);
        let pick = self.random.below(THREADS) as usize;
        let thread = self.threads.get(pick).copied().unwrap_or_default();
        let root = 1 + number * REQUESTS / request.samples;
        let context = Context {
            trace_id: u128::from(root) << 64 | 7,
            span_id: root,
            local_root_span_id: root,
            endpoint: endpoint(root),
            labels: "",
        };
        let context = (self.random.below(OF_REQUESTS) == 0).then_some(&context);
        if number > 0 && root != 1 + (number - 1) * REQUESTS / request.samples {
            self.request(ticks, root - 1);
        }
        if request.is_plain || self.random.below(100) >= request.looks {
            self.chunk.execution_sample(&Sample {
                ticks,
                thread,
                stack,
                weight_ns: 9_000_000 + self.random.below(2_000_000),
                state: ThreadState::Runnable,
                context,
                ..Sample::default()
            });
            return;
        }
        let count = 1 + self.random.below(5);
        self.chunk.wall_sample(&WallSample {
            ticks,
            duration_ticks: (count - 1) * 20_000_000,
            thread,
            stack,
            cause: CAUSES
                .get(self.random.below(CAUSES.len() as u64) as usize)
                .unwrap_or(&"park"),
            weight_ns: count * 20_000_000 + self.random.below(1_000_000),
            count,
            context,
            ..WallSample::default()
        });
    }

    /// The end of a request, and now and then a collection.
    fn request(&mut self, ticks: u64, root: u64) {
        let duration_ticks = 1_000_000 + self.random.below(30_000_000);
        let begin = ticks.saturating_sub(duration_ticks).max(self.began);
        self.chunk.event(&Event::Request {
            ticks: begin,
            duration_ticks: ticks - begin,
            trace_id: &format!("{:032x}", u128::from(root) << 64 | 7),
            local_root_span_id: &format!("{root:016x}"),
            endpoint: endpoint(root),
            count: 1,
        });
        if root.is_multiple_of(50) {
            self.chunk.event(&Event::GcPause {
                ticks: begin,
                duration_ticks: duration_ticks / 4,
            });
        }
    }

    /// The id of a stack in this chunk.
    fn stack(&mut self, place: u64) -> StackId {
        let place = place as usize;
        if self.ids[place] != StackId::NONE {
            return self.ids[place];
        }
        let frames: Vec<FrameRef> = (self.stacks[place].iter().rev())
            .map(|&method| frame(&mut self.chunk, method))
            .collect();
        self.ids[place] = self.chunk.stack(&frames, false);
        self.ids[place]
    }

    fn flush(&mut self, ticks: u64) -> std::io::Result<()> {
        let bytes = self.chunk.flush(ticks);
        self.out.write_all(&bytes)?;
        self.length += bytes.len() as u64;
        if self.chunk.len() > bytes.len() as u64 {
            let header: [u8; HEADER_BYTES] = self.chunk.header();
            self.out.seek(SeekFrom::Start(self.chunk_start))?;
            self.out.write_all(&header)?;
            self.out.seek(SeekFrom::Start(self.length))?;
        }
        Ok(())
    }
}

fn endpoint(root: u64) -> &'static str {
    let place = root as usize % ENDPOINTS.len();
    ENDPOINTS.get(place).copied().unwrap_or_default()
}

fn frame(chunk: &mut ChunkWriter, method: u32) -> FrameRef {
    let key = u64::from(method) + 1;
    let kind = [
        FrameKind::C2,
        FrameKind::Inlined,
        FrameKind::C1,
        FrameKind::Interpreted,
    ][method as usize % 4];
    let method = match chunk.method_id(key) {
        Some(method) => method,
        None => chunk.method(
            key,
            &MethodInfo {
                class: &format!("com/example/shop/p{}/Service{}", key % 40, key / 8),
                name: &format!("handle{key}"),
                descriptor: "(Ljava/lang/String;I)V",
                modifiers: 1,
                hidden: false,
                origin: None,
            },
        ),
    };
    FrameRef {
        method,
        line: key as i32 % 2000,
        bci: 3,
        kind,
    }
}

/// Random stacks until their tree has so many nodes: popular callees are much more frequent.
fn stacks(random: &mut Random, frames: usize) -> Vec<Vec<u32>> {
    let mut all = Vec::new();
    let mut stack: Vec<u32> = Vec::new();
    let mut nodes = 0;
    while nodes < frames || all.is_empty() {
        // Keep a random part of the last stack, so that stacks share their outer frames.
        let kept = random.below(stack.len() as u64 + 1) as usize;
        stack.truncate(kept);
        for _ in 0..1 + random.below(30) {
            if stack.len() < DEPTH_MAX {
                let skew = random.below(METHODS) * random.below(METHODS) / METHODS;
                stack.push(skew as u32);
            }
        }
        nodes += stack.len() - kept;
        all.push(stack.clone());
    }
    all
}

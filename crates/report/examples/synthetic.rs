//! Writes a page from an invented profile, without a JVM: for the viewer's tests and for looking.
//!
//! `cargo run -p dwell-report --example synthetic -- OUT.html [--frames N] [--depth N]
//! [--samples N] [--hostile] [--against N]`

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use dwell_profile::diff::Per;
use dwell_profile::told::GcPause;
use dwell_profile::{
    Builder, Compilation, Compilers, Context, ContextId, CpuLimit, CpuUse, FrameId, FrameKind, Gap,
    Late, Look, Loss, Machine, MonitorOwner, MonitorWait, NodeId, Profile, Safepoint, Sample,
    SelfCost, Stretch, ThreadId, Throttled, Unread,
};
use dwell_report::{Finding, Options, compare_html, html};

const USAGE: &str = "usage: synthetic OUT.html [--frames N] [--depth N] [--samples N] \
     [--hostile] [--against N]";
const THREADS: u64 = 24;
const START_NS: u64 = 1_790_000_000_000_000_000;

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
    frames: usize,
    depth: usize,
    samples: u64,
    hostile: bool,
    /// Number of frames of a second profile to compare with; 0: no comparison.
    against: usize,
}

impl Request {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Request, String> {
        let mut request = Request {
            out: String::new(),
            frames: 2_000,
            depth: 0,
            samples: 0,
            hostile: false,
            against: 0,
        };
        while let Some(arg) = args.next() {
            let mut number = || -> Result<usize, String> {
                let text = args.next().unwrap_or_default();
                text.parse()
                    .map_err(|_| format!("{arg} needs a number, not {text:?}"))
            };
            match arg.as_str() {
                "--frames" => request.frames = number()?,
                "--depth" => request.depth = number()?,
                "--samples" => request.samples = number()? as u64,
                "--against" => request.against = number()?,
                "--hostile" => request.hostile = true,
                _ if arg.starts_with('-') => return Err(format!("unknown option {arg}")),
                _ => request.out = arg,
            }
        }
        if request.out.is_empty() {
            return Err("no file named".to_owned());
        }
        Ok(request)
    }

    fn write(&self) -> Result<(), String> {
        let named = |error: std::io::Error| format!("{}: {error}", self.out);
        let mut out = BufWriter::new(File::create(&self.out).map_err(named)?);
        let options = Options {
            title: "synthetic.jfr".to_owned(),
            findings: vec![self.finding()],
            // The page is a test of drawing in browsers.
            all_frames: true,
        };
        match self.against {
            0 => html(&self.profile(), &options, &mut out),
            frames => self.compare(frames, &mut out),
        }
        .map_err(named)?;
        out.flush().map_err(named)
    }

    /// The page that compares this profile with one of this number of frames.
    fn compare(&self, frames: usize, out: &mut impl Write) -> std::io::Result<()> {
        let before = Request {
            out: String::new(),
            frames,
            ..*self
        };
        let names = match self.hostile {
            true => [
                "<img src=x onerror=\"window.hacked=5\">",
                "b\u{202e}lmth.jfr",
            ],
            false => ["before.jfr", "after.jfr"],
        };
        compare_html(&before.profile(), &self.profile(), Per::Second, names, out)
    }

    fn finding(&self) -> Finding {
        let name = match self.hostile {
            true => "<img src=x onerror=\"window.hacked=4\">",
            false => "the lock of com.example.shop.Stock",
        };
        Finding {
            what: format!("Orders wait for {name}"),
            share: "20 % of wall time".to_owned(),
            evidence: format!("40 samples of threads that wait for {name}"),
            remedy: "reserve outside of the lock".to_owned(),
            sure: "high".to_owned(),
            measure: "wall".to_owned(),
            causes: vec!["monitor".to_owned()],
            endpoint: Some("POST /orders".to_owned()),
            threads: None,
            focus: Some(("lock".to_owned(), "com.example.shop.Stock".to_owned())),
            cost: "4.00 s".to_owned(),
            bar: Some(1.0),
        }
    }

    fn profile(&self) -> Profile {
        let mut maker = Maker::new();
        maker.describe();
        maker.work(self.frames);
        for endpoint in ["GET /orders/{id}", "POST /orders"] {
            maker.requests(endpoint, "com.example.shop.Stock");
        }
        maker.stops();
        maker.runtime();
        if self.depth > 0 {
            maker.deep(self.depth);
        }
        if self.samples > 0 {
            maker.many(self.samples);
        }
        if self.hostile {
            maker.hostile();
        }
        maker.builder.finish()
    }
}

/// A small generator with a fixed seed (xorshift): the same profile every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }
}

struct Maker {
    builder: Builder,
    random: Random,
    threads: Vec<ThreadId>,
    time_ns: u64,
    nodes: usize,
    /// Ends of stacks so far.
    ends: Vec<NodeId>,
    /// Requests so far.
    roots: u64,
}

impl Maker {
    fn new() -> Self {
        let mut builder = Builder::default();
        let mut threads = Vec::new();
        for number in 0..THREADS as i64 {
            let (name, java) = match number {
                0 => ("main".to_owned(), 1),
                1 => ("C2 CompilerThread0".to_owned(), 20),
                2 | 3 => (format!("GC Thread#{}", number - 2), 0),
                _ => (format!("http-exec-{}", number - 3), 30 + number),
            };
            threads.push(builder.thread(&name, 1000 + number, java, number > 20));
        }
        Maker {
            builder,
            random: Random(0x9e37_79b9_7f4a_7c15),
            threads,
            time_ns: 0,
            nodes: 1,
            ends: Vec::new(),
            roots: 0,
        }
    }

    fn describe(&mut self) {
        let info = &mut self.builder.info;
        info.start_ns = START_NS;
        info.duration_ns = 30_000_000_000;
        info.pid = 4711;
        info.profiler_version = "0.1.0".to_owned();
        info.engine = "perf".to_owned();
        info.engine_reason = "perf_event_open is allowed".to_owned();
        info.interval_ns = 10_000_000;
        info.jvm_name = "OpenJDK 64-Bit Server VM".to_owned();
        info.jvm_version = "25.0.1+8".to_owned();
        info.java_arguments = "com.example.shop.Main --port 8080".to_owned();
        info.sample_event = "jdk.ExecutionSample".to_owned();
        self.builder.host.jvm_arguments = "-Xmx2g -XX:+UseG1GC -Dsecret=1".to_owned();
        self.builder.host.hardware_threads = 8;
        self.builder.cpu_limit = Some(CpuLimit {
            processors: 2,
            periods: 300,
            ..CpuLimit::default()
        });
        self.builder.machine = vec![Machine {
            duration_ns: 30_000_000_000,
            processors: 2,
            busy_ns: 48_000_000_000,
            own_ns: 33_000_000_000,
            idle_ns: 12_000_000_000,
            ..Machine::default()
        }];
        self.builder.losses = vec![Loss {
            cause: "ring full".to_owned(),
            samples: 12,
            weight_ns: 120_000_000,
        }];
        self.builder.gaps = vec![Gap {
            time_ns: 1_790_000_005_000_000_000,
            duration_ns: 40_000_000,
            cause: "process stopped".to_owned(),
            samples: 4,
            weight_ns: 40_000_000,
        }];
        self.builder.self_cost = Some(SelfCost {
            span_ns: self.builder.info.duration_ns,
            samples: 3000,
            walks: 2900,
            dropped: 12,
            bytes: 900_000,
            agent_cpu_ns: 210_000_000,
            handlers: 3000,
            handler_cpu_ns: 5_000_000,
            waited_ns: 0,
            collections_waited_ns: 0,
            walk_ns: 40_000_000,
            copies: 2900,
            copied_bytes: 12_000_000,
            handler_p50_ns: 1_300,
            handler_p90_ns: 1_900,
            handler_p99_ns: 3_000,
            handler_max_ns: 41_000,
            memory_bytes: 22_000_000,
        });
        self.builder.cpu_use = Some(CpuUse {
            since_ns: 0,
            user_ns: 29_000_000_000,
            system_ns: 2_000_000_000,
        });
    }

    /// Random stacks until the tree has `frames` nodes: popular callees are much more frequent.
    fn work(&mut self, frames: usize) {
        let mut stack: Vec<u64> = Vec::new();
        while self.nodes < frames {
            // Keep a random part of the last stack, so that stacks share their outer frames.
            let kept = self.random.below(stack.len() as u64 + 1) as usize;
            stack.truncate(kept);
            let more = 1 + self.random.below(30);
            for _ in 0..more {
                if stack.len() < 120 {
                    let skew = self.random.below(40) * self.random.below(40);
                    stack.push(skew + 1);
                }
            }
            let leaf = self.random.below(12);
            self.sample(&stack, leaf);
            self.nodes += stack.len() - kept + 1;
        }
    }

    fn sample(&mut self, stack: &[u64], leaf: u64) {
        let pick = self.random.below(THREADS) as usize;
        let mut frames = vec![self.java("java.lang.Thread", "run", 1583, FrameKind::Interpreted)];
        for (depth, &number) in stack.iter().enumerate() {
            let class = format!("com.example.shop.p{}.Service{}", number % 7, number / 4);
            let kind = [
                FrameKind::C2,
                FrameKind::Inlined,
                FrameKind::C1,
                FrameKind::Interpreted,
            ][(number as usize + depth) % 4];
            frames.push(self.java(&class, &format!("handle{number}"), number as u32, kind));
        }
        match leaf {
            0 => frames.push(self.java("java.util.HashMap", "getNode", 577, FrameKind::Inlined)),
            1 => frames.push(self.java("[kernel]", "do_syscall_64", 0, FrameKind::Kernel)),
            2 => frames.push(self.java("libc.so.6", "__memmove_avx", 0, FrameKind::Native)),
            3 => frames.push(self.java("libjvm.so", "Symbol::as_C_string", 0, FrameKind::Vm)),
            4 => frames.push(self.java("", "vtable stub", 0, FrameKind::Stub)),
            _ => {}
        }
        let failed = self.random.below(200) == 0;
        if failed {
            let marker = self.builder.marker("[no unwind row]", FrameKind::Failed);
            frames.insert(0, marker);
        }
        self.add(&frames, pick, failed.then_some("no unwind row"));
    }

    fn java(&mut self, class: &str, name: &str, line: u32, kind: FrameKind) -> FrameId {
        let method = self.builder.method(class, name, "()V");
        self.builder.frame(method, line, kind)
    }

    fn add(&mut self, frames: &[FrameId], thread: usize, failure: Option<&str>) {
        let node = self.builder.stack(frames.iter().copied());
        self.ends.push(node);
        let failure = failure.map(|cause| self.builder.cause(cause));
        let weight = 9_000_000 + self.random.below(2_000_000);
        self.time_ns += self.random.below(2_000_000);
        let time_ns = START_NS + self.time_ns;
        let thread = self.threads.get(thread).copied().unwrap_or(0);
        self.builder.sample(Sample {
            time_ns,
            thread,
            node,
            weight,
            count: 1,
            failure,
            context: None,
        });
    }

    /// Requests of an endpoint with the waits of their threads; lock waits are for one class.
    fn requests(&mut self, endpoint: &str, lock: &str) {
        let name = self.builder.name(endpoint);
        let frame = self.java("com.example.shop.Orders", "find", 40, FrameKind::C2);
        let node = self.builder.stack([frame]);
        let frame = self.java("com.example.shop.Stock", "reserve", 17, FrameKind::C2);
        let reserve = self.builder.stack([frame]);
        let causes = ["socket", "monitor", "idle-pool", "runnable", "park"];
        for (number, cause) in causes.iter().cycle().take(200).enumerate() {
            self.roots += 1;
            let request = dwell_profile::Request {
                time_ns: START_NS + self.random.below(29_000_000_000),
                duration_ns: 1_000_000 + self.random.below(30_000_000),
                trace_id: u128::from(self.roots) << 64 | 7,
                local_root_span_id: self.roots,
                endpoint: Some(name),
                count: 3,
            };
            let context = self.builder.context(Context {
                trace_id: request.trace_id,
                local_root_span_id: request.local_root_span_id,
                endpoint: request.endpoint,
                ..Context::default()
            });
            let is_lock = *cause == "monitor";
            let detail = self.builder.name(&format!("{lock}@7f{:02x}", number % 3));
            let [thread, owner] = [(); 2].map(|()| {
                let pick = 5 + self.random.below(THREADS - 5) as usize;
                self.threads.get(pick).copied().unwrap_or(0)
            });
            let cause = self.builder.cause(cause);
            self.builder.look(Look {
                time_ns: request.time_ns,
                duration_ns: request.duration_ns,
                thread,
                node,
                cause,
                weight_ns: request.duration_ns,
                count: 2,
                choices: 0,
                context: Some(context).filter(|_| number % 5 != 2),
                detail: is_lock.then_some(detail),
                owner: is_lock.then_some(owner),
                owner_node: is_lock.then_some(reserve),
            });
            if is_lock {
                let context = Some(context).filter(|_| number % 5 != 2);
                self.wait(&request, [(node, thread), (reserve, owner)], lock, context);
            }
            if number % 4 == 0 {
                self.inner_span(&request, node, thread);
            }
            self.builder.requests.push(request);
        }
    }

    /// A wait for a monitor as long as the request, by events.
    fn wait(
        &mut self,
        request: &dwell_profile::Request,
        [(node, thread), (owner_node, owner)]: [(NodeId, ThreadId); 2],
        lock: &str,
        context: Option<ContextId>,
    ) {
        let frame = self.builder.marker(lock, FrameKind::Other);
        let (waiter_node, node) = (node, self.builder.child(node, frame));
        let class = self.builder.name(lock);
        let wait = MonitorWait {
            time_ns: request.time_ns,
            duration_ns: request.duration_ns,
            weight_ns: request.duration_ns,
            thread,
            node,
            class,
            context,
            owner: Some(owner),
        };
        let sums = self.builder.monitor_sums.get_or_insert_default();
        sums.interval_ns = 1_000_000;
        sums.waits += 1;
        sums.blocked_ns += wait.weight_ns;
        self.builder.monitor_waits.push(wait);
        // Every other wait has checked its owner. For one in ten of these, the owner is unknown.
        if sums.waits.is_multiple_of(2) {
            let is_known = !sums.waits.is_multiple_of(20);
            self.builder.monitor_owners.push(MonitorOwner {
                time_ns: wait.time_ns,
                duration_ns: wait.duration_ns,
                weight_ns: 2 * wait.weight_ns,
                class,
                owner: Some(owner),
                node: is_known.then_some(owner_node),
                failure: None,
                waiter: Some(thread),
                waiter_node,
            });
        }
    }

    /// A span inside of a request: its last third, on another thread.
    fn inner_span(&mut self, request: &dwell_profile::Request, node: NodeId, thread: ThreadId) {
        let context = self.builder.context(Context {
            trace_id: request.trace_id,
            span_id: request.local_root_span_id + 0xabc0_0000_0000,
            local_root_span_id: request.local_root_span_id,
            endpoint: request.endpoint,
            ..Context::default()
        });
        let cause = self.builder.cause("file");
        let third = request.duration_ns / 3;
        self.builder.look(Look {
            time_ns: request.time_ns + 2 * third,
            duration_ns: third / 2,
            thread: thread + 1,
            node,
            cause,
            weight_ns: third / 2,
            count: 2,
            choices: 0,
            context: Some(context),
            detail: None,
            owner: None,
            owner_node: None,
        });
    }

    /// Methods that were compiled, and times in which the control group held the process back.
    fn runtime(&mut self) {
        let method = self.builder.name("com.example.shop.Stock.reserve");
        for second in 0..8 {
            self.builder.compilers.push(Compilers {
                time_ns: START_NS + second * 1_000_000_000,
                duration_ns: 1_000_000_000,
                compilations: 400 >> second,
                compiling_ns: 600_000_000 >> second,
                wasted: second % 2,
            });
        }
        for number in 0..40 {
            self.builder.compilations.push(Compilation {
                time_ns: START_NS + number * 200_000_000,
                duration_ns: 5_000_000 + self.random.below(90_000_000),
                method,
                level: 3 + number % 2,
            });
        }
        for second in 10..14 {
            self.builder.throttled.push(Throttled {
                time_ns: START_NS + second * 1_000_000_000,
                duration_ns: 1_000_000_000,
                periods: 10,
                throttled: second - 8,
                throttled_ns: 80_000_000 * (second - 8),
            });
        }
    }

    /// Collections, their safepoints, and a thread that comes late for every third of them.
    fn stops(&mut self) {
        let operation = self.builder.name("G1CollectForAllocation");
        let state = self.builder.name("running");
        let frame = self.java("com.example.shop.Report", "copy", 5, FrameKind::C2);
        let node = self.builder.stack([frame]);
        let late = self.threads.get(5).copied().unwrap_or(0);
        for number in 0..60 {
            let time_ns = START_NS + number * 500_000_000;
            let is_late = number % 3 == 0;
            let reaching_ns = if is_late { 3_000_000 } else { 50_000 };
            let pause = Stretch::new(time_ns + reaching_ns, 2_000_000);
            self.builder.stretches.add::<GcPause>(pause);
            self.builder.safepoints.push(Safepoint {
                time_ns,
                id: number + 1,
                operation,
                reaching_ns,
                operation_ns: 2_000_000,
                threads: THREADS,
                running: 3,
                count: 1,
                is_known: true,
            });
            if is_late {
                self.builder.late.push(Late {
                    time_ns,
                    duration_ns: reaching_ns,
                    safepoint: number + 1,
                    operation,
                    thread: late,
                    node: Some(node),
                    state,
                    held_ns: reaching_ns,
                    is_last: true,
                });
            }
        }
    }

    /// Samples and looks, half and half, of the stacks that there are, over an hour; few stacks
    /// have most of them, as in every program.
    fn many(&mut self, samples: u64) {
        let hour_ns = 3_600_000_000_000;
        self.builder.info.duration_ns = hour_ns;
        let causes = ["socket", "park", "monitor"].map(|cause| self.builder.cause(cause));
        for number in 0..samples {
            let time_ns = START_NS + number * (hour_ns / samples) + self.random.below(300_000);
            let thread = self.random.below(self.threads.len() as u64) as usize;
            let thread = self.threads.get(thread).copied().unwrap_or(0);
            let ends = self.ends.len() as u64;
            let limit = (0..3).fold(ends, |limit, _| 1 + self.random.below(limit));
            let place = self.random.below(limit) as usize;
            let node = self.ends.get(place).copied().unwrap_or(0);
            if number % 2 == 0 {
                self.builder.sample(Sample {
                    time_ns,
                    thread,
                    node,
                    weight: 10_000_000 * (1 + self.random.below(2)),
                    count: 1,
                    failure: None,
                    context: None,
                });
                continue;
            }
            let count = 1 + self.random.below(5);
            let cause = self.random.below(3) as usize;
            self.builder.look(Look {
                time_ns,
                duration_ns: (count - 1) * 20_000_000,
                thread,
                node,
                cause: causes.get(cause).copied().unwrap_or(0),
                weight_ns: count * 20_000_000 + self.random.below(1_000_000),
                count,
                choices: 0,
                context: None,
                detail: None,
                owner: None,
                owner_node: None,
            });
        }
    }

    /// One recursion of `depth` levels with a leaf at every hundredth.
    fn deep(&mut self, depth: usize) {
        let frame = self.java("com.example.Deep", "recurse", 7, FrameKind::C2);
        let leaf = self.java("com.example.Deep", "leaf", 8, FrameKind::Inlined);
        for levels in (100..=depth).step_by(100).chain([depth]) {
            let mut frames = vec![frame; levels];
            frames.push(leaf);
            self.add(&frames, 0, None);
        }
    }

    /// Names that try everything.
    fn hostile(&mut self) {
        let long = "Long".repeat(2_500);
        let names = [
            "</script><script>window.hacked=1;alert(1)</script>",
            "<img src=x onerror=\"window.hacked=2;alert(2)\">",
            "\"'><svg onload=alert(3)>",
            "<!--dwell:data--><!-- <script>",
            "&lt;b&gt;&amp;",
            "\u{202e}desrever\u{2066}",
            "nul\0and\u{1b}[31mescape\u{7f}",
            "line\nbreak\r\u{2028}x",
            "__proto__",
            "constructor",
            "${window.hacked=3}{{7*7}}",
            "",
            "emoji \u{1f525}\u{1f468}\u{200d}\u{1f4bb}",
            &long,
        ];
        for name in names {
            let thread = self.builder.thread(name, 5, 5, false);
            self.threads.push(thread);
            let frames = [
                self.java("hostile.Names", "all", 1, FrameKind::C2),
                self.java(name, name, 2, FrameKind::C1),
                self.java("x", name, 3, FrameKind::Inlined),
            ];
            for _ in 0..20 {
                self.add(&frames, self.threads.len() - 1, Some(name));
            }
            self.requests(name, name);
        }
        self.builder.info.java_arguments = names.join(" ");
        self.builder.unread = Some(Unread {
            chunks: 1,
            bytes: 321,
            absent: 12_345,
            is_at_end: true,
        });
        self.builder
            .warnings
            .extend(names.iter().take(4).map(|name| (*name).to_owned()));
    }
}

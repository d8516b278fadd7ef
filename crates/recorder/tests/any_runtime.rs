//! A recording of a test runtime: a recorder needs only the boundary.

mod mock;

use dwell_jfr::FrameKind;
use dwell_jfr::reader::{Recording, Sample, SampleKind};
use dwell_recorder::options::{EngineChoice, parse};
use dwell_recorder::recorder::Recorder;
use dwell_recorder::source::Source;
use dwell_recorder::sys::process;
use mock::{Agent, Mock, begin_thread};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

/// CPU time that the busy thread uses while it is recorded.
const BUSY: Duration = Duration::from_millis(1000);

/// The kernel corrects the clock since the epoch by no more than 500 us a second, and a file has
/// its time once a chunk. This is the correction in 100 seconds, which is longer than the test
/// takes, also on a busy machine.
const SLEWED_NS: u64 = 50_000_000;

/// The parts of a recording that the test checks.
struct View(Recording);

impl View {
    fn samples(&self, thread: &str, kind: SampleKind) -> impl Iterator<Item = &Sample> {
        let is_it = move |sample: &&Sample| {
            let of = self.0.thread(sample).unwrap();
            sample.kind == kind && of.java_name.as_deref() == Some(thread)
        };
        self.0.samples.iter().filter(is_it)
    }

    /// Class, method and line of a sample's leaf: the innermost frame of the program, because
    /// clocks are read in the kernel.
    fn leaf(&self, sample: &Sample) -> String {
        let stack = self.0.stack(sample).unwrap();
        let frame = stack
            .frames
            .iter()
            .find(|frame| frame.kind != FrameKind::Kernel)
            .unwrap_or_else(|| panic!("{:?} {sample:?}", self.0.failure(sample)));
        let method = self.0.method(frame).unwrap();
        format!("{}.{}:{}", method.class, method.name, frame.line)
    }
}

/// CPU time of the working thread, and when it was read, in ns since the epoch.
struct Worked {
    used: Duration,
    when: RangeInclusive<u64>,
}

/// One thread that works, one that owns a lock, and one that waits for it.
fn run(agent: &'static Agent, begun: &Arc<Barrier>) -> Worked {
    let lock = Arc::new(Mutex::new(()));
    let over = Arc::new(AtomicBool::new(false));
    let holding = Arc::new(Barrier::new(2));
    let holder = {
        let (lock, over, begun) = (Arc::clone(&lock), Arc::clone(&over), Arc::clone(begun));
        let holding = Arc::clone(&holding);
        std::thread::spawn(move || {
            begin_thread(agent, "holder", 3, 3);
            let _held = lock.lock().unwrap();
            holding.wait();
            begun.wait();
            while !over.load(Ordering::SeqCst) {
                std::thread::park_timeout(Duration::from_secs(60));
            }
        })
    };
    holding.wait();
    let waiter = {
        let (lock, begun) = (Arc::clone(&lock), Arc::clone(begun));
        std::thread::spawn(move || {
            begin_thread(agent, "waiter", 2, 2);
            begun.wait();
            // By then the holder owns the lock.
            std::thread::sleep(Duration::from_millis(50));
            drop(lock.lock().unwrap());
        })
    };
    let busy = {
        let begun = Arc::clone(begun);
        std::thread::spawn(move || {
            let began_ns = process::epoch_ns();
            begin_thread(agent, "busy", 1, 1);
            begun.wait();
            while process::own_cpu() < BUSY {
                std::hint::spin_loop();
            }
            agent.own_thread_ends();
            Worked {
                used: process::own_cpu(),
                when: began_ns..=process::epoch_ns(),
            }
        })
    };
    let worked = busy.join().unwrap();
    over.store(true, Ordering::SeqCst);
    holder.thread().unpark();
    holder.join().unwrap();
    waiter.join().unwrap();
    worked
}

fn read(file: &str) -> View {
    View(dwell_jfr::reader::parse(&std::fs::read(file).unwrap()).unwrap())
}

#[test]
fn any_runtime_is_recorded_through_the_boundary() {
    let dir = std::env::temp_dir().join(format!("dwell-mock-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("mock.jfr").display().to_string();
    let source = Source::start(EngineChoice::Timer).unwrap();
    let agent: &'static Agent = Box::leak(Box::new(Recorder::new(Mock::default(), source)));
    assert!(agent.stop(|| ()).unwrap_err().contains("this mock"));
    let text = format!("start,cpu=1ms,wall=5ms,wall-budget=50%,engine=timer,file={file}");
    let options = parse(&text).unwrap();
    for untold in ["alloc=512k", "lock=1ms"] {
        let asked = parse(untold).unwrap();
        let refused = agent.start(&asked, untold, || ()).unwrap_err();
        let (option, _) = untold.split_once('=').unwrap();
        assert!(
            refused.starts_with(option) && refused.contains("leave it out"),
            "{refused}"
        );
    }
    let status = agent.start(&options, &text, || agent.find_threads());
    assert!(status.unwrap().contains("state=running"));
    assert!(
        agent.start(&options, &text, || ()).is_err(),
        "one at a time"
    );

    let Worked { used, when } = run(agent, &Arc::new(Barrier::new(3)));
    agent.pause_begins();
    std::thread::sleep(Duration::from_millis(2));
    agent.pause_ends();
    assert!(agent.dump().unwrap().contains("state=running"));
    assert!(agent.stop(|| ()).unwrap().contains("state=stopped"));

    let view = read(&file);
    std::fs::remove_dir_all(dir).unwrap();
    assert_eq!(view.0.warnings, Vec::<String>::new());
    let mut weight_ns = 0;
    for sample in view.samples("busy", SampleKind::Execution) {
        weight_ns += sample.weight_ns.unwrap();
        assert_eq!(view.leaf(sample), "mock.Program.spin:42");
        let (from_ns, to_ns) = (sample.time_ns + SLEWED_NS, sample.time_ns - SLEWED_NS);
        let is_then = from_ns >= *when.start() && to_ns <= *when.end();
        assert!(is_then, "sampled at {} of {when:?}", sample.time_ns);
    }
    let off = (weight_ns as f64 / used.as_nanos() as f64 - 1.0).abs();
    assert!(off < 0.02, "{weight_ns} of {used:?}");
    assert!(agent.runtime.has_rules.load(Ordering::SeqCst));
    waits(&view);
    let pauses: Vec<i64> = view
        .0
        .events_named("dwell.GcPause")
        .filter_map(|event| event.int("duration"))
        .collect();
    assert!(pauses.len() == 1 && pauses[0] >= 2_000_000, "{pauses:?}");
    let about = view.0.events_named("jdk.JVMInformation").next().unwrap();
    assert_eq!(about.text("jvmName"), Some("Mock"));
    assert_eq!(about.text("jvmVersion"), Some("1.2"));
}

/// The waiter waits for an object that the holder owns.
fn waits(view: &View) {
    let (mut sum_ns, mut seen) = (0, 0);
    for sample in view.samples("waiter", SampleKind::Wall) {
        let wall = &view.0.walls[sample.wall.unwrap() as usize];
        if view.0.text(wall.cause) != Some("monitor") {
            continue;
        }
        sum_ns += sample.weight_ns.unwrap();
        assert_eq!(view.leaf(sample), "mock.Program.wait:42");
        assert_eq!(view.0.text(wall.detail), Some("mock.Lock"));
        let owner = &view.0.threads[wall.owner.unwrap() as usize];
        assert_eq!(owner.java_name.as_deref(), Some("holder"));
        // No stack while it runs.
        if let Some(stack) = wall.owner_stack {
            let frame = &view.0.stacks.get(stack).unwrap().frames[0];
            assert_eq!(&*view.0.method(frame).unwrap().name, "hold");
            seen += 1;
        }
    }
    // Only the runtime knows a method's name.
    let holds = |sample: &Sample| {
        let wall = &view.0.walls[sample.wall.unwrap() as usize];
        view.0.text(wall.cause) == Some("object-wait")
    };
    assert!(view.samples("holder", SampleKind::Wall).any(holds));
    // It is found a moment after it began, and waits while the busy thread works.
    assert!(sum_ns > BUSY.as_nanos() as u64 / 2, "{sum_ns}");
    assert!(seen > 0);
}

//! Sampling ends when the end of a recording is requested, however late its drainer handles that.

mod mock;

use dwell_recorder::options::{EngineChoice, parse};
use dwell_recorder::recorder::Recorder;
use dwell_recorder::source::Source;
use dwell_recorder::sys::process;
use mock::{Agent, Mock, begin_thread};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// CPU time that the busy thread uses before the end is requested.
const WORK: Duration = Duration::from_millis(300);

/// Polls until it is so; a test that waits for ever would show less.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "never {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Releases all threads, so that a failed test ends.
struct Release<'a>(&'a AtomicBool, &'a AtomicBool);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
        self.1.store(false, Ordering::SeqCst);
    }
}

#[test]
fn sampling_stops_at_the_request_and_keeps_all_before() {
    let dir = std::env::temp_dir().join(format!("dwell-ends-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("ends.jfr").display().to_string();
    let source = Source::start(EngineChoice::Timer).unwrap();
    let agent: &'static Agent = Box::leak(Box::new(Recorder::new(Mock::default(), source)));
    let text = format!("start,cpu=1ms,engine=timer,file={file}");
    let options = parse(&text).unwrap();
    let _ = agent
        .start(&options, &text, || agent.find_threads())
        .unwrap();

    // A thread that continues after the end, and reports its CPU time.
    let (over, used_ns) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let release = Release(&over, &agent.runtime.holds);
        let used = || Duration::from_nanos(used_ns.load(Ordering::SeqCst));
        scope.spawn(|| {
            begin_thread(agent, "busy", 1, 1);
            while !over.load(Ordering::SeqCst) {
                used_ns.store(process::own_cpu().as_nanos() as u64, Ordering::SeqCst);
            }
            agent.own_thread_ends();
        });
        until("busy", || used() > WORK);
        agent.runtime.holds.store(true, Ordering::SeqCst);
        until("held", || agent.runtime.held.load(Ordering::SeqCst));
        let before = used();
        let stop = scope.spawn(|| agent.stop(|| ()));
        // With the drainer where it is.
        until("ended", || !agent.engine.is_running());
        let after = used();
        // A handler may have been at work.
        until("quiet", || used() > after + WORK / 3);
        let ended_ns = process::epoch_ns();
        until("busy since", || used() > after + WORK);
        agent.runtime.holds.store(false, Ordering::SeqCst);
        let stopped = stop.join().unwrap().unwrap();
        drop(release);
        assert!(stopped.contains("state=stopped"), "{stopped}");

        let recording = dwell_jfr::reader::parse(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(recording.warnings, Vec::<String>::new());
        let late = |sample: &&dwell_jfr::reader::Sample| sample.time_ns > ended_ns;
        assert_eq!(recording.samples.iter().filter(late).count(), 0);
        let weight_ns: u64 = recording.samples.iter().filter_map(|s| s.weight_ns).sum();
        let lost: i64 = recording
            .events_named("dwell.SamplesLost")
            .filter_map(|event| event.int("weight"))
            .sum();
        let told = Duration::from_nanos(weight_ns + lost as u64);
        // The busy thread's time, and a little of others'.
        assert!(told >= before, "{told:?} of {before:?} to {after:?}");
        assert!(
            told < after + WORK / 2,
            "{told:?} of {before:?} to {after:?}"
        );
    });
    std::fs::remove_dir_all(dir).unwrap();
}

//! Commands by attach, wrong options, what is left after a stop, and neighbours of ours.

use dwell_e2e::{
    Jdk, Place, Starter, View, both, each, fd_targets, jdks, jfr_tool, task_names, turn, verify,
};
use std::time::{Duration, Instant};

/// The value of a line of the status.
fn value<'a>(status: &'a str, key: &str) -> &'a str {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {key} in {status}"))
}

#[test]
fn start_dump_status_stop_and_start_again() {
    each(&jdks().iter().collect::<Vec<_>>(), |jdk| {
        let place = Place::new("commands");
        let mut program = Starter::new(jdk, &place, "Steady60")
            .with("seconds=600")
            .start();
        assert_eq!(value(&program.tell("status"), "state"), "stopped");
        let refused = program.attach("stop").unwrap_err();
        assert!(refused.contains("nothing is being recorded"), "{refused}");
        program.pass();
        let first = place.text("first.jfr");
        let status = program.tell(&format!("start,cpu=1ms,file={first}"));
        assert_eq!(value(&status, "state"), "running");
        assert_eq!(value(&status, "interval_ns"), "1000000");
        assert_eq!(value(&status, "file"), first);
        let second = place.text("second.jfr");
        let refused = program.attach(&format!("start,file={second}")).unwrap_err();
        assert!(refused.contains("already recording"), "{refused}");
        assert!(
            refused.contains(&first) && !refused.contains('\n'),
            "{refused}"
        );
        assert!(
            !place.path("second.jfr").exists(),
            "a refused start leaves no file"
        );
        let samples = program.await_samples(21);
        program.tell("dump");
        let dumped = View::read(&place.path("first.jfr")).recording.samples.len() as u64;
        assert!(
            dumped >= samples,
            "{dumped} in the file, {samples} before it"
        );
        let status = program.tell("stop");
        assert_eq!(value(&status, "state"), "stopped");
        let kept = View::read(&place.path("first.jfr"));
        assert_eq!(
            value(&status, "samples"),
            kept.recording.samples.len().to_string()
        );
        assert_eq!(value(&status, "weight_ns"), kept.weight_ns().to_string());
        program.tell(&format!("start,cpu=2ms,file={second}"));
        program.await_samples(100);
        program.tell("stop");
        assert!(program.is_running(), "{}", program.errors());
        drop(program);
        let view = View::read(&place.path("second.jfr"));
        view.check_failures();
        assert!(
            view.of_threads("steady-").any(|s| s.has("steadyRoot")),
            "no sample of the work"
        );
    });
}

#[test]
fn wrong_options_by_attach_are_refused_and_the_jvm_goes_on() {
    each(&both(), |jdk| {
        let place = Place::new("refused");
        let mut program = Starter::new(jdk, &place, "Idle").with("seconds=1").start();
        for (options, names) in [
            ("start,cpu=1", "cpu=1"),
            ("start,cpu=1us", "cpu=1us"),
            ("start,bogus=1", "bogus"),
            ("start,stop", "stop"),
            ("start,engine=itimer", "engine=itimer"),
            ("start,depth=0", "depth=0"),
            ("start,file=/nowhere/at/all.jfr", "/nowhere/at/all.jfr"),
            ("start,file=/dev/null", "/dev/null"),
            ("start,freeze=/nowhere/at/all", "freeze=/nowhere/at/all"),
        ] {
            let refused = program.attach(options).unwrap_err();
            assert!(refused.contains(names), "{options}: {refused}");
            assert!(!refused.contains('\n'), "{options}: {refused}");
        }
        assert_eq!(value(&program.tell("status"), "state"), "stopped");
        let _ = program.work();
        program.end();
    });
}

#[test]
fn wrong_start_options_give_one_line_and_the_jvm_runs() {
    each(&both(), |jdk| {
        for (options, names) in [
            ("start,cpu=1", "cpu=1"),
            ("bogus", "bogus"),
            ("file=/nowhere/at/all.jfr", "/nowhere"),
            ("freeze=/nowhere/at/all", "freeze=/nowhere/at/all"),
        ] {
            let place = Place::new("agentpath-refused");
            let mut program = Starter::new(jdk, &place, "Idle")
                .with("seconds=1")
                .agent(options)
                .start();
            let _ = program.work();
            let said = program.errors();
            let ours: Vec<&str> = said.lines().filter(|l| l.starts_with("dwell: ")).collect();
            assert_eq!(ours.len(), 1, "{options}: {said}");
            assert!(
                ours[0].contains(names) && ours[0].ends_with("not recording"),
                "{ours:?}"
            );
            program.end();
        }
    });
}

/// Threads of ours are named so.
fn own_threads(pid: u32) -> Vec<String> {
    let mut names: Vec<String> = task_names(pid)
        .into_iter()
        .filter(|name| name.starts_with("dwell"))
        .collect();
    names.sort();
    names
}

/// Waits until the threads of ours are those with these names.
#[track_caller]
fn await_own_threads(pid: u32, expected: &[&str]) {
    let began = Instant::now();
    while own_threads(pid) != expected {
        let threads = task_names(pid);
        assert!(began.elapsed() < Duration::from_secs(60), "{threads:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// File descriptors of ours: perf events, rings, timers, the recording.
fn own_fds(pid: u32) -> Vec<String> {
    let ours = |fd: &String| {
        ["perf_event", "timerfd", "eventfd", "eventpoll", ".jfr"]
            .iter()
            .any(|p| fd.contains(p))
    };
    fd_targets(pid).into_iter().filter(ours).collect()
}

#[test]
fn stopped_recording_leaves_no_thread_descriptor_or_timer() {
    each(&both(), |jdk| {
        for engine in ["perf", "timer"] {
            let place = Place::new("left");
            let mut program = Starter::new(jdk, &place, "Steady60")
                .with("seconds=1")
                .start();
            let before = own_fds(program.pid);
            program.pass();
            let file = place.text("l.jfr");
            if let Err(refused) =
                program.attach(&format!("start,cpu=1ms,engine={engine},file={file}"))
            {
                assert!(
                    engine == "perf" && refused.contains("perf_event_open"),
                    "{refused}"
                );
                println!("not tried: {refused}");
                continue;
            }
            let mut expected = vec!["dwell-drainer", "dwell-stops"];
            if engine == "perf" {
                expected.insert(1, "dwell-late");
            }
            // A thread names itself, once it runs.
            await_own_threads(program.pid, &expected);
            assert!(own_fds(program.pid).iter().any(|fd| fd.ends_with("l.jfr")));
            let armed = posix_timers(program.pid);
            assert_eq!(engine == "timer", armed > 0, "{engine}: {armed} timers");
            program.tell("stop");
            // The kernel lists a thread for a moment after the agent has joined it.
            await_own_threads(program.pid, &[]);
            assert_eq!(own_fds(program.pid), before);
            assert_eq!(posix_timers(program.pid), 0, "{engine}");
            let _ = program.truths();
            program.end();
        }
    });
}

/// POSIX timers of a process; those of threads are among them.
fn posix_timers(pid: u32) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{pid}/timers")).unwrap_or_default();
    text.lines().filter(|line| line.starts_with("ID:")).count()
}

/// Runs JFR's own sampler during a recording of dwell; both must see the work.
fn beside_jfr(jdk: &Jdk, event: &str, setting: &[&str]) {
    let place = Place::new("jfr");
    let ours = place.text("ours.jfr");
    let theirs = place.path("theirs.jfr");
    let settings = place.path("settings.jfc");
    let text = setting.join("\n");
    let document = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<configuration version=\"2.0\">\n\
         <event name=\"{event}\">\n<setting name=\"enabled\">true</setting>\n{text}\n</event>\n\
         </configuration>\n"
    );
    std::fs::write(&settings, document).unwrap();
    let option = format!(
        "-XX:StartFlightRecording:filename={},settings={}",
        theirs.display(),
        settings.display()
    );
    let mut program = Starter::new(jdk, &place, "Steady60")
        .jvm(&option)
        .with("seconds=3 cpu_ms=2000")
        .agent(&format!("start,cpu=1ms,engine=timer,file={ours}"))
        .start();
    let truths = program.work();
    program.end();
    let view = View::read(&place.path("ours.jfr"));
    view.check_failures();
    let work = view
        .of_threads("steady-")
        .filter(|sample| sample.has("steadyRoot"));
    let found: u64 = work.map(|sample| sample.weight_ns()).sum();
    let truth = truths.ns("steadyRoot");
    assert!(
        found.abs_diff(truth) <= truth / 50 + 4_000_000,
        "{found} ns, in truth {truth} ns"
    );
    let seen = verify(jdk, &theirs, &["--event", event, "--under", "steadyRoot"]);
    let (_, samples) = seen.tables["under"]
        .iter()
        .find(|(name, _)| name.ends_with(".steadyRoot"))
        .map_or((0, 0), |(_, tally)| *tally);
    println!("JDK {}: {samples} of its own {event}", jdk.feature);
    // Its period is 20 ms of time or 10 ms of CPU time; a loaded machine gives us a third at least.
    assert!(
        samples >= truth / 1_000_000_000 * 15,
        "{samples} in {truth} ns"
    );
    assert!(!jfr_tool(jdk, &["summary"], &theirs).is_empty());
}

/// Detects a sampler that is silenced or slowed down. Our weights follow the CPU time within a
/// tick; the JDK takes 50 to 100 samples a second, of which a third is asked for. False alarm: not
/// by chance on an idle machine.
#[test]
fn measured_samplers_of_the_jdk_work_during_recordings() {
    each(&turn(&both()), |jdk| {
        let (event, setting) = match jdk.feature {
            17 => ("jdk.ExecutionSample", "period"),
            _ => ("jdk.CPUTimeSample", "throttle"),
        };
        let setting = format!("<setting name=\"{setting}\">10 ms</setting>");
        beside_jfr(jdk, event, &[&setting]);
    });
}

/// The JVM's SIGSEGV handler is busy while ours reads its memory.
///
/// Detects a share off by 2 % and 8 deviations of counting. False alarm: 1e-14 for each of four
/// sums.
#[test]
fn measured_implicit_null_checks_are_counted_right() {
    each(&turn(&jdks().iter().collect::<Vec<_>>()), |jdk| {
        let place = Place::new("nulls");
        let file = place.text("n.jfr");
        let mut program = Starter::new(jdk, &place, "NullChecks")
            .with("seconds=2 threads=2 cpu_ms=2000")
            .start();
        program.tell(&format!("start,cpu=500us,file={file}"));
        let truths = program.work();
        program.tell("stop");
        program.end();
        assert!(truths.number("null_pointers") > 10_000, "{truths:?}");
        let view = View::read(&place.path("n.jfr"));
        view.check_failures();
        for name in ["nullPointers", "betweenNulls"] {
            let truth = truths.ns(name);
            let with = view.of_threads("nulls-").filter(|sample| sample.has(name));
            let found: u64 = with.map(|sample| sample.weight_ns()).sum();
            // Counting: a batch's samples differ by up to one interval at each of its ends, with a
            // mean of zero. The bound is 8 sigma for the maximum number of batches.
            let batches = truth as f64 / if name == "nullPointers" { 20e6 } else { 2.5e6 } + 1.0;
            let bound = 0.02 * truth as f64 + 8.0 * 500e3 * batches.sqrt();
            let off = found.abs_diff(truth) as f64;
            println!(
                "JDK {} {name}: {found} ns, in truth {truth} ns",
                jdk.feature
            );
            assert!(
                off <= bound,
                "{name}: {found} ns, in truth {truth} ns, bound {bound:.0}"
            );
        }
    });
}

//! Mono programs, recorded by the module that Mono loads: shares, weights, stacks, safety. Without
//! Mono on the machine they are skipped, and say so.

use dwell_e2e::{Mono, SampleView, View, stats, turn};
use dwell_jfr::FrameKind;
use std::collections::{BTreeMap, BTreeSet};

const PHASES: [&str; 8] = [
    "PhaseManaged",
    "PhaseModulo",
    "PhaseInvoke",
    "PhaseCopy",
    "PhaseObjects",
    "PhaseFormat",
    "PhaseThrow",
    "PhasePow",
];

fn phase_of(sample: &SampleView<'_>) -> Option<&'static str> {
    PHASES.into_iter().find(|phase| sample.has(phase))
}

/// The samples' weights add up to the CPU time of the process, except for the part that the end
/// cuts off.
#[track_caller]
fn check_weights(view: &View) {
    const ENDING_NS: u64 = 50_000_000;
    let (weight, cpu) = (view.weight_ns() + view.lost_ns(), view.cpu_load_ns());
    let off = weight.abs_diff(cpu);
    assert!(off <= cpu / 50 + ENDING_NS, "{weight} of {cpu}");
}

/// Detects a phase off by some points (`stats::share_bound`). False alarm: 2e-6.
#[test]
fn measured_phases_have_their_shares_and_stacks_their_frames() {
    let Some(mono) = Mono::find("mono-phases") else {
        return;
    };
    mono.compile("phases");
    let mut command = mono.recorded("mono", "cpu=1ms,file=phases.jfr");
    let (ran, view) = mono.record(command.args(["--debug", "phases.exe", "4"]), "phases.jfr");
    check_weights(&view);
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    for sample in view.of_threads("Main") {
        *found
            .entry(phase_of(&sample).unwrap_or("other"))
            .or_default() += sample.weight_ns();
    }
    let all: u64 = PHASES.iter().filter_map(|phase| found.get(phase)).sum();
    let truth_all: u64 = PHASES.iter().map(|phase| ran.number(phase)).sum();
    let samples = stats::effective_samples(view.of_threads("Main").map(|s| s.weight_ns()));
    assert!(samples > 500.0, "only {samples} samples");
    let lost = view.lost_ns() as f64 / all as f64;
    for phase in PHASES {
        let truth = ran.number(phase) as f64 / truth_all as f64;
        let share = *found.get(phase).unwrap_or(&0) as f64 / all as f64;
        let bound = stats::share_bound(truth, samples, PHASES.len()) + lost;
        println!("{phase}: {share:.4}, in truth {truth:.4}");
        assert!(
            (share - truth).abs() <= bound,
            "{phase}: {share:.4} {truth:.4} {bound:.4}"
        );
    }
    let truth_kinds = [FrameKind::C2, FrameKind::Native, FrameKind::Vm];
    check_compilers(&view);
    let kinds: BTreeSet<FrameKind> = view
        .of_threads("Main")
        .flat_map(|sample| sample.frames().map(|frame| frame.kind))
        .collect();
    assert!(
        truth_kinds.iter().all(|kind| kinds.contains(kind)),
        "{kinds:?}"
    );
    check_lines(&view);
    check_assemblies(&view);
    check_managed(&view);
}

/// The program is compiled when it runs. If Mono's own library has precompiled code, as on Debian,
/// the methods of that are distinguished.
fn check_compilers(view: &View) {
    let library = "/usr/lib/mono/aot-cache/amd64/mscorlib.dll.so";
    let has_library_code = std::path::Path::new(library).exists();
    let (mut own, mut formats) = (0, 0);
    for sample in view.of_threads("Main") {
        for frame in sample.frames() {
            if PHASES.contains(&frame.name) {
                own += 1;
                assert_eq!(frame.kind, FrameKind::C2, "{}", frame.name);
            } else if (frame.class, frame.name) == ("string", "FormatHelper") {
                formats += 1;
                let is_ahead = frame.kind == FrameKind::Ahead;
                assert_eq!(is_ahead, has_library_code, "{}", sample.line());
            }
        }
    }
    assert!(own > 500 && formats > 10, "{own} {formats}");
}

/// The one line of a phase that does something is the one that its samples name.
fn check_lines(view: &View) {
    let source = include_str!("../../mono/phases.cs");
    for phase in PHASES {
        let declared = format!("static void {phase}()");
        let at = source
            .lines()
            .position(|line| line.contains(&declared))
            .expect(phase);
        let frames = view.of_threads("Main").flat_map(|sample| sample.frames());
        let lines: BTreeSet<i32> = frames
            .filter(|frame| frame.name == phase)
            .map(|frame| frame.line)
            .collect();
        assert_eq!(lines, BTreeSet::from([at as i32 + 1]), "{phase}");
    }
}

/// Methods have the names of their assemblies.
fn check_assemblies(view: &View) {
    let (mut own, mut library) = (0, 0);
    for method in &view.recording.methods {
        if PHASES.contains(&&*method.name) {
            own += 1;
            assert_eq!(&*method.module, "phases", "{method:?}");
            assert!(method.location.ends_with("/phases.exe"), "{method:?}");
        } else if &*method.class == "string" {
            library += 1;
            assert_eq!(&*method.module, "mscorlib", "{method:?}");
        }
    }
    assert!(own == PHASES.len() && library > 0, "{own} {library}");
}

/// On the program's own thread all but one in 2000 samples have a managed frame.
fn check_managed(view: &View) {
    let is_compiled = |kind| matches!(kind, FrameKind::C2 | FrameKind::Ahead);
    let is_managed = |sample: &SampleView<'_>| sample.frames().any(|frame| is_compiled(frame.kind));
    // Before and after `Main` there is only Mono.
    let mut of_main: Vec<_> = view.of_threads("Main").collect();
    of_main.sort_by_key(|sample| sample.sample.time_ns);
    let first = of_main.iter().position(|s| s.has("Main")).unwrap_or(0);
    let last = of_main.iter().rposition(|s| s.has("Main")).unwrap_or(0);
    let due = &of_main[first..=last];
    let without: Vec<_> = due.iter().filter(|s| !is_managed(s)).collect();
    let bound = 0.0005 + stats::share_bound(0.0005, due.len() as f64, 1);
    let share = without.len() as f64 / due.len() as f64;
    let lines: Vec<String> = without.iter().take(5).map(|s| s.line()).collect();
    assert!(
        share <= bound,
        "{} of {}: {lines:#?}",
        without.len(),
        due.len()
    );
}

#[test]
fn the_heap_stays_right_under_all_suspend_modes() {
    let Some(mono) = Mono::find("mono-stress") else {
        return;
    };
    mono.compile("stress");
    let modes = [
        ("hybrid", "major=marksweep-conc"),
        ("preemptive", "major=marksweep,nursery-size=512k"),
        ("coop", "major=marksweep-conc"),
    ];
    for (mode, gc) in turn(&modes) {
        let file = format!("{mode}.jfr");
        let options = format!("cpu=1ms,wall=1ms,file={file}");
        let mut command = mono.recorded("mono", &options);
        command
            .env("MONO_THREADS_SUSPEND", mode)
            .env("MONO_GC_PARAMS", gc);
        let (ran, view) = mono.record(command.args(["stress.exe", "4"]), &file);
        assert_eq!(ran.number("bad"), 0, "{mode}: {ran:?}");
        check_weights(&view);
        view.check_failures();
        check_callbacks(&view);
        check_stops(&view, mode);
        let pauses = view.recording.events_named("dwell.GcPause").count() as u64;
        let collections = ran.number("collections");
        // One pause has no more than a collection of each generation.
        println!("{mode}: {collections} collections, {pauses} pauses");
        assert!(
            collections > 10 && pauses * 2 >= collections,
            "{mode}: {pauses}"
        );
    }
}

/// While one thread collects, the others wait for it, and the recording shows this.
fn check_stops(view: &View, mode: &str) {
    let recording = &view.recording;
    let mut looks: BTreeMap<&str, u64> = BTreeMap::new();
    for sample in &recording.samples {
        if let Some(wall) = sample.wall.and_then(|at| recording.walls.get(at as usize)) {
            let cause = recording.text(wall.cause).expect("a cause");
            *looks.entry(cause).or_default() += wall.count;
        }
    }
    println!("{mode}: {looks:?}");
    for cause in ["gc-stall", "safepoint"] {
        assert!(looks.contains_key(cause), "{mode}: {looks:?}");
    }
}

/// The collector often meets threads in our handler, which has interrupted an allocator: it must
/// let that finish all the same. Without the allocators' critical regions it does not, and the same
/// run crashes within seconds: `bench/mono --held` shows it.
#[test]
fn thread_held_in_handler_inside_allocator_is_harmless() {
    let Some(mono) = Mono::find_experimental("mono-held") else {
        return;
    };
    mono.compile("stress");
    let mut command = mono.recorded("mono", "cpu=1ms,file=held.jfr");
    command
        .env("MONO_THREADS_SUSPEND", "preemptive")
        .env("MONO_GC_PARAMS", "nursery-size=512k")
        .env("DWELL_MONO_HOLD_US", "300");
    let workers = "stress.exe cpu=10 Small Trees Small Trees Small".split(' ');
    let (ran, view) = mono.record(command.args(workers), "held.jfr");
    assert_eq!(ran.number("bad"), 0, "{ran:?}");
    let in_allocators = view
        .samples()
        .filter(|s| s.has("AllocSmall [alloc]"))
        .count();
    println!("{in_allocators} samples in allocators");
    assert!(
        in_allocators > 20 && ran.number("collections") > 20,
        "{in_allocators} {ran:?}"
    );
}

/// Mono's signal that stops a thread arrives in our handler; ours is due in Mono's, which blocks
/// all others: then the sample is taken when that has returned. Both are held, and counted. The
/// program works for 10 s of CPU time: in 6 s there were 43 to 428 such stops, and above 4200 such
/// samples, on a machine with three times as much work as CPUs.
#[test]
fn stops_and_samples_meet_in_each_others_handlers() {
    let Some(mono) = Mono::find_experimental("mono-nested") else {
        return;
    };
    mono.compile("stress");
    for mode in ["preemptive", "hybrid"] {
        let file = format!("{mode}.jfr");
        let mut command = mono.recorded("mono", &format!("cpu=1ms,file={file}"));
        command
            .env("MONO_THREADS_SUSPEND", mode)
            .env("MONO_GC_PARAMS", "nursery-size=512k")
            .env("DWELL_MONO_HOLD_US", "300")
            .env("DWELL_MONO_COUNT_STOPS", "1");
        let workers = "stress.exe cpu=10 Small Trees Small Trees Small".split(' ');
        let (ran, view) = mono.record(command.args(workers), &file);
        assert_eq!(ran.number("bad"), 0, "{mode}: {ran:?}");
        check_weights(&view);
        let (inside, due) = (ran.number("stops-inside"), ran.number("due-in-stops"));
        println!("{mode}: {inside} stops in our handler, {due} samples due in Mono's");
        assert!(inside >= 10 && due >= 10, "{mode}: {ran:?}");
    }
}

/// Mono's own handler of samples, for another profiler's signal, and ours, which calls it: neither
/// may run inside of the other.
#[test]
fn another_profiler_may_sample_at_the_same_time() {
    let Some(mono) = Mono::find("mono-two") else {
        return;
    };
    mono.compile("stress");
    for mode in ["hybrid", "preemptive"] {
        let file = format!("{mode}.jfr");
        let mut command = mono.recorded("mono", "");
        let both = format!(
            "--profile=log:sample-real=1000,output={mode}.mlpd \
             --profile=dwell:cpu=1ms,wall=10ms,file={file}"
        );
        command
            .env("MONO_THREADS_SUSPEND", mode)
            .env("MONO_ENV_OPTIONS", both);
        let (ran, view) = mono.record(command.args(["stress.exe", "3"]), &file);
        assert_eq!(ran.number("bad"), 0, "{mode}: {ran:?}");
        check_weights(&view);
        let theirs = std::fs::metadata(mono.file(&format!("{mode}.mlpd")));
        let Ok(theirs) = theirs else {
            dwell_e2e::skipped("mono-two", "libmono-profiler-log.so", "libmono-profiler");
            return;
        };
        // Its header and what is loaded at the start take less than a thousand bytes.
        assert!(theirs.len() > 10_000, "{mode}: {}", theirs.len());
        assert!(view.samples().count() > 100, "{mode}");
    }
}

/// Handlers of the program, native and managed, still run during a recording, for SIGPROF, too.
/// Native ones also run inside of dwell's handler.
#[test]
fn handlers_of_the_program_still_run() {
    let Some(mono) = Mono::find_experimental("mono-handlers") else {
        return;
    };
    mono.compile("handlers");
    const SIGUSR1: i32 = 10;
    const SIGALRM: i32 = 14;
    const SIGPROF: i32 = 27;
    for (mode, kind, signal, times) in [
        ("preemptive", "native", SIGALRM, 1000),
        ("hybrid", "native", SIGPROF, 200),
        ("hybrid", "managed", SIGUSR1, 500),
        ("preemptive", "managed", SIGPROF, 200),
        ("coop", "managed", SIGUSR1, 500),
    ] {
        let file = format!("{mode}-{kind}-{signal}.jfr");
        let mut command = mono.recorded("mono", &format!("cpu=1ms,wall=10ms,file={file}"));
        command
            .env("MONO_THREADS_SUSPEND", mode)
            .env("DWELL_MONO_HOLD_US", "300")
            .args(["handlers.exe", kind])
            .args([signal.to_string(), times.to_string()]);
        let ran = mono.run(&mut command);
        assert_eq!((ran.code, ran.err.as_str()), (Some(7), ""), "{ran:?}");
        assert!(ran.number("hits") >= times, "{ran:?}");
        assert_eq!(ran.number("bad"), 0, "{ran:?}");
        let view = View::read(&mono.file(&file));
        check_weights(&view);
        let count = |name: &str| view.samples().filter(|sample| sample.has(name)).count();
        let (work, hit) = (count("Work"), count("Hit"));
        println!("{mode} {kind} {signal}: {work} samples, {hit} in the managed handler");
        assert!(work > 20, "{work}");
        match kind {
            "native" => assert!(ran.number("nested") > 0, "{ran:?}"),
            _ => assert!(hit > 0, "no sample of the managed handler"),
        }
    }
}

/// Where native code has called back, what is between is there or marked.
fn check_callbacks(view: &View) {
    let mut seen = 0;
    for sample in view.samples() {
        let frames: Vec<_> = sample.frames().collect();
        for pair in frames.windows(2) {
            let is_callback = pair[0].name.ends_with("[native-to-managed]");
            seen += usize::from(is_callback);
            let is_unmarked =
                is_callback && matches!(pair[1].kind, FrameKind::C2 | FrameKind::Ahead);
            assert!(!is_unmarked, "{}", sample.line());
        }
    }
    assert!(seen > 0, "no callback was sampled");
}

#[test]
fn compilers_start_under_a_thousand_signals_a_second() {
    let Some(mono) = Mono::find("mono-starts") else {
        return;
    };
    let source = mono.file("hello.cs");
    std::fs::write(&source, "public class Hello { }").expect("a file here");
    // A compiler's start is nearly all precompiled code at its first use. A walk at the wrong
    // moment there would wait for its own thread for ever.
    for start in 0..20 {
        let mut command = mono.recorded("mcs", "cpu=1ms,wall=20ms,file=mcs.jfr");
        let words = ["-target:library", "-out:hello.dll", "hello.cs"];
        let (_, view) = mono.record(command.args(words), "mcs.jfr");
        let has_main = view.samples().any(|sample| sample.has("Main"));
        assert!(has_main, "start {start}: no Main");
        for file in ["mcs.jfr", "hello.dll"] {
            let len = std::fs::metadata(mono.file(file)).expect(file).len();
            assert!(len > 0, "start {start}: {file}");
            std::fs::remove_file(mono.file(file)).expect(file);
        }
    }
}

/// Detects a wrong cause. False alarm: 6e-7, five standard errors of the samples.
#[test]
fn measured_waiting_threads_get_no_signals_and_their_cause() {
    let Some(mono) = Mono::find("mono-idle") else {
        return;
    };
    mono.compile("idle");
    let mut command = mono.recorded("mono", "cpu=1ms,wall=10ms,file=idle.jfr");
    let (_, view) = mono.record(command.args(["idle.exe", "2"]), "idle.jfr");
    check_weights(&view);
    // Each has begun, which takes a few samples, and waits from then on.
    let idle = view.of_threads("idle").count();
    let busy = view.of_threads("Main").count();
    assert!(busy > 500 && idle * 4 < busy, "{idle} {busy}");
    check_causes(&view);
    let threads: BTreeSet<&str> = view
        .recording
        .threads
        .iter()
        .filter_map(|thread| thread.java_name.as_deref())
        .collect();
    for name in [
        "Main",
        "Finalizer",
        "idle Sleeper",
        "idle Waiter",
        "idle Enterer",
        "idle Pulsed",
    ] {
        assert!(threads.contains(name), "{name}: {threads:?}");
    }
}

/// Threads wait for what they say that they wait for, in the method that does so; Mono's own, which
/// have no methods there, for something to do.
fn check_causes(view: &View) {
    let recording = &view.recording;
    for (thread, method, cause) in [
        ("idle Sleeper", Some("Sleeper"), "sleep"),
        ("idle Waiter", Some("Waiter"), "park"),
        ("idle Enterer", Some("Enterer"), "monitor"),
        ("idle Pulsed", Some("Pulsed"), "object-wait"),
        ("Finalizer", None, "idle-pool"),
        // As the kernel has it, or whole.
        ("Profiler Sample", None, "idle-pool"),
    ] {
        let (mut all, mut good) = (0, 0);
        for sample in &recording.samples {
            let name = recording.threads[sample.thread as usize]
                .java_name
                .as_deref();
            let wall = sample.wall.and_then(|at| recording.walls.get(at as usize));
            let is_it = name.is_some_and(|name| name.starts_with(thread));
            let (Some(wall), true) = (wall, is_it) else {
                continue;
            };
            let said = recording.text(wall.cause).expect("a cause");
            if matches!(said, "running" | "runnable") {
                continue;
            }
            let stack = recording.stack(sample).expect("a stack");
            let mut frames = stack.frames.iter();
            let is_there = method.is_none_or(|method| {
                frames.any(|f| *recording.methods[f.method as usize].name == *method)
            });
            all += wall.count;
            good += if is_there && said == cause {
                wall.count
            } else {
                0
            };
        }
        println!("{thread}: {good} of {all} looks say {cause} in {method:?}");
        // While they begin they wait for others.
        assert!(all > 0 && good * 10 >= all * 9, "{thread}: {good} of {all}");
    }
}

/// However a program ends, and whatever it does to domains, processes and signals, it does the same
/// as alone, and what was recorded can be read.
#[test]
fn mono_programs_end_as_without_a_profiler() {
    let Some(mono) = Mono::find("mono-ends") else {
        return;
    };
    mono.compile("ends");
    for (way, code, said) in [
        ("return", 0, ""),
        ("exit", 3, ""),
        ("libc", 4, ""),
        ("throw", 1, ""),
        ("domains", 0, "domains 10\n"),
        ("signals", 0, "hits 20000\n"),
        ("processes", 0, "processes 5\n"),
    ] {
        let file = format!("{way}.jfr");
        let mut command = mono.recorded("mono", &format!("cpu=1ms,wall=2ms,file={file}"));
        let ran = mono.run(command.args(["ends.exe", way]));
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(code), said),
            "{way}: {ran:?}"
        );
        let view = View::read(&mono.file(&file));
        let is_work = |sample: SampleView<'_>| sample.has("Work");
        assert!(view.samples().any(is_work), "{way}");
        let in_domains = view
            .samples()
            .filter(|sample| sample.has("InDomain"))
            .count();
        assert!(
            way != "domains" || in_domains > 0,
            "names of domains are gone"
        );
    }
}

#[test]
fn wrong_options_are_reported_and_the_program_runs() {
    let Some(mono) = Mono::find("mono-wrong") else {
        return;
    };
    let source = "class H { static void Main() { System.Console.WriteLine(\"hello\"); } }";
    std::fs::write(mono.file("hello.cs"), source).expect("a file here");
    let ran = mono.run(std::process::Command::new("mcs").arg("hello.cs"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for (options, said) in [
        ("cpu=fast", "cpu=fast"),
        ("stop", "Mono loads profilers at its start only"),
        ("file=/none/x.jfr", "/none/x.jfr"),
        ("alloc=1m", "alloc=1048576: allocations of a Mono"),
        ("live", "live=524288: allocations of a Mono"),
    ] {
        let ran = mono.run(mono.recorded("mono", options).arg("hello.exe"));
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (Some(0), "hello\n"),
            "{ran:?}"
        );
        assert!(
            ran.err.contains(said) && ran.err.contains("not recording"),
            "{ran:?}"
        );
        assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
    }
}

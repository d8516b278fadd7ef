//! JVMs read from outside: stacks equal to those of the JDK's own tool, owners of locks, safepoints
//! that hang. The JVM is not touched.

mod damaged;

use dwell_attach::Target;
use dwell_e2e::{
    Jdk, Place, Program, Starter, both, each, jdks, record_outside, since, turn, turn_beside_jdk,
};
use dwell_outside::dump::{Dumper, How, Kind, Options, Stop};
use dwell_outside::names::Named;
use dwell_outside::{Dump, Live, Thread, Vm};
use dwell_walker::FrameKind;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::{Duration, Instant};

const PLAIN: Options = Options {
    native: false,
    virtual_max: 0,
    running: Duration::from_millis(300),
    stop: Stop::Never,
};
/// Longer waits are hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits for something to become true.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn dump(pid: u32, options: &Options) -> Dump {
    let target = Target::examine(pid).expect("a JVM");
    let live = Live::open(pid).expect("its memory");
    let vm = Vm::read(&target, &live).expect("what is to be known of it");
    Dumper::new(&vm).dump(options)
}

fn stands(jdk: &Jdk, place: &Place, flags: &[&str], with: &str) -> Program {
    let start = Starter::new(jdk, place, "Stands").with(with);
    flags.iter().fold(start, |it, flag| it.jvm(flag)).start()
}

fn named<'d>(dump: &'d Dump, name: &str) -> &'d Thread {
    let found = dump.threads.iter().find(|thread| thread.name == name);
    found.unwrap_or_else(|| panic!("no thread {name}: {:?}", names(dump)))
}

fn names(dump: &Dump) -> Vec<&str> {
    dump.threads.iter().map(|thread| &*thread.name).collect()
}

/// Java frames as stack traces have them.
fn lines(thread: &Thread) -> Vec<String> {
    let java = thread.frames.iter().filter_map(|frame| match frame {
        Named::Java { method, line, .. } => {
            let place = match (line, &method.source) {
                _ if method.is_native => "Native Method".to_owned(),
                (Some(line), Some(source)) => format!("{source}:{line}"),
                (None, Some(source)) => source.clone(),
                (_, None) => "Unknown Source".to_owned(),
            };
            let class = method.class.replace('/', ".");
            Some(format!("{class}.{}({place})", method.name))
        }
        _ => None,
    });
    java.collect()
}

/// The output of `jstack`.
fn jstack(jdk: &Jdk, pid: u32) -> String {
    let printed = jdk
        .attaching("jstack")
        .arg(pid.to_string())
        .output()
        .expect("jstack runs");
    String::from_utf8_lossy(&printed.stdout).into_owned()
}

/// The frames that it prints by the thread's name, without modules.
fn jstack_frames(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix('"') {
            current = rest.rsplit_once("\" ").map(|(name, _)| name.to_owned());
            current = current.map(|name| name.split("\" ").next().unwrap_or("").to_owned());
        } else if let (Some(name), Some(frame)) = (&current, line.strip_prefix("\tat ")) {
            let plain = match frame.split_once('(') {
                Some((method, place)) => {
                    let place = place.rsplit_once('/').map_or(place, |(_, place)| place);
                    format!("{method}({place}")
                }
                None => frame.to_owned(),
            };
            found.entry(name.clone()).or_default().push(plain);
        }
    }
    found
}

/// The monitors of a thread as `jstack` prints them: for each the number of its frame, how it is
/// held, which object it is (by order of appearance: collectors move them), and its class.
fn jstack_locks(text: &str, name: &str) -> Vec<(usize, String)> {
    let start = text
        .find(&format!("\"{name}\""))
        .unwrap_or_else(|| panic!("no thread {name}: {text}"));
    let (mut frames, mut found) = (0, Vec::new());
    for line in text[start..]
        .lines()
        .skip(1)
        .take_while(|it| !it.is_empty())
    {
        if line.starts_with("\tat ") {
            frames += 1;
        } else if let Some(lock) = line.strip_prefix("\t- ") {
            // The wording of 11 for a monitor on which the thread waits to be notified.
            let lock = lock.replace("waiting to re-lock in wait()", "locked");
            if lock.starts_with("locked") || lock.starts_with("eliminated") {
                found.push((frames - 1, lock));
            }
        }
    }
    by_order(found)
}

/// The same of ours.
fn own_locks(thread: &Thread) -> Vec<(usize, String)> {
    let found = thread.locked.iter().map(|locked| {
        let java = thread.frames[..locked.frame].iter();
        let frame = java.filter(|it| matches!(it, Named::Java { .. })).count();
        let what = if locked.is_eliminated {
            "eliminated"
        } else {
            "locked"
        };
        let class = locked.class.as_deref().unwrap_or("?");
        (
            frame,
            format!("{what} <{:#018x}> (a {class})", locked.object),
        )
    });
    by_order(found.collect())
}

fn by_order(locks: Vec<(usize, String)>) -> Vec<(usize, String)> {
    let mut known: Vec<String> = Vec::new();
    let numbered = locks.into_iter().map(|(frame, lock)| {
        let (what, rest) = lock.split_once('<').expect("an object");
        let (object, class) = rest.split_once('>').expect("an address");
        let number = known.iter().position(|it| it == object).unwrap_or_else(|| {
            known.push(object.to_owned());
            known.len() - 1
        });
        (frame, format!("{what}{number}{class}"))
    });
    numbered.collect()
}

/// Monitors without waiting threads equal those that the JDK prints, and belong to frames of each
/// kind.
fn check_locks(ours: &Dump, theirs: &str, jdk: &Jdk) {
    for (name, count) in [("locks-cold", 4), ("locks-hot", 5), ("waiter", 1)] {
        let own = own_locks(named(ours, name));
        assert_eq!(own, jstack_locks(theirs, name), "{name} on {}", jdk.feature);
        assert_eq!(own.len(), count, "{own:?}");
    }
    for (name, is_interpreted) in [("locks-cold", true), ("locks-hot", false)] {
        let thread = named(ours, name);
        for locked in &thread.locked {
            let frame = &thread.frames[locked.frame];
            let Named::Java { kind, .. } = frame else {
                panic!("{frame:?} has a monitor");
            };
            let found = *kind == FrameKind::Interpreted;
            assert_eq!(found, is_interpreted, "{name} on {}: {kind:?}", jdk.feature);
        }
    }
}

/// Threads of `Stands`, and some of the JDK's, that have a place where they stay.
const STANDING: [&str; 12] = [
    "deep",
    "locker",
    "monitor-wanter",
    "lock-wanter",
    "waiter",
    "acceptor",
    "reader",
    "pool-0",
    "pool-4",
    "Finalizer",
    "main",
    "dead-left",
];

/// A dump of a time when they are there, and `runner` runs: compilers and a busy machine make the
/// one late, and a safepoint stops the other for a moment.
fn settled(pid: u32) -> Dump {
    let frames = |dump: &Dump| STANDING.map(|name| lines(named(dump, name)));
    let stands = |dump: &Dump, name: &str| {
        let found = dump.threads.iter().find(|thread| thread.name == name);
        found.is_some_and(|thread| thread.how == How::InPlace && !thread.is_blurred)
    };
    let began = Instant::now();
    let settled = std::iter::repeat(()).find_map(|()| {
        assert!(began.elapsed() < PATIENCE, "they get where they stand");
        let first = dump(pid, &PLAIN);
        if STANDING.iter().all(|name| stands(&first, name)) {
            let second = dump(pid, &PLAIN);
            let runs = named(&second, "runner").cause.name() == "running";
            let is_same = STANDING.iter().all(|name| stands(&second, name));
            if runs && is_same && frames(&first) == frames(&second) {
                return Some(second);
            }
        }
        std::thread::sleep(Duration::from_millis(100));
        None
    });
    settled.expect("found, or out of patience")
}

/// Frames are those that `jstack` prints, and no thread is missing. Gives what it printed.
fn check_frames(ours: &Dump, jdk: &Jdk, pid: u32, flags: &[&str]) -> String {
    let printed = jstack(jdk, pid);
    let theirs = jstack_frames(&printed);
    for name in STANDING {
        let (own, other) = (lines(named(ours, name)), theirs.get(name));
        assert_eq!(Some(&own), other, "{name} on {} {flags:?}", jdk.feature);
        assert!(!own.is_empty());
    }
    assert!(lines(named(ours, "deep")).len() > 200);
    let java: BTreeSet<&str> = theirs.keys().map(String::as_str).collect();
    // The tool writes other letters in its own way.
    let missing: Vec<_> = (java.iter())
        .filter(|name| name.is_ascii() && !names(ours).contains(*name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    printed
}

#[test]
fn outside_stacks_and_waits_equal_the_jdks() {
    each(&jdks().iter().collect::<Vec<_>>(), |jdk| {
        let place = Place::new("outside");
        // With code compiled where it is called first, frames of each kind are there for sure.
        let flags = ["-XX:+UseSerialGC", "-Xbatch"];
        let program = stands(jdk, &place, &flags, "deadlock=1 locks=1");
        let ours = settled(program.pid);
        let printed = check_frames(&ours, jdk, program.pid, &flags);
        check_waits(&ours, jdk);
        check_locks(&ours, &printed, jdk);
        program.end();
    });
}

/// Whether a JDK has this collector: some builds leave Shenandoah out.
fn has(jdk: &Jdk, collector: &str) -> bool {
    let mut java = Command::new(jdk.tool("java"));
    let output = java.args([collector, "-version"]).output();
    output.expect("java runs").status.success()
}

/// Each collector's references, each form of them and of objects' headers, and each way to run
/// code.
#[test]
fn outside_stacks_and_waits_work_in_each_mode() {
    let modes: [&[&[&str]]; 2] = [
        &[
            &["-XX:+UseZGC"],
            &["-XX:-UseCompressedOops", "-Xint"],
            &["-XX:+UseCompactObjectHeaders"],
        ],
        &[
            &["-XX:+UseShenandoahGC"],
            &["-XX:-UseCompressedClassPointers", "-Xcomp"],
        ],
    ];
    each(&turn(&both()), |jdk| {
        for flags in turn_beside_jdk(&modes).concat() {
            // From 25 on it is a flag of the product.
            if jdk.feature == 17 && flags == ["-XX:+UseCompactObjectHeaders"] {
                continue;
            }
            let shenandoah = "-XX:+UseShenandoahGC";
            if flags == [shenandoah] && !has(jdk, shenandoah) {
                println!("JDK {} has no Shenandoah", jdk.feature);
                continue;
            }
            let place = Place::new("outside");
            let program = stands(jdk, &place, flags, "deadlock=1");
            let ours = settled(program.pid);
            check_frames(&ours, jdk, program.pid, flags);
            check_waits(&ours, jdk);
            program.end();
        }
    });
}

/// Checks the causes and owners of waits of the threads of `Stands`.
fn check_waits(dump: &Dump, jdk: &Jdk) {
    let owner = |name: &str| {
        let wanted = named(dump, name).wanted.as_ref()?;
        let owner = wanted.owner.as_ref()?.thread?;
        Some((wanted.class.clone()?, &*dump.threads[owner].name))
    };
    let told = |class: &str, owner| Some((class.to_owned(), owner));
    let object = "java.lang.Object";
    // A name that is not Latin-1.
    assert_eq!(
        owner("monitor-wanter"),
        told(object, "holder \u{e9}\u{20ac}")
    );
    let lock = "java.util.concurrent.locks.ReentrantLock$NonfairSync";
    assert_eq!(owner("lock-wanter"), told(lock, "locker"));
    assert_eq!(owner("dead-left"), told(object, "dead-right"));
    assert_eq!(owner("waiter"), None);
    let circles: Vec<BTreeSet<&str>> = (dump.deadlocks.iter())
        .map(|circle| circle.iter().map(|at| &*dump.threads[*at].name).collect())
        .collect();
    let circles: BTreeSet<BTreeSet<&str>> = circles.into_iter().collect();
    let monitors = BTreeSet::from(["dead-left", "dead-right"]);
    let locks = BTreeSet::from(["locked-left", "locked-right"]);
    assert_eq!(
        circles,
        BTreeSet::from([monitors, locks]),
        "{}",
        jdk.feature
    );
    for (name, cause, state) in [
        ("deep", "sleep", "TIMED_WAITING"),
        ("holder \u{e9}\u{20ac}", "sleep", "TIMED_WAITING"),
        ("monitor-wanter", "monitor", "BLOCKED"),
        ("lock-wanter", "lock", "WAITING"),
        ("waiter", "object-wait", "WAITING"),
        ("reader", "socket", "RUNNABLE"),
        ("pool-0", "park", "WAITING"),
        ("runner", "running", "RUNNABLE"),
    ] {
        let thread = named(dump, name);
        let seen = (thread.cause.name(), thread.java_state);
        assert_eq!(seen, (cause, Some(state)), "{name} on {}", jdk.feature);
        assert_eq!((thread.is_daemon, thread.priority), (Some(true), Some(5)));
    }
    let on = named(dump, "reader").on.as_deref();
    assert!(
        on.is_some_and(|on| on.starts_with("peer 127.0.0.1:")),
        "{on:?}"
    );
}

/// Looks until the thread `runner` was seen in the way `how`, or samples are refused. A look that
/// meets one of the JVM's own safepoints sees it in another way: where it waits, or, if the others
/// wait for it, by a sample whatever the options say.
fn asked(pid: u32, options: &Options, how: How) -> Dump {
    let mut seen = dump(pid, options);
    until("the runner is seen as it was asked for", || {
        let is = named(&seen, "runner").how == how || seen.refusal.is_some();
        if !is {
            seen = dump(pid, options);
        }
        is
    });
    seen
}

/// Whether a stack is one of the thread that runs: it is in `runAround` nearly always, and between
/// two calls of it in what adds them up.
fn runs_around(thread: &Thread) -> bool {
    let lines = lines(thread);
    lines.iter().any(|line| line.contains("Stands$1.stand("))
        && lines.iter().any(|line| line.contains("Stands$Body.run("))
}

#[test]
fn running_threads_are_sampled_or_stopped_on_demand() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("outside");
        let mut program = stands(jdk, &place, &[], "");
        // There is a sample once it has run: where others want the processors, too, that takes
        // longer.
        let patient = Options {
            running: Duration::from_secs(20),
            ..PLAIN
        };
        let seen = asked(program.pid, &patient, How::Sampled);
        let runner = named(&seen, "runner");
        if seen.refusal.is_none() {
            assert!(runs_around(runner), "{runner:?}");
        }
        // As if perf events were not permitted: there is no time for a sample.
        let stop = Options {
            running: Duration::ZERO,
            stop: Stop::IfNotSampled,
            ..PLAIN
        };
        let seen = asked(program.pid, &stop, How::Stopped);
        let runner = named(&seen, "runner");
        assert!(runs_around(runner), "{runner:?}");
        assert!(runner.stood.is_some());
        // It goes on.
        let used = |dump: &Dump| named(dump, "runner").cpu_ns.unwrap_or(0);
        let before = used(&dump(program.pid, &PLAIN));
        until("it goes on", || used(&dump(program.pid, &PLAIN)) > before);
        assert!(program.is_running());
        program.end();
    });
}

/// The externally visible state of a process.
fn visible(pid: u32) -> (Vec<String>, String, Vec<u32>, usize) {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let libraries: BTreeSet<String> = (maps.lines())
        .filter_map(|line| line.split_once('/').map(|(_, path)| path.to_owned()))
        .collect();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let wanted = ["SigCgt:", "SigIgn:", "SigBlk:", "TracerPid:"];
    let signals = status
        .lines()
        .filter(|line| wanted.iter().any(|it| line.starts_with(it)));
    let mut threads: Vec<u32> = std::fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    threads.sort_unstable();
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .count();
    (
        libraries.into_iter().collect(),
        signals.collect::<Vec<_>>().join("\n"),
        threads,
        fds,
    )
}

fn signal(signal: &str, pid: u32) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// Stops the process.
fn await_stopped(pid: u32) {
    signal("-STOP", pid);
    // Each of its threads stops when it next has a processor.
    until("all threads stop", || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let stat = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("stat"));
        let mut stats = tasks.filter_map(|task| stat(task.ok()?).ok());
        stats.all(|stat| {
            stat.rsplit_once(") ")
                .is_some_and(|it| it.1.starts_with('T'))
        })
    });
}

/// A dump of the process while it is stopped; it goes on afterwards.
fn dump_stopped(pid: u32) -> Dump {
    await_stopped(pid);
    let stopped = dump(pid, &PLAIN);
    signal("-CONT", pid);
    stopped
}

#[test]
fn outside_read_changes_nothing_and_needs_no_answer() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("outside");
        // No tool could attach to this one.
        let flags = [
            "-Xrs",
            "-XX:+DisableAttachMechanism",
            "-XX:-UsePerfData",
            // Nothing but us could make the threads others than they were.
            "-XX:-UseDynamicNumberOfCompilerThreads",
        ];
        let program = stands(jdk, &place, &flags, "deadlock=1");
        // A thread that is on its way to its place would wake once more.
        let _ = settled(program.pid);
        let turns = |dump: &Dump| {
            let tid = named(dump, "deep").tid.unwrap();
            let path = format!("/proc/{}/task/{tid}/schedstat", program.pid);
            std::fs::read_to_string(path).unwrap()
        };
        let all = Options {
            native: true,
            ..PLAIN
        };
        let before = visible(program.pid);
        let first = dump(program.pid, &all);
        let stood = turns(&first);
        for _ in 0..10 {
            let _ = dump(program.pid, &all);
        }
        assert_eq!(turns(&first), stood, "a sleeping thread never woke");
        assert_eq!(visible(program.pid), before);
        let (cpu, step) = (Duration::from_millis(10), Duration::from_millis(100));
        let mut steps = 0..10;
        let recorded = record_outside(program.pid, &place.path("o.jfr"), cpu, step, || {
            assert_eq!(visible(program.pid), before, "while it is recorded");
            steps.next().is_some()
        });
        assert_eq!(visible(program.pid), before, "and afterwards");
        if let Some(sum) = recorded {
            assert!(sum.looks > 0, "{sum:?}");
            assert_eq!(turns(&first), stood, "a sleeping thread never woke");
        }
        assert!(
            first
                .threads
                .iter()
                .any(|thread| thread.kind == Kind::Native)
        );
        // A stopped process can be read as well.
        let stopped = dump_stopped(program.pid);
        assert_eq!(stopped.process_state, Some('T'));
        assert_eq!(lines(named(&stopped, "deep")), lines(named(&first, "deep")));
        program.end();
    });
}

#[test]
fn hung_safepoint_is_reported_with_its_culprit() {
    // Up to 13 the JVM does not store its operation and its begin, and 8's library has no symbols.
    each(&jdks().iter().collect::<Vec<_>>(), |jdk| {
        let place = Place::new("outside");
        let start = Starter::new(jdk, &place, "Stops")
            .with("seconds=600 millis=700 pause=1 polling=0")
            .jvm("-XX:+UseSerialGC")
            .jvm("-XX:-UseCountedLoopSafepoints");
        let mut program = match jdk.feature {
            8 => start,
            _ => start.jvm("-XX:LoopStripMiningIter=0"),
        }
        .start();
        program.pass();
        let late = |dump: &Dump| {
            let safepoint = dump.safepoint.as_ref()?;
            let is_long = safepoint
                .since
                .is_some_and(|it| it >= Duration::from_millis(50));
            let late = *safepoint.late.first()?;
            // A name that the JVM moved while it was read is the kernel's for the thread.
            let asker = safepoint.asked_by.map(|at| &*dump.threads[at].name);
            (!safepoint.is_reached && is_long && asker != Some("java")).then_some(late)
        };
        let began = Instant::now();
        let looks = std::iter::repeat(()).take_while(|()| began.elapsed() < PATIENCE);
        let found = looks.clone().find_map(|()| {
            let dump = dump(program.pid, &PLAIN);
            Some((late(&dump)?, dump))
        });
        let check = |late: usize, dump: &Dump| {
            let culprit = &dump.threads[late];
            assert_eq!(culprit.name, "late-one");
            let safepoint = dump.safepoint.as_ref().unwrap();
            assert!(!safepoint.operation.is_empty(), "on {}", jdk.feature);
            let asker = safepoint.asked_by.map(|at| &*dump.threads[at].name);
            assert!(
                asker == Some("main") || safepoint.operation == "Cleanup",
                "{asker:?}"
            );
            lines(culprit).iter().any(|line| line.contains("lateLoop"))
        };
        let (culprit, seen) = found.expect("the JVM waits for one thread most of the time");
        let is_placed = check(culprit, &seen);
        let culprit = &seen.threads[culprit];
        assert!(is_placed || culprit.how != How::Sampled, "{culprit:?}");
        // The kernel knows the position of each thread of a stopped process.
        let stopped = looks.clone().find_map(|()| {
            let dump = dump_stopped(program.pid);
            Some((late(&dump)?, dump))
        });
        let (culprit, stopped) = stopped.expect("it waits as often");
        assert_eq!(stopped.process_state, Some('T'));
        assert!(check(culprit, &stopped), "{:?}", stopped.threads[culprit]);
        // It waits for nothing: it would run if it were let.
        let told = |it: &Thread| (it.cause.name(), it.on.clone());
        let expected = ("unknown", Some("stopped".to_owned()));
        assert_eq!(told(&stopped.threads[culprit]), expected);
        drop(program);
    });
}

#[test]
fn virtual_threads_are_shown_where_they_wait() {
    each(&since(21), |jdk| {
        // The other collectors keep references as Serial does.
        for flags in [&[][..], &["-XX:+UseZGC"]] {
            if jdk.feature != 25 && !flags.is_empty() {
                continue;
            }
            let place = Place::new("outside");
            let start = Starter::new(jdk, &place, "VirtualThreads");
            let start =
                start.with("seconds=600 threads=100 pause=park pause_us=200000 burst_us=50");
            let mut program = flags.iter().fold(start, |it, flag| it.jvm(flag)).start();
            program.pass();
            let options = Options {
                virtual_max: 10_000,
                ..PLAIN
            };
            let waits =
                |thread: &&Thread| thread.kind == Kind::Virtual && thread.name.starts_with("vt-");
            // The program starts them now; one that has not run yet has no frames, and says so.
            // Each runs for a small part of its time.
            let mut have_run = BTreeSet::new();
            let began = Instant::now();
            while began.elapsed() < PATIENCE {
                let dump = dump(program.pid, &options);
                for thread in dump.threads.iter().filter(waits) {
                    let is_new = thread.frames.is_empty();
                    assert!(
                        !is_new || thread.on.as_deref() == Some("a carrier thread"),
                        "{thread:?}"
                    );
                    assert!(!is_new || !have_run.contains(&thread.name), "{thread:?}");
                    if !is_new {
                        have_run.insert(thread.name.clone());
                    }
                }
                if have_run.len() == 100 {
                    break;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            assert_eq!(have_run.len(), 100, "on {}", jdk.feature);
            let dump = dump(program.pid, &options);
            assert!(dump.threads.iter().filter(waits).count() >= 60);
            let waiting: Vec<&Thread> = dump.threads.iter().filter(waits).collect();
            for thread in &waiting {
                let lines = lines(thread);
                let descends = lines
                    .iter()
                    .filter(|line| line.contains(".descend("))
                    .count();
                assert!(descends >= 30, "{descends} frames: {lines:?}");
                assert!(thread.java_id.is_some());
            }
            assert!(!dump.more_virtual);
            let few = Options {
                virtual_max: 10,
                ..PLAIN
            };
            let dump = self::dump(program.pid, &few);
            assert!(dump.more_virtual);
            drop(program);
        }
    });
}

/// Those that have a carrier are shown with it, under both names, down to the carrier's own frames.
#[test]
fn mounted_virtual_threads_are_shown_on_their_carriers() {
    each(&turn(&since(21)), |jdk| {
        let place = Place::new("outside");
        let start = Starter::new(jdk, &place, "VirtualThreads");
        let with = "seconds=600 threads=4 pause=sleep pause_us=1000 burst_us=50000";
        let mut program = start.with(with).start();
        program.pass();
        let patient = Options {
            running: Duration::from_secs(5),
            ..PLAIN
        };
        until("one is seen with its carrier", || {
            let dump = dump(program.pid, &patient);
            let mounted = dump.threads.iter().find(|thread| {
                let name = thread.mounted.as_ref().map(|(_, name)| name.as_str());
                let is_whole = thread.failure.is_none() && thread.how != How::NotSampled;
                name.is_some_and(|name| name.starts_with("vt-")) && is_whole
            });
            let Some(carrier) = mounted else {
                return dump.refusal.is_some();
            };
            assert!(carrier.name.contains("ForkJoinPool"), "{carrier:?}");
            let lines = lines(carrier);
            let has = |text: &str| lines.iter().any(|line| line.contains(text));
            has("VirtualThreads") && has("ForkJoinWorkerThread.run")
        });
    });
}

//! Delays of threads as intervals: pauses of the collector, and waits for a processor.

use dwell_e2e::{Jdk, Place, Starter, Truths, View, both, each, turn, turn_beside_jdk};
use dwell_jfr::reader::{GenericEvent, Recording, Value};
use dwell_profile::Profile;
use dwell_profile::told::GcPause;
use std::collections::BTreeMap;
use std::path::Path;

/// Runs a program from its beginning, and what it recorded.
fn record(jdk: &Jdk, place: &Place, program: &str, with: &str, jvm: &[&str]) -> (View, Truths) {
    let file = place.path("i.jfr");
    let mut starter = Starter::new(jdk, place, program)
        .with(with)
        .agent(&format!("start,cpu=1ms,file={}", file.display()));
    for option in jvm {
        starter = starter.jvm(option);
    }
    let mut program = starter.start();
    let truths = program.work();
    program.end();
    (View::read(&file), truths)
}

/// A pause: when it began, in ns since the epoch, and how long it lasted, in ns.
#[derive(Clone, Copy, Debug)]
struct Pause {
    begin_ns: i64,
    length_ns: i64,
}

impl Pause {
    fn end_ns(&self) -> i64 {
        self.begin_ns + self.length_ns
    }

    /// How long the two have in common.
    fn overlap_ns(&self, other: &Pause) -> i64 {
        self.end_ns().min(other.end_ns()) - self.begin_ns.max(other.begin_ns)
    }
}

/// The difference between the clock since the epoch and the clock of the logs.
fn epoch_ahead_ns() -> i64 {
    let now = |clock| {
        let now = rustix::time::clock_gettime(clock);
        now.tv_sec * 1_000_000_000 + now.tv_nsec
    };
    // The time between the two readings is the error. The shortest of several is exact enough.
    let look = |_| {
        let before_ns = now(rustix::time::ClockId::Monotonic);
        let epoch_ns = now(rustix::time::ClockId::Realtime);
        let after_ns = now(rustix::time::ClockId::Monotonic);
        (after_ns - before_ns, epoch_ns - before_ns)
    };
    (0..100).map(look).min().expect("some looks").1
}

/// The same by the recording, whose clock is that of the log, so pauses of both can be compared to
/// the microsecond. Time synchronisation can move the clock since the epoch by 500 us a second
/// during the test.
fn recordings_ahead_ns(recording: &Recording) -> i64 {
    let [chunk] = &recording.chunks[..] else {
        panic!("{} chunks", recording.chunks.len());
    };
    assert_eq!(chunk.ticks_per_second, 1_000_000_000);
    let ahead_ns = chunk.start_ns as i64 - chunk.start_ticks as i64;
    let off_ns = ahead_ns - epoch_ahead_ns();
    assert!(off_ns.abs() < 50_000_000, "the epoch is {off_ns} ns off");
    ahead_ns
}

/// The lines about pauses in the log during a recording, written at their ends:
/// `[123456789ns][gc] GC(1) Pause Young (...) 24M->5M(96M) 1.234ms`.
fn logged_pauses(log: &Path, recording: &Recording) -> Vec<Pause> {
    let ahead_ns = recordings_ahead_ns(recording);
    let log = std::fs::read_to_string(log).expect("the log");
    let pause = |line: &str| {
        let line = line.trim();
        let (time, _) = line.strip_prefix('[')?.split_once("ns]")?;
        let length: f64 = line.strip_suffix("ms")?.rsplit(' ').next()?.parse().ok()?;
        let length_ns = (length * 1e6) as i64;
        let end_ns = time.parse::<i64>().ok()? + ahead_ns;
        Some(Pause {
            begin_ns: end_ns - length_ns,
            length_ns,
        })
    };
    let pauses = log.lines().filter(|line| line.contains("Pause"));
    pauses.filter_map(pause).collect()
}

/// The collector's callbacks come one or two microseconds inside its own times at both ends. The
/// log has whole microseconds.
const CALLBACKS_NS: f64 = 5e3;

/// The maximum distance between the recorded end of a pause and its line in the log. The line is
/// written within tens of us. If it must wait for a processor, it is one of many.
const ENDS_NS: i64 = 300_000;

/// The lines of one pause: a young collection that becomes a full one is two lines, and one pause.
#[derive(Clone, Copy, Debug, Default)]
struct Lines {
    length_ns: i64,
    /// Of the last one.
    end_ns: i64,
}

/// The lines of each recorded pause, by its place, and the number of lines without a pause.
fn paired(told: &[Pause], logged: &[Pause]) -> (BTreeMap<usize, Lines>, usize) {
    let (mut pairs, mut alone): (BTreeMap<usize, Lines>, usize) = (BTreeMap::new(), 0);
    for line in logged {
        let overlaps = told.iter().map(|pause| pause.overlap_ns(line)).enumerate();
        match overlaps.max_by_key(|(_, overlap_ns)| *overlap_ns) {
            Some((nearest, 1..)) => {
                let lines = pairs.entry(nearest).or_default();
                lines.length_ns += line.length_ns;
                lines.end_ns = line.end_ns();
            }
            _ => alone += 1,
        }
    }
    (pairs, alone)
}

fn median(mut all: Vec<i64>) -> i64 {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(0)
}

/// Whether both agree. The log's clock begins later and ends earlier than dwell's, by the cost of
/// logging.
fn is_alike(told_ns: i64, logged_ns: i64) -> bool {
    let (told_ns, logged_ns) = (told_ns as f64, logged_ns as f64);
    (0.9 * logged_ns - CALLBACKS_NS..=1.2 * logged_ns + CALLBACKS_NS).contains(&told_ns)
}

/// How long those are, told and logged, in ms, that are not alike. Where a thread had to wait for a
/// processor between our clock and the log's, only one of them has that wait.
fn unlike_ms(lengths: &[(i64, i64)]) -> [f64; 2] {
    let unlike = lengths.iter().filter(|it| !is_alike(it.0, it.1));
    unlike.fold([0.0; 2], |[told_ms, logged_ms], it| {
        [told_ms + it.0 as f64 / 1e6, logged_ms + it.1 as f64 / 1e6]
    })
}

/// Detects pauses that are missing or told twice (10 %), and all told 0.3 ms early or late. The
/// log's clock begins later and ends earlier by what writing the log costs, some us to tens of us
/// of pauses of ms. False alarm: not by chance on an idle machine.
#[test]
fn measured_pauses_equal_the_collectors_log() {
    each(&turn(&both()), |jdk| {
        for collector in turn_beside_jdk(&COLLECTORS) {
            let place = Place::new("gc-pauses");
            let log = place.path("gc.log");
            // Lines at the beginning of pauses would be written in them.
            let pauses = if collector == "UseZGC" {
                "gc+phases"
            } else {
                "gc"
            };
            let logging = format!("-Xlog:{pauses}=info:file={}:timenanos", log.display());
            let flags = [&format!("-XX:+{collector}"), "-Xmx256m", logging.as_str()];
            let (view, _) = record(jdk, &place, "Gc", "seconds=3", &flags);
            let logged = logged_pauses(&log, &view.recording);
            let profile = Profile::from_recording(view.recording);
            let of = |pause: &dwell_profile::Stretch| Pause {
                begin_ns: pause.time_ns as i64,
                length_ns: pause.duration_ns as i64,
            };
            let told: Vec<Pause> = profile.stretches().of::<GcPause>().iter().map(of).collect();
            let sum = |all: &[Pause]| all.iter().map(|it| it.length_ns).sum::<i64>() as f64 / 1e6;
            let (pairs, alone) = paired(&told, &logged);
            let early = pairs
                .iter()
                .map(|(i, line)| line.end_ns - told[*i].end_ns());
            let early_ns = median(early.collect());
            let lengths = pairs
                .iter()
                .map(|(i, line)| (told[*i].length_ns, line.length_ns));
            let lengths: Vec<_> = lengths.collect();
            let [told_waited, logged_waited] = unlike_ms(&lengths);
            // G1's clock goes on for 10 to 50 us around its callbacks: half of short pauses.
            let least_ns = if collector == "UseG1GC" { 500_000 } else { 0 };
            let lengths: Vec<_> = lengths.iter().filter(|it| it.1 >= least_ns).collect();
            let unlike = lengths.iter().filter(|it| !is_alike(it.0, it.1));
            let unlike: Vec<_> = unlike.collect();
            println!(
                "{} {collector}: {} pauses of {:.1} ms, logged {} of {:.1} ms, {alone} of \
                 them alone, {} of {} not alike, told to end {early_ns} ns before the log's line",
                jdk.feature,
                told.len(),
                sum(&told),
                logged.len(),
                sum(&logged),
                unlike.len(),
                lengths.len()
            );
            assert!(logged.len() > 5, "{collector}");
            // Of long pauses all together are as long; the short ones of a concurrent collector are
            // shorter than a wait for a processor between our clock and the log's.
            let ratio = (sum(&told) - told_waited) / (sum(&logged) - logged_waited);
            assert!(
                (0.9..=1.2).contains(&ratio) || collector == "UseZGC",
                "{collector}: {ratio}"
            );
            assert!(
                (-ENDS_NS..=ENDS_NS).contains(&early_ns),
                "{collector}: {early_ns} ns"
            );
            // A line that had to wait for a processor is written long after its pause. The JVM's
            // end is not recorded: one more.
            assert!(alone * 10 <= logged.len() + 10, "{collector}: {alone}");
            // A thread may have to wait between dwell's clock and the log's: up to one in four.
            assert!(unlike.len() * 4 <= lengths.len(), "{collector}: {unlike:?}");
            let text = dwell_report::text(&profile);
            assert!(text.contains("GC pause"), "{text}");
        }
    });
}

/// Of the collectors one in turn.
const COLLECTORS: [&str; 4] = ["UseG1GC", "UseSerialGC", "UseParallelGC", "UseZGC"];

fn number(event: &GenericEvent, field: &str) -> f64 {
    match event.get(field) {
        Some(Value::DurationNs(ns) | Value::Int(ns)) => *ns as f64,
        other => panic!("{field}: {other:?}"),
    }
}

/// The sum of a thread's accounts, and their period in ns since the epoch.
#[derive(Clone, Copy, Debug)]
struct Account {
    since_ns: u64,
    until_ns: u64,
    duration_ns: f64,
    cpu_ns: f64,
    waited_ns: f64,
    turns: f64,
}

impl Account {
    /// The time in which it was neither on a processor nor ready.
    fn missing_ns(&self) -> f64 {
        self.duration_ns - self.cpu_ns - self.waited_ns
    }
}

/// The accounts of the threads that are always busy, by name.
fn busy_accounts(recording: &Recording) -> BTreeMap<String, Account> {
    let mut threads: BTreeMap<String, Account> = BTreeMap::new();
    for event in recording.events_named("dwell.ThreadTime") {
        let Some(Value::Thread(place)) = event.get("sampledThread") else {
            panic!("{event:?}");
        };
        let thread = &recording.threads[*place as usize];
        let name = thread.java_name.as_deref().unwrap_or(&thread.os_name);
        if !name.starts_with("steady-") {
            continue;
        }
        let duration_ns = number(event, "duration");
        let until_ns = event.time_ns + duration_ns as u64;
        let account = threads.entry(name.to_owned()).or_insert(Account {
            since_ns: event.time_ns,
            until_ns,
            duration_ns: 0.0,
            cpu_ns: 0.0,
            waited_ns: 0.0,
            turns: 0.0,
        });
        account.since_ns = account.since_ns.min(event.time_ns);
        account.until_ns = account.until_ns.max(until_ns);
        account.duration_ns += duration_ns;
        account.cpu_ns += number(event, "cpu");
        account.waited_ns += number(event, "waited");
        account.turns += number(event, "turns");
    }
    threads
}

/// The machine's accounts of some part of a time, summed up.
#[derive(Clone, Copy, Debug, Default)]
struct MachineSum {
    accounts: u64,
    all_ns: f64,
    busy_ns: f64,
    own_ns: f64,
    idle_ns: f64,
    stolen_ns: f64,
}

fn machine_sum(recording: &Recording, is_meant: impl Fn(u64, u64) -> bool) -> MachineSum {
    let mut sum = MachineSum::default();
    for event in recording.events_named("dwell.Machine") {
        let duration_ns = number(event, "duration");
        if is_meant(event.time_ns, event.time_ns + duration_ns as u64) {
            sum.accounts += 1;
            sum.all_ns += duration_ns * number(event, "processors");
            sum.busy_ns += number(event, "busy");
            sum.own_ns += number(event, "own");
            sum.idle_ns += number(event, "idle");
            sum.stolen_ns += number(event, "stolen");
        }
    }
    sum
}

/// The time that all processes used is not less than the time of this one, and does not exceed the
/// machine's.
fn machine_holds_the_process(recording: &Recording, busy: &BTreeMap<String, Account>) {
    let sum = machine_sum(recording, |_, _| true);
    println!("{sum:?}");
    // The kernel counts a tick for the thread that runs when it comes: of hundreds of ticks.
    assert!(sum.busy_ns >= 0.85 * sum.own_ns, "{sum:?}");
    assert!(
        sum.own_ns <= 1.05 * sum.all_ns && sum.own_ns > 0.0,
        "{sum:?}"
    );
    // While six threads always run they use what others leave, if that is not more. How long the
    // JVM's begin waits for a disk is another matter.
    let since_ns = busy.values().map(|it| it.since_ns).max().expect("threads");
    let until_ns = busy.values().map(|it| it.until_ns).min().expect("threads");
    // Threads are read after the machine, at both ends. The account before theirs begins too early,
    // and so does each first one.
    let sum = machine_sum(recording, |from, to| {
        from + LEAST_NS > since_ns && to <= until_ns
    });
    println!("meanwhile: {sum:?}");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if processors <= 6 {
        assert!(sum.accounts > 0, "{busy:?}");
        assert!(sum.idle_ns <= 0.5 * sum.all_ns, "{sum:?}");
    }
}

/// The machine's accounts are not of shorter times.
const LEAST_NS: u64 = 500_000_000;
/// A thread's time on a processor is brought up to date when the kernel's tick comes or it leaves:
/// 100 times a second at least.
const TICK_NS: f64 = 10e6;

/// A thread that always has something to do is on a processor or waits for one.
///
/// Detects time that is neither: 2 %, and one wait for a processor at either end of a thread's
/// account, of which six on two processors last up to 50 ms. False alarm: not by chance.
#[test]
fn measured_busy_threads_run_or_wait_for_a_processor() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("thread-time");
        let (view, truths) = record(jdk, &place, "Steady60", "seconds=5 threads=6", &[]);
        let recording = &view.recording;
        // The JVM has compiled what is hot, and counted that.
        let compiled = recording.events_named("dwell.Compilers");
        let sums = compiled.fold([0.0; 2], |[count, ns], event| {
            [
                count + number(event, "compilations"),
                ns + number(event, "compilationTime"),
            ]
        });
        assert!(sums[0] >= 1.0 && sums[1] > 0.0, "{sums:?}");
        let busy = busy_accounts(recording);
        assert_eq!(busy.len(), 6, "{busy:?}");
        machine_holds_the_process(recording, &busy);
        nothing_is_missing(&view, &busy, &truths);
        cpu_time_is_true(&view, &busy, &truths);
    });
}

/// The time of threads that is in no account has three causes. The hypervisor took it while they
/// ran, the JVM stopped them, or they waited for a page of memory from a disk. None of these waits
/// is longer than the longest gap.
///
/// A wait is recorded when it is over. The wait at the first account is therefore too much, and the
/// wait at the last account is missing. So is time being stolen at that moment, which the machine
/// does not know yet. None of these is longer than the longest time without a processor of any
/// thread, which the program measures. The same limit holds for the time between the reading of an
/// account and of the clock. 2 % are for interrupts, which some kernels count for no thread.
fn nothing_is_missing(view: &View, busy: &BTreeMap<String, Account>, truths: &Truths) {
    let gap_ns = truths.number("largest_gap_ns") as f64;
    let since_ns = busy.values().map(|it| it.since_ns).min().expect("threads");
    let until_ns = busy.values().map(|it| it.until_ns).max().expect("threads");
    let is_common = |from, to| from < until_ns && to > since_ns;
    let stolen_ns = machine_sum(&view.recording, is_common).stolen_ns;
    let profile = Profile::from_recording(view.recording.clone());
    let stops = profile.safepoints().iter();
    let stopped_ns = stops.map(|stop| stop.duration_ns()).sum::<u64>() as f64;
    let faults = truths.number("major_faults");
    println!("gap {gap_ns:.0} ns, stolen {stolen_ns:.0} ns, stopped {stopped_ns:.0} ns");
    println!("{faults} pages read");
    let stopped_ns = stopped_ns + faults as f64 * gap_ns;
    let mut missing_ns = 0.0;
    let mut may_miss_ns = stolen_ns;
    for (name, account) in busy {
        println!(
            "{name}: {:.0} ns missing of {account:?}",
            account.missing_ns()
        );
        let edge_ns = gap_ns + TICK_NS + 0.02 * account.duration_ns;
        let off_ns = account.missing_ns();
        assert!(off_ns >= -edge_ns, "{name}: {off_ns} ns");
        let most_ns = stolen_ns + stopped_ns + edge_ns;
        assert!(off_ns <= most_ns, "{name}: {off_ns} ns of {most_ns}");
        assert!(account.turns > 0.0, "{name}");
        missing_ns += off_ns;
        may_miss_ns += stopped_ns + edge_ns;
    }
    // At any moment, each processor can lose time from only one of them.
    assert!(
        missing_ns <= may_miss_ns,
        "{missing_ns} ns of {may_miss_ns}"
    );
}

/// When each of the threads was sampled first and last, in ns since the epoch.
fn sampled(view: &View) -> BTreeMap<&str, (u64, u64)> {
    let mut times: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for sample in view.samples() {
        let time_ns = sample.sample.time_ns;
        let span = times.entry(sample.thread()).or_insert((time_ns, time_ns));
        *span = (span.0.min(time_ns), span.1.max(time_ns));
    }
    times
}

/// The accounts cover all time except before the first and after the last one, and all CPU time
/// except the amount that fits into that.
///
/// The first account is the next one after a thread's first sample. Each account needs a sample
/// since the one before. So the last one follows a sample with a gap before it.
fn cpu_time_is_true(view: &View, busy: &BTreeMap<String, Account>, truths: &Truths) {
    let truth_ns = truths.ns("steadyRoot") as f64;
    let elapsed_ns = truths.number("elapsed_ns") as f64;
    let gap_ns = truths.number("largest_gap_ns");
    let cpu_ns: f64 = busy.values().map(|it| it.cpu_ns).sum();
    // One account reads all threads at the same time, so the machine's events show their distance.
    let apart = view.recording.events_named("dwell.Machine");
    let apart_ns = apart.filter_map(|event| event.int("duration")).max();
    let apart_ns = apart_ns.expect("accounts").cast_unsigned();
    let sampled = sampled(view);
    let mut covered_ns = f64::INFINITY;
    for (name, account) in busy {
        let (first_ns, last_ns) = sampled[name.as_str()];
        let is_whole = account.since_ns <= first_ns + apart_ns + gap_ns
            && account.until_ns + apart_ns + 2 * gap_ns >= last_ns;
        assert!(
            is_whole,
            "{name}: {account:?} of {first_ns} to {last_ns}, {apart_ns} apart"
        );
        covered_ns = account.duration_ns.min(covered_ns);
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let untold_ns = processors * (elapsed_ns - covered_ns);
    let slack_ns = 0.02 * truth_ns + TICK_NS * busy.len() as f64;
    println!("{cpu_ns:.0} of {truth_ns:.0} ns, at most {untold_ns:.0} not told");
    assert!(cpu_ns <= truth_ns + slack_ns, "{cpu_ns} of {truth_ns}");
    assert!(
        cpu_ns + untold_ns + slack_ns >= truth_ns,
        "{cpu_ns} and {untold_ns} of {truth_ns}"
    );
}

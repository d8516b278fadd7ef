//! The files of recordings: after `kill -9`, on a full disk, in many chunks, with a limit of size.

use dwell_e2e::{
    Jdk, Place, Program, Starter, View, both, cpu_time, each, jfr_tool, must, stolen_ns, turn,
    verify, waited_ns,
};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

/// Waits for something to become true; not for longer than any machine needs.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{what} did not come about"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn steady(jdk: &Jdk, place: &Place, seconds: u32, options: &str) -> Program {
    let arguments = format!("seconds={seconds}");
    let mut program = Starter::new(jdk, place, "Steady60")
        .with(&arguments)
        .start();
    program.tell(&format!("start,{options}"));
    program.pass();
    program
}

/// Our reader, the JDK's reader on 17 and 25 and the `jfr print` of 25 agree on the number of
/// samples.
#[track_caller]
fn check_readable(file: &Path, samples: usize) {
    for jdk in both() {
        let found = verify(jdk, file, &[]);
        let count = found
            .events
            .get("jdk.ExecutionSample")
            .copied()
            .unwrap_or(0);
        must!(count == samples as u64, "JDK {}: {count}", jdk.feature);
    }
    let newest = *both().last().expect("two JDKs");
    let printing = [
        "print",
        "--stack-depth",
        "1",
        "--events",
        "jdk.ExecutionSample",
    ];
    let printed = jfr_tool(newest, &printing, file);
    let events = printed
        .lines()
        .filter(|l| l.starts_with("jdk.ExecutionSample {"))
        .count();
    must!(events == samples, "{events} printed of {samples}");
}

/// Detects an omitted flush. The file may lack the time since the last flush, and the drainer's
/// backlog, which is measured. False alarm: not by chance.
#[test]
fn measured_kill_9_loses_the_last_second_only() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("killed");
        let file = place.path("k.jfr");
        let stolen_before = stolen_ns();
        let mut program = steady(
            jdk,
            &place,
            600,
            &format!("cpu=5ms,file={}", file.display()),
        );
        let used_before = cpu_time(program.pid).total_ns();
        let mut marks = Vec::new();
        until("the JVM used 3 s", || {
            let used = cpu_time(program.pid).total_ns() - used_before;
            marks.push((SystemTime::now(), used));
            used > 3_000_000_000
        });
        let held_up = waited_ns(program.pid, "dwell-drainer") + stolen_ns() - stolen_before;
        let flushed = std::fs::metadata(&file).unwrap().modified().unwrap();
        let since = flushed.elapsed().unwrap_or_default();
        program.child.kill().unwrap();
        program.child.wait().unwrap();
        let view = View::read(&file);
        view.check_failures();
        let kept = view.weight_ns();
        // A flush a second, unless the drainer has no processor.
        let held_up = Duration::from_nanos(held_up);
        assert!(
            since <= Duration::from_millis(1100) + held_up,
            "{since:?} after a flush, held up {held_up:?}"
        );
        // The time used a tenth of a second before that flush has been drained by then. Exceptions
        // are an interval of each of ten threads, two of the kernel's ticks, and the drainer's
        // delay.
        let sure = flushed - Duration::from_millis(100) - held_up;
        let then = marks.iter().filter(|(time, _)| *time <= sure);
        let then = then.map(|(_, used)| *used).max().unwrap_or(0);
        println!(
            "JDK {}: kept {kept} of {then} ns, {since:?} after a flush, held up {held_up:?}",
            jdk.feature
        );
        assert!(then > 500_000_000, "{then} ns");
        assert!(kept + 70_000_000 >= then, "kept {kept} of {then} ns");
        check_readable(&file, view.recording.samples.len());
    });
}

/// Detects samples lost at a change of chunks: each is worth 0.1 ms of 2.5 s. Weights scatter by
/// less than 1 ms in all; 2 % and 20 ms are for the moments at which the process's clock is read.
/// False alarm: not by chance.
#[test]
fn measured_chunks_change_without_losing_a_sample() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("chunks");
        let file = place.path("c.jfr");
        let options = format!("cpu=100us,chunksize=256k,file={}", file.display());
        let mut program = Starter::new(jdk, &place, "Accuracy")
            .with("seconds=2 threads=2 cpu_ms=2500")
            .start();
        program.tell(&format!("start,{options}"));
        let _ = program.work();
        let status = program.tell("stop");
        program.end();
        let view = View::read(&file);
        view.check_failures();
        let reported: usize = status
            .lines()
            .find_map(|line| line.strip_prefix("samples="))
            .and_then(|n| n.parse().ok())
            .unwrap();
        assert!(
            view.recording.chunks.len() >= 2,
            "{} chunks",
            view.recording.chunks.len()
        );
        must!(view.recording.samples.len() == reported, "{status}");
        // An overloaded machine may have no slot for a sample. The weight of the sample then moves
        // to the next one of the thread, or is recorded as lost if the thread has ended.
        let weight = view.weight_ns() + view.sum("dwell.Lost", "weight");
        let cpu = view.cpu_load_ns();
        let slack = cpu / 50 + 20_000_000;
        assert!(
            weight.abs_diff(cpu) <= slack,
            "{weight} ns of {cpu} ns, {slack}"
        );
        check_readable(&file, reported);
    });
}

#[test]
fn a_bounded_recording_keeps_two_files() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("bounded");
        let file = place.path("b.jfr");
        let options = format!(
            "start,cpu=100us,maxsize=1m,chunksize=256k,file={}",
            file.display()
        );
        let mut program = Starter::new(jdk, &place, "Accuracy")
            .with("seconds=600 threads=2")
            .start();
        program.tell(&options);
        program.pass();
        // How much it writes in a second depends on the machine; it goes on until a third file is
        // begun, for which the first has to go.
        let kept = place.path("b.1.jfr");
        let begun = || std::fs::metadata(&kept).ok().map(|file| file.ino());
        until("a file is full", || begun().is_some());
        let first = begun();
        until("the next one is full, too", || {
            begun().is_some_and(|file| Some(file) != first)
        });
        let status = program.tell("stop");
        drop(program);
        let mut names: Vec<_> = std::fs::read_dir(&place.dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".jfr"))
            .collect();
        names.sort();
        assert_eq!(names, ["b.1.jfr", "b.jfr"], "{status}");
        let size = |path: &Path| std::fs::metadata(path).unwrap().len();
        let all = size(&file) + size(&kept);
        // The data of one flush can exceed each limit: a second of two threads.
        assert!(all < 6 << 20, "{all} bytes");
        let (old, new) = (View::read(&kept), View::read(&file));
        old.check_failures();
        let latest = old.samples().map(|s| s.sample.time_ns).max().unwrap();
        let first = new.samples().map(|s| s.sample.time_ns).min().unwrap();
        assert!(
            latest <= first + 1_000_000_000,
            "the older file has the older samples"
        );
        let both_files = old.recording.samples.len() + new.recording.samples.len();
        println!(
            "JDK {}: {all} bytes, {both_files} samples kept; {status}",
            jdk.feature
        );
        check_readable(&kept, old.recording.samples.len());
        check_readable(&file, new.recording.samples.len());
    });
}

/// The error in the status that prevents writing.
fn trouble(program: &Program) -> String {
    let status = program.tell("status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("trouble="));
    line.unwrap_or("").to_owned()
}

/// The next file cannot be made for a while: a folder has its name. The bound is kept, what is
/// dropped is counted, and rotation goes on afterwards.
#[test]
fn a_bounded_recording_outlives_a_file_that_cannot_be_made() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("stuck");
        let (file, kept) = (place.path("b.jfr"), place.path("b.1.jfr"));
        let obstacle = place.path("b.next.jfr");
        std::fs::create_dir(&obstacle).unwrap();
        let options = format!(
            "start,cpu=100us,maxsize=1m,chunksize=256k,file={}",
            file.display()
        );
        let mut program = Starter::new(jdk, &place, "Accuracy")
            .with("seconds=600 threads=2")
            .start();
        program.tell(&options);
        program.pass();
        until("the trouble is told", || {
            trouble(&program).contains("cannot make the next file")
        });
        let size = || std::fs::metadata(&file).unwrap().len();
        let before = size();
        std::thread::sleep(std::time::Duration::from_secs(3));
        assert_eq!(size(), before, "nothing is written beyond the bound");
        assert!(!kept.exists());
        std::fs::remove_dir(&obstacle).unwrap();
        until("the trouble is over", || trouble(&program).is_empty());
        assert!(kept.exists());
        let status = program.tell("stop");
        drop(program);
        let lost = |file| View::read(file).sum("dwell.Gap", "lostSamples");
        // It may be full once more.
        assert!(lost(&file) + lost(&kept) > 0, "{status}");
        check_readable(&kept, View::read(&kept).recording.samples.len());
    });
}

/// A file system of its own that is small; unmounted with this value.
struct Small<'a> {
    place: &'a Place,
}

impl Small<'_> {
    fn mount(place: &Place) -> Option<Small<'_>> {
        std::fs::create_dir_all(place.path("small")).unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=16m", "none"])
            .arg(place.path("small"))
            .status();
        status
            .is_ok_and(|status| status.success())
            .then_some(Small { place })
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.place.path("small"))
            .status();
    }
}

/// Detects weight that is neither in the file nor recorded as lost: 2 % and an interval for each of
/// 30 threads. False alarm: not by chance.
#[test]
fn measured_full_disk_is_reported_once_and_recording_resumes() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("full");
        let Some(small) = Small::mount(&place) else {
            println!("not tried: only root may mount a small file system");
            return;
        };
        let file = place.path("small/f.jfr");
        let filler = place.path("small/filler");
        // Deep stacks that all differ: many megabytes in a second, more than may wait in memory.
        let arguments = "seconds=600 threads=2 kinds=recursion3000,recursion1000";
        let mut program = Starter::new(jdk, &place, "Accuracy")
            .with(arguments)
            .start();
        program.tell(&format!("start,cpu=200us,file={}", file.display()));
        program.pass();
        until("some is written", || {
            std::fs::metadata(&file).is_ok_and(|m| m.len() > 20_000)
        });
        // `dd` fills what is left; it fails when there is no room, as it shall.
        let mut dd = Command::new("dd");
        let filled = dd
            .arg("if=/dev/zero")
            .arg(format!("of={}", filler.display()))
            .output();
        assert!(!filled.unwrap().status.success(), "the disk is full");
        until("trouble is told", || {
            trouble(&program).contains("cannot write")
        });
        std::thread::sleep(Duration::from_millis(2500));
        // Attempts to write go on; in between nothing half-written is left.
        let meanwhile = place.path("meanwhile.jfr");
        until("the file is whole while the disk is full", || {
            std::fs::copy(&file, &meanwhile).unwrap();
            let view = View::read_damaged(&meanwhile);
            view.recording.warnings.is_empty()
        });
        let samples = View::read(&meanwhile).recording.samples.len();
        check_readable(&meanwhile, samples);
        std::fs::remove_file(&filler).unwrap();
        until("the trouble is over", || trouble(&program).is_empty());
        let _ = program.tell("stop");
        let said = program.errors();
        let told = said
            .lines()
            .filter(|line| line.contains("cannot write"))
            .count();
        assert_eq!(told, 1, "{said}");
        let copy = place.path("copy.jfr");
        std::fs::copy(&file, &copy).unwrap();
        drop(small);
        drop(program);
        let view = View::read(&copy);
        check_gap(&view);
        check_readable(&copy, view.recording.samples.len());
    });
}

/// Two JVMs with one file, as from options for all JVMs of a build: the second one runs on without
/// a recording and says why, and the first one's is whole. (Exact.)
#[test]
fn a_file_that_another_jvm_records_into_is_left_alone() {
    each(&turn(&both()), |jdk| {
        let places = [Place::new("first-jvm"), Place::new("second-jvm")];
        let file = places[0].path("two.jfr");
        let options = format!("start,cpu=10ms,file={}", file.display());
        let start = |place| {
            let starter = Starter::new(jdk, place, "Steady60").with("seconds=1");
            starter.agent(&options).start()
        };
        let mut first = start(&places[0]);
        let mut second = start(&places[1]);
        let _ = second.work();
        let said = second.errors();
        second.end();
        must!(
            said.contains("another recording is being written to it") && said.contains("%p"),
            "{said}"
        );
        let _ = first.work();
        let said = first.errors();
        first.end();
        must!(!said.contains("dwell:"), "{said}");
        check_readable(&file, View::read(&file).recording.samples.len());
    });
}

/// Either all samples waited in memory and are in the file, or a gap is recorded with its samples.
#[track_caller]
fn check_gap(view: &View) {
    let gaps = view.recording.events_named("dwell.Gap").count();
    let lost = view.sum("dwell.Gap", "lostSamples");
    println!(
        "{gaps} gaps, {lost} samples lost of {}",
        view.recording.samples.len()
    );
    let weight = view.weight_ns() + view.sum("dwell.Gap", "lostWeight");
    let cpu = view.cpu_load_ns();
    assert!(
        weight.abs_diff(cpu) <= cpu / 50 + 30 * 200_000,
        "{weight} ns of {cpu} ns"
    );
    assert!(gaps == 0 || lost > 0, "a gap has lost something");
}

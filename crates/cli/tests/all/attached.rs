//! Recording of running JVMs, from attach to the files, on every available JDK.

use crate::harness::common::{is_root, jdks, modern};
use crate::harness::{Busy, Place, finish, signal, until};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::process::Command;

/// All JDKs in use in production, and older ones if they are installed.
fn each_jdk(name: &str, test: impl Fn(&Place, &mut Busy)) {
    for jdk in jdks() {
        let place = Place::new(&format!("{name}-{}", jdk.feature));
        test(&place, &mut Busy::start(&jdk));
    }
}

#[test]
fn recording_has_the_busy_method_on_top_and_its_files() {
    each_jdk("attached", |place, busy| {
        // Fewer than ten samples give no shares, and a busy machine may leave few.
        let args = [
            "record",
            "-d",
            "2",
            "-i",
            "1ms",
            "-o",
            "two.jfr",
            &busy.pid(),
        ];
        let done = place.dwell(&args).exits(0);
        assert_eq!(place.files(), ["two.html", "two.jfr"]);
        assert!(done.out.contains("top frames by self CPU"), "{done:?}");
        assert!(
            done.out.ends_with(&format!(
                "{}\nOpen it: dwell view two.jfr\n",
                place.path("two.html").display()
            )),
            "{done:?}"
        );
        assert!(place.samples("two.jfr") > 0);
        place.has_busy_stack("two.jfr");
        let page = std::fs::read_to_string(place.path("two.html")).unwrap();
        assert!(page.starts_with("<!"), "{}", &page[..100]);
        busy.assert_running();
    });
}

#[test]
fn second_recording_of_a_jvm_works_like_the_first() {
    let place = Place::new("twice");
    let busy = Busy::start(&modern());
    for name in ["one", "two"] {
        place
            .dwell(&["record", "-d", "1", "-o", name, &busy.pid()])
            .exits(0);
        assert!(place.samples(&format!("{name}.jfr")) > 0);
    }
}

#[test]
fn safepoints_are_shown_live_and_leave_no_file() {
    let place = Place::new("safepoints");
    let jdk = modern();
    let mut resting = Busy::resting(&jdk);
    let args = ["safepoints", "--least", "10us", &resting.pid()];
    let mut child = place.dwell_until(&args, "watching JVM");
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let jcmd = jdk.java().with_file_name("jcmd");
    let mut out = String::new();
    for round in 0..5 {
        let mut asked = Command::new(&jcmd);
        // It may need longer than its default timeout.
        asked.arg("-J-Dsun.tools.attach.attachTimeout=120000");
        let asked = asked.args([&resting.pid(), "GC.run"]).output();
        assert!(asked.unwrap().status.success());
        // Printed during the recording; the last one at the end.
        if round < 4 {
            output.read_line(&mut out).unwrap();
        }
    }
    signal(child.id(), Signal::INT);
    output.read_to_string(&mut out).unwrap();
    let done = finish(child).exits(0);
    let (live, sums) = out.split_once("\n\n").expect("lines, then sums");
    assert!(live.lines().count() >= 5, "{done:?}");
    assert!(
        live.lines().all(|line| line.contains(" to reach  ")),
        "{done:?}"
    );
    assert!(sums.contains("Safepoints by operation"), "{sums}");
    assert!(place.files().is_empty(), "{:?}", place.files());
    let status = place.dwell(&["status", &resting.pid()]).exits(0);
    assert!(status.out.contains("stopped"), "{status:?}");
    resting.assert_running();
}

#[test]
fn ctrl_c_ends_early_and_keeps_everything() {
    let place = Place::new("ctrl-c");
    let mut busy = Busy::start(&modern());
    let args = ["record", "-d", "1h", "-o", "early", &busy.pid()];
    let child = place.dwell_until(&args, "recording JVM");
    std::thread::sleep(std::time::Duration::from_secs(1));
    signal(child.id(), Signal::INT);
    let done = finish(child).exits(0);
    assert!(done.out.contains("early.html"), "{done:?}");
    assert!(place.samples("early.jfr") > 0);
    let status = place.dwell(&["status", &busy.pid()]).exits(0);
    let first = "state      stopped; last recording:\n";
    assert!(status.out.starts_with(first), "{status:?}");
    for part in [
        "samples    ",
        "stacks     walked from snapshots",
        "handler    ",
    ] {
        assert!(status.out.contains(part), "{part}: {status:?}");
    }
    busy.assert_running();
}

#[test]
fn second_ctrl_c_exits_at_once() {
    let place = Place::new("ctrl-c-2");
    let mut busy = Busy::start(&modern());
    let child = place.dwell_until(&["record", "-o", "x", &busy.pid()], "recording JVM");
    // A stopped process cannot handle the first signal before the second one arrives.
    signal(child.id(), Signal::STOP);
    signal(child.id(), Signal::INT);
    signal(child.id(), Signal::TERM);
    signal(child.id(), Signal::CONT);
    assert_eq!(finish(child).code(), Some(130));
    busy.assert_running();
}

#[test]
fn killed_jvm_leaves_flushed_data() {
    each_jdk("killed", |place, busy| {
        let args = ["record", "-o", "killed", &busy.pid()];
        let child = place.dwell_until(&args, "recording JVM");
        let grown = || std::fs::metadata(place.path("killed.jfr")).map_or(0, |data| data.len());
        until("a flush", || grown() > 0);
        let first = grown();
        until("another flush", || grown() > first);
        signal(busy.pid, Signal::KILL);
        busy.child.wait().unwrap();
        let done = finish(child).exits(0);
        assert!(done.out.contains("killed.html"), "{done:?}");
        place.has_busy_stack("killed.jfr");
    });
}

#[test]
fn stopped_jvm_is_refused_at_once() {
    let place = Place::new("stopped");
    let mut busy = Busy::start(&modern());
    let pid = busy.pid();
    // First without a socket, then with one that still accepts connections.
    for known in [false, true] {
        signal(busy.pid, Signal::STOP);
        until("the stop", || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            stat.contains(") T ")
        });
        let commands: &[&str] = match known {
            true => &["record", "start", "stop", "dump", "status"],
            false => &["record", "start"],
        };
        let done: Vec<_> = commands
            .iter()
            .map(|command| place.dwell(&[command, &pid]))
            .collect();
        signal(busy.pid, Signal::CONT);
        for done in done {
            let done = done.exits(1);
            let remedy = format!("process {pid} is stopped; resume it first: kill -CONT {pid}");
            assert!(done.error().ends_with(&remedy), "{done:?}");
        }
        assert!(place.files().is_empty(), "{:?}", place.files());
        place.dwell(&["start", "-o", "x.jfr", &pid]).exits(0);
        place.dwell(&["stop", &pid]).exits(0);
        std::fs::remove_file(place.path("x.jfr")).unwrap();
    }
    busy.assert_running();
}

#[test]
fn late_answer_leaves_no_file() {
    let place = Place::new("late");
    let mut command = Command::new("bash");
    command.args(["-c", "exec \"$0\" \"$@\" 2>\"$LOG\""]);
    command.arg(modern().java()).env("LOG", place.path("log"));
    let mut resting = Busy::resting_elsewhere(command);
    let pid = resting.pid();
    place.dwell(&["start", "-o", "x.jfr", &pid]).exits(0);
    // A silent connection, because the listener serves one at a time.
    let socket = format!("/tmp/.java_pid{pid}");
    let silent = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let done = place.dwell(&["status", &pid]).exits(1);
    assert!(done.error().contains("did not answer"), "{done:?}");
    drop(silent);
    let log = || std::fs::read_to_string(place.path("log")).unwrap();
    until("the late answer", || {
        log().contains("cannot write the reply")
    });
    let text = log();
    let path = text.split("the reply to ").nth(1).unwrap();
    let path = std::path::Path::new(path.split(": ").next().unwrap());
    assert!(path.starts_with("/tmp/"), "{text}");
    assert!(!path.parent().unwrap().exists(), "{text}");
    place.dwell(&["stop", &pid]).exits(0);
    resting.assert_running();
}

/// A limit of the file size has the effect of a full disk on one JVM; answers fit into it.
#[test]
fn jvm_that_cannot_write_is_reported() {
    let place = Place::new("full");
    let mut limited = Command::new("bash");
    let script = "ulimit -f 4; exec \"$0\" -XX:-UsePerfData \"$@\"";
    limited.args(["-c", script]).arg(modern().java());
    let mut busy = Busy::elsewhere(limited);
    let pid = busy.pid();
    let done = place
        .dwell(&["record", "-d", "2", "-o", "full", &pid])
        .exits(1);
    let error = done.error();
    assert!(
        error.contains("nothing was recorded: cannot write ") && error.contains("full.jfr: "),
        "{done:?}"
    );
    assert!(place.files().is_empty(), "{:?}", place.files());
    place.dwell(&["start", "-o", "full.jfr", &pid]).exits(0);
    until("the trouble", || {
        let status = place.dwell(&["status", &pid]).exits(0);
        status.out.contains("trouble    cannot write ")
    });
    let stopped = place.dwell(&["stop", &pid]).exits(0);
    assert!(stopped.out.contains("; cannot write "), "{stopped:?}");
    busy.assert_running();
}

/// The recorded events change during a recording, and an impossible change is refused.
fn check_changes(place: &Place, pid: &str, name: &str) {
    let (was, now) = ("cpu=10ms,wall=20ms", "cpu=10ms,wall=20ms,lock=1ms");
    let changed = place.dwell(&["start", "-e", "cpu,wall,lock", pid]).exits(0);
    let told = format!("{name}: was {was}; now {now}; end it with: dwell stop {pid}\n");
    assert!(changed.out.ends_with(&told), "{changed:?}");
    for (words, part) in [
        (&["-e", "cpu,lock"][..], "add wall, as in -e cpu,wall"),
        (&["-i", "1ms"], "cpu=1ms"),
        (&["-e", "cpu,wall", "-o", "other"], "already recording to"),
        (&["-e", "cpu,wall", "--max-size", "64m"], "maxsize=64m"),
    ] {
        let refused = place.dwell(&[&["start"], words, &[pid]].concat()).exits(1);
        assert!(refused.error().contains(part), "{refused:?}");
    }
    let status = place.dwell(&["status", pid]).exits(0);
    assert!(
        status.out.contains(&format!("events     {now}\n")),
        "{status:?}"
    );
    assert!(status.out.contains("lock       "), "{status:?}");
    let changed = place.dwell(&["start", "-e", "cpu,wall", pid]).exits(0);
    let told = format!("{name}: was {now}; now {was}; end it with: dwell stop {pid}\n");
    assert!(changed.out.ends_with(&told), "{changed:?}");
}

#[test]
fn background_recording_runs_until_stopped() {
    each_jdk("own", |place, busy| {
        let pid = busy.pid();
        let started = place.dwell(&["start", "-o", "own-%p.jfr", &pid]).exits(0);
        let name = format!("own-{pid}.jfr");
        assert!(started.out.contains(&name), "{started:?}");
        let again = place.dwell(&["start", &pid]).exits(1);
        assert!(again.error().contains("already recording to"), "{again:?}");
        let record = place
            .dwell(&["record", "-d", "1", "-o", "other", &pid])
            .exits(1);
        assert!(
            record.error().contains("already recording to"),
            "{record:?}"
        );
        assert_eq!(
            place.files(),
            [name.as_str()],
            "a refused recording leaves no file"
        );
        std::thread::sleep(std::time::Duration::from_secs(1));
        let status = place.dwell(&["status", &pid]).exits(0);
        for part in ["state      running", "engine     ", &name, "samples    "] {
            assert!(status.out.contains(part), "{part}: {status:?}");
        }
        check_changes(place, &pid, &name);
        for command in ["dump", "stop"] {
            for output in ["none/x.jfr", "."] {
                let refused = place.dwell(&[command, "-o", output, &pid]).exits(1);
                let part = format!("-o {output} cannot be written");
                assert!(refused.error().contains(&part), "{refused:?}");
            }
        }
        place.dwell(&["dump", "-o", "copy.jfr", &pid]).exits(0);
        assert!(place.samples("copy.jfr") > 0);
        let stopped = place.dwell(&["stop", &pid]).exits(0);
        assert!(stopped.out.contains(&name), "{stopped:?}");
        assert!(place.samples(&name) >= place.samples("copy.jfr"));
        assert!(
            place
                .dwell(&["stop", &pid])
                .exits(1)
                .error()
                .contains("nothing is being recorded")
        );
        busy.assert_running();
    });
}

#[test]
fn agent_error_is_printed() {
    let place = Place::new("complaint");
    let mut busy = Busy::start(&modern());
    let done = place
        .dwell(&["start", "-o", "/proc/none/x.jfr", &busy.pid()])
        .exits(1);
    assert!(done.error().contains("/proc/none/x.jfr"), "{done:?}");
    let done = place.dwell(&["start", "-o", "a,b", &busy.pid()]).exits(2);
    assert!(done.error().contains("-o a,b: "), "{done:?}");
    busy.assert_running();
}

/// Detects a share that is taken of the whole recording's CPU time, which would be a half. Weights
/// match the CPU time within an interval of 1 ms for each thread at either end, less than 1 % of 4
/// s. The bound of 15 % is far from both. False alarm: not by chance.
#[test]
fn measured_part_of_a_recording_uses_its_own_cpu_time() {
    let place = Place::new("bounded");
    let busy = Busy::start(&modern());
    let pid = busy.pid();
    let args = ["start", "-o", "b.jfr", "-i", "1ms", "--max-age", "8s", &pid];
    place.dwell(&args).exits(0);
    // Two files of half the age, and the begin of a third one: the first is gone.
    let inode = || std::fs::metadata(place.path("b.1.jfr")).map(|file| file.ino());
    until("a second file", || inode().is_ok());
    let first = inode().ok();
    until("a third file", || inode().is_ok_and(|it| Some(it) != first));
    place.dwell(&["stop", &pid]).exits(0);
    let text = place.dwell(&["report", "b.1.jfr", "--text"]).exits(0).out;
    assert!(text.contains("warning    a part of a recording"), "{text}");
    let share = text.split(" % of the CPU time used").next().unwrap();
    let share = share.rsplit(' ').next().and_then(|it| it.parse().ok());
    let share: f64 = share.unwrap_or_else(|| panic!("{text}"));
    // Compared with the CPU time since the recording's start, it would be about a half. The
    // tolerance is an interval for each thread at either end.
    assert!((85.0..115.0).contains(&share), "{text}");
}

#[test]
fn awkward_output_names_are_written() {
    let place = Place::new("awkward");
    let busy = Busy::start(&modern());
    place
        .dwell(&["record", "-d", "1", "-o", "a,b %p.jfr", &busy.pid()])
        .exits(0);
    assert_eq!(place.files(), ["a,b %p.html", "a,b %p.jfr"]);
    assert!(place.samples("a,b %p.jfr") > 0);
}

#[test]
fn other_users_and_container_jvms_are_recorded_here() {
    if !is_root() {
        println!("skipped: only root may start JVMs as other users");
        return;
    }
    let place = Place::new("container");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--mount-proc", "sh", "-c"]);
    let inside = "mount -t tmpfs -o mode=1777 none /var/tmp && exec setpriv --reuid 4242 \
                  --regid 4242 --clear-groups \"$@\"";
    command.args([inside, "sh"]).arg(modern().java());
    // The mount of /tmp stays: the test programs' jar may be below it.
    let busy = Busy::elsewhere(command);
    let inner = only_child(busy.pid);
    let done = place
        .dwell(&["record", "-d", "1", "-o", "boxed", &inner])
        .exits(0);
    assert!(done.out.contains("boxed.html"), "{done:?}");
    place.has_busy_stack("boxed.jfr");
    let owner = std::os::unix::fs::MetadataExt::uid(&place.path("boxed.jfr").metadata().unwrap());
    assert_eq!(owner, 0, "the copy is ours");
    let left: Vec<_> = std::fs::read_dir("/tmp")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(&format!("dwell-{inner}-")))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    signal(inner.parse().unwrap(), Signal::KILL);
}

fn only_child(parent: u32) -> String {
    let path = format!("/proc/{parent}/task/{parent}/children");
    std::fs::read_to_string(path)
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .to_owned()
}

#[test]
fn live_stacks_support_repeat_group_and_json() {
    let (place, busy) = (Place::new("stacks"), Busy::start(&modern()));
    let pid = busy.pid();
    let all = [
        "stacks", "--json", "--native", "--repeat", "3", "-i", "50ms", &pid,
    ];
    let done = place.dwell(&all).exits(0);
    let looks = done.out.lines().map(serde_json::from_str);
    let looks: Vec<serde_json::Value> = looks.collect::<Result<_, _>>().unwrap();
    assert_eq!(looks.len(), 3, "{done:?}");
    let times = looks.iter().map(|it| it["timeMillis"].as_u64().unwrap());
    let times: Vec<u64> = times.collect();
    // The pace is even from the first dump on: a long dump leaves less time to the next. The first
    // one may begin late on a busy machine.
    assert!(times.is_sorted() && times[2] >= times[0] + 50, "{times:?}");
    for look in &looks {
        let threads = look["threads"].as_array().unwrap();
        let named = |name: &str| threads.iter().find(|it| it["name"] == name);
        assert!(
            named("main").is_some_and(|it| it["kind"] == "platform"),
            "{look}"
        );
        assert!(threads.iter().any(|it| it["kind"] == "native"), "{look}");
        assert_eq!(look["pid"].to_string(), pid);
    }
    // Without `--native` there is no thread of the JVM, and equal threads are one entry.
    let done = place.dwell(&["stacks", "--group", &pid]).exits(0);
    assert!(!done.out.contains("native"), "{done:?}");
    let each = place.dwell(&["stacks", &pid]).exits(0);
    let entries = |text: &str| text.split("\n\n").count();
    assert!(
        entries(&done.out) <= entries(&each.out),
        "{done:?} {each:?}"
    );
    assert!(done.out.contains("\"main\""), "{done:?}");
}

#[test]
fn recording_of_a_killed_command_ends_when_its_time_is_over() {
    let place = Place::new("killed-command");
    let mut busy = Busy::start(&modern());
    let args = ["record", "-d", "2", "-o", "left", &busy.pid()];
    let mut child = place.dwell_until(&args, "recording JVM");
    signal(child.id(), Signal::KILL);
    child.wait().unwrap();
    let status = || place.dwell(&["status", &busy.pid()]).exits(0).out;
    until("the recording is over", || {
        status().starts_with("state      stopped")
    });
    let text = status();
    assert!(text.contains("because its time was over"), "{text}");
    assert!(place.samples("left.jfr") > 0);
    busy.assert_running();
}

#[test]
fn status_of_a_recording_says_when_it_ends() {
    let place = Place::new("left");
    let busy = Busy::start(&modern());
    let args = ["record", "-d", "1h", "-o", "left", &busy.pid()];
    let child = place.dwell_until(&args, "recording JVM");
    let status = place.dwell(&["status", &busy.pid()]).exits(0);
    let line = status.out.lines().find(|line| line.starts_with("ends "));
    let line = line.unwrap_or_else(|| panic!("{status:?}"));
    assert!(
        line.contains("if the command that started it is gone"),
        "{line}"
    );
    signal(child.id(), Signal::INT);
    finish(child).exits(0);
}

/// A shell without job control starts background programs with Ctrl-C ignored.
#[test]
fn ignored_ctrl_c_does_not_end_the_recording() {
    let place = Place::new("ignored");
    let mut busy = Busy::start(&modern());
    let script = "trap '' INT; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_dwell")]);
    command.args(["record", "-o", "it", &busy.pid()]);
    let mut child = place.started_until(&mut command, "recording JVM");
    signal(child.id(), Signal::INT);
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it has ended");
    signal(child.id(), Signal::TERM);
    finish(child).exits(0);
    busy.assert_running();
}

/// As after a terminal was closed: messages are lost, the recording is kept.
#[test]
fn record_without_stderr_keeps_the_recording() {
    let place = Place::new("untold");
    let mut busy = Busy::start(&modern());
    let mut command = place.command(&["record", "-d", "1", "-o", "it", &busy.pid()]);
    // Every write to it fails.
    let full = || {
        std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    command.stdout(full()).stderr(full());
    let _ = command.status().unwrap();
    let status = place.dwell(&["status", &busy.pid()]).exits(0);
    assert!(status.out.starts_with("state      stopped"), "{status:?}");
    assert!(place.samples("it.jfr") > 0);
    assert!(place.path("it.html").exists(), "{:?}", place.files());
    busy.assert_running();
}

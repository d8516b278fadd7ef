//! Other users: reading their JVMs from outside and recording them; root without its rights,
//! containers. Acting as other users needs root. Without root the tests print that they were
//! skipped.

use crate::harness::common::{Start, is_root, jdks, modern};
use crate::harness::{Done, Place, finish};
use std::process::{Command, Stdio};

const NOBODY: u32 = 65_534;

fn needs_root() -> bool {
    if !is_root() {
        eprintln!("not tried: only root may act as others");
    }
    !is_root()
}

/// Runs a copy of the command that every user may run, through setpriv(1).
fn with_less(place: &Place, rights: &[&str], args: &[&str]) -> Done {
    let copy = place.path("dwell");
    std::fs::copy(env!("CARGO_BIN_EXE_dwell"), &copy).unwrap();
    let mut command = Command::new("setpriv");
    command.args(rights).arg("--").arg(&copy).args(args);
    command.current_dir("/").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(command.spawn().expect("setpriv, of util-linux"))
}

#[test]
fn unreadable_process_is_refused_with_remedy() {
    if needs_root() {
        return;
    }
    let place = Place::new("permissions");
    let mut running = Start::new(&modern()).run();
    let pid = running.pid.to_string();
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let record = ["record", "--no-agent", "-d", "1", &pid];
    for args in [&["stacks", &pid][..], &record] {
        let done = with_less(&place, &nobody, args).exits(1);
        let text = format!("process {pid} belongs to user root; run dwell as root");
        assert!(done.error().contains(&text), "{done:?}");
        assert_eq!(done.out, "");
    }
    running.assert_untouched();
    // Root in a container that lacks the right to trace.
    let rights = ["--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"];
    let mut other = Start::new(&modern()).uid(NOBODY).run();
    let pid = other.pid.to_string();
    let done = with_less(&place, &rights, &["stacks", &pid]).exits(1);
    assert!(done.error().contains("CAP_SYS_PTRACE"), "{done:?}");
    let remedy = format!("or run dwell as user {NOBODY}");
    assert!(done.error().contains(&remedy), "{done:?}");
    other.assert_untouched();
    // With all rights, the process is readable for any owner.
    let done = place.dwell(&["stacks", &pid]).exits(0);
    assert!(
        done.out.contains("\tat Waiter.main(Waiter.java"),
        "{done:?}"
    );
    other.assert_untouched();
}

/// Runs the command as some user.
type Acts<'a> = &'a dyn Fn(&[&str]) -> Done;

/// A JVM's own user and root may both record it. The second user gets the file of the first one's
/// recording, in either order. Other users get the name of the JVM's owner.
#[test]
fn second_user_gets_the_first_recordings_file() {
    if needs_root() {
        return;
    }
    let place = Place::new("two-users");
    std::os::unix::fs::chown(&place.dir, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut running = Start::new(&modern()).uid(NOBODY).run();
    // A killed JVM of root with this id may have left its file.
    let _ = std::fs::remove_file(format!("/tmp/.java_pid{}", running.pid));
    let pid = running.pid.to_string();
    let owner = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let stranger = ["--reuid=4242", "--regid=4242", "--clear-groups"];
    let as_owner = |args: &[&str]| with_less(&place, &owner, args);
    let as_root = |args: &[&str]| place.dwell(args);
    let users: [(&str, Acts<'_>); 2] = [("owner", &as_owner), ("root", &as_root)];
    for (first, second) in [(0, 1), (1, 0)] {
        let ((name, first), (_, second)) = (users[first], users[second]);
        let file = place.path(&format!("{name}.jfr"));
        let file = file.to_str().unwrap();
        first(&["start", "-o", file, &pid]).exits(0);
        let other = place.path("other");
        let other = other.to_str().unwrap();
        let start = ["start", "-o", other, &pid];
        let record = ["record", "-d", "1", "-o", other, &pid];
        for args in [&start[..], &record] {
            let done = second(args).exits(1);
            let text = format!("JVM {pid}: already recording to {file}; use 'dwell stop' first");
            assert!(done.error().contains(&text), "{done:?}");
            assert_eq!(done.out, "");
        }
        for args in [&start[..], &["stop", &pid]] {
            let done = with_less(&place, &stranger, args).exits(1);
            let text = format!("process {pid} belongs to user nobody; run dwell as");
            assert!(done.error().contains(&text), "{done:?}");
        }
        let status = second(&["status", &pid]).exits(0);
        let told = status.out.contains("running") && status.out.contains(file);
        assert!(told, "{status:?}");
        let stopped = second(&["stop", &pid]).exits(0);
        assert!(stopped.out.contains(file), "{stopped:?}");
    }
    assert_eq!(place.files(), ["dwell", "owner.jfr", "root.jfr"]);
    running.assert_untouched();
}

#[test]
fn root_opens_perf_events_for_a_user_without_the_right() {
    if needs_root() {
        return;
    }
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    if paranoid.is_ok_and(|level| level.trim().parse().unwrap_or(2) < 2) {
        eprintln!("not tried: any user may open perf events with kernel frames");
        return;
    }
    const REASON: &[u8] = b"or sysctl: dwell record opens the events";
    let place = Place::new("perf-events");
    let mut running = Start::new(&modern()).uid(NOBODY).run();
    let pid = running.pid.to_string();
    let (name, file) = ("one", place.path("one.jfr"));
    place
        .dwell(&["record", "-d", "1", "-i", "1ms", "-o", name, &pid])
        .exits(0);
    let bytes = std::fs::read(file).unwrap();
    let has = |text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
    if has(b"can hang the machine") {
        eprintln!("not tried: this kernel's perf events are not used");
        return;
    }
    assert!(has(REASON) && has(b"perf cpu-clock, with kernel frames"));
    let report = place.dwell(&["report", "one.jfr", "--text"]).exits(0);
    assert!(!report.out.contains("perf-socket"), "{report:?}");
    let left = format!("dwell-{pid}-");
    for entry in std::fs::read_dir("/tmp").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        assert!(!name.starts_with(&left), "{name} is left over");
    }
    // Without a command, threads that start from now on have timers.
    let owner = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    std::os::unix::fs::chown(&place.dir, Some(NOBODY), Some(NOBODY)).unwrap();
    let two = place.path("two.jfr");
    with_less(
        &place,
        &owner,
        &["start", "-o", two.to_str().unwrap(), &pid],
    )
    .exits(0);
    let status = with_less(&place, &owner, &["stop", &pid]).exits(0);
    assert!(status.out.contains("recorded: "), "{status:?}");
    running.assert_untouched();
}

#[test]
fn jvm_in_a_container_is_read_from_the_host() {
    if needs_root() {
        return;
    }
    // It has other pids, another /tmp and /proc, and its classes are in a place that is empty here.
    let inside = "mount -t tmpfs none /var/tmp && mkdir /var/tmp/c && \
                  cp -r \"$CLASSES\"/* /var/tmp/c && mount -t tmpfs none /tmp && exec \"$@\"";
    let unshare = ["unshare", "--mount", "--pid", "--net", "--ipc", "--fork"];
    let shell = ["--mount-proc", "sh", "-c", inside, "sh"];
    let place = Place::new("container");
    // Versions differ in how they announce themselves, and 8 has its own way.
    let chosen = [8, 17, modern().feature];
    for jdk in jdks().iter().filter(|jdk| chosen.contains(&jdk.feature)) {
        let classes = crate::harness::common::classes();
        let running = Start::new(jdk)
            .env("CLASSES", classes.to_str().unwrap())
            .option("-Xbootclasspath/a:/var/tmp/c")
            .wrapper(&[&unshare[..], &shell].concat())
            .run();
        let pid = running.pid.to_string();
        let done = place.dwell(&["stacks", &pid]).exits(0);
        let main = done.out.split("\n\n").find(|it| it.starts_with("\"main\""));
        let main = main.unwrap_or_else(|| panic!("{done:?}"));
        assert!(main.contains("\tat Waiter.main(Waiter.java"), "{main}");
        // Kernel ids are shown as the host has them.
        let tid = main
            .split("nid=")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap();
        let task = format!("/proc/{pid}/task/{tid}");
        assert!(std::path::Path::new(&task).exists(), "{task}");
        if jdk.feature == modern().feature {
            let args = ["record", "--no-agent", "-d", "1", "-o", "c", &pid];
            place.dwell(&args).exits(0);
            let report = place.dwell(&["report", "c.jfr", "--text"]).exits(0);
            assert!(report.out.contains("Waiter.main"), "{report:?}");
        }
    }
}

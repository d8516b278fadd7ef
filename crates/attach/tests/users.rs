//! Other users and other namespaces. Running as another user needs root. Without it, a test checks
//! only the refusal, and prints so.
#![allow(missing_docs)]

mod common;

use common::{Start, is_root, modern};
use dwell_attach::{Error, Jvm, Library, Target};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

const OTHER: u32 = 4242;
const LIBRARY: Library<'_> = Library {
    name: "libx.so",
    bytes: b"not a library at all",
};

fn listed(pid: u32) -> Jvm {
    let all = dwell_attach::list().unwrap();
    all.into_iter()
        .find(|jvm| jvm.pid == pid)
        .expect("in the list")
}

/// Runs one of this file's tests as another user, with the pid to examine.
fn as_other_user(test: &str, pid: u32) -> std::process::Output {
    let copy = common::scratch_dir("other-user").join(test);
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let mut command = Command::new(copy);
    command
        .args(["--exact", test, "--nocapture"])
        .env("DWELL_TEST_PID", pid.to_string());
    command.current_dir("/").uid(OTHER).gid(OTHER);
    // The child of another test has the copy open for writing until it runs its program.
    for _ in 0..1000 {
        match command.output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            other => return other.unwrap(),
        }
    }
    panic!("another process writes the copy")
}

fn needs_root() -> bool {
    if !is_root() {
        println!("skipped: only root may act as other users");
    }
    !is_root()
}

/// The other user's half of the test below; without a pid it does nothing.
#[test]
fn refusal_as_seen_by_another_user() {
    let Ok(pid) = std::env::var("DWELL_TEST_PID") else {
        println!("skipped: a part of another test, which names a process");
        return;
    };
    let error = Target::examine(pid.parse().unwrap()).unwrap_err();
    assert!(matches!(error, Error::NotPermitted { .. }), "{error}");
    let jvm = listed(pid.parse().unwrap());
    assert!(!jvm.readable);
    println!("refused: {error}");
}

#[test]
fn another_users_jvm_is_refused() {
    if needs_root() {
        return;
    }
    let mut running = Start::new(&modern()).run();
    let output = as_other_user("refusal_as_seen_by_another_user", running.pid);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains("belongs to user root; run dwell as root\n"),
        "{text}"
    );
    running.assert_untouched();
}

#[test]
fn root_attaches_as_the_targets_user() {
    if needs_root() {
        return;
    }
    for jdk in common::jdks() {
        // Other users cannot run JDKs below a home directory.
        if !is_world_readable(&jdk.java()) {
            continue;
        }
        let mut running = Start::new(&jdk).uid(OTHER).run();
        let jvm = listed(running.pid);
        assert_eq!((jvm.uid, jvm.user.as_str()), (OTHER, "4242"));
        let target = Target::examine(running.pid).unwrap();
        assert_eq!(target.command("properties", &[]).unwrap().code, 0);
        assert!(!target.shares_files());
        let path = target.place(&LIBRARY).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().uid(), OTHER);
        running.assert_untouched();
        std::fs::remove_file(path).unwrap();
    }
}

/// A socket without a listener, like that of a killed JVM of root.
fn leave_socket(pid: u32) -> PathBuf {
    let path = PathBuf::from(format!("/tmp/.java_pid{pid}"));
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    path
}

/// The user's half of the test below.
#[test]
fn left_over_socket_as_seen_by_the_jvms_user() {
    let Ok(pid) = std::env::var("DWELL_TEST_PID") else {
        return;
    };
    let target = Target::examine(pid.parse().unwrap()).unwrap();
    let error = target.command("properties", &[]).unwrap_err();
    assert!(matches!(error, Error::UntrustedSocket { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("left over"), "{text}");
    println!("refused: {text}");
}

/// Process ids are reused: a JVM of another user may find a socket of root in the place of its own.
#[test]
fn socket_left_over_by_root_is_reported() {
    if needs_root() {
        return;
    }
    let mut running = Start::new(&modern()).uid(OTHER).run();
    let path = leave_socket(running.pid);
    let output = as_other_user("left_over_socket_as_seen_by_the_jvms_user", running.pid);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("refused: "), "{text}");
    let target = Target::examine(running.pid).unwrap();
    let error = target.command("properties", &[]).unwrap_err();
    assert!(matches!(error, Error::UntrustedSocket { .. }), "{error}");
    running.assert_untouched();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(target.command("properties", &[]).unwrap().code, 0);
}

fn is_world_readable(path: &std::path::Path) -> bool {
    let Ok(path) = path.canonicalize() else {
        return false;
    };
    path.ancestors().all(|dir| {
        dir.metadata()
            .is_ok_and(|data| data.mode() & 0o005 == 0o005)
    })
}

#[test]
fn a_jvm_in_other_namespaces_is_reached() {
    if needs_root() {
        return;
    }
    let inside = "mount -t tmpfs none /var/tmp && mkdir /var/tmp/c && \
                  cp -r \"$CLASSES\"/* /var/tmp/c && chmod 1777 /var/tmp && \
                  mount -t tmpfs -o noexec,mode=1777 none /tmp && exec \"$@\"";
    for jdk in common::jdks() {
        let classes = common::classes();
        let wrapper = [
            "unshare",
            "--mount",
            "--pid",
            "--net",
            "--ipc",
            "--fork",
            "--mount-proc",
        ];
        let shell = ["sh", "-c", inside, "sh"];
        let running = Start::new(&jdk)
            .env("CLASSES", classes.to_str().unwrap())
            .option("-Xbootclasspath/a:/var/tmp/c")
            .wrapper(&[&wrapper[..], &shell[..]].concat())
            .run();
        let jvm = listed(running.pid);
        assert_eq!((jvm.ns_pid, jvm.foreign), (1, true), "{jvm:?}");
        let target = Target::examine(running.pid).unwrap();
        assert_eq!(target.command("properties", &[]).unwrap().code, 0);
        let path = target.place(&LIBRARY).unwrap();
        assert!(
            path.starts_with("/var/tmp/.dwell-"),
            "/tmp is noexec in there: {path}"
        );
        let seen = PathBuf::from(format!("/proc/{}/root{path}", running.pid));
        assert_eq!(std::fs::read(seen).unwrap(), LIBRARY.bytes);
        assert!(
            !PathBuf::from(path).exists(),
            "nothing was written out here"
        );
        assert!(!target.shares_files());
    }
}

#[test]
fn a_jvm_in_a_user_namespace_is_reached() {
    if needs_root() {
        return;
    }
    let maps = [
        "unshare",
        "--user",
        "--map-user=0",
        "--map-group=0",
        "--fork",
    ];
    let mut running = Start::new(&modern()).uid(OTHER).wrapper(&maps).run();
    let target = Target::examine(running.pid).unwrap();
    assert_eq!(target.command("properties", &[]).unwrap().code, 0);
    running.assert_untouched();
}

/// The user's half of the test below.
#[test]
fn more_capable_jvm_as_seen_by_its_user() {
    let Ok(pid) = std::env::var("DWELL_TEST_PID") else {
        println!("skipped: a part of another test, which names a process");
        return;
    };
    let pid: u32 = pid.parse().unwrap();
    std::fs::read(format!("/proc/{pid}/maps")).expect_err("the kernel denies looking into it");
    let jvm = listed(pid);
    assert!(jvm.readable, "{jvm:?}");
    assert_eq!(jvm.main.as_deref(), Some("Waiter"));
    let target = Target::examine(pid).unwrap();
    assert_eq!(target.command("properties", &[]).unwrap().code, 0);
    assert_eq!(target.loaded_library(LIBRARY.name), None);
    assert!(target.loaded_library("libjava.so").is_some());
    // Other bytes have another path, which no test that runs at the same time removes.
    let own = Library {
        bytes: b"not a library either",
        ..LIBRARY
    };
    let path = target.place(&own).unwrap();
    std::fs::remove_file(path).unwrap();
    let scratch = target.scratch("dwell-test-scratch", "file").unwrap();
    target.remove_scratch(&scratch.path).unwrap();
    println!("reached: {pid}");
}

/// A capability that its user does not have keeps the kernel's files of a JVM from that user.
#[test]
fn jvm_with_a_capability_is_reached_by_its_user() {
    if needs_root() {
        return;
    }
    let jdk = modern();
    if !is_world_readable(&jdk.java()) {
        println!("skipped: other users cannot run this JDK");
        return;
    }
    let more = "exec 3<&0; setpriv --reuid=4242 --regid=4242 --clear-groups \
                --inh-caps=+net_bind_service --ambient-caps=+net_bind_service \"$@\" <&3 & wait";
    let mut running = Start::new(&jdk).wrapper(&["sh", "-c", more, "sh"]).run();
    let output = as_other_user("more_capable_jvm_as_seen_by_its_user", running.pid);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("reached: "), "{text}");
    running.assert_untouched();
}

/// A process with such a capability that is no JVM is refused.
#[test]
fn capable_process_that_is_no_jvm_is_refused() {
    if needs_root() {
        return;
    }
    let words = ["--reuid=4242", "--regid=4242", "--clear-groups"];
    let more = [
        "--inh-caps=+net_bind_service",
        "--ambient-caps=+net_bind_service",
    ];
    let mut command = Command::new("setpriv");
    command.stdout(std::process::Stdio::null());
    let mut sleeper = (command.args(words).args(more).args(["sleep", "600"]))
        .spawn()
        .unwrap();
    let path = format!("/proc/{}/comm", sleeper.id());
    while std::fs::read_to_string(&path).unwrap() != "sleep\n" {
        std::thread::yield_now();
    }
    let output = as_other_user("refusal_with_the_capability_as_reason", sleeper.id());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(sleeper.try_wait().unwrap(), None, "it was left alone");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

/// The user's half of the test above.
#[test]
fn refusal_with_the_capability_as_reason() {
    let Ok(pid) = std::env::var("DWELL_TEST_PID") else {
        println!("skipped: a part of another test, which names a process");
        return;
    };
    let error = Target::examine(pid.parse().unwrap()).unwrap_err();
    assert!(matches!(error, Error::Protected { .. }), "{error}");
    assert!(error.to_string().contains("a capability"), "{error}");
}

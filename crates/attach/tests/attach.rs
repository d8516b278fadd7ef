//! Discovery, commands and library loading against real JVMs of every available JDK.
#![allow(missing_docs)]

mod common;

use common::{Running, Start, jdks};
use dwell_attach::{Error, Jvm, Library, Target, version};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

fn listed(pid: u32) -> Jvm {
    let all = dwell_attach::list().unwrap();
    all.into_iter()
        .find(|jvm| jvm.pid == pid)
        .expect("in the list")
}

fn attach_file(running: &Running) -> PathBuf {
    PathBuf::from(format!(
        "/proc/{}/root/tmp/.attach_pid{}",
        running.pid,
        listed(running.pid).ns_pid
    ))
}

/// An agent whose entry point returns the number in its options.
fn number_agent() -> PathBuf {
    static BUILDING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = BUILDING.lock().unwrap();
    let dir = common::scratch_dir("agent");
    let source = dir.join("agent.c");
    let library = dir.join("libnumber.so");
    if !library.exists() {
        let text = "#include <stdlib.h>\n\
            int Agent_OnAttach(void *vm, char *options, void *r) { return atoi(options); }\n";
        std::fs::write(&source, text).unwrap();
        let mut command = Command::new("cc");
        command
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&source);
        assert!(command.status().expect("cc").success());
    }
    library
}

#[test]
fn every_jdk_is_listed_with_version_and_main_class() {
    for jdk in jdks() {
        let running = Start::new(&jdk).run();
        let jvm = listed(running.pid);
        let feature = jvm.version.as_deref().and_then(version::feature);
        assert_eq!(feature, Some(jdk.feature), "{jvm:?}");
        assert_eq!(jvm.main.as_deref(), Some("Waiter"));
        assert_eq!(
            (jvm.ns_pid, jvm.foreign, jvm.readable),
            (running.pid, false, true)
        );
        assert!(
            jvm.uptime_ms.is_some_and(|age_ms| age_ms < 600_000),
            "{jvm:?}"
        );
    }
}

#[test]
fn without_performance_data_other_files_suffice() {
    for jdk in jdks() {
        let running = Start::new(&jdk).option("-XX:-UsePerfData").run();
        let jvm = listed(running.pid);
        let feature = jvm.version.as_deref().and_then(version::feature);
        assert_eq!(
            (feature, jvm.main.as_deref()),
            (Some(jdk.feature), Some("Waiter"))
        );
    }
}

#[test]
fn every_jdk_answers_commands_and_nothing_is_left_behind() {
    for jdk in jdks() {
        let mut running = Start::new(&jdk).run();
        let target = Target::examine(running.pid).unwrap();
        for round in 0..2 {
            let reply = target.command("properties", &[]).unwrap();
            assert_eq!(reply.code, 0, "round {round}");
            assert!(
                reply.text.contains("java.specification.version"),
                "{}",
                reply.text
            );
        }
        assert!(!attach_file(&running).exists());
        running.assert_untouched();
    }
}

#[test]
fn long_arguments_need_the_second_protocol() {
    for jdk in jdks() {
        let running = Start::new(&jdk).run();
        let target = Target::examine(running.pid).unwrap();
        let options = format!("7{}", " ".repeat(3000));
        let agent = number_agent();
        let result = target.load_agent(agent.to_str().unwrap(), &options);
        if jdk.feature >= 24 {
            assert_eq!(result.unwrap(), 7);
        } else {
            assert!(
                matches!(result, Err(Error::TooLong { max: 1024, .. })),
                "{result:?}"
            );
        }
    }
}

#[test]
fn every_jdk_loads_an_agent_and_returns_its_code() {
    let agent = number_agent();
    let bytes = std::fs::read(&agent).unwrap();
    for jdk in jdks() {
        let mut running = Start::new(&jdk).run();
        let target = Target::examine(running.pid).unwrap();
        let library = Library {
            name: "libnumber.so",
            bytes: &bytes,
        };
        let path = target.place(&library).unwrap();
        assert_eq!(target.loaded_library("libnumber.so"), None);
        assert_eq!(
            target.load_agent(&path, "0").unwrap(),
            0,
            "JDK {}",
            jdk.feature
        );
        assert_eq!(
            target.load_agent(&path, "17").unwrap(),
            17,
            "JDK {}",
            jdk.feature
        );
        assert_eq!(target.loaded_library("libnumber.so"), Some(path));
        running.assert_untouched();
    }
}

#[test]
fn a_library_that_cannot_be_loaded_is_named() {
    for jdk in jdks() {
        let running = Start::new(&jdk).run();
        let target = Target::examine(running.pid).unwrap();
        let error = target.load_agent("/no/such/libx.so", "").unwrap_err();
        assert!(
            matches!(error, Error::LoadFailed { .. }),
            "JDK {}: {error}",
            jdk.feature
        );
        assert!(error.to_string().contains("/no/such/libx.so"));
    }
}

#[test]
fn a_jvm_that_is_just_starting_is_waited_for() {
    for jdk in jdks() {
        let program = Command::new(jdk.java())
            .arg("-cp")
            .arg(common::classes())
            .arg("Waiter")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn();
        let mut child = program.unwrap();
        // The VM itself answers this command: its Java code ("properties", for example) may not be
        // ready.
        let reply =
            Target::examine(child.id()).and_then(|jvm| jvm.command("jcmd", &["VM.version"]));
        drop(child.stdin.take());
        let status = child.wait().unwrap();
        let reply = reply.unwrap_or_else(|e| panic!("JDK {}: {e}", jdk.feature));
        assert_eq!(reply.code, 0, "JDK {}: {reply:?}", jdk.feature);
        assert!(status.success(), "JDK {}: {status}", jdk.feature);
    }
}

#[test]
fn scratch_files_are_the_targets_alone() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let running = Start::new(&common::modern()).run();
    let target = Target::examine(running.pid).unwrap();
    let name = format!("dwell-test-scratch-{}", std::process::id());
    let scratch = target.scratch(&name, "file").unwrap();
    let data = scratch.file.metadata().unwrap();
    assert_eq!(
        (data.permissions().mode() & 0o777, data.uid()),
        (0o600, target.jvm().uid)
    );
    assert!(
        target.scratch(&name, "file").is_err(),
        "an existing file is not taken over"
    );
    assert!(target.open_file(&scratch.path).is_ok());
    target.remove_scratch(&scratch.path).unwrap();
    assert!(!Path::new(&scratch.path).parent().unwrap().exists());
    assert!(target.shares_files());
}

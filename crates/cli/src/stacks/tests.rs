//! Dumps as text and as JSON.

use super::{json, text};
use crate::args::Stacks;
use dwell_attach::Jvm;
use dwell_outside::dump::{How, Kind, LockedText, OwnerText, Safepoint, WantedText};
use dwell_outside::names::{FrameKind, Method, Named};
use dwell_outside::{Dump, Refusal, Thread};
use dwell_wall::cause::Cause;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

fn args() -> Stacks {
    Stacks {
        native: false,
        r#virtual: None,
        group: false,
        stop: false,
        repeat: 1,
        interval: Duration::from_secs(1),
        json: false,
        jvm: "7".to_owned(),
    }
}

fn jvm() -> Jvm {
    Jvm {
        pid: 7,
        ns_pid: 7,
        uid: 0,
        user: "root".to_owned(),
        version: Some("25.0.3".to_owned()),
        main: Some("Shop".to_owned()),
        command: None,
        uptime_ms: None,
        foreign: false,
        readable: true,
    }
}

fn java(name: &str, line: u32) -> Named {
    Named::Java {
        method: Arc::new(Method {
            class: "a/Shop".to_owned(),
            name: name.to_owned(),
            descriptor: "()V".to_owned(),
            source: Some("Shop.java".to_owned()),
            is_native: false,
            origin: None,
        }),
        line: Some(line),
        kind: FrameKind::C2,
    }
}

fn native(function: &str) -> Named {
    Named::Native {
        library: "libc.so.6".to_owned(),
        function: Some(function.to_owned()),
        is_vm: false,
    }
}

fn thread(name: &str, id: u64, cause: Cause, frames: Vec<Named>) -> Thread {
    Thread {
        kind: Kind::Platform,
        name: name.to_owned(),
        java_id: Some(id),
        tid: Some(100 + id as i32),
        address: id << 12,
        is_daemon: Some(true),
        priority: Some(5),
        java_state: Some("RUNNABLE"),
        vm_state: None,
        cpu_ns: Some(1_234_567),
        cause,
        on: None,
        wanted: None,
        waits_to_be_notified: false,
        mounted: None,
        frames,
        locked: Vec::new(),
        failure: None,
        how: How::InPlace,
        stood: None,
        is_blurred: false,
    }
}

fn wanted(object: u64, owner: usize) -> Option<WantedText> {
    Some(WantedText {
        object,
        class: Some("java.lang.Object".to_owned()),
        owner: Some(OwnerText {
            thread: Some(owner),
            id: None,
        }),
    })
}

/// Two threads in a deadlock, two equal workers, and a thread that all wait for.
fn dump() -> Dump {
    let left = Thread {
        wanted: wanted(0x20, 1),
        java_state: Some("BLOCKED"),
        locked: vec![LockedText {
            frame: 2,
            object: 0x10,
            class: Some("java.lang.Object".to_owned()),
            is_eliminated: false,
        }],
        ..thread(
            "left",
            1,
            Cause::Monitor,
            vec![native("futex_wait"), java("take", 17), java("both", 20)],
        )
    };
    let right = Thread {
        wanted: wanted(0x10, 0),
        ..thread("right", 2, Cause::Monitor, vec![java("take", 17)])
    };
    let worker = |id| thread("worker", id, Cause::Park, vec![java("rest", 3)]);
    let late = Thread {
        how: How::Sampled,
        ..thread("late\u{1b}[31m", 5, Cause::Running, vec![java("loop", 9)])
    };
    Dump {
        at: UNIX_EPOCH + Duration::from_secs(86_400),
        took: Duration::from_micros(2500),
        process_state: Some('T'),
        threads: vec![left, right, worker(3), worker(4), late],
        more_virtual: true,
        deadlocks: vec![vec![0, 1]],
        safepoint: Some(Safepoint {
            is_reached: false,
            operation: "GenCollectFull".to_owned(),
            since: Some(Duration::from_millis(2100)),
            asked_by: Some(2),
            late: vec![4],
        }),
        safepoints_are_known: true,
        refusal: None,
    }
}

/// The advice for a dump in which `count` threads run and were read in the way `how`.
fn advised(refusal: Option<Refusal>, how: How, count: usize, stop: bool) -> Option<String> {
    let mut dump = dump();
    dump.refusal = refusal;
    for thread in dump.threads.iter_mut().take(count) {
        thread.how = how;
        thread.stood = (how == How::Stopped).then_some(Duration::from_micros(300));
    }
    super::advice(&dump, &Stacks { stop, ..args() })
}

#[test]
fn advice_follows_the_reason_of_the_refusal() {
    let seccomp = || Some(Refusal::Seccomp);
    let failed = || {
        Some(Refusal::Failed(
            "Too many open files (os error 24)".to_owned(),
        ))
    };
    let denied = || Some(Refusal::NotPermitted("Permission denied".to_owned()));
    let text = advised(seccomp(), How::Stopped, 2, false);
    assert_eq!(
        text.as_deref(),
        Some(
            "seccomp forbids perf_event_open here: 2 running threads stopped to be read, as with \
             --stop (longest stop 300 us)"
        )
    );
    let text = advised(seccomp(), How::NotSampled, 1, false).unwrap();
    has(
        &text,
        &["1 running thread cannot be stopped either; run dwell on the host"],
    );
    let text = advised(failed(), How::NotSampled, 3, false);
    assert_eq!(
        text.as_deref(),
        Some(
            "3 running threads could not be sampled (Too many open files (os error 24)); add --stop"
        )
    );
    let text = advised(denied(), How::NotSampled, 1, false).unwrap();
    assert!(text.ends_with(", or add --stop"), "{text}");
    // Nothing to say: all was read, or the user knows.
    assert_eq!(advised(seccomp(), How::InPlace, 2, false), None);
    assert_eq!(advised(None, How::NotSampled, 2, false), None);
    assert_eq!(advised(seccomp(), How::Stopped, 2, true), None);
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn threads_of_the_jvm_are_left_out_unless_native() {
    let mut own = thread("Finalizer", 9, Cause::Park, vec![java("close", 3)]);
    own.frames.clear();
    let mine = thread("Finalizer", 8, Cause::Park, vec![java("close", 3)]);
    let mut dump = dump();
    dump.threads
        .push(thread("Common-Cleaner", 7, Cause::Park, Vec::new()));
    dump.threads.push(own);
    dump.threads.push(mine);
    let told = text::whole(&jvm(), &dump, &args());
    assert!(
        !told.contains("Common-Cleaner") && !told.contains("#9"),
        "{told}"
    );
    assert!(
        told.contains("\"Finalizer\" #8"),
        "the application's frames: {told}"
    );
    let note = "2 threads are the JVM's own and not shown.";
    assert!(told.contains(note), "{told}");
    let all = Stacks {
        native: true,
        ..args()
    };
    let told = text::whole(&jvm(), &dump, &all);
    assert!(
        told.contains("Common-Cleaner") && !told.contains(note),
        "{told}"
    );
    let line = json::line(&jvm(), &dump, &args());
    assert_eq!(line.matches("\"ofJvm\":true").count(), 2, "{line}");
}

#[test]
fn dump_has_the_form_of_the_jdks_with_more_detail() {
    let told = text::whole(&jvm(), &dump(), &args());
    has(
        &told,
        &[
            "19700102T000000Z JVM 7 Shop (JDK 25.0.3), from outside in 2.5 ms\n",
            "5 Java threads: 1 running, 2 monitor, 2 park\n",
            "The process is stopped",
            "Reaching a safepoint: all threads must stop for GenCollectFull, \
             since 2.1 s, requested by \"worker\".\n",
            "\"left\" #1 daemon prio=5 cpu=1.23ms nid=101 monitor\n   \
             java.lang.Thread.State: BLOCKED\n\tat a.Shop.take(Shop.java:17)\n\t- waiting to lock \
             <0x0000000000000020> (a java.lang.Object) held by \"right\" #2\n\tat \
             a.Shop.both(Shop.java:20)\n\t- locked <0x0000000000000010> (a java.lang.Object)\n",
            "Deadlock of 2 threads:\n  \"left\" #1 waits for <0x0000000000000020> (a \
             java.lang.Object), held by \"right\" #2\n",
            "There are more virtual threads; --virtual=N shows N of them.\n",
        ],
    );
    assert!(!told.contains("futex_wait"), "{told}");
    assert!(!told.contains('\u{1b}'), "{told}");
    assert!(!told.contains("unknown"), "{told}");
    let blind = Dump {
        safepoints_are_known: false,
        ..dump()
    };
    let unknown = "\nWhether a safepoint is under way is unknown: libjvm.so has no symbols.\n";
    has(&text::whole(&jvm(), &blind, &args()), &[unknown]);
    let line = told.lines().find(|it| it.contains("has not arrived"));
    let line = line.expect("who is late");
    assert!(
        line.contains("late") && line.ends_with(" #5, ?, running"),
        "{line}"
    );
    let native = Stacks {
        native: true,
        ..args()
    };
    has(
        &text::whole(&jvm(), &dump(), &native),
        &["\tat futex_wait (libc.so.6)\n\tat a.Shop.take"],
    );
}

#[test]
fn threads_with_equal_stacks_are_grouped() {
    let group = Stacks {
        group: true,
        ..args()
    };
    let told = text::whole(&jvm(), &dump(), &group);
    has(
        &told,
        &["2 threads, park: \"worker\" #3, \"worker\" #4\n\tat a.Shop.rest(Shop.java:3)\n"],
    );
    assert_eq!(told.matches("Shop.rest").count(), 1, "{told}");
    // The larger group comes first.
    let (group, single) = (told.find("2 threads"), told.find("\"left\" #1 daemon"));
    assert!(group.is_some() && group < single, "{told}");
    let mut many = dump();
    let worker = many.threads[2].clone();
    many.threads = vec![worker; 20];
    has(
        &text::whole(
            &jvm(),
            &many,
            &Stacks {
                group: true,
                ..args()
            },
        ),
        &["20 threads, park: \"worker\" #3, ", ", and 12 more\n"],
    );
}

#[test]
fn json_dump_is_one_line() {
    let line = json::line(&jvm(), &dump(), &args());
    assert_eq!(line.matches('\n').count(), 1);
    let told: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let at = |path: &str| {
        told.pointer(path)
            .unwrap_or_else(|| panic!("no {path} in {told:#}"))
    };
    for (path, value) in [
        ("/pid", serde_json::json!(7)),
        ("/tookNanos", serde_json::json!(2_500_000)),
        ("/processState", serde_json::json!("T")),
        ("/safepointsKnown", serde_json::json!(true)),
        ("/safepoint/operation", serde_json::json!("GenCollectFull")),
        ("/safepoint/sinceNanos", serde_json::json!(2_100_000_000u64)),
        ("/safepoint/askedBy", serde_json::json!(2)),
        ("/safepoint/late", serde_json::json!([4])),
        ("/deadlocks", serde_json::json!([[0, 1]])),
        ("/threads/0/name", serde_json::json!("left")),
        ("/threads/0/waitsFor/owner", serde_json::json!(1)),
        ("/threads/0/frames/0/method", serde_json::json!("take")),
        ("/threads/0/frames/1/line", serde_json::json!(20)),
        (
            "/threads/0/frames/1/locked/0/object",
            serde_json::json!("0x10"),
        ),
        ("/threads/4/how", serde_json::json!("sampled")),
        ("/threads/4/name", serde_json::json!("late\u{1b}[31m")),
    ] {
        assert_eq!(*at(path), value, "{path}");
    }
}

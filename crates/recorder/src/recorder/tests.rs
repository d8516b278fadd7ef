//! Refused commands, answers, and registered threads: a recorder with a test runtime.

use super::*;
use crate::options::parse;
use crate::testing::{
    Step, alone, begin_thread, hold_drainers, let_fail, register_here, set_timeout,
};

/// The calling thread as the runtime reports it.
fn own(name: &str, managed: u64, id: i64) -> Seen {
    Seen {
        name: ThreadName {
            tid: process::own_tid(),
            comm: "test".into(),
            name: Some(name.into()),
            id,
            group: None,
        },
        managed,
        stack_high: 0,
        starts: false,
    }
}

#[test]
fn a_recording_is_the_only_one_until_it_is_stopped() {
    let alone = alone();
    let agent = alone.agent();
    let (options, text) = alone.asked("");
    let mut begun = 0;
    let status = agent.start(&options, &text, || begun += 1).unwrap();
    assert!(status.starts_with("state=running\n"), "{status}");
    assert!(agent.is_recording());
    let running = agent.running().unwrap();
    assert_eq!(running.events, Events::of(&options));
    assert!(running.path.is_file());
    let refused = agent.start(&options, &text, || begun += 1).unwrap_err();
    let path = running.path.display();
    assert_eq!(
        refused,
        format!("already recording to {path}; use 'dwell stop' first")
    );
    assert_eq!(begun, 1, "nothing is begun by who is refused");
    let mut ended = 0;
    let status = agent.stop(|| ended += 1).unwrap();
    assert!(status.starts_with("state=stopped\n"), "{status}");
    assert!(status.contains(&format!("\nfile={path}\n")), "{status}");
    assert!(!agent.is_recording() && agent.running().is_none());
    assert_eq!(agent.status(), status, "the last one is remembered");
    assert!(agent.stop(|| ended += 1).is_err());
    assert_eq!(ended, 1);
    agent.start(&options, &text, || begun += 1).unwrap();
    agent.finish();
    assert!(!agent.is_recording(), "the process ends");
    agent.finish();
    assert_eq!(begun, 2);
}

#[test]
fn stopped_recording_reports_its_end_not_its_limits() {
    let alone = alone();
    let agent = alone.agent();
    let (options, text) = alone.asked(",duration=1h,lease=1h");
    let status = agent.start(&options, &text, || ()).unwrap();
    assert!(status.contains("\nleft_ms="), "{status}");
    assert!(!status.contains("ended"), "{status}");
    agent.stop(|| ()).unwrap();
    let status = agent.status();
    let end = status
        .split_once("\nended=stop\nended_epoch_ms=")
        .unwrap()
        .1;
    let at_ms: u64 = end.lines().next().unwrap().parse().unwrap();
    assert!(at_ms <= process::epoch_ns() / 1_000_000, "{status}");
    assert!(!status.contains("left_ms="), "{status}");
}

#[test]
fn lost_objects_are_written_by_class_thread_and_method() {
    let alone = alone();
    let agent = alone.agent();
    let (options, text) = alone.asked("");
    agent.start(&options, &text, || ()).unwrap();
    let id = register_here(&agent.registry, agent.engine);
    let record = agent.registry.get(id).unwrap();
    let class = agent.classes.number(b"[B", || "[B".to_owned());
    agent.lost_objects.prepare();
    let method = agent.lost_methods.number(b"m", || "a.B.c".to_owned());
    for (method, bytes) in [(Some(method), 100), (Some(method), 200), (None, 7)] {
        let thread = record.user();
        agent.lost_objects.add(class, thread, method, bytes);
    }
    agent.stop(|| ()).unwrap();
    let bytes = std::fs::read(alone.file()).unwrap();
    let recording = dwell_jfr::reader::parse(&bytes).unwrap();
    let lost = recording.told::<dwell_jfr::kinds::told::LostAllocations>();
    let lost: Vec<_> = lost
        .map(|it| (it.method.to_string(), it.samples, it.weight_bytes))
        .collect();
    assert_eq!(lost, [("a.B.c".to_owned(), 2, 300), (String::new(), 1, 7)]);
}

#[test]
fn drainer_that_is_late_keeps_the_next_recording_out() {
    let alone = alone();
    let agent = alone.agent();
    let (options, text) = alone.asked("");
    let held = hold_drainers();
    agent.start(&options, &text, || ()).unwrap();
    set_timeout(Some(std::time::Duration::from_millis(20)));
    let mut ended = 0;
    let late = agent.stop(|| ended += 1).unwrap_err();
    assert!(late.starts_with("the remaining data was not written within 10 s"));
    let refused = agent
        .start(&options, &text, || panic!("begun"))
        .unwrap_err();
    assert!(refused.contains("is still being written"), "{refused}");
    assert!(
        agent.dump().is_err(),
        "and this does not take the stop back"
    );
    assert!(agent.change(Events::default(), "").is_err());
    assert_eq!(ended, 0, "the drainer still needs what the runtime reports");
    drop(held);
    set_timeout(None);
    let status = agent.stop(|| ended += 1).unwrap();
    assert!(status.starts_with("state=stopped\n"), "{status}");
    assert_eq!(ended, 1);
    agent.start(&options, &text, || ()).unwrap();
    agent.stop(|| ()).unwrap();
}

#[test]
fn commands_without_recording_name_the_remedy() {
    let alone = alone();
    let agent = alone.agent();
    let told = "nothing is being recorded in this mock; use 'dwell start' or 'dwell record'";
    assert_eq!(not_recording("mock"), told);
    assert_eq!(agent.stop(|| panic!("begun")), Err(told.into()));
    assert_eq!(agent.dump(), Err(told.into()));
    assert_eq!(agent.change(Events::default(), ""), Err(told.into()));
    assert_eq!(agent.status(), "state=stopped\n");
    assert!(agent.running().is_none());
}

#[test]
fn refused_start_changes_nothing() {
    let alone = alone();
    let agent = alone.agent();
    let file = alone.file().display().to_string();
    for (asked, refused) in [
        (format!("alloc=512k,file={file}"), "alloc"),
        (format!("live=512k,file={file}"), "live"),
        (format!("lock=1ms,file={file}"), "lock: "),
        (format!("engine=perf,file={file}"), "engine=perf: "),
        (format!("file={file}/no/such/folder"), "file="),
        (format!("file={file},freeze={file}.no"), "freeze="),
        (
            format!("file={file},freeze=/dev/null"),
            "freeze=/dev/null: ",
        ),
    ] {
        let options = parse(&asked).unwrap();
        let line = agent.start(&options, &asked, || panic!("begun"));
        let line = line.unwrap_err();
        assert!(line.starts_with(refused), "{asked}: {line}");
        assert!(!line.contains('\n'), "{line}");
        assert!(!agent.is_recording() && !alone.file().exists(), "{asked}");
        assert_eq!(agent.status(), "state=stopped\n");
    }
}

/// Descriptors of a file, and threads of ours.
fn ours(file: &std::path::Path) -> (usize, usize) {
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    let links = links.filter_map(|it| std::fs::read_link(it.ok()?.path()).ok());
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|it| std::fs::read(it.ok()?.path().join("comm")).ok());
    (
        links.filter(|link| link.starts_with(file)).count(),
        names.filter(|name| name.starts_with(b"dwell-")).count(),
    )
}

#[test]
fn start_that_fails_leaves_all_as_before() {
    let alone = alone();
    let agent = alone.agent();
    let (options, text) = alone.asked(",wall=20ms");
    let file = alone.file();
    for (step, refused) in [
        (Step::Thread, "cannot start the drainer thread: "),
        (Step::File, "file="),
    ] {
        for former in [None, Some(b"a former recording")] {
            let _ = std::fs::remove_file(&file);
            if let Some(bytes) = former {
                std::fs::write(&file, bytes).unwrap();
            }
            let_fail(Some(step));
            let line = agent
                .start(&options, &text, || panic!("begun"))
                .unwrap_err();
            let_fail(None);
            assert!(line.starts_with(refused) && !line.contains('\n'), "{line}");
            assert_eq!(
                std::fs::read(&file).ok().as_deref(),
                former.map(|it| &it[..])
            );
            assert_eq!(ours(&file), (0, 0), "{step:?}");
            assert!(!agent.is_recording() && !agent.engine.is_running());
            assert_eq!(agent.engine.live_records().count(), 0);
            assert_eq!(agent.status(), "state=stopped\n");
        }
    }
    agent.start(&options, &text, || ()).unwrap();
    assert_eq!(ours(&file).0, 1);
    // A thread names itself once it runs.
    for _ in 0..6000 {
        if ours(&file).1 >= 2 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(ours(&file).1 >= 2, "{:?}", ours(&file));
    agent.stop(|| ()).unwrap();
    assert_eq!(ours(&file), (0, 0));
    assert!(dwell_jfr::reader::parse(&std::fs::read(&file).unwrap()).is_ok());
}

/// An existing folder is used, and none is made.
#[test]
fn walks_are_frozen_into_a_folder_that_exists() {
    let dir = std::env::temp_dir().join(format!("dwell-freeze-{}", std::process::id()));
    let options = parse(&format!("freeze={}", dir.display())).unwrap();
    let refused = check_freeze(&options).unwrap_err();
    let name = format!("freeze={}: ", dir.display());
    assert!(refused.starts_with(&name) && !dir.exists(), "{refused}");
    std::fs::create_dir(&dir).unwrap();
    assert_eq!(check_freeze(&options), Ok(()));
    std::fs::remove_dir(&dir).unwrap();
    assert_eq!(check_freeze(&parse("cpu=10ms").unwrap()), Ok(()));
}

#[test]
fn another_engine_is_refused_in_same_process() {
    use EngineChoice::{Auto, Perf, Timer};
    let perf = [true, false].map(|kernel| EngineKind::Perf { kernel });
    for made in perf {
        assert_eq!(check_engine(made, Auto, "mock"), Ok(()));
        assert_eq!(check_engine(made, Perf, "mock"), Ok(()));
        let refused = check_engine(made, Timer, "mock").unwrap_err();
        assert!(refused.starts_with("engine=timer: this mock was recorded with perf events"));
    }
    assert_eq!(check_engine(EngineKind::Timer, Auto, "mock"), Ok(()));
    assert_eq!(check_engine(EngineKind::Timer, Timer, "mock"), Ok(()));
    let refused = check_engine(EngineKind::Timer, Perf, "mock").unwrap_err();
    assert!(refused.starts_with("engine=perf: this mock was recorded with timers"));
}

#[test]
fn events_are_switched_while_it_runs() {
    let alone = alone();
    let agent = alone.agent();
    let (options, text) = alone.asked("");
    agent.start(&options, &text, || ()).unwrap();
    let events = Events {
        alloc_bytes: 1 << 20,
        ..Events::of(&options)
    };
    assert_eq!(agent.change(events, "alloc=1m"), Ok(()));
    assert_eq!(agent.running().unwrap().events, events);
    let status = agent.dump().unwrap();
    assert!(status.contains("\nevents=cpu=10s,alloc=1m\n"), "{status}");
    agent.stop(|| ()).unwrap();
}

#[test]
fn thread_is_registered_once_under_its_last_name() {
    let alone = alone();
    let agent = alone.agent();
    let tid = process::own_tid();
    // A native thread, as the census finds it.
    agent.saw(own("unknown", 0, 0));
    let record = agent.registry.get(tid).unwrap();
    let of = |user| agent.threads.get(user);
    assert_eq!((record.managed_thread(), record.managed_id()), (0, 0));
    agent.saw(own("worker", 0x20, 8));
    assert_eq!(agent.registry.len(), 1);
    assert!(std::ptr::eq(agent.registry.get(tid).unwrap(), record));
    assert_eq!((record.managed_thread(), record.managed_id()), (0x20, 8));
    let user = record.user();
    assert_eq!(of(user).unwrap().name.as_deref(), Some("worker"));

    agent.own_thread_ends();
    assert!(agent.registry.get(tid).is_none());
    assert_eq!((record.managed_thread(), record.managed_id()), (0, 0));
    assert!(of(user).is_some(), "what was sampled of it has a name");
    agent.own_thread_ends();
    agent.saw(own("it is back", 0x30, 9));
    assert_ne!(agent.registry.get(tid).unwrap().user(), user);
    agent.forget_threads();
    assert!(agent.registry.is_empty() && of(user).is_none());
}

#[test]
fn thread_that_returns_keeps_its_record_and_name() {
    let alone = alone();
    let agent = alone.agent();
    let tid = process::own_tid();
    assert!(!agent.returns(tid, 0x10, 7), "it was never here");
    agent.saw(own("first", 0x20, 8));
    assert!(!agent.returns(tid, 0x20, 8), "it is here");
    agent.own_thread_ends();
    assert!(!agent.returns(tid, 0x30, 9), "it may be another one");
    agent.saw(own("second", 0x30, 9));
    let record = agent.registry.get(tid).unwrap();
    agent.own_thread_ends();
    assert_eq!((record.managed_thread(), record.managed_id()), (0, 0));
    agent.registry.watch();
    let _ = agent.registry.take_changed();
    assert!(agent.returns(tid, 0x40, 10));
    assert_eq!(agent.registry.take_changed(), [record.index()]);
    assert!(!agent.returns(tid, 0x50, 11), "it is here again");
    assert!(agent.registry.take_changed().is_empty());
    agent.registry.unwatch();
    assert!(std::ptr::eq(agent.registry.get(tid).unwrap(), record));
    assert_eq!((record.managed_thread(), record.managed_id()), (0x40, 10));
    let name = agent.threads.get(record.user()).unwrap();
    assert_eq!(name.name.as_deref(), Some("second"));
    agent.forget_threads();
}

#[test]
fn after_a_recording_no_thread_is_known() {
    let alone = alone();
    let agent = alone.agent();
    let (options, text) = alone.asked("");
    let begin = || begin_thread(agent, "own", 1, 1);
    agent.start(&options, &text, begin).unwrap();
    let record = agent.registry.get(process::own_tid()).unwrap();
    let user = record.user();
    assert_eq!(record.managed_id(), 1);
    agent.stop(|| ()).unwrap();
    assert!(agent.registry.is_empty());
    assert!(agent.threads.get(user).is_none());
    assert_eq!(agent.engine.live_records().count(), 0);
}

#[test]
fn pause_does_not_wait_for_a_running_command() {
    let alone = alone();
    let agent = alone.agent();
    // A command starts or stops, and waits for the runtime, which has to pause for it.
    let asking = agent.session();
    agent.pause_begins();
    agent.pause_ends();
    drop(asking);
    let pauses = agent.stretches.pauses.take();
    assert_eq!(pauses.len(), 1);
    assert!(pauses[0].began_ns != 0 && pauses[0].began_ns <= pauses[0].ended_ns);
    agent.pause_ends();
    assert_eq!(agent.stretches.pauses.take(), [], "it had not begun");
}

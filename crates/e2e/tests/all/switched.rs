//! Events that are switched on and off while a recording goes on.

use dwell_e2e::{Place, Program, Starter, View, both, each};
use std::time::{Duration, Instant};

/// The value of a line of the status.
fn value<'a>(status: &'a str, key: &str) -> &'a str {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {key} in {status}"))
}

/// Waits until a number of the status has grown by this much, and returns it.
fn await_more(program: &Program, key: &str, more: u64) -> u64 {
    let number = || -> u64 { value(&program.tell("status"), key).parse().unwrap() };
    let (first, began) = (number(), Instant::now());
    loop {
        let now = number();
        if now >= first + more {
            return now;
        }
        let patience = began.elapsed() < Duration::from_secs(120);
        assert!(patience, "{key} has grown from {first} to {now} only");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Requests a change. Returns the events before and from now on.
fn change(program: &Program, options: &str) -> (String, String) {
    let reply = program.tell(&format!("start,{options}"));
    let of = |key| value(&reply, key).to_owned();
    assert_eq!(of("state"), "running", "{reply}");
    (of("was"), of("events"))
}

const USUAL: &str = "cpu=5ms,wall=20ms";

/// An impossible change is refused in one line, and the recording goes on unchanged.
fn check_refusals(program: &Program, place: &Place) {
    let other = place.text("other.jfr");
    for (options, part) in [
        (
            &*format!("alloc=1m,wall=20ms,file={other}"),
            "use 'dwell stop' first",
        ),
        ("alloc=1m", "name wall=20ms as well"),
        ("wall=10ms,alloc=1m", "wall=10ms"),
        ("wall=20ms,cpu=1ms,alloc=1m", "cpu=1ms"),
        ("wall=20ms,maxsize=64m", "maxsize=64m"),
        ("wall=20ms,alloc=1", "alloc=1"),
        ("depth=8192", "name the events"),
    ] {
        let refused = program.attach(&format!("start,{options}")).unwrap_err();
        assert!(refused.contains(part), "{options}: {refused}");
        assert!(!refused.contains('\n'), "{options}: {refused}");
    }
    assert!(
        !place.path("other.jfr").exists(),
        "a refused change leaves no file"
    );
    assert_eq!(value(&program.tell("status"), "events"), USUAL);
}

/// Events of these names begin between the two times only, and there are some.
#[track_caller]
fn check_between(view: &View, name: &str, since_ns: u64, until_ns: u64) {
    let mut count = 0;
    for event in view.recording.events_named(name) {
        assert!(
            (since_ns..until_ns).contains(&event.time_ns),
            "{name} at {} is not between {since_ns} and {until_ns}",
            event.time_ns
        );
        count += 1;
    }
    assert!(count > 0, "no {name}");
}

/// The sums of a recording's end are those of its events: their number and what they stand for.
#[track_caller]
fn check_sums(view: &View, sums: &str, events: &str) {
    let last = view
        .recording
        .events_named(sums)
        .max_by_key(|event| event.time_ns);
    let last = last.unwrap_or_else(|| panic!("no {sums}"));
    let of = |field| u64::try_from(last.int(field).unwrap()).unwrap();
    let count = view.recording.events_named(events).count() as u64;
    assert_eq!(
        (of("samples"), of("weight")),
        (count, view.sum(events, "weight")),
        "{sums}"
    );
}

#[test]
fn events_are_switched_on_and_off_while_a_recording_goes_on() {
    each(&both(), |jdk| {
        let place = Place::new("switched");
        let file = place.path("a.jfr");
        let mut program = Starter::new(jdk, &place, "Contended")
            .with("seconds=600 threads=3 kind=monitor bytes=2000")
            .start();
        program.tell(&format!("start,{USUAL},file={}", file.display()));
        program.pass();
        await_more(&program, "samples", 20);
        check_refusals(&program, &place);
        let first = "cpu=5ms,wall=20ms,alloc=1k,lock=1us";
        let told = change(&program, "wall=20ms,alloc=1k,lock=1us");
        assert_eq!(told, (USUAL.to_owned(), first.to_owned()));
        await_more(&program, "alloc_samples", 50);
        await_more(&program, "lock_samples", 50);
        let second = "cpu=5ms,wall=20ms,alloc=2k,live,lock=100us";
        let told = change(&program, "cpu=5ms,wall=20ms,alloc=2k,live,lock=100us");
        assert_eq!(told, (first.to_owned(), second.to_owned()));
        await_more(&program, "alloc_samples", 50);
        await_more(&program, "lock_samples", 50);
        let third = "cpu=5ms,wall=20ms,live=2k";
        assert_eq!(
            change(&program, "wall=20ms,live=2k"),
            (second.to_owned(), third.to_owned())
        );
        await_more(&program, "samples", 20);
        assert_eq!(
            change(&program, "wall=20ms"),
            (third.to_owned(), USUAL.to_owned())
        );
        let off = program.tell("status");
        await_more(&program, "samples", 20);
        let later = program.tell("stop");
        for key in ["alloc_samples", "alloc_bytes", "lock_waits", "lock_samples"] {
            assert_eq!(
                value(&off, key),
                value(&later, key),
                "{key} after it was off"
            );
        }
        assert!(program.is_running(), "{}", program.errors());
        drop(program);
        check_file(&View::read(&file));
    });
}

/// The file of the test above.
fn check_file(view: &View) {
    let chunks: Vec<u64> = view.recording.chunks.iter().map(|it| it.start_ns).collect();
    let modes = view.recording.events_named("dwell.Recording");
    let modes: Vec<&str> = modes.filter_map(|event| event.text("mode")).collect();
    assert_eq!(
        modes,
        [
            "cpu,wall",
            "cpu,wall,alloc,lock",
            "cpu,wall,alloc,live,lock",
            "cpu,wall,live",
            "cpu,wall"
        ]
    );
    let [_, on, _, off, last] = chunks[..] else {
        panic!("{chunks:?}")
    };
    check_between(view, "jdk.ObjectAllocationSample", on, off);
    check_between(view, "jdk.JavaMonitorEnter", on, off);
    check_sums(view, "dwell.Allocations", "jdk.ObjectAllocationSample");
    check_sums(view, "dwell.MonitorWaits", "jdk.JavaMonitorEnter");
    // It was looked once: where following objects was switched off.
    let looks: Vec<_> = view.recording.events_named("dwell.LiveObjects").collect();
    assert_eq!(looks.len(), 1);
    assert!((off..last).contains(&looks[0].time_ns));
    let followed_ns = u64::try_from(looks[0].int("followedTime").unwrap()).unwrap();
    assert!(
        followed_ns < last - chunks[2] + 1_000_000_000,
        "{followed_ns} of {chunks:?}"
    );
    assert!(view.samples().any(|sample| sample.sample.time_ns > last));
}

/// Objects that are followed from a later time on are recorded from that time.
#[test]
fn objects_are_followed_from_the_switch_on() {
    each(&both(), |jdk| {
        let place = Place::new("switched-live");
        let file = place.path("a.jfr");
        let mut program = Starter::new(jdk, &place, "Contended")
            .with("seconds=600 threads=2 kind=monitor bytes=2000")
            .start();
        program.tell(&format!("start,cpu=5ms,alloc=1k,file={}", file.display()));
        program.pass();
        await_more(&program, "alloc_samples", 100);
        change(&program, "alloc=1k,live");
        await_more(&program, "alloc_samples", 100);
        change(&program, "alloc=1k");
        await_more(&program, "alloc_samples", 100);
        change(&program, "alloc=1k,live");
        await_more(&program, "alloc_samples", 100);
        program.tell("stop");
        drop(program);
        let view = View::read(&file);
        let looks: Vec<_> = view.recording.events_named("dwell.LiveObjects").collect();
        let number = |event: &dwell_jfr::reader::GenericEvent, field| event.int(field).unwrap();
        let numbers: Vec<i64> = looks.iter().map(|look| number(look, "snapshot")).collect();
        assert_eq!(numbers, [1, 2]);
        for look in &looks {
            let followed_ns = u64::try_from(number(look, "followedTime")).unwrap();
            let objects = view.recording.events_named("dwell.LiveObject");
            let own =
                objects.filter(|object| number(object, "snapshot") == number(look, "snapshot"));
            let mut count = 0;
            for object in own {
                let age_ns = u64::try_from(number(object, "age")).unwrap();
                assert!(
                    age_ns <= followed_ns,
                    "{age_ns} old, followed for {followed_ns}"
                );
                count += 1;
            }
            assert_eq!(count, number(look, "objects"));
            assert!(count > 0);
        }
        check_sums(&view, "dwell.Allocations", "jdk.ObjectAllocationSample");
    });
}

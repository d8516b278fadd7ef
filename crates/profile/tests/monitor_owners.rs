//! Reads the places of monitors' owners at the beginning of waits. Each class has such places, and
//! a part without a known owner.

use dwell_jfr::FrameKind;
use dwell_jfr::reader::{self, EventFilter, Recording};
use dwell_jfr::writer::{
    ChunkClock, ChunkWriter, Event, FrameRef, MethodInfo, MonitorEnter, StackId, ThreadId,
    ThreadInfo,
};
use dwell_profile::{EVENTS, NOT_KNOWN, Profile};

fn writer() -> ChunkWriter {
    ChunkWriter::new(ChunkClock {
        epoch_ns: 1_700_000_000_000_000_000,
        start_ticks: 0,
        ticks_per_second: 1_000_000_000,
    })
}

fn read(mut chunk: ChunkWriter) -> Recording {
    let mut file = chunk.flush(30_000_000_000);
    let header = chunk.header();
    file[..header.len()].copy_from_slice(&header);
    let options = reader::Options {
        events: EventFilter::Only(EVENTS),
        ..reader::Options::default()
    };
    reader::parse_with(&file, &options).unwrap()
}

fn thread(chunk: &mut ChunkWriter, name: &str, tid: i64) -> ThreadId {
    let info = ThreadInfo {
        os_name: name,
        os_tid: tid,
        java_name: Some(name),
        java_tid: tid,
        group: None,
        is_virtual: false,
    };
    chunk.thread(tid as u64, &info)
}

fn stack(chunk: &mut ChunkWriter, key: u64, class: &str, name: &str) -> StackId {
    let info = MethodInfo {
        class,
        name,
        descriptor: "()V",
        ..MethodInfo::default()
    };
    let frame = FrameRef {
        method: chunk.method(key, &info),
        line: 3,
        bci: 1,
        kind: FrameKind::C2,
    };
    chunk.stack(&[frame], false)
}

#[test]
fn owners_are_grouped_by_method_and_waiter() {
    let mut chunk = writer();
    let (waiter, owner) = (
        thread(&mut chunk, "w-1", 1),
        thread(&mut chunk, "owner-1", 2),
    );
    let waits = stack(&mut chunk, 1, "a/A", "take");
    let keeps = stack(&mut chunk, 2, "a/A", "book");
    let class = chunk.object_class("a/Ledger");
    chunk.monitor_enter(&MonitorEnter {
        ticks: 5,
        duration_ticks: 4_000,
        thread: waiter,
        stack: waits,
        class,
        owner: Some(owner),
        weight_ns: 5_000,
        ..MonitorEnter::default()
    });
    for (owner, stack, duration_ns, weight_ns, failure) in [
        (owner, keeps, 4_000, 4_000, ""),
        (ThreadId::default(), StackId::NONE, 250, 1_000, "no_answer"),
    ] {
        chunk.event(&Event::MonitorOwner {
            ticks: 6,
            owner,
            stack,
            class: "a/Ledger",
            waiter,
            waiter_stack: waits,
            address: 7,
            duration_ns,
            weight_ns,
            failure,
        });
    }
    let profile = Profile::from_recording(read(chunk));
    let classes = profile.lock_classes();
    let owners_at = [("a.A.book", 4_000), (NOT_KNOWN, 1_000)];
    let owners_at = owners_at.map(|(place, ns)| (place.to_owned(), ns));
    assert_eq!(
        (&classes[0].owners_at[..], true),
        (&owners_at[..], classes[0].is_asked)
    );
    let rows = profile.owner_rows();
    let told = rows.iter().map(|row| {
        let methods: Vec<&str> = row.methods.iter().map(String::as_str).collect();
        (row.group.as_deref(), methods, row.blocked.sum)
    });
    let expected = [
        (Some("owner-*"), vec!["a.A.book"], 4_000),
        (None, vec![], 1_000),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    for row in &rows {
        let of = (row.class.as_str(), row.waiter.as_deref());
        assert_eq!(of, ("a.Ledger", Some("a.A.take")));
    }
    // One in four of such waits is recorded and has asked: 1000 * (1000 - 250).
    let squares = profile
        .monitor_owners()
        .iter()
        .map(|it| it.weight().squares);
    assert_eq!(squares.collect::<Vec<_>>(), [0.0, 750_000.0]);
}

/// Waits that ask take longer. Their sum by class is that of all waits for the class nevertheless.
#[test]
fn owners_are_scaled_to_the_blocked_time_of_their_class() {
    let mut chunk = writer();
    let waiter = thread(&mut chunk, "w-1", 1);
    let waits = stack(&mut chunk, 1, "a/A", "take");
    for (name, blocked_ns, asked_ns) in [("a/Ledger", 3_000, 4_000), ("a/Book", 500, 250)] {
        let class = chunk.object_class(name);
        chunk.monitor_enter(&MonitorEnter {
            ticks: 5,
            duration_ticks: 100,
            thread: waiter,
            stack: waits,
            class,
            weight_ns: blocked_ns,
            ..MonitorEnter::default()
        });
        for weight_ns in [asked_ns, asked_ns] {
            chunk.event(&Event::MonitorOwner {
                ticks: 6,
                owner: waiter,
                stack: waits,
                class: name,
                waiter,
                waiter_stack: waits,
                address: 7,
                duration_ns: 250,
                weight_ns,
                failure: "",
            });
        }
    }
    let profile = Profile::from_recording(read(chunk));
    let scaled = profile.owners_blocked();
    let sums: Vec<u64> = scaled.iter().map(|weight| weight.sum).collect();
    assert_eq!(sums, [1_500, 1_500, 250, 250]);
    // 4000 * (4000 - 250) by (3/8)^2; a weight of a wait's duration is certain.
    assert_eq!(scaled[0].squares, 2_109_375.0);
    assert_eq!(scaled[2].squares, 0.0);
    let rows = profile.owner_rows();
    let rows = rows.iter().map(|row| (row.class.as_str(), row.blocked.sum));
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows, [("a.Ledger", 3_000), ("a.Book", 500)]);
}

//! Samples of allocations that a recording lost, in a profile.

use dwell_jfr::reader;
use dwell_jfr::writer::{ChunkClock, ChunkWriter, Event, ThreadId, ThreadInfo};
use dwell_profile::{EVENTS, Profile};

#[test]
fn lost_allocations_of_all_flushes_are_summed() {
    let mut chunk = ChunkWriter::new(ChunkClock {
        epoch_ns: 1_700_000_000_000_000_000,
        start_ticks: 0,
        ticks_per_second: 1_000_000_000,
    });
    let main = chunk.thread(
        1,
        &ThreadInfo {
            os_name: "main",
            os_tid: 1,
            java_name: Some("main"),
            java_tid: 1,
            group: None,
            is_virtual: false,
        },
    );
    for (thread, class, method, weight_bytes) in [
        (main, "[B", "a.B.c", 40_000),
        (ThreadId::NONE, "[other classes]", "", 5000),
        (main, "[B", "a.B.c", 3000),
    ] {
        chunk.event(&Event::LostAllocations {
            ticks: 9,
            thread,
            class,
            method,
            samples: 1,
            weight_bytes,
        });
    }
    let mut file = chunk.flush(30_000_000_000);
    let header = chunk.header();
    file[..header.len()].copy_from_slice(&header);
    let options = reader::Options {
        events: reader::EventFilter::Only(EVENTS),
        ..reader::Options::default()
    };
    let recording = reader::parse_with(&file, &options).unwrap();
    let profile = Profile::from_recording(recording);
    let [classes, threads, methods] = profile.lost_bytes();
    let row = |name: &str, bytes| (name.to_owned(), bytes);
    assert_eq!(
        classes,
        [row("byte[]", 43_000), row("[other classes]", 5000)]
    );
    assert_eq!(threads, [row("main", 43_000), row("[other threads]", 5000)]);
    assert_eq!(
        methods,
        [row("a.B.c", 43_000), row("[other methods]", 5000)]
    );
}

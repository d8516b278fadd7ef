//! The cost of the writer: bytes per sample and memory per chunk, which the agent relies on.

mod common;

use common::{Demo, START_TICKS, append, clock};
use dwell_jfr::reader;

#[test]
fn repeated_samples_cost_bytes_but_no_memory() {
    let mut demo = Demo::new(clock());
    demo.round();
    demo.flush();
    let memory = demo.writer().memory_bytes();
    let before = demo.writer().len();
    let rounds = 1000;
    for _ in 0..rounds {
        demo.round();
        assert!(demo.writer().pending_bytes() > 0);
        demo.flush();
        assert_eq!(demo.writer().pending_bytes(), 0);
    }
    // Each flush gives its buffer away, so only a small one may remain.
    assert!(demo.writer().memory_bytes() <= memory + 4096);
    // Twelve bytes of numbers, the ticks, which take five, and a byte for each part of a context
    // that is not there. One of the four samples has one: 64 digits of ids, and two bytes for each.
    let bytes = demo.writer().len() - before;
    assert!(
        bytes <= rounds * (4 * (18 + 5) + 64 + 3 * 2),
        "{bytes} bytes for {rounds} rounds"
    );
}

#[test]
fn a_flush_without_news_adds_nothing_and_the_file_stays_whole() {
    let mut demo = Demo::new(clock());
    let mut file = Vec::new();
    append(&mut file, 0, demo.writer(), START_TICKS);
    let length = file.len();
    append(&mut file, 0, demo.writer(), START_TICKS + 5_000_000_000);
    assert_eq!(file.len(), length);
    let recording = reader::parse(&file).unwrap();
    assert_eq!(recording.chunks[0].duration_ns, 5_000_000_000);
    assert_eq!(recording.warnings, [""; 0]);
}

#[test]
fn new_constants_are_counted_as_memory() {
    let mut demo = Demo::new(clock());
    let before = demo.writer().memory_bytes();
    let name = "n".repeat(1000);
    for key in 0..100 {
        let info = dwell_jfr::writer::MethodInfo {
            class: &format!("{name}{key}"),
            ..Default::default()
        };
        demo.writer().method(key + 1_000_000, &info);
    }
    let grown = demo.writer().memory_bytes() - before;
    assert!((100_000..400_000).contains(&grown), "{grown}");
}

#[test]
fn events_that_wait_are_counted_as_memory() {
    let mut demo = Demo::new(clock());
    demo.flush();
    let before = demo.writer().memory_bytes();
    for _ in 0..10_000 {
        demo.round();
    }
    // The vector of new bytes doubles as it grows.
    let (waiting, memory) = (demo.writer().pending_bytes(), demo.writer().memory_bytes());
    assert!(
        (before + waiting..before + 3 * waiting).contains(&memory),
        "{memory} for {waiting}"
    );
}

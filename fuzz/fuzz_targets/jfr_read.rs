//! Any bytes as a recording: reading never panics, and what it gives refers only to what is there.
#![no_main]

use dwell_jfr::reader::{Recording, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(recording) = parse(data) {
        check(&recording);
    }
});

fn check(recording: &Recording) {
    for sample in &recording.samples {
        assert!(recording.thread(sample).is_some());
        assert!(recording.stack(sample).is_some());
        assert_eq!(
            sample.failure.is_some(),
            recording.failure(sample).is_some()
        );
        let carrier = sample.carrier.unwrap_or(sample.thread);
        assert!((carrier as usize) < recording.threads.len());
    }
    for frame in recording.stacks.node_frames() {
        assert!(recording.method(frame).is_some());
    }
    let kept = recording.samples.len() + recording.events.len();
    assert!(kept as u64 <= recording.counts.values().sum());
}

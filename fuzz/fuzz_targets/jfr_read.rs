//! Any bytes as a recording: reading never panics, and what it gives refers only to what is there.
//! Its time follows the size of the input; `-rss_limit_mb` does the same for memory.
#![no_main]

use dwell_jfr::reader::{Recording, parse};
use libfuzzer_sys::fuzz_target;
use std::time::{Duration, Instant};

fuzz_target!(|data: &[u8]| {
    let began = Instant::now();
    let read = parse(data);
    let most = Duration::from_secs(2) + Duration::from_micros(20) * data.len() as u32;
    assert!(began.elapsed() <= most, "{} bytes", data.len());
    if let Ok(recording) = read {
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

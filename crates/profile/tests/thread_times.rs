//! The kernel's accounts of threads, read from a recording: since when a thread is known, and
//! whether its time is that of virtual threads.

use dwell_jfr::reader;
use dwell_jfr::writer::{ChunkClock, ChunkWriter, Event, Sample, ThreadInfo};
use dwell_profile::{EVENTS, Profile};

const START_NS: u64 = 1_700_000_000_000_000_000;

#[test]
fn accounts_have_their_begin_and_carriers() {
    let mut chunk = ChunkWriter::new(ChunkClock {
        epoch_ns: START_NS,
        start_ticks: 0,
        ticks_per_second: 1_000_000_000,
    });
    let mut thread = |key, is_virtual| {
        let info = ThreadInfo {
            os_name: "t",
            os_tid: key,
            java_name: Some("t"),
            java_tid: key,
            group: None,
            is_virtual,
        };
        chunk.thread(key as u64, &info)
    };
    let [plain, carrier, logical] =
        [(1, false), (2, false), (3, true)].map(|(key, is)| thread(key, is));
    chunk.execution_sample(&Sample {
        ticks: 5,
        thread: logical,
        carrier: Some(carrier),
        weight_ns: 1,
        ..Sample::default()
    });
    for (ticks, thread) in [(3000, plain), (2000, plain), (2500, carrier)] {
        chunk.event(&Event::ThreadTime {
            ticks,
            duration_ticks: 1000,
            thread,
            cpu_ns: 1,
            waited_ns: 2,
            turns: 3,
        });
    }
    let mut file = chunk.flush(30_000_000_000);
    let header = chunk.header();
    file[..header.len()].copy_from_slice(&header);
    let options = reader::Options {
        events: reader::EventFilter::Only(EVENTS),
        ..reader::Options::default()
    };
    let profile = Profile::from_recording(reader::parse_with(&file, &options).unwrap());
    let times = profile.thread_times().iter();
    let mut found: Vec<_> = times
        .map(|time| {
            let tid = profile.threads()[time.thread as usize].java_tid;
            let since_ns = time.since_ns - START_NS;
            (tid, since_ns, time.duration_ns, time.is_carrier)
        })
        .collect();
    found.sort_unstable();
    assert_eq!(found, [(1, 2000, 2000, false), (2, 2500, 1000, true)]);
}

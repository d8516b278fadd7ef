//! A valid recording with some bytes changed and its end cut off: closer to real damage than any
//! bytes, and past the header and the metadata at once.
#![no_main]

use dwell_jfr::reader::parse;
use dwell_jfr::writer::{ChunkClock, ChunkWriter, Event, FrameRef, MethodInfo, Sample, ThreadInfo};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static WHOLE: OnceLock<Vec<u8>> = OnceLock::new();

fuzz_target!(|input: (Vec<(u16, u8)>, Vec<u8>, u16)| {
    let (edits, tail, cut) = input;
    let mut file = WHOLE.get_or_init(recording).clone();
    let length = file.len();
    for (place, value) in edits {
        file[usize::from(place) % length] = value;
    }
    file.truncate(length - usize::from(cut) % length);
    file.extend(tail);
    let _ = parse(&file);
});

fn recording() -> Vec<u8> {
    let clock = ChunkClock {
        epoch_ns: 1 << 60,
        start_ticks: 0,
        ticks_per_second: 3,
    };
    let mut writer = ChunkWriter::new(clock);
    let mut file = Vec::new();
    for key in 0..3 {
        let info = ThreadInfo {
            java_name: Some("t"),
            group: Some("g"),
            ..ThreadInfo::default()
        };
        let thread = writer.thread(key, &info);
        let info = MethodInfo {
            class: "a/B",
            name: "c",
            descriptor: "()V",
            ..MethodInfo::default()
        };
        let method = writer.method(key, &info);
        let stack = writer.stack(
            &[FrameRef {
                method,
                ..FrameRef::default()
            }],
            false,
        );
        let failure = Some("cause");
        let sample = Sample {
            ticks: key,
            thread,
            stack,
            failure,
            ..Sample::default()
        };
        writer.execution_sample(&sample);
        writer.event(&Event::Gap {
            ticks: key,
            duration_ticks: 1,
            cause: "c",
            lost_samples: 1,
            lost_weight_ns: 1,
        });
        file.extend(writer.flush(key));
        file[..68].copy_from_slice(&writer.header());
    }
    file
}

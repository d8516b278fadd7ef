//! Any names and numbers through the writer and back.
#![no_main]

use dwell_jfr::FrameKind;
use dwell_jfr::reader::parse;
use dwell_jfr::writer::{
    ChunkClock, ChunkWriter, FrameRef, MethodInfo, Origin, Sample, ThreadInfo,
};
use libfuzzer_sys::fuzz_target;

/// Class, method, descriptor, thread name, line, weight; the last says whether a flush follows.
type Input = (String, String, String, String, i32, u64, bool);

fuzz_target!(|inputs: Vec<Input>| {
    let clock = ChunkClock {
        epoch_ns: 0,
        start_ticks: 0,
        ticks_per_second: 1_000_000_000,
    };
    let mut writer = ChunkWriter::new(clock);
    let mut file = Vec::new();
    for (key, (class, name, descriptor, thread, line, weight_ns, flush)) in
        inputs.iter().enumerate()
    {
        let info = ThreadInfo {
            os_name: thread,
            ..ThreadInfo::default()
        };
        let thread = writer.thread(key as u64, &info);
        let info = MethodInfo {
            class,
            name,
            descriptor,
            origin: Some(Origin {
                module: name,
                location: descriptor,
            }),
            ..MethodInfo::default()
        };
        let method = writer.method(key as u64, &info);
        let frame = FrameRef {
            method,
            line: *line,
            bci: -1,
            kind: FrameKind::C1,
        };
        let stack = writer.stack(&[frame], false);
        let (ticks, weight_ns) = (key as u64, *weight_ns);
        writer.execution_sample(&Sample {
            ticks,
            thread,
            stack,
            weight_ns,
            ..Sample::default()
        });
        if *flush {
            file.extend(writer.flush(ticks));
        }
    }
    file.extend(writer.flush(0));
    file[..68].copy_from_slice(&writer.header());
    let recording = parse(&file).expect("our own file");
    assert!(recording.warnings.is_empty(), "{:?}", recording.warnings);
    assert_eq!(recording.samples.len(), inputs.len());
    for (sample, (_, name, _, thread, line, weight_ns, _)) in recording.samples.iter().zip(&inputs)
    {
        let [frame] = recording.stack(sample).expect("a stack").frames[..] else {
            panic!("not one frame");
        };
        assert_eq!(*recording.method(&frame).expect("a method").name, **name);
        assert_eq!(
            *recording.thread(sample).expect("a thread").os_name,
            **thread
        );
        assert_eq!((frame.line, sample.weight_ns), (*line, Some(*weight_ns)));
    }
});

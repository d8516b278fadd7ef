//! Tests of the parts of a chunk.

use super::*;
use crate::reader::{Recording, parse};
use crate::writer::{
    ChunkClock, ChunkWriter, Context, Event, FrameRef, MethodInfo, Sample, ThreadInfo,
};

use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const START: u64 = 50 * SECOND;
const EPOCH: u64 = 1_700_000_000 * SECOND;

/// A chunk of this many flushes, one a second. Weights, contexts and constants are written only
/// where they change.
fn chunk(flushes: u64, ticks_per_second: u64) -> Vec<u8> {
    let tick = SECOND / ticks_per_second;
    let mut chunk = ChunkWriter::new(ChunkClock {
        epoch_ns: EPOCH,
        start_ticks: START / tick,
        ticks_per_second,
    });
    let mut file = Vec::new();
    for second in 0..flushes {
        let now = (START + second * SECOND) / tick;
        let root = format!("{:016x}", second + 1);
        chunk.event(&Event::Endpoint {
            ticks: now,
            local_root_span_id: &root,
            endpoint: "GET /x",
        });
        for key in 0..2 {
            let name = format!("thread {key}");
            let thread = chunk.thread(
                key,
                &ThreadInfo {
                    os_name: &name,
                    os_tid: key as i64 + 1,
                    ..ThreadInfo::default()
                },
            );
            let method = chunk.method(
                second / 2,
                &MethodInfo {
                    class: "a/B",
                    name: ["x", "y", "z"][(second as usize / 2) % 3],
                    descriptor: "()V",
                    ..MethodInfo::default()
                },
            );
            let frame = FrameRef {
                method,
                ..FrameRef::default()
            };
            let stack = chunk.stack(&[frame], false);
            let context = Context {
                span_id: 7 + key,
                ..Context::default()
            };
            chunk.execution_sample(&Sample {
                ticks: now + key + 1,
                thread,
                stack,
                weight_ns: 10 + key,
                context: (second != 1).then_some(&context),
                ..Sample::default()
            });
        }
        file.extend(chunk.flush((START + (second + 1) * SECOND) / tick));
        file[..HEADER_BYTES].copy_from_slice(&chunk.header());
    }
    file
}

/// Samples in words, without numbers that depend on the file.
fn said(recording: &Recording) -> Vec<String> {
    assert_eq!(recording.warnings, Vec::<String>::new());
    let said = recording.samples.iter().map(|it| {
        let stack = recording.stack(it).unwrap();
        let method = &recording.methods[stack.frames[0].method as usize].name;
        let thread = &recording.threads[it.thread as usize].os_name;
        let span = recording.context(it).map(|context| context.span_id);
        format!(
            "{} {thread} {method} {:?} {span:?}",
            it.time_ns, it.weight_ns
        )
    });
    said.collect()
}

#[test]
fn parts_have_each_sample_once_with_its_details() {
    for ticks_per_second in [SECOND, 1_000] {
        let file = chunk(6, ticks_per_second);
        let all = flushes(&file).unwrap();
        // Constants are new in every second flush only, so the others end nothing.
        let seconds: Vec<u64> = all.iter().map(|it| (it.time_ns - EPOCH) / SECOND).collect();
        assert_eq!(seconds, [1, 3, 5, 6]);
        let mut before = Flush {
            offset: 0,
            time_ns: EPOCH,
        };
        let (mut together, mut joined) = (Vec::new(), Vec::new());
        for flush in &all {
            let part = part(&file, before.offset, flush, before.time_ns).unwrap();
            let recording = parse(&part).unwrap();
            let info = &recording.chunks[0];
            assert!(info.complete);
            assert_eq!(info.start_ns, before.time_ns);
            assert_eq!(info.start_ns + info.duration_ns, flush.time_ns);
            let endpoints = recording.counts["dwell.Endpoint"];
            assert_eq!(
                endpoints,
                (flush.time_ns - EPOCH) / SECOND,
                "all up to the end"
            );
            together.extend(said(&recording));
            joined.extend(part);
            before = *flush;
        }
        let whole = said(&parse(&file).unwrap());
        assert_eq!(whole.len(), 12);
        assert_eq!(together, whole);
        assert_eq!(said(&parse(&joined).unwrap()), whole);
    }
}

#[test]
fn whole_part_is_the_chunk_itself() {
    let file = chunk(2, SECOND);
    let end = *flushes(&file).unwrap().last().unwrap();
    assert_eq!(part(&file, 0, &end, EPOCH).unwrap(), file);
    assert!(is_of_dwell(&file).unwrap());
    let cut = &file[..file.len() - 1];
    assert!(flushes(cut).is_err() && part(cut, 0, &end, EPOCH).is_err());
}

#[test]
fn only_a_whole_chunk_has_a_header() {
    let file = chunk(1, SECOND);
    let header = &file[..HEADER_BYTES];
    let there = file.len() as u64;
    let info = whole_header(header, there).unwrap();
    assert_eq!((info.size, info.start_ns), (there, EPOCH));
    assert_eq!(whole_header(header, there - 1), None);
    assert_eq!(whole_header(&header[1..], there), None);
    assert_eq!(whole_header(&[], there), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_damage_gives_parts_or_an_error(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        len in any::<prop::sample::Index>(),
        from in any::<u16>(),
    ) {
        let mut file = chunk(2, SECOND);
        for (place, byte) in damage {
            let place = place.index(file.len());
            file[place] = byte;
        }
        file.truncate(len.index(file.len() * 2).max(1));
        let _ = (whole_header(&file, file.len() as u64), is_of_dwell(&file), find_header(&file));
        for flush in flushes(&file).unwrap_or_default() {
            let _ = part(&file, u64::from(from), &flush, EPOCH);
        }
    }
}

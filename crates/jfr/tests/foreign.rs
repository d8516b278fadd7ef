//! Samples of other profilers, in the form of the JDK's events with these names: their weights
//! count ticks of their clocks.

mod common;

use common::jdk::{Folder, jdks};
use dwell_jfr::reader::{self, SampleKind};
use std::path::Path;

#[test]
fn samples_of_other_profilers_count_ticks() {
    let jdks = jdks();
    let jdk = jdks.iter().max_by_key(|jdk| jdk.version).unwrap();
    let folder = Folder::new("ticks");
    let path = folder.0.join("ticks.jfr");
    let option = format!("-XX:StartFlightRecording=filename={}", path.display());
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java/Ticks.java");
    jdk.run(
        "java",
        &["-Xlog:disable", &option, &program.to_string_lossy()],
    );
    let recording = reader::parse(&std::fs::read(&path).unwrap()).unwrap();
    for (kind, ticks) in [
        (SampleKind::WallClock, 3),
        (SampleKind::DatadogCpu, 2),
        (SampleKind::DatadogWall, 5),
    ] {
        let samples: Vec<_> = recording
            .samples
            .iter()
            .filter(|s| s.kind == kind)
            .collect();
        assert_eq!(samples.len(), 10, "{kind:?}");
        for sample in samples {
            let wall = recording.walls[sample.wall.unwrap() as usize];
            assert_eq!((wall.count, sample.weight_ns), (ticks, None), "{kind:?}");
            let thread = recording.thread(sample).unwrap();
            assert_eq!(thread.java_name.as_deref(), Some("main"), "{kind:?}");
            let stack = recording.stack(sample).unwrap();
            let names = stack
                .frames
                .iter()
                .map(|frame| recording.method(frame).unwrap());
            assert!(
                names
                    .into_iter()
                    .any(|m| &*m.name == "main" && &*m.class == "Ticks")
            );
        }
    }
    let spans = recording
        .samples
        .iter()
        .filter_map(|sample| recording.context(sample));
    let spans: Vec<_> = spans.map(|c| (c.span_id, c.local_root_span_id)).collect();
    assert_eq!(spans, [(77, 78); 10]);
}

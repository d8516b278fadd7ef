//! Stacks of real threads, frozen with the memory that their walks read. The walker's frames are
//! compared with those in a recording, one by one, through the whole recorder.

mod mock;

use dwell_frozen::Frozen;
use dwell_jfr::FrameKind as FileKind;
use dwell_jfr::reader::{Recording, Sample};
use dwell_recorder::options::{EngineChoice, parse};
use dwell_recorder::recorder::Recorder;
use dwell_recorder::source::Source;
use dwell_recorder::sys::process;
use dwell_walker::{Failure, Frame, FrameKind};
use mock::{Agent, Mock, begin_thread, method_of};
use std::path::Path;
use std::time::Duration;

/// CPU time that each thread uses in its stack: ten samples, and room for other samples.
const BUSY: Duration = Duration::from_millis(20);
/// Deeper than any of them.
const FRAMES_MAX: usize = 512;

/// All walks, with their files' names.
fn walks() -> Vec<(String, Frozen)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/walks");
    let files = std::fs::read_dir(folder).unwrap();
    let mut walks: Vec<_> = files
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().display().to_string();
            let text = std::fs::read_to_string(&path).unwrap();
            (name, Frozen::parse(&text).unwrap())
        })
        .collect();
    walks.sort_by(|(a, _), (b, _)| a.cmp(b));
    walks
}

/// A frame in a file: its kind, and of managed ones the method and the place in it.
type Told = (FileKind, Option<(String, i32)>);

fn expected(frame: &Frame) -> Told {
    let kind = match frame.kind {
        FrameKind::Interpreted => FileKind::Interpreted,
        FrameKind::C1 => FileKind::C1,
        FrameKind::C2 => FileKind::C2,
        FrameKind::Ahead => FileKind::Ahead,
        FrameKind::Inlined => FileKind::Inlined,
        FrameKind::ManagedNative | FrameKind::Native => FileKind::Native,
        FrameKind::Vm => FileKind::Vm,
        FrameKind::Kernel => FileKind::Kernel,
        FrameKind::Stub => FileKind::Stub,
        FrameKind::Failed => FileKind::Failed,
    };
    let bci = match frame.kind {
        // A method without code has one place.
        FrameKind::ManagedNative => 0,
        _ => frame.bci,
    };
    let managed = frame.kind.is_managed();
    (kind, managed.then(|| (method_of(frame.id), bci)))
}

fn told(recording: &Recording, sample: &Sample) -> Vec<Told> {
    // Clocks are read in the kernel.
    let frames = &recording.stack(sample).unwrap().frames;
    let frames = frames.iter().filter(|frame| frame.kind != FileKind::Kernel);
    let told = frames.map(|frame| {
        let method = recording.method(frame).unwrap();
        let managed = *method.class == mock::CLASS.replace('/', ".");
        let place = managed.then(|| (method.name.to_string(), frame.bci));
        (frame.kind, place)
    });
    told.collect()
}

/// One thread after the other uses its time, each in a stack of its own.
fn work(agent: &'static Agent, walks: &[(String, Frozen)]) {
    for (index, (name, _)) in walks.iter().enumerate() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                begin_thread(agent, name, mock::FROZEN + index as u64, 0);
                let until = process::own_cpu() + BUSY;
                while process::own_cpu() < until {
                    std::hint::spin_loop();
                }
                agent.own_thread_ends();
            });
        });
    }
}

#[test]
fn a_recording_has_the_frames_that_the_walker_finds() {
    let walks = walks();
    assert!(walks.len() > 30, "{} walks", walks.len());
    let mock = Mock {
        frozen: walks.iter().map(|(_, walk)| walk.clone()).collect(),
        ..Mock::default()
    };
    let dir = std::env::temp_dir().join(format!("dwell-frozen-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("frozen.jfr").display().to_string();
    let source = Source::start(EngineChoice::Timer).unwrap();
    let agent: &'static Agent = Box::leak(Box::new(Recorder::new(mock, source)));
    let text = format!("start,cpu=1ms,engine=timer,file={file}");
    let options = parse(&text).unwrap();
    let _ = agent
        .start(&options, &text, || agent.find_threads())
        .unwrap();
    work(agent, &walks);
    agent.stop(|| ()).unwrap();

    let recording = dwell_jfr::reader::parse(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(recording.warnings, Vec::<String>::new());
    for (name, walk) in &walks {
        let mut frames = vec![Frame::failed(Failure::UnknownPc); FRAMES_MAX];
        let len = walk.walk(&mut frames).len;
        assert!(len < FRAMES_MAX, "{name}: {len} frames");
        let stack: Vec<Told> = frames[..len].iter().map(expected).collect();
        let of_thread = recording.samples.iter().filter(|sample| {
            let of = recording.thread(sample).unwrap();
            of.java_name.as_deref() == Some(name)
        });
        let (alike, others): (Vec<_>, Vec<_>) = of_thread
            .map(|sample| told(&recording, sample))
            .partition(|told| *told == stack);
        if alike.is_empty() {
            assert_eq!(others.last(), Some(&stack), "{name}: the last of them");
        }
        // Before the thread has reported itself, and after, it is a native one.
        let is_native = |told: &Vec<Told>| told.iter().all(|(_, place)| place.is_none());
        let wrong = others.iter().find(|told| !is_native(told));
        assert_eq!(wrong, None, "{name}, not {stack:?}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

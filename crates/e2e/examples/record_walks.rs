//! Records walks as fixtures: `cargo run -p dwell-e2e --example record_walks -- FOLDER [JDK...]`.
//!
//! On each JDK the test programs are recorded with `freeze=`; of their walks the fewest small ones
//! are kept that together cover all cases, cut down to the words that a replay reads.
//!
//! `-- FOLDER --from WALKS NAME` does the same with walks of another machine: it chooses among the
//! files in WALKS, and their names begin with NAME.

use dwell_e2e::{Jdk, Place, Starter, jdks};
use dwell_frozen::{Frozen, Recorder};
use dwell_walker::hotspot::layout::ABSENT;
use dwell_walker::{Frame, FrameKind, Walk};
use std::collections::BTreeSet;
use std::path::Path;

/// Maximum length of a fixture.
const BYTES_MAX: usize = 60_000;
const FRAMES_MAX: usize = 8193;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .expect("usage: record_walks FOLDER [JDK...]");
    let wanted: Vec<String> = arguments.collect();
    std::fs::create_dir_all(&folder).expect("the folder");
    if let [from, walks, name] = &wanted[..]
        && from == "--from"
    {
        return keep(&folder, name, walks_in(Path::new(walks), name));
    }
    let is_wanted = |jdk: &&Jdk| wanted.is_empty() || wanted.contains(&jdk.feature.to_string());
    for jdk in jdks().iter().filter(is_wanted) {
        keep(&folder, &jdk.feature.to_string(), record(jdk));
    }
}

/// Writes the chosen ones, with this begin of their names.
fn keep(folder: &str, start: &str, found: Vec<Frozen>) {
    let kept = choose(found);
    let names: Vec<&str> = kept.iter().map(|(name, _)| name.as_str()).collect();
    println!("{start}: {}", names.join(" "));
    for (name, walk) in kept {
        let path = Path::new(folder).join(format!("{start}-{name}.walk"));
        std::fs::write(path, walk.to_text()).expect("a fixture is written");
    }
}

/// Frames that deoptimisation has just marked are rare: this often they are looked for.
const DEOPT_TRIES: usize = 12;

/// Complete walks of some programs, each cut down.
fn record(jdk: &Jdk) -> Vec<Frozen> {
    let mut walks = Vec::new();
    let first = "seconds=3 batch_ms=5 kinds=hotLeaf,arrayCopy,deflate,exceptions";
    let second = "seconds=3 batch_ms=5 kinds=interpretedHuge,streams,reflection,strings";
    walks.extend(record_program(jdk, "Accuracy", first));
    walks.extend(record_program(jdk, "Accuracy", second));
    if jdk.feature >= 21 {
        walks.extend(record_program(jdk, "VirtualThreads", "seconds=3"));
    }
    for _ in 0..DEOPT_TRIES {
        let found = record_program(jdk, "DeoptStorm", "seconds=2");
        if let Some(walk) = found.into_iter().find(|walk| cases(walk).contains("deopt")) {
            walks.push(walk);
            break;
        }
    }
    walks
}

fn record_program(jdk: &Jdk, name: &str, arguments: &str) -> Vec<Frozen> {
    let place = Place::new("walks");
    std::fs::create_dir(place.path("frozen")).expect("a folder");
    let mut program = Starter::new(jdk, &place, name).with(arguments).start();
    program.tell(&format!(
        "start,cpu=1ms,file={},freeze={},freeze-every=12",
        place.text("w.jfr"),
        place.text("frozen")
    ));
    let _ = program.work();
    program.tell("stop");
    program.end();
    let origin = format!("{name} on JDK {}", jdk.feature);
    walks_in(&place.path("frozen"), &origin)
}

/// Walks of a folder that are complete, cut down.
fn walks_in(folder: &Path, origin: &str) -> Vec<Frozen> {
    let mut walks = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a walk");
        let frozen = Frozen::parse(&text).expect("a walk");
        walks.extend(cut_down(frozen, origin.to_owned()));
    }
    walks
}

fn replay(frozen: &Frozen) -> (Walk, Vec<Frame>) {
    let mut frames = vec![Frame::EMPTY; FRAMES_MAX];
    let walk = frozen.walk(&mut frames);
    frames.truncate(walk.len);
    (walk, frames)
}

/// Only what a replay reads; `None` if it is not complete or does not replay.
fn cut_down(mut frozen: Frozen, origin: String) -> Option<Frozen> {
    if frozen.outcome != "complete" || replay(&frozen).1 != frozen.frames {
        return None;
    }
    let recorder = Recorder::new(&frozen, &frozen);
    let mut frames = vec![Frame::EMPTY; FRAMES_MAX];
    let _ = frozen.walk_over_both(&recorder, &recorder, &mut frames);
    let (words, native) = recorder.into_parts();
    (frozen.words, frozen.native, frozen.origin) = (words, native, origin);
    (replay(&frozen).1 == frozen.frames).then_some(frozen)
}

/// The cases that a walk covers.
fn cases(frozen: &Frozen) -> BTreeSet<&'static str> {
    let mut cases = BTreeSet::new();
    for (kind, name) in [
        (FrameKind::Interpreted, "interpreted"),
        (FrameKind::C1, "c1"),
        (FrameKind::C2, "c2"),
        (FrameKind::Inlined, "inlined"),
        (FrameKind::ManagedNative, "wrapper"),
    ] {
        if frozen.frames.iter().any(|frame| frame.kind == kind) {
            cases.insert(name);
        }
    }
    let leaf = frozen.frames.first().map(|frame| frame.kind);
    let first_java = frozen
        .frames
        .iter()
        .position(|frame| frame.kind.is_managed());
    match leaf {
        Some(FrameKind::Stub) => cases.insert("stub"),
        Some(FrameKind::Vm) if first_java.is_some() => cases.insert("vm"),
        Some(FrameKind::Native) if first_java.is_some() => cases.insert("native"),
        _ => false,
    };
    // Java, then the VM, then Java again: a call through an entry frame.
    let java = frozen.frames.iter().map(|frame| frame.kind.is_managed());
    let mut changes: Vec<bool> = java.collect();
    changes.dedup();
    if changes.iter().filter(|java| **java).count() > 1 {
        cases.insert("entry");
    }
    let differs = |change: &dyn Fn(&mut Frozen)| {
        let mut other = frozen.clone();
        change(&mut other);
        replay(&other).1 != frozen.frames
    };
    if differs(&|walk| walk.layout.nmethod_orig_pc_offset = ABSENT) {
        cases.insert("deopt");
    }
    if frozen.layout.extra.return_barrier != 0
        && differs(&|walk| walk.layout.extra.return_barrier = 0)
    {
        cases.insert("barrier");
    }
    cases
}

/// The fewest walks that cover all cases, greedily; each with the name of what it adds.
fn choose(walks: Vec<Frozen>) -> Vec<(String, Frozen)> {
    let mut walks: Vec<(BTreeSet<&str>, usize, Frozen)> = walks
        .into_iter()
        .map(|walk| (cases(&walk), walk.to_text().len(), walk))
        .filter(|(_, bytes, _)| *bytes <= BYTES_MAX)
        .collect();
    let mut covered: BTreeSet<&str> = BTreeSet::new();
    let mut kept = Vec::new();
    loop {
        let adds = |set: &BTreeSet<&str>| set.difference(&covered).count();
        let best = (0..walks.len())
            .max_by_key(|at| (adds(&walks[*at].0), std::cmp::Reverse(walks[*at].1)));
        let Some(best) = best.filter(|at| adds(&walks[*at].0) > 0) else {
            return kept;
        };
        let (set, _, walk) = walks.swap_remove(best);
        let new: Vec<&str> = set.difference(&covered).copied().collect();
        kept.push((new.join("-"), walk));
        covered.extend(set);
    }
}

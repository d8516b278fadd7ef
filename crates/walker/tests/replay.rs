//! Recorded walks of every JDK, replayed: they give the same frames. If each read fails in turn, or
//! words are wrong, each walk has a named end, and never panics or runs forever.
#![allow(missing_docs)]

use dwell_frozen::{Frozen, Registers};
use dwell_walker::cache::{PcCache, Slot};
use dwell_walker::hotspot::{BlobKind, CodeCache, continuation};
use dwell_walker::machine::X86_64;
use dwell_walker::native::NativeRegs;
use dwell_walker::{Failure, Fault, Frame, FrameKind, Frames, Memory, Outcome, Walk, Walker};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// More frames than any fixture has, and fewer than an endless walk would yield.
const FRAMES_MAX: usize = 4096;

struct Fixture {
    name: String,
    frozen: Frozen,
    /// The same words in a map.
    words: HashMap<u64, u64>,
}

fn fixtures() -> &'static [Fixture] {
    static ALL: OnceLock<Vec<Fixture>> = OnceLock::new();
    ALL.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/walks");
        let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "walk"));
        paths.sort();
        paths.iter().map(|path| fixture(path)).collect()
    })
}

fn fixture(path: &Path) -> Fixture {
    let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
    let text = std::fs::read_to_string(path).unwrap();
    let frozen = Frozen::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let words = frozen
        .words
        .iter()
        .filter_map(|(at, word)| Some((*at, (*word)?)))
        .collect();
    Fixture {
        name,
        frozen,
        words,
    }
}

/// Memory of a fixture with faults of its own.
struct Faulty<'a> {
    words: &'a HashMap<u64, u64>,
    /// Words that differ from the recorded ones.
    changed: HashMap<u64, u64>,
    /// The distinct words read so far, by the order of their first read.
    seen: RefCell<HashMap<u64, usize>>,
    /// The word that cannot be read.
    fails: usize,
    reads: Cell<u64>,
}

impl<'a> Faulty<'a> {
    fn new(fixture: &'a Fixture, fails: usize) -> Faulty<'a> {
        Faulty {
            words: &fixture.words,
            changed: HashMap::new(),
            seen: RefCell::default(),
            fails,
            reads: Cell::new(0),
        }
    }

    fn aligned(&self, at: u64) -> Option<u64> {
        self.reads.set(self.reads.get() + 1);
        let mut seen = self.seen.borrow_mut();
        let next = seen.len();
        if *seen.entry(at).or_insert(next) == self.fails {
            return None;
        }
        self.changed
            .get(&at)
            .or_else(|| self.words.get(&at))
            .copied()
    }
}

impl Memory for Faulty<'_> {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        let low = self.aligned(addr & !7).ok_or(Fault { addr })?;
        match addr & 7 {
            0 => Ok(low),
            n => {
                let high = self
                    .aligned((addr & !7).wrapping_add(8))
                    .ok_or(Fault { addr })?;
                Ok((low >> (n * 8)) | (high << (64 - n * 8)))
            }
        }
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        for (i, byte) in buf.iter_mut().enumerate() {
            *byte = self.u8(addr.wrapping_add(i as u64))?;
        }
        Ok(())
    }
}

fn outcome_name(walk: &Walk) -> &'static str {
    match walk.outcome {
        Outcome::Complete => "complete",
        Outcome::Failed(failure) => failure.name(),
    }
}

/// A failed walk has a named failure as its last frame.
#[track_caller]
fn check_end(what: &str, walk: &Walk, frames: &[Frame]) {
    assert!(walk.len <= frames.len(), "{what}: {} frames", walk.len);
    if let Outcome::Failed(failure) = walk.outcome {
        let last = frames[walk.len - 1];
        assert_eq!(last.kind, FrameKind::Failed, "{what}: {failure:?}");
        assert_eq!(Failure::from_id(last.id), Some(failure), "{what}");
    }
}

/// A walk may read a word again, but the number of reads is bounded.
fn reads_max(fixture: &Fixture) -> u64 {
    64 * fixture.words.len() as u64 + 200_000
}

#[test]
fn every_walk_yields_the_same_frames_again() {
    for fixture in fixtures() {
        let mut frames = vec![Frame::EMPTY; FRAMES_MAX];
        let walk = fixture.frozen.walk(&mut frames);
        assert_eq!(
            frames[..walk.len],
            fixture.frozen.frames[..],
            "{}",
            fixture.name
        );
        assert_eq!(
            outcome_name(&walk),
            fixture.frozen.outcome,
            "{}",
            fixture.name
        );
    }
}

/// Without this test, a lost fixture would not be noticed.
#[test]
fn every_jdk_has_every_kind_of_frame() {
    for jdk in ["8", "11", "17", "21", "25", "26", "27", "28"] {
        let of_jdk = || {
            let start = format!("{jdk}-");
            fixtures()
                .iter()
                .filter(move |fixture| fixture.name.starts_with(&start))
        };
        let frames = of_jdk().flat_map(|fixture| &fixture.frozen.frames);
        let kinds: BTreeSet<String> = frames.map(|frame| format!("{:?}", frame.kind)).collect();
        for kind in [
            "Interpreted",
            "C1",
            "C2",
            "Inlined",
            "ManagedNative",
            "Native",
            "Vm",
            "Stub",
        ] {
            assert!(kinds.contains(kind), "JDK {jdk}: {kinds:?}");
        }
        let mut cases = vec!["stub", "vm", "wrapper", "deopt"];
        if jdk.parse::<u32>().unwrap() >= 21 {
            cases.push("barrier");
        }
        for case in cases {
            let named = of_jdk().any(|fixture| fixture.name.split('-').any(|part| part == case));
            assert!(named, "JDK {jdk} has no walk with {case}");
        }
    }
}

/// They were recorded on an emulated machine, where C2 is too slow to be there.
#[test]
fn arm64_has_walks_of_each_jdk_tried_there() {
    for (jdk, case) in [("17", "wrapper"), ("21", "barrier"), ("25", "barrier")] {
        let start = format!("aarch64-{jdk}-");
        let of_jdk = || fixtures().iter().filter(|it| it.name.starts_with(&start));
        let frames = of_jdk().flat_map(|fixture| &fixture.frozen.frames);
        let kinds: BTreeSet<String> = frames.map(|frame| format!("{:?}", frame.kind)).collect();
        for kind in ["Interpreted", "C1", "ManagedNative", "Native", "Vm", "Stub"] {
            assert!(kinds.contains(kind), "JDK {jdk}: {kinds:?}");
        }
        for case in ["stub", "entry", case] {
            let is_named = |it: &Fixture| it.name.split('-').any(|part| part == case);
            assert!(of_jdk().any(is_named), "JDK {jdk} has no walk with {case}");
        }
    }
}

/// Between the moment of a stack and its walk, code and classes may be freed. The frames above are
/// still found, and the gap has a name; frames of the replacing code are not shown.
#[test]
fn walk_continues_above_freed_frames() {
    let gone = [
        (
            "17-unloaded",
            vec![Failure::StaleMethod, Failure::StaleMethod],
        ),
        ("25-replaced", vec![Failure::BadCompiled]),
        ("25-freed", vec![Failure::NoBlob]),
        ("25-thaw", vec![Failure::BeingThawed]),
    ];
    for (name, marks) in gone {
        let fixture = fixtures().iter().find(|fixture| fixture.name == name);
        let frozen = &fixture.unwrap_or_else(|| panic!("no {name}")).frozen;
        let mut frames = vec![Frame::EMPTY; FRAMES_MAX];
        let walk = frozen.walk(&mut frames);
        assert_eq!(walk.outcome, Outcome::Complete, "{name}");
        let failed = |frame: &&Frame| frame.kind == FrameKind::Failed;
        let found: Vec<_> = frames[..walk.len].iter().filter(failed).collect();
        let found: Vec<_> = found.iter().map(|f| Failure::from_id(f.id)).collect();
        assert_eq!(
            found,
            marks.into_iter().map(Some).collect::<Vec<_>>(),
            "{name}"
        );
        let is_flaw = |flaw: Failure| found.contains(&Some(flaw));
        assert!(
            name == "25-thaw" || walk.flaw.is_some_and(is_flaw),
            "{name}"
        );
        let root = frames[walk.len - 1];
        assert_eq!(root.kind, FrameKind::Native, "{name}");
    }
}

#[test]
fn any_failing_read_gives_a_named_end() {
    for fixture in fixtures() {
        let mut frames = vec![Frame::EMPTY; FRAMES_MAX];
        let whole = Faulty::new(fixture, usize::MAX);
        fixture.frozen.walk_over(&whole, &mut frames);
        let distinct = whole.seen.borrow().len();
        assert!(distinct > 20, "{} reads {distinct} words", fixture.name);
        let mut failed = 0;
        for n in 0..distinct {
            let memory = Faulty::new(fixture, n);
            let walk = fixture.frozen.walk_over(&memory, &mut frames);
            let what = format!("{}, read {n}", fixture.name);
            check_end(&what, &walk, &frames);
            assert!(
                memory.reads.get() <= reads_max(fixture),
                "{what}: {}",
                memory.reads.get()
            );
            let same = frames[..walk.len] == fixture.frozen.frames[..];
            failed += usize::from(matches!(walk.outcome, Outcome::Failed(_)) || !same);
        }
        assert!(failed > 0, "{}: no read matters", fixture.name);
    }
}

/// Wrong words of several kinds: random values, near misses, values of other words.
#[test]
fn wrong_words_never_cause_a_panic_or_endless_walk() {
    let choose = any::<prop::sample::Index>;
    let change = (choose(), 0..4u8, any::<u64>(), choose());
    let changes = (choose(), prop::collection::vec(change, 1..12));
    // `deterministic` seeds the generator with a constant.
    let config = Config {
        cases: 3000,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = prop::test_runner::TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let mut keys: Vec<Vec<u64>> = Vec::new();
    for fixture in fixtures() {
        keys.push(fixture.frozen.words.keys().copied().collect());
    }
    runner
        .run(&changes, |(which, changes)| {
            let at = which.index(fixtures().len());
            let (fixture, keys) = (&fixtures()[at], &keys[at]);
            let mut memory = Faulty::new(fixture, usize::MAX);
            for (place, how, value, other) in &changes {
                let key = keys[place.index(keys.len())];
                let old = fixture.words.get(&key).copied().unwrap_or(0);
                let new = match how {
                    0 => *value,
                    1 => old.wrapping_add(value % 64).wrapping_sub(32),
                    2 => fixture
                        .words
                        .get(&keys[other.index(keys.len())])
                        .copied()
                        .unwrap_or(0),
                    _ => key.wrapping_sub(value % 4096),
                };
                memory.changed.insert(key, new);
            }
            let mut frames = vec![Frame::EMPTY; FRAMES_MAX];
            let walk = fixture.frozen.walk_over(&memory, &mut frames);
            check_end(&fixture.name, &walk, &frames);
            prop_assert!(
                memory.reads.get() <= reads_max(fixture),
                "{}",
                memory.reads.get()
            );
            Ok(())
        })
        .unwrap();
}

/// Memory of a fixture with other compilations, which have other ids.
struct Numbered<'a> {
    frozen: &'a Frozen,
    /// Addresses of the ids, and the changed bits.
    ids: BTreeSet<u64>,
    id: Cell<u64>,
    reads: Cell<u64>,
}

impl<'a> Numbered<'a> {
    fn new(frozen: &'a Frozen, code: &CodeCache) -> Numbered<'a> {
        let blob = |pc: u64| code.find(frozen, &frozen.layout, pc).ok().flatten();
        let compiled = frozen.words.values().flatten().filter_map(|pc| blob(*pc));
        let compiled = compiled.filter(|blob| blob.kind == BlobKind::Nmethod);
        Numbered {
            frozen,
            ids: compiled
                .map(|blob| blob.addr + frozen.layout.nmethod_compile_id)
                .collect(),
            id: Cell::new(0),
            reads: Cell::new(0),
        }
    }
}

impl Memory for Numbered<'_> {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        self.reads.set(self.reads.get() + 1);
        let halves = [0, 4].map(|half| self.ids.contains(&(addr + half)));
        let mut word = match self.frozen.word(addr) {
            Err(fault) if halves == [false, false] => return Err(fault),
            word => word.unwrap_or(0),
        };
        for (half, is_id) in halves.into_iter().enumerate() {
            word ^= if is_id {
                self.id.get() << (32 * half)
            } else {
                0
            };
        }
        Ok(word)
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        for (i, byte) in buf.iter_mut().enumerate() {
            *byte = self.u8(addr.wrapping_add(i as u64))?;
        }
        Ok(())
    }
}

/// A cache gives the same results with fewer reads, but is not used for other compilations.
#[test]
fn walks_are_the_same_with_a_cache() {
    let (mut cheaper, mut anew) = (0, 0);
    for fixture in fixtures() {
        let frozen = &fixture.frozen;
        let Registers::X86_64(regs) = frozen.regs else {
            continue;
        };
        let code = CodeCache::from_words(&frozen.code);
        let memory = Numbered::new(frozen, &code);
        let slots = vec![Slot::empty(); 1 << 12];
        let walk = |remembers: bool| {
            let walker = Walker {
                machine: X86_64,
                mem: &memory,
                layout: &frozen.layout,
                code: &code,
                native: frozen,
                cache: remembers.then(|| PcCache::new(&slots)),
            };
            let mut frames = vec![Frame::EMPTY; FRAMES_MAX];
            memory.reads.set(0);
            let walk = walker.walk(regs, &frozen.thread, &mut frames[..]);
            frames.truncate(walk.len);
            assert_eq!(frames, frozen.frames, "{}", fixture.name);
            assert_eq!(outcome_name(&walk), frozen.outcome, "{}", fixture.name);
            memory.reads.get()
        };
        let (plain, first, again) = (walk(false), walk(true), walk(true));
        assert!(again <= first, "{}: {again} of {first}", fixture.name);
        memory.id.set(6);
        let others = walk(true);
        cheaper += usize::from(again < plain);
        anew += usize::from(others > again);
    }
    assert!(3 * cheaper > fixtures().len(), "{cheaper} are cheaper");
    assert!(
        4 * anew > 3 * cheaper,
        "{anew} were read again, {cheaper} are cheaper"
    );
}

/// With less room each walk gives the same frames up to that point, and reports that it was cut.
#[test]
fn depth_limit_only_cuts_the_end_of_walks() {
    // Frames that were first taken for those of a freed method may be reported if there is room.
    let replaced = Frame::failed(Failure::BadCompiled);
    for fixture in fixtures() {
        let whole = &fixture.frozen.frames;
        if whole.contains(&replaced) {
            continue;
        }
        for room in 1..=whole.len() {
            let mut frames = vec![Frame::EMPTY; room];
            let walk = fixture.frozen.walk(&mut frames);
            let what = format!("{}, {room}", fixture.name);
            assert_eq!(walk.outcome, Outcome::Failed(Failure::Truncated), "{what}");
            // The end is missing, not the middle.
            assert_ne!(walk.flaw, Some(Failure::Truncated), "{what}");
            assert!(
                walk.len == room || walk.len + 1 == room,
                "{what}: {}",
                walk.len
            );
            let kept = walk.len - 1;
            assert_eq!(frames[..kept], whole[..kept], "{what}");
            // A gap in the middle is reported even in the last place.
            let last = frames[kept];
            let is_end = last == Frame::failed(Failure::Truncated);
            assert!(is_end || last == whole[kept], "{what}: {last:?}");
        }
    }
}

/// The frames of a mounted virtual thread in the heap are those found when it is not mounted; below
/// them are the frames on the carrier's stack.
#[test]
fn frames_in_the_heap_are_the_same_without_a_carrier() {
    let mut compared = 0;
    for fixture in fixtures() {
        let frozen = &fixture.frozen;
        let known = continuation::filled_chunk(frozen, &frozen.layout, frozen.thread.chunk);
        let entry = frozen.thread.cont_entry;
        let found = continuation::youngest_chunk(frozen, &frozen.layout, entry);
        let (Ok(Some(chunk)), code) = (known.or(found), CodeCache::from_words(&frozen.code)) else {
            continue;
        };
        let walker = Walker {
            machine: X86_64,
            mem: frozen,
            layout: &frozen.layout,
            code: &code,
            native: frozen,
            cache: None,
        };
        let mut frames = vec![Frame::EMPTY; FRAMES_MAX];
        let walk = walker.walk_unmounted(&chunk, &mut frames[..]);
        assert_eq!(walk.outcome, Outcome::Complete, "{}", fixture.name);
        assert!(walk.len > 0, "{}", fixture.name);
        let within = frozen
            .frames
            .windows(walk.len)
            .any(|some| some == &frames[..walk.len]);
        assert!(within, "{}: {:?}", fixture.name, &frames[..walk.len]);
        compared += 1;
    }
    assert!(compared >= 4, "{compared} fixtures have a chunk");
}

/// A receiver of frames that notes for which frames it is asked.
struct Asked {
    frames: Vec<Frame>,
    asked: Vec<u64>,
}

impl Frames for Asked {
    fn room(&self) -> usize {
        FRAMES_MAX
    }

    fn set(&mut self, index: usize, frame: Frame) -> bool {
        self.frames.truncate(index);
        self.frames.push(frame);
        true
    }

    fn rest(&mut self, _: usize, at: NativeRegs) -> Option<usize> {
        self.asked.push(at.sp);
        None
    }
}

/// While a continuation runs, the frames depend on more than the stack. Below its entry they do
/// not.
#[test]
fn known_frames_are_requested_only_below_continuation_entry() {
    let mut seen = 0;
    for fixture in fixtures()
        .iter()
        .filter(|it| it.frozen.thread.cont_entry != 0)
    {
        let frozen = &fixture.frozen;
        let Registers::X86_64(regs) = frozen.regs else {
            continue;
        };
        let code = CodeCache::from_words(&frozen.code);
        let walker = Walker {
            machine: X86_64,
            mem: frozen,
            layout: &frozen.layout,
            code: &code,
            native: frozen,
            cache: None,
        };
        let mut kept = Asked {
            frames: Vec::new(),
            asked: Vec::new(),
        };
        let walk = walker.walk(regs, &frozen.thread, &mut kept);
        assert_eq!(kept.frames[..walk.len], frozen.frames, "{}", fixture.name);
        let entry = frozen.thread.cont_entry;
        assert!(kept.asked.iter().all(|sp| *sp > entry), "{}", fixture.name);
        seen += usize::from(!kept.asked.is_empty());
    }
    assert!(seen >= 4, "asked in {seen}");
}

//! Walks of every JDK over memory, registers and offsets that are not what they were: the walk
//! ends soon, within its buffer and with a name.
#![no_main]

use dwell_frozen::{Frozen, Registers};
use dwell_walker::{Failure, Fault, Frame, FrameKind, Memory, Outcome};
use libfuzzer_sys::fuzz_target;
use std::cell::Cell;
use std::path::Path;
use std::sync::OnceLock;

static WALKS: OnceLock<Vec<Frozen>> = OnceLock::new();

const FRAMES_MAX: usize = 512;
/// A step reads a few dozen words, but the search for a code blob may check all segments of a heap.
/// The maximum number of steps is 2 * frames + 64.
const READS_MAX: u64 = 2_000_000;

/// Which word, what happens to it, a value, and the word that it may be instead.
type Edit = (u16, u8, u64, u16);

struct Counted<'a> {
    frozen: &'a Frozen,
    reads: Cell<u64>,
}

impl Memory for Counted<'_> {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        self.reads.set(self.reads.get() + 1);
        self.frozen.word(addr)
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        self.reads.set(self.reads.get() + 1);
        self.frozen.read(addr, buf)
    }
}

fuzz_target!(|input: (u8, Vec<Edit>)| {
    let (which, edits) = input;
    let walks = WALKS.get_or_init(load);
    let mut frozen = walks[usize::from(which) % walks.len()].clone();
    for edit in edits {
        change(&mut frozen, edit);
    }
    let memory = Counted {
        frozen: &frozen,
        reads: Cell::new(0),
    };
    let mut frames = [Frame::EMPTY; FRAMES_MAX];
    let walk = frozen.walk_over(&memory, &mut frames);
    let reads = memory.reads.get();
    assert!(reads <= READS_MAX, "{reads} reads");
    assert!(walk.len <= FRAMES_MAX);
    if let Outcome::Failed(failure) = walk.outcome {
        let last = frames[walk.len - 1];
        assert_eq!(last.kind, FrameKind::Failed);
        assert_eq!(Failure::from_id(last.id), Some(failure));
    }
    let mut again = [Frame::EMPTY; FRAMES_MAX];
    assert_eq!(frozen.walk(&mut again), walk);
    assert_eq!(again, frames);
});

fn load() -> Vec<Frozen> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/walks");
    let entries = std::fs::read_dir(folder).expect("the fixtures");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let text = |path| std::fs::read_to_string(path).expect("a text");
    let parse = |path| Frozen::parse(&text(path)).expect("a walk");
    paths.iter().map(parse).collect()
}

fn change(frozen: &mut Frozen, (place, how, value, other): Edit) {
    let (place, other) = (usize::from(place), usize::from(other));
    let nth = |n: usize| frozen.words.iter().nth(n % frozen.words.len());
    let Some((&key, &old)) = nth(place) else {
        return;
    };
    let old = old.unwrap_or(0);
    let new = match how % 9 {
        0 => Some(value),
        1 => Some(old.wrapping_add(value % 64).wrapping_sub(32)),
        2 => nth(other).and_then(|(_, word)| *word),
        3 => Some(key.wrapping_sub(value % 4096)),
        4 => None,
        // So that one change can lead the walk somewhere new.
        5 => {
            frozen.words.insert(value & !7, Some(key));
            return;
        }
        6 => return change_thread(frozen, other, if value % 2 == 0 { key } else { value }),
        7 => return change_layout(frozen, other, value),
        _ => {
            let len = frozen.code.len();
            frozen.code[other % len] = value;
            return;
        }
    };
    frozen.words.insert(key, new);
}

fn change_thread(frozen: &mut Frozen, which: usize, value: u64) {
    let thread = &mut frozen.thread;
    let Registers::X86_64(regs) = &mut frozen.regs else {
        return;
    };
    let anchor = &mut thread.anchor;
    let all = [
        &mut regs.pc,
        &mut regs.sp,
        &mut regs.fp,
        &mut regs.rax,
        &mut regs.rbx,
        &mut regs.rcx,
        &mut regs.rdx,
        &mut regs.r13,
        &mut anchor.sp,
        &mut anchor.pc,
        &mut anchor.fp,
        &mut thread.stack_high,
        &mut thread.cont_entry,
        &mut thread.chunk,
    ];
    let len = all.len();
    *all[which % len] = value;
    thread.cut = value.is_multiple_of(3);
}

/// Offsets come from the JVM's own tables, which may be damaged like anything else.
fn change_layout(frozen: &mut Frozen, which: usize, value: u64) {
    let mut names = Vec::new();
    frozen.layout.for_each(|name, _| names.push(name));
    let name = names[which % names.len()];
    assert!(frozen.layout.set(name, value));
}

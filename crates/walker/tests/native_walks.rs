//! Walks over made-up native frames: where they end, the names of these ends, and the use of the
//! anchor.
#![allow(missing_docs)]

mod common;

use common::Bytes;
use dwell_walker::Anchor;
use dwell_walker::hotspot::codecache::{CODE_CACHE_WORDS, CodeCache};
use dwell_walker::hotspot::layout::Layout;
use dwell_walker::machine::x86_64::Regs;
use dwell_walker::machine::{Machine as _, X86_64};
use dwell_walker::native::{
    CFA_BYTES_MAX, NativeCode, NativeRegs, NativeStep, Pages, RBP_SLOT_MAX, Row, Rule, SavedRbp,
    lookup,
};
use dwell_walker::walk::live_context;
use dwell_walker::{Failure, Frame, FrameKind, Frames, Outcome, ThreadContext, Walk, Walker};

const STACK: u64 = 0x7000_0000;
/// The JVM's library, another one, and generated code.
const VM: u64 = 0x1000_0000;
const LIBRARY: u64 = 0x2000_0000;
const CODE: u64 = 0x5000_0000;
const SEGMENTS: u64 = 0x4000;
/// Return address of a call from native code into Java.
const CALL_STUB: u64 = CODE + 0x200;

/// The rule of frames of this size that do not change rbp.
const fn frame(cfa_bytes: u32) -> Rule {
    Rule::Sp {
        cfa_bytes,
        rbp: SavedRbp::Same,
    }
}

/// In each library, the low byte of an address selects the rule.
struct Libraries;

impl NativeCode for Libraries {
    fn rule(&self, pc: u64) -> Option<Rule> {
        if !matches!(pc & !0xffff, VM | LIBRARY) {
            return None;
        }
        Some(match pc & 0xf0 {
            0x10 => frame(8),
            0x20 => frame(16),
            0x30 => Rule::Fp {
                cfa_bytes: 16,
                rbp: SavedRbp::At(2),
            },
            0x40 => Rule::End,
            0x50 => Rule::SignalFrame,
            0x60 => Rule::Unsupported,
            _ => Rule::Gap,
        })
    }

    fn is_vm(&self, pc: u64) -> bool {
        pc & !0xffff == VM
    }
}

/// A stack with these words, and empty generated code.
fn memory(stack: &[u64]) -> Bytes {
    let mut memory = Bytes::default();
    let bytes = stack.iter().flat_map(|word| word.to_le_bytes());
    memory.add(STACK, bytes.collect());
    memory.add(SEGMENTS, vec![0xff; 1024]);
    memory
}

fn code() -> CodeCache {
    let mut words = [0; CODE_CACHE_WORDS];
    words[..4].copy_from_slice(&[CODE, CODE + 0x1_0000, SEGMENTS, 6]);
    words[CODE_CACHE_WORDS - 1] = CALL_STUB;
    CodeCache::from_words(&words)
}

/// Walks into the given frames.
fn walk_into<F: Frames + ?Sized>(
    memory: &Bytes,
    regs: Regs,
    thread: &ThreadContext,
    frames: &mut F,
) -> Walk {
    let walker = Walker {
        machine: X86_64,
        mem: memory,
        layout: &Layout::EMPTY,
        code: &code(),
        native: &Libraries,
        cache: None,
    };
    walker.walk(regs, thread, frames)
}

/// The frames' kinds and ids, and the walk's result.
fn step(memory: &Bytes, rule: Rule, at: NativeRegs) -> Result<NativeStep, dwell_walker::Fault> {
    X86_64.unwind(memory, rule, at, None)
}

fn walk(stack: &[u64], regs: Regs, thread: &ThreadContext) -> (Vec<(FrameKind, u64)>, Walk) {
    let mut frames = [Frame::EMPTY; 16];
    let walk = walk_into(&memory(stack), regs, thread, &mut frames[..]);
    let told = frames[..walk.len]
        .iter()
        .map(|frame| (frame.kind, frame.id));
    (told.collect(), walk)
}

fn at(pc: u64) -> Regs {
    Regs {
        pc,
        sp: STACK,
        ..Regs::default()
    }
}

const fn native(pc: u64) -> (FrameKind, u64) {
    (FrameKind::Native, pc)
}

const fn vm(pc: u64) -> (FrameKind, u64) {
    (FrameKind::Vm, pc)
}

const fn failed(failure: Failure) -> (FrameKind, u64) {
    (FrameKind::Failed, failure as u64)
}

/// Two frames of two words above a leaf of one, and the root.
const PLAIN: [u64; 6] = [LIBRARY + 0x21, 7, VM + 0x22, 7, LIBRARY + 0x41, 0];

#[test]
fn frames_follow_their_rules_to_the_root() {
    let (frames, walk) = walk(&PLAIN, at(LIBRARY + 0x10), &ThreadContext::default());
    // Return addresses belong to the call before them.
    let expected = [
        native(LIBRARY + 0x10),
        native(LIBRARY + 0x20),
        vm(VM + 0x21),
        native(LIBRARY + 0x40),
    ];
    assert_eq!(frames, expected);
    assert_eq!(
        (walk.outcome, walk.gaps, walk.flaw),
        (Outcome::Complete, 0, None)
    );
    // A return address of 0 ends the walk as well.
    let (frames, walk) = self::walk(&[0], at(LIBRARY + 0x10), &ThreadContext::default());
    assert_eq!(frames, [native(LIBRARY + 0x10)]);
    assert_eq!(walk.outcome, Outcome::Complete);
    let (frames, walk) = self::walk(&[0], at(0), &ThreadContext::default());
    assert_eq!((frames.len(), walk.outcome), (0, Outcome::Complete));
}

#[test]
fn walk_that_needs_all_room_is_reported_as_truncated() {
    for room in 1..8 {
        let mut frames = [Frame::EMPTY; 8];
        let memory = memory(&PLAIN);
        let thread = ThreadContext::default();
        let walk = walk_into(&memory, at(LIBRARY + 0x10), &thread, &mut frames[..room]);
        if room > 4 {
            assert_eq!((walk.outcome, walk.len), (Outcome::Complete, 4), "{room}");
        } else {
            let outcome = Outcome::Failed(Failure::Truncated);
            assert_eq!((walk.outcome, walk.len), (outcome, room), "{room}");
            assert_eq!(frames[room - 1], Frame::failed(Failure::Truncated));
        }
    }
}

#[test]
fn frame_beyond_stack_is_invalid_beyond_its_copy_missing() {
    // The root's frame begins at the sixth word's address.
    for (words, cut, expected) in [
        (5, false, None),
        (4, false, Some(Failure::StackRange)),
        (4, true, Some(Failure::SnapshotEnd)),
        (5, true, None),
    ] {
        let thread = ThreadContext {
            stack_high: STACK + 8 * words,
            cut,
            ..ThreadContext::default()
        };
        let (frames, walk) = walk(&PLAIN, at(LIBRARY + 0x10), &thread);
        let outcome = expected.map_or(Outcome::Complete, Outcome::Failed);
        assert_eq!(walk.outcome, outcome, "{words}");
        assert_eq!(frames.len(), 4, "{words}");
        if let Some(failure) = expected {
            assert_eq!(frames[3], failed(failure));
        }
    }
    // Unreadable words are beyond the end of the copy, if there is a copy.
    for (cut, failure) in [(true, Failure::SnapshotEnd), (false, Failure::Unreadable)] {
        let thread = ThreadContext {
            cut,
            ..ThreadContext::default()
        };
        let (frames, walk) = walk(&PLAIN[..3], at(LIBRARY + 0x10), &thread);
        assert_eq!(walk.outcome, Outcome::Failed(failure));
        assert_eq!(frames[3], failed(failure));
    }
}

#[test]
fn callers_are_further_up() {
    let walked = |pc: u64, fp: u64| {
        let mut memory = memory(&[LIBRARY + 0x31, 7, LIBRARY + 0x41]);
        let below = [7, LIBRARY + 0x41, LIBRARY + 0x41].map(u64::to_le_bytes);
        memory.add(STACK - 24, below.concat());
        let regs = Regs { fp, ..at(pc) };
        let mut frames = [Frame::EMPTY; 8];
        walk_into(&memory, regs, &ThreadContext::default(), &mut frames[..]).outcome
    };
    // By rbp. An interrupted function may have popped its frame, but the caller's frame is not
    // below.
    let interrupted = |fp| walked(LIBRARY + 0x30, fp);
    assert_eq!(interrupted(STACK + 8), Outcome::Complete);
    assert_eq!(interrupted(STACK - 16), Outcome::Complete);
    assert_eq!(
        interrupted(STACK - 24),
        Outcome::Failed(Failure::StackRange)
    );
    // A frame that has made a call exists.
    let called = |fp| walked(LIBRARY + 0x10, fp);
    assert_eq!(called(STACK + 8), Outcome::Complete);
    assert_eq!(called(STACK - 8), Outcome::Failed(Failure::StackRange));
}

#[test]
fn pc_outside_any_code_is_reported() {
    let (frames, walk) = walk(&[0x123], at(LIBRARY + 0x10), &ThreadContext::default());
    assert_eq!(frames, [native(LIBRARY + 0x10), failed(Failure::UnknownPc)]);
    assert_eq!(walk.outcome, Outcome::Failed(Failure::UnknownPc));
    let (frames, _) = self::walk(
        &[CODE + 0x40],
        at(LIBRARY + 0x10),
        &ThreadContext::default(),
    );
    assert_eq!(frames, [native(LIBRARY + 0x10), failed(Failure::NoBlob)]);
}

/// Without a rule, rbp may be a frame pointer, and in a leaf the return address is on top.
#[test]
fn without_a_rule_a_return_address_is_searched() {
    let root = LIBRARY + 0x41;
    let of = |pc: u64, fp: u64, high: u64, stack: &[u64]| {
        let regs = Regs { fp, ..at(pc) };
        let thread = ThreadContext {
            stack_high: high,
            ..ThreadContext::default()
        };
        walk(stack, regs, &thread)
    };
    let (gap, unsupported) = (LIBRARY + 0x80, LIBRARY + 0x60);
    for pc in [gap, unsupported, 0x123] {
        // By rbp.
        let (frames, walk) = of(pc, STACK + 8, 0, &[1, STACK + 40, root]);
        assert_eq!(frames, [native(pc), native(root - 1)]);
        assert_eq!(walk.outcome, Outcome::Complete);
        let (_, walk) = of(pc, STACK, STACK + 16, &[STACK + 40, root]);
        assert_eq!(walk.outcome, Outcome::Complete);
        // On top.
        let (frames, walk) = of(pc, 0, 0, &[root]);
        assert_eq!(frames, [native(pc), native(root - 1)]);
        assert_eq!(walk.outcome, Outcome::Complete);
        // rbp is not that of a frame: odd, at the stack's end, or below.
        for (fp, high) in [(STACK + 12, 0), (STACK + 16, STACK + 16), (STACK - 8, 0)] {
            let (frames, _) = of(pc, fp, high, &[root, 5, STACK, root + 2]);
            assert_eq!(frames, [native(pc), native(root - 1)], "{fp:x}");
        }
        // No word is a return address, and 0 never is.
        let (frames, _) = of(pc, STACK, 0, &[0, 0]);
        assert_eq!(frames, [native(pc), failed(Failure::NoNativeRule)]);
        let (frames, _) = of(pc, STACK, 0, &[7, gap + 1]);
        assert_eq!(frames, [native(pc), failed(Failure::NoNativeRule)]);
    }
    // A frame that has made a call is not a leaf.
    let (frames, _) = of(LIBRARY + 0x10, 0, 0, &[unsupported + 1, root]);
    let expected = [native(LIBRARY + 0x10), native(unsupported)];
    assert_eq!(frames[..2], expected);
    assert_eq!(frames[2..], [failed(Failure::NoNativeRule)]);
}

/// A thread that left Java has an anchor, and the walk continues there if native frames fail.
#[test]
fn the_anchor_bridges_native_frames_once() {
    let anchored = |sp: u64, pc: u64| ThreadContext {
        anchor: Anchor { sp, pc, fp: 0 },
        ..ThreadContext::default()
    };
    let (from, into) = (LIBRARY + 0x10, CODE + 0x80);
    let stack = [0x123, 0, 0, 0];
    let (frames, found) = walk(&stack, at(from), &anchored(STACK + 16, into));
    let expected = [
        native(from),
        failed(Failure::NativeGap),
        failed(Failure::NoBlob),
    ];
    assert_eq!((frames, found.gaps), (expected.to_vec(), 1));
    // The anchor is below, or not in generated code.
    for (sp, pc) in [(STACK + 8, into), (STACK + 16, LIBRARY + 0x41), (0, into)] {
        let (frames, found) = walk(&stack, at(from), &anchored(sp, pc));
        assert_eq!((frames.len(), found.gaps), (2, 0), "{sp:x} {pc:x}");
    }
    // A native frame that ends above the anchor is wrong.
    let (frames, found) = walk(&PLAIN, at(from), &anchored(STACK + 16, into));
    let gap = failed(Failure::NativeGap);
    assert_eq!(frames[..3], [native(from), native(LIBRARY + 0x20), gap]);
    assert_eq!(found.gaps, 1);
    // A native frame that ends at the anchor is right.
    let (frames, found) = walk(&PLAIN, at(from), &anchored(STACK + 24, into));
    assert_eq!((frames[2], found.gaps), (vm(VM + 0x21), 0));
    // The anchor is not used if there was no room, or no more stack.
    let cut = ThreadContext {
        cut: true,
        ..anchored(STACK + 64, into)
    };
    let (frames, found) = walk(&PLAIN[..1], at(from), &cut);
    assert_eq!((frames[2], found.gaps), (failed(Failure::SnapshotEnd), 0));
}

/// The frames of a walk from freed code, with rbp at the stack's fourth word. A walk that finds the
/// call stub above continues there and fails once more, because the stub's code is missing, too.
fn above_gone(stack: &[u64], fp: u64, high: u64) -> usize {
    let regs = Regs {
        fp,
        ..at(CODE + 0x40)
    };
    let thread = ThreadContext {
        stack_high: high,
        ..ThreadContext::default()
    };
    let (frames, found) = walk(stack, regs, &thread);
    assert_eq!(found.outcome, Outcome::Failed(Failure::NoBlob));
    assert_eq!(found.flaw.is_some(), frames.len() > 1);
    assert!(frames.iter().all(|frame| *frame == failed(Failure::NoBlob)));
    frames.len()
}

#[test]
fn call_stub_above_freed_code_is_found() {
    let (fp, root) = (STACK + 24, LIBRARY + 0x41);
    let found = |stack: &[u64], fp, high| above_gone(stack, fp, high) == 2;
    let stack = [0, CALL_STUB, 0, 0, root, 0, 0];
    assert!(found(&stack, fp, 0));
    assert!(found(&stack, fp, fp + 8));
    assert!(!found(&stack, fp, fp), "rbp is above the stack");
    assert!(!found(&stack, fp + 4, 0) && !found(&stack, STACK, 0) && !found(&stack, STACK - 8, 0));
    assert!(
        !found(&[0, CALL_STUB + 1, 0, 0, root, 0, 0], fp, 0),
        "another address"
    );
    for caller in [LIBRARY + 0x81, 0x123, CODE + 0x80] {
        let stack = [0, CALL_STUB, 0, 0, caller, 0, 0];
        assert!(!found(&stack, fp, 0), "{caller:x} is no native code");
    }
    // Frames of stubs in between lead to a caller, if generated code has called them.
    let linked = |next: u64, caller: u64| {
        let stack = [0, 0, 0, next, caller, CALL_STUB, 0, 0, root, 0, 0];
        found(&stack, fp, 0)
    };
    assert!(linked(STACK + 56, CODE + 0x80));
    assert!(!linked(STACK + 56, 0x123));
    assert!(!linked(fp, CODE + 0x80) && !linked(STACK + 16, CODE + 0x80));
}

/// A receiver of frames may know the end of a walk.
struct Knowing {
    frames: Vec<Frame>,
    begins: Vec<u64>,
    asked: Vec<u64>,
    /// All frames from this address on are known.
    known: u64,
}

impl Frames for Knowing {
    fn room(&self) -> usize {
        16
    }

    fn set(&mut self, index: usize, frame: Frame) -> bool {
        self.frames.resize(index, Frame::EMPTY);
        self.frames.push(frame);
        true
    }

    fn begins(&mut self, _: usize, at: NativeRegs) {
        self.begins.push(at.sp);
    }

    fn rest(&mut self, _: usize, at: NativeRegs) -> Option<usize> {
        self.asked.push(at.sp);
        (at.sp == self.known).then_some(5)
    }
}

#[test]
fn known_part_of_a_stack_is_not_walked_again() {
    let known = |known: u64, thread: ThreadContext| {
        let mut frames = Knowing {
            frames: Vec::new(),
            begins: Vec::new(),
            asked: Vec::new(),
            known,
        };
        let memory = memory(&PLAIN);
        let walk = walk_into(&memory, at(LIBRARY + 0x10), &thread, &mut frames);
        (walk, frames)
    };
    let (walk, frames) = known(STACK + 24, ThreadContext::default());
    assert_eq!((walk.len, walk.outcome), (2 + 5, Outcome::Complete));
    assert_eq!(frames.begins, [STACK, STACK + 8, STACK + 24]);
    // Not for the interrupted frame: it depends on more than the stack.
    assert_eq!(frames.asked, [STACK + 8, STACK + 24]);
    // Not below the anchor, and not while a continuation runs.
    let anchored = ThreadContext {
        anchor: Anchor {
            sp: STACK + 24,
            pc: 0,
            fp: 0,
        },
        ..ThreadContext::default()
    };
    let (_, frames) = known(0, anchored);
    assert_eq!(frames.asked, [STACK + 24, STACK + 40]);
    let mounted = ThreadContext {
        cont_entry: 5,
        ..ThreadContext::default()
    };
    assert!(known(0, mounted).1.asked.is_empty());
}

#[test]
fn rule_leads_to_the_caller() {
    let mut words = [0u64; 40];
    for (i, word) in words.iter_mut().enumerate() {
        *word = 0x1000 + i as u64;
    }
    let memory = memory(&words);
    let regs = NativeRegs {
        pc: 0x20a,
        sp: STACK,
        fp: STACK + 32,
    };
    let caller = |rule, regs| match step(&memory, rule, regs) {
        Ok(NativeStep::Caller(caller)) => Some((caller.pc, caller.sp, caller.fp)),
        _ => None,
    };
    let saved = |cfa_bytes| Rule::Sp {
        cfa_bytes,
        rbp: SavedRbp::At(3),
    };
    assert_eq!(caller(saved(32), regs), Some((0x1003, STACK + 32, 0x1001)));
    let by_fp = Rule::Fp {
        cfa_bytes: 16,
        rbp: SavedRbp::Same,
    };
    assert_eq!(caller(by_fp, regs), Some((0x1005, STACK + 48, STACK + 32)));
    // Entries of the PLT push a word before their last five bytes.
    assert_eq!(
        caller(Rule::Plt, regs),
        Some((0x1000, STACK + 8, STACK + 32))
    );
    let pushed = NativeRegs { pc: 0x20b, ..regs };
    assert_eq!(
        caller(Rule::Plt, pushed),
        Some((0x1001, STACK + 16, STACK + 32))
    );
    // `gregs` begin at the fifth word: rbp is the tenth of them, rsp and rip 15 and 16.
    let interrupted = NativeRegs {
        pc: 0x1000 + 5 + 16,
        sp: 0x1000 + 5 + 15,
        fp: 0x1000 + 5 + 10,
    };
    let signal = step(&memory, Rule::SignalFrame, regs);
    assert_eq!(signal, Ok(NativeStep::Interrupted(interrupted)));
    assert_eq!(step(&memory, Rule::End, regs), Ok(NativeStep::End));
    assert_eq!(step(&memory, Rule::Gap, regs), Ok(NativeStep::NoRule));
    assert_eq!(
        step(&memory, Rule::Unsupported, regs),
        Ok(NativeStep::NoRule)
    );
    assert!(step(&memory, frame(8), NativeRegs { sp: 0, ..regs }).is_err());
    let slot = Rule::Sp {
        cfa_bytes: CFA_BYTES_MAX,
        rbp: SavedRbp::At(0),
    };
    assert_eq!(Rule::decode(slot.encode()), Rule::Unsupported);
    assert_eq!((CFA_BYTES_MAX, RBP_SLOT_MAX), (4_194_296, 1023));
    let (cfa_bytes, slot) = (8, 1);
    let link = Rule::Link { cfa_bytes, slot };
    assert_eq!(step(&memory, link, regs), Ok(NativeStep::NoRule));
}

#[test]
fn lookup_by_pages_equals_lookup_in_all_rows() {
    let rows: Vec<Row> = [0x10, 0x800, 0xfff, 0x1000, 0x3004, 0x3010, 0x5000]
        .map(|offset| Row {
            offset,
            rule: frame(8 * (offset % 1000)).encode(),
        })
        .to_vec();
    // The number of rows that begin before each page; the last page is that of the last row.
    let pages: Vec<u32> = (0..6u32)
        .map(|page| rows.iter().filter(|row| row.offset < page << 12).count() as u32)
        .collect();
    for offset in 0..0x6000 {
        assert_eq!(
            Pages(&pages).lookup(&rows, offset),
            lookup(&rows, offset),
            "{offset:x}"
        );
        assert_eq!(Pages(&[]).lookup(&rows, offset), lookup(&rows, offset));
    }
    // Only the page's rows are used; the others could have any value.
    let wrong = [0, 3, 3, 3, 3, 3];
    assert_eq!(
        Pages(&wrong).lookup(&rows, 0x3020),
        frame(8 * (0xfff % 1000))
    );
}

#[test]
fn live_context_is_read_from_the_thread() {
    const THREAD: u64 = 0x9000;
    let mut memory = Bytes::default();
    let words = [5, 0x7100, 0x7200, 0x7300, 0x8000, 0x6000, 0x6500u64];
    memory.add(
        THREAD,
        words.iter().flat_map(|word| word.to_le_bytes()).collect(),
    );
    let mut layout = Layout::EMPTY;
    layout.thread_anchor = 8;
    (layout.anchor_sp, layout.anchor_pc, layout.anchor_fp) = (0, 8, 16);
    layout.thread_stack_base = 32;
    let mut expected = ThreadContext {
        anchor: Anchor {
            sp: 0x7100,
            pc: 0x7200,
            fp: 0x7300,
        },
        stack_high: 0x8000,
        ..ThreadContext::default()
    };
    assert_eq!(live_context(&memory, &layout, THREAD), Ok(expected));
    layout.extra.cont_entry = 40;
    layout.thread_poll_pc = 48;
    (expected.cont_entry, expected.poll_pc) = (0x6000, 0x6500);
    assert_eq!(live_context(&memory, &layout, THREAD), Ok(expected));
}

//! Walks through made-up stacks on which native code calls Java by the foreign function interface.
#![allow(missing_docs)]

mod common;

use common::Bytes;
use dwell_walker::hotspot::codecache::{CODE_CACHE_WORDS, CodeCache};
use dwell_walker::hotspot::layout::Layout;
use dwell_walker::machine::X86_64;
use dwell_walker::machine::x86_64::Regs;
use dwell_walker::native::{NativeCode, Rule, SavedRbp};
use dwell_walker::{Failure, Frame, FrameKind, Outcome, ThreadContext, Walk, Walker};

const STACK: u64 = 0x7000_0000;
const LIBRARY: u64 = 0x2000_0000;
const CODE: u64 = 0x5000_0000;
const SEGMENTS: u64 = 0x4000;
const NAME: u64 = 0x5000;
/// Return address in the stub.
const UPCALL: u64 = CODE + 0x80;
/// A place in generated code where no blob is: a walk that comes there ends.
const JAVA: u64 = CODE + 0x4000;
/// Offset of the saved anchor in the stub's frame.
const SAVED_AT: u64 = 16;
/// A function of a library without unwind rules, and one that is the root of a thread.
const PLAIN: u64 = LIBRARY + 0x81;
const ROOT: u64 = LIBRARY + 0x41;

struct Libraries;

impl NativeCode for Libraries {
    fn rule(&self, pc: u64) -> Option<Rule> {
        let frame = |cfa_bytes| Rule::Sp {
            cfa_bytes,
            rbp: SavedRbp::Same,
        };
        (pc & !0xffff == LIBRARY).then(|| match pc & 0xf0 {
            0x10 => frame(8),
            0x20 => frame(16),
            0x40 => Rule::End,
            _ => Rule::Gap,
        })
    }

    fn is_vm(&self, _pc: u64) -> bool {
        false
    }
}

fn layout() -> Layout {
    let mut layout = Layout::EMPTY;
    (layout.sizeof_heap_block, layout.block_used) = (16, 8);
    (layout.blob_name, layout.blob_size, layout.blob_frame_size) = (0, 8, 12);
    (layout.blob_code_offset, layout.sizeof_code_blob) = (16, 24);
    (layout.anchor_sp, layout.anchor_pc, layout.anchor_fp) = (0, 8, 16);
    layout
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The stub in the first segments of the code, and these words on the stack.
fn memory(stack: &[u64]) -> Bytes {
    let mut memory = Bytes::default();
    let blob = [NAME, 0x400, 0x30, 0, SAVED_AT];
    memory.add(CODE, words(&[&[0, 1][..], &blob].concat()));
    let mut segments = vec![0xff; 1024];
    segments[..8].copy_from_slice(&[0, 1, 2, 3, 4, 5, 6, 7]);
    memory.add(SEGMENTS, segments);
    memory.add(NAME, b"upcall_stub\0....".to_vec());
    memory.add(STACK, words(stack));
    memory
}

/// The stack of a leaf called by the stub, whose frame has the anchor and at its eighth word the
/// caller's rbp and return address. The stack continues with the caller's frame.
fn stack(anchor: [u64; 2], caller: [u64; 2], above: &[u64]) -> Vec<u64> {
    let [sp, pc] = anchor;
    let stub = [UPCALL, 0, 0, sp, pc, 0, 0];
    [&stub[..], &caller, above].concat()
}

const STUB_RBP: u64 = STACK + 7 * 8;
const CALLER_SP: u64 = STACK + 9 * 8;

fn walk(stack: &[u64], fp: u64) -> (Vec<(FrameKind, u64)>, Walk) {
    let mut code = [0; CODE_CACHE_WORDS];
    code[..4].copy_from_slice(&[CODE, CODE + 0x1_0000, SEGMENTS, 6]);
    let walker = Walker {
        machine: X86_64,
        mem: &memory(stack),
        layout: &layout(),
        code: &CodeCache::from_words(&code),
        native: &Libraries,
        cache: None,
    };
    let leaf = Regs {
        pc: LIBRARY + 0x10,
        sp: STACK,
        fp,
        ..Regs::default()
    };
    let mut frames = [Frame::EMPTY; 16];
    let walk = walker.walk(leaf, &ThreadContext::default(), &mut frames[..]);
    let frames = frames[..walk.len].iter().skip(1);
    (frames.map(|it| (it.kind, it.id)).collect(), walk)
}

const fn native(return_address: u64) -> (FrameKind, u64) {
    (FrameKind::Native, return_address - 1)
}

const fn failed(failure: Failure) -> (FrameKind, u64) {
    (FrameKind::Failed, failure as u64)
}

const STUB: (FrameKind, u64) = (FrameKind::Stub, UPCALL);
const GAP: (FrameKind, u64) = failed(Failure::NativeGap);
/// The walk has come to the Java frame.
const AT_JAVA: (FrameKind, u64) = failed(Failure::NoBlob);

#[test]
fn caller_without_rules_is_left_by_the_saved_anchor() {
    let java = CALLER_SP + 0x40;
    let of = |above: &[u64], rbp| walk(&stack([java, JAVA], [rbp, PLAIN], above), STUB_RBP);
    let expected = [STUB, native(PLAIN), GAP, AT_JAVA];
    let (frames, found) = of(&[], 0);
    assert_eq!((frames, found.gaps), (expected.to_vec(), 1));
    // rbp leads to words that look like a frame of Java (here: the stub), but not to the anchor.
    let above = [0, UPCALL, 0, 0, 0, UPCALL, 0, 0, 0, UPCALL];
    for word in [0, 4, 8] {
        let (frames, _) = of(&above, CALLER_SP + word * 8);
        assert_eq!(frames, expected, "{word}");
    }
    // The frame of Java that is there.
    let (frames, found) = of(&[0, 0, 0, 0, 0, 0, 0, UPCALL], java - 16);
    assert_eq!(frames[..3], [STUB, native(PLAIN), STUB]);
    assert_eq!(found.gaps, 0);
}

#[test]
fn caller_with_rules_leads_to_the_frame_of_the_anchor() {
    let caller = [0, LIBRARY + 0x21];
    let of = |java, above: &[u64]| walk(&stack([java, JAVA], caller, above), STUB_RBP);
    let (frames, found) = of(CALLER_SP + 16, &[7, JAVA]);
    assert_eq!(frames, [STUB, native(LIBRARY + 0x21), AT_JAVA]);
    assert_eq!(found.gaps, 0);
    // The next frame is above the anchor's, or none, or the root although Java is above.
    for above in [&[7, JAVA][..], &[7, 0], &[7, ROOT], &[7, 0x123]] {
        let java = CALLER_SP + if above[1] == JAVA { 8 } else { 0x40 };
        let (frames, found) = of(java, above);
        assert_eq!(frames[frames.len() - 2..], [GAP, AT_JAVA], "{above:x?}");
        assert_eq!(found.gaps, 1);
    }
}

#[test]
fn caller_that_cannot_be_found_is_left_by_the_saved_anchor() {
    let java = CALLER_SP + 0x40;
    // rbp is not that of the stub's frame: below it, odd, or too far.
    for rbp in [0, STACK, STUB_RBP + 4, STACK + (1 << 20)] {
        let (frames, _) = walk(&stack([java, JAVA], [0, PLAIN], &[]), rbp);
        assert_eq!(frames, [STUB, GAP, AT_JAVA], "{rbp:x}");
    }
    // It is in no library.
    let (frames, _) = walk(&stack([java, JAVA], [0, 0x123], &[]), STUB_RBP);
    assert_eq!(frames, [STUB, AT_JAVA]);
}

#[test]
fn thread_that_came_from_native_code_has_no_frame_of_java_above() {
    let of = |caller| walk(&stack([0, 0], [0, caller], &[]), STUB_RBP);
    let (frames, found) = of(ROOT);
    assert_eq!(
        (frames, found.outcome),
        (vec![STUB, native(ROOT)], Outcome::Complete)
    );
    let (frames, _) = of(PLAIN);
    assert_eq!(frames, [STUB, native(PLAIN), failed(Failure::NoNativeRule)]);
    let (frames, found) = of(0x123);
    assert_eq!((frames, found.outcome), (vec![STUB], Outcome::Complete));
    // An anchor that is not in generated code is not used.
    let (frames, _) = walk(&stack([CALLER_SP + 8, ROOT], [0, PLAIN], &[]), STUB_RBP);
    assert_eq!(frames, [STUB, native(PLAIN), failed(Failure::NoNativeRule)]);
}

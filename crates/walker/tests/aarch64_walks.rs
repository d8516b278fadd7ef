//! Walks over made-up stacks of aarch64, laid out as OpenJDK's sources say: compiled, interpreted
//! and native frames, with signed return addresses. Each is frozen, written as text, and replayed
//! from that, on any machine.
#![allow(missing_docs)]

mod common;

use common::Bytes;
use dwell_frozen::{Frozen, Recorder};
use dwell_walker::hotspot::codecache::{CODE_CACHE_WORDS, CodeCache};
use dwell_walker::hotspot::layout::Layout;
use dwell_walker::machine::Aarch64;
use dwell_walker::machine::aarch64::Regs;
use dwell_walker::native::{NativeCode, Rule, SavedRbp};
use dwell_walker::{Anchor, Frame, FrameKind, Outcome, ThreadContext, Walker};

const STACK: u64 = 0x7fff_0000_0000;
const LIBRARY: u64 = 0x7ffe_0000_0000;
const CODE: u64 = 0x5000_0000;
const SEGMENTS: u64 = 0x4000;
const NAMES: u64 = 0x5000;
const METHODS: u64 = 0x6000;
/// Return address of the call stub's call.
const CALL_STUB: u64 = CODE + 0x3000;
const INTERPRETER: (u64, u64) = (CODE + 0x1000, CODE + 0x2000);

/// A signature in the upper bits of a return address.
const fn signed(pc: u64) -> u64 {
    0x0051 << 48 | pc
}

struct Libraries;

impl NativeCode for Libraries {
    fn rule(&self, pc: u64) -> Option<Rule> {
        let frame = |cfa_bytes, slot| Rule::Sp {
            cfa_bytes,
            rbp: SavedRbp::At(slot),
        };
        (pc & !0xffff == LIBRARY).then(|| match pc & 0xf0 {
            // A leaf; a frame whose record is at its end, and one whose record is at its begin.
            0x10 => Rule::Sp {
                cfa_bytes: 0,
                rbp: SavedRbp::Same,
            },
            0x20 => frame(32, 2),
            0x30 => frame(48, 6),
            0x40 => Rule::End,
            _ => Rule::Gap,
        })
    }

    fn is_vm(&self, pc: u64) -> bool {
        pc & 0xf0 == 0x30
    }
}

/// Two interpreted methods and a compiled one.
const OUTER: u64 = METHODS;
const INNER: u64 = METHODS + 0x100;
const COMPILED: u64 = METHODS + 0x200;
/// Bytecodes of both interpreted methods.
const BYTECODES: u64 = METHODS + 0x320;

/// Made-up offsets: each field of a blob has its own place.
fn layout() -> Layout {
    let mut layout = Layout::EMPTY;
    (layout.sizeof_heap_block, layout.block_used) = (16, 8);
    (layout.blob_name, layout.blob_size, layout.blob_frame_size) = (0, 8, 12);
    (layout.blob_code_offset, layout.blob_frame_complete) = (16, 20);
    (layout.nmethod_method, layout.nmethod_comp_level) = (24, 32);
    (layout.nmethod_compile_id, layout.nmethod_metadata_offset) = (36, 52);
    layout.nmethod_scopes_pcs_offset = 40;
    layout.nmethod_dependencies_offset = 44;
    layout.nmethod_scopes_data_offset = 48;
    (layout.pcdesc_pc_offset, layout.pcdesc_scope_offset) = (0, 4);
    layout.sizeof_pcdesc = 8;
    (layout.method_const, layout.sizeof_const_method) = (8, 32);
    (layout.const_constants, layout.const_code_size) = (0, 8);
    layout.const_name_index = 16;
    (layout.pool_holder, layout.pool_length, layout.klass_name) = (0, 8, 8);
    layout.extra.interpreter_bcp = -72;
    layout
}

fn code_cache() -> CodeCache {
    let mut words = [0; CODE_CACHE_WORDS];
    words[..4].copy_from_slice(&[CODE, CODE + 0x1_0000, SEGMENTS, 6]);
    words[CODE_CACHE_WORDS - 3..].copy_from_slice(&[INTERPRETER.0, INTERPRETER.1, CALL_STUB]);
    CodeCache::from_words(&words)
}

/// A blob at an address, with the segments that it covers.
fn add_blob(segments: &mut [u8], at: u64, bytes: u64, fields: [u64; 6]) -> (u64, Vec<u8>) {
    let first = (at - CODE) as usize / 64;
    for (hop, segment) in (0u8..).zip(&mut segments[first..first + bytes as usize / 64]) {
        *segment = hop;
    }
    let words = [&[0, 1][..], &fields].concat();
    let mut blob: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    blob.resize(bytes as usize, 0);
    (at, blob)
}

/// Start of the compiled method's code, whose frame has 32 bytes.
const METHOD_CODE: u64 = CODE + 16 + 0x100;
/// `sub sp, sp, 32; stp x29, x30, [sp, 16]; nop; ldp x29, x30, [sp, 16]; add sp, sp, 32; ret`.
const METHOD_CODES: [u32; 6] = [
    0xd100_83ff,
    0xa901_7bfd,
    0xd503_201f,
    0xa941_7bfd,
    0x9100_83ff,
    0xd65f_03c0,
];

/// Frame pointers of the interpreted frames, of the call stub, and of native code.
const INNER_FP: u64 = STACK + 0x200;
const OUTER_FP: u64 = STACK + 0x300;
const STUB_FP: u64 = STACK + 0x400;
const ROOT_FP: u64 = STACK + 0x600;
/// sp of the inner frame at its call.
const INNER_SP: u64 = STACK + 0x100;

fn stack() -> Vec<u64> {
    let mut words = vec![0; 0x100];
    let mut put = |at: u64, word| words[(at - STACK) as usize / 8] = word;
    // The compiled frame, once it is complete.
    put(INNER_SP - 16, INNER_FP);
    put(INNER_SP - 8, signed(INTERPRETER.0 + 0x204));
    // The caller's sp is below the inner frame: an interpreted caller keeps room for expressions.
    let frames = [
        (
            INNER_FP,
            OUTER_FP,
            INTERPRETER.0 + 0x304,
            INNER_FP - 0x80,
            INNER,
            3,
        ),
        (OUTER_FP, STUB_FP, CALL_STUB, OUTER_FP + 0x40, OUTER, 1),
    ];
    for (fp, link, pc, sender_sp, method, bci) in frames {
        put(fp, link);
        put(fp + 8, signed(pc));
        put(fp - 8, sender_sp);
        put(fp - 24, method);
        put(fp - 64, fp + 0x20);
        put(fp - 72, BYTECODES + bci);
        put(fp - 80, fp - 80);
    }
    put(STUB_FP, ROOT_FP);
    put(STUB_FP + 8, signed(LIBRARY + 0x34));
    // A frame of 48 bytes that begins with its record, and one of 32 bytes that ends with it.
    put(STUB_FP + 16, ROOT_FP);
    put(STUB_FP + 24, signed(LIBRARY + 0x28));
    put(STUB_FP + 16 + 48 + 16, ROOT_FP);
    put(STUB_FP + 16 + 48 + 24, signed(LIBRARY + 0x44));
    words
}

fn memory() -> Bytes {
    let mut memory = Bytes::default();
    let mut segments = vec![0xff; 1024];
    let size = |bytes: u64, frame_words: u64| frame_words << 32 | bytes;
    // Code at 0x100, frame complete after two instructions; tables at 0x80, without debug
    // information.
    let compiled = [
        NAMES,
        size(0x800 - 16, 4),
        8 << 32 | 0x100,
        COMPILED,
        7 << 32 | 4,
        0x80 << 32 | 0x80,
    ];
    let blobs = [
        add_blob(&mut segments, CODE, 0x800, compiled),
        add_blob(
            &mut segments,
            CODE + 0x1000 - 64,
            0x1040,
            [NAMES + 8, size(0x1030, 0), 0x30, 0, 0, 0],
        ),
        add_blob(
            &mut segments,
            CODE + 0x2800,
            0x1000,
            [NAMES + 16, size(0xff0, 0), 0x30, 0, 0, 0],
        ),
    ];
    for (at, mut bytes) in blobs {
        if at == CODE {
            let from = (METHOD_CODE - CODE) as usize;
            let codes = METHOD_CODES.iter().flat_map(|code| code.to_le_bytes());
            bytes.splice(from..from + 4 * METHOD_CODES.len(), codes);
        }
        memory.add(at, bytes);
    }
    memory.add(SEGMENTS, segments);
    memory.add(NAMES, b"nmethod\0InterpreStubRout".to_vec());
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for method in [OUTER, INNER, COMPILED] {
        memory.add(method, words(&[0, METHODS + 0x300]));
    }
    // Constants with eight bytecodes; a pool of one name; a class.
    memory.add(METHODS + 0x300, words(&[METHODS + 0x400, 8, 0, 0, 0]));
    memory.add(METHODS + 0x400, words(&[METHODS + 0x500, 1]));
    memory.add(METHODS + 0x500, words(&[0, NAMES]));
    memory.add(STACK, words(&stack()));
    memory
}

/// Walks, freezes the walk, and returns the frames of both walks.
fn walk(regs: Regs) -> (Vec<Frame>, Frozen) {
    let (memory, layout, code) = (memory(), layout(), code_cache());
    let thread = ThreadContext {
        anchor: Anchor::default(),
        stack_high: STACK + 0x800,
        ..ThreadContext::default()
    };
    let recorder = Recorder::new(&memory, &Libraries);
    let walker = Walker {
        machine: Aarch64,
        mem: &recorder,
        layout: &layout,
        code: &code,
        native: &recorder,
        cache: None,
    };
    let mut frames = vec![Frame::EMPTY; 32];
    let walk = walker.walk(regs, &thread, &mut frames[..]);
    frames.truncate(walk.len);
    assert_eq!(walk.outcome, Outcome::Complete, "{frames:x?}");
    let (words, native) = recorder.into_parts();
    let frozen = Frozen {
        origin: "made up".into(),
        layout,
        code: code.to_words(),
        regs: regs.into(),
        thread,
        words,
        native,
        frames: frames.clone(),
        outcome: "complete".into(),
    };
    (frames, frozen)
}

fn expected() -> Vec<(FrameKind, u64, i32)> {
    vec![
        (FrameKind::C2, COMPILED, -1),
        (FrameKind::Interpreted, INNER, 3),
        (FrameKind::Interpreted, OUTER, 1),
        (FrameKind::Vm, LIBRARY + 0x33, 0),
        (FrameKind::Native, LIBRARY + 0x27, 0),
        (FrameKind::Native, LIBRARY + 0x43, 0),
    ]
}

/// The registers before each instruction of the compiled method. Where its frame is complete, the
/// link register may have any value.
fn interrupted() -> Vec<Regs> {
    let in_caller = Regs {
        sp: INNER_SP,
        fp: INNER_FP,
        lr: signed(INTERPRETER.0 + 0x204),
        ..Regs::default()
    };
    let lowered = Regs {
        sp: INNER_SP - 32,
        ..in_caller
    };
    let complete = Regs {
        lr: 0x1234,
        ..lowered
    };
    let all = [in_caller, lowered, complete, complete, lowered, in_caller];
    let pcs = (0..).map(|index| METHOD_CODE + 4 * index);
    all.into_iter()
        .zip(pcs)
        .map(|(regs, pc)| Regs { pc, ..regs })
        .collect()
}

#[test]
fn walk_is_the_same_at_each_instruction_of_a_method() {
    for regs in interrupted() {
        let (frames, _) = walk(regs);
        let found: Vec<_> = frames.iter().map(|it| (it.kind, it.id, it.bci)).collect();
        assert_eq!(found, expected(), "{:x}", regs.pc);
    }
}

#[test]
fn frozen_walk_of_aarch64_replays_from_its_text() {
    for regs in interrupted() {
        let (frames, frozen) = walk(regs);
        let text = frozen.to_text();
        assert!(text.contains("\nmachine aarch64\n"), "{text}");
        let read = Frozen::parse(&text).unwrap();
        assert_eq!(read, frozen);
        let mut again = vec![Frame::EMPTY; 32];
        let walk = read.walk(&mut again);
        assert_eq!(
            (walk.outcome, &again[..walk.len]),
            (Outcome::Complete, &frames[..])
        );
        // The same file for the other machine has other registers.
        let other = text.replace("\nmachine aarch64\n", "\nmachine x86-64\n");
        assert!(Frozen::parse(&other).is_err());
    }
}

/// Any word may be missing: the walk then ends with a name.
#[test]
fn walk_with_a_missing_word_ends_with_a_name() {
    let (_, frozen) = walk(interrupted()[2]);
    for missing in frozen.words.keys() {
        let mut damaged = frozen.clone();
        damaged.words.insert(*missing, None);
        let mut frames = vec![Frame::EMPTY; 32];
        let walk = damaged.walk(&mut frames);
        let last = frames[walk.len - 1];
        let is_named = last.kind == FrameKind::Failed;
        assert!(walk.outcome == Outcome::Complete || is_named, "{missing:x}");
    }
}

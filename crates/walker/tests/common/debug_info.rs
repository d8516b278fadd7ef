//! A compiled method with its `PcDesc`s, scopes and metadata, in each layout of HotSpot
//! (code/nmethod.hpp of 8, 11-22, 23-24, 25+).

use super::{Bytes, unsigned5};
use dwell_walker::hotspot::nmethod::Nmethod;
use dwell_walker::hotspot::scope::Scope;
use dwell_walker::hotspot::{Blob, BlobKind, Layout};
use dwell_walker::machine::X86_64;
use std::collections::HashMap;

/// Location of the tables.
#[derive(Clone, Copy, Debug)]
pub enum Age {
    /// In the nmethod, by offsets (8).
    Offsets,
    /// In the nmethod, with a pointer to the scopes (9-22).
    Pointer,
    /// `PcDesc`s and scopes in a separate block (23, 24).
    Immutable,
    /// The metadata in a separate block, too (25+).
    Mutable,
}

/// All layouts.
pub const AGES: [Age; 4] = [Age::Offsets, Age::Pointer, Age::Immutable, Age::Mutable];

/// A method of an inlined call: its place in the metadata, from 1 (0 for none), and the bci.
pub type Inlined = (u8, i32);

/// A place in the code: its distance from the previous place, and its methods, outermost first.
pub type Place = (u8, Vec<Inlined>);

/// An address in the code and the scopes there, innermost first.
pub type Expected = (u64, Vec<Scope>);

/// The compiled method.
pub struct Compiled {
    /// Its memory.
    pub memory: Bytes,
    /// The layout of its JDK.
    pub layout: Layout,
    /// Its blob.
    pub blob: Blob,
    /// The expected scopes at each place.
    pub expected: Vec<Expected>,
}

/// Its outermost `Method*`, for code without scopes.
pub const METHOD: u64 = 0x7f00_0000_4242;
/// Maximum number of reads for an interrupted pc: 513 places around, 16 steps that read code, and
/// three chains of 32 scopes in addition to the given one.
const AROUND_READS_MAX: u64 = 600 + 8 * 20 + 4 * 4 * 512;
const NMETHOD: u64 = 0x10_0000;
/// Address of the code.
pub const CODE: u64 = 0x20_0000;
/// Address of `PcDesc`s and scopes from 23 on.
pub const IMMUTABLE: u64 = 0x30_0000;
const MUTABLE: u64 = 0x40_0000;
/// Bytes of relocations before the metadata (25+).
const RELOCATIONS: u32 = 24;
/// Bytes before the tables in the nmethod.
const HEADER_BYTES: usize = 128;

/// Bytes between two methods.
const METHOD_BYTES: u64 = 64;
/// Address of the `ConstMethod`s, each with its bytecodes.
const CONSTANTS: u64 = 0x7e00_0000_0000;
/// Bytes of a `ConstMethod` before its bytecodes.
const CONSTANT_BYTES: u64 = 16;
/// Bytecodes of each method.
pub const BYTECODES: u16 = 32;

/// The `Method*` at a place in the metadata.
fn method_at(index: u8) -> u64 {
    match index {
        0 => 0,
        n => 0x7f00_0000_0000 + u64::from(n) * METHOD_BYTES,
    }
}

/// Writes scopes and `PcDesc`s of `places`.
fn tables(places: &[Place], base: u8) -> (Vec<u8>, Vec<u8>, Vec<Expected>) {
    // Offset 0 means no scope, so no scope begins there.
    let (mut stream, mut pcs, mut expected) = (vec![base], Vec::new(), Vec::new());
    let mut desc = |pc: i32, scope: u32| {
        for number in [pc, scope.cast_signed(), 0, 0] {
            pcs.extend(number.to_le_bytes());
        }
    };
    // HotSpot begins and ends the table with places outside of the code.
    desc(-1, 0);
    // Equal scopes are written once (code/debugInfoRec.cpp).
    let mut written: HashMap<(u32, u8, i32), u32> = HashMap::new();
    let mut pc = 0u32;
    for (distance, inlined) in places {
        pc += u32::from(*distance) + 1;
        let (mut sender, mut scopes) = (0u32, Vec::new());
        for (index, bci) in inlined {
            let offset = *written.entry((sender, *index, *bci)).or_insert_with(|| {
                let offset = u32::try_from(stream.len()).expect("a short stream");
                let code = bci.wrapping_add(1).cast_unsigned();
                for number in [sender, u32::from(*index), code, 0, 0, 0] {
                    unsigned5::encode(number, base, &mut stream);
                }
                offset
            });
            let method = method_at(*index);
            let bci = *bci;
            scopes.insert(
                0,
                Scope {
                    sender,
                    method,
                    bci,
                },
            );
            sender = offset;
        }
        desc(pc.cast_signed(), sender);
        expected.push((CODE + u64::from(pc), scopes));
    }
    desc(i32::MAX, 0);
    (stream, pcs, expected)
}

/// Puts numbers into the header in sequence.
struct Header {
    bytes: Vec<u8>,
}

impl Header {
    fn put(&mut self, value: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = self.bytes.len() as u64;
        self.bytes.extend(value);
        at
    }
}

fn int(value: usize) -> [u8; 4] {
    u32::try_from(value).expect("32 bits").to_le_bytes()
}

/// Offsets of the tables from the start of their block.
struct Places {
    pcs: usize,
    scopes: usize,
    metadata: usize,
}

/// The nmethod up to its tables, and the layout with the offsets in it.
fn header(age: Age, base: u8, places: &Places) -> (Layout, Vec<u8>) {
    let mut layout = Layout::EMPTY;
    layout.extra.unsigned5_base = base;
    layout.sizeof_pcdesc = 16;
    layout.pcdesc_pc_offset = 0;
    layout.pcdesc_scope_offset = 4;
    let mut head = Header { bytes: vec![0; 16] };
    layout.nmethod_method = head.put(&METHOD.to_le_bytes());
    layout.nmethod_comp_level = head.put(&4u32.to_le_bytes());
    layout.nmethod_scopes_pcs_offset = head.put(&int(places.pcs));
    if matches!(age, Age::Pointer) {
        let pointer = NMETHOD + places.scopes as u64;
        layout.nmethod_scopes_data_begin = head.put(&pointer.to_le_bytes());
    } else {
        layout.nmethod_scopes_data_offset = head.put(&int(places.scopes));
    }
    if matches!(age, Age::Offsets | Age::Pointer) {
        // The end of the `PcDesc`s.
        layout.nmethod_dependencies_offset = head.put(&int(places.scopes));
        layout.nmethod_metadata_offset = head.put(&int(places.metadata));
    } else {
        layout.nmethod_immutable_data = head.put(&IMMUTABLE.to_le_bytes());
    }
    match age {
        Age::Offsets | Age::Pointer => {}
        Age::Immutable => {
            layout.blob_data_offset = head.put(&int(HEADER_BYTES));
            layout.nmethod_metadata_offset = head.put(&16u16.to_le_bytes());
        }
        Age::Mutable => {
            layout.blob_mutable_data = head.put(&MUTABLE.to_le_bytes());
            layout.blob_relocation_size = head.put(&RELOCATIONS.to_le_bytes());
        }
    }
    head.bytes.resize(HEADER_BYTES, 0);
    (layout, head.bytes)
}

/// A method that is compiled with the given scopes at the given places.
pub fn compiled(age: Age, base: u8, places: &[Place]) -> Compiled {
    let (stream, pcs, expected) = tables(places, base);
    let method = |n| method_at(n).to_le_bytes();
    let metadata: Vec<u8> = (1..=u8::MAX).flat_map(method).collect();
    let in_nmethod = matches!(age, Age::Offsets | Age::Pointer);
    let first = if in_nmethod { HEADER_BYTES } else { 0 };
    let scopes_at = first + pcs.len();
    let places = Places {
        pcs: first,
        scopes: scopes_at,
        metadata: (scopes_at + stream.len()).next_multiple_of(8),
    };
    let (layout, mut nmethod) = header(age, base, &places);
    let mut memory = Bytes::default();
    let mut tables = [pcs, stream].concat();
    match age {
        Age::Offsets | Age::Pointer => {
            nmethod.append(&mut tables);
            nmethod.resize(places.metadata, 0);
            nmethod.extend(metadata);
        }
        Age::Immutable => {
            nmethod.resize(HEADER_BYTES + 16, 0);
            nmethod.extend(metadata);
        }
        Age::Mutable => memory.add(MUTABLE, [vec![0; RELOCATIONS as usize], metadata].concat()),
    }
    memory.add(NMETHOD, nmethod);
    memory.add(IMMUTABLE, tables);
    Compiled {
        memory,
        layout,
        blob: Blob {
            addr: NMETHOD,
            kind: BlobKind::Nmethod,
            code_begin: CODE,
            frame_bytes: 32,
        },
        expected,
    }
}

impl Compiled {
    /// Gives the methods bytecodes: `call` is the bytecode index of a call in all of them.
    pub fn with_bytecodes(mut self, call: u16) -> Compiled {
        const INVOKESTATIC: u8 = 0xb8;
        let layout = &mut self.layout;
        layout.method_const = 0;
        layout.const_code_size = 8;
        layout.sizeof_const_method = CONSTANT_BYTES;
        for index in 1..=u8::MAX {
            let at = CONSTANTS + u64::from(index) * 64;
            self.memory.add(method_at(index), at.to_le_bytes().to_vec());
            let mut constants = vec![0; CONSTANT_BYTES as usize + usize::from(BYTECODES)];
            constants[8..10].copy_from_slice(&BYTECODES.to_le_bytes());
            constants[CONSTANT_BYTES as usize + usize::from(call)] = INVOKESTATIC;
            self.memory.add(at, constants);
        }
        self
    }

    /// The methods and bytecode indices of an instruction at `pc`, outermost first.
    pub fn interrupted(&self, pc: u64) -> Vec<Inlined> {
        self.inlined(pc, true)
    }

    /// The same of the call that ends at `pc`.
    pub fn called(&self, pc: u64) -> Vec<Inlined> {
        self.inlined(pc, false)
    }

    fn inlined(&self, pc: u64, is_interrupted: bool) -> Vec<Inlined> {
        let nmethod = Nmethod::load(&self.memory, &self.layout, &self.blob).expect("an nmethod");
        let mut scopes = Vec::new();
        let index = |method: u64| ((method - method_at(1)) / METHOD_BYTES + 1) as u8;
        let visit = |_: u32, scope: Scope| scopes.insert(0, (index(scope.method), scope.bci));
        let found = nmethod
            .find(&self.memory, &self.layout, pc)
            .expect("a table");
        let at = (pc, found, is_interrupted);
        (nmethod.for_each_scope_of(X86_64, &self.memory, &self.layout, at, visit))
            .expect("readable tables");
        scopes
    }

    /// The scopes at `pc`; those before the fault, if there is one.
    pub fn scopes(&self, nmethod: &Nmethod, pc: u64) -> (Vec<Scope>, bool) {
        let mut scopes = Vec::new();
        let visit = |_, scope| scopes.push(scope);
        let result = nmethod.for_each_scope(&self.memory, &self.layout, pc, visit);
        (scopes, result.is_ok())
    }

    /// For undamaged data: each place has its scopes, and only places are return addresses.
    pub fn check(&self) {
        let nmethod = Nmethod::load(&self.memory, &self.layout, &self.blob).expect("an nmethod");
        assert_eq!((nmethod.method, nmethod.is_c1), (METHOD, false));
        let whole = Scope {
            sender: 0,
            method: METHOD,
            bci: -1,
        };
        let mut from = CODE;
        for (pc, scopes) in &self.expected {
            let wanted = if scopes.is_empty() {
                vec![whole]
            } else {
                scopes.clone()
            };
            // An interrupted instruction between two places belongs to the second one.
            for at in [from, *pc - 1, *pc] {
                if at == *pc || at >= from {
                    assert_eq!(
                        self.scopes(&nmethod, at),
                        (wanted.clone(), true),
                        "at {at:#x}"
                    );
                    let is_return = nmethod.is_return_address(&self.memory, &self.layout, at);
                    assert_eq!(is_return, Ok(at == *pc), "at {at:#x}");
                }
            }
            from = *pc + 1;
        }
        assert_eq!(
            self.scopes(&nmethod, from),
            (vec![whole], true),
            "behind all places"
        );
    }

    /// For damaged data: the number of reads is bounded, and each caller comes before its callee.
    pub fn check_damaged(&self, pc: u64) {
        let Ok(nmethod) = Nmethod::load(&self.memory, &self.layout, &self.blob) else {
            return;
        };
        let before = self.memory.reads();
        for is_interrupted in [true, false] {
            let Ok(found) = nmethod.find(&self.memory, &self.layout, pc) else {
                continue;
            };
            let at = (pc, found, is_interrupted);
            let _ = nmethod.for_each_scope_of(X86_64, &self.memory, &self.layout, at, |_, _| {});
        }
        assert!(self.memory.reads() - before <= 2 * AROUND_READS_MAX);
        let before = self.memory.reads();
        let (scopes, _) = self.scopes(&nmethod, pc);
        let senders: Vec<u32> = scopes.iter().map(|scope| scope.sender).collect();
        assert!(scopes.len() <= dwell_walker::hotspot::nmethod::SCOPES_MAX);
        let callers = senders
            .get(..senders.len().saturating_sub(1))
            .unwrap_or(&[]);
        assert!(
            callers.is_sorted_by(|a, b| a > b) && !callers.contains(&0),
            "{senders:?}"
        );
        // Up to 24 steps of the search; of each scope up to three words of the stream and a
        // pointer.
        let most = 32 + 4 * scopes.len() as u64 + 4;
        assert!(
            self.memory.reads() - before <= most,
            "{} reads",
            self.memory.reads() - before
        );
    }
}

//! Made-up tables of a JVM for its serviceability agent: the values that are read, the derived
//! ones, and the reports about missing ones.
#![allow(missing_docs)]

mod common;

use common::Bytes;
use dwell_walker::hotspot::layout::ABSENT;
use dwell_walker::hotspot::vmstructs::{self, Place, TableError};
use dwell_walker::hotspot::{Layout, LayoutError};
use dwell_walker::machine::X86_64;

/// Fields that a walk requires: type and field.
const FIELDS: [(&str, &str); 33] = [
    ("JavaThread", "_osthread"),
    ("OSThread", "_thread_id"),
    ("JavaThread", "_thread_state"),
    ("JavaThread", "_anchor"),
    ("JavaFrameAnchor", "_last_Java_sp"),
    ("JavaFrameAnchor", "_last_Java_pc"),
    ("JavaFrameAnchor", "_last_Java_fp"),
    ("CodeHeap", "_memory"),
    ("CodeHeap", "_segmap"),
    ("CodeHeap", "_log2_segment_size"),
    ("VirtualSpace", "_low_boundary"),
    ("VirtualSpace", "_high_boundary"),
    ("CodeBlob", "_name"),
    ("CodeBlob", "_size"),
    ("CodeBlob", "_frame_size"),
    ("CodeBlob", "_frame_complete_offset"),
    ("nmethod", "_method"),
    ("nmethod", "_comp_level"),
    ("nmethod", "_compile_id"),
    ("nmethod", "_scopes_pcs_offset"),
    ("PcDesc", "_pc_offset"),
    ("PcDesc", "_scope_decode_offset"),
    ("Method", "_constMethod"),
    ("ConstMethod", "_constants"),
    ("ConstMethod", "_code_size"),
    ("ConstMethod", "_name_index"),
    ("ConstMethod", "_signature_index"),
    ("ConstantPool", "_pool_holder"),
    ("Klass", "_name"),
    ("Symbol", "_body"),
    ("StubRoutines", "_call_stub_return_address"),
    ("AbstractInterpreter", "_code"),
    ("StubQueue", "_stub_buffer"),
];
const TYPES: [&str; 4] = ["HeapBlock", "PcDesc", "ConstMethod", "ConstantPool"];
const INTS: [&str; 1] = ["_thread_in_Java"];

const BARRIER: &str = "_ZN12StubRoutines19_cont_returnBarrierE";
const RETURN_PC: &str = "_ZN17ContinuationEntry10_return_pcE";
/// Addresses of symbols and tables.
const SYMBOLS_AT: u64 = 0x1000;
const TABLES_AT: [u64; 3] = [0x10_0000, 0x20_0000, 0x30_0000];
const TEXT_AT: u64 = 0x40_0000;

/// A field of the table: type, field, C++ type, whether it is static, and its place.
type Row = (&'static str, &'static str, &'static str, bool, u64);

/// The tables of a JVM.
struct Tables {
    fields: Vec<Row>,
    types: Vec<(&'static str, u64)>,
    ints: Vec<(&'static str, i32)>,
    /// Symbols other than those of the tables, and the words there.
    symbols: Vec<(&'static str, u64)>,
}

impl Tables {
    /// All required entries, each at another place.
    fn needed() -> Tables {
        let field = |(i, (of, name)): (usize, &(&'static str, &'static str))| {
            (*of, *name, "int", false, 8 * i as u64)
        };
        let of_type = |(i, name): (usize, &&'static str)| (*name, 1000 + i as u64);
        Tables {
            fields: FIELDS.iter().enumerate().map(field).collect(),
            types: TYPES.iter().enumerate().map(of_type).collect(),
            ints: INTS.iter().map(|name| (*name, 8)).collect(),
            symbols: Vec::new(),
        }
    }

    /// The symbols with the words that they point to. The fields of an entry are in a made-up
    /// order, with gaps between them.
    fn words(&self) -> Vec<(&'static str, u64)> {
        let [fields, types, ints] = TABLES_AT;
        let mut words = vec![
            ("gHotSpotVMStructs", fields),
            ("gHotSpotVMStructEntryArrayStride", 64),
            ("gHotSpotVMStructEntryTypeNameOffset", 8),
            ("gHotSpotVMStructEntryFieldNameOffset", 0),
            ("gHotSpotVMStructEntryTypeStringOffset", 16),
            ("gHotSpotVMStructEntryIsStaticOffset", 28),
            ("gHotSpotVMStructEntryOffsetOffset", 32),
            ("gHotSpotVMStructEntryAddressOffset", 40),
            ("gHotSpotVMTypes", types),
            ("gHotSpotVMTypeEntryArrayStride", 48),
            ("gHotSpotVMTypeEntryTypeNameOffset", 8),
            ("gHotSpotVMTypeEntrySizeOffset", 40),
            ("gHotSpotVMIntConstants", ints),
            ("gHotSpotVMIntConstantEntryArrayStride", 24),
            ("gHotSpotVMIntConstantEntryNameOffset", 8),
            ("gHotSpotVMIntConstantEntryValueOffset", 20),
        ];
        words.extend(&self.symbols);
        words
    }

    /// The tables in memory.
    fn memory(&self) -> Bytes {
        let (mut memory, mut text) = (Bytes::default(), Vec::new());
        let mut name = |name: &str| {
            let at = TEXT_AT + text.len() as u64;
            text.extend(name.bytes().chain([0]));
            at
        };
        let mut rows = Vec::new();
        for (of, field, string, is_static, place) in &self.fields {
            let (offset, address) = if *is_static { (7, *place) } else { (*place, 7) };
            let is_static = u64::from(*is_static) << 32;
            let words = [
                name(field),
                name(of),
                name(string),
                is_static,
                offset,
                address,
                0,
                0,
            ];
            rows.extend(words);
        }
        memory.add(TABLES_AT[0], bytes(&rows, 8));
        rows.clear();
        for (of, size) in &self.types {
            rows.extend([0, name(of), 0, 0, 0, *size]);
        }
        memory.add(TABLES_AT[1], bytes(&rows, 6));
        rows.clear();
        for (int, value) in &self.ints {
            rows.extend([0, name(int), u64::from(value.cast_unsigned()) << 32]);
        }
        memory.add(TABLES_AT[2], bytes(&rows, 3));
        memory.add(TEXT_AT, text);
        let values: Vec<u64> = self.words().iter().map(|(_, word)| *word).collect();
        memory.add(SYMBOLS_AT, bytes(&values, 0));
        memory
    }

    /// Address of a symbol.
    fn address(&self, symbol: &str) -> Option<u64> {
        let place = self.words().iter().position(|(name, _)| *name == symbol)?;
        Some(SYMBOLS_AT + 8 * place as u64)
    }

    fn load(&self) -> Result<Layout, LayoutError> {
        Layout::load(X86_64, &self.memory(), &|name: &str| self.address(name))
    }
}

/// Words as bytes, with `zeroes` zero bytes after them.
fn bytes(words: &[u64], zeroes: usize) -> Vec<u8> {
    let words = words.iter().copied().chain(vec![0; zeroes]);
    words.flat_map(u64::to_le_bytes).collect()
}

#[test]
fn required_fields_suffice_and_a_missing_one_is_named() {
    let layout = Tables::needed().load().expect("a layout");
    assert_eq!((layout.thread_osthread, layout.osthread_thread_id), (0, 8));
    assert_eq!(layout.stub_queue_buffer, 32 * 8);
    assert_eq!(
        (layout.sizeof_heap_block, layout.sizeof_constant_pool),
        (1000, 1003)
    );
    assert_eq!((layout.state_in_java, layout.state_in_vm), (8, ABSENT));
    for (place, (of, field)) in FIELDS.iter().enumerate() {
        let mut tables = Tables::needed();
        tables.fields.remove(place);
        let Err(LayoutError::Missing(missing)) = tables.load() else {
            panic!("{of}.{field} is not missed");
        };
        assert_eq!(missing, format!("{of}.{field}"));
    }
    for (place, name) in TYPES.iter().enumerate() {
        let mut tables = Tables::needed();
        tables.types.remove(place);
        let Err(LayoutError::Missing(missing)) = tables.load() else {
            panic!("{name} is not missed");
        };
        assert_eq!(missing, format!("sizeof({name})"));
    }
    let mut tables = Tables::needed();
    tables.ints.clear();
    assert_eq!(tables.load(), Err(LayoutError::Missing("_thread_in_Java")));
}

#[test]
fn statics_have_addresses_and_numbers_may_be_negative() {
    let mut tables = Tables::needed();
    tables.fields.push((
        "CodeCache",
        "_heaps",
        "GrowableArray<CodeHeap*>*",
        true,
        0x7fff_1234,
    ));
    tables
        .ints
        .push(("frame::entry_frame_call_wrapper_offset", -6));
    // One of the two spellings.
    tables
        .fields
        .push(("Thread", "_stack_base", "address", false, 0x500));
    let layout = tables.load().expect("a layout");
    assert_eq!(layout.code_heaps, 0x7fff_1234);
    assert_eq!(layout.entry_call_wrapper, 6u64.wrapping_neg());
    assert_eq!(layout.thread_stack_base, 0x500);
    let mut places = Vec::new();
    let symbols = |name: &str| tables.address(name);
    let shown = vmstructs::for_each_field(&tables.memory(), &symbols, |field| {
        let names = [field.type_name, field.field_name, field.type_string];
        places.push((names.map(|name| name.as_str().to_owned()), field.place));
    });
    assert_eq!(shown, Ok(()));
    assert_eq!(places.len(), FIELDS.len() + 2);
    let names = ["CodeCache", "_heaps", "GrowableArray<CodeHeap*>*"].map(str::to_owned);
    assert!(places.contains(&(names, Place::Static(0x7fff_1234))));
    let names = ["JavaThread", "_anchor", "int"].map(str::to_owned);
    assert!(places.contains(&(names, Place::Offset(24))));
}

#[test]
fn value_in_no_table_is_derived() {
    let of_8 = Tables::needed().load().expect("a layout").extra;
    assert_eq!((of_8.interpreter_bcp, of_8.unsigned5_base), (-56, 0));
    assert!(!of_8.frame_complete_short);
    assert_eq!(
        (of_8.return_barrier, of_8.cont_return_pc, of_8.cont_entry),
        (0, 0, ABSENT)
    );
    let mut tables = Tables::needed();
    tables
        .fields
        .push(("CodeCache", "_heaps", "", true, 0x7fff_1234));
    tables.symbols = vec![(BARRIER, 0x7000), (RETURN_PC, 0x7100)];
    let of_21 = tables.load().expect("a layout").extra;
    assert_eq!(of_21.interpreter_bcp, -64);
    assert_eq!(
        (of_21.return_barrier, of_21.cont_return_pc),
        (0x7000, 0x7100)
    );
    // If the tables have them, symbols are not used.
    tables
        .symbols
        .extend([("at barrier", 0x7200), ("at return pc", 0x7300)]);
    let address = |name| tables.address(name).expect("a symbol");
    let (barrier, return_pc) = (address("at barrier"), address("at return pc"));
    tables.fields.extend([
        (
            "StubRoutines",
            "_cont_returnBarrier",
            "address",
            true,
            barrier,
        ),
        (
            "ContinuationEntry",
            "_return_pc",
            "address",
            true,
            return_pc,
        ),
        (
            "JavaThread",
            "_cont_entry",
            "ContinuationEntry*",
            false,
            0x348,
        ),
    ]);
    let newest = tables.load().expect("a layout").extra;
    assert_eq!(
        (newest.return_barrier, newest.cont_return_pc),
        (0x7200, 0x7300)
    );
    assert_eq!(newest.cont_entry, 0x348);
}

#[test]
fn field_width_follows_from_its_type() {
    for (string, is_short) in [
        ("int16_t", true),
        ("uint16_t", true),
        ("u2", true),
        ("int", false),
    ] {
        let mut tables = Tables::needed();
        let field = tables
            .fields
            .iter_mut()
            .find(|row| row.1 == "_frame_complete_offset");
        field.expect("the field").2 = string;
        let layout = tables.load().expect("a layout");
        assert_eq!(layout.extra.frame_complete_short, is_short, "{string}");
    }
}

#[test]
fn missing_tables_are_named() {
    let tables = Tables::needed();
    for (missing, _) in tables.words() {
        let symbols = |name: &str| tables.address(name).filter(|_| name != missing);
        let found = Layout::load(X86_64, &tables.memory(), &symbols);
        assert_eq!(
            found,
            Err(LayoutError::Table(TableError::NoSymbol(missing)))
        );
    }
    let nowhere = |_: &str| Some(0x10);
    let found = Layout::load(X86_64, &tables.memory(), &nowhere);
    assert!(matches!(
        found,
        Err(LayoutError::Table(TableError::Fault(_)))
    ));
}

#[test]
fn values_are_shown_and_set_by_name() {
    let mut layout = Layout::EMPTY;
    assert!(layout.set("thread_anchor", 5) && !layout.set("no such thing", 5));
    let mut shown = Vec::new();
    layout.for_each(|name, value| shown.push((name, value)));
    assert_eq!(
        shown.iter().filter(|(_, value)| *value != ABSENT).count(),
        1
    );
    assert!(shown.contains(&("thread_anchor", 5)));
}

//! The value that each row of the VM's tables sets, the derived values, and the required ones.
//! (Whole made-up tables are read in `tests/layout.rs`.)

extern crate std;

use super::*;
use crate::hotspot::test_memory::Bytes;
use std::vec::Vec;

/// Names of all values that equal `value`.
fn with_value(layout: &Layout, value: u64) -> Vec<&'static str> {
    let mut names = Vec::new();
    layout.for_each(|name, it| {
        if it == value {
            names.push(name);
        }
    });
    names
}

/// Names of all values.
fn names() -> Vec<&'static str> {
    with_value(&Layout::EMPTY, ABSENT)
}

/// Names of the values that a row of the table of fields sets.
fn set_by(of: &str, field: &str) -> Vec<&'static str> {
    let mut layout = Layout::EMPTY;
    layout.take_field(of, field, Place::Offset(5));
    with_value(&layout, 5)
}

/// A layout in which everything is present.
fn full() -> Layout {
    let mut layout = Layout::EMPTY;
    for (value, name) in (1000..).zip(names()) {
        assert!(layout.set(name, value), "{name}");
    }
    layout
}

fn no_symbols(_: &str) -> Option<u64> {
    None
}

#[test]
fn a_field_has_one_value_under_all_its_spellings() {
    for (value, spellings) in [
        (
            "narrow_klass_base",
            &[
                ("CompressedKlassPointers", "_narrow_klass._base"),
                ("CompressedKlassPointers", "_base"),
                ("Universe", "_narrow_klass._base"),
            ][..],
        ),
        (
            "narrow_oop_shift",
            &[
                ("CompressedOops", "_narrow_oop._shift"),
                ("CompressedOops", "_shift"),
                ("Universe", "_narrow_oop._shift"),
            ],
        ),
        (
            "symbol_body",
            &[("Symbol", "_body"), ("Symbol", "_body[0]")],
        ),
        ("flag_addr", &[("JVMFlag", "_addr"), ("Flag", "_addr")]),
        (
            "x_good_mask",
            &[
                ("XGlobalsForVMStructs", "_XAddressGoodMask"),
                ("ZGlobalsForVMStructs", "_ZAddressGoodMask"),
            ],
        ),
        (
            "x_forwarding_table",
            &[
                ("XHeap", "_forwarding_table"),
                ("ZHeap", "_forwarding_table"),
            ],
        ),
    ] {
        for (of, field) in spellings {
            assert_eq!(set_by(of, field), [value], "{of}.{field}");
        }
    }
}

#[test]
fn the_same_name_in_another_type_is_another_field() {
    assert_eq!(set_by("Method", "_constMethod"), ["method_const"]);
    assert_eq!(set_by("ConstMethod", "_constMethod"), [""; 0]);
    assert_eq!(set_by("Klass", "_name"), ["klass_name"]);
    assert_eq!(set_by("CodeBlob", "_name"), ["blob_name"]);
    assert_eq!(set_by("JVMFlag", "_name"), ["flag_name"]);
    assert_eq!(set_by("Klass", "_name "), [""; 0], "no part of a name");
    assert_eq!(set_by("", ""), [""; 0]);
}

#[test]
fn types_and_numbers_taken_by_name_negative_ones_unchanged() {
    let mut layout = Layout::EMPTY;
    layout.take_type("Flag", 40);
    layout.take_type("PcDesc", 16);
    layout.take_type("Method", 104);
    layout.take_int("_thread_in_vm", 6);
    layout.take_int("frame::entry_frame_call_wrapper_offset", -6);
    layout.take_int("_thread_in_Javelin", 9);
    assert_eq!((layout.sizeof_flag, layout.sizeof_pcdesc), (40, 16));
    assert_eq!(layout.state_in_vm, 6);
    assert_eq!(layout.entry_call_wrapper as i64, -6);
    assert_eq!(with_value(&layout, ABSENT).len(), names().len() - 4);
}

#[test]
fn values_have_names_of_their_own() {
    let mut all = names();
    let count = all.len();
    let layout = full();
    for (value, name) in (1000..).zip(&all) {
        assert_eq!(with_value(&layout, value), [*name]);
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

/// A missing required value is reported by its name in the VM's tables; all other values may be
/// missing.
#[test]
fn missing_value_is_reported_by_its_name() {
    assert_eq!(full().check(), Ok(()));
    let mut needed = 0;
    for name in names() {
        let mut layout = full();
        layout.set(name, ABSENT);
        let Err(error) = layout.check() else {
            continue;
        };
        needed += 1;
        let LayoutError::Missing(told) = error else {
            panic!("{error:?}");
        };
        let mut taken = Layout::EMPTY;
        match (told.strip_prefix("sizeof("), told.split_once('.')) {
            (Some(of), _) => taken.take_type(of.trim_end_matches(')'), 5),
            (None, Some((of, field))) => taken.take_field(of, field, Place::Static(5)),
            (None, None) => taken.take_int(told, 5),
        }
        assert_eq!(with_value(&taken, 5), [name], "{told}");
    }
    assert_eq!(needed, 38);
    let first = LayoutError::Missing("JavaThread._osthread");
    assert_eq!(
        Layout::EMPTY.check(),
        Err(first),
        "the first one is reported"
    );
}

#[test]
fn method_flags_are_read_at_old_and_new_offset() {
    let derived = |before: u64, since_21: u64| {
        let mut layout = Layout::EMPTY;
        (layout.const_flags, layout.const_flags_21) = (before, since_21);
        assert_eq!(layout.derive(&Bytes::default(), &no_symbols), Ok(()));
        (layout.const_flags, layout.extra.unsigned5_base)
    };
    assert_eq!(derived(40, ABSENT), (40, 0));
    assert_eq!(derived(ABSENT, 44), (44, 1));
    assert_eq!(derived(40, 44), (40, 1));
    assert_eq!(derived(ABSENT, ABSENT), (ABSENT, 0));
}

#[test]
fn code_that_cannot_be_read_is_unknown() {
    const BARRIER_AT: u64 = 0x1000;
    const RETURN_AT: u64 = 0x2000;
    let with = |memory: &Bytes| {
        let mut layout = Layout {
            cont_return_barrier: BARRIER_AT,
            cont_entry_return_pc: RETURN_AT,
            thread_cont_entry: 0x348,
            ..Layout::EMPTY
        };
        // The tables count, not the symbols of the same names.
        let symbols = |_: &str| Some(0x3000);
        assert_eq!(layout.derive(memory, &symbols), Ok(()));
        let extra = layout.extra;
        assert_eq!(extra.cont_entry, 0x348);
        (extra.return_barrier, extra.cont_return_pc)
    };
    assert_eq!(with(&Bytes::default()), (0, 0));
    let of_symbols = Bytes::of_words(&[(0x3000, &[9])]);
    assert_eq!(with(&of_symbols), (0, 0));
    let one = Bytes::of_words(&[(BARRIER_AT, &[7]), (0x3000, &[9])]);
    assert_eq!(with(&one), (7, 0));
    let both = Bytes::of_words(&[(BARRIER_AT, &[7]), (RETURN_AT, &[8])]);
    assert_eq!(with(&both), (7, 8));
}

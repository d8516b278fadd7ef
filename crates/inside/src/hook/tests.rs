//! The hook's reading of the mounted virtual thread, and its omissions where it cannot read.

use super::*;
use crate::jvm::made_up::{self, FIELDS, NOWHERE, Words, handle, live};

const THREAD_AT: u64 = 8;
const ID_AT: u64 = 16;
/// Offset of the continuation in its entry.
const CONTINUATION_AT: u64 = 16;
/// A `byte[]` here: its length in the third word, its elements from the fourth on.
const ARRAY: (u64, u64) = (FIELDS[0], FIELDS[1]);

/// All fields of 21: threads have an id and a name.
fn known() -> Known {
    let mut layout = made_up::layout();
    layout.thread_vthread = THREAD_AT;
    Known {
        layout: Box::leak(Box::new(layout)),
        thread_id: FIELDS[0],
        thread_name: FIELDS[1],
        string_value: FIELDS[0],
        string_coder: FIELDS[1],
        array: Some(ARRAY),
        owner: Some((FIELDS[0], FIELDS[1])),
    }
}

fn with(known: &Known, change: impl FnOnce(&mut Layout)) -> Known {
    let mut layout = known.layout.clone();
    change(&mut layout);
    Known {
        layout: Box::leak(Box::new(layout)),
        ..*known
    }
}

fn string(coder: u64, text: &str) -> u64 {
    let bytes = Words::of_bytes(text.as_bytes());
    let words = (0..text.len().div_ceil(8) as u64).map(|n| bytes[8 * n].load(Ordering::SeqCst));
    let array: Vec<u64> = std::iter::once(text.len() as u64).chain(words).collect();
    let array = made_up::object(1, &array).at();
    made_up::object(1, &[array, coder]).at()
}

fn thread(id: u64, name: u64) -> u64 {
    made_up::object(1, &[id, name]).at()
}

/// The name that was found, as text.
fn text(known: &Known, thread: u64) -> Option<String> {
    let (at, len) = name(&live(), known, thread).ok()??;
    let mut bytes = vec![0; len];
    live().read(at, &mut bytes).unwrap();
    Some(String::from_utf8(bytes).unwrap())
}

#[test]
fn latin1_name_is_read() {
    let known = known();
    let named = |name| text(&known, thread(1, name));
    assert_eq!(
        named(string(0, "a longer name")).as_deref(),
        Some("a longer name")
    );
    assert_eq!(named(string(0, "")).as_deref(), Some(""));
    assert_eq!(named(string(1, "wide")), None);
    assert_eq!(named(0), None, "it has none");
    assert_eq!(named(NOWHERE), None);
    let mine = thread(1, string(0, "mine"));
    assert_eq!(text(&known, mine).as_deref(), Some("mine"));
    for lacks in [
        |known: &mut Known| known.thread_name = ABSENT,
        |known: &mut Known| known.string_value = ABSENT,
        |known: &mut Known| known.string_coder = ABSENT,
        |known: &mut Known| known.array = None,
    ] {
        let mut known = known;
        lacks(&mut known);
        assert_eq!(name(&live(), &known, mine), Ok(None));
    }
}

#[test]
fn thread_id_is_read_in_the_jvm_or_in_its_object() {
    let own = known();
    let object = thread(77, 0);
    let java_thread = Words::new(&[0, 0, 55]).at();
    assert_eq!(identity(&live(), &own, java_thread, object), Ok(77));
    let newer = with(&own, |layout| layout.thread_owner_id = ID_AT);
    assert_eq!(identity(&live(), &newer, java_thread, object), Ok(55));
    let unknown = Known {
        thread_id: ABSENT,
        ..own
    };
    assert_eq!(identity(&live(), &unknown, java_thread, object), Ok(0));
    assert!(identity(&live(), &own, java_thread, NOWHERE).is_err());
}

#[test]
fn mounted_thread_is_behind_a_handle() {
    let known = known();
    let java_thread = Words::new(&[0, handle(0x7000)]).at();
    assert_eq!(mounted(&live(), &known, java_thread), Ok(0x7000));
    let torn = Words::new(&[0, NOWHERE]).at();
    assert!(mounted(&live(), &known, torn).is_err());
}

#[test]
fn continuation_leads_to_its_thread() {
    let known = known();
    let entered = |continuation: u64| {
        let entry = Words::zeroes(3);
        entry.set(CONTINUATION_AT, continuation);
        owner_of(&live(), &known, entry.at())
    };
    let thread = thread(99, 0);
    let wrapper = made_up::object(1, &[0, thread]).at();
    let continuation = made_up::object(1, &[wrapper]).at();
    assert_eq!(entered(continuation), Ok(Some((thread, 99))));
    let without_task = made_up::object(1, &[0]).at();
    assert_eq!(entered(without_task), Ok(None));
    let of_nobody = made_up::object(1, &[made_up::object(1, &[0, 0]).at()]).at();
    assert_eq!(entered(of_nobody), Ok(None));
    assert!(entered(NOWHERE).is_err());
    let entry = Words::new(&[0, 0, continuation]).at();
    for unknown in [
        Known {
            owner: None,
            ..known
        },
        Known {
            thread_id: ABSENT,
            ..known
        },
    ] {
        assert_eq!(owner_of(&live(), &unknown, entry), Ok(None));
    }
}

#[test]
fn path_to_the_owner_is_complete_or_unknown() {
    let wrapper = c"java/lang/VirtualThread$VThreadContinuation$1";
    let found = |target: u64, thread: u64| {
        owner(&|class, _, _| if class == wrapper { thread } else { target })
    };
    assert_eq!(found(16, 24), Some((16, 24)));
    assert_eq!(found(ABSENT, 24), None);
    assert_eq!(found(16, ABSENT), None);
}

#[test]
fn array_header_depends_on_class_pointers() {
    const NAMES: [&str; 2] = ["UseCompactObjectHeaders", "UseCompressedClassPointers"];
    let with = |values: [Option<bool>; 2]| {
        let flags = NAMES.iter().zip(values);
        let flags = flags.filter_map(|(name, value)| Some((name, value?)));
        let all: Vec<u64> = flags
            .flat_map(|(name, value)| {
                let name = Words::of_bytes(name.as_bytes()).at();
                [name, Words::new(&[u64::from(value)]).at()]
            })
            .collect();
        let mut layout = made_up::layout();
        layout.flags_table = Words::new(&[Words::new(&all).at()]).at();
        layout.flags_count = Words::new(&[all.len() as u64 / 2]).at();
        (layout.sizeof_flag, layout.flag_name, layout.flag_addr) = (16, 0, 8);
        byte_array(live(), &layout)
    };
    assert_eq!(with([Some(true), Some(true)]), Some((8, 12)));
    assert_eq!(with([Some(false), Some(true)]), Some((12, 16)));
    assert_eq!(with([None, None]), Some((12, 16)), "flags that are gone");
    assert_eq!(with([Some(false), Some(false)]), None);
    assert_eq!(with([None, Some(false)]), None);
}

//! Tests of Parquet: the tables, read by the crate's own reader, have the sums and names of the
//! profile.

use super::content_ids::ContentIds;
use super::*;
use crate::typed_values::{self, Amount, Column};
use crate::whole_profile::{drawn, hostile, whole};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::{Field, List, ListAccessor, Row};
use dwell_profile::{Builder, FrameKind};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

/// A file in memory.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn files(profile: &Profile) -> BTreeMap<&'static str, Vec<u8>> {
    let mut files: BTreeMap<&'static str, Shared> = BTreeMap::new();
    let open = |table| Ok(files.entry(table).or_default().clone());
    parquet(profile, open).unwrap();
    let bytes = |file: Shared| file.0.lock().unwrap().clone();
    files
        .into_iter()
        .map(|(name, file)| (name, bytes(file)))
        .collect()
}

/// The tables' rows.
struct Read(BTreeMap<&'static str, Vec<Row>>);

fn read(profile: &Profile) -> Read {
    let rows = |bytes: Vec<u8>| {
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let files = files(profile).into_iter();
    Read(files.map(|(name, bytes)| (name, rows(bytes))).collect())
}

fn field<'r>(row: &'r Row, column: &str) -> &'r Field {
    let mut columns = row.get_column_iter();
    columns
        .find(|(name, _)| *name == column)
        .unwrap_or_else(|| panic!("no {column}"))
        .1
}

fn number(row: &Row, column: &str) -> i64 {
    match field(row, column) {
        Field::Long(number) => *number,
        other => panic!("{column}: {other}"),
    }
}

fn text<'r>(row: &'r Row, column: &str) -> &'r str {
    match field(row, column) {
        Field::Str(text) => text,
        Field::Null => "",
        other => panic!("{column}: {other}"),
    }
}

fn list(row: &Row, column: &str) -> Vec<i64> {
    let Field::ListInternal(list) = field(row, column) else {
        panic!("{column}");
    };
    let list: &List = list;
    (0..list.len())
        .map(|place| list.get_long(place).unwrap())
        .collect()
}

impl Read {
    fn sum(&self, table: &str, column: &str) -> i64 {
        self.0[table].iter().map(|row| number(row, column)).sum()
    }

    /// The sum over rows that are part of the wall time.
    fn wall(&self) -> i64 {
        let rows = self.0["samples"].iter().chain(&self.0["waits"]);
        let rows = rows.filter(|row| field(row, "in_wall") == &Field::Bool(true));
        rows.map(|row| number(row, "weight_ns")).sum()
    }
}

/// The sums of the values of a profile, by their types.
fn own_sums(profile: &Profile) -> Vec<i64> {
    let mut sums = vec![0; Column::COUNT];
    typed_values::each(profile, |_, _, column, amount| {
        if let Amount::Whole(value) = amount {
            sums[column as usize] += value as i64;
        }
    });
    sums
}

fn assert_sums(profile: &Profile) {
    let (read, own) = (read(profile), own_sums(profile));
    for (column, table, name) in [
        (Column::Samples, "samples", "count"),
        (Column::Measured, "samples", "weight_ns"),
        (Column::AllocatedBytes, "allocations", "weight_bytes"),
        (Column::Blocked, "locks", "weight_ns"),
    ] {
        assert_eq!(
            read.sum(table, name),
            own[column as usize],
            "{table}.{name}"
        );
    }
    if profile.has_wall() {
        assert_eq!(read.wall(), own[Column::Wall as usize]);
    }
    assert_references(&read);
}

/// Each stack of an event is there once, and so are its frames.
fn assert_references(read: &Read) {
    let ids = |table: &str, column: &str| -> HashSet<i64> {
        let ids: Vec<i64> = read.0[table]
            .iter()
            .map(|row| number(row, column))
            .collect();
        let set: HashSet<i64> = ids.iter().copied().collect();
        assert_eq!(set.len(), ids.len(), "{table} has an id twice");
        set
    };
    let (stacks, frames) = (ids("stacks", "stack_id"), ids("frames", "frame_id"));
    for table in ["samples", "waits", "allocations", "live", "locks"] {
        for row in &read.0[table] {
            assert!(stacks.contains(&number(row, "stack_id")), "{table}: {row}");
        }
    }
    for row in &read.0["stacks"] {
        let list = list(row, "frames");
        assert_eq!(list.len() as i64, number(row, "depth"));
        assert!(list.iter().all(|frame| frames.contains(frame)), "{row}");
    }
}

#[test]
fn tables_have_the_sums_of_the_profile() {
    assert_sums(&whole(7));
    assert_sums(&Builder::default().finish());
}

#[test]
fn rows_have_the_facts_of_the_profile() {
    let read = read(&whole(1));
    let wait = &read.0["waits"][0];
    assert_eq!(text(wait, "cause"), "monitor");
    assert_eq!((text(wait, "thread"), text(wait, "owner")), ("main", "gc"));
    assert_eq!(text(wait, "endpoint"), "GET /x");
    assert_eq!(text(wait, "detail"), "a.Lock");
    assert_eq!(text(wait, "trace_id"), format!("{:032x}", 0xab));
    assert_eq!(number(wait, "span_id"), 0xcd);
    let labels: serde_json::Value = serde_json::from_str(text(wait, "labels")).unwrap();
    assert_eq!(labels["tenant"], "acme");
    let object = &read.0["allocations"][0];
    assert_eq!(text(object, "class"), "byte[]");
    assert_eq!(field(object, "objects"), &Field::Double(100.0 / 24.0));
    let lock = &read.0["locks"][0];
    assert_eq!(
        (text(lock, "class"), text(lock, "cause")),
        ("byte[]", "monitor")
    );
    let names: Vec<&str> = read.0["threads"]
        .iter()
        .map(|row| text(row, "thread"))
        .collect();
    assert_eq!(names, ["main", "gc"]);
    // The stack of the second sample, innermost frame first.
    let stack = number(&read.0["samples"][1], "stack_id");
    let row = read.0["stacks"]
        .iter()
        .find(|row| number(row, "stack_id") == stack)
        .unwrap();
    assert_eq!((text(row, "method"), number(row, "line")), ("a.A.z", 7));
    let frames = list(row, "frames");
    let frame = |id: i64| {
        read.0["frames"]
            .iter()
            .find(|row| number(row, "frame_id") == id)
    };
    let methods: Vec<&str> = frames
        .iter()
        .map(|id| text(frame(*id).unwrap(), "method"))
        .collect();
    assert_eq!(methods, ["a.A.z", "a.A.x"]);
    // A class is no frame.
    assert!(
        read.0["frames"]
            .iter()
            .all(|row| text(row, "method") != "byte[]")
    );
}

#[test]
fn stacks_of_owners_and_waiters_are_there() {
    let mut builder = dwell_profile::text_art::builder("thread: main gc\na.A.x a.B.y");
    let frame = builder.marker("only here", FrameKind::Other);
    let (owner, waiter) = (builder.child(1, frame), builder.child(2, frame));
    let class = builder.name("a.Lock");
    builder.monitor_owners.push(MonitorOwner {
        time_ns: 1,
        duration_ns: 2,
        weight_ns: 30,
        class,
        owner: Some(1),
        node: Some(owner),
        failure: None,
        waiter: Some(0),
        waiter_node: waiter,
    });
    let profile = builder.finish();
    let read = read(&profile);
    let row = &read.0["owners"][0];
    assert_eq!((text(row, "thread"), text(row, "waiter")), ("gc", "main"));
    let ids = ContentIds::of(&profile).stacks;
    let expected = (ids[owner as usize], ids[waiter as usize]);
    assert_eq!(
        (number(row, "stack_id"), number(row, "waiter_stack_id")),
        expected
    );
    let is_there = |id: i64| {
        read.0["stacks"]
            .iter()
            .any(|row| number(row, "stack_id") == id)
    };
    assert!(is_there(expected.0) && is_there(expected.1));
}

#[test]
fn texts_have_no_control_characters() {
    for (table, bytes) in files(&hostile()) {
        assert!(!bytes.windows(2).any(|it| it == b"\x1b["), "{table}");
    }
    let read = read(&hostile());
    assert_eq!(
        text(&read.0["samples"][0], "thread"),
        "t\u{fffd}[31m\u{fffd}"
    );
}

#[test]
fn stack_ids_are_equal_in_two_recordings() {
    let (first, second) = (read(&whole(1)), read(&drawn(&[(2, 0, 1), (3, 1, 1)])));
    let again = read(&drawn(&[(3, 2, 9), (1, 0, 5), (2, 0, 4)]));
    let ids = |read: &Read| -> HashSet<i64> {
        read.0["stacks"]
            .iter()
            .map(|row| number(row, "stack_id"))
            .collect()
    };
    let common: HashSet<i64> = ids(&second).intersection(&ids(&again)).copied().collect();
    assert_eq!(common, ids(&second), "both have these, and the empty one");
    let only_empty: Vec<i64> = ids(&first).intersection(&ids(&second)).copied().collect();
    assert_eq!(only_empty, [content_ids::NO_STACK]);
}

#[test]
fn deep_stacks_and_many_rows_take_several_groups() {
    let mut builder = Builder::default();
    let thread = builder.thread("worker", 1, 1, false);
    let method = builder.method("a.A", "x", "()V");
    let frame = builder.frame(method, 1, FrameKind::C1);
    let node = builder.stack(std::iter::repeat_n(frame, 5000));
    for number in 0..70_000 {
        builder.sample(Sample {
            time_ns: number,
            thread,
            node,
            weight: 3,
            count: 1,
            failure: None,
            context: None,
        });
    }
    let profile = builder.finish();
    let bytes = files(&profile).remove("samples").unwrap();
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 2);
    assert_eq!(reader.metadata().file_metadata().num_rows(), 70_000);
    let read = read(&profile);
    assert_eq!(read.sum("samples", "weight_ns"), 210_000);
    let deep = read.0["stacks"]
        .iter()
        .map(|row| list(row, "frames").len())
        .max();
    assert_eq!(deep, Some(5000));
}

#[test]
fn full_disk_is_an_error() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let error = parquet(&whole(1), |_| Ok(Full)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    let error = parquet(&whole(1), |_| -> io::Result<Full> {
        Err(io::ErrorKind::NotFound.into())
    });
    assert_eq!(error.unwrap_err().kind(), io::ErrorKind::NotFound);
}

proptest! {
    #[test]
    fn any_profile_keeps_its_sums(
        samples in prop::collection::vec((0u32..5, 0u32..3, 0u64..1 << 40), 0..50),
    ) {
        assert_sums(&drawn(&samples));
    }
}

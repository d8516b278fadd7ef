//! Files that say little and mean much: time and memory of the reader follow the size of a file.
//! Each of these would take minutes, gigabytes or the whole stack if something that many refer to
//! were read, hashed or copied for each of them.

use dwell_jfr::reader::{self, Options, Recording, Value};
use std::io::Cursor;
use std::sync::mpsc::channel;
use std::time::Duration;

const HEADER_BYTES: usize = 68;
const METADATA: u64 = 0;
const CHECKPOINT: u64 = 1;

const LONG: u64 = 10;
const STRING: u64 = 11;
const THREAD: u64 = 12;
const GROUP: u64 = 13;
const SAMPLE: u64 = 14;
const EVENT: u64 = 15;
const BAG: u64 = 16;

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.push(3);
    varint(out, text.len() as u64);
    out.extend(text.as_bytes());
}

/// A reference to a string constant.
fn pooled_text(out: &mut Vec<u8>, key: u64) {
    out.push(2);
    varint(out, key);
}

fn event(id: u64, body: &[u8]) -> Vec<u8> {
    let mut tail = Vec::new();
    varint(&mut tail, id);
    tail.extend(body);
    // Sizes with a fixed number of bytes, which count themselves.
    let size = tail.len() as u64 + 4;
    let digits = [0, 7, 14].map(|shift| (size >> shift) as u8 | 0x80);
    let mut out = digits.to_vec();
    out.push((size >> 21) as u8 & 0x7f);
    out.extend(tail);
    out
}

/// A field: its name, its type, whether it is a key of a constant, and an array.
#[derive(Clone)]
struct Field(&'static str, u64, bool, bool);

/// A type: its id, its name, whether it is an event, or stands for its only field.
struct Class(u64, &'static str, bool, bool, Vec<Field>);

#[derive(Default)]
struct Metadata {
    strings: Vec<String>,
    elements: Vec<u8>,
    count: u64,
}

impl Metadata {
    fn string(&mut self, text: &str) -> u64 {
        let known = self.strings.iter().position(|it| it == text);
        let at = known.unwrap_or_else(|| {
            self.strings.push(text.to_owned());
            self.strings.len() - 1
        });
        at as u64
    }

    fn element(&mut self, name: &str, attributes: &[(&str, &str)], children: usize) {
        let mut out = Vec::new();
        varint(&mut out, self.string(name));
        varint(&mut out, attributes.len() as u64);
        for (key, value) in attributes {
            varint(&mut out, self.string(key));
            varint(&mut out, self.string(value));
        }
        varint(&mut out, children as u64);
        self.elements.extend(out);
    }

    fn class(&mut self, Class(id, name, is_event, is_simple, fields): &Class) {
        let id = id.to_string();
        let mut attributes = vec![("id", id.as_str()), ("name", name)];
        if *is_event {
            attributes.push(("superType", "jdk.jfr.Event"));
        }
        if *is_simple {
            attributes.push(("simpleType", "true"));
        }
        self.element("class", &attributes, fields.len());
        for Field(name, class, is_pooled, is_array) in fields {
            let class = class.to_string();
            let mut attributes = vec![("name", *name), ("class", class.as_str())];
            if *is_pooled {
                attributes.push(("constantPool", "true"));
            }
            if *is_array {
                attributes.push(("dimension", "1"));
            }
            self.element("field", &attributes, 0);
        }
        self.count += 1;
    }

    fn event(mut self) -> Vec<u8> {
        let classes = std::mem::take(&mut self.elements);
        self.element("root", &[], 1);
        self.element("metadata", &[], self.count as usize);
        let mut body = vec![0, 0, 1];
        varint(&mut body, self.strings.len() as u64);
        self.strings.iter().for_each(|it| text(&mut body, it));
        body.extend(&self.elements);
        body.extend(classes);
        event(METADATA, &body)
    }
}

fn metadata(classes: &[Class]) -> Vec<u8> {
    let mut metadata = Metadata::default();
    let basic = [
        Class(LONG, "long", false, false, Vec::new()),
        Class(STRING, "java.lang.String", false, false, Vec::new()),
    ];
    basic.iter().for_each(|it| metadata.class(it));
    classes.iter().for_each(|it| metadata.class(it));
    metadata.event()
}

/// Constants of one type, by key.
fn checkpoint(class: u64, constants: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 0, 1];
    varint(&mut body, class);
    varint(&mut body, constants.len() as u64);
    for (key, value) in constants {
        varint(&mut body, *key);
        body.extend(value);
    }
    event(CHECKPOINT, &body)
}

/// The header of a chunk of so many bytes, whose metadata lies so far behind its beginning.
fn header(size: usize, metadata: usize, is_finished: bool) -> Vec<u8> {
    let mut out = b"FLR\0\0\x02\0\x01".to_vec();
    for word in [size, 0, metadata, 0, 1_000_000_000, 0, 1_000_000_000] {
        out.extend((word as u64).to_be_bytes());
    }
    out.extend([u8::from(!is_finished), 0, 0, 1]);
    assert_eq!(out.len(), HEADER_BYTES);
    out
}

fn chunk(metadata: &[u8], rest: &[Vec<u8>]) -> Vec<u8> {
    let body = [metadata, &rest.concat()].concat();
    let mut file = header(HEADER_BYTES + body.len(), HEADER_BYTES, true);
    file.extend(body);
    file
}

/// Reads the file on one thread and on several, both of which must come to an end. They have the
/// stack of a program's first thread.
fn read(file: Vec<u8>) -> Recording {
    let (give, read) = channel();
    let body = move || {
        let options = Options {
            threads: 2,
            ..Options::default()
        };
        let one = reader::parse(&file).unwrap();
        let several = reader::parse_from(&mut Cursor::new(&file), &options).unwrap();
        assert_eq!(one.samples.len(), several.samples.len());
        assert_eq!(one.events.len(), several.events.len());
        drop(several);
        give.send(one).unwrap();
    };
    let builder = std::thread::Builder::new().stack_size(8 << 20);
    builder.spawn(body).unwrap();
    let limit = Duration::from_secs(120);
    let recording = read.recv_timeout(limit).expect("read within two minutes");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let most = status.lines().find(|line| line.starts_with("VmHWM"));
    let kib = most.and_then(|line| line.split_whitespace().nth(1));
    let kib: u64 = kib.unwrap().parse().unwrap();
    assert!(kib < 1 << 20, "{kib} KiB");
    recording
}

#[test]
fn metadata_that_many_headers_name_is_read_once() {
    let metadata = metadata(&[Class(EVENT, "x.Event", true, false, Vec::new())]);
    let headers = 300;
    let mut file = Vec::new();
    for left in (1..headers).rev() {
        // Behind each of them stands what is no event.
        file.extend(header(0, left * (HEADER_BYTES + 1) + HEADER_BYTES, false));
        file.push(0);
    }
    file.extend(header(0, HEADER_BYTES, false));
    file.extend(metadata);
    let recording = reader::parse(&file).unwrap();
    assert_eq!(recording.chunks.len(), 1);
    assert_eq!(recording.unread.chunks, headers as u64);
}

#[test]
fn type_name_that_many_types_share_is_kept_once() {
    let name: &'static str = format!("com.oracle.jdk.{}", "x".repeat(200_000)).leak();
    let classes: Vec<_> = (0..20_000)
        .map(|id| Class(100 + id, name, true, false, Vec::new()))
        .collect();
    assert_eq!(read(chunk(&metadata(&classes), &[])).chunks.len(), 1);
}

/// Samples of so many threads; the constants of these, and how each sample ends.
fn samples(threads: u64, more: &[Field], rest: &[Vec<u8>], tail: &[u8]) -> Vec<u8> {
    let thread = [
        Field("osThreadId", LONG, false, false),
        Field("group", GROUP, true, false),
    ];
    let sample = [
        Field("startTime", LONG, false, false),
        Field("sampledThread", THREAD, true, false),
    ];
    let name = Field("name", STRING, false, false);
    let types = metadata(&[
        Class(THREAD, "java.lang.Thread", false, false, thread.to_vec()),
        Class(GROUP, "jdk.types.ThreadGroup", false, false, vec![name]),
        Class(
            SAMPLE,
            "jdk.ExecutionSample",
            true,
            false,
            [&sample, more].concat(),
        ),
    ]);
    let of_group = |key: u64| {
        let mut value = Vec::new();
        varint(&mut value, key);
        value.push(1);
        (key, value)
    };
    let constants: Vec<_> = (1..=threads).map(of_group).collect();
    let mut all = vec![checkpoint(THREAD, &constants)];
    all.extend_from_slice(rest);
    for key in 1..=threads {
        let mut body = vec![0];
        varint(&mut body, key);
        body.extend(tail);
        all.push(event(SAMPLE, &body));
    }
    chunk(&types, &all)
}

#[test]
fn group_that_many_threads_share_is_read_once() {
    let mut name = Vec::new();
    text(&mut name, &"g".repeat(1 << 20));
    let recording = read(samples(
        200_000,
        &[],
        &[checkpoint(GROUP, &[(1, name)])],
        &[],
    ));
    assert_eq!(recording.threads.len(), 200_000);
}

#[test]
fn failure_that_many_samples_share_is_hashed_once() {
    let (mut failure, mut tail) = (Vec::new(), Vec::new());
    text(&mut failure, &"f".repeat(1 << 20));
    pooled_text(&mut tail, 7);
    let strings = checkpoint(STRING, &[(7, failure)]);
    let more = Field("failure", STRING, false, false);
    let recording = read(samples(200_000, &[more], &[strings], &tail));
    assert_eq!(recording.failures.len(), 1);
    assert_eq!(recording.samples.len(), 200_000);
}

/// Events that have a constant each, of a type with these fields.
fn events(is_simple: bool, fields: &[Field], constants: &[(u64, Vec<u8>)], of: &[u64]) -> Vec<u8> {
    let bag = Field("bag", BAG, true, false);
    let types = metadata(&[
        Class(BAG, "x.Bag", false, is_simple, fields.to_vec()),
        Class(EVENT, "x.Event", true, false, vec![bag]),
    ]);
    let mut all = vec![checkpoint(BAG, constants)];
    for key in of {
        let mut body = Vec::new();
        varint(&mut body, *key);
        all.push(event(EVENT, &body));
    }
    chunk(&types, &all)
}

#[test]
fn array_that_many_events_share_is_kept_once() {
    let mut values = Vec::new();
    varint(&mut values, 20_000);
    values.extend([1; 20_000]);
    let fields = [Field("of", LONG, false, true)];
    let recording = read(events(true, &fields, &[(1, values)], &[1; 5_000]));
    assert_eq!(recording.events.len(), 5_000);
    assert!(matches!(
        recording.events[4_999].get("bag"),
        Some(Value::Struct(_))
    ));
}

#[test]
fn structures_that_refer_to_each_other_many_times_are_read_once() {
    let fields = vec![Field("of", BAG, true, false); 8];
    let constants: Vec<_> = (1..13).map(|key| (key, vec![key as u8 - 1; 8])).collect();
    let recording = read(events(false, &fields, &constants, &[12]));
    assert_eq!(recording.events.len(), 1);
}

#[test]
fn structures_inside_structures_are_left_out_below_a_depth() {
    let fields = [Field("of", BAG, true, false)];
    let chain = |key: u64| {
        let mut value = Vec::new();
        varint(&mut value, key - 1);
        (key, value)
    };
    let constants: Vec<_> = (1..=200_000).map(chain).collect();
    // Each is there when the next one asks for it.
    let keys: Vec<u64> = (1..=200_000).collect();
    let recording = read(events(false, &fields, &constants, &keys));
    let depth = |mut value: Option<&Value>| {
        let mut depth = 0;
        while let Some(Value::Struct(fields)) = value {
            (depth, value) = (depth + 1, fields.first().map(|(_, value)| value));
        }
        depth
    };
    let depths: Vec<_> = (recording.events.iter())
        .map(|event| depth(event.get("bag")))
        .collect();
    assert_eq!(depths[..3], [1, 2, 3]);
    assert_eq!(depths.iter().max(), Some(&16));
}

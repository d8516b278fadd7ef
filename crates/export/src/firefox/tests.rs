//! Tests of the Firefox Profiler's format: files that are read back have valid indexes everywhere,
//! and the sums of the profile by thread and cause.

use super::*;
use crate::whole_profile::{Sums, hostile, sample, sums, waits, whole};
use dwell_profile::{
    Builder, Compilation, Compilers, Context, Late, Look, Measured, RUNNING, Request, Safepoint,
    Span, Stretch, Throttled, Unit, text_art, told,
};
use flate2::read::GzDecoder;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::io::Read;

/// A file that was read back.
struct ReadBack {
    json: Value,
}

fn written(profile: &Profile, is_packed: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    firefox(profile, &Program::default(), is_packed, &mut bytes).unwrap();
    bytes
}

fn read(profile: &Profile) -> ReadBack {
    let json = serde_json::from_slice(&written(profile, false)).unwrap();
    let read = ReadBack { json };
    read.check();
    read
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value}"))
}

fn index(value: &Value) -> usize {
    value.as_u64().unwrap_or_else(|| panic!("{value}")) as usize
}

/// The length of a table, which all its columns have.
fn rows(table: &Value) -> usize {
    let len = index(&table["length"]);
    for (name, column) in table.as_object().unwrap() {
        if let Some(column) = column.as_array() {
            assert_eq!(column.len(), len, "{name}");
        }
    }
    len
}

/// All indexes of a column are in a table of this length; `absent` stands for none.
fn check_indexes(table: &Value, column: &str, len: usize, absent: Option<&Value>) {
    for value in list(&table[column]) {
        let is_absent = absent == Some(value);
        assert!(
            is_absent || index(value) < len,
            "{column}: {value} of {len}"
        );
    }
}

impl ReadBack {
    fn shared(&self, table: &str) -> &Value {
        &self.json["shared"][table]
    }

    fn text(&self, place: &Value) -> &str {
        let texts = list(self.shared("stringArray"));
        texts[index(place)].as_str().unwrap()
    }

    fn threads(&self) -> &[Value] {
        list(&self.json["threads"])
    }

    fn named(&self, name: &str) -> &Value {
        let thread = self.threads().iter().find(|it| it["name"] == name);
        thread.unwrap_or_else(|| panic!("no {name}"))
    }

    fn check(&self) {
        let (null, none) = (Value::Null, json!(-1));
        let texts = list(self.shared("stringArray")).len();
        let libs = list(&self.json["libs"]).len();
        let [stacks, frames, functions, resources, sources] = [
            "stackTable",
            "frameTable",
            "funcTable",
            "resourceTable",
            "sources",
        ]
        .map(|name| self.shared(name));
        for (table, column, len, absent) in [
            (stacks, "frame", rows(frames), None),
            (frames, "func", rows(functions), None),
            (functions, "name", texts, None),
            (functions, "resource", rows(resources), Some(&none)),
            (functions, "source", rows(sources), Some(&null)),
            (resources, "lib", libs, None),
            (resources, "name", texts, None),
            (sources, "filename", texts, None),
        ] {
            check_indexes(table, column, len, absent);
        }
        rows(self.shared("nativeSymbols"));
        // Parents come first, so readers need one pass and there is no circle.
        let prefixes = list(&stacks["prefix"]).iter().enumerate();
        for (place, prefix) in prefixes.take(rows(stacks)) {
            assert!(prefix.is_null() || index(prefix) < place, "{place}");
        }
        let categories = list(&self.json["meta"]["categories"]);
        assert_eq!(categories[0]["color"], "grey");
        for frame in 0..rows(frames) {
            let category = &categories[index(&frames["category"][frame])];
            let subcategories = list(&category["subcategories"]);
            assert_eq!(subcategories[0], "Other");
            assert!(index(&frames["subcategory"][frame]) < subcategories.len());
        }
        let tids: BTreeSet<_> = self.threads().iter().map(|it| index(&it["tid"])).collect();
        assert_eq!(tids.len(), self.threads().len());
        for thread in self.threads() {
            self.check_thread(thread, rows(stacks), categories.len());
        }
    }

    fn check_thread(&self, thread: &Value, stacks: usize, categories: usize) {
        let (samples, markers) = (&thread["samples"], &thread["markers"]);
        rows(samples);
        check_indexes(samples, "stack", stacks, None);
        let times = list(&samples["time"]).iter().map(|it| it.as_f64().unwrap());
        assert!(times.is_sorted());
        let allocations = &thread["nativeAllocations"];
        if !allocations.is_null() {
            rows(allocations);
            check_indexes(allocations, "stack", stacks, None);
        }
        let texts = list(self.shared("stringArray")).len();
        check_indexes(markers, "name", texts, None);
        check_indexes(markers, "category", categories, None);
        check_indexes(markers, "phase", 2, None);
        for marker in 0..rows(markers) {
            let [start, end] = ["startTime", "endTime"].map(|it| markers[it][marker].as_f64());
            assert!(start.unwrap() <= end.unwrap());
            let data = markers["data"][marker].as_object().unwrap();
            let schemas = list(&self.json["meta"]["markerSchema"]);
            let schema = schemas
                .iter()
                .find(|it| it["name"] == data["type"])
                .unwrap();
            for key in data.keys().filter(|key| *key != "type" && *key != "cause") {
                let mut fields = list(&schema["fields"]).iter();
                assert!(fields.any(|it| it["key"] == *key), "{key} in {data:?}");
            }
            if let Some(cause) = data.get("cause") {
                assert!(index(&cause["stack"]) < stacks);
            }
        }
    }

    /// The cause of a stack.
    fn cause(&self, stack: usize) -> String {
        let frame = index(&self.shared("stackTable")["frame"][stack]);
        let frames = self.shared("frameTable");
        let category = &self.json["meta"]["categories"][index(&frames["category"][frame])];
        let cause = &category["subcategories"][index(&frames["subcategory"][frame])];
        match category["name"].as_str().unwrap() {
            "On CPU" => RUNNING.to_owned(),
            _ => cause.as_str().unwrap().to_owned(),
        }
    }

    /// The functions of a stack, innermost first, with their lines.
    fn stack(&self, stack: usize) -> Vec<String> {
        let (stacks, frames) = (self.shared("stackTable"), self.shared("frameTable"));
        let mut names = Vec::new();
        let mut at = Some(stack);
        while let Some(place) = at {
            let frame = index(&stacks["frame"][place]);
            let function = index(&frames["func"][frame]);
            let name = self.text(&self.shared("funcTable")["name"][function]);
            let line = frames["line"][frame].as_u64();
            names.push(line.map_or(name.to_owned(), |line| format!("{name}:{line}")));
            at = stacks["prefix"][place].as_u64().map(|it| it as usize);
        }
        names
    }

    /// The sums of the weights, times in nanoseconds. `scale` is that of the weights.
    fn sums(&self, scale: f64) -> Sums {
        let mut sums = Sums::new();
        for (place, thread) in self.threads().iter().enumerate() {
            let samples = &thread["samples"];
            for row in 0..rows(samples) {
                let cause = self.cause(index(&samples["stack"][row]));
                let weight = samples["weight"][row].as_f64().unwrap() * scale;
                *sums.entry((place, cause)).or_default() += weight.round() as u64;
            }
        }
        sums
    }

    /// The markers of a thread with this name, as their fields without stacks.
    fn markers(&self, thread: &Value, name: &str) -> Vec<Value> {
        let markers = &thread["markers"];
        let places = (0..rows(markers)).filter(|it| self.text(&markers["name"][*it]) == name);
        let fields = places.map(|place| {
            let mut fields = markers["data"][place].clone();
            for (key, column) in [("from", "startTime"), ("to", "endTime")] {
                fields[key] = markers[column][place].clone();
            }
            let cause = fields.as_object_mut().unwrap().remove("cause");
            if let Some(cause) = cause {
                fields["at"] = self.stack(index(&cause["stack"])).into();
            }
            fields
        });
        fields.collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn sums_by_thread_and_cause_are_exact(all in prop::collection::vec(
        (0..3u32, 0..6usize, 0..1u64 << 40, prop_oneof![Just(0), 0..1u64 << 36],
         0..1u64 << 40, 0..4u32), 0..60)) {
        let profile = waits(&all);
        prop_assert_eq!(read(&profile).sums(1e6), sums(&profile));
    }
}

#[test]
fn long_wait_is_cut_into_parts_of_its_weight() {
    let second = 1_000_000_000;
    let profile = waits(&[(1, 0, 0, 10 * second, 10 * second, 3)]);
    let read = read(&profile);
    assert_eq!(read.sums(1e6), sums(&profile));
    let samples = &read.threads()[2]["samples"];
    // As many parts as samples, and a thousand; and the sample of the CPU.
    let len = rows(samples);
    assert!((1000..1010).contains(&len), "{len}");
    let weights = list(&samples["weight"])
        .iter()
        .map(|it| it.as_f64().unwrap());
    let weights: Vec<f64> = weights.collect();
    assert!(
        weights[1..999].iter().all(|it| (it - 9.98).abs() < 0.01),
        "{weights:?}"
    );
    // However long waits are said to last, there are few parts.
    let profile = waits(&[(1, 0, 0, 1 << 52, 5, 3), (1, 1, 9, 1 << 52, 5, 3)]);
    let read = self::read(&profile);
    assert_eq!(read.sums(1e6), sums(&profile));
    assert!(rows(&read.threads()[2]["samples"]) < 1100);
}

#[test]
fn stacks_have_functions_lines_libraries_and_kinds() {
    let read = read(&whole(9));
    let main = read.named("main");
    let stacks = list(&main["samples"]["stack"]);
    let found: BTreeSet<_> = stacks
        .iter()
        .map(|it| (read.cause(index(it)), read.stack(index(it))))
        .collect();
    let expect = |cause: &str, names: &[&str]| {
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        assert!(found.contains(&(cause.to_owned(), names)), "{found:?}");
    };
    expect("running", &["a.A.z:7", "a.A.x"]);
    expect("monitor", &["a.A.x"]);
    let gc = index(&read.named("gc")["samples"]["stack"][0]);
    let frame = index(&read.shared("stackTable")["frame"][gc]);
    let function = index(&read.shared("frameTable")["func"][frame]);
    // The library is not in the name, because viewers add it.
    assert_eq!(read.stack(gc), ["y"]);
    let resource = index(&read.shared("funcTable")["resource"][function]);
    let lib = index(&read.shared("resourceTable")["lib"][resource]);
    assert_eq!(read.json["libs"][lib]["name"], "vm.so");
    let kind = index(&read.shared("frameTable")["subcategory"][frame]);
    assert_eq!(
        read.json["meta"]["categories"][1]["subcategories"][kind],
        "VM"
    );
    let sources = list(&read.shared("sources")["filename"]);
    let sources: Vec<&str> = sources.iter().map(|it| read.text(it)).collect();
    assert_eq!(sources, ["a.A"]);
    assert_eq!(list(&main["samples"]["threadCPUDelta"]), [10, 0, 20]);
    // Those of the other thread are its own.
    let allocated = list(&main["nativeAllocations"]["weight"]);
    assert_eq!(allocated, [100; 5]);
}

/// Adds a wait for a monitor, and samples of one for a lock.
fn add_waits(builder: &mut Builder, [class, endpoint, lock]: [u32; 3]) {
    let ms = 1_000_000;
    let context = Some(builder.context(Context {
        trace_id: 0xab,
        endpoint: Some(endpoint),
        ..Context::default()
    }));
    builder.monitor_waits.push(dwell_profile::MonitorWait {
        time_ns: 5 * ms,
        duration_ns: ms,
        weight_ns: 2 * ms,
        thread: 0,
        node: 1,
        class,
        context,
        owner: Some(1),
    });
    builder.look(Look {
        time_ns: 7 * ms,
        duration_ns: ms,
        node: 1,
        cause: lock,
        weight_ns: ms,
        count: 1,
        detail: Some(class),
        owner: Some(1),
        owner_node: Some(2),
        ..Look::default()
    });
}

/// Adds a compilation, throttling and a gap.
fn add_machine(builder: &mut Builder, method: u32) {
    let ms = 1_000_000;
    builder.compilations.push(Compilation {
        time_ns: ms,
        duration_ns: ms,
        method,
        level: 4,
    });
    builder.compilers.push(Compilers {
        time_ns: 2 * ms,
        duration_ns: 10 * ms,
        compilations: 7,
        compiling_ns: 3 * ms,
        wasted: 1,
    });
    builder.throttled.push(Throttled {
        time_ns: 0,
        duration_ns: 10 * ms,
        periods: 3,
        throttled: 1,
        throttled_ns: 4 * ms,
    });
    builder.gaps.push(Gap {
        time_ns: 30 * ms,
        duration_ns: ms,
        cause: "full".to_owned(),
        samples: 3,
        weight_ns: 2 * ms,
    });
}

/// A profile with an event of each kind.
fn eventful() -> Profile {
    let mut builder = text_art::builder(
        "thread: main slow
         a.A.x   b.B.y",
    );
    builder.info.duration_ns = 50_000_000;
    let ms = 1_000_000;
    let names = ["G1 pause", "running", "GET /x", "a.A.x"];
    let [operation, state, endpoint, method] = names.map(|it| builder.name(it));
    builder.safepoints.push(Safepoint {
        time_ns: 2 * ms,
        id: 4,
        operation,
        reaching_ns: ms,
        operation_ns: 3 * ms,
        threads: 9,
        running: 2,
        count: 1,
        is_known: true,
    });
    builder.late.push(Late {
        time_ns: 2 * ms,
        duration_ns: ms,
        safepoint: 4,
        operation,
        thread: 1,
        node: Some(2),
        state,
        held_ns: ms / 2,
        is_last: true,
    });
    builder
        .stretches
        .add::<told::GcPause>(Stretch::new(3 * ms, 2 * ms));
    builder.requests.push(Request {
        time_ns: 0,
        duration_ns: 20 * ms,
        trace_id: 0xab,
        local_root_span_id: 0xcd,
        endpoint: Some(endpoint),
        count: 2,
    });
    builder.spans.push(Span {
        time_ns: ms,
        duration_ns: ms,
        local_root_span_id: 0xcd,
        span_id: 0xef,
    });
    let names = ["a.Lock", "GET /x", "lock"].map(|it| builder.name(it));
    add_waits(&mut builder, names);
    add_machine(&mut builder, method);
    builder.finish()
}

const TRACE: &str = "000000000000000000000000000000ab";

#[track_caller]
fn expect(read: &ReadBack, thread: &str, name: &str, fields: Value) {
    assert_eq!(read.markers(read.named(thread), name), [fields]);
}

#[test]
fn events_of_the_process_are_markers_with_their_fields() {
    let read = read(&eventful());
    expect(
        &read,
        "process",
        "Safepoint",
        json!({
            "type": "Safepoint", "operation": "G1 pause", "reaching": 1, "operationTime": 3,
            "threads": 9, "running": 2, "count": 1, "late": "slow", "from": 2, "to": 6,
        }),
    );
    expect(
        &read,
        "process",
        "GC pause",
        json!({ "type": "GC pause", "from": 3, "to": 5 }),
    );
    expect(
        &read,
        "process",
        "Request",
        json!({
            "type": "Request", "endpoint": "GET /x", "traceId": TRACE, "count": 2, "from": 0,
            "to": 20,
        }),
    );
    expect(
        &read,
        "process",
        "Span",
        json!({
            "type": "Span", "endpoint": "GET /x", "traceId": TRACE,
            "spanId": "00000000000000ef", "from": 1, "to": 2,
        }),
    );
    expect(
        &read,
        "process",
        "Compilation",
        json!({ "type": "Compilation", "method": "a.A.x", "level": 4, "from": 1, "to": 2 }),
    );
    expect(
        &read,
        "process",
        "Compilers",
        json!({
            "type": "Compilers", "compilations": 7, "compiling": 3, "wasted": 1, "from": 2,
            "to": 12,
        }),
    );
    expect(
        &read,
        "process",
        "Throttled",
        json!({
            "type": "Throttled", "periods": 3, "throttled": 1, "held": 4, "from": 0,
            "to": 10,
        }),
    );
    expect(
        &read,
        "process",
        "Gap",
        json!({ "type": "Gap", "why": "full", "samples": 3, "weight": 2, "from": 30, "to": 31 }),
    );
    let paused = json!([{ "startTime": 30, "endTime": 31, "reason": "profiler-paused" }]);
    assert_eq!(read.named("main")["pausedRanges"], paused);
}

#[test]
fn events_of_threads_are_markers_with_their_stacks() {
    let read = read(&eventful());
    expect(
        &read,
        "slow",
        "Late for safepoint",
        json!({
            "type": "Late", "operation": "G1 pause", "held": 0.5, "state": "running",
            "last": "yes", "at": ["b.B.y"], "from": 2, "to": 3,
        }),
    );
    expect(
        &read,
        "main",
        "Monitor wait",
        json!({
            "type": "Monitor", "class": "a.Lock", "owner": "slow", "weight": 2,
            "endpoint": "GET /x", "traceId": TRACE, "at": ["a.A.x"], "from": 5, "to": 6,
        }),
    );
    expect(
        &read,
        "main",
        "Lock owner",
        json!({
            "type": "Owner", "why": "lock", "detail": "a.Lock", "owner": "slow",
            "ownerAt": "b.B.y", "weight": 1, "at": ["a.A.x"], "from": 7, "to": 8,
        }),
    );
}

#[test]
fn several_safepoints_in_one_event_are_an_instant() {
    let mut builder = text_art::builder("a.A.x");
    let operation = builder.name("");
    builder.safepoints.push(Safepoint {
        time_ns: 5,
        id: 9,
        operation,
        reaching_ns: 1000,
        operation_ns: 3000,
        threads: 1,
        running: 0,
        count: 7,
        is_known: false,
    });
    let read = read(&builder.finish());
    let markers = &read.threads()[0]["markers"];
    assert_eq!(
        (&markers["phase"][0], &markers["data"][0]["count"]),
        (&json!(0), &json!(7))
    );
    assert_eq!(markers["startTime"][0], markers["endTime"][0]);
}

#[test]
fn virtual_threads_of_a_group_are_one_thread() {
    let mut builder = Builder::default();
    for (number, name) in ["job-1", "job-2", "", "job-3"].into_iter().enumerate() {
        let thread = builder.thread(name, 0, number as i64 + 1, number != 3);
        builder.sample(sample(9 - number as u64, thread, 0, 1 << number));
    }
    // Threads without data are left out.
    builder.thread("none", 3, 3, false);
    let read = read(&builder.finish());
    let names: Vec<&Value> = read.threads().iter().map(|it| &it["name"]).collect();
    assert_eq!(
        names,
        [
            "process",
            "job-* (virtual threads)",
            "virtual threads",
            "job-3"
        ]
    );
    let sums: Vec<u64> = read.sums(1e6).into_values().collect();
    assert_eq!(sums, [3, 4, 8]);
}

#[test]
fn threads_have_their_ids_unless_these_are_used_again() {
    let mut builder = Builder::default();
    for os_tid in [7, 7, 0, -1] {
        let thread = builder.thread("t", os_tid, 1, false);
        builder.sample(sample(0, thread, 0, 1));
    }
    builder.info.pid = 7;
    let read = read(&builder.finish());
    let tids: Vec<usize> = read.threads().iter().map(|it| index(&it["tid"])).collect();
    assert_eq!(tids[1], 7);
    assert!(
        tids.iter().filter(|tid| **tid >= 2_000_000_000).count() == 4,
        "{tids:?}"
    );
    assert_eq!(read.threads()[1]["pid"], "7");
}

#[test]
fn many_platform_threads_are_grouped() {
    let mut builder = Builder::default();
    for number in 0..1001 {
        let thread = builder.thread(&format!("pool-{number}"), number + 1, 1, false);
        builder.sample(sample(0, thread, 0, 1));
    }
    let read = read(&builder.finish());
    assert_eq!(read.threads().len(), 2);
    assert_eq!(read.sums(1e6).into_values().sum::<u64>(), 1001);
}

#[test]
fn samples_that_are_not_times_are_counted() {
    let mut builder = text_art::builder("a.A.x a.A.x");
    builder.unit = Unit::Samples;
    builder.info.measured = Measured::Event("page-faults".to_owned());
    let read = read(&builder.finish());
    let samples = &read.named("main")["samples"];
    assert_eq!(samples["weightType"], "samples");
    assert!(samples["threadCPUDelta"].is_null());
    assert_eq!(read.sums(1.0).into_values().sum::<u64>(), 2);
}

#[test]
fn firefox_names_have_no_control_characters() {
    let profile = hostile();
    let read = read(&profile);
    assert_eq!(read.threads()[1]["name"], "t\u{fffd}[31m\u{fffd}");
    let stack = index(&read.threads()[1]["samples"]["stack"][0]);
    assert_eq!(read.stack(stack), ["a\u{fffd}b.c\u{fffd}d"]);
}

#[test]
fn packed_file_is_the_plain_one_and_begins_with_meta() {
    let profile = whole(9);
    let plain = written(&profile, false);
    let mut unpacked = Vec::new();
    let packed = written(&profile, true);
    GzDecoder::new(&packed[..])
        .read_to_end(&mut unpacked)
        .unwrap();
    assert!(plain == unpacked && packed.len() < plain.len());
    assert!(
        plain.starts_with(br#"{"meta":{"#),
        "Perfetto would not recognise it"
    );
}

#[test]
fn times_are_since_the_first_sample() {
    let mut builder = Builder::default();
    builder.thread("t", 1, 1, false);
    builder.sample(sample(5_000_000, 0, 0, 1));
    builder.info.start_ns = 9_000_000;
    builder.info.duration_ns = 2_000_000;
    let read = read(&builder.finish());
    assert_eq!(read.json["meta"]["startTime"], 5.0);
    assert_eq!(read.json["meta"]["profilingEndTime"], 6.0);
    assert_eq!(read.threads()[1]["samples"]["time"], json!([0]));
}

#[test]
fn times_are_since_the_first_marker_if_it_is_earlier() {
    let mut builder = Builder::default();
    builder.thread("t", 1, 1, false);
    builder.sample(sample(5_000_000, 0, 0, 1));
    builder.info.start_ns = 4_000_000;
    builder.compilers.push(Compilers {
        time_ns: 3_000_000,
        duration_ns: 1_000_000,
        compilations: 1,
        compiling_ns: 1,
        wasted: 0,
    });
    let read = read(&builder.finish());
    assert_eq!(read.json["meta"]["startTime"], 3.0);
    assert_eq!(read.json["meta"]["profilingStartTime"], 1.0);
    assert_eq!(read.threads()[0]["markers"]["startTime"], json!([0]));
    assert_eq!(read.threads()[1]["samples"]["time"], json!([2]));
}

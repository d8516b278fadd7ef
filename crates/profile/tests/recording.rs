//! Recordings of this project's writer, read back as profiles, with the data that a profile keeps.

use dwell_jfr::reader::{self, Recording, SampleKind};
use dwell_jfr::writer::{
    AllocationSample, ChunkClock, ChunkWriter, Context, Event, FrameRef, LiveObject, MethodInfo,
    MonitorEnter, Sample, ThreadInfo, WallSample,
};
use dwell_jfr::{FrameKind as JfrKind, ThreadState};
use dwell_profile::told::GcPause;
use dwell_profile::{CpuLimit, EVENTS, FrameKind, GroupBy, Profile, Stretch, Unit, WallFilter};

const START_NS: u64 = 1_700_000_000_000_000_000;

fn writer() -> ChunkWriter {
    ChunkWriter::new(ChunkClock {
        epoch_ns: START_NS,
        start_ticks: 0,
        ticks_per_second: 1_000_000_000,
    })
}

fn read(mut chunk: ChunkWriter) -> Recording {
    let mut file = chunk.flush(30_000_000_000);
    let header = chunk.header();
    file[..header.len()].copy_from_slice(&header);
    // Only the events that a profile names as its sources. Another event that it needs would be
    // missing here.
    let options = reader::Options {
        events: reader::EventFilter::Only(EVENTS),
        ..reader::Options::default()
    };
    reader::parse_with(&file, &options).unwrap()
}

fn thread(name: &str, tid: i64) -> ThreadInfo<'_> {
    ThreadInfo {
        os_name: name,
        os_tid: tid,
        java_name: (tid < 100).then_some(name),
        java_tid: if tid < 100 { tid } else { 0 },
        group: None,
        is_virtual: false,
    }
}

#[test]
fn last_check_of_live_objects_counts() {
    let mut chunk = writer();
    let main = chunk.thread(1, &thread("main", 1));
    let frame = FrameRef {
        method: chunk.method(1, &method("a/A", "make")),
        line: 3,
        bci: 1,
        kind: JfrKind::C2,
    };
    let stack = chunk.stack(&[frame], false);
    let context = Context {
        local_root_span_id: 7,
        endpoint: "GET /",
        ..Context::default()
    };
    let class = chunk.object_class("[B");
    let second = 1_000_000_000;
    for (snapshot, ticks, collections) in [(1, 1, 0), (2, 1, 4), (2, 29, 0)] {
        chunk.live_object(&LiveObject {
            allocated: AllocationSample {
                ticks: ticks * second,
                thread: main,
                stack,
                class,
                weight_bytes: 1000,
                size_bytes: 100,
                context: Some(&context),
                ..AllocationSample::default()
            },
            age_ns: (30 - ticks) * second,
            collections,
            snapshot,
        });
        chunk.event(&Event::LiveObjects {
            ticks: 15 * snapshot * second,
            snapshot,
            interval_bytes: 4096,
            objects: snapshot,
            one_of: 2,
            samples: 40,
            lost: 3,
            followed_ns: 0,
        });
    }
    let profile = Profile::from_recording(read(chunk));
    assert_eq!(profile.live().len(), 2);
    let object = profile.live()[0];
    assert_eq!((object.age_ns, object.collections), (29 * second, 4));
    assert_eq!(object.allocated.objects(), 10.0);
    let context = object.allocated.context.expect("it has one");
    assert_eq!(profile.contexts()[context as usize].local_root_span_id, 7);
    let sampling = profile.live_sampling().unwrap();
    let told = (
        sampling.interval_bytes,
        sampling.one_of,
        sampling.samples,
        sampling.lost,
    );
    assert_eq!(told, (4096, 2, 40, 3));
    let alive = profile.alive();
    assert_eq!(
        (alive.bytes.sum, alive.young.sum, alive.parts[0]),
        (1000, 1000, 1000)
    );
    assert_eq!(profile.alive_stacks()[0].frames, ["byte[]", "a.A.make"]);
    assert!(!profile.has_allocations());
}

#[test]
fn allocations_are_summed_by_class_thread_and_endpoint() {
    let mut chunk = writer();
    let main = chunk.thread(1, &thread("main", 1));
    let frame = FrameRef {
        method: chunk.method(1, &method("a/A", "make")),
        line: 3,
        bci: 1,
        kind: JfrKind::C2,
    };
    let stack = chunk.stack(&[frame], false);
    let context = Context {
        span_id: 7,
        local_root_span_id: 7,
        endpoint: "GET /",
        ..Context::default()
    };
    for (class, weight_bytes, size_bytes, context) in [
        ("[B", 1000, 100, Some(&context)),
        ("[B", 500, 500, None),
        ("java/lang/Long", 24_000, 24, None),
    ] {
        let class = chunk.object_class(class);
        chunk.allocation_sample(&AllocationSample {
            ticks: 5,
            thread: main,
            stack,
            class,
            weight_bytes,
            size_bytes,
            context,
            ..AllocationSample::default()
        });
    }
    let sums = |ticks, samples| Event::Allocations {
        ticks,
        interval_bytes: 24_000,
        asked_bytes: 12_000,
        rate: 0,
        samples,
        weight_bytes: 25_500,
        lost: 2,
        lost_bytes: 48_000,
        sampled_ns: 0,
    };
    chunk.event(&sums(1, 1));
    chunk.event(&sums(9, 3));
    let profile = Profile::from_recording(read(chunk));
    let rows = profile.allocated_classes();
    let rows: Vec<_> = (rows.iter())
        .map(|row| (row.name.as_str(), row.bytes.sum, row.objects))
        .collect();
    assert_eq!(
        rows,
        [("java.lang.Long", 24_000, 1000.0), ("byte[]", 1500, 11.0)]
    );
    let methods = profile.allocating_methods();
    assert_eq!((methods.len(), methods[0].name.as_str()), (1, "a.A.make"));
    assert_eq!(methods[0].own.sum, 25_500);
    let first = profile.allocations()[0];
    assert_eq!(profile.thread_name(first.thread), "main");
    let context = &profile.contexts()[first.context.unwrap() as usize];
    assert_eq!(profile.names().text(context.endpoint.unwrap()), "GET /");
    let leaf = profile.method_of(profile.tree().key(first.node)).unwrap();
    assert_eq!(profile.method_name(leaf.0), "byte[]", "the innermost frame");
    let sampling = profile.allocation_sampling().unwrap();
    let told = (sampling.lost, sampling.lost_bytes, sampling.has_grown());
    assert_eq!(told, (2, 48_000, true));
    assert_eq!(profile.total().sum, 0, "it is no time");
}

const SYNC: &str = "java.util.concurrent.locks.ReentrantLock$NonfairSync";

/// Two waits for a monitor by events, and wall-clock samples of waits for it and for others.
fn recording_of_locks() -> ChunkWriter {
    let mut chunk = writer();
    let [main, owner] = [("main", 1), ("owner-7", 2)].map(|(name, id)| {
        let key = id as u64;
        chunk.thread(key, &thread(name, id))
    });
    let frame = FrameRef {
        method: chunk.method(1, &method("a/A", "book")),
        line: 3,
        bci: 1,
        kind: JfrKind::C2,
    };
    let stack = chunk.stack(&[frame], false);
    let class = chunk.object_class("a/Ledger");
    for (duration_ticks, weight_ns) in [(4_000, 4_000), (250, 1_000)] {
        chunk.monitor_enter(&MonitorEnter {
            ticks: 5,
            duration_ticks,
            thread: main,
            stack,
            class,
            owner: Some(owner),
            weight_ns,
            ..MonitorEnter::default()
        });
    }
    for (cause, detail, weight_ns) in [
        ("lock", SYNC, 700),
        ("monitor", "a.Ledger@7f00", 10_000),
        ("park", "a.Queue", 10_000),
    ] {
        chunk.wall_sample(&WallSample {
            ticks: 5,
            thread: main,
            stack,
            cause,
            detail: Some(detail),
            weight_ns,
            count: 1,
            owner: Some(owner),
            owner_stack: stack,
            ..WallSample::default()
        });
    }
    chunk.event(&Event::MonitorWaits {
        ticks: 9,
        interval_ns: 1_000,
        asked_ns: 500,
        waits: 6,
        blocked_ns: 5_100,
        samples: 2,
        weight_ns: 5_000,
        lost: 1,
        lost_ns: 1_000,
        untold: 3,
        told_ns: 9,
    });
    chunk
}

/// Monitors by events, other locks by looks, and each wait once.
#[test]
fn lock_waits_combine_events_and_uncovered_looks() {
    let profile = Profile::from_recording(read(recording_of_locks()));
    let rows = profile.lock_classes();
    let told: Vec<_> = (rows.iter())
        .map(|row| {
            (
                row.name.as_str(),
                row.blocked.sum,
                row.waits,
                row.longest_ns,
            )
        })
        .collect();
    assert_eq!(told, [("a.Ledger", 5_000, 5.0, 4_000), (SYNC, 700, 0.0, 0)]);
    assert_eq!(rows[0].owners, [("owner-*".to_owned(), 5_000)]);
    assert_eq!(rows[0].waiters, [("a.A.book".to_owned(), 5_000)]);
    assert_eq!(rows[0].owners_at[0].0, "a.A.book");
    assert_eq!((rows[0].is_looks, rows[1].is_looks), (false, true));
    // One wait in four of 250 ns is chosen: 1000 * (1000 - 250).
    let waits = profile.monitor_waits().iter();
    let squares = waits.map(|wait| wait.weight().squares);
    assert_eq!(squares.collect::<Vec<_>>(), [0.0, 750_000.0]);
    let methods = profile.waiting_methods();
    let (name, all) = (methods[0].name.as_str(), methods[0].total.sum);
    assert_eq!((name, all), ("a.A.book", 5_700));
    let filter = WallFilter {
        thread: Some("owner-*".into()),
        ..WallFilter::default()
    };
    assert!(profile.locked(&filter).is_empty());
    assert_eq!(profile.locked(&WallFilter::default()).len(), 3);
    let sums = profile.monitor_sums().unwrap();
    assert_eq!((sums.waits, sums.blocked_ns, sums.untold), (6, 5_100, 3));
    assert!(sums.has_grown());
}

#[test]
fn native_names_are_made_readable() {
    let mut chunk = writer();
    let main = chunk.thread(1, &thread("odd name", 107));
    let mut frames = Vec::new();
    let names = ["0x4a26", "0x4a0e", "_ZN12WorkerThread3runEv"];
    for (key, name) in names.into_iter().enumerate() {
        let info = MethodInfo {
            descriptor: "",
            ..method("libjvm.so", name)
        };
        let method = chunk.method(key as u64, &info);
        frames.push(FrameRef {
            method,
            line: -1,
            bci: -1,
            kind: JfrKind::Vm,
        });
    }
    // A Java method may be called anything.
    let method = chunk.method(9, &method("a/A", "_ZN3foo3barEv"));
    frames.push(FrameRef {
        method,
        line: 1,
        bci: 1,
        kind: JfrKind::C2,
    });
    let stack = chunk.stack(&frames, false);
    chunk.execution_sample(&Sample {
        thread: main,
        stack,
        weight_ns: 1,
        ..Sample::default()
    });
    let profile = Profile::from_recording(read(chunk));
    let unknown = "libjvm.so.[no symbol]";
    let run = "libjvm.so.WorkerThread::run";
    assert_eq!(stacks(&profile), [[unknown, run, "a.A._ZN3foo3barEv"]]);
    // A stack that shows the purpose of the thread.
    assert_eq!(profile.sample_roles(), [dwell_profile::Role::Gc]);
    let descriptors: Vec<&str> = profile
        .methods()
        .iter()
        .map(|method| profile.names().text(method.descriptor))
        .collect();
    assert_eq!(descriptors, ["0x4a26", "0x4a0e", "", "()V"]);
}

fn method<'a>(class: &'a str, name: &'a str) -> MethodInfo<'a> {
    MethodInfo {
        class,
        name,
        descriptor: "()V",
        modifiers: 1,
        hidden: false,
        origin: None,
    }
}

fn full() -> ChunkWriter {
    let mut chunk = writer();
    let main = chunk.thread(1, &thread("main", 7));
    let gc = chunk.thread(2, &thread("GC Thread#0", 107));
    let run = chunk.method(1, &method("com/acme/Work", "run"));
    let put = chunk.method(2, &method("java/util/HashMap", "put"));
    let mark = chunk.method(3, &method("libjvm.so", "mark"));
    let frame = |method, line, kind| FrameRef {
        method,
        line,
        bci: 1,
        kind,
    };
    let work = chunk.stack(
        &[
            frame(put, 570, JfrKind::Inlined),
            frame(run, 12, JfrKind::C2),
        ],
        false,
    );
    let torn = chunk.stack(&[frame(run, 13, JfrKind::Interpreted)], true);
    let marking = chunk.stack(&[frame(mark, -1, JfrKind::Vm)], false);
    let sample = |ticks, thread, stack, weight_ns, failure| Sample {
        ticks,
        thread,
        stack,
        weight_ns,
        failure,
        state: ThreadState::Runnable,
        ..Sample::default()
    };
    chunk.execution_sample(&sample(5, main, work, 10_000_000, None));
    chunk.execution_sample(&sample(6, main, torn, 20_000_000, None));
    chunk.execution_sample(&sample(7, main, torn, 30_000_000, Some("no_unwind_row")));
    chunk.execution_sample(&sample(8, gc, marking, 40_000_000, None));
    chunk
}

fn stacks(profile: &Profile) -> Vec<Vec<String>> {
    let name = |key: u32| profile.method_name(profile.frames()[key as usize].method);
    let stack = |node| profile.tree().stack(node).map(name).collect();
    profile
        .samples()
        .iter()
        .map(|sample| stack(sample.node))
        .collect()
}

#[test]
fn keeps_samples_with_their_weights_threads_and_stacks() {
    let profile = Profile::from_recording(read(full()));
    assert_eq!(
        (profile.unit(), profile.total().sum),
        (Unit::Nanoseconds, 100_000_000)
    );
    assert_eq!(
        stacks(&profile),
        [
            vec!["java.util.HashMap.put", "com.acme.Work.run"],
            vec!["com.acme.Work.run", "[truncated]"],
            vec!["com.acme.Work.run", "[no_unwind_row]"],
            vec!["libjvm.so.mark"],
        ]
    );
    let times: Vec<u64> = profile
        .samples()
        .iter()
        .map(|s| s.time_ns - START_NS)
        .collect();
    assert_eq!(times, [5, 6, 7, 8]);
    let threads: Vec<&str> = profile
        .samples()
        .iter()
        .map(|s| profile.thread_name(s.thread))
        .collect();
    assert_eq!(threads, ["main", "main", "main", "GC Thread#0"]);
    let leaf = profile.leaf(profile.samples()[0].node).unwrap();
    assert_eq!((leaf.kind, leaf.line), (FrameKind::Inlined, 570));
    assert_eq!(profile.leaf(profile.samples()[3].node).unwrap().line, 0);
}

#[test]
fn failed_walk_is_kept_with_its_reason() {
    let profile = Profile::from_recording(read(full()));
    let failures = profile.failures();
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].cause, "no_unwind_row");
    assert_eq!(failures[0].weight.sum, 30_000_000);
    let failed = profile.top(GroupBy::Kind, |_| true);
    let row = failed.iter().find(|row| row.name == "failed").unwrap();
    assert_eq!(row.total.sum, 30_000_000);
}

#[test]
fn recording_info_is_read() {
    let mut chunk = full();
    chunk.event(&Event::Recording {
        ticks: 1,
        version: "0.1.0",
        pid: 4711,
        mode: "cpu",
        engine: "perf",
        engine_reason: "allowed",
        cpu_interval_ns: 10_000_000,
        wall_interval_ns: 0,
        options: "start,cpu=10ms,reply=/tmp/x",
    });
    for (samples, cause) in [(3, "ring full"), (9, "too late"), (4, "ring full")] {
        chunk.event(&Event::Lost {
            ticks: 2,
            cause,
            samples,
            weight_ns: samples * 100,
        });
    }
    chunk.event(&Event::Gap {
        ticks: 50,
        duration_ticks: 1_000,
        cause: "stopped",
        lost_samples: 2,
        lost_weight_ns: 20,
    });
    for user in [5, 70] {
        let (process_user_ns, process_system_ns) = (user, 30);
        chunk.event(&Event::CpuLoad {
            ticks: user,
            process_user_ns,
            process_system_ns,
        });
    }
    let profile = Profile::from_recording(read(chunk));
    let info = profile.info();
    assert_eq!(
        (info.pid, info.mode.as_str(), info.engine.as_str()),
        (4711, "cpu", "perf")
    );
    assert_eq!(info.options, "start,cpu=10ms");
    assert_eq!((info.interval_ns, info.start_ns), (10_000_000, START_NS));
    assert_eq!(info.duration_ns, 30_000_000_000);
    let losses: Vec<_> = profile
        .losses()
        .iter()
        .map(|l| (l.cause.as_str(), l.samples, l.weight_ns))
        .collect();
    assert_eq!(losses, [("too late", 9, 900), ("ring full", 7, 700)]);
    let gap = &profile.gaps()[0];
    assert_eq!(
        (gap.time_ns, gap.duration_ns, gap.samples),
        (START_NS + 50, 1_000, 2)
    );
    // Counted since the start: the last one is the sum.
    assert_eq!(profile.cpu_use().unwrap().user_ns, 70);
    assert_eq!(profile.self_cost(), None);
}

/// A chunk with the profiler's counters at these times, all of them later than the samples.
fn counting(bytes_before: u64, times_s: &[u64]) -> ChunkWriter {
    let mut chunk = full();
    for &second in times_s {
        let ticks = second * 1_000_000_000;
        chunk.event(&Event::SelfCost {
            ticks,
            walks: second * 10,
            samples: second * 10,
            dropped: 0,
            bytes: bytes_before + second,
            agent_cpu_ns: ticks / 100,
            handlers: second * 10,
            handler_cpu_ns: 1_000,
            callback_cpu_ns: 0,
            waited_ns: 0,
            collections_waited_ns: 0,
            walk_ns: 10_000,
            copies: second * 10,
            copied_bytes: 64_000,
            handler_p50_ns: 1_000,
            handler_p90_ns: 1_500,
            handler_p99_ns: 2_000,
            handler_max_ns: 3_000,
            memory_bytes: 4_000,
        });
        chunk.event(&Event::CpuLoad {
            ticks,
            process_user_ns: 1_000_000_000 + ticks / 2,
            process_system_ns: 0,
        });
    }
    chunk
}

#[test]
fn a_part_of_a_recording_is_compared_with_the_same_time_only() {
    let part = Profile::from_recording(read(counting(1_000, &[5, 15, 25])));
    let cpu = part.cpu_use().unwrap();
    assert_eq!(cpu.sum_ns(), 10_000_000_000);
    assert_eq!(cpu.since_ns, START_NS + 5_000_000_000);
    // All samples are older than the first counters.
    assert_eq!(part.cpu_share(), Some(0.0));
    let cost = part.self_cost().unwrap();
    assert_eq!((cost.walks, cost.span_ns), (200, 20_000_000_000));
    assert_eq!(part.self_cost_share(), Some(0.01));
    assert_eq!(part.warnings().len(), 1);
    assert!(part.warnings()[0].starts_with("a part of a recording"));
}

#[test]
fn a_part_that_counted_too_little_is_not_compared() {
    for times_s in [&[5][..], &[5, 5], &[5, 19]] {
        let part = Profile::from_recording(read(counting(1_000, times_s)));
        assert_eq!((part.cpu_use(), part.self_cost()), (None, None));
        assert_eq!(part.cpu_share(), None);
        assert_eq!(part.warnings().len(), 1);
    }
}

#[test]
fn a_whole_recording_is_compared_from_its_beginning() {
    // Nothing was written before the first flush.
    let mut chunk = counting(0, &[0]);
    chunk.event(&Event::CpuLoad {
        ticks: 20_000_000_000,
        process_user_ns: 60_000_000,
        process_system_ns: 40_000_000,
    });
    let whole = Profile::from_recording(read(chunk));
    assert_eq!(whole.cpu_use().unwrap().since_ns, 0);
    assert_eq!(whole.cpu_share(), Some(1.0));
    assert_eq!(whole.self_cost().unwrap().span_ns, 30_000_000_000);
    assert_eq!(whole.warnings(), &[] as &[String]);
}

#[test]
fn without_weights_every_sample_counts_one() {
    let mut recording = read(full());
    recording
        .samples
        .iter_mut()
        .for_each(|sample| sample.weight_ns = None);
    recording.samples[3].kind = SampleKind::Native;
    let profile = Profile::from_recording(recording);
    assert_eq!((profile.unit(), profile.total().sum), (Unit::Samples, 3));
    assert_eq!(profile.info().sample_event, "jdk.ExecutionSample");
    assert_eq!(
        profile.info().other_events,
        [("jdk.NativeMethodSample".to_owned(), 1)]
    );
}

#[test]
fn weighted_samples_come_before_others() {
    let mut recording = read(full());
    recording.samples[0].weight_ns = None;
    recording.samples[1].kind = SampleKind::CpuTime;
    let profile = Profile::from_recording(recording);
    assert_eq!(profile.samples().len(), 2);
    assert_eq!(
        profile.info().other_events,
        [
            ("jdk.CPUTimeSample".to_owned(), 1),
            ("jdk.ExecutionSample".to_owned(), 1)
        ]
    );
}

#[test]
fn a_recording_that_contradicts_itself_is_no_panic() {
    let mut recording = read(full());
    for sample in &mut recording.samples {
        sample.stack = 999;
        sample.thread = 999;
        sample.failure = Some(999);
    }
    let profile = Profile::from_recording(recording);
    assert_eq!(profile.total().sum, 100_000_000);
    assert!(
        stacks(&profile)
            .iter()
            .all(|stack| stack == &["[no stack]"])
    );
    let mut recording = read(full());
    recording.methods.clear();
    recording.threads.clear();
    let profile = Profile::from_recording(recording);
    assert_eq!(stacks(&profile)[3], ["[unknown method]"]);
    assert_eq!(
        profile.thread_name(profile.samples()[0].thread),
        "[unknown thread]"
    );
}

#[test]
fn an_empty_recording_is_an_empty_profile() {
    let profile = Profile::from_recording(Recording::default());
    assert_eq!((profile.samples().len(), profile.total().sum), (0, 0));
}

#[test]
fn pauses_and_limits_are_added_up() {
    let mut chunk = writer();
    for (ticks, duration_ticks) in [(5, 10), (40, 20)] {
        chunk.event(&Event::GcPause {
            ticks,
            duration_ticks,
        });
    }
    for (ticks, quota_ns) in [(1, 500_000_000), (2, 1_500_000_000)] {
        chunk.event(&Event::CpuLimit {
            ticks,
            quota_ns,
            processors: 2,
            periods: 10,
            throttled: 3,
            throttled_ns: 7,
        });
    }
    let profile = Profile::from_recording(read(chunk));
    let pause = |time_ns, duration_ns| Stretch::new(START_NS + time_ns, duration_ns);
    let pauses = profile.stretches().of::<GcPause>();
    assert_eq!(pauses, [pause(5, 10), pause(40, 20)]);
    let limit = CpuLimit {
        quota_ns: 1_500_000_000,
        processors: 2,
        periods: 20,
        throttled: 6,
        throttled_ns: 14,
    };
    assert_eq!(profile.cpu_limit(), Some(&limit));
}

#[test]
fn safepoints_have_those_that_were_late() {
    let mut chunk = writer();
    let main = chunk.thread(1, &thread("main", 7));
    let method = chunk.method(1, &method("a.A", "loops"));
    let frame = FrameRef {
        method,
        line: 3,
        bci: 0,
        kind: JfrKind::C2,
    };
    let stack = chunk.stack(&[frame], false);
    let seen = "SafepointTracing";
    for (ticks, count, source) in [(900, 3, "counters"), (500, 1, seen), (1200, 1, "counters")] {
        chunk.event(&Event::Safepoint {
            ticks,
            duration_ticks: 110,
            safepoint_id: ticks,
            operation: "G1CollectFull",
            reaching_ns: 100,
            operation_ns: 10,
            threads: 12,
            running: 2,
            late: 1,
            count,
            source,
        });
    }
    for stack in [stack, Default::default()] {
        chunk.event(&Event::SafepointLate {
            ticks: 500,
            duration_ticks: 100,
            safepoint_id: 500,
            operation: "G1CollectFull",
            thread: main,
            stack,
            state: "java",
            held_ns: 90,
            is_last: 1,
        });
    }
    let profile = Profile::from_recording(read(chunk));
    let [first, second, third] = profile.safepoints() else {
        panic!("{:?}", profile.safepoints())
    };
    assert_eq!((first.time_ns, first.count), (START_NS + 500, 1));
    assert_eq!((first.reaching_ns, first.duration_ns()), (100, 110));
    // The third was seen while it was being reached.
    assert!(first.is_known && !second.is_known && third.is_known);
    assert_eq!(profile.names().text(first.operation), "G1CollectFull");
    let [seen, unseen] = profile.late() else {
        panic!("{:?}", profile.late())
    };
    assert_eq!(
        profile.place(seen.node.unwrap()).as_deref(),
        Some("a.A.loops")
    );
    assert_eq!(unseen.node, None);
    assert_eq!(profile.thread_name(seen.thread), "main");
    assert_eq!(
        (seen.held_ns, seen.safepoint, seen.is_last),
        (90, 500, true)
    );
}

#[test]
fn an_endpoint_that_was_known_late_is_that_of_the_whole_request() {
    let mut chunk = ChunkWriter::new(ChunkClock {
        epoch_ns: 0,
        start_ticks: 0,
        ticks_per_second: 1_000_000_000,
    });
    let with = |span_id, local_root_span_id, endpoint, labels| Context {
        trace_id: 7,
        span_id,
        local_root_span_id,
        endpoint,
        labels,
    };
    let contexts = [
        with(1, 10, "", ""),
        with(2, 10, "GET /known", "a%3Db=c%2C%25d,e=f"),
        with(3, 11, "", ""),
        with(4, 0, "", ""),
    ];
    for context in &contexts {
        chunk.execution_sample(&Sample {
            weight_ns: 1,
            context: Some(context),
            ..Sample::default()
        });
    }
    chunk.execution_sample(&Sample::default());
    for (local_root_span_id, endpoint) in [("a", "GET /first"), ("a", "GET /late"), ("0", "x")] {
        chunk.event(&Event::Endpoint {
            ticks: 5,
            local_root_span_id,
            endpoint,
        });
    }
    let profile = Profile::from_recording(read(chunk));
    let text = |id| profile.names().text(id).to_owned();
    let found: Vec<_> = profile
        .samples()
        .iter()
        .map(|sample| {
            let context = &profile.contexts()[sample.context? as usize];
            let labels = context.labels.iter().map(|(k, v)| (text(*k), text(*v)));
            let labels: Vec<_> = labels.collect();
            Some((context.span_id, context.endpoint.map(text), labels))
        })
        .collect();
    let owned = |text: &str| text.to_owned();
    let labels = vec![(owned("a=b"), owned("c,%d")), (owned("e"), owned("f"))];
    assert_eq!(
        found,
        [
            Some((1, Some(owned("GET /late")), vec![])),
            Some((2, Some(owned("GET /known")), labels)),
            Some((3, None, vec![])),
            Some((4, None, vec![])),
            None,
        ]
    );
}

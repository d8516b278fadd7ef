//! Profiles for tests: one with all kinds of data, and random ones.

use dwell_profile::{
    Allocation, Builder, Context, FrameKind, LiveObject, LiveSampling, Look, MonitorWait, Profile,
    RUNNING, Sample, text_art,
};
use std::collections::BTreeMap;

/// A profile of one sample, whose names have control characters.
pub fn hostile() -> Profile {
    let mut builder = Builder::default();
    let thread = builder.thread("t\u{1b}[31m\n", 1, 1, false);
    let method = builder.method("a\u{202e}b", "c\0d", "()V\r");
    let frame = builder.frame(method, 0, FrameKind::C2);
    let node = builder.stack([frame]);
    builder.sample(sample(5, thread, node, 1));
    builder.finish()
}

/// A profile with a wait for a request, and `objects` of 24 bytes that stand for 100 each.
pub fn whole(objects: u64) -> Profile {
    let mut builder = text_art::builder(
        "thread: main  main  gc
         weight: 10    20    5
         a.A.x   a.A.x   vm.so.y[vm]
         a.A.z:7 a.A.z:7 -",
    );
    let endpoint = Some(builder.name("GET /x"));
    let labels =
        ["tenant", "acme", "cause", "theirs", "dwell.cause", "mine"].map(|text| builder.name(text));
    let context = Some(builder.context(Context {
        trace_id: 0xab,
        span_id: 0xcd,
        endpoint,
        labels: vec![
            (labels[0], labels[1]),
            (labels[2], labels[3]),
            (labels[4], labels[5]),
        ],
        ..Context::default()
    }));
    let (cause, detail) = (builder.cause("monitor"), Some(builder.name("a.Lock")));
    builder.look(Look {
        thread: 0,
        node: 1,
        cause,
        weight_ns: 1000,
        count: 4,
        context,
        detail,
        owner: Some(1),
        ..Look::default()
    });
    let class = builder.name("byte[]");
    let frame = builder.marker("byte[]", FrameKind::Other);
    let node = builder.child(1, frame);
    for number in 0..objects {
        let allocated = Allocation {
            time_ns: number,
            thread: (number % 2) as u32,
            node,
            class,
            bytes: 100,
            size: 24,
            context: None,
        };
        builder.allocations.push(allocated);
        builder.live.push(LiveObject {
            allocated,
            age_ns: 1,
            collections: number % 3,
        });
    }
    builder.live_sampling = Some(LiveSampling::default());
    builder.monitor_waits.push(MonitorWait {
        time_ns: 1,
        duration_ns: 300,
        weight_ns: 900,
        thread: 0,
        node,
        class,
        context: None,
        owner: Some(1),
    });
    builder.finish()
}

/// A profile with such samples, and with waits of half their weight: the depth of the stack (0: no
/// stack), the thread, the weight.
pub fn drawn(samples: &[(u32, u32, u64)]) -> Profile {
    let mut builder = Builder::default();
    let method = builder.method("a.A", "x", "()V");
    let frame = |line| builder.frame(method, line, FrameKind::C1);
    let frames: Vec<_> = (1..5).map(frame).collect();
    for thread in 0..3 {
        builder.thread("worker", thread, thread, false);
    }
    let cause = builder.cause("park");
    for (place, &(depth, thread, weight)) in samples.iter().enumerate() {
        let time_ns = place as u64;
        let node = builder.stack(frames.iter().copied().take(depth as usize));
        builder.sample(sample(time_ns, thread, node, weight));
        builder.look(Look {
            time_ns,
            thread,
            node,
            cause,
            weight_ns: weight / 2,
            count: 1,
            ..Look::default()
        });
    }
    builder.finish()
}

/// Sums of weights by place of the thread in a file and by cause.
pub type Sums = BTreeMap<(usize, String), u64>;

/// The sums of a profile whose threads all have samples.
pub fn sums(profile: &Profile) -> Sums {
    let mut sums = Sums::new();
    let mut add = |thread: u32, cause: &str, weight: u64| {
        let key = (thread as usize + 1, cause.to_owned());
        *sums.entry(key).or_default() += weight;
    };
    for it in profile.samples() {
        add(it.thread, RUNNING, it.weight);
    }
    for it in profile.looks() {
        add(it.thread, profile.names().text(it.cause), it.weight_ns);
    }
    sums
}

pub fn sample(time_ns: u64, thread: u32, node: u32, weight: u64) -> Sample {
    Sample {
        time_ns,
        thread,
        node,
        weight,
        count: 1,
        failure: None,
        context: None,
    }
}

const CAUSES: [&str; 6] = ["monitor", "park", "socket", "idle-pool", "odd", "running"];

/// A profile with these waits, each with its thread, cause, time, duration, weight and depth. Each
/// of three threads ran as well.
pub fn waits(all: &[(u32, usize, u64, u64, u64, u32)]) -> Profile {
    let mut builder = Builder::default();
    let method = builder.method("a.A$B", "x", "()V");
    let frames: Vec<_> = (1..5)
        .map(|line| builder.frame(method, line, FrameKind::C1))
        .collect();
    for thread in 0..3 {
        builder.thread("worker", thread + 5, thread, false);
        let node = builder.stack(frames.iter().copied().take(2));
        builder.sample(sample(1 << 40, thread as u32, node, 7));
    }
    for &(thread, cause, time_ns, duration_ns, weight_ns, depth) in all {
        let node = builder.stack(frames.iter().copied().take(depth as usize));
        let cause = builder.cause(CAUSES[cause]);
        builder.look(Look {
            time_ns,
            duration_ns,
            thread,
            node,
            cause,
            weight_ns,
            count: 3,
            ..Look::default()
        });
    }
    builder.finish()
}

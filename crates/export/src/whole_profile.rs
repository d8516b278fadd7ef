//! Profiles for tests: one with all kinds of data, and random ones.

use dwell_profile::{
    Allocation, Builder, Context, FrameKind, LiveObject, LiveSampling, Look, MonitorWait, Profile,
    Sample, text_art,
};

/// A profile of one sample, whose names have control characters.
pub fn hostile() -> Profile {
    let mut builder = Builder::default();
    let thread = builder.thread("t\u{1b}[31m\n", 1, 1, false);
    let method = builder.method("a\u{202e}b", "c\0d", "()V\r");
    let frame = builder.frame(method, 0, FrameKind::C2);
    let node = builder.stack([frame]);
    builder.sample(Sample {
        time_ns: 5,
        thread,
        node,
        weight: 1,
        count: 1,
        failure: None,
        context: None,
    });
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
        builder.sample(Sample {
            time_ns,
            thread,
            node,
            weight,
            count: 1,
            failure: None,
            context: None,
        });
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

//! A profile that has everything, for tests.

use dwell_profile::{
    Allocation, Context, FrameKind, LiveObject, LiveSampling, Look, MonitorWait, Profile, text_art,
};

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

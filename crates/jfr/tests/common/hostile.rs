//! A recording whose names are the worst that tools may meet.

use super::{START_TICKS, clock};
use dwell_jfr::writer::{
    ChunkWriter, FrameRef, MethodInfo, Origin, Sample, StackId, ThreadId, ThreadInfo,
};

/// Names that tools may choke on: they are taken as classes, methods, descriptors and threads.
fn hostile_names() -> Vec<String> {
    let short =
        "[ [kernel] [[ [L ( ) () a)b( ; / // /a a/ . L <init> <script>alert(1)</script> %s%n";
    let mut names: Vec<_> = short.split(' ').map(str::to_owned).collect();
    names.extend(["", "\0", "\n}\"", "\u{fffd}", "\u{10ffff}"].map(str::to_owned));
    names.push("x".repeat(70_000));
    names
}

/// A sample for every pair of hostile names; their number and the file.
pub fn hostile_file() -> (u64, Vec<u8>) {
    let names = hostile_names();
    let mut writer = ChunkWriter::new(clock());
    let mut key = 0;
    for (class, name) in names
        .iter()
        .flat_map(|class| names.iter().map(move |name| (class, name)))
    {
        key += 1;
        let descriptor = class;
        let info = MethodInfo {
            class,
            name,
            descriptor,
            origin: Some(Origin {
                module: name,
                location: class,
            }),
            ..MethodInfo::default()
        };
        let method = writer.method(key, &info);
        let stack = writer.stack(
            &[FrameRef {
                method,
                ..FrameRef::default()
            }],
            false,
        );
        let info = ThreadInfo {
            os_name: class,
            java_name: Some(name),
            java_tid: 1,
            group: Some(class),
            ..ThreadInfo::default()
        };
        let thread = writer.thread(key, &info);
        let ticks = START_TICKS;
        writer.execution_sample(&Sample {
            ticks,
            thread,
            stack,
            ..Sample::default()
        });
    }
    let (thread, stack) = (ThreadId::NONE, StackId::NONE);
    writer.execution_sample(&Sample {
        thread,
        stack,
        ..Sample::default()
    });
    (key + 1, writer.flush(START_TICKS + 1))
}

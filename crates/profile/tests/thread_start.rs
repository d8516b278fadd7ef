//! Frames of libraries without symbols, in a profile: thread starts, and runs of such frames.

use dwell_jfr::FrameKind as JfrKind;
use dwell_jfr::ThreadState;
use dwell_jfr::reader;
use dwell_jfr::writer::{ChunkClock, ChunkWriter, FrameRef, MethodInfo, Sample, ThreadInfo};
use dwell_profile::Profile;
use std::collections::HashMap;

/// A stack, outermost frame first, as `library.function` or `[failure]`.
#[derive(Clone, Copy, Default)]
struct Stack<'a> {
    frames: &'a [&'a str],
    is_truncated: bool,
    failure: Option<&'static str>,
}

fn whole<'a>(frames: &'a [&'a str]) -> Stack<'a> {
    Stack {
        frames,
        ..Stack::default()
    }
}

/// The stacks of a profile that is made of these, outermost frame first.
fn stacks(recorded: &[Stack<'_>]) -> Vec<Vec<String>> {
    named(&profile(recorded))
}

fn profile(recorded: &[Stack<'_>]) -> Profile {
    let mut chunk = ChunkWriter::new(ChunkClock {
        epoch_ns: 1_700_000_000_000_000_000,
        start_ticks: 0,
        ticks_per_second: 1_000_000_000,
    });
    let thread = chunk.thread(
        1,
        &ThreadInfo {
            os_name: "worker",
            os_tid: 107,
            java_name: None,
            java_tid: 0,
            group: None,
            is_virtual: false,
        },
    );
    let mut methods = HashMap::new();
    for (place, stack) in recorded.iter().enumerate() {
        let frames: Vec<FrameRef> = (stack.frames.iter().rev())
            .map(|frame| {
                let (class, name) = frame.rsplit_once('.').unwrap_or(("", *frame));
                let next = methods.len() as u64 + 1;
                let method = *methods.entry(*frame).or_insert_with(|| {
                    let info = MethodInfo {
                        class,
                        name,
                        descriptor: "",
                        modifiers: 0,
                        hidden: false,
                        origin: None,
                    };
                    chunk.method(next, &info)
                });
                let kind = match frame.starts_with('[') {
                    true => JfrKind::Failed,
                    false => JfrKind::Native,
                };
                FrameRef {
                    method,
                    line: -1,
                    bci: -1,
                    kind,
                }
            })
            .collect();
        let stack_id = chunk.stack(&frames, stack.is_truncated);
        chunk.execution_sample(&Sample {
            ticks: place as u64 + 1,
            thread,
            stack: stack_id,
            weight_ns: 1,
            failure: stack.failure,
            state: ThreadState::Runnable,
            ..Sample::default()
        });
    }
    let mut file = chunk.flush(30_000_000_000);
    let header = chunk.header();
    file[..header.len()].copy_from_slice(&header);
    Profile::from_recording(reader::parse_with(&file, &reader::Options::default()).unwrap())
}

fn named(profile: &Profile) -> Vec<Vec<String>> {
    let name = |key: u32| profile.method_name(profile.frames()[key as usize].method);
    let stack = |node| {
        let mut names: Vec<String> = profile.tree().stack(node).map(name).collect();
        names.reverse();
        names
    };
    let samples = profile.samples().iter();
    samples.map(|sample| stack(sample.node)).collect()
}

#[test]
fn nameless_thread_roots_are_folded_into_one_frame() {
    let made = stacks(&[
        whole(&[
            "libc.so.6.0x10a",
            "libc.so.6.0x8a",
            "libx.so.work",
            "libc.so.6.0x14",
        ]),
        whole(&["libc.so.6.0x10a", "libc.so.6.0x8c", "libx.so.work"]),
        // A stack that ends there, too.
        whole(&["libc.so.6.0x10a", "libc.so.6.0x8a"]),
        whole(&["ld-musl-x86_64.so.1.0x1", "libx.so.work"]),
    ]);
    let start = "libc.so.6.[thread start]";
    assert_eq!(made[0], [start, "libx.so.work", "libc.so.6.[no symbol]"]);
    assert_eq!(made[1], [start, "libx.so.work"]);
    assert_eq!(made[2], [start]);
    assert_eq!(
        made[3],
        ["ld-musl-x86_64.so.1.[thread start]", "libx.so.work"]
    );
}

#[test]
fn start_below_a_named_root_is_named() {
    let made = stacks(&[
        whole(&[
            "libc-2.31.so.clone",
            "libpthread-2.31.so.0x7",
            "libx.so.work",
        ]),
        whole(&["libc.so.6.clone3", "libc.so.6.start_thread", "libx.so.work"]),
    ]);
    let start = "libpthread-2.31.so.[thread start]";
    assert_eq!(made[0], ["libc-2.31.so.clone", start, "libx.so.work"]);
    assert_eq!(
        made[1],
        ["libc.so.6.clone3", "libc.so.6.start_thread", "libx.so.work"]
    );
}

#[test]
fn nameless_frames_elsewhere_are_no_thread_starts() {
    let made = stacks(&[
        whole(&["libx.so.0x1", "libc.so.6.0x8a", "libx.so.work"]),
        whole(&[
            "libc.so.6.clone3",
            "libc.so.6.start_thread",
            "libc.so.6.0x14",
        ]),
    ]);
    let none = "libc.so.6.[no symbol]";
    assert_eq!(made[0], ["libx.so.[no symbol]", none, "libx.so.work"]);
    assert_eq!(made[1][2], none);
}

#[test]
fn stack_without_its_root_has_no_thread_start() {
    let frames = &["libc.so.6.0x10a", "libc.so.6.0x8a", "libx.so.work"][..];
    let failure = Some("no_native_rule");
    let made = stacks(&[
        Stack {
            is_truncated: true,
            ..whole(frames)
        },
        Stack {
            failure,
            ..whole(frames)
        },
        Stack {
            failure,
            ..whole(&["libc.so.6.0x10a", "[gap]", "libx.so.work"])
        },
        whole(frames),
    ]);
    let none = "libc.so.6.[no symbol]";
    assert_eq!(made[0], ["[truncated]", none, "libx.so.work"]);
    assert_eq!(made[1], ["[no_native_rule]", none, "libx.so.work"]);
    // The frames that are missing are further in.
    assert_eq!(
        made[2],
        ["libc.so.6.[thread start]", "[gap]", "libx.so.work"]
    );
    assert_eq!(made[3], ["libc.so.6.[thread start]", "libx.so.work"]);
}

#[test]
fn thread_start_of_a_cxx_library_is_folded() {
    let made = stacks(&[
        whole(&[
            "libc.so.6.0x10a",
            "libc.so.6.0x8a",
            "libstdc++.so.6.0xdc",
            "libx.so.work",
        ]),
        whole(&[
            "libc.so.6.clone3",
            "libc.so.6.start_thread",
            "libstdc++.so.6.0xdc",
            "libx.so.work",
        ]),
        // No start: it is called by other code.
        whole(&["libc.so.6.0x10a", "libx.so.work", "libstdc++.so.6.0xdc"]),
    ]);
    let start = "libc.so.6.[thread start]";
    assert_eq!(made[0], [start, "libx.so.work"]);
    let names = ["libc.so.6.clone3", "libc.so.6.start_thread"];
    assert_eq!(made[1][..2], names);
    assert_eq!(
        made[1][2..],
        ["libstdc++.so.6.[thread start]", "libx.so.work"]
    );
    let none = "libstdc++.so.6.[no symbol]";
    assert_eq!(made[2], [start, "libx.so.work", none]);
}

#[test]
fn start_of_the_first_thread_is_named() {
    let made = stacks(&[
        whole(&[
            "app._start",
            "libc.so.6.__libc_start_main@@GLIBC_2",
            "libc.so.6.0x29",
            "app.main",
        ]),
        whole(&[
            "app._start",
            "libc.so.6.qsort",
            "libc.so.6.0x29",
            "app.less",
        ]),
    ]);
    assert_eq!(made[0][2..], ["libc.so.6.[thread start]", "app.main"]);
    assert_eq!(made[1][2..], ["libc.so.6.[no symbol]", "app.less"]);
}

#[test]
fn run_of_nameless_functions_of_a_library_is_one_frame() {
    let made = stacks(&[
        whole(&[
            "libc.so.6.0x10a",
            "libc.so.6.0x8a",
            "libonnx.so.0x1",
            "libonnx.so.0x2",
            "libonnx.so.0x3",
            "libc.so.6.memcpy",
        ]),
        // The same, up to a function in the middle of the run.
        whole(&[
            "libc.so.6.0x10a",
            "libc.so.6.0x8a",
            "libonnx.so.0x1",
            "libonnx.so.0x2",
        ]),
        // Other frames end a run, and another library begins one.
        whole(&[
            "libonnx.so.0x1",
            "libonnx.so.Run",
            "libonnx.so.0x2",
            "libmlas.so.0x1",
            "libmlas.so.0x2",
        ]),
        // The start of a thread is not the beginning of a run.
        whole(&["libc.so.6.0x10a", "libc.so.6.0x8a", "libc.so.6.0x14"]),
        Stack {
            failure: Some("no_native_rule"),
            ..whole(&["libx.so.0x1", "libonnx.so.0x1", "libonnx.so.0x2"])
        },
    ]);
    let start = "libc.so.6.[thread start]";
    let none = "libonnx.so.[no symbol]";
    assert_eq!(made[0], [start, none, "libc.so.6.memcpy"]);
    assert_eq!(made[1], [start, none]);
    let mlas = "libmlas.so.[no symbol]";
    assert_eq!(made[2], [none, "libonnx.so.Run", none, mlas]);
    assert_eq!(made[3], [start, "libc.so.6.[no symbol]"]);
    assert_eq!(made[4], ["[no_native_rule]", "libx.so.[no symbol]", none]);
}

#[test]
fn innermost_function_of_a_run_keeps_its_address() {
    let profile = profile(&[
        whole(&["libx.so.0x1", "libx.so.0x2", "libx.so.0x3"]),
        whole(&["libx.so.0x1", "libx.so.0x2"]),
    ]);
    let address = |node| {
        let frame = profile.leaf(node).unwrap();
        let method = profile.methods()[frame.method as usize];
        profile.names().text(method.descriptor)
    };
    let samples = profile.samples().iter();
    let addresses: Vec<&str> = samples.map(|sample| address(sample.node)).collect();
    assert_eq!(addresses, ["0x3", "0x2"]);
}

//! Stacks as JSON: one object on one line for each dump.

use super::of_jvm::is_of_jvm;
use super::text::{frame_text, is_shown};
use crate::args::Stacks;
use dwell_attach::Jvm;
use dwell_outside::dump::{How, Kind};
use dwell_outside::names::{Named, shown_class};
use dwell_outside::{Dump, Thread};
use serde_json::{Value, json};
use std::time::{Duration, UNIX_EPOCH};

/// The dump on one line.
pub fn line(jvm: &Jvm, dump: &Dump, args: &Stacks) -> String {
    let at = dump.at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let threads: Vec<Value> = dump.threads.iter().map(|it| thread(it, args)).collect();
    let safepoint = dump.safepoint.as_ref().map(|safepoint| {
        json!({
            "reached": safepoint.is_reached,
            "operation": safepoint.operation,
            "sinceNanos": safepoint.since.map(|since| since.as_nanos() as u64),
            "askedBy": safepoint.asked_by,
            "late": safepoint.late,
        })
    });
    let whole = json!({
        "pid": jvm.pid,
        "version": jvm.version,
        "main": jvm.main,
        "timeMillis": at.as_millis() as u64,
        "tookNanos": dump.took.as_nanos() as u64,
        "processState": dump.process_state.map(String::from),
        "safepointsKnown": dump.safepoints_are_known,
        "safepoint": safepoint,
        "deadlocks": dump.deadlocks,
        "moreVirtual": dump.more_virtual,
        "threads": threads,
    });
    format!("{whole}\n")
}

fn thread(thread: &Thread, args: &Stacks) -> Value {
    let frames = thread.frames.iter().enumerate();
    let frames: Vec<Value> = frames
        .filter(|(_, frame)| is_shown(frame, thread, args))
        .map(|(at, it)| with_locked(frame(it), thread, at))
        .collect();
    json!({
        "kind": match thread.kind {
            Kind::Platform => "platform",
            Kind::Virtual => "virtual",
            Kind::Native => "native",
        },
        "name": thread.name,
        "ofJvm": is_of_jvm(thread),
        "id": thread.java_id,
        "tid": thread.tid,
        "daemon": thread.is_daemon,
        "priority": thread.priority,
        "state": thread.java_state,
        "vmState": thread.vm_state.map(|state| state.name()),
        "cpuNanos": thread.cpu_ns,
        "cause": thread.cause.name(),
        "on": thread.on,
        "waitsFor": thread.wanted.as_ref().map(|wanted| json!({
            "object": format!("{:#x}", wanted.object),
            "class": wanted.class,
            "owner": wanted.owner.as_ref().and_then(|owner| owner.thread),
            "ownerId": wanted.owner.as_ref().and_then(|owner| owner.id),
        })),
        "mounted": thread.mounted.as_ref().map(|(id, name)| json!({ "id": id, "name": name })),
        "frames": frames,
        "failure": thread.failure,
        "how": match thread.how {
            How::InPlace => "waiting",
            How::Sampled => "sampled",
            How::BelowNative => "below-native",
            How::Stopped => "stopped",
            How::NotSampled => "not-sampled",
        },
        "stoodNanos": thread.stood.map(|stood| stood.as_nanos() as u64),
        "blurred": thread.is_blurred,
    })
}

/// A frame with the monitors that it holds.
fn with_locked(mut frame: Value, thread: &Thread, at: usize) -> Value {
    let own = thread.locked.iter().filter(|locked| locked.frame == at);
    let own: Vec<Value> = own
        .map(|locked| {
            json!({
                "object": format!("{:#x}", locked.object),
                "class": locked.class,
                "eliminated": locked.is_eliminated,
            })
        })
        .collect();
    if let (Some(fields), false) = (frame.as_object_mut(), own.is_empty()) {
        fields.insert("locked".to_owned(), Value::Array(own));
    }
    frame
}

fn frame(frame: &Named) -> Value {
    match frame {
        Named::Java { method, line, .. } => json!({
            "class": shown_class(&method.class),
            "method": method.name,
            "descriptor": method.descriptor,
            "source": method.source,
            "line": line,
        }),
        Named::Native {
            library, function, ..
        } => json!({
            "library": library,
            "function": function.as_deref().map(dwell_profile::readable_function),
        }),
        Named::Stub(_) => json!({ "stub": frame_text(frame) }),
        Named::Missing(why) => json!({ "missing": why }),
    }
}

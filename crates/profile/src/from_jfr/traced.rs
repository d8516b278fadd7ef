//! Reads events of other recorders that are no time of threads: exceptions, transfers, old objects,
//! single and summed calls of methods.

use super::waits::TimedWait;
use crate::allocations::readable_class;
use crate::builder::Builder;
use crate::traced::{ThrownSum, Traced, TracedKind};
use crate::tree::NodeId;
use dwell_jfr::reader::Recording;
use std::collections::BTreeMap;

dwell_jfr::told! {
    /// An exception.
    pub(super) struct Thrown = "jdk.JavaExceptionThrow" {
        /// Where.
        stack: Stack "stackTrace";
        /// Its class.
        class: Text "thrownClass";
    }

    /// An error. Where exceptions are recorded, errors are among them.
    pub(super) struct ThrownError = "jdk.JavaErrorThrow" {
        /// Where.
        stack: Stack "stackTrace";
        /// Its class.
        class: Text "thrownClass";
    }

    /// The JVM's counter of exceptions.
    pub(super) struct ThrownCount = "jdk.ExceptionStatistics" {
        /// How many since the JVM started.
        thrown: Count "throwables";
    }

    /// A virtual thread that waited and kept its platform thread.
    pub(super) struct Pinned = "jdk.VirtualThreadPinned" {
        /// How long.
        duration_ns: TickSpan "duration";
        /// Where.
        stack: Stack "stackTrace";
        /// Why, in JDK 24 and later.
        reason: Text "pinnedReason";
    }

    /// An object that was still there at the end of a recording.
    pub(super) struct OldObject = "jdk.OldObjectSample" {
        /// Where it was allocated.
        stack: Stack "stackTrace";
        /// Its class.
        class: ObjectType "object";
        /// Its size, in JDK 19 and later.
        size_bytes: Bytes "objectSize";
        /// Its age.
        age_ns: Nanos "objectAge";
    }

    /// A call of a method.
    pub(super) struct MethodCall = "jdk.MethodTrace" | "profiler.MethodTrace" {
        /// How long it lasted.
        duration_ns: TickSpan "duration";
        /// The method.
        method: Method "method";
    }

    /// All calls of a method by now.
    pub(super) struct MethodCalls = "jdk.MethodTiming" {
        /// The method.
        method: Method "method";
        /// How many.
        calls: Count "invocations";
        /// How long one lasts.
        average_ns: Nanos "average";
        /// How long the longest lasted.
        longest_ns: Nanos "maximum";
    }
}

/// Reads all of them; `node_of` gives the place of a stack of the recording.
pub(super) fn add(
    builder: &mut Builder,
    recording: &Recording,
    mut node_of: impl FnMut(&mut Builder, Option<u32>, Option<&str>) -> NodeId,
) {
    if super::is_ours(recording) {
        return;
    }
    let exceptions = recording.told::<Thrown>().map(|it| (it.stack, it.class));
    let mut thrown: Vec<_> = exceptions.collect();
    if thrown.is_empty() {
        let errors = recording.told::<ThrownError>();
        thrown = errors.map(|it| (it.stack, it.class)).collect();
    }
    for (stack, class) in thrown {
        let node = stack.map(|stack| node_of(builder, Some(stack), None));
        let what = builder.name(&readable_class(&class));
        let traced = Traced::one(TracedKind::Exception, what, node);
        builder.traced.push(traced);
    }
    builder.thrown = thrown_sum(recording);
    for event in recording.told::<Pinned>() {
        let node = event.stack.map(|stack| node_of(builder, Some(stack), None));
        let what = match &*event.reason {
            "" => "pinned",
            reason => reason,
        };
        let what = builder.name(what);
        builder.traced.push(Traced {
            duration_ns: event.duration_ns,
            longest_ns: event.duration_ns,
            ..Traced::one(TracedKind::Pinned, what, node)
        });
    }
    for event in recording.told::<OldObject>() {
        let node = event.stack.map(|stack| node_of(builder, Some(stack), None));
        let what = builder.name(&readable_class(&event.class));
        builder.traced.push(Traced {
            bytes: [event.size_bytes, 0],
            longest_ns: event.age_ns,
            ..Traced::one(TracedKind::OldObject, what, node)
        });
    }
    transfers(builder, recording);
    methods(builder, recording);
}

/// The last count, and the rate from the first one to it.
fn thrown_sum(recording: &Recording) -> Option<ThrownSum> {
    let counts = || recording.told::<ThrownCount>();
    let first = counts().min_by_key(|it| (it.time_ns, it.thrown))?;
    let last = counts().max_by_key(|it| (it.time_ns, it.thrown))?;
    let seconds = last.time_ns.saturating_sub(first.time_ns) as f64 / 1e9;
    let thrown = last.thrown.saturating_sub(first.thrown) as f64;
    Some(ThrownSum {
        all: last.thrown,
        per_second: (seconds > 0.0).then(|| thrown / seconds),
    })
}

/// Transfers from and to peers and files.
fn transfers(builder: &mut Builder, recording: &Recording) {
    for wait in recording.told::<TimedWait>() {
        let (kind, what) = match (wait.peer(), &*wait.path) {
            (Some(peer), _) => (TracedKind::Socket, peer),
            (None, "") => continue,
            (None, path) => (TracedKind::File, path.to_owned()),
        };
        let what = builder.name(&what);
        builder.traced.push(Traced {
            bytes: [wait.read_bytes, wait.written_bytes],
            duration_ns: wait.duration_ns,
            longest_ns: wait.duration_ns,
            ..Traced::one(kind, what, None)
        });
    }
}

fn methods(builder: &mut Builder, recording: &Recording) {
    let name = |place: Option<u32>| {
        let method = recording.methods.get(place? as usize)?;
        Some(format!("{}.{}", method.class, method.name))
    };
    for event in recording.told::<MethodCall>() {
        let Some(name) = name(event.method) else {
            continue;
        };
        let what = builder.name(&name);
        builder.traced.push(Traced {
            duration_ns: event.duration_ns,
            longest_ns: event.duration_ns,
            ..Traced::one(TracedKind::Call, what, None)
        });
    }
    // Each event counts from the beginning: the last one has all calls.
    let mut last: BTreeMap<u32, MethodCalls> = BTreeMap::new();
    for event in recording.told::<MethodCalls>() {
        let Some(method) = event.method else { continue };
        let known = last.entry(method).or_insert_with(|| event.clone());
        if event.calls > known.calls {
            *known = event;
        }
    }
    for (method, event) in last {
        let Some(name) = name(Some(method)) else {
            continue;
        };
        let what = builder.name(&name);
        builder.traced.push(Traced {
            count: event.calls,
            duration_ns: event.average_ns.saturating_mul(event.calls),
            longest_ns: event.longest_ns,
            ..Traced::one(TracedKind::Calls, what, None)
        });
    }
}

//! Waits that other recorders write as events of their own: each becomes a wait like those of a
//! wall clock, with cause, object, owner and stack. A new event is a line of [`CAUSES`].
//!
//! The stacks of many of these events begin below the method that waited, so the event gives the
//! cause. Events can lie inside each other: then the outer one is left with its own time.

use super::contexts::{Contexts, WorkedFor};
use super::foreign::{Causes, Setting};
use super::{SampleKind, Taken};
use crate::allocations::readable_class;
use crate::builder::Builder;
use crate::info::EventWaits;
use crate::sample::{Look, ThreadId};
use crate::tree::NodeId;
use dwell_jfr::ThreadState;
use dwell_jfr::reader::{GenericEvent, Recording, Told};
use std::collections::BTreeMap;

dwell_jfr::told! {
    /// A wait, with the fields of all events of this kind.
    pub(super) struct TimedWait =
        "jdk.JavaMonitorEnter" | "jdk.JavaMonitorWait" | "jdk.ThreadPark" | "jdk.ThreadSleep" |
        "jdk.SocketRead" | "jdk.SocketWrite" | "jdk.SocketConnect" |
        "jdk.FileRead" | "jdk.FileWrite" | "jdk.FileForce"
    {
        /// How long it lasted.
        duration_ns: TickSpan "duration";
        /// The thread that waited.
        thread: Thread "eventThread";
        /// Where.
        stack: Stack "stackTrace";
        /// The class of a monitor's object.
        monitor: MaybeText "monitorClass";
        /// That object.
        identity: Id "address";
        /// The class of the object that a thread was parked on.
        parked: MaybeText "parkedClass";
        /// The thread that had the monitor.
        owner: Thread "previousOwner";
        /// The peer of a socket.
        host: Text "host";
        /// Its address.
        address: Text "address";
        /// Its port.
        port: Count "port";
        /// The path of a file.
        path: Text "path";
        /// Bytes that came.
        read_bytes: Bytes "bytesRead";
        /// Bytes that went.
        written_bytes: Bytes "bytesWritten";
    }
}

/// The way to the cause of an event.
#[derive(Clone, Copy)]
enum By {
    /// The event says it.
    Event(&'static str),
    /// The stack says it, of a thread in this state; the name is for stacks that do not.
    Stack(ThreadState, &'static str),
}

/// The causes of events.
const CAUSES: &[(&str, By)] = &[
    ("jdk.JavaMonitorEnter", By::Event("monitor")),
    (
        "jdk.JavaMonitorWait",
        By::Stack(ThreadState::Waiting, "object-wait"),
    ),
    ("jdk.ThreadPark", By::Stack(ThreadState::Parked, "park")),
    // Some threads of the JDK sleep until there is work.
    ("jdk.ThreadSleep", By::Stack(ThreadState::Sleeping, "sleep")),
    ("jdk.SocketRead", By::Event("socket")),
    ("jdk.SocketWrite", By::Event("socket")),
    ("jdk.SocketConnect", By::Event("socket")),
    ("jdk.FileRead", By::Event("file")),
    ("jdk.FileWrite", By::Event("file")),
    ("jdk.FileForce", By::Event("file")),
];

/// A wait counts as one look for each such time, as if a clock of dwell's had seen it.
const TICK_NS: u64 = 20_000_000;
/// A wait is known exactly: as exactly as by so many looks.
const CHOICES: u64 = 1_000_000;
/// The time between two samples of a running thread if the recording does not say.
const PERIOD_NS: u64 = 20_000_000;

impl TimedWait {
    /// The peer of a socket.
    pub(super) fn peer(&self) -> Option<String> {
        let host = match &*self.address {
            "" => &*self.host,
            address => address,
        };
        (self.port > 0 && !host.is_empty()).then(|| match host.contains(':') {
            true => format!("[{host}]:{}", self.port),
            false => format!("{host}:{}", self.port),
        })
    }

    /// The object of the wait in words, as dwell writes it.
    fn detail(&self) -> Option<String> {
        if let Some(class) = self.monitor.as_deref() {
            let class = readable_class(class);
            return Some(match self.identity {
                0 => class,
                identity => format!("{class}@{identity:x}"),
            });
        }
        if let Some(class) = self.parked.as_deref() {
            return Some(readable_class(class));
        }
        let path = || (!self.path.is_empty()).then(|| self.path.to_string());
        self.peer().map(|peer| format!("peer {peer}")).or_else(path)
    }
}

/// Whether the waits of a recording are events: of another recorder, without a wall clock.
fn has_waits(recording: &Recording, taken: &Taken<'_>) -> bool {
    let is_of_clock =
        |sample: &super::JfrSample| sample.kind == SampleKind::Wall || taken.clock.is_wait(sample);
    !super::is_ours(recording)
        && taken.clock.wall_ns.is_none()
        && !recording.samples.iter().any(is_of_clock)
}

/// Reads the events; `node_of` gives the place of a stack of the recording.
pub(super) fn add(
    builder: &mut Builder,
    recording: &Recording,
    taken: &Taken<'_>,
    contexts: &Contexts<'_>,
    mut node_of: impl FnMut(&mut Builder, Option<u32>, Option<&str>) -> NodeId,
) {
    if !has_waits(recording, taken) {
        return;
    }
    let mut causes = Causes::default();
    let is_wait = |event: &&GenericEvent| TimedWait::NAMES.contains(&&*event.name);
    let mut looks: Vec<Look> = Vec::new();
    for event in recording.events.iter().filter(is_wait) {
        let wait = TimedWait::of(event);
        let by = CAUSES.iter().find(|(name, _)| *name == &*event.name);
        let (Some(thread), Some((_, by))) = (wait.thread, by) else {
            continue;
        };
        let cause = match (by, wait.stack) {
            (By::Event(cause), _) | (By::Stack(_, cause), None) => cause,
            (By::Stack(state, other), Some(stack)) => match causes.of(recording, stack, *state) {
                "unknown" => other,
                cause => cause,
            },
        };
        let node = node_of(builder, wait.stack, None);
        let cause = builder.cause(cause);
        let detail = wait.detail().map(|text| builder.cause(&text));
        let context = contexts.of_event(&WorkedFor::of(event), builder);
        looks.push(Look {
            time_ns: wait.time_ns,
            duration_ns: wait.duration_ns,
            thread,
            node,
            cause,
            weight_ns: wait.duration_ns,
            count: (wait.duration_ns / TICK_NS).max(1),
            choices: CHOICES,
            context,
            detail,
            owner: wait.owner,
            owner_node: None,
        });
    }
    if looks.is_empty() {
        return;
    }
    leave_own_time(&mut looks);
    looks.into_iter().for_each(|look| builder.look(look));
    builder.info.event_waits = Some(event_waits(recording));
    super::locks::add_looks(builder);
}

/// Leaves each wait with the time that is in no other wait inside of it.
fn leave_own_time(looks: &mut [Look]) {
    let mut by_thread: BTreeMap<ThreadId, Vec<usize>> = BTreeMap::new();
    for (at, look) in looks.iter().enumerate() {
        by_thread.entry(look.thread).or_default().push(at);
    }
    let end = |look: &Look| look.time_ns.saturating_add(look.duration_ns);
    for mut places in by_thread.into_values() {
        let order = |at: &usize| {
            let look = looks.get(*at);
            look.map(|look| (look.time_ns, std::cmp::Reverse(look.duration_ns)))
        };
        places.sort_by_key(order);
        // Those that the next one may lie in, the outermost first.
        let mut open: Vec<usize> = Vec::new();
        for at in places {
            let Some(look) = looks.get(at).copied() else {
                continue;
            };
            let is_over =
                |outer: &usize| looks.get(*outer).is_none_or(|it| end(it) <= look.time_ns);
            while open.last().is_some_and(is_over) {
                open.pop();
            }
            if let Some(outer) = open.last().and_then(|outer| looks.get_mut(*outer)) {
                let inside = end(outer).min(end(&look)).saturating_sub(look.time_ns);
                outer.weight_ns = outer.weight_ns.saturating_sub(inside);
            }
            open.push(at);
        }
    }
}

/// The settings of the events: how long waits must last to be written, and how often running
/// threads are sampled.
fn event_waits(recording: &Recording) -> EventWaits {
    let mut waits = EventWaits {
        threshold_ns: 0,
        sockets_ns: 0,
        files_ns: 0,
        period_ns: PERIOD_NS,
    };
    for setting in recording.told::<Setting>() {
        let of = recording.types.get(&setting.event_id);
        let (Some(of), Some(name), Some(value)) = (of, &setting.name, &setting.value) else {
            continue;
        };
        let Some(ns) = nanoseconds(value) else {
            continue;
        };
        match &**name {
            "threshold" if TimedWait::NAMES.contains(&&**of) => {
                waits.threshold_ns = ns.max(waits.threshold_ns);
                if of.starts_with("jdk.Socket") {
                    waits.sockets_ns = ns.max(waits.sockets_ns);
                } else if of.starts_with("jdk.File") {
                    waits.files_ns = ns.max(waits.files_ns);
                }
            }
            "period" if &**of == SampleKind::Execution.event_name() && ns > 0 => {
                waits.period_ns = ns;
            }
            _ => {}
        }
    }
    waits
}

/// A time as the JDK's settings have it: `20 ms`.
fn nanoseconds(text: &str) -> Option<u64> {
    crate::stops::nanoseconds(&text.replace(' ', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(thread: ThreadId, time_ns: u64, duration_ns: u64) -> Look {
        Look {
            thread,
            time_ns,
            duration_ns,
            weight_ns: duration_ns,
            ..Look::PLAIN
        }
    }

    #[test]
    fn outer_wait_keeps_the_time_of_no_inner_one() {
        let mut looks = [
            look(0, 10, 5),
            look(0, 0, 100),
            look(0, 20, 40),
            look(0, 30, 10),
            look(1, 0, 7),
            look(0, 100, 3),
        ];
        leave_own_time(&mut looks);
        assert_eq!(looks.map(|it| it.weight_ns), [5, 55, 30, 10, 7, 3]);
        let of_first: u64 = looks
            .iter()
            .filter(|it| it.thread == 0)
            .map(|it| it.weight_ns)
            .sum();
        assert_eq!(of_first, 103, "as long as the thread waited");
    }

    #[test]
    fn events_all_have_a_cause() {
        let names = CAUSES.iter().map(|(name, _)| *name);
        assert_eq!(names.collect::<Vec<_>>(), TimedWait::NAMES);
        for (_, by) in CAUSES {
            let (By::Event(cause) | By::Stack(_, cause)) = by;
            assert!(
                dwell_wall::cause::Cause::from_name(cause).is_some(),
                "{cause}"
            );
        }
    }

    #[test]
    fn times_of_settings_have_a_space() {
        assert_eq!(nanoseconds("20 ms"), Some(20_000_000));
        assert_eq!(nanoseconds("0 ns"), Some(0));
        assert_eq!(nanoseconds("everyChunk"), None);
    }
}

//! Reads what compilers, the control group and the machine did.

use crate::builder::Builder;
use crate::surroundings::{Compilation, Compilers, Machine, Throttled};
use dwell_jfr::kinds::told;
use dwell_jfr::reader::Recording;

/// Events that are kept of each kind.
const EVENTS_MAX: usize = 100_000;
/// The agent reads the control group once a second and records changes. The values of an event are
/// therefore never older than this.
const ASKED_EVERY_NS: u64 = 1_100_000_000;

dwell_jfr::told! {
    /// A compilation, from the JDK's own recorder.
    pub(super) struct Compiled = "jdk.Compilation" {
        /// How long that took.
        duration_ns: TickSpan "duration";
        /// Which method.
        method: Method "method";
        /// How well.
        level: Count "compileLevel";
    }
}

/// Takes both from a recording.
pub(super) fn add(builder: &mut Builder, recording: &Recording) {
    builder.throttled = throttled(recording);
    let mut compilations = Vec::new();
    for event in recording.told::<Compiled>().take(EVENTS_MAX) {
        compilations.push(Compilation {
            time_ns: event.time_ns,
            duration_ns: event.duration_ns,
            method: builder.name(&method(event.method, recording)),
            level: event.level,
        });
    }
    compilations.sort_by_key(|compilation| compilation.time_ns);
    builder.compilations = compilations;
    builder.compilers = compilers(recording);
    builder.machine = machine(recording);
}

fn machine(recording: &Recording) -> Vec<Machine> {
    let events = recording.told::<told::Machine>().take(EVENTS_MAX);
    let told = events.map(|event| Machine {
        time_ns: event.time_ns,
        duration_ns: event.duration_ns,
        processors: event.processors,
        busy_ns: event.busy_ns,
        own_ns: event.own_ns,
        idle_ns: event.idle_ns,
        stolen_ns: event.stolen_ns,
    });
    let mut told: Vec<_> = told.filter(Machine::is_plausible).collect();
    told.sort_by_key(|it| it.time_ns);
    told
}

fn compilers(recording: &Recording) -> Vec<Compilers> {
    let events = recording.told::<told::Compilers>().take(EVENTS_MAX);
    let told = events.map(|event| Compilers {
        time_ns: event.time_ns,
        duration_ns: event.duration_ns,
        compilations: event.compilations,
        compiling_ns: event.compiling_ns,
        wasted: event.bailouts.saturating_add(event.invalidated),
    });
    let mut told: Vec<_> = told.collect();
    told.sort_by_key(|it| it.time_ns);
    told
}

/// The method of an event; empty without one.
fn method(place: Option<u32>, recording: &Recording) -> String {
    let method = place.and_then(|place| recording.methods.get(place as usize));
    method.map_or_else(String::new, |m| format!("{}.{}", m.class, m.name))
}

/// Each event counts since the one before, or since the agent asked before.
fn throttled(recording: &Recording) -> Vec<Throttled> {
    let mut events: Vec<told::CpuLimit> = recording.told().collect();
    events.sort_by_key(|event| event.time_ns);
    let mut before_ns = None;
    let mut found = Vec::new();
    for event in events.into_iter().take(EVENTS_MAX) {
        let end_ns = event.time_ns;
        let asked_ns = end_ns.saturating_sub(ASKED_EVERY_NS);
        let since_ns = before_ns.map_or(asked_ns, |before: u64| before.max(asked_ns));
        before_ns = Some(end_ns);
        if event.throttled > 0 || event.throttled_ns > 0 {
            found.push(Throttled {
                time_ns: since_ns,
                duration_ns: end_ns - since_ns,
                periods: event.periods,
                throttled: event.throttled,
                throttled_ns: event.throttled_ns,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_jfr::reader::{GenericEvent, Value};

    fn event(name: &str, time_ns: u64, fields: &[(&str, i64)]) -> GenericEvent {
        let fields = fields.iter();
        let fields = fields.map(|(name, value)| ((*name).into(), Value::Int(*value)));
        GenericEvent {
            name: name.into(),
            time_ns,
            fields: fields.collect(),
        }
    }

    #[test]
    fn limits_of_the_process_are_kept_by_second() {
        let limit = |time_ns, throttled, ns| {
            let fields = [
                ("periods", 10),
                ("throttled", throttled),
                ("throttledTime", ns),
            ];
            event("dwell.CpuLimit", time_ns, &fields)
        };
        let recording = Recording {
            events: vec![
                limit(9_000_000_000, 4, 70),
                limit(5_000_000_000, 0, 0),
                limit(5_500_000_000, 3, 50),
            ],
            ..Recording::default()
        };
        let mut builder = Builder::default();
        add(&mut builder, &recording);
        let profile = builder.finish();
        let found: Vec<_> = (profile.throttled().iter())
            .map(|t| (t.time_ns, t.duration_ns, t.throttled))
            .collect();
        // Nothing changed between the second and the third event, so the third covers its own
        // second.
        let expected = [
            (5_000_000_000, 500_000_000, 3),
            (9_000_000_000 - ASKED_EVERY_NS, ASKED_EVERY_NS, 4),
        ];
        assert_eq!(found, expected);
        assert!(profile.compilations().is_empty());
    }

    #[test]
    fn compiler_counters_are_kept_by_second() {
        let counted = |time_ns, count| {
            let fields = [
                ("duration", 1_000),
                ("compilations", count),
                ("compilationTime", 70),
                ("bailouts", 1),
                ("invalidated", 2),
            ];
            event("dwell.Compilers", time_ns, &fields)
        };
        let recording = Recording {
            events: vec![counted(9, 4), counted(2, 5)],
            ..Recording::default()
        };
        let mut builder = Builder::default();
        add(&mut builder, &recording);
        let profile = builder.finish();
        let told = profile.compilers();
        assert_eq!(
            told.iter().map(|c| c.compilations).collect::<Vec<_>>(),
            [5, 4]
        );
        assert_eq!((told[0].compiling_ns, told[0].wasted), (70, 3));
    }

    #[test]
    fn machine_load_needs_parts_that_make_the_whole() {
        let used = |time_ns, busy, idle| {
            let fields = [
                ("duration", 1_000),
                ("processors", 2),
                ("busy", busy),
                ("own", 300),
                ("idle", idle),
                ("stolen", 100),
            ];
            event("dwell.Machine", time_ns, &fields)
        };
        let recording = Recording {
            // Two processors had 2000 ns; the third event has more, the fourth has less.
            events: vec![
                used(9, 900, 1_000),
                used(5, 100, 1_900),
                used(6, 1_500, 1_000),
                used(7, 700, 700),
            ],
            ..Recording::default()
        };
        let mut builder = Builder::default();
        add(&mut builder, &recording);
        let profile = builder.finish();
        let told: Vec<_> = (profile.machine().iter())
            .map(|m| (m.time_ns, m.others_ns(), m.idle_ns, m.stolen_ns))
            .collect();
        // The count of the process can be one tick later than the count of all processes.
        assert_eq!(told, [(5, 0, 1_900, 100), (9, 600, 1_000, 100)]);
        let sum = profile.machine_sum().unwrap();
        assert_eq!((sum.duration_ns, sum.processors), (2_000, 2));
        assert_eq!((sum.busy_ns, sum.own_ns), (1_000, 600));
    }

    #[test]
    fn compilations_are_in_the_order_of_time() {
        let compiled = |time_ns| {
            let fields = [("duration", 7), ("compileLevel", 4)];
            event("jdk.Compilation", time_ns, &fields)
        };
        let recording = Recording {
            events: vec![compiled(9), compiled(2)],
            ..Recording::default()
        };
        let mut builder = Builder::default();
        add(&mut builder, &recording);
        let profile = builder.finish();
        let told: Vec<_> = (profile.compilations().iter())
            .map(|c| (c.time_ns, c.duration_ns, c.level))
            .collect();
        assert_eq!(told, [(2, 7, 4), (9, 7, 4)]);
    }

    #[test]
    fn compilations_tell_their_methods() {
        let compiled = |time_ns, method: Value| {
            let mut event = event("jdk.Compilation", time_ns, &[]);
            event.fields.push(("method".into(), method));
            event
        };
        let method = dwell_jfr::reader::Method {
            class: "a.A".into(),
            name: "f".into(),
            descriptor: "()V".into(),
            hidden: false,
            module: "".into(),
            location: "".into(),
        };
        let recording = Recording {
            methods: vec![method],
            events: vec![
                compiled(1, Value::Method(0)),
                compiled(2, Value::Method(1)),
                compiled(3, Value::Null),
            ],
            ..Recording::default()
        };
        let mut builder = Builder::default();
        add(&mut builder, &recording);
        let profile = builder.finish();
        let told = profile.compilations().iter();
        let told: Vec<_> = told.map(|it| profile.names().text(it.method)).collect();
        assert_eq!(told, ["a.A.f", "", ""]);
    }
}

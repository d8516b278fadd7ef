//! Markers: events of the process and of threads, each with its time and its fields.

use std::collections::HashMap;
use std::io::{self, Write};

use dwell_profile::{
    ContextId, Fact, Gap, Late, MonitorWait, NameId, NodeId, Profile, Safepoint, Stretch,
    StretchKind, ThreadId,
};

use super::Times;
use super::stack_tables::{StackTables, length};
use crate::json_writer::JsonWriter;
use crate::timeline::categories::{Categories, ON_CPU, StateId, category_named, category_of};
use crate::timeline::tracks::{PROCESS, Tracks};

/// An event, by its place in the profile.
#[derive(Clone, Copy)]
enum Source {
    Safepoint(usize),
    Late(usize),
    /// The places of the kind and of the stretch.
    Stretch(usize, usize),
    Request(usize),
    Span(usize),
    Wait(usize),
    Look(usize),
    Compilation(usize),
    Compilers(usize),
    Throttled(usize),
    Gap(usize),
}

/// The columns of a marker.
struct Head<'p> {
    time_ns: u64,
    /// `None`: the event is at one instant.
    duration_ns: Option<u64>,
    name: &'p str,
    category: usize,
}

/// All markers of a profile.
pub struct Markers<'p> {
    profile: &'p Profile,
    categories: &'p Categories,
    tracks: &'p Tracks,
    times: Times,
    kinds: Vec<(&'static StretchKind, &'p [Stretch])>,
    /// By thread of the file and time.
    sorted: Vec<(usize, u64, Source)>,
    /// Late threads by the number of the safepoint.
    late: HashMap<u64, Vec<ThreadId>>,
    /// Requests by their first span.
    requests: HashMap<u64, usize>,
}

/// The state of stacks of waits for monitors.
const MONITOR: &str = "monitor";

impl<'p> Markers<'p> {
    /// Collects the events of a profile.
    pub fn new(
        profile: &'p Profile,
        categories: &'p Categories,
        tracks: &'p Tracks,
    ) -> Markers<'p> {
        let mut late: HashMap<u64, Vec<ThreadId>> = HashMap::new();
        // Without a number it is not known which safepoint a thread was late for.
        for it in profile.late().iter().filter(|it| it.safepoint != 0) {
            late.entry(it.safepoint).or_default().push(it.thread);
        }
        let requests = profile.requests().iter().enumerate();
        let mut markers = Markers {
            profile,
            categories,
            tracks,
            times: Times { start_ns: 0 },
            kinds: profile.stretches().kinds().collect(),
            sorted: Vec::new(),
            late,
            requests: requests
                .map(|(id, it)| (it.local_root_span_id, id))
                .collect(),
        };
        markers.collect();
        let starts = markers.sorted.iter().map(|(_, time_ns, _)| *time_ns);
        markers.times = Times::new(profile, starts);
        markers
    }

    /// Number of markers.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The times of the file.
    pub fn times(&self) -> Times {
        self.times
    }

    fn collect(&mut self) {
        let profile = self.profile;
        let mut all: Vec<(usize, Source)> = Vec::new();
        let mut of_process = |len: usize, source: fn(usize) -> Source| {
            all.extend((0..len).map(|id| (PROCESS, source(id))));
        };
        of_process(profile.safepoints().len(), Source::Safepoint);
        of_process(profile.requests().len(), Source::Request);
        of_process(profile.spans().len(), Source::Span);
        of_process(profile.compilations().len(), Source::Compilation);
        of_process(profile.compilers().len(), Source::Compilers);
        of_process(profile.throttled().len(), Source::Throttled);
        of_process(profile.gaps().len(), Source::Gap);
        for (kind, (_, stretches)) in self.kinds.iter().enumerate() {
            let ids = 0..stretches.len();
            all.extend(ids.map(|id| (PROCESS, Source::Stretch(kind, id))));
        }
        let late = profile.late().iter().enumerate();
        all.extend(late.map(|(id, it)| (self.tracks.of(it.thread), Source::Late(id))));
        let waits = profile.monitor_waits().iter().enumerate();
        all.extend(waits.map(|(id, it)| (self.tracks.of(it.thread), Source::Wait(id))));
        let looks = profile.looks().iter().enumerate();
        let owned = looks.filter(|(_, look)| look.owner.is_some());
        all.extend(owned.map(|(id, it)| (self.tracks.of(it.thread), Source::Look(id))));
        let timed = all.into_iter().filter_map(|(track, source)| {
            let head = self.head(source)?;
            Some((track, head.time_ns, source))
        });
        let mut sorted: Vec<_> = timed.collect();
        sorted.sort_by_key(|(track, time_ns, _)| (*track, *time_ns));
        self.sorted = sorted;
    }

    /// The markers of a thread of the file.
    fn of(&self, track: usize) -> &[(usize, u64, Source)] {
        let from = self.sorted.partition_point(|it| it.0 < track);
        let to = self.sorted.partition_point(|it| it.0 <= track);
        self.sorted.get(from..to).unwrap_or(&[])
    }

    fn head(&self, source: Source) -> Option<Head<'p>> {
        let profile = self.profile;
        let head = |time_ns, duration_ns, name, category| Head {
            time_ns,
            duration_ns: Some(duration_ns),
            name,
            category,
        };
        Some(match source {
            Source::Safepoint(id) => {
                let it = profile.safepoints().get(id)?;
                Head {
                    // Several safepoints in one event have no known times.
                    duration_ns: (it.count <= 1).then_some(it.duration_ns()),
                    ..head(it.time_ns, 0, "Safepoint", category_named("Safepoint"))
                }
            }
            Source::Late(id) => {
                let it = profile.late().get(id)?;
                let category = category_named("Safepoint");
                head(it.time_ns, it.duration_ns, "Late for safepoint", category)
            }
            Source::Stretch(kind, id) => {
                let (kind, all) = self.kinds.get(kind)?;
                let (it, words) = (all.get(id)?, &kind.words);
                let category = category_of(words.cause);
                head(it.time_ns, it.duration_ns, words.title, category)
            }
            Source::Request(id) => {
                let it = profile.requests().get(id)?;
                head(it.time_ns, it.duration_ns, "Request", 0)
            }
            Source::Span(id) => {
                let it = profile.spans().get(id)?;
                head(it.time_ns, it.duration_ns, "Span", 0)
            }
            Source::Wait(id) => {
                let it = profile.monitor_waits().get(id)?;
                let category = category_named("Lock");
                head(it.time_ns, it.duration_ns, "Monitor wait", category)
            }
            Source::Look(id) => {
                let it = profile.looks().get(id)?;
                let category = category_of(profile.names().text(it.cause));
                head(it.time_ns, it.duration_ns, "Lock owner", category)
            }
            Source::Compilation(id) => {
                let it = profile.compilations().get(id)?;
                let category = category_named("Compiler");
                head(it.time_ns, it.duration_ns, "Compilation", category)
            }
            Source::Compilers(id) => {
                let it = profile.compilers().get(id)?;
                let category = category_named("Compiler");
                head(it.time_ns, it.duration_ns, "Compilers", category)
            }
            Source::Throttled(id) => {
                let it = profile.throttled().get(id)?;
                let category = category_named("Waiting for a CPU");
                head(it.time_ns, it.duration_ns, "Throttled", category)
            }
            Source::Gap(id) => {
                let it = profile.gaps().get(id)?;
                head(it.time_ns, it.duration_ns, "Gap", 0)
            }
        })
    }

    /// Writes the table of a thread of the file, as the next key.
    pub fn write<W: Write>(
        &self,
        track: usize,
        tables: &mut StackTables<'p>,
        json: &mut JsonWriter<W>,
    ) -> io::Result<()> {
        let all = self.of(track);
        let heads = || all.iter().filter_map(|it| self.head(it.2));
        let names: Vec<u32> = heads().map(|it| tables.text(it.name)).collect();
        json.key("markers")?;
        json.object(|json| {
            json.column("data", all, |json, it| {
                json.object(|json| self.fields(it.2, tables, json))
            })?;
            json.column("name", names, |json, name| json.number(name))?;
            json.column("startTime", heads(), |json, it| {
                json.milliseconds(self.times.since(it.time_ns))
            })?;
            json.column("endTime", heads(), |json, it| {
                let end_ns = it.time_ns.saturating_add(it.duration_ns.unwrap_or(0));
                json.milliseconds(self.times.since(end_ns))
            })?;
            // The numbers of instants and of intervals.
            json.column("phase", heads(), |json, it| {
                json.number(u8::from(it.duration_ns.is_some()))
            })?;
            json.column("category", heads(), |json, it| json.number(it.category))?;
            length(json, all.len())
        })
    }

    /// Writes the fields of a marker, whose names are those of its schema.
    fn fields<W: Write>(
        &self,
        source: Source,
        tables: &mut StackTables<'p>,
        json: &mut JsonWriter<W>,
    ) -> io::Result<()> {
        let profile = self.profile;
        match source {
            Source::Safepoint(id) => {
                each(profile.safepoints().get(id), |it| self.safepoint(it, json))
            }
            Source::Stretch(kind, id) => each(self.kinds.get(kind), |(kind, all)| {
                each(all.get(id), |it| self.stretch(kind, it, json))
            }),
            Source::Wait(id) => each(profile.monitor_waits().get(id), |it| {
                self.wait(it, tables, json)
            }),
            Source::Gap(id) => each(profile.gaps().get(id), |it| gap(it, json)),
            Source::Late(id) => each(profile.late().get(id), |it| self.late(it, tables, json)),
            Source::Request(id) => each(profile.requests().get(id), |it| {
                kind(json, "Request")?;
                each(it.endpoint.as_ref(), |it| self.name(json, "endpoint", *it))?;
                trace(json, it.trace_id)?;
                number(json, "count", it.count)
            }),
            Source::Span(id) => each(profile.spans().get(id), |it| {
                kind(json, "Span")?;
                let request = self.requests.get(&it.local_root_span_id);
                let request = request.and_then(|id| profile.requests().get(*id));
                each(request, |request| {
                    let endpoint = request.endpoint.as_ref();
                    each(endpoint, |it| self.name(json, "endpoint", *it))?;
                    trace(json, request.trace_id)
                })?;
                text(json, "spanId", &format!("{:016x}", it.span_id))
            }),
            Source::Look(id) => each(profile.looks().get(id), |it| {
                kind(json, "Owner")?;
                self.name(json, "why", it.cause)?;
                each(it.detail.as_ref(), |it| self.name(json, "detail", *it))?;
                self.owner(json, it.owner)?;
                let at = it.owner_node.and_then(|node| profile.place(node));
                text(json, "ownerAt", &at.unwrap_or_default())?;
                span(json, "weight", it.weight_ns)?;
                self.context(json, it.context)?;
                let state = self.categories.state(it.cause);
                self.cause(json, tables, it.thread, it.time_ns, Some(it.node), state)
            }),
            Source::Compilation(id) => each(profile.compilations().get(id), |it| {
                kind(json, "Compilation")?;
                self.name(json, "method", it.method)?;
                number(json, "level", it.level)
            }),
            Source::Compilers(id) => each(profile.compilers().get(id), |it| {
                kind(json, "Compilers")?;
                number(json, "compilations", it.compilations)?;
                span(json, "compiling", it.compiling_ns)?;
                number(json, "wasted", it.wasted)
            }),
            Source::Throttled(id) => each(profile.throttled().get(id), |it| {
                kind(json, "Throttled")?;
                number(json, "periods", it.periods)?;
                number(json, "throttled", it.throttled)?;
                span(json, "held", it.throttled_ns)
            }),
        }
    }

    fn safepoint<W: Write>(&self, it: &Safepoint, json: &mut JsonWriter<W>) -> io::Result<()> {
        kind(json, "Safepoint")?;
        self.name(json, "operation", it.operation)?;
        span(json, "reaching", it.reaching_ns)?;
        span(json, "operationTime", it.operation_ns)?;
        number(json, "threads", it.threads)?;
        number(json, "running", it.running)?;
        number(json, "count", it.count.max(1))?;
        let late = self.late.get(&it.id).into_iter().flatten();
        let late = late.map(|thread| self.profile.thread_name(*thread));
        text(json, "late", &late.collect::<Vec<&str>>().join(", "))
    }

    fn late<W: Write>(
        &self,
        it: &Late,
        tables: &mut StackTables<'p>,
        json: &mut JsonWriter<W>,
    ) -> io::Result<()> {
        kind(json, "Late")?;
        self.name(json, "operation", it.operation)?;
        span(json, "held", it.held_ns)?;
        self.name(json, "state", it.state)?;
        text(json, "last", if it.is_last { "yes" } else { "no" })?;
        self.cause(json, tables, it.thread, it.time_ns, it.node, ON_CPU)
    }

    fn stretch<W: Write>(
        &self,
        of: &StretchKind,
        it: &Stretch,
        json: &mut JsonWriter<W>,
    ) -> io::Result<()> {
        kind(json, of.words.title)?;
        for (label, fact) in of.labels.iter().zip(&it.facts) {
            match fact {
                Fact::Text(name) => self.name(json, label, *name)?,
                Fact::Number(value) => number(json, label, *value)?,
                Fact::Thread(Some(thread)) => text(json, label, self.profile.thread_name(*thread))?,
                Fact::Thread(None) | Fact::Nothing => {}
            }
        }
        Ok(())
    }

    fn wait<W: Write>(
        &self,
        it: &MonitorWait,
        tables: &mut StackTables<'p>,
        json: &mut JsonWriter<W>,
    ) -> io::Result<()> {
        kind(json, "Monitor")?;
        self.name(json, "class", it.class)?;
        self.owner(json, it.owner)?;
        span(json, "weight", it.weight_ns)?;
        self.context(json, it.context)?;
        let state = self.categories.state_named(MONITOR);
        self.cause(json, tables, it.thread, it.time_ns, Some(it.node), state)
    }

    fn name<W: Write>(&self, json: &mut JsonWriter<W>, key: &str, name: NameId) -> io::Result<()> {
        text(json, key, self.profile.names().text(name))
    }

    fn owner<W: Write>(&self, json: &mut JsonWriter<W>, owner: Option<ThreadId>) -> io::Result<()> {
        each(owner.as_ref(), |owner| {
            text(json, "owner", self.profile.thread_name(*owner))
        })
    }

    /// The request that a thread worked for.
    fn context<W: Write>(
        &self,
        json: &mut JsonWriter<W>,
        context: Option<ContextId>,
    ) -> io::Result<()> {
        let Some(id) = context else {
            return Ok(());
        };
        text(json, "endpoint", self.profile.endpoint(id).unwrap_or(""))?;
        let context = self.profile.contexts().get(id as usize);
        trace(json, context.map_or(0, |it| it.trace_id))
    }

    /// The stack of a marker.
    fn cause<W: Write>(
        &self,
        json: &mut JsonWriter<W>,
        tables: &mut StackTables<'p>,
        thread: ThreadId,
        time_ns: u64,
        node: Option<NodeId>,
        state: StateId,
    ) -> io::Result<()> {
        each(node.as_ref(), |node| {
            json.key("cause")?;
            json.object(|json| {
                json.key("tid")?;
                json.number(self.tracks.tid(thread))?;
                json.key("time")?;
                json.milliseconds(self.times.since(time_ns))?;
                json.key("stack")?;
                json.number(tables.stack(*node, state))
            })
        })
    }
}

/// Writes an item if it is there.
fn each<T>(item: Option<T>, write: impl FnOnce(T) -> io::Result<()>) -> io::Result<()> {
    item.map_or(Ok(()), write)
}

/// The name of the schema.
fn kind<W: Write>(json: &mut JsonWriter<W>, name: &str) -> io::Result<()> {
    json.key("type")?;
    json.text(name)
}

/// A text, unless it is unknown.
fn text<W: Write>(json: &mut JsonWriter<W>, key: &str, value: &str) -> io::Result<()> {
    if value.is_empty() {
        return Ok(());
    }
    json.key(key)?;
    json.text(value)
}

fn number<W: Write>(json: &mut JsonWriter<W>, key: &str, value: u64) -> io::Result<()> {
    json.key(key)?;
    json.number(value)
}

/// A time span, which the format has in milliseconds.
fn span<W: Write>(json: &mut JsonWriter<W>, key: &str, ns: u64) -> io::Result<()> {
    json.key(key)?;
    json.milliseconds(ns.into())
}

fn trace<W: Write>(json: &mut JsonWriter<W>, id: u128) -> io::Result<()> {
    match id {
        0 => Ok(()),
        id => text(json, "traceId", &format!("{id:032x}")),
    }
}

fn gap<W: Write>(it: &Gap, json: &mut JsonWriter<W>) -> io::Result<()> {
    kind(json, "Gap")?;
    text(json, "why", &it.cause)?;
    number(json, "samples", it.samples)?;
    span(json, "weight", it.weight_ns)
}

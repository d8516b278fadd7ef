//! pprof's `profile.proto`, of Go, async-profiler, Datadog, this crate and others.

use std::collections::HashMap;

use dwell_profile::{
    Builder, Context, ContextId, FrameKind, Look, Measured, NodeId, Profile, RUNNING, Sample,
    ThreadId, Unit,
};
use prost::Message as _;

use super::{NoTime, frame, kind_of};
use crate::pprof::message;

/// Names of CPU time, of wall time and of counted samples in the files of several tools.
const CPU: [&str; 4] = ["cpu", "cpu-time", "cpu_time", "itimer"];
const WALL: [&str; 3] = ["wall", "wall-time", "wall_time"];
const COUNT: [&str; 4] = ["samples", "sample", "cpu-samples", "cpu_samples"];
/// Labels with a meaning in reports.
const THREAD: [&str; 3] = ["thread", "thread name", "thread_name"];
const THREAD_ID: [&str; 3] = ["thread_id", "thread id", "tid"];
const ENDPOINT: [&str; 2] = ["endpoint", "trace endpoint"];

/// A column of values: its place, and nanoseconds of a unit.
#[derive(Clone, Copy)]
struct Values {
    place: usize,
    scale: u64,
}

impl Values {
    fn of(self, sample: &message::Sample) -> u64 {
        let value = sample.value.get(self.place).copied().unwrap_or(0);
        u64::try_from(value).unwrap_or(0).saturating_mul(self.scale)
    }
}

/// The profile in a file; `None` if it is in another format.
pub fn read(bytes: &[u8]) -> Result<Option<Profile>, NoTime> {
    let Ok(file) = message::Profile::decode(bytes) else {
        return Ok(None);
    };
    let is_pprof = file.string_table.first().is_some_and(String::is_empty);
    if !is_pprof || file.sample_type.is_empty() {
        return Ok(None);
    }
    let file = File::new(&file);
    let (cpu, wall) = (file.time(&CPU), file.time(&WALL));
    let count = file.count();
    if cpu.is_none() && wall.is_none() && count.is_none() {
        let types = file.file.sample_type.iter();
        let types = types.map(|it| file.text(it.r#type).to_owned()).collect();
        return Err(NoTime { types });
    }
    let mut model = Model {
        builder: Builder::default(),
        file,
        threads: HashMap::new(),
        stacks: HashMap::new(),
    };
    let samples = &model.file.file.sample;
    for sample in samples {
        model.add(sample, cpu, wall, count);
    }
    Ok(Some(model.finish(cpu, wall)))
}

/// A decoded file with its tables by id.
struct File<'f> {
    file: &'f message::Profile,
    locations: HashMap<u64, &'f message::Location>,
    functions: HashMap<u64, &'f message::Function>,
    mappings: HashMap<u64, &'f message::Mapping>,
}

impl<'f> File<'f> {
    fn new(file: &'f message::Profile) -> File<'f> {
        File {
            file,
            locations: file.location.iter().map(|it| (it.id, it)).collect(),
            functions: file.function.iter().map(|it| (it.id, it)).collect(),
            mappings: file.mapping.iter().map(|it| (it.id, it)).collect(),
        }
    }

    fn text(&self, place: i64) -> &'f str {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        self.file.string_table.get(place).map_or("", String::as_str)
    }

    /// The column of a time.
    fn time(&self, names: &[&str]) -> Option<Values> {
        let types = self.file.sample_type.iter().enumerate();
        types
            .filter(|(_, it)| names.contains(&self.text(it.r#type)))
            .find_map(|(place, it)| {
                let scale = match self.text(it.unit) {
                    "nanoseconds" | "ns" => 1,
                    "microseconds" | "us" => 1_000,
                    "milliseconds" | "ms" => 1_000_000,
                    "seconds" | "s" => 1_000_000_000,
                    _ => return None,
                };
                Some(Values { place, scale })
            })
    }

    /// The column of a number of samples.
    fn count(&self) -> Option<Values> {
        let types = self.file.sample_type.iter();
        let is_it = |it: &message::ValueType| {
            let name = self.text(it.r#type);
            COUNT.contains(&name) || CPU.contains(&name) && self.text(it.unit) == "count"
        };
        let place = types.clone().position(is_it)?;
        Some(Values { place, scale: 1 })
    }
}

/// A profile under construction.
struct Model<'f> {
    builder: Builder,
    file: File<'f>,
    threads: HashMap<(&'f str, i64), ThreadId>,
    stacks: HashMap<&'f [u64], NodeId>,
}

impl<'f> Model<'f> {
    fn add(
        &mut self,
        sample: &'f message::Sample,
        cpu: Option<Values>,
        wall: Option<Values>,
        count: Option<Values>,
    ) {
        let node = self.stack(&sample.location_id);
        let thread = self.thread(sample);
        let context = self.context(sample);
        let time_ns = u64::try_from(self.file.file.time_nanos).unwrap_or(0);
        let samples = count.map_or(1, |it| it.of(sample));
        // Without CPU time, samples are counted.
        let ran = cpu.or(count.filter(|_| wall.is_none()));
        let weight = ran.map_or(0, |it| it.of(sample));
        if weight > 0 {
            self.builder.sample(Sample {
                time_ns,
                thread,
                node,
                weight,
                count: u32::try_from(samples.max(1)).unwrap_or(u32::MAX),
                failure: None,
                context,
            });
        }
        let cause = self
            .label(sample, &["cause"])
            .map_or("unknown", |it| self.file.text(it.str));
        // Running is a part of wall time.
        let waited = wall.map_or(0, |it| it.of(sample).saturating_sub(weight));
        if waited == 0 || cause == RUNNING {
            return;
        }
        let detail = self
            .label(sample, &["detail"])
            .map(|it| self.file.text(it.str));
        let detail = detail.map(|text| self.builder.name(text));
        let cause = self.builder.cause(cause);
        self.builder.look(Look {
            time_ns,
            thread,
            node,
            cause,
            weight_ns: waited,
            count: samples.max(1),
            context,
            detail,
            ..Look::default()
        });
    }

    fn label(&self, sample: &'f message::Sample, keys: &[&str]) -> Option<&'f message::Label> {
        let mut labels = sample.label.iter();
        labels.find(|it| keys.contains(&self.file.text(it.key)))
    }

    fn stack(&mut self, locations: &'f [u64]) -> NodeId {
        if let Some(known) = self.stacks.get(locations) {
            return *known;
        }
        let mut frames = Vec::new();
        for id in locations.iter().rev() {
            let Some(location) = self.file.locations.get(id).copied() else {
                continue;
            };
            let mapping = self.file.mappings.get(&location.mapping_id);
            let library = mapping.map_or("", |it| self.file.text(it.filename));
            // The last line is that of the function into which the others were compiled.
            for (place, line) in location.line.iter().rev().enumerate() {
                let function = self.file.functions.get(&line.function_id);
                let name = function.map_or("", |it| self.file.text(it.name));
                if name == crate::NO_STACK {
                    continue;
                }
                let kind = match kind_of(name, library) {
                    FrameKind::C2 if place > 0 => FrameKind::Inlined,
                    kind => kind,
                };
                let line = u32::try_from(line.line).unwrap_or(0);
                frames.push(frame(&mut self.builder, name, library, line, kind));
            }
        }
        let node = self.builder.stack(frames);
        self.stacks.insert(locations, node);
        node
    }

    fn thread(&mut self, sample: &'f message::Sample) -> ThreadId {
        let name = self
            .label(sample, &THREAD)
            .map_or("", |it| self.file.text(it.str));
        let id = self.label(sample, &THREAD_ID).map_or(0, |it| match it.num {
            0 => self.file.text(it.str).parse().unwrap_or(0),
            num => num,
        });
        if let Some(known) = self.threads.get(&(name, id)) {
            return *known;
        }
        let shown = match (name, id) {
            ("", 0) => "[all threads]".to_owned(),
            ("", id) => format!("Thread {id}"),
            (name, _) => name.to_owned(),
        };
        let java_tid = self.threads.len() as i64 + 1;
        let thread = self.builder.thread(&shown, id, java_tid, false);
        self.threads.insert((name, id), thread);
        thread
    }

    /// The request of a sample.
    fn context(&mut self, sample: &'f message::Sample) -> Option<ContextId> {
        let text = |keys: &[&str]| self.label(sample, keys).map(|it| self.file.text(it.str));
        let hex = |keys| text(keys).and_then(|it| u128::from_str_radix(it, 16).ok());
        let (trace_id, span_id) = (hex(&["trace_id"]), hex(&["span_id"]));
        let endpoint = text(&ENDPOINT);
        if trace_id.is_none() && endpoint.is_none() {
            return None;
        }
        let endpoint = endpoint.map(|text| self.builder.name(text));
        Some(self.builder.context(Context {
            trace_id: trace_id.unwrap_or(0),
            span_id: u64::try_from(span_id.unwrap_or(0)).unwrap_or(0),
            endpoint,
            ..Context::default()
        }))
    }

    fn finish(mut self, cpu: Option<Values>, wall: Option<Values>) -> Profile {
        let file = self.file.file;
        let number = |value: i64| u64::try_from(value).unwrap_or(0);
        let is_time = cpu.is_some() || wall.is_some();
        self.builder.unit = if is_time {
            Unit::Nanoseconds
        } else {
            Unit::Samples
        };
        let info = &mut self.builder.info;
        info.start_ns = number(file.time_nanos);
        info.duration_ns = number(file.duration_nanos);
        info.sample_event = "pprof".to_owned();
        info.engine = "pprof".to_owned();
        info.measured = match is_time {
            true => Measured::CpuTime,
            false => Measured::Event("pprof samples".to_owned()),
        };
        let period = file
            .period_type
            .filter(|it| CPU.contains(&self.file.text(it.r#type)));
        if period.is_some_and(|it| self.file.text(it.unit) == "nanoseconds") {
            info.interval_ns = number(file.period);
        }
        let comments = file.comment.iter().map(|it| self.file.text(*it));
        let program = comments
            .filter_map(|it| it.strip_prefix("program: "))
            .next();
        info.java_arguments = program.unwrap_or("").to_owned();
        let missing = [
            (true, "no times of samples"),
            (self.threads.keys().all(|it| *it == ("", 0)), "no threads"),
            (cpu.is_none(), "no CPU time"),
            (wall.is_none(), "no wall time"),
            (true, "no safepoints and no pauses"),
        ];
        let missing = missing.into_iter().filter(|it| it.0).map(|it| it.1);
        let missing: Vec<&str> = missing.collect();
        let warning = format!("read from pprof, which has {}", missing.join(", "));
        self.builder.warnings.push(warning);
        self.builder.finish()
    }
}

//! The processed format of the Firefox Profiler, which Perfetto reads as well.
//!
//! Threads, samples and markers are written one by one, and the tables that they share at the end.
//! The version is the first one with shared tables: viewers read it and all later ones do.

mod marker_schemas;
mod markers;
mod stack_tables;
#[cfg(test)]
mod tests;

use std::io::{self, BufWriter, Write};

use dwell_profile::{Gap, Profile, plain};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::Program;
use crate::comments::comments;
use crate::json_writer::JsonWriter;
use crate::timeline::categories::{Categories, ON_CPU};
use crate::timeline::sample_rows::{ByTrack, Row, SampleRows};
use crate::timeline::tracks::{PROCESS, Track, Tracks};
use markers::Markers;
use stack_tables::{StackTables, length};

/// Version of the format: stacks, frames and functions of all threads are in one place.
const VERSION: u32 = 60;
/// Version of the format of Firefox's own recordings at that time.
const GECKO_VERSION: u32 = 30;

/// Times of the file: since its beginning, in nanoseconds.
#[derive(Clone, Copy)]
struct Times {
    start_ns: u64,
}

impl Times {
    /// The beginning is before the first sample and marker, because Perfetto drops negative times.
    fn new(profile: &Profile, markers: impl Iterator<Item = u64>) -> Times {
        let samples = profile.samples().iter().map(|it| it.time_ns);
        let allocations = profile.allocations().iter().map(|it| it.time_ns);
        let first = samples.chain(profile.looks().iter().map(|it| it.time_ns));
        let first = first.chain(allocations).chain(markers);
        let start_ns = profile.info().start_ns;
        Times {
            start_ns: first.min().map_or(start_ns, |first| first.min(start_ns)),
        }
    }

    fn since(self, time_ns: u64) -> i128 {
        i128::from(time_ns) - i128::from(self.start_ns)
    }
}

/// Writes a profile for the Firefox Profiler, gzipped if `is_packed`. Returns the number of its
/// samples and markers.
///
/// # Errors
///
/// Only those of `out`.
pub fn firefox(
    profile: &Profile,
    program: &Program,
    is_packed: bool,
    out: &mut impl Write,
) -> io::Result<usize> {
    if !is_packed {
        return document(profile, program, BufWriter::new(out)).map(|(_, count)| count);
    }
    // Most of a file is columns of numbers, which a higher level packs little better.
    let packed = GzEncoder::new(out, Compression::fast());
    let (out, count) = document(profile, program, BufWriter::new(packed))?;
    let packed = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    packed.finish()?;
    Ok(count)
}

/// Writes the whole document. Returns the output and the number of samples and markers.
fn document<W: Write>(profile: &Profile, program: &Program, out: W) -> io::Result<(W, usize)> {
    let mut json = JsonWriter::new(out);
    let categories = Categories::new(profile);
    let tracks = Tracks::new(profile);
    let markers = Markers::new(profile, &categories, &tracks);
    let times = markers.times();
    let mut file = File {
        profile,
        name: program.shown_name(profile),
        times,
        rows: SampleRows::new(profile, &categories, &tracks),
        allocations: ByTrack::new(
            tracks.list.len(),
            profile.allocations().iter().map(|it| tracks.of(it.thread)),
        ),
        tables: StackTables::new(profile, &categories),
    };
    let mut count = markers.len();
    json.object(|json| {
        // Perfetto recognises the format by this first key.
        json.key("meta")?;
        json.value(&file.meta(&categories))?;
        json.key("threads")?;
        json.array(|json| {
            for (place, track) in tracks.list.iter().enumerate() {
                count += file.thread(place, track, &markers, json)?;
            }
            Ok(())
        })?;
        file.tables.write(json)
    })?;
    let mut out = json.into_inner();
    out.flush()?;
    Ok((out, count))
}

/// The parts of the file that is being written.
struct File<'p> {
    profile: &'p Profile,
    name: String,
    times: Times,
    rows: SampleRows<'p>,
    allocations: ByTrack,
    tables: StackTables<'p>,
}

impl<'p> File<'p> {
    /// The description of the whole profile.
    fn meta(&self, categories: &Categories) -> Value {
        let (info, host) = (self.profile.info(), self.profile.host());
        let notes = comments(self.profile).into_iter().map(|note| {
            let (label, value) = note.split_once(": ").unwrap_or(("Note", &note));
            json!({ "label": plain(label), "format": "string", "value": plain(value) })
        });
        let mut notes: Vec<Value> = notes.collect();
        if !host.os.is_empty() {
            let os = plain(&host.os);
            notes.push(json!({ "label": "operating system", "format": "string", "value": os }));
        }
        let ms = |ns: u64| ns as f64 / 1e6;
        let begin_ns = info.start_ns.saturating_sub(self.times.start_ns);
        let mut meta = json!({
            "interval": ms(if info.interval_ns > 0 { info.interval_ns } else { 1_000_000 }),
            "startTime": ms(self.times.start_ns),
            "profilingStartTime": ms(begin_ns),
            "profilingEndTime": ms(begin_ns.saturating_add(info.duration_ns)),
            "processType": 0,
            "product": self.name,
            "importedFrom": format!("dwell {}", env!("CARGO_PKG_VERSION")),
            "stackwalk": 1,
            "debug": false,
            "version": GECKO_VERSION,
            "preprocessedProfileVersion": VERSION,
            "symbolicated": true,
            "symbolicationNotSupported": true,
            "usesOnlyOneStackType": true,
            "sourceCodeIsNotOnSearchfox": true,
            "categories": categories.list(),
            "markerSchema": marker_schemas::schemas(self.profile),
            "extra": [{ "label": "Recording", "entries": notes }],
        });
        let mut add = |key: &str, value: Value| {
            if let Some(meta) = meta.as_object_mut() {
                meta.insert(key.to_owned(), value);
            }
        };
        for (key, text) in [("arguments", &info.java_arguments), ("CPUName", &host.cpu)] {
            if !text.is_empty() {
                add(key, plain(text).into());
            }
        }
        if host.hardware_threads > 0 {
            add("logicalCPUs", host.hardware_threads.into());
        }
        if self.rows.have_cpu_time() {
            let units = json!({ "time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns" });
            add("sampleUnits", units);
        }
        meta
    }

    /// Writes a thread, and returns the number of its samples.
    fn thread<W: Write>(
        &mut self,
        place: usize,
        track: &Track,
        markers: &Markers<'p>,
        json: &mut JsonWriter<W>,
    ) -> io::Result<usize> {
        let tables = &mut self.tables;
        let rows = self.rows.of(place, |node, state| tables.stack(node, state));
        let info = self.profile.info();
        let end_ns = info.start_ns.saturating_add(info.duration_ns);
        let first_ns = rows.first().map_or(self.times.start_ns, |row| row.time_ns);
        let last_ns = rows.last().map_or(end_ns, |row| row.time_ns);
        let span = match place {
            PROCESS => [self.times.start_ns, end_ns],
            _ => [first_ns, last_ns],
        };
        json.object(|json| {
            for (key, value) in [
                ("processType", "default"),
                ("processName", &self.name),
                ("name", &track.name),
                ("pid", &info.pid.to_string()),
            ] {
                json.key(key)?;
                json.text(value)?;
            }
            json.key("tid")?;
            json.number(track.tid)?;
            for key in ["isMainThread", "showMarkersInTimeline"] {
                json.key(key)?;
                json.number(key != "isMainThread" || place == PROCESS)?;
            }
            json.key("processStartupTime")?;
            json.number(0)?;
            json.key("processShutdownTime")?;
            json.number("null")?;
            for (key, time_ns) in ["registerTime", "unregisterTime"].into_iter().zip(span) {
                json.key(key)?;
                json.milliseconds(self.times.since(time_ns))?;
            }
            json.column("pausedRanges", self.profile.gaps(), |json, gap| {
                self.paused(gap, json)
            })?;
            self.samples(&rows, json)?;
            self.allocated(place, json)?;
            markers.write(place, &mut self.tables, json)
        })?;
        Ok(rows.len())
    }

    fn paused<W: Write>(&self, gap: &Gap, json: &mut JsonWriter<W>) -> io::Result<()> {
        json.object(|json| {
            json.key("startTime")?;
            json.milliseconds(self.times.since(gap.time_ns))?;
            json.key("endTime")?;
            let end_ns = gap.time_ns.saturating_add(gap.duration_ns);
            json.milliseconds(self.times.since(end_ns))?;
            json.key("reason")?;
            json.text("profiler-paused")
        })
    }

    fn samples<W: Write>(&self, rows: &[Row], json: &mut JsonWriter<W>) -> io::Result<()> {
        let (times, are_times) = (self.times, self.rows.are_times());
        json.key("samples")?;
        json.object(|json| {
            json.column("stack", rows, |json, row| json.number(row.stack))?;
            json.column("time", rows, |json, row| {
                json.milliseconds(times.since(row.time_ns))
            })?;
            json.column("weight", rows, |json, row| match are_times {
                true => json.milliseconds(row.weight.into()),
                false => json.number(row.weight),
            })?;
            json.key("weightType")?;
            json.text(if are_times { "tracing-ms" } else { "samples" })?;
            if self.rows.have_cpu_time() {
                json.column("threadCPUDelta", rows, |json, row| json.number(row.cpu_ns))?;
            }
            length(json, rows.len())
        })
    }

    /// Writes sampled allocations, if a thread has any.
    fn allocated<W: Write>(&mut self, place: usize, json: &mut JsonWriter<W>) -> io::Result<()> {
        let profile = self.profile;
        let ids = self.allocations.of(place).iter();
        let all = ids.filter_map(|id| profile.allocations().get(*id as usize));
        let mut all: Vec<_> = all.collect();
        if all.is_empty() {
            return Ok(());
        }
        all.sort_by_key(|it| it.time_ns);
        let tables = &mut self.tables;
        let times = self.times;
        json.key("nativeAllocations")?;
        json.object(|json| {
            json.column("time", &all, |json, it| {
                json.milliseconds(times.since(it.time_ns))
            })?;
            json.column("weight", &all, |json, it| json.number(it.bytes))?;
            json.key("weightType")?;
            json.text("bytes")?;
            json.column("stack", &all, |json, it| {
                json.number(tables.stack(it.node, ON_CPU))
            })?;
            length(json, all.len())
        })
    }
}

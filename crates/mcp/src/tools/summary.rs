//! The tool `summary`: content and size of a recording, its losses, and titles of findings.

use super::{Tool, opened};
use crate::answer::{
    Answer, Unit, amount, amount_schema, integer, list, object, rounded, schema, short, string,
    typed,
};
use crate::arguments::Arguments;
use crate::recordings::Recordings;
use crate::selection::{FILE, cautions};
use dwell_explain::Options;
use dwell_profile::{IDLE, Profile, Recorder, WallFilter, Weight};
use dwell_report::{count, date, duration};
use serde_json::{Value, json};

/// Causes of wall time.
const CAUSES: usize = 8;
/// Length of the program's command line.
const COMMAND: usize = 160;

pub(crate) const SUMMARY: Tool = Tool {
    name: "summary",
    title: "Summary of a recording",
    about: "Content of a recording: program, JVM, duration, events, threads, CPU time, wall time \
            by cause, lost samples, failed stacks, and the findings' titles as rows. Begin here.",
    arguments: || vec![FILE],
    output,
    answer,
};

fn output() -> Value {
    let cause = object(&[("name", string()), ("total", amount_schema())]);
    let loss = object(&[
        ("cause", string()),
        ("samples", integer()),
        ("time", string()),
    ]);
    let finding = object(&[
        ("what", string()),
        ("rule", string()),
        ("lost", typed(&["string", "null"])),
    ]);
    let fields = [
        ("file", string()),
        ("files", list(string())),
        ("program", string()),
        ("pid", integer()),
        ("jvm", string()),
        ("recorded", string()),
        ("durationNs", integer()),
        ("duration", string()),
        ("recorder", string()),
        ("has", list(string())),
        ("threads", integer()),
        ("virtualThreads", integer()),
        ("cpu", amount_schema()),
        ("cpuUnit", string()),
        ("percentOfProcessCpu?", typed(&["number"])),
        ("wall?", amount_schema()),
        ("idle?", string()),
        ("causes", list(cause)),
        ("failedStacks", amount_schema()),
        ("lost", list(loss)),
        ("overheadPercent?", typed(&["number"])),
    ];
    schema(&fields, finding)
}

fn answer(recordings: &mut Recordings, arguments: &Arguments) -> Result<Answer, String> {
    let (profile, mut answer) = opened(recordings, arguments, "Summary, findings as rows")?;
    answer.put("files", recordings.names().to_vec());
    origin(&mut answer, &profile);
    sums(&mut answer, &profile);
    let explanation = dwell_explain::explain(&profile, &Options::default());
    let rows = explanation.findings.iter().map(|finding| {
        json!({
            "what": finding.what,
            "rule": finding.rule,
            "lost": finding.lost_ns().map(duration),
        })
    });
    answer.rows = rows.collect();
    answer.rows_in_all = answer.rows.len();
    let others = profile.info().other_events.iter();
    let others =
        others.map(|(name, number)| format!("not included: {} samples of {name}", count(*number)));
    answer.notes = others.collect();
    answer.notes.extend(cautions(&profile));
    Ok(answer)
}

fn origin(answer: &mut Answer, profile: &Profile) {
    let info = profile.info();
    answer.put("program", short(&info.java_arguments, COMMAND));
    answer.put("pid", info.pid);
    answer.put("jvm", info.jvm());
    answer.put("recorded", date(info.start_ns));
    answer.put("durationNs", info.duration_ns);
    answer.put("duration", duration(info.duration_ns));
    let interval = match info.interval_ns {
        0 => String::new(),
        ns => format!(" every {}", duration(ns)),
    };
    let recorder = match info.recorder() {
        Recorder::Dwell => format!("dwell {}", info.profiler_version),
        Recorder::Jdk => "the JDK's recorder".to_owned(),
        Recorder::Other => "another profiler".to_owned(),
    };
    let recorder = format!("{recorder} {} {}{interval}", info.mode, info.engine);
    answer.put("recorder", recorder.trim());
    let has = [
        ("cpu", profile.total().samples > 0),
        ("wall", profile.has_wall()),
        ("alloc", profile.has_allocations()),
        ("live", profile.has_live()),
        ("lock", profile.has_locks()),
        ("requests", !profile.requests().is_empty()),
        ("safepoints", !profile.safepoints().is_empty()),
    ];
    let has = has.iter().filter(|(_, has)| *has).map(|(name, _)| *name);
    answer.put("has", has.collect::<Vec<&str>>());
    let of_virtual = profile.threads().iter().filter(|it| it.is_virtual).count();
    answer.put("threads", profile.threads().len() - of_virtual);
    answer.put("virtualThreads", of_virtual);
}

fn sums(answer: &mut Answer, profile: &Profile) {
    let total = profile.total();
    let unit = Unit::of(profile.unit());
    answer.put("cpu", amount(&total, &total, unit));
    answer.put("cpuUnit", unit.label());
    if let Some(share) = profile.cpu_share() {
        answer.put("percentOfProcessCpu", rounded(share * 100.0));
    }
    answer.put("failedStacks", amount(&profile.failed(), &total, unit));
    let lost = profile.losses().iter().filter(|loss| loss.samples > 0);
    let lost = lost.map(|loss| {
        json!({
            "cause": loss.cause, "samples": loss.samples, "time": duration(loss.weight_ns),
        })
    });
    answer.put("lost", lost.collect::<Vec<Value>>());
    if let Some(share) = profile.self_cost_share() {
        answer.put("overheadPercent", rounded(share * 100.0));
    }
    let filter = WallFilter::default();
    let mut causes = match profile.has_wall() {
        true => profile.wall_by(&filter, |wall| wall.cause),
        false => Vec::new(),
    };
    causes.retain(|(cause, _)| *cause != IDLE);
    let mut busy = Weight::default();
    causes.iter().for_each(|(_, weight)| busy += weight);
    if profile.has_wall() {
        answer.put("wall", amount(&busy, &busy, Unit::Nanoseconds));
    }
    if let Some(idle) = profile.idle(&filter).filter(|_| profile.has_wall()) {
        let text = format!(
            "{} of {} of {} threads, not in wall and causes",
            duration(idle.weight.sum),
            count(idle.threads as u64),
            count(idle.all_threads as u64)
        );
        answer.put("idle", text);
    }
    let causes = causes.iter().take(CAUSES).map(|(cause, weight)| {
        json!({ "name": cause, "total": amount(weight, &busy, Unit::Nanoseconds) })
    });
    answer.put("causes", causes.collect::<Vec<Value>>());
}

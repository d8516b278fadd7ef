//! The tool `threads_at`: the activity of each thread at a time of the recording.

use super::{Tool, opened};
use crate::answer::{
    Answer, Unit, amount, amount_schema, integer, list, object, schema, string, typed,
};
use crate::arguments::{Argument, Arguments, Kind};
use crate::recordings::Recordings;
use crate::selection::{FILE, LIMIT_OF_ROWS, OFFSET, THREAD, cautions, page};
use dwell_profile::{
    ContextId, IDLE, Lack, NodeId, Profile, ThreadId, WallFilter, Weight, matches,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The window around the time, in milliseconds.
const WINDOW_MS: f64 = 100.0;
/// Activities of a thread, and methods of a stack.
const ACTIVITIES: usize = 3;
const STACK: usize = 8;

const AT: Argument = Argument::new(
    "at_s",
    Kind::Number(0.0, 1e9),
    "The time, in seconds since the recording began",
)
.required();
const WINDOW: Argument = Argument::new(
    "window_ms",
    Kind::Number(1.0, 3.6e6),
    "The window around it, in milliseconds; default 100. Samples are usually 10 to 20 ms apart",
);

pub(crate) const THREADS_AT: Tool = Tool {
    name: "threads_at",
    title: "Activity of threads at a time",
    about: "Activities of each thread around a time: cause, place, innermost \
            methods first, object of the wait, owner of the lock. Idle threads come last. \
            percent is of the thread's own time in the window.",
    arguments: || vec![FILE, AT, WINDOW, THREAD, LIMIT_OF_ROWS, OFFSET],
    output,
    answer,
};

fn output() -> Value {
    let activity = object(&[
        ("cause", string()),
        ("time", amount_schema()),
        ("place", typed(&["string", "null"])),
        ("stack", list(string())),
        ("detail?", string()),
        ("owner?", string()),
        ("ownerPlace?", string()),
        ("endpoint?", string()),
    ]);
    let row = object(&[
        ("thread", string()),
        ("tid", integer()),
        ("javaTid", integer()),
        ("virtual", typed(&["boolean"])),
        ("activities", list(activity)),
    ]);
    let fields = [
        ("file", string()),
        ("fromNs", integer()),
        ("toNs", integer()),
    ];
    schema(&fields, row)
}

/// Time of a thread with one cause at one place.
#[derive(Default)]
struct Activity<'p> {
    weight: Weight,
    detail: &'p str,
    owner: Option<(ThreadId, Option<NodeId>)>,
    context: Option<ContextId>,
}

type Activities<'p> = BTreeMap<(&'p str, NodeId), Activity<'p>>;

fn answer(recordings: &mut Recordings, arguments: &Arguments) -> Result<Answer, String> {
    let (profile, mut answer) = opened(recordings, arguments, "Activities of threads at a time")?;
    let at = arguments.number(AT.name).unwrap_or(0.0);
    let seconds = profile.info().duration_ns as f64 / 1e9;
    if at > seconds {
        return Err(format!("at_s: the recording is {seconds:.3} s long"));
    }
    let half = arguments.number(WINDOW.name).unwrap_or(WINDOW_MS) / 2000.0;
    let from_ns = ((at - half).max(0.0) * 1e9) as u64;
    let to_ns = ((at + half) * 1e9) as u64;
    let filter = WallFilter {
        thread: arguments.text(THREAD.name).map(str::to_owned),
        from_ns: Some(from_ns),
        to_ns: Some(to_ns),
        ..WallFilter::default()
    };
    let threads = threads(&profile, &filter);
    answer.put("fromNs", from_ns);
    answer.put("toNs", to_ns);
    answer.rows_in_all = threads.len();
    let rows = page(arguments).of(threads);
    answer.rows = rows.map(|(id, of)| row(&profile, id, of)).collect();
    if let Some(pattern) = &filter.thread {
        let mut names = (0..profile.threads().len() as u32).map(|id| profile.thread_name(id));
        if !names.any(|name| matches(pattern, name)) {
            return Err("thread: no thread has such a name; `top` by thread lists them".to_owned());
        }
    }
    if !profile.has_wall() {
        let remedy = profile.info().remedy(Lack::Wall);
        let note = format!("waiting threads are missing: no wall time was recorded; {remedy}");
        answer.notes.push(note);
    }
    let note = "threads without a sample in the window are missing; window_ms makes it longer";
    answer.notes.push(note.to_owned());
    answer.notes.extend(cautions(&profile));
    Ok(answer)
}

/// Threads with their activities. Threads at work come first, in the order of their time.
fn threads<'p>(profile: &'p Profile, filter: &WallFilter) -> Vec<(ThreadId, Activities<'p>)> {
    let mut threads: BTreeMap<ThreadId, Activities<'p>> = BTreeMap::new();
    let walls = match profile.has_wall() {
        true => profile.wall(filter).collect(),
        false => Vec::new(),
    };
    for wall in walls {
        let of = threads.entry(wall.thread).or_default();
        let activity = of.entry((wall.cause, wall.node)).or_default();
        activity.weight += &wall.weight;
        activity.detail = wall.detail.map_or("", |id| profile.names().text(id));
        activity.owner = wall.owner;
        activity.context = wall.context;
    }
    // Wall time is that of Java threads only.
    let is_other = |thread: ThreadId| {
        let thread = profile.threads().get(thread as usize);
        !profile.has_wall() || thread.is_none_or(|it| it.java_tid == 0)
    };
    for sample in profile.cpu(filter).filter(|it| is_other(it.thread)) {
        let of = threads.entry(sample.thread).or_default();
        let activity = of.entry((dwell_profile::RUNNING, sample.node));
        let activity = activity.or_default();
        activity.weight += &Weight::of_sample(sample);
        activity.context = sample.context;
    }
    let mut rows: Vec<_> = threads.into_iter().collect();
    let busy = |of: &Activities<'_>| -> u64 {
        let busy = of.iter().filter(|((cause, _), _)| *cause != IDLE);
        busy.fold(0, |sum, (_, it)| sum.saturating_add(it.weight.sum))
    };
    rows.sort_by_cached_key(|(id, of)| (std::cmp::Reverse(busy(of)), *id));
    rows
}

fn row(profile: &Profile, id: ThreadId, of: Activities<'_>) -> Value {
    let thread = profile.threads().get(id as usize);
    let mut whole = Weight::default();
    of.values().for_each(|it| whole += &it.weight);
    let mut activities: Vec<_> = of.into_iter().collect();
    activities.sort_by_key(|(_, it)| std::cmp::Reverse(it.weight.sum));
    let activities = activities.iter().take(ACTIVITIES);
    let activities = activities.map(|((cause, node), it)| {
        let mut value = json!({
            "cause": cause,
            "time": amount(&it.weight, &whole, unit(profile)),
            "place": profile.place(*node),
            "stack": stack(profile, *node),
        });
        let mut put = |name: &str, text: Option<String>| {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                value[name] = text.into();
            }
        };
        put("detail", Some(it.detail.to_owned()));
        let owner = it.owner.map(|(owner, _)| profile.thread_name(owner));
        put("owner", owner.map(str::to_owned));
        let place = it.owner.and_then(|(_, node)| profile.place(node?));
        put("ownerPlace", place);
        let endpoint = it.context.and_then(|it| profile.endpoint(it));
        put("endpoint", endpoint.map(str::to_owned));
        value
    });
    json!({
        "thread": profile.thread_name(id),
        "tid": thread.map_or(0, |it| it.os_tid),
        "javaTid": thread.map_or(0, |it| it.java_tid),
        "virtual": thread.is_some_and(|it| it.is_virtual),
        "activities": activities.collect::<Vec<Value>>(),
    })
}

/// Wall time is time in any recording.
fn unit(profile: &Profile) -> Unit {
    match profile.has_wall() {
        true => Unit::Nanoseconds,
        false => Unit::of(profile.unit()),
    }
}

/// The innermost methods with their lines: the innermost frame, and Java frames if there are any.
fn stack(profile: &Profile, node: NodeId) -> Vec<String> {
    let frame_of = |frame: u32| profile.frames().get(frame as usize).copied();
    let is_java = |frame: u32| frame_of(frame).is_some_and(|it| it.kind.is_java());
    let has_java = profile.tree().stack(node).any(is_java);
    let frames = profile.tree().stack(node).enumerate();
    let frames = frames.filter(|(at, frame)| *at == 0 || !has_java || is_java(*frame));
    let frames = frames.take(STACK).filter_map(|(_, frame)| {
        let (method, _) = profile.method_of(frame)?;
        let name = profile.method_name(method);
        Some(match frame_of(frame).map_or(0, |it| it.line) {
            0 => name,
            line => format!("{name}:{line}"),
        })
    });
    frames.collect()
}

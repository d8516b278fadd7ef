//! Parquet: a file for each table, for engines that answer SQL.
//!
//! Events have the name of their thread and of their endpoint, and the id of their stack. Names of
//! methods are in `stacks` and `frames`. Weights are exact. Unknown texts and ids are null.

mod column_writer;
mod content_ids;
mod table_source;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use column_writer::{Columns, Value, write};
use dwell_profile::{
    Allocation, ContextId, Frame, FrameId, Late, LiveObject, Locked, Look, Loss, MonitorOwner,
    NodeId, Profile, Request, Safepoint, Sample, Span, Thread, ThreadId, group_of,
};
use table_source::{Source, signed};

/// The tables. The file of a table has its name, with `.parquet`.
pub const TABLES: [&str; 14] = [
    "recording",
    "samples",
    "waits",
    "allocations",
    "live",
    "locks",
    "owners",
    "requests",
    "spans",
    "safepoints",
    "late",
    "threads",
    "stacks",
    "frames",
];

/// Writes the tables of a profile, each to the file that `open` opens for its name.
///
/// # Errors
///
/// Only those of `open` and its files.
pub fn parquet<W: Write + Send>(
    profile: &Profile,
    mut open: impl FnMut(&'static str) -> io::Result<W>,
) -> io::Result<()> {
    let source = &Source::of(profile);
    for table in TABLES {
        let out = open(table)?;
        match table {
            "recording" => {
                let rows = std::slice::from_ref(profile);
                write(out, rows, &recording(source), |_| 0)
            }
            "samples" => write(out, profile.samples(), &samples(source), |_| 0),
            "waits" => write(out, profile.looks(), &waits(source), |_| 0),
            "allocations" => {
                let columns = allocations(source, |it: &Allocation| *it);
                write(out, profile.allocations(), &columns, |_| 0)
            }
            "live" => write(out, profile.live(), &live(source), |_| 0),
            "locks" => write(out, &source.locked, &locks(source), |_| 0),
            "owners" => write(out, profile.monitor_owners(), &owners(source), |_| 0),
            "requests" => write(out, profile.requests(), &requests(source), |_| 0),
            "spans" => write(out, profile.spans(), &spans(), |_| 0),
            "safepoints" => write(out, profile.safepoints(), &safepoints(source), |_| 0),
            "late" => write(out, profile.late(), &late(source), |_| 0),
            "threads" => write(out, profile.threads(), &threads(source), |_| 0),
            "stacks" => {
                let depth = |node: &NodeId| source.depth(*node);
                write(out, &source.stacks, &stacks(source), depth)
            }
            _ => write(out, &source.frames, &frames(source), |_| 0),
        }?;
    }
    Ok(())
}

/// The thread, the request and the stack of an event.
#[derive(Clone, Copy)]
struct Who {
    thread: ThreadId,
    context: Option<ContextId>,
    node: NodeId,
}

/// Adds the columns of [`Who`].
fn with_who<'a, R>(
    columns: Columns<'a, R>,
    source: &'a Source<'_>,
    of: impl Fn(&R) -> Who + Copy + 'a,
) -> Columns<'a, R> {
    let request = move |row: &R| source.request(of(row).context);
    columns
        .text("thread", move |row| source.thread(of(row).thread))
        .int("thread_id", move |row| of(row).thread.into())
        .text("endpoint", move |row| request(row)?.endpoint.clone())
        .text("trace_id", move |row| request(row)?.trace.clone())
        .id("span_id", move |row| request(row)?.span)
        .id("request_id", move |row| request(row)?.root)
        .text("labels", move |row| request(row)?.labels.clone())
        .id("stack_id", move |row| source.stack(of(row).node))
}

fn recording<'a>(source: &'a Source<'_>) -> Columns<'a, Profile> {
    let new = |text: &str| source.new_text(text);
    let lost = |it: &Profile, of: fn(&Loss) -> u64| {
        let lost = it.losses().iter().map(of);
        lost.fold(0, u64::saturating_add)
    };
    Columns::default()
        .int("start_ns", |it: &Profile| it.info().start_ns)
        .int("duration_ns", |it| it.info().duration_ns)
        .id("pid", |it| Some(it.info().pid))
        .text("jvm", move |it| new(&it.info().jvm_name))
        .text("jvm_version", move |it| new(&it.info().jvm_version))
        .text("dwell_version", move |it| new(&it.info().profiler_version))
        .text("events", move |it| new(&it.info().mode))
        .text("engine", move |it| new(&it.info().engine))
        .int("interval_ns", |it| it.info().interval_ns)
        .id("cpu_ns", |it| Some(signed(it.cpu_use()?.sum_ns())))
        .int("lost_samples", move |it| lost(it, |loss| loss.samples))
        .int("lost_ns", move |it| lost(it, |loss| loss.weight_ns))
        .flag("is_complete", |it| it.unread().is_none())
}

fn samples<'a>(source: &'a Source<'_>) -> Columns<'a, Sample> {
    let cause = source.new_text(dwell_profile::RUNNING);
    let in_wall = source.profile.samples_in_wall();
    let columns = Columns::default()
        .int("time_ns", |it: &Sample| it.time_ns)
        .id("weight_ns", |it| source.time_of(it))
        .int("count", |it| it.count.max(1).into())
        .text("cause", move |_| cause.clone());
    with_who(columns, source, |it| Who {
        thread: it.thread,
        context: it.context,
        node: it.node,
    })
    .text("failure", |it| source.name(it.failure?))
    .with(
        "in_wall",
        Value::Bool(Box::new(move |place, _| in_wall.get(place).copied())),
    )
}

fn waits<'a>(source: &'a Source<'_>) -> Columns<'a, Look> {
    let carrier = |place| source.thread(source.profile.carrier_of_look(place)?);
    let columns = Columns::default()
        .int("time_ns", |it: &Look| it.time_ns)
        .int("duration_ns", |it| it.duration_ns)
        .int("weight_ns", |it| it.weight_ns)
        .int("count", |it| it.count)
        .text("cause", |it| source.name(it.cause))
        .text("detail", |it| source.name(it.detail?))
        .text("owner", |it| source.thread(it.owner?))
        .id("owner_id", |it| it.owner.map(i64::from))
        .id("owner_stack_id", |it| source.stack(it.owner_node?))
        .with(
            "carrier",
            Value::Text(Box::new(move |place, _| carrier(place))),
        );
    with_who(columns, source, |it| Who {
        thread: it.thread,
        context: it.context,
        node: it.node,
    })
    .flag("in_wall", |it| source.is_wall(it.thread, it.context))
}

/// The columns of an allocation. The class is no part of the stack.
fn allocations<'a, R>(
    source: &'a Source<'_>,
    of: impl Fn(&R) -> Allocation + Copy + 'a,
) -> Columns<'a, R> {
    let if_known = |size: u64| (size > 0).then_some(size);
    let columns = Columns::default()
        .int("time_ns", move |row: &R| of(row).time_ns)
        .int("weight_bytes", move |row| of(row).bytes)
        .double("objects", move |row| {
            let it = of(row);
            if_known(it.size).map(|_| it.objects())
        })
        .id("size", move |row| if_known(of(row).size).map(signed))
        .text("class", move |row| source.name(of(row).class));
    with_who(columns, source, move |row| Who {
        thread: of(row).thread,
        context: of(row).context,
        node: source.profile.tree().parent(of(row).node),
    })
}

fn live<'a>(source: &'a Source<'_>) -> Columns<'a, LiveObject> {
    allocations(source, |it: &LiveObject| it.allocated)
        .int("age_ns", |it| it.age_ns)
        .int("collections", |it| it.collections)
}

/// The columns of a wait for a lock. The lock's class is no part of the stack.
fn locks<'a>(source: &'a Source<'_>) -> Columns<'a, Locked> {
    let columns = Columns::default()
        .int("time_ns", |it: &Locked| it.time_ns)
        .int("duration_ns", |it| it.duration_ns)
        .int("weight_ns", |it| it.weight.sum)
        .double("waits", |it| (!it.is_look).then_some(it.waits))
        .text("cause", |it| {
            // Monitors have events; samples cover all other locks.
            source.new_text(if it.is_look { "lock" } else { "monitor" })
        })
        .text("class", |it| source.name(it.class))
        .text("owner", |it| source.thread(it.owner?))
        .id("owner_id", |it| it.owner.map(i64::from))
        .flag("is_sampled", |it| it.is_look);
    with_who(columns, source, |it| Who {
        thread: it.thread,
        context: it.context,
        node: source.profile.tree().parent(it.node),
    })
}

/// The columns of the owner of a monitor. The thread and the stack are the owner's.
fn owners<'a>(source: &'a Source<'_>) -> Columns<'a, MonitorOwner> {
    Columns::default()
        .int("time_ns", |it: &MonitorOwner| it.time_ns)
        .int("duration_ns", |it| it.duration_ns)
        .int("weight_ns", |it| it.weight_ns)
        .text("class", |it| source.name(it.class))
        .text("thread", |it| source.thread(it.owner?))
        .id("thread_id", |it| it.owner.map(i64::from))
        .text("failure", |it| source.name(it.failure?))
        .text("waiter", |it| source.thread(it.waiter?))
        .id("waiter_id", |it| it.waiter.map(i64::from))
        .id("waiter_stack_id", |it| source.stack(it.waiter_node))
        .id("stack_id", |it| source.stack(it.node?))
}

fn requests<'a>(source: &'a Source<'_>) -> Columns<'a, Request> {
    Columns::default()
        .int("time_ns", |it: &Request| it.time_ns)
        .int("duration_ns", |it| it.duration_ns)
        .int("count", |it| it.count)
        .text("endpoint", |it| source.name(it.endpoint?))
        .text("trace_id", |it| table_source::trace(it.trace_id))
        .id("request_id", |it| table_source::span(it.local_root_span_id))
}

fn spans<'a>() -> Columns<'a, Span> {
    Columns::default()
        .int("time_ns", |it: &Span| it.time_ns)
        .int("duration_ns", |it| it.duration_ns)
        .id("request_id", |it| table_source::span(it.local_root_span_id))
        .id("span_id", |it| table_source::span(it.span_id))
}

fn safepoints<'a>(source: &'a Source<'_>) -> Columns<'a, Safepoint> {
    Columns::default()
        .int("time_ns", |it: &Safepoint| it.time_ns)
        .int("duration_ns", Safepoint::duration_ns)
        .int("reaching_ns", |it| it.reaching_ns)
        .int("operation_ns", |it| it.operation_ns)
        .text("operation", |it| source.name(it.operation))
        .int("safepoint_id", |it| it.id)
        .int("threads", |it| it.threads)
        .int("running", |it| it.running)
        .int("count", |it| it.count)
        .flag("is_known", |it| it.is_known)
}

fn late<'a>(source: &'a Source<'_>) -> Columns<'a, Late> {
    Columns::default()
        .int("time_ns", |it: &Late| it.time_ns)
        .int("duration_ns", |it| it.duration_ns)
        .int("weight_ns", |it| it.held_ns)
        .int("safepoint_id", |it| it.safepoint)
        .text("operation", |it| source.name(it.operation))
        .text("thread", |it| source.thread(it.thread))
        .int("thread_id", |it| it.thread.into())
        .text("state", |it| source.name(it.state))
        .flag("is_last", |it| it.is_last)
        .id("stack_id", |it| source.stack(it.node?))
}

fn threads<'a>(source: &'a Source<'_>) -> Columns<'a, Thread> {
    let number = |number: i64| (number != 0).then_some(number);
    let pool = |it: &Thread| group_of(source.profile.names().text(it.name));
    Columns::default()
        .with(
            "thread_id",
            Value::Int(Box::new(|place, _: &Thread| i64::try_from(place).ok())),
        )
        .text("thread", |it| source.name(it.name))
        .text("pool", move |it| source.new_text(&pool(it)))
        .id("os_tid", move |it| number(it.os_tid))
        .id("java_tid", move |it| number(it.java_tid))
        .flag("is_virtual", |it| it.is_virtual)
}

fn stacks<'a>(source: &'a Source<'_>) -> Columns<'a, NodeId> {
    let elements = |_: usize, node: &NodeId, elements: &mut Vec<i64>| {
        let stack = source.profile.tree().stack(*node);
        elements.extend(stack.filter_map(|frame| source.frame(frame)));
    };
    Columns::default()
        .id("stack_id", |node: &NodeId| source.stack(*node))
        .id("path_id", |node| source.path(*node))
        .int("depth", |node| source.depth(*node) as u64)
        .text("method", |node| source.method_at_end(*node))
        .id("line", |node| {
            table_source::line(&source.profile.leaf(*node)?)
        })
        .text("own_method", |node| source.own_method(*node))
        .with("frames", Value::List(Box::new(elements)))
}

fn frames<'a>(source: &'a Source<'_>) -> Columns<'a, FrameId> {
    let frame = |frame: &FrameId| source.profile.frames().get(*frame as usize);
    let method = move |it: &FrameId| source.profile.methods().get(frame(it)?.method as usize);
    let kind = |frame: &Frame| source.profile.kind_label(frame.kind);
    let library = |it: &Frame| source.new_text(crate::sample_facts::library(source.profile, it));
    let is_java = |it: &Frame| crate::sample_facts::is_java(source.profile, it);
    Columns::default()
        .id("frame_id", |it: &FrameId| source.frame(*it))
        .text("method", move |it| source.method(frame(it)?.method))
        .text("class", move |it| source.name(method(it)?.class))
        .text("name", move |it| source.name(method(it)?.name))
        .text("descriptor", move |it| source.name(method(it)?.descriptor))
        .id("line", move |it| table_source::line(frame(it)?))
        .text("kind", move |it| source.new_text(kind(frame(it)?)))
        .text("library", move |it| library(frame(it)?))
        .flag("is_java", move |it| frame(it).is_some_and(is_java))
}

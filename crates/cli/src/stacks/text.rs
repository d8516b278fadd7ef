//! Stacks as text, in the form of the JDK's thread dumps, for people and tools.

use super::of_jvm::is_of_jvm;
use crate::args::Stacks;
use crate::units;
use dwell_attach::Jvm;
use dwell_outside::dump::{How, Kind, OwnerText, Safepoint};
use dwell_outside::names::{Named, shown_class};
use dwell_outside::{Dump, Thread};
use dwell_profile::readable_function;
use dwell_report::plain;
use dwell_wall::cause::Cause;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

/// Threads of a group that are named; for more, the number is printed.
const NAMES_MAX: usize = 8;

/// The whole dump.
pub fn whole(jvm: &Jvm, dump: &Dump, args: &Stacks) -> String {
    let is_shown = |thread: &&Thread| args.native || !is_of_jvm(thread);
    let mut text = head(jvm, dump, is_shown);
    if let Some(safepoint) = &dump.safepoint {
        stop(&mut text, safepoint, dump);
    }
    let is_grouped = args.group;
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: HashMap<_, usize> = HashMap::new();
    for (at, thread) in dump.threads.iter().enumerate() {
        if !is_shown(&thread) {
            continue;
        }
        if !is_grouped {
            groups.push(vec![at]);
            continue;
        }
        let key = (thread.kind == Kind::Native, &thread.frames, thread.cause);
        let group = *known.entry(key).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    if is_grouped {
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    }
    for group in &groups {
        text.push('\n');
        members(&mut text, dump, group);
        if let Some(thread) = group.first().and_then(|at| dump.threads.get(*at)) {
            frames(&mut text, thread, dump, args, group.len() > 1);
        }
    }
    deadlocks(&mut text, dump);
    let left_out = dump.threads.iter().filter(|it| !is_shown(it)).count();
    if left_out > 0 {
        let are = if left_out == 1 { " is" } else { "s are" };
        let _ = writeln!(
            text,
            "\n{left_out} thread{are} the JVM's own and not shown."
        );
    }
    if dump.more_virtual {
        text.push_str("\nThere are more virtual threads; --virtual=N shows N of them.\n");
    }
    text
}

fn head(jvm: &Jvm, dump: &Dump, is_shown: impl Fn(&&Thread) -> bool) -> String {
    let since = dump.at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let mut text = format!(
        "{} JVM {} {} (JDK {}), from outside in {}\n",
        dwell_report::stamp(since.as_secs()),
        jvm.pid,
        plain(jvm.main.as_deref().unwrap_or("?")),
        jvm.version.as_deref().unwrap_or("?"),
        units::short(dump.took.as_nanos() as u64),
    );
    let of = |kind| {
        let shown = dump.threads.iter().filter(&is_shown);
        shown.filter(move |it| it.kind == kind).count()
    };
    let _ = write!(text, "{} Java threads", of(Kind::Platform));
    for (kind, name) in [(Kind::Virtual, "virtual"), (Kind::Native, "native")] {
        if of(kind) > 0 {
            let _ = write!(text, ", {} {name}", of(kind));
        }
    }
    let mut causes: HashMap<Cause, usize> = HashMap::new();
    let shown = dump.threads.iter().filter(&is_shown);
    for thread in shown.filter(|it| it.kind != Kind::Native) {
        *causes.entry(thread.cause).or_default() += 1;
    }
    let told = Cause::ALL
        .iter()
        .filter_map(|cause| Some(format!("{} {}", causes.get(cause)?, cause.name())));
    let _ = writeln!(text, ": {}", told.collect::<Vec<_>>().join(", "));
    match dump.process_state {
        Some('T' | 't') => text.push_str("The process is stopped (kill -CONT resumes it).\n"),
        Some('Z' | 'X') => text.push_str("The process is exiting.\n"),
        _ => {}
    }
    if !dump.safepoints_are_known {
        text.push_str("Whether a safepoint is under way is unknown: libjvm.so has no symbols.\n");
    }
    text
}

fn stop(text: &mut String, safepoint: &Safepoint, dump: &Dump) {
    let operation = match safepoint.operation.as_str() {
        "" => "an operation of the VM",
        operation => operation,
    };
    let what = match safepoint.is_reached {
        true => "All threads are stopped at a safepoint",
        false => "Reaching a safepoint: all threads must stop",
    };
    let _ = write!(text, "\n{what} for {}", plain(operation));
    if let Some(since) = safepoint.since {
        let _ = write!(text, ", since {}", units::short(since.as_nanos() as u64));
    }
    if let Some(thread) = safepoint.asked_by.and_then(|at| dump.threads.get(at)) {
        let _ = write!(text, ", requested by \"{}\"", plain(&thread.name));
    }
    text.push_str(".\n");
    for thread in safepoint.late.iter().filter_map(|at| dump.threads.get(*at)) {
        let state = thread.vm_state.map_or("?", |state| state.name());
        let _ = writeln!(
            text,
            "  has not arrived: {}, {state}, {}{}",
            title(thread),
            thread.cause.name(),
            on(thread)
        );
    }
}

/// Name and number.
fn title(thread: &Thread) -> String {
    let mut text = format!("\"{}\"", plain(&thread.name));
    if let Some(id) = thread.java_id {
        let _ = write!(text, " #{id}");
    }
    text
}

fn members(text: &mut String, dump: &Dump, group: &[usize]) {
    let threads: Vec<&Thread> = group
        .iter()
        .filter_map(|at| dump.threads.get(*at))
        .collect();
    let [thread] = threads.as_slice() else {
        let names = threads.iter().take(NAMES_MAX).map(|it| title(it));
        let others = match threads.len().saturating_sub(NAMES_MAX) {
            0 => String::new(),
            others => format!(", and {others} more"),
        };
        let cause = threads.first().map_or("", |thread| thread.cause.name());
        let names = names.collect::<Vec<_>>().join(", ");
        let count = threads.len();
        let _ = writeln!(text, "{count} threads, {cause}: {names}{others}");
        return;
    };
    text.push_str(&title(thread));
    if thread.is_daemon == Some(true) {
        text.push_str(" daemon");
    }
    if thread.kind == Kind::Virtual {
        text.push_str(" virtual");
    }
    if let Some(priority) = thread.priority {
        let _ = write!(text, " prio={priority}");
    }
    if let Some(cpu_ns) = thread.cpu_ns {
        let _ = write!(text, " cpu={:.2}ms", cpu_ns as f64 / 1e6);
    }
    if let Some(tid) = thread.tid {
        let _ = write!(text, " nid={tid}");
    }
    let _ = writeln!(text, " {}{}", thread.cause.name(), on(thread));
    if let Some(state) = thread.java_state {
        let _ = writeln!(text, "   java.lang.Thread.State: {state}");
    }
    if let Some((id, name)) = &thread.mounted {
        let _ = writeln!(text, "   Carrying virtual thread \"{}\" #{id}", plain(name));
    }
}

fn on(thread: &Thread) -> String {
    let on = thread.on.as_deref();
    on.map_or(String::new(), |on| format!(" ({})", plain(on)))
}

fn frames(text: &mut String, thread: &Thread, dump: &Dump, args: &Stacks, is_group: bool) {
    let mut is_first_java = true;
    for (at, frame) in thread.frames.iter().enumerate() {
        if !is_shown(frame, thread, args) {
            continue;
        }
        let _ = writeln!(text, "\tat {}", plain(&frame_text(frame)));
        if matches!(frame, Named::Java { .. }) && !is_group {
            let is_first = std::mem::take(&mut is_first_java);
            if is_first {
                wanted(text, thread, dump);
            }
            locked(text, thread, at, is_first);
        }
    }
    if is_first_java && !is_group {
        wanted(text, thread, dump);
    }
    let note = match (thread.how, thread.failure) {
        (How::NotSampled, _) if thread.vm_state.is_none() => "runs; not sampled",
        (How::NotSampled, _) => "runs, but was not sampled: no CPU, or no permission",
        (How::BelowNative, _) => "runs; only frames below native code",
        (_, Some("truncated")) => "deeper than shown",
        _ if thread.is_blurred => "ran during the reading: may not be one moment",
        _ => "",
    };
    if !note.is_empty() {
        let _ = writeln!(text, "\t({note})");
    }
    if let Some(stood) = thread.stood {
        let stood = units::short(stood.as_nanos() as u64);
        let _ = writeln!(text, "\t(stopped for {stood} to be read)");
    }
}

/// Whether a frame is shown. Native frames, and marks for missing frames, are optional.
pub fn is_shown(frame: &Named, thread: &Thread, args: &Stacks) -> bool {
    let native_gap = dwell_outside::names::NATIVE_GAP;
    match frame {
        Named::Java { .. } => true,
        Named::Missing(why) if *why != native_gap => true,
        _ => args.native || thread.kind == Kind::Native,
    }
}

/// The awaited object in the words of the JDK's dumps, and its owner.
fn wanted(text: &mut String, thread: &Thread, dump: &Dump) {
    let Some(wanted) = &thread.wanted else { return };
    let class = wanted.class.as_deref().unwrap_or("an object");
    let what = match thread.cause {
        Cause::Monitor => "waiting to lock",
        _ if thread.waits_to_be_notified => "waiting on",
        _ => "parking to wait for ",
    };
    let owner = wanted.owner.as_ref().map(|owner| owner_text(owner, dump));
    let owner = owner.map_or(String::new(), |owner| format!(" held by {owner}"));
    let _ = writeln!(
        text,
        "\t- {what} <{:#018x}> (a {}){owner}",
        wanted.object,
        plain(class)
    );
}

/// The monitors that a frame holds. For the innermost frame they include the one that the thread
/// waits for.
fn locked(text: &mut String, thread: &Thread, frame: usize, is_first: bool) {
    let wanted = thread.wanted.as_ref().map(|wanted| wanted.object);
    let waits = is_first && thread.cause == Cause::Monitor;
    let own = thread.locked.iter().filter(|it| it.frame == frame);
    for locked in own.filter(|it| !(waits && wanted == Some(it.object))) {
        let what = match locked.is_eliminated {
            true => "eliminated",
            false => "locked",
        };
        let class = locked.class.as_deref().unwrap_or("an object");
        let _ = writeln!(
            text,
            "\t- {what} <{:#018x}> (a {})",
            locked.object,
            plain(class)
        );
    }
}

fn owner_text(owner: &OwnerText, dump: &Dump) -> String {
    let thread = owner.thread.and_then(|at| dump.threads.get(at));
    match (thread, owner.id) {
        (Some(thread), _) => title(thread),
        (None, Some(id)) => format!("thread #{id}"),
        (None, None) => "a thread that was not found".to_owned(),
    }
}

/// A frame in the form of a stack trace.
pub fn frame_text(frame: &Named) -> String {
    match frame {
        Named::Java { method, line, .. } => {
            let class = shown_class(&method.class);
            let place = match (&method.source, line) {
                (Some(source), Some(line)) => format!("{source}:{line}"),
                (_, None) if method.is_native => "Native Method".to_owned(),
                (Some(source), None) => source.clone(),
                (None, _) => "Unknown Source".to_owned(),
            };
            format!("{class}.{}({place})", method.name)
        }
        Named::Native {
            library, function, ..
        } => match function {
            Some(function) => format!("{} ({library})", readable_function(function)),
            None => format!("[no symbol] ({library})"),
        },
        Named::Stub(name) => format!("[stub] {name}"),
        Named::Missing(why) => format!("[{why}]"),
    }
}

fn deadlocks(text: &mut String, dump: &Dump) {
    for circle in &dump.deadlocks {
        let threads: Vec<&Thread> = circle
            .iter()
            .filter_map(|at| dump.threads.get(*at))
            .collect();
        let _ = writeln!(text, "\nDeadlock of {} threads:", threads.len());
        for thread in threads {
            let wanted = thread.wanted.as_ref();
            let class = wanted
                .and_then(|it| it.class.as_deref())
                .unwrap_or("an object");
            let owner = wanted.and_then(|it| it.owner.as_ref());
            let owner = owner.map_or(String::new(), |owner| owner_text(owner, dump));
            let _ = writeln!(
                text,
                "  {} waits for <{:#018x}> (a {}), held by {owner}",
                title(thread),
                wanted.map_or(0, |it| it.object),
                plain(class),
            );
        }
    }
}

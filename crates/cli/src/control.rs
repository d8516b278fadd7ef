//! `dwell start`, `stop`, `dump` and `status`: recordings in the background.

use crate::agent::{self, Agent};
use crate::args::{Fetch, OneJvm, Start};
use crate::record::outputs::{default_base, unforeseen, with_ending};
use crate::record::start_options;
use crate::reply::Reply;
use crate::writing::{self, Identity, Named, Output};
use crate::{Usage, change, find, lease, recording, unanswered, units};
use anyhow::{Context, Result};
use dwell_attach::Target;
use dwell_profile::{count, plural};
use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// `dwell start`.
pub fn start(args: &Start) -> Result<()> {
    let target = find::target(&args.jvm)?;
    let pid = target.jvm().pid;
    let named = match &args.output {
        Some(file) => Some(file_option(file, &target)?),
        None => None,
    };
    let agent = Agent::new(target)?;
    if agent.was_loaded()
        && let Some(events) = agent.command("status")?.running_events()
    {
        if let Some(why) = change::refusal(args, events, pid) {
            anyhow::bail!(why);
        }
        let reply = agent.command(&change::options(args, events, named.as_deref()))?;
        return crate::print(&change::described(pid, &reply));
    }
    let file = match named {
        Some(file) => file,
        None => default_file(agent.target())?,
    };
    let mut options = format!("{},file={file}", start_options(&args.sampling));
    if let Some(size) = &args.max_size {
        let _ = write!(options, ",maxsize={size}");
    }
    if let Some(age) = args.max_age {
        let _ = write!(options, ",maxage={}ms", age.as_millis());
    }
    let reply = agent.command(&options)?;
    let file = reply.get("file").unwrap_or(&file);
    crate::print(&format!(
        "recording JVM {pid} to {file}; end it with: dwell stop {pid}\n"
    ))
}

/// The user's path in the form of the agent, which replaces `%p` and `%t`.
fn file_option(file: &str, target: &Target) -> Result<String> {
    let absolute = match target.shares_files() {
        true => std::path::absolute(file).with_context(|| file.to_owned())?,
        false => Path::new(file).to_owned(),
    };
    let Some(path) = absolute.to_str().filter(|path| path.starts_with('/')) else {
        let text = "the JVM sees other directories than you; give an absolute path";
        return Err(Usage(format!("-o {file}: {text}")).into());
    };
    if !agent::can_be_an_option(&path.replace("%p", "").replace("%t", "")) {
        let text = "the JVM takes no commas, and % only as %p and %t; choose another name";
        return Err(Usage(format!("-o {file}: {text}")).into());
    }
    Ok(path.to_owned())
}

/// A file in this directory, or in a new one that only the JVM's user may use.
fn default_file(target: &Target) -> Result<String> {
    let jvm = target.jvm();
    let name = default_base(find::simple_name(jvm.main.as_deref().unwrap_or("jvm")));
    let mut here = std::path::absolute(&name).context("the current directory")?;
    if writing::is_shared(&writing::folder_of(&here)) {
        here = unforeseen(&here);
    }
    let here = with_ending(&here, "jfr");
    match here.to_str().filter(|path| agent::can_be_an_option(path)) {
        Some(path) if target.shares_files() => Ok(path.to_owned()),
        _ => {
            let folder = format!("dwell-{}-{}", jvm.pid, agent::random_name());
            Ok(target.scratch(&folder, &format!("{name}.jfr"))?.path)
        }
    }
}

/// `dwell stop`.
pub fn stop(args: &Fetch) -> Result<()> {
    fetch(args, "stop", "recorded")
}

/// `dwell dump`.
pub fn dump(args: &Fetch) -> Result<()> {
    fetch(args, "dump", "recorded so far")
}

fn fetch(args: &Fetch, command: &str, verb: &str) -> Result<()> {
    let agent = Agent::loaded(find::target(&args.jvm)?)?;
    // After a stop, the recording cannot be fetched again. So an output that cannot be written is
    // refused while the recording still runs.
    let output = match &args.output {
        Some(path) => {
            let shown = recording::shown(path);
            let text = || format!("-o {shown} cannot be written; choose another file");
            let output = Output::begin(path, Named::ByUser).with_context(text)?;
            Some((path, output))
        }
        None => None,
    };
    let reply = agent.command(command)?;
    let Some(file) = reply.get("file") else {
        return crate::print(&described(&reply));
    };
    let mut text = format!("{verb}: {file}");
    if let Some(samples) = reply.number("samples") {
        let _ = write!(text, ", {}", plural(samples, "sample"));
    }
    if let Some(trouble) = reply.trouble() {
        let _ = write!(text, "; {trouble}");
    }
    match output {
        Some((path, output)) => match copy(agent.target(), file, path, output)? {
            true => drop(write!(text, ", copied to {}", recording::shown(path))),
            false => drop(write!(text, ", which is {}", recording::shown(path))),
        },
        None if agent.target().jvm().foreign => {
            text.push_str(" in the JVM's container; copy it with: dwell ");
            let _ = write!(text, "{command} -o FILE {}", agent.target().jvm().pid);
        }
        None => {}
    }
    text.push('\n');
    crate::print(&text)
}

/// Copies a recording of the target. `false` if the output is the same file under another name.
fn copy(target: &Target, file: &str, path: &Path, mut output: Output) -> Result<bool> {
    let mut from = agent::open_recording(target, file)?;
    let text = || format!("recorded: {file}, but copying it to {}", path.display());
    let source = Identity::of(&from).with_context(text)?;
    if Identity::at(path) == Some(source) {
        return Ok(false);
    }
    std::io::copy(&mut from, output.file()).with_context(text)?;
    cut_behind_chunks(output.file()).with_context(text)?;
    output.commit(&[source]).with_context(text)?;
    Ok(true)
}

/// The agent may write during the copy. Data after the copied header's chunk is cut off, because
/// readers would take it for another chunk.
fn cut_behind_chunks(file: &mut File) -> std::io::Result<()> {
    /// Magic, version, and the chunk's size, at the beginning of its header of 68 bytes.
    const BEGIN: usize = 16;
    const HEADER: u64 = 68;
    let len = file.metadata()?.len();
    let mut whole = 0;
    while whole + HEADER <= len {
        let mut begin = [0; BEGIN];
        file.read_exact_at(&mut begin, whole)?;
        let [b'F', b'L', b'R', 0, _, _, _, _, size @ ..] = begin else {
            break;
        };
        let end = whole.saturating_add(u64::from_be_bytes(size));
        if end < whole + HEADER || end > len {
            break;
        }
        whole = end;
    }
    if whole > 0 && whole < len {
        file.set_len(whole)?;
    }
    Ok(())
}

/// `dwell status`.
pub fn status(args: &OneJvm) -> Result<()> {
    let target = find::target(&args.jvm)?;
    let pid = target.jvm().pid;
    match Agent::loaded(target) {
        Ok(agent) => crate::print(&described(&agent.command("status")?)),
        Err(_) => crate::print(&format!("JVM {pid} is not being recorded\n")),
    }
}

/// Threads that the kernel samples without a signal, if the engine does that.
fn unsignalled(reply: &Reply) -> Option<String> {
    let samples = reply.number("unsignalled")?;
    let number = |key| reply.number(key).unwrap_or(0);
    let (rings, most) = (number("rings"), number("rings_most"));
    let refused = reply.get("rings_refused");
    let why = refused.map_or(String::new(), |error| {
        format!(
            ": the kernel refuses more ({error}); RLIMIT_MEMLOCK and kernel.perf_event_mlock_kb \
             limit locked memory"
        )
    });
    Some(format!(
        "{}; now {}, maximum {}{why}",
        plural(samples, "sample"),
        plural(rings, "thread"),
        count(most)
    ))
}

/// Number of threads with timers for their perf events, and the reason.
fn timers(reply: &Reply) -> Option<String> {
    let threads = reply.number("timers").filter(|threads| *threads > 0)?;
    Some(format!(
        "{}, switched too often for perf events: they only report that \
         they were in the kernel",
        plural(threads, "thread")
    ))
}

/// The agent's counters for people.
fn described(reply: &Reply) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "{label:<10} {value}");
    };
    match reply.get("state") {
        Some("stopped") if reply.get("file").is_some() => {
            let text = "stopped; last recording:";
            line("state", text.to_owned());
        }
        Some("stopped") => line("state", "stopped: no recording".to_owned()),
        Some(state) => line("state", state.to_owned()),
        None => {}
    }
    if let Some(file) = reply.get("file") {
        line("file", file.to_owned());
    }
    if let Some(events) = reply.get("events") {
        line("events", events.to_owned());
    }
    if let Some(engine) = reply.get("engine") {
        let reason = reply
            .get("engine_reason")
            .map_or(String::new(), |text| format!(" ({text})"));
        line("engine", format!("{engine}{reason}"));
    }
    let without = [
        ("no signal", unsignalled(reply)),
        ("no signal", unanswered::threads(reply)),
        ("timers", timers(reply)),
    ];
    for (label, text) in without {
        text.into_iter().for_each(|text| line(label, text));
    }
    if let Some(ms) = reply.number("elapsed_ms") {
        line("elapsed", units::age(Duration::from_millis(ms)));
    }
    if let Some(text) = lease::ended(reply, SystemTime::now()) {
        line("ended", text);
    } else if let Some(text) = lease::ends(reply) {
        line("ends", text);
    }
    for key in ["samples", "failed", "lost", "bytes"] {
        if let Some(value) = reply.number(key) {
            line(key, count(value));
        }
    }
    if let Some(walk) = reply.get("walk") {
        line("stacks", walk.to_owned());
    }
    let events = [
        ("wall", wall(reply)),
        ("alloc", alloc(reply)),
        ("live", live(reply)),
        ("lock", lock(reply)),
    ];
    for (label, text) in events {
        text.into_iter().for_each(|text| line(label, text));
    }
    for (label, value) in own_cost(reply) {
        line(label, value);
    }
    if let Some(trouble) = reply.trouble() {
        line("trouble", trouble.to_owned());
    }
    if !reply.text().is_empty() {
        line("note", reply.text());
    }
    text
}

/// Number and cost of wall-clock samples.
fn wall(reply: &Reply) -> Option<String> {
    let number = |key| reply.number(key);
    let interval = units::short(number("wall_interval_ns")?);
    let (looks, cpu_ns) = (number("wall_looks")?, number("wall_cpu_ns")?);
    let mut text = format!(
        "every {interval}, {} of {}, {} failed",
        plural(looks, "sample"),
        plural(number("wall_threads")?, "thread"),
        count(number("wall_failed")?)
    );
    if let Some(followed) = number("wall_followed").filter(|followed| *followed > 0) {
        let by_page = number("wall_by_page").unwrap_or(0);
        let evidence = match by_page >= looks / 2 {
            true => "the kernel's pages",
            false => "CPU clocks",
        };
        text += &format!(", {} followed by {evidence}", count(followed));
    }
    if let Some(looks) = number("wall_unmounted_looks").filter(|looks| *looks > 0) {
        let threads = number("wall_unmounted").unwrap_or(0);
        text += &format!(
            ", {} of about {} unmounted virtual threads",
            count(looks),
            count(threads)
        );
    }
    if let Some(elapsed_ns) = number("wall_ns").filter(|ns| *ns > 0) {
        let share = 100.0 * cpu_ns as f64 / elapsed_ns as f64;
        text += &format!(", {share:.2} % of a CPU");
    }
    Some(text)
}

/// Sampled allocations.
fn alloc(reply: &Reply) -> Option<String> {
    let number = |key| reply.number(key);
    let interval = number("alloc_interval")?;
    let mut text = format!(
        "every {} KiB, {} of {} MiB",
        count(interval >> 10),
        plural(number("alloc_samples")?, "sample"),
        count(number("alloc_bytes")? >> 20),
    );
    if let Some(rate) = number("alloc_rate").filter(|rate| *rate > 0) {
        text += &format!(", target about {}/s", count(rate));
    } else if let Some(asked) = number("alloc_asked").filter(|asked| *asked < interval) {
        text += &format!(", raised from {} KiB (rate limit)", asked >> 10);
    }
    if let Some(lost) = number("alloc_lost").filter(|lost| *lost > 0) {
        let bytes = number("alloc_lost_bytes").unwrap_or(0);
        text += &format!(
            ", {} of {} MiB lost (buffers full)",
            count(lost),
            count(bytes >> 20)
        );
    }
    Some(text)
}

/// Followed objects.
fn live(reply: &Reply) -> Option<String> {
    let number = |key| reply.number(key);
    let mut text = format!(
        "every {} KiB, {} followed",
        count(number("live_interval")? >> 10),
        plural(number("live_objects")?, "object")
    );
    if let Some(one_of) = number("live_one_of").filter(|one_of| *one_of > 1) {
        text += &format!(", one of {}", count(one_of));
    }
    if let Some(lost) = number("live_lost").filter(|lost| *lost > 0) {
        text += &format!(", {} lost (buffers full)", count(lost));
    }
    Some(text)
}

/// Waits for monitors, all of them and those that were recorded.
fn lock(reply: &Reply) -> Option<String> {
    let number = |key| reply.number(key);
    let interval = number("lock_interval_ns")?;
    let mut text = format!(
        "{} of {}, {} recorded (all from {} on) that stand for {}",
        plural(number("lock_waits")?, "wait"),
        units::short(number("lock_blocked_ns")?),
        count(number("lock_samples")?),
        units::short(interval),
        units::short(number("lock_sampled_ns")?),
    );
    if let Some(asked) = number("lock_asked_ns").filter(|asked| *asked < interval) {
        text += &format!(", raised from {} (rate limit)", units::short(asked));
    }
    if let Some(lost) = number("lock_lost").filter(|lost| *lost > 0) {
        let ns = units::short(number("lock_lost_ns").unwrap_or(0));
        text += &format!(", {} of {ns} lost (buffers full)", count(lost));
    }
    if let Some(untold) = number("lock_untold").filter(|untold| *untold > 0) {
        text += &format!(
            ", {} not timed (too many waiting virtual threads)",
            count(untold)
        );
    }
    Some(text)
}

/// The cost of the recording, and the causes of lost samples.
fn own_cost(reply: &Reply) -> Vec<(&'static str, String)> {
    let time = |key| reply.number(key).map(units::short);
    let mut lines = Vec::new();
    if let (Some(median), Some(p99), Some(max)) = (
        time("handler_p50_ns"),
        time("handler_p99_ns"),
        time("handler_max_ns"),
    ) {
        let waited = match reply.number("waited_ns") {
            Some(ns) if ns > 0 => format!(", waited {} for walks", units::short(ns)),
            _ => String::new(),
        };
        let text = format!("{median} median, {p99} p99, {max} longest{waited}");
        lines.push(("handler", text));
    }
    if let Some(ns) = reply.number("collections_waited_ns").filter(|ns| *ns > 0) {
        let text = format!("collections waited {} for walks", units::short(ns));
        lines.push(("handler", text));
    }
    if let (Some(cpu), Some(memory)) = (time("agent_cpu_ns"), reply.number("agent_memory")) {
        lines.push((
            "cost",
            format!(
                "{cpu} of CPU, {} KiB of memory for unwind tables and the open chunk",
                count(memory >> 10)
            ),
        ));
    }
    for (cause, samples) in reply.with_prefix("lost.") {
        let samples = samples.parse().unwrap_or(0);
        lines.push(("lost", format!("{}: {cause}", plural(samples, "sample"))));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsignalled_threads_are_reported_with_their_limits() {
        let of = |text: &str| unsignalled(&Reply::parse(text.as_bytes()).unwrap());
        assert_eq!(of("ok\nstate=running\n"), None);
        let text = "ok\nunsignalled=12\nrings=3\nrings_most=64\n";
        let told = "12 samples; now 3 threads, maximum 64";
        assert_eq!(of(text).as_deref(), Some(told));
        let text = "ok\nunsignalled=12\nrings=3\nrings_most=3\nrings_refused=errno 1\n";
        let told = of(text).unwrap();
        let part = "maximum 3: the kernel refuses more (errno 1); RLIMIT_MEMLOCK";
        assert!(told.contains(part), "{told}");
    }

    #[test]
    fn threads_with_timers_are_reported_with_the_reason() {
        let of = |text: &str| timers(&Reply::parse(text.as_bytes()).unwrap());
        assert_eq!(of("ok\nstate=running\n"), None);
        assert_eq!(of("ok\ntimers=0\n"), None);
        let told = of("ok\ntimers=3\n").unwrap();
        assert!(told.starts_with("3 threads, switched too often"), "{told}");
    }

    #[test]
    fn status_is_a_list() {
        let reply = Reply::parse(
            b"ok\nstate=running\nengine=perf\nengine_reason=allowed\nsamples=12\n\
              elapsed_ms=61000\ntrouble=\n",
        );
        assert_eq!(
            described(&reply.unwrap()),
            "state      running\nengine     perf (allowed)\nelapsed    1m01s\nsamples    12\n"
        );
    }

    #[test]
    fn ended_recording_is_reported_as_stopped() {
        let reply = Reply::parse(b"ok\nstate=stopped\n").unwrap();
        assert_eq!(described(&reply), "state      stopped: no recording\n");
    }

    #[test]
    fn cost_and_losses_are_in_the_status() {
        let reply = Reply::parse(
            b"ok\nstate=stopped\nfile=/a.jfr\nwalk=walked while paused\nhandler_p50_ns=1300\n\
              wall_interval_ns=20000000\nwall_ns=1000000000\nwall_threads=40\nwall_looks=800\n\
              wall_failed=1\nwall_cpu_ns=4000000\nwall_unmounted=9000\nwall_unmounted_looks=70\n\
              wall_followed=600\nwall_by_page=700\n\
              alloc_interval=524288\nalloc_asked=65536\n\
              alloc_samples=30\nalloc_bytes=15728640\nalloc_lost=2\n\
              alloc_lost_bytes=1048576\n\
              live_interval=65536\nlive_objects=812\nlive_one_of=4\nlive_lost=0\n\
              lock_interval_ns=1000000\nlock_asked_ns=50000\n\
              lock_waits=900\nlock_blocked_ns=3000000000\n\
              lock_samples=40\nlock_sampled_ns=2900000000\nlock_lost=1\nlock_lost_ns=1000000\n\
              handler_p99_ns=24000\nhandler_max_ns=1000000\nwaited_ns=5000000\n\
              agent_cpu_ns=80000000\nagent_memory=2097152\n\
              lost.no_free_slot_weight_moved_on=7\n",
        );
        assert_eq!(
            described(&reply.unwrap()),
            "state      stopped; last recording:\n\
             file       /a.jfr\n\
             stacks     walked while paused\n\
             wall       every 20 ms, 800 samples of 40 threads, 1 failed, 600 followed by the \
             kernel's pages, 70 of about 9,000 unmounted virtual threads, 0.40 % of a CPU\n\
             alloc      every 512 KiB, 30 samples of 15 MiB, raised from 64 KiB (rate limit), \
             2 of 1 MiB lost (buffers full)\n\
             live       every 64 KiB, 812 objects followed, one of 4\n\
             lock       900 waits of 3.0 s, 40 recorded (all from 1.0 ms on) that stand for 2.9 s, \
             raised from 50 us (rate limit), 1 of 1.0 ms lost (buffers full)\n\
             handler    1.3 us median, 24 us p99, 1.0 ms longest, waited 5.0 ms for walks\n\
             cost       80 ms of CPU, 2,048 KiB of memory for unwind tables and the open chunk\n\
             lost       7 samples: no_free_slot_weight_moved_on\n"
        );
    }

    #[test]
    fn status_names_a_full_disk() {
        let reply = Reply::parse(
            b"ok\nstate=running\nbytes=0\n\
              trouble=cannot write /full/a.jfr: no storage space\n",
        );
        assert_eq!(
            described(&reply.unwrap()),
            "state      running\nbytes      0\n\
             trouble    cannot write /full/a.jfr: no storage space\n"
        );
    }

    fn chunk(len: u64) -> Vec<u8> {
        let mut bytes = b"FLR\0\0\x02\0\x01".to_vec();
        bytes.extend(len.to_be_bytes());
        bytes.resize(len as usize, 7);
        bytes
    }

    #[test]
    fn bytes_after_the_copied_header_are_cut_off() {
        let whole = [chunk(100), chunk(90)].concat();
        let torn = [&whole[..], &[9; 77]].concat();
        let short = [&whole[..], &chunk(200)[..150]].concat();
        let path = std::env::temp_dir().join(format!("dwell-chunks-{}", std::process::id()));
        for (bytes, kept) in [
            (&whole, 190),
            (&torn, 190),
            (&short, 190),
            (&vec![3; 99], 99),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.read(true).write(true).open(&path).unwrap();
            cut_behind_chunks(&mut file).unwrap();
            assert_eq!(file.metadata().unwrap().len(), kept);
        }
        std::fs::remove_file(&path).unwrap();
    }
}

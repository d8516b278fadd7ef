//! The description of the recording, the runtime and the machine in each chunk.

use crate::runtime::Runtime;
use crate::runtime::setup::Setup;
use crate::switched::Now;
use crate::sys::process;
use dwell_host::small_files;
use dwell_jfr::redact::Secrets;
use dwell_jfr::writer::{ChunkWriter, Event};

/// Text of a `/proc` file.
fn proc_text(path: &str) -> String {
    let bytes = small_files::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// The command line of this process, without secrets.
fn command_line(secrets: &Secrets) -> String {
    let bytes = small_files::read("/proc/self/cmdline").unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let words = text.trim_end_matches('\0').split('\0');
    secrets.words(words)
}

fn cpu_model() -> String {
    /// The first processor's lines come first, and the others have the same content.
    const FIRST_BYTES: u64 = 4096;
    let info = small_files::read_start("/proc/cpuinfo", FIRST_BYTES).unwrap_or_default();
    let info = String::from_utf8_lossy(&info);
    let line = info.lines().find(|line| line.starts_with("model name"));
    line.and_then(|l| l.split_once(':'))
        .map_or_else(String::new, |(_, v)| v.trim().to_owned())
}

/// How many processors the process can use now. Reading that takes some ten files.
#[must_use]
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Adds the descriptive events to a chunk in which this is recorded.
pub fn describe<R: Runtime>(
    setup: &Setup<R>,
    now: &Now,
    processors: usize,
    chunk: &mut ChunkWriter,
) {
    let ticks = process::monotonic_ns();
    let events = &now.events;
    let pid = u64::from(std::process::id());
    let interval_ns = events.cpu.as_nanos() as u64;
    chunk.event(&Event::Recording {
        ticks,
        version: env!("CARGO_PKG_VERSION"),
        pid,
        mode: &events.mode(),
        engine: &format!("{}, {}", setup.engine_name(), setup.walk_name()),
        engine_reason: &setup.engine_reason(),
        cpu_interval_ns: interval_ns,
        wall_interval_ns: events.wall.as_nanos() as u64,
        options: &now.text,
    });
    let command = command_line(&setup.options.secrets);
    let cores = u32::try_from(processors).unwrap_or(u32::MAX);
    chunk.event(&Event::JvmInformation {
        ticks,
        jvm_name: &setup.about.name,
        jvm_version: &setup.about.version,
        jvm_arguments: &command,
        jvm_flags: "",
        java_arguments: "",
        jvm_start_epoch_ms: setup.start_epoch_ms,
        pid,
    });
    let os = proc_text("/proc/version");
    chunk.event(&Event::OsInformation {
        ticks,
        os_version: &os,
    });
    let model = cpu_model();
    chunk.event(&Event::CpuInformation {
        ticks,
        cpu: &model,
        description: &model,
        sockets: 1,
        cores,
        hardware_threads: cores,
    });
    let interval = format!("{interval_ns} ns");
    for (name, value) in [("enabled", "true"), ("period", interval.as_str())] {
        chunk.event(&Event::ActiveSetting {
            ticks,
            event_id: dwell_jfr::writer::EXECUTION_SAMPLE_TYPE_ID,
            name,
            value,
        });
    }
}

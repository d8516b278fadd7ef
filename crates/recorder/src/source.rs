//! The source of CPU-time signals: chosen once per process.

use crate::options::EngineChoice;
use crate::sys::allocator;
use dwell_host::small_files;
use dwell_signal::{Config, Engine, EngineKind, Errno, PerfLevel};

/// The sampling engine, and why it was chosen.
#[derive(Clone)]
pub struct Source {
    /// The engine.
    pub engine: &'static Engine,
    /// Why, for `status` and the file.
    pub reason: String,
}

impl Source {
    /// Makes the requested engine, or the best available one.
    ///
    /// # Errors
    /// One line for the user.
    pub fn start(choice: EngineChoice) -> Result<Source, String> {
        Source::make(choice, &Config::default())
    }

    /// The same, with handlers that run on the thread's current stack. It is for a runtime that
    /// treats a thread on its alternate stack as one that must not be stopped. `blocked` are
    /// signals (the kernel's set) that wait during the handler: those of the runtime's handlers
    /// that ours calls itself.
    ///
    /// # Errors
    /// One line for the user.
    pub fn start_off_alternate_stacks(
        choice: EngineChoice,
        blocked: u64,
    ) -> Result<Source, String> {
        let config = Config {
            on_alternate_stack: false,
            blocked,
            // The runtime's handlers block it.
            keeps_signal: true,
            ..Config::default()
        };
        Source::make(choice, &config)
    }

    fn make(choice: EngineChoice, config: &Config<'_>) -> Result<Source, String> {
        allocator::set_aside();
        let (kind, reason) = choose(choice)?;
        let config = Config {
            engine: kind,
            ..*config
        };
        // An engine that failed after this step has been left behind.
        let engine = match Engine::get() {
            Some(engine) => engine,
            None => dwell_signal::init(&config).map_err(|e| e.to_string())?,
        };
        Ok(Source { engine, reason })
    }
}

fn choose(choice: EngineChoice) -> Result<(EngineKind, String), String> {
    if choice == EngineChoice::Timer {
        return Ok((EngineKind::Timer, "timers were requested".into()));
    }
    let release = small_files::read_text("/proc/sys/kernel/osrelease").unwrap_or_default();
    if dwell_signal::perf_hangs(&release) {
        let why = format!(
            "perf events of Linux {} can hang the machine",
            release.trim()
        );
        return match choice {
            EngineChoice::Perf => Err(format!("engine=perf: {why}; use engine=timer")),
            _ => Ok((EngineKind::Timer, why)),
        };
    }
    match dwell_signal::perf_permitted() {
        Ok(PerfLevel { kernel }) => {
            let reason = if dwell_signal::perf_client::is_used() {
                "perf_event_open is refused by seccomp or sysctl: dwell record opens the events"
            } else if kernel {
                "perf events are permitted"
            } else {
                "perf events are permitted in user mode only (kernel.perf_event_paranoid)"
            };
            Ok((EngineKind::Perf { kernel }, reason.into()))
        }
        Err(errno) => refused(choice, errno, dwell_signal::perf_is_filtered()),
    }
}

/// The engine if perf events are refused. A seccomp filter refuses them whatever the kernel's
/// settings are.
fn refused(
    choice: EngineChoice,
    errno: Errno,
    is_filtered: bool,
) -> Result<(EngineKind, String), String> {
    let (by, remedy) = match is_filtered {
        true => (
            "by seccomp".to_owned(),
            "allow it in the container's seccomp profile",
        ),
        false => (format!("({errno})"), "lower kernel.perf_event_paranoid"),
    };
    let reason = format!("perf_event_open is refused {by}");
    match choice {
        EngineChoice::Perf => Err(format!(
            "engine=perf: {reason}; use engine=timer, or {remedy}"
        )),
        _ => Ok((EngineKind::Timer, reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_perf_events_have_the_remedy_of_their_cause() {
        let of = |choice, is_filtered| match refused(choice, Errno(1), is_filtered) {
            Ok((kind, reason)) => {
                assert_eq!(kind, EngineKind::Timer);
                reason
            }
            Err(why) => why,
        };
        let any = EngineChoice::Auto;
        assert_eq!(of(any, true), "perf_event_open is refused by seccomp");
        assert_eq!(of(any, false), "perf_event_open is refused (errno 1)");
        assert_eq!(
            of(EngineChoice::Perf, true),
            "engine=perf: perf_event_open is refused by seccomp; use engine=timer, or allow it in \
             the container's seccomp profile"
        );
        assert_eq!(
            of(EngineChoice::Perf, false),
            "engine=perf: perf_event_open is refused (errno 1); use engine=timer, or lower \
             kernel.perf_event_paranoid"
        );
    }
}

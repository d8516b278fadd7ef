//! The command line: what can be typed, and the help that goes with it.

use crate::{units, values};
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  dwell demo                            record a bundled service, to dwell-demo.html
  dwell ps                              list the JVMs of this machine
  dwell record -d 30 4711               record JVM 4711 for 30 seconds
  dwell record MyService                the same by name, until Ctrl-C
  dwell record -- java -jar app.jar     start a program and record it to its end
  dwell safepoints 4711                 what stops all its threads, and who is late
  dwell report app.jfr --text           where did the time go";

/// Profiles the time of JVMs, on the CPU and waiting: attaches to a running one, or starts one
#[derive(Debug, Parser)]
#[command(name = "dwell", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the JVMs of this machine, those in containers included
    Ps,
    /// Record a JVM and make a flame graph of it
    Record(Record),
    /// Start a recording that goes on by itself
    Start(Start),
    /// End a recording
    Stop(Fetch),
    /// Bring the recording's file up to date while it goes on
    Dump(Fetch),
    /// Tell what a JVM's recording is doing
    Status(OneJvm),
    /// Show a JVM's safepoints as they happen, and which threads are late for them
    Safepoints(Safepoints),
    /// Make an HTML or text report of a recording
    Report(Report),
    /// Convert a recording to another format, chosen by the output's ending
    Convert(Convert),
    /// Record a bundled service: shows the whole way in half a minute
    Demo(Demo),
}

const RECORD_EXAMPLES: &str = "\
Ctrl-C ends the recording early and keeps everything; a second Ctrl-C leaves at once.

Examples:
  dwell record -d 30s 4711              JVM 4711 for 30 seconds
  dwell record -i 1ms -o slow MyService finer, to slow.jfr and slow.html
  dwell record -- java -jar app.jar     from the program's start to its end";

/// `dwell record`.
#[derive(Debug, Args)]
#[command(after_help = RECORD_EXAMPLES)]
pub struct Record {
    /// How long to record (30s, 2m, or plain seconds) [default: until Ctrl-C or the JVM's end]
    #[arg(short, long, value_name = "TIME", value_parser = units::recording_time)]
    pub duration: Option<Duration>,
    /// Where to write: FILE.jfr and FILE.html [default: NAME-TIME in this directory]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How to sample.
    #[command(flatten)]
    pub sampling: Sampling,
    /// The JVM: its pid, or a part of its main class or jar
    #[arg(value_name = "PID|NAME", required_unless_present = "program",
          value_parser = values::jvm)]
    pub jvm: Option<String>,
    /// A program to start and record
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "jvm")]
    pub program: Vec<OsString>,
}

/// How to sample.
#[derive(Debug, Clone, Args)]
pub struct Sampling {
    /// CPU time between two samples of a thread, from 20us to 10s
    #[arg(short, long, value_name = "TIME", default_value = "10ms", value_parser = units::interval)]
    pub interval: Duration,
    /// What to sample: `cpu`, `wall` or both
    #[arg(short, long, value_enum, value_delimiter = ',', value_name = "EVENTS",
          default_values_t = [Event::Cpu, Event::Wall], hide_possible_values = true)]
    pub event: Vec<Event>,
    /// Wall-clock time between two looks at threads, from 1ms to 10s
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = units::wall_interval)]
    pub wall: Duration,
    /// Threads looked at each time [default: as many as --wall-budget allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub wall_threads: Option<u32>,
    /// Part of one processor's time that looking at threads may take
    #[arg(long, value_name = "PERCENT", default_value = "0.5%", value_parser = units::budget)]
    pub wall_budget: f64,
    /// Which threads are looked at: `context`, those that work for a request (see docs/context.md)
    #[arg(long, value_enum, value_name = "WHICH")]
    pub filter: Option<Filter>,
    /// A method in which a pooled thread waits for work (package.Class.method, * for anything)
    #[arg(long, value_name = "METHOD", value_parser = values::idle)]
    pub idle: Vec<String>,
    /// Where samples are triggered from
    #[arg(long, value_enum, default_value_t = Engine::Auto)]
    pub engine: Engine,
    /// From where stacks are walked
    #[arg(long, value_enum, default_value_t = Walk::Snapshot)]
    pub walk: Walk,
    /// Most frames of a stack; deeper ones are marked as truncated
    #[arg(long, value_name = "N", default_value_t = 8192,
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub depth: u32,
}

/// What is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Event {
    /// CPU time of all threads
    Cpu,
    /// Wall-clock time of Java threads, with what they wait for
    Wall,
}

/// Which threads are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Filter {
    /// Those that work for a request
    Context,
}

/// Where samples are triggered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// perf events where permitted, else timers
    Auto,
    /// perf events (exact at short intervals)
    Perf,
    /// CPU timers of each thread (need no permission)
    Timer,
}

impl Engine {
    /// The word that the agent knows it by.
    pub fn word(self) -> &'static str {
        match self {
            Engine::Auto => "auto",
            Engine::Perf => "perf",
            Engine::Timer => "timer",
        }
    }
}

/// From where stacks are walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Walk {
    /// From a copy; the thread is held for microseconds
    Snapshot,
    /// On the sampled thread, in its signal handler
    Handler,
    /// By another thread, while the sampled one waits
    Paused,
}

impl Walk {
    /// The word that the agent knows it by.
    pub fn word(self) -> &'static str {
        match self {
            Walk::Snapshot => "snapshot",
            Walk::Handler => "handler",
            Walk::Paused => "paused",
        }
    }
}

/// `dwell start`.
#[derive(Debug, Args)]
#[command(after_help = "\
The JVM writes the file itself: FILE is a path as the JVM sees it. `%p` stands for its pid, `%t`
for the time.

Examples:
  dwell start 4711
  dwell start -o /var/log/app-%t.jfr --max-size 200m 4711")]
pub struct Start {
    /// Where the JVM shall write [default: NAME-TIME.jfr here, or in the container's /tmp]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<String>,
    /// How to sample.
    #[command(flatten)]
    pub sampling: Sampling,
    /// Keep about this much of the recording (64m, 1g), dropping the oldest
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub max_size: Option<String>,
    /// Keep about this age of the recording (30m, 2h), dropping the oldest
    #[arg(long, value_name = "TIME", value_parser = units::kept_age)]
    pub max_age: Option<Duration>,
    /// The JVM: its pid, or a part of its main class or jar
    #[arg(value_name = "PID|NAME", value_parser = values::jvm)]
    pub jvm: String,
}

/// `dwell stop` and `dwell dump`.
#[derive(Debug, Args)]
pub struct Fetch {
    /// Also copy the recording here
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The JVM: its pid, or a part of its main class or jar
    #[arg(value_name = "PID|NAME", value_parser = values::jvm)]
    pub jvm: String,
}

/// Commands that need nothing but a JVM.
#[derive(Debug, Args)]
pub struct OneJvm {
    /// The JVM: its pid, or a part of its main class or jar
    #[arg(value_name = "PID|NAME", value_parser = values::jvm)]
    pub jvm: String,
}

/// `dwell safepoints`.
#[derive(Debug, Args)]
#[command(after_help = "\
Ctrl-C ends it early, and prints the sums all the same.

Examples:
  dwell safepoints 4711                 until Ctrl-C or the JVM's end
  dwell safepoints -d 30s --least 50ms MyService")]
pub struct Safepoints {
    /// How long (30s, 2m, or plain seconds) [default: until Ctrl-C or the JVM's end]
    #[arg(short, long, value_name = "TIME", value_parser = units::recording_time)]
    pub duration: Option<Duration>,
    /// Show each safepoint that takes this long in all; shorter ones are in the sums only
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = units::moment)]
    pub least: Duration,
    /// The JVM: its pid, or a part of its main class or jar
    #[arg(value_name = "PID|NAME", value_parser = values::jvm)]
    pub jvm: String,
}

/// `dwell report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dwell report app.jfr                  writes app.html
  dwell report app.jfr --text           prints a summary
  dwell report app.jfr --text --safepoints
                                        what stopped all threads, and who was late")]
pub struct Report {
    /// A recording: ours, or one of the JDK's own
    #[arg(value_name = "FILE.jfr")]
    pub input: PathBuf,
    /// Where to write the page [default: the recording's name with .html]
    #[arg(short, long, value_name = "FILE.html",
          value_parser = OsStringValueParser::new().try_map(values::page))]
    pub output: Option<PathBuf>,
    /// Print a summary instead of writing a page
    #[arg(long, conflicts_with = "output")]
    pub text: bool,
    /// With --text: print the safepoints instead, by operation, with the threads that were late
    #[arg(long, requires = "text")]
    pub safepoints: bool,
}

/// `dwell convert`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dwell convert app.jfr -o app.collapsed
  dwell convert app.jfr -o locks.collapsed --cause monitor,lock --thread 'worker-*'
  dwell convert app.jfr -o app.html")]
pub struct Convert {
    /// A recording: ours, or one of the JDK's own
    #[arg(value_name = "FILE.jfr")]
    pub input: PathBuf,
    /// Where to write: .collapsed, .txt (a summary) or .html
    #[arg(short, long, value_name = "FILE",
          value_parser = OsStringValueParser::new().try_map(values::convertible))]
    pub output: PathBuf,
    /// What collapsed stacks count [default: samples]
    #[arg(long, value_enum)]
    pub unit: Option<Unit>,
    /// Begin collapsed stacks with their thread
    #[arg(long)]
    pub threads: bool,
    /// Which time collapsed stacks count [default: cpu, or wall with one of the next options]
    #[arg(short, long, value_enum)]
    pub event: Option<Event>,
    /// Only wall time with these causes (running, runnable, monitor, lock, park, ...)
    #[arg(long, value_name = "CAUSES", value_delimiter = ',', value_parser = values::cause)]
    pub cause: Vec<String>,
    /// Only wall time of Java threads with such names (* for anything)
    #[arg(long, value_name = "NAME")]
    pub thread: Option<String>,
    /// Only wall time that was for such endpoints (* for anything)
    #[arg(long, value_name = "ENDPOINT")]
    pub endpoint: Option<String>,
    /// Only wall time from this time of the recording on
    #[arg(long, value_name = "TIME", value_parser = units::moment)]
    pub from: Option<Duration>,
    /// Only wall time before this time of the recording
    #[arg(long, value_name = "TIME", value_parser = units::moment)]
    pub to: Option<Duration>,
}

/// What collapsed stacks count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// Samples
    Samples,
    /// Nanoseconds of CPU time
    Ns,
}

/// `dwell demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// How long to record (30s, 2m, or plain seconds)
    #[arg(short, long, value_name = "TIME", default_value = "15s",
          value_parser = units::recording_time)]
    pub duration: Duration,
    /// CPU time between two samples of a thread, from 20us to 10s
    #[arg(short, long, value_name = "TIME", default_value = "10ms", value_parser = units::interval)]
    pub interval: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn record(words: &[&str]) -> Result<Record, clap::Error> {
        let all = ["dwell", "record"].iter().chain(words);
        match Cli::try_parse_from(all)?.command {
            Command::Record(record) => Ok(record),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_jvm_or_a_program_is_recorded() {
        let by_pid = record(&["-d", "30", "-i", "1ms", "-e", "cpu", "4711"]).unwrap();
        assert_eq!(by_pid.jvm.as_deref(), Some("4711"));
        assert_eq!(by_pid.duration, Some(Duration::from_secs(30)));
        let launched = record(&["--", "java", "-jar", "a.jar", "-d"]).unwrap();
        assert_eq!(launched.program, ["java", "-jar", "a.jar", "-d"]);
        assert!(record(&[]).is_err());
        assert!(record(&["4711", "--", "java"]).is_err());
    }

    #[test]
    fn cpu_and_wall_are_recorded_unless_one_is_chosen() {
        let both = record(&["1"]).unwrap().sampling;
        assert_eq!(both.event, [Event::Cpu, Event::Wall]);
        assert_eq!(
            (both.wall, both.wall_budget),
            (Duration::from_millis(20), 0.5)
        );
        let cpu = record(&["-e", "cpu", "1"]).unwrap().sampling;
        assert_eq!(cpu.event, [Event::Cpu]);
        let more = [
            "-e", "cpu,wall", "--wall", "5ms", "--idle", "a.B.c", "--idle", "a.B.d*", "1",
        ];
        assert_eq!(record(&more).unwrap().sampling.idle, ["a.B.c", "a.B.d*"]);
    }

    #[test]
    fn wrong_values_are_refused() {
        for words in [
            &["-i", "10", "1"][..],
            &["-d", "x", "1"],
            &["-e", "alloc", "1"],
            &["--wall", "20", "1"],
            &["--wall-budget", "0", "1"],
            &["--idle", "no method", "1"],
            &["--depth", "0", "1"],
            &["--engine", "itimer", "1"],
        ] {
            assert!(record(words).is_err(), "{words:?}");
        }
    }
}

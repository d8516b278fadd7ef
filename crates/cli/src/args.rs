//! The command line and its help.

mod assistant;
mod push;
mod shells;
mod tour;

pub use assistant::Mcp;
pub use push::{BodyForm, Ship, To};
pub use shells::{Completions, Shell};
pub use tour::Demo;

use crate::query_args::Query;
use crate::{checked, units};
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use dwell_jfr::redact::Secrets;
use dwell_report::Limit;
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
  dwell record -- mono app.exe          the same for Mono
  dwell top 4711                        its activity, live in the terminal
  dwell safepoints 4711                 safepoints, and the threads that are late
  dwell stacks 4711                     the stacks of its threads, even if it hangs
  dwell report app.jfr --text           where the time went
  dwell explain app.jfr                 why it is slow, and what to do";

/// Profiles CPU time and wall-clock time of JVMs and Mono programs
#[derive(Debug, Parser)]
#[command(name = "dwell", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the JVMs and Mono programs of this machine, including those in containers
    Ps,
    /// Record a JVM: write a JFR file and an HTML page, and print findings
    Record(Record),
    /// Start a recording in the background
    Start(Start),
    /// End a recording
    Stop(Fetch),
    /// Write the recording to its file without stopping it
    Dump(Fetch),
    /// Show recording status
    Status(OneJvm),
    /// Show a JVM's safepoints as they happen, and the threads that are late
    Safepoints(Safepoints),
    /// Watch a JVM live: time by method, thread, endpoint and cause, and its safepoints
    Top(Top),
    /// Print the stacks of a JVM's threads, even if it hangs
    Stacks(Stacks),
    /// Make an HTML or text report of a recording
    Report(Report),
    /// Show a recording's page in a browser, or serve it over ssh
    View(View),
    /// Explain why a recorded program is slow: cost, evidence, fix
    Explain(Explain),
    /// Compare two recordings and test whether the differences are significant
    Diff(Diff),
    /// Answer an assistant's questions about recordings, by the Model Context Protocol
    Mcp(Mcp),
    /// Convert a recording to another format, by an option or by the output's ending
    Convert(Convert),
    /// Answer a question in SQL about recordings
    Query(Query),
    /// Send recordings to a receiver of profiles, also while they go on
    Ship(Ship),
    /// Install the module for Mono, to record without this command
    InstallMono(InstallMono),
    /// Record a bundled service: a 30-second tour
    Demo(Demo),
    /// Print a script that completes commands and options in a shell
    Completions(Completions),
}

/// Reads a command line.
pub fn parse_from<W: Into<OsString> + Clone>(
    words: impl IntoIterator<Item = W>,
) -> Result<Cli, clap::Error> {
    let matches = Cli::command().try_get_matches_from(words)?;
    let mut cli = Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut Cli::command()))?;
    if let (Command::Start(start), Some(found)) =
        (&mut cli.command, matches.subcommand_matches("start"))
    {
        let is_named = |id: &&str| found.value_source(id) == Some(ValueSource::CommandLine);
        let ids = found.ids().map(clap::Id::as_str);
        start.named = ids.filter(is_named).map(str::to_owned).collect();
    }
    Ok(cli)
}

const RECORD_EXAMPLES: &str = "\
Ctrl-C ends the recording early and keeps everything; a second Ctrl-C exits at once.

Examples:
  dwell record                          the only JVM that runs here, until Ctrl-C
  dwell record -d 30s 4711              JVM 4711 for 30 seconds
  dwell record -i 1ms -o slow MyService finer, to slow.jfr and slow.html
  dwell record --no-agent 4711          load nothing into the JVM; see docs/no-agent.md
  dwell record -- java -jar app.jar     from the program's start to its end
  dwell record -- mono --debug app.exe  the same for Mono, with lines; see docs/mono.md";

/// `dwell record`.
#[derive(Debug, Args)]
#[command(after_help = RECORD_EXAMPLES)]
pub struct Record {
    /// How long to record (30s, 2m, or plain seconds) [default: until Ctrl-C or the JVM's end]
    #[arg(short, long, value_name = "TIME", value_parser = units::recording_time)]
    pub duration: Option<Duration>,
    /// Output: FILE.jfr and FILE.html [default: NAME-TIME in this directory]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Load no agent: read the JVM from outside (no context, requests, pauses, safepoints)
    #[arg(long, conflicts_with = "program")]
    pub no_agent: bool,
    /// The receiver.
    #[command(flatten)]
    pub to: To,
    /// Sampling options.
    #[command(flatten)]
    pub sampling: Sampling,
    /// The JVM: its pid, or a part of its main class or jar [default: the only running JVM]
    #[arg(value_name = "PID|NAME", value_parser = checked::jvm)]
    pub jvm: Option<String>,
    /// A program to start and record
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "jvm")]
    pub program: Vec<OsString>,
}

/// Sampling options.
#[derive(Debug, Clone, Args)]
pub struct Sampling {
    /// CPU time between two samples of a thread, from 20us to 10s
    #[arg(short, long, value_name = "TIME", default_value = "10ms", value_parser = units::interval)]
    pub interval: Duration,
    /// Events, separated by commas: `cpu` (CPU time), `wall` (waiting and its causes), `alloc`
    /// (allocations), `live` (objects that stay alive: leaks), `lock` (waits for locks), or `all`
    #[arg(short, long, value_parser = events(), value_delimiter = ',',
          value_name = "EVENTS", default_values = ["cpu", "wall"], hide_possible_values = true)]
    pub event: Vec<Event>,
    /// Interval of wall-clock samples, from 1ms to 10s
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = units::wall_interval)]
    pub wall: Duration,
    /// Maximum threads sampled at each tick [default: as many as --wall-budget allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub wall_threads: Option<u32>,
    /// Maximum share of one CPU for wall-clock sampling [default: 2%; with --no-agent 5%]
    #[arg(long, value_name = "PERCENT", value_parser = units::budget)]
    pub wall_budget: Option<f64>,
    /// Restrict wall-clock samples: `context`, threads that handle a request (see docs/context.md)
    #[arg(long, value_enum, value_name = "WHICH")]
    pub filter: Option<Filter>,
    /// A method in which an idle pool thread waits for work (package.Class.method, * for anything)
    #[arg(long, value_name = "METHOD", value_parser = checked::idle)]
    pub idle: Vec<String>,
    /// Time after which a thread is late for a safepoint and its stack is taken, from 200us to 10s
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = units::late)]
    pub late: Duration,
    /// Mean bytes between two allocation samples, from 1k to 1g; samples allocations even if -e
    /// does not list alloc, unless it has live alone (JDK 11 and later) [default with -e alloc or
    /// live: 512k]
    #[arg(long, value_name = "SIZE", value_parser = checked::alloc)]
    pub alloc: Option<u64>,
    /// Target rate of allocation samples, from 1/s to 100000/s: the bytes between two samples
    /// adapt; samples allocations like --alloc, which sets the initial bytes
    #[arg(long, value_name = "RATE", value_parser = checked::rate)]
    pub alloc_rate: Option<u64>,
    /// Record all waits for monitors of at least this duration, from 1us to 10s, and a sample of
    /// shorter ones; records waits even if -e does not list lock [default with -e lock: 1ms]
    #[arg(long, value_name = "TIME", value_parser = units::lock)]
    pub lock: Option<Duration>,
    /// Maximum allocation and lock events per second; above it, the sampling intervals are raised;
    /// 0: no limit [default: 500/s]
    #[arg(long, value_name = "RATE", value_parser = checked::max_rate)]
    pub max_rate: Option<u64>,
    /// Source of CPU samples
    #[arg(long, value_enum, default_value_t = Engine::Auto)]
    pub engine: Engine,
    /// How stacks are walked
    #[arg(long, value_enum, default_value_t = Walk::Snapshot)]
    pub walk: Walk,
    /// Maximum stack depth; deeper stacks are marked as truncated
    #[arg(long, value_name = "N", default_value_t = 8192,
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub depth: u32,
    /// Redaction options.
    #[command(flatten)]
    pub redaction: Redaction,
}

/// Redaction of the program's arguments and properties.
#[derive(Debug, Clone, Default, Args)]
pub struct Redaction {
    /// Also redact arguments and properties with this text in their name or value (* for anything)
    #[arg(long, value_name = "TEXT", value_parser = checked::redact)]
    pub redact: Vec<String>,
    /// Show passwords, tokens and keys in arguments and properties, which are redacted by default
    #[arg(long, conflicts_with = "redact")]
    pub no_redact: bool,
}

impl Redaction {
    /// The secrets to redact.
    pub fn secrets(&self) -> Secrets {
        if self.no_redact {
            return Secrets::none();
        }
        let mut secrets = Secrets::default();
        self.redact.iter().for_each(|text| secrets.add(text));
        secrets
    }

    /// The same as options of the agent.
    pub fn options(&self) -> String {
        if self.no_redact {
            return ",no-redact".to_owned();
        }
        let texts = self.redact.iter();
        texts.map(|text| format!(",redact={text}")).collect()
    }
}

/// The events. A recording can have `all`, which is listed for an unknown event. A conversion
/// selects one event, so its list lacks `all`.
fn events() -> impl TypedValueParser<Value = Event> {
    let names = Event::value_variants().iter();
    let names = names.filter_map(Event::to_possible_value);
    let names: Vec<_> = names.map(|name| name.hide(false)).collect();
    PossibleValuesParser::new(names).try_map(|name| Event::from_str(&name, false))
}

/// Default for bytes between two allocation samples.
const ALLOC_BYTES: u64 = 512 << 10;

/// Default interval of waits for monitors.
const LOCK_INTERVAL: Duration = Duration::from_millis(1);

impl Sampling {
    /// Whether this event is recorded.
    pub fn has(&self, event: Event) -> bool {
        self.event.contains(&event) || self.event.contains(&Event::All)
    }

    /// The interval of waits for monitors, if they are recorded.
    pub fn lock_interval(&self) -> Option<Duration> {
        let by_event = self.has(Event::Lock).then_some(LOCK_INTERVAL);
        self.lock.or(by_event)
    }

    /// Bytes between two allocation samples, if allocations are sampled.
    pub fn alloc_bytes(&self) -> Option<u64> {
        let is_named = self.alloc.is_some() || self.alloc_rate.is_some();
        let is_sampled = self.has(Event::Alloc) || is_named && !self.has(Event::Live);
        is_sampled.then(|| self.alloc.unwrap_or(ALLOC_BYTES))
    }

    /// Bytes between two samples of followed objects, if objects are followed.
    pub fn live_bytes(&self) -> Option<u64> {
        self.has(Event::Live)
            .then(|| self.alloc.unwrap_or(ALLOC_BYTES))
    }
}

/// An event to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Event {
    /// CPU time of all threads
    Cpu,
    /// Wall-clock time of Java threads, with the causes of waits
    Wall,
    /// Allocated objects, by class
    Alloc,
    /// Sampled objects that are alive at the end
    Live,
    /// Waits for locks that other threads hold, by class
    Lock,
    /// All events; not for conversions
    #[value(hide = true)]
    All,
}

/// The threads that wall-clock samples are restricted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Filter {
    /// Threads that handle a request
    Context,
}

/// Source of CPU samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// perf events where permitted, timers elsewhere and for threads with thousands of switches a
    /// second
    Auto,
    /// perf events for all threads (exact at short intervals)
    Perf,
    /// CPU timers of each thread (no permission needed)
    Timer,
    /// perf events without signals for threads that handle no request and run no virtual thread:
    /// the kernel copies their registers and stacks; other threads as with auto
    Kernel,
}

impl Engine {
    /// The agent's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Engine::Auto => "auto",
            Engine::Perf => "perf",
            Engine::Timer => "timer",
            Engine::Kernel => "kernel",
        }
    }
}

/// How stacks are walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Walk {
    /// From a copy; the thread stops for microseconds
    Snapshot,
    /// On the sampled thread, in its signal handler
    Handler,
    /// By another thread, while the sampled one waits
    Paused,
}

impl Walk {
    /// The agent's word for it.
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

A running recording continues in the same file, with the given events and intervals in place of its
own: alloc, live and lock can be switched on and off, and intervals can change.

Examples:
  dwell start 4711
  dwell start -e cpu,wall,alloc 4711    the running recording also samples allocations
  dwell start -o /var/log/app-%t.jfr --max-size 200m 4711")]
pub struct Start {
    /// Where the JVM writes [default: NAME-TIME.jfr here, or in a new folder in the container's
    /// /tmp]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<String>,
    /// Sampling options.
    #[command(flatten)]
    pub sampling: Sampling,
    /// Maximum size of the recording, about (64m, 1g); the oldest data is dropped
    #[arg(long, value_name = "SIZE", value_parser = checked::size)]
    pub max_size: Option<String>,
    /// Maximum age of the recording, about (30m, 2h); the oldest data is dropped
    #[arg(long, value_name = "TIME", value_parser = units::kept_age)]
    pub max_age: Option<Duration>,
    /// The JVM: its pid, or a part of its main class or jar
    #[arg(value_name = "PID|NAME", value_parser = checked::jvm)]
    pub jvm: String,
    /// Options given on the command line, not defaults.
    #[arg(skip)]
    named: Vec<String>,
}

impl Start {
    /// Whether the option of this field was given on the command line.
    pub fn is_named(&self, field: &str) -> bool {
        self.named.iter().any(|name| name == field)
    }
}

/// `dwell install-mono`.
#[derive(Debug, Args)]
#[command(after_help = "\
Mono loads profilers at its start only. With the module installed, programs can record themselves:
  MONO_ENV_OPTIONS=--profile=dwell:cpu=10ms,wall=20ms,file=app.jfr mono app.exe")]
pub struct InstallMono {
    /// Where to put it [default: the lib directory next to the mono on the search path]
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `dwell stop` and `dwell dump`.
#[derive(Debug, Args)]
pub struct Fetch {
    /// Also copy the recording to this file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The JVM: its pid, or a part of its main class or jar
    #[arg(value_name = "PID|NAME", value_parser = checked::jvm)]
    pub jvm: String,
}

/// Commands with a JVM as their only argument.
#[derive(Debug, Args)]
pub struct OneJvm {
    /// The JVM: its pid, or a part of its main class or jar
    #[arg(value_name = "PID|NAME", value_parser = checked::jvm)]
    pub jvm: String,
}

/// `dwell safepoints`.
#[derive(Debug, Args)]
#[command(after_help = "\
Ctrl-C ends it early, and prints the sums.

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
    #[arg(value_name = "PID|NAME", value_parser = checked::jvm)]
    pub jvm: String,
}

/// `dwell top`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Keys: 1-7 tables, Enter open, Esc back, Space pause, s sort, / filter, ? all keys, q quit.
100 % is one CPU, or one thread, for the whole window. See docs/top.md.

Examples:
  dwell top 4711                        until q, Ctrl-C or the JVM's end
  dwell top --window 30s MyService      the last 30 seconds
  dwell top --batch -n 1 4711           one screen as plain text, after 10 seconds
  dwell top --no-agent 4711             load nothing into the JVM; see docs/no-agent.md")]
pub struct Top {
    /// Window of time that is shown, from 1s to 5m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::window)]
    pub window: Duration,
    /// First table
    #[arg(long, value_enum, value_name = "TABLE", default_value_t = Table::Methods)]
    pub view: Table,
    /// Print plain text, one screen per window, instead of drawing on the terminal
    #[arg(short, long)]
    pub batch: bool,
    /// With --batch: time between two screens [default: the window]
    #[arg(long, value_name = "TIME", requires = "batch", value_parser = units::recording_time)]
    pub every: Option<Duration>,
    /// With --batch: rows of the table
    #[arg(long, value_name = "N", requires = "batch", default_value_t = 20)]
    pub rows: usize,
    /// Number of screens
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// Load no agent: read the JVM from outside (no endpoints, requests, pauses, safepoints)
    #[arg(long)]
    pub no_agent: bool,
    /// Sampling options.
    #[command(flatten)]
    pub sampling: Sampling,
    /// The JVM: its pid, or a part of its main class or jar
    #[arg(value_name = "PID|NAME", value_parser = checked::jvm)]
    pub jvm: String,
}

/// A table of `dwell top`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Table {
    /// Time by method
    Methods,
    /// Time by thread
    Threads,
    /// Requests and time by endpoint
    Endpoints,
    /// Wall time by cause
    Causes,
    /// Safepoints
    #[value(name = "safepoints", alias = "stops")]
    Stops,
    /// Stacks
    Stacks,
}

/// `dwell stacks`.
#[derive(Debug, Args)]
#[command(after_help = "\
dwell reads the JVM from outside: it loads nothing into the JVM, stops or signals no thread, and
needs no answer from the JVM. The stack of a running thread is a sample by the kernel.

Examples:
  dwell stacks 4711                     all Java threads
  dwell stacks --group 4711             threads grouped by stack
  dwell stacks --native --virtual 4711  all threads
  dwell stacks --repeat 10 -i 100ms MyService")]
pub struct Stacks {
    /// Include threads of the JVM itself and of libraries, and native frames
    #[arg(long)]
    pub native: bool,
    /// Include at most N virtual threads that wait without a carrier
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10000",
          require_equals = true)]
    pub r#virtual: Option<usize>,
    /// Group threads with the same stack
    #[arg(long)]
    pub group: bool,
    /// Stop a running thread for a moment if it cannot be sampled. Default under seccomp
    #[arg(long)]
    pub stop: bool,
    /// Number of dumps
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Interval between dumps
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = units::moment)]
    pub interval: Duration,
    /// Print one JSON object per dump instead of text
    #[arg(long)]
    pub json: bool,
    /// The JVM: its pid, or a part of its main class or jar
    #[arg(value_name = "PID|NAME", value_parser = checked::jvm)]
    pub jvm: String,
}

/// `dwell report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dwell report app.jfr                  writes app.html
  dwell report app.jfr --text           prints a summary
  dwell report app.jfr --text --safepoints
                                        safepoints, and the threads that were late")]
pub struct Report {
    /// A recording of dwell, the JDK, async-profiler or ddprof; pprof, OTLP, collapsed stacks
    #[arg(value_name = "FILE.jfr")]
    pub input: PathBuf,
    /// Output page [default: the recording's name with .html]
    #[arg(short, long, value_name = "FILE.html",
          value_parser = OsStringValueParser::new().try_map(checked::page))]
    pub output: Option<PathBuf>,
    /// Print a summary instead of writing a page
    #[arg(long, conflicts_with = "output")]
    pub text: bool,
    /// With --text: print the safepoints instead, by operation, with the late threads
    #[arg(long, requires = "text")]
    pub safepoints: bool,
    /// With --text: include idle time in the tables of wall time, instead of one line for it
    #[arg(long, requires = "text", conflicts_with = "safepoints")]
    pub idle: bool,
    /// Include all frames; by default, a very large page leaves out stacks with hardly any samples
    #[arg(long, conflicts_with = "text")]
    pub all_frames: bool,
    /// Redaction options.
    #[command(flatten)]
    pub redaction: Redaction,
}

/// `dwell view`.
#[derive(Debug, Args)]
#[command(after_help = "\
Uses $BROWSER, or the desktop's browser. The page is next to the recording, and is made again if the
recording is newer.

Examples:
  dwell view app.jfr                    writes app.html and opens it
  dwell view .                          the newest recording of this folder
  dwell view --serve app.jfr            writes nothing; serves the page to this machine only
  dwell view --serve=8080 app.jfr       at this port, for ssh -L 8080:127.0.0.1:8080")]
pub struct View {
    /// A recording, a page, or a folder with recordings
    #[arg(value_name = "FILE|FOLDER")]
    pub input: PathBuf,
    /// Serve the page on 127.0.0.1 until Ctrl-C [default port: any free one]
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0",
          require_equals = true)]
    pub serve: Option<u16>,
    /// Redaction options.
    #[command(flatten)]
    pub redaction: Redaction,
}

/// `dwell explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each finding has its cost (a share of wall or CPU time with a 95 % confidence interval), evidence,
fix and confidence. docs/explain-rules.md lists the rules and their conditions.

Examples:
  dwell explain app.jfr                 all findings, most costly first
  dwell explain app.jfr --endpoint 'GET /users/*'
  dwell explain app.jfr --json          includes rules without findings or without data")]
pub struct Explain {
    /// A recording of dwell, the JDK, async-profiler or ddprof; pprof, OTLP, collapsed stacks
    #[arg(value_name = "FILE.jfr")]
    pub input: PathBuf,
    /// Only requests of matching endpoints (* for anything)
    #[arg(long, value_name = "ENDPOINT")]
    pub endpoint: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// `dwell diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Rows marked * are significant, see docs/diff.md. Of two directories, recordings with the same name
are compared, see docs/jmh.md.

Examples:
  dwell diff before.jfr after.jfr       CPU time by method, wall time by cause, per second;
                                        and a page with a flame graph: after-against-before.html
  dwell diff before.jfr after.jfr --per request
  dwell diff before.jfr after.jfr --markdown --fail-on 'cpu>5%'
                                        fails a build if CPU time grows: docs/ci.md
  dwell diff before.jfr after.jfr --collapsed > both.folded
                                        stacks with two numbers, for other flame graph tools")]
pub struct Diff {
    /// The first recording, or a directory of benchmarks
    #[arg(value_name = "A.jfr")]
    pub a: PathBuf,
    /// The second recording, or directory
    #[arg(value_name = "B.jfr")]
    pub b: PathBuf,
    /// Unit of comparison: per second, per completed request, or all samples (shares)
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = PerWhat::Second)]
    pub per: PerWhat,
    /// Output page [default: next to B, B-against-A.html]
    #[arg(short, long, value_name = "FILE",
          value_parser = OsStringValueParser::new().try_map(checked::page))]
    pub output: Option<PathBuf>,
    /// Print text only, write no page
    #[arg(long, conflicts_with = "output")]
    pub text: bool,
    /// Print JSON only, write no page
    #[arg(long, conflicts_with_all = ["collapsed", "text", "output"])]
    pub json: bool,
    /// Print Markdown instead of text; writes a page with -o only
    #[arg(long, conflicts_with_all = ["collapsed", "text", "json"])]
    pub markdown: bool,
    /// Exit with 3 if this has grown by more than the limit, and significantly: cpu, wall (without
    /// idle time), alloc, a cause, or cpu:METHOD (* for anything), as in cpu>5%; repeatable
    #[arg(long, value_name = "LIMIT", value_parser = checked::limit, conflicts_with = "collapsed")]
    pub fail_on: Vec<Limit>,
    /// Print stacks with their values in A and B, those of A scaled to B
    #[arg(long, conflicts_with_all = ["text", "output"])]
    pub collapsed: bool,
    /// Time for --collapsed [default: cpu]; alloc and live compare bytes instead of time, as text
    /// or collapsed
    #[arg(short, long, value_enum)]
    pub event: Option<Event>,
    /// Redaction options.
    #[command(flatten)]
    pub redaction: Redaction,
}

/// Unit of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PerWhat {
    /// Per second of the recording
    Second,
    /// Per completed request
    Request,
    /// All samples
    Sample,
}

/// `dwell convert`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  dwell convert app.jfr -o app.collapsed
  dwell convert app.jfr -o locks.collapsed --cause monitor,lock --thread 'worker-*'
  dwell convert app.jfr -o late.collapsed --safepoints
  dwell convert app.jfr --collapsed --cause monitor --endpoint 'GET /x' --from 1s --to 4s
  dwell convert app.jfr -o app.html
  dwell convert app.jfr -o app.pb.gz      # for pprof and tools that read it: docs/interop.md
  dwell convert app.jfr -o app.json.gz    # for profiler.firefox.com and Perfetto
  dwell convert app.jfr -o app.otlp       # for OpenTelemetry's collector
  dwell convert app.jfr -o tables/        # Parquet, for engines of SQL: docs/query.md
  dwell convert app.jfr -o others.jfr     # for other tools that read JFR: docs/formats.md")]
pub struct Convert {
    /// A recording of dwell, the JDK, async-profiler or ddprof; pprof, OTLP, collapsed stacks
    #[arg(value_name = "FILE.jfr")]
    pub input: PathBuf,
    /// Output: .collapsed, .txt (a summary), .html, .jfr, .pb.gz (pprof), .json.gz (Firefox
    /// Profiler), .speedscope.json, .otlp, .otlp.json or a directory/ (Parquet), or any name with
    /// one of the next nine options [default with those: standard output]
    #[arg(short, long, value_name = "FILE", required_unless_present = "format")]
    pub output: Option<PathBuf>,
    /// Write collapsed stacks, whatever the output's ending
    #[arg(long, group = "format")]
    pub collapsed: bool,
    /// Write a summary in text, whatever the output's ending
    #[arg(long, group = "format")]
    pub text: bool,
    /// Write a page, whatever the output's ending
    #[arg(long, group = "format")]
    pub html: bool,
    /// Write a recording for other JFR tools, whatever the output's ending
    #[arg(long, group = "format")]
    pub jfr: bool,
    /// Write a profile for pprof, with all kinds of time, allocations and locks, whatever the
    /// output's ending
    #[arg(long, group = "format")]
    pub pprof: bool,
    /// Write samples by thread and time, and events, for the Firefox Profiler and Perfetto;
    /// gzipped unless the output is .json
    #[arg(long, group = "format")]
    pub firefox: bool,
    /// Write samples by thread and time for speedscope, whatever the output's ending
    #[arg(long, group = "format")]
    pub speedscope: bool,
    /// Write all kinds of time, allocations and locks as OTLP profiles (protobuf), whatever the
    /// output's ending
    #[arg(long, group = "format")]
    pub otlp: bool,
    /// Write the same as OTLP profiles in JSON, whatever the output's ending
    #[arg(long, group = "format")]
    pub otlp_json: bool,
    /// Write tables in Parquet to this directory, which is new, empty or has such tables only
    #[arg(long, group = "format", value_name = "DIR", conflicts_with = "output")]
    pub parquet: Option<PathBuf>,
    /// Unit of collapsed stacks [default: samples for cpu, ns for wall and lock, bytes for alloc
    /// and live]
    #[arg(long, value_enum)]
    pub unit: Option<Unit>,
    /// Begin collapsed stacks with the thread's name
    #[arg(long)]
    pub threads: bool,
    /// Collapsed stacks of threads that were late for safepoints, weighted by how long they held
    /// all others up (in ns)
    #[arg(long, conflicts_with_all = ["event", "cause", "thread", "endpoint", "from", "to"])]
    pub safepoints: bool,
    /// Event of collapsed stacks: time, time in locks, or with alloc and live bytes, with the class
    /// as innermost frame [default: cpu, or wall with --cause]
    #[arg(short, long, value_enum)]
    pub event: Option<Event>,
    /// Only wall time with these causes (running, runnable, monitor, lock, park, ...)
    #[arg(long, value_name = "CAUSES", value_delimiter = ',', value_parser = checked::cause)]
    pub cause: Vec<String>,
    /// Only time of threads with matching names (* for anything)
    #[arg(long, value_name = "NAME")]
    pub thread: Option<String>,
    /// Only time for matching endpoints (* for anything)
    #[arg(long, value_name = "ENDPOINT")]
    pub endpoint: Option<String>,
    /// Only time from this moment of the recording on; longer events count in part
    #[arg(long, value_name = "TIME", value_parser = units::moment)]
    pub from: Option<Duration>,
    /// Only time before this moment of the recording
    #[arg(long, value_name = "TIME", value_parser = units::moment)]
    pub to: Option<Duration>,
    /// Redaction options.
    #[command(flatten)]
    pub redaction: Redaction,
}

/// Unit of collapsed stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// Samples
    Samples,
    /// Nanoseconds of CPU time or wall time
    Ns,
    /// Bytes allocated, or alive
    Bytes,
    /// Objects alive
    Objects,
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;

//! The command line: what can be typed, and the help that goes with it.

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
  dwell top 4711                        what it does now, live in the terminal
  dwell safepoints 4711                 what stops all its threads, and who is late
  dwell stacks 4711                     what each thread does now, even if the JVM hangs
  dwell report app.jfr --text           where did the time go
  dwell explain app.jfr                 why it is slow, and what to do";

/// Profiles the time of JVMs and of Mono programs, on the CPU and waiting
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
    /// List the JVMs and Mono programs of this machine, those in containers included
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
    /// Watch a JVM live: time by method, thread, endpoint and cause, safepoints
    Top(Top),
    /// Print the stacks of a JVM's threads, without touching it: a hanging one, too
    Stacks(Stacks),
    /// Make an HTML or text report of a recording
    Report(Report),
    /// Show the page of a recording in a browser, or serve it to one over ssh
    View(View),
    /// Say why a recorded program is slow: what, how much, what shows it, what to do
    Explain(Explain),
    /// Say in what two recordings differ, and whether that is more than chance
    Diff(Diff),
    /// Convert a recording to another format, chosen by an option or the output's ending
    Convert(Convert),
    /// Put the module where mono finds it, to record without this command
    InstallMono(InstallMono),
    /// Record a bundled service: shows the whole way in half a minute
    Demo(Demo),
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
Ctrl-C ends the recording early and keeps everything; a second Ctrl-C leaves at once.

Examples:
  dwell record                          the only JVM that runs here, until Ctrl-C
  dwell record -d 30s 4711              JVM 4711 for 30 seconds
  dwell record -i 1ms -o slow MyService finer, to slow.jfr and slow.html
  dwell record --no-agent 4711          load nothing into the JVM; see docs/stacks.md
  dwell record -- java -jar app.jar     from the program's start to its end
  dwell record -- mono --debug app.exe  the same for Mono, with lines; see docs/mono.md";

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
    /// Load no agent: read the JVM from outside (no context, requests, pauses, safepoints)
    #[arg(long, conflicts_with = "program")]
    pub no_agent: bool,
    /// How to sample.
    #[command(flatten)]
    pub sampling: Sampling,
    /// The JVM: its pid, or a part of its main class or jar [default: the only one that runs]
    #[arg(value_name = "PID|NAME", value_parser = checked::jvm)]
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
    /// What to sample, divided by commas: `cpu` (what runs), `wall` (what waits, and for what),
    /// `alloc` (what is allocated), `live` (what stays alive: leaks), `lock` (waits for locks), or
    /// `all`
    #[arg(short, long, value_parser = events(), value_delimiter = ',',
          value_name = "EVENTS", default_values = ["cpu", "wall"], hide_possible_values = true)]
    pub event: Vec<Event>,
    /// Wall-clock time between two looks at threads, from 1ms to 10s
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = units::wall_interval)]
    pub wall: Duration,
    /// Threads looked at each time [default: as many as --wall-budget allows]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub wall_threads: Option<u32>,
    /// Part of one processor's time that looking at threads may take
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = units::budget)]
    pub wall_budget: f64,
    /// Which threads are looked at: `context`, those that work for a request (see docs/context.md)
    #[arg(long, value_enum, value_name = "WHICH")]
    pub filter: Option<Filter>,
    /// A method in which a pooled thread waits for work (package.Class.method, * for anything)
    #[arg(long, value_name = "METHOD", value_parser = checked::idle)]
    pub idle: Vec<String>,
    /// Threads that keep a safepoint waiting for longer are asked where they are, from 200us to 10s
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = units::late)]
    pub late: Duration,
    /// Bytes allocated between two samples, from 1k to 1g; samples allocations, be it in -e or not,
    /// unless that has live alone (JDK 11 and later) [default with -e alloc or live: 512k]
    #[arg(long, value_name = "SIZE", value_parser = checked::alloc)]
    pub alloc: Option<u64>,
    /// Objects sampled in a second, about, from 1/s to 100000/s: the bytes between two samples
    /// adapt; samples allocations as --alloc does, which says with how many bytes it begins
    #[arg(long, value_name = "RATE", value_parser = checked::rate)]
    pub alloc_rate: Option<u64>,
    /// Waits for monitors as long as this are all recorded, shorter ones by chance, from 1us to
    /// 10s; records waits for locks, be it in -e or not [default with -e lock: 1ms]
    #[arg(long, value_name = "TIME", value_parser = units::lock)]
    pub lock: Option<Duration>,
    /// Objects that are sampled, and waits for monitors that are recorded, in a second at most:
    /// where there are more, the bytes or the time from which on all are taken grow; 0: as many as
    /// come [default: 500/s]
    #[arg(long, value_name = "RATE", value_parser = checked::max_rate)]
    pub max_rate: Option<u64>,
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
    /// What of arguments is not told.
    #[command(flatten)]
    pub redaction: Redaction,
}

/// What of the program's arguments and properties is told.
#[derive(Debug, Clone, Default, Args)]
pub struct Redaction {
    /// Redact arguments and properties with this text in their name or value, too (* for anything)
    #[arg(long, value_name = "TEXT", value_parser = checked::redact)]
    pub redact: Vec<String>,
    /// Show passwords, tokens and keys in arguments and properties, which are redacted otherwise
    #[arg(long, conflicts_with = "redact")]
    pub no_redact: bool,
}

impl Redaction {
    /// What is a secret.
    pub fn secrets(&self) -> Secrets {
        if self.no_redact {
            return Secrets::none();
        }
        let mut secrets = Secrets::default();
        self.redact.iter().for_each(|text| secrets.add(text));
        secrets
    }

    /// The agent's options that say so.
    pub fn options(&self) -> String {
        if self.no_redact {
            return ",no-redact".to_owned();
        }
        let texts = self.redact.iter();
        texts.map(|text| format!(",redact={text}")).collect()
    }
}

/// What is sampled. Where events are chosen for a recording `all` is one of them, and is named when
/// none is recognised; for what is made of a recording it is none.
fn events() -> impl TypedValueParser<Value = Event> {
    let names = Event::value_variants().iter();
    let names = names.filter_map(Event::to_possible_value);
    let names: Vec<_> = names.map(|name| name.hide(false)).collect();
    PossibleValuesParser::new(names).try_map(|name| Event::from_str(&name, false))
}

/// Bytes between two samples of allocations where nobody says how many.
const ALLOC_BYTES: u64 = 512 << 10;

/// The interval of waits for monitors where nobody says it.
const LOCK_INTERVAL: Duration = Duration::from_millis(1);

impl Sampling {
    /// Whether this is sampled.
    pub fn has(&self, event: Event) -> bool {
        self.event.contains(&event) || self.event.contains(&Event::All)
    }

    /// The interval of waits for monitors; none if these are not recorded.
    pub fn lock_interval(&self) -> Option<Duration> {
        let by_event = self.has(Event::Lock).then_some(LOCK_INTERVAL);
        self.lock.or(by_event)
    }

    /// Bytes between two samples of allocations; none if these are not sampled.
    pub fn alloc_bytes(&self) -> Option<u64> {
        let is_named = self.alloc.is_some() || self.alloc_rate.is_some();
        let is_sampled = self.has(Event::Alloc) || is_named && !self.has(Event::Live);
        is_sampled.then(|| self.alloc.unwrap_or(ALLOC_BYTES))
    }

    /// Bytes between two samples of objects that are followed; none if these are not.
    pub fn live_bytes(&self) -> Option<u64> {
        self.has(Event::Live)
            .then(|| self.alloc.unwrap_or(ALLOC_BYTES))
    }
}

/// What is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Event {
    /// CPU time of all threads
    Cpu,
    /// Wall-clock time of Java threads, with what they wait for
    Wall,
    /// Objects that are allocated, by class
    Alloc,
    /// Of these, those that are alive at the end
    Live,
    /// Waits for locks that other threads have, by class
    Lock,
    /// All of these; of what is recorded only
    #[value(hide = true)]
    All,
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
    /// perf events where permitted, but for threads that are switched thousands of times a second;
    /// else timers
    Auto,
    /// perf events for all threads (exact at short intervals)
    Perf,
    /// CPU timers of each thread (need no permission)
    Timer,
    /// perf events without signals for threads that work for no request and run no virtual thread:
    /// the kernel copies their registers and stacks; the others as auto
    Kernel,
}

impl Engine {
    /// The word that the agent knows it by.
    pub fn word(self) -> &'static str {
        match self {
            Engine::Auto => "auto",
            Engine::Perf => "perf",
            Engine::Timer => "timer",
            Engine::Kernel => "kernel",
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

Where a recording runs, it goes on into the same file, and the events and intervals that are named
take the place of its own: alloc, live and lock can be switched on and off, and be made finer.

Examples:
  dwell start 4711
  dwell start -e cpu,wall,alloc 4711    the recording that runs samples allocations, too
  dwell start -o /var/log/app-%t.jfr --max-size 200m 4711")]
pub struct Start {
    /// Where the JVM shall write [default: NAME-TIME.jfr here, or in a new folder in
    /// the container's /tmp]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<String>,
    /// How to sample.
    #[command(flatten)]
    pub sampling: Sampling,
    /// Keep about this much of the recording (64m, 1g), dropping the oldest
    #[arg(long, value_name = "SIZE", value_parser = checked::size)]
    pub max_size: Option<String>,
    /// Keep about this age of the recording (30m, 2h), dropping the oldest
    #[arg(long, value_name = "TIME", value_parser = units::kept_age)]
    pub max_age: Option<Duration>,
    /// The JVM: its pid, or a part of its main class or jar
    #[arg(value_name = "PID|NAME", value_parser = checked::jvm)]
    pub jvm: String,
    /// What was named on the command line, and is no default.
    #[arg(skip)]
    named: Vec<String>,
}

impl Start {
    /// Whether the option of this field was named on the command line.
    pub fn is_named(&self, field: &str) -> bool {
        self.named.iter().any(|name| name == field)
    }
}

/// `dwell install-mono`.
#[derive(Debug, Args)]
#[command(after_help = "\
Mono loads profilers at its start only. With the module in place any program records itself:
  MONO_ENV_OPTIONS=--profile=dwell:cpu=10ms,wall=20ms,file=app.jfr mono app.exe")]
pub struct InstallMono {
    /// Where to put it [default: the lib directory beside the mono on the search path]
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `dwell stop` and `dwell dump`.
#[derive(Debug, Args)]
pub struct Fetch {
    /// Also copy the recording here
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The JVM: its pid, or a part of its main class or jar
    #[arg(value_name = "PID|NAME", value_parser = checked::jvm)]
    pub jvm: String,
}

/// Commands that need nothing but a JVM.
#[derive(Debug, Args)]
pub struct OneJvm {
    /// The JVM: its pid, or a part of its main class or jar
    #[arg(value_name = "PID|NAME", value_parser = checked::jvm)]
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
    #[arg(value_name = "PID|NAME", value_parser = checked::jvm)]
    pub jvm: String,
}

/// `dwell top`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Keys: 1-7 tables, Enter into a row, Esc back, Space pause, s sort, / filter, ? all keys, q quit.
100 % is one processor, or one thread, all the time. See docs/top.md.

Examples:
  dwell top 4711                        until q, Ctrl-C or the JVM's end
  dwell top --window 30s MyService      what was in the last 30 seconds
  dwell top --batch -n 1 4711           one screen as plain text, after 10 seconds
  dwell top --no-agent 4711             load nothing into the JVM; see docs/stacks.md")]
pub struct Top {
    /// How far back is counted, from 1s to 5m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::window)]
    pub window: Duration,
    /// What to show first
    #[arg(long, value_enum, value_name = "TABLE", default_value_t = Table::Methods)]
    pub view: Table,
    /// Print plain text, a screen each window, instead of drawing on the terminal
    #[arg(short, long)]
    pub batch: bool,
    /// With --batch: time between two screens [default: the window]
    #[arg(long, value_name = "TIME", requires = "batch", value_parser = units::recording_time)]
    pub every: Option<Duration>,
    /// With --batch: rows of the table
    #[arg(long, value_name = "N", requires = "batch", default_value_t = 20)]
    pub rows: usize,
    /// End after so many screens
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: Option<u32>,
    /// Load no agent: read the JVM from outside (no endpoints, requests, pauses, safepoints)
    #[arg(long)]
    pub no_agent: bool,
    /// How to sample.
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
    Stops,
    /// Stacks
    Stacks,
}

/// `dwell stacks`.
#[derive(Debug, Args)]
#[command(after_help = "\
Everything is read from outside: nothing is loaded into the JVM, no thread is stopped or signalled,
and the JVM need not answer. Threads that run are shown by a sample that the kernel takes.

Examples:
  dwell stacks 4711                     all Java threads
  dwell stacks --group 4711             threads with the same stack together
  dwell stacks --native --virtual 4711  all threads there are
  dwell stacks --repeat 10 -i 100ms MyService")]
pub struct Stacks {
    /// Threads of the JVM itself and of libraries, and native frames, too
    #[arg(long)]
    pub native: bool,
    /// Virtual threads that wait without a carrier, too: at most N of them
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10000",
          require_equals = true)]
    pub r#virtual: Option<usize>,
    /// Put threads with the same stack together
    #[arg(long)]
    pub group: bool,
    /// Stop a thread that runs for a moment if it cannot be read otherwise
    #[arg(long)]
    pub stop: bool,
    /// Look so many times
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Time between two looks
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = units::moment)]
    pub interval: Duration,
    /// One JSON object a look, instead of text
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
                                        what stopped all threads, and who was late")]
pub struct Report {
    /// A recording: ours, or one of the JDK's own, of async-profiler or ddprof
    #[arg(value_name = "FILE.jfr")]
    pub input: PathBuf,
    /// Where to write the page [default: the recording's name with .html]
    #[arg(short, long, value_name = "FILE.html",
          value_parser = OsStringValueParser::new().try_map(checked::page))]
    pub output: Option<PathBuf>,
    /// Print a summary instead of writing a page
    #[arg(long, conflicts_with = "output")]
    pub text: bool,
    /// With --text: print the safepoints instead, by operation, with the threads that were late
    #[arg(long, requires = "text")]
    pub safepoints: bool,
    /// With --text: tables of wall time have what was idle, too; without it that is one line
    #[arg(long, requires = "text", conflicts_with = "safepoints")]
    pub idle: bool,
    /// The page has all frames, also of stacks that hardly any samples share, of which a page of
    /// very many leaves some out
    #[arg(long, conflicts_with = "text")]
    pub all_frames: bool,
    /// What of arguments is not told.
    #[command(flatten)]
    pub redaction: Redaction,
}

/// `dwell view`.
#[derive(Debug, Args)]
#[command(after_help = "\
The browser is $BROWSER, or that of the desktop. The page is the one beside the recording, made anew
if the recording is newer.

Examples:
  dwell view app.jfr                    writes app.html and opens it
  dwell view .                          the newest recording of this folder
  dwell view --serve app.jfr            writes nothing; serves the page to this machine only
  dwell view --serve=8080 app.jfr       at this port, for ssh -L 8080:127.0.0.1:8080")]
pub struct View {
    /// A recording, a page, or a folder with recordings
    #[arg(value_name = "FILE|FOLDER")]
    pub input: PathBuf,
    /// Serve the page on 127.0.0.1, until Ctrl-C [default port: any that is free]
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0",
          require_equals = true)]
    pub serve: Option<u16>,
    /// What of arguments is not told.
    #[command(flatten)]
    pub redaction: Redaction,
}

/// `dwell explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each finding has its share of wall or CPU time with a 95 % confidence interval, what shows it, what
to do, and how sure it is. docs/explain.md tells the rules and when each of them speaks.

Examples:
  dwell explain app.jfr                 all findings, most costly first
  dwell explain app.jfr --endpoint 'GET /users/*'
  dwell explain app.jfr --json          also which rules found nothing, or lack data")]
pub struct Explain {
    /// A recording: ours, or one of the JDK's own, of async-profiler or ddprof
    #[arg(value_name = "FILE.jfr")]
    pub input: PathBuf,
    /// Only requests of such endpoints (* for anything)
    #[arg(long, value_name = "ENDPOINT")]
    pub endpoint: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// `dwell diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Rows marked * are significant, see docs/explain.md.

Examples:
  dwell diff before.jfr after.jfr       CPU time by method, wall time by cause, for each second;
                                        and a page with a flame graph: after-against-before.html
  dwell diff before.jfr after.jfr --per request
  dwell diff before.jfr after.jfr --markdown --fail-on 'cpu>5%'
                                        for a build that fails if CPU time grows: docs/ci.md
  dwell diff before.jfr after.jfr --collapsed > both.folded
                                        stacks with two numbers, for other flame graph tools")]
pub struct Diff {
    /// The first recording
    #[arg(value_name = "A.jfr")]
    pub a: PathBuf,
    /// The second recording
    #[arg(value_name = "B.jfr")]
    pub b: PathBuf,
    /// What numbers are for: a second, a request that ended, or all samples (shares)
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = PerWhat::Second)]
    pub per: PerWhat,
    /// Where the page goes [default: beside B, B-against-A.html]
    #[arg(short, long, value_name = "FILE",
          value_parser = OsStringValueParser::new().try_map(checked::page))]
    pub output: Option<PathBuf>,
    /// Print the text only, write no page
    #[arg(long, conflicts_with = "output")]
    pub text: bool,
    /// Print JSON instead of text, write no page
    #[arg(long, conflicts_with_all = ["collapsed", "text", "output"])]
    pub json: bool,
    /// Print Markdown instead of text, write a page with -o only
    #[arg(long, conflicts_with_all = ["collapsed", "text", "json"])]
    pub markdown: bool,
    /// Exit with 3 if this has grown by more, and by more than chance: cpu, wall (without idle
    /// time), alloc, a cause, or cpu:METHOD (* for anything), as in cpu>5%; can be given again
    #[arg(long, value_name = "LIMIT", value_parser = checked::limit, conflicts_with = "collapsed")]
    pub fail_on: Vec<Limit>,
    /// Print stacks with their numbers in A and B, those of A brought to what B has
    #[arg(long, conflicts_with_all = ["text", "output"])]
    pub collapsed: bool,
    /// Which time --collapsed counts [default: cpu]; or, with alloc and live, bytes in the place of
    /// time, as text or collapsed
    #[arg(short, long, value_enum)]
    pub event: Option<Event>,
    /// What of arguments is not told.
    #[command(flatten)]
    pub redaction: Redaction,
}

/// What numbers of a difference are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PerWhat {
    /// A second of the recording
    Second,
    /// A request that ended
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
  dwell convert app.jfr --collapsed --cause monitor --endpoint 'GET /x' --from 10s --to 20s
  dwell convert app.jfr -o app.html
  dwell convert app.jfr -o app.pb.gz      # for pprof and tools that read it: docs/interop.md
  dwell convert app.jfr -o app.otlp       # for OpenTelemetry's collector
  dwell convert app.jfr -o others.jfr     # for other tools that read JFR: docs/formats.md")]
pub struct Convert {
    /// A recording: ours, or one of the JDK's own, of async-profiler or ddprof
    #[arg(value_name = "FILE.jfr")]
    pub input: PathBuf,
    /// Where to write: .collapsed, .txt (a summary), .html, .jfr, .pb.gz (pprof), .otlp or
    /// .otlp.json, or any name with one of the next seven options [default with those: standard
    /// output]
    #[arg(short, long, value_name = "FILE", required_unless_present = "format")]
    pub output: Option<PathBuf>,
    /// Collapsed stacks, whatever the output's ending
    #[arg(long, group = "format")]
    pub collapsed: bool,
    /// A summary in text, whatever the output's ending
    #[arg(long, group = "format")]
    pub text: bool,
    /// A page, whatever the output's ending
    #[arg(long, group = "format")]
    pub html: bool,
    /// A recording with only what all tools for JFR know, whatever the output's ending
    #[arg(long, group = "format")]
    pub jfr: bool,
    /// A profile for pprof, of all kinds of time, allocations and locks, whatever the output's
    /// ending
    #[arg(long, group = "format")]
    pub pprof: bool,
    /// The same as OTLP profiles (protobuf), whatever the output's ending
    #[arg(long, group = "format")]
    pub otlp: bool,
    /// The same as OTLP profiles in JSON, whatever the output's ending
    #[arg(long, group = "format")]
    pub otlp_json: bool,
    /// The unit that collapsed stacks count in [default: samples of CPU time, ns of wall time and
    /// with lock, bytes with alloc and live]
    #[arg(long, value_enum)]
    pub unit: Option<Unit>,
    /// Begin collapsed stacks with their thread
    #[arg(long)]
    pub threads: bool,
    /// Collapsed stacks of threads that were late for safepoints, weighing how long they held all
    /// others up (in ns)
    #[arg(long, conflicts_with_all = ["event", "cause", "thread", "endpoint", "from", "to"])]
    pub safepoints: bool,
    /// What collapsed stacks count: time, with lock that in locks, or with alloc and live bytes,
    /// the class innermost [default: cpu, or wall with one of the next options]
    #[arg(short, long, value_enum)]
    pub event: Option<Event>,
    /// Only wall time with these causes (running, runnable, monitor, lock, park, ...)
    #[arg(long, value_name = "CAUSES", value_delimiter = ',', value_parser = checked::cause)]
    pub cause: Vec<String>,
    /// Only time of threads with such names (* for anything)
    #[arg(long, value_name = "NAME")]
    pub thread: Option<String>,
    /// Only time that was for such endpoints (* for anything)
    #[arg(long, value_name = "ENDPOINT")]
    pub endpoint: Option<String>,
    /// Only time from this time of the recording on; what lasts longer counts in part
    #[arg(long, value_name = "TIME", value_parser = units::moment)]
    pub from: Option<Duration>,
    /// Only time before this time of the recording
    #[arg(long, value_name = "TIME", value_parser = units::moment)]
    pub to: Option<Duration>,
    /// What of arguments is not told.
    #[command(flatten)]
    pub redaction: Redaction,
}

/// What collapsed stacks count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unit {
    /// Samples
    Samples,
    /// Nanoseconds of CPU time or wall time
    Ns,
    /// Bytes that are allocated, or alive
    Bytes,
    /// Objects that are alive
    Objects,
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
#[path = "args_tests.rs"]
mod tests;

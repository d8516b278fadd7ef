//! The source of the numbers: a recording of the target that a thread starts, follows and ends. The
//! recording in the target ends with that thread in any case.

use super::still::Lived;
use super::tail::{Follower, Ring};
use super::window::{Newest, Snapshot};
use crate::agent::{self, Agent};
use crate::args::Top;
use crate::lease::{self, Lease};
use crate::record::{outside, start_options};
use crate::{find, stacks, sys};
use anyhow::{Context, Result, anyhow, bail};
use dwell_attach::{Jvm, Target};
use dwell_jfr::kinds::told;
use dwell_jfr::reader::Told;
use dwell_outside::Vm;
use dwell_outside::record::Recorder;
use dwell_profile::{EVENTS, Profile};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Limits of the file in the target: a chunk ends after 5 s, a file after half of this size or age.
const BOUNDS: &str = "chunktime=5s,maxsize=64m,maxage=60s";
const CHUNK: Duration = Duration::from_secs(5);
const FILE: &str = "top.jfr";
/// The older part, which the agent keeps next to the file.
const KEPT: &str = "top.1.jfr";
/// Time between two readings of the file; the agent writes once a second.
const LOOK: Duration = Duration::from_millis(250);
const PAUSE: Duration = Duration::from_millis(50);
/// After so long without news, the agent is asked whether it still records.
const SILENCE: Duration = Duration::from_secs(5);
/// A shorter recording is not shown.
const SPAN_MIN_NS: u64 = 800_000_000;
/// The window ends so long before the last flush. A new wait is written once it has lasted a
/// second, and the flush after that comes within another tick.
const LAG_NS: u64 = 1_200_000_000;
/// Maximum number of news in the queue.
const NEWS_MAX: usize = 4;
/// Reading the recording uses no more than one CPU divided by this.
const LOAD: u32 = 5;

/// Messages of the thread.
pub enum News {
    /// The recording has begun: the program's name.
    Ready(String),
    /// A new second.
    Snapshot(Box<Snapshot>),
    /// It has ended without this command.
    End(String),
}

/// The thread that records.
pub struct Feed {
    news: Receiver<News>,
    quit: Arc<AtomicBool>,
    worker: Option<JoinHandle<Result<()>>>,
}

impl Feed {
    /// Begins to record.
    pub fn start(args: &Top) -> Feed {
        let (sender, news) = sync_channel(NEWS_MAX);
        let quit = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            args: args.clone(),
            news: sender,
            quit: Arc::clone(&quit),
        };
        Feed {
            news,
            quit,
            worker: Some(std::thread::spawn(move || worker.run())),
        }
    }

    /// Waits until it records. Returns the program's name.
    pub fn ready(&mut self) -> Result<String> {
        loop {
            match self.next(PAUSE) {
                Ok(Some(News::Ready(title))) => return Ok(title),
                Ok(Some(_)) => bail!("the recording did not begin"),
                Ok(None) if sys::interrupted() => bail!("interrupted before anything was recorded"),
                Ok(None) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The next news within this time; an error once the recording has failed.
    pub fn next(&mut self, time: Duration) -> Result<Option<News>> {
        match self.news.recv_timeout(time) {
            Ok(news) => Ok(Some(news)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                self.join()?;
                bail!("the recording has ended")
            }
        }
    }

    /// Ends the recording and removes its files.
    pub fn end(mut self) -> Result<()> {
        self.join()
    }

    fn join(&mut self) -> Result<()> {
        self.quit.store(true, Ordering::Relaxed);
        match self.worker.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(anyhow!("dwell top has failed; please report this")),
            None => Ok(()),
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // The error is already printed, or the terminal is gone.
        let _ = self.join();
    }
}

struct Worker {
    args: Top,
    news: SyncSender<News>,
    quit: Arc<AtomicBool>,
}

impl Worker {
    fn run(&self) -> Result<()> {
        let target = find::target(&self.args.jvm)?;
        match self.args.no_agent {
            true => self.outside(&target),
            false => self.inside(target),
        }
    }

    fn is_over(&self) -> bool {
        self.quit.load(Ordering::Relaxed) || sys::interrupted()
    }

    /// Sends news; drops them if the queue is full.
    fn send(&self, news: News) {
        let _ = self.news.try_send(news);
    }

    /// Sends the last news, which must not be dropped.
    fn end(&self, why: String) {
        let mut news = News::End(why);
        while let Err(TrySendError::Full(back)) = self.news.try_send(news) {
            if self.is_over() {
                return;
            }
            news = back;
            std::thread::sleep(PAUSE);
        }
    }

    fn window_ns(&self) -> u64 {
        self.args.window.as_nanos() as u64
    }

    fn kept_ns(&self) -> u64 {
        self.window_ns().saturating_add(LAG_NS)
    }

    /// Sends a new snapshot. Returns the time of the next reading.
    fn show(&self, follower: &Follower) -> Instant {
        let began = Instant::now();
        if let Some(newest) = newest(follower.ring()) {
            let snapshot = Snapshot::before(newest, self.window_ns(), LAG_NS);
            // The first flush comes early, and its numbers are too small.
            if snapshot.span_ns() >= SPAN_MIN_NS {
                self.send(News::Snapshot(Box::new(snapshot)));
            }
        }
        Instant::now() + LOOK.max(began.elapsed() * LOAD)
    }

    /// Records with the agent.
    fn inside(&self, target: Target) -> Result<()> {
        let pid = target.jvm().pid;
        let title = title(target.jvm());
        let recording = Recording::begin(target, &start_options(&self.args.sampling))?;
        self.send(News::Ready(title));
        let target = recording.agent.target();
        let mut follower = Follower::new(target.open_file(&recording.path)?, self.kept_ns());
        let (mut next, mut heard) = (Instant::now() + LOOK, Instant::now());
        let mut lease = Lease::begin();
        while !self.is_over() {
            lease.keep(&recording.agent);
            let is_alive = target.is_alive();
            if Instant::now() >= next {
                next = Instant::now() + LOOK;
                let now = target.open_file(&recording.path).ok();
                if follower.poll(now).context("reading the recording")? {
                    heard = Instant::now();
                    next = self.show(&follower);
                }
            }
            if !is_alive {
                self.end(format!("JVM {pid} has ended"));
                break;
            }
            if heard.elapsed() >= SILENCE {
                heard = Instant::now();
                if recording.is_ours() == Some(false) {
                    self.end("the recording was stopped by another command".to_owned());
                    break;
                }
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Records without the agent.
    fn outside(&self, target: &Target) -> Result<()> {
        let pid = target.jvm().pid;
        let live = stacks::open(target)?;
        let mut vm = Vm::read(target, &live)?;
        let file = temporary().context("a temporary file for the recording")?;
        let mut follower = Follower::new(file.try_clone()?, self.kept_ns());
        let mut recorder = Recorder::start(&mut vm, file, outside::wanted(&self.args.sampling))?;
        self.send(News::Ready(title(target.jvm()) + "  from outside"));
        let (mut next, mut turn) = (Instant::now() + LOOK, Instant::now() + CHUNK);
        while !self.is_over() {
            let is_alive = target.is_alive();
            recorder.step(PAUSE)?;
            if Instant::now() >= turn {
                turn = Instant::now() + CHUNK;
                let file = temporary().context("a temporary file for the recording")?;
                recorder.next_file(file.try_clone()?)?;
                follower.poll(None)?;
                follower.replace(file);
            }
            if Instant::now() >= next {
                next = Instant::now() + LOOK;
                if follower.poll(None)? {
                    next = self.show(&follower);
                }
            }
            if !is_alive {
                self.end(format!("JVM {pid} has ended"));
                break;
            }
        }
        Ok(())
    }
}

/// Reads the kept chunks; `None` if there are none yet.
fn newest(ring: &Ring) -> Option<Newest> {
    let events: Vec<&str> = [EVENTS, told::WallTick::NAMES].concat();
    let bytes = ring.bytes();
    if bytes.is_empty() {
        return None;
    }
    let recording = crate::recording::parsed_with(&bytes, &events).ok()?;
    let lived = recording.told::<told::WallTick>().map(|tick| Lived {
        time_ns: tick.time_ns,
        span_ns: tick.span_ns,
        threads: tick.live.saturating_add(tick.unmounted),
    });
    let lived = lived.collect();
    let recent = ring.newest();
    Some(Newest {
        profile: Profile::as_recorded(recording),
        recent: recent.and_then(|bytes| crate::recording::parsed(&bytes).ok()),
        lived,
    })
}

fn title(jvm: &Jvm) -> String {
    let main = jvm.main.as_deref().map_or("?", find::simple_name);
    match &jvm.version {
        Some(version) => format!("{} {main}  JVM {version}", jvm.pid),
        None => format!("{} {main}", jvm.pid),
    }
}

/// A file without a name.
fn temporary() -> std::io::Result<File> {
    let name = format!("dwell-top-{}", agent::random_name());
    let path = std::env::temp_dir().join(name);
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// A recording in the target. When dropped, it ends and its files are removed.
struct Recording {
    agent: Agent,
    path: String,
    is_running: bool,
}

impl Recording {
    fn begin(target: Target, options: &str) -> Result<Recording> {
        let pid = target.jvm().pid;
        let agent = Agent::new(target)?;
        let name = format!("dwell-{pid}-{}", agent::random_name());
        let scratch = agent.target().scratch(&name, FILE)?;
        let mut recording = Recording {
            agent,
            path: scratch.path,
            is_running: false,
        };
        let limits = lease::options(None);
        let options = format!("{options},{BOUNDS}{limits},file={}", recording.path);
        match recording.agent.command(&options) {
            Ok(_) => recording.is_running = true,
            Err(error) if format!("{error:#}").contains("already recording") => {
                bail!("{error:#}, or watch it from outside: dwell top --no-agent {pid}")
            }
            Err(error) => return Err(error),
        }
        Ok(recording)
    }

    /// Whether the target's running recording is this one; `None` if its status does not say.
    fn is_ours(&self) -> Option<bool> {
        let status = self.agent.command("status").ok()?;
        // A link may lead to the folder, so only the end of the path is compared.
        let file = self.path.rsplitn(3, '/').take(2);
        let ours = status.get("file")?.rsplitn(3, '/').take(2).eq(file);
        Some(ours && status.get("state") != Some("stopped"))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Another command may have ended it and started its own.
        if self.is_running && self.is_ours() != Some(false) {
            // The recording may have ended with the JVM.
            let _ = self.agent.command("stop");
        }
        // It remains only if the JVM's file system is gone as well.
        let _ = self.agent.target().remove_scratch_with(&self.path, &[KEPT]);
    }
}

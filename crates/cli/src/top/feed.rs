//! Where the numbers come from: a recording of the target that a thread of ours begins, follows and
//! ends. Whatever happens to the rest of the command, the recording in the target ends with it.

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

/// What bounds the file in the target: a chunk ends after 5 s, a file after half of these.
const BOUNDS: &str = "chunktime=5s,maxsize=64m,maxage=60s";
const CHUNK: Duration = Duration::from_secs(5);
const FILE: &str = "top.jfr";
/// What the agent keeps beside the file.
const KEPT: &str = "top.1.jfr";
/// Time between two looks at the file; the agent writes once a second.
const LOOK: Duration = Duration::from_millis(250);
const PAUSE: Duration = Duration::from_millis(50);
/// After so long without anything new the agent is asked whether it still records.
const SILENCE: Duration = Duration::from_secs(5);
/// Less of a recording is not shown.
const SPAN_MIN_NS: u64 = 800_000_000;
/// What is shown ends so long before the last flush: a new wait is written once it has lasted a
/// second, and the flush after that comes within another tick.
const LAG_NS: u64 = 1_200_000_000;
/// News that wait for who shows them.
const NEWS_MAX: usize = 4;
/// Reading the recording takes at most such a part of a processor: one of so many.
const LOAD: u32 = 5;

/// What the thread tells.
pub enum News {
    /// The recording has begun: the program's name.
    Ready(String),
    /// A new second.
    Snapshot(Box<Snapshot>),
    /// It is over, without us.
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

    /// Waits until it records, and gives the program's name.
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

    /// What is new, if anything within this time; an error once it can go no further.
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

    /// Ends the recording and removes what is left of it.
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
        // Said already, or nobody is there to be told.
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

    /// Tells something; what comes too fast for who shows it is left out.
    fn tell(&self, news: News) {
        let _ = self.news.try_send(news);
    }

    /// Tells the last thing, which must not be left out.
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

    /// Tells what is new, and when to look again.
    fn show(&self, follower: &Follower) -> Instant {
        let began = Instant::now();
        if let Some(newest) = newest(follower.ring()) {
            let snapshot = Snapshot::before(newest, self.window_ns(), LAG_NS);
            // The first flush comes soon, and what it says is chance.
            if snapshot.span_ns() >= SPAN_MIN_NS {
                self.tell(News::Snapshot(Box::new(snapshot)));
            }
        }
        Instant::now() + LOOK.max(began.elapsed() * LOAD)
    }

    /// With the agent.
    fn inside(&self, target: Target) -> Result<()> {
        let pid = target.jvm().pid;
        let title = title(target.jvm());
        let recording = Recording::begin(target, &start_options(&self.args.sampling))?;
        self.tell(News::Ready(title));
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
                    self.end("the recording was stopped by somebody else".to_owned());
                    break;
                }
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Without it.
    fn outside(&self, target: &Target) -> Result<()> {
        let pid = target.jvm().pid;
        let live = stacks::open(target)?;
        let mut vm = Vm::read(target, &live)?;
        let file = temporary().context("a temporary file for the recording")?;
        let mut follower = Follower::new(file.try_clone()?, self.kept_ns());
        let mut recorder = Recorder::start(&mut vm, file, outside::wanted(&self.args.sampling))?;
        self.tell(News::Ready(title(target.jvm()) + "  from outside"));
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

/// What is kept, read; `None` if there is nothing.
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

/// A recording in the target; ended, and its files removed, when dropped.
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

    /// Whether what goes on in the target is this recording; none if it does not say.
    fn is_ours(&self) -> Option<bool> {
        let status = self.agent.command("status").ok()?;
        // Links may lead to the folder, so its beginning can differ.
        let file = self.path.rsplitn(3, '/').take(2);
        let ours = status.get("file")?.rsplitn(3, '/').take(2).eq(file);
        Some(ours && status.get("state") != Some("stopped"))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Somebody may have ended it and begun one of his own.
        if self.is_running && self.is_ours() != Some(false) {
            // It may have ended by itself, with the JVM.
            let _ = self.agent.command("stop");
        }
        // Left behind only where the JVM's file system is gone as well.
        let _ = self.agent.target().remove_scratch_with(&self.path, &[KEPT]);
    }
}

//! `dwell ship`: sends recordings to a receiver of profiles, a part of time after the other, also
//! while they go on. Reads files of recordings only, and runs nothing in the target.

mod bodies;
mod slices;
mod sources;

use crate::args::{BodyForm, Ship, To};
use crate::{Usage, recording, sys};
use anyhow::{Context, Result, bail};
use bodies::{Content, Maker};
use dwell_jfr::redact::Secrets;
use dwell_ship::{Headers, Http, Kind, Position, Receiver, Sender, Spool, Step};
use slices::ALL;
use sources::{Mark, Request, Source, mark_of};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Names the receiver, where the command line would show a signature to others.
const TO_VARIABLE: &str = "DWELL_SHIP_TO";
/// The value of the header `Authorization`.
const AUTHORIZATION_VARIABLE: &str = "DWELL_SHIP_AUTHORIZATION";
/// Limit of the time of one request. A large body has more.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two checks of the recordings; the agent writes once a second.
const PAUSE: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_secs(1);
/// After Ctrl-C, and after a short recording, bodies are tried for this time.
const LEAVE: Duration = Duration::from_secs(5);
const SHORT: Duration = Duration::from_secs(30);
/// The spool of a short recording.
const SPOOL_MAX: u64 = 100 << 20;
/// The part of a short recording that a body has.
const EVERY: Duration = Duration::from_secs(60);

/// `dwell ship`.
pub fn run(args: &Ship) -> Result<ExitCode> {
    let url = match &args.to.to {
        Some(url) => checked_url(url)?,
        None => std::env::var(TO_VARIABLE).map_err(|_| {
            let text = "--to is missing; give a URL like otlp+http://localhost:4318";
            Usage(format!("{text}, or set {TO_VARIABLE}"))
        })?,
    };
    let receiver = receiver(&url)?;
    let form = form(&receiver, args.format)?;
    if receiver.kind() == Kind::Put && form == BodyForm::Jfr && !args.redaction.redact.is_empty() {
        let text = "--redact: recordings are sent as they are; choose another --format, or record";
        return Err(Usage(format!("{text} with --redact")).into());
    }
    let mut door = Door::open(Settings {
        receiver,
        form,
        headers: headers(&args.to)?,
        spool: args.spool.as_deref(),
        spool_max: args.spool_max,
        every: args.every,
        secrets: args.redaction.secrets(),
    })?;
    sys::count_interrupts().context("installing the handler for Ctrl-C")?;
    let mut inputs = Inputs::of(args)?;
    if inputs.directory.is_some() && is_one_file(&door.maker.receiver) {
        let text = "--to: the URL names one file for a whole directory; end it with /";
        return Err(Usage(text.to_owned()).into());
    }
    door.work(&mut inputs, args.once, None)
}

/// The receiver of a short recording, checked before it begins.
pub struct Afterwards {
    receiver: Receiver,
    headers: Headers,
}

impl Afterwards {
    /// The receiver that the options name, if they do.
    pub fn of(to: &To) -> Result<Option<Afterwards>> {
        match &to.to {
            Some(url) => Ok(Some(Afterwards {
                receiver: receiver(&checked_url(url)?)?,
                headers: headers(to)?,
            })),
            None if to.header_file.is_some() => {
                Err(Usage("--header-file: give --to as well".to_owned()).into())
            }
            None => Ok(None),
        }
    }

    /// Sends finished recordings.
    ///
    /// # Errors
    /// One line, if something could not be sent.
    pub fn send(self, files: &[PathBuf], secrets: &Secrets) -> Result<()> {
        let shown = self.receiver.shown();
        if files.len() > 1 && is_one_file(&self.receiver) {
            let count = files.len();
            bail!("{shown}: one file for {count} recordings; send them with dwell ship");
        }
        let form = form(&self.receiver, None)?;
        let mut door = Door::open(Settings {
            receiver: self.receiver,
            form,
            headers: self.headers,
            spool: None,
            spool_max: SPOOL_MAX,
            every: EVERY,
            secrets: secrets.clone(),
        })?;
        let mut inputs = Inputs::of_files(files);
        let code = door.work(&mut inputs, true, Some(SHORT))?;
        match code == ExitCode::SUCCESS {
            true => Ok(()),
            false => bail!("not everything was sent to {shown}"),
        }
    }
}

/// Refuses a URL whose query has a credential: other users see the command line.
fn checked_url(url: &str) -> Result<String> {
    let has_secret = Receiver::parse(url).is_ok_and(|it| it.has_secret());
    if has_secret {
        let text = "--to: the process list would show the URL's credential";
        return Err(Usage(format!("{text}; set {TO_VARIABLE} to the URL instead")).into());
    }
    Ok(url.to_owned())
}

fn receiver(url: &str) -> Result<Receiver> {
    Receiver::parse(url).map_err(|error| Usage(format!("--to: {error}")).into())
}

/// Whether all that is sent goes to one file, which then has the whole recording.
fn is_one_file(receiver: &Receiver) -> bool {
    receiver.kind() == Kind::Put && !receiver.is_folder()
}

fn headers(to: &To) -> Result<Headers> {
    let authorization = std::env::var(AUTHORIZATION_VARIABLE).ok();
    let headers = Headers::read(authorization.as_deref(), to.header_file.as_deref());
    let headers = headers.map_err(|error| Usage(error.to_string()))?;
    if let Some(warning) = &headers.warning {
        note!("dwell: {warning}");
    }
    Ok(headers)
}

/// The form of bodies, if the receiver takes it.
fn form(receiver: &Receiver, wanted: Option<BodyForm>) -> Result<BodyForm> {
    let (usual, others): (_, &[BodyForm]) = match receiver.kind() {
        Kind::Otlp => (BodyForm::Otlp, &[]),
        Kind::Pyroscope => (BodyForm::Pprof, &[BodyForm::Jfr]),
        Kind::Put => (
            BodyForm::Jfr,
            &[BodyForm::Otlp, BodyForm::Pprof, BodyForm::Parquet],
        ),
    };
    let wanted = wanted.unwrap_or(usual);
    if wanted != usual && !others.contains(&wanted) {
        let text = "--format: this receiver does not take it; leave --format out";
        return Err(Usage(text.to_owned()).into());
    }
    if wanted == BodyForm::Parquet && !receiver.is_folder() {
        let text = "--format parquet: has several files; end the URL with /";
        return Err(Usage(text.to_owned()).into());
    }
    Ok(wanted)
}

/// The recordings to send.
struct Inputs {
    sources: Vec<Source>,
    /// A directory, which is searched for new recordings.
    directory: Option<PathBuf>,
    /// Those that were found in it. If they are done: their state then.
    known: BTreeMap<PathBuf, Option<Mark>>,
}

impl Inputs {
    fn of_files(files: &[PathBuf]) -> Inputs {
        Inputs {
            sources: files.iter().map(|it| Source::of_file(it)).collect(),
            directory: None,
            known: BTreeMap::new(),
        }
    }

    fn of(args: &Ship) -> Result<Inputs> {
        let Some(input) = &args.input else {
            return Ok(Inputs::of_files(&[]));
        };
        let path = Path::new(input);
        if path.is_dir() {
            let mut inputs = Inputs {
                directory: Some(path.to_owned()),
                ..Inputs::of_files(&[])
            };
            inputs.search()?;
            if inputs.sources.is_empty() {
                let shown = recording::shown(path);
                bail!("{shown} has no recordings; give a directory with files FILE.jfr");
            }
            return Ok(inputs);
        }
        let looks_like_file = path.components().count() > 1 || path.extension().is_some();
        if path.exists() || looks_like_file {
            if !path.exists() {
                return Err(recording::missing(path));
            }
            return Ok(Inputs::of_files(&[path.to_owned()]));
        }
        Ok(Inputs {
            sources: vec![Source::of_jvm(input)?],
            ..Inputs::of_files(&[])
        })
    }

    /// Adds new recordings of the directory.
    fn search(&mut self) -> Result<()> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        for path in sources::in_directory(directory)? {
            let is_new = match self.known.get(&path) {
                None => true,
                Some(None) => false,
                Some(before) => mark_of(&path) != *before,
            };
            if is_new {
                self.sources.push(Source::found(&path));
                self.known.insert(path, None);
            }
        }
        Ok(())
    }

    /// Removes recordings of which nothing more comes. A file of a directory comes back when it is
    /// written again.
    fn retire(&mut self) {
        let Inputs { sources, known, .. } = self;
        for source in sources.iter().filter(|it| it.is_done()) {
            match mark_of(source.path()) {
                Some(mark) => known.insert(source.path().to_owned(), Some(mark)),
                None => known.remove(source.path()),
            };
        }
        sources.retain(|source| !source.is_done());
    }

    /// Whether nothing more can come.
    fn is_done(&self, is_once: bool) -> bool {
        self.sources.is_empty() && (self.directory.is_none() || is_once)
    }
}

/// The settings of a door.
struct Settings<'a> {
    receiver: Receiver,
    form: BodyForm,
    headers: Headers,
    spool: Option<&'a Path>,
    spool_max: u64,
    every: Duration,
    secrets: Secrets,
}

/// All that sending needs.
struct Door {
    maker: Maker,
    every: Duration,
    spool: Spool,
    http: Http,
    sender: Sender,
    began: Instant,
    /// When a part was last stored or sent.
    progress: Instant,
    /// Bodies that were lost.
    lost: u64,
    /// Whether the spool could not be written the last time.
    is_unwritable: bool,
    /// Bytes in the spool when a body did not fit: it waits until there are fewer.
    crowded: Option<u64>,
}

impl Door {
    fn open(settings: Settings<'_>) -> Result<Door> {
        let Settings {
            receiver,
            form,
            headers,
            spool,
            spool_max,
            every,
            secrets,
        } = settings;
        let dir = match spool {
            Some(dir) => dir.to_owned(),
            None => default_spool(&receiver)?,
        };
        let http = Http::new(&receiver, headers.all, TIMEOUT)?;
        let every = if is_one_file(&receiver) { ALL } else { every };
        Ok(Door {
            spool: Spool::open(&dir, spool_max)?,
            http,
            maker: Maker {
                receiver,
                form,
                secrets,
            },
            every,
            sender: Sender::default(),
            began: Instant::now(),
            progress: Instant::now(),
            lost: 0,
            is_unwritable: false,
            crowded: None,
        })
    }

    /// Sends until nothing more comes, or Ctrl-C. `patience` limits the time without any progress.
    fn work(
        &mut self,
        inputs: &mut Inputs,
        is_once: bool,
        patience: Option<Duration>,
    ) -> Result<ExitCode> {
        if inputs.sources.is_empty() && inputs.directory.is_none() && self.spool.waiting() == 0 {
            let dir = recording::shown(self.spool.dir());
            note!("dwell: nothing to send; the spool {dir} is empty");
        }
        let (mut end, mut is_complete): (Option<Instant>, bool) = (None, true);
        let mut look = self.began;
        loop {
            let is_interrupted = sys::interrupted();
            let is_last = is_once || is_interrupted;
            if is_interrupted {
                self.http.limit(LEAVE);
            }
            if Instant::now() >= look || is_interrupted {
                let has_more = self.take(inputs, is_last, is_once)?;
                look = Instant::now() + if has_more { Duration::ZERO } else { LOOK };
            }
            self.send()?;
            let is_taken = inputs.is_done(is_once) || is_interrupted;
            if is_taken && self.spool.waiting() == 0 {
                break;
            }
            let leave = || Instant::now() + LEAVE;
            let has_left = is_interrupted && Instant::now() >= *end.get_or_insert_with(leave);
            let is_stuck = patience.is_some_and(|limit| self.progress.elapsed() >= limit);
            if has_left || is_stuck {
                is_complete = is_taken;
                break;
            }
            std::thread::sleep(PAUSE);
        }
        Ok(self.finish(is_complete))
    }

    /// Says what was sent.
    fn finish(&self, is_complete: bool) -> ExitCode {
        let (sent, waiting) = (self.sender.sent(), self.spool.waiting());
        let lost = self.lost + self.sender.dropped();
        let shown = self.maker.receiver.shown();
        note!("dwell: sent {} to {shown}", bodies_of(sent));
        if lost > 0 {
            note!("dwell: dropped {}", bodies_of(lost));
        }
        if waiting > 0 {
            let dir = recording::shown(self.spool.dir());
            let bodies = bodies_of(waiting as u64);
            note!("dwell: kept {bodies} in {dir}; send with: dwell ship --to URL");
        }
        match lost == 0 && waiting == 0 && is_complete && !self.is_unwritable {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(crate::EXIT_FAILURE),
        }
    }

    /// Puts the next parts of all recordings into the spool. True if there is more at once.
    fn take(&mut self, inputs: &mut Inputs, is_last: bool, is_once: bool) -> Result<bool> {
        inputs.search()?;
        let is_directory = inputs.directory.is_some();
        let mut has_more = false;
        for source in &mut inputs.sources {
            match self.take_from(source, is_last, is_once) {
                Ok(more) => has_more |= more,
                // One bad file of a directory does not keep the others back.
                Err(error) if is_directory => {
                    let line = crate::one_line(&format!("{error:#}"));
                    note!("dwell: {line}");
                    source.give_up();
                    self.lost += 1;
                }
                Err(error) => return Err(error),
            }
        }
        inputs.retire();
        Ok(has_more)
    }

    /// The same of one recording, a part at a time, so that sending keeps up.
    fn take_from(&mut self, source: &mut Source, is_last: bool, is_once: bool) -> Result<bool> {
        // Data of a recording that drops nothing can wait there.
        let can_wait = !source.is_bounded();
        let is_crowded = self
            .crowded
            .is_some_and(|bytes| self.spool.bytes() >= bytes);
        if can_wait && (self.spool.is_half_full() || is_crowded) {
            return Ok(false);
        }
        self.crowded = None;
        let request = Request {
            every: self.every,
            is_last,
            is_once,
            secrets: &self.maker.secrets,
        };
        let Some(part) = source.next(&request, &self.spool)? else {
            return Ok(false);
        };
        let name = source.name();
        let content = Content {
            name: &name,
            from_ns: part.from_ns,
            to_ns: part.to_ns,
            jfr: part.jfr.as_deref(),
        };
        let bodies = self.maker.bodies(&content, &part.profile)?;
        if can_wait && !self.spool.has_room(&bodies) {
            self.crowded = Some(self.spool.bytes());
            source.take_back();
            return Ok(false);
        }
        let shown = source.shown();
        if self.store(&bodies, part.position, &shown) {
            source.passed(&part);
            self.progress = Instant::now();
            return Ok(!source.is_done());
        }
        source.take_back();
        Ok(false)
    }

    /// Stores bodies; the last one has the position behind all of them. False if that failed.
    fn store(&mut self, bodies: &[dwell_ship::Body], position: Position, shown: &str) -> bool {
        let before = self.spool.position(position.source);
        let before = before.unwrap_or(Position {
            source: position.source,
            ..Position::default()
        });
        let mut stored = match bodies.is_empty() {
            true => self.spool.advance(position),
            false => Ok(()),
        };
        for (place, body) in bodies.iter().enumerate() {
            let is_last = place + 1 == bodies.len();
            let behind = if is_last { position } else { before };
            stored = self.spool.add(body, behind).map(|added| {
                self.lost += added.dropped;
                if added.is_too_large {
                    let bytes = body.bytes.len();
                    note!("dwell: dropped a part of {shown}: {bytes} bytes exceed --spool-max");
                } else if added.dropped > 0 {
                    let dropped = added.dropped;
                    note!(
                        "dwell: the spool is full: dropped the {dropped} oldest; see --spool-max"
                    );
                }
            });
            if stored.is_err() {
                break;
            }
        }
        let was_unwritable = std::mem::replace(&mut self.is_unwritable, stored.is_err());
        if let Err(error) = stored {
            if !was_unwritable {
                let dir = recording::shown(self.spool.dir());
                note!("dwell: the spool {dir} cannot be written: {error}; trying again");
            }
            return false;
        }
        true
    }

    /// Sends what waits, until a failure or Ctrl-C.
    fn send(&mut self) -> Result<()> {
        let was_interrupted = sys::interrupted();
        while was_interrupted || !sys::interrupted() {
            let now = self.began.elapsed();
            let step = self
                .sender
                .step(now, random(), &mut self.spool, &mut self.http);
            match step.with_context(|| recording::shown(self.spool.dir()))? {
                Step::Sent => self.progress = Instant::now(),
                Step::Empty | Step::Waiting(_) | Step::Later(_, None) => break,
                Step::Later(_, Some(why)) => {
                    let (count, dir) = (self.spool.waiting(), recording::shown(self.spool.dir()));
                    let why = dwell_report::plain(&why);
                    let bodies = bodies_of(count as u64);
                    note!("dwell: {why}; trying again, keeping {bodies} in {dir}");
                    break;
                }
                Step::Dropped(why) => {
                    let why = dwell_report::plain(&why);
                    note!("dwell: dropped a body: {why}");
                }
            }
        }
        Ok(())
    }
}

fn bodies_of(count: u64) -> String {
    match count {
        1 => "1 body".to_owned(),
        _ => format!("{count} bodies"),
    }
}

/// The directory of a receiver's bodies, which are state of this user.
fn default_spool(receiver: &Receiver) -> Result<PathBuf> {
    let of = |name| std::env::var_os(name).map(PathBuf::from);
    let is_absolute = |path: &PathBuf| path.is_absolute();
    let state = of("XDG_STATE_HOME").filter(is_absolute);
    let state = state.or_else(|| Some(of("HOME").filter(is_absolute)?.join(".local/state")));
    let Some(state) = state else {
        let text = "no HOME for the spool; name a directory with --spool";
        return Err(Usage(text.to_owned()).into());
    };
    let id = sources::hash(receiver.id().as_bytes());
    Ok(state.join("dwell/ship").join(format!("{id:016x}")))
}

/// From 0 to 1.
fn random() -> f64 {
    // The standard library seeds each of these from the system's random numbers.
    let hash = std::hash::RandomState::new().build_hasher().finish();
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}

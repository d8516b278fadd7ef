//! For unit tests: recorders of a test runtime, and the paths of their files. There is one engine
//! in a process, so tests that use it run one after the other. Tests only.

#[path = "../tests/mock/mod.rs"]
mod mock;

use crate::options::{EngineChoice, Options, parse};
use crate::record::file::RecordingFile;
use crate::recorder::Recorder;
use crate::registry::Registry;
use crate::runtime::setup::Setup;
use crate::source::Source;
use crate::sys::{loader, process};
use dwell_signal::{Engine, Registration};
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use mock::{Agent, IN_NATIVE, Mock, begin_thread};

/// Steps that can fail when a recording begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The drainer's thread.
    Thread,
    /// To empty the file.
    File,
}

thread_local! {
    /// The step that fails on this thread.
    static FAILS: Cell<Option<Step>> = const { Cell::new(None) };
}

/// This step fails on the calling thread from now on; `None`: no step does.
pub fn let_fail(step: Option<Step>) {
    FAILS.set(step);
}

thread_local! {
    /// How long this thread waits for a drainer.
    static TIMEOUT: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// The calling thread waits no longer for a drainer; `None`: as long as ever.
pub fn set_timeout(timeout: Option<Duration>) {
    TIMEOUT.set(timeout);
}

/// How long that is.
pub fn timeout() -> Option<Duration> {
    TIMEOUT.get()
}

static HELD: Mutex<()> = Mutex::new(());

/// Drainers do not begin while this is there.
pub fn hold_drainers() -> MutexGuard<'static, ()> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on a drainer's thread.
pub fn may_be_held() {
    drop(hold_drainers());
}

/// An error, if this step is to fail.
pub fn may_fail(step: Step) -> std::io::Result<()> {
    match FAILS.get() == Some(step) {
        true => Err(std::io::ErrorKind::StorageFull.into()),
        false => Ok(()),
    }
}

static ALONE: Mutex<()> = Mutex::new(());
static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// While this exists no other test uses the engine.
pub struct Alone {
    source: Source,
    folder: PathBuf,
    _held: MutexGuard<'static, ()>,
}

/// Waits until no other test uses the engine.
pub fn alone() -> Alone {
    let held = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let name = format!("dwell-recorder-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    Alone {
        source: Source::start(EngineChoice::Timer).unwrap(),
        folder,
        _held: held,
    }
}

/// Builds a library with this function; `None` without a compiler.
pub fn build_library(path: &str, function: &str) -> Option<()> {
    let code = format!("int {function}(int a) {{ return a * a; }}");
    let source = format!("{path}.c");
    std::fs::write(&source, code).unwrap();
    let arguments = ["-shared", "-fPIC", "-O1", "-o", path, &source];
    let is_built = std::process::Command::new("cc").args(arguments).status();
    std::fs::remove_file(&source).unwrap();
    assert!(is_built.as_ref().ok()?.success());
    Some(())
}

/// Loads a library that is there.
pub fn load_library(path: &str) -> loader::Library {
    let path = std::ffi::CString::new(path).unwrap();
    loader::Library::load(&path).unwrap()
}

/// Registers the calling thread as one that the census has found. Returns its id.
pub fn register_here(registry: &Registry, engine: &'static Engine) -> i32 {
    let tid = process::own_tid();
    registry.add_if_new(tid, true, |newborn| {
        let registration = Registration {
            tid,
            newborn,
            ..Registration::default()
        };
        engine.register(&registration).ok()
    });
    tid
}

impl Drop for Alone {
    /// Threads that the census has found must not stay for the next test.
    fn drop(&mut self) {
        let engine = self.engine();
        engine.stop();
        for record in engine.live_records() {
            engine.end(record);
        }
        engine.drain(|_| ());
        engine.reap(|_| ());
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Alone {
    /// The engine.
    pub fn engine(&self) -> &'static Engine {
        self.source.engine
    }

    /// A recorder without a recording.
    pub fn agent(&self) -> &'static Agent {
        let runtime = Mock::default();
        Box::leak(Box::new(Recorder::new(runtime, self.source.clone())))
    }

    /// A file that is not there yet.
    pub fn file(&self) -> PathBuf {
        self.folder.join("it.jfr")
    }

    /// A library with the function `squared`, not loaded; `None` without a compiler.
    pub fn library(&self, name: &str) -> Option<String> {
        let path = self.folder.join(name).to_str()?.to_owned();
        build_library(&path, "squared")?;
        Some(path)
    }

    /// A recording with hardly any samples, with `more` options.
    pub fn asked(&self, more: &str) -> (Options, String) {
        let file = self.file().display().to_string();
        let text = format!("start,cpu=10s,engine=timer,file={file}{more}");
        (parse(&text).unwrap(), text)
    }

    /// The parts of such a recording.
    pub fn setup(&self, agent: &'static Agent, more: &str) -> Setup<Mock> {
        let (options, text) = self.asked(more);
        let file = RecordingFile::create(&self.file()).unwrap();
        agent.setup(&options, &text, file)
    }
}

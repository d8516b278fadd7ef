//! Mono programs recorded by the real module: compiled when a test asks for them, with Debian's
//! compiler.

use crate::{Place, View};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A program that has not ended by then hangs.
const HANGS_AFTER: Duration = Duration::from_secs(300);

/// A place with the module, where programs are compiled and recorded.
#[derive(Debug)]
pub struct Mono {
    /// Where everything is.
    pub place: Place,
}

/// The output of a program that has ended.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code.
    pub code: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Ran {
    /// The number that the program printed after `name`.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        let mut lines = self.out.lines();
        let number = lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        number.unwrap_or_else(|| panic!("no {name}: {self:?}"))
    }
}

/// Says on a line of its own that a test is not run for lack of something.
pub fn skipped(test: &str, missing: &str, packages: &str) {
    // Directly to the stream, because the harness captures the output of passing tests.
    let _ = writeln!(
        std::io::stderr(),
        "\nskipped: {test}: there is no {missing} on this machine (on Debian: apt-get install \
         {packages})"
    );
}

fn is_on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}

impl Mono {
    /// A place for a test; `None` without Mono, which is said on a line of its own.
    #[must_use]
    pub fn find(test: &str) -> Option<Mono> {
        Mono::with(test, module)
    }

    /// The same with a module that has experiments: `DWELL_EXPERIMENT_MONO_SO`, or a build of its
    /// own.
    #[must_use]
    pub fn find_experimental(test: &str) -> Option<Mono> {
        Mono::with(test, experiment_module)
    }

    fn with(test: &str, module: fn() -> PathBuf) -> Option<Mono> {
        if let Some(missing) = ["mono", "mcs"].into_iter().find(|name| !is_on_path(name)) {
            skipped(test, missing, "mono-runtime mono-mcs");
            return None;
        }
        let place = Place::new(test);
        let to = place.dir.join("libmono-profiler-dwell.so");
        std::fs::copy(module(), to).expect("a copy of the module");
        Some(Mono { place })
    }

    /// Compiles one of the programs in this crate's folder.
    pub fn compile(&self, name: &str) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("mono/{name}.cs"));
        let ran = self.run(
            Command::new("mcs")
                .args(["-debug", "-nowarn:414"])
                .args([format!("-out:{name}.exe").as_ref(), source.as_os_str()]),
        );
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }

    /// A command whose Monos record themselves with these options.
    #[must_use]
    pub fn recorded(&self, program: &str, options: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("LD_LIBRARY_PATH", &self.place.dir)
            .env("MONO_ENV_OPTIONS", format!("--profile=dwell:{options}"));
        command
    }

    /// Runs a command here; one that hangs fails the test.
    pub fn run(&self, command: &mut Command) -> Ran {
        let (out, err) = (self.file("out"), self.file("err"));
        let create = |path: &Path| std::fs::File::create(path).expect("a file here");
        let mut child = command
            .current_dir(&self.place.dir)
            .stdin(Stdio::null())
            .stdout(create(&out))
            .stderr(create(&err))
            .spawn()
            .expect("a program that was found before");
        let began = Instant::now();
        let code = loop {
            if let Some(status) = child.try_wait().expect("a child of ours") {
                break status.code();
            }
            if began.elapsed() > HANGS_AFTER {
                let _ = child.kill();
                let said = std::fs::read_to_string(&out);
                panic!("{command:?} hangs; it said {said:?}");
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let read = |path: &Path| std::fs::read_to_string(path).expect("what was printed");
        Ran {
            code,
            out: read(&out),
            err: read(&err),
        }
    }

    /// Runs a program of ours to its end, and reads its recording.
    #[must_use]
    pub fn record(&self, command: &mut Command, file: &str) -> (Ran, View) {
        let ran = self.run(command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(ran.err, "", "{ran:?}");
        (ran, View::read(&self.file(file)))
    }

    /// A file here.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.place.dir.join(name)
    }
}

fn experiment_module() -> PathBuf {
    if let Some(path) = std::env::var_os("DWELL_EXPERIMENT_MONO_SO") {
        return PathBuf::from(path);
    }
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/experiments");
    let path = target.join("release/libmono_profiler_dwell.so");
    assert!(
        path.exists(),
        "{} is missing: cargo build --release -p dwell-mono --features experiments --target-dir \
         target/experiments",
        path.display()
    );
    path
}

/// The module: `DWELL_MONO_SO`, or the release build in the target directory of this test.
fn module() -> PathBuf {
    if let Some(path) = std::env::var_os("DWELL_MONO_SO") {
        return PathBuf::from(path);
    }
    let exe = std::env::current_exe().expect("the path of this test");
    let beside = exe.ancestors().nth(3).map(Path::to_path_buf);
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let places = beside.into_iter().chain([usual]);
    places
        .map(|target| target.join("release/libmono_profiler_dwell.so"))
        .find(|path| path.exists())
        .expect("Mono's module: cargo build --release -p dwell-mono, or set DWELL_MONO_SO")
}

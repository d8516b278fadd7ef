//! The order of a run: exact and never tests first, several at a time. Then measured tests, alone.
//! Then the failed ones of those once more.

use super::cargo::{self, Case, Program};
use super::kind::Kind;
use super::options::Options;
use super::process::{self, End, Took};
use super::rotation;
use super::steps::{self, Part};
use super::verdict::{Account, Outcome, Ran, kind_of_failure, said};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Crates whose tests start JVMs and take longest. They are first, so that they do not delay the
/// end.
const FIRST: [&str; 5] = ["e2e/", "cli/", "attach/", "signal/", "jfr/"];

/// The seed of property tests in the gate.
const PROPERTIES_SEED: &str = "20261129";

/// The state of a run.
struct Suite {
    root: PathBuf,
    options: Options,
    /// Outputs, and files that tests leave behind. Each run begins with an empty folder.
    folder: PathBuf,
    /// Temporary files of tests: short paths, which other users may pass.
    scratch: PathBuf,
    log: Mutex<fs::File>,
    began: Instant,
    until: Instant,
    turn: u64,
    number: AtomicUsize,
}

/// A unit of the parallel run.
enum Job<'a> {
    Case(&'a Case),
    Part(&'a Part),
}

impl Job<'_> {
    fn name(&self) -> String {
        match self {
            Job::Case(case) => case.name(),
            Job::Part(part) => part.name.to_owned(),
        }
    }
}

/// Runs everything that is asked for; true if the run is green.
///
/// # Errors
/// Reasons that prevent a run: a repository that does not compile, no place for the outputs.
pub fn run(options: &Options) -> Result<bool> {
    let suite = Suite::new(crate::repository(), options.clone())?;
    let outcome = suite.run();
    let _ = fs::remove_dir_all(&suite.scratch);
    outcome
}

impl Suite {
    fn new(root: PathBuf, options: Options) -> Result<Suite> {
        let folder = root.join("target/suite");
        let _ = fs::remove_dir_all(&folder);
        for kept in ["target/unstable", "target/failed"] {
            let _ = fs::remove_dir_all(root.join(kept));
        }
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let scratch = std::env::temp_dir().join(format!("dwell-t{}", std::process::id()));
        fs::create_dir_all(&scratch).with_context(|| scratch.display().to_string())?;
        let log = root.join("target/test.log");
        let log = fs::File::create(&log).with_context(|| log.display().to_string())?;
        // Not for slowness, only against a run that would never end.
        let minutes = if options.all { 600 } else { 60 };
        let turn = commits(&root);
        Ok(Suite {
            root,
            options,
            folder,
            scratch,
            log: Mutex::new(log),
            began: Instant::now(),
            until: Instant::now() + Duration::from_secs(60 * minutes),
            turn,
            number: AtomicUsize::new(0),
        })
    }

    fn run(&self) -> Result<bool> {
        let mut account = Account::default();
        let mut cases = self.prepare(&mut account)?;
        let beside = steps::beside(&self.root, self.options.all, self.turn);
        if self.options.list {
            list(&cases, &beside);
            return Ok(true);
        }
        self.leave_out(&mut cases)?;
        let (measured, others): (Vec<Case>, Vec<Case>) =
            cases.into_iter().partition(|case| case.kind.is_measured());
        let asked = beside.iter().filter(|part| self.options.wants(part.name));
        let mut jobs: Vec<Job> = asked.clone().map(Job::Part).collect();
        jobs.extend(others.iter().map(Job::Case));
        // One more than there are processors: most tests wait for JVMs much of their time.
        let workers = 1 + std::thread::available_parallelism().map_or(1, usize::from);
        self.run_jobs("exact and never", &jobs, workers, &mut account);
        let jobs: Vec<Job> = measured.iter().map(Job::Case).collect();
        self.run_jobs("measured, one at a time", &jobs, 1, &mut account);
        let parts = asked.filter(|part| part.kind.is_measured()).map(Job::Part);
        let jobs: Vec<Job> = parts.chain(jobs).collect();
        self.repeat(&jobs, &mut account);
        println!("the whole run took {} s", self.took());
        print!("{}", account.closing());
        Ok(account.is_green())
    }

    /// Leaves tests without a turn to another run, unless tests are selected by name.
    fn leave_out(&self, cases: &mut Vec<Case>) -> Result<()> {
        if self.options.all || !self.options.only.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = cases.iter().map(Case::name).collect();
        let left = rotation::left_out(&names, self.turn)?;
        cases.retain(|case| !left.contains(&case.name().as_str()));
        println!("{} tests are left to other commits:", left.len());
        for name in left {
            println!("    {name}");
        }
        Ok(())
    }

    /// The Rust tests that are asked for, in the order in which they are run.
    fn find(&self) -> Result<Vec<Case>> {
        let began = Instant::now();
        // Without clippy's errors, so that the tests still run.
        let programs: Vec<Program> = cargo::build(&self.root, &steps::linting())
            .or_else(|_| cargo::build(&self.root, &[]))?;
        if !self.options.list {
            tell("building the tests", began.elapsed(), "");
        }
        let mut cases = Vec::new();
        for program in &programs {
            cases.extend(cargo::cases(program)?);
        }
        cases.retain(|case| self.options.wants(&case.name()));
        if cases.is_empty() && self.options.only.is_empty() {
            bail!("there is no Rust test");
        }
        let place = |case: &Case| {
            let is = |start: &&str| case.program.name.starts_with(*start);
            FIRST.iter().position(is).unwrap_or(FIRST.len())
        };
        cases.sort_by_key(place);
        Ok(cases)
    }

    /// Runs checks of the sources and builds, two at a time if they share no output, and returns
    /// the Rust tests.
    fn prepare(&self, account: &mut Account) -> Result<Vec<Case>> {
        if self.options.list {
            return self.find();
        }
        let (first, beside, last) = steps::before();
        std::thread::scope(|scope| {
            let others = scope.spawn(|| self.run_parts(&beside));
            let mut ran = self.run_parts(&first);
            let cases = self.find();
            ran.append(&mut self.run_parts(&last));
            ran.append(&mut others.join().expect("no panic in a part"));
            for ran in ran {
                match ran {
                    Ok(ran) => account.first.push(ran),
                    Err(name) => account.not_run.push(name),
                }
            }
            cases
        })
    }

    /// Runs parts one after the other; the names of those for which no time is left.
    fn run_parts(&self, parts: &[Part]) -> Vec<Result<Ran, String>> {
        let wanted = parts.iter().filter(|part| self.options.wants(part.name));
        wanted
            .map(|part| {
                if self.is_over() {
                    return Err(part.name.to_owned());
                }
                let ran = self.part(part);
                tell(part.name, ran.took.time, &in_words(&ran.outcome));
                Ok(ran)
            })
            .collect()
    }

    fn part(&self, part: &Part) -> Ran {
        let mut command = Command::new(self.program(&part.command[0]));
        command.args(&part.command[1..]).current_dir(&self.root);
        command.envs(part.variables.iter().map(|(name, value)| (name, value)));
        let limit = steps::limit(self.options.all);
        self.ran(
            part.name.to_owned(),
            part.kind,
            command,
            limit,
            |good, output| steps::outcome(part.count, good, output),
        )
    }

    /// The path of a script of the repository; other programs by their names.
    fn program(&self, name: &str) -> PathBuf {
        if name.contains('/') {
            self.root.join(name)
        } else {
            name.into()
        }
    }

    /// Runs tests and parts, `workers` at a time.
    fn run_jobs(&self, what: &str, jobs: &[Job<'_>], workers: usize, account: &mut Account) {
        if jobs.is_empty() {
            return;
        }
        let began = Instant::now();
        let next = AtomicUsize::new(0);
        let results = Mutex::new((Vec::new(), Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let ran = (!self.is_over()).then(|| self.job(job));
                        let mut results = results.lock().expect("no panic while it is held");
                        match ran {
                            Some(ran) => results.0.push(ran),
                            None => results.1.push(job.name()),
                        }
                    }
                });
            }
        });
        let (ran, not_run) = results.into_inner().expect("no panic while it is held");
        let count = |is: fn(&Outcome) -> bool| ran.iter().filter(|r| is(&r.outcome)).count();
        let failed = count(|outcome| matches!(outcome, Outcome::Failed { .. }));
        let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
        let words = format!("{} run, {failed} failed, {skipped} skipped", ran.len());
        tell(what, began.elapsed(), &words);
        account.first.extend(ran);
        account.not_run.extend(not_run);
    }

    fn job(&self, job: &Job<'_>) -> Ran {
        match job {
            Job::Case(case) => {
                let ran = self.case(case);
                tell_failed(&ran);
                ran
            }
            Job::Part(part) => {
                let ran = self.part(part);
                tell(part.name, ran.took.time, &in_words(&ran.outcome));
                ran
            }
        }
    }

    fn case(&self, case: &Case) -> Ran {
        let mut command = Command::new(&case.program.path);
        command
            .args(["--exact", &case.test, "--nocapture"])
            .current_dir(&case.program.folder)
            .env("CARGO_MANIFEST_DIR", &case.program.folder);
        let limit = Duration::from_secs(if self.options.all { 3600 } else { 420 });
        let outcome = |good: bool, output: &str| {
            let (skipped, _) = said(output);
            match (good, skipped) {
                (true, Some(why)) => Outcome::Skipped(why),
                (true, None) => steps::outcome(steps::Count::Harness, good, output),
                (false, _) => failure("it failed"),
            }
        };
        self.ran(case.name(), case.kind, command, limit, outcome)
    }

    /// Repeats the measured jobs that failed, each alone, after all others.
    fn repeat(&self, jobs: &[Job<'_>], account: &mut Account) {
        let names: Vec<String> = account.to_repeat().iter().map(|r| r.name.clone()).collect();
        for job in jobs.iter().filter(|job| names.contains(&job.name())) {
            if self.is_over() {
                return;
            }
            let ran = match job {
                Job::Case(case) => self.case(case),
                Job::Part(part) => self.part(part),
            };
            tell(
                &format!("again: {}", ran.name),
                ran.took.time,
                &in_words(&ran.outcome),
            );
            account.again.push(ran);
            if let Err(error) = self.keep(&job.name(), account) {
                println!("    its files could not be kept: {error:#}");
            }
        }
    }

    /// Keeps both outputs of a test that was repeated where the next run does not look.
    fn keep(&self, name: &str, account: &Account) -> Result<()> {
        let folder = self.root.join("target/unstable").join(file_name(name));
        fs::create_dir_all(&folder)?;
        let of = |runs: &[Ran]| {
            let run = runs.iter().find(|ran| ran.name == name);
            run.map_or("", |ran| ran.output.as_str()).to_owned()
        };
        fs::write(folder.join("first.log"), of(&account.first))?;
        fs::write(folder.join("second.log"), of(&account.again))?;
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        fs::write(folder.join("loadavg"), load)?;
        Ok(())
    }

    /// Runs a command; its output goes to the log as well, and its temporary files stay only if it
    /// failed.
    fn ran(
        &self,
        name: String,
        kind: Kind,
        mut command: Command,
        limit: Duration,
        judge: impl Fn(bool, &str) -> Outcome,
    ) -> Ran {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let (log, scratch) = (
            self.folder.join(format!("{number}.log")),
            self.scratch.join(number.to_string()),
        );
        let _ = fs::create_dir_all(&scratch);
        self.environment(&mut command, &name, &scratch);
        let began = Instant::now();
        let ended = process::run(&mut command, limit, &log);
        let output = fs::read(&log).unwrap_or_default();
        let output = String::from_utf8_lossy(&output).into_owned();
        let _ = fs::remove_file(&log);
        let (outcome, took) = match ended {
            Ok(ended) => match ended.end {
                End::Exit(good) => (judge(good, &output), ended.took),
                End::TimedOut(limit) => {
                    let why = format!("it was ended after {} s", limit.as_secs());
                    (failure(&why), ended.took)
                }
            },
            Err(error) => (failure(&format!("{error:#}")), began.elapsed().into()),
        };
        if matches!(outcome, Outcome::Failed { .. }) {
            let to = self.root.join("target/failed").join(file_name(&name));
            keep_files(&scratch, &to.join(number.to_string()));
        }
        let _ = fs::remove_dir_all(&scratch);
        self.note(&name, &command, &took, &output);
        let (_, not_tried) = said(&output);
        let kind = match outcome {
            Outcome::Failed { .. } => kind_of_failure(kind, &output),
            _ => kind,
        };
        Ran {
            name,
            kind,
            outcome,
            not_tried,
            took,
            output,
        }
    }

    /// The environment of tests: the folder for their files, the selected JDKs, the turn.
    fn environment(&self, command: &mut Command, name: &str, scratch: &Path) {
        command
            .env("TMPDIR", scratch)
            .env("DWELL_TEST_SHARED", self.scratch.join("shared"))
            .env("DWELL_TEST_TURN", turn_of(name, self.turn).to_string());
        if self.options.all {
            command.env("DWELL_TEST_ALL", "1");
        } else {
            command.env("DWELL_TEST_JDKS", "17,25");
            // Exact tests have the same result in each run. Other cases are tried elsewhere.
            command.env("PROPTEST_RNG_SEED", PROPERTIES_SEED);
        }
    }

    fn note(&self, name: &str, command: &Command, took: &Took, output: &str) {
        let mut log = self.log.lock().expect("no panic while it is held");
        let _ = writeln!(log, "\n== {name}: {command:?} ({took})\n{output}");
    }

    /// Seconds since the run began, the builds of `./test` before it included.
    fn took(&self) -> u64 {
        let began = std::env::var("DWELL_TEST_BEGAN").ok();
        let began = began.and_then(|text| text.parse::<u64>().ok());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs());
        began.map_or(self.began.elapsed().as_secs(), |began| {
            now.saturating_sub(began)
        })
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }
}

fn failure(why: &str) -> Outcome {
    Outcome::Failed {
        failed: 1,
        passed: 0,
        why: why.to_owned(),
    }
}

/// A name without characters that are special to a file system or a shell.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(plain).collect()
}

/// Files of a failed test, where the system's temporary folder does not lose them.
fn keep_files(from: &Path, to: &Path) {
    let is_empty = fs::read_dir(from).map_or(true, |mut entries| entries.next().is_none());
    if is_empty || fs::create_dir_all(to).is_err() {
        return;
    }
    // cp skips sockets and pipes. Its complaint about them is of no use.
    let _ = Command::new("cp").arg("-r").arg(from).arg(to).output();
}

/// Number of commits up to the present one. It selects the tests whose turn it is.
fn commits(root: &Path) -> u64 {
    let mut git = Command::new("git");
    let output = git.current_dir(root).args(["rev-list", "--count", "HEAD"]);
    let output = output.output().map(|output| output.stdout);
    let text = String::from_utf8(output.unwrap_or_default()).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Whose turn it is in one test: the next one's with each commit, and not the same in all tests, so
/// that each run tries something of everything.
fn turn_of(name: &str, turn: u64) -> u64 {
    name.bytes().map(u64::from).sum::<u64>() + turn
}

fn in_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed(number) => format!("{number} passed"),
        Outcome::Skipped(why) => format!("skipped: {why}"),
        Outcome::Failed {
            failed,
            passed,
            why,
        } => format!("{passed} passed, {failed} FAILED: {why}"),
    }
}

fn tell(what: &str, took: Duration, words: &str) {
    println!("{what:<34} {:6.1} s  {words}", took.as_secs_f64());
    let _ = std::io::stdout().flush();
}

/// Prints a failure when it happens. The end of the run repeats all of them.
fn tell_failed(ran: &Ran) {
    if let Outcome::Failed { why, .. } = &ran.outcome {
        println!("failed: {} [{}]: {why}", ran.name, ran.kind);
        let _ = std::io::stdout().flush();
    }
}

fn list(cases: &[Case], beside: &[Part]) {
    let (first, second, last) = steps::before();
    for part in first.iter().chain(&second).chain(&last).chain(beside) {
        println!("{:<8}  {}", part.kind.to_string(), part.name);
    }
    for case in cases {
        println!("{:<8}  {}", case.kind.to_string(), case.name());
    }
}

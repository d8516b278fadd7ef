//! The steps in addition to the Rust tests: checks of the sources, chaos, the viewer's own tests.

use super::cargo;
use super::kind::Kind;
use super::verdict::{Outcome, said, without_escapes};
use std::path::Path;
use std::time::Duration;

/// The part that builds the test programs.
pub const LINTS: &str = "lints";

/// How the tests of a part are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// The command is one test.
    One,
    /// By vitest's closing lines.
    Vitest,
    /// By the closing lines of Rust's test harness.
    Harness,
}

/// A command that is a test, or has tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// As people call it.
    pub name: &'static str,
    /// The meaning of its failure.
    pub kind: Kind,
    /// Program and arguments, run in the repository's root.
    pub command: Vec<String>,
    /// Variables that it is given.
    pub variables: Vec<(&'static str, String)>,
    /// How its tests are counted.
    pub count: Count,
}

fn part(name: &'static str, count: Count, command: &str) -> Part {
    Part {
        name,
        kind: Kind::Exact,
        command: command.split_whitespace().map(str::to_owned).collect(),
        variables: Vec::new(),
        count,
    }
}

/// Checks of the sources, and builds for the Rust tests: the steps before the build of these, the
/// steps during it (they build into their own folders), and the steps after it.
#[must_use]
pub fn before() -> (Vec<Part>, Vec<Part>, Vec<Part>) {
    let mut fuzz = part(
        "fuzz targets compile",
        Count::One,
        "cargo check --quiet --manifest-path fuzz/Cargo.toml --bins",
    );
    // A check needs no linked engine, which takes long to build.
    fuzz.variables = vec![("CUSTOM_LIBFUZZER_PATH", "/nowhere/libfuzzer.a".to_owned())];
    // Clippy compiles the test programs that it checks, so they are built once.
    let mut lints = part(LINTS, Count::One, "cargo");
    lints.command.extend(cargo::BUILD.map(str::to_owned));
    lints.variables = linting();
    let first = vec![
        part("formatting", Count::One, "cargo fmt --all -- --check"),
        lints,
    ];
    let beside = vec![
        // Some tests compare walks, or make loads fail: an agent that is never given away.
        part("an agent for experiments", Count::One, "xtask/experiments"),
        fuzz,
    ];
    let mut examples = part(
        "examples in the documents",
        Count::Harness,
        "cargo test --locked --workspace --doc",
    );
    examples.variables = linting();
    (first, beside, vec![examples])
}

/// The variables by which cargo compiles the workspace's own crates with clippy, each warning an
/// error, as `cargo clippy -- -D warnings` does, and also generates code.
#[must_use]
pub fn linting() -> Vec<(&'static str, String)> {
    vec![
        ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver".to_owned()),
        (
            "CLIPPY_ARGS",
            "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__".to_owned(),
        ),
    ]
}

/// The steps that run in parallel with the exact Rust tests. `turn` makes the chaos of each commit
/// different.
#[must_use]
pub fn beside(root: &Path, all: bool, turn: u64) -> Vec<Part> {
    let mut chaos = if all {
        part("chaos", Count::One, "bench/chaos --jdk all --minutes 20")
    } else {
        // All vantages on one of the JDKs of the gate; on the other one with the next commit.
        let jdk = if turn.is_multiple_of(2) { 17 } else { 25 };
        let quick = format!("bench/chaos --quick --jdk {jdk}");
        part("chaos", Count::One, &quick)
    };
    chaos
        .command
        .extend(["--seed".to_owned(), turn.to_string()]);
    chaos.kind = Kind::Never;
    // Shares of short recordings. They are nearly always right in parallel with other tests;
    // otherwise they are repeated alone.
    let mut examples = part("examples", Count::One, "examples/check");
    examples.kind = Kind::Measured;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let graph = |name, library: &str| {
        let mut graph = part(
            name,
            Count::One,
            "cargo run --quiet --locked -p xtask -- handler-graph",
        );
        let library = target.join("release").join(library);
        graph.command.push(library.display().to_string());
        graph
    };
    let viewer = |name, count, script: &str| {
        part(
            name,
            count,
            &format!("npm --prefix viewer run --silent {script}"),
        )
    };
    // The longest first, so that they do not delay the end.
    let released = if all { released() } else { Vec::new() };
    let others = vec![
        chaos,
        viewer("viewer: in the browser", Count::Vitest, "test:browser"),
        viewer("viewer: units", Count::Vitest, "test"),
        viewer("viewer: types", Count::One, "check"),
        examples,
        part(
            "deliberate faults find their places",
            Count::One,
            "bench/faults --check",
        ),
        part(
            "records of measurements are published",
            Count::One,
            "bench/run --check",
        ),
        graph("code that signal handlers reach", "libdwell.so"),
        graph(
            "code that they reach in Mono's module",
            "libmono_profiler_dwell.so",
        ),
        portable(&target),
    ];
    released.into_iter().chain(others).collect()
}

/// The steps of `./test --all`, the longest first.
fn released() -> Vec<Part> {
    let packages = part("packages install and run", Count::One, "xtask/packages");
    vec![
        applications(),
        benchmarks(),
        containers(),
        packages,
        collector(),
        pyroscope(),
        other_tools(),
        arm64(),
        arm64_jvms(),
        memory_orders(),
    ]
}

/// Applications from Maven Central, each with and without dwell.
fn applications() -> Part {
    let mut applications = part("applications", Count::One, "examples/apps/run");
    applications.kind = Kind::Measured;
    applications
}

/// Benchmarks of JMH from Maven Central, with the profiler for it.
fn benchmarks() -> Part {
    let mut benchmarks = part("benchmarks of JMH", Count::One, "examples/jmh/run");
    benchmarks.kind = Kind::Measured;
    benchmarks
}

/// OpenTelemetry's collector, which receives recordings. It is built from Go's module proxy.
fn collector() -> Part {
    part(
        "the collector has our sums",
        Count::One,
        "examples/collector/run --jdk 17",
    )
}

/// Pyroscope's server, if this machine has it.
fn pyroscope() -> Part {
    part(
        "Pyroscope has our sums",
        Count::One,
        "examples/pyroscope/run --jdk 17",
    )
}

/// Files of Go read by dwell, and files of dwell read by async-profiler's converter.
fn other_tools() -> Part {
    part(
        "sums of other tools are ours",
        Count::One,
        "examples/interop/run --jdk 17",
    )
}

/// JVMs in containers, recorded from the host, inside, and from sidecars.
fn containers() -> Part {
    let mut containers = part("containers", Count::One, "examples/containers/run");
    containers.kind = Kind::Measured;
    containers
}

/// The crates that differ on arm64, compiled for it, and their unit tests under emulation.
fn arm64() -> Part {
    part("arm64 under emulation", Count::Harness, "xtask/arm64")
}

/// JVMs on arm64 Linux in an emulated machine. Their weights are compared with another clock.
fn arm64_jvms() -> Part {
    let mut jvms = part("JVMs on emulated arm64", Count::One, "xtask/arm64-vm");
    jvms.kind = Kind::Measured;
    jvms
}

/// Lock-free structures with loom's atomics: all orders of their threads' steps.
fn memory_orders() -> Part {
    part(
        "memory orders under loom",
        Count::Harness,
        "cargo test --quiet --locked --manifest-path loom/Cargo.toml --target-dir target/loom",
    )
}

/// The check of the built files for other libcs.
fn portable(target: &Path) -> Part {
    let mut portable = part(
        "the built files load with each libc",
        Count::One,
        "cargo run --quiet --locked -p xtask -- portable",
    );
    let built = [
        "release/libdwell.so",
        "release/libmono_profiler_dwell.so",
        "cli/dwell",
    ];
    let built = built.map(|file| target.join(file).display().to_string());
    portable.command.extend(built);
    portable
}

/// The outcome of a part by its output. A command that fails without numbers of failed tests has
/// failed, and one without tests has tested nothing: it says why, or has failed.
#[must_use]
pub fn outcome(count: Count, succeeded: bool, output: &str) -> Outcome {
    let (passed, failed) = match count {
        Count::One => (usize::from(succeeded), usize::from(!succeeded)),
        Count::Vitest => vitest(&without_escapes(output)),
        Count::Harness => harness(output),
    };
    let failure = |failed: usize, why: &str| Outcome::Failed {
        failed,
        passed,
        why: why.to_owned(),
    };
    match (succeeded, failed) {
        (true, 0) if passed == 0 => match said(output).0 {
            Some(why) => Outcome::Skipped(why),
            None => failure(1, "it ran no test"),
        },
        (true, 0) => Outcome::Passed(passed),
        (_, 0) => failure(1, "it ended with an error"),
        _ => failure(failed, "see its output"),
    }
}

/// `Tests  1 failed | 163 passed (164)`.
fn vitest(output: &str) -> (usize, usize) {
    let lines = output
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("Tests "));
    let number = |line: &str, what: &str| {
        let before = line.split_once(what)?.0.trim_end();
        before.rsplit([' ', '|']).next()?.parse::<usize>().ok()
    };
    lines.fold((0, 0), |(passed, failed), line| {
        (
            passed + number(line, " passed").unwrap_or(0),
            failed + number(line, " failed").unwrap_or(0),
        )
    })
}

/// `test result: ok. 3 passed; 0 failed; ...`.
fn harness(output: &str) -> (usize, usize) {
    let lines = output
        .lines()
        .filter(|line| line.starts_with("test result: "));
    let number = |line: &str, what: &str| {
        let before = line.split_once(what)?.0;
        before.rsplit(' ').next()?.parse::<usize>().ok()
    };
    lines.fold((0, 0), |(passed, failed), line| {
        (
            passed + number(line, " passed;").unwrap_or(0),
            failed + number(line, " failed;").unwrap_or(0),
        )
    })
}

/// How long a part may take: generous, against hanging for ever.
#[must_use]
pub fn limit(all: bool) -> Duration {
    Duration::from_secs(if all { 7200 } else { 1200 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_by_the_closing_lines() {
        let vitest = "\u{1b}[2m      Tests \u{1b}[22m 1 failed | 163 passed (164)\n";
        assert_eq!(
            outcome(Count::Vitest, false, vitest),
            Outcome::Failed {
                failed: 1,
                passed: 163,
                why: "see its output".to_owned()
            }
        );
        let good = " Test Files  4 passed (4)\n      Tests  53 passed (53)\n";
        assert_eq!(outcome(Count::Vitest, true, good), Outcome::Passed(53));
        let harness = "test result: ok. 2 passed; 0 failed; 0 ignored\n\
                       test result: ok. 1 passed; 0 failed; 0 ignored\n";
        assert_eq!(outcome(Count::Harness, true, harness), Outcome::Passed(3));
    }

    #[test]
    fn parts_that_are_not_exact_say_so() {
        let parts = beside(Path::new("/repository"), false, 7);
        let kind = |name| parts.iter().find(|part| part.name == name).unwrap().kind;
        assert_eq!(kind("chaos"), Kind::Never);
        assert_eq!(kind("examples"), Kind::Measured);
        assert_eq!(kind("viewer: units"), Kind::Exact);
    }

    #[test]
    fn slow_steps_only_run_if_everything_is_tried() {
        let scripts = [
            "xtask/packages",
            "xtask/arm64",
            "xtask/arm64-vm",
            "loom/Cargo.toml",
            "examples/containers/run",
            "examples/collector/run",
            "examples/pyroscope/run",
            "examples/interop/run",
        ];
        for all in [false, true] {
            let parts = beside(Path::new("/repository"), all, 7);
            for script in scripts {
                let mut commands = parts.iter().flat_map(|part| &part.command);
                assert_eq!(commands.any(|word| word == script), all, "{script}");
            }
        }
    }

    #[test]
    fn a_failure_without_numbers_and_no_test_at_all_are_failures() {
        for (count, succeeded, output) in [
            (Count::One, false, ""),
            (Count::Vitest, true, "no tests found"),
            (Count::Vitest, false, "Tests  5 passed (5)"),
            (
                Count::Harness,
                false,
                "test result: ok. 2 passed; 0 failed;",
            ),
        ] {
            let found = outcome(count, succeeded, output);
            assert!(
                matches!(found, Outcome::Failed { failed: 1, .. }),
                "{found:?}"
            );
        }
        assert_eq!(outcome(Count::One, true, ""), Outcome::Passed(1));
    }

    #[test]
    fn part_without_tests_is_skipped_if_it_says_why() {
        let why = "skipped: no compiler\n";
        let skipped = Outcome::Skipped("no compiler".to_owned());
        assert_eq!(outcome(Count::Harness, true, why), skipped);
        let tested = format!("{why}test result: ok. 2 passed; 0 failed;");
        assert_eq!(outcome(Count::Harness, true, &tested), Outcome::Passed(2));
        let failed = outcome(Count::Harness, false, why);
        assert!(matches!(failed, Outcome::Failed { .. }), "{failed:?}");
    }
}

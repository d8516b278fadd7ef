//! Between two frames: in the few instructions in which a frame does not exist yet or any more,
//! memory holds what an older call left. Samples that land there must name the right method.

use dwell_e2e::{FrameView, Jdk, Place, SampleView, Starter, View, both, each, turn};
use std::collections::{BTreeMap, BTreeSet};

const SOURCE: &str = include_str!("../../../../java/testprograms/src/io/dwell/test/Calls.java");

/// Methods that stay interpreted while what they call is compiled.
const KEPT: [&str; 13] = [
    "round",
    "first",
    "second",
    "third",
    "last",
    "caught",
    "two",
    "wide",
    "locked",
    "throwing",
    "virtual",
    "lockedVirtual",
    "natives",
];

/// Which methods each line of the source names with an opening parenthesis.
fn called_on_lines() -> BTreeMap<i32, BTreeSet<&'static str>> {
    let mut lines = BTreeMap::new();
    for (line, number) in SOURCE.lines().zip(1..) {
        let words = line.split('(').rev().skip(1);
        let names = words.map(|before| {
            let is_name = |c: char| c.is_ascii_alphanumeric();
            let start = before.trim_end_matches(is_name).len();
            before.get(start..).unwrap_or("")
        });
        lines.insert(number, names.filter(|name| !name.is_empty()).collect());
    }
    lines
}

/// Whether a frame is a method that is called by its name. Constructors are not, and the caller of
/// a lambda is generated.
fn is_called(frame: &FrameView<'_>) -> bool {
    let class = frame.class.strip_prefix("io.dwell.test.Calls");
    let name = frame.name;
    matches!(class, Some("" | "$Round" | "$Flat"))
        && !matches!(name, "main")
        && !name.starts_with('<')
        && !name.starts_with("lambda")
}

/// The first pair of a caller and what it cannot have called.
fn wrong_pair<'a>(
    sample: &SampleView<'a>,
    called: &BTreeMap<i32, BTreeSet<&str>>,
    pairs: &mut usize,
) -> Option<(FrameView<'a>, FrameView<'a>)> {
    let frames: Vec<_> = sample.frames().collect();
    let mut both = frames.iter().zip(frames.iter().skip(1));
    let found = both.find(|(callee, caller)| {
        let ours = is_called(callee) && is_called(caller);
        *pairs += usize::from(ours);
        let names = called.get(&caller.line);
        ours && names.is_none_or(|names| !names.contains(callee.name))
    });
    found.map(|(callee, caller)| (*callee, *caller))
}

/// How the program runs.
fn flags(mode: &str) -> Vec<String> {
    match mode {
        "interpreted" => vec!["-Xint".to_owned()],
        _ => {
            let kept =
                |name: &&str| format!("-XX:CompileCommand=exclude,io/dwell/test/Calls.{name}");
            let quiet = ["-XX:CompileCommand=quiet".to_owned()];
            quiet.into_iter().chain(KEPT.iter().map(kept)).collect()
        }
    }
}

fn check(jdk: &Jdk, mode: &str, walk: &str) {
    let place = Place::new("calls");
    let file = place.text("out.jfr");
    let starter = Starter::new(jdk, &place, "Calls")
        .with("seconds=2 cpu_ms=1500")
        .agent(&format!("start,cpu=100us,walk={walk},file={file}"));
    let starter = flags(mode)
        .iter()
        .fold(starter, |starter, flag| starter.jvm(flag));
    let mut program = starter.start();
    let _ = program.work();
    program.end();
    let view = View::read(&place.path("out.jfr"));
    let called = called_on_lines();
    let mut pairs = 0;
    let mut rootless = 0;
    for sample in view.samples() {
        if let Some((callee, caller)) = wrong_pair(&sample, &called, &mut pairs) {
            panic!("{caller:?} cannot call {callee:?}: {}", sample.line());
        }
        let works = sample.frames().any(|frame| is_called(&frame));
        let complete = sample.failure().is_some() || sample.has("run");
        rootless += usize::from(works && !complete);
    }
    println!("{mode}, {walk}: {pairs} pairs");
    view.check_failures();
    // A tenth of the samples in the CPU time asked for: of the others many are in compilers, the
    // more of them the more others want the processors, too.
    assert!(pairs > 1500, "{pairs} pairs");
    assert_eq!(rootless, 0, "stacks without their root");
}

#[test]
fn never_is_a_method_above_a_line_that_does_not_call_it() {
    each(&turn(&both()), |jdk| {
        for (mode, walk) in [
            ("interpreted", "snapshot"),
            ("mixed", "snapshot"),
            ("mixed", "handler"),
        ] {
            check(jdk, mode, walk);
        }
    });
}

//! Stubs of the JVM: code without debug information, often without a frame. A sample in one has the
//! method that called it, or says that it may be missing.

use dwell_e2e::{
    FrameView, Jdk, Place, SampleView, Starter, View, both, each, record_outside, stats, turn,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// The functions that link calls, and the VM's work in between, which the program's own calls of
/// its loops take, too.
const LINKING: [&str; 12] = [
    "I2C/C2I adapters",
    "resolve_",
    "wrong_method",
    "ic_miss",
    "counter_overflow",
    "method_entry_barrier",
    "patching",
    "Deopt",
    "UncommonTrap",
    "Safepoint",
    "Interpreter",
    "flush_icache",
];

/// The VM's function that a method's entry barrier calls. From outside, its stub has no name.
const BARRIER: &str = "nmethod_stub_entry_barrier";

/// Methods that call stubs directly, by parts of the stubs' names. Of others C2 may inline the
/// caller, and has no debug information then.
const CALLERS: [(&str, &str); 2] = [("2i_fixup", "loopConvert"), ("2l_fixup", "loopConvert")];

/// The stub at the leaf end, with nothing but the VM's code and the kernel's above it, and the
/// method below it.
fn stub_and_caller<'a>(sample: &SampleView<'a>) -> Option<(FrameView<'a>, FrameView<'a>)> {
    let frames: Vec<_> = sample.frames().collect();
    let java = frames.iter().position(FrameView::is_java)?;
    let above = frames.get(..java)?;
    let stub = above.iter().find(|frame| frame.class == "[stub]")?;
    Some((*stub, *frames.get(java)?))
}

/// Checks each sample of the program's threads that is in a stub.
fn check(view: &View, what: &str) {
    let (mut stubs, mut marked) = (BTreeMap::<&str, usize>::new(), 0);
    for sample in view.of_threads("stubs-") {
        let Some((stub, caller)) = stub_and_caller(&sample) else {
            continue;
        };
        if sample.failure().is_some() {
            marked += 1;
            continue;
        }
        let root = sample.under(|frame| frame.is_java()).expect("the caller");
        assert!(
            root.class == "java.lang.Thread",
            "{what}: no root: {}",
            sample.line()
        );
        if root.name == "exit" {
            // The thread's own end.
            continue;
        }
        *stubs.entry(stub.name).or_default() += 1;
        // Between its loops the program reads the clock.
        let works = caller.name == "nanoTime"
            || sample.frames().any(|frame| frame.name.starts_with("loop"));
        let links = LINKING.iter().any(|name| stub.name.contains(name))
            || sample.frames().any(|frame| frame.name.contains(BARRIER));
        assert!(works || links, "{what}: no caller: {}", sample.line());
        if let Some((_, name)) = CALLERS.iter().find(|(name, _)| stub.name.contains(name)) {
            let is_it = caller.name.starts_with(name);
            assert!(is_it, "{what}: not its caller: {}", sample.line());
        }
    }
    let all: usize = stubs.values().sum();
    println!(
        "{what}: {all} samples in {} stubs, {marked} marked",
        stubs.len()
    );
    // The interpreter has few.
    assert!(all > 5, "{what}: {stubs:?}");
    // Unproven frames are rare: places where deoptimisation has removed a frame.
    let is_often = stats::is_more_often(marked, all + marked, 0.02);
    assert!(!is_often, "{what}: {marked} of {all} marked");
}

/// The program. Its loops are not inlined, so they stay distinguishable where C2 has no debug
/// information, as in calls of stubs.
fn program(jdk: &Jdk, place: &Place, flags: &[&str]) -> Starter {
    let starter = Starter::new(jdk, place, "Stubs")
        .with("seconds=3 cpu_ms=2500")
        .jvm("-XX:CompileCommand=quiet")
        .jvm("-XX:CompileCommand=dontinline,*.loop*")
        .jvm("-XX:+UnlockDiagnosticVMOptions");
    let jvm = |starter: Starter, flag: &&str| starter.jvm(flag);
    flags.iter().fold(starter, jvm)
}

fn record(jdk: &Jdk, flags: &[&str], walk: &str) {
    let place = Place::new("stubs");
    let file = place.text("s.jfr");
    let options = format!("start,cpu=1ms,walk={walk},file={file}");
    let mut program = program(jdk, &place, flags).agent(&options).start();
    let _ = program.work();
    program.end();
    let what = format!("JDK {} {flags:?} {walk}", jdk.feature);
    check(&View::read(&place.path("s.jfr")), &what);
}

fn record_both(flags: &[&str]) {
    each(&both(), |jdk| record(jdk, flags, "snapshot"));
}

/// In code of C1 rbp is an older frame's, often the interpreter's.
#[test]
fn never_stub_loses_its_caller_in_c1_code() {
    record_both(&["-XX:TieredStopAtLevel=1"]);
}

#[test]
fn never_stub_loses_its_caller_by_default() {
    record_both(&[]);
}

#[test]
fn never_stub_loses_its_caller_in_c2_code() {
    record_both(&["-XX:-TieredCompilation"]);
}

#[test]
fn never_stub_loses_its_caller_with_frame_pointers() {
    record_both(&["-XX:+PreserveFramePointer"]);
}

#[test]
fn never_stub_loses_its_caller_in_the_interpreter() {
    record_both(&["-Xint"]);
}

#[test]
fn never_stub_loses_its_caller_where_all_is_compiled() {
    record_both(&["-Xcomp"]);
}

/// Digests without instructions for them: stubs that align rsp and keep what it was.
#[test]
fn never_stub_loses_its_caller_without_sha_instructions() {
    record_both(&[
        "-XX:UseAVX=2",
        "-XX:-UseSHA1Intrinsics",
        "-XX:-UseSHA256Intrinsics",
    ]);
}

#[test]
fn never_stub_loses_its_caller_without_avx() {
    record_both(&["-XX:UseAVX=0"]);
}

#[test]
fn never_stub_loses_its_caller_in_the_handler() {
    let flags = ["-XX:TieredStopAtLevel=1"];
    each(&turn(&both()), |jdk| record(jdk, &flags, "handler"));
}

#[test]
fn never_stub_loses_its_caller_without_an_agent() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("stubs-outside");
        let file = place.path("o.jfr");
        let mut program = program(jdk, &place, &["-XX:TieredStopAtLevel=1"]).start();
        let (pid, over) = (program.pid, AtomicBool::new(false));
        let sum = std::thread::scope(|scope| {
            let (begins, begun) = mpsc::channel();
            let (file, over) = (&file, &over);
            let recording = scope.spawn(move || {
                let (cpu, step) = (Duration::from_millis(1), Duration::from_millis(10));
                record_outside(pid, file, cpu, step, || {
                    let _ = begins.send(());
                    !over.load(Ordering::Relaxed)
                })
            });
            // The program is at its gate until then; an error says that nothing is recorded.
            let _ = begun.recv();
            let _ = program.work();
            over.store(true, Ordering::Relaxed);
            recording.join().expect("no panic")
        });
        program.end();
        match sum {
            Some(_) => check(&View::read(&file), &format!("JDK {} outside", jdk.feature)),
            None => println!("not tried: perf events are not permitted here"),
        }
    });
}

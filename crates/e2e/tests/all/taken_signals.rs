//! Libraries that take a signal for themselves while a recording runs, and pass nothing on.

use dwell_e2e::{Place, Starter, View, both, each, perf_is_permitted, turn};

/// This part of the time after the library took the signal has samples of its own, at least: a
/// second may pass until it is found.
const SAMPLED_MIN: f64 = 0.5;

/// Fails if samples stop when a library takes the signal of perf events, or if nothing says so. The
/// share has no chance in it but how much of the time the machine takes away within the first
/// second. False alarm: not seen to come by chance.
#[test]
fn measured_samples_go_on_after_a_library_took_the_signal() {
    if !perf_is_permitted() {
        println!("skipped: perf events are not permitted");
        return;
    }
    each(&turn(&both()), |jdk| {
        let place = Place::new("taken");
        let file = place.text("t.jfr");
        let mut program = Starter::new(jdk, &place, "TakesSignal")
            .with("seconds=4 cpu_ms=3000")
            .start();
        program.tell(&format!("start,cpu=1ms,file={file}"));
        let truths = program.work();
        let status = program.tell("stop");
        program.end();
        let reason = "since a library has taken SIGURG";
        assert!(status.contains(reason), "{status}");
        let view = View::read(&place.path("t.jfr"));
        let after = view.of_threads("takes-").filter(|it| it.has("afterTaken"));
        let samples = after.count() as f64;
        let expected = truths.ns("afterTaken") as f64 / 1e6;
        println!("JDK {}: {samples} samples in {expected} ms", jdk.feature);
        assert!(samples >= SAMPLED_MIN * expected, "{samples} of {expected}");
    });
}

/// The program's library ends the process at a fault. The JVM needs none while it interprets, so
/// every fault would be one of dwell's loads.
#[test]
fn never_does_a_load_reach_a_library_that_took_faults() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("taken-faults");
        let file = place.text("f.jfr");
        let mut program = Starter::new(jdk, &place, "TakesSignal")
            .jvm("-Xint")
            .with("seconds=3 cpu_ms=2000 signal=11")
            .start();
        program.tell(&format!("start,cpu=200us,wall=10ms,file={file}"));
        let truths = program.work();
        program.tell("stop");
        program.end();
        assert!(truths.ns("afterTaken") > 0);
        View::read(&place.path("f.jfr")).check_failures();
    });
}

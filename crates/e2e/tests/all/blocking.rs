//! Waits end when they are over. Signals of dwell never interrupt calls of Java, and of bare system
//! calls only those that the documentation names, under its conditions.

use dwell_e2e::{Jdk, Place, Program, Starter, Truths, View, both, each, perf_is_permitted, turn};
use dwell_profile::Profile;

const WALKS: [&str; 3] = ["snapshot", "handler", "paused"];
/// The call that the kernel restarts after a handler of dwell, in native code as well.
const RESTARTED: &str = "read";

/// How often each wait was made, and how often it was over too early.
struct Waits(Vec<(String, u64, u64)>);

impl Waits {
    /// Those of the first round, before anything was recorded, or those of the second.
    fn of(truths: &Truths, first: bool) -> Waits {
        let names = truths
            .info
            .iter()
            .filter_map(|(key, _)| key.strip_suffix(".calls"))
            .filter(|name| name.starts_with("first.") == first);
        let number = |name: &str, what: &str| truths.number(&format!("{name}.{what}"));
        let waits: Vec<_> = names
            .map(|name| {
                let (calls, early) = (number(name, "calls"), number(name, "early"));
                let name = name.trim_start_matches("first.").to_owned();
                (name, calls, early)
            })
            .collect();
        assert!(waits.len() >= 17, "{} kinds of waits", waits.len());
        for (name, calls, early) in &waits {
            println!("  first {first} {name}: {early} of {calls} calls were over early");
            assert!(*calls > 0, "{name}");
        }
        Waits(waits)
    }

    /// Java's waits are all as long as they should be. Of a bare call so many may be interrupted.
    fn check(&self, may_be: impl Fn(&str, u64) -> u64) {
        for (name, calls, early) in &self.0 {
            let most = match name.strip_prefix("native-") {
                Some(native) => may_be(native, *calls),
                None => 0,
            };
            assert!(*early <= most, "{name}: {early} of {calls} calls");
        }
    }
}

/// Samples of each recording, so that calls have met signals. Timers give few.
fn samples_wanted(engine: &str) -> u64 {
    match engine {
        "auto" if perf_is_permitted() => 1500,
        _ => 250,
    }
}

/// Records for a while from this vantage, and returns the recording.
fn record(program: &Program, place: &Place, engine: &str, walk: &str) -> View {
    let file = place.path(&format!("{walk}.jfr"));
    program.tell(&format!(
        "start,cpu=100us,wall=5ms,engine={engine},walk={walk},file={}",
        file.display()
    ));
    program.await_samples(samples_wanted(engine));
    program.tell("stop");
    View::read(&file)
}

fn waits(jdk: &Jdk, engine: &str) {
    let place = Place::new("blocking");
    let mut program = Starter::new(jdk, &place, "Blocking").start();
    program.pass();
    let views = WALKS.map(|walk| record(&program, &place, engine, walk));
    program.pass();
    let truths = program.truths();
    assert_eq!(program.errors(), "", "nothing was complained of");
    program.end();
    let in_kernel = views.iter().any(View::has_kernel_frames);
    let samples = |view: &View| {
        let waiting = view.samples().filter(|sample| sample.has("repeat"));
        waiting.count() as u64
    };
    let samples: Vec<u64> = views.iter().map(samples).collect();
    println!(
        "JDK {} {engine}, kernel {in_kernel}: {samples:?} samples of threads that wait",
        jdk.feature
    );
    let all: u64 = samples.iter().sum();
    assert!(all > samples_wanted(engine) / 2, "{samples:?}");
    // How often a thread was asked where it was while all others waited for it.
    let asked = |view: View| Profile::from_recording(view.recording).late().len() as u64;
    let asked: u64 = views.into_iter().map(asked).sum();
    Waits::of(&truths, true).check(|_, _| 0);
    Waits::of(&truths, false).check(|name, calls| match name {
        RESTARTED => 0,
        // Signals that are made in the kernel come when the thread is about to wait.
        _ if in_kernel => calls,
        // Signals in user mode come before the next call. A thread that all others waited for at a
        // safepoint gets a signal from another thread, which can be late: one for each time that it
        // was waited for.
        _ => calls / 1000 + asked,
    });
}

#[test]
fn waits_of_java_end_when_they_are_over() {
    each(&turn(&both()), |jdk| waits(jdk, "auto"));
}

#[test]
fn bare_system_calls_with_timers_are_not_interrupted() {
    each(&turn(&both()), |jdk| waits(jdk, "timer"));
}

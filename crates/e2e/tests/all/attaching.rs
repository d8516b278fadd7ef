//! Native threads that attach to the JVM for a call and detach after it, as callbacks of libraries
//! do: they are sampled as any other thread.

use dwell_e2e::{Place, Starter, View, both, each, must, turn};
use dwell_profile::{Profile, WallFilter};

/// Of the CPU time of such a thread this is where it was: attached or not.
const PARTS: [&str; 2] = ["io.dwell.test.Attaching.call", "detached_burn"];

/// The cost of callbacks is in dwell's account of itself. Two callbacks of a call take several
/// system calls and a function of the JVM: more than 100 ns.
fn check_account(view: &View, calls: u64) {
    let last = view.recording.events_named("dwell.Self").last();
    let last = last.expect("an account");
    let of = |name: &str| last.int(name).expect(name);
    let (callbacks, all) = (of("callbackCpu"), of("agentCpu"));
    println!("{callbacks} ns of {all} in callbacks");
    must!(
        callbacks > 100 * calls as i64,
        "{callbacks} ns, {calls} calls"
    );
    must!(callbacks < all, "{callbacks} of {all} ns");
}

/// Detects samples without a stack, CPU time that is counted twice or not at all, and wall time
/// beyond the thread's life.
///
/// A thread's weights are its points, one in each window. A window has one and a half intervals of
/// 1 ms or less, so the sum of 4 s has an error below 2 ms for each of about 10 threads. 4 % are
/// 160 ms. False alarm: not by chance.
#[test]
fn measured_thread_that_attaches_for_each_call_is_sampled() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("attaching");
        let file = place.path("a.jfr");
        let starter = Starter::new(jdk, &place, "Attaching").with("seconds=4");
        let mut program = starter.recorded("cpu=1ms,wall=20ms", &file).start();
        let truths = program.work();
        program.end();
        println!("{} calls", truths.number("calls"));
        let view = View::read(&file);
        let (mut sum, mut failed, mut placed) = (0, 0, 0);
        for sample in view.samples() {
            let is_part = PARTS.iter().any(|part| sample.has(part));
            let is_lost = sample.failure() == Some("thread_ended_unsampled");
            sum += sample.weight_ns();
            failed += u64::from(is_lost) * sample.weight_ns();
            placed += u64::from(is_part) * sample.weight_ns();
        }
        let truth = truths.ns("attaching");
        println!("sum {sum}, lost {failed}, placed {placed} of {truth}");
        assert!(failed < sum / 50, "{failed} of {sum} ns have no stack");
        let whole = view.cpu_load_ns();
        assert!(sum.abs_diff(whole) < whole / 25, "{sum} of {whole} ns");
        // The other samples are in attaching and detaching, and in 200 ms of warm-up.
        must!(placed < truth + truth / 10, "{placed} of {truth}");
        assert!(placed > truth / 3, "{placed} of {truth}");
        check_account(&view, truths.number("calls"));
        let profile = Profile::from_recording(view.recording);
        let lasted = profile.info().duration_ns as f64;
        let of_thread = |filter: &WallFilter| {
            let all = profile.wall(filter);
            let named = all.filter(|wall| profile.thread_name(wall.thread).starts_with("Thread-"));
            named.map(|wall| wall.weight.sum as f64).sum::<f64>()
        };
        let all = of_thread(&WallFilter::default());
        println!("wall time {all} of {lasted} ns");
        assert!(all < 1.1 * lasted, "{all} ns in {lasted}");
    });
}

//! Deep stacks, classes that are gone, libraries that come and go, virtual threads.

use dwell_e2e::{
    FrameView, Jdk, Place, SampleView, Starter, Truths, View, both, each, jdks, must, since, turn,
};
use std::collections::BTreeMap;

/// A recorded run; the place of its files goes last, so that a failed test keeps them.
struct Run {
    view: View,
    truths: Truths,
    _place: Place,
}

/// Runs a program and records its work by attach.
fn record(jdk: &Jdk, program: &str, arguments: &str, options: &str) -> Run {
    let place = Place::new(program);
    let file = place.path("r.jfr");
    let mut program = Starter::new(jdk, &place, program).with(arguments).start();
    program.tell(&format!("start,file={},{options}", file.display()));
    let truths = program.work();
    program.tell("stop");
    program.end();
    Run {
        view: View::read(&file),
        truths,
        _place: place,
    }
}

/// Detects stacks that lack frames: whole ones are exact; 2 % may be on their way down or up,
/// which takes 0.1 % of a batch's time. With 1500 samples 30 of 1.5 due are e^-60. False alarm:
/// less than 1e-20.
#[test]
fn measured_stacks_of_1200_frames_are_complete() {
    each(&turn(&jdks().iter().collect::<Vec<_>>()), |jdk| {
        let Run { view, _place, .. } =
            record(jdk, "DeepStacks", "seconds=2 cpu_ms=1500", "cpu=1ms");
        view.check_failures();
        let deep = view
            .of_threads("deep-")
            .filter(|s| s.has("deepRoot") && s.failure().is_none());
        let mut full = 0;
        let mut all = 0;
        for sample in deep {
            must!(!sample.stack.truncated, "{}", sample.line());
            let frames = sample
                .frames()
                .filter(|frame| frame.name == "descend")
                .count();
            let root = sample.under(|frame| frame.is_java()).expect("Java frames");
            let is_run = (root.class, root.name) == ("java.lang.Thread", "run");
            must!(is_run && frames <= 1200, "{frames}: {}", sample.line());
            // Between two batches the stack is on its way down or up.
            full += usize::from(frames == 1200);
            all += 1;
        }
        assert!(all > 150, "{all} samples");
        assert!(
            full * 100 >= all * 98,
            "{full} of {all} have all 1200 frames"
        );
    });
}

/// Detects stacks that are not cut: 2 % may be on their way down, of which 0.1 % are due. False
/// alarm: less than 1e-10 with 800 samples.
#[test]
fn measured_depth_limit_marks_cut_stacks() {
    each(&turn(&both()), |jdk| {
        let Run { view, _place, .. } = record(
            jdk,
            "DeepStacks",
            "seconds=1 cpu_ms=800",
            "cpu=1ms,depth=100",
        );
        let deep: Vec<_> = view
            .of_threads("deep-")
            .filter(|s| s.has("descend") && s.failure().is_none())
            .collect();
        assert!(deep.len() > 100, "{} samples", deep.len());
        let mut cut = 0;
        for sample in &deep {
            let walked = sample.frames().filter(|f| f.class != "[kernel]").count();
            if sample.stack.truncated {
                must!(walked == 100, "{walked}: {}", sample.line());
                cut += 1;
            } else {
                // On its way down: few frames, but all of them.
                let whole = walked <= 100 && sample.has("deepRoot") && sample.has("run");
                must!(whole, "{walked} frames: {}", sample.line());
            }
        }
        assert!(cut * 100 >= deep.len() * 98, "{cut} of {}", deep.len());
        let shallow = view.samples().filter(|s| s.frames().count() < 100);
        for sample in shallow {
            must!(!sample.stack.truncated, "{}", sample.line());
        }
    });
}

/// Detects names that are lost, 1 in 1000. Weights of a class scatter by a part of an interval: 20
/// intervals and 1 % are more than five deviations of as many as there are. False alarm: less than
/// 1e-6 where the drainer has a processor each 100 ms.
#[test]
fn measured_samples_of_unloaded_classes_keep_their_names() {
    each(&turn(&jdks().iter().collect::<Vec<_>>()), |jdk| {
        let Run {
            view,
            truths,
            _place,
        } = record(jdk, "ClassUnload", "seconds=4", "cpu=500us");
        view.check_failures();
        let loaded = truths.number("classes_loaded");
        let unloaded = truths.number("classes_unloaded_by_jvm");
        assert!(loaded > 5 && unloaded >= loaded, "{unloaded} of {loaded}");
        let truth: u64 = truths.cpu_ns.values().sum();
        let (mut named, mut lost) = ((0, 0), Vec::new());
        for sample in view
            .of_threads("unload-")
            .filter(|sample| sample.has("measure"))
        {
            match sample.under(|frame| frame.name.starts_with("root_")) {
                Some(root) => {
                    let number = root.name.trim_start_matches("root_");
                    let class = format!("io.dwell.test.generated.Unload{number}");
                    must!(root.class == class, "{}", sample.line());
                    named = (named.0 + 1, named.1 + sample.weight_ns());
                    if !lines_are_right(&sample) {
                        lost.push(sample);
                    }
                }
                None if sample.failure().is_some() => lost.push(sample),
                None => {}
            }
        }
        println!("named {named:?} of {truth} ns, {} lost", lost.len());
        if lost.len() * 1000 > named.0.max(1000) {
            let lines: Vec<String> = lost.iter().take(5).map(SampleView::line).collect();
            panic!(
                "{} of {} samples lost a name: {lines:#?}",
                lost.len(),
                named.0
            );
        }
        // Time without a name would be missing here. By chance a class has a part of an interval,
        // which adds up to a few intervals for all of them.
        let slack = truth / 100 + 20 * 500_000;
        assert!(named.1 + slack >= truth, "named {named:?} of {truth} ns");
    });
}

/// Both methods of a burner are of one line each. At its entry a method has no bytecode yet.
fn lines_are_right(sample: &SampleView<'_>) -> bool {
    let mut java = sample.frames().filter(FrameView::is_java).enumerate();
    java.all(|(at, frame)| match frame.name {
        name if name.starts_with("root_") => frame.line == 100 || at == 0 && frame.line == -1,
        name if name.starts_with("spin_") => frame.line == 200 || at == 0 && frame.line == -1,
        _ => true,
    })
}

/// A sample must never name a library that was at its address before. Detects missing names: a
/// quarter of the samples that are not marked as unknown (2 to 10 % are clocks and calls of JNI),
/// and more than half marked as unknown. A sample is unknown if libraries change in the same round
/// of the drainer: 100 ms or less if it has a processor, of 200 ms of work with each library. False
/// alarm: not by chance on an idle machine.
#[test]
fn measured_reloaded_libraries_have_their_own_names() {
    each(&turn(&both()), |jdk| {
        let Run {
            view,
            truths,
            _place,
        } = record(jdk, "DlReload", "seconds=4 burn_ms=200", "cpu=500us");
        view.check_failures();
        assert!(
            truths.number("b_at_address_of_a") > 0,
            "the address was used again: {truths:?}"
        );
        let mut found: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
        for sample in view.of_threads("dlreload-") {
            let java = sample.under(|frame| {
                matches!(frame.name, "burnAlphaFirst" | "burnBeta" | "burnAlphaAgain")
            });
            let Some(java) = java else { continue };
            let beta = java.name == "burnBeta";
            let (right, wrong) = if beta {
                ("beta", "alpha")
            } else {
                ("alpha", "beta")
            };
            let of = |library: &str| {
                let file = format!("libdwelltest_{library}.so");
                let function = format!("{library}_burn");
                sample
                    .frames()
                    .any(|f| f.class.contains(&file) || f.name == function)
            };
            must!(!of(wrong), "{}", sample.line());
            let unknown = sample.frames().any(|f| f.class == "[unknown]");
            let tally = found.entry(java.name).or_default();
            let place = if of(right) {
                0
            } else if unknown {
                1
            } else {
                2
            };
            tally[place] += sample.weight_ns();
        }
        println!("named, unknown, elsewhere: {found:?}");
        for name in ["burnAlphaFirst", "burnBeta", "burnAlphaAgain"] {
            let [named, unknown, elsewhere] = found[name];
            // Outside of the function are clocks and calls of JNI.
            assert!(named >= 3 * elsewhere, "{name}: {found:?}");
            assert!(named >= unknown, "{name}: {found:?}");
        }
    });
}

/// Detects a thread whose weight is off by 2 % and 8 deviations, and stacks that lack frames
/// without saying so, which is exact. False alarm: 1e-6 for each of eight threads (Bernstein),
/// failed walks 1e-6.
#[test]
fn measured_virtual_threads_have_weights_and_carrier_stacks() {
    each(&since(21), |jdk| {
        let Run {
            view,
            truths,
            _place,
        } = record(
            jdk,
            "VirtualThreads",
            "seconds=4 threads=8 cpu_ms=2000",
            "cpu=500us",
        );
        view.check_failures();
        let mut weights: BTreeMap<&str, u64> = BTreeMap::new();
        let mut ids: BTreeMap<&str, i64> = BTreeMap::new();
        let (mut bursts, mut complete, mut wrong) = (0, 0, Vec::new());
        for sample in view.samples().filter(|s| s.has("burstOfVirtualThread")) {
            let thread = &view.recording.threads[sample.sample.thread as usize];
            must!(thread.is_virtual, "{}", sample.line());
            must!(thread.java_tid > 0, "{}", sample.line());
            let id = ids.entry(sample.thread()).or_insert(thread.java_tid);
            must!(*id == thread.java_tid, "one id a name: {}", sample.line());
            *weights.entry(sample.thread()).or_default() += sample.weight_ns();
            let carrier = sample
                .sample
                .carrier
                .expect("a virtual thread has a carrier");
            assert!(!view.recording.threads[carrier as usize].is_virtual);
            bursts += 1;
            if sample.failure().is_some() {
                continue;
            }
            let descends = sample
                .frames()
                .filter(|frame| frame.name == "descend")
                .count();
            let root = sample.under(|frame| frame.is_java()).expect("Java frames");
            let carrier = ("java.util.concurrent.ForkJoinWorkerThread", "run");
            let to_carrier = (root.class, root.name) == carrier && sample.has("runContinuation");
            if descends == 30 && to_carrier {
                complete += 1;
            } else {
                wrong.push(sample.line());
            }
        }
        assert!(bursts > 150, "{bursts} samples");
        assert!(
            complete * 200 >= bursts * 199,
            "{complete} of {bursts} are complete"
        );
        // A stack that lacks frames and does not say so is worse than a failed walk.
        must!(
            wrong.is_empty(),
            "{} of {bursts}: {}",
            wrong.len(),
            wrong[0]
        );
        check_virtual_weights(&weights, &truths);
    });
}

/// Each thread's weight differs from its truth by no more than chance. A sample has a weight of one
/// interval, so by Bernstein's inequality the error exceeds 8 sigma of counting with a probability
/// of 1e-6.
#[track_caller]
fn check_virtual_weights(weights: &BTreeMap<&str, u64>, truths: &Truths) {
    let interval = 500_000.0;
    for (name, truth) in truths
        .cpu_ns
        .iter()
        .filter(|(name, _)| name.starts_with("vt-"))
    {
        let found = *weights.get(name.as_str()).unwrap_or(&0) as f64;
        let truth = *truth as f64;
        let bound = 0.02 * truth + 8.0 * (truth * interval).sqrt() + 2.0 * interval;
        println!(
            "{name}: {:.1} ms, in truth {:.1} ms",
            found / 1e6,
            truth / 1e6
        );
        assert!(
            (found - truth).abs() <= bound,
            "{name}: {found} ns, in truth {truth} ns"
        );
    }
    let found: u64 = weights.values().sum();
    let truth = truths.ns("vt_total");
    let slack = truth / 20 + 4 * 500_000;
    assert!(
        found.abs_diff(truth) <= slack,
        "all: {found} ns, in truth {truth} ns"
    );
}

//! The report of each safepoint, seen or missed, from a JVM made up, whose data the tests write.

use super::*;
use crate::hotspot::made_up::recording;
use crate::jvm::Vm;
use crate::jvm::made_up::{self, Words};
use dwell_recorder::runtime::Watch as _;
use dwell_walker::hotspot::Layout;
use std::time::{Duration, Instant};

/// Offset of each of the JVM's fields in bytes, and its symbol.
const NOTES: [(&str, u64); 11] = [
    ("_ZN20SafepointSynchronize6_stateE", 0),
    ("_ZN20SafepointSynchronize13_safepoint_idE", 8),
    ("_ZN16SafepointTracing13_current_typeE", 16),
    ("_ZN16SafepointTracing29_last_safepoint_begin_time_nsE", 24),
    ("_ZN16SafepointTracing28_last_safepoint_sync_time_nsE", 32),
    ("_ZN16SafepointTracing27_last_safepoint_end_time_nsE", 40),
    ("_ZN16SafepointTracing17_last_app_time_nsE", 48),
    ("_ZN16SafepointTracing12_nof_threadsE", 56),
    ("_ZN16SafepointTracing12_nof_runningE", 64),
    ("_ZN20SafepointSynchronize13_wait_barrierE", 72),
    ("_ZN12VM_Operation6_namesE", 80),
];
const STATE: u64 = 0;
const BARRIER: u64 = 72;
const OPERATIONS: u64 = 80;
const RUNNING: u64 = 0;
const REACHING: u64 = 1;
const REACHED: u64 = 2;

/// The JVM's fields.
#[derive(Clone, Copy)]
struct Notes(Words);

impl Notes {
    fn new() -> Notes {
        let notes = Words::zeroes(16);
        notes.set(BARRIER, Words::zeroes(2).at());
        let names = ["Cleanup", "G1CollectForAllocation"];
        for (name, place) in names.iter().zip(0..) {
            notes.set(
                OPERATIONS + 8 * place,
                Words::of_bytes(name.as_bytes()).at(),
            );
        }
        Notes(notes)
    }

    fn found(self) -> Safepoints {
        let found = Safepoints::find(&|symbol| {
            let (_, at) = NOTES.iter().find(|(name, _)| *name == symbol)?;
            Some(self.0.at() + at)
        });
        found.unwrap()
    }

    fn futex(self) -> u64 {
        self.found().futex(&made_up::live()).unwrap()
    }

    fn state(self, state: u64) {
        self.0.set(STATE, state);
    }

    /// Times: request, arrival of all threads, their release, and how long they had run before.
    fn note(self, id: u64, [began, reached, ended, ran]: [u64; 4]) {
        let words = [id, 1, began, reached, ended, ran, 30, 12];
        for (word, (_, at)) in words.into_iter().zip(&NOTES[1..]) {
            self.0.set(*at, word);
        }
    }
}

/// Number, time to reach them, and time in them.
const COUNTED: [&str; 3] = [
    "sun.rt.safepoints",
    "sun.rt.safepointSyncTime",
    "sun.rt.safepointTime",
];

/// No Java thread.
fn layout() -> Layout {
    let mut layout = made_up::layout();
    layout.threads_first = Words::zeroes(1).at();
    layout
}

fn waker() -> Arc<Waker> {
    Arc::new(Waker {
        count: AtomicU32::new(0),
        is_set: AtomicBool::new(false),
    })
}

fn setup(layout: Layout) -> Setup {
    recording(Vm::made_up(layout))
}

fn watch(setup: &Setup, notes: Notes) -> Watch<'_> {
    Watch::new(setup, notes.found(), notes.futex(), waker())
}

/// Number of the safepoint, count, and times.
fn reported(setup: &Setup) -> Vec<(u64, u64, [u64; 3])> {
    let all = setup.stops.take();
    let times = |it: &Stop| [it.began_ns, it.reaching_ns, it.operation_ns];
    all.iter().map(|it| (it.id, it.count, times(it))).collect()
}

fn tardy(java_thread: u64) -> Tardy {
    Tardy {
        java_thread,
        late: Late::InJava,
        first_ns: 1,
        last_ns: 2,
        held_ns: 3,
        asked: false,
        who: Some(java_thread + 100),
        times: None,
    }
}

/// A safepoint that was observed while it was being reached, with so many late threads.
fn seen(began_ns: u64, late: u64) -> Option<Seen> {
    Some(Seen {
        noted: Noted {
            began_ns,
            operation: 0,
            ..Noted::default()
        },
        late: (0..late).map(|n| (tardy(n), 50 + n)).collect(),
    })
}

#[test]
fn safepoint_is_reported_once_after_its_end() {
    let (notes, setup) = (Notes::new(), setup(layout()));
    notes.note(5, [10, 20, 30, 0]);
    let mut watch = watch(&setup, notes);
    watch.report(None);
    assert_eq!(reported(&setup), [], "it was before the recording");
    notes.note(6, [1000, 1200, 2000, 970]);
    setup.stops.set_open(Some(1000));
    watch.report(None);
    assert_eq!(setup.stops.open_ns(), None);
    let wanted = Stop {
        id: 6,
        operation: "G1CollectForAllocation".into(),
        began_ns: 1000,
        reaching_ns: 200,
        operation_ns: 800,
        threads: 30,
        running: 12,
        late: 0,
        named: Vec::new(),
        count: 1,
        source: NOTED,
    };
    assert_eq!(setup.stops.take(), [wanted]);
    watch.report(None);
    assert_eq!(reported(&setup), []);
}

#[test]
fn lasting_safepoint_is_reported_at_its_end() {
    let (notes, setup) = (Notes::new(), setup(layout()));
    notes.state(REACHED);
    notes.note(6, [1000, 1200, 40, 970]);
    let mut watch = watch(&setup, notes);
    watch.report(None);
    assert_eq!(reported(&setup), []);
    // Threads continue, but its end is not recorded yet.
    notes.state(RUNNING);
    watch.report(None);
    assert_eq!(reported(&setup), []);
    notes.note(6, [1000, 1200, 1200, 970]);
    watch.report(None);
    assert_eq!(reported(&setup), [(6, 1, [1000, 200, 0])]);
}

#[test]
fn missed_safepoints_have_the_counted_times() {
    let mut layout = layout();
    let counted = made_up::Counters::new(&mut layout, &COUNTED);
    counted.set(&[5, 700, 1700]);
    let (notes, setup) = (Notes::new(), setup(layout));
    notes.note(5, [10, 20, 30, 0]);
    let mut watch = watch(&setup, notes);
    // Three safepoints: only sums are known of the first two.
    notes.note(8, [9000, 9100, 9300, 0]);
    counted.set(&[8, 700 + 100 + 40, 1700 + 300 + 240]);
    watch.report(None);
    let missed = (7, 2, [9000, 40, 200]);
    // A recorded safepoint is counted as well, but not as missed.
    let all = setup.stops.take();
    assert_eq!(all.len(), 2);
    assert_eq!((all[0].source, all[1].source), (COUNTERS, NOTED));
    assert_eq!(all[0].operation, "", "unknown for several");
    let times = [all[0].began_ns, all[0].reaching_ns, all[0].operation_ns];
    assert_eq!((all[0].id, all[0].count, times), missed);
    // None was missed, so the counters are not read.
    counted.set(&[9, 5000, 9000]);
    notes.note(9, [9500, 9510, 9530, 0]);
    watch.report(None);
    assert_eq!(reported(&setup), [(9, 1, [9500, 10, 20])]);
}

#[test]
fn missed_safepoints_are_counted_without_counters() {
    let (notes, setup) = (Notes::new(), setup(layout()));
    let mut watch = watch(&setup, notes);
    notes.note(4, [9000, 9100, 9300, 0]);
    watch.report(None);
    let noted = (4, 1, [9000, 100, 200]);
    assert_eq!(reported(&setup), [(3, 3, [9000, 0, 0]), noted]);
}

#[test]
fn late_threads_belong_to_their_own_safepoint() {
    for (id, seen_ns, late) in [
        // The next one.
        (6, 9000, vec![2]),
        // The safepoint before, whose times the JVM has overwritten.
        (7, 8000, vec![2, 0]),
        // One of several unknown ones; and an impossible one.
        (8, 8000, vec![0, 0]),
        (6, 8000, vec![0]),
    ] {
        let (notes, setup) = (Notes::new(), setup(layout()));
        notes.note(5, [10, 20, 30, 0]);
        let mut watch = watch(&setup, notes);
        notes.note(id, [9000, 9100, 9300, 0]);
        watch.report(seen(seen_ns, 2));
        let all = setup.stops.take();
        let counts: Vec<u64> = all.iter().map(|it| it.late).collect();
        assert_eq!(counts, late, "{id} {seen_ns}");
        if let Some(it) = all.iter().find(|it| it.late > 0) {
            assert_eq!(it.began_ns, seen_ns);
            let who: Vec<_> = it.named.iter().map(|it| (it.thread, it.until_ns)).collect();
            assert_eq!(who, [(100, 50), (101, 51)]);
        }
    }
}

#[test]
fn observation_waits_for_the_end_of_its_safepoint() {
    let (notes, setup) = (Notes::new(), setup(layout()));
    let mut watch = watch(&setup, notes);
    notes.state(REACHED);
    notes.note(1, [9000, 9100, 0, 0]);
    watch.report(seen(9000, 1));
    assert_eq!(reported(&setup), []);
    notes.state(RUNNING);
    notes.note(1, [9000, 9100, 9300, 0]);
    watch.report(None);
    assert_eq!(setup.stops.take()[0].late, 1);
}

#[test]
fn latest_of_many_late_threads_are_named() {
    let setup = setup(layout());
    let watch = watch(&setup, Notes::new());
    let (late, named) = watch.named(seen(1, NAMED_MAX as u64 + 3));
    assert_eq!((late, named.len()), (NAMED_MAX as u64 + 3, NAMED_MAX));
    assert_eq!(watch.named(None), (0, Vec::new()));
    // Its key is unknown, and its thread has exited.
    let unknown = Tardy {
        who: None,
        ..tardy(0x7777_0000)
    };
    assert_eq!(watch.name(&unknown, 5), None);
}

#[test]
fn earlier_safepoint_is_rebuilt_during_the_next() {
    let with = |id, began_ns, ran_ns, counted_ns| {
        let mut layout = layout();
        let counted = made_up::Counters::new(&mut layout, &COUNTED);
        let (notes, setup) = (Notes::new(), setup(layout));
        notes.note(5, [10, 20, 30, 0]);
        let mut watch = watch(&setup, notes);
        counted.set(&[6, counted_ns, counted_ns + 50]);
        notes.state(REACHING);
        notes.note(id, [began_ns, 0, 30, ran_ns]);
        watch.report(seen(3000, 1));
        reported(&setup)
    };
    // It ended 1000 ns before the request of the next one.
    assert_eq!(with(6, 5000, 1000, 400), [(6, 1, [3000, 400, 600])]);
    assert_eq!(with(6, 5000, 1000, 1000), [(6, 1, [3000, 1000, 0])]);
    assert_eq!(with(6, 5000, 1000, 1001), [], "longer than there was time");
    assert_eq!(with(6, 5000, 2000, 0), [(6, 1, [3000, 0, 0])]);
    assert_eq!(with(6, 5000, 2001, 0), [], "it had ended before it began");
    assert_eq!(with(6, 5000, 0, 0), [], "threads had not run since");
    assert_eq!(with(7, 5000, 1000, 400), [], "one of two");
    assert_eq!(with(5, 5000, 1000, 400), [], "reported before");
}

#[test]
fn arrival_time_is_recorded_or_bounded_by_the_next() {
    let noted = |began_ns, reached_ns, ran_ns| Noted {
        began_ns,
        reached_ns,
        ran_ns,
        ..Noted::default()
    };
    let seen = noted(1000, 0, 0);
    assert_eq!(arrived_ns(&seen, Some(noted(1000, 1200, 0))), Some(1200));
    assert_eq!(arrived_ns(&seen, Some(noted(1000, 0, 0))), None, "not yet");
    // Threads have run for 300 ns when the next one is requested.
    assert_eq!(arrived_ns(&seen, Some(noted(1900, 0, 300))), Some(1600));
    assert_eq!(arrived_ns(&seen, Some(noted(999, 1200, 300))), None);
    assert_eq!(arrived_ns(&seen, None), None);
}

#[test]
fn safepoint_reached_at_once_has_no_late_threads() {
    let (notes, setup) = (Notes::new(), setup(layout()));
    let mut watch = watch(&setup, notes);
    let stop = AtomicBool::new(false);
    let mut reach = |began: u64| {
        notes.note(1, [began, began + 5, 0, 0]);
        notes.state(REACHED);
        let seen = watch.reach(&stop).unwrap();
        assert_eq!(setup.stops.open_ns(), Some(began), "other threads know it");
        (seen.noted.began_ns, seen.late.len())
    };
    assert_eq!(reach(9000), (9000, 0), "it was asked for long ago");
    let now_ns = process::monotonic_ns() + 3_600_000_000_000;
    assert_eq!(reach(now_ns), (now_ns, 0), "too early for late threads");
}

#[test]
fn check_interval_follows_the_waits_for_late_threads() {
    let setup = setup(layout());
    let mut watch = watch(&setup, Notes::new());
    let now_ns = process::monotonic_ns();
    assert_eq!(watch.pace_ns(), CALM_NS);
    watch.waker.is_set.store(true, Ordering::SeqCst);
    assert_eq!(watch.pace_ns(), ALARMED_NS);
    // An hour from now: the test may be stopped for as long.
    let later_ns = now_ns + 3_600_000_000_000;
    for (late_ns, pace_ns) in [
        (1, TENSE_NS),
        (16 * TENSE_NS, TENSE_NS),
        (16 * TENSE_NS + 16, TENSE_NS + 1),
        (16 * CALM_NS, CALM_NS),
        (u64::MAX, ALARMED_NS),
    ] {
        watch.last_late = Some((later_ns, late_ns));
        assert_eq!(watch.pace_ns(), pace_ns, "{late_ns}");
    }
    watch.waker.is_set.store(false, Ordering::SeqCst);
    watch.last_late = Some((later_ns, u64::MAX));
    assert_eq!(watch.pace_ns(), CALM_NS, "no other report");
    watch.waker.is_set.store(true, Ordering::SeqCst);
    // The interval grows with the time since the last late threads.
    watch.last_late = Some((now_ns - TENSE_FOR_NS / 2, 1));
    assert!(watch.pace_ns() >= TENSE_FOR_NS / 2 / TENSE_LOOKS);
    watch.last_late = Some((now_ns.saturating_sub(TENSE_FOR_NS), 1));
    assert_eq!(watch.pace_ns(), ALARMED_NS, "long ago");
}

#[test]
fn safepoint_is_late_from_the_configured_time_on() {
    let (notes, setup) = (Notes::new(), setup(layout()));
    let late_ns = setup.options.late.as_nanos() as u64;
    let mut watch = watch(&setup, notes);
    notes.note(1, [1000, 1000 + late_ns - 1, 1000 + late_ns, 0]);
    watch.report(None);
    assert_eq!(watch.last_late, None);
    notes.note(2, [1000, 1000 + late_ns, 5000 + late_ns, 0]);
    watch.report(None);
    assert_eq!(watch.last_late, Some((5000 + late_ns, late_ns)));
}

#[test]
fn late_thread_activity_comes_from_times_or_its_state() {
    let with = |late, times| {
        Watch::doing(&Tardy {
            late,
            times,
            ..tardy(1)
        })
    };
    assert_eq!(with(Late::InJava, None), "java");
    assert_eq!(with(Late::InVm, None), "vm");
    let first = Moment {
        is_ready: true,
        ..Moment::default()
    };
    let until = |cpu_ns| {
        let mut times = Times::since(first);
        times.until(Moment {
            at_ns: 10_000_000,
            cpu_ns,
            ..first
        });
        Some(times)
    };
    assert_eq!(with(Late::InVm, until(10_000_000)), "vm");
    assert_eq!(with(Late::InVm, until(0)), "runnable");
}

#[test]
fn operations_have_the_jvms_names() {
    let notes = Notes::new();
    let setup = setup(layout());
    let mut watch = watch(&setup, notes);
    assert_eq!(watch.operation(0), "Cleanup");
    assert_eq!(watch.operation(1), "G1CollectForAllocation");
    assert_eq!(watch.operation(100_000), "");
    notes.0.set(OPERATIONS + 8, 0);
    assert_eq!(watch.operation(1), "G1CollectForAllocation", "known by now");
}

/// The whole thread: it reports a safepoint that comes while it watches, and ends when it must.
#[test]
fn watcher_reports_safepoints_until_it_ends() {
    let notes = Notes::new();
    let with = |found| {
        let mut vm = Vm::made_up(layout());
        vm.safepoints = found;
        let setup = Arc::new(recording(vm));
        let watcher = StopWatcher::start(&setup, &Arc::default());
        (setup, watcher)
    };
    assert!(with(None).1.is_none(), "they cannot be seen");
    let (setup, watcher) = with(Some(notes.found()));
    let watcher = watcher.unwrap();
    assert!(watcher.alarm.is_none(), "timers cannot wake it");
    // It may begin only after this one.
    notes.note(1, [1000, 1200, 2000, 0]);
    let until = Instant::now() + Duration::from_secs(60);
    let mut id = 1;
    let all = loop {
        let all = setup.stops.take();
        if !all.is_empty() || Instant::now() > until {
            break all;
        }
        std::thread::sleep(Duration::from_millis(10));
        id += 1;
        notes.note(id, [1000 * id, 1000 * id + 200, 1000 * id + 999, 0]);
    };
    assert!(!all.is_empty());
    watcher.end();
    let watched_ns = setup.stops.cpu_ns();
    assert!(watched_ns > 0);
}

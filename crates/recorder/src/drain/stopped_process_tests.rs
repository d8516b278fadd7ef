//! The drainer's time with injected accounts: which of it is a stop of the process.

use super::*;
use crate::looks::shelf::Tick;
use std::cell::Cell;

const MS: u64 = 1_000_000;
const PROCESSORS: usize = 2;

/// Accounts that only the test advances, in ms.
#[derive(Clone, Copy, Default)]
struct Passed {
    /// The thread slept, or was stopped.
    off: u64,
    /// It ran.
    ran: u64,
    /// It was ready.
    ready: u64,
    /// The other threads ran.
    others: u64,
}

#[derive(Default)]
struct Injected {
    at: Cell<Passed>,
    reads: Cell<u32>,
    /// The process is stopped for so long in the next reading, in ms.
    in_reading: Cell<u64>,
    has_none: bool,
    /// Reading the process's CPU time costs much. It is kept from the first time on.
    costs_much: bool,
    kept: Cell<Read>,
}

impl Accounts for &Injected {
    fn now_ns(&self) -> u64 {
        let at = self.at.get();
        (at.off + at.ran + at.ready) * MS
    }

    fn moment(&self, all: bool) -> Option<Moment> {
        self.reads.set(self.reads.get() + 1);
        self.stop(self.in_reading.take());
        let at = self.at.get();
        if all || !self.costs_much || self.reads.get() == 1 {
            self.kept.set(Read {
                at_ns: self.now_ns(),
                cpu_ns: (at.ran + at.others) * MS,
                not_before_ns: 0,
            });
        }
        (!self.has_none).then_some(Moment {
            now_ns: self.now_ns(),
            cpu: self.kept.get(),
            ran_ns: at.ran * MS,
            ready_ns: at.ready * MS,
        })
    }
}

impl Injected {
    fn pass(&self, more: Passed) {
        let at = self.at.get();
        self.at.set(Passed {
            off: at.off + more.off,
            ran: at.ran + more.ran,
            ready: at.ready + more.ready,
            others: at.others + more.others,
        });
    }

    fn stop(&self, ms: u64) {
        let off = ms;
        self.pass(Passed { off, ..ZERO });
    }
}

const ZERO: Passed = Passed {
    off: 0,
    ran: 0,
    ready: 0,
    others: 0,
};

/// The stops in ms from the beginning, with wall-clock ticks at `ticks`, in ms.
fn taken(process: &mut StoppedProcess<&Injected>, ticks: &[u64]) -> Vec<(u64, u64)> {
    let mut batch = Batch::default();
    for at in ticks {
        batch.add_tick(Tick {
            at_ns: at * MS,
            ..Tick::default()
        });
    }
    let times = process.take(&batch, 0);
    let time = |it: &StoppedTime| (it.since_ns / MS, it.until_ns / MS);
    times.iter().map(time).collect()
}

/// The stops in a sleep of `sleep` ms in which this passes.
fn in_sleep(sleep: u64, passed: Passed, ticks: &[u64]) -> Vec<(u64, u64)> {
    let accounts = Injected::default();
    let mut process = StoppedProcess::new(&accounts, PROCESSORS);
    process.mark_exactly();
    accounts.pass(passed);
    process.mark_after(Duration::from_millis(sleep));
    taken(&mut process, ticks)
}

/// The stops while the thread works.
fn in_work(passed: Passed, ticks: &[u64]) -> Vec<(u64, u64)> {
    in_sleep(0, passed, ticks)
}

#[test]
fn sleep_that_lasts_too_long_is_a_stop() {
    let slept = |off| in_sleep(20, Passed { off, ..ZERO }, &[]);
    assert_eq!(slept(320), [(20, 320)]);
    assert_eq!(slept(3_600_020), [(20, 3_600_020)]);
    assert_eq!(slept(170), [(20, 170)]);
    assert_eq!(slept(169), [], "too short");
    assert_eq!(slept(10), [], "an order came");
}

#[test]
fn stop_is_found_wherever_the_drainer_is() {
    let work = Passed {
        off: 300,
        ran: 30,
        ..ZERO
    };
    assert_eq!(in_work(work, &[]), [(30, 330)]);
    // In a call that gives no mark for long, and with most of the time ready.
    let work = Passed {
        off: 300,
        ran: 700,
        ready: 900,
        ..ZERO
    };
    let [(since, until)] = in_work(work, &[])[..] else {
        panic!("one stop");
    };
    assert_eq!(until - since, 300);
}

#[test]
fn late_drainer_on_a_busy_machine_is_no_stop() {
    let late = |ready, ran| {
        let off = 20;
        let passed = Passed {
            off,
            ran,
            ready,
            ..ZERO
        };
        in_sleep(20, passed, &[])
    };
    assert_eq!(late(5000, 0), []);
    assert_eq!(late(0, 5000), []);
    assert_eq!(late(2000, 2000), []);
}

#[test]
fn drainer_late_after_a_stop_does_not_hide_it() {
    // The stop is shorter than the wait for a processor that follows it.
    let passed = Passed {
        off: 320,
        ready: 1000,
        ..ZERO
    };
    assert_eq!(in_sleep(20, passed, &[]), [(20, 320)]);
    // The threads ran on both processors before it and after it.
    let others = 2 * 1020;
    let found = in_sleep(20, Passed { others, ..passed }, &[]);
    assert_eq!(found, [(20, 320)]);
}

#[test]
fn process_with_much_cpu_time_was_not_stopped() {
    let passed = |others| Passed {
        off: 420,
        others,
        ..ZERO
    };
    assert_eq!(in_sleep(20, passed(40), &[]), [(20, 420)]);
    assert_eq!(in_sleep(20, passed(139), &[]), [(20, 420)]);
    assert_eq!(in_sleep(20, passed(140), &[]), []);
}

#[test]
fn cpu_time_from_before_the_stop_does_not_hide_it() {
    let accounts = Injected {
        costs_much: true,
        ..Injected::default()
    };
    let mut process = StoppedProcess::new(&accounts, PROCESSORS);
    // Both processors are busy until the mark before the stop.
    let busy = |ms| Passed {
        ran: ms,
        others: ms,
        ..ZERO
    };
    accounts.pass(busy(1000));
    process.mark_exactly();
    accounts.stop(320);
    process.mark_after(Duration::from_millis(20));
    assert_eq!(taken(&mut process, &[]), [(1020, 1320)]);
    // The other threads ran, so only the drainer stood.
    process.mark_exactly();
    let others = 2 * 420;
    accounts.pass(Passed {
        off: 420,
        others,
        ..ZERO
    });
    process.mark_after(Duration::from_millis(20));
    assert_eq!(taken(&mut process, &[]), []);
}

#[test]
fn signs_of_other_threads_show_that_only_the_drainer_stood() {
    let off = 1000;
    let passed = Passed { off, ..ZERO };
    let every_20: Vec<u64> = (0..50).map(|tick| tick * 20).collect();
    assert_eq!(in_work(passed, &every_20), []);
    assert_eq!(in_work(passed, &[251, 1000]), []);
    assert_eq!(in_work(passed, &[250, 1000]), [(250, 1000)]);
    // Signs of other times show nothing.
    assert_eq!(in_work(passed, &[1000, 1020, 1500]), [(0, 1000)]);
}

#[test]
fn stop_lies_where_no_thread_left_a_sign() {
    // The drainer was ready for 600 ms before the stop, and no ms after it.
    let passed = Passed {
        off: 300,
        ready: 600,
        ..ZERO
    };
    let mut ticks: Vec<u64> = (0..30).map(|tick| tick * 20).collect();
    assert_eq!(in_work(passed, &[]), [(0, 300)], "unknown");
    assert_eq!(in_work(passed, &ticks), [(580, 880)]);
    ticks.extend([890, 895]);
    assert_eq!(in_work(passed, &ticks), [(580, 880)]);
}

#[test]
fn two_stops_in_a_row_are_two_if_the_drainer_ran_between() {
    let accounts = Injected::default();
    let mut process = StoppedProcess::new(&accounts, PROCESSORS);
    process.mark_exactly();
    accounts.stop(320);
    process.mark_after(Duration::from_millis(20));
    accounts.pass(Passed { ran: 5, ..ZERO });
    process.mark();
    accounts.stop(400);
    process.mark_exactly();
    assert_eq!(taken(&mut process, &[]), [(20, 320), (325, 725)]);
    assert_eq!(taken(&mut process, &[]), [], "they are taken once");
}

#[test]
fn many_sleeps_and_rounds_do_not_add_up_to_a_stop() {
    let accounts = Injected::default();
    let mut process = StoppedProcess::new(&accounts, PROCESSORS);
    for _ in 0..100 {
        process.mark_exactly();
        for _ in 0..8 {
            accounts.stop(51);
            process.mark_after(SLEEP_MAX);
        }
        accounts.pass(Passed {
            ran: 100,
            ready: 300,
            ..ZERO
        });
        process.mark();
    }
    assert_eq!(taken(&mut process, &[]), []);
}

#[test]
fn full_slots_leave_a_stop_unknown() {
    let accounts = Injected::default();
    let mut process = StoppedProcess::new(&accounts, PROCESSORS);
    let mut stops = |unslotted| {
        process.mark_exactly();
        accounts.stop(300);
        process.mark();
        process.take(&Batch::default(), unslotted).len()
    };
    assert_eq!([stops(0), stops(7), stops(7)], [1, 0, 1]);
}

#[test]
fn many_short_waits_in_work_do_not_add_up_to_a_stop() {
    let accounts = Injected::default();
    let mut process = StoppedProcess::new(&accounts, PROCESSORS);
    process.mark_exactly();
    let work = |off, ready| Passed {
        off,
        ready,
        ran: 5,
        others: 50,
    };
    for _ in 0..50 {
        // For a page, while other threads change the address space.
        accounts.pass(work(30, 60));
        process.mark();
    }
    accounts.pass(work(10, 150));
    process.mark();
    assert_eq!(taken(&mut process, &[]), []);
    accounts.pass(work(200, 10));
    process.mark();
    assert_eq!(taken(&mut process, &[]).len(), 1, "a stop in work");
}

/// The stops in a call that takes `ms`.
fn in_call(ms: u64, ticks: &[u64]) -> Vec<(u64, u64)> {
    let accounts = Injected::default();
    let mut process = StoppedProcess::new(&accounts, PROCESSORS);
    process.mark();
    accounts.stop(ms);
    process.mark_after_call();
    taken(&mut process, ticks)
}

#[test]
fn write_to_a_slow_disk_is_no_stop() {
    let every_20: Vec<u64> = (0..500).map(|tick| tick * 20).collect();
    assert_eq!(in_call(10_000, &every_20), []);
    assert_eq!(in_call(10_000, &[]), [], "no ticks to show what it was");
}

#[test]
fn stop_within_a_write_is_found_by_ticks() {
    assert_eq!(in_call(10_000, &[10_001, 10_020]), [(0, 10_000)]);
    assert_eq!(in_call(100, &[101]), [], "too short");
}

#[test]
fn stop_while_accounts_are_read_is_found() {
    let accounts = Injected::default();
    let mut process = StoppedProcess::new(&accounts, PROCESSORS);
    process.mark_exactly();
    accounts.stop(1);
    accounts.in_reading.set(300);
    process.mark_exactly();
    assert_eq!(taken(&mut process, &[]), [(0, 301)]);
}

#[test]
fn files_are_read_once_a_round() {
    let accounts = Injected::default();
    let mut process = StoppedProcess::new(&accounts, PROCESSORS);
    let before = accounts.reads.get();
    process.mark_exactly();
    for _ in 0..100 {
        accounts.stop(50);
        process.mark_after(SLEEP_MAX);
        accounts.pass(Passed { ran: 1, ..ZERO });
        process.mark();
    }
    assert_eq!(accounts.reads.get(), before + 1);
}

#[test]
fn kernel_without_accounts_shows_no_stop() {
    let accounts = Injected {
        has_none: true,
        ..Injected::default()
    };
    let mut process = StoppedProcess::new(&accounts, PROCESSORS);
    process.mark_exactly();
    accounts.stop(5000);
    process.mark();
    assert_eq!(taken(&mut process, &[]), []);
}

#[test]
fn own_accounts_explain_a_thread_that_runs_and_sleeps() {
    let mut process = StoppedProcess::new(OwnAccounts::open(), PROCESSORS);
    let begin = process.before.unwrap();
    let sleep = Duration::from_millis(20);
    std::thread::sleep(sleep);
    while process::own_cpu().as_nanos() < u128::from(begin.ran_ns + 10 * MS) {
        std::hint::spin_loop();
    }
    let after = process.accounts.moment(true).unwrap();
    assert!(after.ran_ns - begin.ran_ns >= 10 * MS && after.cpu.cpu_ns > begin.cpu.cpu_ns);
    process.slept_ns = sleep.as_nanos() as u64;
    let found = process.remaining(&begin, &after, begin.now_ns);
    assert!(found.is_none(), "{found:?}");
}

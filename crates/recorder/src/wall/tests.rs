//! Members, debts and the end of sampling, with a mock runtime.

use super::*;
use crate::looks::shelf::Notes;
use crate::testing::{Agent, Alone, IN_NATIVE, Mock, alone, begin_thread};
use dwell_signal::ThreadRecord;
use dwell_wall::cause::{Call, Fd, Os};
use dwell_wall::proc::{Target, Whereabouts};
use dwell_wallclock::{Fingerprint, Label, Shown};
use rustix::thread::CpuSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The setup of a sampler that runs on the test's own thread.
struct Begun {
    agent: &'static Agent,
    setup: Setup<Mock>,
    alone: Alone,
}

fn begun(more: &str) -> Begun {
    let alone = alone();
    let agent = alone.agent();
    let setup = alone.setup(agent, &format!(",wall=20ms{more}"));
    agent.registry.watch();
    Begun {
        agent,
        setup,
        alone,
    }
}

impl Begun {
    fn sampler(&self) -> Sampler<'_, Mock> {
        Sampler::new(&self.setup)
    }

    /// Adds new threads and removes ended ones. Returns the threads reported as gone.
    fn update(&self, sampler: &mut Sampler<'_, Mock>) -> Vec<u64> {
        sampler.update_members(&self.setup.shelf);
        let mut notes = Notes::default();
        self.setup.shelf.take(&mut notes);
        let gone = notes.notes.iter().filter_map(|note| match note {
            Note::Gone { thread } => Some(*thread),
            _ => None,
        });
        gone.collect()
    }

    fn own(&self) -> &'static ThreadRecord {
        self.agent.registry.get(process::own_tid()).unwrap()
    }
}

#[test]
fn stop_request_ends_all_later_waits() {
    let stop = Stop::default();
    assert!(!stop.wait(Duration::ZERO));
    stop.ask();
    assert!(stop.wait(Duration::ZERO));
    assert!(stop.wait(Duration::from_secs(3600)));
}

#[test]
fn sampling_aims_at_nine_tenths_of_the_budget() {
    let whole = begun("");
    assert!((aim(&whole.setup) - 0.018).abs() < 1e-9, "2 %");
    drop(whole);
    let more = begun(",wall-budget=10%");
    assert!((aim(&more.setup) - 0.09).abs() < 1e-9);
}

#[test]
fn given_number_of_samples_does_not_depend_on_cost() {
    let begun = begun(",wall-threads=2");
    let mut sampler = begun.sampler();
    sampler.pay(10_000_000_000, 20_000_000);
    let purse = sampler.clock.purse();
    purse.earn(20_000_000);
    assert!(purse.can_pay(false));
    (0..2).for_each(|_| purse.sampled(1, false));
    assert!(!purse.can_pay(true));
}

#[test]
fn threads_of_the_runtime_are_members_while_they_live() {
    let begun = begun("");
    let mut sampler = begun.sampler();
    assert_eq!(begun.update(&mut sampler), []);
    assert!(sampler.members.is_empty());
    begin_thread(begun.agent, "own", 7, 1);
    let record = begun.own();
    let (index, user, managed) = (record.index(), record.user(), record.managed_thread());
    assert_eq!(begun.update(&mut sampler), []);
    assert!(sampler.members.contains(index) && sampler.members.len() == 1);
    assert_eq!(sampler.threads.of_managed(managed), Some(index));
    assert_eq!(sampler.threads.of_id(7), Some(index));
    let known = &sampler.known[index as usize];
    assert_eq!((known.thread, known.id), (user, 7));
    // A second update changes nothing.
    assert_eq!(begun.update(&mut sampler), []);
    assert_eq!(sampler.members.len(), 1);
    begun.agent.own_thread_ends();
    assert_eq!(begun.update(&mut sampler), [user]);
    assert!(sampler.members.is_empty());
    assert_eq!(sampler.threads.of_managed(managed), None);
    assert_eq!(sampler.threads.of_id(7), None);
}

#[test]
fn native_thread_becomes_member_when_it_attaches() {
    let begun = begun("");
    let mut sampler = begun.sampler();
    let seen = |managed, id| crate::recorder::Seen {
        name: crate::threads::ThreadName {
            tid: process::own_tid(),
            id,
            ..Default::default()
        },
        managed,
        ..Default::default()
    };
    begun.agent.saw(seen(0, 0));
    begun.update(&mut sampler);
    assert!(sampler.members.is_empty());
    // The thread is known before its id.
    begun.agent.saw(seen(0x100, 0));
    begun.update(&mut sampler);
    let index = begun.own().index();
    assert!(sampler.members.contains(index));
    assert_eq!(sampler.threads.of_id(5), None);
    begun.agent.saw(seen(0x100, 5));
    begun.update(&mut sampler);
    assert_eq!(sampler.threads.of_id(5), Some(index));
    assert_eq!(sampler.members.len(), 1);
}

#[test]
fn reused_record_replaces_ended_thread() {
    let begun = begun("");
    let mut sampler = begun.sampler();
    begin_thread(begun.agent, "one", 1, 1);
    begun.update(&mut sampler);
    let (index, first) = (begun.own().index(), begun.own().user());
    begun.agent.own_thread_ends();
    let engine = begun.alone.engine();
    engine.drain(|_| ());
    assert_eq!(engine.reap(|_| ()), 1);
    begin_thread(begun.agent, "other", 2, 1);
    let (again, second) = (begun.own().index(), begun.own().user());
    assert_eq!(again, index, "the record must be reused here");
    assert_eq!(begun.update(&mut sampler), [first]);
    assert!(sampler.members.contains(index) && sampler.members.len() == 1);
    assert_eq!(sampler.known[index as usize].thread, second);
    assert_eq!(sampler.threads.of_id(1), None);
}

/// It was found running for a tick, then woken for a tick. A quarter of both is a wait for a
/// processor, so all of that follows a wake-up.
#[test]
fn thread_that_ends_has_the_waits_that_reads_found() {
    let begun = begun("");
    let mut sampler = begun.sampler();
    begin_thread(begun.agent, "own", 9, 1);
    begun.update(&mut sampler);
    let index = begun.own().index();
    sampler.known[index as usize].ready_part = 0.25;
    for (number, found) in [(1, Fingerprint::running()), (2, Fingerprint::woken())] {
        let tick = Tick {
            number,
            interval_ns: 20_000_000,
            ..Tick::default()
        };
        sampler.clock.begin_tick(tick, 20_000_000);
        assert_eq!(sampler.clock.due(), [index]);
        assert!(
            !sampler
                .clock
                .read(index, found, (0, || None), true, |_| true)
        );
    }
    let wait = Fingerprint::of([1], false);
    let label = Label {
        shown: Shown::Wait,
        place: 1,
        has_claim: false,
    };
    let class = sampler
        .clock
        .label(index, wait.after_wake_up(), label)
        .class;
    sampler.clock.wake(index, wait);
    begun.agent.own_thread_ends();
    sampler.update_members(&begun.setup.shelf);
    let notes = begun.setup.shelf.lock();
    let waits = notes.notes.iter().filter_map(|note| match note {
        Note::Ready {
            weight_ns, class, ..
        } => Some((*weight_ns, *class)),
        _ => None,
    });
    assert_eq!(waits.collect::<Vec<_>>(), [(10_000_000, Some(class))]);
}

#[test]
fn cost_of_others_is_paid_up_to_a_part_of_the_budget() {
    let begun = begun("");
    let mut sampler = begun.sampler();
    let look = grid::Look {
        ticks: 1,
        span_ns: 20_000_000,
    };
    assert_eq!(sampler.debt(&look), 0);
    let after_many = grid::Look { ticks: 64, ..look };
    begun.setup.shelf.add_drain_cpu_ns(1_000_000_000);
    let most = OTHERS_PART * aim(&begun.setup) * 20e6;
    assert_eq!(sampler.debt(&after_many), most as u64);
    // The safepoint watcher's cost counts from the sampler's start.
    begun.setup.stops.set_cpu_ns(50_000);
    let mut later = begun.sampler();
    assert_eq!(later.debt(&look), 0);
    begun.setup.stops.set_cpu_ns(56_400);
    let paid = later.debt(&look);
    assert!((90..=110).contains(&paid), "a part of 6400 ns: {paid}");
}

#[test]
fn last_tick_takes_accounts_that_are_not_due() {
    let begun = begun("");
    let mut sampler = begun.sampler();
    begin_thread(begun.agent, "own", 5, 1);
    begun.update(&mut sampler);
    let (index, shelf) = (begun.own().index(), &begun.setup.shelf);
    let schedule = |sampler: &Sampler<'_, Mock>| sampler.known[index as usize].schedule;
    let at_ns = process::monotonic_ns();
    let tick = |number, at_ns| Tick {
        number,
        at_ns,
        ..Tick::default()
    };
    sampler.clock.begin_tick(tick(1, at_ns), 0);
    sampler.account(index, false, shelf);
    let first = schedule(&sampler);
    assert!(first.is_some());
    let deadline = Instant::now() + Duration::from_secs(10);
    while sampler.kernel.schedule(process::own_tid()) == first && Instant::now() < deadline {
        std::hint::black_box(0);
    }
    sampler.clock.begin_tick(tick(2, at_ns + 20_000_000), 0);
    sampler.account(index, false, shelf);
    assert_eq!(schedule(&sampler), first);
    sampler.account(index, true, shelf);
    assert_ne!(schedule(&sampler), first);
}

#[test]
fn last_tick_reports_time_without_a_sample() {
    let begun = begun("");
    let mut sampler = begun.sampler();
    begin_thread(begun.agent, "own", 4, 1);
    // The test's thread runs, so no sample shows a wait.
    sampler.grid = Grid::new(
        20_000_000,
        process::monotonic_ns() - 60_000_000,
        Random::new(1),
    );
    let _ = sampler.grid.due_ns();
    sampler.tick(&begun.setup.shelf, true);
    let notes = begun.setup.shelf.lock();
    let ticks = notes.notes.iter().filter_map(|note| match note {
        Note::Tick(tick) => Some((tick.live, tick.looked)),
        _ => None,
    });
    assert_eq!(ticks.collect::<Vec<_>>(), [(1, 1)]);
    let runs = notes.notes.iter().filter_map(|note| match note {
        Note::Run(run) => Some((run.class, run.weight_ns)),
        _ => None,
    });
    // At most one interval, which no other tick counts.
    assert!(
        runs.into_iter()
            .all(|(class, ns)| class == UNSAMPLED && ns <= 20_000_000)
    );
}

/// A thread of the runtime that waits in a call, and later in another one.
struct TwoWaits {
    thread: JoinHandle<()>,
    tid: i32,
    peer: UnixStream,
}

impl TwoWaits {
    /// It waits for a byte on a socket, then until it is unparked.
    fn begin(agent: &'static Agent) -> TwoWaits {
        let (mut own, peer) = UnixStream::pair().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            begin_thread(agent, "waits", 4, 1);
            tell.send(process::own_tid()).unwrap();
            own.read_exact(&mut [0]).unwrap();
            std::thread::park();
            agent.own_thread_ends();
        });
        let tid = told.recv().unwrap();
        TwoWaits { thread, tid, peer }
    }

    /// Until it waits for something like this.
    fn until(&self, kernel: &Kernel, is_it: impl Fn(Target) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let waits = || match kernel.whereabouts(self.tid) {
            Some(Whereabouts::Off { call, .. }) => call.is_some_and(&is_it),
            _ => false,
        };
        while !waits() {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn end(self) {
        self.thread.thread().unpark();
        self.thread.join().unwrap();
    }
}

/// The calls of the waits that were reported.
fn calls(begun: &Begun) -> Vec<Os> {
    let notes = begun.setup.shelf.lock();
    let each = notes.notes.iter().filter_map(|note| match note {
        Note::Stack { off, .. } => Some(off.os),
        _ => None,
    });
    each.collect()
}

/// Begins a tick in which the thread must be read.
fn begin_tick(sampler: &mut Sampler<'_, Mock>, number: u32, index: u32) {
    const INTERVAL_NS: u64 = 20_000_000;
    let tick = Tick {
        number,
        at_ns: u64::from(number) * INTERVAL_NS,
        interval_ns: INTERVAL_NS,
        until_ns: u64::from(number) * INTERVAL_NS,
    };
    sampler.clock.begin_tick(tick, INTERVAL_NS);
    assert_eq!(sampler.clock.due(), [index]);
}

/// A read of the thread in its first wait, which asks for a sample.
fn first_read<'b>(
    begun: &'b Begun,
    waits: &TwoWaits,
) -> (Sampler<'b, Mock>, u32, reads::Read, u32) {
    let mut sampler = begun.sampler();
    begun.update(&mut sampler);
    let index = begun.agent.registry.get(waits.tid).unwrap().index();
    waits.until(&sampler.kernel, |call| {
        matches!(call, Target::Descriptor(_))
    });
    begin_tick(&mut sampler, 1, index);
    let before = sampler.kernel.asked.count.get();
    let read = sampler.read(index);
    assert!(read.wants.is_some());
    (sampler, index, read, before)
}

/// Reading the kernel's file is the most expensive part of a sample.
#[test]
fn read_and_sample_of_a_wait_need_the_kernels_file_once() {
    let begun = begun("");
    let waits = TwoWaits::begin(begun.agent);
    let (mut sampler, index, read, before) = first_read(&begun, &waits);
    sampler.sample(index, read.wants.unwrap(), &begun.setup.shelf);
    assert_eq!(sampler.kernel.asked.count.get() - before, 1);
    assert_eq!(calls(&begun), [Os::Call(Call::On(Fd::Socket))]);
    // The next read finds the same fingerprint, so the sample counts for it.
    assert!(sampler.clock.is_labelled(index));
    drop(sampler);
    (&waits.peer).write_all(&[0]).unwrap();
    waits.end();
}

/// Lets the calling thread run only on one of these processors. Returns false if it is not there.
fn stay_on(allowed: &CpuSet, place: usize) -> bool {
    let mut all = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let mut one = CpuSet::new();
    let Some(cpu) = all.nth(place) else {
        return false;
    };
    one.set(cpu);
    rustix::thread::sched_setaffinity(None, &one).unwrap();
    true
}

/// Two threads share a processor. The one that has it runs, the other one is ready where it is. A
/// reader on that processor may have taken it from that thread.
#[test]
fn preempted_thread_in_native_code_is_ready_there() {
    let begun = begun("");
    let agent = begun.agent;
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let (tell, told) = std::sync::mpsc::channel();
    let spin = |id| {
        let (is_over, tell) = (Arc::clone(&is_over), tell.clone());
        std::thread::spawn(move || {
            stay_on(&allowed, 0);
            begin_thread(agent, "native", id, 1);
            tell.send(process::own_tid()).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            agent.own_thread_ends();
        })
    };
    let threads = [IN_NATIVE >> 8, 7].map(spin);
    let tids = [told.recv().unwrap(), told.recv().unwrap()];
    let mut records = tids.map(|tid| agent.registry.get(tid).unwrap()).into_iter();
    let record = records.find(|it| it.managed_thread() == IN_NATIVE).unwrap();
    let sampler = begun.sampler();
    let by = (&sampler.looks, &sampler.kernel);
    let until_ready_here = |is_here| {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            assert!(Instant::now() < deadline);
            let print = look::fingerprint(by, record, &mut None);
            assert_eq!(print.fingerprint, Fingerprint::running());
            let place = Fingerprint::of([IN_NATIVE], false).with(0);
            assert_eq!(print.native, Some(place));
            if !look::runs(record.tid()) {
                let found = sampler.kernel.is_ready_here(record.tid());
                assert_eq!(found, Some((is_here, 1)));
                return;
            }
        }
    };
    if stay_on(&allowed, 1) {
        until_ready_here(false);
    }
    assert!(stay_on(&allowed, 0));
    until_ready_here(true);
    is_over.store(true, Ordering::Relaxed);
    (threads.into_iter()).for_each(|thread| thread.join().unwrap());
}

/// A thread that ran when the tick was due waits now, for the reader came late to its processor.
#[test]
fn thread_that_waits_now_ran_when_the_tick_was_due() {
    const RUN_NS: u64 = 20_000_000;
    let begun = begun("");
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        stay_on(&allowed, 0);
        let until_ns = process::monotonic_ns() + RUN_NS;
        while process::monotonic_ns() < until_ns {}
        tell.send((process::own_tid(), process::monotonic_ns()))
            .unwrap();
        let _ = ended.recv();
    });
    let (tid, waits_ns) = told.recv().unwrap();
    let mut sampler = begun.sampler();
    let kernel = &mut sampler.kernel;
    let mut ran = |is_there: bool, due_ns: u64, turn_ns| {
        assert!(stay_on(&allowed, usize::from(!is_there)));
        std::thread::sleep(Duration::from_millis(5));
        kernel.begin_late_tick(process::monotonic_ns().saturating_sub(due_ns));
        kernel.ran_when_due(tid, turn_ns)
    };
    if std::fs::exists("/proc/self/sched").unwrap() {
        let deadline = Instant::now() + Duration::from_secs(60);
        // Another thread may come between this one and its tick.
        while !ran(true, waits_ns - 1_000_000, RUN_NS) {
            assert!(Instant::now() < deadline);
        }
        assert!(!ran(true, waits_ns - 1_000_000, 100_000), "a short turn");
        assert!(!ran(true, waits_ns + 4_000_000, RUN_NS), "it waited then");
        assert!(!ran(true, u64::MAX, RUN_NS), "a tick without delay");
        if allowed.count() > 1 {
            assert!(!ran(false, waits_ns - 1_000_000, RUN_NS), "elsewhere");
        }
    }
    drop(end);
    thread.join().unwrap();
}

#[test]
fn wait_that_began_in_the_delay_of_a_tick_counts_as_a_run() {
    // So will the other thread.
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    assert!(stay_on(&allowed, 0));
    let begun = begun("");
    let due_ns = process::monotonic_ns();
    let waits = TwoWaits::begin(begun.agent);
    let mut sampler = begun.sampler();
    begun.update(&mut sampler);
    let index = begun.agent.registry.get(waits.tid).unwrap().index();
    waits.until(&sampler.kernel, |call| {
        matches!(call, Target::Descriptor(_))
    });
    sampler.known[index as usize].turn_ns = u64::MAX;
    begin_tick(&mut sampler, 1, index);
    let late_ns = process::monotonic_ns() - due_ns;
    sampler.kernel.begin_late_tick(late_ns);
    let read = sampler.read(index);
    let is_known = std::fs::exists("/proc/self/sched").unwrap();
    assert_eq!(sampler.clock.runs(index), is_known);
    assert_eq!(read.wants.is_none(), is_known);
    // The next tick is in time: the thread waits.
    begin_tick(&mut sampler, 2, index);
    sampler.kernel.begin_late_tick(0);
    let read = sampler.read(index);
    assert!(read.wants.is_some() && !sampler.clock.runs(index));
    drop(sampler);
    (&waits.peer).write_all(&[0]).unwrap();
    waits.end();
}

/// Each read of a ready thread is a read of a file, so there is a limit.
#[test]
fn few_of_many_ready_threads_are_checked() {
    let begun = begun("");
    let mut sampler = begun.sampler();
    let kernel = &mut sampler.kernel;
    let mut checked = [0; 3];
    for checked in &mut checked {
        kernel.begin_late_tick(0);
        let before = kernel.asked.count.get();
        (0..100).for_each(|_| {
            let _ = kernel.is_ready_here(process::own_tid());
        });
        *checked = kernel.asked.count.get() - before;
    }
    assert_eq!(checked, [100, 14, 14]);
}

/// A woken thread has the place of its wait, without a system call. A thread that runs fails.
#[test]
fn sample_of_a_woken_thread_shows_its_methods_only() {
    let begun = begun("");
    begin_thread(begun.agent, "own", 7, 1);
    let waits = TwoWaits::begin(begun.agent);
    let mut sampler = begun.sampler();
    begun.update(&mut sampler);
    let place = |tid| begun.agent.registry.get(tid).unwrap().index();
    let (index, own) = (place(waits.tid), place(process::own_tid()));
    waits.until(&sampler.kernel, |call| {
        matches!(call, Target::Descriptor(_))
    });
    let wait = Fingerprint::of([1], false);
    for id in [index, own] {
        sampler.sample(id, look::Want::Woken(wait), &begun.setup.shelf);
    }
    assert_eq!(calls(&begun), [Os::Waiting]);
    assert!(sampler.clock.take_found(index).preempted().is_some());
    assert_eq!(sampler.clock.take_found(own).preempted(), None);
    drop(sampler);
    (&waits.peer).write_all(&[0]).unwrap();
    waits.end();
}

#[test]
fn sample_shows_the_wait_that_followed_the_read() {
    let begun = begun("");
    let waits = TwoWaits::begin(begun.agent);
    let (mut sampler, index, read, _) = first_read(&begun, &waits);
    (&waits.peer).write_all(&[0]).unwrap();
    waits.until(&sampler.kernel, |call| call == Target::Futex);
    sampler.sample(index, read.wants.unwrap(), &begun.setup.shelf);
    assert_eq!(calls(&begun), [Os::Call(Call::Futex)]);
    // The fingerprint of the first wait still has no sample.
    assert!(!sampler.clock.is_labelled(index));
    // The next read finds the second wait. Its time does not count for the first one.
    begin_tick(&mut sampler, 2, index);
    sampler.read(index);
    assert!(sampler.clock.is_labelled(index));
    drop(sampler);
    waits.end();
}

//! The watcher of safepoints. This thread checks 10 to 100 times a second whether there was a
//! safepoint, or one is being reached. It checks once a second while the wall-clock sampler does so
//! at its ticks (`glance.rs`).
//!
//! If most safepoints are long, it sleeps on the futex on which the JVM's own threads wait for the
//! end of a safepoint, so that each end wakes it. If they are short it does not, because waking it
//! would make them longer. The safepoints that it misses are counted.
//!
//! The JVM has no event for the begin of a safepoint, so an alarm wakes the watcher for a late one
//! (`alarm.rs`). In addition, the watcher checks by its own timer. If threads were late before, it
//! checks often enough to see most of that time. It asks each thread that has not arrived for its
//! stack, by one signal, and only while all others wait for it.

pub mod alarm;
pub mod alarms;
pub mod check_cost;
pub mod counted;
pub mod counters;
pub mod glance;
pub mod lengths;
pub mod reach;

use crate::hotspot::{HotSpot, Setup};
use alarm::{Alarm, Waker};
use check_cost::CheckCost;
use counters::{Counters, Sums};
use dwell_recorder::runtime;
use dwell_recorder::runtime::progress::Progress;
use dwell_recorder::stops::{LateThread, Stop};
use dwell_recorder::sys::allocator::OwnThread;
use dwell_recorder::sys::joined;
use dwell_recorder::sys::process;
use dwell_recorder::sys::task::TaskFiles;
use dwell_signal::slots::Reason;
use dwell_signal::sys::cpu_ns_of;
use dwell_signal::{Live, ThreadRecord};
use dwell_walker::hotspot::safepoints::{self, Late, NAME_MAX, Noted, Safepoints, State};
use lengths::Lengths;
use reach::{Moment, Reach, Tardy, Times};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::thread::JoinHandle;

/// Interval between checks for safepoints, if no late threads are known.
const CALM_NS: u64 = 20_000_000;
/// The interval if an alarm reports late safepoints. Of several in that time the last is seen, the
/// others are counted.
const ALARMED_NS: u64 = 100_000_000;
/// Shortest interval.
const TENSE_NS: u64 = 1_000_000;
/// Late threads cost much time if the others wait for them for more than one part in this number.
const MUCH: u64 = 100;
/// Maximum number of checks before the time since the last late threads has passed again.
const TENSE_LOOKS: u64 = 64;
/// How long late threads count.
const TENSE_FOR_NS: u64 = 10_000_000_000;
/// Maximum number of threads asked for their stacks in one safepoint, and at once.
const ASKED_MAX: usize = 32;
const ASKED_AT_ONCE: usize = 8;
/// Maximum number of late threads named in one safepoint.
const NAMED_MAX: usize = 16;
/// The JVM's class with data on safepoints.
const NOTED: &str = "SafepointTracing";
const COUNTERS: &str = "counters";
/// The JVM records the end shortly after it has released the threads.
const END_WAIT_NS: u64 = 50_000;
const END_WAITS_MAX: u32 = 100;
/// It counts the end shortly after that.
const COUNT_WAIT_NS: u64 = 500_000;

/// The thread.
pub struct StopWatcher {
    stop: Arc<AtomicBool>,
    futex: u64,
    thread: JoinHandle<()>,
    alarm: Option<Alarm>,
}

impl runtime::Watch<HotSpot> for StopWatcher {
    /// Begins to watch, if this JVM's safepoints can be seen.
    fn start(setup: &Arc<Setup>, progress: &Arc<Progress>) -> Option<StopWatcher> {
        let found = setup.recorder.runtime.vm().safepoints?;
        let live = setup.engine.live();
        let futex = found.futex(&live).filter(|_| found.are_noted())?;
        let stop = Arc::new(AtomicBool::new(false));
        let (own_setup, own_stop) = (Arc::clone(setup), Arc::clone(&stop));
        let waker = Arc::new(Waker {
            count: AtomicU32::new(0),
            is_set: AtomicBool::new(false),
        });
        let own_waker = Arc::clone(&waker);
        let trouble = Arc::clone(progress);
        let thread = std::thread::Builder::new()
            .name("dwell-stops".into())
            .spawn(move || {
                // A panic here is a bug of ours. It must end the watcher, never the JVM.
                let work = std::panic::AssertUnwindSafe(|| {
                    process::block_signals();
                    process::unblock_signal(own_setup.engine.signal());
                    process::ask_for_early_turns();
                    let _own = OwnThread::begin();
                    Watch::new(&own_setup, found, futex, own_waker).run(&own_stop);
                });
                if std::panic::catch_unwind(work).is_err() {
                    let text = "internal error: the safepoint watcher ended";
                    trouble.set_trouble(Some(text.into()));
                }
            });
        match thread {
            Ok(thread) => Some(StopWatcher {
                stop,
                futex,
                alarm: Alarm::start(setup, found, thread.thread().clone(), waker),
                thread,
            }),
            Err(error) => {
                let text = format!("safepoints are not recorded: cannot start a thread: {error}");
                progress.set_trouble(Some(text));
                None
            }
        }
    }

    fn end(self) {
        if let Some(alarm) = self.alarm {
            alarm.end();
        }
        self.stop.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
        // The JVM's threads that wait there check again whether they may continue.
        dwell_signal::sys::futex_wake_all_at(self.futex);
        joined::join(self.thread);
    }
}

/// A safepoint that was seen while it was being reached.
struct Seen {
    /// The JVM's data at that time.
    noted: Noted,
    /// The late threads, and when each had arrived.
    late: Vec<(Tardy, u64)>,
}

struct Watch<'s> {
    setup: &'s Setup,
    live: Live,
    found: Safepoints,
    futex: u64,
    /// Time to a safepoint below which late threads are not searched for.
    late_ns: u64,
    waker: Arc<Waker>,
    /// Whether it can sleep on the futex and on the waker at once.
    waits_for_both: bool,
    files: TaskFiles,
    /// The last safepoint that is reported.
    reported_id: u64,
    /// When threads were late last, and how long the others had to wait.
    last_late: Option<(u64, u64)>,
    lengths: Lengths,
    check_cost: CheckCost,
    /// Observation of a safepoint that is not reported yet.
    seen: Option<Seen>,
    names: FxHashMap<u32, String>,
    /// Counters of safepoints that this thread missed.
    counters: Option<Counters>,
    /// Their values at the beginning, plus all sums reported since.
    sums_before: Sums,
    reported_sums: Sums,
}

impl<'s> Watch<'s> {
    fn new(setup: &'s Setup, found: Safepoints, futex: u64, waker: Arc<Waker>) -> Watch<'s> {
        let live = setup.engine.live();
        let last = found.noted(&live).ok().flatten().unwrap_or_default();
        // A safepoint is reported when it ends. (It gets its number when all have arrived.)
        let lasts = found.state(&live) == Ok(State::Reached);
        let layout = &setup.recorder.runtime.vm().layout;
        let counters = Counters::find(&live, layout, &setup.about.version);
        Watch {
            counters,
            sums_before: counters.map_or(Sums::default(), |it| it.read(&live)),
            reported_sums: Sums::default(),
            late_ns: setup.options.late.as_nanos() as u64,
            setup,
            live,
            found,
            futex,
            waker,
            waits_for_both: true,
            files: TaskFiles::open(),
            reported_id: last.id.saturating_sub(u64::from(lasts)),
            last_late: None,
            lengths: Lengths::default(),
            check_cost: CheckCost::default(),
            seen: None,
            names: FxHashMap::default(),
        }
    }

    fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::SeqCst) {
            let cpu_ns = process::own_cpu().as_nanos() as u64;
            self.setup.stops.set_cpu_ns(cpu_ns);
            self.check_cost.add(cpu_ns);
            let woken = self.waker.count.load(Ordering::SeqCst);
            let state = self.found.state(&self.live);
            self.setup.stops.set_stopped(state != Ok(State::Running));
            match state {
                Ok(State::Reaching) => {
                    let seen = self.reach(stop);
                    self.wait_for_end(stop);
                    self.report(seen);
                }
                Ok(State::Reached) => {
                    self.wait_for_end(stop);
                    self.report(None);
                }
                Ok(State::Running) => {
                    self.report(None);
                    self.pause(woken);
                }
                Err(_) => return self.setup.stops.set_stopped(false),
            }
        }
        self.setup.stops.set_stopped(false);
        self.report(None);
    }

    /// Sleeps until the next check, or an alarm since `woken`, or, if safepoints are long, the end
    /// of one.
    fn pause(&mut self, woken: u32) {
        let now_ns = process::monotonic_ns();
        if self.lengths.are_long(now_ns) {
            self.sleep_on_both(woken, self.pace_ns());
        } else {
            let mut pace_ns = self.lengths.pace_ns(now_ns).unwrap_or(u64::MAX);
            pace_ns = pace_ns.min(self.pace_ns());
            pace_ns = pace_ns.max(self.min_pause_ns(now_ns).min(ALARMED_NS));
            let glance = &self.setup.shared;
            let is_alarmed = self.waker.is_set.load(Ordering::SeqCst);
            glance.watches(self.reported_id, pace_ns, is_alarmed);
            if pace_ns >= CALM_NS {
                pace_ns = glance.sleep_ns(now_ns, pace_ns);
            }
            std::thread::park_timeout(std::time::Duration::from_nanos(pace_ns));
        }
    }

    /// Sleeps while the futex is `value`, for a maximum of `timeout_ns`.
    fn sleep(&self, value: u32, timeout_ns: u64) {
        dwell_signal::sys::futex_wait_at(self.futex, value, timeout_ns);
    }

    /// Sleeps until there is a safepoint, or an alarm.
    fn sleep_on_both(&mut self, woken: u32, timeout_ns: u64) {
        let own = (&self.waker.count, woken);
        if self.waits_for_both {
            let both = dwell_signal::sys::futex_wait_either((self.futex, 0), own, timeout_ns);
            self.waits_for_both = both;
        } else {
            self.sleep(0, timeout_ns);
        }
    }

    /// Interval between checks for the begin of a safepoint. It is short enough to see most of the
    /// time that threads are late, within a small share of a processor.
    fn pace_ns(&self) -> u64 {
        let now_ns = process::monotonic_ns();
        let calm_ns = match self.waker.is_set.load(Ordering::SeqCst) {
            true => ALARMED_NS,
            false => CALM_NS,
        };
        match self.last_late {
            Some((at_ns, late_ns)) if now_ns < at_ns + TENSE_FOR_NS => {
                let may_ns = self.min_pause_ns(now_ns).max(TENSE_NS);
                // If one in a minute is late, hardly any check would find it.
                let seldom_ns = now_ns.saturating_sub(at_ns) / TENSE_LOOKS;
                (late_ns / 16).max(may_ns).max(seldom_ns).min(calm_ns)
            }
            _ => calm_ns,
        }
    }

    /// Minimum pause, which limits the cost of checks.
    fn min_pause_ns(&self, now_ns: u64) -> u64 {
        let is_much = |(at_ns, late_ns): (u64, u64)| {
            now_ns.saturating_sub(at_ns) < late_ns.saturating_mul(MUCH)
        };
        self.check_cost
            .min_pause_ns(self.last_late.is_some_and(is_much))
    }

    fn wait_for_end(&self, stop: &AtomicBool) {
        while self.found.state(&self.live) == Ok(State::Reached) && !stop.load(Ordering::SeqCst) {
            let tag = dwell_walker::Memory::u32(&self.live, self.futex).unwrap_or(0);
            if tag == 0 {
                return; // it is just over
            }
            self.sleep(tag, CALM_NS);
        }
    }

    /// Observes the late threads until all have arrived. Returns them, with their arrival times.
    fn reach(&mut self, stop: &AtomicBool) -> Option<Seen> {
        /// Shortest and longest pause between two observations; in between, a sixteenth of the time
        /// so far.
        const PAUSE_NS: u64 = 200_000;
        const PAUSE_MAX_NS: u64 = 10_000_000;
        let noted = self.found.noted(&self.live).ok()??;
        self.setup.stops.set_open(Some(noted.began_ns));
        let mut reach = Reach::new(noted.began_ns);
        let mut late: Vec<(u64, Late)> = Vec::new();
        let mut asked = 0;
        loop {
            let now_ns = process::monotonic_ns();
            let passed_ns = now_ns.saturating_sub(reach.began_ns);
            if passed_ns >= self.late_ns {
                late.clear();
                let layout = &self.setup.recorder.runtime.vm().layout;
                let visit = |thread, what| late.push((thread, what));
                let _ = safepoints::for_each_late(&self.live, layout, visit);
                let reaching = self.found.state(&self.live) == Ok(State::Reaching);
                let now = self.found.noted(&self.live).ok().flatten();
                let same = now.is_some_and(|it| it.began_ns == noted.began_ns);
                if !reaching || !same || stop.load(Ordering::SeqCst) {
                    break;
                }
                reach.look(now_ns, &late);
                self.ask(&mut reach, &mut asked);
            } else if self.found.state(&self.live) != Ok(State::Reaching) {
                break;
            }
            let pause_ns = (passed_ns / 16).clamp(PAUSE_NS, PAUSE_MAX_NS);
            std::thread::sleep(std::time::Duration::from_nanos(pause_ns));
        }
        let now = self.found.noted(&self.live).ok().flatten();
        let reached_ns = arrived_ns(&noted, now).unwrap_or_else(process::monotonic_ns);
        self.ask_how_it_ended(&mut reach);
        let late = reach.finish(reached_ns.max(noted.began_ns));
        Some(Seen { noted, late })
    }

    /// For a thread that got a processor and arrived at once, the kernel reports its wait only now.
    fn ask_how_it_ended(&self, reach: &mut Reach) {
        for tardy in reach.asked() {
            let record = self.record(tardy.java_thread);
            let record = record.filter(|record| tardy.who == Some(record.user()));
            let mut buf = [0u8; 512];
            if let (Some(record), Some(times)) = (record, &mut tardy.times)
                && let Some(text) = self.files.read(record.tid(), "schedstat", &mut buf)
                && let Some(now) = dwell_wall::proc::schedule(text)
            {
                times.has_waited(now.waited_ns);
            }
        }
    }

    /// Asks each late thread once for its stack, and reads its CPU time. If many are late at once
    /// it asks some of them, and the others if they are still late then.
    fn ask(&self, reach: &mut Reach, asked: &mut usize) {
        let mut now = 0;
        for tardy in reach.still_late() {
            if tardy.asked || now == ASKED_AT_ONCE || *asked == ASKED_MAX {
                continue;
            }
            if let Some(record) = self.record(tardy.java_thread) {
                tardy.asked = self.setup.engine.ask(record, Reason::Stop);
                tardy.who = Some(record.user());
                tardy.times = self.moment(record.tid()).map(Times::since);
                (now, *asked) = (now + 1, *asked + 1);
            }
        }
        for tardy in reach.still_late() {
            let last = self.record(tardy.java_thread).filter(|_| tardy.asked);
            if let (Some(record), Some(times)) = (last, &mut tardy.times)
                && let Some(now) = self.moment(record.tid())
            {
                times.until(now);
            }
        }
    }

    /// The kernel's account of a thread. It must be read now, because at the end of the safepoint
    /// the thread has run on.
    fn moment(&self, tid: i32) -> Option<Moment> {
        let mut buf = [0u8; 512];
        let schedule = self.files.read(tid, "schedstat", &mut buf);
        let schedule = schedule.and_then(dwell_wall::proc::schedule);
        let waited_ns = schedule.map_or(0, |it| it.waited_ns);
        let stat = self.files.read(tid, "stat", &mut buf);
        let is_ready = stat.and_then(dwell_wall::proc::state) != Some(b'D');
        Some(Moment {
            at_ns: process::monotonic_ns(),
            cpu_ns: cpu_ns_of(tid).ok()?,
            waited_ns,
            is_ready,
        })
    }

    fn record(&self, java_thread: u64) -> Option<&'static ThreadRecord> {
        let engine = self.setup.engine;
        engine
            .live_records()
            .find(|record| record.managed_thread() == java_thread)
    }

    /// Reports the last safepoint, if it has ended and is not reported yet.
    fn report(&mut self, seen: Option<Seen>) {
        if seen.is_some() {
            self.seen = seen;
        }
        let Some(noted) = self.ended() else { return };
        self.report_one(noted);
        self.setup.stops.set_open(None);
    }

    fn report_one(&mut self, noted: Noted) {
        let seen = self.seen.take();
        let missed = noted.id.saturating_sub(self.reported_id).saturating_sub(1);
        self.reported_id = noted.id;
        let reaching_ns = noted.reached_ns.saturating_sub(noted.began_ns);
        if reaching_ns >= self.late_ns {
            self.last_late = Some((noted.ended_ns, reaching_ns));
        }
        let operation_ns = noted.ended_ns.saturating_sub(noted.reached_ns);
        self.reported_sums.reaching_ns += reaching_ns;
        self.reported_sums.operation_ns += operation_ns;
        self.lengths
            .add(noted.ended_ns, 1, reaching_ns + operation_ns);
        // The observation may belong to the safepoint before.
        let (seen, seen_before) = match seen {
            Some(seen) if seen.noted.began_ns == noted.began_ns => (Some(seen), None),
            Some(seen) if missed == 1 => (None, Some(seen)),
            _ => (None, None),
        };
        if missed > 0 {
            self.add_missed(&noted, missed, seen_before);
        }
        let (late, named) = self.named(seen);
        let shelf = &self.setup.stops;
        shelf.add(Stop {
            id: noted.id,
            operation: self.operation(noted.operation),
            began_ns: noted.began_ns,
            reaching_ns,
            operation_ns,
            threads: u64::from(noted.threads),
            running: u64::from(noted.running),
            late,
            named,
            count: 1,
            source: NOTED,
        });
    }

    /// Adds safepoints that this thread missed, before one that it has seen. Their number and total
    /// times are known.
    fn add_missed(&mut self, next: &Noted, missed: u64, seen: Option<Seen>) {
        // The JVM counts a safepoint after it has recorded and logged its end.
        std::thread::sleep(std::time::Duration::from_nanos(COUNT_WAIT_NS));
        let sums = self.unreported().unwrap_or_default();
        self.reported_sums.reaching_ns += sums.reaching_ns;
        self.reported_sums.operation_ns += sums.operation_ns;
        let sum_ns = sums.reaching_ns + sums.operation_ns;
        self.lengths.add(next.ended_ns, missed, sum_ns);
        let first = seen.as_ref().map(|seen| seen.noted);
        let operation = first.map_or(String::new(), |it| self.operation(it.operation));
        let (late, named) = self.named(seen);
        self.setup.stops.add(Stop {
            id: next.id.saturating_sub(1),
            operation,
            began_ns: first.map_or(next.began_ns, |it| it.began_ns),
            reaching_ns: sums.reaching_ns,
            operation_ns: sums.operation_ns,
            late,
            named,
            count: missed,
            source: COUNTERS,
            ..Stop::default()
        });
    }

    /// The last safepoint, if it has ended and is not reported yet.
    fn ended(&self) -> Option<Noted> {
        for _ in 0..END_WAITS_MAX {
            let noted = self.found.noted(&self.live).ok()??;
            if noted.id == self.reported_id {
                return None;
            }
            // Three reads one after the other, also for the processor.
            fence(Ordering::Acquire);
            let state = self.found.state(&self.live).ok()?;
            fence(Ordering::Acquire);
            let again = self.found.noted(&self.live).ok()??;
            let is_over = noted.ended_ns >= noted.reached_ns.max(noted.began_ns);
            match state {
                State::Running if noted == again && is_over => return Some(noted),
                State::Running => {}
                State::Reaching if noted == again => return self.before(&noted),
                _ => return None,
            }
            std::thread::sleep(std::time::Duration::from_nanos(END_WAIT_NS));
        }
        None
    }

    /// The safepoint before the one that is being reached, if it was observed. The JVM has
    /// overwritten its times, but has the time that threads have run since, and the counted time to
    /// reach it.
    fn before(&self, noted: &Noted) -> Option<Noted> {
        let first = self.seen.as_ref()?.noted;
        let ended_ns = noted.began_ns.saturating_sub(noted.ran_ns);
        let is_one = noted.id == self.reported_id + 1;
        let is_before = (first.began_ns..noted.began_ns).contains(&ended_ns);
        let sums = self.unreported()?;
        let reached_ns = first.began_ns.saturating_add(sums.reaching_ns);
        (is_one && is_before && reached_ns <= ended_ns).then_some(Noted {
            began_ns: first.began_ns,
            operation: first.operation,
            reached_ns,
            ended_ns,
            ..*noted
        })
    }

    /// Counted times that are not reported yet.
    fn unreported(&self) -> Option<Sums> {
        let now = self.counters?.read(&self.live);
        Some(now.since(&self.sums_before).since(&self.reported_sums))
    }

    fn operation(&mut self, operation: u32) -> String {
        let (found, live) = (&self.found, &self.live);
        let name = self.names.entry(operation).or_insert_with(|| {
            let mut buf = [0; NAME_MAX];
            found.operation(live, operation, &mut buf).to_owned()
        });
        name.clone()
    }

    /// The number of late threads, and those that held the others up longest.
    fn named(&self, seen: Option<Seen>) -> (u64, Vec<LateThread>) {
        let late = seen.map_or(Vec::new(), |seen| seen.late);
        let named = late.iter().take(NAMED_MAX);
        let named = named.filter_map(|(tardy, until_ns)| self.name(tardy, *until_ns));
        (late.len() as u64, named.collect())
    }

    fn name(&self, tardy: &Tardy, until_ns: u64) -> Option<LateThread> {
        let now = || self.record(tardy.java_thread);
        let thread = match tardy.who {
            Some(who) => who,
            None => now().map(ThreadRecord::user)?,
        };
        Some(LateThread {
            thread,
            state: Self::doing(tardy),
            until_ns,
            held_ns: tardy.held_ns,
            asked: tardy.asked,
        })
    }

    /// The activity of a late thread. If its CPU clock hardly advanced, it had no processor or
    /// waited for a page.
    fn doing(tardy: &Tardy) -> &'static str {
        let why_not = tardy.times.and_then(|times| times.why_not());
        why_not.unwrap_or(match tardy.late {
            Late::InJava => "java",
            Late::InVm => "vm",
        })
    }
}

/// When all threads had arrived at the safepoint `noted`, which was observed while it was being
/// reached. `now` is the JVM's present data.
fn arrived_ns(noted: &Noted, now: Option<Noted>) -> Option<u64> {
    match now {
        Some(now) if now.began_ns == noted.began_ns && now.reached_ns != 0 => Some(now.reached_ns),
        // The next one has begun, so this one had ended. Most end soon.
        Some(now) if now.began_ns > noted.began_ns => Some(now.began_ns.saturating_sub(now.ran_ns)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

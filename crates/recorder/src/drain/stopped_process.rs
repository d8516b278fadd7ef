//! Finds the times in which the whole process was stopped: by SIGSTOP, a debugger, or the freezer
//! of a control group.
//!
//! The drainer knows how long it asked to sleep, and the kernel accounts for how long it ran and
//! how long it was ready without a processor. No time remains, whatever the drainer does. If some
//! does remain, and no other thread left a sign of work in that time, then the process was stopped.

use crate::record::batch::Batch;
use crate::sys::process;
use crate::sys::task::TaskFiles;
use dwell_wall::proc;
use std::cell::Cell;
use std::mem;
use std::time::Duration;

/// Shorter times are not reported: a page or a lock may take as long.
const REMAINING_MIN_NS: u64 = 150_000_000;
/// The longest sleep between two marks. A stop hides in the part of a sleep that it begins in.
pub const SLEEP_MAX: Duration = Duration::from_millis(50);
/// The drainer itself may also have waited for a page or a lock: that part of a remaining time may
/// have signs of other threads.
const WAITED_PART: u64 = 4;
/// The accounts are of one moment if reading them took no longer. Otherwise they are read again, up
/// to 8 times.
const READ_MAX_NS: u64 = 5_000_000;
const READS_MAX: u32 = 8;
/// Reading the process's CPU time may take this part of the time. The kernel adds up all threads
/// for it, which takes 1 ms for 10,000.
const CPU_PART: u64 = 500;
/// Enough of `/proc/self/task/TID/schedstat`.
const TEXT_BYTES: usize = 64;

/// Accounts at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// On the monotonic clock.
    now_ns: u64,
    /// CPU time of the process.
    cpu: Read,
    /// CPU time of this thread.
    ran_ns: u64,
    /// How long this thread has waited for a processor, in all.
    ready_ns: u64,
}

/// The process's CPU time, and when it was read.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    at_ns: u64,
    cpu_ns: u64,
    /// It is not read again before then.
    not_before_ns: u64,
}

/// The source of accounts.
pub trait Accounts {
    /// The monotonic clock.
    fn now_ns(&self) -> u64;
    /// The accounts now; `None` if the kernel does not report how long threads wait for CPUs. The
    /// process's CPU time may be from an earlier moment, unless `all`.
    fn moment(&self, all: bool) -> Option<Moment>;
}

/// The kernel's accounts of the thread that opened them.
pub struct OwnAccounts {
    files: TaskFiles,
    tid: i32,
    cpu: Cell<Read>,
}

impl OwnAccounts {
    /// Those of the calling thread.
    #[must_use]
    pub fn open() -> OwnAccounts {
        OwnAccounts {
            files: TaskFiles::open(),
            tid: process::own_tid(),
            cpu: Cell::default(),
        }
    }

    fn read(&self, all: bool) -> Option<Moment> {
        let mut buffer = [0; TEXT_BYTES];
        let text = self.files.read(self.tid, "schedstat", &mut buffer)?;
        Some(Moment {
            ready_ns: proc::schedule(text)?.waited_ns,
            cpu: self.cpu(all),
            ran_ns: process::own_cpu().as_nanos() as u64,
            now_ns: process::monotonic_ns(),
        })
    }

    fn cpu(&self, all: bool) -> Read {
        let (at_ns, before) = (process::monotonic_ns(), self.cpu.get());
        if all || at_ns >= before.not_before_ns {
            let ran = process::own_cpu();
            let cpu_ns = process::process_cpu().as_nanos() as u64;
            let took_ns = process::own_cpu().saturating_sub(ran).as_nanos() as u64;
            self.cpu.set(Read {
                at_ns,
                cpu_ns,
                not_before_ns: at_ns + CPU_PART * took_ns,
            });
        }
        self.cpu.get()
    }
}

impl Accounts for OwnAccounts {
    fn now_ns(&self) -> u64 {
        process::monotonic_ns()
    }

    fn moment(&self, all: bool) -> Option<Moment> {
        let mut last = None;
        for _ in 0..READS_MAX {
            let began_ns = process::monotonic_ns();
            last = self.read(all);
            if last.is_none_or(|it| it.now_ns - began_ns < READ_MAX_NS) {
                break;
            }
        }
        last
    }
}

/// A time in which the process was stopped, on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedTime {
    /// It was stopped by then.
    pub since_ns: u64,
    /// It went on then, or a little before.
    pub until_ns: u64,
}

/// A time between two marks, of which a part remains unexplained.
#[derive(Clone, Copy, Debug)]
struct Suspect {
    from_ns: u64,
    to_ns: u64,
    remaining_ns: u64,
    /// How long the drainer was ready: it had to wait for a processor when the stop was over.
    ready_ns: u64,
    /// It was in a call that may take any time.
    in_call: bool,
}

impl Suspect {
    /// The longest time without a sign. Shorter ones than a slice are not found.
    fn longest_free(&self, signs: impl Iterator<Item = u64>) -> (u64, u64) {
        const SLICES: usize = 64;
        let slice_ns = (self.to_ns - self.from_ns) / SLICES as u64 + 1;
        // The first and the last sign of each.
        let mut slices = [(u64::MAX, 0); SLICES];
        for at_ns in signs.filter(|at_ns| *at_ns < self.to_ns) {
            let place = at_ns.checked_sub(self.from_ns).map(|it| it / slice_ns);
            if let Some((first_ns, last_ns)) = place.and_then(|it| slices.get_mut(it as usize)) {
                *first_ns = at_ns.min(*first_ns);
                *last_ns = at_ns.max(*last_ns);
            }
        }
        let signs = slices.into_iter().filter(|(_, last_ns)| *last_ns > 0);
        let (mut free, mut since_ns) = ((self.from_ns, self.from_ns), self.from_ns);
        for (first_ns, last_ns) in signs.chain([(self.to_ns, self.to_ns)]) {
            if first_ns - since_ns > free.1 - free.0 {
                free = (since_ns, first_ns);
            }
            since_ns = last_ns;
        }
        free
    }

    /// The time in which the process was stopped, if the signs of its threads leave room for it.
    fn settle(&self, signs: impl Iterator<Item = u64>) -> Option<StoppedTime> {
        let (from_ns, to_ns) = self.longest_free(signs);
        let free_ns = to_ns - from_ns;
        let waited_ns = self.remaining_ns.saturating_sub(free_ns);
        if waited_ns > self.remaining_ns / WAITED_PART {
            return None;
        }
        let stopped_ns = self.remaining_ns.min(free_ns);
        let resumed_ns = self.to_ns.saturating_sub(self.ready_ns);
        let until_ns = resumed_ns.clamp(from_ns + stopped_ns, to_ns);
        Some(StoppedTime {
            since_ns: until_ns - stopped_ns,
            until_ns,
        })
    }
}

/// Follows the thread that made it, from mark to mark.
pub struct StoppedProcess<A> {
    accounts: A,
    /// How many processors the process can use.
    processors: u64,
    before: Option<Moment>,
    /// How long it has slept since then, as it asked to.
    slept_ns: u64,
    /// The last mark.
    marked_ns: u64,
    /// Samples that had found no slot when stops were last taken.
    unslotted: u64,
    suspects: Vec<Suspect>,
}

impl<A: Accounts> StoppedProcess<A> {
    /// Nothing has been marked before now.
    pub fn new(accounts: A, processors: usize) -> StoppedProcess<A> {
        let mut process = StoppedProcess {
            accounts,
            processors: processors as u64,
            before: None,
            slept_ns: 0,
            marked_ns: 0,
            unslotted: 0,
            suspects: Vec::new(),
        };
        process.mark_exactly();
        process
    }

    /// The thread works: it has not slept since the last mark.
    pub fn mark(&mut self) {
        self.mark_after(Duration::ZERO);
    }

    /// It works, and begins an account with exact figures. This reads a file.
    pub fn mark_exactly(&mut self) {
        self.end_account(Duration::ZERO, false);
    }

    /// It has slept since the last mark, for at most `sleep`.
    pub fn mark_after(&mut self, sleep: Duration) {
        // Usually no file needs to be read.
        let now_ns = self.accounts.now_ns();
        match self.awake_ns(now_ns, sleep) < REMAINING_MIN_NS && !self.is_old(now_ns, sleep) {
            true => self.pass(now_ns, sleep),
            false => self.end_account(sleep, false),
        }
    }

    /// Whether the account is of so much work that its many short waits could look like a stop.
    fn is_old(&self, now_ns: u64, sleep: Duration) -> bool {
        let Some(before) = &self.before else {
            return false;
        };
        let until_mark_ns = self.marked_ns.saturating_sub(before.now_ns);
        let awake_ns = until_mark_ns.saturating_sub(self.slept_ns) + self.awake_ns(now_ns, sleep);
        awake_ns >= REMAINING_MIN_NS
    }

    /// Since the last mark it was in a call that may take any time, such as a write to a slow disk.
    pub fn mark_after_call(&mut self) {
        let now_ns = self.accounts.now_ns();
        match self.awake_ns(now_ns, Duration::ZERO) < REMAINING_MIN_NS {
            true => self.pass(now_ns, Duration::ZERO),
            false => self.end_account(Duration::ZERO, true),
        }
    }

    /// The time since the last mark that it did not ask to sleep.
    fn awake_ns(&self, now_ns: u64, sleep: Duration) -> u64 {
        let asked_ns = u64::try_from(sleep.as_nanos()).unwrap_or(u64::MAX);
        let passed_ns = now_ns.saturating_sub(self.marked_ns);
        passed_ns.saturating_sub(asked_ns)
    }

    fn pass(&mut self, now_ns: u64, sleep: Duration) {
        let passed_ns = now_ns.saturating_sub(self.marked_ns);
        self.slept_ns += passed_ns - self.awake_ns(now_ns, sleep);
        self.marked_ns = now_ns;
    }

    /// Checks the account and begins the next one at the same moment: no time is between them.
    fn end_account(&mut self, sleep: Duration, in_call: bool) {
        let is_long = self.awake_ns(self.accounts.now_ns(), sleep) >= REMAINING_MIN_NS;
        let after = self.accounts.moment(is_long);
        let now_ns = after.map_or_else(|| self.accounts.now_ns(), |it| it.now_ns);
        let (from_ns, most_ns) = (self.marked_ns, self.awake_ns(now_ns, sleep));
        self.pass(now_ns, sleep);
        if most_ns >= REMAINING_MIN_NS
            && let (Some(before), Some(after)) = (&self.before, &after)
        {
            let suspect = self.remaining(before, after, from_ns);
            self.suspects.extend(suspect.map(|it| Suspect {
                remaining_ns: it.remaining_ns.min(most_ns),
                in_call,
                ..it
            }));
        }
        self.before = after;
        self.slept_ns = 0;
    }

    /// The time that remains unexplained between two moments. The last mark before the second one
    /// was at `from_ns`.
    fn remaining(&self, before: &Moment, after: &Moment, from_ns: u64) -> Option<Suspect> {
        let passed_ns = after.now_ns.saturating_sub(before.now_ns);
        let ran_ns = after.ran_ns.saturating_sub(before.ran_ns);
        let ready_ns = after.ready_ns.saturating_sub(before.ready_ns);
        let explained_ns = (self.slept_ns)
            .saturating_add(ran_ns)
            .saturating_add(ready_ns);
        let remaining_ns = passed_ns.saturating_sub(explained_ns);
        // The other threads may have run before the stop and after it, on all processors.
        let others_ns = (after.cpu.cpu_ns.saturating_sub(before.cpu.cpu_ns)).saturating_sub(ran_ns);
        let read_ns = after.cpu.at_ns.saturating_sub(before.cpu.at_ns);
        let outside_ns = read_ns
            .saturating_sub(remaining_ns)
            .saturating_mul(self.processors);
        let inside_ns = others_ns.saturating_sub(outside_ns);
        let is_idle = inside_ns < remaining_ns / WAITED_PART;
        (remaining_ns >= REMAINING_MIN_NS && is_idle).then_some(Suspect {
            from_ns,
            to_ns: after.now_ns,
            remaining_ns,
            ready_ns,
            in_call: false,
        })
    }

    /// Takes the times in which the process was stopped. `batch` has the samples that were drained
    /// since the last mark; `unslotted` counts the samples that found no slot since the start.
    pub fn take(&mut self, batch: &Batch, unslotted: u64) -> Vec<StoppedTime> {
        // Threads that ran while all slots were full have left no sign.
        let is_complete = mem::replace(&mut self.unslotted, unslotted) == unslotted;
        let samples = batch.samples().iter().map(|it| it.time_ns);
        let allocations = batch.allocations().iter().map(|it| it.time_ns);
        let ticks = batch.ticks().iter().map(|it| it.at_ns);
        let signs = samples.chain(allocations).chain(ticks);
        // After a long call, only ticks that are missing show that the process was stopped.
        let is_sure = |it: &Suspect| is_complete && (!it.in_call || !batch.ticks().is_empty());
        let suspects = self.suspects.drain(..).filter(is_sure);
        suspects.filter_map(|it| it.settle(signs.clone())).collect()
    }
}

#[cfg(test)]
#[path = "stopped_process_tests.rs"]
mod tests;

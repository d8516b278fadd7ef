//! Data from `/proc` about a process: the truth from outside.

use std::collections::BTreeMap;
use std::fs;

/// CPU time of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTime {
    /// In user mode.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
}

impl CpuTime {
    /// Both.
    #[must_use]
    pub fn total_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }
}

/// CPU time of a process and its threads, ended ones included; exact to a hundredth of a second.
#[must_use]
pub fn cpu_time(pid: u32) -> CpuTime {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process lives");
    let (_, rest) = stat.rsplit_once(')').expect("a name in brackets");
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    let ns = |field: &str| field.parse::<u64>().expect("ticks") * tick_ns;
    CpuTime {
        user_ns: ns(fields[11]),
        system_ns: ns(fields[12]),
    }
}

/// CPU time of each thread in ns.
#[must_use]
pub fn thread_cpu(pid: u32) -> BTreeMap<u32, u64> {
    let read = |tid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    tids(pid)
        .into_iter()
        .filter_map(|tid| Some((tid, read(tid)?)))
        .collect()
}

/// How long the threads of this name have been ready without a processor, in ns.
#[must_use]
pub fn waited_ns(pid: u32, name: &str) -> u64 {
    let read = |tid: u32, file: &str| fs::read_to_string(format!("/proc/{pid}/task/{tid}/{file}"));
    let is_it = |tid: &u32| read(*tid, "comm").is_ok_and(|its| its.trim_end() == name);
    let waited = |tid: u32| -> Option<u64> {
        let text = read(tid, "schedstat").ok()?;
        text.split_whitespace().nth(1)?.parse().ok()
    };
    let tids = tids(pid).into_iter().filter(is_it);
    tids.filter_map(waited).sum()
}

/// Time that the hypervisor has stolen from all processors since the machine started, in ns.
#[must_use]
pub fn stolen_ns() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    let all = stat.lines().next().unwrap_or_default();
    let ticks = all
        .split_whitespace()
        .nth(8)
        .and_then(|text| text.parse::<u64>().ok());
    ticks.unwrap_or(0) * tick_ns
}

/// Names of the threads.
#[must_use]
pub fn task_names(pid: u32) -> Vec<String> {
    let read = |tid| fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).ok();
    let mut names: Vec<String> = tids(pid)
        .into_iter()
        .filter_map(read)
        .map(|name| name.trim_end().to_owned())
        .collect();
    names.sort();
    names
}

fn tids(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The targets of the file descriptors, sorted.
#[must_use]
pub fn fd_targets(pid: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let mut targets: Vec<String> = entries
        .filter_map(|entry| {
            Some(
                fs::read_link(entry.path())
                    .ok()?
                    .to_string_lossy()
                    .into_owned(),
            )
        })
        .collect();
    targets.sort();
    targets
}

/// Whether this machine lets us use perf events; else only timers can be tested.
#[must_use]
pub fn perf_is_permitted() -> bool {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let level: i32 = level.trim().parse().unwrap_or(i32::MAX);
    level <= 2 || rustix::process::geteuid().is_root() && level != i32::MAX
}

//! Facts about the own process and thread: ids, CPU clocks, names.

use dwell_host::small_files;
use std::time::Duration;

/// CPU time of a clock; zero if it cannot be read.
fn clock(id: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: time is a valid place for the result.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The processor that the calling thread is on.
#[must_use]
pub fn own_processor() -> i32 {
    // SAFETY: no preconditions.
    unsafe { libc::sched_getcpu() }
}

/// CPU time of the whole process, including threads that have ended.
#[must_use]
pub fn process_cpu() -> Duration {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the calling thread.
#[must_use]
pub fn own_cpu() -> Duration {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Now on the monotonic clock, in ns.
#[must_use]
pub fn monotonic_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC).as_nanos() as u64
}

/// Now since the epoch, in ns.
#[must_use]
pub fn epoch_ns() -> u64 {
    clock(libc::CLOCK_REALTIME).as_nanos() as u64
}

/// User and system CPU time of the process.
#[must_use]
pub fn cpu_split() -> (Duration, Duration) {
    // SAFETY: zeroed is a valid rusage, which getrusage fills.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: usage is a valid place for the result.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let of = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    (of(usage.ru_utime), of(usage.ru_stime))
}

/// Local time as `YYYYMMDD-hhmmss`, for file names.
#[must_use]
pub fn timestamp() -> String {
    let now = (epoch_ns() / 1_000_000_000) as libc::time_t;
    // SAFETY: zeroed is a valid tm, which localtime_r fills.
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid for the call.
    unsafe { libc::localtime_r(&raw const now, &raw mut tm) };
    let (year, month, day) = (tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
    format!(
        "{year:04}{month:02}{day:02}-{:02}{:02}{:02}",
        tm.tm_hour, tm.tm_min, tm.tm_sec
    )
}

/// The user of this process.
#[must_use]
pub fn user() -> u32 {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether this process has the rights of root.
#[must_use]
pub fn is_root() -> bool {
    user() == 0
}

/// Kernel id of the calling thread.
#[must_use]
pub fn own_tid() -> i32 {
    // SAFETY: gettid takes nothing and cannot fail.
    unsafe { libc::gettid() }
}

/// Time between two ticks of the kernel, at which timers on CPU clocks fire: the resolution of its
/// coarse clocks (clock_getres(2)).
#[must_use]
pub fn kernel_tick() -> Duration {
    /// 100 Hz, the slowest there is.
    const SLOWEST: Duration = Duration::from_millis(10);
    let mut tick = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: tick is a valid place for the result.
    let answer = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut tick) };
    let ns = u64::try_from(tick.tv_nsec).unwrap_or(0);
    match answer == 0 && tick.tv_sec == 0 && ns > 0 {
        true => Duration::from_nanos(ns),
        false => SLOWEST,
    }
}

/// Blocks every signal but faults in the calling thread: the drainer must not run the
/// application's handlers.
pub fn block_signals() {
    // SAFETY: zeroed is a valid sigset; the calls only write to it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        for signal in [
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGFPE,
            libc::SIGILL,
            libc::SIGTRAP,
        ] {
            libc::sigdelset(&raw mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Asks the scheduler for short but early turns for the calling thread. From Linux 6.12 on, a
/// thread with a shorter slice gets a processor sooner, not more of it
/// (Documentation/scheduler/sched-eevdf.rst). Earlier kernels, and sandboxes without that call,
/// leave everything as it is.
pub fn ask_for_early_turns() {
    /// The shortest that the kernel grants is 0.1 ms.
    const SLICE_NS: u64 = 200_000;
    let size = size_of::<libc::sched_attr>();
    // SAFETY: zeroed is a valid sched_attr; the first call writes at most `size` bytes to it, the
    // second only reads it, and both are about the calling thread alone.
    unsafe {
        let mut attr: libc::sched_attr = std::mem::zeroed();
        let got = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, size, 0);
        // Real-time policies mean something else by it.
        if got == 0 && attr.sched_policy == libc::SCHED_OTHER as u32 {
            attr.sched_runtime = SLICE_NS;
            libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0);
        }
    }
}

/// Lets one signal through in the calling thread.
pub fn unblock_signal(signal: i32) {
    // SAFETY: zeroed is a valid sigset; the calls only write to it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// The kernel's name for a thread of this process; empty if it has exited.
#[must_use]
pub fn thread_comm(tid: i32) -> String {
    if tid == own_tid() {
        return own_comm();
    }
    let path = format!("/proc/self/task/{tid}/comm");
    let bytes = small_files::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes)
        .trim_end_matches('\n')
        .to_owned()
}

/// The calling thread's: a thread that begins has no time for files.
fn own_comm() -> String {
    /// With the NUL at its end (prctl(2)).
    const COMM_BYTES: usize = 16;
    let mut name = [0u8; COMM_BYTES];
    // SAFETY: the kernel writes at most so many bytes into a local that outlives the call.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let name = name.split(|byte| *byte == 0).next();
    String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
}

/// Kernel ids of all threads of this process.
#[must_use]
pub fn thread_ids() -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let id = |e: std::fs::DirEntry| e.file_name().to_str().and_then(|n| n.parse().ok());
    entries.flatten().filter_map(id).collect()
}

/// When this process was started, in ms since the epoch; 0 if unknown.
#[must_use]
pub fn start_epoch_ms() -> u64 {
    // proc(5): field 22 of stat is the start in clock ticks since boot; the command, in
    // parentheses, may itself hold blanks and parentheses.
    let stat = small_files::read_text("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 = fields
        .split_whitespace()
        .nth(19)
        .and_then(|t| t.parse().ok())
        .unwrap_or(0);
    // SAFETY: sysconf only reads.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    let boot_ms =
        (epoch_ns() / 1_000_000).saturating_sub(clock(libc::CLOCK_BOOTTIME).as_millis() as u64);
    boot_ms + ticks * 1000 / per_second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_ticks_a_hundred_to_a_thousand_times_a_second() {
        let tick = kernel_tick();
        let (least, most) = (Duration::from_micros(999), Duration::from_micros(10_001));
        assert!(tick > least && tick < most, "{tick:?}");
    }

    #[test]
    fn own_name_is_the_one_in_the_files() {
        let thread = std::thread::Builder::new().name("sixteen-and-more-letters".into());
        let both = || {
            let path = format!("/proc/self/task/{}/comm", own_tid());
            (
                thread_comm(own_tid()),
                std::fs::read_to_string(path).unwrap(),
            )
        };
        let (own, file) = thread.spawn(both).unwrap().join().unwrap();
        assert_eq!(own, file.trim_end());
        assert_eq!(own.len(), 15);
        assert_eq!(thread_comm(-1), "");
    }
}

//! The system calls this crate makes, raw: they set no `errno` and touch no thread-local storage.
//!
//! `rt_sigaction` is called directly because libjsig may stand in front of libc's. With libjsig
//! our fault handler would come after HotSpot's, which may treat our faults as stack overflows.

use crate::arch;
use core::mem::{MaybeUninit, size_of};
use core::sync::atomic::AtomicU32;

/// The kernel's error, as in `errno(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl core::fmt::Display for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "errno {}", self.0)
    }
}

impl core::error::Error for Errno {}

#[inline]
pub(crate) fn check(result: isize) -> Result<usize, Errno> {
    if (-4095..0).contains(&result) {
        return Err(Errno(result.wrapping_neg() as i32));
    }
    Ok(result as usize)
}

#[inline]
fn clock(id: i32) -> Result<u64, Errno> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    let args = [id as usize, time.as_mut_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: clock_gettime writes one timespec to the pointer, which is ours.
    check(unsafe { arch::syscall(libc::SYS_clock_gettime, args) })?;
    // SAFETY: the call succeeded, so the kernel has written both fields.
    Ok(nanoseconds(unsafe { time.assume_init_ref() }))
}

#[inline]
fn nanoseconds(time: &libc::timespec) -> u64 {
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

/// `CLOCK_MONOTONIC` in nanoseconds, through the vDSO.
// Not inlined: the call of libc's function stays in one place that `handler-graph` can follow.
#[inline(never)]
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one timespec to memory of ours; both C libraries' function is safe in signal
    // handlers (POSIX lists it) and cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    nanoseconds(&time)
}

/// CPU time used by the calling thread.
#[inline]
pub fn own_cpu_ns() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// The id of the CPU-time clock of thread `tid` of this process: the kernel's encoding of
/// "per thread" (4) and "scheduler time" (2).
#[inline]
pub fn cpu_clock_of(tid: i32) -> i32 {
    (!tid).wrapping_shl(3) | 6
}

/// CPU time used by thread `tid` of this process.
///
/// # Errors
/// The kernel's error; `EINVAL` when there is no such thread (any more).
pub fn cpu_ns_of(tid: i32) -> Result<u64, Errno> {
    clock(cpu_clock_of(tid))
}

/// The calling thread's id.
#[inline]
pub fn gettid() -> i32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { arch::syscall(libc::SYS_gettid, [0; 6]) as i32 }
}

/// The process's id.
pub fn getpid() -> i32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { arch::syscall(libc::SYS_getpid, [0; 6]) as i32 }
}

/// Lets the kernel copy `len` bytes of this process from `src` to `dst`; returns how many it could
/// read. No signal is raised. The kernel may refuse (seccomp): then it is 0.
///
/// # Safety
/// `dst` must be valid for writes of `len` bytes that no other thread accesses.
pub unsafe fn copy_by_kernel(dst: *mut u8, src: u64, len: usize) -> usize {
    /// The smallest page of any processor: a limit for the number of calls.
    const PAGE_MIN: usize = 4096;
    let pid = getpid();
    let mut done = 0;
    // The kernel may stop at the end of a page.
    for _ in 0..=(len / PAGE_MIN).wrapping_add(1) {
        if done >= len {
            break;
        }
        let left = len.wrapping_sub(done);
        let local = [(dst as usize).wrapping_add(done), left];
        let remote = [(src as usize).wrapping_add(done), left];
        let args = [
            pid as usize,
            local.as_ptr() as usize,
            1,
            remote.as_ptr() as usize,
            1,
            0,
        ];
        // SAFETY: both lists are structures of address and length (process_vm_readv(2)), and the
        // destination is the caller's promise.
        let copied = unsafe { arch::syscall(libc::SYS_process_vm_readv, args) };
        match usize::try_from(copied) {
            Ok(copied) if (1..=left).contains(&copied) => done = done.wrapping_add(copied),
            _ => break,
        }
    }
    done
}

/// Bytes of a page: 4096 on x86-64; 4, 16 or 64 KiB on other processors. Not in a handler.
#[must_use]
pub fn page_bytes() -> usize {
    // SAFETY: takes a number; the kernel passes this one to every program.
    unsafe { libc::getauxval(libc::AT_PAGESZ) as usize }
}

/// Lets other threads run.
pub fn sched_yield() {
    // SAFETY: no arguments, no memory.
    unsafe { arch::syscall(libc::SYS_sched_yield, [0; 6]) };
}

/// Sleeps while `word` is `expected`, at most `timeout_ns`. May return for no reason.
#[inline]
pub fn futex_wait(word: &AtomicU32, expected: u32, timeout_ns: u64) {
    let timeout = libc::timespec {
        tv_sec: (timeout_ns / 1_000_000_000) as i64,
        tv_nsec: (timeout_ns % 1_000_000_000) as i64,
    };
    let operation = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    let pointer = (&raw const timeout) as usize;
    let args = [
        word.as_ptr() as usize,
        operation,
        expected as usize,
        pointer,
        0,
        0,
    ];
    // SAFETY: the kernel reads the word and one timespec; both outlive the call.
    unsafe { arch::syscall(libc::SYS_futex, args) };
}

/// Sleeps while the 32-bit word at `addr`, which may be in any memory, is `expected`, at most
/// `timeout_ns`. May return for no reason; does so at once if there is no such word.
pub fn futex_wait_at(addr: u64, expected: u32, timeout_ns: u64) {
    let timeout = libc::timespec {
        tv_sec: (timeout_ns / 1_000_000_000) as i64,
        tv_nsec: (timeout_ns % 1_000_000_000) as i64,
    };
    let operation = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    let pointer = (&raw const timeout) as usize;
    let args = [addr as usize, operation, expected as usize, pointer, 0, 0];
    // SAFETY: the kernel reads the word, and says EFAULT where none is; it reads one timespec,
    // which outlives the call.
    unsafe { arch::syscall(libc::SYS_futex, args) };
}

/// Sleeps while the word at `addr`, which may be in any memory, is `expected`, and `own` is still
/// `own_expected`, at most `timeout_ns`. May return for no reason. False if the kernel has no such
/// call (Linux 5.16 was the first), or it is forbidden.
pub fn futex_wait_either(
    (addr, expected): (u64, u32),
    (own, own_expected): (&AtomicU32, u32),
    timeout_ns: u64,
) -> bool {
    /// `struct futex_waitv`.
    #[repr(C)]
    struct Waiter {
        value: u64,
        addr: u64,
        flags: u32,
        reserved: u32,
    }
    const SIZE_U32: u32 = 2;
    let waiter = |addr: u64, value: u32| Waiter {
        value: u64::from(value),
        addr,
        flags: SIZE_U32 | libc::FUTEX_PRIVATE_FLAG as u32,
        reserved: 0,
    };
    let own_addr = own.as_ptr() as u64;
    let waiters = [waiter(addr, expected), waiter(own_addr, own_expected)];
    // A moment, not a time.
    let until_ns = monotonic_ns().saturating_add(timeout_ns);
    let until = libc::timespec {
        tv_sec: (until_ns / 1_000_000_000) as i64,
        tv_nsec: (until_ns % 1_000_000_000) as i64,
    };
    let args = [
        waiters.as_ptr() as usize,
        waiters.len(),
        0,
        (&raw const until) as usize,
        libc::CLOCK_MONOTONIC as usize,
        0,
    ];
    // SAFETY: the kernel reads two structures of its layout and a timespec, which outlive the call;
    // it reads both words, and says EFAULT where none is.
    let answer = check(unsafe { arch::syscall(libc::SYS_futex_waitv, args) });
    !matches!(
        answer,
        Err(Errno(libc::ENOSYS | libc::EPERM | libc::EINVAL))
    )
}

/// Wakes all threads that sleep on the word at `addr`; they must tolerate waking for no reason.
pub fn futex_wake_all_at(addr: u64) {
    let operation = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    let all = i32::MAX as usize;
    // SAFETY: the kernel uses the address as a key only.
    unsafe { arch::syscall(libc::SYS_futex, [addr as usize, operation, all, 0, 0, 0]) };
}

/// Wakes one thread that sleeps on `word`.
#[inline]
pub fn futex_wake(word: &AtomicU32) {
    let operation = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: the kernel uses the address as a key only.
    unsafe {
        arch::syscall(
            libc::SYS_futex,
            [word.as_ptr() as usize, operation, 1, 0, 0, 0],
        )
    };
}

/// Zeroed memory from the kernel; pages cost nothing until touched.
///
/// # Errors
/// The kernel's error.
pub fn map_zeroed(len: usize) -> Result<*mut u8, Errno> {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as usize;
    // SAFETY: a new anonymous mapping at a place of the kernel's choice touches no existing memory.
    check(unsafe { arch::syscall(libc::SYS_mmap, [0, len, prot, flags, usize::MAX, 0]) })
        .map(|addr| addr as *mut u8)
}

/// Maps `len` bytes of `fd`, shared, readable and writable.
///
/// # Errors
/// The kernel's error.
pub fn map_fd(fd: i32, len: usize) -> Result<*mut u8, Errno> {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = libc::MAP_SHARED as usize;
    // SAFETY: a new mapping at a place of the kernel's choice touches no existing memory.
    check(unsafe { arch::syscall(libc::SYS_mmap, [0, len, prot, flags, fd as usize, 0]) })
        .map(|addr| addr as *mut u8)
}

/// Removes a mapping.
///
/// # Safety
/// No code may use the range any more.
pub unsafe fn unmap(addr: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { arch::syscall(libc::SYS_munmap, [addr as usize, len, 0, 0, 0, 0]) };
}

/// Gives pages of an anonymous mapping back; they stay mapped, and read as zeroes.
///
/// # Safety
/// Nothing may need what is in the range, which must be of whole pages.
pub unsafe fn give_back(addr: usize, len: usize) {
    let advice = libc::MADV_DONTNEED as usize;
    // SAFETY: the caller's promise. A failure keeps the pages.
    unsafe { arch::syscall(libc::SYS_madvise, [addr, len, advice, 0, 0, 0]) };
}

/// Closes a file descriptor.
pub fn close(fd: i32) {
    // SAFETY: takes no memory; the descriptor is one this crate opened.
    unsafe { arch::syscall(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// `ioctl` whose argument is a number.
///
/// # Errors
/// The kernel's error.
#[inline]
pub fn ioctl_value(fd: i32, request: u64, value: usize) -> Result<usize, Errno> {
    // SAFETY: the perf requests this crate passes here take a plain number.
    check(unsafe {
        arch::syscall(
            libc::SYS_ioctl,
            [fd as usize, request as usize, value, 0, 0, 0],
        )
    })
}

/// `ioctl` whose argument is a pointer to a 64-bit number that the kernel reads.
///
/// # Errors
/// The kernel's error.
#[inline]
pub fn ioctl_u64(fd: i32, request: u64, value: u64) -> Result<usize, Errno> {
    let pointer = (&raw const value) as usize;
    // SAFETY: the kernel reads 8 bytes from a local that outlives the call.
    check(unsafe {
        arch::syscall(
            libc::SYS_ioctl,
            [fd as usize, request as usize, pointer, 0, 0, 0],
        )
    })
}

/// Reads a 64-bit number: a perf event's count.
///
/// # Errors
/// The kernel's error.
pub fn read_u64(fd: i32) -> Result<u64, Errno> {
    let mut value: u64 = 0;
    let pointer = (&raw mut value) as usize;
    // SAFETY: the kernel writes 8 bytes at most to a local that outlives the call.
    check(unsafe { arch::syscall(libc::SYS_read, [fd as usize, pointer, 8, 0, 0, 0]) })?;
    Ok(value)
}

/// `fcntl` with a plain number.
///
/// # Errors
/// The kernel's error.
pub fn fcntl(fd: i32, command: i32, value: usize) -> Result<usize, Errno> {
    // SAFETY: the commands this crate passes take a number or a pointer it owns (F_SETOWN_EX).
    check(unsafe {
        arch::syscall(
            libc::SYS_fcntl,
            [fd as usize, command as usize, value, 0, 0, 0],
        )
    })
}

/// A signal's action as the kernel keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct KernelAction {
    /// Address of the handler, or `SIG_DFL`/`SIG_IGN`.
    pub handler: usize,
    /// `SA_*` bits.
    pub flags: u64,
    /// The code that returns from the signal frame.
    pub restorer: usize,
    /// Signals blocked while the handler runs.
    pub mask: u64,
}

/// The kernel's flag for "there is a restorer"; libc hides it.
pub const SA_RESTORER: u64 = 0x0400_0000;

impl KernelAction {
    /// The same action, whose signal frame ends as that of `previous` does. Only with
    /// [`SA_RESTORER`] has the kernel set the restorer; otherwise the field has any value, and the
    /// frame ends in the processor's `own` code, if the kernel needs one at all.
    pub(crate) fn returning_as(self, previous: &KernelAction, own: Option<usize>) -> KernelAction {
        let has_one = previous.flags & SA_RESTORER != 0 && previous.restorer != 0;
        let known = if has_one {
            Some(previous.restorer)
        } else {
            own
        };
        let flag = if known.is_some() { SA_RESTORER } else { 0 };
        KernelAction {
            flags: (self.flags & !SA_RESTORER) | flag,
            restorer: known.unwrap_or(0),
            ..self
        }
    }
}

/// Asks for, and with `new` replaces, the action of `signal`.
///
/// # Errors
/// The kernel's error: no such signal.
pub fn sigaction(signal: i32, new: Option<&KernelAction>) -> Result<KernelAction, Errno> {
    let mut old = KernelAction::default();
    let new = new.map_or(0, |action| action as *const KernelAction as usize);
    let args = [
        signal as usize,
        new,
        (&raw mut old) as usize,
        size_of::<u64>(),
        0,
        0,
    ];
    // SAFETY: both structures have the kernel's layout and outlive the call.
    check(unsafe { arch::syscall(libc::SYS_rt_sigaction, args) })?;
    Ok(old)
}

/// The bit of `signal` in a kernel signal set.
#[inline]
pub const fn signal_bit(signal: i32) -> u64 {
    1u64.wrapping_shl((signal as u32).wrapping_sub(1))
}

/// SIGSEGV and SIGBUS: the signals of a load that fails.
pub const FAULT_SIGNALS: u64 = signal_bit(libc::SIGSEGV) | signal_bit(libc::SIGBUS);

/// Unblocks `set` for the calling thread.
#[inline]
pub fn unblock(set: u64) {
    let args = [
        libc::SIG_UNBLOCK as usize,
        (&raw const set) as usize,
        0,
        size_of::<u64>(),
        0,
        0,
    ];
    // SAFETY: the kernel reads 8 bytes from a local that outlives the call.
    unsafe { arch::syscall(libc::SYS_rt_sigprocmask, args) };
}

/// The parts of a `siginfo_t` this crate reads, where the kernel puts them.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct SignalInfo {
    /// The signal.
    pub signo: i32,
    /// Unused.
    pub errno: i32,
    /// The sender and the reason.
    pub code: i32,
    pad: i32,
    /// `si_band`, or pid and uid, or timer id and overrun.
    pub first: u64,
    /// `si_fd`, or `si_value`.
    pub second: u64,
    rest: [u64; 12],
}

const _: () = assert!(size_of::<SignalInfo>() == size_of::<libc::siginfo_t>());

/// Queues `signal` with `value` to thread `tid` of this process.
///
/// # Errors
/// The kernel's error, such as `EAGAIN` when the queue of pending signals is full.
pub fn queue_signal(tid: i32, signal: i32, value: u64) -> Result<(), Errno> {
    let info = SignalInfo {
        signo: signal,
        errno: 0,
        code: libc::SI_QUEUE,
        pad: 0,
        first: 0,
        second: value,
        rest: [0; 12],
    };
    let args = [
        getpid() as usize,
        tid as usize,
        signal as usize,
        (&raw const info) as usize,
        0,
        0,
    ];
    // SAFETY: the kernel reads one siginfo_t, whose size the assertion above pins.
    check(unsafe { arch::syscall(libc::SYS_rt_tgsigqueueinfo, args) }).map(|_| ())
}

/// Sends `signal` to the calling thread.
pub fn raise(signal: i32) {
    let args = [
        getpid() as usize,
        gettid() as usize,
        signal as usize,
        0,
        0,
        0,
    ];
    // SAFETY: plain numbers.
    unsafe { arch::syscall(libc::SYS_tgkill, args) };
}

/// Makes a timer on the CPU clock of `tid` that signals that thread with `value`.
///
/// # Errors
/// The kernel's error: no such thread, or the limit of queued signals is reached.
#[inline(never)]
pub fn timer_create(tid: i32, signal: i32, value: u64) -> Result<i32, Errno> {
    // SAFETY: sigevent is plain data; all zeroes is a value of it.
    let mut event: libc::sigevent = unsafe { core::mem::zeroed() };
    event.sigev_value.sival_ptr = core::ptr::without_provenance_mut(value as usize);
    event.sigev_signo = signal;
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_notify_thread_id = tid;
    let mut timer: i32 = -1;
    let args = [
        cpu_clock_of(tid) as usize,
        (&raw const event) as usize,
        (&raw mut timer) as usize,
        0,
        0,
        0,
    ];
    // SAFETY: the kernel reads the event and writes the 4-byte timer id; both are locals.
    check(unsafe { arch::syscall(libc::SYS_timer_create, args) })?;
    Ok(timer)
}

/// Arms `timer` once for the absolute clock value `at_ns`; 0 disarms it.
///
/// # Errors
/// The kernel's error.
#[inline]
pub fn timer_set(timer: i32, at_ns: u64) -> Result<(), Errno> {
    let zero = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let value = libc::timespec {
        tv_sec: (at_ns / 1_000_000_000) as i64,
        tv_nsec: (at_ns % 1_000_000_000) as i64,
    };
    let spec = libc::itimerspec {
        it_interval: zero,
        it_value: value,
    };
    let flags = libc::TIMER_ABSTIME as usize;
    let args = [timer as usize, flags, (&raw const spec) as usize, 0, 0, 0];
    // SAFETY: the kernel reads one itimerspec from a local.
    check(unsafe { arch::syscall(libc::SYS_timer_settime, args) }).map(|_| ())
}

/// Deletes `timer`.
pub fn timer_delete(timer: i32) {
    // SAFETY: a plain number.
    unsafe { arch::syscall(libc::SYS_timer_delete, [timer as usize, 0, 0, 0, 0, 0]) };
}

/// Numbers of descriptors that `select(2)` can name: native code of the program keeps them in a
/// bit set of this size, and writes beyond it for a larger one.
const SELECTABLE: u64 = 1024;

/// The numbers that our descriptors may have in a process with this limit. They are above those
/// that `select` can name, if there are higher ones, and take at most half of the others.
fn own_range(limit: u64) -> core::ops::Range<i32> {
    let least = if limit > SELECTABLE { SELECTABLE } else { 0 };
    let end = least.saturating_add(limit.saturating_sub(least) / 2);
    least as i32..i32::try_from(end).unwrap_or(i32::MAX)
}

/// `RLIMIT_NOFILE`; 0 if the kernel does not report it.
fn descriptors_max() -> u64 {
    let mut limit = [0u64; 2];
    let pointer = limit.as_mut_ptr() as usize;
    let resource = libc::RLIMIT_NOFILE as usize;
    // SAFETY: the kernel writes two 64-bit numbers to a local that outlives the call.
    let _ = check(unsafe { arch::syscall(libc::SYS_prlimit64, [0, resource, 0, pointer, 0, 0]) });
    limit[0]
}

/// Gives a descriptor that has just been opened a number that the program can spare, and returns
/// it. Such numbers are above those that `select(2)` can name, and below the half that is left to
/// the program.
///
/// # Errors
/// `EMFILE` if there is no such number, or the kernel's error; the descriptor keeps its number.
pub fn move_up(fd: i32) -> Result<i32, Errno> {
    let range = own_range(descriptors_max());
    if range.contains(&fd) {
        return Ok(fd);
    }
    let moved = fcntl(fd, libc::F_DUPFD_CLOEXEC, range.start as usize)? as i32;
    if moved >= range.end {
        close(moved);
        return Err(Errno(libc::EMFILE));
    }
    close(fd);
    Ok(moved)
}

/// Opens a perf event for thread `tid` on any processor.
///
/// # Errors
/// The kernel's error: not permitted, no such thread, too many open files.
pub(crate) fn perf_event_open(
    attr: &mut perf_event_open_sys::bindings::perf_event_attr,
    tid: i32,
) -> Result<i32, Errno> {
    let pointer = &raw mut *attr as usize;
    let flags = perf_event_open_sys::bindings::PERF_FLAG_FD_CLOEXEC as usize;
    let any = usize::MAX;
    // SAFETY: the kernel reads (and on E2BIG writes) a structure that has its layout.
    check(unsafe {
        arch::syscall(
            libc::SYS_perf_event_open,
            [pointer, tid as usize, any, any, flags, 0],
        )
    })
    .map(|fd| fd as i32)
}

/// Whether a seccomp filter keeps `perf_event_open` from the kernel: with flags that do not exist,
/// the kernel answers EINVAL before it checks any permission.
#[must_use]
pub fn perf_is_filtered() -> bool {
    let any = usize::MAX;
    // SAFETY: the kernel refuses the flags before it reads the structure, which is none.
    let answer =
        check(unsafe { arch::syscall(libc::SYS_perf_event_open, [0, 0, any, any, any, 0]) });
    matches!(
        answer,
        Err(Errno(libc::EPERM | libc::EACCES | libc::ENOSYS))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restorer_is_inherited_only_where_the_flag_says_so() {
        const OWN: usize = 0x5000;
        let on_stack = libc::SA_ONSTACK as u64;
        let ours = KernelAction {
            handler: 7,
            flags: on_stack,
            restorer: 0,
            mask: 3,
        };
        let after = |flags, restorer, own| {
            let previous = KernelAction {
                handler: 1,
                flags,
                restorer,
                mask: 0,
            };
            let made = ours.returning_as(&previous, own);
            assert_eq!((made.handler, made.mask), (7, 3));
            assert_eq!(made.flags & !SA_RESTORER, on_stack);
            (made.flags & SA_RESTORER != 0).then_some(made.restorer)
        };
        assert_eq!(after(SA_RESTORER, 0x9000, Some(OWN)), Some(0x9000));
        assert_eq!(after(SA_RESTORER, 0x9000, None), Some(0x9000));
        // Without the flag, the kernel leaves the field as the caller had it: any value.
        assert_eq!(after(0, 0x9000, Some(OWN)), Some(OWN));
        assert_eq!(after(0, 0, Some(OWN)), Some(OWN));
        assert_eq!(after(0, 0x9000, None), None);
        assert_eq!(after(SA_RESTORER, 0, None), None);
        let none = ours.returning_as(&KernelAction::default(), None);
        assert_eq!((none.flags, none.restorer), (on_stack, 0));
    }

    #[test]
    fn page_size_is_that_of_the_kernel() {
        // SAFETY: takes a number, and only reads.
        let asked = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        assert_eq!(page_bytes() as i64, asked);
        assert!(page_bytes().is_power_of_two());
    }

    #[test]
    fn own_range_leaves_selectable_numbers_and_half_of_the_rest() {
        for (limit, range) in [
            (0, 0..0),
            (256, 0..128),
            (1024, 0..512),
            (1025, 1024..1024),
            (4096, 1024..2560),
            (1 << 20, 1024..(1 << 19) + 512),
            (u64::MAX, 1024..i32::MAX),
        ] {
            assert_eq!(own_range(limit), range, "{limit}");
        }
    }

    #[test]
    fn move_up_keeps_a_descriptor_that_is_high_already() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let fd = fcntl(
            std::os::fd::AsRawFd::as_raw_fd(&file),
            libc::F_DUPFD_CLOEXEC,
            0,
        )
        .unwrap();
        let Ok(moved) = move_up(fd as i32) else {
            // Half of the numbers that this process may have are in use.
            assert!(!own_range(descriptors_max()).contains(&(fd as i32)));
            close(fd as i32);
            return;
        };
        assert!(own_range(descriptors_max()).contains(&moved));
        assert_eq!(move_up(moved), Ok(moved));
        assert_eq!(
            fcntl(moved, libc::F_GETFD, 0),
            Ok(libc::FD_CLOEXEC as usize)
        );
        close(moved);
    }
}

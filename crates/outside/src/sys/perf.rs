//! A perf event on another process's thread whose samples hold the kernel's own copy of registers
//! and stack (perf_event_open(2), `PERF_SAMPLE_REGS_USER` and `PERF_SAMPLE_STACK_USER`), and its
//! own frames (`PERF_SAMPLE_CALLCHAIN`). The thread is not stopped and gets no signal.

use crate::arch;
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_CPU_CLOCK, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_PERIOD, PERF_SAMPLE_REGS_USER,
    PERF_SAMPLE_STACK_USER, PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_TYPE_SOFTWARE, perf_event_attr,
    perf_event_mmap_page,
};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The largest page of any processor: a ring is at least a page.
pub const RING_BYTES_MIN: usize = 64 << 10;

/// Bytes of a page of this machine.
#[must_use]
pub fn page_bytes() -> usize {
    // SAFETY: takes a number; the kernel passes this one to every program.
    unsafe { libc::getauxval(libc::AT_PAGESZ) as usize }
}

/// The settings of an event.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// CPU time between two samples.
    pub period_ns: u64,
    /// Bytes of stack in each sample; a multiple of 8.
    pub stack_bytes: u32,
    /// Bytes of the ring without its control page: a power of two, at least [`RING_BYTES_MIN`].
    pub ring_bytes: usize,
    /// Whether threads that the thread starts are sampled as well.
    pub inherit: bool,
}

/// An event with its ring of samples.
#[derive(Debug)]
pub struct Event {
    fd: OwnedFd,
    ring: Option<Ring>,
}

#[derive(Debug)]
struct Ring {
    base: NonNull<u8>,
    /// Bytes of the control page, which is before the data.
    data_at: usize,
    data_bytes: usize,
}

impl Event {
    /// Opens an event on thread `tid`, on processor `cpu` (-1: any), enabled at once.
    ///
    /// # Errors
    /// The kernel's: no such thread, or not permitted.
    pub fn open(tid: i32, cpu: i32, wish: &Wish) -> io::Result<Event> {
        // If the kernel may not be observed, samples of time in it are left out.
        let fd = open(tid, cpu, wish, false).or_else(|error| match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => open(tid, cpu, wish, true),
            _ => Err(error),
        })?;
        Ok(Event { fd, ring: None })
    }

    /// Maps a ring for the event.
    ///
    /// # Errors
    /// The kernel's: too much locked memory.
    pub fn map(&mut self, wish: &Wish) -> io::Result<()> {
        let data_at = page_bytes();
        let len = data_at + wish.ring_bytes;
        // SAFETY: a new mapping at a place that the kernel chooses; the descriptor is an event's.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                self.fd.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>());
        self.ring = base.map(|base| Ring {
            base,
            data_at,
            data_bytes: wish.ring_bytes,
        });
        Ok(())
    }

    /// Writes its samples to the ring of `other`, which must be on the same processor.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_to(&self, other: &Event) -> io::Result<()> {
        let request = perf_event_open_sys::bindings::SET_OUTPUT;
        // SAFETY: both are descriptors of events; the call changes nothing in our memory.
        let answer = unsafe {
            libc::ioctl(
                self.fd.as_raw_fd(),
                libc::c_ulong::from(request),
                other.fd.as_raw_fd(),
            )
        };
        if answer < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Visits the new records in order.
    pub fn drain(&self, mut visit: impl FnMut(&[u8])) {
        let Some(ring) = &self.ring else { return };
        let page = ring.base.cast::<perf_event_mmap_page>().as_ptr();
        // SAFETY: the mapping begins with this page and lives as long as `ring`; the kernel writes
        // `data_head` and only we write `data_tail`, both aligned words that are only reached as
        // atomics here.
        let (head_at, tail_at) = unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*page).data_head),
                AtomicU64::from_ptr(&raw mut (*page).data_tail),
            )
        };
        let head = head_at.load(Ordering::Acquire);
        let mut tail = tail_at.load(Ordering::Relaxed);
        let mut record = Vec::new();
        while head.wrapping_sub(tail) >= HEADER as u64 {
            let mut header = [0; HEADER];
            ring.copy(tail, &mut header);
            let len = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            if len < HEADER || (len as u64) > head.wrapping_sub(tail) {
                break;
            }
            record.resize(len, 0);
            ring.copy(tail, &mut record);
            visit(&record);
            tail = tail.wrapping_add(len as u64);
        }
        // The remaining bytes are not a valid record, and are dropped.
        tail_at.store(head, Ordering::Release);
    }
}

/// Bytes of `struct perf_event_header`.
pub const HEADER: usize = 8;

impl Ring {
    /// Copies bytes from the ring, from a position that the kernel has written up to.
    fn copy(&self, position: u64, to: &mut [u8]) {
        // The size is a power of two, so positions wrap.
        let mask = self.data_bytes as u64 - 1;
        let mut done = 0;
        while let Some(rest) = to.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let offset = ((position + done as u64) & mask) as usize;
            let len = rest.len().min(self.data_bytes - offset);
            // SAFETY: the mapping has one page and then `data_bytes` of data, and the piece ends
            // within them; `rest` has at least `len` bytes, and is no part of the mapping. The
            // kernel does not write between our tail and its head, which the caller stays between.
            unsafe {
                let from = self.base.as_ptr().add(self.data_at + offset);
                std::ptr::copy_nonoverlapping(from, rest.as_mut_ptr(), len);
            }
            done += len;
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and reached through `self` only.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.data_at + self.data_bytes) };
    }
}

fn open(tid: i32, cpu: i32, wish: &Wish, user_only: bool) -> io::Result<OwnedFd> {
    let mut attr = perf_event_attr {
        config: u64::from(PERF_COUNT_SW_CPU_CLOCK),
        sample_type: u64::from(
            PERF_SAMPLE_TID
                | PERF_SAMPLE_TIME
                | PERF_SAMPLE_PERIOD
                | PERF_SAMPLE_CALLCHAIN
                | PERF_SAMPLE_REGS_USER
                | PERF_SAMPLE_STACK_USER,
        ),
        sample_regs_user: arch::PERF_REGISTERS
            .iter()
            .map(|register| 1 << register)
            .sum(),
        sample_stack_user: wish.stack_bytes,
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    attr.__bindgen_anon_1.sample_period = wish.period_ns;
    attr.__bindgen_anon_2.wakeup_events = 1;
    attr.set_use_clockid(1);
    attr.set_exclude_hv(1);
    attr.set_exclude_kernel(u64::from(user_only));
    // The kernel's own frames only: it cannot walk the JVM's frames.
    attr.set_exclude_callchain_user(1);
    attr.set_exclude_callchain_kernel(u64::from(user_only));
    attr.set_inherit(u64::from(wish.inherit));
    open_event(&mut attr, tid, cpu)
}

/// Opens a software event on thread `tid`, on `cpu`; -1 is any processor.
///
/// # Errors
/// The kernel's.
pub(super) fn open_event(attr: &mut perf_event_attr, tid: i32, cpu: i32) -> io::Result<OwnedFd> {
    const CLOEXEC: u64 = 8;
    attr.size = size_of::<perf_event_attr>() as u32;
    attr.type_ = PERF_TYPE_SOFTWARE;
    // SAFETY: the kernel reads `size` bytes, which is the whole structure, and writes at most that
    // field, both before the call returns. For software events, no other field is an address.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_mut(attr),
            tid,
            cpu,
            -1,
            CLOEXEC,
        )
    };
    match i32::try_from(fd) {
        // SAFETY: the kernel has just made this descriptor for us alone.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a seccomp filter keeps `perf_event_open` from the kernel: with flags that do not exist,
/// the kernel answers EINVAL before it checks any permission.
#[must_use]
pub fn is_filtered() -> bool {
    let null = std::ptr::null::<perf_event_attr>();
    // SAFETY: the kernel refuses the flags before it reads the structure.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            null,
            0,
            -1,
            -1,
            libc::c_ulong::MAX,
        )
    };
    let error = io::Error::last_os_error().raw_os_error();
    answer < 0 && matches!(error, Some(libc::EPERM | libc::EACCES | libc::ENOSYS))
}

/// Waits until one of the events has a sample, or the time is over.
pub fn wait(events: &[&Event], time: Duration) {
    let mut polled: Vec<libc::pollfd> = events
        .iter()
        .map(|event| libc::pollfd {
            fd: event.fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let millis = i32::try_from(time.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the array is valid for its length. An error means that the call did not wait; the
    // callers check their clock, so that is harmless.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, millis) };
}

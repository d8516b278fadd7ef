//! How often a thread is switched. The kernel writes a note into a ring each time the thread
//! leaves a processor or gets one. It wakes a thread that waits for the ring's descriptor after a
//! given number of notes. That takes no right to see the kernel.

use dwell_signal::{Errno, perf_client, sys};
use perf_event_open_sys::bindings::{
    PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE, perf_event_attr, perf_event_mmap_page,
};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// The control page, which shows where the ring is written, and one page of notes.
const RING_PAGES: usize = 2;
/// Bytes of a note (`PERF_RECORD_SWITCH`, without further fields); each turn has two.
const NOTE_BYTES: u32 = 8;

/// The kernel's notes about one thread.
#[derive(Debug)]
pub struct Switches {
    fd: RawFd,
    ring: *mut u8,
}

fn ring_bytes() -> usize {
    RING_PAGES * sys::page_bytes()
}

impl Switches {
    /// Counts the turns of thread `tid` of this process; the descriptor is ready after each
    /// `turns` of them.
    ///
    /// # Errors
    /// The kernel's: not permitted, no such thread, no memory that may be locked.
    pub fn open(tid: i32, turns: u32) -> Result<Switches, Errno> {
        let mut attr = perf_event_attr {
            size: size_of::<perf_event_attr>() as u32,
            type_: PERF_TYPE_SOFTWARE,
            config: u64::from(PERF_COUNT_SW_DUMMY),
            ..Default::default()
        };
        attr.__bindgen_anon_2.wakeup_watermark = turns.saturating_mul(2 * NOTE_BYTES);
        attr.set_watermark(1);
        attr.set_context_switch(1);
        attr.set_exclude_kernel(1);
        attr.set_exclude_hv(1);
        let fd = perf_client::perf_event_open(&mut attr, tid)?;
        match sys::map_fd(fd, ring_bytes()) {
            Ok(ring) => Ok(Switches { fd, ring }),
            Err(error) => {
                sys::close(fd);
                Err(error)
            }
        }
    }

    /// Makes room for more notes: a full ring takes none, and wakes no thread.
    pub fn forget(&mut self) {
        let page = self.ring.cast::<perf_event_mmap_page>();
        // SAFETY: the mapping begins with this page and lives as long as self; the kernel writes
        // `data_head`, and only this thread writes `data_tail`, both aligned words that are only
        // reached as atomics here.
        let (head, tail) = unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*page).data_head),
                AtomicU64::from_ptr(&raw mut (*page).data_tail),
            )
        };
        tail.store(head.load(Ordering::Acquire), Ordering::Release);
    }
}

impl AsRawFd for Switches {
    fn as_raw_fd(&self) -> RawFd {
        self.fd
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this length, and reached through self only.
        unsafe { sys::unmap(self.ring, ring_bytes()) };
        sys::close(self.fd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{bell, process};
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    const LONG_NS: u64 = 60_000_000_000;

    #[test]
    fn napping_thread_rings_and_sleeping_thread_does_not() {
        let (tell, told) = channel();
        let (go, gone) = channel();
        static OVER: AtomicBool = AtomicBool::new(false);
        let thread = std::thread::spawn(move || {
            tell.send(process::own_tid()).unwrap();
            let _ = gone.recv();
            while !OVER.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_micros(10));
            }
        });
        let tid = told.recv().unwrap();
        match Switches::open(tid, 8) {
            Ok(mut switches) => {
                let fd = switches.as_raw_fd();
                // It may still be on its way to its wait.
                let asleep = bell::wait([fd], 50_000_000);
                assert_eq!(asleep, [false]);
                go.send(()).unwrap();
                // More often than the ring has room.
                for _ in 0..100 {
                    assert_eq!(bell::wait([fd], LONG_NS), [true]);
                    switches.forget();
                }
            }
            Err(error) => println!("perf events are not permitted here: {error:?}"),
        }
        OVER.store(true, Ordering::SeqCst);
        drop(go);
        thread.join().unwrap();
        assert!(Switches::open(i32::MAX, 8).is_err());
    }
}

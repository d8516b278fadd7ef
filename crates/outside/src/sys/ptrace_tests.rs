//! Stops of child processes, which must not notice them.

use super::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Memory that a child and its parent share.
#[repr(C)]
struct Page {
    sent: AtomicU64,
    received: AtomicU64,
    rounds: AtomicU64,
    is_over: AtomicU32,
}

/// Set before the child begins, and read by its handler.
static PAGE: std::sync::atomic::AtomicPtr<Page> =
    std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());

fn shared_page() -> &'static Page {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let null = std::ptr::null_mut();
    // SAFETY: a fresh mapping; no other mapping is replaced.
    let page = unsafe { libc::mmap(null, 4096, protection, flags, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    // SAFETY: large enough, aligned, zeroed, which is a value of each field, and never unmapped.
    unsafe { &*page.cast::<Page>() }
}

/// A child process; killed when dropped.
struct Child(i32);

impl Child {
    /// A forked process. `body` calls only functions that are safe in signal handlers, because
    /// other threads may hold any locks.
    fn fork(body: impl FnOnce()) -> Child {
        // SAFETY: the child keeps to what the caller promises, and never returns from here.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            body();
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(0) };
        }
        Child(pid)
    }

    fn field(&self, name: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim_start_matches(':').trim().to_owned()
    }

    fn state(&self) -> char {
        self.field("State").chars().next().unwrap()
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the child is ours and was not waited for.
        assert_eq!(unsafe { libc::kill(self.0, signal) }, 0);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: as above; the status is of no interest.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), libc::__WALL);
        }
    }
}

/// Waits for a condition that must come true.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The child's pc when it is stopped. On a busy machine we may have no processor for so long that
/// the child is resumed before: then it is stopped again.
fn stop(child: &Child) -> u64 {
    for _ in 0..100 {
        match with_stopped(child.0, |registers| registers.pc) {
            Ok(pc) => return pc,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::TimedOut),
        }
    }
    panic!("it was stopped a hundred times and let go of too early");
}

extern "C" fn count(_signal: i32) {
    // SAFETY: set before the handler was installed, to a page that is never unmapped.
    if let Some(page) = unsafe { PAGE.load(Ordering::Relaxed).as_ref() } {
        page.received.fetch_add(1, Ordering::Relaxed);
    }
}

/// Queues signals to itself until the page says stop.
fn signal_itself(page: &Page) {
    let signal = libc::SIGRTMIN();
    let value = libc::sigval {
        sival_ptr: std::ptr::null_mut(),
    };
    // SAFETY: zero is a valid set of these; the handler touches atomics only.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as extern "C" fn(i32) as usize;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
    while page.is_over.load(Ordering::SeqCst) == 0 {
        // SAFETY: plain values; the process is this one.
        if unsafe { libc::sigqueue(libc::getpid(), signal, value) } == 0 {
            page.sent.fetch_add(1, Ordering::Relaxed);
        }
    }
    page.rounds.store(1, Ordering::SeqCst);
    loop {
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
    }
}

/// A signal whose delivery coincides with a stop is still delivered.
#[test]
fn never_stop_loses_a_signal_of_the_thread() {
    const STOPS: u32 = 3_000;
    let page = shared_page();
    PAGE.store(std::ptr::from_ref(page).cast_mut(), Ordering::SeqCst);
    let child = Child::fork(|| signal_itself(page));
    until("signals", || page.received.load(Ordering::Relaxed) > 100);
    let mut pcs = std::collections::HashSet::new();
    for _ in 0..STOPS {
        pcs.insert(stop(&child));
    }
    page.is_over.store(1, Ordering::SeqCst);
    until("the end", || page.rounds.load(Ordering::SeqCst) == 1);
    let [sent, received] = [&page.sent, &page.received].map(|it| it.load(Ordering::SeqCst));
    println!("{sent} signals, {STOPS} stops at {} places", pcs.len());
    assert_eq!(sent, received);
    assert!(sent > u64::from(STOPS) && pcs.len() > 1);
}

#[test]
fn thread_in_a_stopped_process_stays_stopped() {
    let page = shared_page();
    let child = Child::fork(|| {
        while page.is_over.load(Ordering::SeqCst) == 0 {
            page.rounds.fetch_add(1, Ordering::Relaxed);
        }
    });
    until("work", || page.rounds.load(Ordering::Relaxed) > 0);
    child.signal(libc::SIGSTOP);
    until("the stop", || child.state() == 'T');
    for _ in 0..20 {
        assert_ne!(stop(&child), 0);
        until("the same stop", || child.state() == 'T');
    }
    let before = page.rounds.load(Ordering::SeqCst);
    child.signal(libc::SIGCONT);
    until("work", || page.rounds.load(Ordering::SeqCst) > before);
}

#[test]
fn slowly_read_thread_is_resumed() {
    let page = shared_page();
    let child = Child::fork(|| {
        while page.is_over.load(Ordering::SeqCst) == 0 {
            page.rounds.fetch_add(1, Ordering::Relaxed);
        }
    });
    until("work", || page.rounds.load(Ordering::Relaxed) > 0);
    let stopped = with_stopped(child.0, |_| {
        let before = page.rounds.load(Ordering::SeqCst);
        until("work again", || page.rounds.load(Ordering::SeqCst) > before);
    });
    assert_eq!(stopped.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(child.field("TracerPid"), "0");
}

/// Waits in the kernel, where it cannot be stopped, until the page says that it is over (vfork(2)).
fn wait_unstoppably(page: &'static Page) {
    extern "C" fn wait(page: *mut libc::c_void) -> i32 {
        // SAFETY: the page of the caller, which is never unmapped.
        let page = unsafe { &*page.cast::<Page>() };
        while page.is_over.load(Ordering::SeqCst) == 0 {
            // SAFETY: sleeps.
            unsafe { libc::usleep(1000) };
        }
        0
    }
    let mut stack = [0u128; 4096];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let argument = std::ptr::from_ref(page).cast_mut().cast();
    // SAFETY: the child has a stack of its own, which lives until it has ended, as this waits for
    // that; it touches the page only.
    unsafe { libc::clone(wait, stack.as_mut_ptr_range().end.cast(), flags, argument) };
}

#[test]
fn unstoppable_thread_is_released() {
    let page = shared_page();
    let child = Child::fork(|| {
        wait_unstoppably(page);
        loop {
            page.rounds.fetch_add(1, Ordering::Relaxed);
        }
    });
    until("the wait", || child.state() == 'D');
    let stopped = with_stopped(child.0, |_| ());
    assert_eq!(stopped.unwrap_err().kind(), io::ErrorKind::TimedOut);
    until("nobody traces it", || child.field("TracerPid") == "0");
    page.is_over.store(1, Ordering::SeqCst);
    until("work", || page.rounds.load(Ordering::SeqCst) > 1000);
    assert_eq!(child.state(), 'R');
}

#[test]
fn exited_thread_is_an_error() {
    assert!(with_stopped(i32::MAX, |_| ()).is_err());
}

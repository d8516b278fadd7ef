//! Faults that are not ours reach the earlier handler, exactly as without us. Each case is run in
//! a process of its own (a forked child), because handlers belong to the process.

use dwell_signal::fault::{install_fault_handler, is_first_in_chain, reinstall_if_replaced};
use dwell_signal::{Live, sys};
use dwell_walker::Memory;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// An address without memory.
const UNMAPPED: u64 = 0x10_0000;

static CALLS: AtomicU32 = AtomicU32::new(0);
static ADDRESS: AtomicU64 = AtomicU64::new(0);
static BLOCKED: AtomicU64 = AtomicU64::new(0);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// How a child ended: its exit code, or minus the signal that killed it.
fn in_child(body: fn()) -> i32 {
    // SAFETY: the child only runs `body`, which keeps to system calls and this crate, and exits.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let rlimit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: no core files of children that are meant to die.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &rlimit) };
        body();
        // SAFETY: ends the child without running the parent's exit handlers.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the child just made.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    if libc::WIFSIGNALED(status) {
        -libc::WTERMSIG(status)
    } else {
        libc::WEXITSTATUS(status)
    }
}

/// In a child a panic would not be seen; an exit code is.
fn demand(condition: bool, code: i32) {
    if !condition {
        // SAFETY: as above.
        unsafe { libc::_exit(code) };
    }
}

fn on(signal: i32, handler: usize, flags: i32, mask: Option<i32>) {
    // SAFETY: all zeroes is a value of the structure; the handler has the signature its flags say.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        if let Some(blocked) = mask {
            libc::sigaddset(&mut action.sa_mask, blocked);
        }
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

fn current_mask() -> u64 {
    // SAFETY: asks only; the kernel's set is the first 8 bytes of the C library's larger one.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &mut set);
        (&raw const set).cast::<u64>().read()
    }
}

/// Skips the load in `fault_at`.
unsafe extern "C" fn skip(_: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: what the kernel passes.
    unsafe {
        ADDRESS.store((*info).si_addr() as u64, Ordering::Relaxed);
        let frame = &mut *context.cast::<libc::ucontext_t>();
        #[cfg(target_arch = "x86_64")]
        let (pc, load_bytes) = (&mut frame.uc_mcontext.gregs[libc::REG_RIP as usize], 3);
        #[cfg(target_arch = "aarch64")]
        let (pc, load_bytes) = (&mut frame.uc_mcontext.pc, 4);
        *pc += load_bytes;
    }
    BLOCKED.store(current_mask(), Ordering::Relaxed);
    CALLS.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn plain(_: i32) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    // The address was bad on purpose: make it good, so that the load succeeds when tried again.
    let page = (ADDRESS.load(Ordering::Relaxed) & !4095) as *mut libc::c_void;
    // SAFETY: a page the test mapped.
    unsafe { libc::mprotect(page, 4096, libc::PROT_READ) };
}

/// A load that is not ours; faults unless `addr` is readable.
fn fault_at(addr: u64) {
    // SAFETY: the test's handler skips it or makes the page readable; the value goes nowhere.
    unsafe {
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!("ldr {}, [{}]", out(reg) _, in(reg) addr, options(nostack));
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!("mov rax, qword ptr [rdi]", in("rdi") addr, out("rax") _, options(nostack));
    }
}

fn unreadable() -> u64 {
    let page = sys::map_zeroed(4096).unwrap();
    // SAFETY: a page that no other code knows.
    unsafe { libc::mprotect(page.cast(), 4096, libc::PROT_NONE) };
    page as u64
}

#[test]
fn an_older_handler_still_gets_its_faults_and_none_of_ours() {
    let result = in_child(|| {
        on(
            libc::SIGSEGV,
            skip as *const () as usize,
            libc::SA_SIGINFO,
            Some(libc::SIGUSR1),
        );
        let live = Live::install().unwrap();
        let bad = unreadable();
        fault_at(bad + 16);
        demand(CALLS.load(Ordering::Relaxed) == 1, 10);
        demand(ADDRESS.load(Ordering::Relaxed) == bad + 16, 11);
        let expected = sys::signal_bit(libc::SIGSEGV) | sys::signal_bit(libc::SIGUSR1);
        demand(BLOCKED.load(Ordering::Relaxed) == expected, 12);
        demand(live.word(bad).is_err(), 13);
        demand(live.read(bad, &mut [0; 9]).is_err(), 14);
        demand(CALLS.load(Ordering::Relaxed) == 1, 15);
        demand(current_mask() == 0, 16);
    });
    assert_eq!(result, 0);
}

#[test]
fn an_older_plain_handler_still_gets_its_faults() {
    let result = in_child(|| {
        on(libc::SIGSEGV, plain as *const () as usize, 0, None);
        install_fault_handler().unwrap();
        let bad = unreadable();
        ADDRESS.store(bad, Ordering::Relaxed);
        fault_at(bad);
        demand(CALLS.load(Ordering::Relaxed) == 1, 10);
    });
    assert_eq!(result, 0);
}

#[test]
fn without_a_handler_a_fault_kills_as_ever() {
    let child = || {
        on(libc::SIGSEGV, libc::SIG_DFL, 0, None);
        let live = Live::install().unwrap();
        demand(live.word(UNMAPPED).is_err(), 10);
        fault_at(16);
    };
    assert_eq!(in_child(child), -libc::SIGSEGV);
}

#[test]
fn an_ignored_fault_kills_as_the_kernel_would() {
    let child = || {
        on(libc::SIGSEGV, libc::SIG_IGN, 0, None);
        install_fault_handler().unwrap();
        fault_at(16);
    };
    assert_eq!(in_child(child), -libc::SIGSEGV);
}

#[test]
fn a_sent_signal_is_no_fault() {
    let ignored = || {
        on(libc::SIGSEGV, libc::SIG_IGN, 0, None);
        install_fault_handler().unwrap();
        sys::raise(libc::SIGSEGV);
    };
    assert_eq!(in_child(ignored), 0, "ignored, as it would have been");
    let default = || {
        on(libc::SIGBUS, libc::SIG_DFL, 0, None);
        install_fault_handler().unwrap();
        sys::raise(libc::SIGBUS);
    };
    assert_eq!(
        in_child(default),
        -libc::SIGBUS,
        "deadly, as it would have been"
    );
}

#[test]
fn a_handler_for_one_time_is_called_one_time() {
    let child = || {
        let flags = libc::SA_SIGINFO | libc::SA_RESETHAND;
        on(libc::SIGSEGV, skip as *const () as usize, flags, None);
        install_fault_handler().unwrap();
        fault_at(16);
        demand(CALLS.load(Ordering::Relaxed) == 1, 10);
        fault_at(16);
    };
    assert_eq!(in_child(child), -libc::SIGSEGV);
}

/// Calls the handler that was there before it, as a well-behaved library does.
unsafe extern "C" fn citizen(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    CALLS.fetch_add(100, Ordering::Relaxed);
    demand(CALLS.load(Ordering::Relaxed) < 1000, 77); // else we are in a circle
    // SAFETY: the address was a handler with SA_SIGINFO when the test stored it.
    unsafe {
        let next: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
            std::mem::transmute(NEXT.load(Ordering::Relaxed) as usize);
        next(signal, info, context);
    }
}

#[test]
fn stepping_in_front_again_makes_no_circle() {
    let result = in_child(|| {
        on(
            libc::SIGSEGV,
            skip as *const () as usize,
            libc::SA_SIGINFO,
            None,
        );
        let live = Live::install().unwrap();
        demand(is_first_in_chain(), 10);
        let ours = sys::sigaction(libc::SIGSEGV, None).unwrap().handler;
        NEXT.store(ours as u64, Ordering::Relaxed);
        on(
            libc::SIGSEGV,
            citizen as *const () as usize,
            libc::SA_SIGINFO,
            None,
        );
        demand(!is_first_in_chain(), 11);
        demand(live.word(UNMAPPED).is_err(), 12); // through the citizen
        demand(CALLS.swap(0, Ordering::Relaxed) == 100, 13);
        demand(reinstall_if_replaced(), 14);
        demand(is_first_in_chain(), 15);
        demand(live.word(UNMAPPED).is_err(), 16);
        demand(CALLS.load(Ordering::Relaxed) == 0, 17); // straight to us now
        fault_at(16); // us, the citizen, us, the first one
        demand(CALLS.load(Ordering::Relaxed) == 101, 18);
        demand(reinstall_if_replaced(), 19); // nothing to do
    });
    assert_eq!(result, 0);
}

#[test]
fn handler_that_always_replaces_ours_wins() {
    let result = in_child(|| {
        install_fault_handler().unwrap();
        for round in 0..2 {
            on(
                libc::SIGSEGV,
                skip as *const () as usize,
                libc::SA_SIGINFO,
                None,
            );
            demand(reinstall_if_replaced(), 20 + round);
            demand(
                Live::get().is_some_and(|live| live.word(UNMAPPED).is_err()),
                30 + round,
            );
        }
        on(
            libc::SIGSEGV,
            skip as *const () as usize,
            libc::SA_SIGINFO,
            None,
        );
        demand(!reinstall_if_replaced(), 40);
    });
    assert_eq!(result, 0);
}

/// Ends the process, as a library may that takes a fault for its own.
extern "C" fn give_up(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(77) };
}

/// The end of a program's memory.
const END: u64 = 1
    << if cfg!(target_arch = "aarch64") {
        48
    } else {
        47
    };

#[test]
fn words_that_are_no_addresses_raise_no_signal() {
    let result = in_child(|| {
        let live = Live::install().unwrap();
        // As before it is noticed.
        let greedy = give_up as *const () as usize;
        on(libc::SIGSEGV, greedy, libc::SA_SIGINFO, None);
        let mut copy = [0u8; 16];
        for addr in [0, 16, END, 0x1234_5678_9abc_def0, 1 << 63, u64::MAX] {
            demand(live.word(addr).is_err(), 90);
            demand(addr < END || live.read(addr, &mut copy).is_err(), 91);
        }
        let known = [7u64];
        demand(live.word(known.as_ptr() as u64) == Ok(7), 92);
    });
    assert_eq!(result, 0);
}

#[test]
fn never_does_a_load_fault_behind_a_greedy_handler() {
    let result = in_child(|| {
        let live = Live::install().unwrap();
        let known = [1u64, 2, 3];
        let known_at = known.as_ptr() as u64;
        for round in 0..4 {
            on(
                libc::SIGSEGV,
                give_up as *const () as usize,
                libc::SA_SIGINFO,
                None,
            );
            // Two times we step in front of it. After that the kernel loads.
            demand(reinstall_if_replaced() == (round < 2), 50 + round);
            demand(
                live.word(UNMAPPED).is_err() && live.word(16).is_err(),
                54 + round,
            );
            demand(live.word(known_at + 8) == Ok(2), 58 + round);
            let mut copy = [0u8; 24];
            demand(live.read(known_at, &mut copy).is_ok(), 62 + round);
            demand(copy[16] == 3, 66 + round);
        }
        // Up to the end of a mapping.
        // SAFETY: new mappings of this test's own.
        let pages = unsafe {
            let (flags, len) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, 3 * 4096);
            let start = libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, flags, -1, 0);
            libc::munmap(start.byte_add(2 * 4096), 4096);
            start as u64
        };
        let mut copy = vec![1u8; 3 * 4096];
        // SAFETY: the vector is as long as this says.
        let copied = unsafe { live.copy(copy.as_mut_ptr(), pages, copy.len()) };
        demand(copied == 2 * 4096, 70);
        let end = live.read(pages + 100, &mut copy);
        demand(end.is_err(), 71);
    });
    assert_eq!(result, 0);
}

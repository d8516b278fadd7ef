//! The calls that handlers may and may not reach. Every entry is a reviewed decision with its
//! reason.

/// The lists a walk is judged by.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Symbols from which the walk starts; all must exist.
    pub roots: Vec<String>,
    /// Symbols with this beginning and end are roots as well.
    pub root_pattern: (&'static str, [&'static str; 2]),
    /// Functions of other libraries that may be called.
    pub imports: Vec<&'static str>,
    /// System calls that may be made, by number.
    pub system_calls: Vec<(u32, &'static str)>,
    /// Functions that may make indirect calls or jumps, with their maximum number.
    pub indirect: Vec<(&'static str, usize)>,
    /// No reached function's name may contain one of these.
    pub forbidden: Vec<&'static str>,
}

/// System calls that handlers may make, and what for.
const SYSTEM_CALLS: [(u32, &str); 10] = [
    (
        13,
        "rt_sigaction: a fault without a handler is left to the default",
    ),
    (
        14,
        "rt_sigprocmask: SIGSEGV must not be blocked while we copy",
    ),
    (16, "ioctl: arms the perf event again"),
    (
        39,
        "getpid: to send a signal on to ourselves, and for process_vm_readv",
    ),
    (186, "gettid: is the signal meant for this thread"),
    (
        202,
        "futex: waits, for a bounded time, until another thread has walked the stack",
    ),
    (223, "timer_settime: arms the timer again"),
    (228, "clock_gettime: the thread's CPU time"),
    (234, "tgkill: a signal that was sent is sent on"),
    (
        310,
        "process_vm_readv: loads while another fault handler is in front; touches no signals",
    ),
];

impl Rules {
    /// The rules for `libdwell.so`.
    #[must_use]
    pub fn for_dwell() -> Self {
        Self {
            roots: [
                "dwell_sample_handler",
                "dwell_queue_full_handler",
                "dwell_fault_handler",
                "dwell_fault_again_handler",
                "dwell_fault_third_handler",
            ]
            .map(str::to_owned)
            .to_vec(),
            root_pattern: ("dwell_", ["_handler", "_hook"]),
            // memcpy and its kind touch nothing but their operands; clock_gettime is on POSIX's
            // list and reads the vDSO for the clock that is asked for.
            imports: vec![
                "clock_gettime",
                "memcpy",
                "memmove",
                "memset",
                "memcmp",
                "bcmp",
            ],
            system_calls: SYSTEM_CALLS.to_vec(),
            // The handler that was there before (with and without SA_SIGINFO), and the agent's
            // hooks, whose targets are roots themselves.
            indirect: vec![
                ("dwell_sample_handler", 2),
                ("dwell_fault_handler", 2),
                ("dwell_fault_again_handler", 2),
                ("dwell_fault_third_handler", 2),
                ("dwell_signal::fault::", 2),
                ("dwell_signal::capture::call_extra", 1),
                ("dwell_signal::capture::call_context", 1),
                ("dwell_signal::capture::call_claim", 1),
                ("dwell_signal::capture::call_walk", 1),
                // Mono's own handler, called as the kernel calls it, and in it Mono's walk for
                // signals. Both are in Mono's library, where nothing can be followed; why they
                // may be called, and under which conditions: `crates/mono/src/sys/walk.rs`.
                ("mono_profiler_dwell::sys::walk::call_mono", 1),
                ("dwell_mono_sample_hook", 1),
            ],
            forbidden: vec![
                "core::panicking",
                "panic",
                "unwrap_failed",
                "expect_failed",
                "slice_index",
                "slice_start_index",
                "slice_end_index",
                "slice_error_fail",
                "len_mismatch",
                "core::fmt",
                "alloc::",
                "std::",
                "__rust_",
                "__rdl_",
                "_Unwind_",
                "handle_alloc_error",
                "pthread_",
                "thread_local",
            ],
        }
    }
}

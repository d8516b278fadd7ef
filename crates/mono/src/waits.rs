//! Causes of waits, by functions and methods of Mono. These are tables of names;
//! [`dwell_wall::waits`] has their format. Must not decide anything.

use dwell_wall::cause::Cause;
use dwell_wall::waits::Waits;

/// The tables of Mono. There are no tables of classes that wait for peers or files, because
/// descriptors show these.
pub const WAITS: Waits = Waits {
    functions: FUNCTIONS,
    methods: METHODS,
    libraries: LIBRARIES,
    ..Waits::NONE
};

/// Mono's own programs and libraries, by the names that Debian and its makers use.
const LIBRARIES: &[&str] = &[
    "mono",
    "mono-sgen",
    "mono-boehm",
    "libmono-2.0*",
    "libmonosgen-*",
    "libmonoboehm-*",
];

/// A thread that begins or ends waits for the collector's lock.
const FUNCTIONS: &[(&str, Cause)] = &[("mono_thread_info_set_flags", Cause::GcStall)];

/// Methods whose name determines the cause of a wait, with or without a wrapper around them.
const METHODS: &[(&str, &[&str], Cause)] = &[
    ("System/Threading/Thread", &["SleepInternal"], Cause::Sleep),
    // As on a JVM, where it waits in `Object.wait`.
    (
        "System/Threading/Thread",
        &["JoinInternal"],
        Cause::ObjectWait,
    ),
    (
        "System/Threading/Monitor",
        &["Monitor_wait", "ObjWait"],
        Cause::ObjectWait,
    ),
    (
        "System/Threading/Monitor",
        &[
            "Enter",
            "try_enter_with_atomic_var",
            "enter_with_atomic_var",
        ],
        Cause::Monitor,
    ),
    (
        "object",
        &[
            "__icall_wrapper_mono_monitor_enter_internal",
            "__icall_wrapper_mono_monitor_enter_v4_internal",
        ],
        Cause::Monitor,
    ),
    (
        "System/Threading/WaitHandle",
        &["Wait_internal", "SignalAndWait_Internal"],
        Cause::Park,
    ),
    ("System/GC", &["InternalCollect"], Cause::GcStall),
    // A thread that requests memory waits for the lock of a collecting thread, or for the end of
    // the collection.
    ("string", &["FastAllocateString"], Cause::GcStall),
    (
        "object",
        &[
            "__icall_wrapper_mono_gc_alloc_obj",
            "__icall_wrapper_mono_gc_alloc_vector",
            "__icall_wrapper_mono_gc_alloc_string",
        ],
        Cause::GcStall,
    ),
    // The poll for stops: the thread has stopped here.
    (
        "object",
        &["__icall_wrapper_mono_threads_state_poll"],
        Cause::Stopped,
    ),
];

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]
mod tests {
    use super::*;
    use dwell_wall::cause::{Call, Facts, Known, Monitor, Named, Os};

    fn of(call: Call, frames: &[Named<'_>]) -> &'static str {
        let facts = Facts {
            os: Os::Call(call),
            monitor: Monitor::None,
            is_owned_lock: false,
            frames,
        };
        Known::new(&WAITS).cause(&facts).name()
    }

    fn method<'a>(class: &'a str, name: &'a str) -> Named<'a> {
        Named {
            class,
            name,
            is_managed: true,
        }
    }

    fn native<'a>(class: &'a str, name: &'a str) -> Named<'a> {
        Named {
            class,
            name,
            is_managed: false,
        }
    }

    #[test]
    fn waits_of_mono_are_classified_by_its_methods() {
        for (class, name, cause) in [
            ("System/Threading/Thread", "SleepInternal", "sleep"),
            (
                "System/Threading/Thread",
                "SleepInternal [managed-to-native]",
                "sleep",
            ),
            ("System/Threading/Monitor", "Monitor_wait", "object-wait"),
            (
                "System/Threading/Monitor",
                "try_enter_with_atomic_var",
                "monitor",
            ),
            ("System/Threading/WaitHandle", "Wait_internal", "park"),
            (
                "object",
                "__icall_wrapper_mono_monitor_enter_v4_internal [managed-to-native]",
                "monitor",
            ),
            ("System/Threading/Thread", "JoinInternal", "object-wait"),
            ("System/GC", "InternalCollect", "gc-stall"),
            ("string", "FastAllocateString", "gc-stall"),
            (
                "object",
                "__icall_wrapper_mono_gc_alloc_obj [managed-to-native]",
                "gc-stall",
            ),
            (
                "object",
                "__icall_wrapper_mono_threads_state_poll [managed-to-native]",
                "safepoint",
            ),
            ("System/GC", "Other", "unknown"),
        ] {
            let frames = [method(class, name), method("App", "Main")];
            assert_eq!(of(Call::Futex, &frames), cause, "{name}");
        }
    }

    #[test]
    fn monos_own_threads_are_idle_and_its_stops_known() {
        for library in [
            "mono",
            "mono-sgen",
            "mono-boehm",
            "libmono-2.0.so.1",
            "libmonosgen-2.0.so.1.0.0",
            "libmonoboehm-2.0.so",
        ] {
            let own = native(library, "0x10");
            let idle = [native("libc.so.6", "0x1"), own, native("libc.so.6", "0x7")];
            assert_eq!(of(Call::Futex, &idle), "idle-pool", "{library}");
            let stopped = [
                native("libc.so.6", "__sigsuspend"),
                own,
                method("App", "Run"),
            ];
            assert_eq!(of(Call::Other, &stopped), "safepoint", "{library}");
        }
        let other = [native("libc.so.6", "0x1"), native("monodevelop", "0x1")];
        assert_eq!(of(Call::Futex, &other), "unknown");
    }
}

//! Threads of the JVM itself, by their names. They are left out by default.

use dwell_outside::Thread;
use dwell_outside::dump::Kind;

/// Prefixes of their names in JDK 8 and later.
const NAMES: &[&str] = &[
    "Attach Listener",
    "C1 CompilerThread",
    "C2 CompilerThread",
    "Common-Cleaner",
    "Compiler Thread",
    "Finalizer",
    "JFR Periodic Tasks",
    "JFR Recorder Thread",
    "JVMCI CompilerThread",
    "JVMCI-native CompilerThread",
    "Monitor Deflation Thread",
    "Notification Thread",
    "Reference Handler",
    "Service Thread",
    "Signal Dispatcher",
    "Surrogate Locker Thread",
    "Sweeper thread",
    "dwell",
];

/// Whether a thread is the JVM's own. The application may use such a name, too: a thread with
/// frames of application classes is the application's.
pub fn is_of_jvm(thread: &Thread) -> bool {
    let has_name = NAMES.iter().any(|start| thread.name.starts_with(start));
    let is_application = |frame: &dwell_outside::names::Named| match frame {
        dwell_outside::names::Named::Java { method, .. } => {
            !dwell_profile::is_of_platform(&method.class)
        }
        _ => false,
    };
    thread.kind == Kind::Platform && has_name && !thread.frames.iter().any(is_application)
}

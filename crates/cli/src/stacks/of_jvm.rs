//! Threads of the JVM itself, by their names: nobody who asks what a program does wants them.

use dwell_outside::Thread;
use dwell_outside::dump::Kind;

/// How their names begin, in the JDKs from 8 on.
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

/// Whether a thread is the JVM's own. The application may call one of its threads so, too: one with
/// frames of its own classes is the application's.
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

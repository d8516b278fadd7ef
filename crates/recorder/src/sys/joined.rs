//! Waiting for threads of ours to end, but not for ever. A thread without memory, or one that
//! waits for the process, must not delay a command or the end of the process.

use super::allocator;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A thread that is requested to end does so within a few ms.
pub const LIMIT: Duration = Duration::from_secs(2);
/// Time between two checks: the first value, and the maximum.
const PAUSE: Duration = Duration::from_micros(100);
const PAUSE_MAX: Duration = Duration::from_millis(5);

/// Waits until `thread` has ended, at most for `limit`, and returns its value. `None`: it has
/// panicked, or has not ended and continues detached.
pub fn value_within<T>(thread: JoinHandle<T>, limit: Duration) -> Option<T> {
    let until = Instant::now() + limit;
    let mut pause = PAUSE;
    while !thread.is_finished() {
        if Instant::now() >= until || allocator::is_waiting() {
            return None;
        }
        // Not a sleep: the thread may be one of Java, whose waits are recorded.
        std::thread::park_timeout(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
    thread.join().ok()
}

/// Waits until `thread` has ended, for the usual time.
pub fn join(thread: JoinHandle<()>) {
    let _ = value_within(thread, LIMIT);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn join_waits_for_an_end_but_not_for_ever() {
        let (end, waits) = channel::<()>();
        let thread = std::thread::spawn(move || waits.recv());
        assert!(value_within(thread, Duration::from_millis(20)).is_none());
        drop(end);
        let thread = std::thread::spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            7
        });
        assert_eq!(value_within(thread, Duration::from_secs(60)), Some(7));
    }
}

//! Threads that do not answer signals, as text for people.

use crate::reply::Reply;

/// Number of threads that no signal reaches, the reason, and the data that remain.
pub fn threads(reply: &Reply) -> Option<String> {
    let number = |key| reply.number(key).unwrap_or(0);
    let copied = match number("signal_copied") {
        0 => "only their CPU time is known".to_owned(),
        samples => format!("the kernel copied {samples} of their stacks"),
    };
    match (number("signal_blocked"), number("signal_queue_full")) {
        (0, 0) => None,
        (blocked, 0) => Some(format!(
            "{blocked} threads block signals, so that {copied}; unblock signal {signal} in them",
            signal = number("signal")
        )),
        (_, full) => Some(format!(
            "signals to {full} threads cannot be queued, so that {copied}; raise the limit of \
             pending signals (ulimit -i)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_without_signals_are_counted_with_the_reason() {
        let of = |text: &str| threads(&Reply::parse(text.as_bytes()).unwrap());
        assert_eq!(of("ok\nstate=running\n"), None);
        let text = "ok\nsignal=40\nsignal_blocked=3\nsignal_queue_full=0\nsignal_copied=9\n";
        let said = of(text).unwrap();
        assert!(said.starts_with("3 threads block signals"), "{said}");
        assert!(
            said.contains("the kernel copied 9 of their stacks"),
            "{said}"
        );
        assert!(said.ends_with("unblock signal 40 in them"), "{said}");
        let text = "ok\nsignal_blocked=1\nsignal_queue_full=2\nsignal_copied=0\n";
        let said = of(text).unwrap();
        assert!(
            said.starts_with("signals to 2 threads cannot be queued"),
            "{said}"
        );
        assert!(said.contains("only their CPU time is known"), "{said}");
    }
}

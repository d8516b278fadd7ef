//! Fills in details that wall-clock samples lack. A thread whose stack is known to be unchanged is
//! not asked again for the object that it waits for. Such samples get the details seen at their
//! place. It knows no recording.

use std::collections::HashMap;

use crate::builder::Builder;
use crate::frame::MethodId;
use crate::locked::class_of_detail;
use crate::locks::MonitorWait;
use crate::names::NameId;
use crate::platform::is_of_platform;
use crate::sample::{CauseId, ThreadId};
use crate::tree::NodeId;

/// Causes of waits of which one place waits for locks of one class, mostly.
const LOCKS: [&str; 2] = ["monitor", "lock"];

/// Details seen at a place: texts and the waiting time of each.
#[derive(Default)]
struct Seen(HashMap<NameId, u64>);

impl Seen {
    fn add(&mut self, detail: NameId, ns: u64) {
        let sum = self.0.entry(detail).or_default();
        *sum = sum.saturating_add(ns);
    }

    /// The only one, or, if `most`, the one that took most of the time.
    fn detail(&self, most: bool) -> Option<NameId> {
        let first = || self.0.iter().max_by_key(|(name, ns)| (**ns, **name));
        first()
            .filter(|_| most || self.0.len() == 1)
            .map(|(name, _)| *name)
    }
}

impl Builder {
    /// Completes wall-clock samples without a detail. The source is another sample of the same
    /// thread and stack, otherwise any sample of the stack or of the same method of the program.
    /// The detail is the class of a lock, or a peer or a file if there was only one.
    pub(crate) fn complete_details(&mut self) {
        let is_asked = |builder: &Builder, place: u32| {
            let look = builder.look_at(place);
            look.is_some_and(|look| look.detail.is_none())
        };
        let places = 0..self.looks_len();
        if !places.clone().any(|place| is_asked(self, place)) {
            return;
        }
        let mut of_threads: HashMap<(ThreadId, CauseId, NodeId), NameId> = HashMap::new();
        let mut of_nodes: HashMap<(CauseId, NodeId), Seen> = HashMap::new();
        let mut of_methods: HashMap<(CauseId, Option<MethodId>), Seen> = HashMap::new();
        let mut methods: HashMap<NodeId, Option<MethodId>> = HashMap::new();
        let mut method_of = |builder: &Builder, node| {
            *(methods.entry(node)).or_insert_with(|| builder.programs_method(node))
        };
        for place in places.clone() {
            let Some(look) = self.look_at(place).copied() else {
                break;
            };
            let Some(detail) = look.detail else { continue };
            of_threads.insert((look.thread, look.cause, look.node), detail);
            let class = match self.is_of_locks(look.cause) {
                // Which one of a class's monitors it was is not the same at each time.
                true => {
                    let class = class_of_detail(self.text(detail)).to_owned();
                    self.name(&class)
                }
                false => detail,
            };
            let of_node = of_nodes.entry((look.cause, look.node)).or_default();
            of_node.add(class, look.weight_ns);
            let method = method_of(self, look.node);
            let of_method = of_methods.entry((look.cause, method)).or_default();
            of_method.add(class, look.weight_ns);
        }
        for place in places {
            let Some(look) = self.look_at(place).copied() else {
                break;
            };
            if look.detail.is_some() {
                continue;
            }
            let is_lock = self.is_of_locks(look.cause);
            let own = of_threads.get(&(look.thread, look.cause, look.node));
            let of_node = || of_nodes.get(&(look.cause, look.node))?.detail(is_lock);
            let method = method_of(self, look.node);
            let of_method = || {
                let method = method.filter(|_| is_lock);
                of_methods.get(&(look.cause, Some(method?)))?.detail(true)
            };
            let detail = own.copied().or_else(of_node).or_else(of_method);
            self.set_detail(place, detail);
        }
    }

    /// Gives wall-clock samples of monitors the class of the wait that their thread was in at that
    /// time, if waits were recorded as well.
    pub(crate) fn name_monitors(&mut self) {
        let mut waits: HashMap<ThreadId, Vec<(u64, u64, NameId)>> = HashMap::new();
        // A class that begins like that is unknown: arrays have readable names.
        let is_known = |wait: &&MonitorWait| !self.text(wait.class).starts_with('[');
        for wait in self.monitor_waits.iter().filter(is_known) {
            let end_ns = wait.time_ns.saturating_add(wait.duration_ns);
            let of_thread = waits.entry(wait.thread).or_default();
            of_thread.push((wait.time_ns, end_ns, wait.class));
        }
        for of_thread in waits.values_mut() {
            of_thread.sort_unstable();
        }
        for place in 0..self.looks_len() {
            let Some(look) = self.look_at(place).copied() else {
                break;
            };
            if look.detail.is_some() || self.text(look.cause) != "monitor" {
                continue;
            }
            let Some(of_thread) = waits.get(&look.thread) else {
                continue;
            };
            // A thread waits for one monitor at a time, so the last wait that has begun is the one.
            let last_ns = look.time_ns.saturating_add(look.duration_ns);
            let begun = of_thread.partition_point(|(from_ns, ..)| *from_ns <= last_ns);
            let wait = begun.checked_sub(1).and_then(|at| of_thread.get(at));
            let class = wait.filter(|(_, end_ns, _)| *end_ns >= look.time_ns);
            self.set_detail(place, class.map(|(.., class)| *class));
        }
    }

    fn is_of_locks(&self, cause: CauseId) -> bool {
        LOCKS.contains(&self.text(cause))
    }

    /// The program's innermost method on a stack.
    fn programs_method(&self, node: NodeId) -> Option<MethodId> {
        let mut methods = self.java_methods(node);
        methods.find(|method| !is_of_platform(self.class_of(*method)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameKind;
    use crate::sample::Look;

    /// Details after completion of looks given as thread, cause, method and detail, each of the
    /// nanoseconds that its place says.
    fn completed(looks: &[(ThreadId, &str, &str, &str)]) -> Vec<String> {
        let mut builder = Builder::default();
        for thread in ["a", "b"] {
            builder.thread(thread, 1, 1, false);
        }
        for (place, (thread, cause, stack, detail)) in looks.iter().enumerate() {
            // A method of the program, and one of the JDK that it calls.
            let (own, called) = stack.split_once('>').unwrap_or((stack, "park"));
            let frames = [("app.A", own), ("java.lang.B", called)].map(|(class, name)| {
                let method = builder.method(class, name, "");
                builder.frame(method, 0, FrameKind::C2)
            });
            let node = builder.stack(frames);
            let cause = builder.cause(cause);
            let detail = (!detail.is_empty()).then(|| builder.cause(detail));
            builder.look(Look {
                time_ns: 0,
                duration_ns: 0,
                thread: *thread,
                node,
                cause,
                weight_ns: place as u64 + 1,
                count: 1,
                choices: 0,
                context: None,
                detail,
                owner: None,
                owner_node: None,
            });
        }
        builder.complete_details();
        let profile = builder.finish();
        let text = |look: &Look| {
            let detail = look.detail.map(|detail| profile.names().text(detail));
            detail.unwrap_or("").to_owned()
        };
        profile.looks().iter().map(text).collect()
    }

    #[test]
    fn lock_looks_without_a_class_get_that_of_their_place() {
        let told = completed(&[
            (0, "monitor", "book", "app.Ledger@7"),
            // The same thread is where it was: it waits for the same monitor.
            (0, "monitor", "book", ""),
            (1, "monitor", "book", ""),
            // Another line of the same method, and another method.
            (1, "monitor", "book>wait", ""),
            (1, "monitor", "read", ""),
            (1, "lock", "book", ""),
        ]);
        let expected = ["app.Ledger@7", "app.Ledger@7", "app.Ledger", "app.Ledger"];
        assert_eq!(told, [&expected[..], &["", ""]].concat());
    }

    #[test]
    fn lock_looks_without_a_class_get_the_one_waited_for_most() {
        let told = completed(&[
            (0, "lock", "book", "app.Rare"),
            (0, "lock", "book", "app.Common@1"),
            (0, "lock", "book", "app.Common@2"),
            (1, "lock", "book", ""),
        ]);
        assert_eq!(told[3], "app.Common");
    }

    #[test]
    fn peers_are_completed_only_where_there_was_one() {
        let one = [
            (0, "socket", "ask", "peer 10.0.0.7:5432"),
            (1, "socket", "ask", ""),
            (1, "socket", "ask>read", ""),
        ];
        let told = completed(&one);
        assert_eq!(told[1..], ["peer 10.0.0.7:5432", ""]);
        let other = (0, "socket", "ask", "peer 10.0.0.8:5432");
        let told = completed(&[&one[..], &[other]].concat());
        assert_eq!(told[1..3], ["", ""]);
    }
}

//! What threads waited for, where a look does not say it: a thread whose stack is known to be the
//! same as before is not asked again. Such looks belong to what was seen at their place. Knows no
//! recording.

use std::collections::HashMap;

use crate::builder::Builder;
use crate::frame::MethodId;
use crate::locked::class_of_detail;
use crate::names::NameId;
use crate::platform::is_of_platform;
use crate::sample::{CauseId, ThreadId};
use crate::tree::NodeId;

/// Causes of waits of which one place waits for locks of one class, mostly.
const LOCKS: [&str; 2] = ["monitor", "lock"];

/// What was seen at a place: texts and the time that was waited for each.
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
    /// Gives looks without a detail that of their own thread's looks at the same stack, else what
    /// was seen there, or in the same method of the program: the class of a lock, or a peer or a
    /// file if there was only one.
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

    fn is_of_locks(&self, cause: CauseId) -> bool {
        LOCKS.contains(&self.text(cause))
    }

    /// The program's innermost method on a stack.
    fn programs_method(&self, node: NodeId) -> Option<MethodId> {
        let mut methods = self.java_methods(node);
        methods.find(|method| !is_of_platform(self.class_of(*method)))
    }
}

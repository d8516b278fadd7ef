//! Endpoints of programs that name none: the handler of the application that a known framework
//! called, found in the stacks. Pure.
//!
//! A sample has such an endpoint if its stack goes through an entry of a framework ([`frameworks`])
//! and through a method of the application below it. The first such method is the handler. An idle
//! thread of a pool waits above all handlers, so it has no endpoint.
//!
//! Only recordings without any endpoint and any request get them: two kinds of endpoints in one
//! table could not be compared.

mod frameworks;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::diff::stable;
use crate::frame::MethodId;
use crate::names::NameId;
use crate::profile::Profile;
use crate::sample::{Context, ContextId};
use crate::tree::NodeId;
use dwell_jfr::hash::Seeds;
use frameworks::{Entry, Part};

/// The end of each endpoint that comes from stacks.
pub const DERIVED_MARK: &str = " (from stacks)";
/// Marks in the names of classes that bean tools generate: the part after the mark is not from the
/// application.
const SUBCLASSES: [&str; 5] = [
    "$$SpringCGLIB$$",
    "$$Enhancer",
    "$Proxy$_$$_Weld",
    "_ClientProxy",
    "_Subclass",
];
/// The same in names of methods.
const SUPER_CALL: &str = "$$superforward";

/// The state of a node: of the stack that ends there.
#[derive(Clone, Copy, Default)]
struct State {
    /// The handler on the stack.
    handler: Option<MethodId>,
    /// The layer of the entry that the handler was found below; 0: there is no handler.
    layer: u8,
    /// The entry whose handler is looked for.
    open: Option<&'static Entry>,
    /// Whether the node's own frame is the handler, or one of its class that the handler called:
    /// bridge methods of the compiler stand before the real ones.
    is_handler: bool,
}

impl State {
    /// The state of a node whose frame is such a part, below a node with this state.
    /// `is_alike`: whether the class of that frame is the handler's.
    fn below(self, part: Part, method: MethodId, is_alike: bool) -> State {
        let mut state = State {
            is_handler: false,
            ..self
        };
        match part {
            Part::Entry(entry) => {
                // A filter that passes a request on is not what the request is for.
                let passes_on = self.is_handler && entry.is_chain;
                if self.handler.is_none() || entry.layer > self.layer || passes_on {
                    state.open = Some(entry);
                }
            }
            Part::Through => {}
            Part::Library(library) => state.open = self.open.filter(|entry| entry.uses(library)),
            Part::Application => {
                if let Some(entry) = self.open {
                    state = State {
                        handler: Some(method),
                        layer: entry.layer,
                        open: None,
                        is_handler: true,
                    };
                } else {
                    state.is_handler = self.is_handler && is_alike;
                }
            }
        }
        state
    }
}

impl Profile {
    /// Whether endpoints are handlers found in stacks, and not what the program named. Then there
    /// are no requests, and nothing is known of their number and latencies.
    #[must_use]
    pub fn has_derived_endpoints(&self) -> bool {
        self.derived_endpoints
    }

    /// Gives samples, looks, allocations and waits for monitors the endpoints that their stacks
    /// show, if the program has named none. A context keeps its ids.
    pub fn derive_endpoints(&mut self) {
        let is_named = self.contexts.iter().any(|it| it.endpoint.is_some());
        // With `filter=context`, a context says that the thread worked for a request.
        if is_named || !self.requests.is_empty() || self.is_of_requests() {
            return;
        }
        let Some(handlers) = self.handlers() else {
            return;
        };
        let mut named = Named {
            endpoints: self.endpoints_of(&handlers),
            handlers,
            contexts: std::mem::take(&mut self.contexts),
            known: HashMap::default(),
        };
        for sample in &mut self.samples {
            named.complete(sample.node, &mut sample.context);
        }
        for look in &mut self.looks {
            named.complete(look.node, &mut look.context);
        }
        for allocation in &mut self.allocations {
            named.complete(allocation.node, &mut allocation.context);
        }
        for object in &mut self.live {
            named.complete(object.allocated.node, &mut object.allocated.context);
        }
        for wait in &mut self.monitor_waits {
            named.complete(wait.node, &mut wait.context);
        }
        self.derived_endpoints = !named.known.is_empty();
        self.contexts = named.contexts;
    }

    /// The handler on the stack of each node; `None` if no stack has an entry.
    fn handlers(&self) -> Option<Vec<Option<MethodId>>> {
        let classes = self.methods.iter().map(|it| self.names.text(it.class));
        let names = self.methods.iter().map(|it| self.names.text(it.name));
        let parts: Vec<Part> = classes.zip(names).map(|(c, m)| Part::of(c, m)).collect();
        if !parts.iter().any(|part| matches!(part, Part::Entry(_))) {
            return None;
        }
        let tree = &self.tree;
        let class_of = |id: MethodId| self.methods.get(id as usize).map(|it| it.class);
        let mut states = vec![State::default(); tree.len()];
        for node in 1..tree.len() {
            // Parents come before their children.
            let parent = tree.parent(node as NodeId) as usize;
            let above = states.get(parent).copied().unwrap_or_default();
            let frame = self.frames.get(tree.key(node as NodeId) as usize);
            let method = frame.filter(|it| it.kind.is_java()).map(|it| it.method);
            let part = method.and_then(|method| Some((*parts.get(method as usize)?, method)));
            if let Some(state) = states.get_mut(node) {
                *state = match part {
                    Some((part, method)) => {
                        let of_handler = above.handler.and_then(class_of);
                        above.below(part, method, of_handler == class_of(method))
                    }
                    // Native code does not change the state.
                    None => above,
                };
            }
        }
        Some(states.into_iter().map(|state| state.handler).collect())
    }

    /// The endpoint of each handler: its class without the package, unless two classes share that,
    /// and its name.
    fn endpoints_of(&mut self, handlers: &[Option<MethodId>]) -> HashMap<MethodId, NameId, Seeds> {
        let used: BTreeSet<MethodId> = handlers.iter().copied().flatten().collect();
        let names: Vec<(MethodId, String, String)> = (used.iter())
            .filter_map(|id| {
                let method = self.methods.get(*id as usize)?;
                let class = stable(own_class(self.names.text(method.class)));
                let name = self.names.text(method.name);
                let name = name.split(SUPER_CALL).next().unwrap_or(name);
                Some((*id, class, name.to_owned()))
            })
            .collect();
        let mut by_simple: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (_, class, _) in &names {
            by_simple.entry(simple(class)).or_default().insert(class);
        }
        let is_alone = |class: &str| by_simple.get(simple(class)).is_none_or(|all| all.len() < 2);
        let text = |(id, class, name): &(MethodId, String, String)| {
            let class = match is_alone(class) {
                true => simple(class),
                false => class,
            };
            (*id, format!("{class}.{name}{DERIVED_MARK}"))
        };
        let texts: Vec<(MethodId, String)> = names.iter().map(text).collect();
        let texts = texts.into_iter();
        texts
            .map(|(id, text)| (id, self.names.intern(&text)))
            .collect()
    }
}

/// Endpoints by node, and the contexts that have them.
struct Named {
    endpoints: HashMap<MethodId, NameId, Seeds>,
    /// By node.
    handlers: Vec<Option<MethodId>>,
    contexts: Vec<Context>,
    known: HashMap<(Option<ContextId>, NameId), ContextId, Seeds>,
}

impl Named {
    /// Adds the endpoint of a node to a context, if it has one.
    fn complete(&mut self, node: NodeId, context: &mut Option<ContextId>) {
        let handler = self.handlers.get(node as usize).copied().flatten();
        let endpoint = handler.and_then(|handler| self.endpoints.get(&handler));
        let Some(endpoint) = endpoint.copied() else {
            return;
        };
        let next = self.contexts.len() as ContextId;
        let id = *self.known.entry((*context, endpoint)).or_insert(next);
        if id == next {
            let before = context.and_then(|id| self.contexts.get(id as usize));
            let before = before.cloned().unwrap_or_default();
            self.contexts.push(Context {
                endpoint: Some(endpoint),
                ..before
            });
        }
        *context = Some(id);
    }
}

/// The class that a tool has made a subclass or a proxy of; else the class.
fn own_class(class: &str) -> &str {
    let places = SUBCLASSES.iter().filter_map(|mark| class.find(mark));
    let end = places.min().filter(|end| *end > 0);
    end.and_then(|end| class.get(..end)).unwrap_or(class)
}

/// A class without its package.
fn simple(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

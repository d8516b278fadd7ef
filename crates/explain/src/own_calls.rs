//! Calls of the application alone: stacks reduced to its own methods, with the time of each method
//! itself and in the libraries that it calls. Frames of servers and libraries between two methods
//! of the application do not split them.

use crate::application::own_methods;
use dwell_profile::{MethodId, NodeId, Profile, Weight};
use std::collections::HashMap;

/// How far a method is looked for on its own stack: recursion is folded.
const RECURSION_MAX: usize = 256;
/// If one call keeps this part of the time, that call is the cost, not its caller.
const KEEPS: f64 = 0.8;

/// A call of a method of the application, by all the application's methods above it.
struct Call {
    parent: usize,
    method: MethodId,
    /// Time in the method itself and in libraries.
    direct: Weight,
    /// The same with the application's methods that it calls.
    all: Weight,
    children: Vec<usize>,
}

/// Where much is spent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The application's method.
    pub(crate) method: MethodId,
    pub(crate) weight: Weight,
    call: usize,
    /// Whether only the time in the method itself and in libraries counts.
    is_direct: bool,
}

/// All calls.
pub(crate) struct OwnCalls {
    calls: Vec<Call>,
    /// By node: its call, and the method that the application calls there.
    nodes: Vec<(usize, Option<MethodId>)>,
}

impl OwnCalls {
    /// The calls that these weights, by node, were spent in.
    pub(crate) fn new(profile: &Profile, weights: &[Weight]) -> OwnCalls {
        let own = own_methods(profile);
        let is_own = |method: MethodId| own.get(method as usize) == Some(&true);
        let tree = profile.tree();
        let root = Call {
            parent: 0,
            method: 0,
            direct: Weight::default(),
            all: Weight::default(),
            children: Vec::new(),
        };
        let mut of = OwnCalls {
            calls: vec![root],
            nodes: vec![(0, None); tree.len()],
        };
        let mut known: HashMap<(usize, MethodId), usize> = HashMap::new();
        // Nodes that nothing was spent in or below have no calls.
        let totals = tree.totals(weights);
        // Parents come before their children.
        for node in 1..tree.len() {
            if totals.get(node).is_none_or(|total| total.samples == 0) {
                continue;
            }
            let parent = tree.parent(node as NodeId) as usize;
            let above = of.nodes.get(parent).copied().unwrap_or_default();
            let frame = profile.frames().get(tree.key(node as NodeId) as usize);
            let java = frame.filter(|frame| frame.kind.is_java());
            let at = match java.map(|frame| frame.method) {
                Some(method) if is_own(method) => (of.call(&mut known, above.0, method), None),
                Some(method) => (above.0, above.1.or(Some(method))),
                None => above,
            };
            if let Some(place) = of.nodes.get_mut(node) {
                *place = at;
            }
        }
        for (place, weight) in of.nodes.iter().zip(weights) {
            if let Some(call) = of.calls.get_mut(place.0) {
                call.direct += weight;
            }
        }
        of.sum();
        of
    }

    /// The call of a method in another call. A method that is already on the stack keeps its call.
    fn call(
        &mut self,
        known: &mut HashMap<(usize, MethodId), usize>,
        above: usize,
        method: MethodId,
    ) -> usize {
        if let Some(call) = known.get(&(above, method)) {
            return *call;
        }
        let mut at = above;
        let mut call = None;
        for _ in 0..RECURSION_MAX {
            let Some(of) = self.calls.get(at).filter(|_| at != 0) else {
                break;
            };
            if of.method == method {
                call = Some(at);
                break;
            }
            at = of.parent;
        }
        let call = call.unwrap_or_else(|| {
            self.calls.push(Call {
                parent: above,
                method,
                direct: Weight::default(),
                all: Weight::default(),
                children: Vec::new(),
            });
            self.calls.len() - 1
        });
        known.insert((above, method), call);
        call
    }

    fn sum(&mut self) {
        for at in (0..self.calls.len()).rev() {
            let Some(call) = self.calls.get_mut(at) else {
                continue;
            };
            call.all += &call.direct.clone();
            let (parent, all) = (call.parent, call.all);
            if at == 0 {
                continue;
            }
            if let Some(parent) = self.calls.get_mut(parent) {
                parent.all += &all;
                parent.children.push(at);
            }
        }
    }

    /// Where at least this much is spent, the most first: from the root downwards as long as one
    /// call keeps most of the time; where it forks, along each branch that is large enough.
    pub(crate) fn places(&self, least: u64) -> Vec<Place> {
        let (mut places, mut open) = (Vec::new(), vec![0]);
        while let Some(at) = open.pop() {
            let Some(call) = self.calls.get(at) else {
                continue;
            };
            let children = call.children.iter();
            let mut children: Vec<(usize, u64)> = children
                .filter_map(|child| Some((*child, self.calls.get(*child)?.all.sum)))
                .collect();
            children.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
            let keeps = |ns: u64| ns as f64 >= KEEPS * call.all.sum.max(1) as f64;
            if let Some((child, _)) = children.first().filter(|(_, ns)| keeps(*ns)) {
                open.push(*child);
                continue;
            }
            let large = children.iter().filter(|(_, ns)| *ns >= least);
            let large: Vec<usize> = large.map(|(child, _)| *child).collect();
            let is_direct = keeps(call.direct.sum) || !large.is_empty();
            let weight = match is_direct {
                true => call.direct,
                false => call.all,
            };
            if at != 0 && weight.sum >= least {
                places.push(Place {
                    method: call.method,
                    weight,
                    call: at,
                    is_direct,
                });
            }
            open.extend(large);
        }
        places.sort_by_key(|place| std::cmp::Reverse(place.weight.sum));
        places
    }

    /// The nodes of a place, each with the library's method that the place calls there, if it does.
    pub(crate) fn nodes_of(
        &self,
        place: &Place,
    ) -> impl Iterator<Item = (NodeId, Option<MethodId>)> {
        let inside = self.inside(place);
        let nodes = self.nodes.iter().zip(0..);
        nodes
            .filter(move |((call, _), _)| inside.get(*call) == Some(&true))
            .map(|((call, called), node)| (node, called.filter(|_| *call == place.call)))
    }

    /// The calls that a place stands for.
    fn inside(&self, place: &Place) -> Vec<bool> {
        let mut inside = vec![false; self.calls.len()];
        for (at, call) in self.calls.iter().enumerate().skip(place.call) {
            // Parents come before their children.
            let of_parent = !place.is_direct && inside.get(call.parent) == Some(&true);
            if let Some(is) = inside.get_mut(at) {
                *is = at == place.call || (of_parent && at != 0);
            }
        }
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    /// Places of at least 120 ms with their sums in ms, of stacks with one sample of 1 ms each.
    fn places(stacks: &[(&str, u64)]) -> Vec<(String, u64)> {
        let mut art = Art::default();
        for (stack, count) in stacks {
            art.cpu("w", "", stack, *count, 1);
        }
        let mut found = Vec::new();
        art.with_facts(|facts| {
            let calls = OwnCalls::new(facts.profile, &facts.program_cpu);
            let places = calls.places(120_000_000);
            let places = places.iter();
            found = places
                .map(|at| (facts.stacks.name(at.method), at.weight.sum / 1_000_000))
                .collect();
        });
        found
    }

    fn told(places: &[(&str, u64)]) -> Vec<(String, u64)> {
        places
            .iter()
            .map(|(name, ms)| ((*name).to_owned(), *ms))
            .collect()
    }

    #[test]
    fn library_that_splits_into_nothing_is_one_cost() {
        let inside = |part: u64| format!("org.h2.P{part}.run;org.h2.Jdbc.ask;app.Orders.price");
        let mut stacks: Vec<(String, u64)> = Vec::new();
        for part in 0..36 {
            let above = "app.Orders.handle;io.netty.Server.run";
            stacks.push((format!("{};{above}", inside(part)), 10));
        }
        for part in 0..64 {
            stacks.push((format!("app.M{part}.run;io.netty.Server.run"), 10));
        }
        let stacks: Vec<(&str, u64)> = stacks.iter().map(|(s, n)| (s.as_str(), *n)).collect();
        assert_eq!(places(&stacks), told(&[("app.Orders.price", 360)]));
    }

    #[test]
    fn branches_of_a_fork_are_places_of_their_own() {
        let found = places(&[
            ("app.A.deep;app.A.get;app.Main.run", 400),
            ("app.B.one;app.B.get;app.Main.run", 150),
            ("app.B.two;app.B.get;app.Main.run", 100),
            ("java.util.X.y;app.Main.run", 350),
        ]);
        let expected = [
            ("app.A.deep", 400),
            ("app.Main.run", 350),
            ("app.B.one", 150),
        ];
        assert_eq!(found, told(&expected));
    }

    #[test]
    fn recursion_is_one_call() {
        let found = places(&[
            ("app.T.walk;app.T.walk;app.T.walk;app.Main.run", 100),
            (
                "org.lib.L.x;app.T.walk;app.T.visit;app.T.walk;app.Main.run",
                100,
            ),
            ("app.Main.run", 20),
        ]);
        assert_eq!(found, told(&[("app.T.walk", 200)]));
    }
}

//! The service of a library that works in each node of a call tree. If one service uses another, it
//! is the one that the program calls.

use crate::names::Set;
use crate::stacks::Stacks;
use dwell_profile::{MethodId, NodeId, Profile, Weight};

/// Methods that call another one by reflection.
const CALLERS: &[&str] = &[
    "java.lang.reflect.Method.invoke",
    "java.lang.reflect.Constructor.newInstance*",
    "java.lang.Class.newInstance",
    "jdk.internal.reflect.*.invoke*",
    "jdk.internal.reflect.*.newInstance*",
    "sun.reflect.*.invoke*",
    "sun.reflect.*.newInstance*",
];
/// Parts of such a call itself.
const PARTS: &[&str] = &[
    "java.lang.reflect.*",
    "java.lang.invoke.*",
    "java.lang.Class.*",
    "jdk.internal.reflect.*",
    "sun.reflect.*",
];

/// A service's place in the list that was asked for, by node; made once for an explanation.
pub(crate) struct Services(Vec<Option<u8>>);

impl Services {
    /// Looks at the nodes with samples. `services` are patterns of the methods of each.
    pub(crate) fn new(
        profile: &Profile,
        stacks: &Stacks<'_>,
        cpu: &[Weight],
        services: &[&[&str]],
    ) -> Services {
        let sets = services.iter().map(|patterns| Set::new(profile, patterns));
        let sets: Vec<Set> = sets.collect();
        let of_method = |method: MethodId| {
            let at = sets.iter().position(|set| set.has(method));
            at.map(|at| at as u8)
        };
        let (callers, parts) = (Set::new(profile, CALLERS), Set::new(profile, PARTS));
        let any = sets.iter().any(|set| !set.is_empty());
        let nodes = cpu.iter().enumerate().map(|(node, weight)| {
            let is_asked = any && weight.samples > 0;
            // The last one on the way outwards is the one that the program calls.
            is_asked
                .then(|| stacks.outermost_of_top(node as NodeId, &callers, &parts, of_method))
                .flatten()
        });
        Services(nodes.collect())
    }

    /// The service that works in a node.
    pub(crate) fn at(&self, node: NodeId) -> Option<usize> {
        let at = self.0.get(node as usize).copied().flatten();
        at.map(usize::from)
    }
}

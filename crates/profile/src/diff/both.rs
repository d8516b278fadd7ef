//! Two profiles joined into one, the second after the first, for a page that compares them.
//! Generated names are replaced by names that are the same in each run ([`stable`]).

use std::collections::HashMap;

use super::stable;
use crate::builder::Builder;
use crate::frame::FrameId;
use crate::profile::{Profile, Unit};
use crate::sample::{Context, ContextId, Look, Sample, ThreadId};
use crate::tree::{CallTree, NodeId};

/// Two profiles as one.
#[derive(Clone, Debug)]
pub struct Both {
    /// CPU and wall-clock samples of both; times begin at 0, those of the second profile after the
    /// first's. Other data of the profiles is left out.
    pub profile: Profile,
    /// The threads below this number are the first profile's.
    pub threads_of_a: ThreadId,
}

/// The ids of a profile in the joined one.
struct Mapped {
    first_thread: ThreadId,
    nodes: Vec<NodeId>,
    contexts: Vec<ContextId>,
    /// Added to its times.
    later_ns: u64,
}

/// Puts two profiles into one.
#[must_use]
pub fn both(a: &Profile, b: &Profile) -> Both {
    let mut builder = Builder::default();
    // Weights of two units can be compared as shares of their own whole only.
    builder.unit = match a.unit() == b.unit() {
        true => a.unit(),
        false => Unit::Samples,
    };
    // Each profile has its own bins, so both use the coarser size.
    builder.bin_ns = a.bin_ns().max(b.bin_ns());
    let has_wall = a.has_wall() && b.has_wall();
    let lasted = a.info().duration_ns;
    builder.info.duration_ns = lasted.saturating_add(b.info().duration_ns);
    builder.info.measured = a.info().measured.clone();
    // The wall time of running samples that are only counted.
    builder.info.event_waits = a.info().event_waits.and(b.info().event_waits);
    builder.info.profiler_version = a.info().profiler_version.clone();
    if a.info().options == b.info().options {
        builder.info.options = a.info().options.clone();
    }
    let threads_of_a = ThreadId::try_from(a.threads().len()).unwrap_or(ThreadId::MAX);
    let libraries = libraries(a, b);
    for (profile, later_ns) in [(a, 0), (b, lasted)] {
        let mapped = tables(&mut builder, profile, &libraries, later_ns);
        samples(&mut builder, profile, &mapped);
        if has_wall {
            looks(&mut builder, profile, &mapped);
        }
    }
    let mut profile = builder.finish();
    profile.derived_endpoints = a.has_derived_endpoints() || b.has_derived_endpoints();
    Both {
        profile,
        threads_of_a,
    }
}

/// Adds threads, stacks and contexts.
fn tables(
    builder: &mut Builder,
    profile: &Profile,
    libraries: &HashMap<String, &str>,
    later_ns: u64,
) -> Mapped {
    let names = profile.names();
    let mut first_thread = None;
    for thread in profile.threads() {
        let name = names.text(thread.name);
        let id = builder.thread(name, thread.os_tid, thread.java_tid, thread.is_virtual);
        first_thread.get_or_insert(id);
    }
    Mapped {
        first_thread: first_thread.unwrap_or(0),
        nodes: nodes(builder, profile, libraries),
        contexts: contexts(builder, profile),
        later_ns,
    }
}

/// The library of each class. For a comparison, another version of a class's jar is the same: the
/// first one has all of its methods.
fn libraries<'p>(a: &'p Profile, b: &'p Profile) -> HashMap<String, &'p str> {
    let mut libraries = HashMap::new();
    for profile in [a, b] {
        for method in profile.methods() {
            if let Some(library) = method.library {
                let class = stable_class(profile.names().text(method.class));
                let library = profile.names().text(library);
                libraries.entry(class).or_insert(library);
            }
        }
    }
    libraries
}

fn stable_class(class: &str) -> String {
    // A class's counters end where the method's name begins.
    let class = stable(&format!("{class}."));
    class.strip_suffix('.').unwrap_or(&class).to_owned()
}

fn nodes(
    builder: &mut Builder,
    profile: &Profile,
    libraries: &HashMap<String, &str>,
) -> Vec<NodeId> {
    let names = profile.names();
    let methods: Vec<u32> = (profile.methods().iter())
        .map(|method| {
            let class = stable_class(names.text(method.class));
            let name = stable(names.text(method.name));
            let descriptor = names.text(method.descriptor);
            let library = libraries.get(&class).copied();
            builder.method_of(library, &class, &name, descriptor)
        })
        .collect();
    let frames: Vec<FrameId> = (profile.frames().iter())
        .map(|frame| {
            let method = methods.get(frame.method as usize).copied();
            builder.frame(method.unwrap_or(0), frame.line, frame.kind)
        })
        .collect();
    let tree = profile.tree();
    let mut nodes: Vec<NodeId> = Vec::with_capacity(tree.len());
    for (node, (&parent, &key)) in tree.parents().iter().zip(tree.keys()).enumerate() {
        let above = nodes.get(parent as usize).copied();
        let frame = frames.get(key as usize).copied();
        nodes.push(match (node, above, frame) {
            (1.., Some(above), Some(frame)) => builder.child(above, frame),
            _ => CallTree::ROOT,
        });
    }
    nodes
}

/// Of contexts only the endpoint is kept: traces are not the same in two runs.
fn contexts(builder: &mut Builder, profile: &Profile) -> Vec<ContextId> {
    let contexts = profile.contexts().iter();
    let mapped = contexts.map(|context| {
        let endpoint = context.endpoint;
        let endpoint = endpoint.map(|name| builder.name(profile.names().text(name)));
        builder.context(Context {
            endpoint,
            ..Context::default()
        })
    });
    mapped.collect()
}

impl Mapped {
    fn node(&self, node: NodeId) -> NodeId {
        let node = self.nodes.get(node as usize);
        node.copied().unwrap_or(CallTree::ROOT)
    }

    fn context(&self, context: Option<ContextId>) -> Option<ContextId> {
        self.contexts.get(context? as usize).copied()
    }

    fn thread(&self, thread: ThreadId) -> ThreadId {
        self.first_thread.saturating_add(thread)
    }

    fn time_ns(&self, profile: &Profile, time_ns: u64) -> u64 {
        let since = time_ns.saturating_sub(profile.info().start_ns);
        since.saturating_add(self.later_ns)
    }
}

fn samples(builder: &mut Builder, profile: &Profile, mapped: &Mapped) {
    for sample in profile.samples() {
        let failure = sample.failure;
        let failure = failure.map(|cause| builder.cause(profile.names().text(cause)));
        builder.sample(Sample {
            time_ns: mapped.time_ns(profile, sample.time_ns),
            thread: mapped.thread(sample.thread),
            node: mapped.node(sample.node),
            weight: sample.weight,
            count: sample.count,
            failure,
            context: mapped.context(sample.context),
        });
    }
}

fn looks(builder: &mut Builder, profile: &Profile, mapped: &Mapped) {
    let names = profile.names();
    for look in profile.looks() {
        let cause = builder.cause(names.text(look.cause));
        let detail = look.detail.map(|name| builder.name(names.text(name)));
        builder.look(Look {
            time_ns: mapped.time_ns(profile, look.time_ns),
            thread: mapped.thread(look.thread),
            node: mapped.node(look.node),
            cause,
            context: mapped.context(look.context),
            detail,
            owner: look.owner.map(|owner| mapped.thread(owner)),
            owner_node: look.owner_node.map(|node| mapped.node(node)),
            ..*look
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_art;

    fn art(text: &str, seconds: u64) -> Profile {
        let mut builder = text_art::builder(text);
        builder.info.duration_ns = seconds * 1_000_000_000;
        builder.info.start_ns = 5_000;
        builder.finish()
    }

    #[test]
    fn stacks_of_one_name_are_one_and_threads_are_not() {
        let a = art(
            "thread: main  gc
             weight: 10    20
             a.A$$Lambda$1+0x00ab.x  v.V.gc
             a.A.y                   -",
            1,
        );
        let b = art(
            "thread: main
             weight: 7
             a.A$$Lambda$2+0x00cd.x
             a.A.y",
            2,
        );
        let both = both(&a, &b);
        let profile = &both.profile;
        assert_eq!((both.threads_of_a, profile.threads().len()), (2, 3));
        assert_eq!(profile.info().duration_ns, 3_000_000_000);
        let samples = profile.samples();
        assert_eq!(samples[0].node, samples[2].node);
        assert_ne!(samples[0].thread, samples[2].thread);
        assert_eq!(profile.thread_name(samples[2].thread), "main");
        assert!(samples[2].time_ns >= 1_000_000_000);
        // As many nodes as the stacks of both have together: x, x y, gc, and the root.
        assert_eq!(profile.tree().len(), 4);
        let weight =
            |is_a: bool| profile.sum_where(|sample| (sample.thread < both.threads_of_a) == is_a);
        assert_eq!((weight(true).sum, weight(false).sum), (30, 7));
    }

    #[test]
    fn options_are_those_of_both_if_they_had_the_same() {
        let of = |options: &str| {
            let mut builder = text_art::builder("a.A.x");
            builder.info.options = options.to_owned();
            builder.finish()
        };
        let options = |a, b| both(&of(a), &of(b)).profile.info().options.clone();
        assert_eq!(options("cpu=1ms", "cpu=1ms"), "cpu=1ms");
        assert_eq!(options("cpu=1ms", "cpu=2ms"), "");
    }

    #[test]
    fn the_coarser_bins_are_those_of_both() {
        let of = |bin_ns: u64| {
            let mut builder = text_art::builder("a.A.x");
            builder.bin_ns = bin_ns;
            builder.finish()
        };
        let bins = |a, b| both(&of(a), &of(b)).profile.bin_ns();
        assert_eq!((bins(0, 7), bins(9, 7), bins(0, 0)), (7, 9, 0));
    }

    #[test]
    fn wall_time_is_there_if_both_have_it() {
        let of = |has: bool| {
            let mut builder = text_art::builder("a.A.x");
            let cause = builder.cause("park");
            if has {
                builder.look(Look {
                    time_ns: 0,
                    duration_ns: 0,
                    thread: 0,
                    node: 1,
                    cause,
                    weight_ns: 3,
                    count: 1,
                    choices: 0,
                    context: None,
                    detail: None,
                    owner: Some(0),
                    owner_node: None,
                });
            }
            builder.finish()
        };
        assert!(!both(&of(true), &of(false)).profile.has_wall());
        let two = both(&of(true), &of(true));
        let looks = two.profile.looks();
        assert_eq!((looks.len(), looks[1].owner), (2, Some(1)));
        assert_eq!(looks[0].cause, looks[1].cause);
    }
}

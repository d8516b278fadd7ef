//! Objects that were allocated and chosen, and what they stand for.

use std::collections::HashMap;

use dwell_jfr::reader::{GenericEvent, Recording, Value};

use crate::aggregate::{GroupBy, Row, sort_by_total};
use crate::builder::Builder;
use crate::contexts::Contexts;
use crate::frame::FrameKind;
use crate::names::NameId;
use crate::profile::Profile;
use crate::sample::{ContextId, ThreadId, Weight};
use crate::tree::NodeId;

/// Events of objects that were allocated.
const SAMPLES: &str = "jdk.ObjectAllocationSample";

/// An object that was allocated and chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// The thread; the virtual one where one was mounted.
    pub thread: ThreadId,
    /// The stack, and innermost a frame for the class.
    pub node: NodeId,
    /// The class, as in Java (`byte[]`).
    pub class: NameId,
    /// The bytes of allocated objects that it stands for.
    pub bytes: u64,
    /// Its own size in bytes; 0 if the recording does not say.
    pub size: u64,
    /// What the thread worked for, if it said.
    pub context: Option<ContextId>,
}

impl Allocation {
    /// The allocated objects that it stands for; 0 if its size is not known.
    #[must_use]
    pub fn objects(&self) -> f64 {
        match self.size {
            0 => 0.0,
            size => self.bytes as f64 / size as f64,
        }
    }

    /// The bytes as a weight. An object of size s that stands for w bytes was chosen with a chance
    /// of s/w, so what it adds to the variance is w^2 (1 - s/w): nothing where each one is chosen.
    #[must_use]
    pub fn weight(&self) -> Weight {
        let rest = self.bytes.saturating_sub(self.size);
        Weight {
            sum: self.bytes,
            squares: self.bytes as f64 * rest as f64,
            samples: 1,
            heaviest: 0.0,
        }
    }
}

/// What a recording says of its samples of allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationSampling {
    /// The bytes between two samples, in the mean.
    pub interval_bytes: u64,
    /// Samples that were taken but not kept.
    pub lost: u64,
    /// The bytes that these stood for.
    pub lost_bytes: u64,
}

/// What of one class was allocated.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocatedClass {
    /// The class, as in Java.
    pub name: String,
    /// The bytes.
    pub bytes: Weight,
    /// The objects, estimated; 0 if the recording does not say.
    pub objects: f64,
}

impl Profile {
    /// Objects that were allocated and chosen, in the order of the recording.
    #[must_use]
    pub fn allocations(&self) -> &[Allocation] {
        &self.allocations
    }

    /// Whether the recording has allocations, be it none of them.
    #[must_use]
    pub fn has_allocations(&self) -> bool {
        !self.allocations.is_empty() || self.allocation_sampling.is_some()
    }

    /// How allocations were sampled, if the recording says.
    #[must_use]
    pub fn allocation_sampling(&self) -> Option<&AllocationSampling> {
        self.allocation_sampling.as_ref()
    }

    /// All allocated bytes.
    #[must_use]
    pub fn allocated(&self) -> Weight {
        let mut sum = Weight::default();
        for allocation in &self.allocations {
            sum += &allocation.weight();
        }
        sum
    }

    /// What was allocated by class, the most bytes first.
    #[must_use]
    pub fn allocated_classes(&self) -> Vec<AllocatedClass> {
        let mut sums: HashMap<NameId, (Weight, f64)> = HashMap::new();
        for allocation in &self.allocations {
            let sum = sums.entry(allocation.class).or_default();
            sum.0 += &allocation.weight();
            sum.1 += allocation.objects();
        }
        let row = |(class, (bytes, objects))| AllocatedClass {
            name: self.names.text(class).to_owned(),
            bytes,
            objects,
        };
        let mut rows: Vec<AllocatedClass> = sums.into_iter().map(row).collect();
        rows.sort_by(|a, b| {
            let by_bytes = b.bytes.sum.cmp(&a.bytes.sum);
            by_bytes.then_with(|| a.name.cmp(&b.name))
        });
        rows
    }

    /// The methods that allocated, by the bytes that they, or those that they called, did: the most
    /// in all first. Classes have no rows of their own.
    #[must_use]
    pub fn allocating_methods(&self) -> Vec<Row> {
        let grouped = self.group(GroupBy::Method);
        let mut by_node = vec![Weight::default(); self.tree.len()];
        for allocation in &self.allocations {
            let stack = self.tree.parent(allocation.node);
            if let Some(weight) = by_node.get_mut(stack as usize) {
                *weight += &allocation.weight();
            }
        }
        let (own, total) = self.sums(&grouped, &by_node);
        let row = |(name, (own, total))| Row { name, own, total };
        let rows = grouped.names.into_iter().zip(own.into_iter().zip(total));
        let mut rows: Vec<Row> = rows.map(row).filter(|row| row.total.samples > 0).collect();
        sort_by_total(&mut rows);
        rows
    }
}

/// Reads the events; `node_of` gives the node of a stack of the recording and a failure.
pub(crate) fn add(
    builder: &mut Builder,
    recording: &Recording,
    contexts: &Contexts<'_>,
    mut node_of: impl FnMut(&mut Builder, Option<u32>, Option<&str>) -> NodeId,
) {
    let mut nobody = None;
    for event in recording.events_named(SAMPLES) {
        let thread = match event.get("eventThread") {
            Some(Value::Thread(thread)) => *thread,
            _ => *nobody.get_or_insert_with(|| builder.thread("[unknown thread]", 0, 0, false)),
        };
        let stack = match event.get("stackTrace") {
            Some(Value::Stack(stack)) => Some(*stack),
            _ => None,
        };
        let failure = event.text("failure").filter(|text| !text.is_empty());
        let stack = node_of(builder, stack, failure);
        let class = readable_class(event.text("objectClass").unwrap_or("[unknown class]"));
        let frame = builder.marker(&class, FrameKind::Other);
        let node = builder.child(stack, frame);
        let class = builder.name(&class);
        let context = contexts.of_event(event, builder);
        builder.allocations.push(Allocation {
            time_ns: event.time_ns,
            thread,
            node,
            class,
            bytes: count(event, "weight"),
            size: count(event, "objectSize"),
            context,
        });
    }
    let sums = recording.events_named("dwell.Allocations");
    builder.allocation_sampling =
        sums.max_by_key(|event| event.time_ns)
            .map(|last| AllocationSampling {
                interval_bytes: count(last, "interval"),
                lost: count(last, "lostSamples"),
                lost_bytes: count(last, "lostWeight"),
            });
}

fn count(event: &GenericEvent, field: &str) -> u64 {
    let number = event.int(field).unwrap_or(0);
    u64::try_from(number).unwrap_or(0)
}

/// A class as in Java: of arrays files have `[B` and `[Ljava.lang.String;`. What is neither stays.
fn readable_class(name: &str) -> String {
    let element = name.trim_start_matches('[');
    let dimensions = name.len() - element.len();
    let readable = match element {
        _ if dimensions == 0 => return name.to_owned(),
        "B" => "byte",
        "C" => "char",
        "D" => "double",
        "F" => "float",
        "I" => "int",
        "J" => "long",
        "S" => "short",
        "Z" => "boolean",
        _ => match element
            .strip_prefix('L')
            .and_then(|it| it.strip_suffix(';'))
        {
            Some(class) if !class.is_empty() => class,
            _ => return name.to_owned(),
        },
    };
    readable.to_owned() + &"[]".repeat(dimensions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_art;
    use crate::wall::WallFilter;

    #[test]
    fn classes_are_told_as_in_java() {
        for (name, readable) in [
            ("java.lang.String", "java.lang.String"),
            ("[B", "byte[]"),
            ("[[J", "long[][]"),
            ("[Ljava.lang.String;", "java.lang.String[]"),
            ("[other classes]", "[other classes]"),
            ("[", "["),
            ("[L;", "[L;"),
            ("[Q", "[Q"),
            ("", ""),
        ] {
            assert_eq!(readable_class(name), readable, "{name}");
        }
    }

    /// Two stacks, `a.A.x` and below it `a.A.y`, of which the inner one allocates twice.
    fn profile() -> Profile {
        let mut builder = text_art::builder("a.A.x");
        let [x, y] = ["x", "y"].map(|name| {
            let method = builder.method("a.A", name, "");
            builder.frame(method, 0, FrameKind::C2)
        });
        for (stack, class, bytes, size) in [
            (&[x][..], "byte[]", 1000, 1000),
            (&[x, y], "byte[]", 400, 100),
            (&[x, y], "a.A", 500, 10),
        ] {
            let stack = builder.stack(stack.iter().copied());
            let frame = builder.marker(class, FrameKind::Other);
            let node = builder.child(stack, frame);
            let class = builder.name(class);
            builder.allocations.push(Allocation {
                time_ns: 0,
                thread: 0,
                node,
                class,
                bytes,
                size,
                context: None,
            });
        }
        builder.finish()
    }

    #[test]
    fn sums_by_class_and_method() {
        let profile = profile();
        assert_eq!(profile.allocated().sum, 1900);
        let rows = profile.allocated_classes();
        let rows: Vec<_> = (rows.iter())
            .map(|row| (row.name.as_str(), row.bytes.sum, row.objects))
            .collect();
        assert_eq!(rows, [("byte[]", 1400, 5.0), ("a.A", 500, 50.0)]);
        let rows = profile.allocating_methods();
        let rows: Vec<_> = (rows.iter())
            .map(|row| (row.name.as_str(), row.own.sum, row.total.sum))
            .collect();
        assert_eq!(rows, [("a.A.x", 1000, 1900), ("a.A.y", 900, 900)]);
        // What is chosen always has no error; the others w^2 (1 - s/w) each.
        let rows = profile.allocated_classes();
        assert_eq!(rows[0].bytes.squares, 400.0 * 300.0);
        let filter = WallFilter::default();
        assert_eq!(profile.allocations_of(&filter).count(), 3);
    }
}

//! Places of allocation in the program: from sampled objects, or, in recordings without these, from
//! threads sampled in the JVM's allocation.

use crate::evidence::Facts;
use crate::finding::{Evidence, View};
use crate::names::Set;
use crate::numbers::{percent, some_of};
use crate::stacks::Heaviest;
use dwell_profile::{Lack, NameId, NodeId, Platform, Weight};
use std::collections::{BTreeMap, HashMap};

/// Places that are named.
const PLACES: usize = 3;
/// Least part of the first place's bytes for another place to be named.
const LEAST_PLACE: f64 = 0.1;
/// Fewer sampled objects than this say nothing.
const SAMPLES: u64 = 20;

/// Frames in which the JVM allocates for the program, outside of the fast path.
const ALLOCATING: &[&str] = &[
    "libjvm.so.*MemAllocator::*",
    "libjvm.so.*InstanceKlass::allocate_instance*",
    "libjvm.so.*TypeArrayKlass::allocate*",
    "libjvm.so.*ObjArrayKlass::allocate*",
    "libjvm.so.*OptoRuntime::new_*",
    "libjvm.so.*Runtime1::new_*",
    "libjvm.so.*InterpreterRuntime::_new*",
    "libjvm.so.*InterpreterRuntime::newarray*",
    "libjvm.so.*InterpreterRuntime::anewarray*",
    "libjvm.so.*CollectedHeap::*allocate*",
];

/// Where the program allocates, as far as it is known: the first is where it allocates most.
pub(crate) struct Allocators {
    places: Vec<Place>,
    /// Whether the bytes are known, by samples of allocations.
    by_bytes: bool,
    /// How to record bytes, if the recorder can.
    hint: String,
}

/// A method of the program that allocates.
struct Place {
    /// The method, and its line where that is known.
    name: String,
    /// Its part of all bytes, and the class that most of them are of, if bytes are known.
    bytes: Option<(f64, String)>,
    stack: Vec<String>,
}

/// Sums of a place.
#[derive(Default)]
struct Sum {
    heaviest: Heaviest,
    classes: HashMap<NameId, u64>,
}

impl Allocators {
    /// The program's methods that allocate.
    pub(crate) fn of(facts: &Facts<'_>) -> Allocators {
        let sampled = by_bytes(facts);
        Allocators {
            by_bytes: sampled.is_some(),
            places: sampled.unwrap_or_else(|| by_sight(facts)),
            hint: match facts.profile.info().platform() {
                Platform::Mono => String::new(),
                _ => {
                    let remedy = facts.profile.info().remedy(Lack::Allocations);
                    format!(" ({remedy})")
                }
            },
        }
    }

    /// The place that allocates most.
    pub(crate) fn first(&self) -> Option<String> {
        self.places.first().map(|place| place.name.clone())
    }

    /// That one in the words that end a sentence; nothing where none is known.
    pub(crate) fn most(&self) -> String {
        match self.places.first() {
            None => String::new(),
            Some(Place {
                name,
                bytes: Some((share, class)),
                ..
            }) => format!(
                "; {} of all bytes are allocated in {name} (mostly {class})",
                percent(*share)
            ),
            Some(Place { name, .. }) => format!("; most sampled allocations are in {name}"),
        }
    }

    pub(crate) fn evidence(&self) -> Option<Evidence> {
        let first = self.places.first()?;
        let named = |place: &Place| match &place.bytes {
            Some((share, class)) => {
                format!("{} {} (mostly {class})", place.name, percent(*share))
            }
            None => place.name.clone(),
        };
        let places: Vec<String> = self.places.iter().map(named).collect();
        let how = match self.by_bytes {
            true => "bytes allocated in",
            false => "sampled while allocating",
        };
        Some(Evidence {
            text: format!("{how}: {}", some_of(&places)),
            view: View::default(),
            stack: first.stack.clone(),
        })
    }

    pub(crate) fn advice(&self) -> String {
        match self.first() {
            Some(place) => format!("allocate less in {place}"),
            None => format!(
                "the recording does not show which code allocates{}",
                self.hint
            ),
        }
    }
}

/// By sampled objects; none if the recording has too few.
fn by_bytes(facts: &Facts<'_>) -> Option<Vec<Place>> {
    let profile = facts.profile;
    let all = profile.allocated();
    if all.samples < SAMPLES {
        return None;
    }
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for allocation in profile.allocations() {
        // The innermost frame is the class.
        let node = profile.tree().parent(allocation.node);
        let sum = sums.entry(facts.stacks.place_name(node)).or_default();
        sum.heaviest.add(node, &allocation.weight());
        let of_class = sum.classes.entry(allocation.class).or_default();
        *of_class = of_class.saturating_add(allocation.bytes);
    }
    let mut sums: Vec<(String, Sum)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.heaviest.weight.sum));
    let named = |(name, sum): (String, Sum)| {
        let text = |class: &NameId| profile.names().text(*class);
        // Of equal ones the first by name, so that the same recording says the same.
        let most = sum.classes.iter().max_by(|(a, bytes), (b, others)| {
            let by_bytes = bytes.cmp(others);
            by_bytes.then_with(|| text(b).cmp(text(a)))
        });
        let class = most.map_or("", |(class, _)| text(class)).to_owned();
        let share = sum.heaviest.weight.share(&all).min(1.0);
        place(facts, name, &sum.heaviest, Some((share, class)))
    };
    Some(
        most_of(sums, |sum| sum.heaviest.weight.sum)
            .map(named)
            .collect(),
    )
}

/// From threads sampled in the JVM's allocation, waiting or running.
fn by_sight(facts: &Facts<'_>) -> Vec<Place> {
    let allocating = Set::new(facts.profile, ALLOCATING);
    let mut sums: BTreeMap<String, Heaviest> = BTreeMap::new();
    let mut add = |node: NodeId, weight: &Weight| {
        // The program cannot change allocations of the JVM, as for threads that attach.
        if facts.stacks.place(node).is_none() {
            return;
        }
        let place = facts.stacks.place_name(node);
        sums.entry(place).or_default().add(node, weight);
    };
    for entry in facts
        .entries
        .iter()
        .filter(|entry| entry.cause == "gc-stall")
    {
        add(entry.node, &entry.weight);
    }
    for (node, weight) in facts.program_cpu.iter().enumerate() {
        if weight.samples > 0 && facts.stacks.top_has(node as NodeId, &allocating) {
            add(node as NodeId, weight);
        }
    }
    let mut sums: Vec<(String, Heaviest)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.weight.sum));
    most_of(sums, |sum| sum.weight.sum)
        .map(|(name, sum)| place(facts, name, &sum, None))
        .collect()
}

/// The leading entries, down to those that are small compared with the first one.
fn most_of<T>(
    sums: Vec<(String, T)>,
    size: impl Fn(&T) -> u64,
) -> impl Iterator<Item = (String, T)> {
    let most = sums.first().map_or(0, |(_, sum)| size(sum)) as f64;
    sums.into_iter()
        .filter(move |(_, sum)| size(sum) as f64 >= LEAST_PLACE * most)
        .take(PLACES)
}

fn place(facts: &Facts<'_>, name: String, sum: &Heaviest, bytes: Option<(f64, String)>) -> Place {
    Place {
        name: match facts.stacks.line(sum.node) {
            0 => name,
            line => format!("{name} (line {line})"),
        },
        bytes,
        stack: facts.stacks.shown(sum.node),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn allocations_below_no_java_code_have_no_place() {
        let allocate = "libjvm.so.MemAllocator::allocate[native]";
        let attach = format!("{allocate};libjvm.so.attach_current_thread[native]");
        for (own, expected) in [(6, Some("app.Buffers.make")), (0, None)] {
            let mut art = Art::default();
            art.cpu("w-1", "", &attach, 60, 10);
            art.cpu("w-1", "", &format!("{allocate};app.Buffers.make"), own, 10);
            art.with_facts(|facts| {
                assert_eq!(Allocators::of(facts).first().as_deref(), expected);
            });
        }
    }

    #[test]
    fn allocators_prefer_sampled_objects_to_stalled_threads() {
        let mut art = Art::default();
        art.look("task-1", "GET /n", "gc-stall", "app.Seen.waiting", 30, 20);
        art.allocated("task-1", "app.Buffers.make:7", "byte[]", (512 << 10, 30));
        art.allocated("task-1", "app.Buffers.make:7", "app.Head", (512 << 10, 2));
        art.allocated(
            "task-2",
            "java.util.Arrays.copyOf;app.Names.join",
            "char[]",
            (512 << 10, 8),
        );
        art.allocated("task-2", "app.Rare.once", "app.Rare", (512 << 10, 1));
        art.with_facts(|facts| {
            let allocators = Allocators::of(facts);
            assert_eq!(
                allocators.first().as_deref(),
                Some("app.Buffers.make (line 7)")
            );
            let most = allocators.most();
            assert!(
                most.contains("78 % of all bytes") && most.ends_with("(mostly byte[])"),
                "{most}"
            );
            let evidence = allocators.evidence().unwrap().text;
            assert!(
                evidence.contains("app.Names.join 20 % (mostly char[])")
                    && !evidence.contains("app.Rare")
                    && !evidence.contains("app.Seen"),
                "{evidence}"
            );
        });
    }

    #[test]
    fn few_sampled_objects_fall_back_to_stalled_threads() {
        let mut art = Art::default();
        art.look("task-1", "GET /n", "gc-stall", "app.Seen.waiting", 30, 20);
        art.allocated("task-1", "app.Buffers.make", "byte[]", (512 << 10, 5));
        art.with_facts(|facts| {
            let allocators = Allocators::of(facts);
            assert_eq!(allocators.first().as_deref(), Some("app.Seen.waiting"));
            assert!(allocators.most().contains("most sampled allocations"));
        });
    }
}

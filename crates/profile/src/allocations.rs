//! Objects that were allocated and chosen, and what they stand for.

use crate::names::NameId;
use crate::sample::{ContextId, ThreadId, Weight};
use crate::tree::NodeId;

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
    /// The context of the thread, if known.
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

/// A recording's sums of its samples of allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationSampling {
    /// The bytes between two samples, in the mean.
    pub interval_bytes: u64,
    /// Samples that were wanted in a second, if the interval adapted; 0: it did not. The interval
    /// is the last one then.
    pub rate: u64,
    /// The interval that was asked for: less than the last one where that has grown, as too many
    /// samples came; 0: that is not known.
    pub asked_bytes: u64,
    /// Samples that were taken but not kept.
    pub lost: u64,
    /// The bytes that these stood for.
    pub lost_bytes: u64,
    /// For how long they were sampled, in nanoseconds; 0: that is not known.
    pub sampled_ns: u64,
}

/// Lost samples of one class, allocated by one method on one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostAllocations {
    /// The class, as in Java.
    pub class: NameId,
    /// The thread that allocated the objects, if it is one, and known.
    pub thread: Option<ThreadId>,
    /// The method that allocated the objects, if it is one, and known.
    pub method: Option<NameId>,
    /// Samples.
    pub samples: u64,
    /// The bytes that they stood for.
    pub bytes: u64,
}

/// The allocations of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocatedClass {
    /// The class, as in Java.
    pub name: String,
    /// The bytes.
    pub bytes: Weight,
    /// The objects, estimated; 0 if the recording does not say.
    pub objects: f64,
}

impl AllocationSampling {
    /// Whether the interval has grown beyond what was asked for.
    #[must_use]
    pub fn has_grown(&self) -> bool {
        self.rate == 0 && self.asked_bytes != 0 && self.asked_bytes < self.interval_bytes
    }
}

/// A class as in Java. Files have `[B` and `[Ljava.lang.String;` for arrays, also with the address
/// of one object after `@`. Any other text stays.
pub(crate) fn readable_class(name: &str) -> String {
    if let Some((class, address)) = name.split_once('@').filter(|_| name.starts_with('[')) {
        return format!("{}@{address}", readable_class(class));
    }
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

    #[test]
    fn classes_are_named_as_in_java() {
        for (name, readable) in [
            ("java.lang.String", "java.lang.String"),
            ("[B", "byte[]"),
            ("[[J", "long[][]"),
            ("[Ljava.lang.String;", "java.lang.String[]"),
            ("[other classes]", "[other classes]"),
            ("[", "["),
            ("[I@7f00", "int[]@7f00"),
            ("app.A@7f00", "app.A@7f00"),
            ("[L;", "[L;"),
            ("[Q", "[Q"),
            ("", ""),
        ] {
            assert_eq!(readable_class(name), readable, "{name}");
        }
    }
}

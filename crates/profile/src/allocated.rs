//! Sums of what was allocated: by class, and by method.

use std::collections::HashMap;

use crate::aggregate::{GroupBy, Grouped, Row, sort_by_total};
use crate::allocations::{AllocatedClass, Allocation, AllocationSampling};
use crate::frame::{Frame, FrameKind};
use crate::names::NameId;
use crate::profile::Profile;
use crate::sample::Weight;

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

    /// For how long allocations were sampled, in nanoseconds: all of the recording, if it does not
    /// say otherwise.
    #[must_use]
    pub fn allocations_sampled_ns(&self) -> u64 {
        let sampling = self.allocation_sampling.unwrap_or_default();
        match sampling.sampled_ns {
            0 => self.info.duration_ns,
            sampled_ns => sampled_ns,
        }
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

    /// Allocations by class, the most bytes first.
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

    /// Whether a frame is a native method of a class, and not a function of a library.
    fn is_native_method(&self, frame: &Frame) -> bool {
        let method = self.methods.get(frame.method as usize);
        let class = method.map_or("", |method| self.names.text(method.class));
        let is_library = class.contains(".so") || class.starts_with('[') || class.is_empty();
        frame.kind == FrameKind::Native && !is_library
    }

    /// Whether each method is one of the runtime's language, by its group.
    pub(crate) fn are_managed(&self, grouped: &Grouped) -> Vec<bool> {
        let mut managed = vec![false; grouped.names.len()];
        for (frame, group) in self.frames.iter().zip(&grouped.of_frame) {
            let is_method = frame.kind.is_java() || self.is_native_method(frame);
            if let Some(managed) = managed.get_mut(*group as usize).filter(|_| is_method) {
                *managed = true;
            }
        }
        managed
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
        // Threads begin in the runtime's own code, which is not the allocating code.
        let managed = self.are_managed(&grouped);
        let row = |(name, (own, total))| Row { name, own, total };
        let rows = grouped.names.into_iter().zip(own.into_iter().zip(total));
        let mut rows: Vec<Row> = (rows.map(row).zip(managed))
            .filter(|(row, managed)| *managed && row.total.samples > 0)
            .map(|(row, _)| row)
            .collect();
        sort_by_total(&mut rows);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_art;
    use crate::wall::WallFilter;

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
        // An object that is always chosen adds no error; any other adds w^2 (1 - s/w).
        let rows = profile.allocated_classes();
        assert_eq!(rows[0].bytes.squares, 400.0 * 300.0);
        let filter = WallFilter::default();
        assert_eq!(profile.allocations_of(&filter).count(), 3);
    }
}

//! Sampled allocations that a recording lost, by class, thread and method: where tables are
//! incomplete.

use crate::allocations::LostAllocations;
use crate::profile::Profile;
use std::collections::BTreeMap;

/// Names with the bytes that lost samples stood for, the most first.
pub type LostBytes = Vec<(String, u64)>;

impl Profile {
    /// Lost samples of allocations, as the recording has them.
    #[must_use]
    pub fn lost_allocations(&self) -> &[LostAllocations] {
        &self.lost_allocations
    }

    /// The part of all allocated bytes that lost samples stood for.
    #[must_use]
    pub fn lost_allocated_share(&self) -> f64 {
        let sampling = self.allocation_sampling.unwrap_or_default();
        let all = self.allocated().sum.saturating_add(sampling.lost_bytes);
        sampling.lost_bytes as f64 / all.max(1) as f64
    }

    /// Bytes of lost samples by class, by name of the thread, and by allocating method. There are
    /// no methods if no method is known.
    #[must_use]
    pub fn lost_bytes(&self) -> [LostBytes; 3] {
        let [mut classes, mut threads, mut methods] = [const { BTreeMap::new() }; 3];
        let knows_methods = self.lost_allocations.iter().any(|it| it.method.is_some());
        let add = |sums: &mut BTreeMap<String, u64>, name: &str, bytes: u64| {
            let sum = sums.entry(name.to_owned()).or_default();
            *sum = sum.saturating_add(bytes);
        };
        for lost in &self.lost_allocations {
            add(&mut classes, self.names.text(lost.class), lost.bytes);
            let name = lost.thread.map(|thread| self.thread_name(thread));
            add(&mut threads, name.unwrap_or("[other threads]"), lost.bytes);
            if knows_methods {
                let name = lost.method.map(|method| self.names.text(method));
                add(&mut methods, name.unwrap_or("[other methods]"), lost.bytes);
            }
        }
        [classes, threads, methods].map(|sums| {
            let mut rows: LostBytes = sums.into_iter().collect();
            rows.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
            rows
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;
    use crate::allocations::AllocationSampling;

    #[test]
    fn lost_bytes_are_summed_by_class_thread_and_method() {
        let mut builder = Builder::default();
        let thread = builder.thread("loader-1", 7, 7, false);
        let names = ["byte[]", "java.lang.String", "a.B.load"];
        let [bytes, text, load] = names.map(|name| builder.name(name));
        for (class, thread, method, bytes) in [
            (text, Some(thread), None, 5),
            (bytes, Some(thread), Some(load), 10),
            (bytes, None, Some(load), 20),
        ] {
            builder.lost_allocations.push(LostAllocations {
                class,
                thread,
                method,
                samples: 1,
                bytes,
            });
        }
        builder.allocation_sampling = Some(AllocationSampling {
            lost: 3,
            lost_bytes: 35,
            ..AllocationSampling::default()
        });
        let mut without = builder.clone();
        let profile = builder.finish();
        let [classes, threads, methods] = profile.lost_bytes();
        let row = |name: &str, bytes| (name.to_owned(), bytes);
        assert_eq!(classes, [row("byte[]", 30), row("java.lang.String", 5)]);
        assert_eq!(threads, [row("[other threads]", 20), row("loader-1", 15)]);
        assert_eq!(methods, [row("a.B.load", 30), row("[other methods]", 5)]);
        without
            .lost_allocations
            .iter_mut()
            .for_each(|lost| lost.method = None);
        let [classes_without, _, methods] = without.finish().lost_bytes();
        assert_eq!((classes_without, methods), (classes, vec![]));
        assert_eq!(profile.lost_allocated_share(), 1.0);
        assert_eq!(Builder::default().finish().lost_allocated_share(), 0.0);
    }
}

//! Sampled allocated objects: their weights, and the names of their classes. Nothing here is called
//! in a handler.

use rustc_hash::FxHashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Classes that are kept separate. If a program keeps making others (hidden ones, say), these
/// share one name.
const CLASSES_MAX: usize = 16_384;

/// The name of classes beyond [`CLASSES_MAX`].
const OTHERS: &str = "[other classes]";

/// The bytes that a sampled object of `size` stands for. Sampling points lie `interval` bytes
/// apart in the mean, and each place is equally likely. The object met a point with a chance of
/// `p = 1 - exp(-size / interval)`, so it stands for `1 / p` objects of its size.
#[must_use]
pub fn weight(size: u64, interval: u64) -> u64 {
    let (size, interval) = (size.max(1) as f64, interval.max(1) as f64);
    // `1 - exp` would lose most digits for small objects.
    let chance = -(-size / interval).exp_m1();
    (size / chance).round() as u64
}

/// Names of classes by number. Threads of the program add them, and the drainer reads them.
#[derive(Debug, Default)]
pub struct Classes {
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    numbers: FxHashMap<Box<[u8]>, u32>,
    names: Vec<Arc<str>>,
}

impl Classes {
    /// The number of all names that found no room.
    pub const FULL: u32 = u32::MAX;

    /// The number of the class with the runtime's name `key`; `name` is its name in the file. Both
    /// last as long as the process.
    pub fn number(&self, key: &[u8], name: impl FnOnce() -> String) -> u32 {
        let known = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.numbers.get(key) {
            return *number;
        }
        drop(known);
        let name: Arc<str> = name().into();
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = inner.numbers.get(key) {
            return *number;
        }
        if inner.names.len() >= CLASSES_MAX {
            return Classes::FULL;
        }
        let number = inner.names.len() as u32;
        inner.names.push(name);
        inner.numbers.insert(key.into(), number);
        number
    }

    /// The name of a class.
    #[must_use]
    pub fn name(&self, number: u32) -> Arc<str> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        let name = inner.names.get(number as usize);
        name.map_or_else(|| OTHERS.into(), Arc::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_is_interval_for_small_objects_and_size_for_large() {
        const K: u64 = 1 << 10;
        // Up to half an object: 1 / (1 - exp(-x)) = 1/x + 1/2 + x/12 - ...
        assert_eq!(weight(16, 512 * K), 512 * K + 8);
        assert_eq!(weight(K, 512 * K), 512 * K + 512);
        assert_eq!(weight(512 * K, 512 * K), 829_411);
        assert_eq!(weight(64 << 20, 512 * K), 64 << 20);
        assert_eq!(weight(0, 0), 2, "of nothing, the least that there is");
        assert!(weight(u64::MAX, 1) >= 1 << 63);
    }

    /// Over all possible gaps between points, an object's mean weight is its size.
    #[test]
    fn weights_are_sizes_in_the_mean() {
        for (size, interval) in [(16, 1 << 10), (1 << 10, 1 << 10), (1 << 20, 512 << 10)] {
            let chance = 1.0 - (-(size as f64) / interval as f64).exp();
            let mean = chance * weight(size, interval) as f64;
            assert!((mean / size as f64 - 1.0).abs() < 1e-3, "{size}: {mean}");
        }
    }

    #[test]
    fn classes_keep_numbers_and_excess_ones_share_one() {
        let classes = Classes::default();
        let number = |key: &str| classes.number(key.as_bytes(), || format!("name of {key}"));
        let first = number("a");
        assert_eq!(number("a"), first);
        assert_ne!(number("b"), first);
        assert_eq!(&*classes.name(first), "name of a");
        for n in 0..CLASSES_MAX {
            number(&format!("class {n}"));
        }
        let others = [number("c"), number("d")];
        assert_eq!(others, [u32::MAX; 2]);
        assert_eq!(&*classes.name(others[0]), OTHERS);
        assert_eq!(number("a"), first);
    }
}

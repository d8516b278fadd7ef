//! Sums of all values by stack and labels, which are the samples of pprof.

use std::collections::HashMap;

use dwell_profile::{Profile, Seeds};

use crate::typed_values::{Amount, Column, Key, each};

/// The sum of each type of value.
pub type Sums = [Amount; Column::COUNT];

/// All samples with their sums, in a deterministic order.
pub fn sums(profile: &Profile) -> Vec<(Key<'_>, Sums)> {
    let nothing = [Amount::Whole(0); Column::COUNT];
    let mut sums: HashMap<Key<'_>, Sums, Seeds> = HashMap::default();
    each(profile, |key, _, column, amount| {
        let sum = sums.entry(key).or_insert(nothing);
        if let Some(sum) = sum.get_mut(column as usize) {
            *sum = sum.plus(amount);
        }
    });
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|(key, _)| *key);
    sums
}

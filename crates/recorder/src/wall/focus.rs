//! The threads to sample when only threads that work for a request count. The logical thread of
//! each has a context now, in our record or in that of another library. There is no list of these
//! threads, so opening and closing a scope costs no more than otherwise.

use crate::context;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;

/// The threads of this tick that work for a request.
#[derive(Default)]
pub struct Focus {
    working: Vec<u32>,
    /// Ids of logical threads with a context that are not platform threads we know.
    virtuals: FxHashMap<u64, Option<u32>>,
    /// The places in `working`, when records of other libraries are read as well.
    known: FxHashSet<u32>,
}

impl Focus {
    /// Finds these threads. `place_of` returns the place of the platform thread with an id.
    /// `mounted` shows which logical thread is on which platform thread.
    pub fn find(
        &mut self,
        place_of: impl Fn(u64) -> Option<u32>,
        mounted: impl FnOnce(&mut dyn FnMut(u64, u32)),
    ) -> &mut Vec<u32> {
        self.working.clear();
        self.virtuals.clear();
        context::for_each_working(|id| match place_of(id) {
            Some(place) => self.working.push(place),
            None => {
                self.virtuals.insert(id, None);
            }
        });
        if !self.virtuals.is_empty() {
            mounted(&mut |id, place| {
                if let Entry::Occupied(mut found) = self.virtuals.entry(id)
                    && found.insert(Some(place)).is_none()
                {
                    self.working.push(place);
                }
            });
        }
        &mut self.working
    }

    /// Adds platform threads on which another library has published a context, as `published`
    /// reports. It checks each thread that is not known yet, so the cost grows with all threads.
    /// A running thread may change its record during the check. It is then missed, or counts for
    /// one sample longer. Its samples read the record again, so their context is right.
    pub fn add_published(
        &mut self,
        all: impl Iterator<Item = (u64, u32)>,
        published: impl Fn(u64) -> bool,
    ) -> &mut Vec<u32> {
        self.known.clear();
        self.known.extend(&self.working);
        for (thread, place) in all {
            if !self.known.contains(&place) && published(thread) {
                self.working.push(place);
            }
        }
        &mut self.working
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_with_contexts_of_both_kinds_is_listed_once() {
        let mut focus = Focus {
            working: vec![3, 5],
            ..Focus::default()
        };
        let all = [(0x10, 3), (0x20, 4), (0x30, 5), (0x40, 6)];
        let found = focus.add_published(all.into_iter(), |thread| thread <= 0x20);
        assert_eq!(*found, [3, 5, 4]);
    }
}

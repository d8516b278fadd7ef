//! Who is looked at when only threads that work for a request count: those whose logical thread has
//! a context just now, which its record tells, ours or another library's. Nobody keeps a list,
//! so opening and closing a scope costs no more than otherwise.

use crate::context;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;

/// The threads of this tick that work for a request.
#[derive(Default)]
pub struct Focus {
    working: Vec<u32>,
    /// Ids of logical threads with a context that are no platform threads of ours.
    virtuals: FxHashMap<u64, Option<u32>>,
    /// Those that work, where records of other libraries are asked as well.
    known: FxHashSet<u32>,
}

impl Focus {
    /// Finds them: `place_of` tells the place of the platform thread with an id, `mounted` shows
    /// which logical thread is on which platform thread.
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

    /// Adds platform threads on which another library has published a context: `published` says
    /// whether one has. Each is asked that is not known yet, so that takes time for all of them.
    /// Who runs may be changing its record just now and is missed then, or counts one look longer;
    /// what it works for is told by its samples, which see the record as it is.
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
    fn who_has_a_context_of_either_kind_is_there_once() {
        let mut focus = Focus {
            working: vec![3, 5],
            ..Focus::default()
        };
        let all = [(0x10, 3), (0x20, 4), (0x30, 5), (0x40, 6)];
        let found = focus.add_published(all.into_iter(), |thread| thread <= 0x20);
        assert_eq!(*found, [3, 5, 4]);
    }
}

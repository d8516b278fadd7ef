//! Who is looked at when only threads that work for a request count: those whose logical thread has
//! a context just now, which its record tells. Nobody keeps a list, so opening and closing a scope
//! costs no more than otherwise.

use crate::context;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// The threads of this tick that work for a request.
#[derive(Default)]
pub struct Focus {
    working: Vec<u32>,
    /// Ids of logical threads with a context that are no platform threads of ours.
    virtuals: FxHashMap<u64, Option<u32>>,
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
}

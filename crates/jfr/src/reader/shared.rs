//! What many refer to, known by where it is in memory, so that it is changed, hashed or walked once
//! and stays shared. It does not know what it is looked up for.

use super::model::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// A structure's fields.
type Fields = Arc<[(Arc<str>, Value)]>;

/// What structures have become, by where they are in memory; the former ones are kept, so that no
/// other is there.
#[derive(Default)]
pub(super) struct Shared(HashMap<usize, (Fields, Fields)>);

impl Shared {
    /// What the structure has become.
    pub(super) fn get(&self, fields: &Fields) -> Option<Fields> {
        let (_, new) = self.0.get(&Arc::as_ptr(fields).addr())?;
        Some(Arc::clone(new))
    }

    /// Keeps what it has become.
    pub(super) fn keep(&mut self, former: Fields, new: &Fields) {
        let at = Arc::as_ptr(&former).addr();
        self.0.insert(at, (former, Arc::clone(new)));
    }
}

/// Places of texts in a table. The texts are kept, so that no other is where they are.
#[derive(Default)]
pub(super) struct Links(HashMap<usize, (Arc<str>, u32)>);

impl Links {
    /// The place of this text.
    pub(super) fn get(&self, text: &Arc<str>) -> Option<u32> {
        let (_, place) = self.0.get(&Arc::as_ptr(text).addr())?;
        Some(*place)
    }

    /// Keeps it.
    pub(super) fn keep(&mut self, text: &Arc<str>, place: u32) {
        let at = Arc::as_ptr(text).addr();
        self.0
            .entry(at)
            .or_insert_with(|| (Arc::clone(text), place));
    }
}

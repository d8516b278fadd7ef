//! A cache by memory address for structures that many values share, so that each is changed, hashed
//! or walked once and stays shared. It does not know the purpose of the look-ups.

use super::model::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// A structure's fields.
type Fields = Arc<[(Arc<str>, Value)]>;

/// Results by the addresses of their originals. The originals are kept, so that no other structure
/// can get their addresses.
#[derive(Default)]
pub(super) struct Shared(HashMap<usize, (Fields, Fields)>);

impl Shared {
    /// The result for the structure.
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

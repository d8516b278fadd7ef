//! Interned strings: every class, method and thread name is kept once.

use dwell_jfr::hash::Seeds;
use std::collections::HashMap;
use std::sync::Arc;

/// Index of an interned string in [`Names`].
pub type NameId = u32;

/// A table of distinct strings, in the order in which they were first seen.
#[derive(Clone, Debug, Default)]
pub struct Names {
    texts: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, NameId, Seeds>,
}

impl Names {
    /// The id of `text`, new or known.
    pub fn intern(&mut self, text: &str) -> NameId {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = u32::try_from(self.texts.len()).unwrap_or(NameId::MAX);
        let text: Arc<str> = Arc::from(text);
        self.texts.push(Arc::clone(&text));
        self.ids.insert(text, id);
        id
    }

    /// The id of `text`, if it is known.
    pub fn find(&self, text: &str) -> Option<NameId> {
        self.ids.get(text).copied()
    }

    /// The string behind `id`; empty for an id that this table never gave out.
    pub fn text(&self, id: NameId) -> &str {
        self.texts.get(id as usize).map_or("", |text| text)
    }

    /// All strings, by id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }

    /// How many distinct strings there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether nothing has been interned.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_text_same_id() {
        let mut names = Names::default();
        let a = names.intern("a");
        let b = names.intern("b");
        assert_eq!(names.intern("a"), a);
        assert_ne!(a, b);
        assert_eq!(
            (names.text(a), names.text(b), names.text(99)),
            ("a", "b", "")
        );
        assert_eq!(names.iter().collect::<Vec<_>>(), ["a", "b"]);
    }
}

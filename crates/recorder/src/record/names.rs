//! The names of one chunk: every managed method, native function, stub and failure once.

use std::collections::HashMap;
use std::sync::Arc;

/// Index of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// A method or function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Name {
    /// Class with slashes, or library, or `[kernel]`.
    pub class: String,
    /// Method or function.
    pub name: String,
    /// Descriptor of a managed method, in JFR's form; empty for others.
    pub descriptor: String,
    /// Its access flags.
    pub modifiers: u16,
    /// The origin of its class, if that is known.
    pub origin: Option<Arc<Origin>>,
}

/// The origin of a class. Unknown parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The name of its module.
    pub module: String,
    /// The address of the class, or of its jar: a URL.
    pub location: String,
}

impl Origin {
    /// Whether any part is known.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !self.module.is_empty() || !self.location.is_empty()
    }
}

impl Name {
    /// A name that is not a managed method's.
    #[must_use]
    pub fn native(class: &str, name: &str) -> Name {
        Name {
            class: class.to_owned(),
            name: name.to_owned(),
            ..Name::default()
        }
    }
}

/// An interning table.
#[derive(Default)]
pub struct Names {
    all: Vec<Arc<Name>>,
    ids: HashMap<Arc<Name>, NameId>,
}

impl Names {
    /// The id of a name, new or not.
    pub fn add(&mut self, name: Name) -> NameId {
        if let Some(id) = self.ids.get(&name) {
            return *id;
        }
        let id = NameId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        let name = Arc::new(name);
        self.all.push(Arc::clone(&name));
        self.ids.insert(name, id);
        id
    }

    /// The id in this table of a name of another table.
    pub fn add_known(&mut self, name: Option<&Name>) -> NameId {
        self.add(name.cloned().unwrap_or_default())
    }

    /// The name with this id.
    #[must_use]
    pub fn get(&self, id: NameId) -> Option<&Name> {
        self.all.get(id.0 as usize).map(|name| &**name)
    }

    /// Forgets all; ids given out before become invalid.
    pub fn clear(&mut self) {
        self.all.clear();
        self.ids.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_share_an_id() {
        let mut names = Names::default();
        let a = names.add(Name::native("libc.so.6", "memcpy"));
        let b = names.add(Name::native("libc.so.6", "memset"));
        assert_eq!(names.add(Name::native("libc.so.6", "memcpy")), a);
        assert_ne!(a, b);
        assert_eq!(names.get(b).unwrap().name, "memset");
        names.clear();
        assert!(names.get(a).is_none());
    }
}

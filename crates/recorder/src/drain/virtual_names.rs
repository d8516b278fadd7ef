//! Names of virtual threads, as samples report them. A thread can be seen before it has a name,
//! and be renamed: the last name counts. Pure.

use dwell_signal::slots::LOGICAL_NAME_MAX;
use std::collections::BTreeMap;

/// Names of one chunk.
#[derive(Debug, Default)]
pub struct VirtualNames {
    names: BTreeMap<u64, String>,
    renamed: Vec<u64>,
}

impl VirtualNames {
    /// The name of the thread with this key; empty if no name is known.
    #[must_use]
    pub fn get(&self, key: u64) -> &str {
        self.names.get(&key).map_or("", String::as_str)
    }

    /// The thread has been seen with this name.
    pub fn tell(&mut self, key: u64, name: &str) {
        match self.names.get_mut(&key) {
            Some(known) if name.is_empty() || known == name => {}
            Some(known) => {
                name.clone_into(known);
                self.renamed.push(key);
            }
            None => {
                self.names.insert(key, name.to_owned());
            }
        }
    }

    /// Like `tell`, for a name that a handler has copied: each byte is a code point, and there may
    /// be more of them.
    pub fn tell_latin1(&mut self, key: u64, name: &[u8]) {
        let known = self.get(key);
        let is_cut = name.len() >= LOGICAL_NAME_MAX;
        let mut chars = known.chars();
        let is_known = name
            .iter()
            .all(|byte| chars.next() == Some(char::from(*byte)));
        if is_known && (is_cut || chars.next().is_none()) && self.names.contains_key(&key) {
            return;
        }
        let text: String = name.iter().map(|byte| char::from(*byte)).collect();
        self.tell(key, &text);
    }

    /// Threads whose name has changed since the last call.
    pub fn take_renamed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.renamed)
    }

    /// Forgets all: a chunk begins.
    pub fn clear(&mut self) {
        self.names.clear();
        self.renamed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_counts_and_no_name_is_none() {
        let mut names = VirtualNames::default();
        names.tell(1, "");
        names.tell(2, "two");
        assert_eq!(
            (names.get(1).to_owned(), names.take_renamed()),
            (String::new(), vec![])
        );
        names.tell(1, "one");
        names.tell(1, "one");
        names.tell(2, "");
        assert_eq!((names.get(1), names.get(2)), ("one", "two"));
        assert_eq!(names.take_renamed(), [1]);
        names.tell_latin1(2, b"zw\xf6lf");
        names.tell_latin1(2, b"zw\xf6lf");
        names.tell_latin1(2, b"");
        assert_eq!(
            (names.get(2).to_owned(), names.take_renamed()),
            ("zw\u{f6}lf".to_owned(), vec![2])
        );
        names.clear();
        assert_eq!(names.get(2), "");
    }

    #[test]
    fn a_name_that_was_cut_off_is_not_another_one() {
        let mut names = VirtualNames::default();
        let long = "n".repeat(LOGICAL_NAME_MAX + 10);
        let cut = long.as_bytes().get(..LOGICAL_NAME_MAX).unwrap();
        names.tell_latin1(1, cut);
        names.tell(1, &long);
        names.tell_latin1(1, cut);
        assert_eq!(
            (names.get(1).to_owned(), names.take_renamed()),
            (long.clone(), vec![1])
        );
        // Shorter, and not cut off: another one.
        names.tell_latin1(1, b"nn");
        assert_eq!(
            (names.get(1).to_owned(), names.take_renamed()),
            ("nn".to_owned(), vec![1])
        );
    }
}

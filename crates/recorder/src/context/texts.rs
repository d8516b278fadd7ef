//! The texts that contexts refer to by number: endpoints, labels and their values. Kept for the
//! life of the process, so their number is bounded.

use dwell_context::{Context, LABELS_MAX};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Arc, RwLock};

/// Maximum number of texts of one kind; all later ones are [`OTHER`].
pub const TEXTS_MAX: usize = 10_000;
/// Replaces texts beyond [`TEXTS_MAX`].
pub const OTHER: &str = "(other)";
/// The number of [`OTHER`], for every kind; 0 is no text.
pub const OTHER_ID: u32 = 1;
/// Maximum number of endpoints that are not written yet.
const ENDPOINTS_MAX: usize = 100_000;

/// The kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An endpoint.
    Endpoint,
    /// A value of the label with this number.
    Label(u8),
}

#[derive(Default)]
struct Inner {
    all: Vec<Arc<str>>,
    ids: HashMap<(Kind, Arc<str>), u32>,
    counts: HashMap<Kind, usize>,
    labels: Vec<Arc<str>>,
}

/// All texts.
#[derive(Default)]
pub struct Texts(RwLock<Inner>);

impl Texts {
    /// The number of a text; that of [`OTHER`] if there are too many.
    #[must_use]
    pub fn intern(&self, kind: Kind, text: &str) -> u32 {
        let Ok(mut inner) = self.0.write() else {
            return OTHER_ID;
        };
        if inner.all.is_empty() {
            inner.all.push(OTHER.into());
        }
        let text: Arc<str> = text.into();
        if let Some(id) = inner.ids.get(&(kind, Arc::clone(&text))) {
            return *id;
        }
        let count = inner.counts.entry(kind).or_default();
        if *count >= TEXTS_MAX {
            return OTHER_ID;
        }
        *count += 1;
        inner.all.push(Arc::clone(&text));
        let id = u32::try_from(inner.all.len()).unwrap_or(OTHER_ID);
        inner.ids.insert((kind, text), id);
        id
    }

    /// The number of the label of this name, from 0; `None` if there are too many.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<u8> {
        let mut inner = self.0.write().ok()?;
        if let Some(known) = inner.labels.iter().position(|label| **label == *name) {
            return u8::try_from(known).ok();
        }
        if inner.labels.len() >= LABELS_MAX {
            return None;
        }
        inner.labels.push(name.into());
        u8::try_from(inner.labels.len() - 1).ok()
    }

    /// The text with this number.
    #[must_use]
    pub fn get(&self, id: u32) -> Option<Arc<str>> {
        let inner = self.0.read().ok()?;
        inner.all.get((id as usize).checked_sub(1)?).cloned()
    }

    /// The labels of a context as text: `name=value,name=value`, in the order of their names;
    /// empty without labels.
    #[must_use]
    pub fn labels_of(&self, context: &Context) -> String {
        let mut text = String::new();
        let Ok(inner) = self.0.read() else {
            return text;
        };
        let value = |id: u32| inner.all.get((id as usize).checked_sub(1)?);
        let labels = inner.labels.iter().zip(context.labels);
        let mut labels: Vec<_> = labels
            .filter_map(|(name, id)| Some((name, value(id)?)))
            .collect();
        labels.sort_unstable();
        for (name, value) in labels {
            if !text.is_empty() {
                text.push(',');
            }
            escape(name, &mut text);
            text.push('=');
            escape(value, &mut text);
        }
        text
    }
}

/// Escapes characters that would end a name or a value, as `%` and two digits like in an address.
fn escape(from: &str, to: &mut String) {
    for c in from.chars() {
        match c {
            ',' | '=' | '%' => {
                let _ = write!(to, "%{:02X}", u32::from(c));
            }
            c => to.push(c),
        }
    }
}

/// The endpoint of a local root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// When it became known, on the monotonic clock.
    pub time_ns: u64,
    /// The local root's span.
    pub local_root: u64,
    /// Number of the text.
    pub endpoint: u32,
}

/// Endpoints that wait for the flush.
#[derive(Default)]
pub struct Endpoints {
    waiting: Vec<Endpoint>,
    lost: u64,
}

impl Endpoints {
    /// Adds one, if there is room.
    pub fn add(&mut self, told: Endpoint) {
        if self.waiting.len() < ENDPOINTS_MAX {
            self.waiting.push(told);
        } else {
            self.lost += 1;
        }
    }

    /// Takes all, and how many found no room.
    pub fn take(&mut self) -> (Vec<Endpoint>, u64) {
        (
            std::mem::take(&mut self.waiting),
            std::mem::take(&mut self.lost),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_of_a_kind_share_a_number() {
        let texts = Texts::default();
        let a = texts.intern(Kind::Endpoint, "GET /a");
        assert_eq!(texts.intern(Kind::Endpoint, "GET /a"), a);
        assert_ne!(texts.intern(Kind::Endpoint, "GET /b"), a);
        assert_eq!(texts.get(a).as_deref(), Some("GET /a"));
        assert_eq!(texts.get(0), None);
        assert_eq!(texts.get(OTHER_ID).as_deref(), Some(OTHER));
        assert_eq!(texts.get(1000), None);
    }

    #[test]
    fn each_kind_has_its_bound_and_its_overflow() {
        let texts = Texts::default();
        for number in 0..TEXTS_MAX {
            let id = texts.intern(Kind::Label(3), &format!("user {number}"));
            assert_ne!(id, OTHER_ID);
        }
        assert_eq!(texts.intern(Kind::Label(3), "one more"), OTHER_ID);
        assert_ne!(texts.intern(Kind::Label(3), "user 17"), OTHER_ID);
        assert_ne!(texts.intern(Kind::Endpoint, "GET /"), OTHER_ID);
    }

    #[test]
    fn labels_are_ordered_by_key_and_escaped() {
        let texts = Texts::default();
        let first = texts.label("tenant").unwrap();
        let second = texts.label("a=b").unwrap();
        assert_eq!(texts.label("tenant"), Some(first));
        let mut context = Context::default();
        assert_eq!(texts.labels_of(&context), "");
        context.labels[usize::from(second)] = texts.intern(Kind::Label(second), "50%, x");
        assert_eq!(texts.labels_of(&context), "a%3Db=50%25%2C x");
        context.labels[usize::from(first)] = texts.intern(Kind::Label(first), "acme");
        assert_eq!(texts.labels_of(&context), "a%3Db=50%25%2C x,tenant=acme");
        for number in 2..LABELS_MAX {
            assert!(texts.label(&format!("label {number}")).is_some());
        }
        assert_eq!(texts.label("one more"), None);
    }

    #[test]
    fn endpoints_beyond_the_bound_are_counted() {
        let mut endpoints = Endpoints::default();
        for number in 0..ENDPOINTS_MAX as u64 + 5 {
            endpoints.add(Endpoint {
                time_ns: 0,
                local_root: number,
                endpoint: 2,
            });
        }
        let (told, lost) = endpoints.take();
        assert_eq!((told.len(), lost), (ENDPOINTS_MAX, 5));
        assert_eq!(endpoints.take(), (Vec::new(), 0));
    }
}

//! The metadata event, generated from the tables in `schema`: a list of strings and a tree of
//! elements whose names and attributes are places in that list.
//!
//! The bytes are written directly, without a tree in memory. A recording's first chunk waits for
//! them, and an allocation for each of three thousand elements would take most of the time.

use crate::hash::Seeds;
use crate::schema::{Content, FieldDef, TypeDef, TypeKind, all_types, id, plain_types};
use crate::wire::{put_framed, put_text, put_varint};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

type Text = Cow<'static, str>;

/// Names of elements and keys of attributes, by their places: the list begins with them.
#[derive(Clone, Copy)]
enum Word {
    Root,
    Metadata,
    Region,
    Class,
    Field,
    Annotation,
    Id,
    Name,
    Value,
    SuperType,
    SimpleType,
    ConstantPool,
    Dimension,
    Locale,
    GmtOffset,
}

const WORDS: [&str; 15] = [
    "root",
    "metadata",
    "region",
    "class",
    "field",
    "annotation",
    "id",
    "name",
    "value",
    "superType",
    "simpleType",
    "constantPool",
    "dimension",
    "locale",
    "gmtOffset",
];

/// Keys of the first parts of a category; there are hardly ever more.
const PARTS: [&str; 4] = ["value-0", "value-1", "value-2", "value-3"];

/// The common part of all such events: the strings, with their number before them, and the tree.
/// Made once, as each chunk has it.
fn described(is_plain: bool) -> &'static [u8] {
    static DESCRIBED: [OnceLock<Vec<u8>>; 2] = [OnceLock::new(), OnceLock::new()];
    let [all, plain] = &DESCRIBED;
    let known = if is_plain { plain } else { all };
    known.get_or_init(|| describe_types(is_plain))
}

fn describe_types(is_plain: bool) -> Vec<u8> {
    let mut tree = Tree::new();
    tree.element(Word::Root, 0);
    tree.children(2);
    tree.element(Word::Metadata, 0);
    if is_plain {
        tree.children(plain_types().count());
        plain_types().for_each(|def| tree.class(def));
    } else {
        tree.children(all_types().count());
        all_types().for_each(|def| tree.class(def));
    }
    tree.element(Word::Region, 2);
    tree.attribute(Word::Locale, "en_US");
    tree.number(Word::GmtOffset, 0);
    tree.children(0);
    tree.finish()
}

/// The complete metadata event; `is_plain`: with the types of other profilers.
pub(crate) fn metadata_event(ticks: u64, is_plain: bool) -> Vec<u8> {
    let described = described(is_plain);
    let mut body = Vec::with_capacity(described.len() + 64);
    put_varint(&mut body, u64::from(id::METADATA));
    put_varint(&mut body, ticks);
    put_varint(&mut body, 0); // duration
    // The metadata's id: new for each chunk, because the JDK's reader keeps an earlier chunk's
    // clock for as long as the id stays the same (jdk.jfr.internal.consumer.ChunkParser).
    put_varint(&mut body, ticks.max(1));
    body.extend_from_slice(described);
    let mut event = Vec::new();
    put_framed(&mut event, &body);
    event
}

/// The tree so far, and its strings.
struct Tree {
    out: Vec<u8>,
    list: Vec<Text>,
    places: HashMap<&'static str, u64, Seeds>,
    /// Places of numbers, which are types' ids; 0: not yet in the list.
    numbers: [u64; 128],
}

impl Tree {
    fn new() -> Self {
        let list: Vec<Text> = WORDS.map(Cow::Borrowed).into();
        let places = WORDS.into_iter().zip(0..).collect();
        Self {
            // About 20 KB of strings and the same amount of other data.
            out: Vec::with_capacity(32 << 10),
            list,
            places,
            numbers: [0; 128],
        }
    }

    /// An element begins: so many attributes follow, then its children.
    fn element(&mut self, name: Word, attributes: usize) {
        self.word(name);
        put_varint(&mut self.out, attributes as u64);
    }

    fn children(&mut self, count: usize) {
        put_varint(&mut self.out, count as u64);
    }

    fn attribute(&mut self, key: Word, value: &'static str) {
        self.word(key);
        self.text(value);
    }

    fn number(&mut self, key: Word, value: u8) {
        self.word(key);
        let place = self.numbers.get(usize::from(value)).copied();
        let place = match place {
            Some(known @ 1..) => known,
            _ => {
                let new = self.add(Cow::Owned(value.to_string()));
                if let Some(known) = self.numbers.get_mut(usize::from(value)) {
                    *known = new;
                }
                new
            }
        };
        put_varint(&mut self.out, place);
    }

    fn word(&mut self, word: Word) {
        put_varint(&mut self.out, word as u64);
    }

    fn text(&mut self, text: &'static str) {
        let place = match self.places.get(text) {
            Some(known) => *known,
            None => {
                let new = self.add(Cow::Borrowed(text));
                self.places.insert(text, new);
                new
            }
        };
        put_varint(&mut self.out, place);
    }

    fn add(&mut self, text: Text) -> u64 {
        self.list.push(text);
        self.list.len() as u64 - 1
    }

    fn finish(self) -> Vec<u8> {
        let strings: usize = self.list.iter().map(|text| text.len() + 4).sum();
        let mut described = Vec::with_capacity(strings + self.out.len());
        put_varint(&mut described, self.list.len() as u64);
        for text in &self.list {
            put_text(&mut described, text);
        }
        described.extend_from_slice(&self.out);
        described
    }

    fn class(&mut self, def: &'static TypeDef) {
        let more = match def.kind {
            TypeKind::Event(_) => Some((Word::SuperType, "jdk.jfr.Event")),
            TypeKind::Annotation(_) => Some((Word::SuperType, "java.lang.annotation.Annotation")),
            TypeKind::Simple => Some((Word::SimpleType, "true")),
            TypeKind::Primitive | TypeKind::Structure => None,
        };
        self.element(Word::Class, 2 + usize::from(more.is_some()));
        self.number(Word::Id, def.id);
        self.attribute(Word::Name, def.name);
        if let Some((key, value)) = more {
            self.attribute(key, value);
        }
        let is_annotated = matches!(def.kind, TypeKind::Event(_) | TypeKind::Annotation(true));
        let own = def.fields.len() + usize::from(is_annotated);
        self.children(own + described_by(def.label, def.description));
        def.fields.iter().for_each(|def| self.field(def));
        match def.kind {
            TypeKind::Event(category) => self.category(category),
            TypeKind::Annotation(true) => self.annotation(id::CONTENT_TYPE, None),
            _ => {}
        }
        self.describe(def.label, def.description);
    }

    fn category(&mut self, category: &'static [&'static str]) {
        self.element(Word::Annotation, 1 + category.len());
        self.number(Word::Class, id::CATEGORY);
        for (number, part) in category.iter().enumerate() {
            match PARTS.get(number) {
                Some(key) => self.text(key),
                None => {
                    let place = self.add(Cow::Owned(format!("value-{number}")));
                    put_varint(&mut self.out, place);
                }
            }
            self.text(part);
        }
        self.children(0);
    }

    fn field(&mut self, def: &'static FieldDef) {
        let more = match def.content {
            Content::Pooled(_) => Some((Word::ConstantPool, "true")),
            Content::Array(_) | Content::TextArray => Some((Word::Dimension, "1")),
            _ => None,
        };
        self.element(Word::Field, 2 + usize::from(more.is_some()));
        self.attribute(Word::Name, def.name);
        self.number(Word::Class, def.content.type_id());
        if let Some((key, value)) = more {
            self.attribute(key, value);
        }
        let annotation = def.content.annotation();
        let own = usize::from(annotation.is_some());
        self.children(own + described_by(def.label, def.description));
        if let Some((class, value)) = annotation {
            self.annotation(class, value);
        }
        self.describe(def.label, def.description);
    }

    fn describe(&mut self, label: &'static str, description: &'static str) {
        for (class, text) in [(id::LABEL, label), (id::DESCRIPTION, description)] {
            if !text.is_empty() {
                self.annotation(class, Some(text));
            }
        }
    }

    fn annotation(&mut self, class: u8, value: Option<&'static str>) {
        self.element(Word::Annotation, 1 + usize::from(value.is_some()));
        self.number(Word::Class, class);
        if let Some(value) = value {
            self.attribute(Word::Value, value);
        }
        self.children(0);
    }
}

/// How many elements [`Tree::describe`] writes.
fn described_by(label: &str, description: &str) -> usize {
    usize::from(!label.is_empty()) + usize::from(!description.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element, as a reader finds it.
    #[derive(Debug, PartialEq)]
    struct Read {
        name: String,
        attributes: Vec<(String, String)>,
        children: Vec<Read>,
    }

    impl Read {
        fn new(name: &str, attributes: &[(&str, &str)], children: Vec<Read>) -> Read {
            let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            Read {
                name: name.to_owned(),
                attributes: attributes.iter().map(own).collect(),
                children,
            }
        }
    }

    fn varint(bytes: &mut &[u8]) -> usize {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = usize::from(bytes[0]);
            *bytes = &bytes[1..];
            value |= (byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }

    fn strings(bytes: &mut &[u8]) -> Vec<String> {
        let count = varint(bytes);
        let one = |_| {
            let kind = varint(bytes);
            let len = if kind == 1 { 0 } else { varint(bytes) };
            let (text, after) = bytes.split_at(len);
            *bytes = after;
            String::from_utf8(text.to_vec()).unwrap()
        };
        (0..count).map(one).collect()
    }

    fn element(bytes: &mut &[u8], strings: &[String]) -> Read {
        let name = strings[varint(bytes)].clone();
        let attributes = varint(bytes);
        let attributes = (0..attributes)
            .map(|_| {
                let key = strings[varint(bytes)].clone();
                (key, strings[varint(bytes)].clone())
            })
            .collect();
        let children = varint(bytes);
        let children = (0..children).map(|_| element(bytes, strings)).collect();
        Read {
            name,
            attributes,
            children,
        }
    }

    fn annotation(class: u8, values: &[(&str, &str)]) -> Read {
        let class = class.to_string();
        let mut attributes = vec![("class", class.as_str())];
        attributes.extend(values);
        Read::new("annotation", &attributes, Vec::new())
    }

    fn texts(label: &str, description: &str) -> Vec<Read> {
        let both = [(id::LABEL, label), (id::DESCRIPTION, description)];
        let some = both.into_iter().filter(|(_, text)| !text.is_empty());
        some.map(|(class, text)| annotation(class, &[("value", text)]))
            .collect()
    }

    fn expected_field(def: &FieldDef) -> Read {
        let class = def.content.type_id().to_string();
        let mut attributes = vec![("name", def.name), ("class", class.as_str())];
        match def.content {
            Content::Pooled(_) => attributes.push(("constantPool", "true")),
            Content::Array(_) | Content::TextArray => attributes.push(("dimension", "1")),
            _ => {}
        }
        let mut children = Vec::new();
        if let Some((class, value)) = def.content.annotation() {
            let value = value.map(|value| ("value", value));
            children.push(annotation(class, value.as_slice()));
        }
        children.extend(texts(def.label, def.description));
        Read::new("field", &attributes, children)
    }

    fn expected_class(def: &TypeDef) -> Read {
        let id = def.id.to_string();
        let mut attributes = vec![("id", id.as_str()), ("name", def.name)];
        let mut children: Vec<Read> = def.fields.iter().map(expected_field).collect();
        match def.kind {
            TypeKind::Event(category) => {
                attributes.push(("superType", "jdk.jfr.Event"));
                let keys: Vec<String> = (0..category.len()).map(|n| format!("value-{n}")).collect();
                let parts = keys.iter().zip(category);
                let parts: Vec<(&str, &str)> = parts.map(|(key, it)| (key.as_str(), *it)).collect();
                children.push(annotation(id::CATEGORY, &parts));
            }
            TypeKind::Annotation(is_content) => {
                attributes.push(("superType", "java.lang.annotation.Annotation"));
                children.extend(is_content.then(|| annotation(id::CONTENT_TYPE, &[])));
            }
            TypeKind::Simple => attributes.push(("simpleType", "true")),
            TypeKind::Primitive | TypeKind::Structure => {}
        }
        children.extend(texts(def.label, def.description));
        Read::new("class", &attributes, children)
    }

    #[test]
    fn all_types_are_described_and_nothing_else() {
        for is_plain in [false, true] {
            let described = describe_types(is_plain);
            let mut rest = described.as_slice();
            let strings = strings(&mut rest);
            let root = element(&mut rest, &strings);
            assert!(rest.is_empty());
            let classes = match is_plain {
                true => plain_types().map(expected_class).collect(),
                false => all_types().map(expected_class).collect(),
            };
            let zone = [("locale", "en_US"), ("gmtOffset", "0")];
            let children = vec![
                Read::new("metadata", &[], classes),
                Read::new("region", &zone, Vec::new()),
            ];
            assert_eq!(root, Read::new("root", &[], children));
        }
    }

    #[test]
    fn string_is_written_once() {
        let mut described = &*describe_types(true);
        let mut strings = strings(&mut described);
        let all = strings.len();
        strings.sort_unstable();
        strings.dedup();
        // "1" is a type's number or the number of dimensions.
        assert!(strings.len() + 1 >= all, "{} of {all}", strings.len());
        assert_eq!(WORDS[Word::GmtOffset as usize], "gmtOffset");
    }

    #[test]
    fn long_categories_have_all_their_parts() {
        let mut tree = Tree::new();
        tree.category(&["a", "b", "c", "d", "e", "f"]);
        let described = tree.finish();
        let mut rest = described.as_slice();
        let strings = strings(&mut rest);
        let all = element(&mut rest, &strings).attributes;
        let pair = |(key, value): &(String, String)| format!("{key}={value}");
        let all: Vec<String> = all.iter().skip(1).map(pair).collect();
        let expected = "value-0=a value-1=b value-2=c value-3=d value-4=e value-5=f";
        assert_eq!(all.join(" "), expected);
    }
}

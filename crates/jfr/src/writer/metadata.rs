//! The metadata event, generated from the tables in `schema`: a list of strings and a tree of
//! elements whose names and attributes are places in that list.

use crate::hash::Seeds;
use crate::schema::{FieldDef, TypeDef, TypeKind, all_types, id, plain_types};
use crate::wire::{put_framed, put_text, put_varint};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

type Text = Cow<'static, str>;

/// An element of the tree, the way the format has it.
#[derive(Default)]
struct Element {
    name: &'static str,
    attributes: Vec<(Text, Text)>,
    children: Vec<Element>,
}

impl Element {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    fn attribute(mut self, key: impl Into<Text>, value: impl Into<Text>) -> Self {
        self.attributes.push((key.into(), value.into()));
        self
    }

    fn number(self, key: &'static str, value: impl ToString) -> Self {
        self.attribute(key, value.to_string())
    }
}

/// What is the same in all such events: the strings, with their number before them, and the tree.
/// Made once, as each chunk has it.
fn described(is_plain: bool) -> &'static [u8] {
    static DESCRIBED: [OnceLock<Vec<u8>>; 2] = [OnceLock::new(), OnceLock::new()];
    let [all, plain] = &DESCRIBED;
    let known = if is_plain { plain } else { all };
    known.get_or_init(|| describe_types(is_plain))
}

fn describe_types(is_plain: bool) -> Vec<u8> {
    let mut metadata = Element::new("metadata");
    metadata.children = match is_plain {
        true => plain_types().map(class).collect(),
        false => all_types().map(class).collect(),
    };
    let region = Element::new("region")
        .attribute("locale", "en_US")
        .number("gmtOffset", 0);
    let mut root = Element::new("root");
    root.children = vec![metadata, region];

    let mut strings = Strings::default();
    let mut tree = Vec::new();
    strings.put_element(&mut tree, &root);

    let mut described = Vec::new();
    put_varint(&mut described, strings.list.len() as u64);
    for text in &strings.list {
        put_text(&mut described, text);
    }
    described.extend_from_slice(&tree);
    described
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

fn class(def: &'static TypeDef) -> Element {
    let mut class = Element::new("class")
        .number("id", def.id)
        .attribute("name", def.name);
    class = match def.kind {
        TypeKind::Event(_) => class.attribute("superType", "jdk.jfr.Event"),
        TypeKind::Annotation(_) => class.attribute("superType", "java.lang.annotation.Annotation"),
        TypeKind::Simple => class.attribute("simpleType", "true"),
        TypeKind::Primitive | TypeKind::Structure => class,
    };
    class.children.extend(def.fields.iter().map(field));
    match def.kind {
        TypeKind::Event(category) => {
            let mut element = Element::new("annotation").number("class", id::CATEGORY);
            for (place, part) in category.iter().enumerate() {
                element = element.attribute(format!("value-{place}"), *part);
            }
            class.children.push(element);
        }
        TypeKind::Annotation(true) => class.children.push(annotation(id::CONTENT_TYPE, None)),
        _ => {}
    }
    describe(&mut class, def.label, def.description);
    class
}

fn field(def: &'static FieldDef) -> Element {
    let mut field = Element::new("field")
        .attribute("name", def.name)
        .number("class", def.content.type_id());
    match def.content {
        crate::schema::Content::Pooled(_) => field = field.attribute("constantPool", "true"),
        crate::schema::Content::Array(_) | crate::schema::Content::TextArray => {
            field = field.attribute("dimension", "1");
        }
        _ => {}
    }
    if let Some((class, value)) = def.content.annotation() {
        field.children.push(annotation(class, value));
    }
    describe(&mut field, def.label, def.description);
    field
}

fn describe(element: &mut Element, label: &'static str, description: &'static str) {
    for (class, text) in [(id::LABEL, label), (id::DESCRIPTION, description)] {
        if !text.is_empty() {
            element.children.push(annotation(class, Some(text)));
        }
    }
}

fn annotation(class: u8, value: Option<&'static str>) -> Element {
    let element = Element::new("annotation").number("class", class);
    match value {
        Some(value) => element.attribute("value", value),
        None => element,
    }
}

#[derive(Default)]
struct Strings<'e> {
    list: Vec<&'e str>,
    places: HashMap<&'e str, u64, Seeds>,
}

impl<'e> Strings<'e> {
    fn place(&mut self, text: &'e str) -> u64 {
        *self.places.entry(text).or_insert_with(|| {
            self.list.push(text);
            self.list.len() as u64 - 1
        })
    }

    /// The tables are three levels deep, so the recursion is bounded.
    fn put_element(&mut self, out: &mut Vec<u8>, element: &'e Element) {
        put_varint(out, self.place(element.name));
        put_varint(out, element.attributes.len() as u64);
        for (key, value) in &element.attributes {
            put_varint(out, self.place(key));
            put_varint(out, self.place(value));
        }
        put_varint(out, element.children.len() as u64);
        for child in &element.children {
            self.put_element(out, child);
        }
    }
}

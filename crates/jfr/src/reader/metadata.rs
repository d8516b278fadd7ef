//! The metadata event: which types the chunk has and how their values are laid out. Types refer to
//! each other by place in one table; nothing here reads values.

use super::cursor::{Cursor, RawText};
use super::error::Error;
use std::collections::HashMap;
use std::sync::Arc;

/// Nesting of elements; the format needs four levels.
const DEPTH_MAX: usize = 16;
/// Digits of a number, and room for a sign or zeros.
const DIGITS_MAX: usize = 32;
/// Elements that memory is taken for before they are read; a broken file may announce more.
const PREALLOCATED_MAX: usize = 64;

/// How a value stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Bool,
    Byte,
    Char,
    Short,
    Int,
    Long,
    Float,
    Double,
    Text,
    /// A key into the pool of that type.
    Pooled(usize),
    /// The fields of that type in place.
    Inline(usize),
    /// A type that the metadata does not have.
    Unknown,
}

/// The meaning of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    None,
    Unsigned,
    /// A duration in the clock's ticks.
    SpanTicks,
    /// A duration in units of that many nanoseconds.
    Span(i64),
    /// A point in time in the clock's ticks.
    TimeTicks,
    /// A point in time in units of that many nanoseconds since the epoch.
    Time(i64),
}

pub(crate) struct Field {
    pub(crate) name: Arc<str>,
    pub(crate) wire: Wire,
    pub(crate) array: bool,
    pub(crate) unit: Unit,
}

impl Field {
    /// Whether it is one number of the kind whose length depends on its value.
    pub(crate) fn is_number(&self) -> bool {
        let is_number = matches!(
            self.wire,
            Wire::Char | Wire::Short | Wire::Int | Wire::Long | Wire::Pooled(_)
        );
        is_number && !self.array
    }
}

/// Types that the reader knows by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Thread,
    Stack,
    Method,
    Class,
    Text,
    /// A type whose only field stands for it.
    Simple,
    Other,
}

pub(crate) struct Class {
    pub(crate) name: Arc<str>,
    pub(crate) known: Known,
    pub(crate) is_event: bool,
    pub(crate) fields: Vec<Field>,
    /// The length of a value in numbers, if it consists of numbers only.
    pub(crate) numbers: Option<usize>,
}

/// All types of a chunk.
pub(crate) struct Types {
    classes: Vec<Class>,
    places: HashMap<u64, usize>,
}

impl Types {
    /// Reads the metadata event at the cursor, which has to end where the event ends.
    pub(crate) fn read(mut cursor: Cursor<'_>) -> Result<Self, Error> {
        cursor.varint()?; // start time
        cursor.varint()?; // duration
        cursor.varint()?; // metadata id
        let count = cursor.count(1)?;
        let mut strings: Vec<Arc<str>> = Vec::new();
        for _ in 0..count {
            strings.push(match cursor.text()? {
                RawText::Text(text) => text.into(),
                RawText::Null | RawText::Pooled(_) => "".into(),
            });
        }
        let root = Element::read(&mut cursor, &strings, 0)?;
        let metadata = root
            .children
            .iter()
            .find(|child| &*child.name == "metadata");
        let metadata = metadata.ok_or(cursor.malformed("metadata without types before"))?;
        Ok(Self::build(metadata))
    }

    pub(crate) fn place(&self, id: u64) -> Option<usize> {
        self.places.get(&id).copied()
    }

    pub(crate) fn class(&self, place: usize) -> Option<&Class> {
        self.classes.get(place)
    }

    /// Ids and types of the events.
    pub(crate) fn events(&self) -> impl Iterator<Item = (u64, &Class)> {
        let places = self.places.iter();
        let classes = places.filter_map(|(&id, &place)| Some((id, self.class(place)?)));
        classes.filter(|(_, class)| class.is_event)
    }

    /// The place of the string type.
    pub(crate) fn string_place(&self) -> Option<usize> {
        self.classes
            .iter()
            .position(|class| class.known == Known::Text)
    }

    fn build(metadata: &Element) -> Self {
        let elements = || {
            metadata
                .children
                .iter()
                .filter(|child| &*child.name == "class")
        };
        let mut names = Names::default();
        for (place, element) in elements().enumerate() {
            let id = element.number("id").unwrap_or(u64::MAX);
            names.places.insert(id, place);
            names
                .names
                .push(element.get("name").map(current).unwrap_or_default());
        }
        let classes = elements().map(|element| class(element, &names)).collect();
        Self {
            classes,
            places: names.places,
        }
    }
}

/// The names of all types, known before their fields are read.
#[derive(Default)]
struct Names {
    names: Vec<Arc<str>>,
    places: HashMap<u64, usize>,
}

impl Names {
    fn name(&self, id: Option<u64>) -> Option<(usize, &str)> {
        let place = *self.places.get(&id?)?;
        Some((place, self.names.get(place)?))
    }
}

/// Longer than any name of the JDK's. Longer names are not copied, as many types may have one name.
const FORMER_NAME_MAX: usize = 256;

/// The name that a type has now: JDK 9 and 10 had others.
fn current(name: &Arc<str>) -> Arc<str> {
    const FORMER: [(&str, &str); 3] = [
        ("com.oracle.jdk.", "jdk."),
        ("com.oracle.jfr.types.", "jdk.types."),
        ("com.oracle.jfr.", "jdk.jfr."),
    ];
    let mut former = FORMER.iter().filter(|_| name.len() <= FORMER_NAME_MAX);
    let found = former.find_map(|(former, now)| {
        let rest = name.strip_prefix(former)?;
        Some(format!("{now}{rest}").into())
    });
    found.unwrap_or_else(|| Arc::clone(name))
}

fn class(element: &Element, names: &Names) -> Class {
    let fields = element
        .children
        .iter()
        .filter(|child| &*child.name == "field");
    let fields: Vec<_> = fields.map(|child| field(child, names)).collect();
    let name = element.get("name").map(current).unwrap_or_default();
    let simple = element.is("simpleType", "true") && fields.len() == 1;
    let known = match &*name {
        "java.lang.Thread" => Known::Thread,
        "jdk.types.StackTrace" => Known::Stack,
        "jdk.types.Method" => Known::Method,
        "java.lang.Class" => Known::Class,
        "java.lang.String" => Known::Text,
        _ if simple => Known::Simple,
        _ => Known::Other,
    };
    let is_event = (element.get("superType")).is_some_and(|it| &*current(it) == "jdk.jfr.Event");
    Class {
        name,
        known,
        is_event,
        numbers: (!fields.is_empty() && fields.iter().all(Field::is_number))
            .then_some(fields.len()),
        fields,
    }
}

fn field(element: &Element, names: &Names) -> Field {
    let pooled = element.is("constantPool", "true");
    let wire = match names.name(element.number("class")) {
        None => Wire::Unknown,
        Some((place, _)) if pooled => Wire::Pooled(place),
        Some((place, name)) => match name {
            "boolean" => Wire::Bool,
            "byte" => Wire::Byte,
            "char" => Wire::Char,
            "short" => Wire::Short,
            "int" => Wire::Int,
            "long" => Wire::Long,
            "float" => Wire::Float,
            "double" => Wire::Double,
            "java.lang.String" => Wire::Text,
            _ => Wire::Inline(place),
        },
    };
    let annotations = element
        .children
        .iter()
        .filter(|child| &*child.name == "annotation");
    let mut unit = Unit::None;
    for annotation in annotations {
        let value = annotation.get("value").map_or("", |value| value);
        let class = names
            .name(annotation.number("class"))
            .map_or("", |(_, name)| name);
        match (class, value) {
            ("jdk.jfr.Timespan", "TICKS") => unit = Unit::SpanTicks,
            ("jdk.jfr.Timespan", _) => unit = Unit::Span(nanos(value)),
            ("jdk.jfr.Timestamp", "TICKS") => unit = Unit::TimeTicks,
            ("jdk.jfr.Timestamp", _) => unit = Unit::Time(nanos(value)),
            ("jdk.jfr.Unsigned", _) if unit == Unit::None => unit = Unit::Unsigned,
            _ => {}
        }
    }
    let array = element
        .number("dimension")
        .is_some_and(|dimension| dimension > 0);
    let name = element.get("name").cloned().unwrap_or_default();
    Field {
        name,
        wire,
        array,
        unit,
    }
}

/// Nanoseconds in a unit of `Timespan` or `Timestamp`.
fn nanos(unit: &str) -> i64 {
    match unit {
        "SECONDS" | "SECONDS_SINCE_EPOCH" => 1_000_000_000,
        "MILLISECONDS" | "MILLISECONDS_SINCE_EPOCH" => 1_000_000,
        "MICROSECONDS" => 1000,
        _ => 1,
    }
}

/// An element of the tree that the metadata is written as.
struct Element {
    name: Arc<str>,
    attributes: Vec<(Arc<str>, Arc<str>)>,
    children: Vec<Element>,
}

impl Element {
    fn read(cursor: &mut Cursor<'_>, strings: &[Arc<str>], depth: usize) -> Result<Self, Error> {
        if depth > DEPTH_MAX {
            return Err(cursor.malformed("metadata nested too deeply"));
        }
        let text = |cursor: &mut Cursor<'_>| {
            let place = usize::try_from(cursor.varint()?).unwrap_or(usize::MAX);
            let text = strings.get(place).cloned();
            text.ok_or(cursor.malformed("an unknown string before"))
        };
        let name = text(cursor)?;
        let count = cursor.count(2)?;
        let mut attributes = Vec::with_capacity(count.min(PREALLOCATED_MAX));
        for _ in 0..count {
            attributes.push((text(cursor)?, text(cursor)?));
        }
        let count = cursor.count(3)?;
        let mut children = Vec::with_capacity(count.min(PREALLOCATED_MAX));
        for _ in 0..count {
            children.push(Self::read(cursor, strings, depth + 1)?);
        }
        Ok(Self {
            name,
            attributes,
            children,
        })
    }

    fn get(&self, key: &str) -> Option<&Arc<str>> {
        self.attributes
            .iter()
            .find(|(name, _)| &**name == key)
            .map(|(_, value)| value)
    }

    fn is(&self, key: &str, expected: &str) -> bool {
        self.get(key).is_some_and(|value| &**value == expected)
    }

    fn number(&self, key: &str) -> Option<u64> {
        let digits = self.get(key)?;
        // Many elements may have one text; a number is short.
        (digits.len() <= DIGITS_MAX).then(|| digits.parse().ok())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::header::ChunkInfo;
    use crate::writer::{ChunkClock, ChunkWriter};

    fn element(name: &str, attributes: &[(&str, &str)], children: Vec<Element>) -> Element {
        let attributes = attributes.iter();
        Element {
            name: name.into(),
            attributes: (attributes.map(|(name, value)| ((*name).into(), (*value).into())))
                .collect(),
            children,
        }
    }

    /// JDK 9 and 10 called the JDK's events and types otherwise.
    #[test]
    fn former_names_of_types_are_the_present_ones() {
        let stack = [("id", "1"), ("name", "com.oracle.jfr.types.StackTrace")];
        let fields = [
            ("name", "stackTrace"),
            ("class", "1"),
            ("constantPool", "true"),
        ];
        let sample = [
            ("id", "2"),
            ("name", "com.oracle.jdk.ExecutionSample"),
            ("superType", "jdk.jfr.Event"),
        ];
        let field = element("field", &fields, Vec::new());
        let classes = vec![
            element("class", &stack, Vec::new()),
            element("class", &sample, vec![field]),
        ];
        let types = Types::build(&element("metadata", &[], classes));
        let (id, class) = types.events().next().unwrap();
        assert_eq!((id, &*class.name), (2, "jdk.ExecutionSample"));
        let Wire::Pooled(place) = class.fields[0].wire else {
            panic!("not pooled")
        };
        assert_eq!(types.class(place).unwrap().known, Known::Stack);
        assert_eq!(
            &*current(&"com.oracle.other.Event".into()),
            "com.oracle.other.Event"
        );
    }

    #[test]
    fn the_writers_metadata_comes_back() {
        let clock = ChunkClock {
            epoch_ns: 0,
            start_ticks: 0,
            ticks_per_second: 1,
        };
        let file = ChunkWriter::new(clock).flush(0);
        let info = ChunkInfo::read(&file, 0).unwrap();
        let mut cursor = Cursor::new(&file, info.metadata, info.end());
        cursor.varint().unwrap(); // size
        assert_eq!(cursor.varint(), Ok(0));
        let types = Types::read(cursor).unwrap();
        let (_, sample) = types
            .events()
            .find(|(_, class)| &*class.name == "jdk.ExecutionSample")
            .unwrap();
        let field = |name: &str| {
            sample
                .fields
                .iter()
                .find(|field| &*field.name == name)
                .unwrap()
        };
        assert_eq!(field("startTime").unit, Unit::TimeTicks);
        let names: Vec<&str> = sample.fields.iter().map(|field| &*field.name).collect();
        assert_eq!(names, ["startTime", "sampledThread", "stackTrace", "state"]);
        let mut details = types.events();
        let detail = details.find(|(_, class)| &*class.name == "dwell.SampleDetail");
        let detail = &detail.unwrap().1.fields;
        assert_eq!(
            (&*detail[2].name, detail[2].unit),
            ("weight", Unit::Span(1))
        );
        assert_eq!((&*detail[3].name, detail[3].wire), ("failure", Wire::Text));
        let Wire::Pooled(stack) = field("stackTrace").wire else {
            panic!("not pooled")
        };
        let stack = types.class(stack).unwrap();
        assert_eq!(stack.known, Known::Stack);
        assert!(stack.fields[1].array);
        assert_eq!(types.events().count(), 37);
        let mut lost = types
            .events()
            .filter(|(_, class)| &*class.name == "dwell.Lost");
        let fields = &lost.next().unwrap().1.fields;
        let unit = |name: &str| fields.iter().find(|it| &*it.name == name).map(|it| it.unit);
        assert_eq!(unit("samples"), Some(Unit::Unsigned));
    }
}

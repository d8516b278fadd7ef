//! The dictionary of OTLP profiles: tables whose entries samples refer to by index. The first entry
//! of each table is empty.

use std::borrow::Cow;
use std::collections::HashMap;

use dwell_profile::{CallTree, Frame, FrameId, FrameKind, MethodId, NodeId, Profile, plain};
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::profiles::v1development::{
    Function, KeyValueAndUnit, Line, Link, Location, Mapping, ProfilesDictionary, Stack, ValueType,
};

use crate::NO_STACK;
use crate::sample_facts::{Facts, is_java, library};
use crate::typed_values::Key;

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Datum<'p> {
    Text(&'p str),
    Number(i64),
}

/// A dictionary under construction.
pub struct Dictionary<'p> {
    profile: &'p Profile,
    tables: ProfilesDictionary,
    texts: HashMap<String, i32>,
    /// Indexes by those in the profile.
    stacks: HashMap<NodeId, i32>,
    locations: HashMap<FrameId, i32>,
    functions: HashMap<MethodId, i32>,
    mappings: HashMap<&'p str, i32>,
    links: HashMap<(u128, u64), i32>,
    attributes: HashMap<(Cow<'p, str>, Datum<'p>), i32>,
}

/// Index of the next entry of a table.
fn next<T>(table: &[T]) -> i32 {
    i32::try_from(table.len()).unwrap_or(i32::MAX)
}

impl<'p> Dictionary<'p> {
    /// An empty dictionary.
    pub fn new(profile: &'p Profile) -> Dictionary<'p> {
        Dictionary {
            profile,
            tables: ProfilesDictionary {
                mapping_table: vec![Mapping::default()],
                location_table: vec![Location::default()],
                function_table: vec![Function::default()],
                link_table: vec![Link::default()],
                string_table: vec![String::new()],
                attribute_table: vec![KeyValueAndUnit::default()],
                stack_table: vec![Stack::default()],
            },
            texts: HashMap::from([(String::new(), 0)]),
            stacks: HashMap::new(),
            locations: HashMap::new(),
            functions: HashMap::new(),
            mappings: HashMap::new(),
            links: HashMap::new(),
            attributes: HashMap::new(),
        }
    }

    /// The finished dictionary.
    pub fn finish(self) -> ProfilesDictionary {
        self.tables
    }

    /// A type of value.
    pub fn value_type(&mut self, name: &str, unit: &str) -> ValueType {
        ValueType {
            type_strindex: self.text(name),
            unit_strindex: self.text(unit),
        }
    }

    /// The index of a stack.
    pub fn stack(&mut self, node: NodeId) -> i32 {
        if let Some(known) = self.stacks.get(&node) {
            return *known;
        }
        let location_indices = match node {
            CallTree::ROOT => vec![self.no_stack()],
            node => {
                let frames = self.profile.tree().stack(node);
                frames.map(|frame| self.location(frame)).collect()
            }
        };
        let place = next(&self.tables.stack_table);
        self.tables.stack_table.push(Stack { location_indices });
        self.stacks.insert(node, place);
        place
    }

    /// A location for samples without a stack. It is requested once.
    fn no_stack(&mut self) -> i32 {
        let name = self.text(NO_STACK);
        let function_index = self.add_function(name, name);
        self.add_location(0, function_index, 0, None)
    }

    fn location(&mut self, id: FrameId) -> i32 {
        if let Some(known) = self.locations.get(&id) {
            return *known;
        }
        let profile = self.profile;
        let frame = profile.frames().get(id as usize).copied();
        let place = match frame {
            Some(frame) => {
                let mapping = self.mapping(library(profile, &frame));
                let function = self.function(frame.method);
                let kind = self.attribute(
                    "profile.frame.type".into(),
                    Datum::Text(kind(profile, &frame)),
                );
                self.add_location(mapping, function, frame.line, Some(kind))
            }
            None => self.no_stack(),
        };
        self.locations.insert(id, place);
        place
    }

    fn add_location(
        &mut self,
        mapping_index: i32,
        function_index: i32,
        line: u32,
        kind: Option<i32>,
    ) -> i32 {
        let place = next(&self.tables.location_table);
        self.tables.location_table.push(Location {
            mapping_index,
            lines: vec![Line {
                function_index,
                line: i64::from(line),
                column: 0,
            }],
            attribute_indices: kind.into_iter().collect(),
            ..Location::default()
        });
        place
    }

    fn function(&mut self, method: MethodId) -> i32 {
        if let Some(known) = self.functions.get(&method) {
            return *known;
        }
        let profile = self.profile;
        let name = profile.method_name(method);
        let descriptor = profile.methods().get(method as usize);
        let descriptor = descriptor.map_or("", |it| profile.names().text(it.descriptor));
        let system_name = self.text(&format!("{name}{descriptor}"));
        let name = self.text(&name);
        let place = self.add_function(name, system_name);
        self.functions.insert(method, place);
        place
    }

    fn add_function(&mut self, name_strindex: i32, system_name_strindex: i32) -> i32 {
        let place = next(&self.tables.function_table);
        self.tables.function_table.push(Function {
            name_strindex,
            system_name_strindex,
            ..Function::default()
        });
        place
    }

    fn mapping(&mut self, library: &'p str) -> i32 {
        if library.is_empty() {
            return 0;
        }
        if let Some(known) = self.mappings.get(library) {
            return *known;
        }
        let filename_strindex = self.text(library);
        let place = next(&self.tables.mapping_table);
        self.tables.mapping_table.push(Mapping {
            filename_strindex,
            ..Mapping::default()
        });
        self.mappings.insert(library, place);
        place
    }

    /// The index of a request's link; 0: no link.
    pub fn link(&mut self, key: &Key<'p>) -> i32 {
        let facts = Facts::of(self.profile, key);
        let ids = (facts.trace_id, facts.span_id);
        if ids.0 == 0 || ids.1 == 0 {
            return 0;
        }
        let place = next(&self.tables.link_table);
        let known = *self.links.entry(ids).or_insert(place);
        if known == place {
            self.tables.link_table.push(Link {
                trace_id: ids.0.to_be_bytes().to_vec(),
                span_id: ids.1.to_be_bytes().to_vec(),
            });
        }
        known
    }

    /// The indexes of a sample's attributes, with each key at most once.
    pub fn attributes(&mut self, key: &Key<'p>) -> Vec<i32> {
        let facts = Facts::of(self.profile, key);
        let mut all = vec![
            ("thread.name", Datum::Text(facts.thread)),
            ("thread.id", Datum::Number(facts.thread_id)),
            ("dwell.cause", Datum::Text(facts.cause)),
            ("dwell.detail", Datum::Text(facts.detail)),
            ("dwell.owner", Datum::Text(facts.owner)),
            ("dwell.endpoint", Datum::Text(facts.endpoint)),
        ];
        if let Some((method, route)) = route(facts.endpoint) {
            all.push(("http.request.method", Datum::Text(method)));
            all.push(("http.route", Datum::Text(route)));
        }
        let is_ours = |name: &str| all.iter().any(|(other, _)| *other == name);
        let labels = facts
            .labels
            .into_iter()
            .map(|(name, value)| match is_ours(name) {
                true => (Cow::Owned(format!("label.{name}")), Datum::Text(value)),
                false => (Cow::Borrowed(name), Datum::Text(value)),
            });
        let labels: Vec<_> = labels.collect();
        let all = all
            .into_iter()
            .map(|(name, fact)| (Cow::Borrowed(name), fact));
        let all = all.chain(labels);
        let is_known = |fact: &Datum<'_>| !matches!(fact, Datum::Text("") | Datum::Number(0));
        let known = all.filter(|(_, fact)| is_known(fact));
        known
            .map(|(name, fact)| self.attribute(name, fact))
            .collect()
    }

    fn attribute(&mut self, name: Cow<'p, str>, fact: Datum<'p>) -> i32 {
        let key_strindex = self.text(&name);
        let place = next(&self.tables.attribute_table);
        let known = *self.attributes.entry((name, fact)).or_insert(place);
        if known != place {
            return known;
        }
        let value = match fact {
            Datum::Text(text) => Value::StringValue(plain(text)),
            Datum::Number(number) => Value::IntValue(number),
        };
        self.tables.attribute_table.push(KeyValueAndUnit {
            key_strindex,
            value: Some(AnyValue { value: Some(value) }),
            unit_strindex: 0,
        });
        place
    }

    /// The index of a text.
    fn text(&mut self, text: &str) -> i32 {
        let text = plain(text);
        if let Some(known) = self.texts.get(&text) {
            return *known;
        }
        let place = next(&self.tables.string_table);
        self.texts.insert(text.clone(), place);
        self.tables.string_table.push(text);
        place
    }
}

/// The kind of a frame in the words of OpenTelemetry's conventions.
fn kind(profile: &Profile, frame: &Frame) -> &'static str {
    match frame.kind {
        FrameKind::Kernel => "kernel",
        _ if is_java(profile, frame) => "jvm",
        _ => "native",
    }
}

/// The method and the route of an endpoint like `GET /users/{id}`.
fn route(endpoint: &str) -> Option<(&str, &str)> {
    let (method, route) = endpoint.split_once(' ')?;
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_route = route.starts_with('/') && !route.contains(' ');
    (is_method && is_route).then_some((method, route))
}

//! The tables that all threads share: texts, stacks, frames, functions, resources and libraries.
//! Only those of written samples and markers are in them.
//!
//! A stack has a node for each state that samples with it have, because the Firefox Profiler takes
//! the category of a sample from its frames.

use std::collections::HashMap;
use std::io::{self, Write};

use dwell_profile::{CallTree, Frame, FrameId, FrameKind, MethodId, NodeId, Profile, Seeds};
use serde_json::json;

use crate::NO_STACK;
use crate::json_writer::JsonWriter;
use crate::sample_facts::{UNNAMED, function_name, is_java, library};
use crate::timeline::categories::{Categories, StateId};

/// An index that is not given yet.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct StackRow {
    frame: u32,
    prefix: Option<u32>,
}

#[derive(Clone, Copy)]
struct FrameRow {
    function: u32,
    category: usize,
    subcategory: usize,
    line: u32,
}

#[derive(Clone, Copy)]
struct FunctionRow {
    name: u32,
    resource: Option<u32>,
    source: Option<u32>,
}

/// Indexes of one state, by those in the profile.
#[derive(Clone, Default)]
struct Known {
    stacks: Vec<u32>,
    frames: Vec<u32>,
    no_stack: Option<u32>,
    no_frame: Option<u32>,
}

/// The tables under construction.
pub struct StackTables<'p> {
    profile: &'p Profile,
    categories: &'p Categories,
    texts: Vec<String>,
    text_ids: HashMap<String, u32, Seeds>,
    known: Vec<Known>,
    stacks: Vec<StackRow>,
    frames: Vec<FrameRow>,
    functions: Vec<FunctionRow>,
    function_ids: Vec<u32>,
    no_function: Option<u32>,
    /// Names of libraries. Each one is a resource.
    libraries: Vec<&'p str>,
    library_ids: HashMap<&'p str, u32>,
    /// Names of top-level classes, in place of files.
    sources: Vec<u32>,
    source_ids: HashMap<&'p str, u32>,
}

/// The index of the next row of a table.
fn next<T>(table: &[T]) -> u32 {
    u32::try_from(table.len()).unwrap_or(NONE)
}

impl<'p> StackTables<'p> {
    /// Tables without a row.
    pub fn new(profile: &'p Profile, categories: &'p Categories) -> StackTables<'p> {
        StackTables {
            profile,
            categories,
            texts: Vec::new(),
            text_ids: HashMap::default(),
            known: vec![Known::default(); categories.states()],
            stacks: Vec::new(),
            frames: Vec::new(),
            functions: Vec::new(),
            function_ids: vec![NONE; profile.methods().len()],
            no_function: None,
            libraries: Vec::new(),
            library_ids: HashMap::new(),
            sources: Vec::new(),
            source_ids: HashMap::new(),
        }
    }

    /// The index of a text.
    pub fn text(&mut self, text: &str) -> u32 {
        if let Some(known) = self.text_ids.get(text) {
            return *known;
        }
        let id = next(&self.texts);
        self.texts.push(text.to_owned());
        self.text_ids.insert(text.to_owned(), id);
        id
    }

    /// The index of a stack in a state.
    pub fn stack(&mut self, node: NodeId, state: StateId) -> u32 {
        let profile = self.profile;
        let mut path = Vec::new();
        let mut prefix = None;
        let mut at = node;
        while at != CallTree::ROOT {
            if let Some(known) = self.known_stack(at, state) {
                prefix = Some(known);
                break;
            }
            path.push(at);
            at = profile.tree().parent(at);
        }
        for node in path.into_iter().rev() {
            let frame = self.frame(profile.tree().key(node), state);
            let id = self.add_stack(frame, prefix);
            if let Some(known) = self.known.get_mut(state) {
                if known.stacks.is_empty() {
                    known.stacks = vec![NONE; profile.tree().len()];
                }
                if let Some(place) = known.stacks.get_mut(node as usize) {
                    *place = id;
                }
            }
            prefix = Some(id);
        }
        match prefix {
            Some(id) => id,
            None => self.no_stack(state),
        }
    }

    fn known_stack(&self, node: NodeId, state: StateId) -> Option<u32> {
        let known = self.known.get(state)?.stacks.get(node as usize);
        known.copied().filter(|id| *id != NONE)
    }

    fn add_stack(&mut self, frame: u32, prefix: Option<u32>) -> u32 {
        let id = next(&self.stacks);
        self.stacks.push(StackRow { frame, prefix });
        id
    }

    /// The stack of samples without one, so that their time is visible.
    fn no_stack(&mut self, state: StateId) -> u32 {
        if let Some(known) = self.known.get(state).and_then(|it| it.no_stack) {
            return known;
        }
        let frame = self.no_frame(state);
        let id = self.add_stack(frame, None);
        if let Some(known) = self.known.get_mut(state) {
            known.no_stack = Some(id);
        }
        id
    }

    fn no_frame(&mut self, state: StateId) -> u32 {
        if let Some(known) = self.known.get(state).and_then(|it| it.no_frame) {
            return known;
        }
        let function = match self.no_function {
            Some(known) => known,
            None => {
                let name = self.text(NO_STACK);
                self.add_function(name, None, None)
            }
        };
        self.no_function = Some(function);
        let id = self.add_frame(function, 0, state, FrameKind::Other);
        if let Some(known) = self.known.get_mut(state) {
            known.no_frame = Some(id);
        }
        id
    }

    fn frame(&mut self, frame: FrameId, state: StateId) -> u32 {
        let profile = self.profile;
        let Some(it) = profile.frames().get(frame as usize) else {
            return self.no_frame(state);
        };
        let known = self.known.get(state);
        let known = known.and_then(|it| it.frames.get(frame as usize).copied());
        if let Some(known) = known.filter(|id| *id != NONE) {
            return known;
        }
        let function = self.function(it);
        let id = self.add_frame(function, it.line, state, it.kind);
        if let Some(known) = self.known.get_mut(state) {
            if known.frames.is_empty() {
                known.frames = vec![NONE; profile.frames().len()];
            }
            if let Some(place) = known.frames.get_mut(frame as usize) {
                *place = id;
            }
        }
        id
    }

    fn add_frame(&mut self, function: u32, line: u32, state: StateId, kind: FrameKind) -> u32 {
        let id = next(&self.frames);
        let (category, subcategory) = self.categories.of(state, kind);
        self.frames.push(FrameRow {
            function,
            category,
            subcategory,
            line,
        });
        id
    }

    fn function(&mut self, frame: &Frame) -> u32 {
        let method: MethodId = frame.method;
        let known = self.function_ids.get(method as usize).copied();
        if let Some(known) = known.filter(|id| *id != NONE) {
            return known;
        }
        let profile = self.profile;
        let (library, is_java) = (library(profile, frame), is_java(profile, frame));
        let name = match is_java || library.is_empty() {
            true => function_name(profile, method),
            // Viewers show the library next to it.
            false => short_name(profile, method).to_owned(),
        };
        let name = self.text(&name);
        let resource = match library {
            "" => None,
            library => Some(self.library(library)),
        };
        let source = match is_java {
            true => self.source(method),
            false => None,
        };
        let id = self.add_function(name, resource, source);
        if let Some(place) = self.function_ids.get_mut(method as usize) {
            *place = id;
        }
        id
    }

    fn add_function(&mut self, name: u32, resource: Option<u32>, source: Option<u32>) -> u32 {
        let id = next(&self.functions);
        self.functions.push(FunctionRow {
            name,
            resource,
            source,
        });
        id
    }

    fn library(&mut self, name: &'p str) -> u32 {
        let id = next(&self.libraries);
        let known = *self.library_ids.entry(name).or_insert(id);
        if known == id {
            self.libraries.push(name);
        }
        known
    }

    /// The top-level class of a method. Lines are shown only next to a source, and recordings have
    /// no names of files.
    fn source(&mut self, method: MethodId) -> Option<u32> {
        let profile = self.profile;
        let method = profile.methods().get(method as usize)?;
        let class = profile.names().text(method.class);
        let class = class.split('$').next().filter(|class| !class.is_empty())?;
        if let Some(known) = self.source_ids.get(class) {
            return Some(*known);
        }
        let (name, id) = (self.text(class), next(&self.sources));
        self.sources.push(name);
        self.source_ids.insert(class, id);
        Some(id)
    }

    /// Writes the list of libraries and the shared tables, as keys of the whole file.
    pub fn write<W: Write>(&mut self, json: &mut JsonWriter<W>) -> io::Result<()> {
        let names: Vec<u32> = self
            .libraries
            .clone()
            .into_iter()
            .map(|name| self.text(name))
            .collect();
        json.column("libs", &self.libraries, |json, name| {
            let name = dwell_profile::plain(name);
            json.value(&json!({
                "arch": "", "name": name, "path": name, "debugName": name, "debugPath": name,
                "breakpadId": "", "codeId": null,
            }))
        })?;
        json.key("shared")?;
        json.object(|json| {
            json.column("stringArray", &self.texts, |json, text| json.text(text))?;
            json.key("sources")?;
            json.object(|json| {
                json.constant("uuid", "null", self.sources.len())?;
                json.column("filename", &self.sources, |json, name| json.number(name))?;
                length(json, self.sources.len())
            })?;
            self.write_stacks(json)?;
            self.write_frames(json)?;
            self.write_functions(json)?;
            write_resources(json, &names)?;
            json.key("nativeSymbols")?;
            json.value(&json!({
                "libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0,
            }))
        })
    }

    fn write_stacks<W: Write>(&self, json: &mut JsonWriter<W>) -> io::Result<()> {
        json.key("stackTable")?;
        json.object(|json| {
            json.column("frame", &self.stacks, |json, it| json.number(it.frame))?;
            json.column("prefix", &self.stacks, |json, it| json.optional(it.prefix))?;
            length(json, self.stacks.len())
        })
    }

    fn write_frames<W: Write>(&self, json: &mut JsonWriter<W>) -> io::Result<()> {
        let (rows, len) = (&self.frames, self.frames.len());
        json.key("frameTable")?;
        json.object(|json| {
            json.constant("address", "-1", len)?;
            json.constant("inlineDepth", "0", len)?;
            json.column("category", rows, |json, it| json.number(it.category))?;
            json.column("subcategory", rows, |json, it| json.number(it.subcategory))?;
            json.column("func", rows, |json, it| json.number(it.function))?;
            json.constant("nativeSymbol", "null", len)?;
            json.constant("innerWindowID", "0", len)?;
            json.column("line", rows, |json, it| {
                json.optional(Some(it.line).filter(|line| *line > 0))
            })?;
            json.constant("column", "null", len)?;
            length(json, len)
        })
    }

    fn write_functions<W: Write>(&self, json: &mut JsonWriter<W>) -> io::Result<()> {
        let (rows, len) = (&self.functions, self.functions.len());
        json.key("funcTable")?;
        json.object(|json| {
            json.column("name", rows, |json, it| json.number(it.name))?;
            json.constant("isJS", "false", len)?;
            json.constant("relevantForJS", "false", len)?;
            json.column("resource", rows, |json, it| {
                json.number(it.resource.map_or(-1, i64::from))
            })?;
            json.column("source", rows, |json, it| json.optional(it.source))?;
            json.constant("lineNumber", "null", len)?;
            json.constant("columnNumber", "null", len)?;
            length(json, len)
        })
    }
}

/// The name of a method without its class.
fn short_name(profile: &Profile, method: MethodId) -> &str {
    let method = profile.methods().get(method as usize);
    match method.map_or("", |method| profile.names().text(method.name)) {
        "" => UNNAMED,
        name => name,
    }
}

/// A resource for each library, with its name.
fn write_resources<W: Write>(json: &mut JsonWriter<W>, names: &[u32]) -> io::Result<()> {
    json.key("resourceTable")?;
    json.object(|json| {
        json.column("lib", 0..names.len(), |json, it| json.number(it))?;
        json.column("name", names, |json, it| json.number(it))?;
        json.constant("host", "null", names.len())?;
        // The number of libraries.
        json.constant("type", "1", names.len())?;
        length(json, names.len())
    })
}

/// The length of a table, as its last key.
pub fn length<W: Write>(json: &mut JsonWriter<W>, len: usize) -> io::Result<()> {
    json.key("length")?;
    json.number(len)
}

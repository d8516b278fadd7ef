//! Turns references to constants into threads, methods, stacks and strings, once per constant.
//! Threads, methods and stacks go to tables that all chunks of a file share. A constant that is
//! missing or broken becomes an empty one and is counted.

use super::constant_pools::{Pools, skip_field};
use super::cursor::{Cursor, RawText};
use super::error::Error;
use super::header::ChunkInfo;
use super::memo::Memo;
use super::metadata::{Class, Field, Types, Wire};
use super::model::{StackFrame, Thread};
use super::tables::{MethodTexts, Tables};
use crate::hash::Seeds;
use crate::{FrameKind, ThreadState};
use std::collections::HashMap;
use std::sync::Arc;

/// Looks up the constants of one chunk. `class` is always a place in the chunk's types.
pub(crate) struct Resolver<'a> {
    pub(crate) file: &'a [u8],
    pub(crate) info: &'a ChunkInfo,
    pub(crate) types: &'a Types,
    pub(crate) pools: &'a Pools,
    pub(crate) tables: &'a mut Tables,
    /// References to constants that the chunk does not have.
    pub(crate) missing: u64,
    threads: Memo,
    methods: Memo,
    stacks: Memo,
    told: Memo,
    states: HashMap<u64, ThreadState>,
    last_state: Option<(u64, ThreadState)>,
    kinds: HashMap<u64, FrameKind>,
    last_kinds: [Option<FrameKind>; KINDS],
    /// How the frames of a type of structure are read.
    frames: HashMap<usize, FramePlan<'a>, Seeds>,
    scratch: Vec<StackFrame>,
    /// Places of strings plus one; 0 for an unknown one.
    texts: Memo,
    /// The same of the names of classes.
    classes: Memo,
    /// Places in `modules` of where classes, packages and modules come from, plus one.
    origins: Memo,
    /// Names and addresses of modules.
    modules: Vec<[Option<u32>; 2]>,
    /// Names of groups of threads: places of strings plus one.
    groups: Memo,
    /// Failures by the strings that say them: places plus one.
    failures: Memo,
}

/// Keys of kinds of frames that are looked up at once.
const KINDS: usize = 16;

/// How frames are read.
#[derive(Clone)]
struct FramePlan<'a> {
    steps: Arc<[FrameStep<'a>]>,
    usual: Option<UsualFrame>,
}

/// Frames of the usual fields, in the usual order: method, line, byte code index and kind.
#[derive(Clone, Copy)]
struct UsualFrame {
    methods: usize,
    kinds: usize,
    /// The first key of a method, if keys have no gaps.
    first: Option<u64>,
}

/// The treatment of a field of a frame.
enum FrameStep<'a> {
    Method(usize),
    Line,
    Bci,
    Kind(usize),
    Skip(&'a Field),
}

/// A field's value as far as the known types need it.
#[derive(Clone, Copy)]
enum Item {
    Int(i64),
    /// The place of a string.
    Text(Option<u32>),
    Pooled(usize, u64),
    Other,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(
        file: &'a [u8],
        info: &'a ChunkInfo,
        types: &'a Types,
        pools: &'a Pools,
        tables: &'a mut Tables,
    ) -> Self {
        Self {
            file,
            info,
            types,
            pools,
            tables,
            missing: 0,
            threads: Memo::default(),
            methods: Memo::default(),
            stacks: Memo::default(),
            told: Memo::default(),
            states: HashMap::new(),
            last_state: None,
            kinds: HashMap::new(),
            last_kinds: [None; KINDS],
            frames: HashMap::default(),
            scratch: Vec::new(),
            texts: Memo::default(),
            classes: Memo::default(),
            origins: Memo::default(),
            modules: Vec::new(),
            groups: Memo::default(),
            failures: Memo::default(),
        }
    }

    /// The failure of samples that only say that they failed.
    pub(crate) fn failed(&mut self) -> u32 {
        self.tables.failures.place("failed".into())
    }

    /// Whether the chunk has that constant.
    pub(crate) fn has(&self, class: usize, key: u64) -> bool {
        self.pools.offset(class, key).is_some()
    }

    /// The place of the thread; an empty thread if the key is unknown.
    pub(crate) fn thread(&mut self, class: usize, key: u64) -> u32 {
        if let Some(place) = self.threads.get(self.pools, class, key) {
            return place;
        }
        let thread = self.constant(class, key, Self::read_thread);
        let place = self.tables.thread(thread);
        self.threads.set(self.pools, class, key, place);
        place
    }

    /// The place of the method; an empty method if the key is unknown.
    pub(crate) fn method(&mut self, class: usize, key: u64) -> u32 {
        if let Some(place) = self.methods.get(self.pools, class, key) {
            return place;
        }
        let texts = self.constant(class, key, Self::read_method);
        let texts = texts.unwrap_or_else(|| self.no_texts());
        let place = self.tables.method(texts);
        self.methods.set(self.pools, class, key, place);
        place
    }

    /// The place of the stack; an empty stack if the key is unknown.
    pub(crate) fn stack(&mut self, class: usize, key: u64) -> u32 {
        if let Some(place) = self.stacks.get(self.pools, class, key) {
            return place;
        }
        self.scratch.clear();
        let truncated = self.constant(class, key, Self::read_stack);
        let place = self.interned(truncated);
        self.stacks.set(self.pools, class, key, place);
        place
    }

    /// The place of the stack whose frames have been read. The same stacks come in every chunk:
    /// only what is new is kept.
    fn interned(&mut self, truncated: Option<bool>) -> u32 {
        let frames = match truncated {
            Some(_) => self.scratch.as_slice(),
            None => &[],
        };
        self.tables.stack(frames, truncated == Some(true))
    }

    /// The thread state with that key.
    pub(crate) fn state(&mut self, class: usize, key: u64) -> ThreadState {
        // Mostly the same as that of the sample before.
        if let Some((_, state)) = self.last_state.filter(|(last, _)| *last == key) {
            return state;
        }
        let known = self.states.get(&key).copied();
        let state = known.unwrap_or_else(|| {
            let name = self.text(class, key);
            name.map_or(ThreadState::Other, |name| ThreadState::from_name(&name))
        });
        self.states.insert(key, state);
        self.last_state = Some((key, state));
        state
    }

    /// The text at the cursor, by its place in the table of texts; `None`: null.
    pub(crate) fn told(&mut self, cursor: &mut Cursor<'a>) -> Result<Option<u32>, Error> {
        let text = match cursor.text()? {
            RawText::Null => None,
            RawText::Text(text) => Some(text.into()),
            RawText::Pooled(key) => {
                let Some(class) = self.types.string_place() else {
                    return Ok(None);
                };
                if let Some(place) = self.told.get(self.pools, class, key) {
                    return Ok(place.checked_sub(1));
                }
                let text = self.text(class, key);
                let place = text.map(|text| self.tables.texts.place(text));
                let link = place.map_or(0, |place| place + 1);
                self.told.set(self.pools, class, key, link);
                return Ok(place);
            }
        };
        Ok(text.map(|text| self.tables.texts.place(text)))
    }

    /// The failure that the text at the cursor says, by its place; `None`: null.
    pub(crate) fn failure(&mut self, cursor: &mut Cursor<'a>) -> Result<Option<u32>, Error> {
        let text: Option<Arc<str>> = match cursor.text()? {
            RawText::Null => None,
            RawText::Text(text) => Some(text.into()),
            RawText::Pooled(key) => {
                let Some(class) = self.types.string_place() else {
                    return Ok(None);
                };
                if let Some(link) = self.failures.get(self.pools, class, key) {
                    return Ok(link.checked_sub(1));
                }
                let text = self.text(class, key);
                let place = text.map(|text| self.tables.failures.place(text));
                let link = place.map_or(0, |place| place + 1);
                self.failures.set(self.pools, class, key, link);
                return Ok(place);
            }
        };
        Ok(text.map(|text| self.tables.failures.place(text)))
    }

    /// A constant that is a string, or a structure that begins with one.
    pub(crate) fn text(&mut self, class: usize, key: u64) -> Option<Arc<str>> {
        let place = self.text_place(class, key)?;
        self.tables.strings.get(place).map(Arc::clone)
    }

    fn text_place(&mut self, class: usize, key: u64) -> Option<u32> {
        if let Some(link) = self.texts.get(self.pools, class, key) {
            return link.checked_sub(1);
        }
        // A string constant that refers to another one finds this and ends there.
        self.texts.set(self.pools, class, key, 0);
        let place = self.constant(class, key, Self::read_text);
        let link = place.map_or(0, |place| place.saturating_add(1));
        self.texts.set(self.pools, class, key, link);
        place
    }

    /// The string of a constant at the cursor, by its place; `None`: null.
    fn read_place(&mut self, cursor: &mut Cursor<'a>) -> Result<Option<u32>, Error> {
        Ok(match cursor.text()? {
            RawText::Null => None,
            RawText::Text(text) => Some(self.tables.string(&text)),
            RawText::Pooled(key) => match self.types.string_place() {
                Some(class) => self.text_place(class, key),
                None => None,
            },
        })
    }

    /// The name of a class constant, with dots.
    pub(crate) fn class_name(&mut self, class: usize, key: u64) -> Option<Arc<str>> {
        let place = self.class_place(class, key)?;
        self.tables.strings.get(place).map(Arc::clone)
    }

    /// The place of its string.
    fn class_place(&mut self, class: usize, key: u64) -> Option<u32> {
        if let Some(link) = self.classes.get(self.pools, class, key) {
            return link.checked_sub(1);
        }
        let place = self.constant(class, key, Self::read_class_name);
        let link = place.map_or(0, |place| place.saturating_add(1));
        self.classes.set(self.pools, class, key, link);
        place
    }

    /// The string at the cursor; `None`: null.
    pub(crate) fn read_string(
        &mut self,
        cursor: &mut Cursor<'a>,
    ) -> Result<Option<Arc<str>>, Error> {
        Ok(match cursor.text()? {
            RawText::Null => None,
            RawText::Text(text) => Some(text.into()),
            RawText::Pooled(key) => match self.types.string_place() {
                Some(class) => self.text(class, key),
                None => None,
            },
        })
    }

    /// Decodes a constant. A missing or broken one becomes the default.
    fn constant<T: Default>(
        &mut self,
        class: usize,
        key: u64,
        read: fn(&mut Self, &'a Class, &mut Cursor<'a>) -> Result<T, Error>,
    ) -> T {
        let offset = self.pools.offset(class, key);
        if let (Some(offset), Some(class)) = (offset, self.types.class(class)) {
            let mut cursor = Cursor::new(self.file, offset, self.info.end());
            if let Ok(value) = read(self, class, &mut cursor) {
                return value;
            }
        }
        if key != 0 {
            self.missing += 1;
        }
        T::default()
    }

    fn read_thread(&mut self, class: &'a Class, cursor: &mut Cursor<'a>) -> Result<Thread, Error> {
        let mut thread = Thread::default();
        for field in &class.fields {
            let item = self.item(field, cursor)?;
            match (&*field.name, item) {
                ("osName", Item::Text(_)) => {
                    thread.os_name = self.item_text(item).unwrap_or_default();
                }
                ("osThreadId", Item::Int(id)) => thread.os_tid = id,
                ("javaName", Item::Text(_)) => thread.java_name = self.item_text(item),
                ("javaThreadId", Item::Int(id)) => thread.java_tid = id,
                ("virtual", Item::Int(flag)) => thread.is_virtual = flag != 0,
                ("group", Item::Pooled(class, key)) if key != 0 => {
                    thread.group = self.group(class, key);
                }
                _ => {}
            }
        }
        Ok(thread)
    }

    /// The name of a group of threads: once a group.
    fn group(&mut self, class: usize, key: u64) -> Option<Arc<str>> {
        let place = match self.groups.get(self.pools, class, key) {
            Some(link) => link.checked_sub(1),
            None => {
                let place = self.constant(class, key, Self::read_named);
                let link = place.map_or(0, |place| place.saturating_add(1));
                self.groups.set(self.pools, class, key, link);
                place
            }
        };
        self.tables.strings.get(place?).map(Arc::clone)
    }

    fn read_method(
        &mut self,
        class: &'a Class,
        cursor: &mut Cursor<'a>,
    ) -> Result<Option<MethodTexts>, Error> {
        let mut texts = self.no_texts();
        let none = texts.class;
        for field in &class.fields {
            match (&*field.name, self.item(field, cursor)?) {
                ("type", Item::Pooled(class, key)) => {
                    texts.class = self.class_place(class, key).unwrap_or(none);
                    let [module, location] = self.origin(class, key);
                    texts.module = module.unwrap_or(none);
                    texts.location = location.unwrap_or(none);
                }
                ("name", item) => texts.name = self.item_place(item).unwrap_or(none),
                ("descriptor", item) => texts.descriptor = self.item_place(item).unwrap_or(none),
                ("hidden", Item::Int(flag)) => texts.hidden = flag != 0,
                _ => {}
            }
        }
        Ok(Some(texts))
    }

    /// A method of which nothing is known.
    fn no_texts(&mut self) -> MethodTexts {
        MethodTexts::unknown(self.tables.string(""))
    }

    /// The name and the address of the module that the package of a class is in: once a class.
    fn origin(&mut self, class: usize, key: u64) -> [Option<u32>; 2] {
        if let Some(origin) = self.known_origin(class, key) {
            return origin;
        }
        // Others leave packages and modules out: a method is whole without.
        let missing = self.missing;
        let package = self.constant(class, key, |resolver, class, cursor| {
            resolver.read_link(class, cursor, "package")
        });
        let origin = package.map(|(class, key)| self.package_origin(class, key));
        self.missing = missing;
        self.keep_origin(class, key, origin.unwrap_or_default())
    }

    /// The same of a package: once a package, as many classes are in one.
    fn package_origin(&mut self, class: usize, key: u64) -> [Option<u32>; 2] {
        if let Some(origin) = self.known_origin(class, key) {
            return origin;
        }
        let module = self.constant(class, key, |resolver, class, cursor| {
            resolver.read_link(class, cursor, "module")
        });
        let Some((module, module_key)) = module else {
            return self.keep_origin(class, key, [None; 2]);
        };
        let origin = match self.known_origin(module, module_key) {
            Some(origin) => origin,
            None => {
                let origin = self.constant(module, module_key, Self::read_module);
                self.keep_origin(module, module_key, origin)
            }
        };
        self.keep_origin(class, key, origin)
    }

    fn known_origin(&self, class: usize, key: u64) -> Option<[Option<u32>; 2]> {
        let at = self.origins.get(self.pools, class, key)?.checked_sub(1)?;
        Some(self.modules.get(at as usize).copied().unwrap_or_default())
    }

    fn keep_origin(
        &mut self,
        class: usize,
        key: u64,
        origin: [Option<u32>; 2],
    ) -> [Option<u32>; 2] {
        // Classes of one module follow each other.
        if self.modules.last() != Some(&origin) {
            self.modules.push(origin);
        }
        let link = u32::try_from(self.modules.len()).unwrap_or(u32::MAX);
        self.origins.set(self.pools, class, key, link);
        origin
    }

    /// The constant that a field of a structure refers to.
    fn read_link(
        &mut self,
        class: &'a Class,
        cursor: &mut Cursor<'a>,
        name: &str,
    ) -> Result<Option<(usize, u64)>, Error> {
        for field in &class.fields {
            match self.item(field, cursor)? {
                Item::Pooled(class, key) if &*field.name == name => {
                    return Ok((key != 0).then_some((class, key)));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn read_module(
        &mut self,
        class: &'a Class,
        cursor: &mut Cursor<'a>,
    ) -> Result<[Option<u32>; 2], Error> {
        let mut origin = [None; 2];
        for field in &class.fields {
            let item = self.item(field, cursor)?;
            let [module, location] = &mut origin;
            match &*field.name {
                "name" => *module = self.item_place(item),
                "location" => *location = self.item_place(item),
                _ => {}
            }
        }
        Ok(origin)
    }

    /// Reads frames into the scratch; whether some are missing, `None` if it is no stack.
    fn read_stack(
        &mut self,
        class: &'a Class,
        cursor: &mut Cursor<'a>,
    ) -> Result<Option<bool>, Error> {
        let types = self.types;
        let mut truncated = false;
        for field in &class.fields {
            match (&*field.name, field.wire, field.array) {
                ("truncated", Wire::Bool, false) => truncated = cursor.byte()? != 0,
                ("frames", Wire::Inline(frame), true) => {
                    let class = types.class(frame).filter(|class| !class.fields.is_empty());
                    let class = class.ok_or(cursor.malformed("frames without fields"))?;
                    let plan = self.frame_plan(frame, class);
                    for _ in 0..cursor.count(class.fields.len())? {
                        let usual = plan.usual;
                        let usual = usual.and_then(|plan| Some((plan, cursor.four_varints()?)));
                        let frame = match usual {
                            Some((plan, numbers)) => self.usual_frame(plan, numbers),
                            None => self.read_frame(&plan.steps, cursor)?,
                        };
                        self.scratch.push(frame);
                    }
                }
                _ => skip_field(types, field, cursor)?,
            }
        }
        Ok(Some(truncated))
    }

    fn frame_plan(&mut self, place: usize, class: &'a Class) -> FramePlan<'a> {
        if let Some(plan) = self.frames.get(&place) {
            return plan.clone();
        }
        let steps: Vec<_> = class.fields.iter().map(frame_step).collect();
        let usual = match steps.as_slice() {
            &[
                FrameStep::Method(methods),
                FrameStep::Line,
                FrameStep::Bci,
                FrameStep::Kind(kinds),
            ] => Some(UsualFrame {
                methods,
                kinds,
                first: self.pools.first(methods),
            }),
            _ => None,
        };
        let plan = FramePlan {
            steps: steps.into(),
            usual,
        };
        self.frames.insert(place, plan.clone());
        plan
    }

    fn usual_frame(&mut self, plan: UsualFrame, numbers: [u64; 4]) -> StackFrame {
        let [key, line, bci, kind] = numbers;
        // Most methods are known: found without asking what the chunk has.
        let place = plan.first.and_then(|first| key.checked_sub(first));
        let known = place.and_then(|place| self.methods.at(plan.methods, place));
        let mut frame = StackFrame {
            method: known.unwrap_or_else(|| self.method(plan.methods, key)),
            line: line as i32,
            bci: bci as i32,
            kind: self.frame_kind(plan.kinds, kind),
        };
        self.mind_method(&mut frame);
        frame
    }

    /// Gives a frame without a method one of which nothing is known.
    fn mind_method(&mut self, frame: &mut StackFrame) {
        if frame.method == u32::MAX {
            let texts = self.no_texts();
            frame.method = self.tables.method(texts);
        }
    }

    fn read_frame(
        &mut self,
        steps: &[FrameStep<'a>],
        cursor: &mut Cursor<'a>,
    ) -> Result<StackFrame, Error> {
        let kind = FrameKind::Other;
        let mut frame = StackFrame {
            method: u32::MAX,
            line: 0,
            bci: -1,
            kind,
        };
        for step in steps {
            match *step {
                FrameStep::Method(class) => frame.method = self.method(class, cursor.varint()?),
                FrameStep::Line => frame.line = cursor.varint()? as i32,
                FrameStep::Bci => frame.bci = cursor.varint()? as i32,
                FrameStep::Kind(class) => frame.kind = self.frame_kind(class, cursor.varint()?),
                FrameStep::Skip(field) => skip_field(self.types, field, cursor)?,
            }
        }
        self.mind_method(&mut frame);
        Ok(frame)
    }

    fn frame_kind(&mut self, class: usize, key: u64) -> FrameKind {
        let at = key as usize;
        if let Some(Some(kind)) = self.last_kinds.get(at) {
            return *kind;
        }
        let known = self.kinds.get(&key).copied();
        let kind = known.unwrap_or_else(|| {
            let name = self.text(class, key);
            name.map_or(FrameKind::Other, |name| FrameKind::from_name(&name))
        });
        self.kinds.insert(key, kind);
        if let Some(last) = self.last_kinds.get_mut(at) {
            *last = Some(kind);
        }
        kind
    }

    fn read_text(
        &mut self,
        class: &'a Class,
        cursor: &mut Cursor<'a>,
    ) -> Result<Option<u32>, Error> {
        if class.known == super::metadata::Known::Text {
            return self.read_place(cursor);
        }
        match class.fields.first() {
            Some(Field {
                wire: Wire::Text,
                array: false,
                ..
            }) => self.read_place(cursor),
            _ => Err(cursor.malformed("a constant that is no string")),
        }
    }

    fn read_class_name(
        &mut self,
        class: &'a Class,
        cursor: &mut Cursor<'a>,
    ) -> Result<Option<u32>, Error> {
        for field in &class.fields {
            let place = match (&*field.name, self.item(field, cursor)?) {
                ("name", Item::Pooled(symbols, key)) => self.text_place(symbols, key),
                ("name", Item::Text(name)) => name,
                _ => continue,
            };
            return Ok(place.and_then(|place| self.tables.shown_string(place)));
        }
        Ok(None)
    }

    /// The `name` of a structure that is a string, by its place.
    fn read_named(
        &mut self,
        class: &'a Class,
        cursor: &mut Cursor<'a>,
    ) -> Result<Option<u32>, Error> {
        for field in &class.fields {
            let item = self.item(field, cursor)?;
            if &*field.name == "name" {
                return Ok(self.item_place(item));
            }
        }
        Ok(None)
    }

    fn item_text(&mut self, item: Item) -> Option<Arc<str>> {
        let place = self.item_place(item)?;
        self.tables.strings.get(place).map(Arc::clone)
    }

    fn item_place(&mut self, item: Item) -> Option<u32> {
        match item {
            Item::Text(place) => place,
            Item::Pooled(class, key) => self.text_place(class, key),
            Item::Int(_) | Item::Other => None,
        }
    }

    fn item(&mut self, field: &Field, cursor: &mut Cursor<'a>) -> Result<Item, Error> {
        Ok(match field.wire {
            _ if field.array => return skip_field(self.types, field, cursor).map(|()| Item::Other),
            Wire::Bool | Wire::Byte => Item::Int(i64::from(cursor.byte()?)),
            Wire::Char | Wire::Short | Wire::Int | Wire::Long => {
                Item::Int(cursor.varint()?.cast_signed())
            }
            Wire::Text => Item::Text(self.read_place(cursor)?),
            Wire::Pooled(class) => Item::Pooled(class, cursor.varint()?),
            Wire::Float | Wire::Double | Wire::Inline(_) | Wire::Unknown => {
                skip_field(self.types, field, cursor)?;
                Item::Other
            }
        })
    }
}

/// The treatment of a field of a frame.
fn frame_step<'a>(field: &'a Field) -> FrameStep<'a> {
    let is_int = matches!(
        field.wire,
        Wire::Char | Wire::Short | Wire::Int | Wire::Long
    );
    match (&*field.name, field.wire) {
        _ if field.array => FrameStep::Skip(field),
        ("method", Wire::Pooled(class)) => FrameStep::Method(class),
        ("type", Wire::Pooled(class)) => FrameStep::Kind(class),
        ("lineNumber", _) if is_int => FrameStep::Line,
        ("bytecodeIndex", _) if is_int => FrameStep::Bci,
        _ => FrameStep::Skip(field),
    }
}

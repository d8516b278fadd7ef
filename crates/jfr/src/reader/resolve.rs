//! Turns references to constants into threads, methods, stacks and strings, once per constant.
//! Threads, methods and stacks go to tables that all chunks of a file share. A constant that is
//! missing or broken becomes an empty one and is counted.

use super::cursor::{Cursor, RawText};
use super::error::Error;
use super::header::ChunkInfo;
use super::intern::Interner;
use super::metadata::{Class, Field, Types, Wire};
use super::model::{Context, Method, Stack, StackFrame, Thread, Wall};
use super::pools::{Pools, skip_field};
use crate::{FrameKind, ThreadState};
use std::collections::HashMap;
use std::sync::Arc;

/// The tables of a file.
#[derive(Default)]
pub(crate) struct Tables {
    pub(crate) threads: Interner<Thread>,
    pub(crate) methods: Interner<Method>,
    pub(crate) stacks: Interner<Stack>,
    pub(crate) failures: Interner<Arc<str>>,
    pub(crate) texts: Interner<Arc<str>>,
    pub(crate) walls: Vec<Wall>,
    pub(crate) contexts: Interner<Context>,
}

impl Tables {
    /// Keeps what a wall-clock sample says beside the rest; its place.
    pub(crate) fn wall(&mut self, wall: Wall) -> u32 {
        let place = u32::try_from(self.walls.len()).unwrap_or(u32::MAX);
        self.walls.push(wall);
        place
    }
}

/// Looks up the constants of one chunk. `class` is always a place in the chunk's types.
pub(crate) struct Resolver<'a> {
    pub(crate) file: &'a [u8],
    pub(crate) info: &'a ChunkInfo,
    pub(crate) types: &'a Types,
    pub(crate) pools: &'a Pools,
    pub(crate) tables: &'a mut Tables,
    /// References to constants that the chunk does not have.
    pub(crate) missing: u64,
    threads: HashMap<u64, u32>,
    methods: HashMap<u64, u32>,
    stacks: HashMap<u64, u32>,
    states: HashMap<u64, ThreadState>,
    kinds: HashMap<u64, FrameKind>,
    texts: HashMap<(usize, u64), Option<Arc<str>>>,
    dotted: HashMap<(usize, u64), Arc<str>>,
}

/// A field's value as far as the known types need it.
enum Item {
    Int(i64),
    Text(Option<Arc<str>>),
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
            threads: HashMap::new(),
            methods: HashMap::new(),
            stacks: HashMap::new(),
            states: HashMap::new(),
            kinds: HashMap::new(),
            texts: HashMap::new(),
            dotted: HashMap::new(),
        }
    }

    /// Whether the chunk has that constant.
    pub(crate) fn has(&self, class: usize, key: u64) -> bool {
        self.pools.offset(class, key).is_some()
    }

    /// The place of the thread, an empty one if there is none.
    pub(crate) fn thread(&mut self, class: usize, key: u64) -> u32 {
        if let Some(&place) = self.threads.get(&key) {
            return place;
        }
        let thread = self.constant(class, key, Self::read_thread);
        let place = self.tables.threads.place(thread);
        self.threads.insert(key, place);
        place
    }

    /// The place of the method, an empty one if there is none.
    pub(crate) fn method(&mut self, class: usize, key: u64) -> u32 {
        if let Some(&place) = self.methods.get(&key) {
            return place;
        }
        let method = self.constant(class, key, Self::read_method);
        let place = self.tables.methods.place(method);
        self.methods.insert(key, place);
        place
    }

    /// The place of the stack, an empty one if there is none.
    pub(crate) fn stack(&mut self, class: usize, key: u64) -> u32 {
        if let Some(&place) = self.stacks.get(&key) {
            return place;
        }
        let stack = self.constant(class, key, Self::read_stack);
        let place = self.tables.stacks.place(stack);
        self.stacks.insert(key, place);
        place
    }

    /// The thread state with that key.
    pub(crate) fn state(&mut self, class: usize, key: u64) -> ThreadState {
        if let Some(&state) = self.states.get(&key) {
            return state;
        }
        let name = self.text(class, key);
        let state = name.map_or(ThreadState::Other, |name| ThreadState::from_name(&name));
        self.states.insert(key, state);
        state
    }

    /// A constant that is a string, or a structure that begins with one.
    pub(crate) fn text(&mut self, class: usize, key: u64) -> Option<Arc<str>> {
        if let Some(text) = self.texts.get(&(class, key)) {
            return text.clone();
        }
        // A string constant that refers to another one finds this and ends there.
        self.texts.insert((class, key), None);
        let text = self.constant(class, key, Self::read_text);
        self.texts.insert((class, key), text.clone());
        text
    }

    /// The name of a class constant, with dots.
    pub(crate) fn class_name(&mut self, class: usize, key: u64) -> Option<Arc<str>> {
        self.constant(class, key, Self::read_class_name)
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

    /// Decodes a constant; what is missing or broken becomes the default.
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
            match (&*field.name, self.item(field, cursor)?) {
                ("osName", Item::Text(name)) => thread.os_name = name.unwrap_or_default(),
                ("osThreadId", Item::Int(id)) => thread.os_tid = id,
                ("javaName", Item::Text(name)) => thread.java_name = name,
                ("javaThreadId", Item::Int(id)) => thread.java_tid = id,
                ("virtual", Item::Int(flag)) => thread.is_virtual = flag != 0,
                ("group", Item::Pooled(class, key)) if key != 0 => {
                    thread.group = self.constant(class, key, Self::read_named);
                }
                _ => {}
            }
        }
        Ok(thread)
    }

    fn read_method(&mut self, class: &'a Class, cursor: &mut Cursor<'a>) -> Result<Method, Error> {
        let mut method = Method::default();
        for field in &class.fields {
            match (&*field.name, self.item(field, cursor)?) {
                ("type", Item::Pooled(class, key)) => {
                    method.class = self.class_name(class, key).unwrap_or_default();
                }
                ("name", item) => method.name = self.item_text(item).unwrap_or_default(),
                ("descriptor", item) => {
                    method.descriptor = self.item_text(item).unwrap_or_default();
                }
                ("hidden", Item::Int(flag)) => method.hidden = flag != 0,
                _ => {}
            }
        }
        Ok(method)
    }

    fn read_stack(&mut self, class: &'a Class, cursor: &mut Cursor<'a>) -> Result<Stack, Error> {
        let types = self.types;
        let mut stack = Stack::default();
        for field in &class.fields {
            match (&*field.name, field.wire, field.array) {
                ("truncated", Wire::Bool, false) => stack.truncated = cursor.byte()? != 0,
                ("frames", Wire::Inline(frame), true) => {
                    let class = types.class(frame).filter(|class| !class.fields.is_empty());
                    let class = class.ok_or(cursor.malformed("frames without fields"))?;
                    for _ in 0..cursor.count(class.fields.len())? {
                        stack.frames.push(self.read_frame(class, cursor)?);
                    }
                }
                _ => skip_field(types, field, cursor)?,
            }
        }
        Ok(stack)
    }

    fn read_frame(
        &mut self,
        class: &'a Class,
        cursor: &mut Cursor<'a>,
    ) -> Result<StackFrame, Error> {
        let kind = FrameKind::Other;
        let mut frame = StackFrame {
            method: u32::MAX,
            line: 0,
            bci: -1,
            kind,
        };
        for field in &class.fields {
            match (&*field.name, self.item(field, cursor)?) {
                ("method", Item::Pooled(class, key)) => frame.method = self.method(class, key),
                ("lineNumber", Item::Int(line)) => frame.line = line as i32,
                ("bytecodeIndex", Item::Int(bci)) => frame.bci = bci as i32,
                ("type", Item::Pooled(class, key)) => frame.kind = self.frame_kind(class, key),
                _ => {}
            }
        }
        if frame.method == u32::MAX {
            frame.method = self.tables.methods.place(Method::default());
        }
        Ok(frame)
    }

    fn frame_kind(&mut self, class: usize, key: u64) -> FrameKind {
        if let Some(&kind) = self.kinds.get(&key) {
            return kind;
        }
        let name = self.text(class, key);
        let kind = name.map_or(FrameKind::Other, |name| FrameKind::from_name(&name));
        self.kinds.insert(key, kind);
        kind
    }

    fn read_text(
        &mut self,
        class: &'a Class,
        cursor: &mut Cursor<'a>,
    ) -> Result<Option<Arc<str>>, Error> {
        if class.known == super::metadata::Known::Text {
            return self.read_string(cursor);
        }
        match class.fields.first() {
            Some(Field {
                wire: Wire::Text,
                array: false,
                ..
            }) => self.read_string(cursor),
            _ => Err(cursor.malformed("a constant that is no string")),
        }
    }

    fn read_class_name(
        &mut self,
        class: &'a Class,
        cursor: &mut Cursor<'a>,
    ) -> Result<Option<Arc<str>>, Error> {
        for field in &class.fields {
            match (&*field.name, self.item(field, cursor)?) {
                ("name", Item::Pooled(symbols, key)) => return Ok(self.dotted(symbols, key)),
                ("name", Item::Text(name)) => return Ok(name.map(|name| shown_class(&name))),
                _ => {}
            }
        }
        Ok(None)
    }

    /// The `name` of a structure that is a string.
    fn read_named(
        &mut self,
        class: &'a Class,
        cursor: &mut Cursor<'a>,
    ) -> Result<Option<Arc<str>>, Error> {
        for field in &class.fields {
            let item = self.item(field, cursor)?;
            if &*field.name == "name" {
                return Ok(self.item_text(item));
            }
        }
        Ok(None)
    }

    fn dotted(&mut self, symbols: usize, key: u64) -> Option<Arc<str>> {
        if let Some(name) = self.dotted.get(&(symbols, key)) {
            return Some(Arc::clone(name));
        }
        let name = shown_class(&self.text(symbols, key)?);
        self.dotted.insert((symbols, key), Arc::clone(&name));
        Some(name)
    }

    fn item_text(&mut self, item: Item) -> Option<Arc<str>> {
        match item {
            Item::Text(text) => text,
            Item::Pooled(class, key) => self.text(class, key),
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
            Wire::Text => Item::Text(self.read_string(cursor)?),
            Wire::Pooled(class) => Item::Pooled(class, cursor.varint()?),
            Wire::Float | Wire::Double | Wire::Inline(_) | Wire::Unknown => {
                skip_field(self.types, field, cursor)?;
                Item::Other
            }
        })
    }
}

/// Class names have slashes in the file. A path of a library begins with one and stays; `(kernel)`
/// is how the writer had to write `[kernel]`.
fn shown_class(name: &str) -> Arc<str> {
    if let Some(inner) = name
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
    {
        return format!("[{inner}]").into();
    }
    if name.starts_with('/') {
        name.into()
    } else {
        name.replace('/', ".").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_names_get_dots_and_other_names_stay() {
        assert_eq!(&*shown_class("java/lang/String"), "java.lang.String");
        assert_eq!(&*shown_class("(kernel)"), "[kernel]");
        assert_eq!(&*shown_class("libjvm.so"), "libjvm.so");
        assert_eq!(&*shown_class("/usr/lib/libc.so.6"), "/usr/lib/libc.so.6");
    }
}

//! Names of methods, read while their class is alive and kept after it is unloaded.
//!
//! A `Method*` is only an address: after its class is unloaded, another method may be there. So a
//! cached name is compared with the method's own data, once per batch of samples. A method that can
//! no longer be read keeps its last name.

use super::mutf8;
use super::origins::{KnownOrigins, OriginState};
use dwell_recorder::record::names::{Name, NameId, Names};
use dwell_walker::Memory;
use dwell_walker::hotspot::names::{self, MethodKey};
use dwell_walker::hotspot::{Layout, method};
use rustc_hash::FxHashMap;

/// Longest symbol there can be.
const SYMBOL_MAX: usize = 65_536;

#[derive(Clone, Copy)]
struct Known {
    key: MethodKey,
    name: NameId,
    checked: u64,
    /// Whether the origin of its class may be found later.
    lacks_origin: bool,
}

/// Cache of method names and line numbers.
pub struct Methods {
    known: FxHashMap<u64, Known>,
    lines: FxHashMap<(u64, u64, i32), i32>,
    origins: KnownOrigins,
    batch: u64,
    buf: Vec<u8>,
}

impl Default for Methods {
    fn default() -> Self {
        Self::new()
    }
}

impl Methods {
    /// An empty cache.
    #[must_use]
    pub fn new() -> Methods {
        Methods {
            known: FxHashMap::default(),
            lines: FxHashMap::default(),
            origins: KnownOrigins::default(),
            batch: 0,
            buf: vec![0; SYMBOL_MAX],
        }
    }

    /// Begins a batch: every method met in it is checked once.
    pub fn begin_batch(&mut self) {
        self.batch += 1;
    }

    /// Clears the cache, to bound memory. Name ids of the old table become invalid.
    pub fn clear(&mut self) {
        self.known.clear();
        self.lines.clear();
        self.origins.clear();
    }

    /// The name of `method`, or `None` if it was never seen alive.
    pub fn name<M: Memory>(
        &mut self,
        mem: &M,
        layout: &Layout,
        names: &mut Names,
        method: u64,
    ) -> Option<NameId> {
        let known = self.known.get(&method).copied();
        if let Some(known) = known.filter(|k| k.checked == self.batch) {
            return Some(known.name);
        }
        let Ok(key) = names::method_key(mem, layout, method) else {
            return known.map(|k| k.name);
        };
        let (name, lacks_origin) = match known.filter(|k| k.key == key && !k.lacks_origin) {
            Some(known) => (known.name, false),
            None => match self.read(mem, layout, &key) {
                Some((name, lacks_origin)) => (names.add(name), lacks_origin),
                None => return known.map(|k| k.name),
            },
        };
        self.known.insert(
            method,
            Known {
                key,
                name,
                checked: self.batch,
                lacks_origin,
            },
        );
        Some(name)
    }

    /// The line of `bci`, -1 if unknown.
    pub fn line<M: Memory>(&mut self, mem: &M, layout: &Layout, method: u64, bci: i32) -> i32 {
        let Some(known) = self.known.get(&method) else {
            return -1;
        };
        if bci < 0 {
            return -1;
        }
        let key = (method, known.key.const_method, bci);
        if let Some(line) = self.lines.get(&key) {
            return *line;
        }
        let line = method::line(mem, layout, method, bci).unwrap_or(-1);
        self.lines.insert(key, line);
        line
    }

    /// The name, and whether its origin is worth another try.
    fn read<M: Memory>(
        &mut self,
        mem: &M,
        layout: &Layout,
        key: &MethodKey,
    ) -> Option<(Name, bool)> {
        let mut text = |symbol| {
            let bytes = names::symbol(mem, layout, symbol, &mut self.buf).ok()?;
            Some(mutf8::decode(bytes))
        };
        let mut name = Name {
            class: text(key.class_symbol)?,
            name: text(key.name_symbol)?,
            descriptor: text(key.descriptor_symbol)?,
            modifiers: names::access_flags(mem, layout, key.method).unwrap_or(0),
            origin: None,
        };
        // An invalid descriptor shows that the memory has been reused.
        let sound = name.descriptor.starts_with('(') && !name.name.is_empty();
        if !sound || name.class.is_empty() {
            return None;
        }
        let told = self.origins.of(mem, layout, key);
        let lacks_origin = told == OriginState::NotYet;
        name.origin = told.known();
        Some((name, lacks_origin))
    }

    /// Number of methods.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether there are no methods.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

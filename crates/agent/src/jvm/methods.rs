//! Names of methods, read while their class is alive and kept after it is gone.
//!
//! A `Method*` is only an address: after its class is unloaded another method may live there. So a
//! cached name is checked against what the method says of itself, once per batch of samples; a
//! method that cannot be read any more keeps the name it had when it was last seen.

use super::mutf8;
use crate::record::names::{Name, NameId, Names};
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
}

/// Cache of method names and line numbers.
pub struct Methods {
    known: FxHashMap<u64, Known>,
    lines: FxHashMap<(u64, u64, i32), i32>,
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
            batch: 0,
            buf: vec![0; SYMBOL_MAX],
        }
    }

    /// Begins a batch: every method met in it is checked once.
    pub fn begin_batch(&mut self) {
        self.batch += 1;
    }

    /// Forgets everything, to bound memory; name ids of the old table become invalid.
    pub fn clear(&mut self) {
        self.known.clear();
        self.lines.clear();
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
        let name = match known.filter(|k| k.key == key) {
            Some(known) => known.name,
            None => match self.read(mem, layout, &key) {
                Some(name) => names.add(name),
                None => return known.map(|k| k.name),
            },
        };
        self.known.insert(
            method,
            Known {
                key,
                name,
                checked: self.batch,
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

    fn read<M: Memory>(&mut self, mem: &M, layout: &Layout, key: &MethodKey) -> Option<Name> {
        let mut text = |symbol| {
            let bytes = names::symbol(mem, layout, symbol, &mut self.buf).ok()?;
            Some(mutf8::decode(bytes))
        };
        let name = Name {
            class: text(key.class_symbol)?,
            name: text(key.name_symbol)?,
            descriptor: text(key.descriptor_symbol)?,
            modifiers: names::access_flags(mem, layout, key.method).unwrap_or(0),
        };
        // A descriptor that is none says that the memory is another's by now.
        let sound = name.descriptor.starts_with('(') && !name.name.is_empty();
        (sound && !name.class.is_empty()).then_some(name)
    }

    /// Methods known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

//! The modules and jars that classes come from, read from the heap once per class.

use dwell_walker::Memory;
use dwell_walker::hotspot::Layout;
use dwell_walker::hotspot::names::MethodKey;
use dwell_walker::hotspot::origin::{self, Part};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The origin of a class. Unknown parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The name of its module.
    pub module: String,
    /// The URL of its module or jar.
    pub location: String,
}

/// The origins of the classes seen so far.
#[derive(Default)]
pub struct Origins {
    fields: origin::Origins,
    known: FxHashMap<[u64; 3], Option<Arc<Origin>>>,
    /// Number of attempts for classes that are not known yet.
    tried: FxHashMap<[u64; 3], u8>,
}

/// Maximum number of cached classes.
const CLASSES_MAX: usize = 100_000;
/// Maximum number of attempts per class: enough for pauses of a collector.
const TRIES_MAX: u8 = 100;

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The origin; `None` if the class does not have one.
    Read(Option<Arc<Origin>>),
    /// It could not be read now; another attempt may succeed.
    NotYet,
}

impl Origins {
    /// The origin of a method's class.
    pub fn of<M: Memory>(&mut self, mem: &M, layout: &Layout, method: &MethodKey) -> Told {
        let Some(key) = origin::key_of(mem, layout, method) else {
            return Told::Read(None);
        };
        if let Some(known) = self.known.get(&key) {
            return Told::Read(known.clone());
        }
        if self.known.len() + self.tried.len() >= CLASSES_MAX {
            self.known.clear();
            self.tried.clear();
        }
        let [class, ..] = key;
        let read = |fields: &mut origin::Origins| read(fields, mem, layout, class);
        let origin = self.fields.twice(read);
        let tried = self.tried.entry(key).or_default();
        *tried += 1;
        if origin.is_none() && *tried < TRIES_MAX {
            return Told::NotYet;
        }
        self.tried.remove(&key);
        let origin = origin.filter(|origin| *origin != Origin::default());
        let origin = origin.map(Arc::new);
        self.known.insert(key, origin.clone());
        Told::Read(origin)
    }
}

fn read<M: Memory>(
    fields: &mut origin::Origins,
    mem: &M,
    layout: &Layout,
    class: u64,
) -> Option<Origin> {
    let (mut module, mut location) = (Vec::new(), Vec::new());
    let visit = &mut |part, unit| match part {
        Part::Module => module.push(unit),
        Part::Location => location.push(unit),
    };
    fields.read(mem, layout, class, visit).ok()?;
    Some(Origin {
        module: String::from_utf16_lossy(&module),
        location: String::from_utf16_lossy(&location),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_walker::Fault;

    /// A method leads to its class, but the class cannot be read, as if a collector moved it.
    struct Moving;

    impl Memory for Moving {
        fn word(&self, addr: u64) -> Result<u64, Fault> {
            match addr {
                0x1000..0x1100 => Ok(0x2000),
                0x2000..0x2100 => Ok(0x3000),
                0x3000..0x3100 => Ok(0x4000),
                _ => Err(Fault { addr }),
            }
        }

        fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
            buf.fill(0);
            Err(Fault { addr })
        }
    }

    #[test]
    fn unreadable_class_is_retried_but_not_forever() {
        let mut layout = Layout::EMPTY;
        (layout.const_constants, layout.pool_holder) = (0, 0);
        layout.klass_mirror = 0;
        let method = MethodKey {
            method: 0,
            const_method: 0x1000,
            class_symbol: 1,
            name_symbol: 2,
            descriptor_symbol: 3,
        };
        let mut origins = Origins::default();
        for _ in 1..TRIES_MAX {
            assert_eq!(origins.of(&Moving, &layout, &method), Told::NotYet);
        }
        for _ in 0..2 {
            assert_eq!(origins.of(&Moving, &layout, &method), Told::Read(None));
        }
        assert!(origins.tried.is_empty());
    }
}

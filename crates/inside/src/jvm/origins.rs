//! The modules and jars that classes come from, read from the heap once for each class. A collector
//! may move the objects during the reading. So they are read twice, and again later if the two
//! readings differ.

use dwell_recorder::record::names::Origin;
use dwell_walker::Memory;
use dwell_walker::hotspot::Layout;
use dwell_walker::hotspot::names::MethodKey;
use dwell_walker::hotspot::origin::{self, Origins, Part};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Most attempts for a class: enough for a collector's pauses, but not endless.
const TRIES_MAX: u8 = 100;

/// Result of reading a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginState {
    /// Its origin, or `None` if the class has none.
    Read(Option<Arc<Origin>>),
    /// It cannot be read now; a later attempt may succeed.
    NotYet,
}

impl OriginState {
    /// The origin, if it is known by now.
    #[must_use]
    pub fn known(self) -> Option<Arc<Origin>> {
        match self {
            OriginState::Read(origin) => origin,
            OriginState::NotYet => None,
        }
    }
}

/// The origins of classes seen so far.
#[derive(Default)]
pub struct KnownOrigins {
    fields: Origins,
    known: FxHashMap<[u64; 3], Option<Arc<Origin>>>,
    /// Attempts for classes whose origin is unknown.
    tried: FxHashMap<[u64; 3], u8>,
    /// Origins that classes share.
    shared: FxHashMap<Origin, Arc<Origin>>,
}

impl KnownOrigins {
    /// Clears all, to bound memory.
    pub fn clear(&mut self) {
        self.known.clear();
        self.tried.clear();
        self.shared.clear();
    }

    /// The origin of a method's class.
    pub fn of<M: Memory>(&mut self, mem: &M, layout: &Layout, method: &MethodKey) -> OriginState {
        let Some(key) = origin::key_of(mem, layout, method) else {
            return OriginState::Read(None);
        };
        if let Some(known) = self.known.get(&key) {
            return OriginState::Read(known.clone());
        }
        let [class, ..] = key;
        let read = |fields: &mut Origins| read(fields, mem, layout, class);
        let origin = self.fields.twice(read);
        let tried = self.tried.entry(key).or_default();
        *tried += 1;
        if origin.is_none() && *tried < TRIES_MAX {
            return OriginState::NotYet;
        }
        self.tried.remove(&key);
        let origin = origin.filter(Origin::is_known).map(|origin| {
            let shared = self.shared.entry(origin);
            let place = shared.or_insert_with_key(|origin| Arc::new(origin.clone()));
            Arc::clone(place)
        });
        self.known.insert(key, origin.clone());
        OriginState::Read(origin)
    }
}

fn read<M: Memory>(fields: &mut Origins, mem: &M, layout: &Layout, class: u64) -> Option<Origin> {
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

    /// Memory in which a method leads to its class, but the class cannot be read, as in a move by
    /// the collector.
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
    fn unreadable_class_is_retried_a_bounded_number_of_times() {
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
        let mut origins = KnownOrigins::default();
        for _ in 1..TRIES_MAX {
            assert_eq!(origins.of(&Moving, &layout, &method), OriginState::NotYet);
        }
        for _ in 0..2 {
            assert_eq!(
                origins.of(&Moving, &layout, &method),
                OriginState::Read(None)
            );
        }
        assert!(origins.tried.is_empty());
    }
}

//! The method that has allocated an object whose sample found no slot. Runs in a callback of the
//! VM on the allocating thread, so the method is alive. Not for handlers: it may allocate.
//!
//! Only the innermost frames are walked. A method's name is read once, when it first loses a
//! sample.

use super::innermost_method;
use crate::hotspot::Agent;
use crate::jvm::mutf8;
use dwell_recorder::allocated::Classes;
use dwell_signal::ThreadRecord;
use dwell_walker::Memory;
use dwell_walker::hotspot::Layout;
use dwell_walker::hotspot::names::{self, MethodKey};

/// Longest symbol there can be.
const SYMBOL_MAX: usize = 65_536;

/// The number of the calling thread's innermost method in the table of such methods; `None`: it is
/// unknown, or the table is full.
#[must_use]
pub fn number(agent: &Agent, record: &ThreadRecord) -> Option<u32> {
    let live = agent.engine.live();
    let layout = &agent.runtime.vm().layout;
    let method = innermost_method(&live, record)?;
    let key = names::method_key(&live, layout, method).ok()?;
    let bytes = bytes(&key);
    let number = agent
        .lost_methods
        .number(&bytes, || text(&live, layout, &key));
    (number != Classes::FULL).then_some(number)
}

/// The identity of a method as long as its class is loaded. Another method with all these addresses
/// would need the same memory and the same symbols.
fn bytes(key: &MethodKey) -> [u8; 40] {
    let words = [
        key.method,
        key.const_method,
        key.class_symbol,
        key.name_symbol,
        key.descriptor_symbol,
    ];
    let mut bytes = [0; 40];
    for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

/// Class and name, as in tables of methods; empty if they cannot be read.
fn text<M: Memory>(mem: &M, layout: &Layout, key: &MethodKey) -> String {
    let mut buf = vec![0; SYMBOL_MAX];
    let mut symbol = |at| {
        let bytes = names::symbol(mem, layout, at, &mut buf).ok()?;
        Some(mutf8::decode(bytes)).filter(|text| !text.is_empty())
    };
    let class = symbol(key.class_symbol);
    match class.zip(symbol(key.name_symbol)) {
        Some((class, name)) => format!("{}.{name}", class.replace('/', ".")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jvm::made_up::{NOWHERE, Words, layout, live};

    fn symbol(text: &str) -> u64 {
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        Words::of_bytes(&bytes).at()
    }

    fn key(class_symbol: u64, name_symbol: u64) -> MethodKey {
        MethodKey {
            method: 1,
            const_method: 2,
            class_symbol,
            name_symbol,
            descriptor_symbol: 5,
        }
    }

    #[test]
    fn allocating_method_has_class_and_name() {
        let of = |class, name| text(&live(), &layout(), &key(class, name));
        let (class, name) = (symbol("app/Loader$Pages"), symbol("load"));
        assert_eq!(of(class, name), "app.Loader$Pages.load");
        assert_eq!(of(NOWHERE, name), "", "unloaded");
        assert_eq!(of(class, symbol("")), "", "no method");
    }

    #[test]
    fn methods_with_one_different_address_differ() {
        let first = key(3, 4);
        let others = [
            MethodKey { method: 9, ..first },
            MethodKey {
                const_method: 9,
                ..first
            },
            MethodKey {
                class_symbol: 9,
                ..first
            },
            MethodKey {
                name_symbol: 9,
                ..first
            },
            MethodKey {
                descriptor_symbol: 9,
                ..first
            },
        ];
        for other in others {
            assert_ne!(bytes(&other), bytes(&first), "{other:?}");
        }
    }
}

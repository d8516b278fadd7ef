//! Scopes of return addresses in compiled code, cached from walk to walk.
//!
//! Stacks repeat: the same return addresses lead to the same scopes and frame sizes. An entry is
//! valid as long as the same compilation is at the same place; compile ids are never reused.

use crate::frame::FrameKind;
use core::cell::Cell;

/// Maximum number of scopes of an entry; deeper inlining is not cached.
pub const SCOPES_MAX: usize = 6;

/// Data of one return address, without the methods.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The return address; 0 if the entry is empty.
    pub pc: u64,
    /// The compiled method's blob.
    pub blob: u64,
    /// Its compile id when the entry was made.
    pub compile_id: u32,
    /// Its frame size.
    pub frame_bytes: u32,
    /// Number of methods.
    pub len: u8,
    /// Kind of the outermost method.
    pub tier: FrameKind,
}

/// A `Method*` and a bci.
pub type Scope = (u64, i32);

/// Storage for one return address. Most have one method, so the methods are kept apart from the
/// head: a frame needs few words.
#[derive(Clone, Debug)]
pub struct Slot {
    head: Cell<Head>,
    scopes: [Cell<Scope>; SCOPES_MAX],
}

impl Slot {
    /// An empty slot.
    #[must_use]
    pub const fn empty() -> Slot {
        Slot {
            head: Cell::new(Head {
                pc: 0,
                blob: 0,
                compile_id: 0,
                frame_bytes: 0,
                len: 0,
                tier: FrameKind::C2,
            }),
            scopes: [const { Cell::new((0, 0)) }; SCOPES_MAX],
        }
    }
}

/// The cached data of a return address.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// The data without the methods.
    pub head: Head,
    scopes: &'a [Cell<Scope>],
}

impl Known<'_> {
    /// The methods, innermost first.
    pub fn scopes(&self) -> impl ExactSizeIterator<Item = Scope> {
        self.scopes.iter().map(Cell::get)
    }
}

/// A direct-mapped cache in memory the caller provides. Not for several threads.
#[derive(Clone, Copy)]
pub struct PcCache<'a> {
    slots: &'a [Slot],
}

impl<'a> PcCache<'a> {
    /// A cache in `slots`.
    #[must_use]
    pub fn new(slots: &'a [Slot]) -> PcCache<'a> {
        PcCache { slots }
    }

    fn place(&self, pc: u64) -> Option<&'a Slot> {
        // 32 well-mixed bits, scaled to the number of slots without a division.
        let mixed = pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let place = mixed.wrapping_mul(self.slots.len() as u64) >> 32;
        self.slots.get(place as usize)
    }

    /// The cached data of `pc`. The caller must check the compile id.
    #[must_use]
    pub fn get(&self, pc: u64) -> Option<Known<'a>> {
        let slot = self.place(pc)?;
        let head = slot.head.get();
        if head.pc != pc || pc == 0 {
            return None;
        }
        let scopes = slot.scopes.get(..usize::from(head.len))?;
        Some(Known { head, scopes })
    }

    /// Caches an address; `head` has the number of valid `scopes`.
    pub fn put(&self, head: Head, scopes: &[Scope; SCOPES_MAX]) {
        if let Some(slot) = self.place(head.pc) {
            slot.head.set(head);
            for (to, from) in slot.scopes.iter().zip(scopes) {
                to.set(*from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_entries_are_returned() {
        let slots = [const { Slot::empty() }; 4];
        let cache = PcCache::new(&slots);
        assert!(cache.get(0).is_none());
        let mut scopes = [(0, 0); SCOPES_MAX];
        for pc in 1..100u64 {
            assert!(cache.get(pc).is_none());
            scopes[0] = (pc + 1000, 7);
            scopes[1] = (pc + 2000, 8);
            let head = Head {
                pc,
                blob: 5,
                compile_id: 6,
                frame_bytes: 64,
                len: 1 + (pc % 2) as u8,
                tier: FrameKind::C1,
            };
            cache.put(head, &scopes);
            let known = cache
                .get(pc)
                .map(|known| (known.head.blob, known.scopes().len()));
            assert_eq!(known, Some((5, 1 + (pc % 2) as usize)));
            let first = cache.get(pc).and_then(|known| known.scopes().next());
            assert_eq!(first, Some((pc + 1000, 7)));
        }
    }
}

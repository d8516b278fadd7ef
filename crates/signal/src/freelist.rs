//! Lock-free stacks of indices whose links lie in memory that is never unmapped.
//!
//! The head carries a 40-bit tag that every change increments. So a pop that was preempted between
//! reading the head and swapping it cannot mistake a recycled entry for the one it saw (that would
//! take 2^40 changes in between). Fails instead of looping without end.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Indices must be below this.
pub const INDEX_LIMIT: u32 = (1 << 24) - 1;

/// A failed swap means that another thread succeeded; this many in a row do not happen.
const TRIES_MAX: u32 = 1 << 16;

/// The head of a stack of indices.
#[derive(Debug, Default)]
pub struct TaggedHead(AtomicU64);

#[inline]
fn pack(tag: u64, index_plus_one: u32) -> u64 {
    tag.wrapping_shl(24) | u64::from(index_plus_one)
}

#[inline]
fn unpack(word: u64) -> (u64, u32) {
    (word >> 24, (word & 0x00ff_ffff) as u32)
}

impl TaggedHead {
    /// An empty stack.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Pushes `index`, whose link is `link`; false if contention never ended.
    #[inline]
    pub fn push(&self, index: u32, link: &AtomicU32) -> bool {
        let mut head = self.0.load(Ordering::Relaxed);
        for _ in 0..TRIES_MAX {
            let (tag, top) = unpack(head);
            link.store(top, Ordering::Relaxed);
            let new = pack(tag.wrapping_add(1), index.wrapping_add(1));
            match self
                .0
                .compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => head = now,
            }
        }
        false
    }

    /// Pops the index pushed last; `link_of` finds an index's link.
    #[inline]
    pub fn pop<'a>(&self, link_of: impl Fn(u32) -> Option<&'a AtomicU32>) -> Option<u32> {
        let mut head = self.0.load(Ordering::Acquire);
        for _ in 0..TRIES_MAX {
            let (tag, top) = unpack(head);
            let index = top.checked_sub(1)?;
            let next = link_of(index)?.load(Ordering::Relaxed);
            let new = pack(tag.wrapping_add(1), next);
            match self
                .0
                .compare_exchange_weak(head, new, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return Some(index),
                Err(now) => head = now,
            }
        }
        None
    }

    /// Takes the whole stack at once; the first index, whose link leads to the next and so on
    /// (links hold the index plus one, 0 ends).
    #[inline]
    pub fn take_all(&self) -> u32 {
        let mut head = self.0.load(Ordering::Acquire);
        for _ in 0..TRIES_MAX {
            let (tag, top) = unpack(head);
            let new = pack(tag.wrapping_add(1), 0);
            match self
                .0
                .compare_exchange_weak(head, new, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return top,
                Err(now) => head = now,
            }
        }
        0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn head_holds_largest_index_and_full_tag() {
        // The index plus one is kept, and 0 ends a list.
        let largest = INDEX_LIMIT - 1;
        for tag in [0, 1, (1 << 40) - 1] {
            assert_eq!(unpack(pack(tag, INDEX_LIMIT)), (tag, INDEX_LIMIT));
        }
        assert_eq!(pack(u64::MAX, 0) & 0xff_ffff, 0);
        let (head, link) = (TaggedHead::new(), AtomicU32::new(7));
        assert!(head.push(largest, &link));
        assert_eq!(
            head.pop(|index| (index == largest).then_some(&link)),
            Some(largest)
        );
        assert_eq!(head.pop(|_| Some(&link)), None);
    }

    #[test]
    fn pop_returns_last_pushed_first() {
        let (head, links) = (TaggedHead::new(), [const { AtomicU32::new(0) }; 4]);
        let link = |index: u32| links.get(index as usize);
        for index in [2, 0, 3] {
            assert!(head.push(index, &links[index as usize]));
        }
        assert_eq!(head.pop(link), Some(3));
        assert!(head.push(1, &links[1]));
        let mut at = head.take_all();
        let mut order = Vec::new();
        while let Some(index) = at.checked_sub(1) {
            order.push(index);
            at = links[index as usize].load(Ordering::Relaxed);
        }
        assert_eq!(order, [1, 0, 2]);
        assert_eq!((head.take_all(), head.pop(link)), (0, None));
        // A link that is not there.
        assert!(head.push(3, &links[3]));
        assert_eq!(head.pop(|_| None), None);
    }
}

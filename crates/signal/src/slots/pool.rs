//! The pool of slots: size classes, lock-free free lists, one stack of published slots.

use crate::config::{CLASSES_MAX, ClassSpec};
use crate::freelist::{INDEX_LIMIT, TaggedHead};
use crate::slots::header::{Slot, SlotHeader, chunk_start};
use crate::sys;
use core::mem::size_of;
use core::sync::atomic::{AtomicU32, Ordering};

/// Slots begin at a multiple of this.
const SLOTS_ALIGNMENT: usize = 4096;
const HEADER_BYTES: usize = size_of::<SlotHeader>();

#[derive(Debug, Default)]
struct Class {
    base: usize,
    stride: usize,
    capacity: usize,
    first: u32,
    count: u32,
    free: TaggedHead,
}

/// Preallocated slots. Handlers take and publish, one ordinary thread drains.
#[derive(Debug)]
pub struct SlotPool {
    links: usize,
    total: u32,
    classes: [Class; CLASSES_MAX],
    filled: TaggedHead,
    /// Slots whose threads wait to be walked.
    offered: TaggedHead,
    /// Slots that a drain has left to the next one, first to last; only the draining thread uses
    /// it.
    rest: AtomicU32,
}

/// A slot that no other code knows. Publish it or release it; forgetting it loses it.
#[must_use]
#[derive(Debug)]
pub struct OwnedSlot {
    id: u32,
    base: usize,
    capacity: usize,
}

impl OwnedSlot {
    /// The fixed part.
    #[inline]
    pub fn header(&mut self) -> &mut SlotHeader {
        // SAFETY: `base` is the 64-byte aligned start of a slot of the pool's region, large enough
        // for a header, zeroed at first (all bit patterns the handler leaves are valid, `Reason`
        // and the bools being written through their types). The free list gave the slot to us
        // alone, and the borrow of `self` keeps the reference unique.
        unsafe { &mut *(self.base as *mut SlotHeader) }
    }

    /// Bytes of data the slot holds.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The place of the stack's copy.
    #[inline]
    pub fn data(&mut self) -> *mut u8 {
        self.base.wrapping_add(HEADER_BYTES) as *mut u8
    }

    /// The place of the next chunk's copy, and how many bytes of it fit, once the stack and the
    /// earlier chunks have been copied.
    #[inline]
    pub fn chunk_room(&mut self) -> (*mut u8, usize) {
        let start = chunk_start(self.header().used());
        let room = self.capacity.saturating_sub(start);
        (self.data().wrapping_add(start), room)
    }

    /// The word that names the slot's holder; it stays mapped in every state of the slot.
    #[inline]
    pub(crate) fn handoff(&mut self) -> &'static AtomicU32 {
        let word = &raw const self.header().handoff;
        // SAFETY: slots are never unmapped, and the word is only ever used as an atomic.
        unsafe { &*word }
    }

    /// Takes over the content of `smaller`.
    #[inline]
    pub fn copy_from(&mut self, smaller: &mut OwnedSlot) {
        let len = HEADER_BYTES.wrapping_add(smaller.header().used().min(smaller.capacity));
        let len = len.min(HEADER_BYTES.wrapping_add(self.capacity));
        let (from, to) = (smaller.base as *const u8, self.base as *mut u8);
        // SAFETY: both slots are ours alone and apart, and each holds its header and at least
        // `len - HEADER_BYTES` bytes of data.
        unsafe { core::ptr::copy_nonoverlapping(from, to, len) };
    }
}

fn stride_of(spec: &ClassSpec) -> Option<usize> {
    let bytes = spec.capacity_bytes.checked_add(HEADER_BYTES)?;
    bytes.checked_next_multiple_of(64)
}

fn links_bytes(specs: &[ClassSpec]) -> Option<usize> {
    let total = specs
        .iter()
        .try_fold(0u32, |sum, spec| sum.checked_add(spec.count))?;
    if total >= INDEX_LIMIT || specs.len() > CLASSES_MAX {
        return None;
    }
    (total as usize)
        .checked_mul(size_of::<AtomicU32>())?
        .checked_next_multiple_of(SLOTS_ALIGNMENT)
}

/// Begin and end of the pages that lie entirely in `bytes` from `at` on. Without such a page, the
/// begin is not below the end. The kernel rounds the end of a request up, to a page of its own
/// size.
fn whole_pages(at: usize, bytes: usize, page_bytes: usize) -> (usize, usize) {
    let mask = page_bytes.wrapping_sub(1);
    let start = at.wrapping_add(mask) & !mask;
    (start, at.wrapping_add(bytes) & !mask)
}

impl SlotPool {
    /// Size of the region that [`SlotPool::new`] needs; `None` if the classes need too much.
    #[must_use]
    pub fn region_bytes(specs: &[ClassSpec]) -> Option<usize> {
        specs.iter().try_fold(links_bytes(specs)?, |sum, spec| {
            sum.checked_add(stride_of(spec)?.checked_mul(spec.count as usize)?)
        })
    }

    /// Divides `region` into slots of the classes `specs`, smallest first.
    ///
    /// # Safety
    /// `region` must be zeroed, page-aligned memory of [`SlotPool::region_bytes`] bytes that is
    /// used only for this pool and never freed.
    #[must_use]
    pub unsafe fn new(region: *mut u8, specs: &[ClassSpec]) -> Option<Self> {
        let mut base = (region as usize).checked_add(links_bytes(specs)?)?;
        let mut classes: [Class; CLASSES_MAX] = Default::default();
        let mut first: u32 = 0;
        for (class, spec) in classes.iter_mut().zip(specs) {
            let stride = stride_of(spec)?;
            *class = Class {
                base,
                stride,
                capacity: stride.checked_sub(HEADER_BYTES)?,
                first,
                count: spec.count,
                free: TaggedHead::new(),
            };
            base = base.checked_add(stride.checked_mul(spec.count as usize)?)?;
            first = first.checked_add(spec.count)?;
        }
        let pool = Self {
            links: region as usize,
            total: first,
            classes,
            filled: TaggedHead::new(),
            offered: TaggedHead::new(),
            rest: AtomicU32::new(0),
        };
        for id in (0..first).rev() {
            pool.release_id(id);
        }
        Some(pool)
    }

    #[inline]
    fn link(&self, id: u32) -> Option<&AtomicU32> {
        if id >= self.total {
            return None;
        }
        let addr = self
            .links
            .wrapping_add((id as usize).wrapping_mul(size_of::<AtomicU32>()));
        // SAFETY: the region begins with `total` links, zeroed, and is never freed; links are only
        // ever used as atomics.
        Some(unsafe { &*(addr as *const AtomicU32) })
    }

    fn class_of(&self, id: u32) -> Option<&Class> {
        self.classes
            .iter()
            .find(|class| id.wrapping_sub(class.first) < class.count)
    }

    fn owned(class: &Class, id: u32) -> OwnedSlot {
        let offset = (id.wrapping_sub(class.first) as usize).wrapping_mul(class.stride);
        OwnedSlot {
            id,
            base: class.base.wrapping_add(offset),
            capacity: class.capacity,
        }
    }

    #[inline]
    fn pop(&self, class: &Class) -> Option<OwnedSlot> {
        let id = class.free.pop(|id| self.link(id))?;
        Some(Self::owned(class, id))
    }

    /// Bytes of data that the largest slots hold.
    #[inline]
    #[must_use]
    pub fn largest(&self) -> usize {
        let capacities = self.classes.iter().map(|class| class.capacity);
        capacities.max().unwrap_or(0)
    }

    /// A free slot for `needed` bytes: of the smallest class that holds them and has one. None if
    /// all of those are taken. A stack without its root would be a failed sample, while the weight
    /// of a sample without a slot goes to the thread's next. Data beyond the largest class is cut.
    #[inline]
    pub fn take(&self, needed: usize) -> Option<OwnedSlot> {
        let needed = needed.min(self.largest());
        self.classes
            .iter()
            .filter(|class| class.capacity >= needed)
            .find_map(|class| self.pop(class))
    }

    /// Hands a filled slot to the drainer; false if it was lost to contention.
    #[inline]
    pub fn publish(&self, slot: OwnedSlot) -> bool {
        self.link(slot.id)
            .is_some_and(|link| self.filled.push(slot.id, link))
    }

    /// Makes the slot visible to the walking thread; false if it was lost to contention.
    #[inline]
    pub(crate) fn offer(&self, slot: &OwnedSlot) -> bool {
        self.link(slot.id)
            .is_some_and(|link| self.offered.push(slot.id, link))
    }

    /// Takes all offered slots, in the order of offering, and hands each to `visit`, which may
    /// share it with the thread that offered it; see [`crate::pause`]. Returns how many.
    #[inline]
    pub(crate) fn take_offered(&self, mut visit: impl FnMut(OwnedSlot)) -> usize {
        let mut head = self.reversed(self.offered.take_all());
        let mut count: usize = 0;
        while let Some(id) = head.checked_sub(1) {
            // Before the visit: afterwards the link may already serve another list.
            head = self.link(id).map_or(0, |link| link.load(Ordering::Relaxed));
            if let Some(class) = self.class_of(id) {
                visit(Self::owned(class, id));
                count = count.wrapping_add(1);
            }
        }
        count
    }

    /// Gives a slot back unused; false if it was lost to contention.
    #[inline]
    pub fn release(&self, slot: OwnedSlot) -> bool {
        self.release_id(slot.id)
    }

    fn release_id(&self, id: u32) -> bool {
        match (self.class_of(id), self.link(id)) {
            (Some(class), Some(link)) => class.free.push(id, link),
            _ => false,
        }
    }

    /// Takes all published slots, shows them to `visit` in the order of publication and frees them.
    /// Returns how many there were. One thread at a time, and not in a handler.
    pub fn drain(&self, mut visit: impl FnMut(&Slot<'_>)) -> usize {
        let mut all = |slot: &Slot<'_>| {
            visit(slot);
            true
        };
        // First the slots that an earlier drain left, then those published since.
        let rest = if self.has_rest() {
            self.drain_while(&mut all)
        } else {
            0
        };
        rest.wrapping_add(self.drain_while(all))
    }

    /// Whether a drain was ended by its visitor, so that the next one continues with the same
    /// slots.
    #[must_use]
    pub fn has_rest(&self) -> bool {
        self.rest.load(Ordering::Relaxed) != 0
    }

    /// Like [`SlotPool::drain`], until `visit` returns false. The next drain continues from there.
    /// Slots published in between wait for the drain after that.
    pub fn drain_while(&self, mut visit: impl FnMut(&Slot<'_>) -> bool) -> usize {
        let head = match self.rest.swap(0, Ordering::Relaxed) {
            0 => self.reversed(self.filled.take_all()),
            rest => rest,
        };
        let mut chain = Chain { pool: self, head };
        let mut count: usize = 0;
        while let Some(id) = chain.next() {
            let _freed = FreeOnDrop { pool: self, id };
            let Some(class) = self.class_of(id) else {
                continue;
            };
            let slot = Self::owned(class, id);
            // SAFETY: taken off the filled stack, so the slot is ours alone until it is freed, and
            // its publication (release) happens before our taking it (acquire).
            let header = unsafe { &*(slot.base as *const SlotHeader) };
            let data = slot.base.wrapping_add(HEADER_BYTES) as *const u8;
            // SAFETY: the slot's data area; the kernel zeroed it, so all of it is initialised.
            let data = unsafe { core::slice::from_raw_parts(data, slot.capacity) };
            count = count.wrapping_add(1);
            if !visit(&Slot { header, data }) {
                self.rest
                    .store(core::mem::take(&mut chain.head), Ordering::Relaxed);
            }
        }
        count
    }

    /// Gives the pages of free slots back to the kernel, but for those with headers: late threads
    /// may read these. Not in a handler.
    pub(crate) fn give_back_memory(&self, page_bytes: usize) {
        for class in &self.classes {
            // In this order the slots used last will be used first again.
            let mut head = self.reversed(class.free.take_all());
            while let Some(id) = head.checked_sub(1) {
                head = self.link(id).map_or(0, |link| link.load(Ordering::Relaxed));
                let mut slot = Self::owned(class, id);
                let (data, capacity) = (slot.data() as usize, slot.capacity());
                let (start, end) = whole_pages(data, capacity, page_bytes);
                if start < end {
                    // SAFETY: whole pages of a free slot's data, which nobody else has: it is not
                    // on a list. They read as zeroes afterwards, as at first.
                    unsafe { sys::give_back(start, end.wrapping_sub(start)) };
                }
                self.release_id(id);
            }
        }
    }

    /// Turns a chain of links (index plus one) around.
    #[inline]
    fn reversed(&self, mut from: u32) -> u32 {
        let mut to: u32 = 0;
        for _ in 0..self.total {
            let Some(link) = from.checked_sub(1).and_then(|id| self.link(id)) else {
                break;
            };
            let next = link.swap(to, Ordering::Relaxed);
            to = from;
            from = next;
        }
        to
    }
}

/// Published slots not visited yet; freed even if the visitor unwinds.
struct Chain<'a> {
    pool: &'a SlotPool,
    head: u32,
}

impl Chain<'_> {
    fn next(&mut self) -> Option<u32> {
        let id = self.head.checked_sub(1)?;
        self.head = self.pool.link(id)?.load(Ordering::Relaxed);
        Some(id)
    }
}

impl Drop for Chain<'_> {
    fn drop(&mut self) {
        while let Some(id) = self.next() {
            self.pool.release_id(id);
        }
    }
}

struct FreeOnDrop<'a> {
    pool: &'a SlotPool,
    id: u32,
}

impl Drop for FreeOnDrop<'_> {
    fn drop(&mut self) {
        self.pool.release_id(self.id);
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;

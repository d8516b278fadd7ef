//! New locations of objects that ZGC has moved. A reference may be older than the move, and its
//! colour shows this (src/hotspot/share/gc/z/zAddress.hpp, zForwarding.inline.hpp, zGeneration.hpp;
//! for the non-generational ZGC gc/x/xAddress.hpp and xBarrier.inline.hpp of 21 to 23).
//!
//! In generational ZGC a reference has one of four bits set. It encodes whether young and old
//! objects have been moved an even or odd number of times so far. If that differs from the present
//! state, the object's address is looked up in the table of that generation. The table has an entry
//! for each evacuated granule, with an entry for each object. Objects without an entry have not
//! been moved (yet).
//!
//! In the non-generational ZGC there is one table. The colour is one of three bits above the offset
//! in the heap, which is mapped once for each. Two of them alternate to mark objects; the third
//! says that a reference was updated after the last move. One of them is the current one. A
//! reference with neither that bit nor the third is looked up.
//!
//! The collector keeps running. The caller must check the results like all data read at the same
//! time.

use super::layout::{Layout, present};
use crate::memory::{Fault, Memory};

/// The four bits, and those for an old reference to an old object.
const COLOR_SHIFT: u32 = 12;
const COLORS: u64 = 0xf;
const REMEMBERED: u64 = 3 << 4;
/// Non-generational: the bit of updated references, above the offset.
const REMAPPED_SHIFT: u32 = 2;
/// Bytes of a granule, as a power of two (`ZGranuleSizeShift`).
const GRANULE_SHIFT: u32 = 21;
/// Maximum number of entries read for one object: tables are half empty, and runs in them are
/// short.
const PROBES_MAX: u32 = 256;
/// `ZForwardingEntry`: whether it is used, the object's new offset, its old place in the granule.
const USED: u64 = 1;
const TO_SHIFT: u32 = 1;
const TO_MASK: u64 = (1 << 45) - 1;
const FROM_SHIFT: u32 = 46;
/// Bits of a colour's number: the generation that was moved an odd number of times.
const YOUNG: u32 = 1;
const OLD: u32 = 2;

/// Addresses of the tables; all 0: unknown, and references are followed unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Address of `ZPointerLoadBadMask`: the colours other than the current one.
    pub bad_mask_at: u64,
    /// `ZAddressOffsetMask`: the bits of an address that are its offset in the heap.
    pub offset_mask: u64,
    /// The young generation's table: a `ZForwarding*` for each granule.
    pub young: u64,
    /// The old generation's table.
    pub old: u64,
    /// Non-generational, with `young` as the one table: address of `ZAddressGoodMask`, the current
    /// bit. Else 0.
    pub good_mask_at: u64,
}

/// Offsets in a `ZForwarding`.
struct Shape {
    start: u64,
    shift: u64,
    entries: u64,
    len: u64,
}

impl Shape {
    fn of(layout: &Layout) -> Shape {
        // A JVM of 21 to 23 has both, with these names. An older one has one ZGC, with today's
        // names.
        if layout.extra.moves.good_mask_at != 0 && present(layout.x_globals) {
            return Shape {
                start: layout.x_forwarding_range.wrapping_add(layout.x_range_start),
                shift: layout.x_forwarding_shift,
                entries: layout.sizeof_x_forwarding,
                len: layout
                    .x_forwarding_entries
                    .wrapping_add(layout.x_entries_length),
            };
        }
        Shape {
            start: layout.z_forwarding_range.wrapping_add(layout.z_range_start),
            shift: layout.z_forwarding_shift,
            entries: layout.sizeof_z_forwarding,
            len: layout
                .z_forwarding_entries
                .wrapping_add(layout.z_entries_length),
        }
    }
}

impl Moves {
    /// Nothing is known.
    pub const EMPTY: Moves = Moves {
        bad_mask_at: 0,
        offset_mask: 0,
        young: 0,
        old: 0,
        good_mask_at: 0,
    };

    /// Finds the tables in the heap; `None` if this JVM does not export their location, or has not
    /// created its heap yet.
    ///
    /// # Errors
    /// [`Fault`] if a structure cannot be read.
    pub fn find<M: Memory>(mem: &M, layout: &Layout) -> Result<Option<Moves>, Fault> {
        let needed = [
            layout.z_globals,
            layout.z_offset_mask,
            layout.z_bad_mask,
            layout.collected_heap,
            layout.z_heap,
            layout.z_page_allocator,
            layout.z_page_table,
            layout.z_granule_map,
            layout.z_forwarding_range,
            layout.z_range_start,
            layout.z_forwarding_shift,
            layout.z_forwarding_entries,
            layout.z_entries_length,
            layout.sizeof_z_heap,
            layout.sizeof_z_forwarding,
        ];
        if !needed.into_iter().all(present) {
            return Ok(None);
        }
        let globals = mem.word(layout.z_globals)?;
        let heap = mem.word(layout.collected_heap)?;
        if globals == 0 || heap == 0 {
            return Ok(None);
        }
        let offset_mask = mem.word(globals.wrapping_add(layout.z_offset_mask))?;
        let mut moves = Moves {
            bad_mask_at: mem.word(globals.wrapping_add(layout.z_bad_mask))?,
            offset_mask: mem.word(offset_mask)?,
            ..Moves::EMPTY
        };
        let heap = heap.wrapping_add(layout.z_heap);
        let owners = [layout.z_page_allocator, layout.z_page_table].map(|at| heap + at);
        // A generation is a part of the heap: its id, pointers to these two, its table.
        for at in (8..layout.sizeof_z_heap.min(1 << 20)).step_by(8) {
            let at = heap.wrapping_add(at);
            if mem.word(at)? != owners[0] || mem.word(at.wrapping_add(8))? != owners[1] {
                continue;
            }
            let table = at.wrapping_add(16).wrapping_add(layout.z_granule_map);
            let table = mem.word(table)?;
            match mem.u8(at.wrapping_sub(8))? {
                0 => moves.young = table,
                1 => moves.old = table,
                _ => {}
            }
        }
        let is_known = moves.young != 0 && moves.old != 0 && moves.bad_mask_at != 0;
        Ok(is_known.then_some(moves))
    }

    /// The same for the non-generational ZGC.
    ///
    /// # Errors
    /// [`Fault`] if a structure cannot be read.
    pub fn find_single<M: Memory>(mem: &M, layout: &Layout) -> Result<Option<Moves>, Fault> {
        let is_x = present(layout.x_globals);
        let (globals, offset_mask, heap, granules) = match is_x {
            true => (
                layout.x_globals,
                layout.x_offset_mask,
                layout.x_heap,
                layout.x_granule_map,
            ),
            false => (
                layout.z_globals,
                layout.z_offset_mask,
                layout.z_heap,
                layout.z_granule_map,
            ),
        };
        let forwarding = match is_x {
            true => [
                layout.x_forwarding_range,
                layout.x_range_start,
                layout.x_forwarding_shift,
                layout.x_forwarding_entries,
                layout.x_entries_length,
                layout.sizeof_x_forwarding,
            ],
            false => [
                layout.z_forwarding_range,
                layout.z_range_start,
                layout.z_forwarding_shift,
                layout.z_forwarding_entries,
                layout.z_entries_length,
                layout.sizeof_z_forwarding,
            ],
        };
        let table = [layout.x_forwarding_table, layout.x_table_map];
        let masks = [layout.x_good_mask, layout.x_bad_mask];
        let places = [globals, offset_mask, heap, granules, layout.collected_heap];
        let needed = places
            .into_iter()
            .chain(forwarding)
            .chain(table)
            .chain(masks);
        if !needed.into_iter().all(present) {
            return Ok(None);
        }
        let globals = mem.word(globals)?;
        let collected = mem.word(layout.collected_heap)?;
        if globals == 0 || collected == 0 {
            return Ok(None);
        }
        let at = |field: u64| mem.word(globals.wrapping_add(field));
        let map = [heap, table[0], table[1], granules];
        let map = map.into_iter().fold(collected, u64::wrapping_add);
        let moves = Moves {
            bad_mask_at: at(layout.x_bad_mask)?,
            good_mask_at: at(layout.x_good_mask)?,
            offset_mask: mem.word(at(offset_mask)?)?,
            young: mem.word(map)?,
            old: 0,
        };
        let known = [moves.bad_mask_at, moves.good_mask_at, moves.young];
        Ok((!known.contains(&0)).then_some(moves))
    }
}

/// The present address of the object that `reference` leads to, in the non-generational ZGC.
/// References of other collectors are returned unchanged.
///
/// # Errors
/// [`Fault`] if a table cannot be read.
#[inline]
pub fn follow_single<M: Memory>(mem: &M, layout: &Layout, reference: u64) -> Result<u64, Fault> {
    let moves = &layout.extra.moves;
    if moves.good_mask_at == 0 || reference == 0 {
        return Ok(reference);
    }
    if reference & mem.word(moves.bad_mask_at)? == 0 {
        return Ok(reference);
    }
    let good = mem.word(moves.good_mask_at)?;
    let remapped = moves.offset_mask.wrapping_add(1) << REMAPPED_SHIFT;
    let offset = reference & moves.offset_mask;
    if reference & (good | remapped) != 0 {
        return Ok(good | offset);
    }
    let moved = match forwarding(mem, moves, moves.young, offset)? {
        0 => offset,
        forwarding => forwarded(mem, layout, forwarding, offset)?,
    };
    Ok(good | moved)
}

/// The present address of the object that `reference` leads to, which is `address` without the
/// colour.
///
/// # Errors
/// [`Fault`] if a table cannot be read.
#[inline]
pub fn follow<M: Memory>(
    mem: &M,
    layout: &Layout,
    reference: u64,
    address: u64,
) -> Result<u64, Fault> {
    let moves = &layout.extra.moves;
    // Null has a colour as well, but no location.
    if moves.bad_mask_at == 0 || address == 0 {
        return Ok(address);
    }
    let bad = mem.word(moves.bad_mask_at)?;
    if reference & bad == 0 {
        return Ok(address);
    }
    let number = |colors: u64| (colors & COLORS).trailing_zeros();
    let stale = number(reference >> COLOR_SHIFT) ^ number(!bad >> COLOR_SHIFT);
    let table = match stale {
        YOUNG => moves.young,
        OLD => moves.old,
        _ if reference & REMEMBERED == REMEMBERED => moves.old,
        _ if forwarding(mem, moves, moves.young, address)? != 0 => moves.young,
        _ => moves.old,
    };
    let forwarding = forwarding(mem, moves, table, address)?;
    match forwarding {
        0 => Ok(address),
        _ => forwarded(mem, layout, forwarding, address),
    }
}

/// The `ZForwarding` of the granule that contains `address`; 0 if that was not evacuated.
fn forwarding<M: Memory>(mem: &M, moves: &Moves, table: u64, address: u64) -> Result<u64, Fault> {
    let granule = (address & moves.offset_mask) >> GRANULE_SHIFT;
    word_at(mem, table.wrapping_add(granule.wrapping_mul(8)))
}

/// The present address of the object that was at `address`.
fn forwarded<M: Memory>(
    mem: &M,
    layout: &Layout,
    forwarding: u64,
    address: u64,
) -> Result<u64, Fault> {
    let field = |at: u64| word_at(mem, forwarding.wrapping_add(at));
    let shape = Shape::of(layout);
    let start = field(shape.start)?;
    let shift = field(shape.shift)? as u32 & 63;
    let len = field(shape.len)?;
    let offset_mask = layout.extra.moves.offset_mask;
    let from = (address & offset_mask).wrapping_sub(start) >> shift;
    let last = len.wrapping_sub(1);
    let mut place = u64::from(hash(from as u32)) & last;
    for _ in 0..PROBES_MAX {
        let entry = field(shape.entries.wrapping_add(place.wrapping_mul(8)))?;
        if entry & USED == 0 {
            break;
        }
        if entry >> FROM_SHIFT == from {
            return Ok(address & !offset_mask | (entry >> TO_SHIFT & TO_MASK));
        }
        place = place.wrapping_add(1) & last;
    }
    Ok(address)
}

// Not inlined into the loop that calls it. Otherwise the read function would be called through a
// register, and the check of handlers cannot follow such calls.
#[inline(never)]
fn word_at<M: Memory>(mem: &M, at: u64) -> Result<u64, Fault> {
    mem.word(at)
}

/// Start of the search for an object (zHash.inline.hpp).
const fn hash(key: u32) -> u32 {
    let key = (!key).wrapping_add(key << 15);
    let key = key ^ key >> 12;
    let key = key.wrapping_add(key << 2);
    let key = key ^ key >> 4;
    let key = key.wrapping_mul(2057);
    key ^ key >> 16
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::hotspot::continuation::handle;
    use crate::hotspot::test_memory::Bytes;
    use std::vec;
    use std::vec::Vec;

    const BASE: u64 = 1 << 42;
    const GLOBALS: u64 = 0x1000;
    const MASKS: u64 = 0x2000;
    const HEAP: u64 = 0x3000;
    const YOUNG_TABLE: u64 = 0x10_0000;
    const OLD_TABLE: u64 = 0x20_0000;
    const FORWARDING: [u64; 2] = [0x30_0000, 0x40_0000];
    /// Entries of a forwarding.
    const LEN: u64 = 8;

    fn words(values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    fn layout() -> Layout {
        let mut layout = Layout::EMPTY;
        layout.extra.chunk.narrow_oops = false;
        layout.extra.chunk.colored_oops = true;
        layout.z_globals = GLOBALS;
        layout.z_offset_mask = 0;
        layout.z_bad_mask = 16;
        layout.collected_heap = GLOBALS + 8;
        layout.z_heap = 16;
        layout.z_page_allocator = 0;
        layout.z_page_table = 8;
        layout.z_granule_map = 8;
        layout.z_forwarding_range = 0;
        layout.z_range_start = 0;
        layout.z_forwarding_shift = 8;
        layout.z_forwarding_entries = 16;
        layout.z_entries_length = 0;
        layout.sizeof_z_heap = 0x60;
        layout.sizeof_z_forwarding = 24;
        layout
    }

    /// A heap of 8 granules whose current colour is `now`. Granule 1 of the young and 2 of the old
    /// generation were evacuated. `moved` has the objects of each, with old and new offsets.
    fn memory(now: u32, moved: [&[(u64, u64)]; 2]) -> Bytes {
        let bad = (COLORS ^ 1 << now) << COLOR_SHIFT;
        let mut mem = Bytes::at(GLOBALS, &words(&[GLOBALS + 0x100, HEAP]));
        mem.add(GLOBALS + 0x100, &words(&[MASKS, 0, MASKS + 8]));
        mem.add(MASKS, &words(&[BASE - 1, bad]));
        let heap = HEAP + 16;
        let generation = |id: u64, table| [0xabab_ab00 | id, heap, heap + 8, 8, table, 0];
        let mut inside = vec![0, 0, 0, 0];
        inside.extend(generation(1, OLD_TABLE));
        inside.extend(generation(0, YOUNG_TABLE));
        mem.add(HEAP, &words(&inside));
        let tables = [(YOUNG_TABLE, 1), (OLD_TABLE, 2)];
        for (((table, granule), objects), at) in tables.into_iter().zip(moved).zip(FORWARDING) {
            let mut all = [0; 8];
            all[granule as usize] = at;
            mem.add(table, &words(&all));
            let start = granule << GRANULE_SHIFT;
            let mut forwarding = vec![start, 3, LEN];
            forwarding.extend([0; LEN as usize]);
            for (from, to) in objects {
                let from = (from - start) >> 3;
                let mut place = u64::from(hash(from as u32)) & (LEN - 1);
                while forwarding[3 + place as usize] != 0 {
                    place = (place + 1) & (LEN - 1);
                }
                forwarding[3 + place as usize] = from << FROM_SHIFT | to << TO_SHIFT | USED;
            }
            mem.add(at, &words(&forwarding));
        }
        mem
    }

    /// A reference of this colour to the object at this offset.
    fn colored(color: u32, offset: u64, more: u64) -> u64 {
        (BASE | offset) << (COLOR_SHIFT + color + 1) | 1 << (COLOR_SHIFT + color) | more
    }

    /// The address that a reference leads to now.
    fn led(mem: &mut Bytes, at: u64, reference: u64) -> u64 {
        mem.add(at, &words(&[reference]));
        let mut layout = layout();
        layout.extra.moves = Moves::find(mem, &layout).unwrap().unwrap();
        handle(mem, &layout, at).unwrap() ^ BASE
    }

    const YOUNG_FROM: u64 = (1 << GRANULE_SHIFT) + 0x40;
    const OLD_FROM: u64 = (2 << GRANULE_SHIFT) + 0x80;

    #[test]
    fn old_references_lead_to_the_moved_object() {
        for now in 0..4 {
            let young: &[_] = &[(YOUNG_FROM, 0x111_0000), (YOUNG_FROM + 8, 0x112_0000)];
            let old: &[_] = &[(OLD_FROM, 0x221_0000)];
            let mut mem = memory(now, [young, old]);
            let mut next = 0x50_0000;
            let mut led = |color, offset, more| {
                next += 8;
                led(&mut mem, next, colored(color, offset, more))
            };
            // A current reference is unchanged.
            assert_eq!(led(now, YOUNG_FROM, 0), YOUNG_FROM);
            assert_eq!(led(now, OLD_FROM, 0), OLD_FROM);
            // From before the move of the young objects, of the old ones, and of both.
            assert_eq!(led(now ^ YOUNG, YOUNG_FROM, 0), 0x111_0000);
            assert_eq!(led(now ^ YOUNG, YOUNG_FROM + 8, 0), 0x112_0000);
            assert_eq!(led(now ^ YOUNG, OLD_FROM, 0), OLD_FROM);
            assert_eq!(led(now ^ OLD, OLD_FROM, 0), 0x221_0000);
            assert_eq!(led(now ^ OLD, YOUNG_FROM, 0), YOUNG_FROM);
            assert_eq!(led(now ^ 3, YOUNG_FROM, 0), 0x111_0000);
            assert_eq!(led(now ^ 3, OLD_FROM, 0), 0x221_0000);
            assert_eq!(led(now ^ 3, YOUNG_FROM, REMEMBERED), YOUNG_FROM);
            assert_eq!(led(now ^ 3, OLD_FROM, REMEMBERED), 0x221_0000);
            // Not moved yet; in a granule that is not evacuated.
            assert_eq!(led(now ^ YOUNG, YOUNG_FROM + 16, 0), YOUNG_FROM + 16);
            assert_eq!(led(now ^ 3, 0x40, 0), 0x40);
        }
    }

    const OFFSET_MASK: u64 = (1 << 42) - 1;
    const MARKED: [u64; 2] = [1 << 42, 1 << 43];
    const REMAPPED: u64 = 1 << 44;
    const FINALIZABLE: u64 = 1 << 45;

    /// The non-generational ZGC, with the names of 21 or those of 17; `good` is the current bit.
    fn single(good: u64, is_x: bool, objects: &[(u64, u64)]) -> (Bytes, Layout) {
        let mut layout = layout();
        layout.extra.chunk.colored_oops = false;
        (layout.x_good_mask, layout.x_bad_mask) = (8, 16);
        (layout.x_forwarding_table, layout.x_table_map) = (32, 0);
        if is_x {
            layout.x_globals = layout.z_globals;
            layout.x_offset_mask = layout.z_offset_mask;
            layout.x_heap = layout.z_heap;
            layout.x_granule_map = layout.z_granule_map;
            layout.x_forwarding_range = layout.z_forwarding_range;
            layout.x_range_start = layout.z_range_start;
            layout.x_forwarding_shift = layout.z_forwarding_shift;
            layout.x_forwarding_entries = layout.z_forwarding_entries;
            layout.x_entries_length = layout.z_entries_length;
            layout.sizeof_x_forwarding = layout.sizeof_z_forwarding;
            layout.sizeof_z_forwarding = 1 << 20;
        }
        let bad = good ^ 0xf << 42;
        let mut mem = Bytes::at(GLOBALS, &words(&[GLOBALS + 0x100, HEAP]));
        mem.add(GLOBALS + 0x100, &words(&[MASKS, MASKS + 8, MASKS + 16]));
        mem.add(MASKS, &words(&[OFFSET_MASK, good, bad]));
        mem.add(HEAP, &words(&[0, 0, 0, 0, 0, 0, 0, YOUNG_TABLE]));
        mem.add(YOUNG_TABLE, &words(&[0, FORWARDING[0], 0, 0]));
        let mut forwarding = vec![1 << GRANULE_SHIFT, 3, LEN];
        forwarding.extend([0; LEN as usize]);
        for (from, to) in objects {
            let from = (from - (1 << GRANULE_SHIFT)) >> 3;
            let place = 3 + (u64::from(hash(from as u32)) & (LEN - 1)) as usize;
            assert_eq!(forwarding[place], 0, "choose others");
            forwarding[place] = from << FROM_SHIFT | to << TO_SHIFT | USED;
        }
        mem.add(FORWARDING[0], &words(&forwarding));
        layout.extra.moves = Moves::find_single(&mem, &layout).unwrap().unwrap();
        (mem, layout)
    }

    #[test]
    fn single_table_leads_to_the_moved_object() {
        let moved = [(YOUNG_FROM, 0x111_0000)];
        for (good, is_x) in [MARKED[0], MARKED[1], REMAPPED]
            .into_iter()
            .flat_map(|good| [(good, true), (good, false)])
        {
            let (mut mem, layout) = single(good, is_x, &moved);
            let mut next = 0x50_0000;
            let mut led = |reference: u64| {
                next += 8;
                mem.add(next, &words(&[reference]));
                handle(&mem, &layout, next).unwrap()
            };
            // A current reference, whatever other bits it has.
            assert_eq!(led(good | YOUNG_FROM), good | YOUNG_FROM);
            assert_eq!(led(FINALIZABLE | good | YOUNG_FROM), good | YOUNG_FROM);
            // Updated after the last move: another object may be there by now.
            assert_eq!(led(REMAPPED | YOUNG_FROM), good | YOUNG_FROM);
            for old in MARKED.into_iter().filter(|old| *old != good) {
                assert_eq!(led(old | YOUNG_FROM), good | 0x111_0000);
                assert_eq!(led(FINALIZABLE | old | YOUNG_FROM), good | 0x111_0000);
                // Not moved; in a granule that was not evacuated.
                assert_eq!(led(old | (YOUNG_FROM + 8)), good | (YOUNG_FROM + 8));
                assert_eq!(led(old | 0x40), good | 0x40);
            }
            assert_eq!(led(0), 0);
            // A table that cannot be read.
            let old = MARKED.into_iter().find(|old| *old != good).unwrap();
            mem.add(0x70_0000, &words(&[old | 1 << 40]));
            assert!(handle(&mem, &layout, 0x70_0000).is_err());
        }
        // If a value is missing, nothing is known, and references are followed unchanged.
        let (mut mem, mut layout) = single(REMAPPED, true, &moved);
        layout.x_table_map = crate::hotspot::layout::ABSENT;
        assert_eq!(Moves::find_single(&mem, &layout), Ok(None));
        layout.extra.moves = Moves::EMPTY;
        mem.add(0x50_0000, &words(&[MARKED[0] | YOUNG_FROM]));
        assert_eq!(handle(&mem, &layout, 0x50_0000), Ok(MARKED[0] | YOUNG_FROM));
    }

    #[test]
    fn null_of_any_colour_stays_null() {
        // The object at the very beginning of the heap was moved.
        let mut mem = memory(0, [&[], &[]]);
        mem.change(YOUNG_TABLE, 0x45_0000);
        mem.add(0x45_0000, &words(&[0, 3, 1, USED | 0x111_0000 << TO_SHIFT]));
        assert_eq!(led(&mut mem, 0x50_0000, colored(YOUNG, 0, 0)), 0x111_0000);
        assert_eq!(led(&mut mem, 0x50_0008, 1 << (COLOR_SHIFT + YOUNG)), BASE);
    }

    #[test]
    fn full_tables_and_garbage_end() {
        let all: Vec<(u64, u64)> = (0..LEN).map(|i| (YOUNG_FROM + 8 * i, 8 * i)).collect();
        let mut mem = memory(0, [&all, &[]]);
        let missing = YOUNG_FROM + 8 * LEN;
        assert_eq!(
            led(&mut mem, 0x50_0000, colored(YOUNG, missing, 0)),
            missing
        );
        for (i, (from, to)) in all.iter().enumerate() {
            let at = 0x60_0000 + 8 * i as u64;
            assert_eq!(led(&mut mem, at, colored(YOUNG, *from, 0)), *to);
        }
        // A table that cannot be read.
        let far = colored(YOUNG, 1 << 40, 0);
        mem.add(0x70_0000, &words(&[far]));
        let mut layout = layout();
        layout.extra.moves = Moves::find(&mem, &layout).unwrap().unwrap();
        assert!(handle(&mem, &layout, 0x70_0000).is_err());
        // If nothing is known, references are followed unchanged.
        layout.extra.moves = Moves::EMPTY;
        assert_eq!(handle(&mem, &layout, 0x70_0000), Ok(BASE | 1 << 40));
        layout.sizeof_z_heap = crate::hotspot::layout::ABSENT;
        assert_eq!(Moves::find(&mem, &layout), Ok(None));
    }
}

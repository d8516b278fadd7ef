//! The constant pools of a chunk: the place of each constant. Constants are not decoded here, only
//! skipped. An unused one costs a table entry.

use super::cursor::Cursor;
use super::error::Error;
use super::metadata::{Field, Types, Wire};

/// Structures inside structures; the JDK's nest two levels.
pub(crate) const NESTING_MAX: usize = 16;

/// Constants of one type, without hashing: most keys are numbers without gaps, and a binary search
/// finds the others. So a hostile choice of keys costs no time.
#[derive(Default)]
struct Pool {
    /// In ascending order once all are there.
    entries: Vec<(u64, usize)>,
    /// Whether the keys have no gaps.
    is_dense: bool,
}

impl Pool {
    fn finish(&mut self) {
        let is_sorted = (self.entries.iter().zip(self.entries.iter().skip(1)))
            .all(|((before, _), (after, _))| before < after);
        if !is_sorted {
            // Of a key that is there twice, the last one counts.
            self.entries.reverse();
            self.entries.sort_by_key(|(key, _)| *key);
            self.entries.dedup_by_key(|(key, _)| *key);
        }
        if let (Some((first, _)), Some((last, _))) = (self.entries.first(), self.entries.last()) {
            self.is_dense = last - first == self.entries.len() as u64 - 1;
        }
    }

    fn place(&self, key: u64) -> Option<usize> {
        if self.is_dense {
            let (first, _) = self.entries.first()?;
            let place = usize::try_from(key.checked_sub(*first)?).ok()?;
            return (place < self.entries.len()).then_some(place);
        }
        self.entries
            .binary_search_by_key(&key, |(key, _)| *key)
            .ok()
    }
}

/// Constants by the places of their types.
#[derive(Default)]
pub(crate) struct Pools {
    by_class: Vec<Pool>,
}

impl Pools {
    /// The constant's place among those of its type.
    pub(crate) fn place(&self, class: usize, key: u64) -> Option<usize> {
        self.by_class.get(class)?.place(key)
    }

    /// The first key, if keys have no gaps: then places follow from it.
    pub(crate) fn first(&self, class: usize) -> Option<u64> {
        let pool = self.by_class.get(class).filter(|pool| pool.is_dense)?;
        pool.entries.first().map(|(key, _)| *key)
    }

    /// Where the constant stands.
    pub(crate) fn offset(&self, class: usize, key: u64) -> Option<usize> {
        let pool = self.by_class.get(class)?;
        pool.entries
            .get(pool.place(key)?)
            .map(|(_, offset)| *offset)
    }

    /// How many constants of a type there are.
    pub(crate) fn len(&self, class: usize) -> usize {
        self.by_class
            .get(class)
            .map_or(0, |pool| pool.entries.len())
    }

    /// Makes what was added ready to be asked for.
    pub(crate) fn finish(&mut self) {
        self.by_class.iter_mut().for_each(Pool::finish);
    }

    /// Adds the constants of a checkpoint event, whose type the cursor has passed. A new value for
    /// a known key replaces the old one. Constants before an error are kept.
    pub(crate) fn add(&mut self, types: &Types, mut cursor: Cursor<'_>) -> Result<(), Error> {
        cursor.varint()?; // start time
        cursor.varint()?; // duration
        cursor.varint()?; // distance to the checkpoint before
        cursor.byte()?; // kind
        for _ in 0..cursor.count(2)? {
            let id = cursor.varint()?;
            let count = cursor.count(1)?;
            let class = types
                .place(id)
                .ok_or(cursor.malformed("constants of an unknown type before"))?;
            if self.by_class.len() <= class {
                // The metadata bounds it: `class` is less than the number of types.
                self.by_class.resize_with(class + 1, Pool::default);
            }
            let Some(pool) = self.by_class.get_mut(class) else {
                continue;
            };
            for _ in 0..count {
                let key = cursor.varint()?;
                let offset = cursor.offset();
                skip_class(types, class, &mut cursor, 0)?;
                pool.entries.push((key, offset));
            }
        }
        Ok(())
    }
}

/// Passes a value of that type.
fn skip_class(
    types: &Types,
    class: usize,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Result<(), Error> {
    let Some(class) = types.class(class) else {
        return Err(cursor.malformed("a value of an unknown type"));
    };
    if class.known == super::metadata::Known::Text {
        return cursor.skip_text();
    }
    // Without this, arrays of nothing would take time but no bytes.
    if class.fields.is_empty() || depth > NESTING_MAX {
        return Err(cursor.malformed("a value of a type without fields"));
    }
    if let Some(numbers) = class.numbers {
        return cursor.skip_varints(numbers);
    }
    class
        .fields
        .iter()
        .try_for_each(|field| skip_field_at(types, field, cursor, depth))
}

/// Passes the value of a field.
pub(crate) fn skip_field(
    types: &Types,
    field: &Field,
    cursor: &mut Cursor<'_>,
) -> Result<(), Error> {
    skip_field_at(types, field, cursor, 0)
}

fn skip_field_at(
    types: &Types,
    field: &Field,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Result<(), Error> {
    let count = if field.array { cursor.count(1)? } else { 1 };
    if let (Wire::Inline(class), true) = (field.wire, depth < NESTING_MAX) {
        // Frames of stacks: most of all that is passed.
        if let Some(numbers) = types.class(class).and_then(|class| class.numbers) {
            return cursor.skip_varints(count.saturating_mul(numbers));
        }
    }
    for _ in 0..count {
        match field.wire {
            Wire::Bool | Wire::Byte => {
                cursor.byte()?;
            }
            Wire::Char | Wire::Short | Wire::Int | Wire::Long | Wire::Pooled(_) => {
                cursor.varint()?;
            }
            Wire::Float => {
                cursor.take(4)?;
            }
            Wire::Double => {
                cursor.take(8)?;
            }
            Wire::Text => cursor.skip_text()?,
            Wire::Inline(class) => skip_class(types, class, cursor, depth + 1)?,
            Wire::Unknown => return Err(cursor.malformed("a value of an unknown type")),
        }
    }
    Ok(())
}

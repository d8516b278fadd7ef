//! The constant pools of a chunk: where each constant stands. Constants are not decoded here, only
//! skipped; what nothing refers to costs a table entry.

use super::cursor::Cursor;
use super::error::Error;
use super::metadata::{Field, Types, Wire};
use std::collections::HashMap;

/// Structures inside structures; the JDK's nest two levels.
pub(crate) const NESTING_MAX: usize = 16;

/// Offsets of constants by type place and key.
#[derive(Default)]
pub(crate) struct Pools {
    offsets: HashMap<usize, HashMap<u64, usize>>,
}

impl Pools {
    /// Where the constant stands.
    pub(crate) fn offset(&self, class: usize, key: u64) -> Option<usize> {
        self.offsets.get(&class)?.get(&key).copied()
    }

    /// Adds the constants of a checkpoint event, whose type the cursor has passed. A key that was
    /// known gets its new value. What stands before an error is kept.
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
            let pool = self.offsets.entry(class).or_default();
            for _ in 0..count {
                let key = cursor.varint()?;
                let offset = cursor.offset();
                skip_class(types, class, &mut cursor, 0)?;
                pool.insert(key, offset);
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

//! Decodes events that are not samples, field by field as the metadata says. Constants that are
//! structures are decoded once and shared, so a file cannot make much of little.

use super::cursor::Cursor;
use super::error::Error;
use super::metadata::{Class, Field, Known, Unit, Wire};
use super::model::{GenericEvent, Value};
use super::resolve::Resolver;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum depth of structures inside structures, also through constants. Deeper ones are left out.
const DEPTH_MAX: usize = 16;

/// Decoded constants of one chunk, by type and key.
#[derive(Default)]
pub(crate) struct Values {
    /// With how many structures lie inside each other in them.
    constants: HashMap<(usize, u64), (Value, usize)>,
    /// The same of what is being decoded, as far as it is known.
    height: usize,
}

impl Values {
    /// The event at the cursor, which has passed the type.
    pub(crate) fn event<'a>(
        &mut self,
        resolver: &mut Resolver<'a>,
        class: &'a Class,
        mut cursor: Cursor<'a>,
    ) -> Result<GenericEvent, Error> {
        let mut time_ns = resolver.info.start_ns;
        let mut fields = Vec::with_capacity(class.fields.len());
        for field in &class.fields {
            let value = self.field(resolver, field, &mut cursor, 0)?;
            if let ("startTime", &Value::TimeNs(time)) = (&*field.name, &value) {
                time_ns = time;
            }
            fields.push((Arc::clone(&field.name), value));
        }
        Ok(GenericEvent {
            name: Arc::clone(&class.name),
            time_ns,
            fields,
        })
    }

    fn field<'a>(
        &mut self,
        resolver: &mut Resolver<'a>,
        field: &'a Field,
        cursor: &mut Cursor<'a>,
        depth: usize,
    ) -> Result<Value, Error> {
        if !field.array {
            return self.scalar(resolver, field, cursor, depth);
        }
        let mut values = Vec::new();
        for _ in 0..cursor.count(1)? {
            values.push(self.scalar(resolver, field, cursor, depth)?);
        }
        Ok(Value::Array(values))
    }

    fn scalar<'a>(
        &mut self,
        resolver: &mut Resolver<'a>,
        field: &'a Field,
        cursor: &mut Cursor<'a>,
        depth: usize,
    ) -> Result<Value, Error> {
        let unsigned = field.unit == Unit::Unsigned;
        let number = match field.wire {
            Wire::Bool => return Ok(Value::Bool(cursor.byte()? != 0)),
            Wire::Float => return Ok(Value::Float(f32::from_be_bytes(cursor.array()?).into())),
            Wire::Double => return Ok(Value::Float(f64::from_be_bytes(cursor.array()?))),
            Wire::Text => {
                return Ok(resolver
                    .read_string(cursor)?
                    .map_or(Value::Null, Value::Text));
            }
            Wire::Pooled(class) => {
                let key = cursor.varint()?;
                return Ok(self.constant(resolver, class, key, depth));
            }
            Wire::Inline(class) => return self.inline(resolver, class, cursor, depth + 1),
            Wire::Unknown => return Err(cursor.malformed("a value of an unknown type")),
            Wire::Byte if unsigned => i64::from(cursor.byte()?),
            Wire::Byte => i64::from(cursor.byte()?.cast_signed()),
            Wire::Char => i64::from(cursor.varint()? as u16),
            Wire::Short if unsigned => i64::from(cursor.varint()? as u16),
            Wire::Short => i64::from(cursor.varint()? as i16),
            Wire::Int if unsigned => i64::from(cursor.varint()? as u32),
            Wire::Int => i64::from(cursor.varint()? as i32),
            Wire::Long => cursor.varint()?.cast_signed(),
        };
        Ok(with_unit(resolver, field.unit, number))
    }

    /// A structure in place.
    fn inline<'a>(
        &mut self,
        resolver: &mut Resolver<'a>,
        class: usize,
        cursor: &mut Cursor<'a>,
        depth: usize,
    ) -> Result<Value, Error> {
        let class = resolver
            .types
            .class(class)
            .filter(|class| !class.fields.is_empty());
        let Some(class) = class.filter(|_| depth <= DEPTH_MAX) else {
            return Err(cursor.malformed("a value of a type without fields"));
        };
        // An array stays in a structure, which all that refer to it share.
        if let (Known::Simple, [only]) = (class.known, class.fields.as_slice())
            && !only.array
        {
            return self.field(resolver, only, cursor, depth);
        }
        let outer = std::mem::take(&mut self.height);
        let mut fields = Vec::with_capacity(class.fields.len());
        for field in &class.fields {
            let value = self.field(resolver, field, cursor, depth)?;
            fields.push((Arc::clone(&field.name), value));
        }
        self.height = outer.max(self.height + 1);
        Ok(Value::Struct(fields.into()))
    }

    /// The constant of a key. References in a circle end in null.
    fn constant(
        &mut self,
        resolver: &mut Resolver<'_>,
        class: usize,
        key: u64,
        depth: usize,
    ) -> Value {
        if !resolver.has(class, key) {
            resolver.missing += u64::from(key != 0);
            return Value::Null;
        }
        match resolver.types.class(class).map(|class| class.known) {
            Some(Known::Thread) => return Value::Thread(resolver.thread(class, key)),
            Some(Known::Stack) => return Value::Stack(resolver.stack(class, key)),
            Some(Known::Method) => return Value::Method(resolver.method(class, key)),
            Some(Known::Class) => {
                return resolver
                    .class_name(class, key)
                    .map_or(Value::Null, Value::Text);
            }
            Some(Known::Text) => return resolver.text(class, key).map_or(Value::Null, Value::Text),
            Some(Known::Simple | Known::Other) | None => {}
        }
        if let Some((value, height)) = self.constants.get(&(class, key)) {
            self.height = self.height.max(*height);
            return value.clone();
        }
        self.constants.insert((class, key), (Value::Null, 0));
        let outer = std::mem::take(&mut self.height);
        let offset = resolver.pools.offset(class, key);
        let value = match offset {
            Some(offset) if depth < DEPTH_MAX => {
                let mut cursor = Cursor::new(resolver.file, offset, resolver.info.end());
                self.inline(resolver, class, &mut cursor, depth + 1)
                    .unwrap_or(Value::Null)
            }
            _ => Value::Null,
        };
        // One that was decoded before may have any number of others inside each other.
        let (value, height) = match self.height {
            height if height <= DEPTH_MAX => (value, height),
            _ => (Value::Null, 0),
        };
        self.constants.insert((class, key), (value.clone(), height));
        self.height = outer.max(height);
        value
    }
}

fn with_unit(resolver: &Resolver<'_>, unit: Unit, number: i64) -> Value {
    // The least and the greatest number stand for "unknown" and "forever" in any unit.
    let endless = number == i64::MIN || number == i64::MAX;
    match unit {
        Unit::None | Unit::Unsigned => Value::Int(number),
        Unit::SpanTicks | Unit::Span(_) if endless => Value::DurationNs(number),
        Unit::SpanTicks => Value::DurationNs(resolver.info.span_ns(number)),
        Unit::Span(nanos) => Value::DurationNs(number.saturating_mul(nanos)),
        Unit::TimeTicks => Value::TimeNs(resolver.info.time_ns(number.cast_unsigned())),
        Unit::Time(nanos) => {
            Value::TimeNs(u64::try_from(number.saturating_mul(nanos)).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::constant_pools::Pools;
    use super::super::header::ChunkInfo;
    use super::super::metadata::Types;
    use super::super::tables::Tables;
    use super::*;
    use crate::writer::{ChunkClock, ChunkWriter};

    /// The value of a field in some bytes, with a chunk's clock of three ticks a second that was at
    /// 100 ticks at 5 s.
    fn read(wire: Wire, unit: Unit, array: bool, bytes: &[u8]) -> Result<Value, Error> {
        let clock = ChunkClock {
            epoch_ns: 5_000_000_000,
            start_ticks: 100,
            ticks_per_second: 3,
        };
        let file = ChunkWriter::new(clock).flush(100);
        let info = ChunkInfo::read(&file, 0)?;
        let mut metadata = Cursor::new(&file, info.metadata, info.end());
        metadata.varint()?;
        metadata.varint()?;
        let types = Types::read(metadata)?;
        let (pools, mut tables) = (Pools::default(), Tables::default());
        let mut resolver = Resolver::new(&file, &info, &types, &pools, &mut tables);
        let name = "field".into();
        let field = Field {
            name,
            wire,
            array,
            unit,
        };
        let mut cursor = Cursor::new(bytes, 0, bytes.len());
        let value = Values::default().field(&mut resolver, &field, &mut cursor, 0)?;
        assert_eq!(cursor.remaining(), 0, "{wire:?}");
        Ok(value)
    }

    #[test]
    fn numbers_have_signs_unless_they_are_said_to_have_none() {
        let (short, int) = ([0xfe, 0xff, 3], [0xfe, 0xff, 0xff, 0xff, 0xf]);
        for (wire, bytes, signed, unsigned) in [
            (Wire::Byte, &[0xfe][..], -2, 0xfe),
            (Wire::Short, &short[..], -2, 0xfffe),
            (Wire::Char, &short[..], 0xfffe, 0xfffe),
            (Wire::Int, &int[..], -2, 0xffff_fffe),
            (Wire::Long, &int[..], 0xffff_fffe, 0xffff_fffe),
        ] {
            let of = |unit| read(wire, unit, false, bytes);
            assert_eq!(of(Unit::None), Ok(Value::Int(signed)), "{wire:?}");
            assert_eq!(of(Unit::Unsigned), Ok(Value::Int(unsigned)), "{wire:?}");
        }
    }

    #[test]
    fn other_values_are_read_as_their_types_say() {
        let plain = |wire, bytes: &[u8]| read(wire, Unit::None, false, bytes);
        assert_eq!(plain(Wire::Bool, &[0]), Ok(Value::Bool(false)));
        assert_eq!(plain(Wire::Bool, &[1]), Ok(Value::Bool(true)));
        assert_eq!(
            plain(Wire::Float, &[0x3f, 0xc0, 0, 0]),
            Ok(Value::Float(1.5))
        );
        let double = [0xbf, 0xf8, 0, 0, 0, 0, 0, 0];
        assert_eq!(plain(Wire::Double, &double), Ok(Value::Float(-1.5)));
        assert_eq!(plain(Wire::Text, &[0]), Ok(Value::Null));
        assert_eq!(
            plain(Wire::Text, &[3, 2, b'a', b'b']),
            Ok(Value::Text("ab".into()))
        );
        assert!(plain(Wire::Unknown, &[0]).is_err());
        let array = read(Wire::Byte, Unit::None, true, &[2, 7, 8]);
        assert_eq!(array, Ok(Value::Array(vec![Value::Int(7), Value::Int(8)])));
        // A reference to nothing, and to something that is not there.
        assert_eq!(plain(Wire::Pooled(0), &[0]), Ok(Value::Null));
        assert_eq!(plain(Wire::Pooled(0), &[9]), Ok(Value::Null));
    }

    #[test]
    fn units_make_times_and_durations() {
        let long = |unit, bytes: &[u8]| read(Wire::Long, unit, false, bytes);
        let second = 1_000_000_000;
        assert_eq!(
            long(Unit::SpanTicks, &[6]),
            Ok(Value::DurationNs(2 * second))
        );
        assert_eq!(long(Unit::Span(1000), &[6]), Ok(Value::DurationNs(6000)));
        assert_eq!(
            long(Unit::TimeTicks, &[103]),
            Ok(Value::TimeNs(6_000_000_000))
        );
        assert_eq!(
            long(Unit::Time(1_000_000), &[6]),
            Ok(Value::TimeNs(6_000_000))
        );
        // Not known, and for ever, in any unit.
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        let least = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80];
        for unit in [Unit::SpanTicks, Unit::Span(1000)] {
            assert_eq!(long(unit, &most), Ok(Value::DurationNs(i64::MAX)));
            assert_eq!(long(unit, &least), Ok(Value::DurationNs(i64::MIN)));
        }
    }
}

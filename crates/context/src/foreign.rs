//! Contexts that other libraries publish for their threads: thread context records by
//! OpenTelemetry's OTEP 4947. A library exports a thread-local variable, `otel_thread_ctx_v1`, that
//! is null or points to a record of the thread.
//!
//! This module computes addresses and parses bytes; the caller reads the memory. A thread writes
//! its own record without synchronising with other processors. A reader must have interrupted that
//! thread, or make sure that it has not run during the read. No function here allocates or panics.

use crate::Context;

/// The variable's name.
pub const SYMBOL: &str = "otel_thread_ctx_v1";
/// Bytes to read of a record: trace id, span id and the byte of validity.
pub const BYTES: usize = 25;
/// The byte of validity in a valid record.
const VALID: u8 = 1;

/// The location of one library's variable in each thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// In the static block that each thread has from its start, at this distance below the thread
    /// pointer.
    Fixed {
        /// Bytes.
        below: u32,
    },
    /// In a dynamic block of the library, which a thread gets on first use.
    Own {
        /// The loader's number of the library (module id).
        module: u32,
        /// Bytes from the block's beginning.
        offset: u32,
    },
}

const FIXED: u64 = 1 << 63;
const OWN: u64 = 1 << 62;
/// Bits of the number of a library.
const MODULE_BITS: u32 = 30;

/// Offset from the thread pointer to the vector of the thread's blocks (glibc, `tcbhead_t.dtv`).
const VECTOR_AT: u64 = 8;
/// Bytes of an entry there. The entry before the first one holds the number of entries.
const ENTRY: u64 = 16;

impl Variable {
    /// Packs the location into one word, so that a handler never sees half of an update; never 0.
    /// `None` if the library's number does not fit.
    #[must_use]
    pub fn to_bits(self) -> Option<u64> {
        match self {
            Variable::Fixed { below } => Some(FIXED | u64::from(below)),
            Variable::Own { module, offset } if module > 0 && module >> MODULE_BITS == 0 => {
                Some(OWN | u64::from(module) << 32 | u64::from(offset))
            }
            Variable::Own { .. } => None,
        }
    }

    /// The inverse of [`Variable::to_bits`]; `None` for 0.
    #[inline]
    #[must_use]
    pub fn from_bits(bits: u64) -> Option<Variable> {
        let low = bits as u32;
        if bits & FIXED != 0 {
            Some(Variable::Fixed { below: low })
        } else if bits & OWN != 0 {
            let module = ((bits & !OWN) >> 32) as u32;
            Some(Variable::Own {
                module,
                offset: low,
            })
        } else {
            None
        }
    }

    /// Address of the variable in the thread with this thread pointer; `None` if the thread does
    /// not have it yet. `word` reads memory.
    #[inline]
    pub fn address(self, pointer: u64, word: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        match self {
            Variable::Fixed { below } => Some(pointer.wrapping_sub(u64::from(below))),
            Variable::Own { module, offset } => {
                let vector = word(pointer.wrapping_add(VECTOR_AT))?;
                let module = u64::from(module);
                if module > word(vector.wrapping_sub(ENTRY))? {
                    return None;
                }
                let block = word(vector.wrapping_add(module.wrapping_mul(ENTRY)))?;
                // All ones: this thread has no such block yet (`TLS_DTV_UNALLOCATED`).
                if block == 0 || block == u64::MAX {
                    return None;
                }
                Some(block.wrapping_add(u64::from(offset)))
            }
        }
    }
}

/// The context in a record, from its first three words (as they are in memory) and its byte of
/// validity; `None` if the record has no context.
#[inline]
#[must_use]
pub fn context(words: [u64; 3], valid: u8) -> Option<Context> {
    // Ids are byte strings: the first byte is the most significant.
    let [trace_hi, trace_lo, span] = words.map(u64::from_be);
    if valid != VALID || trace_hi | trace_lo == 0 || span == 0 {
        return None;
    }
    Some(Context {
        trace_hi,
        trace_lo,
        span,
        active: 1,
        ..Context::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    const POINTER: u64 = 0x7000;
    const VECTOR: u64 = 0x100;

    fn found(variable: Variable, memory: &[(u64, u64)]) -> Option<u64> {
        let memory: BTreeMap<u64, u64> = memory.iter().copied().collect();
        variable.address(POINTER, |addr| memory.get(&addr).copied())
    }

    #[test]
    fn a_fixed_variable_needs_no_reading() {
        let variable = Variable::Fixed { below: 0x18 };
        assert_eq!(found(variable, &[]), Some(POINTER - 0x18));
    }

    #[test]
    fn block_found_by_library_number_once_present() {
        let variable = |module| Variable::Own { module, offset: 8 };
        let memory = [
            (POINTER + 8, VECTOR),
            (VECTOR - 16, 3),
            (VECTOR + 16, 0x5000),
            (VECTOR + 32, u64::MAX),
            (VECTOR + 48, 0),
            (VECTOR + 64, 0x6000),
        ];
        assert_eq!(found(variable(1), &memory), Some(0x5008));
        assert_eq!(found(variable(2), &memory), None, "not made yet");
        assert_eq!(found(variable(3), &memory), None, "given back");
        assert_eq!(found(variable(4), &memory), None, "the vector is shorter");
        assert_eq!(found(variable(1), &memory[1..]), None, "it cannot be read");
    }

    #[test]
    fn places_come_back_from_their_bits() {
        let places = [
            Variable::Fixed { below: 0 },
            Variable::Fixed { below: u32::MAX },
            Variable::Own {
                module: 1,
                offset: u32::MAX,
            },
            Variable::Own {
                module: (1 << MODULE_BITS) - 1,
                offset: 0,
            },
        ];
        for place in places {
            assert_eq!(Variable::from_bits(place.to_bits().unwrap()), Some(place));
        }
        assert_eq!(Variable::from_bits(0), None);
        for module in [0, 1 << MODULE_BITS] {
            assert_eq!(Variable::Own { module, offset: 0 }.to_bits(), None);
        }
    }

    #[test]
    fn only_valid_records_with_both_ids_count() {
        let bytes: Vec<u8> = (1..=24).collect();
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        let words = [word(0), word(8), word(16)];
        let expected = Context {
            trace_hi: 0x0102_0304_0506_0708,
            trace_lo: 0x090a_0b0c_0d0e_0f10,
            span: 0x1112_1314_1516_1718,
            active: 1,
            ..Context::default()
        };
        assert_eq!(context(words, 1), Some(expected));
        for invalid in [0, 2, 255] {
            assert_eq!(context(words, invalid), None);
        }
        assert_eq!(context([0, 0, word(16)], 1), None);
        assert_eq!(context([word(0), word(8), 0], 1), None);
        assert_eq!(
            context([0, word(8), word(16)], 1).map(|c| c.trace_hi),
            Some(0)
        );
    }
}

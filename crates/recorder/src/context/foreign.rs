//! Contexts that other libraries publish (OTEP 4947): the libraries that do, and the contexts they
//! publish for a thread. They count where no scope of dwell's API is active.
//!
//! [`here`] runs in the signal handler: it reads memory through fault-tolerant loads only. A record
//! belongs to the platform thread. A logical thread leaves it there when it is unmounted. So it is
//! not read while another logical thread than the platform's own runs.

use crate::native::modules::Modules;
use crate::sys::loader;
use dwell_context::Context;
use dwell_context::foreign::{self, Variable};
use dwell_signal::Live;
use dwell_walker::{Fault, Memory};
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of libraries that are read.
const VARIABLES_MAX: usize = 4;
/// Where glibc keeps a copy of the thread pointer (`tcbhead_t.self`).
const SELF_AT: u64 = 16;

/// The variables, as bits; 0: a free place. The used ones come first.
static VARIABLES: [AtomicU64; VARIABLES_MAX] = [const { AtomicU64::new(0) }; VARIABLES_MAX];

/// Finds the libraries that publish contexts. To be called when libraries were loaded or unloaded.
pub fn find(modules: &Modules) {
    // Where thread-local variables are is only known for x86-64.
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let exports = modules.thread_contexts();
    let libraries = match exports.is_empty() {
        true => Vec::new(),
        false => loader::loaded_with_blocks(),
    };
    let mut found = exports.iter().filter_map(|(base, offset)| {
        let mut libraries = libraries.iter();
        let block = libraries.find(|it| it.base == *base)?.block;
        place(&block, *offset)?.to_bits()
    });
    for variable in &VARIABLES {
        variable.store(found.next().unwrap_or(0), Ordering::Release);
    }
}

/// The place of a variable at `offset` bytes from the beginning of such blocks.
fn place(block: &loader::Block, offset: u64) -> Option<Variable> {
    Some(match block.below {
        Some(below) => Variable::Fixed {
            below: u32::try_from(below.checked_sub(offset)?).ok()?,
        },
        None => Variable::Own {
            module: u32::try_from(block.module).ok()?,
            offset: u32::try_from(offset).ok()?,
        },
    })
}

/// Whether there are such libraries.
#[must_use]
pub fn is_known() -> bool {
    VARIABLES[0].load(Ordering::Acquire) != 0
}

/// The context published on the thread with this thread pointer, which must stand still.
#[inline]
pub fn here(live: &Live, pointer: u64) -> Option<Context> {
    for variable in &VARIABLES {
        let variable = Variable::from_bits(variable.load(Ordering::Acquire))?;
        if let Some(context) = read(live, variable, pointer) {
            return Some(context);
        }
    }
    None
}

// Not part of the loop: there the function would be called through a register, which the check of
// handlers cannot follow.
#[inline(never)]
fn read(live: &Live, variable: Variable, pointer: u64) -> Option<Context> {
    let word = |addr: u64| live.word(addr).ok();
    let record = variable
        .address(pointer, word)
        .and_then(word)
        .filter(|record| *record != 0)?;
    let valid = live.u8(record.wrapping_add(24)).ok()?;
    let words = [
        word(record)?,
        word(record.wrapping_add(8))?,
        word(record.wrapping_add(16))?,
    ];
    foreign::context(words, valid)
}

/// The context published on a waiting thread, by its thread pointer. The caller makes sure that
/// the thread has not run in between.
///
/// # Errors
/// [`Fault`] if that cannot be read.
pub fn of_waiting(live: &Live, pointer: u64) -> Result<Option<Context>, Fault> {
    // A value that is no thread pointer is not followed.
    if pointer == 0 || live.word(pointer.wrapping_add(SELF_AT))? != pointer {
        return Ok(None);
    }
    Ok(here(live, pointer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_outside_its_block_has_no_place() {
        let block = |below| loader::Block { module: 3, below };
        let fixed = Variable::Fixed { below: 8 };
        assert_eq!(place(&block(Some(24)), 16), Some(fixed));
        assert_eq!(place(&block(Some(24)), 25), None);
        let own = Variable::Own {
            module: 3,
            offset: 16,
        };
        assert_eq!(place(&block(None), 16), Some(own));
        assert_eq!(place(&block(None), u64::MAX), None);
    }
}

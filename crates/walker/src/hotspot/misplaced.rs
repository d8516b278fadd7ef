//! Debug information that C2 has attached to the wrong instructions, and the scope to report
//! instead.
//!
//! C2 notes a line for each node of its graph. A node without a line of its own (spilled registers,
//! loop counters, addresses) takes the line that was parsed last. When calls are inlined late, as
//! those of `Integer.valueOf` are, that line becomes the line of all nodes made later
//! (opto/callGenerator.cpp, `LateInlineCallGenerator`; opto/compile.cpp, `default_node_notes`).
//! Then a quarter to half of all places in such code claim to be at one call, although they belong
//! to loops of other inlined methods. (8 and 11 do not do this.)
//!
//! Three signs identify such a line. It is at a call, but not at the call's return. A quarter of
//! the places around have it. The places before and after it are not of its method. Then these two
//! places determine the scope of the instruction: the innermost call of a method that both are in.
//!
//! Safepoint polls have a similar error. All polls of loops may load their address with the line of
//! the first poll. The instructions before it that have no line, such as the end of the loop, then
//! get that line too. But an instruction right before a poll is of the same method as the poll.

use super::layout::Layout;
use super::method;
use super::nmethod::Nmethod;
use crate::hotspot::machine::Machine;
use crate::memory::{Fault, Memory};

/// Depth of inlining up to which places are compared.
const DEPTH_MAX: usize = 32;
/// Number of places on each side that are compared.
const AROUND: u64 = 256;
/// A line is on the wrong instructions if at least this number of places have it, ...
const SAME_MIN: u64 = 8;
/// ... and at least one in this number.
const SAME_PART: u64 = 4;
/// Maximum distance of the next place with another line.
const STEPS_MAX: u64 = 8;
/// Maximum length of the instruction that loads the address of a poll.
const LOAD_BYTES_MAX: i64 = 8;
/// `invokevirtual` to `invokedynamic` (JVM specification, 6.5).
const CALLS: core::ops::RangeInclusive<u8> = 0xb6..=0xba;

/// The methods inlined at a place, outermost first: offset of the scope, method, bci.
struct Chain {
    scopes: [(u32, u64, i32); DEPTH_MAX],
    len: usize,
}

impl Chain {
    const fn new() -> Chain {
        Chain {
            scopes: [(0, 0, 0); DEPTH_MAX],
            len: 0,
        }
    }

    /// Reads the scopes that lead to the one at `offset`. Returns whether all of them fit.
    fn read<M: Memory>(
        &mut self,
        nm: &Nmethod,
        mem: &M,
        layout: &Layout,
        offset: u32,
    ) -> Result<bool, Fault> {
        self.len = 0;
        let mut at = offset;
        loop {
            let scope = nm.scope(mem, layout, at)?;
            let Some(slot) = self.scopes.get_mut(self.len) else {
                return Ok(false);
            };
            *slot = (at, scope.method, scope.bci);
            self.len += 1;
            if scope.sender == 0 || scope.sender >= at {
                break;
            }
            at = scope.sender;
        }
        if let Some(used) = self.scopes.get_mut(..self.len) {
            used.reverse();
        }
        Ok(true)
    }

    fn scopes(&self) -> &[(u32, u64, i32)] {
        self.scopes.get(..self.len).unwrap_or(&[])
    }

    /// The number of methods, from the outermost, that both have in common: the same methods,
    /// inlined at the same calls.
    fn shared(&self, other: &Chain) -> usize {
        let mut shared = 0;
        for (a, b) in self.scopes().iter().zip(other.scopes()) {
            if a.1 != b.1 {
                break;
            }
            shared += 1;
            if a.2 != b.2 {
                break;
            }
        }
        shared
    }
}

/// The scope of an interrupted instruction. Its place in the table of `nm` is `index`, with the
/// scope `told`. Returns that scope, or a better one. Reads at most 600 words, and the scopes.
///
/// # Errors
/// [`Fault`] if the tables cannot be read.
pub fn put_right<M: Memory>(
    machine: impl Machine,
    nm: &Nmethod,
    mem: &M,
    layout: &Layout,
    (index, told): (u64, u32),
) -> Result<u32, Fault> {
    let [own, before, behind] = &mut [const { Chain::new() }; 3];
    if !own.read(nm, mem, layout, told)? {
        return Ok(told);
    }
    if let Some(scope) = poll_behind(machine, nm, mem, layout, index)?
        && behind.read(nm, mem, layout, scope)?
        && own.shared(behind) < behind.len
    {
        return Ok(scope);
    }
    let pc = nm.code_at(nm.pc_offset(mem, layout, index)?);
    if !is_call(mem, layout, own)? || machine.follows_call(mem, pc) == Ok(true) {
        return Ok(told);
    }
    let (mut first, mut next) = (None, None);
    for step in 1..=STEPS_MAX {
        if first.is_none() {
            first = other(machine, nm, mem, layout, index.checked_sub(step), told)?;
        }
        if next.is_none() {
            next = other(
                machine,
                nm,
                mem,
                layout,
                nm.place(index.wrapping_add(step)),
                told,
            )?;
        }
    }
    let (Some(first), Some(next)) = (first, next) else {
        return Ok(told);
    };
    if !before.read(nm, mem, layout, first)? || !behind.read(nm, mem, layout, next)? {
        return Ok(told);
    }
    let is_inside = own.shared(before) == own.len || own.shared(behind) == own.len;
    if is_inside || !is_everywhere(nm, mem, layout, index, told)? {
        return Ok(told);
    }
    let shared = before.shared(behind);
    let innermost = before.scopes().get(shared.saturating_sub(1));
    Ok(innermost.map_or(told, |(offset, ..)| *offset))
}

fn is_call<M: Memory>(mem: &M, layout: &Layout, chain: &Chain) -> Result<bool, Fault> {
    let Some((_, method, bci)) = chain.scopes().last() else {
        return Ok(false);
    };
    let Ok(bci) = u64::try_from(*bci) else {
        return Ok(false);
    };
    let code = method::code(mem, layout, *method)?;
    let byte = mem.u8(code.begin.wrapping_add(bci))?;
    Ok(CALLS.contains(&byte))
}

/// The scope of the place `at`, if it has another one than `told`.
fn other<M: Memory>(
    machine: impl Machine,
    nm: &Nmethod,
    mem: &M,
    layout: &Layout,
    at: Option<u64>,
    told: u32,
) -> Result<Option<u32>, Fault> {
    let Some(at) = at else {
        return Ok(None);
    };
    let scope = match poll_behind(machine, nm, mem, layout, at)? {
        Some(poll) => poll,
        None => nm.scope_at(mem, layout, at)?,
    };
    Ok((scope != 0 && scope != told).then_some(scope))
}

/// The scope of the safepoint poll that is the next instruction after a place, if it is one.
fn poll_behind<M: Memory>(
    machine: impl Machine,
    nm: &Nmethod,
    mem: &M,
    layout: &Layout,
    index: u64,
) -> Result<Option<u32>, Fault> {
    let Some(next) = nm.place(index.wrapping_add(1)) else {
        return Ok(None);
    };
    let (here, there) = (
        nm.pc_offset(mem, layout, index)?,
        nm.pc_offset(mem, layout, next)?,
    );
    if !(1..=LOAD_BYTES_MAX).contains(&(there - here)) {
        return Ok(None);
    }
    match machine.is_loop_poll(mem, nm.code_at(there)) == Ok(true) {
        true => nm
            .scope_at(mem, layout, next)
            .map(|scope| (scope != 0).then_some(scope)),
        false => Ok(None),
    }
}

fn is_everywhere<M: Memory>(
    nm: &Nmethod,
    mem: &M,
    layout: &Layout,
    index: u64,
    told: u32,
) -> Result<bool, Fault> {
    let (mut same, mut all) = (0u64, 0u64);
    let mut at = index.saturating_sub(AROUND);
    while let Some(place) = nm.place(at)
        && at <= index.wrapping_add(AROUND)
    {
        let scope = nm.scope_at(mem, layout, place)?;
        all += u64::from(scope != 0);
        same += u64::from(scope == told);
        at = at.wrapping_add(1);
    }
    Ok(same >= SAME_MIN && same.wrapping_mul(SAME_PART) >= all)
}

#[cfg(test)]
mod tests;

//! Operations of the VM (src/hotspot/share/runtime/vmOperations.hpp; 8: runtime/vm_operations.hpp):
//! the thread that requested one, the time, and the kind. Up to 13 the JVM records this nowhere
//! else.
//!
//! An operation begins with the table of its class and the requesting thread. In those versions the
//! priority, the time of the request, and the neighbours in the queue follow. Most operations are
//! on the stack of the requesting thread, which waits. If libjvm has no symbols, they are searched
//! there.

use crate::hotspot::machine::Machine;
use crate::memory::Memory;

const THREAD: u64 = 8;
const ASKED: u64 = 24;
const NEXT: u64 = 32;
const PREVIOUS: u64 = 40;
const BYTES: u64 = 48;
/// Places in a class's table: the function that does the operation, and the one that returns its
/// type. 8 has a function that returns 0 before the type.
const DOES: u64 = 2;
const TYPE: u64 = 5;
/// Maximum distance between the last Java frame and the wait for the operation.
const STACK_BYTES_MAX: u64 = 64 << 10;
/// Maximum number of candidates checked in detail.
const FOUND_MAX: usize = 16;

/// A requested operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The `Thread*` that requested it.
    pub thread: u64,
    /// Time of the request, in ms since the epoch.
    pub asked_ms: u64,
    /// Whether it waits in the queue.
    pub is_queued: bool,
    /// `VM_Operation::VMOp_Type`, if its class shows it.
    pub kind: Option<u32>,
}

/// The operation at an address, in a JVM up to 13; `None` if there is no operation. `is_code` says
/// whether an address is in libjvm's code.
#[must_use]
pub fn at<M: Memory>(
    machine: impl Machine,
    mem: &M,
    address: u64,
    is_code: &dyn Fn(u64) -> bool,
) -> Option<Operation> {
    let word = |offset: u64| mem.word(address.wrapping_add(offset)).ok();
    let table = word(0)?;
    let function = |place: u64| -> Option<u64> {
        let found = mem.word(table.wrapping_add(place * 8)).ok()?;
        is_code(found).then_some(found)
    };
    function(DOES)?;
    let kind = match machine.constant(mem, function(TYPE)?).ok()? {
        Some(0) => machine.constant(mem, function(TYPE + 1)?).ok()?,
        other => other,
    };
    // An operation that was removed from the queue still points to its old place.
    let next = word(NEXT)?;
    let before_next = mem.word(next.wrapping_add(PREVIOUS));
    Some(Operation {
        thread: word(THREAD)?,
        asked_ms: word(ASKED)?,
        is_queued: next != 0 && before_next == Ok(address),
        kind,
    })
}

/// The operation that `thread` waits for. It is on the thread's stack between `low`, the stack
/// pointer, and `high`, the last Java frame.
#[must_use]
pub fn on_stack<M: Memory>(
    machine: impl Machine,
    mem: &M,
    thread: u64,
    (low, high): (u64, u64),
    is_code: &dyn Fn(u64) -> bool,
) -> Option<Operation> {
    let low = low & !7;
    let end = high.min(low.saturating_add(STACK_BYTES_MAX));
    let words = |from: u64, to: u64| (from..to).step_by(8);
    let last = end.checked_sub(BYTES)?;
    let of_thread = |address: &u64| mem.word(address.wrapping_add(THREAD)) == Ok(thread);
    let found = words(low, last.saturating_add(1)).filter(of_thread);
    let found = found.filter_map(|address| Some((address, at(machine, mem, address, is_code)?)));
    // A thread that waits for the operation has a pointer to it.
    let is_held = |address: u64| words(low, address).any(|at| mem.word(at) == Ok(address));
    let mut found = found.take(FOUND_MAX);
    let (_, operation) = found.find(|(address, _)| is_held(*address))?;
    Some(operation)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::hotspot::machine::X86_64;
    use crate::hotspot::test_memory::Bytes;
    use std::vec::Vec;

    const TABLE: u64 = 0x9000;
    const CODE: u64 = 0x8000;
    const JAVA: u64 = 0x7770;
    const QUEUE: u64 = 0x6000;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn is_code(at: u64) -> bool {
        (CODE..CODE + 0x100).contains(&at)
    }

    /// A class whose functions from the type's place on have the code in `slots`, and a queue whose
    /// last operation is `last`.
    fn memory(slots: [&[u8]; 2], last: u64) -> Bytes {
        let mut memory = Bytes::default();
        let table: Vec<u64> = (0..8)
            .map(|place| match place {
                5 => CODE,
                6 => CODE + 0x20,
                _ => CODE + 0x40,
            })
            .collect();
        memory.add(TABLE, &words(&table));
        let mut code = std::vec![0xcc; 0x60];
        for (at, bytes) in [0, 0x20].into_iter().zip(slots) {
            code[at..at + bytes.len()].copy_from_slice(bytes);
        }
        memory.add(CODE, &code);
        memory.add(QUEUE, &words(&[0, 0, 0, 0, QUEUE, last]));
        memory
    }

    const ZERO: &[u8] = &[0x55, 0x31, 0xc0, 0x48, 0x89, 0xe5, 0x5d, 0xc3];
    const EIGHTEEN: &[u8] = &[0x55, 0xb8, 18, 0, 0, 0, 0x48, 0x89, 0xe5, 0x5d, 0xc3];

    #[test]
    fn operation_found_on_stack_of_waiting_thread() {
        let mut memory = memory([ZERO, EIGHTEEN], QUEUE);
        // Another object of the thread; a pointer to the operation; the operation.
        let stack = [
            TABLE + 1,
            JAVA,
            0x5028,
            3,
            4,
            TABLE,
            JAVA,
            5,
            1234,
            QUEUE,
            QUEUE,
            7,
        ];
        memory.add(0x5000, &words(&stack));
        let expected = Operation {
            thread: JAVA,
            asked_ms: 1234,
            is_queued: false,
            kind: Some(18),
        };
        let find = |thread, low, high| on_stack(X86_64, &memory, thread, (low, high), &is_code);
        assert_eq!(find(JAVA, 0x5000, 0x5060), Some(expected));
        assert_eq!(find(JAVA, 0x5000, 0x5058), Some(expected));
        assert_eq!(find(JAVA, 0x5000, 0x5050), None, "a part of it");
        assert_eq!(find(JAVA, 0x5018, 0x5060), None, "no thread waits for it");
        assert_eq!(find(JAVA + 8, 0x5000, 0x5060), None);
        for (low, high) in [
            (0, 0),
            (0x5000, 0x10),
            (u64::MAX, u64::MAX),
            (1 << 20, u64::MAX),
        ] {
            assert_eq!(find(JAVA, low, high), None);
        }
    }

    #[test]
    fn queued_operation_is_distinguished() {
        let operation = words(&[TABLE, JAVA, 5, 1234, QUEUE, QUEUE]);
        for (last, is_queued) in [(0x5000, true), (QUEUE, false)] {
            let mut memory = memory([EIGHTEEN, ZERO], last);
            memory.add(0x5000, &operation);
            let found = at(X86_64, &memory, 0x5000, &is_code).unwrap();
            assert_eq!((found.is_queued, found.kind), (is_queued, Some(18)));
        }
    }

    #[test]
    fn address_without_table_is_no_operation() {
        let memory = memory([ZERO, ZERO], QUEUE);
        assert_eq!(at(X86_64, &memory, CODE, &is_code), None);
    }
}

//! The signs of a line on the wrong instruction, each at its limit. (`tests/misplaced.rs` has whole
//! compiled methods.)

extern crate std;

use super::*;
use crate::hotspot::codecache::{Blob, BlobKind};
use crate::hotspot::machine::X86_64;
use crate::hotspot::test_memory::Bytes;
use std::vec::Vec;

const NMETHOD: u64 = 0x1000;
const METHOD: u64 = 0x7f00_0000;
const PCS: u64 = 0x10_0000;
const SCOPES: u64 = 0x20_0000;
const METADATA: u64 = 0x30_0000;
const CODE: u64 = 0x40_0000;

/// A chain of methods and the bcis of the calls in them, outermost first.
fn chain(scopes: &[(u64, i32)]) -> Chain {
    let mut chain = Chain::new();
    for (slot, (method, bci)) in chain.scopes.iter_mut().zip(scopes) {
        *slot = (0, *method, *bci);
        chain.len += 1;
    }
    chain
}

/// A method with these places (offset of the code, scope). After one byte come its scopes, of three
/// small numbers each: sender, method, bci + 1.
struct Compiled {
    memory: Bytes,
    layout: Layout,
    nmethod: Nmethod,
}

fn compiled(places: &[(i32, u32)], scopes: &[[u8; 3]], code: &[u8]) -> Compiled {
    let mut layout = Layout::EMPTY;
    layout.extra.unsigned5_base = 0;
    layout.sizeof_pcdesc = 8;
    (layout.pcdesc_pc_offset, layout.pcdesc_scope_offset) = (0, 4);
    layout.nmethod_method = 0;
    layout.nmethod_comp_level = 8;
    layout.nmethod_scopes_pcs_offset = 16;
    layout.nmethod_dependencies_offset = 24;
    layout.nmethod_scopes_data_begin = 32;
    layout.nmethod_metadata_offset = 40;
    let mut memory = Bytes::default();
    let begin = PCS - NMETHOD;
    let end = begin + 8 * places.len() as u64;
    memory.add_words(
        NMETHOD,
        &[METHOD, 4, begin, end, SCOPES, METADATA - NMETHOD],
    );
    let descs = places.iter();
    let descs: Vec<u64> = descs
        .map(|(pc, scope)| u64::from(pc.cast_unsigned()) | u64::from(*scope) << 32)
        .collect();
    memory.add_words(PCS, &descs);
    let stream: Vec<u8> = std::iter::once(0)
        .chain(scopes.iter().flatten().copied())
        .collect();
    memory.add(SCOPES, &stream);
    let methods: Vec<u64> = (1..=64).map(|n| METHOD + n * 8).collect();
    memory.add_words(METADATA, &methods);
    memory.add(CODE, code);
    let blob = Blob {
        addr: NMETHOD,
        kind: BlobKind::Nmethod,
        code_begin: CODE,
        frame_bytes: 32,
    };
    let nmethod = Nmethod::load(&memory, &layout, &blob).expect("a method");
    Compiled {
        memory,
        layout,
        nmethod,
    }
}

impl Compiled {
    fn poll_behind(&self, index: u64) -> Option<u32> {
        let found = poll_behind(X86_64, &self.nmethod, &self.memory, &self.layout, index);
        found.expect("a table")
    }

    fn is_everywhere(&self, index: u64, told: u32) -> bool {
        let found = is_everywhere(&self.nmethod, &self.memory, &self.layout, index, told);
        found.expect("a table")
    }

    /// Methods and bcis of the chain at `offset`, and whether the whole chain fits.
    fn chain(&self, offset: u32) -> (bool, Vec<(u64, i32)>) {
        let mut chain = Chain::new();
        let whole = chain.read(&self.nmethod, &self.memory, &self.layout, offset);
        let scopes = chain.scopes().iter();
        let scopes = scopes.map(|(_, method, bci)| ((method - METHOD) / 8, *bci));
        (whole.expect("scopes"), scopes.collect())
    }
}

#[test]
fn methods_are_shared_up_to_the_first_other_call() {
    let own = chain(&[(1, 4), (2, 5), (3, 7)]);
    for (other, shared) in [
        (&[(1, 4), (2, 5), (3, 7)][..], 3),
        (&[(1, 4), (2, 5), (3, 8)], 3),
        (&[(1, 4), (2, 5)], 2),
        (&[(1, 4), (2, 6), (3, 7)], 2),
        (&[(1, 5), (2, 5), (3, 7)], 1),
        (&[(1, 4), (9, 5), (3, 7)], 1),
        (&[(2, 4), (2, 5), (3, 7)], 0),
        (&[], 0),
    ] {
        assert_eq!(own.shared(&chain(other)), shared, "{other:?}");
        assert_eq!(chain(other).shared(&own), shared, "{other:?}");
    }
}

#[test]
fn chains_are_read_outermost_first_as_deep_as_there_is_room() {
    // Each is inlined into the one before it.
    let scope = |n: u8| [if n == 0 { 0 } else { 3 * n - 2 }, n + 1, n + 11];
    let scopes: Vec<[u8; 3]> = (0..=DEPTH_MAX as u8).map(scope).collect();
    let method = compiled(&[], &scopes, &[]);
    assert_eq!(method.chain(1), (true, std::vec![(1, 10)]));
    assert_eq!(method.chain(4), (true, std::vec![(1, 10), (2, 11)]));
    let (is_whole, all) = method.chain(3 * DEPTH_MAX as u32 - 2);
    let wanted: Vec<_> = (0..DEPTH_MAX)
        .map(|n| (n as u64 + 1, n as i32 + 10))
        .collect();
    assert_eq!((is_whole, all), (true, wanted));
    assert!(!method.chain(3 * DEPTH_MAX as u32 + 1).0, "one too deep");
}

#[test]
fn scope_without_earlier_sender_is_the_outermost() {
    // One is its own sender, and the other has a later sender.
    let method = compiled(&[], &[[1, 5, 1], [7, 6, 1], [0, 7, 1]], &[]);
    assert_eq!(method.chain(1), (true, std::vec![(5, 0)]));
    assert_eq!(method.chain(4), (true, std::vec![(6, 0)]));
}

#[test]
fn poll_counts_only_right_after_the_place() {
    const POLL: [u8; 3] = [0x41, 0x85, 0x03];
    let told = |distance: i32, scope: u32, code: [u8; 3]| {
        let at = distance.clamp(0, 40) as usize;
        let mut bytes = [0x90; 48];
        bytes[at..at + 3].copy_from_slice(&code);
        compiled(&[(0, 4), (distance, scope)], &[], &bytes).poll_behind(0)
    };
    assert_eq!(told(1, 7, POLL), Some(7));
    assert_eq!(told(8, 7, POLL), Some(7));
    assert_eq!(told(9, 7, POLL), None, "too far behind to be the next one");
    assert_eq!(told(0, 7, POLL), None, "the same place");
    assert_eq!(told(4, 0, POLL), None, "without a scope");
    // test [rdi], eax; with a register that is no address; with another register than eax.
    assert_eq!(told(4, 7, [0x85, 0x07, 0x90]), Some(7));
    assert_eq!(told(4, 7, [0x85, 0xc7, 0x90]), None);
    assert_eq!(told(4, 7, [0x85, 0x0f, 0x90]), None);
    assert_eq!(told(4, 7, [0x40, 0x85, 0x07]), None, "another prefix");
    let last = compiled(&[(0, 4)], &[], &POLL);
    assert_eq!(last.poll_behind(0), None, "nothing behind");
    let far = compiled(&[(0x1_0000, 4), (0x1_0004, 7)], &[], &POLL);
    assert_eq!(far.poll_behind(0), None, "code that cannot be read");
}

#[test]
fn a_line_is_everywhere_if_enough_of_the_places_around_have_it() {
    let with = |same: usize, others: usize, none: usize| {
        let same = std::iter::repeat_n(7, same);
        let scopes = same
            .chain(std::iter::repeat_n(9, others))
            .chain(std::iter::repeat_n(0, none));
        let places: Vec<_> = (0..).map(|n| 4 * n).zip(scopes).collect();
        compiled(&places, &[], &[]).is_everywhere(0, 7)
    };
    assert!(with(8, 0, 0) && with(8, 24, 0));
    assert!(!with(7, 0, 0), "too few");
    assert!(!with(8, 25, 0), "less than a quarter");
    assert!(with(8, 24, 100), "places without a scope do not count");
    assert!(with(9, 27, 0) && !with(9, 28, 0));
}

#[test]
fn only_places_around_count() {
    let at = |first: usize| {
        // Seven of them are here, and the eighth is `first` places before.
        let count = first + 8;
        let is_one = |n: usize| n == 0 || n > first;
        let places: Vec<_> = (0..count)
            .map(|n| (4 * n as i32, if is_one(n) { 7 } else { 0 }))
            .collect();
        compiled(&places, &[], &[]).is_everywhere(first as u64, 7)
    };
    assert!(at(AROUND as usize));
    assert!(!at(AROUND as usize + 1));
}

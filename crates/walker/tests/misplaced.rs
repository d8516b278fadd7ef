//! Debug information that C2 has attached to the wrong instructions, and the scope that is reported
//! instead.
#![allow(missing_docs)]

mod common;

use common::debug_info::{AGES, CODE, Compiled, Inlined, Place, compiled};

/// The bytecode index of the call in each method.
const CALL: i32 = 7;

/// The call whose line is on other instructions: inlined at two levels.
fn borrowed() -> Vec<Inlined> {
    vec![(1, 4), (2, 5), (3, CALL)]
}

/// A loop of another method, inlined elsewhere.
fn in_loop(bci: i32) -> Vec<Inlined> {
    vec![(1, 9), (4, 3), (5, bci)]
}

/// Places in sequence, four bytes apart, in the newest layout.
fn method(chains: &[Vec<Inlined>]) -> Compiled {
    let places: Vec<Place> = chains.iter().map(|chain| (3, chain.clone())).collect();
    compiled(AGES[3], 1, &places).with_bytecodes(CALL as u16)
}

fn at(method: &Compiled, place: usize) -> Vec<Inlined> {
    let pc = method.expected[place].0;
    let (here, before) = (method.interrupted(pc), method.interrupted(pc - 1));
    assert_eq!(here, before, "the way to a place belongs to it");
    here
}

/// A line of the loop and then the call's line, `pairs` times.
fn mixed(pairs: i32, call: &[Inlined]) -> Vec<Vec<Inlined>> {
    (0..pairs)
        .flat_map(|n| [in_loop(n % 3), call.to_vec()])
        .chain([in_loop(0)])
        .collect()
}

#[test]
fn call_on_all_places_is_replaced_by_surrounding_method() {
    let method = method(&mixed(12, &borrowed()));
    for place in (1..23).step_by(2) {
        let before = (place as i32 / 2) % 3;
        assert_eq!(at(&method, place), in_loop(before), "place {place}");
        assert_eq!(at(&method, place - 1), in_loop(before), "a line of its own");
    }
}

#[test]
fn between_two_inlined_methods_it_is_their_caller() {
    let other = |bci| vec![(1, 9), (6, bci)];
    let mut chains = mixed(12, &borrowed());
    chains.extend([borrowed(), other(1), borrowed(), other(2)]);
    let method = method(&chains);
    assert_eq!(at(&method, 25), [(1, 9)], "where both were inlined");
    assert_eq!(at(&method, 27), other(1));
}

#[test]
fn line_without_the_signs_is_kept() {
    let told = |chains: &[Vec<Inlined>], place| at(&method(chains), place);
    // Too few.
    assert_eq!(told(&mixed(7, &borrowed()), 7), borrowed());
    // Rare: one of ten.
    let mut rare: Vec<_> = (0..100).map(|n| in_loop(n % 3)).collect();
    (0..10).for_each(|n| rare[n * 10 + 5] = borrowed());
    assert_eq!(told(&rare, 55), borrowed());
    // The bytecode is not a call.
    let no_call = vec![(1, 4), (2, 5), (3, CALL + 1)];
    assert_eq!(told(&mixed(12, &no_call), 7), no_call);
    // Places within the method itself.
    let mut inside = mixed(12, &borrowed());
    inside.extend([vec![(1, 4), (2, 5), (3, 1)], borrowed(), in_loop(1)]);
    assert_eq!(told(&inside, 26), borrowed());
    // Places at the calls' returns.
    let mut returns = method(&mixed(12, &borrowed()));
    let mut code = vec![0x90; 128];
    let place = (returns.expected[7].0 - CODE) as usize;
    code[place - 5] = 0xe8;
    returns.memory.add(CODE, code);
    assert_eq!(at(&returns, 7), borrowed());
    assert_eq!(at(&returns, 9), in_loop(1), "another place");
    // There is no place before it with a better scope.
    let first = [vec![borrowed()], mixed(12, &borrowed())].concat();
    assert_eq!(told(&first, 0), borrowed());
}

#[test]
fn instruction_right_before_a_poll_is_of_its_method() {
    let elsewhere = vec![(1, 2), (7, 1)];
    let inner = vec![(1, 9), (4, 3), (5, 6), (8, 1)];
    let chains = [
        in_loop(1),
        elsewhere.clone(),
        in_loop(2),
        inner.clone(),
        in_loop(2),
    ];
    for (poll, is_poll) in [
        ([0x41, 0x85, 0x03, 0x90], true),
        ([0x85, 0x07, 0x90, 0x90], true),
        ([0x41, 0x85, 0xc0, 0x90], false),
        ([0x48, 0x85, 0x03, 0x90], false),
    ] {
        let mut method = method(&chains);
        let mut code = vec![0x90; 64];
        for place in [2, 4] {
            let offset = (method.expected[place].0 - CODE) as usize;
            code[offset..offset + 4].copy_from_slice(&poll);
        }
        method.memory.add(CODE, code);
        let wanted = if is_poll {
            in_loop(2)
        } else {
            elsewhere.clone()
        };
        assert_eq!(at(&method, 1), wanted, "{poll:x?}");
        assert_eq!(at(&method, 3), inner, "inlined where the poll is");
    }
}

/// Such a call has no place at its return address, but one where it begins.
#[test]
fn call_that_cannot_stop_has_the_line_where_it_begins() {
    let (call, next) = (vec![(1, 4), (2, 5)], vec![(1, 9), (4, 3)]);
    let near: &[u8] = &[0xe8, 1, 2, 3, 4];
    let far: &[u8] = &[0x49, 0xba, 1, 2, 3, 4, 5, 6, 7, 8, 0x41, 0xff, 0xd2];
    for (age, code) in AGES.into_iter().flat_map(|age| [(age, near), (age, far)]) {
        let places = [(3, call.clone()), (30, next.clone())];
        let method = |bytes: &[u8]| {
            let mut method = compiled(age, 1, &places);
            let mut all = vec![0x90; 64];
            all[4..4 + bytes.len()].copy_from_slice(bytes);
            method.memory.add(CODE, all);
            method
        };
        let end = CODE + 4 + code.len() as u64;
        assert_eq!(method(code).called(end), call);
        // An instruction there is of the next line, and so is a call that begins elsewhere.
        assert_eq!(method(code).interrupted(end), next);
        assert_eq!(method(code).called(end + 1), next);
        assert_eq!(method(&[]).called(end), next, "no call");
        // Before the first place there is no other one.
        assert_eq!(method(code).called(CODE + 1), call);
    }
}

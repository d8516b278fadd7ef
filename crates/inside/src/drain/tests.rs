//! Validity of earlier walks and names, and names of the JVM's generated code, with a fake JVM.

use super::*;
use crate::hotspot::made_up::recording;
use crate::jvm::Vm;
use crate::jvm::made_up::{self, Counters, NOWHERE, Words, layout};
use dwell_walker::FrameKind;

#[test]
fn known_frames_hold_until_a_safepoint_or_a_library() {
    let mut layout = layout();
    let counters = Counters::new(&mut layout, &["sun.rt.safepoints"]);
    let setup = recording(Vm::made_up(layout));
    let mut walks = JavaWalks::new(&setup);
    let mut next = |safepoints: u64, moved| {
        counters.set(&[safepoints]);
        let changes = walks.begin(moved);
        assert!(!changes.has_new);
        changes.is_another_moment
    };
    assert!(
        next(5, false) && next(5, false),
        "nothing is known at first"
    );
    assert!(!next(5, false));
    assert!(next(5, true), "a library has come or gone");
    assert!(!next(5, false));
    assert!(next(6, false) && next(6, false) && !next(6, false));
}

#[test]
fn new_facts_of_the_jvm_are_reported_once() {
    let return_pc = Words::zeroes(1);
    let mut layout = layout();
    Counters::new(&mut layout, &["sun.rt.safepoints"]);
    let setup = recording(Vm::made_up(layout).with_virtual_threads(return_pc));
    let mut walks = JavaWalks::new(&setup);
    assert!(!walks.begin(false).has_new && !walks.begin(false).has_new);
    assert_eq!(walks.begin(false), Changes::default());
    return_pc.set(0, 0x7000);
    let new = Changes {
        has_new: true,
        is_another_moment: true,
    };
    assert_eq!(walks.begin(false), new);
    let extra = &setup.recorder.runtime.vm().layout.extra;
    assert_eq!(extra.cont_return_pc, 0x7000);
    assert_eq!(walks.begin(false), Changes::default());
}

#[test]
fn generated_code_has_the_name_that_the_jvm_reported() {
    let setup = recording(Vm::made_up(layout()));
    let stubs = &setup.recorder.runtime.stubs;
    stubs.add(0x7000, 16, "StubRoutines::call_stub".into());
    let mut walks = JavaWalks::new(&setup);
    let mut names = Names::default();
    let mut name = |pc| {
        let id = walks.stub(pc, &mut names);
        let name = names.get(id).unwrap();
        (name.class.clone(), name.name.clone())
    };
    let stub = |name: &str| ("[stub]".to_owned(), name.to_owned());
    assert_eq!(name(0x7000), stub("StubRoutines::call_stub"));
    assert_eq!(name(0x700f), stub("StubRoutines::call_stub"));
    assert_eq!(name(0x7010), stub("stub"));
    assert_eq!(name(0x6fff), stub("stub"));
}

#[test]
fn unseen_method_has_no_name() {
    let setup = recording(Vm::made_up(made_up::layout()));
    let mut walks = JavaWalks::new(&setup);
    walks.begin(false);
    let frame = Frame {
        kind: FrameKind::C2,
        bci: 1,
        id: NOWHERE,
    };
    assert_eq!(walks.name(&frame, &mut Names::default()), None);
}

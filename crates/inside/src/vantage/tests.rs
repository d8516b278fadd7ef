//! The start of a walk, and refusals without one.

use super::*;
use crate::hotspot::made_up::source;
use crate::jvm::made_up::{self, NOWHERE, Words, live};
use dwell_recorder::sys::process;
use dwell_signal::Registration;

#[test]
fn anchor_without_a_pc_has_it_below_sp() {
    let words = Words::new(&[0x4444, 0]);
    let sp = words.at() + 8;
    let with = |sp, pc| {
        let anchor = whole(Anchor { sp, pc, fp: 7 }, &live());
        (anchor.sp, anchor.pc, anchor.fp)
    };
    assert_eq!(with(sp, 0x5555), (sp, 0x5555, 7));
    assert_eq!(with(sp, 0), (sp, 0x4444, 7));
    assert_eq!(with(NOWHERE, 0), (NOWHERE, 0, 7), "it cannot be read");
    assert_eq!(with(0, 0x5555), (0, 0, 0), "there is none");
}

#[test]
fn continuation_is_entered_on_this_stack_or_another() {
    for (entry, high, wanted) in [
        (0x1000, 0x2000, 0x1000),
        (0xfff, 0x2000, 0),
        (0x1fff, 0x2000, 0x1fff),
        (0x2000, 0x2000, 0),
        (0x2000, 0, 0x2000),
        (0, 0, 0),
    ] {
        assert_eq!(on_stack(entry, 0x1000, high), wanted, "{entry:x} {high:x}");
    }
}

/// The calling thread samples itself.
#[test]
fn walk_begins_at_the_interrupted_place() {
    let engine = source().engine;
    // Eleven days, so that the only sample is the requested one.
    engine.start(1_000_000_000_000_000);
    let registration = Registration {
        tid: process::own_tid(),
        managed_thread: Words::zeroes(64).at(),
        stack_hi: u64::MAX,
        ..Registration::default()
    };
    let record = engine.register(&registration).unwrap();
    assert!(engine.ask(record, Reason::Stop));
    let mut seen = 0;
    // The signal has been handled by now, unless this thread is asked for samples elsewhere.
    engine.drain(|slot| {
        let header = slot.header();
        if header.tid != process::own_tid() {
            return;
        }
        seen += 1;
        assert!(!begins_in_java(header));
        let (of, regs) = (&header.regs, registers_of(header));
        assert_eq!((regs.pc, regs.sp, regs.fp), (of.pc(), of.sp(), of.fp()));
        let context = context_of(header, &live());
        assert_eq!((context.anchor, context.cont_entry), (Anchor::default(), 0));
        assert_eq!((context.chunk, context.poll_pc), (0, header.word));
        let wanted = match header.truncated {
            true => header.stack_lo + u64::from(header.stack_len),
            false => header.stack_hi,
        };
        assert_eq!(
            (context.stack_high, context.cut),
            (wanted, header.truncated)
        );
    });
    engine.stop();
    engine.end(record);
    engine.reap(|_| ());
    assert_eq!(seen, 1);
}

#[test]
fn unknown_start_refuses_a_walk() {
    let mut frames = [Frame::EMPTY; 4];
    let chunk = Chunk {
        object: NOWHERE,
        sp: NOWHERE,
        bottom: NOWHERE,
        end: NOWHERE,
    };
    assert!(!is_ready());
    assert_eq!(walk_unmounted(&live(), &chunk, None, &mut frames), None);
    let modules = Modules::only_own(|_| false);
    let published = |barrier| {
        let mut vm = Vm::made_up(made_up::layout());
        vm.layout.extra.return_barrier = barrier;
        publish(Box::leak(Box::new(vm)), &modules);
    };
    published(0);
    assert!(is_ready());
    assert_eq!(walk_unmounted(&live(), &chunk, None, &mut frames), None);
    published(0x7000);
    let walk = walk_unmounted(&live(), &chunk, None, &mut frames).unwrap();
    assert_ne!(walk.outcome, dwell_walker::Outcome::Complete, "no memory");
}

//! A cached walk equals the walk that would be done.

use super::*;
use crate::jvm::made_up::{Words, live};
use dwell_walker::{Failure, FrameKind};

/// A stack of fake words, which a fake walk reads in order.
struct Stack {
    words: Words,
    len: u64,
}

impl Stack {
    fn of(words: &[u64]) -> Stack {
        Stack {
            // One more word, outside of the stack.
            words: Words::new(&[words, &[99]].concat()),
            len: words.len() as u64,
        }
    }

    fn start(&self) -> Start {
        let sp = self.words.at();
        Start {
            thread: 1,
            pc: 2,
            sp,
            fp: 0,
            anchor: Anchor::default(),
            high: sp + self.len * 8,
            map: 3,
        }
    }
}

/// A frame for each of the first words. Returns whether it was walked, and the first frame.
fn walk(remembered: &Remembered, start: &Start, len: usize, outcome: Outcome) -> (bool, u64) {
    let mut frames = [Frame::EMPTY; 8];
    let mut is_walked = false;
    let walk = remembered.walk(live(), start, &mut frames, |memory, frames| {
        is_walked = true;
        for (index, frame) in frames.iter_mut().take(len).enumerate() {
            *frame = Frame {
                kind: FrameKind::C2,
                bci: 0,
                id: memory.word(start.sp + index as u64 * 8).unwrap(),
            };
        }
        Walk {
            len,
            outcome,
            gaps: 0,
            flaw: None,
        }
    });
    assert_eq!(walk.len, len);
    (is_walked, frames[0].id)
}

#[test]
fn thread_that_waits_at_the_same_place_is_not_walked() {
    let (remembered, stack) = (Remembered::default(), Stack::of(&[10, 11, 12, 13]));
    let ask = |start: &Start| walk(&remembered, start, 2, Outcome::Complete);
    let start = stack.start();
    assert_eq!(ask(&start), (true, 10));
    assert_eq!(ask(&start), (false, 10));
    // Another thread, or other registers of this one.
    for other in [
        Start { thread: 9, ..start },
        Start { fp: 9, ..start },
        Start { map: 9, ..start },
    ] {
        assert_eq!(ask(&other), (true, 10));
    }
    assert_eq!(ask(&start), (false, 10));
    remembered.clear();
    assert_eq!(ask(&start), (true, 10));
    assert_eq!(ask(&start), (false, 10));
}

#[test]
fn only_words_that_a_walk_read_count() {
    let (remembered, stack) = (Remembered::default(), Stack::of(&[10, 11, 12, 13]));
    let start = stack.start();
    let ask = || walk(&remembered, &start, 2, Outcome::Complete);
    assert_eq!(ask(), (true, 10));
    stack.words.set(24, 77);
    assert_eq!(ask(), (false, 10));
    stack.words.set(0, 20);
    assert_eq!(ask(), (true, 20));
    assert_eq!(ask(), (false, 20));
    // It waits at two places alternately.
    stack.words.set(0, 10);
    assert_eq!(ask(), (false, 10));
}

#[test]
fn failed_walk_is_not_cached() {
    let (remembered, stack) = (Remembered::default(), Stack::of(&[10, 11, 12, 13]));
    let start = stack.start();
    let failed = Outcome::Failed(Failure::Truncated);
    assert_eq!(walk(&remembered, &start, 2, failed), (true, 10));
    assert_eq!(walk(&remembered, &start, 2, Outcome::Complete), (true, 10));
}

#[test]
fn walk_with_unrecorded_words_is_not_cached() {
    let stack = Stack::of(&[10, 11, 12, 13]);
    let words = vec![Cell::new((0, 0)); 2];
    let noted = |offsets: &[u64]| {
        let noting = Noting::words(live(), &stack.start(), &words);
        for offset in offsets {
            noting.word(stack.words.at() + offset).unwrap();
        }
        noting
            .taken()
            .map(|words| words.iter().map(|(_, value)| *value).collect::<Vec<_>>())
    };
    assert_eq!(noted(&[0, 8]), Some(vec![10, 11]));
    assert_eq!(noted(&[0, 8, 16]), None, "there is no room");
    // Words outside of the stack do not count.
    assert_eq!(noted(&[0, 8, 32]), Some(vec![10, 11]));
}

#[test]
fn cache_is_bounded() {
    let remembered = Remembered::default();
    let stacks: Vec<Stack> = (0..3000).map(|id| Stack::of(&[id, 1, 2, 3])).collect();
    let ask = |stack: &Stack| walk(&remembered, &stack.start(), 2, Outcome::Complete).0;
    assert!(stacks.iter().all(ask));
    let walks = remembered.walks.borrow();
    assert!(walks.sets.iter().all(|set| set.len() <= SET_MAX));
    let bytes = walks.sets.iter().flatten().map(Known::bytes).sum::<usize>();
    assert_eq!(walks.bytes, bytes);
    assert!(bytes <= BYTES_MAX && bytes > 0);
}

#[test]
fn reads_of_other_sizes_are_not_recorded() {
    let (remembered, stack) = (Remembered::default(), Stack::of(&[10, 11]));
    let start = stack.start();
    let mut frames = [Frame::EMPTY; 8];
    for _ in 0..2 {
        let mut is_walked = false;
        remembered.walk(live(), &start, &mut frames, |memory, _| {
            is_walked = true;
            memory.read(start.sp, &mut [0; 16]).unwrap();
            Walk {
                len: 0,
                outcome: Outcome::Complete,
                gaps: 0,
                flaw: None,
            }
        });
        assert!(is_walked);
    }
}

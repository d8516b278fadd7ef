//! The stacks of monitor owners, as they have answered, until the asking waits are over. A wait is
//! recorded when it is over, and its owner answers before that.

use crate::record::batch::PendingFrame;
use crate::record::names::Names;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// Frames kept of an answer, innermost first.
const FRAMES_MAX: usize = 1024;

/// Where an owner was.
pub struct Answer {
    /// When, on the monotonic clock.
    pub time_ns: u64,
    /// Its stack.
    pub frames: Box<[PendingFrame]>,
    /// Whether the stack's root is missing.
    pub truncated: bool,
    /// Why the stack is not whole, if it is not.
    pub failure: Option<&'static str>,
    /// The wait is over: if it is recorded, it is among the waits that are drained now.
    is_over: bool,
}

impl Answer {
    /// A hash of its frames.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.frames.hash(&mut hasher);
        hasher.finish()
    }
}

/// Answers by the numbers of their questions.
#[derive(Default)]
pub struct Answers(FxHashMap<u64, Answer>);

impl Answers {
    /// A thread has answered.
    pub fn add(
        &mut self,
        question: u64,
        time_ns: u64,
        frames: impl Iterator<Item = PendingFrame>,
        (truncated, failure): (bool, Option<&'static str>),
    ) {
        if question == 0 {
            return;
        }
        let mut frames = frames;
        let kept: Box<[PendingFrame]> = frames.by_ref().take(FRAMES_MAX).collect();
        let answer = Answer {
            time_ns,
            frames: kept,
            truncated: truncated || frames.next().is_some(),
            failure,
            is_over: false,
        };
        self.0.insert(question, answer);
    }

    /// Takes the answer to a question.
    pub fn take(&mut self, question: u64) -> Option<Answer> {
        self.0.remove(&question)
    }

    /// A drain begins: notes which waits are over.
    pub fn begin(&mut self, is_open: impl Fn(u64) -> bool) {
        for (question, answer) in &mut self.0 {
            answer.is_over = !is_open(*question);
        }
    }

    /// All waits published before the drain began are drained. An answer that was over by then and
    /// is still here belongs to a wait that was not recorded.
    pub fn end(&mut self) {
        self.0.retain(|_, answer| !answer.is_over);
    }

    /// `old` has the names of the last chunk; each gets a place in `new`.
    pub fn rename(&mut self, old: &Names, new: &mut Names) {
        for frame in self.0.values_mut().flat_map(|answer| &mut answer.frames) {
            *frame = frame.renamed(old, new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::batch::Code;
    use crate::record::names::NameId;
    use dwell_jfr::FrameKind;

    fn frame(id: u32) -> PendingFrame {
        PendingFrame {
            code: Code::Named(NameId(id)),
            kind: FrameKind::C2,
            line: 1,
            bci: 0,
        }
    }

    #[test]
    fn answers_stay_until_their_waits_are_drained() {
        let mut answers = Answers::default();
        for question in [0, 1, 2, 3] {
            let frames = [frame(question as u32)].into_iter();
            answers.add(question, 10 * question, frames, (false, None));
        }
        assert!(answers.take(0).is_none(), "that is no question");
        // The second wait ends during the drain, and the third before.
        answers.begin(|question| question != 3);
        let third = answers.take(3).unwrap();
        assert_eq!((third.time_ns, &*third.frames), (30, &[frame(3)][..]));
        answers.end();
        answers.begin(|question| question == 1);
        // The drain has left samples to the next one.
        answers.begin(|question| question == 1);
        assert_eq!(answers.0.len(), 2);
        answers.end();
        assert!(answers.take(2).is_none(), "it was not recorded");
        assert!(answers.take(1).is_some());
    }

    #[test]
    fn deep_stack_keeps_its_inner_part() {
        let mut answers = Answers::default();
        for (question, len) in [(1, FRAMES_MAX), (2, FRAMES_MAX + 1)] {
            let frames = (0..len).map(|n| frame(n as u32));
            answers.add(question, 0, frames, (false, None));
            let answer = answers.take(question).unwrap();
            assert_eq!(answer.frames.len(), FRAMES_MAX);
            assert_eq!(answer.truncated, len > FRAMES_MAX);
            assert_eq!(answer.frames[0], frame(0));
        }
    }
}

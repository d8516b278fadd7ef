//! The sender's step after each answer, with clocks that the test sets.

mod common;

use common::{Scratch, body, position};
use dwell_ship::{Answer, Body, Sender, Spool, Step, Transport};
use std::collections::VecDeque;
use std::time::Duration;

/// Answers in turn, and keeps the targets of what came.
#[derive(Default)]
struct Script {
    answers: VecDeque<Answer>,
    came: Vec<String>,
}

impl Transport for Script {
    fn send(&mut self, body: &Body) -> Answer {
        self.came.push(body.target.clone());
        self.answers.pop_front().expect("an answer")
    }
}

fn status(code: u16) -> Answer {
    Answer::Status {
        code,
        retry_after: None,
        text: String::new(),
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A spool with so many bodies, and a transport with these answers.
fn prepared(bodies: usize, answers: &[Answer]) -> (Scratch, Spool, Script) {
    let scratch = Scratch::new();
    let mut spool = Spool::open(scratch.path(), 1 << 20).unwrap();
    for number in 1..=bodies {
        let target = format!("/{number}");
        spool
            .add(&body(&target, 3), position(1, number as u64))
            .unwrap();
    }
    let script = Script {
        answers: answers.iter().cloned().collect(),
        ..Script::default()
    };
    (scratch, spool, script)
}

#[test]
fn accepted_bodies_are_sent_once_and_in_order() {
    let (scratch, mut spool, mut script) = prepared(2, &[status(200), status(204)]);
    let mut sender = Sender::default();
    let mut step = |sender: &mut Sender, spool: &mut Spool| {
        sender.step(seconds(0), 0.5, spool, &mut script).unwrap()
    };
    assert_eq!(step(&mut sender, &mut spool), Step::Sent);
    // A restart in between sends the second one only.
    drop(spool);
    let mut spool = Spool::open(scratch.path(), 1 << 20).unwrap();
    let mut other = Sender::default();
    assert_eq!(step(&mut other, &mut spool), Step::Sent);
    assert_eq!(step(&mut other, &mut spool), Step::Empty);
    assert_eq!((sender.sent(), other.sent(), other.dropped()), (1, 1, 0));
    assert_eq!(script.came, ["/1", "/2"]);
}

#[test]
fn refused_bodies_are_dropped_and_counted() {
    for code in [400, 405, 413, 415, 422] {
        let answer = Answer::Status {
            code,
            retry_after: None,
            text: "no such thing".to_owned(),
        };
        let (_scratch, mut spool, mut script) = prepared(2, &[answer, status(200)]);
        let mut sender = Sender::default();
        let first = sender.step(seconds(0), 0.5, &mut spool, &mut script);
        let text = format!("the receiver answered {code}: no such thing");
        assert_eq!(first.unwrap(), Step::Dropped(text));
        let next = sender.step(seconds(0), 0.5, &mut spool, &mut script);
        assert_eq!(next.unwrap(), Step::Sent);
        assert_eq!((sender.sent(), sender.dropped()), (1, 1));
    }
}

#[test]
fn failures_are_tried_again_with_growing_waits() {
    let failures = [
        Answer::Failed("no route".to_owned()),
        status(500),
        status(503),
        status(408),
        status(429),
        status(502),
        status(401),
        status(403),
        status(404),
        status(308),
    ];
    let (_scratch, mut spool, mut script) = prepared(1, &failures);
    let mut sender = Sender::default();
    let mut now = seconds(100);
    let mut waits = Vec::new();
    for place in 0..failures.len() {
        let step = sender.step(now, 1.0, &mut spool, &mut script).unwrap();
        let Step::Later(next, why) = step else {
            panic!("{step:?}");
        };
        // Only the first of failures in a row is said.
        assert_eq!(why, (place == 0).then(|| "no route".to_owned()));
        let early = next - Duration::from_nanos(1);
        let step = sender.step(early, 1.0, &mut spool, &mut script).unwrap();
        assert_eq!(step, Step::Waiting(next), "nothing is sent before");
        waits.push((next - now).as_secs());
        now = next;
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
    assert_eq!(script.came.len(), failures.len());
    // After success, waits begin again.
    script.answers = [status(200), status(500)].into();
    let step = sender.step(now, 1.0, &mut spool, &mut script).unwrap();
    assert_eq!(step, Step::Sent);
    spool.add(&body("/2", 3), position(1, 2)).unwrap();
    let step = sender.step(now, 0.0, &mut spool, &mut script).unwrap();
    let why = "the receiver answered 500".to_owned();
    let next = now + Duration::from_millis(500);
    assert_eq!(
        step,
        Step::Later(next, Some(why)),
        "half of a second without luck"
    );
}

#[test]
fn body_waits_while_a_part_of_the_receiver_is_away() {
    let answer = Answer::Status {
        code: 422,
        retry_after: None,
        text: "push failed: rpc error: code = Unavailable desc = no connection".to_owned(),
    };
    let (_scratch, mut spool, mut script) = prepared(1, &[answer, status(200)]);
    let mut sender = Sender::default();
    let step = sender.step(seconds(0), 1.0, &mut spool, &mut script);
    assert!(matches!(step.unwrap(), Step::Later(next, Some(_)) if next == seconds(1)));
    let step = sender.step(seconds(1), 1.0, &mut spool, &mut script);
    assert_eq!(step.unwrap(), Step::Sent);
    assert_eq!((sender.sent(), sender.dropped()), (1, 0));
}

#[test]
fn receiver_may_ask_for_a_wait() {
    let asking = |asked| Answer::Status {
        code: 429,
        retry_after: Some(seconds(asked)),
        text: String::new(),
    };
    for (asked, expected) in [(7, 7), (0, 0), (1_000_000, 3600)] {
        let (_scratch, mut spool, mut script) = prepared(1, &[asking(asked)]);
        let step = Sender::default().step(seconds(5), 0.0, &mut spool, &mut script);
        let why = "the receiver answered 429".to_owned();
        assert_eq!(step.unwrap(), Step::Later(seconds(5 + expected), Some(why)));
        assert_eq!(spool.waiting(), 1);
    }
}

#[test]
fn damaged_file_is_dropped_without_being_sent() {
    let (scratch, mut spool, mut script) = prepared(2, &[status(200)]);
    let name = scratch.names().remove(0);
    std::fs::write(scratch.path().join(name), "dwell-spool 1\nPOST\n/x\n").unwrap();
    let mut sender = Sender::default();
    let step = sender.step(seconds(0), 0.0, &mut spool, &mut script);
    assert_eq!(
        step.unwrap(),
        Step::Dropped("a damaged file of the spool".to_owned())
    );
    let step = sender.step(seconds(0), 0.0, &mut spool, &mut script);
    assert_eq!(step.unwrap(), Step::Sent);
    assert_eq!(script.came, ["/2"]);
}

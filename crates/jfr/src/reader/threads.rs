//! One thread of those that differ in what they are called only: a thread that was renamed, or that
//! was seen before it had a name, has a constant for each name. Knows tables, no bytes.

use super::model::{Recording, Thread, Value};
use super::shared::Shared;
use std::collections::HashMap;
use std::sync::Arc;

/// The identity of a Java thread, independent of its name.
type Identity = (i64, i64, bool);

fn identity(thread: &Thread) -> Option<Identity> {
    (thread.java_tid != 0).then_some((thread.java_tid, thread.os_tid, thread.is_virtual))
}

/// Gives each Java thread one place in the table and the name that it had last, if it had one.
pub(super) fn unify(out: &mut Recording) {
    let mut first_of: HashMap<Identity, u32> = HashMap::new();
    let mut place_of: Vec<u32> = Vec::with_capacity(out.threads.len());
    let mut count = 0;
    for thread in &out.threads {
        let new = count;
        let place = match identity(thread) {
            Some(who) => *first_of.entry(who).or_insert(new),
            None => new,
        };
        count += u32::from(place == new);
        place_of.push(place);
    }
    if count as usize == out.threads.len() {
        return;
    }
    out.threads = named_last(out, &place_of, count as usize);
    let new = |place: u32| place_of.get(place as usize).copied().unwrap_or(place);
    for sample in &mut out.samples {
        sample.thread = new(sample.thread);
        sample.carrier = sample.carrier.map(new);
    }
    for wall in &mut out.walls {
        wall.owner = wall.owner.map(new);
    }
    let mut shared = Shared::default();
    for (_, value) in out.events.iter_mut().flat_map(|event| &mut event.fields) {
        renumber(value, &new, &mut shared);
    }
}

/// The threads at their new places: of each, what was said of it when it was seen last under a
/// name.
fn named_last(out: &Recording, place_of: &[u32], count: usize) -> Vec<Thread> {
    let mut last_ns = vec![0; out.threads.len()];
    for sample in &out.samples {
        for place in [Some(sample.thread), sample.carrier].into_iter().flatten() {
            if let Some(last_ns) = last_ns.get_mut(place as usize) {
                *last_ns = sample.time_ns.max(*last_ns);
            }
        }
    }
    let mut best: Vec<Option<(bool, u64)>> = vec![None; count];
    let mut threads = vec![Thread::default(); count];
    for ((thread, place), last_ns) in out.threads.iter().zip(place_of).zip(last_ns) {
        let has_name = thread.java_name.as_ref().is_some_and(|it| !it.is_empty());
        let rank = Some((has_name, last_ns));
        let place = *place as usize;
        if let (Some(best), Some(to)) = (best.get_mut(place), threads.get_mut(place))
            // Of equals the later one: constants come in the order in which they are used.
            && rank >= *best
        {
            *best = rank;
            *to = thread.clone();
        }
    }
    threads
}

fn renumber(value: &mut Value, new: &impl Fn(u32) -> u32, shared: &mut Shared) {
    match value {
        Value::Thread(place) => *place = new(*place),
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| renumber_flat(value, new)),
        Value::Struct(fields) => match shared.get(fields) {
            Some(done) => *fields = done,
            None => {
                // Structures of events hold no structures with threads in them.
                let mut own: Vec<_> = fields.to_vec();
                own.iter_mut()
                    .for_each(|(_, value)| renumber_flat(value, new));
                let former = std::mem::replace(fields, Arc::from(own));
                shared.keep(former, fields);
            }
        },
        _ => {}
    }
}

/// Without going deeper: how deep values of a file are is not for us to say.
fn renumber_flat(value: &mut Value, new: &impl Fn(u32) -> u32) {
    if let Value::Thread(place) = value {
        *place = new(*place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::{GenericEvent, Sample, Wall};

    fn thread(java_tid: i64, os_tid: i64, name: &str) -> Thread {
        Thread {
            os_tid,
            java_tid,
            java_name: (java_tid != 0).then(|| name.into()),
            os_name: name.into(),
            is_virtual: os_tid == 0,
            ..Thread::default()
        }
    }

    fn sample(time_ns: u64, thread: u32, carrier: Option<u32>) -> Sample {
        Sample {
            time_ns,
            thread,
            carrier,
            ..Sample::PLAIN
        }
    }

    fn event(fields: &[(&str, Value)]) -> GenericEvent {
        let fields = fields.iter();
        GenericEvent {
            name: "some".into(),
            time_ns: 0,
            fields: fields
                .map(|(name, value)| ((*name).into(), value.clone()))
                .collect(),
        }
    }

    #[test]
    fn a_renamed_thread_is_one_with_its_last_name() {
        let of_seven = Value::Struct(vec![("it".into(), Value::Thread(7))].into());
        let some = Value::Array(vec![Value::Thread(6), Value::Int(6)]);
        let mut out = Recording {
            threads: vec![
                thread(7, 100, "first"),
                thread(0, 101, "gc"),
                thread(30, 0, ""),
                thread(7, 100, "last"),
                thread(0, 101, "gc renamed"),
                thread(30, 0, "virtual"),
                thread(7, 100, ""),
                thread(7, 0, "another's number"),
            ],
            samples: vec![
                sample(10, 0, None),
                sample(20, 2, Some(0)),
                sample(40, 5, Some(3)),
                sample(30, 0, None),
                sample(90, 6, None),
                sample(50, 4, None),
                sample(60, 7, None),
            ],
            walls: vec![Wall {
                owner: Some(5),
                ..Wall::default()
            }],
            events: vec![event(&[
                ("thread", Value::Thread(3)),
                ("all", some),
                ("inner", of_seven),
            ])],
            ..Recording::default()
        };
        unify(&mut out);
        let names: Vec<_> = out.threads.iter().map(|it| &*it.os_name).collect();
        // The number does not identify a thread outside Java: another one may have it by now.
        let told = ["last", "gc", "virtual", "gc renamed", "another's number"];
        assert_eq!(names, told);
        let seen: Vec<_> = out
            .samples
            .iter()
            .map(|it| (it.thread, it.carrier))
            .collect();
        let none = None;
        let expected = [
            (0, none),
            (2, Some(0)),
            (2, Some(0)),
            (0, none),
            (0, none),
            (3, none),
            (4, none),
        ];
        assert_eq!(seen, expected);
        assert_eq!(out.walls.first().and_then(|wall| wall.owner), Some(2));
        let fields: Vec<_> = out.events.iter().flat_map(|event| &event.fields).collect();
        let values: Vec<_> = fields.iter().map(|(_, value)| value.clone()).collect();
        let expected = [
            Value::Thread(0),
            Value::Array(vec![Value::Thread(0), Value::Int(6)]),
            Value::Struct(vec![("it".into(), Value::Thread(4))].into()),
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn thread_renamed_and_back_has_its_last_name() {
        let mut out = Recording {
            threads: vec![thread(7, 100, "a"), thread(7, 100, "b")],
            samples: vec![sample(1, 0, None), sample(2, 1, None), sample(3, 0, None)],
            ..Recording::default()
        };
        unify(&mut out);
        let names: Vec<_> = out.threads.iter().map(|it| &*it.os_name).collect();
        assert_eq!(names, ["a"]);
    }
}

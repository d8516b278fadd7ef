//! Adds what was read of a part of a file, with tables of its own, to what was read before: the
//! result is as if the part had been read there. It reads no bytes.

use super::model::{Context, Value, Wall};
use super::shared::Shared;
use super::tables::{News, Tables};
use super::{Reading, warn};
use std::sync::Arc;

/// Structures and arrays inside each other that are looked into; the reader makes no more.
const DEPTH_MAX: usize = 80;

/// Places in the tables of the whole, by those in the tables of a thread that reads parts.
#[derive(Default)]
pub(super) struct Known {
    strings: Vec<u32>,
    methods: Vec<u32>,
    stacks: Vec<u32>,
}

/// The same with what belongs to one part alone.
struct Places<'k> {
    threads: Vec<u32>,
    methods: &'k [u32],
    stacks: &'k [u32],
    failures: Vec<u32>,
    texts: Vec<u32>,
    contexts: Vec<u32>,
}

/// The place in the whole; one that no table has stays.
fn moved(places: &[u32], place: u32) -> u32 {
    places.get(place as usize).copied().unwrap_or(place)
}

fn moved_if(places: &[u32], place: Option<u32>) -> Option<u32> {
    place.map(|place| moved(places, place))
}

impl Reading<'_> {
    /// Adds a part, whose samples have not been put together, and what the thread that read it saw
    /// there for the first time.
    pub(super) fn absorb(&mut self, part: Reading<'_>, news: News, known: &mut Known) {
        let Reading {
            mut tables,
            out: mut of,
            first_error,
            ..
        } = part;
        let walls = std::mem::take(&mut tables.walls);
        self.learn(news, known);
        let places = self.places(tables, known);
        for mut sample in of.samples {
            sample.thread = moved(&places.threads, sample.thread);
            sample.carrier = moved_if(&places.threads, sample.carrier);
            sample.stack = moved(places.stacks, sample.stack);
            sample.failure = moved_if(&places.failures, sample.failure);
            sample.context = moved_if(&places.contexts, sample.context);
            let wall = sample.wall.and_then(|place| walls.get(place as usize));
            sample.wall = wall.map(|wall| self.tables.wall(places.wall(wall)));
            let (tables, samples) = (&mut self.tables, &mut self.out.samples);
            let (walls, contexts) = (&mut tables.walls, &tables.contexts);
            tables.merger.add(sample, samples, walls, contexts);
        }
        let mut shared = Shared::default();
        for event in &mut of.events {
            for (_, value) in &mut event.fields {
                places.value(value, 0, &mut shared);
            }
        }
        self.out.events.append(&mut of.events);
        self.out.chunks.append(&mut of.chunks);
        self.out.unread.add(&of.unread);
        for (name, count) in of.counts {
            *self.out.counts.entry(name).or_default() += count;
        }
        self.out.types.append(&mut of.types);
        for warning in of.warnings {
            warn(&mut self.out, warning);
        }
        self.first_error = self.first_error.take().or(first_error);
    }

    /// Adds what a thread that reads parts has seen for the first time.
    fn learn(&mut self, mut news: News, known: &mut Known) {
        let whole = &mut self.tables;
        for (hash, text) in news.strings {
            known.strings.push(whole.hashed_string(hash, text));
        }
        for texts in news.methods {
            let texts = texts.moved(|place| moved(&known.strings, place));
            known.methods.push(whole.method(texts));
        }
        for frame in &mut news.frames {
            frame.method = moved(&known.methods, frame.method);
        }
        let mut from = 0;
        for (end, truncated) in news.stacks {
            let frames = news.frames.get(from..end).unwrap_or_default();
            known.stacks.push(whole.stack(frames, truncated));
            from = end;
        }
    }

    /// Adds what the tables of a part have.
    fn places<'k>(&mut self, part: Tables, known: &'k Known) -> Places<'k> {
        let whole = &mut self.tables;
        let texts: Vec<u32> = (part.texts.into_items().into_iter())
            .map(|text| whole.texts.place(text))
            .collect();
        let contexts = part.contexts.into_items().into_iter().map(|context| {
            whole.contexts.place(Context {
                endpoint: moved_if(&texts, context.endpoint),
                labels: moved_if(&texts, context.labels),
                ..context
            })
        });
        Places {
            contexts: contexts.collect(),
            threads: (part.threads.into_items().into_iter())
                .map(|thread| whole.thread(thread))
                .collect(),
            failures: (part.failures.into_items().into_iter())
                .map(|text| whole.failures.place(text))
                .collect(),
            methods: &known.methods,
            stacks: &known.stacks,
            texts,
        }
    }
}

impl Places<'_> {
    fn wall(&self, wall: &Wall) -> Wall {
        Wall {
            cause: moved_if(&self.texts, wall.cause),
            detail: moved_if(&self.texts, wall.detail),
            owner: moved_if(&self.threads, wall.owner),
            owner_stack: moved_if(self.stacks, wall.owner_stack),
            ..*wall
        }
    }

    fn value(&self, value: &mut Value, depth: usize, shared: &mut Shared) {
        if depth > DEPTH_MAX {
            return;
        }
        match value {
            Value::Thread(place) => *place = moved(&self.threads, *place),
            Value::Stack(place) => *place = moved(self.stacks, *place),
            Value::Method(place) => *place = moved(self.methods, *place),
            Value::Array(values) => {
                for value in values {
                    self.value(value, depth + 1, shared);
                }
            }
            Value::Struct(fields) => match shared.get(fields) {
                Some(done) => *fields = done,
                None => {
                    let mut own: Vec<_> = fields.to_vec();
                    for (_, value) in &mut own {
                        self.value(value, depth + 1, shared);
                    }
                    let former = std::mem::replace(fields, Arc::from(own));
                    shared.keep(former, fields);
                }
            },
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// References to a table of the part become references to that of the whole.
    #[test]
    fn places_in_values_are_moved_however_deep_they_are() {
        let places = Places {
            contexts: Vec::new(),
            threads: vec![5, 7],
            failures: Vec::new(),
            methods: &[6, 8],
            stacks: &[4, 9],
            texts: Vec::new(),
        };
        let all = |thread, stack, method| {
            let own: [(Arc<str>, Value); 2] = [
                ("m".into(), Value::Method(method)),
                ("i".into(), Value::Int(1)),
            ];
            vec![
                Value::Thread(thread),
                Value::Stack(stack),
                Value::Method(method),
                Value::Int(1),
                Value::Array(vec![Value::Stack(stack)]),
                Value::Struct(Arc::from(own)),
            ]
        };
        let mut values = all(1, 1, 1);
        for value in &mut values {
            places.value(value, 0, &mut Shared::default());
        }
        assert_eq!(values, all(7, 9, 8));
        let mut wall = Wall {
            owner: Some(0),
            owner_stack: Some(0),
            ..Wall::default()
        };
        wall = places.wall(&wall);
        assert_eq!((wall.owner, wall.owner_stack), (Some(5), Some(4)));
    }
}

//! The tables that what a file says is kept in, each thing once: those of the whole file, or those
//! of a thread that reads parts of it. They read no bytes.

use super::intern::Interner;
use super::merge::Merger;
use super::model::{Context, Method, StackFrame, Thread, Wall};
use super::shared::Links;
use super::stacks::StackTable;
use crate::hash::{Seeds, mixed, mixed_bytes};
use std::sync::Arc;

/// The tables of a file.
#[derive(Default)]
pub(crate) struct Tables {
    pub(crate) threads: Interner<Thread>,
    pub(crate) methods: Interner<Method>,
    /// In the place of methods and stacks, of a thread that reads parts of a file.
    part: Option<Part>,
    pub(crate) stacks: StackTable,
    pub(crate) failures: Interner<Arc<str>>,
    pub(crate) texts: Interner<Arc<str>>,
    /// Strings of constants: every chunk has the same ones.
    pub(crate) strings: Interner<Arc<str>>,
    /// By string: the place of the displayed name of the class with that name, plus one.
    shown: Vec<u32>,
    /// Places of long names of threads among the strings.
    long_names: Links,
    pub(crate) walls: Vec<Wall>,
    pub(crate) merger: Merger,
    /// Where the bytes that are being read begin in the input.
    pub(crate) base: usize,
    pub(crate) contexts: Interner<Context>,
}

/// The places of a method's texts among the strings, and whether it is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MethodTexts {
    pub(crate) class: u32,
    pub(crate) name: u32,
    pub(crate) descriptor: u32,
    /// Of the class.
    pub(crate) module: u32,
    pub(crate) location: u32,
    pub(crate) hidden: bool,
}

impl MethodTexts {
    /// One of which nothing is known; `none` is the place of the empty string.
    pub(crate) fn unknown(none: u32) -> Self {
        Self {
            class: none,
            name: none,
            descriptor: none,
            module: none,
            location: none,
            hidden: false,
        }
    }

    /// With other places.
    pub(crate) fn moved(self, to: impl Fn(u32) -> u32) -> Self {
        Self {
            class: to(self.class),
            name: to(self.name),
            descriptor: to(self.descriptor),
            module: to(self.module),
            location: to(self.location),
            hidden: self.hidden,
        }
    }

    fn hash(&self, seeds: [u64; 2]) -> u64 {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let rest = u64::from(self.descriptor) << 1 | u64::from(self.hidden);
        let hash = mixed(0, seeds, pair(self.class, self.name), rest);
        mixed(hash, seeds, pair(self.module, self.location), 0)
    }
}

/// The tables of a thread that reads parts of a file. They stay from one part to the next, so that
/// the thread reports each item to the whole once. Strings and stacks are identified by 128 bits of
/// a hash with random seeds, as a full comparison would take longer than all other work. Two
/// different items with the same hash are less likely than a memory error.
#[derive(Default)]
struct Part {
    /// The other seeds that the second halves of hashes are made with.
    others: Seeds,
    /// The second halves of the hashes of strings, at the strings' places.
    strings: Interner<u64>,
    methods: Interner<MethodTexts>,
    /// The second halves of the hashes of stacks.
    stacks: Interner<u64>,
    /// How many strings and methods have been reported to the whole.
    told: [usize; 2],
    /// The frames of the stacks that have not been reported yet.
    frames: Vec<StackFrame>,
    /// Where each of these ends in them, and whether frames are missing.
    ends: Vec<(usize, bool)>,
}

/// The items that a thread which reads parts of a file has seen for the first time.
#[derive(Default)]
pub(crate) struct News {
    /// Strings of constants and their hashes.
    pub(crate) strings: Vec<(u64, Arc<str>)>,
    /// With the places of their texts among all strings.
    pub(crate) methods: Vec<MethodTexts>,
    /// The frames of all stacks, one after the other.
    pub(crate) frames: Vec<StackFrame>,
    /// Where each stack ends in them, and whether frames are missing.
    pub(crate) stacks: Vec<(usize, bool)>,
}

impl Tables {
    /// The place of a string of a constant.
    pub(crate) fn string(&mut self, text: &str) -> u32 {
        let hash = mixed_bytes(0, self.strings.seeds(), text.as_bytes());
        if let Some(part) = &mut self.part {
            let Seeds(others) = part.others;
            let second = mixed_bytes(0, others, text.as_bytes());
            if let Some(place) = part.strings.find(hash, |known| *known == second) {
                return place;
            }
            part.strings.add(hash, second);
            return self.strings.add(hash, text.into());
        }
        match self.strings.find(hash, |known| **known == *text) {
            Some(place) => place,
            None => self.strings.add(hash, text.into()),
        }
    }

    /// The same of what is shown of a class.
    pub(crate) fn shown_string(&mut self, place: u32) -> Option<u32> {
        let at = place as usize;
        if let Some(shown) = self.shown.get(at).and_then(|link| link.checked_sub(1)) {
            return Some(shown);
        }
        let shown = shown_class(self.strings.get(place)?);
        let shown = self.string(&shown);
        if self.shown.len() <= at {
            self.shown.resize(at + 1, 0);
        }
        if let Some(link) = self.shown.get_mut(at) {
            *link = shown.saturating_add(1);
        }
        Some(shown)
    }

    /// The seeds of the hashes of strings.
    pub(crate) fn seeds(&self) -> Seeds {
        Seeds(self.strings.seeds())
    }

    /// The place of a string whose hash is known.
    pub(crate) fn hashed_string(&mut self, hash: u64, text: Arc<str>) -> u32 {
        let place = self.strings.find(hash, |known| *known == text);
        place.unwrap_or_else(|| self.strings.add(hash, text))
    }

    /// Empty tables for a thread that reads parts of the same file.
    pub(crate) fn of_parts(seeds: Seeds) -> Self {
        Self {
            strings: Interner::with(seeds),
            part: Some(Part::default()),
            ..Self::default()
        }
    }

    /// The items since the last call.
    pub(crate) fn news(&mut self) -> News {
        let Some(part) = &mut self.part else {
            return News::default();
        };
        let [strings, methods] = part.told;
        part.told = [self.strings.len(), part.methods.len()];
        let strings = self.strings.from(strings);
        let methods = part.methods.from(methods);
        News {
            strings: strings
                .map(|(hash, text)| (hash, Arc::clone(text)))
                .collect(),
            methods: methods.map(|(_, method)| *method).collect(),
            frames: std::mem::take(&mut part.frames),
            stacks: std::mem::take(&mut part.ends),
        }
    }

    /// Takes out the tables that stay for the next part. The others belong to this one.
    pub(crate) fn take_lasting(&mut self) -> Self {
        Self {
            strings: std::mem::take(&mut self.strings),
            shown: std::mem::take(&mut self.shown),
            part: self.part.take(),
            ..Self::default()
        }
    }

    /// The place of a thread. Its names become strings of constants, which are hashed once: many
    /// threads may have the same long one.
    pub(crate) fn thread(&mut self, mut thread: Thread) -> u32 {
        let names = [
            Some(&mut thread.os_name),
            thread.java_name.as_mut(),
            thread.group.as_mut(),
        ];
        let [os, java, group] = names.map(|name| name.map_or(u32::MAX, |it| self.own(it)));
        let seeds = self.threads.seeds();
        let numbers = [thread.os_tid, thread.java_tid].map(i64::cast_unsigned);
        let hash = mixed(0, seeds, numbers[0], numbers[1]);
        let hash = mixed(hash, seeds, u64::from(os) << 32 | u64::from(java), 0);
        let rest = u64::from(group) << 1 | u64::from(thread.is_virtual);
        let hash = mixed(hash, seeds, rest, 0);
        // Equal strings share memory, and `Arc` compares addresses first.
        match self.threads.find(hash, |known| *known == thread) {
            Some(place) => place,
            None => self.threads.add(hash, thread),
        }
    }

    /// The place of a name, which becomes the string there.
    fn own(&mut self, name: &mut Arc<str>) -> u32 {
        const SHORT_MAX: usize = 64;
        let place = match name.len() <= SHORT_MAX {
            true => self.string(name),
            false => {
                let known = self.long_names.get(name);
                let place = known.unwrap_or_else(|| self.string(name));
                self.long_names.keep(name, place);
                place
            }
        };
        if let Some(own) = self.strings.get(place) {
            *name = Arc::clone(own);
        }
        place
    }

    /// The place of the method with these texts.
    pub(crate) fn method(&mut self, texts: MethodTexts) -> u32 {
        if let Some(part) = &mut self.part {
            return part.method(texts);
        }
        let hash = texts.hash(self.methods.seeds());
        let places = [
            texts.class,
            texts.name,
            texts.descriptor,
            texts.module,
            texts.location,
        ];
        let found = places.map(|place| self.strings.get(place));
        let [
            Some(class),
            Some(name),
            Some(descriptor),
            Some(module),
            Some(location),
        ] = found
        else {
            return u32::MAX;
        };
        // Equal texts share memory, so addresses are compared.
        let is_same = |known: &Method| {
            Arc::ptr_eq(&known.class, class)
                && Arc::ptr_eq(&known.name, name)
                && Arc::ptr_eq(&known.descriptor, descriptor)
                && Arc::ptr_eq(&known.module, module)
                && Arc::ptr_eq(&known.location, location)
                && known.hidden == texts.hidden
        };
        if let Some(place) = self.methods.find(hash, is_same) {
            return place;
        }
        let method = Method {
            class: Arc::clone(class),
            name: Arc::clone(name),
            descriptor: Arc::clone(descriptor),
            hidden: texts.hidden,
            module: Arc::clone(module),
            location: Arc::clone(location),
        };
        self.methods.add(hash, method)
    }

    /// The place of a stack, which is kept if it is new.
    pub(crate) fn stack(&mut self, frames: &[StackFrame], truncated: bool) -> u32 {
        if let Some(part) = &mut self.part {
            return part.stack(frames, truncated);
        }
        self.stacks.place(frames, truncated)
    }

    /// Keeps the fields of a wall-clock sample that other samples lack. Returns their place.
    pub(crate) fn wall(&mut self, wall: Wall) -> u32 {
        let place = u32::try_from(self.walls.len()).unwrap_or(u32::MAX);
        self.walls.push(wall);
        place
    }
}

impl Part {
    fn method(&mut self, texts: MethodTexts) -> u32 {
        let hash = texts.hash(self.methods.seeds());
        let known = self.methods.find(hash, |known| *known == texts);
        known.unwrap_or_else(|| self.methods.add(hash, texts))
    }

    fn stack(&mut self, frames: &[StackFrame], truncated: bool) -> u32 {
        let Seeds(others) = self.others;
        let [hash, second] = stack_hashes([self.stacks.seeds(), others], frames, truncated);
        if let Some(place) = self.stacks.find(hash, |known| *known == second) {
            return place;
        }
        self.frames.extend_from_slice(frames);
        self.ends.push((self.frames.len(), truncated));
        self.stacks.add(hash, second)
    }
}

/// A hash with each of some seeds.
fn stack_hashes<const N: usize>(
    seeds: [[u64; 2]; N],
    frames: &[StackFrame],
    truncated: bool,
) -> [u64; N] {
    let mut hashes = [u64::from(truncated); N];
    for frame in frames {
        let [method, line, bci] = [frame.method, frame.line as u32, frame.bci as u32];
        let place = u64::from(method) << 32 | u64::from(line);
        let code = u64::from(bci) << 8 | frame.kind as u64;
        for (hash, seeds) in hashes.iter_mut().zip(seeds) {
            *hash = mixed(*hash, seeds, place, code);
        }
    }
    hashes
}

/// Class names have slashes in the file. A path of a library begins with one and stays; `(kernel)`
/// is how the writer had to write `[kernel]`.
fn shown_class(name: &str) -> Arc<str> {
    if let Some(inner) = name
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
    {
        return format!("[{inner}]").into();
    }
    if name.starts_with('/') {
        name.into()
    } else {
        name.replace('/', ".").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FrameKind;

    fn frame(method: u32) -> StackFrame {
        StackFrame {
            method,
            line: 7,
            bci: 0,
            kind: FrameKind::C2,
        }
    }

    #[test]
    fn part_reports_items_once_with_stable_places() {
        let mut tables = Tables::of_parts(Seeds::default());
        let read = |tables: &mut Tables, names: &[&str], stacks: &[(&[u32], bool)]| {
            let methods: Vec<u32> = (names.iter())
                .map(|name| {
                    let place = tables.string(name);
                    tables.method(MethodTexts::unknown(place))
                })
                .collect();
            let place = |(methods, truncated): &(&[u32], bool)| {
                let frames: Vec<_> = methods.iter().copied().map(frame).collect();
                tables.stack(&frames, *truncated)
            };
            (methods, stacks.iter().map(place).collect::<Vec<_>>())
        };
        let first = read(
            &mut tables,
            &["a", "b", "a"],
            &[(&[1, 0], false), (&[], true)],
        );
        assert_eq!(first, (vec![0, 1, 0], vec![0, 1]));
        let news = tables.news();
        assert_eq!((news.strings.len(), news.methods.len()), (2, 2));
        assert_eq!(news.stacks, [(2, false), (2, true)]);
        // The next part of the file: one method and two stacks are new.
        let mut tables = tables.take_lasting();
        let stacks: [(&[u32], bool); 4] = [
            (&[], true),
            (&[1, 0], false),
            (&[1, 0], true),
            (&[2], false),
        ];
        let second = read(&mut tables, &["b", "c"], &stacks);
        assert_eq!(second, (vec![1, 2], vec![1, 0, 2, 3]));
        let news = tables.news();
        assert_eq!(news.strings.len(), 1);
        assert_eq!(news.methods, [MethodTexts::unknown(2)]);
        assert_eq!(news.frames, [frame(1), frame(0), frame(2)]);
        assert_eq!(news.stacks, [(2, true), (3, false)]);
        assert!(tables.news().stacks.is_empty());
    }

    #[test]
    fn class_names_get_dots_and_other_names_stay() {
        assert_eq!(&*shown_class("java/lang/String"), "java.lang.String");
        assert_eq!(&*shown_class("(kernel)"), "[kernel]");
        assert_eq!(&*shown_class("libjvm.so"), "libjvm.so");
        assert_eq!(&*shown_class("/usr/lib/libc.so.6"), "/usr/lib/libc.so.6");
    }
}

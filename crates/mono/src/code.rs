//! The methods that have code. They are noted when the code appears, because Mono has no report for
//! the unloading of a domain.
//!
//! A handler finds a method by its code's start, in a table of atomic words. Everything else
//! happens on ordinary threads, under a lock that is never held during calls of Mono. A frame holds
//! the method's number. So new code at an old address is not mistaken for the old code, however
//! late its samples are named. The last methods whose code was replaced keep their names. Otherwise
//! a program that makes dynamic methods would fill the memory.

use crate::names::{self, Kind};
use dwell_recorder::record::names::{Name, Origin};
use dwell_recorder::sys::published::Published;
use dwell_walker::FrameKind;
use dwell_walker::native::Rule;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A place in the source: offset from the start of the code, and line.
pub type Line = (u32, u32);

/// A method with code.
#[derive(Clone, Debug)]
pub struct Method {
    /// Start of its code.
    pub start: u64,
    /// Length of its code, in bytes.
    pub len: u32,
    /// Its kind.
    pub kind: Kind,
    /// Whether it was compiled before the program ran.
    pub is_ahead: bool,
    /// Its name.
    pub called: Arc<Called>,
    /// Its lines, by offset; empty if unknown.
    pub lines: Arc<[Line]>,
    /// The unwind rule of its frame at calls.
    pub rule: Rule,
}

impl Method {
    /// The entry that a handler finds.
    fn found(&self, number: u32) -> Found {
        Found {
            number,
            kind: self.kind,
            is_ahead: self.is_ahead,
        }
    }

    /// The line of the code at `offset`; -1 if it is not known.
    #[must_use]
    pub fn line(&self, offset: u32) -> i32 {
        let after = self.lines.partition_point(|(begin, _)| *begin <= offset);
        // The code before the first statement sets up its frame.
        let line = self.lines.get(after.saturating_sub(1));
        line.and_then(|(_, row)| i32::try_from(*row).ok())
            .unwrap_or(-1)
    }

    fn is_same(&self, other: &Method) -> bool {
        let is_named = self.called == other.called && self.lines == other.lines;
        is_named && self.len == other.len && self.rule == other.rule
    }
}

/// A method as a handler finds it: number and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its number.
    pub number: u32,
    /// Its kind.
    pub kind: Kind,
    /// Whether it was compiled before the program ran.
    pub is_ahead: bool,
}

impl Found {
    const BITS: u32 = 3;
    const AHEAD: u32 = 4;

    const fn to_bits(self) -> u32 {
        let ahead = if self.is_ahead { Self::AHEAD } else { 0 };
        self.number << Self::BITS | ahead | self.kind as u32
    }

    const fn from_bits(bits: u32) -> Found {
        Found {
            number: bits >> Self::BITS,
            kind: Kind::from_bits(bits & 3),
            is_ahead: bits & Self::AHEAD != 0,
        }
    }

    /// The kind of its frames.
    #[inline]
    #[must_use]
    pub const fn frame_kind(self) -> FrameKind {
        match (self.kind, self.is_ahead) {
            (Kind::ToNative, _) => FrameKind::ManagedNative,
            (Kind::Plain | Kind::FromNative, true) => FrameKind::Ahead,
            (Kind::Plain | Kind::FromNative, false) => FrameKind::C2,
        }
    }
}

/// New code.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Start of the code.
    pub start: u64,
    /// Its length, in bytes.
    pub len: u32,
    /// Whether it was compiled before the program ran.
    pub is_ahead: bool,
}

/// Name and origin of a method.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Called {
    /// Its full name, in Mono's form.
    pub full: String,
    /// Its image.
    pub origin: Option<Arc<Origin>>,
}

impl Called {
    /// Its name, parsed. Only for methods that occur in samples, because most methods never do.
    #[must_use]
    pub fn name(&self) -> Name {
        Name {
            origin: self.origin.clone(),
            ..names::name(&self.full)
        }
    }
}

/// Methods by the start of their code: open addressing, written by one thread at a time.
struct Table {
    slots: Box<[(AtomicU64, AtomicU32)]>,
}

impl Table {
    fn new(slots: usize) -> Table {
        let empty = || (AtomicU64::new(0), AtomicU32::new(0));
        Table {
            slots: (0..slots.next_power_of_two()).map(|_| empty()).collect(),
        }
    }

    /// The slot of `start`, or the empty one where it would be.
    #[inline]
    fn slot(&self, start: u64) -> Option<&(AtomicU64, AtomicU32)> {
        // Fibonacci hashing: the upper half of the product depends on all bits.
        let first = (start.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        let mask = self.slots.len().wrapping_sub(1);
        for step in 0..self.slots.len() {
            let slot = self.slots.get(first.wrapping_add(step) & mask)?;
            let there = slot.0.load(Ordering::Acquire);
            if there == start || there == 0 {
                return Some(slot);
            }
        }
        None
    }

    /// False if the table is full.
    fn put(&self, start: u64, found: Found) -> bool {
        let Some((key, value)) = self.slot(start) else {
            return false;
        };
        // The value first: a thread that sees the key then sees a value for it.
        value.store(found.to_bits(), Ordering::Release);
        key.store(start, Ordering::Release);
        true
    }

    #[inline]
    fn get(&self, start: u64) -> Option<Found> {
        let (key, value) = self.slot(start)?;
        let is_there = key.load(Ordering::Acquire) == start && start != 0;
        is_there.then(|| Found::from_bits(value.load(Ordering::Acquire)))
    }
}

static TABLE: Published<Table> = Published::new();

/// Methods without code that keep their names. Samples are named within about a second: that is
/// enough for several thousand methods a second, and 2 to 4 MB.
const REPLACED_MAX: usize = 8192;
/// Numbers are below this: a handler's entry has three more bits.
const NUMBERS: u32 = 1 << (u32::BITS - Found::BITS);

#[derive(Default)]
struct Inner {
    /// By number.
    methods: FxHashMap<u32, Method>,
    /// The next number, if it is free.
    next: u32,
    /// Numbers of methods whose code was replaced, the oldest first.
    replaced: VecDeque<u32>,
    /// Numbers of the present methods, by the start of their code.
    by_start: BTreeMap<u64, u32>,
    /// Other code, by its start: length and name.
    stubs: BTreeMap<u64, (u64, Arc<str>)>,
    called: FxHashSet<Arc<Called>>,
    /// By an image's name and its file.
    origins: FxHashMap<(String, String), Option<Arc<Origin>>>,
    /// Size of the table, and the number of used entries.
    room: usize,
    used: usize,
}

static INNER: Mutex<Option<Inner>> = Mutex::new(None);

impl Inner {
    /// The one copy of a name.
    fn called(&mut self, called: Called) -> Arc<Called> {
        if let Some(known) = self.called.get(&called) {
            return Arc::clone(known);
        }
        let new = Arc::new(called);
        self.called.insert(Arc::clone(&new));
        new
    }

    /// Adds a method at the start of its code, and returns its number.
    fn put(&mut self, method: Method) -> u32 {
        while self.methods.contains_key(&self.next) {
            self.next = (self.next + 1) % NUMBERS;
        }
        let number = self.next;
        self.next = (number + 1) % NUMBERS;
        let start = method.start;
        // Methods that began within this code, and were freed without notice.
        let end = start.saturating_add(u64::from(method.len).max(1));
        let inside = self.by_start.range(start..end).map(|(start, _)| *start);
        for start in inside.collect::<Vec<u64>>() {
            self.replaced.extend(self.by_start.remove(&start));
        }
        self.by_start.insert(start, number);
        self.methods.insert(number, method);
        while self.replaced.len() > REPLACED_MAX {
            self.forget_oldest();
        }
        number
    }

    fn forget_oldest(&mut self) {
        let Some(number) = self.replaced.pop_front() else {
            return;
        };
        let Some(method) = self.methods.remove(&number) else {
            return;
        };
        // One is the method's, one that of the set.
        if Arc::strong_count(&method.called) <= 2 {
            self.called.remove(&method.called);
        }
    }
}

/// Counts new code.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Number of times that code has appeared. While it is unchanged, so is the meaning of each
/// address.
#[must_use]
pub fn changes() -> u64 {
    CHANGES.load(Ordering::Relaxed)
}

fn inner() -> MutexGuard<'static, Option<Inner>> {
    INNER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The method whose code begins at `start`. Safe in a handler.
#[inline]
#[must_use]
pub fn find(start: u64) -> Option<Found> {
    TABLE.read(|table| table.get(start))?
}

/// The origin of an image's methods, by the image's name and file.
#[must_use]
pub fn origin(image: String, file: String) -> Option<Arc<Origin>> {
    let mut guard = inner();
    let origins = &mut guard.get_or_insert_default().origins;
    let known = origins.entry((image, file));
    let new = known.or_insert_with_key(|(image, file)| names::origin(image, file).map(Arc::new));
    new.clone()
}

/// Adds a method with its code.
pub fn add(place: Place, called: Called, lines: Vec<Line>, rule: Rule) {
    const ROOM_MIN: usize = 4096;
    let start = place.start;
    let mut guard = inner();
    let inner = guard.get_or_insert_default();
    let called = inner.called(called);
    let method = Method {
        start,
        len: place.len,
        kind: names::kind(&called.full),
        is_ahead: place.is_ahead,
        called,
        lines: lines.into(),
        rule,
    };
    // The same method again: some are made and freed over and over.
    let old = inner.by_start.get(&start).copied();
    if old.is_some_and(|old| is_same(inner, old, &method)) {
        return;
    }
    CHANGES.fetch_add(1, Ordering::Relaxed);
    let (kind, is_ahead) = (method.kind, method.is_ahead);
    let number = inner.put(method);
    let found = Found {
        number,
        kind,
        is_ahead,
    };
    // Entries of freed code stay in the table until it is made again.
    if old.is_none() {
        inner.used += 1;
    }
    if inner.used * 2 <= inner.room {
        TABLE.read(|table| table.put(start, found));
        return;
    }
    inner.used = inner.by_start.len();
    inner.room = (inner.used * 4).max(ROOM_MIN);
    let table = Table::new(inner.room);
    for (start, number) in &inner.by_start {
        if let Some(method) = inner.methods.get(number) {
            table.put(*start, method.found(*number));
        }
    }
    TABLE.replace(table);
}

fn is_same(inner: &Inner, number: u32, method: &Method) -> bool {
    let old = inner.methods.get(&number);
    old.is_some_and(|old| old.is_same(method))
}

/// Adds code that does not belong to a method.
pub fn add_stub(start: u64, len: u64, name: &str) {
    let mut guard = inner();
    let inner = guard.get_or_insert_default();
    CHANGES.fetch_add(1, Ordering::Relaxed);
    inner.stubs.insert(start, (len, name.into()));
}

/// The method with this number.
#[must_use]
pub fn method(number: u32) -> Option<Method> {
    inner().as_ref()?.methods.get(&number).cloned()
}

/// The method whose code begins at `start` now.
#[must_use]
pub fn method_at(start: u64) -> Option<Method> {
    let guard = inner();
    let inner = guard.as_ref()?;
    let number = inner.by_start.get(&start)?;
    inner.methods.get(number).cloned()
}

/// The method that has code at `pc` now, and its entry as a handler would find it.
#[must_use]
pub fn method_around(pc: u64) -> Option<(Found, Method)> {
    let guard = inner();
    let inner = guard.as_ref()?;
    let (_, number) = inner.by_start.range(..=pc).next_back()?;
    let method = inner.methods.get(number)?;
    let is_there = pc - method.start < u64::from(method.len);
    is_there.then(|| (method.found(*number), method.clone()))
}

/// The name of the other code at `pc`.
#[must_use]
pub fn stub(pc: u64) -> Option<Arc<str>> {
    let guard = inner();
    let (start, (len, name)) = guard.as_ref()?.stubs.range(..=pc).next_back()?;
    (pc - start < *len).then(|| Arc::clone(name))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]
mod tests {
    use super::*;

    fn found(number: u32) -> Found {
        Found {
            number,
            kind: Kind::from_bits(number % 3),
            is_ahead: number.is_multiple_of(2),
        }
    }

    fn place(start: u64, len: u32) -> Place {
        let is_ahead = false;
        Place {
            start,
            len,
            is_ahead,
        }
    }

    #[test]
    fn methods_of_an_image_share_its_origin() {
        let of = |image: &str, file: &str| origin(image.into(), file.into());
        let one = of("Work", "/app/Work.exe").unwrap();
        assert!(Arc::ptr_eq(&one, &of("Work", "/app/Work.exe").unwrap()));
        assert_eq!(one.location, "file:/app/Work.exe");
        assert_eq!(
            of("Work", "/b/Work.exe").unwrap().location,
            "file:/b/Work.exe"
        );
        assert_eq!(of("", ""), None);
    }

    fn called(full: &str) -> Called {
        Called {
            full: full.to_owned(),
            origin: None,
        }
    }

    #[test]
    fn table_returns_stored_values() {
        let table = Table::new(64);
        for number in 0..32 {
            assert!(table.put(u64::from(number) * 16 + 16, found(number)));
        }
        for number in 0..32 {
            let there = table.get(u64::from(number) * 16 + 16);
            assert_eq!(there, Some(found(number)));
        }
        assert_eq!(table.get(8), None);
        assert_eq!(table.get(0), None);
    }

    #[test]
    fn full_table_refuses() {
        let table = Table::new(2);
        let one = found(1);
        assert!(table.put(1, one) && table.put(2, one));
        assert!(!table.put(3, one));
        assert_eq!(table.get(3), None);
    }

    /// Adds the method `A:M<n>`.
    fn put(inner: &mut Inner, n: u32, at: Place) -> u32 {
        let called = inner.called(called(&format!("A:M{n} ()")));
        inner.put(Method {
            start: at.start,
            len: at.len,
            kind: Kind::Plain,
            is_ahead: at.is_ahead,
            called,
            lines: Arc::default(),
            rule: Rule::Gap,
        })
    }

    #[test]
    fn table_of_a_program_that_makes_methods_for_ever_is_bounded() {
        const MADE: u32 = 100_000;
        let mut inner = Inner::default();
        let kept = put(&mut inner, MADE, place(0x1000, 64));
        let mut numbers = Vec::new();
        for n in 0..MADE {
            // Code of other lengths is where freed code was.
            let at = place(0x2000 + u64::from(n * 7 % 61) * 48, 40 + n % 90);
            numbers.push(put(&mut inner, n, at));
        }
        assert!(inner.by_start.len() <= 62, "{}", inner.by_start.len());
        let most = REPLACED_MAX + inner.by_start.len();
        assert!(inner.methods.len() <= most, "{}", inner.methods.len());
        assert_eq!(inner.called.len(), inner.methods.len());
        let name = |inner: &Inner, number: u32| {
            let method = inner.methods.get(&number)?;
            Some(method.called.name().name)
        };
        for (n, number) in numbers.iter().enumerate().rev().take(REPLACED_MAX) {
            assert_eq!(name(&inner, *number), Some(format!("M{n}")));
        }
        assert_eq!(name(&inner, numbers[0]), None);
        assert_eq!(name(&inner, kept), Some(format!("M{MADE}")));
    }

    #[test]
    fn numbers_begin_again_with_those_that_are_free() {
        let mut inner = Inner::default();
        let add = |inner: &mut Inner, n: u32| put(inner, n, place(u64::from(n) * 64, 64));
        assert_eq!([1, 2].map(|n| add(&mut inner, n)), [0, 1]);
        inner.next = NUMBERS - 1;
        assert_eq!([3, 4].map(|n| add(&mut inner, n)), [NUMBERS - 1, 2]);
        for number in [2, NUMBERS - 1] {
            assert_eq!(Found::from_bits(found(number).to_bits()), found(number));
        }
    }

    #[test]
    fn code_at_a_reused_address_has_a_new_number() {
        let base = 0x7000_0000_0000;
        let first_is_there = || {
            let lines = vec![(4, 10), (50, 12)];
            add(place(base, 100), called("A:First ()"), lines, Rule::Gap);
        };
        first_is_there();
        let first = find(base).unwrap();
        first_is_there();
        assert_eq!(find(base), Some(first), "the same again");
        add(place(base, 80), called("A:Second ()"), vec![], Rule::Gap);
        let second = find(base).unwrap();
        assert_ne!(first.number, second.number);
        let old = method(first.number).unwrap();
        assert_eq!(old.called.name().name, "First");
        assert_eq!([0, 49, 50, 99].map(|at| old.line(at)), [10, 10, 12, 12]);
        assert_eq!(method(second.number).unwrap().line(3), -1);
        assert_eq!(method_at(base).unwrap().called.name().name, "Second");
        assert_eq!(method_around(base + 79).unwrap().0, second);
        assert!(method_around(base + 80).is_none());
        for n in 1..9000u64 {
            let at = place(base + n * 128, 64);
            add(at, called(&format!("A:M{n} ()")), vec![], Rule::Gap);
        }
        for n in 1..9000u64 {
            let found = find(base + n * 128).unwrap();
            let name = method(found.number).unwrap().called.name().name;
            assert_eq!(name, format!("M{n}"));
        }
        add_stub(base - 64, 32, "throw");
        assert_eq!(stub(base - 40).as_deref(), Some("throw"));
        assert!(stub(base - 32).is_none());
    }
}

//! The structures that the reader from outside uses besides stacks: threads, monitors, objects,
//! classes, names, sets, text, safepoints. They are read from snapshots of every JDK with wrong
//! words, and from arbitrary memory. Each read ends soon, and its result is bounded. Seeds are
//! fixed.
#![allow(missing_docs)]

use dwell_frozen::Frozen;
use dwell_walker::hotspot::objects::ClassWord;
use dwell_walker::hotspot::sets::{SetFields, Sets};
use dwell_walker::hotspot::strings::{self, StringFields};
use dwell_walker::hotspot::{
    CodeCache, Layout, classes, continuation, fields, locked, monitors, names, objects, operations,
    safepoints, threads,
};
use dwell_walker::machine::X86_64;
use dwell_walker::native::NativeRegs;
use dwell_walker::{Fault, Memory};
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// Maximum number of reads for one structure: chains of some thousand entries, and the code cache.
const READS_MAX: u64 = 400_000;
/// Maximum number of reads for a list: threads and classes have at most a million entries, with
/// some words each.
const LIST_READS_MAX: u64 = 60_000_000;

/// Numbers that look random (xorshift*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// The words of a snapshot. Other addresses give another word of it, so that pointers lead from one
/// to another, also in circles. One in some number of addresses is unreadable.
struct Anything<'a> {
    frozen: &'a Frozen,
    words: &'a [u64],
    holes: u64,
    reads: Cell<u64>,
}

impl Memory for Anything<'_> {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        self.reads.set(self.reads.get() + 1);
        assert!(self.reads.get() <= LIST_READS_MAX, "no end");
        let at = (addr >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        if at.is_multiple_of(self.holes) {
            return Err(Fault { addr });
        }
        if let Some(Some(word)) = self.frozen.words.get(&addr) {
            return Ok(*word);
        }
        Ok(self.words[at as usize % self.words.len()])
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        for (i, byte) in buf.iter_mut().enumerate() {
            let at = addr.wrapping_add(i as u64);
            *byte = (self.word(at & !7)? >> ((at & 7) * 8)) as u8;
        }
        Ok(())
    }
}

fn fixtures() -> Vec<Frozen> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/walks");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "walk"));
    paths.sort();
    let parse = |path| Frozen::parse(&std::fs::read_to_string(path).unwrap()).unwrap();
    paths.iter().map(parse).collect()
}

/// Changes some words and some offsets of the snapshot.
fn change(frozen: &mut Frozen, random: &mut Random) {
    let keys: Vec<u64> = frozen.words.keys().copied().collect();
    for _ in 0..1 + random.below(16) {
        let key = keys[random.below(keys.len())];
        let other = keys[random.below(keys.len())];
        let word = match random.below(4) {
            0 => random.next(),
            1 => other,
            2 => random.next() % 4096,
            _ => key,
        };
        frozen.words.insert(key, Some(word));
    }
    let mut known = Vec::new();
    frozen.layout.for_each(|name, _| known.push(name));
    for _ in 0..random.below(4) {
        let name = known[random.below(known.len())];
        frozen.layout.set(name, random.next() % 4096);
    }
}

fn look_at_lists(mem: &Anything<'_>, layout: &Layout) {
    let mut count = 0;
    let _ = threads::for_each(mem, layout, |_| count += 1);
    let _ = safepoints::for_each_late(mem, layout, |_, _| count += 1);
    let _ = classes::for_each_boot_class(mem, layout, |_| false);
    assert!(count <= 2 << 20, "{count} threads");
}

fn look_at_one(mem: &Anything<'_>, layout: &Layout, addr: u64) {
    let mut buf = [0; 64];
    let _ = monitors::contended(mem, layout, addr);
    let _ = monitors::owner(mem, layout, addr);
    let _ = monitors::object(mem, layout, addr);
    let _ = monitors::holds(mem, layout, addr, addr);
    let _ = continuation::reference(mem, layout, addr);
    let _ = names::method_key(mem, layout, addr);
    let _ = names::c_string(mem, addr, &mut buf).map(|name| assert!(name.len() <= 64));
    let _ = objects::class_name(mem, layout, addr, &mut buf).map(|it| assert!(it.len() <= 64));
    let _ = objects::is_kind_of(mem, layout, addr, b"java/lang/Thread");
    let _ = objects::class_of_mirror(mem, layout, addr);
    let _ = operations::at(X86_64, mem, addr, &|_| true);
    let stack = (addr, addr.wrapping_add(1 << 16));
    let _ = operations::on_stack(X86_64, mem, addr, stack, &|_| true);
    let name = safepoints::operation_name(mem, addr, 7, &mut buf);
    assert!(name.len() <= 64);
    let _ = fields::offset(mem, layout, addr, b"tid", b"J");
    for how in ClassWord::ALL {
        let _ = objects::class_of(mem, layout, how, addr);
    }
    let at = StringFields {
        value: 12,
        coder: 16,
        length: 12,
        elements: 16,
    };
    let mut units = 0;
    let _ = strings::for_each_unit(mem, layout, &at, addr, 512, |_| units += 1);
    assert!(units <= 512, "{units} characters");
    let mut elements = 0;
    let sets = Sets {
        mem,
        layout,
        fields: &SetFields {
            map: 12,
            table: 16,
            hash: 12,
            key: 16,
            next: 24,
            first: 16,
            next_table: 16,
            length: 12,
            elements: 16,
        },
    };
    if let Ok(buckets) = sets.buckets(addr) {
        for index in 0..buckets.len().min(16) {
            let _ = sets.elements(&buckets, index, &mut |_| elements += 1);
        }
    }
    assert!(elements <= 16 * 256, "{elements} elements");
}

fn look_at_locks(mem: &Anything<'_>, frozen: &Frozen, addr: u64) {
    let mut count = 0;
    let _ = locked::interpreted(mem, &frozen.layout, addr, addr, |_| count += 1);
    let code = CodeCache::from_words(&frozen.code);
    if let Ok(Some(blob)) = code.find(mem, &frozen.layout, addr) {
        let at = NativeRegs {
            pc: addr,
            sp: addr.wrapping_sub(64),
            fp: addr,
        };
        let _ = locked::compiled(X86_64, mem, &frozen.layout, &blob, at, |_, _| count += 1);
    }
    // The maximum numbers of scopes of a frame and of monitors of a scope.
    assert!(count <= 64 * 513, "{count} monitors");
}

#[test]
fn reads_of_broken_structures_end_soon() {
    let (mut random, mut most, mut looks) = (Random(0x5eed), 0, 0);
    for (number, fixture) in fixtures().into_iter().enumerate() {
        for round in 0..6 {
            let mut frozen = fixture.clone();
            change(&mut frozen, &mut random);
            let words: Vec<u64> = frozen.words.values().flatten().copied().collect();
            let keys: Vec<u64> = frozen.words.keys().copied().collect();
            let mem = Anything {
                frozen: &frozen,
                words: &words,
                holes: 2 + random.next() % 64,
                reads: Cell::new(0),
            };
            // A circle of a million threads takes long.
            if round == 0 && number == 0 {
                look_at_lists(&mem, &frozen.layout);
                mem.reads.set(0);
            }
            for _ in 0..8 {
                let addr = match random.below(3) {
                    0 => keys[random.below(keys.len())],
                    1 => words[random.below(words.len())],
                    _ => random.next(),
                };
                look_at_one(&mem, &frozen.layout, addr);
                look_at_locks(&mem, &frozen, addr);
                most = most.max(mem.reads.replace(0));
                looks += 1;
            }
        }
    }
    println!("{looks} looks, {most} words at most");
    assert!(most <= READS_MAX, "{most} words");
}

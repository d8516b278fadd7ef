//! Structures that the reader from outside reads in addition to stacks (threads, monitors, objects,
//! classes, names, safepoints), in any memory: each read ends soon, and its answer is bounded.
#![no_main]

use dwell_frozen::Frozen;
use dwell_walker::hotspot::objects::ClassWord;
use dwell_walker::hotspot::{
    Layout, classes, continuation, fields, locked, monitors, names, objects, operations,
    safepoints, threads,
};
use dwell_walker::native::NativeRegs;
use dwell_walker::{Fault, Host, Memory};
use libfuzzer_sys::fuzz_target;
use std::cell::Cell;
use std::path::Path;
use std::sync::OnceLock;

/// Words that one query may read: lists have up to a million entries, each of a few words.
const READS_MAX: u64 = 50_000_000;
/// Most inputs end the memory after so many: walking round in circles is much of the same.
const READS_MOST: u64 = 20_000;

static LAYOUTS: OnceLock<Vec<Frozen>> = OnceLock::new();

/// A few words, which are everywhere: pointers lead from one to another, in circles as well.
struct Anything<'a> {
    words: &'a [u64],
    reads: Cell<u64>,
    ends: bool,
}

impl Memory for Anything<'_> {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        self.reads.set(self.reads.get() + 1);
        assert!(self.reads.get() <= READS_MAX, "no end");
        if self.ends && self.reads.get() > READS_MOST {
            return Err(Fault { addr });
        }
        let at = (addr >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        match self.words.get(at as usize % self.words.len().max(1)) {
            Some(0xdead) | None => Err(Fault { addr }),
            Some(word) => Ok(*word),
        }
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        for (i, byte) in buf.iter_mut().enumerate() {
            let at = addr.wrapping_add(i as u64);
            *byte = (self.word(at & !7)? >> ((at & 7) * 8)) as u8;
        }
        Ok(())
    }
}

fuzz_target!(|input: (u8, Vec<u64>, Vec<(u8, u64)>, u64)| {
    let (which, words, changes, addr) = input;
    let layouts = LAYOUTS.get_or_init(load);
    let frozen = &layouts[usize::from(which >> 4) % layouts.len()];
    let mut layout = frozen.layout.clone();
    let mut known = Vec::new();
    layout.for_each(|name, _| known.push(name));
    for (field, value) in changes {
        layout.set(known[usize::from(field) % known.len()], value % 4096);
    }
    let look = |what: &dyn Fn(&Anything<'_>, &Layout)| {
        let memory = Anything {
            words: &words,
            reads: Cell::new(0),
            ends: which & 15 != 0,
        };
        what(&memory, &layout);
    };
    look(&|mem, layout| {
        let _ = threads::for_each(mem, layout, |_| ());
    });
    look(&|mem, layout| {
        let _ = safepoints::for_each_late(mem, layout, |_, _| ());
    });
    look(&|mem, layout| {
        let _ = classes::for_each_boot_class(mem, layout, |_| false);
    });
    look(&|mem, layout| {
        let _ = monitors::contended(mem, layout, addr);
        let _ = monitors::owner(mem, layout, addr);
        let _ = monitors::object(mem, layout, addr);
        let _ = monitors::holds(mem, layout, addr, addr);
        let _ = continuation::reference(mem, layout, addr);
    });
    look(&|mem, layout| {
        let mut buf = [0; 64];
        let _ = names::method_key(mem, layout, addr);
        let _ = names::c_string(mem, addr, &mut buf).map(|name| assert!(name.len() <= 64));
        let _ = objects::class_name(mem, layout, addr, &mut buf).map(|it| assert!(it.len() <= 64));
        let _ = objects::is_kind_of(mem, layout, addr, b"java/lang/Thread");
        let _ = objects::class_of_mirror(mem, layout, addr);
        let _ = fields::offset(mem, layout, addr, b"tid", b"J");
        for how in ClassWord::ALL {
            let _ = objects::class_of(mem, layout, how, addr);
        }
    });
    look(&|mem, _| {
        let mut buf = [0; 64];
        let _ = operations::at(Host, mem, addr, &|_| true);
        let stack = (addr, addr.wrapping_add(1 << 16));
        let _ = operations::on_stack(Host, mem, addr, stack, &|_| true);
        let name = safepoints::operation_name(mem, addr, 7, &mut buf);
        assert!(name.len() <= 64);
    });
    look(&|mem, layout| {
        let mut count = 0;
        let _ = locked::interpreted(mem, layout, addr, addr, |_| count += 1);
        let at = NativeRegs {
            pc: addr,
            sp: addr.wrapping_sub(64),
            fp: addr,
        };
        let code = dwell_walker::hotspot::CodeCache::from_words(&frozen.code);
        if let Ok(Some(blob)) = code.find(mem, layout, addr) {
            let _ = locked::compiled(Host, mem, layout, &blob, at, |_, _| count += 1);
        }
        assert!(count <= 64 * 513, "{count} monitors");
    });
});

fn load() -> Vec<Frozen> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/walks");
    let entries = std::fs::read_dir(folder).expect("the fixtures");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let text = |path| std::fs::read_to_string(path).expect("a text");
    let parse = |path| Frozen::parse(&text(path)).expect("a walk");
    paths.iter().map(parse).collect()
}

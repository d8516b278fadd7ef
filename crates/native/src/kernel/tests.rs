//! Tests of the names of kernel functions on made-up files, whole and in pieces. Must not read the
//! machine's own.

use super::*;
use proptest::prelude::*;

const TEXT: &str = "ffffffff81000000 T _stext\nffffffff81000000 T _text\n\
    ffffffff81000080 D data\nffffffff81000100 t do_one\nffffffff81000200 r end\n\
    ffffffffc0000040 t in_module\t[ext4]\nffffffffc0000000 t init\t[ext4]\n\
    ffffffffc0000040 t alias\t[ext4]\nffffffffa0000000 t early\t[kvm]\n";

/// A file that is read in pieces of some length, and counts what was read.
struct Pieces<'a> {
    text: &'a [u8],
    len: usize,
    given: &'a std::cell::Cell<usize>,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.len.min(buf.len()).min(self.text.len());
        let (now, rest) = self.text.split_at(n);
        buf[..n].copy_from_slice(now);
        self.text = rest;
        self.given.set(self.given.get() + n);
        Ok(n)
    }
}

fn loaded(text: &[u8], len: usize) -> Kernel {
    let mut kernel = Kernel::default();
    let given = &std::cell::Cell::new(0);
    kernel.load(Ok(Pieces { text, len, given }), &mut || ());
    kernel
}

fn name(kernel: &Kernel, pc: u64) -> Option<&str> {
    kernel.function(pc).map(|function| function.name)
}

/// Lines in the kernel's format, with `count` functions of 16 bytes each, and modules after them.
fn long_file(count: u64) -> String {
    let own = (0..count).map(|i| format!("{:016x} t function_{i}\n", FIRST + 16 * i));
    let data = (0..count).map(|i| format!("{:016x} d data_{i}\n", FIRST + (1 << 24) + i));
    let module = (0..200).rev();
    let module = module.map(|i| format!("{:016x} t in_module_{i}\t[ext4]\n", MODULE + 64 * i));
    own.chain(data).chain(module).collect()
}

const FIRST: u64 = 0xffff_ffff_8100_0000;
const MODULE: u64 = 0xffff_ffff_c020_0000;

#[test]
fn functions_are_found_however_the_file_arrives() {
    for pieces in [1, 7, 64, 4096] {
        let kernel = loaded(TEXT.as_bytes(), pieces);
        // The first of several names.
        assert_eq!(name(&kernel, 0xffff_ffff_8100_0000), Some("_stext"));
        assert_eq!(name(&kernel, 0xffff_ffff_8100_00ff), Some("_stext"));
        assert_eq!(name(&kernel, 0xffff_ffff_8100_0200), Some("do_one"));
        assert_eq!(name(&kernel, 0xffff_ffff_c000_0004), Some("init"));
        assert_eq!(name(&kernel, 0xffff_ffff_c000_0044), Some("in_module"));
        assert_eq!(name(&kernel, 0xffff_ffff_a000_0044), Some("early"));
        assert_eq!(name(&kernel, 0xffff_ffff_d000_0000), None);
        assert_eq!(name(&kernel, 0x10), None);
        let init = kernel.function(0xffff_ffff_c000_0004).unwrap();
        assert_eq!(
            (init.start, init.end),
            (0xffff_ffff_c000_0000, 0xffff_ffff_c000_0040)
        );
    }
}

#[test]
fn is_read_as_far_as_is_needed() {
    let text = long_file(5000);
    let (mut kernel, given) = (Kernel::default(), std::cell::Cell::new(0));
    let mut times = 0;
    let mut learn = |kernel: &mut Kernel, wanted: &[u64]| {
        given.set(0);
        let open = || {
            times += 1;
            let (text, len) = (text.as_bytes(), 4071);
            Ok(Pieces {
                text,
                len,
                given: &given,
            })
        };
        kernel.learn(wanted, open, &mut || ());
        given.get()
    };
    assert_eq!(learn(&mut kernel, &[]), 0);
    let half = FIRST + 16 * 2500;
    let read = learn(&mut kernel, &[half + 3, FIRST]);
    // Up to the end of the code, and a little more.
    let needed = text.find(" d ").unwrap() - 16;
    assert!((needed..needed + 10_000).contains(&read), "{read}");
    assert_eq!(name(&kernel, half + 3), Some("function_2500"));
    assert_eq!(name(&kernel, FIRST), Some("function_0"));
    // Addresses in code that was read do not cause another read.
    assert_eq!(learn(&mut kernel, &[half, FIRST + 16 * 4990]), 0);
    assert_eq!(name(&kernel, FIRST + 16 * 4990), Some("function_4990"));
    assert_eq!(learn(&mut kernel, &[half, FIRST + 16 * 77]), 0);
    assert_eq!(name(&kernel, FIRST + 16 * 77 + 15), Some("function_77"));
    // Another address causes a read of the whole file, and then there are no further reads.
    assert_eq!(learn(&mut kernel, &[MODULE + 70]), text.len());
    assert_eq!(name(&kernel, MODULE + 70), Some("in_module_1"));
    assert_eq!(name(&kernel, half + 3), Some("function_2500"));
    assert_eq!(learn(&mut kernel, &[MODULE + (1 << 29), 0x1000]), 0);
    assert_eq!(times, 2);
}

#[test]
fn missing_name_is_searched_in_the_whole_list() {
    let text = long_file(2000);
    for wanted in [FIRST - 16, MODULE + 70, 0x1000] {
        let (mut kernel, given) = (Kernel::default(), std::cell::Cell::new(0));
        let open = || {
            let (text, len) = (text.as_bytes(), 4071);
            Ok(Pieces {
                text,
                len,
                given: &given,
            })
        };
        kernel.learn(&[wanted, FIRST], open, &mut || ());
        assert_eq!(given.get(), text.len(), "{wanted:#x}");
        assert_eq!(name(&kernel, FIRST), Some("function_0"));
    }
}

#[test]
fn file_without_addresses_is_soon_abandoned() {
    let line = |i: u64| format!("0000000000000000 t function_{i}\n");
    let text: String = (0..5000).map(line).collect();
    let (mut kernel, given) = (Kernel::default(), std::cell::Cell::new(0));
    let open = || {
        let (text, len) = (text.as_bytes(), 4071);
        Ok(Pieces {
            text,
            len,
            given: &given,
        })
    };
    for _ in 0..3 {
        kernel.learn(&[FIRST], open, &mut || ());
        assert_eq!(name(&kernel, FIRST), None);
    }
    assert!((1..=8192).contains(&given.get()), "{}", given.get());
    assert_eq!(name(&kernel, 0), None);
}

#[test]
fn missing_file_gives_no_names() {
    let mut kernel = Kernel::default();
    let mut times = 0;
    for _ in 0..3 {
        let open = || {
            times += 1;
            Err::<std::io::Empty, _>(ErrorKind::PermissionDenied.into())
        };
        kernel.learn(&[FIRST], open, &mut || ());
        assert_eq!(name(&kernel, FIRST), None);
    }
    assert_eq!(times, 1);
}

/// The name by a scan of all lines: the first one with the highest start.
fn by_all_lines(text: &str, pc: u64) -> Option<&str> {
    let all = text.lines().filter_map(|line| Line::parse(line.as_bytes()));
    let mut best: Option<Line<'_>> = None;
    for line in all.filter(|line| line.is_function() && line.start <= pc) {
        if best.as_ref().is_none_or(|best| best.start < line.start) {
            best = Some(line);
        }
    }
    let best = best.filter(|best| pc - best.start < FUNCTION_LEN_MAX)?;
    best.name()
}

fn kallsyms() -> impl Strategy<Value = String> {
    let kinds = prop::sample::select(vec!['t', 'T', 'w', 'D', 'r']);
    let lines = |count| prop::collection::vec((0..40u64, kinds.clone(), 1..60usize), count);
    (lines(0..400), lines(0..60)).prop_map(|(own, modules)| {
        let mut at = FIRST;
        let mut text = String::new();
        for (i, (step, kind, len)) in own.into_iter().enumerate() {
            // Now and then there is a gap between the functions.
            at += if step == 39 {
                2 * FUNCTION_LEN_MAX
            } else {
                step / 4 * 8
            };
            text += &format!("{at:016x} {kind} own_{i}{:_<len$}\n", "");
        }
        for (i, (place, kind, len)) in modules.into_iter().enumerate() {
            let at = MODULE + place * 8;
            text += &format!("{at:016x} {kind} module_{i}{:_<len$}\t[m]\n", "");
        }
        text
    })
}

proptest! {
    #[test]
    fn names_are_those_that_all_lines_give(
        text in kallsyms(),
        pieces in 1..5000usize,
        wanted in prop::collection::vec(any::<prop::sample::Index>(), 1..8),
        off in 0..24u64,
    ) {
        let starts: Vec<u64> = text
            .lines()
            .filter_map(|line| Some(Line::parse(line.as_bytes())?.start))
            .chain([FIRST, MODULE + 8])
            .collect();
        let wanted: Vec<u64> = wanted.iter().map(|i| i.get(&starts) + off).collect();
        let (mut kernel, given) = (Kernel::default(), std::cell::Cell::new(0));
        let whole = loaded(text.as_bytes(), pieces);
        for some in wanted.chunks(3) {
            let open = || Ok(Pieces { text: text.as_bytes(), len: pieces, given: &given });
            kernel.learn(some, open, &mut || ());
            for pc in some {
                let expected = by_all_lines(&text, *pc);
                prop_assert_eq!(name(&kernel, *pc), expected);
                prop_assert_eq!(name(&whole, *pc), expected);
                if let Some(function) = whole.function(*pc) {
                    for inside in [function.start, function.end - 1] {
                        prop_assert_eq!(by_all_lines(&text, inside), expected);
                    }
                }
            }
        }
        prop_assert!(given.get() <= 2 * text.len());
    }

    #[test]
    fn any_bytes_are_taken(
        bytes in prop::collection::vec(any::<u8>(), 0..6000),
        piece in 1..5000usize,
    ) {
        let kernel = loaded(&bytes, piece);
        for pc in [0, 1, FIRST, u64::MAX] {
            if let Some(function) = kernel.function(pc) {
                prop_assert!((function.start..function.end).contains(&pc));
            }
        }
    }
}

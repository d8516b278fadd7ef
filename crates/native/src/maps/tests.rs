//! Tests of the `maps` reader on lines of real kernels, and on invalid ones.

use super::*;
use proptest::prelude::*;

fn path_of(line: &[u8]) -> (Vec<u8>, bool, Backing) {
    let mapping = Mapping::parse(line).unwrap();
    (
        mapping.path().into_owned(),
        mapping.is_deleted(),
        mapping.backing(),
    )
}

/// A line with the kernel's padding up to the path.
fn line(path: &[u8]) -> Vec<u8> {
    let mut line = b"7f0000001000-7f0000003000 r-xp 00001000 fe:01 1234567".to_vec();
    line.resize(73, b' ');
    line.extend(path);
    line
}

#[test]
fn every_field_is_read() {
    let text = b"7f5a3c021000-7f5a3c200000 rwxs 1fffff000 103:0a 18446744073709551615     /a/b c";
    let found = Mapping::parse(text).unwrap();
    let expected = Mapping {
        start: 0x7f5a_3c02_1000,
        end: 0x7f5a_3c20_0000,
        permissions: Permissions {
            is_readable: true,
            is_writable: true,
            is_executable: true,
            is_shared: true,
        },
        offset: 0x1_ffff_f000,
        device: Device {
            major: 0x103,
            minor: 10,
        },
        inode: u64::MAX,
        raw_path: b"/a/b c",
    };
    assert_eq!(found, expected);
    assert!(found.contains(found.start) && !found.contains(found.end));
    let nothing = Mapping::parse(b"0-1000 ---p 00000000 00:00 0").unwrap();
    assert_eq!(nothing.permissions, Permissions::default());
    assert_eq!(nothing.backing(), Backing::Anonymous);
}

#[test]
fn paths_may_hold_anything() {
    use Backing::*;
    let cases: [(&[u8], &[u8], bool, Backing); 21] = [
        (b"/usr/lib/libpear.so", b"/usr/lib/libpear.so", false, File),
        (b"/with some  spaces ", b"/with some  spaces ", false, File),
        (b"/two\\012lines\\012", b"/two\nlines\n", false, File),
        (b"/back\\slash\\01", b"/back\\slash\\01", false, File),
        (b"/back\\\\012slash", b"/back\\\nslash", false, File),
        (b"/old.so (deleted)", b"/old.so", true, File),
        (b"/x (deleted) (deleted)", b"/x (deleted)", true, File),
        (b"/(deleted)", b"/(deleted)", false, File),
        (b"/not\xffutf\xfe8", b"/not\xffutf\xfe8", false, File),
        (b"/7f00-7f01 r-xp", b"/7f00-7f01 r-xp", false, File),
        (b"[vdso]", b"[vdso]", false, Vdso),
        (b"/[vdso]", b"/[vdso]", false, File),
        (b"[stack]", b"[stack]", false, Stack),
        (b"[stack:123]", b"[stack:123]", false, Stack),
        (b"[heap]", b"[heap]", false, Heap),
        (
            b"[anon:glibc: malloc]",
            b"[anon:glibc: malloc]",
            false,
            Anonymous,
        ),
        (
            b"/memfd:pear heap (deleted)",
            b"/memfd:pear heap",
            true,
            Memfd,
        ),
        (
            b"/SYSV0052e2c1 (deleted)",
            b"/SYSV0052e2c1",
            true,
            SharedMemory,
        ),
        (b"/dev/zero (deleted)", b"/dev/zero", true, SharedMemory),
        (
            b"anon_inode:[perf_event]",
            b"anon_inode:[perf_event]",
            false,
            Special,
        ),
        (b"", b"", false, Anonymous),
    ];
    for (raw, path, is_deleted, backing) in cases {
        let shown = String::from_utf8_lossy(raw);
        assert_eq!(
            path_of(&line(raw)),
            (path.to_vec(), is_deleted, backing),
            "{shown}"
        );
    }
}

#[test]
fn a_line_with_a_flaw_names_it() {
    let cases: [(&[u8], Error); 19] = [
        (b"", Error::Range),
        (b" 1000-2000 r-xp 0 0:0 0", Error::Range),
        (b"1000 2000 r-xp 0 0:0 0", Error::Range),
        (b"1000- r-xp 0 0:0 0 ", Error::Range),
        (b"+1000-2000 r-xp 0 0:0 0", Error::Range),
        (b"0x1000-2000 r-xp 0 0:0 0", Error::Range),
        (b"2000-2000 r-xp 0 0:0 0", Error::Range),
        (b"3000-2000 r-xp 0 0:0 0", Error::Range),
        (b"1000-10000000000000000 r-xp 0 0:0 0", Error::Range),
        (b"1000-2000", Error::Permissions),
        (b"1000-2000 r-x 0 0:0 0", Error::Permissions),
        (b"1000-2000 r-xpp 0 0:0 0", Error::Permissions),
        (b"1000-2000 rx-p 0 0:0 0", Error::Permissions),
        (b"1000-2000 r-xp", Error::Offset),
        (b"1000-2000 r-xp g 0:0 0", Error::Offset),
        (b"1000-2000 r-xp 0 00 0", Error::Device),
        (b"1000-2000 r-xp 0 0:100000000 0", Error::Device),
        (b"1000-2000 r-xp 0 0:0", Error::Inode),
        (b"1000-2000 r-xp 0 0:0 18446744073709551616", Error::Inode),
    ];
    for (text, error) in cases {
        assert_eq!(
            Mapping::parse(text),
            Err(error),
            "{}",
            String::from_utf8_lossy(text)
        );
    }
    assert_eq!(
        Error::Inode.to_string(),
        "line of maps without a valid inode"
    );
}

#[test]
fn a_flawed_line_does_not_hide_the_others() {
    let text = b"1000-2000 r-xp 0 0:0 0\nnonsense\n\n2000-3000 r-xp 0 0:0 0";
    let starts: Vec<_> = parse(text)
        .map(|line| line.map(|mapping| mapping.start))
        .collect();
    assert_eq!(starts, [Ok(0x1000), Err(Error::Range), Ok(0x2000)]);
}

fn modules_of(text: &str) -> Vec<Module> {
    modules(parse(text.as_bytes()).map(|mapping| mapping.unwrap()))
}

/// Path, header start, and (start, offset) of the code.
fn summary(module: &Module) -> (String, Option<u64>, Vec<(u64, u64)>) {
    (
        String::from_utf8(module.path.clone()).unwrap(),
        module.header.as_ref().map(|range| range.start),
        module
            .executable
            .iter()
            .map(|r| (r.addresses.start, r.file_offset))
            .collect(),
    )
}

#[test]
fn mappings_of_one_file_make_one_module() {
    let text = "\
10000-11000 r--p 00000000 08:01 7 /lib/a.so
11000-14000 r-xp 00001000 08:01 7 /lib/a.so
14000-15000 rw-p 00004000 08:01 7 /lib/a.so
15000-16000 rw-p 00000000 00:00 0 
16000-17000 r-xp 00006000 08:01 7 /lib/a.so
20000-21000 r-xp 00000000 08:01 8 /lib/b.so (deleted)
30000-31000 r--p 00000000 08:01 9 /lib/data
40000-41000 rwxp 00000000 00:00 0 
50000-52000 r-xp 00000000 00:00 0 [vdso]
60000-61000 --xp 00000000 00:00 0 [vsyscall]
";
    let found = modules_of(text);
    let expected = [
        (
            "/lib/a.so".to_string(),
            Some(0x10000),
            vec![(0x11000, 0x1000), (0x16000, 0x6000)],
        ),
        ("/lib/b.so".to_string(), Some(0x20000), vec![(0x20000, 0)]),
        ("[vdso]".to_string(), Some(0x50000), vec![(0x50000, 0)]),
    ];
    assert_eq!(found.iter().map(summary).collect::<Vec<_>>(), expected);
    assert_eq!(
        found.iter().map(|m| m.is_deleted).collect::<Vec<_>>(),
        [false, true, false]
    );
    assert_eq!(
        (found[0].device, found[0].inode),
        (Device { major: 8, minor: 1 }, 7)
    );
}

#[test]
fn copies_and_namesakes_are_separate_modules() {
    // The same file twice (offsets fall), a file read as data before its code, and another file of
    // the same name (a replaced library).
    let text = "\
10000-11000 r--p 00000000 08:01 7 /lib/a.so
11000-12000 r-xp 00001000 08:01 7 /lib/a.so
12000-13000 r--p 00000000 08:01 7 /lib/a.so
13000-14000 r-xp 00001000 08:01 7 /lib/a.so
20000-24000 r--s 00000000 08:01 9 /lib/c.so
30000-31000 r-xp 00000000 08:01 9 /lib/c.so
31000-32000 r-xp 00001000 08:01 10 /lib/c.so
";
    let expected = [
        (
            "/lib/a.so".to_string(),
            Some(0x10000),
            vec![(0x11000, 0x1000)],
        ),
        (
            "/lib/a.so".to_string(),
            Some(0x12000),
            vec![(0x13000, 0x1000)],
        ),
        ("/lib/c.so".to_string(), Some(0x20000), vec![(0x30000, 0)]),
        ("/lib/c.so".to_string(), None, vec![(0x31000, 0x1000)]),
    ];
    assert_eq!(
        modules_of(text).iter().map(summary).collect::<Vec<_>>(),
        expected
    );
}

/// The smallest image with one executable segment: file range 0..0x800 at address 0x40_0000.
fn tiny_image() -> Vec<u8> {
    let mut image = vec![0; 0x800];
    image[..20].copy_from_slice(&[
        0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0x3e, 0,
    ]);
    image[32] = 64;
    for (at, value) in [(54, 56u16), (56, 1)] {
        image[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
    image[64] = 1;
    image[68] = 5;
    for (at, value) in [(80, 0x40_0000u64), (96, 0x800), (104, 0x800)] {
        image[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    image
}

#[test]
fn adjacent_copies_of_one_page_get_a_placement_each() {
    let text = "\
10000-11000 r-xp 00000000 08:01 7 /lib/tiny.so
11000-12000 r-xp 00000000 08:01 7 /lib/tiny.so
12000-13000 r-xp 00009000 08:01 7 /lib/tiny.so
";
    let module = &modules_of(text)[0];
    let image = tiny_image();
    let elf = crate::elf::Elf::parse(&image).unwrap();
    let placed = |base: u64| Placement {
        bias: base.wrapping_sub(0x40_0000),
        base,
        executable: std::iter::once(base..base + 0x1000).collect(),
    };
    // Addresses beyond the file's segments have no placement.
    assert_eq!(
        module.placements(&elf, 4096),
        [placed(0x10000), placed(0x11000)]
    );
}

/// Any path that a kernel may write: nothing starts with white space.
fn raw_path() -> impl Strategy<Value = Vec<u8>> {
    let bytes = || prop::collection::vec(any::<u8>().prop_map(|b| b | u8::from(b == 10)), 0..30);
    prop_oneof![
        Just(Vec::new()),
        bytes().prop_map(|rest| [b"/".to_vec(), rest].concat()),
        bytes().prop_map(|rest| [b"/".to_vec(), rest, DELETED.to_vec()].concat()),
        Just(b"[vdso]".to_vec()),
    ]
}

/// A line as the kernel prints it (fs/proc/task_mmu.c).
fn printed(mapping: &Mapping<'_>) -> Vec<u8> {
    let Permissions {
        is_readable,
        is_writable,
        is_executable,
        is_shared,
    } = mapping.permissions;
    let flag = |yes, set, unset| if yes { set } else { unset };
    let mut line = format!(
        "{:08x}-{:08x} {}{}{}{} {:08x} {:02x}:{:02x} {} ",
        mapping.start,
        mapping.end,
        flag(is_readable, 'r', '-'),
        flag(is_writable, 'w', '-'),
        flag(is_executable, 'x', '-'),
        flag(is_shared, 's', 'p'),
        mapping.offset,
        mapping.device.major,
        mapping.device.minor,
        mapping.inode,
    )
    .into_bytes();
    if !mapping.raw_path.is_empty() {
        line.resize(line.len().max(73), b' ');
    }
    line.extend(mapping.raw_path);
    line
}

proptest! {
    #[test]
    fn every_mapping_is_read_as_it_was_printed(
        (start, len) in (0..u64::MAX, any::<prop::sample::Index>()),
        flags in any::<[bool; 4]>(),
        (offset, major, minor, inode) in any::<(u64, u32, u32, u64)>(),
        raw_path in raw_path(),
    ) {
        let [is_readable, is_writable, is_executable, is_shared] = flags;
        let mapping = Mapping {
            start,
            end: start + 1 + len.index((u64::MAX - start).min(1 << 40) as usize) as u64,
            permissions: Permissions { is_readable, is_writable, is_executable, is_shared },
            offset,
            device: Device { major, minor },
            inode,
            raw_path: &raw_path,
        };
        let line = printed(&mapping);
        prop_assert_eq!(Mapping::parse(&line), Ok(mapping));
        let text = [&b"no mapping\n"[..], &line, b"\n\n", &line].concat();
        prop_assert_eq!(parse(&text).flatten().collect::<Vec<_>>(), vec![mapping; 2]);
    }

    #[test]
    fn damaged_lines_cause_no_panic(
        count in 1..6u64,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut text = Vec::new();
        for i in 0..count {
            let permissions = Permissions { is_executable: true, ..Permissions::default() };
            let (start, offset) = (i << 12, i << 12);
            let end = start + 0x1000;
            let (device, inode, raw_path) = (Device::default(), 7, &b"/a/libpear.so"[..]);
            let mapping = Mapping { start, end, permissions, offset, device, inode, raw_path };
            text.extend(printed(&mapping));
            text.push(b'\n');
        }
        for (at, value) in damage {
            let at = at.index(text.len());
            text[at] = value;
        }
        let good: Vec<Mapping<'_>> = parse(&text).flatten().collect();
        prop_assert!(good.iter().all(|mapping| mapping.start < mapping.end));
        let code = good.iter().filter(|mapping| mapping.permissions.is_executable).count();
        let found = modules(good);
        prop_assert!(found.iter().all(|module| !module.executable.is_empty()));
        let ranges: usize = found.iter().map(|module| module.executable.len()).sum();
        prop_assert!(ranges <= code);
    }
}

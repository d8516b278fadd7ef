//! Performance data as HotSpot writes it, in either byte order, comes back; damaged in any way it
//! gives nothing that is not in the file.
#![no_main]

use dwell_attach::hsperf::{PerfData, parse};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 5] = [
    "sun.rt.javaCommand",
    "java.property.java.version",
    "java.rt.vmArgs",
    "java.rt.vmFlags",
    "sun.rt.createVmBeginTime",
];
/// More than these are not read.
const ENTRIES_MAX: usize = 10_000;

/// Which name, or another one, and the text.
type Entry<'a> = (u8, &'a str, &'a str);

/// Entries, whether they are little endian, damage, how much is cut off, and any bytes.
type Input<'a> = (Vec<Entry<'a>>, bool, Vec<(u16, u8)>, u16, &'a [u8]);

fuzz_target!(|input: Input<'_>| {
    let (mut entries, little, damage, cut, any) = input;
    // HotSpot's strings end at the first NUL.
    entries.retain(|(_, name, value)| !name.contains('\0') && !value.contains('\0'));
    entries.truncate(ENTRIES_MAX);
    let mut bytes = file(&entries, little);
    assert_eq!(parse(&bytes), Some(wanted(&entries)));
    let len = bytes.len();
    for (place, value) in damage {
        bytes[usize::from(place) % len] = value;
    }
    bytes.truncate(len - usize::from(cut) % len);
    for bytes in [&bytes[..], any] {
        if let Some(data) = parse(bytes) {
            check(&data, bytes);
        }
    }
});

fn name_of<'a>(entry: &Entry<'a>) -> &'a str {
    let (which, other, _) = *entry;
    NAMES.get(usize::from(which % 8)).copied().unwrap_or(other)
}

fn wanted(entries: &[Entry<'_>]) -> PerfData {
    let last = |name: &str| {
        let found = entries.iter().rfind(|entry| name_of(entry) == name);
        found.map(|(_, _, value)| (*value).to_owned())
    };
    PerfData {
        java_command: last(NAMES[0]),
        java_version: last(NAMES[1]),
        vm_args: last(NAMES[2]),
        vm_flags: last(NAMES[3]),
    }
}

/// Header (perfMemory.hpp) and, for each entry, its header, name, padding and data.
fn file(entries: &[Entry<'_>], little: bool) -> Vec<u8> {
    let int = |value: usize| {
        let value = i32::try_from(value).expect("31 bits");
        if little {
            value.to_le_bytes()
        } else {
            value.to_be_bytes()
        }
    };
    let mut out = vec![0xca, 0xfe, 0xc0, 0xc0, u8::from(little), 2, 0, 1];
    out.extend([0; 16]);
    out.extend(int(32));
    out.extend(int(entries.len()));
    for entry in entries {
        let (name, value) = (name_of(entry), entry.2);
        let data_at = (20 + name.len() + 1).next_multiple_of(8);
        let len = (data_at + value.len() + 1).next_multiple_of(8);
        let start = out.len();
        for number in [len, 20, value.len() + 1] {
            out.extend(int(number));
        }
        out.extend([b'B', 0, 1, 1]);
        out.extend(int(data_at));
        out.extend(name.as_bytes());
        out.resize(start + data_at, 0);
        out.extend(value.as_bytes());
        out.resize(start + len, 0);
    }
    out
}

fn check(data: &PerfData, bytes: &[u8]) {
    let all = [
        &data.java_command,
        &data.java_version,
        &data.vm_args,
        &data.vm_flags,
    ];
    for value in all.into_iter().flatten() {
        assert!(!value.contains('\0'));
        let parts = value
            .split(char::REPLACEMENT_CHARACTER)
            .filter(|part| !part.is_empty());
        for part in parts {
            assert!(
                bytes
                    .windows(part.len())
                    .any(|window| window == part.as_bytes())
            );
        }
    }
}

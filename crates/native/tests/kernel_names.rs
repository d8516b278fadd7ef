//! Names of this machine's kernel, compared with all lines of its list. If addresses are hidden, or
//! there is no list, no address may have a name.

use dwell_native::kernel::Kernel;
use dwell_native::kernel::packed::{Packed, Stamp};
use std::collections::BTreeMap;
use std::fs::File;

const LIST: &str = "/proc/kallsyms";

/// Functions of the kernel itself by address, with the first of several names. Modules and
/// generated code may come and go while this test runs.
fn functions(text: &str) -> BTreeMap<u64, &str> {
    let mut all = BTreeMap::new();
    for line in text.lines().filter(|line| !line.ends_with(']')) {
        let mut words = line.split_whitespace();
        let start = words.next().and_then(|it| u64::from_str_radix(it, 16).ok());
        let (start, kind, name) = (start.unwrap(), words.next().unwrap(), words.next().unwrap());
        if start != 0 && matches!(kind, "t" | "T" | "w" | "W") {
            all.entry(start).or_insert(name);
        }
    }
    all
}

#[test]
fn names_of_this_kernel_are_those_of_its_list() {
    let text = std::fs::read_to_string(LIST).unwrap_or_default();
    let all = functions(&text);
    let starts: Vec<u64> = all.keys().copied().collect();
    // First only the lower half, then all.
    let mut kernel = Kernel::default();
    for part in [&starts[..starts.len() / 2], &starts[..]] {
        let wanted: Vec<u64> = part
            .iter()
            .step_by(601)
            .chain(part.last())
            .copied()
            .collect();
        kernel.learn(&wanted, || File::open(LIST), &mut || ());
        for start in wanted {
            let found = kernel.function(start).unwrap();
            assert_eq!((found.start, found.name), (start, all[&start]));
            let last = kernel.function(found.end - 1).unwrap();
            assert_eq!(last, found);
        }
    }
    for nowhere in [1, 0x7f00_0000_0000, u64::MAX] {
        let own = all.range(..=nowhere).next_back();
        let is_near = own.is_some_and(|(start, _)| nowhere - start < 1 << 20);
        assert!(is_near || kernel.function(nowhere).is_none());
    }
    assert!(!starts.is_empty() || kernel.function(1 << 63).is_none());
}

#[test]
fn saved_names_of_this_kernel_are_those_of_its_list() {
    let text = std::fs::read_to_string(LIST).unwrap_or_default();
    let all = functions(&text);
    let mut kernel = Kernel::default();
    kernel.load(File::open(LIST), &mut || ());
    let stamp = Stamp::new(&[b'0'; 36], &[]).unwrap();
    let Some(bytes) = kernel.packed(&stamp) else {
        assert!(all.is_empty());
        return;
    };
    let packed = Packed::open(&bytes[..], &stamp).unwrap();
    let mut unnamed = 0;
    for (start, name) in all.iter().step_by(101) {
        match packed.function(*start) {
            Some(found) => assert_eq!((found.0, &found.2[..]), (*start, *name)),
            None => unnamed += 1,
        }
    }
    // The last function of the kernel, and addresses among modules.
    assert!(unnamed * 100 <= all.len() / 101, "{unnamed} have no name");
}

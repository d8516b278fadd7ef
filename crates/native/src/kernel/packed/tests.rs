//! Tests of saved names on made-up kernels. Must not read the machine's own.

use super::*;
use proptest::prelude::*;

const BOOT: &[u8] = b"6c2f0a9e-0d6b-4b1f-9a53-9d1f0b8f2c11\n";
const MODULES: &[u8] =
    b"ext4 1024 3 - Live 0xffffffffc0000000\nkvm 64 0 - Live 0xffffffffa0000000\n";
const LIST: &str = "ffffffff81000000 T _stext\nffffffff81000000 T _text\n\
    ffffffff81000080 D data\nffffffff81000100 t do_one\nffffffff81000200 t do_two\n\
    ffffffff81000280 t do_last\nffffffffc0000000 t init\t[ext4]\n\
    ffffffffc0000040 t in_module\t[ext4]\nffffffffc0000080 t last\t[ext4]\n\
    ffffffffc0001000 t early\t[kvm]\nffffffffc0002000 t bpf_prog_1\t[bpf]\n\
    ffffffffc0002100 t bpf_prog_2\t[bpf]\n";

fn stamp(modules: &[u8]) -> Stamp {
    Stamp::new(BOOT, modules).unwrap()
}

fn kernel(list: &str) -> Kernel {
    let mut kernel = Kernel::default();
    kernel.load(Ok(list.as_bytes()), &mut || ());
    kernel
}

fn names(file: &[u8], stamp: &Stamp, addresses: &[u64]) -> Vec<Option<String>> {
    let packed = Packed::open(file, stamp).unwrap();
    let name = |pc: &u64| packed.function(*pc).map(|(_, _, name)| name);
    addresses.iter().map(name).collect()
}

#[test]
fn saved_names_are_those_of_the_list() {
    let file = kernel(LIST).packed(&stamp(MODULES)).unwrap();
    let packed = Packed::open(&file[..], &stamp(MODULES)).unwrap();
    assert!(packed.knows_modules());
    // The first of several names, up to the next function; data symbols do not count.
    let stext = (
        0xffff_ffff_8100_0000,
        0xffff_ffff_8100_0100,
        "_stext".to_owned(),
    );
    assert_eq!(packed.function(0xffff_ffff_8100_0000), Some(stext.clone()));
    assert_eq!(packed.function(0xffff_ffff_8100_00ff), Some(stext));
    let init = (
        0xffff_ffff_c000_0000,
        0xffff_ffff_c000_0040,
        "init".to_owned(),
    );
    assert_eq!(packed.function(0xffff_ffff_c000_003f), Some(init));
}

#[test]
fn addresses_that_may_have_changed_need_the_list() {
    let file = kernel(LIST).packed(&stamp(MODULES)).unwrap();
    let last_own = 0xffff_ffff_8100_0280;
    let last_of_ext4 = 0xffff_ffff_c000_0080;
    let (alone_in_kvm, generated) = (0xffff_ffff_c000_1000, 0xffff_ffff_c000_2000);
    let before_all = 0xffff_ffff_8000_0000;
    let unknown = [
        last_own,
        last_of_ext4,
        alone_in_kvm,
        generated,
        before_all,
        0,
        u64::MAX,
    ];
    for name in names(&file, &stamp(MODULES), &unknown) {
        assert_eq!(name, None);
    }
}

#[test]
fn names_of_another_boot_are_none() {
    let file = kernel(LIST).packed(&stamp(MODULES)).unwrap();
    let other = Stamp::new(b"00000000-0d6b-4b1f-9a53-9d1f0b8f2c11", MODULES).unwrap();
    assert!(Packed::open(&file[..], &other).is_none());
    assert!(Stamp::new(b"no id", MODULES).is_none());
}

#[test]
fn with_other_modules_only_own_functions_are_known() {
    // Long enough that the first functions of the kernel are in a block without modules.
    let own = (0..200).map(|i| format!("{:x} t long_{i}\n", 0xffff_ffff_8000_0000u64 + 16 * i));
    let list: String = own.chain([LIST.to_owned()]).collect();
    let file = kernel(&list).packed(&stamp(MODULES)).unwrap();
    let (own, module) = (0xffff_ffff_8000_0010, 0xffff_ffff_c000_0000);
    let of_own = |modules| names(&file, &stamp(modules), &[own, module]);
    let known = |name: &str| Some(name.to_owned());
    let both = [known("long_1"), known("init")];
    let one = [known("long_1"), None];
    assert_eq!(of_own(MODULES), both);
    // The same modules with other users.
    assert_eq!(
        of_own(b"ext4 1024 9 a,b Live 0xffffffffc0000000\nkvm 64 0 - Live 0xffffffffa0000000\n"),
        both
    );
    assert_eq!(of_own(b"ext4 1024 3 - Live 0xffffffffc0000000\n"), one);
    assert_eq!(
        of_own(b"ext4 1024 3 - Live 0xffffffffc0008000\nkvm 64 0 - Live 0xffffffffa0000000\n"),
        one
    );
    assert_eq!(of_own(b""), one);
}

#[test]
fn partly_read_list_leaves_modules_unknown() {
    let own =
        (0..5000).map(|i| format!("{:x} t function_{i}\n", 0xffff_ffff_8100_0000u64 + 16 * i));
    let data = (0..5000).map(|i| format!("{:x} d data_{i}\n", 0xffff_ffff_8200_0000u64 + i));
    let list: String = own.chain(data).chain([LIST.to_owned()]).collect();
    let mut kernel = Kernel::default();
    let wanted = [0xffff_ffff_8100_0010];
    kernel.learn(&wanted, || Ok(list.as_bytes()), &mut || ());
    assert!(!kernel.is_complete());
    let file = kernel.packed(&stamp(MODULES)).unwrap();
    let packed = Packed::open(&file[..], &stamp(MODULES)).unwrap();
    assert!(!packed.knows_modules());
    for i in [0, 1, 17, 2500, 4998] {
        let start = 0xffff_ffff_8100_0000 + 16 * i;
        let known = Some((start, start + 16, format!("function_{i}")));
        assert_eq!(packed.function(start + 15), known);
    }
}

#[test]
fn hidden_addresses_save_no_names() {
    let list = "0000000000000000 t one\n".repeat(500);
    assert!(kernel(&list).packed(&stamp(MODULES)).is_none());
    assert!(Kernel::default().packed(&stamp(MODULES)).is_none());
}

#[test]
fn a_file_that_was_cut_has_no_wrong_names() {
    let stamp = stamp(MODULES);
    let file = kernel(LIST).packed(&stamp).unwrap();
    for len in 0..file.len() {
        if let Some(packed) = Packed::open(&file[..len], &stamp) {
            let name = packed.function(0xffff_ffff_8100_0100).map(|it| it.2);
            assert_eq!(packed.is_damaged(), name.is_none());
            assert!(name.is_none_or(|name| name == "do_one"));
        }
    }
}

#[test]
fn changed_byte_never_gives_a_wrong_name() {
    let stamp = stamp(MODULES);
    let file = kernel(LIST).packed(&stamp).unwrap();
    let pc = 0xffff_ffff_8100_0100;
    let mut changed = file.clone();
    for at in 0..file.len() {
        changed[at] ^= 4;
        let name = Packed::open(&changed[..], &stamp)
            .and_then(|packed| packed.function(pc))
            .map(|it| it.2);
        assert!(name.is_none_or(|name| name == "do_one"), "byte {at}");
        changed[at] ^= 4;
    }
    let is_known = |file: &[u8]| Packed::open(file, &stamp)?.function(pc);
    assert!(is_known(&file).is_some());
}

proptest! {
    #[test]
    fn saved_names_equal_the_list(
        own in prop::collection::vec((0u64..4000, "[a-z]{1,9}"), 1..300),
        modules in prop::collection::vec((0u64..6000, "[a-z]{1,9}", 0usize..4), 0..60),
        asked in prop::collection::vec(0u64..8000, 30),
    ) {
        let mut own = own;
        own.sort_by_key(|it| it.0);
        let base = 0xffff_ffff_8100_0000u64;
        let kinds = ["[ext4]", "[kvm]", "[bpf]", "[__builtin__ftrace]"];
        let own = own.iter().map(|(at, name)| format!("{:x} t {name}\n", base + at));
        let modules = modules.iter().map(|(at, name, kind)| {
            format!("{:x} t {name}\t{}\n", base + at, kinds[*kind])
        });
        let list: String = own.chain(modules).collect();
        let kernel = kernel(&list);
        if let Some(file) = kernel.packed(&stamp(MODULES)) {
            let packed = Packed::open(&file[..], &stamp(MODULES)).unwrap();
            for at in asked {
                if let Some((start, end, name)) = packed.function(base + at) {
                    let truth = kernel.function(base + at).unwrap();
                    prop_assert_eq!((start, end, &name[..]), (truth.start, truth.end, truth.name));
                }
            }
        }
    }

    #[test]
    fn any_bytes_cause_no_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..400),
        count in 0u8..5, own in 0u8..5, pc in any::<u64>(),
    ) {
        let stamp = stamp(MODULES);
        let mut file = kernel(LIST).packed(&stamp).unwrap();
        file[8] = count;
        file[12] = own;
        bytes.truncate(file.len() - HEAD_LEN);
        let until = HEAD_LEN + bytes.len();
        file[HEAD_LEN..until].copy_from_slice(&bytes);
        // Makes the check fit the changed bytes.
        let index = file.get(HEAD_LEN..HEAD_LEN + usize::from(count) * BLOCK_LEN);
        let right = index.map_or(0, check);
        file[HEAD_LEN - 4..HEAD_LEN].copy_from_slice(&right.to_le_bytes());
        if let Some(packed) = Packed::open(&file[..], &stamp)
            && let Some((start, end, name)) = packed.function(pc)
        {
            prop_assert!((start..end).contains(&pc) && !name.is_empty());
        }
    }
}

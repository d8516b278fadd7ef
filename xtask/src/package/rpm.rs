//! The package for Fedora, SUSE and their relatives. Pure.
//!
//! Format: "RPM V4 package format" of rpm's reference manual: a lead, a header with checksums, a
//! header about the package, and a compressed cpio archive (`newc`). It has checksums and no
//! signature.

use super::archive::{Entry, gzip, sorted};
use super::{Inputs, Product, deb, sha256};
use anyhow::Result;

const RELEASE: &str = "1";
/// SHA-256, in the numbers of RFC 4880.
const SHA256: u32 = 8;
/// The folders that belong to the package alone.
const FOLDERS: [&str; 2] = ["usr/lib/dwell", "usr/share/doc/dwell"];
/// The abilities that rpm needs, and the versions that have them.
const NEEDS: [[&str; 2]; 3] = [
    ["rpmlib(CompressedFileNames)", "3.0.4-1"],
    ["rpmlib(FileDigests)", "4.6.0-1"],
    ["rpmlib(PayloadFilesHavePrefix)", "4.0-1"],
];
/// By convention, an ability of rpm itself is asked for with "at most" its first version.
const NEED: u32 = 1 << 24 | 2 | 8;

/// A value of a header.
enum Value {
    Half(Vec<u16>),
    Word(Vec<u32>),
    Text(String),
    Texts(Vec<String>),
    /// A text that could have translations.
    Local(String),
}

/// A file or folder.
struct Item {
    folder: String,
    name: String,
    mode: u32,
    bytes: Vec<u8>,
}

/// `dwell-VERSION-1.x86_64.rpm`.
///
/// # Errors
/// See [`deb::installed`].
pub fn rpm(inputs: &Inputs) -> Result<Product> {
    let mut installed = deb::installed(inputs)?;
    for file in &mut installed {
        // The folder in which zsh looks there.
        file.path = file.path.replace("vendor-completions", "site-functions");
    }
    let items = items(&installed)?;
    let time = u32::try_from(inputs.time)?;
    let archive = cpio(&items, time)?;
    let payload = gzip(&archive)?;
    let mut tags = about(inputs, time);
    tags.extend(files(&items, time)?);
    tags.push((5092, Value::Texts(vec![sha256::hex(&payload)])));
    tags.push((5093, Value::Word(vec![SHA256])));
    let main = header(63, tags)?;
    let size = u32::try_from(main.len() + payload.len())?;
    let mut sums = header(
        62,
        vec![
            (273, Value::Text(sha256::hex(&main))),
            (1000, Value::Word(vec![size])),
            (1007, Value::Word(vec![u32::try_from(archive.len())?])),
        ],
    )?;
    sums.resize(sums.len().next_multiple_of(8), 0);
    let name = format!("dwell-{}-{RELEASE}", inputs.version);
    let mut out = lead(&name);
    out.extend(sums);
    out.extend(main);
    out.extend(payload);
    Ok(Product::new(format!("{name}.x86_64.rpm"), out))
}

/// The first 96 bytes, which only say that this is a package.
fn lead(name: &str) -> Vec<u8> {
    let mut lead = vec![0xed, 0xab, 0xee, 0xdb, 3, 0, 0, 0, 0, 1];
    lead.extend(name.bytes().take(65));
    lead.resize(76, 0);
    lead.extend([0, 1, 0, 5]);
    lead.resize(96, 0);
    lead
}

fn items(entries: &[Entry]) -> Result<Vec<Item>> {
    let item = |path: &str, mode, bytes: &[u8]| {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        Item {
            folder: format!("/{folder}/"),
            name: name.to_owned(),
            mode,
            bytes: bytes.to_vec(),
        }
    };
    let mut items: Vec<Item> = sorted(entries)?
        .iter()
        .map(|entry| item(&entry.path, 0o100_000 | entry.mode(), &entry.bytes))
        .collect();
    items.extend(FOLDERS.map(|folder| item(folder, 0o040_755, &[])));
    items.sort_by(|a, b| (&a.folder, &a.name).cmp(&(&b.folder, &b.name)));
    Ok(items)
}

fn about(inputs: &Inputs, time: u32) -> Vec<(u32, Value)> {
    let text = |text: &str| Value::Text(text.to_owned());
    let local = |text: &str| Value::Local(text.to_owned());
    let texts = |texts: &[&str]| Value::Texts(texts.iter().map(|&text| text.to_owned()).collect());
    let own = format!("{}-{RELEASE}", inputs.version);
    vec![
        (100, texts(&["C"])),
        (1000, text("dwell")),
        (1001, text(&inputs.version)),
        (1002, text(RELEASE)),
        (1004, local("Profiler for the JVM")),
        (
            1005,
            local(
                "dwell shows where the time of each thread and each request goes: on CPU,\n\
                 waiting for a CPU, on a lock, in I/O, at a safepoint.",
            ),
        ),
        (1006, Value::Word(vec![time])),
        (1007, text("localhost")),
        (1014, text("Apache-2.0")),
        (1016, local("Development/Tools")),
        (1021, text("linux")),
        (1022, text("x86_64")),
        (1044, text(&format!("dwell-{own}.src.rpm"))),
        (1047, texts(&["dwell", "dwell(x86-64)"])),
        (1048, Value::Word(vec![NEED; NEEDS.len()])),
        (1049, texts(&NEEDS.map(|[name, _]| name))),
        (1050, texts(&NEEDS.map(|[_, version]| version))),
        // Exactly this version.
        (1112, Value::Word(vec![8, 8])),
        (1113, texts(&[&own, &own])),
        (1124, text("cpio")),
        (1125, text("gzip")),
        (1126, text("9")),
    ]
}

fn files(items: &[Item], time: u32) -> Result<Vec<(u32, Value)>> {
    let mut folders: Vec<&String> = items.iter().map(|item| &item.folder).collect();
    folders.dedup();
    let words = |value: &dyn Fn(usize, &Item) -> u32| {
        Value::Word(
            items
                .iter()
                .enumerate()
                .map(|(i, item)| value(i, item))
                .collect(),
        )
    };
    let texts = |value: &dyn Fn(&Item) -> String| Value::Texts(items.iter().map(value).collect());
    let total: usize = items.iter().map(|item| item.bytes.len()).sum();
    let is_folder = |item: &Item| item.mode & 0o040_000 != 0;
    let folder_of = |item: &Item| folders.iter().position(|folder| **folder == item.folder);
    let modes = items.iter().map(|item| u16::try_from(item.mode));
    Ok(vec![
        (1009, Value::Word(vec![u32::try_from(total)?])),
        (1028, words(&|_, item| item.bytes.len() as u32)),
        (1030, Value::Half(modes.collect::<Result<_, _>>()?)),
        (1033, Value::Half(vec![0; items.len()])),
        (1034, words(&|_, _| time)),
        (
            1035,
            texts(&|item| match is_folder(item) {
                true => String::new(),
                false => sha256::hex(&item.bytes),
            }),
        ),
        (1036, texts(&|_| String::new())),
        // Documents are marked as such.
        (
            1037,
            words(&|_, item| if item.folder.contains("/doc/") { 2 } else { 0 }),
        ),
        (1039, texts(&|_| "root".to_owned())),
        (1040, texts(&|_| "root".to_owned())),
        (1045, words(&|_, _| u32::MAX)),
        (1095, words(&|_, _| 1)),
        (1096, words(&|i, _| i as u32 + 1)),
        (1097, texts(&|_| String::new())),
        (1116, words(&|_, item| folder_of(item).unwrap_or(0) as u32)),
        (1117, texts(&|item| item.name.clone())),
        (
            1118,
            Value::Texts(folders.iter().map(|&folder| folder.clone()).collect()),
        ),
        (5011, Value::Word(vec![SHA256])),
    ])
}

/// A header: an index of tags, and a store with their values. By the tag `region`, rpm knows that
/// no tag was added later.
fn header(region: u32, mut tags: Vec<(u32, Value)>) -> Result<Vec<u8>> {
    tags.sort_by_key(|(tag, _)| *tag);
    let (mut index, mut store) = (Vec::new(), Vec::new());
    for (tag, value) in &tags {
        let (kind, count, align, bytes) = value.encode();
        store.resize(store.len().next_multiple_of(align), 0);
        for word in [
            *tag,
            kind,
            u32::try_from(count)?,
            u32::try_from(store.len())?,
        ] {
            index.push(word);
        }
        store.extend(bytes);
    }
    let entries = u32::try_from(tags.len() + 1)?;
    let at = u32::try_from(store.len())?;
    // The end of the region points back over the index.
    for word in [region, 7, (entries * 16).wrapping_neg(), 16] {
        store.extend(word.to_be_bytes());
    }
    let mut out = vec![0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];
    let first = [entries, u32::try_from(store.len())?, region, 7, at, 16];
    out.extend(first.iter().flat_map(|word| word.to_be_bytes()));
    for four in index.chunks_exact(4) {
        let [tag, kind, count, offset] = [four[0], four[1], four[2], four[3]];
        out.extend(
            [tag, kind, offset, count]
                .iter()
                .flat_map(|word| word.to_be_bytes()),
        );
    }
    out.extend(store);
    Ok(out)
}

impl Value {
    /// Its type, count, alignment and bytes.
    fn encode(&self) -> (u32, usize, usize, Vec<u8>) {
        let ended = |text: &String| [text.as_bytes(), &[0]].concat();
        match self {
            Value::Half(values) => {
                let bytes = values.iter().flat_map(|value| value.to_be_bytes());
                (3, values.len(), 2, bytes.collect())
            }
            Value::Word(values) => {
                let bytes = values.iter().flat_map(|value| value.to_be_bytes());
                (4, values.len(), 4, bytes.collect())
            }
            Value::Text(text) => (6, 1, 1, ended(text)),
            Value::Texts(texts) => (8, texts.len(), 1, texts.iter().flat_map(ended).collect()),
            Value::Local(text) => (9, 1, 1, ended(text)),
        }
    }
}

/// The archive with the files.
fn cpio(items: &[Item], time: u32) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for (number, item) in (1..).zip(items) {
        let path = format!(".{}{}", item.folder, item.name);
        member(&mut out, &path, [number, item.mode, time], &item.bytes)?;
    }
    member(&mut out, "TRAILER!!!", [0; 3], &[])?;
    Ok(out)
}

fn member(out: &mut Vec<u8>, path: &str, about: [u32; 3], bytes: &[u8]) -> Result<()> {
    let [number, mode, time] = about;
    let len = u32::try_from(bytes.len())?;
    let name = u32::try_from(path.len() + 1)?;
    out.extend(b"070701");
    for word in [number, mode, 0, 0, 1, time, len, 0, 0, 0, 0, name, 0] {
        out.extend(format!("{word:08x}").bytes());
    }
    out.extend(path.bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend(bytes);
    out.resize(out.len().next_multiple_of(4), 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::made;
    use super::*;

    fn word(bytes: &[u8], at: usize) -> usize {
        bytes[at..at + 4]
            .iter()
            .fold(0, |word, &byte| word << 8 | usize::from(byte))
    }

    /// The length of the header at the start, and the place and count of a tag's value in it.
    fn find(header: &[u8], tag: usize) -> (usize, Option<(usize, usize)>) {
        let (entries, store) = (word(header, 8), word(header, 12));
        let start = 16 + entries * 16;
        let entry = (16..start).step_by(16).find(|&at| word(header, at) == tag);
        let place = entry.map(|at| (start + word(header, at + 8), word(header, at + 12)));
        (start + store, place)
    }

    fn text(header: &[u8], tag: usize) -> String {
        let (at, _) = find(header, tag).1.unwrap();
        let end = header[at..].iter().position(|&byte| byte == 0).unwrap();
        String::from_utf8(header[at..at + end].to_vec()).unwrap()
    }

    #[test]
    fn rpm_has_checksums_of_header_and_payload() {
        let rpm = rpm(&made()).unwrap();
        assert_eq!(rpm.name, "dwell-1.2.3-1.x86_64.rpm");
        let sums = &rpm.bytes[96..];
        let main = &sums[find(sums, 62).0.next_multiple_of(8)..];
        let (len, _) = find(main, 63);
        let payload = &main[len..];
        assert_eq!(text(sums, 273), sha256::hex(&main[..len]));
        assert_eq!(text(main, 5092), sha256::hex(payload));
        assert_eq!(word(sums, find(sums, 1000).1.unwrap().0), main.len());
        assert_eq!(text(main, 1001), "1.2.3");
        assert_eq!(&payload[..2], [0x1f, 0x8b]);
    }

    #[test]
    fn region_ends_in_a_record_that_points_to_its_start() {
        let header = header(63, vec![(1000, Value::Text("x".into()))]).unwrap();
        let (len, place) = find(&header, 63);
        let (at, count) = place.unwrap();
        assert_eq!((len, count), (header.len(), 16));
        assert_eq!(at + 16, len);
        assert_eq!(word(&header, at), 63);
        assert_eq!(word(&header, at + 8), (1 << 32) - 32);
    }

    #[test]
    fn each_file_has_its_folder_and_sum() {
        let items = items(&deb::installed(&made()).unwrap()).unwrap();
        let paths: Vec<String> = items
            .iter()
            .map(|item| format!("{}{}", item.folder, item.name))
            .collect();
        assert!(paths.contains(&"/usr/bin/dwell".to_owned()));
        assert!(paths.contains(&"/usr/lib/dwell".to_owned()));
        assert!(
            items
                .windows(2)
                .all(|pair| pair[0].folder <= pair[1].folder)
        );
        let all = header(63, files(&items, 7).unwrap()).unwrap();
        for tag in [1028, 1030, 1035, 1096, 1116, 1117] {
            assert_eq!(find(&all, tag).1.unwrap().1, items.len(), "{tag}");
        }
    }

    #[test]
    fn archive_members_are_padded_to_four_bytes() {
        let items = items(&[Entry::program("usr/a", "abcde")]).unwrap();
        let archive = String::from_utf8(cpio(&items[..1], 0x10).unwrap()).unwrap();
        let expected = "070701000000010000\
                        81ed00000000000000000000000100000010000000050000000000000000000000000000\
                        00000000000800000000./usr/a\0\0\0abcde\0\0\0";
        assert_eq!(
            archive.replace(' ', "").get(..expected.len()),
            Some(expected)
        );
    }
}

//! The spool: order, positions, room, and what a restart finds.

mod common;

use common::{Scratch, body, position};
use dwell_ship::{Added, Body, Error, Method, Position, Spool};
use std::io;

const MAX: u64 = 1 << 20;

/// The numbers that bodies have in their targets, from the oldest on; all are taken out.
fn drained(spool: &mut Spool) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(entry) = spool.oldest() {
        all.push(spool.read(&entry).unwrap().unwrap().target);
        spool.done(&entry).unwrap();
    }
    all
}

#[test]
fn bodies_come_back_in_order_and_whole() {
    let scratch = Scratch::new();
    let mut spool = Spool::open(scratch.path(), MAX).unwrap();
    let odd = Body {
        method: Method::Put,
        target: "/a?b=c".to_owned(),
        content_type: "x/y".to_owned(),
        is_gzip: true,
        bytes: b"\n\nlines\n\0\xff".to_vec(),
    };
    assert_eq!(spool.add(&odd, position(1, 1)).unwrap(), Added::default());
    spool.add(&body("/2", 10), position(1, 2)).unwrap();
    spool.add(&body("/3", 0), position(2, 3)).unwrap();
    assert_eq!(spool.waiting(), 3);
    let first = spool.oldest().unwrap();
    assert_eq!(spool.read(&first).unwrap().unwrap(), odd);
    assert_eq!(drained(&mut spool), ["/a?b=c", "/2", "/3"]);
    assert_eq!(spool.waiting(), 0);
}

#[test]
fn restart_finds_bodies_and_positions() {
    let scratch = Scratch::new();
    let open = || Spool::open(scratch.path(), MAX).unwrap();
    assert_eq!(open().position(1), None);
    open().add(&body("/1", 5), position(1, 10)).unwrap();
    open().add(&body("/2", 5), position(1, 20)).unwrap();
    open().add(&body("/3", 5), position(2, 30)).unwrap();
    assert_eq!(open().position(1), Some(position(1, 20)));
    let mut spool = open();
    assert_eq!(drained(&mut spool), ["/1", "/2", "/3"]);
    drop(spool);
    // Everything is sent, and is not sent again.
    let mut spool = open();
    assert_eq!(spool.oldest(), None);
    assert_eq!(spool.position(1), Some(position(1, 20)));
    assert_eq!(spool.position(2), Some(position(2, 30)));
    assert_eq!(spool.position(3), None);
    // An earlier position of a source is forgotten: one file each, and the lock.
    spool.add(&body("/4", 5), position(1, 40)).unwrap();
    assert_eq!(drained(&mut spool), ["/4"]);
    assert_eq!(scratch.names().len(), 3);
}

#[test]
fn position_without_a_chunk_is_none() {
    let scratch = Scratch::new();
    let mut spool = Spool::open(scratch.path(), MAX).unwrap();
    let none = Position {
        source: 7,
        ..Position::default()
    };
    spool.add(&body("/1", 5), none).unwrap();
    assert_eq!(spool.position(7), None);
    spool.add(&body("/2", 5), position(7, 1)).unwrap();
    assert_eq!(spool.position(7), Some(position(7, 1)));
}

#[test]
fn full_spool_drops_the_oldest_and_says_so() {
    let scratch = Scratch::new();
    let mut spool = Spool::open(scratch.path(), 1000).unwrap();
    let dropped = |spool: &mut Spool, target: &str, len| {
        let added = spool.add(&body(target, len), position(1, 1)).unwrap();
        (added.dropped, added.is_too_large)
    };
    assert_eq!(dropped(&mut spool, "/1", 300), (0, false));
    assert!(!spool.is_half_full() && spool.has_room(&[body("/2", 300)]));
    assert_eq!(dropped(&mut spool, "/2", 300), (0, false));
    assert!(spool.is_half_full() && !spool.has_room(&[body("/3", 300)]));
    assert!(!spool.has_room(&[body("/3", 50), body("/4", 50), body("/5", 50)]));
    assert!(
        spool.has_room(&[body("/3", 3000)]),
        "it would wait for ever"
    );
    assert_eq!(dropped(&mut spool, "/3", 300), (1, false));
    assert_eq!(dropped(&mut spool, "/4", 900), (2, false));
    assert_eq!(dropped(&mut spool, "/5", 1000), (1, true), "with its head");
    assert_eq!(drained(&mut spool), ["/4"]);
    assert_eq!(spool.position(1), Some(position(1, 1)));
}

#[test]
fn failed_write_stores_nothing() {
    let scratch = Scratch::new();
    let full = |path: &std::path::Path, bytes: &[u8]| {
        std::fs::write(path, &bytes[..bytes.len() / 2])?;
        Err(io::Error::from(io::ErrorKind::StorageFull))
    };
    let mut spool = Spool::open_with(scratch.path(), MAX, Box::new(full)).unwrap();
    let error = spool.add(&body("/1", 50), position(1, 1)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!((spool.waiting(), spool.position(1)), (0, None));
    assert_eq!(scratch.names(), ["lock"]);
}

#[test]
fn cut_files_are_recognised() {
    let scratch = Scratch::new();
    let mut spool = Spool::open(scratch.path(), MAX).unwrap();
    spool.add(&body("/1", 50), position(1, 1)).unwrap();
    let entry = spool.oldest().unwrap();
    let name = scratch.names().into_iter().find(|it| it != "lock").unwrap();
    let path = scratch.path().join(name);
    let whole = std::fs::read(&path).unwrap();
    for len in 1..whole.len() {
        std::fs::write(&path, &whole[..len]).unwrap();
        assert_eq!(spool.read(&entry).unwrap(), None, "{len}");
    }
    std::fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
    assert_eq!(spool.read(&entry).unwrap(), None);
    drop(spool);
    // A write that a crash cut off has no name of a body, and files of others stay.
    std::fs::write(&path, &whole).unwrap();
    std::fs::write(path.with_extension("body.new"), &whole[..9]).unwrap();
    std::fs::write(scratch.path().join("notes.txt"), "mine").unwrap();
    let mut spool = Spool::open(scratch.path(), MAX).unwrap();
    assert_eq!(drained(&mut spool), ["/1"]);
    assert_eq!(scratch.names().len(), 3);
}

#[test]
fn spool_has_one_user_at_a_time() {
    let scratch = Scratch::new();
    let first = Spool::open(scratch.path(), MAX).unwrap();
    let busy = Spool::open(scratch.path(), MAX).unwrap_err();
    assert!(matches!(busy, Error::Busy(_)), "{busy}");
    assert!(busy.to_string().contains("--spool"));
    drop(first);
    Spool::open(scratch.path(), MAX).unwrap();
    let file = scratch.path().join("lock/x");
    let error = Spool::open(&file, MAX).unwrap_err().to_string();
    assert!(error.starts_with("the spool "), "{error}");
}

#[test]
fn spool_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let dir = scratch.path().join("a/b");
    let mut spool = Spool::open(&dir, MAX).unwrap();
    spool.add(&body("/1", 5), position(1, 1)).unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&dir) & 0o777, 0o700);
    for file in std::fs::read_dir(&dir).unwrap() {
        assert_eq!(mode(&file.unwrap().path()) & 0o777, 0o600);
    }
}

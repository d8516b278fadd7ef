//! Fault-tolerant loads: any address gives a value or a `Fault`, never a crash.

use dwell_signal::fault::is_first_in_chain;
use dwell_signal::{Live, sys};
use dwell_walker::{Fault, Memory};

const PAGE: u64 = 4096;

/// Three pages of which the middle one can be read; addresses of the middle one and its bytes.
struct Guarded {
    base: u64,
}

impl Guarded {
    fn new() -> Self {
        let base = sys::map_zeroed(3 * PAGE as usize).unwrap();
        for page in [0, 2] {
            // SAFETY: protects pages of a mapping that no other code knows.
            let result = unsafe { libc::mprotect(base.add(page * 4096).cast(), 4096, 0) };
            assert_eq!(result, 0);
        }
        let base = base as u64;
        for offset in 0..PAGE {
            let byte = (base + PAGE + offset) as *mut u8;
            // SAFETY: the middle page is writable.
            unsafe { byte.write(Self::byte(offset)) };
        }
        Self { base }
    }

    fn byte(offset: u64) -> u8 {
        (offset % 251) as u8 + 1
    }

    fn start(&self) -> u64 {
        self.base + PAGE
    }

    fn end(&self) -> u64 {
        self.base + 2 * PAGE
    }
}

fn live() -> Live {
    Live::install().unwrap()
}

/// Stacks are at the end of a program's memory.
#[test]
fn load_from_the_stack_returns_value() {
    let local = std::hint::black_box(0x1234_5678_9abc_def0_u64);
    assert_eq!(live().word((&raw const local) as u64), Ok(local));
}

#[test]
fn load_mapped_address_returns_value() {
    let live = live();
    let guarded = Guarded::new();
    for offset in [0, 1, 7, 100, PAGE - 8] {
        let bytes = std::array::from_fn(|n| Guarded::byte(offset + n as u64));
        let expected = u64::from_le_bytes(bytes);
        assert_eq!(live.word(guarded.start() + offset), Ok(expected));
    }
    let mut buf = vec![0; PAGE as usize];
    assert_eq!(live.read(guarded.start(), &mut buf), Ok(()));
    assert!(
        (0..PAGE)
            .zip(&buf)
            .all(|(offset, byte)| *byte == Guarded::byte(offset))
    );
    assert!(is_first_in_chain());
}

#[test]
fn load_touching_guard_page_faults() {
    let live = live();
    let guarded = Guarded::new();
    for addr in [
        guarded.base,
        guarded.start() - 1,
        guarded.end() - 7,
        guarded.end(),
    ] {
        assert_eq!(live.word(addr), Err(Fault { addr }), "{addr:#x}");
    }
    for (addr, len, faulting) in [
        (guarded.start() - 1, 2, guarded.start() - 1),
        (guarded.end() - 5, 6, guarded.end()),
        (guarded.start(), PAGE as usize + 1, guarded.end()),
    ] {
        let mut buf = vec![0; len];
        assert_eq!(live.read(addr, &mut buf), Err(Fault { addr: faulting }));
    }
    assert_eq!(live.read(guarded.end(), &mut []), Ok(()), "nothing is read");
}

#[test]
fn a_partial_copy_says_how_much_it_got() {
    let live = live();
    let guarded = Guarded::new();
    let mut buf = vec![0u8; 600];
    // SAFETY: the vector is that long.
    let copied = unsafe { live.copy(buf.as_mut_ptr(), guarded.end() - 100, 600) };
    assert_eq!(copied, 100);
    assert_eq!(buf[99], Guarded::byte(PAGE - 1));
    assert_eq!(buf[100], 0);
}

#[test]
fn load_invalid_address_faults() {
    let live = live();
    let strange = [
        0,
        1,
        8,
        PAGE - 1,
        0x0000_8000_0000_0000, // first non-canonical
        0x0000_7fff_ffff_fffc, // straddles it
        0xdead_beef_dead_beef, // non-canonical
        0xffff_7fff_ffff_ffff, // last non-canonical
        0xffff_8000_0000_0000, // the kernel's
        0xffff_ffff_ffff_fff4, // seen in half-built interpreter frames
        u64::MAX - 7,
        u64::MAX,
    ];
    for addr in strange {
        assert_eq!(live.word(addr), Err(Fault { addr }), "{addr:#x}");
        assert!(live.read(addr, &mut [0; 64]).is_err(), "{addr:#x}");
    }
}

#[test]
fn refuses_a_page_beyond_the_end_of_its_file() {
    let live = live();
    // SAFETY: a name and no flags.
    let fd = unsafe { libc::memfd_create(c"dwell".as_ptr(), 0) };
    // SAFETY: plain numbers.
    assert_eq!(unsafe { libc::ftruncate(fd, 4096) }, 0);
    let addr = sys::map_fd(fd, 4096).unwrap() as u64;
    assert_eq!(live.word(addr), Ok(0));
    // SAFETY: plain numbers.
    assert_eq!(unsafe { libc::ftruncate(fd, 0) }, 0);
    assert_eq!(
        live.word(addr),
        Err(Fault { addr }),
        "this one raises SIGBUS"
    );
    assert!(live.read(addr, &mut [0; 16]).is_err());
}

#[test]
fn never_does_a_load_fault_while_pages_come_and_go() {
    let live = live();
    let guarded = Guarded::new();
    let page = guarded.start();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..20_000u64 {
                    let addr = page + (round * 8) % (PAGE - 8);
                    if let Ok(word) = live.word(addr) {
                        assert_eq!(word as u8, Guarded::byte(addr - page));
                    }
                }
            });
        }
        scope.spawn(|| {
            for round in 0..2000 {
                let prot = if round % 2 == 0 {
                    libc::PROT_NONE
                } else {
                    libc::PROT_READ
                };
                // SAFETY: only fault-tolerant loads touch the page.
                unsafe { libc::mprotect(page as *mut _, 4096, prot) };
            }
        });
    });
}

//! Any bytes as `/proc/kallsyms`, in pieces of any length. A found function covers the address. A
//! partial read finds as much as a complete one. The cached form gives the same answer or none.
//! Also any bytes as the cached form.
#![no_main]

use dwell_native::kernel::Kernel;
use dwell_native::kernel::packed::{Packed, Stamp};
use libfuzzer_sys::fuzz_target;
use std::io::Read;

/// Gives so many bytes at a time.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let len = self.1.min(buf.len());
        self.0.read(&mut buf[..len])
    }
}

fuzz_target!(|input: (u16, u64, &[u8])| {
    let (piece, wanted, data) = input;
    let open = || Ok(Pieces(data, 1 + usize::from(piece)));
    let mut kernel = Kernel::default();
    kernel.learn(&[wanted], open, &mut || ());
    let mut whole = Kernel::default();
    whole.load(open(), &mut || ());
    for pc in [wanted, 0, u64::MAX] {
        for function in [kernel.function(pc), whole.function(pc)]
            .into_iter()
            .flatten()
        {
            assert!((function.start..function.end).contains(&pc));
        }
    }
    assert!(kernel.function(wanted).is_some() || whole.function(wanted).is_none());
    let stamp = Stamp::new(&[b'0'; 36], &[]).unwrap();
    for (bytes, is_kept) in [(whole.packed(&stamp), true), (Some(data.to_vec()), false)] {
        let Some(bytes) = bytes else { continue };
        let Some(packed) = Packed::open(&bytes[..], &stamp) else {
            assert!(!is_kept);
            continue;
        };
        if let Some((start, end, name)) = packed.function(wanted) {
            assert!((start..end).contains(&wanted));
            let truth = whole.function(wanted).map(|it| (it.start, it.name));
            assert!(!is_kept || truth == Some((start, &name[..])));
        }
    }
});

//! Any bytes as `/proc/kallsyms`, in pieces of any length: what is found covers the address, and
//! reading as far as is needed says no less than reading all.
#![no_main]

use dwell_native::kernel::Kernel;
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
        for function in [kernel.function(pc), whole.function(pc)].into_iter().flatten() {
            assert!((function.start..function.end).contains(&pc));
        }
    }
    assert!(kernel.function(wanted).is_some() || whole.function(wanted).is_none());
});

//! Names of kernel functions, each looked up once, because samples contain the same ones again and
//! again. Must not know samples.

use dwell_native::kernel::Kernel;
use std::collections::BTreeMap;
use std::fs::File;

/// The functions of the kernel.
pub struct KernelNames {
    kernel: Kernel,
    /// The functions seen so far: start, end and name.
    met: BTreeMap<u64, (u64, String)>,
}

impl KernelNames {
    /// Reads the kernel's own list at once, because samples are named when they arrive.
    #[must_use]
    pub fn read() -> KernelNames {
        let mut kernel = Kernel::default();
        kernel.load(File::open("/proc/kallsyms"), &mut || ());
        let met = BTreeMap::new();
        KernelNames { kernel, met }
    }

    /// The name of the function at `address`.
    pub fn name(&mut self, address: u64) -> &str {
        let met = self.met.range(..=address).next_back();
        let start = match met {
            Some((start, (end, _))) if address < *end => *start,
            _ => match self.kernel.function(address) {
                Some(found) => {
                    let known = (found.end, found.name.to_owned());
                    self.met.insert(found.start, known);
                    found.start
                }
                None => return "[unknown]",
            },
        };
        self.met.get(&start).map_or("[unknown]", |(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_kernel_names_are_those_of_the_list() {
        let text = "ffffffff81000000 T one\nffffffff81000100 t two\nffffffff81000200 D data\n";
        let mut kernel = Kernel::default();
        kernel.load(Ok(text.as_bytes()), &mut || ());
        let met = BTreeMap::new();
        let mut names = KernelNames { kernel, met };
        for _ in 0..2 {
            assert_eq!(names.name(0xffff_ffff_8100_00ff), "one");
            assert_eq!(names.name(0xffff_ffff_8100_0100), "two");
            assert_eq!(names.name(0xffff_ffff_8100_0000), "one");
            assert_eq!(names.name(0xffff_ffff_8000_0000), "[unknown]");
            assert_eq!(names.name(u64::MAX), "[unknown]");
        }
        assert_eq!(names.met.len(), 2);
    }
}

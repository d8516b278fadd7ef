//! Names of kernel functions: `/proc/kallsyms`, read once, kept small.
//!
//! The kernel takes about 0.1 s of CPU time to print the file, so it is read once, when the first
//! kernel frame is met, and all its functions are kept: 12 bytes and the name each, some 4 MB.

use std::io::Read;

/// An address farther than this above the nearest function belongs to something unnamed.
const FUNCTION_LEN_MAX: u64 = 1 << 20;
/// Functions kept at most.
const FUNCTIONS_MAX: usize = 1 << 20;

struct Function {
    start: u64,
    name: u32,
}

/// Known kernel functions.
#[derive(Default)]
pub struct Kernel {
    functions: Vec<Function>,
    names: Vec<u8>,
    loaded: bool,
}

impl Kernel {
    /// Reads the file if it has not been read. `between` is called now and then: reading takes
    /// long.
    pub fn load(&mut self, between: &mut dyn FnMut()) {
        if std::mem::replace(&mut self.loaded, true) {
            return;
        }
        let Ok(mut file) = std::fs::File::open("/proc/kallsyms") else {
            return;
        };
        let mut buf = vec![0u8; 64 << 10];
        let mut line = Vec::new();
        while let Ok(n @ 1..) = file.read(&mut buf) {
            self.feed(buf.get(..n).unwrap_or(&[]), &mut line);
            between();
        }
        self.functions.sort_unstable_by_key(|f| f.start);
        self.functions.shrink_to_fit();
        self.names.shrink_to_fit();
    }

    /// Takes what was read; `line` keeps the part of a line that is not complete.
    fn feed(&mut self, bytes: &[u8], line: &mut Vec<u8>) {
        for part in bytes.split_inclusive(|b| *b == b'\n') {
            match part.strip_suffix(b"\n") {
                Some(whole) if line.is_empty() => {
                    self.take(whole);
                }
                Some(end) => {
                    line.extend_from_slice(end);
                    self.take(line);
                    line.clear();
                }
                None => line.extend_from_slice(part),
            }
        }
    }

    /// A line is an address, a kind, a name, and for modules a tab and `[module]`. There are more
    /// than a hundred thousand of them.
    fn take(&mut self, line: &[u8]) -> Option<()> {
        let mut start = 0u64;
        let mut rest = line;
        while let [byte, after @ ..] = rest
            && *byte != b' '
        {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => return None,
            };
            start = start << 4 | u64::from(digit);
            rest = after;
        }
        let [b' ', kind, b' ', name @ ..] = rest else {
            return None;
        };
        // Zero: addresses are hidden from this process.
        if start == 0 || !matches!(kind, b't' | b'T' | b'w' | b'W') {
            return None;
        }
        let name = name.split(|b| *b == b'\t').next().unwrap_or(name);
        let len = u8::try_from(name.len()).ok()?;
        let at = u32::try_from(self.names.len()).ok()?;
        if self.functions.len() < FUNCTIONS_MAX {
            self.names.push(len);
            self.names.extend_from_slice(name);
            self.functions.push(Function { start, name: at });
        }
        Some(())
    }

    /// The function at `pc`.
    #[must_use]
    pub fn function(&self, pc: u64) -> Option<&str> {
        let after = self.functions.partition_point(|f| f.start <= pc);
        let function = self.functions.get(after.checked_sub(1)?)?;
        if pc - function.start > FUNCTION_LEN_MAX {
            return None;
        }
        let (len, rest) = self.names.get(function.name as usize..)?.split_first()?;
        std::str::from_utf8(rest.get(..usize::from(*len))?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "ffffffff81000000 T _stext\nffffffff81000100 t do_one\n\
        ffffffff81000080 D data\nffffffffc0000000 t in_module\t[ext4]\n0000000000000000 T hidden\n";

    fn kernel(pieces: usize) -> Kernel {
        let mut kernel = Kernel::default();
        let mut line = Vec::new();
        for piece in TEXT.as_bytes().chunks(pieces) {
            kernel.feed(piece, &mut line);
        }
        kernel.functions.sort_unstable_by_key(|f| f.start);
        kernel
    }

    #[test]
    fn functions_are_found_however_the_file_arrives() {
        for pieces in [1, 7, 64, 4096] {
            let kernel = kernel(pieces);
            assert_eq!(kernel.function(0xffff_ffff_8100_0000), Some("_stext"));
            assert_eq!(kernel.function(0xffff_ffff_8100_00ff), Some("_stext"));
            assert_eq!(kernel.function(0xffff_ffff_8100_0200), Some("do_one"));
            assert_eq!(kernel.function(0xffff_ffff_c000_0004), Some("in_module"));
            assert_eq!(kernel.function(0xffff_ffff_d000_0000), None);
            assert_eq!(kernel.function(0x10), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut kernel = Kernel::default();
            kernel.feed(&bytes, &mut Vec::new());
            let _ = kernel.function(u64::MAX);
        }
    }
}

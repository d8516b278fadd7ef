//! The processor that an ELF file is for. The command carries the agent for its own processor only.
//! A JVM of another one may run under emulation. Nothing is sent to it.

use crate::Error;
use crate::root::Root;
use std::path::Path;

/// Bytes of a file that name its processor.
pub(crate) const HEAD_BYTES: usize = 20;

const X86_64: u16 = 62;
const AARCH64: u16 = 183;

/// This command's processor.
const OWN: u16 = if cfg!(target_arch = "aarch64") {
    AARCH64
} else {
    X86_64
};

/// `e_machine` of an ELF file that begins with `head` (System V ABI, chapter 4); `None` for any
/// other file.
fn of(head: &[u8]) -> Option<u16> {
    const LITTLE: u8 = 1;
    let [0x7f, b'E', b'L', b'F', _, order, ..] = head else {
        return None;
    };
    let bytes = head.get(18..HEAD_BYTES)?.try_into().ok()?;
    Some(match *order {
        LITTLE => u16::from_le_bytes(bytes),
        _ => u16::from_be_bytes(bytes),
    })
}

fn name(processor: u16) -> String {
    match processor {
        3 => "x86 (32 bits)".to_owned(),
        21 => "ppc64".to_owned(),
        22 => "s390x".to_owned(),
        40 => "arm (32 bits)".to_owned(),
        X86_64 => "x86-64".to_owned(),
        AARCH64 => "aarch64".to_owned(),
        243 => "riscv64".to_owned(),
        258 => "loongarch64".to_owned(),
        other => format!("processor {other}"),
    }
}

/// Refuses a JVM for another processor than this command's. `libjvm` is its path in the target. A
/// file that cannot be read is accepted: it may have been removed since it was mapped.
pub(crate) fn check_jvm(pid: u32, root: &Root, libjvm: &Path) -> Result<(), Error> {
    let path = libjvm.to_str().unwrap_or_default();
    let head = root.read(path, HEAD_BYTES as u64).unwrap_or_default();
    match of(&head) {
        Some(theirs) if theirs != OWN => Err(Error::OtherProcessor {
            pid,
            theirs: name(theirs),
            ours: name(OWN),
        }),
        _ => Ok(()),
    }
}

/// Refuses a library for another processor than this command's, which is that of all JVMs that it
/// accepts. A file of another format is left to the JVM's loader.
pub(crate) fn check_library(library: &str, bytes: &[u8]) -> Result<(), Error> {
    match of(bytes) {
        Some(theirs) if theirs != OWN => Err(Error::OtherLibrary {
            library: library.to_owned(),
            theirs: name(theirs),
            ours: name(OWN),
        }),
        _ => Ok(()),
    }
}

/// Refuses Mono where the module for it records nothing: it knows only how Mono's compiler for
/// x86-64 begins a method, and calls Mono's handler with that processor's registers.
///
/// # Errors
/// On any other processor, with its name.
pub fn check_mono() -> Result<(), Error> {
    mono_on(OWN)
}

fn mono_on(processor: u16) -> Result<(), Error> {
    match processor {
        X86_64 => Ok(()),
        other => Err(Error::MonoOnOtherProcessor { ours: name(other) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: u16 = if OWN == 62 { 183 } else { 62 };

    /// The begin of a shared library.
    fn head(order: u8, processor: u16) -> Vec<u8> {
        let mut head = vec![0; 64];
        head[..8].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, order, 1, 0]);
        let bytes = match order {
            1 => processor.to_le_bytes(),
            _ => processor.to_be_bytes(),
        };
        head[18..20].copy_from_slice(&bytes);
        head
    }

    #[test]
    fn header_names_the_processor() {
        assert_eq!(of(&head(1, 183)), Some(183));
        assert_eq!(of(&head(2, 22)), Some(22));
        assert_eq!(of(&head(1, 62)[..HEAD_BYTES]), Some(62));
        assert_eq!(of(&head(1, 62)[..HEAD_BYTES - 1]), None);
        assert_eq!(of(b""), None);
        assert_eq!(of(b"#!/bin/sh\necho a longer script"), None);
        assert_eq!((name(183), name(62)), ("aarch64".into(), "x86-64".into()));
    }

    #[test]
    fn jvm_of_another_processor_is_refused_by_name() {
        let path = std::env::temp_dir().join(format!("dwell-processor-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("other.so"), head(1, OTHER)).unwrap();
        std::fs::write(path.join("own.so"), head(1, OWN)).unwrap();
        let root = Root::new(std::fs::File::open(&path).unwrap().into());
        let check = |file: &str| check_jvm(7, &root, Path::new(file));
        let refused = check("/other.so").unwrap_err().to_string();
        let expected = format!(
            "JVM 7 is built for {theirs}, and this dwell for {ours}; use dwell for {theirs}, on a \
             machine where that JVM runs without emulation",
            theirs = name(OTHER),
            ours = name(OWN),
        );
        assert_eq!(refused, expected);
        assert!(check("/own.so").is_ok() && check("/missing.so").is_ok());
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn mono_is_refused_on_other_processors_by_name() {
        assert!(mono_on(X86_64).is_ok());
        assert_eq!(
            mono_on(AARCH64).unwrap_err().to_string(),
            "Mono programs can be recorded on x86-64 only, and this machine is aarch64; run the \
             program on an x86-64 machine"
        );
        assert_eq!(check_mono().is_ok(), cfg!(target_arch = "x86_64"));
    }

    #[test]
    fn library_of_another_processor_is_refused_by_name() {
        let check = |bytes: &[u8]| check_library("libdwell.so", bytes);
        let refused = check(&head(1, OTHER)).unwrap_err().to_string();
        let expected = format!(
            "libdwell.so is built for {}, and this dwell for {}; install both from one package",
            name(OTHER),
            name(OWN),
        );
        assert_eq!(refused, expected);
        assert!(check(&head(1, OWN)).is_ok() && check(b"text").is_ok());
    }
}

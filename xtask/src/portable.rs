//! `portable`: checks that built files load with glibc 2.17, with every later glibc, and with musl.
//! Must not run them: whether they work there is for the end-to-end tests.

use anyhow::{Context, Result, bail};
use object::Endianness;
use object::elf::{DT_NEEDED, PT_INTERP, STB_WEAK};
use object::read::elf::{ElfFile64, ProgramHeader, Sym, VersionTable};

/// The libraries that glibc 2.17 has and for which musl's loader takes its own.
const LIBRARIES: [&str; 4] = ["libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"];

/// The version of glibc that has to be enough.
const NEWEST: [u32; 2] = [2, 17];

/// The beginning of the names of functions that the program has in which the library is loaded.
const OF_THE_PROGRAM: &str = "mono_";

/// The stack protector's value on arm64. glibc has it in its loader, from the first version for
/// arm64 on (2.17), and musl in its libc. Some compilers' libraries for arm64 use it.
const OF_EACH_LOADER: &str = "__stack_chk_guard";

/// Runs the task with the paths of files; true if all is well.
///
/// # Errors
/// No path, or a file that cannot be read.
pub fn run(arguments: &[String]) -> Result<bool> {
    if arguments.is_empty() {
        bail!("portable: which files?");
    }
    let mut is_good = true;
    for path in arguments {
        let bytes = std::fs::read(path).with_context(|| format!("{path}: build it first"))?;
        let problems = problems(&bytes).with_context(|| path.clone())?;
        for problem in &problems {
            println!("{path}: {problem}");
        }
        is_good &= problems.is_empty();
    }
    Ok(is_good)
}

/// The reasons why a library or program does not load everywhere.
///
/// # Errors
/// Not an ELF file for 64 bits.
pub fn problems(bytes: &[u8]) -> Result<Vec<String>> {
    let file = ElfFile64::<Endianness>::parse(bytes).context("not a 64-bit ELF file")?;
    let (endian, data) = (file.endian(), file.data());
    let mut found = Vec::new();
    for header in file.elf_program_headers() {
        if header.p_type(endian) == PT_INTERP {
            found.push("is loaded by one libc's loader".to_owned());
        }
    }
    let dynamic = file.elf_section_table().dynamic_table(endian, data)?;
    for entry in dynamic.iter().filter(|entry| entry.tag == DT_NEEDED) {
        let name = String::from_utf8_lossy(dynamic.string(entry)?);
        if !LIBRARIES.contains(&name.as_ref()) {
            found.push(format!("needs {name}"));
        }
    }
    let versions = file.elf_section_table().versions(endian, data)?;
    found.extend(imports(&file, &versions.unwrap_or_default())?);
    Ok(found)
}

/// Symbols of other libraries that some of these do not have.
fn imports(
    file: &ElfFile64<'_, Endianness>,
    versions: &VersionTable<'_, object::elf::FileHeader64<Endianness>>,
) -> Result<Vec<String>> {
    let (endian, symbols) = (file.endian(), file.elf_dynamic_symbol_table());
    let mut found = Vec::new();
    for (index, symbol) in symbols.enumerate() {
        if !symbol.is_undefined(endian) {
            continue;
        }
        let name = String::from_utf8_lossy(symbol.name(endian, symbols.strings())?);
        let version = versions.version(versions.version_index(endian, index).index())?;
        let is_weak = symbol.st_bind() == STB_WEAK;
        match version.map(|version| String::from_utf8_lossy(version.name())) {
            Some(version) if !is_enough(&version) => found.push(format!("needs {name}@{version}")),
            None if is_weak || name.is_empty() || name == OF_EACH_LOADER => {}
            None if !name.starts_with(OF_THE_PROGRAM) => {
                found.push(format!(
                    "needs {name}, which has no version up to GLIBC_2.17"
                ));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Whether the oldest glibc has this version, such as `GLIBC_2.3.4`.
fn is_enough(version: &str) -> bool {
    let numbers = version.strip_prefix("GLIBC_").unwrap_or_default();
    let numbers: Result<Vec<u32>, _> = numbers.split('.').map(str::parse).collect();
    numbers.is_ok_and(|numbers| numbers.as_slice() <= NEWEST.as_slice())
}

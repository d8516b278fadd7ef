//! Links an agent so that it loads with glibc 2.17, with every later glibc, and with musl: part of
//! the build scripts of the libraries. Must not change how a program or a test is linked.
//!
//! A linker binds a symbol to the newest version that the build machine's libc has. Here it sees
//! stand-ins for the C libraries instead. They have the same symbols, each in its newest version up
//! to 2.17. `since.c` has the few functions without such a version. The unwinder of panics is
//! linked into the library, since small containers and musl systems have no `libgcc_s.so.1`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// The newest version of a symbol that may be needed: `GLIBC_2.17`.
const NEWEST: [u32; 2] = [2, 17];

/// Functions of libdl before glibc 2.34; libc has them since.
const OF_LIBDL: [&str; 8] = [
    "dladdr", "dladdr1", "dlclose", "dlerror", "dlinfo", "dlopen", "dlsym", "dlvsym",
];

/// How the names of functions begin that librt had before glibc 2.34: the agents do not use them.
const OF_LIBRT: [&str; 5] = ["aio_", "lio_", "mq_", "shm_", "timer_"];

/// Name for the linker, name for the loader, and the machine's libraries of which it stands for a
/// part.
const LIBRARIES: [(&str, &str); 4] = [
    ("c", "libc.so.6"),
    ("m", "libm.so.6"),
    ("pthread", "libpthread.so.0"),
    ("dl", "libdl.so.2"),
];

/// Symbols by version, by name of the library for the linker.
type Symbols = BTreeMap<&'static str, BTreeMap<String, BTreeSet<String>>>;

/// Has Cargo link the library of this build script's package against the stand-ins. Where they
/// cannot be made, it is linked for this machine only, with a warning.
pub fn for_every_libc(source: &Path) {
    println!("cargo::rerun-if-changed={}", source.display());
    let target = env::var("TARGET").unwrap_or_default();
    let Some(oldest) = oldest_version(&target) else {
        return;
    };
    let out = env::var("OUT_DIR").unwrap_or_default();
    match Tools::new(&target).and_then(|tools| make(&tools, oldest, Path::new(&out), source)) {
        Ok(()) => {
            println!("cargo::rustc-cdylib-link-arg=-L{out}");
            println!("cargo::rustc-cdylib-link-arg={out}/since.o");
        }
        Err(why) => println!(
            "cargo::warning=the library may need this machine's glibc or a newer one: {why}"
        ),
    }
}

/// The version of the symbol `__tls_get_addr`, by which glibc began on a processor; `None` where
/// the libraries are linked for one libc.
fn oldest_version(target: &str) -> Option<&'static str> {
    match target {
        "x86_64-unknown-linux-gnu" => Some("GLIBC_2.3"),
        "aarch64-unknown-linux-gnu" => Some("GLIBC_2.17"),
        _ => None,
    }
}

/// The C compiler and the lister of symbols for the target.
struct Tools {
    cc: String,
    nm: String,
}

impl Tools {
    /// Those of this machine, or for another target those in `CC_TARGET` and `NM_TARGET`.
    fn new(target: &str) -> Result<Self, String> {
        let find = |kind: &str, own: &str| {
            if env::var("HOST").as_deref() == Ok(target) {
                return Ok(own.to_owned());
            }
            let name = format!("{kind}_{}", target.replace('-', "_"));
            println!("cargo::rerun-if-env-changed={name}");
            env::var(&name).map_err(|_| format!("{name} is not set"))
        };
        let (cc, nm) = (find("CC", "cc")?, find("NM", "nm")?);
        Ok(Self { cc, nm })
    }
}

/// Writes the stand-ins to `out`.
fn make(tools: &Tools, oldest: &str, out: &Path, source: &Path) -> Result<(), String> {
    let mut symbols = Symbols::new();
    for (_, file) in LIBRARIES {
        let path = run(Command::new(&tools.cc).arg(format!("-print-file-name={file}")))?;
        let listed = run(Command::new(&tools.nm)
            .args(["-D", "--defined-only", "--with-symbol-versions"])
            .arg(path.trim()))?;
        collect(&listed, file, &mut symbols);
    }
    // The loader has this one, and the loader's name differs between libcs. A lookup does not
    // depend on the file, and libc.so.6 has the version, too.
    add(&mut symbols, "c", oldest, "__tls_get_addr");
    for (library, file) in LIBRARIES {
        stand_in(tools, out, library, file, &symbols)?;
    }
    write(&out.join("libgcc_s.so"), "INPUT ( -lgcc_eh -lgcc )\n")?;
    let mut compile = Command::new(&tools.cc);
    compile.args([
        "-c",
        "-O2",
        "-fPIC",
        "-ffunction-sections",
        "-fvisibility=hidden",
    ]);
    run(compile.arg(source).arg("-o").arg(out.join("since.o"))).map(drop)
}

/// Takes over what `nm` lists of one library: for each symbol its newest permitted version.
fn collect(listed: &str, file: &str, symbols: &mut Symbols) {
    let mut newest = BTreeMap::new();
    for line in listed.lines() {
        let name = line.split_whitespace().nth(2).unwrap_or_default();
        if let Some((name, version)) = name.split_once('@')
            && let Some(number) = permitted(version.trim_start_matches('@'))
        {
            let best = newest.entry(name).or_insert_with(|| number.clone());
            *best = number.max(best.clone());
        }
    }
    for (name, number) in newest {
        let library = match file {
            "libm.so.6" => "m",
            _ if name.starts_with("pthread_") || name.starts_with("sem_") => "pthread",
            _ if OF_LIBRT.iter().any(|head| name.starts_with(head)) => continue,
            _ if OF_LIBDL.contains(&name) => "dl",
            _ => "c",
        };
        let number: Vec<String> = number.iter().map(u32::to_string).collect();
        add(
            symbols,
            library,
            &format!("GLIBC_{}", number.join(".")),
            name,
        );
    }
}

fn add(symbols: &mut Symbols, library: &'static str, version: &str, name: &str) {
    let versions = symbols.entry(library).or_default();
    let names = versions.entry(version.to_owned()).or_default();
    names.insert(name.to_owned());
}

/// The number of a version such as `GLIBC_2.3.4`, if it may be needed.
fn permitted(version: &str) -> Option<Vec<u32>> {
    let numbers = version.strip_prefix("GLIBC_")?.split('.');
    let numbers: Vec<u32> = numbers.map(str::parse).collect::<Result<_, _>>().ok()?;
    (numbers.as_slice() <= NEWEST.as_slice()).then_some(numbers)
}

/// Makes a library that has the symbols and no code.
fn stand_in(
    tools: &Tools,
    out: &Path,
    library: &str,
    file: &str,
    symbols: &Symbols,
) -> Result<(), String> {
    let (mut code, mut script) = (String::from(".text\n"), String::new());
    for (version, names) in symbols.get(library).into_iter().flatten() {
        script += &format!("{version} {{ global:\n");
        for name in names {
            code += &format!(".globl {name}\n.type {name},@function\n{name}:\n");
            script += &format!("{name};\n");
        }
        script += "};\n";
    }
    let [code_path, script_path] = ["s", "map"].map(|end| out.join(format!("{library}.{end}")));
    write(&code_path, &code)?;
    write(&script_path, &script)?;
    let mut link = Command::new(&tools.cc);
    link.args(["-shared", "-nostdlib"])
        .arg(format!("-Wl,-soname,{file}"));
    link.arg(format!("-Wl,--version-script,{}", script_path.display()));
    run(link
        .arg(code_path)
        .arg("-o")
        .arg(out.join(format!("lib{library}.so"))))
    .map(drop)
}

fn write(path: &Path, content: &str) -> Result<(), String> {
    fs::write(path, content).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Runs a program, and returns its output.
fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().display().to_string();
    match command.output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!(
                "{name}: {}",
                said.lines().next().unwrap_or("it failed")
            ))
        }
        Err(error) => Err(format!("cannot run {name}: {error}")),
    }
}

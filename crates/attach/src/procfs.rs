//! Pure parsers of `/proc/PID/{maps,status,stat,cmdline,environ}` and `/proc/uptime`.
//!
//! The target controls the input (paths, names, arguments), so nothing here trusts a length or an
//! encoding. Nothing here touches the file system.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// One `*.so` mapping of interest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped {
    /// The path as the kernel prints it (from the root of the target's mount namespace).
    pub path: PathBuf,
    /// Whether the file was removed or replaced after it was mapped.
    pub deleted: bool,
}

/// The virtual machine of a process, by its mappings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Machine {
    /// No JVM.
    None,
    /// HotSpot's (or a compatible) libjvm.
    HotSpot(Mapped),
    /// Eclipse OpenJ9: SIGQUIT makes it write a dump, and its attach protocol is different.
    OpenJ9,
    /// Mono: not a JVM, and it loads nothing while it runs.
    Mono,
}

/// Decides from the text of `/proc/PID/maps` which virtual machine, if any, a process runs.
pub fn machine(maps: &[u8]) -> Machine {
    let mut found = Machine::None;
    for line in maps.split(|&b| b == b'\n') {
        let Some(path) = map_path(line) else { continue };
        let (path, deleted) = strip_deleted(path);
        match file_name(path) {
            b"libjvm.so" if !matches!(found, Machine::HotSpot(_)) => {
                found = Machine::HotSpot(Mapped {
                    path: unescape(path),
                    deleted,
                });
            }
            name if name.starts_with(b"libj9vm") => return Machine::OpenJ9,
            name if is_mono(name) && found == Machine::None => found = Machine::Mono,
            _ => {}
        }
    }
    found
}

/// Whether a file is Mono itself, by the names that its makers and Debian use.
fn is_mono(name: &[u8]) -> bool {
    let libraries: [&[u8]; 3] = [
        b"libmono-2.0.so",
        b"libmonosgen-2.0.so",
        b"libmonoboehm-2.0.so",
    ];
    matches!(name, b"mono" | b"mono-sgen" | b"mono-boehm")
        || libraries.iter().any(|library| name.starts_with(library))
}

/// The first mapping of a file named `name`.
pub fn mapped_file(maps: &[u8], name: &str) -> Option<Mapped> {
    maps.split(|&b| b == b'\n').find_map(|line| {
        let (path, deleted) = strip_deleted(map_path(line)?);
        (file_name(path) == name.as_bytes()).then(|| Mapped {
            path: unescape(path),
            deleted,
        })
    })
}

/// The first mapped file whose directory's name begins with `prefix`.
pub fn mapped_in(maps: &[u8], prefix: &str) -> Option<Mapped> {
    maps.split(|&b| b == b'\n').find_map(|line| {
        let (path, deleted) = strip_deleted(map_path(line)?);
        let dir = path.rsplit(|&b| b == b'/').nth(1)?;
        dir.starts_with(prefix.as_bytes()).then(|| Mapped {
            path: unescape(path),
            deleted,
        })
    })
}

/// The path column of one line of maps; `None` for anonymous memory and invalid lines.
fn map_path(line: &[u8]) -> Option<&[u8]> {
    let mut rest = line;
    for _ in 0..5 {
        let end = rest.iter().position(|&b| b == b' ')?;
        rest = rest.get(end..)?.trim_ascii_start();
    }
    rest.starts_with(b"/").then_some(rest)
}

fn strip_deleted(path: &[u8]) -> (&[u8], bool) {
    match path.strip_suffix(b" (deleted)") {
        Some(path) => (path, true),
        None => (path, false),
    }
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&b| b == b'/').next().unwrap_or(path)
}

/// Decodes the kernel's `\012` for a newline in a path.
fn unescape(path: &[u8]) -> PathBuf {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&first, tail)) = rest.split_first() {
        match rest.strip_prefix(b"\\012") {
            Some(tail) => {
                out.push(b'\n');
                rest = tail;
            }
            None => {
                out.push(first);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(out))
}

/// Contents of `/proc/PID/status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The kernel's name of the process (at most 15 bytes).
    pub name: String,
    /// State letter (`R`, `S`, `D`, `T`, `t`, `Z`, ...).
    pub state: char,
    /// The process a thread belongs to.
    pub tgid: u32,
    /// Effective user, as seen from our user namespace.
    pub euid: u32,
    /// Effective group, as seen from our user namespace.
    pub egid: u32,
    /// The pid in the innermost pid namespace, which is HotSpot's own pid.
    pub ns_pid: u32,
    /// Signals with a handler, bit `n - 1` for signal `n`.
    pub signals_caught: u64,
}

const SIGQUIT_BIT: u64 = 1 << 2;

impl Status {
    /// Parses the file; `None` if a required field is missing.
    pub fn parse(text: &[u8]) -> Option<Status> {
        let text = String::from_utf8_lossy(text);
        let field = |key: &str| {
            text.lines()
                .find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim()))
        };
        let nth = |key: &str, index: usize| -> Option<u32> {
            field(key)?
                .split_ascii_whitespace()
                .nth(index)?
                .parse()
                .ok()
        };
        let tgid = nth("Tgid", 0)?;
        let innermost = field("NSpid")
            .and_then(|list| list.split_ascii_whitespace().next_back())
            .and_then(|pid| pid.parse().ok());
        Some(Status {
            name: printable(field("Name").unwrap_or("?")),
            state: field("State")?.chars().next()?,
            tgid,
            euid: nth("Uid", 1)?,
            egid: nth("Gid", 1)?,
            ns_pid: innermost.unwrap_or(tgid),
            signals_caught: u64::from_str_radix(field("SigCgt")?, 16).ok()?,
        })
    }

    /// Whether the process has a handler for SIGQUIT; without one the signal would end it.
    pub fn catches_quit(&self) -> bool {
        self.signals_caught & SIGQUIT_BIT != 0
    }

    /// Whether the process is dead and only waits to be reaped.
    pub fn has_exited(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// Whether job control or a debugger holds the process.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }
}

/// State letter and start time (clock ticks after boot) from `/proc/PID/stat`.
pub fn state_and_start(stat: &[u8]) -> Option<(char, u64)> {
    // The name in parentheses may itself hold spaces and parentheses: begin after the last one.
    let close = stat.iter().rposition(|&b| b == b')')?;
    let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let start = fields.nth(18)?.parse().ok()?;
    Some((state, start))
}

/// Milliseconds since boot from `/proc/uptime`.
pub fn uptime_ms(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (seconds, hundredths) = text.split_ascii_whitespace().next()?.split_once('.')?;
    let seconds: u64 = seconds.parse().ok()?;
    let hundredths: u64 = hundredths.get(..2)?.parse().ok()?;
    seconds.checked_mul(1000)?.checked_add(hundredths * 10)
}

/// Splits NUL-terminated strings (`cmdline`, `environ`) into words, lossily decoded.
pub fn nul_words(bytes: &[u8]) -> Vec<String> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes
        .split(|&b| b == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// The value of an environment variable in the words of `environ`.
pub fn variable<'a>(environ: &'a [String], name: &str) -> Option<&'a str> {
    environ
        .iter()
        .find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))
}

/// Makes the target's text safe for a terminal: control characters become `?`.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const JVM: &[u8] = b"\
55d0c0a00000-55d0c0a01000 r--p 00000000 fe:00 315127                     /opt/jdk 17/bin/java\n\
7f430ce00000-7f430d051000 r--p 00000000 fe:00 315152       /opt/jdk 17/lib/server/libjvm.so\n\
7f430d051000-7f430e000000 r-xp 00251000 fe:00 315152       /opt/jdk 17/lib/server/libjvm.so\n\
7f430f000000-7f4310000000 rw-p 00000000 00:00 0 \n\
7fff00000000-7fff00021000 rw-p 00000000 00:00 0                          [stack]\n";

    #[test]
    fn libjvm_is_found_with_spaces_in_its_path() {
        let Machine::HotSpot(found) = machine(JVM) else {
            panic!("not found")
        };
        assert_eq!(
            found.path,
            PathBuf::from("/opt/jdk 17/lib/server/libjvm.so")
        );
        assert!(!found.deleted);
    }

    #[test]
    fn a_replaced_libjvm_is_marked() {
        let line = b"7f0-7f1 r--p 0 fe:00 1   /j/libjvm.so (deleted)\n";
        let Machine::HotSpot(found) = machine(line) else {
            panic!("not found")
        };
        assert_eq!(
            (found.path, found.deleted),
            (PathBuf::from("/j/libjvm.so"), true)
        );
    }

    #[test]
    fn names_that_only_contain_libjvm_do_not_count() {
        let text = b"7f0-7f1 r--p 0 fe:00 1   /j/libjvm.so.bak\n\
                     7f0-7f1 r--p 0 fe:00 1   /j/libjvm.so/x\n\
                     7f0-7f1 r--p 0 00:00 0   libjvm.so\n";
        assert_eq!(machine(text), Machine::None);
    }

    #[test]
    fn openj9_is_distinguished() {
        let text = b"7f0-7f1 r--p 0 fe:00 1   /j/lib/default/libjvm.so\n\
                     7f0-7f1 r--p 0 fe:00 1   /j/lib/default/libj9vm29.so\n";
        assert_eq!(machine(text), Machine::OpenJ9);
    }

    #[test]
    fn mono_is_known_by_its_program_or_library() {
        for name in [
            "/usr/bin/mono-sgen",
            "/x/mono",
            "/l/libmonosgen-2.0.so.1.0.0",
        ] {
            let text = format!("7f0-7f1 r--p 0 fe:00 1   {name}\n");
            assert_eq!(machine(text.as_bytes()), Machine::Mono, "{name}");
        }
        for name in ["/usr/bin/monodis", "/usr/lib/libmono-native.so", "/mono/x"] {
            let text = format!("7f0-7f1 r--p 0 fe:00 1   {name}\n");
            assert_eq!(machine(text.as_bytes()), Machine::None, "{name}");
        }
        // If both are mapped, the JVM counts, because dwell can attach to it.
        let both = b"7f0-7f1 r--p 0 fe:00 1   /usr/bin/mono-sgen\n\
                     7f0-7f1 r--p 0 fe:00 1   /j/lib/server/libjvm.so\n";
        assert!(matches!(machine(both), Machine::HotSpot(_)));
    }

    #[test]
    fn newline_in_a_path_is_restored() {
        let text = b"7f0-7f1 r--p 0 fe:00 1   /a\\012b/libx.so\n";
        assert_eq!(
            mapped_file(text, "libx.so").unwrap().path,
            PathBuf::from("/a\nb/libx.so")
        );
    }

    const STATUS: &[u8] = b"Name:\tjava\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t8117\n\
Ngid:\t0\nPid:\t8117\nUid:\t1000\t4242\t1000\t4242\nGid:\t100\t200\t100\t200\n\
NStgid:\t8117\t7\nNSpid:\t8117\t7\nSigIgn:\t0000000000000000\nSigCgt:\t0000000101005ccd\n";

    #[test]
    fn status_gives_effective_ids_and_the_innermost_pid() {
        let status = Status::parse(STATUS).unwrap();
        assert_eq!((status.euid, status.egid, status.ns_pid), (4242, 200, 7));
        assert_eq!(
            (status.tgid, status.state, status.name.as_str()),
            (8117, 'S', "java")
        );
        assert!(status.catches_quit());
        assert!(!status.has_exited() && !status.is_stopped());
    }

    #[test]
    fn reduced_signals_are_seen() {
        let text = String::from_utf8_lossy(STATUS).replace("101005ccd", "000005cc8");
        assert!(!Status::parse(text.as_bytes()).unwrap().catches_quit());
    }

    #[test]
    fn missing_fields_are_not_guessed() {
        let text = String::from_utf8_lossy(STATUS).replace("SigCgt", "SigXyz");
        assert_eq!(Status::parse(text.as_bytes()), None);
        let old = String::from_utf8_lossy(STATUS).replace("NSpid", "NSold");
        assert_eq!(Status::parse(old.as_bytes()).unwrap().ns_pid, 8117);
    }

    #[test]
    fn stat_survives_parentheses_in_the_name() {
        let stat = b"12 (a) b (c)) S 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 25 0 98765 1 2";
        assert_eq!(state_and_start(stat), Some(('S', 98765)));
        assert_eq!(state_and_start(b"12 (a"), None);
    }

    #[test]
    fn uptime_is_read_in_milliseconds() {
        assert_eq!(uptime_ms(b"350735.47 234388.90\n"), Some(350_735_470));
        assert_eq!(uptime_ms(b"x"), None);
    }

    #[test]
    fn words_keep_empty_arguments() {
        assert_eq!(nul_words(b"java\0\0-x\0"), ["java", "", "-x"]);
        assert!(nul_words(b"").is_empty());
    }

    #[test]
    fn variables_match_whole_names() {
        let words = nul_words(b"XA=1\0A=2=3\0");
        assert_eq!(variable(&words, "A"), Some("2=3"));
        assert_eq!(variable(&words, "B"), None);
    }

    proptest! {
        #[test]
        fn parsers_take_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            machine(&bytes);
            mapped_file(&bytes, "libjvm.so");
            Status::parse(&bytes);
            state_and_start(&bytes);
            uptime_ms(&bytes);
            nul_words(&bytes);
        }

        #[test]
        fn any_path_comes_back(dir in "[^\0\\\\]{0,40}") {
            let shown = format!("/{}/libjvm.so", dir.replace('\n', "\\012"));
            let line = format!("7f00-7f01 r-xp 00000000 fe:00 315152      {shown}\n");
            let wanted = PathBuf::from(format!("/{dir}/libjvm.so"));
            prop_assert_eq!(machine(line.as_bytes()), Machine::HotSpot(Mapped {
                path: wanted, deleted: false,
            }));
        }

        #[test]
        fn shown_text_has_no_control_characters(text in any::<String>()) {
            prop_assert!(!printable(&text).chars().any(char::is_control));
        }
    }
}

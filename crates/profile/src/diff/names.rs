//! Names that are the same in each run of a program: without the numbers and addresses that the JVM
//! gives to classes it makes, and without the random parts of files that programs unpack.

/// Numbers behind these are counters of the JVM.
const COUNTED: &[&str] = &[
    "$$Lambda$",
    "GeneratedMethodAccessor",
    "GeneratedConstructorAccessor",
    "GeneratedSerializationConstructorAccessor",
    "$Proxy",
    "LambdaForm$MH$",
    "LambdaForm$DMH$",
];

/// The name without what changes from run to run.
#[must_use]
pub fn stable(name: &str) -> String {
    let mut text = without_addresses(name);
    if let Some(end) = library_end(&text) {
        text = without_random_parts(&text, end);
    }
    for counted in COUNTED {
        let Some(at) = text.find(counted).map(|at| at + counted.len()) else {
            continue;
        };
        let rest = text.get(at..).unwrap_or("");
        let left = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        text = format!("{}{left}", text.get(..at).unwrap_or(""));
    }
    without_serial(text.replace("$$Lambda$.", "$$Lambda."))
}

/// Where the name of a file of machine code ends, its ending not included.
fn library_end(text: &str) -> Option<usize> {
    const ENDINGS: [&str; 5] = [".so", ".tmp", ".dylib", ".jnilib", ".dll"];
    let ends = ENDINGS.iter().filter_map(|ending| {
        let is_end = |at: &usize| {
            let rest = text.get(at + ending.len()..).unwrap_or("");
            !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        };
        let mut places = text.match_indices(ending).map(|(at, _)| at);
        places.find(is_end)
    });
    // Names of classes have points and no such signs.
    let is_file =
        |name: &str| name.starts_with("lib") || name.contains(['-', '/']) || !name.contains('.');
    ends.min()
        .filter(|end| is_file(text.get(..*end).unwrap_or("")))
}

/// Digits before a file's ending that are no version: `File.createTempFile` puts a random number
/// there.
const RANDOM_DIGITS: usize = 3;
/// As many digits, or hexadecimal digits between signs, are no version anywhere.
const RANDOM_ANYWHERE: usize = 8;
/// Directories in which programs unpack files.
const TEMPORARY: [&str; 2] = ["/tmp/", "/var/tmp/"];

/// The name of a library without what programs put into it that unpack it at each start: numbers,
/// hexadecimal numbers, UUIDs.
fn without_random_parts(text: &str, end: usize) -> String {
    let (name, ending) = text.split_at(end);
    let is_temporary = TEMPORARY.iter().any(|start| name.starts_with(start));
    let mut out = String::with_capacity(text.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        // A word of letters and digits, with the signs between the groups of a UUID.
        let word = uuid(rest).unwrap_or_else(|| {
            let is_part = |c: char| c.is_ascii_alphanumeric();
            rest.find(|c| !is_part(c)).unwrap_or(rest.len())
        });
        let (word, after) = rest.split_at(word.max(first.len_utf8()));
        let ends_name = after.is_empty() || is_temporary && after.starts_with('/');
        match is_hex(word) {
            true => {}
            false => out.push_str(without_digits(word, ends_name)),
        }
        rest = after;
    }
    out + ending
}

/// The length of a UUID that a text begins with.
fn uuid(text: &str) -> Option<usize> {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let length = GROUPS.iter().sum::<usize>() + GROUPS.len() - 1;
    let uuid = text.get(..length)?;
    let mut groups = uuid.split('-').zip(GROUPS);
    let is_group = |(group, length): (&str, usize)| {
        group.len() == length && group.bytes().all(|c| c.is_ascii_hexdigit())
    };
    (uuid.matches('-').count() + 1 == GROUPS.len() && groups.all(is_group)).then_some(length)
}

/// Whether a word is a long hexadecimal number, or a UUID.
fn is_hex(word: &str) -> bool {
    let is_digit = |c: u8| c.is_ascii_hexdigit() || c == b'-';
    word.len() >= RANDOM_ANYWHERE
        && word.bytes().all(is_digit)
        && word.bytes().any(|c| c.is_ascii_digit())
}

/// A word without the number at its end, if that is no version.
fn without_digits(word: &str, ends_name: bool) -> &str {
    let head = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let least = if ends_name {
        RANDOM_DIGITS
    } else {
        RANDOM_ANYWHERE
    };
    if word.len() - head.len() >= least {
        head
    } else {
        word
    }
}

/// The JDK's recorder writes `a.B$$Lambda$14.1800031768`: no method's name begins with a digit.
fn without_serial(mut text: String) -> String {
    const LAMBDA: &str = "$$Lambda.";
    if let Some(at) = text.find(LAMBDA).map(|at| at + LAMBDA.len()) {
        let rest = text.get(at..).unwrap_or("");
        let left = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if left.len() < rest.len() {
            let left = left.strip_prefix('.').unwrap_or(left).to_owned();
            text.truncate(at);
            text.push_str(&left);
        }
    }
    text
}

/// Hidden classes end in `+0x` or `/0x` and an address, in the JDK's own recordings in `.0x`.
fn without_addresses(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = ["+0x", "/0x", ".0x"]
        .iter()
        .filter_map(|start| rest.find(start))
        .min()
    {
        let (head, tail) = rest.split_at(at);
        let digits = tail.get(3..).unwrap_or("");
        text.push_str(head);
        rest = digits.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_give_the_same_names() {
        for (name, expected) in [
            ("a.B$$Lambda$67+0x00007feed400e208.call", "a.B$$Lambda.call"),
            ("a.B$$Lambda+0x0000000095041c30.run", "a.B$$Lambda.run"),
            ("a.B$$Lambda/0x0000000095041c30.run", "a.B$$Lambda.run"),
            ("a.B$$Lambda.0x0000000095041c30.run", "a.B$$Lambda.run"),
            ("a.B$$Lambda.1800031768.run", "a.B$$Lambda.run"),
            ("a.B$$Lambda$14.1800031768.run", "a.B$$Lambda.run"),
            ("a.LambdaForm$MH.0x00ab.invoke", "a.LambdaForm$MH.invoke"),
            (
                "jdk.GeneratedMethodAccessor12.invoke",
                "jdk.GeneratedMethodAccessor.invoke",
            ),
            ("com.sun.$Proxy3.get", "com.sun.$Proxy.get"),
            (
                "libnetty_tcnative_linux_x86_64123456789.so.SSL_read",
                "libnetty_tcnative_linux_x86_.so.SSL_read",
            ),
            ("/tmp/jna-1234/jna567.tmp", "/tmp/jna-/jna.tmp"),
            ("jna5678901234567.tmp.ffi_call", "jna.tmp.ffi_call"),
            ("librocksdbjni123.so.Get", "librocksdbjni.so.Get"),
            (
                "snappy-1.1-0b1b5b6a-1f2e-4a3b-9c8d-0123456789ab-libsnappyjava.so.compress",
                "snappy-1.1--libsnappyjava.so.compress",
            ),
            (
                "jansi-2.4.0-6a3e2b7d8f90-libjansi.so",
                "jansi-2.4.0--libjansi.so",
            ),
            ("libzstd-jni-1.5.5-41234567890.so", "libzstd-jni-1.5.5-.so"),
            // Versions and what is no library stay.
            ("libjvm.so.x12345678", "libjvm.so.x12345678"),
            ("libz.so.1.inflate", "libz.so.1.inflate"),
            ("libssl3.so", "libssl3.so"),
            ("libfoo_x86_64.so.run", "libfoo_x86_64.so.run"),
            ("app.solver.Run123.go", "app.solver.Run123.go"),
            ("app.Run123.tmp", "app.Run123.tmp"),
            ("a.B.m12", "a.B.m12"),
            ("a.$Proxied7.x", "a.$Proxied7.x"),
            ("+0x", ""),
        ] {
            assert_eq!(stable(name), expected);
        }
    }
}

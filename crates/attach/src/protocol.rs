//! Requests and replies of HotSpot's attach listener, both protocol versions. Pure.
//!
//! Version 1 (every JDK from 8 on) has exactly three arguments, each with a maximum of 1024 bytes.
//! Version 2 (JDK 24 on) has any number of arguments within 256 KiB. A reply is a result code in
//! decimal, a newline, and text whose form depends on command and JDK.

/// Version of the request format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Three arguments of limited length.
    V1,
    /// Length-prefixed, any number of arguments.
    V2,
}

/// Longest argument of a version 1 request, in bytes.
pub const V1_ARGUMENT_MAX: usize = 1024;
const V1_NAME_MAX: usize = 16;
const V1_ARGUMENTS: usize = 3;
const V2_LENGTH_MAX: usize = 256 * 1024;

/// Result code of a listener that does not know the request's version.
pub const BAD_VERSION: i32 = 101;

/// The reason why a request cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unwritable {
    /// A part is longer than the version allows.
    TooLong {
        /// Name of the part.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// A NUL in a string, which would end it early.
    Nul,
}

/// The bytes of a request.
pub fn encode(version: Version, command: &str, args: &[&str]) -> Result<Vec<u8>, Unwritable> {
    if command.contains('\0') || args.iter().any(|arg| arg.contains('\0')) {
        return Err(Unwritable::Nul);
    }
    match version {
        Version::V1 => encode_v1(command, args),
        Version::V2 => encode_v2(command, args),
    }
}

fn limit(what: &'static str, len: usize, max: usize) -> Result<(), Unwritable> {
    if len > max {
        Err(Unwritable::TooLong { what, len, max })
    } else {
        Ok(())
    }
}

fn encode_v1(command: &str, args: &[&str]) -> Result<Vec<u8>, Unwritable> {
    limit("command", command.len(), V1_NAME_MAX)?;
    limit("list of arguments", args.len(), V1_ARGUMENTS)?;
    let mut out = b"1\0".to_vec();
    push(&mut out, command);
    for index in 0..V1_ARGUMENTS {
        let arg = args.get(index).copied().unwrap_or("");
        limit(
            "the option string for the agent",
            arg.len(),
            V1_ARGUMENT_MAX,
        )?;
        push(&mut out, arg);
    }
    Ok(out)
}

fn encode_v2(command: &str, args: &[&str]) -> Result<Vec<u8>, Unwritable> {
    let mut body = Vec::new();
    push(&mut body, command);
    args.iter().for_each(|arg| push(&mut body, arg));
    limit("the request", body.len(), V2_LENGTH_MAX)?;
    let mut out = format!("2\0{}\0", body.len()).into_bytes();
    out.append(&mut body);
    Ok(out)
}

fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// A reply: result code of the listener and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// 0 if the listener executed the command.
    pub code: i32,
    /// The text after the first line.
    pub text: String,
}

impl Reply {
    /// Parses a whole reply; `None` if it does not begin with a line that has a number.
    pub fn parse(bytes: &[u8]) -> Option<Reply> {
        let end = bytes
            .iter()
            .position(|&b| b == b'\n')
            .unwrap_or(bytes.len());
        let code = std::str::from_utf8(bytes.get(..end)?)
            .ok()?
            .trim()
            .parse()
            .ok()?;
        let text = bytes.get(end + 1..).unwrap_or(&[]);
        Some(Reply {
            code,
            text: String::from_utf8_lossy(text).into_owned(),
        })
    }

    /// The protocol version that a reply to `getversion` announces.
    pub fn announced_version(&self) -> Version {
        let number = self
            .text
            .split_ascii_whitespace()
            .next()
            .and_then(|word| word.parse().ok());
        match (self.code, number) {
            (0, Some(2..=99)) => Version::V2,
            _ => Version::V1,
        }
    }

    /// The result in a reply to `load`.
    pub fn load_result(&self) -> LoadResult {
        const DISABLED: &str = "Dynamic agent loading is not enabled";
        let text = self.text.trim();
        if text.contains(DISABLED) {
            return LoadResult::Disabled;
        }
        let number = text.strip_prefix("return code:").unwrap_or(text).trim();
        match (self.code, number.parse()) {
            (0, Ok(code)) => LoadResult::Ran { code },
            _ => LoadResult::Failed {
                text: one_line(text),
            },
        }
    }
}

/// Outcome of a `load` command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadResult {
    /// The library was loaded and its entry point returned this code.
    Ran {
        /// The result of `Agent_OnAttach`.
        code: i32,
    },
    /// The JVM does not take agents at run time.
    Disabled,
    /// The library could not be loaded.
    Failed {
        /// The loader's text, on one line; may be empty (JDK 8 does not provide it).
        text: String,
    },
}

/// Joins the lines of a text for an error message, without control characters.
pub fn one_line(text: &str) -> String {
    let joined = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    crate::procfs::printable(&joined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn v1_has_three_arguments_always() {
        let bytes = encode(Version::V1, "load", &["/a.so", "true"]).unwrap();
        assert_eq!(bytes, b"1\0load\0/a.so\0true\0\0");
        assert!(encode(Version::V1, "x", &["1", "2", "3", "4"]).is_err());
    }

    #[test]
    fn v1_limits_are_the_listeners() {
        let fits = "x".repeat(1024);
        assert!(encode(Version::V1, "load", &[&fits]).is_ok());
        let too_long = "x".repeat(1025);
        let error = encode(Version::V1, "load", &[&too_long]).unwrap_err();
        assert!(matches!(
            error,
            Unwritable::TooLong {
                len: 1025,
                max: 1024,
                ..
            }
        ));
        assert!(encode(Version::V1, "seventeen-letters", &[]).is_err());
        assert_eq!(encode(Version::V1, "a\0b", &[]), Err(Unwritable::Nul));
    }

    #[test]
    fn v2_counts_its_bytes() {
        let bytes = encode(Version::V2, "load", &["/a.so", "true", "", "4"]).unwrap();
        assert_eq!(bytes, b"2\x0019\0load\0/a.so\0true\0\x004\0");
        let huge = "x".repeat(256 * 1024);
        assert!(encode(Version::V2, "load", &[&huge]).is_err());
    }

    #[test]
    fn replies_of_every_jdk_to_load_are_understood() {
        let load = |bytes: &[u8]| Reply::parse(bytes).unwrap().load_result();
        let failed = |text: &str| LoadResult::Failed { text: text.into() };
        assert_eq!(load(b"0\n0\n"), LoadResult::Ran { code: 0 });
        assert_eq!(load(b"0\n-1\n"), LoadResult::Ran { code: -1 });
        assert_eq!(load(b"0\nreturn code: 0\n"), LoadResult::Ran { code: 0 });
        assert_eq!(load(b"0\nreturn code: 7\n"), LoadResult::Ran { code: 7 });
        assert_eq!(load(b"-1\n"), failed(""));
        assert_eq!(
            load(b"-1\n/a.so: cannot\n open\n"),
            failed("/a.so: cannot open")
        );
        assert_eq!(
            load(b"0\n/a.so was not loaded.\n"),
            failed("/a.so was not loaded.")
        );
        assert_eq!(load(b"0"), failed(""));
        assert_eq!(
            load(b"0\nDynamic agent loading is not enabled. Use -XX"),
            LoadResult::Disabled
        );
    }

    #[test]
    fn versions_are_announced() {
        let version = |bytes: &[u8]| Reply::parse(bytes).unwrap().announced_version();
        assert_eq!(version(b"0\n2 options\n"), Version::V2);
        assert_eq!(version(b"101\n"), Version::V1);
        assert_eq!(version(b"-1\nOperation not recognized"), Version::V1);
    }

    #[test]
    fn a_reply_without_a_number_is_none() {
        assert_eq!(Reply::parse(b""), None);
        assert_eq!(Reply::parse(b"OK\n"), None);
        assert_eq!(Reply::parse(b"\xff\n"), None);
    }

    proptest! {
        #[test]
        fn any_reply_is_taken(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            if let Some(reply) = Reply::parse(&bytes) {
                reply.load_result();
                reply.announced_version();
            }
        }

        #[test]
        fn v2_length_is_true(args in proptest::collection::vec("[^\0]{0,30}", 0..6)) {
            let list: Vec<&str> = args.iter().map(String::as_str).collect();
            let bytes = encode(Version::V2, "load", &list).unwrap();
            let mut parts = bytes.splitn(3, |&b| b == 0).skip(1);
            let len: usize = std::str::from_utf8(parts.next().unwrap()).unwrap().parse().unwrap();
            let body = parts.next().unwrap();
            prop_assert_eq!(len, body.len());
            prop_assert_eq!(body.iter().filter(|&&b| b == 0).count(), args.len() + 1);
        }
    }
}

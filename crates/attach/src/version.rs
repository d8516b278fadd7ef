//! JDK versions from a `release` file or from libjvm's own text. Pure.

/// `JAVA_VERSION` of a JDK's `release` file.
pub fn from_release(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let value = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("JAVA_VERSION="))?;
    plausible(value.trim().trim_matches('"'))
}

/// The version in the text that libjvm carries for error reports: `... JRE (VERSION), built on`.
pub fn from_libjvm(bytes: &[u8]) -> Option<String> {
    const BEFORE: &[u8] = b" JRE (";
    let mut rest = bytes;
    while let Some(at) = find(rest, BEFORE) {
        rest = rest.get(at + BEFORE.len()..)?;
        let text = rest.get(..rest.len().min(80))?;
        let Some(end) = text.iter().position(|&b| b == b')') else {
            continue;
        };
        if let Some(found) = std::str::from_utf8(text.get(..end)?)
            .ok()
            .and_then(plausible)
        {
            return Some(found);
        }
    }
    None
}

/// `1.8.0_504-8u504-ga-1-b01` and `25.0.3+9-LTS` become `1.8.0_504` and `25.0.3`.
fn plausible(text: &str) -> Option<String> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    let version = text.get(..end)?.trim_end_matches(['.', '_']);
    (version.starts_with(|c: char| c.is_ascii_digit()) && version.len() < 40)
        .then(|| version.to_owned())
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// The feature release (8, 17, 25) of a version string.
pub fn feature(version: &str) -> Option<u32> {
    let mut parts = version.split(['.', '_', '+', '-']);
    match parts.next()?.parse().ok()? {
        1 => parts.next()?.parse().ok(),
        feature => Some(feature),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn release_files_are_read() {
        let text = b"IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"25.0.3\"\nJAVA_VERSION_DATE=\"y\"\n";
        assert_eq!(from_release(text).as_deref(), Some("25.0.3"));
        assert_eq!(
            from_release(b"JAVA_VERSION=\"1.8.0_504\"").as_deref(),
            Some("1.8.0_504")
        );
        assert_eq!(
            from_release(b"JAVA_VERSION=\"28-ea\"").as_deref(),
            Some("28")
        );
        assert_eq!(from_release(b"Debian release 12"), None);
        assert_eq!(from_release(b"JAVA_VERSION=\"\""), None);
    }

    #[test]
    fn libjvm_text_is_read() {
        let old = b"\0 JRE (\0x JRE (1.8.0_504-8u504-ga-1-b01), built on Aug 20 2026";
        assert_eq!(from_libjvm(old).as_deref(), Some("1.8.0_504"));
        let new = b"for linux-amd64 JRE (25.0.3+9-LTS), built on 2026-04-21T00:00:00Z";
        assert_eq!(from_libjvm(new).as_deref(), Some("25.0.3"));
        assert_eq!(from_libjvm(b"JRE"), None);
    }

    #[test]
    fn features_are_numbers() {
        assert_eq!(feature("1.8.0_504"), Some(8));
        assert_eq!(feature("25.0.3"), Some(25));
        assert_eq!(feature("28-ea"), Some(28));
        assert_eq!(feature(""), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            from_release(&bytes);
            from_libjvm(&bytes);
        }
    }
}

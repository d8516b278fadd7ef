//! Headers from the environment and from files.

mod common;

use common::Scratch;
use dwell_ship::Headers;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A file with this text and mode.
fn file(scratch: &Scratch, text: &str, mode: u32) -> PathBuf {
    let path = scratch.path().join("headers");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

fn pairs(headers: &Headers) -> Vec<(&str, &str)> {
    let all = headers.all.iter();
    all.map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect()
}

#[test]
fn headers_are_read_and_not_printed() {
    let scratch = Scratch::new();
    let text = "# a comment\n\nX-Scope-OrgID: team a\nAuthorization:Basic eA==\n";
    let path = file(&scratch, text, 0o600);
    let headers = Headers::read(Some(" Bearer secret1 "), Some(&path)).unwrap();
    assert_eq!(
        pairs(&headers),
        [
            ("authorization", "Bearer secret1"),
            ("x-scope-orgid", "team a"),
            ("authorization", "Basic eA=="),
        ]
    );
    assert_eq!(headers.warning, None);
    let printed = format!("{headers:?}");
    assert!(
        !printed.contains("secret1") && !printed.contains("eA"),
        "{printed}"
    );
    assert!(Headers::read(None, None).unwrap().all.is_empty());
}

#[test]
fn file_that_others_can_read_has_a_warning() {
    let scratch = Scratch::new();
    for mode in [0o644, 0o640, 0o604] {
        let path = file(&scratch, "a: b", mode);
        let warning = Headers::read(None, Some(&path)).unwrap().warning.unwrap();
        assert!(warning.contains("chmod 600"), "{warning}");
    }
}

#[test]
fn bad_headers_are_named_without_their_values() {
    let scratch = Scratch::new();
    for text in [
        "a: b\nsecret9\n",
        "a: b\nb c: secret9",
        "a: b\nb: secret9\u{7}",
    ] {
        let path = file(&scratch, text, 0o600);
        let error = Headers::read(None, Some(&path)).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        assert!(!error.contains("secret9"), "{error}");
    }
    let error = Headers::read(Some("secret9\n\u{1}x"), None)
        .unwrap_err()
        .to_string();
    assert!(error.contains("DWELL_SHIP_AUTHORIZATION"), "{error}");
    assert!(!error.contains("secret9"), "{error}");
    let none = scratch.path().join("none");
    let error = Headers::read(None, Some(&none)).unwrap_err().to_string();
    assert!(error.contains("--header-file"), "{error}");
    let large = file(&scratch, &"# x\n".repeat(20_000), 0o600);
    assert!(Headers::read(None, Some(&large)).is_err());
}

//! Requests as a listener reads them, and any bytes as its reply.
#![no_main]

use dwell_attach::protocol::{LoadResult, Reply, V1_ARGUMENT_MAX, Version, encode, one_line};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, Vec<&str>, &[u8])| {
    let (command, args, reply) = input;
    for version in [Version::V1, Version::V2] {
        check_request(version, command, &args);
    }
    if let Some(reply) = Reply::parse(reply) {
        check_reply(&reply);
    }
});

fn check_request(version: Version, command: &str, args: &[&str]) {
    let is_v1 = version == Version::V1;
    let has_nul = args
        .iter()
        .chain([&command])
        .any(|text| text.contains('\0'));
    let fits_v1 = command.len() <= 16
        && args.len() <= 3
        && args.iter().all(|arg| arg.len() <= V1_ARGUMENT_MAX);
    let total: usize = args
        .iter()
        .chain([&command])
        .map(|text| text.len() + 1)
        .sum();
    let fits = if is_v1 { fits_v1 } else { total <= 256 << 10 };
    let Ok(bytes) = encode(version, command, args) else {
        assert!(has_nul || !fits);
        return;
    };
    assert!(!has_nul && fits);
    // As the listener does: strings that end in NUL, of version 1 exactly five of them.
    let body = match is_v1 {
        true => bytes.strip_prefix(b"1\0").expect("the version"),
        false => {
            let rest = bytes.strip_prefix(b"2\0").expect("the version");
            let end = rest.iter().position(|byte| *byte == 0).expect("a length");
            let len = std::str::from_utf8(&rest[..end]).expect("digits").parse();
            assert_eq!(len, Ok(rest.len() - end - 1));
            &rest[end + 1..]
        }
    };
    let body = body.strip_suffix(b"\0").expect("the last string ends");
    let mut got: Vec<&[u8]> = body.split(|byte| *byte == 0).collect();
    if is_v1 {
        assert_eq!(got.len(), 4);
        let given = args.len() + 1;
        assert!(got[given..].iter().all(|arg| arg.is_empty()));
        got.truncate(given);
    }
    let wanted: Vec<&[u8]> = [&command]
        .into_iter()
        .chain(args)
        .map(|text| text.as_bytes())
        .collect();
    assert_eq!(got, wanted);
}

fn check_reply(reply: &Reply) {
    let text = format!("{}\n{}", reply.code, reply.text);
    assert_eq!(Reply::parse(text.as_bytes()).as_ref(), Some(reply));
    let line = one_line(&reply.text);
    assert!(!line.chars().any(char::is_control));
    assert_eq!(one_line(&line), line);
    match reply.load_result() {
        LoadResult::Ran { code } => {
            assert_eq!(reply.code, 0);
            let plain = Reply {
                code: 0,
                text: code.to_string(),
            };
            assert_eq!(plain.load_result(), LoadResult::Ran { code });
        }
        LoadResult::Failed { text } => assert!(!text.chars().any(char::is_control)),
        LoadResult::Disabled => assert!(!reply.text.is_empty()),
    }
    if reply.code != 0 {
        assert_eq!(reply.announced_version(), Version::V1);
    }
}

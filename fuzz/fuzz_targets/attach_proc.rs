//! Files of `/proc` with content that a process controls, a passwd file and a JDK's release file:
//! the readers agree with each other, and their results are harmless on a terminal.
#![no_main]

use dwell_attach::options::{AttachFlags, main_from_cmdline, main_from_java_command, split_words};
use dwell_attach::procfs::{
    Machine, Status, machine, mapped_file, mapped_in, nul_words, printable, state_and_start,
    uptime_ms,
};
use dwell_attach::{passwd, version};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], Vec<&str>, u32)| {
    let (any, words, uid) = input;
    check_maps(any);
    check_status(any);
    check_words(&words);
    let _ = (state_and_start(any), uptime_ms(any));
    let listed = nul_words(any);
    if let (Ok(text), false) = (std::str::from_utf8(any), any.is_empty()) {
        assert_eq!(listed.join("\0"), text.strip_suffix('\0').unwrap_or(text));
    }
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    for list in [&listed, &words] {
        let _ = AttachFlags::from_process(list, &words);
        is_shown(main_from_cmdline(list));
        list.iter()
            .for_each(|word| is_shown(main_from_java_command(word)));
    }
    if let Some((name, home)) = passwd::lookup(any, uid) {
        assert!(!name.is_empty() && !home.contains(['\n', ':']));
        is_shown(Some(name));
    }
    for found in [version::from_release(any), version::from_libjvm(any)]
        .into_iter()
        .flatten()
    {
        assert!(found.len() < 40 && found.starts_with(|first: char| first.is_ascii_digit()));
        let _ = version::feature(&found);
    }
});

fn is_shown(text: Option<String>) {
    let Some(text) = text else {
        return;
    };
    assert_eq!(printable(&text), text);
}

fn check_maps(any: &[u8]) {
    let jvm = mapped_file(any, "libjvm.so");
    match machine(any) {
        Machine::None => assert_eq!(jvm, None),
        Machine::HotSpot(found) => assert_eq!(jvm, Some(found)),
        Machine::Mono => assert!(any.windows(4).any(|window| window == b"mono")),
        Machine::OpenJ9 => assert!(any.windows(7).any(|window| window == b"libj9vm")),
    }
    let _ = mapped_in(any, "jdk");
}

fn check_status(any: &[u8]) {
    let Some(status) = Status::parse(any) else {
        return;
    };
    let Status {
        name,
        state,
        tgid,
        euid,
        egid,
        ns_pid,
        signals_caught,
    } = &status;
    is_shown(Some(name.clone()));
    let text = format!(
        "Name:\t{name}\nState:\t{state}\nTgid:\t{tgid}\nUid:\t0 {euid}\nGid:\t0 {egid}\n\
         NSpid:\t1\t{ns_pid}\nSigCgt:\t{signals_caught:x}\n"
    );
    assert_eq!(
        Status::parse(text.as_bytes()).as_ref(),
        Some(&status),
        "{text}"
    );
}

/// Every word can be quoted, whatever it holds.
fn check_words(words: &[&str]) {
    let quoted = |word: &&str| {
        let one = |c| {
            if c == '\'' {
                format!("\"{c}\"")
            } else {
                format!("'{c}'")
            }
        };
        format!("''{}", word.chars().map(one).collect::<String>())
    };
    let text: Vec<String> = words.iter().map(quoted).collect();
    assert_eq!(split_words(&text.join(" \t")), words);
}

//! Names that are poison elsewhere: right in the file, and inert in the page made from it.

use dwell_e2e::{Jdk, Place, Starter, Truths, View, both, each, jdks, since, turn, verify};
use std::path::Path;
use std::process::Command;

/// Replaces a character that UTF-8 text cannot have; both readers show it for NUL as well.
const REPLACEMENT: char = '\u{fffd}';

/// A name that the program printed as ASCII, as a reader gives it.
fn unescaped(text: &str) -> String {
    if text == "(empty)" {
        return String::new();
    }
    let mut units = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (unit, len) = match rest.strip_prefix("\\u").and_then(|hex| hex.get(..4)) {
            Some(hex) => (u16::from_str_radix(hex, 16).unwrap(), 6),
            None => (u16::try_from(u32::from(c)).unwrap(), c.len_utf8()),
        };
        units.push(unit);
        rest = &rest[len..];
    }
    without_nul(&String::from_utf16_lossy(&units))
}

fn without_nul(text: &str) -> String {
    text.replace('\0', &REPLACEMENT.to_string())
}

/// As the JDK's checker prints names.
fn escaped(name: &str) -> String {
    if name.is_empty() {
        return "(empty)".to_owned();
    }
    let one = |unit: u16| match u8::try_from(unit).map(char::from) {
        Ok(c) if c.is_ascii_alphanumeric() || "_.$-<>".contains(c) => c.to_string(),
        _ => format!("\\u{unit:04x}"),
    };
    name.encode_utf16().map(one).collect()
}

/// Thread, class and method of every item.
fn items(truths: &Truths) -> Vec<[String; 3]> {
    let name = |what: &str, item: usize| {
        let key = format!("{what} {item}");
        truths
            .info
            .iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| unescaped(value))
    };
    let item = |n| Some([name("thread", n)?, name("class", n)?, name("method", n)?]);
    (0..).map_while(item).collect()
}

fn record(jdk: &Jdk, place: &Place) -> (std::path::PathBuf, Truths) {
    let file = place.path("hostile.jfr");
    let mut program = Starter::new(jdk, place, "Hostile")
        .with("seconds=3")
        .start();
    program.tell(&format!("start,cpu=2ms,file={}", file.display()));
    let truths = program.work();
    program.tell("stop");
    program.end();
    (file, truths)
}

#[track_caller]
fn check_names(file: &Path, truths: &Truths) {
    let view = View::read(file);
    view.check_failures();
    let items = items(truths);
    assert!(items.len() > 20, "{} items", items.len());
    for [thread, class, method] in &items {
        let there = view.samples().any(|sample| {
            without_nul(sample.thread()) == *thread
                && sample.frames().any(|frame| {
                    without_nul(frame.class) == *class && without_nul(frame.name) == *method
                })
        });
        let short = |text: &str| text.chars().take(40).collect::<String>();
        assert!(
            there,
            "{:?} {:?} {:?}",
            short(thread),
            short(class),
            short(method)
        );
    }
    for jdk in both() {
        let found = verify(jdk, file, &[]);
        let threads: Vec<String> = found.tables["thread"]
            .keys()
            .map(|name| name.replace("\\u0000", "\\ufffd"))
            .collect();
        for [thread, ..] in &items {
            let name = escaped(thread);
            assert!(threads.contains(&name), "JDK {}: {name:.80}", jdk.feature);
        }
    }
}

#[test]
fn hostile_names_are_right_in_the_file() {
    each(&turn(&jdks().iter().collect::<Vec<_>>()), |jdk| {
        let place = Place::new("hostile");
        let (file, truths) = record(jdk, &place);
        check_names(&file, &truths);
    });
}

#[test]
fn hostile_names_are_inert_in_the_browser() {
    let place = Place::new("inert");
    let jdk = since(17)[0];
    let (file, _) = record(jdk, &place);
    let profile = dwell_profile::Profile::from_recording(View::read(&file).recording);
    let mut page = Vec::new();
    let options = dwell_report::Options {
        title: "<img src=x onerror=alert(1)>".to_owned(),
        findings: Vec::new(),
        ..dwell_report::Options::default()
    };
    dwell_report::html(&profile, &options, &mut page).unwrap();
    let html = place.path("hostile.html");
    std::fs::write(&html, &page).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/inert.mjs");
    let output = Command::new("node")
        .arg(script)
        .arg(&html)
        .output()
        .expect("node");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 1, "the page misbehaved: {said}");
    let rows: u32 = lines[0]
        .strip_prefix("rows ")
        .and_then(|n| n.parse().ok())
        .unwrap();
    assert!(rows > 5, "{said}");
}

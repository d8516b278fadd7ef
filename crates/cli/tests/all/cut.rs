//! Truncated recordings, the JDK's and dwell's: every command reads the complete part, and reports
//! the missing one in one line; or it reports that the file is unreadable, with a remedy.

use crate::harness::common::modern;
use crate::harness::{Done, Place, busy_words, record_by_the_jdk};

/// Where files are cut, in thousandths of their size.
const CUTS: [u64; 9] = [0, 1, 20, 100, 300, 500, 700, 900, 999];

/// Makes `own.jfr`.
fn record_by_dwell(place: &Place) {
    let java = modern().java().to_str().unwrap().to_owned();
    let words = busy_words(3);
    let mut args = vec!["record", "-o", "own", "--", &java];
    args.extend(words.iter().map(String::as_str));
    place.dwell(&args).exits(0);
}

/// The note about the missing part, if there is one.
fn note(text: &str) -> Option<&str> {
    text.lines().find(|line| line.contains(" is cut off: "))
}

/// Whether the command refuses the file in one line with a remedy.
fn is_refused(done: &Done) -> bool {
    let error = done.error();
    let is_told = error.contains("is empty") || error.contains("is cut off before anything");
    done.code() == Some(1) && is_told && done.out.is_empty()
}

fn all_commands_tell(place: &Place, cut: &str) {
    let run = |args: &[&str]| place.dwell(args).exits(0);
    let text = run(&["report", cut, "--text"]);
    let is_told = text
        .out
        .lines()
        .any(|line| line.starts_with("file       is cut off: "));
    assert!(is_told && text.err.is_empty(), "{text:?}");
    let page = run(&["report", cut, "-o", "cut.html"]);
    let explained = run(&["explain", cut]);
    let stacks = run(&["convert", cut, "--collapsed"]);
    let compared = run(&["diff", cut, cut, "--per", "sample", "--text"]);
    assert!(explained.out.starts_with("note: "), "{explained:?}");
    for (told, beside) in [
        (&page.err, 1),
        (&explained.out, 0),
        (&stacks.err, 1),
        (&compared.out, 0),
    ] {
        let line = note(told).unwrap_or_else(|| panic!("no note in {told:?}"));
        assert!(line.contains(" bytes"), "{line}");
        assert!(line.contains("the report has all other data; "), "{line}");
        assert!(beside == 0 || told.lines().count() == beside, "{told:?}");
    }
    assert!(note(&page.err).unwrap().contains(cut), "{page:?}");
    assert!(note(&explained.out).unwrap().contains(cut), "{explained:?}");
    let json = run(&["explain", cut, "--json"]).out;
    assert!(json.contains("\"absentBytes\": "), "{json}");
    let json = run(&["diff", cut, cut, "--per", "sample", "--json"]).out;
    assert_eq!(json.matches("\"absentBytes\": ").count(), 2, "{json}");
}

#[test]
fn truncated_recordings_are_read_with_a_note() {
    let place = Place::new("cut");
    record_by_the_jdk(&place);
    record_by_dwell(&place);
    for name in ["jdk.jfr", "own.jfr"] {
        let whole = std::fs::read(place.path(name)).unwrap();
        let explained = place.dwell(&["explain", name]).exits(0);
        assert_eq!(note(&explained.out), None, "{explained:?}");
        let json = place.dwell(&["explain", name, "--json"]).exits(0).out;
        assert!(json.contains("\"unread\": null"), "{json}");
        let mut told = 0;
        for cut in CUTS {
            let length = whole.len() as u64 * cut / 1000;
            std::fs::write(place.path("cut.jfr"), &whole[..length as usize]).unwrap();
            let done = place.dwell(&["report", "cut.jfr", "--text"]);
            if done.code() != Some(0) {
                assert!(is_refused(&done), "{name} at {length}: {done:?}");
                continue;
            }
            told += 1;
            // All commands for the longest part; for each file's first readable part, some.
            match cut {
                700.. => all_commands_tell(&place, "cut.jfr"),
                _ => assert!(done.out.contains("is cut off: "), "{done:?}"),
            }
        }
        assert!(told >= 3, "{name}: {told} of {} could be read", CUTS.len());
    }
}

//! Rules for Rust files: heads, lengths, unsafe code and its arguments, tests that run.

use crate::tidy::lexer::{self, Lines};
use crate::tidy::{Violation, neutral};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_CHARS_MAX: usize = 100;
/// How far above `unsafe` its argument may begin to be.
const SAFETY_LINES_MAX: usize = 12;

/// Crates that are unsafe by purpose: handlers and assembly, and the JVM's C interface.
const UNSAFE_CRATES: [&str; 2] = ["crates/signal/", "crates/jvm-sys/"];
/// Crates with a door to the system; in them only the modules below may be unsafe.
const UNSAFE_PARTS: [(&str, &[&str]); 10] = [
    ("crates/agent/", &["src/jvm/", "src/entry.rs"]),
    ("crates/attach/", &["src/sys/", "src/sys.rs"]),
    ("crates/cli/", &["src/sys/", "src/sys.rs"]),
    ("crates/host/", &["src/sys.rs"]),
    ("crates/inside/", &["src/jvm/", "src/hook.rs"]),
    ("crates/mono/", &["src/sys/", "src/entry.rs"]),
    ("crates/native/", &["src/sys/", "src/sys.rs"]),
    ("crates/outside/", &["src/sys/"]),
    // The system calls of all agents are here, and in no agent.
    ("crates/recorder/", &["src/sys/"]),
    // Tests in which loom checks that accesses to cells are ordered.
    ("loom/", &["tests/"]),
];

struct Checker<'a> {
    path: &'a str,
    violations: &'a mut Vec<Violation>,
}

impl Checker<'_> {
    fn add(&mut self, line: usize, rule: &'static str, what: String) {
        self.violations.push(Violation {
            path: self.path.to_owned(),
            line,
            rule,
            what,
        });
    }
}

/// Checks one file.
pub fn check(path: &str, content: &str, violations: &mut Vec<Violation>) {
    let lines = lexer::split(content);
    let mut checker = Checker { path, violations };
    check_shape(&mut checker, content);
    check_functions(&mut checker, &lines);
    check_unsafe(&mut checker, &lines);
    check_words(&mut checker, &lines);
    check_measured(&mut checker, content);
    neutral::check(path, &lines, checker.violations);
    let root = path.ends_with("/src/lib.rs");
    let pure = !UNSAFE_CRATES.iter().any(|head| path.starts_with(head))
        && !UNSAFE_PARTS.iter().any(|(head, _)| path.starts_with(head));
    if root && pure && !content.contains("#![forbid(unsafe_code)]") {
        checker.add(
            1,
            "forbid-unsafe",
            "a pure crate has #![forbid(unsafe_code)]".to_owned(),
        );
    }
}

/// A measured test says with which chance it raises a false alarm.
fn check_measured(checker: &mut Checker<'_>, content: &str) {
    let lines: Vec<&str> = content.lines().map(str::trim_start).collect();
    for (at, line) in lines.iter().enumerate() {
        if !line.starts_with("fn measured_") {
            continue;
        }
        let above = lines.iter().take(at).rev();
        let head = above.take_while(|line| line.starts_with("///") || line.starts_with("#["));
        // The words may be at the end of one line and the beginning of the next.
        let words = head.flat_map(|line| line.split_whitespace().rev());
        let words: Vec<&str> = words.filter(|word| *word != "///").collect();
        let is_said = words.windows(2).any(|pair| pair == ["alarm:", "False"]);
        if !is_said {
            let what = "says above it what it assumes and detects, and its `False alarm`";
            checker.add(at + 1, "measured", what.to_owned());
        }
    }
}

fn check_shape(checker: &mut Checker<'_>, content: &str) {
    if !content.starts_with("//!") {
        let what = "begins with `//!`: the purpose of the file, and anything that it must not do";
        checker.add(1, "head", what.to_owned());
    }
    let count = content.lines().count();
    if count > FILE_LINES_MAX {
        checker.add(
            count,
            "file-length",
            format!("{count} lines, {FILE_LINES_MAX} at most"),
        );
    }
    for (number, line) in (1..).zip(content.lines()) {
        let chars = line.chars().count();
        if chars > LINE_CHARS_MAX {
            let what = format!("{chars} characters, {LINE_CHARS_MAX} at most");
            checker.add(number, "line-length", what);
        }
    }
}

fn check_functions(checker: &mut Checker<'_>, lines: &Lines) {
    for (first, column, word) in lexer::words(&lines.code) {
        if word != "fn" {
            continue;
        }
        let rest = &lines.code[first][column + 2..];
        let named = rest
            .trim_start()
            .starts_with(|c: char| c.is_alphabetic() || c == '_');
        let Some(last) = named.then(|| body_end(lines, first, column)).flatten() else {
            continue;
        };
        let count = last - first + 1;
        if count > FUNCTION_LINES_MAX {
            let what = format!("a function of {count} lines, {FUNCTION_LINES_MAX} at most");
            checker.add(first + 1, "function-length", what);
        }
    }
}

/// The line in which the body of the function at this place ends; `None` if it has no body.
fn body_end(lines: &Lines, first: usize, column: usize) -> Option<usize> {
    let (mut round, mut curly) = (0i32, 0i32);
    for (number, line) in lines.code.iter().enumerate().skip(first) {
        let from = if number == first { column } else { 0 };
        for c in line[from..].chars() {
            match c {
                '(' | '[' => round += 1,
                ')' | ']' => round -= 1,
                ';' if round == 0 && curly == 0 => return None,
                '{' if round == 0 || curly > 0 => curly += 1,
                '}' if curly > 0 => {
                    curly -= 1;
                    if curly == 0 {
                        return Some(number);
                    }
                }
                _ => {}
            }
        }
    }
    None
}

fn check_unsafe(checker: &mut Checker<'_>, lines: &Lines) {
    let allowed = may_be_unsafe(checker.path);
    for (number, column, word) in lexer::words(&lines.code) {
        if word != "unsafe" {
            continue;
        }
        let rest = lines.code[number][column + "unsafe".len()..].trim_start();
        let next = match rest.is_empty() {
            true => lines
                .code
                .get(number + 1)
                .map_or("", |line| line.trim_start()),
            false => rest,
        };
        let needs_argument = next.starts_with('{') || next.starts_with("impl");
        if !allowed && !next.starts_with('(') {
            checker.add(
                number + 1,
                "unsafe",
                "no unsafe code in this place".to_owned(),
            );
        } else if needs_argument && !is_argued(lines, number) {
            let what = "unsafe code has a `// SAFETY:` comment above that argues";
            checker.add(number + 1, "safety", what.to_owned());
        }
    }
}

fn may_be_unsafe(path: &str) -> bool {
    let in_tests = path.contains("/tests/") || path.contains("/benches/");
    UNSAFE_CRATES.iter().any(|head| path.starts_with(head))
        || UNSAFE_PARTS.iter().any(|(head, parts)| {
            path.strip_prefix(head)
                .is_some_and(|rest| in_tests || parts.iter().any(|part| rest.starts_with(part)))
        })
}

fn is_argued(lines: &Lines, number: usize) -> bool {
    let from = number.saturating_sub(SAFETY_LINES_MAX);
    let above = lines.comments[from..=number]
        .iter()
        .rposition(|line| line.contains("SAFETY:"));
    // The other lines of the comment and of the statement may be between the argument and the code,
    // but not the end of another statement.
    above.is_some_and(|offset| {
        let ends_statement = |line: &String| line.trim_end().ends_with([';', '}']);
        !lines.code[from + offset..number].iter().any(ends_statement)
    })
}

fn check_words(checker: &mut Checker<'_>, lines: &Lines) {
    let banned = ["todo", "unimplemented", "dbg"];
    for (number, column, word) in lexer::words(&lines.code) {
        let line = &lines.code[number];
        if banned.contains(&word) && line[column + word.len()..].starts_with('!') {
            checker.add(
                number + 1,
                "unfinished",
                format!("{word}! is not for keeping"),
            );
        }
        if word == "ignore" && line[..column].trim_end().ends_with("#[") {
            checker.add(
                number + 1,
                "ignored-test",
                "a test runs or is removed".to_owned(),
            );
        }
    }
}

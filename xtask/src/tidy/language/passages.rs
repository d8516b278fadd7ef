//! Finds the passages of a file: paragraphs of documents and comments, messages, names of tests.
//! Pure. It does not judge them.

use crate::tidy::lexer;

/// Where a passage stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A document in Markdown.
    Document,
    /// A comment of source code.
    Comment,
    /// A string of the product, with at least [`MESSAGE_WORDS`] words.
    Message,
    /// The name of a test.
    TestName,
}

impl Kind {
    /// The name in the baseline.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Document => "documents",
            Kind::Comment => "comments",
            Kind::Message => "messages",
            Kind::TestName => "test-names",
        }
    }
}

/// Shorter strings are keys, labels and the like.
pub const MESSAGE_WORDS: usize = 4;

/// A paragraph, a message or a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Its kind.
    pub kind: Kind,
    /// Its lines, each with its number from 1.
    pub lines: Vec<(usize, String)>,
}

/// All passages of a file; none of a file that is not written by people for people.
#[must_use]
pub fn of(path: &str, content: &str) -> Vec<Passage> {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("md") => documents(content),
        Some("rs") => rust(path, content),
        Some("java" | "ts" | "tsx" | "js" | "mjs" | "c" | "h") => c_like(content),
        Some("py" | "sh") => script(content),
        None if content.starts_with("#!") => script(content),
        _ => Vec::new(),
    }
}

/// Collects lines into passages.
struct Collector {
    kind: Kind,
    lines: Vec<(usize, String)>,
    is_code: bool,
    done: Vec<Passage>,
}

impl Collector {
    fn new(kind: Kind) -> Collector {
        Collector {
            kind,
            lines: Vec::new(),
            is_code: false,
            done: Vec::new(),
        }
    }

    fn end(&mut self) {
        if !self.lines.is_empty() {
            self.done.push(Passage {
                kind: self.kind,
                lines: std::mem::take(&mut self.lines),
            });
        }
    }

    /// A line of prose. Blank lines, headings, tables and code in fences end a paragraph, and an
    /// item of a list begins one.
    fn line(&mut self, number: usize, text: &str) {
        let text = text.trim();
        let is_fence = text.starts_with("```");
        self.is_code ^= is_fence;
        let item = text.strip_prefix("- ").or(text.strip_prefix("* "));
        if self.is_code || is_fence || text.is_empty() || text.starts_with(['#', '|']) {
            self.end();
            return;
        }
        if item.is_some() {
            self.end();
        }
        self.lines.push((number, item.unwrap_or(text).to_owned()));
    }

    fn finish(mut self) -> Vec<Passage> {
        self.end();
        self.done
    }
}

/// The end of a paragraph that is no line of a comment: code stands there.
fn leave(collector: &mut Collector) {
    collector.end();
    collector.is_code = false;
}

fn documents(content: &str) -> Vec<Passage> {
    let mut collector = Collector::new(Kind::Document);
    for (number, line) in (1..).zip(content.lines()) {
        let row = line.trim().strip_prefix('|').filter(|_| !collector.is_code);
        collector.line(number, line);
        let cells = row.unwrap_or_default().split('|');
        for cell in cells.filter(|cell| cell.split_whitespace().count() > 5) {
            collector.lines.push((number, cell.trim().to_owned()));
            collector.end();
        }
    }
    collector.finish()
}

fn rust(path: &str, content: &str) -> Vec<Passage> {
    let lines = lexer::split(content);
    let mut comments = Collector::new(Kind::Comment);
    for (place, comment) in lines.comments.iter().enumerate() {
        let text = comment.trim_start_matches(['/', '!']).trim();
        let has_code = lines
            .code
            .get(place)
            .is_some_and(|it| !it.trim().is_empty());
        if has_code || comment.is_empty() || text.starts_with("SAFETY") {
            leave(&mut comments);
        }
        if !text.starts_with("SAFETY") {
            comments.line(place + 1, text);
        }
        if has_code {
            leave(&mut comments);
        }
    }
    let mut all = comments.finish();
    let first_test = match path.contains("test") {
        true => 0,
        false => first_test(&lines.code),
    };
    all.extend(messages(&lines, first_test));
    all.extend(test_functions(&lines.code));
    all
}

/// The place of the module of tests that a file ends with.
fn first_test(code: &[String]) -> usize {
    let is_module = |pair: &[String]| {
        matches!(pair, [first, second]
            if first.trim() == "#[cfg(test)]" && second.trim().starts_with("mod ")
                && second.trim().ends_with('{'))
    };
    code.windows(2).position(is_module).unwrap_or(code.len())
}

/// Strings before the line `first_test`. One over several lines is one message.
fn messages(lines: &lexer::Lines, first_test: usize) -> Vec<Passage> {
    let mut found: Vec<Passage> = Vec::new();
    let mut is_open = false;
    for (place, literal) in lines.literals.iter().enumerate().take(first_test) {
        for part in literal.split_inclusive('\n') {
            let line = (place + 1, part.trim().to_owned());
            match found.last_mut() {
                Some(last) if is_open => last.lines.push(line),
                _ => found.push(Passage {
                    kind: Kind::Message,
                    lines: vec![line],
                }),
            }
            is_open = !part.ends_with('\n');
        }
    }
    let words = |passage: &Passage| -> usize {
        let lines = passage.lines.iter();
        lines.map(|(_, it)| it.split_whitespace().count()).sum()
    };
    found.retain(|passage| words(passage) >= MESSAGE_WORDS);
    found
}

/// Names of functions behind `#[test]`.
fn test_functions(code: &[String]) -> Vec<Passage> {
    let mut found = Vec::new();
    let mut is_test = false;
    for (number, line) in (1..).zip(code) {
        let line = line.trim();
        is_test |= line == "#[test]";
        let name = line.strip_prefix("fn ").and_then(|it| it.split('(').next());
        if let (true, Some(name)) = (is_test, name) {
            found.push(test_name(number, name));
            is_test = false;
        }
    }
    found
}

fn test_name(number: usize, name: &str) -> Passage {
    Passage {
        kind: Kind::TestName,
        lines: vec![(number, name.to_owned())],
    }
}

/// Comments by lines that begin with their marks, and the names in `it("...")` and `test("...")`.
fn c_like(content: &str) -> Vec<Passage> {
    let mut comments = Collector::new(Kind::Comment);
    let mut names = Vec::new();
    let mut is_block = false;
    for (number, line) in (1..).zip(content.lines()) {
        let line = line.trim();
        let begins = line.starts_with("/*");
        let is_comment = is_block || begins || line.starts_with("//");
        if begins || !is_comment {
            leave(&mut comments);
        }
        if is_comment {
            let ends = (is_block || begins) && line.contains("*/");
            let text = line.split("*/").next().unwrap_or_default();
            let text = text.trim_start_matches("///").trim_start_matches("//");
            let text = text.trim_start_matches("/*").trim_start_matches('*');
            comments.line(number, text);
            is_block = (is_block || begins) && !ends;
        } else if let Some(name) = quoted_name(line) {
            names.push(test_name(number, name));
        }
    }
    let mut all = comments.finish();
    all.extend(names);
    all
}

fn quoted_name(line: &str) -> Option<&str> {
    let mut calls = ["it(", "test("].into_iter();
    let arguments = calls.find_map(|call| line.strip_prefix(call))?;
    let quote = arguments.chars().next()?;
    if !['"', '\'', '`'].contains(&quote) {
        return None;
    }
    arguments.split(quote).nth(1)
}

/// Comments of scripts, and the strings that document Python's functions.
fn script(content: &str) -> Vec<Passage> {
    const QUOTES: &str = "\"\"\"";
    let mut comments = Collector::new(Kind::Comment);
    let mut is_text = false;
    let mut is_data = false;
    for (number, line) in (1..).zip(content.lines()) {
        let line = line.trim();
        let turns = line.matches(QUOTES).count() % 2 == 1;
        if is_data {
            is_data = !turns;
        } else if is_text || line.starts_with(QUOTES) {
            let text = line.trim_start_matches(QUOTES);
            comments.line(number, text.split(QUOTES).next().unwrap_or_default());
            is_text = is_text != turns;
        } else if let Some(text) = line.strip_prefix('#').filter(|it| !it.starts_with('!')) {
            comments.line(number, text);
        } else {
            leave(&mut comments);
            is_data = turns;
        }
    }
    comments.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &str, content: &str, kind: Kind) -> Vec<(usize, String)> {
        let passages = of(path, content).into_iter();
        let passages = passages.filter(|passage| passage.kind == kind);
        let joined = passages.map(|passage| {
            let words: Vec<_> = passage.lines.iter().map(|(_, it)| it.as_str()).collect();
            (passage.lines[0].0, words.join(" "))
        });
        joined.collect()
    }

    fn found(number: usize, text: &str) -> (usize, String) {
        (number, text.to_owned())
    }

    #[test]
    fn document_has_paragraphs_items_and_long_cells() {
        let content = "# Head\n\none\ntwo\n- three\n  four\n* five\n```\nsix\n```\n\
                       | a | b |\n| this cell has more than five words | short |\n";
        let expected = [
            found(3, "one two"),
            found(5, "three four"),
            found(7, "five"),
            found(12, "this cell has more than five words"),
        ];
        assert_eq!(texts("docs/a.md", content, Kind::Document), expected);
    }

    #[test]
    fn rust_comment_ends_at_code_and_blank_lines() {
        let content = "//! one\n//! two\n//!\n//! three\n\n/// four\nfn a() {} // five\n// six\n\
                       // SAFETY: none\n/* seven\neight */\n";
        let expected = [
            found(1, "one two"),
            found(4, "three"),
            found(6, "four"),
            found(7, "five"),
            found(8, "six"),
            found(10, "seven eight"),
        ];
        assert_eq!(texts("xtask/src/a.rs", content, Kind::Comment), expected);
    }

    #[test]
    fn code_in_a_doc_comment_is_skipped() {
        let content = "/// one\n/// ```\n/// let a = 1;\n/// ```\n/// two\nfn a() {}\n";
        let expected = [found(1, "one"), found(5, "two")];
        assert_eq!(texts("a.rs", content, Kind::Comment), expected);
        let unclosed = "/// ```\n/// let a = 1;\nfn a() {}\n// two\n";
        assert_eq!(texts("a.rs", unclosed, Kind::Comment), [found(4, "two")]);
    }

    #[test]
    fn messages_are_long_strings_before_the_tests() {
        let content = "const A: &str = \"not a message\";\n\
                       const B: &str = \"a message of\\\n    five words\";\n\
                       const C: &[&str] = &[\"one two\", \"three four five six\"];\n\
                       #[cfg(test)]\nmod tests {\n    const D: &str = \"not of the product\";\n}\n";
        let expected = [
            found(2, "a message of five words"),
            found(4, "three four five six"),
        ];
        assert_eq!(texts("a.rs", content, Kind::Message), expected);
        assert_eq!(texts("tests/a.rs", content, Kind::Message), []);
    }

    #[test]
    fn test_names_follow_their_attribute() {
        let content = "#[test]\n#[cfg(unix)]\nfn a_b() {}\nfn c_d() {}\n\
                       mod x {\n    #[test]\n    fn e_f(\n        a in 0..1,\n    ) {}\n}\n";
        let expected = [found(3, "a_b"), found(7, "e_f")];
        assert_eq!(texts("a.rs", content, Kind::TestName), expected);
        let page = "test(\"one\", () => {});\n  it('two', f);\nit(three);\ntesting(\"four\");\n";
        let expected = [found(1, "one"), found(2, "two")];
        assert_eq!(texts("a.test.ts", page, Kind::TestName), expected);
    }

    #[test]
    fn comments_of_java_have_no_marks() {
        let content =
            "/** one. */\nint a; // no\n/**\n * two\n * three\n *\n * <p>four\n */\n// five\n";
        let expected = [
            found(1, "one."),
            found(4, "two three"),
            found(7, "<p>four"),
            found(9, "five"),
        ];
        assert_eq!(texts("a.java", content, Kind::Comment), expected);
    }

    #[test]
    fn scripts_are_known_by_ending_or_first_line() {
        let content = "#!/usr/bin/env python3\n\"\"\"one\n\ntwo\n\"\"\"\n# three\na = \"#\"\n\
                       b = f\"\"\"\n# data\n\"\"\"\ndef c():\n    \"\"\"four\"\"\"\n";
        let expected = [
            found(2, "one"),
            found(4, "two"),
            found(6, "three"),
            found(12, "four"),
        ];
        assert_eq!(texts("bench/a", content, Kind::Comment), expected);
        assert_eq!(texts("bench/a.py", content, Kind::Comment), expected);
        assert_eq!(of("LICENSE", "# one\n"), []);
        assert_eq!(of("a.toml", content), []);
    }
}

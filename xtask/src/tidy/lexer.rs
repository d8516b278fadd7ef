//! Separates Rust code from its comments and literals, so that rules can look for words.
//!
//! Not a parser: it only knows comments (nested), strings (escaped, raw, byte, C), characters and
//! lifetimes.

/// A Rust file, line by line, separated into code, comments and literals.
#[derive(Debug, Default)]
pub struct Lines {
    /// The code; literals are empty and comments are gone.
    pub code: Vec<String>,
    /// The comments' text.
    pub comments: Vec<String>,
    /// The text of strings, with a line break after each. An escaped character is a space.
    pub literals: Vec<String>,
}

enum State {
    Code,
    LineComment,
    BlockComment(u32),
    /// In a string that ends with a quote and this many `#`; `None` if backslashes escape.
    Text(Option<usize>),
}

/// Splits a file.
#[must_use]
pub fn split(content: &str) -> Lines {
    let chars: Vec<char> = content.chars().collect();
    let mut lexer = Lexer {
        chars: &chars,
        at: 0,
        state: State::Code,
        lines: Lines::default(),
    };
    lexer.new_line();
    while lexer.at < chars.len() {
        lexer.step();
    }
    lexer.lines
}

/// All words of these lines with their places: (line from 0, column, word).
pub(crate) fn words(lines: &[String]) -> impl Iterator<Item = (usize, usize, &str)> {
    lines.iter().enumerate().flat_map(|(number, line)| {
        let mut start = 0;
        line.split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter_map(move |word| {
                let column = start;
                start += word.len();
                start += line[start..].chars().next().map_or(0, char::len_utf8);
                (!word.is_empty()).then_some((number, column, word))
            })
    })
}

struct Lexer<'a> {
    chars: &'a [char],
    at: usize,
    state: State,
    lines: Lines,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn starts_with(&self, word: &str) -> bool {
        word.chars()
            .enumerate()
            .all(|(ahead, expected)| self.peek(ahead) == expected)
    }

    fn new_line(&mut self) {
        self.lines.code.push(String::new());
        self.lines.comments.push(String::new());
        self.lines.literals.push(String::new());
    }

    fn push_code(&mut self, c: char) {
        if let Some(line) = self.lines.code.last_mut() {
            line.push(c);
        }
    }

    fn push_literal(&mut self, c: char) {
        if let Some(line) = self.lines.literals.last_mut() {
            line.push(c);
        }
    }

    fn push_comment(&mut self, c: char) {
        if let Some(line) = self.lines.comments.last_mut() {
            line.push(c);
        }
    }

    fn step(&mut self) {
        if self.peek(0) == '\n' {
            if matches!(self.state, State::LineComment) {
                self.state = State::Code;
            }
            self.new_line();
            self.at += 1;
            return;
        }
        match self.state {
            State::Code => self.step_code(),
            State::LineComment => {
                self.push_comment(self.peek(0));
                self.at += 1;
            }
            State::BlockComment(depth) => self.step_block_comment(depth),
            State::Text(raw) => self.step_text(raw),
        }
    }

    fn step_block_comment(&mut self, depth: u32) {
        if self.starts_with("/*") {
            self.state = State::BlockComment(depth + 1);
            self.at += 2;
        } else if self.starts_with("*/") {
            self.state = if depth == 1 {
                State::Code
            } else {
                State::BlockComment(depth - 1)
            };
            self.at += 2;
        } else {
            self.push_comment(self.peek(0));
            self.at += 1;
        }
    }

    fn step_text(&mut self, raw: Option<usize>) {
        match raw {
            None if self.peek(0) == '\\' => {
                self.push_literal(' ');
                // A line that ends with a backslash goes on in the next one.
                self.at += if self.peek(1) == '\n' { 1 } else { 2 };
            }
            _ if self.peek(0) == '"' && (0..raw.unwrap_or(0)).all(|n| self.peek(1 + n) == '#') => {
                self.push_code('"');
                self.push_literal('\n');
                self.state = State::Code;
                self.at += 1 + raw.unwrap_or(0);
            }
            _ => {
                self.push_literal(self.peek(0));
                self.at += 1;
            }
        }
    }

    fn step_code(&mut self) {
        if self.starts_with("//") {
            self.state = State::LineComment;
            return;
        }
        if self.starts_with("/*") {
            self.state = State::BlockComment(1);
            self.at += 2;
            return;
        }
        if let Some((skip, raw)) = self.string_start() {
            self.push_code('"');
            self.state = State::Text(raw);
            self.at += skip;
            return;
        }
        if self.peek(0) == '\'' && !self.is_lifetime() {
            self.skip_char_literal();
            return;
        }
        self.push_code(self.peek(0));
        self.at += 1;
    }

    /// Whether a string begins here: characters up to and with its quote, and whether it is raw.
    fn string_start(&self) -> Option<(usize, Option<usize>)> {
        if self.peek(0) == '"' {
            return Some((1, None));
        }
        let after_word = self.at > 0
            && self
                .chars
                .get(self.at - 1)
                .is_some_and(|c| c.is_alphanumeric() || *c == '_');
        if after_word {
            return None;
        }
        let prefix = ["br", "cr", "r", "b", "c"]
            .into_iter()
            .find(|p| self.starts_with(p))?;
        let hashes = (0..)
            .take_while(|n| self.peek(prefix.len() + n) == '#')
            .count();
        let quote = self.peek(prefix.len() + hashes) == '"';
        let raw = prefix.ends_with('r');
        (quote && (raw || hashes == 0))
            .then_some((prefix.len() + hashes + 1, raw.then_some(hashes)))
    }

    fn is_lifetime(&self) -> bool {
        let named = self.peek(1).is_alphabetic() || self.peek(1) == '_';
        named && self.peek(2) != '\''
    }

    fn skip_char_literal(&mut self) {
        self.push_code('\'');
        self.at += if self.peek(1) == '\\' { 3 } else { 2 };
        while self.at < self.chars.len() && self.peek(0) != '\'' && self.peek(0) != '\n' {
            self.at += 1; // the rest of \x41 or \u{...}
        }
        self.push_code('\'');
        self.at += 1;
    }
}

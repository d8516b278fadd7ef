//! The patterns of homely English, and the match of a passage against them. Pure.
//!
//! A pattern is a row of elements: `a|b` for one of several words, `-a|b` for any other word, `_`
//! for any word, `#` for a number, and `^` for the beginning of a sentence. A hit is a candidate:
//! rewrite the sentence, rather than only replace the word.

use super::passages::{Kind, Passage};

/// A kind of wording, with its patterns.
pub struct Rule {
    /// The name in the baseline.
    pub name: &'static str,
    /// How to write instead.
    pub advice: &'static str,
    /// Whether questions may have it.
    pub in_questions: bool,
    /// Words before a place that allow it.
    pub allowed_after: &'static [&'static str],
    /// The patterns.
    pub patterns: &'static [&'static str],
}

/// Words in a sentence, at most.
pub const SENTENCE_WORDS: usize = 32;
/// Characters in the name of a test, at most.
pub const NAME_CHARS: usize = 60;
/// The rule of long sentences.
pub const LONG: &str = "long-sentence";
/// The rule of names of tests.
pub const NAME: &str = "test-name";

/// Words for people, after which "who" is right.
const PEOPLE: [&str; 16] = [
    "people",
    "person",
    "somebody",
    "someone",
    "anybody",
    "anyone",
    "everybody",
    "everyone",
    "user",
    "users",
    "reader",
    "readers",
    "developer",
    "developers",
    "colleague",
    "team",
];

/// The rules for sentences.
pub const RULES: [Rule; 9] = [
    Rule {
        name: "told",
        advice: "name the part that reports, records, prints, shows or knows",
        in_questions: true,
        allowed_after: &[],
        patterns: &[
            "is|are|was|were|be|been|being|not|never|get|gets|got told",
            "told of|to|as|with|by|apart|about|how|where|which",
            "tells",
        ],
    },
    Rule {
        name: "who",
        advice: "threads, processes and files are things: that, which",
        in_questions: false,
        allowed_after: &PEOPLE,
        patterns: &["who|whom|whoever"],
    },
    Rule {
        name: "what-subject",
        advice: "begin with a noun: \"The CPU time used\", not \"What is used\"",
        in_questions: false,
        allowed_after: &[],
        patterns: &["^ what|whatever _"],
    },
    Rule {
        name: "absence",
        advice: "say what happens: \"no thread\", \"is absent\", \"has exited\"",
        in_questions: true,
        allowed_after: &[],
        patterns: &[
            "nobody",
            "none of whom|which",
            "there is|are none",
            "has|have none",
            "is|are no more",
        ],
    },
    Rule {
        name: "order",
        advice: "put the subject first",
        in_questions: true,
        allowed_after: &[],
        patterns: &["^ of|at|to|for|with|from those|these|all|which|whom|what|it|them"],
    },
    Rule {
        name: "beside",
        advice: "next to, in addition to, during, with",
        in_questions: true,
        allowed_after: &[],
        patterns: &["beside"],
    },
    Rule {
        name: "homely",
        advice: "use the field's word: sample, idle, expensive, cache, retire, again, for ever",
        in_questions: true,
        allowed_after: &[],
        patterns: &[
            "bury|buries|buried|owe|owes|owed|owing|minds|minded|rested|dear|dearer|shelf|thrift",
            "glance|glances|glanced|anew|meanwhile|thereby|hence|likewise|whence|thence|wherein",
            "look|looks|looked|looking at",
            "that|which|thread|threads|it|they rests",
            "by itself|themselves",
            "for good",
            "take|takes|took leave",
        ],
    },
    Rule {
        name: "number-order",
        advice: "the number comes last: \"at most 5 ms\"",
        in_questions: true,
        allowed_after: &[],
        patterns: &[
            "# at most|least",
            "# -if|or|and|to|is|are|of|for|with|by|has|have at most|least",
        ],
    },
    Rule {
        name: "filler",
        advice: "name it, or leave it out",
        in_questions: true,
        allowed_after: &[],
        patterns: &[
            "all|much|little|nothing else",
            "all of it",
            "as good as",
            "so it is",
            "nor is|are|does|do|has|have",
        ],
    },
];

/// Words that the name of a test does without.
const NAME_WORDS: [&str; 13] = [
    "who",
    "whom",
    "whoever",
    "told",
    "tells",
    "nobody",
    "what",
    "whatever",
    "anew",
    "beside",
    "mind",
    "minds",
    "meanwhile",
];

/// A place in a passage that has one of the patterns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The rule's name.
    pub rule: &'static str,
    /// The line.
    pub line: usize,
    /// The words, or how many there are.
    pub words: String,
}

/// The advice of a rule.
#[must_use]
pub fn advice(rule: &str) -> &'static str {
    match RULES.iter().find(|it| it.name == rule) {
        Some(rule) => rule.advice,
        None if rule == LONG => "make two sentences of it: at most 32 words each",
        None => "name it `unit_condition_result`, in 60 characters or fewer",
    }
}

/// All places in a passage.
#[must_use]
pub fn matches(passage: &Passage) -> Vec<Match> {
    if passage.kind == Kind::TestName {
        return passage.lines.iter().filter_map(name).collect();
    }
    let tokens = tokens(&passage.lines);
    let mut found = Vec::new();
    for sentence in sentences(&tokens) {
        let is_question = sentence.last().is_some_and(|token| token.text == "?");
        let rules = RULES.iter().filter(|it| it.in_questions || !is_question);
        found.extend(rules.flat_map(|rule| of_rule(rule, sentence)));
        let words = sentence.iter().filter(|token| token.is_word()).count();
        if let (Some(first), true) = (sentence.first(), words > SENTENCE_WORDS) {
            found.push(Match {
                rule: LONG,
                line: first.line,
                words: format!("{words} words"),
            });
        }
    }
    found
}

fn name((line, name): &(usize, String)) -> Option<Match> {
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    let length = name.chars().count();
    let words = match words.find(|word| NAME_WORDS.contains(&word.to_lowercase().as_str())) {
        Some(word) => word.to_owned(),
        // A name in words is a sentence of a page's tests.
        None if length > NAME_CHARS && !name.contains(' ') => format!("{length} characters"),
        None => return None,
    };
    Some(Match {
        rule: NAME,
        line: *line,
        words,
    })
}

#[derive(Debug)]
struct Token {
    line: usize,
    /// A word in small letters, or a mark.
    text: String,
}

impl Token {
    fn is_word(&self) -> bool {
        self.text.chars().any(char::is_alphanumeric)
    }

    fn is_number(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Whether a sentence ends with it.
    fn is_end(&self) -> bool {
        matches!(self.text.as_str(), "." | "!" | "?" | ";" | ":")
    }
}

/// The words and marks of some lines. Code in backticks and addresses are a word each.
fn tokens(lines: &[(usize, String)]) -> Vec<Token> {
    let mut found = Vec::new();
    for (line, text) in lines {
        for (place, part) in text.split('`').enumerate() {
            if place % 2 == 1 {
                push(&mut found, *line, "code");
                continue;
            }
            for chunk in part.split_whitespace() {
                of_chunk(&mut found, *line, chunk);
            }
        }
    }
    found
}

fn push(found: &mut Vec<Token>, line: usize, text: &str) {
    found.push(Token {
        line,
        text: text.to_lowercase(),
    });
}

/// The tokens of characters without a blank between.
fn of_chunk(found: &mut Vec<Token>, line: usize, chunk: &str) {
    if chunk.contains("://") {
        push(found, line, "code");
        return;
    }
    let mut word = String::new();
    let mut rest = chunk.chars().peekable();
    while let Some(c) = rest.next() {
        let goes_on = rest.peek().is_some_and(|next| next.is_alphanumeric());
        let is_inner =
            !word.is_empty() && goes_on && matches!(c, '.' | ',' | '\'' | '-' | '_' | ':');
        if c.is_alphanumeric() || is_inner {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            push(found, line, &std::mem::take(&mut word));
        }
        let is_mark = matches!(c, '.' | '!' | '?' | ';' | ':' | ',' | '(' | ')' | '|' | '%');
        if is_mark {
            push(found, line, &c.to_string());
        }
    }
    if !word.is_empty() {
        push(found, line, &word);
    }
}

fn sentences(tokens: &[Token]) -> impl Iterator<Item = &[Token]> {
    tokens.split_inclusive(Token::is_end)
}

/// The places of a rule, without those that overlap an earlier one.
fn of_rule(rule: &'static Rule, sentence: &[Token]) -> Vec<Match> {
    let mut found = Vec::new();
    let mut end = 0;
    for start in 0..sentence.len() {
        let mut patterns = rule.patterns.iter();
        let length = patterns.find_map(|pattern| matched(pattern, sentence, start));
        let Some(tokens) = length.and_then(|length| sentence.get(start..start + length)) else {
            continue;
        };
        let before = start.checked_sub(1).and_then(|place| sentence.get(place));
        let is_allowed = before.is_some_and(|it| rule.allowed_after.contains(&it.text.as_str()));
        if start < end || is_allowed {
            continue;
        }
        end = start + tokens.len();
        let words: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
        found.push(Match {
            rule: rule.name,
            line: tokens.first().map_or(0, |token| token.line),
            words: words.join(" "),
        });
    }
    found
}

/// How many tokens from `start` on match the pattern.
fn matched(pattern: &str, sentence: &[Token], start: usize) -> Option<usize> {
    let before = start.checked_sub(1).and_then(|place| sentence.get(place));
    let mut at = start;
    for element in pattern.split(' ') {
        if element == "^" {
            before.is_none_or(|token| token.text == "(").then_some(())?;
            continue;
        }
        let token = sentence.get(at).filter(|token| token.is_word())?;
        at += 1;
        let is_held = match element.strip_prefix('-') {
            Some(words) => !has(words, &token.text),
            None => {
                element == "_" || element == "#" && token.is_number() || has(element, &token.text)
            }
        };
        is_held.then_some(())?;
    }
    Some(at - start)
}

fn has(words: &str, word: &str) -> bool {
    words.split('|').any(|it| it == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&'static str, String)> {
        let passage = Passage {
            kind: Kind::Comment,
            lines: vec![(1, text.to_owned())],
        };
        let matches = matches(&passage).into_iter();
        matches.map(|it| (it.rule, it.words)).collect()
    }

    fn rules(text: &str) -> Vec<&'static str> {
        found(text).into_iter().map(|(rule, _)| rule).collect()
    }

    #[test]
    fn each_rule_finds_its_words() {
        for (text, rule) in [
            ("It is told of it.", "told"),
            ("It tells the time.", "told"),
            ("Kinds told apart.", "told"),
            ("The one who waits.", "who"),
            ("Who waits is idle.", "who"),
            ("It runs, whoever asks.", "who"),
            ("What is used is new.", "what-subject"),
            ("Two parts: what is left, and others.", "what-subject"),
            ("There is none.", "absence"),
            ("Nobody reads it.", "absence"),
            ("Of these, two are idle.", "order"),
            ("It waits; for which it asks.", "order"),
            ("A file beside this.", "beside"),
            ("They are made anew.", "homely"),
            ("The thread rests.", "homely"),
            ("A thread that is looked at.", "homely"),
            ("It ends by itself.", "homely"),
            ("It takes 5 ms at most.", "number-order"),
            ("It takes 1.5 at least.", "number-order"),
            ("The part has all of it.", "filler"),
            ("It does nothing else.", "filler"),
        ] {
            assert_eq!(rules(text), [rule], "{text}");
        }
    }

    #[test]
    fn plain_sentences_have_no_match() {
        for text in [
            "The drainer reports it later.",
            "A user who waits, and people whom nothing helps.",
            "What does it cost? Who waits?",
            "It takes at most 5 ms.",
            "At least 2 are idle.",
            "It finds what is left.",
            "The rest is idle.",
            "Rests of stacks.",
            "Read `nobody tells who` and https://a.b/beside?nobody.",
            "For each of them: 1.",
            "It is 1, at most 2.",
            "A besides-the-point word.",
            "It is 0 if at least 2.",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn match_has_its_line_and_words() {
        let passage = Passage {
            kind: Kind::Document,
            lines: vec![(7, "The time is".into()), (8, "told. Of them, 3.".into())],
        };
        let found = matches(&passage);
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.rule, it.line, &*it.words))
            .collect();
        assert_eq!(found, [("told", 7, "is told"), ("order", 8, "of them")]);
    }

    #[test]
    fn sentence_of_33_words_is_long() {
        let words = |count: usize| "word ".repeat(count);
        assert_eq!(found(&words(32)), []);
        assert_eq!(found(&words(33)), [(LONG, "33 words".to_owned())]);
        assert_eq!(found(&format!("{}. {}", words(32), words(32))), []);
        assert_eq!(found(&format!("{}: {}", words(20), words(20))), []);
        assert_eq!(
            found(&format!("{}, `a b` {}", words(16), words(16))),
            [(LONG, "33 words".to_owned())]
        );
    }

    #[test]
    fn test_name_is_short_and_plain() {
        let of = |name: &str| {
            let passage = Passage {
                kind: Kind::TestName,
                lines: vec![(1, name.to_owned())],
            };
            matches(&passage).pop().map(|it| it.words)
        };
        assert_eq!(of("unknown_owner_falls_back_to_lock_site"), None);
        assert_eq!(of("owner_is_told"), Some("told".to_owned()));
        assert_eq!(of("somewhat_whole"), None);
        assert_eq!(of(&"a".repeat(60)), None);
        assert_eq!(of(&"a".repeat(61)), Some("61 characters".to_owned()));
        assert_eq!(of(&"a word ".repeat(10)), None);
        assert_eq!(of("The row who waits"), Some("who".to_owned()));
    }
}

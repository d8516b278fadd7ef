//! The agent's answers to commands, from the reply file. Pure.
//!
//! First line `ok` or `error`, then text lines and `key=value` lines. The agent runs in another
//! process, so text is made printable before it is shown.

use dwell_report::plain;

/// An answer of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Whether the command was executed.
    pub ok: bool,
    lines: Vec<String>,
}

impl Reply {
    /// Reads an answer; `None` if the agent has not written one.
    pub fn parse(bytes: &[u8]) -> Option<Reply> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.lines();
        let ok = match lines.next()?.trim() {
            "ok" => true,
            "error" => false,
            _ => return None,
        };
        Some(Reply {
            ok,
            lines: lines.map(plain).collect(),
        })
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.lines
            .iter()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    }

    /// The value of a key that is a number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.parse().ok()
    }

    /// Keys that begin with `prefix`, without it, and their values.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.lines
            .iter()
            .filter_map(move |line| line.strip_prefix(prefix)?.split_once('='))
    }

    /// The recorded events, if a recording runs.
    pub fn running_events(&self) -> Option<&str> {
        let is_running = self.get("state") == Some("running");
        self.get("events").filter(|_| is_running)
    }

    /// The agent's write error, if it has one.
    pub fn trouble(&self) -> Option<&str> {
        self.get("trouble").filter(|text| !text.is_empty())
    }

    /// The text of the answer on one line: all of an error, else the lines that are no `key=value`.
    pub fn text(&self) -> String {
        let lines: Vec<&str> = self
            .lines
            .iter()
            .map(|line| line.trim())
            .filter(|line| !line.is_empty() && (!self.ok || !is_pair(line)))
            .collect();
        lines.join("; ")
    }
}

/// Whether a line begins with a bare word and `=`.
fn is_pair(line: &str) -> bool {
    line.split_once('=').is_some_and(|(key, _)| {
        let bare = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_.".contains(&b);
        !key.is_empty() && key.bytes().all(bare)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pairs_and_text_are_separated() {
        let reply = Reply::parse(b"ok\nstate=running\nsamples=12\nfile=/a=b.jfr\nall is well\n");
        let reply = reply.unwrap();
        assert!(reply.ok);
        assert_eq!(reply.get("state"), Some("running"));
        assert_eq!(reply.get("file"), Some("/a=b.jfr"));
        assert_eq!(
            (reply.number("samples"), reply.number("state")),
            (Some(12), None)
        );
        assert_eq!(reply.text(), "all is well");
    }

    #[test]
    fn errors_are_one_line() {
        let reply = Reply::parse(b"error\nmaxsize=2MB: a size\nuse 2m\n").unwrap();
        assert!(!reply.ok);
        assert_eq!(reply.text(), "maxsize=2MB: a size; use 2m");
    }

    #[test]
    fn empty_reply_is_no_answer() {
        assert_eq!(Reply::parse(b""), None);
        assert_eq!(Reply::parse(b"o"), None);
    }

    proptest! {
        #[test]
        fn shown_text_is_inert(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut all = b"error\n".to_vec();
            all.extend(bytes);
            let text = Reply::parse(&all).unwrap().text();
            prop_assert!(!text.chars().any(char::is_control));
        }
    }
}

//! Names of a profiled program as plain text: nothing in them can steer a terminal or a reader's
//! eye. All outputs of text use this.

/// What stands in for a character that must not be shown.
const REPLACEMENT: char = '\u{fffd}';

/// Whether a character could act instead of being read: control characters (terminal escapes, line
/// ends), and those that reorder or hide the text around them.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}'                 // soft hyphen
            | '\u{061c}'               // Arabic letter mark
            | '\u{180e}'               // Mongolian vowel separator
            | '\u{200b}'..='\u{200f}'  // zero width, left-to-right and right-to-left marks
            | '\u{2028}'..='\u{202e}'  // line and paragraph separators, bidi embeddings, overrides
            | '\u{2060}'..='\u{206f}'  // word joiner, bidi isolates, deprecated formats
            | '\u{feff}'               // byte order mark
            | '\u{fff9}'..='\u{fffb}'  // interlinear annotation
            | '\u{e0000}'..='\u{e007f}' // tags
        )
}

/// `text` with every active character replaced by U+FFFD.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if is_active(c) { REPLACEMENT } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_active_is_left() {
        let hostile = "a\u{1b}[31mred\u{1b}[0m\0\r\n\t\u{9b}2J\u{202e}evil\u{2066}\u{200b}\u{7f}z";
        let shown = plain(hostile);
        assert!(shown.chars().all(|c| !is_active(c)), "{shown:?}");
        assert!(shown.starts_with("a\u{fffd}[31mred") && shown.ends_with('z'));
        assert_eq!(plain("ordinary λ$0 名前"), "ordinary λ$0 名前");
    }
}

//! Prose in documents is wrapped at 100 columns, wherever a line can be wrapped. Pure.

use crate::tidy::Violation;

/// As in `rustfmt.toml`'s default for code.
const COLUMNS: usize = 100;

/// Checks one document in Markdown.
pub fn check(path: &str, content: &str, violations: &mut Vec<Violation>) {
    let mut is_code = false;
    for (line, text) in (1..).zip(content.lines()) {
        if text.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code && is_too_long(text) {
            violations.push(Violation {
                path: path.to_owned(),
                line,
                rule: "prose",
                what: format!(
                    "{} columns; prose is wrapped at {COLUMNS}",
                    text.chars().count()
                ),
            });
        }
    }
}

/// Whether a line is too long. Rows of tables, headings and text without spaces outside of
/// backticks, such as a link or a command, cannot be wrapped.
fn is_too_long(text: &str) -> bool {
    let trimmed = text.trim();
    let of_list = trimmed.strip_prefix(['-', '*', '>']).map(str::trim_start);
    let prose = of_list.unwrap_or(trimmed);
    text.chars().count() > COLUMNS
        && !trimmed.starts_with(['|', '#'])
        && prose.split('`').step_by(2).any(|part| part.contains(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(content: &str) -> Vec<usize> {
        let mut violations = Vec::new();
        check("docs/a.md", content, &mut violations);
        violations.iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn long_prose_is_reported() {
        let long = "word ".repeat(20);
        assert_eq!(lines(&format!("short\n\n{long}x\n")), [3]);
        assert_eq!(lines(&format!("- {long}x\n> {long}\n")), [1, 2]);
        assert_eq!(lines(&format!("see `{}` there\n", "x".repeat(100))), [1]);
        assert_eq!(lines(&format!("{}\n", "w".repeat(100))), [] as [usize; 0]);
    }

    #[test]
    fn unwrappable_lines_are_allowed() {
        let long = "word ".repeat(30);
        let link = format!("<https://example.org/{}>", "x".repeat(100));
        for kept in [
            format!("| {long} |"),
            format!("## {long}"),
            format!("- {link}"),
            format!("`{long}`:"),
            format!("```sh\n{long}\n```"),
        ] {
            assert_eq!(lines(&kept), [] as [usize; 0], "{kept}");
        }
        assert_eq!(lines(&format!("```\n{long}\n```\n{long}\n")), [4]);
    }
}

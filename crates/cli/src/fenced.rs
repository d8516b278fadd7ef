//! Commands in the documents, for the tests that parse and run them. The tag of a fenced block says
//! whether it has commands: CONTRIBUTING.md lists the tags. Pure, but for [`documents`].

use std::path::{Path, PathBuf};

/// Tags of blocks in which each `dwell ...` line is a command.
pub const WITH_COMMANDS: [&str; 3] = ["sh", "console", "yaml"];

/// Prose for users, with all that is below `docs`.
const PAGES: [&str; 6] = [
    "README.md",
    "CONTRIBUTING.md",
    "docs",
    "examples/README.md",
    "java/README.md",
    "viewer/README.md",
];

/// One document.
pub struct Document {
    /// Its path from the repository's root.
    pub path: String,
    /// Its text.
    pub content: String,
}

/// A command line of a document.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// Path and line number, for messages.
    pub place: String,
    /// Variables that are set before the command.
    pub variables: Vec<(String, String)>,
    /// The words behind `dwell`.
    pub words: Vec<String>,
}

/// Reads all pages of the repository.
pub fn documents() -> Vec<Document> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths: Vec<PathBuf> = PAGES.iter().map(|page| root.join(page)).collect();
    let mut documents = Vec::new();
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            paths.extend(entries.map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|it| it == "md") {
            let name = path.strip_prefix(&root).unwrap().display().to_string();
            let content = std::fs::read_to_string(&path).unwrap();
            documents.push(Document {
                path: name,
                content,
            });
        }
    }
    documents.sort_by(|a, b| a.path.cmp(&b.path));
    documents
}

/// A fenced block: the line of the fence, its tag, and the lines in it with their numbers.
pub type Block<'a> = (usize, &'a str, Vec<(usize, &'a str)>);

/// The fenced blocks of a document.
pub fn blocks(content: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut lines = (1..).zip(content.lines());
    while let Some((number, line)) = lines.next() {
        if let Some(tag) = line.trim_start().strip_prefix("```") {
            let is_in = |(_, line): &(usize, &str)| !line.trim_start().starts_with("```");
            found.push((number, tag, lines.by_ref().take_while(is_in).collect()));
        }
    }
    found
}

/// The commands in the fenced blocks of a document.
pub fn commands(document: &Document) -> Vec<Line> {
    let mut found = Vec::new();
    for (_, tag, lines) in blocks(&document.content) {
        if !WITH_COMMANDS.contains(&tag) {
            continue;
        }
        let mut lines = lines.into_iter();
        while let Some((number, line)) = lines.next() {
            let mut text = line.to_owned();
            while let Some(start) = text.strip_suffix('\\') {
                let next = lines.next().map_or("", |(_, line)| line);
                text = format!("{start} {next}");
            }
            // A session has output between the commands.
            let typed = match tag {
                "console" => text.strip_prefix("$ "),
                _ => Some(text.as_str()),
            };
            for command in typed.into_iter().flat_map(split) {
                found.extend(parse(&format!("{}:{number}", document.path), command));
            }
        }
    }
    found
}

/// The words of each simple command of a line of shell, without redirections and comments.
pub fn split(text: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut is_target = false;
    for character in text.chars().chain([' ']) {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '\t' | ';' | '|' | '&' | '>') => {
                if let Some(word) = word.take()
                    && !std::mem::take(&mut is_target)
                {
                    commands.last_mut().unwrap().push(word);
                }
                is_target |= character == '>';
                if ";|&".contains(character) {
                    commands.push(Vec::new());
                }
            }
            _ => word.get_or_insert_default().push(character),
        }
    }
    commands.retain(|command| !command.is_empty());
    commands
}

/// A command of dwell, with the variables before it.
fn parse(place: &str, words: Vec<String>) -> Option<Line> {
    let mut words = words.into_iter().peekable();
    let mut variables = Vec::new();
    while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
        variables.push((name.to_owned(), value.to_owned()));
        words.next();
    }
    let program = words.next()?;
    // Commands of the checkout's script itself.
    let is_own = |word: &String| matches!(word.as_str(), "build" | "get-duckdb" | "package");
    let is_script = program == "./dwell" && words.peek().is_some_and(is_own);
    matches!(program.as_str(), "dwell" | "./dwell")
        .then(|| words.collect())
        .filter(|_| !is_script)
        .map(|words| Line {
            place: place.to_owned(),
            variables,
            words,
        })
}

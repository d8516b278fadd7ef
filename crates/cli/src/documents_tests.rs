//! Commands in the documents and in the help are read by the command's own parser.

use crate::args::{Cli, parse_from};
use crate::fenced::{Document, Line, WITH_COMMANDS, blocks, commands, documents, split};
use clap::CommandFactory;

/// Tags of blocks without commands.
const WITHOUT_COMMANDS: [&str; 3] = ["text", "java", "crates"];

/// The parser's first line against a command.
fn refusal(words: &[String]) -> Option<String> {
    let all = std::iter::once("dwell").chain(words.iter().map(String::as_str));
    let error = parse_from(all).err()?;
    Some(error.to_string().lines().next().unwrap_or("").to_owned())
}

/// Fences without a known tag.
fn unknown_tags(document: &Document) -> Vec<String> {
    let is_known = |tag: &str| WITH_COMMANDS.contains(&tag) || WITHOUT_COMMANDS.contains(&tag);
    let blocks = blocks(&document.content).into_iter();
    blocks
        .filter(|(_, tag, _)| !is_known(tag))
        .map(|(line, tag, _)| format!("{}:{line}: ```{tag}", document.path))
        .collect()
}

fn page(content: &str) -> Document {
    Document {
        path: "a.md".to_owned(),
        content: content.to_owned(),
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

#[test]
fn fenced_blocks_give_their_commands() {
    let found = commands(&page(
        "```sh\nls; X='a b' dwell diff a.jfr \\\n  b.jfr --fail-on 'cpu>5%' > c # d\n\
         ./dwell build\n./dwell demo | less\n```\ndwell ps\n```text\ndwell top 1\n```\n\
         ```console\n$ dwell ps\ndwell top\n```\n",
    ));
    let line = |place: &str, variables: &[(&str, &str)], text: &str| Line {
        place: place.to_owned(),
        variables: variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        words: words(text),
    };
    let expected = [
        line(
            "a.md:2",
            &[("X", "a b")],
            "diff a.jfr b.jfr --fail-on cpu>5%",
        ),
        line("a.md:5", &[], "demo"),
        line("a.md:12", &[], "ps"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn fence_without_known_tag_is_reported() {
    let found = unknown_tags(&page("```sh\n```\n```\n```\n```bash\n```\n"));
    assert_eq!(found, ["a.md:3: ```", "a.md:5: ```bash"]);
}

#[test]
fn documents_tag_each_fenced_block() {
    let untagged: Vec<String> = documents().iter().flat_map(unknown_tags).collect();
    assert_eq!(untagged, [""; 0], "CONTRIBUTING.md lists the tags");
}

#[test]
fn documents_have_commands_that_parse() {
    let lines: Vec<Line> = documents().iter().flat_map(commands).collect();
    assert!(lines.len() > 50, "only {} commands were found", lines.len());
    let wrong: Vec<String> = lines
        .iter()
        .filter_map(|line| Some(format!("{}: {}", line.place, refusal(&line.words)?)))
        .collect();
    assert_eq!(wrong, [""; 0]);
}

/// The examples of a help text. Each has a second form if one space may be all that is left before
/// the column of explanations.
fn examples(help: &str) -> Vec<Vec<&str>> {
    let lines = help.lines();
    let lines: Vec<&str> = lines.filter_map(|it| it.strip_prefix("  dwell ")).collect();
    let column = |line: &&str| {
        let gap = line.find("  ")?;
        Some(gap + line[gap..].find(|it| it != ' ')?)
    };
    let columns: Vec<usize> = lines.iter().filter_map(column).collect();
    let mut examples = Vec::new();
    for line in lines {
        let own = line.split("  ").next().unwrap_or(line);
        let mut forms = vec![own];
        let cuts = columns.iter().filter_map(|at| own.split_at_checked(at - 1));
        // An option is no explanation.
        let mut cuts = cuts.filter(|(_, rest)| rest.starts_with(' ') && !rest.contains(" -"));
        forms.extend(cuts.next().map(|(start, _)| start));
        examples.push(forms);
    }
    examples
}

#[test]
fn help_has_examples_that_parse() {
    let help = "E:\n  dwell ps a     list\n  dwell top -b 1 until q\n  dwell demo 123 -d 1\n";
    let expected = [
        &["ps a"][..],
        &["top -b 1 until q", "top -b 1"],
        &["demo 123 -d 1"],
    ];
    assert_eq!(examples(help), expected);
    let mut cli = Cli::command();
    let mut helps = vec![cli.render_long_help().to_string()];
    let commands = cli.get_subcommands_mut();
    helps.extend(commands.map(|it| it.render_long_help().to_string()));
    let examples: Vec<Vec<&str>> = helps.iter().flat_map(|help| examples(help)).collect();
    assert!(examples.len() > 30, "{examples:?}");
    let refusal = |form: &&str| refusal(split(form).first()?);
    let is_wrong = |forms: &&Vec<&str>| forms.iter().all(|form| refusal(form).is_some());
    let wrong: Vec<_> = examples.iter().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Code within sentences and tables that begins with `dwell `.
fn mentions(document: &Document) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut is_block = false;
    for (number, line) in (1..).zip(document.content.lines()) {
        if line.trim_start().starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            let codes = line.split('`').skip(1).step_by(2);
            let codes = codes.filter(|code| code.starts_with("dwell "));
            let place = format!("{}:{number}", document.path);
            found.extend(codes.map(|code| (place.clone(), code.replace("\\|", "|"))));
        }
    }
    found
}

/// The first word of a mention that the command does not know: its name, or an option.
fn unknown_word(code: &str) -> Option<String> {
    let own = code.split(" -- ").next().unwrap_or(code);
    let mut words = own
        .split([' ', '[', ']', '|', ',', '='])
        .filter(|it| !it.is_empty());
    let name = words.nth(1)?;
    if matches!(name, "COMMAND" | "..." | "build") || name.starts_with('-') {
        return None;
    }
    let cli = Cli::command();
    let Some(command) = cli.find_subcommand(name) else {
        return Some(name.to_owned());
    };
    let is_known = |word: &str| {
        let long = word.strip_prefix("--");
        let short = word.strip_prefix('-').and_then(|it| it.chars().next());
        word == "--help"
            || command.get_arguments().any(|argument| match long {
                Some(long) => argument
                    .get_long_and_visible_aliases()
                    .is_some_and(|names| names.contains(&long)),
                None => argument.get_short() == short,
            })
    };
    let mut options = words.filter(|it| it.starts_with('-') && it.len() > 1);
    options.find(|it| !is_known(it)).map(str::to_owned)
}

#[test]
fn documents_mention_options_that_exist() {
    for (code, unknown) in [
        ("dwell record -d 30 [PID|NAME]", None),
        ("dwell record --no-agent", None),
        ("dwell record -- java --any", None),
        ("dwell record --none", Some("--none")),
        ("dwell record -z", Some("-z")),
        ("dwell recrod", Some("recrod")),
    ] {
        assert_eq!(unknown_word(code).as_deref(), unknown, "{code}");
    }
    let mentions: Vec<_> = documents().iter().flat_map(mentions).collect();
    assert!(mentions.len() > 50, "only {} were found", mentions.len());
    let wrong: Vec<String> = mentions
        .iter()
        .filter_map(|(place, code)| Some(format!("{place}: {code}: {}", unknown_word(code)?)))
        .collect();
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn options_of_each_command_are_in_the_documents() {
    let text: String = documents().into_iter().map(|it| it.content).collect();
    let is_there = |argument: &clap::Arg| {
        let long = argument.get_long().map(|it| format!("--{it}"));
        let short = argument.get_short().map(|it| format!("`-{it}"));
        let mut names = [long, short].into_iter().flatten().peekable();
        names.peek().is_none() || names.any(|name| text.contains(&name))
    };
    let cli = Cli::command();
    let absent: Vec<String> = cli
        .get_subcommands()
        .flat_map(|command| command.get_arguments().map(move |it| (command, it)))
        .filter(|(_, argument)| !is_there(argument))
        .map(|(command, argument)| format!("{}: {argument}", command.get_name()))
        .collect();
    assert_eq!(absent, [""; 0]);
}

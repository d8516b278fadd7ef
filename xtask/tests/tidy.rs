//! The house rules hold, and the checker sees when they do not.

use xtask::tidy::{Violation, arrows, check, every_file, lexer, rust, untested};

#[test]
fn the_repository_is_tidy() {
    let violations = check(&xtask::repository()).unwrap();
    let listed: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert!(listed.is_empty(), "\n{}\n", listed.join("\n"));
}

/// The rules that `source` breaks as the file `path`, with the lines.
fn broken(path: &str, source: &str) -> Vec<(&'static str, usize)> {
    let mut violations: Vec<Violation> = Vec::new();
    rust::check(path, source, &mut violations);
    every_file::check(path, source, &mut violations);
    violations
        .into_iter()
        .map(|violation| (violation.rule, violation.line))
        .collect()
}

const PURE: &str = "crates/profile/src/some.rs";
const SIGNAL: &str = "crates/signal/src/some.rs";

#[test]
fn sees_missing_heads_and_long_lines_and_files() {
    assert_eq!(broken(PURE, "fn a() {}\n"), [("head", 1)]);
    assert_eq!(broken(PURE, &format!("//! x\n//{}\n", "é".repeat(98))), []);
    assert_eq!(
        broken(PURE, &format!("//! x\n//{}\n", "é".repeat(99))),
        [("line-length", 2)]
    );
    assert_eq!(broken(PURE, &format!("//! x\n{}", "\n".repeat(799))), []);
    assert_eq!(
        broken(PURE, &format!("//! x\n{}", "\n".repeat(800))),
        [("file-length", 801)]
    );
}

#[test]
fn measures_functions_by_their_braces() {
    let function = |lines: usize| format!("//! x\nfn a(b: [u8; 3])\n{{{}}}\n", "\n".repeat(lines));
    assert_eq!(broken(PURE, &function(68)), []);
    assert_eq!(broken(PURE, &function(69)), [("function-length", 2)]);
    let strings = "//! x\nfn a() { let b = \"}\"; let c = '{'; /* } */ }\nfn d();\n";
    assert_eq!(broken(PURE, &format!("{strings}{}", "\n".repeat(100))), []);
    let pointer = "//! x\ntype A = fn(u8) -> u8;\nstruct B {\n".to_owned();
    assert_eq!(
        broken(PURE, &format!("{pointer}{}}}\n", "\n".repeat(90))),
        []
    );
}

#[test]
fn unsafe_code_has_its_places_and_its_arguments() {
    let bare = "//! x\nfn a() {\n    unsafe { b() }\n}\n";
    assert_eq!(broken(PURE, bare), [("unsafe", 3)]);
    assert_eq!(broken(SIGNAL, bare), [("safety", 3)]);
    let argued = concat!(
        "//! x\nfn a() {\n    // SAFETY: b is fine,\n    // really.\n",
        "    let c =\n        unsafe { b() };\n}\n",
    );
    assert_eq!(broken(SIGNAL, argued), []);
    let elsewhere = "//! x\nfn a() {\n    // SAFETY: b is.\n    c();\n    unsafe { b() }\n}\n";
    assert_eq!(broken(SIGNAL, elsewhere), [("safety", 5)]);
    let declared = "//! x\nunsafe fn a() {}\n#[unsafe(no_mangle)]\nfn b() {}\n";
    assert_eq!(broken(SIGNAL, declared), []);
    let quoted = "//! x\n// unsafe { } in a comment\nconst A: &str = \"unsafe {\";\n";
    assert_eq!(broken(PURE, quoted), []);
    assert_eq!(broken("crates/recorder/src/sys/mod.rs", declared), []);
    assert_eq!(broken("crates/agent/src/jvm/mod.rs", declared), []);
    assert_eq!(
        broken("crates/inside/src/drain/mod.rs", declared),
        [("unsafe", 2)]
    );
    assert_eq!(
        broken("crates/profile/src/lib.rs", "//! x\n"),
        [("forbid-unsafe", 1)]
    );
}

#[test]
fn code_for_any_runtime_names_none() {
    let of = |code: &str| {
        broken(
            "crates/recorder/src/wall/mod.rs",
            &format!("//! x\n{code}\n"),
        )
    };
    for code in [
        "use dwell_walker::hotspot::threads;",
        "struct HotSpot;",
        "fn java_thread() {}",
        "type A = JavaThread;",
        "let on_mono = true;",
        "let late = Reason::SafepointWait;",
        "let class = \"java/lang/Thread\";",
        "let a = (\"a\", \"of a \\\"JVM\\\"\");",
        "let library = br\"/lib/libjvm.so\";",
        "let field = \"jvm_name\";",
    ] {
        assert_eq!(of(code), [("runtime", 2)], "{code}");
    }
    for code in [
        "fn monotonic_ns() {}",
        "use dwell_wall::cause::Monitor;",
        "let known = event.jvm_name; // the JVM's, in a JFR file",
        "chunk.event(&Event::SafepointLate { safepoint_id: 1 });",
        "let text = \"monotonic\\njavelin\"; // not java",
    ] {
        assert_eq!(of(code), [], "{code}");
    }
    for place in ["context", "host", "native", "signal", "wall"] {
        let path = format!("crates/{place}/src/some.rs");
        assert_eq!(broken(&path, "//! x\nstruct Oop;\n"), [("runtime", 2)]);
    }
    let test = "crates/native/tests/real.rs";
    assert_eq!(broken(test, "//! x\nconst A: &str = \"libjvm\";\n"), []);
    assert_eq!(
        broken("crates/inside/src/hook.rs", "//! x\nstruct HotSpot;\n"),
        []
    );
}

#[test]
fn words_of_files_may_stay_in_literals_where_they_are_needed() {
    let facts = "crates/wall/src/facts.rs";
    let told = "//! x\nconst A: &str = \"safepoint\";\n";
    assert_eq!(broken(facts, told), []);
    assert_eq!(broken("crates/wall/src/x.rs", told), [("runtime", 2)]);
    let other = "//! x\nconst A: &str = \"safepoint\"; const B: &str = \"jdk\";\n";
    assert_eq!(broken(facts, other), [("runtime", 2)]);
    // In no literal any more, and a name of the code never.
    assert_eq!(broken(facts, "//! x\n"), [("runtime", 1)]);
    let code = "//! x\nfn safepoint() -> &'static str { \"safepoint\" }\n";
    assert_eq!(broken(facts, code), [("runtime", 2)]);
}

#[test]
fn unfinished_or_machine_bound_code_is_reported() {
    let word = concat!("TO", "DO");
    assert_eq!(
        broken(PURE, &format!("//! x\n// {word}: later\n")),
        [("unfinished", 2)]
    );
    assert_eq!(broken(PURE, &format!("//! x\n// {word}S are a word\n")), []);
    assert_eq!(
        broken(PURE, "//! x\nfn a() { todo!() }\n"),
        [("unfinished", 2)]
    );
    assert_eq!(
        broken(PURE, "//! x\n#[ignore]\nfn a() {}\n"),
        [("ignored-test", 2)]
    );
    let place = concat!("/wo", "rk/x");
    assert_eq!(
        broken(PURE, &format!("//! x\n// {place}\n")),
        [("machine-path", 2)]
    );
}

#[test]
fn lexer_separates_code_from_text() {
    let lines = lexer::split(concat!(
        "let a = \"// no \\\" comment\"; // yes\n",
        "let b = r#\"raw \" // no\"#; /* one /* two */ still */ let c = '\"';\n",
        "fn d<'a>(e: &'a str) -> char { '\\'' }\n",
        "let f = b\"bytes { \"; let g = '\\u{1f600}'; let br = c\"c\";\n",
        "let h = \"over\n",
        "two { lines\"; let i = 'x';\n",
    ));
    assert_eq!(lines.code[0], "let a = \"\"; ");
    assert_eq!(lines.comments[0], "// yes");
    assert_eq!(lines.code[1], "let b = \"\";  let c = '';");
    assert_eq!(lines.comments[1], " one  two  still ");
    assert_eq!(lines.code[2], "fn d<'a>(e: &'a str) -> char { '' }");
    assert_eq!(lines.code[3], "let f = \"\"; let g = ''; let br = \"\";");
    assert_eq!(lines.code[5], "\"; let i = '';");
    let literals: Vec<&str> = lines.literals.iter().map(|it| it.as_str()).collect();
    let texts = [
        "// no   comment\n",
        "raw \" // no\n",
        "",
        "bytes { \nc\n",
        "over",
        "two { lines\n",
    ];
    assert_eq!(literals[..6], texts);
}

#[test]
fn false_alarm_comment_is_needed_for_measured_tests() {
    let silent = "//! x\n/// Sums.\n#[test]\nfn measured_sums() {}\n";
    assert_eq!(broken(PURE, silent), [("measured", 4)]);
    let said = "//! x\n/// Detects 2 %.\n/// False alarm: 1e-6.\n#[test]\nfn measured_sums() {}\n";
    assert_eq!(broken(PURE, said), []);
}

fn owned(files: &[(&str, &str)]) -> Vec<(String, String)> {
    let one = |(path, content): &(&str, &str)| ((*path).to_owned(), (*content).to_owned());
    files.iter().map(one).collect()
}

#[test]
fn crates_use_those_that_are_listed_above_them() {
    let list = "text\n```crates\nwalker:\nnative: walker\n```\nnative: nobody\n";
    let said = |list: &str, manifests: &[(&str, &str)]| {
        let mut found = Vec::new();
        arrows::crates(list, &owned(manifests), &mut found);
        found.into_iter().map(|it| it.what).collect::<Vec<_>>()
    };
    let walker = ("walker", "[dependencies]\nlibc = \"1\"\n");
    let native = concat!(
        "[dependencies]\ndwell-walker = { workspace = true }\n",
        "[dev-dependencies]\ndwell-e2e = { workspace = true }\n",
    );
    assert_eq!(said(list, &[walker, ("native", native)]), [""; 0]);
    let table = "[dependencies.dwell-walker]\npath = \"../walker\"\n";
    assert_eq!(said(list, &[walker, ("native", table)]), [""; 0]);
    let upwards = "[dependencies]\ndwell-native.workspace = true\n";
    assert_eq!(
        said(list, &[("walker", upwards), ("native", native)]),
        ["walker uses native, which is not in its list"]
    );
    assert_eq!(
        said(list, &[walker, ("native", "")]),
        ["native is listed to use walker, and does not"]
    );
    assert_eq!(
        said(list, &[("wall", "")]),
        ["wall is not in ARCHITECTURE.md's list"]
    );
    let circle = "```crates\nwalker: native\nnative: walker\n```\n";
    assert_eq!(
        said(circle, &[]),
        ["walker uses native, which is not above it in the list"]
    );
}

#[test]
fn modules_use_each_other_in_one_direction() {
    let graph = |files: &[(&str, &str)]| arrows::graph(&owned(files));
    let circle = graph(&[
        ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
        ("a/mod.rs", "use crate::{b::{self, B}, d};"),
        ("b.rs", "fn f() { super::c::g() }"),
        ("c/below.rs", "use super::super::a::A;\n// crate::b\n"),
        (
            "e.rs",
            "use crate::a;\n#[cfg(test)]\nmod tests { use crate::c; }",
        ),
        ("f.rs", "#[cfg(test)]\nmod tests;\nfn f() {} use crate::g;"),
        (
            "g.rs",
            "#[cfg(test)]\nmod t { fn f() { {} } }\nuse crate::f;",
        ),
    ]);
    let on: Vec<String> = arrows::on_circles(&circle).into_iter().collect();
    assert_eq!(on, ["a", "b", "c", "f", "g"]);
    let chain = graph(&[
        ("a.rs", "use crate::b; use super::b::c;"),
        ("b/mod.rs", "pub mod c;"),
        (
            "b/c.rs",
            "use super::d; const A: &str = \"crate::a\"; use other::crate_::a;",
        ),
    ]);
    assert!(arrows::on_circles(&chain).is_empty(), "{chain:?}");
    let by_the_root = graph(&[
        ("lib.rs", "pub use a::{A, below::B as C};\npub use d::E;"),
        ("a.rs", "use crate::b::f;"),
        ("b.rs", "fn f(_: super::C) {}"),
        ("b/tests.rs", "use crate::d;"),
        ("d.rs", "use crate::A;"),
        ("e_tests.rs", "use crate::E;"),
    ]);
    let on: Vec<String> = arrows::on_circles(&by_the_root).into_iter().collect();
    assert_eq!(on, ["a", "b"]);
    let mut found = Vec::new();
    let files = owned(&[("x.rs", "use crate::y;"), ("y.rs", "use crate::x;")]);
    arrows::modules("some", &files, &mut found);
    assert_eq!(found.len(), 2, "{found:?}");
}

/// The long files of a crate that have no unit test.
fn without_tests(name: &str, files: &[(&str, String)]) -> Vec<String> {
    let files = files
        .iter()
        .map(|(path, it)| ((*path).to_owned(), it.clone()));
    let mut found = Vec::new();
    untested::check(name, &files.collect::<Vec<_>>(), &mut found);
    assert!(found.iter().all(|it| it.rule == "untested" && it.line == 1));
    found.into_iter().map(|it| it.path).collect()
}

/// A file with this number of lines, ending in `end`.
fn lines(count: usize, end: &str) -> String {
    let end_count = end.lines().count();
    format!("{}{end}", "fn a() {}\n".repeat(count - end_count))
}

const TESTS: &str = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() {}\n}\n";
const APART: &str = "#[cfg(test)]\nmod tests;\n";

#[test]
fn long_files_need_a_unit_test() {
    let of = |count: usize, end: &str| {
        let found = without_tests("recorder", &[("some/it.rs", lines(count, end))]);
        assert!(found.is_empty() || found == ["crates/recorder/src/some/it.rs"]);
        found.is_empty()
    };
    assert!(of(200, "") && !of(201, ""));
    assert!(of(500, TESTS));
    assert!(
        !of(500, "#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n"),
        "none in it"
    );
    assert!(!of(500, "// #[cfg(test)]\n// mod tests { #[test] }\n"));
    assert!(!of(500, "#[test]\nfn b() {}\n"), "in no module for tests");
    assert!(!of(
        500,
        "#[cfg(test)]\nfn tests() { let a = \"#[test]\"; }\n"
    ));
    assert!(!of(500, APART), "no such file");
}

#[test]
fn unit_tests_may_be_in_a_file_of_their_own() {
    let long = |end: &str| lines(300, end);
    let tests = "#[test]\nfn b() {}\n".to_owned();
    for (path, tests_at) in [
        ("it.rs", "it/tests.rs"),
        ("it.rs", "it/tests/mod.rs"),
        ("it/mod.rs", "it/tests.rs"),
        ("a/it.rs", "a/it/tests.rs"),
        ("lib.rs", "tests.rs"),
    ] {
        let with = |at, what: &String| [(path, long(APART)), (at, what.clone())];
        assert!(
            without_tests("wall", &with(tests_at, &tests)).is_empty(),
            "{tests_at}"
        );
        let empty = without_tests("wall", &with(tests_at, &String::new()));
        assert_eq!(empty, [format!("crates/wall/src/{path}")], "no test in it");
        let elsewhere = without_tests("wall", &with("other/tests.rs", &tests));
        assert_eq!(elsewhere, [format!("crates/wall/src/{path}")]);
    }
    let named = "#[cfg(test)]\n#[path = \"it_tests.rs\"]\nmod tests;\n";
    let files = [("a/it.rs", long(named)), ("a/it_tests.rs", tests)];
    assert!(without_tests("wall", &files).is_empty());
}

#[test]
fn test_only_files_need_no_unit_test() {
    let root = "#[cfg(test)]\npub(crate) mod helpers;\nmod helpers_of_all;\n";
    let found = without_tests(
        "inside",
        &[
            ("lib.rs", root.to_owned()),
            ("helpers.rs", lines(300, "")),
            ("helpers/below.rs", lines(300, "")),
            ("helpers_of_all.rs", lines(300, "")),
        ],
    );
    assert_eq!(found, ["crates/inside/src/helpers_of_all.rs"]);
}

#[test]
fn only_listed_folders_need_unit_tests() {
    let files = |path| [(path, lines(300, ""))];
    assert_eq!(without_tests("walker", &files("hotspot/it.rs")).len(), 1);
    assert!(without_tests("walker", &files("it.rs")).is_empty());
    assert!(without_tests("cli", &files("it.rs")).is_empty());
}

//! Questions in SQL, and the tables behind them. Tests of answers need DuckDB: `duckdb` of the
//! search path, or that of `./dwell get-duckdb`.

use crate::exports::recording;
use crate::harness::common::modern;
use crate::harness::{Done, Place, finish, programs};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// DuckDB's command, if it is there.
pub fn duckdb() -> Option<PathBuf> {
    let named = std::env::var_os("DWELL_DUCKDB").map(PathBuf::from);
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/duckdb/duckdb");
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&paths).map(|dir| dir.join("duckdb"));
    let mut places = named.into_iter().chain([built]).chain(on_path);
    places.find(|place| place.is_file())
}

/// The command with DuckDB, and with a cache of its own in the directory of the test.
pub fn command(place: &Place, duckdb: &Path, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command.env("DWELL_DUCKDB", duckdb);
    command.env("XDG_CACHE_HOME", place.path("cache"));
    command
}

/// A directory with a recording, and DuckDB; `None` without.
struct Asked {
    place: Place,
    duckdb: PathBuf,
}

impl Asked {
    fn new(test: &str) -> Option<Asked> {
        let Some(duckdb) = duckdb() else {
            println!("skipped: duckdb is not installed; get it with ./dwell get-duckdb");
            return None;
        };
        let place = Place::new(test);
        std::fs::write(place.path("a.jfr"), recording(10)).unwrap();
        Some(Asked { place, duckdb })
    }

    fn query(&self, args: &[&str]) -> Done {
        let args = [&["query"], args].concat();
        let mut command = command(&self.place, &self.duckdb, &args);
        finish(command.spawn().unwrap())
    }

    /// The one number of an answer.
    fn number(&self, file: &str, sql: &str) -> f64 {
        let done = self.query(&[file, sql, "--format", "csv"]).exits(0);
        let last = done.out.lines().last().unwrap();
        last.parse().unwrap_or_else(|_| panic!("{sql}: {done:?}"))
    }

    /// The recordings in the cache.
    fn cached(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.place.path("cache/dwell/query")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

#[test]
fn tables_replace_only_tables() {
    let place = Place::new("tables");
    std::fs::write(place.path("a.jfr"), recording(10)).unwrap();
    let convert = |args: &[&str], code| {
        place
            .dwell(&[&["convert", "a.jfr"], args].concat())
            .exits(code)
    };
    convert(&["-o", "it's [new]/"], 0);
    convert(&["--parquet", "it's [new]"], 0);
    convert(&["-o", "b.parquet"], 0);
    assert_eq!(place.files(), ["a.jfr", "b.parquet", "it's [new]"]);
    let written = std::fs::read_dir(place.path("b.parquet")).unwrap().count();
    assert_eq!(written, 14);
    std::fs::write(place.path("b.parquet/mine.txt"), "mine").unwrap();
    let refused = convert(&["-o", "b.parquet"], 1);
    assert!(refused.error().contains("mine.txt"), "{refused:?}");
    let refused = convert(&["-o", "./"], 1);
    let expected = "holds another file";
    assert!(refused.error().contains(expected), "{refused:?}");
    convert(&["--parquet", "x", "-o", "y"], 2);
    convert(&["--parquet", "x", "--threads"], 2);
    assert_eq!(place.files(), ["a.jfr", "b.parquet", "it's [new]"]);
}

#[test]
fn query_without_duckdb_names_the_remedy() {
    let place = Place::new("query-none");
    std::fs::write(place.path("a.jfr"), recording(10)).unwrap();
    let mut command = place.command(&["query", "a.jfr", "FROM samples"]);
    command.env_remove("DWELL_DUCKDB").env("PATH", "");
    let done = finish(command.spawn().unwrap()).exits(1);
    assert!(done.error().contains("pip install duckdb-cli"), "{done:?}");
    assert_eq!((done.out.as_str(), done.err.lines().count()), ("", 1));
    assert_eq!(place.files(), ["a.jfr"]);
}

#[test]
fn old_duckdb_is_named_with_the_remedy() {
    let place = Place::new("query-old");
    std::fs::write(place.path("a.jfr"), recording(10)).unwrap();
    let old = place.path("duckdb");
    let message = "Catalog Error: unrecognized configuration parameter \"allowed_paths\"";
    let script = format!("#!/bin/sh\necho '{message}' >&2\nexit 1\n");
    std::fs::write(&old, script).unwrap();
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = command(&place, &old, &["query", "a.jfr", "FROM samples"]);
    let done = finish(command.spawn().unwrap()).exits(1);
    assert!(done.error().contains("duckdb is too old"), "{done:?}");
    assert_eq!(done.err.lines().count(), 1);
}

#[test]
fn answers_have_the_facts_in_each_form() {
    let Some(asked) = Asked::new("query-forms") else {
        return;
    };
    let sql = "SELECT thread, method, line, cause, sum(weight_ns)::BIGINT AS ns, count(*) AS n \
               FROM samples GROUP BY ALL";
    let csv = asked.query(&["a.jfr", sql, "--format", "csv"]).exits(0);
    let expected = "thread,method,line,cause,ns,n\nworker,a.b.C.run,7,running,100000000,10\n";
    assert_eq!(csv.out.replace('\r', ""), expected);
    let json = asked.query(&["a.jfr", sql, "--format", "json"]).exits(0);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json[0]["ns"], 100_000_000);
    assert_eq!(json[0]["method"], "a.b.C.run");
    let table = asked.query(&["a.jfr", sql]).exits(0);
    assert!(table.out.contains("│ worker │ a.b.C.run │"), "{table:?}");
    let empty = asked
        .query(&["a.jfr", "FROM spans", "--format", "json"])
        .exits(0);
    // DuckDB 1.4 prints nothing.
    assert!(matches!(empty.out.trim(), "[]" | ""), "{empty:?}");
}

#[test]
fn wrong_sql_is_one_line_of_duckdb() {
    let Some(asked) = Asked::new("query-wrong") else {
        return;
    };
    for (sql, expected) in [
        (
            "SELECT lunch FROM samples",
            "dwell: DuckDB: Binder Error: Referenced column \"lunch\"",
        ),
        ("SELEC 1", "dwell: DuckDB: Parser Error: syntax error"),
        (
            "FROM nothing",
            "dwell: DuckDB: Catalog Error: Table with name nothing",
        ),
    ] {
        let done = asked.query(&["a.jfr", sql]).exits(1);
        assert!(done.err.starts_with(expected), "{done:?}");
        assert_eq!(done.err.lines().count(), 1, "{done:?}");
    }
    let done = asked.query(&["none.jfr", "SELECT 1"]).exits(1);
    assert!(done.error().contains("no such file"), "{done:?}");
    let done = asked.query(&[".", "SELECT 1"]).exits(1);
    assert!(done.error().contains("--parquet DIR"), "{done:?}");
    asked.query(&["a.jfr"]).exits(2);
}

#[test]
fn sql_runs_no_command_and_opens_no_other_file() {
    let Some(asked) = Asked::new("query-hostile") else {
        return;
    };
    std::fs::write(asked.place.path("secret.csv"), "a\n1\n").unwrap();
    let path = asked.place.path("secret.csv");
    let read = format!("FROM read_csv('{}')", path.display());
    let written = asked.place.path("written.csv");
    let copy = format!("COPY samples TO '{}'", written.display());
    for sql in [
        ".shell touch written.csv",
        "SELECT 1;\n.shell touch written.csv",
        "$(touch written.csv)",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "ATTACH 'written.csv'",
        &read,
        &copy,
    ] {
        let done = asked.query(&["a.jfr", sql]).exits(1);
        assert_eq!(done.err.lines().count(), 1, "{done:?}");
    }
    assert_eq!(asked.place.files(), ["a.jfr", "cache", "secret.csv"]);
}

#[test]
fn names_with_quotes_and_patterns_are_only_names() {
    let Some(asked) = Asked::new("query-names") else {
        return;
    };
    let name = "o'd \"x\" [y]* $(id).jfr";
    std::fs::copy(asked.place.path("a.jfr"), asked.place.path(name)).unwrap();
    asked
        .place
        .dwell(&["convert", "a.jfr", "-o", "d'ir[1]*/"])
        .exits(0);
    let sql = "SELECT recording, sum(weight_ns)::BIGINT AS ns FROM samples \
               GROUP BY ALL ORDER BY recording";
    let inputs = ["a.jfr", name, "d'ir[1]*"];
    let done = asked
        .query(&[&inputs[..], &[sql, "--format", "json"]].concat())
        .exits(0);
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    for (place, input) in inputs
        .iter()
        .enumerate()
        .map(|(place, it)| ([0, 2, 1][place], it))
    {
        assert_eq!(json[place]["recording"], *input, "{done:?}");
        assert_eq!(json[place]["ns"], 100_000_000);
    }
}

#[test]
fn stack_ids_of_two_recordings_are_equal() {
    let Some(asked) = Asked::new("query-ids") else {
        return;
    };
    std::fs::write(asked.place.path("b.jfr"), recording(20)).unwrap();
    let sql = "SELECT count(DISTINCT stack_id), count(*), count(method) FROM samples";
    let done = asked
        .query(&["a.jfr", "b.jfr", sql, "--format", "csv"])
        .exits(0);
    assert_eq!(done.out.lines().last(), Some("1,30,30"));
}

#[test]
fn cache_has_one_private_directory_for_a_content() {
    let Some(asked) = Asked::new("query-cache") else {
        return;
    };
    std::fs::copy(asked.place.path("a.jfr"), asked.place.path("b.jfr")).unwrap();
    for file in ["a.jfr", "b.jfr", "a.jfr"] {
        asked.query(&[file, "FROM samples"]).exits(0);
    }
    let cached = asked.cached();
    assert_eq!(cached.len(), 1);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&cached[0]), 0o700);
    assert_eq!(mode(&asked.place.path("cache/dwell/query")), 0o700);
    // Tables that are not complete are not used.
    std::fs::remove_file(cached[0].join("late.parquet")).unwrap();
    asked.query(&["a.jfr", "FROM late"]).exits(0);
    assert_eq!(asked.cached().len(), 1);
    // Another content of the same name and length.
    let mut bytes = std::fs::read(asked.place.path("a.jfr")).unwrap();
    for at in 0..bytes.len() - 6 {
        if &bytes[at..at + 6] == b"worker" {
            bytes[at] = b'W';
        }
    }
    std::fs::write(asked.place.path("a.jfr"), &bytes).unwrap();
    let sql = "SELECT count(*) FROM threads WHERE thread LIKE 'Wor%'";
    assert_eq!(asked.number("a.jfr", sql), 1.0);
    assert_eq!(asked.cached().len(), 2);
    // A damaged recording is reported in each query, and not kept.
    std::fs::write(asked.place.path("a.jfr"), &bytes[..bytes.len() - 9]).unwrap();
    for _ in 0..2 {
        let done = asked.query(&["a.jfr", "SELECT is_complete FROM recording"]);
        assert!(done.err.contains("a.jfr"), "{done:?}");
    }
    assert_eq!(asked.cached().len(), 2);
}

/// The sum of collapsed stacks.
fn own(place: &Place, options: &[&str]) -> f64 {
    let args = [&["convert", "app.jfr", "--collapsed"], options].concat();
    let out = place.dwell(&args).exits(0).out;
    let numbers = out.lines().filter_map(|line| line.rsplit_once(' '));
    numbers
        .map(|(_, number)| number.parse::<f64>().unwrap())
        .sum()
}

#[test]
fn sums_are_those_of_collapsed_stacks() {
    let Some(asked) = Asked::new("query-sums") else {
        return;
    };
    let (java, jar) = (modern().java(), programs());
    let record = [
        "record", "-i", "2ms", "-e", "all", "--alloc", "64k", "-o", "app", "--",
    ];
    let program = [java.to_str().unwrap(), "-cp", jar.to_str().unwrap()];
    let main = ["io.dwell.test.Allocations", "mib=64"];
    asked
        .place
        .dwell(&[&record[..], &program, &main].concat())
        .exits(0);
    for (sql, options) in [
        (
            "sum(weight_ns) FROM samples",
            &["-e", "cpu", "--unit", "ns"][..],
        ),
        (
            "sum(count) FROM samples",
            &["-e", "cpu", "--unit", "samples"],
        ),
        ("sum(weight_ns) FROM wall", &["-e", "wall"]),
        (
            "sum(weight_ns) FROM wall WHERE cause = 'running'",
            &["--cause", "running"],
        ),
        ("sum(weight_bytes) FROM allocations", &["-e", "alloc"]),
        (
            "coalesce(sum(weight_bytes), 0) FROM live WHERE collections > 0",
            &["-e", "live"],
        ),
        ("coalesce(sum(weight_ns), 0) FROM locks", &["-e", "lock"]),
        (
            "sum(ns) FROM folded(samples)",
            &["-e", "cpu", "--unit", "ns"],
        ),
    ] {
        let (theirs, ours) = (
            asked.number("app.jfr", &format!("SELECT {sql}")),
            own(&asked.place, options),
        );
        println!("{sql}: {theirs}");
        assert!(
            (theirs - ours).abs() <= 1e-6 * ours,
            "{sql}: {theirs}, {ours}"
        );
    }
    // Shares of all time, and each method once in a recursion.
    let most = "SELECT max(percent) FROM totals(samples)";
    assert!(asked.number("app.jfr", most) <= 100.0);
    let lost = "SELECT count(*) FROM samples WHERE method IS NULL";
    assert_eq!(asked.number("app.jfr", lost), 0.0);
}

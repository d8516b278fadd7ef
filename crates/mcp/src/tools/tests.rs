//! Tests of all tools through the server's lines.

use super::*;
use crate::made_profile::{changed, full, hostile};
use crate::recordings::Source;
use crate::{answer, serve};
use dwell_profile::{GroupBy, IDLE, WallFilter};
use proptest::prelude::*;

struct Made {
    name: &'static str,
    make: fn() -> Result<Profile, String>,
}

impl Source for Made {
    fn name(&self) -> &str {
        self.name
    }

    fn version(&self) -> Option<u128> {
        Some(1)
    }

    fn load(&self) -> Result<Profile, String> {
        (self.make)()
    }
}

const MISSING: &str = "c.jfr: no such file; give a recording, or make one with: dwell record PID";

fn sources() -> Vec<Box<dyn Source>> {
    let made: [Made; 4] = [
        Made {
            name: "a.jfr",
            make: || Ok(full()),
        },
        Made {
            name: "b.jfr",
            make: || Ok(changed()),
        },
        Made {
            name: "c.jfr",
            make: || Err(MISSING.to_owned()),
        },
        Made {
            name: "hostile.jfr",
            make: || Ok(hostile()),
        },
    ];
    made.into_iter()
        .map(|it| Box::new(it) as Box<dyn Source>)
        .collect()
}

/// The replies to lines.
fn replies(lines: &str) -> Vec<Value> {
    let mut out = Vec::new();
    serve(sources(), "0.1.0", lines.as_bytes(), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The result of a tool.
fn called(tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    replies(&line.to_string()).remove(0)
}

/// The answer of a tool, which must fit its schema and be the same as text.
#[track_caller]
fn asked(tool: &str, arguments: Value) -> Value {
    let reply = called(tool, arguments);
    assert_eq!(reply["result"]["isError"], json!(false), "{reply}");
    let answer = reply["result"]["structuredContent"].clone();
    let tool = ALL.iter().find(|it| it.name == tool).unwrap();
    fits(&answer, &(tool.output)(), "answer");
    let content = &reply["result"]["content"];
    assert_eq!(content[1]["text"], json!(answer.to_string()));
    assert_eq!(content[0]["text"], json!(line(&answer)));
    assert!(answer.to_string().len() <= answer::BYTES_MAX);
    answer
}

#[track_caller]
fn refused(tool: &str, arguments: Value) -> String {
    let reply = called(tool, arguments);
    assert_eq!(reply["result"]["isError"], json!(true), "{reply}");
    assert_eq!(reply["result"].get("structuredContent"), None);
    let text = reply["result"]["content"][0]["text"].as_str().unwrap();
    assert!(!text.contains('\n'), "{text}");
    text.to_owned()
}

/// Fails unless a value is as its schema says. Knows the parts of schemas that are used here.
#[track_caller]
fn fits(value: &Value, schema: &Value, at: &str) {
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    let is_of = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{at}: {other}"),
    };
    assert!(types.iter().any(is_of), "{at}: {value} is not {types:?}");
    if let Some(items) = value.as_array() {
        for (place, item) in items.iter().enumerate() {
            fits(item, &schema["items"], &format!("{at}[{place}]"));
        }
    }
    let Some(fields) = value.as_object() else {
        return;
    };
    for (name, field) in fields {
        let of = schema["properties"].get(name);
        let of = of.unwrap_or_else(|| panic!("{at}.{name}: not in the schema"));
        fits(field, of, &format!("{at}.{name}"));
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap();
        assert!(fields.contains_key(name), "{at}: no {name} in {value}");
    }
}

/// Names of rows with a number.
fn rows(answer: &Value, of: &str) -> Vec<(String, u64)> {
    let rows = answer["rows"].as_array().unwrap().iter();
    rows.map(|row| {
        let name = row["name"].as_str().unwrap().to_owned();
        (name, row[of]["value"].as_u64().unwrap())
    })
    .collect()
}

fn named(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    let rows = rows.iter();
    rows.map(|(name, sum)| ((*name).to_owned(), *sum)).collect()
}

#[test]
fn initialize_agrees_on_a_version() {
    for (asked, expected, has_schema) in [
        ("2024-11-05", "2024-11-05", false),
        ("2025-03-26", "2025-03-26", false),
        ("2025-06-18", "2025-06-18", true),
        ("2099-01-01", "2025-06-18", true),
    ] {
        let params = json!({
            "protocolVersion": asked,
            "capabilities": {},
            "clientInfo": { "name": "t", "version": "1" },
        });
        let lines = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{params}}}
               {{"jsonrpc":"2.0","method":"notifications/initialized"}}

               {{"jsonrpc":"2.0","id":1,"method":"ping"}}
               {{"jsonrpc":"2.0","id":2,"method":"tools/list"}}
               {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"summary"}}}}"#
        );
        let replies = replies(&lines);
        assert_eq!(replies.len(), 4);
        let info = &replies[0]["result"];
        assert_eq!(info["protocolVersion"], json!(expected));
        assert_eq!(info["serverInfo"]["name"], json!("dwell"));
        assert!(
            info["instructions"]
                .as_str()
                .unwrap()
                .contains("never instructions")
        );
        assert_eq!(replies[1]["result"], json!({}));
        let tools = replies[2]["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), ALL.len());
        for tool in tools {
            assert_eq!(tool.get("outputSchema").is_some(), has_schema, "{tool}");
            assert!(tool["description"].as_str().unwrap().ends_with(INERT));
        }
        let result = &replies[3]["result"];
        assert_eq!(result.get("structuredContent").is_some(), has_schema);
    }
}

#[test]
fn wrong_calls_have_errors_of_the_protocol() {
    let long = format!("{{\"x\":\"{}\"}}", "y".repeat(2 << 20));
    for (line, code, part) in [
        (r#"{"method":"initialize"}"#, -32602, "protocolVersion"),
        (
            r#"{"method":"resources/list"}"#,
            -32601,
            "resources/list: no such",
        ),
        (
            r#"{"method":"tools/list","params":{"cursor":"x"}}"#,
            -32602,
            "cursor",
        ),
        (r#"{"method":"tools/call"}"#, -32602, "name: must be"),
        (
            r#"{"method":"tools/call","params":{"name":"x\n"}}"#,
            -32602,
            "x\u{fffd}: no such tool",
        ),
        (
            r#"{"method":"tools/call","params":{"name":"top","arguments":[]}}"#,
            -32602,
            "arguments: must be an object",
        ),
        (&long, -32600, "longer than"),
    ] {
        let line = line.replacen('{', r#"{"jsonrpc":"2.0","id":1,"#, 1);
        let replies = replies(&format!(
            "{line}\n{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}}"
        ));
        assert_eq!(replies.len(), 2, "{replies:?}");
        let error = &replies[0]["error"];
        assert_eq!(error["code"], json!(code), "{error}");
        assert!(error["message"].as_str().unwrap().contains(part), "{error}");
        assert_eq!(replies[1]["result"], json!({}));
    }
}

#[test]
fn wrong_arguments_are_errors_of_the_tool() {
    for (tool, arguments, expected) in [
        ("summary", json!({ "file": "c.jfr" }), MISSING),
        (
            "summary",
            json!({ "fil": "a.jfr" }),
            "fil: unknown argument; this tool takes file",
        ),
        (
            "callers",
            json!({}),
            "method: is missing; it must be a string",
        ),
        (
            "top",
            json!({ "limit": "20" }),
            "limit: must be a whole number from 1 to 200, not \"20\"",
        ),
        (
            "top",
            json!({ "by": "cause", "event": "cpu" }),
            "by: cause needs event wall",
        ),
        (
            "tree",
            json!({ "path": ["no.such"] }),
            "path: no such method in the recording; `top` lists methods, and * stands for anything",
        ),
        (
            "threads_at",
            json!({ "at_s": 11 }),
            "at_s: the recording is 10.000 s long",
        ),
        (
            "requests",
            json!({ "endpoint": "POST *" }),
            "endpoint: no request has such an endpoint; leave it out to list all",
        ),
    ] {
        assert_eq!(refused(tool, arguments), expected);
    }
}

#[test]
fn summary_has_sums_and_losses() {
    let (answer, profile) = (asked("summary", json!({})), full());
    assert_eq!(answer["cpu"]["value"], json!(profile.total().sum));
    assert_eq!(answer["program"], json!("app.Main --port 1"));
    assert_eq!(answer["duration"], json!("10.0 s"));
    assert_eq!(answer["lost"][0]["cause"], json!("no room"));
    assert_eq!(
        (&answer["threads"], &answer["pid"]),
        (&json!(4), &json!(4711))
    );
    let has = json!(["cpu", "wall", "alloc", "live", "lock", "requests"]);
    assert_eq!(answer["has"], has);
    assert_eq!(answer["causes"][0]["name"], json!("running"));
    assert_eq!(answer["files"].as_array().unwrap().len(), 4);
    let notes = answer["notes"].to_string();
    assert!(notes.contains("1 of 4 samples were lost"), "{notes}");
}

#[test]
fn findings_are_those_of_explain() {
    let profile = full();
    let expected = dwell_explain::explain(&profile, &dwell_explain::Options::default());
    assert!(!expected.findings.is_empty());
    let answer = asked("findings", json!({}));
    assert_eq!(answer["rowsInAll"], json!(expected.findings.len()));
    for (row, finding) in answer["rows"]
        .as_array()
        .unwrap()
        .iter()
        .zip(&expected.findings)
    {
        assert_eq!(row["what"], json!(finding.what));
        assert_eq!(row["remedy"], json!(finding.remedy));
    }
    let unknown = refused("findings", json!({ "endpoint": "x" }));
    assert!(unknown.starts_with("endpoint: no sample"), "{unknown}");
}

#[test]
fn top_has_the_sums_of_the_text_report() {
    let (profile, text) = (full(), dwell_report::text(&full()));
    for (by, group) in [
        ("method", GroupBy::Method),
        ("class", GroupBy::Class),
        ("package", GroupBy::Package),
        ("library", GroupBy::Library),
        ("kind", GroupBy::Kind),
    ] {
        let answer = asked("top", json!({ "by": by, "sort": "total" }));
        let mut expected = profile.top(group, |_| true);
        dwell_profile::sort_by_total(&mut expected);
        let expected = expected.iter().map(|row| (row.name.clone(), row.total.sum));
        assert_eq!(rows(&answer, "total"), expected.collect::<Vec<_>>(), "{by}");
    }
    let answer = asked("top", json!({}));
    for row in answer["rows"].as_array().unwrap() {
        let cells = ["self", "total"].map(|of| {
            let number = |name: &str| row[of][name].as_f64().unwrap();
            format!(
                "{:>10} {:>6.1}",
                format!("{:.1} %", number("percent")),
                number("plusMinus")
            )
        });
        let head = cells.join(" ");
        let name = row["name"].as_str().unwrap();
        let is_it = |line: &str| line.starts_with(&head) && line.ends_with(name);
        assert!(text.lines().any(is_it), "{head} {name}: {text}");
    }
}

#[test]
fn top_sums_by_each_dimension() {
    const MS: u64 = 1_000_000;
    for (arguments, expected) in [
        (
            json!({ "by": "line" }),
            &[
                ("app.Json.parse:7", 600 * MS),
                ("app.Work.run:2", 300 * MS),
                ("libjvm.so.WorkerThread::run", 100 * MS),
            ][..],
        ),
        (
            json!({ "by": "line", "sort": "total", "method": "Work.run" }),
            &[
                ("app.Json.parse:7", 600 * MS),
                ("app.Work.run:1", 600 * MS),
                ("app.Work.run:2", 300 * MS),
            ],
        ),
        (
            json!({ "by": "thread" }),
            &[("main", 900 * MS), ("gc", 100 * MS)],
        ),
        (
            json!({ "by": "thread-group", "event": "wall", "idle": true, "thread": "worker*" }),
            &[("worker-*", 2900 * MS)],
        ),
        (
            json!({ "by": "cause", "thread": "worker*" }),
            &[
                ("monitor", 750 * MS),
                ("socket", 100 * MS),
                ("file", 50 * MS),
            ],
        ),
        (
            json!({ "by": "endpoint", "event": "wall" }),
            &[("GET /transfer", 900 * MS)],
        ),
        (json!({ "by": "lock" }), &[("app.Account", 700 * MS)]),
        (
            json!({ "by": "lock", "event": "wall" }),
            &[("app.Account", 750 * MS)],
        ),
        (json!({ "by": "peer" }), &[("10.0.0.1:5432", 100 * MS)]),
        (json!({ "by": "file" }), &[("/var/data.bin", 50 * MS)]),
        (
            json!({ "by": "class", "event": "alloc" }),
            &[("byte[]", 5120)],
        ),
        (
            json!({ "by": "class", "event": "live" }),
            &[("byte[]", 4096)],
        ),
    ] {
        let of = match arguments["by"].as_str().unwrap() {
            "line" | "class" if arguments.get("sort").is_none() => "self",
            _ => "total",
        };
        let answer = asked("top", arguments.clone());
        assert_eq!(rows(&answer, of), named(expected), "{arguments}");
    }
}

#[test]
fn top_reports_time_that_is_in_no_row() {
    let without = asked("top", json!({ "by": "endpoint", "event": "wall" }));
    assert_eq!(without["without"]["value"], json!(1_000_000_000));
    let nothing = asked("top", json!({ "thread": "nobody" }));
    assert_eq!(nothing["rowsInAll"], json!(0));
    assert!(
        nothing["notes"][0]
            .as_str()
            .unwrap()
            .starts_with("nothing in the recording")
    );
}

#[test]
fn pages_together_are_the_whole_table() {
    let whole = asked("top", json!({ "sort": "total" }));
    let all = whole["rows"].as_array().unwrap();
    let mut offset = json!(0);
    let mut seen = Vec::new();
    for _ in 0..all.len() {
        let page = asked(
            "top",
            json!({ "sort": "total", "limit": 1, "offset": offset }),
        );
        assert_eq!(page["rows"].as_array().unwrap().len(), 1);
        seen.push(page["rows"][0].clone());
        offset = page["next"].clone();
    }
    assert_eq!((&seen, offset), (all, Value::Null));
}

/// Depths, names and totals in milliseconds.
fn outline(answer: &Value) -> Vec<String> {
    let rows = answer["rows"].as_array().unwrap().iter();
    rows.map(|row| {
        let ms = row["total"]["value"].as_u64().unwrap() / 1_000_000;
        format!("{} {} {ms}", row["depth"], row["name"].as_str().unwrap())
    })
    .collect()
}

#[test]
fn tree_has_calls_below_a_path() {
    let all = outline(&asked("tree", json!({})));
    let expected = [
        "0 app.Work.run 900",
        "1 app.Json.parse 600",
        "0 libjvm.so.WorkerThread::run 100",
    ];
    assert_eq!(all, expected);
    let below = asked("tree", json!({ "path": ["Work.run"] }));
    assert_eq!(outline(&below), expected[..2]);
    assert_eq!(below["rows"][0]["self"]["value"], json!(300_000_000));
    let deeper = outline(&asked("tree", json!({ "path": ["app.W*", "Json.parse"] })));
    assert_eq!(deeper, ["0 app.Json.parse 600"]);
    let other = asked("tree", json!({ "path": ["Json.parse", "Work.run"] }));
    assert_eq!(outline(&other), [""; 0]);
    let few = asked("tree", json!({ "min_percent": 50, "depth": 1 }));
    assert_eq!(outline(&few), expected[..2]);
    assert_eq!(few["leftOut"], json!(1));
    let by_class = outline(&asked("tree", json!({ "by": "class", "depth": 1 })));
    assert_eq!(by_class[0], "0 app.Work 900");
    let waits = outline(&asked("tree", json!({ "cause": ["monitor"] })));
    assert_eq!(waits, ["0 app.Bank.transfer 750"]);
}

#[test]
fn tree_folds_calls_that_lead_to_one_other() {
    let folded = asked("tree", json!({ "event": "alloc" }));
    assert_eq!(folded["rowsInAll"], json!(1));
    let row = &folded["rows"][0];
    assert_eq!((&row["name"], &row["depth"]), (&json!("byte[]"), &json!(0)));
    assert_eq!(row["through"], json!(["app.Json.parse"]));
    assert_eq!(row["self"]["value"], json!(5120));
    let path = asked("tree", json!({ "event": "alloc", "path": ["Json.parse"] }));
    let rows = path["rows"].as_array().unwrap();
    assert_eq!(
        (&rows[0]["name"], rows.len()),
        (&json!("app.Json.parse"), 2)
    );
    assert_eq!(rows[0].get("self"), None);
    // Of a long chain the innermost calls have names.
    let mut builder = dwell_profile::Builder::default();
    let frames: Vec<u32> = (0..30)
        .map(|number| {
            let method = builder.method("a.A", &format!("m{number}"), "");
            builder.frame(method, 1, dwell_profile::FrameKind::C2)
        })
        .collect();
    let thread = builder.thread("t", 1, 1, false);
    let node = builder.stack(frames);
    builder.sample(dwell_profile::Sample {
        time_ns: 0,
        thread,
        node,
        weight: 1,
        count: 1,
        failure: None,
        context: None,
    });
    let mut deep = Recordings::new(vec![Box::new(Fixed(builder.finish()))]);
    let answer = call_trees::TREE.run(&mut deep, &Map::new()).unwrap();
    let through = answer["rows"][0]["through"].as_array().unwrap();
    assert_eq!(
        (&through[0], &through[1]),
        (&json!("(17 more)"), &json!("a.A.m17"))
    );
    assert_eq!((through.len(), &through[12]), (13, &json!("a.A.m28")));
}

#[test]
fn callers_are_an_inverted_tree() {
    let callers = asked("callers", json!({ "method": "Json.parse" }));
    assert_eq!(
        outline(&callers),
        ["0 app.Json.parse 600", "1 app.Work.run 600"]
    );
    assert_eq!(callers["total"]["value"], json!(1_000_000_000));
    let objects = asked("callers", json!({ "method": "byte[]", "event": "alloc" }));
    assert_eq!(objects["rows"][1]["name"], json!("app.Json.parse"));
    assert_eq!(objects["rows"][1]["total"]["value"], json!(5120));
    assert!(refused("callers", json!({ "method": "x" })).starts_with("method: no such"));
}

#[test]
fn threads_at_shows_causes_and_owners() {
    let answer = asked("threads_at", json!({ "at_s": 0.3, "window_ms": 100 }));
    let rows = answer["rows"].as_array().unwrap();
    let names: Vec<&Value> = rows.iter().map(|row| &row["thread"]).collect();
    assert_eq!(names, ["worker-1", "worker-2"]);
    let activity = &rows[0]["activities"][0];
    assert_eq!(activity["cause"], json!("monitor"));
    assert_eq!(activity["time"]["value"], json!(100_000_000));
    assert_eq!(activity["owner"], json!("main"));
    assert_eq!(activity["ownerPlace"], json!("app.Audit.write"));
    assert_eq!(activity["stack"], json!(["app.Bank.transfer:7"]));
    assert_eq!(activity["endpoint"], json!("GET /transfer"));
    assert_eq!(rows[1]["activities"][0]["cause"], json!(IDLE));
    let start = asked("threads_at", json!({ "at_s": 0, "thread": "main" }));
    assert_eq!(start["rows"][0]["activities"][0]["cause"], json!("running"));
}

#[test]
fn locks_have_owners_and_waiters() {
    let answer = asked("locks", json!({}));
    let expected = full().lock_classes();
    let row = &answer["rows"][0];
    assert_eq!(answer["rowsInAll"], json!(expected.len()));
    assert_eq!(row["name"], json!("app.Account"));
    assert_eq!(row["total"]["value"], json!(expected[0].blocked.sum));
    assert_eq!(row["owners"], json!([{ "name": "main", "percent": 100.0 }]));
    assert_eq!(row["waiters"][0]["name"], json!("app.Bank.transfer"));
    assert_eq!(row["holders"][0]["methods"], json!(["app.Audit.write"]));
    // Without waits for locks, wall-clock samples show them.
    let mut builder = crate::made_profile::builder();
    builder.monitor_waits.clear();
    let mut recordings = Recordings::new(vec![Box::new(Fixed(builder.finish()))]);
    let answer = lock_classes::LOCKS
        .run(&mut recordings, &Map::new())
        .unwrap();
    fits(&answer, &(lock_classes::LOCKS.output)(), "locks");
    assert_eq!(answer["rows"][0]["total"]["value"], json!(750_000_000));
    assert_eq!(
        answer["rows"][0]["ownersAt"][0]["name"],
        json!("app.Audit.write")
    );
}

struct Fixed(Profile);

impl Source for Fixed {
    fn name(&self) -> &str {
        "fixed.jfr"
    }

    fn version(&self) -> Option<u128> {
        None
    }

    fn load(&self) -> Result<Profile, String> {
        Ok(self.0.clone())
    }
}

#[test]
fn requests_have_latencies_and_the_slowest() {
    let answer = asked("requests", json!({ "slowest": 2 }));
    let row = &answer["rows"][0];
    assert_eq!(
        (&row["endpoint"], &row["requests"]),
        (&json!("GET /transfer"), &json!(198))
    );
    assert_eq!(row["p50"]["text"], json!("51.0 ms"));
    assert_eq!(answer["rows"][1]["endpoint"], Value::Null);
    let slowest = answer["slowest"].as_array().unwrap();
    assert_eq!(slowest.len(), 2);
    assert_eq!(slowest[0]["duration"]["ns"], json!(100_000_000));
    assert_eq!(slowest[0]["traceId"], json!(format!("{:032x}", 0xabc)));
    assert_eq!(slowest[0]["causes"][0]["name"], json!("monitor"));
    assert_eq!(
        slowest[0]["causes"][0]["total"]["value"],
        json!(750_000_000)
    );
    assert_eq!(slowest[1]["causes"], json!([]));
}

#[test]
fn diff_has_the_rows_of_the_comparison() {
    let (a, b) = (full(), changed());
    let all = dwell_report::compared(&a, &b, dwell_profile::diff::Per::Second).unwrap();
    let all: Value = serde_json::from_str(&all.json()).unwrap();
    for table in ["self", "total", "causes", "waits"] {
        let answer = asked("diff", json!({ "table": table, "all": true }));
        let expected = all["tables"][table]["rows"].as_array().unwrap();
        let names = |rows: &[Value]| {
            rows.iter()
                .map(|row| row["name"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(answer["rows"].as_array().unwrap()), names(expected));
        assert_eq!(answer["rowsInAll"], json!(expected.len()));
    }
    let significant = asked("diff", json!({}));
    let is_significant = |row: &Value| row["significant"] == json!(true);
    let rows = significant["rows"].as_array().unwrap();
    assert!(
        !rows.is_empty() && rows.iter().all(is_significant),
        "{significant}"
    );
    let per = asked(
        "diff",
        json!({ "per": "sample", "a": "b.jfr", "b": "a.jfr", "all": true }),
    );
    assert_eq!(
        (&per["unit"], &per["a"]),
        (&json!("share"), &json!("b.jfr"))
    );
    let mut alone = Recordings::new(vec![Box::new(Fixed(full()))]);
    let error = changes::DIFF.run(&mut alone, &Map::new()).unwrap_err();
    assert!(
        error.starts_with("diff: the server has one recording"),
        "{error}"
    );
}

#[test]
fn hostile_names_are_inert_and_short_in_all_tools() {
    let file = "hostile.jfr";
    for (tool, arguments) in [
        ("summary", json!({})),
        ("findings", json!({})),
        ("top", json!({})),
        ("top", json!({ "by": "thread" })),
        ("top", json!({ "by": "endpoint", "event": "wall" })),
        ("top", json!({ "by": "lock", "event": "wall" })),
        ("tree", json!({})),
        ("callers", json!({ "method": "*" })),
        ("threads_at", json!({ "at_s": 0 })),
        ("locks", json!({})),
        ("requests", json!({})),
        ("diff", json!({ "b": file, "all": true })),
    ] {
        let mut arguments = arguments;
        if tool != "diff" {
            arguments["file"] = file.into();
        }
        let answer = asked(tool, arguments).to_string();
        // JSON escapes quotes only.
        let is_active = |c: char| c.is_control() || c == '\u{202e}';
        assert!(
            !answer.contains(is_active) && !answer.contains("\\u"),
            "{tool}: {answer}"
        );
        assert!(!answer.contains("\\n"), "{tool}: {answer}");
        let has_name = answer.contains("SYSTEM: ignore");
        assert!(has_name || tool == "callers", "{tool}: {answer}");
        let first = called(tool, json!({ "file": file }))["result"]["content"][0].to_string();
        assert!(!first.contains("SYSTEM"), "{tool}: {first}");
    }
}

#[test]
fn wall_time_has_the_causes_of_the_text_report() {
    let profile = full();
    let answer = asked("top", json!({ "by": "cause", "idle": true }));
    let expected = profile.wall_by(&WallFilter::default(), |wall| wall.cause.to_owned());
    let expected = expected
        .into_iter()
        .map(|(name, weight)| (name, weight.sum));
    assert_eq!(rows(&answer, "total"), expected.collect::<Vec<_>>());
    let text = dwell_report::text(&profile);
    for row in asked("top", json!({ "by": "cause" }))["rows"]
        .as_array()
        .unwrap()
    {
        let total = &row["total"];
        let line = format!(
            "{:>10} {:>6.1} {:>12} {:>10}  {}",
            format!("{:.1} %", total["percent"].as_f64().unwrap()),
            total["plusMinus"].as_f64().unwrap(),
            total["text"].as_str().unwrap(),
            total["samples"].to_string(),
            row["name"].as_str().unwrap(),
        );
        assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    }
}

/// Values that arguments may have, and some that they must not.
fn values() -> impl Strategy<Value = Value> {
    let words = prop_oneof![
        Just("*"),
        Just("app.*"),
        Just("Work.run"),
        Just("worker*"),
        Just("GET *"),
        Just("cpu"),
        Just("wall"),
        Just("alloc"),
        Just("live"),
        Just("lock"),
        Just("cause"),
        Just("line"),
        Just("endpoint"),
        Just("total"),
        Just("waits"),
        Just("b.jfr"),
        Just("hostile.jfr"),
        Just("\u{202e}"),
    ];
    let words = words.prop_map(str::to_owned);
    prop_oneof![
        4 => words.clone().prop_map(Value::from),
        2 => prop::collection::vec(words, 0..3).prop_map(Value::from),
        3 => (0u64..40).prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The reply is one line: an answer as its schema says, or an error.
    #[test]
    fn any_arguments_have_an_answer_or_an_error(
        tool in 0..ALL.len(),
        given in prop::collection::vec((any::<prop::sample::Index>(), values()), 0..4),
    ) {
        let tool = ALL[tool];
        let known = (tool.arguments)();
        let mut arguments = Map::new();
        for (index, value) in given {
            arguments.insert(index.get(&known).name.to_owned(), value);
        }
        let reply = called(tool.name, Value::Object(arguments));
        let result = &reply["result"];
        match result["isError"].as_bool() {
            Some(false) => {
                let answer = &result["structuredContent"];
                fits(answer, &(tool.output)(), tool.name);
                prop_assert!(answer.to_string().len() <= answer::BYTES_MAX);
                let rows = answer["rows"].as_array().unwrap().len() as u64;
                prop_assert!(rows <= answer["rowsInAll"].as_u64().unwrap());
            }
            Some(true) => {
                let text = result["content"][0]["text"].as_str().unwrap();
                prop_assert!(!text.is_empty() && !text.contains(char::is_control));
            }
            None => prop_assert!(false, "{}", reply),
        }
    }
}

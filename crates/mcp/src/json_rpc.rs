//! JSON-RPC 2.0: messages in a line, replies and errors. Knows no method.

use serde_json::{Map, Value, json};

/// Requests of one line.
const BATCH_MAX: usize = 50;

pub(crate) const PARSE_ERROR: i64 = -32_700;
pub(crate) const INVALID_REQUEST: i64 = -32_600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32_601;
pub(crate) const INVALID_PARAMS: i64 = -32_602;

/// Why a request has no result.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: i64,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Failure {
        Failure {
            code,
            message: message.into(),
        }
    }
}

/// The reply to a line: `None` if it has notifications and replies only. `call` executes a method
/// with its parameters.
pub(crate) fn reply(
    line: &[u8],
    mut call: impl FnMut(&str, &Map<String, Value>) -> Result<Value, Failure>,
) -> Option<Value> {
    let message: Value = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(error) => {
            let failure = Failure::new(PARSE_ERROR, format!("not JSON: {error}"));
            return Some(failed(&Value::Null, &failure));
        }
    };
    let Value::Array(batch) = message else {
        return one(&message, &mut call);
    };
    if batch.is_empty() || batch.len() > BATCH_MAX {
        let message = format!("a batch must have 1 to {BATCH_MAX} messages");
        let failure = Failure::new(INVALID_REQUEST, message);
        return Some(failed(&Value::Null, &failure));
    }
    let replies = batch.iter().filter_map(|message| one(message, &mut call));
    let replies: Vec<Value> = replies.collect();
    (!replies.is_empty()).then(|| replies.into())
}

/// The reply to a message.
fn one(
    message: &Value,
    call: &mut impl FnMut(&str, &Map<String, Value>) -> Result<Value, Failure>,
) -> Option<Value> {
    let id = message.get("id");
    let is_reply = message.get("result").is_some() || message.get("error").is_some();
    if message.get("method").is_none() && is_reply {
        return None;
    }
    let known = id.filter(|id| id.is_string() || id.is_number());
    let refuse = |message: &str| {
        let failure = Failure::new(INVALID_REQUEST, message);
        Some(failed(known.unwrap_or(&Value::Null), &failure))
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refuse("not a message of JSON-RPC 2.0: jsonrpc must be \"2.0\"");
    }
    let Some(method) = message.get("method").and_then(Value::as_str) else {
        return refuse("method: must be a string");
    };
    if id.is_some() && known.is_none() {
        return refuse("id: must be a string or a number");
    }
    // A notification has no reply, not even if it is unknown.
    let id = known?;
    let none = Map::new();
    let result = match message.get("params") {
        None | Some(Value::Null) => call(method, &none),
        Some(Value::Object(params)) => call(method, params),
        Some(_) => Err(Failure::new(INVALID_PARAMS, "params: must be an object")),
    };
    Some(match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(failure) => failed(id, &failure),
    })
}

/// The reply to a request that has no result.
pub(crate) fn failed(id: &Value, failure: &Failure) -> Value {
    let error = json!({ "code": failure.code, "message": failure.message });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn answered(line: &str) -> Option<Value> {
        reply(line.as_bytes(), |method, params| match method {
            "sum" => Ok(json!(params.len())),
            _ => Err(Failure::new(METHOD_NOT_FOUND, "no such method")),
        })
    }

    fn code(line: &str) -> Value {
        let reply = answered(line).unwrap();
        json!([reply["error"]["code"], reply["id"]])
    }

    #[test]
    fn requests_have_replies_with_their_id() {
        for (id, params) in [("7", ""), ("\"a\"", r#","params":{}"#)] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"sum"{params}}}"#);
            let reply = answered(&line).unwrap().to_string();
            assert_eq!(
                reply,
                format!(r#"{{"id":{id},"jsonrpc":"2.0","result":0}}"#)
            );
        }
        let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"sum"},
                        {"jsonrpc":"2.0","method":"sum"},
                        {"jsonrpc":"2.0","id":2,"method":"no"}]"#;
        let replies = answered(batch).unwrap();
        assert_eq!(
            (&replies[0]["id"], &replies[1]["id"]),
            (&json!(1), &json!(2))
        );
        assert_eq!(replies.as_array().unwrap().len(), 2);
    }

    #[test]
    fn notifications_and_replies_have_no_reply() {
        for line in [
            r#"{"jsonrpc":"2.0","method":"sum"}"#,
            r#"{"jsonrpc":"2.0","method":"no"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
            r#"[{"jsonrpc":"2.0","method":"sum"}]"#,
        ] {
            assert_eq!(answered(line), None, "{line}");
        }
    }

    #[test]
    fn wrong_messages_have_errors_of_the_protocol() {
        let many = vec!["1"; 51].join(",");
        for (line, expected) in [
            ("{", json!([PARSE_ERROR, null])),
            ("\u{fffd}", json!([PARSE_ERROR, null])),
            ("1", json!([INVALID_REQUEST, null])),
            ("null", json!([INVALID_REQUEST, null])),
            ("[]", json!([INVALID_REQUEST, null])),
            (&format!("[{many}]"), json!([INVALID_REQUEST, null])),
            (r#"{"id":1,"method":"sum"}"#, json!([INVALID_REQUEST, 1])),
            (r#"{"jsonrpc":"2.0","id":1}"#, json!([INVALID_REQUEST, 1])),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"sum"}"#,
                json!([INVALID_REQUEST, null]),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"sum","params":[1]}"#,
                json!([INVALID_PARAMS, 1]),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"no"}"#,
                json!([METHOD_NOT_FOUND, 1]),
            ),
        ] {
            assert_eq!(code(line), expected, "{line}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(code(&deep), json!([PARSE_ERROR, null]));
    }

    proptest! {
        #[test]
        fn any_line_has_a_reply_or_none(line in "[\\[\\]{}:,\"a-z0-9 ]{0,60}") {
            let _ = answered(&line);
        }
    }
}

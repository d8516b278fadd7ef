//! Arguments of tools: their schemas, checks and values. An error is one line that names the
//! argument and what it may be.

use dwell_report::beginning;
use serde_json::{Map, Value, json};

/// Width of a value in an error.
const SHOWN: usize = 60;
/// Entries of a list.
const LIST_MAX: usize = 200;

/// Kind of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// One of some words.
    Word(&'static [&'static str]),
    /// A whole number in a range.
    Whole(u64, u64),
    /// A number in a range.
    Number(f64, f64),
    /// Yes or no.
    Flag,
    /// A recording, by name.
    File,
}

/// An argument of a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) about: &'static str,
    pub(crate) is_required: bool,
}

impl Argument {
    pub(crate) const fn new(name: &'static str, kind: Kind, about: &'static str) -> Argument {
        Argument {
            name,
            kind,
            about,
            is_required: false,
        }
    }

    pub(crate) const fn required(self) -> Argument {
        Argument {
            is_required: true,
            ..self
        }
    }

    fn schema(&self, files: &[String]) -> Value {
        let mut schema = match self.kind {
            Kind::Text => json!({ "type": "string" }),
            Kind::Texts => json!({
                "type": "array", "items": { "type": "string" }, "maxItems": LIST_MAX
            }),
            Kind::Word(words) => json!({ "type": "string", "enum": words }),
            Kind::Whole(least, most) => {
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Kind::Number(least, most) => {
                json!({ "type": "number", "minimum": least, "maximum": most })
            }
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::File => json!({ "type": "string", "enum": files }),
        };
        schema["description"] = self.about.into();
        schema
    }

    fn accepts(&self, value: &Value, files: &[String]) -> bool {
        match self.kind {
            Kind::Text => value.is_string(),
            Kind::Texts => value.as_array().is_some_and(|list| {
                !list.is_empty() && list.len() <= LIST_MAX && list.iter().all(Value::is_string)
            }),
            Kind::Word(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Kind::Whole(least, most) => {
                whole(value).is_some_and(|number| (least..=most).contains(&number))
            }
            Kind::Number(least, most) => value
                .as_f64()
                .is_some_and(|number| (least..=most).contains(&number)),
            Kind::Flag => value.is_boolean(),
            Kind::File => value
                .as_str()
                .is_some_and(|name| files.iter().any(|it| it == name)),
        }
    }

    /// The values that it may have.
    fn wanted(&self, files: &[String]) -> String {
        match self.kind {
            Kind::Text => "a string".to_owned(),
            Kind::Texts => format!("a list of 1 to {LIST_MAX} strings"),
            Kind::Word(words) => format!("one of {}", words.join(", ")),
            Kind::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Number(least, most) => format!("a number from {least} to {most}"),
            Kind::Flag => "true or false".to_owned(),
            Kind::File => format!("one of {}", files.join(", ")),
        }
    }
}

/// A number without a fraction.
fn whole(value: &Value) -> Option<u64> {
    let exact = |number: &f64| *number >= 0.0 && *number < 1e15 && number.fract() == 0.0;
    let of_float = || value.as_f64().filter(exact).map(|number| number as u64);
    value.as_u64().or_else(of_float)
}

/// The schema of a tool's arguments.
pub(crate) fn schema(arguments: &[Argument], files: &[String]) -> Value {
    let properties = arguments.iter();
    let properties = properties.map(|it| (it.name.to_owned(), it.schema(files)));
    let required = arguments.iter().filter(|it| it.is_required);
    let required: Vec<&str> = required.map(|it| it.name).collect();
    json!({
        "type": "object",
        "properties": properties.collect::<Map<String, Value>>(),
        "required": required,
        "additionalProperties": false,
    })
}

/// Values of arguments that fit a tool.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    values: Map<String, Value>,
    files: Vec<String>,
}

impl Arguments {
    /// Checks what a client gave; `null` is no value.
    pub(crate) fn check(
        arguments: &[Argument],
        given: &Map<String, Value>,
        files: &[String],
    ) -> Result<Arguments, String> {
        let mut values = Map::new();
        for (name, value) in given {
            let Some(argument) = arguments.iter().find(|it| it.name == name) else {
                let known: Vec<&str> = arguments.iter().map(|it| it.name).collect();
                let name = beginning(name, SHOWN);
                let known = known.join(", ");
                return Err(format!("{name}: unknown argument; this tool takes {known}"));
            };
            if value.is_null() {
                continue;
            }
            if !argument.accepts(value, files) {
                let wanted = argument.wanted(files);
                let value = beginning(&value.to_string(), SHOWN);
                return Err(format!("{name}: must be {wanted}, not {value}"));
            }
            values.insert(name.clone(), value.clone());
        }
        let mut required = arguments.iter().filter(|it| it.is_required);
        if let Some(missing) = required.find(|it| !values.contains_key(it.name)) {
            let (name, wanted) = (missing.name, missing.wanted(files));
            return Err(format!("{name}: is missing; it must be {wanted}"));
        }
        Ok(Arguments {
            values,
            files: files.to_vec(),
        })
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_str()
    }

    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        let list = self.values.get(name).and_then(Value::as_array);
        list.map_or_else(Vec::new, |list| {
            list.iter().filter_map(Value::as_str).collect()
        })
    }

    pub(crate) fn whole(&self, name: &str) -> Option<u64> {
        whole(self.values.get(name)?)
    }

    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.values.get(name)?.as_f64()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.values.get(name).and_then(Value::as_bool) == Some(true)
    }

    /// The place of a recording among all.
    pub(crate) fn file(&self, name: &str) -> Option<usize> {
        let wanted = self.text(name)?;
        self.files.iter().position(|it| it == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Argument; 7] = [
        Argument::new("text", Kind::Text, "").required(),
        Argument::new("texts", Kind::Texts, ""),
        Argument::new("word", Kind::Word(&["a", "b"]), ""),
        Argument::new("whole", Kind::Whole(1, 20), ""),
        Argument::new("number", Kind::Number(0.0, 2.0), ""),
        Argument::new("flag", Kind::Flag, ""),
        Argument::new("file", Kind::File, ""),
    ];

    fn check(given: Value) -> Result<Arguments, String> {
        let files = ["x.jfr".to_owned(), "y.jfr".to_owned()];
        Arguments::check(&ALL, given.as_object().unwrap(), &files)
    }

    #[test]
    fn values_of_the_right_kind_are_accepted() {
        let all = check(json!({
            "text": "t", "texts": ["a", "b"], "word": "b", "whole": 20.0, "number": 1,
            "flag": true, "file": "y.jfr",
        }));
        let all = all.unwrap();
        assert_eq!((all.text("text"), all.texts("texts").len()), (Some("t"), 2));
        assert_eq!(
            (all.whole("whole"), all.number("number")),
            (Some(20), Some(1.0))
        );
        assert_eq!((all.flag("flag"), all.file("file")), (true, Some(1)));
        let few = check(json!({ "text": "t", "whole": null })).unwrap();
        assert!(
            few.whole("whole").is_none()
                && few.file("file").is_none()
                && few.texts("texts").is_empty()
        );
    }

    #[test]
    fn wrong_values_are_refused_in_one_line() {
        for (given, expected) in [
            (json!({}), "text: is missing; it must be a string"),
            (
                json!({ "text": "t", "more\n": 1 }),
                "more\u{fffd}: unknown argument; this tool takes text, texts, word, whole, \
                 number, flag, file",
            ),
            (json!({ "text": 1 }), "text: must be a string, not 1"),
            (
                json!({ "text": "t", "texts": "a" }),
                "texts: must be a list of 1 to 200 strings, not \"a\"",
            ),
            (
                json!({ "text": "t", "texts": [] }),
                "texts: must be a list of 1 to 200 strings, not []",
            ),
            (
                json!({ "text": "t", "word": "c" }),
                "word: must be one of a, b, not \"c\"",
            ),
            (
                json!({ "text": "t", "whole": 21 }),
                "whole: must be a whole number from 1 to 20, not 21",
            ),
            (
                json!({ "text": "t", "whole": 1.5 }),
                "whole: must be a whole number from 1 to 20, not 1.5",
            ),
            (
                json!({ "text": "t", "number": -1 }),
                "number: must be a number from 0 to 2, not -1",
            ),
            (
                json!({ "text": "t", "flag": "yes" }),
                "flag: must be true or false, not \"yes\"",
            ),
            (
                json!({ "text": "t", "file": "z.jfr" }),
                "file: must be one of x.jfr, y.jfr, not \"z.jfr\"",
            ),
        ] {
            assert_eq!(check(given).unwrap_err(), expected);
        }
        let long = check(json!({ "text": ["x".repeat(5000)] })).unwrap_err();
        assert!(long.len() < 120, "{long}");
    }

    #[test]
    fn schema_lists_all_arguments() {
        let files = ["x.jfr".to_owned()];
        let schema = schema(&ALL, &files);
        assert_eq!(schema["required"], json!(["text"]));
        assert_eq!(schema["properties"].as_object().unwrap().len(), ALL.len());
        assert_eq!(schema["properties"]["file"]["enum"], json!(["x.jfr"]));
        assert_eq!(schema["additionalProperties"], json!(false));
    }
}

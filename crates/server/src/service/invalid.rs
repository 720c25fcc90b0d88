//! Sentences for requests that a parser rejects. They stand here once, for all protocols: a
//! parser's own text has another style, and may quote control characters.

use serde_json::error::Category;
use snowmint_coord::error::json;

use crate::error::Error;

/// Returns the error for JSON that does not parse, or has other content than it must; `what` names
/// it, such as `request body`.
pub(crate) fn json(what: &str, error: &serde_json::Error) -> Error {
    let why = json::reason(error);
    let at = match (error.line(), error.column()) {
        // Parsed from a value, not from a text.
        (0, _) => String::new(),
        (line, column) => format!(" at line {line} column {column}"),
    };
    Error::bad_request(match error.classify() {
        Category::Data => format!("{what} is invalid{at}: {why}; correct it"),
        Category::Syntax | Category::Eof | Category::Io => {
            format!("{what} is not valid JSON{at}: {why}; send valid JSON")
        }
    })
}

/// Returns the error for a query that does not parse, by the parser's reason: it may begin with the
/// name of a parameter.
pub(crate) fn query(cause: &str) -> Error {
    let is_name = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    Error::bad_request(match cause.split_once(": ") {
        Some((name, why)) if is_name(name) => {
            format!("query parameter {name:?}: {}; correct it", json::of_parser(why))
        }
        _ => format!("query is invalid: {}; correct it", json::of_parser(cause)),
    })
}

/// Returns the error for a part of a path that is not UTF-8.
pub(crate) fn path() -> Error {
    Error::bad_request("path is not UTF-8; percent-encode it as UTF-8")
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value};

    use super::*;

    #[test]
    fn rejected_json_is_reported_in_our_sentences() {
        let message = |text: &str| {
            let error = serde_json::from_str::<Map<String, Value>>(text).unwrap_err();
            json("request body", &error).message().to_owned()
        };
        let start = "request body is not valid JSON at line 1 column 5: ";
        let syntax = message(r#"{"a" 1}"#);
        assert!(syntax.starts_with("request body is not valid JSON at line 1 column "), "{syntax}");
        assert!(syntax.ends_with("; send valid JSON"), "{syntax}");
        let cut = message(r#"{"a":"#);
        assert_eq!(cut, format!("{start}text ends inside a value; send valid JSON"));
        let list = message("[]");
        assert!(list.starts_with("request body is invalid at line 1 column "), "{list}");
        assert!(list.ends_with(", expected a map; correct it"), "{list}");
    }

    #[test]
    fn rejected_query_names_its_parameter() {
        for (cause, expected) in [
            (
                "count: invalid digit found in string",
                "query parameter \"count\": expected a whole number; correct it",
            ),
            (
                "cuont: unknown field `cuont`, expected `count`",
                "query parameter \"cuont\": unknown field \"cuont\", expected \"count\"; correct it",
            ),
            ("missing field `id`", "query is invalid: missing field \"id\"; correct it"),
            ("Broken", "query is invalid: broken; correct it"),
        ] {
            assert_eq!(query(cause).message(), expected);
        }
        assert!(!query("a\u{1b}: no").message().contains('\u{1b}'));
    }
}

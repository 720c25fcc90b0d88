//! Reasons of parsers, in the style of our own sentences.

/// Returns why a text is not the expected JSON, without the position.
#[must_use]
pub fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let at = format!(" at line {} column {}", error.line(), error.column());
    of_parser(text.strip_suffix(&at).unwrap_or(&text))
}

/// Returns a parser's reason with our quotation marks, beginning in lower case.
#[must_use]
pub fn of_parser(reason: &str) -> String {
    if let Some(what) = reason.strip_prefix("EOF while parsing ") {
        return format!("text ends inside {what}");
    }
    let mut reason = reason.replace('`', "\"");
    // An abbreviation stays in capitals.
    let is_word = reason.as_bytes().get(1).is_some_and(|byte| !byte.is_ascii_uppercase());
    if let Some(first) = reason.get_mut(..1).filter(|_| is_word) {
        first.make_ascii_lowercase();
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body with one field.
    #[derive(Debug, serde::Deserialize)]
    struct Body {
        #[serde(rename = "length")]
        _length: u64,
    }

    #[test]
    fn reasons_of_parsers_have_our_style() {
        for (json, expected) in [
            ("", "text ends inside a value"),
            ("{", "text ends inside an object"),
            ("{}", r#"missing field "length""#),
            (r#"{"length":"x"}"#, r#"invalid type: string "x", expected u64"#),
        ] {
            let error = serde_json::from_str::<Body>(json).unwrap_err();
            assert_eq!(reason(&error), expected, "{json}");
        }
        assert_eq!(of_parser("Error, too large"), "error, too large");
        assert_eq!(of_parser("URL is `x`"), "URL is \"x\"");
        assert_eq!(of_parser(""), "");
    }
}

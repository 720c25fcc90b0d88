//! Reasons of parsers, in the style of our own sentences.

/// Returns why a text is not the expected JSON, without the position.
#[must_use]
pub fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let at = format!(" at line {} column {}", error.line(), error.column());
    of_parser(text.strip_suffix(&at).unwrap_or(&text))
}

/// Texts of parsers about values, and what they say to users who do not know the language.
const IN_PLAIN_WORDS: [(&str, &str); 8] = [
    ("invalid digit found in string", "expected a whole number"),
    ("cannot parse integer from empty string", "expected a whole number"),
    ("number too large to fit in target type", "number is too high"),
    ("number too small to fit in target type", "number is too low"),
    ("out of range integral type conversion attempted", "number is out of range"),
    ("invalid float literal", "expected a number"),
    ("cannot parse float from empty string", "expected a number"),
    ("provided string was not `true` or `false`", "expected true or false"),
];

/// Returns what a text of the language's own parsers says about a value; `None` for other texts.
#[must_use]
pub fn in_plain_words(reason: &str) -> Option<&'static str> {
    IN_PLAIN_WORDS.iter().find(|(theirs, _)| *theirs == reason).map(|(_, ours)| *ours)
}

/// Returns a parser's reason with our quotation marks, beginning in lower case.
#[must_use]
pub fn of_parser(reason: &str) -> String {
    if let Some(what) = reason.strip_prefix("EOF while parsing ") {
        return format!("text ends inside {what}");
    }
    if let Some(plain) = in_plain_words(reason) {
        return plain.to_owned();
    }
    let mut reason = reason.replace("unknown variant", "unknown word").replace('`', "\"");
    if let Some((before, kind)) = reason.rsplit_once(", expected ") {
        let ours = match kind {
            "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
            "f32" | "f64" => "a number",
            "a boolean" => "true or false",
            "a string" => "a text",
            other => other,
        };
        reason = format!("{before}, expected {ours}");
    }
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
            (r#"{"length":"x"}"#, r#"invalid type: string "x", expected a whole number"#),
        ] {
            let error = serde_json::from_str::<Body>(json).unwrap_err();
            assert_eq!(reason(&error), expected, "{json}");
        }
        assert_eq!(of_parser("Error, too large"), "error, too large");
        assert_eq!(of_parser("URL is `x`"), "URL is \"x\"");
        assert_eq!(of_parser(""), "");
        // Those of the language, as it has them.
        let whole = "x".parse::<u8>().unwrap_err().to_string();
        assert_eq!(of_parser(&whole), "expected a whole number");
        assert_eq!(of_parser(&"".parse::<u8>().unwrap_err().to_string()), of_parser(&whole));
        assert_eq!(of_parser(&"256".parse::<u8>().unwrap_err().to_string()), "number is too high");
        assert_eq!(of_parser(&"-129".parse::<i8>().unwrap_err().to_string()), "number is too low");
        let range = u8::try_from(256_u16).unwrap_err().to_string();
        assert_eq!(of_parser(&range), "number is out of range");
        assert_eq!(of_parser(&"x".parse::<f64>().unwrap_err().to_string()), "expected a number");
        assert_eq!(of_parser(&"".parse::<f64>().unwrap_err().to_string()), "expected a number");
        let flag = "x".parse::<bool>().unwrap_err().to_string();
        assert_eq!(of_parser(&flag), "expected true or false");
        let word = of_parser("unknown variant `x`, expected `a` or `b`");
        assert_eq!(word, r#"unknown word "x", expected "a" or "b""#);
    }
}

//! Words that the glossary gave up for plainer ones.

use super::texts;

/// This file, which lists the words.
const LIST: &str = "crates/testkit/tests/house/words.rs";

/// Words and phrases that have another term in docs/reference/glossary.md, or that name no actor.
const BANNED: [&str; 61] = [
    "nobody",
    "somebody",
    "everybody",
    "anybody",
    "whoever",
    "whom",
    "anew",
    "in vain",
    "at hand",
    "door",
    "doors",
    "stray",
    "strays",
    "orphan",
    "orphans",
    "voices",
    "afar",
    "beside",
    "around",
    "let go",
    "lets go",
    "way out",
    "ways out",
    "patience",
    "refusal",
    "refusals",
    "answer",
    "answers",
    "answered",
    "lend",
    "lends",
    "borrower",
    "borrowers",
    "mend",
    "mends",
    "mended",
    "go on",
    "goes on",
    "told",
    "said",
    "went back",
    "put back",
    "stock",
    "shall",
    "pass on",
    "passes on",
    "passed on",
    "so many",
    "so much",
    "as it is",
    "as a rule",
    "held against",
    "surroundings",
    "owed",
    "is no id",
    "is no name",
    "is no text",
    "is no segment",
    "is no count",
    "is no level",
    "is no url",
];

/// Uses that stay: the file (`*`: any), the text in the line, and the reason.
const KEPT: [(&str, &str, &str); 14] = [
    ("*", "passed_on_max", "key of the configuration"),
    ("crates/server/src/cluster/peers.rs", "snowmint-passed-on", "header between servers"),
    ("crates/server/tests/server/owners.rs", "snowmint-passed-on", "header between servers"),
    ("crates/server/tests/server/servers.rs", "snowmint-passed-on", "header between servers"),
    ("crates/server/src/http/openapi/mod.rs", "Refusal", "name of a response in openapi.json"),
    ("crates/server/src/access/caller.rs", "\"nobody\"", "value of who= in the audit trail"),
    ("crates/server/src/trail.rs", "nobody at network", "value of who= in the audit trail"),
    ("crates/cli/tests/end_to_end/security/audit.rs", "who=nobody at", "value of the audit trail"),
    ("docs/reference/access.md", "who=nobody at", "value of the audit trail"),
    ("crates/cli/src/cmd/bench/report.rs", "answers", "keys of bench --json"),
    ("crates/cli/src/cmd/bench/observations.rs", "no_answer", "code in bench --json"),
    ("crates/cli/tests/commands/bench.rs", "/answers", "key of bench --json"),
    ("docs/reference/commands.md", "`answers", "keys of bench --json"),
    ("crates/server/console/api.js", "no_answer", "code of an error without a response"),
];

/// A word of a text, or of a name in it: `is_taken` and `IsTaken` have two.
struct Word<'t> {
    text: &'t str,
    line: usize,
    /// Whether it can continue a phrase: nothing that ends one stands before it.
    is_joined: bool,
}

/// Returns whether a word of a CamelCase name begins at this letter, which follows another one.
fn is_hump(bytes: &[u8], at: usize) -> bool {
    let is_lower = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_lowercase);
    bytes[at].is_ascii_uppercase() && (is_lower(at - 1) || is_lower(at + 1))
}

fn words(text: &str) -> Vec<Word<'_>> {
    // Marks within a name or a comment, also at the begin of its next line.
    const JOINS: &[u8] = b"_-/!#*`\\";
    let bytes = text.as_bytes();
    let (mut found, mut line, mut is_joined, mut at) = (Vec::new(), 1, false, 0);
    while at < bytes.len() {
        let (start, byte) = (at, bytes[at]);
        at += 1;
        if byte.is_ascii_alphabetic() {
            while at < bytes.len() && bytes[at].is_ascii_alphabetic() && !is_hump(bytes, at) {
                at += 1;
            }
            found.push(Word { text: &text[start..at], line, is_joined });
            is_joined = true;
        } else {
            line += usize::from(byte == b'\n');
            is_joined &= byte.is_ascii_whitespace() || JOINS.contains(&byte);
            // The letter of an escape, such as \n, belongs to no word.
            let is_escape = byte == b'\\' && bytes.get(at).is_some_and(u8::is_ascii_lowercase);
            at += usize::from(is_escape);
        }
    }
    found
}

/// The banned phrases by their first two letters: the texts have a million words.
struct Phrases(Vec<Vec<&'static str>>);

impl Phrases {
    fn new() -> Self {
        let mut by_letters = vec![Vec::new(); 26 * 26];
        for phrase in BANNED {
            by_letters[row(phrase).unwrap()].push(phrase);
        }
        Self(by_letters)
    }

    /// Returns the banned phrases in a text, with their lines.
    fn find_in(&self, text: &str) -> Vec<(usize, &'static str)> {
        let words = words(text);
        let mut found = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let Some(row) = row(word.text) else { continue };
            for phrase in &self.0[row] {
                if begins(phrase, &words[at..]) {
                    found.push((word.line, *phrase));
                }
            }
        }
        found
    }
}

/// Returns the row of words with the same first two letters; `None` for a single letter.
fn row(word: &str) -> Option<usize> {
    let letter = |byte: &u8| usize::from(byte.to_ascii_lowercase() - b'a');
    match word.as_bytes() {
        [first, second, ..] => Some(letter(first) * 26 + letter(second)),
        _ => None,
    }
}

/// Returns whether words begin with a phrase.
fn begins(phrase: &str, words: &[Word<'_>]) -> bool {
    let mut parts = phrase.split(' ').enumerate();
    parts.all(|(nth, part)| {
        let is_part = |word: &Word<'_>| word.text.eq_ignore_ascii_case(part);
        words.get(nth).is_some_and(|word| is_part(word) && (nth == 0 || word.is_joined))
    })
}

#[test]
fn banned_words_are_gone() {
    let phrases = Phrases::new();
    let (mut hits, mut used) = (Vec::new(), [false; KEPT.len()]);
    for (file, text) in texts().into_iter().filter(|(file, _)| file != LIST) {
        for (at, phrase) in phrases.find_in(&text) {
            let line = text.lines().nth(at - 1).unwrap();
            let row = KEPT.iter().position(|(kept_in, kept, _)| {
                let is_here = [file.as_str(), "*"].contains(kept_in) && line.contains(*kept);
                is_here && phrases.find_in(kept).iter().any(|(_, found)| *found == phrase)
            });
            match row {
                Some(row) => used[row] = true,
                None => hits.push(format!("{file}:{at}: {phrase}")),
            }
        }
    }
    let unused = KEPT.iter().zip(used).filter(|(_, is_used)| !is_used);
    hits.extend(unused.map(|((file, text, _), _)| format!("{file}: has no {text:?} any more")));
    assert!(hits.is_empty(), "\n{}", hits.join("\n"));
}

#[test]
fn banned_words_are_found_in_names_and_phrases() {
    let phrases = Phrases::new();
    let cases: [(&str, &[(usize, &str)]); 5] = [
        ("let is_door = Doors::HTTPDoor;", &[(1, "door"), (1, "doors"), (1, "door")]),
        ("a\n// It goes\n    // on", &[(2, "goes on")]),
        (r#""\nSaid" put-back"#, &[(1, "said"), (1, "put back")]),
        ("NOBODY_IS", &[(1, "nobody")]),
        ("a workaround indoors: go; on, so. Many", &[]),
    ];
    for (text, wanted) in cases {
        assert_eq!(phrases.find_in(text), wanted, "{text}");
    }
}

//! The length of sentences, and the begins of comments.

use super::{WORDS_MAX, before_tests, declared, quoted, texts};

/// Returns a text without code spans, the targets of links, and tags.
fn plain(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['`', ']', '<']) {
        plain.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let is_tag = after.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
        let end = match &rest[at..=at] {
            "`" => Some('`'),
            "]" if after.starts_with('(') => Some(')'),
            "<" if is_tag => Some('>'),
            _ => None,
        };
        rest = end.and_then(|end| after.split_once(end)).map_or(after, |(_, after)| after);
    }
    plain.push_str(rest);
    plain
}

fn ends_sentence(word: &str) -> bool {
    let word = word.trim_end_matches(['*', '_', ')', '"', '\'']);
    // A list of links has dots between them.
    word.ends_with(['.', '?', '!', '·']) && !word.ends_with("e.g.") && !word.ends_with("i.e.")
}

/// Returns the sentences with more words than allowed.
fn long_sentences(prose: &str) -> Vec<String> {
    let words: Vec<&str> = prose.split_whitespace().collect();
    let is_word = |word: &&&str| word.contains(char::is_alphanumeric);
    words
        .split_inclusive(|word| ends_sentence(word))
        .filter(|sentence| sentence.iter().filter(is_word).count() > WORDS_MAX)
        .map(|sentence| sentence.join(" "))
        .collect()
}

/// Returns the paragraphs, list items and table cells of a Markdown text, with their lines. It
/// leaves out blocks of code.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    let mut is_code = false;
    for (at, line) in text.lines().enumerate() {
        let content = line.trim_start();
        let is_fence = content.starts_with("```");
        is_code ^= is_fence;
        let is_indented = open.is_none() && line.starts_with("    ");
        let is_row = content.starts_with('|');
        let number = content.split_once(". ").map_or("", |(number, _)| number);
        let is_item = ["- ", "* ", "#"].iter().any(|mark| content.starts_with(*mark))
            || !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
        let is_prose = !is_code && !is_fence && !is_indented && !is_row && !content.is_empty();
        if !is_prose || is_item {
            found.extend(open.take());
        }
        if is_row && !is_code {
            found.extend(content.split('|').map(|cell| (at + 1, cell.to_owned())));
        } else if is_prose {
            let (_, prose) = open.get_or_insert_with(|| (at + 1, String::new()));
            prose.push_str(content);
            prose.push(' ');
        }
    }
    found.extend(open);
    found
}

/// Returns the text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    let comment = comment.strip_prefix(['/', '!']).unwrap_or(comment);
    Some(comment.strip_prefix(' ').unwrap_or(comment))
}

/// Returns the comments of a source as a text with the same lines.
fn comments(source: &str) -> String {
    let lines: Vec<&str> = source.lines().map(|line| comment(line).unwrap_or_default()).collect();
    lines.join("\n")
}

/// Returns the code after a character literal or a lifetime, which begins `code`.
pub(super) fn after_quote(code: &str) -> &str {
    let code = &code[1..];
    if let Some(escape) = code.strip_prefix('\\') {
        let closing = escape.get(1..).and_then(|rest| rest.split_once('\''));
        return closing.map_or("", |(_, rest)| rest);
    }
    let mut letters = code.chars();
    letters.next();
    letters.as_str().strip_prefix('\'').unwrap_or(code)
}

/// Returns the string literals of a source, with their lines. Raw strings hold data, so they are
/// left out.
fn literals(source: &str) -> Vec<(usize, String)> {
    let (mut found, mut rest) = (Vec::new(), source);
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let (before, code) = rest.split_at(at);
        let bare = before.trim_end_matches('#');
        rest = if let Some(comment) = code.strip_prefix("//") {
            comment.find('\n').map_or("", |end| &comment[end..])
        } else if let Some(after) = code.strip_prefix('/') {
            after
        } else if code.starts_with('\'') {
            after_quote(code)
        } else if bare.ends_with('r') {
            let close = format!("\"{}", "#".repeat(before.len() - bare.len()));
            code[1..].split_once(&close).map_or("", |(_, rest)| rest)
        } else {
            let Some((text, rest)) = quoted(code) else { break };
            let line = source[..source.len() - code.len()].matches('\n').count() + 1;
            found.push((line, text));
            rest
        };
    }
    found
}

/// Returns the text of a file that holds errors and messages of the product.
fn product<'t>(file: &str, text: &'t str) -> Option<&'t str> {
    let is_source = file.starts_with("crates/") && file.contains("/src/") && file.ends_with(".rs");
    let is_test = file.ends_with("/tests.rs") || file.contains("/tests/");
    (is_source && !is_test).then(|| before_tests(text))
}

/// Sentences of documents, comments and messages.
#[test]
fn sentences_are_short() {
    let mut hits = Vec::new();
    for (file, text) in texts() {
        let prose = match file.rsplit_once('.') {
            Some((_, "md")) => paragraphs(&text),
            Some((_, "rs" | "js" | "proto")) => paragraphs(&comments(&text)),
            _ => continue,
        };
        let prose = prose.iter().map(|(at, prose)| (*at, plain(prose)));
        let messages = product(&file, &text).map(literals).unwrap_or_default();
        for (at, text) in prose.chain(messages) {
            for sentence in text.lines().flat_map(long_sentences) {
                hits.push(format!("{file}:{at}: {sentence}"));
            }
        }
    }
    assert!(hits.is_empty(), "split sentences over {WORDS_MAX} words:\n{}", hits.join("\n"));
}

/// A literal over two lines keeps the second one's indentation unless the first ends with a
/// backslash.
#[test]
fn messages_have_no_indentation_of_the_code() {
    // Tables in messages have narrower gaps.
    let indentation = " ".repeat(12);
    let mut hits = Vec::new();
    for (file, text) in texts() {
        for (at, text) in product(&file, &text).map(literals).unwrap_or_default() {
            if text.lines().any(|line| line.trim_start().contains(&indentation)) {
                hits.push(format!("{file}:{at}: {text}"));
            }
        }
    }
    assert!(hits.is_empty(), "end these lines with a backslash:\n{}", hits.join("\n"));
}

#[test]
fn long_sentences_are_found_in_each_place() {
    let (short, long) = ("word ".repeat(WORDS_MAX - 1), "word ".repeat(WORDS_MAX));
    let long = format!("One {long}two.");
    let texts = [
        format!("{short}.\n\n- {long}\n\n    {long}"),
        format!("```\n{long}\n```\n{short}\n{long}"),
        format!("| {short} | {long} |"),
    ];
    for text in &texts {
        let found: Vec<_> =
            paragraphs(text).iter().flat_map(|(_, it)| long_sentences(it)).collect();
        assert_eq!(found.len(), 1, "{text}: {found:?}");
    }
    let source =
        format!("/// {long}\nlet a = '\\'';\nfn b<'a>() {{\n    c(\"{long}\", r#\"\"{long}\"#);");
    assert_eq!(paragraphs(&comments(&source))[0], (1, format!("{long} ")));
    assert_eq!(literals(&source), [(4, long.clone())]);
    assert_eq!(plain("a `b c` [d](e f) <a id=\"g\">, h < i"), "a  [d , h  i");
    assert_eq!(long_sentences(&format!("{short}e.g. x")).len(), 1);
}

/// Words that begin no comment: its subject is a noun, or a verb whose subject is the function.
const NO_SUBJECTS: [&str; 10] =
    ["What", "Who", "Whose", "Which", "Why", "How", "Where", "Or", "Of", "By"];

/// Returns the first word of each paragraph of a source's documentation, with its line.
fn first_words(source: &str) -> Vec<(usize, &str)> {
    let (mut found, mut is_inside) = (Vec::new(), false);
    for (at, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let documentation = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let word = documentation.and_then(|text| text.split_whitespace().next());
        found.extend(word.filter(|_| !is_inside).map(|word| (at + 1, word)));
        is_inside = word.is_some();
    }
    found
}

/// Names of functions do the same.
#[test]
fn comments_begin_with_their_subject() {
    let mut hits = Vec::new();
    for (file, text) in texts().iter().filter(|(file, _)| file.ends_with(".rs")) {
        for (at, word) in first_words(text) {
            if NO_SUBJECTS.contains(&word) {
                hits.push(format!("{file}:{at}: {word}"));
            }
        }
        for (at, line) in text.lines().enumerate() {
            let name = declared(line).unwrap_or_default();
            if ["what", "who", "whose"].contains(&name.split('_').next().unwrap_or_default()) {
                hits.push(format!("{file}:{}: {name}", at + 1));
            }
        }
    }
    assert!(hits.is_empty(), "\n{}", hits.join("\n"));
    let words = first_words("//! Rules\n//! of it\n\n/// What\nlet a;\n/// Returns\n///\n/// By");
    assert_eq!(words, [(1, "Rules"), (4, "What"), (6, "Returns"), (8, "By")]);
}

//! Texts of the pages: links, cells of tables, and lines of a bounded length.

use std::fmt::Write as _;

/// Returns a text with links to the pages that it names as `docs/FOLDER/NAME.md`.
pub(super) fn linked(text: &str) -> String {
    let mut linked = String::new();
    for word in text.split_inclusive(char::is_whitespace) {
        let Some((before, path)) = word.split_once("docs/") else {
            linked.push_str(&word.replace('|', "\\|"));
            continue;
        };
        let is_path = |c: char| c.is_ascii_alphanumeric() || "-_.#/".contains(c);
        let end = path.find(|c| !is_path(c)).unwrap_or(path.len());
        let end = path[..end].trim_end_matches('.').len();
        let target = &path[..end];
        let file = target.split('#').next().unwrap_or_default();
        let name = file.rsplit('/').next().unwrap_or_default();
        // Seen from docs/reference.
        let target = match target.strip_prefix("reference/") {
            Some(here) => here.to_owned(),
            None => format!("../{target}"),
        };
        let _ = write!(linked, "{before}[{name}]({target}){}", &path[end..]);
    }
    linked
}

/// Returns paragraphs in lines of at most 120 characters.
pub(super) fn filled(text: &str) -> String {
    let fill = |paragraph: &str| {
        let (mut filled, mut width) = (String::new(), 0);
        for word in paragraph.split_whitespace() {
            let len = word.chars().count();
            let (space, before) = match width {
                0 => ("", 0),
                _ if width + 1 + len > 120 => ("\n", 0),
                _ => (" ", width + 1),
            };
            width = before + len;
            filled.push_str(space);
            filled.push_str(word);
        }
        filled + "\n"
    };
    text.split("\n\n").map(fill).collect::<Vec<_>>().join("\n")
}

/// Returns words as code, with commas.
pub(super) fn coded<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    words.into_iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

#[test]
fn linked_names_the_page_and_leads_to_it() {
    for (text, expected) in [
        (
            "how (docs/reference/access.md#shares). Next",
            "how ([access.md](access.md#shares)). Next",
        ),
        ("More: docs/how-to/size-it.md.", "More: [size-it.md](../how-to/size-it.md)."),
        ("a|b", "a\\|b"),
    ] {
        assert_eq!(linked(text), expected);
    }
}

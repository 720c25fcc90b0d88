//! Number of words that people wrote in README.md and `docs/`: each must be read, and kept true.

use super::texts;

/// Most words of README.md and `docs/` together.
const ALL_WORDS_MAX: usize = 32_000;

/// Most words of README.md outside its tables, and with them: two minutes of reading.
const README_WORDS_MAX: [usize; 2] = [560, 800];

/// Mark of a page that is made from the code.
const MADE: &str = "<!-- Made from";

/// Returns a text without what stands from each `open` to the next `close`.
fn without(text: &str, open: &str, close: &str) -> String {
    let (mut left, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(open) {
        left.push_str(before);
        left.push(' ');
        rest = after.split_once(close).map_or("", |(_, after)| after);
    }
    left + rest
}

/// Returns the lines of a Markdown text without blocks of code, comments and targets of links.
fn visible(text: &str) -> String {
    let mut is_code = false;
    let mut lines = String::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if !is_code && !is_fence {
            lines.push_str(line);
            lines.push('\n');
        }
    }
    without(&without(&lines, "<!--", "-->"), "](", ")")
}

/// Returns how many words a text has; marks alone, such as those of a table, are no words.
fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

#[test]
fn documents_have_at_most_the_allowed_words() {
    let is_counted = |file: &str, text: &str| {
        let is_page = file == "README.md" || file.starts_with("docs/") && file.ends_with(".md");
        is_page && !text.contains(MADE)
    };
    let pages = texts().into_iter().filter(|(file, text)| is_counted(file, text));
    let mut counts: Vec<_> = pages.map(|(file, text)| (words(&visible(&text)), file)).collect();
    counts.sort_unstable();
    let all: usize = counts.iter().map(|(count, _)| count).sum();
    let longest = &counts[counts.len() - 5..];
    assert!(
        all <= ALL_WORDS_MAX,
        "{all} words exceed {ALL_WORDS_MAX}: shorten a page, such as one of the longest: {longest:?}"
    );
    assert!(counts.len() > 40, "found only {} pages", counts.len());
}

#[test]
fn readme_is_read_in_two_minutes() {
    let readme = std::fs::read_to_string(super::root().join("README.md")).unwrap();
    let visible = visible(&readme);
    let prose: Vec<&str> = visible.lines().filter(|line| !line.starts_with('|')).collect();
    for (text, most) in [prose.join("\n"), visible.clone()].iter().zip(README_WORDS_MAX) {
        let count = words(text);
        assert!(count <= most, "{count} words exceed {most}");
    }
}

#[test]
fn words_are_counted_without_code_and_targets() {
    let text = "# One\n\n<!-- not run:\nno -->\n```sh\nno\n```\n- [two](no no) | --- | `three`.\n  \
                ```text\n  no\n  ```\n*four* <five> … 6";
    assert_eq!(words(&visible(text)), 6);
}

//! Counts with their nouns.

use std::fmt::Display;

use indicatif::HumanCount;

/// Returns a count with its noun: `1 source`, `2 sources`.
pub(crate) fn counted(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    let end = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{end}")
}

/// Returns the form of a word that follows a count: `has` for one, `have` for all others.
pub(crate) const fn after<'w>(count: u64, one: &'w str, others: &'w str) -> &'w str {
    if count == 1 { one } else { others }
}

/// Returns a number with a comma before each three digits.
pub(crate) fn grouped(number: u64) -> String {
    HumanCount(number).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        let shown = [0, 999, 1_000, 12_345_678].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "12,345,678"]);
    }

    #[test]
    fn only_one_is_singular() {
        for (count, text) in [("0", "0 IDs"), ("1", "1 ID"), ("1,000", "1,000 IDs")] {
            assert_eq!(counted(count, "ID"), text);
        }
        assert_eq!([0, 1, 2].map(|count| after(count, "has", "have")), ["have", "has", "have"]);
    }
}

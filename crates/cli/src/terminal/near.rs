//! Near words, for "did you mean".

use strsim::levenshtein;

/// Most letters in which a suggestion differs from the word.
const DISTANCE_MAX: usize = 3;

/// Returns the known words that typing errors turn into `word`, the nearest first.
pub(crate) fn near<K: AsRef<str> + Ord>(word: &str, known: impl IntoIterator<Item = K>) -> Vec<K> {
    let distances = known.into_iter().map(|known| (levenshtein(known.as_ref(), word), known));
    let mut near: Vec<(usize, K)> =
        distances.filter(|(distance, _)| *distance <= DISTANCE_MAX).collect();
    near.sort();
    near.into_iter().map(|(_, known)| known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_letters() {
        for (one, other, wanted) in [
            ("", "", 0),
            ("http", "htpp", 1),
            ("resp", "res", 1),
            ("a", "xyz", 3),
            ("server.http", "server.htttp", 1),
        ] {
            assert_eq!(levenshtein(one, other), wanted, "{one} {other}");
            assert_eq!(levenshtein(other, one), wanted, "{other} {one}");
        }
    }
}

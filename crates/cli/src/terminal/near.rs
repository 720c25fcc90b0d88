//! Near words, for "did you mean".

/// Most letters in which a suggestion differs from the word.
const DISTANCE_MAX: usize = 3;

/// Returns the known words that typing errors turn into `word`, the nearest first.
pub(crate) fn near<K: AsRef<str> + Ord>(word: &str, known: impl IntoIterator<Item = K>) -> Vec<K> {
    let distances = known.into_iter().map(|known| (distance(known.as_ref(), word), known));
    let mut near: Vec<(usize, K)> =
        distances.filter(|(distance, _)| *distance <= DISTANCE_MAX).collect();
    near.sort();
    near.into_iter().map(|(_, known)| known).collect()
}

/// Returns the number of letters to change, add or remove to turn one word into the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for (j, b) in other.iter().enumerate() {
            let (left, above) = (row[j], row[j + 1]);
            row[j + 1] = (diagonal + usize::from(a != *b)).min(left + 1).min(above + 1);
            diagonal = above;
        }
    }
    row.last().copied().unwrap_or(0)
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
            assert_eq!(distance(one, other), wanted, "{one} {other}");
            assert_eq!(distance(other, one), wanted, "{other} {one}");
        }
    }
}

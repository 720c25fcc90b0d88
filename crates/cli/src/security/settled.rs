//! Files that are replaced while they are being read.

/// Content of files that are read repeatedly. It counts once it was read twice in a row: a file
/// that is being written reads as a half or as nothing, which would remove valid tokens.
pub(super) struct Settled<T> {
    /// Content that counts.
    current: T,
    /// Content that was read last.
    latest: T,
}

impl<T: Clone + PartialEq> Settled<T> {
    /// Starts with the first content, which counts at once.
    pub(super) fn new(first: T) -> Self {
        Self { latest: first.clone(), current: first }
    }

    /// Takes the content read now, and returns it if it counts from now on.
    pub(super) fn read(&mut self, now: T) -> Option<T> {
        let is_settled = now == self.latest;
        self.latest = now.clone();
        if !is_settled || now == self.current {
            return None;
        }
        self.current = now.clone();
        Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_counts_once_read_twice() {
        let mut file = Settled::new("old");
        let read_values: Vec<_> = ["old", "", "new", "new", "new", "", "new", "ol", "old", "old"]
            .into_iter()
            .map(|now| file.read(now).unwrap_or("-"))
            .collect();
        assert_eq!(read_values, ["-", "-", "-", "new", "-", "-", "-", "-", "-", "old"]);
    }
}

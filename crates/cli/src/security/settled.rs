//! Files that are replaced while they are looked at.

/// What was read of files, again and again. It counts when it was read twice in a row: what is read while somebody
/// writes is half of it, or nothing, and would take valid tokens away.
#[derive(Debug)]
pub(super) struct Settled<T> {
    /// What counts.
    current: T,
    /// What was read last.
    latest: T,
}

impl<T: Clone + PartialEq> Settled<T> {
    /// What was read first counts.
    pub(super) fn new(first: T) -> Self {
        Self { latest: first.clone(), current: first }
    }

    /// What was read now, if it counts from now on.
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
    fn what_was_read_twice_counts() {
        let mut file = Settled::new("old");
        let told: Vec<_> = ["old", "", "new", "new", "new", "", "new", "ol", "old", "old"]
            .into_iter()
            .map(|now| file.read(now).unwrap_or("-"))
            .collect();
        assert_eq!(told, ["-", "-", "-", "new", "-", "-", "-", "-", "-", "old"]);
    }
}

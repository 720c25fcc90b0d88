//! Starts of a store, as stored.

/// Maximum number of starts kept. A process that returns after more has only the count of writes to
/// compare.
pub const STARTS_MAX: usize = 1024;

/// The starts, newest last, each with the count of writes after the step that left it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Starts(Vec<(u64, String)>);

impl Starts {
    /// Reads the stored form: entries `COUNT-START`, separated by blanks. The step that wrote it
    /// ended at the count `written`; the newest entry has no count where the step did not know it
    /// yet.
    ///
    /// # Errors
    /// The defect of the text.
    pub fn read(text: &str, written: u64) -> Result<Self, String> {
        let mut starts = Vec::new();
        for entry in text.split_ascii_whitespace() {
            let wrong = || format!("a start of its history is {entry:?}");
            let (count, start) = entry.split_once('-').ok_or_else(wrong)?;
            let count =
                if count.is_empty() { written } else { count.parse().map_err(|_| wrong())? };
            starts.push((count, start.to_owned()));
        }
        Ok(Self(starts))
    }

    /// Returns the stored form with one more start. `from` is the count from which on nothing of
    /// the earlier history was kept, where it is known; otherwise it is the count of the step that
    /// writes the form.
    #[must_use]
    pub fn with(&self, start: &str, from: Option<u64>) -> String {
        let too_many = (self.0.len() + 1).saturating_sub(STARTS_MAX);
        let kept = self.0.iter().skip(too_many).map(|(count, start)| format!("{count}-{start}"));
        let from = from.map_or_else(String::new, |count| count.to_string());
        let mut entries: Vec<_> = kept.collect();
        entries.push(format!("{from}-{start}"));
        entries.join(" ")
    }

    /// Returns whether a store with these starts has everything that was written up to the count
    /// `writes`, when `start` was the newest start (empty: none yet).
    #[must_use]
    pub fn have(&self, start: &str, writes: u64) -> bool {
        let Self(starts) = self;
        let next = match starts.iter().position(|(_, known)| known == start) {
            Some(at) => starts.get(at + 1),
            None if start.is_empty() => starts.first(),
            // The start is so old that it may have been dropped.
            None => {
                return starts.len() >= STARTS_MAX
                    && starts.first().is_some_and(|(oldest, _)| *oldest > writes);
            }
        };
        let dropped = start.is_empty() && starts.len() >= STARTS_MAX;
        dropped || next.is_none_or(|(count, _)| *count > writes)
    }
}

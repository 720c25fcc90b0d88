//! Numbers handed out by other systems, read from their tables.

use super::tables::TextRow;

/// Highest mark that is accepted as sensible: 2^62, half of all numbers.
pub const HIGHEST_MAX: u64 = 1 << 62;

/// State of one key of another system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// The other system's name of the key.
    pub key: String,
    /// State of its numbers.
    pub state: SequenceState,
}

/// State of the numbers of a key of another system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequenceState {
    /// Still counting; these numbers were handed out.
    At(Numbers),
    /// Cut over: the other system hands out no more numbers.
    Moved,
    /// A row that makes no sense, with the reason.
    Senseless(String),
}

/// Mark to which nothing can be added: the database rejects the next step of any server that still
/// allocates.
pub(super) const END: i64 = i64::MAX;
/// Prefix of a renamed key, which no server of the other system finds any more.
pub(super) const RENAMED: &str = "moved:";
/// Length of `biz_type` in Tinyid's schema, in characters. A longer name is an error, or lax
/// servers cut it off; the row would then be neither open nor recognised as cut over.
pub(super) const BIZ_TYPE_CHARS: usize = 63;

/// The numbers of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Highest number that may have been handed out: all numbers that servers and clients hold are
    /// not above it.
    pub highest: u64,
    /// Count of numbers taken at once, if the table has it.
    pub step: Option<u64>,
    /// First number of the key's stripe.
    pub offset: u64,
    /// Distance from a number to the next.
    pub increment: u64,
}

/// Table and columns of a system.
#[derive(Debug)]
pub(super) struct TableShape {
    pub(super) table: &'static str,
    pub(super) key: &'static str,
    pub(super) mark: &'static str,
    /// Whether the mark itself was handed out, or is the next number.
    pub(super) mark_is_used: bool,
    /// Whether a cutover renames the key, because the system's servers add to the mark themselves,
    /// or sets a mark to which nothing can be added.
    pub(super) ends_by_name: bool,
    /// Column that each step also increments.
    pub(super) version: Option<&'static str>,
    pub(super) step: Option<&'static str>,
    /// Columns of the distance of numbers, and of the remainder that each number leaves when
    /// divided by it.
    pub(super) stripe: Option<[&'static str; 2]>,
}

impl TableShape {
    /// Returns the columns in the order in which [`TableShape::read`] takes them.
    pub(super) fn columns(&self) -> Vec<&'static str> {
        let stripe = self.stripe.into_iter().flatten();
        [self.key, self.mark].into_iter().chain(self.step).chain(stripe).collect()
    }

    pub(super) fn read(&self, row: TextRow) -> Sequence {
        let mut row = row.into_iter();
        let key = row.next().flatten().unwrap_or_default();
        if let Some(key) = key.strip_prefix(RENAMED).filter(|_| self.ends_by_name) {
            return Sequence { key: key.to_owned(), state: SequenceState::Moved };
        }
        let mut row = row.peekable();
        if !self.ends_by_name && row.peek() == Some(&Some(END.to_string())) {
            return Sequence { key, state: SequenceState::Moved };
        }
        let state = self.numbers(&mut row).map_or_else(SequenceState::Senseless, SequenceState::At);
        Sequence { key, state }
    }

    fn numbers(&self, row: &mut impl Iterator<Item = Option<String>>) -> Result<Numbers, String> {
        let mut next = |column| number(column, row.next().flatten());
        let mark = next(self.mark)?;
        let step = self.step.map(&mut next).transpose()?;
        let (increment, remainder) = match self.stripe {
            None => (1, 0),
            Some([delta, remainder]) => (next(delta)?, next(remainder)?),
        };
        if step == Some(0) {
            return Err("step is 0, so the other system issues no numbers".into());
        }
        if increment == 0 || remainder >= increment {
            return Err(format!(
                "delta = {increment} and remainder = {remainder}: the remainder lies below delta"
            ));
        }
        let highest = if self.mark_is_used { mark } else { mark.saturating_sub(1) };
        let offset = if remainder == 0 { increment } else { remainder };
        // The table's step spans all numbers; only those of the stripe are taken.
        let step = step.map(|step| (step / increment).max(1));
        Ok(Numbers { highest, step, offset, increment })
    }
}

/// Parses the number in a column.
pub(super) fn number(column: &str, text: Option<String>) -> Result<u64, String> {
    let Some(text) = text else { return Err(format!("{column} is NULL")) };
    let shown: String = text.chars().take(40).collect();
    let number: i128 =
        text.trim().parse().map_err(|_| format!("{column} = {shown:?} is not a whole number"))?;
    if number < 0 {
        return Err(format!("{column} = {number} is negative"));
    }
    match u64::try_from(number) {
        Ok(number) if number <= HIGHEST_MAX => Ok(number),
        _ => Err(format!("{column} = {number} is above {HIGHEST_MAX} (2^62)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::legacy::LegacySystem;

    fn read(legacy_system: LegacySystem, row: &[&str]) -> Result<Numbers, String> {
        let row = row.iter().map(|text| (*text != "NULL").then(|| (*text).to_owned())).collect();
        match legacy_system.shape().read(row).state {
            SequenceState::At(numbers) => Ok(numbers),
            SequenceState::Senseless(reason) => Err(reason),
            SequenceState::Moved => Err("moved".into()),
        }
    }

    #[test]
    fn highest_number_matches_each_legacy_system() {
        // Leaf hands out numbers from max_id - step on, below max_id; the other systems those above
        // max_id, up to the new max_id.
        let leaf = read(LegacySystem::Leaf, &["orders", "2001", "1000"]).unwrap();
        assert_eq!((leaf.highest, leaf.step), (2000, Some(1000)));
        assert_eq!(read(LegacySystem::Leaf, &["new", "1", "10"]).unwrap().highest, 0);
        let cosid = read(LegacySystem::Cosid, &["app.orders", "2000"]).unwrap();
        assert_eq!((cosid.highest, cosid.step), (2000, None));
        let tinyid = read(LegacySystem::Tinyid, &["orders", "2000", "100", "2", "0"]).unwrap();
        assert_eq!(tinyid, Numbers { highest: 2000, step: Some(50), offset: 2, increment: 2 });
        assert_eq!(read(LegacySystem::Tinyid, &["o", "5", "1", "3", "2"]).unwrap().step, Some(1));
    }

    #[test]
    fn a_key_that_was_cut_over_is_known() {
        let end = END.to_string();
        assert_eq!(read(LegacySystem::Leaf, &["orders", &end, "1000"]), Err("moved".into()));
        assert_eq!(read(LegacySystem::Cosid, &["orders", &end]), Err("moved".into()));
        assert_eq!(
            read(LegacySystem::Tinyid, &["moved:orders", "5", "1", "1", "0"]),
            Err("moved".into())
        );
        assert!(
            read(LegacySystem::Tinyid, &["orders", &end, "1", "1", "0"])
                .unwrap_err()
                .contains("2^62")
        );
    }

    #[test]
    fn outliers_are_refused_with_their_value() {
        let top = HIGHEST_MAX.to_string();
        assert_eq!(read(LegacySystem::Cosid, &["a", &top]).unwrap().highest, HIGHEST_MAX);
        for (legacy_system, row, word) in [
            (LegacySystem::Leaf, &["a", "-1", "10"][..], "max_id = -1 is negative"),
            (LegacySystem::Leaf, &["a", "4611686018427387905", "10"], "2^62"),
            (LegacySystem::Leaf, &["a", "99999999999999999999999", "10"], "2^62"),
            (
                LegacySystem::Leaf,
                &["a", "9999999999999999999999999999999999999999999", "10"],
                "not a whole",
            ),
            (LegacySystem::Leaf, &["a", "10", "0"], "step is 0"),
            (LegacySystem::Leaf, &["a", "10", "-5"], "step = -5"),
            (LegacySystem::Leaf, &["a", "NULL", "10"], "max_id is NULL"),
            (LegacySystem::Leaf, &["a", "ten", "10"], "\"ten\" is not a whole number"),
            (LegacySystem::Leaf, &["a", "1.5", "10"], "not a whole number"),
            (LegacySystem::Tinyid, &["a", "10", "10", "0", "0"], "delta = 0"),
            (LegacySystem::Tinyid, &["a", "10", "10", "3", "5"], "remainder = 5"),
            (LegacySystem::Cosid, &["a", "-1"], "last_max_id = -1"),
        ] {
            let refused = read(legacy_system, row).unwrap_err();
            assert!(refused.contains(word), "{row:?}: {refused}");
        }
    }
}

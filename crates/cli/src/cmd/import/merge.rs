//! Merge of a key that several databases hold, as with Tinyid: each has a stripe of the numbers.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use snowmint_stores::legacy::{Numbers, Sequence, SequenceState};

/// Content of one database.
pub(super) struct DatabaseRead {
    /// Name of the database in messages.
    pub(super) label: String,
    pub(super) sequences: Vec<Sequence>,
}

/// A key, merged from all databases.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) sequence: Sequence,
    /// State of the key in each database, if there are several.
    pub(super) parts: Vec<KeyPart>,
}

/// State of a key in one of several databases.
#[derive(Clone, Debug, Serialize)]
pub(super) struct KeyPart {
    /// Label of the database.
    pub(super) from: String,
    /// Bound: that database has issued no higher number.
    pub(super) highest: u64,
    /// Stripe of the database.
    pub(super) offset: u64,
    pub(super) increment: u64,
}

/// Returns the keys of all databases, each once, by name.
pub(super) fn merged(all: Vec<DatabaseRead>) -> Vec<Merged> {
    let labels: Vec<String> = all.iter().map(|read| read.label.clone()).collect();
    let mut by_key: BTreeMap<String, Vec<(usize, SequenceState)>> = BTreeMap::new();
    for (number, read) in all.into_iter().enumerate() {
        for Sequence { key, state } in read.sequences {
            by_key.entry(key).or_default().push((number, state));
        }
    }
    by_key.into_iter().map(|(key, states)| one(key, states, &labels)).collect()
}

fn one(key: String, states: Vec<(usize, SequenceState)>, labels: &[String]) -> Merged {
    let part = |(number, state): &(usize, SequenceState)| match state {
        SequenceState::At(Numbers { highest, offset, increment, .. }) => Some(KeyPart {
            from: labels.get(*number).cloned().unwrap_or_default(),
            highest: *highest,
            offset: *offset,
            increment: *increment,
        }),
        _ => None,
    };
    let several = labels.len() > 1;
    let parts = states.iter().filter_map(part).filter(|_| several).collect();
    let there: BTreeSet<usize> = states.iter().map(|(number, _)| *number).collect();
    let lacking = labels.iter().enumerate().filter(|(number, _)| !there.contains(number));
    let lacking: Vec<&str> = lacking.map(|(_, label)| label.as_str()).collect();
    let mut state = joined(states.into_iter().map(|(_, state)| state).collect());
    // A database without the key may be the wrong one.
    if matches!(state, SequenceState::At(Numbers { increment: 2.., .. })) && !lacking.is_empty() {
        state = SequenceState::Senseless(format!(
            "it has stripes, and no stripe of it is in {}: name all databases that have its stripes, \
             or import it from its own database alone",
            lacking.join(", ")
        ));
    }
    Merged { sequence: Sequence { key, state }, parts }
}

fn joined(states: Vec<SequenceState>) -> SequenceState {
    let mut numbers = Vec::new();
    let mut moved = false;
    for state in states {
        match state {
            SequenceState::At(one) => numbers.push(one),
            SequenceState::Moved => moved = true,
            SequenceState::Senseless(reason) => return SequenceState::Senseless(reason),
        }
    }
    match (moved, numbers.is_empty()) {
        (true, true) => return SequenceState::Moved,
        (true, false) => {
            return SequenceState::Senseless(
                "it was cut over in one database, and another still issues its numbers: import it from \
                 the one that issues, alone, by another name"
                    .into(),
            );
        }
        (false, _) => {}
    }
    together(&numbers).map_or_else(SequenceState::Senseless, SequenceState::At)
}

/// Returns the numbers above those of all databases: in their stripe, or in all stripes when all
/// are present.
fn together(all: &[Numbers]) -> Result<Numbers, String> {
    let highest = all.iter().map(|one| one.highest).max();
    let (Some(first), Some(highest)) = (all.first(), highest) else {
        return Err("it is in no database".into());
    };
    if let Some(other) = all.iter().find(|other| other.increment != first.increment) {
        return Err(format!(
            "its databases have different increments: {} and {}",
            first.increment, other.increment
        ));
    }
    let offsets: BTreeSet<u64> = all.iter().map(|one| one.offset).collect();
    if offsets.len() == 1 {
        return Ok(Numbers { highest, ..*first });
    }
    if u64::try_from(offsets.len()) == Ok(first.increment) {
        let step = all.iter().filter_map(|one| one.step).max();
        return Ok(Numbers { highest, step, offset: 1, increment: 1 });
    }
    Err(format!(
        "{} of its {} stripes are in these databases: name those of all stripes (--from), or import each \
         stripe into a source of its own",
        offsets.len(),
        first.increment
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(highest: u64, offset: u64, increment: u64) -> Sequence {
        let numbers = Numbers { highest, step: Some(10), offset, increment };
        Sequence { key: "orders".into(), state: SequenceState::At(numbers) }
    }

    fn of(all: Vec<Sequence>) -> Result<(u64, u64, u64), String> {
        let read =
            |sequence| DatabaseRead { label: "a database".into(), sequences: vec![sequence] };
        let merged = merged(all.into_iter().map(read).collect());
        assert_eq!(merged.len(), 1);
        match &merged[0].sequence.state {
            SequenceState::At(Numbers { highest, offset, increment, .. }) => {
                Ok((*highest, *offset, *increment))
            }
            SequenceState::Senseless(reason) => Err(reason.clone()),
            SequenceState::Moved => Err("moved".into()),
        }
    }

    #[test]
    fn stripes_become_all_numbers_only_when_all_are_here() {
        assert_eq!(of(vec![sequence(7, 1, 2)]), Ok((7, 1, 2)));
        assert_eq!(of(vec![sequence(7, 1, 2), sequence(20, 2, 2)]), Ok((20, 1, 1)));
        assert_eq!(of(vec![sequence(7, 1, 1), sequence(20, 1, 1)]), Ok((20, 1, 1)));
        let some = of(vec![sequence(7, 1, 3), sequence(20, 2, 3)]).unwrap_err();
        assert!(some.starts_with("2 of its 3 stripes"), "{some}");
        assert!(of(vec![sequence(7, 1, 3), sequence(20, 2, 2)]).is_err());
        let senseless =
            Sequence { key: "orders".into(), state: SequenceState::Senseless("why".into()) };
        assert_eq!(of(vec![sequence(7, 1, 2), senseless]), Err("why".into()));
        let moved = || Sequence { key: "orders".into(), state: SequenceState::Moved };
        assert_eq!(of(vec![moved(), moved()]), Err("moved".into()));
        for some in [vec![moved(), sequence(7, 1, 1)], vec![sequence(7, 1, 1), moved()]] {
            assert!(of(some).unwrap_err().starts_with("it was cut over in one database"));
        }
    }

    #[test]
    fn a_database_without_a_stripe_that_is_looked_for_is_named() {
        let read = |label: &str, sequences| DatabaseRead { label: label.into(), sequences };
        let both = vec![read("one", vec![sequence(7, 1, 2)]), read("two", Vec::new())];
        let lacking = merged(both);
        let SequenceState::Senseless(reason) = &lacking[0].sequence.state else {
            panic!("{lacking:?}")
        };
        assert!(reason.contains("no stripe of it is in two"), "{reason}");
        // A key without stripes is in one database only.
        let whole = vec![read("one", vec![sequence(7, 1, 1)]), read("two", Vec::new())];
        let whole = merged(whole);
        assert!(matches!(whole[0].sequence.state, SequenceState::At(_)));
        let parts = &whole[0].parts;
        assert_eq!((parts.len(), parts[0].from.as_str(), parts[0].highest), (1, "one", 7));
    }
}

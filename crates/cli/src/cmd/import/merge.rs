//! One key in several databases, as Tinyid has them: each with a stripe of the numbers.

use std::collections::{BTreeMap, BTreeSet};

use snowmint_stores::foreign::{Numbers, Sequence, Standing};

/// The keys of all databases, each once, by name.
pub(super) fn merged(all: impl IntoIterator<Item = Sequence>) -> Vec<Sequence> {
    let mut by_key: BTreeMap<String, Vec<Standing>> = BTreeMap::new();
    for Sequence { key, standing } in all {
        by_key.entry(key).or_default().push(standing);
    }
    let one = |(key, standings)| Sequence { key, standing: joined(standings) };
    by_key.into_iter().map(one).collect()
}

fn joined(standings: Vec<Standing>) -> Standing {
    let mut numbers = Vec::new();
    for standing in standings {
        match standing {
            Standing::At(one) => numbers.push(one),
            other => return other,
        }
    }
    together(&numbers).map_or_else(Standing::Senseless, Standing::At)
}

/// What lies above the numbers of all: in their stripe, or in all stripes when all are here.
fn together(all: &[Numbers]) -> Result<Numbers, String> {
    let highest = all.iter().map(|one| one.highest).max();
    let (Some(first), Some(highest)) = (all.first(), highest) else {
        return Err("it is in no database".into());
    };
    if let Some(other) = all.iter().find(|other| other.increment != first.increment) {
        return Err(format!(
            "its databases have different distances of numbers: {} and {}",
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
        "{} of its {} stripes are here: name the databases of all (--from), or import each into a source \
         of its own",
        offsets.len(),
        first.increment
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(highest: u64, offset: u64, increment: u64) -> Sequence {
        let numbers = Numbers { highest, step: Some(10), offset, increment };
        Sequence { key: "orders".into(), standing: Standing::At(numbers) }
    }

    fn of(all: Vec<Sequence>) -> Result<(u64, u64, u64), String> {
        let merged = merged(all);
        assert_eq!(merged.len(), 1);
        match &merged[0].standing {
            Standing::At(Numbers { highest, offset, increment, .. }) => {
                Ok((*highest, *offset, *increment))
            }
            Standing::Senseless(why) => Err(why.clone()),
            Standing::Moved => Err("moved".into()),
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
            Sequence { key: "orders".into(), standing: Standing::Senseless("why".into()) };
        assert_eq!(of(vec![sequence(7, 1, 2), senseless]), Err("why".into()));
    }
}

//! The key `stores`: the stores that serve a source.

use std::ops::RangeInclusive;

use crate::model::name::check_name;

/// Minimum and maximum number of stores that issue the numbers of one source.
const STORES: RangeInclusive<usize> = 2..=64;
/// The same bounds for stores that mint; a single store may be the first of several.
const MINTING: RangeInclusive<usize> = 1..=64;

/// Parses the stores of a segment source, as its key `stores` names them: `a,b,c`.
pub(crate) fn names(text: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    check_names(&names.iter().map(String::as_str).collect::<Vec<_>>(), STORES)?;
    Ok(names)
}

/// Parses the stores that mint a source, each with the worker number in its IDs: `a=3,b=4`. A
/// number without a store name, such as `=5`, belonged to a removed store: nothing mints under it.
pub(crate) fn workers(text: &str) -> Result<Vec<(String, u64)>, String> {
    let one = |part: &str| {
        let (name, number) = part.split_once('=')?;
        Some((name.trim().to_owned(), number.trim().parse().ok()?))
    };
    let workers: Vec<(String, u64)> = text
        .split(',')
        .map(|part| {
            one(part).ok_or_else(|| {
                let part = part.trim();
                format!(
                    "{part:?} does not name a store and the worker number in its IDs: write a=3,b=4"
                )
            })
        })
        .collect::<Result<_, _>>()?;
    let names = workers.iter().map(|(name, _)| name.as_str()).filter(|name| !name.is_empty());
    check_names(&names.collect::<Vec<_>>(), MINTING)?;
    for (index, (name, worker)) in workers.iter().enumerate() {
        let mut before = workers.iter().take(index);
        if let Some((other, _)) = before.find(|(_, number)| number == worker) {
            let shown = |name: &str| {
                if name.is_empty() { "a removed store".into() } else { name.to_owned() }
            };
            return Err(format!(
                "{} and {} both have worker number {worker}: give each store its own",
                shown(other),
                shown(name)
            ));
        }
    }
    Ok(workers)
}

fn check_names(names: &[&str], possible: RangeInclusive<usize>) -> Result<(), String> {
    if !possible.contains(&names.len()) {
        let (least, most) = (possible.start(), possible.end());
        return Err(format!("name {least} to {most} stores, separated by commas"));
    }
    for (index, name) in names.iter().enumerate() {
        check_name("store", name).map_err(|kind| kind.to_string())?;
        if names.iter().take(index).any(|before| before == name) {
            return Err(format!("{name} is named twice"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_may_contain_the_number_of_a_removed_store() {
        let named = |name: &str, worker| (name.to_owned(), worker);
        assert_eq!(workers("a=3, =4 ,b=5").unwrap(), [named("a", 3), named("", 4), named("b", 5)]);
        assert_eq!(workers("a=3,=4,=5").unwrap().len(), 3);
        for text in ["=4", "a=3,=3", "=3,a=3", "a=3,4", "a=3,=", "a=3,a=4"] {
            assert!(workers(text).is_err(), "{text}");
        }
        assert!(workers("a=3,=3").unwrap_err().contains("a removed store"));
    }
}

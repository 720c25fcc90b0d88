//! Check that the stores that mint a source have worker numbers of their own.
//!
//! The source's definition assigns each store its number, and each store keeps its number in the
//! part of the definition that can never change. So a store can join without any other store, and a
//! store with the number of another is detected when it is reached.

use super::comparison::{Has, StoreComparison, identity_of, otherwise};
use crate::error::Error;
use crate::spec::SourceSpec;

/// Compares the stores of a source, which come with their names, with the definition that each
/// should have.
pub(super) fn judge(
    source: &str,
    wanted: &[SourceSpec],
    stores: &[(&str, Has)],
) -> StoreComparison {
    let each = || wanted.iter().zip(stores).enumerate();
    let mut errors: Vec<Option<Error>> = stores.iter().map(|_| None).collect();
    for (index, (wanted, (store, has))) in each() {
        let Has::Source(info) = has else { continue };
        let (stored, wanted) = (identity_of(&info.spec), identity_of(wanted));
        if let Some(error) = errors.get_mut(index).filter(|_| stored != wanted) {
            *error = Some(otherwise(source, store, &stored, &wanted));
        }
    }
    // A store's own definition counts; for a store without one, the wanted definition counts.
    let numbers: Vec<_> = each()
        .map(|(_, (wanted, (store, has)))| match has {
            Has::Source(info) => (*store, info.spec.worker),
            _ => (*store, wanted.worker),
        })
        .collect();
    for (one, (store, number)) in numbers.iter().enumerate() {
        for (other, (other_store, other_number)) in numbers.iter().enumerate().skip(one + 1) {
            let Some(worker) = number.filter(|_| number == other_number) else { continue };
            let conflict = Error::conflict(format!(
                "stores {store:?} and {other_store:?} of source {source:?} both have worker number \
                 {worker}, which makes equal IDs; give the source another name in one of them"
            ));
            for index in [one, other] {
                if let Some(error) = errors.get_mut(index) {
                    *error = Some(conflict.clone());
                }
            }
        }
    }
    let missing = |(index, (wanted, (_, has))): (usize, (&SourceSpec, &(&str, Has)))| {
        let agrees = errors.get(index).is_some_and(Option::is_none);
        (agrees && matches!(has, Has::Nothing)).then(|| (index, wanted.clone()))
    };
    let define = each().filter_map(missing).collect();
    StoreComparison { errors, define }
}

#[cfg(test)]
mod tests {
    use super::super::super::source_info::SourceInfo;
    use super::super::comparison::Wanted;
    use super::*;
    use crate::model::catalog::SourceState;

    fn spec(more: &str) -> SourceSpec {
        let json = format!(r#"{{"layout":"redis","mint":"store",{more}}}"#);
        SourceSpec::from_json(&json).unwrap().canonical().unwrap()
    }

    fn has(worker: u64) -> Has {
        let spec = spec(&format!(r#""worker":{worker}"#));
        let (name, version, state) = ("orders".into(), 3, SourceState::Enabled);
        let (next, store_status) = (None, Vec::new());
        Has::Source(Box::new(SourceInfo { name, spec, state, version, next, store_status }))
    }

    fn judged(stores: Vec<Has>) -> StoreComparison {
        let several = spec(r#""stores":"a=3,b=4,c=7""#);
        let plan = several.check().unwrap();
        let Wanted::Workers(wanted) = Wanted::of(&several, &plan) else { panic!("{plan:?}") };
        let stores: Vec<_> = ["a", "b", "c"].into_iter().zip(stores).collect();
        judge("orders", &wanted, &stores)
    }

    fn serving(stores: Vec<Has>) -> Vec<bool> {
        let StoreComparison { errors, define } = judged(stores);
        assert!(define.is_empty(), "{define:?}");
        errors.iter().map(Option::is_none).collect()
    }

    #[test]
    fn each_store_gets_its_number_despite_unreachable_stores() {
        for stores in [
            vec![Has::Nothing, Has::Nothing, Has::Nothing],
            vec![Has::Nothing, Has::Unknown, Has::Nothing],
            vec![has(3), Has::Unknown, Has::Nothing],
        ] {
            let StoreComparison { errors, define } = judged(stores);
            assert!(errors.iter().all(Option::is_none), "{errors:?}");
            for (index, spec) in define {
                assert_eq!((spec.worker, &spec.stores), (Some([3, 4, 7][index]), &None));
                spec.check().unwrap();
            }
        }
        assert_eq!(serving(vec![has(3), has(4), has(7)]), [true; 3]);
        assert_eq!(serving(vec![has(3), Has::Unknown, has(7)]), [true; 3]);
    }

    #[test]
    fn a_number_that_two_stores_have_is_refused_with_both_shown() {
        for stores in [
            vec![has(3), has(3), has(7)],
            vec![Has::Unknown, has(3), has(7)],
            vec![Has::Nothing, has(3), has(7)],
        ] {
            let comparison = judged(stores);
            assert!(comparison.has_conflict() && comparison.define.is_empty());
            let serving: Vec<_> = comparison.errors.iter().map(Option::is_none).collect();
            assert_eq!(serving, [false, false, true]);
            let message = comparison.errors[1].as_ref().unwrap().to_string();
            for part in ["stores \"a\" and \"b\"", "worker number 3"] {
                assert!(message.contains(part), "{part}: {message}");
            }
        }
        // A number of its own, but not the wanted one.
        let comparison = judged(vec![has(3), has(9), has(7)]);
        let serving: Vec<_> = comparison.errors.iter().map(Option::is_none).collect();
        assert_eq!(serving, [true, false, true]);
        let message = comparison.errors[1].as_ref().unwrap().to_string();
        for part in ["store \"b\"", "9", "4"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
}

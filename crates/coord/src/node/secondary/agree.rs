//! Agreement between the stores of a source: the stripes of those that hand out its numbers must be
//! stripes of one division.
//!
//! Each store reports its own stripe. Two stripes that share a number would make it twice, so both
//! stores are then rejected, and the error shows both: it is unknown here which one is wrong.
//! During a restripe, some stores have stripes that end where those of other stores begin.

use super::super::source_info::SourceInfo;
use super::comparison::{Has, StoreComparison, Wanted, identity_of, otherwise};
use super::workers;
use crate::error::Error;
use crate::model::stripe::Stripe;
use crate::spec::{Plan, SegmentPlan, SourceSpec};

/// Compares the stores of a source, which come with their names.
pub(super) fn judge(source: &str, wanted: &Wanted, stores: &[(&str, Has)]) -> StoreComparison {
    match wanted {
        Wanted::Stripes(wanted) => stripes(source, wanted, stores),
        Wanted::Workers(wanted) => workers::judge(source, wanted, stores),
    }
}

/// Compares stores that have a stripe each, and must otherwise match `wanted`.
fn stripes(source: &str, wanted: &SourceSpec, stores: &[(&str, Has)]) -> StoreComparison {
    let mut errors: Vec<Option<Error>> = stores.iter().map(|_| None).collect();
    let mut stripes = Vec::new();
    for (index, (store, has)) in stores.iter().enumerate() {
        let Has::Source(info) = has else { continue };
        match stripe_of(source, wanted, store, info) {
            Ok(stripe) => stripes.push((index, stripe, &**info)),
            Err(error) => errors[index] = Some(error),
        }
    }
    refuse_shared(source, stores, &stripes, &mut errors);
    let missing: Vec<_> = stores
        .iter()
        .enumerate()
        .filter(|(_, (_, has))| matches!(has, Has::Nothing))
        .map(|(index, _)| index)
        .collect();
    if missing.is_empty() {
        return StoreComparison { errors, define: Vec::new() };
    }
    let all_reached = !stores.iter().any(|(_, has)| matches!(has, Has::Unknown));
    let stripes: Vec<_> = stripes.iter().map(|(_, stripe, info)| (*stripe, info.next)).collect();
    let agreed = errors.iter().all(Option::is_none);
    if all_reached
        && agreed
        && let Some(free) = free_offsets(stores.len(), &stripes)
    {
        let increment = u64::try_from(stores.len()).ok();
        let spec = |offset| SourceSpec { offset: Some(offset), increment, ..wanted.clone() };
        let define = missing.into_iter().zip(free.into_iter().map(spec)).collect();
        return StoreComparison { errors, define };
    }
    let too_late = all_reached || stripes.iter().any(|(stripe, next)| !is_fresh(*stripe, *next));
    for index in missing {
        errors[index] = Some(left_out(source, stores[index].0, too_late));
    }
    StoreComparison { errors, define: Vec::new() }
}

/// Rejects each pair of stores that would both hand out some number.
fn refuse_shared(
    source: &str,
    stores: &[(&str, Has)],
    stripes: &[(usize, Stripe, &SourceInfo)],
    errors: &mut [Option<Error>],
) {
    for (place, (one, stripe, info)) in stripes.iter().enumerate() {
        for (other, other_stripe, other_info) in &stripes[place.saturating_add(1)..] {
            if share_numbers((stripe, info.next), (other_stripe, other_info.next)) {
                let error = Error::conflict(format!(
                    "stores {:?} ({}) and {:?} ({}) of source {source:?} would issue the same \
                     numbers; give each its own stripe (source restripe)",
                    stores[*one].0,
                    stripe_text(*stripe),
                    stores[*other].0,
                    stripe_text(*other_stripe)
                ));
                for index in [*one, *other] {
                    errors[index] = Some(error.clone());
                }
            }
        }
    }
}

/// Returns the reason why a store without the source gets no stripe.
fn left_out(source: &str, store: &str, too_late: bool) -> Error {
    Error::unavailable(if too_late {
        format!(
            "source {source:?} is not in store {store:?}, and its other stores have issued \
             numbers; give it a stripe with all of them (source restripe)"
        )
    } else {
        format!(
            "source {source:?} is not in store {store:?} until all its stores have been reached \
             once; retry"
        )
    })
}

/// Returns the stripe of a store, if its definition otherwise matches `wanted`.
fn stripe_of(
    source: &str,
    wanted: &SourceSpec,
    store: &str,
    info: &SourceInfo,
) -> Result<Stripe, Error> {
    let shown = |spec: &SourceSpec| identity_of(&Stripe::ALL.to_spec(spec.clone()));
    match info.spec.check() {
        Ok(Plan::Segment(SegmentPlan { stripe, .. })) if shown(&info.spec) == shown(wanted) => {
            Ok(stripe)
        }
        _ => Err(otherwise(source, store, &identity_of(&info.spec), &shown(wanted))),
    }
}

fn stripe_text(stripe: Stripe) -> String {
    let (offset, increment) = (stripe.offset(), stripe.increment());
    let until = stripe.until().map_or_else(String::new, |until| format!(", below {until}"));
    format!("offset {offset} of {increment} from {}{until}", stripe.first())
}

/// Returns whether both stripes may still make, or may have made, the same number. `next` is the
/// lowest number that each has left.
fn share_numbers(
    (one, next): (&Stripe, Option<u64>),
    (other, next_other): (&Stripe, Option<u64>),
) -> bool {
    let ends_before =
        |one: &Stripe, other: &Stripe| one.until().is_some_and(|until| until <= other.first());
    if ends_before(one, other) || ends_before(other, one) {
        return false;
    }
    if one.increment() != other.increment() || one.offset() == other.offset() {
        return true;
    }
    // Numbers below the first one of a stripe that replaced another were handed out by the earlier
    // stripe.
    let behind = |one: &Stripe, other: &Stripe, next_other: Option<u64>| {
        let begun = one.first().saturating_sub(one.increment());
        one.was_another() && next_other.is_some_and(|next| next <= begun && next >= other.first())
    };
    behind(one, other, next_other) || behind(other, one, next)
}

/// Returns whether the stripe has never handed out a number, and begins with the source's first
/// numbers.
fn is_fresh(stripe: Stripe, next: Option<u64>) -> bool {
    !stripe.was_another() && next == Some(stripe.first()) && stripe.first() <= stripe.increment()
}

/// Returns whether a store with this stripe shows that numbers were handed out. While the source
/// has such a store, no other store is [given a stripe that looks free](free_offsets).
pub(super) fn shows_use(info: &SourceInfo) -> bool {
    match info.spec.check() {
        Ok(Plan::Segment(SegmentPlan { stripe, .. })) => !is_fresh(stripe, info.next),
        _ => false,
    }
}

/// Returns the offsets that no store has, if no store has handed out a number and all use the same
/// division.
fn free_offsets(stores: usize, stripes: &[(Stripe, Option<u64>)]) -> Option<Vec<u64>> {
    let count = u64::try_from(stores).ok()?;
    let fresh = stripes.iter().all(|(stripe, next)| {
        is_fresh(*stripe, *next) && stripe.increment() == count && stripe.until().is_none()
    });
    let used = |offset: &u64| stripes.iter().any(|(stripe, _)| stripe.offset() == *offset);
    fresh.then(|| (1..=count).filter(|offset| !used(offset)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::catalog::SourceState;

    fn wanted() -> Wanted {
        Wanted::Stripes(Box::new(SourceSpec::from_json(r#"{"kind":"segment"}"#).unwrap()))
    }

    /// Returns a store with these keys, and with its mark this far above its first number.
    fn has(keys: &str, used: u64) -> Has {
        let spec = SourceSpec::from_json(&format!(r#"{{"kind":"segment",{keys}}}"#)).unwrap();
        let Ok(Plan::Segment(plan)) = spec.check() else { panic!("{keys}") };
        let next = plan.stripe.next(plan.stripe.number_min() + used);
        let (name, version) = ("orders".into(), 3);
        let store_status = Vec::new();
        let state = SourceState::Enabled;
        Has::Source(Box::new(SourceInfo { name, spec, state, version, next, store_status }))
    }

    fn judged(stores: Vec<Has>) -> StoreComparison {
        let names = ["a", "b", "c"];
        let stores: Vec<_> = names.into_iter().zip(stores).collect();
        judge("orders", &wanted(), &stores)
    }

    /// Returns for each store whether it serves.
    fn serving(stores: Vec<Has>) -> Vec<bool> {
        let StoreComparison { errors, define } = judged(stores);
        assert!(define.is_empty(), "{define:?}");
        errors.iter().map(Option::is_none).collect()
    }

    fn defined(stores: Vec<Has>) -> Option<Vec<(usize, u64, u64)>> {
        let define = judged(stores).define.into_iter();
        let each = define
            .map(|(index, spec)| (index, spec.offset.unwrap(), spec.increment.unwrap()))
            .collect::<Vec<_>>();
        (!each.is_empty()).then_some(each)
    }

    fn with_stripe(offset: u64, increment: u64, used: u64) -> Has {
        has(&format!(r#""offset":{offset},"increment":{increment}"#), used)
    }

    #[test]
    fn stores_with_their_own_stripes_serve_whatever_is_away() {
        assert_eq!(serving(vec![with_stripe(1, 2, 7), with_stripe(2, 2, 900)]), [true; 2]);
        assert_eq!(serving(vec![with_stripe(2, 2, 0), Has::Unknown]), [true; 2]);
        let three = || vec![with_stripe(3, 3, 0), with_stripe(1, 3, 5), with_stripe(2, 3, 9)];
        assert_eq!(serving(three()), [true; 3]);
    }

    #[test]
    fn stores_that_share_a_number_are_refused_both() {
        assert_eq!(serving(vec![with_stripe(1, 2, 7), with_stripe(1, 2, 7)]), [false; 2]);
        assert_eq!(serving(vec![with_stripe(1, 2, 7), with_stripe(2, 3, 7)]), [false; 2]);
        assert_eq!(serving(vec![with_stripe(1, 2, 7), with_stripe(1, 1, 0)]), [false; 2]);
        assert_eq!(
            serving(vec![with_stripe(1, 3, 7), with_stripe(2, 3, 1), with_stripe(2, 3, 0)]),
            [true, false, false]
        );
        let errors = judged(vec![with_stripe(1, 2, 7), with_stripe(1, 2, 9)]).errors;
        let message = errors[0].as_ref().unwrap().to_string();
        for part in ["\"a\" (offset 1 of 2", "\"b\" (offset 1 of 2"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        let otherwise = has(r#""disguise":{"mode":"full","key":1}"#, 0);
        assert_eq!(serving(vec![with_stripe(1, 2, 0), otherwise]), [true, false]);
    }

    #[test]
    fn every_state_of_a_restripe_serves() {
        let old = |offset| has(&format!(r#""offset":{offset},"increment":2,"until":1000"#), 4);
        let new = |offset: u64, first: u64| {
            let keys = format!(r#""offset":{offset},"increment":3,"first":{first},"first_at":77"#);
            has(&keys, 0)
        };
        assert_eq!(serving(vec![old(1), with_stripe(2, 2, 4)]), [true; 2]);
        assert_eq!(serving(vec![new(1, 1000), old(2)]), [true; 2]);
        assert_eq!(serving(vec![old(1), old(2), new(3, 1002)]), [true; 3]);
        assert_eq!(serving(vec![new(1, 1000), new(2, 1001), new(3, 1002)]), [true; 3]);
        let added = has(r#""offset":3,"increment":3,"first":1002"#, 0);
        assert_eq!(serving(vec![new(1, 1000), new(2, 1001), added]), [true; 3]);
        // A stripe that was defined by hand, below the numbers that the other stores have handed
        // out by their old stripes.
        let low = with_stripe(3, 3, 0);
        assert_eq!(serving(vec![new(1, 1000), new(2, 1001), low]), [false; 3]);
        // One store kept its old stripe, while another already uses a new one.
        assert_eq!(serving(vec![new(1, 1000), with_stripe(2, 2, 4)]), [false; 2]);
    }

    #[test]
    fn stripes_are_assigned_once_all_stores_are_unused() {
        let none = || Has::Nothing;
        assert_eq!(defined(vec![none(), none()]), Some(vec![(0, 1, 2), (1, 2, 2)]));
        assert_eq!(
            defined(vec![none(), with_stripe(1, 3, 0), none()]),
            Some(vec![(0, 2, 3), (2, 3, 3)])
        );
        assert_eq!(defined(vec![none(), Has::Unknown]), None);
        assert_eq!(defined(vec![none(), with_stripe(2, 2, 1)]), None, "used");
        assert_eq!(defined(vec![none(), with_stripe(2, 3, 0)]), None, "divided otherwise");
        let added = || has(r#""offset":2,"increment":2,"first":1002"#, 0);
        assert_eq!(defined(vec![none(), added()]), None, "joined later");
        assert_eq!(serving(vec![none(), Has::Unknown]), [false, true]);
        assert_eq!(serving(vec![none(), with_stripe(2, 2, 1)]), [false, true]);
    }
}

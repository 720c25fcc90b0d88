//! Claims with an unknown outcome.

use super::*;
use crate::error::PoolFull;

fn granted(mark: u64) -> Result<Vec<Granted>> {
    Ok(vec![Granted { lease: lease(mark), floor: UnixMillis::new(mark) }])
}

fn full() -> Error {
    Error::pool_full(PoolFull {
        pool: "workers".into(),
        groups: 1,
        only: None,
        held: 1,
        marked_ahead: 0,
        holders: Vec::new(),
        usable_at: None,
        usable_in_ms: None,
        by_recovery: false,
    })
}

fn claim_of(actions: &[LeaseAction]) -> u64 {
    match actions {
        [LeaseAction::Claim { request }] => *request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn claim_repeats_its_number_until_the_outcome_is_known() {
    let mut machine = LeaseMachine::new(window_policy(false), 1);
    let poll = LeaseEvent::Poll(&[]);
    let first = claim_of(&machine.on(at(START, 0), poll));
    assert_same!(machine.on(at(START, 1), LeaseEvent::Poll(&[])), [], "one claim at a time");
    let fail = |request, error| LeaseEvent::Claimed { request, result: Err(error) };
    machine.on(at(START, 1), fail(first, away()));
    assert_same!(machine.on(at(START, 50), LeaseEvent::Poll(&[])), []);
    let again = claim_of(&machine.on(at(START, 51), LeaseEvent::Poll(&[])));
    assert_eq!(again, first);
    // A copy in flight must find this claim's outcome, should it arrive later.
    machine.on(at(START, 52), fail(again, full()));
    let again = claim_of(&machine.on(at(START, 5_052), LeaseEvent::Poll(&[])));
    assert_eq!(again, first);
    // Another error is an outcome: the next claim is a new one.
    machine.on(at(START, 5_052), fail(again, Error::invalid("pool is invalid")));
    assert!(machine.claim_error().is_some());
    assert_same!(machine.on(at(START, 10_051), LeaseEvent::Poll(&[])), []);
    let other = claim_of(&machine.on(at(START, 10_052), LeaseEvent::Poll(&[])));
    assert_ne!(other, first);
    let late = LeaseEvent::Claimed { request: first, result: granted(START) };
    assert_same!(machine.on(at(START, 10_053), late), [], "a result of a settled claim");
    let event = LeaseEvent::Claimed { request: other, result: granted(START) };
    assert_same!(machine.on(at(START, 10_054), event), [LeaseAction::Granted]);
    assert_eq!(machine.windows().len(), 1);
    assert!(machine.claim_error().is_none());
}

#[test]
fn a_forgotten_member_loses_its_claim_and_hurry_shortens_a_wait() {
    let mut machine = LeaseMachine::new(window_policy(false), 1);
    let request = claim_of(&machine.on(at(START, 0), LeaseEvent::Poll(&[])));
    let result = Err(Error::invalid("pool is invalid"));
    machine.on(at(START, 0), LeaseEvent::Claimed { request, result });
    machine.hurry();
    let request = claim_of(&machine.on(at(START, 1), LeaseEvent::Poll(&[])));
    let result = Err(Error::not_found("member is not joined"));
    let lost = machine.on(at(START, 2), LeaseEvent::Claimed { request, result });
    assert!(matches!(&lost[..], [LeaseAction::Lost(_)]));
    assert!(machine.is_over() && machine.on(at(START, 3), LeaseEvent::Poll(&[])).is_empty());
}

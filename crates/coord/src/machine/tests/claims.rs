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
    let mut machine = LeaseMachine::new(pace(false), 1);
    let look = LeaseEvent::Look(&[]);
    let first = claim_of(&machine.on(at(START, 0), look));
    assert_same!(machine.on(at(START, 1), LeaseEvent::Look(&[])), [], "one claim at a time");
    let fail = |request, error| LeaseEvent::Claimed { request, answer: Err(error) };
    machine.on(at(START, 1), fail(first, away()));
    assert_same!(machine.on(at(START, 50), LeaseEvent::Look(&[])), []);
    let again = claim_of(&machine.on(at(START, 51), LeaseEvent::Look(&[])));
    assert_eq!(again, first);
    // A copy in flight must find this claim's outcome, should it arrive later.
    machine.on(at(START, 52), fail(again, full()));
    let again = claim_of(&machine.on(at(START, 5_052), LeaseEvent::Look(&[])));
    assert_eq!(again, first);
    // Another error is an outcome: the next claim is a new one.
    machine.on(at(START, 5_052), fail(again, Error::invalid("pool is invalid")));
    assert!(machine.claim_error().is_some());
    assert_same!(machine.on(at(START, 10_051), LeaseEvent::Look(&[])), []);
    let other = claim_of(&machine.on(at(START, 10_052), LeaseEvent::Look(&[])));
    assert_ne!(other, first);
    let late = LeaseEvent::Claimed { request: first, answer: granted(START) };
    assert_same!(machine.on(at(START, 10_053), late), [], "an answer to a settled claim");
    let event = LeaseEvent::Claimed { request: other, answer: granted(START) };
    assert_same!(machine.on(at(START, 10_054), event), [LeaseAction::Granted]);
    assert_eq!(machine.windows().len(), 1);
    assert!(machine.claim_error().is_none());
}

#[test]
fn a_forgotten_member_loses_its_claim_and_hurry_shortens_a_wait() {
    let mut machine = LeaseMachine::new(pace(false), 1);
    let request = claim_of(&machine.on(at(START, 0), LeaseEvent::Look(&[])));
    let answer = Err(Error::invalid("pool is invalid"));
    machine.on(at(START, 0), LeaseEvent::Claimed { request, answer });
    machine.hurry();
    let request = claim_of(&machine.on(at(START, 1), LeaseEvent::Look(&[])));
    let answer = Err(Error::not_found("member is not joined"));
    let lost = machine.on(at(START, 2), LeaseEvent::Claimed { request, answer });
    assert!(matches!(&lost[..], [LeaseAction::Lost(_)]));
    assert!(machine.is_over() && machine.on(at(START, 3), LeaseEvent::Look(&[])).is_empty());
}

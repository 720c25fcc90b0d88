//! Messages without a value: what a server says of a request, and a client of a response.

use snowmint_coord::sources::SECTIONS;
use snowmint_coord::{Catalog, Definition, Preference, Reserve, SourceState};
use snowmint_store_rpc::{Codec, Malformed, StoreRequest, verb_of};
use snowmint_wire::error::Code;
use snowmint_wire::grpc::store as proto;

use crate::values::{NOW, acquire, claim, extends, identity, relinquish, reserve};

/// Returns what a server says of a request.
fn rejection<Q: StoreRequest>(message: Q) -> (Code, String) {
    let Err(malformed) = Q::Call::read(message) else { panic!("message has a value") };
    malformed.of_request()
}

fn bad_request(message: &str) -> (Code, String) {
    (Code::BadRequest, message.to_owned())
}

#[test]
fn missing_parts_are_named() {
    assert_eq!(
        rejection(proto::RecallRequest::default()),
        bad_request("message has no identity; send it")
    );
    assert_eq!(
        rejection(proto::JoinRequest::default()),
        bad_request("message has no member; send it")
    );
    let member = "0".repeat(32);
    let renew = proto::RenewRequest { member: member.clone(), ..Default::default() };
    assert_eq!(rejection(renew), bad_request("message has no presence; send it"));
    assert_eq!(
        rejection(proto::ClaimRequest::default()),
        bad_request("message has no pool; send it")
    );
    assert_eq!(
        rejection(proto::AcquireRequest::default()),
        bad_request("message has no pool; send it")
    );
    assert_eq!(
        rejection(proto::ExcludeRequest::default()),
        bad_request("message has no pool; send it")
    );
    let no_definition = bad_request("message has no definition; send it");
    assert_eq!(rejection(proto::DefineRequest::default()), no_definition);
    assert_eq!(rejection(proto::AlterRequest::default()), no_definition);
    assert_eq!(rejection(proto::RestripeRequest::default()), no_definition);
}

#[test]
fn members_have_names_in_every_request() {
    let message = "incarnation \"x\" is not 32 hexadecimal digits; correct it";
    let bad = bad_request(message);
    let member = "x".to_owned();
    let leave = proto::LeaveRequest { member: member.clone(), now: 1 };
    assert_eq!(rejection(leave), bad);
    let mut extend: proto::ExtendRequest = (extends(), NOW).write();
    extend.items[0].member = Some(member.clone());
    assert_eq!(rejection(extend), bad);
    let mut claim: proto::ClaimRequest = (claim(), NOW).write();
    claim.supersedes = Some(member.clone());
    assert_eq!(rejection(claim), bad);
    let mut acquire: proto::AcquireRequest = (acquire(), NOW).write();
    acquire.silent[0].member = member;
    assert_eq!(rejection(acquire), bad);
}

#[test]
fn values_of_newer_callers_are_unsupported() {
    let mut message: proto::ClaimRequest = (claim(), NOW).write();
    message.pool.as_mut().unwrap().reuse = 9;
    let text = "reuse rule 9 is unknown to this version; update the server";
    assert_eq!(rejection(message.clone()), (Code::Unsupported, text.to_owned()));
    message.pool.as_mut().unwrap().reuse = 0;
    let text = "pool has no reuse rule; send recycle, never or ordered";
    assert_eq!(rejection(message), bad_request(text));
    let state = |state| proto::SetStateRequest { name: "orders".into(), state };
    let text = "source state 7 is unknown to this version; update the server";
    assert_eq!(rejection(state(7)), (Code::Unsupported, text.to_owned()));
    let text = "source state is missing; send enabled, disabled or deleted";
    assert_eq!(rejection(state(0)), bad_request(text));
}

/// A list is counted before its items are read: these name no member.
#[test]
fn lists_of_requests_are_bounded() {
    let limit = 2 * usize::from(SECTIONS);
    let many = limit + 1;
    let text = format!("message has {many} items, limit {limit}; send fewer");
    let too_many = (Code::LimitExceeded, text);
    let item = proto::Extend { member: Some("x".into()), ..Default::default() };
    assert_eq!(rejection(proto::ExtendRequest { items: vec![item; many], now: 1 }), too_many);
    let acquire = || -> proto::AcquireRequest { (acquire(), NOW).write() };
    assert_eq!(rejection(proto::AcquireRequest { slots: vec![1; many], ..acquire() }), too_many);
    let silent = vec![proto::Silent { member: "x".into(), renewals: 1 }; many];
    assert_eq!(rejection(proto::AcquireRequest { silent, ..acquire() }), too_many);
    let relinquish = || -> proto::RelinquishRequest { (relinquish(), NOW).write() };
    let slots = vec![proto::HeldBy::default(); many];
    assert_eq!(rejection(proto::RelinquishRequest { slots, ..relinquish() }), too_many);
    let most =
        proto::RelinquishRequest { slots: vec![proto::HeldBy::default(); limit], ..relinquish() };
    assert!(<proto::RelinquishRequest as StoreRequest>::Call::read(most).is_ok());
}

#[test]
fn name_of_a_reporter_is_short() {
    let recall = |length| -> proto::RecallRequest { ("w".repeat(length), identity()).write() };
    assert!(<proto::RecallRequest as StoreRequest>::Call::read(recall(64)).is_ok());
    let text = "name of the reporter has 65 bytes, maximum 64; shorten it";
    assert_eq!(rejection(recall(65)), bad_request(text));
}

#[test]
fn choices_without_a_value_of_their_own_are_read() {
    let configured = Preference::Configured(3).write();
    assert_eq!(Preference::read(configured).unwrap(), Preference::Exactly(3));
    let not_last = Some(proto::claim_request::Preference::LastOfOwner(false));
    assert_eq!(Preference::read(not_last).unwrap(), Preference::Any);
    // The time of now counts, and more bits than any sequence has.
    let mut both: proto::ReserveRequest = reserve().write();
    both.within = Some(proto::Within { first: 1, end: 2 });
    assert_eq!(Reserve::read(both.clone()).unwrap(), reserve());
    both.now.as_mut().unwrap().sequence_bits = 256;
    let bits = |reserve: Reserve| format!("{reserve:?}").contains("sequence_bits: 255");
    assert!(bits(Reserve::read(both).unwrap()));
}

#[test]
fn responses_name_what_they_lack() {
    let error = |malformed: Malformed| {
        let error = malformed.of_response();
        (error.kind().code(), error.message().into_owned())
    };
    let internal = |has: &str| {
        let message = format!("internal error: server's response has {has}; please report it");
        ("internal", message)
    };
    let read = |response| Definition::read(response).map_err(error);
    assert_eq!(read(proto::DefinitionResponse::default()), Err(internal("no definition")));
    let of_state = |state| proto::Definition { name: "orders".into(), state, ..Default::default() };
    let response =
        |state| proto::DefinitionResponse { error: None, definition: Some(of_state(state)) };
    assert_eq!(read(response(0)), Err(internal("no state of a source")));
    let newer = "source \"orders\" has state 7, unknown to this version; update this program";
    assert_eq!(read(response(7)), Err(("unsupported", newer.to_owned())));
    let list = |state| proto::ListResponse {
        error: None,
        version: 1,
        definitions: vec![of_state(2), of_state(state)],
    };
    assert_eq!(Catalog::read(list(7)).unwrap().definitions[1].state, SourceState::Disabled);
    assert_eq!(Catalog::read(list(0)).map_err(error), Err(internal("no state of a source")));
    let known = proto::DoneResponse { known_as: Some("x".into()), ..Default::default() };
    assert_eq!(<()>::read(known.clone()).map_err(error), Ok(()));
    let member = "member \"x\", expected 32 hexadecimal digits";
    let joined = snowmint_store_rpc::Joined::read(known).map_err(error);
    assert_eq!(joined, Err(internal(member)));
}

#[test]
fn methods_are_called_by_their_paths() {
    assert_eq!(proto::GiveBackRequest::PATH, "/snowmint.store.v1.Store/GiveBack");
    assert_eq!(verb_of(proto::GiveBackRequest::PATH), Some(proto::GiveBackRequest::VERB));
    assert_eq!(proto::GiveBackRequest::PATH.rsplit_once('/').unwrap().0[1..], *proto::SERVICE);
    for path in ["", "/snowmint.store.v1.Store/Describe", "/snowmint.store.v1.Store/doubt"] {
        assert_eq!(verb_of(path), None, "{path}");
    }
}

//! Bytes of messages: `recorded.txt` has at least one request and one reply of each verb, as the
//! first version wrote them. Programs and servers of any two versions read each other's.

use std::collections::BTreeMap;
use std::fmt::Debug;

use prost::Message;
use snowmint_coord::{
    Capabilities, ClockOf, Incarnation, Lease, Mark, PresenceBy, Recalled, SourceState,
};
use snowmint_store_rpc::{
    BothClocks, Codec, Description, Joined, StoreRequest, StoreResponse as _, store_error,
};
use snowmint_wire::grpc::store as proto;

use crate::values::{
    NOW, acquire, acquired, catalog, claim, definition, exclude, extended, extends, failure,
    fast_forward, give_back, identity, incarnation, leases, member, members, new_definition,
    presence, release, relinquish, reserve, reserve_range, restripe, segment, slots,
};
use crate::{bytes, shown, verbs_with_a_method};

/// The recorded messages that no value has matched yet, by name.
struct Recorded(BTreeMap<&'static str, &'static str>);

impl Recorded {
    /// Takes the bytes of a recorded message.
    fn take(&mut self, name: &str) -> Vec<u8> {
        let digits = self.0.remove(name).unwrap_or_else(|| panic!("{name} is not recorded"));
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    /// Checks that a value has the recorded bytes, and that they are read as `read`.
    fn has<M: Message + Default, T: Codec<M> + Debug>(&mut self, name: &str, value: T, read: &T) {
        let recorded = self.take(name);
        assert_eq!(bytes(value), recorded, "{name}");
        assert_eq!(shown::<M, T>(&recorded), format!("{read:?}"), "{name}");
    }

    /// Checks one request and one reply of a verb.
    fn verb<Q>(&mut self, call: Q::Call, reply: Q::Reply)
    where
        Q: StoreRequest<Call: Clone + Debug, Reply: Clone + Debug>,
    {
        self.verb_reads::<Q>(call, reply.clone(), &reply);
    }

    /// Checks the same for a reply that is read without what no message has.
    fn verb_reads<Q>(&mut self, call: Q::Call, reply: Q::Reply, read: &Q::Reply)
    where
        Q: StoreRequest<Call: Clone + Debug, Reply: Debug>,
    {
        let name = format!("{:?}", Q::VERB);
        assert!(Q::PATH.ends_with(&format!("/{name}")), "{}", Q::PATH);
        self.has::<Q, _>(&format!("{name}.request"), call.clone(), &call);
        self.has::<Q::Response, _>(&format!("{name}.reply"), reply, read);
    }
}

fn without_holder(member: Incarnation) -> Vec<Lease> {
    leases(member).into_iter().map(|lease| Lease { holder: None, ..lease }).collect()
}

#[test]
fn messages_have_the_recorded_bytes() {
    let lines = include_str!("recorded.txt").lines();
    let mut recorded = Recorded(lines.map(|line| line.split_once('=').unwrap()).collect());
    for verb in verbs_with_a_method() {
        for message in ["request", "reply"] {
            let name = format!("{verb}.{message}");
            assert!(recorded.0.contains_key(&*name), "{name} is not recorded");
        }
    }

    let described = proto::DescribeRequest { version: proto::VERSION, store: "eu".into() };
    assert_eq!(recorded.take("Describe.request"), described.encode_to_vec());
    let description = Description {
        instance: "instance".into(),
        namespace: "test".into(),
        identity: Some(identity()),
        capabilities: Capabilities {
            clock: ClockOf::Caller,
            durable_on_reply: false,
            safe_over_failover: false,
            presence: PresenceBy::Record,
        },
        group_max: u32::MAX,
        warnings: Vec::new(),
        version: proto::VERSION,
        store: "eu".into(),
    };
    recorded.has("Describe.reply", description.clone(), &description);
    let durable = Capabilities { durable_on_reply: true, ..description.capabilities };
    let warnings = vec!["slow".to_owned()];
    let durable = Description { capabilities: durable, warnings, ..description };
    recorded.has("DescribeDurable.reply", durable.clone(), &durable);

    let times = BothClocks { store: Some(NOW), server: presence().sample };
    recorded.verb::<proto::NowRequest>((), times);
    recorded.verb::<proto::IdentityRequest>((), identity());
    let call = ("this program".to_owned(), identity());
    recorded.verb::<proto::RecallRequest>(call, Recalled::Recovered);

    let joined = Joined { known_as: Some(incarnation(1)), seen: Some(identity()) };
    recorded.verb::<proto::JoinRequest>((member(), presence(), NOW), joined.clone());
    let renewed = Joined { known_as: None, ..joined };
    recorded.verb::<proto::RenewRequest>((incarnation(1), presence(), NOW), renewed);
    recorded.verb::<proto::LeaveRequest>((incarnation(1), NOW), ());
    recorded.verb::<proto::MembersRequest>(NOW, members());

    let claimed = (leases(incarnation(2)), without_holder(incarnation(2)));
    recorded.verb_reads::<proto::ClaimRequest>((claim(), NOW), claimed.0, &claimed.1);
    recorded.verb::<proto::ExtendRequest>((extends(), NOW), extended());
    recorded.verb::<proto::ReleaseRequest>((release(), NOW), ());
    let read = snowmint_coord::Acquired {
        leases: without_holder(incarnation(6)),
        ..acquired(incarnation(6))
    };
    let acquired = acquired(incarnation(6));
    recorded.verb_reads::<proto::AcquireRequest>((acquire(), NOW), acquired, &read);
    recorded.verb::<proto::RelinquishRequest>((relinquish(), NOW), ());
    recorded.verb::<proto::ExcludeRequest>((exclude(), NOW), ());
    recorded.verb::<proto::WorkersRequest>(NOW, slots());

    recorded.verb::<proto::ReserveRequest>(reserve(), segment());
    let range = reserve_range();
    recorded.has::<proto::ReserveRequest, _>("ReserveRange.request", range.clone(), &range);
    recorded.verb::<proto::GiveBackRequest>(give_back(), 70);

    recorded.verb::<proto::DefineRequest>(new_definition(), definition());
    recorded.verb::<proto::AlterRequest>((new_definition(), Some(0)), definition());
    recorded.verb::<proto::RestripeRequest>(restripe(), definition());
    let call = ("orders".to_owned(), SourceState::Deleted);
    recorded.verb::<proto::SetStateRequest>(call, definition());
    recorded.verb::<proto::GetRequest>("orders".to_owned(), definition());
    recorded.verb::<proto::ListRequest>((), catalog());

    recorded.verb::<proto::FastForwardRequest>(fast_forward(), identity());
    recorded.verb::<proto::AcceptLeadRequest>(Mark::new(28), ());

    for (name, error) in [("Failure", failure()), ("FailureInShort", failure().without_detail())] {
        let bytes = recorded.take(&format!("{name}.reply"));
        let mut response = proto::DoneResponse::decode(&*bytes).unwrap();
        let read = response.error().take().unwrap();
        assert_eq!(read, error.clone().write(), "{name}");
        assert_eq!(format!("{:?}", store_error(read)), format!("{error:?}"), "{name}");
    }
    assert!(recorded.0.is_empty(), "nothing has the name of {:?}", recorded.0);
}

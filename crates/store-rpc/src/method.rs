//! Methods of the service: each calls the verb of its name. A verb's messages have their rows here,
//! the values in them elsewhere.

use prost::Message;
use snowmint_coord::{
    Acquire, Acquired, BoxFuture, Catalog, ClaimRequest, Definition, Error, Exclude, Extend,
    Extended, FastForward, GiveBack, Incarnation, Lease, Mark, Member, MemberInfo, NewDefinition,
    Presence, Recalled, Release, Relinquish, Reserve, Restripe, Result, Segment, SlotInfo,
    SourceState, StoreCall, StoreIdentity, StoreReply, Verb,
};
use snowmint_core::UnixMillis;
use snowmint_wire::grpc::store as proto;

use crate::codec::{Codec, codec, few};
use crate::definitions::usable;
use crate::members::Joined;
use crate::whole_store::{BothClocks, short};

/// A request: the message by which a method is called.
pub trait StoreRequest: Message + Clone + Default + 'static {
    /// The verb that the method calls.
    const VERB: Verb;
    /// The method's path.
    const PATH: &'static str;
    /// The arguments of the verb.
    type Call: Codec<Self> + Send;
    /// The message that responds.
    type Response: StoreResponse;
    /// The result of the verb, as servers report it.
    type Reply: Codec<Self::Response>;
}

/// A response, which can be an error of the store.
pub trait StoreResponse: Message + Default + 'static {
    /// Returns the place of the error.
    fn error(&mut self) -> &mut Option<proto::Error>;
}

macro_rules! responses {
    ($($response:ident)*) => {$(
        impl StoreResponse for proto::$response {
            fn error(&mut self) -> &mut Option<proto::Error> {
                &mut self.error
            }
        }
    )*};
}

responses! {
    DescribeResponse NowResponse IdentityResponse DoneResponse MembersResponse ClaimResponse
    ExtendResponse RecallResponse AcquireResponse WorkersResponse ReserveResponse GiveBackResponse
    DefinitionResponse ListResponse
}

codec! {
    () as NowRequest {} = [()];
    BothClocks as NowResponse { error: none, store, server } = [BothClocks { store, server }];
    () as IdentityRequest {} = [()];
    StoreIdentity as IdentityResponse { error: none, identity: needed("identity") } = [identity];
    (String, StoreIdentity) as RecallRequest { seen: needed("identity"), who: checked(short) }
        = [(who, seen)];
    Recalled as RecallResponse { error: none, recovered } = [recovered];
    // Servers do not report the store's standing, so no plan depends on it: a program collects no
    // reports, and so recovers nothing. Nor does it accept another database server.
    FastForward as FastForwardRequest {
        marks_at_least, segments, writes_at_least, new_identity, recoveries_at_least,
        forget_journals, catalog_at_least,
    } = [FastForward {
        marks_at_least, segments, writes_at_least, recoveries_at_least, catalog_at_least,
        planned_on, forget_journals, new_identity, same_server, values_only,
    }] with planned_on = None, same_server = true, values_only = true;
    Mark as AcceptLeadRequest { until } = [until];

    (Member, Presence, UnixMillis) as JoinRequest {
        member: needed("member"), presence: needed("presence"), now,
    } = [(member, presence, now)];
    (Incarnation, Presence, UnixMillis) as RenewRequest {
        member, presence: needed("presence"), now,
    } = [(member, presence, now)];
    Joined as DoneResponse { error: none, known_as, seen } = [Joined { known_as, seen }];
    (Incarnation, UnixMillis) as LeaveRequest { member, now } = [(member, now)];
    UnixMillis as MembersRequest { now } = [now];
    Vec<MemberInfo> as MembersResponse { error: none, members } = [members];

    (ClaimRequest, UnixMillis) as ClaimRequest {
        pool: needed("pool"), member, owner, count, preference, supersedes, mark_at_most, request,
        now,
    } = [(ClaimRequest {
        pool, member, owner, count, preference, supersedes, mark_at_most, request,
    }, now)];
    Vec<Lease> as ClaimResponse { error: none, leases } = [leases];
    (Vec<Extend>, UnixMillis) as ExtendRequest { items: checked(few), now } = [(items, now)];
    Vec<Result<Extended, Error>> as ExtendResponse { error: none, items } = [items];
    (Release, UnixMillis) as ReleaseRequest { pool, slot, term, mark, now, from, member }
        = [(Release { pool, slot, term, holder: member, mark, from }, now)];
    (Acquire, UnixMillis) as AcquireRequest {
        pool: needed("pool"), member, owner, slots: checked(few), silent: checked(few), supersedes,
        length, request, now,
    } = [(Acquire {
        pool, member, owner, slots, stalled: silent, supersedes, length, request,
    }, now)];
    Acquired as AcquireResponse { error: none, leases, held } = [Acquired { leases, held }];
    (Relinquish, UnixMillis) as RelinquishRequest { pool, member, slots: checked(few), now }
        = [(Relinquish { pool, member, slots }, now)];
    (Exclude, UnixMillis) as ExcludeRequest { pool: needed("pool"), slots, until, label, now }
        = [(Exclude { pool, slots, until, label }, now)];
    UnixMillis as WorkersRequest { now } = [now];
    Vec<SlotInfo> as WorkersResponse { error: none, slots } = [slots];

    Segment as ReserveResponse { error: none, first, last, version, catalog_version, writes, at }
        = [Segment { first, last, version, catalog_version, writes, at }];
    GiveBack as GiveBackRequest { source, first, last, version }
        = [GiveBack { source, first, last, version }];
    u64 as GiveBackResponse { error: none, version } = [version];

    NewDefinition as DefineRequest { new: needed("definition") } = [new];
    (NewDefinition, Option<u64>) as AlterRequest { new: needed("definition"), if_version }
        = [(new, if_version)];
    Restripe as RestripeRequest { new: needed("definition"), if_version, mark }
        = [Restripe { new, if_version, mark }];
    (String, SourceState) as SetStateRequest { name, state } = [(name, state)];
    String as GetRequest { name } = [name];
    () as ListRequest {} = [()];
    Catalog as ListResponse { error: none, version, definitions: checked(usable) }
        = [Catalog { version, definitions }];
}

/// A repeat of the call has the same effect.
pub const IDEMPOTENT: bool = true;
/// A repeat of the call would return another result.
pub const AT_MOST_ONCE: bool = false;

/// A client, which sends requests to a server.
pub trait SendsRequests: Sync {
    /// Sends a request, and returns the reply. `again`: whether the request may be repeated.
    fn ask<Q: StoreRequest>(
        &self,
        again: bool,
        call: Q::Call,
    ) -> impl Future<Output = Result<Q::Reply>> + Send;
}

/// Defines the methods: `Verb: Request(arguments) -> Response(result);`.
///
/// `Verb again { names }: …` is a method whose arguments and result are those of the verb, so that
/// [`send`] makes the call: `again` is [`IDEMPOTENT`] or [`AT_MOST_ONCE`].
macro_rules! methods {
    ($(
        $verb:ident $($again:ident { $($arg:ident),* })?:
            $request:ident($call:ty) -> $response:ident($reply:ty);
    )*) => {
        $(impl StoreRequest for proto::$request {
            const VERB: Verb = Verb::$verb;
            const PATH: &'static str = concat!("/snowmint.store.v1.Store/", stringify!($verb));
            type Call = $call;
            type Response = proto::$response;
            type Reply = $reply;
        })*

        /// Returns the verb that a method calls, by its path; `None` for a method that calls none.
        #[must_use]
        pub fn verb_of(path: &str) -> Option<Verb> {
            Some(match path.rsplit('/').next()? {
                $(stringify!($verb) => Verb::$verb,)*
                _ => return None,
            })
        }

        /// Makes a call that is no more than its request and its reply.
        ///
        /// # Errors
        /// `Unsupported` for any other call.
        pub fn send<'a>(
            client: &'a impl SendsRequests,
            call: StoreCall<'a>,
        ) -> BoxFuture<'a, Result<StoreReply>> {
            match call {
                $($(StoreCall::$verb { $($arg),* } => Box::pin(async move {
                    let call = ($($arg.to_owned()),*);
                    client.ask::<proto::$request>($again, call).await.map(StoreReply::$verb)
                }),)?)*
                call => Box::pin(async move { Err(unavailable(call.verb())) }),
            }
        }
    };
}

/// Returns the error for a verb that only the store's own URL offers.
fn unavailable(verb: Verb) -> Error {
    let message = format!("verb {verb} is not available through servers; use the store's own URL");
    Error::unsupported(message).with_verb(verb)
}

methods! {
    Now: NowRequest(()) -> NowResponse(BothClocks);
    Identity: IdentityRequest(()) -> IdentityResponse(StoreIdentity);
    Recall IDEMPOTENT { who, seen }:
        RecallRequest((String, StoreIdentity)) -> RecallResponse(Recalled);
    Join: JoinRequest((Member, Presence, UnixMillis)) -> DoneResponse(Joined);
    Renew: RenewRequest((Incarnation, Presence, UnixMillis)) -> DoneResponse(Joined);
    Leave IDEMPOTENT { member, now }: LeaveRequest((Incarnation, UnixMillis)) -> DoneResponse(());
    Members: MembersRequest(UnixMillis) -> MembersResponse(Vec<MemberInfo>);
    Claim: ClaimRequest((ClaimRequest, UnixMillis)) -> ClaimResponse(Vec<Lease>);
    Extend: ExtendRequest((Vec<Extend>, UnixMillis))
        -> ExtendResponse(Vec<Result<Extended, Error>>);
    Release IDEMPOTENT { release, now }: ReleaseRequest((Release, UnixMillis)) -> DoneResponse(());
    Acquire: AcquireRequest((Acquire, UnixMillis)) -> AcquireResponse(Acquired);
    Relinquish IDEMPOTENT { relinquish, now }:
        RelinquishRequest((Relinquish, UnixMillis)) -> DoneResponse(());
    Exclude IDEMPOTENT { exclude, now }: ExcludeRequest((Exclude, UnixMillis)) -> DoneResponse(());
    Workers: WorkersRequest(UnixMillis) -> WorkersResponse(Vec<SlotInfo>);
    Reserve: ReserveRequest(Reserve) -> ReserveResponse(Segment);
    // A repeat of an applied call is rejected, so its result would be wrong.
    GiveBack AT_MOST_ONCE { back }: GiveBackRequest(GiveBack) -> GiveBackResponse(u64);
    Define IDEMPOTENT { new }: DefineRequest(NewDefinition) -> DefinitionResponse(Definition);
    Alter: AlterRequest((NewDefinition, Option<u64>)) -> DefinitionResponse(Definition);
    Restripe AT_MOST_ONCE { restripe }: RestripeRequest(Restripe) -> DefinitionResponse(Definition);
    SetState IDEMPOTENT { name, state }:
        SetStateRequest((String, SourceState)) -> DefinitionResponse(Definition);
    Get IDEMPOTENT { name }: GetRequest(String) -> DefinitionResponse(Definition);
    List IDEMPOTENT {}: ListRequest(()) -> ListResponse(Catalog);
    FastForward: FastForwardRequest(FastForward) -> IdentityResponse(StoreIdentity);
    AcceptLead IDEMPOTENT { until }: AcceptLeadRequest(Mark) -> DoneResponse(());
}

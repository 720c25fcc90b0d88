//! Methods of the service: each calls the verb of its name.

use prost::Message;
use snowmint_coord::{
    Acquire, Acquired, Catalog, ClaimRequest, Definition, Error, Exclude, Extend, Extended,
    FastForward, GiveBack, Incarnation, Lease, Mark, Member, MemberInfo, NewDefinition, Presence,
    Recalled, Release, Relinquish, Reserve, Restripe, Segment, SlotInfo, SourceState,
    StoreIdentity, Verb,
};
use snowmint_core::UnixMillis;
use snowmint_wire::grpc::store as proto;

use crate::codec::Codec;
use crate::members::Joined;
use crate::whole_store::BothClocks;

/// A request: the message by which a method is called.
pub trait StoreRequest: Message + Clone + Default + 'static {
    /// The verb that the method calls.
    const VERB: Verb;
    /// The method's path.
    const PATH: &'static str;
    /// The arguments of the verb.
    type Call: Codec<Self>;
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

/// Defines the methods: `Verb: Request(arguments) -> Response(result);`.
macro_rules! methods {
    ($($verb:ident: $request:ident($call:ty) -> $response:ident($reply:ty);)*) => {
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
    };
}

methods! {
    Now: NowRequest(()) -> NowResponse(BothClocks);
    Identity: IdentityRequest(()) -> IdentityResponse(StoreIdentity);
    Recall: RecallRequest((String, StoreIdentity)) -> RecallResponse(Recalled);
    Join: JoinRequest((Member, Presence, UnixMillis)) -> DoneResponse(Joined);
    Renew: RenewRequest((Incarnation, Presence, UnixMillis)) -> DoneResponse(Joined);
    Leave: LeaveRequest((Incarnation, UnixMillis)) -> DoneResponse(());
    Members: MembersRequest(UnixMillis) -> MembersResponse(Vec<MemberInfo>);
    Claim: ClaimRequest((ClaimRequest, UnixMillis)) -> ClaimResponse(Vec<Lease>);
    Extend: ExtendRequest((Vec<Extend>, UnixMillis))
        -> ExtendResponse(Vec<Result<Extended, Error>>);
    Release: ReleaseRequest((Release, UnixMillis)) -> DoneResponse(());
    Acquire: AcquireRequest((Acquire, UnixMillis)) -> AcquireResponse(Acquired);
    Relinquish: RelinquishRequest((Relinquish, UnixMillis)) -> DoneResponse(());
    Exclude: ExcludeRequest((Exclude, UnixMillis)) -> DoneResponse(());
    Workers: WorkersRequest(UnixMillis) -> WorkersResponse(Vec<SlotInfo>);
    Reserve: ReserveRequest(Reserve) -> ReserveResponse(Segment);
    GiveBack: GiveBackRequest(GiveBack) -> GiveBackResponse(u64);
    Define: DefineRequest(NewDefinition) -> DefinitionResponse(Definition);
    Alter: AlterRequest((NewDefinition, Option<u64>)) -> DefinitionResponse(Definition);
    Restripe: RestripeRequest(Restripe) -> DefinitionResponse(Definition);
    SetState: SetStateRequest((String, SourceState)) -> DefinitionResponse(Definition);
    Get: GetRequest(String) -> DefinitionResponse(Definition);
    List: ListRequest(()) -> ListResponse(Catalog);
    FastForward: FastForwardRequest(FastForward) -> IdentityResponse(StoreIdentity);
    AcceptLead: AcceptLeadRequest(Mark) -> DoneResponse(());
}

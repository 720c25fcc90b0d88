//! The calls of `snowmint.store.v1.Store`: the server's own store, verb by verb, for embedded
//! clients. This module decides nothing.

mod at;
mod permissions;
mod respond;

use std::fmt;
use std::sync::Arc;

use axum::http::request::Parts;
use prost::Message as _;
use snowmint_coord::{Restripe, Store, random};
use snowmint_core::{Clock as _, SystemClock};
use snowmint_store_rpc::{BothClocks, Codec as _, Description, Joined, Malformed, StoreRequest};
use snowmint_wire::error::Code;
use snowmint_wire::grpc::store::{
    AcceptLeadRequest, AcquireRequest, AcquireResponse, AlterRequest, ClaimRequest, ClaimResponse,
    DefineRequest, DefinitionResponse, DescribeRequest, DescribeResponse, DoneResponse,
    ExcludeRequest, ExtendRequest, ExtendResponse, FastForwardRequest, GetRequest, GiveBackRequest,
    GiveBackResponse, INSTANCE, IdentityRequest, IdentityResponse, JoinRequest, LeaveRequest,
    ListRequest, ListResponse, MembersRequest, MembersResponse, NowRequest, NowResponse,
    RecallRequest, RecallResponse, ReleaseRequest, RelinquishRequest, RenewRequest, ReserveRequest,
    ReserveResponse, RestripeRequest, SERVICE, SetStateRequest, VERSION, VERSION_MIN,
    WorkersRequest, WorkersResponse, is_understood, store_server,
};
use tonic::{Request, Response, Status};

use self::at::named_by;
use self::permissions::Allowed;
use self::respond::{for_caller, respond};
use super::caller::of_caller;
use crate::access::Deed;
use crate::error::Error;
use crate::service::programs::{
    self, Aliased, Claiming, GivenRanges, MemberAlias, Plans, TargetStore, WorkerLimits, Writing,
};
use crate::service::{NotDone, Service, SharedTurn, TurnTarget};

/// Longest message: all sections at once. Its parsed form takes up to fifty times as much memory.
pub(super) const MESSAGE_BYTES_MAX: usize = 512 * 1024;

/// Returns whether a call's path belongs to this service.
pub(super) fn is_store_call(path: &str) -> bool {
    let rest = path.strip_prefix('/').and_then(|path| path.strip_prefix(SERVICE));
    rest.is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the store that a call is for, without reading more of it than necessary: the head names
/// it, and the message in `Describe` alone.
pub(super) fn target_of(head: &Parts, message: &[u8]) -> TurnTarget {
    if head.uri.path().ends_with("/Describe") {
        let described = DescribeRequest::decode(message);
        return TurnTarget::store(described.as_ref().map_or("", |described| &described.store));
    }
    let named = head.headers.get(INSTANCE).and_then(|named| named.to_str().ok());
    TurnTarget::store(named.and_then(named_by).map_or("", |(_, secondary_store)| secondary_store))
}

type GrpcResult<T> = Result<Response<T>, Status>;

/// Forwards verbs to the store.
#[derive(Clone)]
pub(super) struct StoreService {
    store: Arc<dyn Store>,
    service: Service,
    /// Random name of this server's instance, which callers repeat.
    instance: Arc<str>,
    plans: Arc<Plans>,
    worker_limits: Arc<WorkerLimits>,
    given: Arc<GivenRanges>,
    /// Most external leases of a scope.
    machines_max: u64,
}

impl fmt::Debug for StoreService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreService").field("store", &self.store).finish_non_exhaustive()
    }
}

impl StoreService {
    /// # Errors
    /// Without randomness.
    pub(super) fn new(
        store: Arc<dyn Store>,
        service: Service,
        machines_max: u64,
    ) -> Result<Self, snowmint_coord::Error> {
        let instance = format!("{:016x}", random::number()?).into();
        let (plans, worker_limits, given) = Default::default();
        Ok(Self { store, service, instance, plans, worker_limits, given, machines_max })
    }

    /// Returns a call whose wire form and rights are checked, and its store.
    async fn authorized_store<T: StoreRequest<Call: Aliased>>(
        &self,
        request: Request<T>,
        permission: fn(&Service, &T) -> Allowed,
    ) -> Result<(TargetStore, T::Call), Status> {
        let AuthorizedCall { at, call, .. } = self.authorize(request, permission).await?;
        Ok((at, call))
    }

    /// Returns the same, and the service acting for the caller.
    async fn authorize<T: StoreRequest<Call: Aliased>>(
        &self,
        request: Request<T>,
        permission: fn(&Service, &T) -> Allowed,
    ) -> Result<AuthorizedCall<T::Call>, Status> {
        let unknown = || {
            let message = "server instance changed since Describe; call Describe again";
            Status::from(Error::new(Code::Closed, message))
        };
        let named = request.metadata().get(INSTANCE).and_then(|named| named.to_str().ok());
        let (instance, secondary_store) = named.and_then(named_by).ok_or_else(unknown)?;
        if instance != &*self.instance {
            return Err(unknown());
        }
        let secondary_store = secondary_store.to_owned();
        let service = of_caller(&self.service, &request);
        let turn = request.extensions().get::<SharedTurn>().cloned().unwrap_or_default();
        let message = request.into_inner();
        permission(&service, &message)?;
        // The store was open when it was described.
        let at = self.at(&service, secondary_store).await.map_err(|_| unknown())?;
        let member_alias = MemberAlias::of(&service);
        let mut call = T::Call::read(message).map_err(malformed)?;
        call.alias(&member_alias);
        Ok(AuthorizedCall { at, service, member_alias, turn, call })
    }

    /// Returns the server's own store, or the secondary store of this name.
    async fn at(
        &self,
        service: &Service,
        secondary_store: String,
    ) -> Result<TargetStore, snowmint_coord::Error> {
        let store = match secondary_store.as_str() {
            "" => Arc::clone(&self.store),
            name => self.service.secondary_store(name).await?,
        };
        Ok(TargetStore { store, secondary_store, in_full: service.caller().sees_details() })
    }
}

/// A call that passed its checks, with its caller's members by their aliases.
struct AuthorizedCall<C> {
    at: TargetStore,
    service: Service,
    member_alias: MemberAlias,
    /// The call's turn at its store.
    turn: SharedTurn,
    call: C,
}

/// Returns the status for a request without a value.
fn malformed(malformed: Malformed) -> Status {
    let (code, message) = malformed.of_request();
    Error::new(code, message).into()
}

#[tonic::async_trait]
impl store_server::Store for StoreService {
    async fn describe(&self, request: Request<DescribeRequest>) -> GrpcResult<DescribeResponse> {
        let service = of_caller(&self.service, &request);
        service.may_join()?;
        let DescribeRequest { version, store } = request.into_inner();
        if !is_understood(version) {
            // The first version had no field for it.
            let version = version.max(1);
            let message = format!(
                "caller speaks version {version} of {SERVICE}, minimum {VERSION_MIN}; update the \
                 program"
            );
            return Err(Error::new(Code::Unsupported, message).into());
        }
        let described = async {
            let at = self.at(&service, store).await?;
            let identity = at.store.identity().await?;
            Ok::<_, snowmint_coord::Error>(Description {
                instance: at.instance(&self.instance),
                namespace: at.store.namespace().to_owned(),
                identity: Some(identity),
                capabilities: at.store.capabilities(),
                group_max: at.store.group_max(),
                warnings: at.store.warnings(),
                version: VERSION,
                store: at.secondary_store,
            })
        };
        respond(described.await, service.caller().sees_details())
    }

    async fn now(&self, request: Request<NowRequest>) -> GrpcResult<NowResponse> {
        let (at, ()) = self.authorized_store(request, permissions::member).await?;
        let now = at.store.now().await;
        at.respond(now.map(|store| BothClocks { store, server: SystemClock.unix_ms() }))
    }

    async fn identity(&self, request: Request<IdentityRequest>) -> GrpcResult<IdentityResponse> {
        let (at, ()) = self.authorized_store(request, permissions::member).await?;
        at.respond(at.store.identity().await)
    }

    async fn recall(&self, request: Request<RecallRequest>) -> GrpcResult<RecallResponse> {
        let (at, (who, seen)) = self.authorized_store(request, permissions::member).await?;
        at.respond(at.store.recall(&who, &seen).await)
    }

    async fn join(&self, request: Request<JoinRequest>) -> GrpcResult<DoneResponse> {
        let AuthorizedCall { at, service, member_alias, call, .. } =
            self.authorize(request, permissions::member).await?;
        let (member, presence, now) = call;
        service.check_presence(presence)?;
        service.caller().count(Deed::Join)?;
        let by = (&at, &service, &member_alias);
        let joined = self.worker_limits.join(by, &member, presence, now).await;
        at.joined(&service, &member, &joined);
        let known_as = (!member_alias.can_be_server()).then_some(member.incarnation);
        at.respond(joined.map(|()| Joined { known_as, seen: at.store.seen() }))
    }

    async fn renew(&self, request: Request<RenewRequest>) -> GrpcResult<DoneResponse> {
        let AuthorizedCall { at, service, call, .. } =
            self.authorize(request, permissions::member).await?;
        let (member, presence, now) = call;
        service.check_presence(presence)?;
        let renewed = at.store.renew(member, presence, now).await;
        at.respond(renewed.map(|()| Joined { known_as: None, seen: at.store.seen() }))
    }

    async fn leave(&self, request: Request<LeaveRequest>) -> GrpcResult<DoneResponse> {
        let AuthorizedCall { at, service, call: (member, now), .. } =
            self.authorize(request, permissions::member).await?;
        let left = at.store.leave(member, now).await;
        at.left(&service, member, &left);
        at.respond(left)
    }

    async fn members(&self, request: Request<MembersRequest>) -> GrpcResult<MembersResponse> {
        let (at, now) = self.authorized_store(request, permissions::member).await?;
        at.respond(at.store.members(now).await)
    }

    async fn claim(&self, request: Request<ClaimRequest>) -> GrpcResult<ClaimResponse> {
        let AuthorizedCall { at, service, member_alias, call: (claim, now), .. } =
            self.authorize(request, permissions::claiming).await?;
        service.caller().count(Deed::Claim)?;
        let (at, service, member_alias, machines_max) =
            (&at, &service, &member_alias, self.machines_max);
        let claiming = Claiming { at, service, member_alias, now, machines_max };
        let claimed = match self.worker_limits.claim(&claiming, claim).await {
            Ok(leases) => Ok(leases),
            Err(NotDone::Unknown(error)) => Err(error),
            Err(NotDone::Refused(error)) => return Err(error.into()),
        };
        at.claimed(service, &claimed);
        at.respond(claimed)
    }

    async fn extend(&self, request: Request<ExtendRequest>) -> GrpcResult<ExtendResponse> {
        let AuthorizedCall { at, service, call: (items, now), .. } =
            self.authorize(request, permissions::extending).await?;
        let before = items.clone();
        let extended = self.worker_limits.extend(&at, &service, items, now).await;
        at.extended(&service, &before, &extended);
        let for_caller = |error| for_caller(error, at.in_full);
        at.respond(extended.map(|items| {
            items.into_iter().map(|item| item.map_err(for_caller)).collect::<Vec<_>>()
        }))
    }

    async fn release(&self, request: Request<ReleaseRequest>) -> GrpcResult<DoneResponse> {
        let AuthorizedCall { at, service, call: (release, now), .. } =
            self.authorize(request, permissions::releasing).await?;
        let released = at.store.release(&release, now).await;
        at.released(&service, &release, &released);
        at.respond(released)
    }

    async fn acquire(&self, request: Request<AcquireRequest>) -> GrpcResult<AcquireResponse> {
        let AuthorizedCall { at, service, call: (acquire, now), .. } =
            self.authorize(request, permissions::operator).await?;
        let acquired = at.store.acquire(&acquire, now).await;
        at.acquired(&service, &acquired);
        at.respond(acquired)
    }

    async fn relinquish(&self, request: Request<RelinquishRequest>) -> GrpcResult<DoneResponse> {
        let AuthorizedCall { at, service, call: (relinquish, now), .. } =
            self.authorize(request, permissions::relinquishing).await?;
        let done = programs::relinquish(&at, &service, &relinquish, now).await;
        at.relinquish(&service, &relinquish, &done);
        at.respond(done)
    }

    async fn workers(&self, request: Request<WorkersRequest>) -> GrpcResult<WorkersResponse> {
        let (at, now) = self.authorized_store(request, permissions::member).await?;
        at.respond(at.store.workers(now).await)
    }

    async fn reserve(&self, request: Request<ReserveRequest>) -> GrpcResult<ReserveResponse> {
        let AuthorizedCall { at, service, member_alias, call: mut reserve, .. } =
            self.authorize(request, permissions::reserving).await?;
        if service.is_held_to_limits(&reserve.source) {
            reserve = match self.plans.limited(&at, &service, reserve).await {
                Ok(reserve) => reserve,
                Err(error) => return at.not_done(error),
            };
        }
        // A segment contains its end: a client that gets fewer numbers than it needs calls again.
        reserve.length = service.spend_secondary(&reserve.source, reserve.length).await?;
        let from = (at.secondary_store.as_str(), &*at.store);
        let reserved = service.reserve_for_client(from, &reserve).await;
        if let Ok(segment) = &reserved {
            self.given.took(&at, &member_alias, &reserve.source, segment);
        }
        at.respond(reserved)
    }

    async fn give_back(&self, request: Request<GiveBackRequest>) -> GrpcResult<GiveBackResponse> {
        let AuthorizedCall { at, service, member_alias, call: back, .. } =
            self.authorize(request, permissions::giving_back).await?;
        if service.is_held_to_limits(&back.source)
            && let Err(error) = self.given.check(&at, &member_alias, &back)
        {
            return at.rejected(error);
        }
        at.respond(at.store.give_back(&back).await)
    }

    async fn define(&self, request: Request<DefineRequest>) -> GrpcResult<DefinitionResponse> {
        let AuthorizedCall { at, service, turn, call: new, .. } = self
            .authorize(request, |service, define: &DefineRequest| {
                permissions::defining(service, define.new.as_ref())
            })
            .await?;
        at.written(at.writes((&service, &turn), &new, Writing::Define).await)
    }

    async fn alter(&self, request: Request<AlterRequest>) -> GrpcResult<DefinitionResponse> {
        let AuthorizedCall { at, service, turn, call: (new, if_version), .. } = self
            .authorize(request, |service, alter: &AlterRequest| {
                permissions::defining(service, alter.new.as_ref())
            })
            .await?;
        at.written(at.writes((&service, &turn), &new, Writing::Alter { if_version }).await)
    }

    async fn restripe(&self, request: Request<RestripeRequest>) -> GrpcResult<DefinitionResponse> {
        let AuthorizedCall { at, service, turn, call, .. } = self
            .authorize(request, |service, restripe: &RestripeRequest| {
                permissions::defining(service, restripe.new.as_ref())
            })
            .await?;
        let Restripe { new, if_version, mark } = call;
        at.written(at.writes((&service, &turn), &new, Writing::Restripe { if_version, mark }).await)
    }

    async fn set_state(&self, request: Request<SetStateRequest>) -> GrpcResult<DefinitionResponse> {
        let AuthorizedCall { at, service, call: (name, state), .. } = self
            .authorize(request, |service, set: &SetStateRequest| service.may_define(&set.name))
            .await?;
        service.spend_definition(&name).await?;
        let set = at.change((&service, "switched", &name), at.store.set_state(&name, state));
        at.respond(set.await)
    }

    async fn get(&self, request: Request<GetRequest>) -> GrpcResult<DefinitionResponse> {
        let (at, name) = self.authorized_store(request, permissions::member).await?;
        at.respond(at.store.get(&name).await)
    }

    async fn list(&self, request: Request<ListRequest>) -> GrpcResult<ListResponse> {
        let (at, ()) = self.authorized_store(request, permissions::member).await?;
        at.respond(at.store.list().await)
    }

    async fn fast_forward(
        &self,
        request: Request<FastForwardRequest>,
    ) -> GrpcResult<IdentityResponse> {
        let AuthorizedCall { at, service, call, .. } =
            self.authorize(request, permissions::operator).await?;
        let moved = match at.check_move(&call).await {
            Ok(()) => at.store.fast_forward(&call).await,
            Err(error) => Err(error),
        };
        at.respond(at.changed(&service, &programs::raised(&call), moved))
    }

    async fn accept_lead(&self, request: Request<AcceptLeadRequest>) -> GrpcResult<DoneResponse> {
        let AuthorizedCall { at, service, call: until, .. } =
            self.authorize(request, permissions::operator).await?;
        let allowed = at.store.accept_lead(until).await;
        at.respond(at.changed(&service, &programs::allowed_to_lead(until), allowed))
    }

    async fn exclude(&self, request: Request<ExcludeRequest>) -> GrpcResult<DoneResponse> {
        let AuthorizedCall { at, service, call: (exclude, now), .. } =
            self.authorize(request, permissions::operator).await?;
        let excluded = at.store.exclude(&exclude, now).await;
        at.respond(at.changed(&service, &programs::exclusion_text(&exclude), excluded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_is_for_the_store_that_its_head_or_describe_names() {
        let target = |verb: &str, named: Option<&str>, message: &[u8]| {
            let mut request = axum::http::Request::post(format!("/{SERVICE}/{verb}"));
            if let Some(named) = named {
                request = request.header(INSTANCE, named);
            }
            let (head, ()) = request.body(()).unwrap().into_parts();
            target_of(&head, message)
        };
        let slow = TurnTarget::store("slow");
        assert_eq!(target("Reserve", Some("0123/slow"), &[]), slow);
        for named in [None, Some("0123"), Some("0123/")] {
            assert_eq!(target("Reserve", named, &[]), TurnTarget::Primary, "{named:?}");
        }
        let describe = |store: &str| {
            let request = DescribeRequest { store: store.into(), ..DescribeRequest::default() };
            target("Describe", None, &request.encode_to_vec())
        };
        assert_eq!((describe("slow"), describe("")), (slow, TurnTarget::Primary));
        assert_eq!(target("Describe", None, &[0xff]), TurnTarget::Primary, "no message");
    }
}

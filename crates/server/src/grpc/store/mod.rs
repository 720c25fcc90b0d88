//! The calls of `snowmint.store.v1.Store`: the server's own store, verb by verb, for programs that mint
//! beside themselves. Nothing is decided here.

mod read;
mod write;

use std::fmt;
use std::sync::Arc;

use snowmint_coord::{Store, random};
use snowmint_core::{Clock as _, SystemClock};
use snowmint_wire::error::Code;
use snowmint_wire::grpc::store::{
    AcceptLeadRequest, AlterRequest, AvoidRequest, ClaimRequest, ClaimResponse, DOOR,
    DefineRequest, DefinitionResponse, DescribeRequest, DescribeResponse, DoneResponse,
    ExtendRequest, ExtendResponse, FastForwardRequest, GetRequest, GiveBackRequest,
    GiveBackResponse, IdentityRequest, IdentityResponse, JoinRequest, LeaveRequest, LetGoRequest,
    ListRequest, ListResponse, MembersRequest, MembersResponse, NewDefinition, NowRequest,
    NowResponse, ReleaseRequest, RenewRequest, ReserveRequest, ReserveResponse, RestripeRequest,
    SERVICE, SetStateRequest, TakeRequest, TakeResponse, VERSION_MIN, WorkersRequest,
    WorkersResponse, is_understood, store_server,
};
use tonic::{Request, Response, Status};

use self::read::{incarnation, time};
use self::write::told;
use super::of_caller;
use crate::service::{Error, Service};

/// Longest message: all sections at once, or the longest definition.
pub(super) const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

type Answer<T> = Result<Response<T>, Status>;
type Allowed = Result<(), Error>;

/// Passes verbs on to the store.
#[derive(Clone)]
pub(super) struct Relay {
    store: Arc<dyn Store>,
    service: Service,
    /// Made at random with this server: callers name it.
    door: Arc<str>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Relay {
    /// # Errors
    /// Without randomness.
    pub(super) fn new(
        store: Arc<dyn Store>,
        service: Service,
    ) -> Result<Self, snowmint_coord::Error> {
        let door = format!("{:016x}", random::number()?).into();
        Ok(Self { store, service, door })
    }

    /// What is asked, by somebody who knows whom he asks, and who may.
    fn asked<T>(&self, request: Request<T>, may: fn(&Service, &T) -> Allowed) -> Result<T, Status> {
        Ok(self.asked_by(request, may)?.1)
    }

    /// The same, and the service for whoever asks.
    fn asked_by<T>(
        &self,
        request: Request<T>,
        may: fn(&Service, &T) -> Allowed,
    ) -> Result<(Service, T), Status> {
        let named = request.metadata().get(DOOR);
        if named.is_none_or(|named| named.as_bytes() != self.door.as_bytes()) {
            let message = "this is not the server that was described; describe it again";
            return Err(Error::new(Code::Closed, message).into());
        }
        let service = of_caller(&self.service, &request);
        let message = request.into_inner();
        may(&service, &message)?;
        Ok((service, message))
    }
}

/// A member of the store, which mints for itself.
fn member<T>(service: &Service, _: &T) -> Allowed {
    service.may_join()
}

/// Somebody who moves the whole store.
fn operator<T>(service: &Service, _: &T) -> Allowed {
    service.may_operate()
}

/// Somebody who changes a definition.
fn definer(service: &Service, new: Option<&NewDefinition>) -> Allowed {
    service.may_define(new.map_or("", |new| &new.name))
}

#[tonic::async_trait]
impl store_server::Store for Relay {
    async fn describe(&self, request: Request<DescribeRequest>) -> Answer<DescribeResponse> {
        of_caller(&self.service, &request).may_join()?;
        let DescribeRequest { version } = request.into_inner();
        if !is_understood(version) {
            let message = format!(
                "the caller is older than this server: it speaks form {version} of {SERVICE}, which is \
                 understood from {VERSION_MIN} on: update the program"
            );
            return Err(Error::new(Code::Unsupported, message).into());
        }
        let (store, door) = (&self.store, self.door.to_string());
        told(store.identity().await, |identity| write::description(&**store, door, identity))
    }

    async fn now(&self, request: Request<NowRequest>) -> Answer<NowResponse> {
        let NowRequest {} = self.asked(request, member)?;
        let store = self.store.now().await;
        told(store, |store| NowResponse {
            refusal: None,
            store: store.map(|time| time.get()),
            server: SystemClock.unix_ms().get(),
        })
    }

    async fn identity(&self, request: Request<IdentityRequest>) -> Answer<IdentityResponse> {
        let IdentityRequest {} = self.asked(request, member)?;
        told(self.store.identity().await, write::identified)
    }

    async fn join(&self, request: Request<JoinRequest>) -> Answer<DoneResponse> {
        let JoinRequest { member, presence, now } = self.asked(request, member)?;
        let (member, presence) = (read::member(member)?, read::presence(presence)?);
        told(self.store.join(&member, presence, time(now)).await, write::done)
    }

    async fn renew(&self, request: Request<RenewRequest>) -> Answer<DoneResponse> {
        let RenewRequest { member, presence, now } = self.asked(request, member)?;
        let (member, presence) = (incarnation(&member)?, read::presence(presence)?);
        told(self.store.renew(member, presence, time(now)).await, write::done)
    }

    async fn leave(&self, request: Request<LeaveRequest>) -> Answer<DoneResponse> {
        let LeaveRequest { member, now } = self.asked(request, member)?;
        told(self.store.leave(incarnation(&member)?, time(now)).await, write::done)
    }

    async fn members(&self, request: Request<MembersRequest>) -> Answer<MembersResponse> {
        let MembersRequest { now } = self.asked(request, member)?;
        told(self.store.members(time(now)).await, write::members)
    }

    async fn claim(&self, request: Request<ClaimRequest>) -> Answer<ClaimResponse> {
        let (claim, now) = read::claim(self.asked(request, member)?)?;
        told(self.store.claim(&claim, now).await, write::claimed)
    }

    async fn extend(&self, request: Request<ExtendRequest>) -> Answer<ExtendResponse> {
        let ExtendRequest { items, now } = self.asked(request, member)?;
        let items: Vec<_> = items.into_iter().map(read::extend).collect();
        told(self.store.extend(&items, time(now)).await, write::extended)
    }

    async fn release(&self, request: Request<ReleaseRequest>) -> Answer<DoneResponse> {
        let (release, now) = read::release(self.asked(request, member)?);
        told(self.store.release(&release, now).await, write::done)
    }

    async fn take(&self, request: Request<TakeRequest>) -> Answer<TakeResponse> {
        let (take, now) = read::take(self.asked(request, operator)?)?;
        told(self.store.take(&take, now).await, write::taken)
    }

    async fn let_go(&self, request: Request<LetGoRequest>) -> Answer<DoneResponse> {
        let (let_go, now) = read::let_go(self.asked(request, operator)?)?;
        told(self.store.let_go(&let_go, now).await, write::done)
    }

    async fn workers(&self, request: Request<WorkersRequest>) -> Answer<WorkersResponse> {
        let WorkersRequest { now } = self.asked(request, member)?;
        told(self.store.workers(time(now)).await, write::slots)
    }

    async fn reserve(&self, request: Request<ReserveRequest>) -> Answer<ReserveResponse> {
        let reserve = read::reserve(
            self.asked(request, |service, reserve| service.may_reserve(&reserve.source))?,
        );
        told(self.store.reserve(&reserve).await, write::segment)
    }

    async fn give_back(&self, request: Request<GiveBackRequest>) -> Answer<GiveBackResponse> {
        let back = read::give_back(
            self.asked(request, |service, back| service.may_reserve(&back.source))?,
        );
        let version = self.store.give_back(&back).await;
        told(version, |version| GiveBackResponse { refusal: None, version })
    }

    async fn define(&self, request: Request<DefineRequest>) -> Answer<DefinitionResponse> {
        let (service, DefineRequest { new }) =
            self.asked_by(request, |service, define| definer(service, define.new.as_ref()))?;
        let new = read::definition(new)?;
        let before = service.before_change(&new.name).await;
        let defined = self.store.define(&new).await;
        service.changed_beside("defined", &new.name, before).await;
        told(defined, write::defined)
    }

    async fn alter(&self, request: Request<AlterRequest>) -> Answer<DefinitionResponse> {
        let (service, AlterRequest { new, if_version }) =
            self.asked_by(request, |service, alter| definer(service, alter.new.as_ref()))?;
        let new = read::definition(new)?;
        let before = service.before_change(&new.name).await;
        let altered = self.store.alter(&new, if_version).await;
        service.changed_beside("altered", &new.name, before).await;
        told(altered, write::defined)
    }

    async fn restripe(&self, request: Request<RestripeRequest>) -> Answer<DefinitionResponse> {
        let (service, request) =
            self.asked_by(request, |service, restripe| definer(service, restripe.new.as_ref()))?;
        let restripe = read::restripe(request)?;
        let name = &restripe.new.name;
        let before = service.before_change(name).await;
        let restriped = self.store.restripe(&restripe).await;
        service.changed_beside("restriped", name, before).await;
        told(restriped, write::defined)
    }

    async fn set_state(&self, request: Request<SetStateRequest>) -> Answer<DefinitionResponse> {
        let (service, request) =
            self.asked_by(request, |service, set| service.may_define(&set.name))?;
        let state = read::state(request.state)?;
        let before = service.before_change(&request.name).await;
        let set = self.store.set_state(&request.name, state).await;
        service.changed_beside("switched", &request.name, before).await;
        told(set, write::defined)
    }

    async fn get(&self, request: Request<GetRequest>) -> Answer<DefinitionResponse> {
        let GetRequest { name } = self.asked(request, member)?;
        told(self.store.get(&name).await, write::defined)
    }

    async fn list(&self, request: Request<ListRequest>) -> Answer<ListResponse> {
        let ListRequest {} = self.asked(request, member)?;
        told(self.store.list().await, write::catalog)
    }

    async fn fast_forward(&self, request: Request<FastForwardRequest>) -> Answer<IdentityResponse> {
        let (service, request) = self.asked_by(request, operator)?;
        let forward = read::fast_forward(request);
        service.moved(&format!("moved forward: {forward:?}"));
        told(self.store.fast_forward(&forward).await, write::identified)
    }

    async fn accept_lead(&self, request: Request<AcceptLeadRequest>) -> Answer<DoneResponse> {
        let (service, AcceptLeadRequest { until }) = self.asked_by(request, operator)?;
        service.moved(&format!("allowed to lead until {until}"));
        told(self.store.accept_lead(read::mark(until)).await, write::done)
    }

    async fn avoid(&self, request: Request<AvoidRequest>) -> Answer<DoneResponse> {
        let (service, request) = self.asked_by(request, operator)?;
        let (avoid, now) = read::avoid(request)?;
        service.moved(&format!("asked to avoid numbers: {avoid:?}"));
        told(self.store.avoid(&avoid, now).await, write::done)
    }
}

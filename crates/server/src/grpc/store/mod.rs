//! The calls of `snowmint.store.v1.Store`: the server's own store, verb by verb, for programs that mint
//! beside themselves. Nothing is decided here.

mod may;
mod read;
mod speaker;
mod taking;
mod write;

use std::fmt;
use std::sync::Arc;

use snowmint_coord::{Standing, Store, random};
use snowmint_core::{Clock as _, SystemClock};
use snowmint_wire::error::Code;
use snowmint_wire::grpc::store::{
    AcceptLeadRequest, AlterRequest, AvoidRequest, ClaimRequest, ClaimResponse, DOOR,
    DefineRequest, DefinitionResponse, DescribeRequest, DescribeResponse, DoneResponse,
    ExtendRequest, ExtendResponse, FastForwardRequest, GetRequest, GiveBackRequest,
    GiveBackResponse, IdentityRequest, IdentityResponse, JoinRequest, LeaveRequest, LetGoRequest,
    ListRequest, ListResponse, MembersRequest, MembersResponse, NowRequest, NowResponse,
    RecallRequest, RecallResponse, ReleaseRequest, RenewRequest, ReserveRequest, ReserveResponse,
    RestripeRequest, SERVICE, SetStateRequest, TakeRequest, TakeResponse, VERSION_MIN,
    WorkersRequest, WorkersResponse, is_understood, store_server,
};
use tonic::{Request, Response, Status};

use self::may::Allowed;
use self::read::time;
use self::speaker::Speaker;
use self::taking::{NotTaken, Plans};
use self::write::told;
use super::of_caller;
use crate::service::{Error, Service};

/// Longest message: all sections at once, or the longest definition. What is read of it takes up to fifty times as much.
pub(super) const MESSAGE_BYTES_MAX: usize = 512 * 1024;

/// Whether a call's path is one of this service.
pub(super) fn is_asked(path: &str) -> bool {
    let rest = path.strip_prefix('/').and_then(|path| path.strip_prefix(SERVICE));
    rest.is_some_and(|rest| rest.starts_with('/'))
}

type Answer<T> = Result<Response<T>, Status>;

/// Passes verbs on to the store.
#[derive(Clone)]
pub(super) struct Relay {
    store: Arc<dyn Store>,
    service: Service,
    /// Made at random with this server: callers name it.
    door: Arc<str>,
    plans: Arc<Plans>,
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
        Ok(Self { store, service, door, plans: Arc::default() })
    }

    /// A request whose wire form and rights were checked, and the store that it is for.
    async fn asked<T>(
        &self,
        request: Request<T>,
        may: fn(&Service, &T) -> Allowed,
    ) -> Result<(Arc<dyn Store>, T), Status> {
        let Asked { at, message, .. } = self.asked_by(request, may).await?;
        Ok((at.store, message))
    }

    /// The same, and the service acting for the caller.
    async fn asked_by<T>(
        &self,
        request: Request<T>,
        may: fn(&Service, &T) -> Allowed,
    ) -> Result<Asked<T>, Status> {
        let unknown = || {
            let message = "this is not the server that was described; describe it again";
            Status::from(Error::new(Code::Closed, message))
        };
        let named = request.metadata().get(DOOR).and_then(|named| named.to_str().ok());
        let (door, beside) = named.and_then(named_by).ok_or_else(unknown)?;
        if door != &*self.door {
            return Err(unknown());
        }
        let beside = beside.to_owned();
        let service = of_caller(&self.service, &request);
        let message = request.into_inner();
        may(&service, &message)?;
        // It was open when it was described.
        let at = self.at(beside).await.map_err(|_| unknown())?;
        let speaker = Speaker::of(&service);
        Ok(Asked { at, service, speaker, message })
    }

    /// The server's own store, or the one of this name beside it.
    async fn at(&self, beside: String) -> Result<At, snowmint_coord::Error> {
        let store = match beside.as_str() {
            "" => Arc::clone(&self.store),
            name => self.service.store_beside(name).await?,
        };
        Ok(At { store, beside })
    }
}

/// A store that is asked, and its name, if it is one beside the server's own.
struct At {
    store: Arc<dyn Store>,
    beside: String,
}

/// A question that may be asked.
struct Asked<T> {
    at: At,
    service: Service,
    speaker: Speaker,
    message: T,
}

/// What the header says: the door, and behind it the name of a store beside the server's own.
fn named_by(header: &str) -> Option<(&str, &str)> {
    match header.split_once('/') {
        Some((_, "")) => None,
        Some(named) => Some(named),
        None => Some((header, "")),
    }
}

impl At {
    /// What the header of calls says.
    fn door(&self, door: &str) -> String {
        if self.beside.is_empty() { door.to_owned() } else { format!("{door}/{}", self.beside) }
    }

    /// What was changed by whom. The server's own definitions are shown before and after.
    async fn change<T>(
        &self,
        (service, how, name): (&Service, &'static str, &str),
        change: impl Future<Output = T>,
    ) -> T {
        if !self.beside.is_empty() {
            service.moved(&format!("{} beside: source {name} {how}", self.beside));
            return change.await;
        }
        let before = service.before_change(name).await;
        let changed = change.await;
        service.changed_beside(how, name, before).await;
        changed
    }

    /// Whether a definition agrees with others of the server's own store, as a server's own does.
    async fn agrees(
        &self,
        service: &Service,
        (name, spec): (&str, &str),
    ) -> snowmint_coord::Result<()> {
        match self.beside.as_str() {
            "" => service.agrees(name, spec).await,
            _ => Ok(()),
        }
    }

    /// What was done to the store as a whole.
    fn moved(&self, service: &Service, how: &str) {
        match self.beside.as_str() {
            "" => service.moved(how),
            name => service.moved(&format!("{name} beside: {how}")),
        }
    }
}

#[tonic::async_trait]
impl store_server::Store for Relay {
    async fn describe(&self, request: Request<DescribeRequest>) -> Answer<DescribeResponse> {
        of_caller(&self.service, &request).may_join()?;
        let DescribeRequest { version, store } = request.into_inner();
        if !is_understood(version) {
            let message = format!(
                "the caller is older than this server: it speaks form {version} of {SERVICE}, which is \
                 understood from {VERSION_MIN} on: update the program"
            );
            return Err(Error::new(Code::Unsupported, message).into());
        }
        let described = async {
            let at = self.at(store).await?;
            let identity = at.store.identity().await?;
            Ok::<_, snowmint_coord::Error>(write::description(
                &*at.store,
                (at.door(&self.door), at.beside),
                identity,
            ))
        };
        told(described.await, |described| described)
    }

    async fn now(&self, request: Request<NowRequest>) -> Answer<NowResponse> {
        let (store, NowRequest {}) = self.asked(request, may::member).await?;
        told(store.now().await, |now| NowResponse {
            refusal: None,
            store: now.map(|time| time.get()),
            server: SystemClock.unix_ms().get(),
        })
    }

    async fn identity(&self, request: Request<IdentityRequest>) -> Answer<IdentityResponse> {
        let (store, IdentityRequest {}) = self.asked(request, may::member).await?;
        told(store.identity().await, write::identified)
    }

    async fn recall(&self, request: Request<RecallRequest>) -> Answer<RecallResponse> {
        let (store, message) = self.asked(request, may::member).await?;
        let (who, seen) = read::recall(message)?;
        told(store.recall(&who, &seen).await, write::recalled)
    }

    async fn join(&self, request: Request<JoinRequest>) -> Answer<DoneResponse> {
        let Asked { at, speaker, message, .. } = self.asked_by(request, may::member).await?;
        let JoinRequest { member, presence, now } = message;
        let (known_as, member) = read::member(&speaker, member)?;
        let presence = read::presence(presence)?;
        let joined = at.store.join(&member, presence, time(now)).await;
        told(joined, |()| write::joined(known_as, at.store.seen()))
    }

    async fn renew(&self, request: Request<RenewRequest>) -> Answer<DoneResponse> {
        let Asked { at, speaker, message, .. } = self.asked_by(request, may::member).await?;
        let RenewRequest { member, presence, now } = message;
        let (member, presence) = (speaker.own(&member)?, read::presence(presence)?);
        let renewed = at.store.renew(member, presence, time(now)).await;
        told(renewed, |()| write::joined(None, at.store.seen()))
    }

    async fn leave(&self, request: Request<LeaveRequest>) -> Answer<DoneResponse> {
        let Asked { at, speaker, message, .. } = self.asked_by(request, may::member).await?;
        let LeaveRequest { member, now } = message;
        told(at.store.leave(speaker.own(&member)?, time(now)).await, write::done)
    }

    async fn members(&self, request: Request<MembersRequest>) -> Answer<MembersResponse> {
        let (store, MembersRequest { now }) = self.asked(request, may::member).await?;
        told(store.members(time(now)).await, write::members)
    }

    async fn claim(&self, request: Request<ClaimRequest>) -> Answer<ClaimResponse> {
        let Asked { at, speaker, message, .. } = self.asked_by(request, may::claiming).await?;
        let (claim, now) = read::claim(&speaker, message)?;
        told(at.store.claim(&claim, now).await, write::claimed)
    }

    async fn extend(&self, request: Request<ExtendRequest>) -> Answer<ExtendResponse> {
        let Asked { at, speaker, message, .. } = self.asked_by(request, may::extending).await?;
        let ExtendRequest { items, now } = message;
        let items = read::few(items, |item| read::extend(&speaker, item))?;
        told(at.store.extend(&items, time(now)).await, write::extended)
    }

    async fn release(&self, request: Request<ReleaseRequest>) -> Answer<DoneResponse> {
        let Asked { at, speaker, message, .. } = self.asked_by(request, may::releasing).await?;
        let (release, now) = read::release(&speaker, message)?;
        told(at.store.release(&release, now).await, write::done)
    }

    async fn take(&self, request: Request<TakeRequest>) -> Answer<TakeResponse> {
        let Asked { at, speaker, message, .. } = self.asked_by(request, may::operator).await?;
        let (take, now) = read::take(&speaker, message)?;
        told(at.store.take(&take, now).await, write::taken)
    }

    async fn let_go(&self, request: Request<LetGoRequest>) -> Answer<DoneResponse> {
        let Asked { at, speaker, message, .. } = self.asked_by(request, may::letting_go).await?;
        let (let_go, now) = read::let_go(&speaker, message)?;
        told(at.store.let_go(&let_go, now).await, write::done)
    }

    async fn workers(&self, request: Request<WorkersRequest>) -> Answer<WorkersResponse> {
        let (store, WorkersRequest { now }) = self.asked(request, may::member).await?;
        told(store.workers(time(now)).await, write::slots)
    }

    async fn reserve(&self, request: Request<ReserveRequest>) -> Answer<ReserveResponse> {
        let Asked { at, service, message, .. } = self.asked_by(request, may::reserving).await?;
        let mut reserve = read::reserve(message);
        if service.is_held_to_limits(&reserve.source) {
            reserve = match self.plans.hold(&at, &service, reserve).await {
                Ok(reserve) => reserve,
                Err(NotTaken::Refused(error)) => return Err(error.into()),
                Err(NotTaken::Unknown(error)) => return told(Err(error), write::segment),
            };
        }
        // A segment says where it ends: a client that gets fewer than it asked for asks again.
        reserve.length = service.spend_beside(&reserve.source, reserve.length).await?;
        let from = (at.beside.as_str(), &*at.store);
        told(service.reserve_for_program(from, &reserve).await, write::segment)
    }

    async fn give_back(&self, request: Request<GiveBackRequest>) -> Answer<GiveBackResponse> {
        let (store, asked) = self.asked(request, may::giving_back).await?;
        let back = read::give_back(asked);
        let version = store.give_back(&back).await;
        told(version, |version| GiveBackResponse { refusal: None, version })
    }

    async fn define(&self, request: Request<DefineRequest>) -> Answer<DefinitionResponse> {
        let Asked { at, service, message, .. } = self
            .asked_by(request, |service, define: &DefineRequest| {
                may::defining(service, define.new.as_ref())
            })
            .await?;
        let new = read::definition(message.new)?;
        may::naming(&service, &*at.store, (&new.name, &new.spec)).await?;
        let how = (&service, "defined", new.name.as_str());
        let change = async {
            at.agrees(&service, (&new.name, &new.spec)).await?;
            at.store.define(&new).await
        };
        told(at.change(how, change).await, write::defined)
    }

    async fn alter(&self, request: Request<AlterRequest>) -> Answer<DefinitionResponse> {
        let Asked { at, service, message, .. } = self
            .asked_by(request, |service, alter: &AlterRequest| {
                may::defining(service, alter.new.as_ref())
            })
            .await?;
        let AlterRequest { new, if_version } = message;
        let new = read::definition(new)?;
        may::naming(&service, &*at.store, (&new.name, &new.spec)).await?;
        let how = (&service, "altered", new.name.as_str());
        let change = async {
            at.agrees(&service, (&new.name, &new.spec)).await?;
            at.store.alter(&new, if_version).await
        };
        told(at.change(how, change).await, write::defined)
    }

    async fn restripe(&self, request: Request<RestripeRequest>) -> Answer<DefinitionResponse> {
        let Asked { at, service, message, .. } = self
            .asked_by(request, |service, restripe: &RestripeRequest| {
                may::defining(service, restripe.new.as_ref())
            })
            .await?;
        let restripe = read::restripe(message)?;
        let new = &restripe.new;
        may::naming(&service, &*at.store, (&new.name, &new.spec)).await?;
        let how = (&service, "restriped", restripe.new.name.as_str());
        told(at.change(how, at.store.restripe(&restripe)).await, write::defined)
    }

    async fn set_state(&self, request: Request<SetStateRequest>) -> Answer<DefinitionResponse> {
        let Asked { at, service, message, .. } = self
            .asked_by(request, |service, set: &SetStateRequest| service.may_define(&set.name))
            .await?;
        let SetStateRequest { name, state } = message;
        let state = read::state(state)?;
        let set = at.change((&service, "switched", &name), at.store.set_state(&name, state));
        told(set.await, write::defined)
    }

    async fn get(&self, request: Request<GetRequest>) -> Answer<DefinitionResponse> {
        let (store, GetRequest { name }) = self.asked(request, may::member).await?;
        told(store.get(&name).await, write::defined)
    }

    async fn list(&self, request: Request<ListRequest>) -> Answer<ListResponse> {
        let (store, ListRequest {}) = self.asked(request, may::member).await?;
        told(store.list().await, write::catalog)
    }

    async fn fast_forward(&self, request: Request<FastForwardRequest>) -> Answer<IdentityResponse> {
        let Asked { at, service, message, .. } = self.asked_by(request, may::operator).await?;
        let forward = read::fast_forward(message);
        match at.store.standing().await {
            // It would end the doubt, whoever is missing.
            Ok(Standing { doubt: Some(_), .. }) => {
                let message = "the store is in doubt: recover it (POST /v1/recovery, snowmint worker recover --server \
                               URL), which asks for what each journal knows";
                return Err(Error::new(Code::StoreWentBack, message).into());
            }
            Ok(_) => {}
            Err(error) => return told(Err(error), write::identified),
        }
        at.moved(&service, &format!("moved forward: {forward:?}"));
        told(at.store.fast_forward(&forward).await, write::identified)
    }

    async fn accept_lead(&self, request: Request<AcceptLeadRequest>) -> Answer<DoneResponse> {
        let Asked { at, service, message, .. } = self.asked_by(request, may::operator).await?;
        let AcceptLeadRequest { until } = message;
        at.moved(&service, &format!("allowed to lead until {until}"));
        told(at.store.accept_lead(read::mark(until)).await, write::done)
    }

    async fn avoid(&self, request: Request<AvoidRequest>) -> Answer<DoneResponse> {
        let Asked { at, service, message, .. } = self.asked_by(request, may::operator).await?;
        let (avoid, now) = read::avoid(message)?;
        at.moved(&service, &format!("asked to avoid numbers: {avoid:?}"));
        told(at.store.avoid(&avoid, now).await, write::done)
    }
}

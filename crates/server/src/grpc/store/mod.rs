//! The calls of `snowmint.store.v1.Store`: the server's own store, verb by verb, for embedded
//! clients. This module decides nothing.

mod at;
mod defining;
mod given;
mod may;
mod programs;
mod read;
mod speaker;
mod taking;
mod trail;
mod verb;
mod words;
mod write;

use std::fmt;
use std::sync::Arc;

use axum::http::request::Parts;
use prost::Message as _;
use snowmint_coord::{FastForward, Restripe, Standing, Store, random};
use snowmint_core::{Clock as _, SystemClock};
use snowmint_wire::error::Code;
use snowmint_wire::grpc::store::{
    AcceptLeadRequest, AcquireRequest, AcquireResponse, AlterRequest, ClaimRequest, ClaimResponse,
    DefineRequest, DefinitionResponse, DescribeRequest, DescribeResponse, DoneResponse,
    ExcludeRequest, ExtendRequest, ExtendResponse, FastForwardRequest, GetRequest, GiveBackRequest,
    GiveBackResponse, INSTANCE, IdentityRequest, IdentityResponse, JoinRequest, LeaveRequest,
    ListRequest, ListResponse, MembersRequest, MembersResponse, NowRequest, NowResponse,
    RecallRequest, RecallResponse, ReleaseRequest, RelinquishRequest, RenewRequest, ReserveRequest,
    ReserveResponse, RestripeRequest, SERVICE, SetStateRequest, VERSION_MIN, WorkersRequest,
    WorkersResponse, is_understood, store_server,
};
use tonic::{Request, Response, Status};

use self::at::{At, named_by};
use self::defining::Writing;
use self::given::Given;
use self::may::Allowed;
use self::programs::{Claiming, Programs};
use self::speaker::Speaker;
use self::taking::{NotTaken, Plans};
use self::write::told;
use super::of_caller;
use crate::access::Deed;
use crate::service::{Error, Service, SharedTurn, Target};

/// Longest message: all sections at once. Its parsed form takes up to fifty times as much memory.
pub(super) const MESSAGE_BYTES_MAX: usize = 512 * 1024;

/// Returns whether a call's path belongs to this service.
pub(super) fn is_asked(path: &str) -> bool {
    let rest = path.strip_prefix('/').and_then(|path| path.strip_prefix(SERVICE));
    rest.is_some_and(|rest| rest.starts_with('/'))
}

pub(super) use verb::verb_of;

/// Returns the store that a call is for, without reading more of it than necessary: the head names
/// it, and the message in `Describe` alone.
pub(super) fn target_of(head: &Parts, message: &[u8]) -> Target {
    if head.uri.path().ends_with("/Describe") {
        let described = DescribeRequest::decode(message);
        return Target::store(described.as_ref().map_or("", |described| &described.store));
    }
    let named = head.headers.get(INSTANCE).and_then(|named| named.to_str().ok());
    Target::store(named.and_then(named_by).map_or("", |(_, beside)| beside))
}

type Answer<T> = Result<Response<T>, Status>;

/// Forwards verbs to the store.
#[derive(Clone)]
pub(super) struct Relay {
    store: Arc<dyn Store>,
    service: Service,
    /// Random name of this server's instance, which callers repeat.
    instance: Arc<str>,
    plans: Arc<Plans>,
    programs: Arc<Programs>,
    given: Arc<Given>,
    /// Most external leases of a scope.
    machines_max: u64,
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
        machines_max: u64,
    ) -> Result<Self, snowmint_coord::Error> {
        let instance = format!("{:016x}", random::number()?).into();
        let (plans, programs, given) = Default::default();
        Ok(Self { store, service, instance, plans, programs, given, machines_max })
    }

    /// Returns a request whose wire form and rights are checked, and its store.
    async fn asked<T>(
        &self,
        request: Request<T>,
        may: fn(&Service, &T) -> Allowed,
    ) -> Result<(At, T), Status> {
        let Asked { at, message, .. } = self.asked_by(request, may).await?;
        Ok((at, message))
    }

    /// Returns the same, and the service acting for the caller.
    async fn asked_by<T>(
        &self,
        request: Request<T>,
        may: fn(&Service, &T) -> Allowed,
    ) -> Result<Asked<T>, Status> {
        let unknown = || {
            let message = "server instance changed since Describe; call Describe again";
            Status::from(Error::new(Code::Closed, message))
        };
        let named = request.metadata().get(INSTANCE).and_then(|named| named.to_str().ok());
        let (instance, beside) = named.and_then(named_by).ok_or_else(unknown)?;
        if instance != &*self.instance {
            return Err(unknown());
        }
        let beside = beside.to_owned();
        let service = of_caller(&self.service, &request);
        let turn = request.extensions().get::<SharedTurn>().cloned().unwrap_or_default();
        let message = request.into_inner();
        may(&service, &message)?;
        // The store was open when it was described.
        let at = self.at(&service, beside).await.map_err(|_| unknown())?;
        let speaker = Speaker::of(&service);
        Ok(Asked { at, service, speaker, turn, message })
    }

    /// Returns the server's own store, or the secondary store of this name.
    async fn at(&self, service: &Service, beside: String) -> Result<At, snowmint_coord::Error> {
        let store = match beside.as_str() {
            "" => Arc::clone(&self.store),
            name => self.service.store_beside(name).await?,
        };
        Ok(At { store, beside, in_full: service.caller().sees_details() })
    }
}

/// A request that passed its checks.
struct Asked<T> {
    at: At,
    service: Service,
    speaker: Speaker,
    /// The call's turn at its store.
    turn: SharedTurn,
    message: T,
}

#[tonic::async_trait]
impl store_server::Store for Relay {
    async fn describe(&self, request: Request<DescribeRequest>) -> Answer<DescribeResponse> {
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
            Ok::<_, snowmint_coord::Error>(write::description(
                &*at.store,
                (at.instance(&self.instance), at.beside),
                identity,
            ))
        };
        told(described.await, service.caller().sees_details(), |described| described)
    }

    async fn now(&self, request: Request<NowRequest>) -> Answer<NowResponse> {
        let (at, NowRequest {}) = self.asked(request, may::member).await?;
        at.told(at.store.now().await, |now| NowResponse {
            error: None,
            store: now.map(|time| time.get()),
            server: SystemClock.unix_ms().get(),
        })
    }

    async fn identity(&self, request: Request<IdentityRequest>) -> Answer<IdentityResponse> {
        let (at, IdentityRequest {}) = self.asked(request, may::member).await?;
        at.told(at.store.identity().await, write::identified)
    }

    async fn recall(&self, request: Request<RecallRequest>) -> Answer<RecallResponse> {
        let (at, message) = self.asked(request, may::member).await?;
        let (who, seen) = read::recall(message)?;
        at.told(at.store.recall(&who, &seen).await, write::recalled)
    }

    async fn join(&self, request: Request<JoinRequest>) -> Answer<DoneResponse> {
        let Asked { at, service, speaker, message, .. } =
            self.asked_by(request, may::member).await?;
        let JoinRequest { member, presence, now } = message;
        let (known_as, member) = read::member(&speaker, member)?;
        let presence = read::presence(&speaker, presence)?;
        service.check_presence(presence)?;
        service.count_deed(Deed::Join)?;
        let now = speaker.time(now);
        let by = (&at, &service, &speaker);
        let joined = self.programs.join(by, &member, presence, now).await;
        at.joined(&service, &member, &joined);
        at.told(joined, |()| write::joined(known_as, at.store.seen()))
    }

    async fn renew(&self, request: Request<RenewRequest>) -> Answer<DoneResponse> {
        let Asked { at, service, speaker, message, .. } =
            self.asked_by(request, may::member).await?;
        let RenewRequest { member, presence, now } = message;
        let (member, presence) = (speaker.own(&member)?, read::presence(&speaker, presence)?);
        service.check_presence(presence)?;
        let renewed = at.store.renew(member, presence, speaker.time(now)).await;
        at.told(renewed, |()| write::joined(None, at.store.seen()))
    }

    async fn leave(&self, request: Request<LeaveRequest>) -> Answer<DoneResponse> {
        let Asked { at, service, speaker, message, .. } =
            self.asked_by(request, may::member).await?;
        let LeaveRequest { member, now } = message;
        let member = speaker.own(&member)?;
        let left = at.store.leave(member, speaker.time(now)).await;
        at.left(&service, member, &left);
        at.told(left, write::done)
    }

    async fn members(&self, request: Request<MembersRequest>) -> Answer<MembersResponse> {
        let Asked { at, speaker, message, .. } = self.asked_by(request, may::member).await?;
        let MembersRequest { now } = message;
        at.told(at.store.members(speaker.time(now)).await, write::members)
    }

    async fn claim(&self, request: Request<ClaimRequest>) -> Answer<ClaimResponse> {
        let Asked { at, service, speaker, message, .. } =
            self.asked_by(request, may::claiming).await?;
        let (claim, now) = read::claim(&speaker, message)?;
        service.count_deed(Deed::Claim)?;
        let (at, service, speaker, machines_max) = (&at, &service, &speaker, self.machines_max);
        let claiming = Claiming { at, service, speaker, now, machines_max };
        let claimed = match self.programs.claim(&claiming, claim).await {
            Ok(leases) => Ok(leases),
            Err(NotTaken::Unknown(error)) => Err(error),
            Err(NotTaken::Refused(error)) => return Err(error.into()),
        };
        at.claimed(service, &claimed);
        at.told(claimed, write::claimed)
    }

    async fn extend(&self, request: Request<ExtendRequest>) -> Answer<ExtendResponse> {
        let Asked { at, service, speaker, message, .. } =
            self.asked_by(request, may::extending).await?;
        let ExtendRequest { items, now } = message;
        let items = read::few(items, |item| read::extend(&speaker, item))?;
        let before = items.clone();
        let extended = self.programs.extend(&at, &service, items, speaker.time(now)).await;
        at.extended(&service, &before, &extended);
        at.told(extended, |items| write::extended(items, at.in_full))
    }

    async fn release(&self, request: Request<ReleaseRequest>) -> Answer<DoneResponse> {
        let Asked { at, service, speaker, message, .. } =
            self.asked_by(request, may::releasing).await?;
        let (release, now) = read::release(&speaker, message)?;
        let released = at.store.release(&release, now).await;
        at.released(&service, &release, &released);
        at.told(released, write::done)
    }

    async fn acquire(&self, request: Request<AcquireRequest>) -> Answer<AcquireResponse> {
        let Asked { at, service, speaker, message, .. } =
            self.asked_by(request, may::operator).await?;
        let (acquire, now) = read::acquire(&speaker, message)?;
        let acquired = at.store.acquire(&acquire, now).await;
        at.acquired(&service, &acquired);
        at.told(acquired, write::acquired)
    }

    async fn relinquish(&self, request: Request<RelinquishRequest>) -> Answer<DoneResponse> {
        let Asked { at, service, speaker, message, .. } =
            self.asked_by(request, may::relinquishing).await?;
        let (relinquish, now) = read::relinquish(&speaker, message)?;
        let done = programs::relinquish(&at, &service, &relinquish, now).await;
        at.relinquish(&service, &relinquish, &done);
        at.told(done, write::done)
    }

    async fn workers(&self, request: Request<WorkersRequest>) -> Answer<WorkersResponse> {
        let Asked { at, speaker, message, .. } = self.asked_by(request, may::member).await?;
        let WorkersRequest { now } = message;
        at.told(at.store.workers(speaker.time(now)).await, write::slots)
    }

    async fn reserve(&self, request: Request<ReserveRequest>) -> Answer<ReserveResponse> {
        let Asked { at, service, speaker, message, .. } =
            self.asked_by(request, may::reserving).await?;
        let mut reserve = read::reserve(message);
        if service.is_held_to_limits(&reserve.source) {
            reserve = match self.plans.hold(&at, &service, reserve).await {
                Ok(reserve) => reserve,
                Err(why) => return why.told(&at, write::segment),
            };
        }
        // A segment contains its end: a client that gets fewer numbers than it needs calls again.
        reserve.length = service.spend_beside(&reserve.source, reserve.length).await?;
        let from = (at.beside.as_str(), &*at.store);
        let taken = service.reserve_for_program(from, &reserve).await;
        if let Ok(segment) = &taken {
            self.given.took(&at, &speaker, &reserve.source, segment);
        }
        at.told(taken, write::segment)
    }

    async fn give_back(&self, request: Request<GiveBackRequest>) -> Answer<GiveBackResponse> {
        let Asked { at, service, speaker, message, .. } =
            self.asked_by(request, may::giving_back).await?;
        let back = read::give_back(message);
        if service.is_held_to_limits(&back.source)
            && let Err(error) = self.given.check(&at, &speaker, &back)
        {
            return at.told(Err(error), |version| GiveBackResponse { error: None, version });
        }
        let version = at.store.give_back(&back).await;
        at.told(version, |version| GiveBackResponse { error: None, version })
    }

    async fn define(&self, request: Request<DefineRequest>) -> Answer<DefinitionResponse> {
        let Asked { at, service, turn, message, .. } = self
            .asked_by(request, |service, define: &DefineRequest| {
                may::defining(service, define.new.as_ref())
            })
            .await?;
        let new = read::definition(message.new)?;
        at.writes((&service, &turn), &new, Writing::Define).await
    }

    async fn alter(&self, request: Request<AlterRequest>) -> Answer<DefinitionResponse> {
        let Asked { at, service, turn, message, .. } = self
            .asked_by(request, |service, alter: &AlterRequest| {
                may::defining(service, alter.new.as_ref())
            })
            .await?;
        let AlterRequest { new, if_version } = message;
        at.writes((&service, &turn), &read::definition(new)?, Writing::Alter { if_version }).await
    }

    async fn restripe(&self, request: Request<RestripeRequest>) -> Answer<DefinitionResponse> {
        let Asked { at, service, turn, message, .. } = self
            .asked_by(request, |service, restripe: &RestripeRequest| {
                may::defining(service, restripe.new.as_ref())
            })
            .await?;
        let Restripe { new, if_version, mark } = read::restripe(message)?;
        at.writes((&service, &turn), &new, Writing::Restripe { if_version, mark }).await
    }

    async fn set_state(&self, request: Request<SetStateRequest>) -> Answer<DefinitionResponse> {
        let Asked { at, service, message, .. } = self
            .asked_by(request, |service, set: &SetStateRequest| service.may_define(&set.name))
            .await?;
        let SetStateRequest { name, state } = message;
        let state = read::state(state)?;
        service.spend_definition(&name).await?;
        let set = at.change((&service, "switched", &name), at.store.set_state(&name, state));
        at.told(set.await, write::defined)
    }

    async fn get(&self, request: Request<GetRequest>) -> Answer<DefinitionResponse> {
        let (at, GetRequest { name }) = self.asked(request, may::member).await?;
        at.told(at.store.get(&name).await, write::defined)
    }

    async fn list(&self, request: Request<ListRequest>) -> Answer<ListResponse> {
        let (at, ListRequest {}) = self.asked(request, may::member).await?;
        at.told(at.store.list().await, write::catalog)
    }

    async fn fast_forward(&self, request: Request<FastForwardRequest>) -> Answer<IdentityResponse> {
        let Asked { at, service, message, .. } = self.asked_by(request, may::operator).await?;
        let planned_on = match at.store.standing().await {
            // It would end the doubt, even with members missing.
            Ok(Standing { doubt: Some(_), .. }) => {
                let message = "store is in doubt; recover it with the reports of all journals \
                               (POST /v1/recovery, snowmint worker recover --server URL)";
                return Err(Error::new(Code::StoreRolledBack, message).into());
            }
            // A doubt may begin before the store is moved.
            Ok(standing) => Some(standing),
            Err(error) => return at.told(Err(error), write::identified),
        };
        let forward = FastForward { planned_on, ..read::fast_forward(message) };
        let moved = at.store.fast_forward(&forward).await;
        at.told(at.changed(&service, &words::moved_forward(&forward), moved), write::identified)
    }

    async fn accept_lead(&self, request: Request<AcceptLeadRequest>) -> Answer<DoneResponse> {
        let Asked { at, service, message, .. } = self.asked_by(request, may::operator).await?;
        let AcceptLeadRequest { until } = message;
        let until = read::mark(until);
        let allowed = at.store.accept_lead(until).await;
        at.told(at.changed(&service, &words::allowed_to_lead(until), allowed), write::done)
    }

    async fn exclude(&self, request: Request<ExcludeRequest>) -> Answer<DoneResponse> {
        let Asked { at, service, speaker, message, .. } =
            self.asked_by(request, may::operator).await?;
        let (exclude, now) = read::exclude(&speaker, message)?;
        let excluded = at.store.exclude(&exclude, now).await;
        at.told(at.changed(&service, &words::asked_to_exclude(&exclude), excluded), write::done)
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
        let slow = Target::store("slow");
        assert_eq!(target("Reserve", Some("0123/slow"), &[]), slow);
        for named in [None, Some("0123"), Some("0123/")] {
            assert_eq!(target("Reserve", named, &[]), Target::Primary, "{named:?}");
        }
        let describe = |store: &str| {
            let request = DescribeRequest { store: store.into(), ..DescribeRequest::default() };
            target("Describe", None, &request.encode_to_vec())
        };
        assert_eq!((describe("slow"), describe("")), (slow, Target::Primary));
        assert_eq!(target("Describe", None, &[0xff]), Target::Primary, "no message");
    }
}

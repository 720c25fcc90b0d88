//! Results of the store, as messages.

use snowmint_coord::error::chain;
use snowmint_coord::{
    Acquired, Catalog, ClockOf, Definition, Error as StoreError, ErrorKind, ErrorParts, Extended,
    Incarnation, Lease, MemberInfo, PoolFull, PresenceBy, Recalled, Result as StoreResult, Retry,
    Segment, SlotInfo, SourceState, Store, StoreIdentity,
};
use snowmint_core::UnixMillis;
use snowmint_wire::error::Code;
use snowmint_wire::grpc::store as proto;
use tonic::{Response, Status};

use crate::error::Error;

/// A response that can be an error.
pub(super) trait Fallible: Default {
    fn error(&mut self) -> &mut Option<proto::Error>;
}

macro_rules! fallible {
    ($($message:ident)*) => {
        $(impl Fallible for proto::$message {
            fn error(&mut self) -> &mut Option<proto::Error> {
                &mut self.error
            }
        })*
    };
}

fallible! {
    DescribeResponse NowResponse IdentityResponse DoneResponse MembersResponse ClaimResponse
    ExtendResponse RecallResponse AcquireResponse WorkersResponse ReserveResponse GiveBackResponse
    DefinitionResponse ListResponse
}

/// Writes any result of the store, for a caller that may read details if `in_full`; a status when
/// the store is closed.
pub(super) fn respond<T, A: Fallible>(
    result: StoreResult<T>,
    in_full: bool,
    write: impl FnOnce(T) -> A,
) -> Result<Response<A>, Status> {
    match result {
        Ok(done) => Ok(Response::new(write(done))),
        // This server's state, not the caller's fault: another server may have the store open.
        Err(error) if matches!(error.kind(), ErrorKind::Closed) => {
            Err(Error::new(Code::Closed, "server has closed its store; call another server").into())
        }
        Err(error) => {
            let mut message = A::default();
            *message.error() = Some(error_of(&error, in_full));
            Ok(Response::new(message))
        }
    }
}

/// Writes an error. The back end's own text stays in the log: it may name hosts, paths and users.
fn error_of(error: &StoreError, in_full: bool) -> proto::Error {
    if std::error::Error::source(error).is_some() {
        tracing::warn!(error = %chain(error), "the store rejected a call of an embedded client");
    }
    let ErrorParts { code, texts, numbers, full } = error.kind().parts();
    let retry_after_ms = match error.retry() {
        Retry::Never => None,
        Retry::Now => Some(0),
        Retry::AfterMs(ms) => Some(ms),
    };
    let message = error.message().into_owned();
    let detail = error.detail().filter(|_| in_full).unwrap_or_default().to_owned();
    let pool_full = full.map(pool_full);
    proto::Error { code, texts, numbers, pool_full, retry_after_ms, message, detail }
}

fn pool_full(full: PoolFull) -> proto::PoolFull {
    let holder = |holder: snowmint_coord::Holder| proto::Holder {
        slot: holder.slot,
        member: holder.incarnation.to_string(),
        owner: holder.owner,
        lapses_at: holder.expires_at.get(),
    };
    proto::PoolFull {
        pool: full.pool,
        groups: full.groups,
        only: full.only,
        held: full.held,
        marked_ahead: full.marked_ahead,
        holders: full.holders.into_iter().map(holder).collect(),
        usable_at: full.usable_at.map(|time| time.get()),
        usable_in_ms: full.usable_in_ms,
        by_recovery: full.by_recovery,
    }
}

pub(super) fn description(
    store: &dyn Store,
    (instance, secondary_store): (String, String),
    identity: StoreIdentity,
) -> proto::DescribeResponse {
    let can = store.capabilities();
    proto::DescribeResponse {
        error: None,
        instance,
        namespace: store.namespace().to_owned(),
        identity: Some(identity_of(identity)),
        has_clock: can.clock == ClockOf::Store,
        durable_on_reply: can.durable_on_reply,
        safe_over_failover: can.safe_over_failover,
        presence_by_session: can.presence == PresenceBy::Session,
        group_max: store.group_max(),
        warnings: store.warnings(),
        version: proto::VERSION,
        store: secondary_store,
    }
}

fn identity_of(identity: StoreIdentity) -> proto::Identity {
    let StoreIdentity { id, writes } = identity;
    proto::Identity { id, writes }
}

pub(super) fn identified(identity: StoreIdentity) -> proto::IdentityResponse {
    proto::IdentityResponse { error: None, identity: Some(identity_of(identity)) }
}

pub(super) fn recalled(recalled: Recalled) -> proto::RecallResponse {
    proto::RecallResponse { error: None, recovered: recalled == Recalled::Recovered }
}

pub(super) fn done((): ()) -> proto::DoneResponse {
    joined(None, None)
}

pub(super) fn joined(
    known_as: Option<Incarnation>,
    seen: Option<StoreIdentity>,
) -> proto::DoneResponse {
    let (known_as, seen) = (known_as.map(|member| member.to_string()), seen.map(identity_of));
    proto::DoneResponse { error: None, known_as, seen }
}

pub(super) fn members(members: Vec<MemberInfo>) -> proto::MembersResponse {
    let members = members.into_iter().map(member).collect();
    proto::MembersResponse { error: None, members }
}

fn member(info: MemberInfo) -> proto::MemberInfo {
    let snowmint_coord::Member { incarnation, owner, host, process, address } = info.member;
    let incarnation = incarnation.to_string();
    let presence = proto::Presence {
        sample: info.presence.sample.get(),
        renewals: info.presence.renewals,
        ttl_ms: info.presence.ttl_ms,
    };
    proto::MemberInfo {
        member: Some(proto::Member { incarnation, owner, host, process, address }),
        presence: Some(presence),
        joined_at: info.joined_at.get(),
        renewed_at: info.renewed_at.get(),
        live: info.live,
    }
}

fn lease(lease: Lease) -> proto::Lease {
    proto::Lease {
        pool: lease.pool,
        slot: lease.slot,
        term: lease.term.get(),
        floor: lease.floor.get(),
        mark: lease.mark.get(),
    }
}

pub(super) fn claimed(leases: Vec<Lease>) -> proto::ClaimResponse {
    let leases = leases.into_iter().map(lease).collect();
    proto::ClaimResponse { error: None, leases }
}

pub(super) fn extended(items: Vec<StoreResult<Extended>>, in_full: bool) -> proto::ExtendResponse {
    let item = |item: StoreResult<Extended>| match item {
        Ok(Extended { mark, catalog_version, writes }) => {
            proto::Extended { error: None, mark: mark.get(), catalog_version, writes }
        }
        Err(error) => {
            let error = Some(error_of(&error, in_full));
            proto::Extended { error, ..proto::Extended::default() }
        }
    };
    proto::ExtendResponse { error: None, items: items.into_iter().map(item).collect() }
}

pub(super) fn acquired(acquired: Acquired) -> proto::AcquireResponse {
    let held =
        |(slot, member): (u64, Incarnation)| proto::Held { slot, member: member.to_string() };
    proto::AcquireResponse {
        error: None,
        leases: acquired.leases.into_iter().map(lease).collect(),
        held: acquired.held.into_iter().map(held).collect(),
    }
}

pub(super) fn slots(slots: Vec<SlotInfo>) -> proto::WorkersResponse {
    proto::WorkersResponse { error: None, slots: slots.into_iter().map(slot).collect() }
}

fn slot(slot: SlotInfo) -> proto::Slot {
    proto::Slot {
        pool: slot.pool,
        slot: slot.slot,
        term: slot.term.get(),
        mark: slot.mark.get(),
        owner: slot.owner,
        holder: slot.holder.map(|holder| holder.to_string()),
        host: slot.host,
        process: slot.process,
        joined_at: slot.joined_at.map(|time| time.get()),
        held_since: slot.held_since.get(),
        renewed_at: slot.renewed_at.map(|time| time.get()),
        live: slot.live,
    }
}

pub(super) fn segment(segment: Segment) -> proto::ReserveResponse {
    let Segment { first, last, version, catalog_version, writes, at } = segment;
    let at = at.map(UnixMillis::get);
    proto::ReserveResponse { error: None, first, last, version, catalog_version, writes, at }
}

fn definition(definition: Definition) -> proto::Definition {
    let state = match definition.state {
        SourceState::Enabled => proto::State::Enabled,
        SourceState::Disabled => proto::State::Disabled,
        SourceState::Deleted => proto::State::Deleted,
    };
    proto::Definition {
        name: definition.name,
        spec: definition.spec,
        identity: definition.identity,
        version: definition.version,
        state: state.into(),
        mark: definition.segment.mark.get(),
        floor: definition.segment.floor.get(),
        segment_version: definition.segment.version,
    }
}

pub(super) fn defined(source: Definition) -> proto::DefinitionResponse {
    proto::DefinitionResponse { error: None, definition: Some(definition(source)) }
}

pub(super) fn catalog(catalog: Catalog) -> proto::ListResponse {
    let definitions = catalog.definitions.into_iter().map(definition).collect();
    proto::ListResponse { error: None, version: catalog.version, definitions }
}

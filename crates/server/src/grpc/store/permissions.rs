//! Rights to calls of the store.

use snowmint_coord::external::scope_of;
use snowmint_coord::is_worker_pool;
use snowmint_wire::error::Code;
use snowmint_wire::grpc::store::{
    ClaimRequest, ExtendRequest, GiveBackRequest, NewDefinition, ReleaseRequest, RelinquishRequest,
    ReserveRequest,
};

use crate::error::Error;
use crate::service::Service;

pub(super) type Allowed = Result<(), Error>;

/// Checks for a member of the store, which mints for itself.
pub(super) fn member<T>(service: &Service, _: &T) -> Allowed {
    service.may_join()
}

/// Checks for an operator, who moves the whole store.
pub(super) fn operator<T>(service: &Service, _: &T) -> Allowed {
    service.may_operate()
}

/// Checks for a member that takes or gives back numbers of a source, or of a scope of external
/// leases.
fn spending(service: &Service, source: &str) -> Allowed {
    service.may_join()?;
    service.may_reserve(source)
}

pub(super) fn reserving(service: &Service, request: &ReserveRequest) -> Allowed {
    spending(service, &request.source)
}

pub(super) fn giving_back(service: &Service, request: &GiveBackRequest) -> Allowed {
    spending(service, &request.source)
}

/// Checks for a caller that changes a definition.
pub(super) fn defining(service: &Service, new: Option<&NewDefinition>) -> Allowed {
    service.may_define(new.map_or("", |new| &new.name))
}

/// Checks a claim. Any member may claim worker numbers; external leases need the right to their
/// scope, as in the compatibility APIs. Servers acquire sections instead of claiming them.
pub(super) fn claiming(service: &Service, request: &ClaimRequest) -> Allowed {
    let pool = request.pool.as_ref().map_or("", |pool| &pool.name);
    match scope_of(pool) {
        Some(scope) => spending(service, scope),
        None if is_worker_pool(pool) => service.may_join(),
        None => service.may_operate(),
    }
}

pub(super) fn extending(service: &Service, request: &ExtendRequest) -> Allowed {
    service.may_join()?;
    let mut items = request.items.iter();
    items.try_for_each(|item| holding(service, &item.pool, item.member.as_deref()))
}

pub(super) fn releasing(service: &Service, request: &ReleaseRequest) -> Allowed {
    service.may_join()?;
    holding(service, &request.pool, request.member.as_deref())
}

/// Checks for a caller that relinquishes external leases or sections.
pub(super) fn relinquishing(service: &Service, request: &RelinquishRequest) -> Allowed {
    match scope_of(&request.pool) {
        Some(scope) => spending(service, scope),
        None => service.may_operate(),
    }
}

/// Checks a mark's move, which names its member, for the store to compare. The term alone, which
/// lists show, is not enough.
fn holding(service: &Service, pool: &str, member: Option<&str>) -> Allowed {
    if let Some(scope) = scope_of(pool) {
        return service.may_reserve(scope);
    }
    // An operator of the store has wider rights.
    if service.may_operate().is_ok() {
        return Ok(());
    }
    if !is_worker_pool(pool) {
        // Marks of counters, and of the servers' global order.
        return service.may_operate();
    }
    if member.is_some() {
        return Ok(());
    }
    let message = "caller names no member that holds the slot, which callers with a token must; \
                   update the program";
    Err(Error::new(Code::Forbidden, message))
}

//! Who may ask what of the store.

use snowmint_coord::lend::space_of;
use snowmint_coord::{Store, is_worker_pool};
use snowmint_wire::error::Code;
use snowmint_wire::grpc::store::{
    ClaimRequest, ExtendRequest, GiveBackRequest, LetGoRequest, NewDefinition, ReleaseRequest,
    ReserveRequest,
};

use crate::service::{Error, Service};

pub(super) type Allowed = Result<(), Error>;

/// A member of the store, which mints for itself.
pub(super) fn member<T>(service: &Service, _: &T) -> Allowed {
    service.may_join()
}

/// Somebody who moves the whole store.
pub(super) fn operator<T>(service: &Service, _: &T) -> Allowed {
    service.may_operate()
}

/// A member that takes numbers of a source, or of a space that numbers are lent in, or gives them back.
fn spending(service: &Service, source: &str) -> Allowed {
    service.may_join()?;
    service.may_reserve(source)
}

pub(super) fn reserving(service: &Service, asked: &ReserveRequest) -> Allowed {
    spending(service, &asked.source)
}

pub(super) fn giving_back(service: &Service, asked: &GiveBackRequest) -> Allowed {
    spending(service, &asked.source)
}

/// Somebody who changes a definition.
pub(super) fn defining(service: &Service, new: Option<&NewDefinition>) -> Allowed {
    service.may_define(new.map_or("", |new| &new.name))
}

/// Somebody whose definition of a source names keys, stores or an origin.
pub(super) async fn naming(
    service: &Service,
    store: &dyn Store,
    (source, spec): (&str, &str),
) -> Allowed {
    if service.may_operate().is_ok() {
        return Ok(());
    }
    let before = store.get(source).await.ok();
    service.may_name_in_text(before.as_ref().map(|before| before.spec.as_str()), spec)
}

/// Worker numbers are for any member, lent numbers for clients that may lend in their space, as at the doors that
/// do. Sections are taken, not claimed, and by servers.
pub(super) fn claiming(service: &Service, asked: &ClaimRequest) -> Allowed {
    let pool = asked.pool.as_ref().map_or("", |pool| &pool.name);
    match space_of(pool) {
        Some(space) => spending(service, space),
        None if is_worker_pool(pool) => service.may_join(),
        None => service.may_operate(),
    }
}

pub(super) fn extending(service: &Service, asked: &ExtendRequest) -> Allowed {
    service.may_join()?;
    let mut items = asked.items.iter();
    items.try_for_each(|item| holding(service, &item.pool, item.member.as_deref()))
}

pub(super) fn releasing(service: &Service, asked: &ReleaseRequest) -> Allowed {
    service.may_join()?;
    holding(service, &asked.pool, asked.member.as_deref())
}

/// Somebody who lets go of numbers that it has lent, or of sections.
pub(super) fn letting_go(service: &Service, asked: &LetGoRequest) -> Allowed {
    match space_of(&asked.pool) {
        Some(space) => spending(service, space),
        None => service.may_operate(),
    }
}

/// Who moves a mark says by which member, which the store compares: the term alone, which lists show, is not enough.
fn holding(service: &Service, pool: &str, member: Option<&str>) -> Allowed {
    if let Some(space) = space_of(pool) {
        return service.may_reserve(space);
    }
    // An operator of the store may do more than that.
    if service.may_operate().is_ok() {
        return Ok(());
    }
    if !is_worker_pool(pool) {
        // Marks of counters, and of what servers order by.
        return service.may_operate();
    }
    if member.is_some() {
        return Ok(());
    }
    let message = "the caller is older than this server: it does not say which member holds the slot, as whoever \
                   shows a token must; update the program";
    Err(Error::new(Code::Forbidden, message))
}

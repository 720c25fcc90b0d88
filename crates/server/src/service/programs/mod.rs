//! Programs that mint for themselves in this server's stores: what they may change there, under
//! which names, and how it is recorded.

mod defining;
mod failure_reason;
mod given_ranges;
mod member_alias;
mod moves;
mod reserve_limits;
mod target_store;
mod trail;
mod words;
mod worker_limits;

pub(crate) use defining::Writing;
pub(crate) use given_ranges::GivenRanges;
pub(crate) use member_alias::{Aliased, MemberAlias};
pub(crate) use reserve_limits::Plans;
pub(crate) use target_store::TargetStore;
pub(crate) use words::{allowed_to_lead, exclusion_text, raised};
pub(crate) use worker_limits::{Claiming, WorkerLimits, relinquish};

//! Verbs by the methods of `snowmint.store.v1.Store`.

use snowmint_coord::Verb;

/// Returns the verb that a method calls; `None` for a method that calls none.
pub(in crate::grpc) fn verb_of(path: &str) -> Option<Verb> {
    Some(match path.rsplit('/').next()? {
        "Now" => Verb::Now,
        "Identity" => Verb::Identity,
        "Recall" => Verb::Recall,
        "Join" => Verb::Join,
        "Renew" => Verb::Renew,
        "Leave" => Verb::Leave,
        "Members" => Verb::Members,
        "Claim" => Verb::Claim,
        "Extend" => Verb::Extend,
        "Release" => Verb::Release,
        "Acquire" => Verb::Acquire,
        "Relinquish" => Verb::Relinquish,
        "Workers" => Verb::Workers,
        "Reserve" => Verb::Reserve,
        "GiveBack" => Verb::GiveBack,
        "Define" => Verb::Define,
        "Alter" => Verb::Alter,
        "Restripe" => Verb::Restripe,
        "SetState" => Verb::SetState,
        "Get" => Verb::Get,
        "List" => Verb::List,
        "FastForward" => Verb::FastForward,
        "AcceptLead" => Verb::AcceptLead,
        "Exclude" => Verb::Exclude,
        _ => return None,
    })
}

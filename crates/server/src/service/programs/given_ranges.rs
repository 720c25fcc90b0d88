//! Ranges that a program may give back: the newest that its token took of a source through this
//! server. Numbers of a range that is given back are issued again, and lists show every field of a
//! give-back. So a caller that gives back another's range would have its numbers issued twice. A
//! rejected range leaves a gap.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use snowmint_coord::{Error as StoreError, GiveBack, Result as StoreResult, Segment};

use super::member_alias::MemberAlias;
use super::target_store::TargetStore;

/// Newest range that a token took here, of each source of each store: no other can be given back.
#[derive(Debug, Default)]
pub(crate) struct GivenRanges(Mutex<HashMap<(String, String), Range>>);

#[derive(Debug, PartialEq, Eq)]
struct Range {
    token: Option<u32>,
    first: u64,
    last: u64,
    version: u64,
}

impl GivenRanges {
    /// Records a range that a token took.
    pub(crate) fn took(
        &self,
        at: &TargetStore,
        member_alias: &MemberAlias,
        source: &str,
        segment: &Segment,
    ) {
        let Segment { first, last, version, .. } = *segment;
        let range = Range { token: member_alias.token(), first, last, version };
        let mut ranges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ranges.insert((at.secondary_store.clone(), source.to_owned()), range);
    }

    /// Rejects the end of a range that the token did not take here, or not last.
    pub(crate) fn check(
        &self,
        at: &TargetStore,
        member_alias: &MemberAlias,
        back: &GiveBack,
    ) -> StoreResult<()> {
        let key = (at.secondary_store.clone(), back.source.clone());
        let ranges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_its = |range: &&Range| {
            (range.token, range.last, range.version)
                == (member_alias.token(), back.last, back.version)
                && range.first <= back.first
        };
        if ranges.get(&key).is_some_and(|range| is_its(&range)) {
            return Ok(());
        }
        Err(StoreError::invalid(format!(
            "numbers {} to {} of source {:?} are not the last that this token took through this \
             server; keep them as a gap",
            back.first, back.last, back.source
        )))
    }
}

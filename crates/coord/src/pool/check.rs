//! Validity checks of a claim that need no stored state.

use super::{CLAIM_COUNT_MAX, Pool, Reuse};
use crate::error::{Error, Result};
use crate::label::check_label;
use crate::lease::ClaimRequest;
use crate::member::LABEL_BYTES_MAX;

/// Checks that a claim is valid, whatever the pool's state.
///
/// # Errors
/// `Invalid` for a wrong pool, owner, count or slot preference; `LimitExceeded` for too many
/// numbers.
pub fn check_claim(request: &ClaimRequest) -> Result<()> {
    request.pool.check()?;
    check_label("owner", &request.owner, LABEL_BYTES_MAX)?;
    let (name, count) = (&request.pool.name, request.count);
    if request.pool.reuse == Reuse::Ordered {
        let message = format!("pool {name:?} has exclusive slots; acquire them by number");
        return Err(Error::invalid(message));
    }
    if count == 0 {
        return Err(Error::invalid("claim asks for 0 numbers, minimum 1; ask for at least one"));
    }
    if count > CLAIM_COUNT_MAX {
        return Err(Error::limit_exceeded(format!(
            "claim asks for {count} numbers of pool {name:?}, maximum {CLAIM_COUNT_MAX}; ask for \
             fewer"
        )));
    }
    if let Some(number) = request.preference.only() {
        let groups = request.pool.groups();
        if number >= groups {
            return Err(Error::invalid(format!(
                "number {number} of pool {name:?} is out of range, maximum {}; correct it",
                groups - 1
            )));
        }
        if count > 1 {
            return Err(Error::invalid(format!(
                "claim asks for {count} numbers and names one; ask for 1"
            )));
        }
        if request.pool.reuse == Reuse::Never {
            return Err(Error::invalid(format!(
                "pool {name:?} never reuses numbers, so none can be named; claim any"
            )));
        }
    }
    Ok(())
}

/// Checks the request number of a claim. [`choose`](super::choose) accepts 0, which the later steps
/// of a large claim have; the rows keep the claim's own number.
///
/// # Errors
/// `Invalid` for 0: a claimed slot would look [excluded](crate::SlotRow::is_kept_away).
pub fn check_request(request: &ClaimRequest) -> Result<()> {
    if request.request == 0 {
        return Err(Error::invalid(format!(
            "claim of pool {:?} has request 0, minimum 1; send a random number",
            request.pool.name
        )));
    }
    Ok(())
}

/// Checks that a store can claim from a pool, if it takes at most `group_max` slots in one step.
///
/// # Errors
/// `Unsupported` if the pool's groups are larger.
pub fn check_group(pool: &Pool, group_max: u32) -> Result<()> {
    let Pool { name, group, .. } = pool;
    if *group <= group_max {
        return Ok(());
    }
    Err(Error::unsupported(match group_max.checked_ilog2() {
        Some(bits) => format!(
            "worker of pool {name:?} needs {group} clock values in one step, this store allows \
             {group_max}; use a layout with at most {bits} clock bits or another store"
        ),
        None => format!(
            "worker of pool {name:?} needs {group} clock values in one step, this store allows \
             none; use another store"
        ),
    }))
}

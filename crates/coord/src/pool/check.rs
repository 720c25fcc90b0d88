//! Validity checks of a claim that need no stored state.

use super::{CLAIM_COUNT_MAX, Pool, Reuse};
use crate::error::ErrorKind;
use crate::label::check_label;
use crate::lease::{ClaimRequest, Wish};
use crate::member::LABEL_BYTES_MAX;

/// Checks that a claim is valid, whatever the pool's state.
///
/// # Errors
/// `Invalid` for a wrong pool, owner, count or slot preference; `TooMany` for too many numbers.
pub fn check_claim(request: &ClaimRequest) -> Result<(), ErrorKind> {
    request.pool.check()?;
    check_label("owner", &request.owner, LABEL_BYTES_MAX)?;
    let refused = |what: String| Err(ErrorKind::Invalid { what });
    if request.pool.reuse == Reuse::Ordered {
        let name = &request.pool.name;
        return refused(format!("the slots of pool {name} are ordered: take them by name"));
    }
    if request.count == 0 {
        return refused("a claim asks for at least one number, not 0".into());
    }
    if request.count > CLAIM_COUNT_MAX {
        return Err(ErrorKind::TooMany {
            what: format!("numbers of pool {}", request.pool.name),
            wanted: request.count.into(),
            limit: CLAIM_COUNT_MAX.into(),
        });
    }
    if let Wish::Exactly(number) = request.wish {
        let groups = request.pool.groups();
        let pool = &request.pool.name;
        if number >= groups {
            return refused(format!(
                "number {number} of pool {pool} is outside 0 to {}",
                groups - 1
            ));
        }
        if request.count > 1 {
            return refused(format!("{} numbers were asked for as exactly one", request.count));
        }
        if request.pool.reuse == Reuse::Never {
            return refused(format!("pool {pool} never reuses a number, so none can be named"));
        }
    }
    Ok(())
}

/// Checks that a store can claim from a pool, if it takes at most `group_max` slots in one step.
///
/// # Errors
/// `Unsupported` if the pool's groups are larger.
pub fn check_group(pool: &Pool, group_max: u32) -> Result<(), ErrorKind> {
    let Pool { name, group, .. } = pool;
    if *group <= group_max {
        return Ok(());
    }
    let what = match group_max.checked_ilog2() {
        Some(bits) => format!("at most {group_max}: a layout with {bits} clock bits or fewer fits"),
        None => "none".into(),
    };
    Err(ErrorKind::Unsupported {
        what: format!(
            "a worker of pool {name} takes its {group} clock values in one step, and this store takes \
             {what}; or choose another store"
        ),
    })
}

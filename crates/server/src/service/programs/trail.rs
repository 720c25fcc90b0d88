//! Actions of programs on the store, in the audit trail.

use snowmint_coord::external::is_external;
use snowmint_coord::{
    Acquired, Error as StoreError, Extend, Extended, Incarnation, Lease, Mark, Member, Release,
    Relinquish, Result as StoreResult, is_worker_pool,
};

use super::failure_reason::FailureReason;
use super::target_store::TargetStore;
use super::words::{Time, few};
use crate::error::shown;
use crate::service::Service;
use crate::trail::{About, AuditLine};

impl TargetStore {
    /// Records an action of a program, or its rejection.
    fn audit<T>(
        &self,
        service: &Service,
        (about, what): (About, &str),
        outcome: &StoreResult<T>,
        states: impl FnOnce(&T) -> (Option<String>, Option<String>),
    ) {
        let store = match self.secondary_store.as_str() {
            "" => String::new(),
            name => format!("store {name}: "),
        };
        match outcome {
            Ok(done) => service.audit(about, || {
                let (before, after) = states(done);
                AuditLine { what: format!("{store}program {what}"), before, after, why: None }
            }),
            Err(error) => {
                let what = format!("{store}program not {what}");
                service.audit_rejection(what, FailureReason(error));
            }
        }
    }

    pub(crate) fn joined(&self, service: &Service, member: &Member, joined: &StoreResult<()>) {
        self.audit(service, (About::Program, "joined"), joined, |()| {
            let Member { incarnation, owner, host, process, address } = member;
            let (owner, host, address) = (shown(owner), shown(host), shown(address));
            let member =
                format!("{incarnation} {owner} on {host}, process {process}, address {address}");
            (None, Some(member))
        });
    }

    pub(crate) fn left(&self, service: &Service, member: Incarnation, left: &StoreResult<()>) {
        self.audit(service, (About::Program, "left"), left, |()| (Some(member.to_string()), None));
    }

    pub(crate) fn claimed(&self, service: &Service, claimed: &StoreResult<Vec<Lease>>) {
        self.audit(service, (About::Program, "claimed"), claimed, |leases| {
            (None, Some(few(leases, lease)))
        });
    }

    pub(crate) fn acquired(&self, service: &Service, acquired: &StoreResult<Acquired>) {
        let after = |acquired: &Acquired| (None, Some(few(&acquired.leases, lease)));
        self.audit(service, (About::Program, "acquired"), acquired, after);
    }

    pub(crate) fn extended(
        &self,
        service: &Service,
        items: &[Extend],
        extended: &StoreResult<Vec<StoreResult<Extended>>>,
    ) {
        let Ok(results) = extended else {
            return self.audit(service, (About::Extend, "extended"), extended, |_| (None, None));
        };
        let (mut moved, mut refused) = (Vec::new(), Vec::new());
        for (item, result) in items.iter().zip(results) {
            match result {
                Ok(_) => moved.push(item),
                Err(error) => refused.push((item, error)),
            }
        }
        if !moved.is_empty() {
            let at = |of: fn(&Extend) -> Mark| {
                Some(few(&moved, |item| slot(&item.pool, item.slot, of(item))))
            };
            let states = |_: &()| (at(|item| item.from), at(|item| item.to));
            self.audit(service, (About::Extend, "extended"), &Ok(()), states);
        }
        if let Some((item, error)) = refused.first() {
            let (pool, more) = (shown(&item.pool), refused.len() - 1);
            let what = format!("program not extended {pool} {} and {more} more", item.slot);
            service.audit_rejection(what, FailureReason(error));
        }
    }

    pub(crate) fn released(&self, service: &Service, release: &Release, done: &StoreResult<()>) {
        self.audit(service, (About::Program, "released"), done, |()| {
            let Release { pool, slot: number, term, mark, .. } = release;
            (Some(format!("{} {number} {term}", shown(pool))), Some(slot(pool, *number, *mark)))
        });
    }

    pub(crate) fn relinquish(
        &self,
        service: &Service,
        relinquish: &Relinquish,
        done: &StoreResult<()>,
    ) {
        self.audit(service, (About::Program, "relinquished"), done, |()| {
            let named =
                |(number, term): &(u64, _)| format!("{} {number} {term}", shown(&relinquish.pool));
            (Some(few(&relinquish.slots, named)), None)
        });
    }

    /// Records a change for all callers, or its rejection.
    pub(crate) fn changed<T>(
        &self,
        service: &Service,
        what: &str,
        changed: StoreResult<T>,
    ) -> Result<T, StoreError> {
        match &changed {
            Ok(_) => self.moved(service, what),
            Err(error) => {
                service.audit_rejection(format_args!("store not {what}"), FailureReason(error))
            }
        }
        changed
    }
}

fn lease(lease: &Lease) -> String {
    format!("{} {}", slot(&lease.pool, lease.slot, lease.mark), lease.term)
}

/// Writes a number and its mark, which is a time for worker numbers.
fn slot(pool: &str, number: u64, mark: Mark) -> String {
    let at = if is_worker_pool(pool) || is_external(pool) {
        Time(mark).to_string()
    } else {
        mark.to_string()
    };
    format!("{} {number} mark {at}", shown(pool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_texts_shorten_lists_and_escape_names() {
        let numbers: Vec<u64> = (0..12).collect();
        assert_eq!(few(&numbers, u64::to_string), "0, 1, 2, 3, 4, 5, 6, 7 and 4 more");
        assert_eq!(few(&numbers[..2], u64::to_string), "0, 1");
        let shown = slot("workers-10\n\u{1b}", 3, Mark::new(1_790_000_000_000));
        assert_eq!(shown, "\"workers-10\\n\\u{1b}\" 3 mark 2026-09-21T14:13:20.000Z");
        assert_eq!(slot("sections", 3, Mark::new(7)), "\"sections\" 3 mark 7");
    }
}

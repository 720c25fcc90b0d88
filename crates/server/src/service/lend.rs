//! External leases: worker numbers of processes that mint without membership.

use snowmint_coord::{Borrower, Lent, Loan};

use super::{Error, Service, shown};
use crate::access::{Deed, Right};
use crate::trail::{About, Line};

impl Service {
    /// Leases a number of `width` bits to a client that renews it within `keep_ms`. At most `most`
    /// are leased in a scope, and in all scopes together of a token with a share.
    ///
    /// # Errors
    /// Without the right to reserve in the client's scope, as if it were a source; over the token's
    /// rate; when all numbers, or the permitted ones, are in use; errors of the store.
    pub(crate) async fn lend(
        &self,
        borrower: &Borrower,
        width: u32,
        keep_ms: u64,
        most: u64,
    ) -> Result<Lent, Error> {
        let lent = async {
            self.caller.may(Right::Reserve, &borrower.space)?;
            self.count_deed(Deed::Claim)?;
            let _turn = self.turn().await?;
            let with = |space: &str| self.lends_in(space);
            Ok::<_, Error>(self.node.lend(borrower, width, keep_ms, most, &with).await?)
        };
        let lent = lent.await;
        let number = |lent: &Lent| Some(format!("number {} for {keep_ms} ms", lent.number));
        self.told_lent(About::Program, ("lent", borrower), lent, number)
    }

    /// Returns whether leases in a scope count toward the caller's limit: a pattern has any number
    /// of scopes.
    pub(crate) fn lends_in(&self, space: &str) -> bool {
        self.gets_a_share() && self.caller.may(Right::Reserve, space).is_ok()
    }

    /// Renews a client's external lease.
    ///
    /// # Errors
    /// Those of [`Service::lend`].
    pub(crate) async fn keep_lent(&self, borrower: &Borrower, keep_ms: u64) -> Result<Loan, Error> {
        let kept = async {
            self.caller.may(Right::Reserve, &borrower.space)?;
            let _turn = self.turn().await?;
            Ok::<_, Error>(self.node.keep_lent(borrower, keep_ms).await?)
        };
        let kept = kept.await;
        let loan = |loan: &Loan| Some(format!("{loan:?} for {keep_ms} ms"));
        self.told_lent(About::Extend, ("kept", borrower), kept, loan)
    }

    /// Releases a client's external lease; returns whether it had one.
    ///
    /// # Errors
    /// Those of [`Service::lend`].
    pub(crate) async fn take_back(&self, borrower: &Borrower) -> Result<bool, Error> {
        let taken = async {
            self.caller.may(Right::Reserve, &borrower.space)?;
            let _turn = self.turn().await?;
            Ok::<_, Error>(self.node.take_back(borrower).await?)
        };
        let taken = taken.await;
        let had = |had: &bool| (!had).then(|| "it had none".to_owned());
        self.told_lent(About::Program, ("taken back", borrower), taken, had)
    }

    /// Leaves an audit line about an external lease, or about its failure.
    fn told_lent<T>(
        &self,
        about: About,
        (what, borrower): (&str, &Borrower),
        outcome: Result<T, Error>,
        after: impl FnOnce(&T) -> Option<String>,
    ) -> Result<T, Error> {
        let label = || format!("{} in {}", shown(&borrower.label), shown(&borrower.space));
        match &outcome {
            Ok(done) => self.leave(about, || Line {
                what: format!("number of {} {what}", label()),
                after: after(done),
                ..Line::default()
            }),
            Err(error) => self.not_changed(format_args!("number of {} not {what}", label()), error),
        }
        outcome
    }
}

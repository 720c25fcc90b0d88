//! Numbers lent to processes that mint by themselves.

use snowmint_coord::{Borrower, Lent, Loan};

use super::{Error, Service, shown};
use crate::access::{Deed, Right};
use crate::trail::{About, Line};

impl Service {
    /// Lends a number of `width` bits to somebody who is heard of again within `keep_ms`, where no more than
    /// `most` are lent in a space, nor in all together that a token with a share may lend in.
    ///
    /// # Errors
    /// Without the right to reserve in the borrower's space, as if it were a source; over the token's rate; when all numbers, or as
    /// many as may be, are in use; what the store refuses.
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
            let with = |space: &str| self.lends_in(space);
            Ok::<_, Error>(self.node.lend(borrower, width, keep_ms, most, &with).await?)
        };
        let lent = lent.await;
        let number = |lent: &Lent| Some(format!("number {} for {keep_ms} ms", lent.number));
        self.told_lent(About::Program, ("lent", borrower), lent, number)
    }

    /// Whether numbers lent in a space count against what the caller may lend: a pattern has any number of spaces.
    pub(crate) fn lends_in(&self, space: &str) -> bool {
        self.gets_a_share() && self.caller.may(Right::Reserve, space).is_ok()
    }

    /// A borrower was heard of.
    ///
    /// # Errors
    /// As [`Service::lend`].
    pub(crate) async fn keep_lent(&self, borrower: &Borrower, keep_ms: u64) -> Result<Loan, Error> {
        let kept = async {
            self.caller.may(Right::Reserve, &borrower.space)?;
            Ok::<_, Error>(self.node.keep_lent(borrower, keep_ms).await?)
        };
        let kept = kept.await;
        let loan = |loan: &Loan| Some(format!("{loan:?} for {keep_ms} ms"));
        self.told_lent(About::Extend, ("kept", borrower), kept, loan)
    }

    /// A borrower gives back what it has, if it has anything.
    ///
    /// # Errors
    /// As [`Service::lend`].
    pub(crate) async fn take_back(&self, borrower: &Borrower) -> Result<bool, Error> {
        let taken = async {
            self.caller.may(Right::Reserve, &borrower.space)?;
            Ok::<_, Error>(self.node.take_back(borrower).await?)
        };
        let taken = taken.await;
        let had = |had: &bool| (!had).then(|| "it had none".to_owned());
        self.told_lent(About::Program, ("taken back", borrower), taken, had)
    }

    /// A line of what became of a number, or of why nothing did.
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

//! Numbers lent to processes that mint by themselves.

use snowmint_coord::{Borrower, Lent, Loan};

use super::{Error, Service};
use crate::access::{Deed, Right};

impl Service {
    /// Lends a number of `width` bits to somebody who is heard of again within `keep_ms`, where no more than
    /// `most` are lent in a space.
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
        self.caller.may(Right::Reserve, &borrower.space)?;
        self.count_deed(Deed::Claim)?;
        Ok(self.node.lend(borrower, width, keep_ms, most).await?)
    }

    /// A borrower was heard of.
    ///
    /// # Errors
    /// As [`Service::lend`].
    pub(crate) async fn keep_lent(&self, borrower: &Borrower, keep_ms: u64) -> Result<Loan, Error> {
        self.caller.may(Right::Reserve, &borrower.space)?;
        Ok(self.node.keep_lent(borrower, keep_ms).await?)
    }

    /// A borrower gives back what it has, if it has anything.
    ///
    /// # Errors
    /// As [`Service::lend`].
    pub(crate) async fn take_back(&self, borrower: &Borrower) -> Result<bool, Error> {
        self.caller.may(Right::Reserve, &borrower.space)?;
        Ok(self.node.take_back(borrower).await?)
    }
}

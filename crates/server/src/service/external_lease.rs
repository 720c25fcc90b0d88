//! External leases: worker numbers of processes that mint without membership.

use snowmint_coord::{ExternalClient, ExternalLease, ExternalLeaseStatus};

use super::state::Service;
use crate::access::{Deed, Right};
use crate::error::{Error, shown};
use crate::trail::{About, AuditLine};

impl Service {
    /// Leases a number of `width` bits to a client that renews it within `keep_ms`. At most `most`
    /// are leased in a scope, and in all scopes together of a token with a share.
    ///
    /// # Errors
    /// Without the right to reserve in the client's scope, as if it were a source; over the token's
    /// rate; when all numbers, or the permitted ones, are in use; errors of the store.
    pub(crate) async fn lease_external(
        &self,
        external_client: &ExternalClient,
        width: u32,
        keep_ms: u64,
        most: u64,
    ) -> Result<ExternalLease, Error> {
        let lease = async {
            self.caller.may(Right::Reserve, &external_client.scope)?;
            self.caller().count(Deed::Claim)?;
            let _turn = self.turn().await?;
            let with = |scope: &str| self.has_leases_in(scope);
            Ok::<_, Error>(
                self.node.lease_external(external_client, width, keep_ms, most, &with).await?,
            )
        };
        let lease = lease.await;
        let number =
            |lease: &ExternalLease| Some(format!("number {} for {keep_ms} ms", lease.number));
        self.audit_external(About::Program, ("lent", external_client), lease, number)
    }

    /// Returns whether leases in a scope count toward the caller's limit: a pattern has any number
    /// of scopes.
    pub(crate) fn has_leases_in(&self, scope: &str) -> bool {
        self.caller().has_a_share() && self.caller.may(Right::Reserve, scope).is_ok()
    }

    /// Renews a client's external lease.
    ///
    /// # Errors
    /// Those of [`Service::lease_external`].
    pub(crate) async fn renew_external(
        &self,
        external_client: &ExternalClient,
        keep_ms: u64,
    ) -> Result<ExternalLeaseStatus, Error> {
        let kept = async {
            self.caller.may(Right::Reserve, &external_client.scope)?;
            let _turn = self.turn().await?;
            Ok::<_, Error>(self.node.renew_external(external_client, keep_ms).await?)
        };
        let kept = kept.await;
        let status = |status: &ExternalLeaseStatus| Some(format!("{status:?} for {keep_ms} ms"));
        self.audit_external(About::Extend, ("kept", external_client), kept, status)
    }

    /// Releases a client's external lease; returns whether it had one.
    ///
    /// # Errors
    /// Those of [`Service::lease_external`].
    pub(crate) async fn release_external(
        &self,
        external_client: &ExternalClient,
    ) -> Result<bool, Error> {
        let released = async {
            self.caller.may(Right::Reserve, &external_client.scope)?;
            let _turn = self.turn().await?;
            Ok::<_, Error>(self.node.release_external(external_client).await?)
        };
        let released = released.await;
        let had = |had: &bool| (!had).then(|| "it had none".to_owned());
        self.audit_external(About::Program, ("taken back", external_client), released, had)
    }

    /// Leaves an audit line about an external lease, or about its failure.
    fn audit_external<T>(
        &self,
        about: About,
        (what, external_client): (&str, &ExternalClient),
        outcome: Result<T, Error>,
        after: impl FnOnce(&T) -> Option<String>,
    ) -> Result<T, Error> {
        let label =
            || format!("{} in {}", shown(&external_client.label), shown(&external_client.scope));
        match &outcome {
            Ok(done) => self.audit(about, || AuditLine {
                what: format!("number of {} {what}", label()),
                after: after(done),
                ..AuditLine::default()
            }),
            Err(error) => {
                self.audit_rejection(format_args!("number of {} not {what}", label()), error)
            }
        }
        outcome
    }
}

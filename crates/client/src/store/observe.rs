//! Comparison of the store with what this program has seen of it.

use snowmint_coord::{Error, History, Recalled, Result, Store as _, StoreIdentity, Verb};

use super::RemoteStore;

/// Name of this program in errors of servers.
const WHO: &str = "this program";

impl RemoteStore {
    /// Takes in the fingerprint in a response, if there is one.
    ///
    /// # Errors
    /// `StoreMismatch` and `StoreRolledBack` when the store lacks something that this program has
    /// seen; any error of the comparison. The fingerprint then does not count.
    pub(super) async fn observe(&self, reported: Option<StoreIdentity>) -> Result<()> {
        let Some(reported) = reported else { return Ok(()) };
        while let Some(known) = self.seen.record(&reported) {
            match self.recall(WHO, &known).await? {
                Recalled::Same => {}
                Recalled::Recovered if is_of_later_history(&known, &reported) => {}
                // The response is from before the recovery, or from a server that has not seen it.
                Recalled::Recovered => {
                    let evidence = format!("write count seen by {WHO} (the store was recovered)");
                    let error = Error::store_rolled_back(evidence, known.writes, reported.writes);
                    return Err(error.for_program().with_verb(Verb::Recall));
                }
            }
            if self.seen.confirm(&known, &reported) {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn is_of_later_history(known: &StoreIdentity, reported: &StoreIdentity) -> bool {
    History::of(&known.id).recoveries < History::of(&reported.id).recoveries
}

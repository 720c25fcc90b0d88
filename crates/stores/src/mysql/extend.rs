//! Extensions of a store, each in one [`Message`](super::message::Message).

use snowmint_coord::Extend;
use snowmint_coord::verbs::{Failure, Seen};

use super::MySql;
use super::failure::is_lost;
use crate::sql::extending;

impl MySql {
    /// Returns the write count after the extension; none if nothing was done.
    pub(super) async fn extend_in_one(
        &self,
        item: &Extend,
        seen: &Seen,
    ) -> Result<Option<u64>, Failure<sqlx::Error>> {
        let values = extending::values(&self.namespace, item, seen)?;
        // After an error inside a transaction, the connection is not returned to the pool.
        let mut connection = self.own.checkout().await.map_err(Failure::Backend)?;
        let writes = match self.message.send(&mut connection, &values).await {
            Ok(writes) => writes,
            // The verb over rows recognizes a repeated request that was already applied.
            Err(error) if is_lost(&error) => return Ok(None),
            Err(error) => return Err(Failure::Backend(error)),
        };
        self.own.put(connection);
        Ok(Some(writes).filter(|writes| *writes > 0))
    }
}

//! A connection for steps of one message. A pool asks a connection whether it is well before it hands it out
//! and after it was given back, which takes longer than such a step.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use snowmint_coord::{BootTimer, Timer as _};
use snowmint_core::ElapsedMillis;
use sqlx::{Connection as _, Database, Pool};

use super::network::{Boxed, IDLE_KEPT_MS};

/// The connection while nobody uses it, and since when. One of the pool's that has left it.
pub(crate) struct Own<DB: Database>(Mutex<Option<(DB::Connection, ElapsedMillis)>>);

impl<DB: Database> Own<DB> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Takes it away. Whatever ends before it is [put](Self::put) back closes it, and the server forgets what
    /// was not committed.
    pub(crate) async fn take(&self, pool: &Pool<DB>) -> Result<DB::Connection, sqlx::Error> {
        if pool.is_closed() {
            return Err(sqlx::Error::PoolClosed);
        }
        let now = BootTimer.elapsed();
        let kept = self.kept().filter(|(_, since)| now.since(*since) < IDLE_KEPT_MS);
        if let Some((connection, _)) = kept {
            return Ok(connection);
        }
        let acquired: Boxed<'_, _> = Box::pin(pool.acquire());
        Ok(acquired.await?.detach())
    }

    /// Puts it back, well and outside of any transaction.
    pub(crate) fn put(&self, connection: DB::Connection) {
        let kept = (connection, BootTimer.elapsed());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }

    pub(crate) async fn close(&self) {
        if let Some((connection, _)) = self.kept() {
            // It is gone in any case.
            let _ = connection.close().await;
        }
    }

    fn kept(&self) -> Option<(DB::Connection, ElapsedMillis)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<DB: Database> fmt::Debug for Own<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").finish_non_exhaustive()
    }
}

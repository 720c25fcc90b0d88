//! Connections for steps of one message. A pool asks a connection whether it is well before it hands it out
//! and after it was given back, which takes longer than such a step.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use snowmint_coord::{BootTimer, Timer as _};
use snowmint_core::ElapsedMillis;
use sqlx::{Connection as _, Database, Pool};

use super::network::{IDLE_KEPT_MS, acquire};

/// Connections outside of any transaction: what is asked over them is done when it is answered.
pub(crate) struct Own<DB: Database> {
    /// Makes them, and gets none back.
    makes: Pool<DB>,
    /// Those that nobody uses, and since when; the last is the one that was used last.
    kept: Mutex<Vec<(DB::Connection, ElapsedMillis)>>,
}

impl<DB: Database> Own<DB> {
    /// By this pool of its own.
    pub(crate) const fn made_by(makes: Pool<DB>) -> Self {
        Self { makes, kept: Mutex::new(Vec::new()) }
    }

    /// Takes one away. Whatever ends before it is [put](Self::put) back closes it, and the server forgets what
    /// was not committed.
    pub(crate) async fn take(&self) -> Result<DB::Connection, sqlx::Error> {
        if self.makes.is_closed() {
            return Err(sqlx::Error::PoolClosed);
        }
        let kept = self.fresh().pop();
        if let Some((connection, _)) = kept {
            return Ok(connection);
        }
        Ok(acquire(&self.makes).await?.detach())
    }

    /// Puts it back, well and outside of any transaction.
    pub(crate) fn put(&self, connection: DB::Connection) {
        self.fresh().push((connection, BootTimer.elapsed()));
    }

    pub(crate) async fn close(&self) {
        self.makes.close().await;
        let kept = std::mem::take(&mut *self.kept());
        for (connection, _) in kept {
            // It is gone in any case.
            let _ = connection.close().await;
        }
    }

    /// Without those that were idle for too long.
    fn fresh(&self) -> MutexGuard<'_, Vec<(DB::Connection, ElapsedMillis)>> {
        let mut kept = self.kept();
        let now = BootTimer.elapsed();
        kept.retain(|(_, since)| now.since(*since) < IDLE_KEPT_MS);
        kept
    }

    fn kept(&self) -> MutexGuard<'_, Vec<(DB::Connection, ElapsedMillis)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<DB: Database> fmt::Debug for Own<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").finish_non_exhaustive()
    }
}

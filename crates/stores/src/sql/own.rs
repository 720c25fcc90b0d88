//! Connections for steps of one message. A pool tests a connection before handing it out and after
//! its return, which takes longer than such a step.

use std::fmt;
use std::sync::{Mutex, MutexGuard};

use snowmint_coord::{BootTimer, Timer as _, lock};
use snowmint_core::ElapsedMillis;
use sqlx::{Connection as _, Database, Pool};

use super::network::{IDLE_KEPT_MS, acquire};

/// Connections outside any transaction: a statement is committed before its reply.
pub(crate) struct Own<DB: Database> {
    /// Opens the connections, and gets none back.
    makes: Pool<DB>,
    /// Idle connections, each with the time of its last use; the last one was used last.
    kept: Mutex<Vec<(DB::Connection, ElapsedMillis)>>,
}

impl<DB: Database> Own<DB> {
    /// Returns connections from this pool, which must have no other users.
    pub(crate) const fn made_by(makes: Pool<DB>) -> Self {
        Self { makes, kept: Mutex::new(Vec::new()) }
    }

    /// Returns a connection for one user. If the user ends before it [puts](Self::put) the
    /// connection back, the connection closes, and the server rolls back everything uncommitted.
    pub(crate) async fn checkout(&self) -> Result<DB::Connection, sqlx::Error> {
        if self.makes.is_closed() {
            return Err(sqlx::Error::PoolClosed);
        }
        let kept = self.fresh().pop();
        if let Some((connection, _)) = kept {
            return Ok(connection);
        }
        Ok(acquire(&self.makes).await?.detach())
    }

    /// Puts back a healthy connection outside any transaction.
    pub(crate) fn put(&self, connection: DB::Connection) {
        self.fresh().push((connection, BootTimer.elapsed()));
    }

    pub(crate) async fn close(&self) {
        self.makes.close().await;
        let kept = std::mem::take(&mut *lock(&self.kept));
        for (connection, _) in kept {
            // The connection is lost in any case.
            let _ = connection.close().await;
        }
    }

    /// Locks the connections after removing those that were idle for too long.
    fn fresh(&self) -> MutexGuard<'_, Vec<(DB::Connection, ElapsedMillis)>> {
        let mut kept = lock(&self.kept);
        let now = BootTimer.elapsed();
        kept.retain(|(_, since)| now.since(*since) < IDLE_KEPT_MS);
        kept
    }
}

impl<DB: Database> fmt::Debug for Own<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").finish_non_exhaustive()
    }
}

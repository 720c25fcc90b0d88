//! Regular requests of an otherwise idle process, each as one transaction in one message to the
//! connection's thread, since every message wakes two threads. If a condition fails, nothing
//! changes. The write count is returned only if something changed.

/// Moves a mark. The places are those of [`values`](crate::sql::extending::values); the clock is
/// that of the caller, which has already checked it.
pub(super) const EXTEND: &str = "BEGIN IMMEDIATE;
UPDATE snowmint_slot SET mark = ?6, extend_request = ?7, changes = changes + 1
    WHERE namespace = ?1 AND pool = ?2 AND slot = ?3 AND term = ?4 AND mark = ?5
        AND holder = COALESCE(?11, holder)
        AND EXISTS (SELECT 1 FROM snowmint_store WHERE id = ?12 AND writes >= ?8)
        AND COALESCE((SELECT catalog_version FROM snowmint_namespace WHERE namespace = ?1), 0) = ?9;
UPDATE snowmint_store SET writes = writes + 1, row_changes = row_changes + 1
    WHERE changes() = 1 RETURNING writes;
COMMIT";

/// Renews a presence: namespace, member, its clock, renewals, TTL, the time, write count and store
/// seen.
pub(super) const RENEW: &str = "BEGIN IMMEDIATE;
UPDATE snowmint_member SET sample_ms = ?3, renewals = ?4, ttl_ms = ?5, renewed_at_ms = ?6
    WHERE namespace = ?1 AND incarnation = ?2 AND renewals <= ?4
        AND EXISTS (SELECT 1 FROM snowmint_store WHERE id = ?8 AND writes >= ?7);
UPDATE snowmint_store SET writes = writes + 1 WHERE changes() = 1 RETURNING writes;
COMMIT";

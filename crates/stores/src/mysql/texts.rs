//! Texts that several files need: expressions, settings of a session, and the form of a URL.

/// Expression for the server's clock in Unix milliseconds. It is evaluated when the row is read,
/// not when the statement began to wait for it. Sessions are in UTC, so that no hour occurs twice.
pub(super) const NOW_MS: &str = "CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(3)) * 1000) AS SIGNED)";

/// Expression for the server's ID. Each product runs its own of these comments and skips the
/// other's; the part before them is common to both:
/// <https://mariadb.com/docs/server/reference/sql-structure/sql-language-structure/comment-syntax>.
pub(super) const SERVER: &str =
    "CONCAT(/*!80000 'mysql/', @@server_uuid */ /*M! 'mariadb/', CAST(@@server_id AS CHAR) */)";

/// Form of a URL.
pub(super) const FORM: &str = "mysql://USER@HOST:PORT/DATABASE";

/// Settings of each session: `wait_timeout` in seconds also ends a transaction with a silent
/// client.
pub(super) const TIMEOUTS: &str =
    "SET SESSION wait_timeout = 30, SESSION innodb_lock_wait_timeout = 10";
pub(super) const ISOLATION: &str = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";
pub(super) const SETTINGS: &[&str] = &[TIMEOUTS, ISOLATION];

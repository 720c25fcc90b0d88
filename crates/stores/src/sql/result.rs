//! Results of steps, with failures of the database.

use snowmint_coord::verbs::Failure;

pub(super) type SqlResult<T> = Result<T, Failure<sqlx::Error>>;

pub(super) fn damaged(what: impl Into<String>) -> Failure<sqlx::Error> {
    Failure::Damaged(what.into())
}

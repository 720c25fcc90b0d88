//! Conversion of values to and from rows.

use snowmint_coord::verbs::Failure;
use snowmint_coord::{Error, Incarnation, Mark, Term};
use snowmint_core::UnixMillis;

use sqlx::query::Query;
use sqlx::{
    AssertSqlSafe, Column, ColumnIndex, Database, Decode, Encode, IntoArguments, Row, Type,
    TypeInfo, ValueRef,
};

use super::result::{SqlResult, damaged};

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Integer(i64),
    Text(String),
    Null,
}

impl Value {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Returns a number that must be stored exactly: columns have 63 bits and a sign.
    pub(crate) fn exact(what: &str, value: u64) -> SqlResult<Self> {
        i64::try_from(value).map(Self::Integer).map_err(|_| {
            Failure::from(Error::invalid(format!(
                "{what} {value} is above {}, the maximum of this store; use a lower one",
                i64::MAX
            )))
        })
    }

    /// Returns a number that is only shown or compared: larger numbers are stored as the highest
    /// possible one.
    pub(crate) fn capped(value: u64) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }

    /// Returns a number that is only compared for equality: its 64 bits are stored unchanged.
    pub(crate) const fn bits(value: u64) -> Self {
        Self::Integer(value.cast_signed())
    }
}

/// A row, read from its first column on.
pub(crate) struct Values(std::vec::IntoIter<Value>);

impl Values {
    pub(crate) fn of(row: Vec<Value>) -> Self {
        Self(row.into_iter())
    }

    fn integer(&mut self) -> SqlResult<i64> {
        match self.0.next() {
            Some(Value::Integer(value)) => Ok(value),
            other => Err(damaged(format!("column has {other:?}, expected a number"))),
        }
    }

    pub(crate) fn text(&mut self) -> SqlResult<String> {
        match self.0.next() {
            Some(Value::Text(text)) => Ok(text),
            other => Err(damaged(format!("column has {other:?}, expected a text"))),
        }
    }

    pub(super) fn maybe_text(&mut self) -> SqlResult<Option<String>> {
        match self.0.next() {
            Some(Value::Null) => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            other => Err(damaged(format!("column has {other:?}, expected a text"))),
        }
    }

    pub(crate) fn number(&mut self) -> SqlResult<u64> {
        let value = self.integer()?;
        u64::try_from(value).map_err(|_| damaged(format!("column has {value}, expected 0 or more")))
    }

    pub(super) fn small(&mut self) -> SqlResult<u32> {
        let value = self.integer()?;
        u32::try_from(value)
            .map_err(|_| damaged(format!("column has {value}, maximum {}", u32::MAX)))
    }

    pub(super) fn bits(&mut self) -> SqlResult<u64> {
        self.integer().map(i64::cast_unsigned)
    }

    /// Returns the total of changes to rows: a sum, with a sign.
    pub(crate) fn changes(&mut self) -> SqlResult<i64> {
        self.integer()
    }

    pub(super) fn mark(&mut self) -> SqlResult<Mark> {
        self.number().map(Mark::new)
    }

    pub(super) fn term(&mut self) -> SqlResult<Term> {
        self.number().map(Term::new)
    }

    pub(super) fn time(&mut self) -> SqlResult<UnixMillis> {
        self.number().map(UnixMillis::new)
    }

    pub(super) fn incarnation(&mut self) -> SqlResult<Incarnation> {
        parsed(&self.text()?)
    }

    pub(super) fn maybe_incarnation(&mut self) -> SqlResult<Option<Incarnation>> {
        self.maybe_text()?.as_deref().map(parsed).transpose()
    }
}

fn parsed(text: &str) -> SqlResult<Incarnation> {
    text.parse()
        .map_err(|_| damaged(format!("column has {text:?}, expected 32 hexadecimal digits")))
}

/// Returns a statement with its values bound.
pub(crate) fn bound<'q, D: Database>(
    statement: String,
    values: Vec<Value>,
) -> Query<'q, D, D::Arguments>
where
    D::Arguments: IntoArguments<D>,
    i64: Encode<'q, D> + Type<D>,
    String: Encode<'q, D> + Type<D>,
    Option<String>: Encode<'q, D> + Type<D>,
{
    // The text consists only of names from this crate; external values are bound.
    let mut query = sqlx::query(AssertSqlSafe(statement));
    for value in values {
        query = match value {
            Value::Integer(number) => query.bind(number),
            Value::Text(text) => query.bind(text),
            Value::Null => query.bind(None::<String>),
        };
    }
    query
}

/// Returns a row as values.
pub(crate) fn read<R: Row>(row: &R) -> Result<Vec<Value>, sqlx::Error>
where
    usize: ColumnIndex<R>,
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
{
    let value = |index: usize| {
        let raw = row.try_get_raw(index)?;
        let is_integer = raw.type_info().name().contains("INT");
        match (raw.is_null(), is_integer) {
            (true, _) => Ok(Value::Null),
            (false, true) => Ok(Value::Integer(row.try_get(index)?)),
            (false, false) => Ok(Value::Text(row.try_get(index)?)),
        }
    };
    row.columns().iter().map(|column| value(column.ordinal())).collect()
}

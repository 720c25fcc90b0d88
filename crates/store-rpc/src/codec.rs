//! Values and their forms in messages.

use snowmint_coord::sources::SECTIONS;
use snowmint_coord::{Incarnation, Mark, Term};
use snowmint_core::UnixMillis;

use crate::malformed::Malformed;

/// A value with a form in messages: `M` is a message, or the type of a part of one.
pub trait Codec<M>: Sized {
    /// Returns the form in a message.
    fn write(self) -> M;

    /// Returns the value of a message.
    ///
    /// # Errors
    /// For a part that is missing, unknown to this version, or too long.
    fn read(message: M) -> Result<Self, Malformed>;
}

/// Implements both directions from one row for each message.
///
/// `Value as Message { parts } = [shape];`: the shape is both the pattern that takes a value apart
/// and the expression that makes one; it binds a name for each part of the message. A part is
///
/// - `part`: by its own [`Codec`];
/// - `part: needed("name")`: the same, in a field that may be absent in any message;
/// - `part: checked(function)`: the same, after the function has read its form without an error;
/// - `part: none`: always absent, and not read: the error of a response.
///
/// `with name = value, …` after the shape makes values that no message has.
macro_rules! codec {
    (@write $part:ident) => { $crate::codec::Codec::write($part) };
    (@write $part:ident needed($name:literal)) => { Some($crate::codec::Codec::write($part)) };
    (@write $part:ident checked($check:ident)) => { $crate::codec::Codec::write($part) };
    (@write $part:ident none) => { None };

    (@read $message:ident $part:ident) => {
        let $part = $crate::codec::Codec::read($message.$part)?;
    };
    (@read $message:ident $part:ident needed($name:literal)) => {
        let $part = $message.$part.ok_or($crate::malformed::Malformed::Missing($name))?;
        let $part = $crate::codec::Codec::read($part)?;
    };
    (@read $message:ident $part:ident checked($check:ident)) => {
        let $part = $crate::codec::Codec::read($check($message.$part)?)?;
    };
    (@read $message:ident $part:ident none) => {};

    ($(
        $value:ty as $message:ident { $($part:ident $(: $how:ident $(($by:tt))?)?),* $(,)? }
        = [$($shape:tt)*] $(with $($own:ident = $made:expr),+)?;
    )*) => {$(
        impl $crate::codec::Codec<proto::$message> for $value {
            fn write(self) -> proto::$message {
                let $($shape)* = self;
                $($(let _ = $own;)+)?
                proto::$message { $($part: codec!(@write $part $($how $(($by))?)?)),* }
            }

            fn read(message: proto::$message) -> Result<Self, $crate::malformed::Malformed> {
                // Some messages have no parts.
                let _ = &message;
                $(codec!(@read message $part $($how $(($by))?)?);)*
                $($(let $own = $made;)+)?
                Ok($($shape)*)
            }
        }
    )*};
}
pub(crate) use codec;

macro_rules! as_is {
    ($($plain:ty)*) => {$(
        impl Codec<$plain> for $plain {
            fn write(self) -> $plain {
                self
            }

            fn read(part: $plain) -> Result<Self, Malformed> {
                Ok(part)
            }
        }
    )*};
}

as_is! { bool u32 u64 String }

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Codec<u64> for $number {
            fn write(self) -> u64 {
                self.get()
            }

            fn read(number: u64) -> Result<Self, Malformed> {
                Ok(Self::new(number))
            }
        }
    )*};
}

numbers! { Mark Term UnixMillis }

impl Codec<String> for Incarnation {
    fn write(self) -> String {
        self.to_string()
    }

    fn read(text: String) -> Result<Self, Malformed> {
        text.parse().map_err(|error| Malformed::Member(text, error))
    }
}

impl<M, T: Codec<M>> Codec<Option<M>> for Option<T> {
    fn write(self) -> Option<M> {
        self.map(T::write)
    }

    fn read(part: Option<M>) -> Result<Self, Malformed> {
        part.map(T::read).transpose()
    }
}

impl<M, T: Codec<M>> Codec<Vec<M>> for Vec<T> {
    fn write(self) -> Vec<M> {
        self.into_iter().map(T::write).collect()
    }

    fn read(parts: Vec<M>) -> Result<Self, Malformed> {
        parts.into_iter().map(T::read).collect()
    }
}

/// Checks a list of bounded length: all sections, and the same number of global-order sources.
pub(crate) fn few<M>(items: Vec<M>) -> Result<Vec<M>, Malformed> {
    let (received, limit) = (items.len(), 2 * usize::from(SECTIONS));
    if received <= limit {
        return Ok(items);
    }
    let message = format!("message has {received} items, limit {limit}; send fewer");
    Err(Malformed::TooMany(message))
}

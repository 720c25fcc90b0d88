//! Words of a type: the values of a key that accepts only a few.

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;

/// Returns the words that a type accepts, in the order of its variants; none if it is not an enum.
/// They are those that serde reads, so that a description cannot differ from the check.
#[must_use]
pub fn words<T: DeserializeOwned>() -> &'static [&'static str] {
    match T::deserialize(AskForWords) {
        Err(Words(words)) => words,
        Ok(_) => &[],
    }
}

/// Input without a value: reading it fails with the words that would have been accepted.
struct AskForWords;

#[derive(Debug)]
struct Words(&'static [&'static str]);

impl<'de> Deserializer<'de> for AskForWords {
    type Error = Words;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Words> {
        Err(Words(&[]))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Words> {
        Err(Words(variants))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl Error for Words {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }
}

impl std::error::Error for Words {}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Kind, Span, StepRule};

    #[test]
    fn words_are_those_that_a_type_reads() {
        for word in words::<Kind>() {
            let kind: Kind = serde_json::from_value((*word).into()).unwrap();
            assert_eq!(kind.name(), *word);
        }
        assert_eq!(words::<StepRule>(), ["adaptive", "fixed", "leaf"]);
        assert_eq!((words::<Span>(), words::<u64>()), (&[][..], &[][..]));
    }
}

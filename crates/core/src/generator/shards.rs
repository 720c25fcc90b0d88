//! Shards that IDs spread over by their remainder, `id % count`.

use core::fmt;

use crate::layout::{Field, Layout};

/// Returns the most shards that the IDs of one worker can spread over at any rate. A tick has as
/// many numbers; where the sequence is not the lowest field, the number of shards must be odd.
#[must_use]
pub const fn shards_max(layout: &Layout) -> u64 {
    let ids_per_tick = layout.ids_per_tick();
    if layout.shift(Field::Sequence) == 0 { ids_per_tick } else { ids_per_tick.saturating_sub(1) }
}

/// Checks that [`SequenceStart::Shards`](crate::SequenceStart) can spread IDs of the layout over
/// this many shards.
///
/// # Errors
/// [`ShardsError`].
pub const fn check_shards(layout: &Layout, shards: u64) -> Result<(), ShardsError> {
    let below_bits = layout.shift(Field::Sequence);
    if shards == 0 || shards > layout.ids_per_tick() {
        return Err(ShardsError::Count { shards, max: shards_max(layout) });
    }
    if below_bits > 0 && shards & 1 == 0 {
        return Err(ShardsError::Even { shards, below_bits });
    }
    Ok(())
}

/// The error of a number of shards that a layout's IDs cannot spread over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardsError {
    /// A tick has too few numbers, or there are no shards.
    Count {
        /// The number of shards.
        shards: u64,
        /// Most shards of the layout.
        max: u64,
    },
    /// `id % shards` depends on fields below the sequence, for an even number of shards.
    Even {
        /// The number of shards.
        shards: u64,
        /// Bits below the sequence.
        below_bits: u8,
    },
}

impl fmt::Display for ShardsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Count { max, .. } => {
                write!(f, "IDs of the layout spread over 1 to {max} shards: take one of these")
            }
            Self::Even { shards, below_bits } => write!(
                f,
                "id % {shards} depends on the {below_bits} bits below the sequence, which never \
                 change: take an odd number, or a layout that ends with the sequence"
            ),
        }
    }
}

impl core::error::Error for ShardsError {}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn layouts_say_which_numbers_of_shards_they_have() {
        for shards in [1, 2, 3, 1_000, 4_096] {
            assert_eq!(check_shards(&Layout::TWITTER, shards), Ok(()), "{shards}");
        }
        for shards in [0, 4_097, u64::MAX] {
            let error = ShardsError::Count { shards, max: 4_096 };
            assert_eq!(check_shards(&Layout::TWITTER, shards), Err(error));
        }
        // Time, sequence, worker.
        assert_eq!(shards_max(&Layout::SONYFLAKE), 255);
        for shards in [1, 3, 255] {
            assert_eq!(check_shards(&Layout::SONYFLAKE, shards), Ok(()), "{shards}");
        }
        let error = check_shards(&Layout::SONYFLAKE, 4).unwrap_err();
        assert_eq!(error, ShardsError::Even { shards: 4, below_bits: 16 });
        assert!(error.to_string().contains("odd number"), "{error}");
        assert_eq!(
            check_shards(&Layout::SONYFLAKE, 257).unwrap_err().to_string(),
            "IDs of the layout spread over 1 to 255 shards: take one of these"
        );
    }
}

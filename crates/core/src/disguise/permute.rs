//! A keyed permutation of the numbers of any width from 2 to 63 bits.
//!
//! A Feistel network: the number is cut in two halves, and each round mixes one half into the
//! other. Every round can be undone whatever the mixing does, so this is a permutation for every width
//! and key, and needs no walk round cycles. The mixing multiplies two 64-bit words and folds the 128-bit
//! product, one of the best scramblers that a processor has in a few cycles.

use super::Key;

/// Rounds: even, as each pair changes both halves. 6 is the least at which one flipped bit flips every
/// other half of the time at all widths from 20 bits on; 4 is not enough.
pub(super) const ROUNDS: usize = 6;

/// The product's two halves, one on the other.
#[inline(always)]
pub(super) const fn fold(left: u64, right: u64) -> u64 {
    let product = (left as u128).wrapping_mul(right as u128);
    #[allow(clippy::cast_possible_truncation, reason = "the two halves of the product")]
    let (high, low) = ((product >> 64) as u64, product as u64);
    high ^ low
}

/// How one width is cut in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    low_bits: u8,
    low_mask: u64,
    high_mask: u64,
}

impl Cut {
    /// `bits` is 2 to 63.
    pub(super) const fn new(bits: u8) -> Self {
        let low_bits = bits.div_ceil(2);
        let high_bits = bits.saturating_sub(low_bits);
        Self { low_bits, low_mask: !(u64::MAX << low_bits), high_mask: !(u64::MAX << high_bits) }
    }

    /// Another number of the same width. `tweak` chooses among 2^64 permutations of the key.
    #[inline(always)]
    pub(super) fn permute(self, key: &Key, tweak: u64, number: u64) -> u64 {
        let (mut high, mut low) = (number >> self.low_bits, number & self.low_mask);
        for pair in key.rounds.chunks_exact(2) {
            high ^= mix(pair[0], tweak, low) & self.high_mask;
            low ^= mix(pair[1], tweak, high) & self.low_mask;
        }
        (high << self.low_bits) | low
    }

    /// The number that [`Cut::permute`] made this one of.
    #[inline(always)]
    pub(super) fn restore(self, key: &Key, tweak: u64, number: u64) -> u64 {
        let (mut high, mut low) = (number >> self.low_bits, number & self.low_mask);
        for pair in key.rounds.rchunks_exact(2) {
            low ^= mix(pair[1], tweak, high) & self.low_mask;
            high ^= mix(pair[0], tweak, low) & self.high_mask;
        }
        (high << self.low_bits) | low
    }
}

/// What goes into one round.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RoundKey {
    pub(super) add: u64,
    /// Odd, so that no input is multiplied away.
    pub(super) multiply: u64,
}

#[inline(always)]
const fn mix(round: RoundKey, tweak: u64, half: u64) -> u64 {
    fold(half ^ tweak ^ round.add, round.multiply)
}

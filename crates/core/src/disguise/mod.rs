//! IDs that hide their contents from readers without the key.
//!
//! A snowflake ID shows when it was made, by which worker, and how many IDs precede it in its tick.
//! A segment's ID shows how many orders there were. A disguise is a keyed permutation: unique IDs
//! stay unique, and a reader with the key gets the ID back.
//!
//! - **Full**: all bits. Time, worker and volume do not show; order is lost.
//! - **Ordered**: all bits below the time, keyed by the tick. IDs still sort by tick; adjacent IDs
//!   and volume do not show. Within a tick, order is lost.
//!
//! **A disguise is not encryption.** It keeps a passer-by from counting. Cryptographers have not
//! examined it, and a small number of bits can be tried exhaustively whatever the key. Never rely
//! on an ID being impossible to guess.
//!
//! # Changing keys
//! Two keys are two permutations: the same disguised ID could come out of both. Each kind keeps
//! them apart in its own way:
//! - *ordered*: the tick shows, and only the key in force at the tick can have been used. Keys can
//!   change as often as needed.
//! - *full*: the key's number stands in clear above the layout's bits, so the layout must leave
//!   room: at most 62 bits for two keys, 60 for eight. A layout without room keeps one key for
//!   ever.

mod key;
mod permute;

use core::fmt;

pub use key::{KEYS_MAX, Key, KeyBytes, KeyError, Keyring};

use self::key::NumberedKey;
use self::permute::{Cut, fold};
use crate::layout::{Field, Layout, OutOfRange};
use crate::time::UnixMillis;

/// A way to disguise the IDs of one source.
#[derive(Clone, Copy, Debug)]
pub struct Disguise {
    ring: Keyring,
    /// First ID of each key of the ring. The time is the top field of an ID, so comparing IDs
    /// compares times; numbers without a time always take the newest key.
    since_ids: [u64; KEYS_MAX],
    newest_since_id: u64,
    id_max: u64,
    cut: Cut,
    kind: DisguiseKind,
}

#[derive(Clone, Copy, Debug)]
enum DisguiseKind {
    /// All bits of an ID of `id_bits`, below the key's number.
    Full { id_bits: u8, total_bits: u8, timed: bool },
    /// The bits below the time.
    Ordered { below_bits: u8 },
}

impl Disguise {
    /// Returns a disguise of all bits of a layout's IDs. With one key, the IDs keep the layout's
    /// width. Key numbers above 0 go above it, up to 53 bits in all for layouts that fit 53, else
    /// up to 63.
    ///
    /// # Errors
    /// [`DisguiseError::NoRoom`] when a key's number does not fit above the layout's bits.
    pub fn full(ring: Keyring, layout: Layout) -> Result<Self, DisguiseError> {
        // The top bit of 64-bit layouts is never set.
        let id_bits = layout.total_bits().min(63);
        let total_bits = if id_bits <= 53 { 53 } else { 63 };
        fits_above(&ring, id_bits, total_bits)?;
        let kind = DisguiseKind::Full { id_bits, total_bits, timed: true };
        Ok(Self::timed(ring, &layout, Cut::new(id_bits), kind))
    }

    /// Returns a disguise of all bits of numbers below 2^`id_bits` that have no time, such as those
    /// of segments. The newest key is used, and its number stands above them; numbers and key
    /// number have `total_bits` in all.
    ///
    /// # Errors
    /// [`DisguiseError::Width`] unless `2 <= id_bits <= total_bits <= 63`;
    /// [`DisguiseError::NoRoom`] when a key's number does not fit above `id_bits`.
    pub fn full_numbers(ring: Keyring, id_bits: u8, total_bits: u8) -> Result<Self, DisguiseError> {
        if id_bits < 2 || id_bits > total_bits || total_bits > 63 {
            return Err(DisguiseError::Width { id_bits, total_bits });
        }
        fits_above(&ring, id_bits, total_bits)?;
        Ok(Self {
            ring,
            since_ids: [0; KEYS_MAX],
            newest_since_id: 0,
            id_max: low_bits(id_bits),
            cut: Cut::new(id_bits),
            kind: DisguiseKind::Full { id_bits, total_bits, timed: false },
        })
    }

    /// Returns a disguise of all bits below the time: worker, sequence, and clock bits where the
    /// layout has them.
    ///
    /// # Errors
    /// [`DisguiseError::Width`] when fewer than 2 bits lie below the time.
    pub fn ordered(ring: Keyring, layout: Layout) -> Result<Self, DisguiseError> {
        let below_bits = layout.shift(Field::Time);
        if below_bits < 2 {
            return Err(DisguiseError::Width {
                id_bits: below_bits,
                total_bits: layout.total_bits(),
            });
        }
        Ok(Self::timed(ring, &layout, Cut::new(below_bits), DisguiseKind::Ordered { below_bits }))
    }

    fn timed(ring: Keyring, layout: &Layout, cut: Cut, kind: DisguiseKind) -> Self {
        let mut since_ids = [0; KEYS_MAX];
        let mut newest_since_id = 0;
        for (since_id, entry) in since_ids.iter_mut().zip(ring.iter()) {
            *since_id = first_id_from(layout, entry.since);
            newest_since_id = *since_id;
        }
        Self { ring, since_ids, newest_since_id, id_max: layout.id_max(), cut, kind }
    }

    /// Returns the disguised ID, which readers without the key see in place of the ID.
    ///
    /// # Errors
    /// [`DisguiseError::OutOfRange`] when the ID exceeds the layout or the width.
    #[inline]
    pub fn apply(&self, id: u64) -> Result<u64, DisguiseError> {
        within(id, self.id_max)?;
        let entry = self.entry_for(id);
        match self.kind {
            DisguiseKind::Full { id_bits, .. } => {
                Ok((u64::from(entry.number) << id_bits)
                    | self.cut.permute(&entry.key.rounds, 0, id))
            }
            DisguiseKind::Ordered { below_bits } => {
                let low = low_bits(below_bits);
                let tweak = tweak(&entry.key, id >> below_bits);
                Ok((id & !low) | self.cut.permute(&entry.key.rounds, tweak, id & low))
            }
        }
    }

    /// Returns the ID that was disguised.
    ///
    /// Every number of the right width is the disguise of some ID: with a wrong key, this returns a
    /// wrong ID, not an error.
    ///
    /// # Errors
    /// [`DisguiseError::OutOfRange`] when `disguised` is too high; [`DisguiseError::UnknownKey`]
    /// when it names a key that the ring lacks; [`DisguiseError::OtherKey`] when it names a key
    /// that was not in force at the ID's time.
    #[inline]
    pub fn undo(&self, disguised: u64) -> Result<u64, DisguiseError> {
        match self.kind {
            DisguiseKind::Full { id_bits, total_bits, timed } => {
                within(disguised, low_bits(total_bits))?;
                let number = disguised >> id_bits;
                let entry =
                    self.ring.numbered(number).ok_or(DisguiseError::UnknownKey { number })?;
                let id = self.cut.restore(&entry.key.rounds, 0, disguised & low_bits(id_bits));
                let in_force = self.entry_for(id).number;
                if timed && in_force != entry.number {
                    return Err(DisguiseError::OtherKey { number: entry.number, in_force });
                }
                Ok(id)
            }
            DisguiseKind::Ordered { below_bits } => {
                within(disguised, self.id_max)?;
                let low = low_bits(below_bits);
                // A disguise keeps the time, and so the key.
                let entry = self.entry_for(disguised);
                let tweak = tweak(&entry.key, disguised >> below_bits);
                Ok((disguised & !low) | self.cut.restore(&entry.key.rounds, tweak, disguised & low))
            }
        }
    }

    /// Returns the key in force at the ID's tick.
    #[inline(always)]
    fn entry_for(&self, id: u64) -> &NumberedKey {
        if id >= self.newest_since_id { self.ring.newest() } else { self.older_entry_for(id) }
    }

    #[cold]
    fn older_entry_for(&self, id: u64) -> &NumberedKey {
        let in_force = self.ring.iter().zip(&self.since_ids).take_while(|(_, since)| **since <= id);
        // The first key is in force from the beginning.
        in_force.last().map_or(self.ring.newest(), |(entry, _)| entry)
    }
}

/// Returns a different keyed number for each tick, so that ticks do not show which of their
/// permutations are alike.
#[inline(always)]
fn tweak(key: &Key, tick: u64) -> u64 {
    let first = &key.rounds[0];
    fold(tick ^ first.add, first.multiply)
}

/// Returns the lowest ID whose tick begins at `since` or later; past the layout's end, a number
/// above every ID.
fn first_id_from(layout: &Layout, since: UnixMillis) -> u64 {
    let ticks = since.since(layout.epoch()).div_ceil(u64::from(layout.unit_ms()));
    if ticks > layout.tick_max().get() { u64::MAX } else { ticks << layout.shift(Field::Time) }
}

fn fits_above(ring: &Keyring, id_bits: u8, total_bits: u8) -> Result<(), DisguiseError> {
    let spare_bits = total_bits.saturating_sub(id_bits);
    let number_max = ring.number_max();
    if spare_bits < 8 && number_max >> spare_bits > 0 {
        return Err(DisguiseError::NoRoom { number_max, spare_bits });
    }
    Ok(())
}

#[inline(always)]
const fn within(value: u64, max: u64) -> Result<(), DisguiseError> {
    if value > max { Err(out_of_range(value, max)) } else { Ok(()) }
}

/// Returns a number with the `bits` lowest bits set; `bits` is at most 63.
const fn low_bits(bits: u8) -> u64 {
    !(u64::MAX << bits)
}

#[cold]
const fn out_of_range(value: u64, max: u64) -> DisguiseError {
    DisguiseError::OutOfRange(OutOfRange::Field { field: Field::Id, value, max })
}

/// The error of an invalid disguise, or of an ID that a disguise cannot take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisguiseError {
    /// The number of bits to permute is too low or too high.
    Width {
        /// Bits to permute: at least 2.
        id_bits: u8,
        /// Bits in all: at least `id_bits`, at most 63.
        total_bits: u8,
    },
    /// A key's number does not fit above the ID's bits.
    NoRoom {
        /// The highest key number in the ring.
        number_max: u8,
        /// The bits that the layout leaves.
        spare_bits: u8,
    },
    /// The disguised ID names a key that the ring lacks.
    UnknownKey {
        /// The key's number.
        number: u64,
    },
    /// The disguised ID names a key that was not in force at the ID's time, so this ring did not
    /// make it.
    OtherKey {
        /// The key's number.
        number: u8,
        /// The number of the key that was in force.
        in_force: u8,
    },
    /// The ID is too high.
    OutOfRange(OutOfRange),
}

impl From<OutOfRange> for DisguiseError {
    fn from(error: OutOfRange) -> Self {
        Self::OutOfRange(error)
    }
}

impl fmt::Display for DisguiseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Width { id_bits, total_bits } => write!(
                f,
                "{id_bits} of {total_bits} bits cannot be disguised: at least 2, and at most 63 in all, can"
            ),
            Self::NoRoom { number_max, spare_bits } => write!(
                f,
                "key number {number_max} does not fit the {spare_bits} bits that the layout leaves: take a narrower layout, an ordered disguise, or a new source"
            ),
            Self::UnknownKey { number } => {
                write!(f, "the ID names key {number}, which is not in the ring")
            }
            Self::OtherKey { number, in_force } => write!(
                f,
                "the ID names key {number}, but key {in_force} was in force at its time: check the ID, or decode with the ring that made it"
            ),
            Self::OutOfRange(error) => fmt::Display::fmt(&error, f),
        }
    }
}

impl core::error::Error for DisguiseError {}

#[cfg(test)]
mod tests;

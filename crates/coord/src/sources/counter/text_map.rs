//! The last value of each text key, without the text.
//!
//! A 64-bit hash stands for a text, keyed differently in each table. Among a million texts, two
//! have the same hash with a chance of one in forty million. Such texts count together, and the
//! promise to each still holds: its numbers rise. They have gaps anyway.
//!
//! Hash and value are adjacent, at the place that the hash names or a few places later. So a lookup
//! waits for one cache line. An index, a text and a value would be three lines apart, each
//! requested after the one before has arrived.

/// Hash of a free place; no text has it.
const FREE: u64 = 0;
/// Number of places at first.
const PLACES_MIN: usize = 16;
/// Bytes of a place.
const PLACE_BYTES: usize = size_of::<TextPlace>();

/// Values by hash.
#[derive(Debug, Default)]
pub(super) struct TextMap {
    /// At least a quarter of the places is free, so a search ends soon.
    places: Vec<TextPlace>,
    used: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct TextPlace {
    hash: u64,
    value: u64,
}

impl TextMap {
    /// Returns the last value; `None` if there was none.
    pub(super) fn get(&self, hash: u64) -> Option<u64> {
        let hash = stored_hash(hash);
        let place = self.places.get(self.at(hash))?;
        (place.hash == hash).then_some(place.value)
    }

    /// Returns the hash at the first place that `hash` may have.
    #[inline]
    pub(super) fn glance(&self, hash: u64) -> u64 {
        self.places.get(home(hash, self.places.len())).map_or(0, |place| place.hash)
    }

    /// Returns the place of a value, made if absent.
    #[inline]
    #[allow(clippy::indexing_slicing, reason = "a place that was found or made is there")]
    pub(super) fn made(&mut self, hash: u64) -> &mut u64 {
        let hash = stored_hash(hash);
        let mut at = self.at(hash);
        if self.places.get(at).is_none_or(|place| place.hash != hash) {
            at = self.make(hash);
        }
        &mut self.places[at].value
    }

    /// Returns how many texts there are.
    pub(super) const fn len(&self) -> usize {
        self.used
    }

    /// Returns the bytes that they take.
    pub(super) const fn bytes(&self) -> usize {
        self.places.len() * PLACE_BYTES
    }

    /// Returns the index of a hash, or else of the free place for it.
    #[inline]
    fn at(&self, hash: u64) -> usize {
        let places = self.places.as_slice();
        let mut at = home(hash, places.len());
        while let Some(place) = places.get(at) {
            if place.hash == hash || place.hash == FREE {
                break;
            }
            at = if at + 1 < places.len() { at + 1 } else { 0 };
        }
        at
    }

    #[cold]
    fn make(&mut self, hash: u64) -> usize {
        if self.used >= self.places.len() / 4 * 3 {
            self.grow();
        }
        self.used += 1;
        self.put(TextPlace { hash, value: 0 })
    }

    /// Grows by a quarter: twice the places would stay free for long.
    fn grow(&mut self) {
        let count = (self.places.len() + self.places.len() / 4).max(PLACES_MIN);
        let before = std::mem::replace(&mut self.places, vec![TextPlace::default(); count]);
        for place in before.into_iter().filter(|place| place.hash != FREE) {
            self.put(place);
        }
    }

    fn put(&mut self, new: TextPlace) -> usize {
        let at = self.at(new.hash);
        if let Some(place) = self.places.get_mut(at) {
            *place = new;
        }
        at
    }
}

/// Returns the hash to store: a text never gets the hash of free places.
const fn stored_hash(hash: u64) -> u64 {
    if hash == FREE { 1 } else { hash }
}

/// Returns the first place of a hash among `places`, in the order of its highest bits. So all
/// hashes keep their order when there are more places.
#[inline]
fn home(hash: u64, places: usize) -> usize {
    let share = u128::from(hash) * places as u128;
    usize::try_from(share >> u64::BITS).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// Hashes that lie anywhere, close to each other, at both ends, and twice.
    fn hashes() -> impl Strategy<Value = Vec<u64>> {
        let hash = prop_oneof![
            any::<u64>(),
            0..40_u64,
            (0..40_u64).prop_map(|below| u64::MAX - below),
            (0..40_u64).prop_map(|above| (1 << 63) + above),
        ];
        prop::collection::vec(hash, 0..400)
    }

    proptest! {
        #[test]
        fn each_hash_has_its_value(hashes in hashes()) {
            let (mut texts, mut model) = (TextMap::default(), HashMap::new());
            for (number, hash) in (1..).zip(&hashes) {
                let value = texts.made(*hash);
                let expected: &mut u64 = model.entry((*hash).max(1)).or_default();
                prop_assert_eq!(*value, *expected);
                (*value, *expected) = (number, number);
            }
            prop_assert_eq!(texts.len(), model.len());
            for (hash, value) in &model {
                prop_assert_eq!(texts.get(*hash), Some(*value));
            }
            for hash in hashes.iter().map(|hash| hash.wrapping_add(1)) {
                prop_assert_eq!(texts.get(hash), model.get(&hash.max(1)).copied());
            }
            prop_assert!(texts.len() <= texts.places.len() / 4 * 3);
        }
    }

    #[test]
    fn empty_text_map_takes_no_memory() {
        let texts = TextMap::default();
        assert_eq!((texts.get(0), texts.get(7), texts.len(), texts.bytes()), (None, None, 0, 0));
    }
}

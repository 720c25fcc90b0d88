//! The last value of each key, in as little memory as possible.
//!
//! A value is only a lower bound; the section's window is another. So no value needs to survive a
//! restart. Keys that take too much memory may be forgotten, as long as the section's own bound is
//! raised above their values.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::DefaultHashBuilder;
use std::hash::BuildHasher as _;

use super::key::CounterKey;
use super::room::KeyRoom;
use super::text_map::TextMap;

/// Number of parts that the keys are divided into, each behind its own lock.
const SHARDS: usize = 256;
/// Numbers on one page: few enough for keys that lie apart, and enough that the page's overhead
/// hardly counts for keys that do not.
const PAGE: usize = 32;
/// Bytes of a page and of the allocator's overhead. A number without neighbours has its own page.
const PAGE_BYTES: usize = PAGE * 8 + 16;
/// Bytes of a map for each page it has capacity for: number, pointer, control byte, and an eighth
/// that stays free.
const MAPPED_BYTES: usize = 20;
/// Page numbers of a shard, from 0 on, that have places in a list however few pages there are.
const LISTED_MIN: usize = 256;

type Page = Box<[u64; PAGE]>;

/// Values by key.
#[derive(Debug)]
pub(in crate::sources) struct KeyTable {
    shards: Box<[Mutex<Shard>]>,
    hasher: DefaultHashBuilder,
    /// Bytes accounted for in all parts.
    bytes: AtomicUsize,
    /// Limit on the keys of all tables together.
    room: Arc<KeyRoom>,
    /// Whether keys were ever forgotten here. The locks of their parts order the accesses.
    has_forgotten: AtomicBool,
}

/// Location of a key: its part of the table, and the hash that finds it there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) shard: usize,
    pub(super) hash: u64,
}

/// The keys behind one lock.
#[derive(Debug, Default)]
pub(super) struct Shard {
    texts: TextMap,
    pages: Pages,
    /// `size()` when its bytes were last counted.
    seen: usize,
    /// Bytes that are accounted for.
    counted: usize,
}

/// Pages by number. Low numbers stand in a list, which costs one memory access instead of a map's
/// two: keys are often numbers from 1 on. A list that would have more holes than pages does not
/// grow, and a map holds the pages beyond it.
#[derive(Debug, Default)]
struct Pages {
    list: Vec<Option<Page>>,
    map: HashMap<usize, Page, DefaultHashBuilder>,
    count: usize,
}

impl KeyTable {
    /// Creates an empty table, counted with the other tables of this memory limit.
    pub(in crate::sources) fn new(room: &Arc<KeyRoom>) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: DefaultHashBuilder::default(),
            bytes: AtomicUsize::new(0),
            room: Arc::clone(room),
            has_forgotten: AtomicBool::new(false),
        }
    }

    /// Returns the location of a key.
    #[inline]
    pub(super) fn spot(&self, key: CounterKey<'_>) -> Spot {
        let hash = match key {
            // Neighbouring numbers stand on one page.
            CounterKey::Number(number) => number / PAGE as u64,
            CounterKey::Text(text) => self.hasher.hash_one(text),
        };
        // The highest bits choose among the places of texts.
        let shard = usize::try_from((hash >> 20 ^ hash) % SHARDS as u64).unwrap_or(0);
        Spot { shard, hash }
    }

    /// Locks the part that holds a key.
    pub(super) fn lock(&self, key: CounterKey<'_>) -> (MutexGuard<'_, Shard>, u64) {
        let spot = self.spot(key);
        (self.lock_part(spot), spot.hash)
    }

    /// Locks the part of a spot. Lock several in ascending order.
    pub(super) fn lock_part(&self, spot: Spot) -> MutexGuard<'_, Shard> {
        self.shard(spot.shard)
    }

    #[allow(clippy::indexing_slicing, reason = "shards are counted modulo their number")]
    fn shard(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.shards[shard % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every take that has already begun is over.
    pub(in crate::sources) fn quiesce(&self) {
        for shard in 0..SHARDS {
            drop(self.shard(shard));
        }
    }

    /// Accounts for a part's growth, after a place in it was requested.
    #[inline]
    pub(super) fn count(&self, shard: &mut Shard) {
        let size = shard.size();
        if shard.seen != size {
            shard.seen = size;
            self.recount(shard);
        }
    }

    #[cold]
    fn recount(&self, shard: &mut Shard) {
        let bytes = shard.bytes().max(shard.counted);
        let more = bytes - shard.counted;
        shard.counted = bytes;
        self.bytes.fetch_add(more, Ordering::Relaxed);
        self.room.add(more);
    }

    /// Returns how many bytes are accounted for.
    pub(in crate::sources) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Forgets the keys of enough parts to free `bytes`, or of all parts; returns the bytes freed.
    /// `raise` ensures that none of their values comes again, while these parts are locked.
    pub(in crate::sources) fn forget(&self, bytes: usize, raise: impl FnOnce()) -> usize {
        let mut freed: usize = 0;
        let mut parts = Vec::new();
        // In ascending order, as everywhere where several parts are locked.
        for shard in 0..SHARDS {
            let part = self.shard(shard);
            if part.counted > 0 {
                freed += part.counted;
                parts.push(part);
            }
            if freed >= bytes {
                break;
            }
        }
        self.has_forgotten.store(true, Ordering::Relaxed);
        raise();
        let forgotten: Vec<Shard> =
            parts.iter_mut().map(|part| std::mem::take(&mut **part)).collect();
        // Freeing the pages takes a while: the locks are released first.
        drop(parts);
        drop(forgotten);
        self.bytes.fetch_sub(freed, Ordering::Relaxed);
        self.room.subtract(freed);
        freed
    }

    /// Returns whether keys were ever forgotten here.
    #[inline]
    pub(super) fn has_forgotten(&self) -> bool {
        self.has_forgotten.load(Ordering::Relaxed)
    }

    /// Returns the place of a key's value, 0 in a new one. [Count](Self::count) after using it.
    pub(super) fn place<'a>(
        &self,
        shard: &'a mut Shard,
        key: CounterKey<'_>,
        hash: u64,
    ) -> &'a mut u64 {
        match key {
            CounterKey::Number(number) => {
                let page = shard.pages.made(page_of(hash));
                let at = usize::try_from(number % PAGE as u64).unwrap_or(0);
                #[allow(clippy::indexing_slicing, reason = "counted modulo the page's length")]
                &mut page[at]
            }
            CounterKey::Text(_) => shard.texts.made(hash),
        }
    }

    /// Starts the memory access for a key's value. Nothing depends on the result, so several
    /// glances wait together.
    #[inline]
    pub(super) fn glance(&self, shard: &Shard, key: CounterKey<'_>, hash: u64) -> u64 {
        match key {
            CounterKey::Number(_) => self.find(shard, key, hash).unwrap_or(0),
            CounterKey::Text(_) => shard.texts.glance(hash),
        }
    }

    /// Returns the value of a key, if there is one.
    pub(super) fn find(&self, shard: &Shard, key: CounterKey<'_>, hash: u64) -> Option<u64> {
        let value = match key {
            CounterKey::Number(number) => {
                let at = usize::try_from(number % PAGE as u64).ok()?;
                *shard.pages.get(page_of(hash))?.get(at)?
            }
            CounterKey::Text(_) => shard.texts.get(hash)?,
        };
        (value > 0).then_some(value)
    }

    /// Returns about how many keys and bytes there are.
    pub(super) fn size(&self) -> (u64, u64) {
        (0..SHARDS).fold((0, 0), |(keys, bytes), shard| {
            let shard = self.shard(shard);
            let of_pages = shard.pages.all().flat_map(|page| page.iter());
            let numbers = of_pages.filter(|value| **value > 0).count();
            let all = u64::try_from(numbers + shard.texts.len()).unwrap_or(u64::MAX);
            let more = u64::try_from(shard.bytes()).unwrap_or(u64::MAX);
            (keys.saturating_add(all), bytes.saturating_add(more))
        })
    }
}

/// Returns the number of a page within its shard.
fn page_of(hash: u64) -> usize {
    usize::try_from(hash / SHARDS as u64).unwrap_or(usize::MAX)
}

impl Pages {
    fn get(&self, at: usize) -> Option<&Page> {
        self.list.get(at).and_then(Option::as_ref).or_else(|| self.map.get(&at))
    }

    /// Returns the page, made if absent.
    #[inline]
    fn made(&mut self, at: usize) -> &mut Page {
        if at >= self.list.len() && at < self.listed_max() {
            self.lengthen(at);
        }
        let Self { list, map, count } = self;
        let make = || {
            *count += 1;
            Box::new([0; PAGE])
        };
        match list.get_mut(at) {
            Some(place) => place.get_or_insert_with(make),
            None => map.entry(at).or_insert_with(make),
        }
    }

    fn listed_max(&self) -> usize {
        LISTED_MIN.max(2 * self.count)
    }

    /// Makes the list longer, and moves pages of its new range from the map.
    #[cold]
    fn lengthen(&mut self, at: usize) {
        let length = self.listed_max().min((at + 1).next_power_of_two());
        let map = &mut self.map;
        let more = (self.list.len()..length).map(|at| map.remove(&at));
        self.list.extend(more);
    }

    /// Returns the bytes that the pages take.
    fn bytes(&self) -> usize {
        let places = self.list.capacity() * size_of::<Option<Page>>();
        self.count * PAGE_BYTES + places + self.map.capacity() * MAPPED_BYTES
    }

    fn all(&self) -> impl Iterator<Item = &Page> {
        self.list.iter().flatten().chain(self.map.values())
    }
}

/// Gives back the bytes of a source that is gone.
impl Drop for KeyTable {
    fn drop(&mut self) {
        self.room.subtract(self.bytes());
    }
}

impl Shard {
    fn bytes(&self) -> usize {
        self.pages.bytes() + self.texts.bytes()
    }

    /// Returns a number that changes whenever the bytes may change, and is cheaper to compute.
    const fn size(&self) -> usize {
        self.pages.count + self.texts.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table with more memory than any test needs.
    fn table() -> KeyTable {
        KeyTable::new(&Arc::new(KeyRoom::new(1 << 30)))
    }

    fn add(table: &KeyTable, key: &[u8], by: u64) -> u64 {
        let key = CounterKey::new(key).unwrap();
        let (mut shard, hash) = table.lock(key);
        let place = table.place(&mut shard, key, hash);
        *place += by;
        let value = *place;
        table.count(&mut shard);
        assert_eq!(table.find(&shard, key, hash), Some(value));
        value
    }

    /// Keys without neighbours.
    fn far_apart(count: u64) -> impl Iterator<Item = String> {
        (1..=count).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string())
    }

    #[test]
    fn keys_of_both_kinds_count_for_themselves() {
        let table = table();
        for round in 1..=3 {
            for number in 0..5_000_u64 {
                for key in [format!("{number}"), format!("user-{number}"), format!("0{number}")] {
                    assert_eq!(add(&table, key.as_bytes(), number + 1), round * (number + 1));
                }
            }
        }
        let none = CounterKey::Text(b"absent");
        let (shard, hash) = table.lock(none);
        assert_eq!(table.find(&shard, none, hash), None);
        drop(shard);
        assert_eq!(table.size().0, 15_000);
    }

    #[test]
    fn longest_keys_and_highest_values_fit() {
        let table = table();
        let key = [b'k'; 255];
        assert_eq!(add(&table, &key, u64::MAX), u64::MAX);
        assert_eq!(add(&table, b"18446744073709551615", u64::MAX), u64::MAX);
    }

    #[test]
    fn every_byte_is_counted_and_given_back() {
        let room = Arc::new(KeyRoom::new(100_000));
        let table = KeyTable::new(&room);
        for number in 0..2_000 {
            add(&table, format!("user-{number}").as_bytes(), 1);
        }
        for key in far_apart(2_000) {
            add(&table, key.as_bytes(), 1);
        }
        assert_eq!(table.bytes() as u64, table.size().1, "all of it is counted");
        assert!(room.is_over());
        let before = table.bytes();
        let mut raised = 0;
        let freed = table.forget(room.bytes_to_free(), || raised += 1);
        assert!((6_250..before).contains(&freed), "{freed} of {before}");
        assert_eq!((raised, table.bytes() as u64), (1, table.size().1));
        assert!(table.size().0 < 4_000);
        assert_eq!(table.forget(usize::MAX, || ()), before - freed, "all that is left");
        assert_eq!((table.bytes(), table.size()), (0, (0, 0)));
        assert_eq!(table.forget(1, || ()), 0, "there is no more");
        room.set_max(0);
        assert!(!room.is_over(), "nothing is taken");
    }

    #[test]
    fn dropped_table_gives_its_bytes_back() {
        let room = Arc::new(KeyRoom::new(0));
        let table = KeyTable::new(&room);
        add(&table, b"user", 1);
        assert!(room.is_over());
        drop(table);
        assert!(!room.is_over());
    }

    /// A part with few pages can still have a long list: the keys choose its length.
    #[test]
    fn places_that_stand_empty_are_counted() {
        let mut pages = Pages::default();
        pages.made(LISTED_MIN - 1);
        assert!(pages.bytes() >= PAGE_BYTES + LISTED_MIN * size_of::<Option<Page>>());
    }

    #[test]
    fn a_page_is_found_wherever_it_stands() {
        let mut pages = Pages::default();
        // In descending order: the pages go into the map, and from there into the list.
        let numbers = || (0..3_000_usize).rev().chain([1 << 40, usize::MAX]);
        for round in 1..=3 {
            for at in numbers() {
                pages.made(at)[7] += at as u64 % 1_000 + 1;
                assert_eq!(pages.get(at).unwrap()[7], round * (at as u64 % 1_000 + 1));
            }
        }
        assert_eq!((pages.count, pages.all().count()), (3_002, 3_002));
        assert_eq!(pages.map.len(), 2, "what is dense stands in the list");
        assert!(pages.get(3_001).is_none());
    }

    #[test]
    fn numbers_far_apart_make_no_list() {
        let mut pages = Pages::default();
        for at in 0..1_000 {
            pages.made(at << 20);
        }
        assert!(pages.list.len() <= LISTED_MIN, "{}", pages.list.len());
    }

    /// Documented bounds in bytes: 10 for a number with neighbours, 320 for one without, 28 for a
    /// text.
    #[test]
    fn keys_cost_the_stated_bytes() {
        let dense = table();
        for number in 0..1_000_000_u64 {
            let key = CounterKey::Number(number);
            let (mut shard, hash) = dense.lock(key);
            *dense.place(&mut shard, key, hash) = 1;
        }
        let (keys, bytes) = dense.size();
        assert!(keys == 1_000_000 && bytes <= 10 * keys, "{bytes}");

        let sparse = table();
        for (number, key) in (1_u64..).zip(far_apart(100_000)) {
            add(&sparse, key.as_bytes(), 1);
            // The bytes accounted for are at least a page and its places: 256, 16 and a byte.
            if number % 10_000 == 0 {
                let (keys, bytes) = sparse.size();
                assert_eq!((keys, bytes), (number, sparse.bytes() as u64));
                assert!((273 * keys..=320 * keys).contains(&bytes), "{bytes} of {keys}");
            }
        }

        let texts = table();
        let mut text = *b"user-0000000";
        for number in 1..=1_000_000_u32 {
            text[5..].copy_from_slice(format!("{number:07}").as_bytes());
            let key = CounterKey::Text(&text);
            let (mut shard, hash) = texts.lock(key);
            *texts.place(&mut shard, key, hash) = 1;
            drop(shard);
            // Also checked right after parts have grown.
            if number % 25_000 == 0 {
                let (keys, bytes) = texts.size();
                assert!(keys == u64::from(number) && bytes <= 28 * keys, "{bytes} of {keys}");
            }
        }
    }
}

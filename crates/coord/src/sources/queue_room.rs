//! Limit on the IDs in all queues of a node together. A queue allocates its memory when it is made,
//! 16 bytes for each ID, and the authors of definitions decide how many queues there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most IDs in all queues of a node, and the IDs for which room is taken.
#[derive(Debug)]
pub(crate) struct QueueRoom {
    ids_max: AtomicU64,
    reserved: AtomicU64,
}

impl QueueRoom {
    pub(crate) const fn new(ids_max: u64) -> Self {
        Self { ids_max: AtomicU64::new(ids_max), reserved: AtomicU64::new(0) }
    }

    /// Sets the limit for queues made from now on.
    pub(crate) fn set_max(&self, ids_max: u64) {
        self.ids_max.store(ids_max, Ordering::Relaxed);
    }

    pub(crate) fn ids_max(&self) -> u64 {
        self.ids_max.load(Ordering::Relaxed)
    }

    /// Reserves places for this many IDs, until they are dropped; `None` when fewer are left.
    pub(super) fn reserve(self: &Arc<Self>, ids: u64) -> Option<Places> {
        let ids_max = self.ids_max();
        let more = |reserved: u64| reserved.checked_add(ids).filter(|all| *all <= ids_max);
        // Relaxed: it guards nothing but this count.
        self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Places { room: Arc::clone(self), ids })
    }
}

/// Places that one queue has reserved.
#[derive(Debug)]
pub(super) struct Places {
    room: Arc<QueueRoom>,
    ids: u64,
}

impl Drop for Places {
    fn drop(&mut self) {
        self.room.reserved.fetch_sub(self.ids, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_have_as_many_places_as_there_are_and_give_them_back() {
        let room = Arc::new(QueueRoom::new(100));
        let one = room.reserve(60).unwrap();
        assert!(room.reserve(41).is_none() && room.reserve(u64::MAX).is_none());
        let other = room.reserve(40).unwrap();
        assert!(room.reserve(1).is_none());
        drop(one);
        assert!(room.reserve(60).is_some(), "and given back at once");
        room.set_max(50);
        assert!(room.reserve(11).is_none());
        drop(other);
        assert!(room.reserve(50).is_some());
    }
}

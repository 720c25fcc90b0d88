//! Sections that this process owns: the lease on all of them, counters' windows, and the demand.
//!
//! The sections of counters come first, one for each hash slot. As many slots of global-order
//! sources follow: such a source has the slot of its name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use arc_swap::ArcSwap;
use snowmint_core::ElapsedMillis;
use tokio::sync::Notify;

use super::counter::{KeyRoom, KeyTable};
use super::lease_stamp::LeaseStamp;
use super::member_notices::MemberNotices;
use crate::ids::Mark;
use crate::machine::demand::Demand;
use crate::machine::section_assignment::{SectionAssignment, SectionLocation, Server};
use crate::model::pool::SECTIONS;
use crate::platform::lock::lock;

/// Window of one section: values from `base` to below `limit` may be issued. Aligned, so that a
/// number of any section costs one cache line.
#[derive(Debug, Default)]
#[repr(align(32))]
pub(super) struct SectionWindow {
    /// Everything below may have been issued by other owners.
    base: AtomicU64,
    /// 0 while the section is not ours.
    limit: AtomicU64,
    /// Highest value that this process issued.
    top: AtomicU64,
    /// Limit for which more was already requested.
    requested: AtomicU64,
}

/// Request and term by which the store knows our hold on a section.
#[derive(Debug, Default)]
struct HoldToken {
    request: AtomicU64,
    term: AtomicU64,
}

/// Bounds of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowBounds {
    pub(super) base: u64,
    pub(super) limit: u64,
}

/// Location of a section that this process does not own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NotOwned {
    /// The node is closed.
    Closed,
    /// It was requested.
    Pending,
    /// Another server owns it.
    With(Server),
    /// Another server owned it a moment ago. It was requested.
    HandingOver(Server),
}

/// Windows of all sections of a node, for all its counter and global-order sources.
pub(crate) struct SectionWindows {
    /// Whether a source with sections was ever opened here.
    used: AtomicBool,
    cells: OnceLock<Box<[SectionWindow]>>,
    holds: OnceLock<Box<[HoldToken]>>,
    lease: AtomicU64,
    memberships: AtomicU64,
    wanted: Mutex<BTreeMap<u16, Demand>>,
    /// Wakes the driver.
    wake: Arc<Notify>,
    /// Whether the node is closed.
    closed: AtomicBool,
    /// Sections of other servers that callers requested here, since the driver last took them.
    misdirected: Mutex<BTreeSet<u16>>,
    /// Whether a caller was redirected, or asked for the owners, since the driver last checked.
    recheck: AtomicBool,
    /// Notices that the members have changed.
    pub(crate) member_notices: MemberNotices,
    /// Notified when windows have opened, or an attempt has failed.
    pub(super) news: Notify,
    /// Owners of the sections.
    pub(super) assignment: ArcSwap<SectionAssignment>,
    /// Key tables of all sources: a taker holds a lock of one of them while it takes. Those of
    /// sources that are gone are dropped with the source, and leave at the next registration.
    tables: Mutex<Vec<Weak<KeyTable>>>,
    /// Memory limit of these tables together.
    key_room: Arc<KeyRoom>,
    /// Lock under which keys are forgotten.
    forgetting: Mutex<()>,
    /// For each section: everything below may have been issued for a key that is forgotten. Only
    /// sources that have forgotten keys continue above it, so their callers make no numbers of
    /// other sources jump.
    forgotten: OnceLock<Box<[AtomicU64]>>,
}

impl SectionWindows {
    pub(crate) fn new(wake: Arc<Notify>) -> Self {
        Self {
            used: AtomicBool::new(false),
            cells: OnceLock::new(),
            holds: OnceLock::new(),
            lease: AtomicU64::new(0),
            memberships: AtomicU64::new(0),
            wanted: Mutex::default(),
            wake,
            closed: AtomicBool::new(false),
            misdirected: Mutex::default(),
            recheck: AtomicBool::new(false),
            member_notices: MemberNotices::default(),
            news: Notify::new(),
            assignment: ArcSwap::default(),
            tables: Mutex::default(),
            key_room: Arc::new(KeyRoom::new(usize::MAX)),
            forgetting: Mutex::default(),
            forgotten: OnceLock::new(),
        }
    }

    /// Returns whether a counter or global-order source was ever opened here.
    pub(crate) fn are_used(&self) -> bool {
        self.used.load(Ordering::Acquire)
    }

    /// Records that a source with sections was opened, or that a client asks for the owners.
    pub(crate) fn begin(&self) {
        self.used.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    pub(super) fn register(&self, table: &Arc<KeyTable>) {
        {
            let mut tables = lock(&self.tables);
            tables.retain(|known| known.strong_count() > 0);
            tables.push(Arc::downgrade(table));
        }
        self.begin();
    }

    fn tables(&self) -> Vec<Arc<KeyTable>> {
        lock(&self.tables).iter().filter_map(Weak::upgrade).collect()
    }

    pub(super) const fn key_room(&self) -> &Arc<KeyRoom> {
        &self.key_room
    }

    /// Sets the most bytes that the keys of all sources take from now on.
    pub(crate) fn limit_keys(&self, bytes_max: usize) {
        self.key_room.set_max(bytes_max);
    }

    /// Forgets keys while they exceed the limit. Not to be called while holding a lock of a table.
    #[inline]
    pub(super) fn make_room(&self) {
        if self.key_room.is_over() {
            self.forget_keys();
        }
    }

    /// Forgets keys of the largest source first: a source with few keys keeps them, however large
    /// the others are.
    #[cold]
    fn forget_keys(&self) {
        let _turn = lock(&self.forgetting);
        while self.key_room.is_over() {
            let largest = self.tables().into_iter().max_by_key(|table| table.bytes());
            let Some(largest) = largest else { return };
            if largest.forget(self.key_room.bytes_to_free(), || self.raise_forgotten()) == 0 {
                return;
            }
        }
    }

    /// Forgets all keys of a source, which continue above all their numbers.
    pub(super) fn forget_all(&self, table: &KeyTable) {
        let _turn = lock(&self.forgetting);
        if table.bytes() > 0 {
            table.forget(usize::MAX, || self.raise_forgotten());
        }
    }

    fn all(&self) -> &[SectionWindow] {
        self.cells.get_or_init(|| (0..SECTIONS).map(|_| SectionWindow::default()).collect())
    }

    #[allow(clippy::indexing_slicing, reason = "sections are counted modulo their number")]
    pub(super) fn cell(&self, section: u16) -> &SectionWindow {
        &self.all()[usize::from(section % SECTIONS)]
    }

    #[allow(clippy::indexing_slicing, reason = "sections are counted modulo their number")]
    fn hold_of(&self, section: u16) -> &HoldToken {
        let holds =
            self.holds.get_or_init(|| (0..SECTIONS).map(|_| HoldToken::default()).collect());
        &holds[usize::from(section % SECTIONS)]
    }

    /// Returns request and term of our hold.
    pub(super) fn held_by(&self, section: u16) -> (u64, u64) {
        let hold = self.hold_of(section);
        (hold.request.load(Ordering::Acquire), hold.term.load(Ordering::Acquire))
    }

    pub(super) fn lease(&self) -> LeaseStamp {
        LeaseStamp::from_word(self.lease.load(Ordering::Acquire))
    }

    /// Records demand and wakes the driver.
    pub(super) fn want(&self, section: u16, want: Demand) {
        {
            let mut wanted = lock(&self.wanted);
            wanted.entry(section).and_modify(|known| *known = known.and(want)).or_insert(want);
        }
        self.wake.notify_one();
    }

    /// Returns the location of a section that this process does not own. If it should own the
    /// section, it requests it.
    pub(super) fn absent(&self, section: u16, want: Demand, now: ElapsedMillis) -> NotOwned {
        if self.is_closed() {
            return NotOwned::Closed;
        }
        let assignment = self.assignment.load();
        if assignment.is_leaving(section) {
            return NotOwned::Pending;
        }
        let is_own = assignment.is_own(section);
        if is_own {
            // Also while another server still has it: it may have been released since.
            self.want(section, want);
        } else {
            lock(&self.misdirected).insert(section);
        }
        match assignment.place(section) {
            SectionLocation::Here => NotOwned::Pending,
            SectionLocation::With(server) if is_own && assignment.is_holder_stale(section, now) => {
                NotOwned::HandingOver(server)
            }
            SectionLocation::With(server) => {
                self.recheck();
                NotOwned::With(server)
            }
        }
    }

    /// Has the driver check the owners again: a caller is redirected, or asks for them.
    pub(crate) fn recheck(&self) {
        if !self.recheck.swap(true, Ordering::Relaxed) {
            self.wake.notify_one();
        }
    }

    /// Takes in a peer's notice that the members have changed, and waits until they are listed.
    pub(crate) async fn members_changed(&self) {
        let notice = self.member_notices.add();
        self.wake.notify_one();
        self.until(|| self.member_notices.listed() >= notice || self.is_closed()).await;
    }

    /// Waits until the driver has asked the store for the peers.
    pub(crate) async fn await_listed(&self) {
        self.until(|| self.assignment.load().is_listed()).await;
    }

    /// Waits until this is so, after news.
    async fn until(&self, is_so: impl Fn() -> bool) {
        loop {
            let mut news = pin!(self.news.notified());
            news.as_mut().enable();
            if is_so() {
                return;
            }
            news.await;
        }
    }

    // The driver calls the following.

    pub(crate) fn take_misdirected(&self) -> BTreeSet<u16> {
        std::mem::take(&mut *lock(&self.misdirected))
    }

    pub(crate) fn take_recheck(&self) -> bool {
        self.recheck.swap(false, Ordering::Relaxed)
    }

    /// Takes the demand since the last call.
    pub(crate) fn take_wanted(&self) -> BTreeMap<u16, Demand> {
        std::mem::take(&mut *lock(&self.wanted))
    }

    /// Begins a new membership; returns its number.
    pub(crate) fn joined(&self) -> u64 {
        // 20 bits, never 0.
        self.memberships.fetch_add(1, Ordering::Relaxed) % ((1 << 20) - 1) + 1
    }

    /// Sets the end of the lease.
    pub(crate) fn lease_until(&self, membership: u64, until: ElapsedMillis) {
        self.lease.store(LeaseStamp::new(membership, until).word(), Ordering::Release);
    }

    /// Records that this process owns a section: everything below the floor of its lease may have
    /// been issued. `request` identifies our hold to the store.
    pub(crate) fn hold(&self, section: u16, lease: &crate::model::lease::Lease, request: u64) {
        self.cell(section).base.fetch_max(lease.floor.get(), Ordering::AcqRel);
        let hold = self.hold_of(section);
        hold.term.store(lease.term.get(), Ordering::Release);
        hold.request.store(request, Ordering::Release);
    }

    /// Opens the window of a section up to `mark`.
    pub(crate) fn open(&self, section: u16, mark: Mark) {
        self.cell(section).limit.store(mark.get(), Ordering::Release);
    }

    /// Returns how many counter sections this process owns.
    pub(crate) fn held(&self) -> u64 {
        let cells = self.cells.get().into_iter().flat_map(|cells| cells.iter());
        let held = cells.filter(|cell| cell.limit.load(Ordering::Relaxed) > 0).count();
        u64::try_from(held).unwrap_or(u64::MAX)
    }

    /// Closes a section that this process no longer owns; numbers already taken may be returned.
    pub(crate) fn shut(&self, section: u16) {
        self.cell(section).limit.store(0, Ordering::Release);
    }

    /// Waits until every take that began before a [`SectionWindows::shut`] is over.
    pub(crate) fn quiesce(&self) {
        for table in self.tables() {
            table.quiesce();
        }
    }

    /// Closes all sections: the lease is over.
    pub(crate) fn shut_all(&self) {
        self.lease.store(LeaseStamp::NONE.word(), Ordering::Release);
        for cell in self.cells.get().into_iter().flat_map(|cells| cells.iter()) {
            cell.limit.store(0, Ordering::Release);
        }
        self.quiesce();
        self.notify();
    }

    /// Closes for good: no number is returned any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.shut_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Notifies waiters that something has changed.
    pub(crate) fn notify(&self) {
        self.news.notify_waiters();
    }

    /// Sets the owners of the sections, as far as they are known.
    pub(crate) fn publish_assignment(&self, assignment: SectionAssignment) {
        self.assignment.store(Arc::new(assignment));
    }

    pub(crate) fn assignment(&self) -> Arc<SectionAssignment> {
        self.assignment.load_full()
    }

    /// Raises the bases of forgotten keys before keys are forgotten: no value that was issued may
    /// come again.
    fn raise_forgotten(&self) {
        let bases =
            self.forgotten.get_or_init(|| (0..SECTIONS).map(|_| AtomicU64::default()).collect());
        for (cell, base) in self.all().iter().zip(bases.iter()) {
            let top = cell.top.load(Ordering::Acquire);
            base.fetch_max(top.saturating_add(1), Ordering::AcqRel);
        }
    }

    /// Returns the number below which everything may have been issued for a forgotten key.
    pub(super) fn forgotten_below(&self, section: u16) -> u64 {
        let bases = self.forgotten.get();
        let base = bases.and_then(|bases| bases.get(usize::from(section % SECTIONS)));
        base.map_or(0, |base| base.load(Ordering::Acquire))
    }
}

impl SectionWindow {
    /// Returns the window; `None` while this process does not own the section.
    pub(super) fn window(&self) -> Option<WindowBounds> {
        // The limit is read first: a thread that sees it sees the base that belongs to it.
        let limit = self.limit.load(Ordering::Acquire);
        (limit > 0).then(|| WindowBounds { base: self.base.load(Ordering::Acquire), limit })
    }

    /// Records that values up to this one were issued.
    pub(super) fn gave(&self, value: u64) {
        // Most keys of a section lie below its highest: these need no locked instruction.
        if self.top.load(Ordering::Acquire) < value {
            self.top.fetch_max(value, Ordering::AcqRel);
        }
    }

    /// Returns the base, whether this process owns the section or not.
    pub(super) fn base(&self) -> u64 {
        self.base.load(Ordering::Acquire)
    }

    /// Returns whether this is the first request for more than `limit`.
    pub(super) fn is_first_request(&self, limit: u64) -> bool {
        self.requested.load(Ordering::Relaxed) != limit
            && self.requested.swap(limit, Ordering::Relaxed) != limit
    }
}

impl fmt::Debug for SectionWindows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SectionWindows").field("used", &self.are_used()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> ElapsedMillis {
        ElapsedMillis::new(ms)
    }

    fn lease(mark: u64) -> crate::model::lease::Lease {
        let mark = Mark::new(mark);
        let term = crate::ids::Term::new(1);
        crate::model::lease::Lease {
            pool: "sections".into(),
            slot: 7,
            term,
            holder: None,
            floor: mark,
            mark,
        }
    }

    #[test]
    fn number_is_returned_only_in_its_membership() {
        let sections = SectionWindows::new(Arc::default());
        assert!(!sections.lease().covers(sections.lease(), at(0)), "there is no lease");
        let first = sections.joined();
        sections.lease_until(first, at(1_000));
        let taken = sections.lease();
        assert!(taken.covers(sections.lease(), at(999)));
        assert!(!taken.covers(sections.lease(), at(1_000)));
        sections.lease_until(first, at(2_000));
        assert!(taken.covers(sections.lease(), at(1_999)), "renewed meanwhile");
        sections.shut_all();
        assert!(!taken.covers(sections.lease(), at(0)));
        sections.lease_until(sections.joined(), at(9_000));
        assert!(!taken.covers(sections.lease(), at(0)), "another may have had it in between");
    }

    #[test]
    fn tables_of_sources_that_are_gone_are_dropped() {
        let sections = SectionWindows::new(Arc::default());
        let stays = Arc::new(KeyTable::new(sections.key_room()));
        sections.register(&stays);
        for _ in 0..100 {
            sections.register(&Arc::new(KeyTable::new(sections.key_room())));
        }
        let (live, registered) = (sections.tables().len(), lock(&sections.tables).len());
        // The last one leaves at the next registration.
        assert_eq!((live, registered), (1, 2));
    }

    #[test]
    fn a_section_is_open_from_the_floor_of_its_lease() {
        let sections = SectionWindows::new(Arc::default());
        assert!(sections.cell(7).window().is_none());
        sections.hold(7, &lease(50), 1);
        assert!(sections.cell(7).window().is_none(), "held, and not open");
        sections.open(7, Mark::new(90));
        let window = sections.cell(7).window().unwrap();
        assert_eq!((window.base, window.limit), (50, 90));
        sections.shut(7);
        assert!(sections.cell(7).window().is_none());
        sections.hold(7, &lease(20), 2);
        assert_eq!(sections.cell(7).base(), 50, "a base never falls");
    }
}

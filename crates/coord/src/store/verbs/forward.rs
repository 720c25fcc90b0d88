//! Operator steps: recovery, and acceptance of a lead.

use async_trait::async_trait;

use super::BackendStore;
use super::history::{check_plan, end_doubt, put_moved, put_start};
use super::put::put_slots;
use super::rows::{Access, Backend, NamespaceRow, Rows, RowsResult, VerbResult};
use super::run_verb::{RunVerb, steps};
use crate::error::{Result, Verb};
use crate::ids::Mark;
use crate::model::catalog::Definition;
use crate::model::fast_forward::FastForward;
use crate::model::history::{History, StoreIdentity};
use crate::model::lease::{SlotRow, check_mark, fast_forwarded};
use crate::model::pool::{SlotDefaults, counts};
use crate::platform::random;

/// Position of a walk over everything that has a mark.
#[derive(Clone, Debug, Default)]
struct Walk {
    /// Number of sources done.
    sources: usize,
    /// Last slot done, by pool and number.
    slot: Option<(String, u64)>,
    /// Count of writes of the first step. A process that saw as many or more saw writes that are
    /// missing.
    began_at: Option<u64>,
}

/// One step of the walk: as much as fits. The first step also moves the defaults of slots without a
/// row, so that no low mark is made behind the walk; the last gives the store its new identity.
struct FastForwardVerb<'a> {
    forward: &'a FastForward,
    /// Identity of the store if it gets a new one.
    new_id: &'a str,
    from: Walk,
}

#[async_trait]
impl RunVerb for FastForwardVerb<'_> {
    /// The store's identity when the walk is done, otherwise its position.
    type Output = Result<String, Walk>;
    const VERB: Verb = Verb::FastForward;
    const ACCESS: Access = Access::Forward;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Self::Output> {
        self.forward.check()?;
        if self.forward.same_server {
            rows.check_server()?;
        }
        if let Some(planned_on) = &self.forward.planned_on {
            check_plan(rows, planned_on).await?;
        }
        let mut walk = self.from.clone();
        let began_at = *walk.began_at.get_or_insert(rows.identity().writes.saturating_add(1));
        let mut namespace = rows.namespace().await?;
        let is_first = walk.sources == 0 && walk.slot.is_none();
        if is_first {
            if self.moves_slots() {
                namespace.ground = namespace.ground.fast_forwarded(self.forward);
            }
            let catalog_version = namespace.catalog_version.max(self.forward.catalog_at_least);
            namespace.catalog_version = catalog_version.saturating_add(1);
            rows.put_namespace(namespace).await?;
        }
        let ground = namespace.ground.term;
        let room = self.forward_sources(rows, &mut walk, R::WRITES_MAX).await?;
        if walk.sources < self.forward.segments.len() {
            return self.to_be_continued(rows, walk, is_first).await;
        }
        let slots = self.slots_after(rows, &walk).await?;
        let moved = slots.get(..room.min(slots.len())).unwrap_or_default();
        let mark = self.forward.marks_at_least;
        let fast_forwarded =
            |(pool, row): &(String, SlotRow)| fast_forwarded(pool, row, mark, ground);
        let moved_on = moved.iter().map(|slot| (slot.0.as_str(), fast_forwarded(slot)));
        put_slots(rows, moved_on).await?;
        if let Some((pool, row)) = moved.last() {
            walk.slot = Some((pool.clone(), row.slot));
        }
        if slots.len() > room {
            return self.to_be_continued(rows, walk, is_first).await;
        }
        Ok((Ok(self.end(rows, began_at).await?), true))
    }
}

/// One step of a move that raises values alone. It is no recovery, so a store in doubt, a store that
/// lacks what this handle has seen, and another server than the one that wrote the rows reject it
/// like any other write.
struct RaiseVerb<'a>(FastForwardVerb<'a>);

#[async_trait]
impl RunVerb for RaiseVerb<'_> {
    type Output = Result<String, Walk>;
    const VERB: Verb = Verb::FastForward;
    const LEAVES_START: bool = true;

    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Self::Output> {
        self.0.run(rows).await
    }
}

impl FastForwardVerb<'_> {
    /// Returns whether the move concerns slots. Values that are raised in a store that lacks nothing
    /// void no lease and no counter, except for a mark of workers.
    fn moves_slots(&self) -> bool {
        !self.forward.values_only || self.forward.marks_at_least > Mark::ZERO
    }

    /// Ends a step that is not the last. The first step leaves a start: the counts of the steps would
    /// hide lost writes from a process that saw them, if the move is no recovery, or ends halfway.
    async fn to_be_continued<R: Rows>(
        &self,
        rows: &mut R,
        walk: Walk,
        is_first: bool,
    ) -> VerbResult<R, Result<String, Walk>> {
        if is_first {
            let history = put_start(rows, None).await?;
            rows.name(history.to_string())?;
        }
        Ok((Err(walk), true))
    }

    /// Ends the walk with a new history, and returns the store's identity.
    async fn end<R: Rows>(&self, rows: &mut R, began_at: u64) -> RowsResult<R, String> {
        let (before, start) = (History::of(&rows.identity().id), random::number()?);
        let mut history = before.recovered(self.forward, self.new_id, start);
        let is_recovery = !self.forward.values_only;
        put_moved(rows, &history, is_recovery.then_some(began_at)).await?;
        history.in_doubt = end_doubt(rows, self.forward).await?;
        let id = history.to_string();
        if is_recovery {
            let writes = rows.identity().writes.max(self.forward.writes_at_least);
            rows.accept(StoreIdentity { id: id.clone(), writes }).await?;
        } else {
            rows.name(id.clone())?;
        }
        Ok(id)
    }

    /// Moves up to `room` sources, and returns the remaining room.
    async fn forward_sources<R: Rows>(
        &self,
        rows: &mut R,
        walk: &mut Walk,
        room: usize,
    ) -> RowsResult<R, usize> {
        let mut room = room;
        for (name, mark) in self.forward.segments.iter().skip(walk.sources).take(room) {
            let stored = rows.definition(name).await?;
            rows.put_definition(&Definition::fast_forwarded(stored, name, *mark)).await?;
            walk.sources += 1;
            room -= 1;
        }
        Ok(room)
    }

    /// Returns the rows of slots that are still to be moved.
    async fn slots_after<R: Rows>(
        &self,
        rows: &mut R,
        walk: &Walk,
    ) -> RowsResult<R, Vec<(String, SlotRow)>> {
        if !self.moves_slots() {
            return Ok(Vec::new());
        }
        let mut slots = rows.all_slots().await?;
        if self.forward.values_only {
            let mark = self.forward.marks_at_least;
            // A holder may not mint times below the mark in a window that reaches past it.
            let is_below =
                |row: &SlotRow| row.mark < mark || row.holder.is_some() && row.floor < mark;
            slots.retain(|(pool, row)| !counts(pool, row.slot) && is_below(row));
        }
        slots.retain(|(pool, row)| {
            walk.slot.as_ref().is_none_or(|(last, number)| (pool, row.slot) > (last, *number))
        });
        slots.sort_by(|(pool, row), (other, than)| (pool, row.slot).cmp(&(other, than.slot)));
        Ok(slots)
    }
}

/// Allows claims to use marks up to here.
async fn accept_lead<R: Rows>(rows: &mut R, until: Mark) -> VerbResult<R, ()> {
    check_mark(until)?;
    let row = rows.namespace().await?;
    let ground = SlotDefaults { accepted_lead: until, ..row.ground };
    rows.put_namespace(NamespaceRow { ground, ..row }).await?;
    Ok(((), true))
}

/// Reads the defaults for slots without a row.
async fn ground<R: Rows>(rows: &mut R) -> VerbResult<R, SlotDefaults> {
    Ok((rows.namespace().await?.ground, false))
}

steps! {
    AcceptLead: fn accept_lead(until: Mark) -> ();
    Ground: fn ground() -> SlotDefaults;
}

impl<B: Backend> BackendStore<B> {
    pub(super) async fn fast_forward(&self, forward: &FastForward) -> Result<StoreIdentity> {
        let new_id = random::incarnation()?.to_string();
        let seen = self.lineage.seen().filter(|seen| seen.id == new_id || !forward.new_identity);
        let writes_seen = seen.map_or(0, |seen| seen.writes);
        let writes_at_least = forward.writes_at_least.max(writes_seen);
        let forward = &FastForward { writes_at_least, ..forward.clone() };
        let mut from = Walk::default();
        loop {
            let step = FastForwardVerb { forward, new_id: &new_id, from };
            let moved = match forward.values_only {
                true => self.run(RaiseVerb(step)).await?,
                false => self.run(step).await?,
            };
            match moved {
                (Ok(id), writes) => return Ok(StoreIdentity { id, writes }),
                (Err(walk), _) => from = walk,
            }
        }
    }
}
